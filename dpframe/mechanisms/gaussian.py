"""Rounded Gaussian noise as a frozen value: it answers for its own variance, intervals and privacy curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.exact import down, exact_delta, exact_epsilon, up
from dpframe.mechanisms import curves, gaussian_curve, renyi
from dpframe.mechanisms.asked import (
    LARGEST_SIGMA,
    checked_confidence,
    checked_integers,
    curve_point,
    scale_of,
    wrapped,
)
from dpframe.mechanisms.stepped import Stepped, steps_of


@dataclass(frozen=True)
class Gaussian(Stepped):
    """Gaussian noise rounded to the grid, calibrated analytically.

    Made by `Gaussian.calibrate`. Lengths are in the user's units; only `add_noise` works in grid steps.

    Parameters
    ----------
    step_sensitivity : float
        The l2 sensitivity in grid steps.
    step_scale : float
        Sigma in grid steps.
    grid : float
        The length of a grid step.

    Notes
    -----
    Theorem 8 of Balle and Wang (ICML 2018). The totals are integers, so q + round(Z) = round(q + Z): rounding is
    post-processing of the continuous mechanism, and the theorem holds as it stands.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> round(noise.scale, 4), round(noise.variance, 4), noise.interval(0.95)
    (4.2247, 17.9312, 8.0)
    """

    p: ClassVar[float] = 2.0
    norm: ClassVar[float] = 2.0
    cells: ClassVar[float] = math.inf
    exact_mu: ClassVar[bool] = True
    name: ClassVar[str] = "rounded Gaussian"

    @classmethod
    def calibrate(
        cls, *, sensitivity: float, epsilon: float | Fraction, delta: float | Fraction, grid: float = 1.0
    ) -> Self:
        """The least Gaussian noise that is (epsilon, delta)-DP for an l2 `sensitivity`.

        Parameters
        ----------
        sensitivity : float
            How far one unit can move the vector, in the l2 norm and the user's units.
        epsilon, delta : float or Fraction
            epsilon finite and above 0, 0 < delta < 1.
        grid : float
            The length of a grid step, in the user's units.

        Raises
        ------
        InvalidArgument, InvalidType
            If an argument is out of range, or the noise would not fit 64-bit integers.

        Examples
        --------
        >>> import dpframe as dpf
        >>> round(dpf.Gaussian.calibrate(sensitivity=2, epsilon=1.0, delta=1e-6).scale, 4)
        8.4494
        """
        mu = gaussian_curve.largest_mu(down(exact_epsilon(epsilon)), down(exact_delta(delta)))
        return cls.of_mu(steps_of(sensitivity, grid), mu, grid)

    @classmethod
    def of_mu(cls, step_sensitivity: Fraction, mu: float, grid: float) -> Self:
        """The noise with sigma = sensitivity / mu, both rounded up, which is the conservative side."""
        covered = up(step_sensitivity)
        return cls(covered, scale_of(Fraction(covered), Fraction(mu), LARGEST_SIGMA), grid)

    @property
    def variance(self) -> float:
        """The variance of the integer noise really added, in squared units: about sigma^2 + grid^2 / 12."""
        if self.step_scale > 8.0:  # the remainder is below exp(-2 pi^2 64)
            return (self.step_scale**2 + 1.0 / 12.0) * self.grid**2
        steps = np.arange(1.0, 200.0)
        return float(((2.0 * steps - 1.0) * 2.0 * self.tail(steps)).sum()) * self.grid**2

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """The chance of noise of at least so many grid steps, of 1 and more: Phi(-(steps - 1/2) / sigma)."""
        from scipy.special import erfc

        return np.asarray(erfc((steps - 0.5) / (self.step_scale * math.sqrt(2.0))) / 2.0)

    @property
    def mu(self) -> float:
        """Sensitivity over sigma, rounded up."""
        return up(Fraction(self.step_sensitivity) / Fraction(self.step_scale))

    @property
    def mu_squared(self) -> Fraction:
        """The cost in Gaussian differential privacy, rounded up."""
        return (Fraction(self.step_sensitivity) / Fraction(self.step_scale)) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """The cost in Rényi differential privacy of this order."""
        return renyi.of_gaussian(self.mu_squared, renyi.checked_order(order))

    def interval(self, confidence: float) -> float:
        """The smallest half-width that holds the noise with this confidence."""
        from scipy.special import ndtri

        quantile = -float(ndtri((1.0 - checked_confidence(confidence)) / 2.0))
        return max(0, math.ceil(self.step_scale * quantile - 0.5)) * self.grid

    def delta(self, epsilon: float) -> float:
        """The delta at this epsilon (Balle & Wang, Theorem 8); rounded up."""
        return gaussian_curve.delta_of_mu(self.mu, down(curve_point(epsilon)))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; rounded up."""
        return gaussian_curve.epsilon_of_mu(self.mu, gaussian_curve.check_range("delta", delta, 0.0, 1.0, closed=False))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, in double precision."""
        return curves.both_sides(epsilons, lambda some: curves.of_gaussian(self.mu, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """`totals` (int64, in grid steps) plus independent noise, modulo 2**64."""
        scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)  # b of the family, rounded up
        return wrapped(totals, noise.rounded_generalized_gaussian(2.0, scale, checked_integers(totals).size))
