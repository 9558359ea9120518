"""Foreign code that meets private numbers: mechanisms of the caller, and the classes of objects in a column."""

from __future__ import annotations

import decimal
import itertools
import numbers
import re
import traceback
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.queries.statistics import Clipped, Mean, RowFunction, Statistic, Sum, Total
from dpframe.testing import exact

FRAME = pl.DataFrame({"x": [1.0] * 271, "ward": ["A"] * 271})


class Odd(dpf.Mechanism):
    """Geometric noise, except that `answer` is called if a total is not zero, or always with `on_zeros`."""

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
    assert "271" not in re.sub(r"0x[0-9a-f]+|line \d+", "", told).replace("[1.0] * 271", "")  # addresses may contain it
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
    print("a cell was asked")  # before the warning, which raises an error that is caught
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


class Speaks(numbers.Real):
    """A class that passes as a number; each of its methods prints, warns and exits."""

    for _name in numbers.Real.__abstractmethods__:
        vars()[_name] = speaking


OF_TIMES = dict.fromkeys(("__sub__", "__rsub__", "__floordiv__", "__truediv__", "__int__", "toordinal"), speaking)
OF_TIMES |= dict.fromkeys(("tzinfo", "days", "numerator", "denominator", "year"), property(speaking))
LOUD = SPEAK | OF_TIMES
TIMES = {
    "datetime": (datetime, 2020, 1, 1),
    "aware": (datetime, 2020, 1, 1, 0, 0, 0, 0, UTC),
    "date": (date, 2020, 1, 1),
    "timedelta": (timedelta, 1),
}
NUMERIC = {
    "Fraction": (Fraction, 1, 2),
    "large Fraction": (Fraction, 10**400, 3),
    "longdouble": (np.longdouble, 1),
    "int64": (np.int64, 1),
}
OWN = {name: type("Speaking", (kind,), LOUD)(*value) for name, (kind, *value) in (TIMES | NUMERIC).items()} | {
    "a number by its own word": Speaks()
}


@pytest.mark.parametrize(
    ("verb", "name"),
    [*itertools.product(["bins", "where"], OWN), *(("sum", name) for name in OWN if name not in TIMES)],
)
def test_229_no_method_of_a_number_or_time_is_called_where_it_is_read(verb, name, capfd):
    """By printing, such a method revealed that a person is present; it could also end the process after the charge."""
    pd = pytest.importorskip("pandas")
    edges: list[Any] = [0, 1, 10]
    if name in TIMES:
        first = timedelta(0) if name == "timedelta" else datetime(2019, 1, 1, tzinfo=UTC if name == "aware" else None)
        edges = [first, first + timedelta(days=1), first + timedelta(days=999)]
    values = np.empty(2, dtype=object)
    values[:] = [None, OWN[name]]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})  # pandas itself calls no method of it
    dp, price = frame.dp, {"epsilon": 1e9, "ledger": dpf.Ledger(epsilon=1e9), "checks": False}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        if verb == "bins":
            found = dp.histogram("x", bins=edges, outside="clip", **price)["count"].round().tolist()
        elif verb == "where":
            found = dp.count(where={"x": (edges[0], None)}, **price)["count"].round().tolist()
        else:
            found = dp.sum("x", bounds=(0, 10), **price)["x_sum"].round(3).tolist()
    assert capfd.readouterr() == ("", "")
    expected = {"bins": [0, 1], "where": [1], "sum": [10 if name == "large Fraction" else 1]}[verb]
    if name == "Fraction":
        expected = {"bins": [1, 0], "where": [1], "sum": [0.5]}[verb]
    elif isinstance(OWN[name], Speaks):
        expected = [0] * len(found)
    assert found == expected


def test_229_times_of_pandas_are_read_as_far_as_they_reach():
    pd = pytest.importorskip("pandas")
    far = pd.Timestamp(np.datetime64("12000-01-01", "s"))
    values = np.empty(4, dtype=object)
    values[:] = [far, pd.NaT, pd.Timestamp("2020-01-01"), datetime(2021, 1, 1)]
    days = [datetime(2019, 1, 1), datetime(2022, 1, 1)]
    dp, price = pd.DataFrame({"x": values}).dp, {"epsilon": 1e9, "ledger": dpf.Ledger(epsilon=1e10), "checks": False}
    assert dp.histogram("x", bins=days, **price)["count"].round().tolist() == [2]
    assert dp.count(where={"x": (days[0], None)}, **price)["count"].round().tolist() == [3]


