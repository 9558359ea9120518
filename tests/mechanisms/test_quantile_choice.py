"""A quantile by a choice: its exact law, the change of its scores by one unit, and whole calls."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from neighbors import EVERYTHING, UNITS, frame_of
from scipy import special

import dpframe as dpf
from dpframe.engines.totals import totals
from dpframe.mechanisms.quantile_choice import QuantileChoice
from dpframe.noise import insecure_bits
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.query import Query
from dpframe.release import facts
from dpframe.testing import check_mechanism
from tests.covering import chance_of_missing

FALSE_ALARM = 1e-9
KINDS = (dpf.ExponentialMechanism, dpf.PermuteAndFlip)
HALF = Fraction(1, 2)
PUBLISHED = [  # counts at the candidates, q, epsilon, probabilities of the exponential mechanism
    ((1, 1, 1, 1, 1), HALF, 1, (0.0839049165079, 0.228077209862, 0.376035747261, 0.228077209862, 0.0839049165079)),
    ((0, 0, 10, 0, 0), HALF, 1, (*[0.00656111326534] * 2, 0.973755546939, *[0.00656111326534] * 2)),
    (
        (2, 3, 4, 1, 0),
        Fraction(1, 4),
        1,
        (0.372172129444, 0.519408048122, 0.0981035082078, 0.00681657032734, 0.00349974389915),
    ),
    (
        (2, 3, 4, 1, 0),
        Fraction(9, 10),
        2,
        (0.000178931440783, 0.00501573902987, 0.427103007238, 0.427103007238, 0.140599315054),
    ),
]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))


def made(kind, q, *, epsilon=1.0, steps=1, replace=False, options=5, grid=1.0):
    return QuantileChoice.of_steps(kind, steps, epsilon, q=q, replace=replace, options=options, grid=grid)


def weighed(losses):
    """Return the law of the exponential mechanism, from the losses of all options in units of its scale."""
    weights = np.exp(-(np.asarray(losses) - min(losses)))
    return weights / weights.sum()


def flipped(losses):
    """Return the law of permute-and-flip, from all orders."""
    kept = np.exp(-(np.asarray(losses, dtype=float) - min(losses)))
    found = np.zeros(kept.size)
    orders = list(itertools.permutations(range(kept.size)))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * kept[place] / len(orders)
            left *= 1.0 - kept[place]
    return found


LAWS = {dpf.ExponentialMechanism: weighed, dpf.PermuteAndFlip: flipped}


def law(choice, counts):
    """Return the exact probabilities of all candidates."""
    rate = float(choice.choice.budget / choice.choice.spread)
    return LAWS[type(choice.choice)](-choice.scores(np.array(counts)) * rate)


def p_value(found, expected):
    expected = np.asarray(expected) * found.sum()
    large = expected >= 5
    return special.chdtrc(max(1, large.sum() - 1), ((found - expected)[large] ** 2 / expected[large]).sum())


@pytest.mark.parametrize(("counts", "q", "epsilon", "expected"), PUBLISHED)
def test_published_probabilities(counts, q, epsilon, expected):
    choice = made(dpf.ExponentialMechanism, q, epsilon=epsilon)
    assert law(choice, counts) == pytest.approx(expected, rel=1e-10)
    with insecure_bits(3):
        drawn = sum(choice.add_noise(np.array(counts, dtype=np.int64)) for _ in range(3_000))
    assert drawn.sum() == 3_000
    assert p_value(drawn, expected) > FALSE_ALARM
    if len(set(counts)) > 2:
        sharper = law(made(dpf.ExponentialMechanism, q, epsilon=2 * epsilon), counts)
        assert p_value(drawn, sharper) < FALSE_ALARM  # power: the test rejects another epsilon


def test_permute_and_flip_draws_its_law():
    choice = made(dpf.PermuteAndFlip, Fraction(1, 4), options=4)
    with insecure_bits(4):
        drawn = sum(choice.add_noise(np.array([2, 3, 4, 1], dtype=np.int64)) for _ in range(4_000))
    assert p_value(drawn, law(choice, (2, 3, 4, 1))) > FALSE_ALARM
    assert p_value(drawn, law(made(dpf.ExponentialMechanism, Fraction(1, 4), options=4), (2, 3, 4, 1))) < FALSE_ALARM


@pytest.mark.parametrize("q", [Fraction(1, 10_000), Fraction(1, 4), HALF, Fraction(2, 3), Fraction(9, 10)])
def test_the_quantile_has_the_best_score_whatever_is_tied(q):
    generator = np.random.default_rng(5)
    choice = made(dpf.PermuteAndFlip, q, options=9)
    for counts in generator.integers(0, 4, (300, 9)) ** generator.integers(0, 3, (300, 1)):
        scores, up_to = choice.scores(counts), np.cumsum(counts)
        own = np.argmax(up_to >= float(q) * up_to[-1] - 1e-9)  # the least candidate v with F(v) >= q N
        assert scores[own] == 0
        assert scores.max() == 0


def spread_of(choice, before, after):
    """Return the spread of the changes of all scores, and the largest change, in steps."""
    change = choice.scores(np.array(after)) - choice.scores(np.array(before))
    return int(change.max() - change.min()), int(np.abs(change).max())


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 4), HALF, Fraction(3, 4), Fraction(9, 10)])
def test_the_spread_by_brute_force(q, replace):
    """All tables of up to three rows at each of four candidates, with all their neighbors, attain the spread."""
    choice = made(dpf.ExponentialMechanism, q, steps=2 if replace else 1, replace=replace, options=4)
    most = choice.choice.spread / q.denominator
    assert most == (2 if replace else max(1, 2 * q, 2 * (1 - q)))
    widest = largest = 0
    for counts in itertools.product(range(4), repeat=4):
        for place in range(4):
            more = [count + (one == place) for one, count in enumerate(counts)]
            others = [counts]
            if replace:
                others = [[count + (one == other) for one, count in enumerate(counts)] for other in range(4)] + [counts]
            for other in others:
                wide, far = spread_of(choice, other, more)
                widest, largest = max(widest, wide), max(largest, far)
    assert Fraction(widest, q.denominator) == most
    assert Fraction(largest) <= Fraction(choice.choice.step_sensitivity)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("q", [HALF, Fraction(9, 10)])
def test_no_neighbors_are_told_apart_by_more_than_the_charge(kind, replace, q):
    epsilon, worst = 0.8, 0.0
    choice = made(kind, q, epsilon=epsilon, steps=2 if replace else 1, replace=replace, options=4)
    for counts in itertools.product(range(3), repeat=4):
        for place in range(4):
            more = [count + (one == place) for one, count in enumerate(counts)]
            other = [count + (one == 3 - place) for one, count in enumerate(counts)] if replace else counts
            losses = np.log(law(choice, more) / law(choice, other))
            worst = max(worst, float(np.abs(losses).max()))
            if kind is dpf.ExponentialMechanism:
                assert losses.max() - losses.min() <= epsilon + 1e-12  # the range is bounded
    assert 0.4 * epsilon < worst <= epsilon + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_no_unit_moves_exact_scores_by_more_than_the_spread(unit, q):
    """Random neighbors, read as in a release: all rows of a unit share one weight, whatever their bins."""
    statistic = dpf.quantile("x", q=q, bounds=(0, 4)).as_choice()
    query = Query("quantile", EVERYTHING, (("m", statistic),))
    (total,) = query.totals
    reach = sensitivity_of(total, unit, 1)
    exact = Fraction(str(q))
    made_for = {"q": exact, "replace": reach.replace, "options": 5, "grid": reach.grid}
    choice = QuantileChoice.of_steps(dpf.PermuteAndFlip, reach.steps(1), 1.0, **made_for)
    generator = np.random.default_rng([8, len(str(unit)), int(10 * q)])

    def rows():
        size = 1 if unit.column is None else int(generator.choice([1, 2, 3, 40]))
        ends = generator.choice([0.0, 1.0, 2.0, 3.0, 4.0], 2)
        return [("A", float(value)) for value in generator.choice(ends, size)]

    def counts(units):
        return totals(frame_of(units), query, unit, choice.norm)[total]

    widest = 0.0
    for _ in range(60):
        others = [rows() for _ in range(generator.integers(0, 5))]
        mine, instead = rows(), rows() if unit.neighbors == "replace" else []
        wide, far = spread_of(choice, counts([*others, mine]), counts([*others, instead]))
        assert far <= choice.choice.step_sensitivity
        widest = max(widest, wide / float(choice.choice.spread))
    assert 0.5 <= widest <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_within_its_interval_of_ranks(kind):
    """The worst data: all candidates except one lie just beyond the interval."""
    choice = made(kind, HALF, options=12)
    far = math.floor(choice.interval(0.95)) + 1
    counts = np.zeros(12, dtype=np.int64)
    counts[5] = 2 * far  # every other candidate is `far` ranks away
    with insecure_bits(8):
        missed = sum(int(choice.add_noise(counts)[5] == 0) for _ in range(4_000))
    assert chance_of_missing(missed, 4_000, 0.05) > 1e-6
    nearer = np.zeros(12, dtype=np.int64)
    nearer[5] = far
    with insecure_bits(9):
        missed = sum(int(choice.add_noise(nearer)[5] == 0) for _ in range(4_000))
    assert chance_of_missing(missed, 4_000, 0.05) < 1e-6  # power: at half the distance, misses are more frequent


def test_no_choice_alone_has_a_narrow_interval_of_values():
    """With a single row of any value, each candidate is at least e^-epsilon times as likely as without the row."""
    for kind, place in itertools.product(KINDS, range(7)):
        counts = np.eye(7, dtype=np.int64)[place]
        assert law(made(kind, HALF, options=7), counts).min() >= math.exp(-1.0) / 7 - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replace", [False, True])
def test_it_costs_what_its_choice_costs_which_keeps_the_rules_of_mechanisms(kind, replace):
    found = made(kind, Fraction(1, 4), epsilon=0.6, steps=2, replace=replace, options=7, grid=2.0**-16)
    choice = found.choice
    check_mechanism(choice)
    for name in ("pure_epsilon", "mu_squared", "variance", "scale"):
        assert getattr(found, name) == getattr(choice, name)
    assert found.pure_epsilon == pytest.approx(0.6)
    points = np.linspace(-1.0, 1.0, 9)
    assert (found.deltas(points) == choice.deltas(points)).all()
    assert (found.delta(0.2), found.epsilon(0.1)) == (choice.delta(0.2), choice.epsilon(0.1))
    assert found.renyi(Fraction(3)) == choice.renyi(Fraction(3))
    assert (found.additive, found.norm, found.cells) == (False, 1.0, math.inf)


def test_many_rows_fit():
    """The largest denominator, with as many rows as a frame can have, each of full weight."""
    choice = made(dpf.PermuteAndFlip, Fraction(9_999, 10_000), options=2, grid=2.0**-16)
    rows = 2**32 * 2**16
    scores = choice.scores(np.array([rows // 2, rows // 2]))
    assert scores.tolist() == [-(9_999 * rows - 10_000 * rows // 2), 0]


def test_185_scores_of_more_rows_end_where_they_would_wrap():
    """One more row must never turn the worst candidate into the best."""
    rng = np.random.default_rng(4)
    for q in (Fraction(9_999, 10_000), Fraction(1, 10_000), HALF, Fraction(0), Fraction(1)):
        choice = made(dpf.PermuteAndFlip, q, options=7, grid=2.0**-16)
        for bits in (44, 48, 50, 54, 58, 60):
            counts = rng.integers(0, 2**bits, 7) * rng.integers(0, 2, 7)
            below = [sum(counts.tolist()[:place]) for place in range(8)]
            target, parts = q.numerator * below[-1], q.denominator
            away = [max(parts * low - target, target - parts * high, 0) for low, high in itertools.pairwise(below)]
            assert choice.scores(counts).tolist() == [-min(loss, 2**62) for loss in away]


# The verbs


def people(rows=2_000):
    generator = np.random.default_rng(12)
    ages = np.floor(generator.gamma(6.0, 7.0, rows))
    return {"age": ages.tolist(), "patient": (np.arange(rows) // 2).tolist()}


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
@pytest.mark.parametrize("unit", [{}, {"max_rows": 2}])
def test_medians_on_every_engine(engine, accounting, unit):
    data = people()
    ledger = dpf.Ledger(epsilon=30, delta=1e-6, accounting=accounting, unit="patient" if unit else None)
    asked = {"bounds": (0, 120), "mechanism": "exponential", "epsilon": 10, "ledger": ledger, **unit}
    found = engine(data).dp.median("age", **asked)
    assert list(found.columns) == ["age_median", "age_median_error", "age_median_low", "age_median_high"]
    truth = np.sort(data["age"])
    value = found["age_median"].to_list()[0]
    assert truth[950] <= value <= truth[1_050]
    assert (found["age_median_low"].to_list()[0], found["age_median_high"].to_list()[0]) == (0.0, 120.0)
    assert found["age_median_error"].to_list()[0] == max(value, 120 - value)
    top = engine(data).dp.quantile("age", q=0.9, **asked)
    assert truth[1_750] <= top["age_q0.9"].to_list()[0] <= truth[1_850]
    assert ledger.spent.epsilon <= 20 * (1 + 1e-9)


def preview(accounting="basic", neighbors="add-remove", q=0.5, **options):
    unit = dpf.PrivacyUnit(column="patient" if "max_rows" in options else None, neighbors=neighbors)
    ledger = dpf.Ledger(epsilon=9, delta=1e-6, accounting=accounting, unit=unit)
    words = {"bounds": (0, 120), "mechanism": "exponential", "ledger": ledger, "epsilon": 1.0} | options
    return pl.DataFrame(people()).dp.preview.quantile("age", q=q, **words)


def test_scales():
    assert preview().parts[0].mechanism.scale == 1.0
    assert preview(q=0.9).parts[0].mechanism.scale == pytest.approx(1.8)
    assert preview(q=0.9, neighbors="replace").parts[0].mechanism.scale == 2.0
    assert preview(max_rows=3).parts[0].mechanism.scale == 3.0
    assert preview(max_rows=3, neighbors="replace").parts[0].mechanism.scale == 6.0


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_a_preview_says_what_it_gives_and_what_it_does_not(accounting):
    plan = preview(accounting)
    words = repr(plan)
    assert "ranks, noisy running counts would be within" in words
    assert "no choice tells distances in values" in words
    kind = "permute-and-flip" if accounting == "basic" else "exponential mechanism"
    assert plan.parts[0].mechanism.name == f"quantile by {kind}"
    counted = preview(accounting, mechanism=None)
    assert plan.amount[0] <= counted.amount[0]
    assert plan.cost.epsilon <= 1.0
    assert plan.error["age_q0.5"] < counted.error["age_q0.5"]


def test_the_choice_has_the_smaller_error_in_ranks():
    frame = pl.DataFrame(people(200))
    truth = np.sort(frame["age"].to_numpy())
    off = {}
    for mechanism in ("exponential", None):
        ledger = dpf.Ledger(epsilon=1_000)
        ask = {"bounds": (0, 120), "epsilon": 1.0, "mechanism": mechanism, "ledger": ledger}
        found = np.array([frame.dp.median("age", **ask)["age_median"].item() for _ in range(60)])
        below, up_to = (np.searchsorted(truth, found, side) for side in ("left", "right"))
        off[mechanism] = np.maximum(0, np.maximum(below - 100, 100 - up_to)).mean()
    assert off["exponential"] < off[None] / 2


def test_a_delta_is_not_charged():
    assert preview(delta=1e-7).cost.delta == 0.0


def test_within_names_ranks():
    plan = preview(epsilon=None, within=5)
    assert 4.0 < plan.error["age_q0.5"] <= 5.0
    assert plan.cost.epsilon < 1.4


def test_it_is_a_result(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=9)
    ask = {"bounds": (0, 120), "mechanism": "exponential", "epsilon": 4, "ledger": ledger}
    found = engine(people()).dp.median("age", **ask)
    facts = found.dp.provenance
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(facts, SCHEMA)
    said = facts["measures"]["age_median"]
    assert (said["by"], said["q"]) == ("choice", 0.5)
    assert facts["statistics"][0]["ranks"] == pytest.approx(1.5, abs=0.5)
    assert "top" not in facts
    assert found.dp.errors is not None
    found.dp.write_parquet(tmp_path / "median.parquet")
    again = dpf.read_parquet(tmp_path / "median.parquet")
    assert again["age_median"].to_list() == found["age_median"].to_list()
    assert not again.dp.provenance["altered"]


def test_it_is_drawn_and_tabulated():
    found = pl.DataFrame(people()).dp.median(
        "age", bounds=(0, 120), mechanism="exponential", epsilon=4, ledger=dpf.Ledger(epsilon=9)
    )
    pytest.importorskip("great_tables")
    assert "age_median" in found.dp.table().as_raw_html()
    pytest.importorskip("altair")
    assert "age_median" in found.dp.plot().to_json()


def test_it_is_replayed(tmp_path):
    ledger = dpf.Ledger(epsilon=9, path=tmp_path / "ledger.sqlite", dataset="people")
    words = {"epsilon": 0.5, "label": "x", "snapshot": "2026-W47", "ledger": ledger, "bounds": (0, 120)}
    frame = pl.DataFrame(people(60))
    first = frame.dp.median("age", mechanism="exponential", **words)
    spent = ledger.spent
    assert frame.dp.median("age", mechanism="exponential", **words).equals(first)
    assert ledger.spent == spent


def test_together_with_other_questions():
    asked = pl.DataFrame(people()).dp.preview
    for accounting in ("basic", "gdp"):
        plans = {"m": asked.median("age", bounds=(0, 120), mechanism="exponential"), "n": asked.count()}
        ledger = dpf.Ledger(epsilon=9, delta=1e-6, accounting=accounting)
        found = dpf.release_together(plans, epsilon=4, delta=None if accounting == "basic" else 1e-6, ledger=ledger)
        assert 30 < found["m"]["age_median"].item() < 50


def test_refusals():
    asked = pl.DataFrame(people()).dp.preview
    choice = {"mechanism": "exponential", "epsilon": 1.0}
    refused = [
        lambda: asked.count(**choice),
        lambda: asked.quantile("age", q=[0.1, 0.5], bounds=(0, 120), **choice),
        lambda: asked.group_by("patient", keys=[1, 2]).median("age", bounds=(0, 120), **choice),
        lambda: asked.group_by("patient", keys=[1]).agg(dpf.median("age", bounds=(0, 1)), dpf.count(), **choice),
    ]
    for call in refused:
        with pytest.raises(dpf.InvalidArgument, match="only one quantile of the whole frame, without group_by"):
            call()
    with pytest.raises(dpf.InvalidArgument, match="q must be a fraction of at most 10,000 parts"):
        asked.quantile("age", q=1 / 3, bounds=(0, 120), **choice)
    with pytest.raises(dpf.InvalidArgument, match="denoise must be None"):
        asked.median("age", bounds=(0, 120), denoise="rounded", **choice)


def test_an_answer_that_0_2_stored_under_the_name_choice_is_known():
    """Version 0.2 hashed ``mechanism="choice"``; a call with "exponential" is the same call."""
    ledger = dpf.Ledger(epsilon=9)
    plan = pl.DataFrame(people(60)).dp.preview.median(
        "age", bounds=(0, 120), mechanism="exponential", epsilon=0.5, ledger=ledger
    )
    assert facts.facts_of(plan, dpf.PrivacyUnit())["mechanism"] == facts.hash_of("mechanism", "choice")


def test_the_name_of_0_2_is_refused_with_the_new_one():
    frame = pl.DataFrame(people(60))
    with pytest.raises(dpf.InvalidArgument, match=r"not 'choice'\. Write mechanism='exponential'\."):
        frame.dp.median("age", bounds=(0, 120), mechanism="choice", epsilon=1, ledger=dpf.Ledger(epsilon=1))
