"""Sums of blocks of neighboring cells: denoised cells move, as little as possible, until they agree with noisy sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpframe.denoise.estimators import Floats, Integers, NoiseLaw
from dpframe.denoise.sums import adding_up

# by depth: standard deviations up to which a difference from a noisy sum counts as noise
DOUBTS = (0.0, 0.5, 0.5, 0.5, 1.0, 1.25, 1.75, 2.25, 2.75)
LEAST = 16  # cells of a block that is compared, at least
FAR_BELOW = -1e3  # deviations below 0 from which `positive_mean` uses an expansion
SHORT = 2**20  # cells up to which blocks are numbered in 16 bits, which sort faster
SURE = 4  # halvings of a line in which the difference of two full halves is not doubted: to doubt it gains nothing
SEEN = 1.0  # standard deviations of the noise in the sum of all, above which blocks of a grid are cut at 0 together
FARTHEST = 0.5  # standard deviations of the noise by which a cell may be lowered at most

FULL = 8.0  # standard deviations of the noise in a sum of both halves, from which a half is surely full
HALVINGS = 2  # halvings in which blocks are spared: with more, the sum of all can become less accurate (see `spared`)

# weights of ranges, prefixes, the whole and single blocks in `distance`, where each matrix is divided by its trace
SHARES = (1.0, 0.5, 0.1, 0.1)
EXCHANGES = 100  # rounds in `_nearest` at most; most sums need five
SLACK = 3  # rounds without progress in which all blocks still change sides at once
ROUNDING = 1e-9  # of the largest number: a smaller difference is rounding

BUCKET_ROUNDS = 4  # rounds in which cells get the amount that their bucket lacks; each may set some cells to 0


def with_sums(
    values: Floats,
    noisy: Floats,
    noise: NoiseLaw,
    *,
    nonnegative: bool,
    doubt: tuple[float, ...] = DOUBTS,
    never_zero: bool = False,
) -> Floats:
    """Move denoised values so that sums over blocks agree with the noisy sums.

    A denoiser that moves every cell a little to one side has a large error in a sum of many cells. So the cells are
    halved again and again (a grid along its longer side), as often as there are doubts. From the whole down, each sum
    of a block is moved toward the noisy one by r (1 - (c s / r)^2), the positive part. Here r is their difference
    beyond that of the surrounding block, s is the standard deviation of the noise in r, and c is the `doubt` of that
    depth.

    In the smallest blocks, all cells move by the same amount, with two limits. No cell moves below 0 if totals cannot
    be negative. No cell moves downward by more than half a standard deviation: if nearly all cells are empty, the few
    others would otherwise take the noise of all. For the same reason, the first two halvings keep a half next to an
    empty one near its own sum, the nearer the fuller it is (`spared`). If the sum of all is more than its noise, the
    blocks of a grid are raised to 0 all together, by the errors of ranges (`nearest_sums`). In the first four halvings
    of a line, two halves that are surely full are not doubted.

    The doubts were tuned on five lines and three grids of DPBench. It is worse to treat cells that seem empty
    separately: a selection of cells by their noisy values puts noise into the sums.

    With `never_zero`, the sum of all is the noisy one. If totals cannot be negative, it is the mean of that sum under a
    flat prior on non-negative numbers: positive, and of no larger expected squared error than the noisy sum (Katz
    1961).
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
    # the amount by which each cell may be lowered
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
    """Move values as `with_sums` does, for so few cells that they are one block."""
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
    """Return the move of each cell of a line; no cell moves downward by more than its room.

    `total` is the sum of all room and moves, if it is known. In the first `sparing` halvings, full blocks next to empty
    ones are spared (`spared`). If blocks are halved `along` the axes of a grid, their sums are cut at 0 all together
    (`nearest_sums`).
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
    """Return the move of each half against the other, on each scale: the part of their difference that is believed.

    In the first `sure` halvings, two halves that are both surely full are not doubted.
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
    """Return the sums of the smallest blocks of a grid, moved as if they could be negative, then cut at 0 together."""
    more = whole - sums[0][1]
    for ((around, *_), (sizes, *_)), move in zip(pairwise(sums), moves, strict=True):
        parent = np.arange(sizes.size) // 2
        more = (sizes / around[parent]) * more[parent] + move
    return nearest_sums(sums[-1][1] + more, along)


def _lowered(room: Floats, starts: Integers, totals: Floats) -> Floats:
    """Return the nearest numbers of at least 0 that add up to the totals of their blocks, which begin at `starts`.

    The result is that of `adding_up`, without a sort. All numbers of a block are lowered by the same amount. The amount
    grows as those that would fall below 0 are left out (Michelot 1986). Raised numbers never fall below 0.
    """
    sizes = np.diff(starts, append=room.size)
    levels = (np.add.reduceat(room, starts) - totals) / sizes
    for block in np.flatnonzero(levels > 0.0).tolist():  # few blocks, each of which stays in the processor's cache
        inside = room[starts[block] : starts[block] + sizes[block]]
        levels[block] = _settled(inside, levels[block], totals[block])
    return np.maximum(room - np.repeat(levels, sizes), 0.0)


