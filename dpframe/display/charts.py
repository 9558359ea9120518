"""Charts of public numbers. Altair is an optional dependency, imported when a chart is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from dpframe.display import pages, theme
from dpframe.display.rounding import rounded, writer
from dpframe.display.still import LONGEST_LINE, Look, still
from dpframe.errors import no_markup
from dpframe.queries.query import ERROR

MOST_CHARGES = 12  # ticks of a chart of charges
NEEDS_PLOT = "charts need Altair: pip install 'dpframe[plot]'"
WIDTH, HEIGHT, NARROW = 520, 300, 300
ROW = 22  # the height in pixels of a row of points
LONGEST_TITLE = 80
BEYOND = "An arrow at the edge: an error of 0, which a logarithmic scale does not reach."
PANELS_BESIDE = 3
OUR_THEMES = ("default", "dark")  # themes of Altair under which charts have the look of dpframe
LOGARITHMIC_LABELS = "datum.value >= 1e6 ? format(datum.value, '~s') : format(datum.value, ',~g')"


@dataclass(frozen=True)
class Words:
    """The words around a chart: a title, a subtitle, and captions below the picture."""

    title: str
    notes: tuple[str, ...] = ()  # captions, each on a line of its own
    subtitle: str = ""
    alt: str = ""  # the description for screen readers; if empty, the title serves
    sentences: tuple[str, ...] = ()  # sentences above the notes, as far as there is room
    left_out: tuple[str, ...] = ()  # sentences on what is not drawn, and on marks, above all others

    def __post_init__(self) -> None:
        object.__setattr__(self, "alt", no_markup(self.alt))
        object.__setattr__(self, "title", no_markup(self.title))
        object.__setattr__(self, "subtitle", no_markup(self.subtitle))
        for name in ("notes", "sentences", "left_out"):
            object.__setattr__(self, name, tuple(map(no_markup, getattr(self, name))))


def band(
    cells: Sequence[dict[str, Any]], across: str, value: str, placed: Mapping[str, Any], *, over_time: bool
) -> Any:
    """Draw a line through values at the right edges of bins, with an area for their intervals.

    Each of the `cells` has ``right``, ``value``, ``low``, ``high``, ``says`` and ``x_says``. `placed` is the scale and
    the axis of the edges.
    """
    altair, value, across = imported(), no_markup(value), no_markup(across)
    tooltip = [altair.Tooltip("x_says:N", title=across), altair.Tooltip("says:N", title=value)]
    data = altair.Chart(public_data(list(cells))).encode(tooltip=tooltip)
    x = altair.X(f"right:{'T' if over_time else 'Q'}", title=across, **placed)
    area = data.mark_area(style="interval-areas").encode(x=x, y=altair.Y("low:Q", title=value), y2="high:Q")
    line = data.mark_line(style="lines").encode(x=x, y=altair.Y("value:Q", title=value))
    return altair.layer(area, line).properties(width=NARROW, height=HEIGHT)


def pair_map(
    cells: Sequence[dict[str, Any]], across: str, up: str, value: str, words: Words | None, most: float
) -> Any:
    """Draw a square per pair of names, in one color above 0 and another below; a cell that is ``noisy`` has none.

    Each of the `cells` has ``across``, ``up``, ``value`` and ``text``. Colors reach to `most`, pale enough for text.
    """
    altair, value = imported(), no_markup(value)
    names = list(dict.fromkeys(no_markup(cell[end]) for cell in cells for end in ("across", "up")))
    base = altair.Chart(public_data(list(cells))).encode(
        x=altair.X("across:N", title=None, sort=names, axis=altair.Axis(labelAngle=0, labelLimit=0)),
        y=altair.Y("up:N", title=None, sort=names, axis=altair.Axis(labelLimit=0)),
        tooltip=[
            altair.Tooltip(f"{field}:N", title=name)
            for field, name in (("across", no_markup(across)), ("up", no_markup(up)), ("text", value))
        ],
    )
    end = most / theme.PALE_OF_TWO
    colors = altair.Scale(range="diverging", domain=[-end, 0.0, end], interpolate="rgb")
    color = altair.Color("value:Q", scale=colors, legend=None)
    squares = [base.transform_filter("!datum.noisy").mark_rect(style="tiles").encode(color=color)]
    if any("noisy" in cell for cell in cells):
        squares.append(base.transform_filter("datum.noisy").mark_rect(style="empty-tiles"))
    side = WIDTH if words else NARROW
    height = min(side, 60 * len({cell["up"] for cell in cells}))
    said = base.mark_text(style="words-on-tiles").encode(text="text:N")
    return titled(altair.layer(*squares, said).properties(width=side, height=height), words)


def map_cells(rows: Sequence[Mapping[str, Any]], across: str, up: str, value: str, error: str) -> list[dict[str, Any]]:
    """Return the cells of a map of two columns of names, from the rows of a result."""
    return [
        {
            "across": str(row[across]),
            "up": str(row[up]),
            "value": row[value],
            "text": with_margin(row[value], row[error]),
        }
        for row in rows
    ]


def with_margin(value: float, error: float | None) -> str:
    """Return a number as text with its margin of error, if it has one, both rounded as in a table."""
    if error is None:
        return pages.number(value)
    made = rounded("", {"": np.array([value]), ERROR: np.array([error])}, "error")
    text, margin = (writer(None)(float(made.columns[name][0]), made.decimals) for name in ("", ERROR))
    return f"{text} ± {margin}"


def named_map(cells: Sequence[dict[str, Any]], across: str, up: str, value: str, reach: tuple[float, float]) -> Any:
    """Draw a small map of a table of two columns of names; its cells have ``across``, ``up``, ``value`` and ``text``.

    The colors cover `reach`, which the maps next to it share.
    """
    altair, value = imported(), no_markup(value)
    domain = list(reach)
    legend = altair.Legend(gradientLength=90, title=value)
    labels = altair.Axis(labelLimit=0, labelOverlap="greedy")
    titles = {"across": no_markup(across), "up": no_markup(up), "text": value}
    chart = altair.Chart(public_data(list(cells))).mark_rect(style="tiles")
    chart = chart.encode(
        x=altair.X("across:N", title=titles["across"], sort=None, axis=labels),
        y=altair.Y("up:N", title=titles["up"], sort=None, axis=labels),
        color=altair.Color("value:Q", legend=legend, scale=altair.Scale(domain=domain, nice=False)),
        tooltip=[altair.Tooltip(f"{field}:N", title=titles[field]) for field in ("up", "across", "text")],
    )
    wide, high = (len({cell[side] for cell in cells}) for side in ("across", "up"))
    return chart.properties(width=min(220, 28 * wide + 40), height=min(220, 22 * high + 20))


def beside(
    panels: Sequence[Any],
    words: Words,
    columns: int | None = None,
    colors: Literal["independent", "shared"] = "independent",
) -> Any:
    """Draw charts next to each other under one title, each with its own axes and its own places of grouped bars."""
    together = imported().concat(*panels, columns=columns or PANELS_BESIDE, spacing=28)
    scales = dict.fromkeys(("color", "fill", "stroke", "shape"), colors)
    return titled(together.resolve_scale(**scales, xOffset="independent", yOffset="independent"), words)


def expected_errors(points: Sequence[tuple[str, float]], words: Words) -> Any:
    """Draw the expected 95% error of each output column, on a logarithmic scale since columns have different units."""
    return named_points(points, "expected 95% error (logarithmic)", lambda error: f"±{pages.number(error)}", words)


def named_points(points: Sequence[tuple[str, float]], title: str, say: Callable[[float], str], words: Words) -> Any:
    """Draw a point per name on a logarithmic scale, with its value as text."""
    altair = imported()
    positive = [value for _, value in points if math.isfinite(value) and value > 0] or [1.0]
    domain = [min(positive) / 3, max(positive) * 3]
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "value": (domain[0] if value == 0 else value) if math.isfinite(value) else None,
            "text": say(value),
            "beyond": value == 0,
        }
        for name, value in points
    ]
    base = altair.Chart(public_data(rows)).encode(
        x=altair.X(
            "value:Q",
            title=title,
            scale=altair.Scale(type="log", domain=domain),
            axis=_powers_of_ten(altair, positive),
        ),
        y=altair.Y("name:N", sort=None, title=None, axis=altair.Axis(labelLimit=300)),
    )
    dots = base.transform_filter("!datum.beyond").mark_point(style="points", filled=True)
    if any(row["beyond"] for row in rows):
        beyond = base.transform_filter("datum.beyond").mark_point(style="arrows", shape="triangle-left", filled=True)
        dots = dots + beyond
        words = replace(words, notes=(*words.notes, BEYOND))
    text = base.mark_text(style="words", align="left", dx=8).encode(text="text:N")
    return titled((dots + text).properties(width=WIDTH, height=ROW * 1.4 * len(rows)), words)


def errors_by_price(points: Sequence[tuple[float, str, float]], words: Words) -> Any:
    """Draw the expected 95% error against epsilon, with a line per output column and logarithmic axes."""
    altair = imported()
    known = [error for *_, error in points if error > 0 and math.isfinite(error)] or [1.0]
    below = min(known) / 3  # the place of an error of 0
    rows: list[dict[str, Any]] = [
        {
            "epsilon": epsilon,
            "column": name,
            "error": below if error == 0 else error if math.isfinite(error) else None,
            "text": f"±{pages.number(error)}",
            "beyond": error == 0,
        }
        for epsilon, name, error in points
    ]
    zeros = any(row["beyond"] for row in rows)
    if zeros:
        words = replace(words, notes=(*words.notes, BEYOND))
    prices = sorted({row["epsilon"] for row in rows})
    names = list(dict.fromkeys(no_markup(name) for _, name, _ in points))
    ends = {"domain": [below, max(known) * 1.5]} if zeros else {}
    base = altair.Chart(public_data(rows)).encode(
        x=altair.X(
            "epsilon:Q",
            title="epsilon (logarithmic)",
            scale=altair.Scale(type="log", domain=[prices[0], prices[-1]], nice=False, padding=12),
            axis=altair.Axis(values=prices, format="~r", labelOverlap="greedy"),
        ),
        y=altair.Y(
            "error:Q",
            title="expected 95% error (logarithmic)",
            scale=altair.Scale(type="log", **ends),
            axis=_powers_of_ten(altair, known),
        ),
        color=altair.Color("column:N", title=None, sort=names, legend=altair.Legend() if len(names) > 1 else None),
        tooltip=["column:N", "epsilon:Q", altair.Tooltip("text:N", title="expected 95% error")],
    )
    chart = base.transform_filter("!datum.beyond").mark_line(point=altair.OverlayMarkDef(size=50))
    if zeros:
        of_zero = base.transform_filter("datum.beyond")
        arrows = of_zero.mark_point(shape="triangle-down", filled=True, size=60, opacity=1, yOffset=-4)
        chart = altair.layer(chart, arrows, of_zero.mark_text(style="words", dy=-14).encode(text="text:N"))
    return titled(chart.properties(width=WIDTH, height=HEIGHT), words)


def budget(points: Sequence[dict[str, Any]], words: Words, unit: str, *, by_time: bool) -> Any:
    """Draw the spent budget as steps below the limit; `points` have ``time``, ``charge``, ``spent`` and ``limit``.

    ``time`` is in ISO 8601, and ``limit`` is None where there is none. The axis is the time with `by_time`, or else
    the number of the charge.
    """
    altair = imported()
    data = altair.Chart(public_data(list(points)))
    if by_time:
        across = altair.X("time:T", title="time (UTC)", scale=altair.Scale(type="utc"))
    else:
        step = max(1, math.ceil((len(points) - 1) / MOST_CHARGES))
        ticks = [point["charge"] for point in points[::step]]  # whole numbers, regardless of the room
        across = altair.X("charge:Q", title="charges", axis=altair.Axis(values=ticks, format="d"))
    spent = altair.Y("spent:Q", title=unit, scale=altair.Scale(zero=True))
    tooltip = ["time:T", "spent:Q", "limit:Q", "label:N", "query:N"]
    steps = data.mark_line(interpolate="step-after", style="lines").encode(x=across, y=spent)
    dots = data.mark_point(style="points", filled=True, size=40).encode(x=across, y=spent, tooltip=tooltip)
    limit = data.transform_filter("datum.limit != null").mark_line(interpolate="step-after", style="limits")
    chart = altair.layer(limit.encode(x=across, y=altair.Y("limit:Q", title=unit)), steps, dots)
    return titled(chart.properties(width=WIDTH, height=HEIGHT), words)


def panel(chart: Any, title: str) -> Any:
    """Return a chart with a small heading, as a panel next to others."""
    return chart.properties(title=imported().TitleParams(no_markup(title), anchor="start", fontSize=12, frame="group"))


def _powers_of_ten(altair: Any, shown: Sequence[float]) -> Any:
    """Return a logarithmic axis with ticks at powers of ten, which leave room for their labels."""
    positive = [value for value in shown if value > 0] or [1.0]
    first, last = math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 1
    return altair.Axis(labelExpr=LOGARITHMIC_LABELS, values=[10.0**power for power in range(first, last + 1)])


def public_data(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows as data for a chart; names from users lose their markup, and text may have several lines."""
    plain = [
        {name: _harmless(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows
    ]
    return imported().Data(values=plain)


def _harmless(text: str) -> str:
    return "\n".join(map(no_markup, text.split("\n")))


def imported() -> Any:
    """Return the module Altair; without it, raise an error that says how to install it."""
    try:
        import altair
    except ImportError:
        raise ImportError(NEEDS_PLOT) from None
    return altair


def nothing(said: str, words: Words) -> Any:
    """Return a chart that has no data and shows a message instead."""
    altair = imported()
    text = altair.Chart(altair.Data(values=[{"said": said}])).mark_text(size=theme.TITLE_SIZE).encode(text="said:N")
    return titled(text.properties(width=WIDTH, height=4 * theme.TITLE_SIZE), words)


def titled(chart: Any, words: Words | None) -> Any:
    """Return the chart with its words and the theme; without words, it is part of another chart and stays as it is."""
    if words is None:
        return chart
    altair = imported()
    lines = wrap(words.title, LONGEST_TITLE, break_on_hyphens=False) or [""]
    small_print = {"subtitle": words.subtitle} if words.subtitle else {}
    title = altair.TitleParams(lines if len(lines) > 1 else lines[0], fontSize=theme.TITLE_SIZE, **small_print)
    chart = chart.properties(title=title, description=words.alt or words.title)
    themes = altair.theme if hasattr(getattr(altair, "theme", None), "active") else altair.themes  # before Altair 5.5
    active = themes.active
    captions = [line for note in words.notes for line in wrap(note, LONGEST_LINE, break_on_hyphens=False)]
    dark = active == "dark" if active in OUR_THEMES else None
    paragraphs = (words.sentences,) if words.sentences else ()
    return still(chart, Look(dark, paragraphs, tuple(captions), words.left_out))
