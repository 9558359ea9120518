"""Means, variances, covariances and correlations from noisy sums, with their errors: an array entry per group.

Covariances are those of y, which is scaled to [-1, 1]. The moments of a pair are n, sum y_i, sum y_j, sum y_i^2,
sum y_j^2 and sum y_i y_j: an array with a row for each group, and one matrix, the covariance of their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.quotients import quotient_half_widths

Floats = NDArray[np.float64]

FEWEST = 2.0  # a variance is computed if the noisy number of values is at least this
TINY = float(np.finfo(np.float64).tiny)
OF_CENTRED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])  # n, sum y, sum y^2 from n, S and T
OF_BERNSTEIN = np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0]])  # from Bernstein sums, y = 2 t - 1


@dataclass(frozen=True)
class Reading:
    """Values and the half-widths of their intervals."""

    values: Floats
    half_widths: Floats


def two_sided_mean(
    above: Floats,
    below: Floats,
    bounds: tuple[float, float],
    half_width: float,
    variances: tuple[float, float, float] = (1.0, 1.0, 2.0),
    fewest: float = 1.0,
) -> Reading:
    """Return the mean from noisy sums: A, of (value - lower), and B, of (upper - value).

    The noise of each has the half-width `half_width`. p = A / (A + B) is the place of the mean between the bounds, and
    n = (A + B) / (upper - lower). The mean's half-width is that of Fieller's set of shares A / (A + B), and at most the
    distance to the farther bound. (Half the range is too little: an estimate at one bound may be off by the whole.) To
    first order, it is `half_width` times the root of (1 - p)^2 + p^2, over n. That would cover a little too seldom in
    small groups at a bound. If the noisy count is below `fewest`, the mean is the middle of the bounds.

    `variances` are the variance of A, the covariance of A and A + B, and the variance of A + B, in units of the noise
    with `half_width`: A and B may be sums of several numbers with that noise.
    """
    lower, upper = bounds
    length = upper - lower
    count = (above + below) / length
    enough = count >= fewest
    divisor = np.where(enough, count, 1.0)
    share = np.where(enough, np.clip(above / (divisor * length), 0.0, 1.0), 0.5)
    values = np.clip(lower + length * share, lower, upper)
    squared = (half_width / length) ** 2  # in units of rows, like A and A + B below
    squares = variances[0] * squared, variances[1] * squared, variances[2] * squared
    half = length * quotient_half_widths(share, above / length, divisor, squares, 1.0, (0.0, 1.0))
    farther = np.maximum(values - lower, upper - values)
    return Reading(values, np.where(enough, np.minimum(half, farther), farther))


def centred_variance(
    count: Floats,
    centred: Floats,
    squares: Floats,
    spreads: tuple[float, float, float],
    z: float,
    half_range: float,
    ddof: int,
) -> Reading:
    """Return the variance from n, the sum of y = value - middle, and the sum of y^2 - h^2/2, h = `half_range`.

    `spreads` are the standard deviations of their noises. The noise of the mean makes its square too large by
    spread^2 / n^2 on average, which is added back. If the noisy number of values is below two, the answer is the
    largest variance that the bounds allow, and so is its error.
    """
    most = half_range**2
    enough = count >= FEWEST
    n = np.where(enough, count, FEWEST)
    mean = np.clip(centred / n, -half_range, half_range)
    square = np.clip(squares / n + most / 2.0, 0.0, most)
    variance = np.clip(square - mean**2 + spreads[1] ** 2 / n**2, 0.0, most)
    units = np.array([1.0, max(half_range, TINY), max(most, TINY)])  # of n, S and T, for y in [-1, 1]
    read = np.stack([count, centred, squares], axis=1) / units @ OF_CENTRED.T
    pair = _with_itself(read, OF_CENTRED * (np.array(spreads) / units) ** 2 @ OF_CENTRED.T, z)
    return _corrected(variance, pair, n, enough, most, ddof)


def bernstein_variance(
    cells: tuple[Floats, Floats, Floats], spread: float, z: float, half_range: float, ddof: int
) -> Reading:
    """Return the variance from the sums of (1 - t)^2, 2 t (1 - t) and t^2, t = (value - lower) / (upper - lower).

    These are Bernstein's polynomials of degree two: none is negative, and they add up to 1 for each value. `spread` is
    the standard deviation of the noise of each sum.
    """
    count = cells[0] + cells[1] + cells[2]
    enough = count >= FEWEST
    n = np.where(enough, count, FEWEST)
    mean, square = (cells[1] / 2.0 + cells[2]) / n, cells[2] / n
    variance = 4.0 * half_range**2 * np.clip(square - mean**2, 0.0, 0.25)
    pair = _with_itself(np.stack(cells, axis=1) @ OF_BERNSTEIN.T, spread**2 * OF_BERNSTEIN @ OF_BERNSTEIN.T, z)
    return _corrected(variance, pair, n, enough, half_range**2, ddof)


def standard_deviation(variance: Reading) -> Reading:
    """Return the root of a variance; its half-width reaches the farther root of the ends of the interval."""
    values, half = variance.values, variance.half_widths
    root = np.sqrt(values)
    upper, lower = np.sqrt(values + half) - root, root - np.sqrt(np.maximum(values - half, 0.0))
    return Reading(root, np.maximum(upper, lower))


def _corrected(variance: Floats, pair: Pair, n: Floats, enough: NDArray[np.bool_], most: float, ddof: int) -> Reading:
    """Return a variance with the divisor n - ddof, and its error: that of the column's covariance with itself."""
    values = np.where(enough, variance, most) * n / (n - ddof)
    return Reading(values, most * covariance_errors(pair, values / max(most, TINY), ddof, least=0.0))


