"""Noisy sums of rectangles of a grid: a design for each axis, one applied after the other.

What is measured is A X B^T of the counts X of the cells, A and B being the matrices of two designs for lines: the
Kronecker product of both (McKenna, Miklau, Hay and Machanavajjhala, VLDB 2018). Norms of columns, what is read off, and
the variances of rectangles are the products of those of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.prefix_sums import PrefixSums
from dpframe.queries.trees import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Array = TypeVar("Array", Integers, Floats)


@dataclass(frozen=True)
class Grid:
    """The design of a grid.

    Parameters
    ----------
    first, second : PrefixSums or Tree
        Those of its two axes; cells are numbered with the second axis running fastest.

    Examples
    --------
    >>> import numpy as np
    >>> grid = Grid(PrefixSums(2, 8), PrefixSums(2, 8))
    >>> grid.running(grid.measured(np.array([[3, 1, 4, 1]])) * grid.grid)
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

    def measured(self, counts: Integers) -> Integers:
        """A X B^T of each group (groups, cells), modulo 2**64."""
        rows = self.second.measured(counts.reshape(-1, self.second.size))
        columns = _turned(rows, self.first.size, self.second.width)
        return _turned(self.first.measured(columns), self.second.width, self.first.width).reshape(-1, self.width)

    def running(self, noisy: Floats) -> Floats:
        """For each cell of each group the number of rows in it and in all cells with no larger place on either axis."""
        rows = self.second.running(noisy.reshape(-1, self.second.width))
        columns = _turned(rows, self.first.width, self.second.size)
        return _turned(self.first.running(columns), self.second.size, self.first.size).reshape(-1, self.size)

    @property
    def variances(self) -> Floats:
        """The variance of each entry of `running`, of measured numbers whose noise has variance 1."""
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
    """Matrices of `outer` rows and `inner` columns, one below the other in (.., inner), with both exchanged."""
    return values.reshape(-1, outer, inner).swapaxes(1, 2).reshape(-1, outer)
