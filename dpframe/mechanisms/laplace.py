"""Discrete Laplace noise, plain or truncated, as frozen values with variance, intervals and privacy curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument
from dpframe.exact import down, exact_delta, exact_epsilon, exactly, in_mpmath, rounded_up, to_digits, up
from dpframe.mechanisms import curves, renyi
from dpframe.mechanisms.contract import (
    LARGEST_LAPLACE,
    Stepped,
    checked_confidence,
    checked_integers,
    scale_of,
    steps_of,
    wrapped,
)
from dpframe.mechanisms.curves import curve_point

DIGITS = 60
MOST_REACH = 2**24  # limits truncated noise, since all its steps are listed and draws beyond its reach are repeated


@dataclass(frozen=True)
class Laplace(Stepped):
    """Discrete Laplace noise on the integer grid, which is pure epsilon-DP.

    P(k) is proportional to exp(-|k| / t). Made by `Laplace.calibrate`. Lengths are in the user's units; only
    `add_noise` works in grid steps.

    Parameters
    ----------
    step_sensitivity : int
        The l1 sensitivity in grid steps.
    step_scale : float
        t, in grid steps.
    grid : float
        The length of a grid step.

    Notes
    -----
    For integer vectors within l1 distance D, the ratio of probabilities is at most exp(D / t) (Ghosh, Roughgarden and
    Sundararajan 2009; Dwork et al. 2006, Theorem 1, coordinate by coordinate). `delta` is the exact hockey-stick
    divergence of a shift by D in one coordinate, which is the worst vector of that norm. The reason is that testing
    along a path that moves one coordinate at a time is bounded by group composition of the trade-off functions (Dong,
    Roth and Su 2022, Theorem 2.14). For log-concave noise, this is the trade-off function of the whole shift in one
    coordinate.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> noise.scale, round(noise.variance, 3), noise.interval(0.95)
    (2.0, 7.835, 6.0)
    """

    step_sensitivity: int
    p: ClassVar[float] = 1.0
    norm: ClassVar[float] = 1.0
    cells: ClassVar[float] = math.inf
    name: ClassVar[str] = "discrete Laplace"

    @classmethod
    def calibrate(cls, *, sensitivity: float, epsilon: float | Fraction, grid: float = 1.0) -> Self:
        """Calibrate the least epsilon-DP Laplace noise for an l1 `sensitivity`.

        The scale is sensitivity / epsilon, rounded up; a sensitivity between grid steps counts as the next step.

        Parameters
        ----------
        sensitivity : float
            The most by which one unit can change the vector, in the l1 norm and the user's units.
        epsilon : float or Fraction
            Finite and above 0.
        grid : float
            The length of a grid step, in the user's units.

        Raises
        ------
        InvalidArgument, InvalidType
            If an argument is out of range, or the noise would not fit 64-bit integers.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.Laplace.calibrate(sensitivity=3, epsilon=1.5).scale
        2.0
        """
        return cls.of_steps(math.ceil(steps_of(sensitivity, grid)), exact_epsilon(epsilon), grid)

    @classmethod
    def of_steps(cls, step_sensitivity: int, epsilon: Fraction, grid: float) -> Self:
        """Return the noise with scale sensitivity / epsilon, rounded up, to be conservative."""
        return cls(step_sensitivity, scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE), grid)

    @property
    def variance(self) -> float:
        """The variance of the integer noise that is added, in squared units.

        It is 2 r / (1 - r)^2 with r = exp(-1/t).
        """
        rate = 1.0 / self.step_scale
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2 * self.grid**2

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps, for 1 or more.

        It is r^steps / (1 + r) with r = exp(-1/t).
        """
        rate = 1.0 / self.step_scale
        return np.asarray(np.exp(-rate * steps) / (1.0 + math.exp(-rate)))

    def renyi(self, order: Fraction) -> Fraction:
        """Return the cost in Rényi differential privacy of this order, rounded up."""
        return renyi.of_discrete_laplace(
            math.ceil(self.step_sensitivity), Fraction(self.step_scale), renyi.checked_order(order)
        )

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta: sensitivity over scale, rounded up."""
        return up(Fraction(self.step_sensitivity) / Fraction(self.step_scale))

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        rate = 1.0 / self.step_scale
        outside = (1.0 - checked_confidence(confidence)) * (1.0 + math.exp(-rate)) / 2.0
        return max(0, math.ceil(-math.log(outside) * self.step_scale) - 1) * self.grid

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta at this epsilon, rounded up.

        A mechanism calibrated to 0.3 = 3/10 has delta 0 at 0.3, though that float is a little less than 3/10.
        Everywhere that delta is above 0, a float epsilon counts as its exact value.
        """
        import mpmath

        shift, scale = self.step_sensitivity, Fraction(self.step_scale)
        if curve_point(epsilon) * scale >= shift:
            return 0.0
        exact = exactly("epsilon", epsilon, typed=False)  # the typed decimal may be larger and understate delta
        last = math.ceil((shift - exact * scale) / 2) - 1  # outcomes up to this one have a loss above epsilon
        with to_digits(120):  # the two terms may nearly cancel
            t, loss = in_mpmath(scale), in_mpmath(exact)
            rate = mpmath.exp(-1 / t)
            upper = -mpmath.expm1(-(last + 1) / t) - rate * mpmath.expm1(loss - (shift - last - 1) / t)
            return rounded_up(upper / (1 + rate))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta at many epsilons, in double precision."""
        shift, scale = math.ceil(self.step_sensitivity), self.step_scale
        return curves.both_sides(epsilons, lambda some: curves.of_discrete_laplace(shift, scale, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to `totals` (int64, in grid steps), modulo 2**64."""
        return wrapped(totals, noise.discrete_laplace(self.step_scale, checked_integers(totals).size))


