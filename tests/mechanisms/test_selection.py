"""Choices: their laws, worst privacy losses and charges, and the verb that chooses the most common value."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import special

import dpframe as dpf
from dpframe.engines.totals import totals
from dpframe.noise import insecure_bits, samplers
from dpframe.queries.keys import Keys, category_axis
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, Total

FALSE_ALARM = 1e-9
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))


def law(scores, epsilon, spread):
    weights = np.exp(epsilon / spread * (np.asarray(scores, dtype=float) - max(scores)))
    return weights / weights.sum()


def p_value(found, expected):
    expected = expected * found.sum()
    large = expected >= 5
    return special.chdtrc(max(1, large.sum() - 1), ((found - expected)[large] ** 2 / expected[large]).sum())


# The mechanism


@pytest.mark.slow
@pytest.mark.parametrize(("monotonic", "spread"), [(True, 3), (False, 6)])
def test_choices_have_their_law(monotonic, spread):
    choice = dpf.ExponentialMechanism.of_steps(3, 0.7, monotonic=monotonic, options=4)
    scores = np.array([10, 4, 0, 12], dtype=np.int64)
    with insecure_bits(11):
        found = np.bincount([choice.choose(scores) for _ in range(8_000)], minlength=4)
        public = np.bincount(
            [dpf.exponential_mechanism(scores, epsilon=0.7, sensitivity=3, monotonic=monotonic) for _ in range(8_000)],
            minlength=4,
        )
    for drawn in (found, public):
        assert p_value(drawn, law(scores, 0.7, spread)) > FALSE_ALARM
        assert p_value(drawn, law(scores, 0.7, spread * 0.7)) < FALSE_ALARM  # power: a choice that is too sharp


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 2**60, -(2**63)])
def test_the_law_depends_on_differences_alone(offset):
    """As floats, such scores would all be equal, and the choice would be uniform."""
    choice = dpf.ExponentialMechanism.of_steps(1, 1.0, monotonic=True, options=3)
    scores = np.array([0, 2, 1], dtype=np.int64) + np.int64(offset)
    with insecure_bits(5):
        found = np.bincount([choice.choose(scores) for _ in range(5000)], minlength=3)
        exact = np.bincount(
            [
                dpf.exponential_mechanism([int(score) for score in scores], epsilon=1, sensitivity=1, monotonic=True)
                for _ in range(5000)
            ],
            minlength=3,
        )
    for drawn in (found, exact):
        assert p_value(drawn, law([0, 2, 1], 1.0, 1)) > FALSE_ALARM


def test_scores_of_any_kind_are_taken_exactly():
    tiny = Fraction(1, 10**30)
    for scores in ([0.1 + 0.2, 0.3], [Fraction(1, 3), Fraction(1, 3) + tiny], np.array([1.5, -1e300])):
        assert dpf.exponential_mechanism(scores[:1], epsilon=1, sensitivity=1) == 0
        assert dpf.exponential_mechanism(scores, epsilon=1, sensitivity=1) in (0, 1)
    assert dpf.exponential_mechanism([0, 1], epsilon=1e6, sensitivity=1) == 1
    assert dpf.exponential_mechanism([Fraction(0), tiny], epsilon=Fraction(10) ** 33, sensitivity=1) == 1


SMALL = list(itertools.product(range(4), repeat=3))


def worst_loss(epsilon, spread, neighbors):
    return max(
        np.abs(np.log(law(scores, epsilon, spread)) - np.log(law(other, epsilon, spread))).max()
        for scores in SMALL
        for other in neighbors(scores)
    )


def added(scores):
    """Return the scores after one more unit, which adds at most 2 to each option."""
    return [tuple(np.add(scores, moved)) for moved in itertools.product(range(3), repeat=3)]


def replaced(scores):
    return [
        tuple(np.subtract(np.add(scores, one), other))
        for one, other in itertools.product(itertools.product(range(3), repeat=3), repeat=2)
    ]


def test_no_neighbors_are_told_apart_by_more_than_epsilon():
    for neighbors, spread in ((added, 2), (replaced, 4)):
        found = worst_loss(1.5, spread, neighbors)
        assert found <= 1.5 * (1 + 1e-12)
        assert found > 0.75 * 1.5


def test_the_sharper_choice_would_not_be_private_under_replacement():
    """Seeded: the spread of counts that all move the same way, although they do not."""
    assert worst_loss(1.5, 2, replaced) > 2.0


def below_by_weight(options, chance):
    rest = (options - 1) * chance
    return rest / (1 + rest)


def below_by_permutation(options, chance):
    """Return 1 less the chance of the best, which is chosen if none of the j options before it was taken."""
    return 1 - math.fsum((1 - chance) ** before for before in range(options)) / options


@pytest.mark.parametrize(
    ("kind", "below"), [(dpf.ExponentialMechanism, below_by_weight), (dpf.PermuteAndFlip, below_by_permutation)]
)
@pytest.mark.parametrize("options", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999])
def test_the_shortfall_is_that_of_the_worst_scores(kind, below, options, confidence):
    choice = kind.of_steps(2, 0.3, monotonic=False, options=options, grid=0.5)
    shortfall = choice.interval(confidence)

    def beyond(steps):
        """Return P(the chosen score is at least this many steps below) if all others are exactly that far below."""
        return below(options, math.exp(-0.3 * steps / 4))

    assert beyond(shortfall / 0.5 + 1) <= 1 - confidence + 1e-12
    assert shortfall == 0 or beyond(shortfall / 0.5) > 1 - confidence
    assert choice.variance >= 0


def test_curves_and_costs_of_permute_and_flip_are_those_of_pure_privacy():
    choice = dpf.PermuteAndFlip.of_steps(1, 0.3, monotonic=True, options=5)
    laplace = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.3)
    assert choice.epsilon(0.0) == pytest.approx(0.3, rel=1e-15)
    assert choice.delta(0.3) == 0.0
    assert choice.delta(0.1) == pytest.approx((math.exp(0.3) - math.exp(0.1)) / (1 + math.exp(0.3)), rel=1e-12)
    assert float(choice.mu_squared) == pytest.approx(float(laplace.mu_squared), rel=1e-12)
    assert float(choice.renyi(Fraction(8))) == pytest.approx(float(laplace.renyi(Fraction(8))), rel=1e-12)


# Permute-and-flip


def flipped(scores, rate):
    """Return the law of permute-and-flip by enumeration of all orders; exact up to rounding."""
    chances = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    found = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for place in order:
            found[place] += left * chances[place]
            left *= 1.0 - chances[place]
    return found / math.factorial(len(scores))


@pytest.mark.parametrize(
    ("scores", "rate", "expected", "by_weight"),
    [
        (
            (3, 2, 0),
            1.0,
            (0.797271958193, 0.180887114104, 0.0218409277025),
            (0.705384512698, 0.259496460342, 0.0351190269593),
        ),
        (
            (10, 9, 9, 1),
            0.5,
            (0.514011594215, 0.241169662781, 0.241169662781, 0.00364908022263),
            (0.44960585654, 0.272699736778, 0.272699736778, 0.00499466990388),
        ),
        ((7, 4, 4, 4, 4), 0.3, (0.455717688712, *[0.136070577822] * 4), (0.380766909179, *[0.154808272705] * 4)),
    ],
)
@pytest.mark.slow
def test_both_choices_have_their_published_laws(scores, rate, expected, by_weight):
    assert flipped(scores, rate) == pytest.approx(expected, rel=1e-10)
    assert law(scores, rate, 1) == pytest.approx(by_weight, rel=1e-10)
    options, totals_ = len(scores), np.array(scores, dtype=np.int64)
    for kind, right, wrong in (
        (dpf.PermuteAndFlip, expected, by_weight),
        (dpf.ExponentialMechanism, by_weight, expected),
    ):
        choice = kind.of_steps(1, Fraction(str(rate)), monotonic=True, options=options)
        with insecure_bits(7):
            found = np.bincount([choice.choose(totals_) for _ in range(8_000)], minlength=options)
        assert p_value(found, np.array(right)) > FALSE_ALARM, (kind.__name__, found)
        assert p_value(found, np.array(wrong)) < FALSE_ALARM, (kind.__name__, found)


def test_permute_and_flip_of_many_options_and_wrapped_scores():
    """Options that repeat in a batch are skipped, and differences of scores are exact over all of int64."""
    many = np.zeros(5_000, dtype=np.int64)
    many[4_321] = 10**6
    choice = dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=True, options=5_000)
    assert {choice.choose(many) for _ in range(20)} == {4_321}
    ends = np.array([-(2**63), 2**63 - 1], dtype=np.int64)
    assert dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=True, options=2).choose(ends) == 1
    assert dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=True, options=1).choose(ends[:1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3, 2**16])
def test_an_option_is_looked_at_once(batch, monkeypatch):
    """Five options are far below the largest. Draws with replacement would take one in time, in one batch or many."""
    monkeypatch.setattr(samplers, "BATCH", batch)
    scores, rate = np.array([3, 0, 0, 0, 0, 0], dtype=np.int64), 1.0
    choice = dpf.PermuteAndFlip.of_steps(1, rate, monotonic=True, options=6)
    with insecure_bits(3):
        found = np.bincount([choice.choose(scores) for _ in range(20_000)], minlength=6)
    assert p_value(found, flipped(tuple(scores), rate)) > FALSE_ALARM
    assert p_value(found, law(scores, rate, 1)) < FALSE_ALARM


def worst_flip(epsilon, spread, neighbors):
    laws = {}

    def of(scores):
        key = tuple(int(score) - max(map(int, scores)) for score in scores)
        if key not in laws:
            laws[key] = np.log(flipped(key, epsilon / spread))
        return laws[key]

    return max(np.abs(of(scores) - of(other)).max() for scores in SMALL for other in neighbors(scores))


@pytest.mark.slow
def test_permute_and_flip_tells_no_neighbors_apart_by_more_than_epsilon():
    """By enumeration: the loss comes near epsilon, and half the spread under replacement would not be private."""
    assert 1.5 * 0.9 < worst_flip(1.5, 2, added) <= 1.5 * (1 + 1e-12)
    assert worst_flip(1.5, 4, replaced) <= 1.5 * (1 + 1e-12)
    assert worst_flip(1.5, 2, replaced) > 2.0


def test_permute_and_flip_is_nowhere_farther_from_the_largest():
    for scores in SMALL:
        gaps = max(scores) - np.array(scores)
        assert flipped(scores, 0.8) @ gaps <= law(scores, 0.8, 1) @ gaps + 1e-12


@pytest.mark.parametrize(
    ("options", "flip", "weight"),
    [
        (2, 2.302585093, 2.944438979),
        (3, 2.978632799, 3.63758616),
        (10, 4.469412091, 5.141663557),
        (100, 6.863853452, 7.539558829),
        (1000, 9.17517722, 9.851193758),
    ],
)
def test_published_shortfalls(options, flip, weight):
    fine = 2**30
    for kind, expected in ((dpf.PermuteAndFlip, flip), (dpf.ExponentialMechanism, weight)):
        choice = kind.of_steps(fine, 1, monotonic=True, options=options, grid=1 / fine)
        assert choice.interval(0.95) == pytest.approx(expected, rel=1e-8)


# The bounded range


BOUNDED = {
    "0.5": (0.312979499482, 0.124353001772, 0.0350903526362, (0.0618596072403, 0.212192325528, 0.386542217084)),
    "1": (0.623892592099, 0.244918662404, 0.0774046863157, (0.240229013917, 0.635459398564, 0.871249341769)),
    "2": (1.23203538534, 0.46211715726, 0.179049889217, (0.867561660966, 1.59017958403, 1.86114412604)),
    "4": (2.35796148565, 0.761594155956, 0.407031441798, (2.65000549472, 3.57204630811, 3.85704967407)),
}


@pytest.mark.parametrize("epsilon", BOUNDED)
def test_published_charges_of_a_bounded_range(epsilon):
    mu, at_zero, at_half, divergences = BOUNDED[epsilon]
    choice = dpf.ExponentialMechanism.of_steps(1, Fraction(epsilon), monotonic=True, options=5)
    assert choice.mu == pytest.approx(mu, rel=1e-11)
    assert choice.delta(0) == pytest.approx(at_zero, rel=1e-11)
    assert choice.delta(Fraction(epsilon) / 2) == pytest.approx(at_half, rel=1e-11)
    assert [float(choice.renyi(Fraction(order))) for order in (2, 8, 32)] == pytest.approx(divergences, rel=1e-11)
    assert choice.delta(float(epsilon)) == 0.0
    assert choice.epsilon(choice.delta(0.25)) == pytest.approx(0.25, rel=1e-12)
    assert choice.epsilon(0.9) == 0.0
    assert choice.deltas(np.array([-0.25]))[0] == pytest.approx(
        1 - math.exp(-0.25) + math.exp(-0.25) * choice.delta(0.25), rel=1e-12
    )


def two_outcomes(epsilon, top):
    """Return P and Q of two outcomes with the losses top and top - epsilon."""
    first = (math.exp(-top) - math.exp(-epsilon)) / -math.expm1(-epsilon)
    return np.array([first * math.exp(top), 1 - first * math.exp(top)]), np.array([first, 1 - first])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_pair_of_a_bounded_range_costs_more_and_the_worst_costs_that_much(epsilon):
    """All pairs on two outcomes, of which every other pair is a mixture: delta, mu and divergences."""
    choice = dpf.ExponentialMechanism.of_steps(1, epsilon, monotonic=True, options=5)
    pairs = [two_outcomes(epsilon, top) for top in np.linspace(0.0, epsilon, 4001)[1:-1]]
    for point in (0.0, 0.3 * epsilon, 0.9 * epsilon):
        worst = max(np.maximum(p - math.exp(point) * q, 0).sum() for p, q in pairs)
        assert worst <= choice.delta(point) * (1 + 1e-12)
        assert worst == pytest.approx(choice.delta(point), rel=1e-4)
    worst = max(special.ndtri(p[0]) - special.ndtri(q[0]) for p, q in pairs)
    assert choice.mu * (1 - 1e-6) < worst <= choice.mu * (1 + 1e-12)
    for order in (1.5, 2.0, 9.0):
        worst = max(math.log((p**order * q ** (1 - order)).sum()) / (order - 1) for p, q in pairs)
        said = float(choice.renyi(Fraction(order)))
        assert worst <= said * (1 + 1e-11)
        assert worst == pytest.approx(said, rel=1e-5)


@pytest.mark.slow
def test_the_exponential_mechanism_keeps_its_bounded_range():
    """All neighbors of small scores: the losses are within epsilon of each other, and the charge covers them."""
    for neighbors, spread in ((added, 2), (replaced, 4)):
        choice = dpf.ExponentialMechanism.of_steps(2, 1.5, monotonic=spread == 2, options=3)
        assert choice.spread == spread
        for scores in SMALL[::3]:
            mine = law(scores, 1.5, spread)
            for other in neighbors(scores):
                theirs = law(other, 1.5, spread)
                losses = np.log(mine / theirs)
                assert np.ptp(losses) <= 1.5 + 1e-12
                for point in (0.0, 0.75):
                    assert np.maximum(mine - math.exp(point) * theirs, 0).sum() <= choice.delta(point) + 1e-12
                    assert np.maximum(theirs - math.exp(point) * mine, 0).sum() <= choice.delta(point) + 1e-12
                assert math.log((mine**2 / theirs).sum()) <= float(choice.renyi(Fraction(2))) + 1e-12


def test_permute_and_flip_has_no_bounded_range():
    """By enumeration, its losses differ by more, so accountings by curves charge it like any pure release."""
    ranges = [
        np.ptp(np.log(flipped(scores, 0.75)) - np.log(flipped(other, 0.75)))
        for scores in SMALL[::5]
        for other in added(scores)[::2]
    ]
    assert max(ranges) > 1.5 * 1.2


@pytest.mark.parametrize("own", [1e-9, 1e-3, 30.0, 1e4])
@pytest.mark.parametrize("order", [1.03125, 2.0, 2.0**20, 2.0**50])
def test_divergences_of_any_size_are_between_what_is_known(own, order):
    choice = dpf.ExponentialMechanism.of_steps(1, own, monotonic=True, options=5)
    found = float(choice.renyi(Fraction(order)))
    assert 0 < found <= own * (1 + 1e-12)
    assert found <= order * choice.mu**2 / 2 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("scores must hold at least one", lambda: dpf.exponential_mechanism([], epsilon=1, sensitivity=1)),
        ("scores must be real numbers", lambda: dpf.exponential_mechanism(["a"], epsilon=1, sensitivity=1)),
        ("scores must be real numbers", lambda: dpf.exponential_mechanism([True, 1], epsilon=1, sensitivity=1)),
        ("scores must be finite", lambda: dpf.exponential_mechanism([math.nan, 1], epsilon=1, sensitivity=1)),
        ("scores must be finite", lambda: dpf.exponential_mechanism([1, math.inf], epsilon=1, sensitivity=1)),
        ("epsilon must be", lambda: dpf.exponential_mechanism([1], epsilon=0, sensitivity=1)),
        ("sensitivity must be", lambda: dpf.exponential_mechanism([1], epsilon=1, sensitivity=0)),
        ("monotonic must be", lambda: dpf.exponential_mechanism([1], epsilon=1, sensitivity=1, monotonic="yes")),
        ("step_sensitivity must be", lambda: dpf.ExponentialMechanism.of_steps(0, 1, monotonic=True, options=2)),
    ],
)
def test_what_is_out_of_range_is_refused(words, call):
    with pytest.raises(dpf.DpframeError, match=words):
        call()


# The verb

DATA = {
    "ward": ["A"] * 300 + ["B"] * 40 + [None] * 900,
    "patient": [n // 3 for n in range(1240)],
    "day": [date(2024, 1, 1)] * 1240,
}


def test_the_most_common_value_on_every_engine(engine):
    ledger = dpf.Ledger(epsilon=3)
    frame = engine(DATA)
    with ledger:
        ward = frame.dp.mode("ward", categories=["A", "B", "C"], epsilon=1)
        missing = frame.dp.mode("ward", categories=["A", None], epsilon=1)
        day = frame.dp.mode("day", categories=[date(2024, 1, 1), date(2024, 1, 2)], epsilon=1, label="the day")
    assert ledger.spent == dpf.PrivacyLoss(3.0)
    assert engine.columns(ward) == {"ward": ["A"]}
    assert engine.is_pandas or missing["ward"].to_list() == [None]
    assert not engine.is_pandas or missing["ward"].isna().tolist() == [True]
    assert str(day["day"].to_list()[0])[:10] == "2024-01-01"
    facts = ward.dp.provenance
    (total,) = facts["statistics"]
    assert (facts["verb"], facts["measures"], facts["altered"]) == ("mode", {}, False)
    assert (total["noise"], total["options"], total["sensitivity"]) == ("permute-and-flip", 3, 1.0)
    assert (total["scale"], day.dp.provenance["label"]) == (1.0, "the day")
    assert "variance" not in total
    jsonschema = pytest.importorskip("jsonschema")
    for found in (ward, missing, day):
        jsonschema.Draft202012Validator(SCHEMA).validate(found.dp.provenance)
        assert not found.dp.provenance["altered"]


def test_the_dtype_is_that_of_the_options_whichever_is_chosen():
    with dpf.Ledger(epsilon=1e7), insecure_bits(1):
        frame = pl.DataFrame({"ward": [None, None, None]}, schema={"ward": pl.String})
        chosen = [frame.dp.mode("ward", categories=["A", None], epsilon=1e6) for _ in range(2)]
    assert [found.schema for found in chosen] == [pl.Schema({"ward": pl.String})] * 2
    assert chosen[0]["ward"].to_list() == [None]


def test_an_enum_declares_its_own_options():
    frame = pl.DataFrame({"ward": ["A", "B"]}, schema={"ward": pl.Enum(["A", "B", "C"])})
    with dpf.Ledger(epsilon=1):
        plan = frame.dp.preview.mode("ward", epsilon=1)
        assert plan.parts[0].mechanism.options == 3
        assert frame.dp.mode("ward", epsilon=1)["ward"].to_list()[0] in ("A", "B", "C")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [[], ["A", "B", "C"]])
def test_ties_and_empty_frames_give_every_value_the_same_chance(rows):
    frame = pl.DataFrame({"ward": rows}, schema={"ward": pl.String})
    with dpf.Ledger(epsilon=10_000), insecure_bits(2):
        found = [frame.dp.mode("ward", categories=["A", "B", "C"], epsilon=5)["ward"][0] for _ in range(600)]
    counts = np.array([found.count(ward) for ward in "ABC"])
    assert p_value(counts, np.full(3, 1 / 3)) > FALSE_ALARM


def test_replacement_takes_twice_the_spread():
    plan = lambda **unit: pl.DataFrame(DATA).dp.preview.mode(  # noqa: E731
        "ward", categories=["A", "B"], epsilon=0.5, unit=dpf.PrivacyUnit(**unit)
    )
    assert plan().parts[0].mechanism.scale == 2.0
    assert plan(neighbors="replace").parts[0].mechanism.scale == 4.0
    assert plan(column="patient", max_rows=3, max_groups=7).parts[0].mechanism.scale == 6.0
    assert plan(column="patient", max_rows=3, neighbors="replace").parts[0].mechanism.scale == 12.0


def test_no_unit_moves_a_count_by_more_than_the_sensitivity(engine):
    """The weights are in the largest-entry norm; each of several uneven units is left out in turn."""
    random = np.random.default_rng(8)
    size = 400
    columns = {
        "ward": random.choice(["A", "B", "C", "D"], size, p=[0.7, 0.1, 0.1, 0.1]).tolist(),
        "patient": random.choice(12, size, p=np.arange(1, 13) / 78).tolist(),
    }
    unit = dpf.PrivacyUnit(column="patient", max_rows=4)
    query = Query("mode", Keys((category_axis("ward", ["A", "B", "C"]),)), (("ward_shortfall", Count()),))
    found = lambda rows: totals(engine(rows), query, unit, math.inf)[Total(None)]  # noqa: E731
    whole = found(columns)
    largest = 0
    for patient in range(12):
        kept = [place for place, other in enumerate(columns["patient"]) if other != patient]
        moved = whole - found({name: [values[place] for place in kept] for name, values in columns.items()})
        rows = [
            sum(w == ward and p == patient for w, p in zip(columns["ward"], columns["patient"], strict=True))
            for ward in "ABC"
        ]
        expected = np.array(rows) * min(1.0, 4 / max([*rows, 1]))
        assert moved / 2**20 == pytest.approx(expected, abs=1e-5)
        assert moved.min() >= 0
        largest = max(largest, moved.max())
    assert 4 * 2**20 * 0.999 < largest <= 4 * 2**20


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_every_accounting_takes_the_choice_that_is_better_there(accounting):
    ledger = dpf.Ledger(epsilon=2, delta=1e-6, accounting=accounting)
    laplace = dpf.Ledger(epsilon=2, delta=1e-6, accounting=accounting)
    pl.DataFrame(DATA).dp.mode("ward", categories=["A", "B"], epsilon=0.1, ledger=ledger)
    pl.DataFrame(DATA).dp.count(epsilon=0.1, mechanism="laplace", ledger=laplace)
    price = {"epsilon": 0.1, "ledger": dpf.Ledger(epsilon=2, delta=1e-6, accounting=accounting)}
    plan, pure = (
        pl.DataFrame(DATA).dp.preview.mode("ward", categories=["A", "B"], **price),
        pl.DataFrame(DATA).dp.preview.count(mechanism="laplace", **price),
    )
    if accounting == "basic":
        assert ledger.spent == laplace.spent
        assert type(plan.noises[0]) is dpf.PermuteAndFlip
        assert plan.amount == pure.amount
    else:
        assert ledger.spent.epsilon < laplace.spent.epsilon
        assert type(plan.noises[0]) is dpf.ExponentialMechanism
        assert 3.3 < pure.amount[0] / plan.amount[0] < 4.0


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_a_share_takes_at_most_that_share_and_most_of_it(accounting):
    ledger = dpf.Ledger(epsilon=2, delta=1e-6, accounting=accounting)
    plan = pl.DataFrame(DATA).dp.preview.mode("ward", categories=["A", "B"], share=0.3, ledger=ledger)
    part = plan.amount[0] / ledger.limit_amount[0]
    assert 0.3 * (0.5 if accounting == "rdp" else 1 - 1e-9) < part <= Fraction(3, 10)
    pl.DataFrame(DATA).dp.mode("ward", categories=["A", "B"], share=0.3, ledger=ledger)


def test_together_with_gaussian_noise_the_range_is_bounded():
    """If curves are composed, the exponential mechanism leaves more of the budget to the other queries."""
    pytest.importorskip("dp_accounting")
    preview = pl.DataFrame(DATA).dp.preview
    plans = {"ward": preview.mode("ward", categories=["A", "B", "C"]), "n": preview.count()}
    joint = dpf.plan_together(
        plans, epsilon=1, delta=1e-6, ledger=dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic")
    )
    assert type(joint.plans["ward"].noises[0]) is dpf.ExponentialMechanism
    alone = dpf.plan_together(plans, epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert type(alone.plans["ward"].noises[0]) is dpf.PermuteAndFlip


def test_a_plan_says_what_to_expect(engine):
    plan = engine(DATA).dp.preview.mode("ward", categories=["A", "B", "C"], epsilon=0.5)
    assert plan.error == {"ward_shortfall": 5.0}
    assert "one of 3 options" in repr(plan)
    assert "at most 5 below the largest" in repr(plan)
    table = engine(DATA).dp.preview.mode("ward", categories=["A", "B", "C"])
    assert "most below the largest" in repr(table)
    assert table.to_frame()["ward_shortfall_error"].to_list() == [297.0, 99.0, 29.0, 9.0, 2.0, 0.0, 0.0]


def test_a_selection_is_a_result(engine, tmp_path):
    found = engine(DATA).dp.mode("ward", categories=["A", "B"], epsilon=1, ledger=dpf.Ledger(epsilon=1))
    with pytest.raises(dpf.AlreadyReleased):
        found.dp.mode("ward", categories=["A"], epsilon=1)
    for call in (found.dp.plot, found.dp.table, found.dp.errors, lambda: found.dp.to_numpy("ward")):
        with pytest.raises(dpf.InvalidArgument, match="a selection is one of the declared options"):
            call()
    found.dp.write_parquet(tmp_path / "ward.parquet")
    for like in ("polars", "pandas") if engine.is_pandas else ("polars",):
        again = dpf.read_parquet(tmp_path / "ward.parquet", like=like)
        assert again["ward"].to_list() == ["A"]
        assert not again.dp.provenance["altered"]


def test_another_value_is_told():
    pandas = pytest.importorskip("pandas")
    found = pandas.DataFrame(DATA).dp.mode("ward", categories=["A", "B"], epsilon=9, ledger=dpf.Ledger(epsilon=9))
    assert found.assign(ward=["B"]).dp.provenance["altered"]


@pytest.mark.parametrize(
    ("error", "words", "ask"),
    [
        (dpf.InvalidType, "delta is not an argument of mode: a choice", lambda dp: dp.mode("ward", delta=1e-6)),
        (dpf.InvalidType, "mechanism is not an argument of mode", lambda dp: dp.mode("ward", mechanism="laplace")),
        (dpf.InvalidType, "denoise is not an argument of mode", lambda dp: dp.mode("ward", denoise="auto")),
        (dpf.InvalidType, "within is not an argument of mode", lambda dp: dp.mode("ward", within=3)),
        (dpf.InvalidType, "bins is not an argument of mode", lambda dp: dp.mode("ward", bins=3)),
        (dpf.MissingArgument, "categories must be given", lambda dp: dp.mode("ward", epsilon=1)),
        (dpf.MissingArgument, "column must be given", lambda dp: dp.mode(categories=["A"], epsilon=1)),
        (dpf.MissingArgument, "epsilon must be given", lambda dp: dp.mode("ward", categories=["A"])),
        (dpf.UnknownColumn, "column 'wart'", lambda dp: dp.mode("wart", categories=["A"], epsilon=1)),
        (dpf.WrongDtype, "categories of column", lambda dp: dp.mode("patient", categories=["A"], epsilon=1)),
        (
            dpf.InvalidArgument,
            "mode must be called on the whole frame",
            lambda dp: dp.group_by("ward", keys=["A"]).mode("patient", categories=[1], epsilon=1),
        ),
    ],
)
def test_wrong_calls_get_words_and_cost_nothing(engine, error, words, ask):
    ledger = dpf.Ledger(epsilon=1)
    with ledger, pytest.raises(error, match=words):
        ask(engine(DATA).dp)
    assert ledger.spent == dpf.PrivacyLoss(0.0)


@pytest.mark.parametrize("settings", ["raise", "warn"])
def test_265_scores_that_are_far_apart_make_no_choice_fail_or_warn(settings):
    """`numpy.seterr` made the exponential mechanism fail or warn by the gap between two scores."""
    with np.errstate(all=settings), warnings.catch_warnings():
        warnings.simplefilter("error")
        for gap in (684, 685, 708, 709, 745, 5_000):
            assert dpf.exponential_mechanism([0, gap], epsilon=1, sensitivity=1, monotonic=True) == 1
