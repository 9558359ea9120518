"""Rows to places, a block of rows at a time: a place is the number of the cell plus one, 0 for a row in none.

Compiled kernels and NumPy find the same places. `Cells` finds all others: for keys of several columns, floats, decimals
and long strings; for kernels also for bins of uneven widths or of dates. The dtypes, the declared keys and the number
of rows decide which way is taken. Each axis is prepared once, from public facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.identity import NOWHERE, Declared
from dpframe.engines.columns.short_strings import MOST_STRINGS, KnownWords
from dpframe.engines.compiled.kernels import Scratch, read_only
from dpframe.engines.sums.cells import NARROW, Cells, Integers, close_together, filled, near_uniform, table_of
from dpframe.queries.bins import BinAxis, Coding
from dpframe.queries.keys import KeyAxis

Words = NDArray[np.uint64]
Places = NDArray[np.uint32]
Axis = Callable[[pl.DataFrame, Places], None]  # writes the place of each row on one axis

BlockPlaces = Callable[[pl.DataFrame, Scratch], Integers]  # places of a block of rows, by NumPy

AS_THEY_ARE = ("bins", "rest")  # codings that `Cells` places
INLINE = 12  # bytes of a string that Arrow's views hold next to its length, with zeros after them
BLOCK = 2**17  # rows at a time: few enough for the processor's cache; with fewer, threads wait for each other


@dataclass(frozen=True)
class Placing:
    """Axes of cells, ready for blocks of rows."""

    kernels: ModuleType
    axes: tuple[tuple[int, Axis], ...]  # each with its number of cells

    @classmethod
    def of(cls, kernels: ModuleType, cells: Cells, schema: pl.Schema) -> Self:
        """Prepare each axis, by the dtypes of its loaded columns."""
        return cls(kernels, tuple((axis.size, _axis(kernels, cells, axis, schema)) for axis in cells.keys.axes))

    def __call__(self, table: pl.DataFrame) -> Places:
        """Return the place of each row: its cell plus one, 0 for none."""
        if not self.axes:
            return np.ones(table.height, dtype=np.uint32)
        (_, outermost), *others = self.axes
        places = np.empty(table.height, dtype=np.uint32)
        outermost(table, places)
        inner = np.empty_like(places) if others else places
        for size, axis in others:
            axis(table, inner)
            self.kernels.combine(inner, np.uint32(size), places)
        return places


def _axis(kernels: ModuleType, cells: Cells, axis: Any, schema: pl.Schema) -> Axis:
    def as_it_is(table: pl.DataFrame, places: Places) -> None:
        np.add(cells.axis_codes(axis, table), 1, out=places, casting="unsafe")

    quick = QUICK.get(axis.coding)
    return (quick(kernels, cells, axis, schema, as_it_is) if quick else None) or as_it_is


def _keys(kernels: ModuleType, cells: Cells, axis: KeyAxis, schema: pl.Schema, as_it_is: Axis) -> Axis | None:
    """Prepare keys of one column that kernels can read; None for other keys."""
    if len(axis.columns) > 1:
        return None
    name, keys = cells.columns[axis.columns[0]], cells.declared[axis.columns[0]]
    if cells.are_positions(axis.columns[0], schema):
        return _positions(kernels, name, keys)
    prepare = _strings if schema[name] == pl.String else _integers if schema[name] in NARROW else None
    quick = None if prepare is None or not keys.values else prepare(kernels, name, keys)
    if quick is None:
        return None

    def where_none_is_missing(table: pl.DataFrame, places: Places) -> None:
        (quick if keys.missing == NOWHERE or not table[name].null_count() else as_it_is)(table, places)

    return where_none_is_missing


def _bins(kernels: ModuleType, cells: Cells, axis: BinAxis, schema: pl.Schema, as_it_is: Axis) -> Axis | None:
    """Prepare numbers in bins of nearly even widths; None for other bins."""
    name, edges = cells.columns[axis.column], cells.half_open[axis.column].edges
    guess = near_uniform(edges) if schema[name] == pl.Float64 else None
    if guess is None:
        return None
    origin, per_unit = guess

    def of_rows(table: pl.DataFrame, places: Places) -> None:
        values = table[name].fill_null(float("nan")) if table[name].null_count() else table[name]
        kernels.by_bin(read_only(values), edges, axis.outside == "clip", origin, per_unit, places)

    return of_rows


QUICK: Mapping[Coding, Callable[..., Axis | None]] = {"keys": _keys, "found": _keys, "bins": _bins}


def _positions(kernels: ModuleType, name: str, keys: Declared) -> Axis:
    """Prepare positions among the declared keys; a missing key comes after the others, NOWHERE is none of them."""
    table, there = np.zeros(len(keys.values) + 3, dtype=np.uint32), keys.rows >= 0
    table[keys.rows[there] - NOWHERE] = np.flatnonzero(there) + 1

    def of_rows(frame: pl.DataFrame, places: Places) -> None:
        column = frame[name] if frame[name].dtype == pl.Int16 else frame[name].cast(pl.Int64)
        kernels.by_table(read_only(column), table, NOWHERE, places)

    return of_rows


def _integers(kernels: ModuleType, name: str, keys: Declared) -> Axis | None:
    """Prepare integers that lie close together, by an array."""
    if not close_together(keys.values):
        return None
    table, first = table_of(keys.values, cells_of_positions(keys), beyond=0)

    def of_rows(frame: pl.DataFrame, places: Places) -> None:
        kernels.by_table(read_only(filled(frame[name], first)), table, first, places)

    return of_rows


def _strings(kernels: ModuleType, name: str, keys: Declared) -> Axis | None:
    """Prepare strings, if the declared ones fit in Arrow's views; longer strings equal none of them."""
    if max(len(key.encode()) for key in keys.values) > INLINE:
        return None
    declared = views_of(pl.Series(keys.values, dtype=pl.String))
    if declared is None:
        return None
    slots = 2 ** (16 * len(keys.values)).bit_length()  # enough that nearly all strings are in their first slot
    table, inner_of = np.zeros(2 * slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint32)
    kernels.table_of_views(declared, table, inner_of)
    inner_of = np.append(np.uint32(0), cells_of_positions(keys))[inner_of]

    def of_rows(frame: pl.DataFrame, places: Places) -> None:
        column = frame[name]
        kernels.by_view(views_of(column), table, inner_of, places)
        if column.null_count():
            places[column.is_null().to_numpy()] = 0

    return of_rows


