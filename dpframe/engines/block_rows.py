"""Rows of units in few bytes, block by block, each block in the order of the parts of its units: by NumPy.

A row is the key of its unit, its place, and 32 bits of each column that is summed. All rows of a unit are in one part,
and a part is what is worked on at a time, so that it stays in the processor's cache and little else is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Integers
from dpframe.engines.block_owners import MOST_BITS, Keys, Owners, owners_of
from dpframe.engines.block_places import may_be_placed, places_of
from dpframe.engines.block_totals import Layout, to_steps
from dpframe.engines.cells import Cells
from dpframe.engines.kernel_coded import MISSING
from dpframe.engines.kernels import in_threads
from dpframe.engines.known_words import Scratch

Places = NDArray[Any]  # the cell plus one, 0 for none, in 16 or 32 bits
Steps = NDArray[np.int32]

STRIP = 2**15  # rows that are coded at a time: they stay in the processor's cache
BLOCK = 2**17  # rows that are put in order at a time
PART_ROWS = 2**17  # of a part, if units have about as many rows
FEW_KEYS = 2**12  # of so many, cells are found block by block in any way


@dataclass(frozen=True)
class Narrow:
    """Rows in few bytes. Block b holds those of part p from `ends[b, p]` to `ends[b, p + 1]`."""

    ends: Integers
    owners: Owners
    keys: Keys  # where keys are hashes, of parts that were asked for the first row of the same key
    places: Places
    steps: Steps  # a line for each slot
    rows: NDArray[np.uint32] | None  # the number of each row in its frame, where strings are to be compared

    @property
    def parts(self) -> int:
        """The number of parts."""
        return int(self.ends.shape[1]) - 1

    def part(self, number: int) -> tuple[Integers, int, Places, list[Steps]]:
        """The number of the unit of each row of a part, of how many units; places, and the steps of each slot. Once."""
        pieces = [slice(start, stop) for start, stop in self.ends[:, number : number + 2].tolist()]

        def whole(column: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([column[piece] for piece in pieces])

        numbers, units = self.owners.numbers(whole(self.keys))
        if self.rows is not None:
            rows, first = whole(self.rows), np.zeros(units, dtype=np.uint32)
            first[numbers] = rows
            _spread(first[numbers], pieces, self.keys)
        return numbers, units, whole(self.places), [whole(steps) for steps in self.steps]

    def told_apart(self, workers: int) -> bool:
        """Tell whether no two units had one key, once all parts were asked for."""
        rows, strings = self.rows, self.owners.strings
        if rows is None or strings is None:
            return True
        blocks = [slice(first, last) for first, last in self.ends[:, [0, -1]].tolist()]

        def alike(thread: int) -> bool:
            here = blocks[thread::workers]
            return all(strings.gather(rows[at]).eq_missing(strings.gather(self.keys[at])).all() for at in here)

        return all(in_threads(alike, workers))


def _spread(values: NDArray[Any], pieces: list[slice], target: NDArray[Any]) -> None:
    """Write values to pieces of an array, one after the other."""
    sizes = [piece.stop - piece.start for piece in pieces]
    for piece, part in zip(pieces, np.split(values, np.cumsum(sizes)[:-1]), strict=True):
        target[piece] = part


def narrow_rows(table: pl.DataFrame, cells: Cells, layout: Layout, *, drops: bool, workers: int, few: bool) -> Narrow:
    """The rows of a table that carries its `unit`, but those in no cell, or without a unit where it `drops` them."""
    bits = min(MOST_BITS, (table.height // PART_ROWS).bit_length())
    units, count = table["unit"], table.height
    owners = owners_of(units, bits, drops=drops)
    placed = _placed(table, cells, few)
    drops = drops and units.null_count() > 0
    narrow = np.uint16 if layout.cells < 2**16 else np.uint32
    starts = range(0, max(count, 1), BLOCK)  # of no rows one block too
    found = Narrow(
        np.zeros((len(starts), 2**bits + 1), dtype=np.int64),
        owners,
        np.empty(count, dtype=owners.dtype),
        np.empty(count, dtype=narrow),
        np.empty((len(layout.slots.slots), count), dtype=np.int32),
        np.empty(count, dtype=np.uint32) if owners.strings is not None else None,
    )

    def work(thread: int) -> None:
        coder = _Coder(table, layout, placed, drops, narrow)
        with np.errstate(all="ignore"):  # whatever a value is, nothing is said of it
            for number in range(thread, len(starts), workers):
                _add(coder, found, number, starts[number], min(starts[number] + BLOCK, count))

    in_threads(work, workers)
    return found


def _add(coder: _Coder, found: Narrow, number: int, start: int, stop: int) -> None:
    """Write one block, in the order of its parts."""
    places, steps = coder.coded(start, stop)
    keys, part = found.owners.keys(start, stop)
    order: Any = slice(None)
    if not places.all():
        order = np.flatnonzero(places)
        part = part[order]
    if found.parts > 1:
        by_part = np.argsort(part, kind="stable")
        order = by_part if isinstance(order, slice) else order[by_part]
    found.ends[number, 0] = start
    np.cumsum(np.bincount(part, minlength=found.parts), out=found.ends[number, 1:])
    found.ends[number, 1:] += start
    here = slice(start, int(found.ends[number, -1]))
    found.keys[here], found.places[here] = keys[order], places[order]
    for slot, values in enumerate(steps):
        found.steps[slot, here] = values[order]
    if found.rows is not None:
        found.rows[here] = np.arange(start, stop, dtype=np.uint32)[order]


class _Coder:
    """A thread's arrays, in which it codes one block after the other."""

    def __init__(self, table: pl.DataFrame, layout: Layout, placed: Placed, drops: bool, narrow: Any) -> None:
        self._table, self._layout, self._placed, self._drops = table, layout, placed, drops
        self._scratch = Scratch()
        most = min(BLOCK, table.height)
        self._places = np.empty(most, dtype=narrow)
        self._steps = np.empty((len(layout.slots.slots), most), dtype=np.int32)

    def coded(self, start: int, stop: int) -> tuple[Places, Steps]:
        """The places of a block of rows, and their steps; both are written to again."""
        places, steps = self._places[: stop - start], self._steps[:, : stop - start]
        for first in range(start, stop, STRIP):
            last = min(first + STRIP, stop)
            strip = self._table[first:last]
            here = slice(first - start, last - start)
            places[here] = self._placed(strip, first, self._scratch)
            if self._drops and strip["unit"].null_count():
                places[here][strip["unit"].is_null().to_numpy()] = 0
            _write_steps(self._layout, strip, steps[:, here], self._scratch)
        return places, steps


