"""Less noise at the same cost: one factor for all noises of a call, found by what they cost as a whole."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.accounting.comparison import composed_epsilon
from dpframe.exact import down, root_down
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.auto import Noises

CLOSE = 1e-6  # relative, of the factor and of epsilon
MOST_STEPS = 40


def tightened(noises: Noises, epsilon: Fraction, delta: Fraction) -> Noises:
    """The same noises, all scales divided by one factor of at least 1: the largest that keeps the cost of the whole.

    They must keep it by basic composition as they are. Where all are Gaussian, or pure without a delta, the factor has
    a closed form; else it is found by the privacy loss distribution of the whole.
    """
    if _divided(noises, 2.0) == noises:
        return noises
    if not delta:
        whole = sum((_pure(noise) for noise in noises), Fraction(0))
        return _divided(noises, max(1.0, down(epsilon / whole)))
    if all(noise.exact_mu for noise in noises):
        mu_squared = sum((noise.mu_squared for noise in noises), Fraction(0))
        most = Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2
        return _divided(noises, max(1.0, root_down(most / mu_squared)))
    most_epsilon, outside = down(epsilon), down(delta)

    def excess(factor: float) -> float:
        return math.log(composed_epsilon(_divided(noises, factor), outside) / most_epsilon)

    low, low_excess = 1.0, excess(1.0)
    if low_excess > 0.0:
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
        middle_excess = excess(middle)
        if middle_excess <= 0.0:
            low, low_excess, high_excess = middle, middle_excess, high_excess / 2.0  # so that the other end moves next
        else:
            high, high_excess, low_excess = middle, middle_excess, low_excess / 2.0
        if -CLOSE < middle_excess <= 0.0:
            break
    return _divided(noises, low)


def _pure(noise: Mechanism) -> Fraction:
    """The epsilon that it keeps without a delta."""
    return Fraction(noise.epsilon(0.0) if noise.pure_epsilon is None else noise.pure_epsilon)


def _divided(noises: Noises, factor: float) -> Noises:
    """Less noise by this factor, each scale rounded up; noise that cannot be made so stays."""
    return tuple(noise.sharpened(factor) for noise in noises)
