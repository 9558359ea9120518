"""The records of a stream: the provenance of each period, what the ledger stores of it, and what is read off that."""

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
from dpframe.planning.plan import Planned
from dpframe.planning.stream_plan import StreamPlan
from dpframe.queries.prefix_sums import BITS
from dpframe.queries.statistics import CONFIDENCE
from dpframe.queries.stream_design import half_width, weights_of_period, weights_of_total
from dpframe.queries.where import told
from dpframe.release.provenance import SCHEMA, noise_facts
from dpframe.release.stream_identity import identity_of

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
