"""The command line of the project: it fails when a part fails, and names that part."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpframe import noise
from tests.repeated_bits import RepeatedBits

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
        name: lambda setup, code=code: iter([dev.Check("pytest", code, "1 line")]) for name, code in codes.items()
    }
    monkeypatch.setattr(dev, "CHECKS", checks)
    monkeypatch.setattr(dev, "WHAT", dict.fromkeys(codes, "a part"))
    return tuple(codes)


def test_everything_passes(dev, monkeypatch, capsys):
    assert dev.run_tests(parts(monkeypatch, dev, newest=0, oldest=0), dev.Setup()) == 0
    assert "Everything passed" in capsys.readouterr().out


def test_one_part_that_fails_fails_the_whole_and_stops_nothing(dev, monkeypatch, capsys):
    assert dev.run_tests(parts(monkeypatch, dev, newest=1, oldest=0), dev.Setup()) == 1
    said = capsys.readouterr().out
    assert "FAILED  newest" in said
    assert "passed  oldest" in said
    assert "1 of 2 parts FAILED: newest" in said


def test_the_summary_names_the_first_tests_that_failed(dev, monkeypatch, capsys):
    """Often only the end of a long log is kept."""
    text = "".join(f"FAILED tests/test_one.py::test_{number} - assert 0\n" for number in range(12))
    text += "ERROR tests/test_two.py\n12 failed, 1 error in 3.00s\n"
    monkeypatch.setattr(dev, "run", lambda command: (1, text))
    one = dev.check("pytest", sys.executable, "pytest")
    assert (len(one.failed), one.line) == (13, "12 failed, 1 error in 3.00s")
    assert dev.summed_up([("newest", [one], 3.0)], 3.0) == 1
    said = capsys.readouterr().out
    assert "test_9 - assert 0" in said
    assert "test_10" not in said
    assert "and 3 more" in said


def test_two_parts_run_at_a_time_and_each_line_says_whose_it_is(dev, monkeypatch, capsys):
    """Each part ends only after the other began; a part that runs alone prints no name before its lines."""
    began = threading.Barrier(2)

    def part(setup):
        began.wait(timeout=300)
        dev.say("one\ntwo")
        yield dev.Check("pytest", 0)

    monkeypatch.setattr(dev, "CHECKS", dict.fromkeys(("newest", "oldest"), part))
    assert dev.run_tests(("newest", "oldest"), dev.Setup()) == 0
    said = capsys.readouterr().out.splitlines()
    assert {f"{name:<15}| {line}" for name in ("newest", "oldest") for line in ("one", "two")} <= set(said)
    began = threading.Barrier(1)
    assert dev.run_tests(("newest",), dev.Setup()) == 0
    assert {"one", "two"} <= set(capsys.readouterr().out.splitlines())


def test_an_environment_is_made_once_though_two_parts_ask_for_it(dev, monkeypatch, tmp_path):
    made = []

    def install(folder, python, steps):
        folder.mkdir(parents=True)
        made.append(folder.name)
        return "uv"

    monkeypatch.setattr(dev, "VENVS", tmp_path)
    monkeypatch.setattr(dev, "install", install)
    with ThreadPoolExecutor(2) as threads:
        pythons = set(threads.map(dev.newest_environment, [dev.Setup(fresh=True)] * 4))
    assert len(pythons) == 1
    assert made == ["newest"]


def test_an_environment_that_cannot_be_made_fails(dev, monkeypatch, capsys):
    def broken(setup):
        raise subprocess.CalledProcessError(1, ["pip"], output="Collecting polars\nNo space left on device\n")
        yield

    monkeypatch.setitem(dev.CHECKS, "oldest", broken)
    for free, words in ((10**10, ""), (10**9, "; the disk has only 1.0 GB left, and all environments take 6")):
        monkeypatch.setattr(dev.shutil, "disk_usage", lambda folder, free=free: SimpleNamespace(free=free))
        assert dev.run_tests(("oldest",), dev.Setup()) == 1
        assert f"environment: No space left on device{words}\n" in capsys.readouterr().out


def test_a_reason_is_given_whatever_was_said(dev):
    for error in (
        subprocess.CalledProcessError(1, ["pip"], output="\n"),
        OSError(),
        subprocess.CalledProcessError(1, "x"),
    ):
        assert dev.reason(error)


def test_the_oldest_versions_are_the_lower_bounds(dev):
    pins = dev.oldest_versions()
    assert {"numpy==1.26.*", "polars==1.34.*", "narwhals==2.0.*", "pandas==2.2.*"} <= set(pins)
    assert not [pin for pin in pins if ">=" in pin]


def test_a_group_has_what_it_includes_once(dev):
    test = dev.group("test")
    assert {*dev.group("demo"), *dev.group("little"), *dev.group("style")} <= set(test)
    assert len(set(test)) == len(test)
    assert set(test) | set(dev.group("docs")) | set(dev.group("benchmarks")) <= set(dev.group("dev"))


def test_extras_that_a_group_asks_of_dpframe_are_those_of_this_folder(dev):
    asked = ["dpframe[plot]", "pandas>=2.2", "dpframe[dask,spark]"]
    assert dev.editable(asked) == ["--editable", ".[plot,dask,spark]", "pandas>=2.2"]
    assert dev.editable([]) == ["--editable", "."]


PIPS = """:env:.cert='/certificates.pem'
:env:.index-url='https://first/simple'
global.extra-index-url='https://second/simple\\n  file:///third'
global.find-links='/wheels /more'
global.index-url='https://never/simple'
install.no-index='true'
list.format='columns'
"""


def test_what_pip_is_told_uv_is_told(dev):
    assert dev.translated(PIPS) == {
        "SSL_CERT_FILE": "/certificates.pem",
        "UV_DEFAULT_INDEX": "https://first/simple",
        "UV_INDEX": "https://second/simple file:///third",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_NO_INDEX": "true",
    }
    assert dev.translated("") == {}


def test_what_uv_is_told_already_stays(dev, monkeypatch):
    listed = subprocess.CompletedProcess([], 0, stdout=":env:.index-url='https://of-pip/simple'\n")
    monkeypatch.setattr(dev.subprocess, "run", lambda *_, **__: listed)  # an environment that uv made has no pip
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert dev.settings()["UV_DEFAULT_INDEX"] == "https://of-pip/simple"
    dev.settings.cache_clear()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://of-uv/simple")
    assert "UV_DEFAULT_INDEX" not in dev.settings()


def installing(dev, monkeypatch, tmp_path, *, refused):
    """Install while every command with the word `refused` fails; return the commands that ran, and "uv" or "pip"."""
    commands = []

    def quietly(*command):
        commands.append(command)
        if refused in command:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(dev, "VENVS", tmp_path)
    monkeypatch.setattr(dev, "quietly", quietly)
    monkeypatch.setattr(dev.venv, "create", lambda folder, with_pip: folder.mkdir())
    return commands, dev.install(tmp_path / "newest", tmp_path / "newest" / "bin" / "python", [["--editable", "."]])


def test_uv_installs_where_it_is(dev, monkeypatch, tmp_path):
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setattr(dev, "works", lambda program: program == "/bin/uv")
    monkeypatch.setattr(dev.shutil, "which", lambda name: "/bin/uv")
    commands, who = installing(dev, monkeypatch, tmp_path, refused=None)
    assert who == "uv"
    ran = [("/bin/uv", "venv", "--python"), ("/bin/uv", "pip", "install"), ("/bin/uv", "cache", "prune")]
    assert [command[:3] for command in commands] == ran


def test_pip_fetches_uv_where_there_is_none(dev, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "works", lambda program: (tmp_path / "asked").exists() or (tmp_path / "asked").touch())
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    commands, who = installing(dev, monkeypatch, tmp_path, refused=None)
    assert who == "uv"
    assert commands[0][-2:] == (str(tmp_path / "uv"), "uv>=0.8")


@pytest.mark.parametrize(("refused", "words"), [("uv>=0.8", "uv cannot be had here"), ("venv", "uv could not install")])
def test_without_uv_pip_installs(dev, monkeypatch, tmp_path, capsys, refused, words):
    monkeypatch.setattr(dev, "works", lambda program: refused == "venv")
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    commands, who = installing(dev, monkeypatch, tmp_path, refused=refused)
    assert who == "pip"
    assert commands[-1][1:4] == ("-m", "pip", "install")
    assert words in capsys.readouterr().out


def test_the_lock_has_all_that_is_asked_and_names_no_host(dev):
    locked = dev.LOCK.read_text(encoding="utf-8")
    assert not re.search(r"://|^-|file:|dpframe", locked, flags=re.MULTILINE)
    names = {match[1].lower() for match in re.finditer(r"^([A-Za-z0-9._-]+)==", locked, flags=re.MULTILINE)}
    project = dev.declared()["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    asked += dev.group("dev")
    missing = {re.match(r"[A-Za-z0-9._-]+", one)[0].lower() for one in asked} - names - {"dpframe"}
    assert not missing, "run python3.11 dev.py lock"
    pinned = re.findall(r"^\S+==.*\\$(?!\n    --hash=sha256:[0-9a-f]{64})", locked, flags=re.MULTILINE)
    assert not pinned, "every line has a hash"


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


def test_each_week_every_slow_test_runs(dev, monkeypatch):
    """The share changes daily, and seven days together run each slow test once."""
    words = []
    for day in range(100, 107):
        monkeypatch.setattr(dev.time, "time", lambda day=day: day * 86_400 + 86_399.0)
        words.append(dev.turn(dev.Setup()))
    assert sorted(words) == [["--turn", f"{share}/7"] for share in range(7)]
    assert dev.turn(dev.Setup(whole=True)) == dev.again(dev.Setup(whole=True)) == ["--fresh-bits"]
    assert dev.again(dev.Setup()) == [*dev.turn(dev.Setup()), "--first", "3"]


def test_a_test_draws_the_same_noise_in_each_run_and_a_forked_process_its_own(pytestconfig, request):
    """Bits seeded by the test's name replace those of the operating system, and the noise still counts as secure."""
    if pytestconfig.getoption("--fresh-bits"):
        pytest.skip("this run draws fresh bits")
    first = noise.random_bits.word()
    again, other = RepeatedBits(request.node.nodeid), RepeatedBits("another")
    assert int.from_bytes(again(8), "little") == first != int.from_bytes(other(8), "little")
    assert noise.is_secure()
    forked = RepeatedBits(request.node.nodeid)
    forked.process += 1
    assert int.from_bytes(forked(8), "little") != first


