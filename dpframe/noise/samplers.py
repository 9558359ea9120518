"""Integer noise with exactly its law, for any scale, at two to eight random bytes a draw.

**Laws.** Densities are known in double precision with an error bound, and in mpmath to any precision.

**Tables** hold what a draw needs to know of a law. These facts are public, so tables may be kept and shared.

The line is cut into blocks whose width w is a power of two. Block i holds an even part A_i, spread evenly over it, and
a rest of density f - A_i / w, which a rectangle of height e_i / w covers. A_i and e_i are multiples of 2**-62 with

    A_i <= (least of f) * w    and    A_i + e_i >= (most of f) * w,

so that they can be computed in double precision and rounded to the safe side. Two tails lie beyond the last blocks.
Steps of one width cover them, each half as high as the one before. Over each step, f falls by a factor of e or more,
and by no less over the next step, since its logarithm is concave (p >= 1). There is no last step.

Even parts are stored by integer: those of blocks narrower than 1 are added up.

**Draws.** A draw of the law of a table is one of three:

1. A guide has 2**16 cells of probability 2**-16 each. It gives every integer or block as many cells as fit into its
   even part. 16 random bits choose a cell. If the cell is given away, it decides the integer, except for the last
   binary digits within a block. An even part is uniform over its block, so these digits are plain random bits.
2. The cells left over stand for the rest of the law: even parts less their cells, rests and tails. One of these is
   chosen by its weight, exactly, since weights are whole numbers. An even part ends the draw as above.
3. The rectangle over a rest gives a random point of its block, which is kept with probability (f * w - A_i) / e_i; a
   tail works likewise. If the point is not kept, the draw returns to 2. So 2 and 3 together give what the guide left
   out, in proportion (von Neumann's rejection), and that has exactly the probability of the cells left over.

The test of a point is the only comparison of numbers that are not whole. Double precision decides it unless its error
bound leaves it open. Then more bits and mpmath decide. So integers have exactly their law, if densities in double
precision err by less than their stated bound; ``tests/noise/test_noise.py`` compares them with mpmath.

**Bounded ranges.** Truncated noise, and a choice among weighted indices, are drawn by rejection.

**Scales.** For rounded Gaussian noise with a scale for each number, one law is drawn and scaled exactly. Let Z be a
Gaussian variable of standard deviation 2**48. N = round(Z) is drawn, and the result is round(s Z / 2**48) for a scale
s. Z lies in [N - 1/2, N + 1/2). If both ends give the same integer, that is the result. Otherwise (for about one number
in 2**48 / s), Z is drawn given that it lies there: a uniform point of the interval, with as many binary digits as its
rounding needs, is kept with probability f(Z) times a power of two. So each integer has exactly the probability that a
rounded Gaussian variable of its scale gives it (of a scale larger by a factor of at most 1 + 2**-51).
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

LARGEST_SHAPE = 16.0  # for a larger p, the error bound would not hold
RELATIVE_ERROR = 2.0**-38  # of `relative` where it is above exp(-66), and of `peak`

UNIT = 62  # weights are multiples of 2**-62
REACH = 16.0  # blocks cover all z with (|z| / b)**p below this
GUIDE_BITS = 16


@dataclass(frozen=True)
class Law:
    """The law of the integer floor(Z + shift), where Z has the density peak * exp(-(distance / scale)**p).

    The distance of z is |z| and the shift is 1/2, so the integer is Z, rounded. For a discrete law, the distance is
    |floor(z)| and the shift is 0: the probability of an integer is spread evenly over the unit interval above it.
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
        """The density at zero for which the integral is 1; a discrete law has p = 1."""
        if self.discrete:
            return math.tanh(0.5 / self.scale)
        return 0.5 / (self.scale * math.gamma(1.0 + 1.0 / self.p))

    def relative(self, distance: Floats) -> Floats:
        """Return the density as a fraction of its peak, in double precision."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(-((distance / self.scale) ** self.p)))

    def exact_peak(self, precision: int) -> Any:
        """Return the peak with a relative error below 2**(16 - precision)."""
        import mpmath

        with to_bits(precision + WORD):
            scale = mpmath.mpf(self.scale)
            if self.discrete:
                return mpmath.tanh(1 / (2 * scale))
            return 1 / (2 * scale * mpmath.gamma(1 + 1 / mpmath.mpf(self.p)))

    def exact(self, distance: Fraction, precision: int) -> Any:
        """Return the density as a fraction of its peak, with a relative error below 2**(16 - precision)."""
        import mpmath

        magnitude = max(0, math.ceil(self.p * (math.log2(distance / Fraction(self.scale)) if distance else 0)))
        with to_bits(precision + WORD + magnitude):  # the relative error of exp(x**p) is x**p times that of x**p
            ratio = mpmath.mpf(distance.numerator) / distance.denominator / mpmath.mpf(self.scale)
            return mpmath.exp(-(ratio ** mpmath.mpf(self.p)))

    def distances(self, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction]:
        """Return the least and the largest distance of the points z with start <= z < end."""
        if self.discrete:
            start, end = Fraction(math.floor(start)), Fraction(math.ceil(end) - 1)
        return max(Fraction(0), start, -end), max(-start, end)

    def thresholds(self, start: Fraction, exponent: int, bits: int) -> Thresholds:
        """Yield bounds of the density, as a fraction of its peak, at a random point of [start, start + 2**exponent).

        `bits` are the first 64 binary digits of the point's position in the interval; closer bounds draw more digits.
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
    """Blocks [i * w - offset, (i + 1) * w - offset) for -reach <= i < reach, with w = 2**exponent."""

    exponent: int
    offset: float
    reach: int

    @property
    def width(self) -> float:
        """The width of a block, w."""
        return math.ldexp(1.0, self.exponent)

    @property
    def digits(self) -> int:
        """The number of binary digits of an integer that its block does not determine."""
        return max(self.exponent, 0)

    @property
    def index(self) -> Integers:
        """The numbers i of all blocks."""
        return np.arange(-self.reach, self.reach)


