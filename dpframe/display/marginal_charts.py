"""Charts of all tables of several columns: a small map for each table of two, or bars where there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpframe.display import charts, drawing, pages
from dpframe.display.chart_words import BETWEEN
from dpframe.display.charts import Words
from dpframe.display.drawing import Panel
from dpframe.display.layout import Dimension, label
from dpframe.display.statements import margin_words
from dpframe.queries.query import ERROR
from dpframe.queries.statistics.marginals import places_of_levels

MOST_MAPS = 24

Row = Mapping[str, Any]


def is_marginals(facts: Mapping[str, Any]) -> bool:
    """Tell whether a record is of all tables of several columns."""
    return any("deviations" in measure for measure in facts["measures"].values())


def of_tables(rows: Sequence[Row], facts: Mapping[str, Any], words: Words) -> Any:
    """A panel for each table: of two columns, if there are any, else of one.

    `words` get notes on errors, which differ by table, where they have notes.
    """
    (name,) = facts["measures"]
    order = min(2, max(len(level["columns"]) for level in facts["levels"]))
    places = zip(facts["levels"], places_of_levels(facts["levels"]), strict=True)
    tables = [(level["columns"], rows[place]) for level, place in places if len(level["columns"]) == order]
    shown = tables[:MOST_MAPS]
    errors = [table[0][name + ERROR] for _, table in shown]
    least, most = pages.number(min(errors)), pages.number(max(errors))
    said = f"{margin_words(facts)} of a cell: ±{least}" + (f" to ±{most}, by table" if least != most else "")
    cut = (f"the first {len(shown)} of {len(tables)} tables",) if len(tables) > len(shown) else ()
    cells = [_interval(row, name) for _, table in shown for row in table]
    seen = ("value", "low", "high") if order == 1 else ("value",)  # maps show no intervals
    ends = [cell[end] for cell in cells for end in seen]
    reach = min(0.0, *ends), max(1.0, *ends)
    made = [charts.panel(_panel(name, columns, table, reach), " and ".join(columns)) for columns, table in shown]
    if words.subtitle:
        words = replace(words, subtitle=BETWEEN.join((words.subtitle, said)), notes=(*words.notes, *cut))
    return charts.beside(made, words)


def _panel(name: str, columns: Sequence[str], table: Sequence[Row], reach: tuple[float, float]) -> Any:
    if len(columns) == 1:
        axis = {"columns": [columns[0]]}
        names = [label(row, axis, columns[0]) for row in table]
        bars = [_interval(row, name) | {"cell": said, "x_says": said} for row, said in zip(table, names, strict=True)]
        bars_of = Dimension(columns[0], axis, "name", tuple(dict.fromkeys(names)))
        return drawing.chart_of(Panel(bars, "bar", bars_of, name, width=charts.NARROW, domain=reach))
    up, across = columns
    return charts.named_map(charts.map_cells(table, across, up, name, name + ERROR), across, up, name, reach)


def _interval(row: Row, name: str) -> dict[str, Any]:
    middle, error = row.get(f"{name}_noisy", row[name]), row[name + ERROR]
    says = f"{pages.number(row[name])} ± {pages.number(error)}"
    return {"value": row[name], "low": middle - error, "high": middle + error, "says": says}
