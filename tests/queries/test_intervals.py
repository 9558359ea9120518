"""The intervals of every statistic cover the truth, also for few values and at the edges of the bounds.

All checks of this file together raise a false alarm with a probability of at most 1e-6: a check fails if its number of
misses has a probability below 1e-6 / CHECKS when intervals cover 95%.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from covering import BOUNDS, NARROWER, PEOPLE, PRICES, ROWS, VALUES, Case, chance_of_missing, covered, missed, too_many
from scipy import special

import dpframe as dpf
from dpframe.queries.quotients import largest_z

CHECKS = 4_000  # an upper bound on the number of checks in this file
ALARM = 1e-6 / CHECKS
GROUPS = {0: 2_000, 1: 2_000, 3: 2_000, 10: 2_000, 100: 1_000, 1_000: 200}
CASES = list(product(("Laplace", "Gaussian"), (0.1, 1.0, 10.0), (ROWS, PEOPLE)))


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "epsilon", "unit"), CASES, ids=[f"{a}-{b}-{c and 'people'}" for a, b, c in CASES])
def test_111_intervals_cover_the_truth(noise, epsilon, unit):
    """One call asks for counts of rows, counts of values, sums and means."""
    for size, values in product(GROUPS, VALUES):
        if size == 0 and values != "middle":
            continue  # without values, each placement is the same case
        for found in covered(Case(noise, epsilon, size, values, GROUPS[size], unit)):
            assert not too_many(found, ALARM), (found, found.rate)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "values"), [(1, "upper"), (10, "mixed")])
def test_111_intervals_of_another_shape_cover_the_truth(size, values):
    """Such noise is refused for units with several rows; it is slow to calibrate, so fewer cases are tried."""
    for found in covered(Case("p = 3", 1.0, size, values, 4_000)):
        assert not too_many(found, ALARM), (found, found.rate)


READ = {
    "mean": (dpf.mean("x", bounds=(0, 100)), (4.0, 12.0), 300, 8.0),
    "variance": (dpf.variance("x", bounds=(0, 100), ddof=0), (0.5, 4.5), 20, 4.0),
    "std": (dpf.std("x", bounds=(0, 100), ddof=0), (0.5, 4.5), 20, 2.0),
}


@pytest.mark.parametrize("asked", READ)
def test_111_lighter_tails_of_one_draw_are_not_those_of_a_sum(asked):
    """At p = 16, 95% of draws lie within 1.66 deviations; with this factor, intervals of quotients covered 90%."""
    statistic, values, pairs, truth = READ[asked]
    groups = 1_500
    frame = pl.DataFrame({"x": list(values) * (pairs * groups), "g": np.repeat(np.arange(groups), 2 * pairs)})
    price = {"epsilon": 3.0, "delta": 1e-5, "mechanism": dpf.generalized_gaussian(p=16), "denoise": None}
    ledger = dpf.Ledger(epsilon=9, delta=1e-4, accounting="basic", checks=False)
    found = frame.dp.group_by("g", keys=range(groups)).agg(y=statistic, ledger=ledger, **price)
    misses = int((np.abs(found["y"].to_numpy() - truth) > found["y_error"].to_numpy()).sum())
    assert chance_of_missing(misses, groups, 0.05) > ALARM, misses / groups


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_no_sum_of_noise_is_narrower_than_normal(confidence):
    wide = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    light = dpf.GeneralizedGaussian.calibrate(p=16, sensitivity=1, epsilon=1.0, delta=1e-5)
    normal = special.ndtri((1.0 + confidence) / 2.0)
    assert light.interval(confidence) < 0.99 * normal * light.variance**0.5 or confidence == 0.5
    assert largest_z((light,), confidence) >= normal * (1.0 - 1e-12)
    assert largest_z((light, wide), 0.95) == pytest.approx(wide.interval(0.95) / wide.variance**0.5, rel=1e-12)
    assert largest_z((), confidence) == 0.0


def test_111_the_mean_that_was_found():
    """The found case: few values at a bound, and so much noise that the mean is often at the other bound."""
    for found in covered(Case("Gaussian", 0.1, 3, "upper", 20_000)):
        assert not too_many(found, ALARM), (found, found.rate)


@pytest.mark.slow
@pytest.mark.parametrize("noise", PRICES)
def test_intervals_that_are_a_little_too_narrow_are_seen(noise):
    """2**20 bins without rows, which are as noisy as any, suffice to detect an interval that is 2% too narrow."""
    frame = pl.DataFrame({"x": [0.0]}, schema={"x": pl.Float64}).head(0)
    price = {"epsilon": 0.01, "ledger": dpf.Ledger(epsilon=1, delta=1e-5, accounting="basic"), **PRICES[noise]}
    found = frame.dp.histogram("x", bins=2**20, range=(0, 1), denoise=None, **price)
    assert not too_many(missed(noise, "count", found, 0.0), ALARM)
    assert too_many(missed(noise, "count", found, 0.0, NARROWER), ALARM)


@pytest.mark.parametrize("epsilon", [0.03, 0.1, 0.5, 1.0, 3.0])
def test_the_interval_of_a_count_is_that_of_the_law(epsilon):
    """The half-width is the least whole number that the noise exceeds at most 5% of the time, by the exact law."""
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    with dpf.Ledger(epsilon=100, delta=1e-3, accounting="basic"):
        pure = frame.dp.count(epsilon=epsilon)
        normal = frame.dp.count(epsilon=epsilon, delta=1e-6, mechanism="gaussian")
    rate = math.exp(-1.0 / pure.dp.provenance["statistics"][0]["scale"])
    sigma = normal.dp.provenance["statistics"][0]["scale"]

    def beyond_pure(steps):
        return 2.0 * rate ** (steps + 1) / (1.0 + rate)

    def beyond_normal(steps):
        return 2.0 * special.ndtr(-(steps + 0.5) / sigma)

    for found, beyond in ((pure, beyond_pure), (normal, beyond_normal)):
        steps = found["count_error"][0]
        assert steps == int(steps)
        assert beyond(steps) <= 0.05 < beyond(steps - 1) * (1 + 1e-9)


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
def test_subtotals_are_covered_at_each_level(noise):
    """Each level has noise of its own, and its intervals are around the noisy values."""
    groups = 1_500
    frame = pl.DataFrame({"a": np.repeat(np.arange(groups), 4), "b": np.tile(["x", "y"], 2 * groups)})
    found = frame.dp.group_by("a", "b", keys={"a": range(groups), "b": ["x", "y"]}).count(
        rollup=True, epsilon=0.3, ledger=dpf.Ledger(epsilon=1, delta=1e-5), **PRICES[noise]
    )
    starts = np.cumsum([0, *(level["rows"] for level in found.dp.provenance["levels"])])
    for start, stop, truth in zip(starts[:-1], starts[1:], (2, 4, 4 * groups), strict=True):
        level = found[int(start) : int(stop)]
        assert not too_many(missed(noise, "count", level, truth, noisy="_noisy"), ALARM)


def others_by_weight(options, chance):
    """Return the probability that the exponential mechanism selects one of the other options."""
    return (options - 1) * chance / (1 + (options - 1) * chance)


def others_by_permutation(options, chance):
    """Return this probability for permute-and-flip: the best is selected if no option before it was."""
    return 1 - math.fsum((1 - chance) ** before for before in range(options)) / options


@pytest.mark.parametrize(("delta", "others"), [(0, others_by_permutation), (1e-6, others_by_weight)])
@pytest.mark.parametrize(("epsilon", "options"), list(product([0.1, 1.0], [2, 5, 100])))
def test_a_selection_is_at_most_so_far_below_the_largest(epsilon, options, delta, others):
    """The exact law, for the worst counts: one option at the top, all others just beyond the stated distance."""
    frame = pl.DataFrame({"ward": ["A"]})
    keys = [str(place) for place in range(options)]
    ledger = dpf.Ledger(epsilon=1, delta=delta)
    plan = frame.dp.preview.mode("ward", categories=keys, epsilon=epsilon, ledger=ledger)
    distance, scale = plan.error["ward_shortfall"], plan.parts[0].mechanism.scale
    for below in (distance + 1, distance + 2, distance + 10):
        assert others(options, math.exp(-below / scale)) <= 0.05
    if distance:
        assert others(options, math.exp(-distance / scale)) > 0.05


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
@pytest.mark.parametrize("size", [3, 1, 10, 100])
def test_the_expected_error_of_a_mean_is_not_too_small(noise, size):
    """The error that a plan states for `size` values covers 95% of answers for values in the middle of the bounds."""
    case = Case(noise, 1.0, size, "middle", 2_000)
    found = case.released().with_columns(average_error=pl.lit(case.expected()["average"]))
    assert not too_many(missed(str(case), "average", found, 40.0), ALARM)


def test_the_expected_error_of_a_mean_grows_to_the_whole_range():
    frame = pl.DataFrame({"x": [0.0]})
    least = frame.dp.preview.mean("x", bounds=BOUNDS, epsilon=0.1, size=1, ledger=dpf.Ledger(epsilon=1))
    assert least.error["x_mean"] == BOUNDS[1] - BOUNDS[0]
