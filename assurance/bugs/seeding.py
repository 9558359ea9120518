"""A seeded bug: the symbol, the change, and the tests that must catch it.

A change names the symbol that contains a text (``assurance.symbols``), the text, which occurs there once, and its
replacement. The list stays valid when files move or other code changes; ``tests/project/test_mutants.py`` finds
entries that no longer fit the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Change = tuple[str, str, str]  # symbol, old text, new text


@dataclass(frozen=True)
class Mutant:
    """One bug: a few replacements in the package, and the tests that are run against it."""

    room: str
    name: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]


def bug(room: str, name: str, symbol: str, old: str, new: str, *tests: str) -> Mutant:
    """Make a bug of one change."""
    return bugs(room, name, ((symbol, old, new),), *tests)


def bugs(room: str, name: str, changes: tuple[Change, ...], *tests: str) -> Mutant:
    """Make a bug of several changes."""
    return Mutant(room, name, changes, tuple(map(_placed, tests)))


REGISTER = "test_register.py"
ATTAINED = "test_sensitivity.py::test_one_row_attains_the_bound"
HEAVY = "test_sensitivity.py::test_a_unit_of_many_rows_stays_within_the_bound"
PEOPLE = f"{REGISTER}::test_55_61_and_63_one_person_reaches_no_farther_than_charged_for"


def _placed(test: str) -> str:
    """Return a test with the folder of its file, whose name must be unique."""
    file, *names = test.split("::")
    (found,) = ROOT.glob(f"tests/**/{file}")
    return "::".join([found.relative_to(ROOT).as_posix(), *names])
