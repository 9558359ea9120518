"""Runs of jobs, also repeated, over budget or killed: what is charged and written, and what the audit trail says."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from weekly_jobs import (
    EXACT,
    NAMED,
    STAYS,
    TEXT,
    check_files_on,
    check_folders_on,
    check_ids_on,
    check_job_on,
    check_packed_on,
    check_returns_on,
    job,
    lay_out,
    run,
)

import dpframe as dpf
from dpframe import files
from dpframe.display import pages
from dpframe.frames import scans
from dpframe.jobs import job_file, output_formats, running
from dpframe.jobs.running import planned
from dpframe.ledger import witness
from dpframe.ledger.sql import is_there
from dpframe.release import results

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_DUCKDB = pytest.mark.skipif(find_spec("duckdb") is None, reason="DuckDB is not installed")
both = pytest.mark.parametrize("engine", ["polars", pytest.param("duckdb", marks=WITHOUT_DUCKDB)])


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path)


def lines(folder):
    """Return the audit lines of the runs, without the line on the creation of the ledger."""
    found = map(json.loads, (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in found if "kind" not in line]


def charges(folder):
    return dpf.Ledger.open(folder / "clinic.ledger").to_frame().height


def test_a_job_is_charged_once_and_written(folder):
    told = []
    run(job(folder), told.append)
    assert "wards of w1: charged epsilon 0.3 (entry 1)" in told
    wards = dpf.read_parquet(folder / "out" / "wards.parquet")
    assert wards["ward"].to_list() == ["A", "B", "C"]
    assert wards.dp.provenance["cost"]["epsilon"] == 0.3
    dpf.Ledger.open(folder / "clinic.ledger").verify(wards)
    assert (folder / "out" / "nights-w1.csv").read_text(encoding="utf-8").startswith("nights_left,nights_right,count")
    (line,) = lines(folder)
    assert (line["status"], line["engine"], line["remaining"]["epsilon"]) == ("done", "polars", 0.5)
    assert [(one["label"], one["charged"], one["entry"]) for one in line["releases"]] == [
        ("wards", True, 1),
        ("nights", True, 3),
    ]
    assert [one["path"] for one in line["outputs"]] == ["out/wards.parquet", "out/nights-w1.csv"]


def test_a_job_that_is_run_again_costs_nothing_and_says_the_same(folder):
    run(job(folder))
    files = {path: path.read_bytes() for path in (folder / "out").iterdir()}
    for path in files:
        path.unlink()
    run(job(folder))
    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == files
    assert charges(folder) == 2
    assert [one["charged"] for one in lines(folder)[1]["releases"]] == [False, False]
    run(job(folder, "w2"))  # uses up what is left
    assert dpf.Ledger.open(folder / "clinic.ledger").remaining.epsilon == 0
    run(job(folder))  # a stored answer needs no budget
    assert charges(folder) == 4


def test_a_run_says_that_it_charged_nothing_where_another_run_had_charged_meanwhile(folder, monkeypatch):
    release, told = running._release, []

    def after_another(whole, question, *more):
        if question.label == "wards" and not told:
            told.append("the other run begins")
            running.run(job(folder))
        return release(whole, question, *more)

    monkeypatch.setattr(running, "_release", after_another)
    run(job(folder), told.append)
    assert charges(folder) == 2
    assert [[one["charged"] for one in line["releases"]] for line in lines(folder)] == [[True, True], [False, False]]
    assert "nights of w1: replayed from the ledger, at no cost (entry 3)" in told


def test_a_job_that_does_not_fit_as_a_whole_is_not_begun(folder):
    text = TEXT.replace("epsilon = 1.0", "epsilon = 0.4")  # enough for either release, but not for both
    with pytest.raises(
        dpf.BudgetExceeded, match=r"nights: the budget is exceeded: the call needs epsilon 0\.2, and epsilon 0\.1"
    ):
        run(job(folder, text=text))
    assert charges(folder) == 0
    assert not (folder / "out").exists()
    (line,) = lines(folder)
    assert (line["status"], line["error"]["kind"], line["releases"]) == ("failed", "BudgetExceeded", [])


@pytest.mark.parametrize("amounts", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}], ids=str)
def test_the_foreseen_rest_is_the_rest(amounts, folder):
    text = TEXT.replace("epsilon = 1.0", "\n".join(f"{name} = {value}" for name, value in amounts.items()))
    whole = planned(job(folder, text=text), charge=False)
    assert dict(whole.foresight.stored) == {"wards": False, "nights": False}
    run(job(folder))
    assert dpf.Ledger.open(folder / "clinic.ledger").remaining == whole.foresight.left
    again = planned(job(folder), charge=False)
    assert dict(again.foresight.stored) == {"wards": True, "nights": True}
    assert again.foresight.left == whole.foresight.left


@pytest.mark.parametrize("checks", ["false", "0.25"])
def test_the_checks_of_a_job_are_planned_with_its_ledger_and_without(checks, folder):
    text = TEXT.replace("audit =", f"checks = {checks}\naudit =")
    fresh = planned(job(folder, text=text), charge=False)
    run(job(folder))
    again = planned(job(folder, "w2", text), charge=False)
    usual = planned(job(folder, "w2", TEXT), charge=False)
    for label, plan in fresh.plans.items():
        assert str(plan) == str(again.plans[label]) != str(usual.plans[label])


def test_a_preview_reads_no_row_and_makes_no_file(folder, monkeypatch):
    monkeypatch.setattr("dpframe.release.path.measure", lambda *_: pytest.fail("rows were read"))
    before = sorted(folder.iterdir())
    whole = planned(job(folder), charge=False)
    assert whole.plans["wards"].cost == dpf.PrivacyLoss(0.3)
    assert sorted(folder.iterdir()) == before
    assert not is_there(folder / "clinic.ledger")


@pytest.mark.parametrize(
    ("old", "new", "kind", "words"),
    [
        ('"nights"\nbins', '"knights"\nbins', dpf.UnknownColumn, "[[release]] 2 'nights': column 'knights'"),
        ('"nights"\nbins', '"ward"\nbins', dpf.WrongDtype, "[[release]] 2 'nights': "),
        ("epsilon = 0.2", "", dpf.InvalidArgument, "[[release]] 2 'nights': epsilon must be given"),
        ("max_rows = 2\nepsilon = 0.2", "epsilon = 0.2", dpf.MissingArgument, "max_rows or max_groups must be given"),
        ('"stays.parquet"', '"none.parquet"', dpf.errors.SourceFailed, "[source]: no file is at"),
        ('"stays.parquet"', '"release.toml"', dpf.errors.SourceFailed, "polars cannot open the table"),
        ('"audit.jsonl"', '"stays.parquet/audit.jsonl"', dpf.InvalidArgument, "audit must be in a folder"),
        ('"out/wards', '"release.toml/a/wards', dpf.InvalidArgument, "path must be in a folder, and what is above"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_work_is_refused_before_the_first_charge(old, new, kind, words, folder):
    with pytest.raises(kind) as caught:
        run(job(folder, text=TEXT.replace(old, new)))
    assert words in str(caught.value)
    assert not is_there(folder / "clinic.ledger") or charges(folder) == 0


def test_a_report_that_cannot_be_made_is_refused_before_the_first_charge(folder):
    text = TEXT + '\n[report]\npath = "out/all.html"\n\n[report.labels.wards.columns]\nwrad = "Ward"\n'
    running.create(job(folder, text=text))
    with pytest.raises(dpf.DpframeError, match="wrad"):
        running.run(job(folder, text=text))
    assert charges(folder) == 0


def test_other_terms_than_the_ledgers_are_refused(folder):
    run(job(folder))
    with pytest.raises(dpf.LedgerError, match=r"\[ledger\]: epsilon must be 1.0, as in the ledger"):
        run(job(folder, "w2", TEXT.replace("epsilon = 1.0", "epsilon = 2.0")))
    with pytest.raises(dpf.LedgerError, match="name another release of this ledger: cost differs"):
        run(job(folder, "w1", TEXT.replace("epsilon = 0.2", "epsilon = 0.1")))
    assert charges(folder) == 2


def test_a_file_that_cannot_be_written_is_written_by_the_next_run(folder):
    whole = job(folder)
    (folder / "out").write_text("in the way")
    with pytest.raises(dpf.errors.OutputFailed, match=r"wards.parquet cannot be written .* at no cost"):
        run(whole)
    assert lines(folder)[0]["error"]["kind"] == "OutputFailed"
    (folder / "out").unlink()
    run(job(folder))
    assert charges(folder) == 2
    assert len(list((folder / "out").iterdir())) == 2


def test_the_engine_failed_and_the_trail_holds_no_words_of_its(folder, monkeypatch):
    monkeypatch.setattr("dpframe.release.path.measure", lambda *_: results.looked(lambda: None))
    with pytest.raises(dpf.ReleaseFailed):
        run(job(folder))
    (line,) = lines(folder)
    assert line["error"]["words"].startswith("[[release]] 1") or "withheld" in line["error"]["words"]
    monkeypatch.undo()
    run(job(folder))
    assert charges(folder) == 3  # the first charge stands


def test_the_trail_holds_no_words_of_others(folder, monkeypatch):
    def fail(*arguments, **named):
        raise RuntimeError("a value of 31")

    monkeypatch.setattr("dpframe.jobs.running.asked", fail)
    with pytest.raises(RuntimeError):
        run(job(folder))
    assert lines(folder)[0]["error"] == {"kind": "RuntimeError", "words": ""}


@pytest.mark.slow
def test_a_job_with_a_ledger_in_postgresql(folder, server, monkeypatch):
    """Four runs: killed before its first answer is stored, charged again, replayed at no cost, and over the limit."""
    url = server.url(f"jobs_{folder.name[-12:]}".lower())
    text = TEXT.replace('path = "clinic.ledger"', 'url = "${LEDGER}"').replace("epsilon = 1.0", "epsilon = 0.8")

    def run_week(week):
        (folder / "release.toml").write_text(text, encoding="utf-8")
        told = []
        run(job_file.read(folder / "release.toml", [f"WEEK={week}"], {"LEDGER": url}), told.append)
        return [words for words in told if " of w" in words]

    with monkeypatch.context() as killed:
        killed.setattr("dpframe.ledger.sql.SqlStore.keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_week("w1")
    assert run_week("w1") == [
        "wards of w1: charged epsilon 0.3 (entry 2)",
        "nights of w1: charged epsilon 0.2 (entry 4)",
    ]
    again = "replayed from the ledger, at no cost"
    assert run_week("w1") == [f"wards of w1: {again} (entry 2)", f"nights of w1: {again} (entry 4)"]
    with pytest.raises(dpf.BudgetExceeded):
        run_week("w2")
    ledger = dpf.Ledger.open(url)
    ledger.verify(dpf.read_parquet(folder / "out" / "wards.parquet"))
    assert ledger.spent.epsilon == 0.8
    assert all(url not in line for line in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines())


def put_back(folder, kept=None):
    """Return copies of the ledger and its head; or restore such copies, as in a process that saw neither before."""
    files = [folder / "clinic.ledger", folder / "clinic.ledger.head"]
    if kept is None:
        return [file.read_bytes() for file in files]
    for file, content in zip(files, kept, strict=True):
        file.write_bytes(content)
    witness._newest.clear()
    return None


def test_153_a_ledger_that_was_put_back_is_held_against_the_audit_trail(folder):
    run(job(folder))
    kept = put_back(folder)
    running.run(job(folder, "w2"))
    running.run(job(folder))  # a replay: its audit line names old entries
    with (folder / "audit.jsonl").open("ab") as trail:
        trail.write(b"torn {\n\xff\nnull\n")  # one of these lines is not UTF-8
    newest = put_back(folder)
    put_back(folder, kept)
    with pytest.raises(dpf.LedgerError, match=r"does not hold entry 8 of the audit trail audit\.jsonl"):
        running.run(job(folder, "w3"))
    assert charges(folder) == 2
    put_back(folder, newest)
    running.run(job(folder, "w2"))


def test_153_a_charge_of_a_release_that_failed_is_held_too(folder, monkeypatch):
    run(job(folder))
    kept = put_back(folder)
    monkeypatch.setattr("dpframe.release.path.measure", lambda *_: results.looked(lambda: None))
    with pytest.raises(dpf.ReleaseFailed):
        running.run(job(folder, "w2"))
    monkeypatch.undo()
    failed = lines(folder)[-1]
    assert (failed["status"], failed["releases"], failed["last"]["entry"]) == ("failed", [], 5)
    put_back(folder, kept)
    with pytest.raises(dpf.LedgerError, match="does not hold entry 5"):
        running.run(job(folder, "w3"))
    assert lines(folder)[-1]["last"] is None  # a ledger that is refused names no entry


def test_153_the_newest_entry_is_held_wherever_its_line_stands(folder):
    """Of two runs at once, the one that charged last may end first."""
    run(job(folder))
    kept = put_back(folder)
    running.run(job(folder, "w2"))
    trail = folder / "audit.jsonl"
    made, first, second = trail.read_text(encoding="utf-8").splitlines()
    trail.write_text("\n".join([made, second, first, ""]), encoding="utf-8")
    put_back(folder, kept)
    with pytest.raises(dpf.LedgerError, match="does not hold entry 8"):
        running.run(job(folder, "w3"))


def test_173_a_line_that_is_cut_takes_no_other_with_it(folder):
    """A full disk or a kill may cut a line; the next line must still be found, with the entries that it names."""
    run(job(folder))
    kept = put_back(folder)
    with (folder / "audit.jsonl").open("a", encoding="utf-8") as trail:
        trail.write('{"format": "dpframe.run/1", "rel')
    running.run(job(folder, "w2"))
    put_back(folder, kept)
    with pytest.raises(dpf.LedgerError, match="does not hold entry 8"):
        running.run(job(folder, "w3"))


def test_173_a_line_that_does_not_go_in_whole_is_told(folder, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, line: write(number, line[:20]))
    with pytest.raises(dpf.errors.OutputFailed, match=r"audit trail audit\.jsonl cannot be written"):
        output_formats.append_line(folder / "audit.jsonl", b"x" * 60)


def test_153_lines_of_another_job_or_ledger_are_not_held(folder):
    run(job(folder))
    trail = (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(trail)["ledger"] == "clinic.ledger"
    for old, new in (('"ledger": "clinic.ledger"', '"ledger": "old.ledger"'), ("release.toml", "other.toml")):
        (folder / "audit.jsonl").write_text(trail.replace(old, new), encoding="utf-8")
        for end in ("", ".head"):
            (folder / f"clinic.ledger{end}").unlink(missing_ok=True)
        witness._newest.clear()
        run(job(folder))
    before = json.loads(trail)
    del before["ledger"], before["last"]  # as dpframe 0.2 wrote it
    (folder / "audit.jsonl").write_text(json.dumps(before) + "\n", encoding="utf-8")
    with pytest.raises(dpf.LedgerError, match="does not hold entry 3"):
        running.run(job(folder, "w2"))


def test_153_a_job_names_where_the_head_is_kept(folder):
    text = TEXT.replace('path = "clinic.ledger"', 'path = "clinic.ledger"\nhead = "kept/clinic.head"')
    (folder / "kept").mkdir()
    run(job(folder, text=text))
    kept = put_back(folder)
    running.run(job(folder, "w2", text=text))
    put_back(folder, kept)
    (folder / "audit.jsonl").unlink()
    with pytest.raises(dpf.LedgerError, match="older copy"):
        running.run(job(folder, "w3", text=text))
    with pytest.raises(dpf.InvalidArgument, match="must be a file of its own"):
        job(folder, text=text.replace("kept/clinic.head", "out/wards.parquet"))


def test_the_ledger_of_a_job_protects_its_unit(folder):
    run(job(folder, text=TEXT.replace('unit = "patient"', 'unit = "patient"\nneighbors = "replace"')))
    unit = dpf.Ledger.open(folder / "clinic.ledger").unit
    assert (unit.column, unit.neighbors) == ("patient", "replace")
    wards = dpf.read_parquet(folder / "out" / "wards.parquet")
    assert wards.dp.provenance["unit"]["column"] == "patient"


OUTPUTS = "".join(f'[[output]]\nrelease = "nights"\npath = "out/n{end}"\n' for end in (".md", ".json", ".csv"))


def test_outputs_for_people_and_programs(folder):
    text = TEXT.replace('label = "nights"', 'label = "=nights | <b>"').replace(
        'release = "nights"', 'release = "=nights | <b>"'
    )
    run(job(folder, text=text + OUTPUTS.replace('"nights"', '"=nights | <b>"')))
    page = (folder / "out" / "n.md").read_text(encoding="utf-8")
    assert page.startswith("# =nights \\| \\<b\\>\n\n| nights\\_left | nights\\_right | count |")
    assert "The numbers were computed exactly" in page
    assert json.loads((folder / "out" / "n.json").read_text(encoding="utf-8"))["label"] == "=nights | <b>"


def test_a_markdown_file_says_no_less_than_the_margins(folder):
    """A margin is rounded up, and so are upper ends; lower ends are rounded down."""
    median = 'statistics.median = {statistic = "median", column = "nights", bounds = [0, 30]}'
    text = TEXT.replace("max_rows = 2", f"{median}\nmax_rows = 2", 1).replace("epsilon = 0.3", "epsilon = 0.31")
    run(job(folder, text=text + '[[output]]\nrelease = "wards"\npath = "out/w.md"\n'))
    page = (folder / "out" / "w.md").read_text(encoding="utf-8").replace("\\_", "_").splitlines()
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("|"))
    exact = dpf.read_parquet(folder / "out" / "wards.parquet")
    assert head == exact.columns
    for line, row in zip(lines, exact.to_dicts(), strict=True):
        for name, said in zip(head, line, strict=True):
            if name.endswith(("_error", "_high")):
                assert float(said.replace(",", "")) >= row[name] - 1e-9
            if name.endswith("_low"):
                assert float(said.replace(",", "")) <= row[name] + 1e-9
    margin = exact["stays_error"][0]
    assert pages.number(margin) != pages.margin(margin)  # else nothing is tested
    assert lines[0][head.index("stays_error")] == pages.margin(margin)
    assert f"of stays is {pages.margin(margin)}." in page[-1]


@pytest.mark.slow
def test_pictures_and_pages(folder):
    pytest.importorskip("vl_convert")
    more = '[[output]]\nrelease = "nights"\npath = "out/n.svg"\n[[output]]\nrelease = "nights"\npath = "out/n.html"\n'
    run(job(folder, text=TEXT + more))
    assert (folder / "out" / "n.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "</table>" in (folder / "out" / "n.html").read_text(encoding="utf-8")


def test_what_is_not_installed_is_told_before_the_first_charge(folder, monkeypatch):
    monkeypatch.setattr("dpframe.jobs.output_formats._is_installed", lambda name: False)
    more = '[[output]]\nrelease = "nights"\npath = "out/n.svg"\n'
    with pytest.raises(ImportError, match=r"\.svg needs altair: pip install 'dpframe\[plot\]'"):
        run(job(folder, text=TEXT + more))
    assert charges(folder) == 0


# The ledger is created only once


def test_a_job_without_its_ledger_is_refused_before_anything_is_read(folder, monkeypatch):
    monkeypatch.setattr("dpframe.jobs.running.opened", lambda job: pytest.fail("the table was opened"))
    with pytest.raises(dpf.LedgerError, match=r"no ledger is at .*clinic.ledger.*Nothing was read") as refused:
        running.run(job(folder))
    assert f"dpframe ledger create {folder / 'release.toml'} --set WEEK=w1" in str(refused.value)
    assert not is_there(folder / "clinic.ledger")
    (line,) = lines(folder)
    assert (line["status"], line["error"]["kind"]) == ("failed", "LedgerError")


def test_a_ledger_that_is_gone_is_not_made_again(folder):
    """After a lost volume or a wrong path, a new ledger would grant the same people's data a second full budget."""
    run(job(folder))
    for path in folder.glob("clinic.ledger*"):
        path.unlink()
    with pytest.raises(dpf.LedgerError, match="If there was one, put it back"):
        running.run(job(folder, "w2"))
    (folder / "clinic.ledger").touch()  # an empty file, prepared in its place
    with pytest.raises(dpf.LedgerError, match="is not a ledger") as refused:
        running.run(job(folder, "w2"))
    assert str(refused.value).endswith(f"make it: dpframe ledger create {folder / 'release.toml'} --set WEEK=w2")
    with pytest.raises(dpf.LedgerError, match="no ledger is at"):
        running.run(job(folder, "w2", TEXT.replace("clinic.ledger", "clinics.ledger")))
    assert not is_there(folder / "clinics.ledger")
    assert sum(one["charged"] for line in lines(folder) for one in line["releases"]) == 2


