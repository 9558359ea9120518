"""Weighted averages of estimates, spared blocks, and coarse coefficients that are shrunk together."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpframe import Gaussian, Laplace, noise
from dpframe.denoise import block_sums
from dpframe.denoise import choose as choosing
from dpframe.denoise.choose import Estimate, choose, least_mean, weighed
from dpframe.denoise.estimators import best_threshold
from dpframe.denoise.wavelets import shrunk, shrunk_together

LAW = Gaussian(1.0, 10.0)


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


def squares(found):
    """Return the squared errors of the whole, of its first half and of its second quarter, of 512 cells."""
    return np.square([found.sum(), found[:256].sum(), found[128:256].sum()])


def test_the_weights_are_the_best_ones():
    """They minimize the squared error if the risks are the true squared errors of the estimates."""
    generator = np.random.default_rng(1)
    truth = generator.normal(size=50)
    every = truth + generator.normal(size=(3, 50)) * np.array([[1.0], [2.0], [1.5]])
    off = every - truth
    apart = np.square(every[:, None] - every[None]).sum(axis=2)
    weights = least_mean(np.square(off).sum(axis=1), apart)
    assert weights.sum() == pytest.approx(1.0)
    assert weights.min() >= 0.0
    best = min(
        float(np.square(np.array([one, other, 1.0 - one - other]) @ off).sum())
        for one in np.linspace(0, 1, 101)
        for other in np.linspace(0, 1.0 - one, 51)
    )
    assert np.square(weights @ off).sum() <= best + 1e-3 * best


def test_an_estimate_that_is_not_surely_better_has_no_weight():
    chosen = Estimate(np.zeros(100), 1_000.0)
    near = Estimate(np.full(100, 0.5), 990.0)  # the two risks differ by 10, with a standard error of 50
    assert weighed(chosen, [near], LAW).chosen == 1.0
    better = Estimate(np.full(100, 5.0), -5_000.0)
    found = weighed(chosen, [better], LAW)
    assert found.chosen == 0.0
    assert found.risk == -5_000.0
    assert (found.values == better.values).all()
    unsure = Estimate(np.full(100, 5.0), -5_000.0, besides=1e8)
    assert weighed(chosen, [unsure], LAW).chosen == 1.0


def test_the_risk_of_a_mean_is_below_the_mean_of_risks():
    one = Estimate(np.tile([1.0, -1.0], 200) * 30.0, 3e5)
    other = Estimate(np.tile([-1.0, 1.0], 200) * 30.0, 3e5)  # as wrong, in the opposite direction
    found = weighed(one, [other], LAW)
    assert 0.0 < found.chosen < 1.0
    assert found.risk < 3e5


def test_coarse_coefficients_are_nearer_after_their_shrinkage():
    """By Stein's lemma, this holds for any true coefficients, and the estimate of the gain is unbiased."""
    generator = np.random.default_rng(1)
    for size in (0.0, 1.0, 3.0, 30.0):
        truth = size * LAW.scale * np.array([1.0, -1.0, 0.5, 0.0, 2.0, 0.0, 1.0])
        gained, told = [], []
        for _ in range(2_000):
            drawn = truth + math.sqrt(LAW.variance) * generator.normal(size=7)
            levels, gain, _ = shrunk_together([drawn[:4], drawn[4:6], drawn[6:]], LAW)
            gained.append(
                float(np.square(np.concatenate(levels) - truth).sum()) - float(np.square(drawn - truth).sum())
            )
            told.append(gain)
        assert np.mean(gained) < 0.0
        spread = np.std(np.subtract(gained, told)) / math.sqrt(2_000)
        assert abs(np.mean(gained) - np.mean(told)) < 6.0 * spread
    assert shrunk_together([np.ones(2), np.ones(1)], LAW)[1] == 0.0  # too few coefficients


@pytest.mark.parametrize("law", [Laplace(1, 10.0), LAW], ids=["laplace", "gaussian"])
def test_wavelets_of_noise_alone_are_near_its_mean(law):
    """Levels without a signal are dropped, so that little more than the noise of the mean of all is left."""
    left = [np.square(shrunk(noisy(np.zeros(4096), law, seed), law, (0,)).values).sum() for seed in range(8)]
    assert np.mean(left) / law.variance < 20.0


def test_one_full_cell_is_no_level_that_is_left_out():
    values = noisy(np.where(np.arange(1024) == 300, 100_000, 0), LAW, 1)
    found = best_threshold(values, LAW)
    assert found.level < 100.0 * LAW.scale
    truth = np.where(np.arange(1024) == 300, 100_000, 0)
    off = choose(values, LAW, nonnegative=True, order=True).values - truth
    assert np.square(off).sum() < 0.1 * 1024 * LAW.variance


