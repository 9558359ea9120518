"""Reports of files, and pages of results: what they hold, and what they refuse."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dpf
from dpframe.reports import write_report

DATA = {"age": [31.0, 45.0, 62.0] * 100, "ward": ["A", "B", "A"] * 100}


@pytest.fixture
def files(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=3, path=tmp_path / "clinic.ledger", dataset="clinic")
    frame = engine(DATA)
    with ledger:
        released = {
            "wards": frame.dp.group_by("ward", keys=["A", "B"]).mean("age", bounds=(0, 120), epsilon=0.5),
            "mode": frame.dp.mode("ward", categories=["A", "B"], epsilon=0.5),
            "ages": frame.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5, label="Ages"),
        }
    for name, result in released.items():
        result.dp.write_parquet(tmp_path / f"{name}.parquet")
    dpf.concat([released["ages"], released["ages"]]).dp.write_parquet(tmp_path / "joined.parquet")
    return tmp_path


def test_a_report_of_files(files):
    names = [files / f"{name}.parquet" for name in ("wards", "mode", "ages")]
    write_report(names, files / "report.html", charts=False)
    page = (files / "report.html").read_text(encoding="utf-8")
    for words in ("<h1>Report</h1>", "Mean of age by ward", "Mode of ward", "Ages", "0 to 50", "epsilon 0.5"):
        assert words in page
    assert "values below 0 count as 0, those above 120 as 120" in page
    assert "values of age outside [0, 100] are left out" in page
    write_report(names, files / "spent.html", ledger=files / "clinic.ledger", charts=False)
    assert "epsilon 1.5 of epsilon 3" in (files / "spent.html").read_text(encoding="utf-8")
    write_report([files / "joined.parquet"], files / "joined.html", charts=False)
    assert (files / "joined.html").read_text(encoding="utf-8").count('<section id="part') == 2


def test_releases_of_another_ledger_are_refused(files, tmp_path):
    dpf.Ledger(epsilon=3, path=tmp_path / "other.ledger")
    with pytest.raises(dpf.LedgerError):
        write_report([files / "ages.parquet"], tmp_path / "x.html", ledger=tmp_path / "other.ledger", charts=False)
    names, ledger = [files / "ages.parquet", tmp_path / "memory.parquet"], files / "clinic.ledger"
    dpf.read_parquet(names[0]).dp.write_parquet(names[1])
    write_report(names, tmp_path / "both.html", ledger=ledger, charts=False)
    with dpf.Ledger(epsilon=1):
        pl.DataFrame(DATA).dp.count(epsilon=1).dp.write_parquet(names[1])
    with pytest.raises(dpf.LedgerError):
        write_report(names, tmp_path / "x.html", ledger=ledger, charts=False)
    with pytest.raises(dpf.MissingArgument, match="files must name"):
        write_report([], tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("output", ["ages.parquet", "wards.parquet", "clinic.ledger"])
def test_a_report_is_written_over_no_result_and_no_ledger(files, output):
    before = (files / output).read_bytes()
    with pytest.raises(dpf.InvalidArgument, match=r"output must be another file than (those that are read|a ledger)"):
        write_report([files / "ages.parquet", files / "wards.parquet"], files / output, charts=False)
    assert (files / output).read_bytes() == before


def test_a_page_of_one_result_has_one_heading(files):
    dpf.read_parquet(files / "ages.parquet").dp.write_html(files / "ages.html", charts=False)
    page = (files / "ages.html").read_text(encoding="utf-8")
    assert page.count("Ages</h") == 1
    assert "entry 3" in page
    assert "Ledger&#x27;s head" in page


def test_a_changed_result_is_not_written(engine, tmp_path):
    result = engine(DATA).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    if engine.is_pandas:
        result["names"] = "Ann"
    else:
        result.insert_column(0, type(result)({"names": ["Ann"]})["names"])
    with pytest.raises(dpf.InvalidArgument, match="covered by no release"):
        result.dp.write_html(tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_what_is_not_private_says_so(engine, tmp_path):
    from dpframe import noise

    with noise.insecure_bits(1):
        result = engine(DATA).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    result.dp.write_html(tmp_path / "x.html", charts=False)
    assert "NOT PRIVATE" in (tmp_path / "x.html").read_text(encoding="utf-8")
