"""Charts of the cells of results: bars, lines, points and heat maps. Marks name styles; the theme has the colors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from textwrap import wrap
from typing import Any

import numpy as np

from dpframe.display import theme
from dpframe.display.charts import WIDTH, imported, public_data
from dpframe.display.layout import Dimension, are_alike, broken
from dpframe.errors import no_markup

HEIGHT = 300
PANEL_WIDTHS = {1: WIDTH, 2: 320, 3: 230}  # pixels of small multiples, by their number in a row
PANEL_HEIGHT = 170
NARROWEST = 120
PANELS_BESIDE = 3
ROW, DENSE_ROW, MANY = 22, 15, 30  # pixels of a horizontal bar, and of one among many; more bars than this are many
GROUPED_ROW = 13
TILE_ROW = 26
LINE = 13  # the height of each further line of a label
LETTER, BOLD_LETTER = 6.3, 7  # the width of a letter in pixels
POINT_PADDING = 10
MOST_TICKS, MOST_HOURS = 21, 12  # labels of hours are wider than those of days
FEWEST_MIDNIGHTS = 4  # with at least so many midnights, only these have ticks
DAY, WEEK = 86_400, 604_800  # seconds
TICK = "datum.value"  # the value of a tick, in the expression of its label
YEAR = "datum.index === 0 || utcmonth(datum.value) === 0{} ? utcFormat(datum.value, '%Y') : ''"
OF_DAYS = f"[utcFormat(datum.value, '%b %-d'), {YEAR.format(' && utcdate(datum.value) < 8')}]"
OF_MONTHS = f"[utcFormat(datum.value, '%b'), {YEAR.format('')}]"
NEW_DAY = "datum.index === 0 || utchours(datum.value) === 0 && utcminutes(datum.value) === 0"
OF_HOURS = f"[utcFormat(datum.value, '%H:%M'), {NEW_DAY} ? utcFormat(datum.value, '%b %-d') : '']"
BELOW, ABOVE = 0.1, 1.02  # of a scale that starts just below 0: lowest start and top, relative to the largest number
MOST_DOTS = 60  # large points of a line
HATCH, HATCH_WIDTH = [2, 3], 12  # of intervals without an end: pixels of a dash and of a gap, and the largest width
ARROW, ARROW_SIZE = 5, 60  # the distance from the edge in pixels, and the area in square pixels
MOST_CAPPED = 40  # bars with error bars that readers can still distinguish
MOST_WRITTEN = 100  # tiles of a heat map that show their number as text
SMALLEST_WRITTEN = 44  # the least width in pixels of such a tile
SMALLEST_SEPARATED = 10_000  # smaller edges have no thousands separators, since they may be years
SPLIT = "split(datum.label, '\\n')"

Cell = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """The cells of a chart, their places, and the titles of its axes.

    Each of the `cells` has ``value``, ``low``, ``high`` and ``says`` (the value as text). Its place along the axis is
    ``cell`` (a name), or ``left``, ``middle`` and ``right``; a heat map adds ``up``, or ``bottom`` and ``top``. It may
    have ``color``, ``facet``, and ``band_low`` and ``band_high`` where the expected error of an adjusted value is
    known. ``low`` and ``high`` are None where an interval has no end, and missing where its place is unknown.
    """

    cells: Sequence[Cell]
    kind: str  # "bar", "line", "point", "heatmap"
    x: Dimension | None
    value: str  # the title of the axis of values
    up: Dimension | None = None
    color: Dimension | None = None
    facet: str = ""  # the title of several panels; empty for a single one
    from_zero: bool = True
    width: int = WIDTH
    reach: tuple[float, float] | None = None  # limits of the values where known: of shares, and of one number in bounds
    running: bool = False  # each value covers all cells up to the end of its own
    counted: bool = False  # exact values are whole numbers; colors then reach to 1 at least
    domain: tuple[float, float] | None = None  # the scale of values that panels of one quantity share

    def open_of(self, cell: Cell) -> str:
        """Return the sides on which an interval has no end, or one beyond the scale: "low", "high", "both" or ""."""
        if "low" not in cell:  # the place of the interval is unknown
            return ""
        least, most = self.reach or (-math.inf, math.inf)
        low = cell["low"] is None or cell["low"] < least
        high = cell["high"] is None or cell["high"] > most
        return "both" if low and high else "low" if low else "high" if high else ""

    @property
    def noisy(self) -> bool:
        """True if some cells are too noisy to say anything; these are hollow, or crossed out in a heat map."""
        return any("noisy" in cell for cell in self.cells)

    @property
    def order(self) -> list[str] | None:
        """The order of names along the axis where layers split the cells; None for the order of the data."""
        if not (any(map(self.open_of, self.cells)) or self.noisy) or (self.x is not None and self.x.kind != "name"):
            return None
        return list(dict.fromkeys(cell["cell"] for cell in self.cells))

    @property
    def grouped(self) -> bool:
        """True if several colors share each place along the axis."""
        return self.color is not None and self.color is not self.x

    @property
    def banded(self) -> bool:
        """True if bands of expected errors are drawn; those of several lines would overlap."""
        return not (self.kind == "line" and self.grouped) and any("band_low" in cell for cell in self.cells)

    @property
    def crowded(self) -> bool:
        """True if there are too many bars for distinct error bars; a gray band then shows the intervals."""
        return self.kind == "bar" and not self.facet and len(self.cells) > MOST_CAPPED


def chart_of(panel: Panel) -> Any:
    """Return the chart of a panel, or of small multiples that share their scales."""
    altair = imported()
    facets = list(dict.fromkeys(cell["facet"] for cell in panel.cells)) if panel.facet else []
    beside, width = in_a_row(len(facets), panel.width) if facets else (1, panel.width)
    draw = {"line": _lines, "heatmap": _map}.get(panel.kind, _bars)
    chart = draw(altair, panel, width, PANEL_HEIGHT if len(facets) > 1 else HEIGHT)
    if not facets:
        return chart
    header = altair.Header(labelExpr=SPLIT, labelLimit=width, labelPadding=4)
    by = altair.Facet("facet:N", sort=facets, title=no_markup(panel.facet), header=header)
    small = chart.facet(by, columns=beside, spacing={"row": 24, "column": 18})
    if len(facets) % beside:  # otherwise the last row has axes without panels
        small = small.resolve_axis(x="independent")
    return small


def in_a_row(panels: int, width: int) -> tuple[int, int]:
    """Return how many of the small multiples in a chart of this width stand in a row, and the width of each."""
    beside = 2 if panels == 4 else min(PANELS_BESIDE, panels)
    return beside, PANEL_WIDTHS[beside] if width == WIDTH else max(NARROWEST, width // beside)


def _bars(altair: Any, panel: Panel, width: int, height: int) -> Any:
    """Draw a bar from zero for each cell, or a point where zero has no meaning, with its interval on top."""
    lying, size = _lies(panel, width, height)
    title = _title(panel, width if lying else size)
    along, other = ("y", "x") if lying else ("x", "y")
    value_axis = altair.X if lying else altair.Y
    base = _base(altair, panel)
    marks = []
    labels = altair.Axis(labelOverlap="parity", labelSeparation=8, **({"tickCount": 5} if width < WIDTH else {}))
    released = value_axis("value:Q", title=title, scale=_value_scale(altair, panel), axis=labels)
    centre = _centre(altair, panel, along)
    ends = {other: value_axis("low:Q", title=title), f"{other}2": "high:Q"}
    each = max(width / max(len(panel.cells), 1), 0.6)
    if panel.kind == "bar":
        told, untold = _told(panel, base)
        bar = told.mark_bar(style="grouped-bars" if panel.color else "bars")
        spread = _spread(altair, panel, along)
        places = {**spread, other: released, f"{other}2": "zero"}
        marks.append(bar.encode(**places, **_color(altair, panel, "fill")))
        if untold is not None:
            marks.append(untold.mark_bar(style="hollow-bars").encode(**places, **_color(altair, panel, "stroke")))
    if panel.crowded:  # so many error bars would hide the bars: draw a translucent band
        wide = min(each, 0.6 * size / max(len(panel.cells), 1)) if lying else each
        marks.append(base.mark_rule(style="crowded-intervals", strokeWidth=wide).encode(**centre, **ends))
    if panel.banded:
        few = 3 if panel.grouped or len(panel.cells) > MOST_DOTS else 6
        wide = each if panel.crowded else few
        reach = {other: value_axis("band_low:Q", title=title), f"{other}2": "band_high:Q"}
        marks.append(base.mark_rule(style="denoised", strokeWidth=wide).encode(**centre, **reach))
    marks += _open_ends(altair, panel, base, centre, width if lying else size, each, lying=lying)
    if not panel.crowded:
        marks += _error_bars(base, centre, ends, lambda end: {other: value_axis(f"{end}:Q", title=title)}, lying)
    if panel.kind == "point":
        style = "grouped-points" if panel.color else "points"
        marks += _points(altair, panel, base, style, {**centre, other: released})
    return altair.layer(*marks).properties(width=width, height=size)


def _told(panel: Panel, base: Any) -> tuple[Any, Any]:
    """Return the cells that are not too noisy, and those that are; None for the second if there are none."""
    if not panel.noisy:
        return base, None
    return base.transform_filter("!datum.noisy"), base.transform_filter("datum.noisy")


def _points(altair: Any, panel: Panel, base: Any, style: str, places: Cell, **size: int) -> list[Any]:
    """Draw the points of values, which are hollow where a cell is too noisy."""
    colored = {**_color(altair, panel, "color"), **_shape(altair, panel)}
    told, untold = _told(panel, base)
    marks = [told.mark_point(style=style, filled=True, **size).encode(**places, **colored)]
    if untold is not None:
        hollow = untold.mark_point(style=[style, "hollow-points"], filled=False)
        marks.append(hollow.encode(**places, **colored))
    return marks


def _error_bars(base: Any, centre: Cell, ends: Cell, at: Callable[[str], Cell], lying: bool) -> list[Any]:
    """Draw the intervals of cells with a cap at each end."""
    cap = base.mark_tick(style="caps", thickness=1.2, size=8, orient="vertical" if lying else "horizontal")
    caps = [cap.encode(**centre, **at(end)) for end in ("low", "high")]
    return [base.mark_rule(style="intervals").encode(**centre, **ends), *caps]


def _open_ends(
    altair: Any, panel: Panel, base: Any, centre: Cell, room: float, each: float, *, lying: bool
) -> list[Any]:
    """Draw intervals without an end, or with one beyond the scale: hatched up to the edge, with an arrow there.

    `room` is the length in pixels of the scale of values, and `each` the width of a cell along the other axis. With
    several colored lines, the intervals at one place stand next to each other.
    """
    channel, along = (altair.X, "x") if lying else (altair.Y, "y")
    first, last = (0, room) if lying else (room, 0)  # the edges at the least and at the largest value
    wide = max(3.0, min(HATCH_WIDTH, 0.6 * each))
    lines = [no_markup(name) for name in panel.color.labels] if panel.kind == "line" and panel.color else [""]
    marks = []
    for kind, (place, line) in sorted(product({panel.open_of(cell) for cell in panel.cells} - {""}, enumerate(lines))):
        of = base.transform_filter(f"datum.open == '{kind}'")
        beside: Cell = {}
        if line:
            of = of.transform_filter(altair.FieldEqualPredicate(field="color", equal=line))
            beside = {"xOffset": (place - (len(lines) - 1) / 2) * (wide + 2)}
        hatch = of.mark_rule(style="open-intervals", strokeDash=HATCH, strokeWidth=wide, **beside)
        begin = altair.value(first) if kind == "both" else channel("low:Q" if kind == "high" else "high:Q")
        reach = {along: begin, f"{along}2": altair.value(first if kind == "low" else last)}
        marks.append(hatch.encode(**centre, **reach, **(_color(altair, panel, "color") if line else {})))
        ends = {"low": (first, "left" if lying else "down"), "high": (last, "right" if lying else "up")}
        for end, (edge, direction) in ends.items():
            if kind in (end, "both"):
                at = altair.value(edge + (ARROW if edge == 0 else -ARROW))
                arrow = of.mark_point(
                    style="arrows", shape=f"triangle-{direction}", filled=True, size=ARROW_SIZE, **beside
                )
                marks.append(arrow.encode(**centre, **{along: at}))
    return marks


def _lines(altair: Any, panel: Panel, width: int, height: int) -> Any:
    """Draw a line per color through the values, with an area for their intervals."""
    base = _base(altair, panel)
    at = _centre(altair, panel, "x")
    colored = panel.color is not None
    title = _title(panel, height)
    low = altair.Y("low:Q", title=title, scale=_value_scale(altair, panel))
    steps = {"interpolate": "step-after"} if panel.running else {}  # running shares are known at the edges alone
    area = base.mark_area(style="grouped-areas" if colored else "interval-areas", **steps)
    marks = [area.encode(**at, y=low, y2="high:Q", **_color(altair, panel, "fill"))]
    if panel.banded:
        denoised = base.mark_area(style="denoised", opacity=0.35)
        marks.append(denoised.encode(**at, y=altair.Y("band_low:Q", title=title), y2="band_high:Q"))
    y = altair.Y("value:Q", title=title)
    line = base.mark_line(style="grouped-lines" if colored else "lines", **steps)
    marks.append(line.encode(**at, y=y, **_color(altair, panel, "stroke")))
    style = "grouped-points" if colored else "points"
    marks += _points(altair, panel, base, style, {**at, "y": y}, size=_dot(panel))
    marks += _open_ends(altair, panel, base, at, height, width / max(len(panel.cells), 1), lying=False)
    return altair.layer(*marks).properties(width=width, height=height)


def _dot(panel: Panel) -> int:
    """Return the size of the points of a line; many points are small, and serve the tooltip alone."""
    return 26 if panel.x is not None and len(panel.x.labels) <= MOST_DOTS else 4


def _map(altair: Any, panel: Panel, width: int, height: int) -> Any:
    """Draw a tile per cell of a grid of two columns; colors show the values, and so does text where there is room."""
    assert panel.x is not None
    assert panel.up is not None
    size = _map_height(panel, width, height)
    least, most = panel.reach or _reach(panel)
    beside = {"titleOrient": "right"} if size > len(panel.value) * LETTER else {}
    sides = {
        **_side(altair, panel.x, "x", width, ordered=panel.noisy),
        **_side(altair, panel.up, "y", size, ordered=panel.noisy),
    }
    base = _base(altair, panel).encode(**sides)
    written = _is_written(panel, width, size)
    legend = altair.Legend(titleLimit=max(size, 200), gradientLength=max(60, min(200, size - 20)), **beside)
    color = altair.Color(
        "value:Q",
        title=panel.value,
        scale=altair.Scale(domain=[least, _pale(least, most) if written else most], nice=False),
        legend=None if written else legend,  # tiles show their numbers as text
    )
    told, untold = _told(panel, base)
    tiles = told.mark_rect(style="tiles").encode(color=color)
    if untold is not None:
        crossed = untold.mark_rule(style="crossings").encode(**_diagonal(altair, panel, sides))
        tiles = altair.layer(untold.mark_rect(style="empty-tiles"), crossed, tiles)
    if not written:
        return tiles.properties(width=width, height=size)
    words = told.mark_text(style="words-on-tiles").encode(text="short:N")
    return altair.layer(tiles, words).properties(width=width, height=size)


def _pale(least: float, most: float) -> float:
    """Return the end of the color scale of a map whose tiles hold text; it keeps them pale enough to read."""
    return least + (most - least) / theme.PALE


def _diagonal(altair: Any, panel: Panel, sides: Cell) -> Cell:
    """Return the ends of a line across a tile, from its lower left to its upper right."""
    ends: Cell = {}
    for along, dimension, field in (("x", panel.x, "cell"), ("y", panel.up, "up")):
        if dimension is None or dimension.kind != "name":
            ends |= {along: sides[along], f"{along}2": sides[f"{along}2"]}
            continue
        first = 0 if along == "x" else 1
        other = altair.X2 if along == "x" else altair.Y2
        at = sides[along].copy()
        at.bandPosition = first
        ends |= {along: at, f"{along}2": other(f"{field}:N", bandPosition=1 - first)}
    return ends


def with_margins(panel: Panel) -> Any:
    """Draw a table of two columns of names with all numbers as text, and its margins next to it without color."""
    assert panel.x is not None
    assert panel.up is not None
    altair = imported()
    inner = [cell["value"] for cell in panel.cells if not cell["margin"]]
    least, most = colored(inner, from_zero=panel.from_zero, counted=panel.counted)
    longest = max(len(text) for cell in panel.cells for text in (cell["short"], *cell["cell"].split("\n")))
    wide = len(panel.x.labels) * max(SMALLEST_WRITTEN, int(longest * LETTER) + 10)
    sides = {}
    for along, channel, field, side in (("x", altair.X, "cell:N", panel.x), ("y", altair.Y, "up:N", panel.up)):
        axis = altair.Axis(labelAngle=0, labelLimit=0, labelExpr=SPLIT, grid=False)
        sides[along] = channel(field, sort=list(side.labels), title=no_markup(side.name), axis=axis)
    tooltip = [
        altair.Tooltip(f"{field}:N", title=no_markup(title))
        for field, title in (("up_says", panel.up.name), ("x_says", panel.x.name), ("says", panel.value))
    ]
    base = altair.Chart(public_data(list(panel.cells))).encode(**sides, tooltip=tooltip)
    scale = altair.Scale(domain=[least, _pale(least, most)], nice=False)
    color = altair.Color("value:Q", title=panel.value, scale=scale, legend=None)  # tiles show their numbers as text
    tiles = base.transform_filter("!datum.margin").mark_rect(style="tiles").encode(color=color)
    kinds = {"datum.margin": "margins", "!datum.margin": "words-on-tiles"}
    said = [
        base.transform_filter(which).mark_text(style=style).encode(text="short:N") for which, style in kinds.items()
    ]
    return altair.layer(tiles, *said).properties(width=wide, height=TILE_ROW * len(panel.up.labels))


def sharing(panels: Sequence[Panel]) -> list[Panel]:
    """Return the panels with one scale of values for all of them, so that they are comparable."""
    cells = [cell for panel in panels for cell in panel.cells]
    ends = [cell[end] for cell in cells for end in ("value", "low", "high", "band_low", "band_high") if end in cell]
    known = [end for end in ends if end is not None] + ([0.0] if any(panel.from_zero for panel in panels) else [])
    return [replace(panel, domain=(min(known), max(known))) for panel in panels] if known else list(panels)


def _reach(panel: Panel) -> tuple[float, float]:
    if panel.domain is not None:
        return panel.domain
    told = [cell["value"] for cell in panel.cells if "noisy" not in cell]
    values = told or [cell["value"] for cell in panel.cells]  # too noisy values do not stretch the colors
    return colored(values, from_zero=panel.from_zero, counted=panel.counted)


def colored(values: Sequence[float], *, from_zero: bool, counted: bool) -> tuple[float, float]:
    """Return the least and the largest number of the color scale."""
    ends = [*values, *([0.0] if from_zero else []), *([1.0] if counted else [])]
    least, most = min(ends), max(ends)
    return (least, most) if most > least else (least, least + 1.0)


def _map_height(panel: Panel, width: int, height: int) -> int:
    assert panel.up is not None
    if panel.up.kind != "name":
        return int(width * 0.75) if height == HEIGHT else height
    row = DENSE_ROW if len(panel.up.labels) > MANY else TILE_ROW
    return max(90, len(panel.up.labels) * max(row + LINE * broken(name).count("\n") for name in panel.up.labels))


def _is_written(panel: Panel, width: int, height: int) -> bool:
    x, up = panel.x, panel.up
    assert x is not None
    assert up is not None
    if x.kind != "name" or up.kind != "name":
        return False
    few = len(x.labels) * len(up.labels) <= MOST_WRITTEN
    return few and width / len(x.labels) >= SMALLEST_WRITTEN and height / len(up.labels) >= DENSE_ROW


def _base(altair: Any, panel: Panel) -> Any:
    """Return the chart of the data with the tooltip of each cell."""
    cells = [{**cell, "open": kind} if (kind := panel.open_of(cell)) else cell for cell in panel.cells]
    if panel.kind == "bar":
        cells = [{**cell, "zero": 0} for cell in cells]
    named = [(panel.x, "x_says"), (panel.up, "up_says"), (panel.color if panel.grouped else None, "color")]
    tooltip = [
        altair.Tooltip(f"{name}:N", title=no_markup(of.name)) for of, name in named if of is not None and of.name
    ]
    if panel.facet:
        tooltip.append(altair.Tooltip("facet:N", title=no_markup(panel.facet)))
    tooltip.append(altair.Tooltip("says:N", title=panel.value))
    return altair.Chart(public_data(cells)).encode(tooltip=tooltip)


def _title(panel: Panel, height: int) -> Any:
    """Return the title of the axis of values, on as many lines as it needs next to the axis."""
    lines = wrap(panel.value, max(20, int(height / LETTER)), break_on_hyphens=False)
    return lines if len(lines) > 1 else panel.value


def _value_scale(altair: Any, panel: Panel) -> Any:
    if panel.reach is not None:
        return altair.Scale(domain=list(panel.reach), clamp=True, nice=False)
    ends: Cell = {} if panel.domain is None else {"domain": list(panel.domain)}
    least, most = panel.domain or _ends(panel)
    if panel.from_zero and 0 > least > -BELOW * most:  # rounding the scale to a tick below 0 would waste room
        ends = {"domain": [least, most * ABOVE], "nice": False}
    return altair.Scale(zero=panel.kind == "bar" or panel.from_zero, **ends)


def _ends(panel: Panel) -> tuple[float, float]:
    """Return the least and the largest number that is drawn."""
    drawn = ("value", "low", "high", "band_low", "band_high")
    known = [cell[end] for cell in panel.cells for end in drawn if cell.get(end) is not None] or [0.0]
    return min(known), max(known)


def _lies(panel: Panel, width: int, height: int) -> tuple[bool, int]:
    """Return whether bars are horizontal, since names do not fit below them, and the height of the chart."""
    if panel.x is not None and panel.x.kind != "name":
        return False, height
    names = list(dict.fromkeys(cell["cell"] for cell in panel.cells))
    room = width / len(names)
    if len(names) > 1 and all(len(name) * LETTER <= room - 4 for name in names):
        return False, height
    colors = len(panel.color.labels) if panel.grouped and panel.color is not None else 1
    row = max(DENSE_ROW if len(names) > MANY else ROW, GROUPED_ROW * colors + 8 if colors > 1 else 0)
    return True, len(names) * max(max(row, LINE * (name.count("\n") + 1) + 6) for name in names)


def _color(altair: Any, panel: Panel, channel: str) -> Cell:
    """Return the color of a mark, from the range of the theme."""
    if panel.color is None:
        return {}
    names = [no_markup(name) for name in panel.color.labels]
    make = {"fill": altair.Fill, "stroke": altair.Stroke, "color": altair.Color}[channel]
    legend = altair.Legend(labelExpr=SPLIT) if panel.grouped else None
    title = no_markup(panel.color.name)
    return {channel: make("color:N", title=title, scale=_color_scale(altair, names), legend=legend)}


def _color_scale(altair: Any, names: Sequence[str]) -> Any:
    """Return the scale of colors: the theme's, or the colors themselves where all names are colors."""
    own = [theme.NAMED.get(name.lower()) for name in names]
    return altair.Scale(domain=list(names), **({"range": own} if all(own) else {}))


