"""Partitions of Dask as Polars frames of one schema, whatever the dtypes of each partition.

Dask declares dtypes but does not enforce them: an integer column has partitions of floats where values are missing, and
1 and 1.0 have different hashes. So each partition is converted to the declared dtypes, exactly: no two values become
one, and a value that a dtype cannot hold is missing. None of this can fail on a value.

Floats hold integers exactly only below 2**53. If one row without an id made floats of a partition, larger ids in its
other rows would be others than in the next partition. So larger integers are missing in every partition of a column of
NumPy's integers, and in partitions of floats of any other column of integers. In a column of floats, every partition
has the nearest floats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns import pandas_columns
from dpframe.engines.columns.identity import LAST, decoded
from dpframe.engines.columns.pandas_columns import OF_NUMPY, ZONE, each, ticks_of

NOT_A_TIME = np.iinfo(np.int64).min
OF_64_BITS = (pl.Int64, pl.UInt64)
INEXACT = 2**53  # the first integer whose float may be that of another integer
UNITS_OF_TIME = ("ms", "us", "ns")
FLOATS = {"f2": pl.Float32(), "f4": pl.Float32(), "f8": pl.Float64()}
READ_FROM_ARROW = ("boolean", "integer", "float32", "float64", "decimal128", "string", "large_string", "date32")


def dtype_of(dtype: Any) -> pl.DataType | None:
    """Return the Polars dtype that holds each value of a pandas dtype, no two as one; None if that is not proven.

    It is not proven for objects, for seconds (which become milliseconds, and wrap), and for categories that are no
    texts or that Dask does not know.
    """
    kind, _ = pandas_columns.kind_of(dtype)
    if kind == "arrow":
        return _dtype_of_arrow(dtype.pyarrow_dtype)
    if kind == "category":
        return pl.String() if _are_texts(dtype.categories) else None
    if kind == "text":
        return None if dtype.storage == "python" else pl.String()
    if kind == "datetime" and not isinstance(dtype, np.dtype):
        return pl.Datetime(dtype.unit, "UTC") if dtype.unit in UNITS_OF_TIME else None
    plain = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)  # of masked arrays
    return None if kind == "other" or plain is None else _dtype_of_numpy(plain)


def _dtype_of_numpy(dtype: np.dtype[Any]) -> pl.DataType | None:
    if dtype.kind == "b":
        return pl.Boolean()
    if dtype.kind in "iu":
        named: pl.DataType = getattr(pl, f"{'U' if dtype.kind == 'u' else ''}Int{8 * dtype.itemsize}")()
        return named
    if dtype.kind in "mM":
        unit, step = np.datetime_data(dtype)
        temporal: Any = pl.Datetime if dtype.kind == "M" else pl.Duration
        return temporal(unit) if unit in UNITS_OF_TIME and step == 1 else None
    return FLOATS.get(dtype.str[1:])


def _dtype_of_arrow(dtype: Any) -> pl.DataType | None:
    import pyarrow

    types = pyarrow.types
    timed = (types.is_timestamp(dtype) or types.is_duration(dtype)) and dtype.unit in UNITS_OF_TIME
    if not timed and not any(getattr(types, f"is_{name}")(dtype) for name in READ_FROM_ARROW):
        return None
    if types.is_decimal(dtype) and dtype.scale < 0:
        return None
    if types.is_timestamp(dtype) and dtype.tz is not None:
        return pl.Datetime(dtype.unit, "UTC")
    return pl.Series(pl.from_arrow(pyarrow.array([], type=dtype))).dtype


def _are_texts(categories: Any) -> bool:
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return all(isinstance(category, str) and category != UNKNOWN_CATEGORIES for category in categories)


def frame_of(partition: Any, dtypes: Mapping[str, pl.DataType], exact: Collection[str] = ()) -> pl.DataFrame:
    """Return a pandas partition with these columns and dtypes; without columns, a frame with its number of rows.

    The columns in `exact` are declared as masked or Arrow integers, which no missing value turns into floats.
    """
    if not dtypes:
        return pl.DataFrame({"": pl.zeros(len(partition), dtype=pl.Int8, eager=True)})
    return pl.DataFrame({name: column_of(partition[name], dtype, name in exact) for name, dtype in dtypes.items()})


def column_of(series: Any, dtype: pl.DataType, exact: bool = False) -> pl.Series:
    """Return a pandas column with the given dtype; a value that it cannot hold exactly is missing.

    If casting back restores each value, the cast made no two of them one. Numbers stay numbers and texts stay texts: 1
    and 1.0 are one value of a column of numbers, and their texts would be two.
    """
    column = _as_it_is(series, dtype)
    if dtype == pl.Float64 and column.dtype.is_integer():
        return column.cast(dtype)  # as pandas does where a value is missing
    if dtype in OF_64_BITS and (column.dtype.is_float() or (column.dtype in OF_64_BITS and not exact)):
        beyond = column >= INEXACT
        column = column.set(beyond if column.dtype == pl.UInt64 else beyond | (column <= -INEXACT), None)
    if column.dtype == dtype:
        return column
    nothing = pl.Series([None], dtype=dtype)
    if _family(column.dtype) != _family(dtype):
        return nothing.new_from_index(0, len(column))
    cast = column.cast(dtype, strict=False)
    return cast.zip_with(cast.cast(column.dtype, strict=False).eq_missing(column), nothing)


def _family(dtype: pl.DataType) -> str:
    """Return the family of a dtype; only dtypes of one family may have equal values."""
    if dtype == pl.Boolean or dtype.is_numeric():
        return "numbers"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "texts"
    if dtype == pl.Datetime:
        return "times" if dtype.time_zone is None else "instants"  # type: ignore[attr-defined]
    return "times" if dtype == pl.Date else str(dtype.base_type())


def _as_it_is(series: Any, dtype: pl.DataType) -> pl.Series:
    """Return a pandas column with its own dtype; from Python objects, take the values of `dtype`."""
    kind, _ = pandas_columns.kind_of(series.dtype)
    if kind in ("category", "object") or pandas_columns.is_by_position(series.dtype):
        objects = series.astype(object).to_numpy(dtype=object)
        if dtype in (pl.Datetime, pl.Duration):
            return _times_of(objects, dtype)
        return pl.Series(each(objects, _object_of(dtype)).tolist(), dtype=dtype)
    if isinstance(series.dtype, np.dtype):
        return _of_numpy(series.to_numpy())
    if kind == "datetime":
        naive = _of_numpy(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
        return naive.dt.replace_time_zone("UTC")
    import pyarrow

    return pl.Series(pl.from_arrow(decoded(pyarrow.array(series, from_pandas=True))))


def _times_of(objects: NDArray[np.object_], dtype: pl.DataType) -> pl.Series:
    """Return times or durations, each read by itself; one that the unit does not hold exactly is missing.

    As in `ticks_of`, no method of a subclass runs, since it could print what it holds.
    """
    import pandas

    zone, unit = getattr(dtype, "time_zone", None), dtype.time_unit  # type: ignore[attr-defined]
    steps, rest = {"ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}[unit]
    microseconds = ticks_of("duration" if dtype == pl.Duration else "datetime")

    def ticks(value: Any) -> int | None:
        try:
            whole = microseconds(value)
            aware = isinstance(value, datetime) and ZONE.__get__(value) is not None
            if whole is None or aware != (zone is not None):
                return None
            below = 0
            if type(value) in (pandas.Timestamp, pandas.Timedelta):
                below = value.nanoseconds if dtype == pl.Duration else value.nanosecond
            if whole % rest or (below and unit != "ns"):
                return None
            found = whole // rest * steps + below
            return found if abs(found) < 2**63 else None
        except Exception:  # a subclass may raise any error
            return None

    read = pl.Series(each(objects, ticks).tolist(), dtype=pl.Int64)
    if dtype == pl.Duration:
        return read.cast(dtype)
    naive: Any = pl.Datetime(unit)
    return read.cast(naive) if zone is None else read.cast(naive).dt.replace_time_zone(zone)


def _of_numpy(values: NDArray[Any]) -> pl.Series:
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] == "s":
        ticks = values.view(np.int64)
        fits = (ticks >= -LAST) & (ticks <= LAST)  # NaT does not fit
        milliseconds = np.where(fits, ticks, 0) * 1000
        milliseconds[~fits] = NOT_A_TIME
        return pl.Series(milliseconds.view(f"{values.dtype.kind}8[ms]"))
    if values.dtype.kind == "f" and values.dtype.itemsize == 2:
        values = values.astype(np.float32)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float64)
        values = np.where(narrow.astype(values.dtype) == values, narrow, np.nan)
    return pl.Series(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")))


def _object_of(dtype: pl.DataType) -> Callable[[Any], Any]:
    """Return a function that converts an object to a text or number of a dtype; None if it is not exact.

    It calls no method of a subclass: the text of a member of an Enum, for instance, need not be its value.
    """

    def text(value: Any) -> str | None:
        try:
            plain = str.__str__(value)
            return plain if plain.encode() is not None else None
        except (TypeError, UnicodeEncodeError):  # no text, or a text without UTF-8
            return None

    def number(value: Any) -> Any:
        try:
            plain = _plain_number(value)
            if plain is None:
                return None
            if dtype == pl.Float64:
                return float(plain)  # rounded, as integers of a whole partition are
            typed = float(plain) if dtype.is_float() else int(plain)
            if dtype == pl.Float32:
                typed = float(np.float32(typed))
            fits = typed == plain and (dtype.is_float() or low <= typed <= high)
            return (bool(typed) if dtype == pl.Boolean else typed) if fits else None
        except Exception:  # NaN and infinities among integers, overflow
            return None

    low, high = 0, 1
    if dtype.is_integer():
        low, high = (pl.select(end).item() for end in (dtype.min(), dtype.max()))  # type: ignore[attr-defined]
    if dtype == pl.String:
        return text
    return number if dtype == pl.Boolean or dtype.is_integer() or dtype.is_float() else lambda value: None


def _plain_number(value: Any) -> Any:
    """Return a number without its subclass, whose methods could print it; None for any other object."""
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__index__(value)
    is_number = isinstance(value, (np.bool_, np.integer, np.floating)) and not isinstance(value, np.timedelta64)
    return OF_NUMPY.item(value) if is_number else None
