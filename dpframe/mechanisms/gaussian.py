"""Rounded Gaussian noise as a frozen value with its own variance, intervals and privacy curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidType
from dpframe.exact import down, exact_delta, exact_epsilon, up
from dpframe.mechanisms import curves, gaussian_curve, renyi
from dpframe.mechanisms.contract import (
    LARGEST_SIGMA,
    Stepped,
    checked_confidence,
    checked_integers,
    scale_of,
    steps_of,
    wrapped,
)
from dpframe.mechanisms.curves import curve_point
from dpframe.queries.contrasts import ContrastDesign

ABOVE = 1.0 + 2.0**-50  # covers the rounding error of a product of two floats


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
    Theorem 8 of Balle and Wang (ICML 2018). The totals are integers, so q + round(Z) = round(q + Z). Rounding is
    therefore post-processing of the continuous mechanism, and the theorem holds unchanged.

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
        """Calibrate the least (epsilon, delta)-DP Gaussian noise for an l2 `sensitivity`.

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
        """Return the noise with sigma = sensitivity / mu, both rounded up, to be conservative."""
        covered = up(step_sensitivity)
        return cls(covered, scale_of(Fraction(covered), Fraction(mu), LARGEST_SIGMA), grid)

    @property
    def variance(self) -> float:
        """The variance of the integer noise that is added, in squared units.

        It is about sigma^2 + grid^2 / 12.
        """
        if self.step_scale > 8.0:  # this formula errs by less than 1e-500 squared steps
            return (self.step_scale**2 + 1.0 / 12.0) * self.grid**2
        steps = np.arange(1.0, 200.0)
        return float(((2.0 * steps - 1.0) * 2.0 * self.tail(steps)).sum()) * self.grid**2

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps, for 1 or more.

        It is Phi(-(steps - 1/2) / sigma).
        """
        from scipy.special import erfc

        with np.errstate(all="ignore"):  # a caller may have made an underflow an error
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
        """Return the cost in Rényi differential privacy of this order."""
        return renyi.of_gaussian(self.mu_squared, renyi.checked_order(order))

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        from scipy.special import ndtri

        quantile = -float(ndtri((1.0 - checked_confidence(confidence)) / 2.0))
        return max(0, math.ceil(self.step_scale * quantile - 0.5)) * self.grid

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon (Balle & Wang, Theorem 8), rounded up."""
        return gaussian_curve.delta_of_mu(self.mu, down(curve_point(epsilon)))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta; rounded up."""
        return gaussian_curve.epsilon_of_mu(self.mu, gaussian_curve.check_range("delta", delta, 0.0, 1.0, closed=False))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta at many epsilons, in double precision."""
        return curves.both_sides(epsilons, lambda some: curves.of_gaussian(self.mu, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to `totals` (int64, in grid steps), modulo 2**64."""
        scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)  # the scale b, rounded up
        return wrapped(totals, noise.rounded_generalized_gaussian(2.0, scale, checked_integers(totals).size))


@dataclass(frozen=True)
class ContrastGaussian(Gaussian):
    """Rounded Gaussian noise for the contrasts of tables, as in `df.dp.marginals`.

    Contrast j gets noise of the standard deviation ``scale * design.scales[j]``, rounded to the grid. Divided by
    ``design.scales``, the contrasts are a vector that one unit changes by at most ``sensitivity`` in the l2 norm. The
    noise on this vector is that of `Gaussian`, and so are its curves.

    Parameters
    ----------
    design : ContrastDesign
        The contrasts and the relative scales of their noise.

    Notes
    -----
    Theorem 8 of Balle and Wang (ICML 2018) applies to the scaled vector. The contrasts are integers, and rounding is
    post-processing (Xiao, He, Zhang and Kifer 2023 have the continuous noise).

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"], "ward": ["A", "B"]})
    >>> keys = {"sex": ["f", "m"], "ward": ["A", "B", "C"]}
    >>> plan = people.dp.preview.marginals(["sex", "ward"], keys=keys, epsilon=1.0, delta=1e-6)
    >>> noise = plan.parts[0].mechanism
    >>> round(noise.scale, 4), round(noise.sensitivity, 12), noise.design.width
    (4.2247, 1.0, 6)
    """

    design: ContrastDesign = field(kw_only=True)

    name: ClassVar[str] = "rounded Gaussian"

    @classmethod
    def of_design(cls, step_sensitivity: Fraction, mu: float, grid: float, design: ContrastDesign) -> Self:
        """Return the noise with sigma = sensitivity / mu, both rounded up, to be conservative."""
        plain = Gaussian.of_mu(step_sensitivity, mu, grid)
        largest = Fraction(float(design.scales.max()))
        scale_of(Fraction(plain.step_sensitivity) * largest, Fraction(mu), LARGEST_SIGMA)  # checks that it fits
        return cls(plain.step_sensitivity, plain.step_scale, grid, design=design)

    @property
    def variance(self) -> float:
        """The variance of noise of relative scale 1, in squared units.

        Rounding adds at most grid^2 / 12.
        """
        return (self.step_scale**2 + 1.0 / 12.0) * self.grid**2

    def interval(self, confidence: float) -> float:
        """Return a half-width that holds noise of relative scale 1 with this confidence."""
        return self.interval_of(1.0, confidence)

    def interval_of(self, deviation: float, confidence: float) -> float:
        """Return a half-width that holds the noise of a cell with this confidence.

        `deviation` is the cell's standard deviation at scale 1. A cell is a sum of contrasts, and the absolute values
        of their factors add up to at most 1. So rounding moves it by at most half a grid step, and the rest is
        Gaussian.
        """
        from scipy.special import ndtri

        quantile = -float(ndtri((1.0 - checked_confidence(confidence)) / 2.0))
        return (quantile * deviation * self.step_scale + 0.5) * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its shape and scale."""
        return {"contrasts": self.design.width, "objective": self.design.objective}

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to `totals`, modulo 2**64.

        The totals are int64, in grid steps, one for each contrast.
        """
        if checked_integers(totals).size != self.design.width:
            raise InvalidType(f"totals must be the {self.design.width:,} contrasts of the design, not {totals.size:,}.")
        scales = self.design.scales * self.step_scale * ABOVE
        return wrapped(totals, noise.scaled_gaussian(np.asarray(scales)))
