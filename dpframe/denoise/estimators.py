"""The law of the noise as denoisers use it, and the simple estimators: functions ``(values, noise) -> values``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class NoiseLaw(Protocol):
    """The law of a noise: its shape, variance, scale and grid. Mechanisms implement it."""

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
    """The numbers of a noise law, computed once.

    A mechanism may compute its variance at each access.
    """

    p: float
    variance: float
    scale: float
    grid: float

    @classmethod
    def of(cls, noise: NoiseLaw) -> Self:
        """Read the numbers of any noise law."""
        return cls(noise.p, noise.variance, noise.scale, noise.grid)

    def times(self, factor: float) -> Self:
        """Return the law of the same noise in numbers that are multiplied by `factor`."""
        return type(self)(self.p, self.variance * factor**2, self.scale * factor, self.grid * factor)


def shares(noise: NoiseLaw, width: int, reach: int) -> Floats:
    """Return the probability that the noise is within `width` / 2 grid steps of m `width`, for m of -reach to reach.

    The width is odd, so that the bounds lie between grid points, where the law is known exactly. For p = 1, it is the
    discrete Laplace law or the rounded one. For every other p, it is a generalized Gaussian rounded to the grid.
    """
    bounds: Floats = (np.arange(reach + 1, dtype=np.float64) + 0.5) * width
    tails = _laplace_tails(noise, bounds) if noise.p == 1.0 else _rounded_tails(noise, bounds)
    upper = -np.diff(tails)
    return np.concatenate([upper[::-1], [1.0 - 2.0 * tails[0]], upper])


def laplace_rate(variance: float) -> float:
    """Return the r of the discrete Laplace law, P(k) proportional to r^|k|, with this variance.

    The variance is 2 r / (1 - r)^2.
    """
    if variance <= 0.0:  # noise that is always 0, as at a very large epsilon
        return 0.0
    inverse = 1.0 / variance
    return 1.0 / (1.0 + inverse + math.sqrt(inverse * (2.0 + inverse)))


def _laplace_tails(noise: NoiseLaw, bounds: Floats) -> Floats:
    """Return weight * rate^bound; the variance gives the weight, which differs for discrete and rounded laws."""
    decay = noise.grid / noise.scale
    rate, variance = math.exp(-decay), noise.variance / noise.grid**2
    weight = variance * math.expm1(-decay) ** 2 / (2.0 * math.sqrt(rate) * (1.0 + rate))
    return np.asarray(weight * rate**bounds)


def _rounded_tails(noise: NoiseLaw, bounds: Floats) -> Floats:
    if noise.p != 2.0:
        return _tails(noise.p, noise.scale / noise.grid, bounds)
    # the scale of a Gaussian may be sigma or b = sigma sqrt(2): its variance shows which
    sigma, variance = noise.scale / noise.grid, noise.variance / noise.grid**2
    spreads = (sigma * math.sqrt(2.0), sigma)
    return _tails(2.0, min(spreads, key=lambda spread: abs(_rounded_variance(spread) - variance)), bounds)


def _rounded_variance(spread: float) -> float:
    """Return the variance of a rounded Gaussian, in squared steps; the approximation past 16 steps has a tiny error."""
    if spread > 16.0:
        return spread**2 / 2.0 + 1.0 / 12.0
    steps = np.arange(1.0, 200.0)
    return float(2.0 * ((2.0 * steps - 1.0) * _tails(2.0, spread, steps - 0.5)).sum())


def _tails(p: float, spread: float, bounds: Floats) -> Floats:
    from scipy.special import gammaincc

    return np.asarray(gammaincc(1.0 / p, (bounds / spread) ** p) / 2.0)


Denoiser = Callable[[Floats, Any], Floats]
Centre = float | Floats | Literal["mean"]

FINEST = 1e-4  # of a standard deviation: the least step of differences, since finer ones would lose digits
LEVELS = 16  # thresholds that are compared, from none to 1.1 times the universal one
BINS = 16.0  # bins of values for each standard deviation, to compare thresholds
FAR = 40.0  # standard deviations beyond the largest threshold at which values are clipped to compare thresholds
SURELY = 1.0  # standard errors by which a threshold must be better than setting all values to zero
MARGIN = 1.0  # standard errors by which a candidate must be better than no denoising


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
        If `centre` is text other than "mean", or an array of another shape.

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
    """Return the center as an array."""
    if isinstance(centre, str):
        if centre != "mean":
            raise InvalidArgument(f"centre must be a number, an array or 'mean', not {centre!r}.")
        return np.asarray(values.mean() if values.size else 0.0)
    middle = np.asarray(centre, dtype=np.float64)
    if middle.shape not in ((), values.shape):
        raise InvalidArgument(
            f"centre must be one number or an array with the shape of the values, {values.shape}, not with shape "
            f"{middle.shape}. Give one number for all values, or one for each."
        )
    return middle


def shrinkage(rest: Floats, noise: NoiseLaw, fitted: int = 0) -> float:
    """Return the part of the distance from a center that James-Stein subtracts, from 0 to 1."""
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

    Raises
    ------
    InvalidArgument
        If `threshold` is not a finite number of at least 0.

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
    level = universal_threshold(values.size, noise) if threshold is None else checked_threshold(threshold)
    return moved_to_zero(values, level) + 0.0  # no -0.0


def moved_to_zero(values: Floats, levels: Floats | float) -> Floats:
    """Return the values after soft thresholds."""
    kept = np.array(values)
    np.abs(kept, out=kept)
    kept -= levels
    np.maximum(kept, 0.0, out=kept)
    return np.copysign(kept, values, out=kept)


def checked_threshold(threshold: object) -> float:
    """Return a threshold as a float; refuse anything but a finite number of at least 0."""
    if isinstance(threshold, (int, float, np.integer, np.floating)) and 0.0 <= threshold < math.inf:
        return float(threshold)
    raise InvalidArgument(
        f"threshold must be a finite number of at least 0, not {shown(threshold)}. Write None or 2.0."
    )


def universal_threshold(size: int, noise: NoiseLaw) -> float:
    """Return the threshold of Donoho and Johnstone for `size` values."""
    return math.sqrt(noise.variance) * math.sqrt(2.0 * math.log(max(size, 2)))


@dataclass(frozen=True)
class Threshold:
    """A level, and the estimated summed squared error of its soft threshold.

    `spread` is the variance of that estimate.
    """

    level: float
    risk: float
    spread: float


def best_threshold(values: Floats, noise: NoiseLaw, factor: float = 1.0) -> Threshold:
    """Return the soft threshold with the least estimated risk; see `best_thresholds`."""
    levels, risks, spreads = best_thresholds(np.asarray(values, dtype=np.float64).reshape(1, -1), noise, factor)
    return Threshold(float(levels[0]), float(risks[0]), float(spreads[0]))


def best_thresholds(values: Floats, noise: NoiseLaw, factor: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Return the soft threshold with the least estimated risk for each row, those risks and their variances.

    With a `factor` c, the values are coefficients: each is a sum of 1 / c^2 cells times +-c. For coefficients of blocks
    that an odd length leaves smaller, the estimate of the risk is an approximation.
    """
    rows, size = values.shape
    if values.size == 0 or not noise.variance > 0.0:
        return np.zeros(rows), np.zeros(rows), np.zeros(rows)
    deviation = math.sqrt(noise.variance)
    most = 1.1 * universal_threshold(size, noise)
    # the bins are exact if the grid of the noise is coarse; values far above all thresholds count alike
    width = max(noise.grid * factor, deviation / BINS)
    far = most + FAR * deviation * factor
    kept, counts = _counted(np.rint(np.minimum(np.maximum(values, -far), far) / width).astype(np.int64))
    places: Floats = np.asarray(kept * width, dtype=np.float64)
    levels = most * (np.arange(1.0, LEVELS) / (LEVELS - 1.0))
    gains = _gains(places, noise, levels[:, None], factor)
    gain = gains @ counts.T
    best = np.argmin(gain, axis=0)
    gained, nothing = gains[best], np.square(places) - 2.0 * noise.variance  # `nothing`: all values are set to zero
    more = gained - nothing
    sway = np.minimum(np.abs(more), 2.0 * (deviation * np.abs(places) + noise.variance))  # their change by noise
    surely = SURELY * np.sqrt(_over(counts, sway**2))
    empty = _over(counts, more) + surely > 0.0
    level = np.where(empty, np.maximum(levels[best], np.abs(values).max(axis=1)), levels[best])
    gained = np.where(empty[:, None], nothing, gained)
    total, helps = _over(counts, gained), gain.min(axis=0) < 0.0
    spread = np.where(helps, np.maximum(_over(counts, gained**2) - total**2 / size, 0.0), 0.0)
    return np.where(helps, level, 0.0), size * noise.variance + np.where(helps, total, 0.0), spread


