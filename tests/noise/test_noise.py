"""The noise has exactly its law, its bits come from the operating system, and every bound that it relies on holds.

Laws are tested with fresh bits, at a false alarm rate of 1e-9 each; the power of tests, with repeatable bits.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from forked import drawn_in_a_child
from scipy import special

from dpframe import Laplace, noise
from dpframe.noise import random_bits, samplers
from dpframe.noise.samplers import BATCH, Law

FALSE_ALARM = 1e-9
DRAWS = 2**20
BINS = 32
LAPLACE_SCALES = (0.05, 0.5, 2.0, 10.0, 130.0, 1000.3, 2.0**31 + 0.5, 1e12, 1e15)
GAUSSIAN_SCALES = (0.1, 0.3, 2.0, 10.0, 150.0, 1000.3, 2.0**31 + 0.5, 1e12, 1e15)
OTHERS = ((1.5, 2.0), (3.0, 2.0), (3.0, 1000.3), (1.5, 1e12), (3.0, 1e12), (16.0, 20.0), (16.0, 1e6))


def discrete_laplace_tail(scale):
    """Return the function P(|X| >= k), k >= 1."""
    rate = math.exp(-1.0 / scale)
    return lambda k: 2.0 * np.exp(-k / scale) / (1.0 + rate)


def rounded_tail(p, scale):
    """Return the function P(|round(Z)| >= k) = P(|Z| >= k - 1/2), k >= 1."""
    return lambda k: special.gammaincc(1.0 / p, ((k - 0.5) / scale) ** p)


def edges_of(tail, scale):
    """Return magnitudes 0 = k0 < k1 < ... that cut the law into at most BINS parts of similar probability."""
    levels = 1.0 - np.arange(1, BINS) / BINS
    low, high = np.zeros(levels.size), np.full(levels.size, 60.0 * scale + 60.0)
    for _ in range(100):  # the least k with tail(k) <= level
        middle = np.floor((low + high) / 2.0)
        above = tail(np.maximum(middle, 1.0)) > levels
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.unique(np.concatenate([[0.0], np.maximum(high, 1.0)]))


def departure(found, tail, scale):
    """Return the least p-value of three tests: magnitudes (Pearson's chi-square), their tail and the signs."""
    edges = edges_of(tail, scale)
    tails = np.append(np.concatenate([[1.0], tail(edges[1:])]), 0.0)
    expected = -np.diff(tails) * found.size
    magnitudes = np.abs(found).astype(np.float64)
    counts = np.histogram(magnitudes, np.append(edges, np.inf))[0]
    large = expected >= 10.0  # the chi-square law is an approximation for large cells
    rest_expected, rest_found = expected[~large].sum(), counts[~large].sum()
    total = ((counts - expected)[large] ** 2 / expected[large]).sum()
    worst = [special.chdtrc(max(1, large.sum() - 1), total)] if large.sum() > 1 else []
    if rest_found > rest_expected:
        worst.append(special.gammainc(rest_found, rest_expected))  # Poisson: P(at least this many)
    nonzero = np.count_nonzero(found)
    if nonzero:
        worst.append(math.erfc(abs(2 * np.count_nonzero(found > 0) - nonzero) / math.sqrt(2 * nonzero)))
    return min(worst, default=1.0)


def all_laws():
    for scale in LAPLACE_SCALES:
        yield pytest.param(1.0, scale, noise.discrete_laplace, discrete_laplace_tail, id=f"discrete laplace {scale:g}")
    for p, scale in [*((2.0, scale) for scale in GAUSSIAN_SCALES), (1.0, 3.0), (1.0, 2.0**40), *OTHERS]:

        def draw(scale, size, p=p):
            return noise.rounded_generalized_gaussian(p, scale, size)

        yield pytest.param(p, scale, draw, lambda scale, p=p: rounded_tail(p, scale), id=f"rounded p={p:g} {scale:g}")


LAWS = list(all_laws())


@pytest.mark.parametrize(("p", "scale", "draw", "tail"), LAWS)
def test_draws_have_exactly_their_law(p, scale, draw, tail):
    found = draw(scale, DRAWS)
    assert found.dtype == np.int64
    assert departure(found, tail(scale), scale) > FALSE_ALARM / 3


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.98, 1.02])
@pytest.mark.parametrize(("p", "scale", "draw", "tail"), LAWS)
def test_the_same_test_rejects_a_scale_that_is_2_percent_off(p, scale, draw, tail, factor):
    if tail(scale)(np.ones(1))[0] * DRAWS < 100:
        pytest.skip("at this scale the noise is nearly always zero: no test can tell it from 2% more")
    with noise.insecure_bits(7):
        found = draw(factor * scale, DRAWS)
    assert departure(found, tail(scale), scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [2.0, 10.0, 1000.3])
