"""No neighbor moves exact totals by more than the stated sensitivity, for all neighbors of small data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import InvalidArgument, PrivacyUnit
from dpframe.engines.totals import totals
from dpframe.planning.sensitivity import Sensitivity, sensitivity_of
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, Mean, Sum, Total

GROUPS = ("A", "B", "C")
BY_GROUP = Keys((KeyAxis(("g",), (tuple(GROUPS),)),))
EVERYTHING = Keys(())
BOUNDS = {"non-negative": (0.0, 4.0), "signed": (-3.0, 4.0), "negative": (-4.0, -1.0), "high": (2.0, 4.0)}
STATISTICS = {"rows": Count(), "values": Count("x")}
STATISTICS |= {f"{name} sum": Sum("x", bounds) for name, bounds in BOUNDS.items()}
STATISTICS |= {f"{name} centred sum": Mean("x", bounds) for name, bounds in BOUNDS.items()}
UNITS = [
    PrivacyUnit(neighbors=neighbors, **of)
    for neighbors in ("add-remove", "replace")
    for of in (
        {},
        {"column": "u", "max_rows": 1, "max_groups": 1},
        {"column": "u", "max_rows": 2, "max_groups": 2},
        {"column": "u", "max_rows": 1, "max_groups": 9},
    )
]
VALUES = st.sampled_from([None, math.nan, math.inf, -math.inf, -5.0, -4.0, -3.0, -1.0, 0.0, 0.3, 2.0, 4.0, 7.0])
ROW = st.tuples(st.sampled_from([*GROUPS, "unlisted", None]), VALUES)
UNIT_ROWS = st.lists(ROW, max_size=6)


def frame_of(units):
    """Return a frame of rows, given as one list of rows per unit."""
    rows = [(owner, *row) for owner, owned in enumerate(units) for row in owned]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row")


def exact(units, query, unit, p):
    return totals(frame_of(units), query, unit, p)


def distance(one, other, p):
    """Return the l_p norm of a difference of integer vectors: exact for p = 1, to the last place for p = 2."""
    steps = [abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)]
    return sum(steps) if p == 1 else math.sqrt(sum(step**2 for step in steps))


def check(query, unit, before, after):
    for p in (1, 2):
        one, other = exact(before, query, unit, p), exact(after, query, unit, p)
        for total in query.totals:
            stated = sensitivity_of(total, unit, query.keys.cells).steps(p)
            assert distance(one[total], other[total], p) <= stated * (1 + 1e-15)


QUERIES = [
    pytest.param(
        Query("agg", keys, (("m", statistic),)), id=f"{name} {'by group' if keys is BY_GROUP else 'in one cell'}"
    )
    for name, statistic in STATISTICS.items()
    for keys in (BY_GROUP, EVERYTHING)
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("query", QUERIES)
@settings(deadline=None, max_examples=12)
@given(others=st.lists(UNIT_ROWS, max_size=3), mine=UNIT_ROWS, instead=UNIT_ROWS)
def test_no_neighbor_is_farther_than_the_sensitivity(query, unit, others, mine, instead):
    if unit.column is None:
        mine, instead = mine[:1], instead[:1]
        if unit.neighbors == "replace" and not (mine and instead):
            return
    check(query, unit, [*others, mine], [*others, instead if unit.neighbors == "replace" else []])


def one_row_neighbors(unit):
    """Return all neighbors of one row: all pairs of rows (group and value) under replace, else each row and none."""
    values = [None, -math.inf, -4.0, -3.0, -1.0, 0.0, 0.3, 2.0, 4.0, math.inf]
    rows = [[row] for row in itertools.product((*GROUPS[:2], "unlisted"), values)]
    return itertools.product(rows, rows) if unit.neighbors == "replace" else ((row, []) for row in rows)


def greatest(query, total, unit, p):
    """Return the largest distance between neighbors of one row; the totals of each row are computed once."""
    vectors = {}

    def vector(rows):
        key = tuple(rows)
        if key not in vectors:
            vectors[key] = exact([rows], query, unit, p)[total]
        return vectors[key]

    return max(distance(vector(before), vector(after), p) for before, after in one_row_neighbors(unit))


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("query", QUERIES)
def test_one_row_attains_the_bound(query, neighbors):
    """The bound equals the largest distance, except that replacing a row leaves a row count in one cell as it is."""
    unit = PrivacyUnit(neighbors=neighbors)
    for total in query.totals:
        for p in (1, 2):
            stated = sensitivity_of(total, unit, query.keys.cells).steps(p)
            found = greatest(query, total, unit, p)
            assert found <= stated * (1 + 1e-15)
            loose = neighbors == "replace" and not total.columns and query.keys is EVERYTHING
            assert loose or found >= stated * (1 - 1e-15)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_unit_column_nearly_attains_the_bound(neighbors, p):
    """A unit at full weight: 2 rows in each of 2 groups, against 2 rows in each of 2 other groups, or no rows."""
    keys = Keys((KeyAxis(("g",), (("A", "B", "C", "D"),)),))
    query = Query("agg", keys, (("m", Sum("x", (0.0, 4.0))), ("n", Count())))
    unit = PrivacyUnit(column="u", max_rows=2, max_groups=2, neighbors=neighbors)
    mine, instead = [[(group, 9.0) for group in pair for _ in range(2)] for pair in ("AB", "CD")]
    one, other = exact([mine], query, unit, p), exact([instead if neighbors == "replace" else []], query, unit, p)
    for total in query.totals:
        stated = sensitivity_of(total, unit, 4).steps(p)
        assert distance(one[total], other[total], p) >= stated * (1 - 1e-6)


def test_two_units_of_opposite_signs_nearly_attain_the_bound():
    """Both units have values of both signs, in the proportions that make Cauchy's inequality an equality."""
    keys = Keys((KeyAxis(("g",), (("A", "B"),)),))
    query = Query("agg", keys, (("m", Sum("x", (-3.0, 4.0))),))
    unit = PrivacyUnit(column="u", max_rows=200, max_groups=1, neighbors="replace")
    mine = [("A", 4.0)] * 160 + [("B", -3.0)] * 120  # l_2 norm 200
    instead = [("A", -3.0)] * 120 + [("B", 4.0)] * 160
    check(query, unit, [mine], [instead])
    (total,) = query.totals
    one, other = (exact([rows], query, unit, 2)[total] for rows in (mine, instead))
    stated = sensitivity_of(total, unit, 2).steps(2)
    assert distance(one, other, 2) >= stated * (1 - 1e-6)
    assert stated == pytest.approx(200 * 2**0.5 * 5 / 4 * 2**30, rel=1e-6)  # twice the norm of one unit is 13% more


