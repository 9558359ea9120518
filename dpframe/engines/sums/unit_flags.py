"""Checks of whole units by flags of their rows, found while rows are made narrow for their weights.

The flags of a row are 16 bits: for each column that is compared with bounds, whether its value lies below them, above
them, or is present. If checks ask for rows in no cell, such a row has the place after all cells. Otherwise it is left
out, as rows without a unit may be. A unit has a flag if one of its rows in cells has it; two more flags say if it has
rows in cells, and rows in none. Its rows in each group show which rules reduce its weight.

Compiled kernels (`loops.check_parts`) and NumPy find the same numbers, part by part: a part holds whole units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.sums.addends import Integers, Terms, Watched, numbers_of
from dpframe.queries.indicators import Checks, Counting
from dpframe.queries.total import Total

Flags = NDArray[np.uint16]  # the flags of each row

BITS = 3  # bits of a column: below, above, present
INSIDE, OUTSIDE = 2**14, 2**15  # flags of a unit: it has rows in cells, and in none
COUNTED: tuple[Counting, ...] = ("rows", "most rows", "groups", "squares")  # positions are numbers in kernels
MOST = 2**62  # larger limits count as this one: no unit exceeds it in practice


@dataclass(frozen=True)
class RowFlags:
    """Flags of rows that the checks of a question ask for, and the counts of them."""

    checks: Checks
    watched: tuple[Watched, ...]
    cells: int

    @classmethod
    def of(cls, terms: Terms, cells: int) -> Self | None:
        """Return the flags for the terms of a question; None if nothing is checked."""
        return None if terms.checks is None else cls(terms.checks, terms.watched, cells)

    @property
    def rules(self) -> Integers:
        """One row for each rule: what is counted, by its number, and its maximum."""
        rules = [(COUNTED.index(rule.counting), min(rule.most, MOST)) for rule in self.checks.rules]
        return np.array(rules, dtype=np.int64).reshape(-1, 2)

    @property
    def few(self) -> int:
        """Number of rows up to which a unit breaks no rule that counts its rows by group."""
        by_group = [rule for rule in self.checks.rules if rule.counting != "rows"]
        least = (math.isqrt(rule.most) if rule.counting == "squares" else rule.most for rule in by_group)
        return min(least, default=MOST)

    def place_outside(self, places: NDArray[Any]) -> None:
        """Give rows in no cell the place after all cells, if checks ask for them."""
        if self.checks.outside and places.min(initial=1) <= 0:
            places[places <= 0] = self.cells + 1

    def of_rows(self, columns: Mapping[str, pl.Series], out: Flags) -> None:
        """Write the flags of some rows."""
        out[:] = 0
        for number, each in enumerate(self.watched):
            column, lower, upper = each.compared(columns[each.name])
            values = column.to_numpy()
            bits = (values < lower).astype(np.uint16)
            bits |= (values > upper).astype(np.uint16) << np.uint16(1)
            bits |= (np.uint16(1) if column.dtype == pl.Int64 else (values == values).astype(np.uint16)) << np.uint16(2)
            out |= bits << np.uint16(BITS * number)

    def numbers_of(self, code: Integers, units: int, places: NDArray[Any], flags: Flags) -> Integers:
        """Return the flags and counts of the units of a part, by the number of each row's unit."""
        found, inside = self.zeros(), places <= self.cells
        if not inside.all():
            found[-2] = np.count_nonzero(_having(code, units, ~inside))
            owners, places, flags = code[inside], places[inside], flags[inside]
        else:
            owners = code
        size = np.bincount(owners, minlength=units)
        for bit in range(BITS * len(self.watched)):
            marked = flags & np.uint16(1 << bit) != 0
            has = size > 0 if marked.all() else _having(owners, units, marked)
            found[bit] = np.count_nonzero(has)
        there = size > 0 if owners is code else _having(code, units, slice(None))
        found[-1] = np.count_nonzero(there)
        found[BITS * len(self.watched) : -2] = self._cut(size, owners, places)
        return found

    def _cut(self, size: Integers, owners: Integers, places: NDArray[Any]) -> list[int]:
        """Return the number of units that break each rule, from their rows in all and the group of each row."""
        heavy = size > self.few
        pairs, rows = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if heavy.any():
            chosen = heavy[owners]
            groups = (places[chosen].astype(np.int64) - 1) // self.checks.inner
            pairs, rows = np.unique(owners[chosen].astype(np.int64) * self.cells + groups, return_counts=True)
        owner, units = pairs // self.cells, size.size
        found: list[int] = []
        for rule in self.checks.rules:
            most = min(rule.most, MOST)
            if rule.counting == "rows":
                found.append(_number(size > most))
            elif rule.counting == "groups":
                found.append(_number(np.bincount(owner, minlength=units) > most))
            elif rule.counting == "most rows":
                found.append(_number(_having(owner, units, rows > most)))
            else:  # more rows than `least` in one group break the rule alone, so no square is large
                least = math.isqrt(most)
                squares = np.zeros(units, dtype=np.uint64)
                np.add.at(squares, owner, np.minimum(rows, least).astype(np.uint64) ** np.uint64(2))
                found.append(_number((squares > most) | _having(owner, units, rows > least)))
        return found

    def zeros(self) -> Integers:
        """Return zeros: for each flag, each rule, units with rows in no cell, and units."""
        return np.zeros(BITS * len(self.watched) + len(self.checks.rules) + 2, dtype=np.int64)

    def numbers(self, found: Integers) -> dict[Total, Integers]:
        """Return the numbers of checks in their order, from the counts of all parts."""
        beyond = found[: BITS * len(self.watched)].reshape(-1, BITS)
        return numbers_of(self.checks, beyond, int(found[-2]), int(found[-1]), found[beyond.size : -2].tolist())


def _number(units: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(units))


def _having(owner: Integers, units: int, rows: Any) -> NDArray[np.bool_]:
    """Return for each unit whether it has one of these rows."""
    has = np.zeros(units, dtype=np.bool_)
    has[owner[rows]] = True
    return has
