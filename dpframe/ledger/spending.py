"""A ledger as a page: what was spent and on what, and the results that are shown with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpframe.display import page_figures, report_page
from dpframe.display.report_page import Section
from dpframe.errors import InvalidType, NoProvenance, shown
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import Entry
from dpframe.ledger.statement import Statement, answers_of, rows_of

CAPTION = "What was spent after each charge; the dashed line is the limit."
MOST_ROWS = 1_000  # of charges in a page, the last ones
LEAD = "What was spent of a privacy budget, on what, and who is protected."

Entries = list[tuple[int, Entry]]


def write(
    path: Any, statement: Statement, entries: Entries, releases: Iterable[Any], *, title: str | None, charts: bool
) -> None:
    """Write the page: the ledger, and a section for each release."""
    results = [section for release in releases for section in _sections_of(release, charts)]
    dataset = None if statement.terms is None else statement.terms.dataset
    heading = title or ("Privacy budget" if dataset is None else f"Privacy budget of {dataset}")
    sections = [section(statement, entries, charts=charts), *results]
    report_page.write(path, report_page.page(heading, LEAD, sections, now()))


def section(statement: Statement, entries: Entries, *, charts: bool) -> Section:
    """The section of the ledger. Where it is kept is left out: a report is for others."""
    last = statement.summary.last
    named = [(name.capitalize(), said) for name, said in statement.facts(kept=False)]
    if last.head:
        named.append(("Head", f"{last.head} at entry {last.entry}"))
    parts = [report_page.facts_list(named)]
    if statement.filled is not None:
        parts.insert(0, report_page.bar(statement.filled, f"{statement.percent} is spent"))
    if charts and statement.filled is not None:
        parts.append(page_figures.figure(statement.chart([entry for _, entry in entries]), "budget", CAPTION))
    parts += [report_page.heading("Charges"), *_charges(entries)]
    answers = answers_of(entries)
    if answers:
        names = ("entry", "time", "label", "snapshot", "query")
        rows = [[_text(name, row[name]) for name in names] for row in answers[-MOST_ROWS:]]
        table = report_page.plain_table("Asked again as before they cost nothing", _header(names), rows, (0,))
        parts += [report_page.heading("Stored answers"), report_page.scrolling(table, "Table of stored answers")]
    record = {"facts": dict(named), "entry": last.entry, "head": last.head, "charges": rows_of(entries)[-MOST_ROWS:]}
    return Section("What was spent", "\n".join(parts), record)


def _charges(entries: Entries) -> list[str]:
    rows = rows_of(entries)
    if not rows:
        return [report_page.paragraph("Nothing was charged.")]
    names = ("entry", "time", "kind", "label", "query", "unit", "epsilon", "delta")
    cells = [[_text(name, row[name]) for name in names] for row in rows[-MOST_ROWS:]]
    table = report_page.plain_table("", _header(names), cells, (0, 6, 7))
    words = f"The last {MOST_ROWS:,} of {len(rows):,}; ledger.to_frame() has all."
    cut = [report_page.paragraph(words, "small")] if len(rows) > MOST_ROWS else []
    return [report_page.scrolling(table, "Table of charges", broad=True), *cut]


def _header(names: Iterable[str]) -> list[str]:
    return [{"time": "time (UTC)", "unit": "protects"}.get(name, name) for name in names]


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "time":
        return str(value).removesuffix("+00:00").replace("T", " ")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sections_of(release: Any, charts: bool) -> list[Section]:
    """The sections of a result: what ``.dp`` of a released frame tells of it."""
    try:
        dp = release.dp
        _ = dp.provenance
        sections = dp._sections
    except AttributeError:
        raise InvalidType(f"releases must be released frames, not {shown(release)}.") from None
    except NoProvenance:
        raise NoProvenance(
            "releases must carry their provenance, and this frame has none: report the result."
        ) from None
    return list(sections(charts=charts))
