"""Integer columns from which Totals are computed, and how they are summed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnRequest
from dpframe.queries.indicators import Checks
from dpframe.queries.row_functions import OnGrid, Present, RowFunction
from dpframe.queries.total import OfRows, RowsTotal, Total

Integers = NDArray[np.int64]
Addend = OnGrid | RowFunction | Present
ROWS = "rows"


@dataclass(frozen=True)
class ChecksTotal(RowsTotal):
    """Key of the numbers of checks among the Totals of a question; it is equal to none of them."""


OF_CHECKS = ChecksTotal()


@dataclass(frozen=True)
class Line:
    """Total of some rows: multiples of their number, of the number of present values and of the sum, added up."""

    name: str | None  # the engine's column of integers
    rows: int = 0
    present: int = 0
    sum: int = 0


@dataclass(frozen=True)
class Watched:
    """Column of which checks count the values below bounds, above them, and present."""

    column: str  # the caller's name
    name: str  # the engine's name
    lower: float
    upper: float

    def compared(self, column: pl.Series) -> tuple[pl.Series, float, float]:
        """Return the values and the bounds to compare: as floats, with NaN for missing values.

        Integers are compared as integers if the bounds are so small that the result is the same.
        """
        if column.dtype == pl.Int64 and not column.null_count() and max(abs(self.lower), abs(self.upper)) < 2**53:
            return column, math.ceil(self.lower), math.floor(self.upper)
        if column.null_count() or column.dtype != pl.Float64:
            column = column.cast(pl.Float64).fill_null(math.nan)
        return column, self.lower, self.upper


@dataclass(frozen=True)
class Terms:
    """Engine columns for the plain sums of one query: what rows add, each column once, and how it is read.

    They are unrelated to the terms of a ledger.

    A value is present if its integer is. Only a column that nothing sums needs a presence of its own. If checks of
    single rows are measured in the same read, their columns are watched.
    """

    values: dict[str, str]  # the caller's column -> the engine's column of values
    present: dict[str, str]  # the caller's column -> the engine's column of presence
    addends: dict[Addend, str]  # what rows add -> engine column of integers
    lines: dict[Total, Line]  # how each Total is computed from them
    checks: Checks | None = None  # checks of the same cells

    @classmethod
    def of(cls, totals: Sequence[Total], checks: Checks | None = None) -> Self:
        """Number the columns that the Totals need, and those that checks compare with bounds."""
        readings = {total: total.reading for total in totals if isinstance(total, OfRows)}
        needed = dict.fromkeys(reading.addend for reading in readings.values())
        kinds: dict[type, list[Any]] = {OnGrid: [], RowFunction: [], Present: []}
        for addend in needed:
            if addend is not None:
                kinds[type(addend)].append(addend)
        grids = {addend: f"sum{number}" for number, addend in enumerate(kinds[OnGrid])}
        of_column = {grid.column: name for grid, name in reversed(grids.items())}
        counted = [addend for addend in kinds[Present] if addend.column not in of_column]
        rows = {addend: f"row{number}" for number, addend in enumerate(kinds[RowFunction])}
        present = {addend: f"present{number}" for number, addend in enumerate(counted)}
        addends: dict[Addend, str] = {**grids, **rows, **present}
        lines: dict[Total, Line] = {}
        for total, reading in readings.items():
            addend = reading.addend
            if isinstance(addend, Present) and addend.column in of_column:
                lines[total] = Line(of_column[addend.column], present=1)
            else:
                name = None if addend is None else addends[addend]
                lines[total] = Line(name, reading.rows, reading.present, reading.sum)
        read = dict.fromkeys(column for total in readings for column, _ in total.values)
        read |= dict.fromkeys(between.column for between in (() if checks is None else checks.between))
        values = {column: f"value{number}" for number, column in enumerate(read)}
        return cls(values, {addend.column: name for addend, name in present.items()}, addends, lines, checks)

    @property
    def watched(self) -> tuple[Watched, ...]:
        """Values that checks compare with bounds, as floats."""
        between = () if self.checks is None else self.checks.between
        return tuple(Watched(each.column, self.values[each.column], *map(float, each.bounds)) for each in between)

    def with_numbers(
        self, totals: dict[Total, Integers], beyond: Integers, rows: int, inside: int
    ) -> dict[Total, Integers]:
        """Return Totals with the numbers of checks: of rows, and of watched values below, above and present."""
        return totals if self.checks is None else {**totals, **numbers_of(self.checks, beyond, rows - inside, rows)}

    def requests(self) -> list[ColumnRequest]:
        """Return the columns to load."""
        values: list[ColumnRequest] = [(name, column, "value", None) for column, name in self.values.items()]
        return values + [(name, column, "present", None) for column, name in self.present.items()]

    def prepared(self) -> list[pl.Expr]:
        """Return the integers that rows add, from the loaded columns; null for a missing value, which adds nothing."""
        return [self.integers(addend) for addend in self.addends]

    def integers(self, addend: Addend) -> pl.Expr:
        """Return the integers that rows add, from one column."""
        name = self.addends[addend]
        if isinstance(addend, Present):
            return pl.col(name).cast(pl.Int64)

        def added(columns: Sequence[pl.Series]) -> pl.Series:
            steps = pl.Series(addend.steps(*(column.to_numpy() for column in columns)))
            return steps.cast(pl.Int64, strict=False)  # null for NaN

        read = [pl.col(self.values[column]) for column in _columns(addend)]
        return pl.map_batches(read, added, return_dtype=pl.Int64, is_elementwise=True).alias(name)

    def names(self) -> list[str]:
        """Return the columns that `prepared` makes."""
        return list(self.addends.values())

    def aggregated(self) -> list[pl.Expr]:
        """Return sums of the integers, counts of present ones, and rows: in 64 bits, so that no sum of counts wraps."""
        counted = [name for addend, name in self.addends.items() if not isinstance(addend, Present)]
        counts = [pl.col(name).count().cast(pl.Int64).alias(f"{name} n") for name in counted]
        return [pl.len().cast(pl.Int64).alias(ROWS), *(pl.col(name).sum() for name in self.names()), *counts]

    def read(self, total: Total, groups: pl.DataFrame) -> Integers:
        """Return a Total's integer total in each of the aggregated groups; a centered sum is an exact subtraction."""
        line = self.lines[total]
        whole = line.rows * groups[ROWS].to_numpy().astype(np.int64)
        if line.present:
            whole = whole + line.present * groups[f"{line.name} n"].to_numpy().astype(np.int64)
        return whole + line.sum * groups[line.name].to_numpy() if line.name is not None and line.sum else whole


def numbers_of(
    checks: Checks, beyond: Integers, outside: int, units: int, rules: Sequence[int] = ()
) -> dict[Total, Integers]:
    """Return the numbers of checks in the order of their indicators, under their key.

    `beyond` has a row for each column that is compared with bounds: the values below, above, and present.
    """
    first = {each.column: number for number, each in reversed([*enumerate(checks.between)])}
    present = [beyond[first[column], 2] for column in dict.fromkeys(each.column for each in checks.between)]
    more = [*[outside] * checks.outside, *rules, *[units] * checks.counts_units]
    return {OF_CHECKS: np.array([*beyond[:, :2].ravel(), *present, *more], dtype=np.int64)}


def _columns(addend: OnGrid | RowFunction) -> tuple[str, ...]:
    return (addend.column,) if isinstance(addend, OnGrid) else tuple(column for column, _ in addend.columns)
