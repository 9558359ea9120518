"""Empirical Bayes: the prior of the totals is learned from all cells, and each cell gets its posterior mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpframe.denoise.estimators import Floats, Integers, NoiseLaw, shares

FINENESS = 8  # bins for each standard deviation of the noise, if its grid is finer
WIDEST = 768  # bins that are fitted at most; values outside of them stay unchanged
MARGIN = 8 * FINENESS  # bins of the table on each side of the fitted ones
RAMP = 2 * FINENESS  # bins over which the shift fades to 0 if values lie outside
FOLDS = 2
FAINT = 1e-100  # a mixture ignores smaller probabilities of the noise
LOST = 1e-30  # `Bins.risks` ignores smaller probabilities of the noise, which rounding hides
FLAT = 1e-12  # of the law's value at 0: a smaller second difference is rounding
LARGEST = 2.0**50  # bins from zero; values farther away stay unchanged, since floats there have too few digits
MANY = 2**12  # values from which `Tally` tries to count equal ones together
UNSEEN = 0.1  # mass of the prior beyond the fit, in cells for each standard deviation

ROUNDS = 40  # rounds at most, each of three EM steps
NATS = 0.25  # nats in the log-likelihood of all cells: a smaller likelihood ratio is not informative
LITTLE = 0.02  # nats in the log-likelihood of all cells: the fit stops after a round that gains less
ENOUGH = 1e-7  # nats in the mean log-likelihood: a smaller gain does not count, whatever the number of cells
OUT_OF_REACH = 1e-100  # a row of a smaller density is ignored, since all atoms are too far away
LEFT = 1e-3  # share of its weight that an atom keeps at least in an extrapolation
AT_ONCE = 9_000  # entries of a matrix in one product: for more, libraries start threads that busy-wait


def empirical_bayes(values: Floats, noise: NoiseLaw, *, nonnegative: bool = False) -> Floats:
    """Replace each value by its posterior mean, under the most likely prior.

    The prior is the one that makes all values together most likely.

    Parameters
    ----------
    values : array
        Noisy values, of any shape; their positions do not matter.
    noise : Mechanism
        The law of their noise, of any shape p. On a coarse grid, its exact probabilities are used.
    nonnegative : bool
        Whether the true totals are known not to be negative. The prior is then on non-negative totals only.

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    The nonparametric maximum-likelihood prior (Kiefer and Wolfowitz 1956) for the posterior mean of all cells (Jiang
    and Zhang, Annals of Statistics 2009). As the number of cells grows, its error approaches that of the best function
    of one value, whatever the truth. Values are put into bins of an eighth of a standard deviation (or of one grid
    step), and the prior has some hundred points. An accelerated EM (Varadhan and Roland 2008) fits it, up to a
    likelihood ratio that is not informative. If values spread over more than 768 bins, the fit is where most of them
    are. The others, which have few neighbors to learn from, stay as they are.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> noisy = np.array([0.0, 1.0, -1.0, 2.0, 0.0, -2.0, 40.0, 0.0, -1.0, 1.0])
    >>> dpf.denoise.empirical_bayes(noisy, noise, nonnegative=True).round(1)
    array([ 0.1,  0.4,  0.1,  0.6,  0.1,  0.1, 39.9,  0.1,  0.1,  0.4])
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0 or not noise.variance > 0.0:
        return values.copy()
    return Mixture.of(values, noise, nonnegative=nonnegative).values + 0.0  # no -0.0


