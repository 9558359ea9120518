"""The noise as denoisers know it: exact probabilities on the grid, and their shares in bins of the grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

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
    """The facts of a noise, worked out once: a mechanism may work out its variance whenever it is asked."""

    p: float
    variance: float
    scale: float
    grid: float

    @classmethod
    def of(cls, noise: NoiseLaw) -> Self:
        """The facts of any noise."""
        return cls(noise.p, noise.variance, noise.scale, noise.grid)

    def times(self, factor: float) -> Self:
        """The same noise in numbers that are multiplied by this."""
        return type(self)(self.p, self.variance * factor**2, self.scale * factor, self.grid * factor)


def shares(noise: NoiseLaw, width: int, reach: int) -> Floats:
    """The shares of the noise that are `width` m +- width / 2 grid steps from the truth, for m of -reach to reach.

    The width is odd, so that the bounds lie between grid points, where the law is known exactly: p = 1 is the discrete
    Laplace law or the rounded one, every other p a generalized Gaussian rounded to the grid.
    """
    bounds: Floats = (np.arange(reach + 1, dtype=np.float64) + 0.5) * width
    tails = _laplace_tails(noise, bounds) if noise.p == 1.0 else _rounded_tails(noise, bounds)
    upper = -np.diff(tails)
    return np.concatenate([upper[::-1], [1.0 - 2.0 * tails[0]], upper])


def laplace_rate(variance: float) -> float:
    """The r of the discrete Laplace law P(k) proportional to r^|k|, whose variance is 2 r / (1 - r)^2."""
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