def _settled(values: Floats, level: float, total: float) -> float:
    """Return the amount by which values sink to add up to a total, if those that would fall below 0 stay at 0."""
    while (stays := values > level).any() and not stays.all():
        values = values[stays]
        level = (float(values.sum()) - total) / values.size
    return level


def halvings_of(shape: tuple[int, ...]) -> list[int]:
    """Return the axes along which cells are halved, from the whole down.

    Each halving cuts the longer side of a block.
    """
    parts, halvings = [1] * len(shape), list[int]()
    while shape and math.prod(shape) >= 2 * LEAST * math.prod(parts):
        axis = max(range(len(shape)), key=lambda dimension: shape[dimension] / parts[dimension])
        if shape[axis] < 2 * parts[axis]:
            break
        parts[axis] *= 2
        halvings.append(axis)
    return halvings


def blocks_of(shape: tuple[int, ...]) -> Integers:
    """Return the block of each cell, numbered so that the halves of a block have neighboring numbers.

    The blocks of a line are in its order.
    """
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
    """Return the part of a difference that is more than noise: the positive-part James-Stein estimate of one number."""
    ratio = np.divide(doubt * spread, np.abs(off), out=np.ones(np.shape(off)), where=np.abs(off) > doubt * spread)
    return np.asarray(off * (1.0 - ratio) * (1.0 + ratio))


def positive_mean(noisy: float, deviation: float) -> float:
    """Return the mean of a non-negative number under Gaussian noise and a flat prior."""
    from scipy.special import log_ndtr

    standardized = noisy / deviation
    if standardized < FAR_BELOW:  # differences lose digits there; the next term is smaller by the square of that
        return -deviation / standardized
    density = -0.5 * standardized**2 - 0.5 * math.log(2.0 * math.pi)
    return noisy + deviation * math.exp(density - float(log_ndtr(standardized)))


def spared(kept: Floats, whole: Floats, wanted: Floats, own: Floats, noisy: Floats, spread: Floats) -> Floats:
    """Return the sums of halves if one half cannot be lowered by its part.

    Without this, the other half would be lowered by both parts. Arrays hold the two halves of each block, one after the
    other. `kept` are their current sums, which add up to the `whole` of their block (the same for both); `wanted` are
    the sums before they were cut at 0. `own` are the sums by noisy values alone, `noisy` are the noisy sums, and
    `spread` is the standard deviation of the noise in the sum of both.

    A half with a wanted sum below 0 is kept at 0. To keep the whole would then move noise of this half to the other
    one. If two sums have independent noise, and the one that cannot be negative is measured as negative, the likeliest
    value of the other is its own noisy sum. So the other half is moved from the whole toward its own sum, and not
    beyond its wanted sum. It moves wholly if it is surely full. Otherwise, it moves by the ratio of its noisy sum to a
    surely full one: if nearly nothing is seen, both halves are likely empty, and to keep the sum of all is better.

    Even if all quarters are spared wholly, the sum of all is not farther from the truth in expectation than the noisy
    one. Take k quarters, each kept at its own sum x + z or at 0 if that is negative, with x >= 0 and standard Gaussian
    z, all independent. The expected squared error of their sum is sum r(x_i) + 2 sum_(i<j) b(x_i) b(x_j), with r' = 2 x
    P(z > x) and the bias b' = -P(z > x). In each x_i, it falls as long as x_i is less than the other biases together,
    and then rises. So it is largest if every x_i is 0 or far above. Then j quarters at 0 make it k - j/2 + j(j - 1)/(2
    pi). That is at most k, the error of the noisy sum, for j up to 4. Eight blocks of a third halving could make it
    12.9 instead of 8.
    """
    beside = (wanted < 0.0).reshape(-1, 2)[:, ::-1].ravel()
    part = np.clip(noisy / (FULL * spread), 0.0, 1.0)
    towards = np.clip(whole + part * (own - whole), whole, np.maximum(wanted, whole))
    return np.where(beside & (wanted >= 0.0), towards, kept)


def nearest_sums(wanted: Floats, halvings: Sequence[int]) -> Floats:
    """Return the nearest sums of at least 0 for the blocks of a grid.

    They are nearest in the mean squared error of sums of neighboring blocks.

    Parameters
    ----------
    wanted : array, (2**h,)
        The sums as they would be if they could be negative. The first half of the numbers is the first half of the
        grid, and so on.
    halvings : sequence of int
        The axis along which each of the h halvings goes.

    Returns
    -------
    array
        Of the same shape. Its mean squared error over ranges, prefixes, the whole and single blocks together, weighted
        by `SHARES`, is not larger than that of `wanted`, whatever the true sums are, as long as none is negative.

    Notes
    -----
    A weighted mean of squared errors of sums is the square of a norm. A projection on a convex set that holds the truth
    does not move away from it, in the norm in which it projects. Raising to 0 block by block, or half by half, is no
    such projection: it moves noise from empty blocks to full ones, and ranges over these become worse.

    Examples
    --------
    >>> nearest_sums(np.array([9.0, -3.0]), [0]).round(2)
    array([7.5, 0. ])
    """
    scale = float(np.abs(wanted).max(initial=0.0))
    if scale == 0.0 or wanted.min() >= 0.0:
        return np.maximum(wanted, 0.0)
    return _nearest(distance(tuple(halvings)), wanted / scale) * scale


