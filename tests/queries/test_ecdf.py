"""Distribution functions: P(X <= right edge) at every edge, with values on edges, below all and above all."""

from __future__ import annotations

import contextlib
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import ENGINES, spark_frames
from tests.covering import chance_of_missing

EXACT = 1e7
INF, NAN = float("inf"), float("nan")
NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]
DAYS = [date(2025, 1, 6), date(2025, 1, 13), date(2025, 1, 12), date(1970, 1, 1), date(2200, 1, 1), None]
COLUMNS = {
    "floats": ([-INF, -5.0, -0.0, 0.0, 0.1, 1.0, 1.5, 2.0, 2.0000000000000004, 7.0, INF, NAN, None], [0.0, 1.0, 2.0]),
    "five": ([5e-324, 0.0, -5e-324, 1e308, -1e308], [-1.0, 0.0, 5e-324]),
    "whole": ([-3, 0, 1, 1, 2, 9, None], [0, 1, 2]),
    "days": (DAYS, [date(2025, 1, 6), date(2025, 1, 12), date(2025, 1, 20)]),
    "moments": (
        [datetime(2025, 1, 1, 0, 0, 0, 1), datetime(2025, 1, 1), datetime(2024, 1, 1), datetime(2026, 1, 1), None],
        [datetime(2024, 6, 1), datetime(2025, 1, 1), datetime(2025, 6, 1)],
    ),
}


def truth(values, edges):
    """Return P(X <= right edge) of the values that are not missing, in plain Python."""
    there = [value for value in values if value is not None and value == value]
    return [sum(value <= edge for value in there) / len(there) for edge in edges[1:]]


def answers(make, values, edges):
    """Return the shares, practically without noise, of a column in a table of some engine."""
    ledger = dpf.Ledger(epsilon=1e12)
    found = dpf.of(make(pl.DataFrame({"x": values}))).ecdf("x", bins=edges, epsilon=EXACT, ledger=ledger)
    return [float(value) for value in found["ecdf"].to_list()]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", ["polars", *ENGINES])
def test_every_engine_gives_the_definition(name, column):
    with contextlib.ExitStack() as stack:
        if name == "spark":
            pytest.skip("asked in a test of its own")
        make = (lambda frame: frame) if name == "polars" else stack.enter_context(_maker(name))
        values, edges = COLUMNS[column]
        assert answers(make, values, edges) == pytest.approx(truth(values, edges), abs=1e-5)


def _maker(name):
    if name in ("duckdb", "dask", "pandas"):
        pytest.importorskip(name)
    return ENGINES[name]()


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_gives_the_definition(spark):
    with spark_frames(spark) as make:
        for column in ("floats", "whole", "days"):
            values, edges = COLUMNS[column]
            assert answers(make, values, edges) == pytest.approx(truth(values, edges), abs=1e-5)


def test_rows_and_columns_are_those_of_the_bins():
    frame = pl.DataFrame({"g": ["A", "B"] * 50, "x": np.arange(100.0)})
    asked = frame.dp.group_by("g", keys=["A", "B"])
    plan = asked.preview.ecdf("x", bins=[0, 10, 60], epsilon=1)
    assert plan.parts[0].total.vector.design.size == 3
    below, above = (
        "values of x below 0 count in every row of the result",
        "those above 60 count only in the denominator",
    )
    assert plan.notes == (f"{below}; {above}",)
    found = asked.ecdf("x", bins=[0, 10, 60], epsilon=EXACT, ledger=dpf.Ledger(epsilon=1e12))
    assert found.columns == ["g", "x_left", "x_right", "ecdf", "ecdf_noisy", "ecdf_error"]
    assert found["x_right"].to_list() == [10, 60, 10, 60]
    assert found["ecdf"].to_list() == pytest.approx([0.12, 0.62, 0.1, 0.6], abs=1e-4)
    cells = found.dp.provenance["cells"][1]
    assert (cells["size"], cells["closed"], found.dp.to_numpy("ecdf").shape) == (2, "right", (2, 2))
    assert found.dp.table("csv")


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("size", [7, 100])
def test_intervals_cover(size, noise):
    """Some values lie beyond the last edge. Over 1,000 groups; a false alarm has a chance below 1e-6."""
    groups, edges = 1_000, [0, 5, 10, 30]
    values = np.resize([-2.0, 5.0, 5.0, 8.0, 30.0, 44.0], size)
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    found = frame.dp.group_by("g", keys=range(groups)).ecdf("x", bins=edges, epsilon=1.0, ledger=ledger, **noise)
    exact = np.tile(truth(values.tolist(), edges), groups)
    missed = (np.abs(found["ecdf"].to_numpy() - exact) > found["ecdf_error"].to_numpy()).reshape(-1, 3).sum(axis=0)
    assert chance_of_missing(int(missed.max()), groups, 0.05) > 1e-6 / 12
