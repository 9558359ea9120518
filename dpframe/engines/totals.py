"""The only look at rows: the engine that reads a table, and the exact integer totals of each Total that come of it.

The engine is decided by what a table is, and never by what is in it. Each value becomes an integer on the Total's grid
row by row, so that sums do not depend on order, threads, chunks or pieces. Integer sums wrap modulo 2**64, and nothing
here can fail on a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns import source
from dpframe.engines.columns.source import ColumnType, Source, source_of
from dpframe.engines.compiled import kernels
from dpframe.engines.engine import Engine, Partial, Reading
from dpframe.engines.pieces.batches import of_dataset, of_lazy, of_relation
from dpframe.engines.pieces.dask import DaskTable, check_cluster
from dpframe.engines.pieces.spark import SparkTable, check_executors
from dpframe.engines.sums import places, row_totals, unit_blocks
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.engines.sums.cells import Integers, added
from dpframe.engines.sums.distinct import counted_values
from dpframe.engines.task import CheckTask, Task
from dpframe.errors import InvalidArgument, InvalidType, named, shown
from dpframe.frames.kinds import is_dask, is_dataset, is_engine, is_pandas, is_relation, is_spark
from dpframe.privacy import PrivacyUnit
from dpframe.queries.indicators import Checks
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import Total, VectorTotal, over

WHOLE = "a frame in memory, which is read as it is"


@dataclass(frozen=True)
class InMemory:
    """A frame in memory, of pandas, Polars or Arrow: one piece, whose schema was read."""

    source: Source

    def schema(self) -> Mapping[str, ColumnType]:
        """The columns as dpframe reads them."""
        return self.source.schema

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """The frame itself is the piece: no column is copied that is not read."""
        return piece(self.source)

    def push(self, task: Task) -> Partial | None:
        """Nothing goes faster."""
        return None


@dataclass(frozen=True)
class FromOutside:
    """An engine of the caller's, which may leave `push` out."""

    engine: Any

    def schema(self) -> Mapping[str, ColumnType]:
        """The columns as dpframe reads them."""
        return source_of(self.engine).schema

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Its own pieces."""
        folded: Partial = self.engine.fold(columns, piece, by)
        return folded

    def push(self, task: Any) -> Partial | None:
        """Its own totals; of conditions, units of several columns and dpframe's other tasks it knows nothing."""
        plain = isinstance(task, Task) and not task.conditional and len(task.unit.columns) < 2
        knows = plain and hasattr(self.engine, "push")
        pushed: Partial | None = self.engine.push(task) if knows else None
        return pushed


def engine_of(frame: Any, reading: Reading) -> Engine:
    """The engine that reads a table."""
    if isinstance(frame, pl.DataFrame) or is_pandas(frame):
        return InMemory(source_of(frame))
    if is_engine(frame):
        return FromOutside(frame)
    if isinstance(frame, pl.LazyFrame):
        return of_lazy(frame, reading)
    if is_dataset(frame):
        return of_dataset(frame, reading)
    if is_relation(frame):
        return of_relation(frame, reading)
    if is_spark(frame):
        return SparkTable(frame)
    if is_dask(frame):
        return DaskTable(frame)
    return InMemory(source_of(frame))


def answered(engine: Engine, task: Any, of_pieces: Any = None) -> Any:
    """The answer of a table to a task: as its engine can itself, or piece by piece, of which more may be asked."""
    partial = engine.push(task)
    asked = of_pieces or task
    return engine.fold(asked.columns, asked.piece, asked.by) if partial is None else partial


def check_reading(frame: Any, **options: Any) -> None:
    """Refuse options of reading in batches for what is not read so."""
    for name, value in options.items():
        if value is not None and not reads_in_batches(frame):
            where = "a table of Spark, whose executors read it" if is_spark(frame) else WHOLE
            where = "a table of Dask, whose workers read it" if is_dask(frame) else where
            raise InvalidArgument(
                f"{name} must be left out for {where}, not {shown(value)}. It is for "
                "LazyFrames, pyarrow Datasets and DuckDB relations."
            )


