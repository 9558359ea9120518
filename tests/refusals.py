"""The table of refusals: wrong calls, the class of error of each, and its message.

The cases are data: `refusals.toml`. To add one, write a table there under its part, with a name of its own:

    [price.epsilon-missing]
    call = "df.dp.count()"                 # Python; `df` is the frame, and the names of this file are known
    error = "MissingArgument"              # a class of dpframe
    words = "epsilon must be given ..."    # the whole message; or a list of the parts around text that engines vary
    engines = "ANY"                        # the frames of the call, if not all: one of `ENGINES`
    ledger = "dpf.Ledger(epsilon=2)"       # the ledger of the call, if not one of epsilon 1; "None" for none
    prepare = "released(df)"               # the object of the call, made from the frame beforehand

The call is made on `private_frame` in each of these engines, inside ``with ledger:``.
"""

from __future__ import annotations

import pickle
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe import errors
from dpframe.accessor import options

ENGINES = {
    "ALL": ("pandas", "polars", "lazy"),
    "POLARS": ("polars", "lazy"),
    "PANDAS": ("pandas",),
    "EAGER": ("pandas", "polars"),
    "ANY": ("polars",),  # the call does not depend on the frame: once is enough
}

NAN, INF = float("nan"), float("inf")
WARDS = ["A", "B"]
NOON = datetime(2024, 1, 1, 12)
UTC_NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Refusal:
    """One wrong call and the error that it must get."""

    id: str
    call: Callable[[Any], Any]
    error: type[dpf.DpframeError]
    words: str | tuple[str, ...]
    engines: tuple[str, ...]
    ledger: Callable[[], dpf.Ledger | None]
    prepare: Callable[[Any], Any]


def private_frame(engine: Any) -> Any:
    """Return people, in columns of all the dtypes that a library has."""
    columns: dict[str, list[Any]] = {
        "age": [31, 45, 62, 7],
        "cost": [10.5, 20.0, None, 3.25],
        "ward": ["A", "B", "A", None],
        "patient": [1, 1, 2, 3],
        "at": [NOON, NOON + timedelta(days=1), NOON, NOON],
        "zoned": [UTC_NOON, UTC_NOON + timedelta(days=1), UTC_NOON, UTC_NOON],
        "stay": [timedelta(days=1), timedelta(days=2), timedelta(days=1), timedelta(days=1)],
        "well": [True, False, True, True],
    }
    if engine.is_pandas:
        return engine(columns).astype({"ward": "string"})  # an object column may hold numbers, so it is never refused
    columns |= {
        "day": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1), None],
        "tags": [["x"], [], ["y"], None],
        "point": [{"x": 1}, {"x": 2}, {"x": 3}, None],
        "blob": [b"a", b"b", b"c", None],
    }
    return engine(columns)


def gdp() -> dpf.Ledger:
    return dpf.Ledger(epsilon=1, delta=1e-6)


def released(frame: Any) -> Any:
    """Return a result that is charged to another ledger."""
    return frame.dp.histogram("age", bins=[0, 50, 100], epsilon=1, ledger=dpf.Ledger(epsilon=1))


def pandas() -> Any:
    import pandas

    return pandas


def laplace(**changed: Any) -> Callable[..., Any]:
    """Return a calibration with some arguments changed."""

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
LAPLACE = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
GAUSSIAN = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6)
AGES = dpf.bins("age", [0, 18, 65, 120])
WEEKS = dpf.dates("2024-01-01", "2024-01-08", every="1w")
IN_THE_TABLE = (Decimal, Fraction, np, pickle)  # names that only the table uses

TABLE = Path(__file__).with_suffix(".toml")


def refusals() -> Iterator[Refusal]:
    """The cases of the table, in its order."""
    for part in tomllib.loads(TABLE.read_text(encoding="utf-8")).values():
        for name, case in part.items():
            parts = case["words"] if isinstance(case["words"], list) else [case["words"]]
            words = tuple(one.replace("{OPTIONS}", OPTIONS) for one in parts)
            yield Refusal(
                name,
                _function(name, f"lambda df: {case['call']}"),
                getattr(errors, case["error"]),
                words if isinstance(case["words"], list) else words[0],
                ENGINES[case.get("engines", "ALL")],
                _function(name, f"lambda: {case.get('ledger', 'dpf.Ledger(epsilon=1)')}"),
                _function(name, f"lambda df: {case.get('prepare', 'df')}"),
            )


def _function(name: str, text: str) -> Any:
    return eval(compile(text, f"{TABLE.name}: {name}", "eval"), globals())


REFUSALS = [*refusals()]