def _shape(altair: Any, panel: Panel) -> Cell:
    """Return a shape for each color, for readers who cannot distinguish colors."""
    if panel.color is None or not panel.grouped:
        return {}
    scale = altair.Scale(domain=[no_markup(name) for name in panel.color.labels])
    return {"shape": altair.Shape("color:N", title=no_markup(panel.color.name), scale=scale)}


def _spread(altair: Any, panel: Panel, along: str) -> Cell:
    """Return the edges of a bar along the axis, or its place if the axis has names."""
    if panel.x is None or panel.x.kind == "name":
        return _centre(altair, panel, along)
    channel = altair.X if along == "x" else altair.Y
    left = channel(f"left:{_type(panel.x)}", title=no_markup(panel.x.name), **continuous_axis(altair, panel.x, 0))
    return {along: left, f"{along}2": "right"}


def _centre(altair: Any, panel: Panel, along: str) -> Cell:
    """Return the place of a cell's value along the axis: its name, or the middle or an edge of its bin."""
    channel = altair.X if along == "x" else altair.Y
    x = panel.x
    if x is None or x.kind == "name":
        title = no_markup(x.name) if x is not None and x.name else None
        axis = altair.Axis(labelAngle=0, labelLimit=320, labelExpr=SPLIT)
        scale = {} if panel.kind == "line" else {"scale": altair.Scale(paddingInner=0.25, paddingOuter=0.15)}
        place = {along: channel("cell:N", sort=panel.order, title=title, axis=axis, **scale)}
        if panel.grouped and panel.kind != "line" and panel.color is not None:
            offset = altair.XOffset if along == "x" else altair.YOffset
            names = None if panel.order is None else [no_markup(name) for name in panel.color.labels]
            place[f"{along}Offset"] = offset("color:N", sort=names)
        return place
    padding = POINT_PADDING if panel.kind != "bar" else 0
    at = "right" if panel.running else "left" if x.is_dates and panel.kind != "bar" else "middle"
    return {along: channel(f"{at}:{_type(x)}", title=no_markup(x.name), **continuous_axis(altair, x, padding, at))}


