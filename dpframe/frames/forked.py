"""Threads of Polars and DuckDB that a forked child does not have: a query there would wait for them for ever.

A fork copies the memory of a process, and of its threads the one that forks. Where a pool of threads had started, the
child believes that it is there, and none of its threads is. Only a query tells, so one of made-up rows is asked, in a
thread of its own, for a bounded time, once in a process; and only where the process is a fork. It may have been forked
before it imported dpframe, so nothing is noted before a fork.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.errors import InvalidArgument
from dpframe.frames.kinds import is_relation

PATIENCE = 5.0  # seconds for a query that takes milliseconds, also where others keep all processors busy
SHORT_PATIENCE = 1.0  # where the threads of the process are listed as well, and none is of Polars
FORKED = 0x40  # PF_FORKNOEXEC of Linux: forked, and no program was started since
WAY_OUT = (
    'a query would never end. Nothing was charged. Start workers with multiprocessing.get_context("spawn") or '
    '"forkserver".'
)


def check_threads(frame: Any = None) -> None:
    """Refuse a process in which Polars, or DuckDB for a relation of its own, would never end. No row is read."""
    if not polars_works():
        raise InvalidArgument(f"the process must not be forked after Polars had started its threads: {WAY_OUT}")
    if is_relation(frame) and _is_forked() and not _ends(partial(_ask_duckdb, frame), PATIENCE):
        raise InvalidArgument(
            "frame must be a relation of a connection that was opened in this process, not before it was forked: "
            f"{WAY_OUT}"
        )


_left: list[Callable[[], object]] = []  # queries that have not ended: what they asked may be busy, and fail at once


@cache
def polars_works() -> bool:
    """Tell whether a query of Polars ends in this process."""
    return not _is_forked() or _ends(_ask_polars, _patience())


@cache
def _is_forked() -> bool:
    """Tell whether the process goes on from where another was; True where that is not known."""
    if not hasattr(os, "fork"):
        return False
    try:
        flags = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return True
    return not flags or bool(flags & FORKED)  # a sandbox that keeps no flags shows 0


def _forget() -> None:
    """In a forked child: what was found is the parent's."""
    polars_works.cache_clear()
    _is_forked.cache_clear()
    _left.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _patience() -> float:
    pl.thread_pool_size()  # which starts the threads, unless they are believed to be there
    try:
        names = [task.read_bytes() for task in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        return PATIENCE
    known = names and not any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)
    return SHORT_PATIENCE if known else PATIENCE


def _ends(ask: Callable[[], object], patience: float) -> bool:
    """Tell whether a query ends within the time. One that does not is left alone in its thread.

    One that fails has ended: what is wrong is told when the question itself is tried.
    """
    ended, failed = threading.Event(), threading.Event()

    def asked() -> None:
        try:
            ask()
        except BaseException:
            failed.set()
        finally:
            ended.set()

    threading.Thread(target=asked, daemon=True).start()
    if not ended.wait(patience):
        _left.append(ask)
    return ended.is_set() and not (failed.is_set() and _left)


def _ask_polars() -> None:
    """Each pool is asked: the one that computes, the one that streams, and the one that reads files."""
    frame = pl.DataFrame({"group": [0, 1, 0], "value": [1, 2, 3]})
    frame.group_by("group").agg(pl.col("value").sum())
    file = BytesIO()
    frame.write_parquet(file)
    pl.scan_parquet(file).filter(pl.col("value") > 1).collect(engine="streaming")


def _ask_duckdb(relation: Any) -> None:
    """The connection of the relation reads a file of its own, for which versions from 2.0 have threads."""
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"value": [1, 2, 3]}), file)
        path = str(file).replace("'", "''")
        nothing = relation.limit(0).aggregate("count(*) as n")
        nothing.project(f"(select sum(value) from read_parquet('{path}')) as total").fetchall()
