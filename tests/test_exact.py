"""Conversion of numbers and directed rounding: exact integers, order, tightness; and attacks on a ledger by numbers."""

from __future__ import annotations

import contextlib
import json
import math
import numbers
import os
import re
import subprocess
import sys
import threading
import time
from decimal import Context, Decimal, FloatOperation, Inexact, localcontext
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dpf
from dpframe import exact
from dpframe.ledger import reading
from dpframe.ledger.entries import Entry, MemoryStore
from dpframe.mechanisms import renyi

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
NUMPY = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64, np.longdouble)
HUGE = 1 << 3_321_929  # of more than a million digits
FORGED = Fraction(np.int64(1), np.int64(3))  # it holds NumPy's integers, which wrap around


class Doubled(Fraction):
    """A Fraction that lies about its value."""

    def __add__(self, other):
        return Fraction(0)

    __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__

    def __ge__(self, other):
        return True

    __gt__ = __le__ = __lt__ = __ge__

    def __float__(self):
        return 1e-9

    @property
    def numerator(self):
        return 0


class Small(int):
    """An int that claims to be 0."""

    def __index__(self):
        return 0

    __int__ = __index__

    def __add__(self, other):
        return 0

    __radd__ = __mul__ = __rmul__ = __add__

    @property
    def numerator(self):
        return 0

    def bit_length(self):
        return 1

    def as_integer_ratio(self):
        return (0, 1)


class Quiet(float):
    """A float that claims to be next to nothing."""

    def __float__(self):
        return 1e-9

    def __repr__(self):
        return "1e-9"

    def as_integer_ratio(self):
        return (1, 10**9)


class Hidden(Decimal):
    """A Decimal that claims to be next to nothing."""

    def as_tuple(self):
        return Decimal("1e-9").as_tuple()

    def as_integer_ratio(self):
        return (1, 10**9)

    def is_finite(self):
        return True


@numbers.Rational.register
class Ratio:
    """A rational of another library: registered as one, with any two parts."""

    def __init__(self, numerator, denominator):
        self.numerator, self.denominator = numerator, denominator


@numbers.Rational.register
class Bare:
    """A class that is registered as a rational but is none."""


