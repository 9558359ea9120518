"""Conditions on rows: with ``where=``, a statistic uses only the rows that hold declared values.

A condition changes single rows: if it does not hold, the values that the statistic reads are missing, and the row
stays. It depends on the row alone, and never fails. So a table and its neighbor, changed row by row, are neighbors
again, with the rows of each unit in their places. Every statistic keeps its sensitivity, which holds for all tables,
including those with more missing values (``docs/assurance/privacy.md``).

A statistic with a condition reads a `Conditional` column in place of a column, and nothing else changes for it. The
engines compute the values of such a column in one place, `dpframe.engines.sums.cells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, time, timedelta
from typing import Any, ClassVar

from dpframe.errors import InvalidArgument, InvalidType, harmless, shown
from dpframe.exact import is_number
from dpframe.queries.bins import BinAxis, EdgeKind, check_zones, temporal_edge
from dpframe.queries.keys import WHERE_EXAMPLE, KeyAxis, value_axis
from dpframe.queries.limits import check_column, checked_place, refuse_misplaced
from dpframe.queries.sameness import hash_of, same_key, written

MOST_SHOWN = 6  # values of a condition that are shown
BEYOND = 10**30  # nanoseconds: farther than any column reaches
PAIRS = 'Write (18, 65), half-open as bins are, or (18, None); a list names values: ["A", "B"].'


@dataclass(frozen=True)
class RangeAxis(BinAxis):
    """The values between two ends, including the lower one: one of the bins into which the ends cut the line.

    The outer bins are unbounded, so an open end needs no rule of its own: +inf is at least 18, like other numbers.
    """

    argument: ClassVar[str] = "where"

    inside: int = 1  # the selected bin
    words: str = ""


@dataclass(frozen=True)
class Condition:
    """Declared values of a column, or a range; it holds for the rows with one of these values."""

    axis: KeyAxis | RangeAxis

    @property
    def written(self) -> Any:
        """The value, the list of values, or the pair from which it was made."""
        if isinstance(self.axis, KeyAxis):
            values = list(self.axis.values(0))
            return values[0] if len(values) == 1 else values
        _, *inner, _ = self.axis.edges  # the outer edges lie beyond all values
        edges = inner if self.axis.kind == "number" else [edge // 1_000 * 1_000 for edge in inner]  # whole microseconds
        ends: list[Any] = BinAxis(self.axis.column, tuple(edges), self.axis.kind).shown_edges().tolist()
        if self.axis.aware:
            ends = [end.replace(tzinfo=UTC) for end in ends]
        return (None, ends[0]) if self.axis.inside == 0 else (*ends, None)[:2]

    @property
    def token(self) -> tuple[Any, ...]:
        """The token of its values, in any order, or of the ends of its range; equal for equal conditions."""
        (column,) = self.axis.columns
        if isinstance(self.axis, KeyAxis):
            return ("values", column, *sorted(written(same_key(value)) for value in self.axis.values(0)))
        return ("range", column, self.axis.kind, self.axis.aware, self.axis.inside, *self.axis.edges[1:-1])

    def __str__(self) -> str:
        (column,) = self.axis.columns
        if isinstance(self.axis, RangeAxis):
            return self.axis.words
        values = self.axis.values(0)
        named = [_shown(value) for value in values[:MOST_SHOWN]]
        if len(values) > MOST_SHOWN:
            named.append(f"one of {len(values) - MOST_SHOWN:,} more")
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"
        return f"{column} is {listed}"


@dataclass(frozen=True)
class GroupBounds:
    """The bounds of a column's values in each of declared groups, which bring all values to one scale.

    With `places`, a value becomes its place between both bounds; otherwise, it is clipped and divided by the larger
    one. With `candidates`, it becomes the number of its group's nearest candidate, from 0 on.
    """

    axis: KeyAxis
    bounds: tuple[tuple[float, float], ...]  # for each key, in order
    places: bool
    candidates: tuple[tuple[float, ...], ...] = ()  # for each key; the bounds are the first and the last


class Conditional(str):
    """A column that is missing in rows where conditions do not hold; without a column, it is 1 where they hold.

    With a declared value, it is 1 if the column holds that value, and 0 if it holds another one.

    As a string, it is a description. It is no column of any table, and equals no name of one.

    Parameters
    ----------
    of : str or None
        The column; None if the statistic is of rows.
    conditions : tuple of Condition
        The conditions, which must all hold: of different columns, in the order of their names.
    value : KeyAxis, optional
        The column and a value, which is compared as a declared key is.
    groups : GroupBounds, optional
        The bounds that bring the values of each group to one scale.

    Examples
    --------
    >>> under_conditions("cost", {"ward": ["A", "B"], "age": (18, None)})
    "cost where age >= 18 and ward is 'A' or 'B'"
    """

    of: str | None
    conditions: tuple[Condition, ...]
    value: KeyAxis | None
    groups: GroupBounds | None
    words: str  # the conditions as text

    def __new__(
        cls,
        of: str | None,
        conditions: tuple[Condition, ...],
        value: KeyAxis | None = None,
        groups: GroupBounds | None = None,
    ) -> Conditional:
        words = harmless(" and ".join(map(str, conditions)))
        named = of
        if value is not None:
            named = harmless(f"{of} = {shown(value.values(0)[0])}")
        if groups is not None:
            among = "among the candidates of" if groups.candidates else "in" if groups.places else "over the bound of"
            named = f"{of} {among} its {groups.axis.columns[0]}"
        made = super().__new__(cls, " ".join([*filter(None, [named]), *([f"where {words}"] if conditions else [])]))
        made.of, made.conditions, made.value, made.groups, made.words = of, conditions, value, groups, words
        return made

    @property
    def where(self) -> dict[str, Any]:
        """The conditions as ``where=`` of a statistic takes them."""
        return {condition.axis.columns[0]: condition.written for condition in self.conditions}

    def facts(self) -> dict[str, str]:
        """Return the facts of a record on its conditions: their text, which may be cut, and a hash of them all."""
        return {"where": self.words, "where_sha256": hash_of(tuple(one.token for one in self.conditions))}

    @property
    def compared(self) -> tuple[KeyAxis, ...]:
        """The declared values with which rows are compared: its value, or the keys whose groups have bounds."""
        return tuple(
            axis for axis in (self.value, None if self.groups is None else self.groups.axis) if axis is not None
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the table from which it is computed."""
        own = () if self.of is None else (self.of,)
        keys = () if self.groups is None else self.groups.axis.columns
        return (*own, *keys, *(column for condition in self.conditions for column in condition.axis.columns))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conditional):
            return False
        return self.__getnewargs__() == other.__getnewargs__()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __getnewargs__(self) -> tuple[Any, ...]:  # for copies and pickles
        return self.of, self.conditions, self.value, self.groups


