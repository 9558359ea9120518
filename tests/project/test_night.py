"""The night of drills: every program is registered, an interrupted night continues, and the page shows its rows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from assurance import night, share_of, verdict
from assurance.night import Row
from assurance.programs import DRILLS, SIZES, Drill, program, summed

HELPERS = {"night"}  # runs the others
GOOD = "from assurance import verdict\nraise SystemExit(verdict(0, rounds=3, largest_bound=0.123456))\n"
BAD = "from assurance import verdict\nprint('an old copy | was taken')\nraise SystemExit(verdict(2, rounds=3))\n"
SILENT = "print('no verdict')\n"
BROKEN = "from assurance import verdict\nverdict(0, rounds=1)\nraise ValueError('after its verdict')\n"
LONG = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def named(name, *, parts=1, found="{rounds} rounds", hours=1.0):
    commands = tuple(f"{name} --share {place}/{parts}" for place in range(parts))
    return Drill(name, f"what {name} finds", found, commands, commands[:1], hours)


DRILL = named("good")


def git(folder, *words):
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project of its own, whose programs end at once."""
    (tmp_path / "assurance").mkdir()
    shutil.copy(night.ROOT / "assurance" / "__init__.py", tmp_path / "assurance")
    for name, text in {"good": GOOD, "bad": BAD, "silent": SILENT, "broken": BROKEN, "long": LONG}.items():
        (tmp_path / "assurance" / f"{name}.py").write_text(text)
    monkeypatch.setattr(night, "ROOT", tmp_path)
    monkeypatch.setattr(night, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(night, "code", lambda drill: "abc")
    return tmp_path


@pytest.fixture
def ran(root, monkeypatch):
    """A function that runs a night of some drills, and returns the exit code and all recorded rows."""

    def run(drills, *words):
        monkeypatch.setattr(night, "DRILLS", tuple(drills))
        monkeypatch.setattr(sys, "argv", ["night", "--results", str(root / "results.jsonl"), *words])
        return night.main(), night.rows(root / "results.jsonl")

    return run


def test_every_program_of_assurance_is_in_the_registry():
    files = (night.ROOT / "assurance").glob("*.py")
    programs = {file.stem for file in files if '__name__ == "__main__"' in file.read_text(encoding="utf-8")} - HELPERS
    for size in SIZES:
        assert {program(command) for drill in DRILLS for command in drill.commands(size)} == programs
    assert len({drill.name for drill in DRILLS}) == len(DRILLS)


def test_every_program_ends_with_a_verdict_and_knows_its_options():
    for drill in DRILLS:
        for command in (*drill.full, *drill.small):
            text = (night.ROOT / "assurance" / f"{program(command)}.py").read_text(encoding="utf-8")
            assert "return verdict(" in text, command
            for option in re.findall(r"--([\w-]+)", command):
                assert f'"--{option}"' in text or f'("{option}", ' in text, command
        for name in re.findall(r"{(\w+)", drill.found):
            assert all(
                f"{name}=" in (night.ROOT / "assurance" / f"{program(command)}.py").read_text(encoding="utf-8")
                for command in drill.full
            ), (drill.name, name)


def test_the_parts_of_a_drill_are_all_of_it():
    assert sorted(one for place in range(7) for one in share_of(range(100), f"{place}/7")) == list(range(100))
    for drill in DRILLS:
        shares = [tuple(map(int, found)) for found in re.findall(r"--share (\d+)/(\d+)", " ".join(drill.full))]
        assert shares == [(place, len(drill.full)) for place in range(len(drill.full))] or not shares, drill.name
    with pytest.raises(SystemExit, match="from 0 to N - 1"):
        share_of([1], "1/1")


def test_figures_of_parts_are_those_of_one_run(capsys):
    parts = [
        {"audits": 2, "largest_bound": 0.5, "least_rate": 0.95},
        {"audits": 3, "largest_bound": 0.25, "least_rate": 0.9},
    ]
    assert summed(parts) == {"audits": 5, "largest_bound": 0.5, "least_rate": 0.9}
    assert verdict(0, audits=2) == 0
    assert verdict(3) == 1
    assert capsys.readouterr().out == '{"objections": 0, "audits": 2}\n{"objections": 3}\n'


def test_a_drill_that_fails_stops_no_other(ran, capsys):
    code, rows = ran(map(named, ("bad", "silent", "broken", "good")))
    assert code == 1
    assert [(row.drill, row.outcome) for row in rows] == [
        ("bad", "objected"),
        ("silent", "objected"),
        ("broken", "objected"),
        ("good", "passed"),
    ]
    assert [row.said for row in rows] == [
        '{"objections": 2, "rounds": 3}',
        "no verdict",
        "ValueError: after its verdict",
        "",
    ]
    assert rows[-1].figures == {"rounds": 3, "largest_bound": 0.1235}
    assert "[4 of 4] good: python -m assurance.good" in capsys.readouterr().out


@pytest.mark.long
def test_a_drill_that_takes_too_long_is_ended_with_its_children(ran, root):
    for seconds in (2, 20, 60):  # on a busy machine, a drill may not have started a child within the first limits
        code, rows = ran([named("long", hours=seconds / 3_600)])
        assert (code, rows[0].outcome) == (1, "out of time")
        if (said := (root / "logs" / "full-long.txt").read_text()).strip():
            break
        (root / "results.jsonl").unlink()
    child = int(said)
    if os.path.isdir("/proc/self"):
        until = time.monotonic() + 10
        while os.path.exists(f"/proc/{child}/stat") and time.monotonic() < until:
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":  # it ended, and no process has waited for it
                    return
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{child}")


def test_a_night_goes_on_where_it_was_interrupted(ran, monkeypatch, capsys):
    real, started = night._run, []

    def interrupted(part, commit):
        started.append(str(part))
        if len(started) == 2:
            raise KeyboardInterrupt
        return real(part, commit)

    monkeypatch.setattr(night, "_run", interrupted)
    drills = [named("good", parts=3), named("bad")]
    code, rows = ran(drills)
    assert (code, len(rows)) == (130, 1)
    code, rows = ran(drills)
    assert (code, [row.part for row in rows]) == (1, [0, 1, 2, 0])
    assert started == ["good, part 1 of 3", "good, part 2 of 3", "good, part 2 of 3", "good, part 3 of 3", "bad"]
    code, rows = ran(drills)  # nothing is left to run, and the objection is reported again
    assert (code, len(started)) == (1, 5)
    assert "0 parts ran; of 4 with a row 1 did not pass" in capsys.readouterr().out
    assert len(ran(drills, "--again", "--only", "bad")[1]) == 5
    assert ran([*drills], "--only", "good")[0] == 0
    assert ran([*drills], "--only", "nothing")[0] == 2


def test_another_commit_and_another_size_begin_anew(ran, monkeypatch, capsys):
    assert len(ran([named("good")])[1]) == 1
    assert len(ran([named("good")], "--small")[1]) == 2
    monkeypatch.setattr(night, "code", lambda drill: "def")
    assert len(ran([named("good")])[1]) == 3
    monkeypatch.setattr(night, "code", lambda drill: "def+")  # changes that are not committed
    assert len(ran([named("good")])[1]) == 4
    assert len(ran([named("good")])[1]) == 5
    assert len(ran([named("good")], "--minutes", "-1")[1]) == 5
    assert "the time is over" in capsys.readouterr().out
    commits = iter(["ghi", "ghi", "jkl", "jkl"])
    monkeypatch.setattr(night, "code", lambda drill: next(commits))
    rows = ran([named("good", parts=2)])[1]
    assert [row.commit for row in rows[5:]] == ["ghi"]
    assert "the code has changed" in capsys.readouterr().out


def test_a_row_that_was_broken_off_is_lost_alone(ran, root):
    assert len(ran([named("good")])[1]) == 1
    with (root / "results.jsonl").open("a") as file:
        file.write('{"commit": "abc", "dr')
    assert [row.drill for row in ran([named("good"), named("bad")])[1]] == ["good", "bad"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_the_code(tmp_path, monkeypatch):
    monkeypatch.setattr(night, "ROOT", tmp_path)
    assert night.code(DRILL) == "unknown+"

    git(tmp_path, "init")
    (tmp_path / "dpframe").mkdir()
    (tmp_path / "dpframe" / "one.py").write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "code")
    first = night.code(DRILL)
    assert first == git(tmp_path, "rev-parse", "HEAD")[:9]
    (tmp_path / "assurance").mkdir()
    (tmp_path / "assurance" / "results.jsonl").write_text("a row\n")
    assert night.code(DRILL) == first
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "rows")
    assert night.code(DRILL) == first
    (tmp_path / "dpframe" / "one.py").write_text("2\n")
    assert night.code(DRILL) == f"{first}+"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_comments_and_docstrings_are_no_code(tmp_path, monkeypatch):
    monkeypatch.setattr(night, "ROOT", tmp_path)
    (tmp_path / "dpframe").mkdir()

    def committed(name, text):
        (tmp_path / "dpframe" / name).write_text(text)
        for words in (["init"], ["add", "."], ["commit", "-m", "a change"]):
            git(tmp_path, *words)
        return night.code(DRILL)

    first = committed("one.py", '"""One."""\n\n\ndef one():\n    """Give 1."""\n    return 1\n')
    assert committed("one.py", '"""The one."""\n\n\ndef one():\n    """It is 1."""\n    return 1  # one\n') == first
    second = committed("one.py", '"""The one."""\n\n\ndef one():\n    """It is 1."""\n    return "one"\n')
    third = committed("two.py", "")
    fourth = committed("rows.toml", "# none\n")
    fifth = committed("rows.toml", "# some\n")
    assert len({first, second, third, fourth, fifth}) == 5
    assert committed("two.py", "# empty\n") == fifth
    (tmp_path / "tests").mkdir()
    assert committed("../tests/test_two.py", "") == fifth
    assert night.code(named("slow_tests")) not in (first, second, third, fourth, fifth)