def test_a_full_block_does_not_pay_for_the_noise_of_an_empty_one():
    """The noise of the empty cells is negative here: it is left out of the sum, not subtracted from the full block."""
    truth = np.where(np.arange(1024) < 256, 5_000.0, 0.0)
    values = truth - np.where(np.arange(1024) < 256, 0.0, 6.0)
    kept = block_sums.with_sums(truth, values, LAW, nonnegative=True)
    assert kept[256:].sum() == 0.0
    assert kept[:256].sum() == pytest.approx(truth.sum(), abs=1.0)
    free = block_sums.with_sums(truth, values, LAW, nonnegative=False)
    assert free.sum() == pytest.approx(values.sum())


def test_sums_beside_empty_blocks_are_no_worse_than_noisy_ones():
    """The whole, the first half and the second quarter over 100 draws; most cells are empty."""
    truth = np.where((np.arange(512) >= 128) & (np.arange(512) < 200), 2_000, 0)
    off, raw = np.zeros(3), np.zeros(3)
    for seed in range(100):
        values = noisy(truth, LAW, seed)
        kept = block_sums.with_sums(np.where(truth > 0, values, 0.0), values, LAW, nonnegative=True)
        off, raw = off + squares(kept - truth), raw + squares(values - truth)
    assert (off < 1.1 * raw).all()
    assert off[0] < 0.95 * raw[0]


def off_by(truth, guess):
    """Return the root mean squared errors of prefixes and of the whole over 300 draws, relative to the noisy ones."""
    found = np.zeros((2, 2))
    for seed in range(300):
        values = noisy(truth, LAW, seed)
        kept = block_sums.with_sums(guess(values), values, LAW, nonnegative=True)
        for place, one in enumerate((kept, values)):
            through = np.cumsum(one - truth)
            found[place] += np.square(through).mean(), through[-1] ** 2
    return np.sqrt(found[0] / found[1])


def test_blocks_that_are_each_cut_at_0_do_not_add_up():
    """One full cell per eighth: to spare eighths too would make the error of the whole 1.22 times the noisy one."""
    truth = np.where(np.arange(1024) % 128 == 40, 1_000_000, 0)
    assert (off_by(truth, lambda values: np.where(truth > 0, values, 0.0)) < 1.02).all()


def test_few_rows_in_front_do_not_pay_for_the_empty_rest():
    """The whole is 2.5 noise deviations. With only full halves spared, prefixes have 1.18 times the noisy error."""
    truth = np.where(np.arange(1024) < 100, 8, 0)
    assert (off_by(truth, lambda values: np.full(1024, 0.8)) < 1.02).all()


def test_a_half_is_spared_by_what_it_is_measured_at():
    noisy_sums = np.array([-1.0, 4.0])
    for shares, expected in ((0.0, 2.0), (0.25, 2.25), (1.0, 3.0), (5.0, 3.0)):
        measured = noisy_sums * shares * block_sums.FULL / 4.0
        found = block_sums.spared(
            np.array([0.0, 2.0]), np.full(2, 2.0), np.array([-1.0, 4.0]), np.array([-1.0, 3.0]), measured, np.ones(2)
        )
        assert found == pytest.approx([0.0, expected])


def test_as_many_blocks_are_spared_as_cannot_make_the_whole_worse():
    """Expected squared errors of a sum of numbers that are each cut at 0, by quadrature; one halving more fails."""
    places = np.linspace(-8.0, 8.0, 4_001)
    weights = np.exp(-np.square(places) / 2.0) / np.exp(-np.square(places) / 2.0).sum()
    levels = np.array([0.0, 0.3, 0.8, 1.5, 6.0])
    errors = np.maximum(levels[:, None] + places, 0.0) - levels[:, None]
    bias, risk = errors @ weights, np.square(errors) @ weights
    worst = []
    for count in (2**block_sums.HALVINGS, 2 * 2**block_sums.HALVINGS):
        every = np.array(list(itertools.combinations_with_replacement(range(levels.size), count)))
        together = risk[every].sum(axis=1) + np.square(bias[every].sum(axis=1)) - np.square(bias[every]).sum(axis=1)
        worst.append(together.max() / count)
    assert worst[0] <= 1.001
    assert worst[1] == pytest.approx(12.91 / 8, rel=0.01)


@pytest.mark.parametrize("seed", [0, 4], ids=["around the mean", "empirical Bayes"])
def test_errors_of_cells_count_how_far_sums_move_them(monkeypatch, seed):
    """The error of the estimate does not include the move of a cell by sums, so the move is added in squares."""
    law = Laplace.calibrate(sensitivity=1, epsilon=0.05)
    values = noisy(np.repeat([0, 60], 40), law, seed)
    found = choose(values, law, nonnegative=True)
    monkeypatch.setattr(choosing, "with_sums", lambda best, *rest, **facts: best)
    before = choose(values, law, nonnegative=True)
    assert found.name == f"{before.name}, with its sums"
    moved = np.abs(found.values - before.values)
    assert moved.max() > 0.1
    assert found.deviations == pytest.approx(np.hypot(before.deviations, moved), rel=1e-12)
