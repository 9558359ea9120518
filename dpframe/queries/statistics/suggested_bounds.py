"""Suggested bounds of columns, from the noisy numbers of values in the bins of a public grid.

There are two grids, one for all numbers and one for all dates. Numbers have bins (a, b] above 0, [-b, -a) below it, and
0 by itself. Edges are the powers of two from 2**-10 to 2**40, with the distance to the next power split into four. One
more bin lies beyond either end. So a value on an edge, such as 1, 2, 4 or 8, which people often type, never counts as
one beyond it. Dates have a bin for each month from 1900 to 2100, and one more on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, is_one_of, shown
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis, Coding
from dpframe.queries.date_grid import DAY
from dpframe.queries.limits import check_column
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic
from dpframe.queries.total import Noise, Total, VectorTotal
from dpframe.queries.vectors import BinCounts

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

FIRST_POWER, LAST_POWER, PARTS = -10, 40, 4
FIRST_YEAR, LAST_YEAR = 1900, 2100


@dataclass(frozen=True)
class GridAxis:
    """A column whose bins are those of a public grid; the schema resolves it.

    The dtype of the column determines the grid.
    """

    coding: ClassVar[Coding] = "grid"

    column: str
    whole: bool = False  # whether the caller says that values are whole numbers
    statistic: str = "mean"

    def bins(self, by_days: bool) -> BinAxis:
        """Return the bins of numbers, or of dates.

        The outermost bins are open, whatever their edges are.
        """
        if by_days:
            return BinAxis(self.column, _month_edges(), "date", outside="clip", closed=False)
        return BinAxis(self.column, _number_edges(self.whole), outside="clip", closed=False)


def sizes(whole: bool) -> Floats:
    """Return the edges above 0: all of them, or only whole numbers."""
    powers = np.repeat(np.arange(FIRST_POWER, LAST_POWER), PARTS)
    parts = np.tile(1.0 + np.arange(PARTS) / PARTS, LAST_POWER - FIRST_POWER)
    edges = np.append(np.ldexp(parts, powers), 2.0**LAST_POWER)
    return edges[edges == np.floor(edges)] if whole else edges


@lru_cache(maxsize=2)
def _number_edges(whole: bool) -> tuple[float, ...]:
    """Return the edges of half-open bins; a bin that is open on the left begins at the next float above its edge."""
    above = sizes(whole)
    with np.errstate(under="ignore"):  # whatever the caller has set: the first is the least positive float
        begins = np.nextafter(np.concatenate([[0.0], above]), math.inf)
    far = 2.0 * above[-1]
    return (-far, *(-above[::-1]).tolist(), 0.0, *begins.tolist(), far)


@lru_cache(maxsize=1)
def _month_edges() -> tuple[int, ...]:
    """Return the first days of all months in nanoseconds since 1970, and a day on either side."""
    days = month_starts().astype(np.int64).tolist()
    return tuple(day * DAY for day in (days[0] - 1, *days, days[-1] + 1))


def month_starts() -> NDArray[np.datetime64]:
    """Return the first days of all months, and of the month after them."""
    first, end = np.datetime64(f"{FIRST_YEAR}-01", "M"), np.datetime64(f"{LAST_YEAR + 1}-02", "M")
    return np.arange(first, end).astype("datetime64[D]")


@dataclass(frozen=True)
class Cuts:
    """The places between the bins of a grid, as bounds, and the values next to them.

    Parameters
    ----------
    lower, upper : array
        The bound of all values from a place on, and that of all values up to it: numbers, or days since 1970.
    exact_lower, exact_upper : array
        Whether every value that the bins put beyond such a bound lies beyond it; otherwise, one may lie on it.
    middles : array
        The middle of each bin: one more than there are places.
    by_days : bool
        Whether these are days.
    """

    lower: Floats
    upper: Floats
    exact_lower: Booleans
    exact_upper: Booleans
    middles: Floats
    by_days: bool

    def shown(self, values: Floats) -> NDArray[Any]:
        """Return bounds as a result shows them: numbers, or dates."""
        return np.round(values).astype("datetime64[D]") if self.by_days else values


@lru_cache(maxsize=4)
def cuts_of(by_days: bool, whole: bool) -> Cuts:
    """Return the places between the bins of a grid."""
    if by_days:
        starts = month_starts().astype(np.int64).astype(np.float64)  # days since 1970
        middles = np.concatenate([[starts[0] - 1.0], (starts[:-1] + starts[1:] - 1.0) / 2.0, [starts[-1]]])
        every = np.ones(starts.size, dtype=np.bool_)
        return Cuts(starts, starts - 1.0, every, every, middles, True)
    above = sizes(whole)
    step = 1.0 if whole else 0.0  # from a bound to the next value beyond it
    places = np.concatenate([-above[::-1], [0.0, 0.0], above])  # the two 0.0: before the bin of 0 and after it
    negative = np.arange(places.size) <= above.size
    lower, upper = np.where(negative, places, places + step), np.where(negative, places - step, places)
    left, right = np.concatenate([[2.0 * places[0]], places]), np.concatenate([places, [2.0 * places[-1]]])
    middles = (left + right + np.where(right > 0.0, step, 0.0) - np.where(left < 0.0, step, 0.0)) / 2.0
    middles[above.size + 1] = 0.0
    return Cuts(lower, upper, negative | whole, ~negative | whole, middles, False)


LISTED = 20  # candidates that are listed for each column
MOST_COLUMNS = 64
PLANNED = ("epsilon", "delta", "mechanism")
EXAMPLE = 'Write for instance suggest_bounds("income", epsilon=0.05).'


@dataclass(frozen=True)
class SuggestedBounds(Statistic):
    """Candidates for bounds of some columns, from noisy counts.

    Used by ``df.dp.suggest_bounds``. Each column has its own vector of counts. They share the budget equally. One
    vector of all columns would get the same: its noise is made for k**(1/p) times the norm.

    Examples
    --------
    >>> bounds = suggested_bounds(("income", "age"), "mean", {"epsilon": 0.5}, False)
    >>> print(bounds, len(bounds.totals()))
    suggested bounds of income, age 2
    """

    verb: ClassVar[str] = "suggest_bounds"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    unchecked: ClassVar[bool] = True  # it clips nothing
    listed: ClassVar[int] = LISTED

    axes_of: tuple[GridAxis | BinAxis, ...]
    statistic: Literal["mean", "sum"] = "mean"
    planned: tuple[tuple[str, Any], ...] = ()
    whole_numbers: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in the order in which they were named."""
        return tuple(axis.column for axis in self.axes_of)

    def resolved(self, checked: Callable[[Any], Any]) -> Self:
        """Return the same with bins that suit the dtypes of the columns."""
        axes = tuple(map(checked, self.axes_of))
        if len({axis.kind for axis in axes}) > 1:
            raise InvalidArgument(
                "columns must all hold numbers, or all dates, to share a result, and these are mixed. "
                "Ask for them in two calls."
            )
        return replace(self, axes_of=axes)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures, one for each column."""
        return tuple(
            VectorTotal(BinCounts(axis.bins(False) if isinstance(axis, GridAxis) else axis)) for axis in self.axes_of
        )

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of the interval of the count of one bin."""
        return max(noise.interval(confidence) for noise in noises)

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it."""
        return f"+-{error} in each bin"

    def notes(self, unit: PrivacyUnit, groups: int) -> tuple[str, ...]:
        """State what the columns of the result leave open."""
        weighted = () if unit.column is None else ("shares are of rows as they are weighed, not of units",)
        dates = ("the upper bound of dates is the last day of a month, to its end; errors are in days",)
        return (
            "total_error is an estimate: values lie in the middle of their bins, and beyond the last bin that stands "
            "out from the noise there are as many, close to it, as the noise may hide; clipped_high is the most that "
            "there may be, and nothing tells how large they are",
            *(dates if self.by_days else ()),
            *weighted,
        )

    def facts(self) -> dict[str, Any] | None:
        """Return None, since it is no table of declared cells."""
        return None

    def suggestion_facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        planned = {name: value if isinstance(value, str) else float(value) for name, value in self.planned}
        said = {
            "columns": list(self.columns),
            "statistic": self.statistic,
            "planned": planned,
            "whole": self.whole_numbers,
        }
        return said | {"rows": self.listed * len(self.axes_of)}

    def candidate_facts(self) -> dict[str, Any]:
        """Return the facts of a record on its rows, which are named by their bounds."""
        kind = "date" if self.by_days else "number"
        names, kinds = ["lower", "upper"], [kind, kind]
        if len(self.axes_of) > 1:
            names, kinds = ["column", *names], ["text", *kinds]
        return {"columns": names, "size": self.listed * len(self.axes_of), "keys": kinds}

    @property
    def by_days(self) -> bool:
        return any(isinstance(axis, BinAxis) and axis.kind == "date" for axis in self.axes_of)

    def __str__(self) -> str:
        return f"suggested bounds of {', '.join(self.columns)}"


def suggested_bounds(columns: Sequence[Any], statistic: Any, planned: Any, whole: Any) -> SuggestedBounds:
    """Find candidates for the bounds of some columns.

    Raises
    ------
    MissingArgument, InvalidArgument, InvalidType
        If an argument breaks its rule.
    """
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        raise InvalidType(
            f"columns must be names one after the other, not a list. "
            f"Write suggest_bounds({', '.join(map(shown, columns[0]))}, ...)."
        )
    if not columns:
        raise MissingArgument(f"columns must be given: those that bounds are asked for. {EXAMPLE}")
    for column in columns:
        check_column(column)
        if columns.count(column) > 1:
            raise InvalidArgument(f"columns must be named once each, and {column!r} is named twice. Drop the second.")
    if len(columns) > MOST_COLUMNS:
        raise InvalidArgument(f"columns must be at most {MOST_COLUMNS}, not {len(columns)}. Ask in several calls.")
    if not is_one_of(statistic, ("mean", "sum")):
        raise InvalidArgument(f"statistic must be 'mean' or 'sum', not {shown(statistic)}. Leave it out for 'mean'.")
    if not isinstance(whole, bool):
        raise InvalidType(f"whole must be True or False, not {shown(whole)}. Write whole=True for whole numbers.")
    grids = tuple(GridAxis(column, whole, statistic) for column in columns)
    return SuggestedBounds(grids, statistic, _planned(planned), whole)


def _planned(planned: Any) -> tuple[tuple[str, Any], ...]:
    """Return the budget of the planned statistic by name, in a fixed order."""
    example = 'Write for instance planned={"epsilon": 0.5}.'
    if not isinstance(planned, Mapping):
        raise InvalidType(f"planned must be a dict of what the statistic will cost, not {shown(planned)}. {example}")
    for name in planned:
        if name not in PLANNED:
            raise InvalidArgument(f"planned must name {', '.join(PLANNED)} and no other, not {shown(name)}. {example}")
    if planned.get("epsilon") is None:
        raise MissingArgument(f"planned must have an epsilon: what the statistic will cost. {example}")
    if not is_one_of(planned.get("mechanism"), (None, "laplace", "gaussian", "auto")):
        raise InvalidArgument(
            f"planned must have 'laplace', 'gaussian' or 'auto' as mechanism, not {shown(planned['mechanism'])}. "
            "Leave it out."
        )
    return tuple((name, planned[name]) for name in PLANNED if planned.get(name) is not None)
