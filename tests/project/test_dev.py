"""The command line of the project: it fails when a part fails, and says which."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dev(monkeypatch):
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dev", module)
    spec.loader.exec_module(module)
    return module


def parts(monkeypatch, dev, **codes):
    """Replace the parts by ones that end with these exit codes."""
    checks = {
        name: lambda fresh, code=code: iter([dev.Check("pytest", code, "1 line")]) for name, code in codes.items()
    }
    monkeypatch.setattr(dev, "CHECKS", checks)
    monkeypatch.setattr(dev, "WHAT", dict.fromkeys(codes, "a part"))
    return tuple(codes)


def test_everything_passes(dev, monkeypatch, capsys):
    assert dev.run_tests(parts(monkeypatch, dev, newest=0, oldest=0), fresh=False) == 0
    assert "Everything passed" in capsys.readouterr().out


def test_one_part_that_fails_fails_the_whole_and_stops_nothing(dev, monkeypatch, capsys):
    assert dev.run_tests(parts(monkeypatch, dev, newest=1, oldest=0), fresh=False) == 1
    said = capsys.readouterr().out
    assert "FAILED  newest" in said
    assert "passed  oldest" in said
    assert "1 of 2 parts FAILED: newest" in said


def test_an_environment_that_cannot_be_made_fails(dev, monkeypatch, capsys):
    def broken(fresh):
        raise subprocess.CalledProcessError(1, ["pip"])
        yield

    monkeypatch.setitem(dev.CHECKS, "oldest", broken)
    assert dev.run_tests(("oldest",), fresh=False) == 1
    assert "environment" in capsys.readouterr().out


def test_the_oldest_versions_are_the_lower_bounds(dev):
    pins = dev.oldest_versions()
    assert {"numpy==1.26.*", "polars==1.34.*", "narwhals==2.0.*", "pandas==2.2.*"} <= set(pins)
    assert not [pin for pin in pins if ">=" in pin]


@pytest.mark.parametrize(
    "line",
    [
        "======================= 414 passed in 152.24s (0:02:32) ========================",
        "1 failed, 60 passed, 9 skipped in 15.02s",
        "===== 2 errors in 0.10s =====",
        "no tests ran in 0.01s",
    ],
)
def test_the_last_line_of_pytest_is_found(dev, line):
    assert dev.SUMMARY.match(line)[1] == line.strip("= ")


def test_a_command_is_shown_and_its_exit_code_kept(dev, capfd):
    code, text = dev.run([sys.executable, "-c", "print('shown'); raise SystemExit(3)"])
    assert (code, text.strip()) == (3, "shown")


def test_an_unknown_part_is_refused(dev, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dev.py", "test", "--only", "everything"])
    with pytest.raises(SystemExit, match="2"):
        dev.main()
