"""Rows assembled by unit, in parts of whole units: on their way between processes, and in bounded memory.

A hash of the unit that is the same in every process decides the part. So all rows of a unit are in one part, and rows
of one unit from several places meet. A part with very many rows from one place is sent as pairs, one row for each unit
and cell: a unit has at most as many pairs as there are cells.

A spill keeps rows in memory while they are few, and writes them to a file in parts once they are many. A part that is
too large (a unit may have more rows than memory holds) is read piece by piece, and rows of one unit and cell are
combined on the way. If the units themselves are too many, the part is split by other bits of the hash. Totals add up
over whole units, so none of this changes an integer. The file has no name: whatever happens to the process, no file
remains.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe._version import VERSION
from dpframe.engines.engine import ROW_BYTES, Partial
from dpframe.engines.sums.addends import ROWS
from dpframe.engines.task import Task
from dpframe.queries.mixing import GOLDEN, mixed

PARTS = 128
MOST_PIECE = 2**27
MOST_SPLITS = 2**12  # beyond this, pairs are weighed whatever memory they take: one unit is never split

FAILED = "dpframe failed on a partition; why is withheld, since it may hold private values"
MANY_ROWS = 2**16  # rows of one part from one place; beyond this, rows of one unit and cell are combined first


class Spill:
    """Coded rows on their way to whole units; `combine` and `weigh` are those of a task."""

    def __init__(
        self, memory: int, combine: Callable[[pl.DataFrame], pl.DataFrame], weigh: Callable[[pl.DataFrame], Partial]
    ) -> None:
        self.memory, self._combine, self._weigh = memory, combine, weigh
        self._kept: list[pl.DataFrame] = []
        self._file: Any = None
        self._writer: Any = None
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]  # by part: batches, costs
        self._batches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        if self._file is not None:
            self._file.close()

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows with their `unit`."""
        self._kept.append(rows)
        if sum(map(cost, self._kept)) > (self.memory // 2 if self._file is None else self._piece):
            self._write()

    def total(self) -> Partial:
        """Return the sum over all units."""
        if self._file is None:
            return self._weigh(pl.concat(self._kept))
        self._write()
        self._writer.close()
        reader = _reader(self._file)
        total = self._weigh(self._empty)
        for parts in self._groups():
            if len(parts) == 1:
                total += self._of_part(reader, parts[0], 1, 0)
            else:
                total += self._weigh(pl.concat(self._read(reader, parts)))
        return total

    @property
    def _piece(self) -> int:
        """Bytes to process at a time, once rows are in a file; allocating more memory takes longer than the work."""
        return min(self.memory // 2, MOST_PIECE)

    def _groups(self) -> Iterator[list[int]]:
        """Yield groups of parts that fit in memory together; a part alone may not fit."""
        group: list[int] = []
        held = 0
        for part, written in enumerate(self._written):
            size = sum(cost for _, cost in written)
            if group and held + size > self._piece:
                yield group
                group, held = [], 0
            if written:
                group.append(part)
                held += size
        if group:
            yield group

    def _of_part(self, reader: Any, part: int, splits: int, remainder: int) -> Partial:
        """Return the total of the units in a part, or of those whose hash has this `remainder` modulo `splits`."""
        rows: list[pl.DataFrame] = []
        pairs: list[pl.DataFrame] = []
        for table in self._read(reader, [part]):
            chosen = table if splits == 1 else table.filter(pl.Series(unit_hash(table) // PARTS % splits == remainder))
            rows.append(chosen)
            if sum(map(cost, [*rows, *pairs])) > self.memory // 2:
                pairs = [self._paired(rows, pairs)]
                rows = []
                if cost(pairs[0]) > self.memory // 4 and splits < MOST_SPLITS:
                    del pairs, chosen, table
                    first = self._of_part(reader, part, 2 * splits, remainder)
                    return first + self._of_part(reader, part, 2 * splits, remainder + splits)
        return self._weigh(self._paired(rows, pairs) if pairs else pl.concat(rows))

    def _paired(self, rows: list[pl.DataFrame], pairs: list[pl.DataFrame]) -> pl.DataFrame:
        """Return one row for each unit and cell, from rows and from pairs that were made before."""
        made = [self._combine(pl.concat(rows))] if rows else []
        together = [*pairs, *made]
        return together[0] if len(together) == 1 else self._combine(pl.concat(together))

    def _read(self, reader: Any, parts: list[int]) -> Iterator[pl.DataFrame]:
        """Yield the rows of parts, in tables of the size to process at a time."""
        import pyarrow

        batches: list[Any] = []
        held = 0
        for batch, size in [written for part in parts for written in self._written[part]]:
            if batches and held + size > self._piece:
                yield self._as_polars(pyarrow.Table.from_batches(batches))
                batches, held = [], 0
            batches.append(reader.get_batch(batch))
            held += size
        if batches:
            yield self._as_polars(pyarrow.Table.from_batches(batches))

    def _as_polars(self, table: Any) -> pl.DataFrame:
        return pl.DataFrame(pl.from_arrow(table), schema=self._empty.schema)

    def _write(self) -> None:
        """Write the rows that are kept, each to its part."""
        if not self._kept:
            return
        table = pl.concat(self._kept, rechunk=True)
        self._kept.clear()
        if self._file is None:
            self._empty = table.clear()
            self._file = unnamed_file()
            self._writer = _writer(self._file, table)
        part = (unit_hash(table) % np.uint64(PARTS)).astype(np.uint16)  # 16 bits are sorted quickly
        order = np.argsort(part, kind="stable")
        table, part = table[order], part[order]
        ends = np.searchsorted(part, np.arange(PARTS + 1, dtype=np.uint16))
        each = cost(table) / max(table.height, 1)  # approximate bytes of a row
        whole = _as_arrow(table).combine_chunks()
        for number, (start, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            for batch in whole.slice(start, end - start).to_batches():  # one, or none
                self._writer.write_batch(batch)
                self._written[number].append((self._batches, int(each * batch.num_rows)))
                self._batches += 1


def cost(table: pl.DataFrame) -> int:
    """Return the approximate bytes that rows take while their units are weighed."""
    return int(table.estimated_size()) + table.height * (ROW_BYTES - 40)


def unit_hash(table: pl.DataFrame) -> NDArray[np.uint64]:
    """Return a hash of each row's unit: the same in every table of one run, also for a missing unit."""
    return table["unit"].hash(seed=0).to_numpy()


def unnamed_file() -> Any:
    """Return a file in a folder of its own that only this user may enter; neither has a name once it is open."""
    folder = tempfile.mkdtemp(prefix="dpframe-")
    try:
        return tempfile.TemporaryFile(dir=folder)
    finally:
        if os.path.isdir(folder):
            _forget(folder)


def _forget(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:  # on some systems a file keeps its name until it is closed
        return


def _as_arrow(table: pl.DataFrame) -> Any:
    return table.to_arrow(compat_level=pl.CompatLevel.oldest())


def _writer(file: Any, table: pl.DataFrame) -> Any:
    import pyarrow

    return pyarrow.ipc.new_file(pyarrow.PythonFile(file, mode="w"), _as_arrow(table.clear()).schema)


def _reader(file: Any) -> Any:
    import pyarrow

    file.flush()
    return pyarrow.ipc.open_file(pyarrow.PythonFile(file, mode="r"))


def in_parts(
    rows: pl.DataFrame, unit: pl.Series, parts: int, fewer: Callable[[pl.DataFrame], pl.DataFrame]
) -> tuple[list[int], list[bytes]]:
    """Return the numbers of the parts of rows, and the rows of each as bytes; `fewer` makes pairs of many rows."""
    part = part_of(unit, parts)
    order = np.argsort(part, kind="stable")
    numbers, starts = np.unique(part[order], return_index=True)
    ordered = rows[order]
    tables = [ordered[start:end] for start, end in itertools.pairwise([*starts.tolist(), rows.height])]
    fewer_rows = [fewer(table) if table.height > MANY_ROWS else table for table in tables]
    return numbers.tolist(), [_as_bytes(table) for table in fewer_rows]


def part_of(unit: pl.Series, parts: int) -> NDArray[np.uint16]:
    """Return the part of each row: the same for the same unit in every process; missing units are in one part, too.

    Units are values of one Polars dtype, in the form that is compared. Numbers are mixed as by SplitMix64 (Steele, Lea
    and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014). For texts it is a hash of bytes, which
    pandas keeps the same; they may be bytes that are not UTF-8, of which Python makes no text. At most 2**16 parts.
    """
    filled = unit.cast(pl.Binary).fill_null(b"") if unit.dtype == pl.String else unit.fill_null(0)
    if filled.dtype == pl.Binary:
        import pandas

        texts = filled.to_numpy()  # before pandas 3, categories would end at the first character 0 of a text
        hashed = np.asarray(pandas.util.hash_array(texts, categorize=False), dtype=np.uint64)
    else:
        hashed = _mixed(filled.to_numpy())
    return (hashed % np.uint64(parts)).astype(np.uint16)  # 16 bits are sorted quickly


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    return mixed((values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)) + GOLDEN)


def received(sent: bytes) -> pl.DataFrame:
    """Return the rows of a part, as they were sent, by pyarrow: Polars fails to read texts that are not UTF-8."""
    return pl.read_ipc_stream(io.BytesIO(sent), use_pyarrow=True)


def together(task: Task, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return all coded rows of some units, or all their pairs, each once, if some of them came as pairs."""
    if not any(ROWS in table.columns for table in tables):
        return pl.concat(tables)
    return task.combine(pl.concat([as_pairs(task, table) for table in tables]))


def as_pairs(task: Task, table: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each unit and cell, if the task has pairs."""
    return table if ROWS in table.columns else task.combine(table)


def _as_bytes(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()


@functools.cache
def versions() -> str:
    """Return the versions that must be the same wherever rows are: of what computes totals and hashes units."""
    return f"dpframe {VERSION}, Polars {pl.__version__}, pandas {importlib.metadata.version('pandas')}"
