"""Numbers and facts as text that is the same wherever it is written: what the hashes of a ledger are taken of."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any


def canonical(value: Any) -> str:
    """JSON in one way only: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(text: str | bytes) -> str:
    """The SHA-256 hash, as hexadecimals."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def now() -> str:
    """The time of an entry: told to people, and to a recovery, which asks whether a copy went on after another."""
    return datetime.now(UTC).isoformat(timespec="seconds")
