"""A report: one HTML file that holds all it shows, what was found first, and how it was made in an appendix.

It fetches nothing, links nowhere else and runs no script. The appendix is folded on a screen and whole on paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpframe._version import VERSION
from dpframe.display.report_page import (
    STYLE,
    data,
    heading,
    items,
    paragraph,
    plain_table,
    scrolling,
    text,
)
from dpframe.errors import capital
from dpframe.queries.samples import POPULATION, TABLE

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"  # browsers hold it to this
)
ERRORS = ("number", "by", "95% margin of error", "noise (standard deviation)", "adjusted: typical error")
NOISE = (
    "A margin of error (±) is half the width of the 95% confidence interval of the noise: in 95 of 100 cases the noise "
    "stays within it."
)
NOT_COVERED = "The margins of error do not include what was left out."
SAMPLE = (
    "The numbers describe the {rows} in the table. If these are a sample of a larger population, groups also differ by "
    "chance, and the margins of error do not include that."
)
COUNTED = "The margins of error of {titles} include the noise and the chance of who is in the data."
MORE = "Show how these numbers were made: noise, cost, records"


@dataclass(frozen=True)
class Section:
    """The words and pictures of one release in a page, by the place where they stand.

    Parameters
    ----------
    title : str
        Its heading.
    label : str or None
        The label of the release, by which own words and an order name it.
    said : str
        HTML: a sentence on what was found, or the author's own words.
    shown : str
        HTML: its chart and its table.
    notes : tuple of str
        The small print of the table. What two releases share is said once.
    method : str
        How the numbers were protected, in a sentence.
    errors : tuple of rows
        Of the table of errors, without the release.
    left_out : tuple of str
        What bounds, keys and bins leave out.
    rows : str
        The noun for what is described: rows, or units.
    cost : str
        Its cost and whom it protects.
    made : str
        HTML of the appendix.
    record : Any
        All of it as plain JSON values.
    covers : str or None
        "table" where the margins of error cover the noise alone, "population" where they include the sample too; None
        where there are none.
    """

    title: str
    label: str | None
    said: str
    shown: str
    notes: tuple[str, ...]
    method: str
    errors: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    rows: str
    cost: str
    made: str
    record: Any
    covers: str | None = TABLE


@dataclass(frozen=True)
class Budget:
    """The words on the ledger in a page: ``said`` in its one line, ``made`` in its appendix, both HTML."""

    said: str
    made: str
    record: Any


def page(title: str, lead: str, sections: Sequence[Section], made: str, budget: Budget | None = None) -> str:
    """A whole page; `made` says when in ISO 8601, and the records of all parts are in a script that nothing runs."""
    shared = _shared(sections)
    parts = [(f"part{number}", one.title, _found(one, shared)) for number, one in enumerate(sections, 1)]
    if sections:
        parts.append(("trust", "How far to trust these numbers", _trust(sections, shared)))
    parts.append(("budget", "Privacy budget", _cost(sections) if budget is None else budget.said))
    if not sections and budget is not None:
        parts.append(("spent", "What was spent", budget.made))
    alone = len(sections) == 1 and sections[0].title == title  # one heading is enough
    contents = "".join(f'<li><a href="#{name}">{text(words)}</a></li>' for name, words, _ in parts)
    inside = f'<nav aria-label="Contents"><ul>{contents}</ul></nav>' if len(sections) > 1 else ""
    body = "\n".join(
        f"<section>{inner}</section>"
        if alone and name == "part1"
        else f'<section id="{name}" aria-labelledby="{name}-head"><h2 id="{name}-head">{text(words)}</h2>\n'
        f"{inner}</section>"
        for name, words, inner in parts
    )
    records = [] if budget is None else [budget.record]
    when = f"{made[:16].replace('T', ' ')} UTC"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{text(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<main>
<header><h1>{text(title)}</h1><p class="lead">{text(lead)}</p>{inside}</header>
{body}
{_appendix(sections, budget)}
</main>
<footer><p>Written by dpframe {VERSION} on {text(when)}.</p></footer>
<script type="application/json" id="records">{data([*records, *(section.record for section in sections)])}</script>
</body>
</html>
"""


def lead(sections: Sequence[Section], dataset: str | None = None) -> str:
    """The line below a title: what the numbers are, and of which data."""
    results = "A differentially private result" if len(sections) == 1 else "Differentially private results"
    return f"{results}{'' if dataset is None else f' of {dataset}'}: random noise protects who is in the data."


def _shared(sections: Sequence[Section]) -> list[str]:
    """The notes that belong to several releases, in order."""
    counted = Counter(note for section in sections for note in dict.fromkeys(section.notes))
    return [note for note, count in counted.items() if count > 1]


def _cost(sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return paragraph(f"{capital(sections[0].cost)}.")
    return items([f"{one.title}: {one.cost}" for one in sections])


def _found(section: Section, shared: Sequence[str]) -> str:
    own = items([note for note in dict.fromkeys(section.notes) if note not in shared], "notes")
    return "\n".join((section.said, section.shown, own))


def _trust(sections: Sequence[Section], shared: Sequence[str]) -> str:
    """Noise, bounds and sample, once for all releases."""
    several, parts = len(sections) > 1, []
    noise = [words for words in dict.fromkeys(one.method for one in sections) if words]
    if any(one.covers == TABLE for one in sections):
        noise.append(NOISE)
    if noise:
        parts += [heading("Noise"), *map(paragraph, noise)]
    if any(one.errors for one in sections):
        rows = [((one.title,) if several else ()) + row for one in sections for row in one.errors]
        header = (*(("result",) if several else ()), *ERRORS)
        numeric = [place + several for place in (2, 3, 4)]
        table = plain_table("Errors: the largest of all rows", header, rows, numeric)
        parts.append(scrolling(table, "Table of errors"))
    parts.append(items(shared, "notes"))
    left_out = dict.fromkeys(f"{one.title}: {line}" if several else line for one in sections for line in one.left_out)
    if left_out:
        parts += [heading("Bounds"), items(list(left_out)), paragraph(NOT_COVERED)]
    rows_of = " and ".join(dict.fromkeys(one.rows for one in sections if one.covers != POPULATION))
    counted = [one.title for one in sections if one.covers == POPULATION]
    parts += [heading("Sample"), *([paragraph(SAMPLE.format(rows=rows_of))] if rows_of else [])]
    parts += [paragraph(COUNTED.format(titles=", ".join(counted)))] if counted else []
    return "\n".join(parts)


def _appendix(sections: Sequence[Section], budget: Budget | None) -> str:
    """The machinery: a box folds it on a screen without a script, and paper shows all of it."""
    if not sections:
        return ""
    several = len(sections) > 1 or budget is not None
    parts = [f"{heading(one.title) if several else ''}{one.made}" for one in sections]
    if budget is not None:
        parts.append(f"{heading('What was spent')}{budget.made}")
    inner = "\n".join(parts)
    return (
        f'<section class="appendix" aria-labelledby="appendix-head"><h2 id="appendix-head">Appendix</h2>'
        f'<input type="checkbox" id="more"><label for="more">{text(MORE)}</label>\n'
        f'<div class="folded">\n{inner}</div></section>'
    )
