"""One unit, one weight, by compiled kernels: what `weights.bounded` gives, integer for integer.

Rows are sent to parts of the units first, so that what is worked on at a time stays in the processor's cache: one
thread sees all rows of a unit. Within a part rows are ordered by unit, by counting. A light unit's rows are added as
they are; any other's are brought together in an array of all cells, of which only what it uses is cleared again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Integers, Terms
from dpframe.engines.cells import Cells
from dpframe.engines.kernel_places import Places, Placing
from dpframe.engines.kernel_steps import Slots, Tables, loaded
from dpframe.engines.kernels import STRIP, block_ends, in_threads, kernels_for, ready, strips, threads
from dpframe.engines.source import Source
from dpframe.engines.weights import SHAVE, Reach, bounded, unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.total import WEIGHT_BITS, Total

Totals = dict[Total, Integers]
Block = Callable[[int, int], tuple[Places, list[Any]]]  # of a first and a last row: places, and what slots read

NORMS = {1.0: 1.0, 2.0: 2.0, np.inf: 0.0}  # p -> as kernels know it; other norms are sums of floats, whose order counts
MOST_CELLS = 2**22  # numbers of one thread's array of all cells: more of them are left to Polars
PART_ROWS = 2**15  # of a part, if units have about as many rows
MOST_PARTS = 2**10


@dataclass(frozen=True)
class Rows:
    """Rows of units: how many, the number of each one's unit, and how blocks of them are read."""

    count: int
    codes: Integers
    units: int
    block: Block


@dataclass(frozen=True)
class Sent:
    """Rows in the order of the parts of their units; those in no cell have place 0."""

    ends: Integers  # where each part begins, and where the last ends
    shift: int  # the bits of a unit's number that its part leaves open
    units: NDArray[np.uint32]
    places: Places
    steps: NDArray[np.int32]


def weighed_rows(table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int, *, merged: bool) -> Totals:
    """The weighted totals of coded rows, by kernels or by Polars."""
    slots = _slots(Slots.of_coded(terms), p, cells)
    kernels = None if slots is None else kernels_for(table.height)
    if slots is None or kernels is None:
        return bounded(table, terms, unit, p, cells, merged=merged)

    def block(start: int, stop: int) -> tuple[Places, list[Any]]:
        rows = table[start:stop]
        return (rows["cell"].to_numpy() + 1).astype(np.uint32), slots.columns(rows)

    codes, units = unit_codes(table["unit"])
    return _weighed(kernels, Rows(table.height, codes, units, block), slots, Reach.of(unit, p, cells, merged=merged), cells)


def of_units(source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit, p: float, *, merged: bool) -> Totals | None:
    """The weighted totals of a frame in memory, of which no coded rows are made; None where kernels are not used."""
    assert unit.column is not None
    slots = _slots(Slots.of(terms), p, cells.keys.cells)
    if slots is None or not ready() or (source.rows is not None and kernels_for(source.rows) is None):
        return None
    table = loaded(source, cells, terms, ("unit", unit.column, "unit", None))
    kernels = kernels_for(table.height)
    if kernels is None:
        return None
    owners = table["unit"]
    placing = Placing.of(kernels, cells, table.schema)
    drops = unit.nulls == "drop" and owners.null_count() > 0

    def block(start: int, stop: int) -> tuple[Places, list[Any]]:
        rows = table[start:stop]
        places = placing(rows)
        if drops:
            places[rows["unit"].is_null().to_numpy()] = 0
        return places, slots.columns(rows)

    codes, units = unit_codes(owners)
    reach = Reach.of(unit, p, cells.keys.cells, merged=merged)
    return _weighed(kernels, Rows(table.height, codes, units, block), slots, reach, cells.keys.cells)


def _slots(slots: Slots | None, p: float, cells: int) -> Slots | None:
    """The slots, where kernels can weigh them: public things decide."""
    if slots is None or p not in NORMS or (cells + 1) * (1 + 2 * len(slots.slots)) > MOST_CELLS:
        return None
    return slots


