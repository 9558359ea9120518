"""Suggested bounds on data of known shapes: whether their intervals hold, and how near they come to the best ones.

    python -m assurance.suggested_bounds              # all shapes and sizes, in some minutes
    python -m assurance.suggested_bounds --quick      # a share of them

Shares: of every candidate of every run, the share of values that its bounds clip must lie between ``clipped_low`` and
``clipped_high``, for all candidates of a run at once in at least 95% of runs. Errors: the loss by clipping (the mean of
what it takes off values, or adds to them) and the margin of error of the mean's noise, together, of the suggested
bounds and of the best bounds in hindsight. At most 2 times as much is promised where the best bounds clip so many rows
that the noise lets one see them, 20 / epsilon, and the release does not warn that it was too noisy to tell. It exits
with 1 where one of both fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from assurance import verdict
from dpframe.noise import insecure_bits
from dpframe.planning.bounds_suggestion import suggested
from dpframe.planning.plan import Plan
from dpframe.release.results import exact_totals, noisy_of
from tests.covering import chance_of_missing

Floats = NDArray[np.float64]

EPSILON = 0.05  # of the suggestion
TIMES, VISIBLE = 2.0, 20.0  # of the best error; rows times epsilon that can be seen
PLANNED = (0.5, 0.05, 0.005, 0.001)  # epsilons of the mean
SIZES = (10**3, 10**4, 10**5, 10**6)
RUNS = 40
ALARM = 1e-6  # false alarms of a line of shares
TRIED = 400  # ends of bounds in hindsight


def _incomes(random: np.random.Generator, rows: int) -> Floats:
    """As of a survey of people: many without any, most of some, few of much, in round numbers."""
    some = random.lognormal(10.2, 0.9, rows)
    rounded = np.where(some > 10_000, np.round(some, -3), np.round(some, -2))
    return np.where(random.random(rows) < 0.3, 0.0, rounded)


SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "lognormal, sigma 1": lambda random, rows: random.lognormal(0.0, 1.0, rows),
    "lognormal, sigma 2": lambda random, rows: random.lognormal(3.0, 2.0, rows),
    "incomes, as PUMS has them": _incomes,
    "ages, as PUMS has them": lambda random, rows: np.clip(np.round(random.normal(45, 20, rows)), 16, 95),
    "counts, Poisson of 3": lambda random, rows: random.poisson(3.0, rows).astype(float),
    "counts, geometric of 20": lambda random, rows: random.geometric(0.05, rows).astype(float),
    "both signs, Laplace": lambda random, rows: random.laplace(0.0, 100.0, rows),
}


@dataclass(frozen=True)
class Line:
    """A shape of some size at some planned budget, with what was found."""

    shape: str
    rows: int
    planned: float
    held: int  # runs in which all intervals hold
    runs: int
    ratio: float  # the error over the best, of nine in ten runs that do not warn, or of all where each does
    clipped: int  # rows that the best bounds clip
    warned: int  # runs that recommend nothing

    @property
    def must_be_near(self) -> bool:
        """Whether the best bounds clip so many rows that they can be seen, and some run recommends bounds."""
        return self.clipped >= VISIBLE / EPSILON and self.warned < self.runs

    @property
    def fails(self) -> bool:
        """Whether too few intervals hold, or the error is too large."""
        return chance_of_missing(self.runs - self.held, self.runs, 0.05) <= ALARM or (
            self.must_be_near and self.ratio > TIMES
        )

    def __str__(self) -> str:
        near = "counts" if self.must_be_near else "      "
        return (
            f"{self.shape:28} {self.rows:>9,} rows, mean at {self.planned:<6g} held {self.held}/{self.runs}  "
            f"error {self.ratio:5.2f} times the best, which clips {self.clipped:>7,}  "
            f"warned {self.warned}/{self.runs}  {near}{' FAILS' * self.fails}"
        )


def lost(values: Floats, lower: Any, upper: Any) -> Floats:
    """The mean of what clipping takes off values or adds to them, for each pair of bounds; `values` are in order."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    below, above = np.searchsorted(values, lower, side="left"), np.searchsorted(values, upper, side="right")
    low = lower * below - running[below]
    high = (running[-1] - running[above]) - upper * (values.size - above)
    return np.asarray((low + high) / values.size)


