"""The command line of the project: ``python3.11 dev.py demo`` and ``python3.11 dev.py test``.

It needs Python 3.11 or newer with pip, and nothing else. It creates virtual environments under ``.venvs/`` and
installs there what a command needs. It uses uv, which pip downloads into ``.venvs/uv`` if necessary, or else pip.
``python3.11 dev.py lock`` is for maintainers who change the requirements of the project.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENVS = ROOT / ".venvs"
LOCK = ROOT / "requirements" / "locked.txt"
SUMMARY = re.compile(r"^=*\s*(.*\b(?:passed|failed|skipped|errors?|no tests ran)\b.* in [\d.]+s.*?)\s*=*$")

# In starting order. Parts that build an environment or use one processor run alongside parts that use more.
PARTS = ("style", "site", "types", "newest", "spark", "oldest", "without-pandas")
BESIDE = 2  # number of parts that run at the same time


@dataclass(frozen=True)
class Setup:
    """Options of a run: `fresh` rebuilds environments, `locked` installs pinned versions, `whole` runs all tests."""

    fresh: bool = False
    locked: bool = False
    whole: bool = False


def main() -> int:
    """Run the command given on the command line; return exit code 0 only if everything succeeded."""
    parser = argparse.ArgumentParser(prog="dev.py", description="Run the demo or the tests of dpframe.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="release private statistics of a real survey and draw them")
    test = commands.add_parser("test", help="run everything that continuous integration runs")
    test.add_argument("--only", action="append", choices=PARTS, help="run this part alone (may be repeated)")
    test.add_argument(
        "--whole", action="store_true", help="run every test, not only the share of today, with fresh noise"
    )
    commands.add_parser("lock", help=f"write {LOCK.relative_to(ROOT).as_posix()} anew, with the newest versions")
    for command in (demo, test):
        command.add_argument("--fresh", action="store_true", help="make the virtual environments anew")
        command.add_argument("--locked", action="store_true", help="install the locked versions, not the newest")
    options = parser.parse_args()
    if options.command == "lock":
        return write_lock()
    setup = Setup(options.fresh, options.locked, getattr(options, "whole", False))
    return run_demo(setup) if options.command == "demo" else run_tests(tuple(options.only or PARTS), setup)


def run_demo(setup: Setup) -> int:
    """Install the requirements of the demo and run it."""
    say("This runs examples/demo.py in an environment of its own. The first time takes a minute or two.")
    return run([environment("demo", group("demo"), setup), "examples/demo.py"])[0]


def run_tests(parts: tuple[str, ...], setup: Setup) -> int:
    """Run all parts, even when one fails, and sum up. Two run at a time: one computes while the other waits."""
    say(f"This runs {', '.join(parts)}. On two cores all of it takes 11 to 22 minutes, depending on their speed.")
    start = time.monotonic()

    def done(part: str) -> tuple[str, list[Check], float]:
        _part.set(part if len(parts) > 1 else "")
        start = time.monotonic()
        say(f"== {part}: {WHAT[part]}")
        try:
            checks = list(CHECKS[part](setup))
        except (subprocess.CalledProcessError, OSError) as error:
            checks = [Check("environment", 1, reason(error))]
        return part, checks, time.monotonic() - start

    with ThreadPoolExecutor(BESIDE) as threads:
        results = list(threads.map(done, parts))
    return summed_up(results, time.monotonic() - start)


def reason(error: subprocess.CalledProcessError | OSError) -> str:
    """Return the last line of the command's output, or the error; add the free space if the disk is nearly full."""
    said = str(getattr(error, "output", None) or "").strip() or str(error) or type(error).__name__
    free = shutil.disk_usage(ROOT).free
    full = f"; the disk has only {free / 1e9:.1f} GB left, and all environments take {SPACE / 1e9:.0f}"
    return said.splitlines()[-1] + (full if free < SPACE else "")


@dataclass(frozen=True)
class Check:
    """One tool that ran: its exit code, the line that summarizes its output, and the tests that failed."""

    name: str
    code: int
    line: str = ""
    failed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.line or ('ok' if self.code == 0 else f'exit code {self.code}')}"


def style(setup: Setup) -> Iterator[Check]:
    """Run Ruff's linter and formatter."""
    python = newest_environment(setup)
    yield check("ruff check", python, "ruff", "check", "--output-format", "concise", ".")
    yield check("ruff format", python, "ruff", "format", "--check", ".")


def types(setup: Setup) -> Iterator[Check]:
    """Run mypy in strict mode."""
    yield check("mypy", newest_environment(setup), "mypy")


