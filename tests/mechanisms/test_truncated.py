"""Noise on declared output bounds: its worst privacy loss over all totals, its law, its releases and refusals."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.mechanisms.truncated import FEW, Range, clamped, least_scale
from dpframe.noise import insecure_bits

SHAPES = (1, 2, 2.5, 3, 8, 16)
BOUNDARIES = ("truncated", "inflated")
ROUNDING = 1e-14


def below(p, b, x):
    """Return P(noise <= x) from the regularized incomplete gamma function, at the current precision."""
    return below_at(mpmath.mp.prec, p, b, x)


@functools.lru_cache(maxsize=100_000)
def below_at(precision, p, b, x):
    """Return `below`; the precision is an argument, so that the cache keeps results of 15 and of 50 digits apart."""
    half = mpmath.gammainc(1 / mpmath.mpf(p), 0, (abs(mpmath.mpf(x)) / mpmath.mpf(b)) ** p, regularized=True) / 2
    return (1 + mpmath.sign(x) * 2 * half) / 2


def released(noise, total):
    """Return the probability of every answer for one total, independently of the package."""
    lowest, highest = noise.step_output
    total = min(max(total, lowest), highest)
    ends = [below(noise.p, noise.step_scale, k + mpmath.mpf(0.5) - total) for k in range(lowest - 1, highest + 1)]
    if noise.boundary == "inflated":
        ends[0], ends[-1] = mpmath.mpf(0), mpmath.mpf(1)
    return [(high - low) / (ends[-1] - ends[0]) for low, high in itertools.pairwise(ends)]


def worst_loss(noise, shift=None):
    """Return the largest log-ratio of probabilities over all answers and pairs of totals, also beyond the bounds."""
    shift = int(noise.step_sensitivity) if shift is None else shift
    lowest, highest = noise.step_output
    with mpmath.workdps(50):
        laws = {total: released(noise, total) for total in range(lowest - 2, highest + 3)}
        ratios = [
            mpmath.log(there / here)
            for total, law in laws.items()
            for other in range(total - shift, total + shift + 1)
            if other in laws
            for here, there in zip(law, laws[other], strict=True)
        ]
        return float(max(ratios))


def kind(p=2, epsilon=1.0, output=(0, 20), **rest):
    return dpf.TruncatedGeneralizedGaussian.calibrate(p=p, epsilon=epsilon, output=output, **{"sensitivity": 1, **rest})


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("p", SHAPES)
@pytest.mark.parametrize(
    ("epsilon", "output", "shift"), [(1.0, (0, 20), 1), (0.01, (-3, 9), 4), (6.0, (5, 12), 7), (1.0, (0, 60), 1)]
)
def test_no_pair_of_totals_is_told_apart_by_more_than_epsilon(p, boundary, epsilon, output, shift):
    noise = kind(p, epsilon, output, boundary=boundary, sensitivity=shift)
    found = worst_loss(noise)
    assert found <= epsilon
    span = output[1] - output[0]
    slack = 1e-12 if boundary == "inflated" or span <= FEW else max(0.15, p / span)  # rounding to steps hides a part
    assert found >= epsilon * (1 - slack)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("p", [1, 2, 3, 16])
@pytest.mark.parametrize(("span", "shift"), [(7.0, 1.0), (7.0, 3.3), (7.0, 7.0), (7.0, 20.0)])
def test_the_exact_scale_of_real_numbers_is_the_least(p, boundary, span, shift):
    """Without a grid: over fine totals and answers, the loss by its definition reaches epsilon and stays within it."""
    epsilon = 0.7
    b = dpf.truncated_generalized_gaussian_scale(p, epsilon, shift, output=(-2, -2 + span), boundary=boundary)
    totals = np.linspace(0.0, span, 141)
    move = round(min(shift, span) / span * 140)
    with mpmath.workdps(30):
        if boundary == "truncated":  # the density at the ends of the range
            inside = [below(p, b, span - q) - below(p, b, -q) for q in totals]
            logs = [-(mpmath.mpf(q / b) ** p) - mpmath.log(z) for q, z in zip(totals, inside, strict=True)]
        else:
            logs = [mpmath.log(below(p, b, -q)) for q in totals]
        found = max(abs(float(one - other)) for one, other in zip(logs, logs[move:], strict=False))
    assert found <= epsilon * (1 + 1e-12) or move * span / 140 > shift
    assert found == pytest.approx(epsilon, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3, 16])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_several_cells_are_covered_by_their_l1_norm(p, boundary):
    """Each cell loses at most epsilon times its part of the l1 sensitivity, whatever the split."""
    noise = kind(p, 1.0, (0, 30), boundary=boundary, sensitivity=12, cells=math.inf)
    for shift in (1, 3, 12):
        assert worst_loss(noise, shift) <= 1.0 * shift / 12
    assert worst_loss(noise, 1) >= 1 / 12 * (1 - (p + 1) / 25)
    assert noise.scale >= kind(p, 1.0, (0, 30), boundary=boundary, sensitivity=12).scale


def test_one_cell_is_not_enough_for_several():
    """Seeded: a scale for one cell costs more than epsilon if the sensitivity is spread over twelve cells."""
    noise = kind(3, 1.0, (0, 30), sensitivity=12)
    assert 12 * worst_loss(noise, 1) > 1.3


# The published formulas


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize(("epsilon", "output", "shift"), [(1.0, (0, 20), 1), (0.05, (-4, 4), 2), (3.0, (3, 9), 6)])
def test_published_scales_are_private_and_looser(p, epsilon, output, shift):
    exact = dpf.truncated_generalized_gaussian_scale(p, epsilon, shift, output=output)
    for formula, most in (("liu", 0.56), ("exponential", 1.0)):
        scale = dpf.truncated_generalized_gaussian_scale(p, epsilon, shift, output=output, formula=formula)
        assert scale >= exact
        noise = kind(p, epsilon, output, sensitivity=shift, formula=formula)
        assert worst_loss(noise) <= most * epsilon or p == 1
        assert worst_loss(noise) <= epsilon
        assert noise.epsilon(0.0) <= epsilon


def test_equation_seven_as_it_is_written():
    """b^p = (2 / epsilon) (sum over j = 1 ... p - 1 of C(p, j) R^(p - j) D^j + D^p), here for one number."""
    for p, epsilon, shift, ends in ((2, 0.5, 3, (0, 17)), (3, 2.0, 1, (-5, 5)), (5, 1.0, 2, (1, 40))):
        span = ends[1] - ends[0]
        summed = sum(math.comb(p, j) * span ** (p - j) * shift**j for j in range(1, p)) + shift**p
        expected = (2 / epsilon * summed) ** (1 / p)
        found = dpf.truncated_generalized_gaussian_scale(p, epsilon, shift, output=ends, formula="liu")
        assert found == pytest.approx(expected, rel=1e-14)
        assert Fraction(found) ** p >= Fraction(2 * summed) / Fraction(epsilon)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("ends", [(0, 9), (-9, 0), (-4, 7), (3, 11), (-20, -13)])
@pytest.mark.parametrize("shift", [1, 3, 7])
def test_lemma_ten_bounds_the_utility(p, ends, shift):
    """b^p = 2 D_u / epsilon: D_u is at least the largest change of the utility -abs(y - s)^p."""
    scale = dpf.truncated_generalized_gaussian_scale(p, 1.0, shift, output=ends, formula="exponential")
    totals = range(ends[0], ends[1] + 1)
    moved = max(
        abs(abs(y - s) ** p - abs(y - t) ** p) for y in totals for s in totals for t in totals if abs(s - t) <= shift
    )
    assert scale**p / 2 >= moved * (1 - ROUNDING)
    if p == 1:
        assert scale / 2 == pytest.approx(moved)


def test_equation_seven_is_not_enough_for_inflated_noise():
    """Seeded: the paper's bound, with answers that fall on the bounds; the test of the worst loss detects it."""
    for p, factor in ((2, 1.9), (3, 3.1)):
        liu = dpf.truncated_generalized_gaussian_scale(p, 0.05, 12, output=(0, 12), formula="liu")
        wrong = dpf.TruncatedGeneralizedGaussian(12.0, liu, p=p, step_output=(0, 12), boundary="inflated")
        assert worst_loss(wrong) > factor * 0.05
        assert wrong.epsilon(0.0) == pytest.approx(worst_loss(wrong), rel=1e-12)
        assert wrong.delta(0.05) > 0.0