MOMENTS = 6


@dataclass(frozen=True)
class Pair:
    """The noisy moments of two columns in each group, the covariance of their noise, and the z of its interval."""

    moments: Floats  # groups x 6
    noise: Floats  # 6 x 6
    z: float

    @property
    def enough(self) -> NDArray[np.bool_]:
        """True for each group whose noisy number of values is at least two."""
        return np.asarray(self.moments[:, 0] >= FEWEST)

    @property
    def n(self) -> Floats:
        """The noisy number of rows, raised to at least two."""
        return np.maximum(self.moments[:, 0], FEWEST)

    @property
    def means(self) -> Floats:
        """The two means of each group, clipped to [-1, 1]."""
        return np.asarray(np.clip(self.moments[:, 1:3] / self.n[:, None], -1.0, 1.0))

    def centred(self, i: int, j: int) -> Floats:
        """Return the sum of (y_i - mean)(y_j - mean), i and j in {0, 1}, without the bias from noise in the means."""
        m, product_column = self.means, {(0, 0): 3, (1, 1): 4, (0, 1): 5}[i, j]
        return np.asarray(self.moments[:, product_column] + self.n * (self._of_means(i, j) - m[:, i] * m[:, j]))

    def slopes(self, i: int, j: int) -> Floats:
        """Return the derivatives of `centred` by the six moments, with a row for each group."""
        m, derivatives = self.means, np.zeros((len(self.moments), MOMENTS))
        derivatives[:, 0] = m[:, i] * m[:, j]
        derivatives[:, 1 + i] -= m[:, j]
        derivatives[:, 1 + j] -= m[:, i]
        derivatives[:, {(0, 0): 3, (1, 1): 4, (0, 1): 5}[i, j]] = 1.0
        return derivatives

    def spread(self, first: Floats, second: Floats) -> Floats:
        """Return z^2 times the covariance of the noise in two linear functions of the moments."""
        return np.asarray(self.z**2 * ((first @ self.noise) * second).sum(axis=1))

    def _of_means(self, i: int, j: int) -> Floats:
        """Return the covariance of the noise of both means, to first order."""
        slopes = []
        for column in (i, j):
            slope = np.zeros((len(self.moments), MOMENTS))
            slope[:, 0], slope[:, 1 + column] = -self.means[:, column], 1.0
            slopes.append(slope)
        return np.asarray(((slopes[0] @ self.noise) * slopes[1]).sum(axis=1) / self.n**2)

    def second_order(self, i: int, j: int) -> Floats:
        """Return z^2 times the product of both means' standard deviations, which `slopes` leave out of an error."""
        return np.asarray(self.z**2 * np.sqrt(self._of_means(i, i) * self._of_means(j, j)))


def _with_itself(moments: Floats, noise: Floats, z: float) -> Pair:
    """Return the pair of a column and itself, from n, sum y and sum y^2 and the covariance of their noise."""
    twice = [0, 1, 1, 2, 2, 2]
    return Pair(moments[:, twice], noise[np.ix_(twice, twice)], z)


def covariances(pair: Pair, ddof: int) -> Floats:
    """Return the noisy covariance of each group, unbiased to first order; 0 if there are fewer than two rows."""
    return np.where(pair.enough, pair.centred(0, 1) / (pair.n - ddof), 0.0)


