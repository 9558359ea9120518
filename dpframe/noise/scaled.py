"""Rounded Gaussian noise of which every number has a scale of its own: one law is drawn, and stretched exactly.

Z is a Gaussian variable of standard deviation 2**48. Of it N = round(Z) is drawn, and round(s Z / 2**48) is asked for,
with a scale s for each number. Z lies in [N - 1/2, N + 1/2). Where both ends round to the same integer that is the
answer. Else, once in 2**48 / s numbers, Z is drawn within the interval, given that it lies there: a uniform point, of
as many binary digits as it takes to round it, kept with the probability f(Z) times a power of two. So each integer has
exactly the probability that a Gaussian variable of its scale, rounded, gives it (of a scale larger by 2**-52 or less).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.noise.distributions import Floats, Integers, Law
from dpframe.noise.random_bits import WORD, Thresholds, below, longer, word
from dpframe.noise.samplers import BATCH, rounded_generalized_gaussian

BASE_BITS = 48  # draws are whole numbers below 2**53, which floats hold exactly, but for a chance below exp(-500)
HALF = Fraction(1, 2)


def scaled_gaussian(scales: Floats) -> Integers:
    """Draws of round(s Z) for each scale s, Z standard normal; independent of each other."""
    drawn = np.empty(scales.size, dtype=np.int64)
    law = Law(2.0, math.nextafter(math.ldexp(math.sqrt(2.0), BASE_BITS), math.inf))  # b = sigma sqrt(2), rounded up
    for start in range(0, scales.size, BATCH):
        some = scales[start : start + BATCH]
        base = rounded_generalized_gaussian(law.p, law.scale, some.size)
        integers, open_places = _stretched(some, base)
        for place in np.flatnonzero(open_places):
            integers[place] = _exactly(Fraction(float(some[place])), int(base[place]), law)
        drawn[start : start + some.size] = integers
    return drawn


def _stretched(scales: Floats, base: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """The rounded products, and where the interval of a draw leaves more than one integer open, or might."""
    middle = scales * (base * 2.0**-BASE_BITS)
    slack = scales * 2.0 ** (-1 - BASE_BITS) * (1.0 + 2.0**-40) + (np.abs(middle) + 1.0) * 2.0**-49
    low, high = np.floor(middle - slack + 0.5), np.floor(middle + slack + 0.5)
    return low.astype(np.int64), low != high


def _exactly(scale: Fraction, base: int, law: Law) -> int:
    """The rounded product of a scale and a point of the interval of a draw."""
    factor = scale / 2**BASE_BITS
    start = base - HALF
    while True:
        bits, known = 0, 0  # the point lies in [start + bits / 2**known, start + (bits + 1) / 2**known)
        while (rounded := _rounded(factor, start, bits, known)) is None:
            bits, known = longer(bits), known + WORD
        if known == 0 or _kept(law, start, bits, known):
            return rounded


def _rounded(factor: Fraction, start: Fraction, bits: int, known: int) -> int | None:
    """The integer to which all points of an interval are rounded; None where there are several."""
    low = math.floor(factor * (start + Fraction(bits, 2**known)) + HALF)
    high = math.ceil(factor * (start + Fraction(bits + 1, 2**known)) + HALF) - 1
    return low if low == high else None


def _kept(law: Law, start: Fraction, bits: int, known: int) -> bool:
    """True with the probability f(point) 2**k, the largest k for which no point of the whole interval has more than 1.

    The point is uniform in its small interval; its further digits are drawn as far as the comparison needs them.
    """
    nearest, _ = law.distances(start, start + 1)
    lift = max(0, math.floor(float(nearest / Fraction(law.scale)) ** 2 / math.log(2.0) - 1e-6))
    return below(word(), _lifted(law, start + Fraction(bits, 2**known), known, lift))


def _lifted(law: Law, start: Fraction, known: int, lift: int) -> Thresholds:
    import mpmath

    for least, most in law.thresholds(start, -known, word()):
        yield mpmath.ldexp(least, lift), mpmath.ldexp(most, lift)