@pytest.mark.parametrize("span", [1, 2**63 - 1])
def test_190_rows_of_an_arrow_table_in_duckdb_are_counted_whatever_a_span_holds(span):
    """If no column is named, DuckDB reads the first one, and fails on a span that its own type cannot hold."""
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
    """If no column is named, DuckDB reads the first one, and converts instants with a zone to microseconds."""
    pyarrow = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    far = pyarrow.array([10**13 if unit == "s" else 10**16, 2], pyarrow.int64())
    table = pyarrow.table({"at": far.view(pyarrow.timestamp(unit, "UTC")), "x": [1.0, None]})
    with duckdb.connect() as connection:
        dp = dpf.of(connection.from_arrow(table))
        ledger = dpf.Ledger(epsilon=1e10)
        assert round(dp.count(epsilon=1e9, ledger=ledger)["count"][0]) == 2
        assert round(dp.count("x", epsilon=1e9, ledger=ledger)["count"][0]) == 1


@dataclass(frozen=True)
class Lowest(Statistic):
    """A custom sum whose lower bound is the least value of a NumPy type."""

    column: str
    verb: ClassVar[str] = "lowest"

    def totals(self):
        return (Total(self.column, (np.int8(-128), np.int8(5))),)


@dataclass(frozen=True)
class Below(Clipped):
    """A custom sum of a row function whose range starts at the least value of a NumPy type."""

    verb: ClassVar[str] = "below"

    def totals(self):
        reach = (np.int32(-(2**31)), np.int32(0))
        return (Total(row=RowFunction(((self.column, self.bounds),), lowest, reach, 1.0, "steps below")),)


def lowest(steps):
    return np.full(len(steps), -(2**31))


@pytest.mark.parametrize("rows", [2**17 - 1, 2**17])
@pytest.mark.parametrize("by_unit", [False, True])
def test_221_222_bounds_and_reach_of_numpy_are_numbers_that_do_not_wrap(rows, by_unit):
    """The least integer of a NumPy type has no absolute value in that type: `abs` returns it unchanged."""
    frame = pl.DataFrame({"x": np.full(rows, -128.0), "who": np.arange(rows)})
    unit = dpf.PrivacyUnit("who", max_rows=1, max_groups=1) if by_unit else None
    for statistic, each in ((Lowest("x"), -128.0), (Below("x", (0, 64)), -(2.0**31))):
        with exact(), pytest.warns(dpf.WeakPrivacyWarning):
            found = frame.dp.agg(x=statistic, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6, unit=unit, checks=False))
        assert found["x"].item() == pytest.approx(rows * each, rel=1e-6), statistic.verb


def test_221_222_what_is_kept_is_of_python():
    ends = (np.int8(-128), np.int8(5))
    with pytest.warns(dpf.WeakPrivacyWarning, match="bounds look taken from the data"):
        total = Total("x", ends)
    with pytest.warns(dpf.WeakPrivacyWarning, match="bounds look taken from the data"):
        row = RowFunction((("x", ends),), lowest, (np.int32(-5), np.int64(3)), 1.0, "w", np.int8(2))
    kept = [*total.bounds, *row.columns[0][1], *row.reach, row.missing]
    assert kept == [-128, 5, -128, 5, -5, 3, 2]
    assert [type(one) for one in kept] == [float] * 4 + [int] * 3
    assert type(Total("x", distinct=np.int8(100), per_unit=True).most) is int


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"reach": (0.5, 1)}, dpf.InvalidType, "reach must be two whole numbers"),
        ({"reach": [0, 1, 2]}, dpf.InvalidArgument, "reach must be two whole numbers"),
        ({"missing": 0.5}, dpf.InvalidType, "missing must be a whole number within the reach"),
        ({"missing": 7}, dpf.InvalidArgument, "Widen the reach"),
        ({"columns": (("x", (64, 0)),)}, dpf.InvalidArgument, "lower < upper"),
        ({"columns": ()}, dpf.InvalidArgument, "columns must name at least one column"),
    ],
)
def test_what_a_row_function_is_given_is_checked(given, error, words):
    usual = {"columns": (("x", (0, 64)),), "function": lowest, "reach": (0, 1), "grid": 1.0, "words": "w"}
    with pytest.raises(error, match=words):
        RowFunction(**{**usual, **given})
    assert RowFunction(**{**usual, "reach": [0, 1]}).reach == (0, 1)


class Thousands(Sum):
    """A sum in thousands: it measures one noisy Total, but answers on another scale."""

    verb: ClassVar[str] = "thousands"

    def answer(self, measured):
        values, errors = super().answer(measured)
        return values / 1000, errors / 1000


