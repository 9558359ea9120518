"""Compiled kernels, if the extra `fast` is installed: they are compiled once, with a message in the log.

They compute the integers of the Polars expressions in `engines`, bit for bit, in less time. Public facts (what is
installed and asked) and the number of rows decide whether they are used. Both ways give the same and neither can fail.
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
from os import cpu_count
from pathlib import Path
from threading import Thread
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

log = logging.getLogger("dpframe")

FEW_ROWS = 2**17  # below this, kernels take longer to load than they save
MOST_ROWS = 2**32  # kernels take fewer rows: with an index of 64 bits Polars may hold more, whose squares overflow
BLOCK = 2**18  # rows that are converted at a time
STRIP = 2**15  # rows that kernels process at a time, which stay in the processor's cache

Part = TypeVar("Part")


def kernels_for(rows: int) -> ModuleType | None:
    """Return the compiled kernels for this number of rows; None if they are not installed, or not worth it.

    One-time work and log messages are the same for every number of rows, which is private.
    """
    if not ready() or not FEW_ROWS <= rows < MOST_ROWS:
        return None
    try:
        return _loaded()
    except Exception:  # it was compiled, but does not load now: no answer may depend on that, and no message on rows
        return None


@functools.cache
def ready() -> bool:
    """Return whether kernels can be used; if this machine never compiled them, compile them and log it."""
    if importlib.util.find_spec("numba") is None:
        return False
    mark = _mark()
    if mark is not None and mark.exists():
        return True
    log.info("dpframe compiles its kernels, once for this machine: this takes some seconds")
    started = time.perf_counter()
    try:
        _loaded().compile_all()
    except Exception as error:  # independent of rows: a version of numba that does not run here
        log.warning("dpframe answers without its compiled kernels, since numba fails: %s", error)
        return False
    log.info("dpframe has compiled its kernels in %.0f s", time.perf_counter() - started)
    if mark is not None:
        mark.touch()
    return True


@functools.cache
def _loaded() -> ModuleType:
    """Return the kernels; refuse NUMBA_DISABLE_JIT, which makes them slow Python functions that warn about values."""
    kernels = importlib.import_module("dpframe.engines.compiled.loops")
    if isinstance(kernels.add_rows, FunctionType):
        raise ImportError("it is set to compile nothing")
    return kernels


def _mark() -> Path | None:
    """Return the file that marks these kernels as compiled here; None if no file can be written."""
    from importlib.metadata import version

    source = Path(__file__).with_name("loops.py")
    kept = (source.stat().st_mtime_ns, source.stat().st_size)  # the facts by which Numba checks its own cache
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
    """Return the number of threads for `tables` tables of `cells` cells in each thread."""
    return max(1, min(cpu_count() or 1, 2**27 // max(1, cells * tables)))


def block_ends(rows: int) -> list[tuple[int, int]]:
    """Return the blocks: the first row of each, and the row after its last."""
    return [(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK)]


def in_threads(work: Callable[[int], Part], workers: int) -> list[Part]:
    """Return the result of each thread's work; kernels run in parallel.

    Where a thread cannot start, as at the end of a process, the caller's thread does its work. The number of rows
    decides whether threads are used, so no call may fail because none starts. An executor would refuse any work there.
    """
    if workers == 1:
        return [work(0)]
    done: dict[int, Part] = {}
    failed: dict[int, BaseException] = {}

    def run(worker: int) -> None:
        try:
            done[worker] = work(worker)
        except BaseException as error:
            failed[worker] = error

    started: list[Thread] = []
    try:
        for worker in range(workers):
            thread = Thread(target=run, args=(worker,))
            try:
                thread.start()
            except RuntimeError:
                run(worker)
                if failed:
                    break
            else:
                started.append(thread)
    finally:
        for thread in started:
            thread.join()
    try:
        if failed:
            raise failed[min(failed)]
    finally:
        failed.clear()  # an error keeps the frames of its traceback, and their arrays of rows
    return [done[worker] for worker in range(workers)]


def strips(rows: int) -> Iterator[slice]:
    """Return slices of the rows of a block, a few rows each."""
    return (slice(start, min(start + STRIP, rows)) for start in range(0, rows, STRIP))


def read_only(values: pl.Series | NDArray[Any]) -> Any:
    """Return a column without missing values as a read-only array, which has its own type in Numba."""
    view = (values.to_numpy() if isinstance(values, pl.Series) else values).view()
    view.flags.writeable = False
    return view


class Scratch:
    """Arrays that a thread writes to repeatedly, which is faster than new arrays.

    Values that one step alone needs are in "first", "second" and "third", whatever the step: few arrays stay in the
    processor's cache.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.int64]] = {}

    def of(self, name: str, rows: int, dtype: type) -> Any:
        """Return the array of this name for a block of `rows` rows of 8 bytes, with whatever it held before."""
        found = self._arrays.get(name)
        if found is None or found.size < rows:  # the first block has the most rows
            found = self._arrays[name] = np.empty(rows, dtype=np.int64)
        return found[:rows].view(dtype)
