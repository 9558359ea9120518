"""Gaussian noise of contrasts: each of them has a scale of its own, and all together one privacy curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidType
from dpframe.mechanisms.asked import LARGEST_SIGMA, checked_confidence, checked_integers, scale_of, wrapped
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.queries.contrasts import ContrastDesign

ABOVE = 1.0 + 2.0**-50  # more than the product of two floats errs


@dataclass(frozen=True)
class ContrastGaussian(Gaussian):
    """Rounded Gaussian noise for the contrasts of tables of counts, as `df.dp.marginals` measures them.

    Contrast j gets noise of the standard deviation ``scale * design.scales[j]``, rounded to the grid. Divided by
    ``design.scales`` the contrasts are a vector that one unit moves by at most ``sensitivity`` in the l2 norm, and on
    which the noise is that of `Gaussian`: so are its curves.

    Parameters
    ----------
    design : ContrastDesign
        The contrasts and the relative scales of their noise.

    Notes
    -----
    Theorem 8 of Balle and Wang (ICML 2018) for the scaled vector; the contrasts are integers, and rounding is
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
        """The noise with sigma = sensitivity / mu, both rounded up, which is the conservative side."""
        plain = Gaussian.of_mu(step_sensitivity, mu, grid)
        largest = Fraction(float(design.scales.max()))
        scale_of(Fraction(plain.step_sensitivity) * largest, Fraction(mu), LARGEST_SIGMA)  # refused if it does not fit
        return cls(plain.step_sensitivity, plain.step_scale, grid, design=design)

    @property
    def variance(self) -> float:
        """The variance of noise of the relative scale 1, in squared units; rounding adds at most grid^2 / 12."""
        return (self.step_scale**2 + 1.0 / 12.0) * self.grid**2

    def interval(self, confidence: float) -> float:
        """A half-width that holds noise of the relative scale 1 with this confidence."""
        return self.interval_of(1.0, confidence)

    def interval_of(self, deviation: float, confidence: float) -> float:
        """A half-width that holds the noise of a cell, of this standard deviation at a scale of 1.

        A cell is a sum of contrasts of which the factors' absolute values add up to at most 1, so that rounding moves
        it by at most half a grid step; what remains is Gaussian.
        """
        from scipy.special import ndtri

        quantile = -float(ndtri((1.0 - checked_confidence(confidence)) / 2.0))
        return (quantile * deviation * self.step_scale + 0.5) * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts that the provenance states of it besides its shape and scale."""
        return {"contrasts": self.design.width, "objective": self.design.objective}

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """`totals` (int64, in grid steps, one for each contrast) plus independent noise, modulo 2**64."""
        if checked_integers(totals).size != self.design.width:
            raise InvalidType(f"totals must be the {self.design.width:,} contrasts of the design, not {totals.size:,}.")
        scales = self.design.scales * self.step_scale * ABOVE
        return wrapped(totals, noise.scaled_gaussian(np.asarray(scales)))
