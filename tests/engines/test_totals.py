"""Exact totals: equal to the definition on every engine, whatever the order, the chunks and the dtypes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import row_totals, unit_totals

import dpframe as dpf
from dpframe.accessor import PrivateFrame
from dpframe.engines.engine import Reading
from dpframe.engines.sums import addends, compound, unit_blocks, weights
from dpframe.engines.sums import cells as cell_numbers
from dpframe.engines.task import Task
from dpframe.engines.totals import engine_of, totals
from dpframe.privacy import PrivacyUnit
from dpframe.queries.statistics.statistic import Protecting
from dpframe.queries.total import RowsTotal

ROWS = PrivacyUnit()
numbers = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 5e-324, 1.0, 2.5, 10.0, 100.0, -3.0, 1e308, -1e308, float(2**53 + 2)]),
)
wards = st.sampled_from(["A", "B", "C", "other", None])
units = st.sampled_from([1, 2, 3, 4, None])
frames = st.lists(st.fixed_dictionaries({"x": numbers, "y": numbers, "ward": wards, "unit": units}), max_size=30)


def asked(build):
    """Return the Query of a call, without a release."""
    found = []
    build(PrivateFrame(None, (), lambda call: found.append(call.question.query)))
    return found[0]


QUESTIONS = {
    "count": lambda dp: dp.count(),
    "present": lambda dp: dp.count("x"),
    "sum": lambda dp: dp.sum("x", bounds=(-3, 10)),
    "mean": lambda dp: dp.mean("x", bounds=(0, 7.3)),
    "histogram": lambda dp: dp.histogram("x", bins=[-3, 0, 2.5, 10]),
    "equal bins": lambda dp: dp.histogram("x", bins=7, range=(0, 100)),
    "clipped": lambda dp: dp.histogram("x", bins=[0, 1, 10], outside="clip"),
    "grid": lambda dp: dp.histogram(["x", "y"], bins=[[0, 1, 10], [-3, 2.5, 100]]),
    "categories": lambda dp: dp.histogram("ward", categories=["B", None, "Z"]),
    "groups": lambda dp: dp.group_by("ward", keys=["C", "A", None]).agg(
        dpf.count(), dpf.sum("x", bounds=(-5, 5)), dpf.mean("y", bounds=(0, 100)), m=dpf.mean("x", bounds=(-5, 5))
    ),
    "grouped histogram": lambda dp: dp.group_by("ward", keys=["A", "B"]).histogram("x", bins=[0, 1, 10]),
    "product": lambda dp: dp.group_by("ward", "unit", keys={"ward": ["A", "B"], "unit": [1, 2, 9]}).sum(
        "x", bounds=(0, 10)
    ),
}


def polars_frame(rows):
    schema = {"x": pl.Float64, "y": pl.Float64, "ward": pl.String, "unit": pl.Int64}
    return pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)


def every_engine(rows):
    """Return the same rows in every library, with the dtypes that each of them uses."""
    frame = polars_frame(rows)
    found = {"polars": frame, "lazy": frame.lazy(), "categorical": frame.cast({"ward": pl.Categorical})}
    try:
        import pandas as pd
    except ImportError:
        return found
    columns = {name: [row[name] for row in rows] for name in ("x", "y", "ward", "unit")}
    plain = pd.DataFrame({name: np.array(values, dtype=object) for name, values in columns.items()})
    found["pandas objects"] = plain
    found["pandas"] = plain.astype({"x": float, "y": float, "unit": float})
    found["pandas nullable"] = plain.astype({"x": float, "y": float, "unit": "Int64", "ward": "string"})
    found["pandas categories"] = plain.astype({"x": float, "y": float, "unit": float, "ward": "category"})
    return found


def whole(frame, query, unit=ROWS, p=1.0):
    return {total: found.tolist() for total, found in totals(frame, query, unit, p).items()}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@settings(max_examples=20, deadline=None)
@given(rows=frames)
def test_totals_are_the_definition_on_every_engine(question, rows):
    query = asked(QUESTIONS[question])
    expected = row_totals(rows, query)
    for name, frame in every_engine(rows).items():
        assert whole(frame, query) == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "product"])
@pytest.mark.parametrize("p", [1.0, 2.0])
@settings(max_examples=8, deadline=None)
@given(rows=frames, max_rows=st.integers(1, 3), max_groups=st.integers(1, 3))
def test_weighted_totals_are_the_definition_on_every_engine(question, p, rows, max_rows, max_groups):
    query = asked(QUESTIONS[question])
    unit = PrivacyUnit(column="unit", max_rows=max_rows, max_groups=max_groups)
    expected = unit_totals(rows, query, "unit", max_rows, max_groups, p)
    first = None
    for name, frame in every_engine(rows).items():
        found = whole(frame, query, unit, p)
        first = first or found
        assert found == first, name  # bit for bit on every engine
        for total, cells in found.items():
            grid = 2**20 if isinstance(total, RowsTotal) else 1
            largest = max(map(abs, total.norm(False).reach)) * grid
            for value, exact in zip(cells, expected[total], strict=True):
                # each of at most 4 units loses less than a step, and at most 1e-9 of its value by `SHAVE`
                assert abs(value - exact * grid) <= 4 + 4e-9 * largest * max_rows * 30


@settings(max_examples=30, deadline=None)
@given(rows=frames, order=st.randoms(use_true_random=False), cut=st.integers(0, 30))
def test_totals_do_not_depend_on_order_or_chunks(rows, order, cut):
    query = asked(QUESTIONS["groups"])
    shuffled = list(rows)
    order.shuffle(shuffled)
    chunked = pl.concat([polars_frame(shuffled[:cut]), polars_frame(shuffled[cut:])], rechunk=False)
    assert whole(chunked, query) == whole(polars_frame(rows), query)
    unit = PrivacyUnit(column="unit", max_rows=2)
    assert whole(chunked, query, unit, 2.0) == whole(polars_frame(rows), query, unit, 2.0)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-50, 150) | st.integers(-10, 110).map(float) | st.just(math.nan), max_size=50),
    edges=st.lists(st.integers(-20, 120) | st.floats(-20, 120), min_size=2, max_size=12, unique=True).map(sorted),
)
def test_histograms_are_numpys(values, edges):
    present = np.array([value for value in values if not math.isnan(value)])
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Float64})
    plain = asked(lambda dp: dp.histogram("x", bins=edges))
    coded = asked(lambda dp: dp.histogram(["x", "x2"], bins=[edges, [0, 1]]))
    expected = np.histogram(present, bins=edges)[0].tolist()
    assert next(iter(whole(frame, plain).values())) == expected
    assert next(iter(whole(frame.with_columns(x2=0.5), coded).values())) == expected


@pytest.mark.parametrize("bins", [1, 3, 10, 97, 1000])
def test_equal_bins_are_numpys_at_the_edges(bins):
    low, high = 0.1, 7.7
    edges = np.linspace(low, high, bins + 1)
    values = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), np.arange(0, 9, 0.1)])
    query = asked(lambda dp: dp.histogram("x", bins=bins, range=(low, high)))
    found = whole(pl.DataFrame({"x": values}), query)
    assert next(iter(found.values())) == np.histogram(values, bins=bins, range=(low, high))[0].tolist()


def test_large_histograms_are_counted_in_parallel_alike():
    values = np.random.default_rng(0).normal(size=2**20 + 5)
    query = asked(lambda dp: dp.histogram("x", bins=50, range=(-3, 3)))
    found = whole(pl.DataFrame({"x": values}), query)
    assert next(iter(found.values())) == np.histogram(values, bins=50, range=(-3, 3))[0].tolist()


def test_large_chunks_of_a_histogram_are_added_up(monkeypatch):
    monkeypatch.setattr("dpframe.engines.sums.row_totals.PARALLEL_ROWS", 100)
    values = np.random.default_rng(0).normal(size=600)
    chunks = [pl.DataFrame({"x": part}) for part in np.split(values, [250, 300])]  # the second one is small
    query = asked(lambda dp: dp.histogram("x", bins=50, range=(-3, 3)))
    found = whole(pl.concat(chunks, rechunk=False), query)
    assert next(iter(found.values())) == np.histogram(values, bins=50, range=(-3, 3))[0].tolist()


DTYPES = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64]


@pytest.mark.parametrize("dtype", [*DTYPES, pl.Boolean, pl.Decimal(20, 3)])
def test_every_dtype_of_numbers_is_summed_exactly(dtype):
    frame = pl.DataFrame({"x": [0, 1, 1, None, 1]}).cast(pl.Int64).select(pl.col("x").cast(dtype))
    query = asked(lambda dp: dp.sum("x", bounds=(0, 2)))
    assert next(iter(whole(frame, query).values())) == [3 * 2**29]
    grouped = asked(lambda dp: dp.group_by("x", keys=[1, 0, None]).count())
    assert next(iter(whole(frame, grouped).values())) == [3, 1, 1]


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63)], [2**53 + 1, -(2**53) - 1]])
def test_integers_beyond_2_53_clip(values):
    query = asked(lambda dp: dp.sum("x", bounds=(-(2**53), 2**53)))
    assert next(iter(whole(pl.DataFrame({"x": values}), query).values())) == [0]
    keys = asked(lambda dp: dp.group_by("x", keys=[values[0], values[0] - 1]).count())
    assert next(iter(whole(pl.DataFrame({"x": values}), keys).values())) == [1, 0]


def test_narrow_dtypes_do_not_wrap():
    frame = pl.DataFrame({"x": [100] * 1000}, schema={"x": pl.Int8})
    query = asked(lambda dp: dp.sum("x", bounds=(0, 128)))
    assert next(iter(whole(frame, query).values())) == [100 * 1000 * 2**23]


def test_temporal_bins_compare_exactly_in_every_unit():
    moments = [dt.datetime(2024, 1, day, hour) for day in (1, 2, 3) for hour in (0, 12)]
    edges = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 3)]
    query = asked(lambda dp: dp.histogram("t", bins=edges))
    for unit in ("ms", "us", "ns"):
        frame = pl.DataFrame({"t": moments}, schema={"t": pl.Datetime(unit)})
        assert next(iter(whole(frame, query).values())) == [2, 3]
    days = pl.DataFrame({"t": [moment.date() for moment in moments]})
    assert next(iter(whole(days, query).values())) == [2, 4]
    halves = asked(lambda dp: dp.histogram("t", bins=[dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 1, 2, 6)]))
    assert next(iter(whole(days, halves).values())) == [2]
    dates = asked(lambda dp: dp.histogram("t", bins=[edge.date() for edge in edges]))
    assert next(iter(whole(days, dates).values())) == [2, 4]
    between = asked(lambda dp: dp.histogram("t", bins=2, range=(edges[0], edges[-1])))
    assert between.keys == query.keys


def test_durations_and_time_zones():
    spans = pl.DataFrame({"d": [dt.timedelta(hours=h) for h in (0, 1, 5, 6)]})
    query = asked(lambda dp: dp.histogram("d", bins=[dt.timedelta(0), dt.timedelta(hours=1), dt.timedelta(hours=6)]))
    assert next(iter(whole(spans, query).values())) == [1, 3]
    aware = pl.DataFrame({"t": [dt.datetime(2024, 1, 1, 23, tzinfo=dt.UTC)]}).select(
        pl.col("t").dt.convert_time_zone("Asia/Tokyo")
    )
    zone = dt.timezone(dt.timedelta(hours=9))
    tokyo = [dt.datetime(2024, 1, day, tzinfo=zone) for day in (1, 2, 3)]
    assert next(iter(whole(aware, asked(lambda dp: dp.histogram("t", bins=tokyo))).values())) == [0, 1]


def test_pandas_temporal_columns():
    pd = pytest.importorskip("pandas")
    stamps = [pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-02 06:00")]
    edges = pd.date_range("2024-01-01", periods=3, freq="D")
    query = asked(lambda dp: dp.histogram("t", bins=edges))
    for unit in ("s", "ms", "us", "ns"):
        frame = pd.DataFrame({"t": pd.Series(stamps).astype(f"datetime64[{unit}]")})
        assert next(iter(whole(frame, query).values())) == [1, 1]
    objects = pd.DataFrame({"t": np.array([dt.datetime(2024, 1, 1), None, dt.date(2024, 1, 2)], dtype=object)})
    assert next(iter(whole(objects, query).values())) == [1, 1]
    spans = pd.DataFrame({"d": pd.to_timedelta([1, 2, None], unit="h").astype("timedelta64[s]")})
    hours = asked(lambda dp: dp.histogram("d", bins=[pd.Timedelta(hours=1), pd.Timedelta(hours=3)]))
    assert next(iter(whole(spans, hours).values())) == [2]
    zoned = pd.DataFrame({"t": pd.Series(stamps).dt.tz_localize("Asia/Tokyo")})
    aware = asked(lambda dp: dp.histogram("t", bins=list(edges.tz_localize("Asia/Tokyo"))))
    assert next(iter(whole(zoned, aware).values())) == [1, 1]


def test_keys_of_dates_and_decimals():
    day = dt.date(2024, 1, 1)
    frame = pl.DataFrame({"d": [day, None], "c": [Decimal("1.50"), Decimal("2.00")]})
    assert whole(frame, asked(lambda dp: dp.group_by("d", keys=[day, None]).count())) == {
        next(iter(asked(lambda dp: dp.count()).totals)): [1, 1]
    }
    query = asked(lambda dp: dp.group_by("c", keys=[Decimal("1.5"), 2]).count())
    assert next(iter(whole(frame, query).values())) == [1, 1]


class Awkward:
    """An object that raises in every operation."""

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __hash__(self):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")


def test_objects_of_any_kind_never_fail():
    pd = pytest.importorskip("pandas")
    odd = [1, True, 2.5, "2.5", None, math.nan, pd.NA, pd.NaT, Decimal("2.5"), Decimal("sNaN"), 10**400, -(10**400)]
    odd += [[1], {"a": 1}, 1j, b"2.5", Awkward(), np.array([1, 2]), dt.date(2024, 1, 1), "\ud800", np.float32(2.5)]
    values = np.empty(len(odd), dtype=object)
    values[:] = odd
    frame = pd.DataFrame({"x": values, "n": 1.0})
    total = asked(lambda dp: dp.sum("x", bounds=(0, 4)))
    # 1, True, 2.5, "2.5", Decimal, b"2.5" and float32 as numbers, the two huge integers clipped to 4 and to 0
    assert next(iter(whole(frame, total).values())) == [int((1 + 1 + 2.5 * 5 + 4) * 2**28)]
    keys = asked(lambda dp: dp.group_by("x", keys=[2.5, 1, None]).count())
    assert next(iter(whole(frame, keys).values())) == [3, 2, 5]
    text = asked(lambda dp: dp.group_by("x", keys=["2.5", "x"]).count())
    assert next(iter(whole(frame, text).values())) == [1, 0]
    unit = asked(lambda dp: dp.sum("n", bounds=(0, 1)))
    assert next(iter(whole(frame, unit, PrivacyUnit(column="x", max_rows=1)).values()))[0] > 0
    bins = asked(lambda dp: dp.histogram("x", bins=[0, 2, 5]))
    assert sum(next(iter(whole(frame, bins).values()))) == 7


@pytest.mark.parametrize("neighbor", [[1, 2, 3], [1, 2, None], [1.0, 2.0, math.nan], [True, False, True], [1, 2, "x"]])
def test_one_row_changes_a_pandas_dtype_but_no_other_total(neighbor):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": neighbor, "key": [1, 1, 2]})
    query = asked(lambda dp: dp.group_by("key", keys=[1, 2]).sum("x", bounds=(0, 4)))
    found = next(iter(whole(frame, query).values()))
    assert found[0] == (1 + float(neighbor[1])) * 2**28


def test_unit_ids_of_different_types_are_different_units():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"u": np.array(["1", 1, "a", "a"], dtype=object)})
    found = whole(frame, asked(lambda dp: dp.count()), PrivacyUnit(column="u", max_rows=1))
    assert next(iter(found.values())) == [3 * 2**20 - 1]  # "1", 1 and "a", whose two rows weigh a little less than 1


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("unit", [ROWS, PrivacyUnit("unit", max_rows=2, max_groups=2)], ids=str)
def test_few_rows_give_the_integers_that_many_give(question, unit, monkeypatch):
    generator = np.random.default_rng(len(question))
    values = [*generator.normal(2, 4, 300), None, math.nan, math.inf, -math.inf, -0.0]
    frame = pl.DataFrame(
        {
            "x": values,
            "y": generator.integers(-5, 120, len(values)),
            "ward": generator.choice(np.array(["A", "B", "C", "other", None]), len(values)).tolist(),
            "unit": generator.choice(np.array([*range(60), *[7] * 9, 2**40, None]), len(values)).tolist(),
        },
        strict=False,
    )
    query = asked(QUESTIONS[question]).each(lambda one: one.protecting(unit) if isinstance(one, Protecting) else one)
    for p in (1.0, 2.0):
        found = [totals(frame, query, unit, p)]
        with monkeypatch.context() as patched:
            patched.setattr(unit_blocks, "MOST_NUMBERS", -1)  # now Polars weighs units
            found.append(totals(frame, query, unit, p))
            patched.setattr(cell_numbers, "FEW_ROWS", 0)
            found.append(totals(frame, query, unit, p))
        first, *others = [{total: steps.tolist() for total, steps in way.items()} for way in found]
        assert others == [first, first]


def test_missing_units_are_left_out_or_one_unit():
    frame = pl.DataFrame({"u": [1, None, None, None]})
    query = asked(lambda dp: dp.count())
    assert next(iter(whole(frame, query, PrivacyUnit(column="u", max_rows=1)).values())) == [2**20]
    together = next(iter(whole(frame, query, PrivacyUnit(column="u", nulls="one-unit", max_rows=1)).values()))
    assert together == [2 * 2**20 - 1]


def test_other_libraries_are_read_through_narwhals():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"ward": ["A", "B", "A"], "x": [1.0, 2.0, None]})
    result = (
        dpf.of(table)
        .group_by("ward", keys=["A", "B"])
        .agg(n=dpf.count(), s=dpf.sum("x", bounds=(0, 4)), epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))
    )
    assert result["n"].to_list() == [2.0, 1.0]
    assert dpf.of(table).count(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))["count"].to_list() == [3.0]
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(table)
    again = dpf.of(relation).group_by("ward", keys=["A", "B"]).count(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))
    assert again["count"].to_list() == [2.0, 1.0]


IDS = {
    "int8": (pl.Int8, [1, -5, 127]),
    "uint64": (pl.UInt64, [2**64 - 1, 2**64 - 2, 0]),
    "int64": (pl.Int64, [-(2**63), 2**63 - 1, 0]),
    "near": (pl.Int64, [2**61, 2**61 + 1, 2**61 + 2]),
    "float": (pl.Float64, [0.5, -1.0, 1e300]),
    "string": (pl.String, ["", "a", "\u00e9"]),
    "category": (pl.Categorical, ["x", "y", "z"]),
    "enum": (pl.Enum(["x", "y", "z"]), ["x", "y", "z"]),
    "decimal": (pl.Decimal(10, 2), [Decimal("1.00"), Decimal("1.01"), Decimal("-1.00")]),
    "date": (pl.Date, [dt.date(2024, 1, day) for day in (1, 2, 3)]),
    "datetime": (pl.Datetime("ns"), [dt.datetime(2024, 1, day) for day in (1, 2, 3)]),
    "duration": (pl.Duration("ms"), [dt.timedelta(hours=h) for h in (1, 2, 3)]),
    "time": (pl.Time, [dt.time(h) for h in (1, 2, 3)]),
}


@pytest.mark.parametrize("dtype", IDS)
def test_every_dtype_names_units_and_keys(dtype):
    polars_dtype, (first, second, third) = IDS[dtype]
    ids = [first, second, first, third, None, None]
    frame = pl.DataFrame({"u": pl.Series(ids, dtype=polars_dtype), "x": [1.0] * 6})
    query = asked(lambda dp: dp.sum("x", bounds=(0, 1)))
    found = next(iter(whole(frame, query, PrivacyUnit(column="u", max_rows=1)).values()))[0]
    assert found == pytest.approx(3 * 2**30, rel=1e-8)
    together = next(iter(whole(frame, query, PrivacyUnit(column="u", nulls="one-unit", max_rows=1)).values()))[0]
    assert together == pytest.approx(4 * 2**30, rel=1e-8)
    keys = asked(lambda dp: dp.group_by("u", keys=[third, first, None]).count())
    assert next(iter(whole(frame, keys).values())) == [1, 2, 2]
    assert next(iter(whole(frame, keys, PrivacyUnit(column="x", max_rows=9)).values())) == [2**20, 2 * 2**20, 2 * 2**20]


def test_columns_that_are_all_null():
    frame = pl.DataFrame({"u": [None, None], "x": [None, None]})
    count = asked(lambda dp: dp.count())
    assert next(iter(whole(frame, count, PrivacyUnit(column="u", max_rows=1)).values())) == [0]
    one_unit = PrivacyUnit(column="u", max_rows=2, nulls="one-unit")
    assert next(iter(whole(frame, count, one_unit).values())) == [2 * 2**20]
    assert next(iter(whole(frame, asked(lambda dp: dp.sum("x", bounds=(0, 1)))).values())) == [0]
    assert next(iter(whole(frame, asked(lambda dp: dp.group_by("u", keys=["a", None]).count())).values())) == [0, 2]
    assert next(iter(whole(frame, asked(lambda dp: dp.histogram("x", bins=[0, 1]))).values())) == [0]


def test_pairs_are_found_where_they_do_not_fit_one_integer():
    rng = np.random.default_rng(1)
    code, cell = rng.integers(0, 50, 400) * 2**22, rng.integers(0, 4, 400) * 2**26
    rows, starts = weights._sharing(code, cell)
    small, same_starts = weights._sharing(code // 2**22, cell // 2**26)
    assert starts.tolist() == same_starts.tolist()
    assert code[rows].tolist() == code[small].tolist()
    assert cell[rows].tolist() == cell[small].tolist()


def test_strings_are_numbered_apart_whatever_their_hashes(monkeypatch):
    rng = np.random.default_rng(3)
    names = [None if n == 7 else "é" * (n % 40) + str(n) for n in rng.integers(0, 300, 4000)]
    units = pl.Series(names, dtype=pl.String)
    plain, size = weights.unit_codes(units)
    monkeypatch.setattr(weights, "MANY_ROWS", 0)
    by_hash, larger = weights.unit_codes(units)
    assert plain.max() < size
    assert by_hash.max() < larger
    pairs = set(zip(plain.tolist(), by_hash.tolist(), strict=True))
    assert len(pairs) == len(set(plain.tolist())) == len(set(by_hash.tolist())) == 300
    few = pl.Series(units.hash().to_numpy() % 250)  # some different strings share a hash
    monkeypatch.setattr(pl.Series, "hash", lambda column: few)
    assert weights._by_hash(units) is None
    assert weights.unit_codes(units)[0].tolist() == plain.tolist()


@pytest.mark.parametrize("rows", [8, 60_000])  # two ways of look-up
def test_declared_strings_are_found_among_others(rows):
    values = ["b", None, "", "a", "é", "zz", "a ", "b"]
    frame = pl.DataFrame({"k": [values[place % 8] for place in range(rows)]})
    query = asked(lambda dp: dp.group_by("k", keys=["zz", "a", "absent", "b", ""]).count())
    found = next(iter(whole(frame, query, PrivacyUnit(column="k", max_rows=rows)).values()))
    assert [round(n / 2**20) for n in found] == [n * rows // 8 for n in (1, 1, 0, 2, 1)]


@pytest.mark.parametrize("units", [900, 9000, 2**40])  # nearly all rows share a unit and cell, few do, none does
def test_pairs_are_the_same_in_several_threads(units, monkeypatch):
    rng = np.random.default_rng(5)
    code, cell = rng.integers(0, units, 5000), rng.integers(0, 7, 5000)
    found = []
    for threads, many in ((1, 10**9), (2, 0), (8, 0)):
        monkeypatch.setattr(weights, "THREADS", threads)
        monkeypatch.setattr(weights, "MANY_ROWS", many)
        rows, starts = weights._sharing(code, cell)
        pairs = [sorted(pair) for pair in np.split(rows, starts[1:].tolist()) if pair.size]
        assert all(len(pair) > 1 and len(set(zip(code[pair], cell[pair], strict=True))) == 1 for pair in pairs)
        found.append(sorted(pairs))
    assert found[0] == found[1] == found[2]


def test_104_sums_of_squares_do_not_depend_on_order():
    sizes = np.array([2**26 + 1] * 40 + [3, 5, 2**20 + 1], dtype=np.float64)
    owner = np.zeros(sizes.size, dtype=np.int64)
    rows = np.array([int(sizes.sum())])
    exact = sum(int(size) ** 2 for size in sizes)
    assert exact > 2**53
    for order in (np.arange(sizes.size), np.arange(sizes.size)[::-1], np.argsort(sizes)):
        assert weights._powers(rows, owner, sizes[order], 2.0).tolist() == [float(exact)]


def test_183_a_unit_of_more_rows_than_a_frame_holds_adds_no_more_than_any_other():
    unit = PrivacyUnit(column="u", max_rows=3, max_groups=2)
    reach = 3 * 2**0.5 * 2.0**20  # steps
    for sizes in ([2**32], [2**32 + 5], [2**33, 7], [2**31, 2**31], [2**40, 2**40, 2**40], [2**32 - 1]):
        pairs = pl.DataFrame({"unit": [1] * len(sizes), "cell": range(len(sizes)), addends.ROWS: sizes})
        (found,) = weights.of_pairs(pairs, addends.Terms.of((RowsTotal(),)), unit, 2.0, 4).values()
        assert 0.0 < float((found.astype(float) ** 2).sum()) ** 0.5 <= reach


def many_times(task, pairs, times):
    """Return the pairs of 2**31 * `times` as many rows, as repeated combining makes them."""
    numbers = [name for name in pairs.columns if name not in ("unit", "cell")]
    larger = pairs.with_columns(pl.col(name) * 2**31 for name in numbers)
    return task.combine(pl.concat([larger] * times))


@pytest.mark.parametrize("times", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("ask", ["mean", "sum"])
def test_184_a_unit_of_more_rows_than_sums_have_room_for_adds_within_its_reach(times, ask):
    query, unit = asked(lambda dp: getattr(dp, ask)("x", bounds=(0, 2))), PrivacyUnit(column="u", max_rows=3)
    table = pl.LazyFrame({"u": [1, 1], "x": [2.0, 2.0]})
    task = Task.of(engine_of(table, Reading()), query, unit, 1.0)
    found = task.weigh(many_times(task, task.combine(task.coded(table.collect())), times)).totals
    for total, (steps,) in found.items():
        least, most = total.norm(weighted=True).reach
        assert 3 * least <= steps <= 3 * most
        if isinstance(total, RowsTotal):  # no value is missing
            assert steps == 3 * most - 1


def test_186_keys_of_unit_and_group_have_64_bits(monkeypatch):
    assert weights.close_together(pl.Series([0, 1_000])) == (0, 1_001)
    monkeypatch.setattr(weights, "MOST_CODE", 999)
    assert weights.close_together(pl.Series([0, 1_000])) is None
    query = asked(lambda dp: dp.contributions("k"))
    monkeypatch.setattr(compound, "_rows", lambda *_: (pl.Series([0, 2**23, 2**23]), np.array([0, 0, 2**40])))
    monkeypatch.setattr(compound, "unit_codes", lambda units: (units.to_numpy(), 2**23 + 1))
    found = compound.units_by_cell(None, query, PrivacyUnit("u"))
    size = query.keys.axes[1].size  # the second unit has two rows, in two groups
    assert np.flatnonzero(found).tolist() == [0, size + 1]
