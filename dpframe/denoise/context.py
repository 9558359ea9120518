"""Empirical Bayes in context: cells are predicted from their neighbors; priors are learned from similar predictions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpframe.denoise.bayes import FOLDS, Mixture, folds_of, mixed_places
from dpframe.denoise.estimators import Floats, Integers, NoiseLaw

FEWEST = 64  # cells; with fewer, neighbors are not used
PILOT = 4  # radius of the window whose mean is the first prediction
ROUNDS = 2  # fits of the weights, each in classes of the previous prediction
RIDGE = 30.0  # ridge penalty of a ring's weight, in noise variances of the ring's mean
FIT, FINE, COARSE = 400, 200, 1_000  # least cells of a class: in a fit of weights, of a fine class, of a coarse class
CLIPPED = (1.0, 99.0)  # percentiles; a fit clips values at three deviations outside them
WORTH = 0.1  # least spread of predictions, in deviations of the noise, for which distances from them are tried
FEW_BOUNDS = 64  # bounds up to which comparing with each one is faster than a binary search
MANY = 2**17  # cells above which the weights of rings are learned from a part of the cells
SOME = 2**13  # about the least number of cells of a class in this part; a smaller class is included whole

ON_A_LINE = (1, 2, 4, 8, 16, 32, 64, 128)
ON_A_GRID = (1, 2, 4, 8, 16)
STRIP = 2**15  # cells that are processed together, so that they fit the processor's cache


@dataclass(frozen=True)
class Guess:
    """The prediction of each cell from its neighbors.

    `deviation` is the median of the standard deviations of the noise in the predictions.
    """

    values: Floats
    deviation: float


@dataclass(frozen=True)
class Context:
    """Denoised values, the standard deviation of each, and their estimated risk with its standard error.

    The risk is the summed squared error. `tell` computes the standard deviations.
    """

    name: str
    values: Floats
    risk: float
    error: float
    tell: Callable[[], Floats] = field(repr=False)

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviation of each cell's total given the noisy values, computed on first use."""
        return self.tell()


def contexts(
    values: Floats,
    noise: NoiseLaw,
    axes: tuple[int, ...],
    *,
    nonnegative: bool = False,
    together: Mixture | None = None,
    needed: float = math.inf,
) -> list[Context]:
    """Return the estimates of a line or a grid in coarse classes and, if they may be needed, in fine ones.

    `axes` are those along which neighbors may be similar. The list is empty for fewer than 64 cells, or if all axes are
    shorter than 8. `together` is empirical Bayes of all cells, which a class of all cells uses again. Fine classes are
    tried only if the estimated summed squared error in coarse classes is below `needed`.
    """
    if values.size < FEWEST or not axes or max(values.shape[axis] for axis in axes) < 2 * PILOT:
        return []
    classed = Classed.of(values, noise, guess(values, noise, axes), nonnegative, together)
    coarse = classed.estimated("coarse", COARSE)
    return [coarse, classed.estimated("fine", FINE)] if coarse.risk < needed else [coarse]


