"""Quantiles and distribution functions: what is measured, sensitivity, and the answers of whole calls."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit
from dpframe.queries.keys import Keys, running_axes
from dpframe.queries.statistics import Ecdf
from tests.covering import chance_of_missing

MEDIAN = dpf.median("x", bounds=(0, 4))
SHARES = Ecdf("x", 4)
BY_BINS = Keys((*BY_GROUP.axes, *running_axes("x", [0, 1, 2, 3, 4], None)))
ASKED = {
    "median by group": (MEDIAN, BY_GROUP),
    "median in one cell": (MEDIAN, EVERYTHING),
    "a tree of levels": (dpf.median("x", bounds=(-4, 9), step=0.25), BY_GROUP),
    "shares": (SHARES, BY_BINS),
}
NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", ASKED)
def test_no_neighbor_is_farther_than_the_sensitivity(name, pure, unit):
    """Bins are not groups: a unit's weight depends on its rows in each group, not in each bin."""
    for p in (1, 2):
        assert largest_by_chance(query_of(*ASKED[name], pure), unit, p, tries=15) <= 1 + 1e-15


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("name", ["median by group", "shares"])
def test_the_sensitivity_is_attained(name, neighbors, pure):
    """A unit has as many rows in the first bin as count in full; under replace, they move to another group."""
    statistic, keys = ASKED[name]
    query, p = query_of(statistic, keys, pure), 1 if pure else 2
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    mine, instead = ([(group, 0.0)] * 2 for group in "AB")
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0)


def people(rows=30_000):
    generator = np.random.default_rng(12)
    ages = np.floor(generator.gamma(6.0, 7.0, rows))
    frame = pl.DataFrame({"age": ages, "g": generator.choice(["A", "B", "C"], rows)})
    return frame.with_columns(age=pl.when(pl.col("age") % 11 != 0).then(pl.col("age")))


def exact_quantile(values, q):
    """Return the least v with F(v) >= q N."""
    ordered = np.sort(values)
    return ordered[int(np.ceil(q * ordered.size - 1e-9)) - 1]


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_quantiles_without_much_noise(library, noise):
    frame = people()
    given = given_as(frame, library)
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic")
    found = given.dp.group_by("g", keys=["A", "B", "C", "empty"]).agg(
        dpf.median("age", bounds=(0, 120)),
        at=dpf.quantile("age", q=[0.01, 0.25, 0.9], candidates=range(121)),
        epsilon=1e7,
        ledger=ledger,
        **noise,
    )
    for place, group in enumerate("ABC"):
        values = frame.filter(g=group)["age"].drop_nulls().to_numpy()
        for name, q in (("age_median", 0.5), ("at_q0.01", 0.01), ("at_q0.25", 0.25), ("at_q0.9", 0.9)):
            truth = min(exact_quantile(values, q), 120)
            assert found[name].to_numpy()[place] == truth
            beside = 1 if name == "age_median" else 0  # from bounds: values may lie between candidates
            assert found[f"{name}_low"].to_numpy()[place] == truth - beside
            assert found[f"{name}_high"].to_numpy()[place] == truth + beside
    assert (found["age_median_low"].to_numpy()[3], found["age_median_high"].to_numpy()[3]) == (0, 120)
    assert found["age_median_error"].to_numpy()[3] == 60


