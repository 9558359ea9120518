"""``dpframe run`` and ``dpframe preview``: what they print, and their exit codes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import warnings

import polars as pl
import pytest
from weekly_jobs import TEXT, job, lay_out

import dpframe as dpf

pytest.importorskip("typer")

from dpframe.cli import commands
from dpframe.cli.main import main
from dpframe.jobs import running
from dpframe.jobs.output_formats import FORMATS
from dpframe.ledger import witness
from dpframe.release import results


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path)


def say(capsys, command, folder, *words):
    code = main([*command.split(), str(folder / "release.toml"), *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def change(folder, old, new, times=-1, more=""):
    (folder / "release.toml").write_text(TEXT.replace(old, new, times) + more, encoding="utf-8")


def test_preview_and_run(folder, capsys):
    code, out, err = say(capsys, "preview", folder, "--set", "WEEK=w1")
    assert (code, err) == (0, "")
    assert "wards    count(), mean(nights) in [0, 30] by ward: 3 declared keys  epsilon 0.3" in out
    assert "no ledger is at " in out
    assert f"make it, once: dpframe ledger create {folder / 'release.toml'} --set WEEK=w1\n" in out
    assert "all of them fit; after the run epsilon 0.5 would be left" in out
    code, out, err = say(capsys, "run", folder, "--set", "WEEK=w1")
    assert (code, out) == (1, "")
    assert f"dpframe ledger create {folder / 'release.toml'} --set WEEK=w1\n" in err
    code, out, err = say(capsys, "ledger create", folder, "--set", "WEEK=w1")
    assert (code, out) == (0, "")
    assert "clinic.ledger', with epsilon 1 to spend\n" in err
    assert say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")[0] == 1
    out = say(capsys, "preview", folder, "--set", "WEEK=w1")[1]
    assert "no ledger" not in out
    assert "[[output]]" not in out
    code, out, err = say(capsys, "run", folder, "--set", "WEEK=w1")
    assert (code, out) == (0, "")
    assert "nights of w1: charged epsilon 0.2 (entry 3)\nnights: " in err
    assert "of units (patient) have more than 2 rows" in err
    assert err.endswith("wrote nights-w1.csv\nleft in the ledger: epsilon 0.5\n")
    assert "at no cost: wards, nights" in say(capsys, "preview", folder, "--set", "WEEK=w1", "--details")[1]
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet") == (0, "", "")


def test_a_preview_names_the_releases_that_no_file_would_hold(folder, capsys):
    change(folder, '[[output]]\nrelease = "nights"\npath = "out/nights-${WEEK}.csv"\n', "")
    words = "no [[output]] writes nights: a run would charge it, and store it in the ledger alone\n"
    assert words in say(capsys, "preview", folder, "--set", "WEEK=w1")[1]
    for command in ("ledger create", "run"):
        assert say(capsys, command, folder, "--set", "WEEK=w1")[0] == 0
    out = say(capsys, "preview", folder, "--set", "WEEK=w1")[1]
    assert "at no cost: wards, nights\nno [[output]] writes nights: it stays in the ledger alone\n" in out
    assert "would charge it" not in out
    report = '[report]\npath = "out/report.html"\n'
    change(folder, '[[output]]\nrelease = "nights"\npath = "out/nights-${WEEK}.csv"\n', report)
    assert "[[output]]" not in say(capsys, "preview", folder, "--set", "WEEK=w1")[1]


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        (
            "epsilon = 1.0",
            "epsilon = 0.4",
            3,
            "nights: the budget is exceeded: the call needs epsilon 0.2, and epsilon 0.1 of epsilon 0.4",
        ),
        ("epsilon = 0.2", "epsillon = 0.2", 2, "release.toml, [[release]] 2 'nights': 'epsillon' is not a key"),
        ('"nights"\nbins', '"knights"\nbins', 2, "column 'knights' is not in the frame. Did you mean 'nights'?"),
        ("stays.parquet", "none.parquet", 4, "no file is at"),
        ('"clinic.ledger"', '"stays.parquet"', 1, "stays.parquet"),
        ("out/", "stays.parquet/", 2, "path must be in a folder, and what is above 'wards.parquet' is a file"),
    ],
    ids=["over budget", "a typo", "a column", "no table", "no ledger", "no folder"],
)
def test_exit_codes(old, new, code, words, folder, capsys):
    change(folder, old, new)
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    got, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert got == code, err
    assert err.startswith("dpframe: ")
    assert words in err
    assert say(capsys, "preview", folder, "--set", "WEEK=w1")[0] == code


def test_an_output_that_cannot_be_written_has_a_code_of_its_own(folder, capsys, monkeypatch):
    def full(new, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    monkeypatch.setattr("dpframe.files.put_in_place", full)
    got, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert (got, "wards.parquet cannot be written" in err) == (5, True), err


def test_a_release_that_failed_after_its_charge_has_a_code_of_its_own(folder, capsys, monkeypatch):
    """A scheduler must not retry such a run, because the retry would be charged again."""
    change(folder, "epsilon = 1.0", "epsilon = 2.0")
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    with monkeypatch.context() as engine:
        engine.setattr("dpframe.release.path.measure", lambda *_: results.looked(lambda: None))
        code, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert (code, "the charge stands" in err) == (7, True)

    def broken(*_):
        raise pl.exceptions.ComputeError("a value of 31")

    with monkeypatch.context() as engine:
        engine.setattr("dpframe.release.results.built", broken)
        code, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert (code, "the charge stands" in err, "31" in err) == (7, True, False)
    with monkeypatch.context() as engine:
        engine.setattr("dpframe.release.path.prepared", broken)
        code, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert (code, "cannot read the table any more" in err, "31" in err) == (4, True, False)
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0


def test_ctrl_c_amid_the_rows_says_what_was_charged(folder, capsys, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    with monkeypatch.context() as engine:
        engine.setattr("dpframe.release.path.measure", stopped)
        code, _, err = say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")
    assert (code, "stopped. Run it again" in err, "charged without a result" in err) == (130, True, True)
    line = json.loads((folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert (line["error"]["words"], line["last"]["entry"]) == ("stopped", 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no such devices")
def test_an_audit_trail_that_is_a_device(folder, capsys):
    change(folder, '"audit.jsonl"', '"/dev/full"')
    code, _, err = say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    assert (code, "The ledger was made all the same" in err) == (5, True)
    change(folder, '"/dev/full"', '"/dev/null"')
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no such devices")
@pytest.mark.parametrize("where", ["a full device", "a pipe without a reader"])
def test_words_that_nobody_can_hear_stop_no_run(folder, capsys, where):
    """Such a run once ended after its charge with the exit code of a refused ledger, and wrote no outputs."""
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dpframe", "run", str(folder / "release.toml"), "--set", "WEEK=w1"]
    with open("/dev/full" if where == "a full device" else writer, "wb") as deaf:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=deaf, timeout=120, check=False)
    line = json.loads((folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert (len(line["outputs"]), line.get("error")) == (2, None)
    assert (folder / "out" / "wards.parquet").exists()
    assert done.returncode in (0, 120)  # 120 comes from Python, which cannot flush stderr at its end


def test_a_ledger_that_is_gone_is_told_by_its_head(folder, capsys):
    """The message must not advise to create a new ledger, which would grant the same people's data a second budget."""
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0
    (folder / "clinic.ledger").unlink()
    for command in ("run", "preview"):
        code, _, err = say(capsys, command, folder, "--set", "WEEK=w1")
        assert (code, "is gone, but its head next to it says that entry 4 was" in err) == (1, True), err


