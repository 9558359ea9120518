"""Audits, fuzzing, seeded bugs and drills that look for faults; ``python -m assurance.night`` runs them all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def verdict(objections: int, **figures: float) -> int:
    """Print a program's result as its last line, a JSON object that `assurance.night` reads; return the exit code."""
    print(json.dumps({"objections": objections, **figures}), flush=True)
    return int(objections > 0)


def share_of(items: Sequence[T], words: str) -> list[T]:
    """Return share K of N of a program's items, with K from 0 to N - 1: each N-th item."""
    place, many = map(int, words.split("/"))
    if not 0 <= place < many:
        raise SystemExit(f"--share {words}: K must be from 0 to N - 1")
    return list(items[place::many])
