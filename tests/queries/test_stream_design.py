"""Running totals over periods: what is measured, how totals are computed from it, and the law of their errors."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import special

import dpframe as dpf
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.queries.prefix_sums import coefficients, weights_of_period, weights_of_total
from dpframe.queries.total import Total
from dpframe.streams.stream_plan import (
    StreamReach,
    exact_sums,
    half_width,
    half_widths,
)
from tests.covering import chance_of_missing

ROWS = np.array([[3, 1, 4, 1, 5, 9, 2, 6]]).T
REACH = StreamReach.of(Total(), dpf.PrivacyUnit(), periods=52, groups=1)
PUBLISHED = {  # periods -> period -> deviation of the running total at mu = 1, by exact algebra
    52: {1: 1.523988, 2: 1.703871, 4: 1.859192, 13: 2.087722, 26: 2.208625, 52: 2.322469},
    104: {1: 1.594998, 2: 1.783262, 4: 1.945820, 13: 2.184999, 26: 2.311536, 52: 2.430684, 104: 2.543867},
}


def everything(periods):
    return tuple(range(1, periods + 1))


def test_the_example_by_hand():
    """x = 3, 1, 4, 1, 5, 9, 2, 6: the coefficients of eight periods have no rounding."""
    expected = [3, 5 / 2, 45 / 8, 69 / 16, 1041 / 128, 3619 / 256, 10961 / 1024, 28773 / 2048]
    found = [exact_sums(ROWS[:t], everything(t), whole=True)[0] / 2**12 for t in range(1, 9)]
    assert found == expected
    totals = [weights_of_total(everything(t)) @ found[:t] for t in range(1, 9)]
    assert totals == pytest.approx([3, 4, 8, 9, 14, 23, 25, 31], abs=1e-12)
    periods = [weights_of_period(everything(t)) @ found[:t] for t in range(1, 9)]
    assert periods == pytest.approx(ROWS[:, 0], abs=1e-12)


@pytest.mark.parametrize("periods", PUBLISHED)
def test_deviations_are_those_of_the_rounded_coefficients(periods):
    reach = StreamReach.of(Total(), dpf.PrivacyUnit(), periods=periods, groups=1)
    spread = reach.steps(2) * reach.grid
    for week, expected in PUBLISHED[periods].items():
        weights = weights_of_total(everything(week))
        assert spread * math.sqrt(float(weights @ weights)) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize("periods", [1, 2, 52, 4096])
def test_coefficients_never_rise(periods):
    """The sensitivity proof for late rows needs this."""
    column = coefficients(periods).tolist()
    assert all(before >= after > 0 for before, after in pairwise(column)) or periods == 1
    assert column[0] == 2**12


@pytest.mark.parametrize("kept", [(1,), (1, 2, 3), (2, 3, 7), (1, 4, 5, 8), (8,), (1, 2, 3, 4, 5, 6, 7, 8)])
@pytest.mark.parametrize("whole", [True, False])
def test_lost_periods_count_with_the_next_one(kept, whole):
    scale = 1 if whole else 2**30
    values, noisy = ROWS * scale - (0 if whole else 5), []
    for place, number in enumerate(kept, start=1):
        step = 2**12 if whole else 1
        noisy.append(exact_sums(values[:number], kept[:place], whole=whole)[0] / step / scale)
        before = kept[place - 2] if place > 1 else 0
        assert weights_of_total(kept[:place]) @ noisy == pytest.approx(ROWS[:number].sum(), abs=1e-6)
        assert weights_of_period(kept[:place]) @ noisy == pytest.approx(ROWS[before:number].sum(), abs=1e-6)


def test_sums_are_exact_integers_rounded_down():
    generator = np.random.default_rng(5)
    totals = generator.integers(-(2**62), 2**62, (40, 3))
    column = [int(entry) for entry in coefficients(40)]
    for number in (1, 2, 17, 40):
        exact = [sum(column[number - 1 - j] * int(totals[j, group]) for j in range(number)) >> 12 for group in range(3)]
        found = exact_sums(totals[:number], everything(number), whole=False)
        assert [int(value) for value in found] == [(value + 2**63) % 2**64 - 2**63 for value in exact]


NOISES = {
    "Laplace": Laplace.of_steps(REACH.column_sum, Fraction(1), REACH.grid),
    "Gaussian": Gaussian.of_mu(Fraction(REACH.steps(2)), 1.0, REACH.grid),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_intervals_hold_as_often_as_they_say(noise, confidence):
    """200,000 sums of 7 draws detect an interval 3% too wide or too narrow; a false alarm has a chance of 1e-6."""
    draws = noise.add_noise(np.zeros(7 * 200_000, dtype=np.int64)).reshape(7, -1) * noise.grid
    for weights in (weights_of_total(everything(7)), weights_of_period(everything(7)), weights_of_total((2, 3, 7))):
        sums = np.abs(weights @ draws[-weights.size :])

        def chance(half, sums=sums):
            outside = int((sums > half).sum())
            few = special.bdtr(outside, sums.size, 1.0 - confidence)
            return min(few, chance_of_missing(outside, sums.size, 1.0 - confidence))

        half = half_width(noise, weights, confidence)
        assert chance(half) > 1e-6 / 12
        assert chance(0.97 * half) < 1e-6
        assert chance(1.03 * half) < 1e-6
        assert np.sqrt((sums**2).mean()) == pytest.approx(np.sqrt(noise.variance * (weights @ weights)), rel=0.015)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_errors_of_a_plan_are_those_of_its_releases(noise):
    totals, periods = half_widths(noise, 52, 0.95)
    for number in (1, 2, 13, 52):
        assert totals[number - 1] == pytest.approx(half_width(noise, weights_of_total(everything(number)), 0.95))
        assert periods[number - 1] == pytest.approx(half_width(noise, weights_of_period(everything(number)), 0.95))


def test_one_draw_has_the_interval_of_its_noise():
    for noise in NOISES.values():
        assert half_width(noise, np.ones(1), 0.95) == pytest.approx(noise.interval(0.95), abs=2 * noise.grid)


def test_166_counts_wrap_as_one_and_sums_hold_below_the_wrap():
    """A row moves y by its coefficient: for counts modulo 2**64, for sums only if no total passes 2**63 steps."""
    column, edge = [int(entry) for entry in coefficients(3)], 2**63 - 1

    def moved(total, row, *, whole):
        totals = np.array([[total], [5], [7]], dtype=np.int64)
        more = totals.copy()
        with np.errstate(over="ignore"):
            more[0] += np.int64(row)
        before, after = (int(exact_sums(each, (1, 2, 3), whole=whole)[0]) for each in (totals, more))
        return (after - before + 2**63) % 2**64 - 2**63

    assert moved(edge, 1, whole=True) == column[2]
    assert moved(2**32 * 2**30 - 2**30, 2**30, whole=False) <= (column[2] * 2**30 >> 12) + 1  # the most a frame holds
    assert abs(moved(edge, 2**30, whole=False)) > 2**40  # the limit in docs/assurance/limits.md