def test_a_total_that_is_not_clamped_would_be_caught():
    """Seeded: if totals beyond the bounds are not clamped, the loss is above epsilon."""
    noise = kind(3, 1.0, (0, 20))
    with mpmath.workdps(40):
        far = [released_unclamped(noise, total) for total in (40, 41)]
        assert max(abs(float(mpmath.log(a / b))) for a, b in zip(*far, strict=True)) > 1.3


def released_unclamped(noise, total):
    ends = [below(noise.p, noise.step_scale, k + mpmath.mpf(0.5) - total) for k in range(-1, 21)]
    return [(high - low) / (ends[-1] - ends[0]) for low, high in itertools.pairwise(ends)]


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("p", SHAPES)
def test_scales_from_tiny_to_huge_prices(p, boundary):
    for span, shift in ((1.0, 1.0), (1e6, 1.0), (2.0**30, 2.0**30)):
        scales = []
        for epsilon in (1e-9, 1e-3, 1.0, 50.0, 1e5):
            found = Range(float(p), 0.0, span, shift, 0.5, boundary)
            scale = least_scale(found, epsilon)
            loss = found.loss(scale)
            assert epsilon * (1 - 1e-12) < loss <= epsilon
            scales.append(scale)
        assert scales == sorted(scales, reverse=True)


