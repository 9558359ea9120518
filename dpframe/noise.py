"""The one file that draws randomness: exact integer noise from the operating system's random bits.

Both laws are drawn the same way. A magnitude N >= 0 is defined by its survival function S: with U uniform on (0, 1),

    N = number of boundaries beta_1 < beta_2 < ... with S(beta_j) > U,

where the boundaries of floor(t E) are 1, 2, 3, ... and S(x) = exp(-x/t) (a geometric variable), and those of
round(|Z|) are 0.5, 1.5, 2.5, ... and S is the tail of the generalized Gaussian. 63 random bits place U in an interval
of width 2**-63; double precision with a generous error bound decides nearly every N, and where a boundary may lie
inside the interval more bits and mpmath decide. So N has exactly the law above, given that the double-precision
quantiles err by less than the stated bound (``tests/test_noise.py`` measures them against mpmath).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 63  # the 64th bit of a word is the sign
DIRECT_SCALE = 2.0**30  # above, double precision leaves too many draws undecided
LARGEST_SCALE = 2.0**52  # |noise| < 2**63 but with probability below exp(-2000)
LARGEST_SHAPE = 16.0  # beyond, the incomplete gamma functions underflow, and the error bounds would not hold
BLOCK = 2**16  # draws at a time, so that the arrays stay in the processor's cache
MORE_BITS = 64
HEADROOM = 2.0**-30  # keeps acceptance ratios below 1

_random_bytes: ContextVar[Callable[[int], bytes]] = ContextVar("dpframe_random_bytes", default=os.urandom)


@dataclass(frozen=True)
class Law:
    """Shape p and scale b of the continuous law behind a magnitude, and where its integer boundaries lie."""

    p: float
    scale: float
    offset: float  # boundary j is at j - offset: 0.5 rounds to nearest, 0 rounds down

    def quantile(self, upper_tail: Floats) -> Floats:
        """The x with S(x) = upper_tail, in double precision."""
        if self.p == 1.0:
            return -self.scale * np.log(upper_tail)
        from scipy import special

        if self.p == 2.0:
            return np.asarray(-self.scale / math.sqrt(2.0) * special.ndtri(upper_tail / 2.0))
        return np.asarray(self.scale * special.gammainccinv(1.0 / self.p, upper_tail) ** (1.0 / self.p))

    @property
    def relative_error(self) -> float:
        """A bound on the error of `quantile` as a part of (x + b): 2**-46 for p = 1 and 2, which err by 2**-50.

        For other p up to LARGEST_SHAPE they err by 2**-45 (at p = 32 by 2**-33, since a p-th power underflows).
        """
        return 2.0**-46 if self.p in (1.0, 2.0) else 2.0**-40

    def survival(self, boundary: int, precision: int) -> Any:
        """S at boundary `boundary` as an mpmath number of `precision` bits."""
        import mpmath

        with mpmath.workprec(precision + MORE_BITS):  # a relative error of x**p is x**p times as large in exp(-x**p)
            ratio = (mpmath.mpf(boundary) - mpmath.mpf(self.offset)) / mpmath.mpf(self.scale)
            if self.p == 1.0:
                return mpmath.exp(-ratio)
            if self.p == 2.0:
                return mpmath.erfc(ratio)
            shape = mpmath.mpf(self.p)
            return mpmath.gammainc(1 / shape, ratio**shape, mpmath.inf, regularized=True)


def discrete_laplace(scale: float, size: int) -> Integers:
    """Draws of the discrete Laplace law, P(k) proportional to exp(-|k| / scale).

    A sign times a geometric variable, with minus zero rejected (otherwise zero would count twice).
    """
    return _filled(size, lambda count: _discrete_laplace_block(_checked(scale), count))


def rounded_generalized_gaussian(p: float, scale: float, size: int) -> Integers:
    """Draws of round(Z), Z with density proportional to exp(-(|z| / scale)**p), for 1 <= p <= 16.

    The error bounds need p >= 1: the hazard rate of |Z| is then at least 1 / scale everywhere.
    """
    if not 1.0 <= p <= LARGEST_SHAPE:
        raise ValueError(f"p must be a number with 1 <= p <= {LARGEST_SHAPE:g}, not {p!r}")
    if _checked(scale) > DIRECT_SCALE:
        return _filled(size, lambda count: _rejected_block(p, scale, count))
    return _filled(size, lambda count: _rounded_block(Law(p, scale, 0.5), count))


def truncated_generalized_gaussian(p: float, scale: float, lowest: Integers, span: int) -> Integers:
    """Draws of round(Z), place by place, given that lowest <= round(Z) <= lowest + span; 0 is always among them.

    A range that is wide against the scale is met by trying draws of round(Z) itself. In a narrower one the draws are
    uniform and kept with the probability mass(k) / mass(0), which is above exp(-1) / 2 there.
    """
    drawn, open_places = np.empty(lowest.size, dtype=np.int64), np.arange(lowest.size)
    while open_places.size:
        least = lowest[open_places]
        if span >= _checked(scale):
            candidate = rounded_generalized_gaussian(p, scale, open_places.size)
            kept = (least <= candidate) & (candidate <= least + span)
        else:
            candidate = least + _uniform(span, open_places.size)
            distance = np.abs(candidate)
            kept = _accept(*_approximate_mass(distance, p, scale), _mass_ratio(distance, p, scale))
        drawn[open_places[kept]] = candidate[kept]
        open_places = open_places[~kept]
    return drawn


def exponential_choice(losses: Floats, exact: Callable[[int], Fraction]) -> int:
    """An index, drawn with probability proportional to exp(-loss): uniform indices, kept with probability exp(-loss).

    The least loss is 0. `losses` err by less than 2**-48 of themselves; `exact` gives each as a rational.
    """
    while True:
        candidate = _uniform(losses.size - 1, min(BLOCK, 16 + 2 * losses.size))
        loss = losses[candidate]
        kept = _accept(np.exp(-loss), (loss + 1.0) * 2.0**-46, _exponential_of(candidate, exact))
        if kept.any():
            return int(candidate[np.argmax(kept)])


def is_secure() -> bool:
    """Whether the bits come from the operating system; False inside `insecure_bits`."""
    return _random_bytes.get() is os.urandom


@contextmanager
def insecure_bits(seed: int) -> Iterator[None]:
    """Repeatable bits, for tests and documentation only: releases made inside are stamped NOT PRIVATE."""
    counter = iter(range(2**62))

    def stream(size: int) -> bytes:
        return hashlib.shake_256(f"{seed}:{next(counter)}".encode()).digest(size)

    token = _random_bytes.set(stream)
    try:
        yield
    finally:
        _random_bytes.reset(token)


def _checked(scale: float) -> float:
    if not 0.0 < scale <= LARGEST_SCALE:
        raise OverflowError(f"noise of scale {scale:g} grid steps does not fit 64-bit integers")
    return scale


def _filled(size: int, block: Callable[[int], Integers]) -> Integers:
    """`size` draws from a sampler that may return fewer than it was asked for."""
    drawn = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        part = block(min(BLOCK, size - done))
        drawn[done : done + part.size] = part
        done += part.size
    return drawn


def _words(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(_random_bytes.get()(8 * count), dtype=np.uint64)


def _uniform(most: int, count: int) -> Integers:
    """Draws that are uniform on 0, 1, ..., most < 2**63: so many bits as `most` has, again where they are too large."""
    mask = np.uint64(2 ** most.bit_length() - 1)
    return _filled(count, lambda size: (found := (_words(size) & mask).astype(np.int64))[found <= most])


def _rounded_block(law: Law, count: int) -> Integers:
    words = _words(count)
    magnitudes = _magnitudes(law, words >> np.uint64(1))
    signed: Integers = np.where(words & np.uint64(1), -magnitudes, magnitudes)  # round(-z) is -round(z)
    return signed


def _discrete_laplace_block(scale: float, count: int) -> Integers:
    words = _words(count)
    magnitudes = _geometric(scale, words >> np.uint64(1))
    negative = (words & np.uint64(1)).astype(bool)
    keep = ~(negative & (magnitudes == 0))
    signed = np.where(negative, -magnitudes, magnitudes)
    return np.asarray(signed[keep])


def _geometric(scale: float, words: NDArray[np.uint64]) -> Integers:
    """floor(scale * E): for large scales the low binary digits and the rest are drawn apart (they are independent).

    With G geometric of ratio r = exp(-1/scale), P(G = 2^k h + l) is proportional to r^(2^k h) r^l: h is geometric of
    scale / 2^k, and l is a geometric variable cut to k bits: uniform, accepted with probability r^l.
    """
    if scale <= DIRECT_SCALE:
        return _magnitudes(Law(1.0, scale, 0.0), words)
    digits = math.frexp(scale / DIRECT_SCALE)[1]
    high = _magnitudes(Law(1.0, math.ldexp(scale, -digits), 0.0), words)
    return (high << digits) + _low_digits(scale, digits, words.size)


def _low_digits(scale: float, digits: int, count: int) -> Integers:
    low = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        candidate = (_words(open_places.size) >> np.uint64(64 - digits)).astype(np.int64)
        log_ratio = -candidate / scale  # between -2**-29 and 0, relative error 2**-52
        accepted = _accept(np.exp(log_ratio), np.full(candidate.size, 2.0**-50), _exponential(candidate, scale))
        low[open_places[accepted]] = candidate[accepted]
        open_places = open_places[~accepted]
    return low


def _exponential(candidate: Integers, scale: float) -> Callable[[int, int], Any]:
    def exact(place: int, precision: int) -> Any:
        import mpmath

        with mpmath.workprec(precision):
            return mpmath.exp(-mpmath.mpf(int(candidate[place])) / mpmath.mpf(scale))

    return exact


def _rejected_block(p: float, scale: float, count: int) -> Integers:
    """round(Z) for scales above 2**30, by rejection from the discrete Laplace law of the same scale, for any p >= 1.

    With x = |k| / scale the proposal has mass proportional to exp(-x); the target's mass is the density's integral
    over [k - 1/2, k + 1/2], which differs from exp(-x**p) by a part of order scale**-min(p, 2). x - x**p is largest
    at x = p**(-1/(p - 1)); HEADROOM keeps the ratio below 1 whatever the rounding.
    """
    peak = p ** (-1.0 / (p - 1.0)) if p > 1.0 else 0.0
    top = peak - peak**p + HEADROOM
    candidate = _discrete_laplace_block(scale, count)
    distance = np.abs(candidate) / scale
    power = distance**p
    error = (1.0 + distance + p * power) * 2.0**-44 + scale**-p
    accepted = _accept(np.exp(distance - power - top), error, _cell_ratio(candidate, p, scale, top))
    return candidate[accepted]


def _cell_ratio(candidate: Integers, p: float, scale: float, top: float) -> Callable[[int, int], Any]:
    """P(round(Z) = k) over the proposal's mass, scaled as in `_rejected_block`, to any precision."""

    def exact(place: int, precision: int) -> Any:
        import mpmath

        with mpmath.workprec(precision + 128):
            b, shape, k = mpmath.mpf(scale), mpmath.mpf(p), abs(mpmath.mpf(int(candidate[place])))
            mass = mpmath.quad(lambda z: mpmath.exp(-((abs(z) / b) ** shape)), [k - 0.5, k, k + 0.5])
            return mass * mpmath.exp(k / b - mpmath.mpf(top))

    return exact


