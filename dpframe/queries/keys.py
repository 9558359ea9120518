"""The public cells of a release: declared keys, declared bins, and their product."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, how_many, named, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import is_whole
from dpframe.queries.bins import (
    BINS_MISSING,
    BinAxis,
    Coding,
    DateAxis,
    Instants,
    RunningAxis,
    are_intervals,
    bin_axis,
    check_zones,
    date_axis,
    running_axis,
    tiled,
)
from dpframe.queries.date_grid import DATES_EXAMPLE, Dates, is_period, python_time
from dpframe.queries.limits import (
    LARGEST_CELLS,
    AsWritten,
    Placed,
    axes_made,
    axes_or_later,
    check_column,
    of_bins,
    refuse_misplaced,
)
from dpframe.queries.sameness import are_naive, same_key

MOST_BITS = 10_000  # of an integer key; Python does not print much longer integers
OTHER = "Other"  # the label of `REST`
KEYS_EXAMPLE = 'Write keys=["A", "B"], or keys={"ward": ["A", "B"], "sex": ["f", "m"]}.'
WHERE_EXAMPLE = 'Write for instance where={"ward": ["A", "B"], "age": (18, None)}.'
PERIODS_EXAMPLE = 'Write periods=dpf.dates("2026-01-05", "2026-12-28", every="1w"), or a list of labels in their order.'
NAMES_EXAMPLE = 'Write for instance categories=["A", "B"].'
EXAMPLES = {"keys": KEYS_EXAMPLE, "categories": NAMES_EXAMPLE, "where": WHERE_EXAMPLE, "periods": PERIODS_EXAMPLE}
KIND_WORDS = {
    "number": "numbers",
    "text": "strings",
    "date": "dates",
    "datetime": "datetimes",
    "duration": "durations",
    "time": "times",
    "period": "Periods",
}

Kind = Literal["number", "text", "date", "datetime", "duration", "time", "period", "missing"]
Numbered = tuple[Sequence[Any], NDArray[np.int64] | None]  # distinct values, and each row's place among them


class Axis(Protocol):
    """One dimension of the cells; callers use its members and do not ask for its class.

    Only the engines read rows, so they map a row's values to its place on the axis; `coding` names the way.
    """

    @property
    def coding(self) -> Coding:
        """The way in which values are mapped to places."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the frame whose values determine the place of a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the result that name the places."""

    @property
    def size(self) -> int:
        """The number of places."""

    @property
    def ordered(self) -> bool:
        """True if neighboring places are near each other, as bins are."""

    def values(self, position: int) -> Sequence[Any]:
        """Return the value of each place in the column at `position`; for bins, the left edge."""

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """Return the columns of the result by name, with one value for each place."""

    def facts(self) -> dict[str, Any]:
        """Return the facts of a record on the axis."""

    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader of the result on rows that have no place."""


@dataclass(frozen=True)
class KeyAxis:
    """Declared keys: the allowed combinations of values of one or several columns."""

    coding: ClassVar[Coding] = "keys"
    ordered: ClassVar[bool] = False

    columns: tuple[str, ...]
    by_column: tuple[tuple[Any, ...], ...]  # the values of each column, one for each combination
    argument: str = "keys"  # the caller's name for them
    kinds: tuple[str, ...] = ()  # the columns' kinds, if they differ: a day is a midnight in datetimes
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    tokens: tuple[Any, ...] = field(init=False, repr=False, default=())  # compared, since Python equates repeated hours
    numbered: tuple[Numbered, ...] = field(init=False, repr=False, compare=False)  # for each column

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", self.columns)
        columns = self.by_column
        object.__setattr__(self, "size", len(columns[0]))
        object.__setattr__(self, "numbered", tuple(map(numbered, columns)) if len(columns) > 1 else ((*columns, None),))
        if not self.size:
            raise InvalidArgument(
                f"{self.argument} must name at least one value of {self.columns[0]!r}. {EXAMPLES[self.argument]}"
            )
        if all(are_plain(values) for values, _ in self.numbered) and _are_different(self.numbered, self.size):
            return  # each column has one kind, whose values are the same if Python calls them equal
        for column, values in zip(self.columns, columns, strict=True):
            _check_one_kind(f"{self.argument} of column {column!r}", values)
        seen: dict[tuple[Any, ...], None] = {}
        for row in self.rows:
            tokens = tuple(map(same_key, row))
            if tokens in seen:
                twice = shown(row[0] if len(row) == 1 else row)
                raise InvalidArgument(
                    f"{self.argument} must be distinct, but {twice} occurs twice. Name each value once."
                )
            seen[tokens] = None
        object.__setattr__(self, "tokens", tuple(seen))

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The combinations, each with one value for each column."""
        return tuple(zip(*self.by_column, strict=True))

    def values(self, position: int) -> Sequence[Any]:
        """Return the value of each combination in the column at `position`."""
        return self.by_column[position]

    def kind(self, position: int) -> Kind:
        """Return the kind of the declared values of the column at `position`."""
        return next((kind for kind in map(kind_of, self.numbered[position][0]) if kind != "missing"), "missing")

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        return {column: list(values) for column, values in zip(self.columns, self.by_column, strict=True)}

    def facts(self) -> dict[str, Any]:
        kinds = list(self.kinds) or [self.kind(position) for position in range(len(self.columns))]
        return {"columns": list(self.columns), "size": self.size, "keys": kinds}

    def notes(self) -> tuple[str, ...]:
        return ()

    def __str__(self) -> str:
        return f"{' x '.join(self.columns)}: {how_many(self.size, 'declared key')}"


