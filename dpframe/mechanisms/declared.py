"""Declared privacy curves: the proven privacy loss of releases that have no law of noise to compute it from.

**Bounded range.** All privacy losses of such a choice are in one interval of length epsilon: Durfee and
Rogers, "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition" (2019); Dong, Durfee and
Rogers, "Optimal Differential Privacy Composition for Exponential Mechanisms" (2020). Two outcomes with the losses t
and t - epsilon, for some t from 0 to epsilon, dominate every such pair of output distributions. The functions here
return the worst value over t. The proofs are in ``docs/assurance/privacy.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Protocol, TypeGuard

import numpy as np

from dpframe.exact import exact_epsilon, exactly, in_mpmath, rounded_up, to_digits, up
from dpframe.mechanisms import curves, gaussian_curve, renyi
from dpframe.mechanisms.curves import Floats, checked_outside, curve_point

DIGITS = 60
CORRECT = Fraction(1, 10**30)  # relative; above the rounding error of a divergence
ANSWERS = ("delta", "deltas", "epsilon", "renyi")


def delta_of_range(length: Fraction, epsilon: Fraction) -> float:
    """Return the delta at an epsilon from 0 to `length`, rounded up.

    It is (e^(length/2) - e^(epsilon/2))^2 / (e^length - 1).
    """
    import mpmath

    with to_digits(DIGITS):
        short = -mpmath.expm1((in_mpmath(epsilon) - in_mpmath(length)) / 2)
        return rounded_up(short**2 / -mpmath.expm1(-in_mpmath(length)))


def epsilon_of_range(length: Fraction, outside: float) -> float:
    """Return the smallest epsilon >= 0 at this delta, rounded up.

    It is length + 2 log(1 - sqrt(delta (1 - e^-length))).
    """
    import mpmath

    with to_digits(DIGITS):
        left = 1 - mpmath.sqrt(mpmath.mpf(outside) * -mpmath.expm1(-in_mpmath(length)))
        if left <= mpmath.exp(-in_mpmath(length) / 2):
            return 0.0
        return min(up(length), rounded_up(in_mpmath(length) + 2 * mpmath.log(left)))


def deltas_of_range(length: float, epsilons: Floats) -> Floats:
    """Return the deltas at many epsilons of at least 0, in double precision."""
    short = -np.expm1(np.minimum(0.0, (epsilons - length) / 2.0))
    return np.asarray(short**2 / -math.expm1(-length))


def mu_of_range(length: Fraction) -> float:
    """Return the mu of Gaussian differential privacy, rounded up.

    It is the mu of pure noise with half the epsilon.
    """
    return gaussian_curve.pure_to_mu(up(length / 2))


def own_of_mu(most: float) -> Fraction:
    """Return the largest epsilon of a bounded range that costs at most this mu, rounded down."""
    return 2 * Fraction(gaussian_curve.mu_to_pure(most))


def range_of_mu(largest: float) -> Fraction:
    """Return the largest epsilon of a bounded range whose mu is at most `largest`, rounded up.

    It is 4 artanh(erf(mu / sqrt(8))).
    """
    import mpmath

    with to_digits(DIGITS):
        half = mpmath.mpf(largest) / mpmath.sqrt(8)
        tail = mpmath.erfc(half)
        exact = 4 * mpmath.atanh(mpmath.erf(half)) if largest < 1.0 else 2 * (mpmath.log(2 - tail) - mpmath.log(tail))
        return Fraction(rounded_up(exact * (1 + mpmath.mpf(10) ** -30)))


@lru_cache(maxsize=4096)
def renyi_of_range(length: Fraction, order: Fraction) -> Fraction:
    """Return the Rényi divergence of an order above 1, the largest over t, rounded up.

    Let E = e^length, x = e^t and a = order - 1. The second output has the two outcomes with the probabilities q and
    1 - q, where q = (E / x - 1) (1 / (E - 1)); the first has them with x q and 1 - x q. So the moment E_P[(P/Q)^a] is
    x^(a+1) q + (x / E)^(a+1) (1 - q) = x^a ((E - E^-a) - x (1 - E^-a)) / (E - 1), greatest over x at
    x = a (E - E^-a) / ((a + 1) (1 - E^-a)).
    """
    import mpmath

    small = max(0.0, -2.0 * math.log10(min(1.0, float(length)))) + max(0.0, -math.log10(min(1.0, float(order - 1))))
    with to_digits(DIGITS + math.ceil(2.0 * small)):  # the moment is near 1, so its logarithm loses digits
        a, loss = in_mpmath(order - 1), in_mpmath(length)
        constant, slope = mpmath.exp(loss) - mpmath.exp(-a * loss), -mpmath.expm1(-a * loss)
        best = a * constant / ((a + 1) * slope)
        moment = a * mpmath.log(best) + mpmath.log((constant - best * slope) / mpmath.expm1(loss))
        mantissa, exponent = (moment / a).man_exp
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (1 + CORRECT)


class Curve(Protocol):
    """The members of a release that an accounting may read.

    Each mechanism and each declared curve has them.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from dpframe.accounting import Curve, PureLoss
    >>> curves: list[Curve] = [PureLoss(0.5), dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)]
    >>> [curve.pure_epsilon for curve in curves]
    [0.5, 0.5]
    """

    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon that holds without a delta, rounded up; None if there is none."""

    @property
    def exact_mu(self) -> bool:
        """True if `mu_squared` describes all of the curve, as for Gaussian noise."""

    @property
    def infinite(self) -> float:
        """The chance of a loss that no epsilon covers; it is part of `delta`."""

    @property
    def keys_delta(self) -> Fraction:
        """The delta that is charged in addition to the curve: only for unknown groups."""

    @property
    def apart(self) -> bool:
        """True if `keys_delta` and the curve concern different units."""

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up."""

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon; rounded up."""

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta; rounded up."""

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, also negative ones, in double precision."""


