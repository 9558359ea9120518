"""Rows as the Totals of covariances count them: products of values on the grid of 2**-30, and their Bernstein cells.

Only rows in which all columns are present add anything. Values are scaled to y in [-1, 1], or to t = (1 + y) / 2.
Products are rounded down to the grid: so no entry is beyond what its formula allows, and the entries of a vector, of
which one takes the rest, add up to 1 in each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.row_functions import BITS, WHOLE, Bernstein, Bounds, RowFunction, Share, TwoSided, polynomials
from dpframe.queries.total import WEIGHT_BITS
from dpframe.queries.vectors import RowVector, Values

Integers = NDArray[np.int64]

HALF = 2 ** (BITS - 1)


@dataclass(frozen=True)
class AllThere:
    """1 where all values are present; on a grid as fine as that of weighted rows."""

    def __call__(self, *steps: Integers) -> Integers:
        return np.full(steps[0].shape, 2**WEIGHT_BITS, dtype=np.int64)


@dataclass(frozen=True)
class CentredProduct:
    """y of one column, y^2 - 1/2 of one named twice, or the product of the y of two."""

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
    """The product of one Bernstein polynomial of a value and one of another's; those of a pair add up to 1.

    All but the first are rounded down, and the first takes the rest: it is not negative, for none of the others is
    above its formula, and these add up to 1.
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
    """The number of rows, then y of each column, y^2 - 1/2 of each, and the products of pairs: for Gaussian noise."""
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
    """The Bernstein cells of two of the columns, of degree 1 (means and covariance) or 2 (also variances)."""
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
    """The pairs of different columns, each once."""
    return [(i, j) for i in range(size) for j in range(i + 1, size)]


def _listed(columns: list[str]) -> str:
    return f"all of {', '.join(columns)}"


@lru_cache(maxsize=256)
def two_sided(column: str, bounds: tuple[float, float], *, everyone: bool = False) -> RowVector:
    """The way of each value from the lower bound and to the upper one, in ranges: what a mean needs of pure noise.

    With `everyone` a missing value counts as the middle: both ways are then half of the whole.
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
    """Bernstein's polynomials of degree two of each value: what a variance needs of pure noise."""
    share, bits = Share(*grid_steps(bounds), BITS), BITS
    words = f"Bernstein sums of {column}"
    entries = tuple(
        RowFunction(((column, bounds),), Bernstein(share, power), (0, 2**bits), 2.0**-bits, words) for power in range(3)
    )
    return RowVector(entries, (2**bits, 2 ** (2 * bits)), words, whole=True)


@dataclass(frozen=True)
class WeighedValue:
    """The product of a value and its weight, in steps of 2**30 products of their own; rounded to the nearest."""

    def __call__(self, value: Integers, weight: Integers) -> Integers:
        return np.asarray((value * weight + HALF) >> BITS)


@dataclass(frozen=True)
class WeighedWay:
    """The weight times the way of a value from its lower bound, or to its upper one; both together are the weight."""

    share: Share
    above: bool

    def __call__(self, value: Integers, weight: Integers) -> Integers:
        part = (self.share(value) * weight + HALF) >> BITS
        return np.asarray(part if self.above else weight - part)


def weighed_values(column: str, bounds: Bounds, weight: str, weight_bounds: Bounds) -> RowFunction:
    """The product of each value and its weight: a row adds the largest at corners of both bounds, or nothing."""
    corners = [np.int64(value) * step for value in grid_steps(bounds) for step in grid_steps(weight_bounds)]
    reached = [int((corner + HALF) >> BITS) for corner in corners]
    grid = step_length(bounds) * step_length(weight_bounds) * WHOLE
    words = f"sum of {column} times {weight}"
    values = ((column, bounds), (weight, weight_bounds))
    return RowFunction(values, WeighedValue(), (min(reached), max(reached)), grid, words)


def weighed_ways(column: str, bounds: Bounds, weight: str, weight_bounds: Bounds) -> RowVector:
    """The weighted ways of each value from the lower bound and to the upper one, in ranges: for a weighted mean.

    None is negative, and a row adds its weight in all: so both norms are at most the largest weight.
    """
    share, (_, most) = Share(*grid_steps(bounds), BITS), grid_steps(weight_bounds)
    words = f"distances of {column} to its bounds, times {weight}"
    values = ((column, bounds), (weight, weight_bounds))
    entries = tuple(
        RowFunction(values, WeighedWay(share, above), (0, most), step_length(weight_bounds), words)
        for above in (True, False)
    )
    return RowVector(entries, (most, most**2), words)
