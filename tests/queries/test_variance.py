"""Variances and standard deviations: what a row adds, sensitivity, and values that are computed from noisy sums."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidArgument, MissingArgument, PrivacyUnit
from dpframe.queries.limits import grid_steps
from dpframe.queries.row_functions import centred_squares
from dpframe.queries.vectors import bernstein
from tests.covering import chance_of_missing

BOUNDS = [(0.0, 4.0), (-3.0, 4.0), (100.0, 101.0)]


@pytest.mark.parametrize("bounds", [*BOUNDS, (-(2.0**53), 2.0**53), (1e-9, 1.0)])
def test_what_a_row_adds(bounds):
    """Compared with exact rationals: entries are at least 0 with a constant sum; squares stay within their reach."""
    lower, upper = grid_steps(bounds)
    steps = np.unique([*np.random.default_rng(3).integers(lower, upper + 1, 1_000).tolist(), lower, upper])
    vector = bernstein("x", bounds)
    found = np.stack([entry.function(steps) for entry in vector.entries])
    assert (found >= 0).all()
    assert (found.sum(axis=0) == vector.most[0]).all()
    assert (found.astype(object) ** 2).sum(axis=0).max() == vector.most[1]
    squares = centred_squares("x", bounds)
    y = squares.function(steps)
    assert (y.min(), y.max()) == squares.reach if (steps == (lower + upper) // 2).any() else y.max() == squares.reach[1]
    for place in range(0, steps.size, 50):
        t = Fraction(int(steps[place]) - lower, upper - lower)
        exact = ((1 - t) ** 2, 2 * t * (1 - t), t**2)
        assert all(abs(Fraction(int(found[k, place]), 2**30) - exact[k]) <= Fraction(1, 2**14) for k in range(3))
        assert abs(Fraction(int(y[place]), 2**32) - ((2 * t - 1) ** 2 - Fraction(1, 2))) <= Fraction(1, 2**15)
    assert pickle.loads(pickle.dumps(vector)) == vector
    assert pickle.loads(pickle.dumps(squares)) == squares


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("pure", [True, False])
def test_no_neighbor_is_farther_than_the_sensitivity(pure, keys, unit):
    for bounds in BOUNDS[:2]:
        query = query_of(dpf.variance("x", bounds=bounds), keys, pure)
        assert largest_by_chance(query, unit, 1 if pure else 2, tries=20) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=3, max_groups=2)
    query = query_of(dpf.variance("x", bounds=(0.0, 4.0)), BY_GROUP, pure=True)
    mine, instead = ([(group, value) for group in "AB" for _ in range(3)] for value in (9.0, -9.0))
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0, abs=1e-6)


def people(rows=40_000):
    generator = np.random.default_rng(5)
    values = generator.gamma(2.0, 12.0, rows)
    values[::9] = np.nan
    return pl.DataFrame({"x": values, "g": generator.choice(["A", "B"], rows)})


@pytest.mark.slow
@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("ddof", [0, 1])
def test_values_without_much_noise(library, noise, ddof):
    frame = people()
    given = given_as(frame, library)
    found = given.dp.group_by("g", keys=["A", "B"]).agg(
        dpf.variance("x", bounds=(0, 100), ddof=ddof),
        dpf.std("x", bounds=(0, 100), ddof=ddof),
        epsilon=1e6,
        ledger=dpf.Ledger(epsilon=1e7, delta=1e-3),
        **noise,
    )
    for place, group in enumerate("AB"):
        values = frame.filter(g=group)["x"].to_numpy()
        exact = np.nanvar(values.clip(0, 100), ddof=ddof)
        assert found["x_var"].to_numpy()[place] == pytest.approx(exact, abs=0.1)
        assert found["x_std"].to_numpy()[place] == pytest.approx(exact**0.5, abs=0.003)


def test_std_and_variance_share_what_is_measured():
    asked = people().dp.preview
    both = asked.agg(dpf.variance("x", bounds=(0, 100)), dpf.std("x", bounds=(0, 100)), epsilon=1.0, checks=False)
    assert [part.share for part in both.parts] == [1.0]
    gaussian = asked.agg(dpf.variance("x", bounds=(0, 100)), dpf.mean("x", bounds=(0, 100)), epsilon=1.0, delta=1e-6)
    assert len(gaussian.parts) == 3  # the mean needs no measurement of its own


@pytest.mark.parametrize("noise", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("size", [2, 20, 400])
def test_intervals_cover(size, noise):
    """Over 1,000 groups, at most 6.5% may miss; a false alarm has a chance below 1e-6."""
    groups = 1_000
    values = np.resize([12.0, 30.0, 31.0, 70.0], size)
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    found = frame.dp.group_by("g", keys=range(groups)).agg(
        dpf.variance("x", bounds=(0, 100)),
        dpf.std("x", bounds=(0, 100)),
        epsilon=1.0,
        ledger=dpf.Ledger(epsilon=2.0, delta=1e-5, accounting="basic"),
        **noise,
    )
    for name, truth in (("x_var", values.var(ddof=1)), ("x_std", values.std(ddof=1))):
        missed = int((np.abs(found[name].to_numpy() - truth) > found[f"{name}_error"].to_numpy()).sum())
        assert chance_of_missing(missed, groups, 0.065) > 1e-6 / 12


def test_refusals():
    with pytest.raises(MissingArgument, match="bounds must be given"):
        dpf.variance("x")
    with pytest.raises(InvalidArgument, match="ddof must be 0 or 1"):
        dpf.std("x", bounds=(0, 1), ddof=2)
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(MissingArgument, match="size must be given"):
        people().dp.variance("x", bounds=(0, 100), within=5, ledger=ledger)
    with pytest.raises(InvalidArgument, match="rollup must be left out"):
        people().dp.group_by("g", keys=["A", "B"]).std("x", bounds=(0, 100), rollup=True, epsilon=1, ledger=ledger)
    assert not ledger.spent.epsilon


def test_within_gives_the_error():
    plan = people().dp.preview.variance("x", bounds=(0, 100), within=20, size=5_000)
    assert 19.9 < plan.error["x_var"] <= 20
