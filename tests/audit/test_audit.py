"""A small part of ``assurance/audit.py``: the answers for neighboring frames bound epsilon from below.

Each audit of a sound release objects with a chance of at most ALPHA, so this file fails by chance in at most one of
a million runs.
"""

from __future__ import annotations

import itertools
import logging
import math
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from looking import of_rows
from scipy import special

import dpframe as dpf
from assurance import audit_cases, auditing
from assurance.auditing import GAUSSIAN, GAUSSIAN_GDP, INFLATED, LAPLACE, SHAPE_3, TRUNCATED
from dpframe import audit
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.frames import build
from dpframe.release import results

SAMPLES = 20_000
SOUND = [
    ("rows: count", "pandas", LAPLACE),
    ("rows: sum", "Polars", GAUSSIAN_GDP),
    ("rows: mean", "LazyFrame", GAUSSIAN),
    ("rows: agg", "pandas", GAUSSIAN_GDP),
    ("rows: histogram", "Polars", LAPLACE),
    ("rows: histogram in groups", "pandas", GAUSSIAN),
    ("rows: an infinite value", "LazyFrame", LAPLACE),
    ("rows: a missing value", "pandas", LAPLACE),
    ("rows replaced: sum", "pandas", LAPLACE),
    ("rows replaced: count of values", "pandas", GAUSSIAN_GDP),
    ("rows replaced: histogram", "LazyFrame", GAUSSIAN_GDP),
    ("full user: count", "Polars", GAUSSIAN),
    ("heavy user: agg", "pandas", LAPLACE),
    ("heavy user: count", "LazyFrame", LAPLACE),
    ("crammed user: count", "Polars", GAUSSIAN_GDP),
    ("user replaced: count", "pandas", LAPLACE),
    ("user replaced: agg", "Polars", GAUSSIAN_GDP),
    ("rows: sum", "Arrow", SHAPE_3),
    ("rows: variance", "Polars", LAPLACE),
    ("rows replaced: variance", "pandas", GAUSSIAN_GDP),
    ("rows: quantile", "LazyFrame", LAPLACE),
    ("rows: proportion", "Polars", GAUSSIAN),
    ("rows replaced: share of a value", "Arrow", LAPLACE),
    ("heavy user: n_units", "pandas", LAPLACE),
    ("heavy user: variance", "LazyFrame", GAUSSIAN_GDP),
    ("one mode a call", "Polars", LAPLACE),
    ("heavy user: weights", "pandas", LAPLACE),
    ("heavy user: where", "Polars", GAUSSIAN_GDP),
    ("heavy user: sum of units", "LazyFrame", LAPLACE),
    ("user replaced: ratio", "pandas", GAUSSIAN),
    ("rows: bounds by group", "Arrow", LAPLACE),
    ("released together, heavy user", "Polars", LAPLACE),
    ("rows: sum", "Polars", TRUNCATED),
    ("rows: count", "pandas", INFLATED),
]
ALPHA = 1e-6 / len(SOUND)


def case_of(name: str, engine: str, price: auditing.Price) -> auditing.Case:
    if engine == "pandas":
        pytest.importorskip("pandas")
    return audit_cases.case(name, engine, price)


