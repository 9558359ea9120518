"""Bins with declared edges (numbers, dates, datetimes or durations), half-open exactly as in NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any, ClassVar, Literal
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, how_many, is_one_of, shown
from dpframe.exact import checked_whole, is_number, is_whole
from dpframe.queries.date_grid import EVERY, MINUTES, MONDAY, Dates, check_on_grid, time_of, zone_name
from dpframe.queries.limits import LARGEST_EXACT, MOST_CELLS, checked_place, refuse_misplaced

LARGEST_TICKS = 2**63 * 1000  # nanoseconds: results show edges in microseconds, as 64-bit integers
BINS_EXAMPLE = "Write for instance bins=range(0, 101, 10), or bins=20, range=(0, 100)."
BINS_MISSING = f"bins must be given (for strings: categories=[...]): they are never taken from the data. {BINS_EXAMPLE}"
PARTS = ("left", "right", "closed")  # attributes of a pandas interval; pandas is never imported here
INTERVAL_EDGES = (
    'Write their edges, as in bins=[0, 18, 65], or pd.IntervalIndex.from_breaks([0, 18, 65], closed="left").'
)
EPOCH = datetime(1970, 1, 1)
AWARE_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EdgeKind = Literal["number", "date", "datetime", "duration"]
# how values are mapped to places on an axis; `rest` has a place for all other values; the places of the last three are
# not known yet, and depend on a dtype (`dtype`, `grid`) or a release (`unknown`)
Coding = Literal["keys", "rest", "found", "bins", "dtype", "grid", "unknown"]


@dataclass(frozen=True, eq=False)
class Instants(Sequence[Any]):
    """Labels that are datetimes with a time zone: NumPy datetimes in UTC, and the zone in which they are shown."""

    ticks: NDArray[Any]
    zone: str

    def __len__(self) -> int:
        return len(self.ticks)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Instants(self.ticks[index], self.zone)
        time = self.ticks[index].astype("datetime64[us]").item()
        if not isinstance(time, datetime):  # outside the years of Python; the zone is then UTC
            return time
        instant = time.replace(tzinfo=UTC)
        return instant if self.zone == "UTC" else instant.astimezone(ZoneInfo(self.zone))

    def texts(self) -> list[str]:
        """Return each datetime as local time of the zone, with its offset from UTC."""
        utc = list(map(str, self.ticks))
        if self.zone == "UTC":
            return [f"{text}+00:00" for text in utc]
        clock = [time.isoformat(timespec="microseconds") for time in self]
        return [f"{time[:26]}{text[26:]}{time[26:]}" for time, text in zip(clock, utc, strict=True)]  # with nanoseconds


def tiled(values: Sequence[Any] | NDArray[Any], outer: int, inner: int) -> Sequence[Any] | NDArray[Any]:
    """Repeat each label of an axis `inner` times, and all of them `outer` times."""
    if isinstance(values, np.ndarray):
        return np.tile(np.repeat(values, inner), outer)
    if isinstance(values, Instants):
        return Instants(np.tile(np.repeat(values.ticks, inner), outer), values.zone)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return list(np.tile(np.repeat(objects, inner), outer).tolist())


@dataclass(frozen=True)
class BinAxis:
    """Declared bins of one column.

    Numeric edges are floats. Edges of dates, datetimes and durations are integers: nanoseconds (since 1970 for the
    first two), so that they compare exactly with a column of any time unit.
    """

    coding: ClassVar[Coding] = "bins"
    ordered: ClassVar[bool] = True
    argument: ClassVar[str] = "bins"  # the caller's name for the edges

    column: str
    edges: tuple[float, ...] | tuple[int, ...]
    kind: EdgeKind = "number"
    aware: bool = False  # whether edges are datetimes with a time zone, compared in UTC
    outside: Literal["drop", "clip"] = "drop"
    closed: bool = True  # whether the last bin includes its right edge; a week excludes the next Monday
    zone: str | None = None  # the time zone in which edges are shown; None if they have none
    holds: str = ""  # the column's kind, if it differs: a day is a midnight in a column of datetimes
    columns: tuple[str] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", (self.column,))
        object.__setattr__(self, "names", (f"{self.column}_left", f"{self.column}_right"))
        object.__setattr__(self, "size", len(self.edges) - 1)

    def values(self, position: int) -> Sequence[Any]:
        return self.edges[:-1]

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        edges: Any = self.shown_edges()
        if self.zone is not None:
            edges = Instants(edges, self.zone)
        return dict(zip(self.names, (edges[:-1], edges[1:]), strict=True))

    def shown_edges(self) -> NDArray[Any]:
        """Return the edges as an array of floats, dates, datetimes (in UTC if they have a time zone) or durations."""
        if self.kind == "number":
            return np.array(self.edges, dtype=np.float64)
        unit, size = ("ns", 1) if any(int(edge) % 1000 for edge in self.edges) else ("us", 1000)
        if self.kind == "date":
            unit, size = "D", 86_400 * 10**9
        family = "timedelta64" if self.kind == "duration" else "datetime64"
        return np.array([int(edge) // size for edge in self.edges], dtype=np.int64).view(f"{family}[{unit}]")

    def facts(self) -> dict[str, Any]:
        edges = self.shown_edges()[[0, -1]]
        first, last = (float(edge) if self.kind == "number" else str(edge) for edge in edges)
        ends: dict[str, Any] = {"first": first, "last": last}
        if self.zone is not None:
            first, last = Instants(edges, self.zone).texts()
            ends = {"zone": self.zone, "first": first, "last": last}
        closed = {} if self.closed else {"closed": "left"}  # by default, the last bin includes both of its edges
        holds = {"holds": self.holds} if self.holds else {}
        said = {"columns": [self.column], "size": self.size, "bins": self.kind, "outside": self.outside}
        return {**said, **holds, **closed, **ends}

    def notes(self) -> tuple[str, ...]:
        """Say where values outside the edges go."""
        first, last = (self.facts()[end] for end in ("first", "last"))
        words = f"{first:g}, {last:g}" if self.kind == "number" else f"{first}, {last}"
        words = f"[{words}{']' if self.closed else ')'}"
        if self.outside == "clip":
            return (f"values of {self.column} outside {words} are counted in the end bins",)
        return (f"values of {self.column} outside {words} are left out",)

    def __str__(self) -> str:
        return f"{self.column}: {how_many(self.size, 'bin')}"


@dataclass(frozen=True)
class DateAxis(BinAxis):
    """Keys of one column on a time grid: the start of each step. A row is in the step that contains its time.

    The keys are bins whose edges are the grid. So no date is looked up, and no cast can lose or merge dates. The last
    bin excludes its right edge, the start of the step after it. If the column has a time zone, the edges are instants,
    and `shown` holds their dates or times on the zone's wall clock.
    """

    argument: ClassVar[str] = "keys=dpf.dates"

    every: str = "1d"
    starts: str = MONDAY  # the first day of weeks; steps follow the wall clock of `zone`, which the schema may add
    shown: tuple[date, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "names", (self.column,))

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        if self.shown and self.every in MINUTES:
            return {self.column: list(self.shown[:-1])}
        return {self.column: self.shown_edges()[:-1]}

    def shown_edges(self) -> NDArray[Any]:
        """Return the edges as dates or datetimes; if the column has a time zone, as its wall clock shows them."""
        if not self.shown:
            return super().shown_edges()
        if self.every in MINUTES:
            return np.array(self.shown, dtype=object)
        return np.array(self.shown, dtype="datetime64[D]")

    def facts(self) -> dict[str, Any]:
        ends = {"first": self._plain_edge(0), "last": self._plain_edge(-2)}
        starts = {} if self.starts == MONDAY else {"starts": self.starts}
        zone = {} if self.zone is None else {"zone": self.zone}
        said = {"columns": [self.column], "size": self.size, "keys": [self.kind], "every": self.every}
        return {**said, **starts, **zone, **ends}

    def _plain_edge(self, index: int) -> str:
        edge = self.shown_edges()[index]
        if isinstance(edge, datetime):
            return edge.isoformat(sep=" ", timespec="minutes")
        return str(edge.astype("datetime64[m]")).replace("T", " ") if self.every in MINUTES else str(edge)

    def notes(self) -> tuple[str, ...]:
        """Say which rows are in no group."""
        first, last = self._plain_edge(0), self._plain_edge(-1)
        return (f"rows with a value of {self.column} before {first}, or from {last} on, are in no group",)

    def __str__(self) -> str:
        starts = "" if self.starts == MONDAY else f" from {self.starts.title()}"
        zone = "" if self.zone is None else f" of {self.zone}"
        starting = how_many(self.size, "time" if self.every in MINUTES else "date")
        return f"{self.column}: {starting} every {self.every}{starts}{zone}"


@dataclass(frozen=True)
class RunningAxis(BinAxis):
    """The bins of a distribution function, P(X <= right edge): each includes its right edge.

    The first bin also holds all values below it. One more cell holds the values above the last edge. It is measured
    like the others, so that the total includes them, but is no row of the result: `shown` is the axis without it.
    """

    outside: Literal["drop", "clip"] = "clip"
    beyond: bool = True  # whether there is a cell above the last edge

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "size", len(self.edges) - (0 if self.beyond else 1))

    @property
    def shown(self) -> RunningAxis:
        """The bins that are rows of the result."""
        return replace(self, beyond=False)

    def values(self, position: int) -> Sequence[Any]:
        return self.edges if self.beyond else self.edges[:-1]

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "closed": "right"}

    def notes(self) -> tuple[str, ...]:
        """Say where values outside the edges go."""
        ends = (self.facts()[end] for end in ("first", "last"))
        first, last = (f"{end:g}" if self.kind == "number" else end for end in ends)
        below = f"values of {self.column} below {first} count in every row of the result"
        return (f"{below}; those above {last} count only in the denominator",)

    def __str__(self) -> str:
        return f"{self.column}: {how_many(len(self.edges) - 1, 'bin')}"


def running_axis(axis: BinAxis) -> RunningAxis:
    """Return the axis of ``ecdf`` with the edges of these bins."""
    return RunningAxis(axis.column, axis.edges, axis.kind, axis.aware, zone=axis.zone)


def date_axis(column: str, dates: Dates) -> DateAxis:
    """Return the axis of ``keys=dpf.dates(...)``."""
    kind: EdgeKind = "datetime" if dates.every in MINUTES else "date"
    grid = {"every": dates.every, "starts": dates.starts, "zone": dates.zone}
    return DateAxis(column, dates.edges(), kind, closed=False, **grid)  # type: ignore[arg-type]


def bin_axis(column: str, bins: object, value_range: object, outside: Any) -> BinAxis:
    """Return the axis of ``histogram(column, bins=bins, range=value_range, outside=outside)``."""
    if not is_one_of(outside, ("drop", "clip")):
        raise InvalidArgument(f"outside must be 'drop' or 'clip', not {shown(outside)}.")
    if bins is None:
        raise MissingArgument(BINS_MISSING)
    refuse_misplaced(bins)
    if isinstance(bins, str) and bins in (*EVERY, *MINUTES):
        of_hours: EdgeKind = "datetime" if bins in MINUTES else "date"
        return BinAxis(column, _grid_edges(bins, value_range), of_hours, False, outside, closed=False)
    if are_intervals(bins):
        _refuse_range(value_range)
        edges, kind, zone = _checked_edges(edges_of(bins))
        return BinAxis(column, edges, kind, zone is not None, outside, closed=False, zone=zone)
    if isinstance(bins, str):
        raise InvalidType(
            f"bins must be edges, a number, or a time step ({', '.join((*MINUTES, *EVERY))}), not "
            f"{shown(bins)}. Write for instance bins=range(0, 101, 10)."
        )
    is_fraction = is_number(bins) and not is_whole(bins)
    if is_fraction or isinstance(bins, (bool, bytes, np.bool_, np.timedelta64)):
        raise InvalidType(f"bins must be edges or a whole number of bins, not {shown(bins)}. {BINS_EXAMPLE}")
    if is_whole(bins):
        edges, kind, zone = _equal_edges(bins, _range_ends(value_range))
    else:
        _refuse_range(value_range)
        edges, kind, zone = _checked_edges(bins)
    return BinAxis(column, edges, kind, zone is not None, outside, zone=zone)


def _refuse_range(value_range: object) -> None:
    if value_range is not None:
        raise InvalidArgument(f"range must be left out when bins are edges, not {shown(value_range)}.")


def _grid_edges(every: str, value_range: object) -> tuple[int, ...]:
    """Return the edges of ``bins="1w", range=(first, last)``; both ends are edges."""
    example = f'Write for instance bins="{every}", range=("2024-01-01", "2029-01-01").'
    if value_range is None:
        raise MissingArgument(f"range must be given with bins={every!r}: it is never taken from the data. {example}")
    if not isinstance(value_range, (tuple, list)) or len(value_range) != 2:
        raise InvalidType(f"range must be a pair of days (first, last), not {shown(value_range)}. {example}")
    first, last = (time_of("range", end, every, example) for end in value_range)
    for end in (first, last):
        check_on_grid("range", end, every)
    if any(getattr(end, "tzinfo", None) is not None for end in value_range):
        raise InvalidArgument(
            f"range must have no time zone with bins={every!r}, unlike {shown(value_range)}. Leave tzinfo out, or "
            "write keys=dpf.dates(...), whose steps are those of the column's zone."
        )
    if not first < last:
        raise InvalidArgument(f"range must have its lower end first, and {first} is not below {last}. Exchange them.")
    return Dates(first, last, every).edges()[:-1]


def _range_ends(value_range: object) -> tuple[object, object]:
    if value_range is None:
        raise MissingArgument(
            f"range must be given when bins is a number of bins: it is never taken from the data. {BINS_EXAMPLE}"
        )
    if not isinstance(value_range, (tuple, list)) or len(value_range) != 2:
        raise InvalidType(f"range must be a pair (lower, upper), not {shown(value_range)}. {BINS_EXAMPLE}")
    return value_range[0], value_range[1]


def _equal_edges(number: object, ends: tuple[object, object]) -> tuple[tuple[Any, ...], EdgeKind, str | None]:
    bins = checked_whole("bins", number, 1, 2**30, "a number of bins from 1 to 2**30", f" {BINS_EXAMPLE}")
    (first, last), kind, zone = _checked_edges(ends, "range")
    if kind == "number":
        edges: tuple[Any, ...] = tuple(np.linspace(first, last, bins + 1).tolist())  # the same edges as numpy.histogram
    else:
        edges = tuple(first + (last - first) * position // bins for position in range(bins + 1))
    if any(left >= right for left, right in pairwise(edges)):
        raise InvalidArgument(
            f"bins must be few enough that all edges differ, not {bins} on {shown(ends)}. Ask for fewer bins."
        )
    return edges, kind, zone


def _checked_edges(bins: object, argument: str = "bins") -> tuple[tuple[Any, ...], EdgeKind, str | None]:
    """Return the edges as floats or nanoseconds, their kind, and the time zone in which they are shown, if any."""
    sequence: Any = bins  # or an array
    try:
        values = list(sequence if hasattr(sequence, "__len__") else islice(sequence, MOST_CELLS + 2))
    except TypeError:
        raise InvalidType(f"{argument} must be a sequence of edges, not {shown(bins)}. {BINS_EXAMPLE}") from None
    if isinstance(bins, (dict, set, frozenset)):
        raise InvalidType(f"{argument} must be a sequence of edges in order, not {shown(bins)}. {BINS_EXAMPLE}")
    if len(values) > MOST_CELLS + 1 and not hasattr(bins, "__len__"):
        raise InvalidArgument(f"{argument} must have a length if they are more than {MOST_CELLS:_}. Write a list.")
    if len(values) < 2:
        raise InvalidArgument(f"{argument} must hold at least 2 edges, not {len(values)}. {BINS_EXAMPLE}")
    parsed: list[tuple[Any, EdgeKind, bool]]
    if {*map(type, values)} <= {int, float} and all(-LARGEST_EXACT <= value <= LARGEST_EXACT for value in values):
        parsed = [(float(value) + 0.0, "number", False) for value in values]  # unchanged, except that -0.0 becomes 0.0
    else:
        parsed = [_edge(value, argument) for value in values]
    if len({kind for _, kind, _ in parsed}) > 1:
        raise InvalidType(
            f"{argument} must be edges of one kind, not {shown(bins)}. Write only numbers, or only dates."
        )
    check_zones(argument, (aware for _, _, aware in parsed))
    if parsed[0][1] == "number" and type(bins).__name__ == "Series":  # pl.date_range(..., eager=True) is a Series too
        raise InvalidType(
            f"{argument} must be numbers that you wrote down, not a Series of them: edges that come from data, such as "
            f"its quantiles, tell of it. {BINS_EXAMPLE}"
        )
    edges = tuple(edge for edge, _, _ in parsed)
    for index, (left, right) in enumerate(pairwise(edges)):
        if not left < right:
            raise InvalidArgument(
                f"{argument} must increase strictly, but {values[index]} is not below {values[index + 1]}. "
                "Write the edges in order, each of them once."
            )
    if isinstance(edges[0], int) and any(edge % 1000 for edge in edges) and max(map(abs, edges)) >= 2**63:
        raise InvalidArgument(f"{argument} in nanoseconds must lie within 290 years of 1970. Write whole microseconds.")
    return edges, parsed[0][1], _zone_of(values) if parsed[0][2] else None


def _zone_of(edges: Sequence[datetime]) -> str:
    """Return the tz database name of the edges' time zone; "UTC" for several zones, an offset or unsupported years."""
    names = {zone_name(edge.tzinfo) for edge in edges}
    if len(names) > 1:
        return "UTC"
    (name,) = names
    try:
        ZoneInfo(name)
        for edge in (edges[0], edges[-1]):
            edge.astimezone(UTC)  # overflows outside the years of Python
    except (KeyError, ValueError, OverflowError, OSError):
        return "UTC"
    return name


