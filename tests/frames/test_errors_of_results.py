"""Errors of a result: the interval of the noise, and the estimated error of adjusted (denoised) values."""

from __future__ import annotations

import copy
import math

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.denoise import choose
from dpframe.display import result_charts, statements
from dpframe.display.layout import Asked
from dpframe.display.report import caption_of
from dpframe.release import provenance
from dpframe.testing import seeded

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
    assert count["noisy_rmse"] == pytest.approx(
        math.sqrt(said["statistics"][said["measures"]["n"]["statistics"][0]]["variance"])
    )
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


def test_columns_without_a_number_have_the_dtype_of_the_others(engine):
    with dpf.Ledger(epsilon=9):
        groups = frame_of(engine).dp.group_by("ward", keys=["A", "B", "C"])
        mean, count = groups.mean("age", bounds=(0, 100), epsilon=1), groups.count(epsilon=1, denoise=None)
        found = [mean, count, dpf.concat([count, count])]
    for errors in (one.dp.errors(cells=cells) for one in found for cells in (False, True)):
        dtypes = {str(errors[name].dtype) for name in errors.columns if "interval" in name or "rmse" in name}
        assert len(dtypes) == 1
        assert dtypes <= {"Float64", "float64"}
        missing = errors[next(name for name in errors.columns if name.endswith("denoised_rmse"))].to_list()
        assert all(value is None or value != value for value in missing)


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


SAID = {
    "james-stein": "denoised, so biased, and how far is not estimated: count",
    "auto": "not denoised; negative values shown as 0, the others lowered so that sums stay: count",
    "nonnegative": "not denoised; negative values shown as 0, so small values lean upward: count",
    None: "",
}


@pytest.mark.parametrize("denoise", SAID)
def test_the_small_print_says_it(denoise):
    """With two bins, "auto" does little except set negative values to 0, which is said where there was one."""
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = pl.DataFrame({"age": [10.0, 20.0, 30.0] * 400})
    with dpf.Ledger(epsilon=99), seeded(3):  # seeded: the noise of one of 30 empty bins is negative
        found = frame.dp.histogram("age", bins=[0, 20, 40], epsilon=0.3, denoise=denoise)
        half_empty = [frame.dp.histogram("age", bins=[0, 40, 80], epsilon=0.3, denoise=denoise) for _ in range(30)]
    captions = seen(found.dp.plot())["captions"]
    assert ("enoised, so biased" in captions) == (denoise == "james-stein")  # neither of the two counts is negative
    assert "shown as 0" not in captions
    for text in (found.dp.table().as_raw_html(), found.dp.statement()):
        assert ("enoised" in text) == (denoise == "james-stein")
    cut = [one for one in half_empty if denoise is not None and (one["count_noisy"] < 0).any()] or [found]
    for text in (cut[0].dp.table().as_raw_html(), cut[0].dp.statement()):
        assert SAID[denoise] in text.lower()


def test_captions_name_the_numbers_that_each_adjustment_concerns():
    """Where the numbers of one statistic were lowered and those of another were not, two captions contradicted."""
    pytest.importorskip("altair")
    with dpf.Ledger(epsilon=9), seeded(2):
        frame = pl.DataFrame({"age": [10.0, 20.0, 30.0] * 400, "ward": ["A", "B"] * 600})
        found = frame.dp.group_by("ward", keys=list("ABCDEFGH")).agg(
            n=dpf.count(), s=dpf.sum("age", bounds=(0, 100)), epsilon=1.0, checks=False
        )
    facts = copy.deepcopy(dict(provenance.counted(found.dp.provenance)))
    for name, chose in (("n", "none, non-negative"), ("s", "none, non-negative, with its sums")):
        facts["measures"][name]["denoise"] = [{"name": "auto", "chose": chose}]
    captions = caption_of(result_charts.of_result(found, facts, {}), [])
    assert "Numbers below 0 are shown as 0: n." in captions
    assert "Numbers below 0 are shown as 0, and the others lowered so that sums stay: s." in captions
    alone = caption_of(result_charts.of_result(found, facts, {}, Asked(value="n")), [])
    assert "Numbers below 0 are shown as 0." in alone


def test_112_nothing_is_said_to_be_denoised_where_nothing_was(engine):
    frame = engine({"x": [-5.0, 5.0] * 400, "ward": ["A", "B"] * 400})
    with dpf.Ledger(epsilon=9):  # two sums that may be negative: "auto" changes nothing
        found = frame.dp.group_by("ward", keys=["A", "B"]).sum("x", bounds=(-10, 10), epsilon=1)
    facts = found.dp.provenance
    assert facts["measures"]["x_sum"]["denoise"][0]["chose"] == "none"
    assert statements.denoised_words(facts) == []