class Integer:
    """An integer class of another library."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


numbers.Integral.register(Integer)


def is_exact(value):
    return type(value) is Fraction and type(value.numerator) is int and type(value.denominator) is int


# The value of a number


@pytest.mark.parametrize(
    ("value", "worth"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (Quiet(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction("0.10000000149011612")),
        (np.float16(0.1), Fraction("0.0999755859375")),
        (np.longdouble(0.1), Fraction(1, 10)),
        (np.longdouble("0.1"), Fraction(*np.longdouble("0.1").as_integer_ratio())),
        (Decimal("0.1"), Fraction(1, 10)),
        (Hidden("0.1"), Fraction(1, 10)),
        (Small(7), Fraction(7)),
        (Doubled(1, 3), Fraction(1, 3)),
        (FORGED, Fraction(1, 3)),
        (Ratio(1, 3), Fraction(1, 3)),
        (Ratio(np.uint8(1), Small(3)), Fraction(1, 3)),
        (Ratio(Integer(2), Integer(6)), Fraction(1, 3)),
        (Ratio(1, -3), Fraction(-1, 3)),
        (5e-324, Fraction(5, 10**324)),
        (1.7976931348623157e308, Fraction("1.7976931348623157e308")),
        *((kind(100), Fraction(100)) for kind in (*NUMPY, *FLOATS)),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_91_a_number_is_worth_what_it_holds(value, worth):
    with np.errstate(all="raise"):
        found = exact.exactly("epsilon", value)
    assert is_exact(found)
    assert found == worth
    assert exact.checked_float("epsilon", value) == float(worth) or not isinstance(value, (Decimal, Fraction))
    assert exact.exactly("epsilon", value, typed=False) in (worth, Fraction(float(worth)))


@pytest.mark.parametrize("value", [0.1, np.float32(0.1), 2**-1074, np.longdouble(0.1)])
def test_91_an_untyped_float_is_its_exact_value(value):
    assert exact.exactly("sensitivity", value, typed=False) == Fraction(float(value))


@pytest.mark.parametrize(
    "value",
    [
        *(True, np.bool_(True), np.array(1), np.array([1.0]), 1 + 0j, "1"),
        *(np.timedelta64(1, "s"), np.timedelta64(1, "ns")),  # NumPy converts nanoseconds to a plain integer
        *(b"1", None, [1], Bare(), Ratio(1, 0), Ratio(True, 1), Ratio("1", 1), Ratio(1.5, 1), Ratio(None, None)),
        *(Ratio(np.timedelta64(1, "s"), 1), Ratio(1, Ratio(1, 1)), np.datetime64("2020"), pl.Series([1])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_91_what_is_no_number_is_refused(value):
    for door in (exact.exactly, exact.checked_float):
        with pytest.raises(dpf.InvalidType, match="epsilon must be a number, not"):
            door("epsilon", value)
    with pytest.raises(dpf.InvalidType):
        dpf.Ledger(epsilon=value) if value is not None else exact.exact_epsilon(value)
    assert exact.finite(value) is None


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, np.float16("nan"), np.longdouble("inf"), Decimal("NaN"), Decimal("sNaN")),
        *(Decimal("-sNaN12"), Decimal("Infinity"), Decimal("-Infinity"), np.float64("nan")),
    ],
    ids=str,
)
def test_91_what_is_not_finite_is_refused(value):
    with pytest.raises(dpf.InvalidArgument, match="epsilon must be a finite number"):
        exact.exactly("epsilon", value)
    assert exact.finite(value) is None
    found = exact.checked_float("epsilon", value)
    assert not math.isfinite(found)
    assert math.isnan(found) == ("nan" in str(value).lower())


LONG_NUMBERS = [
    *(Decimal("1e-1000000"), Decimal("1e1000000"), Decimal("0e-1000000"), Decimal("1" * 10**6), Decimal("-1e1001")),
    *(Fraction(1, 10**1001), Fraction(10**1001), HUGE, Small(HUGE), Ratio(1, HUGE)),
    *(Fraction(HUGE, 3), np.longdouble("1e-4900"), np.longdouble("1e4900")),
]
SMALL_ENOUGH = [Decimal("1e-1000"), Decimal("1e1000"), 10**1000, Fraction(1, 10**1000), Decimal("1." + "3" * 999)]


@pytest.mark.slow
@pytest.mark.parametrize("value", LONG_NUMBERS, ids=lambda value: type(value).__name__)
def test_98_a_number_of_too_many_digits_is_refused_at_once(value, tmp_path):
    started = time.process_time()  # other processes do not lengthen it
    with pytest.raises(dpf.InvalidArgument, match=r"a number of at most 1,000 digits, not .* Round it\."):
        exact.exactly("epsilon", value)
    with pytest.raises(dpf.InvalidArgument, match="of at most 1,000 digits"):
        dpf.Ledger(epsilon=value)
    assert exact.finite(value) is None
    for ledger in (dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")):
        for words in ({"epsilon": value}, {"epsilon": 1, "delta": value}, {"share": value}):
            with pytest.raises(dpf.InvalidArgument):
                PEOPLE.dp.count(**words, ledger=ledger)
        for name in ("epsilon", "delta"):
            with pytest.raises(dpf.InvalidArgument):
                ledger.raise_limit(**{name: value}, reason="a test")
        assert ledger.to_frame().height == 0
        PEOPLE.dp.count(epsilon=1, ledger=ledger)  # no lock is held
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize("value", SMALL_ENOUGH, ids=lambda value: type(value).__name__)
def test_98_a_thousand_digits_are_taken(value):
    assert exact.exactly("epsilon", value) == Fraction(value)


def test_91_traps_of_decimals_do_not_spring():
    with localcontext(Context(prec=1, traps=[Inexact, FloatOperation])):
        assert exact.exactly("epsilon", Decimal("0.123456789")) == Fraction(123456789, 10**9)


# Order, and the direction of rounding


def of_numpy(numerator, denominator):
    """Return a fraction of NumPy integers that is not in lowest terms, as code before Python 3.12 could make it."""
    made = Fraction.__new__(Fraction)
    made._numerator, made._denominator = numerator, denominator
    return made


numbers_of_any_kind = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30),
    st.floats(allow_nan=False, allow_infinity=False, width=16).map(np.float16),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(np.float32),
    st.floats(allow_nan=False, allow_infinity=False).map(np.float64),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).map(
        lambda value: np.longdouble(value) / 3
    ),
    *(st.integers(np.iinfo(kind).min, np.iinfo(kind).max).map(kind) for kind in NUMPY),
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63 - 1)).map(
        lambda parts: of_numpy(*map(np.int64, parts))
    ),
)
fractions = st.one_of(
    st.fractions(),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    st.builds(Fraction, st.integers(-(2**1100), 2**1100), st.integers(1, 2**1100)),
)


def true_value(value):
    if isinstance(value, Fraction):
        return Fraction(int(value._numerator), int(value._denominator))
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, np.floating) and not isinstance(value, float):
        return Fraction(*map(int, value.as_integer_ratio()))
    return Fraction(value)


@given(numbers_of_any_kind)
def test_91_every_number_becomes_python_integers(value):
    for typed in (True, False):
        found = exact.exactly("epsilon", value, typed=typed)
        assert is_exact(found)
        assert typed or found == true_value(value)
    assert exact.checked_float("epsilon", value) == exact.nearest(true_value(value))


@given(numbers_of_any_kind, numbers_of_any_kind)
def test_91_order_is_kept(one, other):
    less = true_value(one) < true_value(other)
    assert (exact.exactly("e", one, typed=False) < exact.exactly("e", other, typed=False)) == less
    if isinstance(one, float) == isinstance(other, float) and less:
        kinds = [isinstance(value, (float, np.floating)) for value in (one, other)]
        if kinds[0] == kinds[1]:
            assert exact.exactly("e", one) <= exact.exactly("e", other)


@given(fractions)
def test_up_and_down_are_conservative_and_tight(value):
    above, below = exact.up(value), exact.down(value)
    assert below <= value <= above
    assert math.nextafter(above, -math.inf) < value or above == below == value
    assert math.nextafter(below, math.inf) > value or above == below == value
    assert exact.down(-value) == -above


@given(fractions.map(abs))
def test_what_is_shown_is_conservative_as_a_decimal(value):
    above, below = exact.shown_up(value), exact.shown_down(value)
    if math.isfinite(above):
        assert Fraction(repr(above)) >= value or above >= value
    assert Fraction(repr(below)) <= value
    assert Fraction(repr(exact.typed_down(value))) <= value
    assert exact.typed_down(value) <= value
    if math.isfinite(above):
        assert below >= math.nextafter(exact.down(value), 0.0)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_what_was_typed_is_shown(value):
    typed = exact.exact_epsilon(value)
    assert exact.shown_up(typed) == exact.shown_down(typed) == value


@given(st.fractions(Fraction(1, 10**30), 10**30))
def test_roots_are_rounded_down(value):
    root = exact.root_down(value)
    assert Fraction(root) ** 2 <= value
    assert Fraction(root * (1 + 2.0**-50)) ** 2 > value


@given(st.fractions(), st.integers(1, 10**9))
def test_the_grid_rounds_charges_up_and_limits_down(value, grid):
    assert exact.floor(value, grid) <= value <= exact.ceil(value, grid)
    assert exact.ceil(value, grid) - exact.floor(value, grid) <= Fraction(1, grid)
    assert is_exact(exact.floor(value, grid))
    assert is_exact(exact.ceil(value, grid))


def test_beyond_the_floats_nothing_fails():
    huge = Fraction(10) ** 400
    assert (exact.up(huge), exact.down(huge)) == (math.inf, 1.7976931348623157e308)
    assert (exact.up(-huge), exact.down(-huge)) == (-1.7976931348623157e308, -math.inf)
    assert (exact.shown_up(huge), exact.shown_down(huge)) == (math.inf, 1.7976931348623157e308)
    assert (exact.up(1 / huge), exact.down(1 / huge)) == (5e-324, 0.0)
    ledger = dpf.default_ledger() if dpf.default_ledger().limit is None else None
    assert ledger is None or ledger.remaining.epsilon == math.inf
    total = dpf.Ledger(epsilon=1.7e308)
    PEOPLE.dp.count(epsilon=1.6e308, ledger=total)
    assert total.spent.epsilon == 1.6e308


# Texts


@given(st.one_of(fractions, st.builds(lambda p: Fraction(-1, 3**p), st.integers(6000, 8000))))
def test_texts_are_read_as_they_were_written(value):
    found = Fraction(*reading.pair(exact.exact_text(abs(value))))
    assert found == abs(value)
    assert is_exact(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1/0",
        "1/-2",
        "1/2/3",
        " 1/2",
        "1_0/2",
        "1/2\n",
        "0b1/2",
        "1.5/2",
        "-/1",
        "٣/4",
        "0x/1",
        "1" * 5000 + "/1",
        "0x" + "f" * 2**18 + "/1",
        1,
        None,
        0.5,
        ["1", "2"],
        True,
    ],
    ids=lambda text: str(text)[:12],
)
def test_a_text_that_is_no_exact_number_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"no rational|integer string"):
        reading.pair(text)


# The ledger


@pytest.fixture(params=["memory", "file"])
def ledger_of(request, tmp_path):
    def made(*args, name="clinic", **words):
        path = {"path": tmp_path / f"{name}.ledger"} if request.param == "file" else {}
        return dpf.Ledger(*args, **words, **path)

    return made


@pytest.mark.slow
@pytest.mark.parametrize("first", [1 / 700, 1 / 52, Fraction(1, 700), Decimal("0.0192307692307692307")], ids=str)
@pytest.mark.parametrize("kind", [*NUMPY, *FLOATS, Small, Quiet, Hidden], ids=lambda kind: kind.__name__)
def test_91_no_kind_of_number_passes_the_limit(ledger_of, first, kind, recwarn):
    ledger = ledger_of(epsilon=2)
    PEOPLE.dp.count(epsilon=first, ledger=ledger)
    PEOPLE.dp.count(epsilon=kind(1), ledger=ledger)
    for _ in range(11):
        with pytest.raises(dpf.BudgetExceeded):
            PEOPLE.dp.count(epsilon=kind(1), ledger=ledger)
    assert ledger._store.last().total == (exact.exact_epsilon(first) + 1, 0)
    assert all(map(is_exact, ledger._store.last().total))
    assert not recwarn.list


@pytest.mark.parametrize("price", [FORGED, Doubled(1, 3), Ratio(np.int64(1), np.int64(3))], ids=["numpy", "own", "any"])
def test_91_no_fraction_passes_the_limit(ledger_of, price):
    ledger = ledger_of(epsilon=1)
    for _ in range(3):
        PEOPLE.dp.count(epsilon=price, ledger=ledger)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=price, ledger=ledger)
    assert ledger.remaining.epsilon == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.longdouble, Decimal, Small, Fraction])
def test_91_limits_of_any_number_are_those_of_the_plain_one(ledger_of, accounting, kind):
    plain, other = ledger_of(2, 1e-6, accounting=accounting), ledger_of(kind(2), 1e-6, accounting=accounting, name="b")
    assert plain.limit_amount == other.limit_amount
    assert all(map(is_exact, other.limit_amount))
    assert plain.limit == other.limit
    for ledger in (plain, other):
        ledger.raise_limit(epsilon=kind(3), reason="a test")
    assert plain.limit_amount == other.limit_amount


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_91_amounts_of_any_number_are_made_exact(ledger_of, accounting):
    ledger = ledger_of(2, 1e-6, accounting=accounting)
    parts = len(ledger.limit_amount)
    words = {"cost": dpf.PrivacyLoss(np.float32(0.5), np.int8(0)), "query": "", "unit": ledger.unit}
    ledger.charge((Fraction(np.int64(1), np.int64(32)),) + (np.int64(0),) * (parts - 1), **words)
    ledger.charge([0.0625] + [0] * (parts - 1), **words)
    assert ledger._store.last().total == (Fraction(3, 32),) + (0,) * (parts - 1)
    assert all(map(is_exact, ledger._store.last().total))
    for _, entry in ledger._store.entries():
        assert type(entry.cost.epsilon) is type(entry.cost.delta) is float


@pytest.mark.parametrize(
    ("amount", "error"),
    [
        ((Fraction(1, 2),), dpf.InvalidType),
        ((Fraction(1, 2),) * 3, dpf.InvalidType),
        (Fraction(1, 2), dpf.InvalidType),
        ("1", dpf.InvalidType),
        ((True, 0), dpf.InvalidType),
        ((np.timedelta64(1, "s"), 0), dpf.InvalidType),
        (("1/2", 0), dpf.InvalidType),
        ((math.nan, 0), dpf.InvalidArgument),
        ((math.inf, 0), dpf.InvalidArgument),
        ((Decimal("sNaN"), 0), dpf.InvalidArgument),
        ((np.int64(-1), 0), dpf.InvalidArgument),
        ((0, Fraction(np.int64(-1), 3)), dpf.InvalidArgument),
        ((Fraction(1, 3**100_000), 0), dpf.InvalidArgument),
        ((Decimal("1e-1000000"), 0), dpf.InvalidArgument),
    ],
    ids=range(14),
)
def test_91_amounts_that_are_none_are_refused(ledger_of, amount, error):
    ledger = ledger_of(epsilon=1)
    with pytest.raises(error, match="amount must"):
        ledger.charge(amount, cost=dpf.PrivacyLoss(0.0), query="", unit=ledger.unit)
    assert ledger.to_frame().height == 0


@pytest.mark.parametrize("loss", [(-1, 0), (0, -1e-9), (math.nan, 0), (0, math.nan), (Decimal("-0.1"), 0)], ids=str)
def test_91_losses_that_are_none_are_refused(loss):
    with pytest.raises(dpf.InvalidArgument, match="must be a number of at least 0"):
        dpf.PrivacyLoss(*loss)


def test_91_losses_are_floats_that_understate_nothing():
    loss = dpf.PrivacyLoss(Fraction(1, 3), Decimal("1e-400"))
    assert Fraction(loss.epsilon) > Fraction(1, 3)
    assert loss.delta == 5e-324
    assert str(dpf.PrivacyLoss(np.float64(0.1))) == "epsilon 0.1"
    assert dpf.PrivacyLoss(np.float64(0.1)).digits == "epsilon 0.1"
    assert dpf.PrivacyLoss(math.inf).epsilon == math.inf


def entry_of(ledger, amount):
    return Entry("now", None, "", ledger.unit, amount, dpf.PrivacyLoss(0.0))


@pytest.mark.parametrize("amount", [(Fraction(-1, 4), Fraction(0)), (Fraction(0), Fraction(-1, 10**9))], ids=str)
def test_91_a_total_never_falls_whatever_asks(ledger_of, amount):
    ledger = ledger_of(1, 1e-6, accounting="basic")
    PEOPLE.dp.count(epsilon=0.5, delta=5e-7, ledger=ledger)
    before = ledger._store.last()
    with pytest.raises(dpf.LedgerError, match="must not lower the total"):
        ledger._store.charge(entry_of(ledger, amount), lambda *_: None)
    assert ledger._store.last() == before
    PEOPLE.dp.count(epsilon=0.5, delta=5e-7, ledger=ledger)  # no lock is held


@pytest.mark.parametrize("part", [np.int64(1), 1, 0.5, FORGED, Doubled(1, 3)], ids=lambda part: type(part).__name__)
def test_91_a_store_takes_python_fractions_alone(ledger_of, part):
    ledger = ledger_of(epsilon=1)
    with pytest.raises(dpf.LedgerError, match="Fractions of Python integers"):
        ledger._store.charge(entry_of(ledger, (part, Fraction(0))), lambda *_: None)
    assert ledger.to_frame().height == 0


def test_98_a_total_of_too_many_digits_is_refused():
    store, ledger = MemoryStore(), dpf.Ledger(epsilon=1)
    entries = [entry_of(ledger, (Fraction(1, 2**20_000 + odd), Fraction(0))) for odd in range(1, 20, 2)]
    for entry in entries[:3]:  # each has a denominator of its own
        store.charge(entry, lambda *_: None)
    for entry in entries[3:6]:
        with contextlib.suppress(dpf.LedgerError):
            store.charge(entry, lambda *_: None)
    with pytest.raises(dpf.LedgerError, match="39,000 digits"):
        store.charge(entries[6], lambda *_: None)
    assert store.last().entry == 6


# Other uses of numbers


@pytest.mark.parametrize("kind", [np.int8, np.uint32, np.int64, Small, Integer], ids=lambda kind: kind.__name__)
def test_91_rows_and_groups_of_a_unit_are_python_integers(kind):
    unit = dpf.PrivacyUnit(column="who", max_rows=kind(3), max_groups=kind(2))
    assert unit == dpf.PrivacyUnit(column="who", max_rows=3, max_groups=2)
    assert type(unit.max_rows) is type(unit.max_groups) is int
    json.dumps(unit.max_rows)


@pytest.mark.parametrize("rows", [True, np.bool_(True), np.timedelta64(3, "ns"), 3.0, "3", Decimal(3), Fraction(3)])
def test_91_rows_that_are_no_integers_are_refused(rows):
    with pytest.raises(dpf.InvalidType, match="max_rows must be a whole number"):
        dpf.PrivacyUnit(column="who", max_rows=rows)


THREE = [*(kind(3) for kind in NUMPY), Small(3), Integer(3), Decimal(3), Fraction(3), Doubled(3), Ratio(np.int8(3), 1)]
HALF = [*(kind(0.5) for kind in FLOATS), Quiet(0.5), Decimal("0.5"), Fraction(np.int64(1), np.int64(2)), Doubled(1, 2)]
SAME = [*((3, other) for other in THREE), *((0.5, other) for other in HALF)]
OUTPUT = (0, 20)
SCALES = {
    "analytic": lambda one: dpf.analytic_gaussian_sigma(one, 1e-6, one),
    "classical": lambda one: dpf.classical_gaussian_sigma(0.5, 1e-6, one),
    "probabilistic": lambda one: dpf.probabilistic_gaussian_sigma(one, 1e-6, one),
    "generalized": lambda one: dpf.generalized_gaussian_scale(3, one, 1e-6, one),
    "truncated": lambda one: dpf.truncated_generalized_gaussian_scale(2, one, output=OUTPUT, sensitivity=one),
    "bounds": lambda one: dpf.truncated_generalized_gaussian_scale(2, 1, output=(-one, one), sensitivity=1),
    "laplace": lambda one: dpf.Laplace.calibrate(sensitivity=one, epsilon=one, grid=one),
    "gaussian": lambda one: dpf.Gaussian.calibrate(sensitivity=one, epsilon=one, delta=1e-6, grid=one),
    "shape": lambda one: dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=one, epsilon=one, delta=1e-6, grid=one),
    "kept": lambda one: dpf.TruncatedGeneralizedGaussian.calibrate(
        p=2, sensitivity=one, epsilon=one, output=OUTPUT, grid=one
    ),
    "choice": lambda one: dpf.ExponentialMechanism.of_steps(one, one, monotonic=False, options=3, grid=one),
    "laplace itself": lambda one: dpf.Laplace(one, one, one),
    "gaussian itself": lambda one: dpf.Gaussian(one, one, one),
    "shape itself": lambda one: dpf.GeneralizedGaussian(one, one, one, p=3),
    "choice itself": lambda one: dpf.ExponentialMechanism(one, one, one, 3, one),
    "advanced": lambda one: dpf.advanced_composition(one, 1e-9, 10, slack=1e-6),
    "optimal": lambda one: dpf.optimal_composition(one, 1e-9, 10, total_delta=1e-6),
}


def told(found):
    """Return the figures of a mechanism, or the number that a calibration gave."""
    if not hasattr(found, "pure_epsilon"):
        return found
    orders = [found.renyi(Fraction(3, 2))]
    curve = [found.delta(0.25), found.epsilon(1e-6), found.interval(0.95)]
    plain = {type(value) for value in vars(found).values()}
    assert plain <= {int, float, str, tuple, Fraction}
    assert all(is_exact(value) for value in vars(found).values() if isinstance(value, Fraction))
    cost = None if found.name.endswith("p = 3") else found.mu_squared
    return (found.sensitivity, found.scale, found.variance, found.pure_epsilon, cost, *orders, *curve)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize(("plain", "other"), SAME, ids=lambda value: type(value).__name__)
def test_91_calibrations_of_any_number_are_those_of_the_plain_one(name, plain, other):
    if not isinstance(other, (np.signedinteger, np.floating, Decimal, Fraction)) and name == "bounds":  # no minus
        return
    with np.errstate(all="raise"):
        assert told(SCALES[name](other)) == told(SCALES[name](plain))


@pytest.mark.parametrize("sensitivity", [np.int64(10**9 + 7), np.int32(10**9 + 7), np.float64(10**9 + 7)])
def test_91_no_calibration_wraps_around(sensitivity):
    """Sigma was 30 instead of 4,224,678,919, because a Fraction of NumPy's integers was divided."""
    assert dpf.analytic_gaussian_sigma(1, 1e-6, sensitivity) == pytest.approx(4_224_678_918.9, rel=1e-9)
    assert dpf.generalized_gaussian_scale(3, 1, 1e-6, sensitivity) == pytest.approx(12_488_448_345.7, rel=1e-9)
    assert dpf.classical_gaussian_sigma(0.5, 1e-6, sensitivity) > 1e9
    noise = dpf.Laplace(sensitivity, 1.7)
    assert noise.pure_epsilon == dpf.Laplace(10**9 + 7, 1.7).pure_epsilon
    assert noise.renyi(np.int64(2)) == noise.renyi(2.0) == noise.renyi(Fraction(2))


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_a_calibration_never_takes_more_than_was_said(value):
    """A fraction between two floats is rounded: up as a sensitivity, and down as an epsilon."""
    assert dpf.Laplace.calibrate(sensitivity=1, epsilon=value).scale >= 1 / value
    found = dpf.truncated_generalized_gaussian_scale(1, value, output=OUTPUT)
    assert found == dpf.truncated_generalized_gaussian_scale(1, Fraction(exact.down(value)), output=OUTPUT)


