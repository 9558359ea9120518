"""Buckets of neighboring cells that are equally uncertain, and how what is known of their sums comes back to the cells.

Arrays in, arrays out: whatever the buckets are made of is noisy already, or public.
"""

from __future__ import annotations

import numpy as np

from dpframe.denoise.noise_law import Floats, Integers
from dpframe.denoise.sums import adding_up

ROUNDS = 4  # of giving the cells what their bucket lacks, each of which cuts some at 0


def buckets_of(weights: Floats, most: int) -> Integers:
    """The bucket of each cell of a line or a grid, in buckets of about one weight, at most `most` of them.

    A part is cut across its longer side where half of its weight lies, and each half gets its share of the buckets:
    a k-d tree. Numbers follow the tree, so neighboring numbers are neighboring buckets, and so are blocks of them.

    Parameters
    ----------
    weights : array of one or two dimensions
        Above 0.
    most : int
        How many buckets to make; fewer where parts of one cell are left.

    Returns
    -------
    array of integers
        From 0 on, in the shape of `weights`.

    Examples
    --------
    >>> import numpy as np
    >>> buckets_of(np.array([1.0, 1.0, 1.0, 9.0, 9.0, 1.0, 1.0, 1.0]), 4)
    array([0, 0, 0, 1, 2, 3, 3, 3])
    """
    grid = weights if weights.ndim == 2 else weights[None, :]
    through = np.pad(np.cumsum(np.cumsum(grid, axis=0), axis=1), ((1, 0), (1, 0)))
    names = np.empty(grid.shape, dtype=np.int64)
    parts, number = [((0, grid.shape[0], 0, grid.shape[1]), most)], 0
    while parts:  # a turn for each bucket and each cut, of which there are few
        (top, bottom, left, right), wanted = parts.pop()
        if wanted <= 1 or (bottom - top) * (right - left) <= 1:
            names[top:bottom, left:right], number = number, number + 1
        elif bottom - top >= right - left:
            place, share = _half(through[top : bottom + 1, right] - through[top : bottom + 1, left])
            first, second = (top, top + place, left, right), (top + place, bottom, left, right)
            parts += _both(first, second, wanted, share)
        else:
            place, share = _half(through[bottom, left : right + 1] - through[top, left : right + 1])
            first, second = (top, bottom, left, left + place), (top, bottom, left + place, right)
            parts += _both(first, second, wanted, share)
    return names.reshape(weights.shape)


Part = tuple[int, int, int, int]


def _half(running: Floats) -> tuple[int, float]:
    """The place where about half of the weight lies on each side, and the share of the first side."""
    running = running - running[0]
    place = int(np.searchsorted(running, running[-1] / 2.0))
    place = min(max(place, 1), running.size - 2)
    return place, float(running[place] / running[-1])


def _both(first: Part, second: Part, wanted: int, share: float) -> list[tuple[Part, int]]:
    """Both sides with the buckets that each gets, at least one; the first is to be cut first."""
    here = min(max(round(wanted * share), 1), wanted - 1)
    return [(second, wanted - here), (first, here)]


def shared_out(sums: Floats) -> Floats:
    """The nearest sums of at least 0, from the whole down: the whole is cut at 0, and so is each half of what is left.

    To cut each by itself would raise all sums of several.

    Examples
    --------
    >>> import numpy as np
    >>> shared_out(np.array([5.0, -1.0, 2.0, 0.0]))
    array([4., 0., 2., 0.])
    """
    levels = [sums]
    while levels[-1].size > 1:
        levels.append(np.add.reduceat(levels[-1], np.arange(0, levels[-1].size, 2)))
    whole = np.maximum(levels[-1], 0.0)
    for parts in reversed(levels[:-1]):
        whole = adding_up(parts, np.ones(parts.size), np.arange(parts.size) // 2, whole, True)
    return whole


def within_buckets(cells: Floats, variances: Floats, names: Integers, sums: Floats) -> Floats:
    """The cells, moved so that those of each bucket add up to its sum, and none is below 0.

    What a bucket lacks goes to its cells in proportion to their variances: of independent cells that is what their sum
    says of each.

    Examples
    --------
    >>> import numpy as np
    >>> within_buckets(np.array([4.0, 1.0]), np.array([3.0, 1.0]), np.array([0, 0]), np.array([9.0]))
    array([7., 2.])
    """
    flat, bucket, each = cells.ravel(), names.ravel(), variances.ravel()
    size = sums.size
    whole = np.bincount(bucket, each, size)
    for _ in range(ROUNDS):
        lacking = sums - np.bincount(bucket, flat, size)
        flat = np.maximum(flat + (lacking / whole)[bucket] * each, 0.0)
    there = np.bincount(bucket, flat, size)
    scale = np.where(there > 0.0, sums / np.where(there > 0.0, there, 1.0), 0.0)
    return np.asarray((flat * scale[bucket]).reshape(cells.shape))
