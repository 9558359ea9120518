"""The release path of the local model: check the schema, charge, read the rows. It returns randomized reports only.

Neighbors are data sets in which one person's values are replaced. The participation of a person is public, and so is
the number of reports: each row gives one report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeGuard

import numpy as np

from dpframe import noise
from dpframe._version import VERSION
from dpframe.engines.first_rows import categories_of_rows, numbers_of_rows
from dpframe.engines.schema import check, columns_of, emptied
from dpframe.engines.totals import check_whole
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, WrongDtype, checked_name, shown
from dpframe.errors.tracebacks import tried
from dpframe.exact import exact_text, shown_up
from dpframe.frames import build, foreign
from dpframe.frames.columns import column_frame, taken, typed_frame
from dpframe.frames.kinds import library_of
from dpframe.ledger.canonical import now, promised
from dpframe.ledger.entries import PURE, Answer, Entry
from dpframe.ledger.ledger import ROWS, ledger_for, warn_of_cost
from dpframe.ledger.statement import no_ledger
from dpframe.mechanisms.declared import PureLoss
from dpframe.privacy import Price, PrivacyUnit, beyond_first
from dpframe.queries.query import Query
from dpframe.queries.statistics import CONFIDENCE
from dpframe.release.provenance import SCHEMA
from dpframe.release.results import looked

NO_ROWS = (
    "max_rows must be given, because the ledger protects each {column}, each of whose rows gives a report. "
    "Write for instance max_rows=3: the cost is that of three reports."
)
REPLACE = (
    "ledger must have a unit of neighbors='replace' for the local model: one person's value is replaced, and that the "
    "person takes part is public, which a ledger of add-remove neighbors promises to hide. "
    'Make one with dpf.Ledger(epsilon=..., unit=dpf.PrivacyUnit(neighbors="replace")).'
)
ANSWERS = ("question", "reports", "facts")

log = logging.getLogger("dpframe")


class Method(Protocol):
    """The members that a method of the local model must have."""

    @property
    def name(self) -> str: ...
    @property
    def loss(self) -> Fraction:
        """The epsilon of a report, rounded up; for RAPPOR, of all reports from the same permanent bits."""

    @property
    def examples(self) -> Sequence[Any]:
        """Reports of every possible kind, so that no dtype depends on the drawn reports."""

    def question(self, column: str) -> Query:
        """Return the query that reads a row: its place among declared categories or, without keys, its number."""

    def reports(self, rows: Any) -> Any:
        """Return a report for each row, from its place (-1 for none) or its number (NaN for none)."""

    def facts(self) -> dict[str, Any]:
        """Return the facts of the method for a record, as plain JSON values."""


def is_method(value: object) -> TypeGuard[Method]:
    """Return whether a value is a method of the local model, and not a class of methods."""
    return not isinstance(value, type) and all(callable(getattr(type(value), name, None)) for name in ANSWERS)


def refuse_exact() -> None:
    """Refuse to make reports if noise is left out."""
    if noise.is_silent():
        raise InvalidArgument(
            "reports must not be asked for inside dpframe.testing.exact: a report is nothing but noise. Use seeded(0)."
        )


def randomized_series(series: Any, method: Method) -> Any:
    """Return a report for each value of a column, on the client's side; nothing is charged."""
    refuse_exact()
    frame, name = column_frame(series)
    query = method.question(name)
    check(frame, query, ROWS)
    _rehearse(frame, query, method, ROWS)
    with np.errstate(all="ignore"):  # a missing report would reveal something about the value
        return taken(_frame_of(name, method, _rows(frame, query, ROWS, 1), library_of(frame)), name)


def places_of(frame: Any, column: str, method: Method) -> Any:
    """Return the places of public values among the method's categories."""
    query = method.question(column)
    check(frame, query, ROWS)
    return categories_of_rows(frame, query.keys, ROWS, 1)


