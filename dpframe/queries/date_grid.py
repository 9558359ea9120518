"""Grids of days: every day, week, month, quarter or year, counted in whole numbers of the proleptic calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.clipping import Placed, refuse_misplaced

EVERY = {"1d": 1, "1w": 7, "1mo": 1, "1q": 3, "1y": 12}  # days of the first two, months of the others
DAYS = ("1d", "1w")
WEEK = "1w"
MONDAY = "monday"
BEFORE_MONDAY = {MONDAY: 0, "sunday": 1}  # days
WORDS = {
    "1d": "days",
    "1w": "weeks from Monday",
    "1mo": "calendar months",
    "1q": "quarters of the calendar",
    "1y": "calendar years",
}
DATES_EXAMPLE = 'Write for instance keys=dpf.dates("2025-01-06", "2025-12-29", every="1w").'
BEFORE_1970 = 719_163  # the ordinal of 1970-01-01; that of the first day, a Monday, is 1
MIDNIGHT = clock()

Days = NDArray[np.int64]  # since 1970


@dataclass(frozen=True)
class Dates(Placed):
    """Declared dates on a grid: keys of a column of dates or datetimes, made by ``dpf.dates``."""

    where: ClassVar[str] = (
        'dpf.dates must be the keys of a column, as in group_by("date", keys=dpf.dates("2025-01-06", "2025-12-29", '
        'every="1w")). For a histogram write bins="1w", range=("2025-01-06", "2026-01-05").'
    )

    first: date
    last: date
    every: str
    starts: str = MONDAY  # of weeks: the day on which each begins

    def __len__(self) -> int:
        return number_of(self.last, self.every, self.starts) - number_of(self.first, self.every, self.starts) + 1

    def days(self) -> Days:
        """The first day of each step, and of the one that follows the last."""
        number = number_of(self.first, self.every, self.starts)
        return starts_of(np.arange(number, number + len(self) + 1), self.every, self.starts)

    def __repr__(self) -> str:
        starts = "" if self.starts == MONDAY else f', starts="{self.starts}"'
        return f'dpf.dates("{self.first}", "{self.last}", every="{self.every}"{starts})'


@trimmed
def dates(first: date | str, last: date | str, *, every: str | None = None, starts: str | None = None) -> Dates:
    """Make date keys: days, weeks, months, quarters or years.

    Each date or datetime of the column is taken to the day on which its step begins: the Monday of its week, the first
    of its month. Rows before `first`, or after the step that holds `last`, are in no group.

    Parameters
    ----------
    first : date or str
        The first key. It must be the first day of a step.
    last : date or str
        A day of the last step: that step is a key as well.
    every : {"1d", "1w", "1mo", "1q", "1y"}
        The length of a step: days, weeks, calendar months, quarters or years.
    starts : {"monday", "sunday"}, optional
        Of weeks alone: the day on which each begins; Monday where it is left out.

    Returns
    -------
    Dates
        For ``keys=`` of `group_by` (or an entry of its dict) and of `contributions`; nowhere else.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If `first` is not on the grid, `last` is before it, `every` is no step, or `starts` no day of a week.

    Notes
    -----
    A column of datetimes with a time zone is refused: its days begin at another instant in each zone. Convert it to
    local time first.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> from datetime import date
    >>> visits = pl.DataFrame({"day": [date(2025, 1, 7), date(2025, 1, 12), date(2025, 1, 13)]})
    >>> weeks = dpf.dates("2025-01-06", "2025-01-20", every="1w")
    >>> visits.dp.group_by("day", keys=weeks).count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1))["day"].to_list()
    [datetime.date(2025, 1, 6), datetime.date(2025, 1, 13), datetime.date(2025, 1, 20)]
    """
    if every is None:
        raise MissingArgument(f'every must be given: how long a step is, such as every="1w". {DATES_EXAMPLE}')
    step = checked_every(every)
    begins = _checked_starts(starts, step)
    start, end = day_of("first", first), day_of("last", last)
    check_on_grid("first", start, step, begins)
    if end < start:
        raise InvalidArgument(f"last must not be before first, and {end} is before {start}. Exchange them.")
    return Dates(start, end, step, begins)


def checked_every(every: object, argument: str = "every") -> str:
    """One of the steps."""
    if not isinstance(every, str) or every not in EVERY:
        steps = ", ".join(f'"{step}" ({words})' for step, words in WORDS.items())
        raise InvalidArgument(f"{argument} must be one of {steps}, not {shown(every)}. {DATES_EXAMPLE}")
    return every


def _checked_starts(starts: object, every: str) -> str:
    """The day on which weeks begin."""
    if starts is None:
        return MONDAY
    if every != WEEK:
        raise InvalidArgument(f"starts must be left out with every={every!r}: it is of weeks. Leave it out.")
    if not isinstance(starts, str) or starts not in BEFORE_MONDAY:
        raise InvalidArgument(f'starts must be "monday" or "sunday", not {shown(starts)}. Leave it out for Monday.')
    return starts


def day_of(argument: str, value: Any, example: str = DATES_EXAMPLE) -> date:
    """A day of the calendar, from what people write: a date, its ISO text, or a midnight."""
    if value is None:
        raise MissingArgument(f"{argument} must be given: dates are never taken from the data. {example}")
    refuse_misplaced(value)
    day = _plain_day(value)
    if day is None:
        raise InvalidArgument(
            f'{argument} must be a day without a time of day or a time zone, such as "2025-01-06" or '
            f"date(2025, 1, 6), not {shown(value)}. {example}"
        )
    return day


def python_time(value: np.datetime64 | np.timedelta64) -> Any:
    """A NumPy date or duration by Python's, in whole microseconds; None beyond what NumPy can write in them."""
    try:
        return value.astype(f"{'datetime64' if value.dtype.kind == 'M' else 'timedelta64'}[us]").item()
    except OverflowError:  # since NumPy 2.5; before, the number wrapped around, and is another's
        return None


