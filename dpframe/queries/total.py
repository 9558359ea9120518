"""The Totals that are measured: integer sums over cells, and their noisy numbers.

There are six kinds of Total: counts of rows, sums of values, sums of a function of values, vectors of several
numbers of each group, counts or sums over whole units, and numbers of distinct values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.exact import checked_whole
from dpframe.queries.contrasts import ContrastDesign
from dpframe.queries.limits import DISTINCT, checked_bounds, grid_steps, step_length
from dpframe.queries.row_functions import (
    Bounds,
    Floats,
    Integers,
    OnGrid,
    Present,
    Reading,
    RowFunction,
    reading_of,
)
from dpframe.queries.where import Conditional

Columns = Mapping[str, NDArray[Any]]  # numbers, NaN if missing; or flags of present values
Values = tuple[tuple[str, Bounds], ...]

WEIGHT_BITS = 20  # counts of weighted units live on a grid of 2**-20
WIDER = 2**10  # a value of a unit's sum is clipped to this multiple of the sum's larger bound


class Noise(Protocol):
    """The facts that a statistic must know about the noise in its numbers."""

    @property
    def variance(self) -> float: ...
    @property
    def grid(self) -> float: ...
    def interval(self, confidence: float) -> float: ...


class Decided(Protocol):
    """A way to measure a Total that noisy numbers of other Totals have decided."""

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the integers to which noise is added, from the exact counts."""


@dataclass(frozen=True)
class Measured:
    """The noisy totals of one Total in the user's units, one per cell, and the law of their noise."""

    values: Floats
    noise: Noise
    weighted: bool = False  # whether rows are weighted: exact counts are then no whole numbers
    decided: Decided | None = None  # what was measured, if noisy numbers decided it


@dataclass(frozen=True)
class Norm:
    """The size of what one row adds to its group, in steps, from which the sensitivity follows."""

    grid: float  # the length of a step in the user's units
    reach: tuple[int, int] = (0, 1)  # the least and the greatest; includes 0, since a value may be missing
    width: int = 1  # the number of integers for each group
    vector: tuple[int | Fraction, int | Fraction] | None = None  # of several: l_1 norm and squared l_2 norm
    signed: bool = False  # whether any of several may be negative
    contrasts: ContrastDesign | None = None  # contrasts, each with its own noise scale; None for one scale

    @property
    def nonnegative(self) -> bool:
        """True if no single total can be below zero; public, since it follows from the bounds."""
        return self.vector is None and self.reach[0] == 0


