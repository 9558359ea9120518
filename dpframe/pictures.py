"""Charts of results: from a released frame and its provenance to Altair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe import charts
from dpframe.frames import build
from dpframe.queries.query import ERROR, NOISY

MOST_BARS = 2_000  # beyond, a chart says nothing and Altair is slow


def of_result(frame: Any, facts: Mapping[str, Any]) -> Any:
    """A panel per measure: bars with error bars, or a map for a grid of two axes of bins."""
    rows = build.rows(frame)
    panels = [_panel(name, rows, facts) for name in facts["measures"]]
    return charts.beside(panels)


def _panel(name: str, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> Any:
    title, note = _title(name, facts), _note(facts)
    axes = facts["cells"]
    if len(axes) == 2 and all("bins" in axis for axis in axes):
        x, y = (axis["columns"][0] for axis in axes)
        cells = [
            {
                "x": _plain(row[f"{x}_left"]),
                "x2": _plain(row[f"{x}_right"]),
                "y": _plain(row[f"{y}_left"]),
                "y2": _plain(row[f"{y}_right"]),
                "value": row[name],
            }
            for row in rows
        ]
        return charts.heat_map(cells, x, y, name, title, note)
    bars = [
        {
            "cell": _cell(row, axes),
            "value": row[name],
            "low": row.get(name + NOISY, row[name]) - row[name + ERROR],
            "high": row.get(name + NOISY, row[name]) + row[name + ERROR],
        }
        for row in rows[:MOST_BARS]
    ]
    return charts.bars(bars, " / ".join(column for axis in axes for column in axis["columns"]), name, title, note)


def _cell(row: Mapping[str, Any], axes: Sequence[Mapping[str, Any]]) -> str:
    words = []
    for axis in axes:
        for column in axis["columns"]:
            words.append(f"{_short(row[column + '_left'])} to {_short(row[column + '_right'])}" if "bins" in axis else str(row[column]))
    return " / ".join(words) or "all"


def _short(edge: Any) -> str:
    return f"{edge:g}" if isinstance(edge, float) else str(edge).removesuffix(" 00:00:00")


def _plain(edge: Any) -> Any:
    return edge if isinstance(edge, (int, float)) else str(edge)


def _title(name: str, facts: Mapping[str, Any]) -> str:
    label = facts["label"]
    return f"{name} ({label})" if label else name


def _note(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    first = f"epsilon {cost['epsilon']:.4g}{delta}; bars end at the 95% interval of the unbiased value"
    return "\n".join([first, *facts["notes"][:2]])
