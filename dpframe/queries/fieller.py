"""Errors of quotients and of sums of noisy numbers."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.row_functions import Floats
from dpframe.queries.total import Noise


def fieller(
    offset: Floats,
    count: Floats,
    sum_noise: Noise,
    count_noise: Noise,
    enough: NDArray[np.bool_],
    largest: Floats,
    confidence: float,
) -> Floats:
    """Half-width around `offset` of the Fieller interval of a quotient with independent noises, at most `largest`.

    z is the larger of the two noises' own half-widths in standard deviations, so that noise with heavier tails
    than the Gaussian is not treated as Gaussian.
    """
    noises = [noise for noise in (sum_noise, count_noise) if noise.variance > 0.0]  # at huge epsilon there is none
    z_squared = max((noise.interval(confidence) ** 2 / noise.variance for noise in noises), default=0.0)
    curvature = z_squared * count_noise.variance / count**2
    bounded = enough & (curvature < 1.0)
    rest = np.where(bounded, 1.0 - curvature, 1.0)
    spread = z_squared * (sum_noise.variance * rest + offset**2 * count_noise.variance)
    half = (np.sqrt(spread) / count + np.abs(offset) * curvature) / rest
    return np.where(bounded, np.minimum(half, largest), largest)


def interval_of_sum(noise: Noise, draws: int, confidence: float) -> float:
    """Half-width of an interval of the sum of independent draws of a noise.

    In standard deviations it is that of one draw or the normal one, whichever is larger: what a sum of draws has lies
    between them.
    """
    normal = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * math.sqrt(noise.variance)
    return math.sqrt(draws) * max(noise.interval(confidence), normal)


def sum_interval(noise: Noise, confidence: float) -> float:
    """Its half-width: the larger of that of one draw and of the normal law, which sums of many draws come close to.

    Whole draws that are nearly all 0 have no width by themselves, but sums of many have one: there Chebyshev's
    inequality is taken.
    """
    of_one_draw, spread = noise.interval(confidence), math.sqrt(noise.variance)
    if of_one_draw <= 0.0:
        return spread / math.sqrt(1.0 - confidence)
    return max(of_one_draw, spread * NormalDist().inv_cdf((1.0 + confidence) / 2.0))
