"""The mean of clipped values: a noisy centred sum over a noisy count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import are_by_group, grid_steps, step_length
from dpframe.queries.moments import Reading, two_sided_mean
from dpframe.queries.quotients import fieller, quotient_half_widths, sum_interval
from dpframe.queries.row_functions import Floats, centred_squares
from dpframe.queries.statistics.by_group import MeanByGroup, checked_groups
from dpframe.queries.statistics.statistic import CONFIDENCE, Squaring, Statistic, check_size
from dpframe.queries.statistics.weighted import WeightedMean, checked_weight
from dpframe.queries.total import FunctionTotal, Measured, Noise, RowsTotal, SumTotal, Total, VectorTotal
from dpframe.queries.vectors import bernstein, two_sided
from dpframe.queries.where import Conditional, under_conditions

OF_WAYS = 1.0, 1.0, 2.0  # the `variances` of `two_sided_mean`, for noise of variance 1
OF_SQUARES = 1.25, 1.5, 3.0  # the same if A and B are made of three numbers


@dataclass(frozen=True, repr=False)
class Mean(Squaring):
    """The mean of a column's values, clipped to the bounds. Made by `dpframe.mean`.

    Under Gaussian noise, it is a noisy centered sum over a noisy count. Under pure noise, it measures the sums of the
    distances of all values from the lower and from the upper bound: one vector that takes the whole cost.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.mean("age", bounds=(0, 120)))
    mean(age) in [0, 120]
    """

    verb: ClassVar[str] = "mean"
    tells_totals: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    missing: Literal["drop", "midpoint"] = "drop"
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same
    shared: bool = field(default=False, repr=False)  # whether it is computed from what a variance measures
    squares: bool = field(default=False, repr=False)  # whether squares are measured too, for a population

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_one_of(self.missing, ("drop", "midpoint")):
            raise InvalidArgument(
                f"missing must be 'drop' or 'midpoint', not {shown(self.missing)}: missing values are left out, or "
                "count as the middle of the bounds."
            )
        if self.missing == "midpoint" and isinstance(self.column, Conditional):
            raise InvalidArgument(
                "missing must be 'drop' with where=: rows that are left out would count as the middle. Leave it out."
            )

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        # sharing is decided anew; with squares, it measures what a variance does, and so squares too
        return replace(self, pure=pure, shared=pure and self.squares)

    def of_population(self) -> Self:
        """Return the same with squares, which give the variance of a sample's mean."""
        return replace(self, squares=True)

    def squared(self) -> Total | None:
        """Return the Total of squares; None for pure noise, whose own Total gives the squares."""
        return FunctionTotal(centred_squares(self.column, self.bounds)) if self.squares and not self.pure else None

    def answering(self) -> tuple[Total, ...]:
        """Return the Totals that the answer is read off.

        A missing value adds nothing to a centered sum, and neither does the middle of the bounds.
        """
        if self.shared:
            return (VectorTotal(bernstein(self.column, self.bounds)),)
        if self.pure:
            return (VectorTotal(two_sided(self.column, self.bounds, everyone=self.missing == "midpoint")),)
        counted = RowsTotal(self.column) if self.missing == "drop" else RowsTotal()
        return (SumTotal(self.column, self.bounds, centred=True), counted)

    def beside(self, totals: Sequence[Total]) -> Statistic:
        """Read the mean off the vector of a variance of the same values.

        It does so if the call measures such a vector for pure noise.
        """
        if (
            self.shared
            or not self.pure
            or self.missing != "drop"
            or VectorTotal(bernstein(self.column, self.bounds)) not in totals
        ):
            return self
        return replace(self, shared=True)

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        facts = super().facts() or {}
        return facts if self.missing == "drop" else facts | {"missing": self.missing}

    def __str__(self) -> str:
        return super().__str__() + ("" if self.missing == "drop" else ", missing values as the middle")

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the quotient, clipped to the bounds, and its error from noisy numbers alone.

        For pure noise, it is `two_sided_mean`. Otherwise, the error is the farther end of the 95% Fieller set
        {m : (s - m n)^2 <= z^2 (var s + m^2 var n)} (Fieller 1954). It is at most the distance to the farther bound,
        which no mean exceeds. (Half the range is too little: an estimate at one bound may be off by the whole range.)
        If the noisy count is below 1, the answer is the midpoint, with that distance.
        """
        if self.pure:
            sums = measured[self.totals()[0]]
            reading = self._two_sided(sums.values, sums.noise, CONFIDENCE)
            return reading.values, reading.half_widths
        centred, count = self.answering()
        total, present = measured[centred], measured[count]
        lower, upper = self.bounds
        middle = sum(grid_steps(self.bounds)) // 2 * step_length(self.bounds)  # as for a centered sum
        enough = present.values >= 1.0
        divisor = np.where(enough, present.values, 1.0)
        offset = np.where(enough, total.values / divisor, 0.0)
        values = np.clip(middle + offset, lower, upper)
        farther = np.maximum(values - lower, upper - values)
        return values, fieller(offset, divisor, total.noise, present.noise, enough, farther, CONFIDENCE)

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values around the middle of the bounds.

        It is at most the whole range: in a very small group, the estimate may be at the wrong bound.
        """
        zero, count = np.zeros(1), np.full(1, float(size))
        enough, whole = np.ones(1, dtype=bool), np.full(1, self.bounds[1] - self.bounds[0])
        if self.pure:
            squared = sum_interval(noises[0], confidence) ** 2
            top, both, bottom = OF_SQUARES if self.shared else OF_WAYS
            squares = top * squared, both * squared, bottom * squared
            return float((whole * quotient_half_widths(zero + 0.5, count / 2.0, count, squares, 1.0))[0])
        sum_noise, count_noise, *_ = noises
        return float(fieller(zero, count, sum_noise, count_noise, enough, whole, confidence)[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without `size`, or of half the range of the bounds or more."""
        check_size(size, f"a mean ({name})")
        half = (self.bounds[1] - self.bounds[0]) / 2
        if target >= half:
            raise InvalidArgument(
                f"within must be below half the range of a mean's bounds, here {half:g}, not {target:g}: their middle "
                f"is never off by more. Write a smaller error for {name}."
            )

    def _two_sided(self, values: Floats, noise: Noise, confidence: float) -> Reading:
        """Return the mean from both distances, in ranges, with the rounded bounds to which values were clipped.

        With t the place of a value between its bounds, half of 2 t (1 - t) and all of t^2 add up to t.
        """
        if self.shared:
            low, middle, high = values.reshape(-1, 3).T
            above, below = high + middle / 2.0, low + middle / 2.0
        else:
            above, below = values.reshape(-1, 2).T
        lower, upper = (step * step_length(self.bounds) for step in grid_steps(self.bounds))
        length = upper - lower
        half, variances = sum_interval(noise, confidence) * length, OF_SQUARES if self.shared else OF_WAYS
        reading = two_sided_mean(above * length, below * length, (lower, upper), half, variances)
        return Reading(np.clip(reading.values, *self.bounds), reading.half_widths)


@trimmed
def mean(
    column: str,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    *,
    missing: Literal["drop", "midpoint"] = "drop",
    where: Mapping[str, Any] | None = None,
    weight: str | None = None,
    weight_bounds: tuple[float, float] | None = None,
) -> Mean | MeanByGroup | WeightedMean:
    """Average a column in `agg`, with each value clipped to `bounds`.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN are left out of numerator and denominator.
    bounds : tuple of two numbers, or dict of such by key
        The lower and the upper bound, in the units of the column; within +-2**53. After ``group_by`` of one column of
        declared keys, a dict names the bounds of every key: ``{"A": (0, 10), "B": (0, 100)}``. The noise of each group
        is then in proportion to its own bounds. Not with `missing`, `weight` or ``population=True``.
    missing : {"drop", "midpoint"}
        Leave missing values out, or count them as the middle of the bounds. With "midpoint", the mean is over all rows,
        and shares the count of rows with the other statistics of the call.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same. Not with `missing`.
    weight, weight_bounds : str and tuple of two numbers, optional
        A column of weights, as in surveys, and their bounds, at least 0: the mean is the sum of weighted values over
        that of the weights. Weights are clipped to the bounds, and rows without a weight are left out. Not with
        `missing`.

    Returns
    -------
    Mean, MeanByGroup or WeightedMean
        A statistic for ``.dp.group_by(...).agg(...)``. Under Gaussian noise, it measures two vectors: a centered sum
        and a count. Under pure noise, it measures one, whose count is also that of ``dpf.count(column)`` in the same
        call.

    Raises
    ------
    MissingArgument
        If `bounds` is left out.
    InvalidArgument
        If the bounds are not two finite numbers with lower < upper.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.mean("age", bounds=(0, 120)))
    mean(age) in [0, 120]
    """
    if are_by_group(bounds):
        other = None if is_one_of(missing, ("drop",)) else missing
        return MeanByGroup(*checked_groups(column, bounds, where, weight=weight, missing=other))
    if not (weight is None and weight_bounds is None):
        if not is_one_of(missing, ("drop",)):
            raise InvalidArgument(
                "missing must be 'drop' with weight: a row without a value or a weight is left out. Leave it out."
            )
        weights = checked_weight(weight, weight_bounds, where)
        return WeightedMean(under_conditions(column, where), bounds, *weights)  # type: ignore[arg-type]  # as below
    return Mean(under_conditions(column, where), bounds, missing)  # type: ignore[arg-type]  # None is refused there