def audited(name: str, engine: str, price: auditing.Price) -> auditing.Audit:
    case = case_of(name, engine, price)
    return auditing.audit(case, SAMPLES if case.groups > 1 else SAMPLES // 20, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "engine", "price"), SOUND, ids=lambda value: getattr(value, "name", value))
def test_no_more_is_lost_than_charged_and_nothing_but_noise_differs(name, engine, price):
    found = audited(name, engine, price)
    assert not found.problems
    assert found.found.holds, found.found.event


QUESTIONS = {case.name: replace(case, engine="Polars") for case in audit_cases.cases(prices=(LAPLACE,))}


@pytest.mark.parametrize("name", QUESTIONS)
def test_neighbors_of_every_audit_differ_in_what_is_asked(name):
    """With the same bits, equal totals give equal answers, and an audit of them would pass whatever the noise."""
    case = replace(QUESTIONS[name], groups=min(QUESTIONS[name].groups, 5))
    frames = [case.frame(rows) for rows in (case.first, case.second)]

    def answer(frame: object, seed: int) -> list[float]:
        with dpf.testing.seeded(seed):
            return np.ravel(auditing.shown(case, frame)["numbers"]).tolist()

    assert any(answer(frames[0], seed) != answer(frames[1], seed) for seed in range(100))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "price"),
    [
        *((name, price) for name in ("rows: sum", "full user: count") for price in (LAPLACE, GAUSSIAN, GAUSSIAN_GDP)),
        *((name, LAPLACE) for name in ("heavy user: weights", "rows: bounds by group", "released together")),
        ("rows: count", INFLATED),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_noise_of_half_the_scale_is_found(name, price):
    with auditing.scaled_noise(0.5):
        found = audited(name, "Polars", price)
    assert not found.found.holds


def test_the_bound_comes_near_the_truth():
    assert audited("rows: count", "Polars", LAPLACE).found.lower_bound > 0.7


def test_missing_clipping_is_found(monkeypatch):
    real = results.totals

    def unclipped(frame, *more):
        found = real(frame, *more)
        values = frame.group_by("group", maintain_order=True).agg(value="value")["value"].to_list()
        for total, steps in [(total, steps) for total, steps in found.items() if total != OF_CHECKS]:
            inside = sum(min(max(value, audit_cases.LOW), audit_cases.HIGH) for value in values[0])
            found[total] = np.array([round(sum(group) * (steps[0] / inside)) for group in values])
        return found

    monkeypatch.setattr(results, "totals", of_rows(unclipped))
    found = audited("rows: sum", "Polars", LAPLACE)
    assert not found.found.holds


@pytest.mark.slow
@pytest.mark.parametrize("price", [LAPLACE, GAUSSIAN_GDP], ids=lambda price: price.name)
def test_a_skipped_charge_is_found(monkeypatch, price):
    monkeypatch.setattr(dpf.Ledger, "take", lambda *_, **__: None)
    found = audited("rows: count", "Polars", price)
    assert any(problem.startswith("charged 0 ") for problem in found.problems)
    assert any("second call was answered" in problem for problem in found.problems)


def test_a_warning_that_depends_on_rows_is_found():
    case = case_of("rows: count", "Polars", LAPLACE)

    def warns(dp, groups, options):
        warnings.warn(f"{len(dp._frame)} rows", stacklevel=1)
        return case.ask(dp, groups, options)

    found = auditing.audit(replace(case, ask=warns), auditing.GROUPS)
    assert any(problem.startswith("outputs differ") for problem in found.problems)


def test_an_error_that_depends_on_rows_is_found():
    case = case_of("rows: count", "Polars", LAPLACE)

    def fails(dp, groups, options):
        if len(dp._frame) > 3 * groups:
            raise ValueError("too many rows")
        return case.ask(dp, groups, options)

    found = auditing.audit(replace(case, ask=fails), auditing.GROUPS)
    assert any(problem.startswith("outputs differ") for problem in found.problems)


# The auditor itself


SURE = {"samples": 20_000, "outcomes": 1_000, "confidence": 1 - 1e-7}


def noisy(noise, total):
    """Return a function that makes a thousand releases of one total at once."""
    return lambda: noise.add_noise(np.full(1_000, total, dtype=np.int64))


@pytest.mark.parametrize("total", [10, 2**60])
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_epsilon_of_laplace_noise(factor, total):
    noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1 / factor)
    found = dpf.audit.epsilon(noisy(noise, total), noisy(noise, total + 1), claimed=1.0, **SURE)
    assert found.holds == (factor == 1.0)
    assert 0.7 / factor < found.lower_bound <= 1 / factor
    assert found.samples == SURE["samples"]


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_mu_of_gaussian_noise(factor):
    noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=4, delta=1e-3)
    tighter = replace(noise, step_scale=noise.step_scale * factor)
    found = dpf.audit.mu(noisy(tighter, 10), noisy(tighter, 11), claimed=noise.mu, **SURE)
    assert found.holds == (factor == 1.0)
    assert 0.8 * noise.mu / factor < found.lower_bound <= noise.mu / factor


def test_delta_excuses_what_happens_that_seldom():
    generator = np.random.default_rng(8)

    def often(one_in):
        return lambda: [float(generator.integers(one_in) == 0)]

    kept = {"claimed": 0.0, "samples": 2_000, "confidence": 0.999}
    assert dpf.audit.epsilon(often(20), lambda: [0.0], delta=0.1, **kept).holds
    assert not dpf.audit.epsilon(often(2), lambda: [0.0], delta=0.1, **kept).holds


def frame_with(columns, **more):
    return lambda: pl.DataFrame(columns, **more)


