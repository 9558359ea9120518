"""A released result as a section of a report: words, chart, table, errors, price and protection."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import page_figures, table_formats
from dpframe.display.check_words import check_lines
from dpframe.display.pages import number
from dpframe.display.report_page import (
    Section,
    facts_list,
    heading,
    items,
    paragraph,
    plain_table,
    scrolling,
)
from dpframe.display.result_tables import Table, titled
from dpframe.display.statements import dearer_words, subject
from dpframe.privacy import PrivacyUnit

MOST_ROWS = 500  # of a table in a page
MAP = "The color of a place is its value; the table has the errors."
LINES = (
    "Lines through bars and points are 95% intervals of the noise, around the unbiased values; a band is twice the "
    "expected error of a denoised value. A hatched bar with arrows is an interval without an end."
)
ERRORS = ("number", "by", "95% interval", "noise (standard deviation)", "denoised (root mean square)")


def section(
    facts: Mapping[str, Any],
    table: Table,
    record: Mapping[str, Any],
    *,
    statement: str,
    chart: Any,
    errors: Sequence[Mapping[str, Any]],
) -> Section:
    """The section of one release, whose `record` goes with the page.

    `chart` is None where none is drawn, and `errors` are empty where nothing has any.
    """
    parts = [paragraph(facts["warning"], "warning")] if "warning" in facts else []
    if statement:
        parts.append(paragraph(statement))
    if chart is not None:
        parts.append(page_figures.figure(chart, f"chart-{table.name}", LINES if _has_intervals(chart) else MAP))
    parts.append(scrolling(table_formats.html_table(table, MOST_ROWS), f"Table: {table.title}"))
    rows = len(table.columns[0].cells) if table.columns else 0
    if rows > MOST_ROWS:
        parts.append(paragraph(f"These are the first {MOST_ROWS:,} of {rows:,} rows; the frame has all.", "small"))
    parts.append(items(table.notes, "notes"))
    if errors:
        parts += [heading("How far to trust each number"), scrolling(_errors(errors), "Table of errors")]
    parts += [heading("Cost and protection"), facts_list(_protection(facts))]
    left_out = [*_clipped(facts), *check_lines(facts), *facts["notes"]]
    if left_out:
        parts += [heading("What the bounds leave out"), items(left_out)]
        parts.append(paragraph("The error bars cover the noise alone: they do not contain what was left out.", "small"))
    return Section(title_of(facts), "\n".join(parts), dict(record))


def _has_intervals(chart: Any) -> bool:
    """Tell whether a chart draws the ends of intervals."""
    return any(name in json.dumps(chart.to_dict(), default=str) for name in ('"low:Q', '"field": "low'))


def title_of(facts: Mapping[str, Any]) -> str:
    """The label of a release, or what it is of."""
    return titled(facts, subject(", ".join(facts["measures"]) or str(facts["verb"]), facts))


def _errors(errors: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [row["column"], row["by"] or "-", *(_known(row[name]) for name in ("interval", "noisy_rmse", "denoised_rmse"))]
        for row in errors
    ]
    return plain_table("Errors: the largest of all rows", ERRORS, rows, (2, 3, 4))


def _known(error: float | None) -> str:
    return "-" if error is None else number(error)


def _protection(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    pure = [part["sensitivity"] / part["scale"] for part in facts["statistics"] if part.get("p") == 1.0]
    whole = sum(pure) if len(pure) == len(facts["statistics"]) and "model" not in facts else math.inf
    why = dearer_words(whole, cost["epsilon"], cost["accounting"])
    dearer = f"; {why}" if why else ""
    said = [("Price", f"epsilon {cost['epsilon']:.6g}{delta}, by {cost['accounting']} accounting{dearer}")]
    if "model" in facts:
        said.append(("Model", f"local: epsilon {facts['per_report']:.6g} for each report"))
    said.append(("Protects", str(PrivacyUnit.of_facts(facts["unit"]))))
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
    """The bounds at which values were clipped, in words."""
    said = []
    for name, statistic in facts["measures"].items():
        for kind, of in (("bounds", "values"), ("unit_bounds", "what one unit adds to a group")):
            if kind in statistic:
                lower, upper = statistic[kind]
                said.append(f"{name}: {of} below {lower:,g} count as {lower:,g}, those above {upper:,g} as {upper:,g}")
    return said