@pytest.mark.parametrize("bad", [np.timedelta64(1, "ns"), True, np.bool_(True), "1", None, np.array(1.0), 1j, Bare()])
@pytest.mark.parametrize("name", SCALES)
def test_91_calibrations_refuse_what_is_no_number(name, bad):
    with pytest.raises(dpf.InvalidType, match="must be a number, not"):
        dpf.truncated_generalized_gaussian_scale(2, 1, output=(0, bad)) if name == "bounds" else SCALES[name](bad)


@pytest.mark.parametrize("name", sorted(set(SCALES) - {"bounds"}))
@pytest.mark.parametrize("bad", [Decimal("1e-1000000"), Decimal("1e1000000"), HUGE, Decimal("sNaN")], ids=range(4))
def test_98_calibrations_refuse_too_many_digits(name, bad):
    with pytest.raises(dpf.InvalidArgument, match="must be"):
        SCALES[name](bad)


def test_91_a_mechanism_of_numpy_integers_pays_in_full(engine, ledger_of):
    """A caller's calibration returns noise made of NumPy's integers; three such calls fit the budget, not four."""
    frame, ledger = engine({"age": [31, 45, 62]}), ledger_of(epsilon=3 / 7 + 1e-6)

    def mine(sensitivity, loss):
        return dpf.Laplace(np.int64(1), np.int64(7), np.float64(1.0))

    for _ in range(3):
        frame.dp.count(epsilon=np.float32(1 / 7), mechanism=mine, ledger=ledger)
    with pytest.raises(dpf.BudgetExceeded):
        frame.dp.count(epsilon=np.float32(1 / 7), mechanism=mine, ledger=ledger)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, Small, Integer], ids=lambda kind: kind.__name__)
