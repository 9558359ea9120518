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
    nonnegative as projected,
    shrinkage,
    soft_threshold,
    universal_threshold,
)

FEWEST = 3  # cells below which nothing can be learned from the others
THRESHOLDS = (1.0, 1.5, 2.0, 3.0)  # in standard deviations, besides the universal one
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
    The risk of each candidate is estimated without bias from the noisy values (Stein 1981 for Gaussian noise; for
    Laplace noise of variance v, E[z h(t + z)] = v E[(f * h')(t + z)], f being the noise's own density, by the same
    argument with f - (v/2) f'' = the unit mass at 0). A candidate is taken only where its estimate beats no
    denoising by a standard error.

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
    """The slope of what a threshold takes off: 1 inside it; for Laplace noise smoothed by the noise's own density."""
    if noise.p != 1.0:
        return (np.abs(values) < level).astype(np.float64)
    b = math.sqrt(noise.variance / 2.0)
    return _laplace_cdf((level - values) / b) - _laplace_cdf((-level - values) / b)


def _laplace_cdf(x: Floats) -> Floats:
    tail = np.exp(-np.abs(x)) / 2.0
    return np.where(x < 0.0, tail, 1.0 - tail)