@pytest.mark.parametrize("heavy", [3, 5, 100, 4000])
@pytest.mark.parametrize("p", [1, 2])
def test_a_unit_of_many_rows_stays_within_the_bound(heavy, p):
    generator = np.random.default_rng(heavy)
    groups = generator.choice([*GROUPS, "unlisted"], heavy).tolist()
    mine = [(group, 9.0) for group in groups]
    query = Query("agg", BY_GROUP, (("m", Sum("x", (-1.0, 4.0))), ("n", Count()), ("k", Mean("x", (0.0, 3.0)))))
    unit = PrivacyUnit(column="u", max_rows=2, max_groups=2)
    check(query, unit, [mine], [[]])
    found = exact([mine], query, unit, p)[Total(None)]
    if heavy >= 100:  # the unit uses all of its weight
        assert distance(found, np.zeros(3), p) == pytest.approx(2 * 2 ** (1 / p) * 2**20, rel=1e-5)


# The formula itself


def built(lower, upper, **facts):
    plain = {"cells": 5, "rows": 1, "groups": 1, "weighted": False, "replace": False, "grid": 1.0}
    return Sensitivity(reach=(lower, upper), **(plain | facts))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**50), st.integers(1, 2**50), st.integers(1, 2**20), st.integers(1, 2**20), st.booleans())
def test_norms_are_rounded_up(down, upper, rows, groups, replace):
    facts = built(-down, upper, rows=rows, groups=groups, weighted=True, replace=replace)
    largest, other = max(down, upper), min(down, upper)
    first = rows * groups * largest * (2 if replace else 1)
    squared = rows**2 * groups * (2 * (largest**2 + other**2) if replace else largest**2)
    assert Fraction(facts.steps(1)) >= first
    assert facts.steps(1) == pytest.approx(first, rel=1e-15)
    assert Fraction(facts.steps(2)) ** 2 >= squared
    assert facts.steps(2) == pytest.approx(math.sqrt(squared), rel=1e-15)
    assert facts.steps(math.inf) == pytest.approx(rows * (largest + other * replace), rel=1e-15)


def test_norms_of_any_shape_where_each_row_is_a_unit():
    facts = built(0, 3, replace=True)
    assert facts.steps(3) >= 3 * 2 ** (1 / 3)
    assert facts.steps(3) == pytest.approx(3 * 2 ** (1 / 3), rel=1e-11)
    assert built(0, 3, grid=0.25).norm(1.5) == 0.75


def test_weights_bound_no_other_shape():
    with pytest.raises(InvalidArgument, match="p = 1 or 2"):
        built(0, 3, weighted=True).steps(3)


def test_groups_beyond_the_cells_cost_nothing():
    unit = PrivacyUnit(column="u", max_rows=3, max_groups=100)
    assert sensitivity_of(Total(None), unit, 4).norm(1) == 12.0
    assert sensitivity_of(Total(None), unit, 4).norm(2) == 6.0
