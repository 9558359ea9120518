"""Rows of units on their way to where all rows of each are together: in parts of whole units, each as bytes.

A part is by a hash of the unit that is the same in every process, so rows of one unit that are sent from several places
meet. A part with very many rows of one place is sent as pairs, one row for each unit and cell: however many rows a unit
has, it has no more pairs than there are cells.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe._version import VERSION
from dpframe.engines.aggregates import ROWS
from dpframe.engines.task import Task
from dpframe.queries.mixing import GOLDEN, mixed

FAILED = "dpframe failed on a partition; why is withheld, since it may hold private values"
MANY_ROWS = 2**16  # of one part from one place: beyond, rows of one unit and cell are brought together first


def in_parts(
    rows: pl.DataFrame, unit: pl.Series, parts: int, fewer: Callable[[pl.DataFrame], pl.DataFrame]
) -> tuple[list[int], list[bytes]]:
    """The numbers of the parts that rows fall in, and the rows of each as bytes; `fewer` makes pairs of many."""
    part = part_of(unit, parts)
    order = np.argsort(part, kind="stable")
    numbers, starts = np.unique(part[order], return_index=True)
    ordered = rows[order]
    tables = [ordered[start:end] for start, end in itertools.pairwise([*starts.tolist(), rows.height])]
    fewer_rows = [fewer(table) if table.height > MANY_ROWS else table for table in tables]
    return numbers.tolist(), [_as_bytes(table) for table in fewer_rows]


def part_of(unit: pl.Series, parts: int) -> NDArray[np.uint16]:
    """The part of each row: the same for the same unit in every process; missing units are in one part, too.

    Of the values of one Polars dtype, as they are told apart. Numbers are mixed as SplitMix64 does (Steele, Lea and
    Flood, Fast splittable pseudorandom number generators, OOPSLA 2014); of texts it is a hash of bytes, which pandas
    keeps the same. At most 2**16 parts.
    """
    filled = unit.fill_null("" if unit.dtype == pl.String else 0)
    if unit.dtype == pl.String:
        import pandas

        hashed = np.asarray(pandas.util.hash_array(filled.to_numpy()), dtype=np.uint64)
    else:
        hashed = _mixed(filled.to_numpy())
    return (hashed % np.uint64(parts)).astype(np.uint16)  # sorted quickly, of 16 bits


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    return mixed((values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)) + GOLDEN)


def received(sent: bytes) -> pl.DataFrame:
    """The rows of a part, as they were sent."""
    return pl.read_ipc_stream(io.BytesIO(sent))


def together(task: Task, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All coded rows of some units; all their pairs, each once, where some of them came as pairs."""
    if not any(ROWS in table.columns for table in tables):
        return pl.concat(tables)
    return task.combine(pl.concat([as_pairs(task, table) for table in tables]))


def as_pairs(task: Task, table: pl.DataFrame) -> pl.DataFrame:
    """One row for each unit and cell, as far as the task knows pairs."""
    return table if ROWS in table.columns else task.combine(table)


def _as_bytes(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_ipc_stream(buffer)
    return buffer.getvalue()


@functools.cache
def versions() -> str:
    """The versions that must be the same wherever rows are: of what computes totals, and of what hashes units."""
    return f"dpframe {VERSION}, Polars {pl.__version__}, pandas {importlib.metadata.version('pandas')}"