# The law that is drawn


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("p", "epsilon"), [(1, 2.0), (2, 1.0), (3, 0.05), (2, 40.0)])
def test_draws_have_the_law_that_is_proven(p, epsilon, boundary):
    noise = kind(p, epsilon, (-2, 6), boundary=boundary, sensitivity=2)
    totals = np.repeat(np.array([-9, -2, 0, 5, 99], dtype=np.int64), 40_000).reshape(5, -1)
    with insecure_bits(3):
        drawn = noise.add_noise(totals)
    for total, row in zip(totals[:, 0], drawn, strict=True):
        law = np.array([float(chance) for chance in released(noise, int(total))])
        found = np.bincount(row + 2, minlength=9)
        large = law * row.size >= 10
        statistic = ((found - law * row.size)[large] ** 2 / (law * row.size)[large]).sum()
        assert statistic < 45  # chi-square with 8 degrees of freedom: 4e-7
        assert found[~large].sum() < 100


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("p", [1, 2, 3, 8])
@pytest.mark.parametrize(("epsilon", "span"), [(0.3, 12), (3.0, 30), (60.0, 31), (2.0, 1)])
def test_variance_and_interval_are_those_of_the_worst_total(p, boundary, epsilon, span):
    noise = kind(p, epsilon, (0, span / 2), boundary=boundary, grid=0.5)
    answers = np.arange(span + 1)
    laws = {total: np.array([float(chance) for chance in released(noise, total)]) for total in range(span + 1)}
    squares = {total: ((answers - total) ** 2 * law).sum() / 4 for total, law in laws.items()}
    assert max(squares.values()) <= noise.variance * (1 + 1e-9)
    assert max(squares.values()) >= noise.variance * (1 - 1e-9)
    for confidence in (0.5, 0.95):
        width = noise.interval(confidence)
        held = [law[np.abs(answers - total) * 0.5 <= width].sum() for total, law in laws.items()]
        assert min(held) >= confidence - 1e-12
        assert (
            width <= 0.5 or min(law[np.abs(answers - q) <= 2 * width - 2].sum() for q, law in laws.items()) < confidence
        )


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_variance_has_no_step_where_the_sum_ends(boundary, monkeypatch):
    noise = dpf.TruncatedGeneralizedGaussian(1.0, 9000.0, p=2, step_output=(0, 20_000), boundary=boundary)
    summed = noise.variance
    monkeypatch.setattr("dpframe.mechanisms.truncated.LONGEST_SUM", 10)
    assert noise.variance == pytest.approx(summed, rel=1e-7)