def _write_steps(layout: Layout, strip: pl.DataFrame, out: Steps, scratch: Scratch) -> None:
    """The steps of each slot, MISSING where a value is missing."""
    columns = layout.columns(strip)
    for wide in layout.wide:
        steps = to_steps(columns[wide.name], wide.bounds, scratch)
        for number in wide.slots:
            row = layout.slots.slots[number][1].row
            values = steps if row is None else row.of_steps(steps)
            if np.isnan(values.min(initial=0.0)):
                values = np.where(np.isnan(values), float(MISSING), values)
            out[number] = values


Placed = Callable[[pl.DataFrame, int, Scratch], Any]  # a strip, the number of its first row -> places


def _placed(table: pl.DataFrame, cells: Cells, few: bool) -> Placed:
    """The way to the places of rows: strip by strip, or, of many keys that no array tells apart, of all at once."""
    quick = places_of(cells, table.schema, few=few) if may_be_placed(cells, few=few) else None
    if quick is not None:
        return lambda strip, _, scratch: quick(strip, scratch)
    if sum(keys.size for keys in cells.declared.values()) <= FEW_KEYS:
        return lambda strip, _, scratch: cells.codes(strip) + 1
    places = (cells.codes(table) + 1).astype(np.uint32)
    return lambda strip, first, _: places[first : first + strip.height]
