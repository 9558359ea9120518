"""Grids of days and of hours, numbered by integers in the proleptic calendar.

A grid follows the wall clock. A column with a time zone has its own hours and days: `dpframe.engines.columns.zones`
finds them once the schema gives the zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import Placed, refuse_misplaced

EVERY = {"1d": 1, "1w": 7, "1mo": 1, "1q": 3, "1y": 12}  # days for the first two, months for the others
DAYS = ("1d", "1w")
MINUTES = {"15m": 15, "30m": 30, "1h": 60, "3h": 180, "6h": 360, "12h": 720}  # of the wall clock, counted from midnight
WEEK = "1w"
MONDAY = "monday"
BEFORE_MONDAY = {MONDAY: 0, "sunday": 1}  # the days by which weeks begin before Monday
WORDS = {
    "1d": "days",
    "1w": "weeks from Monday",
    "1mo": "calendar months",
    "1q": "quarters of the calendar",
    "1y": "calendar years",
    "15m": "quarters of an hour",
    "30m": "half hours",
    "1h": "hours",
    "3h": "3 hours",
    "6h": "6 hours",
    "12h": "half days",
}
STEPS = {  # the noun for several steps of a grid
    **WORDS,
    "1w": "weeks",
    "1mo": "months",
    "1q": "quarters",
    "1y": "years",
    "3h": "steps of 3 hours",
    "6h": "steps of 6 hours",
}
TIMES_EXAMPLE = 'Write for instance keys=dpf.dates("2025-01-06T00:00", "2025-01-06T23:00", every="1h").'
DATES_EXAMPLE = 'Write for instance keys=dpf.dates("2025-01-06", "2025-12-29", every="1w").'
BEFORE_1970 = 719_163  # the ordinal of 1970-01-01; ordinal 1, the first day, is a Monday
EPOCH = datetime(1970, 1, 1)
MIDNIGHT = clock()
DAY, MINUTE = 86_400 * 10**9, 60 * 10**9  # nanoseconds
IN_UTC = ("UTC", "Etc/UTC", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal", "UCT", "Etc/UCT")  # names of one zone

Days = NDArray[np.int64]  # days since 1970; minutes for steps of hours


@dataclass(frozen=True)
class Dates(Placed):
    """Declared dates or hours on a grid: keys of a column of dates or datetimes, made by ``dpf.dates``."""

    where: ClassVar[str] = (
        'dpf.dates must be the keys of a column, as in group_by("date", keys=dpf.dates("2025-01-06", "2025-12-29", '
        'every="1w")). For a histogram write bins="1w", range=("2025-01-06", "2026-01-05").'
    )

    first: date  # for steps of hours a datetime of the wall clock
    last: date
    every: str
    starts: str = MONDAY  # the day on which weeks begin
    zone: str | None = None  # the time zone of the ends, if any

    def __len__(self) -> int:
        """Return the number of steps by the calendar; in a time zone, there may be an hour more or less."""
        return number_of(self.last, self.every, self.starts) - number_of(self.first, self.every, self.starts) + 1

    def days(self) -> Days:
        """Return the first day of each step and of the step after the last, or the first minute for steps of hours."""
        number = number_of(self.first, self.every, self.starts)
        return starts_of(np.arange(number, number + len(self) + 1), self.every, self.starts)

    def edges(self) -> tuple[int, ...]:
        """Return the same starts in nanoseconds of the wall clock."""
        size = MINUTE if self.every in MINUTES else DAY
        return tuple(start * size for start in self.days().tolist())  # Python's integers do not overflow

    def __repr__(self) -> str:
        starts = "" if self.starts == MONDAY else f', starts="{self.starts}"'
        if self.zone is not None:
            zoned = ", ".join(f'pd.Timestamp("{end}", tz="{self.zone}")' for end in (self.first, self.last))
            return f'dpf.dates({zoned}, every="{self.every}"{starts})'
        first, last = (_shown_time(end) for end in (self.first, self.last))
        return f'dpf.dates("{first}", "{last}", every="{self.every}"{starts})'


@trimmed
def dates(first: date | str, last: date | str, *, every: str | None = None, starts: str | None = None) -> Dates:
    """Make keys on a grid of time: hours, days, weeks, months, quarters or years.

    Each date or datetime of the column belongs to the step that contains it: its full hour, its week, its month. Rows
    before `first`, or after the step that contains `last`, are in no group.

    Parameters
    ----------
    first : date, datetime, Period or str
        The first key. It must be the beginning of a step.
    last : date, datetime, Period or str
        Any time in the last step, which is the last key.
    every : {"15m", "30m", "1h", "3h", "6h", "12h", "1d", "1w", "1mo", "1q", "1y"}
        The length of a step: quarters of an hour, half hours, hours, days, weeks, calendar months, quarters or years.
        Hours count from midnight.
    starts : {"monday", "sunday"}, optional
        Only for weeks: the day on which each begins, by default Monday.

    Returns
    -------
    Dates
        For ``keys=`` of `group_by`, `contributions`, `marginals` and `Stream` (or an entry of a dict), and for
        ``periods=`` of `Stream`. Not for ``categories=``.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If `first` is not the beginning of a step or `last` is before it, or if `every` or `starts` is not one of these.

    Notes
    -----
    Steps of a column with a time zone follow the clocks of that zone. The day on which clocks go forward has 23 hours,
    and the day on which they go back has 25. Labels of days and longer steps are dates, and those of hours datetimes in
    the column's zone. If `first` and `last` have a time zone, the column must have the same one. A Period counts where
    it begins.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> from datetime import date, datetime
    >>> visits = pl.DataFrame({"day": [date(2025, 1, 7), date(2025, 1, 12), date(2025, 1, 13)]})
    >>> weeks = dpf.dates("2025-01-06", "2025-01-20", every="1w")
    >>> visits.dp.group_by("day", keys=weeks).count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1))["day"].to_list()
    [datetime.date(2025, 1, 6), datetime.date(2025, 1, 13), datetime.date(2025, 1, 20)]
    >>> calls = pl.Series("at", [datetime(2025, 3, 30, 12)]).dt.replace_time_zone("Europe/Berlin").to_frame()
    >>> hours = dpf.dates("2025-03-30T00:00", "2025-03-30T23:00", every="1h")
    >>> len(calls.dp.group_by("at", keys=hours).count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1)))
    23
    """
    if every is None:
        raise MissingArgument(f'every must be given: how long a step is, such as every="1w". {DATES_EXAMPLE}')
    step = checked_every(every)
    begins = _checked_starts(starts, step)
    (start, zone), (end, its_zone) = (_end_of(name, value, step) for name, value in (("first", first), ("last", last)))
    if zone != its_zone:
        raise InvalidArgument(
            f"first and last must have one time zone, or none, not {zone or 'none'} and {its_zone or 'none'}. "
            "Leave both out: the column has its own."
        )
    check_on_grid("first", start, step, begins)
    if end < start:
        raise InvalidArgument(f"last must not be before first, and {end} is before {start}. Exchange them.")
    return Dates(start, end, step, begins, zone)


def checked_every(every: object) -> str:
    """Return `every` if it names a step."""
    if not isinstance(every, str) or every not in WORDS:
        steps = ", ".join(f'"{step}" ({words})' for step, words in WORDS.items())
        raise InvalidArgument(f"every must be one of {steps}, not {shown(every)}. {DATES_EXAMPLE}")
    return every


def _checked_starts(starts: object, every: str) -> str:
    """Return the day on which weeks begin."""
    if starts is None:
        return MONDAY
    if every != WEEK:
        raise InvalidArgument(f"starts must be left out with every={every!r}: it is of weeks. Leave it out.")
    if not isinstance(starts, str) or starts not in BEFORE_MONDAY:
        raise InvalidArgument(f'starts must be "monday" or "sunday", not {shown(starts)}. Leave it out for Monday.')
    return starts


def day_of(argument: str, value: Any, example: str = DATES_EXAMPLE) -> date:
    """Return a day of the calendar, given as a date, its ISO text, or a midnight."""
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


def time_of(argument: str, value: Any, every: str, example: str = DATES_EXAMPLE) -> date:
    """Return a day or, for steps of hours, a time on the wall clock. The text of a week names only a step of a week."""
    if every != WEEK and isinstance(value, str) and "W" in value:
        raise InvalidArgument(f"{argument} must be the first day of its step, not the week {shown(value)}. {example}")
    return day_of(argument, value, example) if every in EVERY else _end_of(argument, value, every)[0]


def _end_of(argument: str, value: Any, every: str) -> tuple[date, str | None]:
    """Return a day or a time on the wall clock, and its time zone if it has one."""
    value = _of_period(value)
    zone = zone_name(value.tzinfo) if isinstance(value, datetime) and value == value and value.tzinfo else None
    wall = value if zone is None else value.replace(tzinfo=None)
    if every in EVERY:
        return day_of(argument, wall), zone
    if value is None:
        raise MissingArgument(f"{argument} must be given: times are never taken from the data. {TIMES_EXAMPLE}")
    refuse_misplaced(value)
    moment = _plain_time(wall)
    if moment is None:
        raise InvalidArgument(
            f'{argument} must be a time of the wall clock in whole microseconds, such as "2025-01-06T09:00", not '
            f"{shown(value)}. {TIMES_EXAMPLE}"
        )
    return moment, zone


def zone_name(zone: Any) -> str:
    """Return the name of a time zone of any library: "UTC" for all names of UTC, and the hours of a fixed offset.

    The own name of a fixed offset is ignored: it may be that of a zone whose clock changes, such as "CET".
    """
    if isinstance(zone, timezone):
        zone = timezone(zone.utcoffset(None))
    name = str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)
    return "UTC" if name in IN_UTC else name.removeprefix("UTC") or name


def _of_period(value: Any) -> Any:
    """Return the beginning of a pandas Period, and any other value unchanged."""
    return value.start_time if is_period(value) else value


def is_period(value: Any) -> bool:
    """Return whether this is a pandas Period; pandas is never imported here."""
    return type(value).__name__ == "Period" and type(value).__module__.partition(".")[0] == "pandas"


def python_time(value: np.datetime64 | np.timedelta64) -> Any:
    """Return a NumPy date or duration as Python's, in whole microseconds; None if these overflow."""
    try:
        return value.astype(f"{'datetime64' if value.dtype.kind == 'M' else 'timedelta64'}[us]").item()
    except OverflowError:  # since NumPy 2.5; before, the number wraps around to another value
        return None


