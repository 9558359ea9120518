"""The command line and its commands on ledgers: what they say, what they write, and their exit codes."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.cli.main import main
from dpframe.ledger import witness

pytest.importorskip("typer")

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = pl.DataFrame({"age": [31, 45, 62]})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path, dataset="clinic")
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="first, and <last>").dp.write_parquet(tmp_path / "first.parquet")
    PEOPLE.dp.count(epsilon=0.5, ledger=ledger)
    return path


def say(capsys, *words):
    """Run a command of `dpframe ledger`; return its exit code, stdout and stderr."""
    code = main(["ledger", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_show(path, capsys):
    code, out, _ = say(capsys, "show", path)
    assert code == 0
    for part in ("spent epsilon 0.75 of epsilon 1", "data set 'clinic'", "first, and <last>", "[####"):
        assert part in out


def test_verify(path, capsys):
    code, out, _ = say(capsys, "verify", path, path.parent / "first.parquet")
    assert code == 0
    assert "intact: 2 entries, spent epsilon 0.75 of epsilon 1, and it knows 1 of 1 releases" in out
    assert dpf.Ledger.open(path).verify()["head"] in out
    one = dpf.Ledger(epsilon=1, path=path.parent / "one.ledger")
    PEOPLE.dp.count(epsilon=0.25, ledger=one)
    assert "intact: 1 entry, spent" in say(capsys, "verify", path.parent / "one.ledger")[1]


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_release_that_the_ledger_never_charged_is_exit_code_1(path, quiet, capsys):
    other = path.parent / "other.parquet"
    PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1, path=path.parent / "b.ledger")).dp.write_parquet(other)
    code, out, err = say(capsys, "verify", path, path.parent / "first.parquet", other, *quiet)
    assert (code, out) == (1, "")
    assert "does not know the release that is its entry 1" in err


def test_a_broken_chain_is_exit_code_1(path, capsys):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update dpframe_entries set body = replace(body, '1/4', '1/5') where entry = 1")
    for command in ("verify", "show", "export"):
        code, out, err = say(capsys, command, path)
        assert (code, out) == (1, "")
        assert "was changed by something other than dpframe: entry " in err


def test_an_older_copy_is_exit_code_1(path, capsys):
    shutil.copy(path, path.with_name("copy"))
    PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger.open(path))
    shutil.copy(path.with_name("copy"), path)
    code, _, err = say(capsys, "verify", path)
    assert code == 1
    assert "older copy" in err


LOOKS = {"verify": [], "show": [], "check": ["--min-remaining", "0.5"], "export": []}


@pytest.mark.long
def test_a_head_that_is_kept_elsewhere_shows_an_older_copy(tmp_path, capsys):
    path, head = tmp_path / "ward.ledger", tmp_path / "elsewhere"
    ledger = dpf.Ledger(epsilon=1, path=path, head=head)
    copies = [(kept, kept.read_bytes()) for kept in (path, tmp_path / "ward.ledger.head")]
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    for command, more in LOOKS.items():
        code, out, _ = say(capsys, command, path, "--head", head, *more)
        assert (code, "Add --head" in out) == (0, False)
    assert "not compared with the head kept elsewhere" in say(capsys, "verify", path)[1]
    for kept, content in copies:  # restore the older ledger and the head next to it
        kept.write_bytes(content)
    assert run("ledger", "verify", path).returncode == 0  # a new process remembers nothing, so it accepts the copy
    witness._newest.clear()  # from here on, this process acts as a new one
    for command, more in LOOKS.items():
        code, out, err = say(capsys, command, path, "--head", head, *more)
        assert (code, out) == (1, "")
        assert "is an older copy: it holds 0 entries, and entry 1 was written" in err


def test_a_ledger_that_is_not_there_is_made_by_a_command(tmp_path, capsys):
    (tmp_path / "empty.ledger").touch()
    for name in ("none.ledger", "empty.ledger"):
        code, _, err = say(capsys, "show", tmp_path / name)
        assert (code, err.endswith(": dpframe ledger create JOB.\n")) == (1, True), err


def test_a_head_that_is_kept_elsewhere_shows_that_a_ledger_is_gone(tmp_path, capsys):
    path, head = tmp_path / "ward.ledger", tmp_path / "elsewhere"
    PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1, path=path, head=head))
    for kept in tmp_path.glob("ward.ledger*"):
        kept.unlink()
    for command, more in LOOKS.items():
        code, out, err = say(capsys, command, path, "--head", head, *more)
        assert (code, out) == (1, "")
        assert "is gone, but its head at" in err
    assert not path.exists()


@pytest.mark.parametrize("command", LOOKS)
def test_a_look_gives_no_ledger_a_head(command, path, tmp_path, capsys):
    code, _, err = say(capsys, command, path, "--head", tmp_path / "elsewhere", *LOOKS[command])
    assert (code, err) == (2, "dpframe: head must be left out: this ledger keeps its head nowhere else. Drop --head.\n")
    assert not (tmp_path / "elsewhere").exists()


def test_a_release_that_the_ledger_does_not_know_is_exit_code_1(path, tmp_path, capsys):
    other = dpf.Ledger(epsilon=1, path=tmp_path / "other.ledger")
    PEOPLE.dp.count(epsilon=0.5, ledger=other).dp.write_parquet(tmp_path / "other.parquet")
    code, _, err = say(capsys, "verify", path, tmp_path / "other.parquet")
    assert code == 1
    assert "does not know the release" in err


def test_what_is_not_there_is_exit_code_1(tmp_path, capsys):
    for command in ("show", "verify", "export"):
        code, out, err = say(capsys, command, tmp_path / "none.ledger")
        assert (code, out) == (1, "")
        assert "no such file" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_export_writes_what_to_frame_has(path, ending, capsys):
    output = path.with_name(f"charges.{ending}")
    assert say(capsys, "export", path, "-o", output) == (0, "", "")
    frame = dpf.Ledger.open(path).to_frame()
    read = {"csv": pl.read_csv, "json": pl.read_json, "parquet": pl.read_parquet}[ending]
    assert (
        read(output).select("entry", "label", "epsilon", "amount").rows()
        == frame.select("entry", "label", "epsilon", "amount").rows()
    )


def test_export_prints_without_a_file(path, capsys):
    code, out, _ = say(capsys, "export", path)
    assert code == 0
    assert out.splitlines()[0] == "entry,time,kind,label,snapshot,query,unit,epsilon,delta,amount"
    assert len(out.splitlines()) == 3
    assert json.loads(say(capsys, "export", path, "--format", "json")[1])[1]["epsilon"] == 0.5


@pytest.mark.parametrize("words", [["-o", "charges.xlsx"], ["-o", "charges"], ["--format", "parquet"]], ids=str)
def test_what_cannot_be_written_is_exit_code_2(path, words, capsys):
    code, _, err = say(capsys, "export", path, *words)
    assert code == 2
    assert "output must" in err


@pytest.mark.parametrize("end", ["", ".head", ".lock", "-journal", "/../link"])
def test_no_output_is_written_over_the_ledger(path, end, capsys):
    path.with_name("link").symlink_to(path)
    output = path.with_name("link") if "link" in end else f"{path}{end}"
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    commands = (["ledger", "export", path, "--format", "csv"], ["report", "--ledger", path, "--no-charts"])
    for command in commands:
        assert main([*map(str, command), "-o", str(output)]) == 2
        assert "output must be another file than a ledger" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_219_no_output_is_written_over_any_ledger_or_what_is_read(path, tmp_path, capsys):
    other = dpf.Ledger(epsilon=1, path=tmp_path / "other.ledger", head=tmp_path / "kept")
    PEOPLE.dp.count(epsilon=0.5, ledger=other).dp.write_parquet(tmp_path / "ages.parquet")
    try:
        (tmp_path / "hard.html").hardlink_to(path)
        (tmp_path / "read.html").hardlink_to(tmp_path / "ages.parquet")
    except OSError:
        pytest.skip("no links here")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    export = ["ledger", "export", path, "--format", "csv"]
    report = ["report", tmp_path / "ages.parquet", "--no-charts"]
    for command, name in [
        *((command, name) for command in (export, report) for name in ("other.ledger", "kept", "hard.html")),
        *((report, name) for name in (f"{path.name}.head", "ages.parquet", "read.html")),
    ]:
        assert main([*map(str, command), "-o", str(tmp_path / name)]) == 2
        assert "output must be another file than" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no limit on the size of a file")
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "html"])
def test_a_file_that_cannot_be_written_is_exit_code_5_and_the_one_before_stays_whole(kind, path, capsys):
    import resource

    output = path.with_name(f"out.{kind}")
    report = ["report", "--ledger", path, "--no-charts"]
    words = [*map(str, report if kind == "html" else ["ledger", "export", path]), "-o", str(output)]
    assert main(words) == 0
    before, limit = output.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limit[1]))  # bytes; a longer write raises an OSError
    try:
        code = main(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert code == 5
    assert f"out.{kind} cannot be written (File too large)" in capsys.readouterr().err
    assert output.read_bytes() == before
    assert not list(path.parent.glob(".*.part"))


@pytest.mark.parametrize("words", [[], ["ledger"], ["ledger", "charge", "x"], ["ledger", "show"]], ids=str)
def test_what_is_not_understood_is_exit_code_2(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: dpframe" in capsys.readouterr().err


def run(*words, **variables):
    """Run dpframe in a process of its own, and return the finished process."""
    environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environ |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **variables}
    command = [sys.executable, "-W", "error", "-m", "dpframe", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


@pytest.mark.slow
def test_it_is_a_command(path):
    done = run("ledger", "verify", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("intact: 2 entries")


def test_show_as_json_is_one_line_for_programs(path, capsys):
    code, out, _ = say(capsys, "show", path, "--json")
    facts = json.loads(out)
    assert (code, out.count("\n")) == (0, 1)
    assert facts["remaining"] == {"epsilon": 0.25, "delta": 0.0}
    assert (facts["dataset"], facts["entries"], facts["accounting"]) == ("clinic", 2, "basic")
    assert facts["unit"]["neighbors"] == "add-remove"
    assert facts["head"] == dpf.Ledger.open(path).verify()["head"]


@pytest.mark.parametrize(("least", "code"), [("0.25", 0), ("0.1", 0), ("0.26", 3), ("1e300", 3)])
def test_check_tells_by_its_exit_code_whether_enough_is_left(path, least, code, capsys):
    said = say(capsys, "check", path, "--min-remaining", least)
    assert (said[0], said[2]) == (code, "")
    assert said[1].startswith("too little" if code else "enough")
    assert say(capsys, "check", path, "--min-remaining", least, "--quiet") == (code, "", "")


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_check_knows_what_a_ledger_would_grant_where_epsilons_do_not_add_up(tmp_path, accounting, capsys):
    path = tmp_path / "curves.ledger"
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, path=path, accounting=accounting)
    PEOPLE.dp.count(epsilon=0.6, ledger=ledger)
    least = ledger.remaining.epsilon
    assert abs(least - 0.4) > 0.1
    for asked, code in ((least * 0.999, 0), (least * 1.001, 3)):
        assert say(capsys, "check", path, "--min-remaining", asked)[0] == code


def test_check_tells_what_is_left_from_what_is_asked_for(tmp_path, capsys):
    path = tmp_path / "thirds.ledger"
    PEOPLE.dp.count(epsilon=1.04345678, ledger=dpf.Ledger(epsilon=5, path=path))
    code, out, _ = say(capsys, "check", path, "--min-remaining", "3.956544")  # the same six digits
    assert (code, out) == (3, "too little: epsilon 3.95654322 is left, and epsilon 3.956544 is asked for\n")


@pytest.mark.parametrize("least", ["0", "-1", "nan", "inf"])
def test_check_of_what_is_no_price_is_exit_code_2(path, least, capsys):
    code, out, err = say(capsys, "check", path, f"--min-remaining={least}")
    assert (code, out) == (2, "")
    assert err.startswith("dpframe: --min-remaining must be a finite number above 0, not ")


def test_the_ledger_may_stand_in_the_environment(path, capsys, monkeypatch):
    monkeypatch.setenv("DPFRAME_LEDGER", str(path))
    assert say(capsys, "verify", "--quiet") == (0, "", "")
    assert "it knows 1 of 1 releases" in say(capsys, "verify", path.parent / "first.parquet")[1]


def test_the_screen_obeys_nothing_in_a_ledger(tmp_path, capsys):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "odd.ledger", dataset="[red]no markup[/red] :smile:")
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="[bold]label[/bold]")
    _, out, _ = say(capsys, "show", tmp_path / "odd.ledger")
    assert "[red]no markup[/red] :smile:" in out
    assert "[bold]label[/bold]" in out


@pytest.mark.slow
def test_colors_honor_no_color(path):
    colored, plain = (run("ledger", "show", path, FORCE_COLOR="1", **more).stdout for more in ({}, {"NO_COLOR": "1"}))
    assert "\x1b[33m" in colored
    assert "\x1b[3" not in plain
    assert "\x1b" not in run("ledger", "show", path).stdout


HELPS = [[], ["ledger"], *(["ledger", name] for name in ("show", "check", "verify", "export"))]


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_every_command_explains_itself(words, capsys):
    assert main([*words, "--help"]) == 0
    said = capsys.readouterr()
    assert f"Usage: {' '.join(['dpframe', *words])}" in said.out
    assert said.err == ""
    assert "[/" not in said.out


def test_a_word_that_is_almost_right(path, capsys):
    with pytest.raises(SystemExit):
        main(["ledger", "exprot", str(path)])
    assert "Did you mean 'export'?" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_line_says_what_to_install(missing, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["ledger", "show", "x"]) == 6
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert 'pip install "dpframe[cli]"' in said.err


@pytest.mark.slow
def test_a_shell_completes_words():
    said = run(_DPFRAME_COMPLETE="complete_bash", COMP_WORDS="dpframe led", COMP_CWORD="1")
    assert (said.returncode, said.stdout.split()) == (0, ["ledger"])


# The chart


def test_the_budget_over_time(path):
    pytest.importorskip("altair")
    ledger = dpf.Ledger.open(path)
    ledger.raise_limit(epsilon=2, reason="the board agreed")
    chart = seen(ledger.plot())
    rows = chart["layer"][0]["data"]["values"] if "data" in chart["layer"][0] else chart["data"]["values"]
    assert [row["spent"] for row in rows] == [0.0, 0.25, 0.75, 0.75]
    assert [row["limit"] for row in rows] == [1.0, 1.0, 1.0, 2.0]
    assert chart["title"]["text"] == "Privacy budget of clinic"
    assert "spent epsilon 0.75 of epsilon 2" in chart["title"]["subtitle"]


@pytest.mark.parametrize("words", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=str)
def test_a_ledger_without_charges_is_drawn_too(words):
    pytest.importorskip("altair")
    assert seen(dpf.Ledger(**words).plot())["title"]["text"] == "Privacy budget"


def test_the_default_ledger_and_long_ones_are_drawn():
    pytest.importorskip("altair")
    assert seen(dpf.default_ledger().plot())
    ledger = dpf.Ledger(epsilon=1000)
    for _ in range(600):
        ledger.charge((1, 0), cost=dpf.PrivacyLoss(1.0), query="", unit=ledger.unit)
    chart = seen(ledger.plot())
    rows = chart["layer"][0]["data"]["values"] if "data" in chart["layer"][0] else chart["data"]["values"]
    assert (len(rows), rows[0]["spent"], rows[-1]["spent"]) == (500, 0.0, 600.0)


def test_a_label_that_the_terminal_cannot_show_is_shown_by_its_codes(tmp_path):
    path = tmp_path / "clinic.ledger"
    PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1, path=path), label="\u60a3\u8005")
    for words in (["show"], ["export"], ["export", "--format", "json"]):
        done = subprocess.run(
            [sys.executable, "-m", "dpframe", "ledger", *words, str(path)],
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": "cp1252"},
            check=True,
        )
        assert b"\\u60a3\\u8005" in done.stdout
