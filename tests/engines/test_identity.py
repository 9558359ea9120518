"""Identity of units and keys: two are equal exactly if the dtype of their column, a public fact, makes them so.

Numbers in the names of tests are those of attacks in `docs/assurance/security.md`.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.engines.columns import identity
from dpframe.engines.columns.source import source_of
from dpframe.engines.pieces import spark, unit_parts
from dpframe.engines.sums import cells, weights
from dpframe.queries import keys as of_keys
from dpframe.queries.sameness import same, same_key
from dpframe.testing import exact

EXACT = 1e9  # at this epsilon noise is negligible
NEAR = 1e-3
BERLIN = ZoneInfo("Europe/Berlin")
REPEATED = [datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]
LOWEST = -(2**63)
STEPS = st.integers(LOWEST + 1, 2**63 - 1)
FEW = settings(max_examples=30, deadline=None)
HALVES = [float(half) for half in np.arange(2**16, dtype=np.uint16).view(np.float16) if half == half]  # 16-bit floats


def paid(unit=None):
    return {"epsilon": EXACT, "denoise": None, "ledger": dpf.Ledger(epsilon=1e15, unit=unit)}


def units(frame, nulls="one-unit"):
    """Return the number of units of a frame, each of which adds one row."""
    unit = dpf.PrivacyUnit("id", max_rows=1, nulls=nulls)
    return frame.dp.count(**paid(unit))["count"].to_list()[0]


def counts(frame, keys, **words):
    return frame.dp.group_by("id", keys=keys).count(**paid(**words))["count"].to_list()


def near(*numbers):
    return pytest.approx(list(numbers), abs=NEAR)


def pandas_frame(values):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"id": values})


def refused(frame, keys, error, words):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(error, match=words):
        frame.dp.group_by("id", keys=keys).count(epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0


# Keys that differ in Python and are equal in the dtype


DECIMALS = pl.DataFrame({"id": pl.Series(["0.1", "0.2"]).cast(pl.Decimal(38, 1))})
TWICE = {
    "a float and a decimal": (DECIMALS, [0.1, Decimal("0.1")]),
    "digits beyond a float's": (DECIMALS, [1e23, 10**23]),
    "zeros after the point": (DECIMALS, [Decimal("0.1"), 0.10, Decimal("0.3")]),
}
ONE_INSTANT = {
    "in two zones": [
        datetime(2024, 1, 1, 12, tzinfo=UTC),
        datetime(2024, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
    ],
    "in a repeated hour": [REPEATED[1], datetime(2024, 10, 27, 1, 30, tzinfo=UTC)],
}


@pytest.mark.parametrize("case", TWICE)
def test_99_keys_that_the_dtype_does_not_tell_apart_are_refused(case):
    frame, keys = TWICE[case]
    for each in (frame, frame.lazy()):
        refused(each, keys, dpf.InvalidArgument, "must be distinct as the dtype Decimal.* compares them")
        refused(each.head(0), keys, dpf.InvalidArgument, "must be distinct")
    with pytest.raises(dpf.InvalidArgument, match="categories must be distinct"):
        frame.dp.mode("id", categories=keys, epsilon=1, ledger=dpf.Ledger(epsilon=1))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_the_different_ones_of_numbers_are_those_of_numpy(values):
    numbers = np.array(values, dtype=np.int64)
    for each in (numbers, numbers % 3, numbers.view(np.uint64)):
        before = each.copy()
        found = identity.different(each)
        assert found.dtype == each.dtype
        assert np.array_equal(found, np.unique(each))
        assert np.array_equal(each, before)


def test_99_combinations_that_the_dtypes_do_not_tell_apart_are_refused():
    frame = DECIMALS.with_columns(ward=pl.lit("A"))
    keys = pl.DataFrame({"id": pl.Series([0.1, Decimal("0.1"), 0.1], dtype=pl.Object), "ward": ["A", "A", "B"]})
    with pytest.raises(dpf.InvalidArgument, match="are one value there"):
        frame.dp.group_by("id", "ward", keys=keys).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))


def test_99_decimals_of_arrow():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": pd.array([Decimal("0.1")], dtype=pd.ArrowDtype(pa.decimal128(5, 1)))})
    refused(frame, [0.1, Decimal("0.1")], dpf.InvalidArgument, "must be distinct")
    assert counts(frame, [0.1, Decimal("0.2"), True]) == near(1, 0, 0)


@pytest.mark.parametrize("case", ONE_INSTANT)
@pytest.mark.parametrize("dtype", ["object", "category"])
def test_220_one_instant_is_one_unit_as_a_level_of_a_categorical_too(case, dtype):
    """pandas makes a level of each value that differs in Python, as an instant in two zones may in a repeated hour."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": pd.Series(ONE_INSTANT[case], dtype=object).astype(dtype), "cost": 10, "k": 1})
    assert units(frame) == units(frame, "drop") == pytest.approx(1, abs=NEAR)
    one = dpf.PrivacyUnit("id", max_rows=1)
    both = dpf.PrivacyUnit(["id", "k"], max_rows=1)
    assert frame.dp.sum("cost", bounds=(0, 10), **paid(one))["cost_sum"].to_list() == near(10)
    assert frame.dp.count(**paid(both))["count"].to_list() == near(1)
    assert frame.dp.n_distinct("id", **paid())["id_n_distinct"].to_list() == near(1)
    assert counts(frame, ONE_INSTANT[case][1:]) == near(2)


