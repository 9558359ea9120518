"""Results: their columns, dtypes, order, provenance and files; and verbs that must agree with each other."""

from __future__ import annotations

import copy
import datetime as dt
import json
import logging
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

NEGLIGIBLE = 1e6
DATA = {
    "age": [31.0, 45.0, 62.0, 8.0, None, 45.0],
    "ward": ["A", "B", "A", "B", "C", None],
    "cost": [100.0, 250.0, -20.0, 30.0, 70.0, 900.0],
    "patient": [1, 1, 2, 3, 4, 5],
}


@pytest.fixture
def budget():
    with dpf.Ledger(epsilon=10**9) as ledger:
        yield ledger


def names(frame):
    return list(frame.columns)


def values(frame, name):
    return [float(value) for value in frame[name].to_list()]


def test_columns_of_every_verb(engine, budget):
    dp = engine(DATA).dp
    assert names(dp.count(epsilon=1)) == ["count", "count_error"]
    assert names(dp.count("age", epsilon=1)) == ["count", "count_error"]
    assert names(dp.sum("cost", bounds=(0, 500), epsilon=1)) == ["cost_sum", "cost_sum_error"]
    assert names(dp.mean("age", bounds=(0, 120), epsilon=1)) == ["age_mean", "age_mean_error"]
    released = ["count", "count_noisy", "count_error"]
    assert names(dp.histogram("age", bins=[0, 50, 100], epsilon=1)) == ["age_left", "age_right", *released]
    assert names(dp.histogram("ward", categories=["A", "B"], epsilon=1)) == ["ward", *released]
    grid = dp.histogram(["age", "cost"], bins=[2, 3], range=[(0, 100), (0, 900)], epsilon=1)
    assert names(grid) == ["age_left", "age_right", "cost_left", "cost_right", *released]
    assert len(grid) == 6
    agg = dp.group_by("ward", keys=["A"]).agg(dpf.count(), m=dpf.mean("age", bounds=(0, 120)), epsilon=1)
    assert names(agg) == ["ward", *released, "m", "m_error"]
    assert names(dp.histogram("age", bins=[0, 50], epsilon=1, keep_noisy=False)) == [
        "age_left",
        "age_right",
        "count",
        "count_error",
    ]
    assert names(dp.histogram("age", bins=[0, 50], epsilon=1, denoise=None)) == [
        "age_left",
        "age_right",
        "count",
        "count_error",
    ]
    assert names(dp.count(epsilon=1, denoise="nonnegative")) == ["count", "count_noisy", "count_error"]
    named = dp.agg({"epsilon": dpf.count(), "n o": dpf.count("age")}, epsilon=1)
    assert names(named) == ["epsilon", "epsilon_error", "n o", "n o_error"]


def test_the_answers_at_negligible_noise(engine, budget):
    dp = engine(DATA).dp
    assert values(dp.count(epsilon=NEGLIGIBLE), "count") == [6]
    assert values(dp.count("age", epsilon=NEGLIGIBLE), "count") == [5]
    assert values(dp.sum("cost", bounds=(0, 500), epsilon=NEGLIGIBLE), "cost_sum") == pytest.approx([950], abs=0.02)
    assert values(dp.mean("age", bounds=(0, 50), epsilon=NEGLIGIBLE), "age_mean") == pytest.approx([35.8], abs=1e-3)
    ages = dp.histogram("age", bins=[0, 31, 45, 62], epsilon=NEGLIGIBLE)
    assert values(ages, "count") == [1, 1, 3]
    groups = dp.group_by("ward", keys=["C", "B", "Z", None]).agg(
        n=dpf.count(), a=dpf.count("age"), c=dpf.sum("cost", bounds=(-50, 50)), epsilon=NEGLIGIBLE
    )
    assert groups["ward"].to_list()[:3] == ["C", "B", "Z"]
    assert values(groups, "n") == [1, 2, 0, 1]
    assert values(groups, "a") == [0, 2, 0, 1]
    assert values(groups, "c") == pytest.approx([50, 80, 0, 50], abs=0.02)


