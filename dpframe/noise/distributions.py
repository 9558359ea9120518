"""The laws of the noise: densities in double precision with an error bound, and in mpmath to any precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.noise.random_bits import WORD, Thresholds, longer

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_SHAPE = 16.0  # beyond, the error bound would not hold
RELATIVE_ERROR = 2.0**-38  # of `relative` where it is above exp(-66), and of `peak`


@dataclass(frozen=True)
class Law:
    """The integer floor(Z + shift) of a variable Z with density peak * exp(-(distance / scale)**p).

    The distance of z is |z|, and the shift 1/2: then the integer is Z, rounded. Of a discrete law the distance is
    |floor(z)|, and the shift 0: the probability of an integer is spread evenly over the unit interval above it.
    """

    p: float
    scale: float
    discrete: bool = False

    @property
    def shift(self) -> float:
        """The number that is added before rounding down."""
        return 0.0 if self.discrete else 0.5

    @property
    def peak(self) -> float:
        """The density at zero, such that its integral is 1; the discrete law has p = 1."""
        if self.discrete:
            return math.tanh(0.5 / self.scale)
        return 0.5 / (self.scale * math.gamma(1.0 + 1.0 / self.p))

    def relative(self, distance: Floats) -> Floats:
        """The density as a part of its peak, in double precision."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(-((distance / self.scale) ** self.p)))

    def exact_peak(self, precision: int) -> Any:
        """The peak with a relative error below 2**(16 - precision)."""
        import mpmath

        with mpmath.workprec(precision + WORD):
            scale = mpmath.mpf(self.scale)
            if self.discrete:
                return mpmath.tanh(1 / (2 * scale))
            return 1 / (2 * scale * mpmath.gamma(1 + 1 / mpmath.mpf(self.p)))

    def exact(self, distance: Fraction, precision: int) -> Any:
        """The density as a part of its peak with a relative error below 2**(16 - precision)."""
        import mpmath

        magnitude = max(0, math.ceil(self.p * (math.log2(distance / Fraction(self.scale)) if distance else 0)))
        with mpmath.workprec(precision + WORD + magnitude):  # exp(x**p) errs by x**p times what x**p errs
            ratio = mpmath.mpf(distance.numerator) / distance.denominator / mpmath.mpf(self.scale)
            return mpmath.exp(-(ratio ** mpmath.mpf(self.p)))

    def distances(self, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction]:
        """The least and the largest distance of the points z with start <= z < end."""
        if self.discrete:
            start, end = Fraction(math.floor(start)), Fraction(math.ceil(end) - 1)
        return max(Fraction(0), start, -end), max(-start, end)

    def thresholds(self, start: Fraction, exponent: int, bits: int) -> Thresholds:
        """Bounds of the density, as a part of its peak, at a random point of [start, start + 2**exponent).

        The first 64 binary digits of its way through are `bits`; more are drawn for closer bounds.
        """
        import mpmath

        for known in count(WORD, WORD):
            step = Fraction(2) ** (exponent - known)
            nearest, farthest = self.distances(start + bits * step, start + (bits + 1) * step)
            precision = known + 2 * WORD
            with mpmath.workprec(precision):
                slack = mpmath.ldexp(1, 17 - precision)
                bounds = self.exact(farthest, precision) * (1 - slack), self.exact(nearest, precision) * (1 + slack)
            yield bounds
            bits = longer(bits)
