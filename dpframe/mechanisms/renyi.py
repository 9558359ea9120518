"""Rényi divergences of shifted noise, rounded up: the cost of a release in Rényi differential privacy.

Mironov, "Rényi Differential Privacy" (2017). The divergence of order a > 1 between P and Q is
log(E_Q[(P/Q)^a]) / (a - 1). All laws here are symmetric and log-concave, so it is the same in both directions and
largest at the largest shift.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpframe.exact import SMALLEST_NORMAL, exactly, in_mpmath, to_digits
from dpframe.mechanisms.gaussian_curve import SMALLER, edge

POINTS = 2**18
FAR = 50.0  # the integrand is cut where it has fallen by exp(-50); the rest is bounded
MOST = 1e300  # a larger cost counts as this one, which no ledger can hold
ROUNDING = 2.0**-46  # the relative error of the exponent: two powers and their difference, in double precision


def checked_order(order: object) -> Fraction:
    """Return an order as a fraction: for a float, the decimal that was typed."""
    return exactly("order", order)


def of_gaussian(mu_squared: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of Gaussian noise, order * mu^2 / 2, exactly.

    See Mironov (2017), Proposition 7.
    """
    return order * mu_squared / 2


def of_pure(epsilon: float, order: Fraction) -> Fraction:
    """Return the most that any epsilon-DP release can cost.

    Every such release is a post-processing of randomized response (Kairouz, Oh and Viswanath 2015, proof of Theorem
    3.3). So it costs at most as much as randomized response (Mironov 2017, Proposition 5).
    """
    return of_discrete_laplace(1, 1 / Fraction(epsilon), order)


@lru_cache(maxsize=4096)
def of_discrete_laplace(shift: int, scale: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of discrete Laplace noise that is shifted by `shift`.

    P(k) is proportional to exp(-|k| / scale) on the integers. The moment is the sum of three geometric sums.
    """
    import mpmath

    with to_digits(_digits(shift / scale, order)):
        a, rate = in_mpmath(order), 1 / in_mpmath(scale)
        inside, falls = -rate * (2 * a - 1), -mpmath.expm1(-rate)
        above = mpmath.exp(rate * shift * (a - 1))  # the outcomes up to 0
        between = above * mpmath.exp(inside) * mpmath.expm1(inside * (shift - 1)) / mpmath.expm1(inside)
        below = mpmath.exp(-rate * shift * a)  # the outcomes from `shift` on
        moment = ((above + below) + falls * between) / (1 + mpmath.exp(-rate))
        return _up(mpmath.log(moment) / (a - 1))


@lru_cache(maxsize=4096)
def of_laplace(ratio: float, order: Fraction) -> Fraction:
    """Return the divergence of continuous Laplace noise of scale 1 that is shifted by `ratio`.

    See Mironov (2017), Proposition 6.
    """
    import mpmath

    with to_digits(_digits(Fraction(ratio), order)):
        a, shift = in_mpmath(order), mpmath.mpf(ratio)
        moment = (a * mpmath.exp((a - 1) * shift) + (a - 1) * mpmath.exp(-a * shift)) / (2 * a - 1)
        return _up(mpmath.log(moment) / (a - 1))


@lru_cache(maxsize=4096)
def of_generalized(p: float, ratio: float, order: Fraction) -> Fraction:
    """Return an upper bound on the divergence of generalized Gaussian noise of scale 1, shifted by `ratio`.

    The shape is p > 1. The divergence is finite at every order: in the exponent h(y) = -a |y|^p + (a - 1) |y -
    ratio|^p, the power -|y|^p outgrows the rest. For y > 0, h falls. For y < 0, it has one maximum, at y = -z with z /
    (z + ratio) = (1 - 1/a)^(1/(p - 1)). So exp(h) rises once and falls once, and its integral is at most step * (sum
    over a grid + one maximum). Left of the grid, h has at least the slope p (a z^(p-1) - (a - 1) (z + ratio)^(p-1)) of
    the left end, which grows with z. Right of it, h falls with a slope of at least p y^(p-1). So each tail is at most
    exp(h) / slope at its end.
    """
    a = float(order)

    def exponent(y: Any) -> Any:
        return (a - 1.0) * np.abs(y - ratio) ** p - a * np.abs(y) ** p

    share = math.exp(math.log1p(-1.0 / a) / (p - 1.0))
    top = -ratio * share / (1.0 - share)
    if (a * (1.0 + ratio - top)) > MOST ** (1.0 / p):
        return Fraction(MOST)
    highest = float(exponent(top))
    left, right = (_end(exponent, start, way, highest) for start, way in ((top, -1.0), (max(top, 1.0), 1.0)))
    grid = np.linspace(left, right, POINTS)
    body = (grid[1] - grid[0]) * (float(np.exp(np.minimum(exponent(grid) - highest, 0.0)).sum()) + 1.0)
    farthest = max(-left, right) + ratio
    slopes = a * (-left) ** (p - 1.0), (a - 1.0) * (ratio - left) ** (p - 1.0)
    slope = p * (slopes[0] - slopes[1] - ROUNDING * sum(slopes))
    tails = math.exp(-FAR) / max(slope, 1e-300) + math.exp(-FAR) / (p * right ** (p - 1.0))
    error = ROUNDING * (1.0 + p) * (1.0 + 2.0 * a * farthest**p)  # bounds the error of the exponents
    moment = highest + math.log((body + tails) / (2.0 * math.gamma(1.0 + 1.0 / p))) + error
    return Fraction(max(moment, 0.0) * (1.0 + 2.0**-40)) / (Fraction(order) - 1)


@lru_cache(maxsize=4096)
def largest_pure(cost: Fraction, order: Fraction) -> float:
    """Return the largest epsilon at which every epsilon-DP release costs at most `cost`, rounded down.

    Below the normal floats, it is the smallest of these: each calibration refuses so small a loss.
    """
    if of_pure(SMALLEST_NORMAL, order) > cost:
        return SMALLEST_NORMAL
    guess = min(math.sqrt(2.0 * cost / order), float(cost) + math.log(2.0) / (float(order) - 1.0))
    return edge(lambda epsilon: of_pure(epsilon, order) > cost, guess, SMALLER)  # a smaller epsilon is safer


def _end(exponent: Any, start: float, way: float, highest: float) -> float:
    """Return the place on one side where the integrand has fallen by exp(-FAR)."""
    step = 2.0**-20 * (1.0 + abs(start))
    while exponent(start + way * step) > highest - FAR:
        step *= 1.25
    return start + way * step


def _digits(ratio: Fraction, order: Fraction) -> int:
    """Return digits enough for 40 correct ones of a moment's logarithm, which is about order^2 ratio^2 / 2."""
    small = float(min(ratio, Fraction(1))) * float(min(order - 1, Fraction(1)))
    return 60 + math.ceil(-2.0 * math.log10(small) + math.log10(float(order)))


def _up(value: Any) -> Fraction:
    """Return a rational that is above an mpmath number by more than the error of its 40 digits."""
    mantissa, exponent = value.man_exp
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (1 + Fraction(1, 10**30))