# The table


ROW = Row("a", "2026-11-26 03:00", "good", "full", 0, 1, 60, "passed", {"rounds": 3})


@pytest.fixture
def lines(monkeypatch):
    monkeypatch.setattr(night, "DRILLS", (named("good", parts=2),))
    return lambda *rows: [
        [cell.strip() for cell in line.strip("|").split("|")[2:]] for line in night.table(rows).splitlines()[2:]
    ]


def test_the_table_shows_the_newest_whole_run_and_what_is_newer(lines):
    first, second = (replace(ROW, parts=2, part=part, seconds=30) for part in (0, 1))
    assert lines() == [["not yet", "", "", "", ""]]
    whole = ["full", "`a`", "2026-11-26", "1.0", "6 rounds"]
    assert lines(first, second) == [whole]
    newer = replace(first, commit="b", date="2026-11-27 03:00")
    assert lines(first, second, newer) == [whole, ["full, 1 of 2 parts", "`b`", "2026-11-27", "0.5", "3 rounds"]]
    small = replace(ROW, size="small", commit="c")
    assert lines(first, second, newer, small)[1][:2] == ["small", "`c`"]
    assert lines(small) == [["small", "`c`", "2026-11-26", "1.0", "3 rounds"]]
    assert lines(first, second, replace(newer, commit="b+")) == [whole]


def test_the_table_tells_what_did_not_pass(lines):
    first, second = (replace(ROW, parts=2, part=part) for part in (0, 1))
    wrong = replace(second, outcome="objected", said="an old copy | was taken")
    assert lines(first, wrong)[0][-1] == "3 rounds; **objected**: an old copy / was taken"
    assert lines(first, wrong, second)[0][-1] == "6 rounds"  # it ran again


def test_the_page_shows_what_is_recorded():
    page = night.PAGE.read_text(encoding="utf-8")
    rows = night.rows(night.RESULTS)
    assert night.written(page, night.table(rows)) == page, "python -m assurance.night --table"
    assert all(row.outcome in (night.PASSED, night.OBJECTED, night.LATE) for row in rows)
    assert {row.drill for row in rows} <= {drill.name for drill in DRILLS}
    with pytest.raises(SystemExit, match="no place for the table"):
        night.written("# A page", "")
