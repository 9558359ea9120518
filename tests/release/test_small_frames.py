"""Empty, one-row and all-null frames work on every engine, for every verb, with and without a unit column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

DTYPES = {"age": pl.Int64, "cost": pl.Float64, "ward": pl.String, "patient": pl.Int64, "day": pl.Datetime("us")}
PANDAS_DTYPES = {"age": "Int64", "cost": "float64", "ward": "string", "patient": "Int64", "day": "datetime64[ns]"}
ONE = {"age": 31, "cost": 10.5, "ward": "A", "patient": 1, "day": np.datetime64("2024-01-01", "us").item()}
FRAMES: dict[str, dict[str, list[Any]]] = {
    "empty": {name: [] for name in ONE},
    "one-row": {name: [value] for name, value in ONE.items()},
    "all-null": {name: [None, None, None] for name in ONE},
}
UNITS = {
    "rows": None,
    "patients": dpf.PrivacyUnit("patient", max_rows=2, max_groups=2),
    "patients-and-nulls": dpf.PrivacyUnit("patient", nulls="one-unit", neighbors="replace", max_rows=1),
}
WARDS = ["A", "B", None]
AGES = {"bins": [0, 50, 100]}
DAYS = {"bins": [date(2024, 1, 1), date(2024, 1, 2)]}
GRID = {"bins": [2, 3], "range": [(0, 100), (0, 50)]}


def released(name: str, denoised: bool = False) -> list[str]:
    """Return the columns that one statistic adds."""
    return [name, f"{name}_noisy", f"{name}_error"] if denoised else [name, f"{name}_error"]


COUNT, BINNED = released("count"), released("count", denoised=True)

Ask = Callable[[Any, dict[str, Any]], Any]
CALLS: dict[str, tuple[Ask, list[str], list[str], int]] = {  # call, key columns, number columns, number of rows
    "count": (lambda dp, price: dp.count(**price), [], COUNT, 1),
    "count-column": (lambda dp, price: dp.count("age", **price), [], COUNT, 1),
    "sum": (lambda dp, price: dp.sum("cost", bounds=(0, 100), **price), [], released("cost_sum"), 1),
    "mean": (lambda dp, price: dp.mean("age", bounds=(0, 120), **price), [], released("age_mean"), 1),
    "histogram": (lambda dp, price: dp.histogram("age", **AGES, **price), ["age_left", "age_right"], BINNED, 2),
    "histogram-clipped": (
        lambda dp, price: dp.histogram("cost", **AGES, outside="clip", **price),
        ["cost_left", "cost_right"],
        BINNED,
        2,
    ),
    "histogram-days": (lambda dp, price: dp.histogram("day", **DAYS, **price), ["day_left", "day_right"], BINNED, 1),
    "histogram-categories": (lambda dp, price: dp.histogram("ward", categories=WARDS, **price), ["ward"], BINNED, 3),
    "histogram-grid": (
        lambda dp, price: dp.histogram(["age", "cost"], **GRID, **price),
        ["age_left", "age_right", "cost_left", "cost_right"],
        BINNED,
        6,
    ),
    "group-by-agg": (
        lambda dp, price: dp.group_by("ward", keys=WARDS).agg(
            dpf.sum("cost", bounds=(0, 100)), dpf.mean("age", bounds=(0, 120)), n=dpf.count(), **price
        ),
        ["ward"],
        [*released("cost_sum", denoised=True), *released("age_mean"), *released("n", denoised=True)],
        3,
    ),
    "group-by-histogram": (
        lambda dp, price: dp.group_by("ward", keys=WARDS).histogram("age", **AGES, **price),
        ["ward", "age_left", "age_right"],
        BINNED,
        6,
    ),
}
NEGLIGIBLE = 0.05  # 200 scales of the widest noise at epsilon 1e6
PRICES = {"laplace": {"epsilon": 1.0}, "gaussian": {"epsilon": 1.0, "delta": 1e-6}}


def small(engine: Any, name: str) -> Any:
    """Return a small frame with declared dtypes, since its values do not determine them."""
    if engine.is_pandas:
        return engine(FRAMES[name]).astype(PANDAS_DTYPES)
    return engine(FRAMES[name], **DTYPES)


@pytest.mark.slow
@pytest.mark.parametrize("noise", PRICES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FRAMES)
def test_small_frames_work(engine: Any, name: str, call: str, unit: str, noise: str) -> None:
    ask, keys, numbers, rows = CALLS[call]
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, unit=UNITS[unit], accounting="basic")
    result = ask(small(engine, name).dp, PRICES[noise] | {"ledger": ledger})
    assert list(result.columns) == [*keys, *numbers]
    assert len(result) == rows
    for column in numbers:
        assert str(result[column].dtype) in ("float64", "Float64")
        assert np.isfinite(result[column].to_numpy()).all()
    assert ledger.to_frame().height == 1


@pytest.mark.parametrize("unit", ["rows", "patients"])
@pytest.mark.parametrize("name", FRAMES)
def test_small_frames_are_counted(engine: Any, name: str, unit: str) -> None:
    """With negligible noise: missing values are not counted, and a sum over no rows is 0."""
    frame = small(engine, name)
    rows, present = {"empty": (0, 0), "one-row": (1, 1), "all-null": (3, 0)}[name]
    if unit == "patients":
        rows = present  # a row without a patient is left out
    price = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e8, unit=UNITS[unit])}
    assert frame.dp.count(**price)["count"].to_list() == pytest.approx([rows], abs=NEGLIGIBLE)
    assert frame.dp.count("age", **price)["count"].to_list() == pytest.approx([present], abs=NEGLIGIBLE)
    assert frame.dp.sum("cost", bounds=(0, 100), **price)["cost_sum"].to_list() == pytest.approx(
        [10.5 * present], abs=NEGLIGIBLE
    )
    for column, value, upper in (("age", 31.0, 120), ("cost", 10.5, 100)):
        mean = frame.dp.mean(column, bounds=(0, upper), **price)[f"{column}_mean"].to_list()[0]
        # The midpoint if there is nothing to average, which also happens if a noisy count of 1 is slightly below 1.
        expected = {value, upper / 2} if present else {upper / 2}
        assert any(mean == pytest.approx(one, abs=NEGLIGIBLE) for one in expected)
