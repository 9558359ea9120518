"""Columns under conditions: ``where=`` of statistics, for every engine and every kind of Total.

The one place where a condition meets rows. A `Conditional` column has the value of its column in the rows where the
conditions hold, and is missing in all others. So whatever reads columns of a `Source` reads it as any column: sums,
counts, vectors, kernels, units, checks. Places of values are found as those of keys and bins are, and cannot fail on a
value; nothing is decided by more than the row itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnRequest, Role, Source, collected
from dpframe.engines.sums.cells import Cells
from dpframe.queries.keys import Keys
from dpframe.queries.where import Condition, Conditional, GroupBounds, RangeAxis, is_compared

Holds = NDArray[np.bool_]
Integers = NDArray[np.int64]


def with_conditions(source: Source) -> Source:
    """The same frame, whose columns can be asked for under conditions too."""
    return replace(source, bring=partial(_loaded, source))


def _loaded(source: Source, requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
    """The columns for their roles; the columns of conditions are brought over too, and left behind."""
    asked = [column for _, column, _, _ in requests if isinstance(column, Conditional)]
    if not asked:
        return source.bring(requests)
    every = dict.fromkeys(condition for column in asked for condition in column.conditions)
    values = dict.fromkeys(Condition(axis) for column in asked for axis in column.compared)
    cells = {
        condition: Cells.of(source, Keys((condition.axis,)), f"where{number} ")
        for number, condition in enumerate({**every, **values})
    }
    plain = [(name, _read(column), _role(column, role), of) for name, column, role, of in requests]
    own: list[ColumnRequest] = [(name, column, role, of) for name, column, role, of in plain if column is not None]
    more = [request for each in cells.values() for request in each.requests()]
    table = collected(source.bring([*own, *more]), source.rows)
    places = {condition: each.codes(table) for condition, each in cells.items()}
    holds = {condition: _holds(condition, places[condition]) for condition in every}
    everywhere = np.ones(table.height, dtype=np.bool_)
    inside = {
        those: pl.Series(np.logical_and.reduce([everywhere, *(holds[condition] for condition in those)]))
        for those in dict.fromkeys(column.conditions for column in asked)
    }
    return pl.DataFrame(
        [_column(table, name, column, role, inside, places) for name, column, role, _ in requests]
    ).lazy()


def _read(column: str) -> str | None:
    return column.of if isinstance(column, Conditional) else column


def _role(column: str, role: Role) -> Role:
    """Of a column that is compared with a value it matters whether something is there."""
    return "present" if is_compared(column) else role


def _holds(condition: Condition, places: Integers) -> Holds:
    """Tell of each row whether its value is a declared one, or lies between the ends; a missing one does neither."""
    axis = condition.axis
    return np.asarray(places == axis.inside if isinstance(axis, RangeAxis) else places >= 0)


def _on_scale(values: pl.Series, groups: GroupBounds, places: Integers) -> pl.Series:
    """Values as numbers of one scale, by the bounds of their group; NaN of undeclared groups, and missing values."""
    lower, upper = (np.take(ends, np.maximum(places, 0)) for ends in np.array(groups.bounds, dtype=np.float64).T)
    with np.errstate(all="ignore"):  # whatever a value is, nothing is said of it
        numbers = values.cast(pl.Float64).to_numpy()
        if groups.places:
            found = (numbers - lower) / (upper - lower)
        else:
            found = np.clip(numbers, lower, upper) / np.maximum(np.abs(lower), np.abs(upper))
    return pl.Series(values.name, np.where(places < 0, np.nan, found))


def _column(
    table: pl.DataFrame,
    name: str,
    column: str,
    role: Role,
    insides: dict[tuple[Condition, ...], pl.Series],
    places: dict[Condition, Integers],
) -> pl.Series:
    """A column as it was asked for: under conditions it is missing where one of them does not hold."""
    if not isinstance(column, Conditional):
        return table[name]
    inside = insides[column.conditions]
    if column.of is None:
        return inside.alias(name)
    if role == "present":
        return table[name] & inside
    if role == "key":  # of a value that is compared: another column says whether it is there
        return table[name]
    values = table[name]
    if column.value is not None:  # which is told of the values that are there
        inside, values = inside & values, pl.Series(name, places[Condition(column.value)] >= 0).cast(pl.Float64)
    if column.groups is not None:
        values = _on_scale(values, column.groups, places[Condition(column.groups.axis)])
    return values.zip_with(inside, pl.Series([None], dtype=values.dtype))
