"""Rows to cells: keys by their position among the declared ones, bins by their edges exactly as numpy.histogram.

Each way to find a position gives one to each row, whatever the row holds: declared keys are different as the column
compares them, and none of the ways can fail on a value. Which one is taken follows from public facts alone: the dtype
and the declared keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.even_bins import EvenBins
from dpframe.engines.found_labels import told_apart
from dpframe.engines.identity import NOWHERE, Declared, as_stored, combinations, combined, declared
from dpframe.engines.source import FEW_ROWS, ColumnRequest, Source, collected
from dpframe.queries.bins import BinAxis
from dpframe.queries.discovery import FoundAxis
from dpframe.queries.keys import KeyAxis, Keys

Integers = NDArray[np.int64]

BLOCK = 2**16  # values at a time: they stay in the processor's cache
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
    def of(cls, source: Source, keys: Keys) -> Self:
        """Number the columns."""
        columns = {column: f"key{number}" for number, column in enumerate(keys.columns)}
        keys_of_columns = {
            column: declared_keys(source, axis, position)
            for axis in keys.axes
            if isinstance(axis, KeyAxis)
            for position, column in enumerate(axis.columns)
        }
        return cls(source, keys, columns, keys_of_columns)

    @property
    def bins(self) -> list[BinAxis]:
        """The axes that are bins."""
        return [axis for axis in self.keys.axes if isinstance(axis, BinAxis)]

    def requests(self) -> list[ColumnRequest]:
        """The columns to load."""
        requests: list[ColumnRequest] = []
        for axis in self.keys.axes:
            for column in axis.columns:
                name = self.columns[column]
                if isinstance(axis, BinAxis):
                    requests.append((name, column, "bin", axis.kind))
                elif isinstance(axis, KeyAxis):
                    requests.append((name, column, "key", self.declared[column]))
        return requests

    def names(self) -> list[str]:
        """The engine's columns."""
        return list(self.columns.values())

    def tick(self, axis: BinAxis) -> int:
        """The nanoseconds in one of the engine's integers for a column of dates, datetimes or durations."""
        return self.source.column(axis.column).tick

    def codes(self, table: pl.DataFrame) -> Integers:
        """The row-major number of each row's cell, OUTSIDE where it falls in none."""
        code: Integers | None = None
        for axis in self.keys.axes:
            axis_code = self.axis_codes(axis, table)
            code = axis_code if code is None else _combined(code, axis_code, axis.size)
        return np.zeros(table.height, dtype=np.int64) if code is None else code

    def axis_codes(self, axis: Any, table: pl.DataFrame) -> Integers:
        """The number of each row's cell in one direction, OUTSIDE where it falls in none."""
        return self._bin_codes(axis, table) if isinstance(axis, BinAxis) else self._key_codes(axis, table)

    def _key_codes(self, axis: Any, table: pl.DataFrame) -> Integers:
        keys = [self.declared[column] for column in axis.columns]
        *inner, rows = combinations(keys)
        code = self._positions(axis.columns[0], keys[0], table)
        for column, column_keys, known in zip(axis.columns[1:], keys[1:], inner, strict=True):
            both = combined(code, self._positions(column, column_keys, table), column_keys.size)
            code = positions(pl.Series("", both), known.tolist())
        if np.array_equal(rows, np.arange(rows.size)):
            return code
        cell_of = np.full(rows.max(initial=NOWHERE) + 2, NOWHERE)  # of each number; the last entry is for NOWHERE
        cell_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        return np.asarray(cell_of[code])

    def _positions(self, column: str, keys: Declared, table: pl.DataFrame) -> Integers:
        """The position of each row among the keys of one column."""
        values = table[self.columns[column]]
        if self.source.column(column).coded:
            return values.to_numpy()
        code = positions(values, keys.values)
        if keys.missing == NOWHERE or not values.null_count():
            return code
        return np.where(values.is_null().to_numpy(), keys.missing, code)

    def _bin_codes(self, axis: BinAxis, table: pl.DataFrame) -> Integers:
        column = table[self.columns[axis.column]]
        edges, closed = half_open(axis, self.tick(axis)), axis.outside == "clip"
        codes = bin_codes(column.fill_null(0).to_numpy(), edges, closed)
        return np.where(column.is_null().to_numpy(), OUTSIDE, codes) if column.null_count() else codes


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
    if isinstance(axis, FoundAxis):
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