def in_context(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], *, nonnegative: bool = False) -> Context:
    """Return the better of the coarse and the fine estimate.

    For few cells, or without an order, it is empirical Bayes of all cells together.

    Parameters
    ----------
    values : array
        Noisy values of a line or a grid, on the noise's grid.
    noise : Mechanism
        The law of their noise.
    axes : tuple of int
        The axes along which neighbors may be similar.
    nonnegative : bool
        Whether the true totals are known not to be negative.

    Returns
    -------
    Context
        ``values``, ``deviations`` (of each total given the noisy values) and ``risk`` (the estimated summed squared
        error, which may fall below 0) with its standard ``error``; arrays in the shape of `values`.

    Notes
    -----
    This is empirical Bayes with covariates (Ignatiadis and Wager 2019). The covariate of a cell is its prediction from
    neighbors, without the cell itself (Batson and Royer 2019). Ridge regression learns the weights of rings of
    neighbors in classes of similar predictions. In classes of the last prediction, priors (`empirical_bayes`) are
    learned for the values or for their distances from it. Each half is evaluated with what the other half gave.

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
    if not values.size or not noise.variance > 0.0:
        return Context("all", values.copy(), 0.0, 0.0, partial(np.zeros, values.shape))
    together = Mixture.of(values, noise, nonnegative=nonnegative)
    return Context("all", together.values, *together.risk, lambda: together.deviations)


def guess(values: Floats, noise: NoiseLaw, axes: tuple[int, ...]) -> Guess:
    """Predict each cell from the means of its rings, with weights learned in classes of similar cells.

    The weights of each fold are learned from the other fold. No ring of a cell contains the cell, so its own noise is
    not in its prediction.
    """
    radii = radii_of(values.shape, axes)
    windows, flat, mixed = Windows.of(values, axes, max(radii)), values.ravel(), mixed_places(values.size)
    folds, width = mixed % FOLDS, values.size // len(values)
    pilot, counts = np.empty(values.size), np.empty(values.size)
    for first, last in windows.strips():
        piece = slice(first * width, last * width)
        means, cells = _means_beside(*windows.strip(PILOT, first, last), values[first:last])
        pilot[piece], counts[piece] = means.ravel(), cells.ravel()
    if values.size <= MANY:
        rings = rings_in(windows, radii, 0, len(values))
        _, guesses, deviation = _learned(flat, noise, pilot, counts, rings, folds)
        return Guess(guesses, deviation)
    some = _some(pilot, counts, noise, mixed)
    rings = rings_at(windows, radii, some)
    lessons, _, deviation = _learned(flat[some], noise, pilot[some], counts[some], rings, folds[some])
    for first, last in windows.strips():
        piece, rings = slice(first * width, last * width), rings_in(windows, radii, first, last)
        for lesson in lessons:
            pilot[piece] = lesson.read(pilot[piece], rings.means, folds[piece])
    return Guess(pilot, deviation)


def _some(pilot: Floats, counts: Floats, noise: NoiseLaw, mixed: Integers) -> Integers:
    """Choose cells of a large table by their mixed positions: all cells of small classes, and a share of the others."""
    bounds = bounds_of(pilot, 2.0 * math.sqrt(noise.variance / float(np.median(counts))), FIT)
    group = class_of(pilot, bounds)
    sizes = np.bincount(group, minlength=bounds.size + 1)
    every = 2 ** np.floor(np.log2(np.maximum(sizes / SOME, 1.0))).astype(np.int64)
    return np.flatnonzero((mixed // FOLDS) & (every - 1)[group] == 0)


def _means_beside(total: Floats, cells: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the means of windows without the cell in the middle, and the number of cells in each mean."""
    counts = np.maximum(cells - 1.0, 1.0)
    return (total - values) / counts, np.broadcast_to(counts, values.shape)


@dataclass(frozen=True)
class Lesson:
    """The weights of the rings in a prediction, by fold and by class of the previous prediction."""

    bounds: Floats  # the prediction at which each class begins, except the first
    levels: Floats  # the prediction if the means of all rings are 0, by class and fold
    weights: Floats  # a row for each ring, by class and fold

    def read(self, guesses: Floats, means: Floats, folds: Integers) -> Floats:
        """Return the next predictions of cells from their current ones, the means of their rings and their folds."""
        codes = class_of(guesses, self.bounds) * np.int64(FOLDS) + folds
        read = self.levels.take(codes)
        for weights, ring in zip(self.weights, means, strict=True):
            read += weights.take(codes) * ring
        return read


def _learned(
    values: Floats, noise: NoiseLaw, pilot: Floats, counts: Floats, rings: Rings, folds: Integers
) -> tuple[list[Lesson], Floats, float]:
    """Return the lessons of all rounds, the last predictions and the median of their standard deviations."""
    guesses, spread = pilot, math.sqrt(noise.variance) / np.sqrt(counts)
    lessons, deviation = [], float(np.median(spread))
    for _ in range(ROUNDS):
        bounds = bounds_of(guesses, 2.0 * deviation, FIT)
        levels, weights = np.empty(FOLDS * (bounds.size + 1)), np.empty((len(rings.means), FOLDS * (bounds.size + 1)))
        for name, mine in enumerate(members(class_of(guesses, bounds))):
            means, sizes = rings.means[:, mine], rings.counts[:, mine]
            for fold, (level, weight) in enumerate(_fitted(values[mine], noise, means, sizes, folds[mine])):
                levels[FOLDS * name + fold], weights[:, FOLDS * name + fold] = level, weight
                in_fold = folds[mine] == fold
                left = max(mine.size - int(np.count_nonzero(in_fold)), 1)
                spread[mine[in_fold]] = np.sqrt(noise.variance * (weight**2 @ (1.0 / sizes[:, in_fold]) + 1.0 / left))
        lessons.append(Lesson(bounds, levels, weights))
        guesses, deviation = lessons[-1].read(guesses, rings.means, folds), float(np.median(spread))
    return lessons, guesses, deviation


