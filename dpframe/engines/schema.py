"""Public side of a table: its columns and their dtypes, and a frame of them without rows.

A question is checked against the schema, and tried on the frame without rows, before anything is charged. Settings that
could reveal rows in another way are refused too: with some of them, Polars and DuckDB print numbers of rows and groups.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import is_
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns.found_labels import check_labels
from dpframe.engines.columns.identity import BOOLEANS, Declared, declared, twice
from dpframe.engines.columns.source import ColumnType, Source, source_of
from dpframe.engines.columns.zones import on_the_clock
from dpframe.errors import (
    AlreadyReleased,
    InvalidArgument,
    InvalidType,
    MissingArgument,
    WrongDtype,
    named,
    shown,
    with_article,
)
from dpframe.errors.tracebacks import withheld
from dpframe.frames.kinds import (
    check_threads,
    idle_connection,
    is_dask,
    is_dataset,
    is_engine,
    is_pandas,
    is_relation,
    is_spark,
    schema_of,
)
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis, Coding, DateAxis
from dpframe.queries.contributions import UnitGrid, grouping_of
from dpframe.queries.discovery import found_axis
from dpframe.queries.keys import KIND_WORDS, Axis, DtypeAxis, KeyAxis, Keys, Kind, RestAxis
from dpframe.queries.query import ERROR, NOISY, Query, gathers, read_by
from dpframe.queries.statistics.statistic import OfUnits, Resolving
from dpframe.queries.statistics.suggested_bounds import GridAxis
from dpframe.queries.total import DistinctTotal, VectorTotal
from dpframe.queries.vectors import Matches
from dpframe.queries.where import Conditional, is_compared, plain_name, reads_of

UNKNOWN = "unknown"  # in place of the disabled optimizers, if the query for settings fails
TALKS = {  # settings by which Polars prints, warns or writes files, depending on the rows
    "POLARS_VERBOSE",
    "POLARS_VERBOSE_SENSITIVE",
    "POLARS_LOG_METRICS",
    "POLARS_TRACK_METRICS",
    "POLARS_OOC_LOG_METRICS",
    "POLARS_PARQUET_METRICS",
    "POLARS_LOG_CONCURRENCY",
    "POLARS_OUTPUT_COLUMN_PREDS",
    "POLARS_OUTPUT_SKIP_BATCH_PRED",
    "POLARS_VISUALIZE_IR",
    "POLARS_VISUALIZE_PHYSICAL_PLAN",
    "POLARS_WARN_UNSTABLE",  # the streaming engine, which reads large frames, warned in some versions
    "POLARS_PANIC_ON_ERR",
    "POLARS_BACKTRACE_IN_ERR",
}
NUMBA_TALKS = ("NUMBA_DEBUG", "NUMBA_DUMP", "NUMBA_TRACE", "NUMBA_CHROME_TRACE")  # kernels load for many rows only
SILENT = ("", "0", "false")

MOST_KEYS = 2  # maximum number of keys in a result; a frame with more key columns may be rows joined to a result
ENDS = ("_left", "_right")  # the two edges of a bin
ANYTHING = {"object", "missing"}  # a pandas column of objects, or a column that is all null
NUMBERS = {"number", *ANYTHING}  # the kinds of column whose values are clipped and summed
FITTING = {  # the kinds of column that may hold keys or bins of a kind
    "number": {"number", "category"},
    "text": {"text", "category"},
    "date": {"date", "datetime", "category"},
    "datetime": {"datetime", "date", "category"},
    "duration": {"duration", "category"},
    "time": {"time", "category"},
    "period": {"period"},
}
DAYS = ("date", "datetime")  # kinds of column in which a day, as a key or an edge, is that day, or only its midnight
OF_DAYS = re.compile(r"period\[\d*[DWMQYA]")  # Periods of days and longer
LEVELS = " A Categorical's levels are data."
TRUE_OR_FALSE = "Write True or False."


def columns_of(query: Query, unit: PrivacyUnit) -> list[str]:
    """Return the columns that a question reads, with those of its conditions."""
    columns = [*query.keys.columns, *(name for column in read_by(query) for name in reads_of(column)), *unit.columns]
    return list(dict.fromkeys(columns))


def dtypes_of_all(frame: Any) -> Hashable:
    """Return the names and dtypes of all columns of a frame (lazy ones by their schema); None for other tables."""
    if isinstance(frame, pl.LazyFrame):
        schema = schema_of(frame)
        return ("lazy", tuple(schema.names()), tuple(schema.dtypes()))
    if isinstance(frame, pl.DataFrame):
        return ("polars", tuple(frame.columns), tuple(frame.dtypes))
    if is_pandas(frame):
        return ("pandas", tuple(frame.columns), tuple(map(_dtype, frame.dtypes)))
    return None


def emptied(frame: Any, columns: list[str]) -> Any:
    """Return a frame of these columns and their dtypes without rows, made from the schema alone.

    No row is touched: a lazy frame does not run, and a pandas Categorical loses its categories, which come from the
    rows.
    """
    if is_pandas(frame):
        pandas = sys.modules["pandas"]
        series = {name: frame[name].iloc[:0].reset_index(drop=True) for name in columns}
        for name, column in series.items():
            if isinstance(column.dtype, pandas.CategoricalDtype):
                series[name] = pandas.Series(pandas.Categorical([], categories=[]))
        return pandas.DataFrame(series)
    known = source_of(frame).schema
    return pl.DataFrame(schema={name: known[name].polars for name in columns})


def _dtype(dtype: Any) -> Hashable:
    """Return a pandas dtype exactly; of a Categorical only that it is one, since its levels come from rows."""
    if isinstance(dtype, np.dtype):
        return dtype
    is_categorical = isinstance(dtype, sys.modules["pandas"].CategoricalDtype)
    return (type(dtype), "category" if is_categorical else repr(dtype))


def check_quiet(frame: Any = None) -> None:
    """Refuse, before the charge, settings by which Polars, Numba or the DuckDB of a relation report on rows.

    dpframe does not change them: they belong to the process or the connection, and another thread may rely on them.
    """
    if is_relation(frame):
        _check_connection(frame)
    for name in os.environ:
        value = os.environ.get(name, "") if name in TALKS or name.startswith(NUMBA_TALKS) else ""
        if value.lower() not in SILENT:
            who = "Numba" if name.startswith("NUMBA") else "Polars"
            raise InvalidArgument(
                f"{name} must be unset while dpframe works, not {shown(value)}: with it {who} tells how many rows "
                f"there are. Write os.environ.pop({name!r})."
            )
    reload = getattr(pl.Config, "reload_env_vars", None)
    if reload is not None:  # newer versions keep a copy of these settings
        reload()


@idle_connection()
def _check_connection(relation: Any) -> None:
    """Refuse a connection that prints or logs its queries, or that reads rows if a query asks for none.

    A profile and a log show the rows of every step. Several steps of DuckDB's optimizer together detect that a query
    asks for no rows; which steps depends on the query and the version. If one is off, this query may read rows too. The
    connection is then refused, whatever the rows are, and the message of a failed query is withheld.
    """
    settings = (
        "current_setting('enable_profiling') as profile, current_setting('disabled_optimizers') as without, "
        "(select max(value) from duckdb_settings() where name = 'enable_optimizer') as optimizer, "
        "(select max(value) from duckdb_settings() where name = 'enable_logging') as log, "
        "(select count(*) from (select cast('off' || i as int) as n from range(2) as r(i) order by n limit 0)) as none"
    )  # the last one fails if the optimizer is off, whatever the settings show
    nothing = relation.limit(0).aggregate("count(*) as n").project(settings)
    found = withheld(nothing.fetchall, but=(sys.modules["duckdb"].ResourceInUseException,))
    ((value, without, optimizer, log, _),) = found or [(None, UNKNOWN, None, None, None)]
    if without or optimizer == "false":
        raise InvalidArgument(
            "frame must be of a connection that reads no rows where none are asked for. Nothing was charged. Execute "
            "'pragma enable_optimizer', 'reset disabled_optimizers' or 'rollback'."
        )
    if value not in (None, "", "no_output"):
        raise InvalidArgument(
            f"enable_profiling must be off while dpframe works, not {shown(value)}: with it DuckDB tells how many rows "
            "there are. Execute 'pragma disable_profiling' on the connection."
        )
    if log not in (None, "0", "false"):
        raise InvalidArgument(
            "enable_logging must be off while dpframe works: with it DuckDB tells how many rows there are. Execute "
            "'set enable_logging = false' on the connection."
        )


def check(frame: Any, query: Query, unit: PrivacyUnit) -> Query:
    """Return the query with its cells resolved against the schema; raise typed errors for what does not fit.

    If numbers are expected, numbers, bools and objects of pandas are one class of columns. One missing value turns
    int64 into float64, and one odd value turns a column into objects, so a refusal would reveal it.
    """
    check_threads(frame)
    check_quiet(frame)
    if gathers(query):
        check_gathered(frame)
    source = source_of(frame)
    _refuse_results(list(source.schema), query)
    if query.keys.unknown:
        resolved = _checked_found(source, query, unit)
    elif query.keys.counted == "units":
        resolved = replace(query, keys=_checked_units(source, query.keys))
    else:
        keys = _checked(source, query.keys)
        resolved = query if keys is query.keys else replace(query, keys=keys)
    resolved = resolved.each(
        lambda one: one.resolved(lambda axis: CHECKS[axis.coding](source, axis)) if isinstance(one, Resolving) else one
    )
    for total in query.of_cells:
        if isinstance(total, VectorTotal) and isinstance(total.vector, Matches):
            CHECKS[total.vector.axis.coding](source, total.vector.axis)
        for name in total.columns:
            column = source.column(name)
            if isinstance(name, Conditional):
                _check_conditions(source, name)
            if isinstance(total, DistinctTotal) and column.identity is None:
                raise WrongDtype(_identity_words(name, column, "be counted"))
            if total.values and not is_compared(name) and column.kind not in NUMBERS:
                raise WrongDtype(
                    f"column {name!r} must hold numbers, but its dtype is {column.dtype}. "
                    f"Convert it to numbers, count its rows, group by it, or ask for proportion({name!r}, value=...)."
                )
    for name in unit.columns:
        _check_unit(name, source.column(name))
    if len(unit.columns) > 1 and unit.nulls == "one-unit" and is_engine(frame):  # its pieces follow one column
        raise InvalidType(
            f"frame must be of dpframe's own engines for a unit of several columns with nulls='one-unit', not "
            f"{named(frame)}. Write nulls='drop', or make one column of them."
        )
    return resolved


def booleans(frame: Any, query: Query) -> frozenset[str]:
    """Return those columns clipped to [0, 1] whose dtype says that all values are true or false.

    Columns of pandas' own dtypes are never among them: there, a missing value decides the dtype.
    """
    names = {name for total in query.of_cells for name, bounds in total.values if bounds == (0.0, 1.0)}
    if not names:
        return frozenset()
    source = source_of(frame)
    return frozenset(name for name in names if source.column(name).polars == pl.Boolean)


def check_gathered(frame: Any) -> None:
    """Refuse a table whose pieces are elsewhere, if the values of all rows must be compared together."""
    if is_spark(frame) or is_dask(frame):
        way_out = "Drop the duplicates of its unit, groups and column there, and bring these rows to pandas or Polars."
    elif is_dataset(frame) or is_relation(frame):
        way_out = "Scan its files with polars.scan_parquet, or bring its rows to pandas, Polars or Arrow."
    elif is_engine(frame):
        way_out = "Bring its rows to pandas, Polars or Arrow first."
    else:
        return
    raise InvalidType(f"frame must be in memory, or a Polars LazyFrame, for n_distinct, not {named(frame)}. {way_out}")


def _refuse_results(names: list[str], query: Query) -> None:
    """Refuse a frame whose names are those of released results: an operation of a library dropped its record.

    Results are public and need no charge. A frame counts as a result if values with their errors come last, one of them
    with its noisy value, and only edges of bins and at most two keys come first. So does one if the question asks for a
    value that has both.
    """
    values = [name for name in names if {name + NOISY, name + ERROR} <= {*names}]
    if not values:
        return
    each = [name for name in names if name + ERROR in names]
    ends = {name for value in each for name in (value, *(value + end for end in (NOISY, ERROR, "_low", "_high")))}
    labels = [name for name in names if name not in ends]
    edges = [name for name in labels if name.endswith(ENDS)]
    asked = set(map(plain_name, read_by(query)))
    is_result = names[: len(labels)] == labels and len(labels) - len(edges) <= MOST_KEYS
    if is_result or asked & {*values}:
        value = next(iter(sorted(asked & {*values})), values[0])
        raise AlreadyReleased(
            f"the frame must hold private rows, but columns {value!r}, {value + NOISY!r} and {value + ERROR!r} are "
            "those of a result. Use it directly, or rename a column if its rows are private."
        )


def _checked(source: Source, keys: Keys) -> Keys:
    """Return the keys as the schema has them; most often they stay the same."""
    axes = tuple(CHECKS[axis.coding](source, axis) for axis in keys.axes)
    return keys if all(map(is_, axes, keys.axes)) else replace(keys, axes=axes)


def _checked_found(source: Source, query: Query, unit: PrivacyUnit) -> Query:
    """Check that columns can hold the known keys, and that each value that may be found has one label."""
    axis = found_axis(query.keys)
    assert axis is not None
    check_labels(source, axis)
    by_rows = unit.column is None
    room = 2 if by_rows else unit.contribution.max_groups + 1
    keys = Keys((replace(axis, room=room, by_rows=by_rows),))
    simpler = query.each(lambda one: one.by_rows() if by_rows and isinstance(one, OfUnits) else one)
    return replace(simpler, keys=keys)


def _checked_units(source: Source, grid: Keys) -> Keys:
    """Check the groups of a question about contributions; distinct values must stay apart, as keys do."""
    grouping = grouping_of(grid)
    if grouping.keys is not None:
        return UnitGrid(grid.axes, replace(grouping, keys=_checked(source, grouping.keys)))
    for name in grouping.columns:
        column = source.column(name)
        if column.identity is None:
            raise WrongDtype(_identity_words(name, column, "be grouped by"))
    return grid


def _of_dtype(source: Source, axis: DtypeAxis) -> KeyAxis:
    column = source.column(axis.columns[0])
    if column.levels is None:
        raise MissingArgument(axis.missing + (LEVELS if column.kind == "category" else ""))
    return KeyAxis(axis.columns, (tuple(column.levels),))


def _checked_bins(source: Source, axis: BinAxis) -> BinAxis:
    column = source.column(axis.column)
    if isinstance(axis, DateAxis):
        _check_kind(axis.column, column, axis.kind, axis.argument)
        return on_the_clock(axis, column)
    if axis.kind == "date" and column.aware:
        raise WrongDtype(_zone_words(axis.column, column, axis.argument) if axis.closed else _days_words(axis, column))
    _check_kind(axis.column, column, axis.kind, axis.argument, is_range=True)
    if axis.kind == "datetime" and column.kind in ("date", "datetime") and column.aware != axis.aware:
        of_steps = column.aware and not axis.closed
        raise WrongDtype(_days_words(axis, column) if of_steps else _zone_words(axis.column, column, axis.argument))
    if column.kind in DAYS and axis.kind in DAYS and axis.kind != column.kind:
        axis = replace(axis, holds=column.kind)
    return axis


def _checked_keys(source: Source, axis: KeyAxis) -> KeyAxis:
    columns = [source.column(name) for name in axis.columns]
    known = [_keys_of_column(column, axis, position) for position, column in enumerate(columns)]
    if (again := twice(known)) is not None:
        rows = (tuple(values[index] for values in axis.by_column) for index in again)
        first, second = (shown(row[0] if len(row) == 1 else row) for row in rows)
        raise InvalidArgument(
            f"{axis.argument} must be distinct as the dtype {', '.join(column.dtype for column in columns)} compares "
            f"them, but {first} and {second} are one value there. Name each value once."
        )
    for position, column in enumerate(columns):
        if column.kind in DAYS and axis.kind(position) in DAYS and axis.kind(position) != column.kind:
            kinds = axis.kinds or tuple(map(axis.kind, range(len(columns))))
            axis = replace(axis, kinds=(*kinds[:position], column.kind, *kinds[position + 1 :]))
    return axis


def _checked_rest(source: Source, axis: RestAxis) -> RestAxis:
    _checked_keys(source, axis.declared)
    return axis


def _of_grid(source: Source, grid: GridAxis) -> BinAxis:
    """Return the bins of a public grid that suits the column: of numbers, whatever their dtype, or of dates."""
    column = source.column(grid.column)
    by_days = column.kind in ("date", "datetime")
    if by_days and (grid.statistic == "sum" or grid.whole):
        said = "statistic='sum'" if grid.statistic == "sum" else "whole=True"
        raise WrongDtype(
            f"column {grid.column!r} must hold numbers for {said}, but its dtype is {column.dtype}. Leave that out."
        )
    if not (by_days or column.kind in NUMBERS):
        raise WrongDtype(
            f"column {grid.column!r} must hold numbers or dates to have bounds, but its dtype is {column.dtype}. "
            "Cast it first."
        )
    return _checked_bins(source, grid.bins(by_days))


CHECKS: Mapping[Coding, Callable[[Source, Any], Axis]] = {  # resolve an axis by the schema, such as keys from a dtype
    "grid": _of_grid,
    "dtype": _of_dtype,
    "bins": _checked_bins,
    "keys": _checked_keys,
    "rest": _checked_rest,
}


def _check_conditions(source: Source, column: Conditional) -> None:
    """Check that columns can hold the values and ranges of their conditions, as keys and bins."""
    for axis in (*(condition.axis for condition in column.conditions), *column.compared):
        CHECKS[axis.coding](source, axis)


def _days_words(axis: BinAxis, column: ColumnType) -> str:
    return (
        f"column {axis.column!r} must have no time zone for such {axis.argument}, but its dtype is {column.dtype}. "
        "Write keys=dpf.dates(...), whose steps are those of its zone."
    )


def _check_kind(name: str, column: ColumnType, kind: Kind, argument: str, is_range: bool = False) -> None:
    if argument == DateAxis.argument:
        if kind == "datetime" and (column.kind == "date" or OF_DAYS.match(column.dtype)):
            raise WrongDtype(
                f"column {name!r} must hold datetimes to be cut into hours, but its dtype is {column.dtype}. "
                'Write every="1d".'
            )
        if column.kind not in {"date", "datetime", "period", *ANYTHING}:
            raise WrongDtype(
                f"column {name!r} must hold dates or datetimes for {argument}, but its dtype is {column.dtype}. "
                "Cast it to dates first."
            )
        return
    if column.kind == "other":
        verb = {"bins": "binned", "where": "compared"}.get(argument, "grouped by")
        raise WrongDtype(f"column {name!r} must hold plain values to be {verb}, but its dtype is {column.dtype}.")
    if kind == "missing" or column.kind in FITTING[kind] | ANYTHING:
        if not (is_range and column.kind == "category"):
            return
    raise WrongDtype(
        f"{argument} of column {name!r} must suit its dtype {column.dtype}, but "
        f"{'it is' if argument == 'value' else 'they are'} {_kind_words(kind, argument)}. "
        f"{_way_out(column, argument, is_range)}"
    )


def _kind_words(kind: str, argument: str) -> str:
    """Return the words for what an argument holds: one ``value``, or several of its kind."""
    words = KIND_WORDS[kind]
    return with_article(words.removesuffix("s")) if argument == "value" else words


def _way_out(column: ColumnType, argument: str, is_range: bool) -> str:
    if column.identity == BOOLEANS and not is_range:
        return TRUE_OR_FALSE
    if argument == "bins" and column.kind in ("text", "category"):
        return 'Declare categories=["A", "B"] instead of bins.'
    if argument == "bins" and column.kind == "period":
        return "Write group_by with keys=dpf.dates(...)."
    words = _kind_words(column.kind, argument) if column.kind in KIND_WORDS else "what the column holds"
    return f"Write {words}."


def _keys_of_column(column: ColumnType, axis: KeyAxis, position: int) -> Declared:
    """Return the keys of one column as it compares them; its dtype decides, so all neighbors agree."""
    name, kind, (values, places) = axis.columns[position], axis.kind(position), axis.numbered[position]
    _check_kind(name, column, kind, axis.argument)
    if kind in ("date", "datetime") and column.kind in ("date", "datetime"):
        aware = any(isinstance(value, datetime) and value.tzinfo is not None for value in values)
        if aware != column.aware:
            raise WrongDtype(_zone_words(name, column, axis.argument))
    if column.identity is None:
        raise WrongDtype(_identity_words(name, column, "be grouped by"))
    keys = declared(values, column.identity, places)
    if (column.polars is not None or column.kind == "period") and (keys.rows < 0).any():
        unlike = axis.values(position)[int(np.argmax(keys.rows < 0))]
        way_out = "Cast the column." if axis.argument == "value" else "Leave it out, or cast the column."
        raise InvalidArgument(
            f"{axis.argument} of column {name!r} must convert exactly to its dtype {column.dtype}, "
            f"unlike {shown(unlike)}. {TRUE_OR_FALSE if column.identity == BOOLEANS else way_out}"
        )
    return keys


def _check_unit(name: str, column: ColumnType) -> None:
    if column.kind == "other":
        raise WrongDtype(
            f"column {name!r} must hold numbers, strings or dates to name units, but its dtype is {column.dtype}."
        )
    if column.identity is None:
        raise WrongDtype(_identity_words(name, column, "name units"))


def _identity_words(name: str, column: ColumnType, role: str) -> str:
    return (
        f"column {name!r} must have a dtype whose values stay apart to {role}, unlike {column.dtype}: two of them "
        "could become one. Cast it to integers, strings or another time unit."
    )


def _zone_words(name: str, column: ColumnType, argument: str) -> str:
    has, way_out = ("one", "Give each datetime a tzinfo.") if column.aware else ("none", "Leave tzinfo out.")
    return (
        f"{argument} of column {name!r} must have a time zone if and only if the column has one, "
        f"and its dtype {column.dtype} has {has}. {way_out}"
    )
