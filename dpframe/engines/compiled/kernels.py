"""Compiled kernels, where the extra `fast` is installed: they are made ready once, and it is said.

They give the integers of the Polars expressions of this room, bit for bit, in less time. What is installed and what is
asked decide that they are used, which is public, and the number of rows: both ways give the same and neither can fail.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

log = logging.getLogger("dpframe")

FEW_ROWS = 2**17  # below, kernels take longer to load than they save
MOST_ROWS = 2**32  # which Polars may hold whose index has 64 bits: squares of their number have no room
BLOCK = 2**18  # rows that are brought over at a time
STRIP = 2**15  # rows that kernels work on at a time: they stay in the processor's cache

Part = TypeVar("Part")


def kernels_for(rows: int) -> ModuleType | None:
    """The compiled kernels, for so many rows; None where they are not installed, or not worth it.

    What is done and said once is so whatever the number of rows, which is private.
    """
    if not ready() or not FEW_ROWS <= rows < MOST_ROWS:
        return None
    try:
        return _loaded()
    except Exception:  # compiled before, and now it does not load: no answer may depend on that, nor a word on the rows
        return None


@functools.cache
def ready() -> bool:
    """Tell whether kernels can be used; where they were never compiled on this machine, they are, and it is said."""
    if importlib.util.find_spec("numba") is None:
        return False
    mark = _mark()
    if mark is not None and mark.exists():
        return True
    log.info("dpframe compiles its kernels, once for this machine: this takes some seconds")
    started = time.perf_counter()
    try:
        _loaded().compile_all()
    except Exception as error:  # of no rows: a version of numba that does not run here
        log.warning("dpframe answers without its compiled kernels, since numba fails: %s", error)
        return False
    log.info("dpframe has compiled its kernels in %.0f s", time.perf_counter() - started)
    if mark is not None:
        mark.touch()
    return True


@functools.cache
def _loaded() -> ModuleType:
    """The kernels. With NUMBA_DISABLE_JIT they would be functions of Python, which are slow and warn of values."""
    kernels = importlib.import_module("dpframe.engines.compiled.loops")
    if isinstance(kernels.add_rows, FunctionType):
        raise ImportError("it is set to compile nothing")
    return kernels


def _mark() -> Path | None:
    """The file that says that these kernels were compiled here; None where none can be written."""
    from importlib.metadata import version

    source = Path(__file__).with_name("loops.py")
    kept = (source.stat().st_mtime_ns, source.stat().st_size)  # as Numba knows whether what it keeps is of a file
    names = [sys.version, version("numba"), version("numpy")]
    known = hashlib.sha256(repr([*names, str(source), kept]).encode()).hexdigest()[:16]
    for folder in (source.parent / "__pycache__", Path(os.path.expanduser("~/.cache/dpframe"))):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder / f"compiled-{known}"
    return None


def threads(cells: int, tables: int) -> int:
    """The number of threads that work side by side, each with tables of so many cells of its own."""
    return max(1, min(cpu_count() or 1, 2**27 // max(1, cells * tables)))


def block_ends(rows: int) -> list[tuple[int, int]]:
    """The blocks: a first row and the one after the last."""
    return [(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK)]


def in_threads(work: Callable[[int], Part], workers: int) -> list[Part]:
    """Run the work of each thread; kernels run side by side."""
    if workers == 1:
        return [work(0)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, range(workers)))


def strips(rows: int) -> Iterator[slice]:
    """The rows of a block, a few at a time."""
    return (slice(start, min(start + STRIP, rows)) for start in range(0, rows, STRIP))


def read_only(values: pl.Series | NDArray[Any]) -> Any:
    """A column without missing values as an array that is not written to, which is a type of its own to Numba."""
    view = (values.to_numpy() if isinstance(values, pl.Series) else values).view()
    view.flags.writeable = False
    return view


class Scratch:
    """Arrays that a thread writes to again and again, which is faster than new ones.

    What is needed for one step alone is in the first, the second and the third, whatever the step: few arrays stay in
    the processor's cache.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.int64]] = {}

    def of(self, name: str, rows: int, dtype: type) -> Any:
        """The array of this name for a block of so many rows, of 8 bytes each; what is in it is left from before."""
        found = self._arrays.get(name)
        if found is None or found.size < rows:  # the first block has most rows
            found = self._arrays[name] = np.empty(rows, dtype=np.int64)
        return found[:rows].view(dtype)
