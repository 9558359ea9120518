"""The reading of a table that does not fit in memory: in what memory, and with a bar for its reader or without."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

GIBIBYTE = 2**30
ROW_BYTES = 150  # of a row while its unit is weighed, what is sorted and gathered with it
LEAST_BATCH, MOST_BATCH = 2**12, 2**20

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Reading:
    """The reading of a table in batches. Answers do not depend on it."""

    memory: int | None = None  # bytes by which the process may grow, about
    progress: bool | None = None  # None: where somebody can see it

    @property
    def bytes(self) -> int:
        """The memory that was asked for, or a gibibyte, or a quarter of what is free where that is less."""
        return self.memory or min(GIBIBYTE, _free() // 4)

    @property
    def batch(self) -> int:
        """The number of rows that are read at a time."""
        return min(max(self.bytes // (8 * ROW_BYTES), LEAST_BATCH), MOST_BATCH)

    def seen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches, with a bar that tells how many were read, where there is tqdm and somebody sees it."""
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield from batches
            return
        disable = None if self.progress is None else not self.progress  # None: where it is no terminal
        yield from tqdm(batches, desc="dpframe reads", unit=" batches", disable=disable, leave=False)


def _free() -> int:
    """The bytes of memory that are free; a lot where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 * GIBIBYTE