def site(setup: Setup) -> Iterator[Check]:
    """Build the site in strict mode, in which a warning is an error."""
    python = environment("site", group("docs"), setup)
    yield check("mkdocs", python, "mkdocs", "build", "--quiet", "--strict")


def newest(setup: Setup) -> Iterator[Check]:
    """Run pytest with the newest versions; coverage measures only the first cases of each test (tests/conftest.py)."""
    python = newest_environment(setup)
    yield check("pytest", python, "coverage", "run", "-m", "pytest", "-m", "not spark", *turn(setup), *PARALLEL)
    yield check("combined", python, "coverage", "combine", "--quiet")
    yield check("coverage", python, "coverage", "report")


def spark(setup: Setup) -> Iterator[Check]:
    """Run the tests of Spark in one process and one session; without Java they are skipped with a reason."""
    yield check("pytest", newest_environment(setup), "pytest", "-m", "spark", *turn(setup))


def oldest(setup: Setup) -> Iterator[Check]:
    """Run pytest with the oldest supported versions; of the slow tests, only those of code that calls the frames."""
    python = environment("oldest", [*oldest_versions(), *group("little")], Setup(fresh=setup.fresh))
    yield check("pytest", python, "pytest", "-m", "not slow", *but(OF_SOURCE), *again(setup), *PARALLEL)
    yield check("pytest", python, "pytest", "-m", "slow", *OF_VERSIONS, *turn(setup), *PARALLEL)


def without_pandas(setup: Setup) -> Iterator[Check]:
    """Run pytest with the required dependencies only: no pandas, no Altair. Slow tests run in the other parts."""
    python = environment("without-pandas", group("little"), Setup(fresh=setup.fresh))
    places = but(OF_SOURCE + OF_NUMBERS)
    yield check("pytest", python, "pytest", "-m", "not slow", *places, *again(setup), *PARALLEL)


def but(places: tuple[str, ...]) -> list[str]:
    """Return pytest options that leave out these files and folders."""
    return [f"--ignore={place}" for place in places]


