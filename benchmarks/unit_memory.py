"""Measure how much a process grows at most during a query with bounded units on a frame in memory.

    python -m benchmarks.unit_memory --rows 5000000
    python -m benchmarks.unit_memory --rows 5000000 --kernels without

The query is count, sum and mean by 2,400 cells, as in the section `fair` of `benchmarks.speed`. Each case runs in a
new process, which first answers the same query on few rows, so that all imports are done. It maps the frame from a
file, so that no memory is left over from creating it. Growth is relative to the size of the columns that are read.
Time is that of all processors, the least of the runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.ipc

from benchmarks import speed
from dpframe.engines.compiled import kernels

CASES = {f"{spread} {ids} ids": (spread, ids) for spread in ("even", "skewed") for ids in ("integer", "string")}
COLUMNS = {"integer": "user", "string": "user_name"}
FEW_ROWS = 2**17


def measured(case: str, path: str, repeats: int, by_hand: bool) -> dict[str, Any]:
    """Return the growth of this process in the first release of the whole frame, and the time of the fastest one."""
    frame = pl.DataFrame(pl.from_arrow(pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()))
    frame.hash_rows()  # reads every page once
    _asked(case, frame.head(FEW_ROWS), by_hand)()
    ask, size = _asked(case, frame, by_hand), sum(int(frame[name].estimated_size()) for name in frame.columns)
    gc.collect()
    _forget_peak()
    before = _memory("VmRSS")
    ask()
    grown = _memory("VmHWM") - before
    times = []
    for _ in range(repeats):
        started = time.process_time()
        ask()
        times.append(time.process_time() - started)
    return {"case": case, "columns": size / 2**20, "grown": grown / 2**20, "part": grown / size, "seconds": min(times)}


def _frame(case: str, rows: int) -> pl.DataFrame:
    spread, ids = CASES[case]
    frame = speed._users_frame(rows, skewed=spread == "skewed")
    return frame.select(COLUMNS[ids], "ward", "hour", "cost", "age").rechunk()


def _asked(case: str, frame: pl.DataFrame, by_hand: bool) -> Any:
    column = COLUMNS[CASES[case][1]]
    if by_hand:
        return speed._bounded_by_hand(frame, column)["fair, joined"]
    (_, release), *_ = speed._user_releases(frame, column)
    return release


def _forget_peak() -> None:
    """Reset the peak memory of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def main() -> None:
    """Measure each case in a new process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kernels", choices=["with", "without"], default="with", help="where Numba is installed")
    parser.add_argument("--by-hand", action="store_true", help="the same by hand in Polars, without privacy")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=tuple(CASES), help="these cases")
    parser.add_argument("--one", metavar="PATH", help="in this process, of a file, printed as JSON")
    options = parser.parse_args()
    if options.kernels == "without":
        kernels.ready = lambda: False  # type: ignore[assignment]  # as if Numba were not installed
    if options.one:
        print(json.dumps(measured(options.only[0], options.one, options.repeats, options.by_hand)))
        return
    for case in options.only:
        found = _in_a_process(case, options)
        grown, of = found["grown"], found["columns"]
        print(
            f"{case:<22}{found['part']:>6.2f}{grown:>8.0f} MiB of {of:.0f}{1e3 * found['seconds']:>9.0f} ms", flush=True
        )


def _in_a_process(case: str, options: argparse.Namespace) -> dict[str, Any]:
    more = ["--by-hand"] if options.by_hand else []
    given = ["--repeats", str(options.repeats), "--kernels", options.kernels, "--only", case, *more]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "frame.arrow")
        _frame(case, options.rows).write_ipc(path, record_batch_size=options.rows)
        words = [sys.executable, "-m", "benchmarks.unit_memory", "--one", path, *given]
        found: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        return found


if __name__ == "__main__":
    main()