def _weighed(kernels: ModuleType, rows: Rows, slots: Slots, reach: Reach, cells: int) -> Totals:
    sent = _sent(kernels, rows, slots)
    width, names = len(slots.slots), [slot.name for _, slot in slots.slots]
    lines = np.array([(line.rows, line.present, line.sum) for line in slots.lines.values()], dtype=np.int64)
    slot_of = np.array([-1 if line.name is None else names.index(line.name) for line in slots.lines.values()])
    grids = np.array([_grid(total) for total in slots.lines], dtype=np.float64)
    numbers = (reach.most, SHAVE, NORMS[reach.p], float(reach.merged or 0))
    workers = threads(cells, 2 + 4 * width)

    def work(thread: int) -> tuple[Tables, Integers]:
        sums, absent = (np.zeros((width, cells + 1), dtype=np.int64) for _ in range(2))
        weighed = np.zeros((1 + len(lines), cells + 1), dtype=np.int64)
        tables = np.zeros((cells + 1) * (1 + 2 * width), dtype=np.int64)
        kernels.weigh_parts(
            *(thread, workers, sent.ends, sent.shift, sent.units, sent.places, sent.steps),
            *(reach.light, numbers, lines, slot_of, grids, tables, sums, absent, weighed),
        )
        return Tables(weighed[0], tuple(sums), tuple(absent)), weighed[1:, 1:]

    totals = {total: np.zeros(cells, dtype=np.int64) for total in slots.lines}
    for alone, weighed in in_threads(work, workers):
        of_light = alone.totals(slots, 1)
        for number, total in enumerate(totals):
            totals[total] += of_light[total] * int(_grid(total)) + weighed[number]
    return totals


def _grid(total: Total) -> float:
    """The steps of one row's step: counts are weighed on a finer grid."""
    return 2.0**WEIGHT_BITS if total.counts else 1.0


def _sent(kernels: ModuleType, rows: Rows, slots: Slots) -> Sent:
    """Rows in parts of whole units: counted first, then written."""
    shift = _shift(rows.units, rows.count)
    parts = (max(rows.units - 1, 0) >> shift) + 1
    ends, workers = block_ends(rows.count), threads(parts, 4)
    shares = [ends[thread::workers] for thread in range(workers)]

    def counted(thread: int) -> Integers:
        counts = np.zeros(parts, dtype=np.int64)
        for start, stop in shares[thread]:
            kernels.count_parts(_read_only(rows.codes[start:stop]), shift, counts)
        return counts

    counts = np.array(in_threads(counted, workers)).T  # of each part, what each thread sends to it
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts.ravel())])
    sent = Sent(
        np.append(starts[:-1].reshape(parts, workers)[:, 0], rows.count),
        shift,
        np.empty(rows.count + 1, dtype=np.uint32),  # the last is for all that is sent nowhere
        np.zeros(rows.count + 1, dtype=np.uint32),
        np.empty((len(slots.slots), rows.count + 1), dtype=np.int32),
    )

    def write(thread: int) -> None:
        free = starts[:-1].reshape(parts, workers)[:, thread].copy()
        targets, steps = np.empty(STRIP, dtype=np.int64), np.empty(STRIP, dtype=np.int32)
        for start, stop in shares[thread]:
            places, columns = rows.block(start, stop)
            for strip in strips(stop - start):
                here, codes = places[strip], _read_only(rows.codes[start:stop][strip])
                target = targets[: here.size]
                kernels.targets_of(codes, here, shift, free, rows.count, target)
                kernels.send_codes(target, codes, sent.units)
                kernels.send(target, here, sent.places)
                for number, (_, slot) in enumerate(slots.slots):
                    slot.fill(kernels, columns[number][strip], steps[: here.size])
                    kernels.send(target, steps[: here.size], sent.steps[number])

    in_threads(write, workers)
    sent.places[rows.count :] = 0
    return sent


def _shift(units: int, rows: int) -> int:
    """So many last bits of a unit's number that a part has about PART_ROWS rows, and there are not too many parts."""
    together = max(1, units * PART_ROWS // max(1, rows))
    return max(together.bit_length() - 1, (units // MOST_PARTS).bit_length())


def _read_only(codes: Integers) -> Integers:
    view = codes.view()
    view.flags.writeable = False
    return view
