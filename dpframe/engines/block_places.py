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
from dpframe.engines.kernel_places import INLINE, Words, cells_of_positions, views_of
from dpframe.queries.bins import BinAxis
from dpframe.queries.keys import KeyAxis

Integers = NDArray[np.int64]

BLOCK = 2**16  # rows at a time: they stay in the processor's cache

MOST_STRINGS = 2**8  # of them a table is found in which each has a slot of its own
SLOTS = 2**16  # of that table at most
MULTIPLIERS = [np.uint64(pow(0x9E3779B97F4A7C15, power, 2**64)) for power in range(1, 65)]  # all odd


class Scratch:
    """Arrays that a thread writes to again and again, which is faster than new ones."""

    def __init__(self) -> None:
        self._of_type: dict[tuple[str, type], NDArray[Any]] = {}

    def of(self, name: str, rows: int, dtype: type) -> Any:
        """The array of this name for a block of so many rows; what is in it is left from before."""
        found = self._of_type.get((name, dtype))
        if found is None or found.size < rows:  # the first block has most rows
            found = self._of_type[name, dtype] = np.empty(rows, dtype=dtype)
        return found[:rows]


Places = Callable[[pl.DataFrame, Scratch], Integers]  # of a block of rows: the cell plus one, 0 for none


def may_be_placed(cells: Cells, *, few: bool) -> bool:
    """Tell, before any column is brought over, whether `places_of` may find a way; `few` says that rows are."""
    return all(isinstance(axis, BinAxis) or _may_be_quick(cells, axis, few) for axis in cells.keys.axes)


def _may_be_quick(cells: Cells, axis: Any, few: bool) -> bool:
    if not isinstance(axis, KeyAxis) or len(axis.columns) > 1 or cells.source.column(axis.columns[0]).coded:
        return False
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

    if isinstance(axis, BinAxis):
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

    A view is two words: the length with four bytes, and the other eight. A multiplication gives each declared key a
    slot of its own, and a string is the key in its slot where both words are equal.
    """
    declared = views_of(pl.Series(keys.values, dtype=pl.String))
    found = None if declared is None else _slots(declared)
    if declared is None or found is None:
        return None
    multipliers, shift = found
    slots = _slot(declared[0::2], declared[1::2], multipliers, shift)
    first, second = (np.zeros(2 ** (64 - int(shift)), dtype=np.uint64) for _ in range(2))
    place_of = np.zeros(first.size, dtype=np.int64)
    first[slots], second[slots] = declared[0::2], declared[1::2]
    place_of[slots] = cells_of_positions(keys)
    alike = declared[0] if (declared[0::2] == declared[0]).all() else None  # one length and the same first letters

    def of_block(block: pl.DataFrame, scratch: Scratch) -> Integers:
        views, rows = views_of(block[name]), block.height
        assert views is not None  # as those of the declared ones
        last = scratch.of(f"{name} last", rows, np.uint64)
        last[:] = views[1::2]  # side by side they are read faster
        slot = _slot(views[0::2], last, multipliers, shift, scratch.of(f"{name} slot", rows, np.uint64))
        unlike = second.take(slot, mode="wrap", out=scratch.of(name, rows, np.uint64))  # all slots are in the table
        unlike ^= last
        if alike is None or not _all_are(alike, views[0::2]):
            other = first.take(slot, mode="wrap", out=scratch.of(f"{name} other", rows, np.uint64))
            other ^= views[0::2]
            unlike |= other
        places = place_of.take(slot, mode="wrap", out=scratch.of(f"{name} places", rows, np.int64))
        if unlike.max(initial=0):
            places[unlike != 0] = 0
        return _with_missing(places, block[name], keys)

    return of_block


def _all_are(word: Any, words: Words) -> bool:
    return bool(words.min(initial=word) == word == words.max(initial=word))


def _slot(first: Words, last: Words, multipliers: tuple[Any, Any], shift: Any, out: Words | None = None) -> Integers:
    mixed = np.multiply(last, multipliers[1], out=out)
    if multipliers[0]:
        mixed += first * multipliers[0]
    mixed >>= shift
    return np.asarray(mixed.view(np.int64))


def _slots(views: Words) -> tuple[tuple[Any, Any], Any] | None:
    """Multipliers of both words, and a shift, that give different keys different slots; None where none was found."""
    count = views.size // 2
    bits = max(6, 2 * count.bit_length() - 3)
    while 2**bits <= SLOTS:
        shift = np.uint64(64 - bits)
        for multiplier in MULTIPLIERS:
            for pair in ((np.uint64(0), multiplier), (multiplier ^ np.uint64(2), multiplier)):
                if np.unique(_slot(views[0::2], views[1::2], pair, shift)).size == count:
                    return pair, shift
        bits += 2
    return None
