"""Quantiles with bounds by group: exact counts, sensitivity, intervals, records, and whole calls on every engine.

False alarms: noise at an epsilon of 10^7 or more moves a quantile with a chance below 10^-6.
"""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import polars as pl
import pytest
from neighbors import (
    BY_GROUP,
    EACH_ENGINE,
    ROWS_AND_UNITS,
    UNITS,
    given_as,
    largest_by_chance,
    query_of,
    ratios,
    tables_on,
)

import dpframe as dpf
from dpframe import InvalidArgument, PrivacyUnit
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.jobs import job_file
from dpframe.jobs.job import Table
from dpframe.queries.quantiles import among_own
from dpframe.queries.statistics.quantile import QuantileByGroup
from tests.covering import chance_of_missing

NOBODY = PrivacyUnit()
NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]
ROWS = pl.DataFrame(
    {
        "x": [None, math.nan, math.inf, -math.inf, -0.0, 0.5, -2.5, 1.5, 2.0, 9.0, 1.7, 5.0, 3.0, 0.5, 1e308],
        "n": [1, 2, 3, 4, 5, None, 2**53 + 1, -8, 9, 10, 11, -(2**63), 0, 1, 1],
        "ward": ["A", "B", None, "C", "A", "B", "A", "B", None, "C", "a", "A", "A", "B", "A"],
        "u": [1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7],
        "g": [*["A", "B", "C"] * 4, "D", "A", None],
    }
)
BOUNDS = {"A": (0, 2), "C": (-4, -1), "B": (-1, 8)}  # not in the order of the keys; 3, 4 and 10 whole numbers
UNEVEN = {"A": (0, 1), "C": (-4, -1.5), "B": (-1, 8)}  # with a step of 0.75, the last step of A and C is shorter


def bound(statistic):
    return statistic.of_keys(BY_GROUP)


def integers(frame, statistic, unit=NOBODY, p=1.0):
    query = query_of(bound(statistic), BY_GROUP, p == 1)
    return [cells.tolist() for cells in totals(frame, check(frame, query, unit), unit, p).values()]


def nearest(values, candidates):
    """Return the number of values nearest to each candidate, by all distances; ties go to the upper one."""
    counts = np.zeros(len(candidates), dtype=np.int64)
    for value in np.clip(values, candidates[0], candidates[-1]):
        distances = [abs(value - candidate) for candidate in candidates]
        counts[max(at for at, distance in enumerate(distances) if distance == min(distances))] += 1
    return counts


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("column", ["x", "n"])
@pytest.mark.parametrize(("bounds", "step"), [(BOUNDS, None), (UNEVEN, 0.75)])
def test_each_value_counts_at_the_nearest_candidate_of_its_own_group(bounds, step, column, p, library):
    where = {"ward": ["A", "B", None]}
    for condition, rows in (
        (None, ROWS),
        (where, ROWS.filter(pl.col("ward").is_in(["A", "B"]) | pl.col("ward").is_null())),
    ):
        asked = bound(dpf.median(column, bounds=bounds, step=step, where=condition))
        (found,) = integers(given_as(ROWS, library), asked, p=p)
        of_places = asked.under(p == 1).of_places
        counts = np.zeros((3, of_places.design.size), dtype=np.int64)
        for place, group in enumerate("ABC"):
            own = dpf.median(column, bounds=bounds[group], step=step).candidates
            values = rows.filter(g=group)[column].cast(pl.Float64).drop_nulls().drop_nans().to_numpy()
            counts[place, : len(own)] = nearest(values, own)
        assert found == of_places.design.exact_sums(counts).ravel().tolist()


def test_places_among_random_candidates():
    generator = np.random.default_rng(3)
    candidates = [np.unique(generator.integers(-9, 9, size) / 2.0) for size in (2, 30, 5, 5, 9)]
    candidates = [[float(one) for one in each] if len(each) > 1 else [0.0, 1.0] for each in candidates]
    values, groups = generator.integers(-24, 24, 3_000) / 4.0, generator.integers(0, 5, 3_000)
    found = among_own(values, groups, candidates)
    for group, own in enumerate(candidates):
        mine = groups == group
        assert np.bincount(found[mine], minlength=len(own)).tolist() == nearest(values[mine], own).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("where", [None, {"x": (-3, 4)}])
