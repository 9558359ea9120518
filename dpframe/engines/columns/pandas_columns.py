"""Conversion of one pandas column to a Polars series for its role; it never fails on a value.

A column of dtype object holds anything. For numbers it is read value by value (what is no number is missing). For keys
and units each value is coded as an integer, by the rules of `dpframe.queries.sameness`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns import identity, short_strings
from dpframe.engines.columns.identity import NOWHERE, Declared, Identity
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.frames.kinds import is_missing
from dpframe.queries.date_grid import zone_name
from dpframe.queries.sameness import AWARE, same, same_key

EPOCHS = {True: datetime(1970, 1, 1, tzinfo=UTC), False: datetime(1970, 1, 1)}
Integers = NDArray[np.int64]

FEW_ROWS = 2**12  # below this, strings are converted as they are
MICROSECOND = timedelta(microseconds=1)
MONTHS = {"M": 1, "Q": 3, "Y": 12, "A": 12}  # months in a step of Periods
MOST_MONTHS = 12 * 200_000  # datetimes in microseconds reach farther
SPANS = {  # nanoseconds in a step of Periods
    **{"W": 7 * identity.DAY, "D": identity.DAY, "h": 3_600 * 10**9, "H": 3_600 * 10**9},
    **{"min": 60 * 10**9, "T": 60 * 10**9, "s": 10**9, "S": 10**9, "ms": 10**6, "L": 10**6},
    **{"us": 1000, "U": 1000, "ns": 1, "N": 1},
}
MOST_TICKS = 2**63 - 1
ZONE: Any = datetime.tzinfo  # the time zone of a datetime, even if a subclass overrides it
NUMERATOR, DENOMINATOR = (vars(Fraction)[slot] for slot in ("_numerator", "_denominator"))
OF_NUMPY: Any = np.generic
Reader = Callable[[Any], float]
READERS: tuple[tuple[type, Reader], ...] = (  # float() of another class may warn, which would reveal the value
    *((float, float.__float__), (int, int.__float__), (Decimal, Decimal.__float__)),
    *((str, lambda text: float(str.__str__(text))), (bytes, lambda text: float(bytes.__bytes__(text)))),
    *((kind, OF_NUMPY.__float__) for kind in (np.floating, np.integer, np.bool_)),
    (Fraction, lambda value: int.__truediv__(_whole(NUMERATOR, value), _whole(DENOMINATOR, value))),
)
PLAIN = (  # Arrow types that Polars accepts; of others, only the presence of values is read
    *("boolean", "integer", "floating", "decimal32", "decimal64", "decimal128", "string", "large_string"),
    *("string_view", "date", "time", "timestamp", "duration", "null"),
)
MASKED = {"BooleanDtype", "Float32Dtype", "Float64Dtype"} | {
    f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)
}


def checked_names(frame: Any) -> list[str]:
    """Return the names of a pandas frame's string columns; refuse two levels of names, and repeated names."""
    if frame.columns.nlevels > 1:
        raise InvalidType(
            "the frame must have one level of column names, not a MultiIndex. Flatten frame.columns first."
        )
    names = [name for name in frame.columns if isinstance(name, str)]
    for name, times in Counter(names).items():
        if times > 1:
            raise InvalidArgument(f"column {shown(name)} must be in the frame once, but occurs twice. Rename one.")
    return names


def kind_of(dtype: Any) -> tuple[Any, str | None]:
    """Return the kind of a pandas dtype and the name of its time zone; "arrow" if pyarrow knows the kind."""
    import pandas

    if isinstance(dtype, np.dtype):
        kinds = {
            "b": "number",
            "i": "number",
            "u": "number",
            "f": "number",
            "M": "datetime",
            "m": "duration",
            "O": "object",
        }
        return kinds.get(dtype.kind, "other"), None
    if isinstance(dtype, pandas.CategoricalDtype):
        return "category", None
    if isinstance(dtype, pandas.StringDtype):
        return "text", None
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return "datetime", zone_name(dtype.tz)
    if isinstance(dtype, pandas.ArrowDtype):
        return "arrow", None
    if isinstance(dtype, pandas.PeriodDtype):
        return ("period" if _steps_of(_frequency(dtype)) else "other"), None
    return ("number" if type(dtype).__name__ in MASKED else "other"), None


