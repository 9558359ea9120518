"""Rows to the totals of a stream: of each unit its earliest rows, in the periods and groups that are declared.

Every row is looked at by itself, but for one thing: which rows of its unit stand before it. Rows of one period are in
the order of the frame. Nothing here can fail on a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.engines.aggregates import Terms
from dpframe.engines.cells import Cells, Integers
from dpframe.engines.row_totals import by_cell, coded_rows
from dpframe.engines.source import ColumnRequest, source_of
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import Query


def stream_totals(frame: Any, query: Query, unit: PrivacyUnit, until: int) -> Integers:
    """The exact total of each period up to number `until`, from 1, and each group: (until, groups), in steps.

    The first axis of the query's keys are the periods. Later rows are left out; so are those of a unit that has
    `max_rows` earlier ones.
    """
    source = source_of(frame)
    cells, terms = Cells.of(source, query.keys), Terms.of(query.of_cells)
    groups = query.keys.cells // query.keys.axes[0].size
    owner: list[ColumnRequest] = [] if unit.column is None else [("unit", unit.column, "unit", None)]
    lazy = source.load([*cells.requests(), *terms.requests(), *owner])
    table = coded_rows(lazy, cells, terms, source.rows, *(name for name, *_ in owner))
    kept = table["cell"].to_numpy() < until * groups
    if owner:
        if unit.nulls == "drop":
            kept = kept & table["unit"].is_not_null().to_numpy()
        places = np.flatnonzero(kept)
        code, _ = unit_codes(table["unit"])
        periods = table["cell"].to_numpy()[places] // groups
        kept = np.zeros(table.height, dtype=np.bool_)
        kept[places[_earliest(code[places], periods, unit.contribution.max_rows)]] = True
    (total,) = query.of_cells
    sums = by_cell(table.filter(kept), terms, query.keys.cells)[total]
    return sums[: until * groups].reshape(until, groups)


def _earliest(code: Integers, periods: Integers, most: int) -> NDArray[np.bool_]:
    """Tell of each row whether fewer than `most` rows of its unit come before it."""
    order = np.lexsort((periods, code))  # stable: within a period rows stay in their order
    owner = code[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.arange(owner.size) - np.repeat(starts, np.diff(np.append(starts, owner.size)))
    early = np.empty(owner.size, dtype=np.bool_)
    early[order] = before < most
    return early
