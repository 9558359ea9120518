"""Weights of rows: exact weighted numbers, sensitivity, intervals, and whole calls on every engine.

False alarms: noise at an epsilon of 10^7 or more exceeds the asserted tolerances with a chance below 10^-6.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

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
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit, WrongDtype
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.total import Measured
from dpframe.testing import check_statistic, exact
from tests.covering import chance_of_missing

NOBODY = PrivacyUnit()
MIXED = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.3, 1.0, 2.0, 9.0, 1.7, 5.0]
ROWS = pl.DataFrame(
    {
        "x": MIXED,
        "w": [1.0, 2.0, 3.0, 0.25, 7.0, None, 1.5, -3.0, math.nan, 0.7, math.inf, 0.1],
        "ward": ["A", "B", None, "C", "A", "B", "A", "B", None, "C", "a", "A"],
        "flag": [True, False, None] * 4,
        "u": [1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6],
        "g": ["A", "B", "C"] * 4,
    }
)
W = {"weight": "w", "weight_bounds": (0.1, 4.0)}
BOUNDS = (-3.0, 4.0)
ASKED = {
    "count": lambda **o: dpf.count(**W, **o),
    "sum": lambda **o: dpf.sum("x", bounds=BOUNDS, **W, **o),
    "mean": lambda **o: dpf.mean("x", bounds=BOUNDS, **W, **o),
    "proportion": lambda **o: dpf.proportion("flag", **W, **o),
    "proportion of a value": lambda **o: dpf.proportion("ward", "A", **W, **o),
}


def integers(frame, statistic, keys=BY_GROUP, unit=NOBODY, p=1.0):
    query = query_of(statistic, keys, p == 1)
    return [cells.tolist() for cells in totals(frame, check(frame, query, unit), unit, p).values()]


def on_grid(value, bounds):
    """Return a clipped value in whole steps, as a plain integer; None if it is missing."""
    if value is None or value != value:
        return None
    lower, upper = grid_steps(bounds)
    steps = max(min(Fraction(value) / Fraction(step_length(bounds)), upper), lower) if math.isfinite(value) else value
    return (upper if value > 0 else lower) if not math.isfinite(value) else math.floor(steps + Fraction(1, 2))


def by_hand(name, rows):
    """Return the exact totals of rows in plain Python, from each row's clipped weight and value."""
    most = grid_steps(W["weight_bounds"])[1]
    found = [0, 0]
    for row in rows:
        weight = on_grid(row["w"], W["weight_bounds"])
        value = {
            "count": 1.0,
            "sum": row["x"],
            "mean": row["x"],
            "proportion": None if row["flag"] is None else float(row["flag"]),
            "proportion of a value": None if row["ward"] is None else float(row["ward"] == "A"),
        }[name]
        bounds = BOUNDS if name in ("sum", "mean") else (0.0, 1.0)
        step = on_grid(value, bounds)
        if weight is None or step is None:
            continue
        assert 0 <= weight <= most
        if name == "count":
            found[0] += weight
        elif name == "sum":
            found[0] += (step * weight + 2**29) // 2**30
        else:
            lower, upper = grid_steps(bounds)
            share = ((step - lower) * 2**31 + upper - lower) // (2 * (upper - lower))
            above = (share * weight + 2**29) // 2**30
            found = [found[0] + above, found[1] + weight - above]
    return found if name not in ("count", "sum") else found[:1]


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
@pytest.mark.parametrize("name", ASKED)
def test_every_row_adds_its_own_clipped_weight_and_value(name, library):
    frame = given_as(ROWS, library)
    (found,) = integers(frame, ASKED[name]())
    exact = [by_hand(name, ROWS.filter(g=group).rows(named=True)) for group in "ABC"]
    assert found == [number for group in exact for number in group]
    (under,) = integers(frame, ASKED[name](where={"ward": ["A", "B"], "x": (0, None)}), EVERYTHING)
    rows = [
        row for row in ROWS.rows(named=True) if row["ward"] in ("A", "B") and row["x"] is not None and row["x"] >= 0
    ]
    assert under == by_hand(name, rows)


