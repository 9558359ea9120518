"""Coins of exactly their probability, and uniform subsets: what randomizes single values in the local model.

A coin is met with one random byte. Only where that byte leaves it open are more bits drawn, and in the end intervals
of rationals decide, as in ``dpframe/noise/samplers.py``: no coin ever has the probability of a float.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.exact import to_bits
from dpframe.noise.random_bits import WORD, Thresholds, accepted, enclosed, numbers, uniform
from dpframe.noise.samplers import Integers

Flags = NDArray[np.bool_]

__all__ = ["Chance", "Flags", "others", "rounded_randomly", "subsets", "tossed", "uniform"]

BYTE = 8  # bits that decide a coin at first
CLOSE = 2.0**-50  # more than what is left of a probability errs as a double
BATCH = 2**22  # coins at a time, so that memory stays bounded


@dataclass(frozen=True)
class Chance:
    """The probability ``weight e^exponent / (weight e^exponent + other)``; a rational one has the exponent 0."""

    weight: int
    other: int
    exponent: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Fraction) -> Chance:
        """A rational probability."""
        return cls(value.numerator, value.denominator - value.numerator)

    def exact(self, precision: int) -> Any:
        """In mpmath, with a relative error below 2**(16 - precision)."""
        import mpmath

        size = (abs(self.exponent.numerator) // self.exponent.denominator + 1).bit_length()
        with to_bits(precision + size + WORD):
            power = self.weight * mpmath.exp(mpmath.mpf(self.exponent.numerator) / self.exponent.denominator)
            return power / (power + self.other)

    def __float__(self) -> float:
        return float(self.exact(4 * WORD))


def tossed(chance: Chance, size: int) -> Flags:
    """Coins that are True with exactly this probability."""
    heads = np.empty(size, dtype=np.bool_)
    sure, rest = _first_byte(chance)
    for start in range(0, size, BATCH):
        batch = heads[start : start + BATCH]
        drawn = numbers(batch.size, BYTE)
        np.less(drawn, sure, out=batch)
        open_places = np.flatnonzero(drawn == sure)
        batch[open_places] = accepted(np.full(open_places.size, rest), CLOSE, lambda _: _left_over(chance, sure))
    return heads


def subsets(chosen: int, among: int, rows: int) -> Flags:
    """A uniform subset of `chosen` of the places 0, ..., `among` - 1 in each row, as flags.

    R. W. Floyd's algorithm (Bentley, "Programming Pearls: a sample of brilliance", 1987), all rows at once: of the
    places up to `last` one is drawn; where it was chosen before, `last` itself, which was not, is chosen.
    """
    flags = np.zeros((rows, among), dtype=np.bool_)
    row = np.arange(rows)
    for last in range(among - chosen, among):
        drawn = uniform(last, rows)
        flags[row, np.where(flags[row, drawn], last, drawn)] = True
    return flags


def others(truth: Integers, size: int) -> Integers:
    """Draws that are uniform on 0, ..., `size` - 1 without the truth of each row."""
    drawn = uniform(size - 2, truth.size)
    return drawn + (drawn >= truth)


def rounded_randomly(parts: Integers, bits: int) -> Integers:
    """The integers `parts` / 2**bits, rounded up with exactly the probability of their fraction."""
    drawn = numbers(parts.size, bits).astype(np.int64)
    return np.asarray((parts >> bits) + (drawn < (parts & (2**bits - 1))))


@lru_cache(maxsize=1_000)
def _first_byte(chance: Chance) -> tuple[int, float]:
    """The number of the 256 first bytes that say True for sure, and the part of the next one that does."""
    import mpmath

    if not (chance.exponent and chance.weight and chance.other):  # a rational, which no interval may meet
        exact = Fraction(chance.weight, chance.weight + chance.other) * 2**BYTE
        return math.floor(exact), float(exact - math.floor(exact))
    for low, high in enclosed(chance.exact):
        sure = int(mpmath.ldexp(low, BYTE))
        if sure == int(mpmath.ldexp(high, BYTE)):  # of e to a rational power, which is irrational, some bounds agree
            with to_bits(8 * WORD):
                return sure, float(mpmath.ldexp(chance.exact(4 * WORD), BYTE) - sure)
    raise AssertionError  # an endless loop has no end


def _left_over(chance: Chance, sure: int) -> Thresholds:
    """Bounds of the part of the first open byte that says True."""
    import mpmath

    def bounds() -> Iterator[tuple[Any, Any]]:
        for known in count(1):
            precision = (known + 2) * WORD
            with to_bits(precision + WORD):
                power, slack = mpmath.ldexp(chance.exact(precision), BYTE), mpmath.ldexp(1, 18 - precision)
                both = power * (1 - slack) - sure, power * (1 + slack) - sure
            yield both

    return bounds()
