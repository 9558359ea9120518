"""The kinds of Totals: their arguments, and the integers that rows add, by exact rationals and by the engines."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.totals import totals
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.query import Query
from dpframe.queries.row_functions import LARGEST_REACH, RowFunction, centred_squares
from dpframe.queries.statistics import Statistic, Total
from dpframe.queries.total import (
    WIDER,
    DistinctTotal,
    FunctionTotal,
    OfRows,
    RowsTotal,
    SumTotal,
    UnitsTotal,
    VectorTotal,
    over,
)
from dpframe.queries.vectors import InnerCounts, bernstein, centred_products, pair_cells, two_sided
from dpframe.testing.statistic_rules import _row_by_row

ROW = centred_squares("x", (0.0, 1.0))
WAYS = two_sided("x", (0.0, 1.0))
MADE = [
    (Total(), RowsTotal()),
    (Total("x"), RowsTotal("x")),
    (Total("x", by=()), RowsTotal("x", by=())),
    (Total("x", (0, 1)), SumTotal("x", (0, 1))),
    (Total("x", (0, 1), centred=True, by=("w",)), SumTotal("x", (0, 1), centred=True, by=("w",))),
    (Total(row=ROW), FunctionTotal(ROW)),
    (Total(vector=WAYS), VectorTotal(WAYS)),
    (Total(units=True), UnitsTotal(once=True)),
    (Total(per_unit=True), UnitsTotal()),
    (Total("x", (0, 1), per_unit=True), UnitsTotal("x", (0, 1))),
    (Total("x", distinct=3, per_unit=True), DistinctTotal("x", 3, per_unit=True)),
]
KINDS = [kind for kind, _ in MADE]
BOUNDS = [(0.0, 1.0), (-3.0, 120.0), (0.1, 0.7), (-1e-9, 5e4), (-(2.0**53), 2.0**53), (2.0**-899, 2.0**-890), (-7, -2)]


@pytest.mark.parametrize(("made", "kind"), MADE, ids=[repr(kind)[:60] for kind in KINDS])
def test_each_kind_is_made_of_its_arguments_and_is_a_value(made, kind):
    assert made == kind
    assert hash(made) == hash(kind)
    assert isinstance(made, Total)
    assert type(made) is not Total
    assert [other for other in KINDS if other == made] == [made]
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), over(made, made.by)):
        assert (again, type(again), hash(again)) == (made, type(made), hash(made))
    assert isinstance(made.describe(), str)
    with pytest.raises(AttributeError):
        made.by = ("w",)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"column": "x", "row": ROW}, "column must be left out of a Total with row"),
        ({"column": "x", "vector": WAYS}, "column must be left out of a Total with vector"),
        ({"row": ROW, "per_unit": True}, "per_unit must be left out of a Total with row"),
        ({"vector": WAYS, "by": ("w",)}, "by must be left out of a Total with vector"),
        ({"column": "x", "centred": True}, "centred must be left out of a Total with column"),
        ({"column": "x", "bounds": (0, 1), "distinct": 1}, "bounds must be left out of a Total with distinct"),
        ({"bounds": (0, 1)}, "column must be given with bounds"),
        ({"distinct": 1}, "column must be given with distinct"),
    ],
)
def test_arguments_of_several_kinds_are_refused(arguments, named):
    with pytest.raises(dpf.InvalidArgument, match=named):
        Total(**arguments)


def hard_values(lower, upper):
    """Return values at, next to and beyond the bounds, halfway between steps, and missing."""
    grid = SumTotal("x", (lower, upper)).norm(False).grid
    ends = [end for bound in (lower, upper) for end in (bound, *(math.nextafter(bound, to) for to in (-1e308, 1e308)))]
    ties = [lower + (step + 0.5) * grid for step in (-1, 0, 1, 2**20)]
    beyond = [0.0, -0.0, 1e308, -1e308, math.inf, -math.inf, 5e-324, lower - 1, upper + 1, math.nan]
    inside = np.random.default_rng(7).uniform(lower, upper, 500).tolist()
    return [*ends, *ties, *beyond, *inside]


def exact_step(value, total):
    """Clip, divide by the grid and round half up, in exact rationals."""
    if math.isinf(value):
        return grid_steps(total.bounds)[value > 0]
    lower, upper = grid_steps(total.bounds)
    scaled = min(max(Fraction(value) / Fraction(total.norm(False).grid), lower), upper)
    return math.floor(scaled + Fraction(1, 2))


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("centred", [False, True])
def test_integers_are_those_of_exact_rationals(bounds, centred):
    total, values = SumTotal("x", bounds, centred), hard_values(*bounds)
    expected = [0 if math.isnan(value) else exact_step(value, total) - total.midpoint for value in values]
    found = total.integers(len(values), {"x": np.array(values)})
    assert found.shape == (len(values), 1)
    assert found.ravel().tolist() == expected
    least, greatest = total.norm(False).reach
    assert least <= min(expected) <= max(expected) <= greatest


def test_integers_of_counts_and_of_whole_units():
    there = np.array([True, False, True])
    assert RowsTotal().integers(3, {}).tolist() == [[1], [1], [1]]
    for total in (RowsTotal("x"), UnitsTotal("x"), DistinctTotal("x", 2)):
        assert total.integers(3, {"x": there}).tolist() == [[1], [0], [1]]
    unit = UnitsTotal("x", (0.0, 8.0))
    values = np.array([1.0, 10.0, -3.0, 1e300, -math.inf, math.nan])  # kept beyond the bounds: sums may be within
    most = WIDER * 2**30
    assert unit.integers(6, {"x": values}).ravel().tolist() == [2**27, 10 * 2**27, -3 * 2**27, most, -most, 0]


ENTRIES = [*bernstein("x", (0.1, 0.7)).entries, *two_sided("x", (-3.0, 8.0)).entries, ROW]
ENTRIES += [
    *two_sided("x", (-1.0, 5e4), everyone=True).entries,
    *pair_cells((("x", (0, 1)), ("y", (-2, 5))), 0, 1, 1).entries,
]
ENTRIES += [*centred_products((("x", (0.0, 1.0)), ("y", (-2.0, 5.0))))]


def far_beyond(steps):
    return steps * 2**31


ENTRIES += [RowFunction((("x", (-1.0, 1.0)),), far_beyond, (-LARGEST_REACH, 5), 1.0, "far")]


@pytest.mark.parametrize("row", ENTRIES, ids=range(len(ENTRIES)))
def test_integers_of_functions_are_theirs_within_the_reach(row):
    x, y = (np.array(hard_values(*bounds)) for bounds in ((0.1, 0.7), (-2.0, 5.0)))
    columns = {"x": x, "y": np.roll(y, 3)}
    found = FunctionTotal(row).integers(x.size, columns).ravel()
    with np.errstate(over="ignore"):
        assert found.tolist() == _row_by_row(row, columns).tolist()
    least, greatest = FunctionTotal(row).norm(False).reach
    assert least <= found.min() <= found.max() <= greatest


class Measures(Statistic):
    verb = "measured"

    def __init__(self, *totals):
        self.totals = lambda: totals


@pytest.mark.parametrize("rows", [1, 700, 70_000])
def test_engines_add_up_these_integers(rows):
    """Many totals at once share columns; each is also computed alone."""
    pool, random = pl.Series([*hard_values(-3.0, 120.0), None], dtype=pl.Float64), np.random.default_rng(rows)
    frame = pl.DataFrame({name: pool.gather(random.integers(0, len(pool), rows)) for name in "xy"})
    numbers = {name: frame[name].to_numpy() for name in "xy"}
    there = {name: ~np.isnan(values) for name, values in numbers.items()}
    asked = [SumTotal("x", bounds, centred) for bounds in BOUNDS[:4] for centred in (False, True)]
    asked += [RowsTotal(), RowsTotal("x"), RowsTotal("y"), *map(FunctionTotal, ENTRIES)]
    asked += [
        VectorTotal(vector) for vector in (WAYS, bernstein("y", (-2.0, 5.0)), two_sided("y", (0, 1), everyone=True))
    ]
    asked += [UnitsTotal("x"), UnitsTotal()]
    for together in (asked, *([one] for one in asked[:: 5 if rows > 1_000 else 1])):
        found = totals(frame, Query("agg", Keys(()), (("x", Measures(*together)),)), PrivacyUnit(), 2.0)
        for total in together:
            expected = total.integers(rows, numbers if total.values else there).sum(axis=0)
            assert found[total].tolist() == expected.tolist(), total


def test_bins_are_places_and_rows_add_one_there():
    inner = InnerCounts("x", (0.0, 1.0, 2.5), (-1.0, 3.0), design=None)
    values = np.array([-5.0, 0.0, math.nextafter(0, -1), 1.0, 2.4, 2.5, math.inf, math.nan])
    assert inner.places(values).tolist() == [0, 1, 0, 2, 2, 3, 3, -1]
    assert inner.integers(8, {"x": values}).ravel().tolist() == [1] * 7 + [0]
    assert issubclass(SumTotal, OfRows)


@pytest.mark.parametrize("bounds", [(-1.0, -100.0), (100.0, 1.0), (0.0, math.inf), (math.nan, 1.0), (3.0, 3.0)])
@pytest.mark.parametrize("per_unit", [False, True])
def test_199_bounds_of_a_total_that_are_no_bounds_are_refused(bounds, per_unit):
    """The sensitivity takes them in order: with (-1, -100), a unit moved a total by 100 but counted as 1."""
    with pytest.raises(dpf.InvalidArgument, match="bounds must be"):
        Total("x", bounds, per_unit=per_unit)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.float32, int])
def test_221_a_step_is_as_long_for_bounds_of_numpy(kind):
    least = -128 if kind in (np.float32, int) else np.iinfo(kind).min
    assert step_length((kind(least), kind(5))) == step_length((float(least), 5.0))