@pytest.mark.parametrize("levels", ["text", "numbers", "datetimes", "objects"])
def test_each_level_of_a_categorical_is_a_unit_and_none_is_missing(levels):
    pd = pytest.importorskip("pandas")
    values = {
        "text": ["a", "b", "1"],
        "numbers": [1, 2, 5],
        "datetimes": list(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]).tz_localize("UTC")),
        "objects": ["1", 1, Decimal("2.5")],
    }[levels]
    frame = pd.DataFrame({"id": pd.Categorical([*values, values[0], None], categories=values)})
    assert (units(frame), units(frame, "drop")) == (pytest.approx(4, abs=NEAR), pytest.approx(3, abs=NEAR))
    assert frame.dp.count("id", **paid())["count"].to_list() == near(4)


def test_a_level_that_is_missing_is_no_value():
    """With floats of Arrow, pandas makes NaN a level of a categorical."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    values = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([float("nan"), 1.0, None])))
    for dtype in (values.dtype, "category"):
        frame = pd.DataFrame({"id": values.astype(dtype)})
        assert (units(frame), units(frame, "drop")) == (pytest.approx(2, abs=NEAR), pytest.approx(1, abs=NEAR))
        assert frame.dp.count("id", **paid())["count"].to_list() == near(1)
        assert frame.dp.n_distinct("id", **paid())["id_n_distinct"].to_list() == near(1)


TOO_LATE = "9999-12-31T23:30"  # in Berlin this lies in the year 10000, which Python lacks


@pytest.mark.parametrize("kind", ["zone", "zone in ns", "arrow", "arrow zone", "arrow span", "interval"])
def test_260_no_level_that_python_cannot_hold_makes_a_call_fail(kind):
    """Of levels pandas makes objects all at once, and raises for one far time: a charged call failed."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    times = np.array(["2024-05-01", "2025-05-01", TOO_LATE], "M8[us]")

    def in_berlin(times):
        return pd.DatetimeIndex(times).tz_localize("UTC").tz_convert("Europe/Berlin")

    def of_arrow(values, held):
        return pd.Index(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values).cast(held)])))

    levels = {
        "zone": lambda: in_berlin(times),
        "zone in ns": lambda: in_berlin(np.array([*times[:2], pd.Timestamp.max], "M8[ns]")),
        "arrow": lambda: of_arrow(np.array([*times[:2], "10000-01-01"], "M8[us]"), pa.timestamp("us")),
        "arrow zone": lambda: of_arrow(times, pa.timestamp("us", "Europe/Berlin")),
        "arrow span": lambda: of_arrow(np.array([1, 2, 2**55]), pa.duration("s")),
        "interval": lambda: pd.IntervalIndex.from_arrays(in_berlin(times[[0, 0, 0]]), in_berlin(times)),
    }[kind]()
    frame = pd.DataFrame({"id": pd.Categorical.from_codes([0, 1, 1, 2, 2, -1], categories=levels)})
    assert frame.dp.count("id", **paid())["count"].to_list() == near(5)
    assert units(frame, "drop") == pytest.approx(3, abs=NEAR)
    assert counts(frame, ["x"]) == near(0)
    assert frame.dp.count(where={"id": "x"}, **paid())["count"].to_list() == near(0)
    ledger = dpf.Ledger(epsilon=1e7, delta=0.5, accounting="basic")
    with ledger:
        found = frame.dp.group_by("id", keys=dpf.discover(delta=1e-3)).count(epsilon=1e6, denoise=None)
    assert len(found) >= (0 if kind == "interval" else 1)
    if "zone" in kind and "ns" not in kind:
        keys = [datetime(9999, 12, 31, 23, 30, tzinfo=UTC), datetime(2025, 5, 1, tzinfo=UTC)]
        assert counts(frame, keys) == near(2, 2)


def test_231_a_level_that_is_nan_is_missing_where_pandas_calls_it_present():
    """Masked floats may hold both NaN and NA: once, the unit of all rows without an id counted twice."""
    pd = pytest.importorskip("pandas")
    levels = pd.Index(pd.arrays.FloatingArray(np.array([1.0, np.nan]), np.array([False, False])))
    frame = pd.DataFrame({"id": pd.Categorical.from_codes([0, 1, 1, -1], categories=levels), "v": [1.0, 2.0, 3.0, 4.0]})
    assert frame.dp.count("id", **paid())["count"].to_list() == near(1)
    assert (units(frame), units(frame, "drop")) == (pytest.approx(2, abs=NEAR), pytest.approx(1, abs=NEAR))
    unit = dpf.PrivacyUnit("id", nulls="one-unit")
    whole = frame.dp.sum("v", bounds=(0, 10), max_rows=1, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6, unit=unit))
    assert whole["v_sum"].to_list() == near(4)  # 1, plus the mean of 2, 3 and 4 for the one unit


@pytest.mark.parametrize("case", ONE_INSTANT)
def test_99_one_instant_is_one_key(engine, case):
    frame = engine({"id": [datetime(2024, 1, 1, 12, tzinfo=UTC)]})
    refused(frame, ONE_INSTANT[case], dpf.InvalidArgument, "must be distinct")