def test_a_preview_that_does_not_fit_shows_the_prices_all_the_same(folder, capsys):
    change(folder, "epsilon = 1.0", "epsilon = 0.4")
    code, out, err = say(capsys, "preview", folder, "--set", "WEEK=w1")
    assert (code, "nights   count() by nights" in out, "nights: the budget is exceeded" in err) == (3, True, True)


def test_no_secret_is_printed_or_kept(folder, capsys, monkeypatch):
    monkeypatch.setenv("PW", "hunter2")
    change(folder, 'path = "clinic.ledger"', 'url = "postgresql+psycopg://me:${PW}@127.0.0.1:1/x?connect_timeout=2"')
    for command in ("preview", "ledger create", "run"):
        code, out, err = say(capsys, command, folder, "--set", "WEEK=w1")
        assert code in (1, 6, 75)
        assert "hunter2" not in out + err
    assert "hunter2" not in json.dumps((folder / "audit.jsonl").read_text(encoding="utf-8"))
    change(folder, 'path = "stays.parquet"', 'path = "${PW}.parquet"')
    say(capsys, "ledger create", folder, "--set", "WEEK=w1")
    assert "${PW}.parquet" in say(capsys, "run", folder, "--set", "WEEK=w1")[2]
    assert "hunter2" not in (folder / "audit.jsonl").read_text(encoding="utf-8")


