"""Date keys and bins of whole weeks: the grid of days, rows mapped to it, results, and refusals."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.date_grid import EVERY, number_of, starts_of
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count

EXACT = 1e7
WEEKS = dpf.dates("2025-01-06", "2025-01-20", every="1w")
DAYS = [
    *(date(2025, 1, 5), date(2025, 1, 6), date(2025, 1, 12), date(2025, 1, 13), date(2025, 1, 26)),
    *(date(2025, 1, 27), date(1, 1, 1), date(9999, 12, 31), None),
]


def ledger():
    return dpf.Ledger(epsilon=1e12)


def counts(engine, frame, keys, **options):
    asked = {"denoise": None, "epsilon": EXACT, "ledger": ledger(), **options}
    return engine.columns(frame.dp.group_by("day", keys=keys).count(**asked))


# The grid


@given(st.dates(), st.sampled_from(list(EVERY)))
def test_every_day_is_in_the_step_that_polars_truncates_it_to(day, every):
    numbers = np.array([number_of(day, every), number_of(day, every) + 1])
    start, following = starts_of(numbers, every).astype("datetime64[D]")
    assert start <= np.datetime64(day) < following
    assert start == np.datetime64(pl.select(pl.lit(day).dt.truncate(every)).item())


@given(st.dates())
def test_weeks_from_sunday_begin_a_day_before_those_of_the_next_day(day):
    numbers = np.array([number_of(day, "1w", "sunday"), number_of(day, "1w", "sunday") + 1])
    start, following = starts_of(numbers, "1w", "sunday").astype("datetime64[D]")
    assert start <= np.datetime64(day) < following == start + np.timedelta64(7, "D")
    assert (start.astype(np.int64) + 4) % 7 == 0  # 1970-01-01 was a Thursday, 4 days after a Sunday


def sundays():
    return dpf.dates("2025-01-05", "2025-01-20", every="1w", starts="sunday")


def test_rows_are_taken_to_the_sunday_of_their_week(engine, tmp_path):
    frame = engine({"day": [*DAYS, date(2025, 1, 11)]})
    found = counts(engine, frame, sundays())
    assert found["count"] == [3, 2, 0]
    released = pl.DataFrame({"day": DAYS}).dp.group_by("day", keys=sundays()).count(epsilon=1, ledger=ledger())
    axis = released.dp.provenance["cells"][0]
    assert (axis["every"], axis["starts"], axis["first"], axis["last"]) == ("1w", "sunday", "2025-01-05", "2025-01-19")
    released.dp.write_parquet(tmp_path / "weeks.parquet")
    assert dpf.read_parquet(tmp_path / "weeks.parquet").dp.provenance == released.dp.provenance
    monday = pl.DataFrame({"day": DAYS}).dp.group_by("day", keys=WEEKS).count(epsilon=1, ledger=ledger())
    assert "starts" not in monday.dp.provenance["cells"][0]


def test_weeks_from_sunday_are_another_question_of_a_ledger_and_of_a_stream(tmp_path):
    frame, payer = pl.DataFrame({"day": DAYS}), dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    asked = {"epsilon": 1, "label": "n", "snapshot": "a", "ledger": payer}
    first = frame.dp.group_by("day", keys=sundays()).count(**asked)
    assert frame.dp.group_by("day", keys=sundays()).count(**asked).equals(first)
    with pytest.raises(dpf.LedgerError, match="keys differs"):
        frame.dp.group_by("day", keys=WEEKS).count(**asked)
    rows = frame.filter(pl.col("day").is_not_null())
    stream = dpf.Stream("s", statistic=dpf.count(), time="day", periods=sundays(), epsilon=1e6, ledger=ledger())
    assert stream.release(rows, date(2025, 1, 5))["total"].item() == pytest.approx(2, abs=0.1)
    assert sundays() == pickle.loads(pickle.dumps(sundays())) == eval(repr(sundays()), {"dpf": dpf})


@pytest.mark.parametrize(
    ("every", "starts", "words"),
    [
        ("1d", "sunday", "starts must be left out with every='1d': it is of weeks. Leave it out."),
        ("1w", "tuesday", 'starts must be "monday" or "sunday", not \'tuesday\'. Leave it out for Monday.'),
        ("1w", 0, 'starts must be "monday" or "sunday", not 0. Leave it out for Monday.'),
    ],
)
def test_what_is_no_beginning_of_a_week_is_refused(every, starts, words):
    with pytest.raises(dpf.InvalidArgument) as refused:
        dpf.dates("2025-01-05", "2025-01-20", every=every, starts=starts)
    assert str(refused.value) == words


def test_a_week_from_sunday_is_drawn_whole():
    pytest.importorskip("altair")
    released = pl.DataFrame({"day": DAYS}).dp.group_by("day", keys=sundays()).count(epsilon=1, ledger=ledger())
    assert "2025-01-26" in str(released.dp.plot().to_dict())  # the chart shows the end of the last week


def test_the_number_of_dates_is_told_without_making_any():
    assert len(WEEKS) == 3
    assert len(dpf.dates("2025-01-06", "2025-12-29", every="1w")) == 52
    assert len(dpf.dates("2024-01-01", "2024-12-31", every="1d")) == 366
    assert len(dpf.dates("2024-02-01", "2025-02-28", every="1mo")) == 13  # the second date is a day of the last month
    assert len(dpf.dates("2024-04-01", "2025-01-01", every="1q")) == 4
    assert len(dpf.dates("2020-01-01", "2025-06-01", every="1y")) == 6
    assert len(dpf.dates(date.min, date.max, every="1d")) == date.max.toordinal()
    assert WEEKS.days().astype("datetime64[D]").astype(str).tolist() == [
        "2025-01-06",
        "2025-01-13",
        "2025-01-20",
        "2025-01-27",
    ]


def test_a_day_may_be_written_in_many_ways():
    same = [date(2025, 1, 6), datetime(2025, 1, 6), np.datetime64("2025-01-06"), np.datetime64("2025-01-06T00:00")]
    for first in [*same, "2025-01-06"]:
        assert dpf.dates(first, "2025-01-20", every="1w") == WEEKS
    assert repr(WEEKS) == 'dpf.dates("2025-01-06", "2025-01-20", every="1w")'
    assert pickle.loads(pickle.dumps(WEEKS)) == WEEKS
    pandas = pytest.importorskip("pandas")
    assert dpf.dates(pandas.Timestamp("2025-01-06"), "2025-01-20", every="1w") == WEEKS


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: dpf.dates("2025-01-07", "2025-01-20", every="1w"),
            dpf.InvalidArgument,
            "first must be the first day of a step of '1w' (weeks from Monday), unlike 2025-01-07, a Tuesday. The "
            "nearest are 2025-01-06 and 2025-01-13: write one of them.",
        ),
        (
            lambda: dpf.dates("2025-02-02", "2025-03-01", every="1mo"),
            dpf.InvalidArgument,
            "first must be the first day of a step of '1mo' (calendar months), unlike 2025-02-02, a Sunday. The "
            "nearest are 2025-02-01 and 2025-03-01: write one of them.",
        ),
        (
            lambda: dpf.dates("9999-12-02", "9999-12-31", every="1mo"),
            dpf.InvalidArgument,
            "first must be the first day of a step of '1mo' (calendar months), unlike 9999-12-02, a Thursday. The "
            "nearest are 9999-12-01 and 10000-01-01: write one of them.",
        ),
        (
            lambda: dpf.dates("2025-01-06", "2025-01-05", every="1w"),
            dpf.InvalidArgument,
            "last must not be before first, and 2025-01-05 is before 2025-01-06. Exchange them.",
        ),
    ],
)
def test_what_is_not_on_the_grid_is_refused_with_what_is(call, error, words):
    with pytest.raises(error) as refused:
        call()
    assert str(refused.value) == words


@pytest.mark.parametrize(
    "wrong",
    [
        *("2025-13-01", "Monday", 20250106, 1.5, True, datetime(2025, 1, 6, 12), datetime(2025, 1, 6, 0, 0, 1)),
        *(np.datetime64("NaT", "us"), np.datetime64("2025-01-06T00:00:01"), timedelta(1), [date(2025, 1, 6)]),
    ],
)
def test_what_is_no_day_is_refused(wrong):
    with pytest.raises(dpf.InvalidArgument, match="first must be a day without a time of day or a time zone"):
        dpf.dates(wrong, "2025-01-20", every="1w")
    with pytest.raises(dpf.MissingArgument, match="every must be given"):
        dpf.dates("2025-01-06", "2025-01-20")
    with pytest.raises(dpf.MissingArgument, match="last must be given"):
        dpf.dates("2025-01-06", None, every="1w")


@pytest.mark.parametrize("wrong", ["2w", "7d", "W-MON", "2h", "", 7, timedelta(7)])
def test_what_is_no_step_is_refused(wrong):
    with pytest.raises(dpf.InvalidArgument, match=r'every must be one of "1d" \(days\), "1w" \(weeks from Monday\)'):
        dpf.dates("2025-01-06", "2025-01-20", every=wrong)


# Rows


def test_dates_are_taken_to_the_monday_of_their_week(engine):
    found = counts(engine, engine({"day": DAYS}), WEEKS)
    assert found["count"] == [2, 1, 1]
    assert [np.datetime64(day, "D") for day in found["day"]] == list(WEEKS.days()[:-1].astype("datetime64[D]"))


def test_the_column_of_the_result_holds_dates(engine):
    found = engine({"day": DAYS}).dp.group_by("day", keys=WEEKS).count(epsilon=1, ledger=ledger())
    dtype = found["day"].dtype
    assert str(dtype) == "datetime64[s]" if engine.is_pandas else dtype == pl.Date
    told = found.dp.provenance
    assert told["cells"] == [
        {"columns": ["day"], "size": 3, "keys": ["date"], "every": "1w", "first": "2025-01-06", "last": "2025-01-20"}
    ]
    assert told["notes"] == ["rows with a value of day before 2025-01-06, or from 2025-01-27 on, are in no group"]
    assert not told["altered"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_datetimes_of_every_unit_to_the_last_tick(unit):
    monday = np.datetime64("2025-01-06", unit)
    tick = np.timedelta64(1, unit)
    values = [monday - tick, monday, monday + np.timedelta64(7, "D") - tick, monday + np.timedelta64(21, "D") - tick]
    values += [monday + np.timedelta64(21, "D"), np.datetime64("NaT", unit), np.datetime64(-(2**63) + 1, unit)]
    values += [np.datetime64(2**63 - 1, unit)]
    frame = pl.DataFrame({"day": np.array(values, dtype=f"M8[{unit}]")})
    found = frame.dp.group_by("day", keys=WEEKS).count(denoise=None, epsilon=EXACT, ledger=ledger())
    assert found["count"].to_list() == [2, 0, 1]


@pytest.mark.parametrize(
    "dtype", ["datetime64[s]", "datetime64[ms]", "datetime64[ns]", "object", "date32", "timestamp"]
)
def test_every_pandas_column_of_dates(dtype):
    pandas = pytest.importorskip("pandas")
    near = [day for day in DAYS if day is None or 2000 < day.year < 2100]
    column = pandas.Series(near, dtype=object)
    if dtype in ("date32", "timestamp"):
        import pyarrow

        column = column.astype(pandas.ArrowDtype(pyarrow.date32() if dtype == "date32" else pyarrow.timestamp("s")))
    elif dtype != "object":
        column = pandas.to_datetime(column).astype(dtype)
    frame = pandas.DataFrame({"day": column})
    found = frame.dp.group_by("day", keys=WEEKS).count(denoise=None, epsilon=EXACT, ledger=ledger())
    assert found["count"].tolist() == [2, 1, 1]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.one_of(st.none(), st.datetimes(datetime(2019, 12, 25), datetime(2023, 1, 8))), max_size=40),
    st.sampled_from(list(EVERY)),
)
def test_groups_are_those_of_truncated_rows(rows, every):
    """Compared with Polars' own truncation, which dpframe never runs on private rows."""
    first = {"1w": date(2020, 1, 6)}.get(every, date(2020, 1, 1))
    keys = dpf.dates(first, date(2022, 12, 31), every=every)
    frame = pl.DataFrame({"day": rows}, schema={"day": pl.Datetime("us")})
    query = check(frame, Query("count", Keys(key_axes(("day",), keys, None)), (("n", Count()),)), dpf.PrivacyUnit())
    (found,) = totals(frame, query, dpf.PrivacyUnit(), 1).values()
    truncated = frame["day"].dt.truncate(every).dt.date().to_list()
    starts = keys.days()[:-1].astype("datetime64[D]").astype(object)
    assert found.tolist() == [truncated.count(day) for day in starts]


