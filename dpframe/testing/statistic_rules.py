"""The rules of a statistic, tested on made-up tables with the columns that it reads."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpframe.engines.engine import Reading
from dpframe.engines.totals import WAY_CHANGES, totals
from dpframe.errors import how_many
from dpframe.frames import build
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.query import Query
from dpframe.queries.statistics import CONFIDENCE, Measured, RowFunction, Statistic, Total
from dpframe.queries.statistics.statistic import InWords, choosing, default_name
from dpframe.queries.vectors import Matches, row_functions, vector_of
from dpframe.release.path import check_verb
from dpframe.testing.broken import may_not_fail, require, telling_nothing

GROUPS = ("A", "B", "C")
SIZES = (1, 30, 2_000)  # values in a group
DRAWS = 4_000
MOST_TIMES = 2.0  # an error may be this many times the expected error, which depends on assumed values
ALARM = 1e-6  # the probability that a check refuses a statistic whose intervals cover
SEED = 20_240_229  # for made-up tables only; noise comes from the system
UNITS = (
    PrivacyUnit(),
    PrivacyUnit(neighbors="replace"),
    PrivacyUnit(column="unit", max_rows=2, max_groups=2),
    PrivacyUnit(column="unit", max_rows=1, max_groups=3, neighbors="replace"),
)
TABLES = 12
PIECE = 997  # rows of one call of a function outside the engine
SMALL = Reading(memory=2**24)  # a large table then has many batches

Exact = Mapping[Total, NDArray[np.int64]]
Table = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Silence:
    """The law of no noise, for the true answer from exact totals."""

    variance: float = 0.0
    grid: float = 1.0

    def interval(self, confidence: float) -> float:
        """Return 0, since there is no noise."""
        return 0.0


@may_not_fail("a statistic")
def check_statistic(statistic: Statistic) -> None:
    """Check a statistic for ``agg`` against the rules of the library.

    Parameters
    ----------
    statistic : Statistic
        Your own, or one of dpframe's.

    Raises
    ------
    ContractBroken
        If it cannot be written down. If its Totals change from call to call, or one unit changes them by more than
        their sensitivity. If its answer has another shape than the cells, is not finite, changes its inputs, or is not
        its noisy Total although it is `denoisable`, or if its 95% intervals cover the truth of groups of 1, 30 or 2,000
        values less often. If `expected_error` is less than half of the error of a release of 2,000 values (not with
        `error_words`, where the two have different units). If it promises subtotals that are not the sums of their
        parts. If a `RowFunction` prints or logs, gives a row other integers when other rows are next to it, or an
        engine adds up other integers than it gives.

    Notes
    -----
    The truth is the statistic's own answer for exact totals. The author's own tests must show whether that is the
    number that people mean by its name. Coverage is tested with Laplace and Gaussian noise; a statistic whose intervals
    cover is refused with a probability of at most 1e-6.

    A `RowFunction` is compared with what the engine adds up by it on tables of up to 262,145 rows: just above each
    number of rows at which the engine uses another method. That takes some seconds. `agg` runs no check.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from dpframe.testing import check_statistic
    >>> check_statistic(dpf.mean("age", bounds=(0, 120)))
    """
    require(
        isinstance(statistic, Statistic), "kind", "a statistic must be made from dpframe.queries.statistics.Statistic"
    )
    _check_words(statistic)
    _check_totals(statistic)
    _check_row_functions(statistic)
    _check_sensitivity(statistic)
    if choosing(statistic) is not None:
        return
    for size in SIZES:
        _check_answers(statistic, max(size, getattr(statistic, "fewest", 1)))
    if statistic.adds_up:
        _check_sums(statistic)
    check_verb("it", statistic)


def _check_words(statistic: Statistic) -> None:
    require(isinstance(default_name(statistic), str), "words", "default_name must be a string")
    require(isinstance(str(statistic), str), "words", "str() must work")
    facts = statistic.facts()
    if facts is None:
        require(choosing(statistic) is not None, "record", "facts() must be a dict, as long as a number is released")
        return
    require({"verb", "column"} <= set(facts), "record", "facts() must tell the verb and the column")
    require(json.loads(json.dumps(facts)) == facts, "record", "facts() must be plain JSON")


def _check_totals(statistic: Statistic) -> None:
    listed = statistic.totals()
    require(isinstance(listed, tuple) and len(listed) > 0, "totals", "totals() must be a tuple of at least one Total")
    require(listed == statistic.totals(), "totals", "totals() must be the same each time")
    require(len(set(listed)) == len(listed), "totals", "totals() must name each Total once")
    for total in listed:
        require(
            pickle.loads(pickle.dumps(total)) == total, "totals", f"{total.describe()} must come back from a pickle"
        )
        require(
            total.by is None, "totals", f"{total.describe()} must be over the cells: subtotals are the library's own"
        )
    if statistic.denoisable or statistic.adds_up:
        require(len(listed) == 1, "totals", "what is denoised, or has subtotals, must be read off one Total")


def _check_row_functions(statistic: Statistic) -> None:
    """Check that the engine, by each of its methods, adds up what each function gives for a row alone."""
    functions = {total: entries for total in statistic.totals() if (entries := row_functions(total))}
    if not functions:
        return
    random = np.random.default_rng(SEED)
    for size in (SIZES[1], *(rows + 1 for rows in WAY_CHANGES)):
        for whole in (False, True):
            rows = _table(statistic, random, size, whole=whole) | {"unit": np.arange(size)}
            frame = _frame(rows)
            frames = (frame, frame.lazy()) if size > WAY_CHANGES[-1] else (frame,)
            values = {entry: _row_by_row(entry, rows) for entries in functions.values() for entry in entries}
            for keys, unit, frame in itertools.product((GROUPS, ()), UNITS[::2], frames):
                query = _query(statistic) if keys else Query("agg", Keys(()), (("x", statistic),))
                exact = totals(frame, query, unit, 2.0, SMALL)
                cells = [rows["group"] == key for key in keys] or [np.full(size, True)]
                for total, entries in functions.items():
                    expected = [values[entry][cell].sum() for cell in cells for entry in entries]
                    words = f"the engine must add up what its function gives, and does not in {size:,} rows"
                    require(exact[total].ravel().tolist() == expected, "rows", f"of {total.describe()}, {words}")


def _row_by_row(row: RowFunction, rows: Table) -> NDArray[np.int64]:
    """Return the integers of rows by a function, clipped to its reach, or its `missing` where a value is missing."""
    missing = np.logical_or.reduce([np.isnan(rows[column].astype(np.float64)) for column, _ in row.columns])
    steps = [_steps(rows[column].astype(np.float64), bounds) for column, bounds in row.columns]

    def given(places: NDArray[np.int64]) -> NDArray[np.int64]:
        with telling_nothing("a RowFunction"):
            found = row.given(*(column[places] for column in steps))
        of_rows = f"of {how_many(len(places), 'row')} it is {found.dtype}{found.shape}"
        words = f"{row.words} must be an integer for each row, and {of_rows}"
        require(found.dtype.kind in "biu" and found.shape == places.shape, "rows", words)
        return found.astype(np.int64)

    every = np.arange(missing.size)
    pieces = np.concatenate([given(every[start : start + PIECE]) for start in range(0, every.size, PIECE)])
    for order in (every, every[::-1], every[:1], *(np.array([place]) for place in every[:PIECE:33])):
        alike = np.array_equal(given(order), pieces[order])
        require(alike, "rows", f"{row.words} must give a row the same, whatever the other rows are, and each time")
    return np.where(missing, row.missing or 0, np.clip(pieces, *row.reach))


def _steps(values: NDArray[np.float64], bounds: tuple[float, float]) -> NDArray[np.int64]:
    """Return values in steps of the grid of their bounds, and 0 for missing values."""
    lower, upper = grid_steps(bounds)
    steps = np.floor(np.clip(values * (1.0 / step_length(bounds)), lower, upper) + 0.5)
    return np.where(np.isnan(values), 0, steps).astype(np.int64)


def _check_sensitivity(statistic: Statistic) -> None:
    """Check that no unit changes exact totals of made-up tables by more than it is charged for."""
    random = np.random.default_rng(SEED)
    query = _query(statistic)
    for unit, _ in itertools.product(UNITS, range(TABLES)):
        rows = _table(statistic, random, int(random.integers(0, 40)))
        mine, theirs = (_owned(_table(statistic, random, _rows(unit, random))) for _ in range(2))
        without = rows if unit.neighbors == "add-remove" else _joined(rows, theirs)
        for p in (1.0, 2.0):
            before, after = (totals(_frame(table), query, unit, p) for table in (without, _joined(rows, mine)))
            for total in statistic.totals():
                moved = _norm(after[total].ravel() - before[total].ravel(), p)
                most = sensitivity_of(total, unit, query.keys.cells).steps(p)
                words = f"one unit moves {total.describe()} by {moved:g} steps, and is charged for {most:g}"
                require(moved <= most * (1 + 1e-12), "sensitivity", words)


def _rows(unit: PrivacyUnit, random: np.random.Generator) -> int:
    return 1 if unit.column is None else int(random.integers(1, 9))


def _owned(table: Table) -> Table:
    """Return the table with all rows assigned to one unit."""
    return table | {"unit": np.full(table["unit"].size, -1)}


def _joined(first: Table, second: Table) -> Table:
    return {name: np.concatenate([values, second[name]]) for name, values in first.items()}


def _frame(table: Table) -> Any:
    return build.frame_of(table, "polars")


def _norm(steps: NDArray[np.int64], p: float) -> float:
    exact = [abs(int(step)) for step in steps]
    return float(sum(exact)) if p == 1.0 else math.sqrt(sum(step * step for step in exact))


def _query(statistic: Statistic) -> Query:
    return Query("agg", Keys(key_axes(("group",), list(GROUPS), None)), (("x", statistic),))


def _columns(statistic: Statistic) -> dict[str, tuple[float, float]]:
    """Return the columns that a statistic reads, with their widest bounds, or (0, 1) if only presence counts."""
    bounds: dict[str, tuple[float, float]] = {}
    for total in statistic.totals():
        for column, (low, high) in total.values:
            before = bounds.get(column, (low, high))
            bounds[column] = (min(low, before[0]), max(high, before[1]))
    present = dict.fromkeys((column for total in statistic.totals() for column in total.columns), (0.0, 1.0))
    return present | bounds


def _table(statistic: Statistic, random: np.random.Generator, rows: int, *, whole: bool = False) -> Table:
    """Return values inside, at and beyond the bounds, some missing, in declared groups and an undeclared one.

    With `whole`, the values are integers, and none is missing.
    """
    table: Table = {
        "group": random.choice(np.array([*GROUPS, "undeclared"]), rows),
        "unit": random.integers(0, 6, rows),
    }
    for column, (low, high) in _columns(statistic).items():
        odd = np.array([low, high, math.nextafter(low, -math.inf), low - 1, high + 1, -math.inf, math.inf, math.nan])
        inside = random.uniform(low, high, rows)
        table[column] = np.where(random.random(rows) < 0.5, random.choice(odd, rows), inside)
        if whole:
            table[column] = random.integers(math.floor(low) - 1, math.ceil(high) + 2, rows)
    return table | _compared(statistic, random, rows)


def _compared(statistic: Statistic, random: np.random.Generator, rows: int) -> Table:
    """Return the columns that a statistic compares with a declared text, with texts that do and do not match."""
    columns: Table = {}
    for total in statistic.totals():
        matches = vector_of(total, Matches)
        if matches is not None and isinstance(value := matches.axis.values(0)[0], str):
            columns[matches.column] = random.choice(np.array([value, value + "!"]), rows)
    return columns


def _check_answers(statistic: Statistic, size: int) -> None:
    """Check shapes, finite numbers, and how often intervals cover the truth of one group of `size` values."""
    random = np.random.default_rng(SEED + size)
    rows = _inside(statistic, random, size)
    query = Query("agg", Keys(()), (("x", statistic),))
    exact = totals(_frame(rows), query, PrivacyUnit(), 2.0)
    truth = _answer(statistic, exact, {total: Silence() for total in exact}, 1)[0][0]
    for laplace in (True, False):
        laws = {total: _law(total, laplace) for total in exact}
        repeated = {
            total: np.tile(steps, DRAWS) for total, steps in exact.items()
        }  # totals of one cell, with one number or several
        noisy = {total: laws[total].add_noise(steps) for total, steps in repeated.items()}
        values, errors = _answer(statistic, noisy, laws, DRAWS)
        missed = int(np.count_nonzero(np.abs(values - truth) > errors * (1 + 1e-9)))
        likely = special.bdtrc(np.arange(DRAWS), DRAWS, 1 - CONFIDENCE) > ALARM / (2 * len(SIZES))
        most = int(np.count_nonzero(likely))  # more misses have a chance below the alarm
        share = 1 - missed / DRAWS
        require(
            missed <= most,
            "coverage",
            f"95% intervals of {statistic} must cover the truth, and of {size} values with "
            f"{'Laplace' if laplace else 'Gaussian'} noise do in {share:.1%}",
        )
        expected = statistic.expected_error([laws[total] for total in statistic.totals()], float(size))
        finite = math.isfinite(expected) or (_unbounded(statistic) and expected == math.inf)
        require(finite and expected >= 0, "expected error", "expected_error must be finite and at least 0")
        usual = float(np.median(errors))
        require(
            size < SIZES[-1] or isinstance(statistic, InWords) or expected >= usual / MOST_TIMES,
            "expected error",
            f"expected_error must be about the error of a release: of {size:,} values it says {expected:g}, "
            f"and the median error is {usual:g}",
        )


def _unbounded(statistic: Statistic) -> bool:
    """Return whether the error of a statistic may be infinite."""
    return bool(getattr(statistic, "unbounded", False))


def _law(total: Total, laplace: bool) -> Mechanism:
    """Return the noise of a call at epsilon 1, for one row that changes one cell."""
    reach = sensitivity_of(total, PrivacyUnit(), 1)
    if laplace:
        return Laplace.calibrate(sensitivity=reach.norm(1), epsilon=1.0, grid=reach.grid)
    return Gaussian.calibrate(sensitivity=reach.norm(2), epsilon=1.0, delta=1e-6, grid=reach.grid)


def _inside(statistic: Statistic, random: np.random.Generator, size: int) -> Table:
    """Return values of one group, all within their bounds."""
    columns = {column: random.uniform(*bounds, size) for column, bounds in _columns(statistic).items()}
    compared = _compared(statistic, random, size)
    return {"group": np.full(size, GROUPS[0]), **columns, **compared}


def _answer(statistic: Statistic, steps: Exact, laws: Mapping[Total, Any], cells: int) -> tuple[Any, Any]:
    measured = {
        total: Measured(noisy.astype(np.float64) * total.norm(weighted=False).grid, laws[total])
        for total, noisy in steps.items()
    }
    before = {total: measurement.values.copy() for total, measurement in measured.items()}
    values, errors = statistic.answer(measured)
    again, _ = statistic.answer(measured)
    kept = all(np.array_equal(measurement.values, before[total]) for total, measurement in measured.items())
    require(kept, "arithmetic", "answer() must leave the noisy totals as they are")
    same = np.array_equal(values, again, equal_nan=True)
    require(same, "arithmetic", "answer() must give the same each time: noise is drawn before")
    if statistic.denoisable:
        as_it_stands = np.array_equal(values, measured[statistic.totals()[0]].values)
        require(as_it_stands, "denoisable", "answer() must give the noisy Total as it stands, or denoisable be False")
    for name, numbers in (("values", values), ("errors", errors)):
        require(np.shape(numbers) == (cells,), "shape", f"answer() must give {name} of the shape of the cells")
        checked = (
            numbers if name == "values" or not _unbounded(statistic) else np.nan_to_num(numbers, nan=np.nan, posinf=0.0)
        )
        require(bool(np.isfinite(checked).all()), "finite", f"answer() must give finite {name}, whatever the noise is")
    require(bool((errors >= 0).all()), "errors", "answer() must give errors of at least 0")
    return values, errors


def _check_sums(statistic: Statistic) -> None:
    """Check that the value of all rows is the sum of the values of their parts, on exact totals."""
    random = np.random.default_rng(SEED)
    parts = [_inside(statistic, random, size) for size in (5, 17)]
    query = Query("agg", Keys(()), (("x", statistic),))

    def value(rows: Table) -> float:
        exact = totals(_frame(rows), query, PrivacyUnit(), 2.0)
        return float(_answer(statistic, exact, {total: Silence() for total in exact}, 1)[0][0])

    whole, each = value(_joined(*parts)), list(map(value, parts))
    words = f"what adds up must: {whole:g} of all rows, and {sum(each):g} of their parts"
    require(math.isclose(whole, sum(each), rel_tol=1e-9, abs_tol=1e-9), "sums", words)
