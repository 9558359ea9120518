"""What a result says of its errors: the interval of the noise, and the expected error of what was denoised."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpframe as dpf

COLUMNS = ["column", "by", "interval", "noisy_rmse", "denoised_rmse"]


def rows(frame):
    return [dict(zip(frame.columns, row, strict=True)) for row in np.array(frame.to_numpy(), dtype=object).tolist()]


def frame_of(engine):
    return engine({"age": [10.0, 20.0, 30.0] * 400, "ward": ["A", "B", "C"] * 400})


def test_errors_of_a_table(engine):
    with dpf.Ledger(epsilon=9):
        found = (
            frame_of(engine)
            .dp.group_by("ward", keys=["A", "B", "C"])
            .agg(n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), epsilon=0.3)
        )
    errors = found.dp.errors()
    assert type(errors) is type(found)
    assert list(errors.columns) == COLUMNS
    count, mean = rows(errors)
    said = found.dp.provenance
    assert (count["column"], count["by"]) == ("n", "ward")
    assert count["interval"] == max(found["n_error"])
    assert count["noisy_rmse"] == pytest.approx(math.sqrt(said["statistics"][2]["variance"]))
    assert count["denoised_rmse"] == said["measures"]["n"]["denoise"][0]["estimated_rmse"]
    assert mean["interval"] == max(found["age_error"])
    assert all(value is None or value != value for value in (mean["noisy_rmse"], mean["denoised_rmse"]))


def test_errors_of_numbers_and_of_plain_values(engine):
    with dpf.Ledger(epsilon=9):
        one = frame_of(engine).dp.count(epsilon=0.3)
        plain = frame_of(engine).dp.histogram("age", bins=[0, 20, 40], denoise=None, epsilon=0.3)
        named = frame_of(engine).dp.histogram("age", bins=[0, 20, 40], denoise="nonnegative", epsilon=0.3)
    for found in (one, plain, named):
        (only,) = rows(found.dp.errors())
        assert only["interval"] > only["noisy_rmse"] > 0.0
        assert only["denoised_rmse"] is None or only["denoised_rmse"] != only["denoised_rmse"]
    assert rows(one.dp.errors())[0]["by"] == ""


def test_errors_of_each_level(engine):
    with dpf.Ledger(epsilon=9):
        found = (
            frame_of(engine)
            .dp.group_by("ward", keys=["A", "B", "C"])
            .agg(n=dpf.count(), age=dpf.sum("age", bounds=(0, 100)), rollup=True, epsilon=0.4)
        )
    errors = rows(found.dp.errors())
    assert [(row["column"], row["by"]) for row in errors] == [("n", "ward"), ("age", "ward"), ("n", ""), ("age", "")]
    levels = found.dp.provenance["measures"]["age"]["denoise"][0]["estimated_rmse_of_levels"]
    assert [row["denoised_rmse"] for row in errors[1::2]] == levels
    assert all(row["denoised_rmse"] < row["noisy_rmse"] for row in errors)


def test_the_small_print_says_it():
    pl = pytest.importorskip("polars")
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = pl.DataFrame({"age": [10.0, 20.0, 30.0] * 400})
    with dpf.Ledger(epsilon=9):
        found = frame.dp.histogram("age", bins=[0, 20, 40], epsilon=0.3)
        plain = frame.dp.histogram("age", bins=[0, 20, 40], denoise=None, epsilon=0.3)
    words = "denoised, so biased; estimated root mean squared error: count"
    assert any(words in line for line in found.dp.plot().to_dict()["title"]["subtitle"])
    assert words in found.dp.table().as_raw_html()
    assert "denoised" not in plain.dp.table().as_raw_html()
    with pytest.raises(dpf.InvalidArgument, match="2 rows"):
        dpf.of(cut(found)).errors()


def cut(frame):
    """A pandas frame keeps its record when rows are cut off."""
    pytest.importorskip("pandas")
    whole = frame.to_pandas()
    whole.attrs["dpframe"] = frame.dp.provenance
    return whole.head(1)
