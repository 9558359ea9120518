"""The list of seeded bugs still fits the code, and a sample of them is caught (``assurance/mutants.py``)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from assurance import mutants
from assurance.mutants_listed import MUTANTS

SAMPLE = ("weights shaved to the wrong side", "a limit that may be passed by a billionth")
TESTS = Path(__file__).parent


def test_there_are_enough_of_them_and_each_has_a_name():
    names = Counter(mutant.name for mutant in MUTANTS)
    assert len(MUTANTS) >= 40
    assert set(names.values()) == {1}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_bug_fits_the_code_and_names_tests_that_exist(mutant):
    for old, new in mutant.changes:
        assert len(mutants.places(mutants.ROOT, old)) == 1
        assert old != new
    assert mutant.tests
    for test in mutant.tests:
        file, *names = test.removeprefix("tests/").split("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names), test


def test_the_document_lists_every_bug():
    page = (mutants.ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert [mutant.name for mutant in MUTANTS if f"| {mutant.name} |" not in page] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_is_caught(name):
    words = [sys.executable, "-m", "assurance.mutants", "--skip-sound", "--only", name]
    found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=mutants.ROOT)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "1 of 1 caught" in found.stdout
