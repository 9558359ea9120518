"""The accountings that ship, by name, and the one that a ledger gets."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.basic import Basic
from dpframe.accounting.gaussian_dp import GaussianDP
from dpframe.accounting.protocol import Accounting
from dpframe.accounting.renyi_dp import RenyiDP
from dpframe.errors import InvalidArgument, shown


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
