"""What every mechanism answers. It is told by its answers, and by no list of classes: it may come from outside."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol, TypeGuard

from dpframe import noise
from dpframe.mechanisms import curves

ANSWERS = ("add_noise", "delta", "deltas", "epsilon", "interval", "renyi")


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


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Whether a value is calibrated noise, or a calibrated choice; a class of them is not calibrated."""
    return not isinstance(value, type) and all(callable(getattr(type(value), name, None)) for name in ANSWERS)


def adds_noise(value: object) -> TypeGuard[Mechanism]:
    """Whether it is a mechanism whose noise totals get; one that chooses among them has no shape."""
    return is_mechanism(value) and math.isfinite(value.p)
