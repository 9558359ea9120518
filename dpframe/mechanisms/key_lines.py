"""The line above which a key is shown: the smallest that a key of one unit alone reaches with a chance of delta.

A unit that holds t keys, each with v(t) steps, shows one of those that nobody else has with the chance
1 - (1 - P(Z >= tau - v(t)))^t, since every key has noise of its own. Which t is the worst depends on the noise: the
smallest, the largest and the one where the weights begin to fall are all seen, so every t is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Tail = Callable[[Floats], Floats]

ROUNDING = 1.0 + 2.0**-40  # more than tails and logarithms err in double precision, down to any delta above 1e-300
MOST_STEPS = 2**52  # a line beyond is no whole number in double precision


def chance_shown(tail: Tail, weights: Integers, line: int) -> float:
    """The chance that a unit alone shows a key, the largest over its numbers of keys; rounded up.

    `weights` are the steps that a unit adds to each key where it holds 1, 2, 3, ... of them; `tail` is the chance of
    noise of at least so many steps, of 1 and more, of a law that is symmetric.
    """
    return float(chances_shown(tail, weights, line).max() * ROUNDING)


def chances_shown(tail: Tail, weights: Integers, line: int) -> Floats:
    """The same for each number of keys, not rounded."""
    gap = (line - weights).astype(np.float64)
    above = gap >= 1.0
    far = tail(np.where(above, gap, 1.0 - gap))  # P(Z >= m), and of m <= 0 what is missing to 1: P(Z >= 1 - m)
    with np.errstate(divide="ignore"):
        hidden = np.where(above, np.log1p(-far), np.log(far))
    return np.asarray(-np.expm1(np.arange(1.0, weights.size + 1.0) * hidden))


def smallest_line(tail: Tail, weights: Integers, delta: float) -> int:
    """The smallest whole number of steps at which that chance is at most `delta`; at least 0.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> smallest_line(noise.tail, np.array([1]), 1e-6)
    15
    """
    low, high = -1, 1
    while chance_shown(tail, weights, high) > delta:
        low, high = high, 2 * high
        if high > MOST_STEPS:
            raise InvalidArgument(
                "epsilon must be large enough for a threshold that fits 52 bits of steps. Write a larger epsilon, or "
                "fewer max_keys."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance_shown(tail, weights, middle) <= delta else (middle, high)
    return high
