"""Exact numbers and directed rounding: callers' numbers enter only here, and the shared roundings are here.

Every number that a caller gives and that decides privacy (a cost, a limit, a share, a weight, a bound, a size, a
sensitivity) becomes a `Fraction` of Python integers here, once, before other code uses it. NumPy's integers wrap
around, also inside a Fraction, and a subclass may overload arithmetic. So each value is read once, by the methods of
its known base class and never by its own.

The value that each kind of number stands for:

- an integer, a Fraction or a Decimal: its exact value;
- a float: the decimal that it prints, which is the typed one: 0.3 is 3/10;
- a NumPy float of another size: the float that equals it, so ``np.float32(0.1)`` is 0.10000000149011612, as for
  ``float``; a longdouble that equals no float: its exact value.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument, InvalidType, LedgerError, how_many, shown

SMALLEST_NORMAL = 2.2250738585072014e-308
SHARE_DENOMINATOR = 10**6
MOST_DIGITS = 1000  # the most digits of a caller's numerator and denominator; no float needs more than 341
MOST = 10**MOST_DIGITS
LONGEST = 2**17  # the most bits of an amount or a total, which sum and multiply callers' numbers
LONG = 10_000  # bits; Python may refuse to print longer integers as decimals, so they are hexadecimal
MU_GRID = 2**400  # mu^2 is kept in multiples of 2**-400: fine enough for any float, and sums stay short

Amount = tuple[Fraction, ...]  # the exact cost that an accounting adds up, by coordinate


class _TooLong(Exception):
    """An error for a number with too many digits."""


def is_number(value: object) -> bool:
    """Return whether a value is a real number that can be taken exactly; True, False and durations are not."""
    if type(value) in (int, float):  # faster than the abstract classes
        return True
    kinds = (int, float, Decimal, numbers.Rational, np.floating)
    return isinstance(value, kinds) and not isinstance(value, (bool, np.timedelta64))


def is_whole(value: object) -> bool:
    """Return whether a value is an integer; np.timedelta64 is registered as one, but is none here."""
    return type(value) is int or (isinstance(value, numbers.Integral) and is_number(value))


def exactly(
    argument: str, value: object, rule: str = "a finite number", way_out: str = "", *, typed: bool = True
) -> Fraction:
    """Return a caller's number as a Fraction of Python integers; a float as its decimal, or exactly if not `typed`.

    All numbers enter here. Only finite numbers of at most 1,000 digits pass; messages use `rule` and `way_out`.
    """
    number = _read(argument, value, way_out, typed=typed)
    if isinstance(number, float):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return number


def finite(value: object) -> Fraction | None:
    """Return `exactly` of a value, untyped, or None if it is refused, so that no message shows a private value."""
    try:
        return exactly("", value, typed=False)
    except InvalidArgument:
        return None


def checked_float(argument: str, value: object) -> float:
    """Return the Python float nearest to a caller's number; infinities and NaN stay as they are."""
    number = _read(argument, value, "", typed=False)
    return number if isinstance(number, float) else nearest(number)


def checked_whole(argument: str, value: object, least: int, most: int, rule: str, way_out: str = "") -> int:
    """Return a caller's integer from `least` to `most` as a Python int."""
    if not is_whole(value):
        raise InvalidType(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    whole = _read(argument, value, way_out, typed=False)
    if not least <= whole <= most:
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return int(whole)


def positive(argument: str, value: object) -> Fraction:
    """Return a length above 0 (a sensitivity, a scale, a step), at most the largest float, exactly."""
    rule = "finite and above 0"
    number = exactly(argument, value, rule, typed=False)
    if number <= 0 or math.isinf(nearest(number)):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.")
    return number


def length(argument: str, value: object) -> float:
    """Return a length above 0: an integer as an int, others as a float, rounded up, so that no claim is understated."""
    number = positive(argument, value)
    return int(number) if is_whole(value) else up(number)


def between(
    argument: str, value: object, least: float, most: float, rule: str, way_out: str = "", *, closed: bool = False
) -> float:
    """Return a number between two others as a float, rounded down; a float stays as it is."""
    number = value if type(value) is float else down(exactly(argument, value, rule, way_out, typed=False))
    if not (least <= number <= most if closed else least < number < most):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return number


def exact_epsilon(value: object, argument: str = "epsilon") -> Fraction:
    """Return epsilon as the rational of the typed decimal, finite and above 0."""
    return _within_floats(argument, value, "a finite number above 0", f"{argument}=0.5")


def exact_delta(value: object, argument: str = "delta") -> Fraction:
    """Return delta as the rational of the typed decimal, with 0 <= delta < 1."""
    rule, example = "a number with 0 <= delta < 1", "delta=1e-6"
    delta = _within_floats(argument, value, rule, example, zero=True)
    if delta >= 1:
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}. Write for instance {example}.")
    return delta


