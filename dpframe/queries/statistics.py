"""Totals, and the statistics (count, sum, mean) that are read off them once they are noisy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_column_name, shown
from dpframe.exact import exactly, is_number, nearest

Floats = NDArray[np.float64]

LARGEST_EXACT = 2.0**53  # every integer up to here is a float of its own
SMALLEST_BOUND = 2.0**-900  # below, grid steps would be subnormal
STEP_BITS = 30  # a bound is between 2**29 and 2**30 grid steps long
WEIGHT_BITS = 20  # counts of weighted units live on a grid of 2**-20
CONFIDENCE = 0.95  # of every error shown
BOUNDS_EXAMPLE = "Write for instance bounds=(0, 100)."


class Noise(Protocol):
    """What a statistic must know of the noise in its numbers."""

    @property
    def variance(self) -> float: ...
    def interval(self, confidence: float) -> float: ...


@dataclass(frozen=True)
class Measured:
    """The noisy totals of one Total in the user's units, one per cell, and the law of their noise."""

    values: Floats
    noise: Noise


@dataclass(frozen=True)
class Total:
    """One clipped sum over cells, or a count where there are no bounds, as integers on a declared grid.

    The grid of a sum is the power of two that makes the larger bound 2**29 to 2**30 steps long. The bounds are
    rounded to it, and everything else (clipping, sensitivity) is taken from the rounded ones.
    """

    column: str | None
    bounds: tuple[float, float] | None = None
    centred: bool = False
    units: bool = False  # whether units are counted, each once, and not their rows
    by: tuple[str, ...] | None = None  # of subtotals: the columns that they are kept apart by; None for the cells

    def over(self, by: tuple[str, ...] | None) -> Total:
        """The same sum, over the groups of cells that agree in these columns."""
        return replace(self, by=by)

    def grid(self, weighted: bool) -> float:
        """The length of one integer step in the user's units."""
        if self.bounds is not None:
            fraction, exponent = math.frexp(max(abs(bound) for bound in self.bounds))
            return math.ldexp(1.0, exponent - STEP_BITS - (fraction == 0.5))
        return 2.0**-WEIGHT_BITS if weighted else 1.0

    @property
    def steps(self) -> tuple[int, int]:
        """The bounds in grid steps; (0, 1) for a count."""
        if self.bounds is None:
            return (0, 1)
        grid = self.grid(weighted=False)
        return (round(self.bounds[0] / grid), round(self.bounds[1] / grid))

    @property
    def midpoint(self) -> int:
        """What a centred sum takes off each present value, in steps."""
        return (self.steps[0] + self.steps[1]) // 2 if self.centred else 0

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest that one row may add, in steps; 0 among them, for its value may be missing."""
        lower, upper = (step - self.midpoint for step in self.steps)
        return (min(lower, 0), max(upper, 0))

    @property
    def nonnegative(self) -> bool:
        """Whether no total can be below zero; public, since it follows from the bounds."""
        return self.reach[0] == 0

    def describe(self) -> str:
        """The Total in words: what a plan and the provenance call it."""
        over = "" if self.by is None else f" by {', '.join(self.by)}" if self.by else ", all together"
        if self.bounds is None:
            if self.units:
                return "units"
            return ("rows" if self.column is None else f"present values of {self.column}") + over
        return f"{'centred ' if self.centred else ''}sum of {self.column}{over}"


@dataclass(frozen=True)
class Count:
    """How many rows; or, of a column, how many values that are present. Made by `dpframe.count`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.count("age").default_name
    'count'
    """

    column: str | None = None
    verb: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        if self.column is not None:
            check_column(self.column)

    @property
    def default_name(self) -> str:
        """The name of its output column where `agg` is given none."""
        return "count"

    def totals(self) -> tuple[Total, ...]:
        """What has to be measured for it."""
        return (Total(self.column),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals."""
        return _plain(measured[self.totals()[0]])

    def __str__(self) -> str:
        return f"count({self.column or ''})"


