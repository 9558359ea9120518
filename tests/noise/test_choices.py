"""Draws from a bounded range have exactly their laws: truncated noise, and a choice among weighted indices."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special

from dpframe import noise
from dpframe.noise import random_bits, samplers

FALSE_ALARM = 1e-9


def cell(p, scale, k):
    """Return the mass of round(Z) = k, up to a constant."""
    with mpmath.workdps(40):
        b, shape = mpmath.mpf(scale), mpmath.mpf(p)
        below = lambda x: mpmath.sign(x) * mpmath.gammainc(1 / shape, 0, (abs(mpmath.mpf(x)) / b) ** shape)  # noqa: E731
        return below(k + 0.5) - below(k - 0.5)


def truncated_law(p, scale, lowest, span):
    masses = np.array([float(cell(p, scale, k)) for k in range(lowest, lowest + span + 1)])
    return masses / masses.sum()


def p_value(found, law):
    expected = law * found.sum()
    large = expected >= 10.0
    total = ((found - expected)[large] ** 2 / expected[large]).sum()
    return special.chdtrc(max(1, large.sum() - 1), total)


RANGES = [  # both ways of drawing: ranges wider and narrower than the scale
    (1.0, 3.0, -2, 9),
    (1.0, 8.5, -4, 6),
    (2.0, 2.0, 0, 11),
    (2.0, 30.0, -3, 12),
    (3.0, 2.5, -6, 6),
    (3.0, 400.0, -9, 9),
    (16.0, 1.01, 0, 1),
]


@pytest.mark.parametrize(("p", "scale", "lowest", "span"), RANGES)
def test_truncated_draws_have_exactly_their_law(p, scale, lowest, span):
    size = 100_000
    drawn = noise.truncated_generalized_gaussian(p, scale, np.full(size, lowest), span)
    assert lowest <= drawn.min()
    assert drawn.max() <= lowest + span
    found = np.bincount(drawn - lowest, minlength=span + 1)
    assert p_value(found, truncated_law(p, scale, lowest, span)) > FALSE_ALARM
    for factor in (0.9, 1.1):  # power: a scale that is 10% off is detected, if the range shows it
        if span > scale:
            assert p_value(found, truncated_law(p, scale * factor, lowest, span)) < FALSE_ALARM


def test_each_place_has_its_own_range():
    lowest = -np.arange(7, dtype=np.int64)
    for scale in (6.0, 50.0):
        drawn = np.array([noise.truncated_generalized_gaussian(2.0, scale, lowest, 6) for _ in range(2000)])
        assert (drawn.min(axis=0) == lowest).all()
        assert (drawn.max(axis=0) == lowest + 6).all()


def test_undecided_truncated_draws_are_settled_exactly(monkeypatch):
    """If the error bound leaves every draw undecided, the law must be the same."""
    monkeypatch.setattr(samplers, "RELATIVE_ERROR", 1e9)
    drawn = noise.truncated_generalized_gaussian(2.0, 5.0, np.full(3000, -1), 3)
    assert p_value(np.bincount(drawn + 1, minlength=4), truncated_law(2.0, 5.0, -1, 3)) > FALSE_ALARM


def choose(losses, draws):
    exact = [Fraction(loss) for loss in losses]
    floats = np.array([float(loss) for loss in exact])
    return np.bincount(
        [noise.exponential_choice(floats, exact.__getitem__) for _ in range(draws)], minlength=len(losses)
    )


@pytest.mark.slow
@pytest.mark.parametrize("losses", [[0, 0, 0], [0.5, 0, 3, 1.25], [Fraction(1, 3), 0, 1000, 10**300]])
def test_choices_have_exactly_their_law(losses):
    law = np.exp(-np.array([float(loss) for loss in losses]))
    found = choose(losses, 20_000)
    assert p_value(found, law / law.sum()) > FALSE_ALARM
    assert found[law == 0.0].sum() == 0
    if losses[0] != losses[2]:  # power: losses that are half as large again are detected
        law **= 1.5
        assert p_value(found, law / law.sum()) < FALSE_ALARM


def test_undecided_choices_are_settled_exactly(monkeypatch):
    plain = samplers.accepted
    monkeypatch.setattr(samplers, "accepted", lambda chance, error, exact: plain(chance, error + 2.0, exact))
    law = np.exp(-np.array([0.0, 1.0, 2.0]))
    assert p_value(choose([0, 1, 2], 500), law / law.sum()) > FALSE_ALARM


def test_uniform_draws_are_uniform():
    for most in (0, 1, 4, 99):
        found = np.bincount(random_bits.uniform(most, 50_000), minlength=most + 1)
        assert found.size == most + 1
        assert p_value(found, np.full(most + 1, 1 / (most + 1))) > FALSE_ALARM
    wide = random_bits.uniform(2**52 + 5, 10_000)
    assert abs(wide.mean() / 2**51 - 1) < 0.05
