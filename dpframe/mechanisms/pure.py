"""The points of the privacy curve that follow from pure epsilon-differential privacy, where nothing more is known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.exact import rounded_up

DIGITS = 60


def delta_of_pure(pure: float, epsilon: Fraction) -> float:
    """The delta at `epsilon` of any `pure`-DP release, at most (e^pure - e^epsilon) / (1 + e^pure); rounded up.

    Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy" (2015): every such release is a
    post-processing of randomized response, whose curve this is.
    """
    import mpmath

    if epsilon >= pure:
        return 0.0
    with mpmath.workdps(DIGITS):
        gap = -mpmath.expm1(_exactly(epsilon - Fraction(pure)))
        return rounded_up(gap / (1 + mpmath.exp(-mpmath.mpf(pure))))


def epsilon_of_pure(pure: float, delta: float) -> float:
    """The epsilon at `delta` of any `pure`-DP release, at most; rounded up."""
    import mpmath

    with mpmath.workdps(DIGITS):
        left = 1 - mpmath.mpf(delta) * (1 + mpmath.exp(-mpmath.mpf(pure)))
        if left <= mpmath.exp(-mpmath.mpf(pure)):
            return 0.0
        return min(pure, rounded_up(pure + mpmath.log(left)))


def _exactly(value: Fraction) -> Any:
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator
