"""Which accounting a ledger has."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.basic import Basic
from dpframe.accounting.gaussian_dp import GaussianDP
from dpframe.accounting.protocol import Accounting
from dpframe.errors import InvalidArgument, shown


def accounting_of(name: object, delta: Fraction) -> Accounting:
    """The accounting that a caller names, or the one that suits the limit."""
    if name is None:
        name = "gdp" if delta else "basic"
    if name == "basic":
        return Basic()
    if name == "gdp":
        if not delta:
            raise InvalidArgument("delta must be above 0 for gdp accounting. Write for instance delta=1e-6.")
        return GaussianDP(delta)
    raise InvalidArgument(f"accounting must be 'basic', 'gdp' or None, not {shown(name)}.")
