"""The path of a release and the structure of the source do not grow; `tests/path.py` explains each figure."""

from __future__ import annotations

import ast
import sys

import pytest

from tests import path
from tests.floors import CONTRIBUTING
from tests.path import AT_LEAST, HELD

OF_PATH = [name for name in HELD if ":" in name]


@pytest.fixture(scope="module")
def traced():
    return path.traced()


@pytest.fixture(scope="module")
def counted():
    return path.counted()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="later versions have no calls for comprehensions")
@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PATH)
def test_the_path_of_a_release_does_not_grow(name, traced):
    assert traced[name] <= HELD[name][0]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="later versions have no calls for comprehensions")
@pytest.mark.slow
def test_the_page_for_contributors_has_the_files_of_a_release():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert text == path.with_path(text), "write it anew: python -m tests.path --page"


@pytest.mark.parametrize("name", [name for name in HELD if ":" not in name])
def test_the_source_is_cut_into_no_more_pieces(name, counted):
    assert counted[name] <= HELD[name][0], "held by HELD in tests/path.py"


@pytest.mark.parametrize("name", AT_LEAST)
def test_files_do_not_become_smaller(name, counted):
    assert counted[name] >= AT_LEAST[name][0]


@pytest.mark.parametrize("name", {**HELD, **AT_LEAST})
def test_no_ceiling_is_beyond_its_goal(name):
    held, goal = {**HELD, **AT_LEAST}[name]
    assert held <= goal if name in AT_LEAST else held >= goal


def test_what_is_traced_is_a_release():
    calls = path._trace("histogram")
    assert all(("release/path.py", "release") in called for called in calls.values())
    assert not any(name in path.UNNAMED for called in calls.values() for _, name in called)
    files = {file for called in calls.values() for file, _ in called}
    assert {"accessor/private_frame.py", "ledger/ledger.py"} <= files
    assert all((path.PACKAGE / file).is_file() for file in files)


def test_a_member_is_every_name_that_the_body_of_a_class_binds():
    (kind,) = ast.parse(
        "class A(B):\n    x: int = 1\n    y = 2\n    def _z(self): ...\n    def __str__(self): ..."
    ).body
    assert path.members_of(kind) == {"x", "y", "_z", "__str__"}


def test_subclasses_are_found_at_any_distance():
    classes = ast.parse("class A: ...\nclass C(B): ...\nclass B(A): ...\nclass D: ...").body
    assert {kind.name for kind in path.made_of(classes, "A")} == {"B", "C"}


def test_a_turn_is_a_call_on_another_floor():
    assert path._turns([7, 7, 2, 2, 7]) == 2
    assert path.floor_of("release/path.py") == 7
    assert path.floor_of("exact.py") == 0.5
