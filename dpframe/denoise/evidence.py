"""Evidence that noisy cells have more than one level: what noise makes in one table of a hundred is none."""

from __future__ import annotations

import math

import numpy as np

from dpframe.denoise.noise_law import Floats, NoiseLaw

RARE = 100.0  # tables of noise alone, in one of which a test is wrong


def is_level(values: Floats, noise: NoiseLaw, axes: tuple[int, ...]) -> bool:
    """Tell whether all cells may have one level: no cell and no block of neighbors stands out, nor do all together.

    Parameters
    ----------
    values : array
        Noisy values.
    noise : NoiseLaw
        The law of their noise.
    axes : tuple of int
        The axes along which neighbors may be alike. Blocks are 2, 4, 8 and more cells wide along each.

    Returns
    -------
    bool
        Each of four tests is passed by about 99 in 100 tables of noise around one level: of the largest cell and of
        the largest sum of a block (blocks overlap by half), by bounds on their tails; of the squares of cells, and of
        those of blocks of each width together, by the chi-squared law that has the variance of their sum. False also
        where squares of cells are too small for this noise, as after another denoiser, where a value is not finite, and
        where the grid is coarser than the noise, so that these laws do not hold.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    >>> noisy = law.add_noise(np.zeros(4096, dtype=np.int64)).astype(float)
    >>> is_level(noisy + 7.0 * (np.arange(4096) < 1024), law, (0,))
    False
    """
    if noise.grid > math.sqrt(noise.variance):
        return False
    rest = (values - values.mean()) / math.sqrt(noise.variance)
    if not float(np.abs(rest).max()) < largest_cell(rest.size, noise) or _are_small(rest, noise):
        return False
    widths = max((rest.shape[axis].bit_length() for axis in axes), default=0)
    parts, cells = rest, 1
    while not _are_seen(parts, cells, noise, 1 if cells == 1 else widths):
        wide = [axis for axis in axes if parts.shape[axis] > 2]
        if not wide:
            return True
        blocks = parts
        for axis in wide:  # two neighbors, from each place on
            blocks, parts = _pairs(blocks, axis, 1), _pairs(parts, axis, 2)
        cells *= 2 ** len(wide)
        if float(np.abs(blocks).max()) >= largest_block(cells, blocks.size, noise):
            return False
    return False


def largest_cell(cells: int, noise: NoiseLaw) -> float:
    """The deviations of the noise that none of so many cells exceeds in 99 of 100 tables; at least 3."""
    deviation = math.sqrt(noise.variance)
    if noise.p == 1.0:  # on its grid P(|z| >= k) = 2 r^k / (1 + r)
        rare = math.log(RARE * cells) + math.log(2.0 / (1.0 + math.exp(-noise.grid / noise.scale)))
        return max(rare * noise.scale / deviation, 3.0)
    from scipy.special import gammainccinv

    unit = math.sqrt(math.gamma(1.0 / noise.p) / math.gamma(3.0 / noise.p))  # the scale of variance 1
    far = unit * math.pow(gammainccinv(1.0 / noise.p, 1.0 / (RARE * cells)), 1.0 / noise.p)
    return max(far + 0.5 * noise.grid / deviation, 3.0)


def spread_of_squares(noise: NoiseLaw) -> float:
    """The variance of the square of a noise of variance 1: its kurtosis less 1."""
    kurtosis = math.gamma(5.0 / noise.p) * math.gamma(1.0 / noise.p) / math.gamma(3.0 / noise.p) ** 2
    return kurtosis - 1.0 + (noise.grid**2 / noise.variance if noise.p == 1.0 else 0.0)  # of the discrete law


def largest_block(cells: int, blocks: int, noise: NoiseLaw) -> float:
    """As `largest_cell`, of sums of so many cells, of which there are so many: a bound.

    P(sum of m > sqrt(2 m x) + c x) <= e^(-x) for noise of variance 1 whose tails are those of Laplace, which fall by e
    within c, or lighter (Boucheron, Lugosi and Massart 2013, section 2.4); for those of a Gaussian or lighter c is 0.
    """
    heavy = noise.scale / math.sqrt(noise.variance) if noise.p == 1.0 else math.sqrt(0.5) if noise.p < 2.0 else 0.0
    rare = math.log(2.0 * RARE * blocks)
    return math.sqrt(2.0 * cells * rare) + heavy * rare


def _are_seen(parts: Floats, cells: int, noise: NoiseLaw, tests: int) -> bool:
    """Tell whether squares of sums of so many cells add up to more than noise makes of them, in one of the tests."""
    return float(np.square(parts).sum()) / cells >= _squares(parts.size, cells, noise, 1.0 / (RARE * tests))


def _are_small(rest: Floats, noise: NoiseLaw) -> bool:
    """Tell whether squares of cells add up to less than noise makes of them: something was done to it."""
    return float(np.square(rest).sum()) <= _squares(rest.size, 1, noise, 1.0 - 1.0 / RARE)


def _squares(parts: int, cells: int, noise: NoiseLaw, share: float) -> float:
    """The number that squares of so many sums of cells exceed in this share of tables, for noise of variance 1."""
    from scipy.special import chdtri

    times = 1.0 + (spread_of_squares(noise) - 2.0) / (2.0 * cells)  # of the variance that squares of Gaussians have
    return times * float(chdtri((parts - 1) / times, share))


def _pairs(parts: Floats, axis: int, step: int) -> Floats:
    """The sums of two neighbors along an axis, each `step` places after the one before; the last may be alone."""
    parts = np.moveaxis(parts, axis, 0)
    firsts, seconds = parts[: None if step > 1 else -1 : step], parts[1::step]
    sums = firsts.copy()
    sums[: len(seconds)] += seconds
    return np.moveaxis(sums, 0, axis)
