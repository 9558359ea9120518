"""Sums that must hold: values and a public total, children and parents of a tree, cells and margins of a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.estimators import Floats, Integers, NoiseLaw
from dpframe.errors import InvalidArgument

FINER = 2.0**-10  # of the smallest standard deviation: the largest step of results that need not be whole numbers
ROOT = -1  # the parent of a root


def public_total(values: Floats, noise: NoiseLaw, *, total: float, nonnegative: bool = False) -> Floats:
    """Move to the nearest values that add up to a public total.

    Parameters
    ----------
    values : array
        Noisy values, of any shape.
    noise : Mechanism
        The law of their noise (not needed here, since it is the same for all).
    total : float
        The sum of the true totals: public knowledge, never computed from the data.
    nonnegative : bool
        Whether the true totals are known not to be negative. The result is then not negative either.

    Returns
    -------
    array
        Of the same shape, adding up to `total` except for rounding of floats. Never farther from the truth than
        `values`, if the truth adds up to it: this is the projection on a convex set that holds the truth.

    Raises
    ------
    InvalidArgument
        If `total` is not finite, or negative with `nonnegative`.

    Notes
    -----
    Without `nonnegative`, every value moves by the same amount. With it, this is the projection on a simplex: every
    value moves by the same amount, and those that would be negative become zero (Held, Wolfe and Crowder 1974).

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> dpf.denoise.public_total(np.array([-3.0, 4.0, 2.0]), noise, total=6)
    array([-2.,  5.,  3.])
    >>> dpf.denoise.public_total(np.array([-3.0, 4.0, 2.0]), noise, total=6, nonnegative=True)
    array([0., 4., 2.])
    """
    values = np.asarray(values, dtype=np.float64)
    if not math.isfinite(total) or (nonnegative and total < 0.0):
        raise InvalidArgument(f"total must be a finite number{' of at least 0' if nonnegative else ''}, not {total!r}.")
    if values.size == 0:
        return values.copy()
    group = np.zeros(values.size, dtype=np.int64)
    nearest = adding_up(values.ravel(), np.ones(values.size), group, np.array([float(total)]), nonnegative)
    return nearest.reshape(values.shape) + 0.0  # no -0.0


def consistent(
    values: Floats,
    noise: NoiseLaw | Sequence[NoiseLaw],
    *,
    parents: Integers,
    nonnegative: bool = False,
    whole: bool = False,
) -> Floats:
    """Move the values of a tree so that every parent is the sum of its children.

    Parameters
    ----------
    values : array
        One dimension: a noisy value of every node, the leaves and all nodes above them.
    noise : Mechanism or sequence of Mechanism
        The law of their noise, or one law for each depth of the tree, that of the roots first.
    parents : array of int
        The position in `values` of the parent of every node, -1 for a node that has none.
    nonnegative : bool
        Whether the true totals are known not to be negative. The result is then not negative either.
    whole : bool
        Whether the true totals are whole numbers. The result then has whole numbers.

    Returns
    -------
    array
        Of the same shape. Every parent is exactly the sum of its children, in floats too, up to 2**53 steps. A step is
        1 for whole numbers, otherwise a power of two of at most a thousandth of a standard deviation of the noise.

    Raises
    ------
    InvalidArgument
        If `values` has another shape than `parents`, `parents` is not a tree, or a depth has no law.

    Notes
    -----
    The first step is the least squares fit, with each node weighted by its variance. Up the tree, every node is
    averaged with the sum of its children. Down the tree, the difference between a parent and the sum of its children is
    divided among them in proportion to their variances. The fit is the linear unbiased estimate of least variance,
    whatever the shape of the noise (Gauss and Markov; Hay, Rastogi, Miklau and Suciu, VLDB 2010, section 4, for equal
    variances and trees). Then, from the roots down, the children are made non-negative, and rounded to the step by
    largest remainders, so that they still add up to their parent, as in the Census Bureau's TopDown (Abowd et al.
    2022). Unlike the fit, that step is not unbiased.

    Examples
    --------
    A total, two states and their counties:

    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> noisy = np.array([112.0, 66.0, 39.0, 28.0, 33.0, 44.0, -2.0])
    >>> parents = np.array([-1, 0, 0, 1, 1, 2, 2])
    >>> dpf.denoise.consistent(noisy, noise, parents=parents, nonnegative=True, whole=True)
    array([109.,  67.,  42.,  31.,  36.,  42.,   0.])
    """
    tree = Tree.of(parents)
    values = np.asarray(values, dtype=np.float64)
    if values.shape != tree.parents.shape:
        raise InvalidArgument(f"parents must have the shape {values.shape} of the values, not {tree.parents.shape}.")
    laws = list(noise) if isinstance(noise, Sequence) else [noise] * len(tree.depths)
    if len(laws) != len(tree.depths):
        raise InvalidArgument(f"noise must have one law for each of the {len(tree.depths)} depths, not {len(laws)}.")
    return fitted(values, laws, tree, nonnegative=nonnegative, whole=whole).values


@dataclass(frozen=True)
class Tree:
    """The nodes of a tree, or of a forest, by depth."""

    parents: Integers
    depths: tuple[Integers, ...]  # the positions of the nodes at each depth, the roots first

    @classmethod
    def of(cls, parents: Integers) -> Tree:
        """Find the depths; raise an error if the parents form no tree."""
        parents = np.asarray(parents)
        if parents.ndim != 1 or parents.dtype.kind not in "iu":
            raise InvalidArgument("parents must be an array of whole numbers, one for each node.")
        parents = parents.astype(np.int64)
        if parents.size and not ROOT <= int(parents.min()) <= int(parents.max()) < parents.size:
            raise InvalidArgument(f"parents must be places from 0 to {parents.size - 1}, or -1 for none.")
        above = np.full(parents.size + 1, -2)  # the depth of each node; the last entry is for the parent of roots
        above[ROOT] = -1
        depths: list[Integers] = []
        while (above[:-1] == -2).any():
            nodes = np.flatnonzero((above[:-1] == -2) & (above[parents] == len(depths) - 1))
            if not nodes.size:
                raise InvalidArgument("parents must be a tree: some node is among its own ancestors.")
            above[nodes] = len(depths)
            depths.append(nodes)
        return cls(parents, tuple(depths))


@dataclass(frozen=True)
class Fitted:
    """Values that add up, and the variance of each before non-negativity and rounding."""

    values: Floats
    variances: Floats


def fitted(values: Floats, laws: Sequence[NoiseLaw], tree: Tree, *, nonnegative: bool, whole: bool) -> Fitted:
    """Return the fit of `consistent`; `laws` holds one law for each depth."""
    measured = np.empty(values.size)
    for nodes, law in zip(tree.depths, laws, strict=True):
        measured[nodes] = law.variance
    best, variances, above = _least_squares(values, measured, tree)
    step = 1.0 if whole else step_of(laws)
    return Fitted(_rounded(best / step, above, tree, nonnegative) * step + 0.0, variances)  # no -0.0


def rounded(values: Floats, tree: Tree, *, nonnegative: bool) -> Floats:
    """Return whole numbers near values that add up; they add up as well."""
    return _rounded(values, np.ones(values.size), tree, nonnegative)


def step_of(laws: Sequence[NoiseLaw]) -> float:
    """Return the step of results that need not be whole numbers.

    It is a power of two, far below the noise. Without noise, it is the grid.
    """
    least = min((math.sqrt(law.variance) for law in laws if law.variance > 0.0), default=0.0)
    grid = min((law.grid for law in laws), default=1.0)
    return 2.0 ** math.floor(math.log2(least * FINER)) if least > 0.0 else grid


def _least_squares(values: Floats, measured: Floats, tree: Tree) -> tuple[Floats, Floats, Floats]:
    """Return the fit, its variances, and the variance of each node's estimate from its own subtree alone."""
    best, below = values.copy(), measured.copy()
    for nodes in reversed(tree.depths[1:]):
        over = tree.parents[nodes]
        summed, spread = _summed(best[nodes], over, values.size), _summed(below[nodes], over, values.size)
        inner = np.unique(over)
        both = measured[inner] + spread[inner]
        share = np.divide(measured[inner], both, out=np.full(inner.size, 0.5), where=both > 0.0)  # children's weight
        best[inner] += share * (summed[inner] - best[inner])
        below[inner] = share * spread[inner]
    variances = below.copy()
    for nodes in tree.depths[1:]:
        over = tree.parents[nodes]
        summed, spread = _summed(best[nodes], over, values.size), _summed(below[nodes], over, values.size)
        share = _shares(below[nodes], over, values.size)
        best[nodes] += share * (best[over] - summed[over])
        variances[nodes] = below[nodes] + share**2 * (variances[over] - spread[over])
    return best, np.maximum(variances, 0.0), below


