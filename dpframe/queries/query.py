"""A whole question: statistics over public cells, planned and released as one; and properties of its parts.

Subtotals have levels: the declared cells, their sums by fewer columns, and the total.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, harmless, with_article
from dpframe.queries.discovery import found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.sameness import same_key
from dpframe.queries.statistics import Ecdf, Measured, Statistic, SuggestedBounds, Total
from dpframe.queries.statistics.statistic import (
    ONE_CELL,
    Adapting,
    ByKeys,
    Choosing,
    Deciding,
    Labelled,
    MoreColumns,
    Sharing,
    Tables,
    choosing,
)
from dpframe.queries.total import DistinctTotal, OfRows, UnitsTotal, by_whole_units, over

Integers = NDArray[np.int64]
By = tuple[str, ...]  # the columns by which a level groups
Option = Literal["rollup", "cube"]  # drop the last column, level by level; or take every subset of columns

OF_A_MEAN = "Release dpf.count and dpf.sum of the column, and divide."  # the hint for a statistic without subtotals
OF_OTHERS = "Ask for it in a call of its own."
MOST_CUBED = 8  # columns of a cube: 256 levels
WORDS: dict[Option | None, str] = {None: "", "rollup": ", with subtotals", "cube": ", with all subtotals"}


@dataclass(frozen=True)
class Level:
    """The groups of cells that agree in some columns, in the order in which they first occur."""

    columns: By
    group: Integers  # the group of each cell
    first: Integers  # the first cell of each group

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.first.size


@dataclass(frozen=True)
class Subtotals(Keys):
    """The rows of a result with subtotals: those of all levels, one after the other."""

    option: Option = "rollup"

    def check(self) -> None:
        """Refuse keys without subtotals, and keys whose subtotals could look like cells."""
        if not self.axes:
            raise InvalidArgument(
                f"{self.option} must be left out of a single number, which has no subtotals. "
                f'Write group_by("ward", keys=["A", "B"]).count({self.option}=True).'
            )
        if any(len(axis.names) != len(axis.columns) for axis in self.axes):
            raise InvalidArgument(
                f"{self.option} must be left out where there are bins, which have no name for their total. "
                "Add up bins yourself, or group by declared keys."
            )
        if any(None in axis.values(place) for axis in self.axes for place in range(len(axis.columns))):
            raise InvalidArgument(
                f"keys must not hold None with {self.option}=True, since None marks the rows of subtotals. "
                "Leave it out, or fill the column's missing values with a name of their own."
            )

    def check_cube(self) -> None:
        """Refuse a cube of combinations, since some may be missing, and a cube of too many columns."""
        if self.option != "cube":
            return
        if any(len(axis.columns) > 1 for axis in self.axes):
            raise InvalidArgument(
                "keys must be a dict of values by column with cube=True, not a frame of combinations. "
                'Write keys={"ward": ["A", "B"], "sex": ["f", "m"]}, or rollup=True for columns that nest.'
            )
        if len(self.axes) > MOST_CUBED:
            raise InvalidArgument(
                f"cube must be of at most {MOST_CUBED} columns, not {len(self.axes)}, since each choice of them "
                "takes a part of the cost. Group by fewer, or write rollup=True."
            )

    @property
    def groupings(self) -> tuple[By | None, ...]:  # type: ignore[override]
        return (None, *self._by[1:])

    @property
    def _by(self) -> tuple[By, ...]:
        return cube_of(self.columns) if self.option == "cube" else rollup_of(self.columns)

    @cached_property
    def levels(self) -> tuple[Level, ...]:  # type: ignore[override]
        return levels_of(self, self._by)

    @cached_property
    def cells(self) -> int:
        """The number of rows of all levels."""
        if self.option == "cube":
            return math.prod(size + 1 for size in self.shape)
        return sum(level.size for level in self.levels)

    @property
    def level_facts(self) -> list[dict[str, Any]] | None:  # type: ignore[override]
        return [{"columns": list(level.columns), "rows": level.size} for level in self.levels]

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """Return the key columns of all levels; None stands for all keys, as in SQL's ROLLUP and CUBE."""
        return {name: _labels(name, values, self.levels) for name, values in super().labels().items()}