def test_no_neighbor_is_farther_than_the_sensitivity(where, unit):
    for p in (1, 2):
        query = query_of(bound(dpf.median("x", bounds=BOUNDS, where=where)), BY_GROUP, p == 1)
        assert largest_by_chance(query, unit, p, tries=25) <= 1 + 1e-15


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "Gaussian"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("group", ["A", "B", "C"])
def test_the_sensitivity_is_attained_in_every_group(group, neighbors, pure):
    """Rows at the first candidate of any group move the same number of steps."""
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    other = "A" if group != "A" else "B"
    mine, instead = [(group, -99.0)] * 2, [(other, -99.0)] * 2
    query = query_of(bound(dpf.median("x", bounds=BOUNDS)), BY_GROUP, pure)
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], 1 if pure else 2).values()
    assert found == pytest.approx(1.0)


def test_the_bounds_do_not_change_the_noise_of_as_many_candidates():
    asked = ROWS.dp.preview.group_by("g", keys=["A", "B", "C"])
    for more in ({}, {"delta": 1e-6}):
        own, one = (
            asked.median("x", bounds=bounds, epsilon=1.0, **more)
            for bounds in ({"A": (0, 1), "B": (0, 100), "C": (7, 8)}, (0, 100))
        )
        assert own.parts[0].mechanism == one.parts[0].mechanism
        assert own.error == one.error


@EACH_ENGINE
@ROWS_AND_UNITS
def test_every_engine_gives_the_same(engine, unit):
    with tables_on(engine) as given:
        table = given(ROWS)
        for where in (None, {"ward": ["A", "B"]}):
            for p in (1.0, 2.0):
                asked = dpf.median("x", bounds=BOUNDS, where=where)
                assert integers(table, asked, unit, p) == integers(ROWS, asked, unit, p)


