"""Discrete Laplace noise as a frozen value: it answers for its own variance, intervals and privacy curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.exact import exact_epsilon, exactly, rounded_up, up
from dpframe.mechanisms import curves, renyi
from dpframe.mechanisms.asked import (
    LARGEST_LAPLACE,
    checked_confidence,
    checked_integers,
    curve_point,
    scale_of,
    wrapped,
)
from dpframe.mechanisms.stepped import Stepped, steps_of


@dataclass(frozen=True)
class Laplace(Stepped):
    """Discrete Laplace noise: P(k) proportional to exp(-|k| / t) on the integer grid, pure epsilon-DP.

    Made by `Laplace.calibrate`. Lengths are in the user's units; only `add_noise` works in grid steps.

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
    For integer vectors within l1 distance D the ratio of probabilities is at most exp(D / t) (Ghosh, Roughgarden and
    Sundararajan 2009; Dwork et al. 2006, Theorem 1, coordinate by coordinate). `delta` is the exact hockey-stick
    divergence of a shift by D in one coordinate, which is the worst vector of that norm: testing along a path that
    moves one coordinate at a time is bounded by group composition of the trade-off functions (Dong, Roth and Su 2022,
    Theorem 2.14), which for log-concave noise is the trade-off function of the whole shift in one coordinate.

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
        """The least noise of this kind that is epsilon-DP for an l1 `sensitivity`.

        The scale is sensitivity / epsilon, rounded up; a sensitivity between grid steps counts as the next step.

        Parameters
        ----------
        sensitivity : float
            How far one unit can move the vector, in the l1 norm and the user's units.
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
        """The noise with scale sensitivity / epsilon, rounded up, which is the conservative side."""
        return cls(step_sensitivity, scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE), grid)

    @property
    def variance(self) -> float:
        """The variance of the integer noise really added: 2 r / (1 - r)^2 with r = exp(-1/t), in squared units."""
        rate = 1.0 / self.step_scale
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2 * self.grid**2

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """The chance of noise of at least so many grid steps, of 1 and more: r^steps / (1 + r) with r = exp(-1/t)."""
        rate = 1.0 / self.step_scale
        return np.asarray(np.exp(-rate * steps) / (1.0 + math.exp(-rate)))

    def renyi(self, order: Fraction) -> Fraction:
        """The cost in Rényi differential privacy of this order, rounded up."""
        return renyi.of_discrete_laplace(
            math.ceil(self.step_sensitivity), Fraction(self.step_scale), renyi.checked_order(order)
        )

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta: sensitivity over scale, rounded up."""
        return up(Fraction(self.step_sensitivity) / Fraction(self.step_scale))

    def interval(self, confidence: float) -> float:
        """The smallest half-width that holds the noise with this confidence."""
        rate = 1.0 / self.step_scale
        outside = (1.0 - checked_confidence(confidence)) * (1.0 + math.exp(-rate)) / 2.0
        return max(0, math.ceil(-math.log(outside) * self.step_scale) - 1) * self.grid

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon; rounded up.

        A mechanism calibrated to 0.3 = 3/10 has delta 0 at 0.3, though that float is a little less than 3/10. Wherever
        delta is above 0, a float epsilon counts as its exact value.
        """
        import mpmath

        shift, scale = self.step_sensitivity, Fraction(self.step_scale)
        if curve_point(epsilon) * scale >= shift:
            return 0.0
        exact = exactly("epsilon", epsilon, typed=False)  # the typed decimal may be larger: it would understate delta
        last = math.ceil((shift - exact * scale) / 2) - 1  # the outcomes up to here have a loss above epsilon
        with mpmath.workdps(120):  # both terms may nearly cancel
            t, loss = _exactly(scale), _exactly(exact)
            rate = mpmath.exp(-1 / t)
            upper = -mpmath.expm1(-(last + 1) / t) - rate * mpmath.expm1(loss - (shift - last - 1) / t)
            return rounded_up(upper / (1 + rate))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, in double precision."""
        shift, scale = math.ceil(self.step_sensitivity), self.step_scale
        return curves.both_sides(epsilons, lambda some: curves.of_discrete_laplace(shift, scale, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """`totals` (int64, in grid steps) plus independent noise, modulo 2**64."""
        return wrapped(totals, noise.discrete_laplace(self.step_scale, checked_integers(totals).size))


def _exactly(value: Fraction) -> Any:
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator
