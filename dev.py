"""The one command line of the project: ``python3.11 dev.py demo`` and ``python3.11 dev.py test``.

It needs Python 3.11 or newer with pip, and nothing else: it makes virtual environments under ``.venvs/`` and
installs there what a command needs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENVS = ROOT / ".venvs"
SUMMARY = re.compile(r"^=*\s*(.*\b(?:passed|failed|skipped|errors?|no tests ran)\b.* in [\d.]+s.*?)\s*=*$")

PARTS = ("style", "types", "site", "newest", "spark", "oldest", "without-pandas")


def main() -> int:
    """Read the command line and do what it says; the exit code is 0 only if everything went well."""
    parser = argparse.ArgumentParser(prog="dev.py", description="Run the demo or the tests of dpframe.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="release private statistics of a real survey and draw them")
    test = commands.add_parser("test", help="run everything that continuous integration runs")
    test.add_argument("--only", action="append", choices=PARTS, help="run this part alone (may be repeated)")
    for command in (demo, test):
        command.add_argument("--fresh", action="store_true", help="make the virtual environments anew")
    options = parser.parse_args()
    if options.command == "demo":
        return run_demo(fresh=options.fresh)
    return run_tests(tuple(options.only or PARTS), fresh=options.fresh)


def run_demo(*, fresh: bool) -> int:
    """Install what the demo needs, run it."""
    say("This runs examples/demo.py in an environment of its own. The first time takes a minute or two.")
    python = environment("demo", ["-e", ".[demo]"], fresh=fresh)
    return run([python, "examples/demo.py"])[0]


def run_tests(parts: tuple[str, ...], *, fresh: bool) -> int:
    """Run the parts one after another, even when one fails, and sum up."""
    say(f"This runs {', '.join(parts)}. All of it takes about half an hour the first time, on two cores.")
    results = []
    for part in parts:
        start = time.monotonic()
        say(f"== {part}: {WHAT[part]}", before="\n")
        try:
            checks = list(CHECKS[part](fresh))
        except (subprocess.CalledProcessError, OSError) as error:
            checks = [Check("environment", 1, str(error))]
        results.append((part, checks, time.monotonic() - start))
    return summed_up(results)


@dataclass(frozen=True)
class Check:
    """One tool that ran: its exit code, and the line that sums up what it said."""

    name: str
    code: int
    line: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.line or ('ok' if self.code == 0 else f'exit code {self.code}')}"


def style(fresh: bool) -> Iterator[Check]:
    """Ruff's rules and Ruff's layout."""
    python = newest_environment(fresh=fresh)
    yield check("ruff check", python, "ruff", "check", "--output-format", "concise", ".")
    yield check("ruff format", python, "ruff", "format", "--check", ".")


def types(fresh: bool) -> Iterator[Check]:
    """Mypy, strict."""
    yield check("mypy", newest_environment(fresh=fresh), "mypy")


def site(fresh: bool) -> Iterator[Check]:
    """The site, built strictly: a warning fails it."""
    python = environment("site", ["-e", ".[docs]"], fresh=fresh)
    yield check("mkdocs", python, "mkdocs", "build", "--quiet", "--strict")


def newest(fresh: bool) -> Iterator[Check]:
    """Pytest with the newest versions of everything; coverage of all but slow tests, which it would make slower."""
    python = newest_environment(fresh=fresh)
    yield check("pytest", python, "coverage", "run", "-m", "pytest", "-m", "not slow and not spark", *PARALLEL)
    yield check("pytest", python, "pytest", "-m", "slow and not spark", *PARALLEL)
    yield check("combined", python, "coverage", "combine", "--quiet")
    yield check("coverage", python, "coverage", "report")


def spark(fresh: bool) -> Iterator[Check]:
    """Pytest of what asks Spark, in one process and one session; skipped in words where there is no Java."""
    yield check("pytest", newest_environment(fresh=fresh), "pytest", "-m", "spark and not slow")


def oldest(fresh: bool) -> Iterator[Check]:
    """Pytest with the oldest supported versions."""
    python = environment("oldest", ["-e", ".", *oldest_versions(), *LITTLE], fresh=fresh)
    yield check("pytest", python, "pytest", *PARALLEL)


def without_pandas(fresh: bool) -> Iterator[Check]:
    """Pytest where only the dependencies are installed: no pandas, no Altair; slow tests run in the other parts."""
    python = environment("without-pandas", ["-e", ".", *LITTLE], fresh=fresh)
    yield check("pytest", python, "pytest", "-m", "not slow", *PARALLEL)


LITTLE = ("pytest>=8.0", "pytest-xdist>=3.5", "hypothesis>=6.100")
PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4")
WHAT = {
    "style": "ruff check and ruff format --check",
    "types": "mypy, strict",
    "site": "mkdocs build --strict; the pages are in build/site",
    "newest": "pytest with coverage, newest versions of everything",
    "spark": "pytest of what asks Apache Spark, in one session of two threads",
    "oldest": "pytest with the oldest supported versions",
    "without-pandas": "pytest but for slow tests, where no pandas and no extra is installed",
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
_made: set[str] = set()  # environments that this run has already looked after


def newest_environment(*, fresh: bool) -> str:
    """The environment that style, types, newest and spark share."""
    return environment("newest", ["-e", ".[test]"], fresh=fresh)


def oldest_versions() -> list[str]:
    """The lower bounds that pyproject.toml declares, as pins: ``polars>=1.34`` becomes ``polars==1.34.*``."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    plain = [*project["dependencies"], *extras["plot"], *extras["cli"]]
    wanted = [*plain, *(one for one in extras["test"] if one.startswith("pandas"))]
    return [re.sub(r">=(.*)", r"==\1.*", requirement) for requirement in wanted]


