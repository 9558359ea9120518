"""Every engine against Polars in memory, bit for bit, on thousands of random tables.

    python -m assurance.engines --tables 10000 --every 11 --only pandas lazy dataset duckdb

CI tries 200 tables of each engine in the same way (`tests/engines/test_random_tables.py`). Each table is made up of hard
values, and asked one question in `--every`, the next table the next ones. Dask and Spark are asked where they are
installed; Spark starts a session of two threads.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.engines import trial

ROOT = Path(__file__).resolve().parents[1]
Make = Callable[[pl.DataFrame], Any]


def main() -> int:
    options = _arguments()
    failed = 0
    print("| engine | tables | every | CPU s | wall s | found |\n|---|---:|---:|---:|---:|---|", flush=True)
    for name in options.only or ENGINES:
        with ENGINES[name]() as make:
            start, wall = _processor_time(), time.monotonic()
            found = trial.difference(make, options.tables, options.seed, options.every)
            spent = f"{_processor_time() - start:.0f} | {time.monotonic() - wall:.0f}"
        print(f"| {name} | {options.tables} | {options.every} | {spent} | {found or 'equal'} |", flush=True)
        failed += found is not None
    return failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=11)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[*ENGINES])
    return parser.parse_args()


def _processor_time() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def in_pandas(frame: pl.DataFrame) -> Any:
    """A frame of pandas whose columns are Arrow's, so that it holds what the Polars frame holds."""
    return frame.to_pandas(use_pyarrow_extension_array=True)


def as_dataset(frame: pl.DataFrame) -> Any:
    """A pyarrow Dataset in memory."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def as_relation(frame: pl.DataFrame) -> Any:
    """A relation of DuckDB on Arrow."""
    import duckdb

    return duckdb.from_arrow(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def as_dask(frame: pl.DataFrame) -> Any:
    """A Dask DataFrame of three partitions, with columns of Arrow."""
    import dask.dataframe as dd

    return dd.from_pandas(in_pandas(frame), npartitions=3)


def plainly(make: Make) -> Callable[[], contextlib.AbstractContextManager[Make]]:
    """An engine that needs no preparation."""
    return lambda: contextlib.nullcontext(make)


ENGINES: dict[str, Callable[[], contextlib.AbstractContextManager[Make]]] = {
    "pandas": plainly(in_pandas),
    "lazy": plainly(pl.DataFrame.lazy),
    "dataset": plainly(as_dataset),
    "duckdb": plainly(as_relation),
    "dask": plainly(as_dask),
}

if __name__ == "__main__":
    sys.exit(main())