@dataclass(frozen=True)
class _Bounded:
    """What a sum and a mean share: a column whose values are clipped to bounds."""

    column: str
    bounds: tuple[float, float]
    verb: ClassVar[str]

    def __post_init__(self) -> None:
        check_column(self.column)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))

    @property
    def default_name(self) -> str:
        """The name of its output column where `agg` is given none."""
        return f"{self.column}_{self.verb}"

    def __str__(self) -> str:
        return f"{self.verb}({self.column}) in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@dataclass(frozen=True)
class Sum(_Bounded):
    """The sum of a column's values, each clipped to the bounds. Made by `dpframe.sum`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.sum("cost", bounds=(0, 5_000)).default_name
    'cost_sum'
    """

    verb: ClassVar[str] = "sum"

    def totals(self) -> tuple[Total, ...]:
        """What has to be measured for it."""
        return (Total(self.column, self.bounds),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals."""
        return _plain(measured[self.totals()[0]])


@dataclass(frozen=True)
class Mean(_Bounded):
    """The mean of a column's values, each clipped to the bounds: a noisy centred sum over a noisy count.

    Made by `dpframe.mean`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.mean("age", bounds=(0, 120)).default_name
    'age_mean'
    """

    verb: ClassVar[str] = "mean"

    def totals(self) -> tuple[Total, ...]:
        """What has to be measured for it."""
        return (Total(self.column, self.bounds, centred=True), Total(self.column))

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The quotient, clipped to the bounds, and its error by Fieller's theorem from the noisy numbers alone.

        The error is the farther end of the 95% Fieller set {m : (s - m n)^2 <= z^2 (var s + m^2 var n)} (Fieller
        1954), and at most the distance to the farther bound, which no mean is beyond. (Half the range is too little: an
        estimate at one bound may be off by the whole.) Where the noisy count is below 1 the midpoint is returned, with
        that distance.
        """
        centred, count = self.totals()
        total, present = measured[centred], measured[count]
        lower, upper = self.bounds
        middle = centred.midpoint * centred.grid(weighted=False)
        enough = present.values >= 1.0
        divisor = np.where(enough, present.values, 1.0)
        offset = np.where(enough, total.values / divisor, 0.0)
        values = np.clip(middle + offset, lower, upper)
        farther = np.maximum(values - lower, upper - values)
        return values, fieller(offset, divisor, total.noise, present.noise, enough, farther)

    def expected_error(
        self, sum_noise: Noise, count_noise: Noise, size: float, confidence: float = CONFIDENCE
    ) -> float:
        """The error to expect for a group of `size` values that lie around the middle of the bounds.

        It is at most the whole range: in a group too small to tell, the estimate may sit at the wrong bound.
        """
        zero, count = np.zeros(1), np.full(1, float(size))
        enough, whole = np.ones(1, dtype=bool), np.full(1, self.bounds[1] - self.bounds[0])
        return float(fieller(zero, count, sum_noise, count_noise, enough, whole, confidence)[0])


Statistic = Count | Sum | Mean


def fieller(
    offset: Floats,
    count: Floats,
    sum_noise: Noise,
    count_noise: Noise,
    enough: NDArray[np.bool_],
    largest: Floats,
    confidence: float = CONFIDENCE,
) -> Floats:
    """Half-width around `offset` of the Fieller interval of a quotient with independent noises, at most `largest`.

    z is the larger of the two noises' own half-widths in standard deviations, so that noise with heavier tails
    than the Gaussian is not treated as Gaussian.
    """
    noises = [noise for noise in (sum_noise, count_noise) if noise.variance > 0.0]  # at huge epsilon there is none
    z_squared = max((noise.interval(confidence) ** 2 / noise.variance for noise in noises), default=0.0)
    curvature = z_squared * count_noise.variance / count**2
    bounded = enough & (curvature < 1.0)
    rest = np.where(bounded, 1.0 - curvature, 1.0)
    spread = z_squared * (sum_noise.variance * rest + offset**2 * count_noise.variance)
    half = (np.sqrt(spread) / count + np.abs(offset) * curvature) / rest
    return np.where(bounded, np.minimum(half, largest), largest)


def _plain(measured: Measured) -> tuple[Floats, Floats]:
    half_width = measured.noise.interval(CONFIDENCE)
    return measured.values, np.full(measured.values.shape, half_width)


def count(column: str | None = None) -> Count:
    """Ask for the number of rows, or of the values of a column that are present.

    Parameters
    ----------
    column : str, optional
        Count the values of this column that are neither null nor NaN; without it, count rows.

    Returns
    -------
    Count
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    InvalidType
        If `column` is not a string.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.count(), dpf.count("age"))
    count() count(age)
    """
    return Count(column)


def sum(column: str, bounds: tuple[float, float] | None = None) -> Sum:
    """Ask for the sum of a column, each value clipped to the bounds.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN add nothing; infinities are clipped like any value.
    bounds : tuple of two numbers
        The lower and the upper bound, in the units of the column; within +-2**53.

    Returns
    -------
    Sum
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    MissingArgument
        If `bounds` is left out.
    InvalidArgument
        If the bounds are not two finite numbers with lower < upper.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", bounds=(0, 5_000)))
    sum(cost) in [0, 5000]
    """
    return Sum(column, bounds)  # type: ignore[arg-type]  # None is refused there, in words


def mean(column: str, bounds: tuple[float, float] | None = None) -> Mean:
    """Ask for the mean of a column, each value clipped to the bounds.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN are left out of numerator and denominator.
    bounds : tuple of two numbers
        The lower and the upper bound, in the units of the column; within +-2**53.

    Returns
    -------
    Mean
        A statistic for ``.dp.group_by(...).agg(...)``. It measures two vectors: a centred sum and a count.

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
    return Mean(column, bounds)  # type: ignore[arg-type]  # None is refused there, in words


def check_column(column: object) -> None:
    """Refuse what is not the name of a column."""
    if not isinstance(column, str):
        raise InvalidType(
            f"column must be the name of a column (a string), not {shown(column)}. "
            "Columns named otherwise can be renamed: df.rename(columns=str)."
        )
    checked_column_name("column", column)


def checked_bounds(bounds: object) -> tuple[float, float]:
    """Two finite numbers with lower < upper, within +-2**53, that the grid can tell apart."""
    if bounds is None:
        raise MissingArgument(f"bounds must be given: they are never taken from the data. {BOUNDS_EXAMPLE}")
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InvalidType(f"bounds must be a pair (lower, upper), not {shown(bounds)}. {BOUNDS_EXAMPLE}")
    lower, upper = (_bound(bound) for bound in bounds)
    if not lower < upper:
        raise InvalidArgument(f"bounds must be two numbers with lower < upper, not {shown(bounds)}. {BOUNDS_EXAMPLE}")
    if max(abs(lower), abs(upper)) < SMALLEST_BOUND:
        raise InvalidArgument(f"bounds must reach beyond 2**-900, unlike {shown(bounds)}. Multiply the column first.")
    steps = Total("", (lower, upper)).steps
    if steps[0] == steps[1]:
        raise InvalidArgument(
            f"bounds must differ by more than 2**-30 of their size, unlike {shown(bounds)}. Subtract a constant first."
        )
    return lower, upper


def checked_place(argument: str, value: object, way_out: str) -> float:
    """A finite number within +-2**53, where integers and floats compare alike, as the float nearest to it."""
    rule = "finite and within +-2**53"
    found = exactly(argument, value, rule, f" {way_out}", typed=False)
    if abs(found) > LARGEST_EXACT:  # exactly: 2**53 + 1 rounds to 2**53
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}. {way_out}")
    return nearest(found)


def _bound(bound: Any) -> float:
    if not is_number(bound):
        raise InvalidType(f"bounds must be two numbers, not {shown(bound, kind=True)}. {BOUNDS_EXAMPLE}")
    return checked_place("bounds", bound, BOUNDS_EXAMPLE)
