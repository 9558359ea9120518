"""No neighbor moves the numbers of a stream by more than stated, also with late rows and ties among them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.first_rows import stream_totals
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query
from dpframe.queries.total import RowsTotal
from dpframe.streams.stream_plan import StreamReach, exact_sums

PERIODS, GROUPS = 4, ("A", "B")
KEYS = Keys((KeyAxis(("t",), (tuple(range(1, PERIODS + 1)),)), KeyAxis(("g",), (tuple(GROUPS),))))
STATISTICS = {
    "rows": dpf.count(),
    "values": dpf.count("x"),
    "sum": dpf.sum("x", bounds=(0, 4)),
    "signed sum": dpf.sum("x", bounds=(-3, 4)),
}
VALUES = (None, math.nan, math.inf, -math.inf, -5.0, -3.0, 0.0, 0.3, 4.0)
MOST_ROWS = 6
SCHEMA = {"u": pl.Int64, "t": pl.Int64, "g": pl.String, "x": pl.Float64}
UNITS = {
    f"{neighbors}, {'rows' if most is None else f'{most} rows'}": dpf.PrivacyUnit(
        neighbors=neighbors, **({} if most is None else {"column": "u", "max_rows": most})
    )
    for neighbors in ("add-remove", "replace")
    for most in (None, 1, 3)
}


def question(name):
    return Query("stream", KEYS, (("total", STATISTICS[name]),))


def measured_of(owned, query, unit, kept, generator):
    """Return all measured numbers; a row (period, group, value, arrival) is in the table from its arrival on.

    Rows are shuffled for each release and for each neighbor, because their order must not matter.
    """
    numbers = []
    for place, now in enumerate(kept, start=1):
        rows = [(owner, *row[:3]) for owner, rows in enumerate(owned) for row in rows if row[3] <= now]
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")[generator.permutation(len(rows))]
        exact = stream_totals(frame, query, unit, now)
        (total,) = query.of_cells
        numbers.append(exact_sums(exact, kept[:place], whole=isinstance(total, RowsTotal)))
    return np.concatenate(numbers).astype(object)


def random_rows(generator, most):
    """Return random rows of one unit: some in no group or period, half arriving in their period, half at any time."""
    rows = []
    for _ in range(int(generator.integers(0, most + 1))):
        period = int(generator.integers(1, PERIODS + 2))
        group = str(generator.choice([*GROUPS, "unlisted"]))
        arrival = int(generator.integers(1, PERIODS + 1)) if generator.random() < 0.5 else period
        rows.append((period, group, VALUES[generator.integers(len(VALUES))], arrival))
    return rows


def ratio(before, after, query, unit, kept, seed=0):
    """Return the distance of two neighbors divided by the stated sensitivity, in both norms."""
    (total,) = query.of_cells
    reach = StreamReach.of(total, unit, periods=PERIODS, groups=len(GROUPS))
    generator = np.random.default_rng(seed)
    moved = measured_of(before, query, unit, kept, generator) - measured_of(after, query, unit, kept, generator)
    steps = [abs(int(step)) for step in moved]
    return sum(steps) / reach.steps(1), math.sqrt(sum(step**2 for step in steps)) / reach.steps(2)


def largest_by_chance(name, unit, tries, seed):
    generator = np.random.default_rng([seed, len(name), len(str(unit))])
    query, largest = question(name), 0.0
    for _ in range(tries):
        most = 1 if unit.column is None else MOST_ROWS
        others = [random_rows(generator, most) for _ in range(2)]
        mine, other = (random_rows(generator, most) for _ in range(2))
        if unit.neighbors == "add-remove":
            before, after = [*others, mine], [*others, []]
        else:
            before, after = [*others, mine], [*others, other]
        lost = generator.random(PERIODS) < 0.15
        kept = tuple(number for number in range(1, PERIODS + 1) if not lost[number - 1]) or (PERIODS,)
        largest = max(largest, *ratio(before, after, query, unit, kept, int(generator.integers(2**31))))
    return largest


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_no_neighbor_moves_a_stream_by_more_than_is_stated(unit):
    for name in ("rows", "signed sum"):
        assert largest_by_chance(name, unit, tries=12, seed=1) <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_many_neighbors_move_it_by_no_more(name):
    assert max(largest_by_chance(name, unit, tries=35, seed=2) for unit in UNITS.values()) <= 1.0 + 1e-12


@pytest.mark.parametrize("name", ["rows", "sum"])
@pytest.mark.parametrize("most", [1, 3])
def test_the_stated_sensitivity_is_reached(name, most):
    """All rows of the unit are in the first period and in one group."""
    unit = dpf.PrivacyUnit("u", max_rows=most)
    mine = [(1, "A", 4.0, 1)] * (most + 2)
    found = ratio([mine], [[]], question(name), unit, (1, 2, 3, 4))
    assert min(found) == pytest.approx(1.0, abs=1e-6)
    assert max(found) <= 1.0


def test_rounding_moves_the_numbers_of_both_groups_of_a_replaced_row():
    """With these other rows, each number that the row moves is rounded up in the group that it joins."""
    steps, periods = 2**29 + 1, 32
    (total,) = dpf.sum("x", bounds=(0, steps * 2.0**-27)).totals()
    reach = StreamReach.of(total, dpf.PrivacyUnit(neighbors="replace"), periods=periods, groups=2)
    numbers = []
    for group in (0, 1):
        totals = np.zeros((periods, 2), dtype=np.int64)
        totals[0] = -steps % 4096  # of other rows
        totals[0, group] += steps
        each = [exact_sums(totals[:now], tuple(range(1, now + 1)), whole=False) for now in range(1, periods + 1)]
        numbers.append(np.concatenate(each))
    moved = np.abs(numbers[0] - numbers[1])
    assert reach.steps(1) - periods < moved.sum() <= reach.steps(1)
    assert math.sqrt((moved.astype(object) ** 2).sum()) <= reach.steps(2)


def test_a_row_that_comes_late_pushes_out_a_later_one():
    """The unit has one row in period 3; a row of period 1 arrives later and takes its place from then on."""
    unit = dpf.PrivacyUnit("u", max_rows=1)
    rows = [[(3, "B", 1.0, 3), (1, "A", 1.0, 4)]]
    found = measured_of(rows, question("rows"), unit, (1, 2, 3, 4), np.random.default_rng(0)).reshape(4, 2)
    assert found.tolist() == [[0, 0], [0, 0], [0, 4096], [1280, 0]]


def test_it_does_not_depend_on_groups_that_are_allowed():
    total = dpf.count().totals()[0]
    reaches = [
        StreamReach.of(total, dpf.PrivacyUnit("u", max_rows=2, max_groups=groups), periods=52, groups=3)
        for groups in (1, 9)
    ]
    assert reaches[0].steps(1) == reaches[1].steps(1)
    assert reaches[0].steps(2) == reaches[1].steps(2)