def unit_of(dtype: Any) -> str:
    """Return the time unit of a temporal dtype; objects are read in microseconds."""
    if isinstance(dtype, np.dtype):
        return np.datetime_data(dtype)[0] if dtype.kind in "mM" else "us"
    return str(getattr(dtype, "unit", "us"))


def is_by_position(dtype: Any) -> bool:
    """Return whether keys of such a column are loaded as positions among the declared ones."""
    return identity_of(dtype) is identity.OBJECTS


def identity_of(dtype: Any) -> Identity | None:
    """Return how the keys or units in a pandas column are compared; None if that is not proven."""
    kind, _ = kind_of(dtype)
    if kind == "category":
        return identity.OBJECTS
    if kind == "text":
        return identity.OBJECTS if getattr(dtype, "storage", "") == "python" else identity.TEXT
    if kind == "arrow":
        return identity.identity_of_arrow(dtype.pyarrow_dtype)
    if kind == "period":
        return Identity("periods", token=_frequency(dtype))
    if kind == "datetime" and not isinstance(dtype, np.dtype):
        return identity.ticks(identity.TICKS[dtype.unit], AWARE)
    plain = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)  # of masked arrays
    return None if kind == "other" or plain is None else identity.identity_of_numpy(plain)


def _frequency(dtype: Any) -> str:
    """Return the frequency of a dtype of Periods, as its values have it."""
    return str(dtype.name).removeprefix("period[").removesuffix("]")


def _steps_of(frequency: str) -> tuple[int, int] | None:
    """Return the months, or else the nanoseconds, of a step of Periods; None for uneven steps, as business days."""
    unit = frequency.lstrip("0123456789").partition("-")[0]
    return (MONTHS[unit], 0) if unit in MONTHS else (0, SPANS[unit]) if unit in SPANS else None


