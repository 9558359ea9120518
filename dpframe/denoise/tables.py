"""Tables that add up to their margins: the nearest ones to noisy cells and noisy margins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.estimators import Floats, NoiseLaw

ROUNDS = 20  # of projections in turn; two-way tables take about six
CLOSE = 0.01  # standard deviations by which margins may still differ then
LEAST = 2.0**-40  # of the largest variance: margins without noise weigh no more than this says

Axes = tuple[int, ...]

Subset = tuple[int, ...]  # positions of attributes, in order

MOST_ROUNDS = 300
CLOSE_TO_ZERO = 1e-6  # of the mean cell: negative cells that small are mended by a touch of the independent table


@dataclass(frozen=True)
class FittedTable:
    """The cells of a table, and for each margin the variance of its entries before they were made non-negative."""

    cells: Floats
    variances: dict[Axes, float]


def margins(axes: int) -> list[Axes]:
    """Every set of axes: the table itself first, then its margins by fewer and fewer axes, the total last."""
    return [kept for count in range(axes, -1, -1) for kept in itertools.combinations(range(axes), count)]


def fitted_table(noisy: Mapping[Axes, Floats], laws: Mapping[Axes, NoiseLaw], *, nonnegative: bool) -> FittedTable:
    """The least squares fit of a table to its noisy cells and noisy margins, each weighed by its variance.

    Parameters
    ----------
    noisy : dict of arrays
        For every set of axes the noisy margin that keeps them; for all axes the cells.
    laws : dict of Mechanism
        The law of the noise of each.
    nonnegative : bool
        Whether no true cell is negative; then no cell of the table is.

    Notes
    -----
    A table is the sum of one part for each set A of axes: what is left along the axes in A once their means are taken
    off, and constant along the others. A margin S holds the part A where S contains A, times m_S, the number of cells
    that are added up for one of its entries, and otherwise nothing of it. So the parts can be fitted one by one, with
    the precision l_A = sum over S containing A of m_S / var_S: the linear unbiased estimate of least variance (Gauss
    and Markov). An entry of the margin S has on average the variance m_S / |S| sum over A in S of d_A / l_A, d_A being
    the number of degrees of freedom of the part and |S| that of the margin's entries.

    Without negative cells, margins are settled from the total down, so that many small cells, which are moved up, do
    not move their sums: each one is projected in turn on the sets of tables without negative entries that have one of
    the margins above it (von Neumann's alternating projections), from the fit on. Such a projection takes the same off
    all entries of a line, and makes those zero that would be negative (Held, Wolfe and Crowder 1974).
    """
    axes = max(map(len, noisy))
    shape = noisy[tuple(range(axes))].shape
    sets = margins(axes)
    measured = _variances(laws)
    merged = {kept: math.prod(shape[axis] for axis in range(axes) if axis not in kept) for kept in sets}
    precision = {part: sum(merged[s] / measured[s] for s in sets if {*part} <= {*s}) for part in sets}
    added = np.zeros(shape)
    for kept in sets:
        added += noisy[kept].reshape([shape[axis] if axis in kept else 1 for axis in range(axes)]) / measured[kept]
    best = {part: values / precision[part] for part, values in _parts(added).items()}
    cells = _whole(best, shape)
    free = {part: math.prod(shape[axis] - 1 for axis in part) for part in sets}
    entries = {kept: math.prod(shape[axis] for axis in kept) for kept in sets}
    noiseless = all(law.variance == 0.0 for law in laws.values())
    variances = {
        kept: 0.0
        if noiseless
        else merged[kept] / entries[kept] * sum(free[part] / precision[part] for part in sets if {*part} <= {*kept})
        for kept in sets
    }
    close = CLOSE * math.sqrt(min(measured.values()))
    return FittedTable(_nonnegative(cells, close) if nonnegative else cells, variances)


def _variances(laws: Mapping[Axes, NoiseLaw]) -> dict[Axes, float]:
    """The variances; where there is no noise all weigh the same."""
    largest = max(law.variance for law in laws.values()) or 1.0
    return {kept: max(law.variance, largest * LEAST) for kept, law in laws.items()}


def _parts(table: Floats) -> dict[Axes, Floats]:
    """The parts of a table by their axes; along all others they have one entry."""
    parts: dict[Axes, Floats] = {(): table}
    for axis in range(table.ndim):
        split: dict[Axes, Floats] = {}
        for kept, values in parts.items():
            mean = values.mean(axis=axis, keepdims=True)
            split |= {kept: mean, (*kept, axis): values - mean}
        parts = split
    return parts


def _whole(parts: Mapping[Axes, Floats], shape: Sequence[int]) -> Floats:
    table = np.zeros(shape)
    for values in parts.values():
        table += values
    return table


def _nonnegative(cells: Floats, close: float) -> Floats:
    """A table without a negative cell whose margins are near those of the fit."""
    settled: dict[Axes, Floats] = {}
    for kept in reversed(margins(cells.ndim)):
        gone = tuple(axis for axis in range(cells.ndim) if axis not in kept)
        fitted = cells.sum(axis=gone, keepdims=True)
        above = {axis: settled[tuple(other for other in kept if other != axis)] for axis in kept}
        settled[kept] = _with_margins(fitted, above, close) if kept else np.maximum(fitted, 0.0)
    return settled[tuple(range(cells.ndim))]


def _with_margins(table: Floats, above: Mapping[int, Floats], close: float) -> Floats:
    """A table near to this one, without negative entries, that adds up along each axis to what is given for it."""
    for _ in range(ROUNDS):
        for axis, sums in above.items():
            table = _projected(table, axis, sums)
        if all(np.abs(table.sum(axis=axis, keepdims=True) - sums).max() <= close for axis, sums in above.items()):
            break
    return table


def _projected(table: Floats, axis: int, sums: Floats) -> Floats:
    """The nearest table without negative entries whose lines along an axis have these sums."""
    falling = -np.sort(-table, axis=axis)
    along_axis = [-1 if dimension == axis else 1 for dimension in range(table.ndim)]
    places = np.arange(1, table.shape[axis] + 1).reshape(along_axis)
    levels = (np.cumsum(falling, axis=axis) - sums) / places
    positive = np.maximum((falling > levels).sum(axis=axis, keepdims=True), 1)
    return np.asarray(np.maximum(table - np.take_along_axis(levels, positive - 1, axis=axis), 0.0))


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
            made[table] = _projected(noisy, 0, np.array([total]))
    for table, noisy in tables.items():
        if len(table) == 2:
            first, second = table
            made[table] = _pair_with_margins(noisy, made[first,], made[second,], total)
    return {table: made[table] for table in tables}


def _pair_with_margins(noisy: Floats, rows: Floats, columns: Floats, total: float) -> Floats:
    """The nearest table of no negative cell with these margins, of which neither is negative."""
    fit = np.zeros_like(noisy)
    here = np.ix_(rows > 0.0, columns > 0.0)  # where a sum is 0, so is each part
    if total <= 0.0:
        return fit
    across, down = rows[rows > 0.0], columns[columns > 0.0]
    table, correction = noisy[here], np.zeros_like(noisy[here])
    for _ in range(MOST_ROUNDS):
        table = _moved_to_margins(table, across, down)
        if -table.min() * table.size < CLOSE_TO_ZERO * total:
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
