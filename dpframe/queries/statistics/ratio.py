"""The ratio of two columns' noisy sums; and the share of a group's rows in each bin, from noisy counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import check_column, checked_bounds
from dpframe.queries.quotients import (
    nearest_shares,
    quotient_ends,
    quotient_half_widths,
    sum_interval,
    within_limits,
)
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size
from dpframe.queries.total import Measured, Noise, RowsTotal, SumTotal, Total
from dpframe.queries.where import plain_name, under_conditions

EXAMPLE = 'Write for instance bounds={"cost": (0, 5_000), "days": (0, 30)}.'


@dataclass(frozen=True, repr=False)
class Ratio(Statistic):
    """The sum of a column's clipped values over that of another.

    Made by `dpframe.ratio`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.ratio("cost", "days", bounds={"cost": (0, 5_000), "days": (0, 30)}).default_name
    'cost_per_days'
    """

    verb: ClassVar[str] = "ratio"
    tells_totals: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ("_low", "_high")
    unbounded: ClassVar[bool] = True

    column: str
    bounds: tuple[float, float]
    denominator: str
    denominator_bounds: tuple[float, float]

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        bounds = {plain_name(self.column): self.bounds, plain_name(self.denominator): self.denominator_bounds}
        return {"column": self.column, "denominator": self.denominator, "bounds": bounds}

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return f"{plain_name(self.column)}_per_{plain_name(self.denominator)}"

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (SumTotal(self.column, self.bounds), SumTotal(self.denominator, self.denominator_bounds))

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the quotient of the noisy sums, and the longer side of its Fieller interval."""
        value, low, high = self._read([measured[total] for total in self.totals()], CONFIDENCE)
        return value, np.maximum(value - low, high - value)

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the ends of its interval; infinite if the sign of the divisor is uncertain."""
        value, low, high = self._read([measured[total] for total in self.totals()], CONFIDENCE)
        if min(self.bounds[0], self.denominator_bounds[0]) >= 0.0:  # no quotient of such sums is below 0
            low, high = within_limits(low, high, np.maximum(value - low, high - value), (0.0, np.inf))
        return {"_low": low, "_high": high}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values in the middle of the bounds."""
        middles = [sum(bounds) / 2.0 for bounds in (self.bounds, self.denominator_bounds)]
        sums = [Measured(np.array([size * middle]), noise) for middle, noise in zip(middles, noises, strict=True)]
        value, low, high = self._read(sums, confidence)
        return float(np.maximum(value - low, high - value)[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"a ratio ({name})")

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        below = {"denominator": self.denominator, "denominator_bounds": list(self.denominator_bounds)}
        return {**(super().facts() or {}), **below}

    def _read(self, sums: Sequence[Measured], confidence: float) -> tuple[Floats, Floats, Floats]:
        top, bottom = sums
        spreads = [total.noise.variance for total in sums]
        heavy = [
            sum_interval(total.noise, confidence) ** 2 / total.noise.variance
            for total in sums
            if total.noise.variance > 0.0
        ]
        squared = max(heavy, default=0.0)  # z^2 of the noise with the heavier tails
        there = bottom.values != 0.0
        value = np.where(there, top.values / np.where(there, bottom.values, 1.0), 0.0)
        squares = squared * spreads[0], 0.0, squared * spreads[1]
        low, high = quotient_ends(top.values, bottom.values, squares)
        return value, np.minimum(low, value), np.maximum(high, value)

    def __str__(self) -> str:
        each = ((self.column, self.bounds), (self.denominator, self.denominator_bounds))
        return " / ".join(f"sum({name}) in [{bounds[0]:g}, {bounds[1]:g}]" for name, bounds in each)


@trimmed
def ratio(
    numerator: str,
    denominator: str,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Ratio:
    """Release the ratio of two sums in `agg`, such as cost per day.

    Parameters
    ----------
    numerator, denominator : str
        Two columns of numbers. Missing values add nothing to the sum of their column.
    bounds : dict of pairs of numbers by column
        The lower and the upper bound of the values of each column.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    Ratio
        A statistic for ``.dp.group_by(...).agg(...)``: ``NAME``, ``NAME_error`` and the ends of its interval,
        ``NAME_low`` and ``NAME_high``. The ends are infinite if the noise leaves the sign of the divisor uncertain.
        They are at least 0 if no bound is below 0.

    Raises
    ------
    MissingArgument
        If `bounds` is left out.
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.ratio("cost", "days", bounds={"cost": (0, 5_000), "days": (0, 30)}))
    sum(cost) in [0, 5000] / sum(days) in [0, 30]
    """
    check_column(numerator)
    check_column(denominator)
    if numerator == denominator:
        raise InvalidArgument(f"denominator must be another column than {shown(numerator)}. Write proportion or mean.")
    if bounds is None:
        raise MissingArgument(f"bounds must be given for both columns: they are never taken from the data. {EXAMPLE}")
    if not isinstance(bounds, Mapping):
        raise InvalidType(f"bounds must be a dict of pairs by column, not {shown(bounds)}. {EXAMPLE}")
    if set(bounds) != {numerator, denominator}:
        raise InvalidArgument(f"bounds must name both columns and no other, not {shown(list(bounds))}. {EXAMPLE}")
    above, below = (checked_bounds(bounds[column]) for column in (numerator, denominator))
    return Ratio(under_conditions(numerator, where), above, under_conditions(denominator, where), below)


NOISY = "_noisy"


@dataclass(frozen=True)
class Share(Statistic):
    """The share of a group's rows in each bin.

    Used by ``df.dp.histogram(..., normalize=True)``. It measures the counts of the bins, as a histogram does, and
    divides noisy numbers: this costs nothing more.

    Examples
    --------
    >>> Share("age", 4).default_name
    'share'
    """

    verb: ClassVar[str] = "share"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = (NOISY,)

    column: str  # the binned columns, as text
    size: int  # the number of consecutive cells that are the bins of one group

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "share"

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (RowsTotal(),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the nearest shares of at least 0 that add up to 1 in each group; half-widths."""
        (sums,) = measured.values()
        shares = self._read(sums.values)[1]
        counts = sums.values.reshape(-1, self.size)
        half = self._half_widths(shares, counts, sums.noise, CONFIDENCE)
        return shares.ravel(), half.ravel()

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the quotients of noisy counts, unadjusted."""
        (sums,) = measured.values()
        return {NOISY: self._read(sums.values)[0].ravel()}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` rows that are spread evenly over the bins."""
        counts = np.full((1, self.size), size / self.size)
        return float(self._half_widths(counts / size, counts, noises[0], confidence).max())

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of rows in a group."""
        check_size(size, f"shares ({name})", of="rows", whose="their")

    def _read(self, values: Floats) -> tuple[Floats, Floats]:
        counts = values.reshape(-1, self.size)
        whole = counts.sum(axis=1, keepdims=True)
        some = whole >= 1.0
        noisy = np.where(some, counts / np.where(some, whole, 1.0), 1.0 / self.size)
        return noisy, nearest_shares(noisy)

    def _half_widths(self, shares: Floats, counts: Floats, noise: Noise, confidence: float) -> Floats:
        """Return the distance to the farther end of Fieller's set of quotients of a bin and the sum of all bins.

        It uses the interval of sums of draws: a single integer draw may nearly always be 0, and its interval too. If
        the noisy sum is below 1, nothing is known.
        """
        squared = sum_interval(noise, confidence) ** 2
        whole = counts.sum(axis=1, keepdims=True)
        farther = np.maximum(shares, 1.0 - shares)
        squares = squared, squared, squared * self.size
        half = quotient_half_widths(shares, counts, whole, squares, farther, (0.0, 1.0))
        return np.where(whole >= 1.0, half, farther)


def share_of_axes(column: Any, axes: Sequence[Any]) -> Share:
    """Return the shares of the cells of declared bins or categories, of one or more columns."""
    if any(axis.coding == "dtype" for axis in axes):
        raise MissingArgument(
            "bins or categories must be given with normalize=True, also of a column whose dtype declares its own. "
            'Write for instance bins=[0, 18, 65, 120] or categories=["A", "B"].'
        )
    named = ", ".join(map(str, column)) if isinstance(column, (list, tuple)) else str(column)
    return Share(named, math.prod(axis.size for axis in axes))