def stays(rows=3_000):
    generator = np.random.default_rng(9)
    ward = generator.choice(["A", "B", "C"], rows, p=[0.6, 0.3, 0.1])
    cost = np.where(ward == "A", generator.normal(5, 3, rows), generator.normal(60, 30, rows))
    frame = pl.DataFrame({"ward": ward, "cost": cost, "u": np.arange(rows) // 2})
    return frame.with_columns(pl.when(pl.int_range(rows) % 11 == 3).then(None).otherwise(pl.col("cost")).alias("cost"))


OF_WARDS = {"A": (0, 10), "B": (0, 100), "C": (20, 90.5), "empty": (-5, 5)}
WARDS = [*OF_WARDS]


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("step", [None, 2.5])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_each_group_is_answered_as_alone_with_its_bounds(noise, step, library):
    """With little noise, results equal those of a call on that group; an empty group has the middle and the bounds."""
    frame = stays()
    asked = {"epsilon": 1e8, "checks": False, **noise}
    found = (
        given_as(frame, library)
        .dp.group_by("ward", keys=WARDS)
        .agg(
            dpf.median("cost", bounds=OF_WARDS, step=step),
            at=dpf.quantile("cost", q=[0.01, 0.25, 0.9, 0.99], bounds=OF_WARDS, step=step),
            ledger=dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic"),
            **asked,
        )
    )
    for place, ward in enumerate("ABC"):
        alone = frame.filter(ward=ward).dp.agg(
            dpf.median("cost", bounds=OF_WARDS[ward], step=step),
            at=dpf.quantile("cost", q=[0.01, 0.25, 0.9, 0.99], bounds=OF_WARDS[ward], step=step),
            ledger=dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic"),
            **asked,
        )
        assert {name: found[name].to_list()[place] for name in alone.columns} == alone.row(0, named=True)
    empty = {end: found[f"cost_median{end}"].to_list()[3] for end in ("", "_low", "_high", "_error")}
    assert empty == {"": 0.0, "_low": -5.0, "_high": 5.0, "_error": 5.0}


def test_ends_of_an_interval_stay_within_the_bounds_of_their_group():
    """With much noise, readings of groups with few candidates sometimes lie beyond the last candidate."""
    bounds = {key: (0, 1) if key % 2 else (0, 200) for key in range(400)}
    frame = pl.DataFrame({"g": range(400), "x": [1.0] * 400})
    found = frame.dp.group_by("g", keys=range(400)).median(
        "x", bounds=bounds, epsilon=0.5, ledger=dpf.Ledger(epsilon=1)
    )
    for key, (lower, upper) in bounds.items():
        _, value, error, low, high = found.row(key)
        assert lower <= low <= value <= high <= upper
        assert error == max(value - low, high - value)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("size", [4, 60])
def test_intervals_cover(size, noise):
    """Over 2,000 groups of each of three pairs of bounds; a false alarm has a chance below 1e-6 / 18 each."""
    groups, pairs = 2_000, ((0, 10), (-50, 50), (2, 5))
    shape = np.resize([0.1, 0.1, 0.27, 0.66], size)  # between the candidates of most groups
    keys = np.arange(3 * groups)
    lower, upper = (np.array([pairs[key % 3][end] for key in keys]) for end in (0, 1))
    values = lower[:, None] + shape * (upper - lower)[:, None]
    frame = pl.DataFrame({"g": np.repeat(keys, size), "x": values.ravel()})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    bounds = {int(key): pairs[key % 3] for key in keys}
    found = frame.dp.group_by("g", keys=keys.tolist()).agg(
        q=dpf.quantile("x", q=[0.25, 0.5, 0.9], bounds=bounds), epsilon=1.0, ledger=ledger, checks=False, **noise
    )
    for q in (0.25, 0.5, 0.9):
        truth = np.sort(values, axis=1)[:, math.ceil(q * size - 1e-9) - 1]
        low, high, value, error = (found[f"q_q{q}{end}"].to_numpy() for end in ("_low", "_high", "", "_error"))
        missed = ((truth < low) | (truth > high)).reshape(groups, 3).sum(axis=0)
        assert (chance_of_missing(missed, groups, 0.05) > 1e-6 / 18).all()
        off = (np.abs(value - truth) > error).reshape(groups, 3).sum(axis=0)
        assert (chance_of_missing(off, groups, 0.05) > 1e-6 / 18).all()


@pytest.mark.parametrize("bounds", [(0, 20), {"A": (0, 20), "B": (0, 7)}], ids=["one pair", "a pair for each group"])
def test_a_bound_that_is_left_out_is_one_row_in_intervals_too(bounds):
    frame = pl.DataFrame({"x": map(float, range(21)), "u": range(21), "g": ["A"] * 21})
    found = []
    for more in ({"max_groups": 1}, {"max_rows": 1, "max_groups": 1}):
        ledger = dpf.Ledger(epsilon=1e9, unit="u")
        groups = frame.dp.group_by("g", keys=["A", "B"])
        result = groups.median("x", bounds=bounds, step=1, epsilon=1e7, ledger=ledger, **more)
        found.append(result.row(0)[-2:])
    assert found == [(8.0, 12.0)] * 2


def test_intervals_of_weighed_units_reach_as_many_rows_farther():
    """As with one pair of bounds, intervals reach 1 row beyond the quantile, and 3 rows if a unit may have 2 rows."""
    frame = pl.DataFrame({"x": [1.0] * 7 + [5.0] * 6 + [9.0] * 7, "u": range(20), "g": ["A"] * 20})
    for unit, at in ((None, (5, 5)), ("u", (1, 9))):
        ledger = dpf.Ledger(epsilon=1e9, unit=unit)
        more = {"max_rows": 2, "max_groups": 1} if unit else {}
        found = frame.dp.group_by("g", keys=["A", "B"]).median(
            "x", bounds={"A": (1, 9), "B": (0, 7)}, step=4, epsilon=1e7, ledger=ledger, **more
        )
        assert (found["x_median_low"][0], found["x_median_high"][0]) == at


def test_quantiles_of_one_column_share_one_measurement():
    asked = stays().dp.preview.group_by("ward", keys=WARDS)
    plan = asked.agg(
        dpf.median("cost", bounds=OF_WARDS), at=dpf.quantile("cost", q=[0.1, 0.9], bounds=OF_WARDS), epsilon=1.0
    )
    assert (plan.columns, len(plan.parts)) == (("cost_median", "at_q0.1", "at_q0.9"), 1)
    assert "running counts of cost among the candidates of its ward over 1,001 bins" in repr(plan)
    other = asked.agg(dpf.median("cost", bounds=OF_WARDS), at=dpf.median("cost", bounds=OF_WARDS, step=1), epsilon=1.0)
    assert len(other.parts) == 2
    within = asked.median("cost", bounds=OF_WARDS, within=30)
    assert 25 < within.error["cost_median"] <= 30
    assert "ranks" in repr(within)


def test_the_record_and_what_is_shown(tmp_path):
    wards = stays().dp.group_by("ward", keys=["A", "B", "C"])
    own = {ward: OF_WARDS[ward] for ward in "CBA"}
    ledger = dpf.Ledger(epsilon=1e9)
    result = wards.quantile(
        "cost", q=[0.5, 0.9], bounds=own, where={"u": (0, 1_000)}, epsilon=1e6, ledger=ledger, checks=0.5
    )
    measure = result.dp.provenance["measures"]["cost_q0.9"]
    assert measure["bounds_of_groups"] == [[0.0, 10.0], [0.0, 100.0], [20.0, 90.5]]
    assert (measure["column"], measure["where"], measure["q"]) == ("cost", "0 <= u < 1000", 0.9)
    assert (measure["size"], measure["interval"]) == (1_001, "values")
    result.dp.write_parquet(tmp_path / "q.parquet")
    again = dpf.read_parquet(tmp_path / "q.parquet")
    assert json.loads(json.dumps(again.dp.provenance)) == result.dp.provenance
    assert "| A | 5.00 | 4.00 | 6.00 |" in result.dp.table(format="markdown")
    shown = result.dp.sort("cost_q0.9").dp.head(2)
    assert shown["ward"].to_list() == ["A", "C"]
    for call in (result.dp.total, lambda: dpf.compare(result, "A", "B")):
        with pytest.raises(InvalidArgument, match="quantile"):
            call()
    pytest.importorskip("altair")
    assert "quantiles of cost" in str(result.dp.plot().to_dict())
    result.dp.write_html(tmp_path / "q.html")


def test_checks_are_of_the_bounds_of_each_group():
    rows = pl.DataFrame({"g": ["A"] * 4 + ["B"] * 4, "x": [5.0, 50.0, 50.0, 60.0, 50.0, -1.0, 90.0, None]})
    bounds = {"A": (0, 10), "B": (0, 100)}
    with pytest.warns(
        dpf.BoundsWarning, match="x_q0.7 of some group may lie beyond its bounds, and are then shown as that bound"
    ):
        found = rows.dp.group_by("g", keys=["A", "B"]).quantile(
            "x", q=[0.1, 0.7], bounds=bounds, epsilon=1e8, ledger=dpf.Ledger(epsilon=1e9), checks=0.5
        )
    counts = {(row["of"], row["what"]): round(row["count"]) for row in found.dp.checks().rows(named=True)}
    assert [counts["x in its g", what] for what in ("below", "above", "present")] == [1, 3, 7]
    assert found["x_q0.7"].to_list() == [10.0, 90.0]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (dict.fromkeys("ABC", (0, 10)), "some group may lie beyond its bounds, and is then shown as that bound"),
        ((0, 10), "some group may lie beyond the bounds, and is then shown as 10"),
    ],
)
@pytest.mark.parametrize(("share", "others"), [(1, 12), (2, 2), (6, 2)])
def test_one_group_of_many_beyond_its_bounds_is_told(share, others, bounds, said):
    """4%, a third or 60% of all values exceed the bounds: all values of one group, and none of the others."""
    rows = pl.DataFrame({"g": ["A"] * share + ["B", "C"] * others, "x": [50.0] * share + [5.0] * 2 * others})
    rows = pl.concat([rows] * 1_000)
    asked = {"epsilon": 1, "ledger": dpf.Ledger(epsilon=9), "checks": 0.5}
    with pytest.warns(dpf.BoundsWarning, match=f"x_median of {said}"):
        rows.dp.group_by("g", keys=["A", "B", "C"]).median("x", bounds=bounds, **asked)


