"""Charts of public numbers. Altair is an extra, imported when a chart is drawn."""

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
ROW = 22  # the height of a line of points
LONGEST_TITLE = 80
BEYOND = "an arrow at the edge: an error of 0, which a logarithmic scale does not reach"
PANELS_BESIDE = 3
OUR_THEMES = ("default", "dark")  # of Altair, under which charts have the look of this library
LOGARITHMIC_LABELS = "datum.value >= 1e6 ? format(datum.value, '~s') : format(datum.value, ',~g')"


@dataclass(frozen=True)
class Words:
    """The words around a chart: a title with a line below it, and captions below the picture."""

    title: str
    notes: tuple[str, ...] = ()  # captions, of which each begins a line
    subtitle: str = ""
    alt: str = ""  # what a reader of the screen says; the title where there is none
    sentences: tuple[str, ...] = ()  # above these captions, as far as there is room for them
    left_out: tuple[str, ...] = ()  # sentences on what is not drawn, above all

    def __post_init__(self) -> None:
        object.__setattr__(self, "alt", no_markup(self.alt))
        object.__setattr__(self, "title", no_markup(self.title))
        object.__setattr__(self, "subtitle", no_markup(self.subtitle))
        for name in ("notes", "sentences", "left_out"):
            object.__setattr__(self, name, tuple(map(no_markup, getattr(self, name))))


def band(cells: Sequence[dict[str, Any]], across: str, value: str, time: Mapping[str, Any] | None = None) -> Any:
    """A line through values at the ends of stretches, in an area of intervals.

    `cells` are rows of ``right``, ``value``, ``low``, ``high`` and ``says``; `time` is the scale and the axis of time.
    """
    altair, value, across = imported(), no_markup(value), no_markup(across)
    tooltip = [altair.Tooltip("x_says:N", title=across), altair.Tooltip("says:N", title=value)]
    data = altair.Chart(public_data(list(cells))).encode(tooltip=tooltip)
    placed = time or {"scale": altair.Scale(zero=False, nice=False), "axis": altair.Axis(grid=False)}
    x = altair.X(f"right:{'T' if time else 'Q'}", title=across, **placed)
    area = data.mark_area(style="interval-areas").encode(x=x, y=altair.Y("low:Q", title=value), y2="high:Q")
    line = data.mark_line(style="lines").encode(x=x, y=altair.Y("value:Q", title=value))
    return altair.layer(area, line).properties(width=NARROW, height=HEIGHT)


def pair_map(
    cells: Sequence[dict[str, Any]], across: str, up: str, value: str, words: Words | None, most: float
) -> Any:
    """A square per pair of names, one color above 0, one below; `cells` are ``across``, ``up``, ``value``, ``text``.

    The colors reach to `most`, and are pale enough for words.
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
    squares = base.mark_rect(style="tiles").encode(color=altair.Color("value:Q", scale=colors, legend=None))
    side = WIDTH if words else NARROW
    height = min(side, 60 * len({cell["up"] for cell in cells}))
    said = base.mark_text(style="words-on-tiles").encode(text="text:N")
    return titled(altair.layer(squares, said).properties(width=side, height=height), words)


def map_cells(rows: Sequence[Mapping[str, Any]], across: str, up: str, value: str, error: str) -> list[dict[str, Any]]:
    """The cells of a map of two columns of names, from the rows of a result."""
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
    """A number with its margin of error where it has one, both rounded as a table rounds them."""
    if error is None:
        return pages.number(value)
    made = rounded("", {"": np.array([value]), ERROR: np.array([error])}, "error")
    text, margin = (writer(None)(float(made.columns[name][0]), made.decimals) for name in ("", ERROR))
    return f"{text} ± {margin}"


def named_map(cells: Sequence[dict[str, Any]], across: str, up: str, value: str, reach: tuple[float, float]) -> Any:
    """A small map of a table of two columns of names; `cells` are ``across``, ``up``, ``value`` and ``text``.

    The colors reach over `reach`, which the maps next to it share.
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
    """Charts side by side, each with its own scales, under one title."""
    together = imported().concat(*panels, columns=columns or PANELS_BESIDE, spacing=28)
    return titled(together.resolve_scale(**dict.fromkeys(("color", "fill", "stroke", "shape"), colors)), words)


