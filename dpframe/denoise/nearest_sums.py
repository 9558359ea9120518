"""Sums of blocks of a grid that cannot be negative, the nearest in what prefixes, ranges and the whole are off by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpframe.denoise.noise_law import Floats

# the parts that ranges, prefixes, the whole and single blocks have in the distance, each over the mean of its own
SHARES = (1.0, 0.5, 0.1, 0.1)
ROUNDS = 100  # of exchanges; most sums need five
SLACK = 3  # rounds that exchange all at once, though none is better than the best so far
ROUNDING = 1e-9  # of the largest number


def nearest_sums(wanted: Floats, halvings: Sequence[int]) -> Floats:
    """The nearest sums of at least 0 of blocks of a grid, in the mean squared error of sums of neighboring blocks.

    Parameters
    ----------
    wanted : array, (2**h,)
        What the sums would be if they could be negative. The first half of the numbers is the first half of the grid,
        and so on.
    halvings : sequence of int
        The axis along which each of the h halvings goes.

    Returns
    -------
    array
        Of the same shape. Its mean squared error over ranges, prefixes, the whole and single blocks together, weighed
        as `SHARES` says, is not larger than that of `wanted`, whatever the true sums are, as long as none is negative.

    Notes
    -----
    A weighed mean of squared errors of sums is the square of a norm, and a projection on a convex set that holds the
    truth does not go away from it, in the norm in which it projects. To cut at 0 block by block, or half by half, is
    no such projection: it moves noise from empty blocks to full ones, and ranges over these pay for it.

    Examples
    --------
    >>> nearest_sums(np.array([9.0, -3.0]), [0]).round(2)
    array([7.5, 0. ])
    """
    scale = float(np.abs(wanted).max(initial=0.0))
    if scale == 0.0 or wanted.min() >= 0.0:
        return np.maximum(wanted, 0.0)
    return _projected(distance(tuple(halvings)), wanted / scale) * scale


@lru_cache(maxsize=8)
def distance(halvings: tuple[int, ...]) -> Floats:
    """The matrix of the norm, (blocks, blocks): what errors e of blocks, even inside each, make of sums is e'M e.

    The ends of a range are independent and uniform on each axis, a prefix has one such end. A place x on an axis of
    length 1 is in a range with the chance 2 x (1 - x), and two places x < y together with 2 x (1 - y).
    """
    blocks = np.arange(2 ** len(halvings))
    ranges, prefixes = np.ones((blocks.size, blocks.size)), np.ones((blocks.size, blocks.size))
    for axis in set(halvings):
        bits = [blocks >> place & 1 for place, along in enumerate(reversed(halvings)) if along == axis]
        parts = 2 ** len(bits)
        middle = (sum(bit << place for place, bit in enumerate(bits)) + 0.5) / parts
        low, high = np.minimum.outer(middle, middle), np.maximum.outer(middle, middle)
        apart = np.where(low == high, 1.0 / (6.0 * parts), 0.0)  # two places of one part are not in its middle
        ranges *= 2.0 * (low * (1.0 - high) - apart)
        prefixes *= 1.0 - high - apart
    each = (ranges, prefixes, np.ones(ranges.shape), np.eye(blocks.size))
    found = sum(weight * one / np.trace(one) for weight, one in zip(SHARES, each, strict=True))
    return np.asarray(found, dtype=np.float64)


def _projected(matrix: Floats, wanted: Floats) -> Floats:
    """The x of at least 0 with the least (x - wanted)'M (x - wanted): block principal pivoting (Judice and Pires 1994).

    Some are held at 0, the others solve for what is left. Those that fall below 0 and those that are held against a
    slope change sides, all at once while that helps, else only the last of them (Murty 1974), which ends.
    """
    slope = matrix @ wanted
    free = wanted > 0.0
    fewest, slack = wanted.size + 1, SLACK
    found = np.zeros(wanted.size)
    for _ in range(ROUNDS):
        found = np.zeros(wanted.size)
        found[free] = np.linalg.solve(matrix[np.ix_(free, free)], slope[free])
        against = slope - matrix @ found
        wrong = np.where(free, found < -ROUNDING, against > ROUNDING * matrix.max())
        number = int(wrong.sum())
        if not number:
            break
        slack = SLACK if number < fewest else slack - 1
        fewest = min(fewest, number)
        if slack < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free = free ^ wrong
    return np.maximum(found, 0.0)
