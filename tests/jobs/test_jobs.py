"""Jobs, run: once, again, over budget, killed; what is charged, what is written, and what the trail says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from weekly_jobs import TEXT, check_folders_on, check_job_on, job, lay_out

import dpframe as dpf
from dpframe.frames import scans
from dpframe.jobs import job_file, running
from dpframe.jobs.planning_jobs import planned
from dpframe.ledger.presence import is_there

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path)


def lines(folder):
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()]


def charges(folder):
    return dpf.Ledger.open(folder / "clinic.ledger").to_frame().height


def test_a_job_is_charged_once_and_written(folder):
    told = []
    running.run(job(folder), told.append)
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
    running.run(job(folder))
    files = {path: path.read_bytes() for path in (folder / "out").iterdir()}
    for path in files:
        path.unlink()
    running.run(job(folder))
    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == files
    assert charges(folder) == 2
    assert [one["charged"] for one in lines(folder)[1]["releases"]] == [False, False]
    running.run(job(folder, "w2"))  # which takes what is left
    assert dpf.Ledger.open(folder / "clinic.ledger").remaining.epsilon == 0
    running.run(job(folder))  # an answer that is there needs no budget
    assert charges(folder) == 4


def test_a_job_that_does_not_fit_as_a_whole_is_not_begun(folder):
    text = TEXT.replace("epsilon = 1.0", "epsilon = 0.4")  # for either, but not for both
    with pytest.raises(dpf.BudgetExceeded, match=r"nights: the call costs epsilon 0\.2, but only epsilon 0\.1"):
        running.run(job(folder, text=text))
    assert charges(folder) == 0
    assert not (folder / "out").exists()
    (line,) = lines(folder)
    assert (line["status"], line["error"]["kind"], line["releases"]) == ("failed", "BudgetExceeded", [])


@pytest.mark.parametrize("amounts", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}], ids=str)
def test_the_foreseen_rest_is_the_rest(amounts, folder):
    text = TEXT.replace("epsilon = 1.0", "\n".join(f"{name} = {value}" for name, value in amounts.items()))
    whole = planned(job(folder, text=text), charge=False)
    assert dict(whole.foresight.stored) == {"wards": False, "nights": False}
    running.run(job(folder))
    assert dpf.Ledger.open(folder / "clinic.ledger").remaining == whole.foresight.left
    again = planned(job(folder), charge=False)
    assert dict(again.foresight.stored) == {"wards": True, "nights": True}
    assert again.foresight.left == whole.foresight.left


def test_a_preview_reads_no_row_and_makes_no_file(folder, monkeypatch):
    monkeypatch.setattr("dpframe.release.path._measured", lambda plan: pytest.fail("rows were read"))
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
        ("max_rows = 2\nepsilon = 0.2", "epsilon = 0.2", dpf.MissingArgument, "max_rows must be given"),
        ('"stays.parquet"', '"none.parquet"', dpf.errors.SourceFailed, "[source]: no file is at"),
        ('"stays.parquet"', '"release.toml"', dpf.errors.SourceFailed, "polars cannot open the table"),
        ('"audit.jsonl"', '"stays.parquet/audit.jsonl"', dpf.errors.OutputFailed, "the audit trail"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_work_is_refused_before_the_first_charge(old, new, kind, words, folder):
    with pytest.raises(kind) as caught:
        running.run(job(folder, text=TEXT.replace(old, new)))
    assert words in str(caught.value)
    assert not is_there(folder / "clinic.ledger") or charges(folder) == 0


def test_other_terms_than_the_ledgers_are_refused(folder):
    running.run(job(folder))
    with pytest.raises(dpf.LedgerError, match=r"\[ledger\]: epsilon must be 1.0, as in the ledger"):
        running.run(job(folder, "w2", TEXT.replace("epsilon = 1.0", "epsilon = 2.0")))
    with pytest.raises(dpf.LedgerError, match="name another release of this ledger: price differs"):
        running.run(job(folder, "w1", TEXT.replace("epsilon = 0.2", "epsilon = 0.1")))
    assert charges(folder) == 2


def test_a_file_that_cannot_be_written_is_written_by_the_next_run(folder):
    (folder / "out").write_text("in the way")
    with pytest.raises(dpf.errors.OutputFailed, match=r"wards.parquet cannot be written .* at no cost"):
        running.run(job(folder))
    assert lines(folder)[0]["error"]["kind"] == "OutputFailed"
    (folder / "out").unlink()
    running.run(job(folder))
    assert charges(folder) == 2
    assert len(list((folder / "out").iterdir())) == 2


def test_the_engine_failed_and_the_trail_holds_no_words_of_its(folder, monkeypatch):
    monkeypatch.setattr("dpframe.release.path._measured", lambda plan: None)
    with pytest.raises(dpf.ReleaseFailed):
        running.run(job(folder))
    (line,) = lines(folder)
    assert line["error"]["words"].startswith("[[release]] 1") or "withheld" in line["error"]["words"]
    monkeypatch.undo()
    running.run(job(folder))
    assert charges(folder) == 3  # the first charge stands


def test_the_trail_holds_no_words_of_others(folder, monkeypatch):
    def fail(*arguments, **named):
        raise RuntimeError("a value of 31")

    monkeypatch.setattr("dpframe.jobs.running.asked", fail)
    with pytest.raises(RuntimeError):
        running.run(job(folder))
    assert lines(folder)[0]["error"] == {"kind": "RuntimeError", "words": ""}


@pytest.mark.slow
def test_a_job_with_a_ledger_in_postgresql(folder, server, monkeypatch):
    """Killed before its first answer is stored, run again, once more at no cost, and then beyond the limit."""
    url = server.url(f"jobs_{folder.name[-12:]}".lower())
    text = TEXT.replace('path = "clinic.ledger"', 'url = "${LEDGER}"').replace("epsilon = 1.0", "epsilon = 0.8")

    def run(week):
        (folder / "release.toml").write_text(text, encoding="utf-8")
        told = []
        running.run(job_file.read(folder / "release.toml", [f"WEEK={week}"], {"LEDGER": url}), told.append)
        return [words for words in told if " of w" in words]

    with monkeypatch.context() as killed:
        killed.setattr("dpframe.ledger.sql.SqlStore.keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("w1")
    assert run("w1") == ["wards of w1: charged epsilon 0.3 (entry 2)", "nights of w1: charged epsilon 0.2 (entry 4)"]
    again = "replayed from the ledger, at no cost"
    assert run("w1") == [f"wards of w1: {again} (entry 2)", f"nights of w1: {again} (entry 4)"]
    with pytest.raises(dpf.BudgetExceeded):
        run("w2")
    ledger = dpf.Ledger.open(url)
    ledger.verify(dpf.read_parquet(folder / "out" / "wards.parquet"))
    assert ledger.spent.epsilon == 0.8
    assert all(url not in line for line in (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines())


def test_the_ledger_of_a_job_protects_its_unit(folder):
    running.run(job(folder, text=TEXT.replace('unit = "patient"', 'unit = "patient"\nneighbors = "replace"')))
    unit = dpf.Ledger.open(folder / "clinic.ledger").unit
    assert (unit.column, unit.neighbors) == ("patient", "replace")
    wards = dpf.read_parquet(folder / "out" / "wards.parquet")
    assert wards.dp.provenance["unit"]["column"] == "patient"


OUTPUTS = "".join(f'[[output]]\nrelease = "nights"\npath = "out/n{end}"\n' for end in (".md", ".json", ".csv"))


def test_outputs_for_people_and_programs(folder):
    text = TEXT.replace('label = "nights"', 'label = "=nights | <b>"').replace(
        'release = "nights"', 'release = "=nights | <b>"'
    )
    running.run(job(folder, text=text + OUTPUTS.replace('"nights"', '"=nights | <b>"')))
    page = (folder / "out" / "n.md").read_text(encoding="utf-8")
    assert page.startswith("# =nights \\| \\<b\\>\n\n| nights\\_left | nights\\_right | count |")
    assert "The numbers were computed exactly" in page
    assert json.loads((folder / "out" / "n.json").read_text(encoding="utf-8"))["label"] == "=nights | <b>"


@pytest.mark.slow
def test_pictures_and_pages(folder):
    pytest.importorskip("vl_convert")
    more = '[[output]]\nrelease = "nights"\npath = "out/n.svg"\n[[output]]\nrelease = "nights"\npath = "out/n.html"\n'
    running.run(job(folder, text=TEXT + more))
    assert (folder / "out" / "n.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "</table>" in (folder / "out" / "n.html").read_text(encoding="utf-8")


def test_what_is_not_installed_is_told_before_the_first_charge(folder, monkeypatch):
    monkeypatch.setattr("dpframe.jobs.output_formats._is_installed", lambda name: False)
    more = '[[output]]\nrelease = "nights"\npath = "out/n.svg"\n'
    with pytest.raises(ImportError, match=r"\.svg needs altair: pip install 'dpframe\[plot\]'"):
        running.run(job(folder, text=TEXT + more))
    assert not is_there(folder / "clinic.ledger")


# Engines: one changed line


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_same_job_on_other_engines_by_one_changed_line(engine, folder):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    check_job_on(engine, folder)


def test_a_table_of_a_database(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"create table stays as select * from read_parquet('{folder}/stays.parquet')")
    for place in ('table = "stays"', 'sql = "select * from stays where ward is not null"'):
        source = f'database = "clinic.duckdb"\n{place}'
        text = TEXT.replace('path = "stays.parquet"', source).replace('"polars"', '"duckdb"')
        running.run(job(folder, f"w{len(place)}", text))
    assert charges(folder) == 4
    with pytest.raises(dpf.errors.SourceFailed, match="its message is withheld"):
        running.run(job(folder, "w3", text.replace("from stays", "from s3cret")))
    assert "s3cret" not in (folder / "audit.jsonl").read_text(encoding="utf-8")


# Killed

KILLING = """
import os, signal, sys, types
from dpframe.jobs import job_file, running, whole_files
import dpframe.release.path as path
def killed(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)
point = sys.argv[2]
if point == "before rows are read":
    path._measured = killed
