"""Charts of times with a time zone follow the clock of that zone, and hours that it shows twice do not overlap."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display import drawing, layout

BERLIN = ZoneInfo("Europe/Berlin")


def edges(first, last, step):
    """Return instants between two local times in Berlin, `step` apart."""
    begin, end = (time.replace(tzinfo=BERLIN).astimezone(ZoneInfo("UTC")) for time in (first, last))
    return [(begin + at * step).astimezone(BERLIN) for at in range((end - begin) // step + 1)]


def chart_of(call):
    """Draw a release of half-hourly times around 2026-10-25, when clocks in Berlin go back from 03:00 to 02:00."""
    pytest.importorskip("altair")
    times = pl.Series("at", edges(datetime(2026, 10, 24, 22), datetime(2026, 10, 25, 8), timedelta(minutes=30)))
    frame = pl.DataFrame({"at": times.dt.convert_time_zone("Europe/Berlin")})
    return seen(call(frame.dp, {"epsilon": 1.0, "ledger": dpf.Ledger(epsilon=1e3)}).dp.plot())


def along(chart):
    """Return the encoding of the time axis."""
    return chart["layer"][0]["encoding"]["x"]


def test_bins_of_local_midnights_begin_at_midnight():
    months = [datetime(2026, month, 1, tzinfo=BERLIN) for month in range(1, 8)]
    chart = chart_of(lambda dp, cost: dp.histogram("at", bins=months, **cost))
    assert [cell["left"] for cell in chart["data"]["values"]] == [
        f"2026-0{month}-01T00:00:00.000Z" for month in range(1, 7)
    ]
    assert along(chart)["axis"]["labelExpr"] == drawing.OF_MONTHS


@pytest.mark.parametrize("day", [datetime(2026, 3, 29), datetime(2026, 10, 25)])
def test_the_middle_of_a_day_lies_between_its_ends_though_its_clock_is_turned(day):
    axis = {"columns": ["at"], "bins": "datetime"}
    row = {"at_left": day.replace(tzinfo=BERLIN), "at_right": (day + timedelta(days=1)).replace(tzinfo=BERLIN)}
    (dimension,) = layout.dimensions_of([axis], [row])
    assert dimension.turns == ()
    assert layout.place(row, dimension.axis, ("left", "right"))["left"] == f"{day.date()}T00:00:00.000Z"
    assert layout.middle(row, dimension.axis) == f"{day.date()}T12:00:00.000Z"


def test_hours_that_the_clock_shows_twice_stand_side_by_side():
    keys = dpf.dates(datetime(2026, 10, 25), datetime(2026, 10, 25, 4), every="1h")
    chart = chart_of(lambda dp, cost: dp.group_by("at", keys=keys).count(**cost))
    cells = chart["data"]["values"]
    assert [cell["left"][11:16] for cell in cells] == ["00:00", "01:00", "02:00", "03:00", "04:00", "05:00"]
    assert [cell["right"] for cell in cells[:-1]] == [cell["left"] for cell in cells[1:]]
    assert [cell["x_says"][11:] for cell in cells[2:4]] == ["02:00+02:00", "02:00+01:00"]
    turned = np.datetime64("2026-10-25T03:00", "ms").astype(int)
    assert f"time(datum.value) + (datum.value < {turned} ? 0 : -3600000)" in along(chart)["axis"]["labelExpr"]


def test_bins_within_the_hour_that_comes_twice_are_as_wide_as_the_others_and_in_order():
    halves = edges(datetime(2026, 10, 25), datetime(2026, 10, 25, 5), timedelta(minutes=30))
    chart = chart_of(lambda dp, cost: dp.histogram("at", bins=halves, ranges=True, **cost))
    for panel in chart["concat"]:
        places = [np.datetime64(cell["right"][:-1]) for cell in panel["data"]["values"]]
        assert set(np.diff(places).astype("timedelta64[m]").astype(int)) == {30}
        assert "-3600000" in along(panel)["axis"]["labelExpr"]


def test_a_bin_over_the_hour_that_is_left_out_is_as_wide_as_the_others():
    hours = edges(datetime(2026, 3, 29), datetime(2026, 3, 29, 6), timedelta(hours=1))
    rows = [{"at_left": left, "at_right": right} for left, right in pairwise(hours)]
    (dimension,) = layout.dimensions_of([{"columns": ["at"], "bins": "datetime"}], rows)
    assert set(dimension.widths) == {3600.0}
    assert [by for _, by in dimension.turns] == [3600.0]


def test_several_days_of_hours_with_one_twice_have_ticks_at_midnights_of_their_clock():
    hours = edges(datetime(2026, 10, 22), datetime(2026, 10, 28), timedelta(hours=1))
    rows = [{"at": hour} for hour in hours[:-1]]
    (dimension,) = layout.dimensions_of([{"columns": ["at"], "every": "1h"}], rows)
    ticks = drawing._ticks_of_time(dimension)
    hour = [value / 3_600_000 % 24 for value in ticks["values"]]
    assert hour == [0, 0, 0, 0, 1, 1, 1]  # midnights after the extra hour of the 25th lie one hour further along
    assert "%b %-d" in ticks["labelExpr"]
    assert "%H" not in ticks["labelExpr"]


@pytest.mark.parametrize(("hours", "every"), [(24, 1), (12, 2)])
def test_ticks_say_their_day_where_it_is_another_than_that_of_the_tick_before(hours, every):
    """Edges at 06:00 without a midnight between read "06:00, 06:00"; with many edges, every second one has a tick."""
    begin = datetime(2026, 1, 1, 6)
    ends = [begin + timedelta(hours=hours * at) for at in range(144 // hours + 1)]
    rows = [{"at_left": left, "at_right": right} for left, right in pairwise(ends)]
    (dimension,) = layout.dimensions_of([{"columns": ["at"], "bins": "datetime"}], rows)
    ticks = drawing._ticks_of_time(dimension)
    assert ticks["values"] == [1000 * edge for edge in dimension.edges[::every]]
    assert f"indexof({ticks['values']}, time(datum.value)) >= 0 ? " in ticks["labelExpr"]


def test_of_hours_a_tick_within_a_day_does_not_say_it():
    ends = [datetime(2026, 1, 1, 21) + timedelta(hours=4 * at) for at in range(4)]
    rows = [{"at_left": left, "at_right": right} for left, right in pairwise(ends)]
    (dimension,) = layout.dimensions_of([{"columns": ["at"], "bins": "datetime"}], rows)
    days = [1000 * edge for edge in dimension.edges[:2]]
    assert f"indexof({days}, time(datum.value)) >= 0 ? " in drawing._ticks_of_time(dimension)["labelExpr"]
