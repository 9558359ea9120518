"""Less noise at the same price: one factor for all noises of a call, found by what they cost as a whole."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpframe.accounting.pld import composed_epsilon
from dpframe.exact import down, root_down, up
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.planning.auto import Noises

CLOSE = 1e-6  # relative, of the factor and of epsilon
MOST_STEPS = 40


def tightened(noises: Noises, epsilon: Fraction, delta: Fraction) -> Noises:
    """The same noises, all scales divided by one factor of at least 1: the largest that keeps the price of the whole.

    They must keep it by basic composition as they are. Where all are Gaussian, or pure without a delta, the factor has
    a closed form; else it is found by the privacy loss distribution of the whole.
    """
    if not delta:
        whole = sum((Fraction(noise.pure_epsilon or 0.0) for noise in noises), Fraction(0))
        return _divided(noises, max(1.0, down(epsilon / whole)))
    if all(isinstance(noise, Gaussian) for noise in noises):
        mu_squared = sum((noise.mu_squared for noise in noises), Fraction(0))
        most = Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2
        return _divided(noises, max(1.0, root_down(most / mu_squared)))
    most_epsilon, outside = down(epsilon), down(delta)

    def excess(factor: float) -> float:
        return math.log(composed_epsilon(_divided(noises, factor), outside) / most_epsilon)

    low, low_excess = 1.0, excess(1.0)
    if low_excess > 0.0 or not any(noise.additive for noise in noises):
        return noises
    high, high_excess = 2.0, excess(2.0)
    while high_excess <= 0.0:
        low, low_excess, high = high, high_excess, 2.0 * high
        high_excess = excess(high)
    for _ in range(MOST_STEPS):
        if high <= low * (1.0 + CLOSE):
            break
        straight = low_excess / (low_excess - high_excess)  # where a line between both would be 0, in logarithms
        middle = low * (high / low) ** min(max(straight, 1e-3), 1.0 - 1e-3)
        found = excess(middle)
        if found <= 0.0:
            low, low_excess, high_excess = middle, found, high_excess / 2.0  # so that the other end moves next
        else:
            high, high_excess, low_excess = middle, found, low_excess / 2.0
        if -CLOSE < found <= 0.0:
            break
    return _divided(noises, low)


def _divided(noises: Noises, factor: float) -> Noises:
    """Less noise by this factor, each scale rounded up; bounded answers, whose noise has no common law, stay."""
    return tuple(
        replace(noise, step_scale=up(Fraction(noise.step_scale) / Fraction(factor))) if noise.additive else noise  # type: ignore[type-var, attr-defined]
        for noise in noises
    )
