"""Exact numbers and directed rounding: the one door of numbers, and the one file for the conservative side.

Every number that a caller gives and that decides privacy (a cost, a limit, a share, a weight, a bound, a size, a
sensitivity) becomes a `Fraction` of Python integers here, once, before anything else looks at it. NumPy's integers wrap
around and would stay so inside a Fraction; a subclass may overload arithmetic. So each value is read once, by the
methods of the class that it is made of, and never by its own.

What a number is worth:

- an integer, a Fraction and a Decimal are what they are;
- a float is the decimal that it prints, which is the one that was typed: 0.3 is 3/10;
- a NumPy float of any other size is the float that equals it: ``np.float32(0.1)`` is 0.10000000149011612, as it is for
  ``float``, and a longdouble that no float equals is its exact value.
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

from dpframe.errors import InvalidArgument, InvalidType, LedgerError, shown

SMALLEST_NORMAL = 2.2250738585072014e-308
SHARE_DENOMINATOR = 10**6
MOST_DIGITS = 1000  # of a numerator and of a denominator that a caller gives; no float needs more than 341
MOST = 10**MOST_DIGITS
LONGEST = 2**17  # bits of an amount or a total, which are sums and products of what callers give
LONG = 10_000  # bits; Python refuses to print longer integers as decimals, so these are written as hexadecimals
MU_GRID = 2**400  # mu^2 is kept in multiples of 2**-400: fine enough for any float, and sums stay short

Amount = tuple[Fraction, ...]  # what an accounting adds up: exact, and coordinate by coordinate


class _TooLong(Exception):
    """More digits than a number may have."""


def is_number(value: object) -> bool:
    """Tell whether a value is a real number that can be taken exactly; True, False and durations are none."""
    if type(value) in (int, float):  # asking the abstract classes takes longer
        return True
    kinds = (int, float, Decimal, numbers.Rational, np.floating)
    return isinstance(value, kinds) and not isinstance(value, (bool, np.timedelta64))


def is_whole(value: object) -> bool:
    """Tell whether a value is an integer; np.timedelta64 is registered as one and is none."""
    return type(value) is int or (isinstance(value, numbers.Integral) and is_number(value))


def exactly(
    argument: str, value: object, rule: str = "a finite number", way_out: str = "", *, typed: bool = True
) -> Fraction:
    """THE door: a caller's number as a Fraction of Python integers; a float as its decimal, or as it is if not `typed`.

    What is no number, not finite, or of more than 1,000 digits is refused in the words of `rule` and `way_out`.
    """
    number = _read(argument, value, way_out, typed=typed)
    if isinstance(number, float):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return number


def finite(value: object) -> Fraction | None:
    """A number as `exactly` takes it untyped; None for anything else, so that no message shows a private value."""
    try:
        return exactly("", value, typed=False)
    except InvalidArgument:
        return None


def checked_float(argument: str, value: object) -> float:
    """The Python float nearest to a caller's number, where no exact one is needed; infinite or NaN as it comes."""
    number = _read(argument, value, "", typed=False)
    return number if isinstance(number, float) else nearest(number)


def checked_whole(argument: str, value: object, least: int, most: int, rule: str, way_out: str = "") -> int:
    """A caller's integer from `least` to `most` as a Python int."""
    if not is_whole(value):
        raise InvalidType(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    whole = _read(argument, value, way_out, typed=False)
    if not least <= whole <= most:
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return int(whole)


def positive(argument: str, value: object) -> Fraction:
    """A length (a sensitivity, a scale, a step) above 0 that a float can say; a float is its exact value."""
    rule = "finite and above 0"
    number = exactly(argument, value, rule, typed=False)
    if number <= 0 or math.isinf(nearest(number)):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.")
    return number


def length(argument: str, value: object) -> float:
    """A length above 0: a Python int as it is, anything else as a float, rounded up: a claim is not understated."""
    number = positive(argument, value)
    return int(number) if is_whole(value) else up(number)


def between(
    argument: str, value: object, least: float, most: float, rule: str, way_out: str = "", *, closed: bool = False
) -> float:
    """A number between two others as a float, rounded down; a float is its exact value."""
    number = value if type(value) is float else down(exactly(argument, value, rule, way_out, typed=False))
    if not (least <= number <= most if closed else least < number < most):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    return number


def exact_epsilon(value: object) -> Fraction:
    """Epsilon as the rational of the typed decimal: finite and above 0."""
    return _within_floats("epsilon", value, "a finite number above 0", "epsilon=0.5")


def exact_delta(value: object, argument: str = "delta") -> Fraction:
    """Delta as the rational of the typed decimal: 0 <= delta < 1."""
    rule, example = "a number with 0 <= delta < 1", "delta=1e-6"
    delta = _within_floats(argument, value, rule, example, zero=True)
    if delta >= 1:
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}. Write for instance {example}.")
    return delta


