"""What travels with a result: what was asked, how it was protected, what it cost. Nothing private."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.frames import build
from dpframe.plan.plan import Plan
from dpframe.queries.cells import KeyAxis
from dpframe.queries.edges import BinAxis
from dpframe.queries.query import ERROR
from dpframe.queries.statistics import CONFIDENCE, Count
from dpframe.store.promises import promised

SCHEMA = "dpframe.provenance/2"  # records of dpframe 0.1 say /1, and are read as well


def record(
    plan: Plan,
    frame: Any,
    *,
    version: str,
    label: str | None,
    denoised: Mapping[str, Any],
    secure: bool,
    raw: bool,
    place: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The provenance of a released frame, as documented in ``docs/provenance.md``: plain JSON values."""
    columns = [name for name in frame.columns if plan.query.selects or name not in plan.query.keys.names]
    facts = _known(plan, version=version, label=label, secure=secure, raw=raw)
    for name, measure in facts["measures"].items():
        measure["denoise"] = denoised.get(name)
    facts |= {"columns": columns, "sha256": build.fingerprint(frame, columns)}
    if place is not None:
        facts["ledger"] = dict(place)
    return facts


def promise(plan: Plan, *, label: str | None, secure: bool, raw: bool) -> str:
    """The hash of what the record will say that is known before a row is read: what the ledger's entry commits to."""
    return promised(_known(plan, version="", label=label, secure=secure, raw=raw))


def _known(plan: Plan, *, version: str, label: str | None, secure: bool, raw: bool) -> dict[str, Any]:
    """The record but for what only the released frame tells."""
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": version,
        "label": label,
        "verb": plan.query.verb,
        "unit": {
            "column": plan.unit.column,
            "max_rows": plan.unit.max_rows,
            "max_groups": plan.unit.max_groups,
            "neighbors": plan.unit.neighbors,
            "nulls": plan.unit.nulls,
        },
        "cost": {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta, "accounting": plan.accounting.name},
        "cells": [_axis(axis) for axis in plan.query.keys.axes],
        "measures": {} if plan.query.selects else {name: _measure(plan, name) for name in plan.columns},
        "statistics": [_statistic(part) for part in plan.parts],
        "notes": list(plan.notes),
        "confidence": CONFIDENCE,
        "raw": raw,
    }
    if plan.query.rollup:
        facts["levels"] = [{"columns": list(level.columns), "rows": level.size} for level in plan.query.levels]
    if plan.accuracy is not None:
        facts["within"] = plan.accuracy.facts(plan.columns, plan.size)
    if plan.choice is not None:
        facts["chosen"] = plan.choice.facts
    if not secure:
        facts["warning"] = "NOT PRIVATE: drawn from seeded bits, which are for tests only"
    return facts


def current(frame: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The record as it is read: with ``"altered": True`` where the released numbers are no longer those it covers."""
    altered = build.fingerprint(frame, facts["columns"]) != facts["sha256"]
    return {**facts, "altered": altered}


def check_columns(frame: Any, facts: Mapping[str, Any], *, rows: bool = False) -> None:
    """Refuse a pandas frame that kept its record, but not the columns (or the rows) that the record speaks of."""
    if not facts["measures"]:
        raise InvalidArgument(
            "the frame must hold released numbers, but a selection is one of the declared options alone. "
            "Read it from the frame."
        )
    ends = [(axis["columns"], ("_left", "_right") if "bins" in axis else ("",)) for axis in facts["cells"]]
    needed = [name + end for names, endings in ends for name in names for end in endings] + list(facts["measures"])
    needed += [name + ERROR for name in facts["measures"]]
    gone = [name for name in needed if list(frame.columns).count(name) != 1]
    if gone:
        raise InvalidArgument(
            f"the frame must have the columns that were released, but {gone[0]!r} is not there or not alone. "
            "Ask the released frame, before it is reshaped."
        )
    if rows and len(frame) != math.prod(shape(facts)):
        raise InvalidArgument(
            f"the frame must have the {math.prod(shape(facts))} rows that were released, not {len(frame)}. "
            "Ask the released frame, before it is reshaped."
        )


def shape(facts: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the cells, as declared; with subtotals the rows of all levels, one after the other."""
    if "levels" in facts:
        return (sum(level["rows"] for level in facts["levels"]),)
    return tuple(axis["size"] for axis in facts["cells"])


def errors(frame: Any, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each released column (and level of subtotals) the interval of its noise, and what is known of its error."""
    levels = facts.get("levels") or [{"columns": _key_columns(facts), "rows": math.prod(shape(facts))}]
    rows, start = [], 0
    for place, level in enumerate(levels):
        mine = slice(start, start + level["rows"])
        start += level["rows"]
        for name, measure in facts["measures"].items():
            noise = facts["statistics"][measure["statistics"][place]]
            rows.append(
                {
                    "column": name,
                    "by": ", ".join(level["columns"]),
                    "interval": float(build.numbers(frame, name + ERROR)[mine].max(initial=0.0)),
                    "noisy_rmse": None if measure["verb"] == "mean" else math.sqrt(noise["variance"]),
                    "denoised_rmse": estimated_rmse(measure)[place],
                }
            )
    return rows


def estimated_rmse(measure: Mapping[str, Any]) -> list[float | None]:
    """The estimate for the denoised values, of each level of subtotals; None where there is none."""
    last = (measure["denoise"] or [{}])[-1]
    return list(last.get("estimated_rmse_of_levels") or [last.get("estimated_rmse")])


def denoised_words(facts: Mapping[str, Any], shown: Callable[[float], str]) -> list[str]:
    """A note for charts and tables: denoised values are biased, and how far off they are expected to be."""
    parts = []
    for name, measure in facts["measures"].items():
        if measure["denoise"]:
            found = [shown(one) for one in estimated_rmse(measure) if one is not None]
            parts.append(f"{name} {', '.join(found) or 'not estimated'}")
    return [f"denoised, so biased; estimated root mean squared error: {'; '.join(parts)}"] if parts else []


def _key_columns(facts: Mapping[str, Any]) -> list[str]:
    return [column for axis in facts["cells"] for column in axis["columns"]]


def _axis(axis: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"columns": list(axis.columns), "size": axis.size}
    if isinstance(axis, BinAxis):
        described |= {"bins": axis.kind, "outside": axis.outside, "first": _plain(axis, 0), "last": _plain(axis, -1)}
    elif isinstance(axis, KeyAxis):
        described |= {"keys": [axis.kind(place) for place in range(len(axis.columns))]}
    return described


def _plain(axis: BinAxis, place: int) -> float | str:
    edge = axis.shown_edges()[place]
    return float(edge) if axis.kind == "number" else str(edge)


def _measure(plan: Plan, name: str) -> dict[str, Any]:
    measure = dict(plan.query.measures)[name]
    described: dict[str, Any] = {"verb": measure.verb, "column": measure.column}
    if not isinstance(measure, Count):
        described["bounds"] = list(measure.bounds)
    needed = [statistic.over(by) for by in plan.query.groupings for statistic in measure.statistics()]
    described["statistics"] = [plan.query.statistics.index(statistic) for statistic in needed]
    return described


def _statistic(part: Any) -> dict[str, Any]:
    noise = part.mechanism
    law = {"p": noise.p, "variance": noise.variance} if math.isfinite(noise.p) else {}  # a choice has neither
    return {
        "measures": part.statistic.describe(),
        "noise": noise.name,
        "scale": noise.scale,
        "grid": noise.grid,
        "sensitivity": noise.sensitivity,
        "share": part.share,
        **law,
        **noise.details,
    }