def test_dates_beside_keys_and_for_people(engine):
    rows = {"day": DAYS * 4, "ward": ["A", "B", "A"] * 12, "who": [number // 18 for number in range(36)]}
    keys, people = {"day": WEEKS, "ward": ["A", "B"]}, dpf.Ledger(epsilon=1e12, unit="who")
    found = engine.columns(
        engine(rows)
        .dp.group_by("day", "ward", keys=keys)
        .agg(n=dpf.count(), p=dpf.n_units(), denoise=None, epsilon=EXACT, max_rows=18, max_groups=6, ledger=people)
    )
    assert found["ward"] == ["A", "B"] * 3
    assert sum(found["n"]) == pytest.approx(16, abs=0.01)
    assert 0 < sum(found["p"]) < 16
    assert len(found["day"]) == 6


def test_contributions_by_week():
    rows = {"day": DAYS[:5] * 6, "who": [number // 5 for number in range(30)]}
    ledger_of = dpf.Ledger(epsilon=1e9, unit="who")
    found = pl.DataFrame(rows).dp.contributions(by="day", keys=WEEKS, epsilon=EXACT, denoise=None, ledger=ledger_of)
    at = found.filter(pl.col("count") > 0.5)
    assert at["groups_left"].to_list() == [3.0]  # each of six people is in three weeks
    assert at["count"].to_list() == [6.0]


def test_in_preview_within_together_replay_and_pictures(engine, tmp_path):
    frame = engine({"day": DAYS * 50})
    plan = frame.dp.preview.group_by("day", keys=WEEKS).count(epsilon=1)
    assert "day: 3 dates every 1w" in repr(plan)
    assert frame.dp.preview.group_by("day", keys=WEEKS).count(within=20).cost.epsilon < 0.3
    both = dpf.release_together({"weeks": plan, "all": frame.dp.preview.count()}, epsilon=1, ledger=ledger())
    assert len(both["weeks"]) == 3
    durable = dpf.Ledger(epsilon=1, path=tmp_path / "weeks.ledger", dataset="weeks")
    asked = {"epsilon": 0.5, "label": "weeks", "snapshot": "1", "ledger": durable, "denoise": "auto"}
    assert counts(engine, frame, WEEKS, **asked) == counts(engine, frame, WEEKS, **asked)
    assert durable.spent.epsilon == 0.5
    with pytest.raises(dpf.LedgerError):
        counts(engine, frame, dpf.dates("2025-01-06", "2025-01-27", every="1w"), **asked)
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    assert both["weeks"].dp.plot().to_dict()
    assert ">2025-01-13<" in both["weeks"].dp.table().as_raw_html()


# Histograms


def test_a_histogram_of_weeks_has_whole_weeks(engine):
    frame = engine({"day": DAYS})
    asked = {"denoise": None, "epsilon": EXACT, "ledger": ledger()}
    found = engine.columns(frame.dp.histogram("day", bins="1w", range=("2025-01-06", "2025-01-27"), **asked))
    assert found["count"] == [2, 1, 1]  # the Monday on the right edge is in no week
    assert [np.datetime64(day, "D") for day in found["day_right"]] == list(WEEKS.days()[1:].astype("datetime64[D]"))
    grouped = frame.dp.group_by(dpf.bins("day", "1w", range=("2025-01-06", "2025-01-27"))).count(**asked)
    assert engine.columns(grouped) == found
    clipped = frame.dp.histogram("day", bins="1w", range=("2025-01-06", "2025-01-27"), outside="clip", **asked)
    assert engine.columns(clipped)["count"] == [4, 1, 3]
    quarter = frame.dp.preview.histogram("day", bins="1q", range=("2025-01-01", "2026-01-01"), epsilon=1)
    assert quarter.query.keys.cells == 4
    assert quarter.notes == ("values of day outside [2025-01-01, 2026-01-01) are left out",)


def test_shares_and_distributions_of_weeks(engine):
    asked = {"range": ("2025-01-06", "2025-01-27"), "epsilon": EXACT, "ledger": ledger()}
    found = engine.columns(engine({"day": DAYS}).dp.ecdf("day", bins="1w", **asked))
    assert found["ecdf"] == pytest.approx([5 / 8, 5 / 8, 7 / 8], abs=0.01)  # one day is after the last week
    shares = engine.columns(engine({"day": DAYS}).dp.histogram("day", bins="1w", normalize=True, **asked))
    assert shares["share"] == pytest.approx([2 / 4, 1 / 4, 1 / 4], abs=0.01)


def test_ranges_of_dates_are_edges(engine):
    frame, asked = engine({"day": DAYS}), {"denoise": None, "epsilon": EXACT, "ledger": ledger()}
    week = timedelta(7)
    edges = pl.date_range(date(2025, 1, 6), date(2025, 1, 27), "1w", eager=True)
    by_hand = frame.dp.histogram("day", bins=[date(2025, 1, 6) + place * week for place in range(4)], **asked)
    assert engine.columns(frame.dp.histogram("day", bins=edges, **asked)) == engine.columns(by_hand)
    assert engine.columns(by_hand)["count"] == [2, 1, 2]  # as for any list of edges, the last bin has its right edge
    pandas = pytest.importorskip("pandas")
    stamps = pandas.date_range("2025-01-06", "2025-01-27", freq="W-MON")
    assert engine.columns(frame.dp.histogram("day", bins=stamps, **asked))["count"] == [2, 1, 2]
    for keys in (stamps, edges):
        with pytest.raises(dpf.InvalidType, match=r'Write for instance keys=dpf.dates\("2025-01-06"'):
            frame.dp.preview.group_by("day", keys=keys).count(epsilon=1)