def test_few_values_beyond_the_bounds_of_many_groups_warn_of_none():
    """Only 0.5% of all values exceed the bounds, all in one small group, whose interval shows that it is at a bound."""
    rows = pl.DataFrame({"g": list(range(200)) * 20, "x": ([50.0] + [5.0] * 199) * 20})
    asked = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e9), "checks": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpf.BoundsWarning)
        found = rows.dp.group_by("g", keys=range(200)).median("x", bounds=(0, 10), **asked)
    assert "may lie" not in found.dp.statement()


def test_a_ledger_knows_the_bounds_again(tmp_path):
    ledger = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    wards = stays().dp.group_by("ward", keys=WARDS)

    def asked(bounds, **more):
        return wards.median(
            "cost", bounds=bounds, epsilon=1, label="m", snapshot="w1", ledger=ledger, checks=False, **more
        )

    first = asked(OF_WARDS)
    assert asked({key: OF_WARDS[key] for key in reversed(WARDS)}).equals(first)
    assert ledger.spent.epsilon == 1
    for other, more in (({**OF_WARDS, "B": (0, 99)}, {}), ((0, 100), {}), (OF_WARDS, {"step": 1})):
        with pytest.raises(dpf.LedgerError, match="statistic differs"):
            asked(other, **more)
    ledger.verify()