elif point == "before an output":
    running._write = killed
else:
    whole_files.heads = types.SimpleNamespace(**{**vars(whole_files.heads), "put_in_place": killed})
running.run(job_file.read(sys.argv[1], ["WEEK=w1"], {}))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
@pytest.mark.parametrize(
    ("point", "more"), [("before rows are read", 1), ("before an output", 0), ("amid an output", 0)]
)
def test_a_job_that_is_killed_is_run_again(point, more, folder):
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", KILLING, str(folder / "release.toml"), point]
    killed = subprocess.run(words, capture_output=True, check=False, env=environ)
    assert killed.returncode == -9, killed.stderr
    assert not (folder / "out" / "wards.parquet").exists()
    assert charges(folder) == 1
    running.run(job(folder))
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
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_no_such_line_of_a_text_file_makes_a_run_fail(tmp_path, engine, line):
    """Nor a preview, which decodes nothing but the names; the other rows count as they are."""
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    file = tmp_path / "stays.csv"
    file.write_bytes(b"p,w\n1,A\n" + line + b"3,A\n")
    frame = scans.opened(engine, scans.Scan(str(file), "csv", {"p": "integer", "w": "string"}))
    ledger = dpf.Ledger(epsilon=1e9)
    found = dpf.of(frame).group_by("w", keys=["A"]).count(epsilon=1e6, ledger=ledger)
    assert found["count"].to_list() == [2]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_names_that_are_no_utf8_are_not_taken_for_one_person(tmp_path, engine):
    """Latin-1 has one byte for an umlaut, and readers put one sign in the place of all such bytes."""
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    file = tmp_path / "stays.csv"
    mueller, moeller = "M\xfcller,A\n".encode("latin-1"), "M\xf6ller,B\n".encode("latin-1")
    file.write_bytes(b"p,w\n" + mueller + 300 * moeller + b"Meyer,A\n")
    frame = scans.opened(engine, scans.Scan(str(file), "csv", {"p": "string", "w": "string"}))
    ledger = dpf.Ledger(epsilon=1e9, unit="p", accounting="basic")
    found = dpf.of(frame).group_by("w", keys=["A", "B"]).count(epsilon=1e6, max_rows=1, denoise=None, ledger=ledger)
    assert np.round(found["count"].to_numpy()).tolist() == [1, 0]  # of Meyer; the others have no name


def opened(engine, folder, **said):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    return scans.opened(engine, scans.Scan(str(folder / "stays*"), **said))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("first", ["w,p", "w,x,p", "w", "B,2"])
def test_text_files_with_other_columns_are_refused(tmp_path, engine, first):
    """DuckDB and Spark read later files by the places of the first one's columns: others would name the units."""
    (tmp_path / "stays-1.csv").write_text("p,w\n1,A\n", encoding="utf-8")
    (tmp_path / "stays-2.csv").write_text(f"{first}\nB,2,3\n", encoding="utf-8")
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same first line") as refused:
        opened(engine, tmp_path, format="csv", columns={"p": "string"})
    assert "B" not in str(refused.value)  # a file without a first line begins with a row


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


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_columns_are_found_whatever_others_are_called(tmp_path, engine):
    """Names that are there twice, or differ in case alone, move no other column to another place."""
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


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_names_of_folders_are_no_columns(tmp_path, engine, format):
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    check_folders_on(engine, format, tmp_path)