def cells_of_positions(keys: Declared) -> Places:
    """Return the cell of the axis plus one at each position of a key; 0 if no combination has it."""
    cells = np.zeros(len(keys.values) + 1, dtype=np.uint32)  # the last entry is for a missing key and for no key
    cells[keys.rows] = np.arange(1, keys.rows.size + 1) * (keys.rows >= 0)
    return cells[: len(keys.values)]


def views_of(column: pl.Series) -> Words | None:
    """Return Arrow's views of strings as two words a row; None if this version of pyarrow has none."""
    import pyarrow

    if not hasattr(pyarrow, "string_view"):
        return None
    arrow: Any = column.to_arrow(compat_level=pl.CompatLevel.newest())
    if str(arrow.type) != "string_view":
        return None
    words = np.frombuffer(arrow.buffers()[1] or b"", dtype=np.uint64)
    views = words[2 * arrow.offset : 2 * (arrow.offset + len(arrow))]
    views.flags.writeable = False
    return views


def may_be_placed(cells: Cells, *, few: bool) -> bool:
    """Return, before any column is loaded, whether `places_of` may find a way; `few` says that rows are few."""
    return all(axis.coding in AS_THEY_ARE or _may_be_quick(cells, axis, few) for axis in cells.keys.axes)


def _may_be_quick(cells: Cells, axis: Any, few: bool) -> bool:
    if len(axis.columns) > 1:
        return False
    if cells.source.column(axis.columns[0]).by_position:
        return True
    keys = cells.declared[axis.columns[0]].values
    if keys and all(isinstance(key, int) for key in keys):
        return close_together(keys)
    fit = all(isinstance(key, str) and (few or len(key.encode()) <= INLINE) for key in keys)
    return 0 < len(keys) <= MOST_STRINGS and fit


