"""Counts of bins in three stages: all bins together, then each bin and blocks of bins, then sums of chosen neighbors.

**The first two stages.** If there are few rows, the noise hides the count of one bin, and a sum of many noisy counts
has the noise of all of them; a noisy count of the whole block has the noise of one. If there are many rows, blocks add
no information to the bins. So the first stage decides the size of blocks, and a row's share of the second stage is
divided between its bin and its block.

**The third stage** measures sums of the neighboring bins whose counts are the least certain after the second. Each row
adds to one block on each level of a tree over them, with weights for that number of levels.

Decisions read noisy numbers alone, and whatever they are, no row adds more than is stated before them
(``docs/assurance/privacy.md``, "Three looks"). So the third stage costs the same as any stage with its sensitivity
(adaptive composition: Dwork and Roth 2014, Corollary B.2; for Gaussian noise Dong, Roth and Su 2022, Theorem 3.2). Its
cost and its noise are fixed before the first stage.
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

WEIGHT = 4  # what a row adds to the second stage in all: steps, in the norm of its noise
BESIDE = {True: 1, False: 2}  # its steps for a bin in a block, by whether noise is pure; the norm leaves 3 for a block
PER, MANY = 6, 1_000  # blocks for each noise deviation in the number of rows; deviations from which there are none
FEWEST = 16  # blocks, which are always allowed
LEAST = 1e-3  # the part of the mean variance that is added to that of each bin or block
UNEVEN = 0.3  # the part of its count by which a bin may be off if only its block was measured


@dataclass(frozen=True)
class OverBins:
    """A design of the numbers to measure from the counts of bins.

    Parameters
    ----------
    shape : tuple of int
        The number of bins on each axis.
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of bins."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Whole(OverBins):
    """The design of the first stage: all bins together."""

    grid = 1.0
    column_sum = 1
    column_square = 1
    width = 1

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the number of rows in all bins."""
        return np.asarray(counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Seen:
    """Estimates for the bins after two stages.

    Parameters
    ----------
    values, variances : array
        The count of each bin, at least 0, and its remaining variance; the variances of a block add up.
    uneven : array
        The squared errors that the counts of bins may have because only their block was measured.
    rows : float
        The number of rows in all bins.
    """

    values: Floats
    variances: Floats
    uneven: Floats
    rows: float


@dataclass(frozen=True)
class Blocks(OverBins):
    """The design of the second stage, once it is decided: each bin and, from a side of 2 bins on, each block of bins.

    Parameters
    ----------
    side : int
        The number of bins of a block on each axis; blocks at the ends may have fewer. With 1, there are no blocks.
    pure : bool
        Whether the noise is for the l_1 norm; otherwise, it is for the l_2 norm.
    """

    side: int
    pure: bool

    @property
    def weights(self) -> tuple[int, int]:
        """The steps that a row adds to its bin and to its block, rounded down so that their norm is at most WEIGHT."""
        if self.side == 1:
            return WEIGHT, 0
        beside = BESIDE[self.pure]
        return beside, WEIGHT - beside if self.pure else math.isqrt(WEIGHT**2 - beside**2)

    @property
    def times(self) -> float:
        """The noise of a bin's count, as a multiple of the noise of a count with the whole weight."""
        return WEIGHT / self.weights[0]

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the weighted counts of bins (1, bins) and of their blocks, modulo 2**64, and zeros after them."""
        (bins, block), room = self.weights, room_of(self.shape)
        counts = counts.reshape(1, -1)
        if not block:
            return np.pad(counts * bins, ((0, 0), (0, room)))
        blocks = (self._together(counts.reshape(self.shape)) * block).reshape(1, -1)
        return np.concatenate([counts * bins, np.pad(blocks, ((0, 0), (0, room - blocks.size)))], axis=1)

    def bins(self, noisy: Floats) -> Floats:
        """Return the unbiased counts of the bins from the noisy numbers."""
        return noisy[: self.size] * self.times

    def seen(self, whole: Measured, noisy: Floats, noise: Noise) -> Seen:
        """Return estimates for the bins from the first stage, `whole`, and the noisy numbers of this one."""
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
        # a bin of a block may be off by a part of its own count, or of the mean count in the block
        alike, each = self._apart(sums / held), self._apart(held)
        uneven = UNEVEN**2 * each * np.square(np.maximum(inside, alike))
        return Seen(inside, self._apart(open_sums / held), uneven, rows)

    def _together(self, cells: Numbers) -> Numbers:
        """Return the sums of the blocks."""
        for axis, length in enumerate(self.shape):
            cells = np.add.reduceat(cells, np.arange(0, length, self.side), axis=axis)
        return cells

    def _apart(self, blocks: Numbers) -> Numbers:
        """Return for each bin the value of its block."""
        for axis, length in enumerate(self.shape):
            blocks = np.repeat(blocks, self.side, axis=axis).take(np.arange(length), axis=axis)
        return blocks


@dataclass(frozen=True)
class Scales(OverBins):
    """The design of the second stage before it is decided.

    Parameters
    ----------
    pure : bool
        Whether the noise is for the l_1 norm; otherwise, it is for the l_2 norm.
    """

    pure: bool

    grid = 1.0 / WEIGHT
    column_square = WEIGHT**2

    @property
    def width(self) -> int:
        """The number of bins, and room for blocks."""
        return self.size + room_of(self.shape)

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps, with blocks or without."""
        return max(sum(Blocks(self.shape, side, self.pure).weights) for side in (1, 2))

    def decided(self, before: tuple[Measured, ...], noise: Noise) -> Blocks:
        """Return the blocks, from the noisy number of rows and the noise of this stage."""
        (whole,) = before
        deviations = float(whole.values[0]) / math.sqrt(noise.variance) if noise.variance > 0.0 else math.inf
        return Blocks(self.shape, side_of(self.shape, deviations), self.pure)


