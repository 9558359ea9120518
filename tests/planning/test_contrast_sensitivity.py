"""No neighbor moves the exact contrasts of marginals, divided by their scales, by more than stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

from dpframe import PrivacyUnit
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import marginals

KEYS = {"a": ["p", "q"], "b": [1, 2, 3], "c": [True]}
SHAPES = ({}, {"column": "u", "max_rows": 1}, {"column": "u", "max_rows": 3, "max_groups": 7})
UNITS = [PrivacyUnit(neighbors=neighbors, **one) for neighbors in ("add-remove", "replace") for one in SHAPES]
ROWS = list(itertools.product(["p", "q", "other", None], [1, 2, 3, 4], [True, False]))


def query(objective="equal", degree=2):
    return Query("marginals", Keys(()), (("count", marginals([*KEYS], KEYS, degree=degree, objective=objective)),))


def exact(units, asked, unit):
    rows = [(owner, *row) for owner, owned in enumerate(units) for row in owned]
    frame = pl.DataFrame(rows, schema={"u": pl.Int64, "a": pl.String, "b": pl.Int64, "c": pl.Boolean}, orient="row")
    return totals(frame, check(frame, asked, unit), unit, 2.0)[asked.totals[0]]


def share(before, after, asked, unit):
    """Return the distance of the scaled contrasts of two neighbors, divided by the stated sensitivity."""
    (total,) = asked.totals
    moved = (exact(before, asked, unit) - exact(after, asked, unit)) / total.vector.design.scales
    return math.sqrt((moved**2).sum()) / sensitivity_of(total, unit, 1).steps(2)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("objective", "degree"), [("equal", 2), ("cells", 3)])
def test_no_random_neighbor_is_farther(unit, objective, degree):
    generator = np.random.default_rng(len(str(unit)) + degree)
    asked = query(objective, degree)

    def rows(most):
        pool = [ROWS[place] for place in generator.choice(len(ROWS), generator.integers(1, 4))]
        size = 1 if unit.column is None else int(generator.integers(0, most))
        return [pool[generator.integers(len(pool))] for _ in range(size)]

    for _ in range(40):
        others = [rows(4) for _ in range(generator.integers(0, 3))]
        most = int(generator.choice([2, 6, 30]))
        mine, instead = rows(most), rows(most) if unit.neighbors == "replace" else []
        assert share([*others, mine], [*others, instead], asked, unit) <= 1.0


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.neighbors == "add-remove"], ids=str)
def test_a_unit_attains_the_bound_in_every_cell(unit):
    """A row in any cell moves the contrasts by the stated sensitivity."""
    size = 1 if unit.column is None else 11
    for row in itertools.product(*KEYS.values()):
        assert 0.999 < share([[row] * size], [[]], query(), unit) <= 1.0


def test_a_unit_of_different_rows_has_one_weight_for_all_tables():
    """Only declared rows share the weight of a unit: rows outside the tables take no weight from them."""
    unit = PrivacyUnit(column="u", max_rows=2)
    asked = query()
    mine = [("p", 1, True), ("q", 2, True), ("p", 3, True), ("p", 1, True), ("other", 1, True), ("p", 4, True)]
    found = exact([mine], asked, unit)
    assert found[0] == 4 * 2**15  # four declared rows at weight a half
    assert exact([mine[:2] + mine[4:]], asked, unit)[0] == 2 * 2**16


def test_replaced_rows_may_lie_on_opposite_sides():
    """Contrasts have both signs, so replacing a row doubles the sensitivity: a factor of sqrt(2) is too small."""
    unit = PrivacyUnit(column="u", max_rows=1, neighbors="replace")
    stated = sensitivity_of(query().totals[0], unit, 1)
    assert stated.steps(2) == pytest.approx(2 * 2**16, rel=1e-12)
    assert stated.signed