@dataclass(frozen=True)
class Rest(Placed):
    """The last of declared keys: everything else. There is one, `dpframe.REST`.

    A row whose value is none of the declared keys counts there, and so does one without a value, unless None is a key
    too: every row is in a group. The keys are shown as text, and this one as ``Other``.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> stays = pl.DataFrame({"ward": ["A", "B", "C", None]})
    >>> plan = stays.dp.preview.group_by("ward", keys=["A", "B", dpf.REST]).count(epsilon=1)
    >>> plan.query.keys.labels()
    {'ward': ['A', 'B', 'Other']}
    """

    where: ClassVar[str] = (
        'dpf.REST must stand last in the keys of one column, as in keys=["A", "B", dpf.REST]. Elsewhere leave it out.'
    )

    def __repr__(self) -> str:
        return "dpf.REST"

    def __str__(self) -> str:
        """Return the label that results show for these rows."""
        return OTHER


REST = Rest()


@dataclass(frozen=True)
class RestAxis:
    """Declared keys of one column, and a last place for every other row. All labels are text."""

    coding: ClassVar[Coding] = "rest"
    ordered: ClassVar[bool] = False
    argument: ClassVar[str] = "keys"

    declared: KeyAxis

    def __post_init__(self) -> None:
        for text, times in Counter(text for text in self.values(0) if text is not None).items():
            if times > 1:
                raise InvalidArgument(
                    f"keys with dpf.REST must be different as text, and {shown(text)} is there twice "
                    f"(dpf.REST is shown as {OTHER!r}). Leave one out."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.declared.columns

    @property
    def names(self) -> tuple[str, ...]:
        return self.declared.columns

    @property
    def size(self) -> int:
        return self.declared.size + 1

    def values(self, position: int) -> list[Any]:
        """Return the declared keys as text (a missing one stays None), and the label of the rest."""
        return [*(None if value is None else str(value) for value in self.declared.values(position)), OTHER]

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        return {self.columns[0]: self.values(0)}

    def facts(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "size": self.size, "keys": ["text"], "rest": OTHER}

    def notes(self) -> tuple[str, ...]:
        """Say which rows are in the last group."""
        (column,) = self.columns
        missing = "" if None in self.declared.values(0) else ", or missing"
        return (f"{OTHER} holds the rows whose {column} is none of the declared keys{missing}",)

    def __str__(self) -> str:
        return f"{self.columns[0]}: {how_many(self.declared.size, 'declared key')} and the rest"


@dataclass(frozen=True)
class DtypeAxis:
    """A column whose dtype itself declares the keys (a Polars Enum); the schema resolves it to a KeyAxis."""

    coding: ClassVar[Coding] = "dtype"
    ordered: ClassVar[bool] = False
    size: ClassVar[int] = 1

    columns: tuple[str]
    missing: str  # the message to the caller if the dtype declares nothing

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    def values(self, position: int) -> Sequence[Any]:
        return ()

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        return {self.columns[0]: []}

    def facts(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "size": self.size}

    def notes(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Keys:
    """The public cells for which the release has a row: the product of its axes, in row-major order."""

    counted: ClassVar[Literal["rows", "units"]] = "rows"  # what the cells hold
    groupings: ClassVar[tuple[tuple[str, ...] | None, ...]] = (None,)  # the columns of each level of subtotals
    levels: ClassVar[tuple[Any, ...]] = ()  # the levels of subtotals, in that order

    level_facts: ClassVar[list[dict[str, Any]] | None] = None  # columns and rows of each table, if there are several

    axes: tuple[Axis, ...] = ()
    columns: tuple[str, ...] = field(init=False, repr=False, compare=False)  # the columns of the frame
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)  # the output columns that name the cells
    shape: tuple[int, ...] = field(init=False, repr=False, compare=False)  # the number of places of each axis
    unknown: bool = field(init=False, repr=False, compare=False)  # whether the cells are still to be found

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(column for axis in self.axes for column in axis.columns))
        object.__setattr__(self, "names", tuple(name for axis in self.axes for name in axis.names))
        object.__setattr__(self, "shape", tuple(axis.size for axis in self.axes))
        object.__setattr__(self, "unknown", any(axis.coding == "unknown" for axis in self.axes))
        self.check()

    def check(self) -> None:
        """Refuse a column that is named twice, and more cells than 64-bit codes of units and cells can number."""
        for column in self.columns:
            if self.columns.count(column) > 1:
                raise InvalidArgument(f"column {column!r} must be named once in keys and bins. Drop the second.")
        if self.cells > LARGEST_CELLS:
            raise InvalidArgument(f"keys and bins must make at most 2**30 cells, not {self.cells}. Declare fewer.")

    @cached_property
    def cells(self) -> int:
        """The number of cells; with subtotals, of the rows of all levels."""
        return math.prod(self.shape)

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """Return the output columns that name the cells, with one value for each cell, in row-major order."""
        columns: dict[str, Sequence[Any] | NDArray[Any]] = {}
        for position, axis in enumerate(self.axes):
            outer, inner = math.prod(self.shape[:position]), math.prod(self.shape[position + 1 :])
            for name, values in axis.labels().items():
                columns[name] = values if outer * inner == 1 else tiled(values, outer, inner)
        return columns

    @property
    def shown(self) -> Keys:
        """The cells that are rows of the result: all except the cell beyond the edges of a distribution function."""
        axes = tuple(axis.shown if isinstance(axis, RunningAxis) else axis for axis in self.axes)
        return self if axes == self.axes else Keys(axes)

    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader of the result on values outside the bins."""
        return tuple(note for axis in self.axes for note in axis.notes())

    def __str__(self) -> str:
        return " x ".join(map(str, self.axes))


def key_axes(by: tuple[str, ...], keys: object, combinations: Sequence[Iterable[Any]] | None) -> tuple[Any, ...]:
    """Return the axes of ``group_by(*by, keys=keys)``; `combinations` are the columns of `keys` if it was a frame."""
    _check_by(by)
    if combinations is not None:
        return (KeyAxis(by, tuple(map(plain_keys, combinations))),)
    if keys is None:
        return tuple(
            DtypeAxis((column,), f"keys must be given: they are never taken from the data. {KEYS_EXAMPLE}")
            for column in by
        )
    if isinstance(keys, dict):
        if set(keys) != set(by):
            raise InvalidArgument(
                f"keys must name the columns {list(by)} and no other, not {shown(list(keys))}. {_keys_of(by)}"
            )
        return tuple(_axis_of_keys(column, keys[column]) for column in by)
    if len(by) > 1:
        raise InvalidType(
            f"keys must be a dict {{column: values}} or a frame of combinations for {len(by)} columns, "
            f"not {named(keys)}. {_keys_of(by)}"
        )
    return (_axis_of_keys(by[0], keys),)


def _keys_of(by: tuple[str, ...]) -> str:
    """Return the hint on how to write keys of these columns."""
    return f"Write keys={{{', '.join(f'{column!r}: [...]' for column in by)}}}."


def _axis_of_keys(column: str, keys: object) -> KeyAxis | RestAxis | DateAxis:
    if isinstance(keys, (list, tuple)) and keys and isinstance(keys[-1], Rest):
        return RestAxis(value_axis(column, keys[:-1], "keys"))
    return date_axis(column, keys) if isinstance(keys, Dates) else value_axis(column, keys, "keys")


def bin_axes(column: Any, bins: Any, value_range: Any, categories: Any, outside: Any) -> tuple[Any, ...]:
    """Return the axes of ``histogram(column, ...)``: one for each column."""
    if isinstance(column, str):
        if categories is None:
            return (_cut_axis(column, bins, value_range, outside),)
        check_column(column)
        if bins is not None or value_range is not None:
            raise InvalidArgument(
                "categories must be given without bins and range. Keep the one that suits the column."
            )
        return (value_axis(column, categories, "categories"),)
    refuse_misplaced(column)
    if not isinstance(column, (list, tuple)) or not column:
        raise InvalidType(f'column must be the name of a column, or a list of names, not {shown(column)}. Write "age".')
    if categories is not None:
        raise InvalidArgument(
            "categories must be left out for several columns. Use group_by(*columns, keys={...}).count()."
        )
    many = [_each(name, value, len(column)) for name, value in (("bins", bins), ("range", value_range))]
    return tuple(_cut_axis(name, edges, ends, outside) for name, edges, ends in zip(column, *many, strict=True))


def _cut_axis(column: Any, bins: Any, value_range: Any, outside: Any) -> Any:
    """Return the bins of one column; without bins, the axis that its dtype declares."""
    check_column(column)
    if bins is None and value_range is None:
        return DtypeAxis((column,), BINS_MISSING)
    return bin_axis(column, bins, value_range, outside)


def running_axes(column: Any, bins: Any, value_range: Any) -> tuple[Any, ...]:
    """Return the axes of ``ecdf(column, ...)``: one."""
    axes = bin_axes(column, bins, value_range, None, "clip")
    return tuple(running_axis(axis) if isinstance(axis, BinAxis) else axis for axis in axes)


def _each(argument: str, value: Any, columns: int) -> Sequence[Any]:
    """Return one value for each column, from a list of values or one number of bins for all."""
    if value is None or is_whole(value):
        return [value] * columns
    listed = isinstance(value, (list, tuple)) and len(value) == columns
    if not listed or (argument == "range" and not all(isinstance(ends, (list, tuple)) for ends in value)):
        raise InvalidType(
            f"{argument} must be a list with one entry for each of the {columns} columns, not {shown(value)}. "
            "Write for instance bins=[20, 30], range=[(0, 100), (0, 5_000)]."
        )
    return list(value)


def category_axis(column: object, categories: object) -> KeyAxis | DtypeAxis:
    """Return the options of ``mode(column, categories=...)``; a Polars Enum declares them itself."""
    check_column(column)
    if categories is None:
        missing = f"categories must be given: they are never taken from the data. {EXAMPLES['categories']}"
        return DtypeAxis((str(column),), missing)
    return value_axis(str(column), categories, "categories")


def value_axis(column: str, values: object, argument: str) -> KeyAxis:
    """Return the axis of a list, tuple or range of values; refuse anything else, which is probably data."""
    check_column(column)
    refuse_misplaced(values)
    if are_intervals(values):
        raise InvalidType(
            f"{argument} must be values, not intervals. Group by bins: "
            'group_by(dpf.bins("age", [0, 18, 65, 120])), each of which holds its left edge.'
        )
    if isinstance(values, str):
        listed = f"[{shown(values)}]"
        raise InvalidType(f"{argument} must be a list, tuple or range, not {shown(values)}. Write {argument}={listed}.")
    if not isinstance(values, (list, tuple, range)):
        example = DATES_EXAMPLE if argument == "keys" and _are_dates(values) else EXAMPLES[argument]
        raise InvalidType(
            f"{argument} must be a list, tuple or range that you wrote down, not {named(values)}: values from data "
            f"reveal people. {example}"
        )
    return KeyAxis((column,), (plain_keys(values, argument),), argument)


def _are_dates(values: object) -> bool:
    """Return whether a column or an index has a dtype of dates; it may be a range of dates."""
    return str(getattr(values, "dtype", "")).lower().startswith(("date", "period"))


def plain_keys(values: Iterable[Any], argument: str = "keys") -> tuple[Any, ...]:
    """Return the keys of one column as plain Python values, as `plain_key` does."""
    listed = tuple(values)
    return listed if are_plain(listed) else tuple(plain_key(value, argument) for value in listed)


def numbered(values: Sequence[Any]) -> Numbered:
    """Return a column's distinct values and places; the column itself if values that Python equates may differ."""
    if len(set(map(type, values))) == 1:
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        different = tuple(places)
        if are_plain(different):
            return different, np.fromiter(map(places.__getitem__, values), np.int64, len(values))
    return values, None


