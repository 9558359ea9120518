"""Texts for users have standard terms, short sentences and short pages; `tests/words.py` explains what is counted."""

from __future__ import annotations

import re

import pytest

from tests import words

NAV = (words.ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_no_page_and_no_message_is_over_its_ceiling():
    assert words.over() == []


def test_every_ceiling_is_of_something_that_is_there_and_falls():
    """A ceiling far above its figure was not lowered with it: run `python -m tests.words --write`."""
    held, found = words.ceilings(), words.figures()
    lengths = held.pop("length")
    assert set(held) <= {*words.pages(), *words.rooms()}
    slack = {
        (name, figure): count - found.get(name, {}).get(figure, 0)
        for name, of in held.items()
        for figure, count in of.items()
    }
    assert {name: more for name, more in slack.items() if more > 10} == {}
    assert set(lengths) <= {*words.pages(), *(f"section {name}" for name in words.SECTIONS)}


def test_the_readme_has_nothing_to_mend():
    assert "README.md" not in words.ceilings()
    assert words.lengths()["README.md"] <= 900


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"([\w-]+(?:/[\w-]+)*\.md)$", NAV, re.MULTILINE)
    own = [name for name in listed if not name.startswith("project/")]
    assert sorted(own) == sorted(name.removeprefix("docs/") for name in words.pages() if name != "README.md")
    sections = {words.section_of(name) for name in words.pages()}
    assert sections == {*words.SECTIONS, *words.FREE}


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("You pay a price.", ["words", "words"]),
        ("`price` and [the file](pay/price.md) are names.", []),
        ("word " * 31 + ".", ["sentences"]),
        ("word " * 20 + ".\n\n" + "word " * 20, []),
        ("- " + "word " * 20 + "\n- " + "word " * 20, []),
        ("| " + "word " * 20 + "| " + "word " * 20 + "|", []),
        ("# One two three four five six seven", ["headings"]),
        ("```\n" + "x" * 85 + "\nprice\n```", ["code"]),
        ("Bounds of contribution", ["words"]),
        ("A paying guest sits besides.", ["words"]),
    ],
)
def test_each_figure_counts_what_it_says(text, figures):
    assert [one.figure for one in words.found_in_page(text)] == figures


def test_messages_and_docstrings_are_counted_and_names_are_not():
    source = 'def price(pay):\n    """Pay `price`."""\n    raise E(f"the price of {pay}", "price")'
    assert [one.text for one in words.found_in_source(source)] == ["Pay", "price"]


def test_a_message_of_over_thirty_words_is_counted_and_its_values_are_one_word_each():
    source = 'def refuse(x):\n    raise {}(f"{{x + 1}} {}")'
    assert words.found_in_source(source.format("InvalidArgument", "word " * 29)) == []
    assert [one.figure for one in words.found_in_source(source.format("InvalidArgument", "word " * 30))] == ["messages"]
    assert words.found_in_source(source.format("ValueError", "word " * 30)) == []  # not an error of dpframe
    table = "[part.{}]\nwords = {}\n"
    said = table.format("short", '"word"') + table.format("long", "[" + '"word", ' * 16 + "]")
    assert [one.text[:9] for one in words.found_in_refusals(said)] == ["part.long"]
