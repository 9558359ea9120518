"""Rows with the same label match only if they are the same group: a period, REST, an end bin, a total."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

CLEAR = 1e6  # an epsilon at which noise is negligible
WARDS = "ABCDE"


def _rows() -> pl.DataFrame:
    days = [datetime(2026, 1, 1) + timedelta(hours=6 * step) for step in range(4 * 90)]
    size = len(days)
    return pl.DataFrame(
        {
            "ward": [WARDS[place % 5] for place in range(size)],
            "sex": [place // 5 % 2 for place in range(size)],
            "age": [float(place % 40) for place in range(size)],
            "day": days,
        }
    )


def _counts(frame, *by, keys, **more):
    ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic")
    return frame.dp.group_by(*by, keys=keys).count(epsilon=CLEAR, denoise=None, ledger=ledger, **more)


def _by_ward(wards, rest=True, frame=None, **more):
    keys = {"sex": [0, 1], "ward": [*wards, *([dpf.REST] if rest else [])]}
    return _counts(_rows() if frame is None else frame, "sex", "ward", keys=keys, **more)


def _by_day(first, last, every, frame=None, **more):
    frame = _rows() if frame is None else frame
    return _counts(frame, "day", keys=dpf.dates(first, last, every=every, **more))


def _bins(*edges, outside="drop"):
    ledger = dpf.Ledger(epsilon=1e9)
    return _rows().dp.histogram("age", bins=edges, outside=outside, epsilon=CLEAR, denoise=None, ledger=ledger)


def _both_ways(one, other):
    """Yield every call that matches two results."""
    yield lambda: dpf.combine("b - a", {"a": one, "b": other})
    yield lambda: dpf.combine("b - a", {"a": other, "b": one})
    if "levels" not in one.dp.provenance:
        yield lambda: dpf.compare(one, other, samples="different")


def _check_refused(one, other, words):
    for asked in _both_ways(one, other):
        with pytest.raises(dpf.InvalidArgument, match=rf"^results must have the same groups, and {words}"):
            asked()


def _numbers(frame, name="value"):
    return np.rint(np.asarray(frame[name], dtype=np.float64)).tolist()


@pytest.mark.parametrize("rollup", [False, True])
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_everything_else_is_matched_beside_the_same_keys_alone(library, rollup):
    if library == "pandas":
        pytest.importorskip("pandas")
    frame = _rows() if library == "polars" else _rows().to_pandas()
    more = {"frame": frame, "rollup": rollup}
    few, many, again = (_by_ward(wards, **more) for wards in ("AB", "ABC", "BA"))
    _check_refused(few, many, r"ward has a group of all other values, .*Leave them out: result\.dp\.filter\(")
    _check_refused(few, _by_ward(["A", "B", "Other"], rest=False, **more), r"ward has a group of all other values")
    same = dpf.combine("b - a", {"a": few, "b": again})
    assert _numbers(same) == [0.0] * len(few)
    one, other = (result.dp.filter({"ward": ["A", "B"]}) for result in (few, many))
    for asked in _both_ways(one, other):  # the way out
        assert len(asked()) == 4
    assert _numbers(dpf.combine("b - a", {"a": one, "b": other})) == [0.0] * 4


def test_what_is_else_is_told_by_its_place_and_by_all_keys():
    few, many, again = (_by_ward(wards) for wards in ("AB", "ABC", "BA"))
    renamed = [result.dp.relabel({"ward": {"Other": "Elsewhere"}}) for result in (few, many, again)]
    _check_refused(renamed[0], renamed[1], r"ward has a group of all other values")
    assert len(dpf.combine("b - a", {"a": renamed[0], "b": renamed[2]})) == 6
    some = [result.dp.filter({"ward": ["A", "Other"]}) for result in (few, again)]
    _check_refused(*some, r"ward has a group of all other values")  # which other values it holds is not shown
    assert _numbers(dpf.combine("b - a", {"a": some[0], "b": few})) == [0.0] * 4  # both from one release
    alone = [result.dp.filter({"ward": ["Other"]}) for result in (few, many)]
    _check_refused(*alone, r"ward has a group of all other values, .*Release both by the same keys\.")
    assert len(dpf.combine("b - a", {"a": alone[0].dp.select("sex", "count"), "b": alone[1].dp.select("sex", "count")}))


def test_each_of_three_results_is_compared_with_the_first():
    results = {name: _by_ward(wards) for name, wards in {"a": "AB", "b": "BA", "c": "ABC"}.items()}
    assert len(dpf.combine("a + b", results)) == 6
    with pytest.raises(dpf.InvalidArgument, match="ward has a group of all other values"):
        dpf.combine("a + b + c", results)


def test_keys_that_became_columns_are_not_compared():
    few, many = (_by_ward(wards) for wards in ("AB", "ABC"))
    for later, earlier in ((few.dp.wide("ward"), many.dp.wide("ward")), (few, many.dp.wide("ward"))):
        with pytest.raises(dpf.InvalidArgument, match=r"(later|earlier) must have its keys in rows.*Compare first"):
            dpf.compare(later, earlier, samples="different")


def test_a_month_is_not_its_first_day():
    months, days = (_by_day("2026-01-01", "2026-03-01", every) for every in ("1mo", "1d"))
    weeks = _by_day("2025-12-29", "2026-03-30", "1w")
    _check_refused(months, days, r"day has .*every='1mo' in ")
    _check_refused(weeks, days, r"day has .*every='1w' in ")
    again = _by_day("2026-02-01", "2026-04-01", "1mo")
    assert _numbers(dpf.combine("b - a", {"a": months, "b": again})) == [0.0, 0.0]
    assert len(dpf.compare(again, months, samples="different")) == 2
    declared = _counts(_rows().with_columns(pl.col("day").dt.date()), "day", keys=[date(2026, 1, 1), date(2026, 2, 1)])
    _check_refused(months, declared, r"day has .*every='1mo' in ")
    assert _numbers(dpf.combine("b - a", {"a": days, "b": declared})) == [0.0, 0.0]  # a plain date is a day
    words = {"2026-01-01": "January", "2026-02-01": "February"}
    named = [result.dp.relabel({"day": words}) for result in (again, declared)]
    assert len(dpf.combine("b - a", {"a": named[0], "b": named[1]})) == 1  # the caller's own labels match


def test_days_of_a_time_zone_are_no_days_of_another():
    zoned = [_rows().with_columns(pl.col("day").dt.replace_time_zone(zone)) for zone in ("UTC", "Asia/Tokyo")]
    days = [_by_day("2026-01-01", "2026-01-05", "1d", frame) for frame in zoned]
    _check_refused(*days, r"day has zone='(UTC|Asia/Tokyo)' in ")


DAYS = [date(2026, 1, 1), date(2026, 1, 2)]
MIDNIGHTS = [datetime(2026, 1, 1), datetime(2026, 1, 2)]


def _moments_and_days(library):
    moments, days = _rows(), _rows().with_columns(pl.col("day").dt.date())
    if library == "pandas":
        pytest.importorskip("pandas")
        moments, days = moments.to_pandas(), days.to_pandas().assign(day=pl.Series(days["day"]).to_list())
    return moments, days


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_day_is_not_its_midnight(library):
    """Each day has 4 rows, one of them at 00:00."""
    moments, days = _moments_and_days(library)
    whole = [_by_day("2026-01-01", "2026-01-02", "1d", frame) for frame in (moments, days)]
    whole.append(_counts(days, "day", keys=DAYS))
    at_midnight = [_counts(moments, "day", keys=keys) for keys in (MIDNIGHTS, DAYS)]
    assert [_numbers(one, "count") for one in (*whole, *at_midnight)] == [[4.0, 4.0]] * 3 + [[1.0, 1.0]] * 2
    for one in whole:
        for other in at_midnight:
            _check_refused(one, other, r"day has (whole days|moments) in .*, (moments|whole days) in .*dpf\.dates\(")
    for alike in (whole, at_midnight):
        for other in alike[1:]:
            assert _numbers(dpf.combine("b - a", {"a": alike[0], "b": other})) == [0.0, 0.0]
    words = {"2026-01-01": "first", "2026-01-02": "second"}
    named = [result.dp.relabel({"day": words}) for result in (whole[0], at_midnight[0])]
    assert len(dpf.combine("b - a", {"a": named[0], "b": named[1]})) == 2  # the caller's own labels match


def test_a_midnight_of_a_column_of_dates_is_its_day():
    days = _rows().with_columns(pl.col("day").dt.date())
    asked = [_counts(days, "day", keys=keys) for keys in (DAYS, MIDNIGHTS)]
    assert [one.dp.provenance["cells"][0]["keys"] for one in asked] == [["date"], ["date"]]
    assert _numbers(dpf.combine("b - a", {"a": asked[0], "b": asked[1]})) == [0.0, 0.0]
    pairs = {"ward": ["A", "B"], "day": MIDNIGHTS}
    combined = _counts(days, "ward", "day", keys=pl.DataFrame(pairs))
    assert combined.dp.provenance["cells"][0]["keys"] == ["text", "date"]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_instants_are_no_times_of_a_clock(library):
    zone = "Europe/Berlin"
    plain = _rows()
    if library == "pandas":
        pytest.importorskip("pandas")
        plain = plain.to_pandas()
        frames = [plain, plain.assign(day=plain["day"].dt.tz_localize(zone))]
    else:
        frames = [plain, plain.with_columns(pl.col("day").dt.replace_time_zone(zone))]
    edges = [datetime(2026, 1, day) for day in (1, 2, 3)]
    utc, berlin = ([edge.replace(tzinfo=ZoneInfo(name)) for edge in edges] for name in ("UTC", zone))
    same = [edge.astimezone(ZoneInfo("UTC")) for edge in berlin]

    def binned(frame, edges):
        return frame.dp.histogram("day", bins=edges, epsilon=CLEAR, denoise=None, ledger=dpf.Ledger(epsilon=1e9))

    for aware in (utc, berlin):  # in UTC they print like those without a zone
        _check_refused(binned(frames[0], edges), binned(frames[1], aware), r"day_left has a time zone in .*, none in ")
        declared = [_counts(frame, "day", keys=keys) for frame, keys in zip(frames, (edges, aware), strict=True)]
        _check_refused(*declared, r"day has a time zone in .*, none in .*Release both of columns with")
    found = dpf.combine("b - a", {"a": binned(frames[1], berlin), "b": binned(frames[1], same)})
    assert (_numbers(found), list(found["day_left"])) == ([0.0, 0.0], berlin[:2])  # the same instants


def test_end_bins_that_hold_what_is_outside_are_the_same_ends():
    clipped, longer = (_bins(*edges, outside="clip") for edges in ((0, 10, 20), (0, 10, 20, 30)))
    _check_refused(clipped, longer, r"age_left has a group of all other values")
    _check_refused(clipped, _bins(0, 10, 20), r"age_left has a group of all other values")
    assert _numbers(dpf.combine("b - a", {"a": clipped, "b": _bins(0, 10, 20, outside="clip")})) == [0.0, 0.0]
    middle = longer.dp.filter({"age_left": [10.0]})
    assert len(dpf.combine("b - a", {"a": _bins(5, 10, 20, 25), "b": middle})) == 1


def test_bins_that_share_an_edge_are_not_one_group():
    wide, fine = _bins(0, 10, 20, 30), _bins(0, 5, 20, 30)
    for on in (None, "age", "age_left", "age_right", ["age_right"], ["age_left", "age_right"]):
        found = dpf.combine("b - a", {"a": wide, "b": fine}, on=on)
        assert found.columns == ["age_left", "age_right", "value", "value_error", "covers"]
        assert (found["age_left"].to_list(), _numbers(found)) == ([20.0], [0.0])
    keyed = _counts(_rows().rename({"age": "age_left"}), "age_left", keys=[0.0, 10.0])
    with pytest.raises(dpf.InvalidArgument, match=r"^on must name keys that all .* \['age_left', 'age_right'\]\. Name"):
        dpf.combine("b - a", {"a": wide, "b": keyed}, on="age_left")
    assert _numbers(dpf.combine("b - a", {"a": keyed, "b": keyed}, on="age_left")) == [0.0, 0.0]  # a key, not an edge


def test_a_last_bin_that_holds_its_right_edge_is_no_bin_without_it():
    """16 rows have age 20: [10, 20] holds them, and [10, 20) does not."""
    short, longer = _bins(0, 10, 20), _bins(0, 10, 20, 30)
    _check_refused(short, longer, r"the last bin of age_left, which holds its right edge too, is not known to be")
    grouped = (
        _rows()
        .dp.group_by(dpf.bins("age", [0, 10, 20]))
        .count(epsilon=CLEAR, denoise=None, ledger=dpf.Ledger(epsilon=1e9))
    )
    _check_refused(grouped, longer, r"the last bin of age_left")
    assert _numbers(dpf.combine("b - a", {"a": grouped, "b": short})) == [0.0, 0.0]
    assert _numbers(dpf.combine("b - a", {"a": short, "b": _bins(10, 20)})) == [0.0]
    first = [result.dp.filter({"age_left": [0.0]}) for result in (short, longer)]  # the way out
    assert _numbers(dpf.combine("b - a", {"a": first[0], "b": first[1]})) == [0.0]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_last_bin_up_to_a_day_is_none_up_to_its_midnight(library):
    """Each day has 4 rows, one of them at 00:00; the last bin of dates includes all 4 rows of its last day."""
    moments, days = _moments_and_days(library)

    def by(frame, bins, **more):
        ledger = dpf.Ledger(epsilon=1e9)
        return frame.dp.histogram("day", bins=bins, epsilon=CLEAR, denoise=None, ledger=ledger, **more)

    dates = [date(2026, 1, 1), date(2026, 1, 3), date(2026, 1, 5)]
    midnights = [datetime(2026, 1, 1), datetime(2026, 1, 3), datetime(2026, 1, 5)]
    of_moments = [by(moments, edges) for edges in (dates, midnights)]
    of_days = [by(days, edges) for edges in ((dates, midnights) if library == "polars" else (dates,))]
    for alike, numbers in ((of_moments, [8.0, 9.0]), (of_days, [8.0, 12.0])):
        assert [_numbers(one, "count") for one in alike] == [numbers] * len(alike)
        for other in alike[1:]:
            assert _numbers(dpf.combine("b - a", {"a": alike[0], "b": other})) == [0.0, 0.0]
    for one in of_moments:
        for other in of_days:
            _check_refused(
                one, other, r"edges of day_left are .*(whole days|moments) in .*: some bins .*Leave them out"
            )
            first = [result.dp.filter({"day_left": [date(2026, 1, 1)]}) for result in (one, other)]  # the way out
            assert _numbers(dpf.combine("b - a", {"a": first[0], "b": first[1]})) == [0.0]
    for more in ({"outside": "clip"}, {"range": (date(2026, 1, 1), date(2026, 1, 5))}):
        both = [by(frame, "1d" if "range" in more else dates, **more) for frame in (moments, days)]
        assert not any(_numbers(dpf.combine("b - a", {"a": both[0], "b": both[1]})))  # no edge lies within a day


def test_the_record_of_bins_says_what_the_column_holds():
    moments, days = _rows(), _rows().with_columns(pl.col("day").dt.date())
    noon = [datetime(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(2026, 1, 3)]
    ledger, said = dpf.Ledger(epsilon=1e9), []
    for frame, edges in ((moments, noon), (days, noon), (moments, DAYS), (days, DAYS)):
        made = frame.dp.histogram("day", bins=edges, outside="clip", epsilon=CLEAR, denoise=None, ledger=ledger)
        (axis,) = made.dp.provenance["cells"]
        said.append((made, axis["bins"], axis.get("holds")))
    assert [kinds for _, *kinds in said] == [
        ["datetime", None],
        ["datetime", "date"],
        ["date", "datetime"],
        ["date", None],
    ]
    _check_refused(
        said[0][0], said[1][0], r"edges of day_(left|right) are .*: some bins are not known"
    )  # [0:00, 12:00)


def test_steps_of_time_hold_no_right_edge_and_say_so():
    def by(bins, **more):
        ledger = dpf.Ledger(epsilon=1e9)
        dates = _rows().with_columns(pl.col("day").dt.date())
        return dates.dp.histogram("day", bins=bins, epsilon=CLEAR, denoise=None, ledger=ledger, **more)

    months = by("1mo", range=(date(2026, 1, 1), date(2026, 3, 1)))
    assert months.dp.provenance["cells"][0]["closed"] == "left"
    longer = by("1mo", range=(date(2026, 1, 1), date(2026, 4, 1)))
    assert _numbers(dpf.combine("b - a", {"a": months, "b": longer})) == [0.0, 0.0]
    written = by([date(2026, 1, 1), date(2026, 2, 1)])
    _check_refused(written, months, r"the last bin of day_left, which holds its right edge too")
    intervals = by([date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)])
    assert _numbers(dpf.combine("b - a", {"a": intervals.dp.filter({"day_left": [date(2026, 1, 1)]}), "b": months}))


def test_totals_are_matched_where_they_are_of_the_same_keys():
    few, many, again = (_by_ward(wards, rest=False, rollup=True) for wards in ("AB", "ABC", "BA"))
    _check_refused(few, many, r"the totals of ward are of keys that are not known")
    assert _numbers(dpf.combine("b - a", {"a": few, "b": again})) == [0.0] * 7
    cells = [result.dp.filter({"ward": ["A", "B"]}) for result in (few, many)]
    assert _numbers(dpf.combine("b - a", {"a": cells[0], "b": cells[1]})) == [0.0] * 4
    everyone = [_by_ward(wards, rollup=True).dp.filter({"ward": ["A", None]}) for wards in ("AB", "ABC")]
    assert _numbers(dpf.combine("b - a", {"a": everyone[0], "b": everyone[1]})) == [0.0] * 5
    _check_refused(everyone[0], few.dp.filter({"ward": ["A", None]}), r"the totals of ward are of keys")


def test_totals_of_tables_and_of_combinations_are_told_apart():
    def tables(wards):
        ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic")
        keys = {"sex": [0, 1], "ward": list(wards)}
        return _rows().dp.marginals(
            ["sex", "ward"], keys=keys, degree=2, epsilon=CLEAR, mechanism="gaussian", delta=1e-6, denoise=None,
            ledger=ledger,
        )  # fmt: skip

    _check_refused(tables("AB"), tables("ABC"), r"the totals of ward are of keys")
    assert len(dpf.combine("b - a", {"a": tables("AB"), "b": tables("AB")})) == 9
    pairs = [{"sex": [0, 0, 1], "ward": ["A", "B", "A"]}, {"sex": [0, 1, 1], "ward": ["A", "B", "A"]}]
    one, other = (_counts(_rows(), "sex", "ward", keys=pl.DataFrame(keys), rollup=True) for keys in pairs)
    _check_refused(one, other, r"the totals of (sex|ward) are of keys")
