"""Means and variances from noisy sums: published values, and how often their intervals cover the truth."""

from __future__ import annotations

import numpy as np
import pytest

import dpframe as dpf
from dpframe.queries.moments import bernstein_variance, centred_variance, standard_deviation, two_sided_mean
from tests.covering import chance_of_missing

Z = 1.959963984540054
MEANS = [  # bounds, epsilon, A, B -> mean, half-width
    ((0, 100), 1, 30000, 70000, 30, 0.22847319317591724),
    ((0, 100), 1, 500, 99500, 0.5, 0.2985037688204288),
    ((0, 120), 0.5, 4000, 8000, 40, 5.359109586074496),
    ((-1, 1), 2, 60, 40, 0.2, 0.04326661530556787),
    ((0, 1), 0.1, 20, 180, 0.1, 0.13583077707206126),
    ((0, 1), 0.1, -3, 200, 0, 0.15228426395939088),
    ((0, 10), 1, 2, 3, 5, 5),
    ((0, 10), 1, -20, 10, 5, 5),
    ((0, 5000), 0.2, 1e6, 9e6, 500, 33.909247957526276),
    ((18, 90), 1, 3600, 3600, 54, 1.5273506473629426),
]
VARIANCES = [  # n, S1, T in bounds of (0, 100) -> variance, half-width
    (1000, 0, -1.15e6, 100.12262262262263, 9.997357757601945),
    (1000, -30000, -150000, 200.22272272272275, 22.30788378189357),
    (250, 500, -60000, 1010.4016064257029, 30.477683092599484),
    (12, 100, -9000, 640.1515151515151, 1045.8771087957932),
    (10000, 12345, -1.2e7, 48.48108285828583, 1.0227751476290536),
    (500, 0, -625000, 0.09018036072144288, 20.83171752254048),
    (5, 40, 3000, 3125, 3125),
    (100, -4000, 60000, 254.79797979797982, 292.9804704863074),
    (2000, 1000, 100, 1250.4308404202102, 3.679744399909975),
]
BERNSTEIN = [  # the three sums -> variance of t with divisor n, and its standard deviation
    (250, 500, 250, 0, 0.006121173549351444),
    (333, 333, 334, 0.08349975, 0.005771107858190122),
    (810, 180, 10, 0, 0.011521689922857936),
    (500, 0, 500, 0.25, 0.007068122392948947),
    (1000, 40, 1, 0.0005536684688575328, 0.013032539475696095),
    (25, 30, 20, 0.04888888888888887, 0.07832414747397717),
]


def one(*numbers):
    return [np.array([float(number)]) for number in numbers]


@pytest.mark.parametrize(("bounds", "epsilon", "above", "below", "mean", "error"), MEANS)
def test_published_means(bounds, epsilon, above, below, mean, error):
    noise = dpf.Laplace.calibrate(sensitivity=bounds[1] - bounds[0], epsilon=epsilon)
    found = two_sided_mean(*one(above, below), bounds, noise.interval(0.95))
    assert found.values[0] == pytest.approx(mean)
    count = (above + below) / (bounds[1] - bounds[0])
    near = 0.02 if count >= 1_000 else 0.25  # published half-widths are first-order, these are Fieller's
    assert found.half_widths[0] == pytest.approx(error, rel=near)


@pytest.mark.parametrize("size", [1, 3, 10, 100])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_means_of_small_groups_are_covered(size, share, epsilon):
    """Over 20,000 groups; a false alarm has a chance below 1e-6 / 48."""
    steps, repeats = 2**20, 20_000
    noise = dpf.Laplace.calibrate(sensitivity=steps, epsilon=epsilon)
    above, below = (
        noise.add_noise(np.full(repeats, round(size * part * steps))) / steps for part in (share, 1.0 - share)
    )
    found = two_sided_mean(above, below, (0.0, 1.0), noise.interval(0.95) / steps)
    missed = (np.abs(found.values - round(size * share * steps) / steps / size) > found.half_widths).sum()
    assert chance_of_missing(missed, repeats, 0.05) > 1e-6 / 48


@pytest.mark.parametrize("noise_of_count", [0.1, 0.3])
@pytest.mark.parametrize("n", [2, 20, 1_000])
@pytest.mark.parametrize("shape", ["normal", "even", "skew", "constant", "lower", "ends"])
@pytest.mark.parametrize("law", ["centred", "bernstein"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_variances_are_covered(n, shape, law, noise_of_count, ddof):
    """Over 20,000 groups, some at the bounds, at most 6.5% may miss; a false alarm has a chance below 1e-6."""
    repeats, bounds = 20_000, (0.0, 100.0)
    deviation = noise_of_count * n
    generator = np.random.default_rng(n)
    values = {
        "normal": generator.normal(50, 10, n),
        "even": generator.uniform(*bounds, n),
        "skew": generator.exponential(10, n),
        "constant": np.full(n, 50.0),
        "lower": np.zeros(n),
        "ends": np.resize([0.0, 100.0], n),
    }[shape].clip(*bounds)
    truth = values.var(ddof=ddof)
    if law == "centred":
        spreads = (deviation, deviation * 50, deviation * 1250)
        y = values - 50
        sums = (n, y.sum(), (y * y - 1250).sum())
        noisy = [total + generator.normal(0, spread, repeats) for total, spread in zip(sums, spreads, strict=True)]
        found = centred_variance(*noisy, spreads, Z, 50.0, ddof)
    else:
        t = values / 100
        noise = dpf.Laplace.calibrate(sensitivity=2**17, epsilon=2.0**0.5 / deviation)
        cells = tuple(
            noise.add_noise(np.full(repeats, round(total * 2**17))) / 2**17
            for total in (((1 - t) ** 2).sum(), (2 * t * (1 - t)).sum(), (t * t).sum())
        )
        spread = noise.variance**0.5
        found = bernstein_variance(cells, spread / 2**17, noise.interval(0.95) / spread, 50.0, ddof)
    missed = int((np.abs(found.values - truth) > found.half_widths * (1 + 1e-9)).sum())
    assert chance_of_missing(missed, repeats, 0.065) > 1e-6 / 144


@pytest.mark.parametrize(("n", "total", "squares", "variance", "error"), VARIANCES)
def test_published_variances(n, total, squares, variance, error):
    found = centred_variance(*one(n, total, squares), (3.0, 150.0, 3750.0), Z, 50.0, 1)
    assert found.values[0] == pytest.approx(variance)
    assert found.half_widths[0] == pytest.approx(error, rel=0.03)  # published half-widths are first-order
    root = standard_deviation(found)
    assert root.values[0] == pytest.approx(variance**0.5)
    assert (root.values + root.half_widths)[0] ** 2 >= (found.values + found.half_widths)[0] * (1 - 1e-12)


@pytest.mark.parametrize(("low", "middle", "high", "variance", "spread"), BERNSTEIN)
def test_published_bernstein_variances(low, middle, high, variance, spread):
    found = bernstein_variance(tuple(one(low, middle, high)), 199.83341664682539**0.5, 1.0, 0.5, 0)
    assert found.values[0] == pytest.approx(variance)
    near = 0.03 if low + middle + high >= 1_000 else 0.3  # published half-widths are first-order
    assert found.half_widths[0] == pytest.approx(spread, rel=near)


def test_few_values_have_the_largest_variance():
    found = centred_variance(*one(1.9, 0, 0), (3.0, 150.0, 3750.0), Z, 50.0, 1)
    assert (found.values[0], found.half_widths[0]) == (5000.0, 5000.0)
    assert np.isfinite(standard_deviation(found).values).all()
