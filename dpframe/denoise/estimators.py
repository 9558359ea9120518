"""The noise as denoisers know it, and estimators of cells whose places do not matter: ``(values, noise) -> values``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class NoiseLaw(Protocol):
    """The law of a noise: its shape, variance, scale and grid. Mechanisms are such laws."""

    @property
    def p(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def grid(self) -> float: ...


@dataclass(frozen=True)
class Law:
    """The facts of a noise, computed once.

    A mechanism may compute its variance at each access.
    """

    p: float
    variance: float
    scale: float
    grid: float

    @classmethod
    def of(cls, noise: NoiseLaw) -> Self:
        """The facts of any noise."""
        return cls(noise.p, noise.variance, noise.scale, noise.grid)

    def times(self, factor: float) -> Self:
        """The same noise in numbers that are multiplied by `factor`."""
        return type(self)(self.p, self.variance * factor**2, self.scale * factor, self.grid * factor)


def shares(noise: NoiseLaw, width: int, reach: int) -> Floats:
    """The shares of the noise that are about `width` m grid steps from the truth.

    That is within width / 2, for m of -reach to reach. The width is odd, so that the bounds lie between grid points,
    where the law is known exactly: p = 1 is the discrete Laplace law or the rounded one, every other p a generalized
    Gaussian rounded to the grid.
    """
    bounds: Floats = (np.arange(reach + 1, dtype=np.float64) + 0.5) * width
    tails = _laplace_tails(noise, bounds) if noise.p == 1.0 else _rounded_tails(noise, bounds)
    upper = -np.diff(tails)
    return np.concatenate([upper[::-1], [1.0 - 2.0 * tails[0]], upper])


def laplace_rate(variance: float) -> float:
    """The r of the discrete Laplace law P(k) proportional to r^|k|.

    Its variance is 2 r / (1 - r)^2.
    """
    inverse = 1.0 / variance
    return 1.0 / (1.0 + inverse + math.sqrt(inverse * (2.0 + inverse)))


def _laplace_tails(noise: NoiseLaw, bounds: Floats) -> Floats:
    """Weight * rate^bound, the weight so that the variance is right: rounded or discrete, they differ in that alone."""
    decay = noise.grid / noise.scale
    rate, variance = math.exp(-decay), noise.variance / noise.grid**2
    weight = variance * math.expm1(-decay) ** 2 / (2.0 * math.sqrt(rate) * (1.0 + rate))
    return np.asarray(weight * rate**bounds)


def _rounded_tails(noise: NoiseLaw, bounds: Floats) -> Floats:
    if noise.p != 2.0:
        return _tails(noise.p, noise.scale / noise.grid, bounds)
    # a Gaussian may tell its scale as sigma or as b = sigma sqrt(2): its variance says which
    sigma, variance = noise.scale / noise.grid, noise.variance / noise.grid**2
    spreads = (sigma * math.sqrt(2.0), sigma)
    return _tails(2.0, min(spreads, key=lambda spread: abs(_rounded_variance(spread) - variance)), bounds)


def _rounded_variance(spread: float) -> float:
    """The variance of a rounded Gaussian, in squared steps; its error past 16 steps is far below any use of it."""
    if spread > 16.0:
        return spread**2 / 2.0 + 1.0 / 12.0
    steps = np.arange(1.0, 200.0)
    return float(2.0 * ((2.0 * steps - 1.0) * _tails(2.0, spread, steps - 0.5)).sum())


def _tails(p: float, spread: float, bounds: Floats) -> Floats:
    from scipy.special import gammaincc

    return np.asarray(gammaincc(1.0 / p, (bounds / spread) ** p) / 2.0)


Denoiser = Callable[[Floats, Any], Floats]
Centre = float | Floats | Literal["mean"]

FINEST = 1e-4  # a finer grid, in standard deviations, is as good as this one, and differences on it would lose digits
LEVELS = 16  # thresholds that are weighed, from none to a little more than the universal one
BINS = 16.0  # in a standard deviation, into which values are put to weigh thresholds
FAR = 40.0  # standard deviations past the largest threshold at which a value is as good as infinite
SURELY = 1.0  # standard errors by which a threshold must be better than to leave nothing
MARGIN = 1.0  # standard errors by which a candidate must be better than nothing


def nonnegative(values: Floats, noise: NoiseLaw) -> Floats:
    """Raise negative values to zero.

    Parameters
    ----------
    values : array
        Noisy values of totals that cannot be negative, such as counts.
    noise : Mechanism
        The law of their noise (not needed here).

    Returns
    -------
    array
        Of the same shape. Never farther from the truth than `values`, if the truth is non-negative: this is the
        projection on a convex set that holds the truth.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> dpf.denoise.nonnegative(np.array([-3.0, 4.0]), noise)
    array([0., 4.])
    """
    return np.maximum(np.asarray(values, dtype=np.float64), 0.0) + 0.0  # no -0.0


def james_stein(values: Floats, noise: NoiseLaw, *, centre: Centre = 0.0) -> Floats:
    """Shrink all values toward a center by the positive-part James-Stein factor.

    Parameters
    ----------
    values : array
        Noisy values. Fewer than 3 (4 around their mean) are returned unchanged.
    noise : Mechanism
        The law of their noise.
    centre : float, array or "mean"
        The center: a public number, public numbers of the same shape, or the mean of the values.

    Returns
    -------
    array
        Of the same shape: centre + (values - centre) * max(0, 1 - (d - 2) variance / sum of squares), with the squares
        around the center; around the mean, d - 3 replaces d - 2.

    Raises
    ------
    InvalidArgument
        If `centre` is text other than "mean".

    Notes
    -----
    Balle and Wang (ICML 2018), section 4, after James and Stein (1961): for Gaussian noise, its mean squared error is
    below that of the noisy values, whatever the truth. Around the mean: Efron and Morris (JASA 1973), section 2, after
    Lindley (1962).

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6)
    >>> dpf.denoise.james_stein(np.array([3.0, -4.0, 5.0, 2.0]), noise).round(2)
    array([ 1.01, -1.34,  1.68,  0.67])
    >>> dpf.denoise.james_stein(np.array([103.0, 96.0, 105.0, 102.0]), noise, centre=100.0).round(2)
    array([101.01,  98.66, 101.68, 100.67])
    """
    values = np.asarray(values, dtype=np.float64)
    middle = centred(values, centre)
    rest = values - middle
    return middle + rest * (1.0 - shrinkage(rest, noise, int(isinstance(centre, str)))) + 0.0  # no -0.0


def rounded(values: Floats, noise: NoiseLaw) -> Floats:
    """Round to the nearest whole numbers, halves to the even one.

    Parameters
    ----------
    values : array
        Values of totals that are whole numbers, such as counts; for instance after another denoiser.
    noise : Mechanism
        The law of their noise (not needed here).

    Returns
    -------
    array
        Of the same shape. This is for reading, not for accuracy: a value may move away from the truth by up to a half.

    Notes
    -----
    Post-processing by public knowledge (Dwork and Roth 2014, Proposition 2.1).

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> dpf.denoise.rounded(np.array([-0.2, 3.6]), noise)
    array([0., 4.])
    """
    return np.rint(np.asarray(values, dtype=np.float64)) + 0.0  # no -0.0


def isotonic(values: Floats, noise: NoiseLaw, *, increasing: bool = True) -> Floats:
    """Move to the nearest values that never fall (or never rise) along the last axis.

    Parameters
    ----------
    values : array
        Noisy values of totals that are known to be in order, such as cumulative counts.
    noise : Mechanism
        The law of their noise (not needed here).
    increasing : bool
        Whether the totals never fall; otherwise, they never rise.

    Returns
    -------
    array
        Of the same shape. Never farther from the truth than `values`, if the truth is in order: this is the projection
        on a convex set that holds the truth.

    Notes
    -----
    Hay, Rastogi, Miklau and Suciu (VLDB 2010), by the algorithm of Ayer et al. (1955) in `scipy.optimize`.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> dpf.denoise.isotonic(np.array([1.0, 4.0, 2.0, 7.0]), noise)
    array([1., 3., 3., 7.])
    """
    from scipy.optimize import isotonic_regression

    values = np.asarray(values, dtype=np.float64)
    if values.size == 0 or values.ndim == 0:
        return values.copy()
    rows = values.reshape(-1, values.shape[-1])
    fitted = [isotonic_regression(row, increasing=increasing).x for row in rows]
    return np.asarray(fitted, dtype=np.float64).reshape(values.shape) + 0.0  # no -0.0


def centred(values: Floats, centre: Centre) -> Floats:
    """The center in numbers."""
    if isinstance(centre, str):
        if centre != "mean":
            raise InvalidArgument(f"centre must be a number, an array or 'mean', not {centre!r}.")
        return np.asarray(values.mean() if values.size else 0.0)
    return np.asarray(centre, dtype=np.float64)


def shrinkage(rest: Floats, noise: NoiseLaw, fitted: int = 0) -> float:
    """The part of the distance from a center that James-Stein subtracts, from 0 to 1."""
    squares = float(np.square(rest).sum())
    if rest.size < 3 + fitted or squares == 0.0:
        return 0.0
    return min(1.0, (rest.size - 2 - fitted) * noise.variance / squares)


def soft_threshold(values: Floats, noise: NoiseLaw, *, threshold: float | None = None) -> Floats:
    """Move every value toward zero by the threshold, and smaller ones to zero.

    Parameters
    ----------
    values : array
        Noisy values.
    noise : Mechanism
        The law of their noise.
    threshold : float, optional
        Default: the universal one, standard deviation * sqrt(2 ln d).

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    Balle and Wang (ICML 2018), section 4, after Donoho and Johnstone (1994). It is good if most totals are zero. On
    dense totals, the universal threshold can be far worse than no denoising, so ``"auto"`` estimates its risk first.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> dpf.denoise.soft_threshold(np.array([-0.5, 12.0]), noise, threshold=2.0)
    array([ 0., 10.])
    """
    values = np.asarray(values, dtype=np.float64)
    level = universal_threshold(values.size, noise) if threshold is None else threshold
    return moved_to_zero(values, level) + 0.0  # no -0.0


def moved_to_zero(values: Floats, levels: Floats | float) -> Floats:
    """Values after soft thresholds."""
    kept = np.array(values)
    np.abs(kept, out=kept)
    kept -= levels
    np.maximum(kept, 0.0, out=kept)
    return np.copysign(kept, values, out=kept)


def universal_threshold(size: int, noise: NoiseLaw) -> float:
    """Donoho and Johnstone's threshold for `size` values."""
    return math.sqrt(noise.variance) * math.sqrt(2.0 * math.log(max(size, 2)))