def _side(altair: Any, dimension: Dimension, along: str, room: int, *, ordered: bool) -> Cell:
    """Return a side of a heat map, of `room` pixels; names that do not fit next to each other are rotated.

    With `ordered`, the order of names is explicit, since several layers would mix them.
    """
    channel = altair.X if along == "x" else altair.Y
    title = no_markup(dimension.name)
    if dimension.kind == "name":
        each = room / max(len(dimension.labels), 1)
        longest = max((len(line) for name in dimension.labels for line in broken(name).split("\n")), default=0)
        turned = along == "x" and longest * LETTER > each - 4 and each >= LINE
        angle = {"labelAngle": -40 if each >= ROW else -90, "labelAlign": "right"} if turned else {"labelAngle": 0}
        overlap = along == "x" and not turned
        axis = altair.Axis(labelLimit=320, labelExpr=SPLIT, grid=False, labelOverlap=overlap, **angle)
        names = [broken(name) for name in dimension.labels]
        order = names[::-1] if dimension.banded and along == "y" else names if ordered else None  # bins go upward
        return {along: channel("cell:N" if along == "x" else "up:N", sort=order, title=title, axis=axis)}
    first, last = ("left", "right") if along == "x" else ("bottom", "top")
    placed = continuous_axis(altair, dimension, 0)
    return {along: channel(f"{first}:{_type(dimension)}", title=title, **placed), f"{along}2": last}