def test_99_both_hours_of_a_repeated_one_are_two_keys(engine):
    frame = engine({"id": [moment.astimezone(UTC) for moment in (*REPEATED, REPEATED[1])]})
    assert counts(frame, REPEATED) == near(1, 2)


def test_99_both_hours_of_a_repeated_one_are_two_conditions_and_values(engine):
    """Two statistics of one call stay apart, although Python takes the two hours for equal."""
    frame = engine({"id": [moment.astimezone(UTC) for moment in (*REPEATED, REPEATED[1])]})
    for pair in (REPEATED, REPEATED[::-1]):
        asked = {f"n{number}": dpf.count(where={"id": [moment]}) for number, moment in enumerate(pair)}
        asked |= {f"p{number}": dpf.proportion("id", moment) for number, moment in enumerate(pair)}
        with exact():
            found = frame.dp.agg(**asked, epsilon=1, checks=False, ledger=dpf.Ledger(epsilon=1))
        rows = [1, 2] if pair is REPEATED else [2, 1]
        assert [found[name].to_list()[0] for name in asked] == pytest.approx([*rows, *(row / 3 for row in rows)])


def test_99_a_time_with_a_zone_is_no_time_of_a_column():
    frame = pl.DataFrame({"id": [time(12), time(13)]})
    for each in (frame, frame.lazy()):
        for keys in ([time(12), time(12, tzinfo=UTC)], [time(12, tzinfo=UTC)]):
            refused(each, keys, dpf.InvalidArgument, "must convert exactly to its dtype Time")


@pytest.mark.parametrize("keys", [[True, 1], [1, 1.0], [0, False], [-0.0, 0.0], [2, Decimal(2)], [0.5, Decimal("0.5")]])
def test_99_equal_numbers_are_one_key(engine, keys):
    refused(engine({"id": [1, 2]}), keys, dpf.InvalidArgument, "must be distinct")


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "object", "category"])
def test_99_numbers_of_pandas_are_compared_alike_whatever_their_dtype(dtype):
    """One missing or odd value changes the dtype, so no refusal may depend on the dtype."""
    frame = pandas_frame([1, 2]).astype(dtype)
    assert counts(frame, [0.1, Decimal("0.1"), 1, 2**53, 2**53 + 1]) == near(0, 0, 1, 0, 0)


@pytest.mark.parametrize("key", [sys.float_info.max, -sys.float_info.max, 1e308, 2**1023])
def test_237_the_largest_floats_are_keys_whatever_the_dtype(key):
    """One odd value turns a column of floats into objects, so a key must find the same rows in both."""
    values = [sys.float_info.max] * 3 + [-sys.float_info.max] * 2 + [1e308, 2.0**1023, 1.0]
    among = near(sum(value == key for value in values))
    for frame in (pandas_frame(values), pandas_frame(values).astype(object), pandas_frame([*values, "odd"])):
        assert counts(frame, [key]) == among
        with exact():
            told = frame.dp.count(where={"id": [key]}, epsilon=1, ledger=dpf.Ledger(epsilon=1))
        assert told["count"].tolist() == among
    assert counts(pl.DataFrame({"id": values}), [key]) == among


@pytest.mark.parametrize("key", [2**1024 - 1, 2**1024, 10**400], ids=["rounded up", "the next power", "far beyond"])
def test_integers_beyond_all_floats_are_keys_without_rows(key):
    for values in ([sys.float_info.max, 1.0], [sys.float_info.max, "odd"]):
        with exact():
            told = pandas_frame(values).dp.count(where={"id": [key]}, epsilon=1, ledger=dpf.Ledger(epsilon=1))
        assert told["count"].tolist() == [0.0]


def test_99_ends_of_a_graph_are_compared_as_keys():
    frame = pl.DataFrame({"id": [moment.astimezone(UTC) for moment in REPEATED]})
    ends = [(REPEATED[0], REPEATED[1].astimezone(UTC))]
    asked = frame.dp.group_by("id", keys=REPEATED)
    asked.count(epsilon=1, denoise="trend-filter", graph=ends, ledger=dpf.Ledger(epsilon=1))


# Positions of rows: one for each row, by any way


def _keys(kind):
    return {"integer": STEPS, "near": st.integers(-40, 40), "float": st.floats(allow_nan=False), "text": st.text()}[
        kind
    ]


@pytest.mark.parametrize("kind", ["integer", "near", "float", "text"])
@given(data=st.data())
@FEW
def test_100_101_each_row_has_one_position_however_many_rows_there_are(kind, data):
    one = _keys(kind).filter(lambda value: kind != "text" or value.isprintable())
    keys = data.draw(st.lists(one, unique_by=lambda value: value + 0.0 if kind == "float" else value, max_size=8))
    rows = data.draw(st.lists(st.none() | one | (st.sampled_from(keys) if keys else one), max_size=30))
    dtype = {"float": pl.Float64, "text": pl.String}.get(kind, pl.Int64)
    brought = pl.DataFrame({"x": pl.Series(rows, dtype=dtype)}).select(
        identity.of_rows(pl.col("x"), dtype()).alias("x")
    )["x"]
    known = identity.declared(keys, identity.identity_of(dtype()))
    expected = [known.values.index(row) if row in known.values and row is not None else -1 for row in rows]
    assert cells.positions(brought, known.values).tolist() == expected
    assert cells._joined(brought, known.values).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100, 60_000])
