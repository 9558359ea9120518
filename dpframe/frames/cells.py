"""Rows to cells: declared keys by a join, bins by comparison with their edges exactly as numpy.histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.frames.check import fits
from dpframe.frames.source import Source, Wanted, collected, tick_of
from dpframe.queries.cells import KeyAxis, Keys
from dpframe.queries.edges import BinAxis, temporal_edge

Integers = NDArray[np.int64]

BLOCK = 2**16  # values at a time: they stay in the processor's cache
NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # integers that fit Int64
LOOK_UP = 2**20  # integers between the least and the greatest key, for a table of them all
OUTSIDE = -1  # the code of a value in no cell


@dataclass(frozen=True)
class Cells:
    """The cells of a query, and the engine's columns from which a row's cell follows."""

    source: Source
    keys: Keys
    columns: dict[str, str]  # the caller's column -> the engine's

    @classmethod
    def of(cls, source: Source, keys: Keys) -> Self:
        """Number the columns."""
        return cls(source, keys, {column: f"key{place}" for place, column in enumerate(keys.columns)})

    @property
    def bins(self) -> list[BinAxis]:
        """The axes that are bins."""
        return [axis for axis in self.keys.axes if isinstance(axis, BinAxis)]

    def wanted(self) -> list[Wanted]:
        """What to bring over."""
        wanted: list[Wanted] = []
        for axis in self.keys.axes:
            for place, column in enumerate(axis.columns):
                name = self.columns[column]
                if isinstance(axis, BinAxis):
                    wanted.append((name, column, "bin", axis.kind))
                elif isinstance(axis, KeyAxis):
                    wanted.append((name, column, "key", declared_values(axis, place)))
        return wanted

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
            found = self._bin_codes(axis, table) if isinstance(axis, BinAxis) else self._key_codes(axis, table)
            code = found if code is None else _combined(code, found, axis.size)
        return np.zeros(table.height, dtype=np.int64) if code is None else code

    def _key_codes(self, axis: Any, table: pl.DataFrame) -> Integers:
        names = [self.columns[column] for column in axis.columns]
        coded = [self.source.column(column).coded for column in axis.columns]
        dtypes = [self._key_dtype(column, table.schema[name]) for column, name in zip(axis.columns, names, strict=True)]
        keys = key_table(axis, names, dtypes, coded)
        if len(names) == 1 and table.height > keys.height:
            column = table[names[0]]
            for quick in (_looked_up, _spelled):
                if (found := quick(column, keys)) is not None:
                    return found
        joined = table.select(names).join(keys, on=names, how="left", nulls_equal=True, maintain_order="left")
        return joined["cell"].fill_null(OUTSIDE).to_numpy()

    def _key_dtype(self, column: str, brought: pl.DataType) -> pl.DataType:
        """The dtype in which declared keys are compared: a Decimal's own, though it is brought as a string."""
        own = self.source.column(column).polars
        return own if own is not None and own.is_decimal() else brought

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


def key_table(
    axis: KeyAxis, names: Sequence[str], dtypes: Sequence[pl.DataType], coded: Sequence[bool]
) -> pl.DataFrame:
    """The declared keys in the columns' dtypes, with their position; keys that no value can equal are left out."""
    columns: dict[str, list[Any]] = {name: [] for name in names}
    positions = []
    distinct = [{value: code for code, value in enumerate(declared_values(axis, place))} for place in range(len(names))]
    for position, row in enumerate(axis.rows):
        if all(
            flag or value is None or fits(value, dtype) for value, dtype, flag in zip(row, dtypes, coded, strict=True)
        ):
            positions.append(position)
            for name, value, place, flag in zip(names, row, range(len(names)), coded, strict=True):
                columns[name].append(distinct[place][value] if flag else value)
    series = [
        pl.Series(name, values, dtype=pl.Int64) if flag else _keys_as(name, values, dtype)
        for (name, values), dtype, flag in zip(columns.items(), dtypes, coded, strict=True)
    ]
    return pl.DataFrame([*series, pl.Series("cell", positions, dtype=pl.Int64)])


def _looked_up(column: pl.Series, keys: pl.DataFrame) -> Integers | None:
    """Codes of integer keys that lie close together, from an array instead of a join; None where they do not."""
    declared = keys.to_series(0)
    if column.dtype not in NARROW or declared.null_count() or keys.height == 0:
        return None
    low, high = int(declared.min()), int(declared.max())  # type: ignore[arg-type]
    if high - low > LOOK_UP or not -(2**62) < low <= high < 2**62:
        return None
    table = np.full(high - low + 3, OUTSIDE, dtype=np.int64)  # an entry on either side for all that lies beyond
    table[declared.cast(pl.Int64).to_numpy() - low + 1] = keys["cell"].to_numpy()
    near = column.cast(pl.Int64).fill_null(low - 1).to_numpy()
    return table.take(near - (low - 1), mode="clip")  # a difference that wraps is still outside


