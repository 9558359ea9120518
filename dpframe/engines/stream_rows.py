"""Rows to the totals of a stream: of each unit its earliest rows, in the periods and groups that are declared.

Every row is looked at by itself, but for one thing: how many rows of its unit come before it. Rows of one period are
told apart by what they add alone, their group and their value: so the rows of a unit that count follow from its own
rows, and from no order of the frame, which other units could change. Nothing here can fail on a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Terms
from dpframe.engines.cells import Cells, Integers
from dpframe.engines.conditions import conditional, with_conditions
from dpframe.engines.row_totals import by_cell, coded_rows
from dpframe.engines.source import ColumnRequest, source_of
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.query import Query


def stream_totals(frame: Any, query: Query, unit: PrivacyUnit, until: int) -> Integers:
    """The exact total of each period up to number `until`, from 1, and each group: (until, groups), in steps.

    The first axis of the query's keys are the periods. Later rows are left out; so are those of a unit that has
    `max_rows` earlier ones.
    """
    source = source_of(frame)
    if conditional(name for total in query.of_cells for name in total.columns):
        source = with_conditions(source)
    cells, terms = Cells.of(source, query.keys), Terms.of(query.of_cells)
    groups = query.keys.cells // query.keys.axes[0].size
    owner: list[ColumnRequest] = [] if unit.column is None else [("unit", unit.column, "unit", None)]
    lazy = source.load([*cells.requests(), *terms.requests(), *owner])
    table = coded_rows(lazy, cells, terms, source.rows, *(name for name, *_ in owner))
    table = table.filter(pl.col("cell") < until * groups)
    (total,) = query.of_cells
    if owner:
        if unit.nulls == "drop":
            table = table.filter(pl.col("unit").is_not_null())
        code, _ = unit_codes(table["unit"])
        added = table.with_columns(each=terms.each(total).fill_null(0))["each"].to_numpy()
        cell = table["cell"].to_numpy()
        table = table.filter(_earliest(code, cell // groups, cell, added, unit.contribution.max_rows))
    sums = by_cell(table, terms, query.keys.cells)[total]
    return sums[: until * groups].reshape(until, groups)


def _earliest(code: Integers, periods: Integers, cell: Integers, added: Integers, most: int) -> NDArray[np.bool_]:
    """Tell of each row whether fewer than `most` rows of its unit come before it.

    Within a period they are shuffled, always in the same way, so that neither small values nor the first groups come
    first; where the shuffle does not tell two rows apart they are ordered by what they add. Rows that add the same are
    as good as each other.
    """
    order = np.lexsort((added, cell, _shuffled(cell, added), periods, code))
    owner = code[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.arange(owner.size) - np.repeat(starts, np.diff(np.append(starts, owner.size)))
    early = np.empty(owner.size, dtype=np.bool_)
    early[order] = before < most
    return early


def _shuffled(cell: Integers, added: Integers) -> NDArray[np.uint64]:
    """A number for each pair that looks random, modulo 2**64."""
    return mixed(cell.astype(np.uint64) * GOLDEN + added.astype(np.uint64))