@pytest.mark.parametrize("keys", [["A", "B", "C", None], [1, 2, 3, None], [1, 2**40, 3, None], [0.5, 1.5, 2.5, None]])
def test_101_few_rows_and_many_are_counted_alike(engine, rows, keys):
    frame = engine({"id": (keys * rows)[:rows], "ward": ["x"] * rows, "age": [1] * rows})
    expected = [len(range(place, rows, 4)) for place in range(4)]
    assert counts(frame, keys) == near(*expected)
    both = frame.dp.group_by("ward", "id", keys={"ward": ["x"], "id": keys}).count(**paid())
    assert both["count"].to_list() == near(*expected)
    rows_of_keys = pl.DataFrame({"id": keys[::-1], "ward": ["x"] * 4}, strict=False)
    listed = frame.dp.group_by("id", "ward", keys=rows_of_keys).count(**paid(dpf.PrivacyUnit("age", max_rows=60_000)))
    assert listed["count"].to_list() == near(*expected[::-1])


# Units that a conversion would merge


def storage(dtype, ids):
    """Return a pandas column of this dtype with these integers in its memory."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    if dtype.startswith(("M8", "m8")):
        return pd.Series(np.array(ids, dtype=np.int64).view(dtype))
    arrow = {
        "timestamp": lambda: pa.timestamp("s"),
        "zoned": lambda: pa.timestamp("s", "UTC"),
        "duration": lambda: pa.duration("s"),
        "time": lambda: pa.time64("us"),
        "time in ns": lambda: pa.time64("ns"),
        "date64": pa.date64,
    }[dtype]()
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(ids, type=pa.int64()).view(arrow)))


STORED = [
    *(f"{kind}8[{unit}]" for kind in "Mm" for unit in ("s", "ms", "us", "ns")),
    *("timestamp", "zoned", "duration", "time", "time in ns", "date64"),
]
BEYOND = [2**62, 2**62 + 1, -(2**62), LOWEST + 1, 2**63 - 1, 86_400 * 10**6, 86_400 * 10**6 + 1, 5]


@pytest.mark.parametrize("dtype", STORED)
def test_102_no_two_stored_times_are_one_unit(dtype):
    frame = pandas_frame(storage(dtype, BEYOND))
    assert units(frame) == pytest.approx(len(BEYOND), abs=NEAR)
    assert units(frame.iloc[1:]) == pytest.approx(len(BEYOND) - 1, abs=NEAR)
    twice = pandas_frame(storage(dtype, BEYOND * 2))
    assert units(twice) == pytest.approx(len(BEYOND), abs=NEAR)


def numbered(frame):
    """Return the number of each row's unit."""
    lazy = source_of(frame).load([("unit", "id", "unit", None)])
    return weights.unit_codes(lazy.collect()["unit"])[0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", STORED)
@given(ids=st.lists(STEPS, min_size=2, max_size=6, unique=True))
@example(ids=[2**62, 2**62 + 1])
@FEW
def test_102_random_stored_times_stay_apart(dtype, ids):
    assert len(set(numbered(pandas_frame(storage(dtype, ids))))) == len(ids)


POLARS_IDS = {
    "Int8": [-128, 127, 0],
    "UInt64": [0, 2**64 - 1, 2**64 - 2, 2**63],
    "Int128": [2**127 - 1, 2**127 - 2, -(2**127), 2**64, 0],
    "Float32": [0.1, 0.10000001, math.inf, -math.inf, 1e-45, 0.0],
    "Float64": [0.1, 0.1 + 2**-55, math.inf, -math.inf, 5e-324, 0.0],
    "Boolean": [True, False],
    "String": ["1", "1.0", "", "\0", "\0\0", "e\u0301", "\u00e9", "A", "a"],
    "Categorical": ["1", "1.0", "", "\0"],
    "Date": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)],
    "Time": [time(0), time(0, 0, 0, 1), time(23, 59, 59, 999_999)],
}


@pytest.mark.parametrize("dtype", POLARS_IDS)
def test_102_units_of_each_dtype_stay_apart(dtype):
    ids = POLARS_IDS[dtype]
    frame = pl.DataFrame({"id": pl.Series(ids * 2, dtype=getattr(pl, dtype))})
    for each in (frame, frame.lazy()):
        assert units(each) == pytest.approx(len(ids), abs=NEAR)
        assert counts(each, ids[-1:]) == near(2)


@pytest.mark.parametrize("dtype", [pl.Datetime("ms"), pl.Datetime("ns", "UTC"), pl.Duration("us"), pl.Time, pl.Date])
@given(ids=st.lists(STEPS, min_size=2, max_size=6, unique=True))
@FEW
def test_102_random_times_of_polars_stay_apart(dtype, ids):
    if dtype == pl.Date:
        ids = list(dict.fromkeys(number % 2**31 for number in ids))
    if dtype == pl.Time:
        ids = list(dict.fromkeys(number % (86_400 * 10**9) for number in ids))
    frame = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64).cast(dtype)})
    assert len(set(numbered(frame))) == len(ids)


