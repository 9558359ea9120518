"""The base of the methods of the local model: checks of parameters, JSON, `randomize`, `estimate`, public hashes.

Estimates are frames with errors and a record, like the results of releases.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.denoise import public_total
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, is_one_of, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import exact_epsilon, exactly, shown_up
from dpframe.frames import build, foreign, prints
from dpframe.frames.columns import column_frame
from dpframe.frames.kinds import library_of
from dpframe.privacy import PrivacyUnit, beyond_first
from dpframe.queries.keys import value_axis
from dpframe.queries.limits import length
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.statistics import CONFIDENCE
from dpframe.release import randomizing

Floats = NDArray[np.float64]

HALF_WIDTH = 1.9599639845400545  # the half-width of a 95% interval in standard deviations, rounded up
SCHEMA = "dpframe.provenance/2"
SPREAD = "missing and undeclared values are spread at random over the categories, and margins of error leave this out"
MIDDLE = "missing values count as the middle of the bounds"
KEPT = ("label", "unit", "cost", "warning", "per_report")  # facts that an estimate takes from the record of its reports


class Estimator(Protocol):
    """The members that a method must have to estimate from its reports."""

    @property
    def name(self) -> str: ...
    @property
    def loss(self) -> Any: ...
    @property
    def denoise(self) -> str | None: ...
    def facts(self) -> dict[str, Any]: ...
    def question(self, column: str) -> Any: ...
    def estimates(self, frame: Any, column: str) -> tuple[int, Floats, Floats]:
        """Return the number of reports, the unbiased values and their variances."""


def estimated(method: Estimator, reports: Any, denoise: str | None) -> Any:
    """Return the estimate of a method from its reports."""
    if not is_one_of(denoise, (None, method.denoise)):
        ways = "None" if method.denoise is None else f"{method.denoise!r} or None"
        raise InvalidArgument(f"denoise must be {ways} for {method.name}, not {shown(denoise)}.")
    frame, column = column_frame(reports, "reports")
    known = build.record_of(frame) or {}
    if foreign.is_reports(known) and not _made(method, known["method"]):
        raise InvalidArgument(
            "reports must be of this very method, and by their record another one made them. "
            "Write dpf.local.estimate(reports), which reads it from the record."
        )
    n, values, variances = method.estimates(frame, column)
    query = method.question(column)
    name = next(name for name, _ in query.statistics)
    columns: dict[str, Any] = dict(query.keys.labels())
    columns[name] = values
    if denoise is not None:
        columns[name] = public_total(values, None, total=n, nonnegative=True)  # type: ignore[arg-type]
        columns[name + NOISY] = values
    columns[name + ERROR] = HALF_WIDTH * np.sqrt(variances)
    built = build.frame_of(columns, library_of(frame))
    return build.attach(built, _record(built, method, query, known, float(variances.max(initial=0.0)), denoise))


def wider_variances(counts: Floats, reports: int, none: float, every: float, gap: float) -> Floats:
    """Return the variances of estimated counts, widened for rare categories and for steps.

    A variance is linear in the count, from `none` if nobody has the category to `every` if all have it. If no report
    holds a category, its estimate would seem nearly exact, although a few people may have it. To correct this, the
    variance alone takes 1.92 reports (half the square of 1.96) more, or fewer if this makes it larger (Agresti and
    Coull 1998). A report stands for 1 / `gap` people, so estimates lie on steps of this length. If the deviation is
    below a step, an interval of 1.96 deviations holds one step alone. The square of half a step is added as a
    correction for continuity. The exact coverage is in ``tests/local/test_local_estimates.py``.
    """
    slope = (every - none) / max(reports, 1)
    moved = counts + math.copysign(HALF_WIDTH**2 / 2.0 / gap, slope)
    return np.asarray(none + slope * np.clip(moved, 0.0, reports) + (0.5 / gap) ** 2)


def _made(method: Any, facts: Mapping[str, Any]) -> bool:
    """Return whether a record names this method."""
    return facts.get("method") == type(method).__name__ and type(method).of_facts(facts) == method


def _record(
    frame: Any, method: Estimator, query: Any, known: Mapping[str, Any], variance: float, denoise: str | None
) -> dict[str, Any]:
    """Return the provenance: that of the reports, as far as it is known, and the facts on the estimate."""
    (name, statistic), labels = query.statistics[0], list(query.keys.names)
    columns = [column for column in frame.columns if column not in labels]
    epsilon = shown_up(method.loss)
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": VERSION,
        "label": None,
        "verb": "estimate",
        "model": "local",
        "method": method.facts(),
        "per_report": epsilon,
        "unit": PrivacyUnit(neighbors="replace").facts(),
        "cost": {"epsilon": epsilon, "delta": 0.0, "accounting": "basic"},
        **{fact: known[fact] for fact in KEPT if fact in known},
        "cells": [
            {"columns": list(axis.columns), "size": axis.size, "keys": [axis.kind(0)]} for axis in query.keys.axes
        ],
        "measures": {name: _measure(statistic, denoise)},
        "statistics": [_statistic(method, variance)],
        "notes": [
            f"local model: estimated from reports that were randomized by themselves, by {method.name}",
            SPREAD if labels else MIDDLE,
            *getattr(method, "notes", ()),  # only some methods have these
            *_beyond(known),
        ],
        "confidence": CONFIDENCE,
        "keep_noisy": denoise is not None,
        "columns": columns,
        "sha256": build.fingerprint(frame, columns),
    }
    if (stamp := noise.stamp()) is not None:
        facts["warning"] = stamp
    row_print = prints.print_of(frame, labels, columns)
    return facts | {"rows": None if row_print is None else _rows(labels, row_print)}


def _beyond(known: Mapping[str, Any]) -> list[str]:
    """Return a note on the rows that are reported as missing values, because their unit has too many rows."""
    unit = PrivacyUnit.of_facts(known["unit"]) if "unit" in known else None
    if unit is None or unit.column is None or unit.max_rows is None:
        return []
    return [f"rows {beyond_first(unit, unit.max_rows)} count as missing"]


def _rows(labels: list[str], row_print: prints.Print) -> dict[str, Any]:
    in_order = bool(np.all(np.diff(row_print.places) > 0))
    order = None if in_order else " ".join(map(str, row_print.places.tolist()))
    return {"labels": labels, "sha256": row_print.sha256, "order": order}


def _measure(statistic: Any, denoise: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {"verb": statistic.verb, "column": statistic.column, "statistics": [0]}
    if not statistic.denoisable:  # a mean is a single estimate with its own error
        described["one_total"] = True
    if getattr(statistic, "bounds", None) is not None:
        described["bounds"] = list(statistic.bounds)
    return described | {"denoise": None if denoise is None else [{"name": denoise}]}


def _statistic(method: Estimator, variance: float) -> dict[str, Any]:
    """Return the facts about the reports, with the largest variance of the estimates."""
    return {
        "measures": "reports",
        "noise": method.name,
        "scale": math.sqrt(variance),
        "grid": 1.0,
        "sensitivity": 1.0,
        "share": 1.0,
        "variance": variance,
    }


MOST_CATEGORIES = 2**16
FRACTION = re.compile("[0-9]{1,400}(/[1-9][0-9]{0,399})?")
MOST_CELLS = 2**25  # the largest size of the tables of hash functions and of sketches
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**6), 64
DENOISE = "public-total"

Integers = NDArray[np.int64]

PRIME = 2**31 - 1  # above the number of categories; products of two numbers below it fit 62 bits
DEGREE = 3  # coefficients of a hash polynomial: the cells of any 3 categories are independent
LONGEST_KEY = 200


class LocalMethod:
    """A method to randomize single values before anybody sees them, with estimates.

    The estimates come from the reports.
    """

    name: ClassVar[str]
    denoise: ClassVar[str | None] = DENOISE  # the default of `estimate`
    examples: ClassVar[tuple[Any, ...]] = ("",)  # a report is text

    @trimmed
    def randomize(self, series: Any) -> Any:
        """Randomize each value of a column: one report for each row.

        The reports are in the library of the column.

        Parameters
        ----------
        series : Series of pandas or Polars
            A person's own values. Nothing is charged, since this is the client's side. For a table of other people's
            rows, use ``df.dp.local.randomize``, which charges a ledger.

        Returns
        -------
        Series
            The reports. A value that is missing or not declared gives the report of a uniformly random one: whether a
            value is present is as protected as the value itself.

        Raises
        ------
        InvalidType, WrongDtype
            If `series` is not a column, or its dtype does not suit the declared values.
        """
        return randomizing.randomized_series(series, cast(randomizing.Method, self))

    @trimmed
    def estimate(self, reports: Any, *, denoise: str | None = "default") -> Any:
        """Estimate from reports, at no cost.

        Any result that is computed from reports is as private as they are.

        Parameters
        ----------
        reports : Series, or released frame of one column
            The reports of all people together, from `randomize`.
        denoise : {"public-total", None}, optional
            "public-total", the default for counts, moves them to the nearest that are not negative and add up to the
            number of reports, which is public. None leaves the unbiased counts. For means only None, the default.

        Returns
        -------
        DataFrame
            For counts: the column's name (``category`` if it has none), ``count``, ``count_noisy`` (unbiased; without
            denoising, ``count`` is) and ``count_error``, the half-width of the 95% interval around the unbiased count.
            For means: ``NAME_mean``, ``NAME_mean_error``.

        Notes
        -----
        A missing or undeclared value is reported as a random category. Counts include such values, evenly on average,
        and ``count_error`` does not cover how they fall. Declare None as a category to count missing values. A missing
        number is reported as the middle of the bounds, which the error of a mean covers.

        Raises
        ------
        InvalidArgument
            If something is no report of this method.
        """
        return estimated(cast(Estimator, self), reports, self.denoise if denoise == "default" else denoise)

    def facts(self) -> dict[str, Any]:
        """Return the method as plain JSON values."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        return {"method": type(self).__name__, **{name: _plain(value) for name, value in values}}

    def to_json(self) -> str:
        """Return the method as text, with which a client and a server agree on it."""
        return json.dumps(self.facts())

    @classmethod
    @trimmed
    def from_json(cls, text: str) -> Self:
        """Read the method that `to_json` wrote.

        Raises
        ------
        InvalidArgument
            If it is no such text, or describes another method.
        """
        return cls.of_facts(json_object(text))

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Read the method that `facts` gave; parameters are checked as if typed."""
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        parameters = {name: value for name, value in facts.items() if name != "method"}
        if facts.get("method") != cls.__name__ or set(parameters) != names:
            raise InvalidArgument(f"text must be a {cls.__name__} as to_json writes it, not {shown(facts)}.")
        return cls(**{name: _typed(name, value) for name, value in parameters.items()})


def json_object(text: object) -> dict[str, Any]:
    """Return the JSON object in a text."""
    try:
        facts = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise InvalidArgument(f"text must be what to_json of a method wrote, not {shown(text)}.")
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _typed(name: str, value: Any) -> Any:
    if not isinstance(value, str) or name == "key":
        return value
    if not FRACTION.fullmatch(value):  # a text from elsewhere may ask for more digits than fit the memory
        raise InvalidArgument(f"{name} must be a number, not {shown(value)}. Write it as to_json does.")
    return Fraction(value)


def kept_number(value: object) -> Any:
    """Return a number as it was typed, for a frozen value that is compared and written to JSON.

    It is a float, an int or a Fraction.
    """
    if isinstance(value, np.generic):
        value = value.item()
    return Fraction(value) if isinstance(value, Decimal) else value


def checked_epsilon(value: object) -> Any:
    """Return epsilon as it was typed; refuse one outside 10**-6 to 64."""
    if value is None:
        raise MissingArgument("epsilon must be given: the cost of one report. Write for instance epsilon=1.")
    epsilon = exact_epsilon(value)
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InvalidArgument(
            f"epsilon must be a number from 1e-06 to {MOST_EPSILON} in the local model, not {shown(value)}. "
            "Write for instance epsilon=1."
        )
    return kept_number(value)


def checked_probability(name: str, value: object) -> Any:
    """Return a probability as it was typed; refuse a number outside 0 to 1."""
    rule = "a probability, from 0 to 1"
    if not 0 <= exactly(name, value, rule) <= 1:
        raise InvalidArgument(f"{name} must be {rule}, not {shown(value)}.")
    return kept_number(value)


def check_cells(words: str, cells: int) -> None:
    """Refuse parameters with tables that do not fit the memory.

    Such parameters may come from a file.
    """
    if cells > MOST_CELLS:
        raise InvalidArgument(f"{words} must be at most {MOST_CELLS:,}, not {cells:,}. Take smaller ones.")


def checked_categories(values: object) -> tuple[Any, ...]:
    """Return the declared categories: at least two, each once.

    They are text, numbers, truth values and None.
    """
    if length(values) > MOST_CATEGORIES:
        raise _not_so_many(length(values))
    categories = value_axis("category", values, "categories").by_column[0]
    for value in categories:
        if not (value is None or isinstance(value, (str, bool, int, float))):
            raise InvalidType(
                f"categories must be text, numbers, True, False or None, not {shown(value, kind=True)}, so that a "
                "client and a server can agree on them. Write times as text."
            )
    if len(categories) < 2:
        raise _not_so_many(len(categories))
    return categories


def _not_so_many(size: int) -> InvalidArgument:
    return InvalidArgument(
        f"categories must be from 2 to {MOST_CATEGORIES:,} values, not {size:,}. "
        'Write for instance categories=["A", "B"].'
    )


def hashed_places(key: str, functions: int, categories: int, cells: int) -> Integers:
    """Return the cell of each category by each function.

    That is (a x^2 + b x + c mod P) mod cells, where x is the category's place. Wegman and Carter (1981): over random
    coefficients, any three categories are independent modulo P. So are any two collisions with a third category, on
    which the variance of a sketch relies.
    """
    pieces = range(0, 16 * DEGREE, 16)
    seeds = (f"dpframe.local\0{key}\0{function}".encode() for function in range(functions))
    drawn = [hashlib.shake_256(seed).digest(16 * DEGREE) for seed in seeds]
    numbers = [[int.from_bytes(digest[start : start + 16], "big") % PRIME for start in pieces] for digest in drawn]
    values = np.zeros((functions, categories), dtype=np.int64)
    for coefficient in np.array(numbers, dtype=np.int64).T:
        values = (values * np.arange(categories, dtype=np.int64) + coefficient[:, None]) % PRIME
    return values % cells


def checked_key(key: object) -> str:
    """Return the public key of the hash functions as plain text.

    A subclass of str may show another text in f-strings.
    """
    if not isinstance(key, str):
        raise InvalidType(f'key must be text that everybody may know, not {shown(key)}. Write key="emoji".')
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise InvalidArgument(f"key must be printable text of at most {LONGEST_KEY} characters, not {shown(key)}.")
    return str.__str__(key)