def test_a_ledger_in_a_folder_that_is_not_there_is_refused_with_the_way_out(folder):
    """A file of no bytes may be left. To make it in Python, as the words said, would give it other terms."""
    command = f"dpframe ledger create {folder / 'release.toml'} --set WEEK=w1"
    nowhere = job(folder, text=TEXT.replace("clinic.ledger", "no/where/clinic.ledger"))
    with pytest.raises(dpf.LedgerError, match="or a name in an existing folder to make one: ") as refused:
        running.create(nowhere)
    assert str(refused.value).endswith(command)
    headless = job(folder, text=TEXT.replace('"clinic.ledger"', '"clinic.ledger"\nhead = "none/head"'))
    with pytest.raises(dpf.LedgerError, match=r"no ledger was made\. Make its folder first\.$"):
        running.create(headless)
    for charge in (True, False):
        with pytest.raises(dpf.LedgerError, match=r"toml, \[ledger\]: the file at .* is not a ledger") as refused:
            running.planned(headless, charge=charge)
        assert str(refused.value).endswith(f"make it: {command}")
    (folder / "none").mkdir()
    running.create(headless)
    assert running.run(headless).last is not None


def test_a_ledger_that_is_gone_is_known_to_its_head_elsewhere(folder):
    """Its files were lost with the head next to them: neither a run nor a preview takes it for a new ledger."""
    (folder / "kept").mkdir()
    text = TEXT.replace('path = "clinic.ledger"', 'path = "clinic.ledger"\nhead = "kept/head"')
    first = job(folder, text=text)
    running.create(first)
    for path in folder.glob("clinic.ledger*"):
        path.unlink()
    with pytest.raises(dpf.LedgerError, match="no ledger is at"):  # nothing was spent
        running.run(first)
    run(first)
    for path in folder.glob("clinic.ledger*"):
        path.unlink()
    for charge in (True, False):
        with pytest.raises(dpf.LedgerError, match=r"is gone, but its head at .*head' says that entry 4 was written"):
            running.planned(first, charge=charge)
    beside = job(folder, text=text.replace("kept/head", "clinic.ledger.head"))
    with pytest.raises(dpf.InvalidArgument, match=r"\[ledger\]: head must be kept elsewhere"):
        running.planned(beside, charge=False)


