"""Rows to cells by NumPy, a block of rows at a time: keys that an array tells apart, and bins.

Other keys (of several columns, floats, decimals, long strings, very many) are left to Polars. Which way is taken
follows from the dtypes and the declared keys, and from the number of rows; both give the same cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.cells import NARROW, Cells, close_together, filled, table_of
from dpframe.engines.identity import NOWHERE, Declared
from dpframe.engines.kernel_places import INLINE, cells_of_positions, views_of
from dpframe.engines.known_words import MOST_STRINGS, KnownWords, Scratch

Integers = NDArray[np.int64]

AS_THEY_ARE = ("bins", "rest")  # which `Cells` places
BLOCK = 2**16  # rows at a time: they stay in the processor's cache

Places = Callable[[pl.DataFrame, Scratch], Integers]  # of a block of rows: the cell plus one, 0 for none


def may_be_placed(cells: Cells, *, few: bool) -> bool:
    """Tell, before any column is brought over, whether `places_of` may find a way; `few` says that rows are."""
    return all(axis.coding in AS_THEY_ARE or _may_be_quick(cells, axis, few) for axis in cells.keys.axes)


def _may_be_quick(cells: Cells, axis: Any, few: bool) -> bool:
    if len(axis.columns) > 1:
        return False
    if cells.source.column(axis.columns[0]).coded:
        return True
    keys = cells.declared[axis.columns[0]].values
    if keys and all(isinstance(key, int) for key in keys):
        return close_together(keys)
    fit = all(isinstance(key, str) and (few or len(key.encode()) <= INLINE) for key in keys)
    return 0 < len(keys) <= MOST_STRINGS and fit


def places_of(cells: Cells, schema: pl.Schema, *, few: bool) -> Places | None:
    """The way from rows to cells, by the dtypes that columns were brought over in; None where it is not for NumPy."""
    ways = [(axis.size, _axis(cells, axis, schema, few)) for axis in cells.keys.axes]
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


def _axis(cells: Cells, axis: Any, schema: pl.Schema, few: bool) -> Places | None:
    def as_it_is(block: pl.DataFrame, scratch: Scratch) -> Integers:
        return cells.axis_codes(axis, block) + 1

    if axis.coding in AS_THEY_ARE or cells.are_positions(axis.columns[0], schema):
        return as_it_is
    name, keys = cells.columns[axis.columns[0]], cells.declared[axis.columns[0]]
    if schema[name] in NARROW:
        return _integers(name, keys)
    if schema[name] != pl.String:
        return None
    return as_it_is if few else _strings(name, keys)  # views need pyarrow, which is slow to import


def _integers(name: str, keys: Declared) -> Places:
    """Integers that lie close together, from an array."""
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
    """Places with that of a missing key, if it is declared, where it is missing."""
    if column.null_count():
        declared = keys.missing != NOWHERE
        places[column.is_null().to_numpy()] = 1 + np.flatnonzero(keys.rows == keys.missing)[0] if declared else 0
    return places


def _strings(name: str, keys: Declared) -> Places | None:
    """Strings, if the declared ones are so short that Arrow's views hold them; longer strings are none of them.

    A view is two words: the length with four bytes, and the other eight.
    """
    declared = views_of(pl.Series(keys.values, dtype=pl.String))
    known = None if declared is None else KnownWords.of(declared[0::2], declared[1::2], cells_of_positions(keys))
    if known is None:
        return None

    def of_block(block: pl.DataFrame, scratch: Scratch) -> Integers:
        views, rows = views_of(block[name]), block.height
        assert views is not None  # as those of the declared ones
        second = scratch.of(f"{name} second", rows, np.uint64)
        second[:] = views[1::2]  # side by side they are read faster
        return _with_missing(known.find(views[0::2], second, scratch, name), block[name], keys)

    return of_block
