"""Compare the figures of `benchmarks.dpbench` with those of published algorithms on the same cases.

    python -m benchmarks.dpbench --data FOLDER --json cells.json
    python -m benchmarks.dpbench --data FOLDER --ranges --json ranges.json
    python -m benchmarks.beside_published cells.json ranges.json

`benchmarks/published.csv` holds the results of DPBench's reference code (Hay et al. 2016) on the twenty histograms of
its collection on which nothing here was tuned: relative to noisy values, over one to four releases of each case.
MWEM* knows the exact number of rows, which no release may use: it is shown, but not among the best.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.dpbench import FIGURES

PUBLISHED = Path(__file__).with_name("published.csv")
CASE = ["kind", "set", "scale", "epsilon"]
TOLD = "MWEM*"  # knows the exact number of rows


def main() -> None:
    """Print one table for one-dimensional histograms and one for grids."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, nargs="+", help="files that benchmarks.dpbench wrote with --json")
    options = parser.parse_args()
    published = pl.read_csv(PUBLISHED)
    mine = pl.concat([_told(json.loads(file.read_text()), f"dpframe, {file.stem}") for file in options.figures])
    every = pl.concat([published.drop("releases"), mine.select([*CASE, "algorithm", *FIGURES])], how="diagonal")
    for (kind,), cases in every.group_by("kind", maintain_order=True):
        print(f"\n| {kind} | cases | {' | '.join(FIGURES[:4])} |\n|---|---:|" + "---:|" * 4)
        for (name,), rows in cases.group_by("algorithm", maintain_order=True):
            print(
                f"| {name} | {rows.height} | "
                + " | ".join(f"{_mean(rows[figure]):.3g}" for figure in FIGURES[:4])
                + " |"
            )
        best = published.filter(pl.col("algorithm") != TOLD).group_by(CASE).agg(pl.col(FIGURES).min())
        for name in mine["algorithm"].unique(maintain_order=True):
            both = mine.filter(algorithm=name, kind=kind).join(best, on=CASE, suffix=" best")
            if both.is_empty():
                continue
            ratios = [both[figure] / both[f"{figure} best"].clip(1e-9) for figure in FIGURES[:4]]
            words = " | ".join(f"{_mean(ratio):.3g}, in {(ratio < 1).sum()} less" for ratio in ratios)
            print(f"| {name}, over the best of each case | {both.height} | {words} |")


def _told(rows: list[dict[str, Any]], name: str) -> pl.DataFrame:
    return pl.DataFrame([{**{key: row[key] for key in (*CASE, *FIGURES)}, "algorithm": name} for row in rows])


def _mean(values: pl.Series) -> float:
    """Return the geometric mean."""
    return math.exp(values.clip(1e-9).log().mean() or 0.0)  # type: ignore[arg-type, operator]


if __name__ == "__main__":
    main()