def _fitted(
    values: Floats, noise: NoiseLaw, means: Floats, counts: Floats, folds: Integers
) -> list[tuple[float, Floats]]:
    """Fit a ridge regression of the cells of a class on their rings, for each fold from the cells of the other fold."""
    deviation = math.sqrt(noise.variance)
    low, high = np.percentile(values, CLIPPED)
    kept = np.clip(values, low - 3.0 * deviation, high + 3.0 * deviation)
    fits = []
    for fold in range(FOLDS):
        outside = folds != fold
        if not outside.any() or outside.all():
            fits.append((float(kept.mean()), np.zeros(len(means))))
            continue
        others = means[:, outside]
        middle, level = others.mean(axis=1), float(kept[outside].mean())
        others -= middle[:, None]
        penalty = RIDGE * noise.variance * (1.0 / counts[:, outside]).mean(axis=1)
        squares = others @ others.T + np.diag(penalty)
        weights = np.linalg.lstsq(squares, others @ (kept[outside] - level), rcond=None)[0]
        fits.append((level - float(middle @ weights), weights))
    return fits


@dataclass(frozen=True)
class Estimate:
    """The values of the cells of a class, and their estimated summed squared error with its standard error.

    `variances` computes the variance of each cell.
    """

    values: Floats
    risk: float
    error: float
    variances: Callable[[], Floats]


@dataclass(frozen=True)
class Classed:
    """Cells sorted by the steps of their predictions, so that a class is a range of cells."""

    values: Floats
    guessed: Floats
    folds: Integers
    counts: Integers  # the number of cells in each step
    order: Integers
    noise: NoiseLaw
    nonnegative: bool
    shape: tuple[int, ...]
    together: Mixture | None
    known: dict[tuple[int, int], Estimate] = field(default_factory=dict)  # estimates of classes, by the ends of a class

    @classmethod
    def of(
        cls, values: Floats, noise: NoiseLaw, guessed: Guess, nonnegative: bool, together: Mixture | None
    ) -> Classed:
        """Sort the cells by the steps of their predictions."""
        steps = steps_of(guessed.values, guessed.deviation)
        order = np.argsort(steps, kind="stable")
        flat, folds = values.ravel()[order], folds_of(values.size)[order]
        counts = np.bincount(steps)
        return cls(flat, guessed.values[order], folds, counts, order, noise, nonnegative, values.shape, together)

    def estimated(self, name: str, least: int) -> Context:
        """Estimate all cells in classes of at least `least` cells; the risks of the classes add up."""
        sizes = np.bincount(merged(self.counts, least), self.counts).astype(np.int64)
        ends = [0, *np.cumsum(sizes).tolist()]
        parts = [self._best(first, last) for first, last in itertools.pairwise(ends)]
        values = self._placed([part.values for part in parts])
        values = np.maximum(values, 0.0, out=values) if self.nonnegative else values
        risk, error = sum(part.risk for part in parts), math.sqrt(sum(part.error**2 for part in parts))
        return Context(name, values, risk, error, lambda: np.sqrt(self._placed([part.variances() for part in parts])))

    def _placed(self, parts: list[Floats]) -> Floats:
        placed = np.empty(self.order.size)
        placed[self.order] = np.concatenate(parts)
        return placed.reshape(self.shape)

    def _best(self, first: int, last: int) -> Estimate:
        """Return the estimate with the least cross-fitted risk: values, or empirical Bayes of values or of distances.

        Distances are those of the values from their predictions. They replace empirical Bayes of the values only if
        they are better by a standard error.
        """
        if (first, last) in self.known:
            return self.known[first, last]
        values, guessed, folds = self.values[first:last], self.guessed[first:last], self.folds[first:last]
        noise, deviation = self.noise, math.sqrt(self.noise.variance)
        whole = self.together is not None and last - first == self.values.size
        best = Estimate(values, values.size * noise.variance, 0.0, partial(np.full, values.size, noise.variance))
        plain = self.together if whole else None
        plain = Mixture.of(values, noise, folds, nonnegative=self.nonnegative) if plain is None else plain
        surely = 0.0
        if plain.risk[0] < best.risk:
            best, surely = _of_mixture(plain, self.order if whole else None), deviation
        if float(guessed.std()) > WORTH * deviation:
            middle = np.rint(guessed / noise.grid) * noise.grid
            apart = Mixture.of(values - middle, noise, folds)
            if apart.risk[0] < best.risk:
                estimate = _of_mixture(apart, None, middle)
                distance = estimate.values - best.values
                surely = surely and surely * math.sqrt(float(np.square(distance, out=distance).sum()))
                best = estimate if estimate.risk + surely < best.risk else best
        self.known[first, last] = best
        return best


