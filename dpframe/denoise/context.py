"""Empirical Bayes in context: what neighbors say of a cell, and the prior of how far cells are from that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpframe.denoise.mixture import FOLDS, folds_of, posterior
from dpframe.denoise.noise_law import Floats, Integers, NoiseLaw
from dpframe.denoise.rings import Rings, around, rings_of

FEWEST = 64  # cells below which nothing can be learned from neighbors
PILOT = 4  # radius of the window whose mean is the first guess
ROUNDS = 2  # of fits, each in classes of the guess before
RIDGE = 30.0  # cells' worth of noise by which a weight is held down
FIT, FINE, COARSE = 400, 200, 1_000  # cells that a class has at least: of the fit, and of two ways to estimate
CLIPPED = (1.0, 99.0)  # percentiles beyond which, with three deviations more, a value does not sway the fit
WORTH = 0.1  # deviations that guesses must differ by for the distance from them to say more than the value itself


@dataclass(frozen=True)
class Guess:
    """For each cell what its neighbors say of it, the standard deviation of the noise in that, and its weights."""

    values: Floats
    deviations: Floats
    weights: Floats  # cell x ring, each over the root of the number of cells of the ring


@dataclass(frozen=True)
class Context:
    """Denoised values, the standard deviation of each, and the estimate of their summed squared error."""

    name: str
    values: Floats
    deviations: Floats
    risk: float
    error: float


def contexts(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], *, nonnegative: bool = False) -> list[Context]:
    """The estimates of a line or a grid: in coarse classes, in fine ones, and with rings of the better of the two."""
    if values.size < FEWEST or not axes or max(values.shape[axis] for axis in axes) < 2 * PILOT:
        return []
    flat, folds = values.ravel(), folds_of(values.size)
    first = guess(values, noise, axes, rings_of(values, axes))
    coarse = estimated("coarse", flat, noise, folds, first, COARSE, nonnegative)
    fine = estimated("fine", flat, noise, folds, first, FINE, nonnegative)
    best = min((coarse, fine), key=lambda one: one.risk)
    again = guess(values, noise, axes, rings_of(best.values.reshape(values.shape), axes))
    two = estimated("two", flat, noise, folds, again, FINE, nonnegative)
    return [coarse, fine, replace(two, risk=two.risk + echo(noise, first, again, best, two))]


def echo(noise: NoiseLaw, first: Guess, again: Guess, best: Context, two: Context) -> float:
    """What a cell's own noise adds to the risk by way of its neighbors' first estimates, of which the second guess is.

    E[z m] = v E[dm / dy]: a neighbor in ring s took w_s / c_s of the cell, as far as it was moved at all, and gives
    w'_s / c_s of that back; and the second estimate keeps of its guess what it takes off the cell.
    """
    moved = [np.clip(1.0 - one.deviations**2 / noise.variance, 0.0, 1.0) for one in (best, two)]
    back = (first.weights * again.weights).sum(axis=1)
    return 2.0 * noise.variance * float(np.maximum(back * moved[0] * moved[1], 0.0).sum())


def guess(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], rings: Rings) -> Guess:
    """The weighted mean of the rings, with weights that are learned in classes of like cells, each fold's on the other.

    A cell is in none of its rings, so its own noise is not in its guess.
    """
    deviation = math.sqrt(noise.variance)
    flat, folds = values.ravel(), folds_of(values.size)
    near, counts = around(values, PILOT, axes)
    found, spread = near.ravel(), deviation / np.sqrt(counts.ravel())
    weights = np.empty(rings.means.shape)
    for _ in range(ROUNDS):
        group = classes(found, 2.0 * float(np.median(spread)), FIT)
        found, spread = found.copy(), spread.copy()
        for mine in members(group):
            found[mine], spread[mine], weights[mine] = _fitted(
                flat[mine], noise, rings.means[mine], rings.counts[mine], folds[mine]
            )
    return Guess(found, spread, weights / np.sqrt(rings.counts))


def _fitted(
    values: Floats, noise: NoiseLaw, means: Floats, counts: Floats, folds: Integers
) -> tuple[Floats, Floats, Floats]:
    """The ridge regression of the cells of a class on their rings, fitted on one fold and read on the other."""
    deviation = math.sqrt(noise.variance)
    low, high = np.percentile(values, CLIPPED)
    kept = np.clip(values, low - 3.0 * deviation, high + 3.0 * deviation)
    found, spread, all_weights = np.empty(values.size), np.empty(values.size), np.zeros(means.shape)
    for fold in range(FOLDS):
        own, other = folds == fold, folds != fold
        if not other.any() or not own.any():
            found[own], spread[own] = kept[own].mean() if own.any() else 0.0, deviation
            continue
        middle, level = means[other].mean(axis=0), float(kept[other].mean())
        centred = means[other] - middle
        penalty = RIDGE * noise.variance * (1.0 / counts[other]).mean(axis=0)
        weights = np.linalg.lstsq(centred.T @ centred + np.diag(penalty), centred.T @ (kept[other] - level))[0]
        found[own] = level + (means[own] - middle) @ weights
        spread[own] = deviation * np.sqrt((weights**2 / counts[own]).sum(axis=1) + 1.0 / other.sum())
        all_weights[own] = weights
    return found, spread, all_weights


def estimated(
    name: str, flat: Floats, noise: NoiseLaw, folds: Integers, guessed: Guess, least: int, nonnegative: bool
) -> Context:
    """In each class of like cells whichever has the least cross-fitted risk: the values, empirical Bayes of them, or of
    their distances from the guess."""
    deviation = math.sqrt(noise.variance)
    group = classes(guessed.values, float(np.median(guessed.deviations)), least)
    found, variances = flat.copy(), np.full(flat.size, noise.variance)
    risk, square = 0.0, 0.0
    for mine in members(group):
        best, error, tried_one = mine.size * noise.variance, 0.0, False
        own = guessed.values[mine]
        tried = [(0.0, nonnegative)]
        if float(own.std()) > WORTH * deviation:
            tried.append((np.rint(own / noise.grid) * noise.grid, False))
        for middle, bounded in tried:
            one = posterior(flat[mine] - middle, noise, folds[mine], nonnegative=bounded)
            surely = deviation * float(np.linalg.norm(middle + one.values - found[mine])) if tried_one else 0.0
            if one.risk + surely < best:
                best, error, tried_one = one.risk, one.error, True
                found[mine], variances[mine] = middle + one.values, one.variances
        risk, square = risk + best, square + error**2
    if nonnegative:
        found = np.maximum(found, 0.0)
    return Context(name, found, np.sqrt(variances), risk, math.sqrt(square))


def classes(guessed: Floats, unit: float, least: int) -> Integers:
    """The class of each cell, by its guess: equal steps of asinh(guess / unit), merged until each has enough cells."""
    steps = np.floor(np.arcsinh(guessed / unit)).astype(np.int64)
    steps -= steps.min()
    counts = np.bincount(steps)
    number, cells, names = 0, 0, np.empty(counts.size, dtype=np.int64)
    left = counts[::-1].cumsum()[::-1]  # of this step and all above
    for step, count in enumerate(counts):
        if cells >= least and left[step] >= least:
            number, cells = number + 1, 0
        names[step] = number
        cells += count
    return np.asarray(names[steps])


def members(group: Integers) -> list[Integers]:
    """The places of the cells of each class."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group))[:-1])
