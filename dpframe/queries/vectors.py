"""Totals of several numbers: a row adds a vector of integers to its group; noise is calibrated to its norm.

The Bernstein cells of a pair are such a vector; products for Gaussian noise are separate functions. Both are on the
grid of 2**-30, and only rows in which all columns are present add anything. Values are scaled to y in [-1, 1], or to
t = (1 + y) / 2. Products are rounded down to the grid, so none leaves the range of its formula. One Bernstein cell
takes the rest, so that the cells of a pair add up to 1 in each row.

A row of a group adds f(x), whose l_p norm is at most F. The weight w = min(1, R / ||n||_p) of a unit counts rows by
group, not by entry. In group g, the unit adds w times the sum of its f(x), of norm at most w n_g F, so at most F R in
all. If no entry of the vectors is negative, the l_2 distance under replace is at most sqrt(2) F R: a - b has the
squared norm ||a||^2 + ||b||^2 - 2 <a, b>. Otherwise, it is at most 2 F R (``docs/assurance/privacy.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import harmless, how_many
from dpframe.queries.bins import BinAxis
from dpframe.queries.contrasts import ContrastDesign
from dpframe.queries.grids import Grid
from dpframe.queries.keys import KeyAxis
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.row_functions import BITS, WHOLE, Bernstein, Bounds, RowFunction, Share, TwoSided, polynomials
from dpframe.queries.stages import Later, Scales, Whole
from dpframe.queries.total import (
    WEIGHT_BITS,
    Columns,
    Decided,
    FunctionTotal,
    Measured,
    Noise,
    OfRows,
    Total,
    UnitsTotal,
    VectorTotal,
)
from dpframe.queries.where import plain_name

INNER_BITS = 16  # weighted rows are counted in bins on a grid of 2**-16

Integers = NDArray[np.int64]
Values = tuple[tuple[str, tuple[float, float]], ...]
V = TypeVar("V")


class AsItIs:
    """The shared parts of most vectors: no entry is negative, the noise has one scale, and nothing is decided later."""

    width: Any  # a field, a constant or a property of each class
    signed: bool = False
    contrasts: ContrastDesign | None = None

    @property
    def folded(self) -> int:
        """The number of exact integers of each group to which rows add."""
        return int(self.width)

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """Return None: what is measured is fixed."""
        return None


@dataclass(frozen=True)
class RowVector(AsItIs):
    """Sums of several integer functions of a row, none of which is ever negative.

    Parameters
    ----------
    entries : tuple of RowFunction
        The functions of the same columns, on one grid.
    most : tuple of int
        The largest l_1 norm and the largest squared l_2 norm of what one row adds, in steps.
    words : str
        The measured numbers as text, for plans and records.
    whole : bool
        Whether a row adds 1 in all, so that the entries of a group add up to a count.
    """

    entries: tuple[RowFunction, ...]
    most: tuple[int, int]
    words: str
    whole: bool = False

    cells = 1

    @property
    def width(self) -> int:
        """The number of integers for each group."""
        return len(self.entries)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(column for column, _ in self.values)

    @property
    def values(self) -> Values:
        """The columns whose values are read, with their bounds."""
        return self.entries[0].columns

    def grid(self, weighted: bool) -> float:
        """Return the length of one integer step."""
        return self.entries[0].grid

    def norms(self, weighted: bool) -> tuple[int, int]:
        """Return the largest l_1 norm and the largest squared l_2 norm of what one row adds, in steps."""
        return self.most

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return the integers that each row adds by each of the functions."""
        return np.hstack([FunctionTotal(entry).integers(rows, columns) for entry in self.entries])

    def adds_up_to(self, column: str | None) -> bool:
        """Return whether a group's integers add up exactly to its rows or, for a column, to its present values."""
        everyone = all(entry.missing is not None for entry in self.entries)
        return self.whole and (column is None if everyone else self.columns == (column,))


