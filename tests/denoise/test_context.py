"""Empirical Bayes in context: rings without the cell itself, honest risks and deviations, gains, and no harm.

Simulations use fixed seeds, so their results never change. With other seeds, the test of deviations would fail by
chance less than once in a million runs: it averages errors over stated deviations of at least 20,000 cells.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpframe import Gaussian, Laplace, noise
from dpframe.denoise import choose, context, wavelets
from dpframe.denoise.bayes import empirical_bayes, folds_of
from dpframe.denoise.context import (
    FEWEST,
    Windows,
    bounds_of,
    class_of,
    contexts,
    guess,
    in_context,
    radii_of,
    rings_at,
    rings_in,
)

LAWS = {"laplace": Laplace(1, 10.0), "gaussian": Gaussian(1.0, 14.0)}
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def noisy(truth, law, seed):
    with noise.insecure_bits(seed):
        return law.add_noise(np.asarray(truth, dtype=np.int64)).astype(np.float64)


def wave(size=4096):
    places = np.arange(size)
    level = 60 + 50 * np.sin(places / 150) + 200 * np.exp(-(((places - size / 3) / 40) ** 2))
    return np.random.default_rng(3).poisson(level)


def hills():
    up = np.hypot(*np.indices((64, 64)) - 30.0)
    return np.random.default_rng(3).poisson(300 * np.exp(-((up / 12) ** 2)))


TRUTHS = {"line": wave(), "grid": hills()}


def axes_of(truth):
    return tuple(range(truth.ndim))


def rings_of(values, axes):
    """Return the rings of all cells."""
    radii = radii_of(values.shape, axes)
    return rings_in(Windows.of(values, axes, max(radii)), radii, 0, values.shape[0])


def classes(guessed, unit, least):
    """Return the class of each cell."""
    return class_of(guessed, bounds_of(guessed, unit, least))


# Rings


@pytest.mark.parametrize("shape", [(9,), (70,), (6, 11), (3, 40), (4, 5, 6)])
def test_rings_are_the_cells_at_that_distance(shape):
    values = np.random.default_rng(1).normal(size=shape)
    axes = tuple(range(len(shape)))
    found, places = rings_of(values, axes), np.stack(np.indices(shape), axis=-1).reshape(-1, len(shape))
    apart = np.abs(places[:, None] - places[None]).max(axis=2)
    inner = 0
    for ring, radius in enumerate(radii_of(shape, axes)):
        there = (apart > inner) & (apart <= radius)
        assert found.counts[ring].tolist() == there.sum(axis=1).tolist()
        means = (there * values.ravel()).sum(axis=1) / there.sum(axis=1)
        assert found.means[ring] == pytest.approx(means)
        inner = radius
    assert found.counts.min() >= 1.0


def test_rings_along_one_axis_are_of_the_same_row():
    values = np.arange(60.0).reshape(2, 30)
    assert rings_of(values, (1,)).means[:, :30] == pytest.approx(rings_of(values[0], (0,)).means)


@pytest.mark.parametrize(
    ("shape", "axes"), [((300,), (0,)), ((40, 30), (0, 1)), ((3, 90), (1,)), ((90, 3), (0,)), ((9, 4, 12), (0, 2))]
)
def test_rings_of_some_cells_and_of_strips_are_those_of_all(shape, axes, monkeypatch):
    monkeypatch.setattr("dpframe.denoise.context.STRIP", 70)
    values, radii = np.random.default_rng(1).normal(size=shape), radii_of(shape, axes)
    every, windows = rings_of(values, axes), Windows.of(values, axes, max(radii))
    some = np.flatnonzero(np.random.default_rng(2).random(values.size) < 0.3)
    strips = [rings_in(windows, radii, first, last) for first, last in windows.strips()]
    assert len(strips) > 2
    for name in ("means", "counts"):
        whole = getattr(every, name)
        assert getattr(rings_at(windows, radii, some), name) == pytest.approx(whole[:, some], abs=1e-12)
        assert np.concatenate([getattr(strip, name) for strip in strips], axis=1) == pytest.approx(whole, abs=1e-12)


@both
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS.keys())
def test_large_tables_learn_from_some_cells_what_all_would_teach(law, truth, monkeypatch):
    """Both predictions have nearly the same error, and they are much nearer to each other."""
    values, truth = np.tile(noisy(truth, law, 1), 4), np.tile(truth, 4)
    by_all = guess(values, law, axes_of(truth)).values.reshape(truth.shape)
    monkeypatch.setattr(context, "MANY", 2**10)
    monkeypatch.setattr(context, "SOME", 2**10)
    by_some = guess(values, law, axes_of(truth)).values.reshape(truth.shape)
    off = [float(np.square(one - truth).mean()) for one in (by_all, by_some)]
    assert off[1] < 1.03 * off[0]
    assert 0.0 < float(np.square(by_some - by_all).mean()) < 0.1 * off[0]


@both
def test_a_cell_is_not_in_its_own_guess(law):
    """The weights of its rings are not learned from its fold either; only the bounds of classes depend on it."""
    values = noisy(wave(), law, 1)
    moved = values.copy()
    moved[1234] += 3.0
    for found in (rings_of(values, (0,)), rings_of(moved, (0,))):
        assert found.means[:, 1234] == pytest.approx(rings_of(values, (0,)).means[:, 1234], abs=1e-9)
    first, second = (guess(one, law, (0,)).values[1234] for one in (values, moved))
    assert abs(first - second) < 0.02


def test_classes_have_enough_cells_and_are_in_order():
    guessed = np.random.default_rng(2).standard_cauchy(5_000) * 20
    for least in (200, 1_000, 10_000):
        group = classes(guessed, 5.0, least)
        assert np.bincount(group).min() >= min(least, guessed.size)
        order = np.argsort(guessed)
        assert (np.diff(group[order]) >= 0).all()


# Gains, risks, deviations


@both
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS.keys())
def test_it_gains_where_neighbors_are_alike(law, truth):
    values = noisy(truth, law, 1)
    plain = np.square(empirical_bayes(values, law, nonnegative=True) - truth).sum()
    found = in_context(values, law, axes_of(truth), nonnegative=True)
    assert np.square(found.values - truth).sum() < 0.7 * plain
    assert found.values.shape == found.deviations.shape == truth.shape
    assert found.values.min() >= 0.0
    assert found.deviations.min() > 0.0


@pytest.mark.slow
@both
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS.keys())
def test_the_deviations_are_those_of_cells_that_were_never_seen_before(law, truth):
    """Errors over stated deviations, of all cells and of the tenth with the largest totals: from .8 to 1.25."""
    large = truth >= np.quantile(truth, 0.9)
    squares, claims = np.zeros(2), np.zeros(2)
    for seed in range(5):
        found = in_context(noisy(truth, law, 100 + seed), law, axes_of(truth), nonnegative=True)
        off, claimed = np.square(found.values - truth), np.square(found.deviations)
        squares += (off.sum(), off[large].sum())
        claims += (claimed.sum(), claimed[large].sum())
    assert (np.sqrt(squares / claims) > 0.8).all()
    assert (np.sqrt(squares / claims) < 1.25).all()


@both
def test_the_risk_is_not_too_small(law):
    estimates, losses = [], []
    for seed in range(8):
        one = contexts(noisy(wave(), law, seed), law, (0,), nonnegative=True)[1]
        estimates.append(one.risk)
        losses.append(np.square(one.values - wave()).sum())
    differences = np.array(estimates) - losses
    spread = differences.std(ddof=1) / math.sqrt(differences.size)
    assert differences.mean() > -5 * spread - 0.01 * law.variance * wave().size


@pytest.mark.parametrize("size", [0, 1, 7, FEWEST - 1])
def test_few_cells_have_no_context(size):
    law = LAWS["laplace"]
    values = noisy(np.arange(size), law, 1)
    assert contexts(values, law, (0,)) == []
    assert in_context(values, law, (0,)).values == pytest.approx(empirical_bayes(values, law))


@both
def test_folds_are_those_of_all_cells_whatever_the_class(law):
    values = noisy(wave(), law, 1)
    halves = [np.bincount(folds_of(values.size)[classes(values, 14.0, 400) == one]) for one in range(3)]
    assert all(abs(int(half[0]) - int(half[1])) < 0.2 * half.sum() for half in halves)


# The steps to empirical Bayes in context


@pytest.mark.slow
@both
@pytest.mark.parametrize("seed", [0, 1])
def test_it_does_no_harm_where_the_order_means_nothing(law, seed):
    """Totals with heavy tails in a random order: to use the order makes the error of `auto` at most 5% larger."""
    generator = np.random.default_rng(seed)
    truth = np.rint(np.where(generator.random(4096) < 0.3, generator.pareto(1.2, 4096) * 15, 0))
    with_order = without = raw = 0.0
    for draw in range(3):
        values = noisy(truth, law, draw)
        with_order += np.square(choose.choose(values, law, nonnegative=True, order=True).values - truth).sum()
        without += np.square(choose.choose(values, law, nonnegative=True, order=False).values - truth).sum()
        raw += np.square(values - truth).sum()
    assert with_order < 1.05 * without
    assert with_order < raw


@pytest.mark.parametrize(
    ("shape", "axes"), [((200, 300), (0, 1)), ((9_000,), (0,)), ((30, 30, 30), (0, 1, 2)), ((7, 90, 80), (1, 2))]
)
def test_blocks_are_of_neighbors(shape, axes):
    values = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    blocks = wavelets.blocks_among(values, axes)
    assert 1 <= len(blocks) <= 2 * wavelets.BLOCKS
    assert np.unique(blocks).size == blocks.size
    for place, axis in enumerate(axes):
        assert (np.diff(blocks, axis=place + 1) == math.prod(shape[axis + 1 :])).all()


@both
def test_wavelets_are_tried_on_large_tables_where_blocks_speak_for_them(law, monkeypatch):
    """The choice is the same as if wavelets were always tried."""
    generator = np.random.default_rng(5)
    flat = np.kron(generator.integers(0, 300, (4, 4)), np.ones((32, 32), dtype=np.int64))
    mixed = generator.permutation(np.where(generator.random(128 * 128) < 0.9, 0, 500)).reshape(128, 128)
    tried = []
    real = choose.shrunk
    monkeypatch.setattr(choose, "shrunk", lambda values, *more: tried.append(values.shape) or real(values, *more))
    for truth, full in ((flat, True), (mixed, False)):
        values = noisy(truth, law, 1)
        monkeypatch.setattr(choose, "MANY", 2**17)
        always = choose.choose(values, law, nonnegative=True)
        monkeypatch.setattr(choose, "MANY", 2**10)
        tried.clear()
        found = choose.choose(values, law, nonnegative=True)
        assert (values.shape in tried) == full
        assert found.name == always.name
        assert found.values == pytest.approx(always.values)


def test_the_ladder_is_climbed_only_where_that_is_surely_better():
    law = LAWS["laplace"]
    values = noisy(wave(256), law, 1)
    base = choose.Candidate("base", 0.30 * 256 * law.variance, 0.0, lambda: values * 0.9)
    (step, _) = contexts(values, law, (0,))
    for share, expected in ((0.29, "base"), (0.05, "context-empirical-bayes in coarse classes")):
        one = replace(step, risk=share * 256 * law.variance)
        assert choose.climbed(values, law, base, [one], nonnegative=False).name == expected
