"""Searches for the words of the field lead to the right pages, ranked like the search of the site.

The ranking simplifies that of the theme: it weighs headings (a thousand times) and text of sections, matches words by
prefix, and prefers the start of a page and sections with every word. It reads the pages, so no site has to be built.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from tests import words

SEARCHES = {
    "confidence interval": "guide/errors",
    "contribution bound": "guide/contribution-bounds",
    "choosing epsilon": "start/choosing-epsilon",
    "count distinct": "cookbook/distinct-values",
    "neighbouring": "concepts/glossary",
    "neighbors": "concepts/privacy",
    "FAQ": "help/faq",
    "troubleshooting": "operate/troubleshooting",
    "deploy": "operate/deployment",
    "synthetic data": "help/faq",
    "A/B test": "cookbook/time",
    "retention": "cookbook/time",
    "moving average": "cookbook/time",
    "unit test": "cookbook/test-a-pipeline",
    "Airflow": "cookbook/pipelines",
    "partition selection": "guide/found-keys",
    "clamp": "guide/bounds",
    "zCDP": "help/faq",
    "user-level": "concepts/glossary",
    "marginals": "guide/marginals",
    "local differential privacy": "guide/local",
    "threat model": "concepts/limits",
    "data protection officer": "operate/data-protection-officer",
    "top k": "cookbook/groups",
    "crosstab": "cookbook/groups",
    "OpenDP": "compare/opendp",
    "citation": "help/citation",
    "GitHub Actions": "cookbook/pipelines",
    "privacy budget": "guide/budgets",
    "composition": "concepts/composition",
    "margin of error": "guide/errors",
    "survey weights": "guide/statistics",
    "year over year": "cookbook/time",
    "Excel": "cookbook/publish",
    "GDPR": "operate/data-protection-officer",
    "migrate": "compare/index",
}
ENDING = re.compile(r"(?:ing|ment|ed|es|s|e|ies|y)$")  # the suffixes that a simple stemmer removes


class Section(NamedTuple):
    """A heading and the text below it, as the index of the site holds them."""

    page: str
    is_start: bool
    title: Counter[str]
    text: Counter[str]


def tokens(text: str) -> list[str]:
    """Return the words of a text without their endings."""
    shown = re.sub(r"\]\([^)]*\)", " ", text).lower()
    found = [re.sub(r"^\W+|\W+$", "", word) for word in re.split(r"[\s\-]+", shown)]
    return [ENDING.sub("", word) if len(word) > 4 else word for word in found if word]


@cache
def sections() -> list[Section]:
    """Return all sections of all pages, without the blocks of code."""
    found = []
    for name, page in words.pages().items():
        if not name.startswith("docs/"):
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for number, part in enumerate(re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]):
            title, _, rest = part.partition("\n")
            place = name.removeprefix("docs/").removesuffix(".md")
            found.append(Section(place, number == 0, Counter(tokens(title)), Counter(tokens(rest))))
    return found


def ranked(query: str) -> list[str]:
    """Return the pages that the search shows for a query, the best first."""
    asked = tokens(query)
    every = sections()
    long_title = sum(one.title.total() for one in every) / len(every)
    long_text = sum(one.text.total() for one in every) / len(every)

    def hits(counts: Counter[str], word: str) -> int:
        return sum(count for one, count in counts.items() if one.startswith(word))

    weights = {}
    for word in asked:
        holding = sum(1 for one in every if hits(one.title, word) or hits(one.text, word))
        weights[word] = math.log(1 + (len(every) - holding + 0.5) / (holding + 0.5))
    scores: dict[str, float] = {}
    for one in every:
        score, found = 0.0, 0
        for word in asked:
            title, text = hits(one.title, word), hits(one.text, word)
            found += bool(title or text)
            for count, length, usual, boost in (
                (title, one.title.total(), long_title, 1_000.0),
                (text, one.text.total(), long_text, 1.0),
            ):
                score += boost * weights[word] * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length / usual))
        score *= 1 + (one.is_start + (found == len(asked))) ** 2
        scores[one.page] = max(scores.get(one.page, 0.0), score)
    return sorted((page for page in scores if scores[page] > 0), key=lambda page: -scores[page])


@pytest.mark.parametrize("query", SEARCHES)
def test_a_search_leads_to_the_right_page(query):
    assert SEARCHES[query] in ranked(query)[:3]


def test_a_search_for_what_is_nowhere_finds_nothing():
    assert ranked("xylophone") == []
