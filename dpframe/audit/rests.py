"""Rests: what the float of a number does not tell of it, such as rounded digits, a sign of zero, null or NaN.

An audit orders and adds up floats. Two numbers of one float may differ all the same, and an attacker sees it. So each
float has a rest, a second float, which together with it tells the number.
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

DECIMALS = Context(traps=[])  # not the caller's, which may refuse what is rounded


def as_float(value: Any) -> float:
    """A number as a float; one beyond all floats is infinite."""
    try:
        return math.nan if is_missing(value) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def of_array(exact: Any, floats: Floats) -> Floats:
    """The rests of floats of NumPy, or of its integers."""
    if exact.dtype.kind != "f":
        return _rounded_off(exact, floats)
    if exact.dtype.itemsize <= floats.itemsize:
        return _marks(floats)
    known = np.isfinite(floats)  # of a long double
    return _marks(floats) + (np.where(known, exact, 0.0) - np.where(known, floats, 0.0)).astype(np.float64)


def of_cells(cells: Any, floats: Floats) -> Floats:
    """The rests of numbers and missing values, one by one."""
    return _marks(floats) + np.array([*map(_of_cell, cells, floats.tolist())], dtype=np.float64)


def _marks(floats: Floats) -> Floats:
    """1 for -0.0, and for infinity, which is ordered as the largest float; 2 for NaN, to which null adds 1."""
    return np.asarray(np.isinf(floats) + 2.0 * np.isnan(floats) + ((floats == 0.0) & np.signbit(floats)))


def _rounded_off(exact: Any, floats: Floats) -> Floats:
    """Integers less their floats: of 64 bits at most 2^10, which is found modulo 2^12, where nothing overflows."""
    if exact.dtype.itemsize < 8:
        return np.zeros(exact.size)
    off = np.mod(exact, exact.dtype.type(2**12)) - np.mod(floats, 2.0**12)
    return np.asarray(np.mod(off + 2.0**11, 2.0**12) - 2.0**11)


def _of_cell(value: Any, number: float) -> float:
    """1 for null, as its class and no method tells; of a number the digits that its float has not."""
    if type(value) is float or (type(value) is int and abs(number) < 2.0**53):
        return 0.0
    if is_missing(value):
        return float(not isinstance(value, (float, Decimal, np.floating)))
    if isinstance(value, np.longdouble) and math.isfinite(number):
        return float(value - np.longdouble(number))
    if not isinstance(value, (Decimal, Rational)):
        return 0.0
    if math.isinf(number):  # beyond all floats, where a hash of numbers has the digits
        return float(hash(value) % 2**53)
    if isinstance(value, Decimal):
        return float(DECIMALS.subtract(value, Decimal.from_float(number)))
    if isinstance(value, Integral):
        return float(int(value) - int(number))
    return float(Fraction(value) - Fraction(number))
