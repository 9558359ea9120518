"""Numbers and facts as text that is the same wherever it is written: what the hashes of a ledger are taken of.

So is the promise of an entry, made before a row is read: all of a release's record that the rows have no part in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

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


def canonical(value: Any) -> str:
    """JSON in one way only: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(text: str | bytes) -> str:
    """The SHA-256 hash, as hexadecimals."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def now() -> str:
    """The time of an entry: told to people, and to a recovery, which asks whether a copy went on after another."""
    return datetime.now(UTC).isoformat(timespec="seconds")


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
