"""How many rows, in how many groups, each unit has: every unit is counted once, in one cell of the grid."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.engines.cells import Cells, Integers
from dpframe.engines.source import Source, Wanted, collected
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis
from dpframe.queries.contributions import Grouping
from dpframe.queries.query import Query


def units_by_cell(source: Source, query: Query, unit: PrivacyUnit) -> Integers:
    """The number of units in each cell, row-major. A unit is in one cell, or, without a row in a group, in none."""
    assert query.grouping is not None
    assert unit.column is not None
    units, group = _rows(source, query.grouping, unit.column)
    if unit.nulls == "drop" and units.null_count():
        present = units.is_not_null().to_numpy()
        units, group = units.filter(pl.Series(present)), group[present]
    code, size = unit_codes(units)
    rows = np.bincount(code, minlength=size)
    most = int(group.max(initial=0)) + 1
    pairs = np.unique(code * most + group)  # which fits 64 bits: groups are numbered below the rows or the cells
    groups = np.bincount(pairs // most, minlength=size)
    there = rows > 0
    by_rows, by_groups = query.keys.axes
    assert isinstance(by_rows, BinAxis)
    assert isinstance(by_groups, BinAxis)
    cell = _places(rows[there], by_rows) * by_groups.size + _places(groups[there], by_groups)
    return np.bincount(cell, minlength=query.keys.cells).astype(np.int64)


def _rows(source: Source, grouping: Grouping, column: str) -> tuple[pl.Series, Integers]:
    """The unit of each row that is in a group, and a number for its group."""
    unit: Wanted = ("unit", column, "unit", None)
    if grouping.keys is not None:
        cells = Cells.of(source, grouping.keys)
        table = collected(source.bring([*cells.wanted(), unit]).select(*cells.names(), "unit"), source.rows)
        code = cells.codes(table)
        inside = code >= 0
        return table["unit"].filter(pl.Series(inside, dtype=pl.Boolean)), code[inside]
    names = {f"group{place}": name for place, name in enumerate(grouping.columns)}
    wanted: list[Wanted] = [(name, of, "unit", None) for name, of in names.items()]
    table = collected(source.bring([unit, *wanted]).select("unit", *names), source.rows)
    group = np.zeros(table.height, dtype=np.int64)
    for name in names:
        code, size = unit_codes(table[name])
        group = np.unique(group * size + code, return_inverse=True)[1].astype(np.int64)  # below the number of rows
    return table["unit"], group


def _places(numbers: Integers, axis: BinAxis) -> Integers:
    """Which cell of the axis each number falls in; the last is open above."""
    inner = np.array(axis.edges[1:-1], dtype=np.float64)
    return np.searchsorted(inner, numbers, side="right").astype(np.int64)