def exact_weight(value: object) -> Fraction:
    """A weight as the rational of the typed decimal: finite and above 0."""
    return _within_floats("weights", value, "finite numbers above 0", "weights={'name': 2}")


def exact_share(value: object) -> Fraction:
    """A share of the limit: as it was given, but a float as the nearest fraction with denominator up to 10**6."""
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
    """The amount that a caller wants charged: exact rationals, none below 0."""
    way_out = f" Write a tuple of {parts} Fractions."
    if not isinstance(amount, (tuple, list)) or len(amount) != parts:
        raise InvalidType(f"amount must have {parts} parts in this accounting, not {shown(amount)}.{way_out}")
    exact = tuple(_read("amount", coordinate, way_out, typed=True, longest=LONGEST) for coordinate in amount)
    # NaN and infinity are floats
    if not all(isinstance(coordinate, Fraction) and coordinate >= 0 for coordinate in exact):
        raise InvalidArgument(f"amount must be finite and must not be negative, for nothing is ever refunded.{way_out}")
    return exact  # type: ignore[return-value]  # all are Fractions


def plus(spent: Amount, amount: Amount) -> Amount:
    """Both together, coordinate by coordinate; nothing was spent where `spent` is empty. A total never falls.

    LedgerError, whatever went wrong before: a number that is not made of Python integers, or a total below the last.
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
    """Tell whether every spent part is within its limit, or where one is enough, at least one."""
    within = [spent <= most for spent, most in zip(total, limit, strict=True)]
    return any(within) if one_is_enough else all(within)


def is_exact(value: object) -> bool:
    """Tell whether a value is a Fraction of Python integers alone, whose arithmetic is exact."""
    return type(value) is Fraction and type(value.numerator) is int and type(value.denominator) is int


def nearest(value: Fraction) -> float:
    """The float nearest to `value`; infinite beyond the floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def up(value: Fraction) -> float:
    """The smallest float that is not below `value`: what was spent is never understated."""
    closest = nearest(value)
    return closest if closest >= value else math.nextafter(closest, math.inf)


def down(value: Fraction) -> float:
    """The largest float that is not above `value`: what remains is never overstated."""
    closest = nearest(value)
    return closest if closest <= value else math.nextafter(closest, -math.inf)


@contextmanager
def to_digits(number: int) -> Iterator[None]:
    """Work to so many digits in mpmath.

    Its precision is one for all threads of the process, and a rounded bound is one only to the digits that it is for:
    threads of dpframe wait for one another here.
    """
    import mpmath

    with _turn, mpmath.workdps(number):
        yield


@contextmanager
def to_bits(number: int) -> Iterator[None]:
    """As `to_digits`, in bits."""
    import mpmath

    with _turn, mpmath.workprec(number):
        yield


_turn = threading.RLock()


def _renew() -> None:
    """A child that was forked amid a calculation must not wait for it."""
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def in_mpmath(value: Fraction) -> Any:
    """A rational as an mpmath number, to the digits that mpmath works with."""
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator


def rounded_up(value: Any) -> float:
    """The smallest float that is not below an mpmath number: deltas, epsilons and scales."""
    closest = float(value)
    return closest if closest >= value else math.nextafter(closest, math.inf)


def shown_up(value: Fraction) -> float:
    """As `up`, but the float that was typed where there is one: 0.3 is read as 3/10, and 3/10 is shown as 0.3."""
    return _typed(value) or up(value)


def shown_down(value: Fraction) -> float:
    """As `down`, but the float that was typed where there is one; as a decimal it is not above either."""
    return _typed(value) or typed_down(value)


def typed_down(value: Fraction) -> float:
    """The largest float that is not above `value`, and whose shortest decimal is not: what a caller calibrates to."""
    number = down(value)
    while _as_typed(number) > value:
        number = math.nextafter(number, 0.0)
    return number


