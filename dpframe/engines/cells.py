"""Rows to cells: keys by their position among the declared ones, bins by their edges exactly as numpy.histogram.

Each way to find a position gives one to each row, whatever the row holds: declared keys are different as the column
compares them, and none of the ways can fail on a value. Which one is taken follows from public facts alone: the dtype
and the declared keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.found_labels import told_apart
from dpframe.engines.half_open import HalfOpenBins
from dpframe.engines.identity import NOWHERE, Declared, as_stored, combinations, combined, declared
from dpframe.engines.source import FEW_ROWS, ColumnRequest, ColumnType, Source, collected
from dpframe.queries.bins import BinAxis, Coding
from dpframe.queries.keys import KeyAxis, Keys, RestAxis

Integers = NDArray[np.int64]

NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # integers that fit Int64
FEW_KEYS = 2**8  # of strings, up to which their Enum is kept
LOOK_UP = 2**20  # integers between the least and the greatest key, for a table of them all
OUTSIDE = NOWHERE  # the code of a value in no cell


@dataclass(frozen=True)
class Cells:
    """The cells of a query, and the engine's columns from which a row's cell follows."""

    source: Source
    keys: Keys
    columns: dict[str, str]  # the caller's column -> the engine's
    declared: dict[str, Declared]  # the caller's column -> its keys, as the column compares them

    @classmethod
    def of(cls, source: Source, keys: Keys, name: str = "key") -> Self:
        """Number the columns."""
        columns = {column: f"{name}{number}" for number, column in enumerate(keys.columns)}
        declared: dict[str, Declared] = {}
        for axis in keys.axes:
            declared |= WAYS[axis.coding].declared(source, axis)
        return cls(source, keys, columns, declared)

    @property
    def bins(self) -> list[BinAxis]:
        """The axes that are bins."""
        axes: Sequence[Any] = self.keys.axes
        return [axis for axis in axes if axis.coding == "bins"]

    def requests(self) -> list[ColumnRequest]:
        """The columns to load."""
        return [request for axis in self.keys.axes for request in WAYS[axis.coding].requests(self, axis)]

    def names(self) -> list[str]:
        """The engine's columns."""
        return list(self.columns.values())

    @cached_property
    def half_open(self) -> dict[str, HalfOpenBins]:
        """The bins of each column that has some: worked out once, however many blocks of rows there are."""
        return {axis.column: HalfOpenBins.of(axis, self.source.column(axis.column).tick) for axis in self.bins}

    def codes(self, table: pl.DataFrame) -> Integers:
        """The row-major number of each row's cell, OUTSIDE where it falls in none."""
        code: Integers | None = None
        for axis in self.keys.axes:
            axis_code = self.axis_codes(axis, table)
            code = axis_code if code is None else _combined(code, axis_code, axis.size)
        return np.zeros(table.height, dtype=np.int64) if code is None else code

    def axis_codes(self, axis: Any, table: pl.DataFrame) -> Integers:
        """The number of each row's cell in one direction, OUTSIDE where it falls in none."""
        return WAYS[axis.coding].codes(self, axis, table)

    def are_positions(self, column: str, schema: pl.Schema) -> bool:
        """Tell whether the keys of a column were brought over as positions among the declared ones."""
        return come_as_positions(self.source.column(column), schema[self.columns[column]])

    def positions(self, column: str, table: pl.DataFrame) -> Integers:
        """The position of each row among the keys of one column."""
        keys = self.declared[column]
        values = table[self.columns[column]]
        if come_as_positions(self.source.column(column), values.dtype):
            return values.cast(pl.Int64).to_numpy()
        code = positions(values, keys.values)
        if keys.missing == NOWHERE or not values.null_count():
            return code
        return np.where(values.is_null().to_numpy(), keys.missing, code)


@dataclass(frozen=True)
class Way:
    """From values to the places of an axis: what is declared of its columns, what is loaded, how rows are coded."""

    declared: Callable[[Source, Any], dict[str, Declared]]
    requests: Callable[[Cells, Any], list[ColumnRequest]]
    codes: Callable[[Cells, Any, pl.DataFrame], Integers]


def _declared_in_all(source: Source, axis: KeyAxis) -> dict[str, Declared]:
    return {column: declared_keys(source, axis, position) for position, column in enumerate(axis.columns)}


def _key_requests(cells: Cells, axis: KeyAxis) -> list[ColumnRequest]:
    return [(cells.columns[column], column, "key", cells.declared[column]) for column in axis.columns]


def _key_codes(cells: Cells, axis: KeyAxis, table: pl.DataFrame) -> Integers:
    *inner, rows = combinations([cells.declared[column] for column in axis.columns])
    code = cells.positions(axis.columns[0], table)
    for column, known in zip(axis.columns[1:], inner, strict=True):
        both = combined(code, cells.positions(column, table), cells.declared[column].size)
        code = positions(pl.Series("", both), known.tolist())
    if np.array_equal(rows, np.arange(rows.size)):
        return code
    cell_of = np.full(rows.max(initial=NOWHERE) + 2, NOWHERE)  # of each number; the last entry is for NOWHERE
    cell_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return np.asarray(cell_of[code])


def _rest_codes(cells: Cells, axis: RestAxis, table: pl.DataFrame) -> Integers:
    """Every row is at a place: at the last one where its value is none of the declared keys."""
    codes = _key_codes(cells, axis.declared, table)
    return np.where(codes < 0, axis.declared.size, codes)


def _bin_requests(cells: Cells, axis: BinAxis) -> list[ColumnRequest]:
    return [(cells.columns[axis.column], axis.column, "bin", axis.kind)]