@dataclass(frozen=True)
class Threshold:
    """A level, the estimated summed squared error of its soft threshold, and a spread.

    The spread is the variance of the estimate.
    """

    level: float
    risk: float
    spread: float


def best_threshold(values: Floats, noise: NoiseLaw, factor: float = 1.0) -> Threshold:
    """The soft threshold with the least estimated risk; see `best_thresholds`."""
    levels, risks, spreads = best_thresholds(np.asarray(values, dtype=np.float64).reshape(1, -1), noise, factor)
    return Threshold(float(levels[0]), float(risks[0]), float(spreads[0]))


def best_thresholds(values: Floats, noise: NoiseLaw, factor: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """The soft threshold with the least estimated risk for each row.

    It comes with that risk and the variance of the estimate. With a `factor` c, the values are coefficients: sums of
    cells times +-c, 1 / c^2 of them. (With fewer, where a grid was padded, the risk is that of the existing cells only
    if weighted by their share: see `wavelets`.)
    """
    rows, size = values.shape
    if values.size == 0 or not noise.variance > 0.0:
        return np.zeros(rows), np.zeros(rows), np.zeros(rows)
    deviation = math.sqrt(noise.variance)
    most = 1.1 * universal_threshold(size, noise)
    # an exact lattice where the noise has a coarse one; values past all thresholds are alike, however far
    width = max(noise.grid * factor, deviation / BINS)
    far = most + FAR * deviation * factor
    kept, counts = _counted(np.rint(np.minimum(np.maximum(values, -far), far) / width).astype(np.int64))
    places: Floats = np.asarray(kept * width, dtype=np.float64)
    levels = most * (np.arange(1.0, LEVELS) / (LEVELS - 1.0))
    gains = _gains(places, noise, levels[:, None], factor)
    gain = gains @ counts.T
    best = np.argmin(gain, axis=0)
    gained, nothing = gains[best], np.square(places) - 2.0 * noise.variance  # all of it set to zero
    more = gained - nothing
    sway = np.minimum(np.abs(more), 2.0 * (deviation * np.abs(places) + noise.variance))  # of each by its noise
    surely = SURELY * np.sqrt(_over(counts, sway**2))
    empty = _over(counts, more) + surely > 0.0
    level = np.where(empty, np.maximum(levels[best], np.abs(values).max(axis=1)), levels[best])
    gained = np.where(empty[:, None], nothing, gained)
    total, helps = _over(counts, gained), gain.min(axis=0) < 0.0
    spread = np.where(helps, np.maximum(_over(counts, gained**2) - total**2 / size, 0.0), 0.0)
    return np.where(helps, level, 0.0), size * noise.variance + np.where(helps, total, 0.0), spread


def _counted(bins: Integers) -> tuple[Integers, Floats]:
    """The bins that hold something, and by row how much."""
    rows, least = len(bins), int(bins.min())
    number = int(bins.max()) - least + 1
    places = bins + (np.arange(rows) * number - least)[:, None]
    counts = np.bincount(places.ravel(), minlength=rows * number).reshape(rows, number).astype(np.float64)
    kept = np.flatnonzero(counts.any(axis=0))
    return kept + least, counts[:, kept]


def _over(counts: Floats, terms: Floats) -> Floats:
    """The sum of the terms of each row over all cells."""
    return np.asarray((counts * terms).sum(axis=1))


def _gains(values: Floats, noise: NoiseLaw, level: Floats, factor: float) -> Floats:
    """For each threshold, by row, and each value what it adds to the estimated squared error of no denoising."""
    slope = kept_slope(values / factor, noise, level / factor)
    return np.square(np.minimum(np.abs(values), level)) - 2.0 * noise.variance * slope


def kept_slope(values: Floats, noise: NoiseLaw, level: Floats) -> Floats:
    """The slope of what a threshold subtracts, h = clip(y, -level, level).

    It is as it counts in E[z h] (see `auto`).
    """
    step = max(noise.grid, FINEST * math.sqrt(noise.variance))
    places, edge = values / step, level / step
    if noise.p != 1.0:
        return (_clipped(places + 1.0, edge) - _clipped(places - 1.0, edge)) / 2.0
    rate = laplace_rate(noise.variance / step**2)
    return (_clipped_mean(places + 1.0, edge, rate) - _clipped_mean(places - 1.0, edge, rate)) / 2.0


def _clipped(places: Floats, edge: Floats) -> Floats:
    return np.minimum(np.maximum(places, -edge), edge)  # faster than `clip` where edges are a column


def _clipped_mean(places: Floats, edge: Floats, rate: float) -> Floats:
    """E[clip(y + k, -edge, edge)] for the discrete Laplace law of k."""
    return _mean_above(-edge - places, rate) - _mean_above(edge - places, rate) - edge


def _mean_above(start: Floats, rate: float) -> Floats:
    """E[max(k - start, 0)] for the discrete Laplace law of k, which is symmetric."""
    far = np.abs(start)
    first = np.ceil(far)
    tail = rate**first / (1.0 + rate) * (rate / (1.0 - rate) + first - far)
    return np.where(start < 0.0, far + tail, tail)


Order = bool | tuple[int, ...] | None


def ordered_axes(values: Floats, order: Order) -> tuple[int, ...]:
    """The axes whose neighbors are meaningful.

    For a line, that is its axis only if stated; for a grid, all axes unless denied.
    """
    if isinstance(order, tuple):
        if not set(order) <= set(range(values.ndim)):
            raise InvalidArgument(f"order must name axes of the values, from 0 to {values.ndim - 1}, not {order!r}.")
        return tuple(sorted(set(order)))
    said = bool(order) if values.ndim < 2 else order is not False
    return tuple(range(values.ndim)) if said else ()
