"""Proportions: what is measured, how far one unit moves it, and what whole calls answer."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios
from scipy.stats import binom

import dpframe as dpf
from dpframe import InvalidType, MissingArgument, PrivacyUnit, WrongDtype
from dpframe.queries.clipping import grid_steps
from dpframe.queries.row_functions import two_sided

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


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
def test_no_neighbor_is_farther_than_the_sensitivity(keys, unit):
    for p in (1, 2):
        assert largest_by_chance(query_of(dpf.proportion("x"), keys, p == 1), unit, p, tries=25) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=3, max_groups=2)
    mine, instead = ([(group, value) for group in "AB" for _ in range(3)] for value in (1.0, 0.0))
    query = query_of(dpf.proportion("x"), BY_GROUP, p == 1)
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0)


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
@pytest.mark.parametrize("size", [2, 8, 100])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_intervals_cover(share, size, noise):
    """Over 3,000 groups of the same values; a false alarm has a chance below 1e-6 / 18."""
    groups = 3_000
    values = np.arange(size) < share * size
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    found = frame.dp.group_by("g", keys=range(groups)).proportion("x", epsilon=1.0, ledger=ledger, **noise)
    missed = np.abs(found["x_proportion"].to_numpy() - share) > found["x_proportion_error"].to_numpy()
    assert binom.sf(int(missed.sum()) - 1, groups, 0.05) > 1e-6 / 18


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
