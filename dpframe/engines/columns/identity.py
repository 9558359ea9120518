"""Identity of values: how columns that name units or keys are compared, with a proof for each dtype.

The engine compares each value exactly, as an integer, a float or a text. Two different values of the column must never
become one: two people would be one unit and move a total by twice its sensitivity, and the cell of a key would take
rows of another key. `identity_of` and its like list the dtypes for which this is proven, each with its proof; `of_rows`
does it. A column of any other dtype has no identity and is refused by its schema, before anything is charged: long
doubles (no engine holds them), decimals of 256 bits, binary, lists.

Declared keys are converted in the same way (`stored`), also from the schema alone. So two keys that the column cannot
tell apart are found before the charge, and each row has at most one cell.

Keys of pandas are encoded as text (`code_of`): one text for each value, whatever its object or dtype. By the rules of
`sameness`, 1, 1.0 and True are one key and have one text. The text gives back one Python value, the label. A value that
nobody could declare as a key (a tuple, bytes, a time between two microseconds) has no label: `UNNAMED`. Arrow lets a
column of strings hold any bytes, and Polars does not check them: they are compared byte by byte like all strings, and
have no label either (`without_bytes`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.queries.sameness import AWARE, CLOCK, NAIVE, PERIOD, SPAN, are_naive, same_key

Integers = NDArray[np.int64]
W = TypeVar("W", np.int64, np.uint64)
Form = Literal["integer", "float", "decimal", "text", "ticks", "periods", "objects", "nothing"]

NOWHERE = -1  # the position of a value that is none of the declared keys
DAY = 86_400 * 10**9
TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds
LARGEST = 2**1024  # every float is nearer to zero
LAST = (2**63 - 1) // 1_000  # of the seconds whose milliseconds fit 64 bits

EPOCHS = {NAIVE: datetime(1970, 1, 1), AWARE: datetime(1970, 1, 1, tzinfo=UTC)}
STRING, WHOLE, FLOATING, QUOTIENT, TIMES, UNNAMED = "s", "n", "f", "q", "t", "x"  # the first letters of codes
LOW, HIGH = -(2**63), 2**64  # whole numbers between them are written in digits
LARGE = 10**300

MARK = "\0 not UTF-8: "  # Spark's texts begin so if they are digits of bytes that are not UTF-8, see `spark.texts`
NEXT = "[89ab][0-9a-f]"  # a byte that continues a character
UTF8 = (  # well-formed UTF-8 in hexadecimal digits: the table of RFC 3629, section 4
    "^(?:[0-7][0-9a-f]"
    f"|(?:c[2-9a-f]|d[0-9a-f]){NEXT}"
    f"|(?:e0[ab][0-9a-f]|e[1-9abcef]{NEXT}|ed[89][0-9a-f]){NEXT}"
    f"|(?:f0[9ab][0-9a-f]|f[1-3]{NEXT}|f48[0-9a-f]){NEXT}{NEXT}"
    ")*$"
)


class _Nothing:
    """Marker of a key that no value of its column can equal."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


@dataclass(frozen=True)
class Identity:
    """Form in which the values of a column are compared."""

    form: Form
    low: int = 0  # the range of integers, and of the steps of decimals
    high: int = 0
    scale: int = 0  # digits after the point
    bits: int = 64  # bits of floats
    tick: int = 1  # nanoseconds in one step of the integers that dates and times are stored as
    token: str = NAIVE  # the first part of the tokens of dates and times; for periods, their frequency
    levels: frozenset[str] | None = None  # the levels of an Enum


OBJECTS, TEXT, NULLS = Identity("objects"), Identity("text"), Identity("nothing")
BOOLEANS = Identity("integer", 0, 1)


def integers(bits: int, *, signed: bool = True) -> Identity:
    """Return the identity of integers, which are compared as they are."""
    return Identity("integer", -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - 1 if signed else bits) - 1)


def ticks(tick: int, token: str, bits: int = 64) -> Identity:
    """Return the identity of dates and times, compared as their stored integers: no two become one."""
    return Identity("ticks", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, tick=tick, token=token)


