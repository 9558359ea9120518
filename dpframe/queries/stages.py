"""Counts of bins by three looks: at all together, at each bin and at blocks, and last at sums of chosen neighbors.

**The first two.** Where rows are few, a count of one bin tells nothing, and a sum of noisy counts of many bins has the
noise of all of them: a noisy count of the block has that of one. Where they are many, blocks tell nothing that the bins
do not. So the first look says how large blocks are to be, and a row's share of the second is divided between its bin
and its block.

**The last** is at sums of those neighbors of which the looks before have left most open: each row adds to one block on
each level of a tree over them, with weights that are made for the number of levels.

What is decided reads noisy numbers alone; whatever it is, no row adds more than is stated before
(``docs/assurance/privacy.md``, "Three looks"). So the last look costs what any look of its sensitivity costs (adaptive
composition: Dwork and Roth 2014, Corollary B.2; of Gaussian noise Dong, Roth and Su 2022, Theorem 3.2), and that, with
the noise, is fixed before the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise.block_sums import buckets_of, shared_out, within_buckets
from dpframe.denoise.context import in_context
from dpframe.denoise.estimators import Law, NoiseLaw
from dpframe.queries.prefix_sums import Tree
from dpframe.queries.total import Measured, Noise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = TypeVar("Numbers", Floats, Integers)

WEIGHT = 4  # what a row adds to the second look in all: so many steps in the norm of its noise
BESIDE = {True: 1, False: 2}  # of them to its bin where it has a block, by whether the noise is pure: the norm leaves 3
PER, MANY = 6, 1_000  # blocks for each deviation of noise that rows amount to; deviations from which no block is made
FEWEST = 16  # blocks
LEAST = 1e-3  # of the mean variance, which each bin or block has at least
UNEVEN = 0.3  # the part of its own count by which a bin of a block may be off, where only the block was seen


@dataclass(frozen=True)
class OverBins:
    """A design of what is measured of the counts of bins.

    Parameters
    ----------
    shape : tuple of int
        How many bins there are on each axis.
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of bins."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Whole(OverBins):
    """The design of the first look: all bins together."""

    grid = 1.0
    column_sum = 1
    column_square = 1
    width = 1

    def exact_sums(self, counts: Integers) -> Integers:
        """The number of rows in all bins."""
        return np.asarray(counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Seen:
    """The bins as two looks tell them.

    Parameters
    ----------
    values, variances : array
        Of each bin: its count, at least 0, and how much that leaves open, so that the variances of a block add up.
    uneven : array
        The squares of what the counts of bins may be off by because only their block was seen.
    rows : float
        How many there are in all.
    """

    values: Floats
    variances: Floats
    uneven: Floats
    rows: float


@dataclass(frozen=True)
class Blocks(OverBins):
    """The design of the second look, once it is decided: each bin and, from a side of 2 bins on, each block of bins.

    Parameters
    ----------
    side : int
        How many bins a block has on each axis; those at the ends may have fewer. 1: there are no blocks.
    pure : bool
        Whether the noise is for the l_1 norm; else for the l_2 norm.
    """

    side: int
    pure: bool

    @property
    def weights(self) -> tuple[int, int]:
        """The steps that a row adds to its bin and to its block; rounded down, so never more in all than `WEIGHT`."""
        if self.side == 1:
            return WEIGHT, 0
        beside = BESIDE[self.pure]
        return beside, WEIGHT - beside if self.pure else math.isqrt(WEIGHT**2 - beside**2)

    @property
    def times(self) -> float:
        """The factor of the noise of a bin over that of the whole weight."""
        return WEIGHT / self.weights[0]

    def exact_sums(self, counts: Integers) -> Integers:
        """The weighted counts of bins (1, bins) and of their blocks, modulo 2**64, and zeros after them."""
        (bins, block), room = self.weights, room_of(self.shape)
        counts = counts.reshape(1, -1)
        if not block:
            return np.pad(counts * bins, ((0, 0), (0, room)))
        blocks = (self._together(counts.reshape(self.shape)) * block).reshape(1, -1)
        return np.concatenate([counts * bins, np.pad(blocks, ((0, 0), (0, room - blocks.size)))], axis=1)

    def bins(self, noisy: Floats) -> Floats:
        """The unbiased counts of the bins, of the noisy numbers."""
        return noisy[: self.size] * self.times

    def seen(self, whole: Measured, noisy: Floats, noise: Noise) -> Seen:
        """The bins as the first look, at `whole`, and the noisy numbers of this one tell them."""
        counts = self.bins(noisy).reshape(self.shape)
        values, variances = _learned(counts, noise, self.times)
        if self.side == 1:
            rows = _both(whole, float(counts.sum()), self.size * noise.variance)
            return Seen(values, variances, np.zeros(self.shape), rows)
        held = self._together(np.ones(self.shape))
        times = WEIGHT / self.weights[1]
        blocks = noisy[self.size : self.size + held.size].reshape(held.shape) * times
        rows = _both(whole, float(blocks.sum()), held.size * noise.variance * times**2)
        sums, open_sums = _learned(blocks, noise, times)
        names = self._apart(np.arange(held.size).reshape(held.shape))
        inside = within_buckets(values, variances, names, sums.ravel())
        # a bin of a block is off by a part of what it holds, or of what it would hold were all alike
        alike, each = self._apart(sums / held), self._apart(held)
        uneven = UNEVEN**2 * each * np.square(np.maximum(inside, alike))
        return Seen(inside, self._apart(open_sums / held), uneven, rows)

    def _together(self, cells: Numbers) -> Numbers:
        """The sums of the blocks."""
        for axis, length in enumerate(self.shape):
            cells = np.add.reduceat(cells, np.arange(0, length, self.side), axis=axis)
        return cells

    def _apart(self, blocks: Numbers) -> Numbers:
        """For each bin the value of its block."""
        for axis, length in enumerate(self.shape):
            blocks = np.repeat(blocks, self.side, axis=axis).take(np.arange(length), axis=axis)
        return blocks


@dataclass(frozen=True)
class Scales(OverBins):
    """The design of the second look before it is decided.

    Parameters
    ----------
    pure : bool
        Whether the noise is for the l_1 norm; else for the l_2 norm.
    """

    pure: bool

    grid = 1.0 / WEIGHT
    column_square = WEIGHT**2

    @property
    def width(self) -> int:
        """The bins, and room for blocks."""
        return self.size + room_of(self.shape)

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps, with blocks or without."""
        return max(sum(Blocks(self.shape, side, self.pure).weights) for side in (1, 2))

    def decided(self, before: tuple[Measured, ...], noise: Noise) -> Blocks:
        """The blocks, from the noisy number of rows and the noise of this look."""
        (whole,) = before
        deviations = float(whole.values[0]) / math.sqrt(noise.variance) if noise.variance > 0.0 else math.inf
        return Blocks(self.shape, side_of(self.shape, deviations), self.pure)


def side_of(shape: tuple[int, ...], deviations: float) -> int:
    """The number of bins that a block has on each axis: the fewest that leave no more blocks than rows are worth.

    Examples
    --------
    >>> [side_of((4_096,), deviations) for deviations in (2.0, 20.0, 200.0, 2_000.0)]
    [256, 64, 4, 1]
    """
    if deviations >= MANY:
        return 1
    side = 1
    while _blocks(shape, side) > max(PER * deviations, FEWEST):
        side *= 2
    return side


def room_of(shape: tuple[int, ...]) -> int:
    """The most blocks that there may be, whatever is seen."""
    return min(_blocks(shape, 2), PER * MANY)


def _blocks(shape: tuple[int, ...], side: int) -> int:
    return math.prod(-(-length // side) for length in shape)


def _learned(noisy: Floats, noise: Noise, times: float) -> tuple[Floats, Floats]:
    """The counts, at least 0, and how much they leave open; `times` as much noise as `noise` is in them."""
    values, variances = noisy, np.zeros(noisy.shape)
    variance = noise.variance * times**2
    if variance > 0.0:
        law = Law.of(cast(NoiseLaw, noise)).times(times)
        found = in_context(noisy, law, tuple(range(noisy.ndim)), nonnegative=True)
        values, variances = found.values, np.square(found.deviations)
    if not variances.any():  # nothing was learned of them
        variances = np.full(noisy.shape, variance or 1.0)
    return np.maximum(values, 0.0), variances + LEAST * variances.mean()


def _both(whole: Measured, rows: float, variance: float) -> float:
    """The number of rows by two noisy numbers, the more exact one counting for more."""
    first = float(whole.values[0])
    both = whole.noise.variance + variance
    return first if both == 0.0 else (first * variance + rows * whole.noise.variance) / both


MOST, LEAST_BUCKETS = 1_024, 4
MOST_LEVELS = 5  # of a tree over so many buckets, of which at least four make a block
ROOM = 1_408  # blocks of all levels, at most
LAST_WEIGHT = 2**12  # what a row adds in all: so many steps in the norm of the noise
WORTH = {1: 6.0, 2: 9.0}  # noise variances of a sum that a bucket leaves open, by the number of axes
FLAT, TWO = 32, 400  # buckets of a line up to which one level is measured, and up to which two are
SEEN, GROWS = 32.0, 0.7  # rows that are there if fewer are seen, in deviations; this power of them: buckets, at most
MOST_UNEVEN = 16  # times the worth of a bucket: what a bin of a block may be open by


@dataclass(frozen=True)
class Buckets:
    """The design of the last look, once it is decided: a weighted tree over buckets of bins.

    Parameters
    ----------
    values, variances : array
        What the looks before say of each bin, and how much they leave open.
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
    def of(cls, seen: Seen, later: float, pure: bool) -> Buckets:
        """The buckets for what was seen of bins; `later` is the variance of the last noise for a whole row."""
        axes = seen.values.ndim
        worth = WORTH[axes] * later
        variances = seen.variances + np.minimum(seen.uneven, MOST_UNEVEN * worth)
        wanted, levels = float(MOST), None
        if later > 0.0:
            wanted = float(variances.sum()) / worth
            if axes == 1:
                wanted, levels = over_a_line(wanted, seen.rows / math.sqrt(later))
        names = buckets_of(variances, min(max(int(min(wanted, MOST)), LEAST_BUCKETS), variances.size))
        return cls(seen.values, variances, names, pure, levels)

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
        return LAST_WEIGHT // levels if self.pure else math.isqrt(LAST_WEIGHT**2 // levels)

    def exact_sums(self, counts: Integers) -> Integers:
        """The weighted blocks of the exact counts (1, bins), modulo 2**64, and zeros after them."""
        order = np.argsort(self.names, axis=None, kind="stable")
        firsts = np.searchsorted(self.names.ravel()[order], np.arange(self.tree.size))
        blocks = self.tree.exact_sums(np.add.reduceat(counts.reshape(1, -1)[:, order], firsts, axis=1))
        return np.pad(blocks * self.weight, ((0, 0), (0, ROOM - self.tree.width)))

    def fitted(self, noisy: Floats) -> Floats:
        """The counts of the bins, at least 0, by all looks; `noisy` are the blocks of the last, for a whole row."""
        blocks = noisy.reshape(1, -1)[:, : self.tree.width] * (LAST_WEIGHT / self.weight)
        sums = shared_out(np.diff(self.tree.running(blocks)[0], prepend=0.0))
        return within_buckets(self.values, self.variances, self.names, sums)


def over_a_line(wanted: float, rows: float) -> tuple[float, int]:
    """The number of buckets of a line, and of levels over them.

    `wanted` is how many would be worth their noise if each were measured at the whole cost. On h levels the noise of
    each has h^2 times the variance, so fewer are. Where few rows are seen (`rows`, in deviations of the noise), less is
    open than the looks before say, and fewer buckets do.

    Examples
    --------
    >>> over_a_line(20.0, 1e6), over_a_line(200.0, 1e6), over_a_line(4_500.0, 1e6)
    ((20.0, 1), (50.0, 2), (500.0, 3))
    >>> over_a_line(200.0, 10.0)[0] < 12
    True
    """
    levels = 1 if wanted <= FLAT else 2 if wanted <= 4 * TWO else 3
    fewest = {1: 0.0, 2: FLAT / 2.0, 3: TWO / 2.0}[levels]
    buckets, most = max(wanted / levels**2, fewest), max(rows, SEEN) ** GROWS
    if buckets <= most:
        return buckets, levels
    return most, 1 if most <= FLAT else levels


@dataclass(frozen=True)
class Later(OverBins):
    """The design of the last look before it is decided: what blocks of bins may add up to.

    Parameters
    ----------
    pure : bool
        Whether the noise is for the l_1 norm; else for the l_2 norm.
    """

    pure: bool

    grid = 1.0 / LAST_WEIGHT
    column_square = LAST_WEIGHT**2
    width = ROOM

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps, with as many levels as there may be."""
        if self.pure:
            return LAST_WEIGHT
        return max(levels * math.isqrt(LAST_WEIGHT**2 // levels) for levels in range(1, MOST_LEVELS + 1))

    def decided(self, before: tuple[Measured, ...], noise: Noise) -> Buckets:
        """The buckets, from the noisy numbers of the looks before and the noise of this one."""
        whole, bins = before
        assert isinstance(bins.decided, Blocks)
        return Buckets.of(bins.decided.seen(whole, bins.values, bins.noise), noise.variance, self.pure)
