"""Laws of released noise, and the exact quantiles of weighted sums of independent draws.

The law of a sum of draws is the convolution of their laws. If the weighted steps of all draws are multiples of one
length, that length is the grid, and nothing is rounded. Otherwise each draw is rounded to the nearest point of a grid
of 2**-12 of the total standard deviation (2**-15 for many draws). The quantile then grows by the smaller of two bounds
on the rounding error: half a step for each draw, or the bound of Hoeffding's inequality, which fails with a chance of
`RARE`. The inequality applies since these errors are independent, symmetric and bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown
from dpframe.exact import is_number

Floats = NDArray[np.float64]

FINE = 12  # bits of the grid for few draws
FEW = 32  # the largest number of draws for which FINE bits are used
REACH = 16.0  # standard deviations to either side: if steps are short, the noise beyond has a chance below `BEYOND`
BEYOND = 2.0**-30
WITHIN = 2.0**-26  # more than a convolution loses in tails and by the rounding of its arithmetic
RARE = 1e-7  # the chance that Hoeffding's bound is exceeded
MOST_POINTS = 2**20
MOST_KEPT = 2**15  # the largest number of points of a convolution that is cached: 256 of them take 32 MB
SMOOTH = 2.0**-8  # a share of the standard deviation; smaller rounding errors are added, and not convolved
MOST_CONFIDENCE = 0.9999


@dataclass(frozen=True, order=True)
class Law:
    """The law of a draw: whole steps of `grid`, of shape p and scale (t, sigma or b) in the user's units."""

    p: float
    scale: float
    grid: float

    @property
    def variance(self) -> float:
        """The variance of the discrete draw, in squared units."""
        return _variance(self.p, self.scale / self.grid) * self.grid**2

    def tail(self, steps: Floats) -> Floats:
        """Return the chance of a draw of at least this many steps, for whole numbers of 1 and more."""
        return _tail(self.p, self.scale / self.grid, steps)


def law_of(statistic: Mapping[str, Any]) -> Law | None:
    """Return the law of noise from the facts of a record; None if it is not additive, or not known here."""
    name, known = str(statistic["noise"]), "p" in statistic and "threshold" not in statistic
    if not known or statistic["grid"] <= 0.0:
        return None
    p, scale, grid = (float(statistic[fact]) for fact in ("p", "scale", "grid"))
    named = {"discrete Laplace": 1.0, "rounded Gaussian": 2.0, f"rounded generalized Gaussian, p = {p:g}": p}
    return Law(p, scale, grid) if named.get(name) == p and scale > 0.0 else None


def checked_confidence(confidence: object) -> float:
    """Return the confidence as a float; refuse one outside the allowed range."""
    if not is_number(confidence) or not 0.0 < float(confidence) <= MOST_CONFIDENCE:  # type: ignore[arg-type]
        raise InvalidArgument(
            f"confidence must be above 0 and at most {MOST_CONFIDENCE}, not {shown(confidence)}. Write confidence=0.95."
        )
    return float(confidence)  # type: ignore[arg-type]


def normal_quantile(confidence: float) -> float:
    """Return the half-width of the interval of a standard normal variable."""
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)


@lru_cache(maxsize=4096)
def half_width(terms: tuple[tuple[Law, float, int], ...], normal: float, confidence: float, bits: int = FINE) -> float:
    """Return the half-width of the interval of a sum of independent draws, rounded up.

    Parameters
    ----------
    terms : tuple of (Law, float, int)
        The law, the weight (above 0), and the number of draws with both.
    normal : float
        The standard deviation of a normal variable that is added to them.
    confidence : float
        The confidence of the interval.
    bits : int
        The grid for few draws is 2**-bits of the standard deviation of the sum.
    """
    deviation = math.sqrt(normal**2 + math.fsum(count * weight**2 * law.variance for law, weight, count in terms))
    if deviation == 0.0:
        return 0.0
    terms, normal, moved = _smoothed(terms, normal, deviation)
    if not terms:
        return normal_quantile(confidence) * normal + moved
    draws = sum(count for _, _, count in terms) + (normal > 0.0)
    step = None if normal else _common_step(terms, deviation)
    if step is None:
        step = deviation * 2.0 ** -(bits if draws <= FEW else bits + 3)
        hoeffding = math.sqrt(draws * math.log(2.0 / RARE) / 2.0)
        moved += step * min(draws / 2.0, hoeffding)
        confidence += 0.0 if draws / 2.0 <= hoeffding else RARE
    size = 2 ** max(4, math.ceil(math.log2(2.0 * REACH * deviation / step)))
    target = min(confidence + WITHIN, 1.0 - BEYOND)
    held = (_held if size <= MOST_KEPT else _held.__wrapped__)(terms, normal, step, size)
    while held[-1] < target and _beyond(terms, size * step / 2.0) > BEYOND / 1024.0:
        size *= 2  # draws that are mostly 0 reach farther than their deviation suggests
        held = _held.__wrapped__(terms, normal, step, size)
    return int(np.searchsorted(held, confidence + WITHIN)) * step + moved


