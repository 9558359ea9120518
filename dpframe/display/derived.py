"""Statements, page sections and charts of numbers that are computed from releases, such as comparisons.

A comparison has a difference for each row. Readers first look for the two numbers behind it, so each row of the chart
shows both, joined by a line. Each number has its own interval, which covers noise and sampling as that of the
difference does. Each statistic has a panel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.display import chart_words, charts, drawing, layout, pages, result_charts
from dpframe.display.charts import WIDTH
from dpframe.display.drawing import Cell, Panel
from dpframe.display.layout import Asked, Dimension
from dpframe.display.pages import at_least, margin
from dpframe.display.report import Section, facts_list, paragraph
from dpframe.display.result_page import shown, title_of
from dpframe.display.result_tables import Table, kinds_of, source
from dpframe.display.statements import confidence_of
from dpframe.display.subjects import each_once, protected, subject
from dpframe.errors import harmless, listed, no_markup
from dpframe.frames import build
from dpframe.frames.changes import CHOSEN, view_of
from dpframe.frames.prints import Places
from dpframe.privacy import noun_of
from dpframe.queries.contributions import POPULATION
from dpframe.queries.query import ERROR

Facts = Mapping[str, Any]

EVERYTHING = "For {rows}{name} the noise leaves nothing to be said."
ROW = 44  # the height in pixels of a row, which holds two intervals, one below the other
APART = 7  # the distance in pixels of each side from the middle of its row
ALL = "all rows"
OF_COMPARISONS = (  # parts of notes on how comparisons were made and shown, and not on what bounds left out
    "p-values are adjusted for ",
    "how far values of ",
    " comparisons is shown",
    " comparisons are shown",
    CHOSEN,
)


def statement_of(facts: Mapping[str, Any], frame: Any, unit: str | None = None) -> str:
    """Return sentences on what was computed from which releases, on their protection, and on the errors."""
    each = facts.get("each") or f"each {unit or noun_of(facts['unit']['column'])}"
    sentences = [f"{facts['warning']}."] if "warning" in facts else []
    sentences += [
        f"This is {_subject(facts)}, {facts['said']}.",
        f"It uses published numbers alone, whose noise protects {each}; so it reveals no more than they do.",
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
    return article + subject(listed(each_once(facts)), facts)


def _test_words(frame: Any) -> str:
    """Return the result of a test of independence as a sentence."""
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
        least, most = margin(min(known)), margin(max(known))
        sizes = most if least == most else f"{least} to {most}, depending on the row"
        said.append(f"In {100 * confidence:g} of 100 {what} {name} by at most {sizes}.")
    if len(known) < len(errors):
        rows = "" if len(errors) == 1 else f"{len(errors) - len(known)} of {len(errors)} rows of "
        said.append(EVERYTHING.format(rows=rows, name=name))
    return said


def section(facts: Mapping[str, Any], table: Table, frame: Any, chart: Any) -> Section:
    """Return the section of a page; its statement leaves out the notes, which the page shows elsewhere."""
    statement = statement_of({**facts, "notes": []}, frame)
    left_out = [note for note in facts["notes"] if not any(words in note for words in OF_COMPARISONS)]
    return Section(
        title_of(facts),
        facts["label"],
        "".join((paragraph(facts["warning"], "warning") if "warning" in facts else "", paragraph(statement))),
        shown(table, chart, table.notes),
        tuple(note for note in table.notes if note not in (harmless(source(facts)), *left_out)),
        "",
        (),
        tuple(left_out),
        "rows" if facts["unit"]["column"] is None else f"units ({noun_of(facts['unit']['column'])})",
        f"no cost: it is computed from releases; it protects {_units(facts)}",
        facts_list(_protection(facts)),
        dict(facts),
        covers=str(facts["covers"]),
    )


def _units(facts: Facts) -> str:
    return str(facts.get("protects") or protected(facts))


def _protection(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    releases = "\n".join(
        f"{one['name']}: {one['label'] or 'without a label'}, epsilon {at_least(one['cost']['epsilon'], 6):.6g}, "
        f"numbers {one['sha256'][:12]}"
        for one in facts["of"]
    )
    return [
        ("Cost", "none: it is computed from releases"),
        ("Releases", releases),
        ("Protects", _units(facts)),
        ("Hash of the numbers", str(facts["sha256"])),
        ("Computed by", f"dpframe {facts['dpframe']}"),
    ]


def sides_of(facts: Facts, places: Places) -> dict[str, Any] | None:
    """Return both values of each row, with intervals, in the order of the frame; None if the record lacks them."""
    sides = next(iter(facts["measures"].values())).get("sides")
    if sides is None or len(facts["measures"]) > 1 or not facts["cells"]:
        return None  # a comparison that was made wide, or that another version wrote
    view = view_of(facts)
    rows = np.arange(len(places)) if view is None else view.cells[0]
    ends = {end: sides[end] for end in ("values", "low", "high")}
    sizes = {len(column) for both in ends.values() for column in both}
    if len(sizes) != 1 or len(rows) != len(places) or (len(rows) and int(rows.max()) >= sizes.pop()):
        return None
    in_frame = np.empty(len(places), dtype=np.int64)
    in_frame[places] = rows
    ordered = {end: [[column[row] for row in in_frame] for column in both] for end, both in ends.items()}
    return {"names": sides["names"], "statistics": sides.get("statistics", {}), **ordered}


def of_comparison(frame: Any, facts: Facts, sides: Mapping[str, Any], asked: Asked) -> Any:
    """Draw a panel for each statistic, on its own scale, with a row for each cell of the other keys."""
    *axes, last = facts["cells"]
    column = last["columns"][-1]
    rows = layout.distinct(build.rows(frame), axes)
    others = layout.dimensions_of(axes, rows)
    parts = [tuple(dimension.label(row) for dimension in others) for row in rows]
    told = layout.told_apart({labels: ", ".join(labels) or ALL for labels in parts})
    labels = [told[part] for part in parts]
    kept, left_out = _largest(labels, sides, asked.limit)
    by_statistic: dict[str, list[Cell]] = {}
    for place, (label, row) in enumerate(zip(labels, rows, strict=True)):
        if label in kept:
            both = [_side(label, place, side, sides, confidence_of(facts)) for side in (0, 1)]
            by_statistic.setdefault(str(row[column]), []).extend(both)
    panels = {name: _panel(name, cells, sides["names"], others) for name, cells in by_statistic.items()}
    (measure,), names = facts["measures"], " and ".join(map(str, sides["names"]))
    described = sides["statistics"].get(next(iter(panels))) if len(panels) == 1 else None
    said = f"{described or next(iter(panels))} of {names}" if len(panels) == 1 else names
    words_of = {**facts["measures"][measure], "words": said, "as_written": described is None}
    facts = {**facts, "cells": axes, "measures": {measure: words_of}}
    words = chart_words.words([measure], facts, list(panels.values()), asked, left_out)
    drawn = [_dumbbells(panel, sides["names"]) for panel in panels.values()]
    return (
        charts.titled(drawn[0], words) if len(drawn) == 1 else charts.beside(drawn, words, columns=1, colors="shared")
    )


def _largest(labels: Sequence[str], sides: Mapping[str, Any], limit: int) -> tuple[set[str], list[str]]:
    """Return the `limit` labels with the largest numbers on either side, and notes on the rest."""
    sizes = dict.fromkeys(labels, -math.inf)
    if len(sizes) <= limit:
        return {*sizes}, []
    for side in sides["values"]:
        for label, value in zip(labels, side, strict=True):
            sizes[label] = max(sizes[label], -math.inf if value is None else value)
    kept = sorted(sizes, key=lambda label: -sizes[label])[:limit]
    return {*kept}, [result_charts.largest_of(limit, len(sizes), "rows"), CHOSEN]


def of_effects(frame: Any, facts: Facts, asked: Asked) -> Any:
    """Draw the differences alone: a panel for each statistic on its own scale, since units differ."""
    *axes, last = facts["cells"]
    column, (measure,) = last["columns"][-1], facts["measures"]
    by_statistic: dict[str, list[dict[str, Any]]] = {}
    for row in layout.distinct(build.rows(frame), axes):
        by_statistic.setdefault(str(row[column]), []).append(row)
    facts = {**facts, "cells": axes}
    made = [result_charts.panels_of([measure], rows, facts, asked) for rows in by_statistic.values()]
    panels = [replace(panel, value=no_markup(name)) for name, ((panel,), _) in zip(by_statistic, made, strict=True)]
    left_out = list(dict.fromkeys(note for _, left in made for note in left))
    marks = result_charts.marks_of(frame, [measure], facts, panels)
    words = chart_words.words([measure], facts, panels, asked, left_out, marks)
    return charts.beside([drawing.chart_of(panel) for panel in panels], words, columns=1, colors="shared")


def statistics_of(frame: Any, facts: Facts) -> int:
    """Return the number of statistics in the rows of a comparison."""
    if facts["verb"] != "compare" or len(facts["measures"]) > 1 or not facts["cells"]:
        return 1
    return len({row[facts["cells"][-1]["columns"][-1]] for row in build.rows(frame)})


def _side(name: str, number: int, side: int, sides: Mapping[str, Any], confidence: str) -> Cell:
    """Return the chart cell of one side of a row, with its value and its interval."""
    value, low, high = (sides[end][side][number] for end in ("values", "low", "high"))
    ends = f"{'open' if low is None else pages.lower_end(low)} to {'open' if high is None else pages.margin(high)}"
    says = f"{'-' if value is None else pages.number(value)} ({confidence}: {ends})"
    place = {"cell": layout.broken(name), "x_says": name, "color": str(sides["names"][side])}
    return {**place, "side": side, "value": value, "low": low, "high": high, "says": says}


def _panel(name: str, cells: Sequence[Cell], names: Sequence[str], others: Sequence[Dimension]) -> Panel:
    labels = tuple(dict.fromkeys(cell["x_says"] for cell in cells))
    of = ", ".join(dimension.name for dimension in others)
    return Panel(
        [cell for cell in cells if cell["value"] is not None],
        "point",
        Dimension(of, {"columns": [of]}, "name", labels),
        no_markup(name),
        color=Dimension("", {"columns": [""]}, "name", tuple(names)),
        width=WIDTH,
    )


def _dumbbells(panel: Panel, names: Sequence[str]) -> Any:
    """Draw the rows of a statistic: a point and an interval for each side, and a line between the points."""
    altair = charts.imported()
    assert panel.x is not None
    rows = list(dict.fromkeys(cell["cell"] for cell in panel.cells))
    joined = [
        {"cell": one["cell"], "value": one["value"], "other": other["value"]}
        for one, other in zip(panel.cells[::2], panel.cells[1::2], strict=False)
        if one["cell"] == other["cell"]
    ]
    title = no_markup(panel.x.name) or None
    labels = altair.Axis(labelExpr="split(datum.label, '\\n')", labelLimit=0, grid=False)
    up = altair.Y("cell:N", sort=rows, title=title, axis=labels if rows != [ALL] else None)
    apart = altair.Axis(labelOverlap="parity", labelSeparation=8)
    across = altair.X("value:Q", title=panel.value, scale=altair.Scale(zero=False, padding=12), axis=apart)
    line = altair.Chart(charts.public_data(joined)).mark_rule(style="joins", yOffset=-APART, y2Offset=APART)
    marks = [line.encode(x=across, x2="other:Q", y=up, y2="cell:N")]
    data = altair.Chart(charts.public_data(list(panel.cells)))
    scale = altair.Scale(domain=[no_markup(name) for name in names])
    color = altair.Color("color:N", scale=scale, title=None)
    shape = altair.Shape("color:N", scale=scale, title=None)
    low = altair.X("low:Q", title=panel.value)
    tooltip = [
        altair.Tooltip("x_says:N", title=title or "rows"),
        altair.Tooltip("color:N", title="side"),
        altair.Tooltip("says:N", title=panel.value),
    ]
    for side, offset in ((0, -APART), (1, APART)):
        of = data.transform_filter(f"datum.side == {side}")
        closed = of.transform_filter("datum.low != null && datum.high != null")
        marks.append(closed.mark_rule(style="intervals", yOffset=offset).encode(x=low, x2="high:Q", y=up, color=color))
        for end in ("low", "high"):
            cap = closed.mark_tick(style="caps", thickness=1.2, size=8, orient="vertical", yOffset=offset)
            marks.append(cap.encode(x=altair.X(f"{end}:Q", title=panel.value), y=up, color=color))
        point = of.mark_point(style="grouped-points", filled=True, yOffset=offset)
        marks.append(point.encode(x=across, y=up, color=color, shape=shape, tooltip=tooltip))
    return altair.layer(*marks).properties(width=panel.width, height=ROW * len(rows))