def _of_mixture(mixture: Mixture, places: Integers | None, middle: Floats | None = None) -> Estimate:
    """Return empirical Bayes as an estimate of cells in another order, or of distances from `middle`."""

    def placed(values: Floats) -> Floats:
        return values.ravel() if places is None else values.ravel()[places]

    values = placed(mixture.values)
    values = values if middle is None else middle + values
    return Estimate(values, *mixture.risk, lambda: placed(mixture.variances))


def steps_of(guessed: Floats, unit: float) -> Integers:
    """Return the step of each cell: the whole part of asinh(prediction / unit), less the least one."""
    return class_of(guessed, unit * np.sinh(_inner_steps(guessed, unit)))


def bounds_of(guessed: Floats, unit: float, least: int) -> Floats:
    """Return the prediction at which each class begins, except the first.

    Classes are equal steps of asinh(prediction / unit), merged until each has at least `least` cells.
    """
    steps = _inner_steps(guessed, unit)
    names = merged(np.bincount(class_of(guessed, unit * np.sinh(steps)), minlength=steps.size + 1), least)
    return np.asarray(unit * np.sinh(steps[np.diff(names) > 0]))


def _inner_steps(guessed: Floats, unit: float) -> Floats:
    """Return the steps that begin between the least and the largest prediction."""
    least, most = np.arcsinh(np.array([guessed.min(), guessed.max()]) / unit)
    return np.arange(math.floor(least) + 1.0, math.floor(most) + 1.0)


def class_of(guessed: Floats, bounds: Floats) -> Integers:
    """Return the number of bounds that each prediction reaches."""
    if bounds.size > FEW_BOUNDS:
        return np.asarray(np.searchsorted(bounds, guessed, side="right"))
    found: Any = np.zeros(guessed.size, dtype=np.uint8)  # one byte for each cell, which is fast to count and to sort
    for bound in bounds:
        found += guessed >= bound
    return np.asarray(found)


def merged(counts: Integers, least: int) -> Integers:
    """Return the class of each step; steps are merged until each class has at least `least` cells."""
    number, cells, names = 0, 0, np.empty(counts.size, dtype=np.int64)
    left = counts[::-1].cumsum()[::-1]  # cells of this step and all later ones
    for step, count in enumerate(counts.tolist()):
        if cells >= least and left[step] >= least:
            number, cells = number + 1, 0
        names[step] = number
        cells += count
    return names