def test_three_ways_to_one_histogram(engine, budget):
    frame, bins = engine(DATA), [0, 20, 40, 60, 80]
    histogram = values(frame.dp.histogram("age", bins=bins, epsilon=NEGLIGIBLE), "count")
    labels = [None if age is None else int(age // 20) for age in DATA["age"]]
    grouped = engine({**DATA, "bin": [-1 if label is None else label for label in labels], "one": [1.0] * 6})
    counts = grouped.dp.group_by("bin", keys=range(4)).count(epsilon=NEGLIGIBLE)
    sums = grouped.dp.group_by("bin", keys=range(4)).sum("one", bounds=(0, 1), epsilon=NEGLIGIBLE)
    assert histogram == values(counts, "count") == pytest.approx(values(sums, "one_sum"), abs=1e-4)


def test_units_count_once(engine):
    unit = dpf.PrivacyUnit(column="patient", max_rows=1)
    result = engine(DATA).dp.count(epsilon=NEGLIGIBLE, ledger=dpf.Ledger(epsilon=10**7, unit=unit))
    assert values(result, "count") == pytest.approx([5], abs=1e-4)


def test_results_are_of_the_callers_library(engine, budget):
    frame = engine(DATA)
    result = frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1)
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        assert isinstance(result, pl.DataFrame)
        assert result.schema == {
            "ward": pl.String,
            "count": pl.Float64,
            "count_noisy": pl.Float64,
            "count_error": pl.Float64,
        }
    else:
        assert type(result).__module__.startswith("pandas")
        assert all(result[name].dtype == np.float64 for name in names(result)[1:])
        assert result.index.tolist() == [0, 1]


def test_a_column_that_is_the_index_is_refused_with_the_way_out(budget):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"patient": [1, 2], "age": [31, 45]}).set_index("patient")
    with pytest.raises(dpf.UnknownColumn, match=r"'patient' is not in the frame. It is the index: df.reset_index\(\)"):
        frame.dp.count("patient", epsilon=1)


def test_dates_come_back_as_dates(budget):
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    frame = pl.DataFrame({"day": days})
    assert frame.dp.group_by("day", keys=days).count(epsilon=1)["day"].to_list() == days
    binned = frame.dp.histogram("day", bins=[*days, dt.date(2024, 1, 5)], epsilon=1)
    assert binned["day_left"].to_list() == days
    hours = frame.dp.histogram("day", bins=[dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3)], epsilon=1)
    assert hours["day_right"].to_list() == [dt.datetime(2024, 1, 3)]


def test_an_enum_declares_its_keys(budget):
    wards = pl.Enum(["A", "B", "Z"])
    frame = pl.DataFrame({"ward": ["A", "B", "A"]}, schema={"ward": wards})
    assert values(frame.dp.histogram("ward", epsilon=NEGLIGIBLE), "count") == [2, 1, 0]
    assert values(frame.dp.group_by("ward").count(epsilon=NEGLIGIBLE), "count") == [2, 1, 0]


def test_keys_may_be_a_frame_of_combinations(engine, budget):
    pairs = pl.DataFrame({"patient": [1, 2, 9], "ward": ["A", "A", "B"]})
    frame = engine(DATA)
    keys = pairs if isinstance(frame, (pl.DataFrame, pl.LazyFrame)) else pairs.to_pandas()
    result = frame.dp.group_by("ward", "patient", keys=keys).count(epsilon=NEGLIGIBLE)
    assert result["ward"].to_list() == ["A", "A", "B"]
    assert values(result, "count") == [1, 1, 0]


def test_no_change_of_what_is_read_changes_the_record(engine, budget):
    """Callers get a deep copy, since frames derived from this one share its record."""
    released = engine(DATA).dp.histogram("age", bins=[0, 50, 90], epsilon=0.5)
    before = json.dumps(released.dp.provenance)

    def spoil(node):
        for part in list(node.values()) if isinstance(node, dict) else list(node):
            if isinstance(part, (dict, list)):
                spoil(part)
        node.clear()

    spoil(released.dp.provenance)
    assert json.dumps(released.dp.provenance) == before


