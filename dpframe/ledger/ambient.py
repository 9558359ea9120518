"""The ledger that a call is charged to: named, ambient, or the default one."""

from __future__ import annotations

import threading
import warnings
from weakref import WeakSet

from dpframe.errors import InvalidType, UnlimitedBudgetWarning, WeakPrivacyWarning, shown
from dpframe.errors.tracebacks import depth_outside
from dpframe.ledger.ledger import Ledger, ambient, made_any
from dpframe.ledger.statement import unlimited
from dpframe.privacy import WEAK_EPSILON, PrivacyLoss, PrivacyUnit

_warned = threading.Event()
_warned_of: WeakSet[Ledger] = WeakSet()  # ledgers of which a call was warned of
_recording = Ledger._unlimited()
_chosen: list[Ledger] = []


def default_ledger() -> Ledger:
    """The process-wide ledger that records every release and limits nothing, or the one set in its place.

    Returns
    -------
    Ledger
        In memory, ``basic``, without a limit. Once any other ledger has been made it must be passed by name.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.default_ledger().remaining.epsilon
    inf
    """
    return _chosen[0] if _chosen else _recording


def set_default_ledger(ledger: Ledger | None) -> None:
    """Set the ledger of calls that name none; None restores the default.

    Parameters
    ----------
    ledger : Ledger or None
        The ledger for the whole process.

    Raises
    ------
    InvalidType
        If it is not a Ledger.

    Examples
    --------
    >>> import dpframe as dpf
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> dpf.set_default_ledger(ledger)
    >>> dpf.default_ledger() is ledger
    True
    >>> dpf.set_default_ledger(None)
    """
    _chosen[:] = [] if ledger is None else [checked_ledger(ledger)]


def ledger_for(ledger: Ledger | None) -> Ledger | None:
    """The ledger that a call is charged to: named, ambient, or default; None where none is in sight."""
    if ledger is not None:
        return checked_ledger(ledger)
    if ambient.get():
        return ambient.get()[-1]
    if _chosen or not made_any.is_set():
        return default_ledger()
    return None


def warn_unlimited(ledger: Ledger, unit: PrivacyUnit, *, depth: int) -> None:
    """Once a process: the recording ledger limits nothing, and rows may not be people; `depth` tells whose call."""
    if ledger is not _recording or _warned.is_set():
        return
    _warned.set()
    warnings.warn(unlimited(unit), UnlimitedBudgetWarning, stacklevel=depth + 1)


def warn_weak(ledger: Ledger, unit: PrivacyUnit, cost: PrivacyLoss) -> None:
    """Once a ledger: the epsilon of a call promises little."""
    if cost.epsilon <= WEAK_EPSILON or ledger in _warned_of:
        return
    _warned_of.add(ledger)
    warnings.warn(
        f"weak privacy: epsilon {cost.epsilon:.4g} is above {WEAK_EPSILON}, and what is released may tell nearly all "
        f"of one {unit.one}. Take 0.1 to 1 for a call.",
        WeakPrivacyWarning,
        stacklevel=depth_outside(),
    )


def checked_ledger(ledger: object) -> Ledger:
    """Refuse what is not a Ledger."""
    if not isinstance(ledger, Ledger):
        raise InvalidType(
            f"ledger must be a dpf.Ledger, not {shown(ledger)}. Write for instance dpf.Ledger(epsilon=1.0)."
        )
    return ledger
