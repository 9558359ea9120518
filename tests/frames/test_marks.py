"""Frames marked as public, on which ``.dp`` refuses to release, and results in the library that the caller names."""

from __future__ import annotations

import datetime as dt
import json
import operator
import pickle
import warnings

import polars as pl
import pytest

import dpframe as dpf
from dpframe.accessor.released_frame import OF_RESULTS, VERBS
from dpframe.frames import build

DAYS = [dt.date(2025, 1, day) for day in range(1, 5)]
COLUMNS = {
    "patient": [1, 1, 2, 3],
    "ward": ["A", "B", "C", "A"],
    "floor": [1, 2, 3, 1],
    "open": [True, False, True, True],
    "age": [31.0, 45.0, 62.0, 70.0],
    "day": DAYS,
}
QUESTIONS = {
    "keys": lambda dp: dp.group_by("ward", keys=["C", "A", "B"]).agg(n=dpf.count(), epsilon=1),
    "whole keys": lambda dp: dp.group_by("floor", keys=[3, 1]).count(epsilon=1, denoise=None),
    "missing keys": lambda dp: dp.group_by("ward", "floor", keys={"ward": ["B", None], "floor": [3, None]}).count(
        epsilon=1
    ),
    "truth": lambda dp: dp.group_by("open", keys=[True, False]).count(epsilon=1),
    "days": lambda dp: dp.histogram("day", bins=[DAYS[0], DAYS[2], DAYS[3]], epsilon=1),
    "key days": lambda dp: dp.group_by("day", keys=DAYS[:2]).count(epsilon=1),
    "numbers": lambda dp: dp.histogram("age", bins=[0, 40, 60, 90], epsilon=1),
    "one number": lambda dp: dp.mean("age", bounds=(0, 100), epsilon=1),
    "rollup": lambda dp: dp.group_by("ward", keys=["B", "A"]).count(epsilon=1, rollup=True),
    "selection": lambda dp: dp.mode("ward", categories=["B", "A"], epsilon=1),
}


def frame_of(library):
    if library == "polars":
        return pl.DataFrame(COLUMNS)
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(COLUMNS).assign(day=lambda frame: frame["day"].astype("datetime64[s]"))


@pytest.fixture(params=["polars", "lazy", "pandas"])
def frame(request):
    return frame_of("polars").lazy() if request.param == "lazy" else frame_of(request.param)


def test_a_public_frame_is_charged_for_nothing(frame):
    ledger = dpf.Ledger(epsilon=1)
    public = dpf.public(frame)
    for dp in (public.dp, dpf.of(public)):
        for verb in VERBS:
            with pytest.raises(dpf.AlreadyReleased, match=rf"use it directly, without \.dp\.{verb}"):
                getattr(dp, verb)
        for name in OF_RESULTS:
            with pytest.raises(dpf.NoProvenance, match=f"no release covers it, so .dp has no {name}"):
                getattr(dp, name)
        with pytest.raises(AttributeError, match="has no 'cuont'"):
            dp.cuont  # noqa: B018
        assert "public" in repr(dp)
    with ledger:
        frame.dp.count(epsilon=1)  # the frame itself is still private
    assert ledger.remaining.epsilon == 0


def test_the_verbs_that_are_refused_are_all():
    for frame_class, names in ((dpf.PrivateFrame, VERBS), (dpf.ReleasedFrame, OF_RESULTS)):
        kinds = frame_class.__mro__[:-1]  # some verbs are inherited
        public = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
        assert public == set(names)


def test_a_mark_takes_the_place_of_a_record(engine, tmp_path):
    with dpf.Ledger(epsilon=1):
        wards = engine(COLUMNS).dp.group_by("ward", keys=["A", "B"]).count(epsilon=1)
    beds = wards.assign(beds=[1, 2]) if engine.is_pandas else wards.with_columns(beds=pl.Series([1, 2]))
    if engine.is_pandas:
        with pytest.raises(dpf.InvalidArgument, match="covered by no release"):
            beds.dp.table()
    public = dpf.public(beds)
    with pytest.raises(dpf.NoProvenance):
        dpf.released(public)
    assert build.record_of(public) is None
    assert wards.dp.provenance["altered"] is False  # the release keeps its record


def test_pandas_keeps_other_attributes_and_the_mark():
    frame = frame_of("pandas")
    frame.attrs["source"] = "a register"
    public = dpf.public(frame)
    assert public.attrs["source"] == "a register"
    assert "AlreadyReleased" in type(refusal(public.head(2))).__name__
    assert build.MARK not in frame.attrs


def refusal(frame):
    with pytest.raises(dpf.DpframeError) as caught:
        frame.dp.count(epsilon=1)
    return caught.value


def test_only_frames_of_pandas_and_polars_are_marked():
    pyarrow = pytest.importorskip("pyarrow")
    for other in (pyarrow.table({"x": [1]}), [1], None):
        with pytest.raises(dpf.InvalidType, match="frame must be a pandas DataFrame or a Polars"):
            dpf.public(other)


def test_frames_that_a_result_gives_are_public(engine):
    with dpf.Ledger(epsilon=9, unit="patient"):
        grid = engine(COLUMNS).dp.contributions(by="ward", keys=["A", "B"], epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.BoundsWarning)  # the counts of so few people are too noisy
        suggested = grid.dp.suggest(epsilon=1.0)
    for given in (suggested, grid.dp.errors()):
        with pytest.raises(dpf.AlreadyReleased, match="this frame is public"):
            given.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))


# Results in the library that the caller names -------------------------------------------------------------------------


