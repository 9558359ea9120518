"""The interval of a weighted sum of draws of one noise, whose squared weights add up to 1."""

from __future__ import annotations

import math
from statistics import NormalDist

from dpframe.queries.total import Noise


def sum_interval(noise: Noise, confidence: float) -> float:
    """Its half-width: the larger of that of one draw and of the normal law, which sums of many draws come close to.

    Whole draws that are nearly all 0 have no width by themselves, but sums of many have one: there Chebyshev's
    inequality is taken.
    """
    of_one_draw, spread = noise.interval(confidence), math.sqrt(noise.variance)
    if of_one_draw <= 0.0:
        return spread / math.sqrt(1.0 - confidence)
    return max(of_one_draw, spread * NormalDist().inv_cdf((1.0 + confidence) / 2.0))
