"""Draws of a mechanism, against what it states: tests whose false alarms are rarer than one in a million."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpframe import noise
from dpframe.mechanisms import from_tails
from dpframe.mechanisms.contract import Mechanism
from dpframe.testing.broken import ContractBroken, require

DRAWS = 2**20
CHOICES = 3_000
WIDE = 6.5  # standard deviations: 1e-10 for each of some hundred comparisons
FEWEST = 100  # draws that an approximation by a normal law needs
MOST = np.iinfo(np.int64).max


def check_draws(mechanism: Mechanism) -> None:
    """Try the draws of a mechanism, as they are of its kind: noise, answers within bounds, or a choice."""
    if not math.isfinite(mechanism.p):
        _check_choices(mechanism)
        return
    _check_kinds(mechanism)
    if mechanism.additive:
        steps = sample_of(mechanism, 0)
        _check_spread(mechanism, steps)
        _check_independence(mechanism, steps)
        _check_interval(mechanism, steps)
        _check_same_law(mechanism, steps)
        if type(mechanism).tail is not Mechanism.tail:
            _check_tail(mechanism, steps)
    _check_neighbors(mechanism)


def sample_of(mechanism: Mechanism, total: int, size: int = DRAWS) -> noise.Integers:
    """Noise added to equal totals, less these."""
    totals = np.full(size, total, dtype=np.int64)
    noisy = mechanism.add_noise(totals)
    return (noisy.view(np.uint64) - totals.view(np.uint64)).view(np.int64)


def _check_kinds(mechanism: Mechanism) -> None:
    """int64 of the same shape, the totals as they were, and no error at the ends of 64 bits."""
    for totals in (np.zeros((3, 5), np.int64), np.zeros(0, np.int64), np.full(64, MOST), np.full(64, -MOST - 1)):
        copied = totals.copy()
        try:
            noisy = mechanism.add_noise(copied)
        except Exception as error:
            raise ContractBroken(
                f"add_noise: it must not fail, whatever the totals, and raised {type(error).__name__}: {error}"
            ) from error
        fits = isinstance(noisy, np.ndarray) and noisy.dtype == np.int64 and noisy.shape == totals.shape
        require(fits, "add_noise", "it must return an int64 array of the shape of the totals.")
        require(np.array_equal(copied, totals), "add_noise", "it must not change the totals that it gets.")
        if mechanism.additive and totals.size == 64:
            away = (noisy.view(np.uint64) - totals.view(np.uint64)).view(np.int64)
            close = np.abs(away.astype(np.float64)) * mechanism.grid <= 1e3 * math.sqrt(mechanism.variance) + 1e-9
            require(
                close.all(), "add_noise", "it must add modulo 2**64, and neither stop nor jump at the largest totals."
            )


def _check_spread(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Centred, and of the variance that is stated."""
    values = steps.astype(np.float64)
    squares = values**2
    if np.count_nonzero(steps) < FEWEST:
        return
    mean, spread = float(values.mean()), float(values.std()) / math.sqrt(values.size)
    require(
        abs(mean) <= WIDE * spread, "centre", f"noise must have the mean 0, and that of the draws is {mean:.4g} steps."
    )
    variance, error = float(squares.mean()), float(squares.std()) / math.sqrt(values.size)
    said = mechanism.variance / mechanism.grid**2
    require(
        abs(variance - said) <= WIDE * error + 1e-6 * said,
        "variance",
        f"noise must have the variance that it states, {said:.6g} squared steps, and the draws have {variance:.6g}.",
    )


def _check_independence(mechanism: Mechanism, steps: noise.Integers) -> None:
    """No cell's noise tells of its neighbor's, and no call's of the call before."""
    values = steps.astype(np.float64)
    if np.count_nonzero(steps) < FEWEST:
        return
    again = sample_of(mechanism, 0).astype(np.float64)
    spread = float(values.std() * again.std())
    for other, words in ((np.roll(values, 1), "cells"), (again, "calls")):
        shared = float((values * other).mean()) / spread
        require(
            abs(shared) <= WIDE / math.sqrt(values.size) * 2.0,
            "independence",
            f"noise of different {words} must be independent, and its correlation is {shared:.3g}.",
        )


def _check_interval(mechanism: Mechanism, steps: noise.Integers) -> None:
    sizes = np.abs(steps.astype(np.float64)) * mechanism.grid
    for confidence in (0.5, 0.95, 0.999):
        width = mechanism.interval(confidence)
        inside = float((sizes <= width * (1.0 + 1e-12)).mean())
        least = confidence - WIDE * math.sqrt(confidence * (1.0 - confidence) / sizes.size)
        require(
            inside >= least,
            "interval",
            f"an interval must hold the noise: that of {confidence:g} is {width:g} wide and holds {inside:.5g} of it.",
        )