@given(total=st.integers(-(2**63), 2**63 - 1), step=st.integers(-50, 50))
@settings(max_examples=200, deadline=None)
def test_clamping_moves_no_two_totals_apart_even_where_they_wrap(total, step):
    here = np.array([total], dtype=np.int64)
    with np.errstate(over="ignore"):
        there = here + np.int64(step)
    for bounds in ((0, 100), (-7, 8), (2**52 - 1, 2**52), (-(2**52), 2**52)):
        a, b = int(clamped(here, *bounds)[0]), int(clamped(there, *bounds)[0])
        assert abs(a - b) <= abs(step)
        assert bounds[0] <= a <= bounds[1]


def test_clamping_is_clamping_where_nothing_wraps():
    totals = np.array([-(2**62), -8, -7, 0, 8, 9, 2**62], dtype=np.int64)
    assert clamped(totals, -7, 8).tolist() == [-7, -7, -7, 0, 8, 8, 8]


def test_the_edge_where_totals_wrap_is_crossed_in_steps():
    """Seeded: numpy.clip would move a total that wraps from one bound to the other."""
    around = np.arange(-60, 60, dtype=np.int64) + np.int64(2**63 - 1)
    assert np.abs(np.diff(clamped(around, 0, 100))).max() == 1
    assert np.abs(np.diff(np.clip(around, 0, 100))).max() == 100


# The mechanism as a value


def test_curves_of_pure_privacy():
    noise = kind(2, 1.0, (0, 20))
    own = noise.epsilon(0.0)
    assert own == pytest.approx(1.0, rel=1e-12)
    assert noise.delta(1.0) == noise.delta(5) == 0.0
    curve = [noise.delta(epsilon) for epsilon in (0.0, 0.2, 0.7, 0.999)]
    assert curve == sorted(curve, reverse=True)
    assert curve[0] == pytest.approx(math.tanh(0.5), rel=1e-12)  # as for randomized response
    for delta in (1e-9, 0.1, 0.4):
        assert noise.delta(noise.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
        assert noise.delta(noise.epsilon(delta)) <= delta
    assert noise.epsilon(0.9) == 0.0
    assert noise.mu_squared == dpf.Laplace.calibrate(sensitivity=1, epsilon=own).mu_squared


def test_every_answer_of_a_pure_release_is_within_the_stated_delta():
    noise = kind(3, 1.0, (0, 12))
    with mpmath.workdps(30):
        laws = [released(noise, total) for total in range(13)]
    for epsilon in (0.0, 0.3, 0.9):
        for one, other in itertools.pairwise(laws):
            excess = sum(max(0, a - b * math.exp(epsilon)) for a, b in zip(one, other, strict=True))
            assert excess <= noise.delta(epsilon)


def test_bounds_are_rounded_inward_to_the_grid():
    noise = kind(2, 1.0, (0.3, 9.9), grid=0.5)
    assert (noise.output, noise.step_output) == ((0.5, 9.5), (1, 19))
    assert noise.name == "truncated generalized Gaussian, p = 2"
    assert kind(boundary="inflated").name == "boundary-inflated truncated generalized Gaussian, p = 2"


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("p must be 1, or from 2", lambda: kind(p=1.5)),
        ("p must be", lambda: kind(p=17)),
        ("output must be a pair", lambda: kind(output=3)),
        ("output must be two finite numbers", lambda: kind(output=(3, 3))),
        ("output must be two finite numbers", lambda: kind(output=(0, math.inf))),
        ("output must hold two or more whole steps", lambda: kind(output=(0.1, 0.9))),
        ("boundary must be", lambda: kind(boundary="cut")),
        ("step_output must be", lambda: dpf.TruncatedGeneralizedGaussian(1.0, 1.0, p=2, step_output=(3, 3))),
        ("formula must be 'exact', 'liu'", lambda: kind(formula="dwork")),
        ("formula must be 'exact', except for", lambda: kind(formula="liu", boundary="inflated")),
        ("formula must be 'exact', except for", lambda: kind(formula="liu", p=2.5)),
        ("formula must be 'exact', except for", lambda: kind(formula="exponential", cells=math.inf)),
        ("cells must be", lambda: kind(cells=2)),
        ("epsilon must be", lambda: kind(epsilon=0)),
        ("epsilon must be large enough", lambda: kind(epsilon=1e-18, p=1)),
        ("sensitivity must be", lambda: kind(sensitivity=0)),
        ("confidence must be", lambda: kind().interval(1.0)),
        ("delta must be", lambda: kind().epsilon(-0.1)),
        ("epsilon must be", lambda: kind().delta(-1.0)),
        ("p must be", lambda: dpf.truncated_generalized_gaussian(p=0, output=(0, 1))),
        ("output must be", lambda: dpf.truncated_generalized_gaussian(p=2, output=(1, 0))),
        ("epsilon must be", lambda: dpf.truncated_generalized_gaussian_scale(2, -1.0, output=(0, 1))),
        ("boundary must be", lambda: dpf.truncated_generalized_gaussian_scale(2, 1.0, output=(0, 1), boundary="x")),
    ],
)
def test_what_is_out_of_range_is_refused(words, call):
    with pytest.raises(dpf.DpframeError, match=words):
        call()


