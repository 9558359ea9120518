"""Trend filtering: values whose differences between neighbors, of some order, are mostly zero."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpframe.denoise.estimators import Floats, Integers, NoiseLaw, Order, laplace_rate, ordered_axes
from dpframe.denoise.graphs import Sparse, averaged, differences, edges_of, lattice, pieces
from dpframe.errors import InvalidArgument

STRENGTHS = {0: (0.1, 1.6, 12), 1: (0.125, 2.0, 12), 2: (0.0625, 2.5, 12)}  # first, ratio, number; first in deviations
PATIENCE = 2  # strengths in a row that are no better than the best before the search stops
ROUNDS = 300  # rounds of either solver at most, for one strength
CHECKED = 10  # rounds between two tests of convergence
CLOSE = 2e-4  # noise variances for each cell: the penalized squares may exceed their minimum by this
RELAXED = 1.7  # over-relaxation factor of the splitting method
FINE = 0.25  # standard deviations up to which the grid of Gaussian noise counts as fine
CLASSES = 4  # classes of cells, which are moved one class after another


def trend_filter(values: Floats, noise: NoiseLaw, *, graph: Any = None, degree: int = 0, order: Order = None) -> Floats:
    """Fit values that are constant, linear or quadratic except in a few places.

    Parameters
    ----------
    values : array
        Noisy values of cells with similar neighbors: on a graph, on a line with `order=True`, or on a grid.
    noise : Mechanism
        The law of their noise.
    graph : array of integers, (m, 2), optional
        Edges, as pairs of positions in ``values.ravel()``. Public. Without it, the cells are a line or a grid.
    degree : {0, 1, 2}
        0 for values that are constant in patches, 1 and 2 for smoother ones.
    order : bool or tuple of int, optional
        Whether the order of a line is meaningful: state it, since the values do not show it. For a grid, the axes along
        which neighbors may be similar: all, unless a tuple names some.

    Returns
    -------
    array
        Of the same shape. The sum over each connected piece stays.

    Raises
    ------
    InvalidArgument
        If the graph is not such an array, the degree is another one, or a line has neither a graph nor ``order=True``.

    Notes
    -----
    The result is the values b that minimize sum (y - b)^2 / 2 + s sum |P b|, where P takes differences along the edges
    (degree 0, the fused lasso), the graph's Laplacian L (1), or the differences of L b (2): Wang, Sharpnack, Smola and
    Tibshirani (JMLR 2016). On a line, P takes the differences of order degree + 1 (Tibshirani, Annals of Statistics
    2014).

    The strength s has the least estimated risk (see `auto`) among 12. For Laplace noise and on coarse grids, that
    estimate is made for degree 0 only. Degrees 1 and 2 use Stein's identity unchanged, which then favors strengths that
    are too small. Degree 0 is solved in its dual by an accelerated projected gradient method (Beck and Teboulle 2009),
    and its patches then exactly. The others are solved by splitting, with one sparse factorization for each strength.
    Both stop after 300 rounds at the latest.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.1, delta=1e-6)
    >>> noisy = 100.0 + np.array([30.0, -12.0, 8.0, -41.0, 22.0, -5.0, 17.0, -28.0] * 8)
    >>> smooth = dpf.denoise.trend_filter(noisy, noise, order=True)
    >>> bool(np.abs(smooth - 100.0).max() < 10.0)
    True
    """
    values = np.asarray(values, dtype=np.float64)
    if degree not in STRENGTHS:
        raise InvalidArgument(f"degree must be 0, 1 or 2, not {degree!r}.")
    if graph is None:
        axes = ordered_axes(values, order)
        if not axes:
            raise InvalidArgument(
                "trend_filter needs a graph, or cells in an order that means something. Write graph=edges or "
                "order=True."
            )
        penalty = Penalty.of(lattice(values.shape, axes), values.size, degree, line=values.ndim == 1)
    else:
        penalty = Penalty.of(edges_of(graph, values.size), values.size, degree)
    return filtered(values, noise, penalty).values + 0.0  # no -0.0


@dataclass(frozen=True)
class Penalty:
    """A penalty: the matrix P of differences that should be mostly zero.

    `edges` is the graph along which they are taken.
    """

    matrix: Sparse
    edges: Integers
    degree: int
    line: bool

    @classmethod
    def of(cls, edges: Integers, size: int, degree: int, *, line: bool = False) -> Self:
        """Return the penalty of a graph.

        A line has its own differences, which leave its ends free.
        """
        matrix = differences(edges, size)
        if line:
            for turn in range(1, degree + 1):
                rows = max(size - turn, 0)
                matrix = differences(lattice((rows,), (0,)), rows) @ matrix
        elif degree:
            laplacian = (matrix.T @ matrix).tocsr()
            matrix = laplacian if degree == 1 else (matrix @ laplacian).tocsr()
        return cls(matrix, edges, degree, line)

    @cached_property
    def transposed(self) -> Sparse:
        return self.matrix.T.tocsr()

    @cached_property
    def width(self) -> Floats:
        """The sum of the degrees of the two ends of each edge."""
        degrees = np.bincount(self.edges.ravel(), minlength=self.matrix.shape[1])
        return np.asarray(degrees[self.edges].sum(axis=1), dtype=np.float64)

    def freedom(self, active: Any) -> int:
        """Return the dimension of the values with P b = 0 except in the active rows (Tibshirani and Taylor 2012)."""
        size = int(self.matrix.shape[1])
        if self.line and self.degree:
            return min(size, int(np.count_nonzero(active)) + self.degree + 1)
        if self.degree == 1:
            return int(np.maximum(np.bincount(pieces(self.edges, size), active), 1).sum())
        return 1 + int(pieces(self.edges[~active], size).max(initial=-1))


@dataclass(frozen=True)
class Filtered:
    """Denoised values, their estimated summed squared error, its standard error, and the strength."""

    values: Floats
    risk: float
    error: float
    strength: float


def filtered(values: Floats, noise: NoiseLaw, penalty: Penalty) -> Filtered:
    """Return the solution with the least estimated risk, which may be no denoising."""
    flat, variance = values.ravel(), noise.variance
    spread = flat.size * variance
    best = Filtered(values.copy(), spread, 0.0, 0.0)
    if not variance > 0.0 or not penalty.matrix.shape[0]:
        return best
    waited = 0
    for strength, smooth, freedom in _path(flat, noise, penalty):
        moved = float(np.square(flat - smooth).sum())
        risk = moved - spread + 2.0 * variance * freedom
        waited += 1
        if risk < best.risk:
            # the variance of moved - 2 v (d - freedom), for a projection on `freedom` dimensions
            taken = variance * (flat.size - freedom)
            square = 2.0 * variance * taken + 4.0 * variance * max(moved - taken, 0.0)
            best, waited = Filtered(smooth.reshape(values.shape), risk, math.sqrt(max(square, 0.0)), strength), 0
        if waited >= PATIENCE and best.strength:
            break
    return best


def _path(flat: Floats, noise: NoiseLaw, penalty: Penalty) -> Iterator[tuple[float, Floats, float]]:
    """Yield rising strengths, each with its solution and degrees of freedom; each starts from the previous one."""
    first, ratio, number = STRENGTHS[penalty.degree]
    enough = CLOSE * flat.size * noise.variance
    dual = np.zeros(penalty.matrix.shape[0])
    for strength in math.sqrt(noise.variance) * first * ratio ** np.arange(number):
        if penalty.degree:
            rho = float(strength / math.sqrt(noise.variance))
            smooth, dual, active = split(flat, penalty, float(strength), rho, dual, enough)
            yield float(strength), smooth, penalty.freedom(active)
        else:
            smooth, dual, patch = fused(flat, penalty, float(strength), dual, enough)
            yield float(strength), smooth, _freedom(flat, noise, penalty, float(strength), dual, patch, enough)


def fused(
    flat: Floats, penalty: Penalty, strength: float, dual: Floats, enough: float
) -> tuple[Floats, Floats, Integers]:
    """Return the solution of degree 0, that of the dual problem, and the patch of each cell.

    The dual is min |y - P'u|^2 over |u| <= s. Each edge has its own step, the inverse of the sum of the degrees of its
    ends; these sums bound P P' from above. The momentum restarts if it points uphill (O'Donoghue and Candes 2015).
    """
    matrix, transposed, width = penalty.matrix, penalty.transposed, penalty.width
    dual = np.clip(dual, -strength, strength)
    ahead, pace = dual, 1.0
    for turn in range(ROUNDS):
        moved = np.clip(ahead + (matrix @ (flat - transposed @ ahead)) / width, -strength, strength)
        if float(((ahead - moved) * (moved - dual)) @ width) > 0.0:
            pace = 1.0
        faster = (1.0 + math.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        ahead, dual, pace = moved + (pace - 1.0) / faster * (moved - dual), moved, faster
        if turn % CHECKED == CHECKED - 1:
            steps = matrix @ (flat - transposed @ dual)
            if strength * float(np.abs(steps).sum()) - float(dual @ steps) < enough:  # the duality gap
                break
    free = np.abs(dual) < strength
    patch = pieces(penalty.edges[free], flat.size)
    return averaged(flat - transposed @ np.where(free, 0.0, dual), patch), dual, patch


def split(
    flat: Floats, penalty: Penalty, strength: float, rho: float, dual: Floats, enough: float
) -> tuple[Floats, Floats, Any]:
    """Return the solution of degree 1 or 2, that of the dual problem, and the active rows.

    Rows of P b that are not zero are active. The method is the over-relaxed alternating direction method of multipliers
    (Boyd et al. 2011), as in Wang et al.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    matrix, transposed = penalty.matrix, penalty.transposed
    system = (eye_array(flat.size) + rho * (transposed @ matrix)).tocsc()
    options = {"SymmetricMode": True}
    solve = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve
    dual = np.clip(dual, -strength, strength)
    price = dual / rho
    sparse = matrix @ (flat - transposed @ dual)
    smooth = flat
    for turn in range(ROUNDS):
        smooth = solve(flat + rho * (transposed @ (sparse - price)))
        taken = matrix @ smooth
        mixed = RELAXED * taken + (1.0 - RELAXED) * sparse + price
        price = np.clip(mixed, -strength / rho, strength / rho)
        sparse = mixed - price
        if turn % CHECKED == CHECKED - 1:
            shift = transposed @ (rho * price)
            # half the squares plus the penalty, less the value of the dual problem, which is a lower bound
            gap = np.square(smooth - flat + shift).sum() / 2.0 + strength * np.abs(taken).sum() - rho * (price @ taken)
            if gap < enough:
                break
    return smooth, rho * price, sparse != 0.0


