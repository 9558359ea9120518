"""The noise has exactly its law; its bits come from the operating system; every bound that it relies on holds.

Tests of randomness: laws are tested with fresh bits at a false alarm rate of 1e-9 each, power with repeatable bits.
"""

from __future__ import annotations

import math
import os
import threading
import warnings

import mpmath
import numpy as np
import pytest
from scipy import special

from dpframe import Laplace, noise
from dpframe.noise import BLOCK, Law

FALSE_ALARM = 1e-9
DRAWS = 2**20
BINS = 32
LAPLACE_SCALES = (0.05, 0.5, 2.0, 10.0, 1000.3, 2.0**31 + 0.5, 1e12, 1e15)
GAUSSIAN_SCALES = (0.1, 0.3, 2.0, 10.0, 1000.3, 2.0**30 - 1.0, 2.0**31 + 0.5, 1e12, 1e15)
OTHERS = ((1.5, 2.0), (3.0, 2.0), (3.0, 1000.3), (1.5, 1e12), (3.0, 1e12))


def discrete_laplace_tail(scale):
    """P(|X| >= k), k >= 1."""
    rate = math.exp(-1.0 / scale)
    return lambda k: 2.0 * np.exp(-k / scale) / (1.0 + rate)


def rounded_tail(p, scale):
    """P(|round(Z)| >= k) = P(|Z| >= k - 1/2), k >= 1."""
    return lambda k: special.gammaincc(1.0 / p, ((k - 0.5) / scale) ** p)


def edges_of(tail, scale):
    """Magnitudes 0 = k0 < k1 < ... that cut the law into at most BINS parts of like probability."""
    levels = 1.0 - np.arange(1, BINS) / BINS
    low, high = np.zeros(levels.size), np.full(levels.size, 60.0 * scale + 60.0)
    for _ in range(100):  # the least k with tail(k) <= level
        middle = np.floor((low + high) / 2.0)
        above = tail(np.maximum(middle, 1.0)) > levels
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.unique(np.concatenate([[0.0], np.maximum(high, 1.0)]))


def departure(draws, tail, scale):
    """A p-value: Pearson's chi-square of the magnitudes, and of the signs, whichever is worse."""
    edges = edges_of(tail, scale)
    tails = np.append(np.concatenate([[1.0], tail(edges[1:])]), 0.0)
    expected = -np.diff(tails) * draws.size
    magnitudes = np.abs(draws).astype(np.float64)
    found = np.histogram(magnitudes, np.append(edges, np.inf))[0]
    large = expected >= 10.0  # the chi-square law is an approximation for large cells
    rest_expected, rest_found = expected[~large].sum(), found[~large].sum()
    statistic = ((found - expected)[large] ** 2 / expected[large]).sum()
    worst = [special.chdtrc(max(1, large.sum() - 1), statistic)] if large.sum() > 1 else []
    if rest_found > rest_expected:
        worst.append(special.gammainc(rest_found, rest_expected))  # Poisson: P(at least so many)
    nonzero = np.count_nonzero(draws)
    if nonzero:
        worst.append(math.erfc(abs(2 * np.count_nonzero(draws > 0) - nonzero) / math.sqrt(2 * nonzero)))
    return min(worst, default=1.0)


def size_for(p, scale):
    return DRAWS if p in (1.0, 2.0) or scale > noise.DIRECT_SCALE else DRAWS // 4  # other shapes are drawn slowly


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
    draws = draw(scale, size_for(p, scale))
    assert draws.dtype == np.int64
    assert departure(draws, tail(scale), scale) > FALSE_ALARM / 3


@pytest.mark.parametrize("factor", [0.98, 1.02])
@pytest.mark.parametrize(("p", "scale", "draw", "tail"), LAWS)
def test_the_same_test_rejects_a_scale_that_is_2_percent_off(p, scale, draw, tail, factor):
    if tail(scale)(np.ones(1))[0] * DRAWS < 100:
        pytest.skip("at this scale the noise is nearly always zero: no test can tell it from 2% more")
    with noise.insecure_bits(7):
        draws = draw(factor * scale, size_for(p, scale))
    assert departure(draws, tail(scale), scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [2.0, 10.0, 1000.3])
