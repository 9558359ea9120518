"""Prefixes, ranges and totals of the result of `auto` are at least as accurate as the noisy ones.

Simulations use fixed seeds, so their results never change.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from benchmarks.dpbench import errors as benchmark_errors
from dpframe import Gaussian, Laplace, denoise, noise
from dpframe.denoise import block_sums, sums
from dpframe.denoise.choose import choose, is_dominated

LAWS = {"laplace": Laplace(1, 10.0), "gaussian": Gaussian(1.0, 14.0)}
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


def truths():
    """Return shapes for which sums of denoised cells have large errors if the cells are not moved."""
    generator = np.random.default_rng(4)
    places = np.arange(1024)
    return {
        "small counts": generator.poisson(6, 1024),
        "half empty": np.where(places < 512, 0, 9),
        "smooth": np.rint(40 * (1 + np.sin(places / 90))).astype(np.int64),
        "heavy tail": np.rint(generator.pareto(1.2, 1024) * 12).astype(np.int64),
        "grid": generator.poisson(np.add.outer(np.arange(32), np.arange(32)) / 4),
    }


# Moves of cells


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (64,), (1000,), (40, 3), (33, 65), (6, 7, 20)])
def test_blocks_are_halves_of_halves(shape):
    """The blocks of a line keep its order; on a grid, each block is a rectangle at every depth."""
    block = block_sums.blocks_of(shape)
    assert block.size == math.prod(shape)
    if len(shape) == 1:
        assert (np.diff(block) >= 0).all()
    sizes = np.bincount(block, minlength=1)
    assert (sizes.size & (sizes.size - 1)) == 0
    assert sizes.size == 1 or sizes.min() >= block_sums.LEAST // 2
    places = np.indices(shape).reshape(len(shape), -1) if block.size else np.zeros((0, 0))
    for depth in range(sizes.size.bit_length()):
        for one in np.unique(block >> depth):
            spans = [np.unique(axis[block >> depth == one]) for axis in places]
            assert math.prod(span.size for span in spans) == (block >> depth == one).sum()  # a rectangle


def test_blocks_are_lowered_as_a_sort_would_do_it():
    generator = np.random.default_rng(6)
    for case in range(400):
        size = int(generator.integers(1, 300))
        number = min(2 ** int(generator.integers(0, 4)), 2 ** int(math.log2(size)))
        starts = -(-np.arange(number) * size // number)
        leaf = np.repeat(np.arange(number), np.diff(starts, append=size))
        room = np.minimum(generator.exponential(1.0, size), (9.0, 0.5, 0.1)[case % 3])
        room = np.where(generator.random(size) < 0.3 * (case % 2), 0.0, room)
        totals = np.bincount(leaf, room) * generator.choice([0.0, 0.001, 0.1, 0.5, 0.9, 1.0, 1.3, 20.0], number)
        expected = sums.adding_up(room, np.ones(size), leaf, totals, True)
        assert block_sums._lowered(room, starts, totals) == pytest.approx(expected, abs=1e-9)


@both
def test_what_was_not_changed_is_not_moved(law):
    values = noisy(np.arange(500), law, 1)
    assert block_sums.with_sums(values, values, law, nonnegative=False) is values


@both
def test_the_sum_of_all_is_the_noisy_one_and_eighths_are_near_theirs(law):
    values = noisy(truths()["small counts"], law, 1) + 30.0
    for guess in (np.full(1024, values.mean() + 3.0), np.repeat(values.reshape(-1, 64).mean(axis=1), 64) + 2.0):
        kept = block_sums.with_sums(guess, values, law, nonnegative=True)
        assert kept.sum() == pytest.approx(values.sum())
        apart = kept.reshape(8, -1).sum(axis=1) - values.reshape(8, -1).sum(axis=1)
        assert np.abs(apart).max() < 1.5 * math.sqrt(128 * law.variance)


@both
def test_no_cell_falls_below_zero_or_by_more_than_half_a_deviation(law):
    generator = np.random.default_rng(1)
    values = noisy(np.zeros(2048), law, 1)
    guess = np.where(generator.random(2048) < 0.02, 500.0, 0.0)
    kept = block_sums.with_sums(guess, values - 30.0, law, nonnegative=True)
    assert kept.min() >= 0.0
    assert (guess - kept).max() <= block_sums.FARTHEST * math.sqrt(law.variance) * (1 + 1e-9)
    free = block_sums.with_sums(guess, values - 30.0, law, nonnegative=False)
    assert (guess - free).max() <= block_sums.FARTHEST * math.sqrt(law.variance) * (1 + 1e-9)
    assert free.sum() < kept.sum()


@both
def test_a_grid_stays_where_sums_are_within_their_noise(law):
    values = noisy(np.full((64, 64), 20), law, 1)
    guess, doubt = np.full((64, 64), 20.0), (1.0,) * 5 + block_sums.DOUBTS[5:]
    moved = block_sums.with_sums(guess, values, law, nonnegative=True, doubt=doubt)
    assert np.square(moved - guess).mean() < 0.02 * law.variance
    off = block_sums.with_sums(guess + 5.0, values, law, nonnegative=True, doubt=doubt)
    assert abs(off.sum() - values.sum()) <= 0.3 * math.sqrt(law.variance * values.size)


def test_huge_values_keep_their_digits():
    values = np.array([1e30, -1e25, 3.0, 0.0] * 20)
    assert np.isfinite(block_sums.with_sums(values * 0.5, values, Laplace(1, 3.0), nonnegative=False)).all()


def test_the_positive_mean_is_no_worse_than_the_noisy_sum():
    """Katz (1961): this holds for every true sum. The estimate is the mean of a Gaussian truncated at 0."""
    draws = np.random.default_rng(1).normal(size=20_000)
    for truth in (0.0, 0.3, 1.0, 3.0):
        found = np.array([block_sums.positive_mean(truth + one, 1.0) for one in draws])
        assert (found > 0.0).all()
        assert np.square(found - truth).mean() < 1.0 + 6 * np.square(draws).std() / math.sqrt(draws.size)
    places = np.linspace(0.0, 12.0, 200_001)
    weights = np.exp(-np.square(places + 1.5) / 2.0)
    assert block_sums.positive_mean(-1.5, 1.0) == pytest.approx((weights @ places) / weights.sum(), rel=1e-4)
    assert block_sums.positive_mean(-1e9, 1.0) >= 0.0
    assert block_sums.positive_mean(1e9, 1.0) == 1e9


# Results of `auto`


def off_by(found, truth):
    """Return the mean squared errors of ranges, of prefixes (corners of a grid) and of the total."""
    off = np.pad(found - truth, [(1, 0)] * truth.ndim)
    for axis in range(truth.ndim):
        off = np.cumsum(off, axis=axis)
    generator = np.random.default_rng(6)
    ends = [np.sort(generator.integers(0, size + 1, (400, 2)), axis=1).T for size in truth.shape]
    if truth.ndim == 1:
        ranges = off[ends[0][1]] - off[ends[0][0]]
    else:
        (low, high), (left, right) = ends
        ranges = off[high, right] - off[low, right] - off[high, left] + off[low, left]
    return np.array([np.square(ranges).mean(), np.square(off).mean(), off.ravel()[-1] ** 2])


@pytest.mark.slow
@both
@pytest.mark.parametrize("name", truths())
def test_ranges_prefixes_and_totals_are_no_worse_than_the_noisy_ones(law, name):
    truth = truths()[name]
    found, raw, cells = np.zeros(3), np.zeros(3), np.zeros(2)
    for seed in range(12):
        values = noisy(truth, law, seed)
        chosen = choose(values, law, nonnegative=True, order=True if truth.ndim == 1 else None).values
        found, raw = found + off_by(chosen, truth), raw + off_by(values, truth)
        cells += np.square(chosen - truth).sum(), np.square(values - truth).sum()
    assert (np.sqrt(found / raw) < 1.1).all(), np.sqrt(found / raw)
    assert cells[0] < 0.95 * cells[1]


@both
@pytest.mark.parametrize("order", [True, None], ids=["line", "groups"])
def test_values_that_are_only_cut_at_0_keep_their_sum(law, order):
    """A tenth of the cells is empty: to cut them at 0 would raise the sum of all by half a deviation of its noise."""
    truth = np.where(np.arange(200) % 10 == 3, 0, np.random.default_rng(3).integers(500, 100_000, 200))
    for seed in range(2):
        values = noisy(truth, law, seed)
        found = choose(values, law, nonnegative=True, order=order)
        assert found.name == "none, non-negative, with its sums"
        assert found.values.min() >= 0.0
        assert found.values.sum() == pytest.approx(values.sum(), rel=1e-12)


@both
@pytest.mark.parametrize("size", [3, 12, 54, 300])
def test_sums_of_values_are_never_all_zero(law, size):
    """The values are mostly noise, and their sum may be negative."""
    for seed in range(60):
        values = noisy(np.full(size, 1), law, seed)
        found = choose(values, law, nonnegative=True, never_zero=True).values
        assert found.min() >= 0.0
        assert found.sum() > 0.0
        if size >= 54:
            assert (found > 0.0).mean() > 0.5


def test_sums_in_a_release_keep_every_week():
    weeks = pl.DataFrame({"week": np.arange(540) % 54, "cost": [1.0] * 540})
    for seed in range(15):
        with dpf.Ledger(epsilon=9), noise.insecure_bits(seed):
            found = weeks.dp.group_by("week", keys=range(54)).sum("cost", bounds=(0, 100), epsilon=0.05)
        assert (found["cost_sum"] > 0.0).mean() > 0.5
        spread = math.sqrt(54 * found.dp.provenance["statistics"][0]["variance"])
        assert abs(found["cost_sum"].sum() - max(found["cost_sum_noisy"].sum(), 0.0)) < 1.0 * spread


# Tables in which noise dominates


@both
def test_noise_that_drowns_all_differences_is_told_from_differences(law):
    spread = math.sqrt(law.variance)
    drowned = [is_dominated(noisy(np.full(54, 400), law, seed), law) for seed in range(200)]
    assert sum(drowned) >= 195
    level = np.arange(54) * spread / 4.0
    assert not any(is_dominated(noisy(level, law, seed), law) for seed in range(200))
    spike = np.zeros(500)
    spike[100] = 25 * spread
    assert not any(is_dominated(noisy(spike, law, seed), law) for seed in range(50))


def test_denoising_by_name_moves_no_sums():
    law = LAWS["laplace"]
    values = noisy(np.zeros(200), law, 1)
    taken = min(1.0, 198 * law.variance / (values @ values))
    assert denoise.james_stein(values, law).tolist() == pytest.approx((values * (1 - taken)).tolist())


# Sums of a grid that are cut at 0 together


def halved(across, down):
    """Return the axes of `across` and `down` halvings, taken in turn."""
    return [axis for step in range(max(across, down)) for axis in (0, 1) if step < (across, down)[axis]]


@pytest.mark.parametrize("halvings", [[0], [0, 0, 0], halved(2, 2), halved(4, 4), [1, 1, 0, 1, 2]])
def test_nearest_sums_are_the_projection(halvings):
    """Optimality conditions: the slope is 0 for sums above 0, and at least 0 for sums at 0."""
    generator = np.random.default_rng(7)
    matrix = block_sums.distance(tuple(halvings))
    assert np.linalg.eigvalsh(matrix).min() > 0.0
    for case in range(15):
        size = matrix.shape[0]
        full = generator.exponential(1.0, size) * (generator.random(size) < generator.random())
        wanted = (generator.normal(0.0, 1.0, size) + (0.0, 1.0, 100.0)[case % 3] * full) * 10.0 ** generator.integers(9)
        found = block_sums.nearest_sums(wanted, halvings)
        slope = matrix @ (found - wanted) / np.abs(wanted).max()
        assert found.min() >= 0.0
        assert slope.min() > -1e-7
        assert np.abs(slope[found > 0.0]).max(initial=0.0) < 1e-7


def test_nearest_sums_are_no_farther_from_any_truth():
    """The error of ranges, prefixes, the whole and blocks together is no larger in any draw, not only in the mean."""
    generator = np.random.default_rng(8)
    halvings = halved(3, 3)
    matrix = block_sums.distance(tuple(halvings))
    for _ in range(300):
        truth = generator.exponential(5.0, 64) * (generator.random(64) < generator.random())
        wanted = truth + generator.laplace(0.0, 2.0, 64)
        off, before = block_sums.nearest_sums(wanted, halvings) - truth, wanted - truth
        assert off @ matrix @ off <= before @ matrix @ before * (1.0 + 1e-9)


def test_the_distance_is_what_ranges_and_prefixes_are_off_by():
    """The matrix is compared with all ranges of a fine line whose errors are even inside each block."""
    fine, blocks = 256, 4
    whole = np.kron(np.eye(blocks), np.full((1, fine // blocks), blocks / fine))  # from block errors to cell errors
    through = np.pad(np.cumsum(whole, axis=1), ((0, 0), (1, 0)))
    ends = np.array([(low, high) for low in range(fine + 1) for high in range(low, fine + 1)])
    ranges = through[:, ends[:, 1]] - through[:, ends[:, 0]]
    parts = [
        found / np.trace(found) for found in (ranges @ ranges.T, through @ through.T, np.ones((4, 4)), np.eye(blocks))
    ]
    expected = sum(weight * part for weight, part in zip(block_sums.SHARES, parts, strict=True))
    assert block_sums.distance((0, 0)) == pytest.approx(expected, rel=0.02)


def test_the_places_of_blocks_are_those_of_cells():
    """The entry of `distance` for two blocks follows from the centers of their cells."""
    shape = (64, 16)
    blocks = block_sums.blocks_of(shape).reshape(shape)
    matrix = block_sums.distance(tuple(block_sums.halvings_of(shape)))
    middle = np.array([np.argwhere(blocks == one).mean(axis=0) + 0.5 for one in range(64)]) / shape
    low, high = np.minimum(middle[:, None], middle), np.maximum(middle[:, None], middle)
    rest = matrix - sum(
        w * one / np.trace(one) for w, one in zip(block_sums.SHARES[2:], (np.ones((64, 64)), np.eye(64)), strict=True)
    )
    expected = [np.prod(2.0 * low * (1.0 - high), axis=2), np.prod(1.0 - high, axis=2)]
    apart = (low != high).all(axis=2)
    fitted = np.linalg.lstsq(np.array([one[apart] for one in expected]).T, rest[apart], rcond=None)[0]
    assert fitted @ [one[apart] for one in expected] == pytest.approx(rest[apart], rel=1e-9)


@both
def test_a_grid_with_its_rows_in_one_part_is_nearer_than_cut_half_by_half(law, monkeypatch):
    """Sums that are cut at 0 all together do not move the noise of empty blocks to full ones."""
    place = np.minimum.outer(np.arange(32) % 20, np.arange(32) % 20) > 11
    truth = np.where(place, 12, 0)
    ranges = []
    for seen in (block_sums.SEEN, math.inf):
        monkeypatch.setattr(block_sums, "SEEN", seen)
        ranges.append(0.0)
        for seed in range(24):
            values = noisy(truth, law, seed)
            kept = block_sums.with_sums(np.where(place, 12.0, 0.5), values, law, nonnegative=True)
            ranges[-1] += benchmark_errors(kept - truth)[3]
    assert ranges[0] < ranges[1]


@both
def test_halves_that_are_surely_full_are_not_doubted(law):
    values = noisy(np.full(1024, 200), law, 2)
    guess = np.full(1024, values.mean()) + np.where(np.arange(1024) < 512, 0.3, -0.3)
    kept = block_sums.with_sums(guess, values, law, nonnegative=True)
    sixteenths = [one.reshape(16, -1).sum(axis=1) for one in (kept, values)]
    assert sixteenths[0] == pytest.approx(sixteenths[1])
