"""How much code a release runs and how it is divided: figures of one traced call, and counts of the source.

    python -m tests.path        # today's figures, next to their ceilings and targets
    python -m tests.path --page # the files of a release in CONTRIBUTING.md, made anew

A traced figure counts calls of functions of dpframe in a fresh process, without lambdas, comprehensions and modules.
It is for Python 3.11, since later versions make no calls for comprehensions. Another query runs first and imports what
the call needs, so that *cold* is a plan that is made anew and *again* is the same call a second time. A turn is a call
on another floor (`tests/floors.py`) than the call before it. A member of a class is every name that its body binds.

Rooms of parts are those to which CONTRIBUTING.md invites a file for each new part. `HELD` are ceilings: if you lower a
figure, lower its ceiling too. A change with another purpose may raise a figure of the path by at most 2 files and 10
functions, and must say so.
"""

from __future__ import annotations

import ast
import json
import os
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.floors import CONTRIBUTING, ROOMS, ROOT
from tests.sources import FILES, PACKAGE, nodes_of

UNNAMED = {"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"}
NUMBERS = range(20_000)
COLUMNS = {  # cells of very different sizes, so that noise does not change the path of a denoiser
    "age": [(i * i // 7) % 101 * (i % 5) // 4 for i in NUMBERS],
    "cost": [i * i * 7.5 % 1009 for i in NUMBERS],
    "ward": ["ABC"[0 if i % 100 else i % 3] for i in NUMBERS],
}
FIGURES = ("files", "functions", "turns")
OF_PARTS = ("queries/statistics", "mechanisms", "denoise", "accounting", "local", "cli")
BEGIN, END = "<!-- path: python -m tests.path --page -->\n", "<!-- end of path -->\n"

# What is counted: its ceiling and its target. Other rows, bins and noise change the path by a few.
HELD: dict[str, tuple[float, float]] = {
    "histogram, cold: files": (45, 36),
    "histogram, cold: functions": (308, 220),
    "histogram, cold: turns": (188, 100),
    "histogram, again: files": (41, 32),
    "histogram, again: functions": (197, 150),
    "agg of three, cold: files": (57, 46),
    "agg of three, cold: functions": (431, 290),
    "agg of three, checked, cold: files": (61, 46),
    "agg of three, checked, cold: functions": (477, 290),
    "files outside the rooms of parts": (177, 138),  # of 200 in all
    "share of import lines, in percent": (5.9, 5.5),
    "members of Statistic": (10, 10),
    "members of Query": (13, 13),
    "members of Total": (7, 7),
    "members of Statistic that at most one class overrides": (0, 0),
    "files of streams": (4, 4),
    "rooms of streams": (1, 1),
}
AT_LEAST: dict[str, tuple[float, float]] = {"lines of the median file": (220, 220)}


def traced() -> dict[str, float]:
    """Return the figures of each call, traced in a process of its own."""
    figures: dict[str, float] = {}
    for name in ("histogram", "agg of three", "agg of three, checked"):
        for when, calls in called(name).items():
            floors = [floor_of(file) for file, _ in calls]
            counts = (len({file for file, _ in calls}), len(set(map(tuple, calls))), _turns(floors))
            figures |= {f"{name}, {when}: {what}": count for what, count in zip(FIGURES, counts, strict=True)}
    return figures


def called(name: str) -> dict[str, list[list[str]]]:
    """Return the files and functions that a query calls, in their order, from a process of its own."""
    command = [sys.executable, "-m", "tests.path", "--trace", name]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def with_path(text: str) -> str:
    """Return a page with the files that a histogram visits between its two marks, by room in order of first visit."""
    rooms: dict[str, dict[str, None]] = {}
    for file, _ in called("histogram")["cold"]:
        rooms.setdefault(Path(file).parts[0], {})[file] = None
    lines = [f"{file:<32} {_said(file)}".rstrip() + "\n" for files in rooms.values() for file in files]
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{''.join(['```', chr(10), *lines, '```', chr(10)])}{END}{rest.split(END)[1]}"


def _said(file: str) -> str:
    """Return the beginning of a file's docstring, as far as it fits the line."""
    (module, *_) = nodes_of(PACKAGE / file)
    assert isinstance(module, ast.Module)
    said = ast.get_docstring(module) or ""
    first = " ".join(said.split("\n\n")[0].split()).rstrip(".")
    while len(first) > 84 and (shorter := max(first.rfind(mark) for mark in (": ", "; ", ", ", ". "))) > 0:
        first = first[:shorter]
    return first


def floor_of(file: str) -> float:
    """Return the floor of a file of the package."""
    room = Path(file).parts[0].removesuffix(".py")
    return ROOMS[room][0]


def _turns(floors: list[float]) -> int:
    return sum(one != other for one, other in pairwise(floors))


def _trace(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the calls of functions of dpframe, in their order, of a query and of the same query again."""
    import polars as pl

    import dpframe as dpf
    from tests.repeated_bits import repeated

    frame, ledger = pl.DataFrame(COLUMNS), dpf.Ledger(epsilon=100)

    def histogram(column: str, last: int) -> Any:
        return frame.dp.histogram(column, bins=range(0, last + 1, 10), epsilon=1, ledger=ledger)

    def three(wards: list[str], checks: Any = False) -> Any:
        asked = {"n": dpf.count(), "total": dpf.sum("cost", bounds=(0, 100)), "mean": dpf.mean("age", bounds=(0, 100))}
        return frame.dp.group_by("ward", keys=wards).agg(**asked, epsilon=1, checks=checks, ledger=ledger)

    first, asked = {
        "histogram": (lambda: histogram("cost", 60), lambda: histogram("age", 100)),
        "agg of three": (lambda: three(["A", "B"]), lambda: three(["A", "B", "C"])),
        "agg of three, checked": (lambda: three(["A", "B"], "auto"), lambda: three(["A", "B", "C"], "auto")),
    }[name]
    with repeated("path"):  # the path of a denoiser and the warnings of checks depend on the noise
        first()
        return {when: _calls_of(asked) for when in ("cold", "again")}


def _calls_of(ask: Any) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    package = f"{PACKAGE}{os.sep}"

    def event(frame: Any, kind: str, _: object) -> None:
        code = frame.f_code
        if kind == "call" and code.co_filename.startswith(package) and code.co_name not in UNNAMED:
            calls.append((code.co_filename.removeprefix(package).replace(os.sep, "/"), code.co_qualname))

    sys.setprofile(event)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return calls


def counted() -> dict[str, float]:
    """Return the counts of the source."""
    lines = [file.read_text(encoding="utf-8").count("\n") for file in FILES]
    imports, classes = 0, []
    for file in FILES:
        for node in nodes_of(file):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, ast.ClassDef):
                classes.append(node)
    members = {
        name: members_of(next(one for one in classes if one.name == name)) for name in ("Statistic", "Query", "Total")
    }
    made = [members_of(one) for one in made_of(classes, "Statistic")]
    of_streams = [file.relative_to(PACKAGE) for file in FILES if "stream" in file.relative_to(PACKAGE).as_posix()]
    rarely = [name for name in members["Statistic"] if sum(name in body for body in made) <= 1]
    return {
        "files": len(FILES),
        "files outside the rooms of parts": len([file for file in FILES if not _is_part(file.relative_to(PACKAGE))]),
        "lines of the median file": statistics.median(lines),
        "share of import lines, in percent": round(100 * imports / sum(lines), 2),
        **{f"members of {name}": len(names) for name, names in members.items()},
        "members of Statistic that at most one class overrides": len(rarely),
        "files of streams": len(of_streams),
        "rooms of streams": len({file.parts[0] for file in of_streams}),
    }


def _is_part(file: Path) -> bool:
    return any(room in (file.parts[0], file.parent.as_posix()) for room in OF_PARTS)


def members_of(kind: ast.ClassDef) -> set[str]:
    """Return the names that the body of a class binds."""
    names: set[str] = set()
    for node in kind.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def made_of(classes: list[ast.ClassDef], base: str) -> list[ast.ClassDef]:
    """Return the classes that derive from a class, at any distance."""
    known, found = {base}, []
    while more := [one for one in classes if one not in found and known & {getattr(b, "id", "") for b in one.bases}]:
        found += more
        known |= {one.name for one in more}
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        print(json.dumps(_trace(sys.argv[2])))
    elif sys.argv[1:] == ["--page"]:
        CONTRIBUTING.write_text(with_path(CONTRIBUTING.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        for what, figure in {**traced(), **counted()}.items():
            held, goal = {**HELD, **AT_LEAST}.get(what, ("-", "-"))
            print(f"{what:<56} {figure:>8} held {held:>6} goal {goal:>5}")
