"""The weights of a mixture that make what was seen most likely."""

from __future__ import annotations

import math

import numpy as np

from dpframe.denoise.noise_law import Floats

ROUNDS = 40  # at most, each of three steps
NATS = 0.25  # of the log-likelihood of all cells: a likelihood ratio that tells nothing
LITTLE = 0.02  # of the same: what a round gains at least where one more is worth it
ENOUGH = 1e-7  # of the mean log-likelihood: less than that is no gain, of however many cells
FAINT = 1e-100  # densities below which a row is out of reach of all atoms
LEFT = 1e-3  # of its weight that an atom keeps in a leap


def most_likely(kernel: Floats, counts: Floats) -> Floats:
    """The weights of the atoms (columns) that make the counts of the rows most likely.

    An accelerated EM from equal weights: two steps of it, a leap in their direction (the third scheme of Varadhan and
    Roland 2008), and a step from there, where the leap gained. A step multiplies the weight of atom j by D_j, the mean
    of kernel_ij / density_i over the cells; and since the log-likelihood is concave, log(max D) bounds what any weights
    could gain in its mean (Lindsay 1983). It stops where that is a quarter of a nat in the log-likelihood of all cells,
    or where a round gains a fiftieth: likelihood ratios of so little tell nothing, and weights that are fitted further
    follow the noise. (Stopped at ten times that, priors of one point are still too wide.)
    """
    prior = np.full(kernel.shape[1], 1.0 / kernel.shape[1])
    near = kernel @ prior > FAINT
    if not near.all():
        kernel, counts = kernel[near], counts[near]
    size = float(counts.sum())
    if not size > 0.0:
        return prior
    shares, before = counts / size, -math.inf
    near_enough, little = max(ENOUGH, NATS / size), max(ENOUGH, LITTLE / size)
    for _ in range(ROUNDS):
        density = kernel @ prior
        likelihood = float(shares @ np.log(density))
        factors = _factors(kernel, shares, density)
        once = prior * factors
        twice = once * _factors(kernel, shares, kernel @ once)
        if likelihood - before < little or math.log(factors.max()) < near_enough:
            return twice
        before = likelihood
        start = _leap(prior, once, twice)
        density = kernel @ start
        better = float(shares @ np.log(density)) >= likelihood
        prior = start * _factors(kernel, shares, density) if better else twice
    return prior


def _factors(kernel: Floats, shares: Floats, density: Floats) -> Floats:
    """By how much a step of the EM multiplies each weight; the weights still add up to 1."""
    return np.asarray((shares / density) @ kernel)


def _leap(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Two steps of the EM, extrapolated."""
    change = once - start
    bend = twice - once
    bend -= change
    bends = float(bend @ bend)
    if bends == 0.0:
        return twice
    length = max(1.0, math.sqrt(float(change @ change) / bends))
    change *= 2.0 * length
    bend *= length**2
    change += start
    change += bend
    np.maximum(change, twice * LEFT, out=change)
    change /= change.sum()
    return change
