"""Labels of few rows are ranked by NumPy, and of many by Polars: both give the same print."""

import random

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import prints

WORDS = ["", "a", "b", "A", "\u00e9", "\U0001f600", "\uffff", "\ue000", "a\0", "a\0b", "zz", None]
NUMBERS = [0.0, -0.0, 1.0, float("nan"), None, float("inf"), -float("inf"), 1e-320, 3.5, 2.0**53, -7.0]
WHOLE = [0, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None, 100]
OF = {
    "text": (pl.String, WORDS),
    "floats": (pl.Float64, NUMBERS),
    "short floats": (pl.Float32, NUMBERS),
    "integers": (pl.Int64, WHOLE),
    "large integers": (pl.UInt64, [0, 2**64 - 1, 2**63, None, 100]),
    "small integers": (pl.Int8, [0, 1, 5, None, -100]),
    "truth": (pl.Boolean, [True, False, None]),
    "missing": (pl.Null, [None]),
}


@pytest.mark.parametrize("of", OF)
def test_few_labels_are_ranked_as_many(of, monkeypatch):
    dtype, values = OF[of]
    generator = random.Random(of)
    frames = [
        pl.DataFrame({"label": pl.Series([generator.choice(values) for _ in range(rows % 12)], dtype=dtype)})
        for rows in range(200)
    ]
    few = [prints.labels_of(frame, "label") for frame in frames]
    monkeypatch.setattr(prints, "FEW", -1)
    for frame, mine in zip(frames, few, strict=True):
        other = prints.labels_of(frame, "label")
        assert (mine.kind, mine.different) == (other.kind, other.different)
        assert np.array_equal(mine.ranks, other.ranks)
        assert np.array_equal(mine.missing, other.missing)


@pytest.mark.parametrize("few", [prints.FEW, -1])
def test_a_zero_below_zero_is_a_zero(few, monkeypatch):
    monkeypatch.setattr(prints, "FEW", few)
    plain, negative = (pl.DataFrame({"label": [1.0, zero]}) for zero in (0.0, -0.0))
    assert prints.print_of(plain, ["label"], []).sha256 == prints.print_of(negative, ["label"], []).sha256


def test_a_result_is_known_by_either_way(monkeypatch):
    people = pl.DataFrame({"ward": ["A", "B", "A"], "age": [31.0, 45.0, 62.0]})
    with dpf.Ledger(epsilon=10.0):
        wards = people.dp.group_by("ward", keys=["B", "A"]).count(epsilon=1.0)
        ages = people.dp.histogram("age", bins=[-0.0, 40, 90], epsilon=1.0)
    for few in (prints.FEW, -1):
        monkeypatch.setattr(prints, "FEW", few)
        for result in (wards, ages):
            places = prints.places_of(result.reverse(), result.dp.provenance)
            assert places.tolist() == [*reversed(range(result.height))]
