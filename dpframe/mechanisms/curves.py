"""Privacy curves at many epsilons at once, in double precision: what a privacy loss distribution is built from.

Each is the exact curve of its noise; the errors are those of double precision, about 1e-15. Negative epsilons follow
from the symmetry of the noise: delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.exact import down

Floats = NDArray[np.float64]

HALVINGS = 80
NODES = 1_000  # of a curve that is known at one point at a time
LARGEST_POWER = 700.0  # e to it is a float


def both_sides(epsilons: Floats, curve: Callable[[Floats], Floats]) -> Floats:
    """The curve of symmetric noise at any epsilons, from the one at epsilons of at least 0."""
    beyond = np.abs(epsilons)
    right = np.clip(curve(beyond), 0.0, 1.0)
    return np.where(epsilons < 0.0, -np.expm1(-beyond) + np.exp(-beyond) * right, right)


def of_gaussian(mu: float, epsilons: Floats) -> Floats:
    """Balle and Wang (2018), Theorem 8; by Mills ratios where the two terms are small."""
    from scipy.special import erfcx, log_ndtr

    s = epsilons / mu - mu / 2.0
    root = math.sqrt(2.0)
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.exp(-s * s / 2.0) / 2.0 * (erfcx(s / root) - erfcx((s + mu) / root))
    near = np.exp(log_ndtr(-s)) - np.exp(epsilons + log_ndtr(-s - mu))
    return np.asarray(np.where(s > 0.0, far, near))


def of_discrete_laplace(shift: float, scale: float, epsilons: Floats) -> Floats:
    """The sum over the outcomes whose loss is above epsilon, as in `Laplace.delta`."""
    rate = 1.0 / scale
    inside = np.minimum(epsilons, shift * rate)  # where it is 0
    last = np.ceil((shift - inside * scale) / 2.0) - 1.0
    rest = np.expm1(inside - (shift - last - 1.0) * rate)
    return np.asarray((-np.expm1(-(last + 1.0) * rate) - math.exp(-rate) * rest) / (1.0 + math.exp(-rate)))


def of_generalized(p: float, ratio: float, epsilons: Floats) -> Floats:
    """As in ``generalized.py``; the turning point by bisection: delta is greatest there, so it need not be sharp."""
    from scipy.special import gammaincc

    if p == 1.0:
        return -np.expm1((epsilons - ratio) / 2.0)

    def tail(y: Floats) -> Floats:
        half = gammaincc(1.0 / p, np.abs(y) ** p) / 2.0
        return np.asarray(np.where(y > 0.0, half, 1.0 - half))

    low = np.full_like(epsilons, -ratio / 2.0)
    high = np.full_like(epsilons, 800.0 ** (1.0 / p))  # beyond, the tail is below exp(-800)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        above = np.abs(middle + ratio) ** p - np.abs(middle) ** p > epsilons
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return tail(high) - np.exp(np.minimum(epsilons, 700.0)) * tail(high + ratio)  # beyond, both are 0


def as_array(epsilon: Fraction) -> Floats:
    """A point of a curve as an array, rounded down: delta falls with epsilon."""
    return np.array([down(epsilon)])


def chords(curve: Callable[[float], float], epsilons: Floats) -> Floats:
    """A curve at many epsilons of at least 0, from a few: delta is convex in e^epsilon, so that chords are above it."""
    points = np.unique(epsilons)
    nodes = points[np.unique(np.linspace(0, points.size - 1, min(points.size, NODES)).astype(np.int64))]
    deltas = np.array([curve(float(node)) for node in nodes])
    beyond = np.searchsorted(nodes, epsilons, side="right") - 1  # delta falls: that of the node before is above
    if nodes[-1] > LARGEST_POWER:
        return np.asarray(deltas[beyond])
    return np.asarray(np.interp(np.exp(epsilons), np.exp(nodes), deltas) * (1.0 + 2.0**-40))
