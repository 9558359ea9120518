"""A number that is published every week of a year: one stream compared with 52 releases on the same budget.

The number is the count of large purchases so far, by customers of a CD shop in 1997 (CDNOW). Both ways spend epsilon
1 and delta 1e-6 on the whole year, and both count at most five purchases of each customer. Run it with ``python
examples/weekly_stream.py FOLDER --chart``: it writes stream.csv and stream.png. It reads the data from
``../shared/data`` if they are there, and otherwise makes up customers.
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "cdnow" / "transactions.csv"
WEEKS = dpf.dates("1996-12-30", "1997-12-22", every="1w")  # 52 weeks; the first starts two days before the data
MONDAYS = [date(1996, 12, 30) + timedelta(weeks=week) for week in range(52)]
LARGE = 100  # dollars
MOST = 5  # purchases that count per customer
EPSILON, DELTA = 1.0, 1e-6


def main() -> None:
    """Release the year in both ways, and print the first and the last number with their margins of error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("."), help="where the picture is written")
    parser.add_argument("--chart", action="store_true", help="draw it; it needs dpframe[plot]")
    parser.add_argument("--weeks", type=int, default=52, help="how many weeks are released")
    options = parser.parse_args()
    print(f"At epsilon {EPSILON:g} and delta {DELTA:g} for the whole year:")
    large = purchases().filter(pl.col("dollars") >= LARGE)
    rows = [*streamed(large, options.weeks), *by_themselves(large, options.weeks)]
    for row in rows:
        if row["week"] in (MONDAYS[0], MONDAYS[options.weeks - 1]):
            print(f"{row['how']}, week of {row['week']}: {row['total']:,.0f} +- {row['error']:.0f}")
    options.folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_csv(options.folder / "stream.csv")
    if options.chart:
        chart(rows).save(options.folder / "stream.png", ppi=76)


def streamed(large: pl.DataFrame, weeks: int) -> list[dict[str, Any]]:
    """Release the year as one stream, which is charged once."""
    ledger = dpf.Ledger(epsilon=EPSILON, delta=DELTA, unit="customer_id")
    stream = dpf.Stream(
        "large purchases",
        statistic=dpf.count(),
        time="date",
        periods=WEEKS,
        max_rows=MOST,
        epsilon=EPSILON,
        ledger=ledger,
    )
    for week in MONDAYS[:weeks]:
        stream.release(until(large, week), week)
    released = stream.to_frame().rename({"date": "week", "total_error": "error"})
    return [{"how": "one stream", **row} for row in released.select("week", "total", "error").to_dicts()]


def by_themselves(large: pl.DataFrame, weeks: int) -> list[dict[str, Any]]:
    """Release the same total separately every week, each time for 1/52 of the budget."""
    ledger = dpf.Ledger(epsilon=EPSILON, delta=DELTA, unit="customer_id")
    rows = []
    for week in MONDAYS[:weeks]:
        counted = until(large, week).dp.count(max_rows=MOST, share=Fraction(1, 52), ledger=ledger)
        total, error = counted["count"].item(), counted["count_error"].item()
        rows.append({"how": "52 releases", "week": week, "total": total, "error": error})
    return rows


def until(large: pl.DataFrame, week: date) -> pl.DataFrame:
    """Return the rows that exist at the end of a week."""
    return large.filter(pl.col("date") < week + timedelta(weeks=1))


def purchases() -> pl.DataFrame:
    """Load the purchases, or make up some."""
    if DATA.is_file():
        return pl.read_csv(DATA, try_parse_dates=True).filter(pl.col("date") < date(1997, 12, 29))
    random = np.random.default_rng(0)
    days = [MONDAYS[0] + timedelta(days=int(day)) for day in random.integers(0, 364, 20_000)]
    dollars = random.gamma(1.5, 25.0, 20_000)
    return pl.DataFrame({"customer_id": random.integers(0, 9_000, 20_000), "date": days, "dollars": dollars})


def chart(rows: list[dict[str, Any]]) -> Any:
    """Draw both series with their error bands; only released numbers are used."""
    import altair

    points = [
        {
            **row,
            "week": str(row["week"]),
            "low": row["total"] - row["error"],
            "high": row["total"] + row["error"],
        }
        for row in rows
    ]
    color = altair.Color(
        "how:N",
        title=None,
        sort=["one stream", "52 releases"],
        scale=altair.Scale(domain=["one stream", "52 releases"], range=["#0072b2", "#d55e00"]),
        legend=altair.Legend(orient="top-left"),
    )
    base = altair.Chart(altair.Data(values=points)).encode(
        x=altair.X("week:T", title="week of 1997", scale=altair.Scale(type="utc")), color=color
    )
    title = f"purchases of at least ${LARGE} so far"
    band = base.mark_area(opacity=0.25).encode(y=altair.Y("low:Q", title=title), y2="high:Q")
    line = base.mark_line(point=altair.OverlayMarkDef(size=16)).encode(y=altair.Y("total:Q", title=title))
    return altair.layer(band, line).properties(width=560, height=320)


if __name__ == "__main__":
    main()
