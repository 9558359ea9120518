"""Compare `rollup=True` and `cube=True` with releasing the cells alone and adding up their noisy values.

Run it from the root of the repository: ``python -m benchmarks.rollup``. The tables are not part of the repository: they
are read from ``../shared/data``.
"""

from __future__ import annotations

import argparse
import math
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe.queries.keys import key_axes
from dpframe.queries.query import Option, Subtotals

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EPSILON, DELTA = 0.1, 1e-6
CASES: dict[str, Any] = {
    "labour force: year, week": (
        "lfs_france_50k/lfs_france_50k.parquet",
        {"YEAR": range(2004, 2014), "REFWEEK": range(1, 54)},
    ),
    "labour force: year, quarter, sex, age": (
        "lfs_france_50k/lfs_france_50k.parquet",
        {"YEAR": range(2004, 2014), "QUARTER": ["Q1", "Q2", "Q3", "Q4"], "SEX": [1, 2], "AGE": [7, 20, 32, 47, 65, 75]},
    ),
    "adult: education, age, hours": (
        "adult/adult.csv",
        {"education_num": range(1, 17), "age": range(17, 91), "hours_per_week": range(1, 100)},
    ),
}
CUBED: dict[str, Any] = {
    "labour force: year, week": CASES["labour force: year, week"],
    "adult: education, age": ("adult/adult.csv", {"education_num": range(1, 17), "age": range(17, 91)}),
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--repeats", type=int, default=20, help="draws of the noise that are averaged")
    options = parser.parse_args()
    for option, cases in (("rollup", CASES), ("cube", CUBED)):
        print(f"| table | noise | level | rows | {option} | cells added up | ratio |")
        print("|---|---|---|---:|---:|---:|---:|")
        for (name, (file, keys)), delta in product(cases.items(), (None, DELTA)):
            if not (options.data / file).exists():
                print(f"No {file} in {options.data}. Name the folder with --data.")
                return 1
            frame = read(options.data / file).select(list(keys))
            for line in measured(name, frame, keys, option, delta, options.repeats):
                print(line)
    return 0


def read(path: Path) -> pl.DataFrame:
    """Read a table of the shared data."""
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)


def measured(
    name: str, frame: pl.DataFrame, keys: dict[str, Any], option: Option, delta: float | None, repeats: int
) -> list[str]:
    """Return a line of the table for each level."""
    price = {"epsilon": EPSILON} if delta is None else {"epsilon": EPSILON, "delta": delta}
    levels, subtotals = Subtotals(key_axes(tuple(keys), keys, None), option).levels, {option: True}
    asked = frame.dp.group_by(*keys, keys=keys)
    with dpf.Ledger(epsilon=1e12, delta=0.5, accounting="basic", checks=False):
        truth = asked.count(epsilon=1e6, denoise=None, **subtotals)["count"].to_numpy()
        fitted, added = np.zeros(truth.size), np.zeros(truth.size)
        for _ in range(repeats):
            fitted += np.square(asked.count(**subtotals, **price)["count"].to_numpy() - truth)
            cells = asked.count(denoise=None, **price)["count"].to_numpy()
            sums = np.concatenate([np.bincount(level.group, cells) for level in levels])
            added += np.square(sums - truth)
    lines, start = [], 0
    for level in levels:
        mine = slice(start, start + level.size)
        one, other = (math.sqrt(float(errors[mine].mean()) / repeats) for errors in (fitted, added))
        noise = "Laplace" if delta is None else "Gaussian"
        words = ", ".join(level.columns) or "total"
        lines.append(f"| {name} | {noise} | {words} | {level.size:,} | {one:.1f} | {other:.1f} | {one / other:.2f} |")
        start += level.size
    return lines


if __name__ == "__main__":
    sys.exit(main())
