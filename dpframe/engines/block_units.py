"""One unit, one weight, by NumPy in parts of whole units: what `weights.bounded` gives, integer for integer.

A part's units are light, dense and middle as there. Rows of light units are added as they are; pairs of the others are
found in an array of all cells, or by sorting one integer a row. Memory is that of rows in few bytes, and of one part
for each thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Integers, Terms
from dpframe.engines.block_rows import BLOCK, Narrow, Places, Steps, narrow_rows
from dpframe.engines.block_totals import FEW_ROWS, Layout
from dpframe.engines.cells import Cells
from dpframe.engines.kernel_coded import MISSING
from dpframe.engines.kernel_steps import Slots, Tables, loaded, together
from dpframe.engines.kernels import in_threads, threads
from dpframe.engines.source import Source
from dpframe.engines.weights import Floats, Reach, grid_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.total import Total

MOST_NUMBERS = 2**25  # of a thread's tables: of more cells the memory would be theirs


@dataclass(frozen=True)
class Pairs:
    """Pairs of unit and cell with all their rows, each once."""

    owner: Integers
    place: Integers
    size: Integers  # rows
    sums: list[Integers]  # of each slot
    absent: list[Any]  # the rows in which a slot's value is missing


@dataclass(frozen=True)
class Sums:
    """The sums of a thread, by place: of rows that are added as they are, and of weighed pairs by Total."""

    alone: Tables
    weighed: Integers

    @classmethod
    def empty(cls, cells: int, slots: Slots) -> Self:
        """Zeros."""
        weighed = np.zeros((len(slots.lines), cells + 1), dtype=np.int64)
        return cls(Tables.empty(cells, len(slots.slots), 1), weighed)


def of_units(
    source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit, p: float, *, merged: bool
) -> dict[Total, Integers] | None:
    """The weighted totals of a frame in memory; None where integers are large, or hashes the same."""
    assert unit.column is not None
    slots, size = Slots.of(terms), cells.keys.cells
    if slots is None or (size + 1) * (1 + 2 * len(slots.slots) + len(slots.lines)) > MOST_NUMBERS:
        return None
    table = loaded(source, cells, terms, ("unit", unit.column, "unit", None))
    few = table.height < FEW_ROWS
    workers = 1 if few else threads(1, 1)
    layout = Layout.of(slots, size, pl.Schema())  # no column is counted by value
    rows = narrow_rows(table, cells, layout, drops=unit.nulls == "drop", workers=workers, few=few)
    reach = Reach.of(unit, p, size, merged=merged)

    def work(thread: int) -> Sums:
        sums = Sums.empty(size, slots)
        with np.errstate(all="ignore"):
            for part in range(thread, rows.parts, workers):
                _add_part(rows, part, slots, reach, sums)
        return sums

    found = in_threads(work, workers)
    return _together(found, slots) if rows.told_apart(workers) else None


def _together(found: list[Sums], slots: Slots) -> dict[Total, Integers]:
    alone = together([sums.alone for sums in found]).totals(slots, 1)
    weighed: Integers = np.sum([sums.weighed for sums in found], axis=0)
    return {total: alone[total] * int(grid_of(total)) + weighed[line, 1:] for line, total in enumerate(slots.lines)}


def _add_part(rows: Narrow, part: int, slots: Slots, reach: Reach, sums: Sums) -> None:
    code, units, places, steps = rows.part(part)
    size, cells = np.bincount(code, minlength=units), sums.weighed.shape[1] - 1
    light = size <= reach.light
    dense = size > max(reach.light, cells)
    of_light = light[code]
    _add_alone(places, steps, _chosen(of_light), sums.alone)
    if of_light.all():
        return
    found = [_sorted(code, units, cells, places, steps, _chosen((~light & ~dense)[code]))]
    if dense.any():
        found.append(_of_dense(code, dense, cells, places, steps, np.flatnonzero(dense[code])))
    several = [(pairs.owner[pairs.size > 1], pairs.size[pairs.size > 1]) for pairs in found]
    owner, shared = (np.concatenate(arrays) for arrays in zip(*several, strict=True))
    weights = reach.weights(size, owner, shared)
    for pairs in found:
        _add_weighed(pairs, weights[pairs.owner], slots, sums.weighed)


def _chosen(mask: NDArray[np.bool_]) -> Any:
    """The places of chosen rows; a slice where they are all."""
    places = np.flatnonzero(mask)
    return places if places.size < mask.size else slice(None)


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
    """Steps in 64 bits, 0 where they are missing; and where that is, if it is anywhere."""
    whole = steps.astype(np.int64)
    if steps.min(initial=0) > MISSING:
        return whole, None
    missing = steps == MISSING
    whole[missing] = 0
    return whole, missing


def _sorted(code: Integers, units: int, cells: int, places: Places, steps: list[Steps], chosen: Any) -> Pairs:
    """The pairs of chosen rows. Where unit, cell and row fit 63 bits a plain sort finds them."""
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
    """The pairs of dense units, all of whose rows these are: each unit has an address for every place."""
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
    """W S of each pair on the grid, toward zero: the direction that never adds to a unit's reach."""
    numbers = {slot.name: number for number, (_, slot) in enumerate(slots.slots)}
    for number, (total, line) in enumerate(slots.lines.items()):
        if line.name is None:
            whole = line.rows * pairs.size
        else:
            slot = numbers[line.name]
            whole = line.present * (pairs.size - pairs.absent[slot]) + line.sum * pairs.sums[slot]
        each = whole.astype(np.float64) * (weights * grid_of(total))
        np.add.at(weighed[number], pairs.place, each.astype(np.int64))
