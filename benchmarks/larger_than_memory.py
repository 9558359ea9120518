"""Measure processor time and memory of releases on Parquet files, against the plain query and bounding by hand.

    python -m benchmarks.larger_than_memory --rows 10000000 --links 10
    python -m benchmarks.larger_than_memory --rows 100000000 --links 10 --only "row level, plain" "row level, dpframe"
    python -m benchmarks.larger_than_memory --rows 10000000 --links 4 --memory 512MiB

A file with --rows rows is made and linked under --links names: a table --links times as large, with the same units.
Each query runs in a new process; memory is the peak growth of that process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from benchmarks.speed import machine

HOURS, WARDS, SEED = 24, 100, 20240229
GROUP = 2**20
PLENTY = 1e6
CELL = ["ward", "hour"]


def main() -> None:
    options = _arguments()
    if options.ask:
        _ask(options.ask, options.folder, options.memory)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        _make(Path(folder), options.rows, options.links)
        print("| question | rows | CPU s | MiB |\n|---|---:|---:|---:|")
        for name in options.only or ASKED:
            command = [sys.executable, "-m", "benchmarks.larger_than_memory", "--ask", name, "--folder", folder]
            found = subprocess.run([*command, "--memory", options.memory], capture_output=True, text=True, check=True)
            seconds, mebibytes = found.stdout.split()
            print(f"| {name} | {options.rows * options.links:,} | {seconds} | {mebibytes} |", flush=True)
    print(f"\n{machine()}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the file")
    parser.add_argument("--links", type=int, default=1, help="under how many names the file is read")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--folder", help="where the file is made")
    parser.add_argument("--only", nargs="+", choices=[*ASKED])
    parser.add_argument("--ask", choices=[*ASKED], help=argparse.SUPPRESS)
    return parser.parse_args()


def _make(folder: Path, rows: int, links: int) -> None:
    """Write twenty rows per user, in row groups of a million rows, generated one group at a time."""
    from pyarrow import parquet

    random = np.random.default_rng(SEED)
    users = max(rows * links // 20, 1)
    with parquet.ParquetWriter(folder / "0.parquet", group(random, 0, users).schema, compression="zstd") as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(group(random, min(GROUP, rows - start), users))
    for place in range(1, links):
        os.link(folder / "0.parquet", folder / f"{place}.parquet")


def group(random: np.random.Generator, rows: int, users: int) -> Any:
    columns = {
        "user": random.integers(0, users, rows),
        "ward": random.integers(0, WARDS, rows).astype(np.int16),
        "hour": random.integers(0, HOURS, rows).astype(np.int8),
        "cost": random.gamma(2.0, 600.0, rows),
    }
    return pl.DataFrame(columns).to_arrow()


def _ask(name: str, folder: str, memory: str) -> None:
    import resource

    table = pl.scan_parquet(Path(folder) / "*.parquet")
    table.head(1).collect()
    before = resource.getrusage(resource.RUSAGE_SELF)
    ASKED[name](table, memory)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{seconds:.1f} {(after.ru_maxrss - before.ru_maxrss) / 1024:.0f}")


def _plain(table: pl.LazyFrame, memory: str) -> None:
    table.group_by("hour").agg(pl.len(), pl.col("cost").sum()).collect(engine="streaming")


def _rows(table: pl.LazyFrame, memory: str) -> None:
    hours = table.dp.group_by("hour", keys=range(HOURS))
    hours.agg(
        dpf.count(),
        dpf.sum("cost", bounds=(0, 5_000)),
        epsilon=1,
        ledger=dpf.Ledger(epsilon=1, checks=False),
        memory=memory,
    )


def _fair(table: pl.LazyFrame, memory: str) -> None:
    cost = pl.col("cost").clip(0, 5_000).sum()
    pairs = table.group_by("user", *CELL).agg(pl.len().alias("n"), cost)
    weight = pairs.group_by("user").agg(w=(6.0 / pl.col("n").sum()).clip(upper_bound=1.0))
    asked = [(pl.col(name) * pl.col("w")).sum() for name in ("n", "cost")]
    pairs.join(weight, on="user").group_by(CELL).agg(asked).collect(engine="streaming")


def _units(table: Any, memory: str | None) -> None:
    cells = table.dp.group_by(*CELL, keys={"ward": range(WARDS), "hour": range(HOURS)})
    unit = dpf.PrivacyUnit("user", max_rows=3, max_groups=2)
    statistics = (dpf.count(), dpf.sum("cost", bounds=(0, 5_000)))
    cells.agg(*statistics, epsilon=1, ledger=dpf.Ledger(epsilon=1, unit=unit, checks=False), memory=memory)


def _units_in_memory(table: pl.LazyFrame, memory: str) -> None:
    _units(table.collect(), None)


ASKED = {
    "row level, plain": _plain,
    "row level, dpframe": _rows,
    "unit level, by hand": _fair,
    "unit level, dpframe": _units,
    "unit level, dpframe in memory": _units_in_memory,
}

if __name__ == "__main__":
    main()