def pandas_with(change):
    def made():
        frame = pytest.importorskip("pandas").DataFrame({"g": ["A", "B"], "n": [1.0, 2.0]})
        return change(frame)

    return made


def raising(error):
    def fails():
        raise error

    return fails


def saying(*words):
    def says():
        for function, word in words:
            function(word)
        return 1.0

    return says


SILENT = saying()
TOLD = {
    "an exception": (raising(ValueError("secret")), SILENT),
    "another exception": (raising(ValueError("one")), raising(ValueError("two"))),
    "a warning": (saying((warnings.warn, "rare")), SILENT),
    "a log line": (saying((logging.getLogger("dpframe").debug, "rare")), SILENT),
    "a log line of others": (saying((logging.getLogger("else").error, "rare")), SILENT),
    "a print": (saying((print, "rare")), SILENT),
    "a dtype": (frame_with({"n": [1.0]}), frame_with({"n": [1]})),
    "a key": (frame_with({"g": ["A", "B"]}), frame_with({"g": ["A"]})),
    "the order of rows": (frame_with({"g": ["A", "B"]}), frame_with({"g": ["B", "A"]})),
    "a column": (frame_with({"g": ["A"], "h": [None]}), frame_with({"g": ["A"]})),
    "category levels": (
        frame_with({"g": ["A"]}, schema={"g": pl.Enum(["A"])}),
        frame_with({"g": ["A"]}, schema={"g": pl.Enum(["A", "B"])}),
    ),
    "attrs": (pandas_with(lambda frame: frame), pandas_with(lambda frame: frame.attrs.update(n=2) or frame)),
    "the index": (pandas_with(lambda frame: frame), pandas_with(lambda frame: frame.set_index([[7, 8]]))),
    "a type": (lambda: 1.0, lambda: np.float32(1.0)),
    "a shape": (lambda: np.zeros((2, 1)), lambda: np.zeros((1, 2))),
    "a length": (lambda: [1.0, 2.0], lambda: [1.0]),
    "a word": (lambda: {"n": 1.0, "words": "a"}, lambda: {"n": 1.0, "words": "b"}),
    "a number": (lambda: {"n": 1.0}, lambda: {"n": 2.0}),
    "NaN": (lambda: [float("nan"), 1.0], lambda: [1.0, 1.0]),
    "infinity": (lambda: [float("inf"), 1.0], lambda: [1.0, 1.0]),
}


@pytest.mark.parametrize(("left", "right", "shown"), [(5, 5, "LLRR"), (5, 1, "LLLR"), (1, 5, "LRRR"), (0, 5, "RRRR")])
def test_texts_of_both_sides_are_shown(left, right, shown):
    found = audit.apart([f"L{number}" for number in range(left)], [f"R{number}" for number in range(right)])
    assert "".join(text[1] for text in found) == shown


@pytest.mark.slow
@pytest.mark.parametrize("what", TOLD)
def test_everything_that_a_caller_sees_is_an_outcome(what):
    left, right = TOLD[what]
    for sides in ((left, right), (right, left)):
        found = dpf.audit.epsilon(*sides, claimed=1.0, samples=100)
        assert not found.holds
    assert bool(found.differences) == (what not in ("a number", "NaN", "infinity"))
    assert dpf.audit.epsilon(left, left, claimed=1.0, samples=100).holds


@pytest.mark.slow
def test_a_release_of_dpframe_shows_nothing_but_noise():
    people = pl.DataFrame({"age": [31, 45, 62]})

    def release(frame):
        return lambda: frame.dp.histogram("age", bins=[0, 40, 80], epsilon=1, ledger=dpf.Ledger(epsilon=1))

    found = dpf.audit.epsilon(release(people), release(people[:2]), claimed=1.0, samples=200, confidence=1 - 1e-6)
    assert found.holds
    assert found.differences == ()


@pytest.mark.slow
def test_a_denoiser_that_looks_at_the_rows_is_found():
    people = pl.DataFrame({"age": [31, 45, 62]})

    def release(frame):
        def peeking(values, noise):
            return values + 1_000 * frame.height

        return lambda: frame.dp.histogram(
            "age", bins=[0, 40, 80], epsilon=0.1, ledger=dpf.Ledger(epsilon=1), denoise=peeking
        )

    found = dpf.audit.epsilon(release(people), release(people[:2]), claimed=0.1, samples=400, confidence=1 - 1e-6)
    assert not found.holds


