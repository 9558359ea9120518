"""Sums that stay: denoised cells are moved, as little as possible, until their sums agree with the noisy ones."""

from __future__ import annotations

import math

import numpy as np

from dpframe.denoise.noise_law import Floats, Integers, NoiseLaw
from dpframe.denoise.sums import adding_up

# by depth: how many of its own standard deviations a noisy sum may be off before it is believed in full
LITTLE = (0.0, 0.0, 0.0, 0.0, 0.75, 1.0, 1.25, 1.5, 1.75)
MORE = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25, 1.5, 1.75)
LEAST = 16  # cells of a block that is compared, at least
FARTHEST = 0.5  # standard deviations of the noise by which a cell may be lowered


def with_sums(
    values: Floats,
    noisy: Floats,
    noise: NoiseLaw,
    *,
    nonnegative: bool,
    doubt: tuple[float, ...] = LITTLE,
    never_zero: bool = False,
) -> Floats:
    """The denoised values, moved until sums over blocks of cells agree with the noisy sums.

    A denoiser that moves every cell a little to one side is off by much in a sum of many. So the cells are halved again
    and again (a grid along its longer side), and from the whole down each sum of a block is moved toward the noisy one
    by r (1 - (c s / r)^2), the positive part: r is what they differ by beyond what the block around them differs by, s
    the standard deviation of the noise in r, and c the `doubt` of that depth. In the smallest blocks all cells move by
    the same, but none below 0 where totals cannot be negative, and none by more than half a standard deviation
    downward: where nearly all cells are empty, the few others would else pay for the noise of all.

    The noise of all cells is wide against that of a typical rectangle of a grid, so there, with `MORE` doubt, a noisy
    sum has to differ by more than its own error before it counts.

    With `never_zero` the sum of all is the noisy one, or, where totals cannot be negative, its mean under a flat prior
    on what is not: positive, and of no larger expected squared error than the noisy sum (Katz 1961).
    """
    missing = (noisy - values).ravel()
    if not noise.variance > 0.0 or not missing.any():
        return values
    deviation = math.sqrt(noise.variance)
    room = np.full(missing.size, FARTHEST * deviation)  # by how much a cell may be lowered
    room = np.minimum(room, np.maximum(values.ravel(), 0.0)) if nonnegative else room
    leaf, levels = blocks_of(values.shape, len(doubt) - 1)
    sums = [tuple(_summed(one, leaf) for one in (np.ones(missing.size), room, missing))]
    for parent in reversed(levels):
        sums.insert(0, tuple(_summed(one, parent) for one in sums[0]))
    (size,), (own,), (off,) = sums[0]
    kept = np.array([own + _believed(off, deviation * np.sqrt(size), 0.0 if never_zero else doubt[0])])
    if never_zero and nonnegative:
        rest = float(values.sum()) - own  # of the sum, below which it cannot fall
        kept = np.array([_positive_mean(float(noisy.sum()), deviation * math.sqrt(size)) - rest])
    kept = np.maximum(kept, 0.0)
    for depth, parent in enumerate(levels, start=1):
        (around, _, other), (sizes, mine, differ) = sums[depth - 1], sums[depth]
        share = sizes / around[parent]
        spread = deviation * np.sqrt(sizes * (1.0 - share))
        kept = adding_up(
            mine + _believed(differ - share * other[parent], spread, doubt[depth]), sizes, parent, kept, True
        )
    moved = adding_up(room, np.ones(room.size), leaf, kept, True) - room
    return np.asarray(values + moved.reshape(values.shape))


def blocks_of(shape: tuple[int, ...], deepest: int) -> tuple[Integers, list[Integers]]:
    """The smallest block of each cell; and for each depth, from the whole down, the block that each one is half of."""
    parts, levels = [1] * len(shape), []
    while shape and len(levels) < deepest and math.prod(shape) >= LEAST * 2 * math.prod(parts):
        axis = max(range(len(shape)), key=lambda one: shape[one] / parts[one])
        above, parts[axis] = tuple(parts), parts[axis] * 2
        places = list(np.indices(parts))
        places[axis] //= 2
        levels.append(np.ravel_multi_index(tuple(places), above).ravel())
    leaf = np.zeros(shape, dtype=np.int64)
    for axis, (length, count) in enumerate(zip(shape, parts, strict=True)):
        place = np.arange(length) * count // length
        leaf = leaf * count + place.reshape([-1 if one == axis else 1 for one in range(len(shape))])
    return leaf.ravel(), levels


def _believed(off: Floats, spread: Floats, doubt: float) -> Floats:
    """The part of a difference that is more than noise: the positive part of James and Stein's, for one number."""
    ratio = np.divide(doubt * spread, np.abs(off), out=np.ones(np.shape(off)), where=np.abs(off) > doubt * spread)
    return np.asarray(off * (1.0 - ratio) * (1.0 + ratio))


def _positive_mean(noisy: float, deviation: float) -> float:
    """The mean of what is not negative under Gaussian noise and a flat prior."""
    from scipy.special import log_ndtr

    place = max(noisy / deviation, -1e6)  # below it no digits are left
    density = -0.5 * place**2 - 0.5 * math.log(2.0 * math.pi)
    return noisy + deviation * math.exp(density - float(log_ndtr(place)))


def _summed(values: Floats, block: Integers) -> Floats:
    return np.asarray(np.bincount(block, values), dtype=np.float64)
