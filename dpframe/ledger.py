"""The ledger: who is protected, how much may be spent on them, and every charge so far. The one mutable thing."""

from __future__ import annotations

import os
import threading
import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal, NoReturn, Self

from dpframe import report
from dpframe.accounting import Accounting, Amount, Basic, GaussianDP
from dpframe.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidType,
    LedgerError,
    MissingArgument,
    NoLedger,
    UnlimitedBudgetWarning,
    shown,
)
from dpframe.frames import build
from dpframe.guarantee import PrivacyLoss, PrivacyUnit, exact_delta, exact_epsilon, shown_down, up

ROWS = PrivacyUnit()


@dataclass(frozen=True)
class Charge:
    """One entry: when, what was asked, and what it cost."""

    time: str
    label: str | None
    query: str
    unit: PrivacyUnit
    amount: Amount
    cost: PrivacyLoss


class Ledger:
    """A privacy budget for one privacy unit: append-only, exact, and charged before any row is read.

    Parameters
    ----------
    epsilon : float
        The most that may be spent on the people in the data, over all releases together.
    delta : float
        0 for pure differential privacy.
    unit : PrivacyUnit, optional
        Who is protected; without it each row is a unit.
    accounting : {"basic", "gdp"}, optional
        How losses add up. Default: ``"basic"`` for delta = 0, else ``"gdp"``.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Notes
    -----
    ``basic`` adds the exact rationals of the decimals that were typed: a ledger of 0.3 holds exactly three charges of
    0.1. ``gdp`` adds mu^2, rounded up, against a limit rounded down (see `dpframe.accounting`). Charges are never
    refunded. Copies are the same ledger; a ledger in memory cannot be pickled and does not charge in a forked child.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62]})
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> with ledger:
    ...     released = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.25)
    >>> print(ledger.spent, "|", ledger.remaining)
    epsilon 0.25 | epsilon 0.75
    """

    def __init__(
        self,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction = 0,
        *,
        unit: PrivacyUnit | None = None,
        accounting: Literal["basic", "gdp"] | None = None,
    ) -> None:
        if epsilon is None:
            raise MissingArgument(
                "epsilon must be given: the most that may be spent. Write for instance Ledger(epsilon=1.0)."
            )
        limit = (exact_epsilon(epsilon), exact_delta(delta))
        self._start(_accounting(accounting, limit[1]), checked_unit(unit) or ROWS, limit)
        _made_any.set()

    def _start(self, accounting: Accounting, unit: PrivacyUnit | None, limit: Amount | None) -> None:
        self._accounting = accounting
        self._unit = unit
        self._typed = limit
        self._limit = None if limit is None else accounting.limit(*limit)
        self._charges: list[Charge] = []
        self._spent: Amount = ()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def _unlimited(cls) -> Self:
        ledger = cls.__new__(cls)
        ledger._start(Basic(), None, None)
        return ledger

    @property
    def accounting(self) -> Accounting:
        """How losses add up."""
        return self._accounting

    @property
    def unit(self) -> PrivacyUnit | None:
        """Who is protected; None on the default ledger, where each call says."""
        return self._unit

    @property
    def limit(self) -> PrivacyLoss | None:
        """The most that may be spent; None on the default ledger."""
        return None if self._typed is None else PrivacyLoss(shown_down(self._typed[0]), shown_down(self._typed[1]))

    @property
    def limit_amount(self) -> Amount | None:
        """The limit in the accounting's own exact quantity."""
        return self._limit

    @property
    def spent(self) -> PrivacyLoss:
        """What was charged so far, rounded up."""
        return self._accounting.loss(self._spent) if self._spent else PrivacyLoss(0.0)

    @property
    def remaining(self) -> PrivacyLoss:
        """What one more call may cost, rounded down; infinite on the default ledger."""
        if self._limit is None:
            return PrivacyLoss(float("inf"))
        if self.limit is not None and not any(self._spent):
            return self.limit
        return self._accounting.remaining(_minus(self._limit, self._spent))

    def charge(
        self, amount: Amount, *, cost: PrivacyLoss, query: str, unit: PrivacyUnit, label: str | None = None
    ) -> None:
        """Take `amount`, all or nothing. Every release does this by itself; nothing is ever refunded.

        Parameters
        ----------
        amount : tuple of Fraction
            In the accounting's own exact quantity: (epsilon, delta) under ``basic``, mu^2 under ``gdp``.
        cost : PrivacyLoss
            The same for people to read.
        query, unit, label
            What was asked, who is protected, and the caller's name for it: what `to_frame` lists.

        Raises
        ------
        BudgetExceeded
            If the limit would be passed. Nothing was taken.
        LedgerError
            In a forked child of the process that made the ledger.
        """
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory must be charged in the process that made it, not in a forked child: "
                "each child would spend the same budget again. Ask in the parent."
            )
        if not all(part >= 0 for part in amount):
            raise InvalidArgument("amount must not be negative: nothing is ever refunded.")
        with self._lock:
            total = _plus(self._spent, amount)
            if self._limit is not None and any(part > most for part, most in zip(total, self._limit, strict=True)):
                raise BudgetExceeded(self._refusal(amount, cost))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._charges.append(Charge(now, label, query, unit, amount, cost))
            self._spent = total

    def unit_for(self, unit: PrivacyUnit | None) -> PrivacyUnit:
        """The unit that a call protects: the ledger's own, or on the default ledger the call's."""
        if self._unit is None:
            return checked_unit(unit) or ROWS
        if checked_unit(unit) not in (None, self._unit):
            raise InvalidArgument(
                f"unit must be left out or equal the ledger's ({self._unit}). This call's is {unit}. "
                "A ledger protects one unit: make another ledger for another unit."
            )
        return self._unit

    def to_frame(self, like: str = "polars") -> Any:
        """Every charge, one row each, in the order in which they were taken.

        Parameters
        ----------
        like : {"polars", "pandas"}
            The library of the frame.

        Returns
        -------
        DataFrame
            ``epsilon`` and ``delta`` are rounded up; ``amount`` is the accounting's own exact quantity.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.Ledger(epsilon=1.0).to_frame().columns
        ['entry', 'time', 'label', 'query', 'unit', 'epsilon', 'delta', 'amount']
        """
        rows = [
            {
                "entry": entry,
                "time": charge.time,
                "label": charge.label,
                "query": charge.query,
                "unit": str(charge.unit),
                "epsilon": charge.cost.epsilon,
                "delta": charge.cost.delta,
                "amount": ", ".join(_shown_exactly(part) for part in charge.amount),
            }
            for entry, charge in enumerate(self._charges, start=1)
        ]
        columns = ("entry", "time", "label", "query", "unit", "epsilon", "delta", "amount")
        return build.of_rows(rows, like, columns)

    def __enter__(self) -> Self:
        _ambient.set((*_ambient.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        inside = list(_ambient.get())
        if self in inside:  # not always the last: a generator may leave its `with` after the code that runs it
            del inside[len(inside) - 1 - inside[::-1].index(self)]
        _ambient.set(tuple(inside))

    def __copy__(self) -> Self:
        return self  # a copy would be a second budget for the same people

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a ledger in memory cannot be pickled: the copy would be a second budget for the same people."
        )

    def _facts(self) -> list[str]:
        whole = "no limit: it only records" if self.limit is None else f"of {self.limit}"
        protects = "what each call names" if self._unit is None else str(self._unit)
        return [
            f"spent {self.spent} {whole}",
            f"remaining {self.remaining}",
            f"protects {protects}",
            f"{self._accounting.name} accounting, {len(self._charges)} charge{'' if len(self._charges) == 1 else 's'}",
        ]

    def __repr__(self) -> str:
        return "Ledger\n" + "\n".join(f"  {fact}" for fact in self._facts())

    def _repr_html_(self) -> str:
        rows = [(charge.time, charge.label or "", charge.query, str(charge.cost)) for charge in self._charges[-10:]]
        return report.html_page("Ledger", self._facts(), ("time", "label", "query", "cost"), rows)

    def _refusal(self, amount: Amount, cost: PrivacyLoss) -> str:
        assert self._limit is not None
        remaining = self.remaining
        costs, left = (str(cost), str(remaining)) if str(cost) != str(remaining) else (cost.digits, remaining.digits)
        words = f"the call costs {costs}, but only {left} of {self.limit} is left in the ledger."
        if cost.delta and self.limit is not None and not self.limit.delta:
            return f"{words} It has no delta: leave delta out, or make one with dpf.Ledger(epsilon=..., delta=...)."
        if self._accounting.name == "gdp":
            part = float(amount[0] / self._limit[0])
            return (
                f"{words} Ask for less. "
                f"(gdp accounting adds mu^2, not epsilon: the call takes {part:.0%} of the whole limit.)"
            )
        return f"{words} Ask for less."


_ambient: ContextVar[tuple[Ledger, ...]] = ContextVar("dpframe_ambient", default=())
_made_any = threading.Event()
_warned = threading.Event()
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
    """Let every call that names no ledger be charged to this one; None goes back to the recording ledger.

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
    if _ambient.get():
        return _ambient.get()[-1]
    if _chosen or not _made_any.is_set():
        return default_ledger()
    return None


def no_ledger() -> NoLedger:
    """The error of a call that sees no ledger, with the three ways out."""
    return NoLedger(
        "which ledger pays? Pass ledger=..., or write the call inside `with ledger:`, "
        "or call dpf.set_default_ledger(ledger)."
    )


def warn_unlimited(ledger: Ledger, unit: PrivacyUnit) -> None:
    """Once a process: the recording ledger limits nothing, and rows may not be people."""
    if ledger is not _recording or _warned.is_set():
        return
    _warned.set()
    words = "this release is recorded, but nothing limits the total: make a dpf.Ledger(epsilon=...) to set a budget."
    if unit.column is None:
        words += (
            " Each row was counted as one person; if people have several rows, say unit=dpf.PrivacyUnit(column=...)."
        )
    warnings.warn(words, UnlimitedBudgetWarning, stacklevel=6)


def checked_ledger(ledger: object) -> Ledger:
    """Refuse what is not a Ledger."""
    if not isinstance(ledger, Ledger):
        raise InvalidType(
            f"ledger must be a dpf.Ledger, not {shown(ledger)}. Write for instance dpf.Ledger(epsilon=1.0)."
        )
    return ledger


def checked_unit(unit: object) -> PrivacyUnit | None:
    """Refuse what is not a PrivacyUnit."""
    if unit is not None and not isinstance(unit, PrivacyUnit):
        raise InvalidType(f"unit must be a dpf.PrivacyUnit, not {shown(unit)}. Write dpf.PrivacyUnit(column=...).")
    return unit


def _accounting(name: object, delta: Fraction) -> Accounting:
    if name is None:
        name = "gdp" if delta else "basic"
    if name == "basic":
        return Basic()
    if name == "gdp":
        if not delta:
            raise InvalidArgument("delta must be above 0 for gdp accounting. Write for instance delta=1e-6.")
        return GaussianDP(delta)
    raise InvalidArgument(f"accounting must be 'basic', 'gdp' or None, not {shown(name)}.")


def _plus(spent: Amount, amount: Amount) -> Amount:
    return tuple(one + other for one, other in zip(spent, amount, strict=True)) if spent else amount


def _minus(limit: Amount, spent: Amount) -> Amount:
    return tuple(most - part for most, part in zip(limit, spent, strict=True)) if spent else limit


def _shown_exactly(part: Fraction) -> str:
    return str(part) if part.denominator < 10**30 else f"{up(part):.17g}"
