"""Promises of an entry, made before a row is read: all of a release's record that the rows have no part in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.ledger.canonical import canonical, digest

LATER = (
    "dpframe",
    "columns",
    "sha256",
    "rows",
    "altered",
    "ledger",
    "period",
    "checks",
    "found",
    "rounded",
    "shown",
    "release",
    "part",
)  # known after the charge, or no part of what was asked


def promised(record: Mapping[str, Any]) -> str:
    """The hash of those facts of a record; TypeError or ValueError where it is no record in plain JSON values."""
    facts = {name: fact for name, fact in record.items() if name not in LATER}
    if "cells" in facts:  # how many keys were found is known later
        facts["cells"] = [
            {key: fact for key, fact in axis.items() if key != "size" or "discovered" not in axis}
            for axis in facts["cells"]
        ]
    statistics = {
        name: {key: fact for key, fact in statistic.items() if key not in ("denoise", "totals", "square_totals")}
        for name, statistic in facts.get("measures", {}).items()
    }
    return digest(canonical(facts | {"measures": statistics}))


def as_released(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as it was before its numbers were rounded; KeyError or TypeError where it does not tell."""
    facts = {name: fact for name, fact in record.items() if name not in ("altered", "rounded", "shown")}
    if "rounded" not in record:
        return facts
    before = record["rounded"]
    rows = facts["rows"] and {**facts["rows"], "sha256": before["rows"]}
    return facts | {"sha256": before["sha256"], "rows": rows}