def test_intervals_of_weighed_units_reach_as_many_rows_farther():
    """Even with hardly any noise, intervals reach 1 row beyond the quantile, and 3 rows if a unit may have 2 rows."""
    frame = pl.DataFrame({"x": [10.0] * 9 + [50.0] * 2 + [90.0] * 9, "u": range(20)})
    for unit, at in ((None, (10, 90)), ("u", (10, 90))):
        ledger = dpf.Ledger(epsilon=1e9, unit=unit)
        more = {"max_rows": 2} if unit else {}
        found = frame.dp.median("x", candidates=[10, 50, 90], epsilon=1e7, ledger=ledger, **more)
        assert (found["x_median_low"].item(), found["x_median_high"].item()) == at
    apart = pl.DataFrame({"x": [10.0] * 7 + [50.0] * 6 + [90.0] * 7, "u": range(20)})
    for unit, at in ((None, (50, 50)), ("u", (10, 90))):
        ledger = dpf.Ledger(epsilon=1e9, unit=unit)
        more = {"max_rows": 2} if unit else {}
        found = apart.dp.median("x", candidates=[10, 50, 90], epsilon=1e7, ledger=ledger, **more)
        assert (found["x_median_low"].item(), found["x_median_high"].item()) == at


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_units_count_by_group_whatever_their_bins(noise):
    """With max_rows=10, a unit of 50 rows in one group counts as much as a unit of 10 rows."""
    ages = np.concatenate([np.repeat(10.0, 50), np.repeat(90.0, 20)])
    frame = pl.DataFrame({"age": ages, "u": np.repeat([1, 2, 3], [50, 10, 10])})
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, unit="u", accounting="basic")
    found = frame.dp.ecdf("age", bins=[0, 50, 100], max_rows=10, epsilon=1e7, ledger=ledger, **noise)
    assert found["ecdf"].to_list() == pytest.approx([1 / 3, 1.0], abs=1e-3)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_distribution_functions(noise):
    frame, edges = people(), [0, 10, 20, 40, 60, 120]
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic")
    found = frame.dp.group_by("g", keys=["A", "B"]).ecdf("age", bins=edges, epsilon=1e7, ledger=ledger, **noise)
    assert found.columns == ["g", "age_left", "age_right", "ecdf", "ecdf_noisy", "ecdf_error"]
    for group in "AB":
        values = frame.filter(g=group)["age"].drop_nulls().to_numpy()
        exact = [(values <= edge).mean() for edge in edges[1:]]
        assert found.filter(g=group)["ecdf"].to_list() == pytest.approx(exact, abs=1e-4)
    noisy = frame.head(40).dp.ecdf("age", bins=edges, epsilon=0.5, ledger=dpf.Ledger(epsilon=1))["ecdf"].to_numpy()
    assert (np.diff(noisy) >= 0).all()
    assert 0 <= noisy.min() <= noisy.max() <= 1
    assert "ecdf_noisy" not in frame.dp.ecdf(
        "age", bins=edges, keep_noisy=False, epsilon=0.5, ledger=dpf.Ledger(epsilon=1)
    )


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("size", [4, 60])
def test_intervals_cover(size, noise):
    """Over 2,000 groups of the same values; a false alarm has a chance below 1e-6 each."""
    groups = 2_000
    values = np.resize([3.0, 3.0, 8.0, 20.0], size)
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    asked = frame.dp.group_by("g", keys=range(groups))
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    found = asked.agg(q=dpf.quantile("x", q=[0.25, 0.5, 0.9], bounds=(0, 30)), epsilon=1.0, ledger=ledger, **noise)
    for q in (0.25, 0.5, 0.9):
        truth = exact_quantile(values, q)
        low, high = (found[f"q_q{q}_{end}"].to_numpy() for end in ("low", "high"))
        assert chance_of_missing(int(((truth < low) | (truth > high)).sum()), groups, 0.05) > 1e-6
        off = np.abs(found[f"q_q{q}"].to_numpy() - truth)
        assert chance_of_missing(int((off > found[f"q_q{q}_error"].to_numpy()).sum()), groups, 0.05) > 1e-6
    shares = asked.ecdf("x", bins=[0, 5, 10, 30], epsilon=1.0, ledger=ledger, **noise)
    exact = np.tile([(values <= edge).mean() for edge in (5, 10, 30)], groups)
    missed = np.abs(shares["ecdf"].to_numpy() - exact) > shares["ecdf_error"].to_numpy()
    assert chance_of_missing(int(missed.reshape(-1, 3).sum(axis=0).max()), groups, 0.05) > 1e-6


def test_all_quantiles_of_a_column_are_one_release_and_in_order():
    plan = people().dp.preview.quantile("age", q=[0.1, 0.5, 0.9], bounds=(0, 120), epsilon=1.0)
    assert len(plan.parts) == 1
    assert plan.columns == ("age_q0.1", "age_q0.5", "age_q0.9")
    for seed in range(20):
        frame = people().head(10 + seed)
        row = frame.dp.quantile("age", q=[0.4, 0.5, 0.6], bounds=(0, 120), epsilon=0.3, ledger=dpf.Ledger(epsilon=1))
        assert row["age_q0.4"].item() <= row["age_q0.5"].item() <= row["age_q0.6"].item()


def test_the_form_follows_the_noise():
    asked = people().dp.preview
    pure, gaussian = (asked.median("age", bounds=(0, 120), epsilon=1.0, **more) for more in ({}, {"delta": 1e-6}))
    assert pure.parts[0].sensitivity.steps(1) == 2  # levels of the tree
    assert gaussian.parts[0].sensitivity.norm(2) == pytest.approx(1.610054317174)
    assert 6.0 < pure.error["age_median"] < gaussian.error["age_median"]  # ranks
    within = asked.median("age", bounds=(0, 120), within=30)
    assert 25 < within.error["age_median"] <= 30
    assert "ranks" in repr(within)


