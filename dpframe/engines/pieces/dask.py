"""Tables of Dask: tasks compute totals of their own partitions, and these are added up in a tree.

No row reaches the calling process, unless its own threads are the workers. If there are units, rows become coded rows
first (see `Task`), which are sent in parts by a hash of the unit. Dask sees numbers of parts and bytes. Its own hash,
for which 1 and 1.0 are different, applies to numbers of parts alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns.dask_partitions import frame_of
from dpframe.engines.columns.identity import of_rows
from dpframe.engines.columns.source import ColumnType, types_of_dask
from dpframe.engines.engine import Partial
from dpframe.engines.pieces.unit_parts import FAILED, in_parts, received, together, versions
from dpframe.engines.task import Task
from dpframe.errors import InvalidArgument, ReleaseFailed, shown
from dpframe.errors.tracebacks import withheld
from dpframe.frames.kinds import polars_works

MOST_PARTS = 2**10
PARTS = 4  # parts of units for each partition
BRANCHES = 8  # of the tree that adds totals
NOT_DONE = -1  # the part number of a partition that failed


@dataclass(frozen=True)
class DaskTable:
    """Engine of a Dask DataFrame."""

    frame: Any

    def schema(self) -> Mapping[str, ColumnType]:
        """Return the columns as dpframe reads them, from what Dask declares; no task is run."""
        return types_of_dask(self.frame)

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Return the sum over partitions, or over parts of whole units."""
        dtypes = self._dtypes(columns)
        if by is not None:
            return self._of_units(Whole(dtypes, self._exact(columns), piece, by))
        return _sum(Answering(Rows(dtypes, self._exact(columns), piece).answer, versions()), self._narrow(dtypes))

    def push(self, task: Task) -> Partial | None:
        """Return the totals of units, from coded rows in parts of whole units."""
        if task.by is None:
            return None
        return self._of_units(Coded(self._dtypes(task.columns), self._exact(task.columns), task))

    def _dtypes(self, columns: Sequence[str]) -> dict[str, Any]:
        schema = self.schema()
        return {name: schema[name].polars for name in columns}

    def _exact(self, columns: Sequence[str]) -> frozenset[str]:
        """Return the columns that no missing value turns into NumPy's floats."""
        return frozenset(name for name in columns if not isinstance(self.frame.dtypes[name], np.dtype))

    def _narrow(self, dtypes: Mapping[str, Any]) -> Any:
        return self.frame[list(dtypes) or list(self.frame.columns[:1])]

    def _of_units(self, work: Whole | Coded) -> Partial:
        places = max(1, self.frame.npartitions)
        meta = _numbered([], [])
        send = Sending(work, min(PARTS * places, MOST_PARTS), versions())
        sent = self._narrow(work.dtypes).map_partitions(send, meta=meta, enforce_metadata=False)
        return _sum(Answering(work.answer, versions()), self._exchanged(sent, places))

    def _exchanged(self, sent: Any, places: int) -> Any:
        """Return the same rows, with those of a part in one partition."""
        return sent.shuffle(on="part", npartitions=places)


@dataclass(frozen=True)
class Rows:
    """Rows that count by themselves: a partition is a piece."""

    dtypes: Mapping[str, Any]
    exact: frozenset[str]
    piece: Callable[[Any], Partial]

    def answer(self, partition: Any) -> Partial:
        """Return the totals of a partition."""
        return self.piece(frame_of(partition, self.dtypes, self.exact))