def randomized(
    frame: Any, column: str, method: Method | None, *, ledger: Any, unit: Any, max_rows: int | None, label: str | None
) -> Any:
    """Release reports of a private column: check the schema, charge, read the rows."""
    if method is None:
        raise MissingArgument("method must be given. Write method=dpf.local.SubsetSelection([...], epsilon=1).")
    if not is_method(method):
        raise InvalidType(f"method must be one of dpf.local, such as dpf.local.SubsetSelection, not {shown(method)}.")
    refuse_exact()
    check_whole(frame)
    payer = ledger_for(ledger)
    if payer is None:
        raise no_ledger()
    whose = payer.terms.unit_for(unit)
    if whose.neighbors != "replace":
        raise InvalidArgument(REPLACE)
    whose = whose.bounded(max_rows, None)
    if whose.column is not None and not whose.is_bounded:
        raise MissingArgument(NO_ROWS.format(column=whose.one))
    most = whose.contribution.max_rows
    query = method.question(column)
    check(frame, query, whose)
    label = None if label is None else checked_name("label", label)
    curve = PureLoss(method.loss * most)  # no smaller loss is proven for the reports together
    price = Price(curve.budget)
    amount = payer.accounting.charge(price, payer.limit_amount, (curve,))
    cost = payer.accounting.cost(price, amount, pure=True)
    facts = _known(column, method, whose, label, cost, payer.accounting.name, most)
    _rehearse(frame, query, method, whose, facts)
    words = f"reports of {column} by {method.name}"
    declared = {PURE: exact_text(curve.budget)}
    entry = Entry(now(), label, words, whose, amount, cost, asked=declared, promises=(promised(facts),))
    warn_of_cost(payer, whose, cost)
    receipt = payer.take(entry)
    assert not isinstance(receipt, Answer)  # only an entry with a snapshot has a stored answer
    reports = looked(lambda: _frame_of(column, method, _rows(frame, query, whose, most), library_of(frame)))
    log.info("released %s for %s, protecting %s", words, cost, whose)
    return recorded(reports, facts, receipt)


def _read(query: Query) -> str:
    """Return the name of the one column that is read."""
    return next(iter(query.keys.columns or query.of_cells[0].columns), "")


def _rows(frame: Any, query: Query, unit: PrivacyUnit, most: int) -> Any:
    """Read the rows of a private column; nothing else here reads private rows."""
    if query.keys.axes:
        return categories_of_rows(frame, query.keys, unit, most)
    return numbers_of_rows(frame, _read(query), unit, most)


def _frame_of(column: str, method: Method, rows: Any, library: str) -> Any:
    return typed_frame(column, method.reports(rows), method.examples, library)


def _rehearse(
    frame: Any, query: Query, method: Method, unit: PrivacyUnit, facts: Mapping[str, Any] | None = None
) -> None:
    """Run the whole call on no rows, so that a call that is certain to fail costs nothing."""
    column = _read(query)
    rule = f"the method must suit the column {column!r}, and it fails even without rows"
    with tried(WrongDtype, rule, "Declare categories in the dtype of their column, or cast the column."):
        rows = _rows(emptied(frame, columns_of(query, unit)), query, unit, 1)
        built = _frame_of(column, method, rows, library_of(frame))
        if facts is not None:
            whole = recorded(built, facts, None)
            json.dumps(build.record_of(whole))
            if problem := foreign.problem_of({**facts, **_later(built)}):
                raise InvalidArgument(problem)


def _known(
    column: str, method: Method, unit: PrivacyUnit, label: str | None, cost: Any, accounting: str, most: int
) -> dict[str, Any]:
    """Return the record without the facts of the reports."""
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": VERSION,
        "label": label,
        "verb": "randomize",
        "model": "local",
        "method": method.facts(),
        "per_report": shown_up(method.loss),
        "unit": unit.facts(),
        "cost": {"epsilon": cost.epsilon, "delta": cost.delta, "accounting": accounting},
        "cells": [],
        "measures": {},
        "statistics": [],
        "notes": _notes(unit, most, column),
        "confidence": CONFIDENCE,
    }
    if (stamp := noise.stamp()) is not None:
        facts["warning"] = stamp
    return facts


def _notes(unit: PrivacyUnit, most: int, column: str) -> list[str]:
    """Return notes for the reader of the reports."""
    notes = [
        "local model: each report was randomized by itself, and the number of reports is public",
        f"a value of {column} that is missing or not declared makes the report of a random one",
    ]
    if unit.column is not None:
        notes.append(f"so does each row {beyond_first(unit, most)}")
    return notes


def recorded(frame: Any, facts: Mapping[str, Any], receipt: Mapping[str, Any] | None) -> Any:
    """Attach their provenance to the reports."""
    in_ledger = {} if receipt is None else {"ledger": dict(receipt)}
    return build.attach(frame, {**facts, **_later(frame), **in_ledger})


def _later(frame: Any) -> dict[str, Any]:
    columns = list(frame.columns)
    return {"columns": columns, "sha256": build.fingerprint(frame, columns), "rows": None}
