"""Empirical Bayes in context: what neighbors say of a cell, and the prior of how far cells are from that."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    """For each cell what its neighbors say of it, and the standard deviation of the noise in that."""

    values: Floats
    deviations: Floats


@dataclass(frozen=True)
class Context:
    """Denoised values, the standard deviation of each, and the estimate of their summed squared error."""

    name: str
    values: Floats
    deviations: Floats
    risk: float
    error: float


def contexts(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], *, nonnegative: bool = False) -> list[Context]:
    """The estimates of a line or a grid, in coarse classes and in fine ones.

    `axes` are those whose neighbors may be alike. Fewer than 64 cells have none.
    """
    if values.size < FEWEST or not axes or max(values.shape[axis] for axis in axes) < 2 * PILOT:
        return []
    flat, folds = values.ravel(), folds_of(values.size)
    first = guess(values, noise, axes, rings_of(values, axes))
    coarse = estimated("coarse", flat, noise, folds, first, COARSE, nonnegative)
    fine = estimated("fine", flat, noise, folds, first, FINE, nonnegative)
    return [coarse, fine]


def guess(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], rings: Rings) -> Guess:
    """The weighted mean of the rings, with weights that are learned in classes of like cells, each fold's on the other.

    A cell is in none of its rings, so its own noise is not in its guess.
    """
    deviation = math.sqrt(noise.variance)
    flat, folds = values.ravel(), folds_of(values.size)
    near, counts = around(values, PILOT, axes)
    found, spread = near.ravel(), deviation / np.sqrt(counts.ravel())
    for _ in range(ROUNDS):
        group = classes(found, 2.0 * float(np.median(spread)), FIT)
        found, spread = found.copy(), spread.copy()
        for mine in members(group):
            found[mine], spread[mine] = _fitted(flat[mine], noise, rings.means[mine], rings.counts[mine], folds[mine])
    return Guess(found, spread)


def _fitted(
    values: Floats, noise: NoiseLaw, means: Floats, counts: Floats, folds: Integers
) -> tuple[Floats, Floats]:
    """The ridge regression of the cells of a class on their rings, fitted on one fold and read on the other."""
    deviation = math.sqrt(noise.variance)
    low, high = np.percentile(values, CLIPPED)
    kept = np.clip(values, low - 3.0 * deviation, high + 3.0 * deviation)
    found, spread = np.empty(values.size), np.empty(values.size)
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
    return found, spread


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
