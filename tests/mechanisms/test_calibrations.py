"""A small part of ``assurance/calibrations.py``: random parameters compared with definitions and with dp-accounting."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from assurance import calibrations

pytestmark = pytest.mark.slow

PARAMETERS = {"gaussian": 6, "laplace": 12, "generalized": 4, "truncated": 8}


@pytest.mark.parametrize("family", calibrations.FAMILIES)
def test_calibrations_are_never_below_the_exact_value_and_close_to_it(family):
    if family in ("gaussian", "laplace"):
        pytest.importorskip("dp_accounting")
    for row in calibrations.FAMILIES[family](np.random.default_rng(20), PARAMETERS[family]):
        assert row.compared >= 4
        assert not row.below, row.cases
        assert row.exact < 1e-12
        assert row.peer < 1e-7


def test_the_drill_sees_a_scale_that_is_too_small(monkeypatch):
    """Seeded: a sigma that is a part in a billion too small."""
    pytest.importorskip("dp_accounting")
    real = calibrations.dpf.analytic_gaussian_sigma
    monkeypatch.setattr(calibrations.dpf, "analytic_gaussian_sigma", lambda *price: real(*price) * (1 - 1e-9))
    sigma, _curve = calibrations.gaussians(np.random.default_rng(1), 5)
    assert sigma.below == 5


# Every noise: its curve falls, `epsilon` inverts `delta`, and more privacy needs more noise

KINDS = {
    "laplace": lambda price, shift: dpf.Laplace.calibrate(sensitivity=shift, epsilon=price),
    "gaussian": lambda price, shift: dpf.Gaussian.calibrate(sensitivity=shift, epsilon=price, delta=1e-6),
    "cubic": lambda price, shift: dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=shift, epsilon=price, delta=1e-6),
    "truncated": lambda price, shift: dpf.TruncatedGeneralizedGaussian.calibrate(
        p=2, sensitivity=shift, epsilon=price, output=(0, 90)
    ),
    "inflated": lambda price, shift: dpf.TruncatedGeneralizedGaussian.calibrate(
        p=3, sensitivity=shift, epsilon=price, output=(0, 90), boundary="inflated"
    ),
    "choice": lambda price, shift: dpf.ExponentialMechanism.of_steps(shift, price, monotonic=False, options=7),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=8)
@given(
    price=st.floats(0.01, 8.0), shift=st.integers(1, 40), points=st.lists(st.floats(0.0, 12.0), min_size=3, max_size=5)
)
def test_curves_fall_and_are_inverted(kind, price, shift, points):
    noise = KINDS[kind](price, shift)
    points = sorted({*points, price})
    curve = [noise.delta(point) for point in points]
    assert curve == sorted(curve, reverse=True)
    assert all(0.0 <= delta <= 1.0 for delta in curve)
    assert noise.delta(price) <= 1e-6
    assert noise.deltas(np.array(points)) == pytest.approx(curve, rel=1e-6, abs=1e-12)
    for delta in (1e-9, 1e-3, 0.4):
        found = noise.epsilon(delta)
        assert noise.delta(found) <= delta
        assert found == 0.0 or noise.delta(found * (1 - 1e-6)) > delta * (1 - 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_more_privacy_is_more_noise(kind):
    variances = [KINDS[kind](price, 3).variance for price in (0.01, 0.1, 0.5, 1.0, 1.0000001, 4.0, 20.0)]
    assert variances == sorted(variances, reverse=True)
    costs = [float(KINDS[kind](price, 3).renyi(Fraction(4))) for price in (0.01, 0.1, 1.0, 4.0)]
    assert costs == sorted(costs)
    if kind != "cubic":  # cubic noise has no proven mu
        costs = [float(KINDS[kind](price, 3).mu_squared) for price in (0.01, 0.1, 1.0, 4.0)]
        assert costs == sorted(costs)


@pytest.mark.parametrize("kind", ["laplace", "truncated", "inflated"])
@pytest.mark.parametrize("price", [0.05, 1.0, 6.0])
def test_two_units_lose_at_most_twice_as_much(kind, price):
    """Group privacy: at twice the sensitivity, the same noise claims at most twice the epsilon."""
    noise = KINDS[kind](price, 5)
    assert replace(noise, step_sensitivity=10).pure_epsilon <= 2 * noise.pure_epsilon * (1 + 1e-12)
    assert replace(noise, step_sensitivity=10).pure_epsilon > noise.pure_epsilon
