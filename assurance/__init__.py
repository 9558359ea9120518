"""Audits, fuzzing, seeded bugs and drills: they look for what is wrong; ``python -m assurance.night`` runs them all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def verdict(objections: int, **figures: float) -> int:
    """Print what a program found as its last line, one object of JSON that `assurance.night` reads; its exit code."""
    print(json.dumps({"objections": objections, **figures}), flush=True)
    return int(objections > 0)


def share_of(items: Sequence[T], words: str) -> list[T]:
    """Share K of N, with K from 0 to N - 1, of what a program goes through: each N-th."""
    place, many = map(int, words.split("/"))
    if not 0 <= place < many:
        raise SystemExit(f"--share {words}: K must be from 0 to N - 1")
    return list(items[place::many])
