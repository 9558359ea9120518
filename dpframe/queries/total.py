"""The Totals that are measured: integer sums over cells, and the noisy numbers that become of them.

A Total is one of six kinds: rows are counted, or their values summed, or a function of them; several numbers of each
group are summed with one noise; units are counted, or what each has in all is summed; distinct values are counted.
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

Columns = Mapping[str, NDArray[Any]]  # numbers, NaN where they are missing; or whether each value is there
Values = tuple[tuple[str, Bounds], ...]

WEIGHT_BITS = 20  # counts of weighted units live on a grid of 2**-20
WIDER = 2**10  # a value of a unit's sum is clipped to so many times the larger bound of the sum


class Noise(Protocol):
    """The facts that a statistic must know about the noise in its numbers."""

    @property
    def variance(self) -> float: ...
    @property
    def grid(self) -> float: ...
    def interval(self, confidence: float) -> float: ...


class Decided(Protocol):
    """A way to measure a Total that noisy numbers of others have decided."""

    def exact_sums(self, counts: Integers) -> Integers:
        """The integers that noise is added to, of the exact ones."""


@dataclass(frozen=True)
class Measured:
    """The noisy totals of one Total in the user's units, one per cell, and the law of their noise."""

    values: Floats
    noise: Noise
    weighted: bool = False  # whether rows are weighed: exact counts are then no whole numbers
    decided: Decided | None = None  # what was measured, where noisy numbers decided it


@dataclass(frozen=True)
class Norm:
    """The size of what one row adds to its group, in steps: the facts from which the sensitivity follows."""

    grid: float  # the length of a step in the user's units
    reach: tuple[int, int] = (0, 1)  # the least and the greatest; 0 is among them, for a value may be missing
    width: int = 1  # the number of integers for each group
    vector: tuple[int | Fraction, int | Fraction] | None = None  # of several: the l_1 norm, and the squared l_2 norm
    signed: bool = False  # whether some of several may be negative
    contrasts: ContrastDesign | None = None  # whose noise has a scale for each of them; None of noise of one scale

    @property
    def nonnegative(self) -> bool:
        """Tell whether no single total can be below zero; public, since it follows from the bounds."""
        return self.vector is None and self.reach[0] == 0


class Kinds(type):
    """The class of Total: statistics from outside write ``Total(...)``, and get the kind that their arguments say."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if cls is Total:
            return Total.__new__(Total, *given, **named)
        kind: Any = cls
        made = object.__new__(kind)
        kind.__init__(made, *given, **named)
        return made


class Total(metaclass=Kinds):
    """One integer sum over cells, on a declared grid: ``Total(...)`` gives the kind that its arguments say.

    Parameters
    ----------
    column : str, optional
        The column of which present values are counted, or values summed; rows are counted without.
    bounds : tuple of two floats, optional
        Of the values, which are clipped to them and summed.
    centred : bool
        Whether the middle of the bounds is taken off each value.
    units : bool
        Whether units are counted, each in one of all cells: the question of `contributions`, and of no statistic.
    by : tuple of str, optional
        Of subtotals: the columns that they are kept apart by; None for the cells.
    row : RowFunction, optional
        What a row adds, where it is neither 1 nor the column's value.
    per_unit : bool
        Whether what a whole unit adds to a cell is 1, or clipped, and not what a row adds.
    vector : Vector, optional
        Several numbers of each group of rows, of one noise.
    distinct : int, optional
        Of a number of distinct values: of how many of them one unit may be the reason.

    Raises
    ------
    InvalidArgument
        If the arguments are of several kinds.

    Notes
    -----
    The grid of a sum is the power of two that makes the larger bound 2**29 to 2**30 steps long. The bounds are rounded
    to it, and everything else (clipping, sensitivity) is taken from the rounded ones.

    Examples
    --------
    >>> Total(), Total("age", bounds=(0, 120))
    (RowsTotal(column=None, by=None), SumTotal(column='age', bounds=(0.0, 120.0), centred=False, by=None))
    >>> import numpy as np
    >>> age = Total("age", bounds=(0, 128))
    >>> age.integers(2, {"age": np.array([64.0, 500.0])}).ravel() * age.norm(weighted=False).grid
    array([ 64., 128.])
    """

    by: tuple[str, ...] | None = None  # of subtotals: the columns that they are kept apart by; None for the cells

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
        if cls is not Total:  # as pickle makes one, which then fills it
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
        """The size of what one row adds, and the grid.

        Rows are `weighted` where a unit has a column: those of a unit with too many of them count for less, which takes
        a finer grid. Weights of a survey (``weight=``) are values like others.
        """
        raise NotImplementedError

    def integers(self, rows: int, columns: Columns) -> Integers:
        """The integers that each of so many rows adds, where it is a unit by itself: (rows, width), in steps.

        The one definition: every way of the engines adds up these, however rows are cut into pieces.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        raise NotImplementedError


