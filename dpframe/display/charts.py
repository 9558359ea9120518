"""Charts of public numbers. Altair is an extra, imported when a chart is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from textwrap import wrap
from typing import Any

from dpframe.display import pages
from dpframe.display.still import still
from dpframe.errors.words import no_markup

NEEDS_PLOT = "charts need Altair: pip install 'dpframe[plot]'"
WIDTH, HEIGHT, NARROW = 520, 300, 300
ROW = 22  # the height of a bar that lies on its side
LONGEST_BESIDE = 64  # characters of all labels together that fit side by side under a chart
LONGEST_LINE = 100  # characters of small print that fit over a chart
PANELS_BESIDE = 3
POINT_PADDING = 10
MOST_TICKS = 21
STEEP = 1_000  # times the narrowest cell of a map is the widest one, beyond which its scale is logarithmic
FILL, INK, LINE = "#8fb3d9", "#2f4b6e", "#333333"
BAND = "#e0a458"  # of the expected error of a denoised value
PALE_TO_DARK = ["#f3f6fa", "#9fc2e4", "#3b7ab8", "#0b2f5e"]
RED_TO_BLUE = ["#d98880", "#f7f7f7", "#8fb3d9"]
LOGARITHMIC_LABELS = "datum.value >= 1e6 ? format(datum.value, '~s') : format(datum.value, ',~g')"


@dataclass(frozen=True)
class Words:
    """The words around a chart: a title, and notes in small print below it."""

    title: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", no_markup(self.title))
        object.__setattr__(self, "notes", tuple(map(no_markup, self.notes)))


@dataclass(frozen=True)
class Scale:
    """The direction of the cells: a title, and whether they are stretches of numbers or of time, or names."""

    title: str
    kind: str = "name"  # or "number", "time"
    edges: tuple[float, ...] = ()  # of stretches of numbers
    padding: int = 0  # pixels at both ends, so that no point lies on the frame

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", no_markup(self.title))


def bars(cells: Sequence[dict[str, Any]], across: Scale, value: str, words: Words | None, *, from_zero: bool) -> Any:
    """A bar per cell, or a point where zero means nothing, and its interval over it.

    `cells` are rows of ``value``, ``low``, ``high``, and of ``cell`` (a name) or ``left``, ``middle`` and ``right``.
    ``band_low`` and ``band_high``, where rows have them, are drawn as a band.
    """
    altair, value = _altair(), no_markup(value)
    label_lengths = [len(str(cell["cell"])) for cell in cells]
    too_long = sum(label_lengths) > LONGEST_BESIDE or max(label_lengths) > LONGEST_BESIDE // 3
    lying = across.kind == "name" and (too_long or len(cells) == 1)
    along, other = ("y", "x") if lying else ("x", "y")
    data = altair.Chart(_data(altair, [{**cell, "zero": 0} for cell in cells]))
    across_axis = altair.Y if other == "y" else altair.X
    released = across_axis("value:Q", title=value, scale=altair.Scale(zero=from_zero))
    ends = {other: across_axis("low:Q", title=value), f"{other}2": "high:Q"}
    if from_zero:
        bar = data.mark_bar(color=FILL, stroke="white", strokeWidth=1)
        bar = bar.encode(**_spread(altair, across, along), **{other: released, f"{other}2": "zero"})
    else:
        across = replace(across, padding=POINT_PADDING)
        bar = data.mark_point(color=INK, filled=True, size=60, opacity=1).encode(
            **_centre(altair, across, along), **{other: released}
        )
    interval = data.mark_rule(color=LINE).encode(**_centre(altair, across, along), **ends)
    caps = [
        data.mark_tick(color=LINE, thickness=1, size=8, orient="vertical" if lying else "horizontal").encode(
            **_centre(altair, across, along), **{other: across_axis(f"{end}:Q", title=value)}
        )
        for end in ("low", "high")
    ]
    if any("band_low" in cell for cell in cells):
        band = data.mark_rule(color=BAND, strokeWidth=5, opacity=0.6)
        banded = {other: across_axis("band_low:Q", title=value), f"{other}2": "band_high:Q"}
        caps.insert(0, band.encode(**_centre(altair, across, along), **banded))
    height = ROW * len(cells) if lying else HEIGHT
    return _titled(
        altair.layer(bar, *caps[:-2], interval, *caps[-2:]).properties(width=WIDTH if words else NARROW, height=height),
        words,
    )


def band(cells: Sequence[dict[str, Any]], across: Scale, value: str) -> Any:
    """A line through values at the ends of stretches, in a band of intervals; `cells` are rows as those of `bars`."""
    altair, value = _altair(), no_markup(value)
    data = altair.Chart(_data(altair, list(cells)))
    x = altair.X(f"right:{_type(across)}", title=across.title, scale=_scale(altair, across))
    area = data.mark_area(color=FILL, opacity=0.6).encode(x=x, y=altair.Y("low:Q", title=value), y2="high:Q")
    line = data.mark_line(color=INK).encode(x=x, y=altair.Y("value:Q", title=value))
    return altair.layer(area, line).properties(width=NARROW, height=HEIGHT)


def heat_map(cells: Sequence[dict[str, Any]], across: Scale, up: Scale, value: str, words: Words | None) -> Any:
    """A rectangle per cell of a grid; `cells` are rows of ``left``, ``right``, ``bottom``, ``top`` and ``value``."""
    altair, value = _altair(), no_markup(value)
    values = [cell["value"] for cell in cells]
    domain = [min(0.0, *values), max(1.0, *values)]
    chart = altair.Chart(_data(altair, list(cells))).mark_rect(stroke="white", strokeWidth=0.5)
    chart = chart.encode(
        x=altair.X(f"left:{_type(across)}", title=across.title, **_sides(altair, across)),
        x2="right",
        y=altair.Y(f"bottom:{_type(up)}", title=up.title, **_sides(altair, up)),
        y2="top",
        color=altair.Color("value:Q", title=value, scale=altair.Scale(range=PALE_TO_DARK, domain=domain, nice=False)),
        tooltip=[f"{end}:{_type(across)}" for end in ("left", "right")]
        + [f"{end}:{_type(up)}" for end in ("bottom", "top")]
        + ["value:Q"],
    )
    side = WIDTH if words else NARROW
    return _titled(chart.properties(width=side, height=int(side * 0.8)), words)


def pair_map(cells: Sequence[dict[str, Any]], across: str, up: str, value: str, words: Words | None) -> Any:
    """A square per pair of names, blue above 0, red below; `cells` are ``across``, ``up``, ``value``, ``text``."""
    altair, value = _altair(), no_markup(value)
    most = max((abs(cell["value"]) for cell in cells), default=0.0) or 1.0
    base = altair.Chart(_data(altair, list(cells))).encode(
        x=altair.X("across:N", title=no_markup(across), sort=None, axis=altair.Axis(labelAngle=0)),
        y=altair.Y("up:N", title=no_markup(up), sort=None),
        tooltip=["across:N", "up:N", "text:N"],
    )
    colors = altair.Scale(range=RED_TO_BLUE, domain=[-most, 0.0, most])
    squares = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        color=altair.Color("value:Q", title=value, scale=colors)
    )
    side = WIDTH if words else NARROW
    height = min(side, 60 * len({cell["up"] for cell in cells}))
    chart = altair.layer(squares, base.mark_text(color=LINE).encode(text="text:N"))
    return _titled(chart.properties(width=side, height=height), words)


def named_map(cells: Sequence[dict[str, Any]], across: str, up: str, value: str) -> Any:
    """A small map of a table of two columns of names; `cells` are ``across``, ``up``, ``value`` and ``text``."""
    altair = _altair()
    values = [cell["value"] for cell in cells]
    domain = [min(0.0, *values), max(1.0, *values)]
    legend = altair.Legend(gradientLength=90, title=no_markup(value))
    labels = altair.Axis(labelLimit=90, labelOverlap="greedy")
    chart = altair.Chart(_data(altair, list(cells))).mark_rect(stroke="white", strokeWidth=0.3)
    chart = chart.encode(
        x=altair.X("across:N", title=no_markup(across), sort=None, axis=labels),
        y=altair.Y("up:N", title=no_markup(up), sort=None, axis=labels),
        color=altair.Color("value:Q", legend=legend, scale=altair.Scale(range=PALE_TO_DARK, domain=domain, nice=False)),
        tooltip=["up:N", "across:N", "text:N"],
    )
    wide, high = (len({cell[side] for cell in cells}) for side in ("across", "up"))
    return chart.properties(width=min(220, 28 * wide + 40), height=min(220, 22 * high + 20))


def beside(panels: Sequence[Any], words: Words) -> Any:
    """Charts side by side, each with its own scale, under one title."""
    altair = _altair()
    together = altair.concat(*panels, columns=PANELS_BESIDE).resolve_scale(color="independent")
    return _titled(together, words)


def expected_errors(points: Sequence[tuple[str, float]], words: Words) -> Any:
    """A point per output column: its expected 95% error, on a logarithmic scale since columns have different units."""
    return named_points(points, "expected 95% error (logarithmic)", lambda error: f"±{pages.number(error)}", words)


def named_points(points: Sequence[tuple[str, float]], title: str, say: Callable[[float], str], words: Words) -> Any:
    """A point per name on a logarithmic scale, with its value in words."""
    altair = _altair()
    rows: list[dict[str, Any]] = [
        {"name": name, "value": value if math.isfinite(value) else None, "text": say(value)} for name, value in points
    ]
    finite = [value for _, value in points if math.isfinite(value)]
    shown = [value for value in finite if value > 0] or [1.0]
    domain = [min(shown) / 3, max(shown) * 3]
    base = altair.Chart(_data(altair, rows)).encode(
        x=altair.X(
            "value:Q",
            title=title,
            scale=altair.Scale(type="log", domain=domain),
            axis=_powers_of_ten(altair, finite),
        ),
        y=altair.Y("name:N", sort=None, title=None, axis=altair.Axis(labelLimit=300)),
    )
    dots = base.mark_point(color=INK, filled=True, size=80, opacity=1)
    text = base.mark_text(align="left", dx=8, color=LINE).encode(text="text:N")
    return _titled((dots + text).properties(width=WIDTH, height=ROW * 1.4 * len(rows)), words)


def errors_by_price(points: Sequence[tuple[float, str, float]], words: Words) -> Any:
    """Expected 95% error against epsilon, a line per output column; both axes logarithmic."""
    altair = _altair()
    rows: list[dict[str, Any]] = [
        {"epsilon": epsilon, "column": name, "error": error} for epsilon, name, error in points if error > 0
    ]
    prices = sorted({row["epsilon"] for row in rows}) or [1.0]
    names = list(dict.fromkeys(no_markup(name) for _, name, _ in points))
    chart = altair.Chart(_data(altair, rows)).mark_line(point=altair.OverlayMarkDef(size=50))
    chart = chart.encode(
        x=altair.X(
            "epsilon:Q",
            title="epsilon (logarithmic)",
            scale=altair.Scale(type="log", domain=[prices[0], prices[-1]], nice=False, padding=12),
            axis=altair.Axis(values=prices, format="~r", labelOverlap="greedy"),
        ),
        y=altair.Y(
            "error:Q",
            title="expected 95% error (logarithmic)",
            scale=altair.Scale(type="log"),
            axis=_powers_of_ten(altair, [row["error"] for row in rows]),
        ),
        color=altair.Color("column:N", title=None, sort=names, legend=altair.Legend() if len(names) > 1 else None),
        tooltip=["column:N", "epsilon:Q", "error:Q"],
    )
    return _titled(chart.properties(width=WIDTH, height=HEIGHT), words)


def budget(points: Sequence[dict[str, Any]], words: Words, *, by_time: bool) -> Any:
    """Draw the spent budget as steps, below the limit; `points` have ``time``, ``charge``, ``spent``, ``limit``.

    ``time`` is in ISO 8601, and ``limit`` is None where there is none. Over time, or over the number of the charge
    where all were made at nearly the same time.
    """
    altair = _altair()
    data = altair.Chart(_data(altair, list(points)))
    if by_time:
        across = altair.X("time:T", title="time (UTC)", scale=altair.Scale(type="utc"))
    else:
        across = altair.X("charge:Q", title="charges", axis=altair.Axis(tickMinStep=1, format="d"))
    spent = altair.Y("spent:Q", title="epsilon", scale=altair.Scale(zero=True))
    tooltip = ["time:T", "spent:Q", "limit:Q", "label:N", "query:N"]
    steps = data.mark_line(interpolate="step-after", color=INK, strokeWidth=2).encode(x=across, y=spent)
    dots = data.mark_point(color=INK, filled=True, size=30, opacity=1).encode(x=across, y=spent, tooltip=tooltip)
    limit = data.transform_filter("datum.limit != null").mark_line(
        interpolate="step-after", color=LINE, strokeDash=[5, 4], point=altair.OverlayMarkDef(size=1, color=LINE)
    )
    chart = altair.layer(limit.encode(x=across, y=altair.Y("limit:Q", title="epsilon")), steps, dots)
    return _titled(chart.properties(width=WIDTH, height=HEIGHT), words)


def panel(chart: Any, title: str) -> Any:
    """A chart with a small heading, to stand beside others."""
    return chart.properties(title=_altair().TitleParams(no_markup(title), anchor="start", fontSize=12, frame="group"))


def _spread(altair: Any, across: Scale, along: str) -> dict[str, Any]:
    """The two ends of a bar."""
    if across.kind == "name":
        return _centre(altair, across, along)
    channel = altair.X if along == "x" else altair.Y
    left = channel(
        f"left:{_type(across)}", title=across.title, scale=_scale(altair, across), axis=_axis(altair, across)
    )
    return {along: left, f"{along}2": "right"}


def _centre(altair: Any, across: Scale, along: str) -> dict[str, Any]:
    """The middle of a bar."""
    channel = altair.X if along == "x" else altair.Y
    if across.kind == "name":
        axis = altair.Axis(labelAngle=0, labelLimit=300)
        return {along: channel("cell:N", sort=None, title=across.title or None, axis=axis)}
    scale, axis = _scale(altair, across), _axis(altair, across)
    return {along: channel(f"middle:{_type(across)}", title=across.title, scale=scale, axis=axis)}


def _type(scale: Scale) -> str:
    return "T" if scale.kind == "time" else "Q"


def _scale(altair: Any, scale: Scale) -> Any:
    padding = {"padding": scale.padding} if scale.padding else {}
    if scale.kind == "time":
        return altair.Scale(type="utc", **padding)
    return altair.Scale(zero=False, nice=False, **padding)


def _sides(altair: Any, scale: Scale) -> dict[str, Any]:
    """The scale and the axis of a side of a map: logarithmic where the last cells would hide the first."""
    widths = [right - left for left, right in pairwise(scale.edges)]
    if not widths or scale.edges[0] <= 0 or max(widths) <= STEEP * min(widths):
        return {"scale": _scale(altair, scale), "axis": _axis(altair, scale)}
    logarithmic = altair.Scale(type="log", domain=[scale.edges[0], scale.edges[-1]], nice=False)
    ticks = {"values": list(scale.edges), "labelOverlap": "greedy", "labelSeparation": 6, "format": ","}
    return {"scale": logarithmic, "axis": altair.Axis(grid=False, **ticks)}


def _axis(altair: Any, scale: Scale) -> Any:
    """Ticks at the edges, where there are few enough of them."""
    if scale.kind == "number" and len(scale.edges) <= MOST_TICKS:
        return altair.Axis(grid=False, values=list(scale.edges), labelOverlap="parity")
    return altair.Axis(grid=False)


def _powers_of_ten(altair: Any, shown: Sequence[float]) -> Any:
    """Ticks of a logarithmic axis that leave room for their labels."""
    positive = [value for value in shown if value > 0] or [1.0]
    first, last = math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 1
    return altair.Axis(labelExpr=LOGARITHMIC_LABELS, values=[10.0**power for power in range(first, last + 1)])


def _data(altair: Any, rows: Sequence[dict[str, Any]]) -> Any:
    """Rows for a chart; their words are names that people gave."""
    plain = [
        {name: no_markup(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows
    ]
    return altair.Data(values=plain)


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise ImportError(NEEDS_PLOT) from None
    return altair


def _titled(chart: Any, words: Words | None) -> Any:
    if words is None:
        return chart
    notes = [line for note in words.notes for line in wrap(note, LONGEST_LINE, break_on_hyphens=False)]
    title = _altair().TitleParams(
        words.title, subtitle=notes, anchor="start", subtitleColor="#666", subtitlePadding=4, offset=12
    )
    return still(chart.properties(title=title))