class Kinds(type):
    """The metaclass of Total: external statistics write ``Total(...)``, and get the kind that its arguments need."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if cls is Total:
            return Total.__new__(Total, *given, **named)
        kind: Any = cls
        made = object.__new__(kind)
        kind.__init__(made, *given, **named)
        return made


class Total(metaclass=Kinds):
    """One integer sum over cells, on a declared grid; ``Total(...)`` returns the kind that its arguments determine.

    Parameters
    ----------
    column : str, optional
        The column whose present values are counted, or whose values are summed. Without it, rows are counted.
    bounds : tuple of two floats, optional
        The bounds to which values are clipped before they are summed.
    centred : bool
        Whether the middle of the bounds is subtracted from each value.
    units : bool
        Whether units are counted, each in only one cell. Only `contributions` uses this.
    by : tuple of str, optional
        For subtotals, the columns by which they are grouped; None for the cells.
    row : RowFunction, optional
        What a row adds, if it is neither 1 nor the column's value.
    per_unit : bool
        Whether a whole unit adds 1, or its clipped sum, to a cell, instead of each row.
    vector : Vector, optional
        Several numbers of each group of rows, whose noise is calibrated to the norm of the vector.
    distinct : int, optional
        For a number of distinct values, the largest number of them that one unit may support.

    Raises
    ------
    InvalidArgument
        If the arguments belong to several kinds.

    Notes
    -----
    The grid of a sum is the power of two that makes the larger bound 2**29 to 2**30 steps long. The bounds are rounded
    to it, and everything else (clipping, sensitivity) uses the rounded ones.

    Examples
    --------
    >>> Total(), Total("age", bounds=(0, 120))
    (RowsTotal(column=None, by=None), SumTotal(column='age', bounds=(0.0, 120.0), centred=False, by=None))
    >>> import numpy as np
    >>> age = Total("age", bounds=(0, 128))
    >>> age.integers(2, {"age": np.array([64.0, 500.0])}).ravel() * age.norm(weighted=False).grid
    array([ 64., 128.])
    """

    by: tuple[str, ...] | None = None  # for subtotals, the columns by which they are grouped; None for the cells

    def __new__(
        cls,
        column: str | None = None,
        bounds: Bounds | None = None,
        centred: bool = False,
        units: bool = False,
        by: tuple[str, ...] | None = None,
        row: RowFunction | None = None,
        per_unit: bool = False,
        vector: Vector | None = None,
        distinct: int | None = None,
    ) -> Total:
        if cls is not Total:  # pickle makes an empty object, then fills it
            return object.__new__(cls)
        given: dict[str, Any] = {
            "column": column,
            "bounds": bounds,
            "centred": centred,
            "units": units,
            "by": by,
            "row": row,
        }
        given |= {"per_unit": per_unit, "vector": vector, "distinct": distinct}
        return _kind({name: value for name, value in given.items() if value is not None and value is not False})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(column for column, _ in self.values)

    @property
    def values(self) -> Values:
        """The columns whose values are read as numbers, with their bounds."""
        return ()

    def norm(self, weighted: bool) -> Norm:
        """Return the size of what one row adds, and the grid.

        Rows are `weighted` if units have a column: the rows of a unit with too many of them count for less, which
        needs a finer grid. Weights of a survey (``weight=``) are values like others.
        """
        raise NotImplementedError

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each of `rows` rows adds if it is a unit by itself: (rows, width), in steps.

        This is the one definition: every path of the engines adds up these, however rows are divided into pieces.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        raise NotImplementedError


def over(total: Total, by: tuple[str, ...] | None) -> Total:
    """Return the same sum over the groups of cells that agree in these columns."""
    return total if by == total.by else replace(total, by=by)  # type: ignore[type-var]  # each kind is a dataclass


def by_whole_units(total: Total) -> bool:
    """Return whether what a whole unit adds to a cell is bounded, whatever its number of rows there."""
    if isinstance(total, UnitsTotal):
        return not total.once
    return isinstance(total, DistinctTotal) and total.per_unit


class OfRows(Total):
    """A plain sum over rows, computed from one column of integers."""

    @property
    def reading(self) -> Reading:
        """The column, and how sums over rows are computed from it."""
        raise NotImplementedError

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each row adds, computed like sums over rows, so that every path must agree."""
        line = self.reading
        added = np.full(rows, line.rows, dtype=np.int64)
        if line.addend is not None:
            steps = line.addend.steps(*(columns[column] for column in self.columns))
            there = ~np.isnan(steps)
            added[there] += line.present + line.sum * steps[there].astype(np.int64)
        return added[:, None]

    def _over(self) -> str:
        return "" if self.by is None else f" by {', '.join(self.by)}" if self.by else ", all together"


@dataclass(frozen=True)
class RowsTotal(OfRows):
    """The number of rows or, of a column, of its present values."""

    column: str | None = None
    by: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return () if self.column is None else (self.column,)

    @property
    def reading(self) -> Reading:
        """The number of rows, or of present values of the column."""
        return Reading(None, rows=1) if self.column is None else Reading(Present(self.column), sum=1)

    def norm(self, weighted: bool) -> Norm:
        """Return the norm of a row, which adds 0 or 1; a weighted row has a finer grid."""
        return Norm(2.0**-WEIGHT_BITS, (0, 2**WEIGHT_BITS)) if weighted else Norm(1.0)

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        return _counted("rows", "present values of", self.column) + self._over()


COUNTED = RowsTotal()  # all rows