@dataclass(frozen=True, eq=False)
class Table:
    """A law by blocks. Choices are the even parts less their cells, then the rests, then both tails together."""

    law: Law
    blocks: Blocks
    guide: NDArray[np.int16]  # the high digits of the integer, by cell
    decided: int  # the first cell that is left over
    highs: Integers  # the high digits of the integer, by choice, except for the tails
    evens: int  # the number of choices that are even parts
    parts: Integers  # A_i
    rests: Integers  # e_i
    tail: int  # weight of the first step of one tail
    ends: Integers  # cumulative weights of the choices

    @property
    def tail_exponent(self) -> int:
        """The exponent of the width of a tail's steps: 2**tail_exponent > b, and at least 1 for a discrete law."""
        return _tail_exponent(self.law, self.blocks)

    def rest_thresholds(self, number: int, bits: int) -> Thresholds:
        """Return bounds of (f * w - A_i) / e_i at a point of the block with this number, counted from the left."""
        start = (number - self.blocks.reach) * Fraction(self.blocks.width) - Fraction(self.blocks.offset)
        even, rest = int(self.parts[number]), int(self.rests[number])
        return self._thresholds(start, self.blocks.exponent, bits, UNIT + self.blocks.exponent, even, rest)

    def tail_start(self, step: int, left: bool) -> Fraction:
        """Return the start of a step of a tail."""
        width = Fraction(2) ** self.tail_exponent
        way = self.blocks.reach * Fraction(self.blocks.width) + step * width
        return (-way - width if left else way) - Fraction(self.blocks.offset)

    def tail_thresholds(self, step: int, left: bool, bits: int) -> Thresholds:
        """Return bounds of f * width / weight at a point of a tail's step, whose weight is 2**-step times the first."""
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
    """Build the table of a law, in about 0.1 ms."""
    blocks = _blocks(law, guide_bits)
    low = blocks.index * blocks.width - blocks.offset
    high = low + (blocks.width - 1.0 if law.discrete else blocks.width)  # for a discrete law, the last integer
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
    weights = np.concatenate([evens - (cells << (UNIT - guide_bits)), rests, [4 * tail]])  # 2 tails, each 1 + 1/2 + ...
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
    """Choose blocks such that the middle one has between 2**-8 and 2**-7 of the law, for a guide of 16 bits.

    A block of several integers starts where the law rounds, and an integer of several blocks starts with a block.
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


LARGEST_SCALE = 2.0**52  # |noise| < 2**63, except with probability below exp(-2000)
SMALLEST_SCALE = 2.0**-1000  # replaces smaller scales, whose densities would overflow; this can only add noise
BATCH = 2**16  # draws at a time, so that the arrays fit the processor's cache

BASE_BITS = 48  # draws are below 2**53, which floats hold exactly, except with probability below exp(-500)
HALF = Fraction(1, 2)


def discrete_laplace(scale: float, size: int) -> Integers:
    """Draw from the discrete Laplace law, P(k) proportional to exp(-|k| / scale)."""
    return drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size)


def truncated_discrete_laplace(scale: float, reach: int, size: int) -> Integers:
    """Draw from the discrete Laplace law, given that -reach <= k <= reach; numbers outside are drawn again.

    If few would lie inside, uniform numbers are kept with probability exp(-|k| / scale), which is above exp(-1).
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
    """Draw round(Z), where Z has a density proportional to exp(-(|z| / scale)**p), for 1 <= p <= 16."""
    if not 1.0 <= p <= LARGEST_SHAPE:
        raise InvalidArgument(f"p must be a number with 1 <= p <= {LARGEST_SHAPE:g}, not {p!r}")
    return drawn(table_of(Law(p, checked_scale(scale))), size)