def _best(values: Floats, margin: float) -> tuple[float, int]:
    """The least error of any bounds, and how many rows these clip."""
    ends = np.unique(
        np.append(np.quantile(values, np.linspace(0, 1, TRIED)), values[[*range(TRIED), *range(-TRIED, 0)]])
    )
    ends = np.unique(np.append(ends, [0.0]))
    lower, upper = (each.ravel() for each in np.meshgrid(ends, ends, indexing="ij"))
    lower, upper = lower[lower < upper], upper[lower < upper]
    errors = lost(values, lower, upper) + margin * (upper - lower) / 2.0
    place = int(np.argmin(errors))
    inside = np.searchsorted(values, upper[place], side="right") - np.searchsorted(values, lower[place], side="left")
    return float(errors[place]), int(values.size - inside)


def _margin(planned: float, rows: int) -> float:
    """The margin of error of a mean within bounds of length 2, of so many values."""
    plan = pl.DataFrame({"x": [0.0]}).dp.preview.mean("x", bounds=(-1, 1), epsilon=planned, size=rows)
    return float(plan.error["x_mean"])


def lines(*, shapes: Any = SHAPES, sizes: Any = SIZES, planned: Any = PLANNED, runs: int = RUNS) -> Iterator[Line]:
    """Every shape, size and planned budget."""
    random = np.random.default_rng(20261126)
    for shape, draw in shapes.items():
        for rows in sizes:
            values = np.sort(draw(random, rows))
            frame = pl.DataFrame({"x": values})
            for budget in planned:
                with dpf.Ledger(epsilon=1):
                    plan: Plan = frame.dp.preview.suggest_bounds("x", epsilon=EPSILON, planned={"epsilon": budget})
                yield _line(shape, values, budget, plan, exact_totals(plan, frame), runs)


def _line(shape: str, values: Floats, budget: float, plan: Plan, exact: Any, runs: int) -> Line:
    margin, held, errors, warned = _margin(budget, values.size), 0, [], []
    best, clipped = _best(values, margin)
    for run in range(runs):
        with insecure_bits(run):
            columns, found = suggested(plan, noisy_of(plan, dict(exact)))
        warned.append("problem" in found)
        lower, upper = np.array(columns["lower"]), np.array(columns["upper"])
        inside = np.searchsorted(values, upper, side="right") - np.searchsorted(values, lower, side="left")
        share = 1.0 - inside / values.size
        held += bool(np.all((columns["clipped_low"] <= share + 1e-12) & (share <= columns["clipped_high"] + 1e-12)))
        errors.append(float(lost(values, lower[:1], upper[:1])[0] + margin * (upper[0] - lower[0]) / 2.0))
    asked = [error for error, warns in zip(errors, warned, strict=True) if not warns] or errors
    ratio = float(np.quantile(asked, 0.9)) / best
    return Line(shape, values.size, budget, held, runs, ratio, clipped, sum(warned))


def main() -> int:
    """Print every line, and tell whether one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and runs")
    parser.add_argument("--only", default="", help="shapes whose names have this")
    asked = parser.parse_args()
    chosen = {name: draw for name, draw in SHAPES.items() if asked.only in name}
    more: dict[str, Any] = {"sizes": (10**3, 10**5), "runs": 10} if asked.quick else {}
    every = []
    for line in lines(shapes=chosen, **more):
        print(line, flush=True)
        every.append(line)
    return verdict(sum(line.fails for line in every), cases=len(every), releases=sum(line.runs for line in every))


if __name__ == "__main__":
    sys.exit(main())
