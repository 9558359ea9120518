"""A weekly job: one ledger for the year, an equal share of it every week, and files that carry their provenance.

The ledger is a file. The job starts anew every week and continues with the budget that is left. Run it with
``python examples/weekly.py FOLDER``.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

import dpframe as dpf

WEEKS = 52
WARDS = ["surgery", "maternity", "oncology"]
PATIENTS = dpf.PrivacyUnit(column="patient", max_rows=2, max_groups=1)


def main(folder: Path, weeks: int = 3) -> dpf.Ledger:
    """Release the given number of weeks and print the budget that is left for the rest of the year."""
    ledger = dpf.Ledger(epsilon=4.0, delta=1e-6, unit=PATIENTS, path=folder / "clinic.ledger", dataset="clinic")
    for week in range(1, weeks + 1):
        path = folder / f"week{week:02}.parquet"
        released = weekly_release(made_up_stays(week), ledger, week)
        again = weekly_release(made_up_stays(week), ledger, week)  # as if the job had been started twice
        assert again.equals(released)
        released.dp.write_parquet(path)
        print(f"week {week}: wrote {path.name}; left: {ledger.remaining}")
    back = dpf.read_parquet(folder / "week01.parquet")
    print(f"read back: {back.height} rows that cost {back.dp.provenance['cost']}")
    return ledger


def weekly_release(stays: pl.DataFrame, ledger: dpf.Ledger, week: int) -> pl.DataFrame:
    """Release the statistics of one week, for 1/52 of the year's budget."""
    return stays.dp.group_by("ward", keys=WARDS).agg(
        stays=dpf.count(),
        nights=dpf.mean("nights", bounds=(0, 30)),
        share=Fraction(1, WEEKS),
        ledger=ledger,
        label="wards",
        snapshot=f"week {week}",  # a second run for the same week returns the same answer at no cost
    )


def made_up_stays(week: int, size: int = 2_000) -> pl.DataFrame:
    """Make up rows to try the example with; a real job reads them from its database."""
    random = np.random.default_rng(week)
    return pl.DataFrame(
        {
            "patient": random.integers(0, 1_500, size),
            "ward": random.choice(WARDS, size),
            "nights": random.poisson(4, size),
        }
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
