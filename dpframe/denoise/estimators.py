"""Estimators with one signature: ``(values, noise, *, structure...) -> values``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NoiseLaw(Protocol):
    """What a denoiser may know: the shape, variance and grid of the noise. Mechanisms are such laws."""

    @property
    def p(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def grid(self) -> float: ...


Denoiser = Callable[[Floats, Any], Floats]


def nonnegative(values: Floats, noise: NoiseLaw) -> Floats:
    """The nearest values that are not negative.

    Parameters
    ----------
    values : array
        Noisy values of totals that cannot be negative, such as counts.
    noise : Mechanism
        The law of their noise (not needed here).

    Returns
    -------
    array
        Of the same shape. Never farther from the truth than `values`, if the truth is non-negative: the projection
        on a convex set that holds the truth.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    >>> dpf.denoise.nonnegative(np.array([-3.0, 4.0]), noise)
    array([0., 4.])
    """
    return np.maximum(np.asarray(values, dtype=np.float64), 0.0) + 0.0  # no -0.0


def james_stein(values: Floats, noise: NoiseLaw) -> Floats:
    """Shrink all values toward zero by one factor, the positive part of James and Stein's.

    Parameters
    ----------
    values : array
        Noisy values; fewer than 3 are returned as they are.
    noise : Mechanism
        The law of their noise.

    Returns
    -------
    array
        Of the same shape: values * max(0, 1 - (d - 2) variance / sum of squares).

    Notes
    -----
    Balle and Wang (ICML 2018), section 4, after James and Stein (1961): for Gaussian noise its mean squared error is
    below that of the noisy values whatever the truth.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6)
    >>> dpf.denoise.james_stein(np.array([3.0, -4.0, 5.0, 2.0]), noise).round(2)
    array([ 1.01, -1.34,  1.68,  0.67])
    """
    values = np.asarray(values, dtype=np.float64)
    return values * (1.0 - shrinkage(values, noise)) + 0.0  # no -0.0


def shrinkage(values: Floats, noise: NoiseLaw) -> float:
    """How much James-Stein takes off, as a part of each value: between 0 and 1."""
    squares = float(np.square(values).sum())
    if values.size < 3 or squares == 0.0:
        return 0.0
    return min(1.0, (values.size - 2) * noise.variance / squares)


def soft_threshold(values: Floats, noise: NoiseLaw, *, threshold: float | None = None) -> Floats:
    """Move every value toward zero by the threshold, and to zero those nearer than it.

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
    Balle and Wang (ICML 2018), section 4, after Donoho and Johnstone (1994). Good where most totals are zero; on
    dense totals the universal threshold can be far worse than no denoising, so ``"auto"`` weighs it first.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=1)
    >>> dpf.denoise.soft_threshold(np.array([-0.5, 12.0]), noise, threshold=2.0)
    array([ 0., 10.])
    """
    values = np.asarray(values, dtype=np.float64)
    level = universal_threshold(values.size, noise) if threshold is None else threshold
    return np.sign(values) * np.maximum(np.abs(values) - level, 0.0) + 0.0  # no -0.0


def universal_threshold(size: int, noise: NoiseLaw) -> float:
    """Donoho and Johnstone's threshold for `size` values."""
    return math.sqrt(noise.variance) * math.sqrt(2.0 * math.log(max(size, 2)))