def exact_weight(value: object) -> Fraction:
    """Return a weight as the rational of the typed decimal, finite and above 0."""
    return _within_floats("weights", value, "finite numbers above 0", "weights={'name': 2}")


def exact_share(value: object) -> Fraction:
    """Return a share of the limit as given, or for a float, the nearest fraction with denominator up to 10**6."""
    share = _within_floats("share", value, "a number with 0 < share <= 1", "share=0.25 or share=Fraction(1, 52)")
    if isinstance(value, (float, np.floating)):
        share = share.limit_denominator(SHARE_DENOMINATOR)
    if not 0 < share <= 1:
        raise InvalidArgument(
            f"share must be a number with 0 < share <= 1 (a float of at least 1e-6), not {shown(value)}. "
            "Write for instance share=0.25 or share=Fraction(1, 52)."
        )
    return share


def checked_amount(amount: object, parts: int) -> Amount:
    """Return the amount that a caller wants to charge: exact rationals, none below 0."""
    way_out = f" Write a tuple of Fractions, {parts} in all."
    if not isinstance(amount, (tuple, list)) or len(amount) != parts:
        raise InvalidType(
            f"amount must have {how_many(parts, 'part')} in this accounting, not {shown(amount)}.{way_out}"
        )
    exact = tuple(_read("amount", coordinate, way_out, typed=True, longest=LONGEST) for coordinate in amount)
    # NaN and infinity stay floats
    if not all(isinstance(coordinate, Fraction) and coordinate >= 0 for coordinate in exact):
        raise InvalidArgument(f"amount must be finite and must not be negative, for nothing is ever refunded.{way_out}")
    return exact  # type: ignore[return-value]  # all are Fractions


def plus(spent: Amount, amount: Amount) -> Amount:
    """Return the sum of both by coordinate; nothing was spent if `spent` is empty. A total never falls.

    A number that is not made of Python integers, or a total below the last one, always raises LedgerError.
    """
    total = tuple(before + more for before, more in zip(spent, amount, strict=True)) if spent else amount
    if not all(map(is_exact, (*amount, *total))):
        raise LedgerError("amount must be Fractions of Python integers. Nothing was charged.")
    if not all(map(operator.ge, total, spent or (0,) * len(total))):
        raise LedgerError("amount must not lower the total: what was spent is never refunded. Nothing was charged.")
    if any(part.bit_length() > LONGEST for sum_ in total for part in (sum_.numerator, sum_.denominator)):
        raise LedgerError(
            "amount must not bring the exact total to more than 39,000 digits. Nothing was charged. "
            "Write costs that are decimals or have one denominator."
        )
    return total


def keeps(total: Amount, limit: Amount, *, one_is_enough: bool = False) -> bool:
    """Return whether every spent part is within its limit, or at least one part if `one_is_enough`."""
    within = [spent <= most for spent, most in zip(total, limit, strict=True)]
    return any(within) if one_is_enough else all(within)


def is_exact(value: object) -> bool:
    """Return whether a value is a Fraction of Python integers alone, whose arithmetic is exact."""
    return type(value) is Fraction and type(value.numerator) is int and type(value.denominator) is int