def root_up(power: Fraction, estimate: float, p: int = 2) -> float:
    """The estimate of a p-th root, raised until its power is not below: sensitivities are never understated."""
    while Fraction(estimate) ** p < power:
        estimate = math.nextafter(estimate, math.inf)
    return estimate


def root_down(value: Fraction) -> float:
    """The largest float whose square is not above `value`, or one next to it: less mu, and so more noise."""
    root = math.sqrt(down(value))
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root


def floor(value: Fraction, grid: int = MU_GRID) -> Fraction:
    """The next multiple of 1 / grid below: limits."""
    return Fraction(math.floor(value * grid), grid)


def ceil(value: Fraction, grid: int = MU_GRID) -> Fraction:
    """The next multiple of 1 / grid above: charges."""
    return Fraction(math.ceil(value * grid), grid)


def exact_text(value: Fraction) -> str:
    """An exact rational of any length."""
    return "/".join(
        str(integer) if integer.bit_length() < LONG else hex(integer) for integer in value.as_integer_ratio()
    )


def exact_texts(amount: Amount) -> list[str]:
    """Exact rationals, in their order."""
    return [exact_text(coordinate) for coordinate in amount]


def _within_floats(argument: str, value: object, rule: str, example: str, *, zero: bool = False) -> Fraction:
    """A typed number above 0 (or not below, if `zero`) that a float can say: from 2.3e-308 to 1.8e308."""
    way_out = f" Write for instance {example}."
    number = exactly(argument, value, rule, way_out)
    if number < 0 or (number == 0 and not zero) or math.isinf(nearest(number)):
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}.{way_out}")
    if 0 < number < Fraction(SMALLEST_NORMAL):
        raise InvalidArgument(f"{argument} must be {rule}, and not below 2.3e-308 like {shown(value)}.{way_out}")
    return number


def _read(argument: str, value: object, way_out: str, *, typed: bool, longest: int | None = None) -> Fraction | float:
    """A caller's number; a float where it is infinite or NaN."""
    if type(value) is float and math.isfinite(value):
        return _as_typed(value) if typed else Fraction(value)
    if not is_number(value):
        raise InvalidType(f"{argument} must be a number, not {shown(value, kind=True)}.{way_out}")
    try:
        if type(value) is int or is_exact(value):  # nothing of the caller's own speaks
            ratio: tuple[int, int] | float = (value.numerator, value.denominator)  # type: ignore[attr-defined]
        else:
            ratio = _ratio(value, typed=typed)
        if isinstance(ratio, float):
            return ratio
        numerator, denominator = ratio  # their length is looked at first, for reducing takes the square of that
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
    except (TypeError, AttributeError, ValueError, ArithmeticError):  # a class of the caller's that says it is a number
        raise InvalidType(f"{argument} must be a number, not {shown(value, kind=True)}.{way_out}") from None


def _ratio(value: Any, *, typed: bool) -> tuple[int, int] | float:
    """Numerator and denominator as Python integers, read once and by the class that holds them."""
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
    """A Python int, and no subclass of it."""
    if not is_whole(value):
        raise TypeError
    if isinstance(value, np.integer):
        value = np.generic.item(value)
    return int.__index__(value if isinstance(value, int) else operator.index(value))


def _ratio_of_float(value: Any, *, typed: bool) -> tuple[int, int] | float:
    if isinstance(value, float):  # np.float64 too
        plain = float.__float__(value)
    else:
        with np.errstate(over="ignore"):
            plain = float(np.generic.astype(value, np.float64))
        if isinstance(value, np.longdouble) and np.isfinite(value) and np.longdouble(plain) != value:
            return tuple(map(int, np.longdouble.as_integer_ratio(value)))  # type: ignore[return-value]
    if not math.isfinite(plain):
        return plain
    return (_as_typed(plain) if typed else plain).as_integer_ratio()


@lru_cache(maxsize=1_000)  # the same prices and bounds are read many times in one release
def _as_typed(plain: float) -> Fraction:
    """The decimal that a finite float prints."""
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
    """The float that is typed as this decimal; None where there is none."""
    number = nearest(value)
    return number if math.isfinite(number) and _as_typed(number) == value else None