def identity_of(dtype: pl.DataType) -> Identity | None:
    """Return the identity of a Polars column; None if it is not proven. The proofs are those of `of_rows`."""
    bits = int("".join(filter(str.isdigit, str(dtype))) or 0) if dtype.is_integer() or dtype.is_float() else 0
    if dtype == pl.Boolean:
        return BOOLEANS
    if dtype.is_integer():
        return integers(bits, signed=not dtype.is_unsigned_integer())
    if dtype.is_float():
        return Identity("float", bits=bits) if bits in (16, 32, 64) else None
    if dtype.is_decimal():
        most = 10 ** (dtype.precision or 38) - 1  # type: ignore[attr-defined]
        return Identity("decimal", -most, most, scale=dtype.scale or 0)  # type: ignore[attr-defined]
    if dtype == pl.Datetime:
        token = NAIVE if dtype.time_zone is None else AWARE  # type: ignore[attr-defined]
        return ticks(TICKS[dtype.time_unit], token)  # type: ignore[attr-defined]
    if dtype == pl.Duration:
        return ticks(TICKS[dtype.time_unit], SPAN)  # type: ignore[attr-defined]
    if dtype == pl.Enum:
        return Identity("text", levels=frozenset(dtype.categories))  # type: ignore[attr-defined]
    plain: dict[Any, Identity] = {
        pl.String: TEXT,
        pl.Categorical: TEXT,
        pl.Date: ticks(DAY, NAIVE, bits=32),
        pl.Time: ticks(1, CLOCK),
        pl.Null: NULLS,
    }
    return plain.get(dtype.base_type())


