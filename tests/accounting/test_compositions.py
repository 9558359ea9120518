"""Composition theorems, privacy loss distributions, and one workload under all accountings."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import check, inputs, published

import dpframe as dpf
from assurance import accounting
from dpframe import Gaussian, GeneralizedGaussian, InvalidArgument, Laplace, PrivacyLoss
from dpframe.accounting import PureLoss
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.thresholded import of_noise
from dpframe.planning.auto import tightened

DELTA = 1e-6
CURVES = {
    "gaussian": Gaussian(1.0, 3.0),
    "wide gaussian": Gaussian(1.0, 300.0),
    "laplace": Laplace(1, 2.0),
    "laplace of many steps": Laplace(2**30, 2.0**32),
    "laplace, a large epsilon": Laplace(7, 1.3),
    "p = 1": GeneralizedGaussian(1.0, 2.0, p=1.0),
    "p = 1.4": GeneralizedGaussian(1.0, 3.0, p=1.4),
    "p = 3": GeneralizedGaussian(1.0, 8.0, p=3.0),
    "p = 12": GeneralizedGaussian(1.0, 20.0, p=12.0),
}


def composed(mechanisms, delta=DELTA):
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    from dpframe.accounting.comparison import composed_epsilon

    return composed_epsilon(mechanisms, delta)


# Theorems


@pytest.mark.slow
@published("optimal_composition")
def test_optimal_composition_as_published(row):
    given_inputs = inputs(row)
    if row["quantity"] == "total_epsilon":
        own = (given_inputs["epsilon"], given_inputs["delta"], given_inputs["k"])
        check(row, dpf.optimal_composition(*own, total_delta=given_inputs["total_delta"]).epsilon)
    elif row["quantity"] == "per_query_epsilon":
        epsilon = 1e-9 if row["expected"] == "none" else float(row["expected"])
        own = {"count": given_inputs["k"], "total_delta": given_inputs["total_delta"]}
        if row["expected"] == "none":
            with pytest.raises(InvalidArgument, match="total_delta"):
                dpf.optimal_composition(epsilon, given_inputs["delta"], **own)
            return
        most = given_inputs["total_epsilon"] * (1 + 1e-9)
        assert dpf.optimal_composition(epsilon - 1e-6, given_inputs["delta"], **own).epsilon <= most
        assert dpf.optimal_composition(epsilon * 1.1, given_inputs["delta"], **own).epsilon > most
    else:
        releases = [Laplace.calibrate(sensitivity=1, epsilon=given_inputs["epsilon"])] * given_inputs["k"]
        found = composed(releases, float(row["expected"]))  # the same pure releases, by their privacy loss distribution
        assert given_inputs["total_epsilon"] <= found <= given_inputs["total_epsilon"] + 1e-4


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 2), st.sampled_from([0.0, 1e-9, 1e-4]), st.integers(1, 40), st.sampled_from([1e-3, 0.01, 0.2]))
def test_optimal_composition_from_its_definition(epsilon, delta, count, total):
    total = max(total, 2 * delta * count)
    found = dpf.optimal_composition(epsilon, delta, count, total_delta=total)
    with mpmath.workdps(60):
        e = mpmath.mpf(repr(epsilon))
        best = None
        for i in range(count // 2 + 1):
            terms = [
                mpmath.binomial(count, j) * (mpmath.exp((count - j) * e) - mpmath.exp((count - 2 * i + j) * e))
                for j in range(i)
            ]
            own = mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** count
            if 1 - (1 - mpmath.mpf(repr(delta))) ** count * (1 - own) <= mpmath.mpf(repr(total)):
                best = (count - 2 * i) * e
    assert found.epsilon == pytest.approx(float(best), rel=1e-14)
    assert found.delta == total


def test_advanced_composition_is_its_formula_rounded_up():
    for epsilon, delta, count, slack in [(0.1, 0.0, 100, 1e-6), (0.01, 1e-9, 5000, 1e-5), (1.0, 1e-8, 3, 0.1)]:
        found = dpf.advanced_composition(epsilon, delta, count, slack=slack)
        with mpmath.workdps(40):
            e, s = mpmath.mpf(repr(epsilon)), mpmath.mpf(repr(slack))
            exact = e * mpmath.sqrt(2 * count * mpmath.log(1 / s)) + count * e * mpmath.expm1(e)
            assert exact <= found.epsilon <= exact * (1 + 1e-15)
        assert Fraction(repr(found.delta)) >= count * Fraction(repr(delta)) + Fraction(repr(slack))
        assert dpf.optimal_composition(epsilon, delta, count, total_delta=found.delta).epsilon <= found.epsilon


def test_many_releases_take_no_time_and_little_memory():
    found = dpf.optimal_composition(0.01, 1e-10, 20_000, total_delta=1e-5)
    assert 6.0 < found.epsilon < 8.5
    with pytest.raises(InvalidArgument, match="total_delta"):
        dpf.optimal_composition(0.01, 1e-3, 20_000, total_delta=1e-5)


@pytest.mark.parametrize("epsilon", [1e-30, 1e-55, 1e-200])
def test_tiny_epsilons_do_not_vanish(epsilon):
    """One release alone has delta(0) = tanh(epsilon / 2), far above this delta, so the epsilons must add up."""
    whole = dpf.optimal_composition(epsilon, 0, 10, total_delta=epsilon / 1e15).epsilon
    assert whole / epsilon == pytest.approx(10)
    assert dpf.optimal_composition(epsilon, 0, 10, total_delta=epsilon * 1e15).epsilon == 0


def test_a_delta_that_cannot_be_divided_leaves_the_other_rows():
    rows = dpf.compare_accounting([Gaussian(1.0, 3.0)] * 3, delta=5e-307).rows
    assert [row.accounting for row in rows if row.epsilon is not None] == ["basic", "gdp", "rdp"]
    assert rows[1].note == rows[2].note == "a part of delta would be below all floats"


def test_one_release_is_itself():
    assert dpf.optimal_composition(0.7, 1e-9, 1, total_delta=1e-9) == PrivacyLoss(0.7, 1e-9)


def test_theorems_on_equal_releases_are_not_applied_where_only_the_first_are_equal():
    small, large = (Laplace.calibrate(sensitivity=1, epsilon=epsilon) for epsilon in (0.1, 2))
    for row in dpf.compare_accounting([small, small, large], delta=DELTA).rows[1:3]:
        assert (row.epsilon, row.note) == (None, "for equal releases alone")


def test_a_workload_says_how_many_releases_it_does_not_name():
    noises = [Laplace.calibrate(sensitivity=1, epsilon=epsilon) for epsilon in (0.1, 0.2, 0.3, 0.4, 0.4)]
    workload = dpf.compare_accounting(noises, delta=DELTA).workload
    assert workload.count("1 x ") == 3
    assert workload.endswith("; 2 more")


# Curves in double precision


@pytest.mark.parametrize("noise", CURVES.values(), ids=CURVES)
def test_curves_are_those_of_forty_digits(noise):
    epsilons = np.array([0.0, 1e-4, 0.03, 0.1, 0.3, 0.45, 1.0, 2.0, 5.0])
    exact = np.array([noise.delta(epsilon) for epsilon in epsilons])
    assert noise.deltas(epsilons) == pytest.approx(exact, rel=1e-7, abs=1e-15)
    mirrored = -np.expm1(-epsilons) + np.exp(-epsilons) * exact
    assert noise.deltas(-epsilons) == pytest.approx(mirrored, rel=1e-10)


@pytest.mark.parametrize("epsilon", [5.0, 715.0, 760.0, 5e4])
def test_curves_of_pure_noise_hold_where_exponentials_overflow(epsilon):
    pure = PureLoss(epsilon)
    points = epsilon - np.array([3.0, 1.0, 0.5, 0.0])
    assert pure.deltas(points) == pytest.approx([pure.delta(at) for at in points], rel=1e-9)


def test_losses_that_are_too_large_for_a_distribution_are_refused():
    pytest.importorskip("dp_accounting")
    assert 1_379 < composed([Laplace.calibrate(sensitivity=1, epsilon=690)] * 2) < 1_380.1
    large = [Laplace.calibrate(sensitivity=1, epsilon=760)]
    with pytest.raises(InvalidArgument, match="epsilon must be at most 700 in each noise"):
        composed(large)
    row = dpf.compare_accounting(large, delta=DELTA).rows[-1]
    assert (row.accounting, row.epsilon) == ("pld", None)
    assert row.note == "for a delta of at least 1e-12, and losses of at most 700"


# Privacy loss distributions


@pytest.mark.parametrize(
    ("mu", "count", "delta"),
    [
        (0.01, 1000, 1e-6), (0.01, 1000, 1e-10), (1.0, 1, 1e-6), (0.5, 4, 1e-9), (3.0, 2, 1e-6), (1e-4, 10, 0.01),
        (0.23, 100, 1e-12), (0.22, 1_223, 1e-11), (0.05, 20_000, 2e-10), (0.033, 100_000, 1e-9),
    ],
)  # fmt: skip
def test_212_composed_gaussians_are_never_below_their_closed_form(mu, count, delta):
    noise = Gaussian(1.0, 1 / mu)
    exact = gaussian_curve.epsilon_of_mu(noise.mu * math.sqrt(count) * (1 - 1e-15), delta)
    given_away = (2e-14 + 4e-15 * count) / delta
    assert exact <= composed([noise] * count, delta) <= exact * (1 + 1e-4 + 0.1 * given_away)


def test_212_of_so_many_noises_that_double_precision_decides_nothing_is_told():
    """Without a rounding allowance for each noise, the stated epsilon would hold only at up to four times delta."""
    pytest.importorskip("dp_accounting")
    noise = Gaussian(1.0, 2_000.0)
    with pytest.raises(InvalidArgument, match=r"delta must be at least 8e-10 .* of 100,000 noises, not 7e-10"):
        composed([noise] * 100_000, 7e-10)
    row = dpf.compare_accounting([noise] * 1_000, delta=7e-12).rows[-1]
    assert (row.epsilon, row.note) == (None, "for a delta of at least 8e-12, and losses of at most 700")


def test_noises_that_cannot_be_told_together_keep_their_parts():
    pytest.importorskip("dp_accounting")
    gaussian, pure = Gaussian.calibrate(sensitivity=1, epsilon=0.01, delta=1e-15), Laplace(2**30, 2.0**30)
    noises = (*[gaussian] * 100, pure)
    assert tightened(noises, Fraction(2), Fraction(1, 10**13)) == noises
    assert tightened(noises, Fraction(2), Fraction(1, 10**11)) != noises


@pytest.mark.parametrize("noise", CURVES.values(), ids=CURVES)
def test_one_release_is_its_own_curve(noise):
    exact = noise.epsilon(DELTA)
    assert exact * (1 - 1e-12) <= composed([noise]) <= exact * (1 + 1e-4) + 1e-9


def test_two_releases_by_brute_force():
    """Two discrete Laplace releases: delta is the hockey-stick divergence, summed over all pairs of outcomes."""
    noises = [Laplace(1, 2.0), Laplace(2, 1.5)]
    with mpmath.workdps(40):
        laws = []
        for noise in noises:
            rate = 1 / mpmath.mpf(noise.step_scale)
            steps, shift = range(-60, 60), noise.step_sensitivity
            total = (1 - mpmath.exp(-rate)) / (1 + mpmath.exp(-rate))
            laws.append([(total * mpmath.exp(-rate * abs(k)), rate * (abs(k - shift) - abs(k))) for k in steps])
        epsilon = 1.2
        both = [(p * q, a + b) for p, a in laws[0] for q, b in laws[1]]
        delta = float(mpmath.fsum(p * (1 - mpmath.exp(epsilon - loss)) for p, loss in both if loss > epsilon))
    assert 1.2 <= composed(noises, delta) <= 1.2 + 1e-3


def test_against_distributions_of_dp_accounting():
    peer = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    event = {"value_discretization_interval": 1e-3}
    theirs = (
        peer.from_gaussian_mechanism(2.0, **event)
        .self_compose(3)
        .compose(peer.from_discrete_laplace_mechanism(0.5, 1, **event).self_compose(2))
    )
    ours = composed([Gaussian(1.0, 2.0)] * 3 + [Laplace(1, 2.0)] * 2)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=1e-3)


@published("pld_composition")
def test_published_compositions(row):
    given_inputs = inputs(row)
    if given_inputs["events"] == "gaussian sigma=sqrt(3) x3" and row["quantity"] == "delta":
        found = composed([Gaussian(1.0, math.sqrt(3.0))] * 3, float(row["expected"]))
        assert found == pytest.approx(given_inputs["epsilon"], abs=1e-4)
    elif given_inputs["events"].startswith("laplace"):
        noises = [GeneralizedGaussian(1.0, 1.0, p=1.0)] * 3 + [GeneralizedGaussian(1.0, 2.0, p=1.0)] * 2
        with pytest.raises(InvalidArgument, match="1e-12"):  # double precision cannot resolve the row's 1e-14
            composed(noises, given_inputs["delta"])
        assert composed(noises, 1e-12) == pytest.approx(float(row["expected"]), abs=1e-2)
    else:
        pytest.skip("subsampled releases and bare (epsilon, delta) pairs are no noise of dpframe")


@published("composition_noise")
def test_published_noise_for_a_composition(row):
    """The scale that another library found for k releases keeps (epsilon, delta) here; slightly less noise does not."""
    given_inputs, scale = inputs(row), float(row["expected"])
    count, delta, sensitivity = given_inputs["num_queries"], given_inputs["delta"], given_inputs["sensitivity"]
    make = {
        "gaussian_sigma": lambda one: Gaussian(float(sensitivity), one),
        "laplace_scale": lambda one: GeneralizedGaussian(float(sensitivity), one, p=1.0),
    }.get(row["quantity"], lambda one: Laplace(sensitivity, 1 / one))
    larger, smaller = (1.01, 0.98) if not row["quantity"].startswith("discrete") else (0.9, 1.12)
    if delta == 0:
        pure = count * sensitivity * (scale if row["quantity"].startswith("discrete") else 1 / scale)
        assert pure == pytest.approx(given_inputs["epsilon"], rel=1e-9)
        return
    assert composed([make(scale * larger)] * count, delta) <= given_inputs["epsilon"] * (1 + 1e-6)
    assert composed([make(scale * smaller)] * count, delta) > given_inputs["epsilon"]


# Side by side


def epsilons_of(workload, delta=DELTA):
    return {row.accounting: row.epsilon for row in dpf.compare_accounting(workload, delta=delta).rows}


def test_gaussian_releases_side_by_side():
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    noise = Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=DELTA)
    found = epsilons_of([noise] * 10)
    assert found["gdp"] <= found["pld"] <= found["gdp"] * (1 + 1e-4)
    assert found["pld"] < found["rdp"] < found["optimal"] <= found["advanced"]
    assert found["rdp"] < found["basic"]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("factor", [1.001, 1.3, 3.0, 30.0])
@pytest.mark.parametrize("count", [1, 5])
def test_236_keys_that_are_found_take_their_delta_from_every_accounting(count, factor, pure):
    """No epsilon covers a key that is shown, so each accounting has only the rest of delta for the noise."""
    make = dpf.Laplace if pure else dpf.Gaussian
    noise = make.calibrate(sensitivity=1, epsilon=1, **({} if pure else {"delta": 1e-6}))
    found = of_noise(noise, np.array([1]), Fraction(1, 10**6))
    delta = count * found.infinite * factor
    rows = dpf.compare_accounting([found] * count, delta=delta).rows[:3]
    assert count > 1 or all(row.epsilon >= found.epsilon(delta) for row in rows)
    left = float(Fraction(delta) - count * Fraction(found.infinite))
    alone = dpf.compare_accounting([noise] * count, delta=left).rows[:3]  # pure noise is read without a delta
    assert pure or all(row.epsilon >= other.epsilon * (1 - 1e-9) for row, other in zip(rows, alone, strict=True))
    below = dpf.compare_accounting([found] * count, delta=count * found.infinite * 0.99).rows
    assert all(row.epsilon is None for row in below)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("delta", [1e-9, 1e-6])
def test_optimal_composition_is_never_above_adding_up(count, delta):
    """With all of delta in the releases it is adding up: the split in which composition itself gets nothing."""
    for noise in (
        dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=delta),
        dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=1, epsilon=0.5, delta=delta),
    ):
        basic, _, optimal = dpf.compare_accounting([noise] * count, delta=delta).rows[:3]
        assert optimal.epsilon <= basic.epsilon


def test_pure_releases_side_by_side():
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    found = epsilons_of([Laplace.calibrate(sensitivity=1, epsilon=0.1)] * 100)
    assert found["pld"] <= found["optimal"] + 1e-9  # the losses of randomized response, the worst case
    assert found["optimal"] <= found["advanced"] < found["basic"] == pytest.approx(10.0)
    assert found["pld"] < found["rdp"] < found["gdp"]


def test_mixed_noise_side_by_side():
    people = pl.DataFrame({"age": [31, 45]})
    plan = people.dp.preview.agg(n=dpf.count(), s=dpf.sum("age", bounds=(0, 120)), epsilon=0.5, delta=DELTA)
    noises = [plan, Laplace.calibrate(sensitivity=1, epsilon=0.1), GeneralizedGaussian(1.0, 20.0, p=3.0)]
    compared = dpf.compare_accounting(noises, delta=DELTA)
    found = {row.accounting: row.epsilon for row in compared.rows}
    assert found["advanced"] is None
    assert found["gdp"] is None
    assert 0.5 < found["rdp"] < found["basic"]
    assert compared.to_frame().columns == ["accounting", "epsilon", "delta", "note"]
    assert compared.to_frame().height == 6
    assert "has no proven mu" in repr(compared)
    assert "has no proven mu" in compared._repr_html_()
    assert "3 x" not in compared.workload


def test_the_chart_names_every_accounting_that_applies():
    pytest.importorskip("altair")
    compared = dpf.compare_accounting([Laplace.calibrate(sensitivity=1, epsilon=0.1)] * 5, delta=1e-300)
    drawn = str(compared.plot().to_dict())
    for row in compared.rows:
        assert (f"'{row.accounting}'" in drawn) == (row.epsilon is not None)
    assert compared.rows[-1].epsilon is None  # pld, since delta is below its least delta


def test_without_the_extra_pld_says_what_it_needs(monkeypatch):
    from dpframe.accounting import comparison

    def gone():
        raise ImportError(comparison.NEEDS_ACCOUNTING)

    monkeypatch.setattr(comparison, "_dp_accounting", gone)
    row = dpf.compare_accounting([Laplace(1, 2.0)], delta=DELTA).rows[-1]
    assert (row.epsilon, row.note) == (
        None,
        "privacy loss distributions need dp-accounting: pip install 'dpframe[accounting]'",
    )


def test_a_share_of_the_comparison_with_dp_accounting():
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    for name, differences in accounting.measured(4, random.Random(7)).items():
        low, high = accounting.BOUNDS[name]
        assert low <= min(differences) <= max(differences) <= high, name