def environment(name: str, requirements: list[str], *, fresh: bool) -> str:
    """The Python of a virtual environment in which `requirements` are installed; made if need be."""
    folder = VENVS / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    wanted = "\n".join([sys.version, *requirements, hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()])
    if name in _made:
        return str(python)
    if fresh or not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        start = time.monotonic()
        say(f"Installing into .venvs/{name}: {' '.join(requirements)}")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip(python, requirements)
        stamp.write_text(wanted, encoding="utf-8")
        say(f"Installed in {time.monotonic() - start:.0f} seconds.")
    _made.add(name)
    return str(python)


def pip(python: Path, requirements: list[str]) -> None:
    """Install, quietly unless it fails."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        say(done.stdout)
        done.check_returncode()


def check(name: str, python: str, *module: str) -> Check:
    """Run a tool as a module of an environment's Python."""
    code, text = run([python, "-m", *module])
    lines = [found[1] for line in text.splitlines() if (found := SUMMARY.match(line))]
    return Check(name, code, lines[-1] if name == "pytest" and lines else "")


def run(command: list[str]) -> tuple[int, str]:
    """Run a command in the root of the repository; its output is shown as it comes, and returned."""
    environ = os.environ | {"PYTHONUNBUFFERED": "1", "NO_MKDOCS_2_WARNING": "1", "EXECUTE_NOTEBOOKS": "true"}
    seen = bytearray()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ) as process:
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 4096):
            seen += chunk
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    return process.returncode, seen.decode(errors="replace")


def summed_up(results: list[tuple[str, list[Check], float]]) -> int:
    """A line per part; 0 if none failed."""
    say("== Summary", before="\n")
    broken = []
    for part, checks, seconds in results:
        good = all(one.code == 0 for one in checks)
        say(f"{'passed' if good else 'FAILED'}  {part:<15} {seconds:4.0f} s  {'; '.join(map(str, checks))}")
        broken += [] if good else [part]
    total = sum(seconds for _, _, seconds in results)
    words = f"{len(broken)} of {len(results)} parts FAILED: {', '.join(broken)}" if broken else "Everything passed"
    say(f"{words} ({total:.0f} seconds).")
    return 1 if broken else 0


def say(words: str, before: str = "") -> None:
    """Print at once, so that the order of the output is the order of events."""
    print(f"{before}{words}", flush=True)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # someone may well start it with an older Python
        sys.exit("dev.py needs Python 3.11 or newer: python3.11 dev.py test")
    sys.exit(main())
