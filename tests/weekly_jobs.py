"""A small weekly job, for the tests that run it."""

from __future__ import annotations

import polars as pl

STAYS = pl.DataFrame(
    {"patient": range(600), "ward": ["A", "B", "C"] * 200, "nights": [1.0, 4.0, 9.0, None] * 150, "well": [True] * 600}
)
TEXT = """engine = "polars"
snapshot = "${WEEK}"
audit = "audit.jsonl"

[source]
path = "stays.parquet"

[ledger]
path = "clinic.ledger"
dataset = "clinic"
unit = "patient"
epsilon = 1.0

[[release]]
label = "wards"
verb = "agg"
group_by = "ward"
keys = ["A", "B", "C"]
statistics.stays = {statistic = "count"}
statistics.nights = {statistic = "mean", column = "nights", bounds = [0, 30]}
max_rows = 2
epsilon = 0.3

[[release]]
label = "nights"
verb = "histogram"
column = "nights"
bins = [0, 2, 4, 8, 16]
max_rows = 2
epsilon = 0.2

[[output]]
release = "wards"
path = "out/wards.parquet"

[[output]]
release = "nights"
path = "out/nights-${WEEK}.csv"
"""


def lay_out(folder):
    """The table and the job file, in a folder."""
    STAYS.write_parquet(folder / "stays.parquet")
    (folder / "release.toml").write_text(TEXT, encoding="utf-8")
    return folder
