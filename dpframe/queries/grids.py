"""Noisy sums of rectangles of a grid, by a design for each axis; and adjusted counts of at least 0.

Raising each negative count to 0 by itself would increase every sum. Instead, the total is raised to 0 at least and
shared out among its quarters, then each quarter among its own, down to the cells. Each time, the parts become the
nearest counts of at least 0 that add up to the whole. If most counts are far from 0, or their sums have little noise,
this would still increase errors, so an estimate of these decides. All of it is post-processing of noisy numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.quotients import nearest_shares
from dpframe.queries.total import Noise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Array = TypeVar("Array", Integers, Floats)


@dataclass(frozen=True)
class Grid:
    """The design of a grid.

    Parameters
    ----------
    first, second : PrefixSums or Tree
        The designs of the two axes; cells are numbered with the second axis running fastest.

    Examples
    --------
    >>> import numpy as np
    >>> grid = Grid(PrefixSums(2, 8), PrefixSums(2, 8))
    >>> grid.running(grid.exact_sums(np.array([[3, 1, 4, 1]])) * grid.grid)
    array([[3., 4., 7., 9.]])
    """

    first: PrefixSums | Tree
    second: PrefixSums | Tree

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.first.size * self.second.size

    @property
    def width(self) -> int:
        """The number of measured values."""
        return self.first.width * self.second.width

    @property
    def grid(self) -> float:
        """The length of a measured step, for counts of whole rows."""
        return self.first.grid * self.second.grid

    @property
    def column_sum(self) -> int:
        """The largest l_1 norm of what one row adds, in measured steps."""
        return self.first.column_sum * self.second.column_sum

    @property
    def column_square(self) -> int:
        """The largest squared l_2 norm of what one row adds, in measured steps."""
        return self.first.column_square * self.second.column_square

    def exact_sums(self, counts: Integers) -> Integers:
        """Return A X B^T for the counts X of each group (groups, cells), modulo 2**64."""
        rows = self.second.exact_sums(counts.reshape(-1, self.second.size))
        columns = _turned(rows, self.first.size, self.second.width)
        return _turned(self.first.exact_sums(columns), self.second.width, self.first.width).reshape(-1, self.width)

    def running(self, noisy: Floats) -> Floats:
        """Return for each cell of each group the number of rows in all cells with no larger place on either axis."""
        rows = self.second.running(noisy.reshape(-1, self.second.width))
        columns = _turned(rows, self.first.width, self.second.size)
        return _turned(self.first.running(columns), self.second.size, self.first.size).reshape(-1, self.size)

    @property
    def variances(self) -> Floats:
        """The variance of each entry of `running`, for measured numbers whose noise has variance 1."""
        return np.outer(self.first.variances, self.second.variances).ravel()

    @property
    def bin_variances(self) -> Floats:
        """The variance of the count of each cell."""
        return np.outer(self.first.bin_variances, self.second.bin_variances).ravel()

    @property
    def largest_variance(self) -> float:
        """The largest variance of the sum of a rectangle of neighboring cells."""
        return self.first.largest_variance * self.second.largest_variance


def _turned(values: Array, outer: int, inner: int) -> Array:
    """Transpose matrices of `outer` rows and `inner` columns that are stacked in an array (.., inner)."""
    return values.reshape(-1, outer, inner).swapaxes(1, 2).reshape(-1, outer)


NOTHING = 1e-9  # of a row: a smaller sum counts as 0
NO_CELL = -1e18  # stands for a cell beyond the edge, which gets no share
MOVED = 2**16  # the fewest cells to move in all; a smaller grid is moved in several directions
STEP = 0.1  # of a standard deviation: how far the noise is moved to see how the fit changes


def fitted_grid(cells: Floats, noise: Noise, read: Callable[[Floats], Floats], width: int) -> Floats | None:
    """Return the adjusted counts if their sums over rectangles have smaller errors by Stein's estimate; else None.

    Let u be the unbiased counts, computed from numbers with noise e of variance v, and u + m the fit. The squared error
    of a sum changes by the square of m plus twice the product of m and the noise of u. The expectation of the product
    is v times the trace of the derivative of m by e (Stein 1981; exact for Gaussian noise, close for other noise). The
    trace is estimated by moving e in directions of signs (Ramani, Blu and Unser 2008). They are the same in every
    call: nothing is drawn here.
    """
    moved = from_the_whole_down(cells) - cells
    times = max(1, MOVED // cells.size)
    signs = _signs(times * cells.shape[0] * width).reshape(-1, width)
    direction = read(signs).reshape(-1, *cells.shape[1:])
    step = STEP * math.sqrt(noise.variance) or 1.0
    nearby = np.tile(cells, (times, 1, 1)) + step * direction
    change = (from_the_whole_down(nearby) - nearby - np.tile(moved, (times, 1, 1))) / step
    trace = float((_of_rectangles(direction) * _of_rectangles(change)).sum()) / times
    gain = float((_of_rectangles(moved) ** 2).sum()) + 2.0 * noise.variance * trace
    return cells + moved if gain < 0.0 else None


def _of_rectangles(cells: Floats) -> Floats:
    """Return numbers whose sum of squares is proportional to that of the sums of all rectangles, in each group.

    The sum of a rectangle is a double difference of running sums. So the mean of its square over all rectangles is four
    times the part of the running sums' variance that neither rows nor columns explain.
    """
    sums = np.pad(np.cumsum(np.cumsum(cells, axis=1), axis=2), ((0, 0), (1, 0), (1, 0)))
    sums = sums - sums.mean(axis=1, keepdims=True)
    return np.asarray(sums - sums.mean(axis=2, keepdims=True))


def _signs(count: int) -> Floats:
    """Return fixed signs without a pattern: the last bits of the mixed numbers 1, 2, ... (Steele et al. 2014)."""
    return np.asarray(1.0 - 2.0 * (mixed(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN) & np.uint64(1)))


def from_the_whole_down(cells: Floats) -> Floats:
    """Return the counts of each group (groups, rows, columns), shared out from the total down to the cells.

    Examples
    --------
    >>> import numpy as np
    >>> from_the_whole_down(np.array([[[7.0, -1.0], [2.0, 0.0]]]))
    array([[[6.5, 0. ],
            [1.5, 0. ]]])
    """
    levels = [cells]
    while max(levels[-1].shape[1:]) > 1:
        levels.append(_quarters(levels[-1], 0.0).sum(axis=-1))
    shared = np.maximum(levels[-1], 0.0)
    for parts in reversed(levels[:-1]):
        quarters = _quarters(parts, NO_CELL)
        whole = np.where(shared > NOTHING, shared, 1.0)[..., None]
        shares = nearest_shares((quarters / whole).reshape(-1, 4)).reshape(quarters.shape)
        counts = np.where(shared[..., None] > NOTHING, shares * whole, 0.0)
        square = counts.reshape(*shared.shape, 2, 2).swapaxes(2, 3)
        shared = square.reshape(shared.shape[0], 2 * shared.shape[1], -1)[:, : parts.shape[1], : parts.shape[2]]
    return shared


def _quarters(cells: Floats, beyond: float) -> Floats:
    """Return the four cells of each square of side two; cells beyond the edge have the value `beyond`."""
    padded = np.pad(cells, ((0, 0), (0, cells.shape[1] % 2), (0, cells.shape[2] % 2)), constant_values=beyond)
    groups, rows, columns = padded.shape
    return (
        padded.reshape(groups, rows // 2, 2, columns // 2, 2).swapaxes(2, 3).reshape(groups, rows // 2, columns // 2, 4)
    )
