"""The engine that reads a table: decided by what it is, and never by what is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpframe.engines.columns.source import ColumnType, Source, source_of
from dpframe.engines.engine import Engine, Partial, Reading
from dpframe.engines.pieces.batches import of_dataset, of_lazy, of_relation
from dpframe.engines.pieces.dask import DaskTable, check_cluster
from dpframe.engines.pieces.spark import SparkTable, check_executors
from dpframe.engines.task import Task
from dpframe.errors import InvalidArgument, InvalidType, named, shown
from dpframe.frames.kinds import is_dask, is_dataset, is_engine, is_pandas, is_relation, is_spark

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
    if is_spark(frame):
        check_executors(frame)
    if is_dask(frame):
        check_cluster()


def reads_in_batches(frame: Any) -> bool:
    """Tell whether a table is read in batches by dpframe itself, so that memory and progress can be chosen."""
    return not is_engine(frame) and (isinstance(frame, pl.LazyFrame) or is_dataset(frame) or is_relation(frame))
