"""The value of each row, row by row: the only look at rows of the local model, whose reports are made of single values.

The order of rows stays. Nothing here can fail on a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.cells import Cells, Integers
from dpframe.engines.source import ColumnRequest, collected, source_of
from dpframe.engines.weights import unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys

NOT_THERE = -1  # of a row without a declared category, or whose unit has reported before as often as it may


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
