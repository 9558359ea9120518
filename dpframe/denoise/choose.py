"""The choice of a denoiser by its estimated risk, from the noisy values alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.estimators import (
    Floats,
    NoiseLaw,
    james_stein,
    shrinkage,
    soft_threshold,
    universal_threshold,
)
from dpframe.denoise.estimators import (
    nonnegative as projected,
)

FEWEST = 3  # cells below which nothing can be learned from the others
THRESHOLDS = (1.0, 1.5, 2.0, 3.0)  # in standard deviations, besides the universal one
FINEST = 1e-4  # a finer grid, in standard deviations, is as good as this one, and differences on it would lose digits
MARGIN = 1.0  # standard errors by which a candidate must be better than nothing


@dataclass(frozen=True)
class Choice:
    """What was chosen, what it gives, and its estimated root mean squared error."""

    name: str
    values: Floats
    estimated_rmse: float


def auto(values: Floats, noise: NoiseLaw, *, nonnegative: bool | None = None) -> Floats:
    """Denoise by whichever of no denoising, James-Stein and soft thresholds has the least estimated risk.

    Parameters
    ----------
    values : array
        Noisy values, of any shape.
    noise : Mechanism
        The law of their noise.
    nonnegative : bool, optional
        Whether the true totals are known not to be negative; the result is then projected.

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    The risk of each candidate is estimated from the noisy values y = t + z (Stein 1981), on their grid g: with h what
    the candidate takes off, E[z h(y)] = v E[(H(y + g) - H(y - g)) / 2g] for noise of variance v. For discrete Laplace
    noise that is exact with H(y) = E[h(y + z')], z' a second draw of the same law; for rounded Gaussian noise H = h, up
    to v min(1, (g / sigma)^2) / 8 in cells within a step of the threshold. (Stein's own identity is the limit of a
    fine grid; on a coarse one it promises gains from zeros that the noise left alone.) A candidate is taken only where
    its estimate beats no denoising by a standard error.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.1, delta=1e-6)
    >>> noisy = np.array([30.0, -12.0, 8.0, -41.0, 22.0, -5.0, 17.0, -28.0, 3.0, 11.0] * 50)
    >>> float(np.abs(dpf.denoise.auto(noisy, noise)).max())
    0.0
    """
    return choose(values, noise, nonnegative=bool(nonnegative)).values


def choose(values: Floats, noise: NoiseLaw, *, nonnegative: bool = False) -> Choice:
    """As `auto`, with the name and the estimated error of what was chosen."""
    values = np.asarray(values, dtype=np.float64)
    spread = values.size * noise.variance
    best = Choice("none", values, math.sqrt(noise.variance))
    if values.size >= FEWEST and noise.variance > 0.0:
        least = spread
        for name, denoised, risk in _candidates(values, noise):
            if risk < least:
                least, best = risk, Choice(name, denoised, math.sqrt(max(risk, 0.0) / values.size))
    if nonnegative:
        return Choice(f"{best.name}, non-negative", projected(best.values, noise), best.estimated_rmse)
    return best


def _candidates(values: Floats, noise: NoiseLaw) -> Iterator[tuple[str, Floats, float]]:
    deviation = math.sqrt(noise.variance)
    yield "james-stein", james_stein(values, noise), james_stein_risk(values, noise)
    for level in (*(factor * deviation for factor in THRESHOLDS), universal_threshold(values.size, noise)):
        name = f"soft-threshold at {level / deviation:.2f} standard deviations"
        yield name, soft_threshold(values, noise, threshold=level), soft_threshold_risk(values, noise, level)


def james_stein_risk(values: Floats, noise: NoiseLaw) -> float:
    """An estimate of the summed squared error of James-Stein, plus its margin."""
    size, taken = values.size, shrinkage(values, noise)
    margin = MARGIN * math.sqrt(2.0 * size) * noise.variance * taken**2
    if taken == 1.0:
        return max(0.0, float(np.square(values).sum()) - size * noise.variance) + margin
    return (size - taken * (size - 2)) * noise.variance + margin


def soft_threshold_risk(values: Floats, noise: NoiseLaw, level: float) -> float:
    """An unbiased estimate of the summed squared error of a soft threshold, plus its margin."""
    moved = np.clip(values, -level, level)
    gain = np.square(moved) - 2.0 * noise.variance * _kept_slope(values, noise, level)
    margin = MARGIN * float(gain.std()) * math.sqrt(values.size)
    return values.size * noise.variance + float(gain.sum()) + margin


def _kept_slope(values: Floats, noise: NoiseLaw, level: float) -> Floats:
    """The slope of what a threshold takes off, h = clip(y, -level, level), as it counts in E[z h] (see `auto`)."""
    step = max(noise.grid, FINEST * math.sqrt(noise.variance))
    places, edge = values / step, level / step
    if noise.p != 1.0:
        return (np.clip(places + 1.0, -edge, edge) - np.clip(places - 1.0, -edge, edge)) / 2.0
    rate = _rate(noise.variance / step**2)
    return (_clipped_mean(places + 1.0, edge, rate) - _clipped_mean(places - 1.0, edge, rate)) / 2.0


def _rate(variance: float) -> float:
    """The r of the discrete Laplace law P(k) proportional to r^|k|, whose variance is 2 r / (1 - r)^2."""
    inverse = 1.0 / variance
    return 1.0 / (1.0 + inverse + math.sqrt(inverse * (2.0 + inverse)))


def _clipped_mean(places: Floats, edge: float, rate: float) -> Floats:
    """E[clip(y + k, -edge, edge)] for the discrete Laplace law of k."""
    return _mean_above(-edge - places, rate) - _mean_above(edge - places, rate) - edge


def _mean_above(start: Floats, rate: float) -> Floats:
    """E[max(k - start, 0)] for the discrete Laplace law of k, which is symmetric."""
    far = np.abs(start)
    first = np.ceil(far)
    tail = rate**first / (1.0 + rate) * (rate / (1.0 - rate) + first - far)
    return np.where(start < 0.0, far + tail, tail)