def check_whole(frame: Any, what: str = "reports of single rows", way_out: str = "") -> None:
    """Refuse a table that is read in pieces alone, where each row is asked by itself and rows have an order."""
    if is_spark(frame) or is_dask(frame):
        instead = "Let each partition randomize its own rows with dpframe.local, or ask for totals."
    elif is_dataset(frame) or is_relation(frame) or is_engine(frame):
        instead = "Bring its rows to pandas, Polars or Arrow first, or ask for totals."
    else:
        return
    raise InvalidType(f"frame must be in memory for {what}, not {named(frame)}. {way_out or instead}")


def check_workers(frame: Any) -> None:
    """Refuse a table whose rows are elsewhere, where dpframe cannot run. No row is read."""
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return
    if is_spark(frame):
        check_executors(frame)
    if is_dask(frame):
        check_cluster()


def reads_in_batches(frame: Any) -> bool:
    """Tell whether a table is read in batches by dpframe itself, so that memory and progress can be chosen."""
    return not is_engine(frame) and (isinstance(frame, pl.LazyFrame) or is_dataset(frame) or is_relation(frame))


Totals = dict[Total, Integers]

WAY_CHANGES = tuple(  # numbers of rows from which on totals are computed in another way, or in more pieces
    sorted({source.FEW_ROWS, row_totals.FEW_ROWS, places.BLOCK, unit_blocks.BLOCK, kernels.FEW_ROWS, kernels.BLOCK})
)


def totals(
    frame: Any,
    query: Query,
    unit: PrivacyUnit,
    p: float,
    reading: Reading | None = None,
    secret: int = 0,
    checks: Checks | None = None,
) -> Totals:
    """One int64 per cell and Total, in grid steps; cells in which no row falls are zeros.

    Of `checks` the numbers stand under `OF_CHECKS`. They come of the same read; where an engine has its own way to
    totals, they are asked of it after.

    `p` is the norm that the noise covers, and in which units are weighted. Subtotals are sums of the
    totals of cells, modulo 2**64 as these. Of what is read in batches, `reading` says how. `secret` decides which
    groups a unit keeps that is in more of them than may count its values; the totals are bounded whatever it is.
    """
    engine = engine_of(frame, reading or Reading())
    task, gathered = Task.of(engine, query, unit, p, secret), gathers(query)
    partial = answered(engine, task, task if checks is None or gathered else task.beside(checks))
    numbers: Totals = {}
    if checks is not None and isinstance(partial, Partial):
        there = OF_CHECKS in partial.totals
        numbers = {OF_CHECKS: _numbers(partial, checks) if there else _asked_numbers(engine, checks)}
        partial = replace(partial, totals={total: one for total, one in partial.totals.items() if total != OF_CHECKS})
    if gathered:
        partial = counted_values(partial, query.keys.cells)
    steps = _checked(partial, task)
    for level in query.shown.levels[1:]:
        for total in query.of_cells:
            steps[over(total, level.columns)] = added(steps[total], level.group, level.size)
    return {**steps, **numbers}


def check_counts(frame: Any, checks: Checks, reading: Reading | None = None) -> Integers:
    """The number of units that have each indicator, in the order of `Checks.indicators`, and no totals."""
    return _asked_numbers(engine_of(frame, reading or Reading()), checks)


def _asked_numbers(engine: Engine, checks: Checks) -> Integers:
    return _numbers(answered(engine, CheckTask.of(engine, checks)), checks)


def _numbers(partial: Any, checks: Checks) -> Integers:
    counts = partial.totals.get(OF_CHECKS) if isinstance(partial, Partial) else None
    if counts is None or counts.shape != (len(checks.indicators),) or counts.dtype != np.int64:
        raise InvalidType("fold must return the sum of what piece gave")
    return np.asarray(counts)


def _checked(partial: Partial, task: Task) -> Totals:
    """Refuse what an engine from outside may have made of its partials: rows would count more than is protected."""
    cells, expected = task.query.keys.cells, {}
    for total in task.query.of_cells:
        vector = total.vector if isinstance(total, VectorTotal) else None
        expected[total] = (cells if vector is None else cells // vector.cells * vector.folded,)
    if not isinstance(partial, Partial) or {total: cells.shape for total, cells in partial.totals.items()} != expected:
        raise InvalidType("fold must return the sum of what piece gave")
    if any(cells.dtype != np.int64 for cells in partial.totals.values()):
        raise InvalidType("fold must return the sum of what piece gave")
    return dict(partial.totals)
