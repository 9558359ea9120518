"""Means under pure noise: one vector at the whole epsilon, a free count, and a variance whose vector serves both."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import PrivacyUnit
from dpframe.queries.query import Query
from dpframe.queries.quotients import interval_of_sum
from dpframe.queries.total import Measured, Total
from dpframe.queries.vectors import bernstein, two_sided
from tests.covering import chance_of_missing

BOUNDS = (-20.0, 100.0)
PUBLISHED = [  # bounds, epsilon, A, B -> count, mean
    ((0, 100), 1, 30000, 70000, 1000, 30),
    ((0, 120), 0.5, 4000, 8000, 100, 40),
    ((-1, 1), 2, 60, 40, 50, 0.2),
    ((0, 5000), 0.2, 1e6, 9e6, 2000, 500),
    ((18, 90), 1, 3600, 3600, 100, 54),
]


def shared(**statistics):
    """Return a query of several statistics in the form for pure noise."""
    return Query("agg", EVERYTHING, tuple(statistics.items())).under(True)


@pytest.mark.parametrize(("bounds", "epsilon", "above", "below", "count", "mean"), PUBLISHED)
def test_published_counts_and_means(bounds, epsilon, above, below, count, mean):
    query = shared(n=dpf.count("x"), m=dpf.mean("x", bounds=bounds))
    (total,), length = query.totals, bounds[1] - bounds[0]
    noise = dpf.Laplace.calibrate(sensitivity=1.0, epsilon=epsilon, grid=2.0**-30)
    measured = {total: Measured(np.array([above, below]) / length, noise)}
    (counted, error), (found, _) = (query.answer(statistic, measured) for _, statistic in query.statistics)
    assert (counted[0], found[0]) == (count, pytest.approx(mean))
    assert error[0] == pytest.approx(math.sqrt(2) * math.log(20) / epsilon, abs=0.51)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
def test_no_neighbor_is_farther_than_the_sensitivity(keys, unit):
    for bounds in ((0.0, 4.0), (-3.0, 4.0)):
        for missing in ("drop", "midpoint"):
            query = query_of(dpf.mean("x", bounds=bounds, missing=missing), keys, True)
            assert largest_by_chance(query, unit, 1, tries=15) <= 1 + 1e-15


@pytest.mark.parametrize("value", [None, -50.0, 9.0])
def test_the_sensitivity_is_attained_by_a_missing_value_too(value):
    unit = PrivacyUnit("u", max_rows=3, max_groups=2)
    query = query_of(dpf.mean("x", bounds=(0.0, 4.0), missing="midpoint"), BY_GROUP, True)
    mine = [(group, value) for group in "AB" for _ in range(3)]
    (found,) = ratios(query, unit, [mine], [[]], 1).values()
    assert found == pytest.approx(1.0, abs=1e-6)


def test_what_is_shared():
    """A mean, its count, a variance and a deviation of the same values share one measurement."""
    mean, variance = dpf.mean("x", bounds=BOUNDS), dpf.variance("x", bounds=BOUNDS)
    of_ways, of_squares = Total(vector=two_sided("x", BOUNDS)), Total(vector=bernstein("x", BOUNDS))
    rows = Total(vector=two_sided("x", BOUNDS, everyone=True))
    midpoint = dpf.mean("x", bounds=BOUNDS, missing="midpoint")
    assert shared(m=mean).totals == (of_ways,)
    assert shared(m=mean, n=dpf.count("x")).totals == (of_ways,)
    assert shared(m=mean, n=dpf.count()).totals == (of_ways, Total())
    assert shared(m=midpoint, n=dpf.count()).totals == (rows,)
    assert shared(m=midpoint, n=dpf.count("x")).totals == (rows, Total("x"))
    assert shared(m=mean, v=variance, s=dpf.std("x", bounds=BOUNDS), n=dpf.count("x")).totals == (of_squares,)
    assert shared(m=midpoint, v=variance).totals == (rows, of_squares)
    assert shared(m=dpf.mean("x", bounds=(0, 1)), v=variance).totals != (of_squares,)
    assert shared(p=dpf.proportion("x"), m=dpf.mean("x", bounds=(0, 1)), n=dpf.count("x")).totals == (
        Total(vector=two_sided("x", (0.0, 1.0))),
    )
    both = (("n", dpf.count("x")), ("m", mean), ("v", variance))
    assert len(Query("agg", EVERYTHING, both).under(False).totals) == 3  # count, centred sum, squares
    counted = (("n", dpf.count("x")), ("p", dpf.proportion("x", value="A")))
    assert len(Query("agg", EVERYTHING, counted).under(False).totals) == 1


def test_a_count_of_another_column_is_its_own():
    mean = dpf.mean("x", bounds=BOUNDS)
    assert shared(m=mean, n=dpf.count("z")).totals == (Total(vector=two_sided("x", BOUNDS)), Total("z"))
    pair = dpf.covariance(["x", "z"], bounds={"x": BOUNDS, "z": BOUNDS}).under(True).totals()[0].vector
    assert pair is not None
    assert not any(pair.adds_up_to(column) for column in (None, "x", "z"))


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("missing", ["drop", "midpoint"])
def test_values_without_much_noise(library, missing):
    generator = np.random.default_rng(1)
    values = generator.normal(30, 30, 5_000)
    values[::5] = np.nan
    frame = pl.DataFrame({"x": values, "g": generator.choice(["A", "B"], values.size)})
    statistics = {"n": dpf.count("x"), "rows": dpf.count(), "m": dpf.mean("x", bounds=BOUNDS, missing=missing)}
    if missing == "drop":
        statistics["v"] = dpf.variance("x", bounds=BOUNDS)
    asked = given_as(frame, library).dp.group_by("g", keys=["A", "B"])
    found = asked.agg(statistics, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e7))
    for place, group in enumerate("AB"):
        clipped = frame.filter(g=group)["x"].to_numpy().clip(*BOUNDS)
        counted = (np.isfinite(clipped).sum(), clipped.size)
        assert (found["n"].to_numpy()[place], found["rows"].to_numpy()[place]) == counted
        exact = np.nanmean(clipped) if missing == "drop" else np.nan_to_num(clipped, nan=40.0).mean()
        assert found["m"].to_numpy()[place] == pytest.approx(exact, abs=1e-3)
        if missing == "drop":
            assert found["v"].to_numpy()[place] == pytest.approx(np.nanvar(clipped, ddof=1), abs=0.1)


def test_half_the_variance_of_a_centred_sum_and_a_count():
    """Over 40,000 groups of 1,000 values; tolerances are at least 6 standard deviations of the estimated variances."""
    groups, size = 40_000, 1_000
    query = shared(m=dpf.mean("x", bounds=(0, 1)))
    (total,) = query.totals
    noise = dpf.Laplace.calibrate(sensitivity=1.0, epsilon=1.0, grid=2.0**-30)
    exact = np.tile([0.3 * size, 0.7 * size], groups) * 2**30
    noisy = noise.add_noise(exact.astype(np.int64)) * 2.0**-30
    values, _ = query.answer(query.statistics[0][1], {total: Measured(noisy, noise)})
    centred = 4.0 * noise.variance * (0.25 + 0.2**2) / size**2  # of a sum and a count at half the epsilon each
    assert values.var() / centred == pytest.approx(0.5, rel=0.06)
    spread = noisy.reshape(-1, 2).sum(axis=1) - size
    assert spread.var() == pytest.approx(4.0, rel=0.06)  # its count has 4 / epsilon^2, and had 8 / epsilon^2


SIZES, SHARES, PRICES = (1, 3, 10, 100), (0.0, 0.2, 0.5, 1.0), (0.3, 1.0, 5.0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("epsilon", PRICES)
def test_intervals_cover(epsilon, share, size):
    """Also at the bounds, alone and with a variance: over 10,000 groups, a false alarm below 1e-6 / 192."""
    repeats = 10_000
    values = np.where(np.arange(size) < round(share * size), BOUNDS[1], BOUNDS[0])
    t = (values - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    exact = {2: [t.sum(), (1 - t).sum()], 3: [((1 - t) ** 2).sum(), (2 * t * (1 - t)).sum(), (t * t).sum()]}
    noise = dpf.Laplace.calibrate(sensitivity=1.0, epsilon=epsilon, grid=2.0**-30)
    for asked in ({}, {"v": dpf.variance("x", bounds=BOUNDS)}):
        query = shared(n=dpf.count("x"), m=dpf.mean("x", bounds=BOUNDS), **asked)
        (total,) = query.totals
        steps = np.tile(np.array(exact[total.vector.width]) * 2**30, repeats).astype(np.int64)
        for weighted in (False, True):
            measured = {total: Measured(noise.add_noise(steps) * 2.0**-30, noise, weighted)}
            for (_, statistic), truth in zip(query.statistics, (size, values.mean()), strict=False):
                found, errors = query.answer(statistic, measured)
                missed = int((np.abs(found - truth) > errors + 1e-6).sum())
                assert chance_of_missing(missed, repeats, 0.05) > 1e-6 / 192


@pytest.mark.parametrize("draws", [2, 3])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_the_interval_of_a_sum_of_draws(draws, confidence):
    """A false alarm of 100,000 sums has a chance below 1e-6 / 16."""
    for noise in (
        dpf.Laplace.calibrate(sensitivity=1.0, epsilon=1.0, grid=2.0**-10),
        dpf.Gaussian.calibrate(sensitivity=1.0, epsilon=1.0, delta=1e-3, grid=2.0**-10),
    ):
        drawn = noise.add_noise(np.zeros(draws * 100_000, dtype=np.int64)).reshape(-1, draws).sum(axis=1) * noise.grid
        missed = int((np.abs(drawn) > interval_of_sum(noise, draws, confidence) + noise.grid).sum())
        assert chance_of_missing(missed, 100_000, 1 - confidence) > 1e-6 / 16


def test_people_are_weighed_and_their_counts_are_not_rounded():
    frame = pl.DataFrame({"u": [1, 1, 1, 2], "x": [10.0, 20.0, 30.0, 40.0]})
    ledger = dpf.Ledger(epsilon=1e7, unit="u")
    found = frame.dp.agg(
        n=dpf.count("x"), m=dpf.mean("x", bounds=(0, 100)), epsilon=1e6, max_rows=2, max_groups=1, ledger=ledger
    )
    assert found["n"].item() == pytest.approx(3.0, abs=1e-3)  # two of the three rows of unit 1, and one of unit 2
    assert found["m"].item() == pytest.approx((20.0 * 2 + 40.0) / 3, abs=1e-2)
    by_rows = frame.dp.agg(n=dpf.count("x"), m=dpf.mean("x", bounds=(0, 9)), epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
    assert by_rows["n"].item() == round(by_rows["n"].item())
    assert by_rows["n_error"].item() == round(by_rows["n_error"].item())


def test_the_bounds_are_those_that_values_are_clipped_to():
    """The grid rounds these bounds; the mean of values on the grid still comes out exactly."""
    bounds = (2.0**40 + 0.3, 2.0**40 + 2.0**27 + 0.7)
    frame = pl.DataFrame({"x": np.full(4_000, 2.0**40 + 2.0**26)})
    found = frame.dp.mean("x", bounds=bounds, epsilon=1e7, ledger=dpf.Ledger(epsilon=1e8))
    assert found["x_mean"].item() == pytest.approx(2.0**40 + 2.0**26, abs=0.5)


def test_a_record_tells_it():
    frame = pl.DataFrame({"x": [10.0, 20.0], "g": ["A", "B"]})
    asked = frame.dp.group_by("g", keys=["A", "B"])
    found = asked.agg(
        n=dpf.count("x"), m=dpf.mean("x", bounds=BOUNDS), epsilon=0.5, ledger=dpf.Ledger(epsilon=1, checks=False)
    )
    facts = found.dp.provenance
    assert found.columns == ["g", "n", "n_error", "m", "m_error"]  # a shared count is not denoised
    assert [facts["measures"][name]["statistics"] for name in ("n", "m")] == [[0], [0]]
    assert facts["statistics"][0]["share"] == 1.0
    assert facts["measures"]["n"]["one_total"] is False