def test_91_a_sensitivity_is_made_of_python_integers(kind):
    facts = {"cells": 5, "rows": 7, "groups": 3}
    plain = dpf.Sensitivity((-2, 100), **facts, weighted=True, replace=True, grid=1.0)
    others = {name: kind(value) for name, value in facts.items()}
    other = dpf.Sensitivity((np.int8(-2), kind(100)), **others, weighted=True, replace=True, grid=np.float16(1))
    assert plain == other
    assert [plain.steps(p) for p in (1, 2, math.inf)] == [other.steps(p) for p in (1, 2, math.inf)]
    assert type(other.steps(1)) is type(other.grid) is float
    assert {type(one) for one in (*other.reach, other.cells, other.rows, other.groups)} == {int}


@pytest.mark.parametrize("typed", [Fraction(1, 3), Decimal("0.3"), Fraction(10**30 + 1, 10**30)])
def test_a_sensitivity_between_two_floats_is_the_larger_one(typed):
    for held in (dpf.Gaussian(typed, 3.0).sensitivity, exact.length("scale", typed)):
        assert math.nextafter(held, 0.0) < typed <= Fraction(held)


def test_91_a_sensitivity_of_numpy_integers_does_not_wrap():
    many = np.int64(2**62)
    found = dpf.Sensitivity((0, many), cells=1, rows=many, groups=1, weighted=True, replace=False, grid=1.0)
    assert found.norm(1) == 2.0**124


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:bounds look taken from the data:dpframe.WeakPrivacyWarning")
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.longdouble, Small, Quiet, Decimal, Fraction, Doubled])
def test_91_whatever_a_call_takes_is_read_once(engine, kind):
    """Weights, shares, bounds, errors and sizes of any type give the same plan as the plain number."""
    frame = engine({"age": [31, 45, 62], "ward": ["a", "b", "a"]})
    ledger = dpf.Ledger(epsilon=4)
    groups = frame.dp.preview.group_by("ward", keys=["a", "b"])

    def plans(one):
        bounds = (0, one(90))
        asked = {"n": dpf.count(), "total": dpf.sum("age", bounds=bounds)}
        yield groups.agg(**asked, epsilon=one(1), weights={"n": one(2)}, ledger=ledger)
        yield groups.agg(**asked, share=one(1), ledger=ledger)
        yield frame.dp.preview.count(within=one(5), confidence=Fraction(19, 20), ledger=ledger)
        yield frame.dp.preview.histogram("age", bins=[0, one(50), one(90)], epsilon=1, ledger=ledger)
        yield frame.dp.preview.mean("age", bounds=bounds, within=one(3), size=100, ledger=ledger)

    for plain, other in zip(plans(int), plans(kind), strict=True):
        assert [part.mechanism for part in plain.parts] == [part.mechanism for part in other.parts]
        assert plain.amount == other.amount
        assert all(map(is_exact, other.amount))
        assert plain.error == other.error


