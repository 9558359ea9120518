"""Coins with exact probabilities, and uniform subsets: they randomize single values in the local model.

One random byte decides most coins. If it does not, more bits are drawn, and ever closer bounds of the probability
decide, as in ``dpframe/noise/samplers.py``. So the probability of a coin is never rounded to a float.
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

BYTE = 8  # bits that decide most coins
CLOSE = 2.0**-50  # bounds the error of a coin's remaining probability as a double
BATCH = 2**22  # coins at a time, to bound the memory


@dataclass(frozen=True)
class Chance:
    """The probability ``weight e^exponent / (weight e^exponent + other)``; the exponent is 0 for a rational one."""

    weight: int
    other: int
    exponent: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Fraction) -> Chance:
        """Return a rational probability as a chance."""
        return cls(value.numerator, value.denominator - value.numerator)

    def exact(self, precision: int) -> Any:
        """Return the probability in mpmath, with a relative error below 2**(16 - precision)."""
        import mpmath

        size = (abs(self.exponent.numerator) // self.exponent.denominator + 1).bit_length()
        with to_bits(precision + size + WORD):
            power = self.weight * mpmath.exp(mpmath.mpf(self.exponent.numerator) / self.exponent.denominator)
            return power / (power + self.other)

    def __float__(self) -> float:
        return float(self.exact(4 * WORD))


def tossed(chance: Chance, size: int) -> Flags:
    """Toss coins that are True with exactly this probability."""
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
    """Draw a uniform subset of `chosen` of the places 0, ..., `among` - 1 in each row, as flags.

    The algorithm is R. W. Floyd's (Bentley, "Programming Pearls: a sample of brilliance", 1987), for all rows at once.
    It draws one of the places up to `last`. If that place was chosen before, it takes `last` itself, which was not.
    """
    flags = np.zeros((rows, among), dtype=np.bool_)
    row = np.arange(rows)
    for last in range(among - chosen, among):
        drawn = uniform(last, rows)
        flags[row, np.where(flags[row, drawn], last, drawn)] = True
    return flags


def others(truth: Integers, size: int) -> Integers:
    """Draw numbers that are uniform on 0, ..., `size` - 1 without the truth of each row."""
    drawn = uniform(size - 2, truth.size)
    return drawn + (drawn >= truth)


def rounded_randomly(parts: Integers, bits: int) -> Integers:
    """Round the numbers `parts` / 2**bits to integers, up with exactly the probability of their fraction."""
    drawn = numbers(parts.size, bits).astype(np.int64)
    return np.asarray((parts >> bits) + (drawn < (parts & (2**bits - 1))))


@lru_cache(maxsize=1_000)
def _first_byte(chance: Chance) -> tuple[int, float]:
    """Return how many of the 256 first bytes mean True, and the probability of True at the next byte."""
    import mpmath

    if not (chance.exponent and chance.weight and chance.other):  # a rational may be k / 256, where bounds never decide
        exact = Fraction(chance.weight, chance.weight + chance.other) * 2**BYTE
        return math.floor(exact), float(exact - math.floor(exact))
    for low, high in enclosed(chance.exact):
        sure = int(mpmath.ldexp(low, BYTE))
        if sure == int(mpmath.ldexp(high, BYTE)):  # some bounds agree, since e to a rational power is irrational
            with to_bits(8 * WORD):
                return sure, float(mpmath.ldexp(chance.exact(4 * WORD), BYTE) - sure)
    raise AssertionError  # unreachable: the loop is endless


def _left_over(chance: Chance, sure: int) -> Thresholds:
    """Return bounds of the probability of True at the byte that does not decide."""
    import mpmath

    def bounds() -> Iterator[tuple[Any, Any]]:
        for known in count(1):
            precision = (known + 2) * WORD
            with to_bits(precision + WORD):
                power, slack = mpmath.ldexp(chance.exact(precision), BYTE), mpmath.ldexp(1, 18 - precision)
                both = power * (1 - slack) - sure, power * (1 + slack) - sure
            yield both

    return bounds()
