"""The number of rows, or of present values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import InvalidArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.quotients import interval_of_sum
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Counted, Statistic
from dpframe.queries.statistics.weighted import WeightedCount, checked_weight
from dpframe.queries.total import COUNTED, Measured, Noise, RowsTotal, Total, UnitsTotal, VectorTotal
from dpframe.queries.where import under_conditions


@dataclass(frozen=True, repr=False)
class Count(Counted):
    """The number of rows, or of present values in a column. Made by `dpframe.count`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.count("age").default_name
    'count'
    """

    verb: ClassVar[str] = "count"

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (COUNTED if self.column is None else RowsTotal(self.column),)

    def beside(self, totals: Sequence[Total]) -> Statistic:
        """Read the count off another statistic's numbers that add up to it.

        The numbers of a mean under pure noise do.
        """
        # the widest is that of a variance, which is measured in any case
        vectors = [total for total in totals if isinstance(total, VectorTotal)]
        adding_up = [total for total in vectors if total.vector.adds_up_to(self.column)]
        return SharedCount(self.column, max(adding_up, key=lambda total: total.vector.width)) if adding_up else self


@dataclass(frozen=True)
class Contributors(Count):
    """The number of units in each cell of the grid. Used by ``df.dp.contributions``."""

    adds_up: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (UnitsTotal(once=True),)

    def __str__(self) -> str:
        return "contributions()"


@dataclass(frozen=True)
class SharedCount(Counted):
    """A count that is the sum of numbers that another statistic of the call measures.

    It costs nothing more. If each row is a unit, the count is rounded to a whole number, as the true count is one.
    """

    verb: ClassVar[str] = "count"
    tells_totals: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False  # denoisers know the noise of one draw; this is a sum of draws
    adds_up: ClassVar[bool] = False

    total: Total = COUNTED

    def under(self, pure: bool) -> Statistic:
        """Return the plain count, since the numbers to read it off must be found again."""
        return Count(self.column)

    def totals(self) -> tuple[Total, ...]:
        """Return the Total that is measured anyway."""
        return (self.total,)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the sums of the noisy numbers of each group, and the half-widths of their intervals."""
        sums = measured[self.total]
        values = sums.values.reshape(-1, self.total.norm(False).width).sum(axis=1)
        half = interval_of_sum(sums.noise, self.total.norm(False).width, CONFIDENCE)
        if not sums.weighted:  # an error of at most h is, after rounding to whole numbers, at most floor(h + 1/2)
            values, half = np.rint(values), float(np.floor(half + 0.5))
        return values, np.full(values.shape, half)

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of the interval of a sum of draws."""
        return interval_of_sum(noises[0], self.total.norm(False).width, confidence)


@trimmed
def count(
    column: str | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    weight: str | None = None,
    weight_bounds: tuple[float, float] | None = None,
) -> Count | WeightedCount:
    """Count rows, or the present values of a column, in `agg`.

    Parameters
    ----------
    column : str, optional
        Count the values of this column that are neither null nor NaN. By default, count rows.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.
    weight, weight_bounds : str and tuple of two numbers, optional
        A column of weights, as in surveys, and their bounds, at least 0: the weights of rows are added up. Weights are
        clipped to the bounds, and rows without a weight are left out. Not with `column`.

    Returns
    -------
    Count or WeightedCount
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    InvalidArgument, InvalidType
        If `column` is not a string, or `where` breaks its rule.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.count(), dpf.count("age"))
    count() count(age)
    >>> print(dpf.count(where={"age": (18, None), "ward": ["A", "B"]}))
    count(where age >= 18 and ward is 'A' or 'B')
    """
    if weight is None and weight_bounds is None:
        return Count(under_conditions(column, where))
    if column is not None:
        raise InvalidArgument(
            f"column must be left out with weight, not {shown(column)}: the weights of rows are added up. "
            "Select rows with where=."
        )
    return WeightedCount(*checked_weight(weight, weight_bounds, where))
