"""The only look at rows: exact integer totals of each Statistic over the declared cells.

Each value becomes an integer on the Statistic's grid row by row, so that sums do not depend on order, threads or
chunks. Integer sums wrap modulo 2**64, and nothing here can fail on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
import polars as pl

from dpframe.frames import weights
from dpframe.frames.cells import Cells, Integers, counted, half_open, placed
from dpframe.frames.source import source_of
from dpframe.frames.terms import Terms
from dpframe.guarantee import PrivacyUnit
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic

Totals = dict[Statistic, Integers]

PARALLEL_ROWS = 2**20  # below, threads cost more than they save


def totals(frame: Any, query: Query, unit: PrivacyUnit, p: float) -> Totals:
    """One int64 per cell and Statistic, in grid steps; cells in which no row falls are zeros.

    `p` is the shape of the noise that will be added: the norm in which units are weighted.
    """
    source = source_of(frame)
    cells, terms = Cells.of(source, query.keys), Terms.of(query.statistics)
    if unit.column is not None:
        lazy = source.bring([*cells.wanted(), *terms.wanted(), ("unit", unit.column, "unit", None)])
        return weights.bounded(coded_rows(lazy, cells, terms, "unit"), terms, unit, p, query.keys.cells)
    lazy = source.bring([*cells.wanted(), *terms.wanted()])
    if len(cells.bins) == len(cells.keys.axes) == 1 and query.statistics == (Statistic(None),):
        return {query.statistics[0]: _histogram(lazy, cells)}
    if cells.bins:
        table = coded_rows(lazy, cells, terms)
        return by_cell(table, terms, query.keys.cells)
    return _by_keys(lazy, cells, terms)


def coded_rows(lazy: pl.LazyFrame, cells: Cells, terms: Terms, *extra: str) -> pl.DataFrame:
    """The rows that fall in a declared cell: the cell's number, the integers to be summed, and `extra` columns."""
    table = lazy.select(*cells.names(), *terms.prepared(), *extra).collect(engine="streaming")
    code = cells.codes(table)
    table = table.select(*terms.names(), *extra, pl.Series("cell", code))
    return table if code.min(initial=0) >= 0 else table.filter(pl.col("cell") >= 0)


def by_cell(table: pl.DataFrame, terms: Terms, cells: int) -> Totals:
    """Totals of rows that carry their cell's number."""
    if terms.statistics == (Statistic(None),):
        return {terms.statistics[0]: np.bincount(table["cell"].to_numpy(), minlength=cells).astype(np.int64)}
    groups = table.lazy().group_by("cell").agg(terms.aggregated()).collect(engine="streaming")
    return _placed(groups, groups["cell"].to_numpy(), terms, cells)


def _by_keys(lazy: pl.LazyFrame, cells: Cells, terms: Terms) -> Totals:
    """Totals by the key columns as they are: only the few groups found are matched with the declared keys."""
    names = cells.names()
    if not names:
        groups = lazy.with_columns(terms.prepared()).select(terms.aggregated()).collect(engine="streaming")
        return _placed(groups, np.zeros(1, dtype=np.int64), terms, 1)
    prepared = lazy.select(*names, *terms.prepared())
    groups = prepared.group_by(names).agg(terms.aggregated()).collect(engine="streaming")
    return _placed(groups, cells.codes(groups), terms, cells.keys.cells)


def _placed(groups: pl.DataFrame, code: Integers, terms: Terms, cells: int) -> Totals:
    return {statistic: placed(terms.read(statistic, groups), code, cells) for statistic in terms.statistics}


def _histogram(lazy: pl.LazyFrame, cells: Cells) -> Integers:
    """A plain one-dimensional histogram."""
    axis = cells.bins[0]
    values = lazy.drop_nulls().collect(engine="streaming").to_series().to_numpy()
    edges, closed = half_open(axis, cells.tick(axis)), axis.outside == "clip"
    count: Callable[[Any], Integers] = lambda part: counted(part, edges, closed)  # noqa: E731
    if values.size < PARALLEL_ROWS:
        return count(values)
    parts = np.array_split(values, cpu_count() or 1)
    with ThreadPoolExecutor(len(parts)) as pool:
        return np.sum(list(pool.map(count, parts)), axis=0, dtype=np.int64)
