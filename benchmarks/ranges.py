"""Compare the errors of sums of neighboring bins: a plain histogram against ``ranges=True``.

Run it from the root of the repository: ``python -m benchmarks.ranges``. The first table is exact, at mu = 1 or
epsilon = 1, where each row is a unit. The second uses published histograms (DPBench: Hay et al., SIGMOD 2016) from
``../shared/data``: root mean squared errors of all prefixes, and of 2,000 ranges with random ends.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from dpframe.queries.prefix_sums import PrefixSums, Tree

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES = (100, 1_000)
BINS = 1_024  # the published histograms have 4,096: four neighbors form one bin
MOST_ROWS = 1_000_000  # published histograms with more rows are scaled down to this
SIDE = 64  # the published grids have 256 x 256 cells
ASKED = {"histogram, denoise=None": {"denoise": None}, "histogram": {}, "ranges=True": {"ranges": True}}

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--repeats", type=int, default=3, help="draws of the noise that are averaged")
    options = parser.parse_args()
    exact()
    exact_of_grids()
    folder = options.data / "dpbench"
    if (folder / "histograms_1d.npz").exists():
        measured(folder / "histograms_1d.npz", options.repeats)
        measured_grids(folder / "histograms_2d.npz", options.repeats)


def exact() -> None:
    """Print errors that are computed from the designs alone."""
    print("| bins | noise | design | a bin | all prefixes | all ranges | the worst range |")
    print("|---:|---|---|---:|---:|---:|---:|")
    for size in SIZES:
        line(size, "Gaussian, mu 1", "histogram", 1.0, np.eye(size))
        line(size, "Gaussian, mu 1", "ranges=True", *_of(PrefixSums(size), 2))
        line(size, "Laplace, epsilon 1", "histogram", math.sqrt(2.0), np.eye(size))
        line(size, "Laplace, epsilon 1", "ranges=True", *_of(Tree.best_of_sums(size), 1))


def exact_of_grids() -> None:
    """Print root mean squares of the standard deviations of all rectangles: each is the mean variance on one axis."""
    print("\n| cells | Gaussian, mu 1: histogram | ranges=True | Laplace, epsilon 1: histogram | ranges=True |")
    print("|---|---:|---:|---:|---:|")
    for size in (16, 64, 256):
        plain = (size + 2) / 3.0  # the mean length of a range, and so the mean variance on one axis of a histogram
        gaussian, tree = PrefixSums(size, 8), Tree.best_of_sums(size)
        square = gaussian.column_square * gaussian.grid**2 * _mean_variance(gaussian)
        found = plain, square, math.sqrt(2.0) * plain, math.sqrt(2.0) * tree.levels**2 * tree.mean_variance
        print(f"| {size} x {size} | " + " | ".join(f"{one:.3f}" for one in found) + " |")


def _mean_variance(design: PrefixSums) -> float:
    running = np.pad(design.running(np.eye(design.width)).T, ((1, 0), (0, 0)))
    corner = running @ running.T
    sums = np.diag(corner)[:, None] + np.diag(corner) - 2.0 * corner
    return float(sums[np.triu_indices(design.size + 1, 1)].mean())


def _of(design: PrefixSums | Tree, p: int) -> tuple[float, Floats]:
    """Return the standard deviation of the measured noise, and the matrix that computes the bins from it."""
    scale = design.column_square**0.5 if p == 2 else math.sqrt(2.0) * design.column_sum
    return scale * design.grid, np.diff(design.running(np.eye(design.width)).T, axis=0, prepend=0.0)


def line(size: int, noise: str, name: str, deviation: float, bins: Floats) -> None:
    """Print a line of the first table: root mean squares of standard deviations, and the largest."""
    running = np.pad(np.cumsum(bins, axis=0), ((1, 0), (0, 0)))
    corner = running @ running.T
    sums = (np.diag(corner)[:, None] + np.diag(corner) - 2.0 * corner)[np.triu_indices(size + 1, 1)]
    found = (bins**2).sum(axis=1).mean(), np.diag(corner)[1:].mean(), sums.mean(), sums.max()
    print(f"| {size:,} | {noise} | {name} | " + " | ".join(f"{deviation * one**0.5:.3f}" for one in found) + " |")


def measured(file: Path, repeats: int) -> None:
    """Measure whole calls on published histograms."""
    print("\n| histogram | epsilon | " + " | ".join(f"{name}: prefixes | ranges" for name in ASKED) + " |")
    print("|---|---:|" + "---:|---:|" * len(ASKED))
    ends = np.sort(np.random.default_rng(5).integers(0, BINS + 1, (2_000, 2)), axis=1)
    for name, cells in np.load(file).items():
        truth = cells.reshape(BINS, -1).sum(axis=1)
        truth = np.rint(truth * min(1.0, MOST_ROWS / truth.sum())).astype(np.int64)
        frame = pl.DataFrame({"x": np.repeat(np.arange(BINS), truth)})
        for epsilon in (0.01, 0.1, 1.0):
            errors = [_errors(frame, truth, ends, epsilon, repeats, one) for one in ASKED.values()]
            print(f"| {name} | {epsilon:g} | " + " | ".join(f"{a:,.1f} | {b:,.1f}" for a, b in errors) + " |")


def _errors(
    frame: pl.DataFrame, truth: Counts, ends: Counts, epsilon: float, repeats: int, more: dict
) -> tuple[float, float]:
    prefixes = ranges = 0.0
    for _ in range(repeats):
        ledger = dpf.Ledger(epsilon=epsilon)
        found = frame.dp.histogram("x", bins=range(BINS + 1), epsilon=epsilon, ledger=ledger, **more)
        off = np.cumsum(np.pad(found["count"].to_numpy() - truth, (1, 0)))
        prefixes += float((off[1:] ** 2).mean())
        ranges += float(((off[ends[:, 1]] - off[ends[:, 0]]) ** 2).mean())
    return math.sqrt(prefixes / repeats), math.sqrt(ranges / repeats)


def measured_grids(file: Path, repeats: int) -> None:
    """Measure whole calls on published grids: cells, and 2,000 rectangles."""
    print("\n| grid | epsilon | " + " | ".join(f"{name}: cells | rectangles" for name in ASKED) + " |")
    print("|---|---:|" + "---:|---:|" * len(ASKED))
    ends = np.sort(np.random.default_rng(6).integers(0, SIDE + 1, (2, 2_000, 2)), axis=2)
    for name, cells in np.load(file).items():
        each = cells.shape[0] // SIDE
        truth = cells.reshape(SIDE, each, SIDE, each).sum(axis=(1, 3))
        truth = np.rint(truth * min(1.0, MOST_ROWS / truth.sum())).astype(np.int64)
        row, column = (np.repeat(places.ravel(), truth.ravel()) for places in np.indices(truth.shape))
        frame = pl.DataFrame({"x": row, "y": column})
        for epsilon in (0.01, 0.1, 1.0):
            errors = [_errors_of_grid(frame, truth, ends, epsilon, repeats, one) for one in ASKED.values()]
            print(f"| {name} | {epsilon:g} | " + " | ".join(f"{a:,.1f} | {b:,.1f}" for a, b in errors) + " |")


def _errors_of_grid(
    frame: pl.DataFrame, truth: Counts, ends: Counts, epsilon: float, repeats: int, more: dict
) -> tuple[float, float]:
    cells = rectangles = 0.0
    (top, bottom), (left, right) = ends[0].T, ends[1].T
    for _ in range(repeats):
        ledger = dpf.Ledger(epsilon=epsilon)
        words = {"bins": [range(SIDE + 1)] * 2, "epsilon": epsilon, "ledger": ledger, **more}
        found = frame.dp.histogram(["x", "y"], **words).dp.to_numpy("count")
        sums = np.pad(np.cumsum(np.cumsum(found - truth, axis=0), axis=1), ((1, 0), (1, 0)))
        off = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        cells, rectangles = cells + float(((found - truth) ** 2).mean()), rectangles + float((off**2).mean())
    return math.sqrt(cells / repeats), math.sqrt(rectangles / repeats)


if __name__ == "__main__":
    main()
