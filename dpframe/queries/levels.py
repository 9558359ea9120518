"""The levels of subtotals: the declared cells, their sums by fewer columns, and the total of all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.keys import Keys
from dpframe.queries.sameness import same_key

Integers = NDArray[np.int64]
By = tuple[str, ...]  # the columns that a level keeps apart


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


def rollup_of(columns: By) -> tuple[By, ...]:
    """The levels of a rollup: ever fewer columns, those named first stay longest."""
    return tuple(columns[:count] for count in reversed(range(len(columns) + 1)))


def cube_of(columns: By) -> tuple[By, ...]:
    """The levels of a cube: every choice of columns, those of most columns first."""
    counts = reversed(range(len(columns) + 1))
    return tuple(kept for count in counts for kept in itertools.combinations(columns, count))


def levels_of(keys: Keys, levels: Sequence[By]) -> tuple[Level, ...]:
    """These levels of declared keys."""
    if not levels:
        return ()  # as most questions have it: to number the keys of many bins takes longer than to count in them
    codes = _codes_of(keys)
    known: dict[By, Level] = {(): Level((), np.zeros(keys.cells, dtype=np.int64), np.zeros(1, dtype=np.int64))}

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


def labels_of(keys: Keys, levels: Sequence[Level]) -> dict[str, Any]:
    """The key columns of all levels; None stands for all keys, as in SQL's ROLLUP and CUBE."""
    return {name: _labels(name, values, levels) for name, values in keys.labels().items()}


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
