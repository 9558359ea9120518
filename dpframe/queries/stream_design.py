"""Running totals over declared periods, measured by the square-root factorization: what is measured, and how it errs.

The matrix C is that of `prefix_sums`: lower triangular, so that period t needs nothing of later periods, and of whole
multiples of 2**-12. What is measured at period t is y_t = sum of c_(t-j) x_j of the rows x_j of periods j up to t. A
period whose noisy number was lost is left out, and its rows count with those of the next one that is there: then the
rest of the matrix is triangular too, and everything can still be read off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.prefix_sums import BITS, coefficients

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_PERIODS = 4096  # beyond, the coefficients are too few steps long to be told apart
STEP, LAST = 0.05, 200.0  # of the integral for Laplace noise: what it leaves out is below 1e-9
ROUNDS = 50
ABOVE = 1.0 + 1e-7  # more than the integral errs
MASK = 2**BITS - 1


class Draws(Protocol):
    """The facts on noise from which the law of a weighted sum of independent draws follows."""

    @property
    def p(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def grid(self) -> float: ...


def measured(totals: Integers, kept: Sequence[int], *, whole: bool) -> Integers:
    """The number y of the last period for each group, of totals (periods, groups) of its rows and of those before.

    `kept` are the periods, from 1, that are there; the last one is that of y. Rows of a period that is not there count
    with those of the next. Of counts y is a whole number of steps of 2**-12 (`whole`). Any other total stays on its own
    grid: y is rounded down, to the same number whatever the order of the rows.

    A count that wraps modulo 2**64 wraps y alike, and moves it no farther. Rounding does not: of a total that is not
    below 2**63 steps, which takes 2**33 rows at the larger bound, one row may move y by more than its sensitivity. A
    DataFrame of Polars whose index has 32 bits cannot hold so many (``docs/assurance/limits.md``).
    """
    now = kept[-1]
    counted_at = np.asarray(kept)[np.searchsorted(kept, np.arange(1, now + 1))]
    weights = coefficients(now)[now - counted_at]
    if whole:
        return np.asarray(weights @ totals)
    # the sum of c x over 2**12, rounded down: both products fit 64 bits, for a total is below 2**63 steps
    return np.asarray(weights @ (totals >> BITS) + ((weights @ (totals & MASK)) >> BITS))


def weights_of_total(kept: Sequence[int]) -> Floats:
    """The weight of each y in the running total up to the last period that is there."""
    return _solved(tuple(kept), total=True)


def weights_of_period(kept: Sequence[int]) -> Floats:
    """The weight of each y in the number of the last period alone, with the lost ones directly before it."""
    return _solved(tuple(kept), total=False)


@cache
def _solved(kept: tuple[int, ...], *, total: bool) -> Floats:
    """The weights z with z C = 1 (or 1 at the last place alone), from the last to the first."""
    column, places = coefficients(kept[-1]) * 2.0**-BITS, np.asarray(kept)
    weights = np.zeros(places.size)
    for place in range(places.size - 1, -1, -1):
        after = slice(place + 1, None)
        wanted = 1.0 if total or place == places.size - 1 else 0.0
        weights[place] = wanted - weights[after] @ column[places[after] - places[place]]
    weights.flags.writeable = False
    return weights


def half_width(noise: Draws, weights: Floats, confidence: float) -> float:
    """The half-width of the interval of a weighted sum of draws: exact for Laplace and for Gaussian noise.

    Discrete noise is the continuous one moved by less than a step, in each draw; that is added.
    """
    (quantile,) = _quantiles(noise.p, weights[::-1], confidence, every=False)
    return noise.scale * quantile + noise.grid * float(np.abs(weights).sum())


def half_widths(noise: Draws, periods: int, confidence: float) -> tuple[Floats, Floats]:
    """Those of the running totals and of the single periods, of all periods where none is lost."""
    everything = tuple(range(1, periods + 1))
    widths = []
    for weights in (weights_of_total(everything)[::-1], weights_of_period(everything)[::-1]):
        quantiles = np.array(list(_quantiles(noise.p, weights, confidence, every=True)))
        widths.append(noise.scale * quantiles + noise.grid * np.cumsum(np.abs(weights)))
    return widths[0], widths[1]


def _quantiles(p: float, weights: Floats, confidence: float, *, every: bool) -> Iterator[float]:
    """The half-widths for draws of scale 1: of the sum of the first draw, of the first two, ...; or of all alone."""
    normal = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    if p == 2.0:
        spreads = np.sqrt(np.cumsum(weights**2))
        yield from normal * (spreads if every else spreads[-1:])
        return
    points = np.arange(STEP / 2.0, LAST, STEP)
    curve, spread, half = np.full(points.size, STEP * 2.0 / math.pi), 0.0, 0.9 * normal
    for place, weight in enumerate(weights.tolist()):
        curve /= 1.0 + (weight * points) ** 2  # the characteristic function of Laplace noise
        spread += 2.0 * weight**2
        if not (every or place == weights.size - 1):
            continue
        if place == 0:  # one draw alone, whose curve falls too slowly
            yield -abs(weight) * math.log1p(-confidence)
            continue
        solved = _laplace_quantile(points, curve, half * math.sqrt(spread), confidence)
        half = solved / math.sqrt(spread)  # of the next sum it is nearly the same
        yield solved * ABOVE


def _laplace_quantile(points: Floats, curve: Floats, start: float, confidence: float) -> float:
    """The solution of P(|sum| <= h) = confidence by Newton's method; P is the integral of sin(u h) / u on the curve."""
    half = start
    for _ in range(ROUNDS):
        chance = float((np.sin(points * half) / points) @ curve)
        step = (confidence - chance) / float(np.cos(points * half) @ curve)
        half = max(half + step, half / 2.0)
        if abs(step) <= 1e-10 * half:
            break
    return half