def of_rows(values: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return the values of a Polars column in the form that is compared; no expression can fail on a value.

    - Integers, strings: as they are. Strings are UTF-8 and are compared byte by byte.
    - Booleans: 0 and 1.
    - Integers of 128 bits, which Arrow lacks: their digits, which are different for each integer.
    - Floats: a wider float holds each narrower one exactly. Both zeros are one value and NaN is missing, as everywhere.
    - Decimals: the integer of their smallest steps, in digits. A column has steps of one size.
    - Dates, datetimes, durations and times: the integer that they are stored as, whatever it would be read as.
    - Categorical and Enum: their strings, which are different for each category.
    """
    if dtype == pl.Boolean:
        return values.cast(pl.UInt8)
    if dtype.is_float():
        number = values.cast(pl.Float64)  # for both zeros: Polars would skip adding 0.0
        return pl.when(number == 0.0).then(0.0).otherwise(number).fill_nan(None)
    if dtype.is_decimal():
        return values.to_physical().cast(pl.String)
    if dtype in (pl.Categorical, pl.Enum) or (dtype.is_integer() and "128" in str(dtype)):
        return values.cast(pl.String)
    if dtype == pl.Null:
        return values.cast(pl.Int64)
    return values.to_physical() if dtype.is_temporal() else values


def combination(columns: Sequence[tuple[str, pl.DataType]]) -> pl.Expr:
    """Return a text for each combination of columns of units in the form of `of_rows`; missing if one of them is.

    No two combinations have one text. It can be read from left to right, by the dtypes: a number as the digits up to
    the first space; a float as the integer of its bits, one pattern for each value, since both zeros are one and NaN is
    missing; a text as the number of its bytes up to the first space, and then these bytes. So ("a", "bc") and ("ab",
    "c") differ, and so do a missing value and the word "null". The same combination has the same text in every batch of
    a table. Nothing can fail on a value.
    """
    parts: list[pl.Expr] = []
    for name, dtype in columns:
        value, space = pl.col(name), pl.lit(" ")
        if dtype == pl.String:
            parts += [value.str.len_bytes().cast(pl.String), space, value]
        elif dtype.is_float():
            parts += [value.map_batches(_bits_of, return_dtype=pl.Int64, is_elementwise=True).cast(pl.String), space]
        else:
            parts += [value.cast(pl.String), space]
    return pl.concat_str(parts)


def _bits_of(values: pl.Series) -> pl.Series:
    floats = values.cast(pl.Float64)
    bits = pl.Series(values.name, np.ascontiguousarray(floats.fill_null(0.0).to_numpy()).view(np.int64))
    return bits.zip_with(floats.is_not_null(), pl.Series([None], dtype=pl.Int64))


def identity_of_numpy(dtype: np.dtype[Any]) -> Identity | None:
    """Return the identity of a pandas column of a NumPy dtype; it is converted bit by bit (halves as equal floats)."""
    bits = 8 * dtype.itemsize
    if dtype.kind in "iu":
        return integers(bits, signed=dtype.kind == "i")
    if dtype.kind == "f":
        return Identity("float", bits=bits) if bits in (16, 32, 64) else None  # a long double has no exact column
    if dtype.kind in "mM":
        unit, step = np.datetime_data(dtype)
        token = NAIVE if dtype.kind == "M" else SPAN
        return ticks(TICKS[unit], token) if unit in TICKS and step == 1 else None
    return {"b": BOOLEANS, "O": OBJECTS}.get(dtype.kind)


def identity_of_arrow(dtype: Any) -> Identity | None:
    """Return the identity of a pandas column of an Arrow type. Dates and times become their stored integers.

    Polars would read seconds as milliseconds (which wrap), and times past midnight as missing.
    """
    import pyarrow

    types = pyarrow.types
    while types.is_dictionary(dtype):
        dtype = dtype.value_type
    if types.is_timestamp(dtype):
        return ticks(TICKS[dtype.unit], NAIVE if dtype.tz is None else AWARE)
    if types.is_duration(dtype):
        return ticks(TICKS[dtype.unit], SPAN)
    if types.is_time(dtype):
        return ticks(TICKS[dtype.unit], CLOCK, dtype.bit_width)
    if types.is_date(dtype):
        return ticks(DAY, NAIVE, bits=32) if types.is_date32(dtype) else ticks(TICKS["ms"], NAIVE)
    if types.is_integer(dtype):
        return integers(dtype.bit_width, signed=types.is_signed_integer(dtype))
    if types.is_floating(dtype):
        return Identity("float", bits=dtype.bit_width)
    if types.is_decimal(dtype) and dtype.bit_width <= 128 and dtype.scale >= 0:
        most = 10**dtype.precision - 1
        return Identity("decimal", -most, most, scale=dtype.scale)
    if types.is_boolean(dtype):
        return BOOLEANS
    is_view = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(dtype) or types.is_large_string(dtype) or is_view(dtype):
        return TEXT
    return NULLS if types.is_null(dtype) else None


def decoded(array: Any) -> Any:
    """Return an Arrow array without its dictionaries, except those of strings.

    Of a dictionary of numbers, Polars makes numbers if it comes in one chunk, and texts if it comes in two.
    """
    import pyarrow

    types, chunked = pyarrow.types, isinstance(array, pyarrow.ChunkedArray)
    while types.is_dictionary(array.type):
        value = array.type.value_type
        if types.is_string(value) or types.is_large_string(value):
            return array
        if types.is_null(value):  # some versions of pyarrow end the process when they decode it
            return pyarrow.nulls(len(array))
        chunks = [chunk.dictionary_decode() for chunk in (array.chunks if chunked else [array])]
        array = pyarrow.chunked_array(chunks, type=value) if chunked else chunks[0]
    return array


def present(array: Any) -> Any:
    """Return True for each present value of an Arrow array, and null for any other. No dictionary is decoded."""
    import pyarrow
    import pyarrow.compute

    if isinstance(array, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([present(chunk) for chunk in array.chunks], type=pyarrow.bool_())
    if pyarrow.types.is_dictionary(array.type):
        return present(array.dictionary).take(array.indices)
    return pyarrow.compute.if_else(pyarrow.compute.is_null(array), pyarrow.scalar(None, pyarrow.bool_()), True)


def arrow_storage(array: Any) -> Any:
    """Return a decoded Arrow array with its dates and times as the integers that store them: not one bit changes."""
    import pyarrow

    if not pyarrow.types.is_temporal(array.type):
        return array
    chunks = array.chunks if isinstance(array, pyarrow.ChunkedArray) else [array]
    storage = pyarrow.int32() if array.type.bit_width == 32 else pyarrow.int64()
    return pyarrow.chunked_array([chunk.view(storage) for chunk in chunks], type=storage)


def in_milliseconds(array: Any) -> Any:
    """Convert a decoded Arrow array of seconds, which Polars lacks, to milliseconds; return any other as it is.

    Values out of range stay at the end, so that they can clip; in Polars they would overflow to any time.
    """
    import pyarrow
    import pyarrow.compute

    types, dtype = pyarrow.types, array.type
    if not (types.is_timestamp(dtype) or types.is_duration(dtype)) or dtype.unit != "s":
        return array
    made = pyarrow.timestamp("ms", dtype.tz) if types.is_timestamp(dtype) else pyarrow.duration("ms")
    least = pyarrow.compute.max_element_wise(arrow_storage(array), -LAST, skip_nulls=False)
    ticks = pyarrow.compute.multiply(pyarrow.compute.min_element_wise(least, LAST, skip_nulls=False), 1_000)
    return pyarrow.chunked_array([chunk.view(made) for chunk in ticks.chunks], type=made)


def stored(value: Any, identity: Identity) -> Any:
    """Return a declared key as the column compares it; NOTHING if no value can equal it, None if it is missing."""
    if value is None:
        return None
    token = same_key(value)
    if identity.form == "objects":
        return token
    if identity.form == "text":
        fits = isinstance(token, str) and (identity.levels is None or token in identity.levels)
        return token if fits else NOTHING
    if identity.form == "ticks":
        return _ticks(token, identity)
    if identity.form == "periods":
        return token[2] if isinstance(token, tuple) and token[:2] == (PERIOD, identity.token) else NOTHING
    if identity.form == "integer" and type(token) is int and identity.high < 2**64:  # the most frequent case
        return token if identity.low <= token <= identity.high else NOTHING
    if not isinstance(token, int | float | Fraction) or not -LARGEST < token < LARGEST or identity.form == "nothing":
        return NOTHING
    if identity.form == "float":
        return _float(token, identity.bits)
    typed = Fraction(repr(value)) if identity.form == "decimal" and type(value) is float else Fraction(token)
    steps = typed * 10**identity.scale  # a float means the decimal that was typed: 0.1 is the decimal 0.1
    if steps.denominator != 1 or not identity.low <= steps <= identity.high:
        return NOTHING
    as_digits = identity.form == "decimal" or identity.high >= 2**64
    return str(int(steps)) if as_digits else int(steps)


def _ticks(token: Any, identity: Identity) -> Any:
    if not isinstance(token, tuple) or token[0] != identity.token:
        return NOTHING
    count, rest = divmod(token[1], identity.tick)
    return int(count) if rest == 0 and identity.low < count <= identity.high else NOTHING  # the lowest is NaT


def _float(number: int | float | Fraction, bits: int) -> Any:
    try:
        wide = float(number)
    except OverflowError:  # the number lies between the largest float and LARGEST
        return NOTHING
    with np.errstate(over="ignore"):
        narrow = float(np.dtype(f"f{bits // 8}").type(wide))
    return wide + 0.0 if wide == number and narrow == wide else NOTHING


@dataclass(frozen=True)
class Declared:
    """Declared keys of one column, in the form that is compared: each once, by position."""

    values: tuple[Any, ...]  # what is stored at each position, without NOTHING and a missing key
    missing: int  # the position of a missing value, after the others; NOWHERE if it is not declared
    rows: Integers  # the position of each combination's key; NOWHERE if no value can equal it

    @property
    def size(self) -> int:
        """Number of positions."""
        return len(self.values) + (self.missing != NOWHERE)


def declared(values: Sequence[Any], identity: Identity, places: Integers | None = None) -> Declared:
    """Return the declared keys of one column: one for each combination, or distinct keys with `places` in them."""
    kept = values if _are_stored(values, identity) else _dates_stored(values, identity)
    known = as_stored([stored(value, identity) for value in values] if kept is None else kept)
    return known if places is None else replace(known, rows=known.rows[places])


def _dates_stored(values: Sequence[Any], identity: Identity) -> list[int] | None:
    """Return the integers that store dates or datetimes, all at once.

    None if a value is neither, has a time zone, lies between two ticks, or may be out of the column's range.
    """
    kinds = set(map(type, values))
    if identity.form != "ticks" or identity.token != NAIVE or not (kinds == {date} or are_naive(kinds, values)):
        return None
    if kinds == {date}:
        size, counts = DAY, np.fromiter(map(date.toordinal, values), np.int64, len(values)) - EPOCHS[NAIVE].toordinal()
    else:
        size, counts = 1_000, pl.Series(values, dtype=pl.Datetime("us")).to_physical().to_numpy()
    per, ticks_each = max(identity.tick // size, 1), max(size // identity.tick, 1)
    if per * size != ticks_each * identity.tick or (counts % per).any():
        return None
    reach = max(-int(counts.min()), int(counts.max())) * ticks_each // per + 1
    return (counts * ticks_each // per).tolist() if reach < identity.high else None


def _are_stored(values: Sequence[Any], identity: Identity) -> bool:
    """Return whether all keys are stored as they were declared: integers in a column of integers, or text."""
    kinds = set(map(type, values))
    if kinds == {int} and identity.form == "integer" and identity.high < 2**64:
        return bool(identity.low <= min(values) and max(values) <= identity.high)
    return kinds == {str} and identity.form == "text" and identity.levels is None


def as_stored(kept: Sequence[Any]) -> Declared:
    """Return the declared keys from their stored values."""
    different = dict.fromkeys(kept)
    if len(different) == len(kept) and None not in different and NOTHING not in different:
        return Declared(tuple(different), NOWHERE, np.arange(len(kept), dtype=np.int64))
    known = tuple(key for key in different if key is not None and key is not NOTHING)
    missing = len(known) if None in different else NOWHERE
    places = {**dict(zip(known, range(len(known)), strict=True)), None: missing, NOTHING: NOWHERE}
    return Declared(known, missing, np.fromiter(map(places.__getitem__, kept), np.int64, len(kept)))


def combined(outer: Integers, inner: Integers, size: int) -> Integers:
    """Return one number for each pair of positions, with `size` inner ones; NOWHERE if either is NOWHERE."""
    both: Integers = outer * size + inner
    both[(outer < 0) | (inner < 0)] = NOWHERE
    return both


def different(numbers: NDArray[W]) -> NDArray[W]:
    """Return the distinct values of many integers, in order; `np.unique` hashes, which can take 100 times as long."""
    ordered = np.sort(numbers)
    is_first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def combinations(columns: Sequence[Declared]) -> list[Integers]:
    """Return the distinct combinations of the first two columns, the first three, ... as `combined` numbers, in order.

    A later number combines a position in the array before with one in the next column. The last array has the position
    of each declared combination. Numbers are below 2**61, since at most 2**30 keys are declared.
    """
    found = []
    rows = columns[0].rows
    for column in columns[1:]:
        both = combined(rows, column.rows, column.size)
        found.append(different(both[both >= 0]))
        rows = np.where(both < 0, NOWHERE, np.searchsorted(found[-1], both))
    return [*found, rows]


def twice(columns: Sequence[Declared]) -> tuple[int, int] | None:
    """Return the places of two combinations that the columns cannot tell apart; None if there are none."""
    rows = combinations(columns)[-1]
    places = np.flatnonzero(rows >= 0)
    _, first, group = np.unique(rows[places], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[group] != np.arange(places.size))
    return (int(places[first[group[again[0]]]]), int(places[again[0]])) if again.size else None


def code_of(value: Any) -> str | None:
    """Return a value as text; None for None. NaN counts as missing, and does not occur here."""
    if value is None:
        return None
    token = same_key(value)
    if isinstance(token, str):
        return UNNAMED if any("\ud800" <= letter <= "\udfff" for letter in token) else STRING + token
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
    """Return the float that is exactly this number, if there is one."""
    try:
        floating = float(value)
    except OverflowError:
        return None
    return floating if Fraction(floating) == value else None


def _floating(value: float) -> str:
    """Return the code of a float: its bits, as an integer."""
    return f"{FLOATING}{struct.unpack('<q', struct.pack('<d', value))[0]}"


def _code_of_time(token: tuple[Any, ...]) -> str:
    """Return the code of a time; UNNAMED unless it has whole microseconds and lies in the years 1 to 9999 of Python."""
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
    """Return the Python value that a text stands for."""
    if code is None:
        return None
    kind, text = code[0], code[1:]
    if kind == STRING:
        return text
    if kind == WHOLE:
        return int(text)
    if kind == FLOATING:
        return struct.unpack("<d", struct.pack("<q", int(text)))[0]
    if kind == QUOTIENT:
        return _as_decimal(Fraction(text))
    name, _, ticks = text.partition("|")
    return _time_of(name, int(ticks))


def _as_decimal(value: Fraction) -> Decimal:
    """Return the decimal that a quotient equals, with no more digits than it needs."""
    digits = next(digits for digits in range(301) if 10**digits % value.denominator == 0)
    sign = 1 if value < 0 else 0
    written = abs(value.numerator) * (10**digits // value.denominator)
    return Decimal((sign, tuple(map(int, str(written))), -digits))


def without_bytes(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return the rows whose strings in these columns are text or missing; other strings have no name to show.

    Nor has a text that begins with the mark: on every engine, since on Spark it stands for other bytes.
    """
    for name in names:
        if table.schema[name] == pl.String:
            encoded = table[name].cast(pl.Binary)
            named = ~encoded.bin.starts_with(MARK.encode())
            if not _all_text(table[name]):
                named &= encoded.bin.encode("hex").str.contains(UTF8)
            table = table.filter(named.fill_null(True))
    return table


def _all_text(column: pl.Series) -> bool:
    """Return whether all strings are text, by a quick test. Invalid bytes that belong to no row may make it False."""
    try:
        column.cast(pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:
        return False
    return True