def cross_fitted(bins: Bins, nonnegative: bool) -> tuple[float, float]:
    """Return a cross-fitted estimate of the summed squared error, and its standard error.

    The cells are split into two halves by position only. The prior fitted to one half gives a function of one value,
    which does not depend on the noise of the other half. So the estimate of its risk there is unbiased (`Bins.risks`).
    A prior that is fitted to all cells is closer to the truth than those of the halves.
    """
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
class Mixture:
    """Empirical Bayes of some cells: its risk, its values and their variances.

    Each is computed on first use.
    """

    given: Floats
    tally: Tally
    bins: Bins
    nonnegative: bool

    @classmethod
    def of(cls, values: Floats, noise: NoiseLaw, folds: Integers | None = None, *, nonnegative: bool = False) -> Self:
        """Count values of any shape.

        By default, the fold of each value depends on its position.
        """
        tally = Tally.of(values, noise, folds_of(values.size) if folds is None else folds)
        return cls(values, tally, Bins.tallied(tally, noise), nonnegative)

    @cached_property
    def risk(self) -> tuple[float, float]:
        """The cross-fitted estimate of the summed squared error, and its standard error."""
        return cross_fitted(self.bins, self.nonnegative)

    @cached_property
    def prior(self) -> tuple[Floats, Integers] | None:
        """The prior that is learned from all cells: the weights and the places of its atoms.

        It is None if all values are so large that floats have too few digits.
        """
        counts = self.bins.counts.sum(axis=0)
        return self.bins.prior(counts, self.nonnegative) if counts.any() else None

    @cached_property
    def values(self) -> Floats:
        """The posterior means."""
        bins = self.bins
        taken = np.zeros(bins.counts.shape[1]) if self.prior is None else bins.shift_under(*self.prior)
        estimates = bins.shifted(self.tally.values, taken)
        return self._each(np.maximum(estimates, 0.0) if self.nonnegative else estimates)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each cell's total given its noisy value."""
        noise = self.bins.noise
        if self.prior is None:
            return np.full(self.given.shape, noise.variance)
        table = self.bins.variance_under(*self.prior)
        return self._each(self.bins.read(table, self.tally.values, 1.0) * noise.variance)

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each cell's total given its noisy value."""
        return np.asarray(np.sqrt(self.variances))

    def _each(self, table: Floats) -> Floats:
        """Return for each cell the entry of a table that has one entry for each value of the tally."""
        each = table if self.tally.codes is None else table[self.tally.codes]
        return np.asarray(each.reshape(self.given.shape))


@dataclass(frozen=True)
class Tally:
    """Distinct values with their counts in each fold, and the index of each cell's value.

    Without such `codes`, each cell has an entry of its own.
    """

    values: Floats
    counts: Floats  # fold x value
    codes: Integers | None

    @classmethod
    def of(cls, values: Floats, noise: NoiseLaw, folds: Integers) -> Self:
        """Count equal values if many values lie on a small part of the noise's grid; otherwise, list every cell."""
        flat = values.ravel()
        if flat.size >= MANY:
            steps = np.rint(flat if noise.grid == 1.0 else flat / noise.grid)
            least, most = float(steps.min()), float(steps.max())
            back = steps if noise.grid == 1.0 else steps * noise.grid
            if most - least < flat.size / 2.0 and np.array_equal(back, flat):
                steps -= least
                codes, size = steps.astype(np.int64), int(most - least) + 1
                counts = np.bincount(codes * FOLDS + folds, minlength=FOLDS * size).reshape(size, FOLDS)
                return cls(np.asarray((np.arange(size) + least) * noise.grid), counts.T.astype(np.float64), codes)
        return cls(flat, np.stack([folds == fold for fold in range(FOLDS)]).astype(np.float64), None)


