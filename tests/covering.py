"""How often the intervals of released numbers cover the truth, over many equal public groups released at once.

`Case` says what is asked of which values; `covered` releases it and counts, for each output column, how many of the
intervals around the noisy value miss. `too_many` is the test: it fails for too narrow intervals with a stated rate of
false alarms. Tests use few groups, ``benchmarks/intervals.py`` many.
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
    """Generalized Gaussian noise of p = 3; calibrated once, for it takes a second and does not depend on the cells."""
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
NARROWER = 0.98  # an interval that must be caught where there are samples enough
EXACT_TO = 1e-6  # bounds are rounded to a grid of 2**-30 of their length


def chance_of_missing(misses: Any, samples: int, rate: float) -> Any:
    """How likely so many misses or more are, of one number or of each, where one of `samples` misses with this rate."""
    return special.bdtrc(misses - 1, samples, rate)


@dataclass(frozen=True)
class Case:
    """Equal public groups: how many, of how many values each, where these lie, what noise at what price, for whom."""

    noise: str
    epsilon: float
    size: int
    values: str
    groups: int
    unit: dpf.PrivacyUnit | None = ROWS

    def frame(self) -> pl.DataFrame:
        """The groups' rows; a person has two of them, in one group, so that all weights are 1."""
        low, high = VALUES[self.values]
        one = np.where(np.arange(self.size) % 2 == 0, low, high)
        group = np.repeat(np.arange(self.groups), self.size)
        within = np.tile(np.arange(self.size), self.groups)
        person = group * (self.size // 2 + 1) + within // 2
        return pl.DataFrame({"group": group, "x": np.tile(one, self.groups), "person": person})

    def released(self) -> pl.DataFrame:
        """All statistics of all groups in one call, as they are without denoising."""
        by_group = self.frame().dp.group_by("group", keys=range(self.groups))
        return by_group.agg(ASKED, denoise=None, **self.price())

    def expected(self) -> Mapping[str, float]:
        """The errors that the plan of the call expects."""
        by_group = self.frame().dp.preview.group_by("group", keys=range(self.groups))
        return by_group.agg(ASKED, size=self.size, **self.price()).error

    def price(self) -> dict[str, Any]:
        """How the call is paid for."""
        ledger = dpf.Ledger(epsilon=1e6, delta=0.5, unit=self.unit, accounting="basic")
        return {"epsilon": self.epsilon, "ledger": ledger, **PRICES[self.noise]}

    def truth(self) -> dict[str, float]:
        """The exact answers in each group; the mean of none is any."""
        low, high = VALUES[self.values]
        total = (self.size + 1) // 2 * low + self.size // 2 * high
        mean = total / self.size if self.size else float("nan")
        return {"rows": self.size, "present": self.size, "total": total, "average": mean}

    def __str__(self) -> str:
        unit = "rows" if self.unit is None else "people"
        return f"{self.noise}, epsilon {self.epsilon:g}, {self.size} values, {self.values}, {unit}"


@dataclass(frozen=True)
class Covered:
    """Of how many intervals how many miss the truth."""

    case: str
    column: str
    samples: int
    misses: int

    @property
    def rate(self) -> float:
        return 1.0 - self.misses / self.samples

    def chance(self, confidence: float = 0.95) -> float:
        """How likely so many misses or more are, where intervals cover with this confidence."""
        return float(chance_of_missing(self.misses, self.samples, 1.0 - confidence))


def covered(case: Case, factor: float = 1.0) -> list[Covered]:
    """Release the case, and count the misses by output column; `factor` shortens the intervals."""
    found = case.released()
    truth = case.truth()
    return [missed(str(case), name, found, truth[name], factor) for name in ASKED if truth[name] == truth[name]]


def missed(case: str, name: str, found: Any, truth: Any, factor: float = 1.0, noisy: str = "") -> Covered:
    """How many intervals of a released column miss; `noisy` is the ending of the unbiased values."""
    error = found[f"{name}_error"].to_numpy() * factor
    slack = EXACT_TO * np.maximum(np.abs(truth), 1.0)  # of the grid, and of sums in floating point
    outside = np.abs(found[name + noisy].to_numpy() - truth) > error + slack
    return Covered(case, name, len(found), int(outside.sum()))


def too_many(found: Covered, alarm: float, confidence: float = 0.95) -> bool:
    """Whether so many misses are less likely than `alarm` for intervals that cover with this confidence."""
    return found.chance(confidence) < alarm


def worst(found: list[Covered]) -> Mapping[str, Covered]:
    """The case of each column whose misses are the least likely ones of intervals that cover 95%."""
    least: dict[str, Covered] = {}
    for one in found:
        if one.column not in least or one.chance() < least[one.column].chance():
            least[one.column] = one
    return least