def members(group: Integers) -> list[Integers]:
    """Return the positions of the cells of each class."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group))[:-1])


@dataclass(frozen=True)
class Rings:
    """The mean and the number of the cells in each ring (a row) of each cell (a column)."""

    means: Floats
    counts: Floats


@dataclass(frozen=True)
class Windows:
    """Sums over windows around cells along some axes, computed from cumulative sums."""

    values: Floats
    axes: tuple[int, ...]
    before: Floats  # cumulative sums, padded along these axes by `reach` places, and by one more at the start
    reach: int

    @classmethod
    def of(cls, values: Floats, axes: tuple[int, ...], reach: int) -> Windows:
        """Compute the cumulative sums before each position; outside of the table, they stay constant."""
        before = values
        for axis in axes:
            shape = list(before.shape)
            shape[axis] += 2 * reach + 1
            padded, inner = np.zeros(shape), _along(axis, reach + 1, reach + 1 + before.shape[axis])
            np.cumsum(before, axis=axis, out=padded[inner])
            padded[_along(axis, reach + 1 + before.shape[axis], None)] = padded[inner][_along(axis, -1, None)]
            before = padded
        return cls(values, axes, before, reach)

    def strip(self, radius: int, first: int, last: int) -> tuple[Floats, Floats]:
        """Return the sums within a radius, and the numbers of cells in them.

        The cells are those from `first` to `last` along the first axis.
        """
        sums = self.before
        if 0 not in self.axes:
            sums = sums[first:last]
        for axis in self.axes:
            start, stop = (first, last) if axis == 0 else (0, self.values.shape[axis])
            upper = _along(axis, self.reach + radius + 1 + start, self.reach + radius + 1 + stop)
            sums = sums[upper] - sums[_along(axis, self.reach - radius + start, self.reach - radius + stop)]
        return sums, self.sizes(radius, first, last)

    def sizes(self, radius: int, first: int, last: int) -> Floats:
        """Return the number of cells within a radius, in a shape that broadcasts with the cells."""
        sizes = np.ones((1,) * self.values.ndim)
        for axis in self.axes:
            length = self.values.shape[axis]
            places = np.arange(first, last) if axis == 0 else np.arange(length)
            there = np.minimum(places + radius + 1, length) - np.maximum(places - radius, 0)
            if there[0] == there[-1] == 2 * radius + 1:  # no window reaches over an end, so all sizes are the same
                there = there[:1]
            sizes = sizes * there.reshape([-1 if dimension == axis else 1 for dimension in range(self.values.ndim)])
        return sizes

    def at(self, radius: int, places: Integers) -> tuple[Floats, Floats]:
        """Return the sums within a radius of some cells, and the numbers of cells in them."""
        index, shape = np.unravel_index(places, self.values.shape), self.before.shape
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        middle = sum(
            (index[axis] + (self.reach if axis in self.axes else 0)) * strides[axis] for axis in range(len(shape))
        )
        total, flat = np.zeros(places.size), self.before.ravel()
        for ends in itertools.product((0, 1), repeat=len(self.axes)):
            moved = sum(
                strides[axis] * (radius + 1 if end else -radius) for axis, end in zip(self.axes, ends, strict=True)
            )
            total += (-1.0) ** (len(ends) - sum(ends)) * flat[middle + moved]
        sizes = np.ones(places.size)
        for axis in self.axes:
            length = self.values.shape[axis]
            sizes *= np.minimum(index[axis] + radius + 1, length) - np.maximum(index[axis] - radius, 0)
        return total, sizes

    def strips(self) -> Iterator[tuple[int, int]]:
        """Split the first axis into ranges of about `STRIP` cells."""
        length = self.values.shape[0]
        step = max(1, STRIP * length // max(self.values.size, 1))
        for first in range(0, length, step):
            yield first, min(first + step, length)


def rings_in(windows: Windows, radii: tuple[int, ...], first: int, last: int) -> Rings:
    """Return the rings of a range of cells along the first axis.

    No ring of a cell contains the cell.
    """
    inner, size = windows.values[first:last], np.ones((1,) * windows.values.ndim)
    means, counts = np.empty((len(radii), inner.size)), np.empty((len(radii), inner.size))
    shape = inner.shape
    for ring, radius in enumerate(radii):
        total, cells = windows.strip(radius, first, last)
        counts[ring].reshape(shape)[...] = cells - size
        np.divide(total - inner, cells - size, out=means[ring].reshape(shape))
        inner, size = total, cells
    return Rings(means, counts)


def rings_at(windows: Windows, radii: tuple[int, ...], places: Integers) -> Rings:
    """Return the rings of some cells."""
    inner, size = windows.values.ravel()[places], np.ones(places.size)
    means, counts = np.empty((len(radii), places.size)), np.empty((len(radii), places.size))
    for ring, radius in enumerate(radii):
        total, cells = windows.at(radius, places)
        counts[ring] = cells - size
        means[ring] = (total - inner) / counts[ring]
        inner, size = total, cells
    return Rings(means, counts)


def radii_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the radii whose rings hold at least one cell, whatever the cell in the middle."""
    longest = max(shape[axis] for axis in axes)
    radii = ON_A_LINE if len(axes) == 1 else ON_A_GRID
    return tuple(radius for index, radius in enumerate(radii) if 2 * (0, *radii)[index] + 2 <= longest)


def _along(axis: int, start: int, stop: int | None) -> tuple[slice, ...]:
    return (*itertools.repeat(slice(None), axis), slice(start, stop))