def row_functions(total: Total) -> tuple[RowFunction, ...]:
    """Return the functions by which rows add to a Total; none for counts and clipped sums."""
    return tuple(entry.row for entry in summed(total, by_units=True) if isinstance(entry, FunctionTotal))


def summed(total: Total, by_units: bool) -> tuple[OfRows, ...]:
    """Return the plain sums over rows that make up a Total; none if it is more than that.

    If each row is a unit (`by_units` is false), a unit adds what its row adds.
    """
    match total:
        case OfRows():
            return (total,)
        case VectorTotal(vector=RowVector() as vector):
            return tuple(FunctionTotal(entry) for entry in vector.entries)
        case UnitsTotal(once=False) if not by_units:
            return (total.of_rows,)
        case _:
            return ()


def vector_of(total: Total, kind: type[V]) -> V | None:
    """Return the vector of this kind that a Total measures; None for any other Total."""
    return total.vector if isinstance(total, VectorTotal) and isinstance(total.vector, kind) else None


@dataclass(frozen=True)
class InnerCounts(AsItIs):
    """The numbers that a design measures from counts of neighboring bins, such as those behind running counts.

    Parameters
    ----------
    column : str or None
        The column that is cut into bins; None if the last axes of the keys are the bins.
    cuts : tuple of float
        The cuts between the bins; the number of cuts up to a value is its bin.
    bounds : tuple of two floats
        The bounds to which values are clipped.
    design : PrefixSums, Tree, Grid, Whole, Scales or Later
        The numbers to measure from the counts.
    called : str
        The measured numbers as text.
    before : tuple of Total
        The earlier stages, if their noisy numbers decide what the design measures.
    """

    column: str | None
    cuts: tuple[float, ...]
    bounds: tuple[float, float]
    design: PrefixSums | Tree | Grid | Whole | Scales | Later
    called: str = "running counts"
    before: tuple[Total, ...] = ()

    @property
    def width(self) -> int:
        """The number of integers for each group."""
        return self.design.width

    @property
    def folded(self) -> int:
        """The number of exact integers of each group to which rows add: for a later stage, the number of bins."""
        return self.bins if self.before else self.width

    @property
    def bins(self) -> int:
        """The number of bins for each group."""
        return self.design.size

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in addition to those of the keys."""
        return () if self.column is None else (self.column,)

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the measured sums of the bins' counts, one row for each group; for a later stage, the counts."""
        if isinstance(self.design, Scales | Later):
            return counts
        return self.design.exact_sums(counts)

    @property
    def cells(self) -> int:
        """The number of neighboring cells in one group of rows."""
        return self.design.size if self.column is None else 1

    @property
    def values(self) -> Values:
        """The columns whose values are read, with their bounds."""
        return () if self.column is None else ((self.column, self.bounds),)

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""
        of = "" if self.column is None else f" of {self.column}"
        return f"{self.called}{of} over {how_many(self.design.size, 'bin')}"

    def grid(self, weighted: bool) -> float:
        """Return the length of one integer step."""
        return self.design.grid * (2.0**-INNER_BITS if weighted else 1.0)

    def norms(self, weighted: bool) -> tuple[int, int]:
        """Return the largest l_1 norm and the largest squared l_2 norm of what one row adds, in steps."""
        scale = 2**INNER_BITS if weighted else 1
        return self.design.column_sum * scale, self.design.column_square * scale**2

    def places(self, values: NDArray[Any]) -> Integers:
        """Return the bin of each value of the column; -1 for NaN, which is in none."""
        code = np.searchsorted(np.array(self.cuts, dtype=np.float64), values, side="right")
        return np.where(np.isnan(values), -1, code).astype(np.int64)

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return 1 for each row with a value or, if bins are cells of the keys, for each row; otherwise, 0."""
        if self.column is None:
            return np.ones((rows, 1), dtype=np.int64)
        return (self.places(columns[self.column]) >= 0).astype(np.int64)[:, None]

    def adds_up_to(self, column: str | None) -> bool:
        """Return False: running counts do not add up to a count."""
        return False

    def decided(self, measured: Mapping[Total, Measured], noise: Noise) -> Decided | None:
        """Return the blocks or buckets that earlier stages decide; None for a design without earlier stages."""
        if not self.before:
            return None
        assert isinstance(self.design, Scales | Later)
        return self.design.decided(tuple(measured[look] for look in self.before), noise)


class OneOfEach(AsItIs):
    """The shared parts of vectors of one column that is no key: a present value adds 1 to one entry of its group."""

    axis: Any  # a field of each class
    cells: int = 1
    values: Values = ()

    @property
    def bins(self) -> int:
        """The number of entries for each group."""
        return int(self.width)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        columns: tuple[str, ...] = self.axis.columns
        return columns

    @property
    def column(self) -> str:
        """The column whose values are counted."""
        return self.columns[0]

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the measured sums of the counts of each group: the counts themselves."""
        return counts

    def grid(self, weighted: bool) -> float:
        """Return the length of one integer step."""
        return 2.0**-INNER_BITS if weighted else 1.0

    def norms(self, weighted: bool) -> tuple[int, int]:
        """Return the largest l_1 norm and the largest squared l_2 norm of what one row adds, in steps."""
        scale = 2**INNER_BITS if weighted else 1
        return scale, scale**2

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return 1 for each present value."""
        return columns[self.column].astype(np.int64)[:, None]


@dataclass(frozen=True)
class Matches(OneOfEach):
    """The number of a column's values that equal one declared value, and of all others, without missing ones.

    Parameters
    ----------
    axis : KeyAxis
        The column and the value, which is compared as a declared key is.
    """

    axis: KeyAxis

    width = 2

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""
        name, value = plain_name(self.column), self.axis.values(0)[0]
        return harmless(f"values of {name} that are {value!r}, and others{self.column.removeprefix(name)}")

    def adds_up_to(self, column: str | None) -> bool:
        """Return whether the column is its own: both entries add up to the number of its present values."""
        return column == self.column


@dataclass(frozen=True)
class BinCounts(OneOfEach):
    """The numbers of a column's values in declared bins that are no cells of the keys; missing values are in none.

    Parameters
    ----------
    axis : BinAxis
        The column and the edges of its bins, into which values fall as those of a histogram do.
    """

    axis: BinAxis

    @property
    def width(self) -> int:
        """The number of integers for each group."""
        return self.axis.size

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""
        return harmless(f"values of {self.column} in {how_many(self.axis.size, 'bin')}")

    def adds_up_to(self, column: str | None) -> bool:
        """Return False: values in no bin are left out, so the entries do not add up to a count."""
        return False


@dataclass(frozen=True)
class TableContrasts(AsItIs):
    """The contrasts of all tables of up to some number of attributes; a row with an undeclared value adds nothing.

    Parameters
    ----------
    axes : tuple of KeyAxis or DateAxis
        The attributes and their declared values, one column each.
    design : ContrastDesign
        The contrasts to measure, and the relative scales of their noise. Norms are those of the contrasts divided by
        these scales.
    """

    axes: tuple[Any, ...]
    design: ContrastDesign

    cells = 1
    signed = True
    values: ClassVar[Values] = ()

    @property
    def contrasts(self) -> ContrastDesign:  # type: ignore[override]  # a constant in other classes
        """The design, for which the noise must be made."""
        return self.design

    @property
    def width(self) -> int:
        """The number of integers."""
        return self.design.width

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(column for axis in self.axes for column in axis.columns)

    @property
    def words(self) -> str:
        """The measured numbers as text, for plans and records."""
        return f"{how_many(self.width, 'contrast')} of {how_many(len(self.design.tables), 'table')}"

    def grid(self, weighted: bool) -> float:
        """Return the length of one integer step."""
        return 2.0**-INNER_BITS if weighted else 1.0

    def norms(self, weighted: bool) -> tuple[int | Fraction, int | Fraction]:
        """Return the squared l_2 norm of what one row adds, in steps over scales, twice: noise is always Gaussian."""
        squared = self.design.cost * (4**INNER_BITS if weighted else 1)
        return squared, squared

    def integers(self, rows: int, columns: Columns) -> Integers:
        """Return 1 for each row with a declared value in all columns."""
        there: NDArray[np.bool_] = np.logical_and.reduce([columns[column] for column in self.columns])
        return there.astype(np.int64)[:, None]

    def adds_up_to(self, column: str | None) -> bool:
        """Return False: contrasts do not add up to a count."""
        return False


HALF = 2 ** (BITS - 1)


@dataclass(frozen=True)
class AllThere:
    """1 if all values are present, on a grid as fine as that of weighted rows."""

    def __call__(self, *steps: Integers) -> Integers:
        return np.full(steps[0].shape, 2**WEIGHT_BITS, dtype=np.int64)


@dataclass(frozen=True)
class CentredProduct:
    """y of one column, y^2 - 1/2 of a column named twice, or the product of y of two columns."""

    shares: tuple[Share, ...]  # of all columns
    places: tuple[int, ...]

    def __call__(self, *steps: Integers) -> Integers:
        each = [2 * self.shares[place](steps[place]) - WHOLE for place in self.places]
        if len(each) == 1:
            return np.asarray(each[0])
        rounded = (each[0] * each[1]) >> BITS
        return np.asarray(rounded - HALF if self.places[0] == self.places[1] else rounded)


@dataclass(frozen=True)
class PairCell:
    """The product of a Bernstein polynomial of one value and one of another; the cells of a pair add up to 1.

    All cells except the first are rounded down, and the first takes the rest. It is not negative: no other cell exceeds
    its formula, and the formulas of all cells add up to 1.
    """

    shares: tuple[Share, Share]
    places: tuple[int, int]  # of the two columns among all
    degree: int
    powers: tuple[int, int]

    def __call__(self, *steps: Integers) -> Integers:
        first, second = (
            polynomials(share(steps[place]), self.degree) for share, place in zip(self.shares, self.places, strict=True)
        )
        if self.powers != (0, 0):
            return np.asarray((first[self.powers[0]] * second[self.powers[1]]) >> BITS)
        others = [(polynomial * other) >> BITS for polynomial in first for other in second][1:]
        return np.asarray(WHOLE - sum(others))


def centred_products(values: Values) -> tuple[RowFunction, ...]:
    """Return functions for Gaussian noise: the count of rows, y and y^2 - 1/2 of each column, and products of pairs."""
    shares = tuple(Share(*grid_steps(bounds), BITS) for _, bounds in values)
    columns = [column for column, _ in values]
    counted = RowFunction(values, AllThere(), (0, 2**WEIGHT_BITS), 2.0**-WEIGHT_BITS, f"rows with {_listed(columns)}")
    size = range(len(values))
    sums = [((i,), WHOLE, f"centred sum of {columns[i]}") for i in size]
    squares = [((i, i), HALF, f"centred squares of {columns[i]}") for i in size]
    both = [((i, j), WHOLE, f"products of {columns[i]} and {columns[j]}") for i, j in pairs(len(values))]
    others = tuple(
        RowFunction(values, CentredProduct(shares, places), (-most, most), 2.0**-BITS, f"{words}, {_listed(columns)}")
        for places, most, words in (*sums, *squares, *both)
    )
    return (counted, *others)


def pair_cells(values: Values, i: int, j: int, degree: int) -> RowVector:
    """Return the Bernstein cells of two of the columns, of degree 1 (means and covariance) or 2 (also variances)."""
    shares = tuple(Share(*grid_steps(values[position][1]), BITS) for position in (i, j))
    words = f"Bernstein cells of {values[i][0]} and {values[j][0]}"
    if len(values) > 2:
        words += f", {_listed([column for column, _ in values])}"
    entries = tuple(
        RowFunction(values, PairCell((shares[0], shares[1]), (i, j), degree, (a, b)), (0, WHOLE), 2.0**-BITS, words)
        for a, b in product(range(degree + 1), repeat=2)
    )
    return RowVector(entries, (WHOLE, WHOLE**2), words, whole=True)


def pairs(size: int) -> list[tuple[int, int]]:
    """Return the pairs of different columns, each once."""
    return [(i, j) for i in range(size) for j in range(i + 1, size)]


def _listed(columns: list[str]) -> str:
    return f"all of {', '.join(columns)}"


@lru_cache(maxsize=256)
def two_sided(column: str, bounds: tuple[float, float], *, everyone: bool = False) -> RowVector:
    """Return the sums of values' distances to both bounds, in ranges: what a mean needs under pure noise.

    With `everyone`, a missing value counts as the middle: both distances are then half the range.
    """
    share, bits = Share(*grid_steps(bounds), BITS), BITS
    words = f"distances of {column} to its bounds"
    halfway = 2 ** (bits - 1) if everyone else None
    entries = tuple(
        RowFunction(((column, bounds),), TwoSided(share, above), (0, 2**bits), 2.0**-bits, words, halfway)
        for above in (True, False)
    )
    return RowVector(entries, (2**bits, 2 ** (2 * bits)), words, whole=True)


def bernstein(column: str, bounds: tuple[float, float]) -> RowVector:
    """Return the sums of Bernstein's polynomials of degree two: what a variance needs under pure noise."""
    share, bits = Share(*grid_steps(bounds), BITS), BITS
    words = f"Bernstein sums of {column}"
    entries = tuple(
        RowFunction(((column, bounds),), Bernstein(share, power), (0, 2**bits), 2.0**-bits, words) for power in range(3)
    )
    return RowVector(entries, (2**bits, 2 ** (2 * bits)), words, whole=True)