def test_a_ledger_is_made_once_and_the_trail_says_so(folder):
    ledger = running.create(job(folder))
    (line,) = [json.loads(text) for text in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (line["kind"], line["status"], line["releases"]) == ("created", "done", [])
    assert (line["created"]["limit"], line["created"]["dataset"]) == ({"epsilon": 1.0, "delta": 0.0}, "clinic")
    assert line["created"]["head"] == ledger.verify()["head"]
    running.run(job(folder))
    for text in (TEXT, TEXT.replace("epsilon = 1.0", "epsilon = 2.0")):
        with pytest.raises(dpf.LedgerError, match=r"\[ledger\]: a ledger is at .* already, and it stays as it is"):
            running.create(job(folder, text=text))
    assert charges(folder) == 2
    assert len(lines(folder)) == 1
    (folder / "clinic.ledger").unlink()  # the head stays, and records what was spent
    with pytest.raises(dpf.LedgerError, match="is gone, but its head next to it says"):
        running.create(job(folder, text=TEXT))


def test_the_trail_tells_the_part_of_delta_that_is_kept_for_keys(folder):
    terms = 'epsilon = 1.0\ndelta = 1e-6\nkeys_delta = 1e-7\naccounting = "rdp"'
    running.create(job(folder, text=TEXT.replace("epsilon = 1.0", terms)))
    line = json.loads((folder / "audit.jsonl").read_text(encoding="utf-8"))
    assert line["created"]["limit"] == {"epsilon": 1.0, "delta": 1e-6, "keys_delta": 1e-7}


def test_a_trail_that_cannot_be_written_keeps_a_ledger_from_being_made(folder):
    whole = job(folder, text=TEXT.replace('"audit.jsonl"', '"trails/audit.jsonl"'))
    (folder / "trails").write_text("in the way")
    with pytest.raises(dpf.errors.OutputFailed, match="the audit trail"):
        running.create(whole)
    assert not is_there(folder / "clinic.ledger")


CREATING = """
import sys
from dpframe.errors import LedgerError
from dpframe.jobs import job_file, running
import dpframe.ledger.sql
job = job_file.read(sys.argv[1], ["WEEK=w1"])
print("ready", flush=True)
sys.stdin.readline()
try:
    running.create(job)
except LedgerError as error:
    sys.exit(3 if "already" in str(error) else 4)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "postgresql"])
def test_of_processes_that_make_one_ledger_one_does(place, folder, request):
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    if place == "postgresql":
        environ["LEDGER"] = request.getfixturevalue("server").url(f"made_{folder.name[-12:]}".lower())
        text = TEXT.replace('path = "clinic.ledger"', 'url = "${LEDGER}"')
        (folder / "release.toml").write_text(text, encoding="utf-8")
    words = [sys.executable, "-c", CREATING, str(folder / "release.toml")]
    children = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) for _ in range(4)
    ]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate()
    assert sorted(child.returncode for child in children) == [0, 3, 3, 3]
    made = (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in made] == ["created"]


# Values from the environment


def test_the_trail_and_the_words_of_a_run_show_names_for_what_the_environment_fills_in(folder):
    text = TEXT.replace('"clinic"', '"${CLINIC}"').replace('"nights"\nverb', '"n ${K}"\nverb')
    text = text.replace('unit = "patient"', 'unit = "${WHO}"')
    text = text.replace('release = "nights"', 'release = "n ${K}"').replace('path = "out/', 'path = "${OUT}/./')
    (folder / "release.toml").write_text(text, encoding="utf-8")
    environment = {"OUT": f"{folder}//s3cret", "CLINIC": "of N.N.", "K": "7", "WEEK": "2026-W47", "WHO": "patient"}
    told = []
    running.create(job_file.read(folder / "release.toml", [], environment))
    running.run(job_file.read(folder / "release.toml", [], environment), told.append)
    trail = (folder / "audit.jsonl").read_text(encoding="utf-8")
    for value in ("s3cret", str(folder), "of N.N.", "2026-W47"):
        assert value not in trail + "".join(told)
    made, run = map(json.loads, trail.splitlines())
    assert (made["created"]["dataset"], made["created"]["unit"]["column"]) == ("${CLINIC}", "${WHO}")
    assert [one["path"] for one in run["outputs"]] == ["${OUT}/./wards.parquet", "${OUT}/./nights-${WEEK}.csv"]
    assert [(one["label"], one["snapshot"]) for one in run["releases"]] == [
        ("wards", "${WEEK}"),
        ("n ${K}", "${WEEK}"),
    ]
    assert "wrote nights-${WEEK}.csv" in told
    one = job_file.read(folder / "release.toml", [], environment)
    (folder / "s3cret" / "wards.parquet").unlink()
    (folder / "s3cret" / "wards.parquet").mkdir()
    with pytest.raises(dpf.errors.OutputFailed, match=r"wards\.parquet cannot be written .* at no cost") as refused:
        running.run(one)
    assert "s3cret" not in one.variables.hidden(str(refused.value))


def test_the_url_of_a_head_is_shown_as_the_file_has_it(folder):
    pytest.importorskip("psycopg")
    text = TEXT.replace('path = "clinic.ledger"', 'path = "clinic.ledger"\nhead = "${HEAD}"')
    (folder / "release.toml").write_text(text, encoding="utf-8")
    url = "postgresql+psycopg://someone:s3cret@127.0.0.1:9/heads"
    one = job_file.read(folder / "release.toml", ["WEEK=w1"], {"HEAD": url})
    with pytest.raises(dpf.LedgerUnavailable) as refused:
        running.create(one)
    assert "the head at ${HEAD} cannot be reached" in one.variables.hidden(str(refused.value))


# The same job on other engines, by one changed line


@both
def test_the_same_job_on_other_engines_by_one_changed_line(engine, folder):
    check_job_on(engine, folder)


@both
def test_206_ids_that_differ_in_zeros_are_never_one_unit(engine, folder):
    check_ids_on(engine, folder)


def test_257_a_job_on_an_older_duckdb_is_refused_before_the_charge(folder, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr(duckdb, "__version__", "1.4.4")
    with pytest.raises(dpf.InvalidArgument, match=r"\[source\]: duckdb must be version 2\.0 or newer, not 1\.4\.4"):
        run(job(folder, "w1", TEXT.replace('"polars"', '"duckdb"')))
    assert charges(folder) == 0


def test_a_table_of_a_database(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"create table stays as select * from read_parquet('{folder}/stays.parquet')")
    for place in ('table = "stays"', 'sql = "select * from stays where ward is not null;"'):
        source = f'database = "clinic.duckdb"\n{place}'
        text = TEXT.replace('path = "stays.parquet"', source).replace('"polars"', '"duckdb"')
        run(job(folder, f"w{len(place)}", text))
    assert charges(folder) == 4
    with pytest.raises(dpf.errors.SourceFailed, match="its message is withheld"):
        run(job(folder, "w3", text.replace("from stays", "from s3cret")))
    assert "s3cret" not in (folder / "audit.jsonl").read_text(encoding="utf-8")


# SQL of a job; a preview runs none of it

STATEMENTS = {
    "a statement before": "COPY stays TO 'leak.csv'; select * from stays",
    "two queries": "select * from stays; select * from stays",
    "COPY": "COPY stays TO 'leak.csv'",
    "COPY of a query": "COPY (select 1) TO 'leak.csv'",
    "ATTACH": "ATTACH 'leak.csv'",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD httpfs",
    "PRAGMA": "PRAGMA database_list",
    "SET": "SET threads = 1",
    "CALL": "CALL pragma_version()",
    "EXPLAIN": "EXPLAIN ANALYZE select * from stays",
    "EXPORT": "EXPORT DATABASE 'leak.csv'",
    "PREPARE": "PREPARE p AS select 1",
    "INSERT": "INSERT INTO stays select * from stays",
    "CREATE": "CREATE TEMP TABLE t AS select * from stays",
    "PIVOT": "PIVOT stays ON ward USING count(*)",
    "PIVOT inside": "select * from (PIVOT stays ON ward USING count(*))",
    "SUMMARIZE": "SUMMARIZE stays",
    "DESCRIBE inside": "select * from (DESCRIBE stays)",
    "no statement": "-- none",
    "no SQL": "selct 1",
}
FUNCTIONS = {
    "read_text": "select * from read_text('release.toml')",
    "read_csv": "select * from \"READ_CSV\"('release.toml')",
    "glob": "select * from stays where ward in (select file from glob('*'))",
    "sniff_csv": "with a as (select * from sniff_csv('release.toml')) select * from a",
    "query": "select (select count(*) from query('select * from read_text(''release.toml'')'))",
    "duckdb_secrets": "select list_transform([1], x -> (select count(*) from duckdb_secrets()))",
    "json_execute_serialized_sql": "from system.main.json_execute_serialized_sql('{}')",
}
OUTSIDE = {
    "a file": "select * from 'release.toml'",
    "a CSV file": "select * from 'other.csv'",
    "a view of a file": "select * from outside",
    "a macro of a file": "select (select outside_too())",
    "a macro in the place of range": "select * from range(1)",
    "a view in the place of range": "from range",
    "a macro in the place of unnest": "select * from unnest([1])",
    "a macro in the place of a function of SQL": "select upper(ward) as ward from stays",
}


def in_database(folder, source, *, shadowed=False):
    """Return a job on a database that has a table, and a view and a macro that read a private file outside it.

    If `shadowed`, macros and a view with names of DuckDB functions read that file too.
    """
    duckdb = pytest.importorskip("duckdb")
    (folder / "other.csv").write_text("patient,ward,nights\n1,s3cret,2\n", encoding="utf-8")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"create or replace table stays as select * from read_parquet('{folder}/stays.parquet')")
        connection.execute(f"create or replace view outside as select * from read_csv('{folder}/other.csv')")
        connection.execute(
            f"create or replace macro outside_too() as (select max(ward) from read_csv('{folder}/other.csv'))"
        )
        for name in ("range", "unnest") if shadowed else ():  # an allowed name may be a macro of the database
            connection.execute(
                f"create or replace macro {name}(x) as table (select * from read_csv('{folder}/other.csv'))"
            )
        if shadowed:
            file = f"read_csv('{folder}/other.csv')"
            connection.execute(f"create or replace view range as select * from {file}")
            connection.execute(f"create or replace macro upper(x) as (select max(ward) from {file})")
    text = TEXT.replace('"polars"', '"duckdb"').replace('path = "stays.parquet"', source)
    return job(folder, text=text)


def previewed(folder, sql, monkeypatch, *, shadowed=False):
    """Preview a job with this SQL, in the folder of the job."""
    monkeypatch.chdir(folder)
    source = f'database = "clinic.duckdb"\nsql = """{sql}"""'
    return planned(in_database(folder, source, shadowed=shadowed), charge=False)


@pytest.mark.parametrize("sql", STATEMENTS.values(), ids=STATEMENTS)
def test_sql_is_one_select(sql, folder, monkeypatch):
    with pytest.raises(dpf.InvalidArgument, match=r"\[source\]: sql must be one SELECT that DuckDB can parse"):
        previewed(folder, sql, monkeypatch)
    assert not (folder / "leak.csv").exists()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sql_calls_no_table_function_that_reads(name, folder, monkeypatch):
    with pytest.raises(dpf.InvalidArgument, match=f"(?i)sql must call no table function but .*, not '{name}'"):
        previewed(folder, FUNCTIONS[name], monkeypatch)


ALL = [sql for name, sql in {**OUTSIDE, **FUNCTIONS, **STATEMENTS}.items() if name != "sniff_csv"]  # DuckDB 1.0 runs it


@pytest.mark.parametrize("sql", ALL)
def test_duckdb_itself_reads_and_writes_no_other_file(sql, folder, monkeypatch):
    """The check of the query is off here: DuckDB's settings alone must block what that check could miss."""
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(scans, "_check_select", lambda *_: None)
    in_database(folder, 'path = "stays.parquet"', shadowed=True)
    before, found = sorted(folder.iterdir()), ""
    with suppress(dpf.DpframeError, duckdb.Error, AttributeError):  # AttributeError: a statement without a result
        found = str(scans.opened("duckdb", scans.Scan(database="clinic.duckdb", sql=sql)).fetchall())
    assert not [private for private in ("s3cret", "release.toml", "epsilon") if private in found]
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("sql", OUTSIDE.values(), ids=OUTSIDE)
def test_sql_reads_no_file_but_its_database(sql, folder, monkeypatch):
    with pytest.raises(dpf.DpframeError) as refused:
        previewed(folder, sql, monkeypatch, shadowed=True)
    assert isinstance(refused.value, dpf.InvalidArgument | dpf.errors.SourceFailed)
    assert "s3cret" not in str(refused.value)


def test_a_view_of_another_file_is_refused_in_words(folder, monkeypatch):
    for place, source in (("table", 'table = "outside"'), ("sql", 'sql = "from outside"')):
        whole = in_database(folder, f'database = "clinic.duckdb"\n{source}')
        with pytest.raises(dpf.InvalidArgument, match=f"{place} must read database alone, and this one asks for anoth"):
            planned(whole, charge=False)


def test_sql_reads_no_variable_of_python(folder, monkeypatch):
    stays = connection = scan = sql = pl.DataFrame({"patient": [1]})
    monkeypatch.setattr(scans, "mine", stays, raising=False)
    for name in ("mine", "connection", "scan", "sql"):
        with pytest.raises(dpf.errors.SourceFailed):
            previewed(folder, f"select * from {name}", monkeypatch)
    del connection, scan, sql


@pytest.mark.parametrize(
    "sql",
    [
        "select patient, ward, case when nights > 0 then error('v=' || ward)::double end as nights from stays",
        "select patient, ward, ('v=' || ward)::double as nights from stays",
        "select patient, ward, nights from stays limit (select error('v=' || max(ward))::bigint from stays)",
        "select patient, ward, nights from stays where (select error('v=' || max(ward)) from stays) is null",
    ],
)
def test_sql_that_fails_on_a_value_is_charged_and_quotes_none(sql, folder, monkeypatch):
    monkeypatch.chdir(folder)
    whole = in_database(folder, f'database = "clinic.duckdb"\nsql = """{sql}"""')
    planned(whole, charge=False)  # reads no row, so nothing fails
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands") as failed:
        run(whole)
    trail = (folder / "audit.jsonl").read_text(encoding="utf-8")
    assert charges(folder) == 1
    assert "v=" not in str(failed.value) + repr(failed.value.__context__) + trail


def test_sql_that_only_reads_is_run(folder, monkeypatch):
    sql = """with few as (from stays where patient < 9), weeks as (select * from range(2) as t(week))
        select patient, ward, nights, unnest([1, 2]) as again from few, weeks order by patient limit 100"""
    whole = previewed(folder, sql, monkeypatch)
    assert set(whole.plans) == {"wards", "nights"}


# Killed runs

KILLING = """
import os, signal, sys
from dpframe import files
from dpframe.display import pages
from dpframe.jobs import job_file, running
import dpframe.release.path as path
def killed(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)
point = sys.argv[2]
if point == "before rows are read":
    path.measure = killed
elif point == "before an output":
    running._write = killed
else:
    put = files.put_in_place  # of the head too
    files.put_in_place = lambda new, to: killed() if to.endswith(".parquet") else put(new, to)
running.run(job_file.read(sys.argv[1], ["WEEK=w1"], {}))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
@pytest.mark.parametrize(
    ("point", "more"), [("before rows are read", 1), ("before an output", 0), ("amid an output", 0)]
)
def test_a_job_that_is_killed_is_run_again(point, more, folder):
    running.create(job(folder))
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", KILLING, str(folder / "release.toml"), point]
    killed = subprocess.run(words, capture_output=True, check=False, env=environ)
    assert killed.returncode == -9, killed.stderr
    assert not (folder / "out" / "wards.parquet").exists()
    assert charges(folder) == 1
    run(job(folder))
    assert charges(folder) == 2 + more  # a charge whose answer was never stored is lost; it is never refunded
    assert dpf.read_parquet(folder / "out" / "wards.parquet").height == 3
    assert lines(folder)[-1]["status"] == "done"


HARD = {
    "bytes that are no UTF-8": b"2,J\xf6rg\n",
    "a field too many": b"2,B,3,4\n",
    "a field too few": b"2\n",
    "a long field": b"2," + b"x" * 3_000_000 + b"\n",
    "a null byte": b"2,a\x00b\n",
}


@pytest.mark.parametrize("line", HARD.values(), ids=HARD)
@both
def test_no_such_line_of_a_text_file_makes_a_run_fail(tmp_path, engine, line):
    """A bad line must not make a preview fail either, which decodes only the names; the other rows still count."""
    file = tmp_path / "stays.csv"
    file.write_bytes(b"p,w\n1,A\n" + line + b"3,A\n")
    frame = scans.opened(engine, scans.Scan(str(file), "csv", {"p": "integer", "w": "string"}))
    ledger = dpf.Ledger(epsilon=1e9)
    found = dpf.of(frame).group_by("w", keys=["A"]).count(epsilon=1e6, ledger=ledger)
    assert found["count"].to_list() == [2]


@both
def test_names_that_are_no_utf8_are_not_taken_for_one_person(tmp_path, engine):
    """Latin-1 has one byte for an umlaut, and readers replace all such bytes by one sign, so two names look equal."""
    file = tmp_path / "stays.csv"
    mueller, moeller = "M\xfcller,A\n".encode("latin-1"), "M\xf6ller,B\n".encode("latin-1")
    file.write_bytes(b"p,w\n" + mueller + 300 * moeller + b"Meyer,A\n")
    frame = scans.opened(engine, scans.Scan(str(file), "csv", {"p": "string", "w": "string"}))
    ledger = dpf.Ledger(epsilon=1e9, unit="p", accounting="basic")
    found = dpf.of(frame).group_by("w", keys=["A", "B"]).count(epsilon=1e6, max_rows=1, denoise=None, ledger=ledger)
    assert np.round(found["count"].to_numpy()).tolist() == [1, 0]  # only Meyer: the other names are missing values


def opened(engine, folder, **said):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    return scans.opened(engine, scans.Scan(str(folder / "stays*"), **said))


FIRST_LINES = {
    "a line break in quotes": '"notes\nof staff",{names}',
    "an empty line": "\n{names}",
    "a mark of UTF-8 alone": "\ufeff\r\n{names}",
    "quotes in pairs that end later": 'a"b,"notes\nof staff",{names}',
    "a quote in a quoted name": '"a"b,{names}',
    "line breaks of old computers": "{names}\rA,1\r",
}


@both
@pytest.mark.parametrize("first", ["w,p", "w,x,p", "w", "B,2"])
def test_text_files_with_other_columns_are_refused(tmp_path, engine, first):
    """DuckDB and Spark read later files by the column positions of the first: another column would name the units."""
    (tmp_path / "stays-1.csv").write_text("p,w\n1,A\n", encoding="utf-8")
    (tmp_path / "stays-2.csv").write_text(f"{first}\nB,2,3\n", encoding="utf-8")
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same first line") as refused:
        opened(engine, tmp_path, format="csv", columns={"p": "string"})
    assert "B" not in str(refused.value)  # without a header, the first line is a row of data


@pytest.mark.parametrize("first", FIRST_LINES.values(), ids=FIRST_LINES)
@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_225_names_of_columns_that_go_on_after_the_first_line_are_refused(engine, first, tmp_path):
    """Spark does read names there, and once read the second file by the column positions of the first."""
    for number, names in enumerate(("p,w", "w,p")):
        text = f"{first.format(names=names)}\nA,{number}\n"
        (tmp_path / f"stays-{number}.csv").write_bytes(text.encode())
    said = {"polars": scans._polars, "duckdb": scans._duckdb, "spark": scans._names_of_texts}[engine]
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    scan = scans.Scan(str(tmp_path / "stays*"), "csv", {"p": "string"})
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with all names of columns in the first line"):
        said(scan, scan.files)


@both
def test_text_files_that_gzip_compressed_are_read_and_compared(tmp_path, engine):
    """A run of such files with different first lines was once charged before it failed."""
    check_packed_on(engine, tmp_path)


@both
def test_261_a_carriage_return_in_a_text_ends_no_row(tmp_path, engine):
    check_returns_on(engine, tmp_path)


@pytest.mark.parametrize("text", [b'p,w\n"ann",A\n"ann\r",B\n', b'w,p\nA,"ann"\nB,"ann\r"\n'], ids=["first", "last"])
@both
def test_262_an_id_in_quotes_keeps_its_carriage_return(tmp_path, engine, text):
    """Polars drops it where it has no quotes, so that two people would be one unit: the limits say so."""
    (tmp_path / "stays.csv").write_bytes(text)
    frame = opened(engine, tmp_path, format="csv", columns={"p": "string"})
    ledger = dpf.Ledger(epsilon=1e9, unit="p")
    assert dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"].round().to_list() == [2]


OTHERWISE = {  # the name and the bytes of a file of text
    "Zstandard": ("stays.csv.zst", b"\x28\xb5\x2f\xfd\x20\x08A\0\0p,w\n1,A\n"),
    "bzip2": ("stays.csv.bz2", bz2.compress(b"p,w\n1,A\n")),
    "zlib": ("stays.csv", zlib.compress(b"p,w\n1,A\n")),
    "gzip without its ending": ("stays.csv", gzip.compress(b"p,w\n1,A\n")),
    "plain with the ending of gzip": ("stays.csv.gz", b"p,w\n1,A\n"),
}


@pytest.mark.parametrize(("name", "data"), OTHERWISE.values(), ids=OTHERWISE)
@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_text_files_that_an_engine_would_not_unpack_are_refused(tmp_path, engine, name, data):
    """DuckDB found no row in a file of gzip without its ending, and nothing compared the names in a file of zlib."""
    (tmp_path / name).write_bytes(data)
    said = {"polars": scans._polars, "duckdb": scans._duckdb, "spark": scans._names_of_texts}[engine]
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    scan = scans.Scan(str(tmp_path / "stays*"), "csv", {"p": "string"})
    with pytest.raises(dpf.InvalidArgument, match=f"whose names end in .gz, and '{name}' is neither"):
        said(scan, scan.files)


def test_a_job_reads_a_text_file_that_gzip_compressed(folder):
    (folder / "stays.csv.gz").write_bytes(gzip.compress(STAYS.select("patient", "ward", "nights").write_csv().encode()))
    columns = 'columns = {patient = "integer", ward = "string", nights = "number"}'
    run(job(folder, text=EXACT.replace('"stays.parquet"', f'"stays.csv.gz"\n{columns}')))
    assert dpf.read_parquet(folder / "out" / "wards.parquet")["stays"].round().to_list() == [200, 200, 200]


@pytest.mark.parametrize(("engine", "path"), [("polars", "."), ("polars", "**/*.csv"), ("duckdb", "**/*.csv")])
def test_text_files_in_folders_are_compared_too(tmp_path, engine, path):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    later = tmp_path / "2026" / "11" / "stays.csv"
    later.parent.mkdir(parents=True)
    (tmp_path / "stays.csv").write_text("p,w\n1,A\n", encoding="utf-8")
    later.write_text("w,p\nA,2\n", encoding="utf-8")
    scan = scans.Scan(str(tmp_path / path), "csv", {"p": "string"})
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same first line"):
        scans.opened(engine, scan)
    later.write_text("p,w\n2,A\n", encoding="utf-8")
    ledger = dpf.Ledger(epsilon=1e9, unit="p")
    assert dpf.of(scans.opened(engine, scan)).n_units(epsilon=1e6, ledger=ledger)["n_units"].to_list() == [2]


@pytest.mark.parametrize("pattern", NAMED)
@pytest.mark.parametrize("format", ["parquet", "csv"])
@both
def test_216_engines_read_the_files_that_were_checked(engine, format, pattern, tmp_path):
    check_files_on(engine, format, pattern, tmp_path)


@pytest.mark.parametrize("pattern", ["*.csv", "**/*.csv", "."])
@pytest.mark.parametrize("hidden", [".a.csv", ".ipynb_checkpoints/a.csv"])
@both
def test_216_a_hidden_file_gives_the_unit_no_other_column(engine, hidden, pattern, tmp_path):
    """Read by the column positions of the first file, the rows of person 5 would count as 500 people."""
    (tmp_path / "stays.csv").write_text("p,w\n" + "".join(f"{person},1\n" for person in range(100)), encoding="utf-8")
    (tmp_path / hidden).parent.mkdir(exist_ok=True)
    (tmp_path / hidden).write_text("w,p\n" + "".join(f"{ward},5\n" for ward in range(500)), encoding="utf-8")
    frame = scans.opened(engine, scans.Scan(str(tmp_path / pattern), "csv", {"p": "id"}))
    ledger = dpf.Ledger(epsilon=1e9, unit="p")
    assert dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"].to_list() == [100]


@both
def test_files_that_go_before_they_are_opened_are_not_looked_for_again(engine, tmp_path):
    """A second search could find files that arrived meanwhile, and read them unchecked."""
    with pytest.raises(FileNotFoundError):
        opened(engine, tmp_path)


@both
def test_a_file_that_is_found_by_two_names_is_read_once(engine, tmp_path):
    """Otherwise each row would appear twice, and if each row is a privacy unit, a person would count twice."""
    (tmp_path / "a").mkdir()
    pl.DataFrame({"p": [1]}).write_parquet(tmp_path / "a" / "stays.parquet")
    try:
        (tmp_path / "b").symlink_to(tmp_path / "a")
    except OSError:
        pytest.skip("this user may make no links")
    frame = opened(engine, tmp_path / "*")
    assert (frame.collect().rows() if engine == "polars" else frame.fetchall()) == [(1,)]


@both
def test_232_a_hard_link_to_a_file_is_another_name_of_it(engine, tmp_path):
    first = tmp_path / "stays-1.parquet"
    pl.DataFrame({"p": [1]}).write_parquet(first)
    pl.DataFrame({"p": [2]}).write_parquet(tmp_path / "stays-3.parquet")
    try:
        (tmp_path / "stays-2.parquet").hardlink_to(first)
    except OSError:
        pytest.skip("this disk has no hard links")
    frame = opened(engine, tmp_path)
    assert sorted(frame.collect().rows() if engine == "polars" else frame.fetchall()) == [(1,), (2,)]


def test_a_file_without_a_byte_has_no_rows(tmp_path):
    (tmp_path / "stays-1.parquet").write_bytes(b"")
    pl.DataFrame({"p": [1]}).write_parquet(tmp_path / "stays-2.parquet")
    assert opened("polars", tmp_path).collect().rows() == [(1,)]
    (tmp_path / "stays-2.parquet").write_bytes(b"")
    with pytest.raises(dpf.InvalidArgument, match="path must name a Parquet file that is not empty"):
        opened("polars", tmp_path)


@pytest.mark.parametrize("name", ["clinic[1]", "[!x]linic1"])
@both
@pytest.mark.parametrize("source", ["stays.parquet", "s*.parquet"])
def test_217_the_name_of_the_jobs_folder_is_no_pattern(source, engine, name, tmp_path):
    for folder in ("clinic1", name):
        (tmp_path / folder).mkdir()
        lay_out(tmp_path / folder)
    pl.DataFrame({"patient": ["other"]}).write_parquet(tmp_path / "clinic1" / "stays.parquet")
    text = TEXT.replace("stays.parquet", source).replace('"polars"', f'"{engine}"', 1)
    one = job(tmp_path / name, text=text)
    assert one.scan.files == [str(tmp_path / name / "stays.parquet")]
    frame = scans.opened(engine, one.scan)
    assert "nights" in (frame.collect_schema().names() if engine == "polars" else frame.columns)
    with pytest.raises(dpf.InvalidArgument, match=r"\[\[output\]\] 1: path must be a file of its own"):
        job(tmp_path / name, text=text.replace("out/wards", "./stays"))


@pytest.mark.parametrize("named", ['path = "', 'url = "', 'url = "sqlite:///', 'url = "sqlite+pysqlite:///'])
def test_218_a_job_has_one_ledger_wherever_it_is_run_from(named, folder, tmp_path, monkeypatch):
    """Relative to the working directory, each directory would get its own ledger, and so its own budget."""
    text = TEXT.replace('path = "clinic.ledger"', f'{named}clinic.ledger"\nhead = "kept/clinic.head"')
    assert text != TEXT
    (folder / "kept").mkdir()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run(job(folder, text=text))
    assert [line["status"] for line in lines(folder)] == ["done", "done"]
    assert not any(one["charged"] for one in lines(folder)[1]["releases"])
    assert (folder / "clinic.ledger").exists()
    assert (folder / "kept" / "clinic.head").exists()
    assert not [*(tmp_path / "one").iterdir(), *(tmp_path / "other").iterdir()]
    with pytest.raises(dpf.LedgerError):
        running.create(job(folder, text=text))


def test_218_addresses_of_servers_and_whole_names_stay_as_they_are(folder):
    server = "postgresql+psycopg://someone:secret@localhost/clinic"
    for url, place in ((server, server), (f"sqlite:///{folder}/a.ledger", str(folder / "a.ledger"))):
        one = job(folder, text=TEXT.replace('path = "clinic.ledger"', f'url = "{url}"'))
        assert one.ledger.place == place
    for url in ("sqlite://", "sqlite:///:memory:", "sqlite:///a.ledger?mode=ro", "mysql://localhost/clinic"):
        with pytest.raises(dpf.InvalidArgument, match=r"release.toml, \[ledger\]: path must be a file's name"):
            job(folder, text=TEXT.replace('path = "clinic.ledger"', f'url = "{url}"'))


@both
def test_columns_are_found_whatever_others_are_called(tmp_path, engine):
    """Duplicate names, and names that differ only in case, must not shift other columns to another position."""
    (tmp_path / "stays.csv").write_text(
        "a,a,,,P,p\n" + "".join(f"1,x,,,y,p{row}\n" for row in range(3)), encoding="utf-8"
    )
    frame = opened(engine, tmp_path, format="csv", columns={"p": "string"})
    ledger = dpf.Ledger(epsilon=1e9, unit="p")
    assert dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"].to_list() == [3]
    with pytest.raises(dpf.InvalidArgument, match="columns must stand in the first line of a file once, and 'a'"):
        opened(engine, tmp_path, format="csv", columns={"a": "string"})


def test_parquet_files_of_other_types_are_not_cast(tmp_path):
    for number, people in enumerate(([1, 2], [1.5, 2.5])):
        pl.DataFrame({"p": people}).write_parquet(tmp_path / f"stays-{number}.parquet")
    with pytest.raises(
        dpf.InvalidArgument, match="path must be of files with the same types, and column 'p' is BIGINT"
    ):
        opened("duckdb", tmp_path)
    (tmp_path / "stays-1.parquet").unlink()
    assert opened("duckdb", tmp_path).fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    ("engine", "other"),
    [
        ("polars", {"p": [1.5], "w": ["A"]}),
        ("polars", {"p": [3]}),
        ("polars", {"p": [3], "w": ["A"], "x": [1]}),
        ("polars", {"p": [3], "w": ["A"], "x": [None]}),  # one row would make a column of numbers of it
        ("duckdb", {"p": [3]}),
    ],
)
def test_parquet_files_of_other_columns_are_refused_before_the_charge(tmp_path, engine, other):
    """Such a run was once charged before it failed, and so was each retry of a scheduler."""
    pl.DataFrame({"p": [1, 2], "w": ["A", "B"]}).write_parquet(tmp_path / "stays-0.parquet")
    pl.DataFrame(other).write_parquet(tmp_path / "stays-1.parquet")
    with pytest.raises(dpf.InvalidArgument, match=r"path must be of files with the same types, and column '[pwx]' "):
        opened(engine, tmp_path)
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same types"):
        scans.opened("polars", scans.Scan(str(tmp_path)))
    pl.DataFrame({"w": ["A"], "p": [None]}).write_parquet(tmp_path / "stays-1.parquet")
    (tmp_path / "_SUCCESS").touch()
    frame, ledger = scans.opened("polars", scans.Scan(str(tmp_path))), dpf.Ledger(epsilon=1e9)
    assert dpf.of(frame).count("p", epsilon=1e6, ledger=ledger)["count"].round().to_list() == [2]


@pytest.mark.parametrize("format", ["parquet", "csv"])
@both
def test_names_of_folders_are_no_columns(tmp_path, engine, format):
    check_folders_on(engine, format, tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_159_a_pipe_in_place_of_a_table_or_a_job_is_refused_at_once(tmp_path, format):
    os.mkfifo(tmp_path / "stays-1")
    with pytest.raises(dpf.InvalidArgument, match="path must be of plain files, and 'stays-1' is no plain file"):
        opened("polars", tmp_path, format=format, columns={"p": "string"} if format == "csv" else {})
    with pytest.raises(dpf.InvalidArgument, match="database must be a plain file, and 'stays-1' is no plain file"):
        scans.opened("duckdb", scans.Scan(None, table="stays", database=str(tmp_path / "stays-1")))
    with pytest.raises(dpf.InvalidArgument, match="JOB must be a file that can be read"):
        job_file.read(tmp_path / "stays-1")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_159_a_pipe_in_place_of_the_audit_trail_is_refused_at_once(folder):
    os.mkfifo(folder / "audit.jsonl")
    with pytest.raises(dpf.errors.OutputFailed, match=r"the audit trail audit\.jsonl cannot be written"):
        run(job(folder))
    assert not (folder / "clinic.ledger").exists()


def test_191_two_runs_never_write_to_one_file(tmp_path, monkeypatch):
    """Runs in containers that share a folder may all have process ID 1, so the ID cannot keep their files apart."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    out = tmp_path / "out.csv"

    def slow(part):
        with part.open("w", encoding="utf-8") as file:
            file.write("whole, and longer")
            file.flush()
            files.write_whole("path", out, lambda other: other.write_text("other", encoding="utf-8") and None)
            assert out.read_text(encoding="utf-8") == "other"

    files.write_whole("path", out, slow)
    assert out.read_text(encoding="utf-8") == "whole, and longer"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("name", ["other.ledger", "other.ledger.head", "kept", "kept.lock", "hard"])
@pytest.mark.parametrize("key", ["path", "report", "audit"])
def test_219_no_file_of_a_job_is_written_over_the_ledger_of_others(key, name, folder):
    other = dpf.Ledger(epsilon=1, path=folder / "other.ledger", head=folder / "kept")
    pl.DataFrame({"x": [1]}).dp.count(epsilon=0.9, ledger=other)
    try:
        (folder / "hard").hardlink_to(folder / "other.ledger")
    except OSError:
        pytest.skip("no links here")
    if key == "report":  # the name of a report ends in .html
        (folder / f"{name}.html").symlink_to(folder / name)
    more = {
        "path": f'\n[[output]]\nrelease = "wards"\npath = "{name}"\nformat = "csv"\n',
        "report": f'\n[report]\npath = "{name}.html"\n',
        "audit": "",
    }
    text = TEXT.replace('audit = "audit.jsonl"', f'audit = "{name}"') if key == "audit" else TEXT + more[key]
    with pytest.raises(dpf.InvalidArgument, match=f"{key if key == 'audit' else 'path'} must be another file than a"):
        job(folder, text=text)
    assert dpf.Ledger.open(folder / "other.ledger", head=folder / "kept").spent.epsilon == 0.9


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_an_output_keeps_what_stands_in_its_place(folder):
    running.create(one := job(folder))
    (folder / "out").mkdir()
    os.mkfifo(folder / "out" / "wards.parquet")
    with pytest.raises(dpf.InvalidArgument, match=r"path must be a plain file or a new one, and 'wards\.parquet' is"):
        job(folder)
    with pytest.raises(dpf.errors.OutputFailed, match="path must be a plain file"):  # the job is older than the pipe
        running.run(one)
    (folder / "out" / "wards.parquet").unlink()
    (folder / "out" / "wards.parquet").symlink_to(folder / "real.parquet")
    run(job(folder))
    (folder / "real.parquet").chmod(0o600)
    run(job(folder))
    assert (folder / "out" / "wards.parquet").is_symlink()
    assert dpf.read_parquet(folder / "real.parquet").dp.provenance["label"] == "wards"
    assert (folder / "real.parquet").stat().st_mode & 0o777 == 0o600


def test_191_an_output_that_is_taken_away_at_once_has_the_hash_of_what_was_written(folder, monkeypatch):
    put = files.put_in_place

    def taken(new, path):
        put(new, path)
        if "out" in Path(path).parts and not path.endswith(".part"):  # outputs only, not the head of the ledger
            os.unlink(path)

    monkeypatch.setattr(files, "put_in_place", taken)
    run(job(folder))
    monkeypatch.undo()
    run(job(folder))
    first, second = lines(folder)
    assert first["status"] == "done"
    assert first["outputs"] == second["outputs"]


@pytest.mark.parametrize("source", ["*.parquet", "../{name}/*.parquet", "."], ids=str)
def test_193_no_output_is_written_among_what_the_job_reads(source, folder):
    """Otherwise the next release, or the next run, would read released numbers as rows."""
    text = TEXT.replace("stays.parquet", source.format(name=folder.name)).replace("out/wards", "wards")
    with pytest.raises(dpf.InvalidArgument, match=r"\[\[output\]\] 1: path must be a file of its own"):
        job(folder, text=text)
    other = TEXT.replace("stays.parquet", "s*.parquet").replace("out/wards", "wards")
    assert job(folder, text=other).outputs[0].path.name == "wards.parquet"


@pytest.mark.parametrize("place", ["data/wards.parquet", "data/a/wards.parquet", "data/a/b/c/wards.parquet"])
@pytest.mark.parametrize(
    ("engine", "pattern"),
    [
        ("polars", "data/**/*.parquet"),
        ("polars", "data/**/**/w*.parquet"),
        ("duckdb", "data/**/w*.parquet"),
    ],
)
def test_193_a_pattern_of_any_folders_names_what_engines_read_by_it(pattern, place, engine, folder):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    text = TEXT.replace("stays.parquet", pattern)
    with pytest.raises(dpf.InvalidArgument, match=r"\[\[output\]\] 1: path must be a file of its own"):
        job(folder, text=text.replace("out/wards.parquet", place))
    (folder / place).parent.mkdir(parents=True)
    pl.read_parquet(folder / "stays.parquet").write_parquet(folder / place)
    found = scans.opened(engine, scans.Scan(path=str(folder / pattern)))
    assert (found.collect().height if engine == "polars" else len(found.fetchall())) > 0
    for other in ("data/wards.csv", "other/wards.parquet", "wards.parquet"):
        assert job(folder, text=text.replace("out/wards.parquet", other)).outputs[0].path == folder / other


def test_193_no_output_makes_a_folder_that_the_next_run_would_read(folder):
    text = TEXT.replace("stays.parquet", "data/*").replace("out/wards", "data/out/wards")
    with pytest.raises(dpf.InvalidArgument, match=r"\[\[output\]\] 1: path must be a file of its own"):
        job(folder, text=text)


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_bytes(b"PAR1 A. Patient" * 99)], ids=["removed", "other"]
)
def test_194_a_table_that_goes_after_it_was_opened_is_told_in_words_of_dpframe(change, folder, monkeypatch):
    pytest.importorskip("duckdb")
    opened = running.opened

    def gone(job):
        frame = opened(job)
        change(folder / "stays.parquet")
        return frame

    monkeypatch.setattr(running, "opened", gone)
    with pytest.raises(dpf.errors.SourceFailed, match=r"duckdb cannot read the table any more") as caught:
        run(job(folder, text=TEXT.replace('"polars"', '"duckdb"')))
    assert str(folder) not in str(caught.value)
    assert charges(folder) == 0
    (line,) = lines(folder)
    assert line["error"]["kind"] == "SourceFailed"
