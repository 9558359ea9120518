"""The HTML report of a ledger: the results that are shown with it, what was spent, and on what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpframe.display import report
from dpframe.display.layout import check_labels
from dpframe.display.pages import at_least
from dpframe.display.report import Budget, Section
from dpframe.errors import InvalidArgument, InvalidType, NoProvenance, checked_text, closest, sentence, shown
from dpframe.files import write_page
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import Entry
from dpframe.ledger.statement import BETWEEN, Statement, answers_of, rows_of

CAPTION = "What was spent after each charge; the dashed line is the limit."
MOST_ROWS = 1_000  # rows of a table in a page: the last ones
LEAD = "What was spent of a privacy budget, on what, and who is protected."
IN_ONE_LINE = ("budget", "spent", "remaining", "protects")  # facts on a ledger that share one line
WARNINGS = ("correction", "warning")
LABELS = '{"Stays": {"columns": {"n": "People"}}}'
TEXT = '{"Stays": "Half of the stays end within three nights."}'
LONGEST_TEXT = 100_000  # characters of the caller's text on a release

Entries = list[tuple[int, Entry]]


def write(
    path: Any,
    statement: Statement,
    entries: Entries,
    releases: Sequence[Any],
    *,
    title: str | None = None,
    charts: bool = True,
    text: Mapping[str, str] | None = None,
    labels: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
) -> None:
    """Write the page: a section for each release in the given order, with the caller's text, and the ledger."""
    checked_text("title", title)
    own, named, first = checked(
        text, labels, order, list(dict.fromkeys(label for release in releases for label in _labels_of(release)))
    )
    places = {label: place for place, label in enumerate(first)}
    sections = [section for release in releases for section in _sections_of(release, charts, named)]
    sections.sort(key=lambda section: places.get(section.label or "", len(places)))
    words = {label: report.own_words(said) for label, said in own.items()}
    sections = [
        replace(one, said=_warned(one) + words[one.label]) if one.label is not None and one.label in words else one
        for one in sections
    ]
    dataset = None if statement.terms is None else statement.terms.dataset
    of_data = "" if dataset is None else f" of {dataset}"
    heading = title or (f"Report{of_data}" if sections else f"Privacy budget{of_data}")
    lead = report.lead(sections, dataset) if sections else LEAD
    page = report.page(heading, lead, sections, now(), budget_of(statement, entries, charts=charts))
    write_page("path", path, page)


def _warned(section: Section) -> str:
    """Return the warning of a release that is not private; the caller's text never replaces it."""
    warning = section.record.get("warning")
    return report.paragraph(warning, "warning") if warning else ""


def budget_of(statement: Statement, entries: Entries, *, charts: bool) -> Budget:
    """Return the ledger's part of a page. It omits the place of the ledger, because a report is for others."""
    last, facts = statement.summary.last, dict(statement.facts(kept=False))
    line = BETWEEN.join(f"{name} {facts[name]}" for name in IN_ONE_LINE if name in facts)
    said = [report.paragraph(sentence(line))]
    said += [report.paragraph(facts[name], "warning") for name in WARNINGS if name in facts]
    if statement.filled is not None:
        said.insert(0, report.bar(statement.filled, f"{statement.percent} is spent"))
    named = [(name.capitalize(), words) for name, words in facts.items()]
    if last.head:
        named.append(("Head", f"{last.head} at entry {last.entry}"))
    made = [report.facts_list(named)]
    if charts and statement.filled is not None:
        made.append(report.figure(statement.chart([entry for _, entry in entries]), "budget-chart", CAPTION))
    made += [report.heading("Charges"), *_charges(entries)]
    answers = answers_of(entries)
    if answers:
        names = ("entry", "time", "label", "snapshot", "query")
        rows = [[_text(name, row[name]) for name in names] for row in answers[-MOST_ROWS:]]
        table = report.plain_table("Asked again as before they cost nothing", _header(names), rows, (0,))
        made += [report.heading("Stored answers"), report.scrolling(table, "Table of stored answers")]
    record = {"facts": dict(named), "entry": last.entry, "head": last.head, "charges": rows_of(entries)[-MOST_ROWS:]}
    return Budget("\n".join(said), "\n".join(made), record)