def bare(*values, **more):
    return lambda: values[0] if len(values) == 1 else pl.Series("n", values, **more)


def of_pandas(*values, **more):
    return lambda: pytest.importorskip("pandas").Series(list(values), **more)


def of_levels(*levels):
    """Return an empty column of a pandas Categorical."""
    return lambda: pytest.importorskip("pandas").Series(
        [], dtype=pytest.importorskip("pandas").CategoricalDtype(levels)
    )


def masked(*mask):
    return lambda: np.ma.array([1.0, 2.0], mask=list(mask))


NULL, NAN, INFINITE = None, float("nan"), float("inf")
LARGE = 2**60  # floats there are 256 apart
ONE_FLOAT = {
    "null and NaN": (bare(NULL, 1.0), bare(NAN, 1.0)),
    "null and NaN in a frame": (frame_with({"n": [NULL, 1.0]}), frame_with({"n": [NAN, 1.0]})),
    "null and NaN of pandas": (of_pandas(NULL, 1.0, dtype=object), of_pandas(NAN, 1.0, dtype=object)),
    "null and NaN in arrays of Polars": tuple(
        bare([one, 1.0], [2.0, 3.0], dtype=pl.Array(pl.Float64, 2)) for one in (NULL, NAN)
    ),
    "a mask of NumPy": (masked(False, True), masked(False, False)),
    "zeros": (bare(np.array([0.0])), bare(np.array([-0.0]))),
    "zeros of Python": (bare([0.0]), bare([-0.0])),
    "infinity": (bare(np.array([INFINITE])), bare(np.array([audit.LARGEST]))),
    "minus infinity": (bare(np.array([-INFINITE])), bare(np.array([-audit.LARGEST]))),
    "minus infinity and NaN": (bare(np.array([-INFINITE])), bare(np.array([NAN]))),
    "integers": (bare(np.array([LARGE])), bare(np.array([LARGE + 1]))),
    "integers of one low byte": (bare(np.int64(LARGE - 128)), bare(np.int64(LARGE + 128))),
    "unsigned integers": tuple(bare(np.array([2**64 - less], dtype=np.uint64)) for less in (1, 2)),
    "integers next to null": (bare(LARGE, NULL), bare(LARGE + 1, NULL)),
    "integers of pandas next to NA": tuple(of_pandas(LARGE + more, NULL, dtype="Int64") for more in (0, 1)),
    "integers of 128 bits": tuple(bare(2**100 + more, 1, dtype=pl.Int128) for more in (0, 1)),
    "integers of Python": (bare(LARGE), bare(LARGE + 1)),
    "integers in a list": (bare([LARGE, 1]), bare([LARGE + 1, 1])),
    "integers beyond all floats": (bare(10**400), bare(10**400 + 1)),
    "decimals": (bare(Decimal("0.1")), bare(Decimal("0.1") + Decimal(10) ** -25)),
    "decimals beyond all floats": (bare([Decimal("1e400")]), bare([Decimal("Infinity")])),
    "fractions": (bare(Fraction(1, 3)), bare(Fraction(1 / 3))),
    "times": tuple(bare(np.array([LARGE + more], dtype="datetime64[ns]")) for more in (0, 1)),
    "long doubles": tuple(
        bare(np.array([1.0], dtype=np.longdouble) + more * np.finfo(np.longdouble).eps) for more in (0, 1)
    ),
    "clock times": tuple(
        (lambda more=more: pl.DataFrame({"t": pl.Series([1 + more], dtype=pl.Int64).cast(pl.Time)})) for more in (0, 1)
    ),
    "times of pandas": tuple(of_pandas(LARGE + more, dtype="timedelta64[ns]") for more in (0, 1)),
}
OTHER_TYPES = {
    "a list": (bare([1, 2]), bare([True, 2])),
    "the places in a list": (bare([1, True]), bare([True, 1])),
    "integers and floats": (bare([1]), bare([1.0])),
    "decimals and floats": (bare((Decimal(1),)), bare((1.0,))),
    "floats of NumPy": (bare([np.float64(1)]), bare([1.0])),
    "units of time": (bare([np.timedelta64(1, "s")]), bare([np.timedelta64(1, "h")])),
    "an array of objects": tuple(bare(np.array([one, 2], dtype=object)) for one in (1, True)),
    "a column of objects": (of_pandas(1, 2.0, dtype=object), of_pandas(1.0, 2.0, dtype=object)),
    "levels of pandas": (of_levels(1), of_levels(1, 2)),
    "the order of a dict": (lambda: {"a": 1.0, "b": 1.0}, lambda: {"b": 1.0, "a": 1.0}),
    "words in the order of a dict": (lambda: {"a": "x", "b": "y"}, lambda: {"b": "y", "a": "x"}),
    "names of a dict": (lambda: {1: 1.0}, lambda: {"1": 1.0}),
    "a text like an address": (lambda: "0xabcdef01", lambda: "0x12345678"),
    "a key like an address": (frame_with({"k": ["0xabcdef01"]}), frame_with({"k": ["0x12345678"]})),
    "a null array": tuple(
        frame_with({"a": [row, [1, 2]]}, schema={"a": pl.Array(pl.Int64, 2)}) for row in (None, [None, None])
    ),
    "a struct": (frame_with({"a": [{"x": 1}, None]}), frame_with({"a": [{"x": 1}, {"x": None}]})),
    "names of columns of pandas": (
        pandas_with(lambda frame: frame.rename(columns={frame.columns[0]: 1})),
        pandas_with(lambda frame: frame.rename(columns={frame.columns[0]: "1"})),
    ),
    "the name of the columns of pandas": (
        pandas_with(lambda frame: frame),
        pandas_with(lambda frame: frame.rename_axis(columns="of")),
    ),
}


