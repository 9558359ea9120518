"""The definitions of the statistics, evaluated directly in Python and NumPy; the engines must agree with them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.queries.keys import KeyAxis
from dpframe.queries.limits import grid_steps
from dpframe.queries.query import Query
from dpframe.queries.statistics import Total
from dpframe.queries.total import RowsTotal


def is_missing(value: Any) -> bool:
    return value is None or value != value


def steps_of(value: float, total: Total) -> int:
    """Clip, divide by the grid and round half up, in exact rationals."""
    lower, upper = grid_steps(total.values[0][1])
    grid = Fraction(total.norm(weighted=False).grid)
    if math.isinf(value):
        return upper if value > 0 else lower
    scaled = min(max(Fraction(float(value)) / grid, Fraction(lower)), Fraction(upper))
    return math.floor(scaled + Fraction(1, 2))


def cell_of(row: dict[str, Any], query: Query) -> int | None:
    """Return the row-major number of the row's cell; None if it is in no cell."""
    code = 0
    for axis in query.keys.axes:
        if isinstance(axis, KeyAxis):
            key = tuple(None if is_missing(row[column]) else row[column] for column in axis.columns)
            if key not in axis.rows:
                return None
            place = axis.rows.index(key)
        else:
            value, edges = row[axis.column], axis.edges
            if is_missing(value):
                return None
            if axis.outside == "clip":
                value = min(max(value, edges[0]), edges[-1])
            if not edges[0] <= value <= edges[-1]:
                return None
            place = min(int(np.searchsorted(edges, value, side="right")) - 1, len(edges) - 2)
        code = code * axis.size + place
    return code


def contribution(row: dict[str, Any], total: Total) -> int:
    """Return what one row adds to a statistic, in steps."""
    if not total.columns:
        return 1
    value = row[total.columns[0]]
    if is_missing(value):
        return 0
    return 1 if isinstance(total, RowsTotal) else steps_of(value, total) - total.midpoint


def row_totals(rows: Sequence[dict[str, Any]], query: Query) -> dict[Total, list[int]]:
    """Return the totals if each row is a unit."""
    totals = {total: [0] * query.keys.cells for total in query.totals}
    for row in rows:
        cell = cell_of(row, query)
        if cell is not None:
            for total in query.totals:
                totals[total][cell] += contribution(row, total)
    return totals


def unit_totals(
    rows: Sequence[dict[str, Any]], query: Query, column: str, max_rows: int, max_groups: int, p: float
) -> dict[Total, list[float]]:
    """Return the weighted totals of section "one unit, one weight", without rounding: real numbers, counts in rows."""
    groups = min(max_groups, query.keys.cells)
    owned: dict[Any, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cell = cell_of(row, query)
        if cell is not None and not is_missing(row[column]):
            owned[row[column]][cell].append(row)
    totals = {total: [0.0] * query.keys.cells for total in query.totals}
    for cells in owned.values():
        norm = sum(len(found) ** p for found in cells.values()) ** (1 / p)
        weight = min(1.0, max_rows * groups ** (1 / p) / norm)
        for cell, found in cells.items():
            for total in query.totals:
                totals[total][cell] += weight * sum(contribution(row, total) for row in found)
    return totals