def _plain_day(value: Any) -> date | None:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, np.datetime64):
        plain = python_time(value)
        value = plain if isinstance(plain, datetime) and value == np.datetime64(plain) else None
    if isinstance(value, datetime):
        whole = value == value and value.tzinfo is None and value.time() == MIDNIGHT
        return date(value.year, value.month, value.day) if whole and not getattr(value, "nanosecond", 0) else None
    return value if isinstance(value, date) else None


def check_on_grid(argument: str, day: date, every: str, starts: str = MONDAY) -> None:
    """Refuse a day on which no step begins; the days next to it on which one does are told."""
    number = number_of(day, every, starts)
    here, following = starts_of(np.array([number, number + 1]), every, starts).astype("datetime64[D]")
    if here != np.datetime64(day):
        words = WORDS[every] if starts == MONDAY else "weeks from Sunday"
        raise InvalidArgument(
            f"{argument} must be the first day of a step of {every!r} ({words}), unlike {day}, a {day:%A}. "
            f"The nearest are {here} and {following}: write one of them."
        )


def number_of(day: date, every: str, starts: str = MONDAY) -> int:
    """The number of the step that a day is in."""
    if every in DAYS:
        return (day.toordinal() - 1 + BEFORE_MONDAY[starts]) // EVERY[every]
    return (day.year * 12 + day.month - 1) // EVERY[every]


def starts_of(numbers: Days, every: str, starts: str = MONDAY) -> Days:
    """The days since 1970 on which steps of these numbers begin."""
    if every in DAYS:
        return np.asarray(numbers * EVERY[every] + 1 - BEFORE_MONDAY[starts] - BEFORE_1970)
    months = (numbers * EVERY[every] - 1970 * 12).astype("datetime64[M]")
    return np.asarray(months.astype("datetime64[D]").astype(np.int64))