def places_of(cells: Cells, schema: pl.Schema, *, few: bool) -> BlockPlaces | None:
    """Return the function from rows to places, by the dtypes of loaded columns; None if NumPy has none."""
    ways = [(axis.size, _block_axis(cells, axis, schema, few)) for axis in cells.keys.axes]
    if any(way is None for _, way in ways):
        return None

    def of_block(block: pl.DataFrame, scratch: Scratch) -> Integers:
        whole: Integers | None = None
        for size, way in ways:
            assert way is not None
            places = way(block, scratch)
            whole = places if whole is None else _combined(whole, places, size)
        return np.ones(block.height, dtype=np.int64) if whole is None else whole

    return of_block


def _combined(outer: Integers, inner: Integers, size: int) -> Integers:
    both = (outer - 1) * size + inner
    if min(outer.min(initial=1), inner.min(initial=1)) <= 0:
        both[(outer <= 0) | (inner <= 0)] = 0
    return both


def _block_axis(cells: Cells, axis: Any, schema: pl.Schema, few: bool) -> BlockPlaces | None:
    def as_it_is(block: pl.DataFrame, scratch: Scratch) -> Integers:
        return cells.axis_codes(axis, block) + 1

    if axis.coding in AS_THEY_ARE or cells.are_positions(axis.columns[0], schema):
        return as_it_is
    name, keys = cells.columns[axis.columns[0]], cells.declared[axis.columns[0]]
    if schema[name] in NARROW:
        return _block_integers(name, keys)
    if schema[name] != pl.String:
        return None
    return as_it_is if few else _block_strings(name, keys)  # views need pyarrow, which is slow to import


def _block_integers(name: str, keys: Declared) -> BlockPlaces:
    """Find integers that lie close together, by an array."""
    table, first = table_of(keys.values, cells_of_positions(keys).astype(np.int64), beyond=0)
    in_order = np.array_equal(table[:-1], np.arange(table.size - 1))

    def of_block(block: pl.DataFrame, scratch: Scratch) -> Integers:
        column = block[name]
        values = filled(column, first).to_numpy()
        above = np.subtract(values, first, out=scratch.of(name, values.size, np.int64))  # what wraps is still beyond
        if in_order and above.view(np.uint64).max(initial=0) < table.size - 1:
            return _with_missing(above, column, keys)
        places = table.take(above, mode="clip", out=scratch.of(f"{name} places", values.size, np.int64))
        return _with_missing(places, column, keys)

    return of_block


def _with_missing(places: Integers, column: pl.Series, keys: Declared) -> Integers:
    """Set the place of missing values: that of the missing key if it is declared, else 0."""
    if column.null_count():
        declared = keys.missing != NOWHERE
        places[column.is_null().to_numpy()] = 1 + np.flatnonzero(keys.rows == keys.missing)[0] if declared else 0
    return places


def _block_strings(name: str, keys: Declared) -> BlockPlaces | None:
    """Find strings, if the declared ones fit in Arrow's views; longer strings equal none of them.

    A view is two words: the length with four bytes, and the other eight.
    """
    declared = views_of(pl.Series(keys.values, dtype=pl.String))
    known = None if declared is None else KnownWords.of(declared[0::2], declared[1::2], cells_of_positions(keys))
    if known is None:
        return None

    def of_block(block: pl.DataFrame, scratch: Scratch) -> Integers:
        views, rows = views_of(block[name]), block.height
        assert views is not None  # they exist, as for the declared keys
        second = scratch.of("first", rows, np.uint64)
        second[:] = views[1::2]  # contiguous words are read faster
        return _with_missing(known.find(views[0::2], second, scratch, name), block[name], keys)

    return of_block
