"""Population intervals cover, and tests of equal groups rarely reject: a share of ``assurance.population_coverage``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from assurance.population_coverage import EPSILONS, FEW, LAWS, STATISTICS, covered, few, lumps, tables
from dpframe.derived.population import summed
from tests.covering import Covered, chance_of_missing

ALARM = 1e-6 / 100  # per test; 1e-6 for all tests here together
LEAST = 0.93  # coverage of intervals
SIZE = 0.055  # rejections by tests at 5%, with an allowance for whole steps


def too_often(found: Covered, rate: float) -> bool:
    """Return whether this many misses have a chance below ALARM if each interval misses at most at this rate."""
    return bool(chance_of_missing(found.misses, found.samples, rate) < ALARM)


@pytest.mark.long
def test_equal_groups_rarely_differ():
    for held, apart in covered("Laplace", 1.0, 300, 400, seed=1):
        assert not too_often(held, 1.0 - LEAST), held
        assert not too_often(apart, 1.0 - LEAST), apart


@pytest.mark.long
def test_intervals_are_not_far_too_wide():
    for held, _ in covered("Gaussian", 10.0, 300, 1_000, seed=2):
        assert special.bdtr(held.misses, held.samples, 0.012) > ALARM or held.misses > 0, held


def test_means_and_sums_cover_where_a_hundred_values_differ():
    for held in lumps(10.0, 1_000, 0.1, 400, seed=5):
        assert not too_often(held, 1.0 - LEAST), held


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", FEW)
def test_sums_of_few_rows_cover(kind, rows):
    """The number of rows varies most here: symmetric intervals held in 64% of samples."""
    found = few(kind, 300.0, rows, 1_000, seed=6)
    assert not too_often(found, 1.0 - LEAST), found


def test_sums_of_both_signs_reach_as_far_as_the_larger_bound():
    """With bounds of -500 and 50, losses reach farther than gains, and a sample of 3 rows often contains no loss."""
    either = (-500.0, 50.0)
    for exact in (True, False):
        below, above = summed(np.zeros(1), np.zeros(1), either, 0.95, exact)
        assert below[0] == above[0]
        assert below[0] == pytest.approx(500.0 * special.gammainccinv(1.0 if exact else 0.5, 0.025))


def test_sums_cover_where_a_sample_holds_hardly_any_of_the_values_that_matter():
    _, found = lumps(10.0, 100, 0.01, 1_000, seed=7)
    assert not too_often(found, 1.0 - LEAST), found


@pytest.mark.slow
@pytest.mark.parametrize("rows", [30, 3_000])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("law", LAWS)
def test_every_statistic_covers(law, epsilon, rows):
    found = list(covered(law, epsilon, rows, 300, seed=3))
    assert len(found) == len(STATISTICS)
    for held, apart in found:
        assert not too_often(held, 1.0 - LEAST), held
        assert not too_often(apart, 1.0 - LEAST), apart


@pytest.mark.slow
@pytest.mark.parametrize("contrasts", [False, True])
def test_independent_columns_rarely_seem_dependent(contrasts):
    found = tables(1.0, 1_000, 60, seed=4, contrasts=contrasts)
    assert not too_often(found, SIZE), found
