"""Numbers of units: what they count, sensitivity, and whole calls."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, GROUPS, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import MissingArgument, PrivacyUnit
from dpframe.queries.contributions import steps_of
from tests.covering import chance_of_missing

STATISTICS = {"units": dpf.n_units(), "units with a value": dpf.n_units("x")}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("name", STATISTICS)
def test_no_neighbor_is_farther_than_the_sensitivity(name, keys, unit):
    for p in (1, 2):
        assert largest_by_chance(query_of(STATISTICS[name], keys, p == 1), unit, p) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p):
    unit = PrivacyUnit("u", neighbors=neighbors, max_groups=1)
    query = query_of(dpf.n_units(), BY_GROUP, p == 1)
    instead = [("B", 1.0)] if neighbors == "replace" else []
    (found,) = ratios(query, unit, [[("A", 1.0)] * 50], [instead], p).values()
    assert found == pytest.approx(1.0)
    whole = PrivacyUnit("u", neighbors=neighbors, max_groups=3)  # every group: units count as whole numbers
    (found,) = ratios(query, whole, [[(group, 1.0) for group in GROUPS]], [[]], p).values()
    assert found == pytest.approx(1.0 if neighbors == "add-remove" else 2 ** (-1 / p))


def visits():
    generator = np.random.default_rng(4)
    rows = 6_000
    frame = pl.DataFrame(
        {"u": generator.integers(0, 700, rows), "g": generator.choice(list("ABCDE"), rows), "x": generator.random(rows)}
    )
    return frame.with_columns(x=pl.when(pl.col("x") < 0.6).then(pl.col("x")))


def expected(frame, column, most, p):
    """Return the numbers by the definition, in plain Python."""
    rows = [row for row in frame.iter_rows(named=True) if column is None or row[column] is not None]
    groups = {}
    for row in rows:
        groups.setdefault(row["u"], set()).add(row["g"])
    return [
        sum(steps_of(len(found), most, p) for found in groups.values() if group in found) / 2**20 for group in "ABCDE"
    ]


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("column", [None, "x"])
@pytest.mark.parametrize("noise", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}], ids=str)
def test_units_are_counted_as_defined(library, column, noise):
    frame = visits()
    given = given_as(frame, library)
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, unit="u", accounting="basic")
    asked = given.dp.group_by("g", keys=list("ABCDE"))
    found = asked.n_units(column, max_groups=2, epsilon=1e7, denoise=None, ledger=ledger, **noise)
    assert isinstance(found, pl.DataFrame) == (library != "pandas")
    exact = expected(frame, column, 2, 1 if noise["mechanism"] == "laplace" else 2)
    assert np.abs(found["n_units"].to_numpy() - exact).max() < 0.05


def test_one_cell_needs_no_bounds_and_many_rows_change_nothing():
    frame = visits()
    ledger = dpf.Ledger(epsilon=1e9, unit="u")
    assert frame.dp.n_units(epsilon=1e7, ledger=ledger)["n_units"].item() == frame["u"].n_unique()
    doubled = pl.concat([frame] * 3)
    assert doubled.dp.n_units(epsilon=1e7, ledger=ledger)["n_units"].item() == frame["u"].n_unique()
    with pytest.raises(MissingArgument, match="max_groups"):
        frame.dp.group_by("g", keys=["A"] * 1 + ["B"]).n_units(epsilon=1.0, ledger=ledger)


def test_rows_are_not_called_units():
    """The refusal comes before the charge, also in previews. Discovered groups still have a count of their rows."""
    frame, ledger = visits(), dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic")
    words = r"ledger protects each row: use count\(\), or Ledger\(unit=...\)"
    for asked in (frame.dp, frame.dp.group_by("g", keys=["A"]), frame.dp.group_by("g", keys=dpf.discover(delta=1e-6))):
        for call in (asked.n_units, asked.preview.n_units):
            with pytest.raises(dpf.InvalidArgument, match=words):
                call(epsilon=1.0, ledger=ledger)
        with pytest.raises(dpf.InvalidArgument, match=words):
            asked.agg(dpf.count(), dpf.n_units("x"), epsilon=1.0, ledger=ledger)
    assert ledger.spent.epsilon == 0
    found = frame.dp.group_by("g", keys=dpf.discover(delta=1e-6)).count(epsilon=1e6, denoise=None, ledger=ledger)
    assert found["count"].sum() == 6_000
    assert frame.dp.top_k("g", k=2, categories=dpf.discover(delta=1e-6), epsilon=1.0, ledger=ledger).columns[0] == "g"


def test_plans_say_what_the_bounds_leave_out():
    plan = (
        visits()
        .dp.preview.group_by("g", keys=list("ABCDE"))
        .n_units(epsilon=1.0, max_groups=2, ledger=dpf.Ledger(epsilon=1.0, unit="u"))
    )
    assert any("in more than 2 groups has a lower weight" in note for note in plan.notes)
    assert not any("each row of" in note for note in plan.notes)
    assert plan.parts[0].sensitivity.norm(1) == 2.0


def test_intervals_cover():
    """Over 4,000 groups of 3 people with 2 rows each; a false alarm has a chance below 1e-6."""
    groups = 4_000
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), 6), "u": np.repeat(np.arange(3 * groups), 2)})
    found = frame.dp.group_by("g", keys=range(groups)).n_units(
        epsilon=0.4, max_groups=2, denoise=None, ledger=dpf.Ledger(epsilon=1.0, unit="u", checks=False)
    )
    missed = int((np.abs(found["n_units"].to_numpy() - 3.0) > found["n_units_error"].to_numpy()).sum())
    assert chance_of_missing(missed, groups, 0.05) > 1e-6
    assert math.isclose(
        found["n_units_error"][0], dpf.Laplace.calibrate(sensitivity=2.0, epsilon=0.4, grid=2.0**-20).interval(0.95)
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_words_state_a_bound_on_rows_only_where_a_number_uses_it(groups, caplog):
    few = f"each value of 'u' (in at most {groups} group{'s' if groups > 1 else ''} at full weight), add-remove"
    both = "each value of 'u' (at most 1 row in "
    by = visits().dp.group_by("g", keys=["A", "B", "C"])
    cost = {"max_groups": groups, "epsilon": 1, "ledger": dpf.Ledger(epsilon=9, unit="u", checks=False)}
    caplog.set_level("INFO", logger="dpframe")
    of_units = by.agg(dpf.n_units(), dpf.n_distinct("x", max_values=2), s=dpf.sum("x", unit_bounds=(0, 9)), **cost)
    of_rows = by.agg(dpf.n_units(), dpf.count(), **cost)
    for found, said, logged in zip((of_units, of_rows), (few, both), caplog.messages, strict=True):
        assert f"protects {said}" in repr(found.dp)
        assert f"protects {said}" in found.dp.table("markdown")
        assert f"protecting {said}" in logged
    plan = visits().dp.preview.n_units(epsilon=1, ledger=cost["ledger"])
    assert "each value of 'u' (in at most 1 group at full weight), add-remove" in repr(plan)
