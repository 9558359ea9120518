"""Altair charts of results, made from a released frame and its record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display import chart_words, charts, drawing, layout, pages, rounding
from dpframe.display.chart_words import BETWEEN
from dpframe.display.charts import NARROW, WIDTH, Words
from dpframe.display.drawing import Cell, Panel
from dpframe.display.layout import SCALES, Asked, Dimension, Layout, Row, label
from dpframe.display.result_tables import is_two_way
from dpframe.display.statements import NOTHING, confidence_of, margin_words, with_changed
from dpframe.display.subjects import is_pairs, quantile
from dpframe.errors import InvalidArgument, shown
from dpframe.frames import build, foreign
from dpframe.frames.changes import CHOSEN, is_whole
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.statistics.marginals import places_of_levels

MOST_CELLS = 2_000  # for bars, points and lines; with more, a chart is unreadable and Altair is slow
MOST_TILES = 100_000
STATISTIC = "quantile"  # the column of quantile names, where a chart shows several quantiles of one column together
BOUNDS = " bounds"  # suffix of a field of a row: the bounds of its own group
EXPECTED = " expected"  # suffix of a field of a row: the expected error of an adjusted value
BAND = 2  # expected errors on each side of a value, which make its band
ALL = "all"  # the label of a margin of a table
STANDS_OUT = 2  # margins of error above 0
NO_COLOR = "without color: the margin of error reaches 0"
SUMMED = ("each bin", "sums of the first bins")  # the panels of bins for range queries

Facts = Mapping[str, Any]


def of_result(frame: Any, facts: Facts, errors: Mapping[str, NDArray[np.float64]], asked: Asked | None = None) -> Any:
    """Draw the chart that was asked for: a panel for each kind of number, laid out to fit its columns.

    `errors` holds, by measure, the expected errors of adjusted values in the order of the rows, which become bands.
    """
    asked = asked or Asked()
    layout.check_asked(asked)
    facts = with_changed(frame, facts)
    rows = layout.distinct(build.rows(frame), facts["cells"], subtotals="levels" in facts)
    noisy = [name + NOISY for name in facts["measures"] if rows and name + NOISY in rows[0]]
    names = layout.measures_of(asked.value, list(facts["measures"]), noisy)
    for name, expected in errors.items():
        rows = [row | {name + EXPECTED: error} for row, error in zip(rows, expected.tolist(), strict=True)]
    for name, statistic in facts["measures"].items():
        own = np.transpose(statistic.get("bounds_of_rows", ())).tolist()
        rows = [row | {name + BOUNDS: pair} for row, pair in zip(rows, own, strict=True)] if own else rows
    if not rows:  # of unknown groups, none may reach the threshold
        return charts.nothing(NOTHING, chart_words.words(names, facts, [], asked, []))
    tables = len(facts["measures"]) == 1 and any(level["columns"] for level in facts.get("levels", ()))
    if tables and is_marginals(facts):
        _check_not_laid_out(asked, "marginals")
        words = chart_words.words(names, facts, [], asked, [])
        return of_tables(rows, facts, words)
    if is_pairs(facts["cells"]):
        return _pairs(names[0], rows, facts, asked)
    if "levels" in facts and not asked.lays_out:
        return _levels(frame, names, rows, facts, asked)
    if "levels" in facts:
        rows = rows[: facts["levels"][0]["rows"]]
    if not asked.lays_out and _is_summed(facts, rows, names):
        return _summed(names[0], rows, facts, asked)
    panels, left_out = panels_of(names, rows, facts, asked)
    words = chart_words.words(names, facts, panels, asked, left_out, marks_of(frame, names, facts, panels))
    if len(panels) == 1:
        return charts.titled(drawing.chart_of(panels[0]), words)
    drawn = [
        charts.panel(drawing.chart_of(panel), title)
        for panel, title in zip(panels, _headings(names, facts), strict=True)
    ]
    return charts.beside(drawn, words, columns=1 if panels[0].facet else None)


def marks_of(frame: Any, names: Sequence[str], facts: Facts, panels: Sequence[Panel]) -> list[str]:
    """Return what marks in the panels mean: of values that are too noisy, and of quantiles on a bound."""
    shown_ends = {name: rounding.of_frame(frame, facts, name) for name in names if name in facts["measures"]}
    seen = "crossed out" if any(panel.kind == "heatmap" for panel in panels) else "hollow"
    return [
        f"{seen}: {note}" if note.startswith(rounding.TOO_NOISY) else note
        for note in rounding.notes_of(shown_ends, facts["measures"], rounding.english)
    ]


def _headings(names: Sequence[str], facts: Facts) -> list[str]:
    """Return the headings of panels: the columns that they show."""
    return [part[0] if len(part) == 1 else chart_words.axis_title(part, facts) for part in _parts(names, facts)]


def panels_of(names: Sequence[str], rows: Sequence[Row], facts: Facts, asked: Asked) -> tuple[list[Panel], list[str]]:
    """Return a panel for each kind of number, and notes on what was left out."""
    parts = _parts(names, facts)
    made, left_out = [], []
    rows, trimmed = _with_data(rows, names[0], facts)
    left_out += trimmed
    for part in parts:
        width = WIDTH if len(parts) == 1 else NARROW
        panel, notes = _panel(part, rows, facts, asked, width=width, leading=names[0])
        made.append(panel)
        left_out += notes
    return _comparable(parts, made, facts), list(dict.fromkeys(left_out))


def _comparable(parts: Sequence[Sequence[str]], panels: list[Panel], facts: Facts) -> list[Panel]:
    """Return the panels; those of one quantity share a scale."""
    alike: dict[Any, list[int]] = {}
    for number, (name, *_) in enumerate(parts):
        statistic = facts["measures"][measure_of(name, facts)]
        verb = "values" if "q" in statistic or statistic["verb"] == "mean" else statistic["verb"]
        same = tuple(str(statistic.get(name)) for name in ("column", "counts", "value", "denominator"))
        alike.setdefault((verb, same), []).append(number)
    for numbers in alike.values():
        if len(numbers) > 1:
            shared = drawing.sharing([panels[number] for number in numbers])
            panels = [shared[numbers.index(n)] if n in numbers else panel for n, panel in enumerate(panels)]
    return panels


def _parts(names: Sequence[str], facts: Facts) -> list[list[str]]:
    """Return the numbers by axis: quantiles of one column and the same rows share one; others have their own."""
    parts: list[list[str]] = []
    for name in names:
        statistic = facts["measures"][measure_of(name, facts)]
        firsts = (facts["measures"][measure_of(part[0], facts)] for part in parts)
        alike = [chart_words.are_quantiles_of_one(first, statistic) for first in firsts]
        if True in alike:
            parts[alike.index(True)].append(name)
        else:
            parts.append([name])
    return parts


def measure_of(name: str, facts: Facts) -> str:
    """Return the measure of a column, which may hold the noisy values of that measure."""
    return name if name in facts["measures"] else name.removesuffix(NOISY)


def _panel(
    names: Sequence[str], rows: Sequence[Row], facts: Facts, asked: Asked, *, width: int, leading: str = ""
) -> tuple[Panel, list[str]]:
    axes = facts["cells"]
    if "groups" in facts:
        axes = [axis | {"whole": True} for axis in axes]  # bins of counts of rows and of groups
    found = layout.dimensions_of(axes, rows)
    if len(names) > 1:
        of = tuple(quantile(facts["measures"][measure_of(name, facts)]) for name in names)
        found.append(Dimension(STATISTIC, {"columns": [STATISTIC]}, "name", of, beside=True))
    first = facts["measures"][measure_of(names[0], facts)]
    from_zero = foreign.is_around_noisy(first) or "counts" in first or first["verb"] == "share"
    laid = layout.laid_out(found, asked, from_zero=from_zero, running=first["verb"] == "ecdf")
    if laid.kind == "heatmap" and laid.x is not None and laid.up is not None:
        laid = replace(laid, x=laid.x.in_a_map(), up=laid.up.in_a_map())
    rows, left_out = _largest(rows, laid, leading or names[0], asked.limit)
    if left_out and "top" not in facts:  # intervals of a top-k hold for all categories at once
        left_out.append(CHOSEN)
    kept, more_left_out = _kept(rows, laid, len(names))
    left_out += more_left_out
    if left_out:
        shown = {one.name: one for one in layout.dimensions_of(axes, kept)}
        laid = replace(
            laid,
            x=laid.x and replace(laid.x, labels=shown.get(laid.x.name, laid.x).labels),
            up=laid.up and replace(laid.up, labels=shown.get(laid.up.name, laid.up).labels),
        )
    cells = [
        _cell(row, name, laid, facts, found[-1].labels[number] if len(names) > 1 else "")
        for row in kept
        for number, name in enumerate(names)
    ]
    if laid.facets:
        headings = {cell["facet"]: ", ".join(cell["facet"]) for cell in cells}
        _, each = drawing.in_a_row(min(len(headings), layout.MOST_PANELS), width)
        titles = layout.told_apart(headings, length := each // drawing.BOLD_LETTER)
        cells = [cell | {"facet": layout.broken(titles[cell["facet"]], length)} for cell in cells]
    cells, panels_left_out = _first_panels(cells)
    facet = ", ".join(dimension.name for dimension in laid.facets)
    described = chart_words.axis_title(names, facts)
    running = first["verb"] == "ecdf"
    limits = rounding.limits(_of_row(first, kept[0], measure_of(names[0], facts))) if len(cells) == 1 else None
    reach = (0.0, 1.0) if running else limits if limits and math.isfinite(limits[1]) else None
    if reach and laid.kind == "bar":  # bars start at zero
        reach = min(0.0, reach[0]), max(0.0, reach[1])
    panel = Panel(
        cells,
        laid.kind,
        laid.x,
        described,
        laid.up,
        laid.color,
        facet,
        from_zero=from_zero,
        width=width,
        reach=reach if not from_zero else None,
        running=running,
        counted=_is_a_count(first),
    )
    return panel, left_out + panels_left_out


def _with_data(rows: Sequence[Row], name: str, facts: Facts) -> tuple[Sequence[Row], list[str]]:
    """Return, for contributions, the cells up to the last numbers of rows and groups that exceed the noise."""
    if "groups" not in facts:
        return rows, []
    ends = [f"{column}_left" for axis in facts["cells"] for column in axis["columns"]]
    error = measure_of(name, facts) + ERROR
    found = [row for row in rows if row[name] > STANDS_OUT * max(row[error], 0.5)] or rows[:1]
    last = {end: max(row[end] for row in found) for end in ends}
    kept = [row for row in rows if all(row[end] <= last[end] for end in ends)]
    note = "cells beyond the last that stands out from the noise are left out"
    return kept, [note] if len(kept) < len(rows) else []


def _largest(rows: Sequence[Row], laid: Layout, name: str, limit: int) -> tuple[Sequence[Row], list[str]]:
    """Return the rows of the `limit` values with the largest numbers in each column, and notes on the rest."""
    left_out = []
    for dimension in (laid.x, laid.up):
        if dimension is None or dimension.kind != "name" or dimension.banded or len(dimension.labels) <= limit:
            continue
        sizes: dict[str, float] = dict.fromkeys(dimension.labels, -math.inf)
        for row in rows:
            if math.isfinite(row[name]):
                label = dimension.label(row)
                sizes[label] = max(sizes[label], row[name])
        largest = set(sorted(sizes, key=lambda label: -sizes[label])[:limit])
        rows = [row for row in rows if dimension.label(row) in largest]
        left_out.append(largest_of(limit, len(dimension.labels), f"values of {dimension.name}"))
    return rows, left_out


def largest_of(limit: int, size: int, things: str) -> str:
    """Return a note on a chart that shows the `limit` things with the largest numbers, and not all of them."""
    rest = size - limit
    others = f"{rest:,} {'others are' if rest > 1 else 'other is'} not drawn"
    return f"the {limit:,} {things} with the largest numbers; {others}"


def _kept(rows: Sequence[Row], laid: Layout, each: int) -> tuple[Sequence[Row], list[str]]:
    """Return the rows that a chart can show, and a note where these are not all."""
    most = (MOST_TILES if laid.kind == "heatmap" else MOST_CELLS) // each
    if len(rows) <= most:
        return rows, []
    return rows[:most], [f"the first {most:,} of {len(rows):,} cells"]


def _first_panels(cells: list[Cell]) -> tuple[list[Cell], list[str]]:
    facets = list(dict.fromkeys(cell["facet"] for cell in cells if "facet" in cell))
    if len(facets) <= layout.MOST_PANELS:
        return cells, []
    kept = set(facets[: layout.MOST_PANELS])
    return [cell for cell in cells if cell["facet"] in kept], [_of_panels(len(facets))]


def _of_panels(count: int) -> str:
    return f"the first {layout.MOST_PANELS} of {count:,} panels"


def _cell(row: Row, name: str, laid: Layout, facts: Facts, quantile: str) -> Cell:
    """Return one number with its interval and its place in the chart."""
    measure = measure_of(name, facts)
    cell = interval(row, name, measure, facts)
    if _is_a_count(facts["measures"][measure]) and math.isfinite(cell["value"]):
        cell["short"] = pages.number(round(cell["value"]))  # counts are whole

    def said(dimension: Dimension) -> str:
        return quantile if dimension.name == STATISTIC and dimension.name not in row else dimension.label(row)

    for dimension, stretch, word in ((laid.x, ("left", "right"), "cell"), (laid.up, ("bottom", "top"), "up")):
        if dimension is None:
            continue
        says = "x_says" if word == "cell" else "up_says"
        cell[says] = said(dimension)
        if dimension.kind == "name":
            cell[word] = layout.broken(cell[says])
        else:
            cell |= layout.place(row, dimension.axis, stretch)
    if laid.x is None:
        cell |= {"cell": "all rows", "x_says": "all rows"}
    elif laid.x.kind != "name":
        cell["middle"] = layout.middle(row, laid.x.axis)
    if laid.color is not None:
        cell["color"] = said(laid.color)
    if laid.facets:
        cell["facet"] = tuple(map(said, laid.facets))
    return cell


def _is_a_count(statistic: Mapping[str, Any]) -> bool:
    """Return whether a statistic is an unweighted number of rows, values or units."""
    return "weight" not in statistic and ("counts" in statistic or statistic["verb"] in ("count", "n_units"))


def interval(row: Row, name: str, measure: str, facts: Facts) -> Cell:
    """Return the released value and its interval: released ends, or the error around the unbiased value of a total."""
    statistic = _of_row(facts["measures"][measure], row, measure)
    released = {column: np.array([float(row[column])]) for column in rounding.columns_of(measure) if column in row}
    made = rounding.intervals(statistic, measure, released)
    band = {}
    if name == measure and measure + EXPECTED in row:
        reach = BAND * row[measure + EXPECTED]
        band = {"band_low": row[name] - reach, "band_high": row[name] + reach}
    value = rounding.forms(made, "")[0].format(pages.number(row[name]))
    if made.unplaced:
        return {"value": row[name], "says": value, "short": pages.number(row[name]), **band}
    says = f"{value} ({confidence_of(facts)}: {' to '.join(rounding.marked_ends(made))})"
    own = f"{measure}_low" in row or rounding.limits(statistic) is not None
    symmetric = {} if own else {"symmetric": True}
    noisy = {"noisy": True} if made.noisy[0] else {}
    return {
        "value": row[name],
        "says": says,
        "short": pages.number(row[name]),
        **band,
        **symmetric,
        **noisy,
        **_finite(low=float(made.low[0]), high=float(made.high[0])),
    }


def _of_row(statistic: Mapping[str, Any], row: Row, measure: str) -> Mapping[str, Any]:
    """Return the facts of a statistic in one row; each group may have bounds of its own."""
    if measure + BOUNDS not in row:
        return statistic
    return {name: fact for name, fact in statistic.items() if name != "bounds_of_rows"} | {
        "bounds": row[measure + BOUNDS]
    }


def _finite(**positions: float) -> dict[str, float | None]:
    """Return the finite positions, which a chart can show, and None for the others."""
    return {end: position if math.isfinite(position) else None for end, position in positions.items()}


def _levels(frame: Any, names: Sequence[str], rows: Sequence[Row], facts: Facts, asked: Asked) -> Any:
    """Draw a panel for each level of subtotals, since a total is far larger than its parts."""
    dates = any("every" in axis for axis in facts["cells"])  # steps of dates, which have a scale of time
    if is_two_way(facts) and not dates and len(names) == 1 and facts["levels"][1]["rows"] <= asked.limit:
        return _with_margins(names[0], rows, facts, asked)
    dated = {axis["columns"][0]: axis for axis in facts["cells"] if "every" in axis}
    made, panels, left_out = [], [], []
    for name in names:
        start = 0
        for level in facts["levels"]:
            mine = rows[start : start + level["rows"]]
            axes = [dated.get(column, {"columns": [column]}) for column in level["columns"]]
            title = f"by {' and '.join(level['columns'])}" if axes else "all together"
            panel, notes = _panel([name], mine, {**facts, "cells": axes}, Asked(limit=asked.limit), width=NARROW)
            panels.append(panel)
            left_out += notes
            made.append(charts.panel(drawing.chart_of(panel), f"{name}, {title}" if len(names) > 1 else title))
            start += level["rows"]
    marks = ["each panel has a scale of its own, since a total is far above its parts"]
    marks += marks_of(frame, names, facts, panels)
    return charts.beside(made, chart_words.words(names, facts, panels, asked, left_out, marks))


def _with_margins(name: str, rows: Sequence[Row], facts: Facts, asked: Asked) -> Any:
    """Draw the table of two key columns with its margins: colors show the inner cells, and each number is written."""
    up, across = facts["levels"][0]["columns"]
    measure = measure_of(name, facts)
    cells, start = [], 0
    whole = {column: layout.unlike(ALL, (row[column] for row in rows)) for column in (up, across)}
    for level in facts["levels"]:
        for row in rows[start : start + level["rows"]]:
            cell = interval(row, name, measure, facts)
            if _is_a_count(facts["measures"][measure]):
                cell["short"] = pages.number(round(cell["value"]))
            for word, column in (("cell", across), ("up", up)):
                inside = column in level["columns"]
                cell[word] = layout.label(row, {"columns": [column]}, column) if inside else whole[column]
                cell["x_says" if word == "cell" else "up_says"] = cell[word]
            cells.append(cell | {"margin": len(level["columns"]) < 2})
        start += level["rows"]
    sides = [
        Dimension(column, {"columns": [column]}, "name", tuple(dict.fromkeys(cell[word] for cell in cells)))
        for column, word in ((across, "cell"), (up, "up"))
    ]
    described = chart_words.axis_title([name], facts)
    statistic = facts["measures"][measure]
    from_zero, counted = foreign.is_around_noisy(statistic), _is_a_count(statistic)
    panel = Panel(cells, "heatmap", sides[0], described, sides[1], from_zero=from_zero, counted=counted)
    words = chart_words.words([name], facts, [panel], asked, [])
    return charts.titled(drawing.with_margins(panel), words)


def _check_not_laid_out(asked: Asked, of: str) -> None:
    if asked.lays_out:
        given = next(one for one in ("x", "color", "facet", "kind") if getattr(asked, one) is not None)
        raise InvalidArgument(
            f"{given} must not be given for {of}, whose charts are maps of pairs of columns, not "
            f"{shown(getattr(asked, given))}. Leave it out."
        )


def _pairs(name: str, rows: Sequence[Row], facts: Facts, asked: Asked) -> Any:
    """Draw a map of the pairs of columns for each group."""
    *keys, axis = facts["cells"]
    _check_not_laid_out(asked, f"a {facts['measures'][measure_of(name, facts)]['verb']}")
    left, right = axis["columns"]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(layout.cell(row, keys), []).append(row)
    each = list(groups.values())[: layout.MOST_PANELS]
    left_out = [_of_panels(len(groups))] if len(groups) > len(each) else []
    error = measure_of(name, facts) + ERROR
    told = [row[name] for mine in each for row in mine if _is_told(row[name], row[error])]
    marks = [NO_COLOR] if len(told) < sum(map(len, each)) else []
    words = chart_words.words([name], facts, [], asked, left_out, marks)
    whole = facts["measures"][measure_of(name, facts)]["verb"] == "correlation"
    most = 1.0 if whole else max(map(abs, told), default=0.0) or 1.0
    made = []
    for mine in each:
        half = [
            cell if _is_told(row[name], row[error]) else cell | {"noisy": True}
            for cell, row in zip(charts.map_cells(mine, left, right, name, error), mine, strict=True)
        ]
        cells = half + [cell | {"across": cell["up"], "up": cell["across"]} for cell in half]
        made.append((charts.pair_map(cells, left, right, name, words if not keys else None, most), mine[0]))
    if not keys:
        return made[0][0]
    return charts.beside([charts.panel(chart, layout.cell(row, keys)) for chart, row in made], words)


def _is_told(value: float, error: float | None) -> bool:
    """Return whether a number of either sign is further from 0 than its margin of error, if it has one."""
    return error is None or abs(value) > error


def _is_summed(facts: Facts, rows: Sequence[Row], names: Sequence[str]) -> bool:
    """Return whether the chart is of all bins of one column for range queries, on a scale of numbers or time."""
    axes = facts["cells"]
    if len(names) != 1 or names[0] not in facts["measures"]:
        return False
    if rounding.is_unplaced(facts["measures"][names[0]], names[0], rows[0]):
        return False
    summed = "sums" in facts["measures"][names[0]] and len(rows) == axes[0]["size"] and is_whole(facts)
    return summed and len(axes) == 1 and axes[0].get("bins") in SCALES and len(rows) <= MOST_CELLS


def _summed(name: str, rows: Sequence[Row], facts: Facts, asked: Asked) -> Any:
    """Draw each bin, and the running sums of the bins, each with the widest interval of all these sums.

    The rows may come in any order, for example sorted by their numbers.
    """
    (along,) = layout.dimensions_of(facts["cells"], rows)
    sums, axis = facts["measures"][name]["sums"], along.axis
    rows = sorted(rows, key=lambda row: layout.place(row, axis, ("left", "right"))["left"])
    panel, _ = _panel([name], rows, facts, asked, width=NARROW)
    half = max(row[name + ERROR] for row in rows) * sums["first"] / sums["bin"]
    released = accumulate(row[name] for row in rows)
    unbiased = accumulate(row.get(name + NOISY, row[name]) for row in rows)
    cells = [
        layout.place(row, axis, ("left", "right"))
        | _finite(value=value, low=centre - half, high=centre + half)
        | {
            "says": f"{pages.number(value)} (95%: {pages.lower_end(centre - half)} to {pages.margin(centre + half)})",
            "x_says": layout.short(row[f"{axis['columns'][0]}_right"]),
        }
        for row, value, centre in zip(rows, released, unbiased, strict=True)
    ]
    placed = drawing.continuous_axis(charts.imported(), along, drawing.POINT_PADDING)  # from the first edge
    value, over_time = f"{panel.value}, all bins up to here", along.kind == "time"
    running = charts.band(cells, axis["columns"][0], value, placed, over_time=over_time)
    both = [charts.panel(chart, title) for chart, title in zip((drawing.chart_of(panel), running), SUMMED, strict=True)]
    return charts.beside(both, chart_words.words([name], facts, [replace(panel)], asked, []))


MOST_MAPS = 24


def is_marginals(facts: Mapping[str, Any]) -> bool:
    """Return whether a record is of marginals: all tables of several columns."""
    return any("deviations" in measure for measure in facts["measures"].values())


def of_tables(rows: Sequence[Row], facts: Mapping[str, Any], words: Words) -> Any:
    """Draw a panel for each table of two columns, or of one column if there are no larger tables.

    Where `words` has a subtitle, it gets a note on the errors, which differ by table.
    """
    (name,) = facts["measures"]
    order = min(2, max(len(level["columns"]) for level in facts["levels"]))
    places = zip(facts["levels"], places_of_levels(facts["levels"]), strict=True)
    tables = [(level["columns"], rows[place]) for level, place in places if len(level["columns"]) == order]
    shown = tables[:MOST_MAPS]
    errors = [table[0][name + ERROR] for _, table in shown]
    least, most = pages.margin(min(errors)), pages.margin(max(errors))
    unplaced = rounding.is_unplaced(facts["measures"][name], name, rows[0])
    of = "an unbiased cell" if unplaced else "a cell"
    said = f"{margin_words(facts)} of {of}: ±{least}" + (f" to ±{most}, by table" if least != most else "")
    cut = (f"The first {len(shown)} of {len(tables)} tables.",) if len(tables) > len(shown) else ()
    if unplaced:
        shown = [(columns, [{**row, name + ERROR: None} for row in table]) for columns, table in shown]
    cells = [_interval(row, name) for _, table in shown for row in table]
    seen = ("value", "low", "high") if order == 1 else ("value",)  # maps show no intervals
    ends = [cell[end] for cell in cells for end in seen if end in cell]
    reach = min(0.0, *ends), max(1.0, *ends)
    made = [charts.panel(_table_panel(name, columns, table, reach), " and ".join(columns)) for columns, table in shown]
    if words.subtitle:
        words = replace(words, subtitle=BETWEEN.join((words.subtitle, said)), notes=(*words.notes, *cut))
    return charts.beside(made, words)


def _table_panel(name: str, columns: Sequence[str], table: Sequence[Row], reach: tuple[float, float]) -> Any:
    if len(columns) == 1:
        axis = {"columns": [columns[0]]}
        names = [label(row, axis, columns[0]) for row in table]
        bars = [_interval(row, name) | {"cell": said, "x_says": said} for row, said in zip(table, names, strict=True)]
        bars_of = Dimension(columns[0], axis, "name", tuple(dict.fromkeys(names)))
        return drawing.chart_of(Panel(bars, "bar", bars_of, name, width=charts.NARROW, domain=reach))
    up, across = columns
    return charts.named_map(charts.map_cells(table, across, up, name, name + ERROR), across, up, name, reach)


def _interval(row: Row, name: str) -> dict[str, Any]:
    middle, error = row.get(f"{name}_noisy", row[name]), row[name + ERROR]
    if error is None:
        return {"value": row[name], "says": pages.number(row[name])}
    says = f"{pages.number(row[name])} ± {pages.margin(error)}"
    return {"value": row[name], "low": middle - error, "high": middle + error, "says": says}
