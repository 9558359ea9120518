"""NumPy ranks the labels of few rows, and Polars those of many: both must give the same print (hash)."""

import random
from datetime import date

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


ENDS = [-(2**63), -(2**63) // 1000 - 1, -(2**63) // 1000, -1, 0, 1, 2**63 // 1000, 2**63 // 1000 + 1, 2**63 - 1]
DIFFERENT = {
    "one word": pl.Series(["\u00e9\U0001f600"]),
    "an empty word": pl.Series([""]),
    "words": pl.Series(["".join(chr(32 + 7 * n * k % 50_000) for k in range(n % 9)) for n in range(1, 3000)]),
    "ends of words": pl.Series(["\0", "", "", "a\0", "\u00e9", "", "\uffff", "\U0010ffff\U0010ffff"]),
    "large integers": pl.Series([-(2**63), 0, 2**53 + 1, 2**63 - 1]),
    "larger integers": pl.Series([0, 2**64 - 1], dtype=pl.UInt64),
    **{f"ticks, {number}": pl.Series([each], dtype=pl.Datetime("us")) for number, each in enumerate(ENDS)},
    "ticks": pl.Series([each for each in ENDS if abs(each) < 2**63 // 1000], dtype=pl.Datetime("us")),
    "short ticks": pl.Series(ENDS, dtype=pl.Duration("ns")),
}


@pytest.mark.parametrize("of", DIFFERENT)
def test_many_labels_have_the_bytes_of_few(of, monkeypatch):
    different = DIFFERENT[of]
    few = prints._bytes("kind", different)
    monkeypatch.setattr(prints, "MANY", 1)
    assert prints._bytes("kind", different) == few
    if different.dtype == pl.String:
        assert few == b"".join(len(word.encode()).to_bytes(8, "little") + word.encode() for word in different)
    elif "ticks" in of:
        size = {"us": 1000, "ns": 1}[different.dtype.time_unit]
        assert few.decode() == ",".join(str(int(each) * size) for each in different.to_physical())


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


BEFORE = {  # hashes in old records of two rows without a label, by the type of the column
    "text": (pl.String, "ec041a6f8aa8b833c14597d5cf57c522363ea5d53722627ebfb484656c563cb9"),
    "number": (pl.Int64, "89eb7a161ac43bdc50dac433600cf16348fef69a487e02bbe4addebaf63ba344"),
    "truth": (pl.Boolean, "68560dfe58ff7e7baf023f93e82753664bdc4687510921dc30fa4816cdb9bf74"),
    "moment": (pl.Date, "16635ac94599032dd9ef1dde45db5a8d74bfce6f1f313b527ed3d42c4370d8ba"),
    "missing": (pl.Null, "15862a47e5ac37c74c731f44bb07e31d91f54453c5336c4e730c3f0486beb782"),
}


@pytest.mark.parametrize("of", BEFORE)
def test_records_of_before_know_columns_without_a_label(of):
    dtype, sha256 = BEFORE[of]
    frame = pl.DataFrame({"key": pl.Series([None, None], dtype=dtype), "n": [1.0, 2.0]})
    record = {"columns": ["n"], "measures": {"n": {}}, "rows": {"labels": ["key"], "sha256": sha256, "order": None}}
    assert prints.places_of(frame, record).tolist() == [0, 1]
    assert prints.places_of(frame.with_columns(n=pl.Series([1.0, 3.0])), record) is None
    assert prints.print_of(frame, ["key"], ["n"]).sha256 == BEFORE["missing"][1]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_columns_without_a_label_are_the_same_in_both_libraries(library, tmp_path):
    pytest.importorskip("pandas")
    keys = {"ward": ["A", "B"], "age": [1, 2], "ill": [True, False], "day": [date(2026, 1, 1), date(2026, 1, 2)]}
    rows = pl.DataFrame({name: each * 20 for name, each in keys.items()})
    people = (rows if library == "polars" else rows.to_pandas()).dp
    ledger = dpf.Ledger(epsilon=20.0, delta=1e-5, keys_delta=1e-6)
    cube = people.group_by(*keys, keys=keys).count(epsilon=1.0, cube=True, ledger=ledger)
    tables = people.marginals([*keys], keys=keys, degree=1, epsilon=1.0, ledger=ledger)
    found = people.group_by("ward", keys=dpf.discover(delta=1e-9)).count(epsilon=0.01, delta=1e-6, ledger=ledger)
    missing = [cube[name].is_null() if library == "polars" else cube[name].isna() for name in keys]
    for number, one in enumerate([*map(cube.dp.filter, missing), tables.dp.head(1), found]):
        one.dp.write_parquet(tmp_path / f"{number}.parquet")
        for like in ("polars", "pandas"):
            assert not dpf.read_parquet(tmp_path / f"{number}.parquet", like=like).dp.provenance["altered"]
    assert not len(found)
