"""Draw the charts of docs/assurance/speed.md from the figures that ``benchmarks.growth`` recorded, without measuring.

``python docs/images/draw.py`` draws them.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.growth import RECORD

ACROSS = {
    "rows": "rows in memory: a count and a sum by 24 keys",
    "files": "rows of Parquet files: a count and a sum by 24 keys",
    "cells": "cells: a count of a million rows by so many keys",
    "units": "units: a count by 24 keys, bounded for each unit, of ten million rows",
    "statistics": "sums of different columns in one call, of a million rows by 24 keys",
    "entries": "entries in the ledger, a file: one charge more",
}
NAMES = ["dpframe", "dpframe, fast", "Polars", "OpenDP", "diffprivlib", "PipelineDP"]  # fixes the colors on all charts


def chart(axis: str, figures: list[dict[str, Any]]) -> Any:
    """Draw processor time against size, both on log scales."""
    import altair

    mine = [figure for figure in figures if figure["axis"] == axis]
    legend = altair.Legend(values=[name for name in NAMES if any(figure["of"] == name for figure in mine)])
    color = altair.Color("of:N", title=None, scale=altair.Scale(domain=NAMES), legend=legend)
    size = altair.X(
        "size:Q", title=ACROSS[axis], scale=altair.Scale(type="log"), axis=altair.Axis(format="~s", tickCount=6)
    )

    def panel(value: str, title: str, least: float) -> Any:
        # smaller growth is drawn at the lowest value, because a process grows in steps
        rows = [figure | {value: max(figure[value], least)} for figure in mine]
        height = altair.Y(f"{value}:Q", title=title, scale=altair.Scale(type="log"), axis=altair.Axis(format="~g"))
        base = altair.Chart(altair.Data(values=rows), width=460, height=260).encode(size, height, color)
        return base.mark_line() + base.mark_point(filled=True, size=45, opacity=1)

    return panel("seconds", "seconds of the processor", 1e-4)


def recorded() -> list[dict[str, Any]]:
    """Return the figures of all sizes."""
    return list(json.loads(RECORD.read_text(encoding="utf-8"))["figures"])
