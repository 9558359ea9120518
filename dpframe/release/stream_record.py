"""The records of a stream: the provenance of each period, what the ledger stores of it, and what is read off that.

The identity of a stream in its ledger is a hash for each fact that may not change while it goes on. This is version 1,
and it is frozen: which facts there are, under which names, and how each is written down. Nothing is taken from the
classes that hold them now, nor from words that people read. Anyone who renames a class, adds a field or finds a better
note changes no identity, and a stream that an earlier dpframe began goes on. Facts that have a default are written
where they differ from it. A version 2 would be another function, and its entries would say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.frames import build, prints
from dpframe.ledger.canonical import LATER, now, promised
from dpframe.ledger.entries import Entry
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.plan import Planned
from dpframe.planning.stream_plan import StreamPlan
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.prefix_sums import BITS
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.stream_design import half_width, weights_of_period, weights_of_total
from dpframe.queries.where import told
from dpframe.release.facts import Written, hash_of
from dpframe.release.provenance import SCHEMA, noise_facts

STATISTICS = {"count": "Count", "sum": "Sum"}
NOISES = {"discrete Laplace": "Laplace", "rounded Gaussian": "Gaussian"}


def identity_of(plan: StreamPlan) -> dict[str, str]:
    """The hashes by the words in which a refusal says what differs."""
    time, *groups = plan.query.keys.axes
    facts = {
        "statistic": _statistic(plan.query.statistics[0][1]),
        "time or periods": _axis(time),
        "by or keys": _written("Keys", {"axes": [_axis(axis) for axis in groups]}, {"axes": []}),
        "max_rows": plan.reach.rows,
        "unit": _unit(plan.unit),  # which a ledger without terms does not fix
        "price": _price(plan.price),
        "noise": _noise(plan.mechanism),
        "random bits": noise.is_secure(),  # totals are read off all periods, so none may be of seeded bits
    }
    return {name: hash_of(name, fact) for name, fact in facts.items()}


def _written(kind: str, facts: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    return Written(kind, {name: fact for name, fact in facts.items() if name not in defaults or fact != defaults[name]})


def _statistic(statistic: Statistic) -> Any:
    """The statistic by its record; one of another's by its own class and fields."""
    facts = statistic.facts()
    if facts is None or facts["verb"] not in STATISTICS or "weight" in facts:
        return statistic
    said = {name: facts.get(name) for name in ("column", "bounds")}
    return _written(STATISTICS[facts["verb"]], said, {"column": None, "bounds": None})


def _axis(axis: Any) -> Any:
    if axis.coding == "keys":
        facts = {"columns": list(axis.columns), "rows": [list(row) for row in axis.rows]}
        return _written("KeyAxis", facts, {})
    if axis.coding == "rest":
        return _written("RestAxis", {"declared": _axis(axis.declared)}, {})
    facts = {"column": axis.column, "edges": list(axis.edges), "kind": axis.kind, "closed": axis.closed}
    return _written("DateAxis", {**facts, "every": axis.every}, {"every": "1d"})


def _unit(unit: PrivacyUnit) -> Any:
    facts = {"column": unit.facts()["column"], "neighbors": unit.neighbors, "nulls": unit.nulls}
    return _written("PrivacyUnit", facts, {"column": None, "neighbors": "add-remove", "nulls": "drop"})


def _price(price: Price) -> Any:
    facts = {"epsilon": price.epsilon, "delta": price.delta}
    return _written("Price", facts, {"epsilon": None, "delta": None})


def _noise(mechanism: Mechanism) -> Any:
    facts = {name: getattr(mechanism, name) for name in ("step_sensitivity", "step_scale", "grid")}
    return _written(NOISES[mechanism.name], facts, {"grid": 1.0})


FORMAT = "dpframe.stream/1"
COLUMNS = ("total", "total_error", "period", "period_error")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Stored:
    """The content that a ledger has of a period: its record, the noisy number of each group, and what was released."""

    record: dict[str, Any]
    noisy: Integers
    released: dict[str, Floats]

    def content(self) -> bytes:
        """As bytes."""
        header = json.dumps({"format": FORMAT, "rows": self.noisy.size, "provenance": self.record}).encode()
        columns = [self.released[name].astype("<f8").tobytes() for name in COLUMNS]
        return b"".join([header, b"\n", self.noisy.astype("<i8").tobytes(), *columns])

    @classmethod
    def of(cls, content: bytes) -> Stored:
        """Read what `content` wrote."""
        text, numbers = content.split(b"\n", 1)
        header = json.loads(text)
        size = 8 * header["rows"]
        parts = [numbers[start : start + size] for start in range(0, size * (len(COLUMNS) + 1), size)]
        released = {
            name: np.frombuffer(part, "<f8").astype(np.float64) for name, part in zip(COLUMNS, parts[1:], strict=True)
        }
        return cls(header["provenance"], np.frombuffer(parts[0], "<i8").astype(np.int64), released)