@pytest.mark.parametrize("what", ONE_FLOAT)
def test_values_of_one_float_are_told_apart(what):
    left, right = ONE_FLOAT[what]
    for sides in ((left, right), (right, left)):
        found = dpf.audit.epsilon(*sides, claimed=1.0, samples=100)
        assert not found.holds
        assert found.differences == () or "pandas" in what
    assert dpf.audit.epsilon(left, left, claimed=1.0, samples=100).holds


@pytest.mark.parametrize("what", OTHER_TYPES)
def test_types_of_equal_numbers_are_told_apart(what):
    left, right = OTHER_TYPES[what]
    found = dpf.audit.epsilon(left, right, claimed=1.0, samples=100)
    assert not found.holds
    assert found.differences


BORDERS = (0, 2**53, 2**54, LARGE, 2**62, 2**63, 2**64 - 4_000)
NEAR = [border + more for border in BORDERS for more in range(-3, 3_000, 7)]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_a_float_and_its_rest_are_the_integer(dtype):
    integers = NEAR + [-one for one in NEAR] + [2**63 - 1, -(2**63), 2**64 - 1]
    kept = [one for one in integers if dtype is object or np.iinfo(dtype).min <= one <= np.iinfo(dtype).max]
    seen = audit.observe("left", lambda: np.array(kept, dtype=dtype), len(kept))
    assert [int(number) + int(rest) for number, rest in seen.numbers[:, :, 0]] == kept


def test_missing_values_change_neither_the_number_of_values_nor_the_text():
    columns = [pl.Series("n", [1, cell], dtype=pl.Int64) for cell in (2, NULL)]
    one, other = (audit.observe("left", lambda column=column: column, 2) for column in columns)
    assert one.numbers.shape == other.numbers.shape == (2, 2, 1)
    assert one.text == other.text


@pytest.mark.parametrize("total", [10, LARGE])
def test_noise_in_steps_of_four_shows_the_low_bits_of_totals(total):
    generator = np.random.default_rng(9)

    def release(total):
        return lambda: total + 4 * generator.integers(-(2**40), 2**40, 1_000)

    found = dpf.audit.epsilon(release(total), release(total + 1), claimed=1.0, **SURE)
    assert not found.holds
    assert found.event.startswith("low bits of value 0")


def test_signs_masks_and_low_bits_that_noise_alone_decides_are_no_objection():
    generator = np.random.default_rng(10)

    def release():
        large = LARGE + generator.integers(-(2**50), 2**50, 1_000)
        cells = generator.choice(np.array([0.0, -0.0, NAN, INFINITE, NULL, 1.0], dtype=object), 1_000)
        return pl.DataFrame({"large": large, "cells": pl.Series(cells.tolist(), dtype=pl.Float64)})

    found = dpf.audit.epsilon(release, release, claimed=0.2, **SURE)
    assert found.holds
    assert found.differences == ()


PEOPLE = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
FEW = {"samples": 100, "confidence": 1 - 1e-6}


