"""Intervals of quotients of noisy whole numbers, checked on all draws of noise: nothing is left to chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

from dpframe.derived.linear import Block, Linear, Quotient, ends
from dpframe.derived.sums_of_noise import Law, half_width
from dpframe.queries.quotients import quotient_ends

RARE = 1e-6  # pairs of draws with a smaller chance count as misses
FAR = 30  # in steps; no draw beyond it is as likely in any of these cases

# shape; noise scales of numerator and denominator, in steps; their true values
SETTINGS = [
    (1.0, 1.0 / 1.85, 1.0 / 3.7, 40, 20),
    (1.0, 0.54, 0.54, 20, 20),
    (1.0, 1.0, 1.0, 100, 50),
    (1.0, 0.48, 0.96, 20, 60),
    (1.0, 1.5, 0.6, 50, 50),
    (2.0, 0.75, 0.375, 40, 20),
    (2.0, 0.5, 0.5, 50, 50),
    (2.0, 1.2, 1.2, 150, 50),
    (2.0, 0.4, 0.8, 30, 60),
    (2.0, 2.0, 0.9, 100, 50),
]


def draws(law):
    """Return all steps of a draw and their probabilities."""
    tail = law.tail(np.arange(1.0, FAR + 2.0))
    masses = tail[:-1] - tail[1:]
    return np.arange(-FAR, FAR + 1), np.concatenate([masses[::-1], [1.0 - 2.0 * tail[0]], masses])


def forms(top, bottom, laws):
    """Return two numbers in each row, with independent noise."""
    each = csr_array(eye_array(top.size))
    blocks = [Block((name,), law, top.size) for name, law in zip("ab", laws, strict=True)]
    pairs = zip((top, bottom), blocks, strict=True)
    return [Linear(values.astype(float), {block.key: (block, each)}) for values, block in pairs]


def held(setting, confidence, of_total):
    """Return the chance that the interval contains the true top / bottom, or top / (top + bottom)."""
    p, first, second, top, bottom = setting
    laws = Law(p, first, 1.0), Law(p, second, 1.0)
    (above, of_above), (below, of_below) = (draws(law) for law in laws)
    chances = np.outer(of_above, of_below)
    one, other = np.nonzero(chances >= RARE)
    a, b = forms(top + above[one], bottom + below[other], laws)
    low, high = ends(Quotient(a, a.sum_with(b) if of_total else b), confidence)
    truth = top / (bottom + top * of_total)
    return float(chances[one, other][(low <= truth) & (truth <= high)].sum())


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("of_total", [False, True], ids=["ratio", "share"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_noise_of_a_few_steps_is_covered(setting, of_total, confidence):
    assert held(setting, confidence, of_total) >= confidence


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_noise_of_many_steps_has_the_interval_of_normal_noise(confidence):
    top, bottom = np.array([900.0, 2_000.0, -100.0, 5_000.0]), np.array([1_000.0, 1_200.0, 900.0, -1_500.0])
    law = Law(2.0, 100.0, 1.0)
    low, high = ends(Quotient(*forms(top, bottom, (law, law))), confidence)
    square = {0.5: 0.6744898, 0.95: 1.9599640}[confidence] ** 2 * law.variance
    normal = quotient_ends(top, bottom, (square, 0.0, square))
    assert (low <= normal[0]).all()
    assert (high >= normal[1]).all()
    assert (high - low <= 1.025 * (normal[1] - normal[0])).all()


def test_a_quotient_and_the_difference_that_says_the_same_agree():
    laws = Law(1.0, 1.0 / 1.85, 1.0), Law(1.0, 1.0 / 3.7, 1.0)
    a, b = forms(np.array([40, 41, 40, 39]), np.array([21, 20, 20, 20]), laws)
    of_difference = ends(a.sum_with(b.times(2.0), -1.0), 0.95)
    of_quotient = ends(Quotient(a, b), 0.95)
    inside = (of_difference[0] <= 0.0) & (of_difference[1] >= 0.0)
    assert inside.any()
    assert ((of_quotient[0] <= 2.0) & (of_quotient[1] >= 2.0))[inside].all()


@pytest.mark.parametrize("number", [0.0, 7.0, -1e15 / 3.0, 3.67e17, 1e300])
def test_a_number_by_one_with_noise_is_divided_by_the_ends_of_its_interval(number):
    """This holds for any size of number: near an infinite slope, angles have no digits left."""
    law = Law(1.0, 1.0, 1.0)
    b, _ = forms(np.array([100, -20, 2, 0]), np.array([1, 1, 1, 1]), (law, law))
    low, high = ends(b, 0.95)
    found = ends(Quotient(Linear(np.full(4, number), {}), b), 0.95)
    for row in (0, 1):
        assert [end[row] for end in found] == sorted((number / low[row], number / high[row]))
    for row in (2, 3):
        assert [end[row] for end in found] == [-np.inf, np.inf]


def test_a_quotient_that_is_too_steep_for_angles_has_no_ends():
    top, bottom = Law(2.0, 1e-3, 1e-6), Law(2.0, 100.0, 1.0)
    a, b = forms(np.array([1e15, 1e3]), np.array([5_000.0, 5_000.0]), (top, bottom))
    low, high = ends(Quotient(a, b), 0.95)
    assert [low[0], high[0]] == [-np.inf, np.inf]
    half = (ends(b, 0.95)[1] - 5_000.0)[1]
    assert np.allclose([low[1], high[1]], [1e3 / (5_000.0 + half), 1e3 / (5_000.0 - half)], rtol=0.01)


def test_a_divisor_without_noise_divides_the_interval():
    law = Law(1.0, 1.0, 1.0)
    a, _ = forms(np.array([40, 40, 40]), np.array([1, 1, 1]), (law, law))
    low, high = ends(a, 0.95)
    of_quotient = ends(Quotient(a, Linear(np.array([20.0, -4.0, 0.0]), {})), 0.95)
    assert of_quotient[0].tolist() == [low[0] / 20.0, high[1] / -4.0, -np.inf]
    assert of_quotient[1].tolist() == [high[0] / 20.0, low[1] / -4.0, np.inf]


@pytest.mark.parametrize("weights", [(1.0, 0.377), (1.0, 1.0), (1.0, 250.3)], ids=str)
@pytest.mark.parametrize("epsilon", [4.0, 7.0, 9.0])
@pytest.mark.parametrize("confidence", [0.95, 0.999, 0.9999, 1.0 - 1e-6])
def test_noise_that_is_seldom_other_than_0_is_covered(weights, epsilon, confidence):
    """The standard deviation is far below one step, so 16 deviations may be less than one step."""
    law = Law(1.0, 1.0 / epsilon, 1.0)
    steps, chances = draws(law)
    sums = np.abs(weights[0] * steps[:, None] + weights[1] * steps[None, :])
    half = half_width(tuple((law, weight, 1) for weight in sorted(weights)), 0.0, confidence)
    assert np.outer(chances, chances)[sums <= half * (1.0 + 1e-9)].sum() >= confidence - 1e-12
    shorter = np.outer(chances, chances)[sums <= half - sum(weights) * 0.01 - 1e-3].sum()
    assert half < 0.02 * sum(weights) or shorter < confidence  # and it is not longer than needed


def test_many_draws_that_are_all_but_surely_0_have_an_interval():
    """Each step of a draw has a chance of 2e-9; rounding errors must not keep the search from ending."""
    law = Law(1.0, 1.0 / 20.0, 1.0)
    for draws_of_law in (1_000, 10**6):
        assert half_width(((law, 1.0, draws_of_law), (law, 0.377, 1)), 0.0, 0.95) < 1.0
