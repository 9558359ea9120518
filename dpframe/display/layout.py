"""The place of each column of a result in its chart: along the axis, as colors or panels; as asked or as fits best."""

from __future__ import annotations

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

SCALES = {"number": "number", "date": "time", "datetime": "time"}  # how the kinds of bins are laid out
EVEN = 1.5  # times the narrowest cell is the widest one of even steps: months and years of the calendar are
LINE_LENGTH, MOST_LINES = 46, 3  # of a label
FROM_UTC = "from_utc"  # the name, in an axis of instants, of the distance from UTC at which they lie on it

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
    widths: tuple[float, ...] = ()  # of its cells, between which some may be left out
    beside: bool = False  # its values are several numbers of one cell, so colors suit it first
    banded: bool = False  # bins that differ in width, and stand in a map as names do, each as wide as the others
    turns: tuple[tuple[float, float], ...] = ()  # of instants: where their clock is turned, and by how many seconds

    @property
    def is_dates(self) -> bool:
        """Tell whether its values are the beginnings of steps of ``dpf.dates``."""
        return self.axis.get("every") in WORDS

    @property
    def is_even(self) -> bool:
        """Tell whether the steps are about equally wide, so that their counts compare."""
        return _are_alike(self.widths)

    @property
    def is_steady(self) -> bool:
        """Tell whether they also follow each other without a wide gap, so that a line may join them."""
        return _are_alike([right - left for left, right in pairwise(self.edges)])

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
            placed, turns = _by_clocks(axis, rows) if kind == "time" else (axis, ())
            labels = tuple(dict.fromkeys(label(row, axis, name) for row in rows))
            spans = _spans(rows, placed) if kind != "name" else set()
            edges = sorted({edge for span in spans for edge in span})
            widths = tuple(right - left for left, right in spans)
            found.append(Dimension(name, placed, kind, labels, tuple(edges), widths, turns=turns))
    return found