def counted(rows):
    """Return a count with hardly any noise, while the tests below claim epsilon 0.01."""
    return PEOPLE[:rows].dp.count(epsilon=50, ledger=dpf.Ledger(epsilon=50))


def in_groups(rows):
    asked = PEOPLE[:rows].dp.group_by("ward", keys=["A", "B"])
    return asked.count(epsilon=50, ledger=dpf.Ledger(epsilon=50), denoise=None)


def pandas_of(rows):
    return pytest.importorskip("pandas").DataFrame({"n": [rows]})


FORMS = {
    "a frame": counted,
    "joined results": lambda rows: dpf.concat([counted(rows), counted(rows)], names=["one", "two"]),
    "a computed result": lambda rows: in_groups(rows).dp.total(),
    "renamed columns": lambda rows: counted(rows).dp.relabel(columns={"count": "n"}),
    "frames in a dict": lambda rows: {"n": [counted(rows), "people"]},
    "a Series": lambda rows: counted(rows)["count"],
    "a Series of pandas": lambda rows: pandas_of(rows)["n"],
    "an index of pandas": lambda rows: pandas_of(rows).set_index("n"),
    "integers of pandas with a missing one": lambda rows: pandas_of(rows).astype("Int64").reindex([0, 1]),
    "a column of decimals": lambda rows: pl.DataFrame({"n": [Decimal(rows), None]}),
    "a column of lists": lambda rows: pl.DataFrame({"n": [[rows, 1]]}),
    "an array of objects": lambda rows: np.array([Decimal(rows), 1], dtype=object),
    "days": lambda rows: np.array([rows], dtype="datetime64[D]"),
    "integers beyond all floats": lambda rows: [(rows - 2) * 10**400, 1],
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_every_form_are_looked_at(form):
    left, right = (lambda rows=rows: FORMS[form](rows) for rows in (3, 2))
    found = dpf.audit.epsilon(left, right, claimed=0.01, **FEW)
    assert not found.holds
    assert found.event.startswith("value")


def test_a_column_of_objects_is_divided_among_outcomes():
    seen = audit.observe("left", lambda: pl.DataFrame({"n": [Decimal(1), None, Decimal(3), Decimal(4)]}), 2)
    np.testing.assert_array_equal(seen.numbers[:, 0], [[1.0, np.nan], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("answer", "way_out"),
    [
        (pl.LazyFrame({"n": [1]}), r"a LazyFrame.*End it with \.collect\(\)"),
        ([object()], "Return the numbers in it"),
        ({"n": 1j}, "not a complex"),
    ],
)
def test_an_answer_that_cannot_be_looked_at_is_refused(answer, way_out):
    with pytest.raises(dpf.InvalidType, match=f"right must return frames.*{way_out}"):
        dpf.audit.epsilon(SILENT, lambda: answer, claimed=1.0, samples=100)


def test_an_answer_that_cannot_be_read_is_no_outcome(monkeypatch):
    def fails(record):
        raise KeyError("columns")

    monkeypatch.setattr(audit, "public_record", fails)
    with pytest.raises(KeyError):
        dpf.audit.epsilon(lambda: counted(3), lambda: counted(2), claimed=1.0, samples=100)


def one_mean(frame, **options):
    return frame.dp.mean("age", bounds=(0, 100), epsilon=0.01, ledger=dpf.Ledger(epsilon=1), **options)


ASKED = {
    "a mean with checks": one_mean,
    "a mean of a population": lambda frame: one_mean(frame, checks=False, population=True),
    "a computed result": lambda frame: (
        frame.dp.group_by("ward", keys=["A", "B"])
        .count(epsilon=0.01, ledger=dpf.Ledger(epsilon=1), denoise=None)
        .dp.total()
    ),
    "joined results": lambda frame: dpf.concat([one_mean(frame)]),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_warning_is_not_hidden_by_numbers_of_the_record(what):
    def release(frame):
        def once():
            if frame.height == 3:
                warnings.warn("a value of 62", stacklevel=1)
            return ASKED[what](frame)

        return once

    found = dpf.audit.epsilon(release(PEOPLE), release(PEOPLE[:2]), claimed=0.01, **FEW)
    assert not found.holds
    assert found.event.startswith("shows '/warnings: ")


SUGGESTED = {
    "suggested bounds": lambda frame: frame.dp.suggest_bounds("age", epsilon=0.01, ledger=dpf.Ledger(epsilon=1)),
}


@pytest.mark.parametrize("what", ASKED | SUGGESTED)
def test_noise_of_the_record_is_no_difference(what):
    def release(frame):
        def once():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpf.BoundsWarning)  # it depends on the noise of the checks
                return (ASKED | SUGGESTED)[what](frame)

        return once

    found = dpf.audit.epsilon(release(PEOPLE), release(PEOPLE[:2]), claimed=0.01, **FEW)
    assert found.differences == ()
    assert found.holds


@pytest.mark.parametrize("kind", ["totals", "checks"])
def test_noisy_numbers_of_the_record_are_looked_at(kind):
    def release(frame):
        def once():
            result = one_mean(frame)
            record = build.record_of(result)
            if kind == "checks":
                changed = {"checks": [{**check, "count": float(frame.height)} for check in record["checks"]]}
            else:
                (said,) = record["measures"].values()
                totals = [[float(frame.height)] * len(each) for each in said["totals"]]
                changed = {"measures": {name: {**said, "totals": totals} for name in record["measures"]}}
            return build.attach(result, {**record, **changed})

        return once

    assert not dpf.audit.epsilon(release(PEOPLE), release(PEOPLE[:2]), claimed=0.01, **FEW).holds


def test_texts_that_are_never_seen_again_prove_nothing():
    numbers = itertools.count()

    def release():
        return f"answer {next(numbers)}"

    assert dpf.audit.epsilon(release, release, claimed=0.01, samples=1_000, confidence=1 - 1e-6).holds


def test_the_bits_of_float_noise_are_found():
    """Float noise on two totals falls on different grids, so the last bits of the answers differ."""
    generator = np.random.default_rng(7)

    def release(total):
        return lambda: np.float64(total) + 2.0**-46 * generator.integers(0, 2**20, 1_000) * (2 if total else 1)

    found = dpf.audit.epsilon(release(0), release(1e-300), claimed=0.1, **SURE | {"samples": 40_000})
    assert not found.holds


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("left must be a function", {"left": 1}),
        ("claimed must be finite", {"claimed": float("nan")}),
        ("claimed must be a number", {"claimed": "1"}),
        ("delta must be a number with 0 <= delta < 1", {"delta": 1}),
        ("samples must be a whole number from 40", {"samples": 10}),
        ("samples must be a whole number", {"samples": 1e3}),
        ("outcomes must be a whole number from 1", {"outcomes": 0}),
        ("outcomes must divide the 1 number that", {"outcomes": 3}),
        ("confidence must be between 0 and 1", {"confidence": 1.0}),
    ],
)
def test_wrong_audits_are_refused(words, change):
    plain = {"left": SILENT, "right": SILENT, "claimed": 1.0, "samples": 100} | change
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match=words):
        dpf.audit.epsilon(plain.pop("left"), plain.pop("right"), **plain)


