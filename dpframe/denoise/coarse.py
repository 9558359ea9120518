"""The coarsest wavelet coefficients, too few for a threshold of their own, shrunk together."""

from __future__ import annotations

import numpy as np

from dpframe.denoise.estimators import shrinkage
from dpframe.denoise.noise_law import Floats, NoiseLaw

LEAST = 4  # coefficients below which there is next to nothing to gain


def shrunk_together(coefficients: list[Floats], noise: NoiseLaw) -> tuple[list[Floats], float, float]:
    """The coefficients of several small levels after James-Stein, what that adds to the risk, and the variance of that.

    A coefficient is a sum of many cells over the root of their number, so its noise has the variance of a cell's and
    is nearly Gaussian. With d coefficients of squared norm S the factor is (1 - (d - 2) v / S), the positive part, and
    for Gaussian noise the expected squared error is below that of the coefficients as they are, whatever the truth
    (James and Stein 1961; Stein 1981). The sum of all cells is none of them.
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
