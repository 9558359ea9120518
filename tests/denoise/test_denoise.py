"""Denoising: shapes, edge cases, unbiased risk estimates, and no harm where there is nothing to gain.

Simulations use fixed seeds, so their results never change; their tolerances are six standard errors.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import stand_ins
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpframe import Gaussian, InvalidArgument, Laplace, denoise, noise
from dpframe.denoise import choose, estimators
from dpframe.denoise.estimators import shrinkage, universal_threshold

ESTIMATORS = [denoise.nonnegative, denoise.james_stein, denoise.soft_threshold, denoise.auto]
LAWS = {"laplace": Laplace, "gaussian": Gaussian}
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


# Shapes and edges


@every
@both
@settings(deadline=None, max_examples=60)
@given(
    arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=5), elements=st.floats(-1e30, 1e30)),
    st.floats(0.05, 1e9),
)
def test_shapes_are_kept_and_nothing_becomes_nan(estimator, law, values, scale):
    values = values + 0.0  # noisy totals are integers times the grid: never -0.0
    before = values.copy()
    result = estimator(values, law(1, scale))
    assert result.shape == values.shape
    assert result.dtype == np.float64
    assert np.isfinite(result).all()
    assert (values == before).all()
    assert not np.signbit(result[result == 0.0]).any()  # -0.0 is not shown
    if estimator is not denoise.auto:
        assert (np.abs(result) <= np.abs(values)).all()  # these only shrink values or leave them as they are


@every
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_few_values(estimator, size):
    result = estimator(np.arange(size, dtype=np.float64) * 100, Laplace(1, 1.0))
    assert result.shape == (size,)
    if estimator is not denoise.soft_threshold:
        assert result.tolist() == pytest.approx((np.arange(size) * 100).tolist(), rel=1e-3)


@every
def test_without_noise_nothing_changes(estimator):
    silent = Laplace.calibrate(sensitivity=1, epsilon=1e300)
    assert silent.variance == 0.0
    values = np.array([[0.0, 3.0, 5.0], [0.0, 0.0, 7.0]])
    assert estimator(values, silent).tolist() == values.tolist()


@every
def test_zeros_stay_zeros(estimator):
    assert estimator(np.zeros((4, 4)), Gaussian(1.0, 3.0)).tolist() == np.zeros((4, 4)).tolist()


def test_integers_and_lists_are_values():
    assert denoise.nonnegative([-1, 2], Laplace(1, 1.0)).tolist() == [0.0, 2.0]
    assert denoise.james_stein(np.arange(5), Laplace(1, 0.01)).tolist() == pytest.approx([0, 1, 2, 3, 4])


def test_nonnegative_is_the_projection():
    values = np.array([-3.0, -0.0, 0.0, 2.5])
    assert denoise.nonnegative(values, Laplace(1, 1.0)).tolist() == [0.0, 0.0, 0.0, 2.5]
    assert denoise.auto(values * 1000, Laplace(1, 1.0), nonnegative=True).min() >= 0.0


def test_james_stein_is_its_formula():
    law, values = Gaussian(1.0, 20.0), np.array([30.0, -40.0, 50.0, 20.0])
    factor = 1 - 2 * law.variance / np.square(values).sum()
    assert denoise.james_stein(values, law).tolist() == pytest.approx((values * factor).tolist())
    assert denoise.james_stein(values / 100, law).tolist() == [0.0] * 4  # the positive part


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 4), (4, 1)])
def test_a_centre_of_another_shape_is_refused(shape):
    words = f"centre must be one number or an array with the shape of the values, (4,), not with shape {shape}. "
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        denoise.james_stein(np.arange(4.0), Gaussian(1.0, 20.0), centre=np.zeros(shape))


def test_soft_threshold_is_its_formula():
    law = Gaussian(1.0, 20.0)
    level = math.sqrt(law.variance * 2 * math.log(4))
    found = denoise.soft_threshold(np.array([-100.0, 1.0, 100.0, -3.0]), law)
    assert found.tolist() == pytest.approx([level - 100, 0, 100 - level, 0])
    assert denoise.soft_threshold(np.array([-9.0, 9.0]), law, threshold=4.0).tolist() == [-5.0, 5.0]


# The risk estimates


TRUTH = np.concatenate([np.zeros(30), np.arange(30), np.full(20, 200), np.arange(20) * 5])
SCALES = (0.4, 1.0, 3.0, 40.0)


def mean_and_error(differences):
    differences = np.array(differences)
    return differences.mean(), differences.std() / math.sqrt(differences.size)


def estimated_risk(values, law, level):
    """Return the estimated summed squared error of a soft threshold."""
    return values.size * law.variance + estimators._gains(values, law, level, 1.0).sum()


def simulated(law, risk, estimate, rounds=1500):
    """Return the mean of (estimated risk - true loss) and its standard error."""
    draws = noisy(np.tile(TRUTH, (rounds, 1)), law, 5)
    return mean_and_error([risk(values) - np.square(estimate(values) - TRUTH).sum() for values in draws])


@both
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("level", [1.0, 2.0])
def test_the_risk_of_a_soft_threshold_is_estimated_without_bias(law, scale, level):
    mechanism = law(1, scale)
    threshold = level * math.sqrt(mechanism.variance)
    bias, error = simulated(
        mechanism,
        lambda values: estimated_risk(values, mechanism, threshold),
        lambda values: denoise.soft_threshold(values, mechanism, threshold=threshold),
    )
    coarse = (
        0.4 * mechanism.variance * 8 if law is Gaussian and scale <= 3 else 0.0
    )  # the bias at the few cells near the threshold
    assert abs(bias) < 6 * error + coarse


@both
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("centre", [0.0, "mean"])
def test_the_risk_of_james_stein_is_estimated_without_bias(law, scale, centre):
    """Exact for Gaussian noise. For Laplace noise, the bias is of order 1 / cells of the summed variance."""
    mechanism = law(1, scale)
    bias, error = simulated(
        mechanism,
        lambda values: choose._james_stein(values, mechanism, centre).risk,
        lambda values: denoise.james_stein(values, mechanism, centre=centre),
    )
    assert abs(bias) < 6 * error + 0.01 * mechanism.variance * TRUTH.size


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0, 25.0])
def test_the_laplace_identity_is_exact_on_the_grid(scale):
    """E[z h(t + z)] = v E[(H(y + 1) - H(y - 1)) / 2], summed over the law: no simulation."""
    mechanism = Laplace(1, scale)
    k = np.arange(-int(60 * scale) - 5, int(60 * scale) + 6)
    rate = math.exp(-1 / scale)
    mass = (1 - rate) / (1 + rate) * rate ** np.abs(k)
    for level in np.array([0.3, 1.0, 2.5]) * math.sqrt(mechanism.variance):
        for truth in (0.0, 1.0, 2.0, round(level), 7 * scale):
            values = truth + k
            taken = mass @ (k * np.clip(values, -level, level))
            foreseen = mechanism.variance * (mass @ estimators.kept_slope(values, mechanism, level))
            assert foreseen == pytest.approx(taken, rel=1e-11)


@pytest.mark.parametrize(
    "law", [Laplace(1, 2.0**30, 2.0**-30), Gaussian(1.0, 2.0**30, 2.0**-30)], ids=["laplace", "gaussian"]
)
def test_fine_grids_lose_no_digits(law):
    """The slope of a fine grid is that of the continuous law."""
    values = np.array([-9.0, -1.5, -0.2, 0.0, 0.7, 1.3, 4.0])
    level, b = 1.2, 1.0
    cdf = lambda x: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)  # noqa: E731
    smooth = cdf((level - values) / b) - cdf((-level - values) / b)
    expected = smooth if law.p == 1.0 else (np.abs(values) < level).astype(float)
    assert estimators.kept_slope(values, law, level).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


# The choice


def histograms():
    """Return histograms on which a denoiser may gain or lose much."""
    generator = np.random.default_rng(9)
    sparse = np.zeros(1024)
    sparse[generator.choice(1024, 30, replace=False)] = generator.integers(1, 3000, 30)
    return {
        "dense": generator.integers(500, 1500, 1024),
        "sparse": sparse,
        "three quarters empty": np.where(np.arange(1024) % 4 == 0, generator.integers(1, 9, 1024), 0),
        "constant": np.full(1024, 40),
        "empty": np.zeros(1024),
        "steps": np.repeat([0, 3, 10, 300], 256),
        "short": np.array([120, 40, 0, 7, 1, 0, 0, 12, 65, 3] * 2),
        "ages": (1000 * np.exp(-np.arange(100) / 30)).round(),
        "plane": np.add.outer(np.arange(32), np.arange(32)),
    }


PRICES = (0.03, 0.3, 1.0, 3.0, 6.0)


def mechanism_of(law, epsilon):
    if law is Laplace:
        return Laplace.calibrate(sensitivity=1, epsilon=epsilon)
    return Gaussian.calibrate(sensitivity=1, epsilon=epsilon, delta=1e-6)


def relative_error(truth, mechanism, seeds):
    """Return the mean squared errors of `auto` and of its non-negative form, relative to the noisy values."""
    plain = denoised = projected = 0.0
    for seed in seeds:
        values = noisy(truth, mechanism, seed)
        plain += np.square(values - truth).sum()
        denoised += np.square(denoise.auto(values, mechanism) - truth).sum()
        projected += np.square(denoise.auto(values, mechanism, nonnegative=True) - truth).sum()
    return denoised / plain, projected / plain


@pytest.mark.slow
@both
@pytest.mark.parametrize("epsilon", PRICES)
@pytest.mark.parametrize(("name", "truth"), histograms().items(), ids=histograms().keys())
def test_auto_does_no_harm(law, epsilon, name, truth):
    rounds = max(10, 8_000 // truth.size)
    denoised, projected = relative_error(truth.astype(np.int64), mechanism_of(law, epsilon), range(rounds))
    assert denoised <= 1.02
    assert projected <= denoised + 0.05  # the prior without the bound may be a little better by chance


@both
def test_auto_gains_much_where_there_is_little(law):
    for name in ("sparse", "empty"):
        assert relative_error(histograms()[name].astype(np.int64), mechanism_of(law, 0.1), range(10))[0] < 0.4


def test_auto_beats_the_universal_threshold_on_dense_data():
    truth, mechanism = histograms()["dense"], mechanism_of(Gaussian, 0.3)
    values = noisy(truth, mechanism, 1)
    universal = np.square(denoise.soft_threshold(values, mechanism) - truth).sum()
    assert universal > 5 * np.square(denoise.auto(values, mechanism) - truth).sum()


@pytest.mark.slow
@both
@pytest.mark.parametrize("name", ["HEPTH", "INCOME", "NETTRACE", "ADULT", "TWITTER"])
def test_auto_does_no_harm_on_published_histograms(law, name):
    truth = stand_ins.histogram(name)
    for epsilon in (0.1, 1.0):
        mechanism = mechanism_of(law, epsilon)
        denoised, projected = relative_error(truth, mechanism, range(2))
        assert denoised <= 1.02
        assert projected <= denoised + 0.05  # the prior without the bound may be a little better by chance
        if name in ("NETTRACE", "TWITTER") and epsilon == 0.1:
            assert denoised < 0.4


def test_the_choice_says_what_it_was_and_how_far_off_it_should_be():
    mechanism, truth = mechanism_of(Laplace, 0.1), histograms()["sparse"]
    values = noisy(truth, mechanism, 3)
    chosen = choose.choose(values, mechanism)
    assert chosen.name.startswith("empirical-bayes")
    assert chosen.values.tolist() == denoise.auto(values, mechanism).tolist()
    rmse = math.sqrt(np.square(chosen.values - truth).mean())
    assert rmse / 2 < chosen.estimated_rmse < rmse * 2
    assert choose.choose(values, mechanism, nonnegative=True).name.startswith("empirical-bayes, non-negative")
    dense = noisy(np.arange(1, 51) * 10**5, mechanism, 4)
    assert choose.choose(dense, mechanism).values.tolist() == pytest.approx(dense.tolist(), rel=1e-9)
    assert choose.choose(dense, mechanism).estimated_rmse == pytest.approx(math.sqrt(mechanism.variance))
    assert choose.choose(dense[:2], mechanism).name == "none"


def test_levels_of_the_paper():
    mechanism = Gaussian(1.0, 10.0)
    assert universal_threshold(100, mechanism) == pytest.approx(math.sqrt(mechanism.variance * 2 * math.log(100)))
    assert shrinkage(np.zeros(5), mechanism) == 0.0
    assert shrinkage(np.array([1.0, 2.0]), mechanism) == 0.0
