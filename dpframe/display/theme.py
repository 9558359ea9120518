"""The colors, fonts and sizes that charts, tables and reports share, for light and for dark pages.

The colors are those of Okabe and Ito (Color Universal Design, 2008); people with red-green color blindness can
distinguish them. The contrast to the page is at least 3 to 1 for the first four, and at least 4.5 to 1 for text
(WCAG 2.1, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FONT = "'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
PALE, PALE_OF_TWO = 0.4, 0.55  # the part of a ramp, and of each of two colors, where text has a contrast of 4.5 to 1
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 16, 12, 11

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

NAMED = {  # colors of categories that are named after colors, in shades that contrast with light and dark pages
    **{"red": "#d6404e", "green": "#009E73", "blue": "#3a86c8", "yellow": "#bd9b00", "orange": "#e07b00"},
    **{"purple": "#9467bd", "pink": "#d16ba5", "brown": "#9c6b4e", "gray": "#8a8a8a", "grey": "#8a8a8a"},
    **{"black": "#5c5c5c", "white": "#a8a8a8"},
}


@dataclass(frozen=True)
class Colors:
    """The colors of a page: its background, its text and lines, and its marks."""

    page: str
    ink: str  # text and intervals
    faint: str  # subtitles, captions and notes
    rule: str  # axes and borders of tables
    grid: str
    fill: str  # bars and bands of one color
    edge: str  # outlines of bars and bands; points and lines of one color
    denoised: str  # the band of the expected error of an adjusted value
    above: str  # numbers above 0 on maps of covariances
    below: str
    series: tuple[str, ...]  # for values next to each other, in this order
    ramp: tuple[str, ...]  # of heat maps, from the least to the largest number
    on_tiles: str  # words on heat maps, which then use the ramp up to `PALE`


LIGHT = Colors(
    page="#ffffff",
    ink="#1f1f1f",
    faint="#595959",
    rule="#767676",
    grid="#e3e3e3",
    fill="#a5d2ef",
    edge=BLUE,
    denoised=ORANGE,
    above=BLUE,
    below=VERMILION,
    series=(BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW),
    ramp=("#f1f7fb", "#a5d2ef", "#3590c9", "#0072B2", "#00334f"),
    on_tiles="#000000",
)
DARK = Colors(
    page="#16191d",
    ink="#f0f0f0",
    faint="#b4b8bd",
    rule="#8b9096",
    grid="#333940",
    fill="#1c5a80",
    edge=SKY,
    denoised=ORANGE,
    above=SKY,
    below="#f08a4b",
    series=(SKY, ORANGE, GREEN, PURPLE, YELLOW, VERMILION, "#ffffff", "#4aa3d8"),
    ramp=("#1b2730", "#1c5a80", "#2f8fc6", SKY, "#d9effb"),
    on_tiles="#ffffff",
)


def colors(*, dark: bool = False) -> Colors:
    """Return the colors of a light or of a dark page."""
    return DARK if dark else LIGHT


def config(*, dark: bool = False) -> dict[str, Any]:
    """Return the configuration of Vega-Lite charts.

    Charts name no colors: their marks name the styles of this configuration, and their scales use its ranges. So
    another configuration adapts the same chart to the other kind of page.
    """
    of = colors(dark=dark)
    return {
        "background": of.page,
        "font": FONT,
        "title": {
            "anchor": "start",
            "color": of.ink,
            "fontSize": TEXT_SIZE + 1,  # of a panel; `titled` sets that of a whole chart
            "fontWeight": 600,
            "offset": 14,
            "subtitleColor": of.faint,
            "subtitleFontSize": SMALL_SIZE + 1,
            "subtitleLineHeight": 16,
            "subtitlePadding": 6,
        },
        "axis": {
            "labelColor": of.ink,
            "titleColor": of.ink,
            "labelFontSize": SMALL_SIZE,
            "titleFontSize": TEXT_SIZE,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "domainColor": of.rule,
            "tickColor": of.rule,
            "gridColor": of.grid,
            "labelFlush": False,
            "maxExtent": 360,  # otherwise long labels overlap the title
        },
        "header": {
            "labelColor": of.ink,
            "labelFontSize": TEXT_SIZE,
            "labelFontWeight": 600,
            "labelAnchor": "start",
            "titleColor": of.faint,
            "titleFontSize": TEXT_SIZE,
            "titleFontWeight": "normal",
            "titleAnchor": "start",
        },
        "legend": {
            "labelColor": of.ink,
            "titleColor": of.ink,
            "labelFontSize": SMALL_SIZE,
            "titleFontSize": TEXT_SIZE,
            "titleFontWeight": "normal",
            "labelLimit": 360,
            "symbolOpacity": 1,
            "symbolStrokeWidth": 2,
        },
        "view": {"stroke": None},
        "range": {
            "category": list(of.series),
            "heatmap": list(of.ramp),
            "ramp": list(of.ramp),
            "ordinal": list(of.ramp[1:]),
            "diverging": [of.below, of.page, of.above],
        },
        "style": _styles(of),
    }


def _styles(of: Colors) -> Mapping[str, Any]:
    """Return the styles of marks, by the names that charts use."""
    return {
        "bars": {"color": of.fill, "stroke": of.edge, "strokeWidth": 1},
        "grouped-bars": {"stroke": of.page, "strokeWidth": 0.5},
        "points": {"color": of.edge, "size": 60, "opacity": 1},
        "grouped-points": {"size": 50, "opacity": 1},
        "lines": {"color": of.edge, "strokeWidth": 2},
        "grouped-lines": {"strokeWidth": 2},
        "interval-areas": {"color": of.fill, "opacity": 0.6},
        "grouped-areas": {"opacity": 0.22},
        "intervals": {"color": of.ink, "strokeWidth": 1.2},
        "joins": {"color": of.rule, "strokeWidth": 3},
        "crowded-intervals": {"color": of.faint, "opacity": 0.35},
        "caps": {"color": of.ink, "thickness": 1.2, "opacity": 1},
        "denoised": {"color": of.denoised, "opacity": 0.65},
        "tiles": {"stroke": of.page, "strokeWidth": 0.5},
        "words": {"color": of.ink, "fontSize": SMALL_SIZE},
        "margins": {"color": of.ink, "fontSize": SMALL_SIZE, "fontWeight": 600},
        "words-on-tiles": {"color": of.on_tiles, "fontSize": SMALL_SIZE},
        "captions": {"fill": of.faint},
        "open-intervals": {"color": of.ink, "opacity": 0.5},
        "arrows": {"color": of.ink, "opacity": 1},
        "hollow-bars": {"color": of.page, "stroke": of.edge, "strokeWidth": 1, "strokeDash": [3, 2]},
        "hollow-points": {"strokeWidth": 1.5},
        "empty-tiles": {"color": of.page, "stroke": of.grid, "strokeWidth": 0.5},
        "crossings": {"color": of.rule, "strokeWidth": 0.8},
        "limits": {"color": of.ink, "strokeDash": [5, 4], "strokeWidth": 1.2},
    }
