"""The choice of the noise by mechanism="auto", and of epsilon by within=."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise

PEOPLE = pl.DataFrame({"age": [31, 45, 62, 7], "ward": ["A", "B", "A", "A"], "patient": [1, 1, 2, 3]})
SCHEMA = json.loads((Path(dpf.__file__).parent.parent / "docs" / "provenance.schema.json").read_text())


def basic(epsilon=100, delta=0.9, **options):
    return dpf.Ledger(epsilon=epsilon, delta=delta, accounting="basic", **options)


def noises(**options):
    return PEOPLE.dp.preview.histogram("age", bins=[0, 50, 100], **options).parts


def test_auto_takes_the_least_variance_among_all_named_noises():
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (1e-9, 1e-6, 1e-3):
            ledger = basic()
            plan = PEOPLE.dp.preview.count(epsilon=epsilon, delta=delta, mechanism="auto", ledger=ledger)
            laplace = PEOPLE.dp.preview.count(epsilon=epsilon, ledger=ledger).parts[0].mechanism.variance
            gaussian = PEOPLE.dp.preview.count(epsilon=epsilon, delta=delta, ledger=ledger).parts[0].mechanism.variance
            assert plan.parts[0].mechanism.variance <= min(laplace, gaussian)


def test_auto_is_laplace_noise_where_it_suffices_and_then_costs_no_delta():
    ledger = basic()
    result = PEOPLE.dp.count(epsilon=1, delta=1e-6, mechanism="auto", ledger=ledger)
    assert result.dp.provenance["statistics"][0]["noise"] == "discrete Laplace"
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 0.0)


def test_auto_without_a_delta_is_laplace_noise():
    plan = PEOPLE.dp.preview.count(epsilon=1, mechanism="auto", ledger=dpf.Ledger(epsilon=1))
    assert plan.parts[0].mechanism == dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    assert "without a delta" in plan.choice.why


def test_auto_is_gaussian_noise_where_one_unit_sways_many_cells():
    for groups, name in ((1, "discrete Laplace"), (50, "rounded Gaussian")):
        unit = dpf.PrivacyUnit(column="patient", max_groups=groups)
        ledger = basic(unit=unit)
        plan = PEOPLE.dp.preview.histogram(
            "age", bins=range(101), epsilon=1, delta=1e-6, mechanism="auto", ledger=ledger
        )
        assert plan.choice.name == plan.parts[0].mechanism.name == name
        assert "at full weight" in plan.choice.why
        assert f"{groups} cell" in plan.choice.why


def test_auto_is_another_shape_where_delta_is_large():
    part = noises(epsilon=0.1, delta=0.1, mechanism="auto", ledger=basic())[0]
    assert isinstance(part.mechanism, dpf.GeneralizedGaussian)
    assert part.mechanism.p > 2
    gaussian = noises(epsilon=0.1, delta=0.1, ledger=basic())[0].mechanism
    assert part.mechanism.variance < 0.85 * gaussian.variance
    assert part.mechanism.delta(0.1) <= 0.1


def test_auto_of_the_shape_of_laplace_costs_the_delta_by_which_its_noise_is_smaller():
    asked = {"epsilon": 3, "delta": 0.05, "mechanism": "auto", "checks": False}
    plan = PEOPLE.dp.preview.sum("age", bounds=(0, 1), **asked, ledger=basic())
    (noise,) = plan.noises
    assert noise.name == "rounded generalized Gaussian, p = 1"
    assert noise.pure_epsilon > 3
    assert plan.cost == dpf.PrivacyLoss(3.0, 0.05)


def test_every_number_of_a_vector_is_a_cell_that_a_row_may_change():
    asked = {"value": "A", "epsilon": 1, "delta": 0.5, "checks": False, "ledger": basic()}
    plan = PEOPLE.dp.preview.proportion("ward", **asked, mechanism="auto")
    assert "one unit may change 2 cells" in plan.choice.why
    with pytest.raises(dpf.InvalidArgument, match="mechanism must cover the 2 cells that one unit may change here"):
        PEOPLE.dp.preview.proportion("ward", **asked, mechanism=dpf.generalized_gaussian(p=1))


def test_below_a_300th_of_epsilon_no_other_shape_gains_four_percent():
    for epsilon in (1e-4, 0.01, 0.5, 2.0):
        steps, delta = 2**20, epsilon / 300
        laplace = dpf.Laplace.calibrate(sensitivity=steps, epsilon=epsilon).variance
        for p in (1.0, 1.02, 1.05, 1.1, 1.5, 2.0, 3.0):
            other = dpf.GeneralizedGaussian.calibrate(p=p, sensitivity=steps, epsilon=epsilon, delta=delta)
            assert other.variance > 0.96 * laplace


@pytest.mark.parametrize("neighbors", ["replace", "unit"])
def test_auto_offers_no_shape_that_is_not_proven(neighbors):
    unit = (
        dpf.PrivacyUnit(neighbors="replace")
        if neighbors == "replace"
        else dpf.PrivacyUnit(column="patient", max_rows=1)
    )
    plan = PEOPLE.dp.preview.histogram(
        "age", bins=[0, 50, 100], epsilon=0.1, delta=0.1, mechanism="auto", ledger=basic(unit=unit)
    )
    assert plan.parts[0].mechanism.p in (1.0, 2.0)


def test_auto_in_a_gdp_ledger_costs_what_the_call_says():
    ledger = dpf.Ledger(epsilon=2, delta=1e-6)
    plan = PEOPLE.dp.preview.count(epsilon=1, mechanism="auto", ledger=ledger)
    assert plan.choice.name == "rounded Gaussian"
    assert plan.cost == dpf.PrivacyLoss(1.0, 1e-6)
    assert plan.amount == PEOPLE.dp.preview.count(epsilon=1, ledger=ledger).amount


def test_auto_in_a_gdp_ledger_never_takes_more_than_the_share():
    ledger = dpf.Ledger(epsilon=1e5, delta=1e-6)  # so large that Laplace noise on whole numbers is smaller
    plan = PEOPLE.dp.preview.count(share=Fraction(1, 4), mechanism="auto", ledger=ledger)
    assert plan.amount[0] * 4 <= ledger.limit_amount[0]


def test_auto_shares_one_shape_among_the_statistics_of_a_call():
    plan = PEOPLE.dp.preview.agg(
        n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), epsilon=1, delta=0.1, mechanism="auto", ledger=basic()
    )
    assert len({part.mechanism.p for part in plan.parts}) == 1


@pytest.mark.parametrize("shapes", [(1, 2, 1), (2, 1, 2), (1, 1, 2), (2, 2, 1)], ids=str)
def test_noises_of_the_callers_of_several_shapes_are_refused(shapes):
    """A unit has one weight for all numbers of a call, which bounds what it adds in one norm."""
    left = iter(shapes)

    def calibration(sensitivity, loss):
        p = next(left)
        asked = {"sensitivity": sensitivity.norm(p), "epsilon": loss.epsilon, "grid": sensitivity.grid}
        return dpf.Laplace.calibrate(**asked) if p == 1 else dpf.Gaussian.calibrate(**asked, delta=loss.delta)

    asked = {"n": dpf.count(), "a": dpf.count("age"), "w": dpf.count("ward"), "mechanism": calibration}
    with pytest.raises(dpf.InvalidArgument, match="mechanism must have one shape p for all statistics of a call"):
        PEOPLE.dp.preview.agg(**asked, epsilon=1, delta=1e-6, checks=False, ledger=basic())


def test_the_provenance_says_why():
    result = PEOPLE.dp.count(epsilon=1, delta=1e-6, mechanism="auto", ledger=basic())
    facts = result.dp.provenance
    pytest.importorskip("jsonschema").validate(facts, SCHEMA)
    assert list(facts["chosen"]["variances"]) == ["discrete Laplace", "rounded Gaussian"]
    assert facts["chosen"]["why"] in repr(
        PEOPLE.dp.preview.count(epsilon=1, delta=1e-6, mechanism="auto", ledger=basic())
    )


def test_statistics_with_a_form_for_each_noise_compare_margins_of_error():
    """A variance is computed from other totals under each noise, so the variances of the noises do not compare."""

    def planned(mechanism, delta):
        return PEOPLE.dp.preview.variance(
            "age", bounds=(0, 100), epsilon=1, delta=delta, mechanism=mechanism, ledger=basic()
        )

    auto = planned("auto", 1e-6)
    least, other = (plan.error["age_var"] for plan in (planned("laplace", None), planned("gaussian", 1e-6)))
    (first, square), (second, larger) = auto.choice.variances
    assert (first, second) == ("discrete Laplace", "rounded Gaussian")
    assert np.sqrt(square / larger) == pytest.approx(least / other, rel=1e-3)
    assert (
        f"its typical margin of error is {np.sqrt(square / larger):.4g} of that of rounded Gaussian" in auto.choice.why
    )


@pytest.mark.parametrize("within", [0.5, 1, 5, 50, 12_345])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_within_is_reached_and_a_little_less_epsilon_does_not_reach_it(within, confidence):
    plan = PEOPLE.dp.preview.count(within=within, confidence=confidence)
    assert plan.parts[0].mechanism.interval(confidence) <= within
    less = PEOPLE.dp.preview.count(epsilon=float(plan.price.epsilon) * (1 - 2e-5))
    assert less.parts[0].mechanism.interval(confidence) > within


def test_within_is_found_where_the_first_epsilon_that_is_tried_has_too_much_noise():
    """The search begins at epsilon 0.5, at which noise for so many rows of a unit does not fit 64 bits."""
    frame = pl.DataFrame({"unit": [1], "group": ["0"], "x": [1.0]})
    asked = frame.dp.preview.group_by("group", keys=[str(number) for number in range(2_500)])
    many = {"max_rows": 1_000, "max_groups": 2_500, "size": 10**9, "ledger": dpf.Ledger(epsilon=1e6, unit="unit")}
    with pytest.raises(dpf.InvalidArgument, match="Write a larger epsilon"):
        asked.mean("x", bounds=(0, 100), epsilon=0.5, checks=False, **many)
    plan = asked.mean("x", bounds=(0, 100), within=5.0, checks=False, **many)
    assert 0.5 < float(plan.price.epsilon) < 1.0
    assert plan.error["x_mean"] <= 5.0


def test_within_finds_the_price_of_gaussian_noise_at_the_ledgers_delta():
    ledger = dpf.Ledger(epsilon=5, delta=1e-6)
    result = PEOPLE.dp.sum("age", bounds=(0, 100), within=500, ledger=ledger)
    facts = result.dp.provenance
    assert facts["within"] == {"error": {"age_sum": 500.0}, "confidence": 0.95, "size": None}
    assert 499.0 < result["age_sum_error"][0] <= 500.0
    assert ledger.spent.epsilon == pytest.approx(facts["cost"]["epsilon"], rel=1e-9)
    pytest.importorskip("jsonschema").validate(facts, SCHEMA)


def test_within_of_several_columns_holds_in_each_and_is_tight_in_one():
    targets = {"n": 20, "age": 1}
    plan = PEOPLE.dp.preview.agg(
        n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), within=targets, size=500, ledger=dpf.Ledger(epsilon=9)
    )
    assert all(plan.error[name] <= targets[name] for name in targets)
    statistics = {"n": dpf.count(), "age": dpf.mean("age", bounds=(0, 100))}
    less = PEOPLE.dp.preview.agg(statistics, epsilon=float(plan.price.epsilon) * (1 - 2e-5), size=500)
    assert any(less.error[name] > targets[name] for name in targets)
    assert "n within 20, age within 1" in repr(plan)
    assert "of 500" in repr(plan)


def test_within_is_what_the_noise_then_does():
    with noise.insecure_bits(7):
        result = (
            pl.DataFrame({"cell": range(4_000)})
            .dp.group_by("cell", keys=range(4_000))
            .count(within=6, confidence=0.9, denoise=None, ledger=dpf.Ledger(epsilon=9))
        )
    outside = float(np.mean(np.abs(result["count"].to_numpy() - 1.0) > 6))
    assert 0.06 < outside < 0.11  # at most 10%, apart from chance; whole numbers allow no closer fit


def test_within_a_list_previews_a_table():
    table = PEOPLE.dp.preview.count(within=[50, 5, 0.5])
    assert [plan.error["count"] for plan in table.plans] == [50.0, 5.0, 0.0]


def test_within_is_charged_like_the_epsilon_that_it_found():
    ledger = dpf.Ledger(epsilon=1)
    plan = PEOPLE.dp.preview.count(within=50, ledger=ledger)
    PEOPLE.dp.count(within=50, ledger=ledger)
    assert ledger.spent == plan.cost
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(within=1, ledger=ledger)


@pytest.mark.slow
def test_within_and_auto_together():
    plan = PEOPLE.dp.preview.count(within=5, delta=0.05, mechanism="auto", ledger=basic())
    laplace = PEOPLE.dp.preview.count(within=5, ledger=basic())
    assert plan.error["count"] <= 5
    assert plan.price.epsilon <= laplace.price.epsilon


def test_a_size_is_what_the_preview_of_a_mean_shows():
    few = PEOPLE.dp.preview.mean("age", bounds=(0, 100), epsilon=1, size=50, checks=False)
    many = PEOPLE.dp.preview.mean("age", bounds=(0, 100), epsilon=1, size=5_000, checks=False)
    assert few.error["age_mean"] > 50 * many.error["age_mean"] > 0
    assert "of 50" in repr(few)
    assert math.isclose(many.error["age_mean"], few.error_of(dict(few.query.statistics)["age_mean"], 5_000))


def test_an_error_that_costs_more_than_is_looked_at_is_refused():
    ask = PEOPLE.dp.preview
    for asked in (
        lambda: ask.mean("age", bounds=(0, 1), within=0, size=10),
        lambda: ask.sum("age", bounds=(0, 1), within=0),
    ):
        with pytest.raises(dpf.InvalidArgument, match="some epsilon up to 1e7"):
            asked()
    assert ask.mean("age", bounds=(0, 1), within=1e-6, size=10).cost.epsilon < 1e7
