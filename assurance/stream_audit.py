"""Audits of streams: all periods together bound the epsilon of one person from below.

    python -m assurance.stream_audit [--samples 200000]

Each stream has many equal public groups with separate people, so one series of releases draws one sample per group.
The likelihood ratio of all measured numbers, reconstructed from the released ones, distinguishes neighbors.
`tests/release/test_stream_audit.py` runs a small share.
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
from dpframe.queries.prefix_sums import coefficients

GROUPS = 1_000
PERIODS = 3
CONFIDENCE = 1 - 1e-6
PRICES: dict[str, dict[str, Any]] = {
    "Laplace": {"epsilon": 1.0},
    "Gaussian": {"epsilon": 1.0, "delta": 0.2},  # a large delta, since an audit sees no event of probability 1e-6
}
# rows of the one person as (period, first release whose table has the row), and how many of them count
PEOPLE: dict[str, tuple[list[tuple[int, int]], int | None]] = {
    "a row": ([(1, 1)], None),
    "a person with too many rows": ([(1, 1)] * 6, 2),
    "rows that come late": ([(2, 2), (3, 3), (1, 3), (1, 3)], 2),
}
SUMMED = {"count": dpf.count(), "sum": dpf.sum("value", bounds=(0, 4))}


def audited(person: str, price: str, statistic: str, samples: int) -> Finding:
    """Audit one person, one price and one statistic."""
    rows, most = PEOPLE[person]
    frames = [[_frame(rows, has_person, now) for now in range(1, PERIODS + 1)] for has_person in (True, False)]
    unit = dpf.PrivacyUnit() if most is None else dpf.PrivacyUnit("person", max_rows=most)

    def measured(tables: list[pl.DataFrame], **changed: Any) -> Any:
        """Return the noisy y of every period by group."""
        asked = {**PRICES[price], **changed}
        ledger = dpf.Ledger(asked["epsilon"], asked.get("delta", 0), unit=unit, accounting="basic")
        stream = dpf.Stream(
            "audited",
            statistic=SUMMED[statistic],
            time="period",
            periods=range(1, PERIODS + 1),
            by="group",
            keys=range(GROUPS),
            max_rows=most,
            ledger=ledger,
            **asked,
        )
        periods = [stream.release(table, now)["period"].to_numpy() for now, table in enumerate(tables, start=1)]
        return _matrix() @ np.array(periods)

    # the person's contribution, from releases that are nearly without noise
    moved, base = (measured(tables, epsilon=1e7)[:, :1] for tables in frames)

    def release(tables: list[pl.DataFrame]) -> Callable[[], Any]:
        def released() -> Any:
            numbers = measured(tables)
            if price == "Gaussian":
                return ((moved - base) * numbers).sum(axis=0)
            return (np.abs(numbers - base) - np.abs(numbers - moved)).sum(axis=0)

        return released

    return dpf.audit.epsilon(
        release(frames[0]),
        release(frames[1]),
        claimed=PRICES[price]["epsilon"],
        delta=PRICES[price].get("delta", 0.0),
        samples=samples,
        outcomes=GROUPS,
        confidence=CONFIDENCE,
    )


def _matrix() -> Any:
    """Return the matrix C, which maps numbers of single periods to the measured ones."""
    column = coefficients(PERIODS) / coefficients(1)[0]
    return np.array([[column[t - j] if j <= t else 0.0 for j in range(PERIODS)] for t in range(PERIODS)])


def _frame(rows: list[tuple[int, int]], has_person: bool, now: int) -> pl.DataFrame:
    """Return the table at a release: a few other people in every group, with or without the person."""
    others = [(period, 10 + period, 1.0) for period in range(1, now + 1)]
    mine = [(period, 1, 4.0) for period, since in rows if has_person and since <= now]
    group = pl.DataFrame(others + mine, schema=["period", "person", "value"], orient="row")
    groups = pl.DataFrame({"group": range(GROUPS)})
    return groups.join(group, how="cross").with_columns(person=pl.col("person") + 100 * pl.col("group"))


def main() -> int:
    """Audit every combination and print the results; return 1 if one reveals more than it states."""
    parser = argparse.ArgumentParser(description="Audit streams.")
    parser.add_argument("--samples", type=int, default=200_000, help="outcomes of each side")
    options = parser.parse_args()
    flagged = audits = 0
    used = 0.0
    for person in PEOPLE:
        for price in PRICES:
            for statistic in SUMMED:
                found = audited(person, price, statistic, options.samples)
                flagged, audits = flagged + (not found.holds), audits + 1
                used = max(used, found.lower_bound / found.claimed)
                words = "" if found.holds else "  OBJECTION"
                bound = f"{found.claimed:>8.3g}{found.lower_bound:>8.3f}"
                print(f"{person:<30}{price:<10}{statistic:<7}{bound}{words}", flush=True)
    return verdict(flagged, audits=audits, largest_bound=used)


if __name__ == "__main__":
    raise SystemExit(main())
