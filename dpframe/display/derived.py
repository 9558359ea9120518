"""Words on what was computed from releases: a paragraph, and a section of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display.pages import number
from dpframe.display.report import Section, facts_list, paragraph
from dpframe.display.result_page import shown, title_of
from dpframe.display.result_tables import Table, kinds_of, source
from dpframe.display.statements import subject
from dpframe.errors import harmless, listed
from dpframe.frames import build
from dpframe.privacy import PrivacyUnit, noun_of
from dpframe.queries.contributions import POPULATION
from dpframe.queries.query import ERROR

EVERYTHING = "For {count} of {rows} rows of {name} the noise leaves nothing to be said."


def statement_of(facts: Mapping[str, Any], frame: Any, unit: str | None = None) -> str:
    """Sentences on what was computed from which releases, how they are protected, and how far to trust each number."""
    one = unit or noun_of(facts["unit"]["column"])
    sentences = [f"{facts['warning']}."] if "warning" in facts else []
    sentences += [
        f"This is {_subject(facts)}, {facts['said']}.",
        f"It uses published numbers alone, whose noise protects each {one}; so it reveals no more than they do.",
    ]
    if facts["verb"] == "chi2":
        sentences.append(_test_words(frame))
    for name in facts["measures"] if facts["verb"] != "chi2" else ():
        errors = build.numbers(frame, name + ERROR)
        for kind, rows in kinds_of(build.rows(frame), facts).items():
            sentences += _accuracy(f"{name} of {kind}" if kind else name, errors[rows].tolist(), facts)
    return harmless(" ".join([*sentences, *(f"Note: {note}." for note in facts["notes"])]))


def _subject(facts: Mapping[str, Any]) -> str:
    if facts["verb"] == "chi2":
        return "a test of whether two columns are independent"
    article = "the " if facts["kind"] == "changed" else ""
    return article + subject(listed([one["words"] for one in facts["measures"].values()]), facts)


def _test_words(frame: Any) -> str:
    """The result of a test of independence, as a sentence."""
    p_value, degrees = (float(build.numbers(frame, name)[0]) for name in ("p_value", "degrees"))
    return (
        f"If the columns were independent, a table at least as far from independence would have probability "
        f"{p_value:.2g} ({degrees:.0f} degree{'' if degrees == 1 else 's'} of freedom), noise and sampling included."
    )


def _accuracy(name: str, errors: Sequence[float], facts: Mapping[str, Any]) -> list[str]:
    confidence, what = facts["confidence"], "cases the noise moves"
    if facts["covers"] == POPULATION:
        what = "samples noise and sampling together move"
    known = [error for error in errors if math.isfinite(error)]
    said = []
    if known:
        least, most = number(min(known)), number(max(known))
        sizes = most if least == most else f"{least} to {most}, depending on the row"
        said.append(f"In {100 * confidence:g} of 100 {what} {name} by at most {sizes}.")
    if len(known) < len(errors):
        said.append(EVERYTHING.format(count=len(errors) - len(known), rows=len(errors), name=name))
    return said


def section(facts: Mapping[str, Any], table: Table, frame: Any, chart: Any) -> Section:
    """The section of a page, which says the notes at another place."""
    statement = statement_of({**facts, "notes": []}, frame)
    return Section(
        title_of(facts),
        facts["label"],
        "".join((paragraph(facts["warning"], "warning") if "warning" in facts else "", paragraph(statement))),
        shown(table, chart, table.notes),
        tuple(note for note in table.notes if note not in (harmless(source(facts)), *facts["notes"])),
        "",
        (),
        tuple(facts["notes"]),
        "rows" if facts["unit"]["column"] is None else f"units ({noun_of(facts['unit']['column'])})",
        f"no cost: it is computed from releases; it protects {PrivacyUnit.of_facts(facts['unit'])}",
        facts_list(_protection(facts)),
        dict(facts),
        covers=str(facts["covers"]),
    )


def _protection(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    releases = "\n".join(
        f"{one['name']}: {one['label'] or 'without a label'}, epsilon {one['cost']['epsilon']:.6g}, "
        f"numbers {one['sha256'][:12]}"
        for one in facts["of"]
    )
    return [
        ("Cost", "none: it is computed from releases"),
        ("Releases", releases),
        ("Protects", str(PrivacyUnit.of_facts(facts["unit"]))),
        ("Hash of the numbers", str(facts["sha256"])),
        ("Computed by", f"dpframe {facts['dpframe']}"),
    ]