@dataclass(frozen=True)
class TruncatedLaplace(Stepped):
    """Discrete Laplace noise on -k, ..., k, for counts of units that are in one group each.

    P(x) is proportional to exp(-|x| / t). Made by `TruncatedLaplace.calibrate`. A count is shown if count + noise > k.
    So a count of 1 is shown with the chance P(x = k), and a count of 0 never.

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
        The number of counts that a unit changes by 1: 1, or 2 if neighbors replace a unit.

    Notes
    -----
    Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition selection" (2022), Section 3. Among all
    rules with this epsilon and delta, theirs shows the most keys; here it is written as noise. For two counts that
    differ by 1, the ratio of chances is at most exp(1 / t), except at the end that only one of them reaches. So delta
    is P(x = k), which is at most the requested delta, because k is whole.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_sensitivity != 1 or self.counts not in (1, 2) or self.reach < 1:  # the cases that `delta` covers
            raise InvalidArgument(
                "step_sensitivity must be 1, counts 1 or 2 and reach at least 1: this noise is for counts. "
                "Use TruncatedLaplace.calibrate, or Laplace for sums."
            )

    @classmethod
    def calibrate(cls, *, epsilon: float | Fraction, delta: float | Fraction, counts: int = 1) -> Self:
        """Calibrate the noise of the smallest k that is (epsilon, delta)-private.

        With two counts, the noise of each is private at half of epsilon and half of delta.

        Parameters
        ----------
        epsilon, delta : float or Fraction
            epsilon finite and above 0, 0 < delta < 1.
        counts : int
            The number of counts that a unit changes.
        """
        scale = scale_of(Fraction(counts), exact_epsilon(epsilon), LARGEST_LAPLACE)
        outside = down(exact_delta(delta) / counts)
        law = cls(1, scale, reach=max(1, _guessed(1.0 / scale, outside)), counts=counts)
        if max(scale, law.reach) > MOST_REACH:
            raise InvalidArgument(
                f"epsilon must be large enough for truncated noise of at most {MOST_REACH:,} steps. Write a larger "
                "epsilon."
            )
        while law.end > outside:  # in double precision, the formula may be too small by one
            law = replace(law, reach=law.reach + 1)
        return law

    @property
    def end(self) -> float:
        """P(x = k), rounded up: the chance that a count of 1 is shown."""
        import mpmath

        with to_digits(DIGITS):
            rate = 1 / mpmath.mpf(self.step_scale)
            whole = (1 + mpmath.exp(-rate) - 2 * mpmath.exp(-rate * (self.reach + 1))) / (1 - mpmath.exp(-rate))
            return rounded_up(mpmath.exp(-rate * self.reach) / whole)

    @property
    def infinite(self) -> float:
        """The chance of an infinite loss.

        The loss is infinite at an end that only one of two neighboring counts reaches.
        """
        return min(1.0, self.counts * self.end)

    @property
    def variance(self) -> float:
        """The variance, in squared units."""
        steps = np.arange(1.0, self.reach + 1.0)
        return float(2.0 * (steps**2 * self._masses(steps)).sum()) * self.grid**2

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its shape and scale."""
        return {**super().details, "reach": self.reach}

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps, for 1 or more."""
        rate = 1.0 / self.step_scale
        whole = 1.0 + math.exp(-rate) - 2.0 * math.exp(-rate * (self.reach + 1))
        held = np.minimum(steps, self.reach + 1.0)
        return np.asarray(np.exp(-rate * held) * -np.expm1(-rate * (self.reach + 1.0 - held)) / whole)

    def _masses(self, steps: curves.Floats) -> curves.Floats:
        """Return P(x) of whole numbers x."""
        rate = 1.0 / self.step_scale
        whole = (1.0 + math.exp(-rate) - 2.0 * math.exp(-rate * (self.reach + 1))) / -math.expm1(-rate)
        return np.asarray(np.where(np.abs(steps) <= self.reach, np.exp(-rate * np.abs(steps)) / whole, 0.0))

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        outside = 1.0 - checked_confidence(confidence)
        steps = np.arange(1.0, self.reach + 2.0)
        return float(np.argmax(2.0 * self.tail(steps) <= outside)) * self.grid

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, between counts that differ by one, rounded up.

        As for `Laplace`, a float epsilon reaches the loss of the noise if its typed decimal does.
        """
        import mpmath

        loss = self.counts / Fraction(self.step_scale)
        if curve_point(epsilon) >= loss:
            return self.infinite
        exact = exactly("epsilon", epsilon, typed=False)
        with to_digits(DIGITS):
            rate = 1 / mpmath.mpf(self.step_scale)
            below, end = mpmath.exp(-rate * self.reach), mpmath.exp(-rate)
            held = (1 - below) / (1 + end - 2 * below * end) if self.counts == 1 else 1 / (1 + mpmath.exp(-2 * rate))
            return min(1.0, rounded_up(self.infinite - mpmath.expm1(in_mpmath(exact - loss)) * held))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, in double precision."""
        return curves.both_sides(epsilons, self._of_atoms)

    def _of_atoms(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas: on one side of the middle, each loss is 1 / t, except at the end, where it is infinite.

        For two counts, the worst curve of this epsilon and delta (Kairouz, Oh, Viswanath 2015, proof of Theorem 3.3).
        """
        rate = self.counts / self.step_scale
        below = np.minimum(epsilons - rate, 0.0)
        if self.counts == 1:
            finite = float(self._masses(np.arange(0.0, self.reach)).sum()) * -np.expm1(below)
        else:
            finite = -np.expm1(below) / (1.0 + math.exp(-rate))
        return np.asarray(np.minimum((self.infinite + finite) * (1.0 + 2.0**-40), 1.0))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to counts (int64), modulo 2**64."""
        drawn = noise.truncated_discrete_laplace(self.step_scale, self.reach, checked_integers(totals).size)
        return wrapped(totals, drawn)

    def sharpened(self, factor: float) -> Self:
        """Return the noise unchanged, since its end is calibrated to its scale."""
        return self


def _guessed(rate: float, delta: float) -> int:
    """Return ceil(ln((e^epsilon + 2 delta - 1) / ((e^epsilon + 1) delta)) / epsilon), or one less if in doubt."""
    most = math.log(-math.expm1(-rate) + 2.0 * delta * math.exp(-rate)) - math.log1p(math.exp(-rate)) - math.log(delta)
    return math.ceil(most / rate * (1.0 - 1e-12))


def shown_above(law: TruncatedLaplace) -> int:
    """Return the smallest number of steps that is shown, k + 1."""
    return law.reach + 1
