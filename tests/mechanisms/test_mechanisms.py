"""Calibrations and privacy curves compared with published values, 50-digit evaluations and direct sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from published import check, inputs, published

import dpframe as dpf
from dpframe import (
    Gaussian,
    GeneralizedGaussian,
    InvalidArgument,
    InvalidType,
    Laplace,
    analytic_gaussian_sigma,
)
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import LARGEST_SIGMA
from dpframe.mechanisms.gaussian import ContrastGaussian
from dpframe.mechanisms.laplace import TruncatedLaplace


def l2(given_inputs):
    """Return the l2 sensitivity, which is doubled under REPLACE, since both distributions shift."""
    if "l0" in given_inputs:
        return given_inputs["linf"] * math.sqrt(given_inputs["l0"])
    return given_inputs["sensitivity"] * (2 if given_inputs.get("adjacency") == "REPLACE" else 1)


def delta_at(noise, epsilon):
    """Return the curve at any epsilon; only privacy loss distributions need negative ones."""
    return noise.delta(epsilon) if epsilon >= 0 else float(noise.deltas(np.array([float(epsilon)]))[0])


@published("gaussian_sigma")
def test_published_sigmas(row):
    given_inputs = inputs(row)
    sigma = analytic_gaussian_sigma(given_inputs["epsilon"], given_inputs["delta"], l2(given_inputs))
    check(row, sigma**2 if row["quantity"].startswith("variance") else sigma)


@published("gaussian_delta")
def test_published_deltas(row):
    given_inputs = inputs(row)
    if given_inputs["scale"] == 0:
        with pytest.raises(InvalidArgument, match="step_scale"):  # the row has delta 1; scale 0 is refused here
            Gaussian(float(l2(given_inputs)), 0.0)
        return
    check(row, delta_at(Gaussian(float(l2(given_inputs)), float(given_inputs["scale"])), given_inputs["epsilon"]))


@published("gaussian_epsilon")
def test_published_epsilons(row):
    given_inputs = inputs(row)
    noise = Gaussian(float(given_inputs["sensitivity"]), float(given_inputs["scale"]))
    check(row, noise.epsilon(given_inputs["delta"]))


@published("discrete_laplace_delta")
def test_published_discrete_laplace_deltas(row):
    given_inputs = inputs(row)
    check(row, delta_at(Laplace(given_inputs["sensitivity"], 1.0 / given_inputs["scale"]), given_inputs["epsilon"]))


@published("laplace_delta")
def test_published_laplace_deltas_on_a_fine_grid(row):
    given_inputs = inputs(row)
    fine = 2**30
    noise = Laplace(round(given_inputs["sensitivity"] * fine), given_inputs["scale"] * fine, 1 / fine)
    assert delta_at(noise, given_inputs["epsilon"]) == pytest.approx(float(row["expected"]), abs=1e-7)
    continuous = GeneralizedGaussian(given_inputs["sensitivity"], given_inputs["scale"], p=1.0)
    check(row, delta_at(continuous, given_inputs["epsilon"]))


@published("mixture_gaussian_delta")
def test_published_deltas_of_mixtures_of_one_shift(row):
    given_inputs = inputs(row)
    if len(given_inputs["sensitivities"]) > 1:
        pytest.skip("a unit is never sampled here, so its shift is never a mixture")
    noise = Gaussian(given_inputs["sensitivities"][0], given_inputs["scale"])
    check(row, noise.delta(given_inputs["epsilon"]))


@published("accuracy")
def test_published_accuracy(row):
    given_inputs = inputs(row)
    scale = float(row["expected"])
    assert Laplace(1, scale * 0.999999).interval(1 - given_inputs["alpha"]) == given_inputs["accuracy"] - 1
    assert Laplace(1, scale * 1.000001).interval(1 - given_inputs["alpha"]) == given_inputs["accuracy"]


@published("confidence_interval")
def test_published_intervals(row):
    given_inputs = inputs(row)
    sigma = analytic_gaussian_sigma(given_inputs["epsilon"], given_inputs["delta"], l2(given_inputs))
    fine = 2**20
    width = Gaussian(1.0, sigma * fine, 1 / fine).interval(1 - given_inputs["alpha"])
    end = given_inputs["noised"] + (width if row["quantity"].endswith("upper") else -width)
    assert end == pytest.approx(float(row["independent"]), rel=1e-6)


@published("quantile")
def test_published_quantiles(row):
    given_inputs, fine = inputs(row), 2**30
    confidence = abs(2 * given_inputs["p"] - 1)
    kind = Gaussian(1.0, given_inputs["scale"] * fine, 1 / fine) if "gaussian" in row["quantity"] else None
    noise = kind or Laplace(1, given_inputs["scale"] * fine, 1 / fine)
    assert noise.interval(confidence) == pytest.approx(abs(float(row["expected"])), abs=1e-5)


def test_values_of_fifty_digits():
    """From mpmath at 50 digits, by root finding on Theorem 8 of Balle and Wang."""
    assert analytic_gaussian_sigma(1.0, 1e-6) == pytest.approx(4.22467888932683498, rel=1e-15)
    assert analytic_gaussian_sigma(0.5, 1e-5) == pytest.approx(7.03182667558249144, rel=1e-15)
    assert analytic_gaussian_sigma(2.0, 1e-15, 4.5) == pytest.approx(17.1818814284474334, rel=1e-15)
    assert Gaussian(1.0, 1.0).delta(0.0) == pytest.approx(0.382924922548026207, rel=1e-15)
    assert Gaussian(1.0, 20.0).epsilon(1e-9) == pytest.approx(0.260196773718018686, rel=1e-13)
    assert Laplace(4, 2.0).delta(0.5) == pytest.approx(0.542020018171024024, rel=1e-15)


# The analytic Gaussian


def theorem_8(sigma, epsilon):
    """Return Phi(1/2s - es) - e^e Phi(-1/2s - es), apart from the package, with enough digits for the cancellation."""
    with mpmath.workdps(80 + 2 * max(0, math.ceil(math.log10(sigma)))):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


def test_sigma_is_never_too_small_and_hardly_too_large():
    generator = np.random.default_rng(1)
    epsilons, deltas = 10.0 ** generator.uniform(-12, 7, 300), 10.0 ** generator.uniform(-300, 0, 300)
    epsilons[:10], deltas[-10:] = 0.0, 10.0 ** generator.uniform(-2, 0, 10)
    for epsilon, delta in zip(epsilons.tolist(), deltas.tolist(), strict=True):
        sigma = analytic_gaussian_sigma(epsilon, delta)
        assert theorem_8(sigma, epsilon) <= delta
        assert theorem_8(sigma * (1 - 1e-12), epsilon) > delta


@pytest.mark.parametrize("missing", [1e-3, 1e-8, 1e-12, 2.0**-53])
def test_sigma_for_a_delta_near_one(missing):
    """The typed decimal may lie just below the float, and near 1 the last digit of delta changes sigma much."""
    sigma = analytic_gaussian_sigma(1.0, 1 - missing)
    assert theorem_8(sigma, 1.0) <= 1 - missing
    assert theorem_8(sigma * (1 - 1e-12), 1.0) > math.nextafter(1 - missing, 0.0)


def test_every_road_to_a_sigma_leads_to_the_same():
    """The function and the mechanism (elsewhere, the plan) must read typed decimals in the same way."""
    for epsilon in (0.1, 0.3, 1, 1.7, 10):
        assert Gaussian.calibrate(sensitivity=1, epsilon=epsilon, delta=1e-6).scale == analytic_gaussian_sigma(
            epsilon, 1e-6
        )


epsilons = st.floats(0.0, 30.0)
deltas = st.floats(1e-290, 0.999)
scales = st.floats(0.02, 1e6)


@settings(deadline=None, max_examples=60)
@given(scales, epsilons, epsilons)
def test_gaussian_delta_falls_and_is_never_below_the_exact(scale, one, other):
    noise, (low, high) = Gaussian(1.0, scale), sorted((one, other))
    assert noise.delta(high) <= noise.delta(low) <= 1.0
    exact = theorem_8(scale, high)
    assert noise.delta(high) >= exact
    assert noise.delta(high) <= max(exact * (1 + mpmath.mpf("1e-9")), mpmath.mpf("2.3e-308"))


@settings(deadline=None, max_examples=60)
@given(scales, deltas)
def test_gaussian_epsilon_inverts_delta(scale, delta):
    noise = Gaussian(1.0, scale)
    epsilon = noise.epsilon(delta)
    assert noise.delta(epsilon) <= delta
    assert epsilon == 0.0 or theorem_8(scale, epsilon * (1 - 1e-12)) > delta * (1 - 1e-12)


def test_epsilon_is_found_where_delta_is_just_exceeded_at_zero():
    """A delta too small by the last digit needs an epsilon of about 1e-17, which must not be searched in tiny steps."""
    generator = np.random.default_rng(2)
    for mu in (10.0 ** generator.uniform(-6, 1, 40)).tolist():
        exact = gaussian_curve.exact_delta_of(mu, 0.0)
        delta = min(math.nextafter(float(exact), 0.0), 1 - 2.0**-53)
        epsilon = gaussian_curve.epsilon_of_mu(mu, delta)
        assert 0.0 <= epsilon < 1e-9 * max(1.0, mu**2)
        assert not gaussian_curve.delta_exceeds(mu, epsilon, delta)


@pytest.mark.parametrize("scale", [1e-9, 1e-12, 1e-100])
def test_gaussian_epsilon_of_hardly_any_noise(scale):
    assert Gaussian(1.0, scale).epsilon(1e-6) == pytest.approx(0.5 / scale**2, rel=1e-2)


def test_a_calibrated_gaussian_keeps_its_promise():
    for epsilon, delta, sensitivity in itertools.product(
        (1e-4, 0.1, 1, 50.0, 1e6), (1e-300, 1e-6, 0.3), (1, 1e-3, 77.7)
    ):
        noise = Gaussian.calibrate(sensitivity=sensitivity, epsilon=epsilon, delta=delta, grid=2.0**-20)
        assert noise.delta(epsilon) <= delta
        assert noise.epsilon(delta) <= epsilon * (1 + 2.0**-49)  # rounded up by at most this factor
        assert noise.sensitivity >= sensitivity


@pytest.mark.parametrize("epsilon", [1e-16, 1e-12, 1e-5, 0.3, 0.999, 1.0, 5.0, 40.0, 1e3, 1e7])
def test_mu_of_pure_noise_is_never_too_small(epsilon):
    """mu = 2 Phi^-1(e^eps / (1 + e^eps)), even if e^eps / (1 + e^eps) is 1/2 to the last digit."""
    mu = gaussian_curve.pure_to_mu(epsilon)
    with mpmath.workdps(60):
        tail = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        below = mpmath.mpf(1) / 2 - mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8)) / 2 if epsilon < 40 else None
        below = mpmath.erfc(mpmath.mpf(mu) / mpmath.sqrt(8)) / 2 if below is None else below
        assert below <= tail
        shorter = mpmath.mpf(mu) * (1 - mpmath.mpf("1e-14"))
        assert mpmath.erfc(shorter / mpmath.sqrt(8)) / 2 > tail
    assert gaussian_curve.pure_to_mu(gaussian_curve.mu_to_pure(mu)) <= mu
    assert gaussian_curve.mu_to_pure(mu) == pytest.approx(epsilon, rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-12, 1e4))
def test_pure_noise_bought_for_a_mu_costs_at_most_that_mu(mu):
    assert gaussian_curve.pure_to_mu(gaussian_curve.mu_to_pure(mu)) <= mu


# The discrete Laplace


def pmf(scale, reach):
    k = np.arange(-reach, reach + 1)
    rate = math.exp(-1.0 / scale)
    return k, (1 - rate) / (1 + rate) * rate ** np.abs(k)


def summed_delta(shift, scale, epsilon):
    """Return the sum of max(0, P - e^eps Q), term by term in 60 digits."""
    with mpmath.workdps(60):
        t, e = mpmath.mpf(scale), mpmath.exp(epsilon)
        rate = mpmath.exp(-1 / t)
        reach = int(140 * scale) + 3 * shift + 140
        terms = (rate ** abs(k) - e * rate ** abs(k - shift) for k in range(-reach, reach + 1))
        return (1 - rate) / (1 + rate) * sum(term for term in terms if term > 0)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.floats(0.2, 6.0), st.floats(0.0, 8.0))
@example(1, 1.0, 0.9504891657971342)  # this float is below the decimal that it prints as
def test_laplace_delta_is_the_direct_sum(shift, scale, epsilon):
    found, exact = Laplace(shift, scale).delta(epsilon), summed_delta(shift, scale, epsilon)
    assert found >= exact - mpmath.mpf("1e-17")  # the larger of the float and its printed decimal is used
    assert abs(found - exact) <= 1e-14 * exact + mpmath.mpf("1e-17")


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 1000), st.floats(0.01, 1e9), epsilons, epsilons)
def test_laplace_delta_falls_and_stays_in_range(shift, scale, one, other):
    noise, (low, high) = Laplace(shift, scale), sorted((one, other))
    assert 0.0 <= noise.delta(high) <= noise.delta(low) <= 1.0


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 1000), st.floats(0.01, 1e9), st.floats(0.0, 0.999))
def test_laplace_epsilon_inverts_delta(shift, scale, delta):
    noise = Laplace(shift, scale)
    epsilon = noise.epsilon(delta)
    assert noise.delta(epsilon) <= delta
    assert epsilon <= shift / scale * (1 + 1e-15)
    assert epsilon == 0.0 or noise.delta(epsilon * (1 - 1e-9)) >= delta


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 2**31), st.floats(1e-5, 1e6))
def test_a_calibrated_laplace_is_pure_at_what_was_typed(sensitivity, epsilon):
    noise = Laplace.calibrate(sensitivity=sensitivity, epsilon=epsilon)
    assert noise.delta(epsilon) == 0.0
    assert Fraction(sensitivity) / Fraction(noise.step_scale) <= Fraction(repr(epsilon))
    assert noise.scale == pytest.approx(sensitivity / epsilon, rel=1e-15)


def hockey_stick(one, other, epsilon):
    return np.maximum(0.0, one - math.exp(epsilon) * other).sum()


def product(*factors):
    whole = np.ones(())
    for factor in factors:
        whole = np.multiply.outer(whole, factor)
    return whole


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.3])
@pytest.mark.parametrize("shift", [2, 3, 4])
def test_a_shift_of_one_coordinate_is_the_worst_vector_of_an_l1_norm(scale, shift):
    """Direct sums over two and three coordinates: `Laplace.delta` must hold for every vector of that norm."""
    k, _ = pmf(scale, 20)
    rate = math.exp(-1.0 / scale)
    law = lambda moved: (1 - rate) / (1 + rate) * rate ** np.abs(k - moved)  # noqa: E731
    for epsilon in (0.0, 0.2, 0.7, 1.3, 0.9 * shift / scale):
        bound = Laplace(shift, scale).delta(epsilon)
        for size in (2, 3):
            for moves in itertools.product(range(shift + 1), repeat=size):
                if sum(moves) <= shift:
                    plain, moved = product(*[law(0)] * size), product(*map(law, moves))
                    assert hockey_stick(plain, moved, epsilon) <= bound + 1e-12


# Variances and intervals


@pytest.mark.parametrize("scale", [0.03, 0.5, 1.0, 3.7, 50.0])
def test_laplace_variance_is_the_direct_sum(scale):
    k, mass = pmf(scale, int(60 * scale) + 60)
    assert Laplace(1, scale, 0.25).variance == pytest.approx((mass * k**2).sum() / 16, rel=1e-12)


def rounded_pmf(sigma):
    k = np.arange(-int(40 * sigma) - 3, int(40 * sigma) + 4)
    tail = np.array([math.erfc((abs(place) - 0.5) / sigma / math.sqrt(2)) / 2 for place in k])
    further = np.array([math.erfc((abs(place) + 0.5) / sigma / math.sqrt(2)) / 2 for place in k])
    return k, np.where(k == 0, 1.0 - 2.0 * further, tail - further)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 4.0, 7.999, 8.0, 8.001, 30.0])
def test_gaussian_variance_is_the_direct_sum(sigma):
    k, mass = rounded_pmf(sigma)
    assert Gaussian(1.0, sigma, 0.25).variance == pytest.approx((mass * k**2).sum() / 16, rel=1e-12)


def test_gaussian_variance_has_no_step_at_eight():
    below, above = (Gaussian(1.0, math.nextafter(8.0, toward)).variance for toward in (0.0, 9.0))
    assert below == pytest.approx(above, rel=1e-14)


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("scale", [0.1, 0.7, 2.0, 9.3])
@pytest.mark.parametrize("law", [(Laplace, pmf), (Gaussian, rounded_pmf)], ids=["laplace", "gaussian"])
def test_intervals_are_the_smallest_that_hold(law, scale, confidence):
    kind, masses = law
    k, mass = masses(scale, int(60 * scale) + 60) if kind is Laplace else masses(scale)
    width = kind(1, scale, 0.5).interval(confidence) * 2
    assert mass[np.abs(k) <= width].sum() >= confidence - 1e-13
    assert mass[np.abs(k) < width].sum() < confidence + 1e-13 or width == 0


# Scales and grids


@settings(deadline=None, max_examples=100)
@given(st.fractions(Fraction(1, 10**9), 10**9), st.integers(1, 10**6), st.integers(-40, 20))
def test_scales_are_rounded_up(epsilon, steps, exponent):
    grid = 2.0**exponent
    noise = Laplace.calibrate(sensitivity=steps * grid, epsilon=epsilon, grid=grid)
    assert noise.step_sensitivity == steps
    assert Fraction(noise.step_scale) >= Fraction(steps) / epsilon
    assert Fraction(math.nextafter(noise.step_scale, 0.0)) < Fraction(steps) / epsilon


def test_a_sensitivity_between_steps_counts_as_the_next():
    assert Laplace.calibrate(sensitivity=2.25, epsilon=1, grid=0.5).step_sensitivity == 5
    assert Laplace.calibrate(sensitivity=0.1, epsilon=1).step_sensitivity == 1


def test_lengths_are_in_the_users_units():
    fine, coarse = (Laplace.calibrate(sensitivity=1024, epsilon=0.5, grid=grid) for grid in (2.0**-10, 1.0))
    assert (fine.scale, fine.sensitivity) == (coarse.scale, coarse.sensitivity) == (2048.0, 1024.0)
    assert fine.variance == pytest.approx(coarse.variance, rel=1e-6)
    assert fine.interval(0.95) == pytest.approx(coarse.interval(0.95), rel=1e-3)
    assert fine.delta(0.2) == pytest.approx(coarse.delta(0.2), rel=1e-3)
    sigmas = [
        Gaussian.calibrate(sensitivity=3, epsilon=1, delta=1e-6, grid=grid).scale for grid in (2.0**-10, 1.0, 8.0)
    ]
    assert sigmas == [sigmas[0]] * 3


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e3))
def test_mu_squared_is_the_rational_of_the_sigma_used(sensitivity, sigma):
    noise = Gaussian(sensitivity, sigma)
    assert noise.mu_squared == (Fraction(sensitivity) / Fraction(sigma)) ** 2
    assert Fraction(noise.mu) ** 2 >= noise.mu_squared


@pytest.mark.parametrize("epsilon", [1e-307, 1e-20])
def test_noise_that_does_not_fit_is_refused_before_it_is_drawn(epsilon):
    with pytest.raises(InvalidArgument, match="epsilon must be large enough"):
        Laplace.calibrate(sensitivity=2.0**30, epsilon=epsilon)
    with pytest.raises(InvalidArgument, match="epsilon must be large enough"):
        Gaussian.calibrate(sensitivity=2.0**30, epsilon=epsilon, delta=1e-12)
    with pytest.raises(InvalidArgument, match="epsilon must be large enough"):
        Gaussian.of_mu(Fraction(1), 0.0, 1.0)


def test_the_largest_sigma_that_calibrates_can_be_drawn():
    assert Gaussian(1.0, LARGEST_SIGMA).add_noise(np.zeros(3, dtype=np.int64)).shape == (3,)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_points_off_a_curve_are_refused(epsilon):
    for noise in (Laplace(1, 1.0), Gaussian(1.0, 1.0)):
        with pytest.raises(InvalidArgument, match="epsilon must be"):
            noise.delta(epsilon)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("sensitivity", 0),
        ("sensitivity", -1.0),
        ("sensitivity", math.inf),
        ("grid", 0.0),
        ("epsilon", 0),
        ("delta", 1.0),
    ],
)
def test_arguments_out_of_range_are_refused(argument, value):
    words = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "grid": 1.0, argument: value}
    with pytest.raises(InvalidArgument, match=argument):
        Gaussian.calibrate(**words)


@pytest.mark.parametrize("value", [True, "1", None])
def test_arguments_of_other_kinds_are_refused(value):
    with pytest.raises(InvalidType, match="sensitivity"):
        Laplace.calibrate(sensitivity=value, epsilon=1)
    with pytest.raises(InvalidType, match="epsilon"):
        analytic_gaussian_sigma(value, 1e-6)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_confidence_lies_between_zero_and_one(confidence):
    for noise in (Laplace(1, 1.0), Gaussian(1.0, 1.0)):
        with pytest.raises(InvalidArgument, match="confidence"):
            noise.interval(confidence)


def test_a_huge_epsilon_is_negligible_noise():
    assert Laplace.calibrate(sensitivity=1, epsilon=1e300).variance == 0.0
    assert Laplace.calibrate(sensitivity=1, epsilon=1e6).interval(0.999) == 0.0
    assert Gaussian.calibrate(sensitivity=1, epsilon=1e6, delta=1e-300).interval(0.999) == 0.0


@pytest.mark.parametrize("grid", [1.0, 2.0**-20, 0.1, 0.3])
def test_a_sensitivity_between_floats_keeps_the_promise_too(grid):
    """Sensitivity / grid is rounded up first, so that sigma is calibrated to the rounded sensitivity."""
    for epsilon, delta in itertools.product((0.01, 0.3, 1.7, 20.0), (1e-12, 1e-6, 1e-3)):
        noise = Gaussian.calibrate(sensitivity=7.7, epsilon=epsilon, delta=delta, grid=grid)
        assert noise.sensitivity >= 7.7
        assert noise.delta(epsilon) <= delta


def test_noise_of_a_caller_may_not_cost_even_a_little_more():
    def too_little(sensitivity, loss):
        enough = Gaussian.calibrate(sensitivity=sensitivity.norm(2), epsilon=loss.epsilon, delta=loss.delta)
        return Gaussian(enough.step_sensitivity, enough.step_scale * (1 - 1e-9))

    with pytest.raises(InvalidArgument, match="must cost at most"):
        pl.DataFrame({"x": [1]}).dp.preview.count(epsilon=1, delta=1e-6, mechanism=too_little)


def test_207_noise_of_counts_that_move_by_one_is_of_nothing_else():
    """Its delta is the chance of one end. For a sum, the noise would end long before the largest change."""
    for wrong in ({"step_sensitivity": 100}, {"counts": 3}, {"counts": 0}, {"reach": 0}):
        with pytest.raises(InvalidArgument, match="this noise is for counts"):
            TruncatedLaplace(**{"step_sensitivity": 1, "step_scale": 10.0, "reach": 2000} | wrong)


@pytest.mark.parametrize("charged", [Fraction(0), Fraction(-1, 10**6)])
def test_248_noise_with_a_threshold_is_refused(charged):
    """It covered any number of cells, hid noise of another design, and a negative delta lowered the charge."""
    frame, ledger = pl.DataFrame({"x": [1, 2]}), dpf.Ledger(epsilon=1, delta=1e-5)
    of_keys = frame.dp.preview.group_by("x", keys=dpf.discover(delta=1e-7)).count(epsilon=1).parts[0].mechanism

    def threshold(sensitivity, loss):
        wanted = {"sensitivity": sensitivity.norm(2), "epsilon": loss.epsilon, "delta": loss.delta}
        return type(of_keys)(Gaussian.calibrate(**wanted, grid=sensitivity.grid), 0, charged, 0.0)

    with pytest.raises(InvalidArgument, match="mechanism must be noise alone, without a threshold"):
        frame.dp.count(epsilon=1, delta=1e-6, mechanism=threshold, ledger=ledger)
    assert ledger.spent.epsilon == 0


TOO_WIDE = {
    "Laplace": lambda grid: Laplace(1, 2.0**60, grid),
    "Gaussian": lambda grid: Gaussian(1, 2.0**52, grid),
    "generalized": lambda grid: dpf.GeneralizedGaussian(1, 2.0**53, grid, p=3),
    "truncated": lambda grid: dpf.TruncatedGeneralizedGaussian(1, 2.0**60, grid, p=2, step_output=(0, 100)),
}


@pytest.mark.parametrize("noise", TOO_WIDE.values(), ids=TOO_WIDE)
def test_97_noise_that_is_too_wide_to_be_drawn_costs_nothing(noise):
    frame, ledger = pl.DataFrame({"x": [1, 2]}), dpf.Ledger(epsilon=1, delta=1e-5, accounting="basic")
    with pytest.raises(InvalidArgument, match=r"mechanism must add noise to whole numbers, and .* fails on zeros"):
        frame.dp.count(epsilon=1, delta=1e-6, mechanism=lambda sensitivity, _: noise(sensitivity.grid), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_207_noise_of_another_design_is_refused():
    frame = pl.DataFrame({"x": [1], "y": [2]})
    keys = {"x": [1, 2], "y": [2, 3]}
    design = frame.dp.preview.marginals(["x", "y"], keys=keys, epsilon=1, delta=1e-6).parts[0].mechanism.design

    def of_marginals(sensitivity, loss):
        enough = Gaussian.calibrate(sensitivity=sensitivity.norm(2), epsilon=loss.epsilon, delta=loss.delta)
        return ContrastGaussian(enough.step_sensitivity, enough.step_scale, design=design)

    with pytest.raises(InvalidArgument, match="ContrastGaussian is for the contrasts of marginals"):
        frame.dp.preview.count(epsilon=1, delta=1e-6, mechanism=of_marginals)

    class Named(Gaussian):
        design = "flat"

    plan = frame.dp.preview.count(
        epsilon=1,
        delta=1e-6,
        mechanism=lambda needed, loss: Named.calibrate(
            sensitivity=needed.norm(2), epsilon=loss.epsilon, delta=loss.delta
        ),
    )
    assert plan.parts[0].mechanism.design == "flat"


class FromItsTail(dpf.Mechanism):
    """Discrete Laplace noise of which only the tail is known."""

    name, norm, sensitivity, grid = "from its tail", 1.0, 1.0, 1.0

    def __init__(self, scale):
        self.scale = scale

    def tail(self, steps):
        return np.exp(-steps / self.scale) / (1.0 + np.exp(-1.0 / self.scale))

    def add_noise(self, totals):
        return totals + dpf.noise.discrete_laplace(self.scale, totals.size).reshape(totals.shape)


@pytest.mark.parametrize("scale", [0.3, 1.0, 30.0, 1e4, 1e6, 3e7, 1e8, 1e9, 1e10])
def test_266_the_delta_of_a_tail_is_at_least_that_of_its_law(scale):
    """For wide noise near epsilon 0, rounding made a plateau far from the largest gain."""
    mine, known = FromItsTail(scale), Laplace(1, scale)
    for epsilon in (0.0, 1e-13, 0.25 / scale, 0.5 / scale, 0.99 / scale, 1.0 / scale):
        least = known.delta(epsilon)
        assert least * (1.0 - 1e-9) <= mine.delta(epsilon) <= least + 1e-11