def entry_of(plan: StreamPlan) -> Entry:
    """The charge of a stream, with a hash for each of its parameters."""
    return Entry(
        now(),
        plan.name,
        plan.words,
        plan.unit,
        plan.amount,
        plan.cost,
        asked=identity_of(plan),
        promises=(promised(known_facts(plan)),),
        stream=plan.name,
    )


def known_facts(plan: StreamPlan) -> dict[str, Any]:
    """The record except for what only a period tells."""
    statistic = told(plan.query.statistics[0][1].facts())
    assert statistic is not None
    measure = {**statistic, "statistics": [0], "one_total": False, "denoise": None}
    part = Planned(plan.total, plan.reach, plan.mechanism, 1.0)  # type: ignore[arg-type]  # which is not looked at
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": VERSION,
        "label": plan.name,
        "verb": "stream",
        "unit": plan.unit.facts(),
        "cost": {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta, "accounting": plan.accounting.name},
        "cells": [axis.facts() for axis in plan.query.keys.axes[1:]],
        "measures": {"total": measure, "period": dict(measure)},
        "statistics": [noise_facts(part)],
        "notes": list(plan.notes),
        "confidence": CONFIDENCE,
        "stream": {"time": plan.time, "periods": len(plan.periods), "bits": BITS},
    }
    if (stamp := noise.stamp()) is not None:
        facts["warning"] = stamp
    return facts


def facts_said(plan: StreamPlan, earlier: Sequence[Stored]) -> dict[str, Any]:
    """The known facts as the first stored period has them: the entry promises these, in the words of its version."""
    if not earlier:
        return known_facts(plan)
    kept = {"dpframe", "release"}
    said = {name: fact for name, fact in earlier[0].record.items() if name not in LATER or name in kept}
    return {**said, "dpframe": VERSION}


def read_off(plan: StreamPlan, noisy: Sequence[Integers], kept: Sequence[int]) -> dict[str, Floats]:
    """The columns of the last period, from the noisy numbers of it and of those before: linear, and so unbiased."""
    values = np.array(noisy, dtype=np.float64) * plan.mechanism.grid
    columns = {}
    for name, weights in (("total", weights_of_total(kept)), ("period", weights_of_period(kept))):
        columns[name] = weights @ values
        columns[f"{name}_error"] = np.full(values.shape[1], half_width(plan.mechanism, weights, CONFIDENCE))
    return columns


def frame_of(stored: Stored, labels: Mapping[str, Any], library: str) -> Any:
    """The released frame of a period, with its record."""
    return build.attach(build.frame_of({**labels, **stored.released}, library), stored.record)


def record_of(
    plan: StreamPlan,
    said: Mapping[str, Any],
    columns: Mapping[str, Floats],
    labels: Mapping[str, Any],
    library: str,
    kept: Sequence[int],
    receipt: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The provenance of the last period that is kept."""
    frame = build.frame_of({**labels, **columns}, library)
    covered = prints.print_of(frame, list(labels), list(COLUMNS))
    rows = None
    if covered is not None:
        in_order = bool(np.all(np.diff(covered.places) > 0))
        order = None if in_order else " ".join(map(str, covered.places.tolist()))
        rows = {"labels": list(labels), "sha256": covered.sha256, "order": order}
    number, since = kept[-1], (kept[-2] + 1 if len(kept) > 1 else 1)
    later: dict[str, Any] = {"columns": list(COLUMNS), "sha256": build.fingerprint(frame, COLUMNS), "rows": rows}
    later["period"] = {"name": str(plan.periods[number - 1]), "number": number, "since": since}
    if lost := sorted({*range(1, number)} - {*kept}):  # without them nobody can tell what a total is read off
        later["period"]["lost"] = lost
    facts = {**said, **later}
    return facts if receipt is None else {**facts, "ledger": dict(receipt)}
