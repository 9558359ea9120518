"""The accountings that ship, by name, and the one that a ledger gets."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.basic import Basic
from dpframe.accounting.gaussian_dp import GaussianDP
from dpframe.accounting.keys_reserve import KeysReserve
from dpframe.accounting.protocol import Accounting
from dpframe.accounting.renyi_dp import RenyiDP
from dpframe.errors import InvalidArgument, InvalidType, checked_name, is_one_of, named, shown
from dpframe.exact import Amount, is_exact, shown_down

SHIPPED = (Basic, GaussianDP, RenyiDP)


def accounting_of(name: object, epsilon: Fraction, delta: Fraction) -> Accounting:
    """The accounting that a caller names or brings, or the one that suits the limit."""
    if isinstance(name, Accounting):
        return _brought(name, epsilon, delta)
    if name is None:
        name = "gdp" if delta else "basic"
    if not is_one_of(name, ("basic", "gdp", "rdp", "pld")):
        raise InvalidArgument(f"accounting must be 'basic', 'gdp', 'rdp' or None, not {shown(name)}.")
    if name == "basic":
        return Basic()
    if name == "pld":
        raise InvalidArgument(
            "accounting must be 'basic', 'gdp', 'rdp' or None for a ledger, not 'pld': a privacy loss distribution "
            "composes noise that is fixed beforehand, while a ledger is asked for one price after another. "
            "Declare the plan and price it as a whole: dpf.compare_accounting(...), dpf.release_together(...)."
        )
    if not delta:
        raise InvalidArgument(f"delta must be above 0 for {name} accounting. Write for instance delta=1e-6.")
    return GaussianDP(delta) if name == "gdp" else RenyiDP(epsilon, delta)


def with_reserve(name: object, epsilon: Fraction, delta: Fraction, reserve: Fraction) -> Accounting:
    """The accounting that a caller names, with a part of its delta kept for keys that are found, unless that is 0."""
    if not reserve:
        return accounting_of(name, epsilon, delta)
    if reserve >= delta:
        raise InvalidArgument(
            f"keys_delta must be below delta, of which it is a part, not {shown_down(reserve)!r} of "
            f"{shown_down(delta)!r}. Write for instance delta=1e-6, keys_delta=1e-7."
        )
    accounting = accounting_of(name, epsilon, delta - reserve)
    if accounting.takes_keys:
        raise InvalidArgument(
            f"keys_delta must be left out with {accounting.name} accounting, which adds the deltas of keys to its own "
            "delta. Drop it."
        )
    if not is_shipped(accounting):
        raise InvalidArgument(
            f"keys_delta must be left out with accounting={accounting.name}, which is not dpframe's. "
            "Use 'gdp' or 'rdp'."
        )
    return KeysReserve(accounting, reserve)


def is_shipped(accounting: Accounting) -> bool:
    """Tell whether every process that opens a ledger knows it."""
    return type(accounting) in SHIPPED or isinstance(accounting, KeysReserve)


def checked_limit(accounting: Accounting, epsilon: Fraction, delta: Fraction) -> Amount:
    """The limit of a new ledger; typed errors where an accounting from outside gives no amount."""
    limit = accounting.limit(epsilon, delta)
    if not isinstance(limit, tuple) or not limit or not all(map(is_exact, limit)) or min(limit) < 0:
        raise InvalidType(
            f"accounting.limit must return a tuple of Fractions of at least 0, not {named(limit)}. "
            "dpframe.testing.check_accounting says what an accounting must keep to."
        )
    return limit


def _brought(accounting: Accounting, epsilon: Fraction, delta: Fraction) -> Accounting:
    """An accounting as a caller made it, for a ledger with this limit; one of dpframe's is as if it were named."""
    if is_shipped(accounting):
        return accounting_of(accounting.name, epsilon, delta)
    name = accounting.name
    if not isinstance(name, str) or name in (*(shipped.name for shipped in SHIPPED), "pld"):
        raise InvalidArgument(
            f"accounting must have a name of its own, not {shown(name)}, which is one of dpframe's. Rename it."
        )
    checked_name("accounting.name", name)
    return accounting.of_ledger(epsilon, delta)