def _spelled(column: pl.Series, keys: pl.DataFrame) -> Integers | None:
    """Codes of strings as an Enum of the declared ones; None for other columns, and where a missing key is declared."""
    declared = keys.to_series(0)
    if column.dtype != pl.String or declared.null_count() or keys.height == 0:
        return None
    places = pl.col(column.name).cast(pl.Enum(declared), strict=False).to_physical().cast(pl.Int64)
    found = collected(column.to_frame().lazy().select(places.fill_null(keys.height)), len(column))
    return np.append(keys["cell"].to_numpy(), OUTSIDE).take(found.to_series().to_numpy())


def declared_values(axis: KeyAxis, place: int) -> list[Any]:
    """The distinct declared keys of one column, in order."""
    return list(dict.fromkeys(axis.values(place)))


def _keys_as(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    if dtype.is_integer():
        return pl.Series(name, [None if value is None else int(value) for value in values], dtype=dtype)
    if dtype.is_decimal():
        exact = [None if value is None else Decimal(str(value)) for value in values]
        return pl.Series(name, exact, dtype=dtype).cast(pl.String)
    if dtype.is_float():
        return pl.Series(name, [None if value is None else float(value) + 0.0 for value in values], dtype=dtype)
    if dtype in (pl.Date, pl.Datetime, pl.Duration):
        ticks = [None if value is None else temporal_edge(value)[0] // tick_of(dtype) for value in values]
        return pl.Series(name, ticks, dtype=pl.Int64).cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    return pl.Series(name, values, dtype=dtype, strict=False)


def half_open(axis: BinAxis, tick: int) -> NDArray[Any]:
    """The edges in the column's own numbers, such that bin i is edges[i] <= value < edges[i + 1] for every i.

    The last bin is closed, as NumPy's: its edge moves up by one float or one tick. Edges between two ticks of a coarser
    column move up to the next tick, which changes no comparison.
    """
    if axis.kind == "number":
        edges = np.array(axis.edges, dtype=np.float64)
        edges[-1] = math.nextafter(edges[-1], math.inf)
    else:
        ticks = [-(-int(edge) // tick) for edge in axis.edges]
        ticks[-1] = int(axis.edges[-1]) // tick + 1
        edges = np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)
    if axis.outside == "clip":
        lowest, highest = (-math.inf, math.inf) if axis.kind == "number" else (-(2**63), 2**63 - 1)
        edges[0], edges[-1] = lowest, highest
    return edges


def counted(values: NDArray[Any], edges: NDArray[Any], closed: bool) -> NDArray[np.int64]:
    """How many values lie in each half-open bin; by sorting blocks, which is faster than a search per value."""
    below = np.zeros(edges.size, dtype=np.int64)
    for start in range(0, values.size, BLOCK):
        block = np.sort(values[start : start + BLOCK])  # NaN last, above every edge
        below += np.searchsorted(block, edges)
        if closed:  # an infinite last edge also takes what equals it, but no NaN
            below[-1] += np.searchsorted(block, edges[-1], side="right") - np.searchsorted(block, edges[-1])
    return np.diff(below)


def bin_codes(values: NDArray[Any], edges: NDArray[Any], closed: bool) -> NDArray[np.int64]:
    """The bin of each value, OUTSIDE for a value in none (NaN among them)."""
    guess = _near_uniform(edges)
    codes = np.empty(values.size, dtype=np.int64)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        inside = (block >= edges[0]) & ((block <= edges[-1]) if closed else (block < edges[-1]))
        if guess is None:
            code = np.searchsorted(edges, block, side="right") - 1
        else:
            code = _guessed(block, edges, *guess)
        codes[start : start + BLOCK] = np.where(inside, np.minimum(code, edges.size - 2), OUTSIDE)
    return codes


def _near_uniform(edges: NDArray[Any]) -> tuple[float, float] | None:
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
        place = (block.astype(np.float64) - origin) * per_unit
    code = np.clip(np.nan_to_num(place, nan=0.0), 0, edges.size - 2).astype(np.int64)
    code -= (block < edges[code]) & (code > 0)
    code += (block >= edges[code + 1]) & (code < edges.size - 2)
    return code
