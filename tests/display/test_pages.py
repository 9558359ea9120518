"""Plain tables for terminals: as wide as they are, or no wider than the terminal."""

from __future__ import annotations

import io
import os
import sys

import polars as pl
import pytest

import dpframe as dpf
from dpframe.display import pages

HEADER = ("label", "query", "cost")
ROWS = [("wards", "count() by ward: 12 declared keys x sex: 2 declared keys", "epsilon 0.5"), ("", "count()", "+-6")]


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A way to have a terminal of so many characters."""

    def of(columns, encoding="utf-8"):
        stream = Terminal()
        monkeypatch.setattr(Terminal, "encoding", encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))

    return of


def words(text):
    return sorted(text.split())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1234.56, "1,235"),
        (1.0, "1"),
        (0.5, "0.5"),
        (0.99996, "1"),
        (0.0123456, "0.01235"),
        (-0.00149, "-0.00149"),
        (0.000123456, "0.0001235"),
        (0.0, "0"),
        (float("inf"), "inf"),
        (float("nan"), "-"),
    ],
)
def test_numbers_have_four_digits_that_tell(value, said):
    assert pages.number(value) == said


def test_without_a_terminal_a_line_is_as_long_as_it_is():
    table = pages.text_table(HEADER, ROWS)
    assert len(table.splitlines()) == 4
    assert "+-6" in table


@pytest.mark.parametrize("columns", [40, 50, 60, 200])
def test_in_a_terminal_no_line_is_longer_and_no_word_is_lost(terminal, columns):
    whole = pages.text_table(HEADER, ROWS)
    terminal(columns)
    table = pages.text_table(HEADER, ROWS)
    assert max(map(len, table.splitlines())) <= columns
    assert words(table.replace("-", "")) == words(whole.replace("+-6", "±6").replace("-", ""))
    assert "±6" in table


def test_a_terminal_without_unicode_has_two_signs(terminal):
    terminal(60, "ascii")
    assert "+-6" in pages.text_table(HEADER, ROWS)


def test_ledgers_and_plans_fit_the_terminal(terminal):
    people = pl.DataFrame({"ward": ["A", "B"] * 50, "age": [30.0, 60.0] * 50})
    ledger = dpf.Ledger(epsilon=3)
    keys = {"ward": ["A", "B"], "age": [30.0, 60.0]}
    people.dp.group_by("ward", "age", keys=keys).count(
        epsilon=0.5, label="A label of many words for this", ledger=ledger
    )
    plan = people.dp.preview.group_by("ward", "age", keys=keys).count(epsilon=0.5, ledger=ledger)
    terminal(60)
    table = repr(ledger).split("\n\n")[-1], repr(plan).split("\n\n")[-1]
    assert max(len(line) for one in table for line in one.splitlines()) <= 60
    assert "±" in table[1]
