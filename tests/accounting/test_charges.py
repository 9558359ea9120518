"""The charge of every release path, compared with the exact privacy curve of the noise that its samplers drew."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtr

from assurance import charges, drawn, release_paths
from assurance.charges import entries_of, equal_entries, gaussian_delta, measured, mixtures, table
from assurance.drawn import Curve, largest_loss, outcomes, renyi
from assurance.release_paths import PATHS
from dpframe import local
from dpframe.accessor.released_frame import VERBS
from dpframe.accounting.registry import SHIPPED
from dpframe.mechanisms.contract import Mechanism

ROWS = table()
QUICK = (
    "count",
    "histogram, ranges by several looks",
    "mode",
    "marginals",
    "discover and measure",
    "together",
    "together, mixed",
    "replayed",
    "stream of a sum",
    *(f"local: {name}" for name in release_paths.METHODS),
)
SHORT = [
    row
    for row in ROWS
    if row.path.name in QUICK and row.unit == "rows" and (row.path.locally or row.neighbors == "add-remove")
]
LONGEST = "together, mixed; gaussian; rows; basic; add-remove"
SAMPLED = random.Random(3).sample(ROWS, 60)
NOT_ASKED = {"preview", "local"}  # namespaces, not queries
WRONG = "what is charged is not what is needed"


def noises_once(rows):
    """Return the first possible noise of each path, accounting, unit and kind of neighbors."""
    return list({(row.path.name, row.accounting, row.unit, row.neighbors): row for row in reversed(rows)}.values())


# The registry


@pytest.mark.slow
def test_every_place_that_charges_a_ledger_has_a_path():
    visited = {site for row in SHORT for entry in entries_of(row, charges.EQUAL[row.noise]) for site in entry.sites}
    assert release_paths.charging() == visited, "a release path has no oracle: add it to assurance/release_paths.py"


def test_every_verb_has_a_path():
    missing = set(VERBS) - NOT_ASKED - {path.verb for path in PATHS}
    assert not missing, "a verb that takes no bounds= has no path: add it to assurance/release_paths.py"


@pytest.mark.slow
def test_every_sampler_mechanism_and_method_has_a_path():
    entries = [entry for row in ROWS if row.unit == "rows" for entry in entries_of(row, charges.EQUAL[row.noise])]
    used = {key[0] for entry in entries for key in entry.laws}
    assert {*drawn.samplers(), "reports", "shown"} <= {*used, "scaled_gaussian"}
    kinds = {name for entry in entries for name, *_ in entry.drew}
    kinds |= {type(getattr(noise, "noise", noise)).__name__ for entry in entries for noise in entry.noises}
    own = {kind.__name__ for kind in drawn._mechanisms(Mechanism) if not kind.__name__.startswith("_")}
    assert own - {"ExponentialMechanism", "PermuteAndFlip"} <= kinds
    assert set(local.BY_NAME) <= kinds
    assert {kind.name for kind in SHIPPED} == set(charges.ACCOUNTINGS)


# Charges


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.slow] * (str(row) == LONGEST)) for row in SHORT], ids=str
)
def test_one_entry_costs_what_it_was_charged(row):
    assert not measured(row, full=False).wrong, WRONG


@pytest.mark.parametrize("row", [row for row in ROWS if row.path.name == "top_k, two places peeled"], ids=str)
def test_each_place_that_is_peeled_is_charged(row):
    assert {noise.chosen for entry in entries_of(row, charges.EQUAL[row.noise]) for noise in entry.noises} == {2}
    assert not measured(row, full=False).wrong, WRONG


@pytest.mark.parametrize("row", [row for row in ROWS if row.path.name == "count, noise shape 2"], ids=str)
def test_the_shape_of_normal_noise_costs_what_normal_noise_costs(row):
    assert not measured(row, full=False).wrong, WRONG


@pytest.mark.slow
@pytest.mark.parametrize("row", noises_once([row for row in ROWS if row.path.name not in QUICK]), ids=str)
def test_one_entry_of_any_other_path_costs_what_it_was_charged(row):
    assert not measured(row, full=False).wrong, WRONG


@pytest.mark.parametrize("name", [pytest.param("replayed", marks=pytest.mark.slow), "local: mean", "local: RAPPOR"])
def test_a_full_ledger_holds_what_it_promises(name):
    for row in noises_once([row for row in SHORT if row.path.name == name and row.accounting != "basic"]):
        assert equal_entries(row).holds, str(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in SAMPLED if not row.path.heavy], ids=str)
def test_no_ledger_holds_more_than_it_promises(row):
    assert not measured(row).wrong, WRONG


@pytest.mark.long
def test_a_mixture_costs_no_more_than_the_limit():
    names = [row.path for row in SHORT]
    (full,) = mixtures("gdp", "replace", "rows", 1, seed=5, paths=names)
    assert full.holds
    assert full.entries > 3


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["rows", "people"])
@pytest.mark.parametrize("neighbors", charges.NEIGHBORS)
@pytest.mark.parametrize("accounting", charges.ACCOUNTINGS)
def test_no_mixture_costs_more_than_the_limit(accounting, neighbors, unit):
    found = list(mixtures(accounting, neighbors, unit, 3, seed=11))
    assert all(full.holds for full in found)
    assert min(full.entries for full in found) > 3


# The oracle itself


def laplace(scale, move, far=2_000):
    steps = np.arange(-far, far + move)
    masses = math.tanh(0.5 / scale) * np.exp(-np.abs(np.stack([steps - move, steps])) / scale)
    return masses[0], masses[1]


def hockey_stick(p, q, epsilon):
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize(("scale", "move"), [(2.0, 1), (1.5, 4), (40.0, 17), (0.3, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_the_curve_of_laplace_noise_is_that_of_its_definition(scale, move, epsilon):
    key = ("discrete_laplace", scale, move)
    exact = hockey_stick(*laplace(scale, move), epsilon)
    found = Curve(Counter([key]), 1.0).delta(epsilon)
    assert found <= exact * (1 + 1e-12)
    assert found == pytest.approx(exact, abs=0.006)
    assert largest_loss(Counter([key])) == pytest.approx(move / scale, rel=1e-12)


@pytest.mark.parametrize(("sigma", "count"), [(3.0, 1), (5.0, 12), (1e6, 7)])
def test_many_gaussians_are_one_gaussian_and_never_above_it(sigma, count):
    move = max(1, round(sigma / 5))
    key = ("rounded_generalized_gaussian", 2.0, sigma * math.sqrt(2.0), move)
    curve = Curve(Counter({key: count}), 1.0)
    mu = move / sigma * math.sqrt(count)
    for epsilon in (0.1, 0.5, 1.0):
        assert curve.delta(epsilon) <= gaussian_delta(mu, epsilon)
        assert curve.delta(epsilon) >= 0.93 * gaussian_delta(mu, epsilon * 1.01) - 1e-9
    mean = float(ndtr(mu / 2.0) * 2.0 - 1.0)
    assert curve.delta(0.0) == pytest.approx(mean, rel=0.03)
    assert renyi(Counter({key: count}), 4.0) == pytest.approx(2.0 * mu**2, rel=0.02)


def test_a_sum_of_pure_losses_is_that_of_all_outcomes_together():
    keys = Counter({("discrete_laplace", 3.0, 1): 2, ("truncated_discrete_laplace", 2.0, 4, 1): 1})
    laws = [outcomes(key) for key in keys.elements()]
    for epsilon in (0.0, 0.3, 0.8):
        cells = itertools.product(*(zip(*law, strict=True) for law in laws))
        each = [tuple(math.prod(side) for side in zip(*cell, strict=True)) for cell in cells]
        exact = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in each)
        found = Curve(keys, 1.0).delta(epsilon)
        assert found <= exact + 1e-12
        assert found == pytest.approx(exact, abs=0.006)


def test_permute_and_flip_is_what_its_definition_says():
    losses = (0.0, 0.3, 1.0, 0.05)
    chance = [math.exp(-loss) for loss in losses]
    exact = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1.0
        for option in order:
            exact[option] += left * chance[option] / 24
            left *= 1.0 - chance[option]
    found, _ = outcomes(("permuted_choice", losses, losses))
    assert found == pytest.approx(exact, rel=1e-12)


def test_reports_have_the_chances_of_their_definition():
    method = local.RandomizedResponse(["a", "b", "c"], epsilon=1)
    p, q = outcomes(("reports", method, 0, 1))
    assert sorted(p) == pytest.approx(sorted([method.p, method.q, method.q]))
    assert np.log(p / q).max() == pytest.approx(1.0)


def test_noise_that_depends_on_rows_is_met():
    one, other = (
        drawn.Record([drawn.Draw(None, np.array([1]), [("discrete_laplace", (scale, 1), 0)])]) for scale in (1.0, 2.0)
    )
    with pytest.raises(AssertionError, match="depends on rows"):
        drawn.laws(one, other)


def test_each_row_has_a_name():
    assert len(ROWS) == len(set(map(str, ROWS)))
