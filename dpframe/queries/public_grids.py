"""Public grids of bins that nobody has to know before: one for all numbers, and one for all dates.

Numbers have bins (a, b] above 0, [-b, -a) below it, and 0 by itself, between the powers of two from 2**-10 to 2**40,
each step of a power split into four; beyond both ends there is one more. So no value that lies on an edge is taken for
one beyond it: 1, 2, 4, 8 are what people type. Dates have a bin for each month from 1900 to 2100, and one on either
side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.bins import BinAxis, Coding
from dpframe.queries.date_grid import DAY

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

FIRST_POWER, LAST_POWER, PARTS = -10, 40, 4
FIRST_YEAR, LAST_YEAR = 1900, 2100


@dataclass(frozen=True)
class GridAxis:
    """A column whose bins are those of a public grid; its dtype says of which one, and the schema resolves it."""

    coding: ClassVar[Coding] = "grid"

    column: str
    whole: bool = False  # whether the caller says that values are whole numbers
    statistic: str = "mean"

    def bins(self, by_days: bool) -> BinAxis:
        """The bins of numbers, or of dates. The outermost ones are open, whatever their edges are."""
        if by_days:
            return BinAxis(self.column, _month_edges(), "date", outside="clip", closed=False)
        return BinAxis(self.column, _number_edges(self.whole), outside="clip", closed=False)


def sizes(whole: bool) -> Floats:
    """The edges above 0: whole numbers alone, or all."""
    powers = np.repeat(np.arange(FIRST_POWER, LAST_POWER), PARTS)
    parts = np.tile(1.0 + np.arange(PARTS) / PARTS, LAST_POWER - FIRST_POWER)
    edges = np.append(np.ldexp(parts, powers), 2.0**LAST_POWER)
    return edges[edges == np.floor(edges)] if whole else edges


@lru_cache(maxsize=2)
def _number_edges(whole: bool) -> tuple[float, ...]:
    """Edges of half-open bins: what is open on the left begins at the next float above its edge."""
    above = sizes(whole)
    begins = np.nextafter(np.concatenate([[0.0], above]), math.inf)
    far = 2.0 * above[-1]
    return (-far, *(-above[::-1]).tolist(), 0.0, *begins.tolist(), far)


@lru_cache(maxsize=1)
def _month_edges() -> tuple[int, ...]:
    """The first days of all months in nanoseconds since 1970, and a day on either side."""
    days = month_starts().astype(np.int64).tolist()
    return tuple(day * DAY for day in (days[0] - 1, *days, days[-1] + 1))


def month_starts() -> NDArray[np.datetime64]:
    """The first days of all months, and of the one after them."""
    first, end = np.datetime64(f"{FIRST_YEAR}-01", "M"), np.datetime64(f"{LAST_YEAR + 1}-02", "M")
    return np.arange(first, end).astype("datetime64[D]")


@dataclass(frozen=True)
class Cuts:
    """The places between the bins of a grid: what they are as bounds, and what lies in the bins next to them.

    Parameters
    ----------
    lower, upper : array
        The bound of all values from a place on, and of all values up to it: numbers, or days since 1970.
    exact_lower, exact_upper : array
        Whether every value that the bins put beyond such a bound lies beyond it; else one may lie on it.
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
        """Bounds as a result has them: numbers, or dates."""
        return np.round(values).astype("datetime64[D]") if self.by_days else values


@lru_cache(maxsize=4)
def cuts_of(by_days: bool, whole: bool) -> Cuts:
    """The places between the bins of a grid."""
    if by_days:
        starts = month_starts().astype(np.int64).astype(np.float64)  # days since 1970
        middles = np.concatenate([[starts[0] - 1.0], (starts[:-1] + starts[1:] - 1.0) / 2.0, [starts[-1]]])
        every = np.ones(starts.size, dtype=np.bool_)
        return Cuts(starts, starts - 1.0, every, every, middles, True)
    above = sizes(whole)
    step = 1.0 if whole else 0.0  # from a bound to the next value beyond it
    places = np.concatenate([-above[::-1], [0.0, 0.0], above])  # before the bin of 0 and after it
    negative = np.arange(places.size) <= above.size
    lower, upper = np.where(negative, places, places + step), np.where(negative, places - step, places)
    left, right = np.concatenate([[2.0 * places[0]], places]), np.concatenate([places, [2.0 * places[-1]]])
    middles = (left + right + np.where(right > 0.0, step, 0.0) - np.where(left < 0.0, step, 0.0)) / 2.0
    middles[above.size + 1] = 0.0
    return Cuts(lower, upper, negative | whole, ~negative | whole, middles, False)
