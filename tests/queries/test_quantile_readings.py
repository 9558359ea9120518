"""Quantiles and distribution functions from noisy running counts: published values, and intervals that cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import dpframe as dpf
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.quantiles import distribution, places
from tests.covering import chance_of_missing


@dataclass(frozen=True)
class Normal:
    """Noise of a given standard deviation, before rounding."""

    scale: float
    p: float = 2.0
    grid: float = 1.0

    @property
    def variance(self):
        return self.scale**2

    def interval(self, confidence):
        return self.scale * 1.959963984540054


RUNNING = np.array(
    [
        [3, 1, 20, 60, 130, 210, 260, 300, 330, 340, 338],
        [5, 5, 5, *[100] * 7, 101],
        [-4, 2, 0.5, -1, 3, 1, 2, 0, 1, -2, 0.5],
        [*[50] * 10, 52],
        [*[0] * 10, 400],
    ],
    dtype=float,
)
READ = {
    0.25: [(40, 30, 50), (30, 20, 40), (50, 0, 100), (0, 0, 10), (100, 90, 100)],
    0.5: [(50, 40, 60), (30, 20, 40), (50, 0, 100), (0, 0, 10), (100, 90, 100)],
    0.9: [(80, 60, 90), (30, 20, 100), (50, 0, 100), (0, 0, 100), (100, 90, 100)],
}


@pytest.mark.parametrize("q", READ)
def test_readings(q):
    """The values are published; the ends follow from wider ranks and one more candidate on either side."""
    found = places(RUNNING, q, PrefixSums(11), Normal(4.0), 0.95, rows=1.0, beside=1)
    assert [(10 * value, 10 * low, 10 * high) for value, low, high in zip(*found, strict=True)] == READ[q]


CASES = [(size, shape, q) for size in (5, 30, 300) for shape in ("even", "ties", "ends") for q in (0.1, 0.5, 0.9)]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize(("size", "shape", "q"), CASES)
def test_intervals_hold_the_exact_quantile(law, size, shape, q):
    """Over 4,000 groups of the same values, also of only 5 values. Chance of a false alarm below 1e-6 in each case."""
    repeats, bins = 4_000, 40
    generator = np.random.default_rng([size, bins, int(100 * q)])
    values = {"even": generator.integers(0, bins, size), "ties": np.repeat([11, 12], [size // 2, size - size // 2])}
    values["ends"] = np.repeat([0, bins - 1], [size // 2, size - size // 2])
    counts = np.bincount(values[shape], minlength=bins)
    design = PrefixSums(bins) if law == "gaussian" else Tree.best(bins)
    if law == "gaussian":
        noise = dpf.Gaussian.calibrate(sensitivity=design.column_square**0.5, epsilon=1.0, delta=1e-6)
    else:
        noise = dpf.Laplace.calibrate(sensitivity=design.column_sum, epsilon=1.0)
    exact = np.tile(design.exact_sums(counts[None, :]), (repeats, 1))
    running = design.running(noise.add_noise(exact.ravel()).reshape(exact.shape).astype(float) * design.grid)
    scaled = Scaled(noise, design.grid)
    _, low, high = places(running, q, design, scaled, 0.95, rows=1.0, beside=0)
    truth = int(np.argmax(np.cumsum(counts) >= q * counts.sum()))
    missed = int(((truth < low) | (truth > high)).sum())
    assert chance_of_missing(missed, repeats, 0.05) > 1e-6
    _, shares, half = distribution(running, design, scaled, 0.95)
    outside = (np.abs(shares - np.cumsum(counts) / counts.sum()) > half).sum(axis=0)
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0
    assert chance_of_missing(outside.max(), repeats, 0.05) > 1e-6 / bins


METHODS = ("inverted_cdf", "linear", "weibull", "median_unbiased", "averaged_inverted_cdf", "lower", "higher")
COLUMNS = {
    "continuous": lambda generator, size: generator.gamma(3.0, 9.0, size),
    "rounded": lambda generator, size: np.round(generator.gamma(3.0, 9.0, size), 1),
    "whole": lambda generator, size: np.floor(generator.gamma(3.0, 9.0, size)),
    "tied": lambda generator, size: generator.choice([0.5, 17.25, 17.75, 62.0], size, p=[0.2, 0.3, 0.3, 0.2]),
    "beyond": lambda generator, size: generator.normal(30.0, 40.0, size),  # many are clipped
}


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 100.0])
@pytest.mark.parametrize("size", [7, 12, 100, 10_000])
@pytest.mark.parametrize("column", COLUMNS)
def test_intervals_hold_the_quantile_of_the_values(column, size, epsilon, law):
    """They hold it even if values lie between candidates. 800 releases; a false alarm has a chance below 1e-6."""
    repeats, candidates = 800, np.arange(61.0)
    values = np.clip(COLUMNS[column](np.random.default_rng(size), size), 0.0, 60.0)
    counts = np.bincount(np.searchsorted(candidates[:-1] + 0.5, values, side="right"), minlength=61)
    design = PrefixSums(61) if law == "gaussian" else Tree.best(61)
    if law == "gaussian":
        noise = dpf.Gaussian.calibrate(sensitivity=design.column_square**0.5, epsilon=epsilon, delta=1e-6)
    else:
        noise = dpf.Laplace.calibrate(sensitivity=design.column_sum, epsilon=epsilon)
    exact = np.tile(design.exact_sums(counts[None, :]), (repeats, 1))
    running = design.running(noise.add_noise(exact.ravel()).reshape(exact.shape).astype(float) * design.grid)
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        _, low, high = places(running, q, design, Scaled(noise, design.grid), 0.95, rows=1.0, beside=1)
        for method in METHODS:
            truth = np.quantile(values, q, method=method)
            missed = int(((truth < candidates[low]) | (truth > candidates[high])).sum())
            assert chance_of_missing(missed, repeats, 0.05) > 1e-6 / (120 * 5 * len(METHODS)), (q, method)


@dataclass(frozen=True)
class Scaled:
    """Noise in units of rows, from a law in steps of a measurement."""

    law: dpf.Gaussian | dpf.Laplace
    unit: float

    @property
    def p(self):
        return self.law.p

    @property
    def grid(self):
        return self.law.grid * self.unit

    @property
    def scale(self):
        return self.law.scale * self.unit

    @property
    def variance(self):
        return self.law.variance * self.unit**2

    def interval(self, confidence):
        return self.law.interval(confidence) * self.unit