def _are_different(columns: Sequence[Numbered], size: int) -> bool:
    """Return whether all combinations of plain values are distinct."""
    sizes, places = [len(values) for values, _ in columns], [places for _, places in columns if places is not None]
    if len(places) < len(columns) or math.prod(sizes) >= 2**63:
        each = [values if places is None else places.tolist() for values, places in columns]
        return len(set(each[0] if len(each) == 1 else zip(*each, strict=True))) == size
    numbers = np.zeros(size, dtype=np.int64)
    for among, place in zip(sizes, places, strict=True):
        numbers = numbers * among + place
    numbers.sort()
    return bool((numbers[1:] != numbers[:-1]).all())


def are_plain(values: Sequence[Any]) -> bool:
    """Return whether all are integers, text, dates or datetimes, which are valid keys without a check of each."""
    kinds = set(map(type, values))
    if kinds == {int}:
        least, largest = min(values), max(values)
        return bool(max(largest, -least).bit_length() <= MOST_BITS)
    if kinds == {str}:
        return all(map(str.isascii, values)) or is_utf8("".join(values))
    return kinds == {date} or are_naive(kinds, values)


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can write a text: it then has no surrogate, and neither has any part of it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_key(value: object, argument: str = "keys") -> Any:
    """Return a key as a plain Python value; refuse NaN and NaT, which equal nothing, and infinities."""
    refuse_misplaced(value)
    if isinstance(value, float | Decimal | np.datetime64 | np.timedelta64 | datetime) and not _is_finite(value):
        way_out = "" if argument == "value" else " Ask for the row of missing values with None."
        raise InvalidArgument(f"{argument} must be finite, not {value}.{way_out}")
    if isinstance(value, np.generic):
        value = _plain_time(value, argument) if value.dtype.kind in "mM" else value.item()
    if value is None:
        return None
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidArgument(f"{argument} must be text that UTF-8 can write, unlike {value!a}. Leave it out.")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise InvalidArgument(f"{argument} must be numbers that can be printed, unlike {shown(value)}. Leave it out.")
    if isinstance(value, (bool, int, float, Decimal, str, datetime, date, timedelta, time)) or is_period(value):
        return value
    kinds = (
        "a number, a string, a date or a duration"
        if argument == "value"
        else "numbers, strings, dates, durations or None"
    )
    raise InvalidType(f"{argument} must be {kinds}, not {shown(value, kind=True)}.")


