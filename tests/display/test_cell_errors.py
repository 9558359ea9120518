"""The expected error of each denoised cell: stored in the record, returned by errors(), shown in charts and tables."""

from __future__ import annotations

import copy
import math
from datetime import datetime

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe import noise
from dpframe.display import statements
from dpframe.display.statements import packed, unpacked

DROWNED = "the noise is larger than most differences between these groups: "


def numbers(frame, name):
    return np.asarray(frame[name].to_numpy(), dtype=np.float64)


@pytest.fixture(scope="module")
def sizes():
    """A histogram of 400 skewed counts, which denoisers improve by their context or a prior."""
    generator = np.random.default_rng(2)
    frame = pl.DataFrame({"size": np.minimum(generator.pareto(1.0, 20_000), 399.0)})
    with dpf.Ledger(epsilon=9), noise.insecure_bits(1):
        return frame.dp.histogram("size", bins=400, range=(0, 400), order=False, epsilon=0.5)


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("span", [0.0, 1.0, 9.0])
def test_packed_errors_are_rounded_up_a_little(size, span):
    errors = np.exp(np.random.default_rng(1).uniform(0.0, span, size))
    found = unpacked(packed(errors), size)
    assert (found >= errors * (1 - 1e-9)).all()
    assert (found <= errors * math.exp(span / 255) * (1 + 1e-9)).all()


@pytest.mark.parametrize("codes", ["", "!", "AAAA", "eJw=", packed(np.ones(7))["codes"]])
def test_text_that_holds_something_else_is_refused(codes):
    with pytest.raises(dpf.InvalidArgument, match="an error for each cell, 8 in all"):
        unpacked({"least": 1.0, "ratio": 1.1, "codes": codes}, 8)


def test_a_long_text_is_not_opened_to_its_end():
    with pytest.raises(dpf.InvalidArgument, match="each cell, 5 in all"):
        unpacked(packed(np.ones(10_000_000)), 5)


def test_errors_of_cells(sizes):
    found = sizes.dp.errors(cells=True)
    assert found.columns == [
        "size_left",
        "size_right",
        "count_interval",
        "count_low",
        "count_high",
        "count_noisy_rmse",
        "count_denoised_rmse",
    ]
    assert numbers(found, "count_interval").tolist() == numbers(sizes, "count_error").tolist()
    spread = math.sqrt(sizes.dp.provenance["statistics"][0]["variance"])
    assert set(numbers(found, "count_noisy_rmse")) == {spread}
    expected = numbers(found, "count_denoised_rmse")
    assert expected.min() > 0.0
    assert expected[300:].mean() < 0.5 * spread < expected[:3].mean()


def test_errors_of_cells_follow_their_rows():
    pytest.importorskip("pandas")
    generator = np.random.default_rng(2)
    frame = pl.DataFrame({"size": np.minimum(generator.pareto(1.0, 20_000), 399.0)}).to_pandas()
    with dpf.Ledger(epsilon=9), noise.insecure_bits(1):
        found = frame.dp.histogram("size", bins=400, range=(0, 400), order=False, epsilon=0.5)
    mixed = found.iloc[generator.permutation(400)]
    plain, moved = found.dp.errors(cells=True), mixed.dp.errors(cells=True)
    assert moved["size_left"].tolist() == mixed["size_left"].tolist()
    assert moved.sort_values("size_left")["count_denoised_rmse"].tolist() == plain["count_denoised_rmse"].tolist()


def test_errors_of_cells_where_nothing_is_known():
    people = pl.DataFrame({"age": [10.0, 20.0, 30.0] * 400})
    with dpf.Ledger(epsilon=9):
        found = people.dp.histogram("age", bins=[0, 20, 40], epsilon=0.3, denoise="nonnegative")
        mean = people.dp.mean("age", bounds=(0, 100), epsilon=0.3)
    assert found.dp.errors(cells=True)["count_denoised_rmse"].null_count() == 2
    assert mean.dp.errors(cells=True)["age_mean_noisy_rmse"].null_count() == 1


def test_charts_explain_bands_where_other_captions_have_no_room():
    """The statement has the captions that are cut, but it says nothing of marks in a picture."""
    pytest.importorskip("altair")
    times = pl.DataFrame({"at": [datetime(2026, 1, 1)] * 20})
    hours = times.dp.group_by("at", keys=dpf.dates("2026-01-01T00:00", "2026-01-02T23:00", every="6h"))
    with dpf.Ledger(epsilon=9), noise.insecure_bits(1):
        captions = seen(hours.count(epsilon=0.1).dp.plot())["captions"]
    assert "More: .dp.statement()." in captions
    assert "Orange bands: twice the expected error of each denoised value." in captions


def test_charts_and_tables_show_them(sizes):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    chart = seen(sizes.dp.plot())
    assert "range bands: twice the expected error of each denoised value" in chart["captions"]
    rows = next(layer["data"]["values"] for layer in [chart, *chart["layer"]] if "data" in layer)
    expected = numbers(sizes.dp.errors(cells=True), "count_denoised_rmse")
    assert [row["band_high"] - row["band_low"] for row in rows] == pytest.approx((4 * expected).tolist())
    assert "itself off by about" in sizes.dp.table().as_raw_html()


def test_what_drowns_is_said():
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    weeks = pl.DataFrame({"week": np.arange(540) % 54, "cost": [1.0] * 540})
    with dpf.Ledger(epsilon=99), noise.insecure_bits(2):
        drowned = weeks.dp.group_by("week", keys=range(54)).agg(n=dpf.count(), epsilon=0.02)
        clear = weeks.dp.group_by("week", keys=[*range(53), 99]).agg(n=dpf.count(), epsilon=20)
    assert drowned.dp.provenance["measures"]["n"]["denoise"][0]["noise_dominates"] is True
    assert f"{DROWNED}n"[1:] in seen(drowned.dp.plot())["captions"]
    assert f"{DROWNED}n" in drowned.dp.table().as_raw_html()
    assert "noise_dominates" not in clear.dp.provenance["measures"]["n"]["denoise"][0]
    assert DROWNED[1:] not in seen(clear.dp.plot())["captions"]


def test_what_is_known_of_the_first_denoiser_is_not_said_of_the_last(sizes):
    statistic = copy.deepcopy(sizes.dp.provenance["measures"]["count"])
    assert statements.cell_rmse(statistic, 400) is not None
    for later, known in (("nonnegative", True), ("rounded", False)):
        more = {**statistic, "denoise": [*statistic["denoise"], {"name": later}]}
        assert (statements.cell_rmse(more, 400) is not None) is known


def test_a_result_without_rows_has_errors_without_rows():
    frame, ledger = pl.DataFrame({"g": ["a"]}), dpf.Ledger(epsilon=1, delta=1e-3, accounting="basic")
    found = frame.dp.group_by("g", keys=dpf.discover(delta=1e-9)).count(epsilon=0.1, delta=1e-9, ledger=ledger)
    if found.height == 0:  # false with a chance of at most 2e-9
        errors = found.dp.errors(cells=True)
        assert errors.height == 0
        assert errors.columns[:4] == ["g", "count_interval", "count_low", "count_high"]