def _by_clocks(axis: Axis, rows: Sequence[Row]) -> tuple[Axis, tuple[tuple[float, float], ...]]:
    """The axis, and where the clock of its times is turned if they lie on it as instants.

    They do where the clock shows two of them alike, or a bin far from as wide as it is; else they lie as it shows them.
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


def _are_alike(widths: Sequence[float]) -> bool:
    return not widths or max(widths) <= EVEN * min(widths)


def kind_of(axis: Axis) -> str:
    """The kind of scale on which the cells of an axis lie; dates of ``dpf.dates`` are stretches of time."""
    return "time" if axis.get("every") in WORDS else SCALES.get(axis.get("bins", ""), "name")


def _spans(rows: Sequence[Row], axis: Axis) -> set[tuple[float, float]]:
    """Both edges of each cell as numbers, those of time in seconds."""
    return {(_number(left), _number(right)) for left, right in {_ends(row, axis) for row in rows}}


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


def cell(row: Row, axes: Sequence[Axis], missing: str = "missing") -> str:
    """The name of a cell by all of its columns; `missing` stands for a key that is none."""
    row = {name: missing if value is None or value != value else value for name, value in row.items()}
    return ", ".join(label(row, axis, column) for axis in axes for column in axis["columns"]) or "all rows"


def broken(text: str) -> str:
    """A long name on lines of its own, which a chart splits where they end."""
    if len(text) <= LINE_LENGTH and text == " ".join(text.split()):
        return text
    lines = wrap(text, LINE_LENGTH) or [text]
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1] + "…"])


def told_apart(names: Mapping[Any, str]) -> dict[Any, str]:
    """The names, of which those that a chart would show alike get a number before them: none lies on another."""
    seen, alike, made = set[str](), dict[str, int](), dict[Any, str]()
    for value, text in names.items():
        name, shown = text, broken(text)
        number = alike.get(shown, 1)
        while broken(name) in seen:
            number += 1
            name = f"({number}) {text}"
        alike[shown] = number
        seen.add(broken(name))
        made[value] = name
    return made


def unlike(word: str, names: Iterable[Any]) -> str:
    """A word for what is no key, in parentheses where a key has its name."""
    taken = {name for name in names if isinstance(name, str)}
    while word in taken:
        word = f"({word})"
    return word


def distinct(rows: list[dict[str, Any]], axes: Sequence[Axis], *, subtotals: bool = False) -> list[dict[str, Any]]:
    """The rows, of whose keys no two have one label; of `subtotals` none is a key."""
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
    """A key as text."""
    return "missing" if value is None or value != value else short(value)


def short(value: Any) -> str:
    """A number or a time as people write it."""
    if isinstance(value, float):
        return f"{value:,.15g}" if abs(value) >= 10_000 else f"{value:.15g}"
    return str(value).removesuffix(" 00:00:00")


def plain(edge: Any) -> Any:
    """A number, or a time as charts read it, which call it one of UTC."""
    if isinstance(edge, (int, float)):
        return edge
    if isinstance(edge, datetime):
        return edge.isoformat(timespec="milliseconds") + "Z"
    return f"{edge.isoformat()}T00:00:00Z"


def _lies_at(edge: Any, axis: Axis) -> Any:
    """A time of a zone as its wall clock shows it, or as far from UTC as all of its axis; anything else as it is."""
    if not isinstance(edge, datetime) or edge.tzinfo is None:
        return edge
    return (edge.astimezone(UTC) + axis[FROM_UTC] if FROM_UTC in axis else edge).replace(tzinfo=None)


def _ends(row: Row, axis: Axis) -> tuple[Any, Any]:
    """The edges of a bin, or where a step of time begins and the one after it, at their places along the axis."""
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
MOST_COLORS = 4  # that a chart takes by itself: those that stand out from the page by 3 to 1
COLORS = 8  # that the theme has
MOST_GROUPED = 40  # bars or points side by side in colors
MOST_LISTED = 12  # names in a panel, beside others
MOST_SMALL = 12  # panels of bars with names
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
        """The same, of columns that have got other names."""

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
        """Tell whether it says where columns go."""
        return any(one is not None for one in (self.x, self.color, self.facet, self.kind))


@dataclass(frozen=True)
class Layout:
    """The place of each column; of a heat map `up` goes up the side."""

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
    """The layout that was asked for, and for what was not, the one that reads best.

    `from_zero` are counts and sums, which bars show; `running` are shares up to the end of each bin, which lines show.
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
    """The column that goes along the axis: the first of time or of numbers, else the one with most names."""
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
    """The column of the colors, and those of the panels."""
    color, facet = chosen["color"], chosen["facet"]
    facets = [] if facet is None else [facet]
    for dimension in sorted(free, key=lambda dimension: (not dimension.beside, len(dimension.labels))):
        if color is None and _is_colorable(kind, x, dimension):
            color = dimension
        else:
            facets.append(dimension)
    return color, facets


def _is_colorable(kind: str, x: Dimension | None, dimension: Dimension) -> bool:
    """Tell whether its values stand side by side in one panel and can still be told apart."""
    size = len(dimension.labels)
    if x is None or size > MOST_COLORS:
        return False
    if kind == "line":
        return True
    return (x.kind == "name" or kind == "point") and len(x.labels) * size <= MOST_GROUPED


def _is_better_as_map(x: Dimension | None, color: Dimension | None, facets: Sequence[Dimension], asked: Asked) -> bool:
    """Tell whether there would be too many panels, or too many names in each."""
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
    """The names of the numbers to show: all, or those asked for; `noisy` are the unbiased ones of denoised numbers."""
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


def check_labels(labels: Any, of: str = "labels") -> None:
    """Refuse words for columns and keys that are not laid out as `relabel` takes them."""
    if not isinstance(labels, Mapping):
        raise InvalidType(
            f"{of} must be a dict, not {shown(labels, kind=True)}. "
            'Write labels={"columns": {"n": "People"}, "values": {"sex": {0: "Men"}}}.'
        )
    for name in labels:
        if name not in PARTS_OF_LABELS:
            raise InvalidArgument(
                f'{of} must have the parts "columns" and "values" (in 0.2 it was flat), not {shown(name)}. '
                f'Write labels={{"columns": {{{shown(name)}: {shown(labels[name])}}}}}.'
            )