@given(
    ids=st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=2, max_size=5, unique=True), scale=st.integers(0, 38)
)
@FEW
def test_102_random_decimals_stay_apart(ids, scale):
    values = [
        Decimal(number).scaleb(-scale, None) if abs(number) < 10**27 else Decimal(f"{number}E-{scale}")
        for number in ids
    ]
    frame = pl.DataFrame({"id": pl.Series(values, dtype=pl.Decimal(38, scale))})
    assert len(set(numbered(frame))) == len(ids)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [64, 32, 16])
@given(data=st.data())
@FEW
def test_102_random_floats_of_numpy_stay_apart(bits, data):
    one = st.floats(width=bits, allow_nan=False) if bits > 16 else st.sampled_from(HALVES)
    ids = data.draw(st.lists(one, min_size=2, max_size=6, unique_by=lambda number: number + 0.0))
    frame = pandas_frame(np.array(ids, dtype=f"f{bits // 8}"))
    assert len(set(numbered(frame))) == len(ids)
    assert counts(frame, [1.0]) == near(ids.count(1.0))


@pytest.mark.parametrize("dtype", [pl.Date(), *(pl.Datetime(unit) for unit in ("ms", "us", "ns")), pl.Duration("us")])
def test_dates_are_stored_all_at_once_as_one_by_one(dtype):
    known = identity.identity_of(dtype)
    days, far = [date(2025, 1, 1), date(1969, 12, 31), date(2025, 1, 1)], [date.min, date.max, date(1970, 1, 1)]
    hours = [datetime(2025, 1, 1, 5), datetime(1969, 12, 31, 23, 59, 59, 999_000), datetime(2025, 1, 1, 5, fold=1)]
    between, midnight = [datetime(2025, 1, 1, 5, 0, 0, 1), datetime(1969, 12, 31)], [datetime(2025, 1, 1)]
    ends, zoned = [datetime.min, datetime.max], [datetime(2025, 1, 1, tzinfo=UTC)]
    for keys in (days, far, hours, between, midnight, ends, zoned, [*days, *hours], [*hours, *zoned]):
        assert known is not None
        each = identity.as_stored([identity.stored(key, known) for key in keys])
        found = identity.declared(keys, known)
        assert (found.values, found.missing, found.rows.tolist()) == (each.values, each.missing, each.rows.tolist())


ONE_AND_TRUE, ONE_AND_A_HALF, FAR = [1, True, 1], [1, 1.0, 0.5], [7, 2**64, 7]
NOON, SECOND_NOON = datetime(2025, 1, 1, 12), datetime(2025, 1, 1, 12, fold=1)
COLUMNS_OF_COMBINATIONS = {  # values, with the different ones if they are numbered
    pl.Int64(): [([3, 1, 3, 3], (3, 1)), (FAR, (7, 2**64)), (ONE_AND_TRUE, None), (ONE_AND_A_HALF, None)],
    pl.String(): [(["b", "é", "b"], ("b", "é")), (["b", None, "b"], None), (["b", "\ud83d"], None)],
    pl.Date(): [([date(2025, 1, 1), date.min, date(2025, 1, 1)], (date(2025, 1, 1), date.min))],
    pl.Datetime("ms"): [
        ([NOON, NOON.replace(microsecond=1), SECOND_NOON], (NOON, NOON.replace(microsecond=1))),
        ([NOON, NOON.replace(tzinfo=UTC)], None),
        ([NOON, NOON.date()], None),
    ],
}


@pytest.mark.parametrize("dtype", COLUMNS_OF_COMBINATIONS)
def test_columns_of_combinations_are_numbered_where_equal_values_are_one_key(dtype):
    known = identity.identity_of(dtype)
    assert known is not None
    for values, different in COLUMNS_OF_COMBINATIONS[dtype]:
        found, places = of_keys.numbered(values)
        assert (tuple(found), places is not None) == (different or tuple(values), different is not None)
        each, at_once = identity.declared(values, known), identity.declared(found, known, places)
        assert (at_once.values, at_once.missing, at_once.rows.tolist()) == (
            each.values,
            each.missing,
            each.rows.tolist(),
        )


def test_half_a_surrogate_pair_beside_the_other_is_no_text():
    with pytest.raises(dpf.InvalidArgument, match="keys must be text that UTF-8 can write"):
        pl.DataFrame({"id": ["a"]}).dp.preview.group_by("id", keys=["\ud83d", "\ude00"]).count(epsilon=1)


def no_identity():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    arrow = [pa.decimal256(40, 2), pa.binary(3), pa.binary(), pa.month_day_nano_interval(), pa.list_(pa.int64())]
    found = [pd.Series(pd.array([None, None], dtype=pd.ArrowDtype(dtype))) for dtype in arrow]
    found += [pd.Series(np.array([1, 2], dtype=np.complex128))]
    found += [pd.Series(pd.interval_range(0, 2)), pd.Series(pd.arrays.SparseArray([1, 2]))]
    if np.finfo(np.longdouble).nmant > 52:
        found.append(pd.Series(np.array([1, 1 + np.finfo(np.longdouble).eps], dtype=np.longdouble)))
    return found


