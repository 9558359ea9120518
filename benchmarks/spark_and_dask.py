"""Measure processor time of releases on Spark and Dask, against the plain query and bounding by hand in each engine.

    python -m benchmarks.spark_and_dask --only spark --rows 10000000 --repeats 5
    python -m benchmarks.spark_and_dask --only dask --rows 10000000 --repeats 5

The rows are those of `larger_than_memory`, in Parquet files. The queries take turns in one session; the first round
warms it up and is not counted. Time is that of this process and of all that it started, including the JVM and Python
workers. The least and the median of the repeats are shown; ratios are those of the medians.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpframe as dpf
from assurance.engines import spark_session, ticks_of_processes
from benchmarks.larger_than_memory import CELL, GROUP, HOURS, SEED, WARDS, group
from benchmarks.speed import machine

BOUNDS = (0, 5_000)
MOST_ROWS = 6.0  # rows of a unit at full weight: three rows in two cells, pure DP
ROWS_OF_FILE = 2**21
Questions = dict[str, Callable[[], Any]]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",  # in local mode this is the whole JVM
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
}
AIMS = {"row level": 2.5, "unit level": 0.5}


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        _make(Path(folder), options.rows)
        print(
            "| engine | question | least CPU s | median CPU s | ratio | aim |\n|---|---|---:|---:|---:|---:|",
            flush=True,
        )
        for name in options.only or ENGINES:
            with ENGINES[name](folder) as questions:
                chosen = {asked: ask for asked, ask in questions.items() if asked.startswith(options.level)}
                _report(name, _seconds(chosen, options.repeats))
    print(f"\n{options.rows:,} rows. {machine()}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="where files are made")
    parser.add_argument("--only", nargs="+", choices=[*ENGINES])
    parser.add_argument("--level", choices=[*AIMS], default="", help="of the questions; all without it")
    return parser.parse_args()


def _make(folder: Path, rows: int) -> None:
    """Write files of row groups of a million rows, twenty rows per user."""
    import numpy as np
    from pyarrow import parquet

    random = np.random.default_rng(SEED)
    users = max(rows // 20, 1)
    for first in range(0, rows, ROWS_OF_FILE):
        path = folder / f"{first // ROWS_OF_FILE}.parquet"
        with parquet.ParquetWriter(path, group(random, 0, users).schema, compression="zstd") as writer:
            last = min(rows, first + ROWS_OF_FILE)
            for start in range(first, last, GROUP):
                writer.write_table(group(random, min(GROUP, last - start), users))


def _seconds(questions: Questions, repeats: int) -> dict[str, list[float]]:
    """Return the processor seconds of each query, measured in turns; the first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(repeats + 1):
        for name, ask in questions.items():
            before = _ticks()
            ask()
            spent = sum(ticks - before.get(process, 0) for process, ticks in _ticks().items())
            seconds[name].append(spent / os.sysconf("SC_CLK_TCK"))
    return {name: found[1:] for name, found in seconds.items()}


def _ticks() -> dict[int, int]:
    """Return the processor time of this process and of each living process that it started.

    The time of ended processes is left out: between rounds, Spark ends workers that are idle for a minute.
    """
    return {process: user + system for process, (user, system, *_) in ticks_of_processes().items()}


def _report(engine: str, seconds: dict[str, list[float]]) -> None:
    for name, found in seconds.items():
        level, _, who = name.partition(", ")
        by = next(other for asked, other in seconds.items() if asked.startswith(level))
        ratio = "" if found is by else f"{statistics.median(found) / statistics.median(by):.2f}"
        aim = AIMS[level] if who == "dpframe" else ""
        print(
            f"| {engine} | {name} | {min(found):.2f} | {statistics.median(found):.2f} | {ratio} | {aim} |", flush=True
        )


def _rows(table: Any) -> Any:
    by_hour = dpf.of(table).group_by("hour", keys=range(HOURS))
    asked = (dpf.count(), dpf.sum("cost", bounds=BOUNDS), dpf.mean("cost", bounds=BOUNDS))
    return by_hour.agg(*asked, epsilon=1, ledger=dpf.Ledger(epsilon=1, checks=False))


def _units(table: Any) -> Any:
    cells = dpf.of(table).group_by(*CELL, keys={"ward": range(WARDS), "hour": range(HOURS)})
    unit = dpf.PrivacyUnit("user", max_rows=3, max_groups=2)
    return cells.agg(
        dpf.count(), dpf.sum("cost", bounds=BOUNDS), epsilon=1, ledger=dpf.Ledger(epsilon=1, unit=unit, checks=False)
    )


@contextlib.contextmanager
def _on_spark(folder: str) -> Iterator[Questions]:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # for executors: Spark runs one task per core
    with spark_session(SETTINGS) as session:
        table = session.read.parquet(folder)
        yield {
            "row level, plain": lambda: _plain_in_spark(table),
            "row level, dpframe": lambda: _rows(table),
            "unit level, by hand": lambda: _fair_in_spark(table),
            "unit level, dpframe": lambda: _units(table),
        }


def _plain_in_spark(table: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return table.groupBy("hour").agg(F.count("*"), F.sum("cost"), F.avg("cost")).collect()


def _fair_in_spark(table: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    cost = F.sum(F.least(F.greatest("cost", F.lit(0.0)), F.lit(5_000.0)))
    pairs = table.groupBy("user", *CELL).agg(F.count("*").alias("n"), cost.alias("cost"))
    weight = pairs.groupBy("user").agg(F.least(F.lit(1.0), MOST_ROWS / F.sum("n")).alias("w"))
    asked = [F.sum(F.col(name) * F.col("w")) for name in ("n", "cost")]
    return pairs.join(weight, on="user").groupBy(*CELL).agg(*asked).collect()


@contextlib.contextmanager
def _on_dask(folder: str) -> Iterator[Questions]:
    import dask.dataframe as dd

    table = dd.read_parquet(f"{folder}/*.parquet", split_row_groups=True)
    yield {
        "row level, plain": lambda: table.groupby("hour").agg({"cost": ["size", "sum", "mean"]}).compute(),
        "row level, dpframe": lambda: _rows(table),
        "unit level, by hand": lambda: _fair_in_dask(table),
        "unit level, dpframe": lambda: _units(table),
    }


def _fair_in_dask(table: Any) -> Any:
    clipped = table.assign(cost=table["cost"].clip(*BOUNDS), n=1)
    pairs = clipped.groupby(["user", *CELL])[["n", "cost"]].sum(split_out=table.npartitions).reset_index()
    rows = pairs.groupby("user")["n"].sum(split_out=table.npartitions)
    weight = (MOST_ROWS / rows).clip(upper=1.0).rename("w").to_frame().reset_index()
    weighed = pairs.merge(weight, on="user")
    weighed = weighed.assign(n=weighed["n"] * weighed["w"], cost=weighed["cost"] * weighed["w"])
    return weighed.groupby(CELL)[["n", "cost"]].sum().compute()


ENGINES: dict[str, Callable[[str], contextlib.AbstractContextManager[Questions]]] = {
    "spark": _on_spark,
    "dask": _on_dask,
}

if __name__ == "__main__":
    main()