def test_no_value_of_the_environment_is_printed(folder, capsys, monkeypatch):
    monkeypatch.setenv("OUT", f"{folder}//s3cret")
    monkeypatch.setenv("NIGHTS", "s3cret nights")
    text = TEXT.replace('path = "out/', 'path = "${OUT}/').replace('label = "nights"', 'label = "${NIGHTS}"')
    text = text.replace('release = "nights"', 'release = "${NIGHTS}"').replace('"clinic.ledger"', '"${OUT}/c.ledger"')
    (folder / "release.toml").write_text(text, encoding="utf-8")
    (folder / "s3cret").mkdir()
    commands = ("preview", "run", "ledger create", "ledger create", "preview --details", "run", "run", "preview")
    for command in commands:
        code, out, err = say(capsys, command, folder, "--set", "WEEK=w1")
        assert "s3cret" not in out + err
        assert code in (0, 1)
    assert "at no cost: wards, ${NIGHTS}" in out
    assert "s3cret" not in (folder / "audit.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["run", "preview", "ledger create"])
def test_they_explain_themselves(command, capsys):
    assert main([*command.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "NAME=VALUE" in said
    assert "${NAME}" in said


WEAK = (
    "weak privacy: epsilon 40 is above 10, so the result may reveal almost all about one patient. "
    "Use 0.1 to 1 for a call."
)


def weak(folder):
    change(folder, "epsilon = 0.3", "epsilon = 40.0")
    text = (folder / "release.toml").read_text(encoding="utf-8")
    (folder / "release.toml").write_text(text.replace("epsilon = 1.0", "epsilon = 99.0"), encoding="utf-8")


def test_what_dpframe_warns_of_is_noted_as_other_words_are(folder, capsys):
    weak(folder)
    assert say(capsys, "ledger create", folder, "--set", "WEEK=w1")[0] == 0
    code, out, err = say(capsys, "preview", folder, "--set", "WEEK=w1")
    assert (code, err) == (0, "")
    assert "epsilon 40" in out
    code, out, err = say(capsys, "run", folder, "--set", "WEEK=w1")
    assert (code, out) == (0, "")
    assert err.startswith(f"{WEAK}\nwards of w1: charged epsilon 40 (entry 1)\n")
    assert say(capsys, "run", folder, "--set", "WEEK=w2", "--quiet") == (0, "", "")


@pytest.mark.slow
def test_a_filter_of_the_process_makes_no_error_of_what_is_noted(folder):
    weak(folder)
    command = [sys.executable, "-W", "error", "-m", "dpframe"]
    for words in (["ledger", "create"], ["run"]):
        whole = [*command, *words, str(folder / "release.toml"), "--set", "WEEK=w1", "--quiet"]
        done = subprocess.run(whole, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_warning_that_a_filter_makes_an_error_of_is_no_table_that_cannot_be_read(folder):
    """A scheduler retries a run whose table cannot be read, and this one would fail again."""
    weak(folder)
    running.create(job(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpf.WeakPrivacyWarning, match="weak privacy"):
            running.run(job(folder))
    assert dpf.Ledger.open(folder / "clinic.ledger").to_frame().height == 0


def test_warnings_of_others_are_shown_as_they_are():
    noted = []

    def warn():
        with commands._noted_warnings(noted.append):
            warnings.warn("of dpframe", dpf.WeakPrivacyWarning, stacklevel=1)
            warnings.warn("of somebody else", FutureWarning, stacklevel=1)

    with pytest.warns(FutureWarning, match="of somebody else"):
        warn()
    assert noted == ["of dpframe"]


def test_a_preview_refuses_a_ledger_whose_head_the_job_does_not_name(folder, capsys):
    (folder / "kept").mkdir()
    change(folder, 'path = "clinic.ledger"', 'path = "clinic.ledger"\nhead = "kept/head"')
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0
    change(folder, "", "", 0)
    for week in ("w1", "w2"):  # the answers of w1 are stored, so w1 needs no charge
        for command in ("preview", "run"):
            code, _, err = say(capsys, command, folder, "--set", f"WEEK={week}")
            assert (code, "head must be given" in err) == (1, True), err
            assert err.endswith('Write head = "..." in [ledger].\n')
    assert dpf.Ledger.open(folder / "clinic.ledger").to_frame().height == 2


def test_a_preview_states_what_stored_releases_have_cost(folder, capsys):
    """With a higher limit, a share of it is more: the plan of a new release has another cost and other errors."""
    share = TEXT.replace("epsilon = 0.3", 'share = "1/4"')
    (folder / "release.toml").write_text(share, encoding="utf-8")
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0
    dpf.Ledger.open(folder / "clinic.ledger").raise_limit(epsilon=2, reason="the board agreed")
    (folder / "release.toml").write_text(share.replace("epsilon = 1.0", "epsilon = 2.0"), encoding="utf-8")
    code, out, _ = say(capsys, "preview", folder, "--set", "WEEK=w1", "--details")
    assert (code, out.count("as released"), "+-" in out) == (0, 2, False)
    assert "3 declared keys  epsilon 0.25  as released" in out
    assert "4 bins                                  epsilon 0.2   as released" in out
    out = say(capsys, "preview", folder, "--set", "WEEK=w2")[1]
    assert "epsilon 0.5" in out
    assert "as released" not in out
    (folder / "release.toml").write_text(share.replace("epsilon = 1.0", "epsilon = 2.0") + MORE, encoding="utf-8")
    code, out, _ = say(capsys, "preview", folder, "--set", "WEEK=w1")  # also if the others do not fit
    assert (code, "epsilon 0.25  as released" in out) == (3, True)


MORE = """
[[release]]
label = "more"
verb = "count"
max_rows = 2
epsilon = 1.9
"""


def test_a_preview_holds_the_ledger_against_the_audit_trail(folder, capsys):
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    kept = {end: (folder / f"clinic.ledger{end}").read_bytes() for end in ("", ".head")}
    assert say(capsys, "run", folder, "--set", "WEEK=w1", "--quiet")[0] == 0
    for end, content in kept.items():
        (folder / f"clinic.ledger{end}").write_bytes(content)
    witness._newest.clear()
    trail = (folder / "audit.jsonl").read_bytes()
    code, _, err = say(capsys, "preview", folder, "--set", "WEEK=w2")
    assert (code, "does not hold entry 4 of the audit trail" in err) == (1, True), err
    assert (folder / "audit.jsonl").read_bytes() == trail
    assert say(capsys, "run", folder, "--set", "WEEK=w2")[0] == 1


CHOICES = {  # three that release no number for each cell, and one that does
    "top_k": 'verb = "top_k"\ncolumn = "ward"\nk = 1\ncategories = ["A", "B"]',
    "mode": 'verb = "mode"\ncolumn = "ward"\ncategories = ["A", "B"]',
    "suggest_bounds": 'verb = "suggest_bounds"\ncolumns = ["nights"]',
    "top_k with counts": 'verb = "top_k"\ncolumn = "ward"\nk = 1\ncategories = ["A", "B"]\ncounts = true',
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_format_that_cannot_show_a_choice_is_refused_before_the_charge(folder, capsys, monkeypatch, choice):
    monkeypatch.setattr("dpframe.jobs.output_formats._is_installed", lambda name: True)
    asked = f'[[release]]\nlabel = "top"\n{CHOICES[choice]}\nmax_rows = 1\nepsilon = 0.1\n\n[[output]]\n'
    of_numbers = {name for name, one in FORMATS.items() if one.needs_numbers}
    assert of_numbers == {"markdown", "excel", "png", "svg"}
    for kind in sorted(of_numbers) if "counts" not in choice else ["markdown"]:
        more = f'\n[[output]]\nrelease = "top"\npath = "out/top{FORMATS[kind].ending}"\n'
        change(folder, "[[output]]\n", asked, 1, more)
        say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
        codes = [say(capsys, command, folder, "--set", "WEEK=w1")[0::2] for command in ("preview", "run")]
        if "counts" in choice:
            assert [code for code, _ in codes] == [0, 0]
        else:
            words = f"format must be parquet, csv, json or html for 'top', a {choice} that releases no number for each"
            assert all(code == 2 and f"[[output]] 3: {words} cell, not {kind}." in err for code, err in codes), codes
            assert dpf.Ledger.open(folder / "clinic.ledger").to_frame().height == 0


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_is_written_by_every_other_format(folder, capsys, choice):
    asked = f'[[release]]\nlabel = "top"\n{CHOICES[choice]}\nmax_rows = 1\nepsilon = 0.1\n\n[[output]]\n'
    ends = [one.ending for one in FORMATS.values() if not one.needs_numbers]
    more = "".join(f'\n[[output]]\nrelease = "top"\npath = "out/top{end}"\n' for end in ends)
    change(folder, "[[output]]\n", asked, 1, more)
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    assert [say(capsys, command, folder, "--set", "WEEK=w1")[0] for command in ("preview", "run")] == [0, 0]
    assert all((folder / "out" / f"top{end}").exists() for end in ends)


def test_a_run_says_that_no_suggested_bounds_can_be_recommended(folder, capsys):
    """In Python the call warns. A run ignores warnings of bounds, since it prints their lines itself."""
    asked = f'[[release]]\nlabel = "b"\n{CHOICES["suggest_bounds"]}\nmax_rows = 1\nepsilon = 0.001\n\n[[output]]\n'
    change(folder, "[[output]]\n", asked, 1, '\n[[output]]\nrelease = "b"\npath = "out/b.csv"\n')
    say(capsys, "ledger create", folder, "--set", "WEEK=w1", "--quiet")
    code, _, err = say(capsys, "run", folder, "--set", "WEEK=w1")
    assert code == 0
    assert "b: the counts of nights are too noisy to tell" in err
    assert "Take none of them" in err


@pytest.mark.parametrize("value", [".", "./", "/"])
def test_a_variable_that_is_a_folder_garbles_no_message(folder, capsys, monkeypatch, value):
    monkeypatch.setenv("PLACE", value)
    change(folder, 'path = "stays.parquet"', 'path = "${PLACE}/none.parquet"')
    code, _, err = say(capsys, "preview", folder, "--set", "WEEK=w1")
    assert (code, "${PLACE}/none.parquet" in err, err.count("${PLACE}")) == (4, True, 1), err
