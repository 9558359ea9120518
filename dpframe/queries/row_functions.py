"""The integers that rows add: each function is defined here, once.

A column is a value on the grid of its bounds, whether a value is present, or an integer function of several values. All
plain ways of the engines call its `steps`. Compiled kernels and the SQL of Spark have expressions of their own, which
tests hold to it. A Total is read off the sums of one column: see `Reading`.

Steps are floats, so that NaN says that a value is missing. They are whole and within +-2**31, so that each is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown
from dpframe.exact import checked_whole
from dpframe.queries.limits import DISTINCT, checked_bounds, grid_steps, step_length

Bounds = tuple[float, float]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_REACH = 2**31  # of a row, in steps: the sum of 2**22 rows of a unit is then exact as a float
STEPS = "two whole numbers of steps within +-2**31"
BITS = 30  # a value lies at a whole number of 2**-30 of the way between its bounds: no sum wraps below 2**33 rows
WHOLE = 2**BITS
CENTRED_BITS = 16  # and at one of 2**-16 of half the way from the middle; squares have 2**32 steps


class Addend(Protocol):
    """A column of integers that rows add."""

    def steps(self, *values: NDArray[Any]) -> Floats:
        """The integers that each row adds, of the values of its columns; NaN where one is missing."""


@dataclass(frozen=True)
class OnGrid:
    """The values of a column in whole steps of the grid of its bounds, clipped to them."""

    column: str
    bounds: Bounds

    def steps(self, *values: NDArray[Any]) -> Floats:
        """The steps of each value, which is a number, NaN where it is missing."""
        (only,) = values
        return on_grid(only, self.bounds)


@dataclass(frozen=True)
class Present:
    """1 for each value of a column that is present, and 0 for a missing one."""

    column: str

    def steps(self, *values: NDArray[Any]) -> Floats:
        """The same as numbers, of what says whether each value is there."""
        (only,) = values
        return only.astype(np.float64)


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
        many rows it is given at once, each engine decides; it cannot write to the arrays. It must not print, log or
        warn of anything: dpframe does not hold that back.
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

    columns: tuple[tuple[str, Bounds], ...]
    function: Callable[..., Integers]
    reach: tuple[int, int]
    grid: float
    words: str
    missing: int | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidArgument("columns must name at least one column with its bounds, and are empty.")
        columns = tuple((name, checked_bounds(bounds, narrowest=DISTINCT)) for name, bounds in self.columns)
        reach = tuple(checked_whole("reach", end, -LARGEST_REACH, LARGEST_REACH, STEPS) for end in self.reach)
        if len(reach) != 2 or reach[0] > reach[1]:
            raise InvalidArgument(f"reach must be {STEPS}, lower first, not {shown(self.reach)}. Take a coarser grid.")
        if self.missing is not None:
            words = f"a whole number within the reach {reach}"
            missing = checked_whole("missing", self.missing, *reach, words, " Widen the reach.")
            object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "reach", reach)

    def given(self, *steps: Integers) -> Integers:
        """The integers of rows in which no value is missing: the one way in which the function is called."""
        for column in steps:
            column.flags.writeable = False
        with np.errstate(all="ignore"):  # whatever it does with a value, nothing is said of it
            return np.asarray(self.function(*steps))

    def steps(self, *values: NDArray[Any]) -> Floats:
        """The integers that each row adds, within the reach; where a value is missing NaN, or what is added for it."""
        read = zip(values, self.columns, strict=True)
        return self.of_steps(*(on_grid(column, bounds) for column, (_, bounds) in read))

    def of_steps(self, *steps: Floats) -> Floats:
        """The same, of values that are on the grids of their bounds."""
        some = any(np.isnan(column.min(initial=0.0)) for column in steps)
        missing = np.logical_or.reduce([np.isnan(column) for column in steps]) if some else None
        filled = steps if missing is None else [np.where(np.isnan(column), 0.0, column) for column in steps]
        results = self.given(*(column.astype(np.int64) for column in filled))
        with np.errstate(all="ignore"):  # of what is no integer
            added = results.astype(np.int64, copy=False).astype(np.float64)
        np.clip(added, *self.reach, out=added)  # what is rounded as a float is far beyond the reach
        if missing is not None:
            added[missing] = np.nan if self.missing is None else self.missing
        return added


@dataclass(frozen=True)
class Reading:
    """A Total of some rows: so many times their number, that of the rows where a column is there, and its sum."""

    addend: OnGrid | Present | RowFunction | None
    rows: int = 0
    present: int = 0
    sum: int = 0


@dataclass(frozen=True)
class Share:
    """The place of a value between its bounds, in whole steps of 2**-bits of the way."""

    lower: int
    upper: int
    bits: int

    def __call__(self, steps: Integers) -> Integers:
        length = self.upper - self.lower  # at most 2**31 steps, so that products fit
        places = np.asarray(steps - self.lower)
        places *= 2 ** (self.bits + 1)
        places += length
        places //= 2 * length
        return places


@dataclass(frozen=True)
class TwoSided:
    """The way from the lower bound, or that to the upper one; both together are the whole way."""

    share: Share
    above: bool

    def __call__(self, steps: Integers) -> Integers:
        share = self.share(steps)
        return share if self.above else 2**self.share.bits - share


@dataclass(frozen=True)
class Bernstein:
    """(1 - t)^2, 2 t (1 - t) or t^2, t being the share: none is negative, and together they are 1, rounded too."""

    share: Share
    power: int  # of t

    def __call__(self, steps: Integers) -> Integers:
        return polynomials(self.share(steps), 2)[self.power]


def polynomials(t: Integers, degree: int) -> tuple[Integers, ...]:
    """1 - t and t, or (1 - t)^2, 2 t (1 - t) and t^2, in steps of 2**-30.

    Squares are rounded down, and the middle takes the rest: so it is no less than its formula, and t, which is the last
    and half the middle, is kept to half a step.
    """
    rest = WHOLE - t
    if degree == 1:
        return rest, t
    below, above = (rest * rest) >> BITS, (t * t) >> BITS
    return below, WHOLE - below - above, above


@dataclass(frozen=True)
class CentredSquare:
    """y^2 - 1/2, y in [-1, 1] being how far the value is from the middle of its bounds, in half ranges."""

    share: Share  # of bits one more than those of y

    def __call__(self, steps: Integers) -> Integers:
        y = self.share(steps) - 2 ** (self.share.bits - 1)
        return np.asarray(y * y - 2 ** (2 * self.share.bits - 3))


@dataclass(frozen=True)
class Squared:
    """x^2 of a value, in steps of 2**30 squared steps of its own, rounded down: at most 2**30 of them."""

    def __call__(self, steps: Integers) -> Integers:
        return np.asarray((steps * steps) >> BITS)


def on_grid(values: NDArray[Any], bounds: Bounds, out: Floats | None = None) -> Floats:
    """Divide by the grid (a power of two: exact), clip, round to nearest, halves up; NaN stays.

    The bounds are whole steps, so no value lies past them after rounding.
    """
    per_unit, lower, upper = _scale(bounds)
    with np.errstate(all="ignore"):  # whatever a value is, nothing is said of it
        steps: Floats = np.multiply(values, per_unit, out=out)
        np.clip(steps, lower, upper, out=steps)
        steps += 0.5
        return np.floor(steps, out=steps)


@cache
def _scale(bounds: Bounds) -> tuple[float, float, float]:
    """The steps of one unit, and those of the bounds."""
    lower, upper = grid_steps(bounds)
    return 1.0 / step_length(bounds), float(lower), float(upper)


def plain_share(row: RowFunction) -> Share | None:
    """The share of one value that a function is, for which kernels and SQL have expressions; None of any other."""
    function = _two_sided(row)
    return function.share if function is not None and function.above else None


def reading_of(row: RowFunction) -> Reading:
    """A function's own column; of the way to the upper bound the other way's, of which it is the rest to a whole.

    Both ways need one column, and one pass over the rows.
    """
    function = _two_sided(row)
    if function is None or function.above:
        return Reading(row, sum=1)
    whole = 2**function.share.bits
    missing = None if row.missing is None else whole - row.missing
    other = replace(row, function=TwoSided(function.share, above=True), missing=missing)
    return Reading(other, present=whole, sum=-1)


def _two_sided(row: RowFunction) -> TwoSided | None:
    """The function as dpframe's own, of which a share follows; any other is called, whatever attributes it has.

    A class that is made from it may add something else. Of other bounds or another reach, clipping would change it.
    """
    function = row.function
    if type(function) is not TwoSided or type(function.share) is not Share or len(row.columns) != 1:
        return None
    share = function.share
    fits = (share.lower, share.upper) == grid_steps(row.columns[0][1]) and share.bits <= BITS
    return function if fits and row.reach == (0, 2**share.bits) else None


def centred_squares(column: str, bounds: tuple[float, float]) -> RowFunction:
    """y^2 - 1/2 of each value, in squared half ranges: what a variance needs of Gaussian noise."""
    share, bits = Share(*grid_steps(bounds), CENTRED_BITS + 1), 2 * CENTRED_BITS
    reach = 2 ** (bits - 1)
    words = f"centred squares of {column}"
    return RowFunction(((column, bounds),), CentredSquare(share), (-reach, reach), 2.0**-bits, words)


def squares(column: str, bounds: tuple[float, float]) -> RowFunction:
    """x^2 of each value: what the sum of a random number of rows varies by."""
    most = max(abs(step) for step in grid_steps(bounds))
    grid = step_length(bounds) ** 2 * WHOLE
    return RowFunction(((column, bounds),), Squared(), (0, (most * most) >> BITS), grid, f"squares of {column}")
