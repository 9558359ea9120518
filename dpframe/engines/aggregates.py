"""The integer columns from which Totals are read off, and how they are summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.source import ColumnRequest
from dpframe.queries.clipping import grid_steps, step_length
from dpframe.queries.row_functions import BITS, Share, TwoSided
from dpframe.queries.total import RowFunction, Total

Integers = NDArray[np.int64]
ROWS = "rows"


@dataclass(frozen=True)
class Line:
    """A Total of some rows: so many times their number, that of the present values of a column, and their sum."""

    name: str | None  # of the engine's column of integers
    rows: int = 0
    present: int = 0
    sum: int = 0


@dataclass(frozen=True)
class Terms:
    """Engine columns for the Totals of one query: each value column is put on the grid of given bounds once.

    A value is present where its integer is there. Only a column that nothing sums needs a presence of its own.
    """

    totals: tuple[Total, ...]
    values: dict[str, str]  # the caller's column -> the engine's, for values
    present: dict[str, str]  # the same, for presence
    sums: dict[tuple[str, tuple[float, float]], str]  # column and bounds -> engine column on the grid
    rows: dict[RowFunction, str]  # what rows add by functions of several values -> engine column

    @classmethod
    def of(cls, totals: tuple[Total, ...]) -> Self:
        """Number the columns that the Totals need."""
        bounded = dict.fromkeys(value for total in totals if total.row is None for value in total.values)
        read = dict.fromkeys(column for total in totals for column, _ in total.values)
        summed = {column for column, _ in bounded}
        counted = dict.fromkeys(s.column for s in totals if s.column is not None and s.column not in summed)
        return cls(
            totals,
            _numbered("value", read),
            _numbered("present", counted),
            _numbered("sum", bounded),
            _numbered("row", dict.fromkeys(_mirrored(total.row)[0] for total in totals if total.row is not None)),
        )

    def requests(self) -> list[ColumnRequest]:
        """The columns to load."""
        values: list[ColumnRequest] = [(name, column, "value", None) for column, name in self.values.items()]
        return values + [(name, column, "present", None) for column, name in self.present.items()]

    def prepared(self) -> list[pl.Expr]:
        """From what was brought to integers, row by row."""
        grids = [on_grid(self.values[column], bounds).alias(name) for (column, bounds), name in self.sums.items()]
        rows = [self.of_rows(row, name) for row, name in self.rows.items()]
        return [*grids, *rows, *(pl.col(name).cast(pl.Int64) for name in self.present.values())]

    def of_rows(self, row: RowFunction, name: str) -> pl.Expr:
        """The integers that rows add by a function of several values."""
        return _of_rows(row, self.values, name)

    def names(self) -> list[str]:
        """The columns that `prepared` makes."""
        return [*self.sums.values(), *self.rows.values(), *self.present.values()]

    def aggregated(self) -> list[pl.Expr]:
        """Sums of the integers, counts of those there are, and rows."""
        counted = [*self.sums.values(), *self.rows.values()]
        counts = [pl.col(name).count().alias(f"{name} n") for name in counted]
        return [pl.len().alias(ROWS), *(pl.col(name).sum() for name in self.names()), *counts]

    def read(self, total: Total, groups: pl.DataFrame) -> Integers:
        """A Total's integer total in each of the aggregated groups; a centred sum by exact subtraction."""
        if total.row is not None:
            row, whole = _mirrored(total.row)
            sums = groups[self.rows[row]].to_numpy()
            return sums if whole is None else whole * groups[f"{self.rows[row]} n"].to_numpy().astype(np.int64) - sums
        if total.column is None:
            return groups[ROWS].to_numpy().astype(np.int64)
        if total.column in self.present:
            return groups[self.present[total.column]].to_numpy()
        name = self._sum_of(total)
        counted = groups[f"{name} n"].to_numpy().astype(np.int64)
        return counted if total.bounds is None else groups[name].to_numpy() - total.midpoint * counted

    def each(self, total: Total) -> pl.Expr:
        """The expression that each row adds to a Total; null adds nothing."""
        if total.row is not None:
            row, whole = _mirrored(total.row)
            return pl.col(self.rows[row]) if whole is None else whole - pl.col(self.rows[row])
        if total.column is None:
            return pl.lit(1, dtype=pl.Int64)
        if total.column in self.present:
            return pl.col(self.present[total.column])
        integers = pl.col(self._sum_of(total))
        return integers.is_not_null().cast(pl.Int64) if total.bounds is None else integers - total.midpoint

    def line(self, total: Total) -> Line:
        """The same as numbers, by which the sums of any rows are read off."""
        if total.row is not None:
            row, whole = _mirrored(total.row)
            return Line(self.rows[row], sum=1) if whole is None else Line(self.rows[row], present=whole, sum=-1)
        if total.column is None:
            return Line(None, rows=1)
        if total.column in self.present:
            return Line(self.present[total.column], sum=1)
        name = self._sum_of(total)
        return Line(name, present=1) if total.bounds is None else Line(name, present=-total.midpoint, sum=1)

    def _sum_of(self, total: Total) -> str:
        """The sum from which a sum, or the presence of its column, is read."""
        return next(
            name
            for (column, bounds), name in self.sums.items()
            if column == total.column and total.bounds in (None, bounds)
        )


