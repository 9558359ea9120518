"""Noisy running counts: by a tree for pure noise, by the square-root factorization for Gaussian noise.

**A tree without its root** serves pure noise, whose cost is the number of levels. Level l counts the rows in blocks of
b**l neighboring bins, for l = 0, ..., h - 1, so that one row is in h blocks, one on each level. Least squares over all
blocks give the running counts (Hay, Rastogi, Miklau and Suciu, VLDB 2010). The root, which would count all rows, is
left out: each row is charged for each level, so this saves one level.

**The square-root factorization** serves Gaussian noise, and is close to the least possible error. The matrix of
running sums is the square of a lower triangular Toeplitz matrix C with the first column c_0 = 1,
c_k = c_(k-1) (2k - 1) / (2k) (Fichtenberger, Henzinger and Upadhyay, "Constant matters", ICML 2023). C x is measured,
where x are the counts of the bins, and the running counts are computed from it. The entries of C are rounded to
2**-12, so that C x is a whole number of steps. Everything below is exact for the rounded matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BITS = 12  # for one axis, the entries of C are whole multiples of 2**-12
BRANCHINGS = (4, 6, 8, 12, 16, 24, 32)  # of a tree, in addition to a flat histogram


@dataclass(frozen=True)
class PrefixSums:
    """The design: the integers to measure from the counts of `size` bins, and the running counts computed from them.

    Parameters
    ----------
    size : int
        The number of bins, which are in order.
    bits : int
        The entries of the matrix are whole multiples of 2**-bits.

    Examples
    --------
    >>> import numpy as np
    >>> design = PrefixSums(4)
    >>> noisy = design.exact_sums(np.array([[3, 1, 4, 1]])) * design.grid  # as if there were no noise
    >>> design.running(noisy)
    array([[3., 4., 8., 9.]])
    """

    size: int
    bits: int = BITS

    @property
    def width(self) -> int:
        """The number of measured values."""
        return self.size

    @property
    def grid(self) -> float:
        """The length of a measured step, for counts of whole rows."""
        return 2.0**-self.bits

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps: that of the first column."""
        return int(coefficients(self.size, self.bits).sum())

    @property
    def column_square(self) -> int:
        """The largest squared l_2 norm of what one row adds, in measured steps: that of the first column."""
        return int((coefficients(self.size, self.bits) ** 2).sum())

    def exact_sums(self, counts: Integers) -> Integers:
        """Return C x of each group (groups, bins), in steps, modulo 2**64: the order of additions does not matter."""
        sums = np.zeros_like(counts)
        for behind, coefficient in enumerate(coefficients(self.size, self.bits).tolist()):
            sums[:, behind:] += coefficient * counts[:, : self.size - behind]
        return sums

    def running(self, noisy: Floats) -> Floats:
        """Return the running counts F of each group: running sums of the solution of C x = y; linear, so unbiased."""
        return _solved(self.size, self.bits, np.cumsum(noisy, axis=1))

    @cached_property
    def variances(self) -> Floats:
        """The variance of each running count, for measured numbers whose noise has variance 1."""
        return np.asarray(np.cumsum(_inverse(self.size, self.bits) ** 2))

    @cached_property
    def with_last(self) -> Floats:
        """The covariance of each running count with the last one, which is the total."""
        entries = _inverse(self.size, self.bits)
        return np.asarray(np.convolve(entries, entries[::-1])[: self.size])

    @cached_property
    def bin_variances(self) -> Floats:
        """The variance of the count of each bin, the difference of two running counts."""
        return np.asarray(np.cumsum(np.diff(_inverse(self.size, self.bits), prepend=0.0) ** 2))

    @property
    def largest_variance(self) -> float:
        """The largest variance of a sum of neighboring bins.

        The noise of bins i + 1 to i + d is the sum of b_m z over d entries, and of (b_(m+d) - b_m) z over i more. So
        among sums of one length the last has the largest variance, and only sums up to the last bin are compared.
        """
        last = self.variances[-1] + self.variances[:-1] - 2.0 * self.with_last[:-1]
        return float(max(self.variances[-1], last.max(initial=0.0)))

    @property
    def error(self) -> float:
        """The root mean squared error of the running counts at mu = 1, if one row is protected."""
        return math.sqrt(self.column_square * float(self.variances.mean())) * self.grid