@dataclass(frozen=True)
class Bins:
    """The counts of values in bins, by fold.

    Bin i holds the grid points nearest to `first` + i times the width.
    """

    noise: NoiseLaw
    width: int  # of a bin, in grid steps; odd
    first: int
    fitted: slice  # the bins that are fitted; the others are the margins
    counts: Floats  # fold x bin
    sizes: tuple[int, ...]  # the number of cells of each fold, in bins or not
    cut: tuple[bool, bool]  # whether values lie below the fitted bins, and above them

    @classmethod
    def of(cls, values: Floats, noise: NoiseLaw, mixed: Integers | None = None) -> Self:
        """Count these values in bins: all of them, or those of a window if they do not fit.

        The window holds the most values. `mixed` is the fold of each value, by default from its position.
        """
        return cls.tallied(Tally.of(values, noise, folds_of(values.size) if mixed is None else mixed), noise)

    @classmethod
    def tallied(cls, tally: Tally, noise: NoiseLaw) -> Self:
        """Count the values of a tally in bins."""
        width = 2 * int(math.sqrt(noise.variance) / noise.grid / FINENESS / 2.0) + 1
        places = np.rint(tally.values / (noise.grid * width))
        near = np.abs(places) < LARGEST
        low, high = _window(places[near], tally.counts[:, near].sum(axis=0))
        first = low - MARGIN
        size = int(high - low) + 1 + 2 * MARGIN
        inside = (places >= low) & (places <= high)
        bins = (places[inside] - first).astype(np.int64)
        counts = np.stack([np.bincount(bins, fold, size).astype(np.float64) for fold in tally.counts[:, inside]])
        cut = bool(places.min() < low), bool(places.max() > high)
        sizes = tuple(int(fold) for fold in tally.counts.sum(axis=1))
        return cls(noise, width, int(first), slice(MARGIN, size - MARGIN), counts, sizes, cut)

    @cached_property
    def law(self) -> Floats:
        """The probability of the noise in each bin, up to the size of the table on both sides of 0."""
        return shares(self.noise, self.width, self.counts.shape[1])

    @cached_property
    def places(self) -> Floats:
        """The middle of each bin, in bin widths."""
        return np.arange(self.counts.shape[1], dtype=np.float64) + self.first

    def atoms(self, nonnegative: bool) -> Integers:
        """Return the points of the prior's mass: fitted bins at multiples of a quarter of a deviation.

        Zero is the only point if totals are not negative and no such bin is at zero or above.
        """
        inside = np.arange(self.counts.shape[1])[self.fitted]
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        apart = max(1, int(deviation / 4.0))
        chosen = inside[(inside + self.first) % apart == 0] if inside.size >= apart else inside
        if nonnegative:
            chosen = chosen[chosen + self.first >= 0]
            chosen = chosen if chosen.size else np.array([-self.first])
        return chosen

    def unseen(self, atoms: Integers) -> float:
        """Return the mass that each atom has in addition to the fit, in cells.

        It keeps the estimate of an isolated total from moving toward distant ones.
        """
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        apart = (float(atoms[-1] - atoms[0]) / max(atoms.size - 1, 1)) or deviation
        return UNSEEN * min(1.0, apart / deviation)

    def shift(self, counts: Floats, nonnegative: bool) -> Floats:
        """Return the correction of the posterior mean in each bin, in bin widths.

        The prior is fitted to these counts.
        """
        if not counts.any():
            return np.zeros(counts.size)
        return self.shift_under(*self.prior(counts, nonnegative))

    def prior(self, counts: Floats, nonnegative: bool) -> tuple[Floats, Integers]:
        """Return the weights and the places of the atoms, fitted to these counts, which are not all 0."""
        atoms, seen = self.atoms(nonnegative), np.flatnonzero(counts)
        prior, fitted = np.full(atoms.size, self.unseen(atoms) / counts.sum()), self.worth_a_weight(seen, atoms)
        prior[fitted] += most_likely(self.around(seen, atoms[fitted]), counts[seen])
        return prior, atoms

    def worth_a_weight(self, seen: Integers, atoms: Integers) -> Integers:
        """Return the indices of the atoms that may get a weight if values are seen in these bins only.

        Away from its middle, the law is convex. If all seen values are at least that far from an atom, half its weight
        on each of its neighbors makes all of them more likely. So the atoms in a gap get no weight, and those at its
        ends get more.
        """
        if atoms.size < 3:
            return np.arange(atoms.size)
        apart = int(atoms[1] - atoms[0])
        upper = self.law[self.counts.shape[1] :]  # from the middle on
        places = np.arange(upper.size - apart)
        bends = upper[np.abs(places - apart)] + upper[apart:] - 2.0 * upper[:-apart]
        concave = int(np.flatnonzero(bends < -FLAT * upper[0]).max(initial=-1)) + 1  # convex from this distance on
        after = np.searchsorted(seen, atoms)
        below, above = seen[np.maximum(after - 1, 0)], seen[np.minimum(after, seen.size - 1)]
        distance = np.minimum(np.abs(atoms - below), np.abs(above - atoms))
        distance[[0, -1]] = 0  # the outermost atoms lack a neighbor, so they may always get a weight
        return np.flatnonzero(distance < concave)

    def shift_under(self, prior: Floats, atoms: Integers) -> Floats:
        """Return the correction of the posterior mean in each bin, in bin widths, under this prior."""
        density = self.mixed(prior, atoms)
        mean = self.mixed(prior * (atoms + float(self.first)), atoms)
        known = density > 0.0
        return self.faded(np.where(known, self.places - mean / np.where(known, density, 1.0), 0.0))

    def variance_under(self, prior: Floats, atoms: Integers) -> Floats:
        """Return the variance of the total given its noisy value, in each bin, under this prior.

        It is in variances of the noise. It is 1 where the mixture has no density, and fades to 1 at the ends of the
        fitted bins if values lie beyond.
        """
        density = self.mixed(prior, atoms)
        known = np.where(density > 0.0, density, 1.0)
        mean = self.mixed(prior * atoms, atoms) / known
        square = self.mixed(prior * atoms.astype(np.float64) ** 2, atoms) / known
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        variance = np.where(density > 0.0, np.maximum(square - mean**2, 0.0) / deviation**2, 1.0)
        return 1.0 - self.faded(1.0 - variance)

    def faded(self, taken: Floats) -> Floats:
        """Fade a correction to 0 at the ends of the fitted bins if values lie beyond."""
        ramp = np.clip((np.arange(taken.size) - MARGIN) / RAMP, 0.0, 1.0)
        taken = taken * ramp if self.cut[0] else taken
        return np.asarray(taken * ramp[::-1] if self.cut[1] else taken)

    def around(self, bins: Integers, atoms: Integers) -> Floats:
        """Return the law in some bins (rows) around each atom (columns)."""
        size = self.counts.shape[1]
        apart = int(atoms[1] - atoms[0]) if atoms.size > 1 else 1
        if atoms[-1] >= size or atoms[-1] - atoms[0] != apart * (atoms.size - 1):
            return np.asarray(self.law[np.clip(bins[:, None] - atoms, -size, size) + size])
        # the law is even, so each row is a slice of it, from the first atom to the last, around the bin
        rows = np.lib.stride_tricks.sliding_window_view(self.law, int(atoms[-1] - atoms[0]) + 1)
        return np.ascontiguousarray(rows[size + int(atoms[0]) - bins][:, ::apart])

    def mixed(self, weights: Floats, atoms: Integers) -> Floats:
        """Return the weighted law around the atoms, in every bin."""
        size, reach = self.counts.shape[1], self._reach(FAINT)
        if atoms[-1] >= size:  # zero is the only atom, and all values are far below it
            return np.asarray(self.around(np.arange(size), atoms) @ weights)
        spread = np.zeros(size)
        spread[atoms] = weights
        near = self.law[size - reach : size + reach + 1]
        return np.convolve(spread, near)[reach : reach + size]

    def _reach(self, least: float) -> int:
        """Return the largest distance at which the law is above `least`, in bins."""
        size: int = self.counts.shape[1]
        return int(np.flatnonzero(self.law > least).max(initial=size)) - size

    def shifted(self, values: Floats, taken: Floats) -> Floats:
        """Return the values less the shift at their positions, interpolated between bins."""
        return np.asarray(values - self.read(taken, values, 0.0) * (self.noise.grid * self.width))

    def read(self, table: Floats, values: Floats, outside: float) -> Floats:
        """Interpolate a table of bins at the positions of these values."""
        unit = self.noise.grid * self.width
        return np.asarray(np.interp(values / unit, self.places, table, left=outside, right=outside))

    def risks(self, taken: Floats) -> Floats:
        """Return the unbiased estimate of the squared error of a shift, for each bin.

        It is in variances of the noise: 1 + h^2 / v - 2 slope, where h is subtracted. For (discrete) Laplace noise, the
        slope is that of E[h(y + z')], with z' a second draw of the same law. For a (rounded) Gaussian, it is that of h:
        see `auto`. For other shapes, the latter is an approximation.
        """
        deviation = math.sqrt(self.noise.variance) / self.noise.grid / self.width
        moved = taken
        if self.noise.p == 1.0:
            size, reach = taken.size, self._reach(LOST)
            near = self.law[size - reach : size + reach + 1]
            moved = np.convolve(np.pad(taken, reach, mode="edge"), near, mode="valid")
        return 1.0 + (taken / deviation) ** 2 - 2.0 * np.gradient(moved)


