"""Estimators with one signature: ``(values, noise, *, structure...) -> values``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dpframe.denoise.noise_law import Floats, NoiseLaw
from dpframe.errors import InvalidArgument

Denoiser = Callable[[Floats, Any], Floats]
Centre = float | Floats | Literal["mean"]


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


def james_stein(values: Floats, noise: NoiseLaw, *, centre: Centre = 0.0) -> Floats:
    """Shrink all values toward a centre by one factor, the positive part of James and Stein's.

    Parameters
    ----------
    values : array
        Noisy values; fewer than 3 (4 around their mean) are returned as they are.
    noise : Mechanism
        The law of their noise.
    centre : float, array or "mean"
        What they are moved toward: a public number, public numbers of the same shape, or the mean of the values.

    Returns
    -------
    array
        Of the same shape: centre + (values - centre) * max(0, 1 - (d - 2) variance / sum of squares), the squares
        taken around the centre; d - 3 in place of d - 2 around the mean.

    Raises
    ------
    InvalidArgument
        If `centre` is another word.

    Notes
    -----
    Balle and Wang (ICML 2018), section 4, after James and Stein (1961): for Gaussian noise its mean squared error is
    below that of the noisy values whatever the truth. Around the mean: Efron and Morris (JASA 1973), section 2, after
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
    return middle + rest * (1.0 - shrinkage(rest, noise, fitted(centre))) + 0.0  # no -0.0


def rounded(values: Floats, noise: NoiseLaw) -> Floats:
    """The nearest whole numbers, halves to the even one.

    Parameters
    ----------
    values : array
        Values of totals that are whole numbers, such as counts; for instance after another denoiser.
    noise : Mechanism
        The law of their noise (not needed here).

    Returns
    -------
    array
        Of the same shape. For reading, not for accuracy: a value may move away from the truth by up to a half.

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
    """The nearest values that never fall (or never rise) along the last axis.

    Parameters
    ----------
    values : array
        Noisy values of totals that are known to be in order, such as cumulative counts.
    noise : Mechanism
        The law of their noise (not needed here).
    increasing : bool
        Whether the totals never fall; else they never rise.

    Returns
    -------
    array
        Of the same shape. Never farther from the truth than `values`, if the truth is in order: the projection on a
        convex set that holds the truth.

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
    """The centre in numbers."""
    if isinstance(centre, str):
        if centre != "mean":
            raise InvalidArgument(f"centre must be a number, an array or 'mean', not {centre!r}.")
        return np.asarray(values.mean() if values.size else 0.0)
    return np.asarray(centre, dtype=np.float64)


def fitted(centre: Centre) -> int:
    """The number of parameters of the centre that were taken from the values."""
    return int(isinstance(centre, str))


def shrinkage(rest: Floats, noise: NoiseLaw, fitted: int = 0) -> float:
    """The part of the distance from a centre that James-Stein takes off: between 0 and 1."""
    squares = float(np.square(rest).sum())
    if rest.size < 3 + fitted or squares == 0.0:
        return 0.0
    return min(1.0, (rest.size - 2 - fitted) * noise.variance / squares)