@pytest.mark.parametrize("size", [np.int16(100), np.uint64(100), Small(100), Integer(100)])
def test_91_sizes_and_counts_of_bins_are_python_integers(size):
    ask, ledger = PEOPLE.dp.preview, dpf.Ledger(epsilon=4)
    words = {"bounds": (0, 90), "within": 3, "ledger": ledger}
    assert ask.mean("age", size=size, **words).amount == ask.mean("age", size=100, **words).amount
    edges = [
        ask.histogram("age", bins=bins, range=(0, 90), epsilon=1, ledger=ledger).query.keys.axes[0].edges
        for bins in (size, 100)
    ]
    assert edges[0] == edges[1]
    for bad in (np.timedelta64(100, "ns"), True, 100.0):
        with pytest.raises(dpf.InvalidType, match="size must be a whole number"):
            ask.mean("age", size=bad, **words)
        with pytest.raises(dpf.InvalidType, match="bins must be edges or a whole number of bins"):
            ask.histogram("age", bins=bad, range=(0, 90), epsilon=1, ledger=ledger)
    with pytest.raises(dpf.InvalidType, match="count must be a whole number"):
        dpf.advanced_composition(0.1, 0, np.timedelta64(3, "s"), slack=1e-6)


def test_98_bounds_and_edges_of_too_many_digits_are_refused_before_the_charge():
    ledger = dpf.Ledger(epsilon=1)
    for bad in (Decimal("1e-1000000"), Fraction(1, 10**100_000), HUGE, Decimal("sNaN")):
        with pytest.raises(dpf.InvalidArgument, match="bounds must be"):
            PEOPLE.dp.sum("age", bounds=(0, bad), epsilon=1, ledger=ledger)
        with pytest.raises(dpf.InvalidArgument, match="bins must be"):
            PEOPLE.dp.histogram("age", bins=[0, bad], epsilon=1, ledger=ledger)
        with pytest.raises(dpf.InvalidArgument, match="within must be"):
            PEOPLE.dp.count(within=bad, ledger=ledger)
        with pytest.raises(dpf.InvalidArgument, match="weights must be"):
            PEOPLE.dp.group_by("age", keys=[31]).agg(n=dpf.count(), epsilon=1, weights={"n": bad}, ledger=ledger)
        with pytest.raises(dpf.InvalidArgument, match="scores must be finite"):
            dpf.exponential_mechanism([1, bad], epsilon=1, sensitivity=1)
    assert ledger.to_frame().height == 0


