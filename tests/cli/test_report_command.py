"""``dpframe report``: results from files become one page."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dpf
from dpframe.cli.main import main

pytest.importorskip("typer")

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})


@pytest.fixture
def folder(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", dataset="clinic")
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="first, and <last>").dp.write_parquet(tmp_path / "first.parquet")
    PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1)).dp.write_parquet(tmp_path / "memory.parquet")
    return tmp_path


def say(capsys, *words):
    """Run `dpframe report`; return its exit code, stdout and stderr."""
    code = main(["report", "--no-charts", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_page_is_written(folder, capsys):
    page = folder / "page.html"
    code, out, err = say(capsys, folder / "first.parquet", "--ledger", folder / "clinic.ledger", "-o", page)
    assert (code, out) == (0, "")
    assert "wrote " in err
    text = page.read_text(encoding="utf-8")
    assert "first, and &lt;last&gt;" in text
    assert "Privacy budget" in text
    assert "clinic" in text
    code, _, err = say(capsys, folder / "memory.parquet", "-o", page, "--title", "May", "-q")
    assert (code, err) == (0, "")
    assert "<h1>May</h1>" in page.read_text(encoding="utf-8")


def test_what_is_refused(folder, capsys):
    page = folder / "page.html"
    refusal = "dpframe: RESULTS must name at least one file, or --ledger a ledger. Name one.\n"
    assert say(capsys, "-o", page) == (2, "", refusal)
    assert say(capsys, folder / "nothing.parquet", "-o", page)[0] == 1
    code, _, err = say(capsys, folder / "memory.parquet", "--ledger", folder / "clinic.ledger", "-o", page)
    assert code == 1
    assert err.startswith("dpframe: ")
    assert not page.exists()


def test_a_ledger_is_compared_with_the_head_that_is_kept_elsewhere(tmp_path, capsys):
    head, page = tmp_path / "head", tmp_path / "page.html"
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "ward.ledger", head=head)
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert say(capsys, "--ledger", tmp_path / "ward.ledger", "--head", head, "-o", page)[0] == 0
    page.unlink()
    code, _, err = say(capsys, "--ledger", tmp_path / "ward.ledger", "--head", tmp_path / "other", "-o", page)
    assert (code, "is missing" in err) == (1, True)
    code, _, err = say(capsys, "--head", head, "-o", page)
    assert (code, "head must be left out where no ledger is named" in err) == (2, True)
    assert not page.exists()


def test_without_charts_the_way_out_is_told(folder, monkeypatch, capsys):
    monkeypatch.setattr("dpframe.cli.commands.can_draw", lambda: False)
    assert main(["report", str(folder / "first.parquet"), "-o", str(folder / "page.html")]) == 6
    assert "Or write --no-charts." in capsys.readouterr().err
    assert not (folder / "page.html").exists()
