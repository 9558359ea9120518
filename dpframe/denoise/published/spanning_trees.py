"""Wavelets on a graph: a spanning tree is cut again and again, and each pair of parts gives one wavelet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpframe.denoise.estimators import LEVELS, Floats, Integers, NoiseLaw, kept_slope, universal_threshold
from dpframe.denoise.graphs import Forest, edges_of, far_roots
from dpframe.denoise.wavelets import FEWEST, Shrunk

BALANCES = (0.5, 0.55, 0.6, 0.65)  # for each tree, the largest share that a cut may leave in one part; below 2/3


def spanning_tree_wavelets(values: Floats, noise: NoiseLaw, *, graph: Any) -> Floats:
    """Shrink the wavelet coefficients of a graph's spanning trees.

    Each scale has its own risk-chosen threshold.

    Parameters
    ----------
    values : array
        Noisy values of cells, of any shape; positions count as in ``values.ravel()``.
    noise : Mechanism
        The law of their noise.
    graph : array of integers, (m, 2)
        Edges, as pairs of positions, between cells that may be similar. Public. Loops and repeated edges have no
        effect.

    Returns
    -------
    array
        Of the same shape. The sum over each connected piece of the graph stays.

    Raises
    ------
    InvalidArgument
        If the graph is not such an array.

    Notes
    -----
    Sharpnack, Singh and Krishnamurthy (AISTATS 2013): choose a vertex without which no large part of the tree is left,
    split the tree there, and continue in the parts. Parts are compared in pairs. Each pair gives a wavelet, orthogonal
    to all others, that is constant on either part. A map that is constant except for a few edges has few coefficients:
    for a tree of d cells and degree g, at most log2(d) log2(g) for each of these edges. The result is the mean over
    four trees of shortest paths, from roots that lie far apart. Thresholds are chosen for each scale (Donoho and
    Johnstone, JASA 1995) by the estimate of the risk that `auto` describes. The time grows as d log d.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.1, delta=1e-6)
    >>> noisy = 100.0 + np.array([30.0, -12.0, 8.0, -41.0, 22.0, -5.0, 17.0, -28.0] * 8)
    >>> ring = np.array([(cell, (cell + 1) % 64) for cell in range(64)])
    >>> smooth = dpf.denoise.spanning_tree_wavelets(noisy, noise, graph=ring)
    >>> bool(np.abs(smooth - 100.0).max() < 10.0)
    True
    """
    values = np.asarray(values, dtype=np.float64)
    return tree_shrunk(values, noise, edges_of(graph, values.size)).values + 0.0  # no -0.0


def tree_shrunk(values: Floats, noise: NoiseLaw, edges: Integers) -> Shrunk:
    """Return the mean over the trees, with an estimate of its risk.

    Its squared error is at most the mean of theirs, and that mean is estimated.
    """
    spread = values.size * noise.variance
    if values.size < FEWEST or not noise.variance > 0.0 or not len(edges):
        return Shrunk(values.copy(), spread, 0.0)
    taken, risk, error = np.zeros(values.size), 0.0, 0.0
    for roots, balance in zip(far_roots(edges, values.size, len(BALANCES)), BALANCES, strict=True):
        basis = Basis.of(Forest.of(edges, values.size, roots), balance)
        off, gain, square = _taken_off(basis.coefficients(values.ravel()), basis, noise)
        taken += basis.values(off)
        risk, error = risk + spread + gain, error + math.sqrt(square)
    trees = len(BALANCES)
    return Shrunk(values - (taken / trees).reshape(values.shape), risk / trees, error / trees)


def tree_order(edges: Integers, cells: int) -> Integers:
    """Return the cells of a graph in an order that keeps the parts of a spanning tree together."""
    (roots,) = far_roots(edges, cells, 1)
    return Basis.of(Forest.of(edges, cells, roots), BALANCES[0]).order


@dataclass(frozen=True)
class Basis:
    """Wavelets on ranges of cells, which are sorted by `order`.

    A wavelet is positive from `starts` to `middles`, and negative from there to `ends`.
    """

    order: Integers
    starts: Integers
    middles: Integers
    ends: Integers

    @classmethod
    def of(cls, forest: Forest, balance: float) -> Self:
        """Return the wavelets of a forest, the smallest first."""
        order, ranges = _halved(forest, balance)
        starts, middles, ends = ranges[:, np.lexsort((ranges[0], ranges[2] - ranges[0]))]
        return cls(forest.cells[order - 1], starts, middles, ends)

    @property
    def sizes(self) -> Integers:
        """The number of cells on which each wavelet is not 0."""
        return self.ends - self.starts

    @property
    def heights(self) -> tuple[Floats, Floats]:
        """The value of each wavelet on its first part, and the negated value on its second part.

        The squares of a wavelet add up to 1.
        """
        first, second = self.middles - self.starts, self.ends - self.middles
        return np.sqrt(second / (first * self.sizes)), np.sqrt(first / (second * self.sizes))

    def coefficients(self, values: Floats) -> Floats:
        """Return the scalar product of the values with each wavelet."""
        bounds = np.stack([self.starts, self.middles, self.middles, self.ends], axis=1).ravel()
        if not bounds.size:
            return np.zeros(0)
        sums = np.add.reduceat(np.append(values[self.order], 0.0), bounds)[::2].reshape(-1, 2)
        first, second = self.heights
        return np.asarray(first * sums[:, 0] - second * sums[:, 1])

    def values(self, coefficients: Floats) -> Floats:
        """Return the sum of the wavelets, each times its coefficient."""
        first, second = self.heights
        rises = np.zeros(self.order.size + 1)
        for at, height in ((self.starts, first), (self.middles, -first - second), (self.ends, second)):
            np.add.at(rises, at, height * coefficients)
        values = np.empty(self.order.size)
        values[self.order] = np.cumsum(rises)[:-1]
        return values


def _taken_off(coefficients: Floats, basis: Basis, noise: NoiseLaw) -> tuple[Floats, float, float]:
    """Return the part that thresholds subtract, its addition to the estimated squared error, and its variance."""
    scales = np.floor(np.log2(np.maximum(basis.sizes, 1)))
    largest = np.flatnonzero(np.cumsum(np.bincount(scales.astype(np.int64))[::-1]) >= FEWEST)
    if largest.size:  # the few largest wavelets share one threshold
        scales = np.minimum(scales, scales.max() - largest[0])
    taken, gain, square = np.zeros(coefficients.size), 0.0, 0.0
    heights = basis.heights
    for scale in np.unique(scales):
        mine = np.flatnonzero(scales == scale)
        if mine.size < FEWEST:
            continue
        level, gains = _best_level(coefficients[mine], [height[mine] for height in heights], noise)
        taken[mine] = np.clip(coefficients[mine], -level, level)
        gain += float(gains.sum())
        square += float(np.square(gains - gains.mean()).sum())
    return taken, gain, square


def _best_level(coefficients: Floats, heights: list[Floats], noise: NoiseLaw) -> tuple[float, Floats]:
    """Return the threshold of least estimated risk, and its addition to the squared error of each coefficient.

    A cell changes a coefficient by the height of its part, and the squared heights of all cells add up to 1. So v times
    the slopes for the two heights, weighted by these squares, is E[z h], exactly as in `auto`.
    """
    first, second = heights
    share = first / (first + second)  # of the squared heights, in the first part: sizes are inverse to heights
    level, best = 0.0, np.zeros(coefficients.size)
    for tried in np.linspace(0.0, 1.1 * universal_threshold(coefficients.size, noise), LEVELS)[1:]:
        slope = share * kept_slope(coefficients / first, noise, tried / first)
        slope += (1.0 - share) * kept_slope(coefficients / second, noise, tried / second)
        gains = np.square(np.clip(coefficients, -tried, tried)) - 2.0 * noise.variance * slope
        if gains.sum() < best.sum():
            level, best = float(tried), gains
    return level, best


def _halved(forest: Forest, balance: float) -> tuple[Integers, Integers]:
    """Return the places in an order in which every part is a range, and the start, middle and end of each wavelet."""
    places, part = np.arange(1, forest.ends.size), np.cumsum(forest.parents[1:] == 0) - 1
    first = np.flatnonzero(forest.parents[1:] == 0)  # where each part begins in the final order
    order, ranges = np.empty_like(places), [np.empty((3, 0), dtype=np.int64)]
    while places.size:
        sizes = np.bincount(part)
        alone = sizes[part] == 1
        order[first[part[alone]]] = places[alone]
        places, part = places[~alone], part[~alone]
        several = sizes > 1
        part, first, sizes = (np.cumsum(several) - 1)[part], first[several], sizes[several]
        if places.size:
            places, owner, starts = _parted(places, part, sizes, forest, balance)
            begins = np.cumsum(sizes) - sizes
            first = first[owner] + starts - begins[owner]
            lengths = np.diff(starts, append=places.size)
            part = np.repeat(np.arange(starts.size), lengths)
            ranges += _paired(first, first + lengths, owner)
    return order, np.concatenate(ranges, axis=1)


def _parted(
    places: Integers, part: Integers, sizes: Integers, forest: Forest, balance: float
) -> tuple[Integers, Integers, Integers]:
    """Cut every part at a vertex; return the places by new part, the old part of each new one, and where it starts."""
    here = np.arange(places.size)
    begins = np.cumsum(sizes) - sizes
    row = part * (forest.ends.size + 1)  # places increase within a part, so a subtree is a range of it
    below = np.searchsorted(row + places, row + forest.ends[places]) - here
    heavy = below >= balance * sizes[part]  # a chain from the root of each part; the last place has no heavy child
    middle = np.maximum.reduceat(np.where(heavy, here, -1), begins)
    at = middle[part]
    inside = (here >= at) & (here < at + below[at])
    branch = np.cumsum(inside & (forest.parents[places] == places[at]))
    branch = np.where(inside, branch - branch[at], 0)  # 0 for places that are not below the vertex
    branches = np.maximum.reduceat(branch, begins) + 2  # with a spare number for a vertex that becomes a part
    offsets = np.cumsum(branches) - branches
    branch += offsets[part]
    held = np.bincount(branch, minlength=int(branches.sum()))
    held[offsets] -= 1  # the vertex itself joins the smallest branch, or is a part if there is only one branch
    smallest = np.minimum.reduceat(np.where(held > 0, held, places.size) * held.size + np.arange(held.size), offsets)
    branch[middle] = smallest % held.size
    single = np.flatnonzero(np.add.reduceat(held > 0, offsets, dtype=np.int64) == 1)  # parts of two cells
    branch[middle[single]] = offsets[single] + (held[offsets[single]] > 0)
    turn = np.argsort(branch, kind="stable")
    starts = np.flatnonzero(np.diff(branch[turn], prepend=-1))
    return places[turn], part[turn][starts], starts


def _paired(starts: Integers, ends: Integers, owner: Integers) -> list[Integers]:
    """Compare neighboring parts of one owner in pairs, then pairs of pairs, until each owner is whole."""
    ranges: list[Integers] = []
    while True:
        rank = np.arange(owner.size) - np.searchsorted(owner, owner)
        second = np.flatnonzero(rank % 2)
        if not second.size:
            return ranges
        ranges.append(np.stack([starts[second - 1], starts[second], ends[second]]))
        ends = ends.copy()
        ends[second - 1] = ends[second]
        stay = rank % 2 == 0
        starts, ends, owner = starts[stay], ends[stay], owner[stay]
