"""Privacy curves at many epsilons at once, in double precision, from which loss distributions are built.

Each function computes the exact curve of its noise, up to errors of double precision, about 1e-15. Negative epsilons
follow from the symmetry of the noise: delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon).

**From tails.** The variance, the intervals and the curve of symmetric, log-concave integer noise follow from its tails.
``tail(k)`` is the chance of noise of at least k grid steps, k = 1, 2, ...; below 1 it is 1 - tail(1 - k) by symmetry.

**The curve.** Two totals that differ by D steps give answers with the laws of X and X + D. Their hockey-stick
divergence at e^epsilon is the largest P(X + D in A) - e^epsilon P(X in A) over events A. For a log-concave law, the
ratio of the two probabilities grows with the outcome. So the best A is a half-line: delta is the maximum over x of
T(x - D) - e^epsilon T(x), with the tail T. This rises and then falls with x. A smaller shift, or D in parts, gives no
larger delta (Dong, Roth and Su 2022, Theorem 2.14). By symmetry, both orders of the totals give the same delta.

All rounding is toward the weaker claim, and allows for a relative error of tails of at most ACCURACY.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown
from dpframe.exact import between, down, exactly

Floats = NDArray[np.float64]

LARGEST_FLOAT = 1.7976931348623157e308
HALVINGS = 80
NODES = 1_000  # the most points at which `chords` evaluates a curve
LARGEST_POWER = 700.0  # its exponential is a finite float

Tail = Callable[[Floats], Floats]

ACCURACY = 2.0**-40  # the relative error of a tail
NOTHING = 1e-300  # a smaller tail counts as 0
FARTHEST = 2.0**62  # in grid steps
DIRECT = 2**20  # the most terms of a sum; a longer sum uses this many blocks
TRIED = 64  # points of each search; the next one searches between the neighbors of the best point


def checked_outside(delta: object) -> float:
    """Return a delta as a float, rounded down, so that epsilon is not understated."""
    return between("delta", delta, 0.0, 1.0, "a number with 0 <= delta <= 1", closed=True)


def curve_point(epsilon: float | Fraction) -> Fraction:
    """Return an epsilon of a privacy curve as a rational.

    For a float, it is the larger of the exact value and the typed decimal.
    """
    rule = "a finite number of at least 0"
    point = max(exactly("epsilon", epsilon, rule, typed=typed) for typed in (True, False))
    if not 0 <= point <= Fraction(LARGEST_FLOAT):
        raise InvalidArgument(f"epsilon must be {rule}, not {shown(epsilon)}.")
    return point


def both_sides(epsilons: Floats, curve: Callable[[Floats], Floats]) -> Floats:
    """Return the curve of symmetric noise at any epsilons, from its values at 0 or more."""
    beyond = np.abs(epsilons)
    right = np.clip(curve(beyond), 0.0, 1.0)
    return np.where(epsilons < 0.0, -np.expm1(-beyond) + np.exp(-beyond) * right, right)


def of_gaussian(mu: float, epsilons: Floats) -> Floats:
    """Compute the curve of Balle and Wang (2018), Theorem 8, by Mills ratios if the two terms are small."""
    from scipy.special import erfcx, log_ndtr

    s = epsilons / mu - mu / 2.0
    root = math.sqrt(2.0)
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.exp(-s * s / 2.0) / 2.0 * (erfcx(s / root) - erfcx((s + mu) / root))
    near = np.exp(log_ndtr(-s)) - np.exp(epsilons + log_ndtr(-s - mu))
    return np.asarray(np.where(s > 0.0, far, near))


def of_discrete_laplace(shift: float, scale: float, epsilons: Floats) -> Floats:
    """Sum over the outcomes with a loss above epsilon, as in `Laplace.delta`."""
    rate = 1.0 / scale
    inside = np.minimum(epsilons, shift * rate)  # delta is 0 from shift * rate on
    last = np.ceil((shift - inside * scale) / 2.0) - 1.0
    beyond = inside - (shift - last - 1.0) * rate  # between 0 and rate, so no exponential overflows
    rest = np.exp(beyond - rate) * -np.expm1(-beyond)
    return np.asarray((-np.expm1(-(last + 1.0) * rate) - rest) / (1.0 + math.exp(-rate)))


def of_generalized(p: float, ratio: float, epsilons: Floats) -> Floats:
    """Compute the curve of ``generalized_curve.py``, with the turning point by bisection.

    Delta is greatest there, so the point need not be exact.
    """
    from scipy.special import gammaincc

    if p == 1.0:
        return -np.expm1((epsilons - ratio) / 2.0)

    def tail(y: Floats) -> Floats:
        half = gammaincc(1.0 / p, np.abs(y) ** p) / 2.0
        return np.asarray(np.where(y > 0.0, half, 1.0 - half))

    low = np.full_like(epsilons, -ratio / 2.0)
    high = np.full_like(epsilons, 800.0 ** (1.0 / p))  # the tail beyond is below exp(-800)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        above = np.abs(middle + ratio) ** p - np.abs(middle) ** p > epsilons
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return tail(high) - np.exp(np.minimum(epsilons, 700.0)) * tail(high + ratio)  # the cap overstates delta


def as_array(epsilon: Fraction) -> Floats:
    """Return an epsilon as an array of one float, rounded down, since delta falls with epsilon."""
    return np.array([down(epsilon)])


def chords(curve: Callable[[float], float], epsilons: Floats) -> Floats:
    """Compute a curve at many epsilons of at least 0 from its values at a few.

    Delta is convex in e^epsilon, so chords lie above it.
    """
    points = np.unique(epsilons)
    nodes = points[np.unique(np.linspace(0, points.size - 1, min(points.size, NODES)).astype(np.int64))]
    deltas = np.array([curve(float(node)) for node in nodes])
    beyond = np.searchsorted(nodes, epsilons, side="right") - 1  # delta falls, so the previous node has a larger one
    if nodes[-1] > LARGEST_POWER:
        return np.asarray(deltas[beyond])
    return np.asarray(np.interp(np.exp(epsilons), np.exp(nodes), deltas) * (1.0 + 2.0**-40))


def whole_steps(sensitivity: float, grid: float) -> float:
    """Return a sensitivity as a whole number of grid steps, rounded up.

    A number that exceeds a whole one only by a rounding error counts as the whole one.
    """
    return float(math.ceil(Fraction(sensitivity) / Fraction(grid) * (1 - Fraction(1, 2**50))))


def tail_at_least(tail: Tail, steps: Floats) -> Floats:
    """Return the chance of noise of at least this many steps, for any whole number of steps."""
    upper = tail(np.maximum(steps, 1.0))
    return np.asarray(np.where(steps >= 1.0, upper, 1.0 - tail(np.maximum(1.0 - steps, 1.0))))


def reach_of_tail(tail: Tail, least: float = NOTHING) -> float:
    """Return a number of steps beyond which the tail is below `least`, at most twice the smallest."""
    steps: Floats = np.ldexp(1.0, np.arange(63))
    beyond = tail(steps) < least
    if not beyond.any():
        raise InvalidArgument(f"tail must fall below {least:g} within 2**62 grid steps. Write a coarser grid.")
    return float(steps[np.argmax(beyond)])


def variance_of_tail(tail: Tail) -> float:
    """Return the sum of (2 k - 1) 2 tail(k), in squared steps.

    For a wide law, the sum is nearly an integral and is computed in blocks.
    """
    last = reach_of_tail(tail, 1e-30)
    if last <= DIRECT:
        steps = np.arange(1.0, last + 1.0)
        return float(((2.0 * steps - 1.0) * 2.0 * tail(steps)).sum())
    ends = np.rint(np.linspace(0.0, last, DIRECT + 1))
    tails = tail(np.maximum(ends, 1.0))
    tails[0] = 0.5
    return float((np.diff(ends**2) * (tails[1:] + tails[:-1])).sum())


def half_width_of_tail(tail: Tail, confidence: float) -> float:
    """Return the fewest steps k with 2 tail(k + 1) <= 1 - confidence."""
    low, high = -1.0, reach_of_tail(tail)
    while high - low > 1.0:
        middle = math.floor((low + high) / 2.0)
        outside = 2.0 * float(tail(np.array([middle + 1.0]))[0]) * (1.0 + ACCURACY)
        low, high = (low, middle) if outside <= 1.0 - confidence else (middle, high)
    return high


def deltas_of_tail(tail: Tail, shift: float, epsilons: Floats) -> Floats:
    """Return the deltas of a shift by `shift` steps at each epsilon of at least 0, rounded up.

    Each is the largest gain of all steps. The law is symmetric, so the gain of a step x below (1 + shift) / 2 is at
    most that of 1 + shift - x, and the search can begin at 0.
    """
    factors = np.exp(np.minimum(epsilons, LARGEST_POWER))  # the cap overstates delta, which falls with epsilon

    def gain(steps: Floats) -> Floats:
        above = tail_at_least(tail, steps - shift) * (1.0 + ACCURACY)
        return np.asarray(above - factors[:, None] * tail_at_least(tail, steps) * (1.0 - ACCURACY))

    farthest = min(reach_of_tail(tail) + shift, FARTHEST)
    low, high = np.zeros(epsilons.size), np.full(epsilons.size, farthest)
    most = np.zeros(epsilons.size)
    rows = np.arange(epsilons.size)
    while True:
        points = np.rint(low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, TRIED))
        gains = gain(points)
        best = gains.argmax(axis=1)
        most = np.maximum(most, gains[rows, best])
        if (high - low).max(initial=0.0) < TRIED:
            return np.asarray(np.minimum(most, 1.0))
        low, high = points[rows, np.maximum(best - 1, 0)], points[rows, np.minimum(best + 1, TRIED - 1)]
