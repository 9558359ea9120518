"""Accuracy first: within= names the error, and the smallest epsilon that gives it is the cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import between, checked_whole
from dpframe.queries.statistics import CONFIDENCE

START = Fraction(1, 2)
FACTOR = 4
LARGEST = 1.7976931348623157e308
LEAST, MOST = Fraction(1, 10**15), Fraction(10**7)
HALVINGS = 24  # of the logarithm of a factor of 4: to a part in 1e7
DIGITS = Context(prec=6, rounding=ROUND_CEILING)  # of the epsilon found, rounded up: the error holds
EXAMPLE = "Write for instance within=50."


@dataclass(frozen=True)
class Accuracy:
    """The half-width of the interval that the noise of each output column is to stay within."""

    within: float | tuple[tuple[str, float], ...]
    confidence: float = CONFIDENCE

    @classmethod
    def of(cls, within: object, confidence: object) -> Accuracy:
        """Check the caller's words."""
        level = CONFIDENCE if confidence is None else _confidence(confidence)
        if isinstance(within, Mapping):
            for name in within:
                if not isinstance(name, str):
                    raise InvalidType(f"within must be a number, or a dict of numbers by output column. {EXAMPLE}")
            return cls(tuple((name, _error(error)) for name, error in within.items()), level)
        return cls(_error(within), level)

    def targets(self, columns: tuple[str, ...]) -> dict[str, float]:
        """The error asked for, by output column; a dict must name every one."""
        if not isinstance(self.within, tuple):
            return dict.fromkeys(columns, self.within)
        if sorted(name for name, _ in self.within) != sorted(columns):
            names = [name for name, _ in self.within]
            raise InvalidArgument(
                f"within must name every output column once ({', '.join(columns)}), not {shown(names)}. "
                "Write a number for all, or a dict with an error for each."
            )
        return dict(self.within)

    def facts(self, columns: tuple[str, ...], size: int | None) -> dict[str, Any]:
        """The facts for the provenance; `size` is the number of values that a mean was assumed to have."""
        return {"error": self.targets(columns), "confidence": self.confidence, "size": size}

    def __str__(self) -> str:
        each = self.within if isinstance(self.within, tuple) else (("", self.within),)
        targets = ", ".join(f"{name} within {error:g}".strip() for name, error in each)
        return f"{targets}, with a confidence of {self.confidence:.6g}"


def checked_size(size: object) -> int | None:
    """The assumed number of values of a mean."""
    if size is None:
        return None
    return checked_whole("size", size, 1, 2**53, "a whole number above 0", " Write for instance size=1_000.")


def smallest_epsilon(targets: Mapping[str, float], errors_at: Callable[[Fraction], Mapping[str, float]]) -> Fraction:
    """The smallest epsilon of six digits at which every error is within its target; errors fall as epsilon grows."""

    def reached(epsilon: Fraction) -> bool:
        errors = errors_at(epsilon)
        return all(errors[name] <= target for name, target in targets.items())

    def reached_or_refused(epsilon: Fraction) -> bool:
        try:
            return reached(epsilon)
        except InvalidArgument:  # so little epsilon that the noise does not fit, which is no accuracy
            return False

    low, high = _bracket(reached(START), reached, reached_or_refused)
    for _ in range(HALVINGS):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if reached_or_refused(middle) else (middle, high)
    smallest = DIGITS.divide(Decimal(high.numerator), Decimal(high.denominator))
    while not reached(Fraction(smallest)):
        smallest = DIGITS.next_plus(smallest)
    return Fraction(smallest)


def _bracket(
    at_start: bool, reached: Callable[[Fraction], bool], reached_or_refused: Callable[[Fraction], bool]
) -> tuple[Fraction, Fraction]:
    """An epsilon that is too small, and one that is enough."""
    epsilon = START
    if at_start:
        while reached_or_refused(epsilon):
            if epsilon < LEAST:
                raise InvalidArgument(
                    "within must be an error that takes some epsilon to reach, but any epsilon gives this one. "
                    "Write a smaller one."
                )
            epsilon /= FACTOR
        return epsilon, epsilon * FACTOR
    low = epsilon
    while not reached(epsilon):
        if epsilon >= MOST:
            raise InvalidArgument(
                "within must be an error that some epsilon up to 1e7 gives, but this one is smaller than the noise "
                "can be. Write a larger one."
            )
        low, epsilon = epsilon, min(epsilon * FACTOR, MOST)
    return low, epsilon


def _error(value: object) -> float:
    return between("within", value, 0.0, LARGEST, "a finite number of at least 0", f" {EXAMPLE}", closed=True)


def _confidence(value: object) -> float:
    return between("confidence", value, 0.0, 1.0, "between 0 and 1", " Write for instance confidence=0.95.")