def run_of(pytestconfig, **options):
    """Return the tests that some options keep, of 40 slow cases of one function and 40 quick cases of another."""
    conftest = next(one for one in pytestconfig.pluginmanager.get_plugins() if hasattr(one, "turn_of"))
    mark = {"slow": SimpleNamespace(), "quick": None}
    kept = []
    for number in range(80):
        kind = "slow" if number % 2 else "quick"
        item = SimpleNamespace(nodeid=f"{kind}[{number}]", get_closest_marker=lambda name, kind=kind: mark[kind])
        kept.append(item)
    told = {}
    hook = SimpleNamespace(pytest_deselected=lambda **said: told.update(said))
    config = SimpleNamespace(getoption=lambda name: options.get(name.lstrip("-")), hook=hook, stash={})
    conftest.pytest_collection_modifyitems(config, kept)
    assert len(kept) + len(told["items"]) == 80
    return [one.nodeid for one in kept]


def test_a_share_of_the_slow_tests_leaves_out_no_other_test(pytestconfig):
    """With seven shares, each slow test is in exactly one of them, and every other test is in all."""
    runs = [run_of(pytestconfig, turn=f"{share}/7") for share in range(7)]
    assert all(f"quick[{number}]" in run for run in runs for number in range(0, 80, 2))
    slow = [name for run in runs for name in run if name.startswith("slow")]
    assert sorted(slow) == sorted(f"slow[{number}]" for number in range(1, 80, 2))
    assert all(len(run) > 40 for run in runs)