def folds_of(size: int) -> Integers:
    """Return the fold of each cell, which depends on its position only.

    Positions are mixed, since every second cell may hold totals of another kind.
    """
    return mixed_places(size) % FOLDS


def mixed_places(size: int) -> Integers:
    """Return a number for each cell that depends on its position only and follows no visible pattern."""
    mixed = np.arange(size, dtype=np.int64)
    mixed *= 2_654_435_761
    mixed >>= 16
    return mixed


def _window(places: Floats, counts: Floats) -> tuple[float, float]:
    """Return the first and the last bin to fit."""
    if not places.size:
        return 0.0, 0.0
    low, high = float(places.min()), float(places.max())
    if high - low < WIDEST:
        return low, high
    distinct, group = np.unique(places, return_inverse=True)
    through = np.concatenate([[0], np.cumsum(np.bincount(group.ravel(), counts))])
    ends = np.searchsorted(distinct, distinct + WIDEST - 1, side="right")
    best = float(distinct[int(np.argmax(through[ends] - through[:-1]))])
    first = max(low, best - 2.0 * RAMP)  # the shift fades at the ends, so most values lie away from them
    return first, min(high, first + WIDEST - 1.0)


def most_likely(kernel: Floats, counts: Floats) -> Floats:
    """Return the weights of the atoms (columns) that make the counts of the rows most likely.

    The method is an accelerated EM from equal weights. Each round takes two steps, extrapolates them (the third scheme
    of Varadhan and Roland 2008), and takes a step from there if that gained. A step multiplies the weight of atom j by
    D_j, the mean of kernel_ij / density_i over the cells. The log-likelihood is concave, so log(max D) bounds the gain
    of any weights in its mean (Lindsay 1983). The fit stops if that bound is below a quarter of a nat for all cells
    together, or if a round gains less than a fiftieth. Such likelihood ratios are not informative: weights that are
    fitted further follow the noise. (With ten times these limits, priors of one point are still too wide.)
    """
    prior = np.full(kernel.shape[1], 1.0 / kernel.shape[1])
    near = kernel @ prior > OUT_OF_REACH
    if not near.all():
        kernel, counts = kernel[near], counts[near]
    size = float(counts.sum())
    if not size > 0.0:
        return prior
    seen, before = RowBlocks.of(kernel, counts / size), -math.inf
    near_enough, little = max(ENOUGH, NATS / size), max(ENOUGH, LITTLE / size)
    for _ in range(ROUNDS):
        density = seen.density(prior)
        likelihood, factors = seen.likelihood(density), seen.factors(density)
        once = prior * factors
        twice = once * seen.factors(seen.density(once))
        if likelihood - before < little or math.log(factors.max()) < near_enough:
            return twice
        before = likelihood
        start = _leap(prior, once, twice)
        density = seen.density(start)
        prior = start * seen.factors(density) if seen.likelihood(density) >= likelihood else twice
    return prior


