"""Accountings: each adds up privacy losses in one additive, exact quantity."""

from dpframe.accounting.by_curves import GaussianDP, RenyiDP
from dpframe.accounting.protocol import Accounting, Basic, Part
from dpframe.accounting.registry import accounting_of, with_reserve
from dpframe.mechanisms.declared import BoundedRange, Curve, PureLoss

__all__ = [
    "Accounting",
    "Basic",
    "BoundedRange",
    "Curve",
    "GaussianDP",
    "Part",
    "PureLoss",
    "RenyiDP",
    "accounting_of",
    "with_reserve",
]