def test_provenance_is_json_and_says_what_was_done(engine, budget):
    result = engine(DATA).dp.histogram("age", bins=[0, 50, 90], epsilon=0.5, label="ages")
    facts = result.dp.provenance
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cost"] == {"epsilon": 0.5, "delta": 0.0, "accounting": "basic"}
    assert facts["label"] == "ages"
    assert facts["altered"] is False
    assert "values of age outside [0, 90] are left out" in facts["notes"]
    assert facts["statistics"][0]["scale"] == 2.0
    assert "warning" not in facts


def test_seeded_bits_are_stamped(budget):
    from dpframe import noise

    with noise.insecure_bits(7):
        result = pl.DataFrame(DATA).dp.count(epsilon=1)
    assert result.dp.provenance["warning"].startswith("NOT PRIVATE")


def test_a_change_to_the_numbers_is_seen(budget):
    result = pl.DataFrame(DATA).dp.histogram("age", bins=[0, 50, 90], epsilon=0.5)
    result[0, "count"] = 10**6
    assert result.dp.provenance["altered"] is True
    with pytest.raises(dpf.NoProvenance, match=r"made a new frame|carries no provenance"):
        result.filter(pl.col("count") > 0).dp.provenance  # noqa: B018
    pytest.importorskip("pandas")
    kept = pl.DataFrame(DATA).to_pandas().dp.histogram("age", bins=[0, 50, 90], epsilon=0.5)
    assert kept.assign(share=1.0).dp.provenance["altered"] is False
    assert kept.assign(count=12345.5).dp.provenance["altered"] is True
    assert kept.drop(columns="count").dp.provenance["altered"] is True


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_parquet_keeps_numbers_and_provenance(engine, budget, like, tmp_path):
    if like == "pandas":
        pytest.importorskip("pandas")
    result = engine(DATA).dp.group_by("ward", keys=["A", None]).count(epsilon=0.5)
    path = tmp_path / "result.parquet"
    result.dp.write_parquet(path)
    back = dpf.read_parquet(path, like=like)
    assert back.dp.provenance == result.dp.provenance
    assert values(back, "count") == values(result, "count")
    assert back.dp.to_numpy("count_noisy").tolist() == values(result, "count_noisy")


IDS = [2**63 + 1, 2**63 + 3]  # one float stands for both


LARGE = [[None, *IDS], IDS, [None, -1, *IDS], [1.5, 2**53, 2**53 + 1], [None, 2**53 + 1]]


@pytest.mark.parametrize("keys", LARGE, ids=str)
def test_177_large_keys_have_labels_of_their_own(budget, keys):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"id": pandas.Series([*IDS, 2**53, 2**53 + 1, "A"], dtype=object)})
    found = rows.dp.group_by("id", keys=keys).count(epsilon=NEGLIGIBLE)
    labels = [None if pandas.isna(label) else label for label in found["id"].to_list()]
    assert labels == keys
    assert found["count"].round().to_list() == [0 if key in (None, -1, 1.5) else 1 for key in keys]
    assert [row["id"] for row in found.dp.errors(cells=True).to_dict("records")][1:] == keys[1:]
    changed = found.copy()
    changed["id"] = [*keys[:-1], 7]
    assert changed.dp.provenance["altered"]


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_177_large_keys_of_files_have_labels_of_their_own(budget, like, tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = pl.DataFrame({"id": pl.Series(IDS, dtype=pl.UInt64)})
    found = rows.dp.group_by("id", keys=[None, *IDS]).count(epsilon=1)
    found.dp.write_parquet(tmp_path / "ids.parquet")
    back = dpf.read_parquet(tmp_path / "ids.parquet", like=like)
    assert [None if pandas.isna(label) else label for label in back["id"].to_list()] == [None, *IDS]
    assert back.dp.provenance == found.dp.provenance


UNHELD = {  # keys that no column of a file can hold, or that reading the file would refuse
    "integers": [2**64, 1],
    "integers on both sides": [-1, 2**63],
    "several types": [True, 1.5],
    "decimals and floats": [0.1, Decimal("-0"), 1e308],
    "decimals of many digits": [Decimal("1E-30"), Decimal("1E+30")],
    "a long time": [dt.timedelta.max, dt.timedelta(1)],
}


@pytest.mark.parametrize("keys", UNHELD.values(), ids=UNHELD)
def test_175_a_file_that_cannot_be_read_is_not_written(budget, tmp_path, keys):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"id": pandas.Series([1, "A"], dtype=object)})
    found = rows.dp.group_by("id", keys=keys).count(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match="must have labels that a Parquet file can hold"):
        found.dp.write_parquet(tmp_path / "ids.parquet")
    assert not (tmp_path / "ids.parquet").exists()
    assert found.dp.table("csv")  # the alternative


