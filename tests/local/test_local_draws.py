"""Coins and subsets of the local model have exactly their probabilities, also where one byte cannot decide."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import dpframe as dpf
from dpframe import noise
from dpframe.noise import coins, random_bits

ALARM = 1e-6  # the chance of a false alarm of each test


def deviates(found, expected):
    """Return whether counts are less likely than ALARM, by Pearson's test."""
    return chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1) < ALARM


CHANCES = [
    coins.Chance(1, 1, Fraction(1)),
    coins.Chance(3, 7, Fraction(-1, 2)),
    coins.Chance(1, 999, Fraction(3, 10)),
    coins.Chance.of(Fraction(1, 3)),
    coins.Chance.of(Fraction(3, 4)),
    coins.Chance.of(Fraction(1, 10**6)),
]


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_coins_have_their_probability_and_no_other(chance):
    with noise.insecure_bits(7):
        found = coins.tossed(chance, 10**7)
    heads, p = np.count_nonzero(found), float(chance)
    assert not deviates(np.array([heads, 10**7 - heads]), 10**7 * np.array([p, 1 - p]))
    wrong = p * 1.02
    if p > 0.01:
        assert deviates(np.array([heads, 10**7 - heads]), 10**7 * np.array([wrong, 1 - wrong])), "2% off is seen"


def test_certain_coins():
    assert not coins.tossed(coins.Chance.of(Fraction(0)), 1_000).any()
    assert coins.tossed(coins.Chance.of(Fraction(1)), 1_000).all()
    assert not coins.tossed(coins.Chance(0, 3, Fraction(1)), 1_000).any()


@pytest.mark.parametrize("chance", [CHANCES[0], CHANCES[1], CHANCES[3]], ids=str)
def test_open_coins_are_decided_by_more_bits(chance, monkeypatch):
    """The first byte and word equal the digits of the probability, so the toss stays open; the next words decide it."""
    exact = chance.exact(400)
    digits = int(mpmath.ldexp(exact, 200))  # the binary digits of the probability
    first, word = digits >> 192, (digits >> 128) & (2**64 - 1)
    rest = (digits >> 64) & (2**64 - 1)
    monkeypatch.setattr(coins, "numbers", lambda size, bits: np.full(size, first, dtype=np.uint8))
    monkeypatch.setattr(random_bits, "words", lambda size: np.full(size, word, dtype=np.uint64))
    for more, expected in ((0, True), (2**64 - 1, False), (rest - 1, True), (rest + 1, False)):
        monkeypatch.setattr(random_bits, "word", lambda more=more: more)
        assert coins.tossed(chance, 3).tolist() == [expected] * 3


def test_subsets_are_uniform():
    with noise.insecure_bits(8):
        found = coins.subsets(3, 6, 200_000)
    assert (found.sum(axis=1) == 3).all()
    each = np.array(list(Counter(map(bytes, found)).values()))
    assert len(each) == 20
    assert not deviates(each, np.full(20, 10_000.0))


def test_others_leave_out_the_truth():
    truth = np.arange(4).repeat(30_000)
    with noise.insecure_bits(9):
        found = coins.others(truth, 4)
    assert (found != truth).all()
    pairs = np.bincount(truth * 4 + found, minlength=16)
    assert not deviates(pairs[pairs > 0], np.full(12, 10_000.0))


def test_rounding_is_without_bias():
    parts = np.full(10**6, 3 * 2**52 + 2**50, dtype=np.int64)  # 3.25
    with noise.insecure_bits(10):
        found = coins.rounded_randomly(parts, 52)
    assert set(found.tolist()) == {3, 4}
    assert not deviates(np.bincount(found)[3:], 10**6 * np.array([0.75, 0.25]))


METHODS = {
    "randomized response": dpf.local.RandomizedResponse(range(4), epsilon=1),
    "subset selection": dpf.local.SubsetSelection(range(9), epsilon=0.5),
}


@pytest.mark.parametrize("name", METHODS)
def test_reports_hold_the_truth_as_often_as_they_should(name):
    method, rows = METHODS[name], 300_000
    with noise.insecure_bits(11):
        reports = method.randomize(pl.Series("x", [2] * rows))
    n, support = rows, method.estimate(reports, denoise=None)["count"].to_numpy() * method.law.gap + rows * method.q
    expected = np.full(len(method.categories), method.q)
    expected[2] = method.p
    z = (support - n * expected) / np.sqrt(n * expected * (1 - expected))
    assert np.abs(z).max() < 6
    wrong = (support[2] - n * expected[2] * 1.02) / np.sqrt(n * expected[2])
    assert abs(wrong) > 6, "2% off is seen"


def test_the_sketch_flips_as_often_as_it_should():
    method, rows = dpf.local.CountMeanSketch(["a", "b"], epsilon=2, hashes=4, cells=16), 100_000
    with noise.insecure_bits(12):
        text = method.randomize(pl.Series("x", ["a"] * rows)).to_list()
    number = np.array([int(one[:4], 16) for one in text])
    bits = np.array([[int(digit) for digit in f"{int(one[4:], 16):016b}"] for one in text])
    marked = np.zeros_like(bits)
    marked[np.arange(rows), method.places[number, 0]] = 1
    flips = np.count_nonzero(bits != marked)
    assert not deviates(np.array([flips, bits.size - flips]), bits.size * np.array([method.flip, 1 - method.flip]))
    assert not deviates(np.bincount(number), np.full(4, rows / 4))


def test_a_missing_value_is_any_category():
    method = dpf.local.RandomizedResponse(["a", "b", "c"], epsilon=8)
    with noise.insecure_bits(13):
        reports = method.randomize(pl.Series("x", [None, "other"] * 30_000))
    each = np.array([reports.to_list().count(value) for value in "abc"])
    assert not deviates(each, np.full(3, 20_000.0))


def test_a_million_reports_take_seconds():
    """Not a benchmark: reports must be made without a Python loop over the rows, which would take far longer."""
    method = dpf.local.SubsetSelection(range(20), epsilon=1)
    assert len(method.randomize(pl.Series("x", np.arange(10**6) % 20))) == 10**6