@pytest.mark.parametrize("name", ASKED)
def test_what_a_row_adds_is_within_what_is_stated(name):
    """The rounded product of a clipped value and weight is within its reach, and both parts add up to the weight."""
    generator = np.random.default_rng(5)
    columns = {
        "x": np.concatenate([generator.normal(0, 4, 4_000), [-9.0, 9.0, 0.0]]),
        "w": np.concatenate([generator.gamma(1, 3, 4_000), [9.0, 9.0, 0.0]]),
    }
    for column in ("flag", "ward"):
        columns[column] = np.where(columns["x"] > 0, 1.0, 0.0)
    (total,) = ASKED[name]().totals()
    found = total.integers(4_003, {read: columns[str(read).split(" = ")[0]] for read in total.columns})
    norm, most = total.norm(weighted=False), grid_steps(W["weight_bounds"])[1]
    if norm.vector is None:
        assert norm.reach[0] <= found.min()
        assert found.max() == norm.reach[1]  # the bound is attained
    else:
        assert found.min() >= 0
        assert norm.vector == (most, most**2)
        assert found.sum(axis=1).max() == most
        assert (found**2).sum(axis=1).max() == most**2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "sum", "mean", "proportion of a value"])
def test_a_statistic_keeps_the_rules(name):
    statistic = {
        "count": dpf.count(**W),
        "sum": dpf.sum("x", bounds=BOUNDS, **W),
        "mean": dpf.mean("x", bounds=BOUNDS, **W),
        "proportion of a value": dpf.proportion("x", **W),
    }[name]
    check_statistic(statistic)


Z = {"weight": "z", "weight_bounds": (0.3, 3.0)}
FAR = {
    "count": dpf.count(**Z),
    "sum": dpf.sum("x", bounds=BOUNDS, **Z),
    "sum above": dpf.sum("x", bounds=(2, 4), where={"g": ["A", "unlisted"]}, **Z),
    "mean": dpf.mean("x", bounds=BOUNDS, **Z),
    "proportion": dpf.proportion("x", **Z),
    "proportion of a value": dpf.proportion("x", 1.0, where={"z": (0, 3)}, **Z),
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("name", FAR)
def test_no_neighbor_is_farther_than_the_sensitivity(name, keys, unit):
    for p in (1, 2):
        assert largest_by_chance(query_of(FAR[name], keys, p == 1), unit, p, tries=12, values_of=2) <= 1 + 1e-15


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "proportion"])
def test_the_sensitivity_is_attained(name, neighbors):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    query = query_of(FAR[name], BY_GROUP, pure=True)
    far = {"sum": 4.0}.get(name, 1.0)
    mine, instead = [("A", far, 99.0)] * 2, [("B", far, 99.0)] * 2
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], 1).values()
    assert found == pytest.approx(1.0)


@EACH_ENGINE
@ROWS_AND_UNITS
def test_every_engine_gives_the_same(engine, unit):
    with tables_on(engine) as given:
        table = given(ROWS)
        for name, ask in ASKED.items():
            for asked in (ask(), ask(where={"ward": ["A", "B"], "x": (0, None)})):
                for p in (1.0, 2.0):
                    found = integers(table, asked, unit=unit, p=p)
                    assert found == integers(ROWS, asked, unit=unit, p=p), name