def _approximate_mass(distance: Integers, p: float, scale: float) -> tuple[Floats, Floats]:
    """P(round(Z) = k) over P(round(Z) = 0) in double precision for k < scale, and a bound of its relative error.

    Above a scale of 2**20 by the density at the middle of the cell: the logarithm of the density bends by less than
    p**2 / scale within one. Below by the difference of two incomplete gamma functions, which are less than 4 scale
    times as large as it, and err by less than 2**-44 of themselves.
    """
    if scale > 2.0**20:
        return np.exp(-((distance / scale) ** p)), np.full(distance.size, p * p / scale)
    from scipy.special import gammainc

    ends = [gammainc(1.0 / p, (np.abs(end) / scale) ** p) * np.sign(end) for end in (distance + 0.5, distance - 0.5)]
    whole = 2.0 * float(gammainc(1.0 / p, (0.5 / scale) ** p))
    return (ends[0] - ends[1]) / whole, np.full(distance.size, (scale + 1.0) * 2.0**-40)


def _mass_ratio(distance: Integers, p: float, scale: float) -> Callable[[int, int], Any]:
    """P(round(Z) = k) over P(round(Z) = 0), to any precision."""

    def exact(place: int, precision: int) -> Any:
        import mpmath

        k = int(distance[place])
        with mpmath.workprec(precision + 4 * MORE_BITS):  # the two ends differ by more than 2**-60 of themselves
            b, shape = mpmath.mpf(scale), mpmath.mpf(p)
            within = [mpmath.gammainc(1 / shape, 0, (end / b) ** shape) for end in (k + 0.5, max(k - 0.5, 0.5), 0.5)]
            return (within[0] - within[1]) / (2 * within[2]) if k else mpmath.mpf(1)

    return exact


