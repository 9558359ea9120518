"""Run all drills, one after another: resumable, with a row for each part and a table of the results.

    python -m assurance.night                       # continue where the last night of this commit ended
    python -m assurance.night --only audit          # the drills whose name contains this
    python -m assurance.night --minutes 60          # start nothing after an hour
    python -m assurance.night --small               # a small share of each drill, by the same code
    python -m assurance.night --table               # write the table of docs/assurance/security.md anew

`assurance.programs` lists the drills. Each part is a separate process with a time limit, and its output is in
``build/night``. If a part objects, the others still run. When a part ends, its row goes into
``assurance/results.jsonl``: the commit that last changed the code, the date, the drill, the part, seconds, the outcome
and the figures. A part with a row of this commit and size does not run again, except with ``--again``; so an
interruption loses only the running part. A commit of comments and docstrings alone does not change the code. Tests are
part of the code only for drills that run them. The exit code is 1 if a part objected or ran out of time. Rows of
uncommitted code end in ``+``: their parts run again, and the table leaves them out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from assurance.programs import DRILLS, SIZES, Drill, program, summed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "assurance" / "results.jsonl"
LOGS = ROOT / "build" / "night"
PAGE = ROOT / "docs" / "assurance" / "security.md"
BEGIN, END = "<!-- night: python -m assurance.night --table -->\n", "<!-- end of night -->\n"
EVERY = (
    "dpframe",
    "assurance",
    "tests/covering.py",
    "tests/record",
    "pyproject.toml",
    ":(exclude)assurance/README.md",
    ":(exclude)assurance/night.py",
    f":(exclude){RESULTS.relative_to(ROOT).as_posix()}",
)
CODE = (*EVERY, ":(exclude)assurance/bugs")
RUN_TESTS = ("slow_tests", "mutants")  # programs that run the tests: these and the seeded bugs are part of their code
TESTS = (*EVERY, "tests", ":(exclude)tests/words.toml", ":(exclude)tests/project/test_night.py")
VERDICT = '{"objections":'  # start of the last line of a program
PASSED, OBJECTED, LATE = "passed", "objected", "out of time"
SAID = 200  # maximum characters of the last line of a program that objected


@dataclass(frozen=True)
class Row:
    """The result of one part of a drill."""

    commit: str
    date: str  # time of the end, UTC
    drill: str
    size: str
    part: int
    parts: int
    seconds: int
    outcome: str
    figures: dict[str, float] = field(default_factory=dict)
    said: str = ""  # the last line, if it did not pass


@dataclass(frozen=True)
class Part:
    """One command of a drill that has not run yet."""

    drill: Drill
    size: str
    place: int

    @property
    def of(self) -> int:
        return len(self.drill.commands(self.size))

    @property
    def command(self) -> str:
        return self.drill.commands(self.size)[self.place]

    def __str__(self) -> str:
        return self.drill.name if self.of == 1 else f"{self.drill.name}, part {self.place + 1} of {self.of}"


def main() -> int:
    options = _arguments()
    if options.table:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), table(rows(options.results))), encoding="utf-8")
        return 0
    size, started = "small" if options.small else "full", time.monotonic()
    chosen = [drill for drill in DRILLS if not options.only or any(word in drill.name for word in options.only)]
    if not chosen:
        print(f"No drill has such a name. There are: {', '.join(drill.name for drill in DRILLS)}")
        return 2
    commits = {drill.name: code(drill) for drill in chosen}
    known = [
        row
        for row in rows(options.results)
        if row.size == size and row.commit == commits.get(row.drill) and not (options.again or row.commit.endswith("+"))
    ]
    left = list(_left(chosen, size, known))
    print(f"{len(left)} parts to run at {' and '.join(sorted({*commits.values()}))}, {size}", flush=True)
    found: list[Row] = []
    try:
        for number, part in enumerate(left, start=1):
            changed = code(part.drill) != commits[part.drill.name]
            if changed or time.monotonic() - started > options.minutes * 60:
                print(f"Stopped before {part}: " + ("the code has changed" if changed else "the time is over"))
                break
            print(f"[{number} of {len(left)}] {part}: python -m assurance.{part.command}", flush=True)
            found.append(_run(part, commits[part.drill.name]))
            _kept(options.results, found[-1])
            print(f"    {found[-1].outcome} after {found[-1].seconds} s: {told([found[-1]])}", flush=True)
    except KeyboardInterrupt:
        print("Interrupted: the running part is lost. The same command goes on from there.")
        return 130
    wrong = [row for row in [*known, *found] if row.outcome != PASSED]
    print(f"{len(found)} parts ran; of {len(found) + len(known)} with a row {len(wrong)} did not pass", flush=True)
    return int(bool(wrong))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="drills whose name contains this")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further part after this time")
    parser.add_argument("--small", action="store_true", help="a small share of each drill")
    parser.add_argument("--again", action="store_true", help="run what has a row of this commit already, too")
    parser.add_argument("--table", action="store_true", help="write the table of the page anew, and run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of rows")
    return parser.parse_args()


def code(drill: Drill) -> str:
    """Return the commit that last changed the code of a drill; with a plus if there are uncommitted changes."""
    of = TESTS if program(drill.full[0]) in RUN_TESTS else CODE
    try:
        changes = _git("status", "--porcelain", "--", *of)
        commits = _git("log", "--format=%H", "--", *of).split()
        commit = next((commit for commit in commits if _changes_code(commit, of)), commits[-1])
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown+"
    return commit[:9] + "+" * bool(changes)


@cache
def _changes_code(commit: str, of: tuple[str, ...]) -> bool:
    """Return whether a commit changes more than comments, docstrings and layout."""
    changes = _git("diff-tree", "-r", "--no-commit-id", "--name-status", "--no-renames", commit, "--", *of)
    for change in changes.splitlines():
        status, name = change.split("\t")
        if status != "M" or not name.endswith(".py"):
            return True
        if _without_docstrings(_git("show", f"{commit}^:{name}")) != _without_docstrings(
            _git("show", f"{commit}:{name}")
        ):
            return True
    return False


def _without_docstrings(source: str) -> str:
    """Return the syntax tree of a file, in which every docstring is empty."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                first.value.value = ""
    return ast.dump(tree)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _left(chosen: Sequence[Drill], size: str, known: Sequence[Row]) -> Iterator[Part]:
    """Yield the parts that have no row yet, and whose requirements are installed."""
    done = {(row.drill, row.part) for row in known}
    for drill in chosen:
        if why_not := _missing(drill.needs):
            print(f"{drill.name}: cannot run here, {why_not}")
            continue
        for place in range(len(drill.commands(size))):
            if (drill.name, place) not in done:
                yield Part(drill, size, place)


