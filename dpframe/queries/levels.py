"""Subtotals: the declared cells, their sums by fewer columns, and the total of all, a level for each choice of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.queries.keys import Keys
from dpframe.queries.sameness import same_key

Integers = NDArray[np.int64]
By = tuple[str, ...]  # the columns that a level keeps apart
Option = Literal["rollup", "cube"]  # ever fewer columns, those named first stay longest; or every choice of columns

MOST_CUBED = 8  # columns of a cube: 256 levels
WORDS: dict[Option | None, str] = {None: "", "rollup": ", with subtotals", "cube": ", with all subtotals"}


@dataclass(frozen=True)
class Level:
    """The groups of cells that agree in some columns, in the order in which they first occur."""

    columns: By
    group: Integers  # of each cell
    first: Integers  # the first cell of each group

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.first.size


@dataclass(frozen=True)
class Subtotals(Keys):
    """The rows of a result with subtotals: those of all levels, one after the other."""

    option: Option = "rollup"

    def __post_init__(self) -> None:
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
        """Refuse a cube of combinations, which lack some, and one of many columns."""
        if self.option != "cube":
            return
        if any(len(axis.columns) > 1 for axis in self.axes):
            raise InvalidArgument(
                "keys must be a dict of values by column with cube=True, not a frame of combinations, whose margins "
                'lack some. Write keys={"ward": ["A", "B"], "sex": ["f", "m"]}, or rollup=True for columns that nest.'
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

    @property
    def cells(self) -> int:
        """The number of rows of all levels."""
        if self.option == "cube":
            return math.prod(size + 1 for size in self.shape)
        return sum(level.size for level in self.levels)

    @property
    def level_facts(self) -> list[dict[str, Any]] | None:
        return [{"columns": list(level.columns), "rows": level.size} for level in self.levels]

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """The key columns of all levels; None stands for all keys, as in SQL's ROLLUP and CUBE."""
        return {name: _labels(name, values, self.levels) for name, values in super().labels().items()}


def option_of(rollup: bool, cube: bool) -> Option | None:
    """The one option by which subtotals are asked for; None without."""
    if rollup and cube:
        raise InvalidArgument("rollup must be left out with cube=True, which holds its subtotals. Keep one.")
    return "rollup" if rollup else "cube" if cube else None


def rollup_of(columns: By) -> tuple[By, ...]:
    """The levels of a rollup: ever fewer columns, those named first stay longest."""
    return tuple(columns[:count] for count in reversed(range(len(columns) + 1)))


def cube_of(columns: By) -> tuple[By, ...]:
    """The levels of a cube: every choice of columns, those of most columns first."""
    counts = reversed(range(len(columns) + 1))
    return tuple(kept for count in counts for kept in itertools.combinations(columns, count))


def levels_of(keys: Keys, levels: Sequence[By]) -> tuple[Level, ...]:
    """These levels of declared keys."""
    codes, cells = _codes_of(keys), math.prod(keys.shape)
    known: dict[By, Level] = {(): Level((), np.zeros(cells, dtype=np.int64), np.zeros(1, dtype=np.int64))}

    def level(columns: By) -> Level:
        if columns not in known:
            code = codes[columns[-1]]
            finer = level(columns[:-1]).group * (int(code.max()) + 1) + code  # below 2**60: cells are below 2**30
            known[columns] = Level(columns, *_in_order(finer))
        return known[columns]

    return tuple(map(level, levels))


def parents_of(levels: Sequence[Level]) -> Integers:
    """For each row of all levels of a rollup, one after the other, the row of its parent; -1 for the total."""
    starts = np.cumsum([level.size for level in levels])
    above = [levels[depth + 1].group[level.first] + starts[depth] for depth, level in enumerate(levels[:-1])]
    return np.concatenate([*above, [-1]])


def _labels(name: str, values: Any, levels: Sequence[Level]) -> Any:
    if isinstance(values, np.ndarray):  # dates, of which the missing one is NaT
        missing = np.datetime64("NaT", "us")
        columns = [values[level.first] if name in level.columns else np.full(level.size, missing) for level in levels]
        return np.concatenate([column.astype(values.dtype) for column in columns])
    labels: list[Any] = []
    for level in levels:
        labels += [values[cell] for cell in level.first] if name in level.columns else [None] * level.size
    return labels


def _codes_of(keys: Keys) -> dict[str, Integers]:
    """For each column a number for each of its different keys, by cell."""
    codes = {}
    for index, axis in enumerate(keys.axes):
        outer, inner = math.prod(keys.shape[:index]), math.prod(keys.shape[index + 1 :])
        for position, column in enumerate(axis.columns):
            codes[column] = np.tile(np.repeat(_codes(axis.values(position)), inner), outer)
    return codes


def _codes(values: Sequence[Any]) -> Integers:
    """A number for each different value."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(same_key(value), len(numbers)) for value in values], dtype=np.int64)


def _in_order(values: Integers) -> tuple[Integers, Integers]:
    """The number of each different value in the order of first occurrence, and where that is."""
    _, first, group = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[group], first[order]