def over(total: Total, by: tuple[str, ...] | None) -> Total:
    """The same sum, over the groups of cells that agree in these columns."""
    return total if by == total.by else replace(total, by=by)  # type: ignore[type-var]  # each kind is a dataclass


def by_whole_units(total: Total) -> bool:
    """Tell whether what a whole unit adds to a cell is bounded, however many rows it has there."""
    if isinstance(total, UnitsTotal):
        return not total.once
    return isinstance(total, DistinctTotal) and total.per_unit


class OfRows(Total):
    """A plain sum over rows, which is read off one column of integers."""

    @property
    def reading(self) -> Reading:
        """The column, and how sums of rows are read off it."""
        raise NotImplementedError

    def integers(self, rows: int, columns: Columns) -> Integers:
        """The integers that each row adds: as the sums of any rows are read, so that every way is held to it."""
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
        """Rows as they are; or whether the column's values are present."""
        return Reading(None, rows=1) if self.column is None else Reading(Present(self.column), sum=1)

    def norm(self, weighted: bool) -> Norm:
        """1 or nothing; of a weighed row so many steps of a finer grid."""
        return Norm(2.0**-WEIGHT_BITS, (0, 2**WEIGHT_BITS)) if weighted else Norm(1.0)

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        return _counted("rows", "present values of", self.column) + self._over()


COUNTED = RowsTotal()  # all rows


@dataclass(frozen=True)
class SumTotal(OfRows):
    """The sum of a column's values, clipped to bounds; `centred` with their middle taken off each."""

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
        """The number of steps that are taken off each present value."""
        return sum(grid_steps(self.bounds)) // 2 if self.centred else 0

    @property
    def reading(self) -> Reading:
        """The values on the grid, and the middle of the bounds off each that is present."""
        return Reading(OnGrid(self.column, self.bounds), present=-self.midpoint, sum=1)

    def norm(self, weighted: bool) -> Norm:
        """From the one bound to the other, and nothing where the value is missing."""
        lower, upper = (step - self.midpoint for step in grid_steps(self.bounds))
        return Norm(step_length(self.bounds), (min(lower, 0), max(upper, 0)))

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
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
        """The function's own column, or that of the other of two ways."""
        return reading_of(self.row)

    def norm(self, weighted: bool) -> Norm:
        """Whatever the function gives, no more than its reach."""
        lower, upper = self.row.reach
        return Norm(self.row.grid, (min(lower, 0), max(upper, 0)))

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        return self.row.words + self._over()