def nearest(value: Fraction) -> float:
    """Return the float nearest to `value`, or an infinity beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`, so that spending is never understated."""
    closest = nearest(value)
    return closest if closest >= value else math.nextafter(closest, math.inf)


def down(value: Fraction) -> float:
    """Return the largest float that is not above `value`, so that the rest is never overstated."""
    closest = nearest(value)
    return closest if closest <= value else math.nextafter(closest, -math.inf)


@contextmanager
def to_digits(number: int) -> Iterator[None]:
    """Set the precision of mpmath to this number of digits.

    All threads of the process share the precision, and a rounded bound holds only at its own precision. So threads of
    dpframe wait for one another here.
    """
    import mpmath

    with _turn, mpmath.workdps(number):
        yield


@contextmanager
def to_bits(number: int) -> Iterator[None]:
    """Set the precision of mpmath to this number of bits, like `to_digits`."""
    import mpmath

    with _turn, mpmath.workprec(number):
        yield


_turn = threading.RLock()


def _renew() -> None:
    """Renew the lock in a forked child, which must not wait for a calculation of its parent."""
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def in_mpmath(value: Fraction) -> Any:
    """Return a rational as an mpmath number, at the current precision."""
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator


def rounded_up(value: Any) -> float:
    """Return the smallest float that is not below an mpmath number, for deltas, epsilons and scales."""
    closest = float(value)
    return closest if closest >= value else math.nextafter(closest, math.inf)


def shown_up(value: Fraction) -> float:
    """Return the float that was typed, if there is one (3/10 is shown as 0.3), and otherwise `up(value)`."""
    return _typed(value) or up(value)


def shown_down(value: Fraction) -> float:
    """Return the float that was typed, if there is one, and otherwise `typed_down(value)`."""
    return _typed(value) or typed_down(value)


def typed_down(value: Fraction) -> float:
    """Return the largest float that, like its shortest decimal, is not above `value`: callers calibrate to it."""
    number = down(value)
    while _as_typed(number) > value:
        number = math.nextafter(number, 0.0)
    return number


def root_up(power: Fraction, estimate: float, p: int = 2) -> float:
    """Raise the estimate of a p-th root until its power is at least `power`: sensitivities are never understated."""
    while Fraction(estimate) ** p < power:
        estimate = math.nextafter(estimate, math.inf)
    return estimate


def root_down(value: Fraction) -> float:
    """Return the largest float whose square is not above `value`, or one next to it: a smaller mu, so more noise."""
    root = math.sqrt(down(value))
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root


def floor(value: Fraction, grid: int = MU_GRID) -> Fraction:
    """Return the largest multiple of 1 / grid that is not above `value`, for limits."""
    return Fraction(math.floor(value * grid), grid)


def ceil(value: Fraction, grid: int = MU_GRID) -> Fraction:
    """Return the smallest multiple of 1 / grid that is not below `value`, for charges."""
    return Fraction(math.ceil(value * grid), grid)


def exact_text(value: Fraction) -> str:
    """Return an exact rational of any length as text."""
    return "/".join(
        str(integer) if integer.bit_length() < LONG else hex(integer) for integer in value.as_integer_ratio()
    )


def exact_texts(amount: Amount) -> list[str]:
    """Return exact rationals as texts, in their order."""
    return [exact_text(coordinate) for coordinate in amount]


def _within_floats(argument: str, value: object, rule: str, example: str, *, zero: bool = False) -> Fraction:
    """Return a typed number above 0 (or also 0, if `zero`) in the range of floats, 2.3e-308 to 1.8e308."""
    way_out = f" Write for instance {example}."
    number = exactly(argument, value, rule, way_out)
    if number < 0 or (number == 0 and not zero) or math.isinf(nearest(number)):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    if 0 < number < Fraction(SMALLEST_NORMAL):
        raise InvalidArgument(f"{argument} must be {rule}, and not below 2.3e-308 like {shown(value)}.{way_out}")
    return number


