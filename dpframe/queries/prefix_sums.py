"""Noisy running counts by the square-root factorization: for Gaussian noise, close to the least error that is possible.

The matrix of running sums is the square of a lower triangular Toeplitz matrix C with the first column c_0 = 1,
c_k = c_(k-1) (2k - 1) / (2k) (Fichtenberger, Henzinger and Upadhyay, "Constant matters", ICML 2023). What is measured
is C x of the counts x of the bins, and the running counts are read off it. The entries of C are rounded to 2**-12, so
that C x is a whole number of steps: everything below is exact for the rounded matrix, whatever its entries are.
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

BITS = 12  # the entries of the matrix of a line are whole multiples of 2**-12


@dataclass(frozen=True)
class PrefixSums:
    """The design: which whole numbers are measured of the counts of `size` bins, and how running counts are read off.

    Parameters
    ----------
    size : int
        How many bins there are, in order.
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
        """C x of each group (groups, bins), in steps, modulo 2**64: integers, so no order of addition matters."""
        sums = np.zeros_like(counts)
        for behind, coefficient in enumerate(coefficients(self.size, self.bits).tolist()):
            sums[:, behind:] += coefficient * counts[:, : self.size - behind]
        return sums

    def running(self, noisy: Floats) -> Floats:
        """The running counts F of each group: the solution of C x = y, added up; linear, and so unbiased."""
        return _solved(self.size, self.bits, np.cumsum(noisy, axis=1))

    @cached_property
    def variances(self) -> Floats:
        """The variance of each running count, of measured numbers whose noise has variance 1."""
        return np.asarray(np.cumsum(_inverse(self.size, self.bits) ** 2))

    @cached_property
    def with_last(self) -> Floats:
        """The covariance of each running count with the last one, which is the number of all."""
        entries = _inverse(self.size, self.bits)
        return np.asarray(np.convolve(entries, entries[::-1])[: self.size])

    @cached_property
    def bin_variances(self) -> Floats:
        """The variance of the count of each bin, the difference of two running counts."""
        return np.asarray(np.cumsum(np.diff(_inverse(self.size, self.bits), prepend=0.0) ** 2))

    @property
    def largest_variance(self) -> float:
        """The largest variance of a sum of neighboring bins.

        The noise of bins i + 1 to i + d is the sum of b_m z over d entries, and of (b_(m+d) - b_m) z over i more: of
        those of one length the last sum has the most. So it is enough to look at the ends of the line.
        """
        last = self.variances[-1] + self.variances[:-1] - 2.0 * self.with_last[:-1]
        return float(max(self.variances[-1], last.max(initial=0.0)))

    @property
    def error(self) -> float:
        """The root mean squared error of the running counts at mu = 1, where one row is protected."""
        return math.sqrt(self.column_square * float(self.variances.mean())) * self.grid


@cache
def coefficients(size: int, bits: int = BITS) -> Integers:
    """The first column of C in steps of 2**-bits. It decreases; its entries are the same for every size."""
    places = np.arange(1, size, dtype=np.float64)
    column = np.concatenate([[1.0], np.cumprod((2.0 * places - 1.0) / (2.0 * places))])
    rounded: Integers = np.rint(column * 2.0**bits).astype(np.int64)
    rounded.flags.writeable = False
    return rounded


@cache
def _inverse(size: int, bits: int) -> Floats:
    """The first column of A C^-1 (A adds up): noise z of C x becomes the noise sum of b_(i-j) z_j of F_i."""
    first_column: Floats = _solved(size, bits, np.ones((1, size)))[0]
    first_column.flags.writeable = False
    return first_column


def _solved(size: int, bits: int, right: Floats) -> Floats:
    """The solution of C x = right for each row, by forward substitution."""
    column = coefficients(size, bits) * 2.0**-bits
    solution = np.empty(right.shape)
    for row in range(size):
        solution[:, row] = right[:, row] - solution[:, :row] @ column[row:0:-1]
    return solution


def weights_of_total(kept: Sequence[int]) -> Floats:
    """The weight of each y in the running total up to the last period that is there."""
    return _read_off(tuple(kept), total=True)


def weights_of_period(kept: Sequence[int]) -> Floats:
    """The weight of each y in the number of the last period alone, with the lost ones directly before it."""
    return _read_off(tuple(kept), total=False)


@cache
def _read_off(kept: tuple[int, ...], *, total: bool) -> Floats:
    """The weights z with z C = 1 (or 1 at the last place alone), from the last to the first."""
    column, places = coefficients(kept[-1]) * 2.0**-BITS, np.asarray(kept)
    weights = np.zeros(places.size)
    for place in range(places.size - 1, -1, -1):
        after = slice(place + 1, None)
        wanted = 1.0 if total or place == places.size - 1 else 0.0
        weights[place] = wanted - weights[after] @ column[places[after] - places[place]]
    weights.flags.writeable = False
    return weights
