"""Estimates from reports: intervals cover, adjustment only helps, and tables and charts work as for other results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from seen import seen

import dpframe as dpf
from dpframe.noise import coins, insecure_bits
from tests.covering import chance_of_missing

LOCAL = dpf.local
ALARM = 1e-6
COUNTS = (1_200, 500, 200, 80, 20, 0)
PAGES = list("abcdef")
METHODS = {
    "randomized response": LOCAL.RandomizedResponse(PAGES, epsilon=1),
    "subset selection": LOCAL.SubsetSelection(PAGES, epsilon=0.5),
    "unary RAPPOR": LOCAL.Rappor(PAGES, f=0.25, p=0.25, q=0.75),
    "RAPPOR": LOCAL.Rappor(PAGES, f=0.25, p=0.25, q=0.75, hashes=2, bits=12, cohorts=8),
    "sketch": LOCAL.CountMeanSketch(PAGES, epsilon=2, hashes=64, cells=32),
}


def values(counts=COUNTS):
    return pl.Series("page", [page for page, count in zip(PAGES, counts, strict=True) for _ in range(count)])


def with_key(method, run):
    """Return a sketch with other hash functions, because its error holds over their random collisions."""
    return replace(method, key=str(run)) if isinstance(method, LOCAL.CountMeanSketch) else method


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_intervals_cover_and_are_not_wide(name):
    """200 estimates of six counts each detect intervals that are too narrow and intervals that are too wide."""
    method, series, runs = METHODS[name], values(), 200
    with insecure_bits(31):
        every = [with_key(method, run) for run in range(runs)]
        found = [one.estimate(one.randomize(series), denoise=None) for one in every]
    off = np.array([one["count"].to_numpy() - np.array(COUNTS) for one in found])
    sizes = np.array([one["count_error"].to_numpy() for one in found])
    misses = int((np.abs(off) > sizes).sum())
    assert chance_of_missing(misses, off.size, 0.05) > ALARM
    narrow = int((np.abs(off) > 0.8 * sizes).sum())
    assert chance_of_missing(narrow, off.size, 0.05) < ALARM, "intervals of four fifths are caught"
    z = off.mean(axis=0) / (sizes.mean(axis=0) / 1.96) * runs**0.5
    assert np.abs(z).max() < 6, "no bias"
    assert 0.85 < off.std() / (sizes.mean() / 1.96) < 1.1


def exact_coverage(method, n, truth):
    """Return the exact probability that the interval holds a count, summed over all possible numbers of reports."""
    of_truth, of_others = (binom.pmf(np.arange(many + 1), many, chance)
        for many, chance in ((truth, method.p), (n - truth, method.q)))  # fmt: skip
    counts, variances = method.counts(np.arange(n + 1.0), n)
    holds = np.abs(counts - truth) <= 1.96 * np.sqrt(variances)
    return np.convolve(of_truth, of_others)[holds].sum()


@pytest.mark.parametrize(("of", "size", "epsilon", "n", "truth"), [(LOCAL.RandomizedResponse, 1_000, 7, 100, 1),
    (LOCAL.SubsetSelection, 1_000, 7, 100, 2), (LOCAL.RandomizedResponse, 20_000, 10, 1_000, 1),
    (LOCAL.RandomizedResponse, 50, 9, 200, 199)])  # fmt: skip
def test_counts_of_rare_categories_are_covered(of, size, epsilon, n, truth):
    assert exact_coverage(of(range(size), epsilon=epsilon), n, truth) > 0.93


@pytest.mark.parametrize("of", [LOCAL.RandomizedResponse, LOCAL.SubsetSelection])
@pytest.mark.parametrize("size", [2, 4, 10])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 5, 6, 7, 8, 10, 12])
def test_counts_are_covered_where_a_report_is_more_than_the_deviation(of, size, epsilon):
    """At a large epsilon, a count moves by whole reports, and 1.96 standard deviations are less than one report."""
    method = of(range(size), epsilon=epsilon)
    for n in (30, 100, 300, 1_000):
        truths = (0, 1, n // 20, n // 4, n // 2, 7 * n // 10, n - 1, n)
        assert min(exact_coverage(method, n, truth) for truth in truths) > 0.92


@pytest.mark.parametrize(("epsilon", "reports"), [(16, 100), (10, 15)])
def test_a_sketch_is_covered_where_a_report_is_more_than_the_deviation(epsilon, reports):
    """Such intervals hold only one step; without half a report in the variance, they covered 84% to 91%."""
    draws, names = np.random.default_rng(4), list(range(10))
    held = np.zeros(len(names))
    for key in range(150):
        method = LOCAL.CountMeanSketch(names, epsilon=epsilon, key=str(key))
        flip = 1.0 / (1.0 + np.exp(epsilon / 2.0))
        function = draws.integers(0, method.hashes, reports)
        each = np.bincount(function, minlength=method.hashes)
        bits = np.zeros((reports, method.cells), dtype=np.bool_)
        bits[np.arange(reports), method.places[function, 0]] = True  # all reports are of the first name
        ones = np.zeros((method.hashes, method.cells), dtype=np.int64)
        np.add.at(ones, function, bits ^ (draws.random(bits.shape) < flip))
        counts, variances = method.counts(ones, each)
        truth = np.array([reports] + [0] * 9)
        held += np.abs(counts - truth) <= 1.96 * np.sqrt(variances)
    assert held.mean() / 150 > 0.95
    assert held.min() / 150 > 0.92


@pytest.mark.slow
def test_the_variance_of_a_sketch_holds_over_its_keys():
    """Collisions depend on the random key, so a new key for each release shows their part of the error."""
    off, sizes = [], []
    for key in range(300):
        method = LOCAL.CountMeanSketch(PAGES, epsilon=8, hashes=2, cells=8, key=str(key))
        found = method.estimate(method.randomize(values()), denoise=None)
        off.append(found["count"].to_numpy()[-1])
        sizes.append(found["count_error"].to_numpy()[-1] / 1.96)
    assert abs(np.mean(off)) < 6 * np.mean(sizes) / 300**0.5
    assert 0.7 < np.std(off) / np.sqrt(np.mean(np.square(sizes))) < 1.3


@pytest.mark.slow
def test_means_are_without_bias_and_their_intervals_cover():
    ages = pl.Series("age", np.repeat([3.0, 40.0, 41.5, 99.0, 250.0], 200))
    truth = np.clip(ages.to_numpy(), 0, 100).mean()
    for epsilon in (0.5, 2, 4):
        method = LOCAL.Mean((0, 100), epsilon=epsilon)
        with insecure_bits(32):
            found = [method.estimate(method.randomize(ages)) for _ in range(300)]
        off = np.array([one["age_mean"][0] - truth for one in found])
        error = found[0]["age_mean_error"][0]
        assert abs(off.mean()) < 6 * off.std() / 300**0.5
        assert chance_of_missing(int((np.abs(off) > error).sum()), 300, 0.05) > ALARM
        assert off.std() < 1.2 * error / 1.96


def test_missing_numbers_count_as_the_middle():
    method = LOCAL.Mean((0, 100), epsilon=8)
    with insecure_bits(33):
        found = method.estimate(method.randomize(pl.Series("age", [None, float("nan")] * 20_000)))
    assert abs(found["age_mean"][0] - 50) < 6 * found["age_mean_error"][0]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_intervals_of_means_hold_where_numbers_are_missing(share):
    """Missing values count as the middle; with a random step instead, intervals covered 37%. A false alarm: 1e-6."""
    method, people, runs = LOCAL.Mean((0, 10), epsilon=8), 400, 300
    numbers = np.where(np.arange(people) < share * people, np.nan, 5.0)
    with insecure_bits(35):
        reports = method.randomize(pl.Series("x", np.tile(numbers, runs)))
    found = [method.estimate(reports[run * people : (run + 1) * people]) for run in range(runs)]
    misses = sum(abs(one["x_mean"][0] - 5.0) > one["x_mean_error"][0] for one in found)
    assert chance_of_missing(misses, runs, 0.05) > ALARM


def test_as_many_bits_are_drawn_whether_numbers_are_missing_or_not(monkeypatch):
    method, drawn = LOCAL.Mean((0, 100), epsilon=2, steps=4, width=2), []
    taken = coins.numbers
    monkeypatch.setattr(coins, "numbers", lambda size, bits: drawn.append((size, bits)) or taken(size, bits))
    for numbers in ([30.0] * 50, [float("nan")] * 50):
        method.rounded(np.array(numbers))
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]
    assert set(method.rounded(np.full(50, np.nan)).tolist()) == {2}, "the middle, for an even number of steps"


def test_infinite_numbers_are_clipped():
    method = LOCAL.Mean((0, 100), epsilon=30, steps=1, width=1)
    found = method.randomize(pl.Series("age", [float("inf"), float("-inf")] * 100))
    assert found.to_list() == [1, 0] * 100


def test_denoising_keeps_the_public_number():
    method = LOCAL.SubsetSelection(PAGES, epsilon=0.5)
    found = method.estimate(method.randomize(values()))
    assert found.columns == ["page", "count", "count_noisy", "count_error"]
    assert found["page"].to_list() == PAGES
    assert found["count"].sum() == pytest.approx(2_000)
    assert found["count"].min() >= 0
    raw = found["count_noisy"].to_numpy() - np.array(COUNTS)
    assert np.square(found["count"].to_numpy() - np.array(COUNTS)).sum() <= np.square(raw).sum() + 1e-6
    with pytest.raises(dpf.InvalidArgument, match="denoise must be 'public-total' or None"):
        method.estimate(method.randomize(values()), denoise="wavelet")


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_columns_without_a_name(like):
    method = METHODS["randomized response"]
    if like == "pandas":
        pandas = pytest.importorskip("pandas")
        reports = method.randomize(pandas.Series(["a", "b", None], index=[7, 8, 9]))
        assert list(reports.index) == [0, 1, 2], "an index is not randomized"
    else:
        reports = method.randomize(pl.Series(["a", "b", None]))
    assert next(iter(method.estimate(reports).columns)) == "category"


def test_none_may_be_a_category():
    method = LOCAL.RandomizedResponse(["a", None], epsilon=20)
    reports = method.randomize(pl.Series("x", [None] * 50 + ["a"] * 100))
    found = method.estimate(reports)
    assert found["x"].to_list() == ["a", None]
    assert found["count"].to_list() == pytest.approx([100, 50], abs=1e-3)
    only = method.randomize(pl.Series("x", [None] * 5, dtype=pl.String))
    assert only.dtype == pl.String
    assert method.estimate(only)["count"].to_list() == pytest.approx([0, 5], abs=1e-3)


def test_no_reports_are_no_people():
    for method in METHODS.values():
        found = method.estimate(method.randomize(pl.Series("page", [], dtype=pl.String)))
        assert found["count"].to_list() == [0] * 6
    with pytest.raises(dpf.InvalidArgument, match="at least one"):
        LOCAL.Mean((0, 1), epsilon=1).estimate(pl.Series("x", [], dtype=pl.Int64))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("wrong", ["", "zz", "01", "0" * 200, None, 7, "é0"])
def test_what_is_no_report_is_refused(name, wrong):
    with pytest.raises((dpf.InvalidArgument, dpf.WrongDtype), match="must"):
        METHODS[name].estimate(pl.Series("page", [wrong]))


@pytest.mark.parametrize("wrong", [True, None, -1, 10**6, 0.5, "1"])
def test_what_is_no_report_of_a_mean_is_refused(wrong):
    with pytest.raises((dpf.InvalidArgument, dpf.WrongDtype), match="whole numbers from 0 to"):
        LOCAL.Mean((0, 10), epsilon=1).estimate(pl.Series("x", [wrong]))


def test_subsets_of_another_size_are_refused():
    method = METHODS["subset selection"]
    assert method.size == 2
    with pytest.raises(dpf.InvalidArgument, match="names 2 of 6"):
        method.estimate(pl.Series("page", ["e0"]))


def test_what_is_no_column_is_refused():
    for wrong in (["a"], "a", pl.DataFrame({"a": [1], "b": [2]}), np.zeros(3)):
        with pytest.raises(dpf.InvalidType, match="column"):
            METHODS["subset selection"].randomize(wrong)


@pytest.mark.slow
def test_tables_and_charts_of_estimates():
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    found = METHODS["subset selection"].estimate(METHODS["subset selection"].randomize(values()))
    assert "local model" in found.dp.table().as_raw_html()
    assert "local model" in str(seen(found.dp.plot())["title"])
    mean = LOCAL.Mean((0, 100), epsilon=1)
    averages = mean.estimate(mean.randomize(pl.Series("age", [30.0, 50.0])))
    assert "mean of age" in str(seen(averages.dp.plot()))
    assert averages.dp.table()


def test_estimates_are_results():
    found = METHODS["subset selection"].estimate(METHODS["subset selection"].randomize(values()))
    facts = found.dp.provenance
    assert (facts["verb"], facts["model"], facts["per_report"]) == ("estimate", "local", 0.5)
    assert not facts["altered"]
    assert any("margins of error leave this out" in note for note in facts["notes"]), "a draw that no margin covers"
    assert found.dp.to_numpy("count").shape == (6,)
    assert found.dp.errors()["interval"][0] > 0
    with pytest.raises(dpf.AlreadyReleased):
        found.dp.count(epsilon=1)


def test_filters_that_cannot_be_told_apart_are_refused():
    method = LOCAL.Rappor(range(40), f=0.5, p=0.25, q=0.75, bits=2, hashes=1)
    with pytest.raises(dpf.InvalidArgument, match="tell all categories apart"):
        method.estimate(method.randomize(pl.Series("x", [1, 2, 3])))


def test_a_sketch_says_of_which_keys_its_margins_hold():
    """With 16 hashes, 32 cells and one fixed key, intervals of three of eight categories covered only 4%."""
    few = {"epsilon": 8, "hashes": 16, "cells": 32}
    found = {}
    for method in (LOCAL.CountMeanSketch(PAGES, **few), LOCAL.RandomizedResponse(PAGES, epsilon=8)):
        reports = pl.DataFrame({"report": method.reports(np.zeros(50, dtype=np.int64))})
        found[method.name] = " ".join(method.estimate(reports).dp.provenance["notes"])
    assert "margins of error hold for a random key" in found["count-mean sketch"]
    assert "random key" not in found["randomized response"]
