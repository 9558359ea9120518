"""Plain tables: as wide as their content, or no wider than the window in a terminal."""

from __future__ import annotations

import io
import math
import os
import sys

import polars as pl
import pytest

import dpframe as dpf
from dpframe.display import pages

HEADER = ("label", "query", "cost")
ROWS = [("wards", "count() by ward: 12 declared keys x sex: 2 declared keys", "epsilon 0.5"), ("", "count()", "+-6")]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function that simulates a terminal of a given width."""

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


@pytest.mark.parametrize("value", [1 / 3, 1.00049, 0.050594, 12_345.2, 99_999.3, 3e-7, 1.23e20, 0.1, 4.0])
def test_what_is_promised_is_rounded_up(value):
    said = float(pages.margin(value).replace(",", ""))
    assert value * (1 - 1e-11) <= said <= value * 1.001
    assert value * (1 - 1e-11) <= pages.at_least(value, 4) <= value * 1.001


@pytest.mark.parametrize("value", [1 / 3, 1.00049, 12_345.2, 12_345.8, 1.2341e15, 1.23456e-5, 4.0])
def test_the_ends_of_an_interval_are_rounded_outward(value):
    for exact in (value, -value):
        low, high = (float(write(exact).replace(",", "")) for write in (pages.lower_end, pages.margin))
        assert low - 1e-11 * value <= exact <= high + 1e-11 * value
        assert high - low <= 2e-3 * value
    assert (pages.lower_end(0.0), pages.lower_end(-math.inf), pages.lower_end(math.nan)) == ("0", "-inf", "-")


def test_every_display_says_no_less_than_the_cost_and_the_margin(tmp_path):
    """A third is shown as 0.3334 to four digits: 0.3333 would claim more privacy than was given."""
    rows = pl.DataFrame({"ward": ["A", "B"] * 50, "x": [1.0, 2.0] * 50})
    price = {"epsilon": 1 / 3, "delta": 1.23456e-6, "mechanism": "gaussian", "checks": False}
    asked = rows.dp.group_by("ward", keys=["A", "B"])
    found = asked.count(ledger=dpf.Ledger(epsilon=1, delta=1e-5, accounting="basic"), denoise=None, **price)
    found.dp.write_html(tmp_path / "page.html", charts=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = [found.dp.statement(), found.dp.total().dp.statement(), found.dp.table("markdown"), page]
    for text in words:
        assert "0.3333 " not in text
        assert "0.333333," not in text
        assert "0.3334" in text or "0.333334" in text
    assert "1.24e-06" in words[2]
    exact = found.dp.errors()["interval"][0]
    said = words[0].partition("margin of error (95%) of count is ")[2].partition(" ")[0].rstrip(".")
    assert float(said) >= exact * (1 - 1e-11)