SIZES, SHARES, MU = (1, 5, 100), (0.0, 0.3, 1.0), (0.3, 1.0, 5.0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("strength", MU)
def test_intervals_cover(strength, share, size):
    """Also for groups with one heavy row: over 10,000 groups, a false alarm below 1e-6 / 108."""
    repeats, (lower, upper), heaviest = 10_000, (10.0, 50.0), 4.0
    weights = np.where(np.arange(size) % 3 == 0, heaviest, 0.5)
    values = np.where(np.arange(size) < math.ceil(share * size), upper, lower)
    t = (values - lower) / (upper - lower)
    truth = (weights * values).sum() / weights.sum()
    of = {"weight": "w", "weight_bounds": (0, heaviest)}
    for pure in (True, False):
        grid = step_length((0, heaviest))
        if pure:
            noise = dpf.Laplace.calibrate(sensitivity=heaviest, epsilon=strength, grid=grid)
        else:
            noise = dpf.Gaussian.calibrate(sensitivity=heaviest, epsilon=strength, delta=1e-6, grid=grid)
        for statistic, true in (
            (dpf.mean("x", bounds=(lower, upper), **of), truth),
            (dpf.proportion("x", **of), (weights * t).sum() / weights.sum()),
        ):
            (total,) = statistic.totals()
            steps = np.tile(np.array([(weights * t).sum(), (weights * (1 - t)).sum()]) / grid, repeats)
            noisy = noise.add_noise(steps.astype(np.int64)) * grid
            found, errors = statistic.answer({total: Measured(noisy, noise)})
            assert (found >= 0.0).all()
            assert (found <= upper).all()
            missed = int((np.abs(found - true) > errors + 1e-6).sum())
            assert chance_of_missing(missed, repeats, 0.05) > 1e-6 / 108


def survey(rows=3_000):
    generator = np.random.default_rng(3)
    income = generator.lognormal(3.0, 0.6, rows)
    frame = pl.DataFrame(
        {
            "income": income,
            "w": generator.gamma(2.0, 0.5, rows) * np.where(income > 30, 2.0, 1.0),
            "owner": generator.random(rows) < 0.3,
            "region": generator.choice(["north", "south"], rows),
            "g": generator.choice(["A", "B"], rows),
        }
    )
    holes = pl.int_range(rows) % 11
    return frame.with_columns(
        pl.when(holes == 3).then(None).otherwise(pl.col("income")).alias("income"),
        pl.when(holes == 5).then(None).otherwise(pl.col("w")).alias("w"),
    )


SURVEY = {"weight": "w", "weight_bounds": (0, 4)}


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "Gaussian"])
def test_against_exact_weighted_numbers(library, delta):
    frame = survey()
    ledger = dpf.Ledger(epsilon=1e9, delta=delta or 0.0)
    asked = {"epsilon": 1e8, "delta": delta, "denoise": None, "ledger": ledger}
    found = (
        given_as(frame, library)
        .dp.group_by("g", keys=["A", "B"])
        .agg(
            n=dpf.count(**SURVEY),
            s=dpf.sum("income", bounds=(0, 100), **SURVEY),
            m=dpf.mean("income", bounds=(0, 100), **SURVEY),
            p=dpf.proportion("owner", **SURVEY),
            q=dpf.proportion("region", "north", where={"income": (10, None)}, **SURVEY),
            **asked,
        )
    )
    w, x = pl.col("w").clip(0, 4), pl.col("income").clip(0, 100)
    rich = pl.col("income") >= 10
    exact = frame.group_by("g").agg(
        n=w.sum(),
        s=(w * x).sum(),
        m=(w * x).sum() / w.filter(x.is_not_null()).sum(),
        p=(w * pl.col("owner")).sum() / w.sum(),
        q=w.filter(rich & (pl.col("region") == "north")).sum() / w.filter(rich).sum(),
    )
    for row in exact.rows(named=True):
        place = found["g"].to_list().index(row["g"])
        near = {"n": 0.02, "s": 2.0, "m": 1e-3, "p": 1e-5, "q": 1e-5}
        for name, by in near.items():
            assert found[name].to_list()[place] == pytest.approx(row[name], abs=by), name


def test_equal_weights_are_as_none():
    frame = survey().with_columns(one=pl.lit(1.0))
    of = {"weight": "one", "weight_bounds": (0, 1)}
    asked = {"epsilon": 1e7, "ledger": dpf.Ledger(epsilon=1e9), "checks": False}
    weighted, plain = (frame.dp.mean("income", bounds=(0, 100), **more, **asked) for more in (of, {}))
    assert weighted["income_mean"].item() == pytest.approx(plain["income_mean"].item(), abs=1e-3)
    plan = frame.dp.preview.mean("income", bounds=(0, 100), epsilon=1, **of)
    other = frame.dp.preview.mean("income", bounds=(0, 100), epsilon=1)
    assert plan.parts[0].sensitivity.norm(1) == other.parts[0].sensitivity.norm(1) == 1.0


def test_a_mean_is_the_middle_where_no_weight_is_left():
    """Its error then reaches both bounds. There is no noise, which could leave some weight in an empty table."""
    empty = survey().clear()
    with exact():
        found = empty.dp.mean("income", bounds=(0, 100), **SURVEY, epsilon=1e7, ledger=dpf.Ledger(epsilon=1e9))
    assert (found["income_mean"].item(), found["income_mean_error"].item()) == (50.0, 50.0)
    tiny = pl.DataFrame({"x": [1.0, 3.0], "w": [0.5, 0.5]})  # the total is below the largest weight
    asked = tiny.dp.mean("x", bounds=(0, 4), **SURVEY, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))
    assert asked["x_mean"].item() == pytest.approx(2.0, abs=1e-3)


