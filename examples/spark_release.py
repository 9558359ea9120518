"""A table of Apache Spark: executors add up their own rows, and noisy totals alone come back.

Run it with ``python examples/spark_release.py FOLDER``; it wants ``pip install dpframe[spark]`` and Java 17. On a
cluster, dpframe must be installed on the executors too; see docs/reference/engines.md for the settings.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf

BIKES = ["city", "cargo", "electric"]


def main(folder: Path) -> Any:
    """Start Spark, ask, and stop it."""
    missing = what_is_missing()
    if missing:
        print(f"No epsilon is spent: {missing}.")
        return None
    spark = session()
    try:
        return asked(spark, folder)
    finally:
        spark.stop()


def asked(spark: Any, folder: Path) -> Any:
    """The number and the mean length of rides, by kind of bike."""
    path = folder / "spark_rides.parquet"
    made_up_rides().write_parquet(path)
    rides = spark.read.parquet(str(path)).where("minutes > 0")  # row by row: the same filter for everyone
    unit = dpf.PrivacyUnit(column="rider", max_rows=6, max_groups=3)
    with dpf.Ledger(epsilon=2.0, unit=unit) as ledger:
        lengths = (
            dpf.of(rides)
            .group_by("bike", keys=BIKES)
            .agg(rides=dpf.count(), length=dpf.mean("minutes", bounds=(0, 120)), epsilon=1.0)
        )
    print(lengths)
    print(ledger)
    return lengths


def what_is_missing() -> str:
    """Why this cannot run here, or nothing."""
    for module in ("pyspark", "pandas"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install dpframe[spark])"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed, which Spark runs on"
    return ""


def session() -> Any:
    """A session of two threads in this process; on a cluster, the one that is there."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the executors' Python, which has dpframe
    settings = {
        "spark.ui.enabled": "false",  # it shows numbers of rows
        "spark.io.encryption.enabled": "true",  # rows in shuffles
        "spark.sql.shuffle.partitions": "4",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
    }
    builder = SparkSession.builder.master("local[2]").appName("dpframe")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def made_up_rides(size: int = 20_000) -> pl.DataFrame:
    """Rows to try it with."""
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "rider": random.integers(0, 3_000, size),
            "bike": random.choice(BIKES, size),
            "minutes": random.gamma(2.0, 12.0, size),
        }
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
