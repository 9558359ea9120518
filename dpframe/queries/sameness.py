"""The sameness of Python values: a plain token for each, equal for two values exactly where they are the same.

Python's own equality is the rule (1 is 1.0 and True, "1" is not), made one that no value can bend: a token depends on
its value alone, tokens are compared exactly, and comparing them raises and warns of nothing. Datetimes with a time zone
are the same where they are one instant: Python leaves the repeated hour of a time zone open.

Records hold words of public values, which may be cut, and a hash of the tokens of all of them: by it two that read
alike are told apart.
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
SIZES = {  # nanoseconds in the units of NumPy that have a fixed length
    "W": Fraction(7 * DAY),
    "D": Fraction(DAY),
    "h": Fraction(3_600 * 10**9),
    "m": Fraction(60 * 10**9),
    **{unit: Fraction(10**9, 1000**power) for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))},
}
LARGE = 10_000  # digits: a Decimal beyond is told apart by its digits and exponent, and never written out
IN_WORDS = ("value", "where")  # facts of records that are words, of which long ones are cut
CUT = re.compile(r"\.\.\.|one of [\d,]+ more")  # what stands there for the rest
HASH = "_sha256"  # after the name of such a fact: of the hash of all of it
NAN = ("nan",)  # inside a tuple; a NaN by itself is missing
NAIVE, AWARE, ON_DAY, SPAN, CLOCK, PERIOD = (
    "at",
    "at utc",
    "on day",
    "span",
    "clock",
    "period",
)  # what the tokens of times begin with


def same(value: Any) -> Any:
    """The token of a value that is not missing. Raises for a value that cannot be hashed, whatever else there is.

    Tokens of numbers are exact numbers and of text the text; those of all else are tuples, which no number or text
    equals, and whose first entry is different for each kind.
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
    hash(value)  # here, where it depends on this value alone
    return ("object", id(kind), value)  # of one class: by that class's own equality


def same_key(value: Any) -> Any:
    """The token of a key: that of the value, but a day is the same key as its midnight, as in columns of datetimes."""
    token = same(value)
    return (NAIVE, token[1] * DAY) if type(token) is tuple and token[0] == ON_DAY else token


def written(token: Any) -> str:
    """A token as plain text, the same for two that are equal, in every version of Python and with any of its limits."""
    if isinstance(token, int | Fraction) or (isinstance(token, float) and isfinite(token)):
        top, bottom = token.as_integer_ratio()
        return f"{top:x}/{bottom:x}"
    return f"({','.join(map(written, token))})" if isinstance(token, tuple) else ascii(token)


def hash_of(token: Any) -> str:
    """A hash of a token: the fact of a record that says all of what its words may cut."""
    return hashlib.sha256(written(token).encode()).hexdigest()


def agree(one: Mapping[str, Any], other: Mapping[str, Any], fact: str) -> bool:
    """Tell whether two statistics agree in a fact of their records, or in all of what its words stand for.

    Without a hash in both, as in older records, words that are cut may be of two different ones, and do not agree.
    """
    hashes = one.get(f"{fact}{HASH}"), other.get(f"{fact}{HASH}")
    if None not in hashes:
        return bool(hashes[0] == hashes[1])
    words = one.get(fact)
    is_cut = fact in IN_WORDS and isinstance(words, str) and CUT.search(words) is not None
    return bool(words == other.get(fact)) and not is_cut


def are_naive(kinds: set[type], values: Sequence[Any]) -> bool:
    """Tell whether values of these types are datetimes of Python without a time zone, told apart as Python does."""
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
    """A NumPy float of any width, exactly; a long double may be none of Python's floats."""
    return _shortest(Fraction(*value.as_integer_ratio())) if np.isfinite(value) else same(float(value))


def _complex(value: Any) -> Any:
    return ("complex", same(value.real), same(value.imag)) if value.imag else same(value.real)


def _datetime(value: datetime) -> Any:
    to_numpy = getattr(value, "to_datetime64", None)  # of pandas, whose timestamps reach further than Python's
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
    (int, int.__index__),  # bool too; of a subclass the number that it is
    (str, str.__str__),
    (float, float.__float__),
    (bytes, lambda value: ("bytes", bytes.decode(value, "latin-1"))),  # Python may warn of bytes beside text
    (Decimal, _decimal),
    (Fraction, _shortest),
    (np.bool_, int),
    (np.timedelta64, _timedelta64),  # before the integers of NumPy, of which it is one
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
