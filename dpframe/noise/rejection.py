"""Exact draws from a bounded range: truncated noise, and a choice among weighted indices."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.noise.distributions import RELATIVE_ERROR, Floats, Integers, Law
from dpframe.noise.random_bits import Thresholds, accepted, enclosed, uniform, words
from dpframe.noise.samplers import BATCH, checked_scale, rounded_generalized_gaussian


def truncated_generalized_gaussian(p: float, scale: float, lowest: Integers, span: int) -> Integers:
    """Draws of round(Z), place by place, given that lowest <= round(Z) <= lowest + span; 0 is always among them.

    A range that is wide against the scale is met by trying draws of round(Z) itself. In a narrower one the point z is
    uniform and kept with the probability f(z) / f(0), which is above exp(-1) on most of it.
    """
    drawn, open_places = np.empty(lowest.size, dtype=np.int64), np.arange(lowest.size)
    while open_places.size:
        least = lowest[open_places]
        if span >= checked_scale(scale):
            candidate = rounded_generalized_gaussian(p, scale, open_places.size)
            kept = (least <= candidate) & (candidate <= least + span)
        else:
            candidate = least + uniform(span, open_places.size)
            kept = _kept(Law(p, scale), candidate)
        drawn[open_places[kept]] = candidate[kept]
        open_places = open_places[~kept]
    return drawn


def exponential_choice(losses: Floats, exact: Callable[[int], Fraction]) -> int:
    """An index, drawn with probability proportional to exp(-loss): uniform indices, kept with probability exp(-loss).

    The least loss is 0. `losses` err by less than 2**-48 of themselves; `exact` gives each as a rational.
    """
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


def _kept(law: Law, candidate: Integers) -> Any:
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
        with mpmath.workprec(precision + whole + 8):
            return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)

    return lambda index: enclosed(lambda precision: exact(index, precision))
