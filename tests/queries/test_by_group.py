"""Bounds by group: exact clipped numbers, how far a neighbor moves them, intervals, and whole calls on every engine.

False alarms: noise at an epsilon of 10^7 or more exceeds the asserted tolerances with a chance below 10^-6.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from neighbors import (
    BY_GROUP,
    EACH_ENGINE,
    EVERYTHING,
    ROWS_AND_UNITS,
    UNITS,
    given_as,
    largest_by_chance,
    query_of,
    ratios,
    tables_on,
)

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.total import Measured
from tests.covering import chance_of_missing

NOBODY = PrivacyUnit()
ROWS = pl.DataFrame(
    {
        "x": [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.3, 1.0, 2.0, 9.0, 1.7, 5.0, 3.0],
        "n": [1, 2, 3, 4, 5, None, 2**53 + 1, -8, 9, 10, 11, -(2**63), 0],
        "ward": ["A", "B", None, "C", "A", "B", "A", "B", None, "C", "a", "A", "A"],
        "u": [1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6, 6],
        "g": [*["A", "B", "C"] * 4, "D"],
    }
)
BOUNDS = {"A": (0, 2), "C": (-4, -1), "B": (-1, 8)}  # in an order that differs from that of the keys
ASKED = {
    "sum": lambda **o: dpf.sum("x", bounds=BOUNDS, **o),
    "mean": lambda **o: dpf.mean("x", bounds=BOUNDS, **o),
    "sum of integers": lambda **o: dpf.sum("n", bounds=BOUNDS, **o),
}


def bound(statistic, keys=BY_GROUP):
    return statistic.of_keys(keys)


def integers(frame, statistic, unit=NOBODY, p=1.0):
    query = query_of(bound(statistic), BY_GROUP, p == 1)
    return [cells.tolist() for cells in totals(frame, check(frame, query, unit), unit, p).values()]


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
@pytest.mark.parametrize("name", ASKED)
def test_each_group_has_its_own_bounds(name, library):
    """Integers on a grid of 2**-30: shares of the larger bound for sums, distances to both bounds for means."""
    frame = given_as(ROWS, library)
    where = {"ward": ["A", "B", None]}
    for asked, rows in (
        (ASKED[name](), ROWS),
        (ASKED[name](where=where), ROWS.filter(pl.col("ward").is_in(["A", "B"]) | pl.col("ward").is_null())),
    ):
        (found,) = integers(frame, asked)
        exact = []
        for group in "ABC":
            lower, upper = BOUNDS[group]
            values = rows.filter(g=group)["n" if "integers" in name else "x"].cast(pl.Float64).drop_nulls().drop_nans()
            if "sum" in name:
                parts = values.to_numpy().clip(lower, upper) / max(abs(lower), abs(upper))
                exact.append(sum(math.floor(part * 2**30 + 0.5) for part in parts.tolist()))
            else:
                t = ((values.to_numpy() - lower) / (upper - lower)).clip(0, 1)
                above = sum(math.floor(one * 2**30 + 0.5) for one in t.tolist())
                exact += [above, len(t) * 2**30 - above]
        assert found == exact


FAR = {"sum": ASKED["sum"](), "mean": ASKED["mean"](where={"x": (-3, 4)}), "variance": dpf.variance("x", bounds=BOUNDS),
    "above": dpf.sum("x", bounds={
    "A": (1, 2), "B": (0, 300), "C": (2, 3)})}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", FAR)
def test_no_neighbor_is_farther_than_the_sensitivity(name, unit):
    for p in (1, 2):
        query = query_of(bound(FAR[name]), BY_GROUP, p == 1)
        assert largest_by_chance(query, unit, p, tries=25) <= 1 + 1e-15


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("group", ["A", "B", "C"])
def test_the_sensitivity_is_attained_in_every_group(group, neighbors):
    """Steps are in proportion to the bounds of each group, so a unit moves the same number of steps in any group."""
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    far = {"A": 99.0, "B": 99.0, "C": -99.0}
    other = "A" if group != "A" else "B"
    mine, instead = [(group, far[group])] * 2, [(other, far[other])] * 2
    for asked in (FAR["sum"], dpf.mean("x", bounds=BOUNDS)):
        query = query_of(bound(asked), BY_GROUP, pure=True)
        (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], 1).values()
        assert found == pytest.approx(1.0)


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "Gaussian"])
@pytest.mark.parametrize("where", [None, {"ward": ["A", "B", None]}])
def test_a_variance_is_measured_of_places_between_the_bounds_of_each_group(where, pure):
    """They equal the integers of a variance with bounds (0, 1), of places that this test computes itself."""
    ends = {group: BOUNDS[group] for group in "ABC"}
    lower, length = (
        pl.col("g").replace_strict({group: float(number) for group, number in numbers.items()}, default=None)
        for numbers in ({g: low for g, (low, _) in ends.items()}, {g: up - low for g, (low, up) in ends.items()})
    )
    placed = ROWS.with_columns(((pl.col("x") - lower) / length).alias("x"))
    for unit in (NOBODY, PrivacyUnit("u", max_rows=2, max_groups=2)):
        p = 1.0 if pure else 2.0
        own = integers(ROWS, dpf.variance("x", bounds=BOUNDS, where=where), unit, p)
        query = query_of(dpf.variance("x", bounds=(0, 1), where=where), BY_GROUP, pure)
        assert own == [cells.tolist() for cells in totals(placed, check(placed, query, unit), unit, p).values()]


@EACH_ENGINE
@ROWS_AND_UNITS
def test_every_engine_gives_the_same(engine, unit):
    with tables_on(engine) as given:
        table = given(ROWS)
        for name, ask in ASKED.items():
            for asked in (ask(), ask(where={"ward": ["A", "B"]})):
                assert integers(table, asked, unit) == integers(ROWS, asked, unit), name


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize("strength", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("pure", [True, False], ids=["pure", "Gaussian"])
def test_intervals_cover(pure, strength, size):
    """In each of three groups: over 10,000 releases, a false alarm below 1e-6 / 108."""
    repeats, ends = 10_000, np.array([BOUNDS[group] for group in "ABC"], dtype=np.float64)
    values = np.where(np.arange(size)[:, None] % 3 == 0, ends[:, 1], ends[:, 0])
    if pure:
        noise = dpf.Laplace.calibrate(sensitivity=1.0, epsilon=strength, grid=2.0**-30)
    else:
        noise = dpf.Gaussian.calibrate(sensitivity=1.0, epsilon=strength, delta=1e-6, grid=2.0**-30)
    t = (values - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    parts = values / np.abs(ends).max(axis=1)
    for asked, exact, truth in (
        (dpf.sum("x", bounds=BOUNDS), parts.sum(axis=0), values.sum(axis=0)),
        (dpf.mean("x", bounds=BOUNDS), np.stack([t.sum(axis=0), (1 - t).sum(axis=0)], axis=1), values.mean(axis=0)),
    ):
        statistic = bound(asked)
        (total,) = statistic.totals()
        steps = np.tile(np.round(exact * 2**30).astype(np.int64).ravel(), repeats)
        noisy = noise.add_noise(steps).reshape(repeats, -1) * 2.0**-30
        missed = np.zeros(3, dtype=np.int64)
        for row in noisy:
            found, errors = statistic.answer({total: Measured(row, noise)})
            missed += np.abs(found - truth) > errors + 1e-6
        assert (chance_of_missing(missed, repeats, 0.05) > 1e-6 / 108).all()


@pytest.mark.slow
@pytest.mark.parametrize("ask", [dpf.variance, dpf.std], ids=["variance", "std"])
@pytest.mark.parametrize("strength", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("pure", [True, False], ids=["pure", "Gaussian"])
def test_intervals_of_variances_cover(pure, strength, ask):
    """In each of three groups of 400 values: over 5,000 releases, a false alarm below 1e-6 / 36.

    With so many values, the noise is small compared with their count.
    """
    repeats, size, ends = 5_000, 400, np.array([BOUNDS[group] for group in "ABC"], dtype=np.float64)
    t = np.linspace(0, 1, size)[:, None] * np.ones(3)
    values = ends[:, 0] + t * (ends[:, 1] - ends[:, 0])
    truth = values.var(axis=0, ddof=1) if ask is dpf.variance else values.std(axis=0, ddof=1)
    statistic = bound(ask("x", bounds=BOUNDS)).under(pure)
    noises, noisy = {}, {}
    for total, exact in zip(statistic.totals(), _exact(t, pure), strict=True):
        if pure:
            noise = dpf.Laplace.calibrate(sensitivity=1.0, epsilon=strength, grid=2.0**-30)
        else:
            noise = dpf.Gaussian.calibrate(sensitivity=1.0, epsilon=strength, delta=1e-6, grid=2.0**-30)
        steps = np.tile(np.round(exact * 2**30).astype(np.int64).ravel(), repeats)
        noises[total], noisy[total] = noise, noise.add_noise(steps).reshape(repeats, -1) * 2.0**-30
    missed = np.zeros(3, dtype=np.int64)
    for turn in range(repeats):
        measured = {total: Measured(values[turn], noises[total]) for total, values in noisy.items()}
        found, errors = statistic.answer(measured)
        missed += np.abs(found - truth) > errors + 1e-6
    assert (chance_of_missing(missed, repeats, 0.05) > 1e-6 / 36).all()


def _exact(t, pure):
    """Return the sums that are measured of places: Bernstein polynomials, or count, centered sum and squares."""
    if pure:
        return [np.stack([((1 - t) ** 2).sum(axis=0), (2 * t * (1 - t)).sum(axis=0), (t**2).sum(axis=0)], axis=1)]
    return [np.full(3, len(t)), (t - 0.5).sum(axis=0), (4 * (t - 0.5) ** 2 - 0.5).sum(axis=0)]


def stays(rows=3_000):
    generator = np.random.default_rng(9)
    ward = generator.choice(["A", "B", "C"], rows, p=[0.6, 0.3, 0.1])
    cost = np.where(ward == "A", generator.normal(5, 3, rows), generator.normal(60, 30, rows))
    frame = pl.DataFrame({"ward": ward, "cost": cost, "u": np.arange(rows) // 2})
    return frame.with_columns(pl.when(pl.int_range(rows) % 11 == 3).then(None).otherwise(pl.col("cost")).alias("cost"))


OF_WARDS = {"A": (0, 10), "B": (0, 100), "C": (20, 90)}


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "Gaussian"])
def test_against_exact_numbers(library, delta):
    frame = stays()
    wards = given_as(frame, library).dp.group_by("ward", keys=["A", "B", "C"])
    found = wards.agg(
        s=dpf.sum("cost", bounds=OF_WARDS),
        m=dpf.mean("cost", bounds=OF_WARDS),
        v=dpf.variance("cost", bounds=OF_WARDS),
        d=dpf.std("cost", bounds=OF_WARDS, ddof=0),
        n=dpf.count("cost"),
        epsilon=1e8,
        delta=delta,
        ledger=dpf.Ledger(epsilon=1e9, delta=delta or 0.0),
    )
    for place, ward in enumerate("ABC"):
        clipped = frame.filter(ward=ward)["cost"].drop_nulls().clip(*OF_WARDS[ward])
        assert found["s"].to_list()[place] == pytest.approx(clipped.sum(), abs=0.5)
        assert found["m"].to_list()[place] == pytest.approx(clipped.mean(), abs=1e-2)
        assert found["v"].to_list()[place] == pytest.approx(clipped.var(), rel=1e-3)
        assert found["d"].to_list()[place] == pytest.approx(clipped.std(ddof=0), rel=1e-3)


def test_the_noise_of_a_group_is_in_proportion_to_its_own_bounds():
    wards = stays().dp.group_by("ward", keys=["A", "B", "C"])
    asked = {"epsilon": 1.0, "ledger": dpf.Ledger(epsilon=10), "checks": False, "denoise": None}
    own = wards.sum("cost", bounds={"A": (0, 1), "B": (0, 100), "C": (-50, 5)}, **asked)
    assert own["cost_sum_error"].to_list() == pytest.approx(
        [own["cost_sum_error"][1] / 100 * by for by in (1, 100, 50)]
    )
    one = wards.sum("cost", bounds=(0, 100), **asked)
    nonnegative = wards.sum("cost", bounds={"A": (0, 1), "B": (0, 100), "C": (0, 5)}, **asked)
    assert nonnegative["cost_sum_error"][1] == pytest.approx(one["cost_sum_error"][1], rel=1e-6)


@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "Gaussian"])
def test_the_error_of_a_spread_is_in_proportion_to_its_bounds(delta):
    """Three groups have one shape at three scales: errors grow with the scale, those of a variance with its square."""
    x = np.tile(np.linspace(0, 1, 2_000), 3)
    frame = pl.DataFrame({"g": np.repeat(["A", "B", "C"], 2_000), "x": x * np.repeat([1.0, 10.0, 100.0], 2_000)})
    bounds = {"A": (0, 1), "B": (0, 10), "C": (0, 100)}
    found = frame.dp.group_by("g", keys=["A", "B", "C"]).agg(
        v=dpf.variance("x", bounds=bounds),
        s=dpf.std("x", bounds=bounds),
        epsilon=1e6,
        delta=delta,
        ledger=dpf.Ledger(epsilon=1e7, delta=delta or 0.0),
        checks=False,
    )
    for name, power in (("v", 2), ("s", 1)):
        errors = found[f"{name}_error"].to_numpy() / np.array([1.0, 10.0, 100.0]) ** power
        assert errors == pytest.approx(errors[0], rel=1e-2)


def test_the_verbs_and_their_records(tmp_path):
    wards = stays().dp.group_by("ward", keys=["A", "B", "C"])
    asked = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e9), "where": {"u": (0, 1_000)}}
    for name, result in {
        "sum": wards.sum("cost", bounds=OF_WARDS, **asked),
        "mean": wards.mean("cost", bounds=OF_WARDS, **asked),
        "variance": wards.variance("cost", bounds=OF_WARDS, **asked),
        "std": wards.std("cost", bounds=OF_WARDS, ddof=0, **asked),
    }.items():
        ending = "var" if name == "variance" else name
        assert result.columns == ["ward", f"cost_{ending}", f"cost_{ending}_error"]
        (measure,) = result.dp.provenance["measures"].values()
        assert measure["bounds_of_groups"] == [[0.0, 10.0], [0.0, 100.0], [20.0, 90.0]]
        assert (measure["column"], measure["where"]) == ("cost", "0 <= u < 1000")
        result.dp.write_parquet(tmp_path / f"{name}.parquet")
        again = dpf.read_parquet(tmp_path / f"{name}.parquet")
        assert json.loads(json.dumps(again.dp.provenance)) == result.dp.provenance
        said = result.dp.statement()
        assert "values of cost where 0 <= u < 1000 are above the bounds of their ward, clipped" in said
        with pytest.raises(InvalidArgument, match="with bounds of their own" if name in ("sum", "mean") else name):
            result.dp.total()
        with pytest.raises(InvalidArgument, match="each group has its own" if name in ("sum", "mean") else name):
            dpf.compare(result, "A", "B")
    with pytest.raises(InvalidArgument, match="each group has its own"):
        wards.mean("cost", bounds=OF_WARDS, population=True, **asked)
    assert str(dpf.mean("cost", bounds=OF_WARDS)) == "mean(cost) in the bounds of each group"


def test_checks_are_of_the_bounds_of_each_group():
    rows = pl.DataFrame({"g": ["A", "A", "B", "B", "D", "B"], "x": [5.0, 50.0, 50.0, -1.0, 999.0, None]})
    found = rows.dp.group_by("g", keys=["A", "B"]).agg(
        s=dpf.sum("x", bounds={"A": (0, 10), "B": (0, 100)}),
        m=dpf.mean("x", bounds={"A": (0, 10), "B": (0, 100)}),
        epsilon=1e8,
        ledger=dpf.Ledger(epsilon=1e9),
        checks=0.5,
    )
    counts = {(row["of"], row["what"]): round(row["count"]) for row in found.dp.checks().rows(named=True)}
    assert [counts["x in its g", what] for what in ("below", "above", "present")] == [1, 1, 4]


def test_a_ledger_knows_the_bounds_again(tmp_path):
    ledger = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    wards = stays().dp.group_by("ward", keys=["A", "B", "C"])

    def asked(bounds):
        return wards.mean("cost", bounds=bounds, epsilon=1, label="m", snapshot="w1", ledger=ledger, checks=False)

    first = asked(OF_WARDS)
    assert asked({key: OF_WARDS[key] for key in "CBA"}).equals(first)
    assert ledger.spent.epsilon == 1
    for other in ({**OF_WARDS, "B": (0, 99)}, {"A": (0, 100), "B": (0, 10), "C": (20, 90)}, (0, 100)):
        with pytest.raises(dpf.LedgerError, match="statistic differs"):
            asked(other)
    ledger.verify()


def test_an_error_that_is_asked_for():
    """The target holds in the group with the widest bounds."""
    wards = stays().dp.preview.group_by("ward", keys=["A", "B", "C"])
    plan = wards.mean("cost", bounds=OF_WARDS, within=2.0, size=1_000)
    assert plan.error["cost_mean"] == pytest.approx(2.0, rel=1e-3)
    assert wards.sum("cost", bounds=OF_WARDS, within=50.0).error["cost_sum"] <= 50.0
    with pytest.raises(MissingArgument, match="size must be given"):
        wards.mean("cost", bounds=OF_WARDS, within=2.0)
    with pytest.raises(InvalidArgument, match="widest bounds"):
        wards.mean("cost", bounds=OF_WARDS, within=60.0, size=10)
    plan = wards.std("cost", bounds=OF_WARDS, within=2.0, size=1_000)
    assert plan.error["cost_std"] == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(MissingArgument, match="size must be given"):
        wards.variance("cost", bounds=OF_WARDS, within=2.0)


def test_a_plan_expects_the_error_of_the_group_with_the_largest_bounds():
    frame = pl.DataFrame({"g": ["A", "B", "C"], "x": [1.0, 2.0, 3.0]})
    asked = {"s": dpf.sum("x", bounds={"A": (0, 10), "B": (-100, 0), "C": (0, 20)}), "epsilon": 1}
    found = frame.dp.group_by("g", keys=["A", "B", "C"]).agg(**asked, ledger=dpf.Ledger(epsilon=1))
    plan = frame.dp.preview.group_by("g", keys=["A", "B", "C"]).agg(**asked)
    assert plan.error == {"s": pytest.approx(found["s_error"].max())}


def test_a_column_on_a_scale_is_told_apart():
    (one,), (other,) = (bound(ask()).totals()[0].columns for ask in (ASKED["sum"], ASKED["mean"]))
    assert one == copy.copy(one) == pickle.loads(pickle.dumps(one))
    assert one != other
    (wider,) = bound(dpf.sum("x", bounds={**BOUNDS, "A": (0, 3)})).totals()[0].columns
    assert str(wider) == str(one)
    assert wider != one


def test_one_key_has_one_pair_of_bounds():
    """A day and its midnight are one key; if accepted, the last pair of bounds would clip the values of both."""
    days = pl.DataFrame({"day": [datetime(2025, 1, 1)] * 3, "cost": [500.0] * 3})
    bounds = {date(2025, 1, 1): (0, 1000), datetime(2025, 1, 1): (0, 1)}
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(InvalidArgument, match="bounds must name each key once"):
        days.dp.group_by("day", keys=[datetime(2025, 1, 1)]).sum("cost", bounds=bounds, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_bad_bounds_are_refused():
    frame, ledger = stays(), dpf.Ledger(epsilon=1)
    wards = frame.dp.group_by("ward", keys=["A", "B", "C"])
    asked = {"epsilon": 1, "ledger": ledger}
    with pytest.raises(InvalidArgument, match="every declared key, and 'C' has none"):
        wards.sum("cost", bounds={"A": (0, 1), "B": (0, 1)}, **asked)
    with pytest.raises(InvalidArgument, match="declared keys alone, and 'D' is none"):
        wards.sum("cost", bounds={**OF_WARDS, "D": (0, 1)}, **asked)
    for dp in (
        frame.dp,
        frame.dp.group_by("ward", "u", keys={"ward": ["A"], "u": [1]}),
    ):
        with pytest.raises(InvalidArgument, match="bounds by group must follow group_by of one column"):
            dp.mean("cost", bounds=OF_WARDS, **asked)
    for keys, said in (
        (dpf.dates("2025-01-06", "2025-01-13", every="1w"), "not of ward: 2 dates every 1w"),
        (["A", "B", "C", dpf.REST], "not of ward: 3 declared keys and the rest"),
    ):
        with pytest.raises(InvalidArgument, match=f"must be of keys that are written as values, {said}"):
            frame.dp.group_by("ward", keys=keys).mean("cost", bounds=OF_WARDS, **asked)
    with pytest.raises(InvalidArgument, match="not of cost: 2 bins"):
        frame.dp.group_by(dpf.bins("cost", [0, 50, 100])).mean("cost", bounds=OF_WARDS, **asked)
    for verb in ("sum", "mean"):
        with pytest.raises(InvalidArgument, match=r"rollup must be left out with bounds by group .* Write bounds="):
            getattr(wards, verb)("cost", bounds=OF_WARDS, rollup=True, **asked)
    with pytest.raises(InvalidArgument, match="bounds must name every declared key"):
        dpf.mean("cost", bounds={})
    with pytest.raises(InvalidArgument, match="lower < upper"):
        dpf.mean("cost", bounds={"A": (1, 0)})
    with pytest.raises(InvalidType, match="bounds must be a pair"):
        dpf.mean("cost", bounds={"A": 3})
    with pytest.raises(InvalidArgument, match="ddof must be 0 or 1, not 3"):
        dpf.variance("cost", bounds=OF_WARDS, ddof=3)
    for more in ({"weight": "w"}, {"missing": "midpoint"}):
        with pytest.raises(InvalidArgument, match="must be left out with bounds by group"):
            dpf.mean("cost", bounds=OF_WARDS, **more)
    with pytest.raises(InvalidArgument, match="unit_bounds must be left out"):
        dpf.sum("cost", bounds=OF_WARDS, unit_bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="bounds by group must follow group_by"):
        dpf.Stream("s", statistic=dpf.sum("cost", bounds=OF_WARDS), time="u", periods=[1], epsilon=1, ledger=ledger)
    with pytest.raises(InvalidArgument):
        wards.agg(s=dpf.sum("cost", bounds=OF_WARDS), rollup=True, **asked)
    assert ledger.spent.epsilon == 0
    assert query_of(bound(ASKED["sum"]()), BY_GROUP, True) is not None
    with pytest.raises(InvalidArgument):
        bound(ASKED["sum"](), EVERYTHING)
