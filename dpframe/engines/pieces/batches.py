"""Tables larger than memory: they are read in batches of rows, from which whole units are assembled if there are any.

One function for each library yields its batches. Their order has no effect.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from threading import Event, Semaphore
from typing import Any

import polars as pl

from dpframe.engines.columns.source import NEVER_FAILING, ColumnType, exactly, from_arrow, source_of
from dpframe.engines.engine import Partial, Reading, added_up
from dpframe.engines.pieces.unit_parts import Spill
from dpframe.engines.task import Task

ROWS = "rows"  # the column if none is asked for, since the first column of a table may be unreadable

AHEAD = 4  # Polars may read ahead 1 / AHEAD of the memory from Parquet files
VALUE = 8  # bytes of a decoded value, in addition to those of its pages

log = logging.getLogger("dpframe")


@dataclass(frozen=True)
class Batches:
    """Engine of a table that yields batches of its rows."""

    table: Any
    narrow: Callable[[Any, Sequence[str]], Any]  # the table with some of its columns; with one if none is named
    empty: Callable[[Any], Any]  # a frame without rows, with the dtypes of the batches
    batches: Callable[[Any, Reading], Iterator[Any]]
    reading: Reading

    def schema(self) -> Mapping[str, ColumnType]:
        """Return the columns as dpframe reads them."""
        return source_of(self.table).schema

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Return the sum over batches; whole units are one piece, for which `push` needs less memory."""
        frames = self._frames(columns)
        return added_up(map(piece, frames)) if by is None else piece(pl.concat(map(_as_polars, frames)))

    def push(self, task: Task) -> Partial | None:
        """Return the totals of units, from coded rows of all batches in parts of whole units."""
        if task.by is None:
            return None
        log.debug("rows are read in batches, and those of each unit brought together")
        with Spill(self.reading.bytes, task.combine, task.weigh) as spill:
            for frame in self._frames(task.columns):
                spill.add(task.coded(frame))
            log.debug("all rows are read; units are weighed")
            return spill.total()

    def _frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield a frame without rows, so that there is at least one, and all batches."""
        table = self.narrow(self.table, columns)
        yield self.empty(table)
        yield from self.reading.seen(self.batches(table, self.reading))


def of_lazy(frame: pl.LazyFrame, reading: Reading) -> Batches:
    """Return the engine of a Polars LazyFrame: files that are scanned, and any operations on their columns."""
    return Batches(frame, _narrow_lazy, _empty_lazy, _lazy_batches, reading)


def of_dataset(dataset: Any, reading: Reading) -> Batches:
    """Return the engine of a pyarrow Dataset: files of one schema, read by a scanner that selects columns."""
    return Batches(dataset, _narrow_dataset, _empty_dataset, _dataset_batches, reading)


def of_relation(relation: Any, reading: Reading) -> Batches:
    """Return the engine of a DuckDB relation: a table, view or query of a connection, computed while it is read."""
    return Batches(
        relation, _narrow_relation, lambda narrow: narrow.limit(0).to_arrow_table(), relation_batches, reading
    )


def _as_polars(frame: Any) -> pl.DataFrame:
    return frame if isinstance(frame, pl.DataFrame) else from_arrow(frame)


def _narrow_lazy(frame: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    names = list(columns) or frame.collect_schema().names()[:1]
    return frame.select(exactly(name).alias(name) for name in names)


def _empty_lazy(narrow: pl.LazyFrame) -> pl.DataFrame:
    return pl.DataFrame(schema=narrow.collect_schema())


def _narrow_dataset(dataset: Any, columns: Sequence[str]) -> Any:
    return dataset, list(columns)


def _lazy_batches(narrow: pl.LazyFrame, reading: Reading) -> Iterator[pl.DataFrame]:
    for some in slices(narrow, reading.bytes // AHEAD):
        yield from collected_batches(some, reading.batch)


def _empty_dataset(narrow: Any) -> Any:
    import pyarrow

    dataset, names = narrow
    fields = [dataset.schema.field(name) for name in names] or [(ROWS, pyarrow.bool_())]
    return pyarrow.schema(fields).empty_table()


def _dataset_batches(narrow: Any, reading: Reading) -> Iterator[Any]:
    import pyarrow
    import pyarrow.compute

    dataset, names = narrow
    columns: Any = names or {ROWS: pyarrow.compute.scalar(True)}
    ahead = {"batch_readahead": 2, "fragment_readahead": 1, "fragment_scan_options": _unbuffered(dataset)}
    # With threads pyarrow decodes hundreds of batches before they are asked for.
    scanner = dataset.scanner(columns=columns, batch_size=reading.batch, use_threads=False, **ahead)
    return (pyarrow.Table.from_batches([batch]) for batch in scanner.to_batches() if batch.num_rows)


def _unbuffered(dataset: Any) -> Any:
    """Return options of Parquet files if the caller chose none: by default pyarrow keeps all bytes that it has read."""
    import pyarrow.dataset

    files = getattr(dataset, "format", None)
    if not isinstance(files, pyarrow.dataset.ParquetFileFormat):  # files of Arrow fail if they are asked
        return None
    default, ours = files.default_fragment_scan_options, pyarrow.dataset.ParquetFragmentScanOptions
    if default != ours():
        return None
    keys = ("parquet_decryption_config", "decryption_properties")  # the comparison above ignores these
    if any(getattr(default, name, None) is not None for name in keys):
        return None
    return ours(pre_buffer=False)


def _narrow_relation(relation: Any, columns: Sequence[str]) -> Any:
    return relation.project(", ".join(map(quoted, columns)) or f"{_counted(relation)} as {quoted(ROWS)}")


def _counted(relation: Any) -> str:
    """Return the expression that counts rows; if some column may fail on a value, it names another column.

    If no column is named, DuckDB reads the first one of an Arrow table, and fails on instants that it cannot hold.
    """
    kinds = [str(kind.id) if str(kind) != "JSON" else "JSON" for kind in relation.types]
    sure = [(NEVER_FAILING.index(kind), place) for place, kind in enumerate(kinds) if kind in NEVER_FAILING]
    return f"{quoted(relation.columns[min(sure)[1]])} is null" if 0 < len(sure) < len(kinds) else "true"


def collected_batches(lazy: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Yield batches by `LazyFrame.sink_batches`, which Polars calls unstable: each row once, or an error.

    If a thread of Polars 2 panics, on a value or on a truncated file, its `collect_batches` ends as if all rows had
    been read. This function raises the error of the query. No other code uses `sink_batches`.
    """
    ready: SimpleQueue[pl.DataFrame | None] = SimpleQueue()
    room, stopped = Semaphore(1), Event()  # room for one batch ahead

    def put(batch: pl.DataFrame) -> bool:
        room.acquire()
        if stopped.is_set():
            room.release()
        else:
            ready.put(batch)
        return stopped.is_set()

    def read() -> None:
        try:
            lazy.sink_batches(put, chunk_size=rows, maintain_order=False, engine="streaming")
        finally:
            ready.put(None)

    with ThreadPoolExecutor(1) as thread:
        work = thread.submit(read)
        try:
            while (batch := ready.get()) is not None:
                room.release()
                yield batch
        finally:  # a caller that asks for no more lets the query end
            stopped.set()
            room.release()
        work.result()