def check_zones(argument: str, aware: Iterable[bool]) -> None:
    """Refuse a mix of datetimes with and without a time zone."""
    if len(set(aware)) > 1:
        raise InvalidType(f"{argument} must all have a time zone, or none of them. Give each datetime a tzinfo.")


def _edge(value: Any, argument: str) -> tuple[Any, EdgeKind, bool]:
    """Return one edge as (float or nanoseconds, kind, whether it has a time zone)."""
    if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        if value != value:
            raise InvalidArgument(f"{argument} must hold dates or durations, not NaT.")
        return _numpy_edge(value, argument) if isinstance(value, np.generic) else temporal_edge(value)
    if not is_number(value):
        is_day = isinstance(value, str) and value[:4].isdigit() and value[4:5] == "-"
        raise InvalidType(
            f"{argument} must hold numbers, dates, datetimes or durations, not {shown(value, kind=True)}. "
            + ("Write datetime.date(2026, 1, 5)." if is_day else "For strings declare categories=[...].")
        )
    way_out = 'To keep what lies outside in the end bins, write outside="clip".'
    return checked_place(argument, value, way_out), "number", False


def temporal_edge(value: date | timedelta) -> tuple[int, EdgeKind, bool]:
    """Return a date, datetime or duration as (nanoseconds, kind, whether it has a time zone)."""
    nanoseconds = int(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0))  # of pandas subclasses
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * 1000 + nanoseconds, "duration", False
    if not isinstance(value, datetime):
        return (value - EPOCH.date()).days * 86_400 * 10**9, "date", False
    aware = value.tzinfo is not None
    since = value - (AWARE_EPOCH if aware else EPOCH)
    return since // timedelta(microseconds=1) * 1000 + nanoseconds, "datetime", aware