def _plain_time(value: Any, argument: str) -> Any:
    """Return a NumPy date or duration as Python's; refuse one that is not exactly representable."""
    plain = python_time(value)
    if not isinstance(plain, (datetime, timedelta)) or same_key(plain) != same_key(value):
        raise InvalidArgument(
            f"{argument} must be whole microseconds in the years 1 to 9999, unlike {value}. Leave it out."
        )
    return plain


def _is_finite(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return math.isfinite(value) if isinstance(value, float) else bool(value == value)  # NaT equals nothing


def kind_of(value: object) -> Kind:
    """Return the kind of a plain key."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime):
        return "datetime"
    kinds: tuple[tuple[Kind, type], ...] = (("date", date), ("duration", timedelta), ("time", time))
    found = next((kind for kind, family in kinds if isinstance(value, family)), None)
    return found or ("period" if is_period(value) else "number")


def _check_one_kind(keys: str, values: Sequence[Any]) -> None:
    kinds = {KIND_WORDS[kind_of(value)] for value in values if value is not None}
    if len(kinds) > 1:
        raise InvalidType(
            f"{keys} must be of one kind, not {' and '.join(sorted(kinds))} mixed. "
            "Write all as numbers, or all as strings."
        )
    check_zones(keys, (value.tzinfo is not None for value in values if isinstance(value, datetime)))


def key_columns(by: tuple[str, ...]) -> tuple[str, ...]:
    """Check and return the columns of ``group_by``."""
    _check_by(by)
    return by


def _check_by(by: tuple[str, ...]) -> None:
    if not by:
        raise MissingArgument('by must be given: name the columns to group by, as in group_by("ward", keys=[...]).')
    for column in by:
        check_column(column)
    check_once(by)


def check_once(by: tuple[str, ...]) -> None:
    """Refuse a column that is named twice."""
    for column in by:
        if by.count(column) > 1:
            raise InvalidArgument(f"by must name each column once, but {column!r} occurs twice. Drop the second.")


@dataclass(frozen=True, repr=False)
class Bins(AsWritten, Placed):
    """Declared bins of a column, to group by; made by ``dpf.bins``."""

    where: ClassVar[str] = (
        'dpf.bins must stand inside group_by, as in group_by(dpf.bins("age", [0, 18, 65, 120])).count(epsilon=1). '
        "Elsewhere name the column, and in a histogram write bins=[0, 18, 65, 120]."
    )

    verb: ClassVar[str] = "bins"

    column: str
    size: int  # the number of bins, as far as it is known before they are made
    axes: tuple[Any, ...] = field(repr=False)

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes the bins; for bins that are not made yet, their number."""
        (axis,) = self.axes
        if not isinstance(axis, BinAxis):
            return {"column": self.column, "bins": self.size}
        outside = {} if axis.outside == "drop" else {"outside": axis.outside}
        edges = axis.shown_edges()
        written = edges.tolist() if axis.zone is None else list(Instants(edges, axis.zone))
        return {"column": self.column, "bins": written, **outside}

    def made(self) -> BinAxis:
        """Return the axis; very many bins are made only if the ``max_cells`` of a call allows them."""
        (axis,) = axes_made(self.axes, LARGEST_CELLS)
        return axis  # type: ignore[no-any-return]


@trimmed
def bins(column: str, bins: Any = None, *, range: Any = None, outside: Literal["drop", "clip"] = "drop") -> Bins:
    """Cut a column into bins, as groups of `group_by`.

    Parameters
    ----------
    column : str
        A column of numbers, dates, datetimes or durations.
    bins : sequence of edges, int, or str
        As in `histogram`: edges of half-open bins, the last one closed; a number of equal bins, with `range`; or with
        `range` a step: for dates ``"1d"``, ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"``, and for datetimes also ``"15m"``,
        ``"30m"``, ``"1h"``, ``"3h"``, ``"6h"`` or ``"12h"``.
    range : pair, optional
        The first and the last edge.
    outside : {"drop", "clip"}
        Whether values outside the edges are in no group, or in the bins at the ends.

    Returns
    -------
    Bins
        For `group_by` only, alone or with keys of other columns. The result has the columns ``COL_left`` and
        ``COL_right``.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        As `histogram`.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62], "sex": ["f", "m", "f"], "cost": [10.0, 20.0, 30.0]})
    >>> ages = dpf.bins("age", [0, 18, 65, 120])
    >>> with dpf.Ledger(epsilon=1):
    ...     costs = people.dp.group_by(ages, "sex", keys=["f", "m"]).sum("cost", bounds=(0, 100), epsilon=0.5)
    >>> costs.columns[:3], costs.height
    (['age_left', 'age_right', 'sex'], 6)
    """
    check_column(column)
    if bins is None:
        raise MissingArgument(
            "bins must be given: the edges of the bins, from what you know and never from the data. "
            f"Write for instance dpf.bins({shown(column)}, [0, 18, 65, 120])."
        )
    size = of_bins(1, bins, None)
    return Bins(column, size, axes_or_later(size, lambda: (bin_axis(column, bins, range, outside),)))


def key_names(by: Sequence[str | Bins]) -> tuple[str, ...]:
    """Return the columns whose groups are keys."""
    return tuple(column for column in by if not isinstance(column, Bins))


def size_of(by: Sequence[str | Bins], keys: int) -> int:
    """Return the number of groups, given the number of combinations of keys."""
    for column in by:
        keys *= column.size if isinstance(column, Bins) else 1
    return keys


def group_axes(by: tuple[str | Bins, ...], keys: object, combinations: Sequence[Iterable[Any]] | None) -> Any:
    """Return the axes of ``group_by(*by, keys=keys)``, each at the place of its first column."""
    columns = key_names(by)
    if len(columns) == len(by):
        return key_axes(columns, keys, combinations)
    if not columns and (keys is not None or combinations is not None):
        raise InvalidArgument("keys must be left out where group_by names bins alone, which are the groups. Drop them.")
    declared = {axis.columns[0]: axis for axis in key_axes(columns, keys, combinations)} if columns else {}
    axes = []
    for column in by:
        if isinstance(column, Bins):
            axes.append(column.made())
        elif declared:  # combinations have one axis for all columns
            axis = declared.pop(column, None)
            axes += [axis] if axis is not None else []
    return (*axes, *declared.values())