def _bin_codes(cells: Cells, axis: BinAxis, table: pl.DataFrame) -> Integers:
    column = table[cells.columns[axis.column]]
    codes = cells.half_open[axis.column].codes(column.fill_null(0).to_numpy())
    return np.where(column.is_null().to_numpy(), OUTSIDE, codes) if column.null_count() else codes


_BY_KEYS = Way(_declared_in_all, _key_requests, _key_codes)
WAYS: Mapping[Coding, Way] = {
    "keys": _BY_KEYS,
    "found": _BY_KEYS,
    "rest": Way(
        lambda source, axis: _declared_in_all(source, axis.declared),
        lambda cells, axis: _key_requests(cells, axis.declared),
        _rest_codes,
    ),
    "bins": Way(lambda source, axis: {}, _bin_requests, _bin_codes),
}


def _combined(outer: Integers, inner: Integers, size: int) -> Integers:
    """Row-major codes of two directions; outside where either is."""
    code = outer * size + inner
    if min(outer.min(initial=0), inner.min(initial=0)) < 0:
        code[(outer < 0) | (inner < 0)] = OUTSIDE
    return code


def placed(values: Integers, code: Integers, cells: int) -> Integers:
    """Values added up in the cells of their codes, modulo 2**64; values outside are left out."""
    inside = code >= 0
    return added(values[inside], code[inside], cells)


def added(values: Integers, code: Integers, cells: int) -> Integers:
    """Values added up in the cells of their codes, modulo 2**64."""
    whole = np.zeros(cells, dtype=np.int64)
    np.add.at(whole, code, values)
    return whole


def declared_keys(source: Source, axis: KeyAxis, position: int) -> Declared:
    """The declared keys of one column, as it compares them; the schema has refused columns that compare none."""
    column = source.column(axis.columns[position])
    assert column.identity is not None
    if axis.coding == "found":
        return as_stored([told_apart(code, column) for code in axis.values(position)])
    return declared(axis.values(position), column.identity)


def positions(values: pl.Series, keys: Sequence[Any]) -> Integers:
    """The position of each value among keys of which no two are equal; NOWHERE for any other, and for null."""
    if not keys:
        return np.full(len(values), NOWHERE, dtype=np.int64)
    if values.dtype == pl.String:
        return _spelled(values, keys)
    if values.dtype in NARROW and close_together(keys):
        return _looked_up(values, keys)
    return _joined(values, keys)


def come_as_positions(column: ColumnType, dtype: pl.DataType) -> bool:
    """Tell whether keys were brought over, in this dtype, as positions among the declared ones: strings of pandas too.

    No other column that is told apart by texts comes over as integers, and objects always come as positions.
    """
    return column.coded or (column.identity is not None and column.identity.form == "text" and dtype.is_integer())


def close_together(keys: Sequence[int]) -> bool:
    """Tell whether a table of all integers from the least key to the greatest is small."""
    return max(keys) - min(keys) <= LOOK_UP and max(map(abs, keys)) < 2**62


def table_of(keys: Sequence[int], entries: NDArray[Any], beyond: int) -> tuple[NDArray[Any], int]:
    """A table of integer keys that lie close together, and the integer that its first entry is of.

    It has the entry of each key, and `beyond` for the integers between them and for one on either side of them all:
    where an integer lies farther out, it is taken for one of these two.
    """
    first = min(keys) - 1
    table = np.full(max(keys) + 2 - first, beyond, dtype=entries.dtype)
    table[np.array(keys, dtype=np.int64) - first] = entries
    return table, first


def filled(values: pl.Series, first: int) -> pl.Series:
    """Integers to look for in a table: of 64 bits, and a missing one as one that is no key."""
    whole = values.cast(pl.Int64)
    return whole.fill_null(first) if whole.null_count() else whole


def _looked_up(values: pl.Series, keys: Sequence[int]) -> Integers:
    """Positions of integer keys that lie close together, from an array."""
    table, first = table_of(keys, np.arange(len(keys)), NOWHERE)
    return table.take(filled(values, first).to_numpy() - first, mode="clip")  # a difference that wraps is still outside


def _spelled(values: pl.Series, keys: Sequence[str]) -> Integers:
    """Positions of strings, as an Enum of the declared ones; a string that is none of them becomes null."""
    if len(values) >= FEW_ROWS:
        places = pl.col("key").cast(pl.Enum(keys), strict=False).to_physical().cast(pl.Int64).fill_null(NOWHERE)
        return collected(values.alias("key").to_frame().lazy().select(places), len(values)).to_series().to_numpy()
    spelled = _enum(tuple(keys)) if len(keys) <= FEW_KEYS else pl.Enum(keys)
    number = values.cast(spelled, strict=False).to_physical().cast(pl.Int64)  # the same, with no query to plan
    return (number.fill_null(NOWHERE) if number.null_count() else number).to_numpy()


@lru_cache(maxsize=64)
def _enum(keys: tuple[str, ...]) -> pl.Enum:
    return pl.Enum(keys)


def _joined(values: pl.Series, keys: Sequence[Any]) -> Integers:
    """Positions by a join. The keys are different, so each row finds one of them or none: no row is multiplied."""
    places = pl.Series("place", range(len(keys)), dtype=pl.Int64)
    right = pl.DataFrame([pl.Series("key", keys, dtype=values.dtype), places])
    left = values.alias("key").to_frame()
    return left.join(right, on="key", how="left", maintain_order="left")["place"].fill_null(NOWHERE).to_numpy()