@cache
def coefficients(size: int, bits: int = BITS) -> Integers:
    """Return the first column of C in steps of 2**-bits. It decreases; its entries are the same for every size."""
    places = np.arange(1, size, dtype=np.float64)
    column = np.concatenate([[1.0], np.cumprod((2.0 * places - 1.0) / (2.0 * places))])
    rounded: Integers = np.rint(column * 2.0**bits).astype(np.int64)
    rounded.flags.writeable = False
    return rounded


@cache
def _inverse(size: int, bits: int) -> Floats:
    """Return b, the first column of A C^-1 (A adds up): noise z in C x is noise in F_i, the sum of b_(i-j) z_j."""
    first_column: Floats = _solved(size, bits, np.ones((1, size)))[0]
    first_column.flags.writeable = False
    return first_column


def _solved(size: int, bits: int, right: Floats) -> Floats:
    """Return the solution of C x = right for each row, by forward substitution."""
    column = coefficients(size, bits) * 2.0**-bits
    solution = np.empty(right.shape)
    for row in range(size):
        solution[:, row] = right[:, row] - solution[:, :row] @ column[row:0:-1]
    return solution


def weights_of_total(kept: Sequence[int]) -> Floats:
    """Return the weight of each y in the running total up to the last kept period."""
    return _read_off(tuple(kept), total=True)


def weights_of_period(kept: Sequence[int]) -> Floats:
    """Return the weight of each y in the number of the last kept period, with the lost periods directly before it."""
    return _read_off(tuple(kept), total=False)


@cache
def _read_off(kept: tuple[int, ...], *, total: bool) -> Floats:
    """Return the weights z with z C = 1 (or 1 at the last place alone), solved from the last to the first."""
    column, places = coefficients(kept[-1]) * 2.0**-BITS, np.asarray(kept)
    weights = np.zeros(places.size)
    for place in range(places.size - 1, -1, -1):
        after = slice(place + 1, None)
        wanted = 1.0 if total or place == places.size - 1 else 0.0
        weights[place] = wanted - weights[after] @ column[places[after] - places[place]]
    weights.flags.writeable = False
    return weights


