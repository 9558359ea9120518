"""Release all marginal tables of the thirteen attributes of Adult together or separately, and compare the errors.

    python -m benchmarks.marginals [--data ../shared/data/adult/adult.csv] [--releases 20]

Errors are root mean squares over the cells of a table, averaged (as squares) over all tables of at least one attribute.
Their unit is the standard deviation of the noise of one count with the same budget, so they are multiplied by mu. A
release of 91 separate tables is one call of `release_together`, in which each takes the same part of mu^2.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from dpframe.queries.contrasts import ContrastDesign

DATA = Path(__file__).parents[2] / "shared" / "data" / "adult" / "adult.csv"
PRICE = {"epsilon": 1.0, "delta": 1e-6}
TENS = ("age", "hours_per_week")
CUTS = {"capital_gain": [1, 5_000, 10_000, 20_000], "capital_loss": [1, 1_000, 2_000, 3_000]}
COLUMNS = (
    *("age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex"),
    *("capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)
Tables = Mapping[tuple[str, ...], NDArray[np.float64]]


def adult(path: Path) -> pl.DataFrame:
    """Read the table; cut numbers into public bins and make missing values a category."""
    frame = pl.read_csv(path).select(COLUMNS).with_columns(pl.col(pl.String).fill_null("?"))
    tens = [(pl.col(name) // 10).clip(1 if name == "age" else 0, 9) for name in TENS]
    cuts = [
        pl.sum_horizontal((pl.col(name) >= edge).cast(pl.Int64) for edge in edges).alias(name)
        for name, edges in CUTS.items()
    ]
    return frame.with_columns(*tens, *cuts)


def keys_of(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Return the categories. This reads public data; for private data, declare them from public knowledge."""
    return {name: frame[name].unique().sort().to_list() for name in frame.columns}


def exact(frame: pl.DataFrame, keys: Mapping[str, list[Any]], degree: int) -> Tables:
    """Return the true tables."""
    places = {name: frame[name].replace_strict(known, range(len(known))).to_numpy() for name, known in keys.items()}
    tables = {}
    for columns in _tables(keys, degree):
        shape = [len(keys[name]) for name in columns]
        code = np.ravel_multi_index([places[name] for name in columns], shape)
        tables[columns] = np.bincount(code, minlength=math.prod(shape)).reshape(shape).astype(float)
    return tables


def _tables(keys: Mapping[str, Any], degree: int) -> list[tuple[str, ...]]:
    return [columns for order in range(1, degree + 1) for columns in itertools.combinations(keys, order)]


def together(frame: pl.DataFrame, keys: Any, degree: int, objective: Any, denoise: Any = None) -> Tables:
    """Release all tables as marginals in one release."""
    ledger = dpf.Ledger(**PRICE)
    asked = {"keys": keys, "degree": degree, "objective": objective, "denoise": denoise, "ledger": ledger, **PRICE}
    result = frame.dp.marginals(list(keys), **asked)
    starts = itertools.accumulate((level["rows"] for level in result.dp.provenance["levels"]), initial=0)
    counts, tables = result["count"].to_numpy(), {}
    for level, start in zip(result.dp.provenance["levels"], starts, strict=False):
        shape = [len(keys[name]) for name in level["columns"]]
        tables[tuple(level["columns"])] = counts[start : start + level["rows"]].reshape(shape)
    return {columns: table for columns, table in tables.items() if columns}


def apart(frame: pl.DataFrame, keys: Any, degree: int) -> Tables:
    """Release each table separately, with the same total budget."""
    plans = {
        " x ".join(columns): frame.dp.preview.group_by(*columns, keys={name: keys[name] for name in columns}).count(
            denoise=None
        )
        for columns in _tables(keys, degree)
    }
    results = dpf.release_together(plans, ledger=dpf.Ledger(**PRICE), **PRICE)
    return {
        columns: results[" x ".join(columns)]["count"].to_numpy().reshape([len(keys[name]) for name in columns])
        for columns in _tables(keys, degree)
    }


def squares(released: Tables, truth: Tables) -> NDArray[np.float64]:
    """Return the mean squared error of each table."""
    return np.array([((released[columns] - truth[columns]) ** 2).mean() for columns in truth])


def main() -> int:
    """Release, compare and print."""
    parser = argparse.ArgumentParser(description="All tables of Adult at one cost.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--releases", type=int, default=20)
    options = parser.parse_args()
    frame = adult(options.data)
    keys = keys_of(frame)
    mu = 1.0 / dpf.Gaussian.calibrate(sensitivity=1, **PRICE).scale
    sizes = tuple(map(len, keys.values()))
    print(f"{frame.height:,} rows, {len(keys)} attributes of {sizes} values; epsilon 1, delta 1e-6, mu {mu:.4f}")
    for degree in (2, 3):
        truth = exact(frame, keys, degree)
        ways: dict[str, Any] = {
            "equal": lambda degree=degree: together(frame, keys, degree, "equal"),
            "cells": lambda degree=degree: together(frame, keys, degree, "cells"),
            "equal, nonnegative": lambda degree=degree: together(frame, keys, degree, "equal", "nonnegative"),
        }
        if degree == 2:
            ways["equal, auto"] = lambda: together(frame, keys, 2, "equal", "auto")
            ways["separate tables"] = lambda: apart(frame, keys, 2)
        for name, way in ways.items():
            begun = time.process_time()
            found = np.array([squares(way(), truth) for _ in range(options.releases)])
            seconds = (time.process_time() - begun) / options.releases
            typical, worst = math.sqrt(found.mean()) * mu, math.sqrt(found.mean(axis=0).max()) * mu
            weights = np.array([table.size for table in truth.values()])
            by_cell = math.sqrt((found.mean(axis=0) * weights).sum() / weights.sum()) * mu
            said = _stated(sizes, degree, name)
            errors = f"{typical:7.3f} of all tables, {by_cell:7.3f} of all cells, {worst:7.3f} the worst table"
            print(f"degree {degree}, {len(truth)} tables, {name:20s} {errors}{said}; {seconds:.2f} s of a processor")
    return 0


def _stated(sizes: tuple[int, ...], degree: int, name: str) -> str:
    """Return the error that the plan states, for releases without post-processing."""
    if name not in ("equal", "cells"):
        return f" (stated {math.sqrt(91):.3f})" if name == "separate tables" else ""
    variances = ContrastDesign(sizes, degree, name).table_variances  # type: ignore[arg-type]
    del variances[()]
    return f" (stated {math.sqrt(sum(variances.values()) / len(variances)):.3f} of all tables)"


if __name__ == "__main__":
    raise SystemExit(main())