def test_102_dtypes_without_a_proof_are_refused_before_the_charge():
    for column in no_identity():
        frame = pandas_frame(column)
        refused(frame, [1], dpf.WrongDtype, "must")
        ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("id", max_rows=1))
        with pytest.raises(dpf.WrongDtype, match=r"units|stay apart"):
            frame.dp.count(epsilon=0.5, ledger=ledger)
        assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"a", b"b"]])
def test_102_nested_and_binary_columns_of_polars_are_refused(values):
    for frame in (pl.DataFrame({"id": values}), pl.LazyFrame({"id": values})):
        refused(frame, [1], dpf.WrongDtype, "must hold plain values")
        with pytest.raises(dpf.WrongDtype, match="to name units"):
            units(frame)


def test_102_seconds_of_an_arrow_table_are_refused():
    pa = pytest.importorskip("pyarrow")
    seconds = pa.array([2**62, 2**62 + 1], type=pa.int64())
    for dtype in (pa.timestamp("s"), pa.duration("s"), pa.time64("us")):
        frame = pa.table({"id": seconds.view(dtype)})
        with pytest.raises(dpf.WrongDtype, match="stay apart to name units"):
            dpf.of(frame).count(**paid(dpf.PrivacyUnit("id", max_rows=1)))
    exact = dpf.of(pa.table({"id": seconds.view(pa.timestamp("us"))})).count(**paid(dpf.PrivacyUnit("id", max_rows=1)))
    assert exact["count"].to_list() == near(2)


def test_102_dictionaries_with_repeated_and_missing_entries():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3]), pa.array(["a", "a", None, "b"]))
    frame = pd.DataFrame({"id": pd.arrays.ArrowExtensionArray(pa.chunked_array([coded, coded]))})
    assert units(frame) == pytest.approx(3, abs=NEAR)
    assert counts(frame, ["a", "b", None]) == near(4, 2, 4)


@pytest.mark.parametrize("dtype", STORED)
def test_102_a_key_takes_no_row_of_another_value(dtype):
    tick = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}.get(dtype[3:-1], 10**9)
    tick = {"time": 10**3, "time in ns": 1, "date64": 10**6}.get(dtype, tick)
    moment = 86_400 * 10**9 // 2 // tick
    far = [moment + 2**63 // 1000, moment + 2**62, 2**63 - 1, LOWEST + 1]
    frame = pandas_frame(storage(dtype, [moment, *(number if number < 2**63 else 7 for number in far)]))
    keys = {
        "m": timedelta(hours=12),
        "d": timedelta(hours=12),
        "t": time(12),
        "z": datetime(1970, 1, 1, 12, tzinfo=UTC),
    }
    key = datetime(1970, 1, 1, 12) if dtype in ("timestamp", "date64") else keys.get(dtype[0], datetime(1970, 1, 1, 12))
    assert counts(frame, [key]) == near(1)


def test_102_pandas_timestamps_beyond_pythons_years():
    pd = pytest.importorskip("pandas")
    stamps = [pd.Timestamp(np.datetime64(year * 31_556_952, "s")) for year in (10_000, 200_000, 290_000)]
    frame = pandas_frame(pd.Series([*stamps, *stamps, None], dtype=object))
    assert units(frame) == pytest.approx(4, abs=NEAR)


@pytest.mark.parametrize(
    "key",
    [np.datetime64(1, "ns"), np.datetime64(2**62, "s"), np.timedelta64(1, "ns"), np.timedelta64(2**62, "s")],
)
def test_102_a_key_of_numpy_is_not_rounded_to_another(key):
    frame = pl.DataFrame({"id": pl.Series([0], dtype=pl.Int64).cast(pl.Datetime("ns"))})
    refused(frame, [key], dpf.InvalidArgument, "must be whole microseconds")
    assert counts(frame, [np.datetime64(0, "ns"), np.datetime64(1, "D")]) == near(1, 0)


# Objects


class Hostile:
    """An object equal to everything or nothing, or that raises, with the hash of the value that it imitates."""

    def __init__(self, taken_for, answer):
        self.taken_for, self.answer = taken_for, answer

    def __hash__(self):
        return hash(self.taken_for)

    def __eq__(self, other):
        if self.answer is None:
            raise RuntimeError("a private value")
        return self.answer


@pytest.mark.parametrize("answer", [True, False, None])
@pytest.mark.parametrize("name", ["ann", 7, 0.5])
def test_102_an_object_cannot_pass_for_another_unit_or_key(answer, name):
    rows = [Hostile(name, answer), name, Hostile(name, answer), "bob"]
    for frame in (pandas_frame(rows), pandas_frame(rows[::-1])):
        assert numbered(frame.iloc[[1, 3]]) == [0, 1] or numbered(frame.iloc[[0, 2]]) == [0, 1]
        codes = dict(zip([type(value).__name__ for value in frame["id"]], numbered(frame), strict=True))
        assert len({codes[type(name).__name__], codes["Hostile"]}) == 2
        assert counts(frame, [name]) == near(1)


NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.booleans(),
    st.builds(np.float32, st.floats(width=32, allow_nan=False)),
    st.builds(np.int8, st.integers(-128, 127)),
)
MOMENTS = st.one_of(st.datetimes(), st.dates(), st.timedeltas(), st.times(), st.text(), st.binary(), st.uuids())


