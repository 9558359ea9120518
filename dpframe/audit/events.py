"""Events that tell two sides apart: learned on half of the samples, counted on the other; what counts prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bound = Callable[[Any, Any, int, float], Floats]  # hits of one side and of the other, of how many, chance of an error
Integers = NDArray[np.int64]
Score = Callable[[Any], Floats]  # a number per sample: large speaks for the first side
Teach = Callable[[Any, Any], Sequence[tuple[str, Score]]]  # the scores that samples of both sides suggest

THRESHOLDS = 200
LOW_BITS = 8  # of a float's significand, where a careless sampler shows which value it started from
LARGEST = np.finfo(np.float64).max


def strongest(first: Any, second: Any, teach: Teach, bound: Bound, alpha: float) -> tuple[float, str]:
    """The bound that holds except for a chance of alpha, and the event that shows it.

    A quarter of the samples teaches the scores, and a quarter chooses score and threshold, since a score looks too good
    on what it learned from. The other half is used once, so that its confidence limits hold for the chosen event.
    """
    learn, choose, test = ([first[start::step], second[start::step]] for start, step in ((0, 4), (2, 4), (1, 2)))
    best, event = -1.0, None
    for words, score in teach(*learn):
        sides = [score(side) for side in choose]
        cuts = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, THRESHOLDS), method="lower"))
        for below, turn in ((False, 1), (False, -1), (True, 1), (True, -1)):
            more, fewer = (_hits(side, cuts, below) for side in sides[::turn])
            bounds = bound(more, fewer, len(sides[0]), alpha)
            if bounds.max() > best:
                best, event = float(bounds.max()), (words, score, float(cuts[bounds.argmax()]), below, turn)
    if event is None:
        return 0.0, "none"
    words, score, cut, below, turn = event
    more, fewer = (_hits(score(side), np.array([cut]), below) for side in test[::turn])
    return float(bound(more, fewer, len(test[0]), alpha)[0]), f"{words} {'<' if below else '>='} {cut:.6g}"


def _hits(values: Floats, cuts: Floats, below: bool) -> Integers:
    """The number of values at or above each cut, or below it."""
    under = np.searchsorted(np.sort(values), cuts)
    return under if below else values.size - under


def of_numbers(first: Floats, second: Floats) -> list[tuple[str, Score]]:
    """Values, likelihood ratios of all values together, and low bits; `finite` numbers, one row per sample."""
    scores: list[tuple[str, Score]] = []
    for column in range(first.shape[1]):
        scores.append((f"value {column}", _value(column)))
        scores.append((f"low bits of value {column}", _low_bits(first[:, column], second[:, column], column)))
    if first.shape[1] > 1:
        scores.append(("Gaussian likelihood ratio", _gaussian(first, second)))
        scores.append(("Laplace likelihood ratio", _laplace(first, second)))
    return scores


def of_texts(first: Integers, second: Integers) -> list[tuple[str, Score]]:
    """Score a text by how much more often the first side showed it, the texts being numbered."""
    most = int(max(first.max(initial=0), second.max(initial=0))) + 2
    counts = [np.bincount(np.minimum(side, most), minlength=most + 1) + 1.0 for side in (first, second)]
    ratio = np.log(counts[0] / counts[1])
    return [("what is not a number: log ratio", lambda samples: ratio[np.minimum(samples, most)])]


def finite(numbers: Floats) -> Floats:
    """Numbers that can be ordered and added up: NaN below everything."""
    return np.nan_to_num(numbers, nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST)


def _value(column: int) -> Score:
    return lambda samples: np.asarray(samples[:, column])


def _gaussian(first: Floats, second: Floats) -> Score:
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (first.var(axis=0) + second.var(axis=0)) / 2
        weights = (first.mean(axis=0) - second.mean(axis=0)) / np.where(variance > 0, variance, 1.0)
    weights = np.where(np.isfinite(weights) & np.isfinite(variance), weights, 0.0)
    return lambda samples: finite(np.where(weights == 0.0, 0.0, samples) @ weights)


def _laplace(first: Floats, second: Floats) -> Score:
    first_median, second_median = np.median(first, axis=0), np.median(second, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.abs(second - second_median).mean(axis=0)
    used = np.isfinite(scale) & (np.abs(first_median) < LARGEST) & (np.abs(second_median) < LARGEST)
    scale = np.where(used & (scale > 0), scale, 1.0)

    def score(samples: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (np.abs(samples - second_median) - np.abs(samples - first_median)) / scale
        return finite(np.where(used, finite(apart), 0.0).sum(axis=1))

    return score


def _low_bits(first: Floats, second: Floats, column: int) -> Score:
    """Score the lowest bits of a sample's significand by how much more often the first side showed them."""
    counts = [np.bincount(_bits(side), minlength=2**LOW_BITS) + 1.0 for side in (first, second)]
    ratio = np.log(counts[0] / counts[1])
    return lambda samples: np.asarray(ratio[_bits(samples[:, column])])


def _bits(values: Floats) -> Integers:
    return np.asarray(np.ascontiguousarray(values).view(np.int64) & (2**LOW_BITS - 1))


def at_least(hits: Any, size: int, alpha: float) -> Floats:
    """The lower confidence limit of a probability (Clopper and Pearson 1934), wrong with a chance of at most alpha."""
    from scipy import special

    counted = np.asarray(hits)
    return np.where(counted > 0, special.betaincinv(np.maximum(counted, 1), size - counted + 1, alpha), 0.0)


def at_most(hits: Any, size: int, alpha: float) -> Floats:
    """The upper confidence limit."""
    return np.asarray(1.0 - at_least(size - np.asarray(hits), size, alpha))


def epsilon_bound(delta: float) -> Bound:
    """log((P - delta) / Q), with P at its lower and Q at its upper limit, each wrong with a chance of alpha / 2."""

    def bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
        more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
        return np.asarray(np.log(np.maximum((more - delta) / fewer, 1.0)))

    return bound


def mu_bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
    """Phi^-1(P) - Phi^-1(Q): under mu-Gaussian privacy no event has more (Dong, Roth and Su 2022, Definition 2.6)."""
    from scipy import special

    more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.maximum(special.ndtri(more) - special.ndtri(fewer), 0.0), nan=0.0))