def _rounded(best: Floats, spreads: Floats, tree: Tree, nonnegative: bool) -> Floats:
    """Return whole numbers, from the roots down; children add up to their parents."""
    whole = np.empty(best.size)
    for nodes in tree.depths:
        over = tree.parents[nodes]
        if over[0] == ROOT:  # all nodes of this depth are roots
            whole[nodes] = np.rint(np.maximum(best[nodes], 0.0) if nonnegative else best[nodes])
            continue
        owners, group = np.unique(over, return_inverse=True)
        exact = adding_up(best[nodes], spreads[nodes], group, whole[owners], nonnegative)
        lower = np.floor(exact)
        missing = np.rint(whole[owners] - np.bincount(group, lower))
        order = np.lexsort((lower - exact, group))  # the largest remainders first
        rank = _places(group[order])
        whole[nodes] = lower
        whole[nodes[order]] += rank < missing[group[order]]
    return whole


def adding_up(values: Floats, spreads: Floats, group: Integers, totals: Floats, nonnegative: bool) -> Floats:
    """Return the nearest values that add up to the total of their group.

    Each is weighted by its variance.
    """
    spreads = np.maximum(spreads, spreads[spreads > 0.0].min(initial=1.0))  # values without noise weigh the same
    if not nonnegative:
        left = totals - np.bincount(group, values, minlength=totals.size)
        return values + spreads * (left / np.bincount(group, spreads, minlength=totals.size))[group]
    order = np.lexsort((-values / spreads, group))  # within a group, values that stay above zero come first
    sorted_group = group[order]
    reached = _running(values[order], sorted_group) - totals[sorted_group]
    levels = reached / _running(spreads[order], sorted_group)
    stays = levels < (values / spreads)[order]
    kept = np.maximum(np.bincount(sorted_group, stays, minlength=totals.size).astype(np.int64), 1)
    first = np.searchsorted(sorted_group, np.arange(totals.size))
    return np.maximum(values - levels[first + kept - 1][group] * spreads, 0.0)