@dataclass(frozen=True)
class SumTotal(OfRows):
    """The sum of a column's values, clipped to bounds; `centred` subtracts their middle from each."""

    column: str
    bounds: Bounds
    centred: bool = False
    by: tuple[str, ...] | None = None

    @property
    def values(self) -> Values:
        """The column, with its bounds."""
        return ((self.column, self.bounds),)

    @property
    def midpoint(self) -> int:
        """The number of steps that are subtracted from each present value."""
        return sum(grid_steps(self.bounds)) // 2 if self.centred else 0

    @property
    def reading(self) -> Reading:
        """The values on the grid, less the middle of the bounds for each present value."""
        return Reading(OnGrid(self.column, self.bounds), present=-self.midpoint, sum=1)

    def norm(self, weighted: bool) -> Norm:
        """Return the norm of a row, which adds from the lower to the upper bound, or 0 for a missing value."""
        lower, upper = (step - self.midpoint for step in grid_steps(self.bounds))
        return Norm(step_length(self.bounds), (min(lower, 0), max(upper, 0)))

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        return f"{'centred ' if self.centred else ''}sum of {self.column}{self._over()}"


@dataclass(frozen=True)
class FunctionTotal(OfRows):
    """The sum of an integer function of a row's values."""

    row: RowFunction
    by: tuple[str, ...] | None = None

    @property
    def values(self) -> Values:
        """The columns, with their bounds."""
        return self.row.columns

    @property
    def reading(self) -> Reading:
        """The column of the function, or that of the distance to the other bound: see `reading_of`."""
        return reading_of(self.row)

    def norm(self, weighted: bool) -> Norm:
        """Return the norm of a row, which adds at most the reach, whatever the function returns."""
        lower, upper = self.row.reach
        return Norm(self.row.grid, (min(lower, 0), max(upper, 0)))

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        return self.row.words + self._over()


class Vector(Protocol):
    """Several integers of each group, with noise calibrated to their joint norm: see `dpframe.queries.vectors`."""

    @property
    def width(self) -> int:
        """The number of integers for each group."""

    @property
    def folded(self) -> int:
        """The number of exact integers of each group to which rows add; `width`, unless noisy numbers decide later."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def values(self) -> Values:
        """The columns whose values are read, with their bounds."""

    @property
    def cells(self) -> int:
        """The number of neighboring cells in one group of rows; 1, unless the last axes of keys are inside groups."""

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""

    @property
    def signed(self) -> bool:
        """True if an entry may be negative."""

    @property
    def contrasts(self) -> ContrastDesign | None:
        """The design of contrasts, each with its own noise scale; None if the noise has one scale."""

    def grid(self, weighted: bool) -> float:
        """Return the length of one integer step."""

    def norms(self, weighted: bool) -> tuple[int | Fraction, int | Fraction]:
        """Return the largest l_1 norm and the largest squared l_2 norm of what one row adds, in steps."""

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each of `rows` rows adds: (rows, width); for counts, (rows, 1) of 1 or 0."""

    def adds_up_to(self, column: str | None) -> bool:
        """Return whether a group's integers add up exactly to its rows or, for a column, to its present values."""

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """Return the way to measure it that noisy numbers of other Totals decide; None if it is fixed."""


