"""Single columns: a caller's series as a frame of one column, and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.errors import InvalidType, named
from dpframe.frames import build
from dpframe.frames.forked import check_threads
from dpframe.frames.kinds import (
    checked_frame,
    is_arrow,
    is_dataset,
    is_engine,
    is_frame,
    is_pandas,
    library_of,
    unwrapped,
)

UNNAMED = "category"  # a column of reports without a name


def column_frame(series: Any, argument: str = "series") -> tuple[Any, str]:
    """A frame of that one column, and its name; a frame of one column is taken as it is."""
    series = unwrapped(series)
    if isinstance(series, pl.Series):
        name = series.name or UNNAMED
        return series.rename(name).to_frame(), name
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(series, pandas.Series):
        name = series.name if isinstance(series.name, str) and series.name else UNNAMED
        return pandas.DataFrame({name: series.reset_index(drop=True)}), name
    if pyarrow is not None and isinstance(series, (pyarrow.Array, pyarrow.ChunkedArray)):
        return pyarrow.table({UNNAMED: series}), UNNAMED
    if is_frame(series):
        frame = checked_frame(series)
        names = _names(frame)
        if len(names) == 1 and isinstance(names[0], str):
            return frame, names[0]
        raise InvalidType(f"{argument} must be one column, not a frame of {len(names)}. Write df['name'].")
    raise InvalidType(f"{argument} must be a column of pandas, Polars or Arrow, not {named(series)}. Write df['name'].")


def _names(frame: Any) -> list[Any]:
    """The names of a frame's columns."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect_schema().names()
    if is_engine(frame):
        return list(frame.schema())
    return list(frame.schema.names if is_arrow(frame) or is_dataset(frame) else frame.columns)


def values_of(frame: Any, column: str) -> list[Any]:
    """The values of a public column."""
    if not is_pandas(frame):
        check_threads(frame)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.select(column).collect()
    if library_of(frame) == "polars" and not isinstance(frame, pl.DataFrame):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(frame).lazy().select(column).collect(backend="polars").to_native()
    return list(frame[column].to_list())


def typed_frame(column: str, values: Any, examples: Sequence[Any], library: str) -> Any:
    """A frame of one column, whose dtype is that of the examples, whatever values there are."""
    if not examples:
        return build.frame_of({column: values}, library)
    whole = build.frame_of({column: [*examples, *values]}, library)
    rest = whole[len(examples) :]
    return rest.reset_index(drop=True) if is_pandas(whole) else rest


def taken(frame: Any, column: str) -> Any:
    """That column of a built frame."""
    return frame[column]
