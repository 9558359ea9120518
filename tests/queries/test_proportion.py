"""Proportions: what is measured, sensitivity, and the answers of whole calls."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidType, MissingArgument, PrivacyUnit, WrongDtype
from dpframe.queries.limits import grid_steps
from dpframe.queries.vectors import two_sided
from tests.covering import chance_of_missing

NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 4.0), (-(2.0**53), 2.0**53), (100.0, 101.0)])
def test_both_ways_make_the_whole_way(bounds):
    lower, upper = grid_steps(bounds)
    steps = np.unique([*np.random.default_rng(3).integers(lower, upper + 1, 1_000).tolist(), lower, upper])
    vector = two_sided("x", bounds)
    above, below = (entry.function(steps) for entry in vector.entries)
    assert (above >= 0).all()
    assert (below >= 0).all()
    assert (above + below == vector.most[0]).all()
    assert ((above.astype(object) ** 2 + below.astype(object) ** 2).max()) == vector.most[1]
    assert (above[0], above[-1]) == (0, 2**30)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
def test_no_neighbor_is_farther_than_the_sensitivity(keys, unit):
    for p in (1, 2):
        for statistic in (dpf.proportion("x"), dpf.proportion("x", value=1)):
            assert largest_by_chance(query_of(statistic, keys, p == 1), unit, p, tries=25) <= 1 + 1e-15


@pytest.mark.parametrize("value", [None, 1.0])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p, value):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=3, max_groups=2)
    mine, instead = ([(group, value) for group in "AB" for _ in range(3)] for value in (1.0, 0.0))
    query = query_of(dpf.proportion("x", value), BY_GROUP, p == 1)
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0, rel=2**-15)  # with a value to compare, weights are on a grid of 2**-16


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_values_without_much_noise(library, noise):
    smokes = [True] * 300 + [False] * 500 + [None] * 200
    frame = pl.DataFrame({"smoker": smokes, "dose": [0.5] * 500 + [7.0] * 500, "g": ["A"] * 1_000})
    given = given_as(frame, library)
    ledger = dpf.Ledger(epsilon=1e8, delta=1e-3, accounting="basic")
    found = given.dp.group_by("g", keys=["A", "none"]).agg(
        dpf.proportion("smoker"), dpf.proportion("dose"), epsilon=1e6, ledger=ledger, **noise
    )
    assert found["smoker_proportion"].to_numpy() == pytest.approx([0.375, 0.5], abs=1e-3)
    assert found["dose_proportion"].to_numpy()[0] == pytest.approx(0.75, abs=1e-3)
    assert found["smoker_proportion_error"].to_numpy()[1] == 0.5


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("value", [None, True])
@pytest.mark.parametrize("size", [2, 8, 100])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_intervals_cover(share, size, value, noise):
    """Over 3,000 groups of the same values; a false alarm has a chance below 1e-6 / 36."""
    groups = 3_000
    values = np.arange(size) < share * size
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    found = frame.dp.group_by("g", keys=range(groups)).proportion("x", value=value, epsilon=1.0, ledger=ledger, **noise)
    missed = np.abs(found["x_proportion"].to_numpy() - share) > found["x_proportion_error"].to_numpy()
    assert chance_of_missing(int(missed.sum()), groups, 0.05) > 1e-6 / 36


@pytest.mark.parametrize("epsilon", [1.8, 2.0, 3.7, 5.0])
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("share", [0.35, 0.5])
def test_small_whole_noise_is_covered(share, noise, epsilon):
    """The interval of one draw, nearly always 0, has width 0. Over 10,000 groups: a false alarm below 1e-6."""
    groups, size = 10_000, 40
    frame = pl.DataFrame(
        {
            "g": np.repeat(np.arange(groups), size),
            "x": np.tile(np.where(np.arange(size) < share * size, "a", "b"), groups),
        }
    )
    ledger = dpf.Ledger(epsilon=99.0, delta=1e-4, accounting="basic")
    asked = frame.dp.group_by("g", keys=range(groups))
    found = asked.proportion("x", value="a", epsilon=epsilon, ledger=ledger, **noise)
    missed = np.abs(found["x_proportion"].to_numpy() - share) > found["x_proportion_error"].to_numpy() + 1e-12
    assert chance_of_missing(int(missed.sum()), groups, 0.065) > 1e-6 / 16
    plan = frame.dp.preview.proportion("x", value="a", epsilon=epsilon, size=size, **noise)
    assert plan.error["x_proportion"] == pytest.approx(np.median(found["x_proportion_error"].to_numpy()), rel=0.15)


def test_refusals():
    frame = pl.DataFrame({"drug": ["A", "B"], "smoker": [True, False]})
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(WrongDtype, match="must hold numbers"):
        frame.dp.proportion("drug", epsilon=0.5, ledger=ledger)
    with pytest.raises(MissingArgument, match="size must be given"):
        frame.dp.proportion("smoker", within=0.1, ledger=ledger)
    with pytest.raises(InvalidType, match="name of a column"):
        dpf.proportion(3)
    assert not ledger.spent.epsilon


HELD = {
    "text": (["A"] * 3 + ["B"] * 5 + [None] * 2, pl.String, {"A": 3 / 8, "B": 5 / 8, "none": 0.0}),
    "category": (["A"] * 3 + ["B"] * 5 + [None] * 2, pl.Categorical, {"A": 3 / 8, "none": 0.0}),
    "levels": (["A"] * 3 + ["B"] * 5 + [None] * 2, pl.Enum(["A", "B", "C"]), {"A": 3 / 8, "C": 0.0}),
    "integers": ([1] * 2 + [2] * 6 + [None] * 2, pl.Int64, {True: 0.25, 2.0: 0.75, 3: 0.0}),
    "floats": (
        [0.0, -0.0, float("nan"), 1.5, None, float("inf")],
        pl.Float64,
        {0: 0.5, 1.5: 0.25, Decimal("1.5"): 0.25},
    ),
    "truth": ([True] * 1 + [False] * 3 + [None], pl.Boolean, {True: 0.25, 0: 0.75}),
    "decimals": ([Decimal("1.50")] * 1 + [Decimal("2")] * 3, pl.Decimal(20, 2), {1.5: 0.25, 2: 0.75}),
    "days": (
        [date(2024, 1, 1)] * 3 + [date(2024, 1, 2)],
        pl.Date,
        {date(2024, 1, 1): 0.75, datetime(2024, 1, 2): 0.25},
    ),
    "times": ([datetime(2024, 1, 1, 9)] * 3 + [None], pl.Datetime("us"), {datetime(2024, 1, 1, 9): 1.0}),
    "spans": ([timedelta(1)] * 3 + [timedelta(2)], pl.Duration("ms"), {timedelta(1): 0.75}),
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", [None, dpf.PrivacyUnit("u", max_rows=1, max_groups=1)], ids=["rows", "units"])
@pytest.mark.parametrize("library", ["polars", "pandas", "objects", "lazy"])
@pytest.mark.parametrize("kind", HELD)
def test_a_value_of_any_dtype(kind, library, unit):
    """Values are compared as declared keys are; missing values, including NaN, count in neither part."""
    held, dtype, shares = HELD[kind]
    values = pl.Series(held * 100, dtype=dtype)
    frame = pl.DataFrame({"u": np.arange(values.len()), "x": values})
    if library in ("pandas", "objects") and kind == "decimals":
        pytest.importorskip("pyarrow")
    given = given_as(frame, "pandas" if library == "objects" else library)
    if library == "objects":
        given["x"] = given["x"].astype(object)
    for value, share in shares.items():
        ledger = dpf.Ledger(epsilon=1e8, unit=unit, accounting="basic")
        found = dpf.of(given).proportion("x", value=value, epsilon=1e6, ledger=ledger)
        assert found["x_proportion"].to_numpy() == pytest.approx([share], abs=1e-3)


def test_the_shares_of_all_values_make_a_whole():
    """In each group, proportions are those of the rows and add up to 1, also with a privacy unit."""
    generator = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "u": generator.integers(0, 30, 500),
            "g": generator.choice(["A", "B"], 500),
            "x": generator.choice(["a", "b", None], 500).tolist(),
        },
        schema_overrides={"x": pl.String},
    )
    ledger = dpf.Ledger(epsilon=1e9, accounting="basic", unit=dpf.PrivacyUnit("u", max_rows=500, max_groups=2))
    statistics = {name: dpf.proportion("x", value=name) for name in "ab"}
    found = frame.dp.group_by("g", keys=["A", "B"]).agg(statistics, epsilon=1e8, ledger=ledger)
    counted = frame.drop_nulls("x").group_by("g").agg(a=(pl.col("x") == "a").mean()).sort("g")
    assert found["a"].to_numpy() == pytest.approx(counted["a"].to_numpy(), abs=1e-3)
    assert (found["a"] + found["b"]).to_numpy() == pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_value_is_of_the_question():
    """The value is part of the query: the record and the ledger state it, and an impossible value costs no budget."""
    frame = pl.DataFrame({"drug": ["A", "B"], "n": [1, 2], "when": [datetime(2024, 1, 1)] * 2})
    ledger = dpf.Ledger(epsilon=1.0)
    found = frame.dp.agg(
        a=dpf.proportion("drug", value="A"), b=dpf.proportion("n", value=1), epsilon=0.5, ledger=ledger
    )
    measures = found.dp.provenance["measures"]
    assert [measures[name]["value"] for name in "ab"] == ["'A'", "1"]
    assert "proportion(drug = 'A'), proportion(n = 1)" in ledger.to_frame()["query"].to_list()[0]
    for value, match in ((float("nan"), "missing values are left out"), (float("inf"), "must be finite")):
        with pytest.raises(dpf.InvalidArgument, match=match):
            frame.dp.proportion("n", value=value, epsilon=0.1, ledger=ledger)
    with pytest.raises(InvalidType, match="value must be a number, a string, a date or a duration, not a Series"):
        frame.dp.proportion("n", value=frame["n"], epsilon=0.1, ledger=ledger)
    with pytest.raises(WrongDtype, match="value of column 'drug' must suit its dtype String, but it is a number"):
        frame.dp.proportion("drug", value=1, epsilon=0.1, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="must convert exactly"):
        frame.dp.proportion("n", value=1.5, epsilon=0.1, ledger=ledger)
    with pytest.raises(WrongDtype, match="plain values"):
        pl.DataFrame({"x": [[1]]}).dp.proportion("x", value=1, epsilon=0.1, ledger=ledger)
    with pytest.raises(dpf.UnknownColumn):
        frame.dp.proportion("dog", value="A", epsilon=0.1, ledger=ledger)
    assert ledger.spent.epsilon == 0.5


def test_pandas_answers_for_a_number_in_booleans_as_in_objects():
    """One missing value turns booleans into objects, so a refusal of 2 would tell whether there is one."""
    pd = pytest.importorskip("pandas")
    for well in ([True, False], [True, None]):
        frame = pd.DataFrame({"well": well * 50})
        found = frame.dp.proportion("well", value=2, epsilon=1e6, checks=False, ledger=dpf.Ledger(epsilon=1e6))
        assert found["well_proportion"][0] == pytest.approx(0.0, abs=1e-3)


def test_another_value_is_no_replay(tmp_path):
    frame = pl.DataFrame({"n": [1, 2]})
    ledger = dpf.Ledger(epsilon=5.0, path=tmp_path / "clinic.ledger", dataset="clinic")
    words = {"epsilon": 0.5, "label": "share", "snapshot": "2026-W47", "ledger": ledger}
    once = frame.dp.proportion("n", value=1, **words)
    assert once.equals(frame.dp.proportion("n", value=1, **words))
    with pytest.raises(dpf.LedgerError):
        frame.dp.proportion("n", value=2, **words)
    with pytest.raises(dpf.LedgerError):
        frame.dp.proportion("n", **words)
