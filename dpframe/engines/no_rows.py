"""A caller's frame without its rows: what the engine is tried on before anything is charged."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.source import source_of
from dpframe.frames.kinds import is_pandas
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import Query
from dpframe.queries.where import Conditional


def columns_of(query: Query, unit: PrivacyUnit) -> list[str]:
    """The columns that a question reads, and those of its conditions."""
    asked = (name for total in query.of_cells for name in total.columns)
    read = (name.reads if isinstance(name, Conditional) else (name,) for name in asked)
    columns = [*query.keys.columns, *(name for names in read for name in names), unit.column]
    return list(dict.fromkeys(name for name in columns if name is not None))


def dtypes_of(frame: Any, columns: list[str]) -> list[str]:
    """Their dtypes, as text."""
    if is_pandas(frame):
        return [_without_levels(frame[name].dtype) for name in columns]
    if is_polars(frame):
        return [repr(frame.collect_schema()[name]) for name in columns]
    schema = source_of(frame).schema
    return [repr((schema[name].dtype, schema[name].polars)) for name in columns]


def dtypes_of_all(frame: Any) -> Hashable:
    """The names and dtypes of all columns of a frame, lazy ones by their schema; None of any other table."""
    if isinstance(frame, pl.LazyFrame):
        schema = frame.collect_schema()
        return ("lazy", tuple(schema.names()), tuple(schema.dtypes()))
    if isinstance(frame, pl.DataFrame):
        return ("polars", tuple(frame.columns), tuple(frame.dtypes))
    if is_pandas(frame):
        return ("pandas", tuple(frame.columns), tuple(map(_dtype, frame.dtypes)))
    return None


def emptied(frame: Any, columns: list[str]) -> Any:
    """A frame of these columns and their dtypes without rows, made of the schema alone.

    No row is touched: of a lazy frame nothing is run, and a pandas Categorical leaves behind its categories, which come
    from the rows.
    """
    if is_pandas(frame):
        pandas = sys.modules["pandas"]
        series = {name: frame[name].iloc[:0] for name in columns}
        for name, column in series.items():
            if isinstance(column.dtype, pandas.CategoricalDtype):
                series[name] = pandas.Series(pandas.Categorical([], categories=[]))
        return pandas.DataFrame(series)
    schema: dict[str, Any]
    if is_polars(frame):
        known = frame.collect_schema()
        schema = {name: known[name] for name in columns}
    else:
        known = source_of(frame).schema
        schema = {name: known[name].polars for name in columns}
    return pl.DataFrame(schema=schema)


def is_polars(frame: Any) -> bool:
    """Tell whether it is one of Polars' own."""
    return isinstance(frame, (pl.DataFrame, pl.LazyFrame))


def _dtype(dtype: Any) -> Hashable:
    """A dtype of pandas, exactly; of a Categorical no more than that it is one, since its levels come from rows."""
    if isinstance(dtype, np.dtype):
        return dtype
    is_categorical = isinstance(dtype, sys.modules["pandas"].CategoricalDtype)
    return (type(dtype), "category" if is_categorical else repr(dtype))


def _without_levels(dtype: Any) -> str:
    """The dtype as text; of a pandas Categorical no more than that it is one."""
    return "category" if isinstance(dtype, sys.modules["pandas"].CategoricalDtype) else f"{type(dtype)} {dtype}"