def continuous_axis(altair: Any, dimension: Dimension, padding: int, at: str = "left") -> Cell:
    """Return the scale and the axis of numbers or of time, with ticks at the edges if there are few enough."""
    if dimension.kind == "time":
        return _time_axis(altair, dimension, padding, at)
    room = {"padding": padding} if padding else {}
    edges = dimension.edges
    ends = {"domain": [edges[0], edges[-1]]} if padding and edges else {}  # else the scale starts inside the first bin
    scale = altair.Scale(zero=False, nice=False, **(ends or room))
    said = {} if max(map(abs, edges), default=0) >= SMALLEST_SEPARATED else {"format": "~f"}
    if len(edges) > MOST_TICKS:
        return {"scale": scale, "axis": altair.Axis(grid=False, labelOverlap=True, **said)}
    axis = altair.Axis(grid=False, values=list(edges), labelOverlap=_overlap(edges), labelSeparation=4, **said)
    return {"scale": scale, "axis": axis}


def _overlap(ticks: Sequence[float]) -> str:
    """Return how labels that overlap are dropped: every second one of even ticks, else each without room."""
    return "parity" if are_alike([after - tick for tick, after in pairwise(ticks)]) else "greedy"


def _time_axis(altair: Any, dimension: Dimension, padding: int = 0, at: str = "left") -> Cell:
    """Return the scale and the axis of time; with padding, the values of dates stand at the ``left`` or ``right`` edge.

    The scale of a single such value has no width. So it gets one tick, since two would be drawn over each other.
    """
    room, edges = {"padding": padding} if padding else {}, dimension.edges
    whole = {"domain": [1000 * edges[0], 1000 * edges[-1]]} if padding and not dimension.is_dates else room
    ticks = _ticks_of_time(dimension)
    if padding and dimension.is_dates and len(edges) == 2:
        ticks["values"] = ticks["values"][:1] if at == "left" else ticks["values"][1:]
    return {
        "scale": altair.Scale(type="utc", **whole),
        "axis": altair.Axis(grid=False, labelOverlap=_overlap(ticks.get("values", ())), labelSeparation=6, **ticks),
    }