@pytest.mark.parametrize(("mine", "like"), [("polars", "pandas"), ("pandas", "polars"), ("polars", "polars")])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_result_is_of_the_library_that_is_named(question, mine, like, tmp_path):
    pytest.importorskip("pandas")
    ledger, native = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1)
    with ledger:
        found = QUESTIONS[question](dpf.of(frame_of(mine), like=like))
    with native:
        wanted = QUESTIONS[question](frame_of(like).dp)
    assert type(found) is type(wanted)
    assert build.dtypes_of(found) == build.dtypes_of(wanted)
    labels = [name for name in found.columns if name not in found.dp.provenance["columns"]]
    for name in labels:
        assert str(found[name].to_list()) == str(wanted[name].to_list())
    assert found.dp.provenance["altered"] is False
    assert ledger.spent == native.spent
    found.dp.write_parquet(tmp_path / "found.parquet")
    assert dpf.read_parquet(tmp_path / "found.parquet", like=mine).dp.provenance == found.dp.provenance


def test_groups_keep_the_library_and_previews_are_plans():
    pandas = pytest.importorskip("pandas")
    dp = dpf.of(frame_of("polars"), like="pandas")
    found = dp.group_by("ward", keys=["A"]).group_by("floor", keys=[1]).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert isinstance(found, pandas.DataFrame)
    plan = dp.preview.group_by("ward", keys=["A"]).count(epsilon=1)
    assert plan == frame_of("polars").dp.preview.group_by("ward", keys=["A"]).count(epsilon=1)
    with dpf.Ledger(epsilon=1):
        together = dpf.release_together({"wards": plan, "rows": frame_of("polars").dp.preview.count()}, epsilon=1)
    assert [type(one) for one in together.values()] == [pandas.DataFrame, pl.DataFrame]


def test_a_stored_answer_is_given_in_either_library(tmp_path):
    pandas = pytest.importorskip("pandas")
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "a.ledger")
    call = {"epsilon": 1, "ledger": ledger, "label": "rows", "snapshot": "2026-W47"}
    first = frame_of("polars").dp.group_by("ward", keys=["A"]).count(**call)
    again = dpf.of(frame_of("polars"), like="pandas").group_by("ward", keys=["A"]).count(**call)
    assert isinstance(again, pandas.DataFrame)
    assert again["count"].to_list() == first["count"].to_list()
    assert again.dp.provenance == first.dp.provenance


def test_a_library_is_refused_before_anything_is_charged(monkeypatch):
    frame = frame_of("polars")
    with pytest.raises(dpf.InvalidArgument, match="like must be 'pandas' or 'polars', not 'arrow'"):
        dpf.of(frame, like="arrow")
    result = frame.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    for other in (result, dpf.public(frame)):
        with pytest.raises(dpf.InvalidArgument, match="like must be left out for a public frame"):
            dpf.of(other, like="polars")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError):
        dpf.of(frame, like="pandas")


def test_results_without_their_record_are_no_private_rows(engine):
    frame = engine({"age": [31.0, 45.0, 62.0], "ward": ["A", "B", "A"]})
    with dpf.Ledger(epsilon=9) as ledger:
        ages = frame.dp.histogram("age", bins=[0, 50, 100], epsilon=1)
        wards = frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1)
        both = frame.dp.group_by("ward", keys=["A"]).agg(n=dpf.count(), m=dpf.mean("age", bounds=(0, 99)), epsilon=1)
        for result in (ages, wards, both):
            kept = result.copy() if engine.is_pandas else result.clone()
            if engine.is_pandas:
                kept.attrs = {}
            spent = ledger.spent
            with pytest.raises(dpf.AlreadyReleased, match=r"those of a result\. Use it directly"):
                kept.dp.count(epsilon=1)
            assert ledger.spent == spent


def test_rows_that_were_joined_to_a_result_are_private(engine):
    columns = {"patient": [1, 2], "ward": ["A", "B"], "days": [3.0, 4.0]}
    frame = engine(columns | {"count": [1.0, 2.0], "count_noisy": [1.0, 2.0], "count_error": [3.0, 3.0]})
    with dpf.Ledger(epsilon=9):
        assert len(frame.dp.mean("days", bounds=(0, 9), epsilon=1)) == 1
        with pytest.raises(dpf.AlreadyReleased, match="'count', 'count_noisy'"):
            frame.dp.sum("count", bounds=(0, 9), epsilon=1)
        twin = engine({"x": [1.0], "x_error": [0.1]})  # a private measurement with its error
        assert len(twin.dp.sum("x", bounds=(0, 9), epsilon=1)) == 1


def test_pandas_copies_no_long_record_with_each_column():
    """pandas deep-copies attrs whenever a column is read, which is slow for many numbers or many records."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"ward": ["A", "B"], "age": [40, 60]})
    wards = frame.dp.group_by("ward", keys=["A", "B"])
    found = wards.mean("age", bounds=(0, 100), epsilon=1, ledger=dpf.Ledger(epsilon=1))
    totals = found.attrs["dpframe"]["measures"]["age_mean"]["totals"]
    assert [len(numbers) for numbers in totals] == [4]
    read = found["age_mean"].attrs["dpframe"]
    assert read is not found.attrs["dpframe"]
    assert all(map(operator.is_, read["measures"]["age_mean"]["totals"], totals))
    loaded = pickle.loads(pickle.dumps(found)).attrs["dpframe"]  # the pickle holds no class of dpframe
    assert {type(numbers) for numbers in loaded["measures"]["age_mean"]["totals"]} == {list}
    assert json.loads(json.dumps(read)) == read == loaded
    joined = dpf.concat([found, found])
    assert joined["age_mean"].attrs["dpframe"]["parts"] is joined.attrs["dpframe"]["parts"]
