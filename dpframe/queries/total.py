"""The Totals that are measured: integer sums over cells, and the noisy numbers that become of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown
from dpframe.queries.clipping import grid_steps, step_length
from dpframe.queries.contrasts import ContrastDesign

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_REACH = 2**31  # of a row, in steps: the sum of 2**22 rows of a unit is then exact as a float
WEIGHT_BITS = 20  # counts of weighted units live on a grid of 2**-20


class Noise(Protocol):
    """The facts that a statistic must know about the noise in its numbers."""

    @property
    def variance(self) -> float: ...
    def interval(self, confidence: float) -> float: ...


class Decided(Protocol):
    """A way to measure a Total that noisy numbers of others have decided."""

    def measured(self, counts: Integers) -> Integers:
        """The integers that noise is added to, of the exact ones."""


@dataclass(frozen=True)
class Measured:
    """The noisy totals of one Total in the user's units, one per cell, and the law of their noise."""

    values: Floats
    noise: Noise
    weighted: bool = False  # whether rows are weighed: exact counts are then no whole numbers
    decided: Decided | None = None  # what was measured, where noisy numbers decided it


@dataclass(frozen=True)
class RowFunction:
    """An integer function of a row's clipped values: the row adds it to a Total that is no plain count or sum.

    Parameters
    ----------
    columns : tuple of (column, bounds)
        The values that the function reads, each clipped to its bounds and counted in the steps of its grid
        (`step_length` of the bounds). A row in which one of them is missing adds nothing.
    function : callable
        Of an int64 array for each of them, one entry a row: the int64 array of what each row adds. It must depend on
        the entries of a row alone, never fail, and be defined at the top of a module, so that it can be pickled. How
        many rows it is given at once, each engine decides; it cannot write to the arrays.
    reach : tuple of int
        The least and the greatest that a row may add, in steps, at most 2**31 of them: what the function gives is
        clipped to them, so that the sensitivity holds whatever it does.
    grid : float
        The length of a step of the result, in its own units.
    words : str
        What is measured, for plans and records.
    missing : int, optional
        What a row adds in which a value is missing, within the reach; nothing by default.
    """

    columns: tuple[tuple[str, tuple[float, float]], ...]
    function: Callable[..., Integers]
    reach: tuple[int, int]
    grid: float
    words: str
    missing: int | None = None

    def __post_init__(self) -> None:
        if not -LARGEST_REACH <= self.reach[0] <= self.reach[1] <= LARGEST_REACH:
            raise InvalidArgument(
                f"reach must be two whole numbers of steps within +-2**31, lower first, not {shown(self.reach)}. "
                "Take a coarser grid."
            )
        if self.missing is not None and not self.reach[0] <= self.missing <= self.reach[1]:
            raise InvalidArgument(
                f"missing must be within the reach {self.reach}, not {shown(self.missing)}. Widen the reach."
            )

    def given(self, *steps: Integers) -> Integers:
        """The integers of rows in which no value is missing: the one way in which the function is called."""
        for column in steps:
            column.flags.writeable = False
        with np.errstate(all="ignore"):  # whatever it does with a value, nothing is said of it
            return np.asarray(self.function(*steps))


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
    def values(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        """The columns whose values are read, with their bounds."""

    @property
    def cells(self) -> int:
        """The number of neighboring cells in one group of rows: 1, but where the last axis of the keys is inside."""

    @property
    def words(self) -> str:
        """The measured numbers in words, for plans and records."""

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

    def adds_up_to(self, column: str | None) -> bool:
        """Tell whether the integers of a group add up to its rows or, of a column, to its present values: exactly."""

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """The way to measure it that noisy numbers of other Totals decide; None where it is fixed."""


@dataclass(frozen=True)
class Total:
    """One clipped sum over cells, or a count where there are no bounds, as integers on a declared grid.

    The grid of a sum is the power of two that makes the larger bound 2**29 to 2**30 steps long. The bounds are
    rounded to it, and everything else (clipping, sensitivity) is taken from the rounded ones.
    """

    column: str | None = None
    bounds: tuple[float, float] | None = None
    centred: bool = False
    units: bool = False  # whether units are counted, each once, and not their rows
    by: tuple[str, ...] | None = None  # of subtotals: the columns that they are kept apart by; None for the cells
    row: RowFunction | None = None  # what a row adds, where it is neither 1 nor the column's value
    per_unit: bool = False  # whether what a whole unit adds to a cell is 1, or clipped, and not what a row adds
    vector: Vector | None = None  # several numbers of each group of rows, of one noise
    distinct: int | None = None  # of a number of distinct values: of how many of them one unit may be the reason

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        if self.vector is not None:
            return self.vector.columns
        if self.row is not None:
            return tuple(column for column, _ in self.row.columns)
        return () if self.column is None else (self.column,)

    def over(self, by: tuple[str, ...] | None) -> Total:
        """The same sum, over the groups of cells that agree in these columns."""
        return self if by == self.by else replace(self, by=by)

    @property
    def counts(self) -> bool:
        """Tell whether a row adds 1 or nothing."""
        return self.bounds is None and self.row is None and self.vector is None and self.distinct is None

    @property
    def values(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        """The columns whose values are read, with their bounds."""
        if self.row is not None:
            return self.row.columns
        if self.vector is not None:
            return self.vector.values
        return () if self.column is None or self.bounds is None else ((self.column, self.bounds),)

    def grid(self, weighted: bool) -> float:
        """The length of one integer step in the user's units."""
        if self.row is not None:
            return self.row.grid
        if self.vector is not None:
            return self.vector.grid(weighted)
        if self.bounds is not None:
            return step_length(self.bounds)
        return 2.0**-WEIGHT_BITS if weighted and self.distinct is None else 1.0

    @cached_property
    def steps(self) -> tuple[int, int]:
        """The least and the greatest value in grid steps; (0, 1) for a count."""
        if self.row is not None:
            return self.row.reach
        if self.distinct is not None:
            return (0, self.distinct)
        return (0, 1) if self.bounds is None else grid_steps(self.bounds)

    @property
    def midpoint(self) -> int:
        """The number of steps that a centred sum takes off each present value."""
        return (self.steps[0] + self.steps[1]) // 2 if self.centred else 0

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest that one row may add, in steps; 0 among them, for its value may be missing."""
        lower, upper = (step - self.midpoint for step in self.steps)
        return (min(lower, 0), max(upper, 0))

    @property
    def nonnegative(self) -> bool:
        """Tell whether no total can be below zero; public, since it follows from the bounds."""
        return self.vector is None and self.reach[0] == 0

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """The way to measure the exact integers that noisy numbers of other Totals decide; None where it is fixed.

        Its sensitivity is fixed all the same: it holds whatever they decide.
        """
        return None if self.vector is None else self.vector.decided(measured, noise)

    @property
    def width(self) -> int:
        """The number of values that it has for each group of rows."""
        return 1 if self.vector is None else self.vector.width

    def describe(self) -> str:
        """The Total in words: what a plan and the provenance call it."""
        over = "" if self.by is None else f" by {', '.join(self.by)}" if self.by else ", all together"
        if self.row is not None:
            return self.row.words + over
        if self.vector is not None:
            return self.vector.words
        if self.distinct is not None:
            return f"distinct values of {self.column}" + (f", {self.distinct} of each unit" if self.per_unit else "")
        if self.per_unit and self.bounds is not None:
            return f"sum of {self.column} of each unit"
        if self.bounds is None:
            if self.units or (self.per_unit and self.column is None):
                return "units"
            if self.per_unit:
                return f"units with a value of {self.column}"
            return ("rows" if self.column is None else f"present values of {self.column}") + over
        return f"{'centred ' if self.centred else ''}sum of {self.column}{over}"