def test_91_a_context_of_decimals_changes_no_price():
    ask, ledger = PEOPLE.dp.preview, dpf.Ledger(epsilon=4)
    plain = ask.count(within=7, ledger=ledger).amount
    with localcontext(Context(prec=1, traps=[Inexact, FloatOperation])):
        assert ask.count(within=7, ledger=ledger).amount == plain


def test_91_scores_are_taken_exactly():
    scores = [np.int8(3), np.uint64(2**63), Small(5), FORGED, np.float32(0.5)]
    assert dpf.exponential_mechanism(scores, epsilon=np.int64(1), sensitivity=np.int32(1)) == 1
    assert dpf.exponential_mechanism(np.array([0, 2**62]), epsilon=1, sensitivity=FORGED) == 1


@pytest.mark.parametrize(
    "facts",
    [
        *({"amount": ["1/0", "0/1"]}, {"amount": ["-1/2", "0/1"]}, {"amount": [1, 2]}, {"amount": ["1/2"]}),
        *({"total": ["1/0", "0/1"]}, {"total": None}, {"epsilon": math.nan}, {"epsilon": "1"}),
        {"unit": {"max_rows": 0.5}},
    ],
    ids=str,
)
def test_91_a_forged_number_in_a_file_is_a_changed_ledger(facts, tmp_path):
    """The hashes fit, since a forger can compute them; still no total falls and no raw error is raised."""
    from dpframe.ledger.chain import follow
    from dpframe.ledger.entries import Mark, Row, link

    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")
    entry = entry_of(ledger, (Fraction(1, 2), Fraction(0)))
    terms = ledger._store.terms
    first = Mark.first(terms)
    row = Row.after(first, entry)
    mark = follow(terms, first, row, "here")
    forged = json.dumps(json.loads(Row.after(mark, entry).body) | facts)
    with pytest.raises(dpf.LedgerError, match="was changed"):
        follow(terms, mark, Row(2, forged, link(mark.head, forged), None), "here")