@dataclass(frozen=True)
class Tree:
    """The design: blocks of neighboring bins on several levels.

    Parameters
    ----------
    size : int
        The number of bins, which are in order.
    branching : int
        The number of blocks of one level in a block of the next; at least 2. `size` makes a flat histogram.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Tree(5, 2)
    >>> tree.levels, tree.width
    (3, 10)
    >>> tree.exact_sums(np.array([[3, 1, 4, 1, 5]]))
    array([[3, 1, 4, 1, 5, 4, 5, 5, 9, 5]])
    >>> tree.running(tree.exact_sums(np.array([[3, 1, 4, 1, 5]])).astype(float)).round(6)
    array([[ 3.,  4.,  8.,  9., 14.]])
    """

    size: int
    branching: int

    @classmethod
    def best(cls, size: int) -> Tree:
        """Return the tree with the least root mean squared error of running counts; the size alone decides."""
        return _best(size)

    @classmethod
    def best_of_sums(cls, size: int) -> Tree:
        """Return the tree with the least root mean squared error of all sums of neighboring bins; most are short."""
        return min(_candidates(size), key=lambda tree: tree.levels**2 * tree.mean_variance)

    @cached_property
    def levels(self) -> int:
        """The least h with branching**h >= size, by integer powers, since a float logarithm may round up."""
        levels, blocks = 1, self.branching
        while blocks < self.size:
            levels, blocks = levels + 1, blocks * self.branching
        return levels

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of blocks of each level, the bins first."""
        return tuple(-(-self.size // self.branching**level) for level in range(self.levels))

    @property
    def width(self) -> int:
        """The number of measured values."""
        return sum(self.sizes)

    @property
    def grid(self) -> float:
        """The length of a measured step, for counts of whole rows."""
        return 1.0

    @property
    def column_sum(self) -> int:
        """The l_1 norm of what one row adds: 1 on each level."""
        return self.levels

    @property
    def column_square(self) -> int:
        """The squared l_2 norm of what one row adds: 1 on each level."""
        return self.levels

    def exact_sums(self, counts: Integers) -> Integers:
        """Return the blocks of each group (groups, bins), the bins first, modulo 2**64."""
        blocks = [counts]
        for _ in range(1, self.levels):
            blocks.append(np.add.reduceat(blocks[-1], self._firsts(len(blocks)), axis=1))
        return np.concatenate(blocks, axis=1)

    def running(self, noisy: Floats) -> Floats:
        """Return the running counts F of each group by least squares; all noise has one variance."""
        measured = np.split(noisy, np.cumsum(self.sizes)[:-1], axis=1)
        best, spreads = [measured[0]], [np.ones(self.size)]  # of each block: its estimate from itself and those below
        for level in range(1, self.levels):
            firsts = self._firsts(level)
            below, spread = np.add.reduceat(best[-1], firsts, axis=1), np.add.reduceat(spreads[-1], firsts)
            best.append((below + spread * measured[level]) / (1.0 + spread))
            spreads.append(spread / (1.0 + spread))
        for level in reversed(range(1, self.levels)):  # shares out the difference of a block and its parts
            firsts, parent = self._firsts(level), np.arange(self.sizes[level - 1]) // self.branching
            spread = np.add.reduceat(spreads[level - 1], firsts)
            left = best[level] - np.add.reduceat(best[level - 1], firsts, axis=1)
            best[level - 1] = best[level - 1] + left[:, parent] * (spreads[level - 1] / spread[parent])
        return np.cumsum(best[0], axis=1)

    @property
    def variances(self) -> Floats:
        """The variance of each running count, for measured numbers whose noise has variance 1."""
        return self._spread[0]

    @property
    def with_last(self) -> Floats:
        """The covariance of each running count with the last one, which is the total."""
        return self._spread[1]

    @cached_property
    def bin_variances(self) -> Floats:
        """The variance of the count of each bin."""
        sums, variances = np.ones(self.size), np.ones(self.size)  # row sums of M^-1 and its diagonal: see `_spread`
        for level in range(1, self.levels):
            block = np.arange(self.size) // self.branching**level
            whole = 1.0 + np.bincount(block, sums)[block]
            variances, sums = variances - sums**2 / whole, sums / whole
        return variances

    @cached_property
    def largest_variance(self) -> float:
        """The largest variance of a sum of neighboring bins, within a block of the topmost level or across several."""
        extremes = {size: _extremes(_block(self.branching, self.levels - 1, size)) for size in set(self._tops())}
        inner, first, last, whole = np.array([extremes[size] for size in self._tops()]).T
        behind = np.cumsum(whole)  # blocks are independent: a sum is a tail of one, all between, and a head of another
        reached = np.maximum.accumulate(last - behind)
        across = first[1:] + behind[:-1] + reached[:-1]
        return float(max(inner.max(), across.max(initial=0.0)))

    @property
    def mean_variance(self) -> float:
        """The mean of the variances of all sums of neighboring bins.

        Each is a difference of two running counts F_0 = 0, ..., F_n. The mean is n + 1 times the sum of the variances
        of F, less the variance of the sum of all F, over the number of pairs. That sum holds bin i n - i times.
        """
        times = np.arange(self.size, 0.0, -1.0)
        sums, square = np.ones(self.size), float(times @ times)
        for level in range(1, self.levels):
            block = np.arange(self.size) // self.branching**level
            whole = 1.0 + np.bincount(block, sums)
            square -= float((np.bincount(block, sums * times) ** 2 / whole).sum())
            sums = sums / whole[block]
        pairs = self.size * (self.size + 1) / 2.0
        return ((self.size + 1) * float(self.variances.sum()) - square) / pairs

    @property
    def error(self) -> float:
        """The root mean squared error of running counts at epsilon 1 (for fine noise), if one row is protected."""
        return math.sqrt(2.0 * float(self.variances.mean())) * self.levels

    @cached_property
    def _spread(self) -> tuple[Floats, Floats]:
        """The variances of the running counts, and their covariances with the last, from the bins up.

        Within a block, let M be the inverse covariance of its bins' estimates from measurements inside it. If only the
        parts of a block are measured, M is block diagonal. Measuring the block too adds 1 1^T, and the formula of
        Sherman and Morrison takes a a^T / (1 + t) off M^-1 (a: its row sums over a prefix, t: over all).
        """
        total = np.ones(self.size)  # 1^T M^-1 1 of each block
        prefix, square = np.ones(self.size), np.ones(self.size)  # p^T M^-1 1 and p^T M^-1 p, in the block of each bin
        for level in range(1, self.levels):
            firsts, block = self._firsts(level), np.arange(self.size) // self.branching ** (level - 1)
            before = np.cumsum(total) - total
            before -= np.repeat(before[firsts], np.diff(np.append(firsts, total.size)))  # within the parent
            prefix, square = before[block] + prefix, before[block] + square
            total = np.add.reduceat(total, firsts)
            whole = 1.0 + total[block // self.branching]
            square = square - prefix**2 / whole
            prefix, total = prefix / whole, total / (1.0 + total)
        block = np.arange(self.size) // self.branching ** (self.levels - 1)
        before = (np.cumsum(total) - total)[block]
        return before + square, before + prefix

    def _tops(self) -> list[int]:
        """Return the number of bins in each block of the topmost level."""
        most = self.branching ** (self.levels - 1)
        return [min(most, self.size - first) for first in range(0, self.size, most)]

    def _firsts(self, level: int) -> Integers:
        """Return the first part of each block of a level, among the blocks of the level below."""
        return np.arange(self.sizes[level]) * self.branching


@cache
def _best(size: int) -> Tree:
    return min(_candidates(size), key=lambda tree: tree.error)


def _candidates(size: int) -> list[Tree]:
    """Return a flat histogram, and trees of several branchings."""
    return [Tree(size, max(size, 2)), *(Tree(size, branching) for branching in BRANCHINGS if branching < size)]


def _block(branching: int, level: int, size: int) -> Floats:
    """Return the covariances of the bins in one block of a level, from its parts up: see `Tree._spread`."""
    if level == 0:
        return np.ones((1, 1))
    whole, last = divmod(size, branching ** (level - 1))
    covariances, end = np.zeros((size, size)), size - last
    if whole:
        covariances[:end, :end] = np.kron(np.eye(whole), _block(branching, level - 1, branching ** (level - 1)))
    if last:
        covariances[end:, end:] = _block(branching, level - 1, last)
    sums = covariances.sum(axis=1)
    return np.asarray(covariances - np.outer(sums, sums / (1.0 + sums.sum())))


def _extremes(covariances: Floats) -> tuple[float, float, float, float]:
    """Return the largest variances of sums of neighbors (any, from the first, up to the last), and that of all."""
    corner = np.pad(np.cumsum(np.cumsum(covariances, axis=0), axis=1), (1, 0))  # of running counts, after a first of 0
    variances = np.diag(corner)
    sums = variances[:, None] + variances - 2.0 * corner
    return float(sums.max()), float(variances.max()), float(sums[:, -1].max()), float(variances[-1])
