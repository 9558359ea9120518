"""Charts of public numbers. Altair is an extra, imported when a chart is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NEEDS_PLOT = "charts need Altair: pip install 'dpframe[plot]'"
WIDTH, HEIGHT = 520, 300


def bars(cells: Sequence[dict[str, Any]], axis: str, value: str, title: str, note: str) -> Any:
    """A bar per cell with its interval; `cells` are rows of ``cell``, ``value``, ``low`` and ``high``."""
    altair = _altair()
    base = altair.Chart(altair.Data(values=list(cells))).encode(
        x=altair.X("cell:N", sort=None, title=axis or None, axis=altair.Axis(labelAngle=-45))
    )
    bar = base.mark_bar(color="#8fb3d9").encode(y=altair.Y("value:Q", title=value))
    interval = base.mark_errorbar(ticks=True, color="#222").encode(y=altair.Y("low:Q", title=value), y2="high:Q")
    return (bar + interval).properties(width=WIDTH, height=HEIGHT, title=_titled(altair, title, note))


def heat_map(cells: Sequence[dict[str, Any]], x: str, y: str, value: str, title: str, note: str) -> Any:
    """A rectangle per cell of a grid; `cells` are rows of ``x``, ``x2``, ``y``, ``y2`` and ``value``."""
    altair = _altair()
    scale = altair.Scale(scheme="viridis")
    chart = altair.Chart(altair.Data(values=list(cells))).mark_rect()
    return chart.encode(
        x=altair.X("x:Q", title=x, scale=altair.Scale(zero=False)),
        x2="x2",
        y=altair.Y("y:Q", title=y, scale=altair.Scale(zero=False)),
        y2="y2",
        color=altair.Color("value:Q", title=value, scale=scale),
    ).properties(width=WIDTH, height=WIDTH, title=_titled(altair, title, note))


def beside(panels: Sequence[Any]) -> Any:
    """Charts side by side, each with its own scale."""
    return panels[0] if len(panels) == 1 else _altair().hconcat(*panels).resolve_scale(y="independent", color="independent")


def expected_errors(names: Sequence[str], errors: Sequence[float], title: str) -> Any:
    """A bar per output column: its expected 95% error."""
    altair = _altair()
    rows = [{"column": name, "error": error} for name, error in zip(names, errors, strict=True)]
    chart = altair.Chart(altair.Data(values=rows)).mark_bar(color="#4c78a8")
    return chart.encode(x=altair.X("column:N", sort=None), y=altair.Y("error:Q", title="expected 95% error")).properties(
        title=title, width=altair.Step(60), height=HEIGHT
    )


def errors_by_price(points: Sequence[tuple[float, str, float]], title: str) -> Any:
    """Expected 95% error against epsilon, a line per output column; both axes logarithmic."""
    altair = _altair()
    rows = [{"epsilon": epsilon, "column": name, "error": error} for epsilon, name, error in points if error > 0]
    chart = altair.Chart(altair.Data(values=rows)).mark_line(point=True)
    return chart.encode(
        x=altair.X("epsilon:Q", scale=altair.Scale(type="log")),
        y=altair.Y("error:Q", scale=altair.Scale(type="log"), title="expected 95% error"),
        color=altair.Color("column:N", title=None),
    ).properties(title=title, width=WIDTH, height=HEIGHT)


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise ImportError(NEEDS_PLOT) from None
    return altair


def _titled(altair: Any, title: str, note: str) -> Any:
    return altair.TitleParams(title, subtitle=note.splitlines(), anchor="start")
