"""The sum of clipped values, and the sum of what units add in all, clipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from dpframe.errors import InvalidArgument
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import are_by_group
from dpframe.queries.row_functions import squares
from dpframe.queries.statistics.by_group import SumByGroup, checked_groups
from dpframe.queries.statistics.statistic import Clipped, Squaring
from dpframe.queries.statistics.weighted import WeightedSum, checked_weight
from dpframe.queries.total import FunctionTotal, SumTotal, Total, UnitsTotal
from dpframe.queries.where import under_conditions


@dataclass(frozen=True, repr=False)
class Sum(Squaring):
    """The sum of a column's values, clipped to the bounds. Made by `dpframe.sum`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", bounds=(0, 5_000)))
    sum(cost) in [0, 5000]
    """

    verb: ClassVar[str] = "sum"

    squares: bool = field(default=False, repr=False)  # whether squares are measured too, for a population

    def answering(self) -> tuple[Total, ...]:
        """Return the Total that the answer is read off."""
        return (SumTotal(self.column, self.bounds),)

    def of_population(self) -> Self:
        """Return the same with squares, which give the variance of the sum of a sample."""
        return replace(self, squares=True)

    def squared(self) -> Total | None:
        """Return the Total of squares that it measures."""
        return FunctionTotal(squares(self.column, self.bounds)) if self.squares else None


@dataclass(frozen=True, repr=False)
class UnitSum(Clipped):
    """The sum of a column, with each unit's total in a group clipped.

    Made by `dpframe.sum`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", unit_bounds=(0, 5_000)))
    sum(cost) of each unit in [0, 5000]
    """

    verb: ClassVar[str] = "sum"
    adds_up: ClassVar[bool] = False  # a unit is clipped in each group, and weighted by its number of groups

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (UnitsTotal(self.column, self.bounds),)

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        return {"column": self.column, "unit_bounds": self.bounds}

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {"verb": self.verb, "column": self.column, "unit_bounds": list(self.bounds)}

    def __str__(self) -> str:
        return f"sum({self.column}) of each unit in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@trimmed
def sum(
    column: str,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    *,
    unit_bounds: tuple[float, float] | None = None,
    where: Mapping[str, Any] | None = None,
    weight: str | None = None,
    weight_bounds: tuple[float, float] | None = None,
) -> Sum | SumByGroup | UnitSum | WeightedSum:
    """Sum a column in `agg`, clipped by value or by unit.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN add nothing; infinities are clipped like any value.
    bounds : tuple of two numbers, or dict of such by key
        The lower and the upper bound, in the units of the column; within +-2**53. After ``group_by`` of one column of
        declared keys, a dict names the bounds of every key: ``{"A": (0, 10), "B": (0, 100)}``. The noise of each group
        is then in proportion to its own bounds. Not with `weight`, `rollup`, `cube` or ``population=True``.
    unit_bounds : tuple of two numbers
        The bounds, instead of `bounds`, of what one unit, such as a person, adds to one group in all its rows, however
        many they are; `max_rows` has no effect. Each value is clipped first, to 2**10 times the larger of them. If each
        row is a unit, they are the bounds of a value.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.
    weight, weight_bounds : str and tuple of two numbers, optional
        A column of weights, as in surveys, and their bounds, at least 0: each value is multiplied by its weight.
        Weights are clipped to the bounds, and rows without a weight are left out. Not with `unit_bounds`.

    Returns
    -------
    Sum, SumByGroup, UnitSum or WeightedSum
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    MissingArgument
        If `bounds` and `unit_bounds` are left out.
    InvalidArgument
        If both are given, or they are not two finite numbers with lower < upper.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", bounds=(0, 5_000)))
    sum(cost) in [0, 5000]
    """
    if are_by_group(bounds):
        return SumByGroup(*checked_groups(column, bounds, where, weight=weight, unit_bounds=unit_bounds))
    column = under_conditions(column, where)
    if not (weight is None and weight_bounds is None):
        if unit_bounds is not None:
            raise InvalidArgument("unit_bounds must be left out with weight, which is of each row. Write bounds=.")
        return WeightedSum(column, bounds, *checked_weight(weight, weight_bounds, where))  # type: ignore[arg-type]  # as below
    if unit_bounds is None:
        return Sum(column, bounds)  # type: ignore[arg-type]  # None is refused there
    if bounds is not None:
        raise InvalidArgument(
            "bounds and unit_bounds must not both be given: one is of a value, the other of what a unit adds in all. "
            "Keep one."
        )
    return UnitSum(column, unit_bounds)