@given(first=st.one_of(NUMBERS, MOMENTS), second=st.one_of(NUMBERS, MOMENTS))
@example(first=2**53, second=2**53 + 1)
@example(first=np.float64(2**115), second=2**115 + 2**61 - 1)
@example(first=Decimal("0.1"), second=0.1)
@example(first=Decimal("0E+20000"), second=0)
@example(first=math.inf, second=np.float32(math.inf))
@example(first=math.inf, second=Decimal("Infinity"))
@example(first=-math.inf, second=Decimal("Infinity"))
@example(first=b"a", second="a")
@example(first=date(2024, 1, 1), second=datetime(2024, 1, 1))
@settings(max_examples=300, deadline=None)
def test_objects_are_the_same_where_python_says_so(first, second):
    plain = [one.item() if isinstance(one, np.generic) else one for one in (first, second)]
    exactly = [as_number(one) if isinstance(one, int | float | Decimal | Fraction) else one for one in plain]
    assert (same(first) == same(second)) == (type(exactly[0]) is type(exactly[1]) and exactly[0] == exactly[1])
    assert same(first) == same(first)
    hash(same(first))


def as_number(value):
    return Fraction(value) if math.isfinite(value) else float(value)  # infinities of all types are equal


def test_objects_of_numpy_and_pandas_are_those_of_python():
    pd = pytest.importorskip("pandas")
    moment, span = datetime(2024, 1, 1, 12), timedelta(hours=5)
    assert same(moment) == same(np.datetime64(moment)) == same(pd.Timestamp(moment)) == same(np.datetime64(moment, "h"))
    assert same(span) == same(np.timedelta64(span)) == same(pd.Timedelta(span)) == same(np.timedelta64(5, "h"))
    assert same(pd.Timestamp(2024, 1, 1, nanosecond=1)) != same(pd.Timestamp(2024, 1, 1))
    assert same(np.longdouble(1) + np.finfo(np.longdouble).eps) != same(1)
    assert same(np.longdouble("0.5")) == same(0.5) == same(Fraction(1, 2)) == same(Decimal("0.50")) == same(0.5 + 0j)
    assert same_key(date(2024, 1, 1)) == same_key(datetime(2024, 1, 1)) == same_key(np.datetime64("2024-01"))
    assert same((1, "a")) == same((1.0, "a")) != same(("a", 1))
    assert same(("at", 0)) != same(datetime(1970, 1, 1))


def test_both_zeros_are_one_unit_and_nan_is_missing(engine):
    frame = engine({"id": [0.0, -0.0, math.nan, math.nan, 1.0]})
    assert units(frame) == pytest.approx(3, abs=NEAR)
    assert units(frame, nulls="drop") == pytest.approx(2, abs=NEAR)


# Output to the terminal


TALK = """
import os, sys, warnings
from decimal import Decimal
import polars as pl, dpframe as dpf
engine, rows = sys.argv[1], int(sys.argv[2])
ids = [b"a", "a", "b", 1, 1.0, Decimal("1"), None, b"b"] if engine == "pandas" else ["a", "b", None, "c"]
columns = {"id": (ids * rows)[:rows], "x": [float(n % 7) for n in range(rows)], "n": [n % 5 for n in range(rows)]}
if engine == "pandas":
    import pandas
    frame = pandas.DataFrame(columns)
else:
    frame = pl.DataFrame(columns)
    frame = frame.lazy() if engine == "lazy" else frame
ledger = dpf.Ledger(epsilon=1000, checks=False)  # which warn by chance, of noisy numbers
unit = dpf.Ledger(epsilon=1000, unit=dpf.PrivacyUnit("id", max_rows=2, nulls="one-unit"), checks=False)
for pays in (ledger, unit):
    paid = {"epsilon": 1.0, "ledger": pays}
    frame.dp.count(**paid)
    frame.dp.group_by("id", keys=["a", "b", None]).agg(dpf.count(), dpf.sum("x", bounds=(0, 5)), **paid)
    frame.dp.histogram("x", bins=range(8), **paid)
    frame.dp.group_by("id", "n", keys={"id": ["a"], "n": range(5)}).mean("x", bounds=(0, 5), **paid)
    frame.dp.mode("id", categories=["a", "b"], **paid)
"""