def side_of(shape: tuple[int, ...], deviations: float) -> int:
    """Return the side of blocks in bins: the smallest power of two that makes few enough blocks for the rows.

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
    """Return the largest possible number of blocks, whatever the first stage shows."""
    return min(_blocks(shape, 2), PER * MANY)


def _blocks(shape: tuple[int, ...], side: int) -> int:
    return math.prod(-(-length // side) for length in shape)


def _learned(noisy: Floats, noise: Noise, times: float) -> tuple[Floats, Floats]:
    """Return the adjusted counts, at least 0, and their variances; the noise in `noisy` is `times` that of `noise`."""
    values, variances = noisy, np.zeros(noisy.shape)
    variance = noise.variance * times**2
    if variance > 0.0:
        law = Law.of(cast(NoiseLaw, noise)).times(times)
        found = in_context(noisy, law, tuple(range(noisy.ndim)), nonnegative=True)
        values, variances = found.values, np.square(found.deviations)
    if not variances.any():  # nothing was learned about them
        variances = np.full(noisy.shape, variance or 1.0)
    return np.maximum(values, 0.0), variances + LEAST * variances.mean()


def _both(whole: Measured, rows: float, variance: float) -> float:
    """Return the number of rows from two noisy numbers, weighted by their precision."""
    first = float(whole.values[0])
    both = whole.noise.variance + variance
    return first if both == 0.0 else (first * variance + rows * whole.noise.variance) / both


MOST, LEAST_BUCKETS = 1_024, 4
MOST_LEVELS = 5  # of a tree over `MOST` buckets, if at least four make a block
ROOM = 1_408  # the most blocks of all levels
LAST_WEIGHT = 2**12  # what a row adds to the third stage in all: steps, in the norm of its noise
WORTH = {1: 6.0, 2: 9.0}  # a bucket's remaining variance, in noise variances of a sum, by the number of axes
FLAT, TWO = 32, 400  # the most buckets of a line for one level, and for two levels
SEEN, GROWS = 32.0, 0.7  # the least number of rows to assume, in deviations; its power that limits buckets
MOST_UNEVEN = 16  # the most that `uneven` adds to a bin's variance, in multiples of the variance of a bucket


@dataclass(frozen=True)
class Buckets:
    """The design of the third stage, once it is decided: a weighted tree over buckets of bins.

    Parameters
    ----------
    values, variances : array
        The estimate of each bin from the earlier stages, and its remaining variance.
    names : array of integers
        The bucket of each bin.
    pure : bool
        Whether the noise is for the l_1 norm; otherwise, it is for the l_2 norm.
    levels : int, optional
        The levels of the tree over the buckets; if not given, the number of buckets decides.
    """

    values: Floats
    variances: Floats
    names: Integers
    pure: bool
    levels: int | None = None

    @classmethod
    def of(cls, seen: Seen, later: float, pure: bool) -> Buckets:
        """Return the buckets for the estimates of bins; `later` is the third stage's noise variance for a whole row."""
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
        """The tree over the buckets, in the order in which bins were halved into them."""
        size = int(self.names.max()) + 1
        if self.levels is None:
            return Tree.best_of_sums(size)
        return Tree(size, next(branching for branching in count(2) if branching**self.levels >= size))

    @cached_property
    def weight(self) -> int:
        """The steps that a row adds to its block on each level, rounded down, so that their norm is never too large."""
        levels = self.tree.levels
        return LAST_WEIGHT // levels if self.pure else math.isqrt(LAST_WEIGHT**2 // levels)

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the weighted blocks of the exact counts (1, bins), modulo 2**64, and zeros after them."""
        order = np.argsort(self.names, axis=None, kind="stable")
        firsts = np.searchsorted(self.names.ravel()[order], np.arange(self.tree.size))
        blocks = self.tree.exact_sums(np.add.reduceat(counts.reshape(1, -1)[:, order], firsts, axis=1))
        return np.pad(blocks * self.weight, ((0, 0), (0, ROOM - self.tree.width)))

    def fitted(self, noisy: Floats) -> Floats:
        """Return the bins' counts, at least 0, from all stages; `noisy` has the third's blocks, for a whole row."""
        blocks = noisy.reshape(1, -1)[:, : self.tree.width] * (LAST_WEIGHT / self.weight)
        sums = shared_out(np.diff(self.tree.running(blocks)[0], prepend=0.0))
        return within_buckets(self.values, self.variances, self.names, sums)


def over_a_line(wanted: float, rows: float) -> tuple[float, int]:
    """Return the number of buckets of a line, and of levels over them.

    `wanted` is the number of buckets that would be worth their noise if each were measured at the whole cost. On h
    levels, the noise of each has h^2 times the variance, so fewer are. If few rows are seen (`rows`, in deviations of
    the noise), less is uncertain than the earlier stages say, and fewer buckets suffice.

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
    """The design of the third stage before it is decided.

    Parameters
    ----------
    pure : bool
        Whether the noise is for the l_1 norm; otherwise, it is for the l_2 norm.
    """

    pure: bool

    grid = 1.0 / LAST_WEIGHT
    column_square = LAST_WEIGHT**2
    width = ROOM

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps, for any number of levels."""
        if self.pure:
            return LAST_WEIGHT
        return max(levels * math.isqrt(LAST_WEIGHT**2 // levels) for levels in range(1, MOST_LEVELS + 1))

    def decided(self, before: tuple[Measured, ...], noise: Noise) -> Buckets:
        """Return the buckets, from the noisy numbers of the earlier stages and the noise of this one."""
        whole, bins = before
        assert isinstance(bins.decided, Blocks)
        return Buckets.of(bins.decided.seen(whole, bins.values, bins.noise), noise.variance, self.pure)