def turn(setup: Setup) -> list[str]:
    """Return pytest options that select one seventh of the slow tests, by date: all of them run within a week."""
    day = int(time.time() // 86_400) % TURNS
    return anew(setup) if setup.whole else ["--turn", f"{day}/{TURNS}"]


def again(setup: Setup) -> list[str]:
    """Return pytest options for tests that `newest` also runs: the first cases of each, today's share of the rest."""
    return anew(setup) if setup.whole else [*turn(setup), "--first", str(FIRST)]


def anew(setup: Setup) -> list[str]:
    """Return the pytest option that draws fresh random bits in a whole run; other runs repeat the same bits."""
    return ["--fresh-bits"] if setup.whole else []


TURNS = 7  # days within which every slow test runs, and every case of the other tests in every environment
NAMED = 10  # number of failed tests that the summary lists for each part
FIRST = 3  # number of cases of each test that run in every environment every day
SPACE = 6_000_000_000  # bytes on disk that the environments need, with the temporary files of installers
OF_VERSIONS = ("tests/engines", "tests/frames")  # tests of code that calls pandas and Polars
# OF_SOURCE: tests of source text and pages, whatever is installed. OF_NUMBERS: tests of numbers without frames.
OF_SOURCE = tuple(
    f"tests/project/test_{name}.py"
    for name in ("dev", "floors", "language", "mutants", "packages", "path", "search", "site", "structure")
)
OF_NUMBERS = ("tests/accounting", "tests/denoise", "tests/mechanisms", "tests/noise")
PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4")
WHAT = {
    "style": "ruff check and ruff format --check",
    "types": "mypy, strict",
    "site": "mkdocs build --strict; the pages are in build/site",
    "newest": "pytest with coverage, newest versions of everything",
    "spark": "pytest of what asks Apache Spark, in one session of two threads",
    "oldest": "pytest with the oldest supported versions; of each test the first cases, and those of today",
    "without-pandas": "the same but for slow tests, where no pandas and no extra is installed",
}
CHECKS = {
    "style": style,
    "types": types,
    "site": site,
    "newest": newest,
    "spark": spark,
    "oldest": oldest,
    "without-pandas": without_pandas,
}
_made: set[str] = set()  # environments that this run has checked already
_making: dict[str, threading.Lock] = defaultdict(threading.Lock)  # held while an environment, or uv, is installed
_part: ContextVar[str] = ContextVar("part", default="")  # name of the part whose output is printed, if several run


def newest_environment(setup: Setup) -> str:
    """Return the Python of the environment that style, types, newest and spark share."""
    return environment("newest", group("test"), setup)


@cache
def declared() -> dict[str, Any]:
    """Return the contents of pyproject.toml."""
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group and of the groups it includes; an old pip does not know groups."""
    wanted: list[str] = []
    for one in declared()["dependency-groups"][name]:
        wanted += [one] if isinstance(one, str) else group(one["include-group"])
    return list(dict.fromkeys(wanted))


def editable(requirements: list[str]) -> list[str]:
    """Return installer options for these requirements and for dpframe in this folder, with the extras they name."""
    own = re.compile(r"dpframe\[(.*)\]$")
    extras = ",".join(found[1] for one in requirements if (found := own.match(one)))
    others = [one for one in requirements if not own.match(one)]
    return ["--editable", f".[{extras}]" if extras else ".", *others]


def oldest_versions() -> list[str]:
    """Return the lower bounds of pyproject.toml as pins: ``polars>=1.34`` becomes ``polars==1.34.*``."""
    project = declared()["project"]
    pandas = [one for one in group("demo") if one.startswith("pandas")]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["plot"], *extras["cli"], *pandas]
    return [re.sub(r">=(.*)", r"==\1.*", requirement) for requirement in wanted]


def environment(name: str, requirements: list[str], setup: Setup) -> str:
    """Return the Python of an environment with dpframe and `requirements`; create the environment if necessary."""
    steps = [editable(requirements)]
    if setup.locked:  # one environment for all; pinned packages have hashes, the project itself cannot have one
        name, steps = "locked", [["--requirement", str(LOCK)], ["--no-deps", "--editable", "."]]
    folder = VENVS / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    read = [ROOT / "pyproject.toml", *([LOCK] if setup.locked else [])]
    wanted = "\n".join(
        [sys.version, *map(str, steps), *(hashlib.sha256(file.read_bytes()).hexdigest() for file in read)]
    )
    with _making[name]:
        is_there = stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and not setup.fresh
        if name not in _made and not is_there:
            start = time.monotonic()
            say(f"Installing into .venvs/{name}: {' '.join(word for step in steps for word in step)}")
            installed_with = install(folder, python, steps)
            stamp.write_text(wanted, encoding="utf-8")
            say(f"Installed by {installed_with} in {time.monotonic() - start:.0f} seconds.")
        _made.add(name)
    return str(python)


def install(folder: Path, python: Path, steps: list[list[str]]) -> str:
    """Create an environment and install into it with uv, or else with pip; return the name of the installer."""
    shutil.rmtree(folder, ignore_errors=True)
    with _making["uv"]:
        program = uv()
    if program:
        try:
            quietly(program, "venv", "--python", sys.executable, str(folder))
            for step in steps:
                quietly(program, "pip", "install", "--python", str(python), *step)
        except subprocess.CalledProcessError:
            say("uv could not install this (its words are above), so pip tries the same.")
            shutil.rmtree(folder, ignore_errors=True)
        else:
            if "UV_CACHE_DIR" not in os.environ:  # a build of Spark leaves 2 GB in the cache, which are not used again
                with suppress(subprocess.CalledProcessError):
                    quietly(program, "cache", "prune")
            return "uv"
    venv.create(folder, with_pip=True)
    for step in steps:
        quietly(str(python), "-m", "pip", "install", "--disable-pip-version-check", *step)
    return "pip"


@cache
def uv() -> str | None:
    """Return uv's path: the one in .venvs/uv, the one on PATH, or one that pip downloads; None if there is none."""
    own = VENVS / "uv" / "bin" / ("uv.exe" if os.name == "nt" else "uv")
    for program in (str(own), shutil.which("uv")):
        if program and works(program):
            return program
    try:
        quietly(*PIP, "install", "--only-binary", "uv", "--target", str(VENVS / "uv"), "uv>=0.8")
    except (subprocess.CalledProcessError, OSError):
        say("uv cannot be had here (pip's words are above). pip installs everything instead, which takes longer.")
        return None
    return str(own) if works(str(own)) else None


def works(program: str) -> bool:
    """Return whether a program can be started."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# uv does not read the configuration of pip, so each setting of pip is passed on in this variable of uv.
OF_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


@cache
def settings() -> dict[str, str]:
    """Return pip's configuration on this machine as variables of uv; variables of uv that are set already win."""
    try:
        done = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False)
    except OSError:
        return {}
    found = translated(done.stdout)
    return {name: value for name, value in found.items() if name not in os.environ}


