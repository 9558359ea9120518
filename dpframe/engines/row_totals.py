"""Totals of one frame in memory, each of whose rows counts by itself: integers row by row, summed by cell."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines import block_totals, kernel_steps
from dpframe.engines.aggregates import Terms
from dpframe.engines.cells import Cells, Integers, placed
from dpframe.engines.half_open import HalfOpenBins
from dpframe.engines.source import Source, collected
from dpframe.queries.total import RowsTotal, Total

Totals = dict[Total, Integers]

PARALLEL_ROWS = 2**20  # below, threads cost more than they save
FEW_CHUNKS = 16


def of_rows_alone(source: Source, cells: Cells, terms: Terms) -> Totals:
    """Totals that protect each row."""
    if (found := kernel_steps.of_rows(source, cells, terms)) is not None:
        return found
    if len(cells.bins) == len(cells.keys.axes) == 1 and terms.totals == (RowsTotal(),):
        return {terms.totals[0]: _histogram(source.load(cells.requests()), cells, source.rows)}
    if (found := block_totals.of_rows(source, cells, terms)) is not None:
        return found
    lazy = source.load([*cells.requests(), *terms.requests()])
    if cells.bins:
        table = coded_rows(lazy, cells, terms, source.rows)
        return by_cell(table, terms, cells.keys.cells)
    return _by_keys(lazy, cells, terms, source.rows)


def coded_rows(lazy: pl.LazyFrame, cells: Cells, terms: Terms, rows: int | None, *extra: str) -> pl.DataFrame:
    """The rows that fall in a declared cell: the cell's number, the integers to be summed, and `extra` columns."""
    table = collected(lazy.select(*cells.names(), *terms.prepared(), *extra), rows)
    return with_cells(table, (*terms.names(), *extra), cells.codes(table))


def with_cells(table: pl.DataFrame, names: Iterable[str], code: Integers) -> pl.DataFrame:
    """These columns of the rows that fall in a declared cell, with its number."""
    coded = pl.DataFrame([*(table[name] for name in names), pl.Series("cell", code)])
    return coded if code.min(initial=0) >= 0 else coded.filter(pl.col("cell") >= 0)


def by_cell(table: pl.DataFrame, terms: Terms, cells: int) -> Totals:
    """Totals of rows that carry their cell's number."""
    if terms.totals == (RowsTotal(),):
        return {terms.totals[0]: np.bincount(table["cell"].to_numpy(), minlength=cells).astype(np.int64)}
    groups = collected(table.lazy().group_by("cell").agg(terms.aggregated()), table.height)
    return of_groups(groups, groups["cell"].to_numpy(), terms, cells)


def _by_keys(lazy: pl.LazyFrame, cells: Cells, terms: Terms, rows: int | None) -> Totals:
    """Totals by the key columns as they are: only the few groups found are matched with the declared keys."""
    names = cells.names()
    if not names:
        groups = collected(lazy.with_columns(terms.prepared()).select(terms.aggregated()), rows)
        return of_groups(groups, np.zeros(1, dtype=np.int64), terms, 1)
    prepared = lazy.select(*names, *terms.prepared())
    groups = collected(prepared.group_by(names).agg(terms.aggregated()), rows)
    return of_groups(groups, cells.codes(groups), terms, cells.keys.cells)


def of_groups(groups: pl.DataFrame, code: Integers, terms: Terms, cells: int) -> Totals:
    """Totals of aggregated groups, by the numbers of their cells."""
    return {total: placed(terms.read(total, groups), code, cells) for total in terms.totals}


def _histogram(lazy: pl.LazyFrame, cells: Cells, rows: int | None) -> Integers:
    """A plain one-dimensional histogram."""
    bins = cells.half_open[cells.bins[0].column]
    column = lazy.collect(engine="streaming" if rows is None else "in-memory").to_series()  # the latter copies nothing
    present = column.drop_nulls() if column.null_count() else column
    whole: Integers = np.zeros(bins.size, dtype=np.int64)
    chunks = present.get_chunks() if present.n_chunks() <= FEW_CHUNKS else [present]
    for chunk in chunks:  # all of them as one array would be a copy
        whole += _counted(chunk.to_numpy(), bins)
    return whole


def _counted(values: Any, bins: HalfOpenBins) -> Integers:
    if values.size < PARALLEL_ROWS:
        return bins.counted(values)
    parts = np.array_split(values, cpu_count() or 1)
    with ThreadPoolExecutor(len(parts)) as pool:
        return np.asarray(np.sum(list(pool.map(bins.counted, parts)), axis=0, dtype=np.int64))
