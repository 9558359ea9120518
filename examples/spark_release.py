"""Release a private table from Apache Spark: executors add up their own rows, and only noisy totals come back.

Run it with ``python examples/spark_release.py FOLDER``; it needs ``pip install dpframe[spark]`` and Java 17. On a
cluster, install dpframe on the executors too; docs/reference/engines.md lists the settings.
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
    """Start Spark, release the statistics, and stop Spark."""
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
    """Release the number and the mean length of rides by kind of bike."""
    path = folder / "spark_rides.parquet"
    made_up_rides().write_parquet(path)
    rides = spark.read.parquet(str(path)).where("minutes > 0")  # safe: a fixed filter that looks at each row alone
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
    """Return what is missing to run this example, or an empty string."""
    for module in ("pyspark", "pandas"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install dpframe[spark])"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed, which Spark runs on"
    return ""


def session() -> Any:
    """Start a Spark session with two threads in this process; on a cluster, use the existing session."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the executors need a Python that has dpframe
    settings = {
        "spark.ui.enabled": "false",  # the Spark UI shows row counts
        "spark.io.encryption.enabled": "true",  # encrypts rows that a shuffle writes to disk
        "spark.sql.shuffle.partitions": "4",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
    }
    builder = SparkSession.builder.master("local[2]").appName("dpframe")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def made_up_rides(size: int = 20_000) -> pl.DataFrame:
    """Make up rides to try the example with."""
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
