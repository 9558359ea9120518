"""Empirical Bayes, wavelets, thresholds chosen by risk, isotonic and whole values, and the choice among them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import Gaussian, GeneralizedGaussian, Laplace, denoise, noise
from dpframe.denoise import DENOISERS, bayes, choose, estimators, wavelets

LAWS = {"laplace": Laplace(1, 3.0), "gaussian": Gaussian(1.0, 4.0)}
EVERY = {
    "empirical-bayes": denoise.empirical_bayes,
    "non-negative empirical-bayes": lambda values, law: denoise.empirical_bayes(values, law, nonnegative=True),
    "hard-threshold": denoise.hard_threshold,
    "sure-threshold": denoise.sure_threshold,
    "haar": lambda values, law: denoise.haar(values, law, order=True),
    "isotonic": denoise.isotonic,
    "rounded": denoise.rounded,
    "auto": lambda values, law: denoise.auto(values, law, order=True),
}
every = pytest.mark.parametrize("estimator", EVERY.values(), ids=EVERY.keys())
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


def relative(estimator, truth, law, rounds=6):
    """Return the squared error relative to that of the noisy values."""
    draws = [noisy(truth, law, seed) for seed in range(rounds)]
    found = sum(np.square(estimator(values, law) - truth).sum() for values in draws)
    return found / sum(np.square(values - truth).sum() for values in draws)


def sparse(size):
    generator = np.random.default_rng(3)
    return np.where(generator.random(size) < 0.05, generator.integers(1, 400, size), 0)


# Shapes and edges


@every
@both
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (7,), (33,), (129,), (1, 1), (0, 3), (1, 40), (9, 13), (3, 5, 7)])
def test_shapes_are_kept_and_nothing_becomes_nan(estimator, law, shape):
    values = noisy(np.arange(math.prod(shape)).reshape(shape) % 50, law, 1)
    before = values.copy()
    result = estimator(values, law)
    assert result.shape == shape
    assert result.dtype == np.float64
    assert np.isfinite(result).all()
    assert (values == before).all()
    assert not np.signbit(result[result == 0.0]).any()


@every
@both
def test_same_values_same_result(estimator, law):
    values = noisy(sparse(500), law, 2)
    assert estimator(values, law).tolist() == estimator(values, law).tolist()


@pytest.mark.parametrize("name", [name for name in EVERY if name != "rounded"])
@pytest.mark.parametrize("factor", [2.0**-20, 2.0**30])
def test_units_do_not_matter(name, factor):
    """A grid scaled by a factor scales the results by the same factor."""
    for law, scaled in ((Laplace(1, 3.0), Laplace(1, 3.0, factor)), (Gaussian(1.0, 4.0), Gaussian(1.0, 4.0, factor))):
        values = noisy(sparse(300), law, 4)
        expected = EVERY[name](values, law)
        assert (EVERY[name](values * factor, scaled) / factor).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@every
@both
def test_equal_values_stay(estimator, law):
    for value in (0.0, 5_000.0):
        values = np.full(100, value)
        assert np.abs(estimator(values, law) - values).max() <= 1.5 * math.sqrt(law.variance * 2 * math.log(100))
    assert denoise.empirical_bayes(np.full(100, 5_000.0), law).tolist() == pytest.approx([5_000.0] * 100)


@every
def test_without_noise_nothing_changes(estimator):
    silent = Laplace.calibrate(sensitivity=1, epsilon=1e300)
    values = np.sort(noisy(sparse(64), LAWS["laplace"], 1)).reshape(8, 8)
    assert estimator(values, silent).tolist() == values.tolist()


@every
@both
def test_values_far_from_anything_real(estimator, law):
    values = np.array([1e30, -1e25, 3.0, 0.0, 1e17, 2.0**52] * 20)
    assert np.isfinite(estimator(values, law)).all()


@pytest.mark.slow
@every
def test_a_million_cells(estimator):
    law = Gaussian(1.0, 30.0, 2.0**-20)
    values = np.resize(noisy(sparse(10_000), Gaussian(1.0, 30.0), 1), 1_000_000) * 2.0**-20
    assert np.isfinite(estimator(values, law)).all()


# Properties of each denoiser


def test_formulas():
    law = Laplace(1, 1.0)
    assert denoise.hard_threshold([-2.0, 1.9, 5.0], law, threshold=2.0).tolist() == [-2.0, 0.0, 5.0]
    assert denoise.rounded([-0.4, 1.5, 2.5, 3.2], law).tolist() == [0.0, 2.0, 2.0, 3.0]
    assert denoise.isotonic([[1.0, 3.0, 2.0], [3.0, 2.0, 1.0]], law).tolist() == [[1.0, 2.5, 2.5], [2.0] * 3]
    assert denoise.isotonic([1.0, 3.0, 2.0], law, increasing=False).tolist() == [2.0] * 3
    assert denoise.isotonic(4.0, law).tolist() == 4.0


@both
def test_isotonic_never_moves_away_from_what_is_in_order(law):
    truth = np.cumsum(sparse(200) // 50)
    for seed in range(20):
        values = noisy(truth, law, seed)
        assert np.square(denoise.isotonic(values, law) - truth).sum() <= np.square(values - truth).sum()


@both
def test_nonnegative_is_not_negative(law):
    values = noisy(sparse(400), law, 3)
    assert denoise.empirical_bayes(values, law, nonnegative=True).min() >= 0.0
    assert denoise.auto(values, law, nonnegative=True).min() >= 0.0
    assert denoise.empirical_bayes(-1000.0 - values, law, nonnegative=True).tolist() == [0.0] * 400


def test_empirical_bayes_leaves_what_the_noise_left():
    """At a large epsilon, the noise is nearly always exactly 0, so the values must stay."""
    for law in (Laplace(1, 0.08), Gaussian(1.0, 0.12)):
        values = np.random.default_rng(1).integers(0, 500, 2000).astype(np.float64)
        assert np.abs(denoise.empirical_bayes(values, law) - values).max() < 0.02


def test_a_total_that_is_alone_stays():
    law = Laplace(1, 5.0)
    values = np.append(noisy(np.zeros(999), law, 1), [300.0, 100_000.0])
    assert denoise.empirical_bayes(values, law)[-2:].tolist() == pytest.approx([300.0, 100_000.0], abs=2.0)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (64,), (1, 5), (7, 3), (1, 1, 9), (5, 6, 7)])
def test_wavelets_are_orthonormal_and_return(shape):
    values = np.random.default_rng(2).normal(size=shape)
    weights = {axis: np.ones(length) for axis, length in enumerate(shape)}
    smooth, levels, energy, count = values, [], 0.0, 0
    while max(smooth.shape) >= 2:
        smooth, details, halved = wavelets._halved(smooth, weights)
        levels.append((details, weights))
        weights = halved
        energy += sum(np.square(band).sum() for band in details.values())
        count += sum(band.size for band in details.values())
    assert energy + np.square(smooth).sum() == pytest.approx(np.square(values).sum())
    assert count + smooth.size == values.size
    for details, finer in reversed(levels):
        smooth = wavelets._doubled(smooth, details, finer)
    assert smooth.ravel().tolist() == pytest.approx(values.ravel().tolist())


def test_a_line_must_be_said_to_be_one():
    with pytest.raises(ValueError, match="order=True"):
        denoise.haar(np.arange(50.0), LAWS["laplace"])
    assert wavelets.ordered_axes(np.zeros(3), None) == ()
    assert wavelets.ordered_axes(np.zeros(3), True) == (0,)
    assert wavelets.ordered_axes(np.zeros((3, 3)), None) == (0, 1)
    assert wavelets.ordered_axes(np.zeros((3, 3)), False) == ()
    assert wavelets.ordered_axes(np.zeros((3, 3)), (1,)) == (1,)
    with pytest.raises(ValueError, match="from 0 to 0, not"):
        denoise.haar(np.zeros(9), LAWS["laplace"], order=(1,))


@pytest.mark.parametrize("width", [1, 3, 9])
def test_shares_are_the_law(width):
    for law in (
        Laplace(1, 2.5),
        Laplace(1, 0.1),
        Gaussian(1.0, 3.0),
        Gaussian(1.0, 0.3),
        *(GeneralizedGaussian(1, 1.5, p=p) for p in (1.0, 2.0, 4.0)),
    ):
        found = estimators.shares(law, width, 400)
        places = np.arange(-400, 401) * width
        assert found.sum() == pytest.approx(1.0)
        assert found @ places**2 == pytest.approx(law.variance, rel=0.01, abs=1.1 * width**2)
        if width == 1:
            assert found @ places**2 == pytest.approx(law.variance, rel=0.01)


# Risk


TRUTH = np.concatenate([np.zeros(150), np.arange(60), np.full(40, 200), np.arange(50) * 500])


def bias(estimates, losses):
    differences = np.array(estimates) - np.array(losses)
    return differences.mean(), differences.std() / math.sqrt(differences.size)


@pytest.mark.parametrize("law", [Laplace(1, 1.0), Laplace(1, 10.0), Gaussian(1.0, 1.5), Gaussian(1.0, 10.0)], ids=str)
def test_the_risk_of_a_fitted_prior_on_other_cells_is_estimated_without_bias(law):
    estimates, losses = [], []
    prior = bayes.Bins.of(noisy(TRUTH, law, 99), law)
    taken = prior.shift(prior.counts.sum(axis=0), nonnegative=False)
    for seed in range(150):
        values = noisy(TRUTH, law, seed)
        places = values / law.grid / prior.width
        estimates.append(np.interp(places, prior.places, prior.risks(taken), left=1, right=1).sum() * law.variance)
        losses.append(np.square(prior.shifted(values, taken) - TRUTH).sum())
    mean, error = bias(estimates, losses)
    assert abs(mean) < 5 * error + 0.02 * law.variance * TRUTH.size


@pytest.mark.slow
@both
def test_the_cross_fitted_risk_is_not_too_small(law):
    estimates, losses = [], []
    for seed in range(60):
        values = noisy(TRUTH, law, seed)
        estimates.append(bayes.Mixture.of(values, law, nonnegative=False).risk[0])
        losses.append(np.square(denoise.empirical_bayes(values, law) - TRUTH).sum())
    mean, error = bias(estimates, losses)
    assert mean > -5 * error
    assert mean < 0.25 * law.variance * TRUTH.size + 5 * error


@pytest.mark.slow
@both
@pytest.mark.parametrize("shape", [(300,), (15, 20)])
def test_the_risk_of_wavelets_is_at_most_the_estimate(law, shape):
    """The choice of thresholds by the estimate makes it a little too small; the mean of shifts makes it too large."""
    truth = TRUTH.reshape(shape)
    draws = [noisy(truth, law, seed) for seed in range(60)]
    found = [wavelets.shrunk(values, law, tuple(range(len(shape)))) for values in draws]
    mean, error = bias([one.risk for one in found], [np.square(one.values - truth).sum() for one in found])
    assert mean > -5 * error - 0.02 * law.variance * truth.size


@both
def test_the_best_threshold_has_the_least_risk(law):
    values = noisy(TRUTH, law, 1)
    best = estimators.best_threshold(values, law)
    gains = [estimators._gains(values, law, level, 1.0).sum() for level in np.linspace(0.1, 15.0, 8)]
    assert best.risk - values.size * law.variance <= min(gains) * 0.99


# Gains, and no harm


@pytest.mark.slow
@both
def test_gains_on_sparse_and_clustered_totals(law):
    empty, blocks = sparse(2000), np.repeat([0, 40, 10, 300], 256)
    assert relative(denoise.empirical_bayes, empty, law) < 0.35
    assert relative(denoise.sure_threshold, empty, law) < 0.5
    assert relative(denoise.auto, empty, law) < 0.35
    assert relative(denoise.empirical_bayes, blocks, law) < 0.4
    assert relative(EVERY["haar"], blocks, law) < 0.2
    assert relative(EVERY["auto"], blocks, law) < 0.2
    assert relative(denoise.auto, blocks.reshape(32, 32), law) < 0.3


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("scale", [0.6, 20.0])
def test_noise_of_any_shape(p, scale):
    law = GeneralizedGaussian(1, scale, p=p)
    for estimator in (denoise.empirical_bayes, denoise.auto):
        assert relative(estimator, sparse(2000), law) < 0.5
    assert relative(denoise.auto, np.random.default_rng(6).integers(0, 9000, 1000), law) < 1.02


@pytest.mark.slow
@both
@pytest.mark.parametrize("size", [32, 100, 1000])
def test_auto_does_no_harm_on_dense_totals(law, size):
    generator = np.random.default_rng(size)
    spread = math.sqrt(law.variance)
    for truth in (generator.uniform(0, 3000 * spread, size), np.arange(size) * 8 * spread):
        assert relative(EVERY["auto"], np.rint(truth), law, rounds=4_000 // size) <= 1.02


# In a release


def test_every_name_works_in_a_release():
    frame = pl.DataFrame({"x": np.arange(200) % 40, "y": np.arange(200) % 9, "who": ["a", "b"] * 100})
    with dpf.Ledger(epsilon=1000.0):
        for name in DENOISERS:
            if name == "spanning-tree-wavelets":  # needs a graph: see tests/release/test_graph_calls.py
                continue
            line = frame.dp.histogram("x", bins=40, range=(0, 40), epsilon=1.0, denoise=name)
            grid = frame.dp.histogram(["x", "y"], bins=[8, 5], range=[(0, 40), (0, 10)], epsilon=1.0, denoise=name)
            keys = frame.dp.group_by("who", keys=["a", "b"]).agg(dpf.count(), epsilon=1.0, denoise=name)
            for answer in (line, grid, keys):
                assert answer["count"].is_finite().all()
                assert answer.dp.provenance["measures"]["count"]["denoise"][0]["name"] == name
        frame.dp.histogram("x", bins=40, range=(0, 40), epsilon=1.0, denoise=denoise.haar)


def test_bins_of_numbers_are_a_line_and_keys_where_they_are_said_to_be(monkeypatch):
    asked = []
    monkeypatch.setattr(choose, "ordered_axes", lambda values, order: asked.append((values.shape, order)))
    frame = pl.DataFrame({"x": np.arange(200) % 40, "y": np.arange(200) % 30})
    grid = {"x": range(40), "y": [1, 2]}
    with dpf.Ledger(epsilon=1000.0):
        frame.dp.histogram("x", bins=40, range=(0, 40), epsilon=1.0)
        frame.dp.histogram(["x", "y"], bins=[8, 8], range=[(0, 40), (0, 40)], epsilon=1.0)
        frame.dp.group_by("x", keys=range(40)).histogram("y", bins=3, range=(0, 30), epsilon=1.0)
        frame.dp.histogram("x", bins=40, range=(0, 40), order=False, epsilon=1.0)
        frame.dp.group_by("x", keys=range(40)).agg(dpf.count(), epsilon=1.0)
        frame.dp.group_by("x", keys=range(40)).agg(dpf.count(), order=True, epsilon=1.0)
        frame.dp.group_by("y", "x", keys=grid).count(order="x", epsilon=1.0)
        frame.dp.group_by("x", keys=range(40)).histogram("y", bins=3, range=(0, 30), order=True, epsilon=1.0)
    line, square, inner, keyed = (40,), (8, 8), (40, 3), (2, 40)
    assert asked == [
        (line, (0,)),
        (square, (0, 1)),
        (inner, (1,)),
        (line, ()),
        (line, ()),
        (line, (0,)),
        (keyed, (1,)),
        (inner, (0, 1)),
    ]


@both
def test_wavelets_along_one_axis_alone(law):
    """The lines have nothing in common, and each of them is smooth."""
    truth = np.random.default_rng(5).permutation(40)[:, None] * 100 + np.repeat(np.arange(8), 8)
    along = lambda values, law: denoise.haar(values, law, order=(1,))  # noqa: E731
    assert relative(along, truth, law) < 0.3
    assert relative(along, truth, law) < 0.7 * relative(denoise.haar, truth, law)
    moved = noisy(truth, law, 3)
    assert along(moved, law) == pytest.approx(denoise.haar(moved.T, law, order=(0,)).T)


@both
def test_any_function_may_shrink_the_coefficients(law):
    """Steps of a few heights: coefficients are zero or far from it, which empirical Bayes learns."""
    truth = np.repeat([0, 40, 10, 300], 256)
    learned = lambda values, law: denoise.haar(values, law, order=True, shrink=denoise.empirical_bayes)  # noqa: E731
    assert relative(learned, truth, law) < 0.2
    moved = noisy(truth, law, 1)
    kept = denoise.haar(moved, law, order=True, shrink=lambda values, law: values)
    assert kept == pytest.approx(moved)
    assert denoise.haar(moved.reshape(32, 32), law, shrink=denoise.sure_threshold).shape == (32, 32)
    with pytest.raises(ValueError, match="shrink must return values of the shape"):
        denoise.haar(moved, law, order=True, shrink=lambda values, law: values[1:])


@both
def test_coefficients_have_the_noise_that_is_told(law):
    told = []

    def look(values, noise):
        told.append((values.std(), math.sqrt(noise.variance), values.size))
        return values

    denoise.haar(noisy(np.zeros(4096), law, 1), law, order=True, shrink=look)
    assert told
    for found, stated, size in told:
        assert found == pytest.approx(stated, rel=6 / math.sqrt(size))


@pytest.mark.parametrize("scale", [1.0, 3.0, 40.0])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_values_that_are_counted_first_are_denoised_as_each_by_itself(scale, nonnegative, monkeypatch):
    """Values on the grid are tallied, and each distinct value is denoised once. Values off the grid are not tallied."""
    generator = np.random.default_rng(8)
    law = Laplace(1, scale)
    values = np.rint(generator.laplace(generator.poisson(30, (90, 60)), scale))
    for given in (values, values + 0.25 * (generator.random(values.shape) < 0.5)):
        counted = bayes.Mixture.of(given, law, nonnegative=nonnegative)
        monkeypatch.setattr(bayes, "MANY", 10**9)
        alone = bayes.Mixture.of(given, law, nonnegative=nonnegative)
        monkeypatch.undo()
        assert alone.tally.codes is None
        assert (counted.tally.codes is not None) == (given is values)
        assert counted.risk == pytest.approx(alone.risk)
        assert counted.values == pytest.approx(alone.values, abs=1e-9)
        assert counted.deviations == pytest.approx(alone.deviations, abs=1e-9)


@pytest.mark.parametrize("law", [Laplace(1, 1.0), Laplace(1, 30.0), Gaussian(1.0, 9.0)], ids=repr)
def test_the_law_around_atoms_is_read_off_its_table(law):
    bins = bayes.Bins.of(np.random.default_rng(1).integers(-50, 400, 500).astype(np.float64), law)
    size, seen = bins.counts.shape[1], np.flatnonzero(bins.counts.sum(axis=0))
    for nonnegative in (False, True):
        atoms = bins.atoms(nonnegative)
        expected = bins.law[np.clip(seen[:, None] - atoms, -size, size) + size]
        assert np.array_equal(bins.around(seen, atoms), expected)


@pytest.mark.parametrize("epsilon", [400.0, 1e4])
def test_noise_that_is_always_0_leaves_a_trend_as_it_is(epsilon):
    law = Laplace.calibrate(sensitivity=1, epsilon=epsilon)
    values = np.arange(12.0) ** 2
    assert denoise.trend_filter(values, law, order=True) == pytest.approx(values)
