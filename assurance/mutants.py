"""Seeded privacy bugs: each is put into a copy of the package, and the tests named for it must fail.

    python -m assurance.mutants
    python -m assurance.mutants --only "noise" --markdown

Exits with 1 if a bug survives. The package itself is never changed. The system must support fork.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from assurance import share_of, symbols, verdict
from assurance.bugs import MUTANTS
from assurance.bugs.seeding import Mutant

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = symbols.PACKAGE
FOLDERS = (PACKAGE, "tests", "assurance", "benchmarks", "papers", "docs", "examples")
COPIED = (*FOLDERS, "pyproject.toml", "README.md", "CHANGELOG.md")
SAID = "said.txt"  # file in the copy with the output of pytest
FAILED = 1  # pytest's exit code if tests fail; a code other than 0 and 1 means that the run proves nothing
LONGEST, LONGEST_OF_ALL = 300, 3_600  # seconds, for the tests of one bug and for all tests without a bug
HEAVY = ("numpy", "scipy.special", "polars", "narwhals", "pyarrow", "mpmath", "sqlalchemy", "pandas")


@dataclass(frozen=True)
class Outcome:
    """The result for one mutant."""

    mutant: Mutant
    code: int
    seconds: float
    said: str

    @property
    def caught(self) -> bool:
        """True if a test failed, and not pytest itself."""
        return self.code == FAILED and self.said.startswith("FAILED")


def main() -> int:
    options = _arguments()
    for name in HEAVY:  # once, not for every bug
        if importlib.util.find_spec(name.split(".")[0]) is not None:
            importlib.import_module(name)
    named = [mutant for mutant in MUTANTS if options.only in f"{mutant.room}: {mutant.name}"]
    chosen = share_of(named, options.share)
    with tempfile.TemporaryDirectory() as folder:
        root = copied(Path(folder))
        if not options.skip_sound:
            _sound(root, chosen)
        outcomes = [_shown(outcome_of(mutant, root), root if options.output else None) for mutant in chosen]
    survivors = [found.mutant.name for found in outcomes if not found.caught]
    print(f"\n{len(outcomes) - len(survivors)} of {len(outcomes)} caught")
    if options.markdown:
        print("", *_markdown(outcomes), sep="\n")
    return verdict(len(survivors), bugs=len(outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the mutants whose room and name contain this")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="of these mutants, with K from 0 to N - 1")
    parser.add_argument("--skip-sound", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--output", action="store_true", help="print all that the tests of each bug say")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/assurance/security.md too")
    return parser.parse_args()


def copied(folder: Path) -> Path:
    """Copy the package and its tests to a folder whose files may be changed."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return folder


def seeded(mutant: Mutant, root: Path) -> dict[Path, str]:
    """Put the bug into the copy, and return the original text of every changed file."""
    sound: dict[Path, str] = {}
    for symbol, old, new in mutant.changes:
        definition = symbols.found(root, symbol)
        broken = symbols.replaced(definition, old, new)
        sound.setdefault(definition.file, definition.file.read_text(encoding="utf-8"))
        definition.file.write_text(broken, encoding="utf-8")
    return sound


def outcome_of(mutant: Mutant, root: Path) -> Outcome:
    """Seed one bug into the copy, run its tests, and remove it again."""
    sound = seeded(mutant, root)
    started = time.perf_counter()
    try:
        code, said = tested(mutant.tests, root, LONGEST)
    finally:
        for file, text in sound.items():
            file.write_text(text, encoding="utf-8")
    return Outcome(mutant, code, time.perf_counter() - started, said)


def tested(tests: tuple[str, ...], root: Path, longest: int) -> tuple[int, str]:
    """Run tests on the copy in a new process; return pytest's exit code and its last line."""
    said = root / SAID
    process = multiprocessing.get_context("fork").Process(target=_pytest, args=(tests, root, said))
    process.start()
    process.join(longest)
    if process.is_alive():
        process.kill()
        return -1, f"no end within {longest} s"
    lines = said.read_text(encoding="utf-8").strip().splitlines() or ["nothing was said"]
    failed = [line for line in lines if line.startswith("FAILED")]
    return int(process.exitcode or 0), (failed or lines)[-1]


def _pytest(tests: tuple[str, ...], root: Path, said: Path) -> None:
    """Run pytest in the child, which inherits the imported libraries, but not dpframe."""
    assert PACKAGE not in sys.modules
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(root)  # for processes that tests start; pytest itself reads pyproject.toml
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in [name for name in sys.modules if name.split(".")[0] == __package__]:
        del sys.modules[name]  # tests of the copy import the copy's modules
    sys.dont_write_bytecode = True
    with said.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests])
        sys.stdout.flush()
    os._exit(int(code))


def _sound(root: Path, chosen: list[Mutant]) -> None:
    """Stop if a test fails without a bug, because it would seem to catch every bug."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    code, said = tested(tuple(tests), root, LONGEST_OF_ALL)
    if code != 0:
        raise SystemExit(f"the tests must pass without a bug: {said}")
    print(f"without a bug {len(tests)} named tests or files pass: {said}\n")


def _shown(found: Outcome, root: Path | None) -> Outcome:
    """Print an outcome and return it; with `root`, print all output of its tests."""
    looked = found.code != 0 or " passed" in found.said
    verdict = "caught" if found.caught else f"SURVIVED (exit code {found.code})" if looked else "NOT RUN: tests skipped"
    print(f"{verdict:<10}{found.seconds:>6.1f} s  {found.mutant.room}: {found.mutant.name}\n{'':>20}{found.said}")
    if root is not None:
        print((root / SAID).read_text(encoding="utf-8"))
    sys.stdout.flush()
    return found


def _markdown(outcomes: list[Outcome]) -> list[str]:
    lines = ["| where | the bug | caught by |", "|---|---|---|"]
    for found in outcomes:
        caught = found.said.removeprefix("FAILED ").split(" - ")[0].split("[")[0].removeprefix("tests/")
        lines.append(f"| {found.mutant.room} | {found.mutant.name} | {f'`{caught}`' if found.caught else '**none**'} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
