"""Steps of a grid of time on the wall clock of a zone: the instants at which they begin.

The grid is declared as a wall clock shows it (``dpf.dates``), and a column with a time zone holds instants. Only the
public edges are converted from one to the other: no value of a row is ever brought to local time, so no row can be
ambiguous, missing or out of range. Rows are compared with instants, as for bins.

- A step begins at the first instant at which the clock shows its beginning or a later time. If clocks go forward over
  it, that is the instant of the change; steps that begin at one instant are one step.
- Steps of up to an hour begin again if clocks go back to their beginning: such a day has 25 hours. Longer ones do not:
  such a day is one day, and its night has an hour more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.source import ColumnType
from dpframe.errors import InvalidArgument, WrongDtype, shown
from dpframe.queries.bins import DateAxis
from dpframe.queries.date_grid import EVERY, MINUTES, zone_name

Integers = NDArray[np.int64]

HOUR = 60  # minutes
FARTHEST = 48 * 3_600 * 10**6  # microseconds: no two clocks differ by more
YEARS = ("0002-01-01", "9999-01-01")  # the years that clocks of all zones can show, with a margin
UTC = "UTC"
UNKNOWN_TO_SCHEMA = ("object", "missing")  # kinds of column that may hold datetimes of any zone, or of none


def on_the_clock(axis: DateAxis, column: ColumnType) -> DateAxis:
    """Return the axis on the wall clock of the column's zone by the schema, or of the declared zone.

    Raise WrongDtype if the two differ, if a zone is declared and the column has none, or if its zone has no name.
    """
    if axis.shown:
        return axis
    if axis.zone is not None and column.kind not in UNKNOWN_TO_SCHEMA:
        _check_declared(axis, axis.zone, column)
    zone = column.zone or axis.zone
    if zone is None:
        return axis
    known = _known(zone)
    if known is None:
        raise WrongDtype(
            f"column {axis.column!r} must have a time zone of the tz database to be cut by its wall clock, not "
            f"{shown(zone)}. Convert it to UTC or, for instance, Europe/Berlin."
        )
    wall = np.array([edge // 1000 for edge in axis.edges], dtype=np.int64)
    first, last = (int(np.datetime64(year, "us").astype(np.int64)) for year in YEARS)
    if wall[0] < first or wall[-1] > last:
        raise InvalidArgument(
            f"first and last must lie in the years 2 to 9998 for column {axis.column!r}, which has a time zone. "
            "Write other ends."
        )
    instants = instants_of(wall, known, again=MINUTES.get(axis.every, HOUR + 1) <= HOUR)
    if instants.size < 2:
        raise InvalidArgument(
            f"keys of column {axis.column!r} must hold a time that its zone {zone} has, and its clocks went forward "
            "over all of these. Write other ends."
        )
    zoned = _zoned(instants, known)
    labels = zoned.dt.date() if axis.every in EVERY else zoned
    edges = tuple(instant * 1000 for instant in instants.tolist())  # Python integers do not overflow
    return replace(axis, edges=edges, zone=zone_name(zone), shown=tuple(labels.to_list()))


def _check_declared(axis: DateAxis, declared: str, column: ColumnType) -> None:
    """Refuse keys whose time zone differs from that of the column."""
    if column.zone is None or (_known(column.zone) or column.zone) != (_known(declared) or declared):
        has = "none" if column.zone is None else zone_name(column.zone)
        raise WrongDtype(
            f"keys of column {axis.column!r} must have the column's time zone, or none, not {declared}: the dtype "
            f"{column.dtype} has {has}. Leave the zone out of dpf.dates."
        )


def instants_of(wall: Integers, zone: str, *, again: bool) -> Integers:
    """Return the instants at which a clock first shows these times; both are in microseconds since 1970.

    With `again`, also return the last instant at which it shows a time that it goes back to.
    """
    clock = pl.Series(wall).cast(pl.Datetime("us"))
    first = clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    found = [_in_utc(first.drop_nulls()), _after(wall[first.is_null().to_numpy()], zone)]
    if again:
        last = clock.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
        found.append(_in_utc(last.drop_nulls()))
    return np.unique(np.concatenate(found))


def _after(wall: Integers, zone: str) -> Integers:
    """Return the first instants at which a clock shows these times or later ones, since it goes forward over them."""
    below, at = wall - FARTHEST, wall + FARTHEST
    while (at - below > 1).any():
        middle = (below + at) // 2
        local = _zoned(middle, zone).dt.replace_time_zone(None).to_physical().to_numpy()
        below, at = np.where(local < wall, middle, below), np.where(local < wall, at, middle)
    return at


def _zoned(instants: Integers, zone: str) -> pl.Series:
    """Return instants as datetimes of a zone."""
    return pl.Series(instants).cast(pl.Datetime("us")).dt.replace_time_zone(UTC).dt.convert_time_zone(zone)


def _in_utc(zoned: pl.Series) -> Integers:
    return np.asarray(zoned.to_physical().to_numpy(), dtype=np.int64)


@cache
def _known(zone: str) -> str | None:
    """Return the name by which Polars knows a zone; None for an unknown zone."""
    try:
        empty: Any = pl.Series([0]).cast(pl.Datetime("us")).dt.replace_time_zone(zone_name(zone))
    except pl.exceptions.PolarsError:
        return None
    return str(empty.dtype.time_zone)