def under_conditions(column: Any, where: Any) -> Any:
    """Return the column that a statistic reads: with conditions a `Conditional`, a string like column names."""
    if where is None:
        return column
    if column is not None:
        check_column(column)
    refuse_misplaced(where)
    if not isinstance(where, Mapping):
        raise InvalidType(f"where must be a dict of values by column, not {shown(where)}. {WHERE_EXAMPLE}")
    if not where:
        raise InvalidArgument(f"where must name at least one column. {WHERE_EXAMPLE}")
    for name in where:
        if not isinstance(name, str):
            raise InvalidType(f"where must name columns by strings, not {shown(name)}. {WHERE_EXAMPLE}")
    return Conditional(column, tuple(Condition(_axis(name, where[name])) for name in sorted(where)))


def matched(column: str, value: KeyAxis) -> Conditional:
    """Return a column that is 1 if `column`, under its conditions, holds a declared value, and 0 for another value."""
    of, conditions = (column.of, column.conditions) if isinstance(column, Conditional) else (column, ())
    return Conditional(of, conditions, value)


def by_group(column: str, groups: GroupBounds) -> Conditional:
    """Return a column, under its conditions, on the scale of each group."""
    of, conditions = (column.of, column.conditions) if isinstance(column, Conditional) else (column, ())
    return Conditional(of, conditions, groups=groups)


def as_checked(column: str, bounds: tuple[float, float]) -> tuple[str, tuple[float, float]]:
    """Return the column and the bounds for checks of clipped values; bounds by group become (0, 1), with places."""
    if not isinstance(column, Conditional) or column.groups is None:
        return column, bounds
    return by_group(column, replace(column.groups, places=True, candidates=())), (0.0, 1.0)


def is_compared(column: str) -> bool:
    """Return whether a column is 1 or 0, since it is compared with a value."""
    return isinstance(column, Conditional) and column.value is not None


def reads_of(column: str) -> tuple[str, ...]:
    """Return the columns of a table from which a column is computed: itself, or also those of its conditions."""
    return column.reads if isinstance(column, Conditional) else (column,)


def plain_name(column: str) -> str:
    """Return the name of a column as results show it: without its conditions, if it is a column of a table."""
    return column if not isinstance(column, Conditional) or column.of is None else column.of


def _axis(column: str, value: Any) -> KeyAxis | RangeAxis:
    """Return the axis of the values or of the range that a condition names."""
    check_column(column)
    if isinstance(value, tuple):
        return _range(column, value)
    listed = value if hasattr(value, "__len__") and not isinstance(value, str) else [value]
    return value_axis(column, listed, "where")


def _range(column: str, pair: tuple[Any, ...]) -> RangeAxis:
    if len(pair) != 2:
        raise InvalidArgument(f"where must give {column!r} two ends in a pair, not {shown(pair)}. {PAIRS}")
    low, high = pair
    found = [_end(column, end) for end in pair if end is not None]
    if not found:
        raise InvalidArgument(f"where must give {column!r} an end, not two open ones. Leave the column out.")
    edges, kind, aware = [edge for edge, _, _ in found], found[0][1], found[0][2]
    if len({one for _, one, _ in found}) > 1:
        raise InvalidType(f"where must give {column!r} ends of one kind, not {shown(pair)}. {PAIRS}")
    check_zones("where", (one for _, _, one in found))
    if edges != sorted(set(edges)):
        raise InvalidArgument(f"where must have the lower end first, unlike {shown(pair)}. {PAIRS}")
    far: Any = float("inf") if kind == "number" else BEYOND
    if low is None:
        words = f"{column} < {_shown(high)}"
    else:
        words = f"{column} >= {_shown(low)}" if high is None else f"{_shown(low)} <= {column} < {_shown(high)}"
    return RangeAxis(column, (-far, *edges, far), kind, aware, "clip", inside=0 if low is None else 1, words=words)


def _shown(value: Any) -> str:
    """Return a value as text; dates and times as they are printed."""
    return "missing" if value is None else str(value) if isinstance(value, (date, timedelta, time)) else shown(value)


def _end(column: str, end: Any) -> tuple[Any, EdgeKind, bool]:
    """Return an end of a range as (float or nanoseconds, kind, whether it has a time zone)."""
    if is_number(end):
        return checked_place("where", end, "Write None for an open end."), "number", False
    if isinstance(end, (date, timedelta)) and end == end:  # NaT equals nothing
        return temporal_edge(end)
    raise InvalidType(
        f"where must give {column!r} numbers, dates, datetimes or durations in a pair, not {shown(end)}. {PAIRS}"
    )