def expected_errors(points: Sequence[tuple[str, float]], words: Words) -> Any:
    """A point per output column: its expected 95% error, on a logarithmic scale since columns have different units."""
    return named_points(points, "expected 95% error (logarithmic)", lambda error: f"±{pages.number(error)}", words)


def named_points(points: Sequence[tuple[str, float]], title: str, say: Callable[[float], str], words: Words) -> Any:
    """A point per name on a logarithmic scale, with its value as text."""
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
    """Expected 95% error against epsilon, a line per output column; both axes logarithmic."""
    altair = imported()
    known = [error for *_, error in points if error > 0 and math.isfinite(error)] or [1.0]
    below = min(known) / 3  # where an error of 0 stands
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
    """Draw the spent budget as steps, below the limit; `points` have ``time``, ``charge``, ``spent``, ``limit``.

    ``time`` is in ISO 8601, and ``limit`` is None where there is none. Over time, or over the number of the charge
    where all were made at nearly the same time.
    """
    altair = imported()
    data = altair.Chart(public_data(list(points)))
    if by_time:
        across = altair.X("time:T", title="time (UTC)", scale=altair.Scale(type="utc"))
    else:
        step = max(1, math.ceil((len(points) - 1) / MOST_CHARGES))
        ticks = [point["charge"] for point in points[::step]]  # whole numbers, whatever room there is
        across = altair.X("charge:Q", title="charges", axis=altair.Axis(values=ticks, format="d"))
    spent = altair.Y("spent:Q", title=unit, scale=altair.Scale(zero=True))
    tooltip = ["time:T", "spent:Q", "limit:Q", "label:N", "query:N"]
    steps = data.mark_line(interpolate="step-after", style="lines").encode(x=across, y=spent)
    dots = data.mark_point(style="points", filled=True, size=40).encode(x=across, y=spent, tooltip=tooltip)
    limit = data.transform_filter("datum.limit != null").mark_line(interpolate="step-after", style="limits")
    chart = altair.layer(limit.encode(x=across, y=altair.Y("limit:Q", title=unit)), steps, dots)
    return titled(chart.properties(width=WIDTH, height=HEIGHT), words)


def panel(chart: Any, title: str) -> Any:
    """A chart with a small heading, to stand next to others."""
    return chart.properties(title=imported().TitleParams(no_markup(title), anchor="start", fontSize=12, frame="group"))


def _powers_of_ten(altair: Any, shown: Sequence[float]) -> Any:
    """Ticks of a logarithmic axis that leave room for their labels."""
    positive = [value for value in shown if value > 0] or [1.0]
    first, last = math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 1
    return altair.Axis(labelExpr=LOGARITHMIC_LABELS, values=[10.0**power for power in range(first, last + 1)])


def public_data(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows for a chart; their words are names that people gave, and may have several lines."""
    plain = [
        {name: _harmless(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows
    ]
    return imported().Data(values=plain)


def _harmless(text: str) -> str:
    return "\n".join(map(no_markup, text.split("\n")))


def imported() -> Any:
    """Altair, or how to get it."""
    try:
        import altair
    except ImportError:
        raise ImportError(NEEDS_PLOT) from None
    return altair


def nothing(said: str, words: Words) -> Any:
    """The words of a chart that has nothing to draw, and that it has not."""
    altair = imported()
    text = altair.Chart(altair.Data(values=[{"said": said}])).mark_text(size=theme.TITLE_SIZE).encode(text="said:N")
    return titled(text.properties(width=WIDTH, height=4 * theme.TITLE_SIZE), words)


def titled(chart: Any, words: Words | None) -> Any:
    """The chart with its words and the theme; without words it is a part of another."""
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
