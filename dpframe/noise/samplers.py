"""Integer noise with exactly its law, for any scale, at two to eight random bytes a draw.

A draw of the law of a table (``dpframe/noise/guide_tables.py``) is one of three:

1. A guide of 2**16 cells of probability 2**-16 each gives every integer or block as many cells as fit into its even
   part. 16 random bits are a cell; if it is given away, they decide all of the integer but for its last binary digits
   within a block, and these are even: plain random bits.
2. The cells left over stand for what is left of the law: even parts less their cells, rests and tails. One of them is
   chosen by weight: weights are whole numbers, so exactly. An even part ends the draw as above.
3. The rectangle over a rest gives a random point of its block, which is kept with probability (f * w - A_i) / e_i; a
   tail likewise. A point that is not kept sends the draw back to 2: what 2 and 3 give is in proportion to what the
   guide left out (von Neumann's rejection), and what it left out has exactly the probability of the cells left over.

Whether a point is kept is the only comparison of numbers that are not whole. Double precision decides it unless its
error bound leaves it open, and then more bits and mpmath do. So integers have exactly their law, given that densities
in double precision err by less than their stated bound; ``tests/noise/test_noise.py`` measures them against mpmath.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.noise.distributions import LARGEST_SHAPE, RELATIVE_ERROR, Integers, Law
from dpframe.noise.guide_tables import UNIT, Table, table_of
from dpframe.noise.random_bits import WORD, Words, accepted, below, numbers, word, words

LARGEST_SCALE = 2.0**52  # |noise| < 2**63 but with probability below exp(-2000)
SMALLEST_SCALE = 2.0**-1000  # drawn for all below, lest densities overflow: more noise, if exp(-2**999) is any
BATCH = 2**16  # draws at a time, so that the arrays stay in the processor's cache


def discrete_laplace(scale: float, size: int) -> Integers:
    """Draws of the discrete Laplace law, P(k) proportional to exp(-|k| / scale)."""
    return drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size)


def truncated_discrete_laplace(scale: float, reach: int, size: int) -> Integers:
    """Draws of the same law given that they lie in -reach, ..., reach: others are drawn again."""
    table = table_of(Law(1.0, checked_scale(scale), discrete=True))
    found = drawn(table, size)
    while (beyond := np.flatnonzero((found < -reach) | (found > reach))).size:
        found[beyond] = drawn(table, beyond.size)
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
    """Draws of the law of a table."""
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
