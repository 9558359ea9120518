"""Audits of marginals: how well noisy contrasts distinguish two neighbors, in the direction of their difference.

    python -m assurance.marginals_audit [--samples 200000]

The engine measures the exact contrasts of both tables once, and the mechanism of the plan adds noise to them many
times. Each outcome is projected on the difference of both, over the scales of the noise: for Gaussian vectors, events
of this one number distinguish neighbors best. `tests/release/test_marginals_audit.py` runs a small share.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from assurance import verdict
from dpframe.audit import Finding
from dpframe.engines.totals import totals

KEYS = {"a": ["p", "q"], "b": [1, 2, 3], "c": ["x", "y"]}
PRICE = {"epsilon": 4.0, "delta": 1e-3}
AT_ONCE = 100
CONFIDENCE = 1 - 1e-6
OTHERS = [(1, "p", 1, "x"), (2, "q", 3, "y"), (3, "q", 2, "x")]
FIRST, ELSEWHERE = ("p", 2, "x"), ("q", 3, "y")  # rows that differ in every column
UNIT = {"column": "u", "max_rows": 2}
PAIRS: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "a row": ({}, [FIRST], []),
    "a row replaced": ({"neighbors": "replace"}, [FIRST], [ELSEWHERE]),
    "a user with two rows": (UNIT, [FIRST] * 2, []),
    "a user with many rows": (UNIT, [FIRST] * 50, []),
    "a user with rows in many cells": (UNIT, [FIRST, ELSEWHERE] * 10 + [("other", 1, "x")] * 10, []),
    "a user replaced": ({**UNIT, "neighbors": "replace"}, [FIRST] * 9, [ELSEWHERE] * 9),
}


def _frame(rows: list[Any]) -> pl.DataFrame:
    whole = [*OTHERS, *((9, *row) for row in rows)]
    return pl.DataFrame(whole, schema={"u": pl.Int64, "a": pl.String, "b": pl.Int64, "c": pl.String}, orient="row")


def sides(name: str) -> tuple[Callable[[], NDArray[np.float64]], Callable[[], NDArray[np.float64]], float]:
    """Return releases from both tables of a pair, projected on their difference, and the claimed mu."""
    of_unit, mine, instead = PAIRS[name]
    unit = dpf.PrivacyUnit(**of_unit)
    plan = _frame(mine).dp.preview.marginals([*KEYS], keys=KEYS, unit=unit, **PRICE)
    (part,) = plan.parts
    noise: Any = part.mechanism
    exact = [totals(_frame(rows), plan.query, unit, noise.norm)[part.total] for rows in (mine, instead)]
    scales = noise.design.scales
    direction = (exact[0] - exact[1]) / scales**2

    def release(contrasts: Any) -> Callable[[], NDArray[np.float64]]:
        return lambda: np.array([noise.add_noise(contrasts) @ direction for _ in range(AT_ONCE)])

    claimed = 1.0 / dpf.Gaussian.calibrate(sensitivity=1, **PRICE).scale
    return release(exact[0]), release(exact[1]), claimed


def audited(name: str, samples: int) -> Finding:
    """Audit one pair."""
    left, right, claimed = sides(name)
    return dpf.audit.mu(left, right, claimed=claimed, samples=samples, outcomes=AT_ONCE, confidence=CONFIDENCE)


def main() -> int:
    """Audit all pairs and print the results; return 1 if one reveals more than it states."""
    parser = argparse.ArgumentParser(description="Audit marginals.")
    parser.add_argument("--samples", type=int, default=200_000, help="outcomes of each side")
    options = parser.parse_args()
    findings = {name: audited(name, options.samples) for name in PAIRS}
    for name, found in findings.items():
        print(f"{name}: {found}")
    used = max(found.lower_bound / found.claimed for found in findings.values())
    return verdict(sum(not found.holds for found in findings.values()), audits=len(findings), largest_bound=used)


if __name__ == "__main__":
    raise SystemExit(main())
