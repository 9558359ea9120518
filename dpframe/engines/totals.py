"""The engine that reads a table, and the exact integer totals of each Total.

The kind of a table decides the engine, never its content. Each value becomes an integer on the Total's grid, row by
row, so that sums do not depend on order, threads, chunks or pieces. Integer sums wrap modulo 2**64, and nothing here
can fail on a value.
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
from dpframe.engines.pieces.unit_parts import unnamed_file
from dpframe.engines.sums import places, row_totals, unit_blocks
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.engines.sums.cells import Integers, added
from dpframe.engines.sums.distinct import counted_values
from dpframe.engines.task import CheckTask, Task
from dpframe.errors import InvalidArgument, InvalidType, named, said, shown
from dpframe.frames.kinds import is_dask, is_dataset, is_engine, is_pandas, is_relation, is_spark
from dpframe.privacy import PrivacyUnit
from dpframe.queries.indicators import Checks
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import Total, VectorTotal, over

WHOLE = "a frame in memory, which is read as it is"


@dataclass(frozen=True)
class InMemory:
    """Frame in memory, of pandas, Polars or Arrow: one piece, whose schema is already read."""

    source: Source

    def schema(self) -> Mapping[str, ColumnType]:
        """Return the columns as dpframe reads them."""
        return self.source.schema

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Run the piece on the frame itself; columns that are not read are not copied."""
        return piece(self.source)

    def push(self, task: Task) -> Partial | None:
        """Return None: no other way is faster."""
        return None


@dataclass(frozen=True)
class FromOutside:
    """Engine of the caller, which may lack `push`."""

    engine: Any

    def schema(self) -> Mapping[str, ColumnType]:
        """Return the columns as dpframe reads them."""
        return source_of(self.engine).schema

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Return the sum over the engine's own pieces."""
        folded: Partial = self.engine.fold(columns, piece, by)
        return folded

    def push(self, task: Any) -> Partial | None:
        """Return the engine's own totals; None for conditions, units of several columns and dpframe's other tasks."""
        plain = isinstance(task, Task) and not task.conditional and len(task.unit.columns) < 2
        knows = plain and hasattr(self.engine, "push")
        pushed: Partial | None = self.engine.push(task) if knows else None
        return pushed


def engine_of(frame: Any, reading: Reading) -> Engine:
    """Return the engine that reads a table."""
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
    """Return the engine's own answer to a task, or else the sum over pieces, of `of_pieces` if it asks for more."""
    partial = engine.push(task)
    asked = of_pieces or task
    return engine.fold(asked.columns, asked.piece, asked.by) if partial is None else partial


def check_reading(frame: Any, **options: Any) -> None:
    """Refuse options for reading in batches if a table is not read in batches."""
    for name, value in options.items():
        if value is not None and not reads_in_batches(frame):
            where = "a table of Spark, whose executors read it" if is_spark(frame) else WHOLE
            where = "a table of Dask, whose workers read it" if is_dask(frame) else where
            raise InvalidArgument(
                f"{name} must be left out for {where}, not {shown(value)}. It is for "
                "LazyFrames, pyarrow Datasets and DuckDB relations."
            )


def check_whole(frame: Any, what: str = "reports of single rows", way_out: str = "") -> None:
    """Refuse a table that is only read in pieces, if each row counts by itself and rows have an order."""
    if is_spark(frame) or is_dask(frame):
        instead = "Let each partition randomize its own rows with dpframe.local, or ask for totals."
    elif is_dataset(frame) or is_relation(frame) or is_engine(frame):
        instead = "Bring its rows to pandas, Polars or Arrow first, or ask for totals."
    else:
        return
    raise InvalidType(f"frame must be in memory for {what}, not {named(frame)}. {way_out or instead}")


def check_workers(frame: Any) -> None:
    """Refuse a table whose rows are elsewhere, if dpframe cannot run there. Read no row."""
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return
    if is_spark(frame):
        check_executors(frame)
    if is_dask(frame):
        check_cluster()


def check_spill(frame: Any, unit: PrivacyUnit) -> None:
    """Refuse a table read in batches by unit if no temporary file can be made: many rows need one, and few do not."""
    if not unit.columns or not reads_in_batches(frame):
        return
    try:
        unnamed_file().close()
    except OSError as error:
        raise InvalidArgument(
            f"TMPDIR must be a folder in which this process may write: many rows of {named(frame)} need a temporary "
            f"file by unit ({said(error)}). Nothing was charged. Name one on a disk."
        ) from None


def reads_in_batches(frame: Any) -> bool:
    """Return whether dpframe itself reads a table in batches, so that memory and progress can be chosen."""
    return not is_engine(frame) and (isinstance(frame, pl.LazyFrame) or is_dataset(frame) or is_relation(frame))


Totals = dict[Total, Integers]

WAY_CHANGES = tuple(  # numbers of rows at which the computation changes, or the number of pieces
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
    """Return one int64 per cell and Total, in grid steps; cells without a row are zeros.

    The numbers of `checks` are under `OF_CHECKS`. They come from the same read; if an engine computes totals in its own
    way, it is asked for them afterwards.

    `p` is the norm that the noise covers and by which units are weighted. Subtotals are sums of the totals of cells,
    also modulo 2**64. `reading` applies to tables that are read in batches. `secret` decides which groups a unit keeps,
    if it is in more groups than may count its values; the totals are bounded for any secret.
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
    """Return the number of units that have each indicator, in the order of `Checks.indicators`, without totals."""
    return _asked_numbers(engine_of(frame, reading or Reading()), checks)


def _asked_numbers(engine: Engine, checks: Checks) -> Integers:
    return _numbers(answered(engine, CheckTask.of(engine, checks)), checks)


def _numbers(partial: Any, checks: Checks) -> Integers:
    counts = partial.totals.get(OF_CHECKS) if isinstance(partial, Partial) else None
    if counts is None or counts.shape != (len(checks.indicators),) or counts.dtype != np.int64:
        raise InvalidType("fold must return the sum of what piece gave")
    return np.asarray(counts)


def _checked(partial: Partial, task: Task) -> Totals:
    """Return the totals after a check: with a faulty external engine, rows could count more than is protected."""
    cells, expected = task.query.keys.cells, {}
    for total in task.query.of_cells:
        vector = total.vector if isinstance(total, VectorTotal) else None
        expected[total] = (cells if vector is None else cells // vector.cells * vector.folded,)
    if not isinstance(partial, Partial) or {total: cells.shape for total, cells in partial.totals.items()} != expected:
        raise InvalidType("fold must return the sum of what piece gave")
    if any(cells.dtype != np.int64 for cells in partial.totals.values()):
        raise InvalidType("fold must return the sum of what piece gave")
    return dict(partial.totals)
