"""Histograms to denoise: published ones, made-up ones of many shapes, and those of every column of some tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SIZES = (8, 40, 400)
FEWEST, MOST = 8, 4_096  # limits on the number of cells of a column's histogram
BINS = 64


@dataclass(frozen=True)
class Case:
    """True totals, and public facts about them."""

    name: str
    truth: Any
    ordered: bool = True
    nonnegative: bool = True


def published(folder: Path) -> Iterator[Case]:
    """Yield the histograms of DPBench: 4,096 cells, or 256 x 256."""
    for axes in (1, 2):
        file = folder / "dpbench" / f"histograms_{axes}d.npz"
        if file.exists():
            for name, cells in np.load(file).items():
                yield Case(name, cells)


def made_up() -> Iterator[Case]:
    """Yield shapes on which a denoiser may gain much or lose much, in several lengths."""
    generator = np.random.default_rng(11)
    for size in SIZES:
        spike, places = np.zeros(size), np.arange(size)
        spike[size // 3] = 5_000
        shapes = {
            "empty": np.zeros(size),
            "constant": np.full(size, 300),
            "dense": generator.integers(0, 100_000, size),
            "smooth": 500 * (1 + np.sin(places * 6 / size)),
            "steps": np.repeat(generator.integers(0, 200, -(-size // 8)), 8)[:size],
            "one spike": spike,
            "heavy tail": generator.pareto(1.1, size) * 5,
            "sparse": np.where(generator.random(size) < 0.05, generator.integers(1, 1_000, size), 0),
            "small counts": generator.poisson(3, size),
            "alternating": places % 2 * 60,
            "negative": generator.normal(-200, 30, size),
            "two values": np.where(generator.random(size) < 0.5, -400, 400),
            "falling": 1e5 * 0.9**places,
            "skewed": np.exp(generator.normal(4, 2, size)),
            "cumulative": np.cumsum(generator.integers(0, 9, size)),
        }
        for name, truth in shapes.items():
            whole = np.rint(np.clip(truth, -1e8, 1e8)).astype(np.int64)
            yield Case(f"{name}, {size:,}", whole, nonnegative=bool(whole.min() >= 0))


def of_tables(folder: Path) -> Iterator[Case]:
    """Yield the histogram of each column of each table; bins of numbers are ordered, categories are not."""
    for file in sorted([*folder.rglob("*.csv"), *folder.rglob("*.parquet")]):
        if file.parent.name == "reference_values":  # holds figures for comparison, not data
            continue
        try:
            frame = pl.read_csv(file, infer_schema_length=None) if file.suffix == ".csv" else pl.read_parquet(file)
        except pl.exceptions.PolarsError:
            continue
        for name in frame.columns:
            yield from _of_column(f"{file.parent.name}/{file.stem}: {name}", frame[name].drop_nulls())


def _of_column(name: str, values: pl.Series) -> Iterator[Case]:
    if values.dtype.is_numeric() and len(values):
        numbers = values.cast(pl.Float64).to_numpy()
        numbers = numbers[np.isfinite(numbers)]
        if np.unique(numbers[:10_000]).size < FEWEST:
            return
        low, high = float(numbers.min()), float(numbers.max())
        if values.dtype.is_integer() and FEWEST <= high - low < MOST:
            yield Case(f"{name}, by 1", np.bincount((numbers - low).astype(np.int64)))
        yield Case(f"{name}, {BINS} bins", np.histogram(numbers, bins=BINS, range=(low, high))[0])
    elif values.dtype == pl.String and FEWEST <= values.n_unique() <= MOST:
        yield Case(
            f"{name}, categories", values.value_counts(sort=True)["count"].to_numpy().astype(np.int64), ordered=False
        )
