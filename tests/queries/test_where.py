"""Conditions of statistics: the rows that meet them, on every engine; sensitivity; and whole calls.

False alarms: noise at an epsilon of 10^7 or more exceeds the asserted tolerances with a chance below 10^-6.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

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
from dpframe import InvalidArgument, InvalidType, PrivacyUnit, UnknownColumn, WrongDtype
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.where import Conditional, under_conditions

NOBODY = PrivacyUnit()
ROWS = pl.DataFrame(
    {
        "x": [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.3, 1.0, 2.0, 9.0, 1.0, 5.0],
        "y": [1.0, 2.0, 3.0, 4.0, None, 6.0, 7.0, 8.0, 9.0, 10.0, math.nan, 12.0],
        "ward": ["A", "B", None, "C", "A", "B", "A", "B", None, "C", "a", "A"],
        "n": [1, 2, 3, 4, 5, 2**53 + 1, 2**53, 8, 9, 10, 11, -(2**63)],
        "day": [date(2024, 1, 1 + place) for place in range(11)] + [None],
        "at": [datetime(2024, 1, 1) + timedelta(hours=6 * place) for place in range(11)] + [None],
        "flag": [True, False, None] * 4,
        "u": [1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6],
        "g": ["A", "B", "C"] * 4,
    }
)
X, N = pl.col("x"), pl.col("n")
CONDITIONS = {  # name -> condition, and the Polars expression that it means
    "a value": ({"ward": "A"}, pl.col("ward") == "A"),
    "values, one of them missing": ({"ward": ["A", None]}, (pl.col("ward") == "A") | pl.col("ward").is_null()),
    "no value of the column": ({"ward": ["nobody"]}, pl.lit(value=False)),
    "a range": ({"x": (0, 1)}, (X >= 0) & (X < 1)),
    "an open end above": ({"x": (1, None)}, (X >= 1) & X.is_not_nan()),
    "an open end below": ({"x": (None, 1.0)}, X < 1),
    "a number": ({"x": 1}, X == 1),
    "zeros are one": ({"x": -0.0}, X == 0),
    "long integers as keys": ({"n": [2**53 + 1]}, N == 2**53 + 1),
    "a range of integers": ({"n": (2, 10)}, (N >= 2) & (N < 10)),
    "days": (
        {"day": (date(2024, 1, 2), date(2024, 1, 9))},
        pl.col("day").is_between(date(2024, 1, 2), date(2024, 1, 8)),
    ),
    "moments by days": ({"at": (date(2024, 1, 2), None)}, pl.col("at") >= datetime(2024, 1, 2)),
    "Booleans": ({"flag": True}, pl.col("flag") == True),  # noqa: E712
    "two columns": ({"ward": ["A", "B"], "x": (0, None)}, pl.col("ward").is_in(["A", "B"]) & (X >= 0) & X.is_not_nan()),
}
STATISTICS = {
    "rows": dpf.count,
    "values": lambda **o: dpf.count("y", **o),
    "sum": lambda **o: dpf.sum("y", bounds=(0, 8), **o),
    "signed sum": lambda **o: dpf.sum("x", bounds=(-3, 4), **o),
    "mean": lambda **o: dpf.mean("y", bounds=(2, 8), **o),
    "variance": lambda **o: dpf.variance("y", bounds=(0, 8), **o),
    "median": lambda **o: dpf.median("y", bounds=(0, 10), **o),
    "proportion": lambda **o: dpf.proportion("flag", **o),
    "proportion of a value": lambda **o: dpf.proportion("ward", "A", **o),
    "ratio": lambda **o: dpf.ratio("x", "y", bounds={"x": (0, 4), "y": (1, 8)}, **o),
    "distinct values": lambda **o: dpf.n_distinct("n", **o),
    "covariance": lambda **o: dpf.covariance(["x", "y"], bounds={"x": (0, 4), "y": (1, 8)}, **o),
}


def integers(frame, statistic, keys, pure, unit=NOBODY, p=1.0):
    query = query_of(statistic, keys, pure).each(
        lambda one: one.protecting(unit) if hasattr(one, "protecting") else one
    )
    return [cells.tolist() for cells in totals(frame, check(frame, query, unit), unit, p).values()]


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
@pytest.mark.parametrize("name", STATISTICS)
def test_a_condition_leaves_the_rows_in_which_it_holds(name, library):
    frame = given_as(ROWS, library)
    for words, (where, meant) in CONDITIONS.items():
        if library == "pandas" and words == "days":
            continue  # pandas has a column of objects, which takes no range of days
        for keys in (BY_GROUP, EVERYTHING):
            for pure in (True, False):
                found = integers(frame, STATISTICS[name](where=where), keys, pure)
                exact = integers(ROWS.filter(meant), STATISTICS[name](), keys, pure)
                assert found == exact, (words, pure)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_people_count_where_one_of_their_rows_holds(p):
    """A unit counts if one of its rows meets the condition; its weight depends on all of its rows."""
    unit = PrivacyUnit("u", max_rows=9, max_groups=1)
    for where, meant in CONDITIONS.values():
        for ask in (dpf.n_units, lambda **o: dpf.sum("y", unit_bounds=(0, 8), **o)):
            found = integers(ROWS, ask(where=where), EVERYTHING, p == 1, unit, p)
            assert found == integers(ROWS.filter(meant), ask(), EVERYTHING, p == 1, unit, p)
    few = PrivacyUnit("u", max_rows=1, max_groups=1)
    half = pl.DataFrame({"u": [1, 1], "x": [0.0, 1.0]})
    assert integers(half, dpf.count(where={"x": (1, None)}), EVERYTHING, True, few) == [[2**19 - 1]]  # rounded down


@EACH_ENGINE
@ROWS_AND_UNITS
def test_every_engine_gives_the_same(engine, unit):
    with tables_on(engine) as given:
        table = given(ROWS.drop("day", "at"))
        for name, ask in STATISTICS.items():
            if name == "distinct values":
                continue  # they need all rows in one place
            asked = ask(where={"ward": ["A", "B"], "x": (0, None)})
            assert integers(table, asked, BY_GROUP, True, unit) == integers(ROWS, asked, BY_GROUP, True, unit), name


WHERE = {"x": (0.0, 3.0)}
FAR = {
    "rows": dpf.count(where=WHERE),
    "values": dpf.count("x", where={"g": ["A", "B"]}),
    "sum": dpf.sum("x", bounds=(-3, 4), where=WHERE),
    "sum of some groups": dpf.sum("x", bounds=(2, 4), where={"g": ["A", "unlisted"]}),
    "mean": dpf.mean("x", bounds=(-3, 4), where=WHERE),
    "variance": dpf.variance("x", bounds=(-3, 4), where={"g": "A"}),
    "median": dpf.median("x", bounds=(-3, 4), where=WHERE),
    "proportion": dpf.proportion("x", 1.0, where=WHERE),
    "units": dpf.n_units(where=WHERE),
    "sums of units": dpf.sum("x", unit_bounds=(-3, 4), where=WHERE),
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("name", FAR)
def test_no_neighbor_is_farther_than_the_sensitivity(name, keys, unit):
    for p in (1, 2):
        assert largest_by_chance(query_of(FAR[name], keys, p == 1), unit, p, tries=12) <= 1 + 1e-15


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_sensitivity_is_that_without_a_condition(unit):
    for p in (1, 2):
        for name in ("sum", "mean", "variance", "median"):
            plain, filtered = (query_of(STATISTICS[name](**o), BY_GROUP, p == 1) for o in ({}, {"where": WHERE}))
            for one, other in zip(plain.of_cells, filtered.of_cells, strict=True):
                both = (sensitivity_of(total, unit, plain.keys.cells) for total in (one, other))
                assert len({far.steps(p) for far in both}) == 1


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    query = query_of(dpf.sum("x", bounds=(-4, 4), where={"x": (-4.0, None)}), EVERYTHING, pure=True)
    mine, instead = ([("A", sign * 4.0)] * 2 for sign in (1, -1))
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], 1).values()
    assert found == pytest.approx(1.0)


def test_several_filtered_numbers_share_one_call_and_one_look():
    ledger = dpf.Ledger(epsilon=1e9)
    found = ROWS.dp.group_by("g", keys=["A", "B", "C"]).agg(
        all=dpf.count(),
        adults=dpf.count(where={"x": (1, None)}),
        first=dpf.sum("y", bounds=(0, 8), where={"ward": "A"}),
        second=dpf.mean("y", bounds=(0, 8), where={"ward": ["B", None]}),
        epsilon=1e8,
        denoise=None,
        ledger=ledger,
        checks=False,
    )
    assert len(ledger.to_frame()) == 1
    assert ledger.spent.epsilon == 1e8
    exact = ROWS.group_by("g").agg(
        pl.len(), (X >= 1).filter(X.is_not_nan()).sum(), pl.col("y").clip(0, 8).filter(pl.col("ward") == "A").sum()
    )
    for (_, *numbers), row in zip(sorted(exact.rows()), found.rows(named=True), strict=True):
        assert [row["all"], row["adults"]] == pytest.approx(numbers[:2], abs=1e-3)
    totals_of = [part["measures"] for part in found.dp.provenance["statistics"]]
    assert totals_of[:3] == ["rows", "rows where x >= 1", "sum of y where ward is 'A'"]
    measures = found.dp.provenance["measures"]
    assert measures["adults"]["where"] == "x >= 1"
    assert measures["adults"]["column"] is None
    assert (measures["second"]["column"], measures["second"]["where"]) == ("y", "ward is 'B' or missing")
    assert "where" not in measures["all"]


def test_the_verbs_take_it_too(tmp_path):
    ledger = dpf.Ledger(epsilon=1e9, unit=PrivacyUnit("u", max_rows=3))
    where = {"ward": ["A", "B"]}
    asked = {"epsilon": 1e6, "ledger": ledger, "checks": False}
    dp = ROWS.dp
    found = {
        "count": dp.count(where=where, **asked),
        "sum": dp.sum("y", bounds=(0, 8), where=where, **asked),
        "mean": dp.mean("y", bounds=(0, 8), where=where, **asked),
        "variance": dp.variance("y", bounds=(0, 8), where=where, **asked),
        "std": dp.std("y", bounds=(0, 8), where=where, **asked),
        "median": dp.median("y", bounds=(0, 8), where=where, **asked),
        "quantile": dp.quantile("y", q=[0.1, 0.9], bounds=(0, 8), where=where, **asked),
        "proportion": dp.proportion("flag", where=where, **asked),
        "n_units": dp.n_units(where=where, **asked),
        "n_distinct": dp.n_distinct("n", max_values=3, where=where, **asked),
        "covariance": dp.covariance(["x", "y"], bounds={"x": (0, 4), "y": (0, 8)}, where=where, **asked),
        "correlation": dp.correlation(["x", "y"], bounds={"x": (0, 4), "y": (0, 8)}, where=where, **asked),
    }
    for name, result in found.items():
        measures = result.dp.provenance["measures"].values()
        assert {measure["where"] for measure in measures} == {"ward is 'A' or 'B'"}, name
        assert not any("where" in column for column in result.columns)
        result.dp.write_parquet(tmp_path / f"{name}.parquet")
        again = dpf.read_parquet(tmp_path / f"{name}.parquet")
        assert again.dp.provenance == result.dp.provenance
        assert json.loads(json.dumps(again.dp.provenance)) == again.dp.provenance
    assert found["n_units"]["n_units"].item() == pytest.approx(5, abs=0.01)
    assert found["sum"].columns[0] == "y_sum"
    assert found["covariance"]["column"].to_list() == ["x"]


def test_words_of_charts_say_the_condition():
    pytest.importorskip("altair")
    found = ROWS.dp.group_by("g", keys=["A", "B", "C"]).mean(
        "y",
        bounds=(0, 8),
        where={"day": (date(2024, 1, 2), None)},
        epsilon=1,
        ledger=dpf.Ledger(epsilon=1),
        checks=False,
    )
    assert "mean of y where day >= 2024-01-02" in json.dumps(found.dp.plot().to_dict()).lower()


def test_a_ledger_knows_the_condition_again(tmp_path):
    """A condition is the same in any order of its columns; a different condition is a different query."""
    ledger = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))

    def asked(where):
        return ROWS.dp.count(where=where, epsilon=1, label="n", snapshot="w1", ledger=ledger, checks=False)

    first = asked({"ward": ["A", "B"], "x": (0, 2)})
    assert asked({"x": (0.0, 2), "ward": ["A", "B"]}).equals(first)
    assert ledger.spent.epsilon == 1
    for other in (
        {"ward": ["A", "C"], "x": (0, 2)},
        {"ward": ["A", "B"], "x": (0, 3)},
        {"x": (0, 2)},
        {"x": (0, None)},
        None,
    ):
        with pytest.raises(dpf.LedgerError, match="statistic differs"):
            asked(other)
    assert ledger.spent.epsilon == 1
    ledger.verify()


def test_checks_are_of_the_rows_in_which_a_condition_holds():
    rows = pl.DataFrame({"x": [1.0, 50.0, 50.0, -7.0, None], "ward": ["A", "A", "B", "B", "A"]})
    asked = {"epsilon": 1e8, "ledger": dpf.Ledger(epsilon=1e9), "checks": 0.5}
    found = rows.dp.agg(
        a=dpf.mean("x", bounds=(0, 10), where={"ward": "A"}),
        b=dpf.mean("x", bounds=(0, 10), where={"ward": "B"}),
        **asked,
    )
    counts = {(row["of"], row["what"]): round(row["count"]) for row in found.dp.checks().rows(named=True)}
    a, b = "x where ward is 'A'", "x where ward is 'B'"
    assert [counts[a, what] for what in ("below", "above", "present")] == [0, 1, 2]
    assert [counts[b, what] for what in ("below", "above", "present")] == [1, 1, 2]
    assert "values of x where ward is 'A' are above 10, clipped" in found.dp.statement()


def test_a_condition_on_a_stream():
    weeks = dpf.dates("2024-01-01", "2024-01-15", every="1w")
    rows = ROWS.filter(pl.col("day").is_not_null())
    ledger = dpf.Ledger(epsilon=1e9)
    asked = {"time": "day", "periods": weeks, "epsilon": 1e7, "ledger": ledger}
    stream = dpf.Stream("A", statistic=dpf.count(where={"ward": "A"}), **asked)
    found = stream.release(rows, date(2024, 1, 1))
    assert found["total"].item() == pytest.approx(3, abs=0.01)
    assert found.dp.provenance["measures"]["total"]["where"] == "ward is 'A'"
    with pytest.raises(dpf.DpframeError, match="statistic"):
        dpf.Stream("A", statistic=dpf.count(where={"ward": "B"}), **asked).release(rows, date(2024, 1, 8))


def test_a_count_of_a_mean_under_the_same_condition_costs_nothing_more():
    where = {"ward": ["A", "B"]}
    asked = dpf.mean("y", bounds=(0, 8), where=where), dpf.count("y", where=where)
    plan = ROWS.dp.preview.agg(m=asked[0], n=asked[1], epsilon=1)
    assert len(plan.parts) == 1
    apart = ROWS.dp.preview.agg(m=asked[0], n=dpf.count("y"), epsilon=1)
    assert len(apart.parts) == 2


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ("ward", InvalidType, "where must be a dict"),
        ({}, InvalidArgument, "at least one column"),
        ({1: "A"}, InvalidType, "by strings"),
        ({"ward": []}, InvalidArgument, "at least one value"),
        ({"ward": ["A", "A"]}, InvalidArgument, "distinct"),
        ({"ward": ["A", 1]}, InvalidType, "one kind"),
        ({"ward": {"A"}}, InvalidType, "a list, tuple or range"),
        ({"ward": pl.Series(["A"])}, InvalidType, "values from data reveal"),
        ({"x": (1, 2, 3)}, InvalidArgument, "two ends"),
        ({"x": (None, None)}, InvalidArgument, "not two open ones"),
        ({"x": (2, 1)}, InvalidArgument, "lower end first"),
        ({"x": (1, 1)}, InvalidArgument, "lower end first"),
        ({"x": ("a", "b")}, InvalidType, "A list names values|a list names values"),
        ({"x": (1, date(2024, 1, 1))}, InvalidType, "one kind"),
        ({"x": (math.nan, 1)}, InvalidArgument, "finite"),
        ({"x": (0, math.inf)}, InvalidArgument, "Write None"),
        ({"x": math.nan}, InvalidArgument, "finite"),
        ({"day": (datetime(2024, 1, 1), datetime(2024, 1, 2, tzinfo=UTC))}, InvalidType, "time zone"),
        ({"ward": dpf.dates("2024-01-01", "2024-01-15", every="1w")}, InvalidType, "dates"),
    ],
    ids=str,
)
def test_bad_conditions_are_refused(where, error, words):
    with pytest.raises(error, match=words):
        dpf.count(where=where)


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ({"wards": "A"}, UnknownColumn, "Did you mean 'ward'"),
        ({"ward": 1}, WrongDtype, "where of column 'ward'"),
        ({"ward": (0, 1)}, WrongDtype, "where of column 'ward'"),
        ({"x": "A"}, WrongDtype, "where of column 'x'"),
        ({"at": (datetime(2024, 1, 1, tzinfo=UTC), None)}, WrongDtype, "time zone"),
        ({"g": "A", "ward": 1}, WrongDtype, "where of column 'ward'"),
        ({"g": "A", "x": (0, 1), "n": "A"}, WrongDtype, "where of column 'n'"),
    ],
    ids=str,
)
def test_conditions_must_suit_the_schema(where, error, words):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(error, match=words):
        ROWS.dp.count(where=where, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_missing_values_as_the_middle_are_refused_with_a_condition():
    with pytest.raises(InvalidArgument, match="missing must be 'drop' with where="):
        dpf.mean("x", bounds=(0, 1), missing="midpoint", where={"ward": "A"})


def test_levels_of_a_category_are_no_range():
    pytest.importorskip("pandas")
    frame = pl.DataFrame({"c": ["A", "B"]}).to_pandas().astype({"c": "category"})
    found = frame.dp.count(where={"c": "A"}, epsilon=1e7, ledger=dpf.Ledger(epsilon=1e8), checks=False)
    assert found["count"].item() == 1
    with pytest.raises(WrongDtype, match="where of column 'c'"):
        frame.dp.count(where={"c": (0, 1)}, epsilon=1, ledger=dpf.Ledger(epsilon=1))


def test_a_condition_is_a_column_of_no_table():
    """Its text is for display only: a column with this text as its name is another column."""
    column = under_conditions("y", {"ward": "A"})
    assert isinstance(column, Conditional)
    assert column != str(column)
    assert str(column) not in {column: 1}
    assert under_conditions("y", {"ward": ["A"]}) == column == copy.copy(column) == pickle.loads(pickle.dumps(column))
    assert under_conditions("y", {"ward": "B"}) != column
    named = ROWS.rename({"x": str(column)})
    asked = {"epsilon": 1e8, "ledger": dpf.Ledger(epsilon=1e9), "denoise": None, "checks": False}
    found = named.dp.agg(a=dpf.count(str(column)), b=dpf.count("y", where={"ward": "A"}), **asked)
    assert [found["a"].item(), found["b"].item()] == pytest.approx([10, 3], abs=0.01)
    many = under_conditions(None, {"n": list(range(1_000))})
    assert len(many) < 100
    assert many != under_conditions(None, {"n": [*range(999), 5_000]})


def test_decimals_and_instants_in_pandas_and_polars():
    rows = pl.DataFrame(
        {
            "amount": [Decimal("0.1"), Decimal("0.2"), None],
            "at": [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
        }
    )
    for where, exact in (
        ({"amount": Decimal("0.1")}, 1),
        ({"amount": (Decimal("0.1"), Decimal("0.2"))}, 1),
        ({"at": (datetime(2024, 1, 2, tzinfo=UTC), None)}, 2),
    ):
        assert integers(rows, dpf.count(where=where), EVERYTHING, True) == [[exact]]
        assert integers(given_as(rows, "lazy"), dpf.count(where=where), EVERYTHING, True) == [[exact]]


def test_nothing_a_row_holds_makes_a_condition_fail():
    pandas = pytest.importorskip("pandas")
    odd = [
        None,
        math.nan,
        "A",
        1,
        2.5,
        Decimal("NaN"),
        [1],
        {"a": 1},
        object(),
        date(2024, 1, 1),
        np.datetime64("NaT", "D"),
        True,
    ]
    frame = pandas.DataFrame({"o": pandas.Series(odd, dtype=object)})
    assert integers(frame, dpf.count(where={"o": "A"}), EVERYTHING, True) == [[1]]
    assert integers(frame, dpf.count(where={"o": (0, 2)}), EVERYTHING, True) == [[2]]  # 1 and True
