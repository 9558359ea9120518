"""Release a private table from Dask: workers add up their own partitions, and only noisy totals come back.

Run it with ``python examples/dask_release.py FOLDER``; it needs ``pip install dpframe[dask] statsmodels``. The data
are real: outpatient visits of 20,190 person-years in the RAND Health Insurance Experiment, shipped with statsmodels.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import statsmodels.api as sm

import dpframe as dpf

HEALTH = {"hlthg": "good", "hlthf": "fair", "hlthp": "poor"}


def main(folder: Path) -> Any:
    """Release person-years and mean visits by health, and a histogram of visits."""
    visits = dd.read_parquet(written(folder))
    with dpf.Ledger(epsilon=1.0) as ledger:  # each row is protected: one year of one person
        by_health = visits.dp.group_by("health", keys=["excellent", *HEALTH.values()]).agg(
            years=dpf.count(), mean_visits=dpf.mean("visits", bounds=(0, 20)), epsilon=0.5
        )
        histogram = visits.dp.histogram("visits", bins=[0, 1, 2, 5, 10, 20, 100], epsilon=0.3)
    print(by_health)
    print(histogram)
    print(ledger)
    return by_health


def written(folder: Path) -> Path:
    """Write the table to four files, as a data pipeline might, and return their folder."""
    table = sm.datasets.randhie.load_pandas().data
    health = table[list(HEALTH)].rename(columns=HEALTH).idxmax(axis=1)
    table = table.assign(visits=table["mdvis"], health=health.where(table[list(HEALTH)].sum(axis=1) > 0, "excellent"))
    path = folder / "visits"
    path.mkdir(exist_ok=True)
    for part in range(4):
        table[["visits", "health"]].iloc[part::4].to_parquet(path / f"{part}.parquet")
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