def checked_scale(scale: float) -> float:
    """Return a scale that can be drawn, or raise an error if this one is too large."""
    if not 0.0 < scale <= LARGEST_SCALE:
        raise OverflowError(f"noise of scale {scale:g} grid steps does not fit 64-bit integers")
    return max(scale, SMALLEST_SCALE)


def drawn(table: Table, size: int) -> Integers:
    """Draw from the law of a table, or return zeros if no noise is drawn."""
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
    """Return integers of steps 2 and 3: those of at most `size` trials that are kept."""
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
    """Return which points of blocks are kept; `places` is the position of each point in its block, in 2**-64 of it."""
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
    """Draw an integer from a tail, and whether it is kept; step n of either side has probability 2**-(n + 2)."""
    left, step = bool(word() & 1), 0
    while not (bits := word()):
        step += WORD
    step += WORD - bits.bit_length()
    point_bits = word()
    point = table.tail_start(step, left) + point_bits * Fraction(2) ** (table.tail_exponent - WORD)
    tried = math.floor(point + Fraction(table.law.shift))  # all points with these 64 digits round to one integer
    return tried, below(word(), table.tail_thresholds(step, left, point_bits))


def truncated_generalized_gaussian(p: float, scale: float, lowest: Integers, span: int) -> Integers:
    """Draw round(Z) for each place, given that lowest <= round(Z) <= lowest + span, a range that holds 0.

    If the range is wide relative to the scale, round(Z) itself is drawn until it fits. In a narrower range, the point z
    is uniform and kept with probability f(z) / f(0), which is above exp(-1) on most of the range.
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
    """Draw an index with probability proportional to exp(-loss): uniform indices are kept with probability exp(-loss).

    The least loss is 0. `losses` have relative errors below 2**-48; `exact` gives each loss as a rational.
    """
    if is_silent():
        return int(np.argmin(losses))
    while True:
        candidate = uniform(losses.size - 1, min(BATCH, 16 + 2 * losses.size))
        kept = accepted(*_chances(losses[candidate]), _exponential_of(candidate, exact))
        if kept.any():
            return int(candidate[np.argmax(kept)])


def permuted_choice(losses: Floats, exact: Callable[[int], Fraction]) -> int:
    """Draw an index by permute-and-flip: try each once, in random order, and take it with probability exp(-loss).

    The arguments are those of `exponential_choice`. Indices are drawn uniformly, and repeated ones are skipped: the
    order of their first appearances is uniformly random.
    """
    if is_silent():
        return int(np.argmin(losses))
    seen = np.zeros(losses.size, dtype=np.bool_)
    while True:
        candidate = uniform(losses.size - 1, min(BATCH, 16 + 2 * losses.size))
        first = np.sort(np.unique(candidate, return_index=True)[1])
        new = candidate[first[~seen[candidate[first]]]]
        kept = accepted(*_chances(losses[new]), _exponential_of(new, exact))
        if kept.any():
            return int(new[np.argmax(kept)])
        seen[new] = True


def _chances(loss: Floats) -> tuple[Floats, Floats]:
    """Return exp(-loss) and a bound of its error; an underflow may not warn, for it would tell private gaps."""
    with np.errstate(all="ignore"):
        chance = np.exp(-loss)
        return chance, chance * (loss + 1.0) * 2.0**-46


def _kept_in_range(law: Law, candidate: Integers) -> Any:
    """Return whether a random point of the unit interval around each integer is kept, with probability f(z) / f(0)."""
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
    """Draw round(s Z) for each scale s, where Z is standard normal; the draws are independent of each other."""
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
    """Return the rounded products, and flags for draws whose interval may round to more than one integer."""
    middle = scales * (base * 2.0**-BASE_BITS)
    slack = scales * 2.0 ** (-1 - BASE_BITS) * (1.0 + 2.0**-40) + (np.abs(middle) + 1.0) * 2.0**-49
    low, high = np.floor(middle - slack + 0.5), np.floor(middle + slack + 0.5)
    return low.astype(np.int64), low != high


def _exactly(scale: Fraction, base: int, law: Law) -> int:
    """Return the rounded product of a scale and a random point of the interval of a draw."""
    factor = scale / 2**BASE_BITS
    start = base - HALF
    while True:
        bits, known = 0, 0  # the point lies in [start + bits / 2**known, start + (bits + 1) / 2**known)
        while (rounded := _rounded(factor, start, bits, known)) is None:
            bits, known = longer(bits), known + WORD
        if known == 0 or _kept_exactly(law, start, bits, known):
            return rounded


def _rounded(factor: Fraction, start: Fraction, bits: int, known: int) -> int | None:
    """Return the integer to which all points of an interval are rounded, or None if there are several."""
    low = math.floor(factor * (start + Fraction(bits, 2**known)) + HALF)
    high = math.ceil(factor * (start + Fraction(bits + 1, 2**known)) + HALF) - 1
    return low if low == high else None


def _kept_exactly(law: Law, start: Fraction, bits: int, known: int) -> bool:
    """Return True with probability f(point) 2**k, for about the largest k that keeps it at most 1 on the unit interval.

    The point is uniform in its small interval; its further digits are drawn as far as the comparison needs them.
    """
    nearest, _ = law.distances(start, start + 1)
    lift = max(0, math.floor(float(nearest / Fraction(law.scale)) ** 2 / math.log(2.0) - 1e-6))
    return below(word(), _lifted(law, start + Fraction(bits, 2**known), known, lift))


def _lifted(law: Law, start: Fraction, known: int, lift: int) -> Thresholds:
    import mpmath

    for least, most in law.thresholds(start, -known, word()):
        yield mpmath.ldexp(least, lift), mpmath.ldexp(most, lift)
