"""Statistics of rows with weights, as in surveys: ``weight=`` of count, sum, mean and proportion.

A weight is a number of its row, clipped to public bounds of at least 0. A row with a missing weight is left out, like a
row with a missing value. So what a row adds is a function of its own clipped values, and its largest size follows from
both bounds (``docs/assurance/privacy.md``, "Weights").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import InvalidArgument, MissingArgument, shown
from dpframe.queries.keys import KeyAxis
from dpframe.queries.limits import SMALLEST_BOUND, check_column, checked_bounds, grid_steps, step_length
from dpframe.queries.moments import Reading, two_sided_mean
from dpframe.queries.quotients import sum_interval
from dpframe.queries.row_functions import Bounds, Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Clipped, Statistic, check_size, value_facts
from dpframe.queries.total import FunctionTotal, Measured, Noise, SumTotal, Total, VectorTotal
from dpframe.queries.vectors import weighed_values, weighed_ways
from dpframe.queries.where import matched, plain_name, under_conditions

EXAMPLE = 'Write for instance weight="w", weight_bounds=(0, 5).'


def checked_weight(weight: Any, weight_bounds: Any, where: Mapping[str, Any] | None) -> tuple[str, Bounds]:
    """Return the column of weights, under the conditions of a statistic, and their bounds."""
    if weight is None:
        raise MissingArgument(f"weight must be given with weight_bounds: the column of the weights. {EXAMPLE}")
    check_column(weight)
    if weight_bounds is None:
        raise MissingArgument(f"weight_bounds must be given: they are never taken from the data. {EXAMPLE}")
    bounds = checked_bounds(weight_bounds, "weight_bounds", EXAMPLE)
    if bounds[0] < 0.0:
        raise InvalidArgument(f"weight_bounds must be at least 0, not {shown(weight_bounds)}. {EXAMPLE}")
    return under_conditions(weight, where), bounds


@dataclass(frozen=True, repr=False)
class Weighted(Clipped):
    """The shared parts of weighted statistics: a column of weights, and their bounds."""

    weight: str
    weight_bounds: Bounds

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight == self.column:
            raise InvalidArgument(
                f"weight must be another column than {shown(self.column)}. Copy the column under another name."
            )

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        return {**(super().facts() or {}), "weight": self.weight, "weight_bounds": list(self.weight_bounds)}

    def __str__(self) -> str:
        return super().__str__() + _with(self.weight, self.weight_bounds)


@dataclass(frozen=True, repr=False)
class WeightedCount(Statistic):
    """The sum of the weights of rows. Made by `dpframe.count` with ``weight=``.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.count(weight="w", weight_bounds=(0, 5)))
    count() with weight w in [0, 5]
    """

    verb: ClassVar[str] = "count"

    weight: str
    weight_bounds: Bounds

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return self.verb

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (SumTotal(self.weight, self.weight_bounds),)

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        return {"verb": self.verb, "column": None, "weight": self.weight, "weight_bounds": list(self.weight_bounds)}

    def __str__(self) -> str:
        where = self.weight.removeprefix(plain_name(self.weight)).lstrip()
        return f"count({where})" + _with(self.weight, self.weight_bounds)


@dataclass(frozen=True, repr=False)
class WeightedSum(Weighted):
    """The sum of products of values and weights, both clipped.

    Made by `dpframe.sum` with ``weight=``. With bounds (L, U) and weights up to W, a row adds at most W max(|L|, |U|).

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", bounds=(0, 5_000), weight="w", weight_bounds=(0, 5)))
    sum(cost) in [0, 5000] with weight w in [0, 5]
    """

    verb: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        largest = max(map(abs, self.bounds)) * self.weight_bounds[1]
        if largest < SMALLEST_BOUND:
            raise InvalidArgument(
                f"weight_bounds times bounds must reach beyond 2**-400, unlike {shown(largest)}. "
                "Multiply a column first."
            )

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (FunctionTotal(weighed_values(self.column, self.bounds, self.weight, self.weight_bounds)),)


@dataclass(frozen=True, repr=False)
class WeightedMean(Weighted):
    """The sum of products of values and weights over the sum of weights.

    Made by `dpframe.mean` with ``weight=``. With t the distance of a value from its lower bound, in parts of the range,
    it measures the sums of w t and of w (1 - t): one vector, to which a row adds its weight in all. The lower bound
    does not matter for the noise, and no half of the budget goes to the divisor.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.mean("age", bounds=(0, 120), weight="w", weight_bounds=(0, 5)))
    mean(age) in [0, 120] with weight w in [0, 5]
    """

    verb: ClassVar[str] = "mean"
    tells_totals: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (VectorTotal(weighed_ways(self.column, self.bounds, self.weight, self.weight_bounds)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the quotient and its error by Fieller's theorem, never outside the bounds.

        Both are computed from the noisy numbers alone. If the noisy sum of weights is below the deviation of its noise,
        the answer is the middle.
        """
        sums = measured[self.totals()[0]]
        above, below = sums.values.reshape(-1, 2).T
        reading = self._read(above, below, sums.noise, CONFIDENCE)
        return np.clip(reading.values, *self.bounds), reading.half_widths

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values in the middle of their bounds.

        Their weights are in the middle of theirs.
        """
        half = np.array([size * sum(self.weight_bounds) / 4.0])
        return float(self._read(half, half, noises[0], confidence).half_widths[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without `size`, or of half the range of the bounds or more."""
        check_size(size, f"a weighted {self.verb} ({name})")
        half = (self.bounds[1] - self.bounds[0]) / 2
        if target >= half:
            raise InvalidArgument(
                f"within must be below half the range of a mean's bounds, here {half:g}, not {target:g}: their middle "
                f"is never off by more. Write a smaller error for {name}."
            )

    def _read(self, above: Floats, below: Floats, noise: Noise, confidence: float) -> Reading:
        """Return the mean from weighted distances, in ranges, with the rounded bounds to which values were clipped."""
        lower, upper = (step * step_length(self.bounds) for step in grid_steps(self.bounds))
        length = upper - lower
        fewest = max(math.sqrt(2.0 * noise.variance), step_length(self.weight_bounds))
        half = sum_interval(noise, confidence) * length
        return two_sided_mean(above * length, below * length, (lower, upper), half, fewest=fewest)


@dataclass(frozen=True, repr=False)
class WeightedProportion(WeightedMean):
    """The weighted share of values that are true, or one declared value.

    Made by `dpframe.proportion` with ``weight=``.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.proportion("smoker", weight="w", weight_bounds=(0, 5)))
    proportion(smoker) with weight w in [0, 5]
    """

    verb: ClassVar[str] = "proportion"

    value: Any = None

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        return {name: value for name, value in super().written().items() if name != "bounds"}

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        if self.value is None:
            return super().totals()
        column = matched(self.column, KeyAxis((plain_name(self.column),), ((self.value,),), "value"))
        return replace(self, column=column, value=None).totals()

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"a weighted proportion ({name})")

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        return {name: fact for name, fact in super().facts().items() if name != "bounds"} | value_facts(self.value)

    def __str__(self) -> str:
        name, is_value = plain_name(self.column), "" if self.value is None else f" = {shown(self.value)}"
        of = f"{self.verb}({name}{is_value}{self.column.removeprefix(name)})"
        return of + _with(self.weight, self.weight_bounds)


def _with(weight: str, bounds: Bounds) -> str:
    return f" with weight {plain_name(weight)} in [{bounds[0]:g}, {bounds[1]:g}]"