# Releases

DATA = {"age": [5, 15, 25, 35] * 500, "patient": list(range(1000)) * 2}
SQUARE = dpf.truncated_generalized_gaussian(p=2, output=(0, 3000))


def test_a_release_on_every_engine_with_its_provenance(engine):
    ledger = dpf.Ledger(epsilon=3)
    with ledger:
        found = engine(DATA).dp.histogram("age", bins=[0, 10, 20, 30, 40, 50], epsilon=1, mechanism=SQUARE)
        whole = engine(DATA).dp.count(
            epsilon=1, mechanism=dpf.truncated_generalized_gaussian(p=3, output=(0, 100), boundary="inflated")
        )
        total = engine(DATA).dp.sum("age", bounds=(0, 40), epsilon=1, mechanism=SQUARE)
    assert ledger.spent == dpf.PrivacyLoss(3.0)
    columns = engine.columns(found)
    assert list(columns) == ["age_left", "age_right", "count", "count_error"]
    assert all(0 <= count <= 3000 for count in columns["count"])
    assert 0 <= engine.columns(whole)["count"][0] <= 100
    assert 0 <= engine.columns(total)["age_sum"][0] <= 3000
    (total,) = found.dp.provenance["statistics"]
    assert total["noise"] == "truncated generalized Gaussian, p = 2"
    assert (total["output"], total["boundary"], total["formula"]) == ([0.0, 3000.0], "truncated", "exact")


def test_units_and_replacement_are_covered_by_the_l1_norm():
    replaced = dpf.PrivacyUnit(neighbors="replace")
    patients = dpf.PrivacyUnit(column="patient", max_rows=2, max_groups=2)
    for unit, norm in ((replaced, 2.0), (patients, 4.0)):
        plan = pl.DataFrame(DATA).dp.preview.histogram("age", bins=[0, 20, 40], epsilon=1, unit=unit, mechanism=SQUARE)
        (part,) = plan.parts
        assert part.mechanism.cells == math.inf
        assert part.mechanism.sensitivity == norm
    found = pl.DataFrame(DATA).dp.count(
        epsilon=200, unit=patients, mechanism=SQUARE, ledger=dpf.Ledger(epsilon=200, unit=patients)
    )
    assert abs(found["count"][0] - 2000) < 150


def test_a_ledger_with_gdp_accounting_takes_it_by_its_mu():
    ledger = dpf.Ledger(epsilon=3, delta=1e-6)
    with ledger:
        pl.DataFrame(DATA).dp.count(epsilon=0.3, mechanism=SQUARE)
    assert ledger.spent.epsilon > 1.0


def test_what_assumes_additive_noise_is_refused(engine):
    ledger = dpf.Ledger(epsilon=9)
    with ledger:
        for dp in (engine(DATA).dp, engine(DATA).dp.preview):
            with pytest.raises(dpf.InvalidArgument, match="mechanism must be additive noise for all but one count"):
                dp.mean("age", bounds=(0, 40), epsilon=1, mechanism=SQUARE)
            with pytest.raises(dpf.InvalidArgument, match="mechanism must be additive noise"):
                dp.agg(n=dpf.count(), s=dpf.sum("age", bounds=(0, 40)), epsilon=1, mechanism=SQUARE)
            with pytest.raises(dpf.InvalidArgument, match="denoise must be None for truncated"):
                dp.histogram("age", bins=[0, 20, 40], epsilon=1, mechanism=SQUARE, denoise="james-stein")
    assert ledger.spent == dpf.PrivacyLoss(0.0)