def test_later_cases_take_turns_where_the_first_are_enough(pytestconfig):
    """With seven shares, the first cases of a quick test are in all of them, and each other case is in one."""
    runs = [run_of(pytestconfig, turn=f"{share}/7", first=3) for share in range(7)]
    assert all({"quick[0]", "quick[2]", "quick[4]"} <= {*run} for run in runs)
    later = [name for run in runs for name in run if name not in ("quick[0]", "quick[2]", "quick[4]")]
    assert sorted(later) == sorted(f"{'slow' if number % 2 else 'quick'}[{number}]" for number in [1, 3, *range(5, 80)])


def test_where_coverage_is_measured_what_is_traced_runs_first(pytestconfig, monkeypatch):
    """The first two cases of a quick test run first, and then every other test once."""
    monkeypatch.delenv("COVERAGE_RUN", raising=False)
    otherwise = run_of(pytestconfig)
    monkeypatch.setenv("COVERAGE_RUN", "true")
    traced = run_of(pytestconfig)
    assert traced[:2] == ["quick[0]", "quick[2]"] != otherwise[:2]
    assert sorted(traced) == sorted(otherwise)


@pytest.mark.slow
def test_coverage_sees_the_first_cases_and_no_others(tmp_path):
    """Run a folder of its own with this conftest: coverage sees the lines of the first two cases, and of no others."""
    coverage = pytest.importorskip("coverage")
    branches = "".join(f"    if case == {number}:\n        return 1\n" for number in range(5))
    (tmp_path / "cases.py").write_text("def asked(case):\n" + branches)
    test = "@pytest.mark.parametrize('case', range(5))\ndef test(case):\n    assert cases.asked(case)\n"
    (tmp_path / "test_cases.py").write_text("import cases, pytest\n" + test)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    settings = "[run]\nbranch = true\nsource = .\nomit = test_*, conftest.py\nparallel = true\npatch = subprocess\n"
    (tmp_path / ".coveragerc").write_text(settings)
    words = ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", "-n", "2", "test_cases.py"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = [sys.executable, "-m", "coverage", "run", "-m", "pytest", *words]
    done = subprocess.run(ran, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    seen = coverage.Coverage(data_file=str(tmp_path / ".coverage"), config_file=str(tmp_path / ".coveragerc"))
    seen.combine([str(tmp_path)])
    lines = seen.get_data().lines(str(tmp_path / "cases.py"))
    assert {3, 5} <= set(lines)
    assert not {7, 9, 11} & set(lines)


def test_what_some_parts_leave_out_is_there(dev):
    assert all((dev.ROOT / place).exists() for place in (*dev.OF_SOURCE, *dev.OF_NUMBERS, *dev.OF_VERSIONS))
    assert dev.but(("tests/a",)) == ["--ignore=tests/a"]