def test_the_same_test_rejects_a_zero_that_counts_twice(scale):
    """sign * floor(t E) without the rejection of minus zero: it would lose epsilon + ln 2."""
    with noise.insecure_bits(8):
        words = noise._words(2**22)
        magnitudes = noise._geometric(scale, words >> np.uint64(1))
    draws = np.where(words & np.uint64(1), -magnitudes, magnitudes)
    zeros, expected = np.count_nonzero(draws == 0), draws.size * math.tanh(0.5 / scale)
    assert zeros > expected + 10 * math.sqrt(expected)


# Quantiles in double precision


def error_of(law, tail, position):
    """How far the double-precision quantile is from the exact one, as a part of (x + b); by the exact density."""
    with mpmath.workdps(40):
        p, x = mpmath.mpf(law.p), mpmath.mpf(float(position)) / law.scale
        exact = mpmath.gammainc(1 / p, x**p, mpmath.inf, regularized=True) if x else mpmath.mpf(1)
        density = mpmath.exp(-(x**p)) / mpmath.gamma(1 + 1 / p)
        return float(abs(exact - mpmath.mpf(float(tail))) / density / (x + 1))


def tails(count, seed):
    """Upper tails all over (0, 1], the extremes among them; one random word can give 2**-64 ... 1."""
    generator = np.random.default_rng(seed)
    small, near_one = 2.0 ** -generator.uniform(0.0, 64.0, count), 1.0 - 2.0 ** -generator.uniform(1.0, 53.0, count)
    return np.concatenate([small, near_one, generator.random(count), [2.0**-64, 2.0**-63, 0.5, 1.0 - 2.0**-53, 1.0]])


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_quantiles_err_by_less_than_the_bound(p):
    law = Law(p, 3.7, 0.5)
    places = tails(700, 1)
    worst = max(error_of(law, tail, position) for tail, position in zip(places, law.quantile(places), strict=True))
    assert worst < law.relative_error / 4


def test_quantiles_of_other_shapes_err_by_less_than_the_bound():
    generator = np.random.default_rng(2)
    shapes = [1.0 + 1e-9, 1.01, 1.5, 1.99, 2.0 - 1e-9, 2.0 + 1e-9, 2.5, 3.0, 5.0, 8.0, 12.0, noise.LARGEST_SHAPE]
    for seed, p in enumerate([*shapes, *generator.uniform(1.0, 16.0, 10)]):
        law, places = Law(float(p), 1.0, 0.5), tails(25, seed)
        worst = max(error_of(law, tail, position) for tail, position in zip(places, law.quantile(places), strict=True))
        assert worst < law.relative_error / 16, p


@pytest.mark.parametrize("p", [0.5, 16.5, 64.0, math.nan, math.inf])
def test_shapes_without_a_proven_bound_are_refused(p):
    with pytest.raises(ValueError, match="p must be"):
        noise.rounded_generalized_gaussian(p, 1.0, 3)


@pytest.mark.parametrize("p", [1.0, 1.3, 2.0, 3.0, 7.5])
def test_survival_keeps_its_precision(p):
    for boundary in (1, 2, 7, 20):
        law = Law(p, 6.5, 0.5)
        rough, fine = law.survival(boundary, 192), law.survival(boundary, 600)
        with mpmath.workprec(600):
            assert abs(rough - fine) <= mpmath.ldexp(abs(fine), 16 - 192)


# The undecided


