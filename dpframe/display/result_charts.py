"""Charts of results: from a released frame and its provenance to Altair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display import charts, marginal_charts, pages
from dpframe.display.charts import Scale, Words
from dpframe.display.denoised import denoised_words
from dpframe.display.statements import is_pairs, subject
from dpframe.frames import build, foreign
from dpframe.privacy import PrivacyUnit
from dpframe.queries.date_grid import EVERY, number_of, starts_of
from dpframe.queries.query import ERROR, NOISY

MOST_MAPS = 24
MOST_BARS = 2_000  # beyond, a chart says nothing and Altair is slow
EXPECTED = " expected"  # ends the name, in a row, of the expected error of a denoised value
BAND = 2  # of them make a band
SCALES = {"number": "number", "date": "time", "datetime": "time"}  # how the kinds of bins are laid out
SUMMED = ("each bin", "sums of the first bins")  # the panels of bins that are there to be added up

Row = Mapping[str, Any]


def of_result(frame: Any, facts: Mapping[str, Any], errors: Mapping[str, NDArray[np.float64]]) -> Any:
    """A panel per measure: bars with error bars, or a map for a grid of two axes of bins.

    `errors` are, by measure, the expected errors of denoised values, in the order of the rows: bands around them.
    """
    rows = build.rows(frame)
    names = list(facts["measures"])
    is_map = _is_map(facts["cells"])
    words = Words(_title(names, facts), _notes(facts, rows, is_map, banded=bool(errors)))
    for name, expected in errors.items():
        rows = [row | {name + EXPECTED: error} for row, error in zip(rows, expected.tolist(), strict=True)]
    if marginal_charts.is_marginals(facts):
        notes = _notes(facts, rows, is_map, banded=False, lines=False)
        return marginal_charts.of_tables(rows, facts, words.title, notes)
    if "levels" in facts:
        return charts.beside(_panels_of_levels(names, rows, facts), words)
    if _is_summed(facts, rows):
        panels = [_chart(names[0], rows, facts, None), _running(names[0], rows, facts)]
        return charts.beside([charts.panel(panel, title) for panel, title in zip(panels, SUMMED, strict=True)], words)
    if is_pairs(facts["cells"]):
        return _pairs(names[0], rows, facts, words)
    if len(names) == 1:
        return _chart(names[0], rows, facts, words)
    panels = [charts.panel(_chart(name, rows, facts, None), name) for name in names]
    return charts.beside(panels, words)


def _panels_of_levels(names: Sequence[str], rows: Sequence[Row], facts: Mapping[str, Any]) -> list[Any]:
    """A panel for each level of subtotals, since a total dwarfs its parts."""
    dated = {axis["columns"][0]: axis for axis in facts["cells"] if "every" in axis}
    panels = []
    for name in names:
        start = 0
        for level in facts["levels"]:
            mine = rows[start : start + level["rows"]]
            axes = [dated.get(column, {"columns": [column]}) for column in level["columns"]]
            title = f"{name} by {' and '.join(level['columns'])}" if axes else f"{name}, all together"
            panels.append(charts.panel(_chart(name, mine, {**facts, "cells": axes}, None), title))
            start += level["rows"]
    return panels


def _pairs(name: str, rows: Sequence[Row], facts: Mapping[str, Any], words: Words) -> Any:
    """A map of the pairs of columns for each group."""
    *keys, axis = facts["cells"]
    left, right = axis["columns"]
    each = [rows[start : start + axis["size"]] for start in range(0, len(rows), axis["size"])][:MOST_MAPS]
    made = []
    for mine in each:
        cells = [
            {
                "across": str(row[left]),
                "up": str(row[right]),
                "value": row[name],
                "text": f"{pages.number(row[name])} ± {pages.number(row[name + ERROR])}",
            }
            for row in mine
        ]
        whole = words if not keys else None
        made.append((charts.pair_map(cells, left, right, name, whole), _cell(mine[0], keys)))
    if not keys:
        return made[0][0]
    return charts.beside([charts.panel(chart, title) for chart, title in made], words)


def _chart(name: str, rows: Sequence[Row], facts: Mapping[str, Any], words: Words | None) -> Any:
    axes, value = facts["cells"], _described(name, facts)
    if _is_map(axes):
        cells = [_place(row, axes[0], ("left", "right")) | _place(row, axes[1], ("bottom", "top")) for row in rows]
        cells = [cell | {"value": row[name]} for cell, row in zip(cells, rows, strict=True)]
        return charts.heat_map(cells, _scale(axes[0], rows), _scale(axes[1], rows), value, words)
    across = _scale(axes[0], rows) if len(axes) == 1 else Scale(", ".join(_columns(axes)))
    statistic = facts["measures"][name]
    is_sum = foreign.is_around_noisy(statistic)
    around = NOISY if is_sum else ""
    cells = [_interval(row, name, around) | {"cell": _cell(row, axes)} for row in rows[:MOST_BARS]]
    if across.kind != "name":
        cells = [cell | _stretch(row, axes[0]) for cell, row in zip(cells, rows, strict=False)]
    return charts.bars(cells, across, value, words, from_zero=is_sum or "counts" in statistic)


def _is_summed(facts: Mapping[str, Any], rows: Sequence[Row]) -> bool:
    """Tell whether the bins of one column are there to be added up, and lie on a scale."""
    axes = facts["cells"]
    (measure,) = facts["measures"].values() if len(facts["measures"]) == 1 else ({},)
    return "sums" in measure and len(axes) == 1 and axes[0].get("bins") in SCALES and len(rows) <= MOST_BARS


def _running(name: str, rows: Sequence[Row], facts: Mapping[str, Any]) -> Any:
    """The sums of the first bins, up to the end of each, and a band of the largest of their intervals."""
    sums = facts["measures"][name]["sums"]
    half = max(row[name + ERROR] for row in rows) * sums["first"] / sums["bin"]
    released = accumulate(row[name] for row in rows)
    unbiased = accumulate(row.get(name + NOISY, row[name]) for row in rows)
    cells = [
        _place(row, facts["cells"][0], ("left", "right")) | _finite(value=value, low=middle - half, high=middle + half)
        for row, value, middle in zip(rows, released, unbiased, strict=True)
    ]
    return charts.band(cells, _scale(facts["cells"][0], rows), f"{name}, all bins up to here")


def _interval(row: Row, name: str, around: str) -> dict[str, Any]:
    """The released value and the ends of its interval: its own, or those around the unbiased value of one total."""
    middle, error = row.get(name + around, row[name]), row[name + ERROR]
    ends = {"low": row.get(f"{name}_low", middle - error), "high": row.get(f"{name}_high", middle + error)}
    band = {}
    if name + EXPECTED in row:
        reach = BAND * row[name + EXPECTED]
        band = {"band_low": row[name] - reach, "band_high": row[name] + reach}
    return {"value": row[name], **band, **_finite(**ends)}


def _finite(**positions: float) -> dict[str, float | None]:
    """The places that a chart can show; None for the others."""
    return {end: position if math.isfinite(position) else None for end, position in positions.items()}


def _is_map(axes: Sequence[Mapping[str, Any]]) -> bool:
    return len(axes) == 2 and all(_kind(axis) != "name" for axis in axes)


def _kind(axis: Mapping[str, Any]) -> str:
    """The kind of scale on which the cells of an axis lie; dates of ``dpf.dates`` are stretches of time."""
    return "time" if axis.get("every") in EVERY else SCALES.get(axis.get("bins", ""), "name")


def _scale(axis: Mapping[str, Any], rows: Sequence[Row]) -> Scale:
    kind = _kind(axis)
    ends = [f"{axis['columns'][0]}_{side}" for side in ("left", "right")] if kind == "number" else []
    edges = sorted({row[end] for row in rows for end in ends})
    return Scale(", ".join(axis["columns"]), kind, tuple(edges))


def _ends(row: Row, axis: Mapping[str, Any]) -> tuple[Any, Any]:
    """The edges of a bin, or the first day of a step of dates and of the one after it."""
    column = axis["columns"][0]
    if axis.get("every") not in EVERY:
        return row[f"{column}_left"], row[f"{column}_right"]
    number = number_of(row[column], axis["every"])
    days = starts_of(np.array([number, number + 1]), axis["every"]).astype("datetime64[D]")
    first, following = np.minimum(days, np.datetime64(date.max)).tolist()
    return first, following


def _place(row: Row, axis: Mapping[str, Any], ends: tuple[str, str]) -> dict[str, Any]:
    return {end: _plain(edge) for end, edge in zip(ends, _ends(row, axis), strict=True)}


def _stretch(row: Row, axis: Mapping[str, Any]) -> dict[str, Any]:
    return _place(row, axis, ("left", "right")) | {"middle": _middle(row, axis)}


def _middle(row: Row, axis: Mapping[str, Any]) -> Any:
    left, right = _ends(row, axis)
    if isinstance(left, date) and not isinstance(left, datetime):  # a half day has no date
        left, right = datetime(left.year, left.month, left.day), datetime(right.year, right.month, right.day)
    return _plain(left + (right - left) / 2)


def _plain(edge: Any) -> Any:
    """A number, or a time in UTC as charts read it."""
    if isinstance(edge, (int, float)):
        return edge
    if isinstance(edge, datetime):
        utc = edge.astimezone(UTC) if edge.tzinfo else edge
        return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return f"{edge.isoformat()}T00:00:00Z"


def _cell(row: Row, axes: Sequence[Mapping[str, Any]]) -> str:
    """The name of a cell that stands under its bar."""
    words = []
    for axis in axes:
        for column in axis["columns"]:
            binned = "bins" in axis
            words.append(
                f"{_short(row[column + '_left'])} to {_short(row[column + '_right'])}" if binned else _key(row[column])
            )
    return ", ".join(words) or "all rows"


def _key(value: Any) -> str:
    return "missing" if value is None or value != value else _short(value)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"
    return str(value).removesuffix(" 00:00:00")


def _columns(axes: Sequence[Mapping[str, Any]]) -> list[str]:
    return [column for axis in axes for column in axis["columns"]]


def _described(name: str, facts: Mapping[str, Any]) -> str:
    """The title of the axis of values: the column, and what it measures where its name does not say it."""
    statistic = facts["measures"][name]
    counted = "units" if "groups" in facts else statistic.get("counts", "rows")
    if statistic["column"] is None:
        return f"count of {counted}" if name == "count" and counted == "rows" else f"number of {counted}"
    if "counts" in statistic:
        values = "present values" if counted == "values" else "units with a value"
        return f"{values} of {statistic['column']}"
    if "bounds" not in statistic:
        return f"{statistic['verb']} of {statistic['column']}"
    lower, upper = statistic["bounds"]
    return f"{_verb(statistic)} of {statistic['column']}, values clipped to [{lower:g}, {upper:g}]"


def _verb(statistic: Mapping[str, Any]) -> str:
    """The verb in words; of a quantile which one it is."""
    if "q" not in statistic:
        return str(statistic["verb"])
    return "median" if statistic["q"] == 0.5 else f"{statistic['q']:g}-quantile"


def _title(names: Sequence[str], facts: Mapping[str, Any]) -> str:
    if facts["label"]:
        return str(facts["label"])
    return subject(", ".join(names), facts)


def _notes(
    facts: Mapping[str, Any], rows: Sequence[Row], is_map: bool, *, banded: bool, lines: bool = True
) -> tuple[str, ...]:
    """Notes in small print; of maps of several tables, which have errors of their own, without `lines` on errors."""
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    price = f"epsilon {cost['epsilon']:.4g}{delta}, protects {PrivacyUnit.of_facts(facts['unit'])}"
    if is_map:
        errors = ", ".join(f"±{pages.number(rows[0][name + ERROR])}" for name in facts["measures"])
        second = f"95% error of each cell: {errors} around the unbiased value"
    else:
        second = "error bars: 95% intervals"
        if any(foreign.is_around_noisy(statistic) for statistic in facts["measures"].values()):
            second += " around the unbiased noisy values"
        if "top" in facts:  # which of many noisy counts are seen depends on them
            second = "error bars: around the noisy counts; they hold for all categories at once with 95%"
    if is_pairs(facts["cells"]):
        second = "±: the half-widths of 95% intervals"
        is_map = True
    too_many = lines and not is_map and len(rows) > MOST_BARS
    cut = (f"the first {MOST_BARS:,} of {len(rows):,} cells",) if too_many else ()
    denoised = denoised_words(facts, pages.number)
    if banded and not is_map:
        denoised.append("bands: twice the expected error of each denoised value")
    of_all = (second,) if lines else ()
    return (price, *of_all, *denoised, *facts["notes"], *cut, *([facts["warning"]] if "warning" in facts else []))
