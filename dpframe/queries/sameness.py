"""The sameness of Python values: each has a plain token, and two values are the same if their tokens are equal.

The rule is Python's own equality (1 equals 1.0 and True, but not "1"), made independent of how values implement it. A
token depends on its value alone, tokens are compared exactly, and a comparison never raises or warns. Datetimes with
a time zone are the same if they are one instant; Python does not settle this for the repeated hour of a time zone.

Records hold public values as text, which may be cut, and a hash of all their tokens. The hash distinguishes values
with the same text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from dpframe.queries.bins import temporal_edge
from dpframe.queries.date_grid import is_period

DAY = 86_400 * 10**9  # nanoseconds
SIZES = {  # nanoseconds in each unit of NumPy that has a fixed length
    "W": Fraction(7 * DAY),
    "D": Fraction(DAY),
    "h": Fraction(3_600 * 10**9),
    "m": Fraction(60 * 10**9),
    **{unit: Fraction(10**9, 1000**power) for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))},
}
LARGE = 10_000  # digits: a Decimal of more is compared by its digits and exponent, and never written out
IN_WORDS = ("value", "where")  # facts of records that are text, which is cut if it is long
CUT = re.compile(r"\.\.\.|one of [\d,]+ more")  # marks in text that was cut
HASH = "_sha256"  # ends the name of the fact with a hash of the whole
NAN = ("nan",)  # a NaN inside a tuple; by itself, it is missing
NAIVE, AWARE, ON_DAY, SPAN, CLOCK, PERIOD = (
    "at",
    "at utc",
    "on day",
    "span",
    "clock",
    "period",
)  # the first entries of the tokens of times


def same(value: Any) -> Any:
    """Return the token of a value that is not missing; raise for an unhashable value, whatever the others are.

    The token of a number is an exact number, and that of text is the text. All other tokens are tuples, which equal no
    number or text, and whose first entry is different for each kind.
    """
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    if kind is float:
        return value if value == value else NAN
    for plain, token in _TOKENS:
        if isinstance(value, plain):
            return token(value)
    if is_period(value):
        return (PERIOD, value.freqstr, value.ordinal)
    hash(value)  # raises here, where it depends on this value alone
    return ("object", id(kind), value)  # values of one class: by that class's own equality


def same_key(value: Any) -> Any:
    """Return the token of a key: that of the value, but a day equals its midnight, as in columns of datetimes."""
    token = same(value)
    return (NAIVE, token[1] * DAY) if type(token) is tuple and token[0] == ON_DAY else token


def written(token: Any) -> str:
    """Return a token as plain text, the same for equal tokens, in every version of Python and with any limits."""
    if isinstance(token, int | Fraction) or (isinstance(token, float) and isfinite(token)):
        top, bottom = token.as_integer_ratio()
        return f"{top:x}/{bottom:x}"
    return f"({','.join(map(written, token))})" if isinstance(token, tuple) else ascii(token)


def hash_of(token: Any) -> str:
    """Return a hash of a token: the fact of a record that covers all that its text may cut."""
    return hashlib.sha256(written(token).encode()).hexdigest()


def agree(one: Mapping[str, Any], other: Mapping[str, Any], fact: str) -> bool:
    """Return whether two statistics agree in a fact of their records, including what its text cuts.

    Without a hash in both, as in older records, text that was cut may stand for different values and does not agree.
    """
    hashes = one.get(f"{fact}{HASH}"), other.get(f"{fact}{HASH}")
    if None not in hashes:
        return bool(hashes[0] == hashes[1])
    words = one.get(fact)
    is_cut = fact in IN_WORDS and isinstance(words, str) and CUT.search(words) is not None
    return bool(words == other.get(fact)) and not is_cut


def are_naive(kinds: set[type], values: Sequence[Any]) -> bool:
    """Return whether values of these types are Python datetimes without a time zone, compared as Python does."""
    return kinds == {datetime} and all(value.tzinfo is None for value in values)


def _decimal(value: Decimal) -> Any:
    if not value.is_finite():
        return float(value) if value.is_infinite() else NAN
    if not value:
        return 0
    if abs(value.adjusted()) > LARGE:
        sign, digits, exponent = value.as_tuple()
        text = "".join(map(str, digits))
        return ("decimal", sign, text.rstrip("0"), int(exponent) + len(text) - len(text.rstrip("0")))
    return _shortest(Fraction(value))


def _shortest(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _floating(value: Any) -> Any:
    """Return the exact token of a NumPy float of any width; a long double may be none of Python's floats."""
    return _shortest(Fraction(*value.as_integer_ratio())) if np.isfinite(value) else same(float(value))


def _complex(value: Any) -> Any:
    return ("complex", same(value.real), same(value.imag)) if value.imag else same(value.real)


def _datetime(value: datetime) -> Any:
    to_numpy = getattr(value, "to_datetime64", None)  # of pandas, whose timestamps have a wider range than Python's
    if to_numpy is not None:
        token = _datetime64(to_numpy())
        return (NAIVE if value.tzinfo is None else AWARE, *token[1:])
    ticks, _, aware = temporal_edge(value)
    return (AWARE if aware else NAIVE, ticks)


def _timedelta(value: timedelta) -> Any:
    to_numpy = getattr(value, "to_timedelta64", None)
    return (SPAN, temporal_edge(value)[0]) if to_numpy is None else _timedelta64(to_numpy())


def _datetime64(value: np.datetime64) -> Any:
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        months = int(value.astype(np.int64)) * step * (12 if unit == "Y" else 1)
        if abs(months) >= 2**48:
            return ("at month", months)
        value, unit, step = np.datetime64(months, "M").astype("datetime64[D]"), "D", 1
    return (NAIVE, _shortest(int(value.astype(np.int64)) * step * SIZES[unit]))


def _timedelta64(value: np.timedelta64) -> Any:
    unit, step = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * step
    if unit in SIZES:
        return (SPAN, _shortest(ticks * SIZES[unit]))
    return ("months", ticks * 12 if unit == "Y" else ticks) if unit in ("Y", "M") else ("ticks", ticks)


def _time(value: time) -> Any:
    ticks = (((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond) * 1000
    offset = value.utcoffset()
    return (CLOCK, ticks) if offset is None else ("clock utc", ticks - temporal_edge(offset)[0])


_TOKENS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__index__),  # bool too; a subclass counts as its number
    (str, str.__str__),
    (float, float.__float__),
    (bytes, lambda value: ("bytes", bytes.decode(value, "latin-1"))),  # Python may warn of comparing bytes with text
    (Decimal, _decimal),
    (Fraction, _shortest),
    (np.bool_, int),
    (np.timedelta64, _timedelta64),  # before np.integer, which it derives from
    (np.integer, int),
    (np.floating, _floating),
    (np.datetime64, _datetime64),
    (complex, _complex),
    (np.complexfloating, _complex),
    (datetime, _datetime),
    (date, lambda value: (ON_DAY, value.toordinal() - 719_163)),
    (timedelta, _timedelta),
    (time, _time),
    (tuple, lambda value: ("tuple", *map(same, value))),
    (frozenset, lambda value: ("set", frozenset(map(same, value)))),
)