def inverted(law, bits):
    """N for U in the middle of [bits, bits + 1) * 2**-63, by root finding in high precision."""
    with mpmath.workdps(60):
        tail = (mpmath.mpf(bits) + 0.5) / 2**63
        if law.p == 1.0:
            x = -mpmath.log(tail)
        elif law.p == 2.0:
            x = mpmath.erfinv(1 - tail)
        else:
            start = float(special.gammainccinv(1.0 / law.p, float(tail)) ** (1.0 / law.p))
            x = mpmath.findroot(lambda y: law_tail(law.p, y) - tail, start)
        return int(mpmath.floor(x * mpmath.mpf(law.scale) + law.offset))


def law_tail(p, x):
    return mpmath.gammainc(1 / mpmath.mpf(p), x**p, mpmath.inf, regularized=True)


@pytest.mark.parametrize(
    "law",
    [
        Law(1.0, 0.7, 0.0),
        Law(1.0, 1e6, 0.0),
        Law(2.0, 0.9, 0.5),
        Law(2.0, 1e9, 0.5),
        Law(3.0, 5.0, 0.5),
        Law(1.5, 3e8, 0.5),
    ],
    ids=str,
)
def test_settled_draws_equal_the_exact_inversion_of_the_same_bits(law, monkeypatch):
    monkeypatch.setattr(Law, "relative_error", 1e9)  # nothing is decided in double precision
    with noise.insecure_bits(3):
        words = noise._words(60 if law.p in (1.0, 2.0) else 15) >> np.uint64(1)
    words[:3] = [1, 2**62, 2**63 - 2**50]
    token = noise._random_bytes.set(lambda size: bytes(7) + b"\x80")  # a one and 63 zeros: the middle
    try:
        settled = noise._magnitudes(law, words)
    finally:
        noise._random_bytes.reset(token)
    assert settled.tolist() == [inverted(law, int(word)) for word in words]


@pytest.mark.parametrize(
    "law", [Law(1.0, 0.7, 0.0), Law(1.0, 2.0**30, 0.0), Law(2.0, 2.0**30, 0.5), Law(2.0, 3.0, 0.5)], ids=str
)
def test_decided_draws_equal_the_settled_ones(law, monkeypatch):
    with noise.insecure_bits(4):
        words = noise._words(400) >> np.uint64(1)
        decided = noise._magnitudes(law, words)
        monkeypatch.setattr(Law, "relative_error", 1e9)
        assert decided.tolist() == noise._magnitudes(law, words).tolist()


@pytest.mark.parametrize(
    "law", [Law(1.0, 10.0, 0.0), Law(2.0, 10.0, 0.5), Law(3.0, 10.0, 0.5), Law(2.0, 2.0**30, 0.5)], ids=str
)
def test_all_zero_bits_draw_more(law):
    """63 zeros, 64 zeros, then 5: U lies in [5, 6) * 2**-191, and 6 more words of zeros place it at the left end."""
    more = iter([bytes(8), (5).to_bytes(8, "little"), *([bytes(8)] * 6)])
    token = noise._random_bytes.set(lambda size: next(more))
    try:
        found = int(noise._magnitudes(law, np.zeros(1, dtype=np.uint64))[0])
    finally:
        noise._random_bytes.reset(token)
    with mpmath.workdps(150):  # U < S(N) and not U < S(N + 1)
        tail = mpmath.ldexp(mpmath.mpf(5), -191)
        assert law.survival(found + 1, 400) <= tail < law.survival(found, 400)
    assert found > law.quantile(np.array([2.0**-63]))[0] + law.offset  # beyond what 63 bits can reach


@pytest.mark.parametrize(
    ("bits", "threshold", "answer"),
    [
        (4, lambda _: mpmath.mpf(5) / 8, True),  # [4/8, 5/8) lies below 5/8
        (5, lambda _: mpmath.mpf(5) / 8, False),
        (0, lambda _: mpmath.mpf(1) / 2, True),
        (7, lambda _: mpmath.mpf(1), True),
    ],
)
def test_comparisons_on_the_edge_of_an_interval(bits, threshold, answer):
    assert noise._MoreBits(bits, 3).below(threshold) is answer