def _plain_time(value: Any) -> datetime | None:
    """Return a Python datetime without a zone; None if the value is not exactly one."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, np.datetime64):
        plain = python_time(value)
        value = plain if isinstance(plain, date) and value == np.datetime64(plain) else None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    whole = isinstance(value, datetime) and value == value and value.tzinfo is None
    if not whole or getattr(value, "nanosecond", 0) != 0:
        return None
    return datetime.combine(date(value.year, value.month, value.day), value.time().replace(fold=0))


def _plain_day(value: Any) -> date | None:
    value = _of_period(value)
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
    """Refuse a time at which no step begins, and name the two nearest starts of steps."""
    number = number_of(day, every, starts)
    both = starts_of(np.array([number, number + 1]), every, starts)
    here, following = both.astype("datetime64[m]" if every in MINUTES else "datetime64[D]")
    if here == np.datetime64(day):
        return
    if every in MINUTES:
        raise InvalidArgument(
            f"{argument} must be the beginning of a step of {every!r} ({WORDS[every]} from midnight), unlike "
            f"{_shown_time(day)}. The nearest are {here} and {following}: write one of them."
        )
    words = WORDS[every] if starts == MONDAY else "weeks from Sunday"
    raise InvalidArgument(
        f"{argument} must be the first day of a step of {every!r} ({words}), unlike {day}, a {day:%A}. "
        f"The nearest are {here} and {following}: write one of them."
    )


def _shown_time(end: date) -> str:
    """Return a day or a time as text, without seconds if they are 0."""
    if isinstance(end, datetime):
        return end.isoformat(timespec="auto" if end.second or end.microsecond else "minutes")
    return str(end)


def number_of(day: date, every: str, starts: str = MONDAY) -> int:
    """Return the number of the step that contains a day or, for steps of hours, a time."""
    if every in MINUTES:
        return (day - EPOCH) // timedelta(minutes=MINUTES[every])
    if every in DAYS:
        return (day.toordinal() - 1 + BEFORE_MONDAY[starts]) // EVERY[every]
    return (day.year * 12 + day.month - 1) // EVERY[every]


def starts_of(numbers: Days, every: str, starts: str = MONDAY) -> Days:
    """Return the days since 1970 on which steps of these numbers begin, or the minutes for steps of hours."""
    if every in MINUTES:
        return np.asarray(numbers * MINUTES[every])
    if every in DAYS:
        return np.asarray(numbers * EVERY[every] + 1 - BEFORE_MONDAY[starts] - BEFORE_1970)
    months = (numbers * EVERY[every] - 1970 * 12).astype("datetime64[M]")
    return np.asarray(months.astype("datetime64[D]").astype(np.int64))