class Vector(Protocol):
    """Several integers of each group of rows, measured with one noise: see `dpframe.queries.vectors`."""

    @property
    def width(self) -> int:
        """The number of integers for each group."""

    @property
    def folded(self) -> int:
        """The number of exact integers for each group that rows are folded into; `width`, if not decided later."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def values(self) -> Values:
        """The columns whose values are read, with their bounds."""

    @property
    def cells(self) -> int:
        """The number of neighboring cells in one group of rows: 1, but where the last axis of the keys is inside."""

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""

    @property
    def signed(self) -> bool:
        """Tell whether some entry may be negative."""

    @property
    def contrasts(self) -> ContrastDesign | None:
        """The design of contrasts, whose noise has a scale for each of them; None of noise of one scale."""

    def grid(self, weighted: bool) -> float:
        """The length of one integer step."""

    def norms(self, weighted: bool) -> tuple[int | Fraction, int | Fraction]:
        """Of what one row adds, in steps: the largest l_1 norm, and the largest squared l_2 norm."""

    def integers(self, rows: int, columns: Columns) -> Integers:
        """The integers that each of so many rows adds: (rows, width); of counts (rows, 1), 1 for a row in a place."""

    def adds_up_to(self, column: str | None) -> bool:
        """Tell whether the integers of a group add up to its rows or, of a column, to its present values: exactly."""

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """The way to measure it that noisy numbers of other Totals decide; None where it is fixed."""


@dataclass(frozen=True)
class VectorTotal(Total):
    """Several numbers of each group of rows, of one noise."""

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
        """The norms of what a row adds to all numbers of its group."""
        facts, norms = self.vector, self.vector.norms(weighted)
        return Norm(
            facts.grid(weighted), width=facts.width, vector=norms, signed=facts.signed, contrasts=facts.contrasts
        )

    def integers(self, rows: int, columns: Columns) -> Integers:
        """The integers that each row adds to the numbers of its group."""
        return self.vector.integers(rows, columns)

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """The way to measure the exact integers that noisy numbers of other Totals decide; None where it is fixed.

        Its sensitivity is fixed all the same: it holds whatever they decide.
        """
        return self.vector.decided(measured, noise)

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        return self.vector.words


@dataclass(frozen=True)
class UnitsTotal(Total):
    """A Total of what whole units add to cells: each 1 or, with bounds, its sum of the column, clipped to them.

    With `once` each unit is in one cell of all, as a row is: then it is not weighed.
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
        """The Total of rows that it is where each row is a unit."""
        if self.column is None or self.bounds is None:
            return RowsTotal(self.column)
        return SumTotal(self.column, self.bounds)

    def norm(self, weighted: bool) -> Norm:
        """As of a row: 1, or from the one bound to the other; and nothing of a unit that has no value."""
        return self.of_rows.norm(weighted)

    def integers(self, rows: int, columns: Columns) -> Integers:
        """The integers that each row adds to its unit's sum, clipped far beyond the bounds; of a count 1."""
        if self.column is None or self.bounds is None:
            return self.of_rows.integers(rows, columns)
        most = float(WIDER * max(map(abs, grid_steps(self.bounds))))
        with np.errstate(all="ignore"):  # whatever a value is, nothing is said of it
            scaled = columns[self.column] * (1.0 / step_length(self.bounds))
            steps = np.floor(np.clip(scaled, -most, most) + 0.5)
        return np.where(np.isnan(steps), 0.0, steps).astype(np.int64)[:, None]

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        if self.values:
            return f"sum of {self.column} of each unit"
        return _counted("units", "units with a value of", self.column)


@dataclass(frozen=True)
class DistinctTotal(Total):
    """The number of distinct values of a column; of `most` of them one unit may be the reason."""

    column: str
    most: int
    per_unit: bool = False  # whether units hold values, and not rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    def norm(self, weighted: bool) -> Norm:
        """Of a unit so many values, and of a row by itself 1."""
        return Norm(1.0, (0, self.most if self.per_unit else 1))

    def integers(self, rows: int, columns: Columns) -> Integers:
        """1 where there is a value: so much a row adds that is alone with it."""
        return Present(self.column).steps(columns[self.column]).astype(np.int64)[:, None]

    def describe(self) -> str:
        """The Total as text: what a plan and the provenance call it."""
        return f"distinct values of {self.column}" + (f", {self.most} of each unit" if self.per_unit else "")


def _counted(all_of_them: str, with_a_value: str, column: str | None) -> str:
    """Words for what is counted: all, those that conditions leave, or those with a value of a column."""
    if column is None:
        return all_of_them
    of_all = isinstance(column, Conditional) and column.of is None
    return f"{all_of_them if of_all else with_a_value} {column}"


TAKES = {  # the argument that tells a kind -> those that may stand beside it
    "row": ("by",),
    "vector": (),
    "distinct": ("column", "per_unit"),
    "units": (),
    "per_unit": ("column", "bounds"),
    "bounds": ("column", "centred", "by"),
    "column": ("by",),
}


def _kind(given: Mapping[str, Any]) -> Total:
    """The kind of Total that some arguments say, none of which is at its default."""
    tells = next((name for name in TAKES if name in given), "column")
    for name in given:
        if name != tells and name not in TAKES[tells]:
            raise InvalidArgument(f"{name} must be left out of a Total with {tells}: it is of another kind. Keep one.")
    column: Any = given.get("column")
    by: Any = given.get("by")
    if column is None and {"bounds", "distinct"} & given.keys():
        raise InvalidArgument(f"column must be given with {'bounds' if 'bounds' in given else 'distinct'}. Name one.")
    # The sensitivity follows from them, in their order; as Python's numbers, which do not wrap.
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
