"""Noise with a threshold, the line, for counts of unknown groups: the groups whose noisy counts reach it are shown.

The line tau is the smallest at which a unit alone shows a key with a chance of at most delta. Let a unit hold t keys
that no other unit has, with v(t) steps in each. It shows one of them with the chance 1 - (1 - P(Z >= tau - v(t)))^t,
since each key has independent noise Z. The worst t depends on the noise: it may be the smallest, the largest or the one
where the weights begin to fall. So every t is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise as draws
from dpframe.errors import InvalidArgument
from dpframe.exact import down
from dpframe.mechanisms import curves
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.laplace import TruncatedLaplace, shown_above

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Tail = Callable[[Floats], Floats]

ROUNDING = 1.0 + 2.0**-40  # covers the errors of tails and logarithms in double precision, for any delta above 1e-300
MOST_STEPS = 2**52  # the largest line; double precision is exact for whole numbers up to twice this


def chance_shown(tail: Tail, weights: Integers, line: int) -> float:
    """Return the chance that a unit alone shows a key, rounded up.

    It is the largest over the unit's numbers of keys. `weights` are the steps that a unit adds to each key if it holds
    1, 2, 3, ... keys. `tail` is the chance of noise of at least this many steps, from 1 on, of a symmetric law.
    """
    return float(chances_shown(tail, weights, line).max() * ROUNDING)


def chances_shown(tail: Tail, weights: Integers, line: int) -> Floats:
    """Return the chance that a unit alone shows a key, for each number of its keys, not rounded."""
    gap = (line - weights).astype(np.float64)
    above = gap >= 1.0
    far = tail(np.where(above, gap, 1.0 - gap))  # P(Z >= gap), or P(Z >= 1 - gap) if gap <= 0
    with np.errstate(divide="ignore"):
        hidden = np.where(above, np.log1p(-far), np.log(far))
    return np.asarray(-np.expm1(np.arange(1.0, weights.size + 1.0) * hidden))


def smallest_line(tail: Tail, weights: Integers, delta: float) -> int:
    """Return the smallest whole number of steps at which `chance_shown` is at most `delta`.

    It is at least 0.

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


HALF, MOST = 0.5, 0.95  # the chances for which a plan describes the threshold