@dataclass(frozen=True)
class RowBlocks:
    """Rows in blocks: their likelihood under each atom, and their share of all cells."""

    kernel: Floats  # block x row x atom
    shares: Floats  # block x row

    @classmethod
    def of(cls, kernel: Floats, shares: Floats) -> Self:
        """Make the blocks; fill the last one with rows of share 0."""
        number, atoms = kernel.shape
        blocks = -(-number // max(1, AT_ONCE // atoms))
        rows = -(-number // blocks)
        filled, share = np.ones((blocks * rows, atoms)), np.zeros(blocks * rows)
        filled[:number], share[:number] = kernel, shares
        return cls(filled.reshape(blocks, rows, atoms), share.reshape(blocks, rows))

    def density(self, prior: Floats) -> Floats:
        """Return the probability of each row."""
        return np.asarray(self.kernel @ prior)

    def likelihood(self, density: Floats) -> float:
        """Return the mean log-likelihood."""
        return float(self.shares.ravel() @ np.log(density).ravel())

    def factors(self, density: Floats) -> Floats:
        """Return the factors by which an EM step multiplies the weights, which then still add up to 1."""
        shares = self.shares / density
        if len(shares) == 1:
            return np.asarray(shares[0] @ self.kernel[0])
        return np.asarray((shares[:, None] @ self.kernel).sum(axis=(0, 1)))


def _leap(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Extrapolate two steps of the EM."""
    change = once - start
    bend = twice - once
    bend -= change
    bends = float(bend @ bend)
    if bends == 0.0:
        return twice
    length = max(1.0, math.sqrt(float(change @ change) / bends))
    change *= 2.0 * length
    bend *= length**2
    change += start
    change += bend
    np.maximum(change, twice * LEFT, out=change)
    change /= change.sum()
    return change
