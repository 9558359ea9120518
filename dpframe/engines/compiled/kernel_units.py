"""One unit, one weight, by compiled kernels: the result of `weights.bounded`, integer for integer.

Rows are sent to parts of the units first, so that the data in use stays in the processor's cache; one thread sees all
rows of a unit. Within a part rows are ordered by unit, by counting. Rows of a light unit are added as they are. Rows of
any other unit are combined in an array of all cells, of which only the used entries are cleared again.

Integer units that lie close together are their own numbers. Strings are sent with all of their bytes, and numbered
where they arrive, part by part. So no array of all numbers is made, and no two different strings have the same number
in their part.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import noise
from dpframe.engines.columns.source import Source, unit_requests
from dpframe.engines.compiled.kernel_rows import PLACE, Slots, Tables, loaded, widened
from dpframe.engines.compiled.kernels import (
    STRIP,
    block_ends,
    in_threads,
    kernels_for,
    read_only,
    ready,
    strips,
    threads,
)
from dpframe.engines.sums import unit_blocks
from dpframe.engines.sums.addends import Integers, Terms
from dpframe.engines.sums.cells import Cells
from dpframe.engines.sums.places import Places, Placing
from dpframe.engines.sums.unit_flags import BITS, Flags, RowFlags
from dpframe.engines.sums.weights import SHAVE, Reach, bounded, close_together, grid_of, unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.total import Total

Words = NDArray[np.uint64]
Totals = dict[Total, Integers]
Block = Callable[[int, int], tuple[Places, list[Any]]]  # start and stop row -> places, and the columns that slots read
Compared = Callable[[int, int], list[tuple[Any, float, float]]]  # start and stop row -> values, and the bounds of each

NORMS = {1.0: 1.0, 2.0: 2.0, np.inf: 0.0}  # p for kernels; other norms are sums of floats, which depend on the order
MOST_CELLS = 2**22  # maximum numbers in a thread's array of all cells; with more, Polars is used
PART_ROWS = 2**15  # rows of a part, if units have about equally many rows
MOST_BITS = 10  # maximum bits of the number of parts
POLYNOMIAL = 2**61 - 1  # the prime modulus of the hash of strings of several chunks


class Owners(Protocol):
    """Units of rows: counted in a first pass over blocks of rows, sent in a second one, and numbered at the end."""

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Add the rows of a block to the first line of `counts`, by part, and their words of 64 bits to the second."""

    def block(self, start: int, stop: int) -> Any:
        """Return the columns that `send` reads of a block."""

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Find the target of each row of a strip, and write there what identifies its unit."""

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """Number the unit of each row within its part; return the maximum number of units in a part."""


@dataclass(frozen=True)
class Told:
    """Arrays to which units are written: a number for each row, and the words of all parts."""

    units: NDArray[np.uint32]
    words: Words
    places: Places


@dataclass(frozen=True)
class Targets:
    """Targets of one thread: the next free row and word of each part, and the row for those in no cell."""

    free: Integers
    nowhere: int
    sent: Told


@dataclass(frozen=True)
class Numbered:
    """Units that have numbers: the last bits of a number are its part."""

    numbers: pl.Series | Integers
    low: int
    units: int
    bits: int

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Count rows by the last bits."""
        kernels.count_parts(self.block(start, stop), counts[0])

    def block(self, start: int, stop: int) -> Any:
        """Return the numbers, from 0 on; the last is for rows without a unit."""
        found = self.numbers[start:stop]
        if isinstance(found, pl.Series):
            found = (found.cast(pl.Int64) - self.low).fill_null(self.units - 1).to_numpy()
        return read_only(found)

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Write the other bits."""
        codes = block[strip]
        kernels.targets_of(codes, here, to.free[0], to.nowhere, target)
        kernels.send_codes(target, codes, self.bits, to.sent.units)

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """Return the size of a part; the numbers are already there."""
        return (max(self.units - 1, 0) >> self.bits) + 1


@dataclass(frozen=True)
class Named:
    """Strings, compared by all of their bytes; a missing one is a unit of its own."""

    names: pl.Series
    bits: int
    parts: NDArray[np.uint16]
    keys: Words

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Choose parts by a hash, and keep them for the second pass."""
        offsets, data, missing = _as_bytes(self.names[start:stop])
        kernels.count_names(offsets, data, missing, self.keys, self.bits, self.parts[start:stop], counts)

    def block(self, start: int, stop: int) -> Any:
        """Return the strings as bytes, and their parts."""
        return *_as_bytes(self.names[start:stop]), self.parts[start:stop]

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Write lengths and bytes."""
        offsets, data, missing, parts = block
        here_parts, bounds = parts[strip], offsets[strip.start : strip.stop + 1]
        kernels.targets_of_names(here_parts, here, to.free[0], to.nowhere, target)
        of_strip = bounds, data, missing[strip], here_parts, here, target
        kernels.send_names(*of_strip, to.free[1], to.sent.units, to.sent.words)

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """Number the strings of each part; lengths become numbers."""
        rows = int(np.diff(starts[0, :, 0]).max(initial=1))

        def work(thread: int) -> int:
            chosen = (thread, workers), starts[0], starts[1]
            return int(kernels.number_names(*chosen, rows, to.places, to.words, self.keys, to.units))

        return max(1, *in_threads(work, workers))  # rows in no cell have the number 0, even if there are no others


def owners_of(units: pl.Series, bits: int) -> Owners:
    """Return the units of rows for 2**bits parts; values that are no integers and no strings are numbered first."""
    low, size = close_together(units) or (0, 0)
    if size:
        return Numbered(units, low, size, bits)
    if units.dtype in (pl.String, pl.Binary) or units.dtype.is_integer():
        return Named(units, bits, np.empty(len(units), dtype=np.uint16), keys_of_hashes())
    return Numbered(*_numbered(units), bits)


def _numbered(units: pl.Series) -> tuple[Integers, int, int]:
    codes, size = unit_codes(units)
    return codes, 0, size


def _as_bytes(names: pl.Series) -> tuple[Any, Any, Any]:
    """Return the offsets of strings, their bytes, and marks of missing ones (an empty array if there are none)."""
    missing = read_only(names.is_null().to_numpy() if names.null_count() else np.zeros(0, dtype=np.bool_))
    if names.dtype.is_integer():
        values = read_only(names.fill_null(0) if names.null_count() else names)
        width = values.dtype.itemsize
        return read_only(np.arange(0, width * (len(names) + 1), width)), read_only(values.view(np.uint8)), missing
    arrow: Any = names.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = arrow.buffers()
    whole = np.frombuffer(offsets, dtype=np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
    return read_only(whole), read_only(np.frombuffer(data or b"", dtype=np.uint8)), missing


@functools.cache
def keys_of_hashes() -> Words:
    """Return random keys of this process, which affect only speed. The operating system draws them: see `nonce`."""
    from dpframe.engines.compiled import loops

    keys = np.frombuffer(hashlib.shake_256(noise.nonce().encode()).digest(8 * loops.KEYS), dtype=np.uint64).copy()
    keys[: loops.PLACE] >>= np.uint64(32)
    keys[loops.PLACE] %= np.uint64(POLYNOMIAL)
    keys[loops.PARTS :] |= np.uint64(1)
    return keys


@dataclass(frozen=True)
class Rows:
    """Rows of units: how many, the unit of each, and how blocks of them are read."""

    count: int
    owners: pl.Series
    block: Block
    flags: RowFlags | None = None  # flags for checks
    compared: Compared | None = None


@dataclass(frozen=True)
class Sent:
    """Rows in the order of the parts of their units; those in no cell have place 0."""

    ends: Integers  # where each part begins, and where the last one ends
    numbers: int  # the number of units within a part
    units: NDArray[np.uint32]
    places: Places
    steps: NDArray[np.int32]
    flags: Flags


def weighed_rows(table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int, *, merged: bool) -> Totals:
    """Return the weighted totals of coded rows, also of narrow ones, by kernels or by Polars."""
    slots = _slots(Slots.of_coded(terms), p, cells)
    kernels = None if slots is None else kernels_for(table.height)
    if slots is None or kernels is None:
        return bounded(widened(table, terms), terms, unit, p, cells, merged=merged)
    narrow = PLACE in table.columns

    def block(start: int, stop: int) -> tuple[Places, list[Any]]:
        rows = table[start:stop]
        if narrow:
            return rows[PLACE].to_numpy().copy(), [read_only(rows[name]) for name, _ in slots.slots]
        return (rows["cell"].to_numpy() + 1).astype(np.uint32), slots.columns(rows)

    reach = Reach.of(unit, p, cells, merged=merged)
    return _weighed(kernels, Rows(table.height, table["unit"], block), slots, reach, cells)


def codes_narrowly(terms: Terms, p: float, cells: int) -> bool:
    """Return whether rows are coded for kernels; what is installed and what is asked decide, which is public."""
    raw, coded = _slots(Slots.of(terms), p, cells), _slots(Slots.of_coded(terms), p, cells)
    return raw is not None and coded is not None and ready()


def of_units(source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit, p: float, *, merged: bool) -> Totals | None:
    """Return the weighted totals of a frame in memory without coding rows; None if Polars must find them."""
    found = _of_units(source, cells, terms, unit, p, merged=merged)
    return unit_blocks.of_units(source, cells, terms, unit, p, merged=merged) if found is None else found


def _of_units(
    source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit, p: float, *, merged: bool
) -> Totals | None:
    """Return the same totals by kernels; None if these are not used."""
    assert unit.column is not None
    if not ready() or (source.rows is not None and kernels_for(source.rows) is None):
        return None
    slots = _slots(Slots.of(terms), p, cells.keys.cells)
    if slots is None:
        return None
    table = loaded(source, cells, terms, *unit_requests(unit))
    kernels = kernels_for(table.height)
    if kernels is None:
        return None
    owners = table["unit"]
    placing = Placing.of(kernels, cells, table.schema)
    drops = unit.nulls == "drop" and owners.null_count() > 0

    flags = RowFlags.of(terms, cells.keys.cells)

    def block(start: int, stop: int) -> tuple[Places, list[Any]]:
        rows = table[start:stop]
        places = placing(rows)
        if flags is not None:
            flags.place_outside(places)
        if drops:
            places[rows["unit"].is_null().to_numpy()] = 0
        return places, slots.columns(rows)

    def compared(start: int, stop: int) -> list[tuple[Any, float, float]]:
        found = [each.compared(table[each.name][start:stop]) for each in terms.watched]
        return [(read_only(column), lower, upper) for column, lower, upper in found]

    reach = Reach.of(unit, p, cells.keys.cells, merged=merged)
    return _weighed(kernels, Rows(table.height, owners, block, flags, compared), slots, reach, cells.keys.cells)


def _slots(slots: Slots | None, p: float, cells: int) -> Slots | None:
    """Return the slots if kernels can weigh them, else None; public facts decide."""
    if slots is None or p not in NORMS or (cells + 1) * (1 + 2 * len(slots.slots)) > MOST_CELLS:
        return None
    return slots


def _weighed(kernels: ModuleType, rows: Rows, slots: Slots, reach: Reach, cells: int) -> Totals:
    sent = _sent(kernels, rows, slots)
    width, workers = 1 + 2 * len(slots.slots), threads(cells, 2 + 4 * len(slots.slots))
    numbers = (
        float(sent.numbers),
        float(reach.light),
        float(reach.most),
        SHAVE,
        NORMS[reach.p],
        float(reach.merged or 0),
    )
    lines, grids = _lines(slots), np.array([grid_of(total) for total in slots.lines], dtype=np.float64)

    def work(thread: int) -> tuple[Integers, Integers]:
        together, alone = (np.zeros((cells + 1) * width, dtype=np.int64) for _ in range(2))
        weighed = np.zeros((grids.size, cells + 1), dtype=np.int64)
        of_parts = (thread, workers), sent.ends, sent.units, sent.places, sent.steps
        kernels.weigh_parts(*of_parts, numbers, lines, grids, together, alone, weighed)
        return alone.reshape(-1, width).T, weighed

    alone, weighed = (np.sum(tables, axis=0) for tables in zip(*in_threads(work, workers), strict=True))
    of_light = Tables(alone[0], tuple(alone[1 : 1 + len(slots.slots)]), tuple(alone[1 + len(slots.slots) :]))
    totals = of_light.totals(slots, 1)
    found = {total: totals[total] * int(grid_of(total)) + weighed[line, 1:] for line, total in enumerate(slots.lines)}
    return found if rows.flags is None else {**found, **_checked(kernels, sent, rows.flags, workers)}


def _checked(kernels: ModuleType, sent: Sent, flags: RowFlags, workers: int) -> Totals:
    """Return the numbers of checks."""
    shape = sent.numbers, flags.cells, flags.checks.inner, BITS * len(flags.watched), flags.few

    def work(thread: int) -> Integers:
        groups, found = np.zeros(flags.cells // flags.checks.inner, dtype=np.int64), flags.zeros()
        of_parts = (thread, workers), sent.ends, sent.units, sent.places, sent.flags
        kernels.check_parts(*of_parts, shape, flags.rules, groups, found)
        return found

    return flags.numbers(np.sum(in_threads(work, workers), axis=0))


def _lines(slots: Slots) -> Integers:
    """Return a row for each Total: its multiples of rows, presence and sum, and the number of its slot, or -1."""
    numbers: dict[str | None, int] = {slot.name: number for number, (_, slot) in enumerate(slots.slots)}
    found = [(line.rows, line.present, line.sum, numbers.get(line.name, -1)) for line in slots.lines.values()]
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def _sent(kernels: ModuleType, rows: Rows, slots: Slots) -> Sent:
    """Return rows in parts of whole units: count them, then write them, then number the units."""
    bits = _bits(rows.count)
    owners, parts = owners_of(rows.owners, bits), 2**bits
    ends, workers = block_ends(rows.count), threads(parts, 4)
    shares = [ends[thread::workers] for thread in range(workers)]

    def counted(thread: int) -> Integers:
        counts = np.zeros((2, parts), dtype=np.int64)
        for start, stop in shares[thread]:
            owners.count(kernels, start, stop, counts)
        return counts

    starts = _starts(np.array(in_threads(counted, workers)))
    places, words = np.zeros(rows.count + 1, dtype=np.uint32), np.empty(starts[1, -1, 0], dtype=np.uint64)
    told = Told(np.zeros(rows.count + 1, dtype=np.uint32), words, places)  # the last takes all that is sent nowhere
    steps = np.empty((len(slots.slots), rows.count + 1), dtype=np.int32)
    flags = np.empty(0 if rows.compared is None else rows.count + 1, dtype=np.uint16)

    def write(thread: int) -> None:
        to = Targets(starts[:, :-1, thread].copy(), rows.count, told)
        targets, scratch = np.empty(STRIP, dtype=np.int64), np.empty(STRIP, dtype=np.int32)
        marks = np.empty(STRIP, dtype=np.uint16)
        for start, stop in shares[thread]:
            found, columns = rows.block(start, stop)
            block = owners.block(start, stop)
            compared = [] if rows.compared is None else rows.compared(start, stop)
            for strip in strips(stop - start):
                here = found[strip]
                target = targets[: here.size]
                owners.send(kernels, block, strip, here, target, to)
                kernels.send(target, here, places)
                for number, (_, slot) in enumerate(slots.slots):
                    slot.fill(kernels, columns[number][strip], scratch[: here.size])
                    kernels.send(target, scratch[: here.size], steps[number])
                if rows.compared is not None:
                    marks[:] = 0
                    for number, (values, lower, upper) in enumerate(compared):
                        kernels.add_flags(values[strip], lower, upper, BITS * number, marks)
                    kernels.send(target, marks[: here.size], flags)

    in_threads(write, workers)
    places[rows.count :] = 0
    numbers = owners.number(kernels, starts, told, workers)
    return Sent(starts[0, :, 0].copy(), numbers, told.units, places, steps, flags)


def _starts(counts: Integers) -> Integers:
    """Return the first row and the first word of each part, and in it of each thread; the last entry is the end."""
    workers, kinds, parts = counts.shape
    each = counts.transpose(1, 2, 0).reshape(kinds, -1)
    starts = np.zeros((kinds, (parts + 1) * workers), dtype=np.int64)
    np.cumsum(each, axis=1, out=starts[:, 1 : each.shape[1] + 1])
    starts[:, each.shape[1] :] = starts[:, each.shape[1], None]
    return starts.reshape(kinds, parts + 1, workers)


def _bits(rows: int) -> int:
    """Return the bits of the number of parts, such that a part has about PART_ROWS rows."""
    return min(MOST_BITS, (rows // PART_ROWS).bit_length())
