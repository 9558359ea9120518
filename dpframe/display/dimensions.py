"""The columns that name the cells of a result, as a chart lays them out: stretches of numbers or of time, or names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from dpframe.errors import no_markup
from dpframe.queries.date_grid import EPOCH, EVERY, MINUTES, MONDAY, WORDS, number_of, starts_of

SCALES = {"number": "number", "date": "time", "datetime": "time"}  # how the kinds of bins are laid out
EVEN = 1.5  # times the narrowest cell is the widest one of even steps: months and years of the calendar are
LINE_LENGTH, MOST_LINES = 46, 3  # of a label

Row = Mapping[str, Any]
Axis = Mapping[str, Any]


@dataclass(frozen=True)
class Dimension:
    """One column of the cells: its kind, the names of its values in the order of the rows, its edges in numbers."""

    name: str
    axis: Axis
    kind: str  # "name", "number", "time"
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()
    beside: bool = False  # its values are several numbers of one cell, so colors suit it first
    banded: bool = False  # bins that differ in width, and stand in a map as names do, each as wide as the others

    @property
    def is_dates(self) -> bool:
        """Tell whether its values are the beginnings of steps of ``dpf.dates``."""
        return self.axis.get("every") in WORDS

    @property
    def is_even(self) -> bool:
        """Tell whether the steps are about equally wide, so that their counts compare."""
        widths = [right - left for left, right in pairwise(self.edges)]
        return not widths or max(widths) <= EVEN * min(widths)

    def in_a_map(self) -> Dimension:
        """The same as a side of a map, where bins that differ in width would tell their number by their area."""
        if self.kind == "name" or (self.is_even and not self.axis.get("whole")):
            return self
        return replace(self, kind="name", banded=True)

    def label(self, row: Row) -> str:
        """The name of its value in a row."""
        return label(row, self.axis, self.name)


def dimensions_of(axes: Sequence[Axis], rows: Sequence[Row]) -> list[Dimension]:
    """A dimension for each column of keys or bins; those of declared combinations are names."""
    found = []
    for axis in axes:
        for name in axis["columns"]:
            kind = kind_of(axis) if len(axis["columns"]) == 1 else "name"
            labels = tuple(dict.fromkeys(label(row, axis, name) for row in rows))
            found.append(Dimension(name, axis, kind, labels, edges_of(rows, axis) if kind != "name" else ()))
    return found


def kind_of(axis: Axis) -> str:
    """The kind of scale on which the cells of an axis lie; dates of ``dpf.dates`` are stretches of time."""
    return "time" if axis.get("every") in WORDS else SCALES.get(axis.get("bins", ""), "name")


def edges_of(rows: Sequence[Row], axis: Axis) -> tuple[float, ...]:
    """All edges as numbers, those of time in seconds."""
    distinct = {_ends(row, axis) for row in rows}
    return tuple(sorted({_number(end) for both in distinct for end in both}))


def place(row: Row, axis: Axis, names: tuple[str, str]) -> dict[str, Any]:
    """The edges of the cell, under the names that a chart gives them."""
    return {name: plain(edge) for name, edge in zip(names, _ends(row, axis), strict=True)}


def middle(row: Row, axis: Axis) -> Any:
    """The middle between the edges."""
    left, right = _ends(row, axis)
    if isinstance(left, date) and not isinstance(left, datetime):  # a half day has no date
        left, right = datetime(left.year, left.month, left.day), datetime(right.year, right.month, right.day)
    return plain(left + (right - left) / 2)


def label(row: Row, axis: Axis, name: str) -> str:
    """The value of a column as text: a key, or the ends of a bin."""
    if axis.get("whole"):  # what is counted: from 3 to below 5 is 3 and 4
        first, last = int(row[name + "_left"]), int(row[name + "_right"]) - 1
        return f"{first:,}" if first == last else f"{first:,} to {last:,}"
    if "bins" in axis:
        return no_markup(f"{short(row[name + '_left'])} to {short(row[name + '_right'])}")
    return no_markup(key(to_the_minute(row[name], axis)))


def to_the_minute(value: Any, axis: Axis) -> Any:
    """A time of steps of hours as clocks show it, to the minute, with its distance from UTC; anything else as it is."""
    if axis.get("every") in MINUTES and isinstance(value, datetime) and value == value:
        return value.isoformat(sep=" ", timespec="minutes")
    return value


def cell(row: Row, axes: Sequence[Axis]) -> str:
    """The name of a cell by all of its columns."""
    return ", ".join(label(row, axis, column) for axis in axes for column in axis["columns"]) or "all rows"


def broken(text: str) -> str:
    """A long name on lines of its own, which a chart splits where they end."""
    lines = wrap(text, LINE_LENGTH) or [text]
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1] + "…"])


def key(value: Any) -> str:
    """A key as text."""
    return "missing" if value is None or value != value else short(value)


def short(value: Any) -> str:
    """A number or a time as people write it."""
    if isinstance(value, float):
        return f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"
    return str(value).removesuffix(" 00:00:00")


def plain(edge: Any) -> Any:
    """A number, or a time in UTC as charts read it."""
    if isinstance(edge, (int, float)):
        return edge
    if isinstance(edge, datetime):
        utc = edge.astimezone(UTC) if edge.tzinfo else edge
        return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return f"{edge.isoformat()}T00:00:00Z"


def _ends(row: Row, axis: Axis) -> tuple[Any, Any]:
    """The edges of a bin, or where a step of time begins and the one after it, as the wall clock shows them."""
    column = axis["columns"][0]
    if axis.get("every") in MINUTES:
        wall = row[column].replace(tzinfo=None)
        step = timedelta(minutes=MINUTES[axis["every"]])
        return wall, EPOCH + ((wall - EPOCH) // step + 1) * step
    if axis.get("every") not in EVERY:
        return row[f"{column}_left"], row[f"{column}_right"]
    grid = axis["every"], axis.get("starts", MONDAY)
    number = number_of(row[column], *grid)
    days = starts_of(np.array([number, number + 1]), *grid).astype("datetime64[D]")
    first, following = np.minimum(days, np.datetime64(date.max)).tolist()
    return first, following


def _number(edge: Any) -> float:
    if isinstance(edge, (int, float)):
        return float(edge)
    if isinstance(edge, datetime):
        return float(np.datetime64(edge.replace(tzinfo=None), "us").astype(np.int64)) / 1e6
    return float(np.datetime64(edge, "D").astype(np.int64)) * 86_400