def test_the_same_test_rejects_a_zero_that_counts_twice(scale):
    """sign * floor(t E) that does not reject minus zero: the privacy loss would be epsilon + ln 2."""
    with noise.insecure_bits(8):
        words = random_bits.words(2**22)
    magnitudes = np.floor(-scale * np.log((words | np.uint64(1)) * 2.0**-64))
    zeros, expected = np.count_nonzero(magnitudes == 0), words.size * math.tanh(0.5 / scale)
    assert zeros > expected + 10 * math.sqrt(expected)


def uneven(p, scale, discrete):
    """Return a table that leaves over a large part: a guide of 5 bits, and tails that begin close to the center."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "REACH", 0.7)
        return samplers.table_of.__wrapped__(Law(p, scale, discrete), 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "scale", "discrete"),
    [(1.0, 3.0, True), (1.0, 300.0, True), (2.0, 0.6, False), (2.0, 500.0, False), (3.0, 1e12, False)],
)
def test_what_the_guide_leaves_over_has_exactly_its_law(p, scale, discrete, monkeypatch):
    """Rests and tails, which are rare in the usual tables."""
    tail = discrete_laplace_tail if discrete else lambda scale: rounded_tail(p, scale)
    table = uneven(p, scale, discrete)
    assert table.decided < 28
    of_tails, plain = [], samplers._tail
    monkeypatch.setattr(samplers, "_tail", lambda table: of_tails.append(plain(table)) or of_tails[-1])
    found = samplers.drawn(table, 3_000)
    assert departure(found, tail(scale), scale) > FALSE_ALARM / 3
    assert departure(found, tail(1.5 * scale), scale) < FALSE_ALARM
    assert sum(kept for _, kept in of_tails) > 100


# Densities in double precision


def density(law, distance):
    """Return the exact density relative to its peak."""
    with mpmath.workdps(80):
        return mpmath.exp(-((mpmath.mpf(distance) / mpmath.mpf(law.scale)) ** mpmath.mpf(law.p)))


def peak(law):
    with mpmath.workdps(80):
        scale, p = mpmath.mpf(law.scale), mpmath.mpf(law.p)
        return mpmath.tanh(1 / (2 * scale)) if law.discrete else p / (2 * scale * mpmath.gamma(1 / p))


SHAPES = [1.0, 1.0 + 1e-9, 1.01, 1.5, 1.99, 2.0, 2.0 + 1e-9, 2.5, 3.0, 5.0, 8.0, 12.0, samplers.LARGEST_SHAPE]
SCALES = [samplers.SMALLEST_SCALE, 1e-9, 0.3, 1.0, 77.7, 1e6 / 3, 1e12, noise.LARGEST_SCALE]


@pytest.mark.parametrize("p", [*SHAPES, *np.random.default_rng(2).uniform(1.0, 16.0, 5)])
@pytest.mark.parametrize("scale", SCALES)
def test_densities_err_by_less_than_the_bound(p, scale):
    law = Law(float(p), scale)
    powers = np.concatenate([np.random.default_rng(3).uniform(0.0, 66.0, 25), [1e-30, 1e-9, 1.0, 66.0]])
    distance = scale * powers ** (1.0 / law.p)
    for place, found in zip(distance, law.relative(distance), strict=True):
        assert abs(found / density(law, float(place)) - 1) < samplers.RELATIVE_ERROR / 16
    assert abs(law.peak / peak(law) - 1) < samplers.RELATIVE_ERROR / 64
    assert abs(Law(1.0, scale, True).peak / peak(Law(1.0, scale, True)) - 1) < samplers.RELATIVE_ERROR / 64


@pytest.mark.parametrize("law", [Law(1.0, 6.5, True), Law(2.0, 6.5), Law(7.5, 1e-5), Law(1.3, 2.0**52)], ids=str)
def test_exact_densities_keep_their_precision(law):
    for distance in (Fraction(0), Fraction(1, 3), Fraction(13), Fraction(2**50)):
        rough, fine = law.exact(distance, 192), law.exact(distance, 600)
        with mpmath.workprec(600):
            assert abs(rough - fine) <= mpmath.ldexp(abs(fine), 16 - 192)
            assert abs(law.exact_peak(192) - law.exact_peak(600)) <= mpmath.ldexp(law.exact_peak(600), 16 - 192)


def test_distances_of_an_interval():
    third, half = Fraction(1, 3), Fraction(1, 2)
    assert Law(2.0, 1.0).distances(-third, half) == (0, half)
    assert Law(2.0, 1.0).distances(third, half) == (third, half)
    assert Law(2.0, 1.0).distances(-half, -third) == (third, half)
    assert Law(1.0, 1.0, True).distances(-5 * half, third) == (0, 3)  # the integers -3, -2, -1, 0
    assert Law(1.0, 1.0, True).distances(Fraction(2), Fraction(3)) == (2, 2)  # 3 is not in it
    assert Law(1.0, 1.0, True).distances(Fraction(-4), -7 * half) == (4, 4)


@pytest.mark.parametrize("p", [0.5, 16.5, 64.0, math.nan, math.inf])
def test_shapes_without_a_proven_bound_are_refused(p):
    with pytest.raises(ValueError, match="p must be"):
        noise.rounded_generalized_gaussian(p, 1.0, 3)


# Tables: with these facts, draws have exactly their law, whatever the numbers in the tables are


TABLES = [
    *((1.0, scale, True) for scale in (1e-300, 0.05, 1.0, 60.0, 200.0, 1000.3, 65536.0, 1e12, 2.0**52)),
    *((2.0, scale, False) for scale in (1e-300, 0.1, 1.0, 60.0, 200.0, 1000.3, 65536.0, 1e12, 2.0**52)),
    *((p, scale, False) for p in (1.0, 1.5, 16.0) for scale in (0.3, 150.0, 5000.7, 1e9)),
]


@pytest.mark.parametrize(("p", "scale", "discrete"), TABLES)
def test_rectangles_lie_below_and_above_the_density(p, scale, discrete):
    law = Law(p, samplers.checked_scale(scale), discrete)
    table = samplers.table_of(law)
    index, width = table.blocks.index, Fraction(table.blocks.width)
    some = np.unique(
        np.concatenate([np.flatnonzero(np.abs(index) < 3), np.linspace(0, index.size - 1, 40)]).astype(int)
    )
    with mpmath.workdps(80):
        unit = mpmath.ldexp(peak(law), samplers.UNIT + table.blocks.exponent)
        for place in some:
            start = int(index[place]) * width - Fraction(table.blocks.offset)
            ends = [start, start + width]
            if discrete:  # every integer of the block
                ends = [Fraction(math.floor(start)), Fraction(math.ceil(start + width) - 1)]
            inside = [abs(end) for end in ends] + ([Fraction(0)] if ends[0] <= 0 <= ends[1] else [])
            masses = [unit * density(law, mpmath.mpf(z.numerator) / z.denominator) for z in inside]
            part, rest = int(table.parts[place]), int(table.rests[place])
            assert 0 <= part <= min(masses)
            assert part + rest >= max(masses)
            assert part + rest <= max(masses) * (1 + 2 * mpmath.mpf(samplers.RELATIVE_ERROR)) + 2  # and not much above
    assert table.blocks.reach * width - Fraction(table.blocks.offset) >= Fraction(law.scale * 16.0 ** (1 / p)) * 0.999


@pytest.mark.parametrize(("p", "scale", "discrete"), TABLES)
def test_cells_and_weights_add_up_to_the_even_parts(p, scale, discrete):
    """For every integer or block, its cells and its weight add up to its even parts, in whole numbers."""
    law = Law(p, samplers.checked_scale(scale), discrete)
    table = samplers.table_of(law)
    assert 0 < table.decided < table.guide.size == 2**16
    weights = np.diff(table.ends, prepend=0)
    assert (weights >= 0).all()
    assert weights[-1] == 4 * table.tail
    assert weights[table.evens : -1].tolist() == table.rests.tolist()
    kinds, cells = np.unique(table.guide[: table.decided], return_counts=True)
    highs = table.highs[: table.evens]
    assert np.unique(highs).size == highs.size
    found = weights[: table.evens].copy()
    found[np.searchsorted(highs, kinds)] += cells << (samplers.UNIT - 16)
    assert found.sum() == table.parts.sum()
    low = table.blocks.index * table.blocks.width - table.blocks.offset
    of_block = table.blocks.index if table.blocks.digits else np.floor(low + law.shift)
    expected = np.zeros(highs.size, dtype=np.int64)
    np.add.at(expected, np.searchsorted(highs, of_block), table.parts)
    assert found.tolist() == expected.tolist()
    assert (table.highs[table.evens :] == of_block).all()


@pytest.mark.parametrize(("p", "scale", "discrete"), TABLES)
def test_blocks_hold_whole_integers_or_lie_in_one(p, scale, discrete):
    law = Law(p, samplers.checked_scale(scale), discrete)
    blocks = samplers.table_of(law).blocks
    width, offset, shift = Fraction(blocks.width), Fraction(blocks.offset), Fraction(law.shift)
    for index in (-blocks.reach, -3, -1, 0, 1, 2, blocks.reach - 1):
        start, end = index * width - offset + shift, (index + 1) * width - offset + shift
        if blocks.exponent >= 0:
            assert start == index * 2**blocks.digits  # the integers that begin with these high digits
            assert end == start + 2**blocks.digits
        else:
            assert math.floor(start) == math.ceil(end) - 1


@pytest.mark.parametrize(("p", "scale", "discrete"), TABLES)
def test_every_cell_is_drawn_as_the_table_says(p, scale, discrete, monkeypatch):
    """All 2**16 cells in order, with last digits of ones: cells given away decide, and cells left over do not."""
    table = samplers.table_of(Law(p, samplers.checked_scale(scale), discrete))
    monkeypatch.setattr(samplers, "_left_over", lambda table, size: np.full(size, 2**60))
    chosen = iter([np.arange(2**16, dtype=np.uint16).tobytes(), b"\xff" * 8 * 2**16])
    found = fed(lambda size: next(chosen)[:size], lambda: samplers.drawn(table, 2**16))
    digits = table.blocks.digits
    assert found[: table.decided].tolist() == [((int(k) + 1) << digits) - 1 for k in table.guide[: table.decided]]
    assert (found[table.decided :] == 2**60).all()


@pytest.mark.parametrize("law", [Law(1.0, 3.0, True), Law(2.0, 500.0), Law(3.0, 1e12)], ids=str)
def test_weights_choose_what_they_belong_to(law):
    """The first and the last weight of each even part, which step 2 of a draw chooses, with last digits of zeros."""
    table = samplers.table_of(law)
    ends, total = table.ends, int(table.ends[-1])
    starts = np.concatenate([[0], ends[:-1]])
    chosen = np.flatnonzero(ends[: table.evens] > starts[: table.evens])
    weights = np.concatenate([starts[chosen], ends[chosen] - 1])
    words = weights.astype(np.uint64) << np.uint64(64 - total.bit_length())
    answers = iter([words.tobytes(), bytes(8 * words.size), b""])
    found = fed(lambda size: next(answers), lambda: samplers._tried(table, words.size))
    assert found.tolist() == (table.highs[np.concatenate([chosen, chosen])] << table.blocks.digits).tolist()


@pytest.mark.parametrize(("p", "scale", "discrete"), TABLES)
def test_steps_of_the_tails_cover_the_density_without_end(p, scale, discrete):
    law = Law(p, samplers.checked_scale(scale), discrete)
    table = samplers.table_of(law)
    width = Fraction(2) ** table.tail_exponent
    edge = table.blocks.reach * Fraction(table.blocks.width)
    for left in (False, True):
        for step in (0, 1, 2, 3, 10, 64, 200):
            start = table.tail_start(step, left)
            way = edge + step * width
            assert start + Fraction(table.blocks.offset) == (-way - width if left else way)
            nearest, _ = law.distances(start, start + width)
            with mpmath.workdps(80):
                most = peak(law) * density(law, mpmath.mpf(nearest.numerator) / nearest.denominator)
                assert mpmath.ldexp(most, samplers.UNIT + table.tail_exponent + step) <= table.tail


# Comparisons


def bytes_of(*chosen):
    """Return a source of chosen words, which fails if more are requested."""
    given = list(chosen)

    def source(size):
        return b"".join(given.pop(0).to_bytes(8, "little") for _ in range(size // 8))

    return source


def fed(source, action):
    token = random_bits._source.set(source)
    try:
        return action()
    finally:
        random_bits._source.reset(token)


@pytest.mark.parametrize(
    ("first", "threshold", "answer"),
    [
        (2**63, Fraction(2**63 + 1, 2**64), True),  # [1/2, 1/2 + 2**-64) lies below 1/2 + 2**-64
        (2**63 + 1, Fraction(2**63 + 1, 2**64), False),
        (0, Fraction(1, 2), True),
        (2**64 - 1, Fraction(1), True),
        (0, Fraction(0), False),
        (0, Fraction(-1), False),
    ],
)
def test_comparisons_on_the_edge_of_an_interval(first, threshold, answer):
    with mpmath.workprec(200):
        exact = mpmath.mpf(threshold.numerator) / threshold.denominator
        assert random_bits.below(first, iter([(exact, exact)])) is answer


def test_comparisons_inside_an_interval_draw_the_bits_that_they_need():
    tie = 0x5555555555555555  # 1/3 is 0.010101... in binary

    def below_with(*more):
        return fed(
            bytes_of(*more), lambda: random_bits.below(tie, random_bits.enclosed(lambda precision: mpmath.mpf(1) / 3))
        )

    assert below_with(tie - 1) is True
    assert below_with(tie + 1) is False
    assert below_with(tie, tie, tie - 1) is True
    assert below_with(tie, tie, tie + 1) is False
    with pytest.raises(IndexError):  # two ties do not decide
        below_with(tie, tie)


def test_comparisons_have_the_probability_of_the_threshold():
    """20,000 comparisons with 1/3 that double precision leaves open; false alarm rate below 1e-9 at 6.2 deviations."""
    third = lambda place: random_bits.enclosed(lambda precision: mpmath.mpf(1) / 3)  # noqa: E731
    with noise.insecure_bits(5):
        hits = random_bits.accepted(np.full(20_000, 0.9), 2.0, third).sum()
    assert abs(hits - 20_000 / 3) < 6.2 * math.sqrt(20_000 * 2 / 9)


KEPT = [Law(1.0, 1000.3, True), Law(1.0, 5.0, True), Law(2.0, 1000.3), Law(2.0, 3.0), Law(1.5, 1e12), Law(16.0, 90.0)]


def chance_of(table, number, place, more=0, digits=0):
    """Return the chance to keep a point at place + more / 2**digits of a block, in units of 2**-64 of its width."""
    law = table.law
    z = (int(table.blocks.index[number]) + Fraction(place * 2**digits + more, 2 ** (64 + digits))) * Fraction(
        table.blocks.width
    ) - Fraction(table.blocks.offset)
    distance = abs(Fraction(math.floor(z)) if law.discrete else z)
    with mpmath.workdps(80):
        mass = mpmath.ldexp(peak(law), samplers.UNIT + table.blocks.exponent) * density(
            law, mpmath.mpf(distance.numerator) / distance.denominator
        )
        return (mass - int(table.parts[number])) / int(table.rests[number])


def kept(table, number, place, *heights):
    found = np.array([number]), np.array([place], dtype=np.uint64)
    digits = table.blocks.digits
    integer = (table.highs[table.evens + number] << digits) + (place >> (64 - digits))
    return bool(fed(bytes_of(*heights), lambda: samplers._kept(table, *found, np.array([integer])))[0])


@pytest.mark.parametrize("law", KEPT, ids=str)
def test_points_are_kept_as_exact_arithmetic_keeps_them(law):
    """Heights just below, at and just above the exact chance: a tie needs more bits of the point and of the height."""
    table = samplers.table_of(law)
    random = np.random.default_rng(4)
    reach = table.blocks.reach
    for number in {0, reach // 2, reach - 2, reach - 1, reach, reach + 1, 2 * reach - 1}:
        for place in (0, 2**64 - 1, int(random.integers(0, 2**63)) * 2 + 1):
            chance = chance_of(table, number, place)
            with mpmath.workdps(80):
                height = int(mpmath.floor(mpmath.ldexp(chance, 64)))
                finer = chance_of(table, number, place, 2**63, 64)  # the next 64 bits of the point: 1000...
                more = int(mpmath.floor(mpmath.ldexp(finer, 128)))
            if not 0 < height < 2**64 - 1:
                continue
            assert kept(table, number, place, max(height - 2**60, 0)) is True
            assert kept(table, number, place, min(height + 2**60, 2**64 - 1)) is False
            for off, answer in ((-(2**40), True), (2**40, False)):
                second = more % 2**64 + off
                if 0 <= second < 2**64:
                    assert kept(table, number, place, more >> 64, second, 2**63) is answer


@pytest.mark.parametrize("law", KEPT, ids=str)
def test_undecided_points_are_kept_as_the_decided_ones(law, monkeypatch):
    monkeypatch.setattr(samplers, "GUIDE_BITS", 8)
    table = samplers.table_of(law, 8)
    with noise.insecure_bits(11):
        decided = samplers.drawn(table, 400)
    monkeypatch.setattr(samplers, "RELATIVE_ERROR", 1e9)  # double precision decides nothing
    with noise.insecure_bits(11):
        assert samplers.drawn(table, 400).tolist() == decided.tolist()


@pytest.mark.parametrize("law", KEPT, ids=str)
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize(("zeros", "step"), [([2**63], 0), ([2**61], 2), ([0, 2**60], 67)])
def test_points_of_tails_are_where_their_bits_say_and_kept_exactly(law, left, zeros, step):
    """Zeros count the steps; the point is half way through a step; heights are just below and above the chance."""
    table = samplers.table_of(law)
    way = (
        table.blocks.reach * Fraction(table.blocks.width) + (step + Fraction(1, 2)) * Fraction(2) ** table.tail_exponent
    )
    point = (-way if left else way) - Fraction(table.blocks.offset)
    distance = abs(Fraction(math.floor(point)) if law.discrete else point)
    with mpmath.workdps(200):
        mass = peak(law) * density(law, mpmath.mpf(distance.numerator) / distance.denominator)
        chance = mpmath.ldexp(mass, samplers.UNIT + table.tail_exponent + step) / table.tail
        height = int(mpmath.floor(mpmath.ldexp(chance, 64)))
    for off in (-16, 16):
        if height + off >= 0:
            found = fed(bytes_of(left, *zeros, 2**63, height + off), lambda: samplers._tail(table))
            assert found == (math.floor(point + Fraction(law.shift)), off < 0)


# Randomness


def test_the_bits_are_the_operating_systems():
    """In a process of its own, so that no earlier test can have replaced the source of bits."""
    words = "import os; from dpframe.noise import random_bits; print(random_bits._source.get() is os.urandom)"
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("True\n", "")
    assert noise.is_secure()


def test_no_seed_reaches_the_noise():
    np.random.seed(0)
    first = noise.discrete_laplace(1e9, 8)
    np.random.seed(0)
    assert first.tolist() != noise.discrete_laplace(1e9, 8).tolist()


def test_insecure_bits_repeat_and_say_so():
    drawn = []
    for seed in (1, 1, 2):
        with noise.insecure_bits(seed):
            assert not noise.is_secure()
            drawn.append(noise.discrete_laplace(1e6, 20).tolist())
        assert noise.is_secure()
    assert drawn[0] == drawn[1] != drawn[2]


def test_insecure_bits_stay_in_their_thread_and_end_with_an_exception():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(noise.is_secure()))
    with noise.insecure_bits(1):
        thread.start()
        thread.join()
    assert seen == [True]
    with pytest.raises(KeyError), noise.insecure_bits(1):
        raise KeyError
    assert noise.is_secure()


def test_two_laws_of_one_shape_and_scale_have_tables_of_their_own():
    laws = [Law(1.0, 2.0, discrete=discrete) for discrete in (True, False)]
    assert [samplers.table_of(law).law.discrete for law in laws] == [True, False]


def test_threads_draw_different_noise():
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(tuple(noise.discrete_laplace(1e12, 4)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_repeat_its_parent():
    assert drawn_in_a_child(4).tolist() != noise.discrete_laplace(1e12, 4).tolist()


# Sizes, scales, sums


@pytest.mark.parametrize("size", [0, 1, 7, BATCH, BATCH + 1])
@pytest.mark.parametrize("scale", [2.0, 2.0**40])
def test_any_size(size, scale):
    for found in (noise.discrete_laplace(scale, size), noise.rounded_generalized_gaussian(2.0, scale, size)):
        assert found.shape == (size,)
        assert found.dtype == np.int64


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**52 * 1.001, 1e300])
def test_scales_that_do_not_fit_are_refused(scale):
    with pytest.raises(OverflowError, match="64-bit"):
        noise.discrete_laplace(scale, 1)
    with pytest.raises(OverflowError, match="64-bit"):
        noise.rounded_generalized_gaussian(2.0, scale, 1)


def test_the_largest_scale_works():
    assert np.abs(noise.discrete_laplace(2.0**52, 1000)).max() < 2**62
    assert np.abs(noise.rounded_generalized_gaussian(2.0, 2.0**52, 1000)).max() < 2**62


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-6, 0.01])
def test_tiny_scales_are_zeros(scale):
    """P(any non-zero) is below 1e-40."""
    assert not noise.discrete_laplace(scale, 1000).any()
    assert not noise.rounded_generalized_gaussian(2.0, scale, 1000).any()


def test_noise_at_a_huge_epsilon_is_nothing():
    totals = np.arange(1000)
    assert Laplace.calibrate(sensitivity=1, epsilon=1e6).add_noise(totals).tolist() == totals.tolist()


def test_addition_wraps_and_keeps_the_shape():
    mechanism = Laplace.calibrate(sensitivity=1, epsilon=0.01)
    totals = np.full((40, 50), 2**63 - 1, dtype=np.int64)
    noisy = mechanism.add_noise(totals)
    assert noisy.shape == totals.shape
    assert noisy.dtype == np.int64
    assert (noisy < 0).any()
    assert (noisy > 0).any()
    back = (noisy.view(np.uint64) - totals.view(np.uint64)).view(np.int64)  # the noise, modulo 2**64
    assert np.abs(back).max() < 100 * 60


@pytest.mark.parametrize("totals", [[1, 2], np.array([1.0]), np.array([1], dtype=np.int32), 5])
def test_only_grid_steps_are_noised(totals):
    with pytest.raises(TypeError, match="int64"):
        Laplace.calibrate(sensitivity=1, epsilon=1).add_noise(totals)
