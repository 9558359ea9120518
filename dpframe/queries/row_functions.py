"""Integer functions of values on the grid of their bounds: a row adds them to totals of products and shares.

Each is a value of its own: equal where its numbers are, and it can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.clipping import grid_steps
from dpframe.queries.total import RowFunction
from dpframe.queries.vectors import RowVector

Integers = NDArray[np.int64]

BITS = 30  # a value lies at a whole number of 2**-30 of the way between its bounds: no sum wraps below 2**33 rows
WHOLE = 2**BITS
CENTRED_BITS = 16  # and at one of 2**-16 of half the way from the middle; squares have 2**32 steps


@dataclass(frozen=True)
class Share:
    """The place of a value between its bounds, in whole steps of 2**-bits of the way."""

    lower: int
    upper: int
    bits: int

    def __call__(self, steps: Integers) -> Integers:
        length = self.upper - self.lower  # at most 2**31 steps, so that products fit
        return np.asarray(((steps - self.lower) * 2 ** (self.bits + 1) + length) // (2 * length))


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


def centred_squares(column: str, bounds: tuple[float, float]) -> RowFunction:
    """y^2 - 1/2 of each value, in squared half ranges: what a variance needs of Gaussian noise."""
    share, bits = Share(*grid_steps(bounds), CENTRED_BITS + 1), 2 * CENTRED_BITS
    reach = 2 ** (bits - 1)
    words = f"centred squares of {column}"
    return RowFunction(((column, bounds),), CentredSquare(share), (-reach, reach), 2.0**-bits, words)
