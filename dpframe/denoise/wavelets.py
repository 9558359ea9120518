"""Haar wavelets: differences between neighboring blocks of cells are shrunk, level by level."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.bayes import mixed_places
from dpframe.denoise.estimators import (
    Denoiser,
    Floats,
    NoiseLaw,
    Order,
    best_thresholds,
    moved_to_zero,
    ordered_axes,
    shrinkage,
)
from dpframe.errors import InvalidArgument

FEWEST = 8  # coefficients from which a level has a threshold of its own; smaller levels are shrunk together
BLOCK, BLOCKS = 1_024, 32  # cells of a block, and number of blocks, that show whether wavelets are worth a try
SPINS = 4  # shifted transforms whose results are averaged
SMALL = 2**15  # cells up to which all shifts are transformed together


LEAST = 4  # coefficients; with fewer, James-Stein gains next to nothing


def haar(values: Floats, noise: NoiseLaw, *, order: Order = None, shrink: Denoiser | None = None) -> Floats:
    """Shrink the Haar wavelet coefficients of a line or a grid, level by level.

    Parameters
    ----------
    values : array
        Noisy values of cells with similar neighbors: a line with `order=True`, or a grid of two or more dimensions.
    noise : Mechanism
        The law of their noise.
    order : bool or tuple of int, optional
        Whether the order of a line is meaningful: state it, since the values do not show it. For a grid, the axes along
        which neighbors are similar, by default all.
    shrink : callable, optional
        The function for the coefficients of each level: ``(values, noise) -> values``, such as those of this module.
        Default: a soft threshold whose level is chosen by its risk.

    Returns
    -------
    array
        Of the same shape.

    Raises
    ------
    InvalidArgument
        For one-dimensional values without `order=True`, or if `shrink` changes the number of coefficients.

    Notes
    -----
    Thresholds by level as in Donoho and Johnstone (JASA 1995), averaged over four shifts of the cells (Coifman and
    Donoho 1995). For noisy counts, Xiao, Wang and Gehrke (ICDE 2010) add noise to the coefficients; here, the cells
    already have their noise, so this is post-processing. An axis of odd length is halved with its last cell left over,
    and cells are weighted by the number of cells that they stand for (Girardi and Sweldens 1997). So every length
    works, and the transform stays orthonormal. Squares and lines are shrunk. Levels of fewer than 8 coefficients are
    shrunk together, by James-Stein, and not at all with another `shrink`. The sum of all cells stays.

    A coefficient is a weighted sum of cells, whose noise has the variance of a cell's. Another `shrink` receives this
    noise as a Gaussian. For other noise, that is an approximation that improves with every level.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.1, delta=1e-6)
    >>> noisy = 100.0 + np.array([30.0, -12.0, 8.0, -41.0, 22.0, -5.0, 17.0, -28.0] * 8)
    >>> smooth = dpf.denoise.haar(noisy, noise, order=True)
    >>> bool(np.abs(smooth - 100.0).max() < 10.0)
    True
    >>> smooth = dpf.denoise.haar(noisy, noise, order=True, shrink=dpf.denoise.james_stein)
    >>> bool(np.abs(smooth - 100.0).max() < 10.0)
    True
    """
    values = np.asarray(values, dtype=np.float64)
    axes = ordered_axes(values, order)
    if not axes and values.ndim:
        raise InvalidArgument("haar needs cells in an order that means something. Write order=True, or give a grid.")
    way = _by_threshold if shrink is None else functools.partial(_by_function, shrink)
    return shrunk(values, noise, axes, way).values + 0.0  # no -0.0


@dataclass(frozen=True)
class Shrunk:
    """Denoised values, an unbiased estimate of their summed squared error, and its standard error."""

    values: Floats
    risk: float
    error: float


@dataclass(frozen=True)
class Several:
    """Denoised values of several tables, or their coefficients.

    `gains` is the addition to the risk of each table, and `spreads` is its variance.
    """

    values: Floats
    gains: Floats
    spreads: Floats


Way = Callable[[Floats, NoiseLaw, float], Several]  # shrinks a level, which has a row for each table


@dataclass(frozen=True)
class Coefficients:
    """The law of the noise in the coefficients of a level, for a caller's function.

    It is nearly Gaussian.
    """

    variance: float
    grid: float
    p: float = 2.0

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)


def _by_threshold(coefficients: Floats, noise: NoiseLaw, factor: float) -> Several:
    """Shrink the coefficients of a level by their best threshold; return the added risk and its variance too."""
    levels, risks, spreads = best_thresholds(coefficients, noise, factor)
    kept = moved_to_zero(coefficients, levels[:, None])
    return Several(kept, risks - coefficients.shape[1] * noise.variance, spreads)


def _by_function(function: Denoiser, coefficients: Floats, noise: NoiseLaw, factor: float) -> Several:
    """Shrink the coefficients of a level by the caller's function; the added risk is unknown and taken as 0."""
    law, results = Coefficients(noise.variance, noise.grid * factor), []
    for level in coefficients:
        results.append(np.asarray(function(level.copy(), law), dtype=np.float64))
        if results[-1].shape != level.shape:
            raise InvalidArgument(
                f"shrink must return values of the shape {level.shape} that it got, not {results[-1].shape}."
            )
    nothing = np.zeros(len(results))
    return Several(np.stack(results), nothing, nothing)


