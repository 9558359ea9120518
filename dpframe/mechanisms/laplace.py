"""Calibrated noise as frozen values: they answer for their own variance, intervals and privacy curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidType, named, shown
from dpframe.exact import between, down, exact_delta, exact_epsilon, exactly, is_whole, positive, rounded_up, up
from dpframe.mechanisms import curves, gaussian_curve, renyi

LARGEST_FLOAT = 1.7976931348623157e308
LARGEST_LAPLACE = noise.LARGEST_SCALE
LARGEST_SIGMA = noise.LARGEST_SCALE / 1.5  # b = sigma sqrt(2) must fit as well


class Mechanism(Protocol):
    """What every calibrated noise answers; lengths are in the user's units."""

    @property
    def name(self) -> str: ...
    @property
    def p(self) -> float:
        """The shape of the noise."""

    @property
    def norm(self) -> float:
        """The p of the l_p norm in which it covers the sensitivity, and in which units are weighted."""

    @property
    def additive(self) -> bool:
        """Whether it adds noise of one law to every total."""

    @property
    def details(self) -> dict[str, Any]:
        """What the provenance says of it besides its shape and scale."""

    @property
    def sensitivity(self) -> float:
        """The sensitivity that it was calibrated for, in that norm."""

    @property
    def cells(self) -> float:
        """How many cells of a vector one unit may sway for the guarantee to hold."""

    @property
    def grid(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon that holds without a delta, rounded up; None where there is none."""

    @property
    def mu_squared(self) -> Fraction:
        """What it costs in Gaussian differential privacy, rounded up."""

    def renyi(self, order: Fraction) -> Fraction:
        """What it costs in Rényi differential privacy of this order, rounded up."""

    def interval(self, confidence: float) -> float: ...
    def delta(self, epsilon: float) -> float: ...
    def epsilon(self, delta: float) -> float: ...
    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, also negative ones, in double precision."""

    def add_noise(self, totals: noise.Integers) -> noise.Integers: ...


@dataclass(frozen=True)
class Stepped:
    """What every noise is made of: lengths in grid steps, and how long a step is."""

    step_sensitivity: float
    step_scale: float
    grid: float = 1.0
    calibration: str = field(default="", kw_only=True)  # in words, where it is not the exact one
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for argument in ("step_sensitivity", "step_scale", "grid"):
            object.__setattr__(self, argument, length(argument, getattr(self, argument)))

    @property
    def sensitivity(self) -> float:
        """The sensitivity that it was calibrated for, in the norm that it covers."""
        return self.step_sensitivity * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """What the provenance says of it besides its shape and scale."""
        return {"calibration": self.calibration} if self.calibration else {}

    @property
    def scale(self) -> float:
        """The scale of the noise before rounding: t (Laplace), sigma (Gaussian) or b (any other shape)."""
        return self.step_scale * self.grid


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
        steps = math.ceil(positive("sensitivity", sensitivity) / positive("grid", grid))
        return cls.of_steps(steps, exact_epsilon(epsilon), grid)

    @classmethod
    def of_steps(cls, step_sensitivity: int, epsilon: Fraction, grid: float) -> Self:
        """The noise with scale sensitivity / epsilon, rounded up, which is the conservative side."""
        return cls(step_sensitivity, scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE), grid)

    @property
    def variance(self) -> float:
        """The variance of the integer noise really added: 2 r / (1 - r)^2 with r = exp(-1/t), in squared units."""
        rate = 1.0 / self.step_scale
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2 * self.grid**2

    @property
    def mu_squared(self) -> Fraction:
        """What it costs in Gaussian differential privacy, rounded up."""
        return Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """What it costs in Rényi differential privacy of this order, rounded up."""
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

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; rounded up."""
        outside = checked_outside(delta)
        low, high = 0.0, self.pure_epsilon
        if self.delta(0.0) <= outside:
            return 0.0
        for _ in range(100):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= outside else (middle, high)
        return high

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, in double precision."""
        shift, scale = math.ceil(self.step_sensitivity), self.step_scale
        return curves.both_sides(epsilons, lambda some: curves.of_discrete_laplace(shift, scale, some))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """`totals` (int64, in grid steps) plus independent noise, modulo 2**64."""
        return wrapped(totals, noise.discrete_laplace(self.step_scale, checked_integers(totals).size))


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
    pure_epsilon: ClassVar[None] = None
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
        return cls.of_mu(positive("sensitivity", sensitivity) / positive("grid", grid), mu, grid)

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
        from scipy.special import erfc

        steps = np.arange(1.0, 200.0)
        tails = erfc((steps - 0.5) / (self.step_scale * math.sqrt(2.0)))
        return float(((2.0 * steps - 1.0) * tails).sum()) * self.grid**2

    @property
    def mu(self) -> float:
        """Sensitivity over sigma, rounded up."""
        return up(Fraction(self.step_sensitivity) / Fraction(self.step_scale))

    @property
    def mu_squared(self) -> Fraction:
        """What it costs in Gaussian differential privacy, rounded up."""
        return (Fraction(self.step_sensitivity) / Fraction(self.step_scale)) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """What it costs in Rényi differential privacy of this order."""
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


def wrapped(totals: noise.Integers, drawn: noise.Integers) -> noise.Integers:
    """Addition modulo 2**64: nothing may raise or saturate because of a private total."""
    return (totals.view(np.uint64) + drawn.reshape(totals.shape).view(np.uint64)).view(np.int64)


def checked_integers(totals: noise.Integers) -> noise.Integers:
    """Totals as they must be: int64, in grid steps."""
    if not isinstance(totals, np.ndarray) or totals.dtype != np.int64:
        kind = f" of {totals.dtype}" if isinstance(totals, np.ndarray) else ""
        raise InvalidType(f"totals must be an int64 array of grid steps, not {named(totals)}{kind}.")
    return totals


def length(argument: str, value: object) -> float:
    """A length above 0: a Python int as it is, anything else as a float, rounded up: a claim is not understated."""
    found = positive(argument, value)
    return int(found) if is_whole(value) else up(found)


def checked_confidence(confidence: object) -> float:
    """A number between 0 and 1."""
    return between("confidence", confidence, 0.0, 1.0, "between 0 and 1", " Write for instance 0.95.")


def checked_outside(delta: object) -> float:
    """A delta of a privacy curve, rounded down: the epsilon there is not understated."""
    return between("delta", delta, 0.0, 1.0, "a number with 0 <= delta <= 1", closed=True)


def scale_of(step_sensitivity: Fraction, divisor: Fraction, most: float) -> float:
    """step_sensitivity / divisor, rounded up, if such noise fits; compared as rationals, which cannot overflow."""
    if step_sensitivity > Fraction(most) * divisor:
        raise InvalidArgument(
            f"epsilon must be large enough for noise that fits 64-bit integers, but would need a scale of more than "
            f"{most:.3g} grid steps. Write a larger epsilon."
        )
    return up(step_sensitivity / divisor)


def curve_point(epsilon: float | Fraction) -> Fraction:
    """A point of a privacy curve as a rational; of a float the larger of its exact value and the typed decimal."""
    rule = "a finite number of at least 0"
    found = max(exactly("epsilon", epsilon, rule, typed=typed) for typed in (True, False))
    if not 0 <= found <= Fraction(LARGEST_FLOAT):
        raise InvalidArgument(f"epsilon must be {rule}, not {shown(epsilon)}.")
    return found


def _exactly(value: Fraction) -> Any:
    import mpmath

    return mpmath.mpf(value.numerator) / value.denominator