def _numpy_edge(value: Any, argument: str) -> tuple[int, EdgeKind, bool]:
    unit, step = np.datetime_data(value.dtype)
    calendar = {"Y": "D", "M": "D", "W": "D"}
    if unit in calendar and value.dtype.kind == "M":
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    sizes = {
        "D": 86_400 * 10**9,
        "h": 3_600 * 10**9,
        "m": 60 * 10**9,
        "s": 10**9,
        "ms": 10**6,
        "us": 10**3,
        "ns": 1,
        "W": 7 * 86_400 * 10**9,
    }
    if unit not in sizes:
        raise InvalidType(f"{argument} must have a unit from weeks to nanoseconds, not {value.dtype}.")
    ticks = int(value.astype(np.int64)) * step * sizes[unit]
    if unit != "D" and abs(ticks) >= LARGEST_TICKS:
        raise InvalidArgument(f"{argument} must lie within 290,000 years of 1970, unlike {value}.")
    if value.dtype.kind == "m":
        return ticks, "duration", False
    return ticks, ("date" if unit == "D" else "datetime"), False


def are_intervals(values: Any) -> bool:
    """Return whether the argument is an interval, an index of intervals, or a list that begins with one."""
    some = values[:1] if isinstance(values, (list, tuple)) else [values]
    return bool(some) and not isinstance(some[0], type) and all(hasattr(some[0], name) for name in PARTS)


def edges_of(intervals: Any) -> list[Any]:
    """Return the edges of intervals that are closed on the left; each must begin where the one before it ends."""
    if not isinstance(intervals, Sized) or not len(intervals):
        raise InvalidArgument(f"bins must be several intervals, or edges, not one or none. {INTERVAL_EDGES}")
    each = list(intervals)  # type: ignore[call-overload]
    if not all(are_intervals(interval) for interval in each):
        raise InvalidArgument(f"bins must be intervals alone, or edges alone. {INTERVAL_EDGES}")
    if any(interval.closed != "left" for interval in each):
        raise InvalidArgument(
            f"bins must be intervals that include their left edge and exclude their right edge. {INTERVAL_EDGES}"
        )
    if any(interval.right != following.left for interval, following in pairwise(each)):
        raise InvalidArgument(f"bins must be intervals of which each begins where the last one ends. {INTERVAL_EDGES}")
    return [each[0].left, *(interval.right for interval in each)]
