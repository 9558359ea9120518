"""Light, dense and middle units: the way to find pairs of unit and cell changes only the speed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from dpframe.engines.sums import weights
from dpframe.engines.sums.addends import ROWS, Terms
from dpframe.privacy import PrivacyUnit
from dpframe.queries.statistics import Total

TERMS = Terms.of((Total(None), Total("x", (0, 5000)), Total("x"), Total("y", (-3, 120)), Total("z")))


def skewed(seed, rows, users, cells):
    """Return random rows in the form that `coded_rows` makes, most of them of a few units."""
    rng = np.random.default_rng(seed)
    x = pl.Series(rng.integers(0, 2**30, rows)).set(pl.Series(rng.random(rows) < 0.1), None)
    present = pl.Series(np.ones(rows, dtype=np.int64)).set(pl.Series(rng.random(rows) < 0.2), None)
    columns = {"sum0": x, "sum1": rng.integers(-(2**25), 2**30, rows), "present0": present}
    user = rng.zipf(1.3, rows) % users
    cell = np.minimum(rng.geometric(0.3, rows) - 1, cells - 1)
    return pl.DataFrame({**columns, "unit": user, "cell": cell}, schema_overrides={"cell": pl.Int64})


def by_pairs(table, unit, p, cells, merged):
    """Return the totals by definition: combine all rows of each pair of unit and cell first."""
    codes, units = weights.unit_codes(table["unit"])
    pairs = (
        table.with_columns(unit=pl.Series(codes)).group_by("unit", "cell").agg(*TERMS.aggregated()).sort("unit", "cell")
    )
    found = {total: TERMS.read(total, pairs) for total in TERMS.lines}
    owner, cell, size = (pairs[name].to_numpy().astype(np.int64) for name in ("unit", "cell", ROWS))
    reach = weights.Reach.of(unit, p, cells, merged=merged)
    weight = reach.weights(np.bincount(codes, minlength=units), owner, size)
    return weights.weighed(weights.Pairs(owner, cell, size, found), weight, cells)


@pytest.mark.slow
@pytest.mark.parametrize("dense", [1, 10**9, 0.01], ids=["as it is", "all dense", "none dense"])
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize(
    ("rows", "users", "cells"), [(0, 5, 3), (1, 5, 3), (3_000, 40, 24), (3_000, 2_000, 300), (200_000, 9_000, 7)]
)
def test_the_kind_of_a_unit_changes_no_integer(dense, p, rows, users, cells, monkeypatch):
    monkeypatch.setattr(weights, "DENSE", dense)
    for seed, (bounds, merged) in enumerate([((3, 2), False), ((1, 1), True), ((40, 5), False)]):
        table = skewed(seed, rows, users, cells)
        unit = PrivacyUnit("unit", max_rows=bounds[0], max_groups=bounds[1])
        found = weights.bounded(table, TERMS, unit, p, cells, merged=merged)
        expected = by_pairs(table, unit, p, cells, merged)
        assert {total: one.tolist() for total, one in found.items()} == {t: one.tolist() for t, one in expected.items()}


def test_dense_units_of_many_rows_are_summed_as_integers(monkeypatch):
    table = skewed(1, 2_000, 4, 3)
    unit = PrivacyUnit("unit", max_rows=3)
    expected = weights.bounded(table, TERMS, unit, 2.0, 3)
    monkeypatch.setattr(weights, "EXACT_ROWS", 10)  # sums become integers; weights stay, since R = 3 is less
    found = weights.bounded(table, TERMS, unit, 2.0, 3)
    assert {total: one.tolist() for total, one in found.items()} == {t: one.tolist() for t, one in expected.items()}


def test_a_sum_of_a_pair_that_floats_cannot_hold_is_exact():
    rows = 2**22 + 1  # with the largest value: their sum is odd and above 2**53
    values = pl.Series(np.full(rows, 2**31 - 1))
    table = pl.DataFrame(
        {"sum0": values, "sum1": values, "present0": values, "cell": 0}, schema_overrides={"cell": pl.Int64}
    )
    pairs = weights._addressed(
        table, Terms.of((Total("y", (0, 1)),)), np.zeros(rows, dtype=np.int64), np.array([True]), 1
    )
    assert pairs.sums[Total("y", (0, 1))].tolist() == [rows * (2**31 - 1) - rows * Total("y", (0, 1)).midpoint]
