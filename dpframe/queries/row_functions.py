"""The integers that rows add to Totals: each function is defined here, once.

An addend is a value on the grid of its bounds, the presence of a value, or an integer function of several values. All
uncompiled paths of the engines call its `steps`. Compiled kernels and the SQL of Spark have their own expressions,
which tests compare with it. A Total is computed from the sums of one addend: see `Reading`.

Steps are floats, so that NaN marks a missing value. They are whole and within +-2**31, so that each is exact.
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

LARGEST_REACH = 2**31  # of a row, in steps; the sum of 2**22 rows of a unit is then exact as a float
STEPS = "two whole numbers of steps within +-2**31"
BITS = 30  # a value's place between its bounds is a multiple of 2**-30: no sum overflows below 2**33 rows
WHOLE = 2**BITS
CENTRED_BITS = 16  # a value's distance from the middle is a multiple of 2**-16 half ranges; squares have 2**32 steps


class Addend(Protocol):
    """A column of integers that rows add to a Total."""

    def steps(self, *values: NDArray[Any]) -> Floats:
        """Return the integers that each row adds, from the values of its columns; NaN if one is missing."""


@dataclass(frozen=True)
class OnGrid:
    """The values of a column in whole steps of the grid of its bounds, clipped to them."""

    column: str
    bounds: Bounds

    def steps(self, *values: NDArray[Any]) -> Floats:
        """Return the steps of each value; NaN if it is missing."""
        (only,) = values
        return on_grid(only, self.bounds)


@dataclass(frozen=True)
class Present:
    """1 for each value of a column that is present, and 0 for a missing one."""

    column: str

    def steps(self, *values: NDArray[Any]) -> Floats:
        """Return the flags of present values as numbers."""
        (only,) = values
        return only.astype(np.float64)


@dataclass(frozen=True)
class RowFunction:
    """An integer function of a row's clipped values, which the row adds to a Total that is no plain count or sum.

    Parameters
    ----------
    columns : tuple of (column, bounds)
        The values that the function reads, each clipped to its bounds and counted in the steps of its grid
        (`step_length` of the bounds). A row in which one of them is missing adds nothing.
    function : callable
        Takes an int64 array for each column, with one entry for each row, and returns the int64 array of what each row
        adds. It must depend on the entries of a row alone, never fail, and be defined at the top of a module, so that
        it can be pickled. Each engine decides how many rows it passes at once; the arrays are read-only. The function
        must not print, log or warn: dpframe does not suppress that.
    reach : tuple of int
        The least and the greatest that a row may add, in steps, within +-2**31. Results of the function are clipped to
        them, so that the sensitivity holds whatever it does.
    grid : float
        The length of a step of the result, in its own units.
    words : str
        The measured quantity as text, for plans and records.
    missing : int, optional
        What a row with a missing value adds, within the reach; nothing by default.
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
        """Return the integers of rows without missing values; the function is called only here."""
        for column in steps:
            column.flags.writeable = False
        with np.errstate(all="ignore"):  # no warning may depend on a value
            return np.asarray(self.function(*steps))

    def steps(self, *values: NDArray[Any]) -> Floats:
        """Return the integers that each row adds, within the reach; for a missing value, `missing` or NaN."""
        read = zip(values, self.columns, strict=True)
        return self.of_steps(*(on_grid(column, bounds) for column, (_, bounds) in read))

    def of_steps(self, *steps: Floats) -> Floats:
        """Return the same for values that are already on the grids of their bounds."""
        some = any(np.isnan(column.min(initial=0.0)) for column in steps)
        missing = np.logical_or.reduce([np.isnan(column) for column in steps]) if some else None
        filled = steps if missing is None else [np.where(np.isnan(column), 0.0, column) for column in steps]
        results = self.given(*(column.astype(np.int64) for column in filled))
        with np.errstate(all="ignore"):  # a result may be no integer
            added = results.astype(np.int64, copy=False).astype(np.float64)
        np.clip(added, *self.reach, out=added)  # only integers far beyond the reach are rounded as floats
        if missing is not None:
            added[missing] = np.nan if self.missing is None else self.missing
        return added


@dataclass(frozen=True)
class Reading:
    """The weights in a Total of the number of rows, of the rows with a present addend, and of the addend's sum."""

    addend: OnGrid | Present | RowFunction | None
    rows: int = 0
    present: int = 0
    sum: int = 0


@dataclass(frozen=True)
class Share:
    """The place of a value between its bounds, in whole steps of 2**-bits of the range."""

    lower: int
    upper: int
    bits: int

    def __call__(self, steps: Integers) -> Integers:
        length = self.upper - self.lower  # at most 2**31 steps, so that products fit 64 bits
        places = np.asarray(steps - self.lower)
        places *= 2 ** (self.bits + 1)
        places += length
        places //= 2 * length
        return places


