"""From reports to a result: estimates with their errors, in a frame with a record, as results of releases are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.denoise import public_total
from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.exact import shown_up
from dpframe.frames import build, prints
from dpframe.frames.columns import column_frame
from dpframe.frames.kinds import library_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.statistics import CONFIDENCE

Floats = NDArray[np.float64]

HALF_WIDTH = 1.9599639845400545  # of a 95% interval in standard deviations, rounded up
SCHEMA = "dpframe.provenance/2"
SPREAD = "missing and undeclared values are spread evenly over the categories"
MIDDLE = "missing values count as the middle of the bounds"
KEPT = ("label", "unit", "cost", "warning", "per_report")  # of the record of the reports


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
        """The number of reports, the unbiased values and their variances."""


def estimated(method: Estimator, reports: Any, denoise: str | None) -> Any:
    """The estimate of a method from its reports."""
    if not is_one_of(denoise, (None, method.denoise)):
        ways = "None" if method.denoise is None else f"{method.denoise!r} or None"
        raise InvalidArgument(f"denoise must be {ways} for {method.name}, not {shown(denoise)}.")
    frame, column = column_frame(reports, "reports")
    known = build.record_of(frame) or {}
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


def _record(
    frame: Any, method: Estimator, query: Any, known: Mapping[str, Any], variance: float, denoise: str | None
) -> dict[str, Any]:
    """The provenance: that of the reports, as far as it is known, and what was made of them."""
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


def _rows(labels: list[str], row_print: prints.Print) -> dict[str, Any]:
    in_order = bool(np.all(np.diff(row_print.places) > 0))
    order = None if in_order else " ".join(map(str, row_print.places.tolist()))
    return {"labels": labels, "sha256": row_print.sha256, "order": order}


def _measure(statistic: Any, denoise: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {"verb": statistic.verb, "column": statistic.column, "statistics": [0]}
    if not statistic.denoisable:  # its value is an estimate all the same, with an error of its own
        described["one_total"] = True
    if getattr(statistic, "bounds", None) is not None:
        described["bounds"] = list(statistic.bounds)
    return described | {"denoise": None if denoise is None else [{"name": denoise}]}


def _statistic(method: Estimator, variance: float) -> dict[str, Any]:
    """The facts about the reports, with the largest variance of the estimates."""
    return {
        "measures": "reports",
        "noise": method.name,
        "scale": math.sqrt(variance),
        "grid": 1.0,
        "sensitivity": 1.0,
        "share": 1.0,
        "variance": variance,
    }
