"""The base class of mechanisms, which derives its other members from six, and a subclass in grid steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeGuard, TypeVar

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidType, named
from dpframe.exact import between, exactly, length, positive, up
from dpframe.mechanisms import curves, declared, gaussian_curve, renyi
from dpframe.mechanisms.curves import checked_outside, curve_point
from dpframe.mechanisms.gaussian_curve import LARGEST_EPSILON

LARGEST_LAPLACE = noise.LARGEST_SCALE
LARGEST_SIGMA = noise.LARGEST_SCALE / 1.5  # the scale b = sigma sqrt(2) must also fit

ANSWERS = ("add_noise", "delta", "deltas", "epsilon", "interval", "renyi")
HALVINGS = 100

Of = TypeVar("Of")


def wrapped(totals: noise.Integers, drawn: noise.Integers) -> noise.Integers:
    """Add modulo 2**64, so that no private total can cause an error or saturation."""
    return (totals.view(np.uint64) + drawn.reshape(totals.shape).view(np.uint64)).view(np.int64)


def checked_integers(totals: noise.Integers) -> noise.Integers:
    """Return the totals if they have the required form: int64, in grid steps."""
    if not isinstance(totals, np.ndarray) or totals.dtype != np.int64:
        kind = f" of {totals.dtype}" if isinstance(totals, np.ndarray) else ""
        raise InvalidType(f"totals must be an int64 array of grid steps, not {named(totals)}{kind}.")
    return totals


def checked_confidence(confidence: object) -> float:
    """Return the confidence as a float, if it is between 0 and 1."""
    return between("confidence", confidence, 0.0, 1.0, "between 0 and 1", " Write for instance 0.95.")


def scale_of(step_sensitivity: Fraction, divisor: Fraction, most: float) -> float:
    """Return step_sensitivity / divisor, rounded up, if it is at most `most`.

    The comparison uses rationals, which cannot overflow.
    """
    if step_sensitivity > Fraction(most) * divisor:
        raise InvalidArgument(
            f"epsilon must be large enough for noise that fits 64-bit integers, but would need a scale of more than "
            f"{most:.3g} grid steps. Write a larger epsilon."
        )
    return up(step_sensitivity / divisor)


if TYPE_CHECKING:
    derived = property
else:

    class derived(Generic[Of]):  # noqa: N801  (it stands where property would)
        """A property that a dataclass field may replace, since a lookup on the class raises AttributeError."""

        def __init__(self, function: Callable[[Any], Of]) -> None:
            self.function = function
            self.__doc__ = function.__doc__

        def __get__(self, mechanism: Any, kind: type | None = None) -> Of:
            if mechanism is None:
                raise AttributeError(f"{self.function.__name__} is a member of each mechanism, not of its class")
            return self.function(mechanism)


class Mechanism:
    """Calibrated noise, as a frozen value.

    A subclass defines six members: ``name``, ``norm``, ``sensitivity``, ``grid``, ``add_noise`` and ``tail``, the law
    of the noise. Each may be a field, a constant of the class or a property. The other members follow from these.
    Define any of them if you know more than is derived here: a closed form, a tighter charge, more than one cell.

    Attributes
    ----------
    name : str
        The name of the noise in plans and provenances.
    norm : float
        The p of the l_p norm in which it covers the sensitivity, and in which units are weighted: 1, 2 or infinity. For
        noise of one cell, any p of at least 1.
    sensitivity : float
        The sensitivity that it was calibrated for, in that norm and the user's units.
    grid : float
        The length of a grid step, in the user's units. Totals are whole numbers of steps.

    Notes
    -----
    ``variance``, ``interval``, ``scale``, ``delta``, ``epsilon`` and ``deltas`` follow from ``tail``, for noise that is
    symmetric, log-concave and added to one cell. Without ``tail``, define ``variance``, ``interval`` and ``delta``, or
    for pure noise ``pure_epsilon`` in place of ``delta``. The charge under ``basic`` and pld accounting follows from
    the curve. Under ``gdp`` and ``rdp``, ``pure_epsilon`` alone is enough. Other noise must define ``mu_squared`` and
    ``renyi`` with a proof, or is refused there.

    `dpframe.testing.check_mechanism` checks a mechanism against these rules. ``docs/reference/extending.md`` has more.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> from dpframe import noise
    >>> class Geometric(dpf.Mechanism):
    ...     name, norm, sensitivity, grid, pure_epsilon = "geometric", 1.0, 1.0, 1.0, 0.5
    ...
    ...     def tail(self, steps):
    ...         return np.exp(-0.5 * steps) / (1.0 + np.exp(-0.5))
    ...
    ...     def add_noise(self, totals):
    ...         return totals + noise.discrete_laplace(2.0, totals.size).reshape(totals.shape)
    >>> round(Geometric().variance, 3), Geometric().interval(0.95), Geometric().epsilon(0.0)
    (7.835, 6.0, 0.5)
    """

    if TYPE_CHECKING:  # subclasses define these; an attribute here would become the default of a dataclass field

        @property
        def name(self) -> str: ...
        @property
        def norm(self) -> float: ...
        @property
        def sensitivity(self) -> float: ...
        @property
        def grid(self) -> float: ...

    @derived
    def additive(self) -> bool:
        """True if it adds noise of one law to every total, whatever the total is.

        By default, it does.
        """
        return True

    @derived
    def cells(self) -> float:
        """The number of cells that one unit may change, for the guarantee to hold.

        By default 1; infinity is any number.
        """
        return 1.0

    @derived
    def pure_epsilon(self) -> float | None:
        """The epsilon that holds without a delta, rounded up; None, since there is none."""
        return None

    @derived
    def exact_mu(self) -> bool:
        """True if `mu_squared` describes all of its curve, as for Gaussian noise.

        By default, it does not.
        """
        return False

    @derived
    def infinite(self) -> float:
        """The chance of a loss that no epsilon covers, as of unknown groups.

        It is part of `delta`.
        """
        return 0.0

    @derived
    def keys_delta(self) -> Fraction:
        """The delta that is charged in addition to its curve: only for unknown groups."""
        return Fraction(0)

    @derived
    def apart(self) -> bool:
        """True if `keys_delta` and the curve concern different units.

        If so, the larger one holds for each unit.
        """
        return False

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Add independent noise to totals, modulo 2**64.

        The totals are int64, in grid steps, of any shape.
        """
        raise self._incomplete("add_noise", "add_noise(totals)")

    def tail(self, steps: curves.Floats) -> curves.Floats:
        """Return the chance of noise of at least this many grid steps, for whole numbers from 1.

        It is exact to 2**-40 of itself.
        """
        raise self._incomplete("tail", "tail(steps), or variance, interval and delta")

    @derived
    def p(self) -> float:
        """The shape of the noise for denoisers, 1 for Laplace and 2 for Gaussian noise.

        By default, it is the norm.
        """
        return self.norm

    @derived
    def scale(self) -> float:
        """The scale b of noise of shape p with this variance, in the user's units."""
        return math.sqrt(self.variance * math.exp(math.lgamma(1.0 / self.p) - math.lgamma(3.0 / self.p)))

    @derived
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its shape and scale."""
        return {}

    @derived
    def variance(self) -> float:
        """The variance of the noise in squared units, from its tails, to 1 part in 10^6."""
        return curves.variance_of_tail(self.tail) * self.grid**2

    def interval(self, confidence: float) -> float:
        """Return the smallest half-width that holds the noise with this confidence."""
        return curves.half_width_of_tail(self.tail, checked_confidence(confidence)) * self.grid

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, rounded up: from the law of the noise.

        Without a law, it is that of any pure release.
        """
        pure_epsilon, point = self.pure_epsilon, curve_point(epsilon)
        if pure_epsilon is not None and point >= pure_epsilon:
            return 0.0
        if pure_epsilon is not None and not self._has_law:
            return declared.delta_of_pure(pure_epsilon, exactly("epsilon", epsilon, typed=False))
        return float(self._of_law(curves.as_array(point))[0])

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up."""
        outside, pure_epsilon = checked_outside(delta), self.pure_epsilon
        if pure_epsilon is not None and not self._has_curve:
            return declared.epsilon_of_pure(pure_epsilon, outside)
        if self.delta(0.0) <= outside:
            return 0.0
        low, high = 0.0, self._enough(outside) if pure_epsilon is None else pure_epsilon
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= outside else (middle, high)
        return high

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, also negative ones, in double precision.

        Loss distributions are made from them.
        """
        if type(self).delta is not Mechanism.delta:
            return curves.both_sides(epsilons, lambda some: curves.chords(self.delta, some))
        if self._has_law or self.pure_epsilon is None:
            return curves.both_sides(epsilons, self._of_law)
        scale = 1.0 / self.pure_epsilon
        return curves.both_sides(epsilons, lambda some: curves.of_discrete_laplace(1.0, scale, some))

    @derived
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up.

        For pure noise, it is that of any such release.
        """
        if self.pure_epsilon is None:
            raise self._unproven("mu", "gdp", "Gaussian or Laplace noise there, or a ledger with accounting='basic'")
        return Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up.

        For pure noise, it is that of any such release.
        """
        if self.pure_epsilon is None:
            raise self._unproven("Rényi divergence", "rdp", "a ledger with accounting='basic'")
        return renyi.of_pure(self.pure_epsilon, renyi.checked_order(order))

    def sharpened(self, factor: float) -> Self:
        """Return the same noise with its scale divided by `factor`, rounded up.

        It is the same object if no such noise can be made.
        """
        return self

    def _of_law(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the delta of a shift by the sensitivity, from the tails."""
        if not self._has_law:
            raise self._incomplete("delta", "tail(steps), or delta(epsilon), or pure_epsilon")
        return curves.deltas_of_tail(self.tail, curves.whole_steps(self.sensitivity, self.grid), epsilons)

    @property
    def _has_law(self) -> bool:
        return type(self).tail is not Mechanism.tail

    @property
    def _has_curve(self) -> bool:
        return self._has_law or type(self).delta is not Mechanism.delta

    def _enough(self, outside: float) -> float:
        """Return an epsilon at which delta is at most `outside`."""
        epsilon = 1.0
        while self.delta(epsilon) > outside:
            epsilon *= 2.0
            if epsilon > LARGEST_EPSILON:
                raise InvalidArgument(
                    f"delta must be one that {self.name} reaches at some epsilon. Write a larger one, or give the "
                    "mechanism a pure_epsilon."
                )
        return epsilon

    def _incomplete(self, missing: str, members: str) -> InvalidType:
        return InvalidType(
            f"mechanism must have the members of dpf.Mechanism, and {type(self).__name__} lacks {missing}. "
            f"Write {members} in its class."
        )

    def _unproven(self, term: str, accounting: str, instead: str) -> InvalidArgument:
        return InvalidArgument(
            f"mechanism must have a proven {term} in a ledger with {accounting} accounting, and {self.name} has none. "
            f"Use {instead}."
        )


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Return whether a value is calibrated noise or a calibrated choice.

    The class of a mechanism is not calibrated.
    """
    return not isinstance(value, type) and all(callable(getattr(type(value), name, None)) for name in ANSWERS)


def adds_noise(value: object) -> TypeGuard[Mechanism]:
    """Return whether a mechanism adds noise to totals.

    A mechanism that chooses among totals has an infinite shape p.
    """
    return is_mechanism(value) and math.isfinite(value.p)


@dataclass(frozen=True)
class Stepped(Mechanism):
    """A mechanism that stores its lengths in grid steps, and the length of a step."""

    step_sensitivity: float
    step_scale: float
    grid: float = 1.0
    calibration: str = field(default="", kw_only=True)  # a description, unless it is the exact calibration
    additive: ClassVar[bool] = True
    keys_delta: ClassVar[Fraction] = Fraction(0)

    def __post_init__(self) -> None:
        for argument in ("step_sensitivity", "step_scale", "grid"):
            object.__setattr__(self, argument, length(argument, getattr(self, argument)))

    @property
    def sensitivity(self) -> float:
        """The sensitivity for which it was calibrated, in the norm that it covers."""
        return self.step_sensitivity * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its shape and scale."""
        return {"calibration": self.calibration} if self.calibration else {}

    @property
    def scale(self) -> float:
        """The scale of the noise before rounding: t (Laplace), sigma (Gaussian) or b (any other shape)."""
        return self.step_scale * self.grid

    def sharpened(self, factor: float) -> Self:
        """Return the same noise with its scale divided by `factor`, rounded up.

        Noise that does not add to totals (`additive` is False) stays as it is.
        """
        if not self.additive:
            return self
        return replace(self, step_scale=up(Fraction(self.step_scale) / Fraction(factor)))


def steps_of(sensitivity: object, grid: object) -> Fraction:
    """Return the exact quotient of a sensitivity and a grid, both as the caller gives them."""
    return positive("sensitivity", sensitivity) / positive("grid", grid)
