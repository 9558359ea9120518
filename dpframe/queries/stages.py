"""The last look at the counts of bins: at sums of those neighbors of which the looks before have left most open.

It is decided by the noisy numbers of those before (`dpframe.queries.scales`), so it costs what any look of its
sensitivity costs (adaptive composition: Dwork and Roth 2014, Corollary B.2; of Gaussian noise Dong, Roth and Su 2022,
Theorem 3.2). Its sensitivity, and the noise, are fixed before the first: whatever the buckets are, each row adds to one
block on each level of a tree over them, with weights that are made for the number of levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise.block_sums import buckets_of, shared_out, within_buckets
from dpframe.queries.scales import Blocks, OverBins, Seen
from dpframe.queries.total import Measured, Noise
from dpframe.queries.trees import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST, FEWEST = 1_024, 4  # buckets
MOST_LEVELS = 5  # of a tree over so many buckets, of which at least four make a block
ROOM = 1_408  # blocks of all levels, at most
WEIGHT = 2**12  # what a row adds in all: so many steps in the norm of the noise
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
        names = buckets_of(variances, min(max(int(min(wanted, MOST)), FEWEST), variances.size))
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
        return WEIGHT // levels if self.pure else math.isqrt(WEIGHT**2 // levels)

    def exact_sums(self, counts: Integers) -> Integers:
        """The weighted blocks of the exact counts (1, bins), modulo 2**64, and zeros after them."""
        order = np.argsort(self.names, axis=None, kind="stable")
        firsts = np.searchsorted(self.names.ravel()[order], np.arange(self.tree.size))
        blocks = self.tree.exact_sums(np.add.reduceat(counts.reshape(1, -1)[:, order], firsts, axis=1))
        return np.pad(blocks * self.weight, ((0, 0), (0, ROOM - self.tree.width)))

    def fitted(self, noisy: Floats) -> Floats:
        """The counts of the bins, at least 0, by all looks; `noisy` are the blocks of the last, for a whole row."""
        blocks = noisy.reshape(1, -1)[:, : self.tree.width] * (WEIGHT / self.weight)
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

    grid = 1.0 / WEIGHT
    column_square = WEIGHT**2
    width = ROOM

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps, with as many levels as there may be."""
        if self.pure:
            return WEIGHT
        return max(levels * math.isqrt(WEIGHT**2 // levels) for levels in range(1, MOST_LEVELS + 1))

    def decided(self, before: tuple[Measured, ...], noise: Noise) -> Buckets:
        """The buckets, from the noisy numbers of the looks before and the noise of this one."""
        whole, bins = before
        assert isinstance(bins.decided, Blocks)
        return Buckets.of(bins.decided.seen(whole, bins.values, bins.noise), noise.variance, self.pure)