def option_of(rollup: bool, cube: bool) -> Option | None:
    """Return the option by which subtotals are asked for; None if there is none."""
    if rollup and cube:
        raise InvalidArgument("rollup must be left out with cube=True, which holds its subtotals. Keep one.")
    return "rollup" if rollup else "cube" if cube else None


def rollup_of(columns: By) -> tuple[By, ...]:
    """Return the levels of a rollup: all columns, then one fewer at a time, from the last to the first."""
    return tuple(columns[:count] for count in reversed(range(len(columns) + 1)))


def cube_of(columns: By) -> tuple[By, ...]:
    """Return the levels of a cube: every subset of the columns, the largest first."""
    counts = reversed(range(len(columns) + 1))
    return tuple(kept for count in counts for kept in itertools.combinations(columns, count))


def levels_of(keys: Keys, levels: Sequence[By]) -> tuple[Level, ...]:
    """Return the levels of subtotals of declared keys, each grouped by its own columns."""
    codes, cells = _codes_of(keys), math.prod(keys.shape)
    known: dict[By, Level] = {(): Level((), np.zeros(cells, dtype=np.int64), np.zeros(1, dtype=np.int64))}

    def level(columns: By) -> Level:
        if columns not in known:
            code = codes[columns[-1]]
            finer = level(columns[:-1]).group * (int(code.max()) + 1) + code  # at most 2**60: cells are at most 2**30
            known[columns] = Level(columns, *_in_order(finer))
        return known[columns]

    return tuple(map(level, levels))


def parents_of(levels: Sequence[Level]) -> Integers:
    """Return for each row of a rollup, level after level, the row of its parent; -1 for the total."""
    starts = np.cumsum([level.size for level in levels])
    above = [levels[depth + 1].group[level.first] + starts[depth] for depth, level in enumerate(levels[:-1])]
    return np.concatenate([*above, [-1]])


def _labels(name: str, values: Any, levels: Sequence[Level]) -> Any:
    if isinstance(values, np.ndarray):  # dates; a missing one is NaT
        missing = np.datetime64("NaT", "us")
        columns = [values[level.first] if name in level.columns else np.full(level.size, missing) for level in levels]
        return np.concatenate([column.astype(values.dtype) for column in columns])
    labels: list[Any] = []
    for level in levels:
        labels += [values[cell] for cell in level.first] if name in level.columns else [None] * level.size
    return labels


def _codes_of(keys: Keys) -> dict[str, Integers]:
    """Return for each column the number of its key in each cell."""
    codes = {}
    for index, axis in enumerate(keys.axes):
        outer, inner = math.prod(keys.shape[:index]), math.prod(keys.shape[index + 1 :])
        for position, column in enumerate(axis.columns):
            codes[column] = np.tile(np.repeat(_codes(axis.values(position)), inner), outer)
    return codes