def test_comparisons_inside_an_interval_draw_the_bits_that_they_need():
    third = lambda precision: mpmath.mpf(1) / 3  # noqa: E731  # 0.010101... in binary

    def below_with(*words):
        more = iter(words)
        token = noise._random_bytes.set(lambda size: next(more).to_bytes(8, "little"))
        try:
            known = noise._MoreBits(1, 2)  # [1/4, 1/2)
            with mpmath.workprec(400):
                return known.below(third), known.known
        finally:
            noise._random_bytes.reset(token)

    tie = 0x5555555555555555
    assert below_with(tie - 1) == (True, 66)
    assert below_with(tie + 1) == (False, 66)
    assert below_with(tie, tie, tie - 1) == (True, 194)
    assert below_with(tie, tie, tie + 1) == (False, 194)


def test_comparisons_have_the_probability_of_the_threshold():
    """20,000 draws of 1/3 from two known bits; false alarm rate below 1e-9 at 6.2 standard deviations."""
    with noise.insecure_bits(5):
        words = noise._words(20_000) >> np.uint64(62)
        hits = sum(noise._MoreBits(int(word), 2).below(lambda precision: mpmath.mpf(1) / 3) for word in words)
    assert abs(hits - 20_000 / 3) < 6.2 * math.sqrt(20_000 * 2 / 9)


# Large scales


def test_a_geometric_variable_is_its_high_part_and_its_low_digits():
    """P(G = 2^k h + l) = P(h) P(l), to 45 digits: what drawing them apart rests on."""
    with mpmath.workdps(80):
        for scale, digits in ((37.0, 3), (1e12, 11), (2.0**31 + 0.5, 2)):
            rate, high_rate = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.exp(-(2**digits) / mpmath.mpf(scale))
            normal = (1 - rate ** (2**digits)) / (1 - rate)
            for high, low in ((0, 0), (3, 1), (70, 2**digits - 1)):
                apart = (1 - high_rate) * high_rate**high * rate**low / normal
                whole = (1 - rate) * rate ** (2**digits * high + low)
                assert abs(apart / whole - 1) < mpmath.mpf(10) ** -45


def test_low_digits_are_accepted_by_their_exact_probability():
    scale, digits = 2.0**50, 21
    with noise.insecure_bits(6):
        low = noise._low_digits(scale, digits, 5000)
    assert low.min() >= 0
    assert low.max() < 2**digits
    with mpmath.workdps(40):
        exact = noise._exponential(np.array([12345]), scale)(0, 128)
        assert abs(exact - mpmath.exp(-mpmath.mpf(12345) / mpmath.mpf(scale))) < mpmath.mpf(2) ** -110


SHAPES = [1.0, 1.0001, 1.1, 1.3, 1.5, 2.0, 2.7, 3.0, 5.0, 8.0, 16.0]


def cell_mass(candidate, p, scale):
    """The integral of exp(-(|z| / b)**p) over [k - 1/2, k + 1/2]: by incomplete gammas, not by quadrature."""
    k, b, shape = abs(int(candidate)), mpmath.mpf(scale), mpmath.mpf(p)
    beyond = lambda z: mpmath.gammainc(1 / shape, (z / b) ** shape, mpmath.inf) * b / shape  # noqa: E731
    half = mpmath.mpf(1) / 2
    return 2 * (beyond(mpmath.mpf(0)) - beyond(half)) if k == 0 else beyond(k - half) - beyond(k + half)


def acceptance(candidates, p, scale):
    """The ratio in double precision, its stated error, and the exact function."""
    seen = {}

    def accept(probability, relative_error, exact):
        seen.update(probability=probability, error=relative_error, exact=exact)
        return np.ones(probability.size, dtype=bool)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "_accept", accept)
        patch.setattr(noise, "_discrete_laplace_block", lambda scale, count: candidates)
        noise._rejected_block(p, scale, candidates.size)
    return seen["probability"], seen["error"], seen["exact"]


