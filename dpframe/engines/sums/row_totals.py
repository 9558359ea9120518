"""Totals of one frame in memory, each of whose rows counts by itself: integers row by row, summed by cell.

Compiled kernels add them up if they are installed; otherwise NumPy, a block of rows at a time, if cells are few;
otherwise Polars. The integers are the same.

In blocks, floats carry the integers: a step is below 2**32 and a block has 2**17 rows, so that no sum of a block
reaches 2**53 and each of them is exact. Blocks are added modulo 2**64. If an integer column has narrow bounds, its
values are counted by cell and value, and what each value adds is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from os import cpu_count
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import Source, collected
from dpframe.engines.compiled import kernel_rows, kernels
from dpframe.engines.compiled.kernel_rows import Slots, Tables, loaded, together
from dpframe.engines.compiled.kernels import Scratch, in_threads, threads
from dpframe.engines.sums.addends import ROWS, Integers, Terms, Watched
from dpframe.engines.sums.cells import Cells, HalfOpenBins, placed
from dpframe.engines.sums.places import BLOCK, may_be_placed, places_of
from dpframe.queries.row_functions import Bounds, Floats, on_grid
from dpframe.queries.total import COUNTED, Total

Totals = dict[Total, Integers]

MOST_CELLS = 2**12  # cells of tables that are made for each block
NARROW = 2**15  # maximum counts by cell and value
FEW_ROWS = 2**16  # below this, threads and the import of pyarrow cost more time than they save
PARALLEL_ROWS = 2**20  # rows of a histogram; below this, threads cost more time than they save
FEW_CHUNKS = 16


@dataclass(frozen=True)
class Wide:
    """Column of floats, its bounds, and the slots that are computed from its steps."""

    name: str
    bounds: Any  # None for integers
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Counted:
    """Column of integers whose values are counted from `lower` to `upper`; values beyond these count as these.

    Both lie outside the bounds, so that values beyond the bounds differ from values on them.
    """

    name: str
    bounds: Bounds
    lower: int
    upper: int
    slots: tuple[int, ...]

    @property
    def span(self) -> int:
        """Number of values that are counted separately."""
        return self.upper - self.lower + 1


@dataclass(frozen=True)
class Layout:
    """Slots of a question, by how they are summed."""

    slots: Slots
    cells: int
    wide: tuple[Wide, ...]
    counted: tuple[Counted, ...]
    watched: tuple[Watched, ...] = ()

    @classmethod
    def of(cls, slots: Slots, cells: int, schema: pl.Schema, watched: tuple[Watched, ...] = ()) -> Self:
        """Return the layout, by the dtypes of loaded columns."""
        same: dict[tuple[str, Any], list[int]] = {}
        for number, (name, slot) in enumerate(slots.slots):
            same.setdefault((name, slot.bounds), []).append(number)
        wide, counted = [], []
        for (name, bounds), numbers in same.items():
            column = _counted(name, bounds, tuple(numbers)) if schema.get(name) == pl.Int64 else None
            if column is not None and (cells + 1) * (column.span + 1) <= NARROW:
                counted.append(column)
            else:
                wide.append(Wide(name, bounds, tuple(numbers)))
        return cls(slots, cells, tuple(wide), tuple(counted), watched)

    def columns(self, block: pl.DataFrame) -> dict[str, pl.Series]:
        """Return the columns of a block: as they are loaded, and integers that are made of them."""
        names = dict.fromkeys([*(name for name, _ in self.slots.slots), *(each.name for each in self.watched)])
        if not self.slots.made:
            return {name: block[name] for name in names}
        numbers = [column.cast(pl.Float64) for column in block if column.name.startswith("value")]
        made = pl.DataFrame(numbers).select(self.slots.made)
        return {name: (made if name in made.columns else block)[name] for name in names}


def _counted(name: str, bounds: Any, numbers: tuple[int, ...]) -> Counted | None:
    """Return the counted column; values beyond the bounds count as one below or above, whose steps are the bounds."""
    if bounds is None:
        return None
    return Counted(name, bounds, math.floor(bounds[0]) - 1, math.ceil(bounds[1]) + 1, numbers)


def of_blocks(source: Source, cells: Cells, terms: Terms) -> dict[Total, Integers] | None:
    """Return totals of rows that count by themselves; None if Polars must add them up."""
    slots = Slots.of(terms)
    few = source.rows is not None and source.rows < FEW_ROWS
    if slots is None or cells.keys.cells > MOST_CELLS or not may_be_placed(cells, few=few):
        return None
    if not cells.columns and not few:  # Polars needs no places for many rows in one cell
        return None
    table = loaded(source, cells, terms)
    places = places_of(cells, table.schema, few=few)
    if places is None:
        return None
    layout = Layout.of(slots, cells.keys.cells, table.schema, terms.watched)
    workers = threads(1, 1) if table.height >= FEW_ROWS else 1

    def work(thread: int) -> Sums:
        sums = Sums.empty(layout)
        with np.errstate(all="ignore"):  # no value may cause a warning
            for start in range(thread * BLOCK, table.height, workers * BLOCK):
                block = table[start : start + BLOCK]
                sums.add(places(block, sums.scratch), layout.columns(block))
        return sums

    return together([sums.tables() for sums in in_threads(work, workers)]).with_checks(terms, slots, 1)


@dataclass(frozen=True)
class Sums:
    """Sums of a thread, by place; place 0 is for rows in no cell."""

    layout: Layout
    counts: Integers
    sums: Integers  # by slot
    absent: Integers  # the rows in which a slot's value is missing
    by_value: tuple[Integers, ...]  # rows by place and value of each counted column; missing ones are last
    beyond: Integers  # by watched column, in cells: values below, above, present
    scratch: Scratch

    @classmethod
    def empty(cls, layout: Layout) -> Self:
        """Return zeros."""
        places, slots = layout.cells + 1, len(layout.slots.slots)
        sums, absent = np.zeros((slots, places), dtype=np.int64), np.zeros((slots, places), dtype=np.int64)
        by_value = tuple(np.zeros((places, column.span + 1), dtype=np.int64) for column in layout.counted)
        beyond = np.zeros((len(layout.watched), 3), dtype=np.int64)
        return cls(layout, np.zeros(places, np.int64), sums, absent, by_value, beyond, Scratch())

    def add(self, places: Integers, columns: dict[str, pl.Series]) -> None:
        """Add a block of rows."""
        for column, table in zip(self.layout.counted, self.by_value, strict=True):
            both = _with_values(places, columns[column.name], column, self.scratch)
            np.add.at(table.reshape(-1), both, 1)  # faster than np.bincount, which first looks for the maximum
        if not self.by_value:
            np.add.at(self.counts, places, 1)
        for wide in self.layout.wide:
            steps = to_steps(columns[wide.name], wide.bounds, self.scratch)
            for number in wide.slots:
                row = self.layout.slots.slots[number][1].row
                self._add(number, places, steps if row is None else row.of_steps(steps))
        inside = places > 0 if self.layout.watched and places.min(initial=1) <= 0 else None
        for each, found in zip(self.layout.watched, self.beyond, strict=True):
            if self._counted(each) is None:
                _add_beyond(columns[each.name], each, inside, found)

    def _counted(self, each: Watched) -> tuple[Counted, Integers] | None:
        """Return the counts of the values of a column, if they show which lie beyond these bounds."""
        pairs = zip(self.layout.counted, self.by_value, strict=True)
        same = ((one, rows) for one, rows in pairs if (one.name, *one.bounds) == (each.name, each.lower, each.upper))
        return next(same, None)

    def _add(self, number: int, places: Integers, weights: Floats) -> None:
        if math.isnan(weights.min(initial=0.0)):
            missing = np.isnan(weights)
            np.add.at(self.absent[number], places[missing], 1)
            weights = np.where(missing, 0.0, weights)
        added = np.zeros(self.counts.size)
        np.add.at(added, places, weights)
        self.sums[number] += added.astype(np.int64)

    def tables(self) -> Tables:
        """Return the sums, with what each counted value adds multiplied by its count."""
        counts = self.by_value[0].sum(axis=1) if self.by_value else self.counts
        for column, table in zip(self.layout.counted, self.by_value, strict=True):
            values = np.arange(column.lower, column.upper + 1)
            for number in column.slots:
                slot = self.layout.slots.slots[number][1]
                steps = on_grid(values, column.bounds)
                adds = steps if slot.row is None else slot.row.of_steps(steps)
                self.sums[number] += table[:, :-1] @ adds.astype(np.int64)
                self.absent[number] += table[:, -1]
        for each, found in zip(self.layout.watched, self.beyond, strict=True):
            if (counted := self._counted(each)) is not None:
                _add_counted(*counted, each, found)
        return Tables(counts, tuple(self.sums), tuple(self.absent), self.beyond)


def _add_beyond(column: pl.Series, each: Watched, inside: Any, found: Integers) -> None:
    """Compare a block of values with bounds."""
    column, lower, upper = each.compared(column)
    values = column.to_numpy()
    compared = [values < lower, values > upper]
    there = None if column.dtype == pl.Int64 else values == values
    if inside is not None:
        compared = [flags & inside for flags in compared]
        there = inside if there is None else there & inside
    present = values.size if there is None else np.count_nonzero(there)
    found += np.array([*map(np.count_nonzero, compared), present], dtype=np.int64)


def _add_counted(column: Counted, table: Integers, each: Watched, found: Integers) -> None:
    """Compare values that were counted by cell with bounds, each once."""
    rows, values = table[1:, :-1].sum(axis=0), np.arange(column.lower, column.upper + 1)
    found += [rows[values < each.lower].sum(), rows[values > each.upper].sum(), rows.sum()]


def _with_values(places: Integers, column: pl.Series, counted: Counted, scratch: Scratch) -> Integers:
    """Return the place of each row and its value, as one number."""
    values = (column.fill_null(counted.lower) if column.null_count() else column).to_numpy()
    above = np.subtract(values, counted.lower, out=scratch.of("third", values.size, np.int64))
    if above.view(np.uint64).max(initial=0) >= counted.span:  # also if a difference wraps
        np.clip(values, counted.lower, counted.upper, out=above)
        above -= counted.lower
    outer = np.multiply(places, counted.span + 1, out=scratch.of("second", values.size, np.int64))
    both: Integers = np.add(above, outer, out=above)
    if column.null_count():
        missing = column.is_null().to_numpy()
        both[missing] = outer[missing] + counted.span
    return both


def to_steps(column: pl.Series, bounds: Bounds | None, scratch: Scratch) -> Floats:
    """Return the steps of a column on the grid of its bounds, or integers as they are; NaN for missing values."""
    if column.null_count() or column.dtype not in (pl.Int64, pl.Float64):
        column = column.cast(pl.Float64).fill_null(math.nan)
    steps = scratch.of("first", len(column), np.float64)
    if bounds is not None:
        return on_grid(column.to_numpy(), bounds, steps)
    steps[:] = column.to_numpy()
    return np.asarray(steps)


def of_rows_alone(source: Source, cells: Cells, terms: Terms) -> Totals:
    """Return the totals of rows, if each row is protected."""
    compiled = kernels.ready() and (source.rows is None or source.rows >= kernels.FEW_ROWS)
    if compiled and (found := kernel_rows.of_rows(source, cells, terms)) is not None:
        return found
    if len(cells.bins) == len(cells.keys.axes) == 1 and [*terms.lines] == [COUNTED]:
        return {COUNTED: _histogram(source.load(cells.requests()), cells, source.rows)}
    if (found := of_blocks(source, cells, terms)) is not None:
        return found
    lazy = source.load([*cells.requests(), *terms.requests()])
    if cells.bins:
        table = coded_rows(lazy, cells, terms, source.rows)
        return by_cell(table, terms, cells.keys.cells)
    return _by_keys(lazy, cells, terms, source.rows)


def coded_rows(lazy: pl.LazyFrame, cells: Cells, terms: Terms, rows: int | None, *extra: str) -> pl.DataFrame:
    """Return the rows in a declared cell: the number of the cell, the integers to sum, and `extra` columns."""
    table = collected(lazy.select(*cells.names(), *terms.prepared(), *extra), rows)
    return with_cells(table, (*terms.names(), *extra), cells.codes(table))


def with_cells(table: pl.DataFrame, names: Iterable[str], code: Integers) -> pl.DataFrame:
    """Return these columns of the rows in a declared cell, with its number."""
    coded = pl.DataFrame([*(table[name] for name in names), pl.Series("cell", code)])
    return coded if code.min(initial=0) >= 0 else coded.filter(pl.col("cell") >= 0)


def by_cell(table: pl.DataFrame, terms: Terms, cells: int) -> Totals:
    """Return totals of rows that carry the number of their cell."""
    if [*terms.lines] == [COUNTED]:
        return {COUNTED: np.bincount(table["cell"].to_numpy(), minlength=cells).astype(np.int64)}
    groups = collected(table.lazy().group_by("cell").agg(terms.aggregated()), table.height)
    return of_groups(groups, groups["cell"].to_numpy(), terms, cells)


def _by_keys(lazy: pl.LazyFrame, cells: Cells, terms: Terms, rows: int | None) -> Totals:
    """Return totals by the key columns as they are: only the few groups found are matched with the declared keys."""
    names, flags, flagged = cells.names(), [], []
    for number, each in enumerate(terms.watched):
        value = pl.col(each.name)
        compared = [value < each.lower, (value > each.upper) & value.is_not_nan(), value.is_not_nan()]
        flags += [one.alias(f"flag{3 * number + place}") for place, one in enumerate(compared)]
        flagged += [pl.col(f"flag{3 * number + place}").sum().cast(pl.Int64) for place in range(3)]
    if not names:
        groups = collected(lazy.with_columns(*terms.prepared(), *flags).select(*terms.aggregated(), *flagged), rows)
        code: Integers = np.zeros(1, dtype=np.int64)
    else:
        prepared = lazy.select(*names, *terms.prepared(), *flags)
        groups = collected(prepared.group_by(names).agg(*terms.aggregated(), *flagged), rows)
        code = cells.codes(groups)
    totals = of_groups(groups, code, terms, cells.keys.cells)
    if terms.checks is None:
        return totals
    flag_names = [f"flag{number}" for number in range(len(flags))]
    inside = groups.select(ROWS, *flag_names).filter(pl.Series(code >= 0, dtype=pl.Boolean)).sum()
    flagged_rows = inside.select(flag_names).row(0) if flag_names else ()
    beyond: Integers = np.array(flagged_rows, dtype=np.int64).reshape(-1, 3)
    return terms.with_numbers(totals, beyond, int(groups[ROWS].sum()), int(inside[ROWS][0]))


def of_groups(groups: pl.DataFrame, code: Integers, terms: Terms, cells: int) -> Totals:
    """Return totals of aggregated groups, by the numbers of their cells."""
    return {total: placed(terms.read(total, groups), code, cells) for total in terms.lines}


def _histogram(lazy: pl.LazyFrame, cells: Cells, rows: int | None) -> Integers:
    """Return a plain one-dimensional histogram."""
    bins = cells.half_open[cells.bins[0].column]
    column = lazy.collect(engine="streaming" if rows is None else "in-memory").to_series()  # in-memory copies nothing
    present = column.drop_nulls() if column.null_count() else column
    whole: Integers = np.zeros(bins.size, dtype=np.int64)
    chunks = present.get_chunks() if present.n_chunks() <= FEW_CHUNKS else [present]
    for chunk in chunks:  # one array of all chunks would be a copy
        values = chunk.to_numpy()
        if values.size < PARALLEL_ROWS:
            whole += bins.counted(values)
            continue
        parts = np.array_split(values, cpu_count() or 1)
        counted = partial(_counted_part, bins, parts)
        whole += np.sum(in_threads(counted, len(parts)), axis=0, dtype=np.int64)
    return whole


def _counted_part(bins: HalfOpenBins, parts: list[NDArray[Any]], part: int) -> Integers:
    """Return the number of values of one part in each bin."""
    return bins.counted(parts[part])
