"""Empirical Bayes: the prior of the totals is learned from all cells, and each cell gets its posterior mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpframe.denoise.noise_law import Floats, Integers, NoiseLaw, shares

FINENESS = 8  # bins in a standard deviation of the noise, where the grid is finer than that
WIDEST = 768  # bins that are fitted; the values outside of them stay as they are
MARGIN = 8 * FINENESS  # bins of the table beyond the fitted ones
RAMP = 2 * FINENESS  # bins over which the shift fades where values lie outside
ROUNDS = 40  # of the accelerated EM
ENOUGH = 1e-7  # gain in the mean log-likelihood below which the EM stops
FOLDS = 2
LARGEST = 2.0**50  # bins farther from zero are left alone: floats there have too few digits
UNSEEN = 0.1  # cells in each standard deviation that the prior allows for beyond what it saw


def empirical_bayes(values: Floats, noise: NoiseLaw, *, nonnegative: bool = False) -> Floats:
    """Replace each value by its posterior mean, under the prior that makes all values together most likely.

    Parameters
    ----------
    values : array
        Noisy values, of any shape; their places do not matter.
    noise : Mechanism
        The law of their noise, of any shape p. On a coarse grid its exact probabilities are used.
    nonnegative : bool
        Whether the true totals are known not to be negative; the prior then is on non-negative totals only.

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    The nonparametric maximum-likelihood prior (Kiefer and Wolfowitz 1956) for the posterior mean of all cells (Jiang
    and Zhang, Annals of Statistics 2009): as the cells become many its error nears that of the best function of one
    value, whatever the truth. Values are put into bins of an eighth of a standard deviation (or of one grid step), the
    prior lives on some hundred points, and an EM that is accelerated (Varadhan and Roland 2008) fits it. Where values
    spread over more than 768 bins, the fit is where most of them are, and the others, which have few neighbors to
    learn from, stay as they are.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> noisy = np.array([0.0, 1.0, -1.0, 2.0, 0.0, -2.0, 40.0, 0.0, -1.0, 1.0])
    >>> dpf.denoise.empirical_bayes(noisy, noise, nonnegative=True).round()
    array([ 0.,  0.,  0.,  0.,  0.,  0., 40.,  0.,  0.,  0.])
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0 or not noise.variance > 0.0:
        return values.copy()
    bins = Bins.of(values, noise)
    denoised = bins.shifted(values, bins.shift(bins.counts.sum(axis=0), nonnegative))
    return (np.maximum(denoised, 0.0) if nonnegative else denoised) + 0.0  # no -0.0


def empirical_bayes_risk(values: Floats, noise: NoiseLaw, *, nonnegative: bool = False) -> tuple[float, float]:
    """A cross-fitted estimate of the summed squared error, and its standard error.

    The cells are split in two, by their places only. The prior fitted to one half gives a function of one value, which
    knows nothing of the noise of the other half: so the estimate of its risk there is unbiased (`Bins.risks`). A
    prior that is fitted to all cells is closer than those of the halves.
    """
    return cross_fitted(Bins.of(values, noise), nonnegative)


def empirical_bayes_deviations(values: Floats, noise: NoiseLaw, *, nonnegative: bool = False) -> Floats:
    """The standard deviation of the total of each cell given its noisy value, under the prior that is learned."""
    bins = Bins.of(values, noise)
    counts = bins.counts.sum(axis=0)
    if not counts.any():
        return np.full(values.shape, math.sqrt(noise.variance))
    variances = bins.read(bins.variance_under(*bins.prior(counts, nonnegative)), values, 1.0)
    return np.asarray(np.sqrt(variances * noise.variance).reshape(values.shape))


def cross_fitted(bins: Bins, nonnegative: bool) -> tuple[float, float]:
    """The estimate of `empirical_bayes_risk`, for values in bins."""
    total, square = 0.0, 0.0
    for fold in range(FOLDS):
        others = bins.counts.sum(axis=0) - bins.counts[fold]
        counts, size = bins.counts[fold], bins.sizes[fold]
        if not others.sum():
            return sum(bins.sizes) * bins.noise.variance, math.inf
        excess = bins.risks(bins.shift(others, nonnegative)) - 1.0
        total += size + float(counts @ excess)
        square += float(counts @ excess**2) - float(counts @ excess) ** 2 / max(size, 1)
    return total * bins.noise.variance, math.sqrt(max(square, 0.0)) * bins.noise.variance


@dataclass(frozen=True)
class Posterior:
    """Posterior means and variances of cells, the cross-fitted estimate of the summed squared error, its error."""

    values: Floats
    variances: Floats
    risk: float
    error: float