def _tick_values(edges: Sequence[float]) -> list[float] | None:
    """Return the edges with a tick, in milliseconds; None where they are too many, and the chart chooses the ticks.

    Weeks keep ticks at every second edge for longer, since the chart itself would choose Sundays.
    """
    if any(edge % DAY for edge in edges):
        return [1000 * edge for edge in edges[:: -(-len(edges) // MOST_HOURS)]] if len(edges) <= MOST_TICKS else None
    weekly = not any((edge - edges[0]) % WEEK for edge in edges)
    every = -(-len(edges) // MOST_TICKS)
    return [1000 * edge for edge in edges[::every]] if every == 1 or (weekly and every == 2) else None


def _ticks_of_time(dimension: Dimension) -> Cell:
    """Return the ticks of an axis of time and the expression of their labels, unless the chart's own suffice."""
    if dimension.turns:
        return _ticks_of_instants(dimension)
    values, words = _tick_values(dimension.edges), _tick_words(dimension.edges)
    if words is None:
        return {} if values is None else {"values": values}
    return {"labelExpr": words} if values is None else {"values": values, "labelExpr": _with_days(words, values)}


def _ticks_of_instants(dimension: Dimension) -> Cell:
    """Return ticks at instants, or at midnights of several days, labeled as the clock of their zone shows."""
    shown = {edge: edge + sum(by for at, by in dimension.turns if edge >= at) for edge in dimension.edges}
    midnights = [edge for edge, seen in shown.items() if seen % DAY == 0]
    chosen, most = (midnights, MOST_TICKS) if len(midnights) >= FEWEST_MIDNIGHTS else (list(shown), MOST_HOURS)
    chosen = chosen[:: -(-len(chosen) // most)]
    words = _with_days(_tick_words([shown[edge] for edge in chosen]) or OF_DAYS, [1000 * shown[one] for one in chosen])
    turned = "".join(f" + ({TICK} < {1000 * at:.0f} ? 0 : {1000 * by:.0f})" for at, by in dimension.turns)
    return {"values": [1000 * edge for edge in chosen], "labelExpr": words.replace(TICK, f"(time({TICK}){turned})")}


def _with_days(words: str, values: Sequence[float]) -> str:
    """Return the label expression for ticks at these clock times; a tick shows its day if the previous one differs."""
    days = [value // (1000 * DAY) for value in values]
    new = [value for value, (before, day) in zip(values[1:], pairwise(days), strict=True) if day != before]
    if all(value % (1000 * DAY) == 0 for value in new):
        return words
    return words.replace(NEW_DAY, f"indexof({[*values[:1], *new]}, time({TICK})) >= 0")


def _tick_words(edges: Sequence[float]) -> str | None:
    """Return a label expression for ticks of time, with each new day or year; None where the years suffice."""
    if any(edge % DAY for edge in edges):
        return OF_HOURS
    days = np.array(edges).astype("datetime64[s]").astype("datetime64[D]")
    if (days != days.astype("datetime64[M]")).any():
        return OF_DAYS
    return OF_MONTHS if (days != days.astype("datetime64[Y]")).any() else None


def _type(dimension: Dimension) -> str:
    return "T" if dimension.kind == "time" else "Q"