@given(st.floats(1e-300, 1e300), st.integers(-(10**6), 10**6))
def test_numbers_of_many_digits_are_rounded_up(value, parts):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        exactly = mpmath.mpf(value) * (1 + mpmath.mpf(parts) / 10**30)
        found = exact.rounded_up(exactly)
        assert found >= exactly
        assert math.nextafter(found, 0.0) < exactly


# Digits in mpmath -----------------------------------------------------------------------------------------------------


def test_211_a_thread_does_not_change_the_digits_of_another():
    """The process has one precision of mpmath: costs at epsilon 1e-8 came out as small as 0.58 of their value."""
    before, stopped, usual = mpmath.mp.prec, threading.Event(), sys.getswitchinterval()
    curve = renyi.of_discrete_laplace.__wrapped__

    def costs():
        return [curve(1, Fraction(10**8 - number), Fraction(3)) for number in range(500)]

    def work():
        while not stopped.is_set():
            with exact.to_digits(15):
                mpmath.gamma(mpmath.mpf(7) / 3)

    alone, thread = costs(), threading.Thread(target=work)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        beside = costs()
    finally:
        stopped.set()
        thread.join()
        sys.setswitchinterval(usual)
    assert beside == alone
    assert mpmath.mp.prec == before


FORKED = """
import os, threading
from dpframe.exact import to_digits
inside, enough = threading.Event(), threading.Event()
def work():
    with to_digits(50):
        inside.set()
        enough.wait()
threading.Thread(target=work).start()
inside.wait()
child = os.fork()
if not child:
    with to_digits(20):
        os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
enough.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_amid_a_calculation_calculates():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["7"]


def test_digits_are_set_in_one_place():
    for file in Path(dpf.__file__).parent.rglob("*.py"):
        found = re.findall(r"workdps|workprec|mp\.(?:dps|prec) =", file.read_text("utf-8"))
        assert not found or file.name == "exact.py", file
