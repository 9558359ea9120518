"""The laws of the noise: densities in double precision with an error bound, and in mpmath to any precision.

**Tables** of a law are what a draw needs to know. They hold public facts only, so that they may be kept and shared.

The line is cut into blocks as wide as a power of two, w. Block i holds an even part A_i, spread evenly over it, and
a rest of density f - A_i / w, which a rectangle of height e_i / w covers. A_i and e_i are whole numbers of 2**-62 with

    A_i <= (least of f) * w    and    A_i + e_i >= (most of f) * w,

so that they may be found in double precision and rounded to the safe side. Beyond the last blocks lie two tails. Steps
of one width cover them, each half as high as the one before; f falls by exp(-1) or more over each, and by as much over
the next, since its logarithm is concave (p >= 1). There is no last step.

Even parts are known by integer: those of blocks narrower than 1 are added up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.noise.random_bits import WORD, Thresholds, longer

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_SHAPE = 16.0  # beyond, the error bound would not hold
RELATIVE_ERROR = 2.0**-38  # of `relative` where it is above exp(-66), and of `peak`

UNIT = 62  # weights are whole numbers of 2**-62
REACH = 16.0  # blocks cover all z with (|z| / b)**p below
GUIDE_BITS = 16


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


@dataclass(frozen=True)
class Blocks:
    """Block i is [i * w - offset, (i + 1) * w - offset) for -reach <= i < reach, w = 2**exponent."""

    exponent: int
    offset: float
    reach: int

    @property
    def width(self) -> float:
        """The width of a block, w."""
        return math.ldexp(1.0, self.exponent)

    @property
    def digits(self) -> int:
        """The number of binary digits of an integer that its block leaves open."""
        return max(self.exponent, 0)

    @property
    def index(self) -> Integers:
        """All i."""
        return np.arange(-self.reach, self.reach)


@dataclass(frozen=True, eq=False)
class Table:
    """A law by blocks. Choices are the even parts less their cells, then the rests, then both tails at once."""

    law: Law
    blocks: Blocks
    guide: NDArray[np.int16]  # the high digits of the integer by cell
    decided: int  # the cells from this one on are left over
    highs: Integers  # the high digits of the integer by choice, but for the tails
    evens: int  # choices that are even parts
    parts: Integers  # A_i
    rests: Integers  # e_i
    tail: int  # weight of the first step of one tail
    ends: Integers  # cumulative weights of the choices

    @property
    def tail_exponent(self) -> int:
        """Steps of a tail are 2**tail_exponent > b wide, and not narrower than the integers of a discrete law."""
        return _tail_exponent(self.law, self.blocks)

    def rest_thresholds(self, number: int, bits: int) -> Thresholds:
        """Bounds of (f * w - A_i) / e_i at a point of the block with this number, from the left."""
        start = (number - self.blocks.reach) * Fraction(self.blocks.width) - Fraction(self.blocks.offset)
        even, rest = int(self.parts[number]), int(self.rests[number])
        return self._thresholds(start, self.blocks.exponent, bits, UNIT + self.blocks.exponent, even, rest)

    def tail_start(self, step: int, left: bool) -> Fraction:
        """The start of a step of a tail."""
        width = Fraction(2) ** self.tail_exponent
        way = self.blocks.reach * Fraction(self.blocks.width) + step * width
        return (-way - width if left else way) - Fraction(self.blocks.offset)

    def tail_thresholds(self, step: int, left: bool, bits: int) -> Thresholds:
        """Bounds of f * width / weight at a point of a step of a tail: its weight is 2**-step times the first."""
        exponent, start = self.tail_exponent, self.tail_start(step, left)
        return self._thresholds(start, exponent, bits, UNIT + exponent + step, 0, self.tail)

    def _thresholds(self, start: Fraction, exponent: int, bits: int, unit: int, even: int, rest: int) -> Thresholds:
        import mpmath

        precision = 2 * 64
        for least, most in self.law.thresholds(start, exponent, bits):
            precision += 64
            with mpmath.workprec(precision):
                peak, slack = mpmath.ldexp(self.law.exact_peak(precision), unit), mpmath.ldexp(1, 18 - precision)
                bounds = (least * peak * (1 - slack) - even) / rest, (most * peak * (1 + slack) - even) / rest
            yield bounds


@lru_cache(maxsize=32)
def table_of(law: Law, guide_bits: int = GUIDE_BITS) -> Table:
    """The table of a law, some 0.1 ms of work."""
    blocks = _blocks(law, guide_bits)
    low = blocks.index * blocks.width - blocks.offset
    high = low + (blocks.width - 1.0 if law.discrete else blocks.width)  # of a discrete law, the last integer
    height = math.ldexp(law.peak, UNIT + blocks.exponent)
    least = height * law.relative(np.maximum(-low, high)) * (1.0 - RELATIVE_ERROR)
    most = height * law.relative(np.maximum(np.maximum(low, -high), 0.0)) * (1.0 + RELATIVE_ERROR)
    parts = np.floor(least).astype(np.int64)
    rests = np.ceil(most).astype(np.int64) + 1 - parts
    highs = blocks.index if blocks.exponent >= 0 else np.floor(low + law.shift).astype(np.int64)
    firsts = np.flatnonzero(np.diff(highs, prepend=highs[0] - 1))
    evens = np.add.reduceat(parts, firsts)
    cells = evens >> (UNIT - guide_bits)  # whole cells that fit into the even part
    guide = np.zeros(2**guide_bits, dtype=np.int16)
    guide[: cells.sum()] = np.repeat(highs[firsts], cells)
    tail = _tail_weight(law, blocks)
    weights = np.concatenate([evens - (cells << (UNIT - guide_bits)), rests, [4 * tail]])  # 2 tails of 1 + 1/2 + ...
    return Table(
        law=law,
        blocks=blocks,
        guide=guide,
        decided=int(cells.sum()),
        highs=np.concatenate([highs[firsts], highs]),
        evens=firsts.size,
        parts=parts,
        rests=rests,
        tail=tail,
        ends=np.cumsum(weights),
    )


def _blocks(law: Law, guide_bits: int) -> Blocks:
    """Blocks such that the middle one has between 2**-8 and 2**-7 of the law, for a guide of 16 bits.

    Blocks of several integers start at the places where the law rounds, and so do integers of several blocks.
    """
    exponent = 1 - guide_bits // 2 - math.frexp(law.peak)[1]
    if exponent <= 0:
        exponent = 0 if law.discrete else exponent - 1
    offset = law.shift if exponent >= 0 else 0.0
    reach = math.ceil((law.scale * REACH ** (1.0 / law.p) + offset) / math.ldexp(1.0, exponent))
    return Blocks(exponent, offset, reach)


def _tail_exponent(law: Law, blocks: Blocks) -> int:
    return max(math.frexp(law.scale)[1], blocks.digits if law.discrete else blocks.exponent)


def _tail_weight(law: Law, blocks: Blocks) -> int:
    start = np.array(blocks.reach * blocks.width - blocks.offset)  # the right tail starts nearer to zero
    height = math.ldexp(law.peak, UNIT + _tail_exponent(law, blocks)) * float(law.relative(start))
    return math.ceil(height * (1.0 + RELATIVE_ERROR)) + 1
