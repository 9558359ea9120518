"""Checks of what a mechanism is given, and addition modulo 2**64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidType, named, shown
from dpframe.exact import between, exactly, is_whole, positive, up

LARGEST_FLOAT = 1.7976931348623157e308
LARGEST_LAPLACE = noise.LARGEST_SCALE
LARGEST_SIGMA = noise.LARGEST_SCALE / 1.5  # b = sigma sqrt(2) must fit as well


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
    number = positive(argument, value)
    return int(number) if is_whole(value) else up(number)


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
    point = max(exactly("epsilon", epsilon, rule, typed=typed) for typed in (True, False))
    if not 0 <= point <= Fraction(LARGEST_FLOAT):
        raise InvalidArgument(f"epsilon must be {rule}, not {shown(epsilon)}.")
    return point