def _missing(need: str) -> str | None:
    """Return why a drill cannot run here, or None."""
    from assurance import engines, postgres, power_loss

    reasons = {"postgres": postgres.missing, "spark": engines.why_no_spark, "strace": power_loss.missing}
    return reasons[need]() if need else None


def _run(part: Part, commit: str) -> Row:
    """Run a part in a new process, and end its children with it."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log, started, late = LOGS / f"{part.size} {part}.txt".replace(",", "").replace(" ", "-"), time.monotonic(), False
    command = [sys.executable, "-m", *shlex.split(f"assurance.{part.command}")]
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(part.drill.hours * 3_600)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
            process.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["nothing was said"]
    figures: dict[str, float] = next((json.loads(line) for line in reversed(lines) if line.startswith(VERDICT)), {})
    passed = process.returncode == 0 and figures.pop("objections", 1) == 0 and not late
    outcome = PASSED if passed else LATE if late else OBJECTED
    figures = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in figures.items()}
    said = "" if passed else lines[-1].replace(f"{ROOT}{os.sep}", "").strip()[:SAID]
    date, seconds = f"{datetime.now(UTC):%Y-%m-%d %H:%M}", round(time.monotonic() - started)
    return Row(commit, date, part.drill.name, part.size, part.place, part.of, seconds, outcome, figures, said)


def rows(results: Path) -> list[Row]:
    """Return all rows, in the order in which they were written."""
    return [Row(**json.loads(line)) for line in _whole_lines(results).splitlines()]


def _whole_lines(results: Path) -> str:
    """Return the text of the file, without an incomplete last line."""
    text = results.read_text(encoding="utf-8") if results.exists() else ""
    return text[: text.rfind("\n") + 1]


def _kept(results: Path, row: Row) -> None:
    """Append a row, so that two nights may run different drills at once."""
    facts = {name: value for name, value in asdict(row).items() if value not in ("", {})}
    size = len(_whole_lines(results).encode())
    with results.open("ab") as file:
        if file.tell() > size:
            file.truncate(size)
        file.write(f"{json.dumps(facts)}\n".encode())
        file.flush()
        os.fsync(file.fileno())


# The table


def runs(every: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows by drill, size and commit, each part once with its last outcome; the most recent run comes last."""
    found: dict[tuple[str, str, str], dict[int, Row]] = {}
    for row in every:
        if not row.commit.endswith("+"):
            key = (row.drill, row.size, row.commit)
            found[key] = found.pop(key, {}) | {row.part: row}
    return {key: [parts[place] for place in sorted(parts)] for key, parts in found.items()}


def whole(run: Sequence[Row]) -> bool:
    """Return whether every part of a run at full size has ended."""
    return run[0].size == SIZES[0] and len(run) == run[-1].parts


def table(every: Sequence[Row]) -> str:
    """Return a table with the newest complete run of each drill, and its newest run if that is another one."""
    lines = [
        "| drill | what it looks for | run | commit | date | minutes | found |",
        "|---|---|---|---|---|--:|---|",
    ]
    known = runs(every)
    for drill in DRILLS:
        mine = [run for (name, _, _), run in known.items() if name == drill.name]
        full = [run for run in mine if whole(run)]
        shown = [*full[-1:], *(run for run in mine[-1:] if run not in full[-1:])]
        if not shown:
            lines.append(f"| {drill.name} | {drill.finds} | not yet | | | | |")
        for place, run in enumerate(shown):
            last = max(run, key=lambda row: row.date)
            size = run[0].size if len(run) == last.parts else f"{run[0].size}, {len(run)} of {last.parts} parts"
            minutes = f"{sum(row.seconds for row in run) / 60:.1f}"
            head = f"| {drill.name} | {drill.finds}" if place == 0 else "| |"
            lines.append(f"{head} | {size} | `{last.commit}` | {last.date[:10]} | {minutes} | {told(run)} |")
    return "\n".join(lines) + "\n"


def told(run: Sequence[Row]) -> str:
    """Return the figures of a run as text, and the last lines of parts that did not pass."""
    drill = next((drill for drill in DRILLS if drill.name == run[0].drill), None)
    wrong = [f"**{row.outcome}**: {row.said}".replace("|", "/") for row in run if row.outcome != PASSED]
    figures = summed(row.figures for row in run if row.outcome == PASSED)
    words = drill.found.format(**figures) if drill is not None and figures else ""
    return "; ".join([words, *wrong] if words else wrong)


def written(page: str, text: str) -> str:
    """Return the page with this table."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no place for the table, which is between {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as with Ctrl-C, the running part ends too
    sys.exit(main())
