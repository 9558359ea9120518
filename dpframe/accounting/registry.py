"""Which accounting a ledger has."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.basic import Basic
from dpframe.accounting.gaussian_dp import GaussianDP
from dpframe.accounting.protocol import Accounting
from dpframe.accounting.renyi_dp import RenyiDP
from dpframe.errors import InvalidArgument, shown
from dpframe.ledger import reading
from dpframe.ledger.terms import Terms, changed


def accounting_of(name: object, epsilon: Fraction, delta: Fraction) -> Accounting:
    """The accounting that a caller names, or the one that suits the limit."""
    if name is None:
        name = "gdp" if delta else "basic"
    if name == "basic":
        return Basic()
    if name == "pld":
        raise InvalidArgument(
            "accounting must be 'basic', 'gdp', 'rdp' or None for a ledger, not 'pld': a privacy loss distribution "
            "composes noise that is fixed beforehand, while a ledger is asked for one price after another. "
            "Declare the plan and price it as a whole: dpf.compare_accounting(...), dpf.release_together(...)."
        )
    if name not in ("gdp", "rdp"):
        raise InvalidArgument(f"accounting must be 'basic', 'gdp', 'rdp' or None, not {shown(name)}.")
    if not delta:
        raise InvalidArgument(f"delta must be above 0 for {name} accounting. Write for instance delta=1e-6.")
    return GaussianDP(delta) if name == "gdp" else RenyiDP(epsilon, delta)


def accounting_of_terms(terms: Terms, where: str) -> Accounting:
    """The accounting of a stored ledger; that of its first limit, which fixes the orders of rdp for good."""
    try:
        found = accounting_of(reading.text(terms.accounting), terms.limit.epsilon, terms.limit.delta)
        parts = len(found.limit(terms.limit.epsilon, terms.limit.delta))
    except (ValueError, ArithmeticError):
        raise changed(where, "its terms name no accounting of this limit") from None
    if parts != len(terms.limit.amount) or found.one_is_enough != terms.limit.one_is_enough:
        raise changed(where, f"its limit is not one of {found.name} accounting")
    return found