def on_grid(value: str, bounds: tuple[float, float]) -> pl.Expr:
    """Divide by the grid (a power of two: exact), clip, round to nearest; NaN and null become null.

    The bounds are whole steps, so no value lies past them after rounding.
    """
    lower, upper = grid_steps(bounds)
    scaled = pl.col(value) * (1.0 / step_length(bounds))
    return (scaled.clip(float(lower), float(upper)) + 0.5).floor().cast(pl.Int64, strict=False)


def plain_share(row: RowFunction) -> Share | None:
    """The share of one value that a function is, for which the engines have expressions; None of any other."""
    function = _two_sided(row)
    return function.share if function is not None and function.above else None


def _mirrored(row: RowFunction) -> tuple[RowFunction, int | None]:
    """The function of which a row's own integers are the rest to a whole, and that whole; itself where there is none.

    Both need one column, and one pass over the rows.
    """
    function = _two_sided(row)
    if function is None or function.above:
        return row, None
    whole = 2**function.share.bits
    missing = None if row.missing is None else whole - row.missing
    return replace(row, function=TwoSided(function.share, above=True), missing=missing), whole


def _two_sided(row: RowFunction) -> TwoSided | None:
    """The function as dpframe's own, of which a share follows; any other is called, whatever attributes it has.

    A class that is made from it may add something else. Of other bounds or another reach, clipping would change it.
    """
    function = row.function
    if type(function) is not TwoSided or type(function.share) is not Share or len(row.columns) != 1:
        return None
    share = function.share
    fits = (share.lower, share.upper) == grid_steps(row.columns[0][1]) and share.bits <= BITS
    return function if fits and row.reach == (0, 2**share.bits) else None


def _of_rows(row: RowFunction, values: dict[str, str], name: str) -> pl.Expr:
    """The steps that each row adds by a function of several values, within its reach; where one is missing, its own."""
    share = plain_share(row)
    if share is not None:
        steps, length = on_grid(values[row.columns[0][0]], row.columns[0][1]), share.upper - share.lower
        whole = ((steps - share.lower) * 2 ** (share.bits + 1) + length) // (2 * length)
        filled: pl.Expr = whole if row.missing is None else whole.fill_null(row.missing)
        return filled.alias(name)

    def added(columns: Sequence[pl.Series]) -> pl.Series:
        missing = np.logical_or.reduce([column.is_null().to_numpy() for column in columns])
        results = row.given(*(column.fill_null(0).to_numpy().view() for column in columns))
        with np.errstate(all="ignore"):  # of what is no integer
            steps = np.clip(results.astype(np.int64), *row.reach)  # the sensitivity holds whatever it gives
        if not missing.any():
            return pl.Series(steps)
        instead = pl.lit(row.missing, dtype=pl.Int64)
        return pl.select(pl.when(pl.Series(~missing)).then(pl.Series(steps)).otherwise(instead)).to_series()

    grids = [on_grid(values[column], bounds) for column, bounds in row.columns]
    return pl.map_batches(grids, added, return_dtype=pl.Int64, is_elementwise=True).alias(name)


def _numbered(prefix: str, keys: Any) -> dict[Any, str]:
    return {key: f"{prefix}{number}" for number, key in enumerate(keys)}