def said(tmp_path, engine, rows, options=(), first="", **environment):
    """Return the exit code and the output of a separate process that makes releases."""
    script = tmp_path / "talk.py"
    script.write_text(first + TALK)
    found = subprocess.run(
        [sys.executable, *options, str(script), engine, str(rows)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    return found.returncode, found.stdout, found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("rows", [9, 50_001])
def test_105_106_nothing_is_written_of_the_rows(engine, tmp_path, rows):
    one, other = (said(tmp_path, engine.name, size, ["-b", "-W", "always"]) for size in (rows, rows - 1))
    assert one == other
    assert one[0] == 0
    assert "BytesWarning" not in one[2]
    if rows < 10:
        assert said(tmp_path, engine.name, rows, ["-bb"]) == (0, "", "")


@pytest.mark.slow
def test_105_an_engine_that_talks_is_refused_before_the_charge(engine, tmp_path, monkeypatch):
    frame, ledger = engine({"id": ["a", "b"]}), dpf.Ledger(epsilon=1)
    plan = frame.dp.preview.count()
    for name in ("POLARS_VERBOSE", "POLARS_LOG_METRICS", "POLARS_WARN_UNSTABLE"):
        monkeypatch.setenv(name, "1")
        for ask in (
            lambda: frame.dp.count(epsilon=1, ledger=ledger),
            lambda: dpf.release_together({"n": plan}, epsilon=1, ledger=ledger),
        ):
            with pytest.raises(dpf.InvalidArgument, match=f"{name} must be unset while dpframe works, not '1'"):
                ask()
        monkeypatch.delenv(name)
    assert ledger.spent.epsilon == 0
    monkeypatch.setenv("POLARS_VERBOSE", "0")
    frame.dp.count(epsilon=1, ledger=ledger)
    code, _, error = said(tmp_path, engine.name, 9, POLARS_VERBOSE="1")
    assert code == 1
    assert error.count("InvalidArgument: POLARS_VERBOSE") == 1
    assert said(tmp_path, engine.name, 8, POLARS_VERBOSE="1")[2].splitlines()[-1] == error.splitlines()[-1]


@pytest.mark.slow
def test_105_an_engine_that_was_made_to_talk_and_forgot_is_made_silent(tmp_path):
    """Newer Polars keeps the settings of its start, so they are loaded again before rows are read."""
    first = "import os, polars as pl; pl.DataFrame({'x': [1]}).lazy().collect(); os.environ.pop('POLARS_VERBOSE')\n"
    one, other = (said(tmp_path, "polars", rows, first=first, POLARS_VERBOSE="1") for rows in (9, 8))
    assert one[0] == other[0] == 0
    assert "group" not in one[2] + other[2]
    assert "join" not in one[2] + other[2]


# Replayed selections


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize(
    "options", [["1", "1.0"], [2**53, 2**53 + 1], ["nan", "NaN"], [Decimal("0.1"), Decimal("0.10000000000000000001")]]
)
def test_a_replayed_choice_is_the_one_that_was_released(engine, tmp_path, options, chosen):
    if isinstance(options[0], Decimal) and not engine.is_pandas:
        frame = engine({"id": [options[chosen]] * 30}, id=pl.Decimal(38, 20))
    else:
        frame = engine({"id": [options[chosen]] * 30})
    ledger = dpf.Ledger(epsilon=1e6, path=tmp_path / "clinic.ledger", dataset="clinic")
    paid = {"epsilon": 1e5, "ledger": ledger, "label": "choice", "snapshot": "1"}
    first, again = (frame.dp.mode("id", categories=options, **paid) for _ in range(2))
    assert engine.columns(first) == engine.columns(again) == {"id": [options[chosen]]}
    assert not again.dp.provenance["altered"]
    assert len(ledger.to_frame()) == 1


@pytest.mark.parametrize(("was", "now"), [("1", "1.0"), (2**53, 2**53 + 1), ("None", None)])
def test_a_changed_choice_is_altered(was, now):
    frame = pandas_frame([was] * 3)
    result = frame.dp.mode("id", categories=[was], epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert not result.dp.provenance["altered"]
    assert result.assign(id=[now]).dp.provenance["altered"]


@pytest.mark.parametrize("first", ["a\0b", "a", "\0", ""])
def test_241_the_part_of_a_unit_depends_on_no_other_unit(first):
    """Before pandas 3, categories end at the first character 0: such a unit had the part of the first one alike."""
    pytest.importorskip("pandas")
    units = ["a\0b", "a\0c", "a\0d", "a", "ab", "", "\0", "\0x"]
    alone = [int(unit_parts.part_of(pl.Series([unit]), 2**10)[0]) for unit in units]
    together = unit_parts.part_of(pl.Series([first, *units]), 2**10)[1:]
    assert together.tolist() == alone
    assert len({*alone[:3]}) == 3


def test_264_bytes_that_are_no_text_have_a_part_and_are_sent():
    """Python makes no text of such a unit, and Polars refuses to read it from the bytes of Arrow."""
    pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    units = [b"ann", b"\xff", b"\xfe", None, b"\xff\xfe" + b"q" * 30, "\u00e9".encode(), b"a\0b"]
    unit = pl.Series("unit", pl.from_arrow(pyarrow.array(units, pyarrow.binary()).view(pyarrow.string())))
    parts = unit_parts.part_of(unit, 2**10)
    assert parts[[0, 5, 6]].tolist() == unit_parts.part_of(pl.Series(["ann", "\u00e9", "a\0b"]), 2**10).tolist()
    assert len(set(parts.tolist())) == len(units)
    numbers, sent = unit_parts.in_parts(unit.to_frame(), unit, 2**10, lambda rows: rows)
    received = pl.concat(map(unit_parts.received, sent))["unit"].cast(pl.Binary)
    assert numbers == sorted(parts.tolist())
    assert received.to_list() == [units[place] for place in np.argsort(parts)]


def test_264_keys_are_found_among_texts_alone_on_every_engine():
    """What Spark makes of bytes that are no text is none either."""
    table = pl.DataFrame({"w": spark.texts(pl.Series([b"a", None, b"\xff", b"\0 not", b"b", spark.MARK.encode()]))})
    assert table["w"].n_unique() == table.height
    assert identity.without_bytes(table, ["w"])["w"].to_list() == ["a", None, "\0 not", "b"]