@pytest.mark.parametrize("p", SHAPES)
def test_acceptance_ratios_are_exact_within_the_stated_error_and_at_most_one(p):
    scale = 2.0**30 + 1.0
    peak = p ** (-1.0 / (p - 1.0)) if p > 1.0 else 0.5
    places = [
        place for place in (0.0, 1 / scale, 3 / scale, 0.01, peak, 0.999 * peak, 1.0, 1.2, 2.0, 4.0) if place**p < 60
    ]
    candidates = np.array([round(place * scale) for place in places], dtype=np.int64)
    probability, error, exact = acceptance(candidates, p, scale)
    for place, candidate in enumerate(candidates):
        with mpmath.workdps(90):
            top = mpmath.mpf(peak) - mpmath.mpf(peak) ** p if p > 1.0 else mpmath.mpf(0)
            ideal = cell_mass(candidate, p, scale) * mpmath.exp(int(candidate) / mpmath.mpf(scale) - top)
            settled = exact(place, 192)
            assert settled < 1
            assert abs(settled / (ideal * mpmath.exp(-mpmath.mpf(noise.HEADROOM))) - 1) < 2.0**-50  # `top` is a double
            assert abs(probability[place] - settled) <= error[place] * settled + 2.0**-51  # the margin of `_accept`


def test_acceptance_is_settled_to_high_precision():
    """Quadrature and incomplete gammas agree to the 176 bits that a comparison relies on."""
    for p, scale, k in ((2.0, 2.0**31, 12345), (1.5, 2.0**31, 0), (3.0, 1e12, 10**12), (1.1, 2.0**30 + 1, 1)):
        _, _, exact = acceptance(np.array([k], dtype=np.int64), p, scale)
        peak = p ** (-1.0 / (p - 1.0))
        top = peak - peak**p + noise.HEADROOM
        with mpmath.workdps(120):
            ideal = cell_mass(k, p, scale) * mpmath.exp(k / mpmath.mpf(scale) - mpmath.mpf(top))
            assert abs(exact(0, 192) / ideal - 1) < mpmath.mpf(2) ** -176


def test_undecided_acceptances_are_settled_as_the_decided_ones(monkeypatch):
    with noise.insecure_bits(11):
        decided = noise.rounded_generalized_gaussian(2.0, 2.0**31, 40)
    original = noise._accept
    monkeypatch.setattr(
        noise, "_accept", lambda probability, error, exact: original(probability, error * 0 + 1e9, exact)
    )
    with noise.insecure_bits(11):
        assert noise.rounded_generalized_gaussian(2.0, 2.0**31, 40).tolist() == decided.tolist()


# Randomness


def test_the_bits_are_the_operating_systems():
    assert noise._random_bytes.get() is os.urandom
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
    noise.discrete_laplace(1e12, 4)  # whatever is buffered is buffered now
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
        child = os.fork()
    if child == 0:
        os.write(writer, noise.discrete_laplace(1e12, 4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert np.frombuffer(os.read(reader, 100), dtype=np.int64).tolist() != noise.discrete_laplace(1e12, 4).tolist()
    os.close(reader)
    os.close(writer)


# Sizes, scales, sums


@pytest.mark.parametrize("size", [0, 1, 7, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("scale", [2.0, 2.0**40])
def test_any_size(size, scale):
    for draws in (noise.discrete_laplace(scale, size), noise.rounded_generalized_gaussian(2.0, scale, size)):
        assert draws.shape == (size,)
        assert draws.dtype == np.int64


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**52 * 1.001, 1e300])
def test_scales_that_do_not_fit_are_refused(scale):
    with pytest.raises(OverflowError, match="64-bit"):
        noise.discrete_laplace(scale, 1)
    with pytest.raises(OverflowError, match="64-bit"):
        noise.rounded_generalized_gaussian(2.0, scale, 1)


def test_the_largest_scale_works():
    assert np.abs(noise.discrete_laplace(2.0**52, 1000)).max() < 2**62
    assert np.abs(noise.rounded_generalized_gaussian(2.0, 2.0**52, 1000)).max() < 2**62


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 0.01])
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