def test_auto_compares_the_errors_of_both_forms():
    """At epsilon 1 and delta 1e-6, a tree has less error than the factorization; at a large delta, it has more."""
    asked = people().dp.preview
    words = {"epsilon": 1.0, "mechanism": "auto", "ledger": dpf.Ledger(epsilon=9, delta=0.5, accounting="basic")}
    tree = asked.median("age", bounds=(0, 120), delta=1e-6, **words)
    assert (tree.choice.name, tree.cost.delta) == ("discrete Laplace", 0.0)
    assert tree.parts[0].sensitivity.steps(1) == 2
    running = asked.median("age", bounds=(0, 120), delta=0.05, **words)
    assert (running.choice.name, running.cost.delta) == ("rounded Gaussian", 0.05)
    assert running.error["age_median"] < tree.error["age_median"]
    assert asked.variance("age", bounds=(0, 120), delta=1e-6, **words).choice.name == "discrete Laplace"
    gdp = asked.median("age", bounds=(0, 120), epsilon=1.0, mechanism="auto", ledger=dpf.Ledger(epsilon=9, delta=1e-6))
    assert gdp.parts[0].mechanism.p == 2.0
    found = people().dp.median("age", bounds=(0, 120), delta=1e-6, **words)
    assert found.dp.provenance["chosen"]["mechanism"] == "auto"


def test_candidates():
    ends = {
        (0, 120): (121, 1.0),
        (0, 5_000): (1_001, 5.0),
        (0, 0.5): (1_001, 0.0005),
        (-4_096, 0): (4_097, 1.0),
    }
    for bounds, (size, step) in ends.items():
        found = dpf.median("x", bounds=bounds).candidates
        assert (len(found), found[0], found[-1]) == (size, *bounds)
        assert found[1] - found[0] == pytest.approx(step)
    assert dpf.median("x", bounds=(0, 10), step=4).candidates == (0.0, 4.0, 8.0, 10.0)
    assert len(dpf.median("x", bounds=(0, 1), step=0.1).candidates) == 11


def test_refusals():
    refused = [
        (MissingArgument, "q must be given", lambda: dpf.quantile("x", bounds=(0, 1))),
        (MissingArgument, "bounds must be given", lambda: dpf.median("x")),
        (InvalidArgument, "q must be strictly between 0 and 1", lambda: dpf.quantile("x", q=1.0, bounds=(0, 1))),
        (InvalidType, "q must be a number", lambda: dpf.quantile("x", q="half", bounds=(0, 1))),
        (InvalidArgument, "at least one number", lambda: dpf.quantile("x", q=[], bounds=(0, 1))),
        (InvalidArgument, "candidates must come without", lambda: dpf.median("x", bounds=(0, 1), candidates=[0, 1])),
        (InvalidArgument, "candidates must increase", lambda: dpf.median("x", candidates=[0, 2, 1])),
        (InvalidArgument, "at most 16,384", lambda: dpf.median("x", bounds=(0, 1), step=1e-6)),
        (InvalidArgument, "step must be above 0", lambda: dpf.median("x", bounds=(0, 1), step=0.0)),
        (InvalidType, "list of at least two", lambda: dpf.median("x", candidates=[1])),
        (
            InvalidArgument,
            "rollup must be left out",
            lambda: asked.median("age", bounds=(0, 1), rollup=True, epsilon=1),
        ),
        (MissingArgument, "size must be given", lambda: people().dp.ecdf("age", bins=[0, 9], within=0.1)),
    ]
    ledger = dpf.Ledger(epsilon=1.0)
    asked = people().dp.group_by("g", keys=["A"])
    with ledger:
        for error, words, call in refused:
            with pytest.raises(error, match=words):
                call()
    assert not ledger.spent.epsilon


@pytest.mark.parametrize("unit", [None, ""])
def test_a_column_may_have_a_name_without_letters(unit):
    """A file without a header may give an empty name; a truth test of the name would take it for no column."""
    table = pl.DataFrame({"": [1.0, 2.0, 3.0], "g": ["A", "A", "B"]})
    with dpf.Ledger(epsilon=1e9, unit=unit):
        grouped = table.dp.group_by("g", keys=["A", "B"])
        bounds = {} if unit is None else {"max_rows": 1, "max_groups": 2}
        result = grouped.quantile("", q=[0.5], bounds=(0, 8), epsilon=1e6, **bounds)
    assert result["g"].to_list() == ["A", "B"]
    assert result[result.columns[1]][1] == pytest.approx(3.0, abs=0.1)
