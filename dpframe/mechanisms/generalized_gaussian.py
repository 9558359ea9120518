"""Generalized Gaussian noise of any shape, as a calibrated mechanism for one cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.exact import down, exact_delta, exact_epsilon, up
from dpframe.mechanisms import curves, gaussian_curve, generalized_curve, renyi
from dpframe.mechanisms.contract import (
    Stepped,
    checked_confidence,
    checked_integers,
    scale_of,
    steps_of,
    wrapped,
)
from dpframe.mechanisms.curves import curve_point
from dpframe.privacy import PrivacyLoss

PROBABILISTIC = "probabilistic (Liu 2018, Corollary 9), which implies (epsilon, delta)-differential privacy"
WIDE = 1000.0  # above this scale, the sum over integers is the integral plus 1/12, to 1 part in 1e13


class Reach(Protocol):
    """The facts about a Total that a calibration needs, as a `Sensitivity` has them."""

    @property
    def grid(self) -> float: ...
    def norm(self, p: float) -> float: ...


@dataclass(frozen=True)
class GeneralizedGaussian(Stepped):
    """Generalized Gaussian noise for one cell, rounded to the grid.

    Its density is proportional to exp(-(abs(x) / b)^p). Made by `GeneralizedGaussian.calibrate`. Lengths are in the
    user's units; only `add_noise` works in grid steps.

    Parameters
    ----------
    step_sensitivity : float
        The most by which one unit changes the one cell that it may change, in grid steps.
    step_scale : float
        b in grid steps.
    grid : float
        The length of a grid step.
    p : float
        The shape, 1 <= p <= 16.

    Notes
    -----
    Liu (2018), with the exact privacy curve of a shift in one coordinate (see `generalized_gaussian_scale`). For p
    other than 1 and 2, an l_p norm over several cells does not bound the loss. So `cells` is 1, and a plan refuses
    this noise if one unit can change more cells. The totals are integers, so rounding is post-processing, as for
    `Gaussian`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> noise.name, round(noise.scale, 4), round(noise.variance, 2), noise.interval(0.95)
    ('rounded generalized Gaussian, p = 3', 12.4884, 58.3, 14.0)
    """

    p: float = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", generalized_curve.checked_shape(self.p))

    @classmethod
    def calibrate(
        cls,
        *,
        p: float,
        sensitivity: float,
        epsilon: float | Fraction,
        delta: float | Fraction,
        guarantee: Literal["approximate", "probabilistic"] = "approximate",
        grid: float = 1.0,
    ) -> Self:
        """Calibrate the least (epsilon, delta)-DP noise of shape p for one cell.

        The cell changes by at most `sensitivity`.

        Parameters
        ----------
        p : float
            The shape, 1 <= p <= 16.
        sensitivity : float
            The most by which one unit changes the one cell that it may change, in the user's units.
        epsilon, delta : float or Fraction
            epsilon finite and above 0, 0 < delta < 1; for p = 1, delta may be 0.
        guarantee : {"approximate", "probabilistic"}
            See `generalized_gaussian_scale`. Releases are post-processed, so dpframe claims only the (epsilon,
            delta)-differential privacy that the probabilistic kind implies.
        grid : float
            The length of a grid step, in the user's units.

        Raises
        ------
        InvalidArgument, InvalidType
            If an argument is out of range, or the noise would not fit 64-bit integers.

        Examples
        --------
        >>> import dpframe as dpf
        >>> round(dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=2, epsilon=1.0, delta=1e-6).scale, 4)
        24.9769
        """
        shape, least = generalized_curve.checked_shape(p), down(exact_delta(delta))
        if shape > 1.0 and least == 0.0:
            raise InvalidArgument(
                "delta must be above 0 for noise of a shape p above 1. Write for instance delta=1e-6."
            )
        ratio = generalized_curve.ratio_for(guarantee)(shape, down(exact_epsilon(epsilon)), least)
        steps = up(steps_of(sensitivity, grid))
        scale = scale_of(Fraction(steps), Fraction(ratio), noise.LARGEST_SCALE)  # rounded up: more noise
        words = PROBABILISTIC if guarantee == "probabilistic" else ""
        return cls(steps, scale, grid, p=shape, calibration=words)

    @property
    def norm(self) -> float:
        """The norm in which it covers the sensitivity; in one cell, all are the same."""
        return self.p

    @property
    def name(self) -> str:
        """The name of the noise in plans and in the provenance."""
        return f"rounded generalized Gaussian, p = {self.p:g}"

    @property
    def variance(self) -> float:
        """The variance of the integer noise that is added, in squared units.

        It is about b^2 G(3/p)/G(1/p) + grid^2 / 12.
        """
        if self.step_scale > WIDE:
            ratio = math.exp(math.lgamma(3.0 / self.p) - math.lgamma(1.0 / self.p))
            return (self.step_scale**2 * ratio + 1.0 / 12.0) * self.grid**2
        farthest = 2.0 + self.step_scale * 60.0 ** (1.0 / self.p)  # the tail beyond is below exp(-60)
        steps = np.arange(1.0, farthest)
        return float(((2.0 * steps - 1.0) * 2.0 * self.tail(steps)).sum()) * self.grid**2

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps, for 1 or more."""
        from scipy.special import gammaincc

        with np.errstate(all="ignore"):
            return np.asarray(gammaincc(1.0 / self.p, ((steps - 0.5) / self.step_scale) ** self.p) / 2.0)

    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon that holds without a delta, rounded up: only for p = 1."""
        return self._ratio if self.p == 1.0 else None

    @property
    def mu_squared(self) -> Fraction:
        """The cost in Gaussian differential privacy, rounded up.

        A mu is proven only for p = 1 and p = 2.
        """
        if self.p == 2.0:
            return 2 * (Fraction(self.step_sensitivity) / Fraction(self.step_scale)) ** 2  # b = sigma sqrt(2)
        return super().mu_squared  # the mu of pure noise if p = 1; an error for other p

    def renyi(self, order: Fraction) -> Fraction:
        """Return the cost in Rényi differential privacy of this order, rounded up.

        It is finite for every shape.
        """
        order = renyi.checked_order(order)
        if self.p == 1.0:
            return renyi.of_laplace(self._ratio, order)
        if self.p == 2.0:
            return renyi.of_gaussian(self.mu_squared, order)
        return renyi.of_generalized(self.p, self._ratio, order)

    @property
    def _ratio(self) -> float:
        return up(Fraction(self.step_sensitivity) / Fraction(self.step_scale))  # the claim is rounded up

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        from scipy.special import gammainccinv

        quantile = float(gammainccinv(1.0 / self.p, 1.0 - checked_confidence(confidence))) ** (1.0 / self.p)
        return float(max(0, math.ceil(self.step_scale * quantile - 0.5)) * self.grid)

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon if one cell changes by the sensitivity, rounded up."""
        return generalized_curve.delta_of_ratio(self.p, self._ratio, down(curve_point(epsilon)))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta; rounded up."""
        outside = gaussian_curve.check_range("delta", delta, 0.0, 1.0, closed=self.p == 1.0)
        return generalized_curve.epsilon_of_ratio(self.p, self._ratio, outside)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta at many epsilons, in double precision."""
        return curves.both_sides(epsilons, lambda some: curves.of_generalized(self.p, self._ratio, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to `totals` (int64, in grid steps), modulo 2**64."""
        size = checked_integers(totals).size
        return wrapped(totals, noise.rounded_generalized_gaussian(self.p, self.step_scale, size))


def generalized_gaussian(
    *, p: float, guarantee: Literal["approximate", "probabilistic"] = "approximate"
) -> Callable[[Reach, PrivacyLoss], GeneralizedGaussian]:
    """Make a calibration of noise of shape p, as ``mechanism=`` of a verb.

    The noise is generalized Gaussian.

    Parameters
    ----------
    p : float
        The shape, 1 <= p <= 16; a whole number of at least 2 if `guarantee` is ``"probabilistic"``.
    guarantee : {"approximate", "probabilistic"}
        Exact (epsilon, delta)-differential privacy or, with more noise, the probabilistic kind that implies it.

    Returns
    -------
    callable
        ``(sensitivity, loss) -> GeneralizedGaussian``. A plan refuses the noise if one unit can change more than one
        cell, and in a ledger with gdp accounting (except for p = 1 and p = 2).

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45]})
    >>> people.dp.preview.count(epsilon=1, delta=1e-6, mechanism=dpf.generalized_gaussian(p=3)).error
    {'count': 14.0}
    """
    shape = generalized_curve.checked_shape(p)
    generalized_curve.ratio_for(guarantee)

    def calibration(sensitivity: Reach, loss: PrivacyLoss) -> GeneralizedGaussian:
        if shape > 1.0 and loss.delta == 0.0:
            raise MissingArgument(
                f"delta must be given, above 0, for generalized Gaussian noise with p = {shape:g}. "
                "Write for instance delta=1e-6, in a ledger that has one."
            )
        return GeneralizedGaussian.calibrate(
            p=shape,
            sensitivity=sensitivity.norm(shape),
            epsilon=loss.epsilon,
            delta=loss.delta,
            guarantee=guarantee,
            grid=sensitivity.grid,
        )

    return calibration
