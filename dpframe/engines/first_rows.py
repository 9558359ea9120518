"""Rows one by one, of each unit the first ones: the totals of a stream, and the values that the local model reports.

Every row is looked at by itself, except for one thing: how many rows of its unit come before it. In a stream these are
the rows of earlier periods. Rows of one period are told apart by what they add alone, their group and their value: so
the rows of a unit that count follow from its own rows, and from no order of the frame, which other units could change.
In the local model the order of the frame stays. Nothing here can fail on a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnRequest, collected, source_of
from dpframe.engines.sums.addends import Terms
from dpframe.engines.sums.cells import Cells, Integers, with_conditions
from dpframe.engines.sums.row_totals import by_cell, coded_rows
from dpframe.engines.sums.weights import unit_codes, values_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys
from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.query import Query

NOT_THERE = -1  # of a row without a declared category, or whose unit has reported before as often as it may


def stream_totals(frame: Any, query: Query, unit: PrivacyUnit, until: int) -> Integers:
    """The exact total of each period up to number `until`, from 1, and each group: (until, groups), in steps.

    The first axis of the query's keys are the periods. Later rows are left out; so are those of a unit that has
    `max_rows` earlier ones.
    """
    source = with_conditions(source_of(frame))
    cells, terms = Cells.of(source, query.keys), Terms.of(query.of_cells)
    groups = query.keys.cells // query.keys.axes[0].size
    lazy = source.load([*cells.requests(), *terms.requests(), *_of_unit(unit)])
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


def categories_of_rows(frame: Any, keys: Keys, unit: PrivacyUnit, most: int) -> Integers:
    """The place of each row's value among the declared ones; NOT_THERE for any other, and beyond `most` rows a unit."""
    source = source_of(frame)
    cells = Cells.of(source, keys)
    names = cells.names()
    table = collected(source.load([*cells.requests(), *_of_unit(unit)]).select(*names, *_names(unit)), source.rows)
    codes = np.array(cells.codes(table), dtype=np.int64)
    codes[_beyond(table, unit, most)] = NOT_THERE
    return codes


def numbers_of_rows(frame: Any, column: str, unit: PrivacyUnit, most: int) -> NDArray[np.float64]:
    """Each row's number, NaN where there is none, and beyond `most` rows a unit."""
    source = source_of(frame)
    value: ColumnRequest = ("value", column, "value", None)
    table = collected(source.load([value, *_of_unit(unit)]).select("value", *_names(unit)), source.rows)
    numbers = np.array(table["value"].fill_null(float("nan")).to_numpy(), dtype=np.float64)
    numbers[_beyond(table, unit, most)] = np.nan
    return numbers


def _of_unit(unit: PrivacyUnit) -> list[ColumnRequest]:
    return [] if unit.column is None else [("unit", unit.column, "unit", None)]


def _names(unit: PrivacyUnit) -> list[str]:
    return [] if unit.column is None else ["unit"]


def _beyond(table: pl.DataFrame, unit: PrivacyUnit, most: int) -> NDArray[np.bool_]:
    """Tell whether so many rows of the same unit stand before a row, or it has no unit and such rows are left out."""
    if unit.column is None:
        return np.zeros(table.height, dtype=np.bool_)
    codes, _ = unit_codes(table["unit"])
    before = pl.DataFrame({"unit": codes}).select(pl.int_range(pl.len()).over("unit")).to_series().to_numpy()
    missing = table["unit"].is_null().to_numpy() if unit.nulls == "drop" else False
    return np.asarray((before >= most) | missing, dtype=np.bool_)