@lru_cache(maxsize=8)
def distance(halvings: tuple[int, ...]) -> Floats:
    """Return the matrix M of the norm, (blocks, blocks).

    Errors e of blocks, even inside each, make an error of e'M e in sums. The ends of a range are independent and
    uniform on each axis; a prefix has one such end. On an axis of length 1, a range contains a place x with probability
    2 x (1 - x). It contains two places x < y with probability 2 x (1 - y).
    """
    blocks = np.arange(2 ** len(halvings))
    ranges, prefixes = np.ones((blocks.size, blocks.size)), np.ones((blocks.size, blocks.size))
    for axis in set(halvings):
        bits = [blocks >> place & 1 for place, along in enumerate(reversed(halvings)) if along == axis]
        parts = 2 ** len(bits)
        middle = (sum(bit << place for place, bit in enumerate(bits)) + 0.5) / parts
        low, high = np.minimum.outer(middle, middle), np.maximum.outer(middle, middle)
        apart = np.where(low == high, 1.0 / (6.0 * parts), 0.0)  # two places of one part are not both at its middle
        ranges *= 2.0 * (low * (1.0 - high) - apart)
        prefixes *= 1.0 - high - apart
    each = (ranges, prefixes, np.ones(ranges.shape), np.eye(blocks.size))
    found = sum(weight * one / np.trace(one) for weight, one in zip(SHARES, each, strict=True))
    return np.asarray(found, dtype=np.float64)


def _nearest(matrix: Floats, wanted: Floats) -> Floats:
    """Minimize (x - wanted)'M (x - wanted) over x of at least 0, by block principal pivoting (Judice and Pires 1994).

    Some numbers are held at 0, and the others solve the rest. Numbers that fall below 0, or are held against a slope,
    change sides: all at once while that helps, otherwise only the last one (Murty 1974), which ends.
    """
    slope = matrix @ wanted
    free = wanted > 0.0
    fewest, slack = wanted.size + 1, SLACK
    found = np.zeros(wanted.size)
    for _ in range(EXCHANGES):
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


def buckets_of(weights: Floats, most: int) -> Integers:
    """Return the bucket of each cell of a line or a grid, in buckets of about equal weight.

    There are at most `most` buckets. A part is cut across its longer side so that each half has about half of its
    weight, and each half gets its share of the buckets: a k-d tree. Numbers follow the tree, so neighboring numbers are
    neighboring buckets, and so are blocks of them.

    Parameters
    ----------
    weights : array of one or two dimensions
        The weights, all above 0.
    most : int
        The number of buckets to make; fewer if parts of one cell are left.

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
    while parts:  # an iteration for each bucket and each cut, which are few
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
    """Return the place where about half of the weight lies on each side, and the share of the first side."""
    running = running - running[0]
    place = int(np.searchsorted(running, running[-1] / 2.0))
    place = min(max(place, 1), running.size - 2)
    return place, float(running[place] / running[-1])


def _both(first: Part, second: Part, wanted: int, share: float) -> list[tuple[Part, int]]:
    """Return both sides with their numbers of buckets, at least one each; the first side is cut first."""
    here = min(max(round(wanted * share), 1), wanted - 1)
    return [(second, wanted - here), (first, here)]


def shared_out(sums: Floats) -> Floats:
    """Return the nearest sums of at least 0, from the whole down.

    The whole is raised to at least 0. Then the halves of each block move to the nearest numbers of at least 0 that add
    up to it. To raise each number by itself would raise all sums of several numbers.

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
    """Move the cells so that those of each bucket add up to its sum, with none below 0.

    The difference of a bucket goes to its cells in proportion to their variances. For independent cells, that is the
    share that their sum implies for each.

    Examples
    --------
    >>> import numpy as np
    >>> within_buckets(np.array([4.0, 1.0]), np.array([3.0, 1.0]), np.array([0, 0]), np.array([9.0]))
    array([7., 2.])
    """
    flat, bucket, each = cells.ravel(), names.ravel(), variances.ravel()
    size = sums.size
    whole = np.bincount(bucket, each, size)
    for _ in range(BUCKET_ROUNDS):
        lacking = sums - np.bincount(bucket, flat, size)
        flat = np.maximum(flat + (lacking / whole)[bucket] * each, 0.0)
    there = np.bincount(bucket, flat, size)
    scale = np.where(there > 0.0, sums / np.where(there > 0.0, there, 1.0), 0.0)
    return np.asarray((flat * scale[bucket]).reshape(cells.shape))