def _running(values: Floats, group: Integers) -> Floats:
    """Return the sum so far within each group; `group` is sorted."""
    through = np.cumsum(values)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    before = np.concatenate([[0.0], through])[starts]
    return np.asarray(through - np.repeat(before, np.diff(np.append(starts, group.size))))


def _places(group: Integers) -> Integers:
    """Return the place of each element within its group; `group` is sorted."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.arange(group.size) - np.repeat(starts, np.diff(np.append(starts, group.size)))


def _summed(values: Floats, group: Integers, size: int) -> Floats:
    return np.asarray(np.bincount(group, values, minlength=size), dtype=np.float64)


def _shares(spreads: Floats, group: Integers, size: int) -> Floats:
    """Return the share of each element in the variance of its group, or equal shares if the group has none."""
    total, count = _summed(spreads, group, size)[group], np.bincount(group, minlength=size)[group]
    return np.divide(spreads, total, out=1.0 / count, where=total > 0.0)


ROUNDS = 20  # alternating projections at most; two-way tables take about six
CLOSE = 0.01  # standard deviations by which margins may differ when the projections stop
LEAST = 2.0**-40  # of the largest variance: margins with a smaller variance, or none, count with this one

Axes = tuple[int, ...]

Subset = tuple[int, ...]  # positions of attributes, in order

MOST_ROUNDS = 300
CLOSE_TO_ZERO = 1e-6  # of the mean cell: smaller negative cells are removed with a small part of the independent table


@dataclass(frozen=True)
class FittedTable:
    """The cells of a table, and the variance of the entries of each margin.

    The variance is that before negative entries were removed.
    """

    cells: Floats
    variances: dict[Axes, float]


def margins(axes: int) -> list[Axes]:
    """Return every set of axes: the set of all, which is the table itself, first.

    Its margins by fewer and fewer axes follow; the total is last.
    """
    return [kept for count in range(axes, -1, -1) for kept in itertools.combinations(range(axes), count)]


def fitted_table(noisy: Mapping[Axes, Floats], laws: Mapping[Axes, NoiseLaw], *, nonnegative: bool) -> FittedTable:
    """Fit a table to its noisy cells and noisy margins by least squares.

    Each is weighted by its variance.

    Parameters
    ----------
    noisy : dict of arrays
        For every set of axes, the noisy margin that keeps these axes; for all axes, the cells.
    laws : dict of Mechanism
        The law of the noise of each.
    nonnegative : bool
        Whether no true cell is negative. If so, no cell of the result is.

    Notes
    -----
    A table is the sum of one part for each set A of axes. The part is what is left along the axes in A after their
    means are subtracted, and it is constant along the other axes. If S contains A, a margin S holds the part A times
    m_S, the number of cells that are added up for one of its entries; otherwise, it holds nothing of it. So the parts
    can be fitted one by one, with the precision l_A = sum over S containing A of m_S / var_S: the linear unbiased
    estimate of least variance (Gauss and Markov). An entry of the margin S has on average the variance m_S / |S| sum
    over A in S of d_A / l_A. Here d_A is the number of degrees of freedom of the part, and |S| is the number of the
    margin's entries.

    With `nonnegative`, margins are determined from the total down, so that raising many small cells does not raise
    their sums. Each margin starts at the fit. It is projected in turn on the sets of tables without negative entries
    that have one of the margins above it (von Neumann's alternating projections). Such a projection subtracts the same
    from all entries of a line, and sets those to zero that would be negative (Held, Wolfe and Crowder 1974).
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
    """Return the variances, with a least one for margins without noise; they weigh the same if there is no noise."""
    largest = max(law.variance for law in laws.values()) or 1.0
    return {kept: max(law.variance, largest * LEAST) for kept, law in laws.items()}


def _parts(table: Floats) -> dict[Axes, Floats]:
    """Return the parts of a table by their axes; along all other axes, a part has one entry."""
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
    """Return a table without negative cells whose margins are near those of the fit."""
    settled: dict[Axes, Floats] = {}
    for kept in reversed(margins(cells.ndim)):
        gone = tuple(axis for axis in range(cells.ndim) if axis not in kept)
        fitted = cells.sum(axis=gone, keepdims=True)
        above = {axis: settled[tuple(other for other in kept if other != axis)] for axis in kept}
        settled[kept] = _with_margins(fitted, above, close) if kept else np.maximum(fitted, 0.0)
    return settled[tuple(range(cells.ndim))]


def _with_margins(table: Floats, above: Mapping[int, Floats], close: float) -> Floats:
    """Return a table near this one, without negative entries, whose sums along each axis are those in `above`."""
    for _ in range(ROUNDS):
        for axis, sums in above.items():
            table = _projected(table, axis, sums)
        if all(np.abs(table.sum(axis=axis, keepdims=True) - sums).max() <= close for axis, sums in above.items()):
            break
    return table


def _projected(table: Floats, axis: int, sums: Floats) -> Floats:
    """Return the nearest table without negative entries whose lines along an axis have these sums."""
    falling = -np.sort(-table, axis=axis)
    along_axis = [-1 if dimension == axis else 1 for dimension in range(table.ndim)]
    places = np.arange(1, table.shape[axis] + 1).reshape(along_axis)
    levels = (np.cumsum(falling, axis=axis) - sums) / places
    positive = np.maximum((falling > levels).sum(axis=axis, keepdims=True), 1)
    return np.asarray(np.maximum(table - np.take_along_axis(levels, positive - 1, axis=axis), 0.0))


def without_negatives(tables: Mapping[Subset, Floats]) -> dict[Subset, Floats]:
    """Move the tables of all attributes and pairs so that they add up without negative cells.

    The total stays, or is raised to 0. Tables of one attribute are moved to the nearest ones with that total, and
    tables of two to the nearest ones that add up to those. The sum of many cells is known far better than each cell,
    and to raise cells first would raise it. Nearest means by least squares, found for pairs by Dykstra's alternating
    projections (Boyle and Dykstra 1986). If a sum is 0, so are its cells.

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
    """Return the nearest table without negative cells that has these margins, neither of which is negative."""
    fit = np.zeros_like(noisy)
    here = np.ix_(rows > 0.0, columns > 0.0)  # if a sum is 0, so are its cells
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
    """Return the nearest table with these margins, which have the same sum."""
    more = ((rows - table.sum(axis=1)) / table.shape[1])[:, None]
    further = ((columns - table.sum(axis=0)) / table.shape[0])[None, :]
    return np.asarray(table + more + further - (rows.sum() - table.sum()) / table.size)
