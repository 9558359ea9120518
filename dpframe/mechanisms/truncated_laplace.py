"""Discrete Laplace noise that ends: where each unit is in one group, the best noise for keys and their counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.exact import down, exact_delta, exact_epsilon, rounded_up
from dpframe.mechanisms import curves
from dpframe.mechanisms.asked import LARGEST_LAPLACE, checked_confidence, checked_integers, curve_point, scale_of
from dpframe.mechanisms.asked import wrapped as added
from dpframe.mechanisms.stepped import Stepped

DIGITS = 60


@dataclass(frozen=True)
class TruncatedLaplace(Stepped):
    """Discrete Laplace noise on -k, ..., k: P(x) proportional to exp(-|x| / t), for counts of a group of each unit.

    Made by `TruncatedLaplace.calibrate`. A count is shown where count + noise > k: one that is 1 with the chance
    P(x = k), one that is 0 never.

    Parameters
    ----------
    step_sensitivity : float
        1: each unit adds 1 to one count.
    step_scale : float
        t.
    grid : float
        1.
    reach : int
        k.
    counts : int
        How many counts a unit moves by 1: 1, or under replace 2.

    Notes
    -----
    Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition selection" (2022), Section 3: the
    (epsilon, delta)-private rule that shows the most keys, written as noise. Between two counts that differ by 1 the
    ratio of chances is at most exp(1 / t), but for the one end that only one of them reaches: so delta is P(x = k).

    Examples
    --------
    >>> noise = TruncatedLaplace.calibrate(epsilon=1, delta=1e-6)
    >>> noise.reach, f"{noise.delta(1.0):.4e}"
    (14, '3.8426e-07')
    """

    reach: int = 0
    counts: int = 1
    p: ClassVar[float] = 1.0
    norm: ClassVar[float] = 1.0
    name: ClassVar[str] = "truncated Laplace"

    @classmethod
    def calibrate(cls, *, epsilon: float | Fraction, delta: float | Fraction, counts: int = 1) -> Self:
        """The noise of the smallest k that is (epsilon, delta)-private; of two counts each is so at half of both.

        Parameters
        ----------
        epsilon, delta : float or Fraction
            epsilon finite and above 0, 0 < delta < 1.
        counts : int
            How many counts a unit moves.
        """
        scale = scale_of(Fraction(counts), exact_epsilon(epsilon), LARGEST_LAPLACE)
        outside = down(exact_delta(delta) / counts)
        law = cls(1, scale, reach=max(1, _guessed(1.0 / scale, outside)), counts=counts)
        while law.end > outside:  # the formula in double precision may be short by one
            law = replace(law, reach=law.reach + 1)
        return law

    @property
    def end(self) -> float:
        """P(x = k), rounded up: the chance that a count of 1 is shown."""
        import mpmath

        with mpmath.workdps(DIGITS):
            rate = 1 / mpmath.mpf(self.step_scale)
            whole = (1 + mpmath.exp(-rate) - 2 * mpmath.exp(-rate * (self.reach + 1))) / (1 - mpmath.exp(-rate))
            return rounded_up(mpmath.exp(-rate * self.reach) / whole)

    @property
    def infinite(self) -> float:
        """The chance of an infinite loss: of an end that only one of two neighboring counts reaches."""
        return min(1.0, self.counts * self.end)

    @property
    def variance(self) -> float:
        """The variance, in squared units."""
        steps = np.arange(1.0, self.reach + 1.0)
        return float(2.0 * (steps**2 * self._masses(steps)).sum()) * self.grid**2

    @property
    def details(self) -> dict[str, Any]:
        """The facts that the provenance states of it besides its shape and scale."""
        return {**super().details, "reach": self.reach}

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """The chance of noise of at least so many grid steps, of 1 and more."""
        rate = 1.0 / self.step_scale
        whole = 1.0 + math.exp(-rate) - 2.0 * math.exp(-rate * (self.reach + 1))
        held = np.minimum(steps, self.reach + 1.0)
        return np.asarray(np.exp(-rate * held) * -np.expm1(-rate * (self.reach + 1.0 - held)) / whole)

    def _masses(self, steps: curves.Floats) -> curves.Floats:
        """P(x) of whole numbers."""
        rate = 1.0 / self.step_scale
        whole = (1.0 + math.exp(-rate) - 2.0 * math.exp(-rate * (self.reach + 1))) / -math.expm1(-rate)
        return np.asarray(np.where(np.abs(steps) <= self.reach, np.exp(-rate * np.abs(steps)) / whole, 0.0))

    def interval(self, confidence: float) -> float:
        """The smallest half-width that holds the noise with this confidence."""
        outside = 1.0 - checked_confidence(confidence)
        steps = np.arange(1.0, self.reach + 2.0)
        return float(np.argmax(2.0 * self.tail(steps) <= outside)) * self.grid

    def delta(self, epsilon: float) -> float:
        """The delta at this epsilon, between counts that differ by one; rounded up."""
        point = down(curve_point(epsilon))
        if point >= self.counts / self.step_scale:
            return self.infinite
        return float(self.deltas(np.array([point]))[0])

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, in double precision."""
        return curves.both_sides(epsilons, self._of_atoms)

    def _of_atoms(self, epsilons: curves.Floats) -> curves.Floats:
        """Only to the one side of the middle are losses positive: 1 / t each, but for the end, which is lost.

        Of two counts that of any release which is as private: Kairouz, Oh and Viswanath (2015), Theorem 2.
        """
        rate = self.counts / self.step_scale
        below = np.minimum(epsilons - rate, 0.0)
        if self.counts == 1:
            finite = float(self._masses(np.arange(0.0, self.reach)).sum()) * -np.expm1(below)
        else:
            finite = -np.expm1(below) / (1.0 + math.exp(-rate))
        return np.asarray(np.minimum((self.infinite + finite) * (1.0 + 2.0**-40), 1.0))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Counts (int64) plus noise of their own each, modulo 2**64."""
        drawn = noise.truncated_discrete_laplace(self.step_scale, self.reach, checked_integers(totals).size)
        return added(totals, drawn)

    def sharpened(self, factor: float) -> Self:
        """Itself: its end is calibrated to its scale."""
        return self


def _guessed(rate: float, delta: float) -> int:
    """ceil(ln((e^epsilon + 2 delta - 1) / ((e^epsilon + 1) delta)) / epsilon), one less than it where in doubt."""
    most = math.log(-math.expm1(-rate) + 2.0 * delta * math.exp(-rate)) - math.log1p(math.exp(-rate)) - math.log(delta)
    return math.ceil(most / rate * (1.0 - 1e-12))


def shown_above(law: TruncatedLaplace) -> int:
    """The line from which on counts are shown: above k."""
    return law.reach + 1