def posterior(
    values: Floats, noise: NoiseLaw, folds: Integers, *, nonnegative: bool, below: float = math.inf
) -> Posterior | None:
    """As `empirical_bayes`, with what is known of its errors; the fold of each value is told.

    None where the risk is not below a limit, which is known before the prior of all is fitted.
    """
    bins = Bins.of(values, noise, folds)
    risk, error = cross_fitted(bins, nonnegative)
    if not risk < below:
        return None
    counts = bins.counts.sum(axis=0)
    if not counts.any():  # values so large that floats have too few digits
        return Posterior(values, np.full(values.size, noise.variance), risk, error)
    prior, atoms = bins.prior(counts, nonnegative)
    estimates = bins.shifted(values, bins.shift_under(prior, atoms))
    estimates = np.maximum(estimates, 0.0) if nonnegative else estimates
    variances = bins.read(bins.variance_under(prior, atoms), values, 1.0) * noise.variance
    return Posterior(estimates, variances, risk, error)


@dataclass(frozen=True)
class Bins:
    """The values as counts in bins, by fold. Bin `first` + i holds the grid points nearest to its multiple of width."""

    noise: NoiseLaw
    width: int  # of a bin, in grid steps; odd
    first: int
    fitted: slice  # the bins that hold values; the others are the margin
    counts: Floats  # fold x bin
    sizes: tuple[int, ...]  # cells of each fold, wherever they are
    cut: tuple[bool, bool]  # whether there are values below and above

    @classmethod
    def of(cls, values: Floats, noise: NoiseLaw, mixed: Integers | None = None) -> Self:
        """The bins of these values: all where they fit, else those of the window that holds most values.

        `mixed` is the fold of each value, by default by its place.
        """
        width = 2 * int(math.sqrt(noise.variance) / noise.grid / FINENESS / 2.0) + 1
        places = np.rint(values.ravel() / (noise.grid * width))
        low, high = _window(places[np.abs(places) < LARGEST])
        first = low - MARGIN
        size = int(high - low) + 1 + 2 * MARGIN
        counts = np.zeros((FOLDS, size))
        mixed = folds_of(places.size) if mixed is None else mixed
        folds = [places[mixed == fold] for fold in range(FOLDS)]
        for fold, mine in enumerate(folds):
            inside = mine[(mine >= low) & (mine <= high)] - first
            counts[fold] = np.bincount(inside.astype(np.int64), minlength=size)
        cut = bool(places.min() < low), bool(places.max() > high)
        sizes = tuple(mine.size for mine in folds)
        return cls(noise, width, int(first), slice(MARGIN, size - MARGIN), counts, sizes, cut)

    @cached_property
    def law(self) -> Floats:
        """The noise in bins, as far as the table is long."""
        return shares(self.noise, self.width, self.counts.shape[1])

    @cached_property
    def places(self) -> Floats:
        """The middle of each bin, in bins."""
        return np.arange(self.counts.shape[1], dtype=np.float64) + self.first

    def atoms(self, nonnegative: bool) -> Integers:
        """The points of the prior's mass: bins that hold values, zero among them, a quarter of a deviation apart."""
        inside = np.arange(self.counts.shape[1])[self.fitted]
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        apart = max(1, int(deviation / 4.0))
        chosen = inside[(inside + self.first) % apart == 0] if inside.size >= apart else inside
        if nonnegative:
            chosen = chosen[chosen + self.first >= 0]
            chosen = chosen if chosen.size else np.array([-self.first])
        return chosen

    def unseen(self, atoms: Integers) -> float:
        """The mass of each atom beyond the fit, in cells: a total that is alone must not be pulled to far ones."""
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        apart = (float(atoms[-1] - atoms[0]) / max(atoms.size - 1, 1)) or deviation
        return UNSEEN * min(1.0, apart / deviation)

    def shift(self, counts: Floats, nonnegative: bool) -> Floats:
        """The correction of the posterior mean in each bin, in bins, under the prior fitted to these counts."""
        if not counts.any():
            return np.zeros(counts.size)
        return self.shift_under(*self.prior(counts, nonnegative))

    def prior(self, counts: Floats, nonnegative: bool) -> tuple[Floats, Integers]:
        """The weights and the places of the atoms, fitted to these counts, which are not all 0."""
        atoms, seen = self.atoms(nonnegative), np.flatnonzero(counts)
        prior = fitted_prior(self.around(seen, atoms), counts[seen])
        return prior + self.unseen(atoms) / counts.sum(), atoms

    def shift_under(self, prior: Floats, atoms: Integers) -> Floats:
        """The correction of the posterior mean in each bin, in bins."""
        density = self.mixed(prior, atoms)
        mean = self.mixed(prior * (atoms + float(self.first)), atoms)
        known = density > 0.0
        return self.faded(np.where(known, self.places - mean / np.where(known, density, 1.0), 0.0))

    def variance_under(self, prior: Floats, atoms: Integers) -> Floats:
        """The variance of the total given its noisy value, in each bin, in variances of the noise.

        It is at least that of the atoms' own spacing; where nothing is fitted it is that of the noise.
        """
        density = self.mixed(prior, atoms)
        known = np.where(density > 0.0, density, 1.0)
        mean = self.mixed(prior * atoms, atoms) / known
        square = self.mixed(prior * atoms.astype(np.float64) ** 2, atoms) / known
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        variance = np.where(density > 0.0, np.maximum(square - mean**2, 0.0) / deviation**2, 1.0)
        return 1.0 - self.faded(1.0 - variance)

    def faded(self, taken: Floats) -> Floats:
        """The correction, faded to 0 at those ends of the fitted bins beyond which values lie."""
        ramp = np.clip((np.arange(taken.size) - MARGIN) / RAMP, 0.0, 1.0)
        taken = taken * ramp if self.cut[0] else taken
        return np.asarray(taken * ramp[::-1] if self.cut[1] else taken)

    def around(self, bins: Integers, atoms: Integers) -> Floats:
        """The law in some bins (rows) around each atom (columns)."""
        size = self.counts.shape[1]
        return np.asarray(self.law[np.clip(bins[:, None] - atoms, -size, size) + size])

    def mixed(self, weights: Floats, atoms: Integers) -> Floats:
        """The law around each atom, weighed, in every bin."""
        size, reach = self.counts.shape[1], int(np.flatnonzero(self.law).max(initial=0)) - self.counts.shape[1]
        if atoms[-1] >= size:  # zero alone, where all values are far below
            return np.asarray(self.around(np.arange(size), atoms) @ weights)
        spread = np.zeros(size)
        spread[atoms] = weights
        near = self.law[size - reach : size + reach + 1]  # where it is above 0
        return np.convolve(spread, near)[reach : reach + size]

    def shifted(self, values: Floats, taken: Floats) -> Floats:
        """The values less the shift at their places, between bins in proportion."""
        unit = self.noise.grid * self.width
        outside = dict.fromkeys(("left", "right"), 0.0)
        shifts = np.interp(values.ravel() / unit, self.places, taken, **outside)
        return np.asarray(values - shifts.reshape(values.shape) * unit)

    def read(self, table: Floats, values: Floats, outside: float) -> Floats:
        """A table of bins at the places of these values, between bins in proportion."""
        unit = self.noise.grid * self.width
        return np.asarray(np.interp(values.ravel() / unit, self.places, table, left=outside, right=outside))

    def risks(self, taken: Floats) -> Floats:
        """For each bin the unbiased estimate of the squared error of a shift, in variances of the noise.

        1 + h^2 / v - 2 slope, where h is taken off and the slope is that of E[h(y + z')] for (discrete) Laplace noise,
        z' a second draw of the same law, and that of h for a (rounded) Gaussian: see `auto`. For other shapes the
        latter is an approximation.
        """
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        moved = taken
        if self.noise.p == 1.0:
            size = taken.size
            moved = np.convolve(np.pad(taken, size, mode="edge"), self.law, mode="same")[size:-size]
        return 1.0 + (taken / deviation) ** 2 - 2.0 * np.gradient(moved)


