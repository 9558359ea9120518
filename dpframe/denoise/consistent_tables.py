"""Tables of counts by one column and by two that have no negative cell and still add up: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Subset = tuple[int, ...]  # positions of attributes, in order

MOST_ROUNDS = 300
CLOSE = 1e-6  # of the mean cell: negative cells that small are mended by a touch of the independent table


def without_negatives(tables: Mapping[Subset, Floats]) -> dict[Subset, Floats]:
    """The tables of all attributes and all pairs of them, moved to ones that have no negative cell and add up.

    The total stays, or is 0. Tables of one attribute are moved to the nearest ones of that total, tables of two to the
    nearest ones that add up to those: what many cells have in sum is known far better than each of them, and to cut
    cells first would raise it. The nearest is that of the least squares, found for pairs by Dykstra's alternating
    projections (Boyle and Dykstra 1986). A cell of which a sum is 0 is 0.

    Parameters
    ----------
    tables : dict of arrays by positions of attributes
        The total under (), all attributes under (i,), and pairs under (i, j), i < j; noisy tables that add up.

    Returns
    -------
    dict of arrays
        The same tables.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = np.array([[6.0, -2.0], [3.0, 5.0]])
    >>> tables = {(): noisy.sum(), (0,): noisy.sum(1), (1,): noisy.sum(0), (0, 1): noisy}
    >>> fit = without_negatives(tables)
    >>> fit[0, 1].round(3).tolist(), fit[0,].tolist(), fit[1,].tolist()
    ([[4.0, 0.0], [5.0, 3.0]], [4.0, 8.0], [9.0, 3.0])
    """
    total = max(float(tables[()]), 0.0)
    made: dict[Subset, Floats] = {(): np.array(total)}
    for table, noisy in tables.items():
        if len(table) == 1:
            made[table] = _onto_sum(noisy, total)
    for table, noisy in tables.items():
        if len(table) == 2:
            first, second = table
            made[table] = _with_margins(noisy, made[first,], made[second,], total)
    return {table: made[table] for table in tables}


def _with_margins(noisy: Floats, rows: Floats, columns: Floats, total: float) -> Floats:
    """The nearest table of no negative cell with these margins, of which neither is negative."""
    fit = np.zeros_like(noisy)
    here = np.ix_(rows > 0.0, columns > 0.0)  # where a sum is 0, so is each part
    if total <= 0.0:
        return fit
    across, down = rows[rows > 0.0], columns[columns > 0.0]
    table, correction = noisy[here], np.zeros_like(noisy[here])
    for _ in range(MOST_ROUNDS):
        table = _moved_to_margins(table, across, down)
        if -table.min() * table.size < CLOSE * total:
            break
        moved = table + correction
        table = np.maximum(moved, 0.0)
        correction = moved - table
    table = _moved_to_margins(table, across, down)
    even = np.outer(across, down) / total
    lacking = np.where(table < 0.0, -table / (even - np.minimum(table, 0.0)), 0.0)
    share = float(lacking.max())
    fit[here] = np.maximum((1.0 - share) * table + share * even, 0.0)
    return fit


def _moved_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The nearest table with these margins, which have one sum."""
    more = ((rows - table.sum(axis=1)) / table.shape[1])[:, None]
    further = ((columns - table.sum(axis=0)) / table.shape[0])[None, :]
    return np.asarray(table + more + further - (rows.sum() - table.sum()) / table.size)


def _onto_sum(values: Floats, total: float) -> Floats:
    """The nearest numbers of at least 0 with this sum: what is above a level, less that level."""
    falling = -np.sort(-values)
    above = np.cumsum(falling) - total
    last = max(int(np.count_nonzero(falling * np.arange(1.0, values.size + 1.0) > above)), 1)
    return np.asarray(np.maximum(values - above[last - 1] / last, 0.0))
