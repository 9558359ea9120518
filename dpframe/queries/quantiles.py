"""Quantiles and the distribution function from noisy running counts, with intervals that cover.

Arrays have one row per group and one column per candidate. All of it is post-processing of noisy numbers, except the
cuts between candidates, by which rows are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise.estimators import NoiseLaw, isotonic
from dpframe.queries.quotients import quotient_half_widths, sum_interval
from dpframe.queries.total import Noise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLACK = 2.0**-20  # of a row: far above the floating-point errors of running counts


class Spread(Protocol):
    """The variances and covariances of the errors of running counts, for measurements with noise of variance 1."""

    @property
    def variances(self) -> Floats: ...
    @property
    def with_last(self) -> Floats: ...


def cuts_between(candidates: Sequence[float]) -> Floats:
    """Return the cuts halfway between neighboring candidates; the number of cuts up to a value is its candidate."""
    numbers = np.array(candidates)
    return np.asarray(numbers[:-1] + (numbers[1:] - numbers[:-1]) / 2.0)


def among_own(values: Floats, groups: Integers, candidates: Sequence[Sequence[float]]) -> Integers:
    """Return the number of the nearest candidate of each value, among those of its group; for NaN, it is the last.

    Values and cuts are replaced by their ranks among the cuts of all groups. Ranks are integers, so one search in the
    ranks of all groups, one group after the other, finds what a search in each group would.

    Examples
    --------
    >>> import numpy as np
    >>> among_own(np.array([0.4, 0.5, 7.0, 7.0]), np.array([0, 0, 0, 1]), [[0, 1, 2], [0, 10]])
    array([0, 1, 2, 1])
    """
    each = [cuts_between(one) for one in candidates]
    cuts, sizes = np.concatenate(each), np.array([one.size for one in each])
    every, firsts = np.unique(cuts), np.cumsum(sizes) - sizes
    behind = every.size + 1  # the offset from the ranks of one group to those of the next
    own = np.repeat(np.arange(sizes.size), sizes) * behind + np.searchsorted(every, cuts, side="right")
    ranks = groups * behind + np.searchsorted(every, values, side="right")
    return np.asarray(np.searchsorted(own, ranks, side="right") - firsts[groups])


def places(
    running: Floats,
    q: float,
    spread: Spread,
    noise: Noise,
    confidence: float,
    *,
    rows: float,
    beside: int,
    last_of: Integers | None = None,
) -> tuple[Integers, Integers, Integers]:
    """Return for each group the place of the q-quantile among the candidates, and the ends of its interval.

    The value is the first candidate at which the isotonic fit of the running counts F reaches q of its end. The
    interval holds, with at least this confidence, the candidates of all values that are called the q-quantile: the
    least v with F(v) >= q N, and both order statistics between which others interpolate. For each of these candidates,
    s_v = F_v - q N >= -`rows` and s_(v-1) <= `rows`. Each noisy number exceeds its limit by z standard deviations with
    at most half of the remaining probability. Then `beside` candidates are added on either side, since a value may lie
    off its candidate. If the noisy number of values is below one, the interval holds all candidates.

    If groups have fewer candidates than columns, `last_of` is the last place of each; no value lies after it.
    """
    last = running[:, -1]
    size = running.shape[1]
    most = np.full(last.size, size - 1) if last_of is None else last_of
    fitted = np.clip(_rising(running, noise), 0.0, np.maximum(last, 0.0)[:, None])
    value = np.minimum(np.argmax(fitted >= (q * fitted[:, -1] - SLACK)[:, None], axis=1), most)
    margin = half_widths(q, spread, noise, confidence) + rows + SLACK
    signed = running - q * last[:, None]
    low = np.argmax(signed >= -margin, axis=1)
    before = np.concatenate([np.ones((last.size, 1), dtype=np.bool_), (signed <= margin)[:, :-1]], axis=1)
    high = size - 1 - np.argmax(before[:, ::-1], axis=1)
    low, high = np.minimum(low, value) - beside, np.maximum(high, value) + beside
    some = last >= 1.0
    ends = np.where(some, np.maximum(low, 0), 0), np.where(some, np.minimum(high, most), most)
    return np.where(some, value, (most + 1) // 2), *ends


def half_widths(q: float | Floats, spread: Spread, noise: Noise, confidence: float) -> Floats:
    """Return the error half-width, in rows, of each running count minus q (a number, or one for each) of the last."""
    variance = spread.variances + q * q * spread.variances[-1] - 2.0 * q * spread.with_last
    return np.asarray(_width(noise, confidence) * np.sqrt(np.maximum(variance, 0.0)))


def distribution(running: Floats, spread: Spread, noise: Noise, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return for each group the share of values up to each candidate, its isotonic fit in [0, 1], and its half-width.

    The half-width reaches the farther end of Fieller's set of shares r with (F - r N)^2 <= z^2 var(F - r N), and at
    most the farther of 0 and 1. The set holds the true share with this confidence, whatever N is (Fieller 1954). If
    the noisy number of values is below 1, the shares rise evenly, and nothing is known of the true ones.
    """
    last = running[:, -1:]
    some = last >= 1.0
    even = np.arange(1.0, running.shape[1] + 1.0) / running.shape[1]
    raw = np.where(some, running / np.where(some, last, 1.0), even)
    shares = np.clip(_rising(raw, noise), 0.0, 1.0)
    squared = _width(noise, confidence) ** 2
    squares = squared * spread.variances, squared * spread.with_last, squared * float(spread.variances[-1])
    farther = np.maximum(shares, 1.0 - shares)
    half = quotient_half_widths(shares, running, last, squares, farther, (0.0, 1.0))
    return raw, shares, np.where(some, half, farther)


def _rising(values: Floats, noise: Noise) -> Floats:
    """Return the nearest values that never fall, in each row."""
    return isotonic(values, cast(NoiseLaw, noise))  # the fit does not use its law


def _width(noise: Noise, confidence: float) -> float:
    """Return the half-width of an interval for sums of draws whose squared weights add up to 1."""
    return sum_interval(noise, confidence)
