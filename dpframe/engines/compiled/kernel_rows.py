"""Values to integers, and integers to totals of cells, by compiled kernels; and coded rows in few bytes.

Narrow rows have places and steps of 32 bits; the least step marks a missing value. They hold the same facts as the
coded rows of `row_totals`, and become such rows if rows are combined or are few. What is installed and the question
decide whether rows are coded in this way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnRequest, Source, unit_requests
from dpframe.engines.compiled.kernels import block_ends, in_threads, kernels_for, read_only, threads
from dpframe.engines.sums.addends import Integers, Line, Terms
from dpframe.engines.sums.cells import Cells
from dpframe.engines.sums.places import Placing
from dpframe.privacy import PrivacyUnit
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.row_functions import OnGrid, RowFunction, plain_share
from dpframe.queries.total import Total

Steps = NDArray[np.int32]

SMALL = 2**12  # cells up to which consecutive rows are added to separate tables
FITS = 2**31 - 1  # the largest step of 32 bits
MISSING = -FITS - 1  # the step of a missing value
PLACE = "place"  # the number of the cell plus one


@dataclass(frozen=True)
class Slot:
    """Column of integers that rows add, and the conversion of a block of rows to it."""

    name: str  # the engine's column
    bounds: tuple[float, float] | None = None  # bounds of values; None for a column of integers
    row: RowFunction | None = None  # set if the place between the bounds is added, and not the value

    @property
    def scale(self) -> tuple[float, float, float]:
        """Factor of values, and the least and the greatest step; integers are steps as they are."""
        if self.bounds is None:
            return 1.0, float(-FITS), float(FITS)
        lower, upper = grid_steps(self.bounds)
        return 1.0 / step_length(self.bounds), float(lower), float(upper)

    @property
    def share(self) -> tuple[int, int, int]:
        """First step of a share, its length and its bits; no bits if steps are added as they are."""
        share = None if self.row is None else plain_share(self.row)
        return (0, 1, 0) if share is None else (share.lower, share.upper - share.lower, share.bits)

    def fill(self, kernels: ModuleType, values: Any, steps: Steps) -> None:
        """Write the steps of some values; steps of narrow rows are copied."""
        if values.dtype == np.int32:
            steps[:] = values
            return
        kernels.to_steps(values, *self.scale, steps)
        if self.share[2] > 0:
            kernels.to_share(steps, *self.share)


@dataclass(frozen=True)
class Slots:
    """Columns that are read for some Totals, and the integers that are made of them."""

    slots: tuple[tuple[str, Slot], ...]  # the name of the column that is read, and its slot
    made: tuple[pl.Expr, ...]  # integers computed from a block first: functions of rows that no kernel knows
    lines: dict[Total, Line]

    @classmethod
    def of(cls, terms: Terms) -> Self | None:
        """Return the slots of columns as they are loaded; None if integers do not fit 32 bits."""
        slots: list[tuple[str, Slot]] = []
        made: list[pl.Expr] = []
        for addend, name in terms.addends.items():
            match addend:
                case OnGrid(column, bounds):
                    slots.append((terms.values[column], Slot(name, bounds)))
                case RowFunction(columns=((column, bounds),), missing=None) if plain_share(addend) is not None:
                    slots.append((terms.values[column], Slot(name, bounds, addend)))
                case RowFunction() if max(map(abs, addend.reach)) > FITS:
                    return None
                case RowFunction():
                    made.append(terms.integers(addend))
                    slots.append((name, Slot(name)))
                case _:
                    slots.append((name, Slot(name)))
        return cls(tuple(slots), tuple(made), terms.lines)

    @classmethod
    def of_coded(cls, terms: Terms) -> Self | None:
        """Return the slots of coded rows, which hold the integers; None if these do not fit 32 bits."""
        rows = [addend for addend in terms.addends if isinstance(addend, RowFunction)]
        if any(max(map(abs, row.reach)) > FITS for row in rows):
            return None
        return cls(tuple((name, Slot(name)) for name in terms.names()), (), terms.lines)

    def columns(self, table: pl.DataFrame) -> list[Any]:
        """Return the arrays of a block that kernels read, with NaN for missing values."""
        if self.made:
            numbers = [column.cast(pl.Float64) for column in table if column.name.startswith("value")]
            table = table.with_columns(pl.DataFrame(numbers).select(self.made))
        return [_filled(table[name]) for name, _ in self.slots]


def _filled(column: pl.Series) -> Any:
    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int64)
    if column.null_count():  # integers of 32 bits are exact as floats
        column = column.cast(pl.Float64).fill_null(float("nan"))
    return read_only(column)


@dataclass(frozen=True)
class Tables:
    """Totals of some rows, by place; place 0 is for rows in no cell."""

    counts: Integers
    sums: tuple[Integers, ...]  # by slot
    absent: tuple[Integers, ...]  # the rows in which a slot's value is missing
    beyond: Integers = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))  # in cells: below, above, there

    @classmethod
    def empty(cls, cells: int, slots: int, lanes: int, watched: int = 0) -> Self:
        """Return zeros, in `lanes` tables one after the other."""
        sums = tuple(np.zeros(lanes * (cells + 1), dtype=np.int64) for _ in range(slots))
        absent = tuple(np.zeros(cells + 1, dtype=np.int64) for _ in range(slots))
        return cls(np.zeros(lanes * (cells + 1), dtype=np.int64), sums, absent, np.zeros((watched, 3), dtype=np.int64))

    def with_checks(self, terms: Terms, slots: Slots, lanes: int) -> dict[Total, Integers]:
        """Return the Totals, with the numbers of checks."""
        counts = self.counts.reshape(lanes, -1).sum(axis=0)
        return terms.with_numbers(self.totals(slots, lanes), self.beyond, int(counts.sum()), int(counts[1:].sum()))

    def totals(self, slots: Slots, lanes: int) -> dict[Total, Integers]:
        """Return the Totals of the cells, modulo 2**64."""
        counts = _of_cells(self.counts, lanes)
        sums = {slot.name: _of_cells(found, lanes) for (_, slot), found in zip(slots.slots, self.sums, strict=True)}
        present = {
            slot.name: counts - _of_cells(found, 1) for (_, slot), found in zip(slots.slots, self.absent, strict=True)
        }
        totals = {}
        for total, line in slots.lines.items():
            if line.name is None:
                totals[total] = line.rows * counts
            else:
                totals[total] = line.present * present[line.name] + line.sum * sums[line.name]
        return totals


def _of_cells(tables: Integers, lanes: int) -> Integers:
    return np.asarray(tables.reshape(lanes, -1).sum(axis=0)[1:])


def of_rows(source: Source, cells: Cells, terms: Terms) -> dict[Total, Integers] | None:
    """Return totals of rows that count by themselves, in one pass; None if kernels cannot compute them."""
    slots = Slots.of(terms)
    if slots is None:
        return None
    table = loaded(source, cells, terms)
    kernels = kernels_for(table.height)
    if kernels is None:
        return None
    size, watched = cells.keys.cells, terms.watched
    adds = [(slot.scale, slot.share) for _, slot in slots.slots]
    lanes = kernels.LANES if size <= SMALL else 1
    placing = Placing.of(kernels, cells, table.schema)
    ends, workers = block_ends(table.height), threads(size, 2 + 2 * len(slots.slots))

    def work(thread: int) -> Tables:
        tables = Tables.empty(size, len(slots.slots), lanes, len(watched))
        for start, stop in ends[thread::workers]:
            block = table[start:stop]
            places = placing(block)
            for each, found in zip(watched, tables.beyond, strict=True):
                column, lower, upper = each.compared(block[each.name])
                kernels.add_beyond(read_only(column), places, lower, upper, found)
            kernels.add_rows(places, lanes, tables.counts)
            of_slots = zip(slots.columns(block), adds, tables.sums, tables.absent, strict=True)
            for values, (scale, share), sums, absent in of_slots:
                kernels.add_values(places, values, scale, share, lanes, sums, absent)
        return tables

    return together(in_threads(work, workers)).with_checks(terms, slots, lanes)


def loaded(source: Source, cells: Cells, terms: Terms, *more: ColumnRequest) -> pl.DataFrame:
    """Return the columns of a frame in memory; most values are not converted, and so not copied."""
    values = [(name, column, role if role != "value" else "raw", of) for name, column, role, of in terms.requests()]
    return source.load([*cells.requests(), *values, *more]).collect(engine="in-memory")


def together(found: list[Tables]) -> Tables:
    """Add the tables of several threads into the first."""
    first, *others = found
    for other in others:
        for mine, theirs in zip(_arrays(first), _arrays(other), strict=True):
            np.add(mine, theirs, out=mine)
    return first


def _arrays(tables: Tables) -> list[Integers]:
    return [tables.counts, *tables.sums, *tables.absent, tables.beyond]


def narrow_rows(source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit) -> pl.DataFrame | None:
    """Return rows in a cell (with a unit, if others are left out) as narrow rows; None if they are too few."""
    assert unit.column is not None
    slots = Slots.of(terms)
    assert slots is not None
    table = loaded(source, cells, terms, *unit_requests(unit))
    kernels = kernels_for(table.height)
    if kernels is None:
        return None
    placing = Placing.of(kernels, cells, table.schema)
    places = np.empty(table.height, dtype=np.uint32)
    steps = np.empty((len(slots.slots), table.height), dtype=np.int32)
    ends, workers = block_ends(table.height), threads(1, 1)

    def work(thread: int) -> None:
        for start, stop in ends[thread::workers]:
            rows = table[start:stop]
            places[start:stop] = placing(rows)
            for number, ((_, slot), values) in enumerate(zip(slots.slots, slots.columns(rows), strict=True)):
                slot.fill(kernels, values, steps[number, start:stop])

    in_threads(work, workers)
    columns = {slot.name: steps[number] for number, (_, slot) in enumerate(slots.slots)}
    coded = pl.DataFrame({PLACE: places, **columns, "unit": table["unit"]})
    if unit.nulls == "drop" and coded["unit"].null_count():
        coded = coded.filter(pl.col("unit").is_not_null())
    return coded if places.min(initial=1) > 0 else coded.filter(pl.col(PLACE) > 0)


def narrowed(table: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Return coded rows as narrow rows."""
    steps = [pl.col(name).fill_null(MISSING).cast(pl.Int32) for name in terms.names()]
    return table.select((pl.col("cell") + 1).cast(pl.UInt32).alias(PLACE), *steps, "unit")


def widened(table: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Return narrow rows as coded rows of 64 bits, and coded rows as they are."""
    if PLACE not in table.columns:
        return table
    steps = [pl.when(pl.col(name) != MISSING).then(pl.col(name).cast(pl.Int64)) for name in terms.names()]
    return table.select(*steps, "unit", (pl.col(PLACE).cast(pl.Int64) - 1).alias("cell"))
