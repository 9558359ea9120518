"""Measure the local model on real tables: the names that each method finds, and the error compared with central DP.

Run it from the root of the repository: ``python -m benchmarks.local_model``. The tables are not part of the
repository: they are read from ``../shared/data``. Here each row of a table stands for one person.
``--picture local.png`` draws a picture like the one in docs/guide/local.md (with the extra ``dpframe[plot]``).
``--few`` instead counts how many intervals hold with few reports, and ``--missing`` does so with missing
values.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PRODUCTS, WORDS, JOBS = (
    "online_retail/online_retail.parquet",
    "reddit_ngrams/ngrams.parquet",
    "bank_marketing/bank_full.csv",
)
MOST_ROWS = 100_000  # limit of the length of a list
FEW, RUNS, TEN = (1, 2, 3, 10, 30, 100, 1_000), 2_000, [f"name {number}" for number in range(10)]
METHODS = {
    "subset selection": lambda names, epsilon: dpf.local.SubsetSelection(names, epsilon=epsilon),
    "randomized response": lambda names, epsilon: dpf.local.RandomizedResponse(names, epsilon=epsilon),
    "count-mean sketch": lambda names, epsilon: dpf.local.CountMeanSketch(names, epsilon=epsilon, cells=256),
    "RAPPOR, one report": dpf.local.Rappor.for_epsilon,
    "RAPPOR, permanent bits": lambda names, epsilon: dpf.local.Rappor.for_epsilon(names, epsilon).permanent,
    "RAPPOR, Bloom filters": lambda names, epsilon: dpf.local.Rappor.for_epsilon(
        names, epsilon, hashes=2, bits=128, cohorts=32
    ),
}


@dataclass(frozen=True)
class Found:
    """Figures of an estimate for a list of names in order of their true counts."""

    method: str
    epsilon: float
    top: int  # how many of the ten most common names are among the ten largest estimates
    seen: int  # how many names stand out: their interval lies above 0
    false: int  # how many of those belong to the less common half
    error: float  # the root mean squared error of the unbiased counts
    expected: float  # the same error as count_error states it
    denoised: float  # the root mean squared error of the denoised counts

    @classmethod
    def of(cls, name: str, method: Any, reports: Any, truth: Any, epsilon: float) -> Found:
        """Compare the estimate with the true counts, which are in descending order."""
        found = method.estimate(reports)
        noisy, error, count = (found[one].to_numpy() for one in ("count_noisy", "count_error", "count"))
        noisy = noisy - (len(reports) - truth.sum()) / truth.size  # undeclared names spread evenly; they are known here
        seen = noisy > error * 2  # four standard deviations
        return cls(
            name,
            epsilon,
            int(np.count_nonzero(np.argsort(-noisy)[:10] < 10)),
            int(seen.sum()),
            int(seen[truth.size // 2 :].sum()),
            float(np.sqrt(np.mean((noisy - truth) ** 2))),
            float(np.sqrt(np.mean((error / 1.96) ** 2))),
            float(np.sqrt(np.mean((count - (len(reports) - truth.sum()) / truth.size - truth) ** 2))),
        )

    def line(self) -> str:
        """Return a row of the table."""
        return (
            f"| {self.method} | {self.epsilon:g} | {self.top} | {self.seen} | {self.false} | {self.error:,.0f} | "
            f"{self.expected:,.0f} | {self.denoised:,.0f} |"
        )


def column(path: Path, name: str) -> pl.Series:
    """Return a column of names without missing values."""
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, separator=separator(path))
    values = table[name].drop_nulls().cast(pl.String)
    return values.str.split(" ").list.first() if name == "ngram" else values


def separator(path: Path) -> str:
    """Return the column separator of a file."""
    with path.open() as file:
        return ";" if ";" in file.readline() else ","


def common(values: pl.Series, most: int) -> tuple[list[str], Any]:
    """Return the most common names in order, and their counts."""
    counts = values.value_counts(sort=True).head(most)
    return counts[values.name].to_list(), counts["count"].to_numpy().astype(np.float64)


def compared(values: pl.Series, most: int, epsilons: tuple[float, ...]) -> Iterator[Found]:
    """Yield the figures of every method at every epsilon."""
    names, truth = common(values, most)
    for epsilon in epsilons:
        for name, make in METHODS.items():
            method = make(names, epsilon)
            yield Found.of(name, method, method.randomize(values), truth, epsilon)


def both_models(values: pl.Series, epsilon: float) -> pl.DataFrame:
    """Return a histogram from the central and one from the local model, at the same epsilon for each person."""
    names, _ = common(values, 100)
    unit = dpf.PrivacyUnit(neighbors="replace")
    ledger = dpf.Ledger(epsilon=2 * epsilon, unit=unit)
    table = values.to_frame()
    central = table.dp.histogram(values.name, categories=names, epsilon=epsilon, ledger=ledger)
    method = dpf.local.SubsetSelection(names, epsilon=epsilon)
    local = dpf.local.estimate(table.dp.local.randomize(values.name, method=method, ledger=ledger))
    models = {"central: one noisy histogram": central, "local: randomized reports": local}
    return pl.concat([frame.with_columns(pl.lit(name).alias("model")) for name, frame in models.items()])


def picture(models: pl.DataFrame, name: str) -> Any:
    """Draw both histograms side by side with their 95% intervals; `name` is the column of the values."""
    import altair

    found = models.with_columns(
        (pl.col("count_noisy") - pl.col("count_error")).alias("low"),
        (pl.col("count_noisy") + pl.col("count_error")).alias("high"),
    )
    base = altair.Chart(altair.Data(values=found.to_dicts()))
    across = altair.Y(f"{name}:N", sort=None, title=None)
    bars = base.mark_bar(style="bars").encode(y=across, x=altair.X("count:Q", title="people"))
    rules = base.mark_rule(style="intervals").encode(y=across, x="low:Q", x2="high:Q")
    return altair.layer(bars, rules).properties(width=260, height=260).facet(altair.Column("model:N", title=None))


def held(make: Any, epsilon: float, reports: int, runs: int = RUNS) -> tuple[float, float]:
    """Return two shares of intervals that hold: for the one name that all have, and for the nine that nobody has."""
    count = pl.Series("name", TEN[:1] * reports)
    truth = np.array([reports, *[0] * (len(TEN) - 1)])
    inside = np.zeros((runs, len(TEN)), dtype=bool)
    for run in range(runs):
        method = make(TEN, epsilon)
        if isinstance(method, dpf.local.CountMeanSketch):  # its error holds over random keys
            method = replace(method, key=str(run))
        found = method.estimate(method.randomize(count), denoise=None)
        inside[run] = np.abs(found["count"].to_numpy() - truth) <= found["count_error"].to_numpy()
    return float(inside[:, 0].mean()), float(inside[:, 1:].mean())


def few_reports() -> None:
    """Print how many intervals hold with few reports: a line for each method and epsilon."""
    print("| method | epsilon | " + " | ".join(f"{reports:,}" for reports in FEW) + " |")
    print("|---|---:|" + "---:|" * len(FEW))
    for name, make in METHODS.items():
        for epsilon in (1.0, 2.0, 4.0, 8.0):
            shares = [held(make, epsilon, reports) for reports in FEW]
            told = " | ".join(f"{all_have:.1%}, {none_has:.1%}" for all_have, none_has in shares)
            print(f"| {name} | {epsilon:g} | {told} |", flush=True)


def held_with_missing(make: Any, epsilon: float, share: float) -> float:
    """Return the share of intervals that hold for four names, equally common among 1,000 people and random fill-ins."""
    names, people, runs = TEN[:4], 1_000, 500
    there = round(people * (1 - share)) // 4
    values = pl.Series("name", [*names * there, *[None] * (people - 4 * there)], dtype=pl.String)
    inside = np.zeros((runs, 4), dtype=bool)
    for run in range(runs):
        method = make(names, epsilon)
        if isinstance(method, dpf.local.CountMeanSketch):
            method = replace(method, key=str(run))
        found = method.estimate(method.randomize(values), denoise=None)
        inside[run] = np.abs(found["count"].to_numpy() - people / 4) <= found["count_error"].to_numpy()
    return float(inside.mean())


def missing_values() -> None:
    """Print how many intervals hold where values are missing: a line for each method and epsilon."""
    shares = (0.0, 0.1, 0.5)
    print("| method | epsilon | " + " | ".join(f"{share:.0%} missing" for share in shares) + " |")
    print("|---|---:|" + "---:|" * len(shares))
    for name, make in METHODS.items():
        for epsilon in (1.0, 4.0):
            told = " | ".join(f"{held_with_missing(make, epsilon, share):.1%}" for share in shares)
            print(f"| {name} | {epsilon:g} | {told} |", flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--few", action="store_true", help="how many intervals hold where there are few reports")
    parser.add_argument("--missing", action="store_true", help="how many intervals hold where values are missing")
    parser.add_argument("--picture", type=Path, help="draw the cost of trusting no one into this file")
    options = parser.parse_args()
    if options.few:
        few_reports()
        return 0
    if options.missing:
        missing_values()
        return 0
    for file in (PRODUCTS, WORDS, JOBS):
        if not (options.data / file).exists():
            print(f"No {file} in {options.data}. Name the folder with --data.")
            return 1
    if options.picture:
        picture(both_models(column(options.data / JOBS, "job"), 1.0), "job").save(str(options.picture))
        return 0
    for file, name, most in ((PRODUCTS, "description", 300), (WORDS, "ngram", 300)):
        values = column(options.data / file, name)
        values = values.gather_every(max(1, len(values) // MOST_ROWS))
        print(f"\n{file}: {len(values):,} reports, {most} declared names\n")
        print("| method | epsilon | of the top 10 | stand out | of the rarer half | error | as stated | denoised |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for found in compared(values, most, (1.0, 4.0)):
            print(found.line(), flush=True)
    jobs = both_models(column(options.data / JOBS, "job"), 1.0)
    print(jobs.group_by("model", maintain_order=True).agg(pl.col("count_error").mean()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
