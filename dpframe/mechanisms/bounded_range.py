"""The cost of a choice of bounded range: all privacy losses in one interval of length epsilon.

Durfee and Rogers, "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition" (2019); Dong,
Durfee and Rogers, "Optimal Differential Privacy Composition for Exponential Mechanisms" (2020). Every such pair of
outputs is dominated by one of two outcomes with losses t and t - epsilon, for some t from 0 to epsilon; the functions
here are the worst over t, and ``docs/privacy.md`` has the proofs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpframe.exact import rounded_up, up
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.curves import Floats

DIGITS = 60
CORRECT = Fraction(1, 10**30)  # relative: more than what the digits of a divergence may err


def delta(length: Fraction, epsilon: Fraction) -> float:
    """The delta at an epsilon from 0 to that length, (e^(length/2) - e^(epsilon/2))^2 / (e^length - 1); rounded up."""
    import mpmath

    with mpmath.workdps(DIGITS):
        short = -mpmath.expm1((_exactly(epsilon) - _exactly(length)) / 2)
        return rounded_up(short**2 / -mpmath.expm1(-_exactly(length)))


def epsilon(length: Fraction, outside: float) -> float:
    """The smallest epsilon >= 0 at this delta: length + 2 log(1 - sqrt(delta (1 - e^-length))); rounded up."""
    import mpmath

    with mpmath.workdps(DIGITS):
        left = 1 - mpmath.sqrt(mpmath.mpf(outside) * -mpmath.expm1(-_exactly(length)))
        if left <= mpmath.exp(-_exactly(length) / 2):
            return 0.0
        return min(up(length), rounded_up(_exactly(length) + 2 * mpmath.log(left)))


def deltas(length: float, epsilons: Floats) -> Floats:
    """The same at many epsilons of at least 0, in double precision."""
    short = -np.expm1(np.minimum(0.0, (epsilons - length) / 2.0))
    return np.asarray(short**2 / -math.expm1(-length))


def mu(length: Fraction) -> float:
    """The mu of Gaussian differential privacy: that of pure noise of half its epsilon; rounded up."""
    return gaussian_curve.pure_to_mu(up(length / 2))


def own_of_mu(most: float) -> Fraction:
    """The largest epsilon whose choices cost at most this mu; rounded down."""
    return 2 * Fraction(gaussian_curve.mu_to_pure(most))


def of_mu(largest: float) -> Fraction:
    """The largest epsilon whose mu, rounded up, may be this one: 4 artanh(erf(mu / sqrt(8))); rounded up."""
    import mpmath

    with mpmath.workdps(DIGITS):
        half = mpmath.mpf(largest) / mpmath.sqrt(8)
        tail = mpmath.erfc(half)
        exact = 4 * mpmath.atanh(mpmath.erf(half)) if largest < 1.0 else 2 * (mpmath.log(2 - tail) - mpmath.log(tail))
        return Fraction(rounded_up(exact * (1 + mpmath.mpf(10) ** -30)))


@lru_cache(maxsize=4096)
def renyi(length: Fraction, order: Fraction) -> Fraction:
    """The Rényi divergence of an order above 1, the largest over t; rounded up.

    With E = e^length, x = e^t and a = order - 1 the second output has the two outcomes with the probabilities q and
    1 - q, q = (E / x - 1) (1 / (E - 1)), the first with x q and 1 - x q; so the moment E_P[(P/Q)^a] is
    x^(a+1) q + (x / E)^(a+1) (1 - q) = x^a ((E - E^-a) - x (1 - E^-a)) / (E - 1), greatest over x at
    x = a (E - E^-a) / ((a + 1) (1 - E^-a)).
    """
    import mpmath

    small = max(0.0, -2.0 * math.log10(min(1.0, float(length)))) + max(0.0, -math.log10(min(1.0, float(order - 1))))
    with mpmath.workdps(DIGITS + math.ceil(2.0 * small)):  # the moment is near 1, and its logarithm small
        a, loss = _exactly(order - 1), _exactly(length)
        constant, slope = mpmath.exp(loss) - mpmath.exp(-a * loss), -mpmath.expm1(-a * loss)
        best = a * constant / ((a + 1) * slope)
        moment = a * mpmath.log(best) + mpmath.log((constant - best * slope) / mpmath.expm1(loss))
        mantissa, exponent = (moment / a).man_exp
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (1 + CORRECT)


def _exactly(value: Fraction) -> Any:
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator
