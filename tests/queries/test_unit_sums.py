"""Sums over units, each clipped to unit_bounds: compared with the definition, sensitivity, and intervals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidArgument, MissingArgument, PrivacyUnit
from dpframe.queries.contributions import steps_of
from tests.covering import chance_of_missing

BOUNDS = {"non-negative": (0.0, 4.0), "signed": (-3.0, 4.0), "negative": (-4.0, -1.0), "high": (2.0, 4.0)}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("name", BOUNDS)
def test_no_neighbor_is_farther_than_the_sensitivity(name, keys, unit):
    query = query_of(dpf.sum("x", unit_bounds=BOUNDS[name]), keys, pure=True)
    for p in (1, 2):
        assert largest_by_chance(query, unit, p, tries=20) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p):
    """A unit has many rows in as many groups as count in full; under replace, against opposite sums."""
    unit = PrivacyUnit("u", neighbors=neighbors, max_groups=2)
    query = query_of(dpf.sum("x", unit_bounds=(-4.0, 4.0)), BY_GROUP, pure=True)
    mine, instead = ([(group, sign * 9.0) for group in "AB" for _ in range(30)] for sign in (1, -1))
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0)


def stays():
    generator = np.random.default_rng(8)
    rows = 5_000
    frame = pl.DataFrame(
        {
            "u": generator.integers(0, 300, rows),
            "g": generator.choice(list("ABCD"), rows),
            "x": generator.normal(3, 9, rows),
        }
    )
    return frame.with_columns(x=pl.when(pl.col("x") < 20).then(pl.col("x")))


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
def test_each_unit_is_clipped_and_weighed_as_defined(library):
    frame, bounds = stays(), (-5.0, 12.0)
    given = given_as(frame, library)
    ledger = dpf.Ledger(epsilon=1e9, unit="u")
    found = given.dp.group_by("g", keys=list("ABCD")).sum(
        "x", unit_bounds=bounds, max_groups=3, epsilon=1e7, denoise=None, ledger=ledger
    )
    sums = frame.group_by("u", "g").agg(pl.col("x").sum())
    groups = frame.group_by("u").agg(t=pl.col("g").n_unique())
    weighed = sums.join(groups, on="u").with_columns(
        w=pl.col("x").clip(*bounds) * pl.col("t").map_elements(lambda t: steps_of(t, 3, 1) / 2**20, pl.Float64)
    )
    exact = weighed.group_by("g").agg(pl.col("w").sum()).sort("g")["w"].to_numpy()
    assert np.abs(found["x_sum"].to_numpy() - exact).max() < 1e-3


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("bounds", [(2.0, 12.0), (-12.0, -2.0)])
def test_units_without_a_value_add_nothing_where_0_is_beyond_the_bounds(library, bounds):
    """For some units, all values in a group are missing, or no row meets the condition."""
    frame = stays().with_columns(x=pl.when(pl.col("u") % 3 > 0).then(pl.col("x")), y=pl.col("u") % 5)
    asked = {"unit_bounds": bounds, "max_groups": 4, "epsilon": 1e7, "denoise": None}
    groups = given_as(frame, library).dp.group_by("g", keys=list("ABCD"))
    ledger = dpf.Ledger(epsilon=1e9, unit="u")
    for where, rows in ((None, frame), ({"y": [1, 2]}, frame.filter(pl.col("y").is_in([1, 2])))):
        there = rows.drop_nulls("x").group_by("u", "g").agg(pl.col("x").sum().clip(*bounds))
        exact = there.group_by("g").agg(pl.col("x").sum()).sort("g")["x"].to_numpy()
        found = groups.sum("x", where=where, **asked, ledger=ledger)["x_sum"].to_numpy()
        assert np.abs(found - exact).max() < 1e-3


def test_where_each_row_is_a_unit_they_are_the_bounds_of_a_value():
    frame, ledger = stays(), dpf.Ledger(epsilon=1e9)
    one = frame.dp.sum("x", unit_bounds=(-5, 12), epsilon=1e7, ledger=ledger)["x_sum"].item()
    assert one == pytest.approx(
        frame.dp.sum("x", bounds=(-5, 12), epsilon=1e7, ledger=ledger)["x_sum"].item(), abs=1e-3
    )


def test_refusals():
    with pytest.raises(InvalidArgument, match="Keep one"):
        dpf.sum("x", bounds=(0, 1), unit_bounds=(0, 1))
    with pytest.raises(MissingArgument, match="bounds must be given"):
        dpf.sum("x")
    with pytest.raises(InvalidArgument, match="rollup must be left out"):
        stays().dp.group_by("g", keys=list("ABCD")).sum(
            "x", unit_bounds=(0, 1), rollup=True, epsilon=1, max_groups=1, ledger=dpf.Ledger(epsilon=1, unit="u")
        )


def test_intervals_cover():
    """Over 4,000 groups of 2 people with 5 rows each; a false alarm has a chance below 1e-6."""
    groups = 4_000
    frame = pl.DataFrame(
        {"g": np.repeat(np.arange(groups), 10), "u": np.repeat(np.arange(2 * groups), 5), "x": np.ones(10 * groups)}
    )
    found = frame.dp.group_by("g", keys=range(groups)).sum(
        "x", unit_bounds=(0, 4), epsilon=0.4, max_groups=1, denoise=None, ledger=dpf.Ledger(epsilon=1.0, unit="u")
    )
    missed = int((np.abs(found["x_sum"].to_numpy() - 8.0) > found["x_sum_error"].to_numpy()).sum())
    assert chance_of_missing(missed, groups, 0.05) > 1e-6