def folds_of(size: int) -> Integers:
    """The fold of each cell, by its place alone; mixed, since every other bin may hold another kind of totals."""
    return (np.arange(size, dtype=np.int64) * 2_654_435_761 >> 16) % FOLDS


def _window(places: Floats) -> tuple[float, float]:
    """The first and the last bin to be fitted."""
    if not places.size:
        return 0.0, 0.0
    low, high = float(places.min()), float(places.max())
    if high - low < WIDEST:
        return low, high
    distinct, counts = np.unique(places, return_counts=True)
    through = np.concatenate([[0], np.cumsum(counts)])
    ends = np.searchsorted(distinct, distinct + WIDEST - 1, side="right")
    best = float(distinct[int(np.argmax(through[ends] - through[:-1]))])
    first = max(low, best - 2.0 * RAMP)  # the shift fades at the ends: not where most values are
    return first, min(high, first + WIDEST - 1.0)


def fitted_prior(kernel: Floats, counts: Floats) -> Floats:
    """The weights of the atoms (columns) that make the counts of the rows most likely; from equal ones, by EM."""
    counts = counts / counts.sum()
    prior = np.full(kernel.shape[1], 1.0 / kernel.shape[1])
    before = -math.inf
    for _ in range(ROUNDS):
        once, likelihood = _step(kernel, counts, prior)
        twice, _ = _step(kernel, counts, once)
        if likelihood - before < ENOUGH:
            return twice
        before = likelihood
        leap = _leap(prior, once, twice)
        leapt, reached = _step(kernel, counts, leap)
        prior = leapt if reached >= likelihood else twice
    return prior


def _step(kernel: Floats, counts: Floats, prior: Floats) -> tuple[Floats, float]:
    """One step of the EM, and the mean log-likelihood before it."""
    density = np.maximum(kernel @ prior, 1e-300)
    better = prior * ((counts / density) @ kernel)
    total = float(better.sum())  # 0 where no atom is within reach
    return better / total if total > 0.0 else prior, float(counts @ np.log(density))


def _leap(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Two steps of the EM, extrapolated (the third scheme of Varadhan and Roland 2008)."""
    change, bend = once - start, (twice - once) - (once - start)
    bends = float(np.linalg.norm(bend))
    if bends == 0.0:
        return twice
    length = max(1.0, float(np.linalg.norm(change)) / bends)
    leap = np.maximum(start + 2.0 * length * change + length**2 * bend, twice * 1e-3)
    return np.asarray(leap / leap.sum())