def test_the_verbs_and_their_records(tmp_path):
    frame, ledger = survey(), dpf.Ledger(epsilon=1e9)
    asked = {"epsilon": 1e6, "ledger": ledger, "checks": False, "where": {"g": "A"}, **SURVEY}
    found = {
        "count": frame.dp.count(**asked),
        "sum": frame.dp.sum("income", bounds=(0, 100), **asked),
        "mean": frame.dp.mean("income", bounds=(0, 100), **asked),
        "proportion": frame.dp.proportion("owner", **asked),
        "value": frame.dp.proportion("region", value="north", **asked),
    }
    names = [result.columns[0] for result in found.values()]
    assert names == ["count", "income_sum", "income_mean", "owner_proportion", "region_proportion"]
    for name, result in found.items():
        (measure,) = result.dp.provenance["measures"].values()
        assert (measure["weight"], measure["weight_bounds"]) == ("w", [0.0, 4.0])
        assert measure["where"] == "g is 'A'"
        result.dp.write_parquet(tmp_path / f"{name}.parquet")
        again = dpf.read_parquet(tmp_path / f"{name}.parquet")
        assert json.loads(json.dumps(again.dp.provenance)) == result.dp.provenance
    assert found["value"].dp.provenance["measures"]["region_proportion"]["value"] == "'north'"
    assert str(dpf.mean("x", bounds=(0, 1), where={"g": "A"}, **SURVEY)) == (
        "mean(x where g is 'A') in [0, 1] with weight w in [0, 4]"
    )
    assert str(dpf.count(where={"g": "A"}, **SURVEY)) == "count(where g is 'A') with weight w in [0, 4]"


def test_a_ledger_knows_the_weights_again(tmp_path):
    frame, ledger = survey(), dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))

    def asked(**of):
        more = {"label": "m", "snapshot": "w1", "ledger": ledger, "checks": False}
        return frame.dp.mean("income", bounds=(0, 100), epsilon=1, **of, **more)

    first = asked(**SURVEY)
    assert asked(weight="w", weight_bounds=(0.0, 4)).equals(first)
    assert ledger.spent.epsilon == 1
    for other in ({}, {"weight": "w", "weight_bounds": (0, 5)}, {"weight": "owner", "weight_bounds": (0, 4)}):
        with pytest.raises(dpf.LedgerError, match="statistic differs"):
            asked(**other)
    ledger.verify()


def test_weights_outside_their_bounds_are_checked():
    rows = pl.DataFrame({"x": [1.0, 50.0, 5.0, None], "w": [9.0, 1.0, 9.0, 1.0], "b": [True, False, None, True]})
    of = {"weight": "w", "weight_bounds": (0, 4)}
    found = rows.dp.agg(
        b=dpf.proportion("b", **of),
        m=dpf.mean("x", bounds=(0, 10), **of),
        v=dpf.proportion("x", 1.0, **of),
        epsilon=1e8,
        ledger=dpf.Ledger(epsilon=1e9),
        checks=0.5,
    )
    counts = {(row["of"], row["what"]): round(row["count"]) for row in found.dp.checks().rows(named=True)}
    assert [counts["w", what] for what in ("below", "above", "present")] == [0, 2, 4]
    assert [counts["x", what] for what in ("below", "above", "present")] == [0, 1, 3]
    assert not any(" = " in of or of == "b" for of, _ in counts if of)
    said = found.dp.statement()
    assert "values of w are above 4, clipped: this moves b, m and v in an unknown direction, and their" in said
    assert "Widen weight_bounds=" in said
    assert "values of x are above 10, clipped: this lowers m, and its" in said
    assert rows.dp.preview.agg(s=dpf.sum("x", bounds=(0, 10), **of), epsilon=1).checks is not None


def test_on_streams_and_subtotals():
    rows = survey().with_columns(t=pl.int_range(3_000) % 2)
    both = rows.dp.group_by("g", "region", keys={"g": ["A", "B"], "region": ["north", "south"]})
    asked = {"epsilon": 1e7, "ledger": dpf.Ledger(epsilon=1e9), "denoise": None, "checks": False}
    found = both.agg(s=dpf.sum("income", bounds=(0, 100), **SURVEY), rollup=True, **asked)
    exact = rows.select((pl.col("w").clip(0, 4) * pl.col("income").clip(0, 100)).sum()).item()
    assert found.filter(pl.col("g").is_null())["s"].item() == pytest.approx(exact, abs=1.0)
    stream = {"time": "t", "periods": [0, 1], "epsilon": 1e7, "ledger": dpf.Ledger(epsilon=1e9)}
    weighted = dpf.Stream("A", statistic=dpf.sum("income", bounds=(0, 100), **SURVEY), **stream)
    first = weighted.release(rows, 0)
    part = rows.filter(t=0).select((pl.col("w").clip(0, 4) * pl.col("income").clip(0, 100)).sum()).item()
    assert first["total"].item() == pytest.approx(part, abs=1.0)
    with pytest.raises(dpf.DpframeError, match="statistic"):
        dpf.Stream("A", statistic=dpf.sum("income", bounds=(0, 100)), **stream).release(rows, 1)


