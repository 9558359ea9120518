"""Errors of quotients and of sums of noisy numbers, and intervals that cover whatever the divisor is."""

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
    """The reach of Fieller's set of quotients top / bottom on either side of `values`, at most `largest`.

    Parameters
    ----------
    values : array
        What is released for each quotient; it may lie outside the set, as where it was clipped.
    top, bottom : array
        Noisy numbers without bias.
    squares : tuple of three arrays or floats
        z^2 times the variance of `top`, the covariance of both, and the variance of `bottom`: where noise is not
        normal z is the half-width of its interval in standard deviations.
    largest : array or float
        Where the set is not bounded, since the divisor may be 0, and at most.
    limits : tuple of two floats
        Between which the true quotient lies, as do `values`: the set ends there. One that lies beyond them altogether
        is taken as it is, rather than as empty.

    Notes
    -----
    The set {r : (top - r bottom)^2 <= z^2 var(top - r bottom)} holds the true quotient r if and only if the noise of
    top - r bottom, of which r is then no estimate but a number, is within z of its standard deviations (Fieller 1954).
    It is an interval where bottom^2 > z^2 var(bottom): the roots of a quadratic.

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
    """The ends of Fieller's set, as in `quotient_half_widths`; infinite where it is not bounded."""
    of_top, of_both, of_bottom = squares
    bounded = np.asarray(bottom**2 > of_bottom)
    curvature = np.where(bounded, bottom**2 - of_bottom, 1.0)
    middle = top * bottom - of_both
    squared = top**2 * of_bottom - 2.0 * top * bottom * of_both + bottom**2 * of_top - (of_bottom * of_top - of_both**2)
    root = np.sqrt(np.maximum(squared, 0.0))  # of middle^2 - curvature (top^2 - of_top), without what cancels there
    ends = (middle - root) / curvature, (middle + root) / curvature
    return np.where(bounded, ends[0], -np.inf), np.where(bounded, ends[1], np.inf)


def within_limits(low: Floats, high: Floats, halves: Floats, limits: tuple[float, float]) -> tuple[Floats, Floats]:
    """Intervals cut to limits; where nothing is left, from the nearest limit as far as the half-width reaches.

    Examples
    --------
    >>> import numpy as np
    >>> within_limits(np.array([-0.1, -0.4]), np.array([0.2, -0.2]), np.array([0.15, 0.1]), (0.0, 1.0))
    (array([0., 0.]), array([0.2, 0.1]))
    """
    least, most = np.clip(low, *limits), np.clip(high, *limits)
    with np.errstate(invalid="ignore"):  # of a limit and a half-width that are both infinite
        least = np.where(low > limits[1], np.maximum(limits[1] - halves, limits[0]), least)
        most = np.where(high < limits[0], np.minimum(limits[0] + halves, limits[1]), most)
    return least, most


def nearest_shares(values: Floats) -> Floats:
    """The nearest numbers, in the sum of squares, that are at least 0 and add up to 1 in each row.

    True shares are such numbers, which are a convex set: no row gets farther from them. What is above a level is kept,
    less that level (Held, Wolfe and Crowder 1974).

    Examples
    --------
    >>> import numpy as np
    >>> nearest_shares(np.array([[0.7, 0.4, -0.1]])).round(6).tolist()
    [[0.65, 0.35, 0.0]]
    """
    falling = -np.sort(-values, axis=1)
    above = np.cumsum(falling, axis=1) - 1.0
    position = np.arange(1.0, values.shape[1] + 1.0)
    last = np.count_nonzero(falling * position > above, axis=1)[:, None]  # at least 1: of the largest alone v > v - 1
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
    """Half-width around `offset` of the Fieller interval of a quotient with independent noises, at most `largest`."""
    z_squared = largest_z((sum_noise, count_noise), confidence) ** 2
    curvature = z_squared * count_noise.variance / count**2
    bounded = enough & (curvature < 1.0)
    rest = np.where(bounded, 1.0 - curvature, 1.0)
    spread = z_squared * (sum_noise.variance * rest + offset**2 * count_noise.variance)
    half = (np.sqrt(spread) / count + np.abs(offset) * curvature) / rest
    return np.where(bounded, np.minimum(half, largest), largest)


def largest_z(noises: Sequence[Noise], confidence: float) -> float:
    """The half-width of an interval of a sum of such noises, in its standard deviations; 0 where there is no noise.

    The largest of those of one draw, so that heavier tails are not taken for Gaussian ones; and no less than that of
    the normal law, which sums of noise with lighter tails come close to.
    """
    alone = [noise.interval(confidence) / math.sqrt(noise.variance) for noise in noises if noise.variance > 0.0]
    return max(NormalDist().inv_cdf((1.0 + confidence) / 2.0), *alone) if alone else 0.0


def interval_of_sum(noise: Noise, draws: int, confidence: float) -> float:
    """Half-width of an interval of the sum of so many independent draws of a noise."""
    return math.sqrt(draws) * sum_interval(noise, confidence)


def sum_interval(noise: Noise, confidence: float) -> float:
    """The half-width of an interval of a sum of draws whose squared weights add up to 1.

    The larger of that of one draw and of the normal law, which sums of many draws come close to. Quotients of noisy
    numbers are told by such sums too: of the dividend less the quotient times the divisor. Sums of a few whole draws
    are whole as well, and what the normal law says may leave out a whole step of them: half a step is added to its
    standard deviation, by the root of squares. Chebyshev's inequality is less where draws are nearly all 0.
    """
    spread = math.hypot(math.sqrt(noise.variance), noise.grid / 2.0)
    normal = spread * NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    chebyshev = math.sqrt(noise.variance / (1.0 - confidence))
    return min(chebyshev, max(noise.interval(confidence), normal))