def test_a_job_says_them_as_tables():
    said = {"statistic": "quantile", "column": "x", "q": [0.1, 0.5], "bounds": {"A": [0, 5], "B": [0, 9]}, "step": 0.5}
    asked = dpf.quantile("x", q=[0.1, 0.5], bounds={"A": (0, 5), "B": (0, 9)}, step=0.5)
    assert job_file._statistic(Table("release", said)) == asked
    assert all(isinstance(part, QuantileByGroup) for part in asked.parts)


def test_refusals():
    ledger = dpf.Ledger(epsilon=1)
    wards = stays().dp.group_by("ward", keys=WARDS)
    asked = {"epsilon": 1, "ledger": ledger}
    with pytest.raises(InvalidArgument, match="every declared key, and 'empty' has none"):
        wards.median("cost", bounds={ward: OF_WARDS[ward] for ward in "ABC"}, **asked)
    with pytest.raises(InvalidArgument, match="bounds by group must follow group_by of one column"):
        stays().dp.median("cost", bounds=OF_WARDS, **asked)
    with pytest.raises(InvalidArgument, match="mechanism must be noise here"):
        wards.median("cost", bounds=OF_WARDS, mechanism="exponential", **asked)
    with pytest.raises(InvalidArgument, match="at most the distance of the bounds"):
        dpf.median("cost", bounds=OF_WARDS, step=11)
    with pytest.raises(InvalidArgument, match="at most 16,384"):
        dpf.median("cost", bounds={"A": (0, 1), "B": (0, 1e6)}, step=1)
    with pytest.raises(InvalidArgument, match="candidates must come without"):
        dpf.median("cost", bounds=OF_WARDS, candidates=[1, 2])
    with pytest.raises(InvalidArgument, match="lower < upper"):
        dpf.median("cost", bounds={"A": (1, 0)})
    with pytest.raises(InvalidArgument, match="rollup"):
        wards.median("cost", bounds=OF_WARDS, rollup=True, **asked)
    assert ledger.spent.epsilon == 0