def _freedom(
    flat: Floats, noise: NoiseLaw, penalty: Penalty, strength: float, dual: Floats, patch: Integers, enough: float
) -> float:
    """Return E[z b(y)] in variances: the sum over cells of the effect that a cell's own noise has on its value.

    For Gaussian noise on a fine grid, that effect is the slope, one over the size of the cell's patch, and the sum is
    the number of patches. On a coarse grid, it is the mean slope between a step down and a step up. For Laplace noise,
    it is that slope after a second draw of the noise (see `auto`). Both are taken at evenly spread points of these
    laws, for every fourth cell at a time, so that few cells move together. Neighbors that also move add to the noise,
    which makes the estimate of the risk slightly too large.
    """
    if is_fine(noise):
        return float(patch.max() + 1)
    classes = (np.arange(flat.size, dtype=np.int64) * 2_654_435_761 >> 16) % CLASSES
    total = 0.0
    for number in range(CLASSES):
        mine = np.flatnonzero(classes == number)
        moved = flat.copy()
        moved[mine] += _spread_out(mine.size, noise)
        _, _, others = fused(moved, penalty, strength, dual, enough)
        total += float((1.0 / np.bincount(others))[others[mine]].sum())
    return total


def is_fine(noise: NoiseLaw) -> bool:
    """Return whether Stein's identity holds unchanged.

    It does for noise like the Gaussian, on a fine grid.
    """
    return noise.p != 1.0 and noise.grid <= FINE * math.sqrt(noise.variance)


def _spread_out(size: int, noise: NoiseLaw) -> Floats:
    """Return evenly spread points of the law by which a cell is moved, not random: sequences of Roberts (2018)."""
    rank = np.arange(1, size + 1)
    within = 2.0 * (rank * 0.5698402909980532 % 1.0) - 1.0
    if noise.p != 1.0:
        return np.asarray(noise.grid * within)
    side = rank * 0.7548776662466927 % 1.0 - 0.5
    rate = laplace_rate(noise.variance / noise.grid**2)
    if not rate:
        return np.asarray(noise.grid * within)
    # P(|k| >= j) = 2 r^j / (1 + r)
    drawn = np.floor(np.log((1.0 - 2.0 * np.abs(side)) * (1.0 + rate) / 2.0) / math.log(rate))
    return np.asarray(noise.grid * (within + np.sign(side) * np.maximum(drawn, 0.0)))