def _beginnings(numbers: Integers, dtype: Any) -> NDArray[Any]:
    """Return the beginnings of Periods, in microseconds; values out of range stay on their side of every edge."""
    import pandas

    frequency = _frequency(dtype)
    months, nanoseconds = _steps_of(frequency) or (0, 0)
    origin: Any = pandas.Period(ordinal=0, freq=frequency).start_time.to_datetime64().astype("datetime64[us]")
    if months:
        count = np.clip(numbers, -MOST_MONTHS // months, MOST_MONTHS // months) * months
        first = int(origin.astype("datetime64[M]").astype(np.int64))
        return np.asarray((count + first).astype("datetime64[M]").astype("datetime64[us]"))
    if nanoseconds < 1000:
        return np.asarray((numbers // 1000).astype("datetime64[us]"))
    most = (MOST_TICKS - 2**50) // (nanoseconds // 1000)  # leaves room for the origin
    count = np.clip(numbers, -most, most) * (nanoseconds // 1000)
    return np.asarray((count + int(origin.astype(np.int64))).astype("datetime64[us]"))


def arrow_dtype(dtype: Any) -> pl.DataType | None:
    """Return the Polars dtype of a pandas ArrowDtype; None if it holds no plain values."""
    import pyarrow

    types, held = pyarrow.types, dtype.pyarrow_dtype
    while types.is_dictionary(held):
        held = held.value_type
    if not any(getattr(types, f"is_{name}", lambda _: False)(held) for name in PLAIN):
        return None
    try:
        return pl.Series(pl.from_arrow(identity.decoded(pyarrow.array([], type=dtype.pyarrow_dtype)))).dtype
    except Exception:  # a negative scale: Polars has no such column
        return None


def load(series: Any, role: str, declared: Any) -> pl.Series:
    """Return the column as Polars reads it for this role; `declared` is its keys, or the kind of its bins, if any."""
    kind, _ = kind_of(series.dtype)
    if role in ("key", "unit", "found") and identity_of(series.dtype) is None:  # a function of the caller changed it
        raise InvalidType("a column that names units or keys must still have the dtype that was checked")
    if role == "present" and not _may_hold_nan(series.dtype):
        return _present(series)
    if role == "found" and is_plain(series.dtype):
        return _key_texts(series)
    if kind == "category":
        return _category_codes(series, role, declared)
    if is_by_position(series.dtype):
        return _from_objects(series.to_numpy(dtype=object), role, declared)
    is_name = role in ("key", "unit", "found")
    if kind == "period":
        numbers = series.array.asi8
        values = numbers if is_name else _beginnings(numbers, series.dtype)
        return _with_nulls(pl.Series(values), series.isna().to_numpy())
    if kind == "datetime" or isinstance(series.dtype, np.dtype):
        values = (_in_utc(series) if kind == "datetime" else series).to_numpy()
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] == "s":
            values = values.view(f"{values.dtype.kind}8[ms]") if is_name else _milliseconds(values)  # names: same bits
        return pl.Series(_native(values))
    import pyarrow

    array = identity.decoded(pyarrow.array(series, from_pandas=True))
    if role == "key" and (codes := short_strings.codes_of(array, declared)) is not None:
        return codes
    brought = identity.arrow_storage(_with_views(array)) if is_name else identity.in_milliseconds(array)
    return pl.Series(pl.from_arrow(brought))


def _with_views(array: Any) -> Any:
    """Cast strings to Arrow's views of their bytes, which Polars uses: pyarrow is faster at it. No byte changes.

    They stay as they are if this pyarrow cannot do it, if a view cannot reach all bytes, or if the rows are few.
    """
    if len(array) < FEW_ROWS:
        return array
    import pyarrow

    types = pyarrow.types
    strings = types.is_string(array.type) or types.is_large_string(array.type)
    if not strings or not hasattr(pyarrow, "string_view") or array.get_total_buffer_size() >= 2**31:
        return array
    try:
        return array.cast(pyarrow.string_view())
    except pyarrow.ArrowNotImplementedError:  # by the version, not by the values
        return array


def is_plain(dtype: Any) -> bool:
    """Return whether a column has numbers or objects, which are one kind: one value can turn one into the other."""
    compared = identity_of(dtype)
    return compared is not None and compared.form in ("integer", "float", "objects") and kind_of(dtype)[0] != "arrow"


def _key_texts(series: Any) -> pl.Series:
    """Return the keys of such a column as `identity.code_of` encodes them; null for missing ones."""
    if kind_of(series.dtype)[0] == "category":
        return _of_levels(series, map(_key_text, _levels(series)), pl.String)
    if is_by_position(series.dtype):
        return pl.Series(each(series.to_numpy(dtype=object), _key_text).tolist(), dtype=pl.String)
    if isinstance(series.dtype, np.dtype):
        values = pl.Series(_native(series.to_numpy()))
    else:
        import pyarrow

        values = pl.Series(pl.from_arrow(pyarrow.array(series, from_pandas=True)))
    if values.dtype == pl.Boolean:
        values = values.cast(pl.Int8)
    return _number_texts(values)


def _number_texts(values: pl.Series) -> pl.Series:
    """Return numbers as `identity.code_of` encodes them, all at once."""
    number = pl.col("x")
    if values.dtype.is_integer():
        return values.alias("x").to_frame().select(pl.format("n{}", number)).to_series()
    floats = values.cast(pl.Float64).fill_nan(None)
    bits = pl.Series("bits", floats.fill_null(0.0).to_numpy().view(np.int64))
    table = pl.DataFrame([floats.alias("x"), bits])
    whole = number == number.floor()
    return table.select(
        pl.when(whole & (number >= -(2.0**63)) & (number < 2.0**63))
        .then(pl.format("n{}", number.cast(pl.Int64, strict=False)))
        .when(whole & (number >= 2.0**63) & (number < 2.0**64))
        .then(pl.format("n{}", number.cast(pl.UInt64, strict=False)))
        .when(number.is_not_null())
        .then(pl.format("f{}", pl.col("bits")))
    ).to_series()


def _key_text(value: Any) -> str | None:
    try:
        return None if type(value) is not str and is_missing(value) else identity.code_of(value)
    except Exception:  # unhashable, or a hash that raises: no key
        return identity.UNNAMED


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in native byte order, contiguous, and with only those float sizes that Polars takes."""
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):  # a long double beyond the largest float is infinite
            values = values.astype(np.float64)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))


def _in_utc(series: Any) -> Any:
    """Return naive datetimes as they are, and aware ones in UTC."""
    return series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series


def _milliseconds(seconds: NDArray[Any]) -> NDArray[Any]:
    """Convert seconds, which Polars lacks, to milliseconds; values out of range stay at the end, so that they clip."""
    ticks = np.clip(seconds.astype(np.int64), -identity.LAST, identity.LAST) * 1000
    ticks[np.isnat(seconds)] = np.iinfo(np.int64).min
    return ticks.view(f"{seconds.dtype.kind}8[ms]")


def _may_hold_nan(dtype: Any) -> bool:
    """Return whether a column can hold NaN; pandas calls NaN present in floats of Arrow and of masked arrays."""
    if kind_of(dtype)[0] == "arrow":
        arrow = arrow_dtype(dtype)
        return arrow is not None and arrow.is_float()
    return dtype.kind == "f" and (isinstance(dtype, np.dtype) or type(dtype).__name__ in MASKED)


def _present(series: Any) -> pl.Series:
    """Return True for a present value, null for a missing one."""
    kind, _ = kind_of(series.dtype)
    if kind == "object":
        present = each(series.to_numpy(), lambda value: not is_missing(value)).astype(bool)
    elif kind == "category" and not _are_apart(series):
        levels = (None if is_missing(level) else True for level in _levels(series))
        return _of_levels(series, levels, pl.Boolean)
    elif kind == "arrow":  # pandas does not see the missing values in run ends and unions
        import pyarrow
        import pyarrow.compute

        array = pyarrow.array(series, from_pandas=True)
        if pyarrow.types.is_run_end_encoded(array.type):  # older versions of pyarrow do not look into runs
            array = pyarrow.compute.run_end_decode(array)
        present = np.asarray(identity.present(array).is_valid(), dtype=bool)
    else:
        present = np.asarray(series.notna().to_numpy(), dtype=bool)
    return _with_nulls(pl.Series(present), ~present)


def _with_nulls(values: pl.Series, missing: NDArray[np.bool_]) -> pl.Series:
    return values.zip_with(pl.Series(~missing), pl.Series([None], dtype=values.dtype)) if missing.any() else values


def _category_codes(series: Any, role: str, declared: Any) -> pl.Series:
    """Return categories as their codes (for units), or as the positions of the declared keys that they equal."""
    codes: Integers = series.cat.codes.to_numpy().astype(np.int64)
    if role == "unit" and _are_apart(series):
        return _with_nulls(pl.Series(codes), codes < 0)
    levels = _levels(series)
    if role == "unit":
        return _of_levels(series, _unit_codes(levels), pl.Int64)
    coded = key_codes(levels, declared)
    missing = key_codes(np.array([None], dtype=object), declared)
    by_code: Integers = np.concatenate([coded, missing])  # code -1 is missing: the last entry
    return pl.Series(by_code[codes])


def _levels(series: Any) -> NDArray[np.object_]:
    """Return the levels of categories as Python objects; for a time that none can hold, one that equals no other.

    In its own time zone a time may lie beyond the years of Python, so it is read in UTC.
    """
    import pandas

    levels = series.cat.categories
    if isinstance(levels.dtype, pandas.DatetimeTZDtype):
        levels = levels.tz_convert("UTC")
    held: Any = getattr(levels.dtype, "pyarrow_dtype", None)
    if getattr(held, "tz", None) is not None:
        import pyarrow

        levels = levels.astype(pandas.ArrowDtype(pyarrow.timestamp(held.unit, "UTC")))

    def boxed(place: int) -> Any:
        try:
            return levels[place : place + 1].to_numpy(dtype=object)[0]
        except Exception:  # of this level alone
            return object()

    try:
        return np.asarray(levels.to_numpy(dtype=object))
    except Exception:
        return each(np.arange(len(levels)).astype(object), boxed)


def _are_apart(series: Any) -> bool:
    """Return whether all levels are different and none is missing; pandas compares objects by its own rules."""
    dtype = series.cat.categories.dtype
    kind, _ = kind_of(dtype)
    if not isinstance(dtype, np.dtype) and _may_hold_nan(dtype):
        return False  # NaN may be a level
    return kind not in ("object", "arrow", "other") or set(map(type, _levels(series))) == {str}


def _of_levels(series: Any, levels: Iterable[Any], dtype: type[pl.DataType]) -> pl.Series:
    """Return the value of each row from one value for each level; null if a row has no level."""
    each_level = pl.Series([*levels, None], dtype=dtype)
    return each_level.gather(pl.Series(series.cat.codes.to_numpy().astype(np.int64) % len(each_level)))  # -1: the last


def _from_objects(values: NDArray[np.object_], role: str, declared: Any) -> pl.Series:
    if role == "value" or (role == "bin" and declared == "number"):
        return pl.Series(each(values, _number).astype(np.float64))
    if role == "bin":
        ticks = pl.Series(each(values, ticks_of(declared)).tolist(), dtype=pl.Int64)
        return ticks.cast(pl.Duration("us") if declared == "duration" else pl.Datetime("us"))
    if role == "unit":
        return pl.Series(_unit_codes(values).tolist(), dtype=pl.Int64)
    return pl.Series(key_codes(values, declared))


def each(values: NDArray[np.object_], function: Callable[[Any], Any]) -> NDArray[np.object_]:
    """Apply `function` to each Python object of an array; no other function looks into objects."""
    with np.errstate(all="ignore"):  # NumPy reports a long double that overflows in `function`
        return np.asarray(np.frompyfunc(function, 1, 1)(values), dtype=object)


def key_codes(values: NDArray[np.object_], declared: Declared) -> NDArray[np.int64]:
    """Return the position of each object among the declared keys (see `sameness`); NOWHERE for any other."""
    positions = {key: position for position, key in enumerate(declared.values)}

    def code(value: Any) -> int:
        try:
            if type(value) is not str and is_missing(value):
                return declared.missing
            return positions.get(same_key(value), NOWHERE)
        except Exception:  # unhashable, or a hash that raises: equal to no key
            return NOWHERE

    return each(values, code).astype(np.int64)


def _unit_codes(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return an integer for each distinct object (see `sameness`: 1 is 1.0, "1" is not); None if it is missing."""
    seen: dict[Any, int] = {}

    def code(value: Any) -> int | None:
        try:
            if type(value) is not str and is_missing(value):
                return None
            return seen.setdefault(same(value), len(seen))
        except Exception:  # an id that cannot be hashed is missing, by the rule for units
            return None

    return each(values, code)


def _number(value: Any) -> float:
    """Return a number as a float, read by a known class and never by its subclass; what is no number is missing."""
    try:
        for kind, read in READERS:
            if isinstance(value, kind):
                return read(value)
        return math.nan  # what is of no such class
    except OverflowError:
        return _beyond(value)
    except Exception:  # whatever it raises
        return math.nan


def _whole(slot: Any, value: Any) -> int:
    """Return a part of a fraction, as a plain integer."""
    return int.__index__(slot.__get__(value))


def _beyond(value: Any) -> float:
    """Return the infinity on whose side a number lies that exceeds the floats."""
    try:
        above = int.__gt__(value if isinstance(value, int) else _whole(NUMERATOR, value), 0)
        return math.inf if above else -math.inf
    except Exception:
        return math.nan


def ticks_of(kind: str) -> Callable[[Any], int | None]:
    """Return a reader of one temporal kind in microseconds (see `queries.bins.BinAxis`); other objects are missing.

    Only methods of Python's classes run, or those of pandas, whose times reach farther; never those of a subclass.
    """
    import pandas

    minus: Any = pandas.Timestamp.__sub__
    floored: Any = pandas.Timedelta.__floordiv__

    def span(value: timedelta) -> int:
        return int((floored if isinstance(value, pandas.Timedelta) else timedelta.__floordiv__)(value, MICROSECOND))

    def moment(value: datetime) -> int:
        since = minus if isinstance(value, pandas.Timestamp) else datetime.__sub__
        return span(since(value, EPOCHS[ZONE.__get__(value) is not None]))

    def ticks(value: Any) -> int | None:
        try:
            if value is pandas.NaT:
                return None
            if kind == "duration":
                microseconds = span(value) if isinstance(value, timedelta) else None
            elif isinstance(value, datetime):
                microseconds = moment(value)
            else:
                days = date.__sub__(value, EPOCHS[False].date()).days if isinstance(value, date) else None
                microseconds = None if days is None else days * 86_400_000_000
            return None if microseconds is None else min(max(microseconds, -MOST_TICKS), MOST_TICKS)
        except Exception:  # a time zone may raise any error: the value is missing
            return None

    return ticks
