"""Denoising with public facts: a prior, a total, a tree of sums, a center."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import Gaussian, Laplace, denoise, noise
from dpframe.denoise import sums
from dpframe.errors import InvalidArgument

LAWS = {"laplace": Laplace(1, 3.0), "gaussian": Gaussian(1.0, 4.0)}
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
SILENT = Laplace.calibrate(sensitivity=1, epsilon=1e300)


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


# James-Stein around a center


def test_any_centre():
    law, values = Gaussian(1.0, 20.0), np.array([130.0, 60.0, 150.0, 120.0])
    around = 100.0 + denoise.james_stein(values - 100.0, law)
    assert denoise.james_stein(values, law, centre=100.0).tolist() == pytest.approx(around.tolist())
    assert denoise.james_stein(values, law, centre=np.full(4, 100.0)).tolist() == pytest.approx(around.tolist())
    rest = values - values.mean()
    factor = 1 - law.variance / np.square(rest).sum()
    assert denoise.james_stein(values, law, centre="mean").tolist() == pytest.approx((115.0 + factor * rest).tolist())
    assert denoise.james_stein(values[:3], law, centre="mean").tolist() == values[:3].tolist()
    with pytest.raises(ValueError, match="'median'"):
        denoise.james_stein(values, law, centre="median")


# A public prior


def test_a_gaussian_prior_is_its_formula():
    law, values = Gaussian(1.0, 4.0), np.array([[-7.0, 0.0], [30.0, 12.0]])
    expected = (9.0 * values + law.variance * 5.0) / (9.0 + law.variance)
    assert denoise.posterior_mean(values, law, prior=(5.0, 3.0)).tolist() == pytest.approx(expected)
    density = lambda total: np.exp(-np.square(total - 5.0) / 18.0)  # noqa: E731
    assert denoise.posterior_mean(values, law, prior=density) == pytest.approx(expected, abs=0.01)


@both
def test_a_density_gives_the_mean_of_the_totals_that_it_allows(law):
    """Totals are drawn from the prior, so the posterior mean of a noisy value is the mean of the totals behind it."""
    generator = np.random.default_rng(3)
    truth = generator.geometric(0.2, 400_000) - 1
    values = noisy(truth, law, 1)
    found = denoise.posterior_mean(values, law, prior=lambda total: np.where(total >= 0, 0.8**total, 0.0))
    for value in (-3.0, 0.0, 4.0, 9.0):
        same = values == value
        error = truth[same].std() / math.sqrt(same.sum())
        assert found[same][0] == pytest.approx(truth[same].mean(), abs=5 * error)
        assert np.ptp(found[same]) == 0.0
    assert np.square(found - truth).mean() < 0.75 * np.square(values - truth).mean()


def test_priors_that_say_nothing_change_nothing():
    law, values = Laplace(1, 3.0), np.array([-5.0, 0.0, 1e6])
    assert denoise.posterior_mean(values, law, prior=np.ones_like) == pytest.approx(values)
    nowhere = denoise.posterior_mean(values, law, prior=lambda total: np.where(total > 1e9, 1.0, 0.0))
    assert nowhere.tolist() == values.tolist()
    assert denoise.posterior_mean(values, SILENT, prior=(0.0, 1.0)).tolist() == values.tolist()
    assert denoise.posterior_mean(np.zeros((0, 2)), law, prior=(0.0, 1.0)).shape == (0, 2)


@pytest.mark.parametrize(
    "prior",
    ["flat", None, (1.0,), (0.0, 0.0), (0.0, math.inf), lambda total: -total - 1e9, lambda total: 1.0, np.log],
)
def test_priors_that_are_none(prior):
    with pytest.raises(ValueError, match="prior must"), np.errstate(all="ignore"):
        denoise.posterior_mean(np.array([1.0, 2.0]), LAWS["laplace"], prior=prior)


# A public total


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 1e6))
def test_values_add_up_to_a_public_total(values, total):
    values = np.array(values)
    plain = denoise.public_total(values, LAWS["laplace"], total=total)
    assert plain.sum() == pytest.approx(total, abs=1e-6)
    assert np.ptp(plain - values) == pytest.approx(0.0, abs=1e-6)
    found = denoise.public_total(values, LAWS["laplace"], total=total, nonnegative=True)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(total, abs=1e-5)
    # projection on a simplex: values that stay above 0 move by one amount, and the others would fall below 0
    moved = values - found
    positive = found > 0.0
    if positive.any():
        level = moved[positive].mean()
        assert moved[positive].tolist() == pytest.approx([level] * int(positive.sum()), abs=1e-5)
        assert (values[~positive] <= level + 1e-5).all()


@both
def test_a_public_total_never_moves_away(law):
    truth = np.array([40, 0, 0, 7, 0, 1, 0, 0, 300, 2])
    for seed in range(30):
        values = noisy(truth, law, seed)
        for nonnegative in (False, True):
            found = denoise.public_total(values, law, total=350, nonnegative=nonnegative)
            assert np.square(found - truth).sum() <= np.square(values - truth).sum() + 1e-9


@pytest.mark.parametrize(("total", "nonnegative"), [(math.nan, False), (math.inf, True), (-1.0, True)])
def test_totals_that_cannot_be(total, nonnegative):
    with pytest.raises(ValueError, match="total must"):
        denoise.public_total(np.zeros(3), LAWS["laplace"], total=total, nonnegative=nonnegative)


# A tree of sums


PARENTS = np.array([-1, 0, 0, 1, 1, 1, 2, 2, 0, 8])  # the last node is an only child


def leaves_of(parents):
    """Return a matrix whose rows mark the leaves under each node."""
    leaves = [node for node in range(parents.size) if node not in parents]
    rows = np.zeros((parents.size, len(leaves)))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            rows[node, column] = 1.0
            node = parents[node]
    return rows


def test_the_fit_is_least_squares():
    laws = [Laplace(1, 1.0), Laplace(1, 5.0), Gaussian(1.0, 2.0)]
    tree = sums.Tree.of(PARENTS)
    values = np.random.default_rng(1).normal(size=PARENTS.size) * 50
    measured = np.empty(PARENTS.size)
    for nodes, law in zip(tree.depths, laws, strict=True):
        measured[nodes] = law.variance
    design = leaves_of(PARENTS)
    precision = np.linalg.inv(design.T @ (design / measured[:, None]))
    expected = design @ precision @ design.T @ (values / measured)
    best, variances, _ = sums._least_squares(values, measured, tree)
    assert best.tolist() == pytest.approx(expected.tolist())
    assert variances.tolist() == pytest.approx(np.diag(design @ precision @ design.T).tolist())
    found = denoise.consistent(values, laws, parents=PARENTS)
    assert found == pytest.approx(expected, abs=0.05)  # up to the rounding to its step


def add_up(found, parents):
    """Return whether every parent is exactly the sum of its children."""
    sums_of = np.bincount(parents[parents >= 0], found[parents >= 0], minlength=parents.size)
    inner = np.unique(parents[parents >= 0])
    return bool((sums_of[inner] == found[inner]).all())


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from(list(LAWS.values())), st.booleans(), st.booleans())
def test_every_parent_is_exactly_the_sum_of_its_children(size, seed, law, nonnegative, whole):
    generator = np.random.default_rng(seed)
    parents = np.array([generator.integers(-1, node) for node in range(size)])
    places = generator.permutation(size)  # parents need not come first
    moved = np.full(size, -1)
    moved[places] = np.where(parents >= 0, places[parents], -1)
    values = generator.normal(size=size) * generator.choice([1.0, 1e3, 1e9])
    found = denoise.consistent(values, law, parents=moved, nonnegative=nonnegative, whole=whole)
    assert add_up(found, moved)
    assert not nonnegative or found.min() >= 0.0
    assert not whole or (found == np.rint(found)).all()
    assert not np.signbit(found[found == 0.0]).any()


def test_what_adds_up_stays():
    truth = leaves_of(PARENTS) @ np.array([3.0, 0.0, 9.0, 1.0, 2.0, 40.0])
    for law in (*LAWS.values(), SILENT):
        assert denoise.consistent(truth, law, parents=PARENTS, nonnegative=True, whole=True).tolist() == truth.tolist()
        assert denoise.consistent(truth, law, parents=PARENTS).tolist() == truth.tolist()


@both
def test_consistency_gains(law):
    """A tree of three depths in which most leaves are empty."""
    generator = np.random.default_rng(4)
    parents = np.concatenate([[-1], np.zeros(20, dtype=int), 1 + np.repeat(np.arange(20), 25)])
    for most in (1, 5, 1000):
        leaves = np.where(generator.random(500) < 0.3, generator.integers(0, most + 1, 500), 0)
        states = leaves.reshape(20, 25).sum(axis=1)
        truth = np.concatenate([[leaves.sum()], states, leaves])
        raw = fit = found = 0.0
        for seed in range(20):
            values = noisy(truth, law, seed)
            raw += np.square(values - truth)
            fit += np.square(denoise.consistent(values, law, parents=parents) - truth)
            found += np.square(denoise.consistent(values, law, parents=parents, nonnegative=True, whole=True) - truth)
        for depth in (slice(0, 1), slice(1, 21), slice(21, None)):
            assert fit[depth].sum() < 1.1 * raw[depth].sum()
        assert fit[1:].sum() < raw[1:].sum()
        assert found[21:].sum() < 0.75 * raw[21:].sum()


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ([1, 0], "its own ancestors"),
        ([0], "its own ancestors"),
        ([-1, 2], "from 0 to 1"),
        ([-2, 0], "from 0 to 1"),
        ([-1.0, 0.0], "whole numbers"),
        ([[-1, 0]], "one for each node"),
        ([-1, 0, 0], "shape"),
    ],
)
def test_parents_that_are_no_tree(parents, words):
    with pytest.raises(ValueError, match=words):
        denoise.consistent(np.zeros(2), LAWS["laplace"], parents=np.array(parents))


def test_a_law_for_each_depth():
    with pytest.raises(ValueError, match="one law for each of the 2 depths, not 3"):
        denoise.consistent(np.zeros(2), [LAWS["laplace"]] * 3, parents=np.array([-1, 0]))


@pytest.mark.slow
def test_a_million_nodes():
    parents = np.concatenate([[-1], np.zeros(1000, dtype=int), 1 + np.arange(1_000_000) % 1000])
    values = noisy(np.arange(parents.size) % 7, LAWS["gaussian"], 1)
    assert add_up(denoise.consistent(values, LAWS["gaussian"], parents=parents, nonnegative=True, whole=True), parents)


# Few cells: James-Stein without harm


@pytest.mark.slow
@both
@pytest.mark.parametrize("size", [3, 5, 8])
def test_auto_does_no_harm_to_few_cells(law, size):
    """To require a gain of 2% would do harm: it selects values that noise made small. Worst near 4 deviations."""
    truth = np.zeros(size)
    truth[0] = np.rint(4.0 * math.sqrt(law.variance))
    draws = noisy(np.tile(truth, (800, 1)), law, 3)
    found = sum(np.square(denoise.auto(values, law) - truth).sum() for values in draws)
    assert found <= 1.02 * np.square(draws - truth).sum()


@both
def test_values_that_are_alike_are_moved_toward_their_mean(law):
    truth = np.full(12, 500)
    draws = noisy(np.tile(truth, (60, 1)), law, 4)
    found = sum(np.square(denoise.auto(values, law) - truth).sum() for values in draws)
    assert found < 0.5 * np.square(draws - truth).sum()


@pytest.mark.parametrize("denoiser", [denoise.soft_threshold, denoise.hard_threshold])
@pytest.mark.parametrize("threshold", [-1, float("nan"), float("inf"), "2", [1.0]])
def test_thresholds_are_finite_and_not_below_0(denoiser, threshold):
    law = Laplace.calibrate(sensitivity=1, epsilon=1)
    with pytest.raises(InvalidArgument, match="threshold must be a finite number of at least 0"):
        denoiser(np.array([-3.0, 5.0]), law, threshold=threshold)
    assert denoiser(np.array([-3.0, 5.0]), law, threshold=np.float32(0)).tolist() == [-3.0, 5.0]
