"""One unit, one weight, by NumPy in parts of whole units: the result of `weights.bounded`, integer for integer.

Rows become few bytes, block by block, each block in the order of the parts of its units. A row is the key of its unit,
its place, and 32 bits of each column that is summed. All rows of a unit are in one part. One part is processed at a
time, so that it stays in the processor's cache and needs little other memory.

Integer units that lie close together are their own numbers, spread over parts by a bijection. The key of any other
value has 64 bits: the value itself if it has no more, or a hash of a string. In the end every string is compared with
the first one of its hash, so that numbers identify strings, not hashes.

The units of a part are light, dense and middle, as in `weights`. Rows of light units are added as they are. Pairs of
the others are found in an array of all cells, or by sorting one integer for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import Source, unit_requests
from dpframe.engines.compiled.kernel_rows import MISSING, Slots, Tables, loaded, together
from dpframe.engines.compiled.kernels import MOST_ROWS, Scratch, in_threads, threads
from dpframe.engines.sums.addends import Integers, Terms
from dpframe.engines.sums.cells import NARROW, Cells
from dpframe.engines.sums.places import may_be_placed, places_of
from dpframe.engines.sums.row_totals import FEW_ROWS, Layout, to_steps
from dpframe.engines.sums.unit_flags import Flags, RowFlags
from dpframe.engines.sums.weights import Floats, Reach, close_together, grid_of, rows_chosen, unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.total import Total

Part = NDArray[np.uint8]  # the part of each row
Keys = NDArray[Any]
Words = NDArray[np.uint64]
Places = NDArray[Any]  # the cell plus one, 0 for none, in 16 or 32 bits
Steps = NDArray[np.int32]

MOST_BITS = 8  # bits of the number of parts; a radix sort of one byte puts rows in their order
WIDE = (*NARROW, pl.UInt64, pl.Float64)  # dtypes of values that are their own keys
STRIP = 2**15  # rows that are coded at a time, which stay in the processor's cache
BLOCK = 2**17  # rows that are put in order at a time
PART_ROWS = 2**17  # rows of a part, if units have about equally many rows
FEW_KEYS = 2**12  # keys up to which cells are found block by block in any case
MOST_NUMBERS = 2**25  # maximum numbers in a thread's tables; more cells would take most of the memory


class Owners(Protocol):
    """Units of rows: asked for keys in blocks, and for numbers part by part."""

    @property
    def dtype(self) -> Any:
        """Dtype of keys."""

    @property
    def strings(self) -> pl.Series | None:
        """Strings to compare, row by row, if different units may have one key."""

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """Return the keys of a block of rows, and their parts."""

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """Return a number for each row of a part, the same for the same key, and a bound above all numbers."""


@dataclass(frozen=True)
class Numbered:
    """Units that are numbers, `units` of them from `low` on; the last is for rows without a unit."""

    values: pl.Series
    low: int
    units: int
    bits: int
    dtype: Any = np.uint32
    strings: None = None

    @property
    def _inner(self) -> int:
        """Bits of a number within its part."""
        return max((self.units - 1).bit_length() - self.bits, 0)

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """Return a product with an odd number, modulo a power of two: the first bits as part, the others as key."""
        values = self.values[start:stop].cast(pl.Int64) - self.low
        if values.null_count():
            values = values.fill_null(self.units - 1)
        whole = self._inner + self.bits
        spread = values.to_numpy() * ((int(GOLDEN) >> (64 - whole) if whole else 0) | 1)  # modulo 2**64
        spread &= 2**whole - 1
        return (spread & (2**self._inner - 1)).astype(np.uint32), (spread >> self._inner).astype(np.uint8)

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """Return the keys, which are numbers."""
        return keys, 2**self._inner


@dataclass(frozen=True)
class Keyed:
    """Units that have a key of 64 bits each."""

    values: pl.Series
    bits: int
    words: Callable[[pl.Series], tuple[Words, Words]]  # keys, and the words that choose parts
    strings: pl.Series | None = None
    dtype: Any = np.uint64

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """Return the keys of a block, and the last bits of their mixtures."""
        keys, spread = self.words(self.values[start:stop])
        return keys, (spread & np.uint64(2**self.bits - 1)).astype(np.uint8)

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """Return one number for each key."""
        import pyarrow

        encoded = pyarrow.array(keys).dictionary_encode()
        return encoded.indices.to_numpy(), len(encoded.dictionary)


def own_words(values: pl.Series) -> tuple[Words, Words]:
    """Return the words of 64 bits that identify integers and floats, and their mixtures."""
    values = values.fill_null(0)  # rows without a unit, which are left out
    if values.dtype not in (pl.UInt64, pl.Float64):
        values = values.cast(pl.Int64)
    words = values.to_numpy().view(np.uint64)
    return words, mixed(words + GOLDEN)


def hashes(values: pl.Series) -> tuple[Words, Words]:
    """Return hashes of strings; a missing string is a unit of its own."""
    found = values.hash().to_numpy()
    return found, found


def owners_of(units: pl.Series, bits: int, *, drops: bool) -> Owners:
    """Return the units of rows for 2**bits parts; `drops` says that rows without a unit are left out."""
    if (close := close_together(units)) is not None:
        return Numbered(units, *close, bits)
    if units.dtype == pl.String:
        strings = units.rechunk()
        return Keyed(strings, bits, hashes, strings)
    if units.dtype in WIDE and (drops or not units.null_count()):
        return Keyed(units, bits, own_words)
    codes, size = unit_codes(units)
    return Numbered(pl.Series(codes), 0, size, bits)


@dataclass(frozen=True)
class Narrow:
    """Rows in few bytes. Block b holds those of part p from `ends[b, p]` to `ends[b, p + 1]`."""

    ends: Integers
    owners: Owners
    keys: Keys  # if keys are hashes, `part` replaces them by the first row of the same key
    places: Places
    steps: Steps  # one line for each slot
    flags: Flags  # flags for checks, or none
    rows: NDArray[np.uint32] | None  # the number of each row in its frame, if strings must be compared

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.ends.shape[1]) - 1

    def part(self, number: int) -> tuple[Integers, int, Places, list[Steps], Flags]:
        """Return the units of the rows of a part, their number, places, steps and flags. Call it once for each part."""
        pieces = [slice(start, stop) for start, stop in self.ends[:, number : number + 2].tolist()]

        def whole(column: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([column[piece] for piece in pieces])

        numbers, units = self.owners.numbers(whole(self.keys))
        if self.rows is not None:
            rows, first = whole(self.rows), np.zeros(units, dtype=np.uint32)
            first[numbers] = rows
            _spread(first[numbers], pieces, self.keys)
        flags = whole(self.flags) if self.flags.size else self.flags
        return numbers, units, whole(self.places), [whole(steps) for steps in self.steps], flags

    def told_apart(self, workers: int) -> bool:
        """Return whether no two units had one key, after all parts were read."""
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


def narrow_rows(
    table: pl.DataFrame,
    cells: Cells,
    layout: Layout,
    flags: RowFlags | None = None,
    *,
    drops: bool,
    workers: int,
    few: bool,
) -> Narrow:
    """Return the rows of a table with its `unit`, except those in no cell, or without a unit if it `drops` them.

    If checks ask for `flags` and for rows in no cell, these have a place after all cells.
    """
    bits = min(MOST_BITS, (table.height // PART_ROWS).bit_length())
    units, count = table["unit"], table.height
    owners = owners_of(units, bits, drops=drops)
    placed = _placed(table, cells, few)
    drops = drops and units.null_count() > 0
    narrow = np.uint16 if layout.cells + 1 < 2**16 else np.uint32
    starts = range(0, max(count, 1), BLOCK)  # one block, even without rows
    found = Narrow(
        np.zeros((len(starts), 2**bits + 1), dtype=np.int64),
        owners,
        np.empty(count, dtype=owners.dtype),
        np.empty(count, dtype=narrow),
        np.empty((len(layout.slots.slots), count), dtype=np.int32),
        np.empty(0 if flags is None else count, dtype=np.uint16),
        np.empty(count, dtype=np.uint32) if owners.strings is not None else None,
    )

    def work(thread: int) -> None:
        coder = _Coder(table, layout, placed, flags, drops, narrow)
        with np.errstate(all="ignore"):  # no value may cause a warning
            for number in range(thread, len(starts), workers):
                _add(coder, found, number, starts[number], min(starts[number] + BLOCK, count))

    in_threads(work, workers)
    return found


def _add(coder: _Coder, found: Narrow, number: int, start: int, stop: int) -> None:
    """Write one block, in the order of its parts."""
    places, steps, flags = coder.coded(start, stop)
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
    if found.flags.size:
        found.flags[here] = flags[order]
    if found.rows is not None:
        found.rows[here] = np.arange(start, stop, dtype=np.uint32)[order]


class _Coder:
    """Arrays of a thread, in which it codes one block after the other."""

    def __init__(
        self, table: pl.DataFrame, layout: Layout, placed: Placed, flags: RowFlags | None, drops: bool, narrow: Any
    ) -> None:
        self._table, self._layout, self._placed, self._drops = table, layout, placed, drops
        self._asked = flags
        self._scratch = Scratch()
        most = min(BLOCK, table.height)
        self._places = np.empty(most, dtype=narrow)
        self._steps = np.empty((len(layout.slots.slots), most), dtype=np.int32)
        self._flags = np.empty(0 if flags is None else most, dtype=np.uint16)

    def coded(self, start: int, stop: int) -> tuple[Places, Steps, Flags]:
        """Return the places of a block of rows, their steps and their flags; the next call overwrites them."""
        places, steps = self._places[: stop - start], self._steps[:, : stop - start]
        flags = self._flags[: stop - start]
        for first in range(start, stop, STRIP):
            last = min(first + STRIP, stop)
            strip = self._table[first:last]
            here = slice(first - start, last - start)
            places[here] = self._placed(strip, first, self._scratch)
            if self._asked is not None:
                self._asked.place_outside(places[here])
            if self._drops and strip["unit"].null_count():
                places[here][strip["unit"].is_null().to_numpy()] = 0
            columns = self._layout.columns(strip)
            _write_steps(self._layout, columns, steps[:, here], self._scratch)
            if self._asked is not None:
                self._asked.of_rows(columns, flags[here])
        return places, steps, flags


def _write_steps(layout: Layout, columns: dict[str, pl.Series], out: Steps, scratch: Scratch) -> None:
    """Write the steps of each slot, with MISSING for a missing value."""
    for wide in layout.wide:
        steps = to_steps(columns[wide.name], wide.bounds, scratch)
        for number in wide.slots:
            row = layout.slots.slots[number][1].row
            values = steps if row is None else row.of_steps(steps)
            if np.isnan(values.min(initial=0.0)):
                values = np.where(np.isnan(values), float(MISSING), values)
            out[number] = values


Placed = Callable[[pl.DataFrame, int, Scratch], Any]  # a strip, and the number of its first row -> places


def _placed(table: pl.DataFrame, cells: Cells, few: bool) -> Placed:
    """Return the way to the places of rows: strip by strip, or all at once for many keys without a table."""
    quick = places_of(cells, table.schema, few=few) if may_be_placed(cells, few=few) else None
    if quick is not None:
        return lambda strip, _, scratch: quick(strip, scratch)
    if sum(keys.size for keys in cells.declared.values()) <= FEW_KEYS:
        return lambda strip, _, scratch: cells.codes(strip) + 1
    places = (cells.codes(table) + 1).astype(np.uint32)
    return lambda strip, first, _: places[first : first + strip.height]


@dataclass(frozen=True)
class Pairs:
    """Pairs of unit and cell with all their rows, each once."""

    owner: Integers
    place: Integers
    size: Integers  # the number of rows
    sums: list[Integers]  # by slot
    absent: list[Any]  # the rows in which a slot's value is missing


@dataclass(frozen=True)
class Sums:
    """Sums of a thread, by place: of rows that are added as they are, and of weighted pairs by Total."""

    alone: Tables
    weighed: Integers
    checked: Integers  # the counts of units for checks

    @classmethod
    def empty(cls, cells: int, slots: Slots, flags: RowFlags | None = None) -> Self:
        """Return zeros."""
        weighed = np.zeros((len(slots.lines), cells + 1), dtype=np.int64)
        checked = np.zeros(0, dtype=np.int64) if flags is None else flags.zeros()
        return cls(Tables.empty(cells, len(slots.slots), 1), weighed, checked)


def of_units(
    source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit, p: float, *, merged: bool
) -> dict[Total, Integers] | None:
    """Return the weighted totals of a frame in memory; None for large integers, too many rows, or equal hashes."""
    assert unit.column is not None
    slots, size = Slots.of(terms), cells.keys.cells
    if slots is None or (size + 1) * (1 + 2 * len(slots.slots) + len(slots.lines)) > MOST_NUMBERS:
        return None
    table = loaded(source, cells, terms, *unit_requests(unit))
    if table.height >= MOST_ROWS:
        return None
    few = table.height < FEW_ROWS
    workers = 1 if few else threads(1, 1)
    layout, flags = Layout.of(slots, size, pl.Schema(), terms.watched), RowFlags.of(terms, size)  # none are counted
    rows = narrow_rows(table, cells, layout, flags, drops=unit.nulls == "drop", workers=workers, few=few)
    reach = Reach.of(unit, p, size, merged=merged)

    def work(thread: int) -> Sums:
        sums = Sums.empty(size, slots, flags)
        with np.errstate(all="ignore"):
            for part in range(thread, rows.parts, workers):
                _add_part(rows, part, slots, reach, flags, sums)
        return sums

    found = in_threads(work, workers)
    if not rows.told_apart(workers):
        return None
    totals = _together(found, slots)
    return totals if flags is None else {**totals, **flags.numbers(np.sum([sums.checked for sums in found], axis=0))}


def _together(found: list[Sums], slots: Slots) -> dict[Total, Integers]:
    alone = together([sums.alone for sums in found]).totals(slots, 1)
    weighed: Integers = np.sum([sums.weighed for sums in found], axis=0)
    return {total: alone[total] * int(grid_of(total)) + weighed[line, 1:] for line, total in enumerate(slots.lines)}


def _add_part(rows: Narrow, part: int, slots: Slots, reach: Reach, flags: RowFlags | None, sums: Sums) -> None:
    code, units, places, steps, marks = rows.part(part)
    cells = sums.weighed.shape[1] - 1
    if flags is not None:
        sums.checked[:] += flags.numbers_of(code, units, places, marks)
        if places.max(initial=0) > cells:  # rows in no cell only count in checks
            inside = np.flatnonzero(places <= cells)
            code, places, steps = code[inside], places[inside], [values[inside] for values in steps]
    size = np.bincount(code, minlength=units)
    light = size <= reach.light
    dense = size > max(reach.light, cells)
    of_light = light[code]
    _add_alone(places, steps, rows_chosen(of_light), sums.alone)
    if of_light.all():
        return
    found = [_sorted(code, units, cells, places, steps, rows_chosen((~light & ~dense)[code]))]
    if dense.any():
        found.append(_of_dense(code, dense, cells, places, steps, np.flatnonzero(dense[code])))
    several = [(pairs.owner[pairs.size > 1], pairs.size[pairs.size > 1]) for pairs in found]
    owner, shared = (np.concatenate(arrays) for arrays in zip(*several, strict=True))
    weights = reach.weights(size, owner, shared)
    for pairs in found:
        _add_weighed(pairs, weights[pairs.owner], slots, sums.weighed)


def _add_alone(places: Places, steps: list[Steps], chosen: Any, tables: Tables) -> None:
    """Add rows as they are."""
    place = places[chosen].astype(np.int64)
    np.add.at(tables.counts, place, 1)
    for slot, values in enumerate(steps):
        whole, missing = _whole(values[chosen])
        np.add.at(tables.sums[slot], place, whole)
        if missing is not None:
            np.add.at(tables.absent[slot], place[missing], 1)


def _whole(steps: Steps) -> tuple[Integers, NDArray[np.bool_] | None]:
    """Return steps in 64 bits, 0 for missing ones; and which are missing, None if none is."""
    whole = steps.astype(np.int64)
    if steps.min(initial=0) > MISSING:
        return whole, None
    missing = steps == MISSING
    whole[missing] = 0
    return whole, missing


def _sorted(code: Integers, units: int, cells: int, places: Places, steps: list[Steps], chosen: Any) -> Pairs:
    """Return the pairs of chosen rows. If unit, cell and row fit 63 bits, a plain sort finds them."""
    key = code[chosen].astype(np.int64)
    cell_bits, row_bits = cells.bit_length(), key.size.bit_length()
    key <<= cell_bits
    key |= places[chosen]
    if (units - 1).bit_length() + cell_bits + row_bits <= 63:
        key <<= row_bits
        key |= np.arange(key.size)
        key.sort()
        order = key & ((1 << row_bits) - 1)
        key >>= row_bits
    else:
        order = np.argsort(key, kind="stable")
        key = key[order]
    if not isinstance(chosen, slice):
        order = chosen[order]
    again = key[1:] == key[:-1]
    starts, rest = np.flatnonzero(np.append(True, ~again)[: key.size]), np.flatnonzero(again) + 1
    pair = rest - np.arange(1, rest.size + 1)  # the pair of each row that is not its first

    def summed(values: Integers) -> Integers:
        sums = values[starts]
        np.add.at(sums, pair, values[rest])
        return sums

    size = summed(np.ones(key.size, dtype=np.int64))
    sums, absent = [], []
    for values in steps:
        whole, missing = _whole(values[order])
        sums.append(summed(whole))
        absent.append(0 if missing is None else summed(missing.astype(np.int64)))
    return Pairs(key[starts] >> cell_bits, key[starts] & ((1 << cell_bits) - 1), size, sums, absent)


def _of_dense(
    code: Integers, dense: NDArray[np.bool_], cells: int, places: Places, steps: list[Steps], chosen: Any
) -> Pairs:
    """Return the pairs of dense units, from all of their rows: each unit has an address for every place."""
    owners, width = np.flatnonzero(dense), cells + 1
    first = np.zeros(dense.size, dtype=np.int64)
    first[owners] = np.arange(owners.size) * width
    size, *tables = (np.zeros(owners.size * width, dtype=np.int64) for _ in range(1 + 2 * len(steps)))
    sums, absent = tables[: len(steps)], tables[len(steps) :]
    for start in range(0, chosen.size, BLOCK):  # one unit may have most rows of a table
        rows = chosen[start : start + BLOCK]
        address = first[code[rows]] + places[rows]
        np.add.at(size, address, 1)
        for slot, values in enumerate(steps):
            whole, missing = _whole(values[rows])
            np.add.at(sums[slot], address, whole)
            if missing is not None:
                np.add.at(absent[slot], address[missing], 1)
    there = np.flatnonzero(size)
    of_pairs = [table[there] for table in sums], [table[there] for table in absent]
    return Pairs(owners[there // width], there % width, size[there], *of_pairs)


def _add_weighed(pairs: Pairs, weights: Floats, slots: Slots, weighed: Integers) -> None:
    """Add W S of each pair on the grid, truncated toward zero: this never adds to a unit's reach."""
    numbers = {slot.name: number for number, (_, slot) in enumerate(slots.slots)}
    for number, (total, line) in enumerate(slots.lines.items()):
        if line.name is None:
            whole = line.rows * pairs.size
        else:
            slot = numbers[line.name]
            whole = line.present * (pairs.size - pairs.absent[slot]) + line.sum * pairs.sums[slot]
        each = whole.astype(np.float64) * (weights * grid_of(total))
        np.add.at(weighed[number], pairs.place, each.astype(np.int64))