@dataclass(frozen=True)
class VectorTotal(Total):
    """Several numbers of each group of rows, with noise calibrated to their joint norm."""

    vector: Vector

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.vector.columns

    @property
    def values(self) -> Values:
        """The columns whose values are read as numbers, with their bounds."""
        return self.vector.values

    def norm(self, weighted: bool) -> Norm:
        """Return the norms of what a row adds to all numbers of its group."""
        facts, norms = self.vector, self.vector.norms(weighted)
        return Norm(
            facts.grid(weighted), width=facts.width, vector=norms, signed=facts.signed, contrasts=facts.contrasts
        )

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each row adds to the numbers of its group."""
        return self.vector.integers(rows, columns)

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """Return the way to measure the exact integers that noisy numbers of other Totals decide; None if it is fixed.

        The sensitivity is fixed in either case: it holds whatever they decide.
        """
        return self.vector.decided(measured, noise)

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        return self.vector.words


@dataclass(frozen=True)
class UnitsTotal(Total):
    """A Total over whole units: each adds 1 to a cell or, with bounds, its sum of the column, clipped to them.

    With `once`, each unit is in only one cell, like a row, and is not weighted.
    """

    column: str | None = None
    bounds: Bounds | None = None
    once: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return () if self.column is None else (self.column,)

    @property
    def values(self) -> Values:
        """The column that is summed, with the bounds of the sums."""
        return () if self.column is None or self.bounds is None else ((self.column, self.bounds),)

    @property
    def of_rows(self) -> OfRows:
        """The equal Total over rows, if each row is a unit."""
        if self.column is None or self.bounds is None:
            return RowsTotal(self.column)
        return SumTotal(self.column, self.bounds)

    def norm(self, weighted: bool) -> Norm:
        """Return the norm of a unit: that of a row in `of_rows`; a unit without a value adds 0."""
        return self.of_rows.norm(weighted)

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each row adds to its unit's sum, clipped far beyond the bounds; for a count, 1."""
        if self.column is None or self.bounds is None:
            return self.of_rows.integers(rows, columns)
        most = float(WIDER * max(map(abs, grid_steps(self.bounds))))
        with np.errstate(all="ignore"):  # no warning may depend on a value
            scaled = columns[self.column] * (1.0 / step_length(self.bounds))
            steps = np.floor(np.clip(scaled, -most, most) + 0.5)
        return np.where(np.isnan(steps), 0.0, steps).astype(np.int64)[:, None]

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        if self.values:
            return f"sum of {self.column} of each unit"
        return _counted("units", "units with a value of", self.column)


@dataclass(frozen=True)
class DistinctTotal(Total):
    """The number of distinct values of a column; one unit may support at most `most` of them."""

    column: str
    most: int
    per_unit: bool = False  # whether units support values, instead of rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    def norm(self, weighted: bool) -> Norm:
        """Return the norm of a unit, which adds at most `most` values; a row that is a unit adds at most 1."""
        return Norm(1.0, (0, self.most if self.per_unit else 1))

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return 1 for each present value: what a row adds if no other row has the value."""
        return Present(self.column).steps(columns[self.column]).astype(np.int64)[:, None]

    def describe(self) -> str:
        """Return the Total as text, for plans and provenance."""
        return f"distinct values of {self.column}" + (f", {self.most} of each unit" if self.per_unit else "")


def _counted(all_of_them: str, with_a_value: str, column: str | None) -> str:
    """Return the words for what is counted: all, those that meet conditions, or those with a value of a column."""
    if column is None:
        return all_of_them
    of_all = isinstance(column, Conditional) and column.of is None
    return f"{all_of_them if of_all else with_a_value} {column}"


TAKES = {  # the argument that determines a kind -> those allowed with it
    "row": ("by",),
    "vector": (),
    "distinct": ("column", "per_unit"),
    "units": (),
    "per_unit": ("column", "bounds"),
    "bounds": ("column", "centred", "by"),
    "column": ("by",),
}


def _kind(given: Mapping[str, Any]) -> Total:
    """Return the kind of Total for these arguments, none of which has its default value."""
    tells = next((name for name in TAKES if name in given), "column")
    for name in given:
        if name != tells and name not in TAKES[tells]:
            raise InvalidArgument(f"{name} must be left out of a Total with {tells}: it is of another kind. Keep one.")
    column: Any = given.get("column")
    by: Any = given.get("by")
    if column is None and {"bounds", "distinct"} & given.keys():
        raise InvalidArgument(f"column must be given with {'bounds' if 'bounds' in given else 'distinct'}. Name one.")
    # The sensitivity follows from the bounds in their order, as Python's numbers, which do not overflow.
    bounds: Any = checked_bounds(given["bounds"], narrowest=DISTINCT) if "bounds" in given else None
    match tells:
        case "row":
            return FunctionTotal(given["row"], by)
        case "vector":
            return VectorTotal(given["vector"])
        case "distinct":
            most = checked_whole("distinct", given["distinct"], 1, 2**31, "an integer from 1 to 2**31")
            return DistinctTotal(column, most, given.get("per_unit", False))
        case "units":
            return UnitsTotal(once=True)
        case "per_unit":
            return UnitsTotal(column, bounds)
        case "bounds":
            return SumTotal(column, bounds, given.get("centred", False), by)
        case _:
            return RowsTotal(column, by)
