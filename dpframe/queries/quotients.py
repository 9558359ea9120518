"""Errors of quotients and of sums of noisy numbers, with intervals that cover for any divisor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.total import Noise

Floats = NDArray[np.float64]
Squares = tuple[Floats | float, Floats | float, Floats | float]


def quotient_half_widths(
    values: Floats,
    top: Floats,
    bottom: Floats,
    squares: Squares,
    largest: Floats | float,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> Floats:
    """Return the farthest distance of Fieller's set of quotients top / bottom from `values`, at most `largest`.

    Parameters
    ----------
    values : array
        The released quotients; one may lie outside the set, for example because it was clipped.
    top, bottom : array
        Unbiased noisy numbers.
    squares : tuple of three arrays or floats
        z^2 times the variance of `top`, the covariance of both, and the variance of `bottom`. If noise is not normal, z
        is the half-width of its interval in standard deviations.
    largest : array or float
        The largest half-width, and the half-width if the set is unbounded because the divisor may be 0.
    limits : tuple of two floats
        The limits of the true quotient and of `values`, to which the set is cut. A set that lies entirely outside them
        is used unchanged, since it would be empty otherwise.

    Notes
    -----
    The set {r : (top - r bottom)^2 <= z^2 var(top - r bottom)} holds the true quotient r if and only if the noise of
    top - r bottom is within z of its standard deviations (Fieller 1954); r is then a fixed number, not an estimate. If
    bottom^2 > z^2 var(bottom), the set is an interval, and its ends are the roots of a quadratic.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([0.5]), np.array([500.0]), np.array([1000.0])
    >>> quotient_half_widths(*one, (384.1459, 0.0, 384.1459), np.inf).round(6)
    array([0.02211])
    """
    lower, upper = quotient_ends(top, bottom, squares)
    bounded = np.isfinite(lower)
    meets = (upper >= limits[0]) & (lower <= limits[1])
    lower, upper = (np.where(meets, np.clip(end, *limits), end) for end in (lower, upper))
    half = np.maximum(np.abs(upper - values), np.abs(values - lower))
    return np.where(bounded, np.minimum(half, largest), largest)


def quotient_ends(top: Floats, bottom: Floats, squares: Squares) -> tuple[Floats, Floats]:
    """Return the ends of Fieller's set, as in `quotient_half_widths`; infinite if it is not bounded."""
    of_top, of_both, of_bottom = squares
    bounded = np.asarray(bottom**2 > of_bottom)
    curvature = np.where(bounded, bottom**2 - of_bottom, 1.0)
    middle = top * bottom - of_both
    squared = top**2 * of_bottom - 2.0 * top * bottom * of_both + bottom**2 * of_top - (of_bottom * of_top - of_both**2)
    root = np.sqrt(np.maximum(squared, 0.0))  # of middle^2 - curvature (top^2 - of_top), without its canceling terms
    ends = (middle - root) / curvature, (middle + root) / curvature
    return np.where(bounded, ends[0], -np.inf), np.where(bounded, ends[1], np.inf)


def within_limits(low: Floats, high: Floats, halves: Floats, limits: tuple[float, float]) -> tuple[Floats, Floats]:
    """Cut intervals to limits; if nothing is left, return the part within a half-width of the nearest limit.

    Examples
    --------
    >>> import numpy as np
    >>> within_limits(np.array([-0.1, -0.4]), np.array([0.2, -0.2]), np.array([0.15, 0.1]), (0.0, 1.0))
    (array([0., 0.]), array([0.2, 0.1]))
    """
    least, most = np.clip(low, *limits), np.clip(high, *limits)
    with np.errstate(invalid="ignore"):  # a limit and a half-width may both be infinite
        least = np.where(low > limits[1], np.maximum(limits[1] - halves, limits[0]), least)
        most = np.where(high < limits[0], np.minimum(limits[0] + halves, limits[1]), most)
    return least, most


def nearest_shares(values: Floats) -> Floats:
    """Return the nearest numbers, in the sum of squares, that are at least 0 and add up to 1 in each row.

    True shares lie in this convex set, so no row gets farther from them. Each number above a level is reduced by that
    level, and the others become 0 (Held, Wolfe and Crowder 1974).

    Examples
    --------
    >>> import numpy as np
    >>> nearest_shares(np.array([[0.7, 0.4, -0.1]])).round(6).tolist()
    [[0.65, 0.35, 0.0]]
    """
    falling = -np.sort(-values, axis=1)
    above = np.cumsum(falling, axis=1) - 1.0
    position = np.arange(1.0, values.shape[1] + 1.0)
    last = np.count_nonzero(falling * position > above, axis=1)[:, None]  # at least 1: for the largest alone, v > v - 1
    level = np.take_along_axis(above, last - 1, axis=1) / last
    return np.asarray(np.maximum(values - level, 0.0))


def fieller(
    offset: Floats,
    count: Floats,
    sum_noise: Noise,
    count_noise: Noise,
    enough: NDArray[np.bool_],
    largest: Floats,
    confidence: float,
) -> Floats:
    """Return a quotient's Fieller half-width around `offset`, at most `largest`, for independent noises."""
    z_squared = largest_z((sum_noise, count_noise), confidence) ** 2
    curvature = z_squared * count_noise.variance / count**2
    bounded = enough & (curvature < 1.0)
    rest = np.where(bounded, 1.0 - curvature, 1.0)
    spread = z_squared * (sum_noise.variance * rest + offset**2 * count_noise.variance)
    half = (np.sqrt(spread) / count + np.abs(offset) * curvature) / rest
    return np.where(bounded, np.minimum(half, largest), largest)


def largest_z(noises: Sequence[Noise], confidence: float) -> float:
    """Return the half-width of an interval of a sum of such noises, in its standard deviations; 0 without noise.

    It is the largest half-width of a single draw, so that heavier tails are not treated as Gaussian ones. It is at
    least that of the normal law, which sums of noise with lighter tails approach.
    """
    alone = [noise.interval(confidence) / math.sqrt(noise.variance) for noise in noises if noise.variance > 0.0]
    return max(NormalDist().inv_cdf((1.0 + confidence) / 2.0), *alone) if alone else 0.0


def interval_of_sum(noise: Noise, draws: int, confidence: float) -> float:
    """Return the half-width of an interval of the sum of `draws` independent draws of a noise."""
    return math.sqrt(draws) * sum_interval(noise, confidence)


def sum_interval(noise: Noise, confidence: float) -> float:
    """Return the half-width of an interval of a sum of draws whose squared weights add up to 1.

    It is the larger of that of one draw and of the normal law, which sums of many draws approach. Intervals of
    quotients use such sums too: the dividend less the quotient times the divisor. Sums of a few integer draws are
    integers, and the normal law may leave out a whole step of them. So half a step is added to its standard deviation,
    in the sum of squares. If nearly all draws are 0, Chebyshev's inequality gives less, and is used.
    """
    spread = math.hypot(math.sqrt(noise.variance), noise.grid / 2.0)
    normal = spread * NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    chebyshev = math.sqrt(noise.variance / (1.0 - confidence))
    return min(chebyshev, max(noise.interval(confidence), normal))
