"""Test suggested bounds on data of known shapes: whether their intervals hold, and how close they are to the best.

    python -m assurance.suggested_bounds              # all shapes and sizes, in some minutes
    python -m assurance.suggested_bounds --quick      # a share of them

Shares: for every candidate, the share of values that its bounds clip must lie between ``clipped_low`` and
``clipped_high``; this must hold for all candidates of a run at once in at least 95% of runs. Errors: the clipping loss
(the mean change of a value by clipping) plus the margin of error of the mean's noise, for the suggested bounds and for
the best bounds in hindsight. The promise is at most 2 times the best error. It holds where the best bounds clip enough
rows to be visible in the noise, 20 / epsilon, and the release does not warn that it was too noisy. The program exits
with 1 if either fails.
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

EPSILON = 0.05  # epsilon of the suggestion
TIMES, VISIBLE = 2.0, 20.0  # limit relative to the best error; rows times epsilon that are visible in the noise
PLANNED = (0.5, 0.05, 0.005, 0.001)  # epsilons of the planned mean
SIZES = (10**3, 10**4, 10**5, 10**6)
RUNS = 40
ALARM = 1e-6  # false alarm rate of the shares of a line
TRIED = 400  # candidate ends of the best bounds in hindsight


def _incomes(random: np.random.Generator, rows: int) -> Floats:
    """Draw incomes as in a survey: many are 0, most moderate, a few large, in round numbers."""
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
    """The results for a shape of some size at some planned budget."""

    shape: str
    rows: int
    planned: float
    held: int  # runs in which all intervals hold
    runs: int
    ratio: float  # error over the best error, the 90th percentile of runs that do not warn, or of all if each warns
    clipped: int  # rows that the best bounds clip
    warned: int  # runs that recommend nothing

    @property
    def must_be_near(self) -> bool:
        """True if the best bounds clip enough rows to be visible, and some run recommends bounds."""
        return self.clipped >= VISIBLE / EPSILON and self.warned < self.runs

    @property
    def fails(self) -> bool:
        """True if too few intervals hold, or the error is too large."""
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
    """Return the mean change of a value by clipping, for each pair of bounds; `values` are sorted."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    below, above = np.searchsorted(values, lower, side="left"), np.searchsorted(values, upper, side="right")
    low = lower * below - running[below]
    high = (running[-1] - running[above]) - upper * (values.size - above)
    return np.asarray((low + high) / values.size)


def _best(values: Floats, margin: float) -> tuple[float, int]:
    """Return the least error of any bounds, and the number of rows that these clip."""
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
    """Return the margin of error of a mean of `rows` values within bounds of length 2."""
    plan = pl.DataFrame({"x": [0.0]}).dp.preview.mean("x", bounds=(-1, 1), epsilon=planned, size=rows)
    return float(plan.error["x_mean"])


def lines(*, shapes: Any = SHAPES, sizes: Any = SIZES, planned: Any = PLANNED, runs: int = RUNS) -> Iterator[Line]:
    """Yield a line for every shape, size and planned budget."""
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
    """Print every line, and return 1 if one fails."""
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