def _codes(values: Sequence[Any]) -> Integers:
    """Return a number for each value; equal values have the same number."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(same_key(value), len(numbers)) for value in values], dtype=np.int64)


def _in_order(values: Integers) -> tuple[Integers, Integers]:
    """Return numbers for the values, in the order of first occurrence, and the places of first occurrence."""
    _, first, group = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[group], first[order]


Floats = NDArray[np.float64]

NOISY, ERROR = "_noisy", "_error"


@dataclass(frozen=True)
class Query:
    """The question of one call: named statistics over the cells of `keys` and, if asked for, their subtotals."""

    verb: str  # the verb that was called, for records
    keys: Keys
    statistics: tuple[tuple[str, Statistic], ...]
    subtotals: Option | None = None  # the option by which subtotals were asked for
    choices: tuple[Deciding, ...] = field(init=False, repr=False, compare=False)  # statistics that a choice may answer

    def __post_init__(self) -> None:
        choices = tuple(
            one if isinstance(one, Deciding) else ONE_CELL
            for _, one in self.statistics
            if isinstance(one, Deciding) or getattr(one, "chooses", False)
        )
        object.__setattr__(self, "choices", choices)
        if self.keys.unknown:
            _check_found(self)
        if self.subtotals is not None:
            _check_subtotals(self, self.subtotals)
        _check_labelled(self)
        names = list(self.shown.names)
        for name, statistic in self.statistics:
            endings = statistic.endings if isinstance(statistic, MoreColumns) else ()
            names += dict.fromkeys([name, name + NOISY, name + ERROR, *(name + end for end in endings)])
        called = [name for name, _ in self.statistics]
        names += [name + end for name in called for end in ("_low", "_high") if name + end in called]  # interval ends
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(
                    f"output columns must have different names, but {name!r} occurs twice. A statistic NAME also has "
                    "NAME_noisy, NAME_error, NAME_low and NAME_high. Name the statistics yourself, as in "
                    "agg(n=dpf.count())."
                )

    @cached_property
    def shown(self) -> Keys:
        """The rows of the result: the cells with their subtotals, or several rows of a statistic in each cell."""
        shown = self.keys.shown if self.subtotals is None else Subtotals(self.keys.axes, self.subtotals)
        for _, statistic in self.statistics:
            if isinstance(statistic, Tables):
                shown = statistic.shown()
            elif isinstance(statistic, Labelled):
                shown = Keys((*shown.axes, *statistic.axes))
        return shown

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure, each once."""
        return tuple(over(total, by) for by in self.shown.groupings for total in self.of_cells)

    @cached_property
    def of_cells(self) -> tuple[Total, ...]:
        """The Totals over the declared cells; those of subtotals are sums of these."""
        totals = [total for _, statistic in self.statistics for total in statistic.totals()]
        found = found_axis(self.keys) if self.keys.unknown else None
        return tuple(dict.fromkeys(totals if found is None else [found.people, *totals]))

    def each(self, change: Callable[[Statistic], Statistic]) -> Query:
        """Return the same question with each statistic changed."""
        changed = [change(statistic) for _, statistic in self.statistics]
        pairs = tuple((name, new) for (name, _), new in zip(self.statistics, changed, strict=True))
        # identity, not equality: a statistic with the reason for its choice equals one without a reason
        same = all(new is old for new, (_, old) in zip(changed, self.statistics, strict=True))
        return self if same else replace(self, statistics=pairs)

    def under(self, pure: bool) -> Query:
        """Return the question in the form for pure noise or for Gaussian noise; these may measure different Totals."""
        formed = self.each(lambda one: one.under(pure) if isinstance(one, Adapting) else one)
        measured = tuple(total for _, statistic in formed.statistics for total in statistic.totals())
        found = found_axis(self.keys) if self.keys.unknown else None
        decides = None if found is None else found.people  # decides on keys; measured in any case
        return formed.each(
            lambda one: one.beside(measured) if isinstance(one, Sharing) and decides not in one.totals() else one
        )

    def answer(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the noisy values and the half-widths of their 95% intervals, one for each row."""
        parts = [
            statistic.answer({total: measured[over(total, by)] for total in statistic.totals()})
            for by in self.shown.groupings
        ]
        return np.concatenate([values for values, _ in parts]), np.concatenate([errors for _, errors in parts])

    def __str__(self) -> str:
        """Return the question as text, which is printed, logged and kept in ledgers."""
        if self.keys.counted == "units":
            return harmless(f"contributions(){self.keys}")
        for choice in self.choices:
            if isinstance(choice, Choosing):
                return harmless(f"{choice.choice_words} of {self.keys.axes[0]}")
        statistics = ", ".join(str(statistic) for _, statistic in self.statistics)
        return harmless(f"{statistics} by {self.keys}{WORDS[self.subtotals]}" if self.keys.axes else statistics)


def gathers(query: Query) -> bool:
    """Return whether distinct values are counted, so that the values of all rows must be examined together."""
    return any(isinstance(total, DistinctTotal) for total in query.of_cells)


def compound(query: Query) -> bool:
    """Return whether some Total is not a plain sum over rows."""
    return not all(isinstance(total, OfRows | UnitsTotal) and not by_whole_units(total) for total in query.of_cells)


def chooses(query: Query) -> bool:
    """Return whether the answer is some of the cells, instead of a number for each."""
    return any(isinstance(choice, Choosing) for choice in query.choices)


def has_numbers(query: Query) -> bool:
    """Return whether numbers of cells are released, and not only chosen cells or suggested bounds."""
    choices = (choosing(statistic) for _, statistic in query.statistics)
    return suggestion_of(query) is None and any(choice is None or choice.numbered for choice in choices)


def by_choice(query: Query) -> bool:
    """Return whether a mechanism for choices chooses cells."""
    return any(choice.by_choice for choice in query.choices)


def read_by(query: Query) -> Iterator[str]:
    """Yield the columns that the Totals of a question read, some of them more than once."""
    return (name for total in query.of_cells for name in total.columns)


def suggestion_of(query: Query) -> SuggestedBounds | None:
    """Return the question for suggested bounds, whose answer is candidates; None if anything else is asked."""
    statistic = query.statistics[0][1]
    return statistic if isinstance(statistic, SuggestedBounds) else None


def distributed(query: Query) -> str | None:
    """Return the column of the distribution function that is asked for, or None; its bins are the last axis."""
    return next((one.column for _, one in query.statistics if isinstance(one, Ecdf)), None)


def _check_found(query: Query) -> None:
    """Refuse unknown keys with subtotals, several rows for each group, other axes or a choice."""
    if query.subtotals is not None:
        raise InvalidArgument(
            f"{query.subtotals} must be left out with keys=dpf.discover(...): subtotals would hold groups that are "
            "not shown. Ask for the total by itself, without group_by, or declare the keys."
        )
    for name, statistic in query.statistics:
        if isinstance(statistic, Labelled):
            raise InvalidArgument(
                f"{statistic.verb} ({name}) must be asked of declared keys, not with keys=dpf.discover(...). "
                "Find the keys in one release, and declare those that it shows in the next."
            )
    if len(query.keys.axes) > 1 or chooses(query):
        raise InvalidArgument(
            "keys=dpf.discover(...) must stand alone, without bins, declared values of another column or a choice. "
            "Let it find the combinations of all columns: group_by(*columns, keys=dpf.discover(...))."
        )


def _check_subtotals(query: Query, option: Option) -> None:
    """Refuse subtotals of statistics other than sums over rows of declared keys, with one noise for all groups."""
    rows = Subtotals(query.keys.axes, option)  # refuses keys without subtotals
    for name, statistic in query.statistics:
        if isinstance(statistic, ByKeys):
            raise InvalidArgument(
                f"{option} must be left out with bounds by group ({name}), whose noise differs from group to group. "
                "Write bounds=(lower, upper) for all groups."
            )
        if not statistic.adds_up:
            way_out = OF_A_MEAN if statistic.verb in ("mean", "proportion") else OF_OTHERS
            raise InvalidArgument(
                f"{option} must be left out of {with_article(statistic.verb)} ({name}), which is not the sum of its "
                f"parts. {way_out}"
            )
    if not all(isinstance(total, OfRows) for total in query.of_cells):
        raise InvalidArgument(  # an external statistic; the weights of subtotals are those of sums over rows
            f"{option} must be left out of statistics that measure units or vectors: only sums over rows have "
            "subtotals. Let such a statistic say adds_up = False."
        )
    rows.check_cube()


def _check_labelled(query: Query) -> None:
    """Refuse other statistics together with one that has several rows in each group."""
    for name, statistic in query.statistics:
        if not isinstance(statistic, Labelled):
            continue
        labels = [label for axis in statistic.axes for label in axis.names]
        if len(query.statistics) > 1:
            raise InvalidArgument(
                f"{statistic.verb} ({name}) must be alone in its call, since its result has a row for each pair of "
                "columns. Release it with others at one cost by dpf.release_together."
            )
        if set(labels) & {*query.keys.names, *query.keys.columns}:
            raise InvalidArgument(
                f"group_by must not name a column {' or '.join(map(repr, labels))} with {statistic.verb}, whose "
                "result has columns of these names. Rename it first."
            )
