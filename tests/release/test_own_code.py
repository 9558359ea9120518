"""Code of others that meets private numbers: mechanisms of the caller's, and the classes of objects in a column."""

from __future__ import annotations

import decimal
import traceback
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise

FRAME = pl.DataFrame({"x": [1.0] * 271, "ward": ["A"] * 271})


class Odd(dpf.Mechanism):
    """Geometric noise, whose numbers `answer` makes of exact totals where there are any."""

    name, norm, sensitivity, grid, pure_epsilon = "odd", 1.0, 1.0, 1.0, 0.5

    def __init__(self, answer: Any, on_zeros: bool = False) -> None:
        self.answer, self.on_zeros = answer, on_zeros

    def tail(self, steps):
        return np.exp(-0.5 * steps) / (1.0 + np.exp(-0.5))

    def add_noise(self, totals):
        if totals.any() or self.on_zeros:
            return self.answer(totals)
        return totals + noise.discrete_laplace(2.0, totals.size).reshape(totals.shape)


def failing(totals):
    raise ValueError(f"these totals are odd: {totals}")


ANSWERS = {
    "an error with the totals in its words": failing,
    "a number too many": lambda totals: np.concatenate([totals, totals]),
    "floats": lambda totals: totals * 1.5,
    "narrow integers": lambda totals: totals.astype(np.uint8),
    "objects": lambda totals: totals.astype(object),
    "a list": lambda totals: totals.tolist(),
    "nothing": lambda totals: None,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("grouped", [False, True])
def test_188_of_a_mechanism_that_fails_on_totals_nothing_is_told(answer, grouped):
    ledger = dpf.Ledger(epsilon=1)
    dp = FRAME.dp.group_by("ward", keys=["A", "B"]) if grouped else FRAME.dp
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands") as caught:
        dp.count(epsilon=0.5, ledger=ledger, mechanism=lambda sensitivity, loss: Odd(answer), checks=False)
    told = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "271" not in told.replace("[1.0] * 271", "")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert ledger.spent.epsilon == 0.5


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_188_a_mechanism_that_fails_on_zeros_costs_nothing(answer):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match=r"'odd' fails on zeros .* Nothing was charged"):
        FRAME.dp.count(epsilon=0.5, ledger=ledger, mechanism=lambda sensitivity, loss: Odd(answer, on_zeros=True))
    assert ledger.spent.epsilon == 0


def speaking(*_):
    print("a cell was asked")  # first: the warning is an error, which is caught
    warnings.warn("a cell was asked", stacklevel=1)
    raise SystemExit("a cell was asked")


SPEAK = dict.fromkeys(("__eq__", "__ne__", "__float__", "__gt__", "__str__", "__index__", "__bool__"), speaking)
CELLS = {
    name: type("Speaking", (kind,), {**SPEAK, "__hash__": object.__hash__})(*value)
    for name, kind, *value in (
        ("object", object),
        ("float", float, 3.0),
        ("int", int, 3),
        ("large int", int, 10**400),
        ("str", str, "3"),
        ("bytes", bytes, b"3"),
        ("Decimal", Decimal, "3"),
    )
} | {"sNaN": Decimal("sNaN"), "NaN": Decimal("NaN")}
ASKS = {
    "present": lambda dp, **price: dp.count("x", **price),
    "sum": lambda dp, **price: dp.sum("x", bounds=(0, 10), **price),
    "weights": lambda dp, **price: dp.count(weight="x", weight_bounds=(0, 5), **price),
    "bins": lambda dp, **price: dp.histogram("x", bins=[0, 5, 10], **price),
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_189_no_method_of_a_cell_is_called_where_it_is_read(cell, ask, capfd):
    pd = pytest.importorskip("pandas")
    values = np.empty(2, dtype=object)
    values[:] = [1.0, cell]
    context = decimal.getcontext()
    context.clear_flags()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(pd.DataFrame({"x": values}).dp, epsilon=0.5, ledger=dpf.Ledger(epsilon=1), checks=False)
    assert not any(context.flags.values())
    assert capfd.readouterr() == ("", "")


def test_189_a_signaling_nan_is_missing_as_any_other():
    pd = pytest.importorskip("pandas")
    values = np.empty(3, dtype=object)
    values[:] = [Decimal("sNaN"), Decimal("NaN"), Decimal(1)]
    found = pd.DataFrame({"x": values}).dp.count("x", epsilon=1e9, ledger=dpf.Ledger(epsilon=1e9))
    assert round(found["count"][0]) == 1


@pytest.mark.parametrize("span", [1, 2**63 - 1])
def test_190_rows_of_an_arrow_table_in_duckdb_are_counted_whatever_a_span_holds(span):
    """Where no column is named, DuckDB reads the first one, and fails on a span that its own type does not hold."""
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    spans = pl.Series([span, 2], dtype=pl.Int64).cast(pl.Duration("ms"))
    table = pl.DataFrame({"span": spans, "note": ["a", None], "x": [1.0, None]}).to_arrow()
    with duckdb.connect() as connection:
        dp = dpf.of(connection.from_arrow(table))
        ledger = dpf.Ledger(epsilon=1e10)
        assert round(dp.count(epsilon=1e9, ledger=ledger)["count"][0]) == 2
        assert round(dp.count("x", epsilon=1e9, ledger=ledger)["count"][0]) == 1


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_190_an_instant_that_duckdb_cannot_hold_fails_no_question_about_other_columns(unit):
    """DuckDB reads the first column where none is named, and brings instants with a zone to microseconds."""
    pyarrow = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    far = pyarrow.array([10**13 if unit == "s" else 10**16, 2], pyarrow.int64())
    table = pyarrow.table({"at": far.view(pyarrow.timestamp(unit, "UTC")), "x": [1.0, None]})
    with duckdb.connect() as connection:
        dp = dpf.of(connection.from_arrow(table))
        ledger = dpf.Ledger(epsilon=1e10)
        assert round(dp.count(epsilon=1e9, ledger=ledger)["count"][0]) == 2
        assert round(dp.count("x", epsilon=1e9, ledger=ledger)["count"][0]) == 1
