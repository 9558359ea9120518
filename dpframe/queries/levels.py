"""The levels of a rollup: the declared cells, their subtotals by fewer and fewer columns, and the total of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.sameness import same_key

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """The groups of cells that agree in the first few columns, in the order in which they first occur."""

    columns: tuple[str, ...]
    group: Integers  # of each cell
    first: Integers  # the first cell of each group

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.first.size


def levels_of(keys: Keys) -> tuple[Level, ...]:
    """The levels of declared keys, the cells themselves first, the total of all last."""
    found = [Level((), np.zeros(keys.cells, dtype=np.int64), np.zeros(1, dtype=np.int64))]
    for place, axis in enumerate(keys.axes):
        outer, inner = math.prod(keys.shape[:place]), math.prod(keys.shape[place + 1 :])
        assert isinstance(axis, KeyAxis)  # bins have no subtotals, and the schema has resolved the others
        for position, column in enumerate(axis.columns):
            codes = _codes(axis.values(position))
            finer = found[-1].group * (int(codes.max()) + 1) + np.tile(np.repeat(codes, inner), outer)
            found.append(Level((*found[-1].columns, column), *_in_order(finer)))
    return tuple(reversed(found))


def parents_of(levels: Sequence[Level]) -> Integers:
    """For each row of all levels, one after the other, the row of its parent; -1 for the total."""
    starts = np.cumsum([level.size for level in levels])
    above = [levels[place + 1].group[level.first] + starts[place] for place, level in enumerate(levels[:-1])]
    return np.concatenate([*above, [-1]])


def labels_of(keys: Keys, levels: Sequence[Level]) -> dict[str, list[Any]]:
    """The key columns of all levels; None stands for all keys, as in SQL's ROLLUP."""
    labels = {name: list(values) for name, values in keys.labels().items()}
    for level in levels[1:]:
        for name, values in labels.items():
            values.extend([values[cell] for cell in level.first] if name in level.columns else [None] * level.size)
    return labels


def _codes(values: list[Any]) -> Integers:
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
