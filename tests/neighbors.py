"""Random and designed neighboring frames, and the distance of their exact totals over the stated sensitivity."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from assurance.engines import ENGINES
from dpframe import PrivacyUnit
from dpframe.engines.totals import totals
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.bins import BinAxis
from dpframe.queries.keys import KeyAxis, Keys, bin_axes
from dpframe.queries.query import Query
from tests.engines.test_random_tables import NEEDS

GROUPS = ("A", "B", "C")
BY_GROUP = Keys((KeyAxis(("g",), (tuple(GROUPS),)),))
EVERYTHING = Keys(())
VALUES = (None, math.nan, math.inf, -math.inf, -4.0, 0.0, 0.3, 1.0, 2.0, 3.0, 4.0, 9.0)
SHAPES = (
    {},
    {"column": "u", "max_rows": 1, "max_groups": 1},
    {"column": "u", "max_rows": 2, "max_groups": 2},
    {"column": "u", "max_rows": 1, "max_groups": 9},
)
UNITS = [PrivacyUnit(neighbors=neighbors, **one) for neighbors in ("add-remove", "replace") for one in SHAPES]  # type: ignore[arg-type]

EACH_ENGINE = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "spark"])
ROWS_AND_UNITS = pytest.mark.parametrize(
    "unit", [PrivacyUnit(), PrivacyUnit("u", max_rows=2, max_groups=2)], ids=["rows", "units"]
)


@contextmanager
def tables_on(engine):
    """Yield a function that makes tables of an engine from Polars frames; skip if the engine is not installed."""
    if engine in NEEDS:
        pytest.importorskip(NEEDS[engine])
    with ENGINES[engine]() as given:
        yield given


def by_group_and(column, edges):
    """Return groups that are each divided into bins of a column, as for a distribution function."""
    axes = bin_axes(column, edges, None, None, "clip")
    assert isinstance(axes[0], BinAxis)
    return Keys((*BY_GROUP.axes, *axes))


def frame_of(units):
    """Return a frame of lists of (group, value) or (group, value, another), one list per unit."""
    rows = [(owner, *row) for owner, owned in enumerate(units) for row in owned]
    names = ("x", "z")[: max((len(row) - 2 for row in rows), default=2)]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "g": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")


def given_as(frame, library):
    """Return a Polars frame as it is, lazily, or as pandas if that is installed."""
    if library == "pandas":
        pytest.importorskip("pandas")
        return frame.to_pandas()
    return frame.lazy() if library == "lazy" else frame


def ratios(query, unit, before, after, p, decided=lambda total, values: values):
    """Return for each Total the distance of its exact values, after `decided`, over its stated sensitivity."""
    both = (totals(frame_of(units), query, unit, p) for units in (before, after))
    one, other = ({total: decided(total, values) for total, values in exact.items()} for exact in both)
    found = {}
    for total in query.totals:
        steps = [abs(int(a) - int(b)) for a, b in zip(one[total], other[total], strict=True)]
        far = sum(steps) if p == 1 else math.sqrt(sum(step**2 for step in steps))
        found[total] = far / sensitivity_of(total, unit, query.keys.cells).steps(p)
    return found


def largest_by_chance(query, unit, p, tries=40, seed=0, values_of=1, **decided):
    """Return the largest such ratio of random neighbors: rows of one value or two, units with many rows of one kind."""
    generator = np.random.default_rng([seed, p, len(str(unit)), query.keys.cells])

    def rows(most):
        picked = generator.choice([*GROUPS, "unlisted"], generator.integers(1, 5)).tolist()
        values = [
            tuple(VALUES[place] for place in generator.choice(len(VALUES), values_of))
            for _ in range(generator.integers(1, 3))
        ]
        size = 1 if unit.column is None else int(generator.integers(0, most))
        return [(generator.choice(picked).item(), *values[generator.integers(len(values))]) for _ in range(size)]

    largest = 0.0
    for _ in range(tries):
        others = [rows(4) for _ in range(generator.integers(0, 3))]
        most = int(generator.choice([3, 6, 40]))
        mine, instead = rows(most), rows(most) if unit.neighbors == "replace" else []
        found = ratios(query, unit, [*others, mine], [*others, instead], p, **decided)
        largest = max(largest, *found.values())
    return largest


def query_of(statistic, keys, pure):
    """Return a query for one statistic, in the form for pure or Gaussian noise."""
    return Query("agg", keys, (("m", statistic),)).under(pure)
