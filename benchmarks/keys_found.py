"""Count the unknown groups that a release finds on real tables, by the contribution bounds of a person.

    python -m benchmarks.keys_found [--runs 5]

The tables are in the folder next to the repository; the last column is the processor time of one run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import polars as pl

import dpframe as dpf

DATA = Path(__file__).parents[2] / "shared" / "data"
EPSILON, DELTA = 1.0, 1e-5
BOUNDS = ((1, 1), (1, 1_000), (5, 1_000), (20, 1_000))  # max_groups, max_keys


def tables() -> dict[str, tuple[pl.DataFrame, str, str]]:
    """Return the tables with the names of their person and key columns."""
    return {
        "orders": (pl.read_parquet(DATA / "online_retail" / "online_retail.parquet"), "customer_id", "description"),
        "Reddit": (pl.read_parquet(DATA / "reddit_ngrams" / "ngrams.parquet"), "user_id", "ngram"),
        "diagnoses": (
            pl.read_csv(DATA / "mimic_iii_demo" / "diagnoses_icd.csv", infer_schema_length=None),
            "subject_id",
            "icd9_code",
        ),
    }


def found(frame: pl.DataFrame, person: str, key: str, groups: int, keys: int) -> int:
    """Return the number of groups that one release shows."""
    ledger = dpf.Ledger(epsilon=EPSILON, delta=DELTA, keys_delta=DELTA / 2, unit=person)
    by_key = frame.dp.group_by(key, keys=dpf.discover(delta=DELTA / 2, max_keys=keys))
    return int(by_key.n_units(max_groups=groups, epsilon=EPSILON, ledger=ledger).height)


def main() -> None:
    """Print a line for each table and pair of bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    for name, (frame, person, key) in tables().items():
        for groups, keys in BOUNDS:
            start = time.process_time()
            mean = sum(found(frame, person, key, groups, keys) for _ in range(runs)) / runs
            seconds = (time.process_time() - start) / runs
            print(f"{name:<12}max_groups {groups:<4}max_keys {keys:<7,}{mean:>8.1f}{seconds:>8.2f} s", flush=True)


if __name__ == "__main__":
    main()
