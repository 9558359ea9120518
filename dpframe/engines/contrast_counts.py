"""Contrasts of tables of counts: rows become the numbers of their declared values, and these are counted by table.

A row with an undeclared value is in no table. A unit's weight counts its rows of declared values in every column, once
for all tables: min(1, max_rows / rows), in whole steps rounded down, so that all of it adds at most max_rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.cells import Cells, Integers
from dpframe.engines.source import ColumnRequest, Source, collected
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contrasts import Subset
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.total import Total
from dpframe.queries.vectors import INNER_BITS, TableContrasts, vector_of

MOST_ROWS = 2**32  # of a frame, which numbers them by 32 bits: a larger bound takes nothing away


def contrasts_in(query: Query) -> TableContrasts | None:
    """The contrasts that a query measures; None where it asks something else."""
    vectors = (vector_of(total, TableContrasts) for total in query.of_cells)
    return next((vector for vector in vectors if vector is not None), None)


def declared_rows(source: Source, vector: TableContrasts, unit: PrivacyUnit) -> pl.DataFrame:
    """The rows of declared values in every column: their numbers, a column for each attribute, and the unit."""
    attributes = [_cells(source, axis, number) for number, axis in enumerate(vector.axes)]
    owner: list[ColumnRequest] = [] if unit.column is None else [("unit", unit.column, "unit", None)]
    units = [name for name, *_ in owner]
    lazy = source.load([*(request for cells in attributes for request in cells.requests()), *owner])
    names = [name for cells in attributes for name in cells.names()]
    table = collected(lazy.select(*names, *units), source.rows)
    codes = {f"place{number}": cells.codes(table) for number, cells in enumerate(attributes)}
    declared = np.logical_and.reduce([code >= 0 for code in codes.values()])
    places = [pl.Series(name, code[declared].astype(np.int32)) for name, code in codes.items()]
    coded = pl.DataFrame([*places, *(table[name].filter(pl.Series(declared)) for name in units)])
    return coded.filter(pl.col("unit").is_not_null()) if units and unit.nulls == "drop" else coded


def contrasts_of_rows(table: pl.DataFrame, query: Query, unit: PrivacyUnit) -> dict[Total, Integers]:
    """The contrasts of such rows; where there is a unit, of all rows of some units."""
    vector = contrasts_in(query)
    assert vector is not None
    design = vector.design
    places = [table[f"place{number}"].to_numpy() for number in range(len(design.sizes))]
    steps = None if unit.column is None else _steps(table["unit"], unit.contribution.max_rows).astype(np.float64)

    def count(attributes: Subset) -> Integers:
        code: Any = np.zeros(table.height, dtype=np.int64)
        for i in attributes:
            code = code * design.sizes[i] + places[i]
        # the steps of a frame add up below 2**53, so that as floats they are exact
        return np.bincount(code, weights=steps, minlength=design.cells(attributes)).astype(np.int64)

    return {query.of_cells[0]: design.measured(count)}


def _steps(owner: pl.Series, most: int) -> Integers:
    """The weight of each row in steps of 2**-16: that of its unit."""
    code, units = unit_codes(owner)
    rows = np.bincount(code, minlength=units).astype(np.int64)
    in_full = min(most, MOST_ROWS) << INNER_BITS
    return np.asarray(np.minimum(2**INNER_BITS, in_full // np.maximum(rows, 1)))[code]


def _cells(source: Source, axis: Any, number: int) -> Cells:
    """The places of one column's values among the declared ones, under a name of its own."""
    return Cells.of(source, Keys((axis,)), f"attribute{number}_")
