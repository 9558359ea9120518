"""Counts of a grid that are at least 0, and whose sums over large squares stay what they were.

To cut each negative count alone would raise every sum. Here the total is cut at 0, then shared out among its quarters,
each quarter's among its own, down to the cells: the nearest counts of at least 0 that add up to what was shared out.
Where most counts are far from 0 or their sums have little noise this would still do harm, so an estimate decides.
All of it is arithmetic on noisy numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.mixing import GOLDEN, mixed
from dpframe.queries.quotients import nearest_shares
from dpframe.queries.total import Noise

Floats = NDArray[np.float64]

NOTHING = 1e-9  # of a row: a smaller sum is shared out as 0
NO_CELL = -1e18  # stands for a cell beyond the edge, which gets nothing
MOVED = 2**16  # cells that are moved at least, in several directions where there are fewer
STEP = 0.1  # of a standard deviation: how far the noise is moved to see what the fit does of it


def fitted_grid(cells: Floats, noise: Noise, read: Callable[[Floats], Floats], width: int) -> Floats | None:
    """The counts shared out, if their sums over rectangles then err less by Stein's estimate; else None.

    Let u be the unbiased counts, read off numbers with noise e of variance v, and u + m the fit. The squared error of a
    sum changes by that of m and twice the product of m and the noise of u, whose expectation is v times the trace of
    the derivative of m by e (Stein 1981, for Gaussian noise; nearly so for other). The trace is estimated by moving e
    in some directions of signs (Ramani, Blu and Unser 2008), the same in every call: nothing is drawn here.
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
    """Numbers whose sum of squares is in proportion to that of the sums of all rectangles, in each group.

    The sum of a rectangle is a double difference of running sums, so the mean of its square over all rectangles is four
    times the part of their variance that neither rows nor columns explain.
    """
    sums = np.pad(np.cumsum(np.cumsum(cells, axis=1), axis=2), ((0, 0), (1, 0), (1, 0)))
    sums = sums - sums.mean(axis=1, keepdims=True)
    return np.asarray(sums - sums.mean(axis=2, keepdims=True))


def _signs(count: int) -> Floats:
    """Signs without a pattern, always the same: the last bits of the mixed numbers 1, 2, ... (Steele et al. 2014)."""
    return np.asarray(1.0 - 2.0 * (mixed(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN) & np.uint64(1)))


def from_the_whole_down(cells: Floats) -> Floats:
    """The counts of each group (groups, rows, columns), shared out from the whole down.

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
    """The four cells (at most) of each square of side two."""
    padded = np.pad(cells, ((0, 0), (0, cells.shape[1] % 2), (0, cells.shape[2] % 2)), constant_values=beyond)
    groups, rows, columns = padded.shape
    return (
        padded.reshape(groups, rows // 2, 2, columns // 2, 2).swapaxes(2, 3).reshape(groups, rows // 2, columns // 2, 4)
    )
