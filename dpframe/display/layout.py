"""The layout of a result's chart: which columns go along the axis, in colors or in panels, as asked or as fits best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument, InvalidType, no_markup, shown
from dpframe.queries.date_grid import EPOCH, EVERY, MINUTES, MONDAY, WORDS, number_of, starts_of
from dpframe.queries.query import NOISY

SCALES = {"number": "number", "date": "time", "datetime": "time"}  # the kind of scale for each kind of bins
EVEN = 1.5  # the largest ratio of two widths that still count as even: calendar months and years are even
LINE_LENGTH, MOST_LENGTH = 46, 138  # characters in a line of a label, and in all of its lines
FROM_UTC = "from_utc"  # the key of an axis of instants for its UTC offset, the same for all of them

Row = Mapping[str, Any]
Axis = Mapping[str, Any]


@dataclass(frozen=True)
class Dimension:
    """One column of the cells: its kind, its value labels in the order of the rows, and its edges as numbers."""

    name: str
    axis: Axis
    kind: str  # "name", "number", "time"
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()  # of its cells, which may have gaps between them
    beside: bool = False  # its values are several numbers of one cell, so it gets the colors first
    banded: bool = False  # bins that a heat map draws equally wide, as it draws names
    turns: tuple[tuple[float, float], ...] = ()  # for instants: the place and the seconds of each clock change

    @property
    def is_dates(self) -> bool:
        """True if its values are the starts of steps of ``dpf.dates``."""
        return self.axis.get("every") in WORDS

    @property
    def is_even(self) -> bool:
        """True if the cells are about equally wide, so that their counts are comparable."""
        return are_alike(self.widths)

    @property
    def is_steady(self) -> bool:
        """True if the distances between edges are about equal, so that a line may join the cells."""
        return are_alike([right - left for left, right in pairwise(self.edges)])

    def in_a_map(self) -> Dimension:
        """Return the side of a heat map; bins of uneven width become names, since readers take area for the number."""
        if self.kind == "name" or (self.is_even and not self.axis.get("whole")):
            return self
        return replace(self, kind="name", banded=True)

    def label(self, row: Row) -> str:
        """Return the label of its value in a row."""
        return label(row, self.axis, self.name)


def dimensions_of(axes: Sequence[Axis], rows: Sequence[Row]) -> list[Dimension]:
    """Return a dimension for each column of keys or bins; columns of declared combinations are names."""
    found = []
    for axis in axes:
        for name in axis["columns"]:
            kind = kind_of(axis) if len(axis["columns"]) == 1 else "name"
            placed, turns = _by_clocks(axis, rows) if kind == "time" else (axis, ())
            labels = tuple(dict.fromkeys(label(row, axis, name) for row in rows))
            spans = _spans(rows, placed) if kind != "name" else set()
            edges = sorted({edge for span in spans for edge in span})
            widths = tuple(right - left for left, right in spans)
            found.append(Dimension(name, placed, kind, labels, tuple(edges), widths, turns=turns))
    return found


def _by_clocks(axis: Axis, rows: Sequence[Row]) -> tuple[Axis, tuple[tuple[float, float], ...]]:
    """Return the axis, and the clock changes on it if its times lie on it as instants.

    They do where the clock repeats a time, or shows a bin much wider or narrower than it is. Else clock times apply.
    """
    name = axis["columns"][0]
    ends = (f"{name}_left", f"{name}_right") if "bins" in axis else (name,)
    times = [[row[end] for end in ends] for row in rows if axis.get("every") not in EVERY]
    if not times or not all(isinstance(time, datetime) and time.tzinfo for cell in times for time in cell):
        return axis, ()
    shown = np.array([[_number(time.replace(tzinfo=None)) for time in cell] for cell in times])
    ahead = np.array([[time.utcoffset().total_seconds() for time in cell] for cell in times])
    instants = shown - ahead
    wide, seen = (numbers[:, -1] - numbers[:, 0] for numbers in (instants, shown))
    fits = len(np.unique(shown)) == len(np.unique(instants))
    if fits and bool(np.all((wide <= EVEN * seen) & (seen <= EVEN * wide))):
        return axis, ()
    at, places = np.unique(instants, return_index=True)
    by = ahead.ravel()[places]
    turns = [(float(at[i] + by[0]), float(by[i] - by[i - 1])) for i in range(1, len(at)) if by[i] != by[i - 1]]
    return {**axis, FROM_UTC: timedelta(seconds=float(by[0]))}, tuple(turns)


def are_alike(widths: Sequence[float]) -> bool:
    """Return whether widths are about equal."""
    return not widths or max(widths) <= EVEN * min(widths)


def kind_of(axis: Axis) -> str:
    """Return the kind of scale on which the cells of an axis lie; dates of ``dpf.dates`` have a scale of time."""
    return "time" if axis.get("every") in WORDS else SCALES.get(axis.get("bins", ""), "name")


def _spans(rows: Sequence[Row], axis: Axis) -> set[tuple[float, float]]:
    """Return both edges of each cell as numbers; edges of times are in seconds."""
    return {(_number(left), _number(right)) for left, right in {_ends(row, axis) for row in rows}}


def place(row: Row, axis: Axis, names: tuple[str, str]) -> dict[str, Any]:
    """Return the edges of the cell under the names that a chart gives them."""
    return {name: plain(edge) for name, edge in zip(names, _ends(row, axis), strict=True)}


def middle(row: Row, axis: Axis) -> Any:
    """Return the middle between the edges of the cell."""
    left, right = _ends(row, axis)
    if isinstance(left, date) and not isinstance(left, datetime):  # a date cannot hold half a day
        left, right = datetime(left.year, left.month, left.day), datetime(right.year, right.month, right.day)
    return plain(left + (right - left) / 2)


def label(row: Row, axis: Axis, name: str) -> str:
    """Return the value of a column as text: a key, or the ends of a bin."""
    if axis.get("whole"):  # of counts, the bin from 3 to below 5 holds 3 and 4
        first, last = int(row[name + "_left"]), int(row[name + "_right"]) - 1
        return f"{first:,}" if first == last else f"{first:,} to {last:,}"
    if "bins" in axis:
        return no_markup(f"{short(row[name + '_left'])} to {short(row[name + '_right'])}")
    return no_markup(key(to_the_minute(row[name], axis)))


def to_the_minute(value: Any, axis: Axis) -> Any:
    """Return a start of a step of hours or minutes as text, with its UTC offset; return other values unchanged."""
    if axis.get("every") in MINUTES and isinstance(value, datetime) and value == value:
        return value.isoformat(sep=" ", timespec="minutes")
    return value


def cell(row: Row, axes: Sequence[Axis], missing: str = "missing") -> str:
    """Return the name of a cell from all of its columns; `missing` stands for a missing key."""
    row = {name: missing if value is None or value != value else value for name, value in row.items()}
    return ", ".join(label(row, axis, column) for axis in axes for column in axis["columns"]) or "all rows"


def broken(text: str, length: int = LINE_LENGTH) -> str:
    """Return a name with line breaks where it is longer than a line of this length; a chart splits it there."""
    if len(text) <= length and text == " ".join(text.split()):
        return text
    lines, most = wrap(text, length) or [text], math.ceil(MOST_LENGTH / length)
    return "\n".join(lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1] + "…"])


def told_apart(names: Mapping[Any, str], length: int = LINE_LENGTH) -> dict[Any, str]:
    """Return the names, with a number before each that a chart with lines of this length would show like another."""
    seen, alike, made = set[str](), dict[str, int](), dict[Any, str]()
    for value, text in names.items():
        name, shown = text, broken(text, length)
        number = alike.get(shown, 1)
        while broken(name, length) in seen:
            number += 1
            name = f"({number}) {text}"
        alike[shown] = number
        seen.add(broken(name, length))
        made[value] = name
    return made


def unlike(word: str, names: Iterable[Any]) -> str:
    """Return a word for a value that is no key, in parentheses where a key has the same name."""
    taken = {name for name in names if isinstance(name, str)}
    while word in taken:
        word = f"({word})"
    return word


def distinct(rows: list[dict[str, Any]], axes: Sequence[Axis], *, subtotals: bool = False) -> list[dict[str, Any]]:
    """Return the rows, with keys renamed so that no two share a label; in `subtotals`, a missing value is no key."""
    for axis in axes:
        for name in axis["columns"] if "bins" not in axis and "every" not in axis else ():
            keys = [None if row[name] != row[name] else row[name] for row in rows]
            labels = {value: label(row, axis, name) for value, row in zip(keys, rows, strict=True)}
            missing = labels.pop(None, None)
            names = told_apart(labels | ({} if missing is None or subtotals else {None: unlike(missing, labels)}))
            if any(names[value] != said for value, said in labels.items()) or names.get(None, missing) != missing:
                rows = [{**row, name: names.get(value)} for value, row in zip(keys, rows, strict=True)]
    return rows


def key(value: Any) -> str:
    """Return a key as text."""
    return "missing" if value is None or value != value else short(value)


def short(value: Any) -> str:
    """Return a number or a time as people write it."""
    if isinstance(value, float):
        return f"{value:,.15g}" if abs(value) >= 10_000 else f"{value:.15g}"
    return str(value).removesuffix(" 00:00:00")


def plain(edge: Any) -> Any:
    """Return a number as it is, or a time as text that charts read as UTC."""
    if isinstance(edge, (int, float)):
        return edge
    if isinstance(edge, datetime):
        return edge.isoformat(timespec="milliseconds") + "Z"
    return f"{edge.isoformat()}T00:00:00Z"


def _lies_at(edge: Any, axis: Axis) -> Any:
    """Return a zoned time as its clock shows it, or at the UTC offset of its axis; return other values unchanged."""
    if not isinstance(edge, datetime) or edge.tzinfo is None:
        return edge
    return (edge.astimezone(UTC) + axis[FROM_UTC] if FROM_UTC in axis else edge).replace(tzinfo=None)


def _ends(row: Row, axis: Axis) -> tuple[Any, Any]:
    """Return the places on the axis of the edges of a bin, or of the starts of a time step and of the next one."""
    column = axis["columns"][0]
    if axis.get("every") in MINUTES:
        first = _lies_at(row[column], axis)
        step = timedelta(minutes=MINUTES[axis["every"]])
        return first, first + step if FROM_UTC in axis else EPOCH + ((first - EPOCH) // step + 1) * step
    if axis.get("every") not in EVERY:
        return _lies_at(row[f"{column}_left"], axis), _lies_at(row[f"{column}_right"], axis)
    grid = axis["every"], axis.get("starts", MONDAY)
    number = number_of(row[column], *grid)
    days = starts_of(np.array([number, number + 1]), *grid).astype("datetime64[D]")
    first, following = np.minimum(days, np.datetime64(date.max)).tolist()
    return first, following


def _number(edge: Any) -> float:
    if isinstance(edge, (int, float)):
        return float(edge)
    if isinstance(edge, datetime):
        return float(np.datetime64(edge, "us").astype(np.int64)) / 1e6
    return float(np.datetime64(edge, "D").astype(np.int64)) * 86_400


KINDS = ("bar", "line", "point", "heatmap")
ROLES = ("x", "color", "facet")
PARTS_OF_LABELS = ("columns", "values")
MOST_COLORS = 4  # colors that a chart uses by default, all with a contrast to the page of at least 3 to 1
COLORS = 8  # colors of the theme
MOST_GROUPED = 40  # bars or points of all colors in one panel
MOST_LISTED = 12  # names along the axis of each of several panels
MOST_SMALL = 12  # panels that have names along their axis
MOST_PANELS = 24
FEWEST_OF_A_LINE = 3


@dataclass(frozen=True)
class Asked:
    """The arguments of ``.dp.plot``."""

    x: str | None = None
    color: str | None = None
    facet: str | None = None
    kind: str | None = None
    value: str | Sequence[str] | None = None
    title: str | None = None
    notes: bool | str | Sequence[str] = True
    limit: int = 60

    def renamed(self, names: Mapping[str, str]) -> Asked:
        """Return the arguments with the new names of renamed columns."""

        def called(name: Any) -> Any:
            if not isinstance(name, str):
                return name
            bare = name.removesuffix(NOISY)
            return names.get(name) or (names[bare] + NOISY if bare in names else name)

        places = {role: called(getattr(self, role)) for role in ROLES}
        several = isinstance(self.value, (list, tuple))
        return replace(self, **places, value=list(map(called, self.value)) if several else called(self.value))  # type: ignore[arg-type]

    @property
    def lays_out(self) -> bool:
        """True if an argument places a column or names the kind of chart."""
        return any(one is not None for one in (self.x, self.color, self.facet, self.kind))


@dataclass(frozen=True)
class Layout:
    """The place of each column; in a heat map, `up` goes up the side."""

    kind: str
    x: Dimension | None = None
    up: Dimension | None = None
    color: Dimension | None = None
    facets: tuple[Dimension, ...] = field(default=())


def check_asked(asked: Asked) -> None:
    """Refuse arguments that are wrong for every result."""
    for name in ("x", "color", "facet", "kind", "title"):
        given = getattr(asked, name)
        if given is not None and not isinstance(given, str):
            raise InvalidArgument(f"{name} must be text, not {shown(given)}.")
    if asked.kind is not None and asked.kind not in KINDS:
        raise InvalidArgument(f"kind must be one of {_listed(KINDS)}, not {shown(asked.kind)}.")
    if isinstance(asked.limit, bool) or not isinstance(asked.limit, int) or asked.limit < 1:
        raise InvalidArgument(f"limit must be a whole number of groups, not {shown(asked.limit)}. Write limit=100.")
    notes = asked.notes
    if not isinstance(notes, (bool, str)) and not (
        isinstance(notes, (list, tuple)) and all(isinstance(note, str) for note in notes)
    ):
        raise InvalidArgument(
            f"notes must be True, False, or lines of text to add, not {shown(notes)}. Write notes='Source: ...'."
        )
    if asked.kind == "heatmap" and asked.color is not None:
        raise InvalidArgument(
            "color must not be given where kind='heatmap', whose colors show the numbers. Write x= and facet=, and "
            "the column that is left goes up the side."
        )


def laid_out(dimensions: Sequence[Dimension], asked: Asked, *, from_zero: bool, running: bool) -> Layout:
    """Return the layout that was asked for, completed by the choices that read best.

    With `from_zero`, values are counts or sums, which bars show; with `running`, cumulative shares, which lines show.
    """
    named = {dimension.name: dimension for dimension in dimensions}
    chosen = {role: _named(role, getattr(asked, role), named) for role in ROLES}
    _check_once(asked)
    taken = {dimension.name for dimension in chosen.values() if dimension is not None}
    free = [dimension for dimension in dimensions if dimension.name not in taken]
    x = chosen["x"] or _along(free) or chosen["color"]
    free = [dimension for dimension in free if dimension is not x]
    kind = asked.kind or _kind(x, free, chosen, from_zero=from_zero, running=running)
    if kind == "heatmap":
        return _map(x, free, chosen["facet"])
    color, facets = _split(kind, x, free, chosen)
    if asked.kind is None and _is_better_as_map(x, color, facets, asked):
        return _map(x, list(facets), None)
    _check_colors(kind, x, color)
    return Layout(kind, x, None, color, tuple(facets))


def _named(role: str, name: str | None, named: Mapping[str, Dimension]) -> Dimension | None:
    if name is None:
        return None
    if not named:
        raise InvalidArgument(f"{role} must not be given here: the result is one number, and has no columns of cells.")
    if name not in named:
        raise InvalidArgument(
            f"{role} must be a column of the cells, one of {_listed(list(named))}, not {shown(name)}."
        )
    return named[name]


def _check_once(asked: Asked) -> None:
    if asked.facet is not None and asked.facet in (asked.x, asked.color):
        other = "x" if asked.facet == asked.x else "color"
        raise InvalidArgument(f"facet must be another column than {other}, not {shown(asked.facet)} for both.")


def _along(free: Sequence[Dimension]) -> Dimension | None:
    """Return the column that goes along the axis: the first of time or of numbers, else the one with the most names."""
    for dimension in free:
        if dimension.kind != "name":
            return dimension
    return max(free, key=lambda dimension: (not dimension.beside, len(dimension.labels)), default=None)


def _kind(
    x: Dimension | None,
    free: Sequence[Dimension],
    chosen: Mapping[str, Dimension | None],
    *,
    from_zero: bool,
    running: bool,
) -> str:
    unsaid = chosen["color"] is None
    if unsaid and x is not None and x.kind != "name" and any(dimension.kind != "name" for dimension in free):
        return "heatmap"
    if x is not None and x.kind != "name" and len(x.labels) >= FEWEST_OF_A_LINE:
        over_time = x.kind == "time" and (x.is_steady or not from_zero)
        if running or over_time or not from_zero or chosen["color"] not in (None, x):
            return "line"
    return "bar" if from_zero else "point"


def _map(x: Dimension | None, free: list[Dimension], facet: Dimension | None) -> Layout:
    if x is None or not free:
        raise InvalidArgument(
            "kind must not be 'heatmap' where fewer than two columns name the cells that go on it. "
            "Write kind='bar', 'line' or 'point'."
        )
    up = next((dimension for dimension in free if dimension.kind != "name"), free[0])
    rest = [dimension for dimension in free if dimension is not up]
    return Layout("heatmap", x, up, None, tuple(([facet] if facet is not None else []) + rest))


def _split(
    kind: str, x: Dimension | None, free: Sequence[Dimension], chosen: Mapping[str, Dimension | None]
) -> tuple[Dimension | None, list[Dimension]]:
    """Return the column of the colors and those of the panels."""
    color, facet = chosen["color"], chosen["facet"]
    facets = [] if facet is None else [facet]
    for dimension in sorted(free, key=lambda dimension: (not dimension.beside, len(dimension.labels))):
        if color is None and _is_colorable(kind, x, dimension):
            color = dimension
        else:
            facets.append(dimension)
    return color, facets


def _is_colorable(kind: str, x: Dimension | None, dimension: Dimension) -> bool:
    """Return whether readers can tell its values apart where they stand side by side in one panel."""
    size = len(dimension.labels)
    if x is None or size > MOST_COLORS:
        return False
    if kind == "line":
        return True
    return (x.kind == "name" or kind == "point") and len(x.labels) * size <= MOST_GROUPED


def _is_better_as_map(x: Dimension | None, color: Dimension | None, facets: Sequence[Dimension], asked: Asked) -> bool:
    """Return whether there would be too many panels, or too many names in each."""
    if x is None or color is not None or len(facets) != 1 or asked.facet is not None or asked.color is not None:
        return False
    size = len(facets[0].labels)
    return size > MOST_PANELS or (x.kind == "name" and (len(x.labels) > MOST_LISTED or size > MOST_SMALL))


def _check_colors(kind: str, x: Dimension | None, color: Dimension | None) -> None:
    if color is None:
        return
    if color is not x and len(color.labels) > COLORS:
        raise InvalidArgument(
            f"color must be a column with at most {COLORS} values, not {shown(color.name)} with {len(color.labels)}. "
            f"Write facet={shown(color.name)}, or kind='heatmap'."
        )
    if kind == "bar" and x is not None and x.kind != "name" and color is not x:
        raise InvalidArgument(
            "kind must not be 'bar' where color splits bins or dates: bars would hide each other. "
            f"Write kind='line', or facet={shown(color.name)} instead of color."
        )


def measures_of(value: Any, measures: Sequence[str], noisy: Sequence[str]) -> list[str]:
    """Return the names of the numbers to show: all, or those asked for; `noisy` are the unbiased numbers."""
    if value is None:
        return list(measures)
    asked = [value] if isinstance(value, str) else value
    known = [*measures, *noisy]
    if not isinstance(asked, (list, tuple)) or not asked:
        raise InvalidArgument(f"value must be one or several of {_listed(known)}, not {shown(value)}.")
    for name in asked:
        if name not in known:
            raise InvalidArgument(f"value must be one or several of {_listed(known)}, not {shown(name)}.")
    return list(dict.fromkeys(asked))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in names)


def check_labels(labels: Any, release: str | None = None) -> None:
    """Refuse labels of columns and keys, or those of a release, without the parts that `relabel` takes."""
    of, before, after = "labels", "labels={", "}"
    if release is not None:
        of, before, after = f"labels of {shown(release)}", f"labels={{{shown(release)}: {{", "}}"
    if not isinstance(labels, Mapping):
        raise InvalidType(
            f"{of} must be a dict, not {shown(labels, kind=True)}. "
            f'Write {before}"columns": {{"n": "People"}}, "values": {{"sex": {{0: "Men"}}}}{after}.'
        )
    for name in labels:
        if name not in PARTS_OF_LABELS:
            raise InvalidArgument(
                f'{of} must have the parts "columns" and "values" (in 0.2 it was flat), not {shown(name)}. '
                f'Write {before}"columns": {{{shown(name)}: {shown(labels[name])}}}{after}.'
            )