class AsASum(Thousands):
    """The same, under the verb of a sum."""

    verb: ClassVar[str] = "sum"


class Apart(Thousands):
    """The same, which declares that denoisers cannot use it."""

    denoisable: ClassVar[bool] = False


class Percent(Mean):
    """A mean in percent, under the verb of a mean."""

    def answer(self, measured):
        values, errors = super().answer(measured)
        return 100 * values, 100 * errors


@pytest.mark.parametrize("keys", [None, ["A", "B"], dpf.discover(delta=1e-6)], ids=["none", "declared", "found"])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Thousands, r"denoisable must be False, since values of x \(thousands\) are not .* Nothing was charged"),
        (AsASum, "verb must be a word of its own, since x answers otherwise than dpframe's sum. Nothing was charged"),
        (Percent, "verb must be a word of its own, since x answers otherwise than dpframe's mean. Nothing was charged"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"m": dpf.mean("x", bounds=(0, 8))}], ids=["alone", "with a vector"])
def test_an_answer_that_would_be_taken_for_another_costs_nothing(kind, words, keys, more):
    """Derived statistics and denoisers would assume the noise of the Total, which is a thousand times larger."""
    ledger = dpf.Ledger(epsilon=1, delta=1e-5, accounting="basic")
    asked = FRAME.dp if keys is None else FRAME.dp.group_by("ward", keys=keys)
    with pytest.raises(dpf.InvalidArgument, match=words):
        asked.agg(x=kind("x", (0, 8)), **more, epsilon=0.5, mechanism="laplace", ledger=ledger)
    assert ledger.spent.epsilon == 0


@dataclass(frozen=True)
class Typed(Statistic):
    """The number of rows, in the dtype of NumPy that it names."""

    dtype: str
    verb: ClassVar[str] = "typed"
    denoisable: ClassVar[bool] = False

    def totals(self):
        return (Total(),)

    def answer(self, measured):
        values, errors = super().answer(measured)
        return values.astype(self.dtype), errors


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "uint64"])
def test_answers_of_any_number_replay_as_they_were_released(dtype, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "a.ledger")
    asked = {"epsilon": 0.5, "mechanism": "laplace", "ledger": ledger, "label": "typed", "snapshot": "2026"}
    first, again = (FRAME.dp.agg(x=Typed(dtype), **asked) for _ in range(2))
    assert first.equals(again)
    assert (
        first.schema
        == again.schema
        == {"x": pl.Float64 if dtype[0] == "f" or dtype == "uint64" else pl.Int64} | {"x_error": pl.Float64}
    )
    assert ledger.spent.epsilon == 0.5


def test_answers_of_truth_values_cost_nothing():
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match=r"it must give numbers of shape \(1,\), not bool"):
        FRAME.dp.agg(x=Typed("bool"), epsilon=0.5, mechanism="laplace", ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_an_answer_of_ones_own_that_is_no_total_is_released_and_not_computed_with():
    ledger = dpf.Ledger(epsilon=1e6)
    with pytest.warns(dpf.WeakPrivacyWarning):
        found = FRAME.dp.group_by("ward", keys=["A", "B"]).agg(x=Apart("x", (0, 8)), epsilon=1e5, ledger=ledger)
    assert found["x"].to_list() == pytest.approx([0.271, 0.0], abs=1e-4)
    with pytest.raises(dpf.InvalidArgument, match="known law, and it is a 'thousands'"):
        dpf.combine("2 * r.x", {"r": found})


@pytest.mark.parametrize("kind", [Thousands, Apart, AsASum])
def test_a_stream_refuses_an_answer_that_it_would_not_ask(kind):
    with pytest.raises(dpf.InvalidArgument, match="statistic must be dpf"):
        dpf.Stream("s", statistic=kind("x", (0, 8)), time="ward", periods=["A", "B"], epsilon=1)


def halved(steps):
    return steps / 2.0


@dataclass(frozen=True)
class Halved(Clipped):
    """A sum of a row function that returns no integers."""

    verb: ClassVar[str] = "halved"

    def totals(self):
        return (Total(row=RowFunction(((self.column, self.bounds),), halved, (0, 2**30), 1.0, "halves")),)


def test_a_stream_of_a_function_that_gives_no_integers_costs_nothing():
    ledger = dpf.Ledger(epsilon=1)
    stream = dpf.Stream("s", statistic=Halved("x", (0, 8)), time="ward", periods=["A", "B"], epsilon=1, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="the function of 'halves' must give an integer for each row"):
        stream.release(FRAME, "A")
    assert ledger.spent.epsilon == 0