def _counted(bins: Integers) -> tuple[Integers, Floats]:
    """Return the bins that are not empty, and their counts by row."""
    rows, least = len(bins), int(bins.min())
    number = int(bins.max()) - least + 1
    places = bins + (np.arange(rows) * number - least)[:, None]
    counts = np.bincount(places.ravel(), minlength=rows * number).reshape(rows, number).astype(np.float64)
    kept = np.flatnonzero(counts.any(axis=0))
    return kept + least, counts[:, kept]


def _over(counts: Floats, terms: Floats) -> Floats:
    """Return the sum of the terms over all cells of each row."""
    return np.asarray((counts * terms).sum(axis=1))


def _gains(values: Floats, noise: NoiseLaw, level: Floats, factor: float) -> Floats:
    """Return what each threshold (a row) adds to the estimated squared error of no denoising, for each value."""
    slope = kept_slope(values / factor, noise, level / factor)
    return np.square(np.minimum(np.abs(values), level)) - 2.0 * noise.variance * slope


def kept_slope(values: Floats, noise: NoiseLaw, level: Floats) -> Floats:
    """Return the slope of the part that a threshold subtracts, h = clip(y, -level, level).

    It is the slope that E[z h] needs (see `auto`).
    """
    step = max(noise.grid, FINEST * math.sqrt(noise.variance))
    places, edge = values / step, level / step
    if noise.p != 1.0:
        return (_clipped(places + 1.0, edge) - _clipped(places - 1.0, edge)) / 2.0
    rate = laplace_rate(noise.variance / step**2)
    return (_clipped_mean(places + 1.0, edge, rate) - _clipped_mean(places - 1.0, edge, rate)) / 2.0


