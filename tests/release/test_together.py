"""Calls that are calibrated together: one cost, one charge, and never more noise than if the cost were divided."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.accounting.comparison import composed_epsilon
from dpframe.display.report import caption_of
from dpframe.exact import down
from dpframe.mechanisms import gaussian_curve
from dpframe.planning.auto import tightened
from dpframe.release import together

PEOPLE = pl.DataFrame({"age": [31, 45, 62, 7], "ward": ["A", "B", "A", "C"], "cost": [1.0, 2.0, 3.0, 4.0]})
VISITS = pl.DataFrame({"ward": ["A", "A", "B"], "minutes": [10.0, 20.0, 30.0]})
PREVIEW = PEOPLE.dp.preview
DELTA = 1e-6


def scales(joint):
    return {name: plan.parts[0].mechanism.scale for name, plan in joint.plans.items()}


def noises(joint):
    return [part.mechanism for plan in joint.plans.values() for part in plan.parts]


def mixed_plans():
    return {
        "laplace": PREVIEW.histogram("age", bins=[0, 50, 100], mechanism="laplace"),
        "gaussian": PREVIEW.group_by("ward", keys=["A", "B"]).count(mechanism="gaussian", delta=DELTA),
        "p = 3": PREVIEW.count(mechanism=dpf.generalized_gaussian(p=3), delta=DELTA),
    }


# Amount of noise


@pytest.mark.parametrize("delta", [None, DELTA])
def test_a_choice_does_not_give_the_reasons_of_another_cost(delta):
    plans = {
        "top": PREVIEW.top_k("ward", k=1, categories=["A", "B", "C"], epsilon=0.01),
        "middle": PREVIEW.median("age", bounds=(0, 100), mechanism="exponential", epsilon=0.01),
    }
    assert "was chosen" in plans["top"].query.statistics[0][1].why
    assert "within" in plans["middle"].query.statistics[0][1].why
    with dpf.Ledger(epsilon=9, delta=1e-3, accounting="basic") as ledger:
        found = dpf.release_together(plans, epsilon=2, delta=delta, ledger=ledger)
    assert found["top"].dp.provenance["top"]["why"] == together.OF_PREVIEW
    assert found["middle"].dp.provenance["measures"]["age_median"]["why"] == together.OF_PREVIEW


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_the_checks_of_every_call_are_charged(accounting):
    plans = {"s": PREVIEW.sum("age", bounds=(0, 100)), "m": PREVIEW.mean("cost", bounds=(0, 4))}
    ledger = dpf.Ledger(epsilon=2, delta=DELTA, accounting=accounting)
    joint = dpf.plan_together(plans, epsilon=1, ledger=ledger)
    assert all(plan.checks is not None for plan in joint.plans.values())
    drawn = [noise for plan in joint.plans.values() for noise in plan.drawn]
    assert len(drawn) == len(noises(joint)) + 2
    assert joint.amount == ledger.accounting.charge(joint.plans["s"].price, None, tuple(drawn))
    dpf.release_together(plans, epsilon=1, ledger=ledger)
    assert ledger._store.last().total == joint.amount


@pytest.mark.parametrize("size", [100_000, 10])
def test_weights_stand_where_checks_that_would_tell_nothing_are_left_out(size):
    """Checks of ten values would be too noisy: the calls are planned again without them, with the same weights."""
    plans = {"m": PREVIEW.mean("age", bounds=(0, 10), size=size), "n": PREVIEW.count()}
    joint = dpf.plan_together(plans, epsilon=1.0, weights={"m": 9})
    shares = {name: sum(part.share for part in plan.parts) for name, plan in joint.plans.items()}
    assert (joint.plans["m"].checks is None) == (size == 10)
    assert shares["n"] == pytest.approx(0.1)
    assert shares["m"] == pytest.approx(0.9 if size == 10 else 0.855)


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1, 1e-6), (10, 1e-9)])
def test_pure_and_gaussian_noise_together_cost_what_was_typed(accounting, epsilon, delta):
    """Under rdp accounting they once cost up to 28% more, so a ledger with exactly this limit refused them."""
    plans = {
        "laplace": PREVIEW.histogram("age", bins=[0, 50, 100], mechanism="laplace"),
        "gaussian": PREVIEW.group_by("ward", keys=["A", "B"]).count(mechanism="gaussian", delta=delta),
    }
    ledger = dpf.Ledger(epsilon=epsilon, delta=delta, accounting=accounting)
    joint = dpf.plan_together(plans, epsilon=epsilon, ledger=ledger)
    assert 0.97 * epsilon <= joint.cost.epsilon <= epsilon
    reserve = dpf.Ledger(epsilon=epsilon, delta=2 * delta, keys_delta=delta, accounting=accounting)
    assert dpf.plan_together(plans, epsilon=epsilon, delta=delta, ledger=reserve).cost.epsilon <= epsilon
    assert len(dpf.release_together(plans, epsilon=epsilon, ledger=ledger)) == 2
    assert ledger.spent.epsilon == pytest.approx(joint.cost.epsilon, rel=1e-9)


@pytest.mark.parametrize("chosen", ["top_k", "median"])
def test_a_choice_and_gaussian_noise_together_cost_what_was_typed(chosen):
    """A choice is always pure: under rdp accounting the two once cost 1.13 times the epsilon of the call."""
    choices = {
        "top_k": PREVIEW.top_k("ward", k=1, categories=["A", "B", "C"]),
        "median": PREVIEW.median("age", bounds=(0, 100), step=1, mechanism="exponential"),
    }
    plans = {"count": PREVIEW.count(), "choice": choices[chosen]}
    ledger = dpf.Ledger(epsilon=1, delta=DELTA, accounting="rdp")
    joint = dpf.plan_together(plans, epsilon=1, ledger=ledger)
    assert {part.mechanism.exact_mu for plan in joint.plans.values() for part in plan.parts} == {True, False}
    assert 0.97 <= joint.cost.epsilon <= 1
    assert len(dpf.release_together(plans, epsilon=1, ledger=ledger)) == 2


def test_four_equal_gaussian_results_have_half_the_noise_of_the_price_divided_by_four():
    """The noise is 1.96 times smaller, and exactly the closed form for one Gaussian vector of all four."""
    joint = dpf.plan_together({name: PREVIEW.count() for name in "abcd"}, epsilon=1, delta=DELTA)
    naive = dpf.analytic_gaussian_sigma(1 / 4, DELTA / 4)
    for scale in scales(joint).values():
        assert naive / scale >= 1.9
        assert scale == pytest.approx(2 * dpf.analytic_gaussian_sigma(1, DELTA), rel=1e-12)
    whole = sum(noise.mu_squared for noise in noises(joint))
    most = Fraction(gaussian_curve.largest_mu(1.0, down(Fraction(1, 10**6)))) ** 2
    assert most * (1 - Fraction(1, 10**12)) <= whole <= most


@pytest.mark.parametrize("epsilon", [1_440, 2_200, 90])
def test_together_of_any_epsilon_they_are_planned_and_cost_no_more(epsilon):
    """At a large epsilon, losses do not fit double precision: each call keeps the noise of its part of the cost."""
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    joint = dpf.plan_together(mixed_plans(), epsilon=epsilon, delta=DELTA, weights={"p = 3": 0.01})
    assert joint.cost.epsilon <= epsilon


def test_agg_and_released_together_are_the_same():
    agg = PREVIEW.agg(n=dpf.count(), s=dpf.sum("cost", bounds=(0, 5)), epsilon=1, delta=DELTA, checks=False)
    plans = {"n": PREVIEW.count(), "s": PREVIEW.sum("cost", bounds=(0, 5), checks=False)}
    assert [part.mechanism for part in agg.parts] == noises(dpf.plan_together(plans, epsilon=1, delta=DELTA))


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from(["count", "mean", "histogram"]), st.floats(0.1, 10)), min_size=1, max_size=5),
    st.sampled_from([0.01, 0.5, 3.0]),
    st.sampled_from([None, 1e-9, 1e-4]),
)
def test_never_more_noise_than_the_price_divided_by_the_weights(kinds, epsilon, delta):
    make = {
        "count": PREVIEW.count,
        "mean": lambda **price: PREVIEW.mean("cost", bounds=(0, 5), **price),
        "histogram": lambda **price: PREVIEW.histogram("age", bins=[0, 50, 100], **price),
    }
    plans = {str(place): make[kind](epsilon=9) for place, (kind, _) in enumerate(kinds)}
    weights = {str(place): weight for place, (_, weight) in enumerate(kinds)}
    joint = dpf.plan_together(plans, epsilon=epsilon, delta=delta, weights=weights)
    total = sum(Fraction(repr(weight)) for weight in weights.values())
    for place, (kind, weight) in enumerate(kinds):
        part = Fraction(repr(weight)) / total
        price = {"epsilon": Fraction(repr(epsilon)) * part} | (
            {} if delta is None else {"delta": Fraction(repr(delta)) * part}
        )
        alone = make[kind](**price)
        for ours, theirs in zip(joint.plans[str(place)].parts, alone.parts, strict=True):
            assert ours.mechanism.scale <= theirs.mechanism.scale * (1 + 1e-12)
    assert joint.cost == dpf.PrivacyLoss(epsilon, delta or 0.0)


@pytest.mark.slow
def test_mixed_noise_costs_exactly_its_price():
    epsilon = 1.0
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    from dpframe.accounting.comparison import composed_epsilon

    joint = dpf.plan_together(mixed_plans(), epsilon=epsilon, delta=DELTA)
    third = Fraction(repr(epsilon)) / 3
    naive = {
        "laplace": 1 / float(third),
        "gaussian": dpf.analytic_gaussian_sigma(float(third), DELTA / 3),
        "p = 3": dpf.generalized_gaussian_scale(3, float(third), DELTA / 3),
    }
    gains = [naive[name] / scale for name, scale in scales(joint).items()]
    assert min(gains) > 1.2
    assert epsilon * (1 - 1e-4) <= composed_epsilon(noises(joint), DELTA) <= epsilon
    less = tuple(type(noise)(**{**vars(noise), "step_scale": noise.step_scale * 0.99}) for noise in noises(joint))
    assert composed_epsilon(less, DELTA) > epsilon  # noise that is 1% too small would be detected
    assert joint.cost == dpf.PrivacyLoss(epsilon, DELTA)


def test_many_pure_results_with_a_delta_have_less_noise():
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    plans = {str(place): PREVIEW.count(mechanism="laplace") for place in range(40)}
    assert set(scales(dpf.plan_together(plans, epsilon=1)).values()) == {40.0}
    with_delta = set(scales(dpf.plan_together(plans, epsilon=1, delta=DELTA)).values())
    assert len(with_delta) == 1
    assert 20.0 < with_delta.pop() < 35.0


def test_agg_calibrates_any_noise_together():
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    noise = dpf.generalized_gaussian(p=3)
    plan = PREVIEW.agg(a=dpf.count("age"), b=dpf.count("ward"), epsilon=1, delta=DELTA, mechanism=noise)
    alone = dpf.generalized_gaussian_scale(3, 0.5, DELTA / 2)
    assert alone / plan.parts[0].mechanism.scale > 1.2


def test_a_call_again_takes_up_what_was_calibrated_together(monkeypatch):
    """An audit repeats one call hundreds of times, and each calibration once took seconds."""
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    noise = dpf.generalized_gaussian(p=3)

    def planned():
        return PREVIEW.agg(a=dpf.count("age"), b=dpf.count("ward"), epsilon=0.7, delta=DELTA, mechanism=noise)

    first = planned()
    monkeypatch.delattr("dpframe.planning.auto.composed_epsilon")
    assert planned().parts == first.parts


def test_noise_that_is_private_already_is_never_enlarged():
    few = (dpf.Gaussian(1.0, 1000.0), dpf.Gaussian(1.0, 1000.0))
    assert all(
        ours.scale < theirs.scale for ours, theirs in zip(tightened(few, 1, Fraction(1, 10**6)), few, strict=True)
    )
    full = (dpf.Laplace(1, 2.0), dpf.Laplace(1, 2.0))
    assert tightened(full, Fraction(1), Fraction(0)) == full


def test_pure_noise_that_delta_alone_covers_is_calibrated_together():
    """Two shifts of 1/200 are covered by the delta of 0.01, so together they need no epsilon at all."""
    pytest.importorskip("dp_accounting", reason="the extra accounting")
    both = (dpf.Laplace(1, 200.0), dpf.Laplace(1, 200.0))
    assert composed_epsilon(both, 0.01) == 0.0
    sharp = tightened(both, Fraction(1, 100), Fraction(1, 100))
    assert 0.0095 < composed_epsilon(sharp, 0.01) <= 0.01


# Weights


def test_a_weight_of_four_halves_gaussian_noise():
    joint = dpf.plan_together(
        {"n": PREVIEW.count(), "m": PREVIEW.count("age")}, epsilon=1, delta=DELTA, weights={"n": 4}
    )
    found = scales(joint)
    assert found["m"] / found["n"] == pytest.approx(2.0, rel=1e-12)
    agg = PREVIEW.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, delta=DELTA, weights={"n": 4})
    assert [part.mechanism for part in agg.parts] == noises(joint)
    assert [part.share for part in agg.parts] == [0.8, 0.2]


def test_a_plan_keeps_its_weights_whatever_the_caller_does_with_the_dict():
    weights = {"n": 9, "m": 1}
    plan = PREVIEW.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights=weights)
    weights["m"] = 9
    joint = dpf.plan_together({"both": plan}, epsilon=1)
    assert [part.share for part in joint.plans["both"].parts] == [0.9, 0.1]


def test_a_mean_divides_its_weight_between_its_two_vectors():
    price = {"epsilon": 1, "delta": DELTA, "checks": False}
    plan = PREVIEW.agg(n=dpf.count(), m=dpf.mean("cost", bounds=(0, 4)), weights={"n": 2, "m": 2}, **price)
    assert [part.share for part in plan.parts] == [0.5, 0.25, 0.25]
    shared = PREVIEW.agg(c=dpf.count("cost"), m=dpf.mean("cost", bounds=(0, 4)), weights={"c": 1}, **price)
    assert sorted(part.share for part in shared.parts) == [0.25, 0.75]  # the count is measured once, for both


def test_what_was_shared_under_pure_noise_is_measured_by_itself_under_gaussian():
    asked = {"n": dpf.count("cost"), "m": dpf.mean("cost", bounds=(0, 4)), "v": dpf.variance("cost", bounds=(0, 4))}
    pure = PREVIEW.agg(asked, epsilon=1)
    assert len(pure.parts) == 1
    joint = dpf.plan_together({"all": pure}, epsilon=1, delta=DELTA)
    alone = PREVIEW.agg(asked, epsilon=1, delta=DELTA)
    assert [part.total for part in joint.plans["all"].parts] == [part.total for part in alone.parts]


def test_a_mean_under_pure_noise_is_one_vector_with_one_weight():
    plan = PREVIEW.agg(
        n=dpf.count(), m=dpf.mean("cost", bounds=(0, 4)), epsilon=1, weights={"n": 2, "m": 2}, checks=False
    )
    assert [part.share for part in plan.parts] == [0.5, 0.5]


def test_weights_of_a_pure_call_divide_epsilon():
    plan = PREVIEW.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights={"n": 3})
    assert [part.mechanism.scale for part in plan.parts] == [pytest.approx(4 / 3), 4.0]


# One charge


def test_the_answers_are_those_of_the_previews():
    plans = {
        "ages": PREVIEW.histogram("age", bins=[0, 50, 100], keep_noisy=False, label="by age"),
        "visits": VISITS.lazy()
        .dp.preview.group_by("ward", keys=["B", "A"])
        .agg(n=dpf.count(), m=dpf.mean("minutes", bounds=(0, 60)), denoise=None),
    }
    ledger = dpf.Ledger(epsilon=2e6, delta=1e-6, accounting="basic")
    found = dpf.release_together(plans, epsilon=1e6, delta=1e-6, ledger=ledger, label="both")
    assert found["ages"].columns == ["age_left", "age_right", "count", "count_error"]
    assert found["ages"]["count"].to_list() == [3.0, 1.0]
    assert found["visits"]["n"].to_list() == [1.0, 2.0]
    assert found["visits"]["m"].to_list() == pytest.approx([30.0, 15.0], abs=0.5)
    assert [frame.dp.provenance["label"] for frame in found.values()] == ["by age", "both"]
    for frame in found.values():
        assert frame.dp.provenance["cost"] == {"epsilon": 1e6, "delta": 1e-6, "accounting": "basic"}
        assert "released together, at one cost for all: ages, visits" in frame.dp.provenance["notes"]
    listed = ledger.to_frame()
    assert listed["query"].to_list()[0].startswith("ages: count() by age: 2 bins; visits: ")
    assert (listed.height, ledger.spent) == (1, dpf.PrivacyLoss(1e6, 1e-6))


def test_pandas_and_polars_frames_together():
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"age": [31, 45]})
    plans = {"one": people.dp.preview.count(), "other": PREVIEW.count()}
    found = dpf.release_together(plans, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))
    assert isinstance(found["one"], pandas.DataFrame)
    assert isinstance(found["other"], pl.DataFrame)


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_a_share_of_one_fills_every_ledger(accounting):
    ledger = dpf.Ledger(epsilon=1, delta=DELTA, accounting=accounting)
    plans = {name: PREVIEW.count() for name in "abc"}
    dpf.release_together(plans, share=Fraction(1, 2), ledger=ledger)
    dpf.release_together(plans, share=Fraction(1, 2), ledger=ledger, weights={"a": 7})
    assert ledger.remaining.epsilon < 1e-5
    assert ledger.accounting.filled(ledger._store.last().total, ledger.limit_amount) > 1 - 1e-9
    with pytest.raises(dpf.BudgetExceeded):
        dpf.release_together(plans, share=Fraction(1, 10**6), ledger=ledger)


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_ledger_is_charged_what_the_noises_cost(accounting):
    ledger = dpf.Ledger(epsilon=1, delta=DELTA, accounting=accounting)
    plans = {"laplace": PREVIEW.count(mechanism="laplace"), "gaussian": PREVIEW.count("age")}
    joint = dpf.plan_together(plans, epsilon=0.5, ledger=ledger)
    assert joint.amount == ledger.accounting.charge(None, None, tuple(noises(joint)))
    assert joint.cost.epsilon <= 0.75
    dpf.release_together(plans, epsilon=0.5, ledger=ledger)
    assert ledger._store.last().total == joint.amount


def test_all_is_charged_before_anything_is_read(monkeypatch):
    ledger, seen = dpf.Ledger(epsilon=1), []
    measure = together.measure

    def watched(plan, call):
        seen.append(ledger.spent.epsilon)
        return measure(plan, call)

    monkeypatch.setattr(together, "measure", watched)
    plans = {"a": PREVIEW.count(), "b": PREVIEW.count("age")}
    with pytest.raises(dpf.BudgetExceeded):
        dpf.release_together(plans, epsilon=1.5, ledger=ledger)
    assert (seen, ledger.spent.epsilon) == ([], 0.0)
    dpf.release_together(plans, epsilon=0.75, ledger=ledger)
    assert seen == [0.75, 0.75]


def test_a_durable_ledger_tells_where_all_of_them_stand(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "a.ledger")
    found = dpf.release_together({"a": PREVIEW.count(), "b": PREVIEW.count("age")}, epsilon=0.5, ledger=ledger)
    assert ledger.verify(*(frame.dp.provenance for frame in found.values()))["entry"] == 1


def test_a_joint_plan_shows_itself():
    joint = dpf.plan_together({"n": PREVIEW.count(), "m": PREVIEW.mean("cost", bounds=(0, 4))}, epsilon=1)
    assert "for all together" in repr(joint)
    assert "for all together" in joint._repr_html_()
    assert joint.to_frame()["name"].to_list() == ["n", "m"]
    assert set(joint.error) == {"n", "m"}
    assert joint.question == "n: count(); m: mean(cost) in [0, 4]"


def test_mixed_noise_says_what_it_needs(monkeypatch):
    from dpframe.accounting import comparison
    from dpframe.planning import auto

    def gone():
        raise ImportError(comparison.NEEDS_ACCOUNTING)

    monkeypatch.setattr(comparison, "_dp_accounting", gone)
    monkeypatch.setattr(auto, "_largest_factor", auto._largest_factor.__wrapped__)  # no cache
    with pytest.raises(ImportError, match=r"dpframe\[accounting\]"):
        dpf.plan_together(mixed_plans(), epsilon=1, delta=DELTA)
    noise = dpf.generalized_gaussian(p=3)  # in one call, each statistic then keeps its part of the cost
    plan = PREVIEW.agg(a=dpf.count("age"), b=dpf.count("ward"), epsilon=1, delta=DELTA, mechanism=noise)
    assert plan.parts[0].mechanism.scale == pytest.approx(dpf.generalized_gaussian_scale(3, 0.5, DELTA / 2))
    assert math.isfinite(plan.error["a"])


def test_a_selection_among_the_results():
    """The exponential mechanism is pure: its epsilon and that of Laplace noise add up."""
    wards = PREVIEW.mode("ward", categories=["A", "B", "C"])
    ledger = dpf.Ledger(epsilon=1e6)
    found = dpf.release_together({"ward": wards, "n": PREVIEW.count()}, epsilon=1e6, ledger=ledger)
    assert found["ward"].rows()[0][0] == "A"


def test_choices_beside_chosen_noise_are_those_of_a_call_of_their_own_where_no_delta_is_spent():
    """Without delta, pure epsilons add up whatever noise another plan chooses; permute-and-flip has the least error."""
    ledger = dpf.Ledger(epsilon=1)
    plans = {
        "ward": PREVIEW.mode("ward", categories=["A", "B", "C"], ledger=ledger),
        "top": PREVIEW.top_k("ward", k=1, categories=["A", "B", "C"], ledger=ledger),
        "median": PREVIEW.median("age", bounds=(0, 100), step=1, mechanism="exponential", ledger=ledger),
        "sum": PREVIEW.sum("age", bounds=(0, 100), mechanism="auto", ledger=ledger),
    }
    joint = dpf.plan_together(plans, epsilon=1, ledger=ledger)
    names = {name: plan.parts[0].mechanism.name for name, plan in joint.plans.items()}
    assert ["permute-and-flip" in names[name] for name in plans] == [True, True, True, False]
    assert joint.cost == dpf.PrivacyLoss(1)
    row = dpf.compare_accounting(list(joint.plans.values()), delta=DELTA).rows[0]
    assert (row.accounting, row.epsilon) == ("basic", pytest.approx(1, rel=1e-12))


def test_plans_that_protect_different_units_are_refused():
    every, replaced = dpf.default_ledger(), dpf.PrivacyUnit(neighbors="replace")
    plans = {"n": PREVIEW.count(ledger=every), "m": PREVIEW.count(unit=replaced, ledger=every)}
    with pytest.raises(dpf.InvalidArgument, match="plans must protect the same unit, but 'n' protects"):
        dpf.plan_together(plans, epsilon=1, ledger=every)
    between = {**plans, "k": PREVIEW.count("age", ledger=every)}  # the first and the last protect the same
    with pytest.raises(dpf.InvalidArgument, match=r"plans must protect the same unit.* and 'm' \("):
        dpf.plan_together(between, epsilon=1, ledger=every)
    with pytest.raises(dpf.InvalidArgument, match="unit must be left out or equal the ledger's"):
        dpf.plan_together({"m": plans["m"]}, epsilon=1, ledger=dpf.Ledger(epsilon=1))


# Frames that changed between the preview and the release


def changed(name, values):
    """Return a ledger and a plan of a pandas frame, a column of which is replaced or deleted after planning."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": [1, 2, 3, 4], "ward": ["A", "B", "A", "B"], "cost": [1.0, 2.0, 3.0, 4.0]})
    ledger = dpf.Ledger(epsilon=10, unit="who", accounting="basic")
    with ledger:
        plan = frame.dp.preview.group_by("ward", keys=["A", "B"]).agg(
            s=dpf.sum("cost", bounds=(0, 4)), max_rows=1, epsilon=1
        )
    if values is None:
        del frame[name]
    else:
        frame[name] = values
    return ledger, plan


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("who", np.array([2**63 + 1, 2**63 + 3, 5, 6], dtype=np.longdouble), dpf.WrongDtype),  # two are one float
        ("ward", [1, 2, 1, 2], dpf.WrongDtype),
        ("cost", np.array(["2026-01-05"] * 4, dtype="datetime64[ns]"), dpf.WrongDtype),
        ("cost", None, dpf.UnknownColumn),
    ],
)
def test_a_frame_that_got_other_columns_since_is_refused(name, values, error):
    if name == "who" and np.longdouble is np.float64:
        pytest.skip("long doubles are doubles here")
    ledger, plan = changed(name, values)
    with pytest.raises(error, match=f"column '{name}'"):
        dpf.release_together({"sums": plan}, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_days_that_begin_at_another_time_since_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": pandas.to_datetime(["2026-01-01 00:30", "2026-01-01 23:30", "2026-01-02 12:00"])})
    ledger = dpf.Ledger(epsilon=10)
    with ledger:
        plan = frame.dp.preview.group_by("t", keys=dpf.dates("2026-01-01", "2026-01-03", every="1d")).count(epsilon=1)
        frame["t"] = frame["t"].dt.tz_localize("Asia/Tokyo")
        with pytest.raises(dpf.InvalidArgument, match="a time zone in 'days' has changed since"):
            dpf.release_together({"days": plan}, epsilon=1)
    assert ledger.spent.epsilon == 0


def test_no_caption_changes_the_case_of_a_name():
    """Sentences begin with a capital letter, and so must not begin with a name that the caller chose."""
    pytest.importorskip("altair")
    frame = pl.DataFrame({"g": ["a", "b"] * 50, "x": [0.0, 1.0] * 50})
    with dpf.Ledger(epsilon=9):
        grouped = frame.dp.group_by("g", keys=["a", "b"])
        plans = {"a": frame.dp.preview.count(epsilon=1), "b": grouped.preview.median("x", bounds=(0, 1), epsilon=1)}
        found = dpf.release_together(plans, epsilon=1)
    captions = caption_of(found["b"].dp.plot(), [])
    assert "Released together, at one cost for all: a, b." in captions
    assert "An end of x_median on a bound" in captions
    assert "X_median" not in captions


def test_what_suggested_bounds_plan_for_is_checked_with_the_terms_of_the_payer():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0]})
    with dpf.Ledger(epsilon=10, delta=1e-6, accounting="gdp"):
        plan = frame.dp.preview.suggest_bounds("x", planned={"epsilon": 0.5, "mechanism": "gaussian"}, epsilon=1)
    payer = dpf.Ledger(epsilon=10, accounting="basic")
    with pytest.raises(dpf.MissingArgument, match="delta must be given for Gaussian noise"):
        dpf.release_together({"x": plan}, epsilon=1, ledger=payer)
    assert payer.spent == dpf.PrivacyLoss(0.0)