def translated(listed: str) -> dict[str, str]:
    """Translate the lines of ``pip config list`` to variables of uv; pip's environment variables win over its files."""
    said: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}.") and (variable := OF_PIP.get(name.removeprefix(f"{section}."))):
                said[variable] = " ".join(str(ast.literal_eval(value)).split())
    if "UV_FIND_LINKS" in said:
        said["UV_FIND_LINKS"] = said["UV_FIND_LINKS"].replace(" ", ",")
    if "UV_INDEX" in said:  # pip takes the best version from all indexes; uv would stop at the first index
        said["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return said


def quietly(*command: str, but: tuple[str, ...] = ()) -> None:
    """Run a command in the root of the repository, silently unless it fails; `but` names variables to leave out."""
    environ = {"PIP_USER": "0", "UV_CACHE_DIR": str(VENVS / "cache"), **os.environ, **settings()}
    environ = {name: value for name, value in environ.items() if name not in but}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        say(done.stdout)
        done.check_returncode()


def write_lock() -> int:
    """Resolve the newest versions of all groups and extras for every platform, and write them to one file with hashes.

    A ``uv.lock`` would name the index and the files of the machine that wrote it; this file installs from any index.
    Only the first index is used: another may hold files for one platform only, so hashes for others would be missing.
    """
    if not (program := uv()):
        return 1
    LOCK.parent.mkdir(exist_ok=True)
    asked = LOCK.with_name("asked.in")  # --group refuses a group that requests extras of dpframe itself
    flag, *words = editable(group("dev"))
    asked.write_text(f"{flag} " + "\n".join(words), encoding="utf-8")
    wanted = ["--universal", "--python-version", "3.11", "--upgrade"]
    written = ["--generate-hashes", "--no-emit-index-url", "--no-annotate", "--no-emit-package", "dpframe"]
    heading = ["--custom-compile-command", "python3.11 dev.py lock", "--output-file", str(LOCK)]
    try:
        quietly(program, "pip", "compile", str(asked), *wanted, *written, *heading, but=("UV_INDEX", "UV_FIND_LINKS"))
    finally:
        asked.unlink()
    say(f"Wrote {LOCK.relative_to(ROOT).as_posix()}.")
    return 0


def check(name: str, python: str, *module: str) -> Check:
    """Run a tool as a module of an environment's Python."""
    code, text = run([python, "-m", *module])
    if name != "pytest":
        return Check(name, code)
    lines = [found[1] for line in text.splitlines() if (found := SUMMARY.match(line))]
    failed = tuple(line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return Check(name, code, lines[-1] if lines else "", failed)


def run(command: list[str]) -> tuple[int, str]:
    """Run a command in the root of the repository; print its output line by line as it arrives, and return it.

    Bytecode is always cached next to the environments, because hundreds of processes import the same modules.
    """
    environ = os.environ | {"PYTHONUNBUFFERED": "1", "NO_MKDOCS_2_WARNING": "1", "EXECUTE_NOTEBOOKS": "true"}
    environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(VENVS / "bytecode")}
    seen = []
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(line)
            say(line.removesuffix("\n"))
    return process.returncode, "".join(seen)


def summed_up(results: list[tuple[str, list[Check], float]], total: float) -> int:
    """Print a line for each part, its first failed tests, and the total time; return 0 if nothing failed, else 1."""
    say("\n== Summary")
    broken = []
    for part, checks, seconds in results:
        good = all(one.code == 0 for one in checks)
        say(f"{'passed' if good else 'FAILED'}  {part:<15} {seconds:4.0f} s  {'; '.join(map(str, checks))}")
        failed = [line for one in checks for line in one.failed]
        for line in failed[:NAMED]:
            say(f"        {line[:200]}")
        if len(failed) > NAMED:
            say(f"        and {len(failed) - NAMED} more")
        broken += [] if good else [part]
    words = f"{len(broken)} of {len(results)} parts FAILED: {', '.join(broken)}" if broken else "Everything passed"
    say(f"{words} ({total:.0f} seconds).")
    return 1 if broken else 0


def say(words: str) -> None:
    """Print at once, so that the output keeps the order of events; start with the part's name if several parts run."""
    part = f"{_part.get():<15}| " if _part.get() else ""
    sys.stdout.write("".join(f"{part}{line}\n" for line in words.split("\n")))
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # a user may start this file with an older Python
        sys.exit("dev.py needs Python 3.11 or newer: python3.11 dev.py test")
    sys.stdout.reconfigure(errors="replace")  # the console of Windows may lack characters that tools print
    sys.exit(main())
