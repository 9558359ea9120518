"""The fit of a mixture: how near it comes to the likeliest weights, and which atoms need no weight."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe import Gaussian, Laplace
from dpframe.denoise import bayes, context, wavelets
from dpframe.denoise import choose as choosing
from dpframe.denoise.bayes import ENOUGH, LITTLE, NATS, most_likely
from dpframe.denoise.estimators import best_threshold, best_thresholds

LAWS = [Laplace(1, 1.0), Laplace(1, 30.0), Gaussian(1.0, 2.0), Gaussian(1.0, 40.0)]
TOTALS = {
    "empty": lambda generator, size: np.zeros(size),
    "wide": lambda generator, size: generator.integers(0, 3_000, size),
    "two": lambda generator, size: np.where(generator.random(size) < 0.3, 200, 0),
    "tail": lambda generator, size: generator.pareto(1.1, size) * 20,
}


def problem(law, kind, size=500, seed=3):
    """Return the bins of noisy values."""
    generator = np.random.default_rng(seed)
    drawn = (
        generator.laplace(0, law.scale, size) if law.p == 1.0 else generator.normal(0, math.sqrt(law.variance), size)
    )
    return bayes.Bins.of(np.rint(TOTALS[kind](generator, size) + drawn), law)


def log_likelihood(kernel, counts, weights):
    return float(counts @ np.log(kernel @ weights))


def factors(kernel, counts, weights):
    return (counts / counts.sum() / (kernel @ weights)) @ kernel


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("kind", TOTALS)
def test_no_weights_are_much_likelier(law, kind):
    """The duality gap at better weights bounds the likelihood of all possible weights."""
    bins = problem(law, kind)
    atoms, counts = bins.atoms(True), bins.counts.sum(axis=0)
    seen = np.flatnonzero(counts)
    kernel, counts = bins.around(seen, atoms), counts[seen]
    found = most_likely(kernel, counts)
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    better = found
    for _ in range(1_500):
        better = better * factors(kernel, counts, better)
    size = counts.sum()
    at_most = log_likelihood(kernel, counts, better) + size * math.log(factors(kernel, counts, better).max())
    assert log_likelihood(kernel, counts, found) > at_most - 6.0 * NATS  # the fit stops after a round of small gain


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("kind", TOTALS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_atoms_without_a_weight_could_make_nothing_likelier(law, kind, nonnegative):
    """The likelihood rises toward such an atom at most as fast as toward a fitted neighbor, under any weights."""
    bins, generator = problem(law, kind, size=60), np.random.default_rng(5)
    atoms, counts = bins.atoms(nonnegative), bins.counts.sum(axis=0)
    seen = np.flatnonzero(counts)
    fitted = bins.worth_a_weight(seen, atoms)
    left = np.setdiff1d(np.arange(atoms.size), fitted)
    kernel = bins.around(seen, atoms)
    assert kind != "wide" or law.variance > 100.0 or left.size > atoms.size / 2
    for _ in range(20):
        slopes = factors(kernel, counts[seen], generator.dirichlet(np.full(atoms.size, 0.1)) + 1e-12)
        for one in left:
            below, above = fitted[fitted < one][-1], fitted[fitted > one][0]
            assert slopes[one] <= max(slopes[below], slopes[above]) * (1.0 + 1e-9)


def test_what_no_atom_reaches_does_not_count():
    kernel = np.array([[0.5, 0.1], [1e-200, 1e-150], [0.0, 0.0]])
    with np.errstate(all="raise"):
        assert most_likely(kernel, np.array([3.0, 50.0, 9.0])) == pytest.approx([1.0, 0.0], abs=0.05)
        assert most_likely(kernel[1:], np.array([50.0, 9.0])).tolist() == [0.5, 0.5]


def test_it_stops_where_nothing_is_gained(monkeypatch):
    """The first weights are already the likeliest ones, which the duality gap proves at once."""
    steps = []
    kernel = np.full((40, 5), 0.2)
    monkeypatch.setattr("dpframe.denoise.bayes._leap", lambda *weights: steps.append(weights))
    assert most_likely(kernel, np.ones(40)) == pytest.approx(np.full(5, 0.2))
    assert not steps
    assert 0.0 < ENOUGH < LITTLE < NATS < 1.0


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_thresholds_of_some_tables_are_those_of_each(law):
    rows = np.rint(np.random.default_rng(1).laplace(0, [[1.0], [20.0], [400.0], [0.0]], (4, 300)))
    together = best_thresholds(rows, law, 0.5)
    for number, row in enumerate(rows):
        alone = best_threshold(row, law, 0.5)
        assert [found[number] for found in together] == pytest.approx([alone.level, alone.risk, alone.spread])


@pytest.mark.parametrize("shape", [(100,), (37, 20), (6, 7, 8)])
@pytest.mark.parametrize("axes", [(0,), None])
def test_shifted_tables_may_be_side_by_side_or_one_after_the_other(shape, axes, monkeypatch):
    values = np.cumsum(np.rint(np.random.default_rng(1).laplace(0, 30, shape)), axis=0)
    axes = tuple(range(len(shape))) if axes is None else axes
    together = wavelets.shrunk(values, LAWS[1], axes)
    monkeypatch.setattr(wavelets, "SMALL", 0)
    alone = wavelets.shrunk(values, LAWS[1], axes)
    assert together.values == pytest.approx(alone.values, abs=1e-9)
    assert (together.risk, together.error) == pytest.approx((alone.risk, alone.error))


def test_fine_classes_are_tried_where_something_promises_a_gain():
    values = np.rint(np.random.default_rng(1).laplace(0, 100, 1_000)) + 3.0 * np.arange(1_000)
    for needed, tried in ((math.inf, ["coarse", "fine"]), (0.0, ["coarse"])):
        found = context.contexts(values, LAWS[1], (0,), needed=needed)
        assert [one.name for one in found] == tried


def test_a_large_table_is_denoised_as_if_all_were_asked_which_is_best(monkeypatch):
    generator = np.random.default_rng(1)
    truth = generator.poisson(2.0 + 2.0 * np.sin(np.arange(400) / 30)[:, None] * np.ones(400))
    values = np.rint(truth + generator.laplace(0, 1.0, truth.shape))
    assert values.size > choosing.LARGEST_WEIGHED
    asked = []
    least = choosing._least
    monkeypatch.setattr(choosing, "_least", lambda *given: asked.append(1) or least(*given))
    quick = choosing.choose(values, LAWS[0], nonnegative=True)
    assert not asked
    monkeypatch.setattr(choosing, "_far_better", lambda *given: False)
    slow = choosing.choose(values, LAWS[0], nonnegative=True)
    assert asked
    assert quick.name == slow.name
    assert np.array_equal(quick.values, slow.values)