READ_OFF_SEVERAL = {
    "proportion": lambda dp, **o: dp.proportion("age", value=5, **o),
    "weighted mean": lambda dp, **o: dp.mean("age", bounds=(0, 40), weight="patient", weight_bounds=(0, 1), **o),
    "median": lambda dp, **o: dp.median("age", bounds=(0, 40), **o),
    "ecdf": lambda dp, **o: dp.ecdf("age", bins=[0, 20, 40], **o),
    "shares": lambda dp, **o: dp.histogram("age", bins=[0, 20, 40], normalize=True, **o),
    "ranges": lambda dp, **o: dp.histogram("age", bins=range(0, 41, 5), ranges=True, **o),
    "variance": lambda dp, **o: dp.variance("age", bounds=(0, 40), **o),
    "mean by group": lambda dp, **o: dp.group_by("age", keys=[5, 15]).mean("age", bounds={5: (0, 9), 15: (0, 40)}, **o),
    "sum by group": lambda dp, **o: dp.group_by("age", keys=[5, 15]).sum("age", bounds={5: (0, 9), 15: (0, 40)}, **o),
    "bounds": lambda dp, **o: dp.suggest_bounds("age", **o),
}


@pytest.mark.parametrize("asked", READ_OFF_SEVERAL)
def test_what_is_read_off_several_numbers_or_scaled_leaves_the_bounds(engine, asked):
    """Each number would be biased inward, so no 95% interval of their quotient or difference would hold."""
    ledger = dpf.Ledger(epsilon=9)
    for dp, more in ((engine(DATA).dp, {"ledger": ledger}), (engine(DATA).dp.preview, {})):
        with pytest.raises(dpf.InvalidArgument, match="mechanism must be additive noise for all but one count or sum"):
            READ_OFF_SEVERAL[asked](dp, epsilon=1, mechanism=SQUARE, **more)
    assert ledger.spent == dpf.PrivacyLoss(0.0)


def test_one_count_or_sum_stays_within_the_bounds(engine):
    dp, asked = engine(DATA).dp, {"epsilon": 1, "mechanism": SQUARE, "ledger": dpf.Ledger(epsilon=9), "checks": False}
    for found in (
        dp.count("age", **asked),
        dp.count(weight="patient", weight_bounds=(0, 1), **asked),
        dp.sum("age", bounds=(0, 1), **asked),
        dp.histogram("age", bins=[0, 20, 40], **asked),
    ):
        values = engine.columns(found)[found.dp.provenance["columns"][-2]]
        assert all(0.0 <= value <= 3_000.0 for value in values)


def test_noise_made_by_hand_is_checked():
    few = lambda sensitivity, loss: dpf.TruncatedGeneralizedGaussian(1.0, 2.0, p=2, step_output=(0, 50))  # noqa: E731
    with dpf.Ledger(epsilon=9), pytest.raises(dpf.InvalidArgument, match="mechanism must cost at most epsilon 1"):
        pl.DataFrame(DATA).dp.count(epsilon=1, mechanism=few)
    one_cell = lambda sensitivity, loss: kind(2, 1.0, (0, 50), sensitivity=2)  # noqa: E731
    replaced = dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit(neighbors="replace"))
    with replaced, pytest.raises(dpf.InvalidArgument, match="mechanism must cover the 2 cells"):
        pl.DataFrame(DATA).dp.histogram("age", bins=[0, 20, 40], epsilon=1, mechanism=one_cell)


def test_an_error_can_be_asked_for():
    plan = pl.DataFrame(DATA).dp.preview.count(
        within=40, mechanism=dpf.truncated_generalized_gaussian(p=2, output=(0, 500))
    )
    assert plan.error["count"] <= 40
