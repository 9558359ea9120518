"""The table of refusals: wrong calls, the class of error each gets, and the words that it says.

An entry's call is made on `private_frame` in every engine where it can be made, inside ``with ledger:``. The
words are the whole message, or (as a tuple) its parts around what differs between engines, such as a dtype.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe.accessor import options

ALL = ("pandas", "polars", "lazy")
POLARS = ("polars", "lazy")
PANDAS = ("pandas",)
ANY = ("polars",)  # the call does not depend on the frame: once is enough

NAN, INF = float("nan"), float("inf")
WARDS = ["A", "B"]
NOON = datetime(2024, 1, 1, 12)
UTC_NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Refusal:
    """One wrong call and what it must get."""

    id: str
    call: Callable[[Any], Any]
    error: type[dpf.DpframeError]
    words: str | tuple[str, ...]
    engines: tuple[str, ...] = ALL
    ledger: Callable[[], dpf.Ledger | None] = lambda: dpf.Ledger(epsilon=1)
    prepare: Callable[[Any], Any] = lambda frame: frame  # what the call is made on, made from the frame beforehand


def private_frame(engine: Any) -> Any:
    """People, in the columns that a library has a dtype of its own for."""
    columns: dict[str, list[Any]] = {
        "age": [31, 45, 62, 7],
        "cost": [10.5, 20.0, None, 3.25],
        "ward": ["A", "B", "A", None],
        "patient": [1, 1, 2, 3],
        "at": [NOON, NOON + timedelta(days=1), NOON, NOON],
        "zoned": [UTC_NOON, UTC_NOON + timedelta(days=1), UTC_NOON, UTC_NOON],
        "stay": [timedelta(days=1), timedelta(days=2), timedelta(days=1), timedelta(days=1)],
    }
    if engine.is_pandas:
        return engine(columns).astype({"ward": "string"})  # a column of objects may hold numbers: it is never refused
    columns |= {
        "day": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1), None],
        "tags": [["x"], [], ["y"], None],
        "point": [{"x": 1}, {"x": 2}, {"x": 3}, None],
        "blob": [b"a", b"b", b"c", None],
    }
    return engine(columns)


def gdp() -> dpf.Ledger:
    return dpf.Ledger(epsilon=1, delta=1e-6)


def no_ledger() -> None:
    return None


def released(frame: Any) -> Any:
    """A result, paid from another ledger."""
    return frame.dp.histogram("age", bins=[0, 50, 100], epsilon=1, ledger=dpf.Ledger(epsilon=1))


def pandas() -> Any:
    import pandas

    return pandas


def laplace(**changed: Any) -> Callable[..., Any]:
    """A calibration with something changed."""

    def calibration(sensitivity: Any, loss: Any) -> dpf.Laplace:
        asked = {"sensitivity": sensitivity.norm(1), "epsilon": loss.epsilon, "grid": sensitivity.grid} | changed
        return dpf.Laplace.calibrate(**asked)

    return calibration


def foreign_file() -> Path:
    path = Path(tempfile.mkdtemp()) / "foreign.parquet"
    pl.DataFrame({"age": [31]}).write_parquet(path)
    return path


OPTIONS = ", ".join(options.OPTIONS)
BOUNDED = dpf.truncated_generalized_gaussian(p=2, output=(0, 100))
MISSING, TYPE, VALUE = dpf.MissingArgument, dpf.InvalidType, dpf.InvalidArgument
UNKNOWN, DTYPE = dpf.UnknownColumn, dpf.WrongDtype

PRICE = [
    Refusal(
        "epsilon-missing",
        lambda df: df.dp.count(),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-none",
        lambda df: df.dp.count(epsilon=None),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "within-and-epsilon",
        lambda df: df.dp.count(within=50, epsilon=1),
        VALUE,
        "within and epsilon must not both be given: each says what the call costs. Keep one.",
    ),
    Refusal(
        "within-and-share",
        lambda df: df.dp.count(within=50, share=0.5),
        VALUE,
        "within and share must not both be given: each says what the call costs. Keep one.",
    ),
    Refusal(
        "within-negative",
        lambda df: df.dp.count(within=-1),
        VALUE,
        "within must be a finite number of at least 0, not -1. Write for instance within=50.",
    ),
    Refusal(
        "within-text",
        lambda df: df.dp.count(within="50"),
        TYPE,
        "within must be a number, not '50' (str). Write for instance within=50.",
    ),
    Refusal(
        "within-list",
        lambda df: df.dp.count(within=[50, 5]),
        TYPE,
        "within must be a number, not [50, 5] (list). Write for instance within=50.",
    ),
    Refusal(
        "within-of-another-column",
        lambda df: df.dp.count(within={"n": 50}),
        VALUE,
        "within must name every output column once (count), not ['n']. "
        "Write a number for all, or a dict with an error for each.",
    ),
    Refusal(
        "within-of-no-name",
        lambda df: df.dp.count(within={1: 50}),
        TYPE,
        "within must be a number, or a dict of numbers by output column. Write for instance within=50.",
    ),
    Refusal(
        "within-anything",
        lambda df: df.dp.count(within=1e300),
        VALUE,
        "within must be an error that takes some epsilon to reach, but any epsilon gives this one. "
        "Write a smaller one.",
    ),
    Refusal(
        "within-of-a-mean-without-size",
        lambda df: df.dp.mean("age", bounds=(0, 100), within=1),
        MISSING,
        "size must be given with within= for a mean (age_mean): its error depends on how many values a group has. "
        "Write for instance size=1_000, from what you know, never from the data.",
    ),
    Refusal(
        "within-half-the-range",
        lambda df: df.dp.mean("age", bounds=(0, 100), within=50, size=100),
        VALUE,
        "within must be below half the range of a mean's bounds, here 50, not 50: the middle of the bounds is never "
        "off by more, without a look. Write a smaller error for age_mean.",
    ),
    Refusal(
        "size-zero",
        lambda df: df.dp.mean("age", bounds=(0, 100), within=1, size=0),
        VALUE,
        "size must be a whole number above 0, not 0. Write for instance size=1_000.",
    ),
    Refusal(
        "size-float",
        lambda df: df.dp.mean("age", bounds=(0, 100), within=1, size=1.5),
        TYPE,
        "size must be a whole number above 0, not 1.5. Write for instance size=1_000.",
    ),
    Refusal(
        "confidence-one",
        lambda df: df.dp.count(within=50, confidence=1),
        VALUE,
        "confidence must be between 0 and 1, not 1. Write for instance confidence=0.95.",
    ),
    Refusal(
        "confidence-alone",
        lambda df: df.dp.count(epsilon=1, confidence=0.9),
        VALUE,
        "confidence must come with within=, the error that it speaks of, not alone. "
        "The errors of a result are those of 95% intervals.",
    ),
    Refusal(
        "epsilon-zero",
        lambda df: df.dp.count(epsilon=0),
        VALUE,
        "epsilon must be a finite number above 0, not 0. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-negative",
        lambda df: df.dp.count(epsilon=-1),
        VALUE,
        "epsilon must be a finite number above 0, not -1. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-nan",
        lambda df: df.dp.count(epsilon=NAN),
        VALUE,
        "epsilon must be a finite number above 0, not nan. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-inf",
        lambda df: df.dp.count(epsilon=INF),
        VALUE,
        "epsilon must be a finite number above 0, not inf. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-bool",
        lambda df: df.dp.count(epsilon=True),
        TYPE,
        "epsilon must be a number, not True (bool). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-string",
        lambda df: df.dp.count(epsilon="1"),
        TYPE,
        "epsilon must be a number, not '1' (str). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-complex",
        lambda df: df.dp.count(epsilon=1j),
        TYPE,
        "epsilon must be a number, not 1j (complex). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-subnormal",
        lambda df: df.dp.count(epsilon=1e-320),
        VALUE,
        "epsilon must be a finite number above 0, and not below 2.3e-308 like 1e-320. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-huge-integer",
        lambda df: df.dp.count(epsilon=10**400),
        VALUE,
        "epsilon must be a finite number above 0, not "
        "100000000000000000000000000000000000000000000000000000000.... Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-tiny-fraction",
        lambda df: df.dp.count(epsilon=Fraction(1, 10**400)),
        VALUE,
        "epsilon must be a finite number above 0, and not below 2.3e-308 like Fraction(1, "
        "100000000000000000000000000000000000000000000.... Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-decimal-nan",
        lambda df: df.dp.count(epsilon=Decimal("NaN")),
        VALUE,
        "epsilon must be a finite number above 0, not Decimal('NaN'). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-decimal-signalling-nan",
        lambda df: df.dp.count(epsilon=Decimal("sNaN")),
        VALUE,
        "epsilon must be a finite number above 0, not Decimal('sNaN'). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-list",
        lambda df: df.dp.count(epsilon=[0.1, 1]),
        TYPE,
        "epsilon must be a number, not [0.1, 1] (list). Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-array",
        lambda df: df.dp.count(epsilon=np.array([0.1, 1])),
        TYPE,
        "epsilon must be a number, not an ndarray. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-too-small-for-64-bits",
        lambda df: df.dp.count(epsilon=1e-300),
        VALUE,
        "epsilon must be large enough for noise that fits 64-bit integers, but would need a scale of more "
        "than 4.5e+15 grid steps. Write a larger epsilon.",
    ),
    Refusal(
        "epsilon-missing-sum",
        lambda df: df.dp.sum("age", bounds=(0, 100)),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-missing-mean",
        lambda df: df.dp.mean("age", bounds=(0, 100)),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-missing-histogram",
        lambda df: df.dp.histogram("age", bins=[0, 50, 100]),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "epsilon-missing-agg",
        lambda df: df.dp.group_by("ward", keys=WARDS).agg(dpf.count()),
        MISSING,
        "epsilon must be given (or share=, or within= an error): privacy has no default price. "
        "Write for instance epsilon=0.5.",
    ),
    Refusal(
        "delta-negative",
        lambda df: df.dp.count(epsilon=1, delta=-1e-6),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not -1e-06. Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-one",
        lambda df: df.dp.count(epsilon=1, delta=1),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not 1. Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-nan",
        lambda df: df.dp.count(epsilon=1, delta=NAN),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not nan. Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-inf",
        lambda df: df.dp.count(epsilon=1, delta=INF),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not inf. Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-string",
        lambda df: df.dp.count(epsilon=1, delta="1e-6"),
        TYPE,
        "delta must be a number, not '1e-6' (str). Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-bool",
        lambda df: df.dp.count(epsilon=1, delta=False),
        TYPE,
        "delta must be a number, not False (bool). Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-list",
        lambda df: df.dp.count(epsilon=1, delta=[1e-6]),
        TYPE,
        "delta must be a number, not [1e-06] (list). Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-subnormal",
        lambda df: df.dp.count(epsilon=1, delta=1e-320),
        VALUE,
        "delta must be a number with 0 <= delta < 1, and not below 2.3e-308 like 1e-320. Write for instance "
        "delta=1e-6.",
    ),
    Refusal(
        "delta-missing-gaussian",
        lambda df: df.dp.count(epsilon=1, mechanism="gaussian"),
        MISSING,
        "delta must be given for Gaussian noise. Write for instance delta=1e-6, or leave mechanism out for Laplace.",
    ),
    Refusal(
        "delta-zero-gaussian",
        lambda df: df.dp.count(epsilon=1, delta=0, mechanism="gaussian"),
        VALUE,
        "delta must be above 0 for Gaussian noise. Write for instance delta=1e-6.",
    ),
    Refusal(
        "delta-with-laplace",
        lambda df: df.dp.count(epsilon=1, delta=1e-6, mechanism="laplace"),
        VALUE,
        "delta must be left out with Laplace noise, which needs none, not 1e-06. Drop delta or mechanism.",
    ),
    Refusal(
        "delta-zero-under-gdp",
        lambda df: df.dp.count(epsilon=1, delta=0),
        VALUE,
        "delta must be above 0 for Gaussian noise. Leave it out to take the ledger's delta.",
        ledger=gdp,
    ),
    Refusal(
        "share-zero",
        lambda df: df.dp.count(share=0),
        VALUE,
        "share must be a number with 0 < share <= 1, not 0. Write for instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-negative",
        lambda df: df.dp.count(share=-0.5),
        VALUE,
        "share must be a number with 0 < share <= 1, not -0.5. Write for instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-above-one",
        lambda df: df.dp.count(share=1.5),
        VALUE,
        "share must be a number with 0 < share <= 1 (a float of at least 1e-6), not 1.5. Write for instance "
        "share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-nan",
        lambda df: df.dp.count(share=NAN),
        VALUE,
        "share must be a number with 0 < share <= 1, not nan. Write for instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-tiny",
        lambda df: df.dp.count(share=1e-9),
        VALUE,
        "share must be a number with 0 < share <= 1 (a float of at least 1e-6), not 1e-09. Write for "
        "instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-bool",
        lambda df: df.dp.count(share=True),
        TYPE,
        "share must be a number, not True (bool). Write for instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-string",
        lambda df: df.dp.count(share="1/2"),
        TYPE,
        "share must be a number, not '1/2' (str). Write for instance share=0.25 or share=Fraction(1, 52).",
    ),
    Refusal(
        "share-with-epsilon",
        lambda df: df.dp.count(epsilon=1, share=0.5),
        VALUE,
        "epsilon and share must not both be given (epsilon=1, share=0.5): each is the price of the whole "
        "call. Keep one.",
    ),
    Refusal(
        "share-with-delta",
        lambda df: df.dp.count(share=0.5, delta=1e-6),
        VALUE,
        "delta must not be given with share: a share takes its part of the ledger's delta.",
    ),
    Refusal(
        "share-gaussian-without-delta",
        lambda df: df.dp.count(share=0.5, mechanism="gaussian"),
        VALUE,
        "share must be a share of a ledger with a delta for Gaussian noise, and this ledger has none. Make "
        "one with dpf.Ledger(epsilon=..., delta=...), or leave mechanism out for Laplace.",
    ),
    Refusal(
        "share-without-limit",
        lambda df: df.dp.count(share=0.5),
        MISSING,
        "share must be a share of a limit, but this ledger has none. Make one with dpf.Ledger(epsilon=...), "
        "or write epsilon= instead of share=.",
        ledger=no_ledger,
    ),
    Refusal(
        "preview-no-prices",
        lambda df: df.dp.preview.count(epsilon=[]),
        VALUE,
        "epsilon must list at least one price. Write for instance epsilon=[0.1, 1].",
    ),
    Refusal(
        "preview-bad-price",
        lambda df: df.dp.preview.count(epsilon=[0.1, 0]),
        VALUE,
        "epsilon must be a finite number above 0, not 0. Write for instance epsilon=0.5.",
    ),
    Refusal(
        "preview-share-without-limit",
        lambda df: df.dp.preview.count(share=0.5),
        MISSING,
        "share must be a share of a limit, but this ledger has none. Make one with dpf.Ledger(epsilon=...), "
        "or write epsilon= instead of share=.",
        ledger=no_ledger,
    ),
]

BOUNDS = [
    Refusal(
        "bounds-missing-sum",
        lambda df: df.dp.sum("age", epsilon=1),
        MISSING,
        "bounds must be given: they are never taken from the data. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-missing-mean",
        lambda df: df.dp.mean("age", epsilon=1),
        MISSING,
        "bounds must be given: they are never taken from the data. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-missing-statistic",
        lambda df: dpf.mean("age"),
        MISSING,
        "bounds must be given: they are never taken from the data. Write for instance bounds=(0, 100).",
        ANY,
    ),
    Refusal(
        "bounds-reversed",
        lambda df: df.dp.sum("age", bounds=(90, 0), epsilon=1),
        VALUE,
        "bounds must be two numbers with lower < upper, not (90, 0). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-equal",
        lambda df: df.dp.mean("age", bounds=(5, 5), epsilon=1),
        VALUE,
        "bounds must be two numbers with lower < upper, not (5, 5). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-nan",
        lambda df: df.dp.sum("age", bounds=(0, NAN), epsilon=1),
        VALUE,
        "bounds must be finite and within +-2**53, not nan. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-infinite",
        lambda df: df.dp.sum("age", bounds=(-INF, 0), epsilon=1),
        VALUE,
        "bounds must be finite and within +-2**53, not -inf. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-strings",
        lambda df: df.dp.sum("age", bounds=("0", "1"), epsilon=1),
        TYPE,
        "bounds must be two numbers, not '0' (str). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-string",
        lambda df: df.dp.sum("age", bounds="01", epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not '01'. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-bools",
        lambda df: df.dp.sum("age", bounds=(False, True), epsilon=1),
        TYPE,
        "bounds must be two numbers, not False (bool). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-none-inside",
        lambda df: df.dp.sum("age", bounds=(0, None), epsilon=1),
        TYPE,
        "bounds must be two numbers, not None (NoneType). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-dates",
        lambda df: df.dp.sum("at", bounds=(date(2024, 1, 1), date(2025, 1, 1)), epsilon=1),
        TYPE,
        "bounds must be two numbers, not datetime.date(2024, 1, 1) (date). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-one-number",
        lambda df: df.dp.sum("age", bounds=100, epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not 100. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-pair-of-one",
        lambda df: df.dp.sum("age", bounds=(100,), epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not (100,). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-three-numbers",
        lambda df: df.dp.mean("age", bounds=(0, 50, 100), epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not (0, 50, 100). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-dict",
        lambda df: df.dp.sum("age", bounds={"lower": 0, "upper": 1}, epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not {'lower': 0, 'upper': 1}. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-beyond-floats",
        lambda df: df.dp.sum("age", bounds=(0, 2**53 + 1), epsilon=1),
        VALUE,
        "bounds must be finite and within +-2**53, not 9007199254740993. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-huge-integer",
        lambda df: df.dp.sum("age", bounds=(0, 10**400), epsilon=1),
        VALUE,
        "bounds must be finite and within +-2**53, not "
        "100000000000000000000000000000000000000000000000000000000.... Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-signalling-nan",
        lambda df: df.dp.sum("age", bounds=(0, Decimal("sNaN")), epsilon=1),
        VALUE,
        "bounds must be finite and within +-2**53, not Decimal('sNaN'). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-too-close",
        lambda df: df.dp.sum("age", bounds=(1, 1 + 2**-40), epsilon=1),
        VALUE,
        "bounds must differ by more than 2**-30 of their size, unlike (1, 1.0000000000009095). Subtract a "
        "constant first.",
    ),
    Refusal(
        "bounds-too-small",
        lambda df: df.dp.sum("age", bounds=(0, 1e-300), epsilon=1),
        VALUE,
        "bounds must reach beyond 2**-900, unlike (0, 1e-300). Multiply the column first.",
    ),
    Refusal(
        "bounds-array",
        lambda df: df.dp.sum("age", bounds=np.array([0, 100]), epsilon=1),
        TYPE,
        "bounds must be a pair (lower, upper), not an ndarray. Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-in-agg",
        lambda df: df.dp.agg(dpf.sum("age", bounds=(1, 0)), epsilon=1),
        VALUE,
        "bounds must be two numbers with lower < upper, not (1, 0). Write for instance bounds=(0, 100).",
    ),
    Refusal(
        "bounds-of-a-count",
        lambda df: df.dp.count("age", bounds=(0, 1), epsilon=1),
        TYPE,
        f"bounds is not an argument of count. Its arguments are column, {OPTIONS}.",
    ),
]

KEYS = [
    Refusal(
        "keys-missing",
        lambda df: df.dp.group_by("ward").count(epsilon=1),
        MISSING,
        'keys must be given: they are never taken from the data. Write for instance keys=["A", "B"] or '
        'keys={"ward": ["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "keys-missing-pair",
        lambda df: df.dp.group_by("ward", "age").count(epsilon=1),
        MISSING,
        'keys must be given: they are never taken from the data. Write for instance keys=["A", "B"] or '
        'keys={"ward": ["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "keys-array",
        lambda df: df.dp.group_by("ward", keys=np.array(WARDS)).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not an ndarray: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
    ),
    Refusal(
        "keys-polars-series",
        lambda df: df.dp.group_by("ward", keys=pl.Series(WARDS)).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not a Series: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
    ),
    Refusal(
        "keys-pandas-series",
        lambda df: df.dp.group_by("ward", keys=df["ward"]).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not a Series: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
        PANDAS,
    ),
    Refusal(
        "keys-index",
        lambda df: df.dp.group_by("ward", keys=pandas().Index(WARDS)).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not an Index: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
        PANDAS,
    ),
    Refusal(
        "keys-unique",
        lambda df: df.dp.group_by("ward", keys=df["ward"].unique()).count(epsilon=1),
        TYPE,
        (
            "keys must be a list, tuple or range that you wrote down, not",
            "keys that come from data reveal who is in it. Write for instance keys=",
        ),
        ("pandas", "polars"),
    ),
    Refusal(
        "keys-set",
        lambda df: df.dp.group_by("ward", keys={"A", "B"}).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not a set: keys that come from data reveal "
        'who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "keys-generator",
        lambda df: df.dp.group_by("ward", keys=(key for key in WARDS)).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not a generator: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
    ),
    Refusal(
        "keys-string",
        lambda df: df.dp.group_by("ward", keys="AB").count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range, not 'AB'. Write keys=['AB'].",
    ),
    Refusal(
        "keys-number",
        lambda df: df.dp.group_by("age", keys=3).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not an int: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
    ),
    Refusal(
        "keys-dict-of-other-columns",
        lambda df: df.dp.group_by("ward", keys={"age": [1]}).count(epsilon=1),
        VALUE,
        "keys must name the columns ['ward'] and no other, not ['age']. Write keys={'ward': [...]}.",
    ),
    Refusal(
        "keys-dict-of-arrays",
        lambda df: df.dp.group_by("ward", keys={"ward": np.array(WARDS)}).count(epsilon=1),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not an ndarray: keys that come from data "
        'reveal who is in it. Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", '
        '"m"]}.',
    ),
    Refusal(
        "keys-list-for-two-columns",
        lambda df: df.dp.group_by("ward", "age", keys=WARDS).count(epsilon=1),
        TYPE,
        "keys must be a dict {column: values} or a frame of combinations for 2 columns, not a list. Write "
        "keys={'ward': [...], 'age': [...]}.",
    ),
    Refusal(
        "keys-frame-of-other-columns",
        lambda df: df.dp.group_by("ward", keys=pl.DataFrame({"age": [1]})).count(epsilon=1),
        VALUE,
        "keys must be a frame of the columns ['ward'], not of ['age'].",
    ),
    Refusal(
        "keys-frame-empty",
        lambda df: df.dp.group_by("age", keys=pl.DataFrame({"age": []})).count(epsilon=1),
        VALUE,
        'keys must name at least one value of \'age\'. Write for instance keys=["A", "B"] or keys={"ward": '
        '["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "keys-duplicate",
        lambda df: df.dp.group_by("ward", keys=["A", "B", "A"]).count(epsilon=1),
        VALUE,
        "keys must be distinct, but 'A' occurs twice. Name each value once.",
    ),
    Refusal(
        "keys-one-and-true",
        lambda df: df.dp.group_by("age", keys=[1, True]).count(epsilon=1),
        VALUE,
        "keys must be distinct, but True occurs twice. Name each value once.",
    ),
    Refusal(
        "keys-one-and-float",
        lambda df: df.dp.group_by("age", keys=[1, 1.0]).count(epsilon=1),
        VALUE,
        "keys must be distinct, but 1.0 occurs twice. Name each value once.",
    ),
    Refusal(
        "keys-combination-twice",
        lambda df: df.dp.group_by("ward", "age", keys=pl.DataFrame({"ward": ["A", "A"], "age": [1, 1]})).count(
            epsilon=1
        ),
        VALUE,
        "keys must be distinct, but ('A', 1) occurs twice. Name each value once.",
    ),
    Refusal(
        "keys-nan",
        lambda df: df.dp.group_by("cost", keys=[1.0, NAN]).count(epsilon=1),
        VALUE,
        "keys must be finite, not nan. Ask for the row of missing values with None.",
    ),
    Refusal(
        "keys-inf",
        lambda df: df.dp.group_by("cost", keys=[INF]).count(epsilon=1),
        VALUE,
        "keys must be finite, not inf. Ask for the row of missing values with None.",
    ),
    Refusal(
        "keys-decimal-nan",
        lambda df: df.dp.group_by("cost", keys=[Decimal("NaN")]).count(epsilon=1),
        VALUE,
        "keys must be finite, not NaN. Ask for the row of missing values with None.",
    ),
    Refusal(
        "keys-nat",
        lambda df: df.dp.group_by("at", keys=[np.datetime64("NaT", "us")]).count(epsilon=1),
        VALUE,
        "keys must be finite, not NaT. Ask for the row of missing values with None.",
    ),
    Refusal(
        "keys-mixed",
        lambda df: df.dp.group_by("ward", keys=["A", 1]).count(epsilon=1),
        TYPE,
        "keys of column 'ward' must be of one kind, not numbers and strings mixed. Write all as numbers, or "
        "all as strings.",
    ),
    Refusal(
        "keys-mixed-zones",
        lambda df: df.dp.group_by("at", keys=[NOON, UTC_NOON]).count(epsilon=1),
        TYPE,
        "keys of column 'at' must all have a time zone, or none of them. Give each datetime a tzinfo.",
    ),
    Refusal(
        "keys-empty",
        lambda df: df.dp.group_by("ward", keys=[]).count(epsilon=1),
        VALUE,
        'keys must name at least one value of \'ward\'. Write for instance keys=["A", "B"] or keys={"ward": '
        '["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "keys-empty-dict",
        lambda df: df.dp.group_by("ward", keys={}).count(epsilon=1),
        VALUE,
        "keys must name the columns ['ward'] and no other, not []. Write keys={'ward': [...]}.",
    ),
    Refusal(
        "keys-nested",
        lambda df: df.dp.group_by("ward", keys=[["A", "B"]]).count(epsilon=1),
        TYPE,
        "keys must be numbers, strings, dates, durations or None, not ['A', 'B'] (list).",
    ),
    Refusal(
        "keys-bytes",
        lambda df: df.dp.group_by("ward", keys=[b"A"]).count(epsilon=1),
        TYPE,
        "keys must be numbers, strings, dates, durations or None, not b'A' (bytes).",
    ),
    Refusal(
        "keys-strings-for-numbers",
        lambda df: df.dp.group_by("age", keys=["31", "45"]).count(epsilon=1),
        DTYPE,
        ("keys of column 'age' must suit its dtype", "but they are strings. Write numbers."),
    ),
    Refusal(
        "keys-numbers-for-strings",
        lambda df: df.dp.group_by("ward", keys=[1, 2]).count(epsilon=1),
        DTYPE,
        ("keys of column 'ward' must suit its dtype", "but they are numbers. Write strings."),
    ),
    Refusal(
        "keys-dates-for-numbers",
        lambda df: df.dp.group_by("age", keys=[date(2024, 1, 1)]).count(epsilon=1),
        DTYPE,
        ("keys of column 'age' must suit its dtype", "but they are dates. Write numbers."),
    ),
    Refusal(
        "keys-aware-for-naive",
        lambda df: df.dp.group_by("at", keys=[UTC_NOON]).count(epsilon=1),
        DTYPE,
        (
            "keys of column 'at' must have a time zone if and only if the column has one, and its dtype",
            "has none. Leave tzinfo out.",
        ),
    ),
    Refusal(
        "keys-naive-for-aware",
        lambda df: df.dp.group_by("zoned", keys=[NOON]).count(epsilon=1),
        DTYPE,
        (
            "keys of column 'zoned' must have a time zone if and only if the column has one, and its dtype",
            "has one. Give each datetime a tzinfo.",
        ),
    ),
    Refusal(
        "keys-not-exact",
        lambda df: df.dp.group_by("age", keys=[1.5]).count(epsilon=1),
        VALUE,
        "keys of column 'age' must convert exactly to its dtype Int64, unlike 1.5. Leave it out, or cast the column.",
        POLARS,
    ),
    Refusal(
        "keys-too-large",
        lambda df: df.dp.group_by("age", keys=[2**70]).count(epsilon=1),
        VALUE,
        "keys of column 'age' must convert exactly to its dtype Int64, unlike 1180591620717411303424. Leave "
        "it out, or cast the column.",
        POLARS,
    ),
    Refusal(
        "keys-too-many",
        lambda df: df.dp.group_by("age", keys=range(2**31)).count(epsilon=1),
        VALUE,
        "keys and bins must make at most max_cells=10_000_000 cells, not 2147483648. Declare fewer.",
    ),
    Refusal(
        "by-missing",
        lambda df: df.dp.group_by(keys=WARDS),
        MISSING,
        'by must be given: name the columns to group by, as in group_by("ward", keys=[...]).',
    ),
    Refusal(
        "by-empty-list",
        lambda df: df.dp.group_by([], keys=WARDS),
        MISSING,
        'by must be given: name the columns to group by, as in group_by("ward", keys=[...]).',
    ),
    Refusal(
        "by-twice",
        lambda df: df.dp.group_by("ward", "ward", keys={"ward": WARDS}),
        VALUE,
        "by must name each column once, but 'ward' occurs twice. Drop the second.",
    ),
    Refusal(
        "by-number",
        lambda df: df.dp.group_by(3, keys=WARDS),
        TYPE,
        "column must be the name of a column (a string), not 3. Columns named otherwise can be renamed: "
        "df.rename(columns=str).",
    ),
    Refusal(
        "by-expression",
        lambda df: df.dp.group_by(pl.col("ward"), keys=WARDS),
        TYPE,
        'column must be the name of a column (a string), not an Expr. Write its name, as in "age".',
    ),
    Refusal(
        "by-series",
        lambda df: df.dp.group_by(df["ward"], keys=WARDS),
        TYPE,
        'column must be the name of a column (a string), not a Series. Write its name, as in "age".',
        ("pandas", "polars"),
    ),
    Refusal(
        "by-and-price",
        lambda df: df.dp.group_by("ward", keys=WARDS, epsilon=1).count(),
        TYPE,
        "epsilon is not an argument of group_by, but of the question after it: group_by(...).count(epsilon=...).",
    ),
    Refusal(
        "by-misspelt",
        lambda df: df.dp.group_by("ward", key=WARDS).count(epsilon=1),
        TYPE,
        "key is not an argument of group_by. Did you mean keys?",
    ),
]

BINS = [
    Refusal(
        "bins-missing",
        lambda df: df.dp.histogram("age", epsilon=1),
        MISSING,
        "bins must be given (for strings: categories=[...]), since they are never taken from the data. Write "
        "for instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-missing-strings",
        lambda df: df.dp.histogram("ward", epsilon=1),
        MISSING,
        "bins must be given (for strings: categories=[...]), since they are never taken from the data. Write "
        "for instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-missing-with-range",
        lambda df: df.dp.histogram("age", range=(0, 100), epsilon=1),
        MISSING,
        "bins must be given (for strings: categories=[...]), since they are never taken from the data. Write "
        "for instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-of-a-categorical",
        lambda df: df.assign(ward=df["ward"].astype("category")).dp.histogram("ward", epsilon=1),
        MISSING,
        "bins must be given (for strings: categories=[...]), since they are never taken from the data. Write "
        "for instance bins=range(0, 101, 10), or bins=20, range=(0, 100). The levels of a pandas Categorical "
        "come from the data too.",
        PANDAS,
    ),
    Refusal(
        "bins-one-edge",
        lambda df: df.dp.histogram("age", bins=[0], epsilon=1),
        VALUE,
        "bins must hold at least 2 edges, not 1. Write for instance bins=range(0, 101, 10), or bins=20, "
        "range=(0, 100).",
    ),
    Refusal(
        "bins-no-edge",
        lambda df: df.dp.histogram("age", bins=[], epsilon=1),
        VALUE,
        "bins must hold at least 2 edges, not 0. Write for instance bins=range(0, 101, 10), or bins=20, "
        "range=(0, 100).",
    ),
    Refusal(
        "bins-reversed",
        lambda df: df.dp.histogram("age", bins=[100, 50, 0], epsilon=1),
        VALUE,
        "bins must increase strictly, but 100 is not below 50. Write the edges in order, each of them once.",
    ),
    Refusal(
        "bins-equal-edges",
        lambda df: df.dp.histogram("age", bins=[0, 50, 50, 100], epsilon=1),
        VALUE,
        "bins must increase strictly, but 50 is not below 50. Write the edges in order, each of them once.",
    ),
    Refusal(
        "bins-nan",
        lambda df: df.dp.histogram("age", bins=[0, NAN], epsilon=1),
        VALUE,
        "bins must be finite and within +-2**53, not nan. To keep what lies outside in the end bins, write "
        'outside="clip".',
    ),
    Refusal(
        "bins-inf",
        lambda df: df.dp.histogram("age", bins=np.array([0, INF]), epsilon=1),
        VALUE,
        "bins must be finite and within +-2**53, not inf. To keep what lies outside in the end "
        'bins, write outside="clip".',
    ),
    Refusal(
        "bins-huge-integer",
        lambda df: df.dp.histogram("age", bins=[0, 10**400], epsilon=1),
        VALUE,
        "bins must be finite and within +-2**53, not "
        "100000000000000000000000000000000000000000000000000000000.... To keep what lies outside in the end "
        'bins, write outside="clip".',
    ),
    Refusal(
        "bins-string",
        lambda df: df.dp.histogram("age", bins="auto", epsilon=1),
        TYPE,
        "bins must be edges, a whole number of bins, or a step of dates (1d, 1w, 1mo, 1q, 1y), not 'auto'. Write for "
        "instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-strings",
        lambda df: df.dp.histogram("ward", bins=["A", "B"], epsilon=1),
        TYPE,
        "bins must hold numbers, dates, datetimes or durations, not 'A' (str). For strings declare categories=[...].",
    ),
    Refusal(
        "bins-bools",
        lambda df: df.dp.histogram("age", bins=[False, True], epsilon=1),
        TYPE,
        "bins must hold numbers, dates, datetimes or durations, not False (bool). For strings declare "
        "categories=[...].",
    ),
    Refusal(
        "bins-int-without-range",
        lambda df: df.dp.histogram("age", bins=20, epsilon=1),
        MISSING,
        "range must be given when bins is a number of bins: it is never taken from the data. Write for "
        "instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-zero",
        lambda df: df.dp.histogram("age", bins=0, range=(0, 100), epsilon=1),
        VALUE,
        "bins must be a number of bins from 1 to 2**30, not 0. Write for instance bins=range(0, 101, 10), or "
        "bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-negative",
        lambda df: df.dp.histogram("age", bins=-3, range=(0, 100), epsilon=1),
        VALUE,
        "bins must be a number of bins from 1 to 2**30, not -3. Write for instance bins=range(0, 101, 10), "
        "or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-true",
        lambda df: df.dp.histogram("age", bins=True, range=(0, 100), epsilon=1),
        TYPE,
        "bins must be edges or a whole number of bins, not True. Write for instance bins=range(0, 101, 10), "
        "or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-float",
        lambda df: df.dp.histogram("age", bins=10.0, range=(0, 100), epsilon=1),
        TYPE,
        "bins must be edges or a whole number of bins, not 10.0. Write for instance bins=range(0, 101, 10), "
        "or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-too-many",
        lambda df: df.dp.histogram("age", bins=2**31, range=(0, 100), epsilon=1),
        VALUE,
        "keys and bins must make at most max_cells=10_000_000 cells, not 2147483648. Declare fewer.",
    ),
    Refusal(
        "cells-not-meant",
        lambda df: df.dp.histogram("age", bins=20_000_000, range=(0, 100), epsilon=1),
        VALUE,
        "keys and bins must make at most max_cells=10_000_000 cells, not 20000000. Declare fewer, or say that you mean "
        "it: max_cells=20_000_000.",
    ),
    Refusal(
        "max-cells-of-no-kind",
        lambda df: df.dp.count(max_cells="many", epsilon=1),
        TYPE,
        "max_cells must be a whole number of cells, not 'many'. Write max_cells=20_000_000.",
    ),
    Refusal(
        "max-cells-too-many",
        lambda df: df.dp.count(max_cells=2**31, epsilon=1),
        VALUE,
        "max_cells must be from 1 to 2**30, not 2147483648. Declare fewer keys or bins.",
    ),
    Refusal(
        "graph-of-too-many-edges",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=[("A", "B")] * 3, max_cells=2, epsilon=1),
        VALUE,
        "graph must have at most max_cells=2 edges, not 3. Declare fewer, or say that you mean it: max_cells=3.",
    ),
    Refusal(
        "label-of-surrogates",
        lambda df: df.dp.count(label="a\ud800", epsilon=1),
        VALUE,
        "label must be text that UTF-8 can write, without the character 0, unlike 'a\\ud800'. Write plain words.",
    ),
    Refusal(
        "label-of-commands",
        lambda df: df.dp.count(label="a\x1b[2J", epsilon=1),
        VALUE,
        "label must hold no control characters, such as tabs, line breaks or escapes, unlike 'a\\x1b[2J'. Write plain "
        "words.",
    ),
    Refusal(
        "version-too-long",
        lambda df: df.dp.count(label="a", snapshot="v" * 201, epsilon=1),
        VALUE,
        ("snapshot must have at most 200 characters, not 201, unlike 'vvvv", "Write plain words."),
    ),
    Refusal(
        "column-of-surrogates",
        lambda df: df.dp.count("a\ud800", epsilon=1),
        VALUE,
        "column must be text that UTF-8 can write, without the character 0, unlike 'a\\ud800'. Rename the column.",
    ),
    Refusal(
        "bins-too-fine",
        lambda df: df.dp.histogram("age", bins=10, range=(1, 1 + 1e-15), epsilon=1),
        VALUE,
        "bins must be few enough that all edges differ, not 10 on (1, 1.000000000000001). Ask for fewer bins.",
    ),
    Refusal(
        "range-with-edges",
        lambda df: df.dp.histogram("age", bins=[0, 50], range=(0, 50), epsilon=1),
        VALUE,
        "range must be left out when bins are edges, not (0, 50).",
    ),
    Refusal(
        "range-one-number",
        lambda df: df.dp.histogram("age", bins=5, range=100, epsilon=1),
        TYPE,
        "range must be a pair (lower, upper), not 100. Write for instance bins=range(0, 101, 10), or "
        "bins=20, range=(0, 100).",
    ),
    Refusal(
        "range-of-one",
        lambda df: df.dp.histogram("age", bins=5, range=(100,), epsilon=1),
        TYPE,
        "range must be a pair (lower, upper), not (100,). Write for instance bins=range(0, 101, 10), or "
        "bins=20, range=(0, 100).",
    ),
    Refusal(
        "range-reversed",
        lambda df: df.dp.histogram("age", bins=5, range=(100, 0), epsilon=1),
        VALUE,
        "range must increase strictly, but 100 is not below 0. Write the edges in order, each of them once.",
    ),
    Refusal(
        "range-infinite",
        lambda df: df.dp.histogram("age", bins=5, range=(0, INF), epsilon=1),
        VALUE,
        "range must be finite and within +-2**53, not inf. To keep what lies outside in the end bins, write "
        'outside="clip".',
    ),
    Refusal(
        "range-none-inside",
        lambda df: df.dp.histogram("age", bins=5, range=(None, 5), epsilon=1),
        TYPE,
        "range must hold numbers, dates, datetimes or durations, not None (NoneType). For strings declare "
        "categories=[...].",
    ),
    Refusal(
        "range-mixed",
        lambda df: df.dp.histogram("age", bins=5, range=(0, date(2024, 1, 1)), epsilon=1),
        TYPE,
        "range must be edges of one kind, not (0, datetime.date(2024, 1, 1)). Write only numbers, or only dates.",
    ),
    Refusal(
        "bins-dict",
        lambda df: df.dp.histogram("age", bins={0: 1, 50: 2}, epsilon=1),
        TYPE,
        "bins must be a sequence of edges in order, not {0: 1, 50: 2}. Write for instance bins=range(0, 101, "
        "10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-set",
        lambda df: df.dp.histogram("age", bins={0, 50, 100}, epsilon=1),
        TYPE,
        "bins must be a sequence of edges in order, not {0, 50, 100}. Write for instance bins=range(0, 101, "
        "10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "bins-nested",
        lambda df: df.dp.histogram("age", bins=[[0, 50], [50, 100]], epsilon=1),
        TYPE,
        "bins must hold numbers, dates, datetimes or durations, not [0, 50] (list). For strings declare "
        "categories=[...].",
    ),
    Refusal(
        "bins-mixed",
        lambda df: df.dp.histogram("age", bins=[0, date(2024, 1, 1)], epsilon=1),
        TYPE,
        "bins must be edges of one kind, not [0, datetime.date(2024, 1, 1)]. Write only numbers, or only dates.",
    ),
    Refusal(
        "bins-mixed-zones",
        lambda df: df.dp.histogram("at", bins=[NOON, UTC_NOON + timedelta(days=1)], epsilon=1),
        TYPE,
        "bins must all have a time zone, or none of them. Give each datetime a tzinfo.",
    ),
    Refusal(
        "bins-nat",
        lambda df: df.dp.histogram("at", bins=[np.datetime64("2024-01-01"), np.datetime64("NaT", "us")], epsilon=1),
        VALUE,
        "bins must hold dates or durations, not NaT.",
    ),
    Refusal(
        "bins-dates-reversed",
        lambda df: df.dp.histogram("at", bins=[date(2024, 1, 2), date(2024, 1, 1)], epsilon=1),
        VALUE,
        "bins must increase strictly, but 2024-01-02 is not below 2024-01-01. Write the edges in order, each "
        "of them once.",
    ),
    Refusal(
        "bins-far-future",
        lambda df: df.dp.histogram(
            "at", bins=[np.datetime64("2024-01-01"), np.datetime64("400000-01-01T00")], epsilon=1
        ),
        VALUE,
        "bins must lie within 290,000 years of 1970, unlike 400000-01-01T00.",
    ),
    Refusal(
        "bins-far-in-nanoseconds",
        lambda df: df.dp.histogram("stay", bins=[np.timedelta64(1, "ns"), timedelta(days=200_000)], epsilon=1),
        VALUE,
        "bins in nanoseconds must lie within 290 years of 1970. Write whole microseconds.",
    ),
    Refusal(
        "bins-of-unit-months",
        lambda df: df.dp.histogram("stay", bins=np.array([1, 2], dtype="m8[M]"), epsilon=1),
        TYPE,
        "bins must have a unit from weeks to nanoseconds, not timedelta64[M].",
    ),
    Refusal(
        "bins-numbers-for-strings",
        lambda df: df.dp.histogram("ward", bins=[0, 1], epsilon=1),
        DTYPE,
        (
            "bins of column 'ward' must suit its dtype",
            'but they are numbers. Declare categories=["A", "B"] instead of bins.',
        ),
    ),
    Refusal(
        "bins-numbers-for-datetimes",
        lambda df: df.dp.histogram("at", bins=[0, 1], epsilon=1),
        DTYPE,
        ("bins of column 'at' must suit its dtype", "but they are numbers. Write datetimes."),
    ),
    Refusal(
        "bins-dates-for-numbers",
        lambda df: df.dp.histogram("age", bins=[date(2024, 1, 1), date(2024, 1, 2)], epsilon=1),
        DTYPE,
        ("bins of column 'age' must suit its dtype", "but they are dates. Write numbers."),
    ),
    Refusal(
        "bins-aware-for-naive",
        lambda df: df.dp.histogram("at", bins=[UTC_NOON, UTC_NOON + timedelta(days=1)], epsilon=1),
        DTYPE,
        (
            "bins of column 'at' must have a time zone if and only if the column has one, and its dtype",
            "has none. Leave tzinfo out.",
        ),
    ),
    Refusal(
        "bins-naive-for-aware",
        lambda df: df.dp.histogram("zoned", bins=[NOON, NOON + timedelta(days=1)], epsilon=1),
        DTYPE,
        (
            "bins of column 'zoned' must have a time zone if and only if the column has one, and its dtype",
            "has one. Give each datetime a tzinfo.",
        ),
    ),
    Refusal(
        "bins-dates-for-aware",
        lambda df: df.dp.histogram("zoned", bins=[date(2024, 1, 1), date(2024, 1, 2)], epsilon=1),
        DTYPE,
        (
            "bins of column 'zoned' must have a time zone if and only if the column has one, and its dtype",
            "has one. Give each datetime a tzinfo.",
        ),
    ),
    Refusal(
        "bins-of-lists",
        lambda df: df.dp.histogram("tags", bins=[0, 1], epsilon=1),
        DTYPE,
        "column 'tags' must hold plain values to be binned, but its dtype is List.",
        POLARS,
    ),
    Refusal(
        "outside-unknown",
        lambda df: df.dp.histogram("age", bins=[0, 50], outside="keep", epsilon=1),
        VALUE,
        "outside must be 'drop' or 'clip', not 'keep'.",
    ),
    Refusal(
        "categories-with-bins",
        lambda df: df.dp.histogram("ward", bins=[0, 1], categories=WARDS, epsilon=1),
        VALUE,
        "categories must be given without bins and range. Keep the one that suits the column.",
    ),
    Refusal(
        "categories-array",
        lambda df: df.dp.histogram("ward", categories=np.array(WARDS), epsilon=1),
        TYPE,
        "categories must be a list, tuple or range that you wrote down, not an ndarray: categories that come "
        'from data reveal who is in it. Write for instance categories=["A", "B"].',
    ),
    Refusal(
        "categories-empty",
        lambda df: df.dp.histogram("ward", categories=[], epsilon=1),
        VALUE,
        'categories must name at least one value of \'ward\'. Write for instance categories=["A", "B"].',
    ),
    Refusal(
        "categories-duplicate",
        lambda df: df.dp.histogram("ward", categories=["A", "A"], epsilon=1),
        VALUE,
        "categories must be distinct, but 'A' occurs twice. Name each value once.",
    ),
    Refusal(
        "categories-mixed",
        lambda df: df.dp.histogram("ward", categories=["A", 1], epsilon=1),
        TYPE,
        "categories of column 'ward' must be of one kind, not numbers and strings mixed. Write all as "
        "numbers, or all as strings.",
    ),
    Refusal(
        "categories-nan",
        lambda df: df.dp.histogram("cost", categories=[NAN], epsilon=1),
        VALUE,
        "categories must be finite, not nan. Ask for the row of missing values with None.",
    ),
    Refusal(
        "categories-for-numbers",
        lambda df: df.dp.histogram("age", categories=WARDS, epsilon=1),
        DTYPE,
        ("categories of column 'age' must suit its dtype", "but they are strings. Write numbers."),
    ),
    Refusal(
        "grid-bins-missing",
        lambda df: df.dp.histogram(["age", "cost"], epsilon=1),
        MISSING,
        "bins must be given (for strings: categories=[...]), since they are never taken from the data. Write "
        "for instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "grid-bins-for-one",
        lambda df: df.dp.histogram(["age", "cost"], bins=[[0, 50, 100]], epsilon=1),
        TYPE,
        "bins must be a list with one entry for each of the 2 columns, not [[0, 50, 100]]. Write for "
        "instance bins=[20, 30], range=[(0, 100), (0, 5_000)].",
    ),
    Refusal(
        "grid-bins-string",
        lambda df: df.dp.histogram(["age", "cost"], bins="20", epsilon=1),
        TYPE,
        "bins must be a list with one entry for each of the 2 columns, not '20'. Write for instance "
        "bins=[20, 30], range=[(0, 100), (0, 5_000)].",
    ),
    Refusal(
        "grid-bins-array",
        lambda df: df.dp.histogram(["age", "cost"], bins=np.array([0, 50]), epsilon=1),
        TYPE,
        "bins must be a list with one entry for each of the 2 columns, not an ndarray. Write for instance "
        "bins=[20, 30], range=[(0, 100), (0, 5_000)].",
    ),
    Refusal(
        "grid-edges-of-one",
        lambda df: df.dp.histogram(["age", "cost"], bins=[0, 50], epsilon=1),
        MISSING,
        "range must be given when bins is a number of bins: it is never taken from the data. Write for "
        "instance bins=range(0, 101, 10), or bins=20, range=(0, 100).",
    ),
    Refusal(
        "grid-range-for-one",
        lambda df: df.dp.histogram(["age", "cost"], bins=[5, 5], range=[(0, 1)], epsilon=1),
        TYPE,
        "range must be a list with one entry for each of the 2 columns, not [(0, 1)]. Write for instance "
        "bins=[20, 30], range=[(0, 100), (0, 5_000)].",
    ),
    Refusal(
        "grid-range-flat",
        lambda df: df.dp.histogram(["age", "cost"], bins=[5, 5], range=(0, 100), epsilon=1),
        TYPE,
        "range must be a list with one entry for each of the 2 columns, not (0, 100). Write for instance "
        "bins=[20, 30], range=[(0, 100), (0, 5_000)].",
    ),
    Refusal(
        "grid-same-column",
        lambda df: df.dp.histogram(["age", "age"], bins=[5, 5], range=[(0, 1), (0, 1)], epsilon=1),
        VALUE,
        "column 'age' must be named once in keys and bins. Drop the second.",
    ),
    Refusal(
        "grid-categories",
        lambda df: df.dp.histogram(["age", "ward"], categories=WARDS, epsilon=1),
        VALUE,
        "categories must be left out for several columns. Use group_by(*columns, keys={...}).count().",
    ),
    Refusal(
        "grid-no-columns",
        lambda df: df.dp.histogram([], bins=[], epsilon=1),
        TYPE,
        'column must be the name of a column, or a list of names, not []. Write "age".',
    ),
    Refusal(
        "grid-number-as-column",
        lambda df: df.dp.histogram(["age", 3], bins=[5, 5], range=[(0, 1), (0, 1)], epsilon=1),
        TYPE,
        "column must be the name of a column (a string), not 3. Columns named otherwise can be renamed: "
        "df.rename(columns=str).",
    ),
    Refusal(
        "grid-too-large",
        lambda df: df.dp.histogram(["age", "cost"], bins=2**16, range=[(0, 1), (0, 1)], epsilon=1),
        VALUE,
        "keys and bins must make at most max_cells=10_000_000 cells, not 4294967296. Declare fewer.",
    ),
    Refusal(
        "grouped-by-its-bins",
        lambda df: df.dp.group_by("ward", keys=WARDS).histogram("ward", categories=WARDS, epsilon=1),
        VALUE,
        "column 'ward' must be named once in keys and bins. Drop the second.",
    ),
]

COLUMNS = [
    Refusal(
        "unknown-counted",
        lambda df: df.dp.count("agee", epsilon=1),
        UNKNOWN,
        "column 'agee' is not in the frame. Did you mean 'age'?",
    ),
    Refusal(
        "unknown-summed",
        lambda df: df.dp.sum("Age", bounds=(0, 1), epsilon=1),
        UNKNOWN,
        "column 'Age' is not in the frame. Did you mean 'age'?",
    ),
    Refusal(
        "unknown-mean",
        lambda df: df.dp.mean("costs", bounds=(0, 1), epsilon=1),
        UNKNOWN,
        "column 'costs' is not in the frame. Did you mean 'cost'?",
    ),
    Refusal(
        "unknown-in-agg",
        lambda df: df.dp.agg(n=dpf.count(), c=dpf.sum("coast", bounds=(0, 1)), epsilon=1),
        UNKNOWN,
        "column 'coast' is not in the frame. Did you mean 'cost'?",
    ),
    Refusal(
        "unknown-key",
        lambda df: df.dp.group_by("wards", keys=WARDS).count(epsilon=1),
        UNKNOWN,
        "column 'wards' is not in the frame. Did you mean 'ward'?",
    ),
    Refusal(
        "unknown-key-without-keys",
        lambda df: df.dp.group_by("wards").count(epsilon=1),
        UNKNOWN,
        "column 'wards' is not in the frame. Did you mean 'ward'?",
    ),
    Refusal(
        "unknown-bin",
        lambda df: df.dp.histogram("agee", bins=[0, 1], epsilon=1),
        UNKNOWN,
        "column 'agee' is not in the frame. Did you mean 'age'?",
    ),
    Refusal(
        "unknown-bin-without-bins",
        lambda df: df.dp.histogram("agee", epsilon=1),
        UNKNOWN,
        "column 'agee' is not in the frame. Did you mean 'age'?",
    ),
    Refusal(
        "unknown-second-bin",
        lambda df: df.dp.histogram(["age", "kost"], bins=5, range=[(0, 1), (0, 1)], epsilon=1),
        UNKNOWN,
        "column 'kost' is not in the frame. Did you mean 'cost'?",
    ),
    Refusal(
        "unknown-unit",
        lambda df: df.dp.count(epsilon=1),
        UNKNOWN,
        "column 'pat1ent' is not in the frame. Did you mean 'patient'?",
        ledger=lambda: dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("pat1ent", max_rows=1)),
    ),
    Refusal(
        "unknown-and-unlike-any",
        lambda df: df.dp.count("zzz", epsilon=1),
        UNKNOWN,
        "column 'zzz' is not in the frame. It has ['age', 'cost', 'ward', 'patient', 'at', 'zoned', 'stay'].",
        PANDAS,
    ),
    Refusal(
        "unknown-in-preview",
        lambda df: df.dp.preview.count("agee"),
        UNKNOWN,
        "column 'agee' is not in the frame. Did you mean 'age'?",
    ),
    Refusal(
        "column-number",
        lambda df: df.dp.count(3, epsilon=1),
        TYPE,
        "column must be the name of a column (a string), not 3. Columns named otherwise can be renamed: "
        "df.rename(columns=str).",
    ),
    Refusal(
        "column-none",
        lambda df: df.dp.sum(None, bounds=(0, 1), epsilon=1),
        TYPE,
        'column must be the name of a column (a string), not None. Write its name, as in "age".',
    ),
    Refusal(
        "column-list",
        lambda df: df.dp.mean(["age"], bounds=(0, 1), epsilon=1),
        TYPE,
        "column must be the name of a column (a string), not ['age']. Write its name, as in \"age\".",
    ),
    Refusal(
        "column-series",
        lambda df: df.dp.count(df["age"], epsilon=1),
        TYPE,
        'column must be the name of a column (a string), not a Series. Write its name, as in "age".',
        ("pandas", "polars"),
    ),
    Refusal(
        "column-expression",
        lambda df: df.dp.count(pl.col("age"), epsilon=1),
        TYPE,
        'column must be the name of a column (a string), not an Expr. Write its name, as in "age".',
    ),
    Refusal(
        "column-statistic",
        lambda df: df.dp.count(dpf.count(), epsilon=1),
        TYPE,
        'column must be the name of a column (a string), not a Count. Write its name, as in "age".',
    ),
    Refusal(
        "column-binned-number",
        lambda df: df.dp.histogram(3, bins=[0, 1], epsilon=1),
        TYPE,
        'column must be the name of a column, or a list of names, not 3. Write "age".',
    ),
    Refusal(
        "pandas-number-names",
        lambda df: pandas().DataFrame([[1, 2]]).dp.count(0, epsilon=1),
        TYPE,
        "column must be the name of a column (a string), not 0. Columns named otherwise can be renamed: "
        "df.rename(columns=str).",
        PANDAS,
    ),
    Refusal(
        "pandas-number-names-only",
        lambda df: pandas().DataFrame([[1, 2]]).dp.count("0", epsilon=1),
        UNKNOWN,
        "column '0' is not in the frame. It has no column that is named by a string; df.rename(columns=str) names "
        "others so.",
        PANDAS,
    ),
    Refusal(
        "pandas-two-levels",
        lambda df: pandas().DataFrame([[1]], columns=pandas().MultiIndex.from_tuples([("a", "b")])).dp.count(epsilon=1),
        TYPE,
        "the frame must have one level of column names, not a MultiIndex. Flatten frame.columns first.",
        PANDAS,
    ),
    Refusal(
        "pandas-repeated-names",
        lambda df: pandas().DataFrame([[1, 2]], columns=["a", "a"]).dp.count("a", epsilon=1),
        VALUE,
        "column 'a' must be in the frame once, but occurs twice. Rename one.",
        PANDAS,
    ),
    Refusal(
        "string-summed",
        lambda df: df.dp.sum("ward", bounds=(0, 1), epsilon=1),
        DTYPE,
        ("column 'ward' must hold numbers to be summed, but its dtype is",),
    ),
    Refusal(
        "string-averaged",
        lambda df: df.dp.mean("ward", bounds=(0, 1), epsilon=1),
        DTYPE,
        ("column 'ward' must hold numbers to be summed, but its dtype is",),
    ),
    Refusal(
        "datetime-summed",
        lambda df: df.dp.sum("at", bounds=(0, 1), epsilon=1),
        DTYPE,
        ("column 'at' must hold numbers to be summed, but its dtype is",),
    ),
    Refusal(
        "duration-averaged",
        lambda df: df.dp.mean("stay", bounds=(0, 1), epsilon=1),
        DTYPE,
        ("column 'stay' must hold numbers to be summed, but its dtype is",),
    ),
    Refusal(
        "date-summed",
        lambda df: df.dp.sum("day", bounds=(0, 1), epsilon=1),
        DTYPE,
        "column 'day' must hold numbers to be summed, but its dtype is Date."
        " Count its rows, group by it, or ask for proportion('day', value=...).",
        POLARS,
    ),
    Refusal(
        "list-summed",
        lambda df: df.dp.sum("tags", bounds=(0, 1), epsilon=1),
        DTYPE,
        "column 'tags' must hold numbers to be summed, but its dtype is List."
        " Count its rows, group by it, or ask for proportion('tags', value=...).",
        POLARS,
    ),
    Refusal(
        "struct-summed",
        lambda df: df.dp.sum("point", bounds=(0, 1), epsilon=1),
        DTYPE,
        "column 'point' must hold numbers to be summed, but its dtype is Struct."
        " Count its rows, group by it, or ask for proportion('point', value=...).",
        POLARS,
    ),
    Refusal(
        "category-summed",
        lambda df: df.assign(ward=df["ward"].astype("category")).dp.sum("ward", bounds=(0, 1), epsilon=1),
        DTYPE,
        "column 'ward' must hold numbers to be summed, but its dtype is category."
        " Count its rows, group by it, or ask for proportion('ward', value=...).",
        PANDAS,
    ),
    Refusal(
        "grouped-by-lists",
        lambda df: df.dp.group_by("tags", keys=["x"]).count(epsilon=1),
        DTYPE,
        "column 'tags' must hold plain values to be grouped by, but its dtype is List.",
        POLARS,
    ),
    Refusal(
        "grouped-by-missing-lists",
        lambda df: df.dp.group_by("tags", keys=[None]).count(epsilon=1),
        DTYPE,
        "column 'tags' must hold plain values to be grouped by, but its dtype is List.",
        POLARS,
    ),
    Refusal(
        "grouped-by-bytes",
        lambda df: df.dp.group_by("blob", keys=["a"]).count(epsilon=1),
        DTYPE,
        "column 'blob' must hold plain values to be grouped by, but its dtype is Binary.",
        POLARS,
    ),
    Refusal(
        "unit-of-structs",
        lambda df: df.dp.count(epsilon=1),
        DTYPE,
        "column 'point' must hold numbers, strings or dates to name units, but its dtype is Struct.",
        POLARS,
        ledger=lambda: dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("point", max_rows=1)),
    ),
]

OPTIONS = [
    Refusal(
        "misspelt-epsilon",
        lambda df: df.dp.count(epsilom=1),
        TYPE,
        "epsilom is not an argument of count. Did you mean epsilon?",
    ),
    Refusal(
        "misspelt-in-agg",
        lambda df: df.dp.agg(dpf.count(), epsilom=1),
        TYPE,
        "epsilom is not an option of agg, and 1 is not a statistic. Did you mean epsilon?",
    ),
    Refusal(
        "misspelt-bins",
        lambda df: df.dp.histogram("age", bin=[0, 1], epsilon=1),
        TYPE,
        "bin is not an argument of histogram. Did you mean bins?",
    ),
    Refusal(
        "misspelt-bounds",
        lambda df: df.dp.sum("age", bound=(0, 1), epsilon=1),
        TYPE,
        "bound is not an argument of sum. Did you mean bounds?",
    ),
    Refusal(
        "unknown-option",
        lambda df: df.dp.count(zzz=1, epsilon=1),
        TYPE,
        f"zzz is not an argument of count. Its arguments are column, {OPTIONS}.",
    ),
    Refusal(
        "keys-of-a-count",
        lambda df: df.dp.count("ward", keys=WARDS, epsilon=1),
        TYPE,
        "keys is not an argument of count. Ask in groups: df.dp.group_by(..., keys=[...]).",
    ),
    Refusal(
        "bins-of-a-sum",
        lambda df: df.dp.sum("age", bins=[0, 1], bounds=(0, 1), epsilon=1),
        TYPE,
        "bins is not an argument of sum. Did you mean bounds?",
    ),
    Refusal(
        "bins-by-position",
        lambda df: df.dp.histogram("age", 20, epsilon=1),
        TYPE,
        "histogram must be given everything but the column by name, so 20 is not clear. Write for instance "
        "histogram('age', bins=...).",
    ),
    Refusal(
        "bounds-by-position",
        lambda df: df.dp.sum("age", (0, 100), epsilon=1),
        TYPE,
        "sum must be given everything but the column by name, so (0, 100) is not clear. Write for instance "
        "sum('age', bounds=...).",
    ),
    Refusal(
        "column-left-out",
        lambda df: df.dp.mean(bounds=(0, 100), epsilon=1),
        MISSING,
        'column must be given: name the column, as in mean("age", bounds=...).',
    ),
    Refusal(
        "mechanism-unknown",
        lambda df: df.dp.count(mechanism="Laplace", epsilon=1),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, "
        "not 'Laplace'.",
    ),
    Refusal(
        "mechanism-number",
        lambda df: df.dp.count(mechanism=1, epsilon=1),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, not 1.",
    ),
    Refusal(
        "mechanism-list",
        lambda df: df.dp.count(mechanism=["laplace"], epsilon=1),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, not "
        "['laplace'].",
    ),
    Refusal(
        "mechanism-nonsense",
        lambda df: df.dp.count(mechanism=lambda sensitivity, loss: 3.0, epsilon=1),
        TYPE,
        "mechanism must return a calibrated dpframe mechanism, not 3.0. Write for instance lambda "
        "sensitivity, loss: dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, "
        "grid=sensitivity.grid).",
    ),
    Refusal(
        "mechanism-none-returned",
        lambda df: df.dp.count(mechanism=lambda sensitivity, loss: None, epsilon=1),
        TYPE,
        "mechanism must return a calibrated dpframe mechanism, not None. Write for instance lambda "
        "sensitivity, loss: dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, "
        "grid=sensitivity.grid).",
    ),
    Refusal(
        "mechanism-covers-too-little",
        lambda df: df.dp.histogram("age", bins=[0, 50, 100], mechanism=laplace(sensitivity=1), epsilon=1),
        VALUE,
        "mechanism must cover the sensitivity 2 (l_1), not only 1. Pass sensitivity=sensitivity.norm(1).",
        ledger=lambda: dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(neighbors="replace")),
    ),
    Refusal(
        "mechanism-covers-too-little-sum",
        lambda df: df.dp.sum("age", bounds=(0, 100), mechanism=laplace(sensitivity=1), epsilon=1),
        VALUE,
        "mechanism must cover the sensitivity 100 (l_1), not only 1. Pass sensitivity=sensitivity.norm(1).",
    ),
    Refusal(
        "mechanism-costs-too-much",
        lambda df: df.dp.count(mechanism=laplace(epsilon=2), epsilon=1),
        VALUE,
        "mechanism must cost at most epsilon 1, but at that epsilon its delta is 0.55677. Calibrate it to "
        "the loss that it is given.",
    ),
    Refusal(
        "mechanism-on-another-grid",
        lambda df: df.dp.sum("age", bounds=(0, 100), mechanism=laplace(grid=1.0), epsilon=1),
        VALUE,
        "mechanism must work on the statistic's grid 1.19209e-07, not 1. Pass grid=sensitivity.grid.",
    ),
    Refusal(
        "mode-delta",
        lambda df: df.dp.mode("ward", categories=["A"], epsilon=1, delta=1e-6),
        TYPE,
        "delta is not an argument of mode: a choice is purely private and needs none.",
    ),
    Refusal(
        "mode-mechanism",
        lambda df: df.dp.preview.mode("ward", categories=["A"], epsilon=1, mechanism="gaussian"),
        TYPE,
        "mechanism is not an argument of mode: the accounting decides which choice is the better one.",
    ),
    Refusal(
        "mode-denoise",
        lambda df: df.dp.mode("ward", categories=["A"], epsilon=1, denoise=None),
        TYPE,
        "denoise is not an argument of mode: it releases no number.",
    ),
    Refusal(
        "mode-no-categories",
        lambda df: df.dp.mode("ward", epsilon=1),
        MISSING,
        'categories must be given: they are never taken from the data. Write for instance categories=["A", "B"].',
    ),
    Refusal(
        "mode-per-group",
        lambda df: df.dp.group_by("ward", keys=["A"]).mode("age", categories=[31], epsilon=1),
        VALUE,
        "mode must be asked of the whole frame, not per group: one unit may sway the choice of many groups, and each "
        "costs. Ask for group_by(...).histogram(column, categories=[...]) and take the largest count.",
    ),
    Refusal(
        "top-k-of-too-few",
        lambda df: df.dp.top_k("ward", k=3, categories=["A", "B"], epsilon=1),
        VALUE,
        "k must be at most the number of categories, 2, not 3. Write a smaller one, or declare more categories.",
    ),
    Refusal(
        "top-k-without-k",
        lambda df: df.dp.top_k("ward", categories=["A", "B"], epsilon=1),
        MISSING,
        'k must be given: how many values, as in top_k("ward", k=10, categories=[...]).',
    ),
    Refusal(
        "top-k-of-none",
        lambda df: df.dp.top_k("ward", k=0, categories=["A", "B"], epsilon=1),
        VALUE,
        "k must be a whole number above 0, not 0.",
    ),
    Refusal(
        "top-k-counts",
        lambda df: df.dp.top_k("ward", k=1, categories=["A", "B"], counts=1, epsilon=1),
        TYPE,
        "counts must be True or False, not 1.",
    ),
    Refusal(
        "top-k-mechanism",
        lambda df: df.dp.top_k("ward", k=1, categories=["A", "B"], mechanism="laplace", epsilon=1),
        TYPE,
        "mechanism is not an argument of top_k: public facts decide which choice errs less: preview.top_k says which.",
    ),
    Refusal(
        "top-k-per-group",
        lambda df: df.dp.group_by("ward", keys=["A"]).top_k("age", k=1, categories=[31], epsilon=1),
        VALUE,
        "top_k must be asked of the whole frame, not per group: one unit may sway the choices of many groups, and each "
        "costs. Ask for group_by(...).histogram(column, categories=[...]) and sort its counts.",
    ),
    Refusal(
        "bounded-noise-of-a-mean",
        lambda df: df.dp.mean("age", bounds=(0, 100), mechanism=BOUNDED, epsilon=1),
        VALUE,
        "mechanism must be additive noise for a mean and for several statistics, which truncated generalized Gaussian, "
        "p = 2 is not: its bounds are those of one count or sum. Ask for that alone.",
    ),
    Refusal(
        "bounded-noise-denoised",
        lambda df: df.dp.histogram("age", bins=[0, 50, 100], mechanism=BOUNDED, denoise="haar", epsilon=1),
        VALUE,
        "denoise must be None for truncated generalized Gaussian, p = 2, which is not additive noise: denoisers take a "
        "law that is the same for every total. Leave denoise out.",
    ),
    Refusal(
        "bounded-noise-between-grid-steps",
        lambda df: df.dp.count(mechanism=dpf.truncated_generalized_gaussian(p=2, output=(0.2, 0.8)), epsilon=1),
        VALUE,
        "output must hold two or more whole steps of the grid 1, within 2**52 of them, unlike (0.2, 0.8). Write for "
        "instance output=(0, 100).",
    ),
    Refusal(
        "bounded-noise-shape",
        lambda df: df.dp.count(mechanism=dpf.truncated_generalized_gaussian(p=1.5, output=(0, 9)), epsilon=1),
        VALUE,
        "p must be 1, or from 2 to 16, for noise on output bounds, not 1.5: between 1 and 2 the worst case is not "
        "proven.",
        ANY,
    ),
    Refusal(
        "classical-noise-out-of-its-range",
        lambda df: df.dp.count(mechanism=dpf.classical_gaussian, epsilon=1, delta=1e-7),
        VALUE,
        "epsilon must be a number with 0 < epsilon < 1 for the classical formula, not 1.0. Use "
        "analytic_gaussian_sigma, which holds for any epsilon.",
        ANY,
        ledger=lambda: dpf.Ledger(epsilon=2, delta=1e-6, accounting="basic"),
    ),
    Refusal(
        "classical-noise-without-delta",
        lambda df: df.dp.count(mechanism=dpf.classical_gaussian, epsilon=0.5),
        MISSING,
        "delta must be given, above 0, for Gaussian noise. Write for instance delta=1e-6, in a ledger that has one.",
        ANY,
    ),
    Refusal(
        "mechanism-not-called",
        lambda df: df.dp.count(mechanism=dpf.probabilistic_gaussian, epsilon=0.5, delta=1e-6),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, not "
        "a function of other arguments. Write for instance lambda sensitivity, loss: "
        "dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid).",
    ),
    Refusal(
        "mechanism-class",
        lambda df: df.dp.count(mechanism=dpf.Laplace, epsilon=1),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, not "
        "the class Laplace. Write for instance lambda sensitivity, loss: "
        "dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid).",
    ),
    Refusal(
        "mechanism-calibrate",
        lambda df: df.dp.count(mechanism=dpf.Laplace.calibrate, epsilon=1),
        VALUE,
        "mechanism must be 'laplace', 'gaussian', 'auto', a function (sensitivity, loss) -> Mechanism or None, not a "
        "method of other arguments. Write for instance lambda sensitivity, loss: "
        "dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid).",
    ),
    Refusal(
        "mechanism-gaussian-without-delta",
        lambda df: df.dp.count(
            mechanism=lambda sensitivity, loss: dpf.Gaussian.calibrate(sensitivity=1, epsilon=loss.epsilon, delta=1e-6),
            epsilon=1,
        ),
        VALUE,
        "mechanism must cost at most epsilon 1, but at that epsilon its delta is 1e-06. Calibrate it to the "
        "loss that it is given.",
    ),
    Refusal(
        "denoise-unknown",
        lambda df: df.dp.histogram("age", bins=[0, 50], denoise="james_stein", epsilon=1),
        VALUE,
        ("denoise must be one of [", "'james-stein'", "or None, not 'james_stein'."),
    ),
    Refusal(
        "denoise-number",
        lambda df: df.dp.histogram("age", bins=[0, 50], denoise=3, epsilon=1),
        VALUE,
        ("denoise must be one of [", "'james-stein'", "or None, not 3."),
    ),
    Refusal(
        "denoise-needs-more",
        lambda df: df.dp.histogram("age", bins=[0, 50], denoise=dpf.denoise.public_total, epsilon=1),
        dpf.InvalidArgument,
        "denoise must be a function (values, noise) -> values, and public_total cannot be called with these two alone. "
        "Write lambda values, noise: public_total(values, noise, ...).",
        engines=ANY,
    ),
    Refusal(
        "denoise-true",
        lambda df: df.dp.histogram("age", bins=[0, 50], denoise=True, epsilon=1),
        VALUE,
        ("denoise must be one of [", "'james-stein'", "or None, not True."),
    ),
    Refusal(
        "denoise-unknown-in-list",
        lambda df: df.dp.count(denoise=["nonnegative", "smooth"], epsilon=1),
        VALUE,
        ("denoise must be one of [", "'nonnegative'", "or None, not 'smooth'."),
    ),
    Refusal(
        "order-among-several",
        lambda df: df.dp.group_by("ward", "age", keys={"ward": WARDS, "age": [1]}).count(order=True, epsilon=1),
        VALUE,
        "order must name the column that is in order, among ['ward', 'age'], not be True. "
        'Write order=True for keys of one column, or name the column, as in order="month".',
    ),
    Refusal(
        "order-unknown",
        lambda df: df.dp.group_by("ward", "age", keys={"ward": WARDS, "age": [1]}).count(order="cost", epsilon=1),
        VALUE,
        "order must name one of ['ward', 'age'], not 'cost'. "
        'Write order=True for keys of one column, or name the column, as in order="month".',
    ),
    Refusal(
        "order-of-combinations",
        lambda df: df.dp.group_by("ward", "age", keys=pl.DataFrame({"ward": ["A"], "age": [1]})).count(
            order="age", epsilon=1
        ),
        VALUE,
        "order must name a column with keys of its own, not of combinations, not 'age'. "
        'Write order=True for keys of one column, or name the column, as in order="month".',
    ),
    Refusal(
        "order-of-one-number",
        lambda df: df.dp.count(order=True, epsilon=1),
        VALUE,
        "order must be left out of a single number, which has no neighbors. Drop it.",
    ),
    Refusal(
        "order-list",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(order=["age"], epsilon=1),
        TYPE,
        "order must be True, False or the name of a column, not ['age']. "
        'Write order=True for keys of one column, or name the column, as in order="month".',
    ),
    Refusal(
        "order-with-rollup",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(order=True, rollup=True, epsilon=1),
        VALUE,
        "order must be left out with rollup=True, whose fit has no use for it. Keep one.",
    ),
    Refusal(
        "graph-unknown-end",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=[("A", "B"), ("B", "Z")], epsilon=1),
        VALUE,
        "graph must join declared keys, unlike 'Z'. Declare it among the keys, or leave its edges out.",
    ),
    Refusal(
        "graph-end-of-another-kind",
        lambda df: df.dp.preview.group_by("age", keys=[1, 2]).count(graph=[("1", "2")], epsilon=1),
        VALUE,
        "graph must join declared keys, unlike '1'. Declare it among the keys, or leave its edges out.",
    ),
    Refusal(
        "graph-unknown-combination",
        lambda df: df.dp.group_by("ward", "age", keys=pl.DataFrame({"ward": ["A", "B"], "age": [1, 2]})).count(
            graph=[(("A", 1), ("A", 2))], epsilon=1
        ),
        VALUE,
        "graph must join declared keys, unlike ('A', 2). Declare it among the keys, or leave its edges out.",
    ),
    Refusal(
        "graph-end-of-one-column",
        lambda df: df.dp.group_by("ward", "age", keys={"ward": WARDS, "age": [1]}).count(graph=[("A", "B")], epsilon=1),
        VALUE,
        "graph must name a key by the values of ward, age, unlike ('A',). Write each end as a tuple.",
    ),
    Refusal(
        "graph-no-pair",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=["A", "B"], epsilon=1),
        TYPE,
        'graph must be a frame or a list of pairs of keys, unlike \'A\'. Write for instance graph=[("A", "B"), '
        '("B", "C")].',
    ),
    Refusal(
        "graph-triple",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=[("A", "B", 2.5)], epsilon=1),
        TYPE,
        "graph must be a frame or a list of pairs of keys, unlike ('A', 'B', 2.5). Write for instance "
        'graph=[("A", "B"), ("B", "C")].',
    ),
    Refusal(
        "graph-array",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(graph=np.array([[1, 2]]), epsilon=1),
        TYPE,
        "graph must be a frame or a list of pairs of keys, not an ndarray. Write for instance "
        'graph=[("A", "B"), ("B", "C")].',
    ),
    Refusal(
        "graph-three-columns",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(
            graph=pl.DataFrame({"u": [1], "v": [2], "length": [9.5]}), epsilon=1
        ),
        VALUE,
        "graph must be a frame of two columns of keys (or of twice the columns that the groups have), not of 3. "
        "Select those of the two ends.",
    ),
    Refusal(
        "graph-nan",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(graph=[(1, NAN)], epsilon=1),
        VALUE,
        "graph must be finite, not nan. Ask for the row of missing values with None.",
    ),
    Refusal(
        "graph-of-one-number",
        lambda df: df.dp.count(graph=[("A", "B")], epsilon=1),
        VALUE,
        'graph must be left out of a single number. Write group_by("ward", keys=[...]) first.',
    ),
    Refusal(
        "graph-of-bins",
        lambda df: df.dp.histogram("age", bins=[0, 50, 100], graph=[(0, 50)], epsilon=1),
        VALUE,
        "graph must be left out of bins, whose neighbors are known. Drop it.",
    ),
    Refusal(
        "graph-with-rollup",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=[("A", "B")], rollup=True, epsilon=1),
        VALUE,
        "graph must be left out with rollup=True, whose fit has no use for it. Keep one.",
    ),
    Refusal(
        "graph-of-a-mean",
        lambda df: df.dp.group_by("ward", keys=WARDS).mean("age", bounds=(0, 99), graph=[("A", "B")], epsilon=1),
        VALUE,
        "graph must be left out of means, which are not denoised. Drop it.",
    ),
    Refusal(
        "graph-without-use",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(graph=[("A", "B")], denoise="james-stein", epsilon=1),
        VALUE,
        "graph must come with a denoiser that uses it, one of ['auto', 'spanning-tree-wavelets', 'trend-filter'], "
        "not 'james-stein'. Keep one.",
    ),
    Refusal(
        "graph-missing",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(denoise="spanning-tree-wavelets", epsilon=1),
        VALUE,
        "graph must be given for denoise='spanning-tree-wavelets'. Write for instance "
        'graph=[("A", "B"), ("B", "C")].',
    ),
    Refusal(
        "graph-in-group-by",
        lambda df: df.dp.group_by("ward", keys=WARDS, graph=[("A", "B")]).count(epsilon=1),
        TYPE,
        "graph is not an argument of group_by, but of the question after it: group_by(...).count(graph=...).",
    ),
    Refusal(
        "rollup-of-one-number",
        lambda df: df.dp.count(rollup=True, epsilon=1),
        VALUE,
        "rollup must be left out of a single number, which has no subtotals. "
        'Write group_by("ward", keys=["A", "B"]).count(rollup=True).',
    ),
    Refusal(
        "rollup-of-bins",
        lambda df: df.dp.histogram("age", bins=[0, 50], rollup=True, epsilon=1),
        VALUE,
        "rollup must be left out where there are bins, which have no name for their total. "
        "Add up bins yourself, or group by declared keys.",
    ),
    Refusal(
        "rollup-of-missing-keys",
        lambda df: df.dp.group_by("ward", keys=["A", None]).count(rollup=True, epsilon=1),
        VALUE,
        "keys must not hold None with rollup=True, since None marks the rows of subtotals. "
        "Leave it out, or fill the column's missing values with a name of their own.",
    ),
    Refusal(
        "rollup-of-a-mean",
        lambda df: df.dp.group_by("ward", keys=WARDS).agg(m=dpf.mean("age", bounds=(0, 9)), rollup=True, epsilon=1),
        VALUE,
        "rollup must be left out of a mean (m), which is not the sum of its parts. "
        "Ask for dpf.count and dpf.sum of the column, and divide.",
    ),
    Refusal(
        "rollup-number",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(rollup=1, epsilon=1),
        TYPE,
        "rollup must be True or False, not 1.",
    ),
    Refusal(
        "rollup-denoised-otherwise",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(rollup=True, denoise="james-stein", epsilon=1),
        VALUE,
        "denoise must be 'auto' or None with rollup=True, not 'james-stein': what makes subtotals add up is itself a "
        "denoiser. Leave it out.",
    ),
    Refusal(
        "keep-noisy-string",
        lambda df: df.dp.count(keep_noisy="yes", epsilon=1),
        TYPE,
        "keep_noisy must be True or False, not 'yes'.",
    ),
    Refusal(
        "keep-noisy-number",
        lambda df: df.dp.count(keep_noisy=1, epsilon=1),
        TYPE,
        "keep_noisy must be True or False, not 1.",
    ),
    Refusal("label-number", lambda df: df.dp.count(label=3, epsilon=1), TYPE, "label must be a string, not 3."),
    Refusal(
        "version-number",
        lambda df: df.dp.count(label="wards", snapshot=47, epsilon=1),
        TYPE,
        "snapshot must be a string, not 47. Write snapshot='2026-W47'.",
    ),
    Refusal(
        "version-blank",
        lambda df: df.dp.count(label="wards", snapshot=" ", epsilon=1),
        VALUE,
        "snapshot must say what the data are, and not be blank. Write snapshot='2026-W47'.",
    ),
    Refusal(
        "version-in-memory",
        lambda df: df.dp.count(label="wards", snapshot="2026-W47", epsilon=1),
        dpf.LedgerError,
        "snapshot must be left out with a ledger in memory, which stores no answers: each call is a new release. Keep "
        "the ledger in a file to have answers replayed: dpf.Ledger(..., path='clinic.ledger').",
    ),
    Refusal(
        "snapshot-with-a-function",
        lambda df: df.dp.histogram(
            "age", bins=[0, 50], denoise=lambda values, noise: values, label="ages", snapshot="2026-W47", epsilon=1
        ),
        VALUE,
        "snapshot must be left out where denoise is a function of your own: what it does cannot be told from what "
        "another one does, so the answer could not be known again. Use one of dpframe's by name, or leave snapshot "
        "out.",
        ledger=lambda: dpf.Ledger(1, path=Path(tempfile.mkdtemp()) / "clinic.ledger"),
    ),
    Refusal(
        "label-series",
        lambda df: df.dp.count(label=df["age"], epsilon=1),
        TYPE,
        "label must be a string, not a Series.",
        ("pandas", "polars"),
    ),
    Refusal(
        "ledger-number",
        lambda df: df.dp.count(ledger=1.0, epsilon=1),
        TYPE,
        "ledger must be a dpf.Ledger, not 1.0. Write for instance dpf.Ledger(epsilon=1.0).",
    ),
    Refusal(
        "ledger-class",
        lambda df: df.dp.count(ledger=dpf.Ledger, epsilon=1),
        TYPE,
        "ledger must be a dpf.Ledger, not the class Ledger. Write for instance dpf.Ledger(epsilon=1.0).",
    ),
    Refusal(
        "unit-number",
        lambda df: df.dp.count(unit=3, epsilon=1),
        TYPE,
        "unit must be the name of a column or a dpf.PrivacyUnit, not 3. "
        'Write unit="patient", or dpf.PrivacyUnit(column=...).',
    ),
    Refusal(
        "unit-without-bounds",
        lambda df: df.dp.count(unit="patient", epsilon=1),
        MISSING,
        "max_rows must be given (or max_groups=), in the call or as a default in the unit: how many rows of one "
        "patient may count in full in a group, and in how many groups. df.dp.contributions(epsilon=...) tells "
        "privately how many there are; then write for instance max_rows=3, max_groups=2.",
        ledger=no_ledger,
    ),
    Refusal(
        "units-without-bounds",
        lambda df: df.dp.group_by("ward", keys=WARDS).n_units(unit="patient", epsilon=1),
        MISSING,
        "max_groups must be given, in the call or as a default in the unit: in how many groups one patient may count "
        "in full, with whatever rows. df.dp.contributions(by=..., epsilon=...) tells privately how many there are; "
        "then write for instance max_groups=2.",
        ledger=no_ledger,
    ),
    Refusal(
        "bounds-of-rows",
        lambda df: df.dp.count(max_rows=2, epsilon=1),
        VALUE,
        "max_rows and max_groups must be left out without a column: each row is then a unit of its own. Name the "
        'column that says whose row it is: unit="patient", or PrivacyUnit(column=..., max_rows=...).',
    ),
    Refusal(
        "bounds-of-rows-even-one",
        lambda df: df.dp.count(max_groups=1, epsilon=1),
        VALUE,
        "max_rows and max_groups must be left out without a column: each row is then a unit of its own. Name the "
        'column that says whose row it is: unit="patient", or PrivacyUnit(column=..., max_rows=...).',
    ),
    Refusal(
        "call-max-rows-zero",
        lambda df: df.dp.count(max_rows=0, epsilon=1),
        VALUE,
        "max_rows must be a whole number from 1 to 2**31, not 0.",
    ),
    Refusal(
        "call-max-groups-fraction",
        lambda df: df.dp.count(max_groups=1.5, epsilon=1),
        TYPE,
        "max_groups must be a whole number from 1 to 2**31, not 1.5.",
    ),
    Refusal(
        "unit-of-another",
        lambda df: df.dp.count(unit=dpf.PrivacyUnit("patient", max_rows=1), epsilon=1),
        VALUE,
        "unit must be left out or equal the ledger's (each row, add-remove neighbors). This call's is each "
        "value of 'patient', add-remove neighbors. A ledger "
        "protects one unit: make another ledger for another unit.",
    ),
    Refusal(
        "unit-ledger",
        lambda df: df.dp.count(unit=dpf.Ledger(epsilon=1), epsilon=1),
        TYPE,
        "unit must be the name of a column or a dpf.PrivacyUnit, not a Ledger. "
        'Write unit="patient", or dpf.PrivacyUnit(column=...).',
    ),
]

AGG = [
    Refusal(
        "agg-empty",
        lambda df: df.dp.agg(epsilon=1),
        MISSING,
        "agg must be given at least one statistic. Write for instance agg(n=dpf.count(), epsilon=1).",
    ),
    Refusal(
        "agg-option-as-name",
        lambda df: df.dp.agg(label=dpf.count(), epsilon=1),
        TYPE,
        "label is an option of every call, so it cannot name a statistic directly. Write agg({'label': ...}) "
        "with a dict instead.",
    ),
    Refusal(
        "agg-option-epsilon-as-name",
        lambda df: df.dp.agg(epsilon=dpf.count()),
        TYPE,
        "epsilon is an option of every call, so it cannot name a statistic directly. Write agg({'epsilon': "
        "...}) with a dict instead.",
    ),
    Refusal(
        "option-as-statistic",
        lambda df: df.dp.count(label=dpf.count(), epsilon=1),
        TYPE,
        "label is an option of every call, so it cannot name a statistic directly. Write agg({'label': ...}) "
        "with a dict instead.",
    ),
    Refusal(
        "agg-number",
        lambda df: df.dp.agg(3, epsilon=1),
        TYPE,
        "each argument of agg must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not 3.",
    ),
    Refusal(
        "agg-string",
        lambda df: df.dp.agg("age", epsilon=1),
        TYPE,
        "each argument of agg must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not 'age'.",
    ),
    Refusal(
        "agg-named-string",
        lambda df: df.dp.agg(age="mean", epsilon=1),
        TYPE,
        "age must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not 'mean'.",
    ),
    Refusal(
        "agg-function",
        lambda df: df.dp.agg(dpf.count, epsilon=1),
        TYPE,
        "each argument of agg must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), "
        "not a function. Call it: dpf.count(...).",
    ),
    Refusal(
        "agg-named-function",
        lambda df: df.dp.agg(n=dpf.count, epsilon=1),
        TYPE,
        "n must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not a function. "
        "Call it: dpf.count(...).",
    ),
    Refusal(
        "agg-class",
        lambda df: df.dp.agg(n=dpf.Count, epsilon=1),
        TYPE,
        "n must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not the class Count.",
    ),
    Refusal(
        "agg-list",
        lambda df: df.dp.agg([dpf.count()], epsilon=1),
        TYPE,
        "each argument of agg must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), "
        "not a list.",
    ),
    Refusal(
        "agg-dict-of-strings",
        lambda df: df.dp.agg({"age": "mean"}, epsilon=1),
        TYPE,
        "age must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not 'mean'.",
    ),
    Refusal(
        "agg-dict-of-number-names",
        lambda df: df.dp.agg({3: dpf.count()}, epsilon=1),
        TYPE,
        "the name of a statistic must be a string, not 3.",
    ),
    Refusal(
        "agg-expression",
        lambda df: df.dp.agg(pl.col("age").mean(), epsilon=1),
        TYPE,
        "each argument of agg must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), "
        "not an Expr.",
    ),
    Refusal(
        "agg-same-default-names",
        lambda df: df.dp.agg(dpf.count(), dpf.count("age"), epsilon=1),
        VALUE,
        "output columns must have different names, but 'count' occurs twice. Name the statistics yourself, "
        "as in agg(n=dpf.count()).",
    ),
    Refusal(
        "agg-same-names",
        lambda df: df.dp.agg({"n": dpf.count()}, n=dpf.count("age"), epsilon=1),
        VALUE,
        "output columns must have different names, but 'n' occurs twice. Name the statistics yourself, as in "
        "agg(n=dpf.count()).",
    ),
    Refusal(
        "agg-name-of-key",
        lambda df: df.dp.group_by("ward", keys=WARDS).agg(ward=dpf.count(), epsilon=1),
        VALUE,
        "output columns must have different names, but 'ward' occurs twice (a statistic NAME also adds "
        "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count()).",
    ),
    Refusal(
        "agg-name-of-error",
        lambda df: df.dp.agg(n=dpf.count(), n_error=dpf.count("age"), epsilon=1),
        VALUE,
        "output columns must have different names, but 'n_error' occurs twice (a statistic NAME also adds "
        "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count()).",
    ),
    Refusal(
        "agg-name-of-noisy",
        lambda df: df.dp.agg(n=dpf.count(), n_noisy=dpf.count("age"), epsilon=1),
        VALUE,
        "output columns must have different names, but 'n_noisy' occurs twice (a statistic NAME also adds "
        "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count()).",
    ),
]

RESULTS = [
    Refusal(
        "released-count",
        lambda df: df.dp.count(epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.count.",
        prepare=released,
    ),
    Refusal(
        "released-sum",
        lambda df: df.dp.sum("count", bounds=(0, 1), epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.sum.",
        prepare=released,
    ),
    Refusal(
        "released-mean",
        lambda df: df.dp.mean("count", bounds=(0, 1), epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.mean.",
        prepare=released,
    ),
    Refusal(
        "released-histogram",
        lambda df: df.dp.histogram("count", bins=[0, 1], epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.histogram.",
        prepare=released,
    ),
    Refusal(
        "released-group-by",
        lambda df: df.dp.group_by("count", keys=[1]),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.group_by.",
        prepare=released,
    ),
    Refusal(
        "released-agg",
        lambda df: df.dp.agg(dpf.count(), epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.agg.",
        prepare=released,
    ),
    Refusal(
        "released-preview",
        lambda df: df.dp.preview,
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.preview.",
        prepare=released,
    ),
    Refusal(
        "released-of",
        lambda df: dpf.of(df).count(epsilon=1),
        dpf.AlreadyReleased,
        "this frame is a released result: it is public, so use it directly, without .dp.count.",
        prepare=released,
    ),
    Refusal(
        "released-unknown-name",
        lambda df: df.dp.to_numpy("counts"),
        VALUE,
        "name must be one of ['count', 'count_noisy', 'count_error'], not 'counts'.",
        prepare=released,
    ),
    Refusal(
        "private-rows-of-results",
        lambda df: pl.DataFrame({name: df[name].to_list() for name in df.columns}).dp.count(epsilon=1),
        dpf.AlreadyReleased,
        "the frame must hold private rows, but its columns 'count', 'count_noisy' and 'count_error' are those of a "
        "released result, which is public: use it directly. Join results with dpf.concat, which keeps their records; "
        "if these rows are private, rename a column.",
        prepare=released,
    ),
    Refusal(
        "private-provenance",
        lambda df: df.dp.provenance,
        dpf.NoProvenance,
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Polars "
        "frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
        ".dp.write_parquet and dpf.read_parquet keep it in files, and dpf.concat joins results.",
    ),
    Refusal(
        "private-plot",
        lambda df: df.dp.plot(),
        dpf.NoProvenance,
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Polars "
        "frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
        ".dp.write_parquet and dpf.read_parquet keep it in files, and dpf.concat joins results.",
    ),
    Refusal(
        "private-to-numpy",
        lambda df: df.dp.to_numpy("age"),
        dpf.NoProvenance,
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Polars "
        "frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
        ".dp.write_parquet and dpf.read_parquet keep it in files, and dpf.concat joins results.",
    ),
    Refusal(
        "private-write-parquet",
        lambda df: df.dp.write_parquet("people.parquet"),
        dpf.NoProvenance,
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Polars "
        "frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
        ".dp.write_parquet and dpf.read_parquet keep it in files, and dpf.concat joins results.",
    ),
    Refusal(
        "provenance-dropped",
        lambda df: df.sort("count").dp.provenance,
        dpf.NoProvenance,
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Polars "
        "frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
        ".dp.write_parquet and dpf.read_parquet keep it in files, and dpf.concat joins results.",
        POLARS,
        prepare=released,
    ),
    Refusal(
        "foreign-file",
        lambda df: dpf.read_parquet(foreign_file()),
        dpf.NoProvenance,
        ("the file", "carries no provenance: it was not written by .dp.write_parquet."),
        ANY,
    ),
    Refusal(
        "read-like-spark",
        lambda df: dpf.read_parquet("people.parquet", like="spark"),
        VALUE,
        "like must be 'pandas' or 'polars', not 'spark'.",
        ANY,
    ),
    Refusal(
        "ledger-to-frame-like-spark",
        lambda df: dpf.Ledger(epsilon=1).to_frame("spark"),
        VALUE,
        "like must be 'pandas' or 'polars', not 'spark'.",
        ANY,
    ),
    Refusal(
        "plan-to-frame-like-spark",
        lambda df: df.dp.preview.count(epsilon=1).to_frame("spark"),
        VALUE,
        "like must be 'pandas' or 'polars', not 'spark'.",
    ),
    Refusal(
        "of-list",
        lambda df: dpf.of([1, 2]),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
        "not a list. Make one: pl.DataFrame(...).",
        ANY,
    ),
    Refusal(
        "other-nulls",
        lambda df: df.dp.count(epsilon=1, max_rows=1, unit=dpf.PrivacyUnit("patient", nulls="one-unit")),
        VALUE,
        "unit must be left out or equal the ledger's (each value of 'patient', add-remove neighbors, nulls='drop'). "
        "This call's is each value of 'patient', add-remove neighbors, nulls='one-unit'. A ledger protects one unit: "
        "make another ledger for another unit.",
        ANY,
        lambda: dpf.Ledger(epsilon=1, unit="patient"),
    ),
    Refusal(
        "of-path",
        lambda df: dpf.of(Path("people.parquet")),
        TYPE,
        ("frame must be a table of pandas", "Read the file first: dpf.of(pl.scan_parquet(path))."),
        ANY,
    ),
    Refusal(
        "brackets",
        lambda df: df.dp["age"].mean(bounds=(0, 120), epsilon=1),
        TYPE,
        "column must be named in the verb of .dp, not in brackets. Write .dp.mean('age', bounds=(0, 100)).",
        ANY,
    ),
    Refusal(
        "two-columns-by-position",
        lambda df: df.dp.correlation("age", "cost", epsilon=1),
        TYPE,
        "columns must be one list, not several arguments. Write correlation(['age', 'cost'], ...).",
        ANY,
    ),
    Refusal(
        "price-by-position",
        lambda df: df.dp.count(0.5),
        TYPE,
        "column must be the name of a column (a string), not 0.5. Everything but the column is given by its name, as "
        "in epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "statistic-not-called",
        lambda df: df.dp.group_by("ward", keys=WARDS).agg(n=dpf.count, epsilon=1),
        TYPE,
        "n must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not a function. Call it: "
        "dpf.count(...).",
        ANY,
    ),
    Refusal(
        "dates-as-text",
        lambda df: df.dp.histogram("at", bins=["2026-01-05", "2026-01-12"], epsilon=1),
        TYPE,
        "bins must hold numbers, dates, datetimes or durations, not '2026-01-05' (str). Write "
        "datetime.date(2026, 1, 5).",
        ANY,
    ),
    Refusal(
        "of-none",
        lambda df: dpf.of(None),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, not None. "
        "Make one: pl.DataFrame(...).",
        ANY,
    ),
    Refusal(
        "of-dict",
        lambda df: dpf.of({"age": [31]}),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
        "not a dict. Make one: pl.DataFrame(...).",
        ANY,
    ),
    Refusal(
        "of-array",
        lambda df: dpf.of(np.zeros((2, 2))),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
        "not an ndarray. Make one: pl.DataFrame(...).",
        ANY,
    ),
    Refusal(
        "of-file-name",
        lambda df: dpf.of("people.csv"),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, not a str. "
        "Read the file first: dpf.of(pl.scan_parquet(path)).",
        ANY,
    ),
    Refusal(
        "of-series",
        lambda df: dpf.of(df["age"]),
        TYPE,
        "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
        "not a Series. Take its frame, and name the column in the verb.",
        ("pandas", "polars"),
    ),
    Refusal(
        "of-group-by",
        lambda df: dpf.of(df.group_by("ward")),
        TYPE,
        ("frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, not a",),
        POLARS,
    ),
]

UNITS = [
    Refusal(
        "unit-max-rows-zero",
        lambda df: dpf.PrivacyUnit("patient", max_rows=0),
        VALUE,
        "max_rows must be a whole number from 1 to 2**31, not 0.",
        ANY,
    ),
    Refusal(
        "unit-max-rows-negative",
        lambda df: dpf.PrivacyUnit("patient", max_rows=-3),
        VALUE,
        "max_rows must be a whole number from 1 to 2**31, not -3.",
        ANY,
    ),
    Refusal(
        "unit-max-rows-float",
        lambda df: dpf.PrivacyUnit("patient", max_rows=1.5),
        TYPE,
        "max_rows must be a whole number from 1 to 2**31, not 1.5.",
        ANY,
    ),
    Refusal(
        "unit-max-rows-bool",
        lambda df: dpf.PrivacyUnit("patient", max_rows=True),
        TYPE,
        "max_rows must be a whole number from 1 to 2**31, not True.",
        ANY,
    ),
    Refusal(
        "unit-max-rows-text",
        lambda df: dpf.PrivacyUnit("patient", max_rows="2"),
        TYPE,
        "max_rows must be a whole number from 1 to 2**31, not '2'.",
        ANY,
    ),
    Refusal(
        "unit-max-rows-huge",
        lambda df: dpf.PrivacyUnit("patient", max_rows=2**40),
        VALUE,
        "max_rows must be a whole number from 1 to 2**31, not 1099511627776.",
        ANY,
    ),
    Refusal(
        "unit-max-groups-zero",
        lambda df: dpf.PrivacyUnit("patient", max_groups=0),
        VALUE,
        "max_groups must be a whole number from 1 to 2**31, not 0.",
        ANY,
    ),
    Refusal(
        "unit-max-groups-string",
        lambda df: dpf.PrivacyUnit("patient", max_groups="2"),
        TYPE,
        "max_groups must be a whole number from 1 to 2**31, not '2'.",
        ANY,
    ),
    Refusal(
        "unit-neighbors-unknown",
        lambda df: dpf.PrivacyUnit("patient", neighbors="swap", max_rows=1),
        VALUE,
        "neighbors must be 'add-remove' or 'replace', not 'swap'.",
        ANY,
    ),
    Refusal(
        "unit-neighbors-none",
        lambda df: dpf.PrivacyUnit("patient", neighbors=None, max_rows=1),
        VALUE,
        "neighbors must be 'add-remove' or 'replace', not None.",
        ANY,
    ),
    Refusal(
        "unit-nulls-unknown",
        lambda df: dpf.PrivacyUnit("patient", nulls="keep", max_rows=1),
        VALUE,
        "nulls must be 'drop' or 'one-unit', not 'keep'.",
        ANY,
    ),
    Refusal(
        "unit-column-number",
        lambda df: dpf.PrivacyUnit(3),
        TYPE,
        "column must be the name of the unit's column, not 3.",
        ANY,
    ),
    Refusal(
        "unit-column-list",
        lambda df: dpf.PrivacyUnit(["patient", "ward"]),
        TYPE,
        "column must be the name of the unit's column, not ['patient', 'ward'].",
        ANY,
    ),
    Refusal(
        "unit-rows-without-column",
        lambda df: dpf.PrivacyUnit(max_rows=3),
        VALUE,
        "max_rows and max_groups must be left out without a column: each row is then a unit of its own. Name the "
        'column that says whose row it is: unit="patient", or PrivacyUnit(column=..., max_rows=...).',
        ANY,
    ),
]

LEDGERS = [
    Refusal(
        "ledger-without-epsilon",
        lambda df: dpf.Ledger(),
        MISSING,
        "epsilon must be given: the most that may be spent. Write for instance Ledger(epsilon=1.0).",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-zero",
        lambda df: dpf.Ledger(0),
        VALUE,
        "epsilon must be a finite number above 0, not 0. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-nan",
        lambda df: dpf.Ledger(NAN),
        VALUE,
        "epsilon must be a finite number above 0, not nan. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-inf",
        lambda df: dpf.Ledger(INF),
        VALUE,
        "epsilon must be a finite number above 0, not inf. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-string",
        lambda df: dpf.Ledger("1"),
        TYPE,
        "epsilon must be a number, not '1' (str). Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-bool",
        lambda df: dpf.Ledger(True),
        TYPE,
        "epsilon must be a number, not True (bool). Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-subnormal",
        lambda df: dpf.Ledger(1e-320),
        VALUE,
        "epsilon must be a finite number above 0, and not below 2.3e-308 like 1e-320. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "ledger-epsilon-beyond-gdp",
        lambda df: dpf.Ledger(1e15, 1e-6),
        VALUE,
        "epsilon must be a number with 0 <= epsilon <= 1e+12, not 1000000000000000.0.",
        ANY,
    ),
    Refusal(
        "ledger-delta-one",
        lambda df: dpf.Ledger(1, 1),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not 1. Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "ledger-delta-negative",
        lambda df: dpf.Ledger(1, -1e-6),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not -1e-06. Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "ledger-delta-none",
        lambda df: dpf.Ledger(1, None),
        TYPE,
        "delta must be a number, not None (NoneType). Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "ledger-unit-number",
        lambda df: dpf.Ledger(1, unit=3),
        TYPE,
        "unit must be the name of a column or a dpf.PrivacyUnit, not 3. "
        'Write unit="patient", or dpf.PrivacyUnit(column=...).',
        ANY,
    ),
    Refusal(
        "ledger-accounting-unknown",
        lambda df: dpf.Ledger(1, accounting="advanced"),
        VALUE,
        ("accounting must be 'basic', 'gdp'", ", not 'advanced'."),
        ANY,
    ),
    Refusal(
        "ledger-accounting-number",
        lambda df: dpf.Ledger(1, accounting=3),
        VALUE,
        ("accounting must be 'basic', 'gdp'", ", not 3."),
        ANY,
    ),
    Refusal(
        "ledger-gdp-without-delta",
        lambda df: dpf.Ledger(1, accounting="gdp"),
        VALUE,
        "delta must be above 0 for gdp accounting. Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "ledger-rdp-without-delta",
        lambda df: dpf.Ledger(1, accounting="rdp"),
        VALUE,
        "delta must be above 0 for rdp accounting. Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "ledger-rdp-too-little",
        lambda df: dpf.Ledger(1e-12, 1e-300, accounting="rdp"),
        VALUE,
        ("epsilon must be above what the conversion", "Write a larger epsilon or delta, or accounting='gdp'."),
        ANY,
    ),
    Refusal(
        "ledger-pld",
        lambda df: dpf.Ledger(1, 1e-6, accounting="pld"),
        VALUE,
        ("accounting must be 'basic', 'gdp', 'rdp' or None for a ledger, not 'pld'", "dpf.release_together(...)."),
        ANY,
    ),
    Refusal(
        "compare-without-delta",
        lambda df: dpf.compare_accounting([dpf.Laplace(1, 2.0)]),
        MISSING,
        ("delta must be given: every accounting is read at one delta.", "delta=1e-6)."),
        ANY,
    ),
    Refusal(
        "compare-delta-zero",
        lambda df: dpf.compare_accounting([dpf.Laplace(1, 2.0)], delta=0),
        VALUE,
        ("delta must be above 0 to compare accountings.", "delta=1e-6)."),
        ANY,
    ),
    Refusal(
        "compare-epsilons",
        lambda df: dpf.compare_accounting([0.1, 0.1], delta=1e-6),
        TYPE,
        ("workload must be a mechanism, a Plan, or a list of them, not 0.1.", "delta=1e-6)."),
        ANY,
    ),
    Refusal(
        "compare-nothing",
        lambda df: dpf.compare_accounting([], delta=1e-6),
        VALUE,
        ("workload must have at least one release.", "delta=1e-6)."),
        ANY,
    ),
    Refusal(
        "advanced-composition-without-slack",
        lambda df: dpf.advanced_composition(0.1, 0, 10, slack=0),
        VALUE,
        "slack must be a number above 0 and below 1, not 0. Write for instance 1e-6.",
        ANY,
    ),
    Refusal(
        "advanced-composition-deltas-pass-one",
        lambda df: dpf.advanced_composition(0.1, 0.1, 10, slack=1e-6),
        VALUE,
        "delta must be so small that all 10 of them and slack stay below 1. Write a smaller one.",
        ANY,
    ),
    Refusal(
        "optimal-composition-too-little-delta",
        lambda df: dpf.optimal_composition(0.1, 1e-3, 10, total_delta=1e-3),
        VALUE,
        ("total_delta must be at least the 0.00995", ", not 0.001. Write a larger one."),
        ANY,
    ),
    Refusal(
        "optimal-composition-half-a-release",
        lambda df: dpf.optimal_composition(0.1, 0, 2.5, total_delta=1e-3),
        TYPE,
        "count must be a whole number of releases, not 2.5. Write for instance 10.",
        ANY,
    ),
    Refusal(
        "optimal-composition-too-many",
        lambda df: dpf.optimal_composition(0.1, 0, 10**7, total_delta=1e-3),
        VALUE,
        "count must be a whole number from 1 to 1,000,000, not 10000000. Write for instance 10.",
        ANY,
    ),
    Refusal(
        "weights-list",
        lambda df: df.dp.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights=[1, 2]),
        TYPE,
        ("weights must be a dict of numbers by output column, not [1, 2].", "a name that is left out weighs 1."),
    ),
    Refusal(
        "weights-unknown",
        lambda df: df.dp.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights={"x": 2}),
        VALUE,
        ("weights must name the output columns n, m, not 'x'.", "Write for instance weights={'n': 2}"),
    ),
    Refusal(
        "weights-text",
        lambda df: df.dp.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights={"n": "2"}),
        TYPE,
        ("weights must be numbers above 0, and that of 'n' is '2'.", "Write for instance weights={'n': 2}"),
    ),
    Refusal(
        "weights-zero",
        lambda df: df.dp.agg(n=dpf.count(), m=dpf.count("age"), epsilon=1, weights={"n": 0}),
        VALUE,
        "weights must be finite numbers above 0, not 0. Write for instance weights={'name': 2}.",
    ),
    Refusal(
        "together-without-price",
        lambda df: dpf.release_together({"n": df.dp.preview.count()}),
        MISSING,
        "epsilon must be given (or share=): the price of all plans together. Write for instance epsilon=1.0.",
        ANY,
    ),
    Refusal(
        "together-list",
        lambda df: dpf.release_together([df.dp.preview.count()], epsilon=1),
        TYPE,
        ("plans must be a dict of plans by name, not a list.", "Write for instance {"),
        ANY,
    ),
    Refusal(
        "together-nothing",
        lambda df: dpf.release_together({}, epsilon=1),
        VALUE,
        ("plans must have at least one plan.", "Write for instance {"),
        ANY,
    ),
    Refusal(
        "together-frame",
        lambda df: dpf.release_together({"n": df}, epsilon=1),
        TYPE,
        ("plans must be made by .dp.preview, and 'n' is a", "Write for instance {"),
        ANY,
    ),
    Refusal(
        "together-number-as-name",
        lambda df: dpf.release_together({1: df.dp.preview.count()}, epsilon=1),
        TYPE,
        ("plans must have strings as names, not 1.", "Write for instance {"),
        ANY,
    ),
    Refusal(
        "together-weights",
        lambda df: dpf.plan_together({"n": df.dp.preview.count()}, epsilon=1, weights={"m": 2}),
        VALUE,
        ("weights must name the plans n, not 'm'.", "Write for instance weights={'n': 2}"),
        ANY,
    ),
    Refusal(
        "together-label",
        lambda df: dpf.release_together({"n": df.dp.preview.count()}, epsilon=1, label=3),
        TYPE,
        "label must be a string, not 3. Write for instance label='week 47'.",
        ANY,
    ),
    Refusal(
        "together-version",
        lambda df: dpf.release_together({"n": df.dp.preview.count(snapshot="1", label="n")}, epsilon=1),
        VALUE,
        ("snapshot must be left out of plans that are released together, unlike in 'n'", "Drop it there."),
        ANY,
    ),
    Refusal(
        "ledger-path-number",
        lambda df: dpf.Ledger(1, path=3),
        TYPE,
        "path must be a file's name, or a database URL such as postgresql+psycopg://host/name, not 3. Write for "
        "instance path='clinic.ledger'.",
        ANY,
    ),
    Refusal(
        "ledger-path-of-memory",
        lambda df: dpf.Ledger(1, path=":memory:"),
        VALUE,
        "path must be a file's name, or a database URL such as postgresql+psycopg://host/name, not ':memory:'. Leave "
        "path out for a ledger in memory.",
        ANY,
    ),
    Refusal(
        "ledger-dataset-number",
        lambda df: dpf.Ledger(1, dataset=3),
        TYPE,
        "dataset must be a string or None, not 3. Write dataset='clinic'.",
        ANY,
    ),
    Refusal(
        "ledger-verified-in-memory",
        lambda df: dpf.Ledger(1).verify(),
        dpf.LedgerError,
        "a ledger in memory cannot be verified: it has no chain. Keep it in a file: path=...",
        ANY,
    ),
    Refusal(
        "ledger-pickled",
        lambda df: pickle.dumps(dpf.Ledger(epsilon=1)),
        dpf.LedgerError,
        "a ledger in memory cannot be pickled: the copy would be a second budget for the same people.",
        ANY,
    ),
    Refusal(
        "default-ledger-number",
        lambda df: dpf.set_default_ledger(1),
        TYPE,
        "ledger must be a dpf.Ledger, not 1. Write for instance dpf.Ledger(epsilon=1.0).",
        ANY,
    ),
    Refusal(
        "no-ledger",
        lambda df: (dpf.Ledger(epsilon=1), df.dp.count(epsilon=1)),
        dpf.NoLedger,
        "which ledger pays? Pass ledger=..., or write the call inside `with ledger:`, or call "
        "dpf.set_default_ledger(ledger).",
        ledger=no_ledger,
    ),
    Refusal(
        "no-ledger-group-by",
        lambda df: (dpf.Ledger(epsilon=1), df.dp.group_by("ward", keys=WARDS).count(epsilon=1)),
        dpf.NoLedger,
        "which ledger pays? Pass ledger=..., or write the call inside `with ledger:`, or call "
        "dpf.set_default_ledger(ledger).",
        ledger=no_ledger,
    ),
    Refusal(
        "raise-nothing",
        lambda df: dpf.Ledger(1).raise_limit(reason="the board agreed"),
        MISSING,
        "epsilon must be given: the new limit. Write for instance raise_limit(epsilon=2.0, ...).",
        ANY,
    ),
    Refusal(
        "raise-to-less",
        lambda df: dpf.Ledger(1).raise_limit(epsilon=0.5, reason="the board agreed"),
        VALUE,
        "epsilon must not be below the ledger's 1.0, not 0.5: a limit is only raised. Leave it out to keep it.",
        ANY,
    ),
    Refusal(
        "raise-to-the-same",
        lambda df: dpf.Ledger(1).raise_limit(epsilon=1, reason="the board agreed"),
        VALUE,
        "epsilon must be above the ledger's 1.0 to raise it. Write more.",
        ANY,
    ),
    Refusal(
        "raise-delta-under-gdp",
        lambda df: gdp().raise_limit(epsilon=2, delta=1e-5, reason="the board agreed"),
        VALUE,
        "delta must be left out: gdp accounting reads every loss at the delta that the ledger was made with. Raise "
        "epsilon.",
        ANY,
    ),
    Refusal(
        "raise-without-a-reason",
        lambda df: dpf.Ledger(1).raise_limit(epsilon=2, reason=""),
        TYPE,
        "reason must be a sentence for the record, not ''. Write why.",
        ANY,
    ),
    Refusal(
        "raise-the-default",
        lambda df: dpf.default_ledger().raise_limit(epsilon=2, reason="the board agreed"),
        dpf.LedgerError,
        "ledger must have a limit to raise, and the default one has none. Make one with dpf.Ledger(epsilon=...).",
        ANY,
    ),
    Refusal(
        "budget-exceeded",
        lambda df: df.dp.count(epsilon=1.5),
        dpf.BudgetExceeded,
        "the call costs epsilon 1.5, but only epsilon 1 of epsilon 1 is left in the ledger. Ask for less.",
    ),
    Refusal(
        "budget-exceeded-by-a-hair",
        lambda df: df.dp.count(epsilon=Decimal("1.000000000000000000001")),
        dpf.BudgetExceeded,
        "the call costs epsilon 1.0000000000000002, but only epsilon 1.0 of epsilon 1 is left in the ledger. "
        "Ask for less.",
    ),
    Refusal(
        "budget-exceeded-histogram",
        lambda df: df.dp.histogram("age", bins=[0, 50], epsilon=3),
        dpf.BudgetExceeded,
        "the call costs epsilon 3, but only epsilon 1 of epsilon 1 is left in the ledger. Ask for less.",
    ),
    Refusal(
        "budget-exceeded-agg",
        lambda df: df.dp.group_by("ward", keys=WARDS).agg(dpf.count(), epsilon=3),
        dpf.BudgetExceeded,
        "the call costs epsilon 3, but only epsilon 1 of epsilon 1 is left in the ledger. Ask for less.",
    ),
    Refusal(
        "budget-without-delta",
        lambda df: df.dp.count(epsilon=0.5, delta=1e-6),
        dpf.BudgetExceeded,
        "the call costs epsilon 0.5, delta 1e-06, but only epsilon 1 of epsilon 1 is left in the ledger. It "
        "has no delta: leave delta out, or make one with dpf.Ledger(epsilon=..., delta=...).",
    ),
    Refusal(
        "budget-exceeded-delta",
        lambda df: df.dp.count(epsilon=0.5, delta=1e-3),
        dpf.BudgetExceeded,
        "the call costs epsilon 0.5, delta 0.001, but only epsilon 1, delta 1e-06 of epsilon 1, delta 1e-06 "
        "is left in the ledger. Ask for less.",
        ledger=lambda: dpf.Ledger(1, 1e-6, accounting="basic"),
    ),
    Refusal(
        "budget-exceeded-gdp",
        lambda df: df.dp.count(epsilon=1.5),
        dpf.BudgetExceeded,
        "the call costs epsilon 1.5, delta 1e-06, but only epsilon 1, delta 1e-06 of epsilon 1, delta 1e-06 "
        "is left in the ledger. Ask for less. (gdp accounting adds mu^2, not epsilon: the call takes 212% of "
        "the whole limit.)",
        ledger=gdp,
    ),
    Refusal(
        "budget-exceeded-gdp-laplace",
        lambda df: df.dp.count(epsilon=0.9, mechanism="laplace"),
        dpf.BudgetExceeded,
        "the call costs epsilon 5.51835, delta 1e-06, but only epsilon 1, delta 1e-06 of epsilon 1, delta "
        "1e-06 is left in the ledger. Ask for less. (gdp accounting adds mu^2, not epsilon: the call takes "
        "2208% of the whole limit.)",
        ledger=gdp,
    ),
]

NOISE = [
    Refusal(
        "laplace-sensitivity-zero",
        lambda df: dpf.Laplace.calibrate(sensitivity=0, epsilon=1),
        VALUE,
        "sensitivity must be finite and above 0, not 0.",
        ANY,
    ),
    Refusal(
        "laplace-sensitivity-nan",
        lambda df: dpf.Laplace.calibrate(sensitivity=NAN, epsilon=1),
        VALUE,
        "sensitivity must be finite and above 0, not nan.",
        ANY,
    ),
    Refusal(
        "laplace-sensitivity-string",
        lambda df: dpf.Laplace.calibrate(sensitivity="1", epsilon=1),
        TYPE,
        "sensitivity must be a number, not '1' (str).",
        ANY,
    ),
    Refusal(
        "laplace-sensitivity-huge",
        lambda df: dpf.Laplace.calibrate(sensitivity=10**400, epsilon=1),
        VALUE,
        "sensitivity must be finite and above 0, not 100000000000000000000000000000000000000000000000000000000....",
        ANY,
    ),
    Refusal(
        "laplace-epsilon-zero",
        lambda df: dpf.Laplace.calibrate(sensitivity=1, epsilon=0),
        VALUE,
        "epsilon must be a finite number above 0, not 0. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "laplace-epsilon-none",
        lambda df: dpf.Laplace.calibrate(sensitivity=1, epsilon=None),
        TYPE,
        "epsilon must be a number, not None (NoneType). Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "laplace-epsilon-too-small",
        lambda df: dpf.Laplace.calibrate(sensitivity=1, epsilon=1e-30),
        VALUE,
        "epsilon must be large enough for noise that fits 64-bit integers, but would need a scale of more "
        "than 4.5e+15 grid steps. Write a larger epsilon.",
        ANY,
    ),
    Refusal(
        "laplace-grid-zero",
        lambda df: dpf.Laplace.calibrate(sensitivity=1, epsilon=1, grid=0),
        VALUE,
        "grid must be finite and above 0, not 0.",
        ANY,
    ),
    Refusal(
        "laplace-grid-string",
        lambda df: dpf.Laplace.calibrate(sensitivity=1, epsilon=1, grid="1"),
        TYPE,
        "grid must be a number, not '1' (str).",
        ANY,
    ),
    Refusal(
        "laplace-by-hand",
        lambda df: dpf.Laplace("1", 2.0),
        TYPE,
        "step_sensitivity must be a number, not '1' (str).",
        ANY,
    ),
    Refusal(
        "laplace-by-hand-zero",
        lambda df: dpf.Laplace(1, 0.0),
        VALUE,
        "step_scale must be finite and above 0, not 0.0.",
        ANY,
    ),
    Refusal(
        "laplace-interval-one",
        lambda df: LAPLACE.interval(1),
        VALUE,
        "confidence must be between 0 and 1, not 1. Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "laplace-interval-percent",
        lambda df: LAPLACE.interval(95),
        VALUE,
        "confidence must be between 0 and 1, not 95. Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "laplace-interval-nan",
        lambda df: LAPLACE.interval(NAN),
        VALUE,
        "confidence must be between 0 and 1, not nan. Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "laplace-interval-string",
        lambda df: LAPLACE.interval("95%"),
        TYPE,
        "confidence must be a number, not '95%' (str). Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "laplace-delta-string", lambda df: LAPLACE.delta("1"), TYPE, "epsilon must be a number, not '1' (str).", ANY
    ),
    Refusal(
        "laplace-delta-negative",
        lambda df: LAPLACE.delta(-1),
        VALUE,
        "epsilon must be a finite number of at least 0, not -1.",
        ANY,
    ),
    Refusal(
        "laplace-epsilon-negative",
        lambda df: LAPLACE.epsilon(-0.1),
        VALUE,
        "delta must be a number with 0 <= delta <= 1, not -0.1.",
        ANY,
    ),
    Refusal(
        "laplace-epsilon-string", lambda df: LAPLACE.epsilon("0"), TYPE, "delta must be a number, not '0' (str).", ANY
    ),
    Refusal(
        "laplace-add-noise-list",
        lambda df: LAPLACE.add_noise([1, 2]),
        TYPE,
        "totals must be an int64 array of grid steps, not a list.",
        ANY,
    ),
    Refusal(
        "laplace-add-noise-floats",
        lambda df: LAPLACE.add_noise(np.zeros(3)),
        TYPE,
        "totals must be an int64 array of grid steps, not an ndarray of float64.",
        ANY,
    ),
    Refusal(
        "laplace-add-noise-int32",
        lambda df: LAPLACE.add_noise(np.zeros(3, dtype=np.int32)),
        TYPE,
        "totals must be an int64 array of grid steps, not an ndarray of int32.",
        ANY,
    ),
    Refusal(
        "gaussian-delta-zero",
        lambda df: dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=0),
        VALUE,
        "delta must be a number with 0 < delta < 1, not 0.0.",
        ANY,
    ),
    Refusal(
        "gaussian-delta-one",
        lambda df: dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1),
        VALUE,
        "delta must be a number with 0 <= delta < 1, not 1. Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "gaussian-delta-string",
        lambda df: dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta="1e-6"),
        TYPE,
        "delta must be a number, not '1e-6' (str). Write for instance delta=1e-6.",
        ANY,
    ),
    Refusal(
        "gaussian-epsilon-zero",
        lambda df: dpf.Gaussian.calibrate(sensitivity=1, epsilon=0, delta=1e-6),
        VALUE,
        "epsilon must be a finite number above 0, not 0. Write for instance epsilon=0.5.",
        ANY,
    ),
    Refusal(
        "gaussian-epsilon-huge",
        lambda df: dpf.Gaussian.calibrate(sensitivity=1, epsilon=1e15, delta=1e-6),
        VALUE,
        "epsilon must be a number with 0 <= epsilon <= 1e+12, not 1000000000000000.0.",
        ANY,
    ),
    Refusal(
        "gaussian-sensitivity-inf",
        lambda df: dpf.Gaussian.calibrate(sensitivity=INF, epsilon=1, delta=1e-6),
        VALUE,
        "sensitivity must be finite and above 0, not inf.",
        ANY,
    ),
    Refusal(
        "gaussian-by-hand", lambda df: dpf.Gaussian(1.0, "2"), TYPE, "step_scale must be a number, not '2' (str).", ANY
    ),
    Refusal(
        "gaussian-interval-zero",
        lambda df: GAUSSIAN.interval(0),
        VALUE,
        "confidence must be between 0 and 1, not 0. Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "gaussian-interval-none",
        lambda df: GAUSSIAN.interval(None),
        TYPE,
        "confidence must be a number, not None (NoneType). Write for instance 0.95.",
        ANY,
    ),
    Refusal(
        "gaussian-delta-of-nan",
        lambda df: GAUSSIAN.delta(NAN),
        VALUE,
        "epsilon must be a finite number of at least 0, not nan.",
        ANY,
    ),
    Refusal(
        "gaussian-epsilon-of-one",
        lambda df: GAUSSIAN.epsilon(1),
        VALUE,
        "delta must be a number with 0 < delta < 1, not 1.",
        ANY,
    ),
    Refusal(
        "gaussian-add-noise-series",
        lambda df: GAUSSIAN.add_noise(pl.Series([1, 2])),
        TYPE,
        "totals must be an int64 array of grid steps, not a Series.",
        ANY,
    ),
    Refusal(
        "sigma-epsilon-negative",
        lambda df: dpf.analytic_gaussian_sigma(-1, 1e-6),
        VALUE,
        "epsilon must be a number with 0 <= epsilon <= 1e+12, not -1.",
        ANY,
    ),
    Refusal(
        "sigma-epsilon-nan",
        lambda df: dpf.analytic_gaussian_sigma(NAN, 1e-6),
        VALUE,
        "epsilon must be a number with 0 <= epsilon <= 1e+12, not nan.",
        ANY,
    ),
    Refusal(
        "sigma-epsilon-string",
        lambda df: dpf.analytic_gaussian_sigma("1", 1e-6),
        TYPE,
        "epsilon must be a number, not '1' (str).",
        ANY,
    ),
    Refusal(
        "sigma-epsilon-list",
        lambda df: dpf.analytic_gaussian_sigma([1], 1e-6),
        TYPE,
        "epsilon must be a number, not [1] (list).",
        ANY,
    ),
    Refusal(
        "sigma-epsilon-bool",
        lambda df: dpf.analytic_gaussian_sigma(True, 1e-6),
        TYPE,
        "epsilon must be a number, not True (bool).",
        ANY,
    ),
    Refusal(
        "sigma-delta-zero",
        lambda df: dpf.analytic_gaussian_sigma(1, 0),
        VALUE,
        "delta must be a number with 0 < delta < 1, not 0.",
        ANY,
    ),
    Refusal(
        "sigma-delta-one",
        lambda df: dpf.analytic_gaussian_sigma(1, 1.0),
        VALUE,
        "delta must be a number with 0 < delta < 1, not 1.0.",
        ANY,
    ),
    Refusal(
        "sigma-delta-none",
        lambda df: dpf.analytic_gaussian_sigma(1, None),
        TYPE,
        "delta must be a number, not None (NoneType).",
        ANY,
    ),
    Refusal(
        "sigma-sensitivity-zero",
        lambda df: dpf.analytic_gaussian_sigma(1, 1e-6, 0),
        VALUE,
        "sensitivity must be finite and above 0, not 0.",
        ANY,
    ),
    Refusal(
        "sigma-sensitivity-nan",
        lambda df: dpf.analytic_gaussian_sigma(1, 1e-6, NAN),
        VALUE,
        "sensitivity must be finite and above 0, not nan.",
        ANY,
    ),
    Refusal(
        "sigma-sensitivity-string",
        lambda df: dpf.analytic_gaussian_sigma(1, 1e-6, "1"),
        TYPE,
        "sensitivity must be a number, not '1' (str).",
        ANY,
    ),
    Refusal(
        "sigma-sensitivity-huge",
        lambda df: dpf.analytic_gaussian_sigma(1, 1e-6, 10**400),
        VALUE,
        "sensitivity must be finite and above 0, not 100000000000000000000000000000000000000000000000000000000....",
        ANY,
    ),
]

LAPLACE = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
GAUSSIAN = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6)

AGES = dpf.bins("age", [0, 18, 65, 120])
WEEKS = dpf.dates("2024-01-01", "2024-01-08", every="1w")
BINS_ELSEWHERE = (
    'dpf.bins must stand inside group_by, as in group_by(dpf.bins("age", [0, 18, 65, 120])).count(epsilon=1). '
    "Elsewhere name the column, and in a histogram write bins=[0, 18, 65, 120]."
)
DATES_ELSEWHERE = (
    'dpf.dates must be the keys of a column, as in group_by("date", keys=dpf.dates("2025-01-06", "2025-12-29", '
    'every="1w")). For a histogram write bins="1w", range=("2025-01-06", "2026-01-05").'
)
MISPLACED_BINS: dict[str, Callable[[Any], Any]] = {
    "as-a-column": lambda df: df.dp.count(AGES, epsilon=1),
    "as-a-column-of-a-histogram": lambda df: df.dp.histogram(AGES, epsilon=1),
    "among-columns-of-a-histogram": lambda df: df.dp.histogram([AGES, "cost"], bins=[[0, 1], [0, 1]], epsilon=1),
    "as-bins-of-a-histogram": lambda df: df.dp.histogram("age", bins=AGES, epsilon=1),
    "as-bins-of-an-ecdf": lambda df: df.dp.ecdf("age", bins=AGES, epsilon=1),
    "as-keys": lambda df: df.dp.group_by("age", keys=AGES).count(epsilon=1),
    "among-keys": lambda df: df.dp.group_by("age", keys=[AGES]).count(epsilon=1),
    "as-keys-by-column": lambda df: df.dp.group_by("age", keys={"age": AGES}).count(epsilon=1),
    "as-categories": lambda df: df.dp.mode("age", categories=AGES, epsilon=1),
    "as-a-statistic": lambda df: df.dp.agg(n=AGES, epsilon=1),
    "as-a-statistic-without-a-name": lambda df: df.dp.agg(AGES, epsilon=1),
    "in-a-statistic": lambda df: df.dp.agg(m=dpf.mean(AGES, bounds=(0, 1)), epsilon=1),  # type: ignore[arg-type]
    "as-groups-of-contributions": lambda df: df.dp.contributions(by=AGES, unit="patient", epsilon=1),
}
MISPLACED_DATES: dict[str, Callable[[Any], Any]] = {
    "as-bins": lambda df: df.dp.histogram("at", bins=WEEKS, epsilon=1),
    "in-bins": lambda df: df.dp.group_by(dpf.bins("at", WEEKS)).count(epsilon=1),
    "as-categories": lambda df: df.dp.histogram("at", categories=WEEKS, epsilon=1),
    "as-options": lambda df: df.dp.top_k("at", k=1, categories=WEEKS, epsilon=1),
    "among-keys": lambda df: df.dp.group_by("at", keys=[WEEKS]).count(epsilon=1),
    "as-a-column": lambda df: df.dp.group_by(WEEKS, keys=[1]).count(epsilon=1),
    "in-dates": lambda df: df.dp.group_by("at", keys=dpf.dates(WEEKS, "2024-01-08", every="1w")),  # type: ignore[arg-type]
}
CELLS = [
    *(Refusal(f"bins-{name}", call, TYPE, BINS_ELSEWHERE) for name, call in MISPLACED_BINS.items()),
    *(Refusal(f"dates-{name}", call, TYPE, DATES_ELSEWHERE) for name, call in MISPLACED_DATES.items()),
    Refusal(
        "bins-alone-with-keys",
        lambda df: df.dp.group_by(AGES, keys=["A"]).count(epsilon=1),
        VALUE,
        "keys must be left out where group_by names bins alone, which are the groups. Drop them. Write for instance "
        'keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "bins-beside-a-column-without-keys",
        lambda df: df.dp.group_by(AGES, "ward").count(epsilon=1),
        MISSING,
        'keys must be given: they are never taken from the data. Write for instance keys=["A", "B"] or '
        'keys={"ward": ["A", "B"], "sex": ["f", "m"]}.',
    ),
    Refusal(
        "bins-and-keys-of-one-column",
        lambda df: df.dp.group_by(AGES, "age", keys=[1, 2]).count(epsilon=1),
        VALUE,
        "column 'age' must be named once in keys and bins. Drop the second.",
    ),
    Refusal(
        "keys-of-a-binned-column",
        lambda df: df.dp.group_by(AGES, "ward", keys={"age": [1], "ward": WARDS}).count(epsilon=1),
        VALUE,
        "keys must name the columns ['ward'] and no other, not ['age', 'ward']. Write keys={'ward': [...]}.",
    ),
    Refusal(
        "grouped-bins-of-strings",
        lambda df: df.dp.group_by(dpf.bins("ward", [0, 1])).count(epsilon=1),
        DTYPE,
        ("bins of column 'ward' must suit its dtype ", ", but they are numbers. Declare categories="),
    ),
    Refusal(
        "grouped-bins-mode",
        lambda df: df.dp.group_by(AGES).mode("ward", categories=WARDS, epsilon=1),
        VALUE,
        ("mode must be asked of the whole frame, not per group: one unit may sway",),
    ),
    Refusal(
        "grouped-bins-graph",
        lambda df: df.dp.group_by(AGES, "ward", keys=WARDS).count(graph=[("A", "B")], epsilon=1),
        VALUE,
        "graph must be left out of bins, whose neighbors are known. Drop it.",
    ),
    Refusal(
        "rollup-of-grouped-bins",
        lambda df: df.dp.group_by(AGES, "ward", keys=WARDS).count(rollup=True, epsilon=1),
        VALUE,
        "rollup must be left out where there are bins, which have no name for their total. "
        "Add up bins yourself, or group by declared keys.",
    ),
    Refusal(
        "dates-of-a-zoned-column",
        lambda df: df.dp.group_by("zoned", keys=WEEKS).count(epsilon=1),
        DTYPE,
        (
            "column 'zoned' must have no time zone to be cut into days or weeks, which begin at another instant in "
            "each zone, but its dtype is ",
            ". Convert it to local time first, and drop the zone.",
        ),
    ),
    Refusal(
        "weeks-of-a-zoned-column",
        lambda df: df.dp.histogram("zoned", bins="1w", range=("2024-01-01", "2024-01-08"), epsilon=1),
        DTYPE,
        ("column 'zoned' must have no time zone to be cut into days or weeks", "Convert it to local time first"),
    ),
    Refusal(
        "dates-of-numbers",
        lambda df: df.dp.group_by("age", keys=WEEKS).count(epsilon=1),
        DTYPE,
        ("column 'age' must hold dates or datetimes for keys=dpf.dates, but its dtype is ", "Cast it to dates first."),
    ),
    Refusal(
        "dates-of-strings",
        lambda df: df.dp.group_by("ward", keys=WEEKS).count(epsilon=1),
        DTYPE,
        ("column 'ward' must hold dates or datetimes for keys=dpf.dates, but its dtype is ", "Cast it to dates first."),
    ),
    Refusal(
        "dates-too-many",
        lambda df: df.dp.group_by("at", keys=WEEKS).count(max_cells=1, epsilon=1),
        VALUE,
        "keys and bins must make at most max_cells=1 cells, not 2. Declare fewer, or say that you mean it: "
        "max_cells=2.",
    ),
    Refusal(
        "keys-of-a-range-of-dates",
        lambda df: df.dp.group_by("at", keys=pl.date_range(date(2024, 1, 1), date(2024, 1, 8), "1w", eager=True)),
        TYPE,
        "keys must be a list, tuple or range that you wrote down, not a Series: keys that come from data reveal who is "
        'in it. Write for instance keys=dpf.dates("2025-01-06", "2025-12-29", every="1w").',
    ),
    Refusal(
        "keys-of-intervals",
        lambda df: df.dp.group_by("age", keys=[pandas().Interval(0, 18)]).count(epsilon=1),
        TYPE,
        'keys must be values, not intervals. Group by bins: group_by(dpf.bins("age", [0, 18, 65, 120])), each of which '
        "holds its left edge.",
        PANDAS,
    ),
    Refusal(
        "bins-of-intervals-closed-on-the-right",
        lambda df: df.dp.histogram("age", bins=pandas().interval_range(0, 90, periods=3), epsilon=1),
        VALUE,
        "bins must be intervals that are closed on the left alone, since a value on an edge is in the bin that begins "
        "there. Write their edges, as in bins=[0, 18, 65], or pd.IntervalIndex.from_breaks([0, 18, 65], "
        'closed="left").',
        PANDAS,
    ),
    Refusal(
        "weeks-without-a-range",
        lambda df: df.dp.histogram("at", bins="1w", epsilon=1),
        MISSING,
        "range must be given with bins='1w': it is never taken from the data. Write for instance bins=\"1w\", "
        'range=("2024-01-01", "2029-01-01").',
    ),
    Refusal(
        "weeks-off-the-grid",
        lambda df: df.dp.histogram("at", bins="1w", range=("2024-01-01", "2024-01-09"), epsilon=1),
        VALUE,
        "range must be the first day of a step of '1w' (weeks from Monday), unlike 2024-01-09, a Tuesday. The nearest "
        "are 2024-01-08 and 2024-01-15: write one of them.",
    ),
    Refusal(
        "weeks-reversed",
        lambda df: df.dp.histogram("at", bins="1w", range=("2024-01-08", "2024-01-01"), epsilon=1),
        VALUE,
        "range must have its lower end first, and 2024-01-08 is not below 2024-01-01. Exchange them.",
    ),
    Refusal(
        "weeks-of-no-pair",
        lambda df: df.dp.histogram("at", bins="1w", range="2024-01-01", epsilon=1),
        TYPE,
        "range must be a pair of days (first, last), not '2024-01-01'. Write for instance bins=\"1w\", "
        'range=("2024-01-01", "2029-01-01").',
    ),
    Refusal(
        "cube-and-rollup",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(rollup=True, cube=True, epsilon=1),
        VALUE,
        "rollup must be left out with cube=True, which holds its subtotals. Keep one.",
    ),
    Refusal(
        "cube-of-one-number",
        lambda df: df.dp.count(cube=True, epsilon=1),
        VALUE,
        "cube must be left out of a single number, which has no subtotals. "
        'Write group_by("ward", keys=["A", "B"]).count(cube=True).',
    ),
    Refusal(
        "cube-number",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(cube=1, epsilon=1),
        TYPE,
        "cube must be True or False, not 1.",
    ),
    Refusal(
        "cube-of-combinations",
        lambda df: df.dp.group_by("ward", "age", keys=pl.DataFrame({"ward": WARDS, "age": [1, 2]})).count(
            cube=True, epsilon=1
        ),
        VALUE,
        "keys must be a dict of values by column with cube=True, not a frame of combinations, whose margins lack some. "
        'Write keys={"ward": ["A", "B"], "sex": ["f", "m"]}, or rollup=True for columns that nest.',
    ),
    Refusal(
        "cube-of-missing-keys",
        lambda df: df.dp.group_by("ward", keys=["A", None]).count(cube=True, epsilon=1),
        VALUE,
        "keys must not hold None with cube=True, since None marks the rows of subtotals. "
        "Leave it out, or fill the column's missing values with a name of their own.",
    ),
    Refusal(
        "cube-of-a-mean",
        lambda df: df.dp.group_by("ward", keys=WARDS).mean("age", bounds=(0, 9), cube=True, epsilon=1),
        VALUE,
        "cube must be left out of a mean (age_mean), which is not the sum of its parts. "
        "Ask for dpf.count and dpf.sum of the column, and divide.",
    ),
    Refusal(
        "cube-ordered",
        lambda df: df.dp.group_by("age", keys=[1, 2]).count(order=True, cube=True, epsilon=1),
        VALUE,
        "order must be left out with cube=True, whose fit has no use for it. Keep one.",
    ),
    Refusal(
        "cube-denoised-otherwise",
        lambda df: df.dp.group_by("ward", keys=WARDS).count(cube=True, denoise="james-stein", epsilon=1),
        VALUE,
        "denoise must be 'auto' or None with cube=True, not 'james-stein': what makes subtotals add up is itself a "
        "denoiser. Leave it out.",
    ),
    Refusal(
        "cube-too-many-rows",
        lambda df: df.dp.group_by("ward", "age", keys={"ward": WARDS, "age": [1, 2]}).count(
            cube=True, max_cells=8, epsilon=1
        ),
        VALUE,
        "cube must make at most max_cells=8 rows, not 9. Declare fewer, or say that you mean it: max_cells=9.",
    ),
]

REFUSALS = [*PRICE, *BOUNDS, *KEYS, *BINS, *CELLS, *COLUMNS, *OPTIONS, *AGG, *RESULTS, *UNITS, *LEDGERS, *NOISE]