def _charges(entries: Entries) -> list[str]:
    rows = rows_of(entries)
    if not rows:
        return [report.paragraph("Nothing was charged.")]
    names = ("entry", "time", "kind", "label", "query", "unit", "epsilon", "delta")
    cells = [[_text(name, row[name]) for name in names] for row in rows[-MOST_ROWS:]]
    table = report.plain_table("", _header(names), cells, (0, 6, 7))
    words = f"The last {MOST_ROWS:,} of {len(rows):,}; ledger.to_frame() has all."
    cut = [report.paragraph(words, "small")] if len(rows) > MOST_ROWS else []
    return [report.scrolling(table, "Table of charges", broad=True), *cut]


def _header(names: Iterable[str]) -> list[str]:
    return [{"time": "time (UTC)", "unit": "protects"}.get(name, name) for name in names]


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "time":
        return str(value).removesuffix("+00:00").replace("T", " ")
    return f"{at_least(value, 4):.4g}" if isinstance(value, float) else str(value)  # no charge is shown too small


def checked(
    text: Any, labels: Any, order: Any, known: Sequence[str], named_so: str = "order"
) -> tuple[Mapping[str, str], Mapping[str, Any], Sequence[str]]:
    """Check and return the caller's texts of releases, the labels of their columns and keys, and their order."""
    named, own = _by_label("labels", labels, known, LABELS), _by_label("text", text, known, TEXT)
    for label, words in own.items():
        _check_text(label, words)
    for label, words in named.items():
        check_labels(words, label)
    return own, named, _checked_order(order, known, named_so)


def _by_label(argument: str, given: Any, known: Sequence[str], example: str) -> Mapping[str, Any]:
    """Return what the caller gives for each release by its label; refuse a label that no release has."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidType(f"{argument} must be a dict of releases' labels, not {shown(given)}. Write {example}.")
    for label in given:
        _check_label(argument, label, known)
    return given


def _check_label(argument: str, label: Any, known: Sequence[str]) -> None:
    if label in known:
        return
    near = closest(label, known) if isinstance(label, str) else None
    way_out = f"Did you mean {near!r}?" if near else "Name a release by its label: count(..., label='Stays')."
    raise InvalidArgument(
        f"{argument} must name labels of the releases, {shown(list(known))}, not {shown(label)}. {way_out}"
    )


def _check_text(label: str, words: Any) -> None:
    if not isinstance(words, str):
        raise InvalidType(f"text must be a dict of text, not {shown(words)} for {shown(label)}. Write {TEXT}.")
    if len(words) > LONGEST_TEXT:
        raise InvalidArgument(
            f"text must have at most {LONGEST_TEXT:,} characters a release, not {len(words):,} for {shown(label)}. "
            "Shorten it."
        )


def _checked_order(order: Any, known: Sequence[str], argument: str) -> list[str]:
    """Return the labels in the order of their sections; other releases follow."""
    if order is None:
        return []
    if not isinstance(order, (list, tuple)):
        raise InvalidType(f"{argument} must be a list of labels, not {shown(order)}. Write ['Stays', 'Ages'].")
    for label in order:
        _check_label(argument, label, known)
        if list(order).count(label) > 1:
            raise InvalidArgument(f"{argument} must name each label once, not {shown(label)} twice. Leave one out.")
    return list(order)


def _labels_of(release: Any) -> list[str]:
    """Return the labels of a release and of its parts."""
    try:
        record = getattr(getattr(release, "dp", None), "provenance", {})
    except NoProvenance:  # `_sections_of` refuses this release
        return []
    parts = record.get("parts", [record])
    return [part["label"] for part in parts if part.get("label")]


def _sections_of(release: Any, charts: bool, labels: Mapping[str, Any]) -> list[Section]:
    """Return the sections of a result, from the ``.dp`` of a released frame."""
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
    return list(sections(charts=charts, named=labels))