def _read(argument: str, value: object, way_out: str, *, typed: bool, longest: int | None = None) -> Fraction | float:
    """Return a caller's number as a Fraction, or as a float if it is infinite or NaN."""
    if type(value) is float and math.isfinite(value):
        return _as_typed(value) if typed else Fraction(value)
    if not is_number(value):
        raise InvalidType(f"{argument} must be a number, not {shown(value, kind=True)}.{way_out}")
    try:
        if type(value) is int or is_exact(value):  # no code of the caller runs
            ratio: tuple[int, int] | float = (value.numerator, value.denominator)  # type: ignore[attr-defined]
        else:
            ratio = _ratio(value, typed=typed)
        if isinstance(ratio, float):
            return ratio
        numerator, denominator = ratio  # check their length first: reduction takes quadratic time
        if longest is None:
            too_long = abs(numerator) > MOST or abs(denominator) > MOST
        else:
            too_long = max(numerator.bit_length(), denominator.bit_length()) > longest
        if too_long:
            raise _TooLong
        return Fraction(numerator, denominator)
    except _TooLong:
        words = f"a number of at most {MOST_DIGITS:,} digits"
        raise InvalidArgument(f"{argument} must be {words}, not {shown(value)}. Round it.") from None
    except (TypeError, AttributeError, ValueError, ArithmeticError):  # a caller's class that claims to be a number
        raise InvalidType(f"{argument} must be a number, not {shown(value, kind=True)}.{way_out}") from None


def _ratio(value: Any, *, typed: bool) -> tuple[int, int] | float:
    """Return numerator and denominator as Python integers, read once by methods of the base class."""
    if isinstance(value, (float, np.floating)):
        return _ratio_of_float(value, typed=typed)
    if isinstance(value, Decimal):
        return _ratio_of_decimal(value)
    if isinstance(value, Fraction):  # its parts may be NumPy's integers
        return _integer(Fraction.numerator.fget(value)), _integer(Fraction.denominator.fget(value))  # type: ignore[attr-defined]
    if is_whole(value):
        return _integer(value), 1
    return _integer(value.numerator), _integer(value.denominator)


def _integer(value: Any) -> int:
    """Return a Python int, and never a subclass of it."""
    if not is_whole(value):
        raise TypeError
    if isinstance(value, np.integer):
        value = np.generic.item(value)
    return int.__index__(value if isinstance(value, int) else operator.index(value))


def _ratio_of_float(value: Any, *, typed: bool) -> tuple[int, int] | float:
    if isinstance(value, float):  # also np.float64
        plain = float.__float__(value)
    else:
        with np.errstate(over="ignore"):
            plain = float(np.generic.astype(value, np.float64))
        if isinstance(value, np.longdouble) and np.isfinite(value) and np.longdouble(plain) != value:
            return tuple(map(int, np.longdouble.as_integer_ratio(value)))  # type: ignore[return-value]
    if not math.isfinite(plain):
        return plain
    return (_as_typed(plain) if typed else plain).as_integer_ratio()


@lru_cache(maxsize=1_000)  # one release reads the same costs and bounds many times
def _as_typed(plain: float) -> Fraction:
    """Return the decimal that a finite float prints, as a Fraction."""
    return Fraction(repr(plain))


def _ratio_of_decimal(value: Decimal) -> tuple[int, int] | float:
    if not Decimal.is_finite(value):
        sign = -1.0 if Decimal.is_signed(value) else 1.0
        return sign * math.inf if Decimal.is_infinite(value) else math.nan
    _, digits, exponent = Decimal.as_tuple(value)
    if len(digits) > MOST_DIGITS or abs(int(exponent)) > MOST_DIGITS:
        raise _TooLong
    return Decimal.as_integer_ratio(value)


def _typed(value: Fraction) -> float | None:
    """Return the float that prints as this decimal, or None if there is none."""
    number = nearest(value)
    return number if math.isfinite(number) and _as_typed(number) == value else None
