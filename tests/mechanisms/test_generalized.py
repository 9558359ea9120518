"""Generalized Gaussian noise and the older calibrations of Gaussian noise, compared with 50 digits and direct sums."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from published import check, inputs, published

import dpframe as dpf
from dpframe.noise import insecure_bits

# The older calibrations of Gaussian noise


@published("probabilistic_dp_gaussian_sigma")
def test_published_probabilistic_sigmas(row):
    given = inputs(row)
    check(row, dpf.probabilistic_gaussian_sigma(given["epsilon"], given["delta"], given["sensitivity"]))


def loss_tails(sigma, epsilon):
    """Return P(loss > epsilon) and P(loss < -epsilon), for a shift of 1."""
    with mpmath.workdps(60):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        return mpmath.ncdf(1 / (2 * s) - e * s), mpmath.ncdf(-1 / (2 * s) - e * s)


PRICES = [(0.01, 1e-6), (0.3, 1e-100), (1.0, 1e-6), (1.0, 0.3), (2.0, 0.7), (50.0, 1e-12), (1e5, 0.999)]


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_probabilistic_sigmas_keep_the_tails_of_the_loss(epsilon, delta):
    one = dpf.probabilistic_gaussian_sigma(epsilon, delta, tail="one-sided")
    two = dpf.probabilistic_gaussian_sigma(epsilon, delta)
    assert one < two
    assert loss_tails(one, epsilon)[0] <= delta < loss_tails(one * (1 - 1e-14), epsilon)[0] * (1 + 1e-12)
    assert sum(loss_tails(two, epsilon)) <= delta
    assert dpf.analytic_gaussian_sigma(epsilon, delta) < one


def test_the_exact_two_sided_sigma_lies_between():
    one, two = (dpf.probabilistic_gaussian_sigma(1.0, 1e-6, tail=tail) for tail in ("one-sided", "two-sided"))
    exact = mpmath.findroot(lambda s: mpmath.log(sum(loss_tails(s, 1.0)) / 1e-6), (4.8, 5.0), solver="ridder")
    assert [round(float(value), 3) for value in (one, exact, two)] == [4.856, 4.916, 4.992]


def test_gaussian_noise_of_probabilistic_privacy_is_wider_than_laplace_below_the_threshold():
    """Proposition 12 of Liu: the threshold is 2 Phi(-sqrt 2)."""
    threshold = 2 * float(mpmath.ncdf(-mpmath.sqrt(2)))
    assert threshold == pytest.approx(0.1573, abs=1e-5)
    wider = lambda epsilon, delta: dpf.probabilistic_gaussian_sigma(epsilon, delta) ** 2 > 2 / epsilon**2  # noqa: E731
    assert all(wider(10.0**power, threshold - 1e-6) for power in range(-9, 5))
    assert not wider(1e-9, threshold + 1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.1, 0.9])
def test_the_classical_sigma_is_its_formula_and_private(epsilon, delta):
    sigma = dpf.classical_gaussian_sigma(epsilon, delta, 3.0)
    with mpmath.workdps(50):
        exact = (
            3 * mpmath.sqrt(2 * mpmath.log(mpmath.mpf("1.25") / mpmath.mpf(repr(delta)))) / mpmath.mpf(repr(epsilon))
        )
        assert exact <= sigma <= exact * (1 + mpmath.mpf("1e-15"))
    assert (
        sigma > dpf.probabilistic_gaussian_sigma(epsilon, delta, 3.0) > dpf.analytic_gaussian_sigma(epsilon, delta, 3.0)
    )


# The scale of generalized Gaussian noise


def distribution(p, x):
    inside = mpmath.gammainc(1 / p, 0, abs(x) ** p, regularized=True)
    return (1 + mpmath.sign(x) * inside) / 2


def exact_delta(p, b, epsilon):
    """Return F(x) - e^epsilon F(x - 1) at the x where the loss is epsilon, by bisection with 220 digits."""
    with mpmath.workdps(220):
        p, b, e = mpmath.mpf(p), mpmath.mpf(b), mpmath.mpf(epsilon)
        m = 1 / b
        loss = lambda x: abs(x - m) ** p - abs(x) ** p  # noqa: E731
        high, low = m / 2, -mpmath.mpf(1)
        while loss(low) < e:
            low *= 2
        for _ in range(400):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) > e else (low, middle)
        return distribution(p, low) - mpmath.exp(e) * distribution(p, low - m)


def random_prices(count):
    generator = np.random.default_rng(5)
    shapes = generator.uniform(1.02, 12, count)
    shapes[:8] = [1.02, 1.5, 2, 3, 4, 5, 8, 12]
    epsilons, deltas = 10.0 ** generator.uniform(-6, 2, count), 10.0 ** generator.uniform(-100, -0.05, count)
    epsilons[-4:], deltas[-12:-4] = 0.0, 10.0 ** generator.uniform(-3, -0.001, 8)
    return list(zip(shapes.tolist(), epsilons.tolist(), deltas.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("p", "epsilon", "delta"), random_prices(60))
def test_the_scale_is_never_too_small_and_hardly_too_large(p, epsilon, delta):
    b = dpf.generalized_gaussian_scale(p, epsilon, delta)
    assert exact_delta(p, b, epsilon) <= delta
    assert exact_delta(p, b * (1 - 1e-12), epsilon) > delta


@pytest.mark.parametrize(("p", "epsilon", "delta"), [(1.5, 0.7, 1e-3), (3, 1.0, 1e-6), (6.5, 0.1, 0.2), (1.1, 2, 0.01)])
def test_delta_is_the_integral_of_what_exceeds(p, epsilon, delta):
    """The hockey-stick divergence by its definition, without distribution functions."""
    b = dpf.generalized_gaussian_scale(p, epsilon, delta)
    density = lambda x: mpmath.exp(-((abs(x) / b) ** p)) / (2 * b * mpmath.gamma(1 + 1 / mpmath.mpf(p)))  # noqa: E731
    excess = lambda x: max(0, density(x) - mpmath.exp(epsilon) * density(x - 1))  # noqa: E731
    crossing = mpmath.findroot(
        lambda x: abs(x - 1) ** p - abs(x) ** p - epsilon * b**p, (-40 * b, 0.5), solver="bisect", tol=1e-20
    )
    pieces = sorted({-200 * b, -20 * b, -5 * b, -2 * b, -b, min(float(crossing), 0.0), float(crossing)})
    pieces = [piece for piece in pieces if piece <= crossing]
    assert float(mpmath.quad(excess, pieces)) == pytest.approx(delta, rel=1e-8)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.0, 1e-3), (0.1, 1e-100), (7.3, 0.4), (1e6, 1e-9)])
def test_shapes_one_and_two_are_laplace_and_gaussian(epsilon, delta):
    with mpmath.workdps(50):
        laplace = 1 / (mpmath.mpf(epsilon) - 2 * mpmath.log1p(-mpmath.mpf(delta)))
    assert dpf.generalized_gaussian_scale(1, epsilon, delta) == pytest.approx(float(laplace), rel=1e-14)
    gaussian = dpf.analytic_gaussian_sigma(epsilon, delta) * math.sqrt(2)
    assert dpf.generalized_gaussian_scale(2, epsilon, delta) == pytest.approx(gaussian, rel=1e-14)


def test_shapes_next_to_one_go_over_into_laplace():
    scales = [dpf.generalized_gaussian_scale(p, 1.0, 1e-6) for p in (1.0, 1 + 2.0**-52, 1 + 1e-9, 1 + 1e-6)]
    assert scales == sorted(scales)
    assert scales[-1] == pytest.approx(scales[0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 1.3, 2, 3, 7.7, 16])
def test_more_privacy_is_more_noise(p):
    scale = lambda epsilon, delta: dpf.generalized_gaussian_scale(p, epsilon, delta)  # noqa: E731
    by_epsilon = [scale(epsilon, 1e-6) for epsilon in (0.0, 1e-9, 1e-3, 0.1, 1.0, 1.0000001, 10.0, 1e3, 1e7)]
    by_delta = [scale(0.5, delta) for delta in (1e-300, 1e-100, 1e-9, 1e-3, 0.5, 0.999999)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)
    assert dpf.generalized_gaussian_scale(p, 0.5, 1e-6, 7.0) == pytest.approx(7 * scale(0.5, 1e-6), rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("p", [2, 3, 4, 9])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-30), (20.0, 0.3), (1e-9, 0.9)])
def test_the_probabilistic_scale_keeps_lius_inequality_and_is_private(p, epsilon, delta):
    b = dpf.generalized_gaussian_scale(p, epsilon, delta, guarantee="probabilistic")

    def outside(b):
        """Return P(sum of C(p, j) |e|^(p - j) over j = 1..p > b^p epsilon); the sum rises with |e|, in units of b."""
        with mpmath.workdps(60):
            b = mpmath.mpf(b)
            moved = lambda x: sum(mpmath.binomial(p, j) * x ** (p - j) / b**j for j in range(1, p + 1))  # noqa: E731
            low, high = mpmath.mpf(0), mpmath.mpf(2) ** 20
            for _ in range(230):
                middle = (low + high) / 2
                low, high = (low, middle) if moved(middle) > epsilon else (middle, high)
            return mpmath.gammainc(1 / mpmath.mpf(p), low**p, mpmath.inf, regularized=True)

    assert outside(b) <= delta
    assert outside(b * (1 - 1e-12)) > delta
    assert exact_delta(p, b, epsilon) < delta
    assert b > dpf.generalized_gaussian_scale(p, epsilon, delta)
    if p == 2:
        assert b == pytest.approx(dpf.probabilistic_gaussian_sigma(epsilon, delta) * math.sqrt(2), rel=1e-14)


def delta_over_cells(p, b, cells, epsilon):
    """Return delta if a shift of l_p norm 1 is spread evenly: losses of cells, on a grid of 1e-5, summed by FFT."""
    step, size = 1e-5, 2**20
    x = np.linspace(-12 * b, 12 * b, 2_000_001)
    density = np.exp(-((np.abs(x) / b) ** p))
    loss = (np.abs(x - cells ** (-1 / p)) ** p - np.abs(x) ** p) / b**p
    mass = np.bincount(np.rint(loss / step).astype(int) % size, weights=density / density.sum(), minlength=size)
    summed = np.fft.irfft(np.fft.rfft(mass) ** cells, size)
    total = step * np.where(np.arange(size) < size // 2, np.arange(size), np.arange(size) - size)
    return float((summed * np.maximum(0.0, -np.expm1(epsilon - total))).sum())


def test_an_lp_norm_over_many_cells_does_not_bound_the_loss():
    """The guarantee is for one cell: at p = 3, the same l_3 norm spread over 1,000 cells has 2,900 times the delta."""
    b = dpf.generalized_gaussian_scale(3, 1.0, 1e-6)
    assert delta_over_cells(3, b, 1, 1.0) == pytest.approx(1e-6, rel=1e-3)
    assert delta_over_cells(3, b, 1000, 1.0) == pytest.approx(2.9e-3, rel=0.02)
    gaussian = dpf.generalized_gaussian_scale(2, 1.0, 1e-6)
    assert delta_over_cells(2, gaussian, 1000, 1.0) == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("p must be", lambda: dpf.generalized_gaussian_scale(0.99, 1, 1e-6)),
        ("p must be", lambda: dpf.generalized_gaussian_scale(16.5, 1, 1e-6)),
        ("p must be", lambda: dpf.generalized_gaussian_scale(math.nan, 1, 1e-6)),
        ("p must be a whole number", lambda: dpf.generalized_gaussian_scale(2.5, 1, 1e-6, guarantee="probabilistic")),
        ("p must be a whole number", lambda: dpf.generalized_gaussian_scale(1, 1, 1e-6, guarantee="probabilistic")),
        ("epsilon must be", lambda: dpf.generalized_gaussian_scale(3, 0, 1e-6, guarantee="probabilistic")),
        ("guarantee must be", lambda: dpf.generalized_gaussian_scale(3, 1, 1e-6, guarantee="pure")),
        ("epsilon must be", lambda: dpf.generalized_gaussian_scale(3, -1, 1e-6)),
        ("delta must be", lambda: dpf.generalized_gaussian_scale(3, 1, 0)),
        ("sensitivity must be", lambda: dpf.generalized_gaussian_scale(3, 1, 1e-6, 0)),
        ("epsilon must be .* for the classical formula", lambda: dpf.classical_gaussian_sigma(1.0, 1e-6)),
        ("epsilon must be .* for the classical formula", lambda: dpf.classical_gaussian_sigma(0.0, 1e-6)),
        ("delta must be", lambda: dpf.classical_gaussian_sigma(0.5, 1.0)),
        ("sensitivity must be", lambda: dpf.classical_gaussian_sigma(0.5, 1e-6, math.inf)),
        ("epsilon must be", lambda: dpf.probabilistic_gaussian_sigma(0.0, 1e-6)),
        ("delta must be", lambda: dpf.probabilistic_gaussian_sigma(1.0, 0.0)),
        ("sensitivity must be", lambda: dpf.probabilistic_gaussian_sigma(1.0, 1e-6, -1.0)),
        ("tail must be", lambda: dpf.probabilistic_gaussian_sigma(1.0, 1e-6, tail="upper")),
    ],
)
def test_calibrations_refuse_what_is_out_of_range(words, call):
    with pytest.raises(dpf.InvalidArgument, match=words):
        call()


# The mechanism


def cubic(epsilon=1.0, delta=1e-6, p=3, **lengths):
    return dpf.GeneralizedGaussian.calibrate(p=p, epsilon=epsilon, delta=delta, **{"sensitivity": 1, **lengths})


@pytest.mark.parametrize("p", [1, 1.4, 2, 3, 8, 16])
@pytest.mark.parametrize("sensitivity", [1, 0.3, 77.7])
def test_a_calibrated_mechanism_keeps_its_promise(p, sensitivity):
    for epsilon, delta in ((0.3, 1e-6), (1, 0.3), (0.1, 1e-30)):
        noise = cubic(epsilon, delta, p, sensitivity=sensitivity, grid=2.0**-10)
        assert noise.delta(epsilon) <= delta
        assert noise.delta(epsilon) == pytest.approx(delta, rel=1e-9)
        assert noise.epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
        assert noise.sensitivity >= sensitivity
        assert noise.scale == pytest.approx(dpf.generalized_gaussian_scale(p, epsilon, delta, sensitivity), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 12.0])
@pytest.mark.parametrize("scale", [0.05, 0.4, 3.0, 900.0])
def test_delta_falls_and_epsilon_inverts_it(p, scale):
    noise = dpf.GeneralizedGaussian(1.0, scale, p=p)
    curve = [noise.delta(epsilon) for epsilon in (0.0, 1e-9, 0.01, 0.5, 1.0, 4.0, 100.0)]
    assert curve == sorted(curve, reverse=True)
    for delta in (1e-100, 1e-9, 0.01, 0.6):
        epsilon = noise.epsilon(delta)
        assert noise.delta(epsilon) <= delta
        assert epsilon == 0.0 or noise.delta(epsilon * (1 - 1e-9)) > delta * (1 - 1e-15)


def test_shape_one_may_be_pure():
    noise = cubic(0.5, 0.0, p=1)
    assert (noise.scale, noise.delta(0.5), noise.epsilon(0.0)) == (2.0, 0.0, 0.5)


def masses(p, scale):
    """Return P(abs(round(Z)) = k) for k = 0, 1, 2, ... by mpmath."""
    inside = lambda x: mpmath.gammainc(1 / mpmath.mpf(p), 0, (x / scale) ** p, regularized=True)  # noqa: E731
    ends = [float(inside(mpmath.mpf(k) + 0.5)) for k in range(int(45 ** (1 / p) * scale) + 3)]
    return np.diff(np.array([0.0, *ends]))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 9.0])
@pytest.mark.parametrize("scale", [0.1, 0.8, 2.3, 9.0])
def test_variance_and_interval_are_direct_sums(p, scale):
    mass, noise = masses(p, scale), dpf.GeneralizedGaussian(1.0, scale, 0.5, p=p)
    steps = np.arange(mass.size)
    assert noise.variance == pytest.approx((mass * steps**2).sum() / 4, rel=1e-10, abs=1e-14)
    for confidence in (0.1, 0.5, 0.95, 0.9999):
        width = int(noise.interval(confidence) * 2)
        assert mass[: width + 1].sum() >= confidence - 1e-12
        assert width == 0 or mass[:width].sum() < confidence


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 16.0])
def test_variance_has_no_step_where_the_sum_ends(p):
    below, above = (
        dpf.GeneralizedGaussian(1.0, scale, p=p).variance for scale in (1000.0, math.nextafter(1000.0, 2e3))
    )
    assert below == pytest.approx(above, rel=1e-12)


def test_drawn_noise_has_the_law_that_it_states():
    noise = dpf.GeneralizedGaussian(1.0, 4.0, 0.5, p=3.0)
    with insecure_bits(7):
        drawn = noise.add_noise(np.full((200, 500), 10, dtype=np.int64)) - 10
    assert drawn.shape == (200, 500)
    assert drawn.var() * 0.25 == pytest.approx(noise.variance, rel=0.02)
    assert (np.abs(drawn) * 0.5 <= noise.interval(0.95)).mean() >= 0.95
    expected = masses(3.0, 4.0)
    found = np.bincount(np.abs(drawn).ravel(), minlength=expected.size) / drawn.size
    assert np.abs(found - expected).max() < 0.006


def test_neighboring_totals_are_told_apart_no_better_than_promised():
    """Direct sums over the released integers, at a small scale: rounding can only reduce delta."""
    noise = cubic(1.0, 0.05)
    half = masses(3.0, noise.step_scale)
    law = np.concatenate([half[:0:-1] / 2, half[:1], half[1:] / 2])
    here, moved = np.append(law, 0.0), np.append(0.0, law)
    for epsilon in (0.0, 0.4, 1.0, 1.5):
        assert np.maximum(0.0, here - math.exp(epsilon) * moved).sum() <= noise.delta(epsilon) + 1e-12


def test_which_shape_has_the_least_variance():
    """Small shapes if delta is small relative to epsilon, large shapes if it is not."""
    deviations = lambda **price: [math.sqrt(cubic(p=p, **price).variance) for p in (1, 2, 3)]  # noqa: E731
    assert deviations(epsilon=1, delta=1e-6) == pytest.approx([1.44, 4.23, 7.64], abs=0.01)
    assert deviations(epsilon=0.001, delta=0.01) == pytest.approx([67.0, 38.0, 32.7], abs=0.1)


def test_what_a_mechanism_covers():
    laplace, gaussian = dpf.Laplace(1, 1.0), dpf.Gaussian(1.0, 1.0)
    assert (cubic().cells, laplace.cells, gaussian.cells) == (1, math.inf, math.inf)
    assert cubic().name == "rounded generalized Gaussian, p = 3"
    with pytest.raises(dpf.InvalidArgument, match="mechanism must have a proven mu"):
        cubic().mu_squared  # noqa: B018
    assert float(cubic(p=2).mu_squared) == pytest.approx(1 / dpf.analytic_gaussian_sigma(1, 1e-6) ** 2, rel=1e-12)
    assert cubic(0.5, 0.0, p=1).mu_squared == dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5).mu_squared


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("p must be", lambda: cubic(p=0.5)),
        ("p must be", lambda: dpf.generalized_gaussian(p=17)),
        ("p must be", lambda: dpf.GeneralizedGaussian(1.0, 1.0, p=0.0)),
        ("delta must be above 0", lambda: cubic(delta=0.0)),
        ("epsilon must be large enough", lambda: cubic(epsilon=1e-12, delta=1e-300, grid=2.0**-30)),
        ("step_scale must be", lambda: dpf.GeneralizedGaussian(1.0, 0.0, p=3.0)),
        ("delta must be", lambda: cubic().epsilon(0.0)),
        ("epsilon must be", lambda: cubic().delta(-1.0)),
        ("confidence must be", lambda: cubic().interval(1.0)),
    ],
)
def test_mechanisms_refuse_what_is_out_of_range(words, call):
    with pytest.raises(dpf.InvalidArgument, match=words):
        call()


# Releases

DATA = {"age": [5, 15, 25, 35] * 500, "patient": list(range(1000)) * 2}
CUBIC = dpf.generalized_gaussian(p=3)


@pytest.mark.slow
def test_a_release_on_every_engine_with_its_provenance(engine):
    ledger = dpf.Ledger(epsilon=3, delta=1e-5, accounting="basic")
    with ledger:
        found = engine(DATA).dp.histogram("age", bins=[0, 10, 20, 30, 40], epsilon=1, delta=1e-6, mechanism=CUBIC)
        means = engine(DATA).dp.mean("age", bounds=(0, 40), epsilon=2, delta=1e-6, mechanism=CUBIC)
    assert ledger.spent == dpf.PrivacyLoss(3.0, 2e-6)
    assert all(abs(count - 500) < 40 for count in engine.columns(found)["count"])
    assert engine.columns(found)["count_error"] == [cubic().interval(0.95)] * 4
    assert abs(engine.columns(means)["age_mean"][0] - 20) < 2
    (total,) = found.dp.provenance["statistics"]
    assert (total["noise"], total["p"]) == ("rounded generalized Gaussian, p = 3", 3.0)
    assert total["scale"] == cubic().scale
    assert len(means.dp.provenance["statistics"]) == 2


def test_a_plan_names_the_noise(engine):
    plan = engine(DATA).dp.preview.count(epsilon=1, delta=1e-6, mechanism=CUBIC)
    assert "rounded generalized Gaussian, p = 3" in repr(plan)
    assert plan.error == {"count": cubic().interval(0.95)}


PATIENTS, REPLACED = dpf.PrivacyUnit(column="patient", max_rows=2), dpf.PrivacyUnit(neighbors="replace")
PRICE = {"epsilon": 1, "delta": 1e-6}


def binned(dp, mechanism):
    return dp.histogram("age", bins=[0, 10, 20, 30, 40], mechanism=mechanism, **PRICE)


def counted(dp, mechanism):
    return dp.count(mechanism=mechanism, **PRICE)


@pytest.mark.parametrize(
    ("words", "unit", "accounting", "p", "ask"),
    [
        ("mechanism must cover the 2 cells", REPLACED, "basic", 3, binned),
        ("mechanism must have shape p = 1 or 2 for a unit", PATIENTS, "basic", 3, binned),
        ("mechanism must have shape p = 1 or 2 for a unit", PATIENTS, "basic", 3, counted),
        ("mechanism must cover the 4 cells", PATIENTS, "basic", 2, binned),
        ("mechanism must have a proven mu", None, "gdp", 3, counted),
    ],
)
def test_a_plan_refuses_where_the_guarantee_does_not_hold(engine, words, unit, accounting, p, ask):
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accounting=accounting, unit=unit)
    with ledger:
        for dp in (engine(DATA).dp, engine(DATA).dp.preview):
            with pytest.raises(dpf.InvalidArgument, match=words):
                ask(dp, dpf.generalized_gaussian(p=p))
    assert ledger.spent == dpf.PrivacyLoss(0.0)


def test_noise_made_by_hand_does_not_get_around_the_cells():
    uncovered = lambda sensitivity, loss: dpf.GeneralizedGaussian(1.0, 100.0, p=3.0)  # noqa: E731
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accounting="basic", unit=REPLACED)
    with ledger, pytest.raises(dpf.InvalidArgument, match="mechanism must cover the 2 cells"):
        binned(pl.DataFrame(DATA).dp, uncovered)


def test_one_cell_that_is_replaced_is_one_cell():
    with dpf.Ledger(epsilon=2, delta=1e-5, accounting="basic", unit=REPLACED):
        assert abs(counted(pl.DataFrame(DATA).dp, CUBIC)["count"][0] - 2000) < 40


def test_delta_must_be_named():
    with dpf.Ledger(epsilon=2), pytest.raises(dpf.MissingArgument, match="delta must be given"):
        pl.DataFrame(DATA).dp.count(epsilon=1, mechanism=CUBIC)


# Published calibrations as mechanism=


@pytest.mark.parametrize(
    ("mechanism", "scale", "words"),
    [
        (dpf.classical_gaussian, dpf.classical_gaussian_sigma(0.5, 1e-6), "classical"),
        (dpf.probabilistic_gaussian(), dpf.probabilistic_gaussian_sigma(0.5, 1e-6), "implies (epsilon, delta)"),
        (
            dpf.probabilistic_gaussian(tail="one-sided"),
            dpf.probabilistic_gaussian_sigma(0.5, 1e-6, tail="one-sided"),
            "one-sided",
        ),
        (
            dpf.generalized_gaussian(p=3, guarantee="probabilistic"),
            dpf.generalized_gaussian_scale(3, 0.5, 1e-6, guarantee="probabilistic"),
            "implies (epsilon, delta)",
        ),
    ],
)
def test_published_calibrations_release_and_say_what_they_claim(mechanism, scale, words):
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accounting="basic")
    with ledger:
        found = pl.DataFrame(DATA).dp.histogram("age", bins=[0, 20, 40], epsilon=0.5, delta=1e-6, mechanism=mechanism)
    assert ledger.spent == dpf.PrivacyLoss(0.5, 1e-6)
    (total,) = found.dp.provenance["statistics"]
    assert total["scale"] == pytest.approx(scale, rel=1e-12)
    assert words in total["calibration"]


def test_the_exact_calibrations_say_nothing_of_it():
    with dpf.Ledger(epsilon=2, delta=1e-5):
        found = pl.DataFrame(DATA).dp.count(epsilon=0.5)
    assert "calibration" not in found.dp.provenance["statistics"][0]


def test_a_published_calibration_covers_the_l2_norm_and_is_charged_by_its_noise():
    unit = dpf.PrivacyUnit(column="patient", max_rows=2, max_groups=2)
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, unit=unit)
    with ledger:
        plan = pl.DataFrame(DATA).dp.preview.histogram(
            "age", bins=[0, 10, 20, 30], epsilon=0.5, mechanism=dpf.probabilistic_gaussian()
        )
    noise = plan.parts[0].mechanism
    assert noise.sensitivity == pytest.approx(2 * math.sqrt(2))
    assert noise.mu_squared < Fraction(dpf.analytic_gaussian_sigma(0.5, 1e-5)) ** -2
    assert plan.amount[0] < Fraction(dpf.analytic_gaussian_sigma(0.5, 1e-5)) ** -2


@pytest.mark.parametrize(
    ("error", "words", "price", "mechanism"),
    [
        (dpf.InvalidArgument, "epsilon must be .* for the classical formula", (1.0, 1e-6), dpf.classical_gaussian),
        (dpf.MissingArgument, "delta must be given, above 0", (0.5, None), dpf.classical_gaussian),
        (dpf.MissingArgument, "delta must be given, above 0", (0.5, None), dpf.probabilistic_gaussian()),
    ],
)
def test_published_calibrations_are_refused_out_of_their_range(error, words, price, mechanism):
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accounting="basic")
    with ledger, pytest.raises(error, match=words):
        pl.DataFrame(DATA).dp.count(epsilon=price[0], delta=price[1], mechanism=mechanism)
    assert ledger.spent == dpf.PrivacyLoss(0.0)


def test_words_of_a_calibration_are_checked_at_once():
    with pytest.raises(dpf.InvalidArgument, match="tail must be"):
        dpf.probabilistic_gaussian(tail="upper")
    with pytest.raises(dpf.InvalidArgument, match="guarantee must be"):
        dpf.generalized_gaussian(p=3, guarantee="pure")