@dataclass(frozen=True, init=False, repr=False)
class _Declared:
    """The base of the curves that the epsilon of a pure release determines, with that epsilon stored exactly."""

    budget: Fraction

    exact_mu: ClassVar[bool] = False
    infinite: ClassVar[float] = 0.0
    keys_delta: ClassVar[Fraction] = Fraction(0)
    apart: ClassVar[bool] = False
    words: ClassVar[str]

    def __init__(self, epsilon: float | Fraction) -> None:
        object.__setattr__(self, "budget", exact_epsilon(epsilon))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pure_epsilon!r})"

    def __str__(self) -> str:
        return f"{self.words} {self.pure_epsilon:.6g}"

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta, rounded up."""
        return up(self.budget)


@dataclass(frozen=True, init=False, repr=False)
class PureLoss(_Declared):
    """The curve of any epsilon-differentially private release.

    Use it if nothing more is known of the release.

    Parameters
    ----------
    epsilon : float or Fraction
        Finite and above 0; a float is the decimal that was typed.

    Notes
    -----
    Every such release is a post-processing of randomized response, whose losses are +epsilon and -epsilon (Kairouz, Oh
    and Viswanath 2015). So no release of this epsilon costs more, and randomized response costs exactly this.
    ``docs/assurance/accounting.md`` states what each accounting charges for it.

    Examples
    --------
    >>> from dpframe.accounting import PureLoss
    >>> reports = PureLoss(0.5)
    >>> reports.pure_epsilon, reports.epsilon(0.0), round(reports.delta(0.25), 4)
    (0.5, 0.5, 0.1377)
    >>> round(float(reports.mu_squared) ** 0.5, 6)
    0.623893
    """

    words: ClassVar[str] = "any release of epsilon"

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up."""
        return Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""
        return renyi.of_pure(self.pure_epsilon, renyi.checked_order(order))

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon; rounded up."""
        if curve_point(epsilon) >= self.budget:
            return 0.0
        return delta_of_pure(self.pure_epsilon, exactly("epsilon", epsilon, typed=False))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta; rounded up."""
        return epsilon_of_pure(self.pure_epsilon, checked_outside(delta))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta at many epsilons, in double precision."""
        scale = 1.0 / self.pure_epsilon
        return curves.both_sides(epsilons, lambda some: curves.of_discrete_laplace(1.0, scale, some))


@dataclass(frozen=True, init=False, repr=False)
class BoundedRange(_Declared):
    """The curve of any release with privacy losses in one interval of length epsilon.

    Private choices are such releases.

    Parameters
    ----------
    epsilon : float or Fraction
        The length of the interval, finite and above 0; a float is the decimal that was typed.

    Notes
    -----
    The interval may lie anywhere, but it is the same for all outcomes of a pair of neighbors. The exponential mechanism
    has this property (Durfee and Rogers 2019). Losses of +epsilon and -epsilon have an interval of 2 epsilon. If you
    know only that a release is epsilon-differentially private, use `PureLoss`, which costs up to four times as much.

    Examples
    --------
    >>> from dpframe.accounting import BoundedRange, PureLoss
    >>> choice = BoundedRange(0.5)
    >>> choice.pure_epsilon, choice.epsilon(0.0), round(choice.delta(0.25), 4)
    (0.5, 0.5, 0.0351)
    >>> choice.mu_squared == PureLoss(0.25).mu_squared
    True
    """

    words: ClassVar[str] = "any choice of bounded range"

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy, rounded up."""
        return mu_of_range(self.budget)

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up."""
        return Fraction(self.mu) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""
        return renyi_of_range(self.budget, renyi.checked_order(order))

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon; rounded up."""
        if curve_point(epsilon) >= self.budget:
            return 0.0
        return delta_of_range(self.budget, exactly("epsilon", epsilon, typed=False))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up; at delta 0, its own epsilon."""
        return epsilon_of_range(self.budget, checked_outside(delta))

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta at many epsilons, in double precision."""
        pure_epsilon = self.pure_epsilon
        return curves.both_sides(epsilons, lambda some: deltas_of_range(pure_epsilon, some))


def is_curve(value: object) -> TypeGuard[Curve]:
    """Return whether a value is a calibrated mechanism or a declared curve.

    The class of a mechanism or curve is neither.
    """
    return not isinstance(value, type) and all(callable(getattr(type(value), name, None)) for name in ANSWERS)


def delta_of_pure(pure: float, epsilon: Fraction) -> float:
    """Return the largest delta at `epsilon` of any `pure`-DP release, rounded up.

    It is at most (e^pure - e^epsilon) / (1 + e^pure). Kairouz, Oh and Viswanath, "The Composition Theorem for
    Differential Privacy" (2015): every such release is a post-processing of randomized response, whose curve this is.
    """
    import mpmath

    if epsilon >= pure:
        return 0.0
    with to_digits(DIGITS):
        gap = -mpmath.expm1(in_mpmath(epsilon - Fraction(pure)))
        return rounded_up(gap / (1 + mpmath.exp(-mpmath.mpf(pure))))


def epsilon_of_pure(pure: float, delta: float) -> float:
    """Return the largest epsilon at `delta` of any `pure`-DP release, rounded up."""
    import mpmath

    with to_digits(DIGITS):
        left = 1 - mpmath.mpf(delta) * (1 + mpmath.exp(-mpmath.mpf(pure)))
        if left <= mpmath.exp(-mpmath.mpf(pure)):
            return 0.0
        return min(pure, rounded_up(pure + mpmath.log(left)))
