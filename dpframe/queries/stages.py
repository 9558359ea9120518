"""Two looks at the counts of bins: at each bin, then at sums of those neighbors of which the first has left most open.

The second look is decided by the noisy numbers of the first, so it costs what any look of its sensitivity costs
(adaptive composition: Dwork and Roth 2014, Theorem 3.16; of Gaussian noise Dong, Roth and Su 2022, Theorem 4). Its
sensitivity, and the noise, are fixed before the first: whatever the buckets are, each row adds to one block on each
level of a tree over them, with weights that are made for the number of levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise.buckets import buckets_of, shared_out, within_buckets
from dpframe.denoise.context import in_context
from dpframe.denoise.noise_law import NoiseLaw
from dpframe.queries.total import Measured, Noise
from dpframe.queries.trees import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST, FEWEST = 1_024, 4  # buckets
MOST_LEVELS = 5  # of a tree over so many buckets, of which at least four make a block
ROOM = 1_408  # blocks of all levels, at most
WEIGHT = 2**12  # what a row adds in all: so many steps in the norm of the noise
WORTH = {1: 6.0, 2: 9.0}  # noise variances of a sum that a bucket leaves open, by the number of axes
FLAT = {1: 32, 2: 128}  # buckets up to which one level is measured: sums of a rectangle are no runs of buckets
TWO = 400  # buckets of a line up to which two levels are
SEEN, GROWS = 32.0, 0.7  # rows that are there if fewer are seen, in deviations of a sum; the power of them that
EACH = {1: 1.0, 2: 5.0}  # times this is the most buckets
LEAST = 1e-3  # of the mean variance, which each cell has at least


@dataclass(frozen=True)
class Cells:
    """The design of the first look: each bin by itself.

    Parameters
    ----------
    shape : tuple of int
        How many bins there are on each axis.
    """

    shape: tuple[int, ...]

    grid = 1.0
    column_sum = 1
    column_square = 1

    @property
    def size(self) -> int:
        """The number of bins."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """The number of measured values."""
        return self.size

    def measured(self, counts: Integers) -> Integers:
        """The counts themselves."""
        return counts


@dataclass(frozen=True)
class Buckets:
    """The design of the second look, once it is decided: a weighted tree over buckets of bins.

    Parameters
    ----------
    values, variances : array
        What the first look says of each bin, and how much it leaves open.
    names : array of integers
        The bucket of each bin.
    pure : bool
        Whether the noise is for the l_1 norm; else for the l_2 norm.
    levels : int, optional
        Of the tree over the buckets; by their number alone where it is not given.
    """

    values: Floats
    variances: Floats
    names: Integers
    pure: bool
    levels: int | None = None

    @classmethod
    def of(cls, noisy: Floats, noise: Noise, later: float, pure: bool) -> Buckets:
        """The buckets for these noisy counts of bins; `later` is the variance of the second noise for a whole row."""
        values, variances = noisy, np.zeros(noisy.shape)
        if noise.variance > 0.0:
            found = in_context(noisy, cast(NoiseLaw, noise), tuple(range(noisy.ndim)), nonnegative=True)
            values, variances = found.values, np.square(found.deviations)
        if not variances.any():  # nothing was learned of them
            variances = np.full(noisy.shape, noise.variance or 1.0)
        variances = variances + LEAST * variances.mean()
        wanted, levels = float(MOST), None
        if later > 0.0:
            worth = float(variances.sum()) / (WORTH[noisy.ndim] * later)
            wanted, levels = sized(worth, float(noisy.sum()) / math.sqrt(later), noisy.ndim)
        names = buckets_of(variances, min(max(int(min(wanted, MOST)), FEWEST), noisy.size))
        return cls(np.maximum(values, 0.0), variances, names, pure, levels)

    @cached_property
    def tree(self) -> Tree:
        """The tree over the buckets, in the order in which they were halved."""
        size = int(self.names.max()) + 1
        if self.levels is None:
            return Tree.best_of_sums(size)
        return Tree(size, next(branching for branching in count(2) if branching**self.levels >= size))

    @cached_property
    def weight(self) -> int:
        """The steps that a row adds to each of its blocks, one on each level; rounded down, so never more in all."""
        levels = self.tree.levels
        return WEIGHT // levels if self.pure else math.isqrt(WEIGHT**2 // levels)

    def measured(self, counts: Integers) -> Integers:
        """The weighted blocks of the exact counts (1, bins), modulo 2**64, and zeros after them."""
        order = np.argsort(self.names, axis=None, kind="stable")
        firsts = np.searchsorted(self.names.ravel()[order], np.arange(self.tree.size))
        blocks = self.tree.measured(np.add.reduceat(counts.reshape(1, -1)[:, order], firsts, axis=1))
        return np.pad(blocks * self.weight, ((0, 0), (0, ROOM - self.tree.width)))

    def fitted(self, noisy: Floats) -> Floats:
        """The counts of the bins, at least 0, by both looks; `noisy` are the blocks of the second, for a whole row."""
        blocks = noisy.reshape(1, -1)[:, : self.tree.width] * (WEIGHT / self.weight)
        sums = shared_out(np.diff(self.tree.running(blocks)[0], prepend=0.0))
        return within_buckets(self.values, self.variances, self.names, sums)


def sized(wanted: float, rows: float, axes: int) -> tuple[float, int | None]:
    """The number of buckets, and of levels over them; None of many on a grid, whose number tells.

    `wanted` is how many would be worth their noise if each were measured at the whole price. On h levels the noise of
    each has h^2 times the variance, so fewer are. Where few rows are seen (`rows`, in deviations of the noise), less is
    open than the first look says, and fewer buckets do.

    Examples
    --------
    >>> sized(20.0, 1e6, 1), sized(200.0, 1e6, 1), sized(4_500.0, 1e6, 1)
    ((20.0, 1), (50.0, 2), (500.0, 3))
    >>> sized(100.0, 1e6, 2), sized(200.0, 1e6, 2)
    ((100.0, 1), (200.0, None))
    >>> sized(200.0, 10.0, 1)[0] < 12
    True
    """
    flat, most = FLAT[axes], EACH[axes] * max(rows, SEEN) ** GROWS
    buckets, levels = wanted, 1 if wanted <= flat else None
    if axes == 1 and levels is None:
        levels = 2 if wanted <= 4 * TWO else 3
        buckets = max(wanted / levels**2, {2: flat, 3: TWO}[levels] / 2.0)
    if buckets <= most:
        return buckets, levels
    return most, 1 if most <= flat else levels


@dataclass(frozen=True)
class Later(Cells):
    """The design of the second look before it is decided: each bin, and what blocks of them may add up to.

    Parameters
    ----------
    shape : tuple of int
        How many bins there are on each axis.
    pure : bool
        Whether the noise is for the l_1 norm; else for the l_2 norm.
    """

    pure: bool

    grid = 1.0 / WEIGHT
    column_square = WEIGHT**2

    @property
    def width(self) -> int:
        """The room for the blocks."""
        return ROOM

    @property
    def column_sum(self) -> int:  # type: ignore[override]  # of bins alone it is a constant
        """The largest l_1 norm of what one row adds, in measured steps, with as many levels as there may be."""
        if self.pure:
            return WEIGHT
        return max(levels * math.isqrt(WEIGHT**2 // levels) for levels in range(1, MOST_LEVELS + 1))

    def decided(self, first: Measured, noise: Noise) -> Buckets:
        """The buckets, from the noisy counts of the first look and the noise of the second."""
        return Buckets.of(first.values.reshape(self.shape), first.noise, noise.variance, self.pure)