def _beyond(terms: tuple[tuple[Law, float, int], ...], reach: float) -> float:
    """Return an upper bound on the chance that any single draw is this far away from 0."""
    steps = [max(1.0, math.ceil(reach / (weight * law.grid))) for law, weight, _ in terms]
    return math.fsum(
        2.0 * count * float(law.tail(np.array([far]))[0]) for (law, _, count), far in zip(terms, steps, strict=True)
    )


@lru_cache(maxsize=256)
def _held(terms: tuple[tuple[Law, float, int], ...], normal: float, step: float, size: int) -> Floats:
    """Return the chances that the sum is at most 0, 1, 2, ... steps away from 0; they serve any confidence."""
    curve = np.ones(size // 2 + 1, dtype=np.complex128)
    for law, weight, count in terms:
        curve *= np.fft.rfft(_masses(law.tail, weight * law.grid, step, size)) ** count
    if normal:
        curve *= np.fft.rfft(_masses(lambda steps: _tail(2.0, normal / step, steps), step, step, size))
    masses = np.fft.irfft(curve, size)
    held: Floats = np.cumsum(np.concatenate([masses[:1], masses[1 : size // 2] + masses[: size // 2 : -1]]))
    held.flags.writeable = False
    return held


def _masses(tail: Any, length: float, step: float, size: int) -> Floats:
    """Return the masses of a draw of multiples of `length`, moved to the nearest multiples of `step`, on a circle."""
    half = size // 2
    # at 1/2, 3/2, ... steps; a draw within a rounding error of an edge moves up
    edges = np.ceil((np.arange(1.0, half + 1.0) - 0.5) * (step / length) * (1.0 - 2.0**-40))
    above = tail(np.maximum(edges, 1.0))
    masses = np.zeros(size)
    masses[1:half] = above[:-1] - above[1:]
    masses[:half:-1] = masses[1:half]
    masses[0] = 1.0 - 2.0 * above[0]
    return masses


def _smoothed(
    terms: tuple[tuple[Law, float, int], ...], normal: float, deviation: float
) -> tuple[tuple[tuple[Law, float, int], ...], float, float]:
    """Return the terms with rounded Gaussian draws merged into one normal variable, and what their rounding adds."""
    gaussian = [term for term in terms if term[0].p == 2.0]
    moved = math.fsum(count * weight * law.grid / 2.0 for law, weight, count in gaussian)
    if not gaussian or moved > SMOOTH * deviation:
        return terms, normal, 0.0
    spread = math.fsum(count * (weight * law.scale) ** 2 for law, weight, count in gaussian)
    return tuple(term for term in terms if term[0].p != 2.0), math.sqrt(normal**2 + spread), moved


def _common_step(terms: Sequence[tuple[Law, float, int]], deviation: float) -> float | None:
    """Return a length of which all weighted steps are multiples; None if there is none that is long enough."""
    lengths = [weight * law.grid for law, weight, _ in terms]
    least = min(lengths)
    ratios = [Fraction(length / least).limit_denominator(64) for length in lengths]
    if any(abs(length / least - ratio) > 1e-12 for length, ratio in zip(lengths, ratios, strict=True)):
        return None
    step = least / math.lcm(*(ratio.denominator for ratio in ratios))
    return step if 2.0 * REACH * deviation / step <= MOST_POINTS / 8 else None


def _tail(p: float, scale: float, steps: Floats) -> Floats:
    from scipy.special import erfc, gammaincc

    with np.errstate(over="ignore", under="ignore"):
        if p == 1.0:
            return np.asarray(np.exp(-steps / scale) / (1.0 + math.exp(-1.0 / scale)))
        if p == 2.0:
            return np.asarray(erfc((steps - 0.5) / (scale * math.sqrt(2.0))) / 2.0)
        return np.asarray(gammaincc(1.0 / p, ((steps - 0.5) / scale) ** p) / 2.0)


@lru_cache(maxsize=1024)
def _variance(p: float, scale: float) -> float:
    """Return the variance of a draw, in squared steps."""
    if p == 1.0:
        return 2.0 * math.exp(-1.0 / scale) / math.expm1(-1.0 / scale) ** 2
    if scale > 1_000.0:  # rounding to whole numbers adds 1/12
        ratio = 1.0 if p == 2.0 else math.exp(math.lgamma(3.0 / p) - math.lgamma(1.0 / p))
        return scale**2 * ratio + 1.0 / 12.0
    steps = np.arange(1.0, 3.0 + scale * (12.0 if p == 2.0 else 60.0 ** (1.0 / p)))
    return float(((2.0 * steps - 1.0) * 2.0 * _tail(p, scale, steps)).sum())
