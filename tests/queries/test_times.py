"""Hours and days as clocks show them: time zones of columns, days of 23 and 25 hours, and Periods of pandas."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.engines.columns.pandas_columns import _beginnings
from dpframe.engines.columns.source import polars_type, source_of
from dpframe.engines.columns.zones import instants_of, on_the_clock
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.bins import date_axis
from dpframe.queries.date_grid import EVERY, MINUTES, number_of, starts_of
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count

EXACT = 1e7
BERLIN = "Europe/Berlin"
SPRING = dpf.dates("2025-03-30T00:00", "2025-03-30T23:00", every="1h")
AUTUMN = dpf.dates("2025-10-26T00:00", "2025-10-26T23:00", every="1h")
WHOLE_HOURS = (BERLIN, "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "America/Havana", "UTC")
FIRST, LAST = datetime(2017, 9, 1, tzinfo=UTC), datetime(2018, 4, 30, tzinfo=UTC)  # clocks change twice or never


def ledger(**options):
    return dpf.Ledger(epsilon=1e12, **options)


def zoned(instants, zone=BERLIN):
    """Return UTC instants as a column of a time zone."""
    column = pl.Series("at", instants, dtype=pl.Datetime("us"))
    return column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).to_frame()


def half_hours(first, number):
    return [first + timedelta(minutes=30 * place) for place in range(number)]


def counted(frame, keys, **options):
    asked = {"denoise": None, "epsilon": EXACT, "ledger": ledger(), **options}
    return dpf.of(frame).group_by("at", keys=keys).count(**asked)


def exactly(frame, keys):
    """Return the keys and their exact counts, without a release."""
    asked = Query("count", Keys(key_axes(("at",), keys, None)), (("n", Count()),))
    query = check(frame, asked, dpf.PrivacyUnit())
    (found,) = totals(frame, query, dpf.PrivacyUnit(), 1).values()
    (labels,) = query.keys.labels().values()
    return list(zip(labels.tolist() if isinstance(labels, np.ndarray) else labels, found.tolist(), strict=True))


# The grid


@given(st.datetimes(), st.sampled_from(list(MINUTES)))
def test_every_time_is_in_the_step_that_polars_truncates_it_to(moment, every):
    number = number_of(moment, every)
    start, following = starts_of(np.array([number, number + 1]), every).astype("datetime64[m]")
    assert start <= np.datetime64(moment) < following
    assert start == np.datetime64(pl.select(pl.lit(moment).dt.truncate(every)).item())


def test_times_may_be_written_in_many_ways():
    same = ["2025-03-30", "2025-03-30 00:00", date(2025, 3, 30), datetime(2025, 3, 30), np.datetime64("2025-03-30")]
    for first in same:
        assert dpf.dates(first, "2025-03-30T23:00", every="1h") == SPRING
    assert dpf.dates("2025-03-30", "2025-03-30T23:59:59", every="1h").edges() == SPRING.edges()
    assert len(SPRING) == 24
    assert len(dpf.dates("2025-03-30", "2025-03-30T23:59", every="15m")) == 96
    assert repr(SPRING) == 'dpf.dates("2025-03-30T00:00", "2025-03-30T23:00", every="1h")'
    assert eval(repr(SPRING), {"dpf": dpf}) == SPRING == pickle.loads(pickle.dumps(SPRING))
    declared = dpf.dates(*(datetime(2025, 3, 30, hour, tzinfo=ZoneInfo(BERLIN)) for hour in (0, 23)), every="1h")
    assert declared.zone == BERLIN
    pandas = pytest.importorskip("pandas")
    assert eval(repr(declared), {"dpf": dpf, "pd": pandas}) == declared == pickle.loads(pickle.dumps(declared))
    hours = (pandas.Period("2025-03-30", "h"), pandas.Period("2025-03-30 23:00", "h"))
    assert dpf.dates(*hours, every="1h") == SPRING
    months = (pandas.Period("2025-01", "M"), pandas.Period("2025-12", "M"))
    assert dpf.dates(*months, every="1mo") == dpf.dates("2025-01-01", "2025-12-01", every="1mo")


@pytest.mark.parametrize(
    ("first", "last", "every", "words"),
    [
        (
            "2025-03-30T00:10",
            "2025-03-30T23:00",
            "1h",
            "first must be the beginning of a step of '1h' (hours from midnight), unlike 2025-03-30T00:10. The nearest "
            "are 2025-03-30T00:00 and 2025-03-30T01:00: write one of them.",
        ),
        (
            "2025-03-30T00:00",
            "2025-03-29T23:00",
            "1h",
            "last must not be before first, and 2025-03-29 23:00:00 is before 2025-03-30 00:00:00. Exchange them.",
        ),
        (
            "2025-03-30T00:00+01:00",
            "2025-03-30T23:00",
            "1h",
            'first must be a time of the wall clock in whole microseconds, such as "2025-01-06T09:00", not '
            "'2025-03-30T00:00+01:00'. Write for instance keys=dpf.dates(\"2025-01-06T00:00\", "
            '"2025-01-06T23:00", every="1h").',
        ),
        (
            datetime(2025, 3, 30, tzinfo=UTC),
            "2025-03-30",
            "1d",
            "first and last must have one time zone, or none, not UTC and none. "
            "Leave both out: the column has its own.",
        ),
    ],
)
def test_what_is_not_on_the_clock_is_refused(first, last, every, words):
    with pytest.raises(dpf.InvalidArgument) as refused:
        dpf.dates(first, last, every=every)
    assert str(refused.value) == words


@pytest.mark.parametrize("wrong", ["noon", 5, 1.5, True, np.datetime64("NaT", "us"), timedelta(1), [1], np.float64(1)])
def test_what_is_no_time_is_refused(wrong):
    with pytest.raises(dpf.InvalidArgument, match="last must be a time of the wall clock"):
        dpf.dates("2025-03-30", wrong, every="15m")
    with pytest.raises(dpf.MissingArgument, match="first must be given: times are never taken from the data"):
        dpf.dates(None, "2025-03-30", every="15m")


# Time zones


def test_the_days_on_which_clocks_change_have_23_and_25_hours():
    spring = counted(zoned(half_hours(datetime(2025, 3, 29, 22, 30), 60)), SPRING)
    assert spring["at"].dtype == pl.Datetime("us", BERLIN)
    assert [at.hour for at in spring["at"]] == [0, 1, *range(3, 24)]
    assert spring["count"].to_list() == [2] * 23
    autumn = counted(zoned(half_hours(datetime(2025, 10, 25, 21), 70)), AUTUMN)
    assert [at.hour for at in autumn["at"]] == [0, 1, 2, 2, *range(3, 24)]
    assert [at.utcoffset() for at in autumn["at"][2:4]] == [timedelta(hours=2), timedelta(hours=1)]
    assert autumn["count"].to_list() == [2] * 25
    quarters = dpf.dates("2025-10-26T00:00", "2025-10-26T23:45", every="15m")
    assert len(counted(zoned([]), quarters)) == 100
    days = counted(
        zoned(half_hours(datetime(2025, 10, 24, 22), 200)), dpf.dates("2025-10-25", "2025-10-27", every="1d")
    )
    assert days["at"].to_list() == [date(2025, 10, 25), date(2025, 10, 26), date(2025, 10, 27)]
    assert days["count"].to_list() == [48, 50, 48]
    parts = counted(
        zoned(half_hours(datetime(2025, 10, 25, 22), 50)), dpf.dates("2025-10-26", "2025-10-26T18:00", every="6h")
    )
    assert parts["count"].to_list() == [14, 12, 12, 12]


@pytest.mark.parametrize("steps", [EVERY, ("1h", "30m", "15m")], ids=["of days", "of minutes"])
@settings(deadline=None, max_examples=30)
@given(
    st.data(),
    st.sampled_from(WHOLE_HOURS),
    st.lists(st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)), max_size=40),
)
def test_rows_are_in_the_step_that_the_clock_of_their_zone_shows(steps, data, zone, instants):
    """Compared with each row's wall clock by Python's zoneinfo, which dpframe never applies to private rows."""
    every = data.draw(st.sampled_from(list(steps)))
    first = {"1w": date(2017, 8, 28), "1q": date(2017, 7, 1), "1y": date(2017, 1, 1)}.get(every, date(2017, 8, 1))
    found = exactly(zoned(instants, zone), dpf.dates(first, date(2018, 5, 31), every=every))
    expected = Counter()
    for instant in instants:
        local = instant.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
        if every in MINUTES:
            minute = local.minute - local.minute % MINUTES[every]
            expected[local.replace(minute=minute, second=0, microsecond=0).astimezone(UTC)] += 1
        else:
            number = number_of(local.date(), every)
            expected[starts_of(np.array([number]), every).astype("datetime64[D]").item()] += 1
    there = {at.astimezone(UTC) if isinstance(at, datetime) else at: n for at, n in found if n}
    assert there == dict(expected)


@pytest.mark.parametrize(
    ("zone", "first", "last", "every", "shown"),
    [
        # the clock goes forward from midnight: the day begins at 1:00
        ("America/Sao_Paulo", "2017-10-15", "2017-10-15", "1d", [date(2017, 10, 15)]),
        # the clock goes back across midnight at 0:01: the day begins at its first midnight
        ("America/St_Johns", "2010-11-07", "2010-11-07", "1d", [date(2010, 11, 7)]),
        # the clock goes back from 1:00 to midnight: one day with two midnights
        ("America/Havana", "2024-11-03", "2024-11-03", "1d", [date(2024, 11, 3)]),
        # this zone skipped December 30
        ("Pacific/Apia", "2011-12-29", "2011-12-31", "1d", [date(2011, 12, 29), date(2011, 12, 31)]),
    ],
)  # fmt: skip
def test_days_of_odd_clocks(zone, first, last, every, shown):
    axis = on_the_clock(date_axis("at", dpf.dates(first, last, every=every)), polars_type(pl.Datetime("us", zone)))
    assert list(axis.shown[:-1]) == shown
    begins = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=edge // 1000) for edge in axis.edges]
    for day, begin in zip(axis.shown, begins, strict=True):
        assert begin.astimezone(ZoneInfo(zone)).date() == day
        assert (begin - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date() < day


def test_half_an_hour_is_the_change_on_lord_howe():
    hours = pl.Series([datetime(2025, 10, 5, hour) for hour in range(5)]).to_physical().to_numpy()
    spring = instants_of(hours, "Australia/Lord_Howe", again=True)
    assert np.diff(spring).tolist() == [3_600 * 10**6, 3_600 * 10**6, 1_800 * 10**6, 3_600 * 10**6]


def test_a_declared_zone_is_that_of_the_column_or_refused_before_a_row_is_read():
    def read(_):
        raise AssertionError("a row was read")

    payer = dpf.Ledger(epsilon=1)
    ends = [datetime(2025, 3, 30, hour, tzinfo=ZoneInfo(BERLIN)) for hour in (0, 23)]
    declared = dpf.dates(*ends, every="1h")
    rows = half_hours(datetime(2025, 3, 29, 22, 30), 60)
    assert counted(zoned(rows), declared)["count"].to_list() == [2] * 23
    for frame, has in (
        (zoned(rows, "Europe/Paris"), "Europe/Paris"),
        (zoned(rows, "UTC"), "UTC"),
        (pl.DataFrame({"at": rows}), "none"),
    ):
        lazy = frame.lazy().map_batches(read, schema=frame.schema)
        with pytest.raises(dpf.WrongDtype) as refused:
            dpf.of(lazy).group_by("at", keys=declared).count(epsilon=0.5, ledger=payer)
        assert str(refused.value) == (
            f"keys of column 'at' must have the column's time zone, or none, not {BERLIN}: "
            f"the dtype {frame['at'].dtype} has {has}. Leave the zone out of dpf.dates."
        )
    assert payer.spent.epsilon == 0


@pytest.mark.parametrize("of", ["key", "zone"])
def test_names_of_utc_are_one_zone(of):
    names = [pl.Datetime("us", name) for name in ("UTC", "Etc/UTC")]
    axis = date_axis("at", dpf.dates(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC), every="1h"))
    assert axis.zone == "UTC"
    assert len({on_the_clock(axis, polars_type(name)) for name in names}) == 1


def test_what_clocks_do_not_show_is_refused_by_schema():
    payer, frame = dpf.Ledger(epsilon=1), zoned([])
    for keys, words in (
        (dpf.dates("0001-01-01", "2025-01-01", every="1y"), "first and last must lie in the years 2 to 9998"),
        (dpf.dates("9998-01-01", "9999-01-01", every="1y"), "first and last must lie in the years 2 to 9998"),
    ):
        with pytest.raises(dpf.InvalidArgument, match=words):
            frame.dp.group_by("at", keys=keys).count(epsilon=1, ledger=payer)
    gone = dpf.dates("2011-12-30", "2011-12-30", every="1d")
    with pytest.raises(dpf.InvalidArgument, match="must hold a time that its zone Pacific/Apia has"):
        zoned([], "Pacific/Apia").dp.group_by("at", keys=gone).count(epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match="column 'at' must hold datetimes to be cut into hours"):
        pl.DataFrame({"at": [date(2025, 1, 1)]}).dp.group_by("at", keys=SPRING).count(epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match=r"must have no time zone for such bins.*Write keys=dpf.dates"):
        frame.dp.histogram("at", bins="1d", range=("2025-01-01", "2025-02-01"), epsilon=1, ledger=payer)
    stream = dpf.Stream("s", statistic=dpf.count(), time="at", periods=SPRING, epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match="column 'at' must have no time zone in a stream"):
        stream.release(frame, "2025-03-30T00:00")
    by_hour = {"time": "week", "periods": [1, 2], "by": "at", "keys": SPRING}
    stream = dpf.Stream("s", statistic=dpf.count(), **by_hour, epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match="column 'at' must have no time zone in a stream"):
        stream.release(frame.with_columns(week=1), 1)
    assert payer.spent.epsilon == 0
    pandas = pytest.importorskip("pandas")
    odd = pandas.DataFrame({"at": pandas.Series([], dtype="datetime64[ns, UTC+05:45]")})
    with pytest.raises(dpf.WrongDtype, match="must have a time zone of the tz database"):
        odd.dp.group_by("at", keys=SPRING).count(epsilon=1, ledger=payer)


def test_no_value_fails_or_is_moved():
    """The extreme ticks of a column, whose clock times no calendar has, lie before or after all steps."""
    far = [-(2**63) + 1, -(2**62), 0, 2**62, 2**63 - 1]
    berlin = [
        int(at.timestamp() * 10**6)
        for at in (datetime(2025, 3, 29, 23, tzinfo=UTC), datetime(2025, 3, 30, 1, tzinfo=UTC))
    ]
    for unit, factor in (("ms", 1000), ("us", 1), ("ns", None)):
        ticks = [*far, *(tick * 1000 if factor is None else tick // factor for tick in berlin)]
        column = pl.Series("at", ticks, dtype=pl.Int64).cast(pl.Datetime(unit, BERLIN))
        found = counted(column.to_frame(), SPRING)["count"]
        assert found.to_list() == [1, 0, 1, *[0] * 20]


def test_libraries_and_engines_agree(tmp_path):
    frame = zoned([*half_hours(datetime(2025, 10, 25, 20), 80), None])
    expected = exactly(frame, AUTUMN)
    assert sum(n for _, n in expected) == 50
    frame.write_parquet(tmp_path / "at.parquet")
    tables = [frame.lazy(), pl.scan_parquet(tmp_path / "at.parquet"), frame.to_arrow()]
    import pyarrow.dataset

    tables.append(pyarrow.dataset.dataset(tmp_path / "at.parquet"))
    for table in tables:
        found = counted(table, AUTUMN)
        assert found["at"].dtype == pl.Datetime("us", BERLIN)
        assert list(zip(found["at"], found["count"], strict=True)) == expected


def test_duckdb_has_the_zone_of_its_session(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    zoned(half_hours(datetime(2025, 10, 25, 20), 80)).write_parquet(tmp_path / "at.parquet")
    connection = duckdb.connect()
    connection.execute(f"set TimeZone = '{BERLIN}'")
    found = counted(connection.read_parquet(str(tmp_path / "at.parquet")), AUTUMN)
    assert (len(found), set(found["count"])) == (25, {2.0})
    connection.execute("set TimeZone = 'UTC'")
    assert len(counted(connection.read_parquet(str(tmp_path / "at.parquet")), AUTUMN)) == 24


def test_pandas_and_dask_have_the_zone_of_their_dtype():
    pandas = pytest.importorskip("pandas")
    rows = pandas.Series(half_hours(datetime(2025, 10, 25, 20), 80)).dt.tz_localize("UTC").dt.tz_convert(BERLIN)
    tables = [pandas.DataFrame({"at": rows.astype(f"datetime64[{unit}, {BERLIN}]")}) for unit in ("s", "ms", "ns")]
    tables.append(pandas.DataFrame({"at": rows.convert_dtypes(dtype_backend="pyarrow")}))
    for table in tables:
        found = counted(table, AUTUMN)
        assert str(found["at"].dtype).endswith(f", {BERLIN}]")
        assert (len(found), set(found["count"])) == (25, {2.0})
        assert found["at"].iloc[2:4].map(lambda at: at.utcoffset().seconds).tolist() == [7200, 3600]
    objects = pandas.DataFrame({"at": rows.astype(object)})
    declared = dpf.dates(*(pandas.Timestamp(f"2025-10-26 {hour}:00", tz=BERLIN) for hour in (0, 23)), every="1h")
    assert set(counted(objects, declared)["count"]) == {2.0}
    dd = pytest.importorskip("dask.dataframe")
    import dask

    with dask.config.set(scheduler="synchronous"):
        found = counted(dd.from_pandas(tables[1], npartitions=3), AUTUMN)
    assert (len(found), set(found["count"])) == (25, {2.0})


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_has_the_zone_of_its_session(spark):
    pytest.importorskip("pandas")
    before = spark.conf.get("spark.sql.session.timeZone")
    rows = [(int(at.replace(tzinfo=UTC).timestamp()),) for at in half_hours(datetime(2025, 10, 25, 20), 80)]
    frame = spark.createDataFrame(rows, "s long").selectExpr("timestamp_seconds(s) as at")
    try:
        spark.conf.set("spark.sql.session.timeZone", BERLIN)
        found = counted(frame, AUTUMN)
        assert (len(found), set(found["count"])) == (25, {2.0})
        days = counted(frame, dpf.dates("2025-10-26", "2025-10-26", every="1d"))
        assert ([str(day)[:10] for day in days["at"]], list(days["count"])) == (["2025-10-26"], [50.0])
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert len(counted(frame, AUTUMN)) == 24
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_naive_columns_have_24_hours(engine):
    frame = engine({"at": [*half_hours(datetime(2025, 3, 29, 23, 30), 60), None]})
    found = engine.columns(frame.dp.group_by("at", keys=SPRING).count(denoise=None, epsilon=EXACT, ledger=ledger()))
    assert found["count"] == [2.0] * 24
    assert [np.datetime64(at) for at in found["at"]] == [
        np.datetime64(datetime(2025, 3, 30, hour)) for hour in range(24)
    ]
    bins = frame.dp.histogram(
        "at", bins="6h", range=("2025-03-30T00:00", "2025-03-31T00:00"), denoise=None, epsilon=EXACT, ledger=ledger()
    )
    assert engine.columns(bins)["count"] == [12.0] * 4


# Records, ledgers and plans


@pytest.mark.filterwarnings("ignore:DatetimeTZBlock is deprecated:DeprecationWarning")  # old pyarrow, by pandas
def test_records_ledgers_and_files_say_the_zone(engine, tmp_path):
    frame = zoned(half_hours(datetime(2025, 10, 25, 20), 80))
    frame = frame.to_pandas() if engine.is_pandas else frame
    payer = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    asked = {"epsilon": 1, "label": "n", "snapshot": "a", "ledger": payer}
    released = dpf.of(frame).group_by("at", keys=AUTUMN).count(**asked)
    told = released.dp.provenance
    assert told["cells"] == [
        {
            **{"columns": ["at"], "size": 25, "keys": ["datetime"], "every": "1h", "zone": BERLIN},
            **{"first": "2025-10-26 00:00+02:00", "last": "2025-10-26 23:00+01:00"},
        }
    ]
    words = "rows with a value of at before 2025-10-26 00:00+02:00, or from 2025-10-27 00:00+01:00 on, are in no group"
    assert told["notes"] == [words]
    again = dpf.of(frame).group_by("at", keys=AUTUMN).count(**asked)
    assert again["count"].to_list() == released["count"].to_list()
    assert again["at"].to_list() == released["at"].to_list()
    assert payer.spent.epsilon == 1
    with pytest.raises(dpf.LedgerError, match="keys differs"):
        dpf.of(frame).group_by("at", keys=SPRING).count(**asked)
    released.dp.write_parquet(tmp_path / "hours.parquet")
    read = dpf.read_parquet(tmp_path / "hours.parquet")
    assert read.dp.provenance == told
    assert not told["altered"]
    plan = dpf.of(frame).preview.group_by("at", keys=AUTUMN).count(epsilon=1)
    assert f"at: 25 times every 1h of {BERLIN}" in repr(plan)


def test_hours_are_drawn_and_tabled_as_the_clock_shows_them():
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = zoned(half_hours(datetime(2025, 3, 29, 20), 80))
    released = counted(frame, dpf.dates("2025-03-30", "2025-03-30T18:00", every="6h"))
    drawn = str(released.dp.plot().to_dict())
    assert "2025-03-30T18:00:00.000Z" in drawn
    assert "2025-03-31T00:00:00.000Z" in drawn
    assert "utcFormat(datum.value, '%H:%M')" in drawn
    assert "2025-03-30 06:00+02:00" in released.dp.table().as_raw_html()
    naive = pl.DataFrame({"at": half_hours(datetime(2025, 3, 29, 20), 80)})
    assert counted(naive, SPRING).dp.plot().to_dict()
    beside = dpf.of(frame.with_columns(w=pl.lit("A"))).group_by("at", "w", keys={"at": SPRING, "w": ["A", "B"]})
    assert beside.count(epsilon=1, ledger=ledger(), rollup=True).dp.plot().to_dict()


@pytest.mark.filterwarnings("ignore:DatetimeTZBlock is deprecated:DeprecationWarning")  # old pyarrow, by pandas
def test_hours_go_with_keys_subtotals_people_and_arithmetic(engine):
    frame = zoned(half_hours(datetime(2025, 3, 29, 23), 46)).with_columns(
        w=pl.Series(["A", "B"] * 23), who=pl.int_range(46) // 2
    )
    frame = frame.to_pandas() if engine.is_pandas else frame
    grouped = dpf.of(frame).group_by("at", "w", keys={"at": SPRING, "w": ["A", "B"]})
    found = grouped.count(denoise=None, epsilon=EXACT, ledger=ledger(), cube=True)
    assert len(found) == 24 * 3
    people = ledger(unit="who")
    units = dpf.of(frame).group_by("at", keys=SPRING).n_units(max_groups=1, denoise=None, epsilon=EXACT, ledger=people)
    assert units["n_units"].to_list() == pytest.approx([1.0] * 23, abs=1e-4)  # noise may move a step of 2**-20
    by_hour = counted(frame, SPRING)
    assert len(by_hour.dp.difference()) == 22
    assert by_hour.dp.filter({"at": by_hour["at"].to_list()[:2]})["count"].to_list() == [2.0, 2.0]
    marginals = dpf.of(frame).marginals(
        ["at", "w"],
        keys={"at": SPRING, "w": ["A", "B"]},
        degree=2,
        epsilon=EXACT,
        delta=1e-9,
        ledger=ledger(delta=1e-6),
    )
    assert len(marginals) == 1 + 23 + 2 + 46


def test_a_stream_of_hours():
    rows = pl.DataFrame({"at": half_hours(datetime(2025, 3, 30), 4)})
    stream = dpf.Stream("s", statistic=dpf.count(), time="at", periods=SPRING, epsilon=1e6, ledger=ledger())
    assert stream.release(rows, "2025-03-30T00:00")["total"].item() == pytest.approx(2, abs=0.1)
    assert stream.release(rows, datetime(2025, 3, 30, 1))["total"].item() == pytest.approx(4, abs=0.1)
    with pytest.raises(dpf.InvalidArgument, match="Name a period by its beginning"):
        stream.release(rows, "2025-03-30T02:30")


# Periods


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.mark.parametrize("unit", ["Y", "Q", "Q-JAN", "M", "W", "W-SAT", "D", "2h", "h", "15min", "s", "ms", "us", "ns"])
def test_periods_count_where_they_begin(pandas, unit):
    times = pandas.Series(
        pandas.to_datetime(["2025-01-05T10:20", "2025-01-31T23:59", "2024-12-31T00:00", "1969-02-03T00:00", None])
    )
    periods = times.dt.to_period(unit)
    frame = pandas.DataFrame({"at": periods})
    begins = Counter(str(at.start_time.date()) for at in periods.dropna())
    found = counted(frame, dpf.dates("1968-01-01", "2025-02-28", every="1d"))
    assert {str(at.date()): n for at, n in zip(found["at"], found["count"], strict=True) if n} == begins
    keys = list(dict.fromkeys(periods.dropna()))
    named = counted(frame, [*keys, None])
    assert named["at"].dtype == periods.dtype
    assert named["at"].tolist()[:-1] == keys
    assert named["count"].tolist() == [*(float((periods == key).sum()) for key in keys), 1.0]
    objects = counted(frame.astype(object), [*keys, None])
    assert objects["count"].tolist() == named["count"].tolist()


def test_periods_as_far_as_they_reach_are_before_or_after_all_steps(pandas):
    far = np.array([-(2**63), -(2**63) + 1, -(2**40), 2**40, 2**63 - 1])
    for unit in ("Y", "Q", "M", "W", "D", "h", "min", "s", "ms", "us", "ns"):
        inside = pandas.Period("2025-06-02", unit).ordinal
        frame = pandas.DataFrame({"at": pandas.arrays.PeriodArray(np.append(far, inside), dtype=f"period[{unit}]")})
        between = dpf.dates("2025-01-01", "2025-12-31", every="1y")
        assert counted(frame, between)["count"].tolist() == [1.0], unit
        begins = _beginnings(np.sort(np.append(far[1:], inside)), frame["at"].dtype).astype("datetime64[us]")
        assert np.array_equal(begins, np.sort(begins)), unit


def test_periods_of_another_frequency_and_of_none_are_refused_by_schema(pandas):
    payer = dpf.Ledger(epsilon=1)
    frame = pandas.DataFrame({"at": pandas.period_range("2025-01", periods=3, freq="M")})
    for keys, words in (
        (
            [pandas.Period("2025-01-01", "D")],
            r"keys of column 'at' must convert exactly to its dtype period\[M\], unlike Pe",
        ),
        (
            [date(2025, 1, 1)],
            r"keys of column 'at' must suit its dtype period\[M\], but they are dates. Write Periods.",
        ),
        ([pandas.Period("2025-01", "M")] * 2, "keys must be distinct, but Period"),
        (frame["at"], "must be a list, tuple or range that you wrote down"),
        (SPRING, r"must hold datetimes to be cut into hours, but its dtype is period\[M\]"),
        (dpf.discover(delta=1e-6), "must have a dtype whose values can be told apart and named"),
    ):
        with pytest.raises(dpf.DpframeError, match=words):
            dpf.of(frame).group_by("at", keys=keys).count(epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match=r"Write group_by with keys=dpf.dates"):
        dpf.of(frame).histogram("at", bins=[0, 1], epsilon=1, ledger=payer)
    with pytest.raises(dpf.WrongDtype, match="must suit its dtype"):
        pl.DataFrame({"at": [date(2025, 1, 1)]}).dp.group_by("at", keys=[pandas.Period("2025-01", "M")]).count(
            epsilon=1, ledger=payer
        )
    assert payer.spent.epsilon == 0


def test_answers_by_periods_replay_and_name_units(pandas, tmp_path):
    frame = pandas.DataFrame({"at": pandas.period_range("2025-01", periods=4, freq="M").repeat(2)})
    payer = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    keys = list(pandas.period_range("2025-01", periods=2, freq="M"))
    asked = {"epsilon": 1, "label": "n", "snapshot": "a", "ledger": payer}
    first = dpf.of(frame).group_by("at", keys=keys).count(**asked)
    pandas.testing.assert_frame_equal(dpf.of(frame).group_by("at", keys=keys).count(**asked), first)
    with pytest.raises(dpf.LedgerError, match="keys differs"):
        dpf.of(frame).group_by("at", keys=[keys[0], pandas.Period("2025-03", "M")]).count(**asked)
    assert first.dp.provenance["cells"][0]["keys"] == ["period"]
    assert dpf.of(frame).n_units(epsilon=EXACT, max_rows=2, ledger=ledger(unit="at"))["n_units"].tolist() == [4.0]
    assert source_of(frame).schema["at"].kind == "period"


@pytest.mark.parametrize("name", ["CET", "UTC", "IST", None])
def test_a_fixed_offset_is_its_hours_whatever_it_is_called(name):
    """In a Berlin winter, `datetime.now().astimezone().tzinfo` has the name CET, but its clock never changes."""
    pd = pytest.importorskip("pandas")
    zone = timezone(timedelta(hours=2), *([name] if name else []))
    frame = pd.DataFrame(
        {"at": pd.Series(pd.to_datetime(["2025-07-01T21:30Z", "2025-01-01T22:30Z"])).dt.tz_convert(zone)}
    )
    days = {"2025-07-01": 1, "2025-01-02": 1, "2025-07-02": 0, "2025-01-01": 0}
    for day, rows in days.items():
        found = frame.dp.group_by("at", keys=dpf.dates(day, day, every="1d")).count(epsilon=EXACT, ledger=ledger())
        assert found["count"].tolist() == [rows]
    keys = dpf.discover(delta=1e-6)
    found = frame.dp.group_by("at", keys=keys).count(
        epsilon=1, ledger=dpf.Ledger(epsilon=9, delta=1e-3, keys_delta=1e-5)
    )
    assert len(found) == 0


NIGHTS = [datetime(2025, 3, day, tzinfo=ZoneInfo(BERLIN)) for day in (29, 30, 31)]  # clocks went forward on the 30th
RECORDED = {"zone": BERLIN, "first": "2025-03-29T00:00:00.000000+01:00", "last": "2025-03-31T00:00:00.000000+02:00"}


def _binned(frame, edges=NIGHTS, **options):
    return dpf.of(frame).histogram("at", bins=edges, epsilon=EXACT, denoise=None, ledger=ledger(), **options)


def _as_tables(frame, tmp_path):
    """Yield the rows as a table of each library."""
    yield frame
    yield frame.lazy()
    yield frame.to_arrow()
    yield pytest.importorskip("pandas").DataFrame({"at": frame["at"].to_pandas()})
    frame.write_parquet(tmp_path / "at.parquet")
    connection = pytest.importorskip("duckdb").connect()
    connection.execute(f"set TimeZone = '{BERLIN}'")
    yield connection.read_parquet(str(tmp_path / "at.parquet"))


def test_edges_with_a_time_zone_are_shown_in_it(tmp_path):
    """47 hours: the second day has 23."""
    for table in _as_tables(zoned(half_hours(datetime(2025, 3, 28, 23), 94)), tmp_path):
        found = _binned(table)
        assert found["at_left"].to_list() == NIGHTS[:2]
        assert BERLIN in str(found["at_left"].dtype)
        assert [at.utcoffset() for at in found["at_right"].to_list()] == [timedelta(hours=hours) for hours in (1, 2)]
        assert found["count"].to_list() == [48.0, 46.0]
        (axis,) = found.dp.provenance["cells"]
        assert {name: axis[name] for name in RECORDED} == RECORDED
        (note,) = (note for note in found.dp.provenance["notes"] if "outside" in note)
        assert note == f"values of at outside [{RECORDED['first']}, {RECORDED['last']}] are left out"
        found.dp.write_parquet(tmp_path / "counts.parquet")
        for like in ("polars", *(["pandas"] if find_spec("pandas") else [])):
            again = dpf.read_parquet(tmp_path / "counts.parquet", like=like)
            assert again["at_left"].to_list() == NIGHTS[:2]
            assert again.dp.filter({"at_left": [again["at_left"].to_list()[0]]})["count"].to_list() == [48.0]
            assert "+01:00" in again.dp.statement() + again.dp.table("csv")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_edges_of_one_zone_among_other_cells_and_in_nanoseconds(library):
    rows = zoned(half_hours(datetime(2025, 3, 28, 23), 94)).with_columns(ward=pl.Series(["A", "B"] * 47))
    frame = rows if library == "polars" else pytest.importorskip("pandas").DataFrame(rows.to_dict(as_series=False))
    asked = {"epsilon": EXACT, "ledger": ledger(), "denoise": None}
    both = frame.dp.group_by(dpf.bins("at", NIGHTS), "ward", keys=["A", "B"]).count(**asked)
    assert both["at_left"].to_list() == [NIGHTS[0], NIGHTS[0], NIGHTS[1], NIGHTS[1]]
    below = frame.dp.ecdf("at", bins=NIGHTS, epsilon=EXACT, ledger=ledger())
    assert below["at_right"].to_list() == NIGHTS[1:]
    assert "above 2025-03-31T00:00:00.000000+02:00" in " ".join(below.dp.provenance["notes"])
    parts = frame.dp.histogram("at", bins=7, range=(NIGHTS[0], NIGHTS[1]), **asked)
    assert parts.dp.provenance["cells"][0]["first"] == "2025-03-29T00:00:00.000000000+01:00"
    assert str(parts["at_left"].dtype) in (f"datetime64[ns, {BERLIN}]", str(pl.Datetime("ns", BERLIN)))
    second = parts["at_left"].dt.nanosecond()[1] if library == "polars" else parts["at_left"][1].nanosecond
    assert second % 1000 == 857


def test_edges_of_numpy_count_in_steps_of_several_units():
    frame = pl.DataFrame({"stay": [timedelta(minutes=minutes) for minutes in (10, 80, 100, 200)]})
    edges = list(np.array([0, 1, 2], dtype="timedelta64[90m]"))
    found = frame.dp.histogram("stay", bins=edges, epsilon=EXACT, ledger=ledger(), denoise=None)
    assert found["stay_right"].to_list() == [timedelta(minutes=90), timedelta(minutes=180)]
    assert found["count"].to_list() == [2, 1]


def test_durations_of_pandas_keep_their_nanoseconds():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"stay": pandas.to_timedelta([1_200, 1_400, 1_600], unit="ns")})
    edges = [pandas.Timedelta(edge, "ns") for edge in (0, 1_500, 3_000)]
    asked = {"epsilon": EXACT, "ledger": ledger(), "denoise": None}
    found = frame.dp.histogram("stay", bins=edges, **asked)
    assert found["count"].to_list() == [2, 1]
    assert found["stay_right"].to_list() == edges[1:]
    assert frame.dp.agg(n=dpf.count(where={"stay": (edges[1], None)}), **asked)["n"].to_list() == [1]


@pytest.mark.parametrize(
    "edges",
    [
        [at.astimezone(timezone(at.utcoffset())) for at in NIGHTS],
        [NIGHTS[0], *(at.astimezone(ZoneInfo("Asia/Tokyo")) for at in NIGHTS[1:])],
        [at.astimezone(ZoneInfo("Etc/UTC")) for at in NIGHTS],
        [at.astimezone(UTC) for at in NIGHTS],
    ],
)
def test_edges_of_several_zones_and_of_offsets_are_shown_in_utc(edges):
    found = _binned(zoned(half_hours(datetime(2025, 3, 28, 23), 94)), edges)
    assert found["at_left"].dtype == pl.Datetime("us", "UTC")
    assert found["at_left"].to_list() == NIGHTS[:2]
    assert found.dp.provenance["cells"][0]["last"] == "2025-03-30T22:00:00.000000+00:00"


def test_an_edge_that_no_year_of_utc_has_is_shown_beyond_it():
    edges = [datetime(9999, 12, 31, tzinfo=ZoneInfo("America/New_York")), datetime.max.replace(tzinfo=timezone.min)]
    axis = dpf.bins("at", edges).made()
    assert (axis.zone, axis.facts()["last"]) == ("UTC", "10000-01-01T23:58:59.999999+00:00")
    assert repr(dpf.bins("at", edges))