def relation_batches(relation: Any, reading: Reading) -> Iterator[Any]:
    """Return batches by DuckDB's reader. While it is open, DuckDB refuses other queries on the connection."""
    import pyarrow

    batches = relation.to_arrow_reader(reading.batch)
    return (pyarrow.Table.from_batches([batch]) for batch in batches if batch.num_rows)


def slices(scan: pl.LazyFrame, memory: int) -> Iterator[pl.LazyFrame]:
    """Split a scan of Parquet files into several, of whole row groups that take about `memory` bytes to read.

    Polars reads many row groups ahead, but of a slice only its own. A slice of any other query would be computed from
    all rows before it, and its rows may have no order: such a query stays one. The files are checked again after the
    last slice: if one changed in between, rows could have been read twice, or not at all.
    """
    paths = _local_files(scan)
    before = _states(paths)
    lengths = _lengths(paths, scan.collect_schema().names(), memory)
    first = 0
    for length in lengths[:-1]:
        yield scan.slice(first, length)
        first += length
    yield scan.slice(first) if first else scan
    if _local_files(scan) != paths or _states(paths) != before:
        raise OSError("files changed while they were read")


def _local_files(scan: pl.LazyFrame) -> list[str]:
    """Return the local Parquet files of a plain scan, in order; none for any other query, or if that is unknown.

    No other code uses the plan that Polars shows to other engines, which is not part of its public interface.
    """
    try:
        node: Any = scan._ldf.visit().view_current_node()
        options, (kind, *_) = node.file_options, node.scan_type
        plain = kind == "parquet" and node.predicate is None and options.n_rows is None
        paths = [os.fspath(path) for path in node.paths] if plain and options.deletion_files is None else []
    except (Exception, pl.exceptions.PanicException):  # any plan without such a node
        return []
    return paths if all(map(os.path.isfile, paths)) else []


def _states(paths: Sequence[str]) -> list[tuple[int, ...]]:
    """Return facts of each file, which change if it is written to or replaced."""
    states = map(os.stat, paths)
    return [(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns) for state in states]


def _lengths(paths: Sequence[str], names: Sequence[str], memory: int) -> list[int]:
    """Return the numbers of rows of slices, from the footers of the files; none if one cannot be read."""
    import pyarrow
    from pyarrow import parquet

    wanted = set(names)
    lengths, rows, held = [], 0, 0
    for path in paths:
        try:
            footer = parquet.read_metadata(path)
        except (OSError, pyarrow.ArrowException):  # an encrypted file, or one that only Polars can read
            return []
        leaves = [footer.schema.column(place).path for place in range(footer.num_columns)]
        places = [place for place, leaf in enumerate(leaves) if not wanted.isdisjoint(_prefixes(leaf))]
        for group in map(footer.row_group, range(footer.num_row_groups)):
            columns = map(group.column, places)
            size = sum(one.total_compressed_size + one.total_uncompressed_size for one in columns)
            size += VALUE * group.num_rows * len(places)
            if rows and held + size > memory:
                lengths.append(rows)
                rows, held = 0, 0
            rows, held = rows + group.num_rows, held + size
    return [*lengths, rows] if rows else lengths


def _prefixes(leaf: str) -> Iterator[str]:
    """Return the names that the column of a schema leaf may have, among them "a" for "a.list.element"."""
    return accumulate(leaf.split("."), "{}.{}".format)


def quoted(name: str) -> str:
    """Return a column's exact name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
