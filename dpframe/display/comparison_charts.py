"""Charts of comparisons: the two values of each row joined by a line, with their intervals; a panel for each statistic.

A comparison has a difference for each row. What people look for first are the two numbers behind it: so a row shows
both, each with the interval of its own, which holds noise and sample as that of the difference does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.display import chart_words, charts, drawing, layout, pages, result_charts
from dpframe.display.charts import WIDTH
from dpframe.display.drawing import Cell, Panel
from dpframe.display.layout import Asked, Dimension
from dpframe.errors import no_markup
from dpframe.frames import build
from dpframe.frames.changes import view_of
from dpframe.frames.prints import Places

Facts = Mapping[str, Any]

ROW = 44  # pixels of a row, in which two intervals stand one below the other
APART = 7  # pixels of each side above and below the middle of its row
ALL = "all rows"


def sides_of(facts: Facts, places: Places) -> dict[str, Any] | None:
    """Both values of each row in the order of the frame, with their intervals; None where the record has none."""
    sides = next(iter(facts["measures"].values())).get("sides")
    if sides is None or len(facts["measures"]) > 1 or not facts["cells"]:
        return None  # of comparisons that were made wide, or written by another version
    view = view_of(facts)
    rows = np.arange(len(places)) if view is None else view.cells[0]
    ends = {end: sides[end] for end in ("values", "low", "high")}
    sizes = {len(column) for both in ends.values() for column in both}
    if len(sizes) != 1 or len(rows) != len(places) or (len(rows) and int(rows.max()) >= sizes.pop()):
        return None
    in_frame = np.empty(len(places), dtype=np.int64)
    in_frame[places] = rows
    ordered = {end: [[column[row] for row in in_frame] for column in both] for end, both in ends.items()}
    return {"names": sides["names"], **ordered}


def of_comparison(frame: Any, facts: Facts, sides: Mapping[str, Any], asked: Asked) -> Any:
    """A panel for each statistic, on a scale of its own; a row for each cell of the other keys."""
    *axes, last = facts["cells"]
    column = last["columns"][-1]
    others = layout.dimensions_of(axes, build.rows(frame))
    by_statistic: dict[str, list[Cell]] = {}
    for number, row in enumerate(build.rows(frame)):
        name = ", ".join(dimension.label(row) for dimension in others) or ALL
        both = [_side(name, number, side, sides) for side in (0, 1)]
        by_statistic.setdefault(str(row[column]), []).extend(both)
    panels = {name: _panel(name, cells, sides["names"], others) for name, cells in by_statistic.items()}
    (measure,), names = facts["measures"], " and ".join(map(str, sides["names"]))
    said = f"{next(iter(panels))} of {names}" if len(panels) == 1 else names
    facts = {**facts, "cells": axes, "measures": {measure: {**facts["measures"][measure], "words": said}}}
    words = chart_words.words([measure], facts, list(panels.values()), asked, [])
    drawn = [_dumbbells(panel, sides["names"]) for panel in panels.values()]
    return (
        charts.titled(drawn[0], words) if len(drawn) == 1 else charts.beside(drawn, words, columns=1, colors="shared")
    )


def of_effects(frame: Any, facts: Facts, asked: Asked) -> Any:
    """The differences alone: a panel for each statistic, whose units are its own, and so its scale."""
    *axes, last = facts["cells"]
    column, (measure,) = last["columns"][-1], facts["measures"]
    by_statistic: dict[str, list[dict[str, Any]]] = {}
    for row in build.rows(frame):
        by_statistic.setdefault(str(row[column]), []).append(row)
    facts = {**facts, "cells": axes}
    made = [result_charts.panels_of([measure], rows, facts, asked) for rows in by_statistic.values()]
    panels = [replace(panel, value=no_markup(name)) for name, ((panel,), _) in zip(by_statistic, made, strict=True)]
    words = chart_words.words(
        [measure], facts, panels, asked, list(dict.fromkeys(note for _, left in made for note in left))
    )
    return charts.beside([drawing.chart_of(panel) for panel in panels], words, columns=1, colors="shared")


def statistics_of(frame: Any, facts: Facts) -> int:
    """The number of statistics in the rows of a comparison."""
    if facts["verb"] != "compare" or len(facts["measures"]) > 1 or not facts["cells"]:
        return 1
    return len({row[facts["cells"][-1]["columns"][-1]] for row in build.rows(frame)})


def _side(name: str, number: int, side: int, sides: Mapping[str, Any]) -> Cell:
    """The value of one side of a row."""
    value, low, high = (sides[end][side][number] for end in ("values", "low", "high"))
    ends = " to ".join("open" if end is None else pages.number(end) for end in (low, high))
    says = f"{'-' if value is None else pages.number(value)} (95%: {ends})"
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
    """The rows of a statistic: a point for each side, its interval, and a line from one point to the other."""
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
    apart = altair.Axis(labelOverlap="greedy", labelSeparation=8)
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
