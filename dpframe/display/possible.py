"""The intervals that are shown: cut to what a number can be, and marked where they tell nothing.

A released error is the half-width of the noise and is never cut. What readers see of it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display.pages import number
from dpframe.frames import build, foreign
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.quotients import within_limits

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Statistic = Mapping[str, Any]

LOW, HIGH = "_low", "_high"
SHARES = ("proportion", "share", "ecdf")
SPREADS = ("std", "var", "variance")
TELLING = (*SHARES, "mean", "ratio")  # of which an interval as wide as what is possible tells nothing
TOO_NOISY = "too noisy"
SLACK = 1e-9  # of what is possible: errors are floats


@dataclass(frozen=True)
class Shown:
    """The intervals of one statistic as they are shown, an entry a row.

    Parameters
    ----------
    low, high : array
        Their ends, within what is possible.
    is_cut : bool
        Whether one of them is another than half-widths, or released ends, say.
    below, above : array of bool
        Whether an end of a quantile lies on a bound, so that it may lie beyond.
    noisy : array of bool
        Whether the noise leaves nothing to be said.
    """

    low: Floats
    high: Floats
    is_cut: bool
    below: Booleans
    above: Booleans
    noisy: Booleans

    @property
    def on_bounds(self) -> int:
        """The number of rows of which an end lies on a bound."""
        return int(np.count_nonzero(self.below | self.above))


def limits(statistic: Statistic) -> tuple[float, float] | None:
    """The numbers between which a statistic lies by itself; None where there are none."""
    verb = statistic["verb"]
    if "bounds" in statistic and ("q" in statistic or verb == "mean"):
        lower, upper = statistic["bounds"]
        return float(lower), float(upper)
    if verb in SHARES:
        return 0.0, 1.0
    if verb in SPREADS:
        return 0.0, math.inf
    if verb == "ratio" and "denominator_bounds" in statistic and "bounds" in statistic:
        return (0.0, math.inf) if min(statistic["bounds"][0], statistic["denominator_bounds"][0]) >= 0.0 else None
    return None


def columns_of(name: str) -> tuple[str, ...]:
    """The columns that a statistic of this name may have."""
    return tuple(name + end for end in ("", NOISY, ERROR, LOW, HIGH))


def of_frame(frame: Any, facts: Mapping[str, Any], name: str) -> Shown:
    """The intervals of one statistic of a released frame, in the order of its rows."""
    columns = {column: build.numbers(frame, column) for column in columns_of(name) if column in facts["columns"]}
    return intervals(facts["measures"][name], name, columns)


def intervals(statistic: Statistic, name: str, columns: Mapping[str, Floats]) -> Shown:
    """The intervals that are shown, of the released columns of one statistic by name."""
    errors = columns[name + ERROR]
    middle = columns.get(name + NOISY, columns[name]) if foreign.is_around_noisy(statistic) else columns[name]
    low, high = columns.get(name + LOW, middle - errors), columns.get(name + HIGH, middle + errors)
    none, within = np.zeros(errors.shape, dtype=np.bool_), limits(statistic)
    tells = statistic["verb"] in TELLING
    if within is None:
        return Shown(low, high, False, none, none, ~np.isfinite(errors) if tells else none)
    cut_low, cut_high = within_limits(low, high, errors, within)
    is_quantile = "q" in statistic
    return Shown(
        cut_low,
        cut_high,
        not (np.array_equal(cut_low, low, equal_nan=True) and np.array_equal(cut_high, high, equal_nan=True)),
        cut_low <= within[0] if is_quantile else none,
        cut_high >= within[1] if is_quantile else none,
        _is_as_wide(errors, within) if tells else none,
    )


def _is_as_wide(errors: Floats, within: tuple[float, float]) -> Booleans:
    """Tell of which rows the uncut interval is at least as wide as what is possible."""
    return np.asarray(2.0 * errors >= (within[1] - within[0]) * (1.0 - SLACK))


def forms(shown: Shown, end: str) -> list[str]:
    """The form in which each value, or each of the ends named so, is written: it is put in place of the braces."""
    marks = {LOW: (shown.below, "<= {}"), HIGH: (shown.above, ">= {}")}
    marked, form = marks.get(end, (shown.noisy, f"{{}} ({TOO_NOISY})"))
    return [str(each) for each in np.where(marked, form, "{}")]


def notes_of(intervals_by_name: Mapping[str, Shown], measures: Mapping[str, Statistic]) -> list[str]:
    """Notes on numbers that are too noisy, and on quantiles that may lie beyond their bounds."""
    said = []
    for name, shown in intervals_by_name.items():
        if shown.noisy.any():
            said.append(f"{TOO_NOISY}, the interval is as wide as what is possible: {name}{_in_rows(shown.noisy)}")
        if shown.on_bounds:
            lower, upper = measures[name]["bounds"]
            where = f"<= {number(lower)} or >= {number(upper)}"
            said.append(f"{name}: an end on a bound of its values says that it may lie beyond it ({where})")
    return said


def sentences(intervals_by_name: Mapping[str, Shown], measures: Mapping[str, Statistic]) -> list[str]:
    """The same for a statement: sentences, with the interval where there is one row."""
    said = []
    for name, shown in intervals_by_name.items():
        if shown.noisy.any():
            said.append(f"The noise is too large to tell {name}{_in_rows(shown.noisy)}.")
        elif shown.low.size == 1 and (shown.is_cut or shown.on_bounds or "q" in measures[name]):
            ends = (form.format(number(float(end[0]))) for form, end in _ends(shown))
            said.append(f"With 95% the interval from {' to '.join(ends)} holds the exact {name}.")
        if shown.on_bounds:
            rows = "" if shown.low.size == 1 else f" of {shown.on_bounds:,} of {shown.low.size:,} rows"
            said.append(f"An end of the interval{rows} of {name} lies on a bound of its values, or beyond it.")
    return said


def _ends(shown: Shown) -> Sequence[tuple[str, Floats]]:
    return (forms(shown, LOW)[0], shown.low), (forms(shown, HIGH)[0], shown.high)


def _in_rows(rows: Booleans) -> str:
    return "" if rows.size == 1 else f" in {np.count_nonzero(rows):,} of {rows.size:,} rows"
