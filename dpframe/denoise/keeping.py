"""Sums that stay: denoised cells are moved, as little as possible, until their sums agree with the noisy ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dpframe.denoise.nearest_sums import nearest_sums
from dpframe.denoise.noise_law import Floats, Integers, NoiseLaw
from dpframe.denoise.sparing import FULL, HALVINGS, spared
from dpframe.denoise.sums import adding_up

# by depth: how many of its own standard deviations a noisy sum may be off before it is believed in full
DOUBTS = (0.0, 0.5, 0.5, 0.5, 1.0, 1.25, 1.75, 2.25, 2.75)
LEAST = 16  # cells of a block that is compared, at least
FAR_BELOW = -1e3  # deviations
SHORT = 2**20  # cells up to which blocks are numbered in 16 bits, which are quick to sort
SURE = 4  # halvings of a line in which what two full halves differ by is believed: to doubt it gains nothing there
SEEN = 1.0  # standard deviations of the noise in the sum of all from which on blocks of a grid are cut at 0 together
FARTHEST = 0.5  # standard deviations of the noise by which a cell may be lowered


def with_sums(
    values: Floats,
    noisy: Floats,
    noise: NoiseLaw,
    *,
    nonnegative: bool,
    doubt: tuple[float, ...] = DOUBTS,
    never_zero: bool = False,
) -> Floats:
    """The denoised values, moved until sums over blocks of cells agree with the noisy sums.

    A denoiser that moves every cell a little to one side is off by much in a sum of many. So the cells are halved again
    and again (a grid along its longer side), as often as there are doubts, and from the whole down each sum of a block
    is moved toward the noisy one by r (1 - (c s / r)^2), the positive part: r is what they differ by beyond what the
    block around them differs by, s the standard deviation of the noise in r, and c the `doubt` of that depth. In the
    smallest blocks all cells move by the same, but none below 0 where totals cannot be negative, and none by more than
    half a standard deviation downward: where nearly all cells are empty, the few others would else pay for the noise of
    all. For the same reason a half beside an empty one is kept near its own sum, the fuller the nearer, in the first
    two halvings (`sparing.spared`), and the blocks of a grid are cut at 0 all together, by what ranges are off by
    (`nearest_sums.nearest_sums`), if the sum of all is more than its noise. In the first four halvings of a line two
    halves that are surely full are not doubted.

    The doubts were tuned on five lines and three grids of DPBench. To treat cells that seem empty apart is worse: to
    select cells by their noisy values puts noise into the sums.

    With `never_zero` the sum of all is the noisy one, or, where totals cannot be negative, its mean under a flat prior
    on what is not: positive, and of no larger expected squared error than the noisy sum (Katz 1961).
    """
    missing = noisy - values
    if not noise.variance > 0.0 or not missing.any():
        return values
    deviation = math.sqrt(noise.variance)
    if values.size < 2 * LEAST:
        return _as_one_block(values, missing, deviation, doubt[0], nonnegative=nonnegative, never_zero=never_zero)
    blocks = blocks_of(values.shape)
    order = np.argsort(blocks.astype(np.uint16) if blocks.size <= SHORT else blocks, kind="stable")
    ordered, off = values.ravel()[order], missing.ravel()[order]
    # by how much a cell may be lowered
    room = np.clip(ordered, 0.0, FARTHEST * deviation) if nonnegative else np.full(off.size, FARTHEST * deviation)
    total = None
    if never_zero:
        total = float(noisy.sum())
        total = positive_mean(total, deviation * math.sqrt(off.size)) if nonnegative else total
        total -= float(ordered.sum()) - float(room.sum())
    sparing = HALVINGS if nonnegative and total is None else 0
    is_seen = float(noisy.sum()) > SEEN * deviation * math.sqrt(off.size)
    along = halvings_of(values.shape) if sparing and is_seen else []
    along = along if len(set(along)) > 1 else []
    moved = _moved(room, off, ordered + off, deviation, doubt, total, sparing, along)
    back = np.empty(off.size)
    back[order] = moved
    return np.asarray(values + back.reshape(values.shape))


def _as_one_block(
    values: Floats, missing: Floats, deviation: float, doubt: float, *, nonnegative: bool, never_zero: bool
) -> Floats:
    """As `with_sums`, of so few cells that they are one block."""
    far = FARTHEST * deviation
    room = np.minimum(np.maximum(values, 0.0), far) if nonnegative else np.full(values.shape, far)
    spread = deviation * math.sqrt(values.size)
    if never_zero:
        whole = float((values + missing).sum())
        whole = positive_mean(whole, spread) if nonnegative else whole
        total = whole - float(values.sum()) + float(room.sum())
    else:
        off, most = float(missing.sum()), doubt * spread
        ratio = most / abs(off) if abs(off) > most else 1.0
        total = float(room.sum()) + off * (1.0 - ratio) * (1.0 + ratio)
    total = max(total, 0.0)
    level = (float(room.sum()) - total) / room.size
    level = _settled(room.ravel(), level, total) if level > 0.0 else level
    return np.asarray(values + (np.maximum(room - level, 0.0) - room))


def _moved(
    room: Floats,
    missing: Floats,
    noisy: Floats,
    deviation: float,
    doubt: tuple[float, ...],
    total: float | None,
    sparing: int,
    along: list[int],
) -> Floats:
    """By how much the cells of a line move, each at most by its room downward.

    `total` is what room and moves together add up to, where it is known; in the first `sparing` halvings full blocks
    beside empty ones are spared (`sparing.spared`). If blocks are halved `along` the axes of a grid, their sums are
    cut at 0 all together (`nearest_sums.nearest_sums`).
    """
    depth = min(len(doubt) - 1, max(int(math.log2(missing.size / LEAST)), 0) if missing.size else 0)
    starts = -(-np.arange(2**depth) * missing.size // 2**depth)
    counts = np.diff(starts, append=missing.size).astype(np.float64)
    sums = [np.stack([counts, *(np.add.reduceat(weights, starts) for weights in (room, missing, noisy))])]
    for _ in range(depth):
        sums.insert(0, sums[0].reshape(4, -1, 2).sum(axis=2))
    size, room_of_all, off, _ = sums[0]
    whole = room_of_all + _believed(off, deviation * np.sqrt(size), doubt[0]) if total is None else np.array([total])
    on_grid = len(along) >= depth > 0
    moves = _moves(sums, deviation, doubt, 0 if on_grid else SURE)
    if on_grid:
        return _lowered(room, starts, _together(sums, whole, moves, along[:depth])) - room
    kept = np.maximum(whole, 0.0)
    for level, ((around, inside, _, _), (sizes, mine, differ, measured)) in enumerate(pairwise(sums)):
        parent = np.arange(sizes.size) // 2
        whole, kept = kept, adding_up(mine + moves[level], sizes, parent, kept, True)
        if level < sparing:
            wanted = mine + moves[level] + (sizes / around[parent]) * (whole - inside)[parent]
            spread_of_both = deviation * np.sqrt(around)[parent]
            kept = spared(kept, whole[parent], wanted, mine + differ, measured, spread_of_both)
    return _lowered(room, starts, kept) - room


def _moves(sums: list[Floats], deviation: float, doubt: tuple[float, ...], sure: int) -> list[Floats]:
    """By how much each half is to move against the other, on each scale: what is believed of what they differ by.

    In the first `sure` halvings two halves that are both surely full are not doubted.
    """
    found = []
    for level, ((around, _, other, _), (sizes, _, differ, measured)) in enumerate(pairwise(sums)):
        parent = np.arange(sizes.size) // 2
        share = sizes / around[parent]
        full = (measured > FULL * deviation * np.sqrt(around)[parent]).reshape(-1, 2).all(axis=1)
        doubts = np.where(np.repeat(full, 2) & (level < sure), 0.0, doubt[level + 1])
        spread = deviation * np.sqrt(sizes * (1.0 - share))
        found.append(_believed(differ - share * other[parent], spread, doubts))
    return found


def _together(sums: list[Floats], whole: Floats, moves: list[Floats], along: list[int]) -> Floats:
    """The sums of the smallest blocks of a grid: moved as if they could be negative, then cut at 0 all together."""
    more = whole - sums[0][1]
    for ((around, *_), (sizes, *_)), move in zip(pairwise(sums), moves, strict=True):
        parent = np.arange(sizes.size) // 2
        more = (sizes / around[parent]) * more[parent] + move
    return nearest_sums(sums[-1][1] + more, along)


def _lowered(room: Floats, starts: Integers, totals: Floats) -> Floats:
    """The nearest numbers of at least 0 that add up to the totals of their blocks, which begin at these places.

    As `sums.adding_up`, without a sort: all of a block are lowered by the same, and by ever more, since those that
    would fall below 0 do not count any longer (Michelot 1986). Where they are raised, none falls below 0.
    """
    sizes = np.diff(starts, append=room.size)
    levels = (np.add.reduceat(room, starts) - totals) / sizes
    for block in np.flatnonzero(levels > 0.0).tolist():  # of which there are few, and each stays in the cache
        inside = room[starts[block] : starts[block] + sizes[block]]
        levels[block] = _settled(inside, levels[block], totals[block])
    return np.maximum(room - np.repeat(levels, sizes), 0.0)


def _settled(values: Floats, level: float, total: float) -> float:
    """By how much all values sink so that they add up to a total, where those that would fall below 0 stay at 0."""
    while (stays := values > level).any() and not stays.all():
        values = values[stays]
        level = (float(values.sum()) - total) / values.size
    return level


def halvings_of(shape: tuple[int, ...]) -> list[int]:
    """The axes along which cells are halved, from the whole down: always the longer side of a block."""
    parts, halvings = [1] * len(shape), list[int]()
    while shape and math.prod(shape) >= 2 * LEAST * math.prod(parts):
        axis = max(range(len(shape)), key=lambda dimension: shape[dimension] / parts[dimension])
        if shape[axis] < 2 * parts[axis]:
            break
        parts[axis] *= 2
        halvings.append(axis)
    return halvings


def blocks_of(shape: tuple[int, ...]) -> Integers:
    """The block of each cell, numbered so that halves of a block are neighbors: a line is in its own order."""
    parts, halves = [1] * len(shape), []
    for axis in halvings_of(shape):
        parts[axis] *= 2
        halves.append((axis, np.arange(shape[axis]) * parts[axis] // shape[axis] % 2))
    blocks = np.zeros(shape, dtype=np.int64)
    for dimension in range(len(shape)):
        bits = [half << place for place, (axis, half) in enumerate(reversed(halves)) if axis == dimension]
        blocks += np.sum(bits or [np.zeros(shape[dimension], dtype=np.int64)], axis=0).reshape(
            [-1 if other == dimension else 1 for other in range(len(shape))]
        )
    return blocks.ravel()


def _believed(off: Floats, spread: Floats, doubt: float | Floats) -> Floats:
    """The part of a difference that is more than noise: the positive part of James and Stein's, for one number."""
    ratio = np.divide(doubt * spread, np.abs(off), out=np.ones(np.shape(off)), where=np.abs(off) > doubt * spread)
    return np.asarray(off * (1.0 - ratio) * (1.0 + ratio))


def positive_mean(noisy: float, deviation: float) -> float:
    """The mean of what is not negative under Gaussian noise and a flat prior."""
    from scipy.special import log_ndtr

    standardized = noisy / deviation
    if standardized < FAR_BELOW:  # where differences lose digits; the next term is smaller by the square of that
        return -deviation / standardized
    density = -0.5 * standardized**2 - 0.5 * math.log(2.0 * math.pi)
    return noisy + deviation * math.exp(density - float(log_ndtr(standardized)))