def test_112_what_is_known_of_the_first_denoiser_is_not_said_of_the_last(engine):
    frame = engine({"age": [10.0, 20.0, 30.0] * 400})
    bins = {"bins": 40, "range": (0, 40), "epsilon": 0.1}
    with dpf.Ledger(epsilon=9):
        kept = frame.dp.histogram("age", **bins, denoise=["auto", "nonnegative"])
        lost = frame.dp.histogram("age", **bins, denoise=["auto", "rounded"])
        third = frame.dp.histogram("age", **bins, denoise=["auto", "nonnegative", "rounded"])
        never = frame.dp.histogram("age", **bins, denoise=["james-stein", "auto"])
    first = kept.dp.provenance["measures"]["count"]["denoise"][0]
    assert statements.estimated_rmse(kept.dp.provenance["measures"]["count"]) == [first["estimated_rmse"]]
    for other in (lost, third, never):
        assert statements.estimated_rmse(other.dp.provenance["measures"]["count"]) == [None]
    assert "estimated_rmse" not in never.dp.provenance["measures"]["count"]["denoise"][1]


LAWS = {
    "laplace": dpf.Laplace.calibrate(sensitivity=1, epsilon=0.05),
    "gaussian": dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.05, delta=1e-6),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [3, 5, 11, 12, 31, 32, 100, 1_000])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_112_no_error_is_estimated_as_nothing(law, size, nonnegative):
    """For pure noise and for exact zeros, the estimate is at least the error of the mean of all cells."""
    noise = LAWS[law]
    for place in range(20):
        values = noise.add_noise(np.zeros(size, dtype=np.int64)) * noise.grid * (place > 0)
        found = choose.choose(values, noise, nonnegative=nonnegative)
        assert found.estimated_rmse >= 0.999 * math.sqrt(noise.variance / size)
        if found.deviations is not None:
            assert found.deviations.min() >= 0.999 * math.sqrt(noise.variance / size)


def test_112_no_error_of_a_cell_is_estimated_as_nothing():
    """With little noise, a prior of a few atoms leaves no doubt in some cells."""
    counts = np.where(np.arange(600) % 10 == 0, np.arange(600) // 3, 0)
    frame = pl.DataFrame({"k": np.repeat(np.arange(600), counts)})
    cells = frame.dp.group_by("k", keys=range(600))
    found = cells.count(epsilon=20, ledger=dpf.Ledger(epsilon=20), denoise="auto")
    said = found.dp.provenance["measures"]["count"]["denoise"][0]
    assert said["chose"].startswith("empirical-bayes")
    assert said["cell_rmse"]["least"] > 0.0


def test_112_risk_below_zero_is_cut_before_its_margin():
    found = choose.Candidate("any", risk=-1e9, margin=8.0, denoised=lambda: np.zeros(2))
    assert found.rmse(2, 1.0) == pytest.approx(2.0)
    assert found.rmse(2, 32.0) == pytest.approx(4.0)


def test_a_cut_frame_is_refused():
    frame = pl.DataFrame({"age": [10.0, 20.0, 30.0] * 400})
    with dpf.Ledger(epsilon=9):
        found = frame.dp.histogram("age", bins=[0, 20, 40], epsilon=0.3)
    with pytest.raises(dpf.InvalidArgument, match="2 rows"):
        dpf.of(cut(found)).errors()


def cut(frame):
    """Return the first row as a pandas frame, which keeps the record of all rows."""
    pytest.importorskip("pandas")
    whole = frame.to_pandas()
    whole.attrs["dpframe"] = frame.dp.provenance
    return whole.head(1)


@pytest.mark.parametrize("key", ["n_interval", "n_low", "n_high", "n_noisy_rmse", "n_denoised_rmse"])
def test_keys_that_are_named_as_an_error_are_not_overwritten(engine, key):
    """Once, the numbers replaced the keys in the table of errors, so its rows could not be told apart."""
    frame = engine({key: ["A", "B", "A"]}).dp.group_by(key, keys=["A", "B"])
    result = frame.agg(n=dpf.count(), epsilon=1, ledger=dpf.Ledger(epsilon=1), denoise=None)
    with pytest.raises(dpf.InvalidArgument, match=rf"must not have a column '{key}' of keys.*relabel"):
        result.dp.errors(cells=True)
    assert "key" in result.dp.relabel(columns={key: "key"}).dp.errors(cells=True).columns


def test_joined_results_of_keys_named_part_are_not_mixed(engine):
    by = engine({"part": ["A", "B", "A"]}).dp.group_by("part", keys=["A", "B"])
    ledger = dpf.Ledger(epsilon=2)
    parts = [by.count(epsilon=1, ledger=ledger) for _ in range(2)]
    with pytest.raises(dpf.InvalidArgument, match=r"must not have a column 'part' of keys.*relabel"):
        dpf.concat(parts).dp.errors(cells=True)
    whole = dpf.concat([one.dp.relabel(columns={"part": "half"}) for one in parts])
    assert list(whole.dp.errors(cells=True)["part"]) == [0, 0, 1, 1]
