"""All tables of up to some number of columns at once, measured by their contrasts.

The rows of the result are those of one table after the other. They are public, and counted before they are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise.sums import without_negatives
from dpframe.errors import InvalidArgument, InvalidType, how_many, is_one_of, shown
from dpframe.exact import is_whole
from dpframe.queries import limits
from dpframe.queries.contrasts import ContrastDesign, Objective, Subset
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.limits import MOST_CELLS, checked_columns, refuse_many
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, PlanRow, Statistic
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import TableContrasts

MOST_ATTRIBUTES = 64
MOST_PARTS = 2**20  # pairs of a table and a part of it: each is an addition of arrays
NOT_HERE = -1  # the place of the label of an attribute that a table does not have


@dataclass(frozen=True)
class MarginalTables(Keys):
    """The rows of all tables of up to `degree` axes.

    The label of an axis that a table does not have is None, for "all".
    """

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
        """Return a column for each axis, with a value for each row."""
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
        """Return notes for the reader on rows that are in no table."""
        return (
            *super().notes(),
            "rows with a missing or undeclared value in one of the columns are left out of every table",
        )


def _labels(values: Sequence[Any] | NDArray[Any], places: NDArray[np.int64]) -> Sequence[Any] | NDArray[Any]:
    """Return the values at their places; None or NaT if there is no place."""
    if isinstance(values, np.ndarray):
        missing = np.array([np.datetime64("NaT", "D")]).astype(values.dtype)
        return np.concatenate([values, missing])[places]
    known = [*values, None]
    return [known[place] for place in places.tolist()]


def check_degree(degree: object, attributes: int) -> int:
    """Check and return the number of columns of the largest tables."""
    rule = f"a whole number from 1 to the number of columns, {attributes}"
    way_out = f"Write degree={min(attributes, 2)}."
    if not is_whole(degree):
        raise InvalidType(f"degree must be {rule}, not {shown(degree)}. {way_out}")
    if not 1 <= int(degree) <= attributes:  # type: ignore[call-overload]
        raise InvalidArgument(f"degree must be {rule}, not {shown(degree)}. {way_out}")
    return int(degree)  # type: ignore[call-overload,no-any-return]


def check_tables(sizes: Sequence[int], degree: int, most: int) -> None:
    """Refuse too many cells, in one table or in all, by the numbers of keys alone."""
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
    """Return the rows of each table, as slices."""
    ends = np.cumsum([0, *(level["rows"] for level in levels)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


NOISY = "_noisy"
OBJECTIVES = ("equal", "cells")
CUT, CONSISTENT = "nonnegative", "auto"
DONE = {CUT: "none, non-negative", CONSISTENT: "tables that add up, without a negative cell"}
EXAMPLE = 'Write for instance marginals(["age", "sex"], keys={"age": ["young", "old"], "sex": ["f", "m"]}).'


class _ContrastNoise(Protocol):
    """The noise of contrasts: `dpframe.mechanisms.gaussian`."""

    @property
    def scale(self) -> float: ...
    def interval_of(self, deviation: float, confidence: float) -> float: ...


@dataclass(frozen=True)
class Marginals(Statistic):
    """The counts of all tables of up to `degree` columns, from noisy contrasts.

    Made by `marginals`.

    Examples
    --------
    >>> from dpframe.queries.statistics.marginals import marginals
    >>> tables = marginals(["sex", "ward"], {"sex": ["f", "m"], "ward": ["A", "B", "C"]})
    >>> print(tables, len(tables.design.tables), tables.design.rows)
    marginals of sex, ward by tables of up to 2 columns 4 12
    """

    verb: ClassVar[str] = "marginals"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = (NOISY,)
    gaussian_only: ClassVar[bool] = True

    attributes: tuple[Any, ...]
    degree: int = 2
    objective: Objective = "equal"
    fit: str | None = None  # how cells below 0 are adjusted

    def __post_init__(self) -> None:
        for axis in self.attributes:
            if axis.coding != "dtype" and any(None in axis.values(place) for place in range(len(axis.columns))):
                raise InvalidArgument(
                    f"keys of {axis.columns[0]!r} must not hold None, which marks all rows of a table without that "
                    "column. Fill its missing values with a name of their own, and declare that."
                )

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "count"

    @property
    def axes(self) -> tuple[Any, ...]:
        """The attributes."""
        return self.attributes

    @property
    def design(self) -> ContrastDesign:
        """The contrasts that are measured."""
        return _design(tuple(axis.size for axis in self.attributes), self.degree, self.objective)

    def shown(self) -> MarginalTables:
        """Return the rows of all tables."""
        return MarginalTables(self.attributes, self.degree, self.design.tables)

    def resolved(self, checked: Callable[[Any], Any]) -> Self:
        """Return the same with the keys that a dtype declares."""
        return replace(self, attributes=tuple(map(checked, self.attributes)))

    def totals(self) -> tuple[Total, ...]:
        """Return the one Total that it measures."""
        return (VectorTotal(TableContrasts(self.attributes, self.design)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the unbiased counts of all tables, and the half-widths of their intervals."""
        contrasts, design = measured[self.totals()[0]], self.design
        counts_of_cells = np.concatenate([table.ravel() for table in design.reconstructed(contrasts.values)])
        half = [self._half(table, contrasts.noise, CONFIDENCE) for table in design.tables]
        return counts_of_cells, np.repeat(half, [design.cells(table) for table in design.tables])

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the unbiased counts, even if the answer is adjusted."""
        return {NOISY: self.answer(measured)[0]}

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str] | None:
        """Return counts of at least 0: each raised to 0 by itself, or the nearest tables that add up."""
        if self.fit is None:
            return None
        design = self.design
        if self.fit == CUT:
            return np.maximum(values, 0.0), DONE[CUT]
        ends = np.cumsum([design.cells(table) for table in design.tables])[:-1]
        tables = {
            table: numbers.reshape([design.sizes[i] for i in table])
            for table, numbers in zip(design.tables, np.split(values, ends), strict=True)
        }
        return np.concatenate([table.ravel() for table in without_negatives(tables).values()]), DONE[CONSISTENT]

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width to expect, the largest of all tables."""
        return max(self._half(table, noises[0], confidence) for table in self.design.tables)

    def rows_of_plan(self, noises: Sequence[Noise]) -> Sequence[PlanRow]:
        """Return the cost, the noise and the exact error of each table.

        A table with a column of only one key has a share of 0.
        """
        design, shares = self.design, self.design.shares()
        scale = cast(_ContrastNoise, noises[0]).scale
        return [
            PlanRow(
                self._words(table),
                shares.get(table, 0.0),
                scale * math.sqrt(design.table_variances[table]),
                self._half(table, noises[0], CONFIDENCE),
            )
            for table in design.tables
        ]

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states.

        They include the standard deviation of each table's cells, for noise of scale 1.
        """
        variances = self.design.table_variances
        return {
            "verb": self.verb,
            "column": None,
            "degree": self.degree,
            "objective": self.objective,
            "deviations": [math.sqrt(variances[table]) for table in self.design.tables],
        }

    def _half(self, table: Subset, noise: Noise, confidence: float) -> float:
        return cast(_ContrastNoise, noise).interval_of(math.sqrt(self.design.table_variances[table]), confidence)

    def _words(self, table: Subset) -> str:
        return " x ".join(self.attributes[i].columns[0] for i in table) or "all rows"

    def __str__(self) -> str:
        columns = ", ".join(axis.columns[0] for axis in self.attributes)
        return f"marginals of {columns} by tables of up to {how_many(self.degree, 'column')}"


@cache
def _design(sizes: tuple[int, ...], degree: int, objective: Objective) -> ContrastDesign:
    return ContrastDesign(sizes, degree, objective)


def marginals(
    columns: Any,
    keys: Any = None,
    *,
    degree: Any = 2,
    objective: Any = "equal",
    denoise: Any = None,
    most: int = limits.MOST_CELLS,
) -> Marginals:
    """Count all tables of up to `degree` of the columns.

    Parameters
    ----------
    columns : list of str
        The attributes, at most 64.
    keys : dict of lists by column
        The declared values of each column; a Polars Enum declares its own.
    degree : int
        The number of columns of the largest tables.
    objective : {"equal", "cells"}
        Whether the variances of all tables have the same weight, or those of all cells.
    denoise : {None, "nonnegative", "auto"}
        The way to adjust cells below 0.
    most : int
        The most cells that all tables together may have.

    Raises
    ------
    MissingArgument, InvalidArgument, InvalidType
        If an argument breaks its rule.
    """
    names = checked_columns(columns, 1, MOST_ATTRIBUTES, EXAMPLE)
    if not (keys is None or isinstance(keys, Mapping)):
        raise InvalidType(f"keys must be a dict of declared values by column, not {shown(keys, kind=True)}. {EXAMPLE}")
    checked_degree = check_degree(degree, len(names))
    if not is_one_of(objective, OBJECTIVES):
        raise InvalidArgument(
            f"objective must be 'equal', for tables that count alike, or 'cells', not {shown(objective)}. "
            "Leave it out for 'equal'."
        )
    if not (denoise is None or (isinstance(denoise, str) and denoise in DONE)):
        raise InvalidArgument(
            f"denoise must be 'auto', 'nonnegative' or None for marginals, not {shown(denoise)}: others would make "
            "the tables inconsistent. Leave it out."
        )
    if denoise == CONSISTENT and checked_degree > 2:
        raise InvalidArgument(
            f"denoise must be 'nonnegative' or None for tables of {checked_degree} columns, not 'auto', which makes "
            "tables of two columns consistent. Leave it out."
        )
    check_tables([limits.length(keys[name]) if keys and name in keys else 1 for name in names], checked_degree, most)
    axes = key_axes(names, None if keys is None else dict(keys), None)
    return Marginals(axes, checked_degree, objective, denoise)
