"""Private statistics of a Polars LazyFrame: dpframe scans the file and reads only the columns that it needs.

Run it with ``python examples/lazy.py FOLDER``.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

import dpframe as dpf

MONTHS = pl.date_range(date(2026, 1, 1), date(2027, 1, 1), "1mo", eager=True).to_list()


def main(folder: Path) -> pl.DataFrame:
    """Release the number of rides of each month, and their mean length by kind of bike."""
    path = folder / "rides.parquet"
    made_up_rides().write_parquet(path)
    rides = pl.scan_parquet(path).filter(pl.col("minutes") > 0)  # safe: a fixed filter that looks at each row alone

    unit = dpf.PrivacyUnit(column="rider", max_rows=4, max_groups=6)
    with dpf.Ledger(epsilon=2.0, unit=unit) as ledger:
        months = rides.dp.histogram("day", bins=MONTHS, epsilon=1.0)
        lengths = rides.dp.group_by("bike", keys=["city", "cargo", "electric"]).mean(
            "minutes", bounds=(0, 120), epsilon=1.0
        )
    print(months)
    print(lengths)
    print(ledger)
    return lengths


def made_up_rides(size: int = 20_000) -> pl.DataFrame:
    """Make up rides to try the example with."""
    random = np.random.default_rng(0)
    days = np.datetime64("2026-01-01") + random.integers(0, 365, size).astype("timedelta64[D]")
    return pl.DataFrame(
        {
            "rider": random.integers(0, 3_000, size),
            "day": days,
            "bike": random.choice(["city", "cargo", "electric"], size),
            "minutes": random.gamma(2.0, 12.0, size),
        }
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