def close_together(keys: Sequence[int]) -> bool:
    """Tell whether a table of all integers from the least key to the greatest is small."""
    return max(keys) - min(keys) <= LOOK_UP and max(map(abs, keys)) < 2**62


def _looked_up(values: pl.Series, keys: Sequence[int]) -> Integers:
    """Positions of integer keys that lie close together, from an array."""
    low, high = min(keys), max(keys)
    table = np.full(high - low + 3, NOWHERE, dtype=np.int64)  # an entry on either side for all that lies beyond
    table[np.array(keys, dtype=np.int64) - low + 1] = np.arange(len(keys))
    near = values.cast(pl.Int64).fill_null(low - 1).to_numpy()
    return table.take(near - (low - 1), mode="clip")  # a difference that wraps is still outside


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


def half_open(axis: BinAxis, tick: int) -> NDArray[Any]:
    """The edges in the column's own numbers, such that bin i is edges[i] <= value < edges[i + 1] for every i.

    A last bin that is closed, as NumPy's is, has its edge moved up by one float or one tick. Edges between two ticks of
    a coarser column move up to the next tick, which changes no comparison.
    """
    if axis.kind == "number":
        edges = np.array(axis.edges, dtype=np.float64)
        if axis.closed:
            edges[-1] = math.nextafter(edges[-1], math.inf)
    else:
        ticks = [-(-int(edge) // tick) for edge in axis.edges]
        if axis.closed:
            ticks[-1] = int(axis.edges[-1]) // tick + 1
        edges = np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)
    if axis.outside == "clip":
        lowest, highest = (-math.inf, math.inf) if axis.kind == "number" else (-(2**63), 2**63 - 1)
        edges[0], edges[-1] = lowest, highest
    return edges


def counted(values: NDArray[Any], edges: NDArray[Any], closed: bool) -> NDArray[np.int64]:
    """The number of values in each half-open bin; of uneven ones by sorting blocks: faster than a search per value."""
    even = None if edges.size > BLOCK else EvenBins.of(edges)
    if even is not None:
        return even.counted(values)
    below = np.zeros(edges.size, dtype=np.int64)
    for start in range(0, values.size, BLOCK):
        block = np.sort(values[start : start + BLOCK])  # NaN last, above every edge
        below += np.searchsorted(block, edges)
        if closed:  # an infinite last edge also takes what equals it, but no NaN
            below[-1] += np.searchsorted(block, edges[-1], side="right") - np.searchsorted(block, edges[-1])
    return np.diff(below)


def bin_codes(values: NDArray[Any], edges: NDArray[Any], closed: bool) -> NDArray[np.int64]:
    """The bin of each value, OUTSIDE for a value in none (NaN among them)."""
    even = EvenBins.of(edges)
    guess = near_uniform(edges) if even is None else None
    codes = np.empty(values.size, dtype=np.int64)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        if even is not None:
            code = even.places(block)
            codes[start : start + BLOCK] = np.where(code < even.size, code, OUTSIDE)
            continue
        inside = (block >= edges[0]) & ((block <= edges[-1]) if closed else (block < edges[-1]))
        if guess is None:
            code = np.searchsorted(edges, block, side="right") - 1
        else:
            code = _guessed(block, edges, *guess)
        codes[start : start + BLOCK] = np.where(inside, np.minimum(code, edges.size - 2), OUTSIDE)
    return codes


def near_uniform(edges: NDArray[Any]) -> tuple[float, float] | None:
    """Origin and bins per unit if guessing by division is off by at most one bin; None where it might be more."""
    if edges.size < 3 or not np.isfinite(edges.astype(np.float64)).all():
        return None
    numbers = edges.astype(np.float64)
    width = (numbers[-2] - numbers[0]) / (numbers.size - 2)
    if width <= 0:
        return None
    places = (numbers[:-1] - numbers[0]) / width
    return (float(numbers[0]), 1.0 / width) if np.abs(places - np.arange(places.size)).max() < 0.25 else None


def _guessed(block: NDArray[Any], edges: NDArray[Any], origin: float, per_unit: float) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore", over="ignore"):
        guess = (block.astype(np.float64) - origin) * per_unit
    code = np.clip(np.nan_to_num(guess, nan=0.0), 0, edges.size - 2).astype(np.int64)
    code -= (block < edges[code]) & (code > 0)
    code += (block >= edges[code + 1]) & (code < edges.size - 2)
    return code