@pytest.mark.parametrize("keys", [[2**64, 1], [True, Decimal("-0"), 2**64]], ids=["integers", "several types"])
def test_175_a_file_of_polars_that_cannot_be_read_is_not_written(budget, tmp_path, keys):
    rows = pl.DataFrame({"id": pl.Series([1.0], dtype=pl.Float64)})
    found = rows.dp.group_by("id", keys=keys).count(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match="must have labels that a Parquet file can hold"):
        found.dp.write_parquet(tmp_path / "ids.parquet")
    assert not (tmp_path / "ids.parquet").exists()


def test_pandas_own_parquet_keeps_the_provenance(budget, tmp_path):
    pandas = pytest.importorskip("pandas")
    result = pl.DataFrame(DATA).to_pandas().dp.count(epsilon=0.5)
    result.to_parquet(tmp_path / "plain.parquet")
    assert pandas.read_parquet(tmp_path / "plain.parquet").dp.provenance == result.dp.provenance


def test_arrays_have_the_shape_of_the_bins(engine, budget):
    grid = engine(DATA).dp.histogram(["age", "cost"], bins=[2, 3], range=[(0, 100), (0, 900)], epsilon=1)
    assert grid.dp.to_numpy("count").shape == (2, 3)
    assert grid.dp.to_numpy("count").ravel().tolist() == values(grid, "count")


def test_denoisers_by_name_function_and_list(budget):
    dp = pl.DataFrame(DATA).dp
    bins = {"bins": 10, "range": (0, 100), "epsilon": 0.01}
    assert min(values(dp.histogram("age", **bins), "count")) >= 0
    halved = dp.histogram("age", **bins, denoise=lambda noisy, noise: noisy / 2)
    assert values(halved, "count") == [value / 2 for value in values(halved, "count_noisy")]
    both = dp.histogram("age", **bins, denoise=["james-stein", dpf.denoise.nonnegative])
    assert [step["name"] for step in both.dp.provenance["measures"]["count"]["denoise"]] == [
        "james-stein",
        "nonnegative",
    ]


def test_a_callable_mechanism(budget):
    def laplace(sensitivity, loss):
        return dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)

    result = pl.DataFrame(DATA).dp.count(epsilon=0.5, mechanism=laplace)
    assert result.dp.provenance["statistics"][0]["scale"] == 2.0


def test_one_log_line_of_public_facts(engine, budget, caplog):
    with caplog.at_level(logging.INFO, logger="dpframe"):
        engine(DATA).dp.count(epsilon=1)
    assert [record.getMessage() for record in caplog.records] == [
        "released count() for epsilon 1, protecting each row, add-remove neighbors"
    ]


def test_equal_statistics_are_measured_once(budget):
    one = {"epsilon": 1, "checks": False}
    dp = pl.DataFrame(DATA).dp.preview
    plan = dp.agg(a=dpf.mean("age", bounds=(0, 100)), b=dpf.count("age"), c=dpf.mean("age", bounds=(0, 100)), **one)
    assert [part.share for part in plan.parts] == [1.0]  # the mean includes the count
    plan = dp.agg(
        a=dpf.mean("age", bounds=(0, 100)),
        b=dpf.count("age"),
        c=dpf.mean("age", bounds=(0, 100)),
        **one,
        delta=1e-6,
    )
    assert len(plan.parts) == 2
    assert {part.share for part in plan.parts} == {0.5}


