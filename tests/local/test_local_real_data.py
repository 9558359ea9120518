"""Local methods on a real heavy-tailed list: frequent words stand out from the noise, and rare ones do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.noise import insecure_bits

COUNTS = """
3472 3418 2599 2520 2421 1688 1682 1394 1356 1286 1103 1007 979 978 962 859 792 691 654 633 593 576 576 573 564 547 524
520 518 505 491 471 454 446 441 421 411 367 363 361 346 344 343 341 338 334 334 332 329 328 321 309 306 299 283 273 265
256 251 241 236 226 224 224 220 220 218 215 213 211 205 191 190 189 186 185 179 169 166 165 162 162 162 161 158 158 158
153 152 152 149 149 148 147 145 144 141 139 138 135
"""  # counts of the hundred most common first words in the 98,203 n-grams of the test data of SmartNoise (MIT)


@pytest.fixture(scope="module")
def words():
    counts = np.array(COUNTS.split(), dtype=int)
    names = [f"word {number}" for number in range(counts.size)]
    return pl.Series("ngram", np.repeat(names, counts)), names, counts


METHODS = {
    "subset selection": lambda names: dpf.local.SubsetSelection(names, epsilon=3),
    "sketch": lambda names: dpf.local.CountMeanSketch(names, epsilon=3, cells=128),
    "RAPPOR's permanent bits": lambda names: dpf.local.Rappor.for_epsilon(names, 3).permanent,
}


@pytest.mark.parametrize("name", METHODS)
def test_the_head_is_seen_and_the_tail_is_not(words, name):
    values, names, truth = words
    method = METHODS[name](names)
    with insecure_bits(41):
        found = method.estimate(method.randomize(values))
    noisy, error = found["count_noisy"].to_numpy(), found["count_error"].to_numpy()
    assert len(set(np.argsort(-noisy)[:5]) & set(range(6))) >= 4
    z = (noisy - truth) / error * 1.96
    assert np.abs(z).max() < 6
    assert 0.7 < z.std() < 1.35
    rare = truth < error.min()
    assert np.count_nonzero(noisy[rare] > 2 * error[rare]) <= max(1, rare.sum() // 20)
    assert np.square(found["count"].to_numpy() - truth).sum() <= np.square(noisy - truth).sum()
