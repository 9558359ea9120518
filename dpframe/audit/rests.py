"""Rests: the part of a number that its float does not show, such as rounded digits, the sign of zero, null or NaN.

An audit orders and adds up floats. Two numbers with the same float may still differ, and an attacker sees this. So
each float has a rest, which is a second float. Both together identify the number.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.frames.kinds import is_missing

Floats = NDArray[np.float64]

DECIMALS = Context(traps=[])  # the caller's context may refuse to round


def as_float(value: Any) -> float:
    """Return a number as a float, infinite if it is beyond all floats."""
    try:
        return math.nan if is_missing(value) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def of_array(exact: Any, floats: Floats) -> Floats:
    """Return the rests of an array of NumPy's floats or integers."""
    if exact.dtype.kind != "f":
        return _rounded_off(exact, floats)
    if exact.dtype.itemsize <= floats.itemsize:
        return _marks(floats)
    known = np.isfinite(floats)  # `exact` is a long double here
    return _marks(floats) + (np.where(known, exact, 0.0) - np.where(known, floats, 0.0)).astype(np.float64)


def of_cells(cells: Any, floats: Floats) -> Floats:
    """Return the rests of numbers and missing values, cell by cell."""
    return _marks(floats) + np.array([*map(_of_cell, cells, floats.tolist())], dtype=np.float64)


def _marks(floats: Floats) -> Floats:
    """Return 1 for -0.0 and for infinity, which is ordered as the largest float, and 2 for NaN; null adds 1 to this."""
    return np.asarray(np.isinf(floats) + 2.0 * np.isnan(floats) + ((floats == 0.0) & np.signbit(floats)))


def _rounded_off(exact: Any, floats: Floats) -> Floats:
    """Return integers minus their floats: at most 2^10 for 64 bits, so it is found modulo 2^12, without overflow."""
    if exact.dtype.itemsize < 8:
        return np.zeros(exact.size)
    off = np.mod(exact, exact.dtype.type(2**12)) - np.mod(floats, 2.0**12)
    return np.asarray(np.mod(off + 2.0**11, 2.0**12) - 2.0**11)


def _of_cell(value: Any, number: float) -> float:
    """Return 1 for null, which only its class shows; for a number, the digits that its float lacks."""
    if type(value) is float or (type(value) is int and abs(number) < 2.0**53):
        return 0.0
    if is_missing(value):
        return float(not isinstance(value, (float, Decimal, np.floating)))
    if isinstance(value, np.longdouble) and math.isfinite(number):
        return float(value - np.longdouble(number))
    if not isinstance(value, (Decimal, Rational)):
        return 0.0
    if math.isinf(number):  # beyond all floats; a hash depends on all digits
        return float(hash(value) % 2**53)
    if isinstance(value, Decimal):
        return float(DECIMALS.subtract(value, Decimal.from_float(number)))
    if isinstance(value, Integral):
        return float(int(value) - int(number))
    return float(Fraction(value) - Fraction(number))
