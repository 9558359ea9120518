"""The variance, the intervals and the privacy curve of symmetric, log-concave integer noise, from its tails.

``tail(k)`` is the chance of noise of at least k grid steps, k = 1, 2, ...; below 1 it is 1 - tail(1 - k) by symmetry.

**The curve.** Two totals that differ by D steps give answers X and X + D of one law. Their hockey-stick divergence at
e^epsilon is the largest P(X + D in A) - e^epsilon P(X in A). For a log-concave law the ratio of the two probabilities
of an outcome grows with the outcome, so the best A is a half-line: delta = max over x of T(x - D) - e^epsilon T(x),
which rises and then falls with x. A smaller shift gives no more (the same with D in parts, Dong, Roth and Su 2022,
Theorem 2.14), and by symmetry both orders of the totals give the same.

Every rounding is to the side that claims less: tails err by at most ACCURACY of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpframe.errors import InvalidArgument
from dpframe.mechanisms.curves import LARGEST_POWER, Floats

Tail = Callable[[Floats], Floats]

ACCURACY = 2.0**-40  # of a tail, relative
NOTHING = 1e-300  # a tail below it is none
FARTHEST = 2.0**62  # grid steps
DIRECT = 2**20  # terms of a sum; of longer ones so many blocks
TRIED = 64  # points of a line at a time, of which the neighbors of the best are looked at more closely


def steps_of(sensitivity: float, grid: float) -> float:
    """A sensitivity as a whole number of grid steps, rounded up; what is a rounding error of one above is that one."""
    return float(math.ceil(Fraction(sensitivity) / Fraction(grid) * (1 - Fraction(1, 2**50))))


def at_least(tail: Tail, steps: Floats) -> Floats:
    """The chance of noise of at least so many steps, for any whole number of them."""
    upper = tail(np.maximum(steps, 1.0))
    return np.asarray(np.where(steps >= 1.0, upper, 1.0 - tail(np.maximum(1.0 - steps, 1.0))))


def reach(tail: Tail, least: float = NOTHING) -> float:
    """A number of steps beyond which the tail is below `least`, at most twice the smallest."""
    steps: Floats = np.ldexp(1.0, np.arange(63))
    beyond = tail(steps) < least
    if not beyond.any():
        raise InvalidArgument(f"tail must fall below {least:g} within 2**62 grid steps. Write a coarser grid.")
    return float(steps[np.argmax(beyond)])


def variance(tail: Tail) -> float:
    """The sum of (2 k - 1) 2 tail(k), in squared steps; of a wide law by blocks, where it is nearly an integral."""
    last = reach(tail, 1e-30)
    if last <= DIRECT:
        steps = np.arange(1.0, last + 1.0)
        return float(((2.0 * steps - 1.0) * 2.0 * tail(steps)).sum())
    ends = np.rint(np.linspace(0.0, last, DIRECT + 1))
    tails = tail(np.maximum(ends, 1.0))
    tails[0] = 0.5
    return float((np.diff(ends**2) * (tails[1:] + tails[:-1])).sum())


def half_width(tail: Tail, confidence: float) -> float:
    """The fewest steps k with 2 tail(k + 1) <= 1 - confidence."""
    low, high = -1.0, reach(tail)
    while high - low > 1.0:
        middle = math.floor((low + high) / 2.0)
        outside = 2.0 * float(tail(np.array([middle + 1.0]))[0]) * (1.0 + ACCURACY)
        low, high = (low, middle) if outside <= 1.0 - confidence else (middle, high)
    return high


def deltas(tail: Tail, shift: float, epsilons: Floats) -> Floats:
    """The delta of a shift of so many steps at each epsilon of at least 0, rounded up."""
    factors = np.exp(np.minimum(epsilons, LARGEST_POWER))  # of a larger epsilon delta is no larger

    def gain(steps: Floats) -> Floats:
        above = at_least(tail, steps - shift) * (1.0 + ACCURACY)
        return np.asarray(above - factors[:, None] * at_least(tail, steps) * (1.0 - ACCURACY))

    farthest = min(reach(tail) + shift, FARTHEST)
    low, high = np.full(epsilons.size, -farthest), np.full(epsilons.size, farthest)
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