@dataclass(frozen=True)
class Whole:
    """Rows as they are, sent by the unit in one column, for pieces of whole units."""

    dtypes: Mapping[str, Any]
    exact: frozenset[str]
    piece: Callable[[Any], Partial]
    by: str

    def rows(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
        """Return the rows of a partition, and the unit of each."""
        return frame, frame.lazy().select(of_rows(pl.col(self.by), self.dtypes[self.by])).collect().to_series()

    def fewer(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the same rows: the use of them is unknown."""
        return rows

    def answer(self, partition: Any) -> Partial:
        """Return the totals of the parts of one partition."""
        return _of_parts(partition, self.piece(_empty(self.dtypes)), lambda tables: self.piece(pl.concat(tables)))


@dataclass(frozen=True)
class Coded:
    """Coded rows of a task, weighed by whole units."""

    dtypes: Mapping[str, Any]
    exact: frozenset[str]
    task: Task

    def rows(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
        """Return the coded rows of a partition, and the unit of each."""
        coded = self.task.coded(frame)
        return coded, coded["unit"]

    def fewer(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each unit and cell: a unit with most of all rows has few of these."""
        return self.task.combine(rows)

    def answer(self, partition: Any) -> Partial:
        """Return the totals of the parts of one partition."""
        return _of_parts(partition, self.task.piece(_empty(self.dtypes)), self._weighed)

    def _weighed(self, tables: list[pl.DataFrame]) -> Partial:
        return self.task.weigh(together(self.task, tables))


@dataclass(frozen=True)
class Sending:
    """Work of a task that sends the rows of a partition: one row of bytes for each part of the units."""

    work: Whole | Coded
    parts: int
    versions: str

    def __call__(self, partition: Any) -> Any:
        sent = withheld(lambda: self._sent(partition)) if _is_ready(self.versions) else None
        return _numbered([NOT_DONE], [b""]) if sent is None else _numbered(*sent)

    def _sent(self, partition: Any) -> tuple[list[int], list[bytes]]:
        rows, unit = self.work.rows(frame_of(partition, self.work.dtypes, self.work.exact))
        return in_parts(rows, unit, self.parts, self.work.fewer)


@dataclass(frozen=True)
class Answering:
    """Work of a task on complete rows or units; None if it fails, since the error may hold private values."""

    answer: Callable[[Any], Partial]
    versions: str

    def __call__(self, partition: Any) -> Partial | None:
        return withheld(lambda: self.answer(partition)) if _is_ready(self.versions) else None


def _is_ready(expected: str) -> bool:
    """Return whether this worker has the versions of the process that asks, and its queries end."""
    return versions() == expected and polars_works()


def _of_parts(table: Any, zero: Partial, weigh: Callable[[list[pl.DataFrame]], Partial]) -> Partial:
    """Return the sum over the parts in a partition, one after the other."""
    parts = table["part"].to_numpy()
    if (parts == NOT_DONE).any():
        raise ReleaseFailed("a partition could not be read")
    for part in np.unique(parts).tolist():
        zero += weigh([received(rows) for rows in table["rows"][parts == part]])
    return zero


def _numbered(parts: list[int], rows: list[bytes]) -> Any:
    """Return rows of parts in a pandas frame, as bytes that Dask does not read as texts."""
    import pandas
    import pyarrow

    dtype: Any = pandas.ArrowDtype(pyarrow.large_binary())
    return pandas.DataFrame({"part": np.array(parts, dtype=np.int64), "rows": pandas.array(rows, dtype=dtype)})


def _empty(dtypes: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict(dtypes) or {"": pl.Int8})


def _sum(answer: Callable[[Any], Partial | None], frame: Any) -> Partial:
    """Return the sum of the answers of all partitions, by a tree, so that few of them meet in one process at a time."""
    import dask

    added = dask.delayed(_added, pure=False, traverse=False)
    answered = dask.delayed(answer, pure=False, traverse=False)
    partials = [answered(partition) for partition in frame.to_delayed()]
    while len(partials) > 1:
        partials = [added(partials[start : start + BRANCHES]) for start in range(0, len(partials), BRANCHES)]
    (total,) = dask.compute(*partials)
    if not isinstance(total, Partial):
        raise ReleaseFailed(FAILED)
    return total


def _added(partials: Sequence[Partial | None]) -> Partial | None:
    """Return the sum; None if one failed."""
    total: Partial | None = partials[0]
    for partial in partials[1:]:
        total = None if total is None or partial is None else total + partial
    return total


def check_cluster() -> None:
    """Refuse workers that are forked and, if a client is open, workers with other versions than this process.

    A function that reads no row asks them. Each task asks again, because a worker may join later.
    """
    import dask

    scheduler, context = dask.config.get("scheduler", None), dask.config.get("multiprocessing.context", "spawn")
    if scheduler in ("processes", "multiprocessing") and context == "fork":
        raise InvalidArgument(
            "multiprocessing.context must be 'spawn' or 'forkserver', not 'fork': in forked workers Polars never ends. "
            'Write dask.config.set({"multiprocessing.context": "spawn"}).'
        )
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return
    try:
        client = distributed.default_client()
    except ValueError:  # there is none: tasks run in threads or processes of this machine
        return

    def report() -> str:  # self-contained: dpframe may be missing there
        try:
            import pandas
            import polars

            from dpframe import _version
            from dpframe.frames.kinds import check_threads

            check_threads()
            return f"dpframe {_version.VERSION}, Polars {polars.__version__}, pandas {pandas.__version__}"
        except ImportError as error:
            return f"no {error.name}"

    there = set(client.run(report).values())
    if not there <= {versions()}:
        raise InvalidArgument(
            f"frame must be of a cluster whose workers have {versions()}, as this process has, not "
            f"{shown('; '.join(sorted(there - {versions()})))}. Nothing was charged. Install these versions there."
        )
