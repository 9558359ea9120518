"""The rows of all tables of several columns, one table after the other: public, and counted before they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import is_whole
from dpframe.queries.contrasts import Subset
from dpframe.queries.keys import Keys
from dpframe.queries.limits import MOST_CELLS, refuse_many

MOST_ATTRIBUTES = 64
MOST_PARTS = 2**20  # pairs of a table and a part of it: each is an addition of arrays
NOT_HERE = -1  # the place of the label of an attribute that a table does not have


@dataclass(frozen=True)
class MarginalTables(Keys):
    """The rows of all tables of up to `degree` axes; the label of an axis that a table has not is None, for "all"."""

    degree: int = 1
    tables: tuple[Subset, ...] = ()

    def check(self) -> None:
        """Refuse a column that is named twice."""
        for column in self.columns:
            if self.columns.count(column) > 1:
                raise InvalidArgument(f"columns must be different ones, but {column!r} occurs twice. Drop the second.")

    @cached_property
    def cells(self) -> int:
        """The number of rows of all tables."""
        return sum(math.prod(self.axes[i].size for i in table) for table in self.tables)

    @property
    def level_facts(self) -> list[dict[str, Any]] | None:  # type: ignore[override]
        """The columns and the number of rows of each table, in order."""
        return [
            {"columns": [self.axes[i].names[0] for i in table], "rows": math.prod(self.axes[i].size for i in table)}
            for table in self.tables
        ]

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        """A column for each axis, with a value a row."""
        places = np.full((len(self.axes), self.cells), NOT_HERE)
        start = 0
        for table in self.tables:
            shape = tuple(self.axes[i].size for i in table)
            end = start + math.prod(shape)
            for i, place in zip(table, np.indices(shape).reshape(len(table), end - start), strict=True):
                places[i, start:end] = place
            start = end
        return {
            name: _labels(values, place)
            for axis, place in zip(self.axes, places, strict=True)
            for name, values in axis.labels().items()
        }

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader on rows that are in no table."""
        return (
            *super().notes(),
            "rows with a missing or undeclared value in one of the columns are left out of every table",
        )


def _labels(values: Sequence[Any] | NDArray[Any], places: NDArray[np.int64]) -> Sequence[Any] | NDArray[Any]:
    """The values at their places; None, or NaT, where there is no place."""
    if isinstance(values, np.ndarray):
        missing = np.array([np.datetime64("NaT", "D")]).astype(values.dtype)
        return np.concatenate([values, missing])[places]
    known = [*values, None]
    return [known[place] for place in places.tolist()]


def check_degree(degree: object, attributes: int) -> int:
    """The number of columns of the largest tables."""
    rule = f"a whole number from 1 to the number of columns, {attributes}"
    way_out = f"Write degree={min(attributes, 2)}."
    if not is_whole(degree):
        raise InvalidType(f"degree must be {rule}, not {shown(degree)}. {way_out}")
    if not 1 <= int(degree) <= attributes:  # type: ignore[call-overload]
        raise InvalidArgument(f"degree must be {rule}, not {shown(degree)}. {way_out}")
    return int(degree)  # type: ignore[call-overload,no-any-return]


def check_tables(sizes: Sequence[int], degree: int, most: int) -> None:
    """Refuse more cells, in one table or in all, than can be counted; told from the numbers of keys alone."""
    largest = math.prod(sorted(sizes)[-degree:])
    if largest > MOST_CELLS:
        raise InvalidArgument(
            f"a marginal must have at most {MOST_CELLS:,} cells, and that of the {degree} columns with the most keys "
            f"has {shown(largest)}. Declare fewer keys, or take a smaller degree."
        )
    polynomial = [1] + [0] * degree  # elementary symmetric polynomials of the sizes
    for size in sizes:
        for order in range(degree, 0, -1):
            polynomial[order] += polynomial[order - 1] * size
    refuse_many("columns, keys and degree must make", "cells in all tables together", sum(polynomial), most)
    parts = sum(math.comb(len(sizes), order) * 2**order for order in range(degree + 1))
    if parts > MOST_PARTS:
        raise InvalidArgument(
            f"columns and degree must make at most 2**20 pairs of a table and a smaller one in it, not {parts:,}. "
            "Name fewer columns, or take a smaller degree."
        )


def places_of_levels(levels: Sequence[Mapping[str, Any]]) -> list[slice]:
    """The rows of each table."""
    ends = np.cumsum([0, *(level["rows"] for level in levels)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]