@dataclass(frozen=True)
class Thresholded(Mechanism):
    """The noise of the counts of unknown groups, and the threshold to show a group.

    Parameters
    ----------
    noise : Mechanism
        The noise of the counts.
    line : int
        The threshold in grid steps. A key is shown if its noisy count is not below it.
    charged : Fraction
        The delta that the call allows for the keys.
    shown : float
        The chance that a unit shows a key that nobody else has, rounded up. It is the largest over the unit's numbers
        of keys, and at most `charged`.
    apart : bool
        Whether that chance and the loss of the noise concern different units. If so, the larger one counts instead of
        their sum.

    Notes
    -----
    With d for `shown` and d1 for the curve of the noise, delta(epsilon) <= d + (1 - d) d1(epsilon) in both directions
    (``docs/assurance/privacy.md``, "Unknown groups"). The charge is `charged`, which is not below d.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> from fractions import Fraction
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> found = of_noise(noise, np.array([1]), Fraction(1, 10**6))
    >>> found.line, f"{found.shown:.4e}", found.likely_shown(0.95)
    (15, '6.0790e-07', 17.0)
    """

    noise: Mechanism
    line: int
    charged: Fraction
    shown: float
    apart: bool = False

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.noise.name

    @property
    def norm(self) -> float:
        """The norm in which the noise covers the sensitivity."""
        return self.noise.norm

    @property
    def p(self) -> float:
        """The shape of the noise."""
        return self.noise.p

    @property
    def cells(self) -> float:
        """Infinity, since a unit in many groups counts for less in each."""
        return math.inf

    @property
    def sensitivity(self) -> float:
        """The sensitivity for which the noise was calibrated."""
        return self.noise.sensitivity

    @property
    def grid(self) -> float:
        """The length of a grid step."""
        return self.noise.grid

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return self.noise.scale

    @property
    def variance(self) -> float:
        """The variance of the noise of all counts; that of the shown ones is smaller."""
        return self.noise.variance

    @property
    def threshold(self) -> float:
        """The threshold in the user's units: a number of people."""
        return self.line * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its shape and scale."""
        return {**self.noise.details, "threshold": self.threshold, "keys_delta": down(self.charged)}

    @property
    def infinite(self) -> float:
        """The chance of an infinite loss."""
        return self.shown

    @property
    def keys_delta(self) -> Fraction:
        """The delta that is charged in addition to the curve of the noise."""
        return self.charged

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps."""
        return self.noise.tail(steps)

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        return self.noise.interval(confidence)

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, rounded up."""
        curve = self.noise.delta(epsilon)
        return max(curve, self.shown) if self.apart else min(1.0, math.nextafter(curve + self.shown, math.inf))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up.

        A delta below the chance that a key is shown is refused, since it has no epsilon.
        """
        if delta < self.shown:
            raise InvalidArgument(f"delta must be at least {self.shown:g}, with which a key of one unit is shown.")
        left = delta if self.apart else max(0.0, math.nextafter(delta - self.shown, 0.0))
        return self.noise.epsilon(left)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, in double precision."""
        curve = self.noise.deltas(epsilons)
        return np.maximum(curve, self.shown) if self.apart else np.minimum(curve + self.shown, 1.0)

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, in addition to `keys_delta`."""
        return self.noise.mu_squared

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy, in addition to `keys_delta`."""
        return self.noise.renyi(order)

    def add_noise(self, totals: draws.Integers) -> draws.Integers:
        """Add independent noise to counts."""
        return self.noise.add_noise(totals)

    def is_shown(self, noisy: draws.Integers) -> NDArray[np.bool_]:
        """Return which noisy counts reach the threshold."""
        return noisy >= self.line

    def likely_shown(self, chance: float) -> float:
        """Return the smallest number of people whose group is shown with at least this chance.

        Each person has the full weight. A count c is shown with the chance P(c + Z >= line). From the threshold on, the
        chance is 1/2 or more, since the law is symmetric.
        """
        if chance <= HALF:
            return math.ceil(self.threshold)
        low, high = 0, 1
        while float(self.tail(np.array([float(high)]))[0]) > 1.0 - chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = float(self.tail(np.array([float(middle)]))[0]) <= 1.0 - chance
            low, high = (low, middle) if enough else (middle, high)
        return float(math.ceil((self.line + high - 1) * self.grid))  # P(Z < -g) = P(Z >= g + 1)

    def words(self, one: str, many: str) -> str:
        """Return the threshold as text, in units of this noun."""
        half, most = (
            f"1 {one}" if size == 1 else f"{size:,.0f} {many}" for size in map(self.likely_shown, (HALF, MOST))
        )
        return f"a group of {half} is shown half the time, of {most} {MOST:.0%} of the time"


def of_noise(
    law: Mechanism, weights: NDArray[np.int64], delta: Fraction, *, at_least: int = 1, apart: bool = False
) -> Thresholded:
    """Return the noise with the smallest sufficient threshold.

    At this threshold, a unit alone shows a key with a chance of at most `delta`. With `at_least` m > 1, keys of fewer
    units are dropped before the noise is added. If one unit brings a key to m units, the m - 1 others add at most m - 1
    full weights. The threshold rises by this amount.
    """
    if isinstance(law, TruncatedLaplace):
        line, shown = shown_above(law), law.infinite
    else:
        line = smallest_line(law.tail, weights, down(delta))
        shown = chance_shown(law.tail, weights, line)
    return Thresholded(law, line + (at_least - 1) * int(weights[0]), delta, shown, apart)
