"""Several choices in order: their exact laws, their costs, and the verb for the most common values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, GROUPS, UNITS, frame_of
from scipy import special
from seen import seen

import dpframe as dpf
from dpframe.engines.totals import totals
from dpframe.exact import root_down
from dpframe.mechanisms.selection import Peeling, own_of_place
from dpframe.noise import insecure_bits
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.query import Query
from dpframe.queries.statistics.top_k import TopK
from dpframe.testing import check_mechanism

FALSE_ALARM = 1e-9
PLACES = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
BY_WEIGHT = (0.6213006176, 0.08408389506, 0.2471896141, 0.01230684622, 0.02567406593, 0.009444961028)
BY_FLIPS = (0.7433224451, 0.05394951314, 0.1763841945, 0.004502919558, 0.01782351356, 0.004017414139)
DATA = {"ward": ["A"] * 900 + ["B"] * 500 + ["C"] * 300, "patient": list(range(850)) * 2}
WARDS = ["C", "D", "B", "A"]


def weighed(scores, rate):
    """Return the law of the exponential mechanism."""
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    return [weight / sum(weights) for weight in weights]


def flipped(scores, rate):
    """Return the law of permute-and-flip, from all orders."""
    found = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            taken = math.exp(rate * (scores[place] - max(scores)))
            found[place] += left * taken / len(orders)
            left *= 1.0 - taken
    return found


def peeled(scores, chosen, one):
    """Return the law of the ordered places, by enumeration."""
    if not chosen:
        return {(): 1.0}
    found = {}
    for place, chance in enumerate(one(scores)):
        rest = [*scores[:place], *scores[place + 1 :]]
        for later, more in peeled(rest, chosen - 1, one).items():
            places = (place, *(other + (other >= place) for other in later))
            found[places] = found.get(places, 0.0) + chance * more
    return found


def p_value(found, expected):
    expected = np.asarray(expected) * found.sum()
    large = expected >= 5
    return special.chdtrc(max(1, large.sum() - 1), ((found - expected)[large] ** 2 / expected[large]).sum())


@pytest.mark.parametrize(("one", "expected"), [(weighed, BY_WEIGHT), (flipped, BY_FLIPS)])
def test_the_enumeration_gives_the_published_laws(one, expected):
    found = peeled((3, 2, 0), 2, lambda scores: one(scores, 1.0))
    assert [found[places] for places in PLACES] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "expected"), [(dpf.ExponentialMechanism, BY_WEIGHT), (dpf.PermuteAndFlip, BY_FLIPS)])
def test_draws_have_the_published_laws(kind, expected):
    top = Peeling(kind.of_steps(1, 1.0, monotonic=True, options=3), 2)
    scores = np.array([3, 2, 0], dtype=np.int64)
    with insecure_bits(5):
        marks = [top.add_noise(scores) for _ in range(6_000)]
    drawn = [tuple(np.argsort(-ranks)[:2].tolist()) for ranks in marks]
    found = np.array([drawn.count(places) for places in PLACES])
    assert p_value(found, expected) > FALSE_ALARM
    other = BY_FLIPS if expected is BY_WEIGHT else BY_WEIGHT
    assert p_value(found, other) < FALSE_ALARM  # power: the test rejects the other law


def test_equal_scores_come_in_every_order():
    """If all places were drawn with the same random bits, only few orders would appear."""
    top = Peeling(dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=True, options=3), 3)
    with insecure_bits(6):
        drawn = [tuple(top.add_noise(np.zeros(3, dtype=np.int64)).tolist()) for _ in range(3_000)]
    found = np.array([drawn.count(order) for order in itertools.permutations((1, 2, 3))])
    assert found.sum() == 3_000  # each draw has each option once
    assert p_value(found, np.full(6, 1 / 6)) > FALSE_ALARM


def neighbors(*, replace):
    moves = set(itertools.product((-1, 0, 1), repeat=3)) if replace else set(itertools.product((0, 1), repeat=3))
    return [((2, 1, 0), tuple(score + move for score, move in zip((2, 1, 0), one, strict=True))) for one in moves]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("one", "kind"), [(weighed, dpf.ExponentialMechanism), (flipped, dpf.PermuteAndFlip)])
def test_no_neighbors_are_told_apart_by_more_than_the_charge(one, kind, replace):
    choice = kind.of_steps(1, 0.7, monotonic=not replace, options=3)
    top, rate = Peeling(choice, 2), float(choice.budget / choice.spread)
    worst = 0.0
    for near, far in neighbors(replace=replace):
        laws = [peeled(scores, 2, lambda some: one(some, rate)) for scores in (near, far)]
        for p, q in (laws, laws[::-1]):
            worst = max(worst, *(math.log(p[places] / q[places]) for places in PLACES))
            for epsilon in (0.0, 0.3, 0.9, 1.3):
                delta = sum(max(0.0, p[places] - math.exp(epsilon) * q[places]) for places in PLACES)
                assert delta <= top.delta(epsilon) + 1e-12
            moment = sum(p[places] ** 2 / q[places] for places in PLACES)
            assert math.log(moment) <= float(top.renyi(Fraction(2))) + 1e-12
    assert worst <= 1.4 + 1e-12
    assert worst > 0.8  # under replace, half the spread would make the loss exceed the charge
    if replace:
        sharp = [peeled(scores, 2, lambda some: one(some, 2 * rate)) for scores in ((2, 1, 0), (1, 2, 1))]
        assert max(abs(math.log(sharp[0][places] / sharp[1][places])) for places in PLACES) > 1.4


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_unit_moves_exact_counts_farther_than_the_spread(unit):
    """Random neighbors, read as in a release; the spread is in l_inf, so the number of groups does not matter."""
    (statistic,) = (one for one in TopK(2).forms(len(GROUPS)) if one.by_choice)
    query = Query("top_k", BY_GROUP, (("g_shortfall", statistic),))
    (total,) = query.totals
    most = sensitivity_of(total, unit, len(GROUPS)).steps(math.inf)
    generator = np.random.default_rng([9, len(str(unit))])

    def rows():
        size = 1 if unit.column is None else int(generator.choice([1, 2, 3, 40]))
        return [(group, 1.0) for group in generator.choice([*GROUPS, "unlisted"], size).tolist()]

    widest = 0.0
    for _ in range(60):
        others = [rows() for _ in range(generator.integers(0, 4))]
        mine, instead = rows(), rows() if unit.neighbors == "replace" else []
        found = [totals(frame_of([*others, one]), query, unit, math.inf)[total] for one in (mine, instead)]
        change = found[0] - found[1]
        assert np.abs(change).max() <= most
        if unit.neighbors == "add-remove":
            assert change.min() >= 0  # all scores move the same way, so the spread is `most`, not twice `most`
        widest = max(widest, (change.max() - min(0, change.min())) / most)
    assert 0.99 <= widest <= (2.0 if unit.neighbors == "replace" else 1.0)


@pytest.mark.parametrize(
    ("places", "own"), [(1, 1.61393069261), (2, 1.13480149455), (5, 0.715274535491), (10, 0.505201005589)]
)
def test_published_budgets_of_a_place(places, own):
    assert float(own_of_place(Fraction(1, 100), 1.0, places)) == pytest.approx(own, rel=1e-10)
    assert own_of_place(Fraction(1), None, places) == Fraction(1, places)
    choice = dpf.ExponentialMechanism.of_steps(
        1, own_of_place(Fraction(1, 100), 1.0, places), monotonic=True, options=20
    )
    assert 1.0 - 1e-9 < Peeling(choice, places).mu <= 1.0 + 1e-12
    assert root_down(Fraction(1, places)) ** 2 <= Fraction(1, places)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dpf.ExponentialMechanism, dpf.PermuteAndFlip])
@pytest.mark.parametrize(("options", "chosen"), [(3, 2), (5, 1), (4, 4)])
def test_peeling_keeps_the_rules_of_mechanisms(kind, options, chosen):
    check_mechanism(Peeling(kind.of_steps(2, 0.6, monotonic=False, options=options, grid=0.5), chosen))


def test_no_place_is_missed_by_more_than_the_interval():
    top = Peeling(dpf.ExponentialMechanism.of_steps(1, 1.0, monotonic=True, options=12), 3)
    far = round(top.interval(0.9)) + 1
    scores = np.array([3 * far, 2 * far, far, *[0] * 9], dtype=np.int64)
    with insecure_bits(8):
        missed = sum(top.add_noise(scores)[:3].tolist() != [3, 2, 1] for _ in range(2_000))
    assert missed / 2_000 < 0.1 + 5 * math.sqrt(0.09 / 2_000)


def test_more_than_there_are_options_is_refused():
    with pytest.raises(dpf.InvalidArgument, match="k must be at least 1 and at most the number of options, 3, not 4"):
        Peeling(dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=True, options=3), 4)


# The verb


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
@pytest.mark.parametrize("unit", [{}, {"max_rows": 2, "max_groups": 4}])
def test_the_most_common_values_on_every_engine(engine, counts, accounting, unit):
    ledger = dpf.Ledger(epsilon=20, delta=1e-6, accounting=accounting, unit="patient" if unit else None)
    found = engine(DATA).dp.top_k("ward", k=3, categories=WARDS, counts=counts, epsilon=5, ledger=ledger, **unit)
    assert found["ward"].to_list() == ["A", "B", "C"]
    assert list(found.columns) == (["ward", "count", "count_error"] if counts else ["ward"])
    if counts:
        assert (np.abs(found["count"].to_numpy() - [900, 500, 300]) < 10 * found["count_error"].to_numpy()).all()


def test_a_lazy_frame_and_an_enum():
    frame = pl.DataFrame(DATA, schema_overrides={"ward": pl.Enum(WARDS)}).lazy()
    found = frame.dp.top_k("ward", k=2, epsilon=5, ledger=dpf.Ledger(epsilon=5))
    assert found["ward"].to_list() == ["A", "B"]
    with pytest.raises(dpf.InvalidArgument, match="k must be at most the number of categories, 4, not 5"):
        frame.dp.preview.top_k("ward", k=5, epsilon=5)


def preview(k, *, accounting="basic", neighbors="add-remove", counts=False, epsilon=1.0, **bounds):
    unit = dpf.PrivacyUnit(column="patient" if bounds else None, neighbors=neighbors)
    ledger = dpf.Ledger(epsilon=5, delta=1e-6, accounting=accounting, unit=unit)
    asked = {"k": k, "categories": list("ABCDEFGHIJ"), "counts": counts, "epsilon": epsilon, "ledger": ledger}
    return pl.DataFrame(DATA).dp.preview.top_k("ward", **asked, **bounds)


def test_peeling_does_not_depend_on_the_number_of_groups():
    scales = [preview(2, max_rows=3, max_groups=groups).parts[0].mechanism.scale for groups in (4, 8)]
    assert scales == [6.0, 6.0]
    assert preview(2, max_rows=3, max_groups=8, neighbors="replace").parts[0].mechanism.scale == 12.0


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_public_facts_decide(accounting):
    few, many = preview(8, accounting=accounting), preview(2, accounting=accounting, max_rows=1, max_groups=10)
    assert few.parts[0].mechanism.additive
    assert many.parts[0].mechanism.name.startswith("peeling by")
    assert many.parts[0].mechanism.norm == math.inf
    assert "was chosen: its variance is" in repr(few)
    assert "peeling by" in repr(many)
    assert "each at most" in repr(many)
    assert preview(2, accounting=accounting, counts=True, max_rows=1, max_groups=10).parts[0].mechanism.additive


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_both_ways_cost_at_most_the_price(accounting):
    bounds = {"max_rows": 1, "max_groups": 10}
    sorted_counts, peeling = (preview(k, accounting=accounting, counts=k == 9, **bounds) for k in (9, 2))
    assert peeling.amount[0] <= sorted_counts.amount[0]
    assert peeling.cost.epsilon <= 1.0
    if accounting == "gdp":
        assert peeling.amount[0] > sorted_counts.amount[0] * (1 - Fraction(1, 10**9))


def test_a_delta_is_not_charged_for_peeling():
    frame, price = pl.DataFrame(DATA), {"epsilon": 1, "delta": 1e-6, "unit": "patient"}
    plan = frame.dp.preview.top_k("ward", k=1, categories=WARDS, max_groups=4, **price)
    assert plan.parts[0].mechanism.name == "peeling by permute-and-flip"
    assert plan.cost.delta == 0.0


def test_counts_that_were_chosen_are_covered():
    """The largest of ten equal noisy counts is likely too high, and the stated error must cover it."""
    frame = pl.DataFrame({"ward": list("ABCDEFGHIJ") * 40})
    plan = frame.dp.preview.top_k("ward", k=2, categories=list("ABCDEFGHIJ"), counts=True, epsilon=0.5)
    noise, statistic = plan.parts[0].mechanism, plan.query.statistics[0][1]
    assert isinstance(statistic, TopK)
    with insecure_bits(3):
        drawn = noise.add_noise(np.full((100_000, 10), 40, dtype=np.int64))
    missed = (np.abs(drawn.max(axis=1) - 40) > plan.error["count"]).mean()
    assert 0.005 < missed < 0.05
    alone = (np.abs(drawn.max(axis=1) - 40) > noise.interval(0.95)).mean()
    assert alone > 0.1  # power: the interval of one count does not cover the largest


def test_together_with_other_questions():
    frame = pl.DataFrame(DATA).dp.preview
    plans = {"top": frame.top_k("ward", k=2, categories=WARDS), "n": frame.count()}
    found = dpf.release_together(
        plans, epsilon=4, delta=1e-6, ledger=dpf.Ledger(epsilon=9, delta=1e-6, accounting="gdp")
    )
    assert found["top"]["ward"].to_list() == ["A", "B"]


def test_a_top_k_is_a_result(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=9)
    found = engine(DATA).dp.top_k("ward", k=2, categories=WARDS, counts=True, epsilon=4, ledger=ledger)
    facts = found.dp.provenance
    assert (facts["verb"], facts["top"]["k"], facts["top"]["counts"]) == ("top_k", 2, True)
    with pytest.raises(dpf.InvalidArgument, match="a top-k is some of them, in order"):
        found.dp.to_numpy("count")
    found.dp.write_parquet(tmp_path / "top.parquet")
    again = dpf.read_parquet(tmp_path / "top.parquet")
    assert again["ward"].to_list() == ["A", "B"]
    assert not again.dp.provenance["altered"]


@pytest.mark.parametrize("mixed", [False, True])
def test_counts_are_drawn_in_order_with_their_errors(engine, mixed):
    ledger = dpf.Ledger(epsilon=9)
    found = engine(DATA).dp.top_k("ward", k=3, categories=WARDS, counts=True, epsilon=4, ledger=ledger)
    if mixed:
        if not engine.is_pandas:
            pytest.skip("only frames of pandas keep their record in another order")
        found = found[::-1]
    (error,) = found.dp.errors().to_dict("records") if engine.is_pandas else found.dp.errors().to_dicts()
    assert (error["column"], error["by"]) == ("count", "ward")
    assert error["interval"] == pytest.approx(max(found["count_error"].to_list()))
    pytest.importorskip("altair")
    chart = seen(found.dp.plot())
    rows = chart["data"]["values"]
    assert [row["cell"] for row in rows] == ["A", "B", "C"]
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    assert "margin of error (noise), of all categories at once" in chart["title"]["subtitle"]
    pytest.importorskip("great_tables")
    html = found.dp.table().as_raw_html()
    assert "of all categories at once" in html


def test_a_choice_without_counts_has_no_chart(engine):
    found = engine(DATA).dp.top_k("ward", k=2, categories=WARDS, epsilon=4, ledger=dpf.Ledger(epsilon=9))
    for ask in (found.dp.plot, found.dp.table, found.dp.errors):
        with pytest.raises(dpf.InvalidArgument, match="a top-k is some of them, in order"):
            ask()


def test_within_names_the_error_of_all_counts():
    asked = {"k": 2, "categories": WARDS}
    frame = pl.DataFrame(DATA).dp.preview
    plan = frame.top_k("ward", counts=True, within=20, **asked)
    assert 15 < plan.error["count"] <= 20
    surer = frame.top_k("ward", counts=True, within=20, confidence=0.99, **asked)
    assert surer.cost.epsilon > plan.cost.epsilon
    found = pl.DataFrame(DATA).dp.top_k("ward", counts=True, within=20, ledger=dpf.Ledger(epsilon=2), **asked)
    assert found["count_error"].max() <= 20
    with pytest.raises(dpf.InvalidArgument, match="within must come with counts=True"):
        frame.top_k("ward", within=20, **asked)


def test_previews_without_a_price():
    table = pl.DataFrame(DATA).dp.preview.top_k("ward", k=2, categories=WARDS)
    assert "most below the largest" in repr(table)
    table = pl.DataFrame(DATA).dp.preview.top_k("ward", k=2, categories=WARDS, counts=True)
    assert "error of count" in repr(table)
