"""The sum of clipped values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpframe.queries.statistics.statistic import Clipped
from dpframe.queries.total import Total


@dataclass(frozen=True)
class Sum(Clipped):
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
