"""Several estimates weighed by their estimated risks, in place of a hard choice among them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.noise_law import Floats, NoiseLaw

SIMPLEST = 2.0  # standard errors by which an estimate must be better than the simplest one to be chosen
MARGIN = 3.0  # standard errors by which an estimate must seem better than the chosen one before it gets a weight
STEPS = 100  # exchanges between two estimates; most tables need a few
ENOUGH = 1e-9  # of the largest risk: what an exchange must gain
LARGEST = 2**17  # cells up to which estimates are weighed: with more the choice is sure, and each takes passes


@dataclass(frozen=True)
class Estimate:
    """Values, the estimate of their summed squared error, and the variance of that estimate beyond what values tell.

    Two estimates of risk share the noise of the noisy values; what they differ by has a variance of about v |t - t'|^2
    for values t and t' and noise of variance v, and that of cross-fitting besides.
    """

    values: Floats
    risk: float
    besides: float = 0.0

    def doubt(self, other: Estimate, noise: NoiseLaw) -> float:
        """The standard error of what the two risks differ by."""
        apart = self.values - other.values
        squares = float(np.square(apart, out=apart).sum())
        return math.sqrt(noise.variance * squares + max(self.besides, other.besides))


@dataclass(frozen=True)
class Weighed:
    """The weighed mean of some estimates, the estimate of its risk, and the weight of the chosen one."""

    values: Floats
    risk: float
    chosen: float


def weighed(chosen: Estimate, others: list[Estimate], noise: NoiseLaw) -> Weighed:
    """The mean of these estimates whose estimated risk is least, with a margin for each that was not chosen.

    For weights w of sum 1 the squared error of the mean of estimates t_k is the mean of theirs less that of their
    squared distances from it, sum w_k R_k - 1/2 sum w_k w_l |t_k - t_l|^2, whatever the truth. With unbiased estimates
    of the R_k that is an unbiased estimate too, convex in w, and its minimum is near the best mean there is (Leung and
    Barron 2006; Dai, Rigollet and Zhang 2012; Bellec 2018). An estimate that was not chosen first has `MARGIN` standard
    errors added to its risk, so that it gets a weight only where it surely helps.
    """
    every = [chosen, *others]
    base = chosen.values
    rest = np.stack([(one.values - base).ravel() for one in every])  # of like size: squares lose no digits
    products = rest @ rest.T
    squares = np.diag(products)
    apart = np.maximum(squares[:, None] + squares - 2.0 * products, 0.0)
    risks = np.array([one.risk for one in every])
    besides = np.maximum(np.array([one.besides for one in every]), chosen.besides)
    margins = MARGIN * np.sqrt(noise.variance * apart[0] + besides)
    margins[0] = 0.0
    weights = least_mean(risks + margins, apart)
    risk = float(weights @ risks - 0.5 * weights @ apart @ weights)
    return Weighed(base + (weights @ rest).reshape(base.shape), risk, float(weights[0]))


def least_mean(risks: Floats, apart: Floats) -> Floats:
    """The weights, not negative and of sum 1, that minimise w'R - w'D w / 2, by exchanges between two with exact steps.

    The first estimate starts with all the weight. D holds squared distances, for which -w'D w is convex where weights
    add up to a constant.
    """
    weights = np.zeros(risks.size)
    weights[0] = 1.0
    tolerance = ENOUGH * max(float(np.abs(risks).max()), 1e-300)
    for _ in range(STEPS):
        slope = risks - apart @ weights
        to = int(np.argmin(slope))
        used = np.flatnonzero(weights > 0.0)
        source = int(used[np.argmax(slope[used])])
        gain, distance = float(slope[source] - slope[to]), float(apart[to, source])
        if gain <= tolerance or distance == 0.0:
            break
        step = min(gain / (2.0 * distance), float(weights[source]))
        weights[to] += step
        weights[source] -= step
    return weights
