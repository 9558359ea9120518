"""Canonical text of numbers and facts, from which the hashes of a ledger are computed.

An entry also stores a promise for each release: the hash of the facts in its record that do not depend on the rows.
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
)  # facts that a promise leaves out: known only after the charge, or not part of the request


def canonical(value: Any) -> str:
    """Return a value as JSON in its only form: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(text: str | bytes) -> str:
    """Return the SHA-256 hash in hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def now() -> str:
    """Return the time for an entry, in UTC. A recovery compares times to detect a copy that was charged again."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def promised(record: Mapping[str, Any]) -> str:
    """Hash the facts known before rows are read; TypeError, ValueError or AttributeError if the record is malformed."""
    facts = {name: fact for name, fact in record.items() if name not in LATER}
    if "cells" in facts:  # the number of keys that were found is known only later
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
    """Return the record as it was before rounding; KeyError or TypeError if it does not state the earlier hashes."""
    facts = {name: fact for name, fact in record.items() if name not in ("altered", "rounded", "shown")}
    if "rounded" not in record:
        return facts
    before = record["rounded"]
    rows = facts["rows"] and {**facts["rows"], "sha256": before["rows"]}
    return facts | {"sha256": before["sha256"], "rows": rows}
