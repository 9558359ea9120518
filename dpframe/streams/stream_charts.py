"""Charts of stream: lines over the periods with bands of their intervals, and the errors of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import charts, pages
from dpframe.display.charts import Words
from dpframe.errors import no_markup

MOST_LINES = 12
HALF_WIDTH = 300


def of_stream(rows: Sequence[Mapping[str, Any]], time: str, words: Words) -> Any:
    """Two panels, the running totals and the single periods: a line for each group, in a band of its 95% intervals.

    `rows` have ``place`` (of the period, from 1), ``label``, ``group`` (a name, "" where there is one alone), and
    ``total, total_error, period, period_error``.
    """
    panels = [
        charts.panel(_lines(_banded(rows, name), time), title)
        for name, title in (("total", "running total"), ("period", "each period"))
    ]
    return charts.beside(panels, words)


def of_errors(labels: Sequence[str], errors: Mapping[str, Sequence[float]], time: str, words: Words) -> Any:
    """The expected errors of a plan by period: a line for the totals, and one for the periods."""
    rows = [
        {"place": place, "label": label, "group": name, "value": error, "text": f"±{pages.number(error)}"}
        for name, values in errors.items()
        for place, (label, error) in enumerate(zip(labels, values, strict=True), start=1)
    ]
    altair = charts.imported()
    base = altair.Chart(charts.public_data(rows)).encode(
        **_across(altair, rows, time), tooltip=["label:N", "group:N", "text:N"]
    )
    lines = base.mark_line(point=True).encode(
        y=altair.Y("value:Q", title="expected 95% error", scale=altair.Scale(zero=True)), color=_color(altair, rows)
    )
    return charts.titled(lines.properties(width=charts.WIDTH, height=charts.HEIGHT), words)


def _banded(rows: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    return [
        {
            **{key: row[key] for key in ("place", "label", "group")},
            "value": row[name],
            "low": row[name] - row[f"{name}_error"],
            "high": row[name] + row[f"{name}_error"],
            "text": f"{pages.number(row[name])} ± {pages.number(row[f'{name}_error'])}",
        }
        for row in rows
    ]


def _lines(rows: Sequence[Mapping[str, Any]], time: str) -> Any:
    altair = charts.imported()
    across, color = _across(altair, rows, time), _color(altair, rows)
    base = altair.Chart(charts.public_data([dict(row) for row in rows]))
    low = altair.Y("low:Q", title=None)  # the heading says it
    band = base.mark_area(opacity=0.25).encode(**across, y=low, y2="high:Q", color=color)
    line = base.mark_line(point=altair.OverlayMarkDef(size=18)).encode(
        **across, y=altair.Y("value:Q", title=None), color=color, tooltip=["label:N", "group:N", "text:N"]
    )
    return altair.layer(band, line).properties(width=HALF_WIDTH, height=charts.HEIGHT)


def _across(altair: Any, rows: Sequence[Mapping[str, Any]], time: str) -> dict[str, Any]:
    """The periods in their declared order, with as many labels as there is room for."""
    labels = [label for _, label in sorted({(row["place"], row["label"]) for row in rows})]
    axis = altair.Axis(labelOverlap="greedy", labelAngle=-40, labelLimit=0)
    return {"x": altair.X("label:N", sort=[no_markup(label) for label in labels], title=time, axis=axis)}


def _color(altair: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    names = list(dict.fromkeys(no_markup(row["group"]) for row in rows))
    legend = altair.Legend(title=None) if len(names) > 1 else None
    return altair.Color("group:N", sort=names, scale=altair.Scale(domain=names), legend=legend)