def test_a_finding_prints_in_words():
    found = dpf.audit.epsilon(lambda: "a", lambda: "b", claimed=1.0, delta=1e-6, samples=100)
    assert "epsilon is at least" in str(found)
    assert "OBJECTION" in str(found)
    assert "delta 1e-06" in str(found)
    assert str(found).count("only one side showed") == 2


def test_confidence_limits_are_exact_at_the_ends():
    size, alpha = 50, 1e-3
    assert audit.at_least(size, size, alpha) == pytest.approx(alpha ** (1 / size), rel=1e-12)
    assert audit.at_most(0, size, alpha) == pytest.approx(1 - alpha ** (1 / size), rel=1e-12)
    assert (audit.at_least(0, size, alpha), audit.at_most(size, size, alpha)) == (0.0, 1.0)


def test_both_limits_of_a_bound_share_its_chance_of_error():
    size, alpha = 50, 1e-3
    least = (alpha / 2) ** (1 / size)
    assert audit.epsilon_bound(0.0)(size, 0, size, alpha) == pytest.approx(math.log(least / (1 - least)))
    assert audit.mu_bound(size, 0, size, alpha) == pytest.approx(2 * special.ndtri(least))


def test_an_audit_leaves_the_log_of_dpframe_as_it_was(monkeypatch):
    log = logging.getLogger("dpframe")
    monkeypatch.setattr(log, "level", logging.ERROR)
    before = log.level, log.propagate, list(log.handlers)
    dpf.audit.epsilon(lambda: "a", lambda: "a", claimed=1.0, samples=100)
    assert (log.level, log.propagate, log.handlers) == before