@dataclass(frozen=True)
class TwoSided:
    """The distance from the lower bound, or the distance to the upper one; both add up to the whole range."""

    share: Share
    above: bool

    def __call__(self, steps: Integers) -> Integers:
        share = self.share(steps)
        return share if self.above else 2**self.share.bits - share


@dataclass(frozen=True)
class Bernstein:
    """(1 - t)^2, 2 t (1 - t) or t^2 of the share t: none is negative, and they add up to 1 even when rounded."""

    share: Share
    power: int  # of t

    def __call__(self, steps: Integers) -> Integers:
        return polynomials(self.share(steps), 2)[self.power]


def polynomials(t: Integers, degree: int) -> tuple[Integers, ...]:
    """Return 1 - t and t, or (1 - t)^2, 2 t (1 - t) and t^2, in steps of 2**-30.

    Squares are rounded down, and the middle takes the rest. So the middle is at least its formula, and t, which is the
    last plus half the middle, stays exact to half a step.
    """
    rest = WHOLE - t
    if degree == 1:
        return rest, t
    below, above = (rest * rest) >> BITS, (t * t) >> BITS
    return below, WHOLE - below - above, above


@dataclass(frozen=True)
class CentredSquare:
    """y^2 - 1/2, where y in [-1, 1] is the distance of a value from the middle of its bounds, in half ranges."""

    share: Share  # with one bit more than y

    def __call__(self, steps: Integers) -> Integers:
        y = self.share(steps) - 2 ** (self.share.bits - 1)
        return np.asarray(y * y - 2 ** (2 * self.share.bits - 3))


@dataclass(frozen=True)
class Squared:
    """x^2 of a value, rounded down to steps of 2**30 squared steps of the value: at most 2**30 steps."""

    def __call__(self, steps: Integers) -> Integers:
        return np.asarray((steps * steps) >> BITS)


def on_grid(values: NDArray[Any], bounds: Bounds, out: Floats | None = None) -> Floats:
    """Divide by the grid (a power of two: exact), clip, round to nearest, halves up; NaN stays.

    The bounds are whole steps, so no value lies past them after rounding.
    """
    per_unit, lower, upper = _scale(bounds)
    with np.errstate(all="ignore"):  # no warning may depend on a value
        steps: Floats = np.multiply(values, per_unit, out=out)
        np.clip(steps, lower, upper, out=steps)
        steps += 0.5
        return np.floor(steps, out=steps)


@cache
def _scale(bounds: Bounds) -> tuple[float, float, float]:
    """Return the steps of one unit, and those of the bounds."""
    lower, upper = grid_steps(bounds)
    return 1.0 / step_length(bounds), float(lower), float(upper)


def plain_share(row: RowFunction) -> Share | None:
    """Return the share of one value that a function is, for which kernels and SQL have expressions; else None."""
    function = _two_sided(row)
    return function.share if function is not None and function.above else None


def reading_of(row: RowFunction) -> Reading:
    """Return the reading of a function; the distance to the upper bound is the range less the other distance.

    So both distances need one addend, and one pass over the rows.
    """
    function = _two_sided(row)
    if function is None or function.above:
        return Reading(row, sum=1)
    whole = 2**function.share.bits
    missing = None if row.missing is None else whole - row.missing
    other = replace(row, function=TwoSided(function.share, above=True), missing=missing)
    return Reading(other, present=whole, sum=-1)


def _two_sided(row: RowFunction) -> TwoSided | None:
    """Return the function if it is dpframe's own `TwoSided`, so that its share replaces it; None for any other.

    Any other is called: a subclass may differ, and other bounds or another reach would clip the result differently.
    """
    function = row.function
    if type(function) is not TwoSided or type(function.share) is not Share or len(row.columns) != 1:
        return None
    share = function.share
    fits = (share.lower, share.upper) == grid_steps(row.columns[0][1]) and share.bits <= BITS
    return function if fits and row.reach == (0, 2**share.bits) else None


def centred_squares(column: str, bounds: tuple[float, float]) -> RowFunction:
    """Return the function y^2 - 1/2 of a value, in squared half ranges, for a variance under Gaussian noise."""
    share, bits = Share(*grid_steps(bounds), CENTRED_BITS + 1), 2 * CENTRED_BITS
    reach = 2 ** (bits - 1)
    words = f"centred squares of {column}"
    return RowFunction(((column, bounds),), CentredSquare(share), (-reach, reach), 2.0**-bits, words)


def squares(column: str, bounds: tuple[float, float]) -> RowFunction:
    """Return the function x^2 of a value, whose sum is the variance of a sum over a random number of rows."""
    most = max(abs(step) for step in grid_steps(bounds))
    grid = step_length(bounds) ** 2 * WHOLE
    return RowFunction(((column, bounds),), Squared(), (0, (most * most) >> BITS), grid, f"squares of {column}")
