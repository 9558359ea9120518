"""Compare every engine with Polars in memory, bit for bit, on thousands of random tables.

    python -m assurance.engines --tables 10000 --every 53 --only pandas lazy dataset duckdb

CI tries 200 tables of each engine in the same way (`tests/engines/test_random_tables.py`). Each table consists of
hard values and is used for one query in `--every`; the next table is used for the next ones. To continue a stopped
drill, use `--first N` with the number of tables that it reported as equal. Spark starts a session of two threads, and
each query needs a job or two: use few tables.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from assurance import verdict
from dpframe.engines import trial

ROOT = Path(__file__).resolve().parents[1]
BLOCK = 250  # tables that share a seed
Make = Callable[..., Any]  # makes the frame of an engine from a Polars frame
REMOTE = os.environ.get("SPARK_REMOTE", "")  # Spark Connect, such as local[2]
SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "Asia/Kathmandu",  # must not affect results
    "spark.sql.files.openCostInBytes": str(2**27),  # makes each file a partition
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # reads days before 1582 unchanged
    "spark.sql.adaptive.enabled": "true",
    "spark.python.worker.reuse": "true",
}


def main() -> int:
    options = _arguments()
    failed = asked = 0
    print("| engine | tables | every | CPU s | wall s | found |\n|---|---:|---:|---:|---:|---|", flush=True)
    for name in options.only or ENGINES:
        with ENGINES[name]() as make:
            start, wall = processor_time(), time.monotonic()
            found = _difference(name, make, options)
            spent = f"{processor_time() - start:.0f} | {time.monotonic() - wall:.0f}"
        tables = f"{options.first} to {options.tables}" if options.first else options.tables
        print(f"| {name} | {tables} | {options.every} | {spent} | {found or 'equal'} |", flush=True)
        failed, asked = failed + (found is not None), asked + options.tables - options.first
    return verdict(failed, tables=asked)


def _difference(name: str, make: Make, options: argparse.Namespace) -> str | None:
    """Return the first difference, block by block; progress goes to standard error."""
    tables = options.tables
    for start in range(options.first, max(1, tables), BLOCK):
        seed = 1_000 * options.seed + start // BLOCK
        found = trial.difference(make, min(BLOCK, tables - start), seed, options.every)
        if found is not None:
            return found
        print(f"{name}: {min(start + BLOCK, tables)} tables are equal", file=sys.stderr, flush=True)
    return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=53)
    parser.add_argument("--first", type=int, default=0, help=f"table to go on from, a multiple of {BLOCK}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[*ENGINES])
    options = parser.parse_args()
    if options.first % BLOCK:
        parser.error(f"--first must be a multiple of {BLOCK}: that many tables are of one seed")
    return options


def processor_time() -> float:
    """Return the processor seconds of this process and its descendants, such as Java and its workers, on Linux."""
    return sum(map(sum, ticks_of_processes().values())) / os.sysconf("SC_CLK_TCK")


def ticks_of_processes() -> dict[int, list[int]]:
    """Return the processor ticks of this process and of each living process that it started.

    They are user and system ticks, of the process itself and of its ended children.
    """
    parents, ticks = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            parents[int(process.name)], ticks[int(process.name)] = int(fields[1]), [*map(int, fields[11:15])]
    ours, before = {os.getpid()}, 0
    while len(ours) > before:
        before, ours = len(ours), ours | {one for one, parent in parents.items() if parent in ours}
    return {one: ticks[one] for one in ours if one in ticks}


def in_pandas(frame: pl.DataFrame) -> Any:
    """Return a pandas frame with Arrow columns, so that it holds what the Polars frame holds."""
    return frame.to_pandas(use_pyarrow_extension_array=True)


def as_dataset(frame: pl.DataFrame) -> Any:
    """Return a pyarrow Dataset in memory."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def as_relation(frame: pl.DataFrame) -> Any:
    """Return a DuckDB relation on Arrow."""
    import duckdb

    return duckdb.from_arrow(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def as_dask(frame: pl.DataFrame) -> Any:
    """Return a Dask DataFrame of three partitions with Arrow columns."""
    import dask.dataframe as dd

    return dd.from_pandas(in_pandas(frame), npartitions=3)


def why_no_spark() -> str:
    """Return the reason why Spark cannot run here, or an empty string."""
    for module in ("pandas", "pyspark"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed, which Spark needs: pip install dpframe[spark]"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed, which Spark runs on"
    return ""


@contextlib.contextmanager
def spark_session(settings: Mapping[str, str] = SPARK_SETTINGS) -> Iterator[Any]:
    """Yield one real session of two threads, which takes seconds to start."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.appName("tests of dpframe")
    builder = builder.remote(REMOTE) if REMOTE else builder.master("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        for name, value in {**settings, "spark.sql.warehouse.dir": f"{folder}/warehouse"}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        if not REMOTE:
            session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@contextlib.contextmanager
def spark_frames(session: Any) -> Iterator[Make]:
    """Yield a function that makes Spark DataFrames of two partitions from Polars frames, and caches them."""
    made: dict[int, Any] = {}

    with tempfile.TemporaryDirectory() as folder:

        def make(frame: pl.DataFrame, parts: int = 2) -> Any:
            if id(frame) not in made:
                files = Path(folder) / str(len(made))
                files.mkdir()
                size = max(1, -(-frame.height // parts))
                for place, start in enumerate(range(0, max(1, frame.height), size)):
                    rows = frame[start : start + size].with_columns(_signed(frame))
                    rows.write_parquet(files / f"{place}.parquet", use_pyarrow=True)
                made[id(frame)] = frame, session.read.parquet(str(files))  # keeps the frame, so that its id is unique
            return made[id(frame)][1]

        yield make


def _signed(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return casts of unsigned columns, which Spark does not have, to wider types."""
    wider = {pl.UInt8: pl.Int16(), pl.UInt64: pl.Decimal(20, 0)}
    return [pl.col(name).cast(wider[dtype]) for name, dtype in frame.schema.items() if dtype in wider]


@contextlib.contextmanager
def in_spark() -> Iterator[Make]:
    """Yield frames of a new session."""
    with spark_session() as session, spark_frames(session) as make:
        yield make


def plainly(make: Make) -> Callable[[], contextlib.AbstractContextManager[Make]]:
    """Return a context manager for an engine that needs no preparation."""
    return lambda: contextlib.nullcontext(make)


ENGINES: dict[str, Callable[[], contextlib.AbstractContextManager[Make]]] = {
    "pandas": plainly(in_pandas),
    "lazy": plainly(pl.DataFrame.lazy),
    "dataset": plainly(as_dataset),
    "duckdb": plainly(as_relation),
    "dask": plainly(as_dask),
    "spark": in_spark,
}

if __name__ == "__main__":
    sys.exit(main())
