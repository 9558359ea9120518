"""Rows and groups of each unit: every unit is counted once, in one cell of the grid."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.engines.aggregates import ROWS
from dpframe.engines.cells import Cells, Integers
from dpframe.engines.source import ColumnRequest, Source, collected
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import Grouping, grouping_of
from dpframe.queries.keys import Axis, Keys
from dpframe.queries.query import Query


def units_by_cell(source: Source, query: Query, unit: PrivacyUnit) -> Integers:
    """The number of units in each cell, row-major. A unit is in one cell, or, without a row in a group, in none."""
    grouping = grouping_of(query.keys)
    assert unit.column is not None
    units, group = _rows(source, grouping, unit.column)
    if unit.nulls == "drop" and units.null_count():
        present = units.is_not_null().to_numpy()
        units, group = units.filter(pl.Series(present)), group[present]
    code, size = unit_codes(units)
    rows = np.bincount(code, minlength=size)
    most = int(group.max(initial=0)) + 1
    pairs = np.unique(code * most + group)  # which fits 64 bits: groups are numbered below the rows or the cells
    groups = np.bincount(pairs // most, minlength=size)
    there = rows > 0
    return _in_grid(rows[there], groups[there], query)


def coded_units(source: Source, keys: Keys, unit: PrivacyUnit) -> pl.DataFrame:
    """Rows with their unit and, in other columns, what tells groups apart: the same for every part of a table."""
    grouping = grouping_of(keys)
    assert unit.column is not None
    if grouping.keys is not None:
        units, group = _rows(source, grouping, unit.column)
        table = pl.DataFrame([units.alias("unit"), pl.Series("cell", group)])
    else:
        names = {f"group{number}": name for number, name in enumerate(grouping.columns)}
        requests: list[ColumnRequest] = [(name, of, "unit", None) for name, of in names.items()]
        table = collected(source.load([("unit", unit.column, "unit", None), *requests]), source.rows)
    return table.filter(pl.col("unit").is_not_null()) if unit.nulls == "drop" else table


def of_pairs(pairs: pl.DataFrame, query: Query) -> Integers:
    """As `units_by_cell`, of units and their groups, each pair of them once, with the number of its rows."""
    units = pairs.group_by("unit").agg(pl.col(ROWS).sum(), pl.len().cast(pl.Int64).alias("groups"))
    return _in_grid(units[ROWS].to_numpy(), units["groups"].to_numpy(), query)


def _in_grid(rows: Integers, groups: Integers, query: Query) -> Integers:
    """The number of units in each cell, of the rows and the groups of each."""
    by_rows, by_groups = query.keys.axes
    cell = _places(rows, by_rows) * by_groups.size + _places(groups, by_groups)
    return np.bincount(cell, minlength=query.keys.cells).astype(np.int64)


def _rows(source: Source, grouping: Grouping, column: str) -> tuple[pl.Series, Integers]:
    """The unit of each row that is in a group, and a number for its group."""
    unit: ColumnRequest = ("unit", column, "unit", None)
    if grouping.keys is not None:
        cells = Cells.of(source, grouping.keys)
        table = collected(source.load([*cells.requests(), unit]).select(*cells.names(), "unit"), source.rows)
        code = cells.codes(table)
        inside = code >= 0
        return table["unit"].filter(pl.Series(inside, dtype=pl.Boolean)), code[inside]
    names = {f"group{number}": name for number, name in enumerate(grouping.columns)}
    requests: list[ColumnRequest] = [(name, of, "unit", None) for name, of in names.items()]
    table = collected(source.load([unit, *requests]).select("unit", *names), source.rows)
    group = np.zeros(table.height, dtype=np.int64)
    for name in names:
        code, size = unit_codes(table[name])
        group = np.unique(group * size + code, return_inverse=True)[1].astype(np.int64)  # below the number of rows
    return table["unit"], group


def _places(numbers: Integers, axis: Axis) -> Integers:
    """The cell of the axis that each number falls in; the last is open above."""
    inner = np.array(axis.values(0)[1:], dtype=np.float64)
    return np.searchsorted(inner, numbers, side="right").astype(np.int64)
