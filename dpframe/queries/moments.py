"""Means and variances read off noisy sums, with their errors: arithmetic on noisy numbers, an array entry per group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.quotients import quotient_half_widths

Floats = NDArray[np.float64]

FEWEST = 2.0  # values of a group, by their noisy number, from which a variance is told


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
    """The mean from A, the sum of (value - lower), and B, the sum of (upper - value), each with noise of `half_width`.

    p = A / (A + B) is where the mean lies between the bounds, and n = (A + B) / (upper - lower). The half-width is
    that of Fieller's set of shares A / (A + B), and at most the distance to the farther bound (half the range is too
    little: an estimate at one bound may be off by the whole). To first order it is `half_width` times the root of
    (1 - p)^2 + p^2, over n, which would cover a little too seldom in small groups at a bound. Where the noisy count is
    below `fewest` the mean is the middle of the bounds.

    `variances` are those of A, of A with A + B, and of A + B, in terms of the noise of `half_width`: A and B may be
    made of several numbers that have it.
    """
    lower, upper = bounds
    length = upper - lower
    count = (above + below) / length
    enough = count >= fewest
    divisor = np.where(enough, count, 1.0)
    share = np.where(enough, np.clip(above / (divisor * length), 0.0, 1.0), 0.5)
    values = np.clip(lower + length * share, lower, upper)
    squared = (half_width / length) ** 2  # in the units of rows, as A and A + B below
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
    """The variance from n, the sum of y = value - middle, and the sum of y^2 - h^2/2, h = `half_range`.

    `spreads` are the standard deviations of their noises. The noise of the mean makes its square too large by
    spread^2 / n^2 on average, which is added back. Below two values, by their noisy number, the answer is the largest
    variance that the bounds allow, and so is its error.
    """
    noise_n, noise_sum, noise_squares = spreads
    most = half_range**2
    enough = count >= FEWEST
    n = np.where(enough, count, FEWEST)
    mean = np.clip(centred / n, -half_range, half_range)
    square = np.clip(squares / n + most / 2.0, 0.0, most)
    variance = np.clip(square - mean**2 + noise_sum**2 / n**2, 0.0, most)
    spread = noise_squares**2 + 4.0 * mean**2 * noise_sum**2 + 2.0 * noise_sum**4 / n**2
    spread += (most / 2.0 + 2.0 * mean**2 - square) ** 2 * noise_n**2
    return _corrected(variance, z * np.sqrt(spread) / n, n, enough, most, ddof)


def bernstein_variance(
    cells: tuple[Floats, Floats, Floats], spread: float, z: float, half_range: float, ddof: int
) -> Reading:
    """The variance from the sums of (1 - t)^2, 2 t (1 - t) and t^2, t = (value - lower) / (upper - lower).

    They are Bernstein's polynomials of degree two: not negative, and 1 in all for each value. `spread` is the standard
    deviation of the noise of each.
    """
    count = cells[0] + cells[1] + cells[2]
    enough = count >= FEWEST
    n = np.where(enough, count, FEWEST)
    mean, square = (cells[1] / 2.0 + cells[2]) / n, cells[2] / n
    slopes = (2.0 * mean**2 - square, 2.0 * mean**2 - square - mean, 2.0 * mean**2 - square - 2.0 * mean + 1.0)
    half = z * spread * np.sqrt(slopes[0] ** 2 + slopes[1] ** 2 + slopes[2] ** 2) / n
    variance = np.clip(square - mean**2, 0.0, 0.25)
    whole = 4.0 * half_range**2
    return _corrected(variance * whole, half * whole, n, enough, half_range**2, ddof)


def standard_deviation(variance: Reading) -> Reading:
    """The root of a variance: the farther end of the roots of its interval."""
    values, half = variance.values, variance.half_widths
    root = np.sqrt(values)
    upper, lower = np.sqrt(values + half) - root, root - np.sqrt(np.maximum(values - half, 0.0))
    return Reading(root, np.maximum(upper, lower))


def _corrected(variance: Floats, half: Floats, n: Floats, enough: NDArray[np.bool_], most: float, ddof: int) -> Reading:
    """With n - ddof for the divisor; at most the largest variance that the bounds allow."""
    factor = n / (n - ddof)
    largest = most * factor
    return Reading(
        np.where(enough, variance * factor, largest), np.where(enough, np.minimum(half * factor, largest), largest)
    )