@dataclass(frozen=True)
class WeighedValue:
    """The product of a value and its weight, rounded to the nearest step, which is 2**30 products of their steps."""

    def __call__(self, value: Integers, weight: Integers) -> Integers:
        return np.asarray((value * weight + HALF) >> BITS)


@dataclass(frozen=True)
class WeighedWay:
    """The weight times a value's distance from its lower bound, or to its upper one; both add up to the weight."""

    share: Share
    above: bool

    def __call__(self, value: Integers, weight: Integers) -> Integers:
        part = (self.share(value) * weight + HALF) >> BITS
        return np.asarray(part if self.above else weight - part)


def weighed_values(column: str, bounds: Bounds, weight: str, weight_bounds: Bounds) -> RowFunction:
    """Return the function value times weight, whose extremes lie at corners of both bounds."""
    corners = [np.int64(value) * step for value in grid_steps(bounds) for step in grid_steps(weight_bounds)]
    reached = [int((corner + HALF) >> BITS) for corner in corners]
    grid = step_length(bounds) * step_length(weight_bounds) * WHOLE
    words = f"sum of {column} times {weight}"
    values = ((column, bounds), (weight, weight_bounds))
    return RowFunction(values, WeighedValue(), (min(reached), max(reached)), grid, words)


def weighed_ways(column: str, bounds: Bounds, weight: str, weight_bounds: Bounds) -> RowVector:
    """Return the sums of values' weighted distances to both bounds, in ranges, for a weighted mean.

    None is negative, and a row adds its weight in all. So the l_1 and l_2 norms are at most the largest weight.
    """
    share, (_, most) = Share(*grid_steps(bounds), BITS), grid_steps(weight_bounds)
    words = f"distances of {column} to its bounds, times {weight}"
    values = ((column, bounds), (weight, weight_bounds))
    entries = tuple(
        RowFunction(values, WeighedWay(share, above), (0, most), step_length(weight_bounds), words)
        for above in (True, False)
    )
    return RowVector(entries, (most, most**2), words)