def _clipped(places: Floats, edge: Floats) -> Floats:
    return np.minimum(np.maximum(places, -edge), edge)  # faster than `clip` if the edges are a column


def _clipped_mean(places: Floats, edge: Floats, rate: float) -> Floats:
    """Return E[clip(y + k, -edge, edge)] for the discrete Laplace law of k."""
    return _mean_above(-edge - places, rate) - _mean_above(edge - places, rate) - edge


def _mean_above(start: Floats, rate: float) -> Floats:
    """Return E[max(k - start, 0)] for the discrete Laplace law of k, which is symmetric."""
    far = np.abs(start)
    first = np.ceil(far)
    tail = rate**first / (1.0 + rate) * (rate / (1.0 - rate) + first - far)
    return np.where(start < 0.0, far + tail, tail)


Order = bool | tuple[int, ...] | None


def ordered_axes(values: Floats, order: Order) -> tuple[int, ...]:
    """Return the axes along which the order of the cells is meaningful.

    The axis of a line is meaningful only if stated; all axes of a grid are, unless `order` names some or none.
    """
    if isinstance(order, tuple):
        if not set(order) <= set(range(values.ndim)):
            raise InvalidArgument(f"order must name axes of the values, from 0 to {values.ndim - 1}, not {order!r}.")
        return tuple(sorted(set(order)))
    said = bool(order) if values.ndim < 2 else order is not False
    return tuple(range(values.ndim)) if said else ()
