"""Joined releases of one shape: each part keeps its record, and calls that need one release are refused."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import build

FRAME = {"week": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"], "age": [31.0, 45.0, 62.0, 70.0]}


def weeks(engine, numbers=(1, 2, 3), **options):
    with dpf.Ledger(epsilon=9):
        return [
            engine(FRAME).dp.group_by("week", "ward", keys={"week": [week], "ward": ["B", "A"]}).count(
                epsilon=week / 4, label=f"week {week}", **options
            )
            for week in numbers
        ]  # fmt: skip


def test_a_joined_frame_keeps_a_record_for_each_part(engine):
    parts = weeks(engine)
    joined = dpf.concat(parts)
    assert type(joined) is type(parts[0])
    assert list(joined["week"].to_list()) == [1, 1, 2, 2, 3, 3]
    facts = dpf.released(joined).provenance
    assert facts["schema"] == "dpframe.parts/1"
    assert facts["altered"] is False
    assert json.loads(json.dumps(facts)) == facts
    assert [{**one, "altered": False} for one in facts["parts"]] == [part.dp.provenance for part in parts]
    for part, again in zip(parts, joined.dp.parts, strict=True):
        assert again.dp.provenance == part.dp.provenance
        assert build.rows(again) == build.rows(part)
    assert [one.dp.provenance for one in parts[0].dp.parts] == [parts[0].dp.provenance]


def test_a_joined_frame_counts_as_its_parts(engine):
    first, second, third = weeks(engine)
    flat = dpf.concat([dpf.concat([first, second]), third])
    assert flat.dp.provenance == dpf.concat([first, second, third]).dp.provenance


def test_numbers_and_errors_of_all_parts(engine):
    parts = weeks(engine)
    joined = dpf.concat(parts)
    wanted = np.stack([part.dp.to_numpy("count") for part in parts])
    assert joined.dp.to_numpy("count").shape == (3, 1, 2)
    assert np.array_equal(joined.dp.to_numpy("count"), wanted)
    assert list(joined.dp.errors()["part"].to_list()) == [0, 1, 2]
    uneven = dpf.concat([parts[0], engine(FRAME).dp.group_by("week", "ward", keys={"week": [4], "ward": ["A"]}).count(
        epsilon=1, ledger=dpf.Ledger(epsilon=1))])  # fmt: skip
    with pytest.raises(dpf.InvalidArgument, match="to_numpy must be asked of one release, and this frame joins 2"):
        uneven.dp.to_numpy("count")


def test_checks_name_the_part(engine):
    with dpf.Ledger(epsilon=9):
        parts = [engine(FRAME).dp.mean("age", bounds=(0, 100), epsilon=1, checks=True) for _ in range(2)]
    numbered = dpf.concat(parts).dp.checks()
    assert list(numbered.columns)[:2] == ["part", "of"]
    assert sorted(set(numbered["part"].to_list())) == [0, 1]
    named = dpf.concat(parts, names=["Jan", "Feb"], column="month").dp.checks()
    assert list(named.columns)[:2] == ["month", "of"]
    assert list(dict.fromkeys(named["month"].to_list())) == ["Jan", "Feb"]
    errors = dpf.concat(parts, names=["Jan", "Feb"], column="month").dp.errors()
    assert list(errors["month"].to_list()) == ["Jan", "Feb"]
    taken = dpf.concat(parts, names=["Jan", "Feb"], column="of").dp.checks()
    assert list(taken.columns)[:2] == ["part", "of"]
    assert list(dict.fromkeys(taken["part"].to_list())) == ["Jan", "Feb"]


def test_a_file_keeps_all_records(engine, tmp_path):
    joined = dpf.concat(weeks(engine))
    joined.dp.write_parquet(tmp_path / "weeks.parquet")
    for like in ("polars", *(["pandas"] if engine.is_pandas else [])):
        back = dpf.read_parquet(tmp_path / "weeks.parquet", like=like)
        assert back.dp.provenance == joined.dp.provenance
        assert len(back.dp.parts) == 3


@pytest.mark.parametrize("verb", ["plot", "table", "suggest"])
def test_what_is_of_one_release_is_refused_in_words(engine, verb):
    joined = dpf.concat(weeks(engine))
    words = rf"{verb} must be asked of one release, and this frame joins 3. Write \[part.dp.{verb}\(...\) for part"
    with pytest.raises(dpf.InvalidArgument, match=words):
        getattr(joined.dp, verb)()
    with pytest.raises(dpf.AlreadyReleased):
        joined.dp.count(epsilon=1)


@pytest.mark.parametrize("change", ["a number", "a column", "a lost row", "rows of two parts exchanged"])
def test_a_changed_frame_is_refused(engine, change, tmp_path):
    joined = dpf.concat(weeks(engine))
    record = build.record_of(joined)
    plain = pl.DataFrame({name: joined[name].to_list() for name in joined.columns})
    if change == "a number":
        plain = plain.with_columns(pl.col("count") + 1)
    elif change == "a column":
        plain = plain.with_columns(patient=pl.lit("Ada Lovelace"))
    elif change == "a lost row":
        plain = plain.head(5)
    else:
        plain = plain[[2, 1, 0, 3, 4, 5]]
    changed = build.attach(plain.to_pandas() if engine.is_pandas else plain, record)
    if change != "a column":
        assert changed.dp.provenance["altered"]
    for call in (lambda: changed.dp.to_numpy("count"), changed.dp.errors, lambda: dpf.concat([changed]),
                 lambda: changed.dp.write_parquet(tmp_path / "out.parquet")):  # fmt: skip
        with pytest.raises(dpf.InvalidArgument):
            call()
    assert not (tmp_path / "out.parquet").exists()


def test_rows_of_one_part_may_be_in_any_order(engine):
    joined = dpf.concat(weeks(engine))
    other = build.attach(build.reordered(joined, np.array([1, 0, 3, 2, 4, 5])), build.record_of(joined))
    assert other.dp.provenance["altered"] is False
    assert np.array_equal(other.dp.to_numpy("count"), joined.dp.to_numpy("count"))


def test_releases_of_other_shapes_are_refused(engine):
    first = weeks(engine)[0]
    dp, free = engine(FRAME).dp, {"epsilon": 1, "ledger": dpf.Ledger(epsilon=9)}
    keys, texts = {"week": [1], "ward": ["A"]}, engine({**FRAME, "week": ["1", "1", "2", "3"]})
    others = {
        "have the same columns": dp.group_by("ward", keys=["A"]).count(**free),
        "have the same statistics": dp.group_by("week", "ward", keys=keys).agg(count=dpf.count("age"), **free),
        "have the same dtypes": texts.dp.group_by("week", "ward", keys={"week": ["1"], "ward": ["A"]}).count(**free),
    }
    for words, other in others.items():
        with pytest.raises(dpf.InvalidArgument, match=f"releases must {words}"):
            dpf.concat([first, other])


WEIGHED = {"weight": "x", "weight_bounds": (0, 2)}
OTHERWISE = {
    "q": [dpf.quantile("x", q=q, bounds=(0, 9)) for q in (0.5, 0.9)],
    "value": [dpf.proportion("x", value=value) for value in (1, 2)],
    "where": [dpf.count(where={"x": [1]}), dpf.count()],
    "long where": [dpf.count(where={"x": [*range(450), middle, *range(600, 900)]}) for middle in (500, 501)],
    "weight": [dpf.count(**WEIGHED), dpf.count()],
    "missing": [dpf.mean("x", bounds=(0, 9), missing=missing) for missing in ("drop", "midpoint")],
    "denominator": [dpf.ratio("x", under, bounds={"x": (0, 9), under: (0, 9)}) for under in "yz"],
}


@pytest.mark.parametrize("fact", OTHERWISE)
def test_numbers_that_mean_something_else_are_not_joined(engine, fact):
    """In one column, a 90th percentile below a median would look like a rise."""
    dp, free = engine({"x": [1, 2] * 50, "y": [1, 1] * 50, "z": [2, 1] * 50}).dp, {"epsilon": 1.0, "checks": False}
    one, other = OTHERWISE[fact]
    first, again, second = (dp.agg(n=each, ledger=dpf.Ledger(epsilon=9), **free) for each in (one, one, other))
    assert len(dpf.concat([first, again])) == 2
    with pytest.raises(dpf.InvalidArgument, match="releases must have the same statistics"):
        dpf.concat([first, second])


def test_computed_numbers_of_other_expressions_are_not_joined(engine):
    first, second = weeks(engine)[:2]
    pair = {"a": first, "b": first}
    plus, minus = "a.count_noisy + 2 * b.count_noisy", "a.count_noisy - 3 * b.count_noisy"
    made = [dpf.combine(text, pair) for text in (plus, minus)]
    with pytest.raises(dpf.InvalidArgument, match="releases must have the same statistics"):
        dpf.concat(made)
    assert len(dpf.concat([made[0], dpf.combine(plus, {"a": second, "b": second})]).dp.parts) == 2


def test_releases_of_two_libraries_are_refused():
    pytest.importorskip("pandas")
    frame = pl.DataFrame(FRAME)
    asked = [dpf.of(frame, like=like).count(epsilon=1, ledger=dpf.Ledger(epsilon=1)) for like in ("polars", "pandas")]
    with pytest.raises(dpf.InvalidArgument, match="releases must be of one library"):
        dpf.concat(asked)


def test_what_is_no_list_of_releases_is_refused(engine):
    frame = engine(FRAME)
    with pytest.raises(dpf.MissingArgument, match="releases must hold at least one"):
        dpf.concat([])
    for other in (frame, "weeks", 1):
        with pytest.raises(dpf.InvalidType, match="releases must be a list of released frames"):
            dpf.concat(other)
    with pytest.raises(dpf.InvalidType):
        dpf.concat([1])
    for private in (frame, dpf.public(frame)):
        with pytest.raises(dpf.NoProvenance, match="releases must carry their provenance"):
            dpf.concat([private])


def test_selections_are_joined_too(engine):
    with dpf.Ledger(epsilon=9):
        chosen = [engine(FRAME).dp.mode("ward", categories=["A", "B"], epsilon=1) for _ in range(2)]
    joined = dpf.concat(chosen)
    assert len(joined) == 2
    assert [len(part) for part in joined.dp.parts] == [1, 1]


def test_a_ledger_verifies_each_part(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=9, path=tmp_path / "clinic.ledger")
    with ledger:
        parts = [engine(FRAME).dp.group_by("week", keys=[week]).count(epsilon=1) for week in (1, 2)]
    found = ledger.verify(dpf.concat(parts))
    assert [one["entry"] for one in found["releases"]] == [1, 2]
    forged = build.attach(dpf.concat(parts), {**build.record_of(dpf.concat(parts))})
    build.record_of(forged)["parts"][1]["cost"]["epsilon"] = 0.5
    with pytest.raises(dpf.LedgerError):
        ledger.verify(forged)


@pytest.mark.parametrize("parts", [None, [], [1], [{}], [{"schema": "dpframe.parts/1", "parts": []}], {"a": 1}])
def test_a_broken_record_of_parts_is_no_record(parts):
    frame = build.attach(pl.DataFrame({"x": [1]}), {"schema": "dpframe.parts/1", "parts": parts})
    assert build.record_of(frame) is None


def test_each_record_of_parts_is_checked(engine):
    joined = dpf.concat(weeks(engine))
    record = build.record_of(joined)
    for broken, part in enumerate(record["parts"]):
        parts = [*record["parts"]]
        parts[broken] = {name: fact for name, fact in part.items() if name != "cost"}
        assert build.record_of(build.attach(joined.head(1), {**record, "parts": parts})) is None


def test_one_release_joined_alone_keeps_its_own_record(engine):
    with dpf.Ledger(epsilon=1):
        one = engine({"week": [1, 1, 2]}).dp.count(epsilon=0.5)
    joined = dpf.concat([one])
    assert "parts" in joined.dp.provenance
    assert "parts" not in one.dp.provenance


def test_reports_are_estimated_before_they_are_joined(engine):
    frame = engine({"drug": ["a", "b", "a", "c"] * 50})
    ledger = dpf.Ledger(epsilon=10, unit=dpf.PrivacyUnit(neighbors="replace"))
    method = dpf.local.RandomizedResponse(["a", "b", "c"], epsilon=1.0)
    reports = [frame.dp.local.randomize("drug", method=method, ledger=ledger) for _ in range(2)]
    for one in (reports, reports[:1]):
        with pytest.raises(dpf.InvalidArgument, match=r"^releases must hold released .*dpf\.local\.estimate\(second"):
            dpf.concat(one)
    joined = dpf.concat([dpf.local.estimate(one) for one in reports])
    assert (len(joined), len(joined.dp.parts), joined.dp.provenance["altered"]) == (6, 2, False)


def test_joined_results_that_were_computed_are_written_as_such(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=9, path=tmp_path / "clinic.ledger")
    by = engine(FRAME).dp.group_by("ward", keys=["A", "B"])
    years = [by.count(epsilon=1, denoise=None, ledger=ledger) for _ in range(2)]
    joined = {
        "totals": dpf.concat([year.dp.total() for year in years], names=["2025", "2026"], column="year"),
        "shares": dpf.concat([year.dp.share() for year in years]),
    }
    for name, frame in joined.items():
        frame.dp.write_parquet(tmp_path / f"{name}.parquet")
        for one in (frame, dpf.read_parquet(tmp_path / f"{name}.parquet")):
            assert "computed from releases" in repr(one.dp)
            assert [len(part) for part in one.dp.parts] == [len(frame) // 2] * 2
            assert not one.dp.provenance["altered"]
            pages = tmp_path / "page.html", tmp_path / "report.html"
            one.dp.write_html(pages[0], charts=False)
            ledger.report(pages[1], one, charts=False)
            for page in pages:
                text = page.read_text(encoding="utf-8")
                assert text.count('"said": "computed from 1 release (epsilon 1), at no cost"') == 2
                assert "epsilon 0" not in text
            for verb in ("table", "statement", "plot"):
                with pytest.raises(dpf.InvalidArgument, match=f"{verb} must be asked of one release, and this frame"):
                    getattr(one.dp, verb)()
            with pytest.raises(dpf.InvalidArgument, match=r"errors must be asked of a release.*computed from some"):
                one.dp.errors()
    with pytest.raises(dpf.InvalidArgument, match=r"be all released or all computed: .*'released'.*'computed'"):
        dpf.concat([years[0], years[1].dp.total("ward")])


def test_a_workbook_of_joined_results_says_that_they_were_computed(engine):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    by = engine(FRAME).dp.group_by("ward", keys=["A", "B"])
    years = [by.count(epsilon=1, denoise=None, ledger=dpf.Ledger(epsilon=1)) for _ in range(2)]
    for verb in ("total", "share"):
        joined = dpf.concat([getattr(year.dp, verb)() for year in years])
        book = openpyxl.load_workbook(io.BytesIO(joined.dp.table("excel")))
        words = [str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row]
        said = [word for word in words if "computed from 1 release (epsilon 1), at no cost" in word]
        assert len(said) == 4  # on each sheet, and in its notes
        assert not any("epsilon 0" in word for word in words)


def test_joined_numbers_that_were_changed_are_not_written(tmp_path):
    """A file must hold the released numbers of every part."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ward": [1, 1, 2]})
    with dpf.Ledger(epsilon=1):
        whole = dpf.concat([frame.dp.group_by("ward", keys=[key]).count(epsilon=0.5) for key in (1, 2)])
    whole.loc[1, "count"] = 1000.0
    with pytest.raises(dpf.InvalidArgument, match="some were changed"):
        whole.dp.write_parquet(tmp_path / "whole.parquet")
    assert not (tmp_path / "whole.parquet").exists()
