"""Gaussian noise with a scale for each number: each has exactly the law of a rounded Gaussian variable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from dpframe.noise import samplers, scaled_gaussian

ALARM = 1e-7


def misfit(drawn, scale):
    """Return the p-value of draws under round(N(0, scale^2)), by chi-squared over cells of at least 20 draws."""
    edges = [-np.inf]
    step = -int(10 * scale) - 2
    while step < 10 * scale + 2:
        if (ndtr((step + 0.5) / scale) - ndtr(edges[-1] / scale)) * drawn.size >= 20:
            edges.append(step + 0.5)
        step += max(1, int(scale / 8))
    edges[-1] = np.inf
    expected = np.diff(ndtr(np.array(edges) / scale)) * drawn.size
    found = np.histogram(drawn, edges)[0]
    return chi2.sf(((found - expected) ** 2 / expected).sum(), expected.size - 1)


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.3, 1e3, 3e9])
def test_draws_of_each_scale_are_rounded_gaussian(scale):
    drawn = scaled_gaussian(np.full(400_000, scale))
    assert misfit(drawn, scale) > ALARM
    for wrong in (scale * 0.98, scale * 1.02):
        assert scale < 1 or misfit(drawn, wrong) < ALARM  # power: noise that is 2% off is detected


@pytest.mark.parametrize("bits", [1, 3])
@pytest.mark.parametrize("scale", [0.7, 9.0])
def test_points_that_must_be_drawn_closer_have_the_same_law(monkeypatch, bits, scale):
    """With a coarse base, nearly every number needs further digits and an exact comparison."""
    monkeypatch.setattr(samplers, "BASE_BITS", bits)
    calls = []
    kept = samplers._kept_exactly
    monkeypatch.setattr(samplers, "_kept_exactly", lambda *given: calls.append(1) or kept(*given))
    drawn = scaled_gaussian(np.full(2_500, scale))
    assert len(calls) > 150
    assert misfit(drawn, scale) > ALARM


def test_scales_do_not_mix_and_draws_are_independent():
    scales = np.tile([0.5, 40.0, 2e6], 100_000)
    drawn = scaled_gaussian(scales).reshape(-1, 3)
    spread = drawn.std(axis=0) / np.sqrt(np.array([0.5, 40.0, 2e6]) ** 2 + 1 / 12)
    assert np.abs(spread - 1.0)[1:].max() < 0.015
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.02
    assert abs(np.corrcoef(drawn[:-1, 1], drawn[1:, 1])[0, 1]) < 0.02


def test_the_largest_scales_and_none():
    drawn = scaled_gaussian(np.full(200, 2.0**51))
    assert 0.7 < drawn.std() / 2.0**51 < 1.3
    assert len(np.unique(drawn % 1024)) > 150  # the last digits are random too
    assert scaled_gaussian(np.zeros(0)).size == 0