def shrunk(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], way: Way = _by_threshold) -> Shrunk:
    """Return the mean over shifted transforms along these axes.

    Its squared error is the mean of theirs less that of their squared distances from it, and so is its estimate.
    """
    if values.size < FEWEST or not noise.variance > 0.0:
        return Shrunk(values.copy(), values.size * noise.variance, 0.0)
    total, square, risk, error = np.zeros(values.shape), np.zeros(values.shape), 0.0, 0.0
    # shifts of 0, 1, 2, 3 and 0, 3, 2, 1: every axis has each shift once
    shifts = [[(spin * (2 * number + 1)) % SPINS for number in range(len(axes))] for spin in range(SPINS)]
    together = SPINS if values.size <= SMALL else 1  # small tables together take a fourth of the calls
    for first in range(0, SPINS, together):
        some = shifts[first : first + together]
        tables = np.stack([np.roll(values, shift, axes) for shift in some])
        shifted = _once(tables, noise, tuple(axis + 1 for axis in axes), way)
        for shift, table in zip(some, shifted.values, strict=True):
            moved = np.roll(table, [-by for by in shift], axes) - values  # near 0, so that squares lose no digits
            total += moved
            square += moved**2
        risk += together * values.size * noise.variance + float(shifted.gains.sum())
        error += float(np.sqrt(shifted.spreads).sum())
    apart = float(np.maximum(square / SPINS - (total / SPINS) ** 2, 0.0).sum())
    return Shrunk(values + total / SPINS, risk / SPINS - apart, error / SPINS)


