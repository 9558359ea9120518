"""A released result as a section of a report: its findings, their errors, and how they were made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import table_formats
from dpframe.display.pages import at_least, margin, number
from dpframe.display.report import Section, caption_of, facts_list, figure, paragraph, scrolling
from dpframe.display.result_tables import PLUS_MINUS, Table, source
from dpframe.display.rounding import english, is_unplaced
from dpframe.display.statements import check_lines, dearer_words, method_words, warned_lines
from dpframe.display.subjects import full, protected, short, titled, without_numbers
from dpframe.errors import capital, harmless
from dpframe.privacy import noun_of
from dpframe.queries.contributions import TABLE

MOST_ROWS = 500  # rows of a table in a page


def section(
    facts: Mapping[str, Any],
    table: Table,
    record: Mapping[str, Any],
    *,
    statement: str,
    chart: Any,
    errors: Sequence[Mapping[str, Any]],
) -> Section:
    """Return the section of one release; its `record` is part of the page.

    `chart` is None where none is drawn, and `errors` is empty where no number has an error.
    """
    checks = check_lines(facts)
    said_below = [note for note in (*checks, *facts["notes"]) if note not in warned_lines(facts)]
    kept = [note for note in table.notes if note not in said_below]
    return Section(
        title_of(facts),
        facts["label"],
        "".join((_warning(facts), paragraph(found_words(facts, table)) if facts["measures"] else "")),
        shown(table, chart, [*checks, *table.notes]),
        tuple(note for note in kept if note != harmless(source(facts))),
        method_words(facts) if facts["measures"] else "",
        tuple(map(_errors, errors)),
        tuple(dict.fromkeys([*_clipped(facts), *checks, *facts["notes"]])),
        "rows" if facts["unit"]["column"] is None else f"units ({noun_of(facts['unit']['column'])})",
        cost_words(facts),
        (paragraph(statement) if statement else "") + facts_list(_protection(facts)),
        dict(record),
        covers=TABLE if facts["measures"] else None,
        of=full(facts) if facts["label"] else "",
    )


def shown(table: Table, chart: Any, notes: Sequence[str]) -> str:
    """Return HTML of the chart, if there is one, and of the table; the caption leaves out `notes`, shown elsewhere."""
    parts = []
    if chart is not None:
        parts.append(figure(chart, f"chart-{table.name}", caption_of(chart, notes)))
    parts.append(scrolling(table_formats.html_table(table, MOST_ROWS, titled=False), f"Table: {table.title}"))
    rows = len(table.columns[0].cells) if table.columns else 0
    if rows > MOST_ROWS:
        parts.append(paragraph(f"These are the first {MOST_ROWS:,} of {rows:,} rows; the frame has all.", "small"))
    return "\n".join(parts)


def _warning(facts: Mapping[str, Any]) -> str:
    return paragraph(facts["warning"], "warning") if "warning" in facts else ""


def found_words(facts: Mapping[str, Any], table: Table) -> str:
    """Return a sentence on the findings: the statistics and keys, with the least and the largest of their numbers.

    Several statistics have no such range. A single number has its margin of error unless adjusting moved it.
    """
    what = short(facts)
    titles = {column.title: column for column in table.columns}
    name = next(iter(facts["measures"]), "")
    value = titles.get(harmless(name))
    if len(facts["measures"]) != 1 or value is None or value.forms is not None or f"{name}{PLUS_MINUS}" not in titles:
        return f"{what}."
    texts = table.written(value)
    alone = len(texts) == 1  # margins of the least and the largest hold too seldom: noise helped to select these
    if alone and not is_unplaced(facts["measures"][name], name, ()):
        margins = table.written(titles[f"{name}{PLUS_MINUS}"])
        texts = [f"{text} ± {margin}" for text, margin in zip(texts, margins, strict=True)]
    of_rows = list(zip(*(table.written(column) for column in table.columns if not column.is_number), strict=True))
    if alone:
        return f"{what}: {texts[0]}."
    known = [place for place, cell in enumerate(value.cells) if math.isfinite(cell)]
    if not known or not of_rows:
        return f"{what}."
    ends = [end(known, key=lambda place: value.cells[place]) for end in (min, max)]
    least, most = (f"{texts[place]} ({', '.join(of_rows[place])})" for place in ends)
    return f"{what}: from {least} to {most}." if facts["label"] else f"From {least} to {most}."


def title_of(facts: Mapping[str, Any]) -> str:
    """Return the label of a release, or else a description of its numbers."""
    return titled(facts, short(facts) if facts["measures"] else capital(without_numbers(facts)))


def _errors(row: Mapping[str, Any]) -> tuple[str, ...]:
    known = (_known(row[name]) for name in ("interval", "noisy_rmse", "denoised_rmse"))
    return (row["column"], row["by"] or "-", *known)


def _known(error: float | None) -> str:
    if error is None:
        return "-"
    return margin(error) if math.isfinite(error) else english(error, None)


def cost_words(facts: Mapping[str, Any]) -> str:
    """Return the cost of a release and its privacy unit as text."""
    return f"{_epsilon(facts)}; it protects {protected(facts)}"


def _epsilon(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    delta = f", delta {at_least(cost['delta'], 3):.3g}" if cost["delta"] else ""
    return f"epsilon {at_least(cost['epsilon'], 6):.6g}{delta}"


def _protection(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    cost = facts["cost"]
    pure = [part["sensitivity"] / part["scale"] for part in facts["statistics"] if part.get("p") == 1.0]
    whole = sum(pure) if len(pure) == len(facts["statistics"]) and not {"model", "checks"} & {*facts} else math.inf
    why = dearer_words(whole, cost["epsilon"], cost["accounting"])
    dearer = f"; {why}" if why else ""
    said = [("Cost", f"{_epsilon(facts)}, by {cost['accounting']} accounting{dearer}")]
    if "model" in facts:
        said.append(("Model", f"local: epsilon {at_least(facts['per_report'], 6):.6g} for each report"))
    said.append(("Protects", protected(facts)))
    noise = (f"{part['noise']}, scale {number(part['scale'])}, on {part['measures']}" for part in facts["statistics"])
    said.append(("Noise", "\n".join(noise)))
    receipt = facts.get("ledger")
    if receipt:
        dataset = "" if receipt["dataset"] is None else f" of {receipt['dataset']}"
        said.append(("Ledger", f"entry {receipt['entry']}{dataset}"))
        said.append(("Ledger's head", str(receipt["head"])))
        if receipt.get("snapshot"):
            said.append(("Snapshot", str(receipt["snapshot"])))
    else:
        said.append(("Ledger", "in memory: no file can verify this release"))
    return [*said, ("Hash of the numbers", str(facts["sha256"])), ("Released by", f"dpframe {facts['dpframe']}")]


def _clipped(facts: Mapping[str, Any]) -> list[str]:
    """Return the bounds at which values were clipped, as text."""
    said = []
    for name, statistic in facts["measures"].items():
        for kind, of in (("bounds", "values"), ("unit_bounds", "what one unit adds to a group")):
            if kind in statistic:
                lower, upper = (english(bound, None) for bound in statistic[kind])
                said.append(f"{name}: {of} below {lower} count as {lower}, those above {upper} as {upper}")
    return said
