"""Empirical Bayes in context: what neighbors say of a cell, and the prior of how far cells are from that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpframe.denoise.mixture import FOLDS, Posterior, folds_of, posterior
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
    common = flat, noise, folds, first
    estimates = (estimated("coarse", *common, COARSE, nonnegative), estimated("fine", *common, FINE, nonnegative))
    shape = values.shape
    return [
        replace(estimate, values=estimate.values.reshape(shape), deviations=estimate.deviations.reshape(shape))
        for estimate in estimates
    ]


def in_context(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], *, nonnegative: bool = False) -> Context:
    """The better estimate of the two; of few cells, or in no order, empirical Bayes of all together.

    Parameters
    ----------
    values : array
        Noisy values of a line or a grid; on the noise's grid.
    noise : Mechanism
        The law of their noise.
    axes : tuple of int
        The axes along which neighbors may be alike.
    nonnegative : bool
        Whether the true totals are known not to be negative.

    Returns
    -------
    Context
        ``values``, ``deviations`` (of each total given the noisy values) and ``risk`` (the estimated summed squared
        error, which may fall below 0) with its standard ``error``; arrays in the shape of `values`.

    Notes
    -----
    Empirical Bayes with covariates (Ignatiadis and Wager 2019): what neighbors predict is the covariate, and no cell is
    in its own prediction (Batson and Royer 2019). Weights of rings of neighbors are learned by ridge regression in
    classes of like predictions, and priors (`empirical_bayes`) in such classes of the last prediction, of the values or
    of their distances from it. Each half of the cells is judged by what the other half taught.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> from dpframe.denoise.context import in_context
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> noisy = np.rint(50 + 30 * np.sin(np.arange(512) / 40)) + np.tile([3.0, -2.0, 0.0, -1.0], 128)
    >>> found = in_context(noisy, noise, (0,), nonnegative=True)
    >>> found.values.shape == found.deviations.shape == noisy.shape and bool(found.deviations.max() < 3.0)
    True
    """
    steps = contexts(values, noise, axes, nonnegative=nonnegative)
    if steps:
        coarse, fine = steps
        apart = float(np.square(fine.values - coarse.values).sum())
        return fine if fine.risk + math.sqrt(noise.variance * apart) < coarse.risk else coarse
    together, shape = None, values.shape
    if values.size and noise.variance > 0.0:
        together = posterior(values.ravel(), noise, folds_of(values.size), nonnegative=nonnegative)
    if together is None:
        return Context("all", values.copy(), np.zeros(shape), 0.0, 0.0)
    deviations = np.sqrt(together.variances).reshape(shape)
    return Context("all", together.values.reshape(shape), deviations, together.risk, together.error)


def guess(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], rings: Rings) -> Guess:
    """The weighted mean of the rings, with weights that are learned in classes of like cells, each fold's on the other.

    A cell is in none of its rings, so its own noise is not in its guess.
    """
    deviation = math.sqrt(noise.variance)
    flat, folds = values.ravel(), folds_of(values.size)
    near, counts = around(values, PILOT, axes)
    guesses, spread = near.ravel(), deviation / np.sqrt(counts.ravel())
    for _ in range(ROUNDS):
        group = classes(guesses, 2.0 * float(np.median(spread)), FIT)
        guesses, spread = guesses.copy(), spread.copy()
        for mine in members(group):
            guesses[mine], spread[mine] = _fitted(flat[mine], noise, rings.means[mine], rings.counts[mine], folds[mine])
    return Guess(guesses, spread)


def _fitted(values: Floats, noise: NoiseLaw, means: Floats, counts: Floats, folds: Integers) -> tuple[Floats, Floats]:
    """The ridge regression of the cells of a class on their rings, fitted on one fold and read on the other."""
    deviation = math.sqrt(noise.variance)
    low, high = np.percentile(values, CLIPPED)
    kept = np.clip(values, low - 3.0 * deviation, high + 3.0 * deviation)
    fitted, spread = np.empty(values.size), np.empty(values.size)
    for fold in range(FOLDS):
        in_fold, outside = folds == fold, folds != fold
        if not outside.any() or not in_fold.any():
            fitted[in_fold], spread[in_fold] = kept[in_fold].mean() if in_fold.any() else 0.0, deviation
            continue
        middle, level = means[outside].mean(axis=0), float(kept[outside].mean())
        centred = means[outside] - middle
        penalty = RIDGE * noise.variance * (1.0 / counts[outside]).mean(axis=0)
        squares = centred.T @ centred + np.diag(penalty)
        weights = np.linalg.lstsq(squares, centred.T @ (kept[outside] - level), rcond=None)[0]
        fitted[in_fold] = level + (means[in_fold] - middle) @ weights
        spread[in_fold] = deviation * np.sqrt((weights**2 / counts[in_fold]).sum(axis=1) + 1.0 / outside.sum())
    return fitted, spread


def estimated(
    name: str, flat: Floats, noise: NoiseLaw, folds: Integers, guessed: Guess, least: int, nonnegative: bool
) -> Context:
    """The estimates of all classes of like cells; their risks add up."""
    group = classes(guessed.values, float(np.median(guessed.deviations)), least)
    values, variances = np.empty(flat.size), np.empty(flat.size)
    risk, square = 0.0, 0.0
    for mine in members(group):
        best = _best_of_class(flat[mine], guessed.values[mine], noise, folds[mine], nonnegative)
        values[mine], variances[mine] = best.values, best.variances
        risk, square = risk + best.risk, square + best.error**2
    values = np.maximum(values, 0.0) if nonnegative else values
    return Context(name, values, np.sqrt(variances), risk, math.sqrt(square))


def _best_of_class(values: Floats, guessed: Floats, noise: NoiseLaw, folds: Integers, nonnegative: bool) -> Posterior:
    """The least cross-fitted risk of a class: values, empirical Bayes of them, or of their distances from the guess.

    Distances are taken only where that is better by a standard error.
    """
    deviation = math.sqrt(noise.variance)
    best = Posterior(values, np.full(values.size, noise.variance), values.size * noise.variance, 0.0)
    plain = posterior(values, noise, folds, nonnegative=nonnegative, below=best.risk)
    best = best if plain is None else plain
    if float(guessed.std()) > WORTH * deviation:
        middle = np.rint(guessed / noise.grid) * noise.grid
        apart = posterior(values - middle, noise, folds, nonnegative=False, below=best.risk)
        if apart is not None:
            apart = replace(apart, values=middle + apart.values)
            surely = 0.0 if plain is None else deviation * float(np.linalg.norm(apart.values - best.values))
            best = apart if apart.risk + surely < best.risk else best
    return best


def classes(guessed: Floats, unit: float, least: int) -> Integers:
    """The class of each cell, by its guess: equal steps of asinh(guess / unit), merged until each has enough cells."""
    steps = np.floor(np.arcsinh(guessed / unit)).astype(np.int64)
    steps -= steps.min()
    counts = np.bincount(steps)
    number, cells, names = 0, 0, np.empty(counts.size, dtype=np.int64)
    left = counts[::-1].cumsum()[::-1]  # of this step and all above
    for step, count in enumerate(counts.tolist()):
        if cells >= least and left[step] >= least:
            number, cells = number + 1, 0
        names[step] = number
        cells += count
    return np.asarray(names[steps])


def members(group: Integers) -> list[Integers]:
    """The places of the cells of each class."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group))[:-1])
