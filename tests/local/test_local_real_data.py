"""What is claimed of the two systems, on a real heavy-tailed list: its head is seen, and its tail is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.noise import insecure_bits

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "reddit_ngrams" / "ngrams.parquet"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the table of n-grams is not part of the repository")


@pytest.fixture(scope="module")
def words():
    first = pl.read_parquet(DATA)["ngram"].drop_nulls().str.split(" ").list.first()
    counts = first.value_counts(sort=True).head(100)
    names = counts["ngram"].to_list()
    return first.filter(first.is_in(names)), names, counts["count"].to_numpy()


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
