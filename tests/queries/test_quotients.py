"""Fieller's intervals: published ones, and a comparison with a direct search of the set."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpframe as dpf
from dpframe.queries.quotients import quotient_ends, quotient_half_widths, sum_interval

PUBLISHED = {
    (500, 1000, 10, 10): 0.022110262637814782,
    (50, 100, 10, 10): 0.24433038029489756,
    (5, 30, 4, 4): 0.2869592512991234,
    (0, 200, 3, 3): 0.029412173401839745,
    (990, 1000, 5, 5): 0.013885992412025004,
    (12, 20, 8, 8): 2.7133410832605884,
    (12, 15, 8, 8): math.inf,
    (-40, 100, 6, 3): 0.12153032424862364,
}


@pytest.mark.parametrize("numbers", PUBLISHED)
def test_published_half_widths(numbers):
    top, bottom, top_spread, bottom_spread = map(float, numbers)
    squares = ((1.959963984540054 * top_spread) ** 2, 0.0, (1.959963984540054 * bottom_spread) ** 2)
    values = np.array([top / bottom])
    found = quotient_half_widths(values, np.array([top]), np.array([bottom]), squares, math.inf)
    assert found[0] == pytest.approx(PUBLISHED[numbers], rel=1e-9)


@pytest.mark.parametrize(("top", "bottom", "both"), [(30.0, 100.0, 50.0), (0.0, 60.0, -20.0), (90.0, 100.0, 100.0)])
def test_the_set_is_the_one_that_is_defined(top, bottom, both):
    squares = (200.0, both, 300.0)
    rates = np.linspace(-2.0, 3.0, 2_000_001)
    inside = rates[(top - rates * bottom) ** 2 <= squares[0] - 2 * rates * both + rates**2 * squares[2]]
    found = quotient_half_widths(np.array([0.4]), np.array([top]), np.array([bottom]), squares, math.inf)
    assert found[0] == pytest.approx(max(inside.max() - 0.4, 0.4 - inside.min()), abs=5e-6)


@pytest.mark.parametrize("spread", [1.0, 1e-6, 1e-12])
def test_the_width_of_little_noise(spread):
    """The squares of dividend and divisor nearly cancel; rounding must not hide the width."""
    top, bottom, both = 333.0, 1000.0, 0.5
    squares = (spread**2, both * spread**2, spread**2)
    low, high = quotient_ends(np.array([top]), np.array([bottom]), squares)
    first_order = spread / bottom * math.sqrt(1.0 - 2.0 * both * 0.333 + 0.333**2)
    assert (high - low)[0] / 2.0 == pytest.approx(first_order, rel=1e-5, abs=1e-16)


@pytest.mark.parametrize("draws", [1, 4, 19])
@pytest.mark.parametrize("law", ["Laplace", "Gaussian"])
def test_whole_draws_of_a_quotient_are_covered(law, draws):
    """Exact coverage for a share: a count minus `part` of the sum of all counts, of which `draws` are others."""
    steps = np.arange(-60, 61)
    for strength in np.arange(0.6, 5.0, 0.1):
        if law == "Laplace":
            noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=strength)
            chances = np.exp(-strength * np.abs(steps))
        else:
            noise = dpf.Gaussian.of_mu(1, float(strength), 1.0)
            chances = np.exp(-((steps * strength) ** 2) / 2.0)
        chances /= chances.sum()
        others = np.ones(1)
        for _ in range(draws):
            others = np.convolve(others, chances)
        sums = np.arange(others.size) - others.size // 2
        for part in (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5):
            spread = math.hypot(1 - part, part * draws**0.5)
            told = np.abs((1 - part) * steps[:, None] - part * sums) <= sum_interval(noise, 0.95) * spread + 1e-9
            assert (np.outer(chances, others) * told).sum() > 0.935