def _exponential_of(candidate: Integers, loss: Callable[[int], Fraction]) -> Callable[[int, int], Any]:
    def exact(place: int, precision: int) -> Any:
        import mpmath

        exponent = loss(int(candidate[place]))
        whole = (exponent.numerator // exponent.denominator).bit_length()
        with mpmath.workprec(precision + whole + 8):
            return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)

    return exact


def _accept(probability: Floats, relative_error: Floats, exact: Callable[[int, int], Any]) -> NDArray[np.bool_]:
    """True with exactly the probability that `exact` gives; `probability` is it to within `relative_error`."""
    words = _words(probability.size)
    uniform = words.astype(np.float64)
    scaled = probability * 2.0**64
    margin = scaled * relative_error + 2.0**13  # the conversion of 64 bits to double errs by up to 2**10
    accepted = uniform < scaled
    for place in np.flatnonzero(np.abs(uniform - scaled) <= margin):
        accepted[place] = _MoreBits(int(words[place]), 64).below(partial(exact, int(place)))
    return accepted


def _magnitudes(law: Law, words: NDArray[np.uint64]) -> Integers:
    """N for U in [word, word + 1) * 2**-63; undecided ones are settled with more bits."""
    lower = words.astype(np.float64)
    with np.errstate(divide="ignore"):
        upper_tail = (lower + 0.5) * 2.0**-BITS
        position = law.quantile(np.minimum(upper_tail, 1.0)) + law.offset
        error = (position + law.scale) * law.relative_error + law.scale / lower
    floor = np.floor(position)
    magnitudes = floor.astype(np.int64)
    undecided = (position - error < floor) | (position + error >= floor + 1.0)
    for place in np.flatnonzero(undecided):
        magnitudes[place] = _settled(law, int(words[place]))
    return magnitudes


