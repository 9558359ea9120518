"""Engines: each knows the columns of a table, and passes all its rows to dpframe in pieces.

Exact totals add up over disjoint pieces: batches of rows if each row is protected, whole units if units are. So every
engine runs the same code on its own pieces and adds the resulting integers, modulo 2**64.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.queries.total import Total

GIBIBYTE = 2**30
ROW_BYTES = 150  # bytes of a row while its unit is weighed, with all that is sorted and gathered
LEAST_BATCH, MOST_BATCH = 2**12, 2**20

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Reading:
    """Options for reading a table in batches. No answer depends on them."""

    memory: int | None = None  # approximate bytes by which the process may grow
    progress: bool | None = None  # None: show it if somebody can see it

    @property
    def bytes(self) -> int:
        """Bytes to use: `memory` if it is set, else a gibibyte, or a quarter of the free memory if that is less."""
        return self.memory or min(GIBIBYTE, _free() // 4)

    @property
    def batch(self) -> int:
        """Number of rows that are read at a time."""
        return min(max(self.bytes // (8 * ROW_BYTES), LEAST_BATCH), MOST_BATCH)

    def seen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches, with a progress bar if tqdm is installed and somebody can see the bar."""
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield from batches
            return
        disable = None if self.progress is None else not self.progress  # None: no bar outside a terminal
        yield from tqdm(batches, desc="dpframe reads", unit=" batches", disable=disable, leave=False)


def _free() -> int:
    """Return the bytes of free memory, or 4 GiB if the system does not report them."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 * GIBIBYTE


@dataclass(frozen=True, eq=False)
class Partial:
    """Exact totals of a part of the rows: one int64 per cell, for each Total. Partials are added, modulo 2**64.

    ``sum(partials)`` and ``functools.reduce(operator.add, partials)`` both add several.
    """

    totals: Mapping[Total, NDArray[np.int64]]

    def __add__(self, other: Any) -> Partial:
        if not isinstance(other, Partial):
            return NotImplemented
        if self.totals.keys() != other.totals.keys():
            raise InvalidArgument("partials must be of one question to be added")
        return Partial({total: cells + other.totals[total] for total, cells in self.totals.items()})

    def __radd__(self, other: Any) -> Partial:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start value of sum()


@runtime_checkable
class Engine(Protocol):
    """A table that dpframe can read. `dpframe.testing.check_engine` tests whether one follows this protocol.

    An engine from outside is used as ``dpf.of(engine)``; its answers are Polars frames.
    """

    def schema(self) -> Mapping[str, Any]:
        """Return the name and the Polars dtype of each column, without reading a row or running a query."""
        ...

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Return the sum of ``piece(frame)`` over frames that together hold every row exactly once; some may be empty.

        Each frame has at least `columns`, with the dtypes of the schema. It is a frame of Polars or Arrow, or of pandas
        with Arrow dtypes, since pandas' own dtypes say less than a schema. If `by` names a column, all rows with an
        equal value of it are in one frame. There 0.0 equals -0.0, and all rows with null or NaN are in one frame too.
        A table without rows is one frame without rows.
        """
        ...

    def push(self, task: Any) -> Partial | None:
        """Return the totals of the whole table, by other means; None if dpframe must call `fold` instead.

        `task` can be pickled and holds public facts only: ``task.query``, ``task.unit``, ``task.p``, the
        ``task.columns`` that it reads, and ``task.piece``.
        """
        ...


def added_up(partials: Any) -> Partial:
    """Return the sum of at least one Partial."""
    total: Partial | None = None
    for partial in partials:
        total = partial if total is None else total + partial
    if total is None:
        raise InvalidArgument("an engine must show at least one frame, of no rows where it has none")
    return total