def test_gaussians_of_one_call_share_mu_not_epsilon(budget):
    dp = pl.DataFrame(DATA).dp.preview
    four = {name: dpf.sum("cost", bounds=(0, bound)) for name, bound in zip("abcd", (1, 2, 4, 8), strict=True)}
    joint = dp.agg(four, epsilon=1, delta=1e-6, checks=False).parts[0].mechanism.scale
    naive = dpf.analytic_gaussian_sigma(0.25, 0.25e-6)
    assert naive / joint > 1.9
    assert joint == pytest.approx(2 * dpf.analytic_gaussian_sigma(1.0, 1e-6), rel=1e-6)


def test_previews_spend_and_read_nothing(engine):
    def explode(frame):
        raise AssertionError("a row was read")

    frame = engine(DATA)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.map_batches(explode, schema=frame.collect_schema())
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    with ledger:
        plan = frame.dp.preview.group_by("ward", keys=["A", "B"]).agg(
            n=dpf.count(), m=dpf.mean("age", bounds=(0, 120)), epsilon=0.5
        )
        table = frame.dp.preview.histogram("age", bins=[0, 50, 90], epsilon=[0.1, 0.5])
        whole = frame.dp.preview.count()
        shared = frame.dp.preview.count(share=0.5)
    assert ledger.spent.epsilon == 0
    assert plan.cost == dpf.PrivacyLoss(0.5, 1e-6)
    assert set(plan.error) == {"n", "m"}
    assert plan.to_frame().height == 3
    assert "costs" in repr(plan)
    assert "<table" in plan._repr_html_()
    assert list(table.error) == [0.1, 0.5]
    assert len(whole.plans) == len(whole.cost) == 7
    assert table.mechanisms[0.5]["rows"].scale > 1
    assert "+-" in repr(whole)
    assert 0 < shared.cost.epsilon < 1


def test_a_preview_costs_what_the_release_costs(engine):
    for ledger in (dpf.Ledger(epsilon=2), dpf.Ledger(epsilon=2, delta=1e-6)):
        with ledger:
            question = engine(DATA).dp.preview.group_by("ward", keys=["A"])
            plan = question.mean("age", bounds=(0, 99), epsilon=0.7)
            result = engine(DATA).dp.group_by("ward", keys=["A"]).mean("age", bounds=(0, 99), epsilon=0.7)
        assert result.dp.provenance["cost"]["epsilon"] == plan.cost.epsilon
        assert result.dp.provenance["statistics"][0]["scale"] == plan.parts[0].mechanism.scale


def test_html_is_escaped():
    frame = pl.DataFrame({"<b>": [1.0]})
    plan = frame.dp.preview.sum("<b>", bounds=(0, 1), epsilon=1)
    assert "<b>&lt;b&gt;" in plan._repr_html_() or "&lt;b&gt;" in plan._repr_html_()
    assert "sum(<b>)" not in plan._repr_html_()


def test_an_error_of_the_engine_tells_nothing(budget):
    def explode(frame):
        raise ValueError("secret 123-45-6789")

    frame = pl.LazyFrame(DATA).map_batches(explode, schema=pl.LazyFrame(DATA).collect_schema())
    before = budget.spent.epsilon
    with pytest.raises(dpf.ReleaseFailed) as caught:
        frame.dp.count("age", epsilon=1)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)
    assert budget.spent.epsilon == before + 1


def test_released_frames_are_left_alone_by_copies(budget):
    pytest.importorskip("pandas")
    result = pl.DataFrame(DATA).to_pandas().dp.count(epsilon=1)
    assert copy.deepcopy(result).dp.provenance == result.dp.provenance


def test_a_table_for_a_report(engine, budget):
    pytest.importorskip("great_tables")
    result = (
        engine(DATA)
        .dp.group_by("ward", keys=["A", None])
        .agg(n=dpf.count(), age=dpf.mean("age", bounds=(0, 120)), epsilon=1, label="<wards>")
    )
    html = result.dp.table().as_raw_html()
    assert "±" in html
    assert "epsilon 1" in html
    assert "missing" in html
    assert "<wards>" not in html
