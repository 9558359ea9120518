"""First rows of each unit, row by row: for the totals of a stream, and for values that the local model reports.

Each row is processed by itself, except for one fact: how many rows of its unit come before it. In a stream these
include the rows of earlier periods. Rows of one period are ordered only by what they add, their group and their value:
so the rows of a unit that count follow from its own rows, and from no order of the frame, which other units could
change. In the local model the order of the frame counts. Nothing here can fail on a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnRequest, collected, source_of, unit_requests
from dpframe.engines.sums.addends import Terms
from dpframe.engines.sums.cells import Cells, Integers, with_conditions
from dpframe.engines.sums.row_totals import by_cell, coded_rows
from dpframe.engines.sums.weights import unit_codes, values_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys
from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.query import Query

NOT_THERE = -1  # no declared category, or the unit has already reported as often as it may


def stream_totals(frame: Any, query: Query, unit: PrivacyUnit, until: int) -> Integers:
    """Return the exact totals of periods 1 to `until` and of each group, in steps: shape (until, groups).

    The first axis of the query's keys is the period. Later rows are left out, and so are rows of a unit that has
    `max_rows` earlier ones.
    """
    source = with_conditions(source_of(frame))
    cells, terms = Cells.of(source, query.keys), Terms.of(query.of_cells)
    groups = query.keys.cells // query.keys.axes[0].size
    lazy = source.load([*cells.requests(), *terms.requests(), *unit_requests(unit)])
    table = coded_rows(lazy, cells, terms, source.rows, *_names(unit))
    table = table.filter(pl.col("cell") < until * groups)
    (total,) = query.of_cells
    if unit.column is not None:
        if unit.nulls == "drop":
            table = table.filter(pl.col("unit").is_not_null())
        code, _ = unit_codes(table["unit"])
        values, cell = values_of(table, total, terms), table["cell"].to_numpy()
        added = np.ones(cell.size, dtype=np.int64) if values is None else values
        table = table.filter(_earliest(code, cell // groups, cell, added, unit.contribution.max_rows))
    sums = by_cell(table, terms, query.keys.cells)[total]
    return sums[: until * groups].reshape(until, groups)


def _earliest(code: Integers, periods: Integers, cell: Integers, added: Integers, most: int) -> NDArray[np.bool_]:
    """Return for each row whether fewer than `most` rows of its unit come before it; rows that add 0 come last.

    Within a period rows are shuffled, always in the same way, so that no small value or first group comes first by
    rule. If the shuffle ties two rows, what they add decides. Rows that add the same are interchangeable.
    """
    order = np.lexsort((added, cell, _shuffled(cell, added), periods, added == 0, code))
    owner = code[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.arange(owner.size) - np.repeat(starts, np.diff(np.append(starts, owner.size)))
    early = np.empty(owner.size, dtype=np.bool_)
    early[order] = before < most
    return early


def _shuffled(cell: Integers, added: Integers) -> NDArray[np.uint64]:
    """Return a pseudorandom number for each pair, modulo 2**64."""
    return mixed(cell.astype(np.uint64) * GOLDEN + added.astype(np.uint64))


def categories_of_rows(frame: Any, keys: Keys, unit: PrivacyUnit, most: int) -> Integers:
    """Return the position of each row's value among the declared ones; NOT_THERE if none, or beyond `most` rows."""
    source = source_of(frame)
    cells = Cells.of(source, keys)
    names = cells.names()
    table = collected(source.load([*cells.requests(), *unit_requests(unit)]).select(*names, *_names(unit)), source.rows)
    codes = np.array(cells.codes(table), dtype=np.int64)
    codes[_beyond(table, unit, most)] = NOT_THERE
    return codes


def numbers_of_rows(frame: Any, column: str, unit: PrivacyUnit, most: int) -> NDArray[np.float64]:
    """Return the number of each row; NaN if it is missing, or beyond the first `most` rows of its unit."""
    source = source_of(frame)
    value: ColumnRequest = ("value", column, "value", None)
    table = collected(source.load([value, *unit_requests(unit)]).select("value", *_names(unit)), source.rows)
    numbers = np.array(table["value"].fill_null(float("nan")).to_numpy(), dtype=np.float64)
    numbers[_beyond(table, unit, most)] = np.nan
    return numbers


def _names(unit: PrivacyUnit) -> list[str]:
    return [] if unit.column is None else ["unit"]


def _beyond(table: pl.DataFrame, unit: PrivacyUnit, most: int) -> NDArray[np.bool_]:
    """Return for each row whether `most` rows of its unit precede it, or it lacks a unit and is to be dropped."""
    if unit.column is None:
        return np.zeros(table.height, dtype=np.bool_)
    codes, _ = unit_codes(table["unit"])
    before = pl.DataFrame({"unit": codes}).select(pl.int_range(pl.len()).over("unit")).to_series().to_numpy()
    missing = table["unit"].is_null().to_numpy() if unit.nulls == "drop" else False
    return np.asarray((before >= most) | missing, dtype=np.bool_)
