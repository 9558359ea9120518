"""Audits of the local model: reports of two values bound their epsilon from below.

    python -m assurance.local_audit [--samples 200000]

Each method randomizes a table in which everyone has one value, and one in which everyone has another, by
``df.dp.local.randomize`` as a user would. An outcome is the part of a report that can distinguish the two values.
`tests/local/test_local_audit.py` runs a small share.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from assurance import verdict
from dpframe.audit import Finding

CATEGORIES = [f"c{place}" for place in range(12)]
AT_ONCE = 1_000  # reports per call: one per row, each drawn separately
CONFIDENCE = 1 - 1e-6

Outcomes = Callable[[list[Any]], Any]


def methods(epsilon: float) -> dict[str, tuple[Any, tuple[Any, Any], Outcomes]]:
    """Return a method of each kind: two values to randomize, and the part of its reports to compare."""
    sketch = dpf.local.CountMeanSketch(CATEGORIES, epsilon=epsilon)
    two = (CATEGORIES[0], CATEGORIES[1])
    return {
        "randomized response": (dpf.local.RandomizedResponse(CATEGORIES, epsilon=epsilon), two, _named),
        "subset selection": (dpf.local.SubsetSelection(CATEGORIES, epsilon=epsilon), two, _first_bits),
        "RAPPOR, permanent bits": (
            dpf.local.Rappor.for_epsilon(CATEGORIES, epsilon, p=0.5, q=0.75).permanent,
            two,
            _first_bits,
        ),
        "count-mean sketch": (sketch, two, lambda reports: _hashed_bits(reports, np.asarray(sketch.places))),
        "mean": (dpf.local.Mean(bounds=(0, 10), epsilon=epsilon), (0.0, 10.0), np.asarray),
    }


def audited(name: str, epsilon: float, samples: int) -> Finding:
    """Audit one method."""
    method, (one, other), outcomes = methods(epsilon)[name]

    def release(value: Any) -> Callable[[], Any]:
        frame = pl.DataFrame({"value": [value] * AT_ONCE})

        def released() -> Any:
            ledger = dpf.Ledger(epsilon=2 * epsilon, unit=dpf.PrivacyUnit(neighbors="replace"))
            return outcomes(frame.dp.local.randomize("value", method=method, ledger=ledger)["value"].to_list())

        return released

    return dpf.audit.epsilon(
        release(one),
        release(other),
        claimed=float(method.loss),
        samples=samples,
        outcomes=AT_ONCE,
        confidence=CONFIDENCE,
    )


def _named(reports: list[Any]) -> Any:
    """Return which of the two values a report names, as the difference of two flags."""
    found = np.array(reports)
    return (found == CATEGORIES[0]).astype(float) - (found == CATEGORIES[1])


def _first_bits(reports: list[Any]) -> Any:
    """Return the difference of the bits of the two values."""
    first = np.array([int(report[0], 16) for report in reports])
    return ((first >> 3) & 1) - ((first >> 2) & 1).astype(float)


def _hashed_bits(reports: list[Any], places: Any) -> Any:
    """Return the difference of the cells of the two values, under the hash function that the report names."""
    number = np.array([int(report[:4], 16) for report in reports])
    bits = np.unpackbits(np.array([list(bytes.fromhex(report[4:])) for report in reports], dtype=np.uint8), axis=1)
    rows = np.arange(len(reports))
    one, other = (bits[rows, places[number, place]].astype(float) for place in (0, 1))
    return one - other


def main() -> int:
    """Audit all methods at two epsilons and print the results; return 1 if one reveals more than it states."""
    parser = argparse.ArgumentParser(description="Audit the local model.")
    parser.add_argument("--samples", type=int, default=200_000, help="reports of each side")
    options = parser.parse_args()
    flagged = audits = 0
    used = 0.0
    for epsilon in (0.5, 2.0):
        for name in methods(epsilon):
            found = audited(name, epsilon, options.samples)
            flagged, audits = flagged + (not found.holds), audits + 1
            used = max(used, found.lower_bound / found.claimed)
            words = "" if found.holds else "  OBJECTION"
            print(f"{name:<24}{found.claimed:>8.3g}{found.lower_bound:>8.3f}  {found.event}{words}", flush=True)
    return verdict(flagged, audits=audits, largest_bound=used)


if __name__ == "__main__":
    raise SystemExit(main())