def test_derived_numbers_are_exact_and_populations_are_refused():
    frame = survey(400)
    groups = frame.dp.group_by("g", keys=["A", "B"])
    asked = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e9), "checks": False}
    found = groups.agg(m=dpf.mean("income", bounds=(0, 100), **SURVEY), n=dpf.count(**SURVEY), **asked)
    w, x = pl.col("w").clip(0, 4), pl.col("income").clip(0, 100)
    exact = frame.select((w * x).sum() / w.filter(x.is_not_null()).sum()).item()
    assert found.dp.total()["m"].item() == pytest.approx(exact, abs=1e-2)
    with pytest.raises(InvalidArgument, match="weight='w'"):
        groups.mean("income", bounds=(0, 100), population=True, **SURVEY, **asked)
    with pytest.raises(InvalidArgument, match="weight='w'"):
        dpf.compare(found, "A", "B")


def test_an_error_that_is_asked_for():
    """The error is for 1,000 values, with values and weights in the middle of their bounds."""
    dp = survey().dp.preview
    plan = dp.mean("income", bounds=(0, 100), within=2.0, size=1_000, **SURVEY)
    assert plan.error["income_mean"] == pytest.approx(2.0, rel=1e-3)
    share = dp.proportion("owner", within=0.05, size=1_000, **SURVEY)
    assert share.error["owner_proportion"] == pytest.approx(0.05, rel=1e-3)
    with pytest.raises(MissingArgument, match="size must be given"):
        dp.mean("income", bounds=(0, 100), within=2.0, **SURVEY)
    with pytest.raises(InvalidArgument, match="below half the range"):
        dp.mean("income", bounds=(0, 100), within=60.0, size=10, **SURVEY)


@pytest.mark.parametrize(
    ("of", "error", "words"),
    [
        ({"weight": "w"}, MissingArgument, "weight_bounds must be given"),
        ({"weight_bounds": (0, 1)}, MissingArgument, "weight must be given"),
        ({"weight": "w", "weight_bounds": (-1, 1)}, InvalidArgument, "weight_bounds must be at least 0"),
        ({"weight": "w", "weight_bounds": (2, 1)}, InvalidArgument, "weight_bounds must be two numbers"),
        ({"weight": "w", "weight_bounds": 3}, InvalidType, "weight_bounds must be a pair"),
        ({"weight": "w", "weight_bounds": ("a", "b")}, InvalidType, "weight_bounds must be two numbers"),
        ({"weight": 1, "weight_bounds": (0, 1)}, InvalidType, "column must be"),
        ({"weight": "x", "weight_bounds": (0, 1)}, InvalidArgument, "another column"),
    ],
    ids=str,
)
def test_bad_weights_are_refused(of, error, words):
    with pytest.raises(error, match=words):
        dpf.mean("x", bounds=(0, 1), **of)
    with pytest.raises(error, match=words):
        dpf.sum("x", bounds=(0, 1), **of)
    with pytest.raises(error, match=words):
        dpf.proportion("x", **of)


def test_what_has_no_weights_is_refused():
    with pytest.raises(InvalidArgument, match="column must be left out with weight"):
        dpf.count("x", **SURVEY)
    with pytest.raises(InvalidArgument, match="unit_bounds must be left out"):
        dpf.sum("x", unit_bounds=(0, 1), **SURVEY)
    with pytest.raises(InvalidArgument, match="missing must be 'drop'"):
        dpf.mean("x", bounds=(0, 1), missing="midpoint", **SURVEY)
    with pytest.raises(InvalidArgument, match=r"beyond 2\*\*-400"):
        dpf.sum("x", bounds=(0, 2.0**-300), weight="w", weight_bounds=(0, 2.0**-300))
    ledger = dpf.Ledger(epsilon=1)
    for frame, column in ((survey().with_columns(w=pl.lit("heavy")), "w"), (survey(), "absent")):
        of = {"weight": column, "weight_bounds": (0, 4)}
        with pytest.raises(WrongDtype if column == "w" else dpf.UnknownColumn):
            frame.dp.proportion("owner", epsilon=1, ledger=ledger, **of)
    assert ledger.spent.epsilon == 0


def test_charts_say_the_weights():
    pytest.importorskip("altair")
    found = (
        survey()
        .dp.group_by("g", keys=["A", "B"])
        .mean("income", bounds=(0, 100), where={"region": "north"}, epsilon=1, ledger=dpf.Ledger(epsilon=1), **SURVEY)
    )
    drawn = json.dumps(found.dp.plot().to_dict()).lower()
    assert "mean of income weighted by w where region is 'north'" in drawn
