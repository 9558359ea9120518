"""The list of seeded bugs still fits the code, and tests detect a sample of them (``assurance/mutants.py``)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from assurance import mutants, symbols
from assurance.bugs import MUTANTS

SAMPLE = ("weights shaved to the wrong side", "a limit that may be passed by a billionth")
TESTS = Path(__file__).parents[1]


def test_there_are_enough_of_them_and_each_has_a_name():
    names = Counter(mutant.name for mutant in MUTANTS)
    assert len(MUTANTS) >= 40
    assert set(names.values()) == {1}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_bug_fits_the_code_and_names_tests_that_exist(mutant):
    for symbol, old, new in mutant.changes:
        found = symbols.found(mutants.ROOT, symbol)
        assert symbols.replaced(found, old, new) != found.file.read_text(encoding="utf-8")
    assert mutant.tests
    for test in mutant.tests:
        file, *names = test.removeprefix("tests/").split("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names), test


@pytest.fixture
def package(tmp_path):
    """A package of two files: both define `twice`; `add` is a function in one, and a method in the other."""
    folder = tmp_path / "dpframe"
    folder.mkdir()
    (folder / "one.py").write_text("SCALE = 1\n\n\ndef twice(x):\n    return x + x\n\n\ndef add(x):\n    return x\n")
    (folder / "two.py").write_text(
        "class Sum:\n    def add(self):\n        return 1\n\n\ndef twice(x):\n    return 2 * x\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("symbol", "file", "lines"),
    [("SCALE", "one", (1, 1)), ("Sum", "two", (1, 3)), ("Sum.add", "two", (2, 3)), ("two.twice", "two", (6, 7))],
)
def test_a_symbol_is_found_whatever_file_it_is_in(package, symbol, file, lines):
    found = symbols.found(package, symbol)
    assert (found.file.stem, (found.first, found.last)) == (file, lines)


@pytest.mark.parametrize(("symbol", "many"), [("twice", 2), ("add", 2), ("nothing", 0), ("dd", 0)])
def test_a_symbol_names_one_definition(package, symbol, many):
    with pytest.raises(LookupError, match=f"not {many}"):
        symbols.found(package, symbol)


def test_a_text_stands_once_in_its_symbol(package):
    found = symbols.found(package, "one.twice")
    assert "return 3 * x\n\n\ndef add" in symbols.replaced(found, "x + x", "3 * x")
    for old, many in (("x", 3), ("2 * x", 0)):
        with pytest.raises(LookupError, match=f"not {many} times"):
            symbols.replaced(found, old, "y")


def test_a_name_that_is_defined_for_two_systems_is_one_symbol(package):
    text = "if POSIX:\n    def lock():\n        return 1\nelse:\n    def lock():\n        return 2\n"
    (package / "dpframe" / "three.py").write_text(text)
    found = symbols.found(package, "lock")
    assert (found.first, found.last) == (2, 6)
    assert "return 3\nelse" in symbols.replaced(found, "return 1", "return 3")


def test_several_changes_are_made_one_after_another_and_taken_back(package):
    bug = mutants.Mutant("room", "two", (("SCALE", "= 1", "= (\n    1)"), ("one.twice", "x + x", "x")), ())
    before = {file: file.read_text() for file in (package / "dpframe").glob("*.py")}
    sound = mutants.seeded(bug, package)
    text = (package / "dpframe" / "one.py").read_text()
    assert text.startswith("SCALE = (\n    1)\n\n\ndef twice(x):\n    return x\n")
    assert sound == {package / "dpframe" / "one.py": before[package / "dpframe" / "one.py"]}


def test_the_document_lists_every_bug():
    page = (mutants.ROOT / "docs" / "assurance" / "security.md").read_text(encoding="utf-8")
    assert [mutant.name for mutant in MUTANTS if f"| {mutant.name} |" not in page] == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_is_caught(name):
    words = [sys.executable, "-m", "assurance.mutants", "--skip-sound", "--only", name]
    found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=mutants.ROOT)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "1 of 1 caught" in found.stdout
