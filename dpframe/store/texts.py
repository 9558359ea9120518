"""Numbers and facts as text that is the same wherever it is written: what the hashes of a ledger are taken of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpframe.guarantee import Amount

LONG = 10_000  # bits; Python refuses to print longer integers as decimals, so these are written as hexadecimals


def canonical(value: Any) -> str:
    """JSON in one way only: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(text: str | bytes) -> str:
    """The SHA-256 hash, as hexadecimals."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def exact_text(part: Fraction) -> str:
    """An exact rational of any length."""
    return "/".join(str(one) if one.bit_length() < LONG else hex(one) for one in part.as_integer_ratio())


def exact(text: str) -> Fraction:
    """Read what `exact_text` wrote."""
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 0), int(denominator, 0))


def exact_texts(amount: Amount) -> list[str]:
    """Exact rationals, in their order."""
    return [exact_text(part) for part in amount]


def exact_amount(texts: Iterable[str]) -> Amount:
    """Read what `exact_texts` wrote."""
    return tuple(exact(text) for text in texts)


def now() -> str:
    """The time of an entry: told to people, and used for nothing else."""
    return datetime.now(UTC).isoformat(timespec="seconds")
