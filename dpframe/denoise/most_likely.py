"""The weights of a mixture that make what was seen most likely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpframe.denoise.noise_law import Floats

ROUNDS = 40  # at most, each of three steps
NATS = 0.25  # of the log-likelihood of all cells: a likelihood ratio that tells nothing
LITTLE = 0.02  # of the same: what a round gains at least where one more is worth it
ENOUGH = 1e-7  # of the mean log-likelihood: less than that is no gain, of however many cells
FAINT = 1e-100  # densities below which a row is out of reach of all atoms
LEFT = 1e-3  # of its weight that an atom keeps in a leap
AT_ONCE = 9_000  # entries of a matrix that is multiplied at once: for more, libraries start threads, which wait busily


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
    seen, before = Seen.of(kernel, counts / size), -math.inf
    near_enough, little = max(ENOUGH, NATS / size), max(ENOUGH, LITTLE / size)
    for _ in range(ROUNDS):
        density = seen.density(prior)
        likelihood, factors = seen.likelihood(density), seen.factors(density)
        once = prior * factors
        twice = once * seen.factors(seen.density(once))
        if likelihood - before < little or math.log(factors.max()) < near_enough:
            return twice
        before = likelihood
        start = _leap(prior, once, twice)
        density = seen.density(start)
        prior = start * seen.factors(density) if seen.likelihood(density) >= likelihood else twice
    return prior


@dataclass(frozen=True)
class Seen:
    """Rows that were seen, in blocks: how likely each is by each atom, and its share of all."""

    kernel: Floats  # block x row x atom
    shares: Floats  # block x row

    @classmethod
    def of(cls, kernel: Floats, shares: Floats) -> Self:
        """The last block is filled up with rows of no share."""
        number, atoms = kernel.shape
        blocks = -(-number // max(1, AT_ONCE // atoms))
        rows = -(-number // blocks)
        filled, share = np.ones((blocks * rows, atoms)), np.zeros(blocks * rows)
        filled[:number], share[:number] = kernel, shares
        return cls(filled.reshape(blocks, rows, atoms), share.reshape(blocks, rows))

    def density(self, prior: Floats) -> Floats:
        """The probability of each row."""
        return np.asarray(self.kernel @ prior)

    def likelihood(self, density: Floats) -> float:
        """The mean log-likelihood."""
        return float(self.shares.ravel() @ np.log(density).ravel())

    def factors(self, density: Floats) -> Floats:
        """By how much a step of the EM multiplies each weight; the weights still add up to 1."""
        shares = self.shares / density
        if len(shares) == 1:
            return np.asarray(shares[0] @ self.kernel[0])
        return np.asarray((shares[:, None] @ self.kernel).sum(axis=(0, 1)))


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
