"""Coverage of the truth by the intervals of released numbers, over many equal public groups released at once.

`Case` describes the values and the release; `covered` releases it and counts, for each output column, the intervals
around the noisy value that miss. `too_many` is the test: it detects intervals that are too narrow, with a stated rate
of false alarms. Tests use few groups, ``benchmarks/intervals.py`` many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from scipy import special

import dpframe as dpf

BOUNDS = (-20.0, 100.0)
VALUES = {"lower": (-20.0, -20.0), "upper": (100.0, 100.0), "middle": (40.0, 40.0), "mixed": (-20.0, 100.0)}


def cubic(sensitivity: Any, loss: Any) -> Any:
    """Calibrate generalized Gaussian noise of p = 3 once: it takes a second and does not depend on the cells."""
    return _cubic(replace(sensitivity, cells=1), loss)


@cache
def _cubic(sensitivity: Any, loss: Any) -> Any:
    return dpf.generalized_gaussian(p=3)(sensitivity, loss)


PRICES: dict[str, dict[str, Any]] = {
    "Laplace": {"mechanism": "laplace"},
    "Gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "p = 3": {"mechanism": cubic, "delta": 1e-6},
}
ASKED = {
    "rows": dpf.count(),
    "present": dpf.count("x"),
    "total": dpf.sum("x", bounds=BOUNDS),
    "average": dpf.mean("x", bounds=BOUNDS),
}
ROWS, PEOPLE = None, dpf.PrivacyUnit(column="person", max_rows=2)
NARROWER = 0.98  # a factor on the intervals that a test must detect, given enough samples
EXACT_TO = 1e-6  # bounds are rounded to a grid of 2**-30 of their length


def chance_of_missing(misses: Any, samples: int, rate: float) -> Any:
    """Return the chance of at least this many misses, elementwise, if each of `samples` misses at this rate."""
    return special.bdtrc(misses - 1, samples, rate)


@dataclass(frozen=True)
class Case:
    """Equal public groups: their number, their values, the noise and its epsilon, and the privacy unit."""

    noise: str
    epsilon: float
    size: int
    values: str
    groups: int
    unit: dpf.PrivacyUnit | None = ROWS

    def frame(self) -> pl.DataFrame:
        """Return the rows of the groups; each person has two rows, in one group, so that all weights are 1."""
        low, high = VALUES[self.values]
        one = np.where(np.arange(self.size) % 2 == 0, low, high)
        group = np.repeat(np.arange(self.groups), self.size)
        within = np.tile(np.arange(self.size), self.groups)
        person = group * (self.size // 2 + 1) + within // 2
        return pl.DataFrame({"group": group, "x": np.tile(one, self.groups), "person": person})

    def released(self) -> pl.DataFrame:
        """Release all statistics of all groups in one call, without denoising."""
        by_group = self.frame().dp.group_by("group", keys=range(self.groups))
        return by_group.agg(ASKED, denoise=None, **self.price())

    def expected(self) -> Mapping[str, float]:
        """Return the errors that the plan of the call expects."""
        by_group = self.frame().dp.preview.group_by("group", keys=range(self.groups))
        return by_group.agg(ASKED, size=self.size, **self.price()).error

    def price(self) -> dict[str, Any]:
        """Return the epsilon, the ledger and the noise of the call."""
        ledger = dpf.Ledger(epsilon=1e6, delta=0.5, unit=self.unit, accounting="basic")
        return {"epsilon": self.epsilon, "ledger": ledger, **PRICES[self.noise]}

    def truth(self) -> dict[str, float]:
        """Return the exact answers in each group; the mean of no values is NaN."""
        low, high = VALUES[self.values]
        total = (self.size + 1) // 2 * low + self.size // 2 * high
        mean = total / self.size if self.size else float("nan")
        return {"rows": self.size, "present": self.size, "total": total, "average": mean}

    def __str__(self) -> str:
        unit = "rows" if self.unit is None else "people"
        return f"{self.noise}, epsilon {self.epsilon:g}, {self.size} values, {self.values}, {unit}"


@dataclass(frozen=True)
class Covered:
    """The number of intervals of a column, and how many of them miss the truth."""

    case: str
    column: str
    samples: int
    misses: int

    @property
    def rate(self) -> float:
        return 1.0 - self.misses / self.samples

    def chance(self, confidence: float = 0.95) -> float:
        """Return the chance of at least this many misses if intervals cover with this confidence."""
        return float(chance_of_missing(self.misses, self.samples, 1.0 - confidence))


def covered(case: Case, factor: float = 1.0) -> list[Covered]:
    """Release the case, and count the misses by output column; `factor` shortens the intervals."""
    found = case.released()
    truth = case.truth()
    return [missed(str(case), name, found, truth[name], factor) for name in ASKED if truth[name] == truth[name]]


def missed(case: str, name: str, found: Any, truth: Any, factor: float = 1.0, noisy: str = "") -> Covered:
    """Count the intervals of a released column that miss; `noisy` is the suffix of the unbiased values."""
    error = found[f"{name}_error"].to_numpy() * factor
    slack = EXACT_TO * np.maximum(np.abs(truth), 1.0)  # for the grid, and for sums in floating point
    outside = np.abs(found[name + noisy].to_numpy() - truth) > error + slack
    return Covered(case, name, len(found), int(outside.sum()))


def too_many(found: Covered, alarm: float, confidence: float = 0.95) -> bool:
    """Return whether this many misses are less likely than `alarm` for intervals that cover with this confidence."""
    return found.chance(confidence) < alarm


def worst(found: list[Covered]) -> Mapping[str, Covered]:
    """Return the case of each column whose misses are the least likely ones for intervals that cover 95%."""
    least: dict[str, Covered] = {}
    for one in found:
        if one.column not in least or one.chance() < least[one.column].chance():
            least[one.column] = one
    return least