def covariance_errors(pair: Pair, values: Floats, ddof: int, least: float = -1.0) -> Floats:
    """Return the largest distance of the rows' covariance from `values`, by Fieller's set.

    The set is that of the quotient centered sum / (n - ddof). No covariance is above n / (n - ddof), which is at most 2
    for two or more rows, or below `least` times that, which is 0 for variances. If the noisy number of rows does not
    exclude 0, only these limits are known.
    """
    most = FEWEST / (FEWEST - ddof)
    top, bottom = pair.slopes(0, 1), np.zeros((len(values), MOMENTS))
    bottom[:, 0] = 1.0
    squares = pair.spread(top, top), pair.spread(top, bottom), pair.spread(bottom, bottom)
    limits = least * most, most
    farther = np.maximum(values - limits[0], limits[1] - values)
    ends = least * FEWEST, FEWEST  # for both divisors: a half-width cut at 1 would cover too seldom below the value
    half = quotient_half_widths(values, pair.centred(0, 1), pair.n - ddof, squares, farther, ends)
    half = np.sqrt(half**2 + (pair.second_order(0, 1) * pair.n / (pair.n - ddof)) ** 2)
    return np.where(pair.enough, np.minimum(half, farther), farther)


def correlations(pair: Pair) -> Floats:
    """Return the unadjusted noisy correlation of each group; 0 if a variance is not positive, or below two rows."""
    both = pair.centred(0, 0) * pair.centred(1, 1)
    known = _known(pair)
    return np.where(known, pair.centred(0, 1) / np.sqrt(np.where(known, both, 1.0)), 0.0)


def correlation_errors(pair: Pair, values: Floats) -> Floats:
    """Return the largest distance of the rows' correlation from `values`: the reach of Fieller's set, in [-1, 1].

    The divisor is the root of the product of both centered squares a and b. For any a', b', it is at most
    (a / a' + b / b') root(a' b') / 2 (arithmetic and geometric mean), with equality at a = a', b = b'. With the noisy
    squares as a' and b', this bound is a linear function of the moments, as the dividend is, and replaces the divisor.
    """
    known = _known(pair)
    a, b = (np.where(known, pair.centred(column, column), 1.0) for column in (0, 1))
    ratio = np.sqrt(b / a)[:, None]
    top, bottom = pair.slopes(0, 1), (ratio * pair.slopes(0, 0) + pair.slopes(1, 1) / ratio) / 2.0
    squares = pair.spread(top, top), pair.spread(top, bottom), pair.spread(bottom, bottom)
    farther, divisor = 1.0 + np.abs(values), np.sqrt(a * b)
    half = quotient_half_widths(values, pair.centred(0, 1), divisor, squares, farther, (-1.0, 1.0))
    half = np.sqrt(half**2 + (pair.second_order(0, 1) * pair.n / divisor) ** 2)
    return np.where(known, np.minimum(half, farther), farther)


def _known(pair: Pair) -> NDArray[np.bool_]:
    return pair.enough & (pair.centred(0, 0) > 0.0) & (pair.centred(1, 1) > 0.0)


def nearest_covariances(matrices: Floats, most: Floats) -> Floats:
    """Return the nearest covariance matrix of each group, in the sum of squares, with a diagonal of at most `most`.

    Negative eigenvalues become 0 (Higham 1988). A variance above the limit is scaled down with its row and column.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_covariances(np.array([[[1.0, 2.0], [2.0, 1.0]]]), np.array([2.0])).round(6).tolist()
    [[[1.5, 1.5], [1.5, 1.5]]]
    """
    values, vectors = np.linalg.eigh(matrices)
    nonnegative = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    sizes = np.diagonal(nonnegative, axis1=1, axis2=2)
    scale = np.sqrt(np.minimum(1.0, most[:, None] / np.maximum(sizes, 1e-300)))
    return np.asarray(nonnegative * scale[:, :, None] * scale[:, None, :])


def nearest_correlations(matrices: Floats) -> Floats:
    """Return a correlation matrix near that of each group: in [-1, 1], no negative eigenvalue, 1 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_correlations(np.array([[[1.0, 1.5], [1.5, 1.0]]])).round(6).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    nearest = nearest_covariances(np.clip(matrices, -1.0, 1.0), np.full(len(matrices), np.inf))
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(nearest, axis1=1, axis2=2), 1e-300))
    return np.asarray(np.clip(nearest * scale[:, :, None] * scale[:, None, :], -1.0, 1.0))


def of_cells(degree: int) -> Floats:
    """Return the matrix that computes the six moments of a pair, with y = 2 t - 1, from its Bernstein cells.

    Cell k counts t as k / degree and, with degree 2, t^2 as k (k - 1) / 2. Degree 1 gives no squares: their rows are 0.
    """
    cells = np.array(list(product(range(degree + 1), repeat=2)), dtype=np.float64).T
    t = cells / degree
    y = 2.0 * t - 1.0
    squares = np.zeros_like(t) if degree == 1 else 4.0 * (cells * (cells - 1.0) / 2.0) - 4.0 * t + 1.0
    return np.vstack([np.ones(t.shape[1]), y, squares, y[0] * y[1]])