def _check_same_law(mechanism: Mechanism, steps: noise.Integers) -> None:
    """The noise does not depend on the total."""
    here = np.sort(steps)
    for total in (10**6 + 1, -(2**50)):
        there = np.sort(sample_of(mechanism, total))
        ends = here[:: max(1, here.size // 32)]
        counts = np.searchsorted(here, ends, side="right"), np.searchsorted(there, ends, side="right")
        shares = (counts[0] + counts[1]) / (2.0 * here.size)
        error = np.sqrt(2.0 * shares * (1.0 - shares) * here.size) + 1.0
        require(
            (np.abs(counts[0] - counts[1]) <= WIDE * error).all(),
            "additive",
            f"noise must not depend on the total, and is not the same around {total:,}. Say additive = False if "
            "that is meant.",
        )


def _check_tail(mechanism: Mechanism, steps: noise.Integers) -> None:
    """The share of the draws beyond some points, on both sides, against the tails."""
    sizes = np.sort(np.abs(steps))
    points = np.unique(np.maximum(1, sizes[np.linspace(0, sizes.size - 1, 40).astype(np.int64)])).astype(np.float64)
    tails = mechanism.tail(points)
    for side in (steps, -steps):
        ordered = np.sort(side).astype(np.float64)
        shares = 1.0 - np.searchsorted(ordered, points, side="left") / steps.size
        error = WIDE * np.sqrt(tails * (1.0 - tails) / steps.size) + WIDE**2 / steps.size
        worst = int(np.argmax(np.abs(shares - tails) - error))
        require(
            (np.abs(shares - tails) <= error).all(),
            "tail",
            f"noise must have the tails that it states: of {points[worst]:,.0f} steps and more {tails[worst]:.5g}, and "
            f"the draws have {shares[worst]:.5g}.",
        )


def _check_neighbors(mechanism: Mechanism) -> None:
    """Two totals as far apart as one unit can move one: what half of the draws tell, tried on the other half."""
    shift = int(from_tails.steps_of(mechanism.sensitivity, mechanism.grid))
    for total in (0, -(10**6), 10**6, shift):
        sample, neighbor = (sample_of(mechanism, start) + start for start in (total, total + shift))
        for first, second in ((sample, neighbor), (neighbor, sample)):
            _check_pair(mechanism, first, second)


def _check_pair(mechanism: Mechanism, first: Any, second: Any) -> None:
    """Answers below and above a point, and the answer at it: no epsilon may show a delta above the curve."""
    half = first.size // 2
    points = np.unique(first[:half][:: max(1, half // 64)])
    shares = [_shares(sample[half:], points) for sample in (first, second)]
    top = mechanism.pure_epsilon or mechanism.epsilon(1e-6)
    for epsilon in np.linspace(0.0, top, 5):
        said = mechanism.delta(float(epsilon))
        low = shares[0] - WIDE * np.sqrt(shares[0] * (1.0 - shares[0]) / half)
        high = shares[1] + WIDE * np.sqrt(shares[1] * (1.0 - shares[1]) / half) + WIDE**2 / half
        delta = float((low - math.exp(min(epsilon, 700.0)) * high).max())
        require(
            delta <= said,
            "delta",
            f"the draws must keep the curve: at epsilon {epsilon:.4g} delta is stated as {said:.4g}, and is more than "
            f"{delta:.4g}.",
        )


def _shares(sample: Any, points: Any) -> Any:
    """The shares of a sample below, above and at each point."""
    ordered = np.sort(sample)
    left, right = (np.searchsorted(ordered, points, side=side) / ordered.size for side in ("left", "right"))
    return np.concatenate([right, 1.0 - left, right - left])


def _check_choices(mechanism: Mechanism) -> None:
    """Marks; scores far below the largest are chosen as rarely as the interval says; neighbors keep epsilon."""
    options = int(mechanism.details.get("options", 3))
    low = np.zeros(options, dtype=np.int64)
    marks = mechanism.add_noise(low)
    chosen = int(mechanism.details.get("chosen", 1))
    ranks = np.concatenate([low[chosen:], np.arange(1, chosen + 1)])
    fits = marks.dtype == np.int64 and marks.shape == low.shape and np.array_equal(np.sort(marks), ranks)
    require(
        fits, "choice", "a choice must mark one option with 1, or k of them with k, k - 1, ..., 1; the others with 0."
    )
    if options == 1:
        return
    far = low.copy()
    far[0] = round(mechanism.interval(0.95) / mechanism.grid) + 1
    missed = 1.0 - _chosen(mechanism, far)[0]
    most = 0.05 + WIDE * math.sqrt(0.05 * 0.95 / CHOICES)
    require(
        missed <= most,
        "interval",
        f"scores beyond the interval of 0.95 may be chosen 5% of the time, not {missed:.1%}.",
    )
    moved = low.copy()
    moved[0] = from_tails.steps_of(mechanism.sensitivity, mechanism.grid)
    shares = _chosen(mechanism, low), _chosen(mechanism, moved)
    loss = mechanism.epsilon(0.0)
    for first, second in (shares, shares[::-1]):
        surely = first - WIDE * np.sqrt(first * (1.0 - first) / CHOICES)
        at_most = second + WIDE * np.sqrt(second * (1.0 - second) / CHOICES) + WIDE**2 / CHOICES
        require((surely <= math.exp(loss) * at_most).all(), "choice", f"a choice must keep epsilon {loss:g}, its own.")


def _chosen(mechanism: Mechanism, scores: noise.Integers) -> Any:
    """The share of draws in which each option is marked as the first."""
    first = int(mechanism.details.get("chosen", 1))
    return sum(mechanism.add_noise(scores) == first for _ in range(CHOICES)) / CHOICES
