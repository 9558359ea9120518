"""Keys of pandas written down as text: one text for each value, whichever object or dtype it came as.

1, 1.0 and True are one key there, as `sameness` says, and have one text; from the text comes back one Python value, the
label. What nobody could declare as a key (a tuple, bytes, a time between two microseconds) has no label: `UNNAMED`.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpframe.queries.sameness import AWARE, CLOCK, NAIVE, SPAN, same_key

EPOCHS = {NAIVE: datetime(1970, 1, 1), AWARE: datetime(1970, 1, 1, tzinfo=UTC)}
TEXT, WHOLE, FLOATING, QUOTIENT, TIMES, UNNAMED = "s", "n", "f", "q", "t", "x"  # the first letters
LOW, HIGH = -(2**63), 2**64  # between them a whole number is written in digits
LARGE = 10**300


def code_of(value: Any) -> str | None:
    """A value as text; None for None. NaN is missing, and is not asked for here."""
    if value is None:
        return None
    token = same_key(value)
    if isinstance(token, str):
        return UNNAMED if any("\ud800" <= letter <= "\udfff" for letter in token) else TEXT + token
    if isinstance(token, tuple):
        return _code_of_time(token)
    if isinstance(token, float) and not math.isfinite(token):
        return _floating(token)
    exact = Fraction(token)
    if exact.denominator == 1 and LOW <= exact < HIGH:
        return f"{WHOLE}{int(exact)}"
    if (floating := _as_float(exact)) is not None:
        return _floating(floating)
    if abs(exact) >= LARGE or LARGE % exact.denominator:
        return UNNAMED
    if exact.denominator == 1:
        return f"{WHOLE}{int(exact)}"
    return f"{QUOTIENT}{exact.numerator}/{exact.denominator}"


def _as_float(value: Fraction) -> float | None:
    """The float that is exactly this number, if there is one."""
    try:
        floating = float(value)
    except OverflowError:
        return None
    return floating if Fraction(floating) == value else None


def _floating(value: float) -> str:
    """The bits of a float, as an integer."""
    return f"{FLOATING}{struct.unpack('<q', struct.pack('<d', value))[0]}"


def _code_of_time(token: tuple[Any, ...]) -> str:
    """Times of whole microseconds in the years 1 to 9999, which Python has."""
    kind, *ticks = token
    if kind not in (NAIVE, AWARE, SPAN, CLOCK) or not isinstance(ticks[0], int) or ticks[0] % 1000:
        return UNNAMED
    try:
        _time_of(kind, ticks[0])
    except (OverflowError, ValueError):
        return UNNAMED
    return f"{TIMES}{kind}|{ticks[0]}"


def _time_of(kind: str, ticks: int) -> Any:
    span = timedelta(microseconds=ticks // 1000)
    if kind == SPAN:
        return span
    return (EPOCHS[NAIVE] + span).time() if kind == CLOCK else EPOCHS[kind] + span


def value_of(code: str | None) -> Any:
    """The Python value that a text stands for."""
    if code is None:
        return None
    kind, text = code[0], code[1:]
    if kind == TEXT:
        return text
    if kind == WHOLE:
        return int(text)
    if kind == FLOATING:
        return struct.unpack("<d", struct.pack("<q", int(text)))[0]
    if kind == QUOTIENT:
        return _decimal(Fraction(text))
    name, _, ticks = text.partition("|")
    return _time_of(name, int(ticks))


def _decimal(value: Fraction) -> Decimal:
    """A quotient that is a decimal, exactly, with no more digits than it needs."""
    digits = next(digits for digits in range(301) if 10**digits % value.denominator == 0)
    sign = 1 if value < 0 else 0
    written = abs(value.numerator) * (10**digits // value.denominator)
    return Decimal((sign, tuple(map(int, str(written))), -digits))