def blocks_among(values: Floats, axes: tuple[int, ...]) -> Floats:
    """Return some blocks of neighboring cells, chosen by mixed positions.

    The first axis numbers the blocks; the others are `axes`, in order.
    """
    others = [axis for axis in range(values.ndim) if axis not in axes]
    moved = np.moveaxis(values, others, range(len(others)))
    shape, side = moved.shape[len(others) :], round(BLOCK ** (1.0 / len(axes)))
    sides = [min(side, length) for length in shape]
    numbers = [length // mine for length, mine in zip(shape, sides, strict=True)]
    ends = [slice(number * mine) for number, mine in zip(numbers, sides, strict=True)]
    whole = moved[(*itertools.repeat(slice(None), len(others)), *ends)]
    cut = whole.reshape(-1, *itertools.chain.from_iterable(zip(numbers, sides, strict=True)))
    blocks = cut.shape[0] * math.prod(numbers)
    chosen = np.flatnonzero(mixed_places(blocks) % max(1, blocks // BLOCKS) == 0)
    first, *places = np.unravel_index(chosen, (cut.shape[0], *numbers))
    index = [item for place in places for item in (place, slice(None))]
    found = cut[(first, *index)]
    return np.ascontiguousarray(found)


def _once(tables: Floats, noise: NoiseLaw, axes: tuple[int, ...], way: Way) -> Several:
    """Transform each table, shrink its levels, and transform it back."""
    weights = {axis: np.ones(tables.shape[axis]) for axis in axes}
    levels, small, factor = [], [], 1.0
    gains, spreads = np.zeros(len(tables)), np.zeros(len(tables))
    smooth = tables
    while max((weight.size for weight in weights.values()), default=0) >= 2:
        factor /= math.sqrt(2.0 ** sum(weight.size >= 2 for weight in weights.values()))
        smooth, details, halved = _halved(smooth, weights)
        coefficients = np.concatenate([band.reshape(len(band), -1) for band in details.values()], axis=1)
        if coefficients.shape[1] >= FEWEST:
            level = way(coefficients, noise, factor)
            details = _bands(level.values, details)
            gains, spreads = gains + level.gains, spreads + level.spreads
        else:
            small.append(coefficients)
        levels.append((details, weights))
        weights = halved
    if way is _by_threshold and small:
        least = _shrunk_together(small, noise)
        gains, spreads, first = gains + least.gains, spreads + least.spreads, len(levels) - len(small)
        sizes = np.cumsum([level.shape[1] for level in small])[:-1]
        levels[first:] = [
            (_bands(level, details), weights)
            for level, (details, weights) in zip(np.split(least.values, sizes, axis=1), levels[first:], strict=True)
        ]
    for details, finer in reversed(levels):
        smooth = _doubled(smooth, details, finer)
    return Several(smooth, gains, spreads)


def _shrunk_together(levels: list[Floats], noise: NoiseLaw) -> Several:
    """Shrink the small levels of each table together; a row of the result holds the coefficients of all of them."""
    found = [shrunk_together(list(table), noise) for table in zip(*levels, strict=True)]
    values = np.stack([np.concatenate(table) for table, _, _ in found])
    return Several(values, np.array([gain for _, gain, _ in found]), np.array([spread for _, _, spread in found]))


def _bands(coefficients: Floats, like: dict[Place, Floats]) -> dict[Place, Floats]:
    """Split a row of coefficients into bands like these."""
    bands, start = {}, 0
    for at, band in like.items():
        stop = start + band[0].size
        bands[at], start = coefficients[:, start:stop].reshape(band.shape), stop
    return bands


Place = tuple[int, ...]  # for each ordered axis: 0 for sums, 1 for differences
Weights = dict[int, Floats]  # by ordered axis: the number of cells for which each place stands


def _halved(smooth: Floats, weights: Weights) -> tuple[Floats, dict[Place, Floats], Weights]:
    """Return one level: sums of neighbors along every ordered axis, all mixed differences, and weights of the sums."""
    bands: dict[Place, Floats] = {(): smooth}
    for axis, weight in weights.items():
        halves = {at: _split(band, weight, axis) for at, band in bands.items()}
        bands = {(*at, half): halves[at][half] for at in halves for half in (0, 1)}
    sums = bands.pop((0,) * len(weights))
    halved = {axis: _summed(weight) for axis, weight in weights.items()}
    return sums, {at: band for at, band in bands.items() if band.size}, halved


def _doubled(sums: Floats, details: dict[Place, Floats], weights: Weights) -> Floats:
    """Invert `_halved`."""
    bands = {(0,) * len(weights): sums, **details}
    for depth, axis in reversed(list(enumerate(weights))):
        places = {at[:depth] for at in bands}
        bands = {at: _joined(bands.get((*at, 0)), bands.get((*at, 1)), weights[axis], axis) for at in places}
    return bands[()]


def _summed(weight: Floats) -> Floats:
    return np.add.reduceat(weight, np.arange(0, weight.size, 2))


def _turn(weight: Floats, ndim: int, axis: int) -> tuple[Floats, Floats]:
    """Return the cosine and the sine by which the two neighbors of each pair along an axis are weighted."""
    even, odd = weight[: weight.size // 2 * 2 : 2], weight[1::2]
    shape = [1] * ndim
    shape[axis] = even.size
    return np.sqrt(even / (even + odd)).reshape(shape), np.sqrt(odd / (even + odd)).reshape(shape)


def _at(axis: int, start: int, stop: int | None = None, step: int = 1) -> tuple[slice, ...]:
    return (*itertools.repeat(slice(None), axis), slice(start, stop, step))


def _split(values: Floats, weight: Floats, axis: int) -> tuple[Floats, Floats]:
    cosine, sine = _turn(weight, values.ndim, axis)
    paired = weight.size // 2 * 2
    even, odd = values[_at(axis, 0, paired, 2)], values[_at(axis, 1, paired, 2)]
    sums = np.concatenate([cosine * even + sine * odd, values[_at(axis, paired)]], axis=axis)
    return sums, sine * even - cosine * odd


def _joined(sums: Floats | None, details: Floats | None, weight: Floats, axis: int) -> Floats:
    some = sums if sums is not None else details
    assert some is not None
    pairs, shape = weight.size // 2, list(some.shape)
    if sums is None or details is None:  # a missing band is empty: an axis of one cell has no pairs
        shape[axis] = pairs if sums is not None else weight.size - pairs
    sums = np.zeros(shape) if sums is None else sums
    details = np.zeros(shape) if details is None else details
    cosine, sine = _turn(weight, some.ndim, axis)
    shape[axis] = weight.size
    values = np.empty(shape)
    summed = sums[_at(axis, 0, pairs)]
    values[_at(axis, 0, 2 * pairs, 2)] = cosine * summed + sine * details
    values[_at(axis, 1, 2 * pairs, 2)] = sine * summed - cosine * details
    values[_at(axis, 2 * pairs)] = sums[_at(axis, pairs)]
    return values


def shrunk_together(coefficients: list[Floats], noise: NoiseLaw) -> tuple[list[Floats], float, float]:
    """Shrink the coefficients of several small levels by James-Stein; return the added risk and its variance too.

    A coefficient is a sum of many cells over the root of their number, so its noise has the variance of a cell's and is
    nearly Gaussian. With d coefficients of squared norm S, the factor is (1 - (d - 2) v / S), the positive part. For
    Gaussian noise, the expected squared error is below that of the unchanged coefficients, whatever the truth (James
    and Stein 1961; Stein 1981). The sum of all cells is not among them.
    """
    together = np.concatenate([level.ravel() for level in coefficients]) if coefficients else np.empty(0)
    if together.size < LEAST:
        return coefficients, 0.0, 0.0
    taken = shrinkage(together, noise)
    squares, size = float(np.square(together).sum()), together.size
    if taken == 1.0:
        gain = squares - 2.0 * size * noise.variance
    else:
        gain = -taken * (size - 2) * noise.variance
    spread = 2.0 * size * (noise.variance * taken**2) ** 2
    return [level * (1.0 - taken) for level in coefficients], gain, spread
