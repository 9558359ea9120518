"""Keys that are found: the encoding of the values of a column, and the label of each.

The label of a key depends on its value alone, never on the row where it occurs: both zeros are 0.0, 1 and 1.0 are one
key with one label, and a missing value is None. The dtype of labels depends on the schema alone. In pandas one missing
value turns integers into floats, and one odd value turns any column into objects. So plain numbers and objects are one
kind of column here: their keys are encoded as text (`code_of`), and their labels are Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns.identity import DAY, EPOCHS, NOTHING, UNNAMED, Identity, code_of, stored, value_of
from dpframe.engines.columns.source import ColumnType, Source, tick_of
from dpframe.errors import InvalidArgument, WrongDtype, shown
from dpframe.queries.discovery import FoundAxis
from dpframe.queries.keys import kind_of
from dpframe.queries.sameness import CLOCK, NAIVE, SPAN, same_key

UNITS = {1: "ns", 10**3: "us", 10**6: "ms"}
TEXT_FORMS = ("integer", "float", "objects")  # forms of identity that a single value may turn into each other in pandas


def is_written_as_text(column: ColumnType) -> bool:
    """Return whether keys of a column are encoded as text: those of plain numbers and objects of pandas."""
    return column.polars is None and column.identity is not None and column.identity.form in TEXT_FORMS


def dtype_of(column: ColumnType) -> pl.DataType | None:
    """Return the Polars dtype of the labels of a column that is not encoded as text; None if there is none."""
    identity = column.identity
    if identity is None:
        return None
    if column.polars in (pl.Categorical, pl.Enum):
        return pl.String()
    if identity.form == "ticks" and column.polars is None:
        unit: Any = UNITS.get(identity.tick)
        if unit is None:
            return None
        return pl.Duration(unit) if identity.token == SPAN else pl.Datetime(unit, column.zone if column.aware else None)
    if column.polars is None:
        return pl.String() if identity.form == "text" else None
    if identity.form == "ticks" and identity.tick != (1 if column.polars == pl.Time else tick_of(column.polars)):
        return None  # seconds and times of day of Arrow, which Polars holds in other steps
    return column.polars


def ends_of_times(column: ColumnType) -> tuple[int, int] | None:
    """Return the first and last stored integer of a time that Python can hold; None for a column of other values.

    Engines hold times beyond the years 1 to 9999, or `timedelta`, also as infinite dates. These have no label. A time
    with a time zone must lie in these years both in UTC and in its zone.
    """
    identity, dtype = column.identity, dtype_of(column)
    if identity is None or identity.form != "ticks" or dtype is None:
        return None
    if identity.token == CLOCK:
        return 0, DAY // identity.tick - 1
    if identity.token == SPAN:
        first, last = timedelta.min, timedelta.max
    else:
        first, last = datetime.min - EPOCHS[NAIVE], datetime.max - EPOCHS[NAIVE]
        if (zone := getattr(dtype, "time_zone", None)) is not None:
            near = pl.Series([datetime(1, 1, 3), datetime(9999, 12, 29)]).dt.replace_time_zone("UTC")
            early, late = (time.utcoffset() for time in near.dt.convert_time_zone(zone))
            first, last = first - min(early, timedelta(0)), last - max(late, timedelta(0))
    microsecond = timedelta(microseconds=1)
    low, high = -(-(first // microsecond * 1000) // identity.tick), (last // microsecond * 1000 + 999) // identity.tick
    return max(low, identity.low), min(high, identity.high)


def form_of(column: ColumnType) -> str:
    """Return the form in which values of a column are encoded; another form would mean other keys."""
    return "Python objects" if is_written_as_text(column) else str(dtype_of(column))


def check_labels(source: Source, axis: FoundAxis) -> None:
    """Refuse columns whose values have no label of their own, and known keys that a column cannot hold."""
    discovery = axis.discovery
    assert discovery is not None
    for position, name in enumerate(axis.columns):
        column = source.column(name)
        if not is_written_as_text(column) and dtype_of(column) is None:
            raise WrongDtype(
                f"column {name!r} must have a dtype whose values can be told apart and named to find keys in it, "
                f"unlike {column.dtype}. Cast it to integers, strings or another time unit."
            )
        ends = ends_of_times(column)
        for row in discovery.known:
            code = _code(row[position], column)
            out_of_range = ends is not None and isinstance(code, int) and not ends[0] <= code <= ends[1]
            if code in (NOTHING, UNNAMED) or out_of_range:
                raise InvalidArgument(
                    f"known of column {name!r} must convert exactly to its dtype {column.dtype}, unlike "
                    f"{shown(row[position])}. Leave it out, or write it as the column does."
                )

    codes = codes_of_known(source, axis)
    for code, row in zip(codes, discovery.known, strict=True):
        if codes.count(code) > 1:
            raise InvalidArgument(
                f"known must be distinct as the columns compare them, but {shown(row)} is there again in other words. "
                "Name each value once."
            )


def _identity(column: ColumnType) -> Identity:
    assert column.identity is not None
    return column.identity


def codes_of_known(source: Source, axis: FoundAxis) -> list[tuple[Any, ...]]:
    """Return the known keys, encoded as the values of their columns."""
    assert axis.discovery is not None
    columns = [source.column(name) for name in axis.columns]
    return [
        tuple(_code(value, column) for value, column in zip(row, columns, strict=True)) for row in axis.discovery.known
    ]


def _code(value: Any, column: ColumnType) -> Any:
    return code_of(value) if is_written_as_text(column) else stored(value, _identity(column))


def told_apart(code: Any, column: ColumnType) -> Any:
    """Return a found key in the form that `identity.stored` gives to a declared key."""
    if not is_written_as_text(column) or code is None:
        return code
    value, identity = value_of(code), _identity(column)
    if identity.form == "objects":
        return same_key(value)
    if identity.form == "float" and isinstance(value, float):
        return value  # also an infinite one, which nobody can declare
    return stored(value, identity)


def labels(codes: pl.Series, column: ColumnType) -> Any:
    """Return the labels of keys: a Polars column, or an array of Python values for numbers and objects of pandas."""
    if is_written_as_text(column):
        objects = np.empty(len(codes), dtype=object)
        objects[:] = [value_of(code) for code in codes.to_list()]
        return objects
    dtype, identity = dtype_of(column), _identity(column)
    assert dtype is not None
    if identity.form == "decimal":
        most = 10 ** (getattr(dtype, "precision", None) or 38)  # a column may hold values beyond its precision
        steps = [None if code is None or abs(int(code)) >= most else int(code) for code in codes.to_list()]
        values = [None if each is None else _decimal(each, identity.scale) for each in steps]
        return pl.Series(values, dtype=dtype)
    if identity.form == "nothing":
        return pl.Series([None] * len(codes), dtype=pl.Null)
    if dtype == pl.Datetime and getattr(dtype, "time_zone", None) is not None:
        plain: Any = pl.Datetime(dtype.time_unit)  # type: ignore[attr-defined]
        return codes.cast(pl.Int64).cast(plain).dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)  # type: ignore[attr-defined]
    if dtype in (pl.Datetime, pl.Duration, pl.Time):
        return codes.cast(pl.Int64).cast(dtype, strict=False)  # in an old answer, a time may lie outside a day
    return codes.cast(dtype)


def _decimal(steps: int, scale: int) -> Decimal:
    """Return the decimal of `steps` steps of 10**-scale, exactly; arithmetic would keep 28 digits."""
    return Decimal((int(steps < 0), tuple(map(int, str(abs(steps)))), -scale))


def in_order(columns: Sequence[Any]) -> pl.Series:
    """Return the positions of keys in the order of their labels: numbers, texts, times; missing ones last."""
    named = {f"key{number}": column for number, column in enumerate(columns)}
    table = pl.DataFrame([_sortable(column).alias(name) for name, column in named.items()])
    return table.select(pl.arg_sort_by(table.columns, nulls_last=True)).to_series()


def _sortable(column: Any) -> pl.Series:
    """Return a column that sorts as its labels do: itself, or the ranks of Python values."""
    if isinstance(column, pl.Series):
        return column
    ranked = [_ranked(value) for value in column]
    with localcontext(Context(traps=[])):  # a caller's context may refuse to compare floats
        ranks = {value: rank for rank, value in enumerate(sorted(set(ranked)))}
    return pl.Series([ranks[value] for value in ranked], dtype=pl.Int64)


def _ranked(value: Any) -> tuple[str, Any]:
    """Return a sort key that starts with the kind of a value; Python can compare values of one kind."""
    kind = kind_of(value) if value is not None else "~"  # after every other kind
    if kind in ("datetime", "time"):
        aware = value.tzinfo is not None
        return (f"{kind}{aware}", value)
    return (kind, value if value is not None else 0)
