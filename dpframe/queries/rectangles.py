"""Counts of a grid that are at least 0, and whose sums over large squares stay what they were.

To cut each negative count alone would raise every sum. Here the total is cut at 0, then shared out among its quarters,
each quarter's among its own, down to the cells: the nearest counts of at least 0 that add up to what was shared out.
All of it is arithmetic on noisy numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.quotients import nearest_shares

Floats = NDArray[np.float64]

NOTHING = 1e-9  # of a row: a smaller sum is shared out as 0
NO_CELL = -1e18  # stands for a cell beyond the edge, which gets nothing


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
        found = nearest_shares((quarters / whole).reshape(-1, 4)).reshape(quarters.shape)
        found = np.where(shared[..., None] > NOTHING, found * whole, 0.0)
        square = found.reshape(*shared.shape, 2, 2).swapaxes(2, 3)
        shared = square.reshape(shared.shape[0], 2 * shared.shape[1], -1)[:, : parts.shape[1], : parts.shape[2]]
    return shared


def _quarters(cells: Floats, beyond: float) -> Floats:
    """The four cells (at most) of each square of side two."""
    padded = np.pad(cells, ((0, 0), (0, cells.shape[1] % 2), (0, cells.shape[2] % 2)), constant_values=beyond)
    groups, rows, columns = padded.shape
    return (
        padded.reshape(groups, rows // 2, 2, columns // 2, 2).swapaxes(2, 3).reshape(groups, rows // 2, columns // 2, 4)
    )
