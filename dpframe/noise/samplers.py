"""Integer noise with exactly its law, for any scale, at two to eight random bytes a draw.

**Laws.** Densities are known in double precision with an error bound, and in mpmath to any precision.

**Tables** of a law are what a draw needs to know. They hold public facts only, so that they may be kept and shared.

The line is cut into blocks as wide as a power of two, w. Block i holds an even part A_i, spread evenly over it, and
a rest of density f - A_i / w, which a rectangle of height e_i / w covers. A_i and e_i are whole numbers of 2**-62 with

    A_i <= (least of f) * w    and    A_i + e_i >= (most of f) * w,

so that they may be found in double precision and rounded to the safe side. Beyond the last blocks lie two tails. Steps
of one width cover them, each half as high as the one before; f falls by exp(-1) or more over each, and by as much over
the next, since its logarithm is concave (p >= 1). There is no last step.

Even parts are known by integer: those of blocks narrower than 1 are added up.

**Draws.** A draw of the law of a table is one of three:

1. A guide of 2**16 cells of probability 2**-16 each gives every integer or block as many cells as fit into its even
   part. 16 random bits are a cell; if it is given away, they decide all of the integer except for its last binary
   digits within a block, and these are even: plain random bits.
2. The cells left over stand for what is left of the law: even parts less their cells, rests and tails. One of them is
   chosen by weight: weights are whole numbers, so exactly. An even part ends the draw as above.
3. The rectangle over a rest gives a random point of its block, which is kept with probability (f * w - A_i) / e_i; a
   tail likewise. A point that is not kept sends the draw back to 2: what 2 and 3 give is in proportion to what the
   guide left out (von Neumann's rejection), and what it left out has exactly the probability of the cells left over.

Whether a point is kept is the only comparison of numbers that are not whole. Double precision decides it unless its
error bound leaves it open, and then more bits and mpmath do. So integers have exactly their law, given that densities
in double precision err by less than their stated bound; ``tests/noise/test_noise.py`` measures them against mpmath.

**Bounded ranges.** Truncated noise, and a choice among weighted indices, are drawn by rejection.

**Scales.** Of rounded Gaussian noise in which every number has a scale of its own, one law is drawn, and stretched
exactly. Z is a Gaussian variable of standard deviation 2**48. Of it N = round(Z) is drawn, and round(s Z / 2**48) is
asked for, with a scale s for each number. Z lies in [N - 1/2, N + 1/2). Where both ends round to the same integer that
is the answer. Else, once in 2**48 / s numbers, Z is drawn within the interval, given that it lies there: a uniform
point, of as many binary digits as it takes to round it, kept with the probability f(Z) times a power of two. So each
integer has exactly the probability that a Gaussian variable of its scale, rounded, gives it (of a scale larger by
2**-52 or less).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.exact import to_bits
from dpframe.noise.random_bits import (
    WORD,
    Thresholds,
    Words,
    accepted,
    below,
    enclosed,
    is_silent,
    longer,
    numbers,
    uniform,
    word,
    words,
)

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

        with to_bits(precision + WORD):
            scale = mpmath.mpf(self.scale)
            if self.discrete:
                return mpmath.tanh(1 / (2 * scale))
            return 1 / (2 * scale * mpmath.gamma(1 + 1 / mpmath.mpf(self.p)))

    def exact(self, distance: Fraction, precision: int) -> Any:
        """The density as a part of its peak with a relative error below 2**(16 - precision)."""
        import mpmath

        magnitude = max(0, math.ceil(self.p * (math.log2(distance / Fraction(self.scale)) if distance else 0)))
        with to_bits(precision + WORD + magnitude):  # exp(x**p) errs by x**p times what x**p errs
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
            with to_bits(precision):
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
            with to_bits(precision):
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


LARGEST_SCALE = 2.0**52  # |noise| < 2**63 but with probability below exp(-2000)
SMALLEST_SCALE = 2.0**-1000  # drawn for all below, lest densities overflow: more noise, if exp(-2**999) is any
BATCH = 2**16  # draws at a time, so that the arrays stay in the processor's cache

BASE_BITS = 48  # draws are whole numbers below 2**53, which floats hold exactly, but for a chance below exp(-500)
HALF = Fraction(1, 2)


def discrete_laplace(scale: float, size: int) -> Integers:
    """Draws of the discrete Laplace law, P(k) proportional to exp(-|k| / scale)."""
    return drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size)


def truncated_discrete_laplace(scale: float, reach: int, size: int) -> Integers:
    """Draws of the same law given that they lie in -reach, ..., reach: others are drawn again.

    Where few would lie there, uniform ones are kept with the probability exp(-|k| / scale), which is above exp(-1).
    """
    if reach < checked_scale(scale):
        return _narrow(scale, reach, size)
    table = table_of(Law(1.0, checked_scale(scale), discrete=True))
    found = drawn(table, size)
    while (beyond := np.flatnonzero((found < -reach) | (found > reach))).size:
        found[beyond] = drawn(table, beyond.size)
    return found


def _narrow(scale: float, reach: int, size: int) -> Integers:
    found, left = np.zeros(size, dtype=np.int64), np.arange(size)
    while left.size and not is_silent():
        candidate = uniform(2 * reach, left.size) - reach
        loss = np.abs(candidate) / scale
        chance = np.exp(-loss)
        exact = _exponential_of(np.abs(candidate), lambda distance: distance / Fraction(scale))
        kept = accepted(chance, chance * (loss + 1.0) * 2.0**-46, exact)
        found[left[kept]] = candidate[kept]
        left = left[~kept]
    return found


def rounded_generalized_gaussian(p: float, scale: float, size: int) -> Integers:
    """Draws of round(Z), Z with density proportional to exp(-(|z| / scale)**p), for 1 <= p <= 16."""
    if not 1.0 <= p <= LARGEST_SHAPE:
        raise InvalidArgument(f"p must be a number with 1 <= p <= {LARGEST_SHAPE:g}, not {p!r}")
    return drawn(table_of(Law(p, checked_scale(scale))), size)


def checked_scale(scale: float) -> float:
    """A scale that can be drawn."""
    if not 0.0 < scale <= LARGEST_SCALE:
        raise OverflowError(f"noise of scale {scale:g} grid steps does not fit 64-bit integers")
    return max(scale, SMALLEST_SCALE)


def drawn(table: Table, size: int) -> Integers:
    """Draws of the law of a table; nothing but 0 where no noise is asked for."""
    if is_silent():
        return np.zeros(size, dtype=np.int64)
    integers = np.empty(size, dtype=np.int64)
    left_over = [np.empty(0, dtype=np.int64)]
    guide_bits, digits = table.guide.size.bit_length() - 1, table.blocks.digits
    for start in range(0, size, BATCH):
        batch = integers[start : start + BATCH]
        cells = numbers(batch.size, guide_bits)
        batch[:] = table.guide.take(cells)
        if digits:
            batch <<= digits
            batch |= numbers(batch.size, digits)
        left_over.append(np.flatnonzero(cells >= table.decided) + start)
    places = np.concatenate(left_over)
    for start in range(0, places.size, BATCH):
        some = places[start : start + BATCH]
        integers[some] = _left_over(table, some.size)
    return integers


def _left_over(table: Table, size: int) -> Integers:
    integers, done = np.empty(size, dtype=np.int64), 0
    while done < size:
        kept = _tried(table, (size - done) * 3 // 2 + 16)[: size - done]
        integers[done : done + kept.size] = kept
        done += kept.size
    return integers


def _tried(table: Table, size: int) -> Integers:
    """Integers from steps 2 and 3: those of at most `size` trials that are kept."""
    weights = numbers(size, int(table.ends[-1]).bit_length())
    choices = np.searchsorted(table.ends, weights[weights < table.ends[-1]], side="right")
    places, digits = words(choices.size), table.blocks.digits
    tried = table.highs.take(choices, mode="clip") << digits
    tried += (places >> np.uint64(1) >> np.uint64(WORD - 1 - digits)).astype(np.int64)
    kept = choices < table.evens
    rests = np.flatnonzero((choices >= table.evens) & (choices < table.highs.size))
    kept[rests] = _kept(table, choices[rests] - table.evens, places[rests], tried[rests])
    for tail in np.flatnonzero(choices == table.highs.size):
        tried[tail], kept[tail] = _tail(table)
    integers: Integers = tried[kept]
    return integers


def _kept(table: Table, blocks: Integers, places: Words, tried: Integers) -> NDArray[np.bool_]:
    """Tell which points of blocks are kept; `places` is how far through its block a point is, in 2**-64."""
    law, width = table.law, table.blocks.width
    if law.discrete:
        distance = np.abs(tried).astype(np.float64)
    else:
        distance = np.abs((blocks - table.blocks.reach + places * 2.0**-WORD) * width - table.blocks.offset)
    mass = math.ldexp(law.peak, UNIT + table.blocks.exponent) * law.relative(distance)
    rests = table.rests[blocks]
    return accepted(
        (mass - table.parts[blocks]) / rests,
        mass / rests * RELATIVE_ERROR,
        lambda index: table.rest_thresholds(int(blocks[index]), int(places[index])),
    )


def _tail(table: Table) -> tuple[int, bool]:
    """An integer from a tail, and whether it is kept: step n of either side is chosen with probability 2**-(n + 2)."""
    left, step = bool(word() & 1), 0
    while not (bits := word()):
        step += WORD
    step += WORD - bits.bit_length()
    point_bits = word()
    point = table.tail_start(step, left) + point_bits * Fraction(2) ** (table.tail_exponent - WORD)
    tried = math.floor(point + Fraction(table.law.shift))  # a whole interval of 2**-64 rounds to the same integer
    return tried, below(word(), table.tail_thresholds(step, left, point_bits))


def truncated_generalized_gaussian(p: float, scale: float, lowest: Integers, span: int) -> Integers:
    """Draws of round(Z), place by place, given that lowest <= round(Z) <= lowest + span; 0 is always among them.

    A range that is wide against the scale is met by trying draws of round(Z) itself. In a narrower one the point z is
    uniform and kept with the probability f(z) / f(0), which is above exp(-1) on most of it.
    """
    drawn, open_places = np.zeros(lowest.size, dtype=np.int64), np.arange(lowest.size)
    while open_places.size and not is_silent():
        least = lowest[open_places]
        if span >= checked_scale(scale):
            candidate = rounded_generalized_gaussian(p, scale, open_places.size)
            kept = (least <= candidate) & (candidate <= least + span)
        else:
            candidate = least + uniform(span, open_places.size)
            kept = _kept_in_range(Law(p, scale), candidate)
        drawn[open_places[kept]] = candidate[kept]
        open_places = open_places[~kept]
    return drawn


def exponential_choice(losses: Floats, exact: Callable[[int], Fraction]) -> int:
    """An index, drawn with probability proportional to exp(-loss): uniform indices, kept with probability exp(-loss).

    The least loss is 0. `losses` err by less than 2**-48 of themselves; `exact` gives each as a rational.
    """
    if is_silent():
        return int(np.argmin(losses))
    while True:
        candidate = uniform(losses.size - 1, min(BATCH, 16 + 2 * losses.size))
        loss = losses[candidate]
        chance = np.exp(-loss)
        kept = accepted(chance, chance * (loss + 1.0) * 2.0**-46, _exponential_of(candidate, exact))
        if kept.any():
            return int(candidate[np.argmax(kept)])


def permuted_choice(losses: Floats, exact: Callable[[int], Fraction]) -> int:
    """An index by permute-and-flip: each is looked at once, in random order, and taken with probability exp(-loss).

    The arguments are those of `exponential_choice`. Indices are drawn uniformly, and passed over when they come again:
    the order of their first appearances is a uniformly random one.
    """
    if is_silent():
        return int(np.argmin(losses))
    seen = np.zeros(losses.size, dtype=np.bool_)
    while True:
        candidate = uniform(losses.size - 1, min(BATCH, 16 + 2 * losses.size))
        first = np.sort(np.unique(candidate, return_index=True)[1])
        new = candidate[first[~seen[candidate[first]]]]
        loss = losses[new]
        chance = np.exp(-loss)
        kept = accepted(chance, chance * (loss + 1.0) * 2.0**-46, _exponential_of(new, exact))
        if kept.any():
            return int(new[np.argmax(kept)])
        seen[new] = True


def _kept_in_range(law: Law, candidate: Integers) -> Any:
    """Tell for each integer whether a random point of the unit interval around it is kept: probability f(z) / f(0)."""
    places = words(candidate.size)
    chance = law.relative(np.abs(candidate - law.shift + places * 2.0**-64))

    def thresholds(index: int) -> Thresholds:
        return law.thresholds(int(candidate[index]) - Fraction(law.shift), 0, int(places[index]))

    return accepted(chance, chance * RELATIVE_ERROR, thresholds)


def _exponential_of(candidate: Integers, loss: Callable[[int], Fraction]) -> Callable[[int], Thresholds]:
    def exact(index: int, precision: int) -> Any:
        import mpmath

        exponent = loss(int(candidate[index]))
        whole = (exponent.numerator // exponent.denominator).bit_length()
        with to_bits(precision + whole + 8):
            return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)

    return lambda index: enclosed(lambda precision: exact(index, precision))


def scaled_gaussian(scales: Floats) -> Integers:
    """Draws of round(s Z) for each scale s, Z standard normal; independent of each other."""
    drawn = np.zeros(scales.size, dtype=np.int64)
    if is_silent():
        return drawn
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
        if known == 0 or _kept_exactly(law, start, bits, known):
            return rounded


def _rounded(factor: Fraction, start: Fraction, bits: int, known: int) -> int | None:
    """The integer to which all points of an interval are rounded; None where there are several."""
    low = math.floor(factor * (start + Fraction(bits, 2**known)) + HALF)
    high = math.ceil(factor * (start + Fraction(bits + 1, 2**known)) + HALF) - 1
    return low if low == high else None


def _kept_exactly(law: Law, start: Fraction, bits: int, known: int) -> bool:
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
