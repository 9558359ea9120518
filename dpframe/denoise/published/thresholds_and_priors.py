"""Baselines from papers: thresholds, and the posterior mean under a prior that the caller states."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpframe.denoise.estimators import (
    Floats,
    NoiseLaw,
    best_threshold,
    checked_threshold,
    shares,
    soft_threshold,
    universal_threshold,
)
from dpframe.errors import InvalidArgument

FINENESS = 16  # points for each standard deviation of the noise at which a density is read, if the grid is finer
REACH = 40  # standard deviations of the noise around a value within which its total is assumed
BLOCK = 2**12  # values that are handled together, which bounds the rows of a table

Prior = tuple[float, float] | Callable[[Floats], Floats]


def hard_threshold(values: Floats, noise: NoiseLaw, *, threshold: float | None = None) -> Floats:
    """Set every value nearer to zero than the threshold to zero; keep the others.

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
    Donoho and Johnstone (1994). Unlike a soft threshold, it does not move large values.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> dpf.denoise.hard_threshold(np.array([-0.5, 12.0]), noise, threshold=2.0)
    array([ 0., 12.])
    """
    values = np.asarray(values, dtype=np.float64)
    level = universal_threshold(values.size, noise) if threshold is None else checked_threshold(threshold)
    return np.where(np.abs(values) < level, 0.0, values) + 0.0  # no -0.0


def sure_threshold(values: Floats, noise: NoiseLaw) -> Floats:
    """Apply the soft threshold with the least estimated risk among 16 levels.

    No denoising is one of them.

    Parameters
    ----------
    values : array
        Noisy values, of any shape.
    noise : Mechanism
        The law of their noise.

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    Donoho and Johnstone (JASA 1995), with the estimate of the risk that `auto` describes, for noise on a grid. If that
    is not better by a standard error than leaving nothing, the threshold is the largest value, which leaves nothing.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> noisy = np.array([0.0, 1.0, -1.0, 2.0, 0.0, -2.0, 40.0, 0.0, -1.0, 1.0])
    >>> dpf.denoise.sure_threshold(noisy, noise).round(1)
    array([ 0. ,  0. ,  0. ,  0. ,  0. ,  0. , 37.4,  0. ,  0. ,  0. ])
    """
    return soft_threshold(values, noise, threshold=best_threshold(values, noise).level)


def posterior_mean(values: Floats, noise: NoiseLaw, *, prior: Prior) -> Floats:
    """Replace each value by the posterior mean of its total, under a public prior.

    Parameters
    ----------
    values : array
        Noisy values, of any shape; their positions do not matter.
    noise : Mechanism
        The law of their noise, of any shape p.
    prior : pair of numbers, or callable
        The mean and the standard deviation of Gaussian totals; or their density, a function that takes an array of
        totals and returns one of the same shape, not negative. The density need not add up to 1. Choose it from what is
        known beforehand, never from the data.

    Returns
    -------
    array
        Of the same shape. A value without any density within 40 standard deviations stays as it is.

    Raises
    ------
    InvalidArgument
        If the prior is neither, its standard deviation is not above 0, or its density is negative or not finite.

    Notes
    -----
    Balle and Wang (ICML 2018), section 4: for Gaussian noise of variance v and a Gaussian prior of mean m and variance
    s, it is (s y + v m) / (s + v). For other noise, that is the best linear estimate under this prior, and a pair gives
    this estimate. With a density, the sum over totals is taken at 16 points in a standard deviation (or at each grid
    point), with the exact probabilities of the noise around them.

    If totals follow the prior, no other function of one value has a smaller expected squared error. If they do not, the
    result may be far worse than no denoising: `empirical_bayes` learns the prior instead.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    >>> dpf.denoise.posterior_mean(np.array([-20.0, 5.0, 120.0]), noise, prior=(50.0, 15.0)).round(1)
    array([12.9, 26.2, 87.1])
    >>> dpf.denoise.posterior_mean(np.array([-20.0, 5.0, 120.0]), noise, prior=lambda total: total >= 0.0).round(1)
    array([  9.5,  11.3, 120. ])
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0 or not noise.variance > 0.0:
        return values.copy()
    if callable(prior):
        return _under_density(values, noise, prior)
    mean, deviation = _pair(prior)
    weight = 1.0 / (1.0 + noise.variance / deviation**2)
    return mean + weight * (values - mean) + 0.0  # no -0.0


def _pair(prior: object) -> tuple[float, float]:
    try:
        mean, deviation = map(float, prior)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InvalidArgument(f"prior must be a pair (mean, standard deviation) or a density, not {prior!r}.") from None
    if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0.0):
        raise InvalidArgument(f"prior must have a finite mean and a standard deviation above 0, not {prior!r}.")
    return mean, deviation


def _under_density(values: Floats, noise: NoiseLaw, density: Callable[[Floats], Floats]) -> Floats:
    deviation = math.sqrt(noise.variance) / noise.grid
    width = 2 * int(deviation / FINENESS / 2.0) + 1
    reach = max(1, math.ceil(REACH * deviation / width))
    law, offsets = shares(noise, width, reach), np.arange(-reach, reach + 1) * (width * noise.grid)
    different, places = np.unique(values, return_inverse=True)
    means = np.empty(different.size)
    for start in range(0, different.size, BLOCK):
        block = different[start : start + BLOCK]
        likely = _read(density, block[:, None] + offsets) * law
        known = (total := likely.sum(axis=1)) > 0.0
        moved = np.divide(likely @ offsets, total, out=np.zeros(block.size), where=known)
        means[start : start + BLOCK] = block + moved
    return means[places].reshape(values.shape) + 0.0  # no -0.0


def _read(density: Callable[[Floats], Floats], totals: Floats) -> Floats:
    """Return the values of the caller's function, scaled so that nothing underflows; only proportions matter."""
    densities = np.asarray(density(totals), dtype=np.float64)
    if densities.shape != totals.shape or not np.isfinite(densities).all() or densities.min(initial=0.0) < 0.0:
        raise InvalidArgument(
            "prior must return an array of the shape that it got, with finite values that are not negative."
        )
    return np.asarray(densities / np.maximum(densities.max(axis=1, keepdims=True), np.finfo(np.float64).tiny))