def _settled(law: Law, bits: int) -> int:
    """N decided by exact comparison of U with S at the boundaries near the double-precision guess."""
    known = BITS
    while bits.bit_length() < MORE_BITS:  # few leading digits place N only roughly; none at all, anywhere: no cut
        bits, known = (bits << MORE_BITS) | int.from_bytes(_random_bytes.get()(8), "little"), known + MORE_BITS
    more = _MoreBits(bits, known)
    guess = float(law.quantile(np.array([min(math.ldexp(float(bits), -known), 1.0)]))[0])
    magnitude = max(0, math.floor(guess + law.offset))
    while magnitude > 0 and not more.below(partial(law.survival, magnitude)):
        magnitude -= 1
    while more.below(partial(law.survival, magnitude + 1)):
        magnitude += 1
    return magnitude


class _MoreBits:
    """A uniform variable of which the first bits are known; comparisons draw the further bits that they need."""

    def __init__(self, bits: int, known: int) -> None:
        self.bits, self.known = bits, known

    def below(self, threshold: Callable[[int], Any]) -> bool:
        """Whether U < threshold, where `threshold(precision)` errs by less than 2**(16 - precision) of itself."""
        import mpmath

        while True:
            precision = self.known + 2 * MORE_BITS
            with mpmath.workprec(precision):
                scaled = mpmath.ldexp(threshold(precision), self.known)
                slack = mpmath.ldexp(scaled, 16 - precision)
                if self.bits + 1 <= scaled - slack:
                    return True
                if self.bits >= scaled + slack:
                    return False
            self.bits = (self.bits << MORE_BITS) | int.from_bytes(_random_bytes.get()(8), "little")
            self.known += MORE_BITS
