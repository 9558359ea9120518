"""The keyed fold, for discovered keys: the same exact weights on every engine, by units and not by rows."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.columns.found_labels import labels, told_apart
from dpframe.engines.columns.identity import UNNAMED, code_of, stored, value_of
from dpframe.engines.columns.source import source_of, types_of
from dpframe.engines.found_keys import KeyedPartial, KeyedTask, keyed
from dpframe.engines.totals import totals
from dpframe.planning.price import of_people, weights_of_units
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.discovery import Needed, found_axes
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query

SECRET = 0x0123456789ABCDEF


def axis_of(by=("k",), **more):
    (axis,) = found_axes(tuple(by), dpf.discover(delta=1e-6, **more))
    return axis


def unit_of(column="u", **more):
    return dpf.PrivacyUnit(column, **more)


def asked(frame, unit, *, p=2, by=("k",), **more):
    axis = axis_of(by, **more)
    return keyed(frame, axis, unit, weights_of_units(axis, unit, p), SECRET)


def table(rows=6_000, people=70, keys=40, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"u": rng.zipf(1.3, rows) % people, "k": rng.zipf(1.2, rows) % keys, "x": rng.random(rows)})
    hole = pl.int_range(pl.len()) % 17
    return frame.with_columns(
        k=pl.when(hole > 0).then("k"), u=pl.when(hole != 3).then("u"), w=pl.format("w{}", pl.col("k") % 5)
    )


def by_hand(frame, most, steps):
    """Return the weights of keys by a plain group-by, if no unit has more keys than allowed."""
    pairs = frame.drop_nulls(["u", "k"]).select("u", "k").unique()
    held = pairs.group_by("u").agg(t=pl.len())
    assert held["t"].max() <= most
    weights = pl.DataFrame({"t": range(1, most + 1), "v": steps})
    joined = pairs.join(held, on="u").join(weights.cast({"t": held["t"].dtype}), on="t")
    return joined.group_by("k").agg(steps=pl.col("v").sum(), units=pl.len().cast(pl.Int64)).sort("k")


@pytest.mark.parametrize("p", [1, 2])
def test_weights_are_those_of_units_and_not_of_rows(p):
    frame, unit = table(), unit_of(max_groups=3)
    steps = [(3 << 20) // t if p == 1 else math.isqrt((3 << 40) // t) for t in range(1, 61)]
    steps = [min(step, 1 << 20) for step in steps]
    found = asked(frame, unit, p=p, max_keys=60)
    assert found.rename({"key0": "k"}).equals(by_hand(frame, 60, steps))


def tables(frame, tmp_path):
    """Yield the same rows on every installed engine."""
    yield "lazy", frame.lazy()
    yield "arrow", frame.to_arrow()
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=500)
    yield "scanned", pl.scan_parquet(tmp_path / "rows.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    yield "dataset", dataset.dataset(tmp_path / "rows.parquet")
    try:
        import duckdb
    except ImportError:
        return
    yield "duckdb", duckdb.from_arrow(frame.to_arrow())


UNITS = [unit_of(max_groups=3), unit_of(max_groups=2, nulls="one-unit"), unit_of(None)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("more", [{}, {"nulls": True, "max_keys": 4}], ids=["plain", "capped, with missing keys"])
def test_every_engine_gives_the_same_integers(unit, more, tmp_path):
    frame = table()
    expected = asked(frame, unit, by=("w", "k"), **more)
    assert expected.height > 15
    for name, other in tables(frame, tmp_path):
        assert asked(other, unit, by=("w", "k"), **more).equals(expected), name


def test_pandas_gives_the_same_integers():
    pytest.importorskip("pandas")
    frame, unit = table(), unit_of(max_groups=3)
    expected = asked(frame, unit)
    found = asked(frame.to_pandas(), unit)
    keys = [value_of(code) for code in found["key0"]]
    order = np.argsort(keys)
    assert np.array(keys)[order].tolist() == expected["key0"].to_list()
    for name in ("steps", "units"):
        assert found[name].to_numpy()[order].tolist() == expected[name].to_list()


def test_an_engine_that_spills_gives_the_same_integers():
    from dpframe.engines.engine import Reading

    frame, unit = table(60_000, 9_000, 300), unit_of(max_groups=3)
    axis = axis_of(max_keys=20)
    weights = weights_of_units(axis, unit, 2)
    found = keyed(frame.lazy(), axis, unit, weights, SECRET, Reading(memory=2**20))
    assert found.equals(asked(frame, unit, max_keys=20))


def test_partials_are_added_by_key():
    frame, unit = table(), unit_of(max_groups=3)
    axis = axis_of(max_keys=5)
    types = types_of(source_of(frame).schema)
    task = KeyedTask(axis, unit, weights_of_units(axis, unit, 2), SECRET, {name: types[name] for name in ("k", "u")})
    people = frame.with_columns(part=pl.col("u").fill_null(0) % 3)
    parts = [task.piece(one.drop("part")) for one in people.partition_by("part")]
    assert (parts[0] + parts[1] + parts[2]).table.equals(sum(parts).table)
    assert sum(parts).table.equals(asked(frame, unit, max_keys=5))
    assert isinstance(task.piece(frame.head(0)), KeyedPartial)
    again = task.combine(task.combine(task.coded(frame)))
    assert task.weigh(again).table.equals(task.piece(frame).table)


def test_a_unit_with_many_keys_keeps_as_many_as_it_may():
    frame = pl.DataFrame({"u": [1] * 500 + [2] * 3, "k": [*range(250)] * 2 + [0, 1, 2]})
    found = asked(frame, unit_of(max_groups=1), max_keys=10)
    assert found["units"].sum() == 13
    capped = found.filter(pl.col("key0") > 2)
    assert set(capped["steps"]) == {math.isqrt(2**40 // 10)}
    axis, unit = axis_of(max_keys=10), unit_of(max_groups=1)
    assert not keyed(frame, axis, unit, weights_of_units(axis, unit, 2), 99).equals(found)


def test_the_order_is_that_of_the_keys_and_not_of_the_rows():
    frame = pl.DataFrame({"u": [1] * 300, "k": [*range(300)]})
    found = asked(frame, unit_of(max_groups=1), max_keys=10)
    assert found.equals(asked(frame.reverse(), unit_of(max_groups=1), max_keys=10))
    assert found.equals(asked(pl.concat([frame, frame.head(150)]), unit_of(max_groups=1), max_keys=10))


def test_what_a_unit_keeps_depends_on_no_other_unit():
    """Ids that are objects are numbered by their order in the table, which must not decide what a unit keeps."""
    pandas = pytest.importorskip("pandas")
    mine = [("me", key) for key in range(30)]
    for others in ([], [("a", 100), ("b", 101)]):
        frame = pandas.DataFrame([*others, *mine], columns=["u", "k"]).astype({"u": object})
        found = asked(frame, unit_of(max_groups=1), max_keys=3)
        kept = {value_of(code) for code in found["key0"]} & set(range(30))
        alone = asked(pandas.DataFrame(mine, columns=["u", "k"]), unit_of(max_groups=1), max_keys=3)
        assert kept == {value_of(code) for code in alone["key0"]}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 3, 8])
def test_every_key_of_a_unit_is_kept_about_equally_often(keys):
    frame = pl.DataFrame({"u": [1] * 30, "k": [*range(30)]})
    axis, unit = axis_of(max_keys=keys), unit_of(max_groups=1)
    counts = np.zeros(30)
    for secret in range(1_000):
        kept = keyed(frame, axis, unit, weights_of_units(axis, unit, 2), secret * 0x9E3779B97F4A7C15 % 2**64)["key0"]
        counts[kept.to_numpy()] += 1
    expected = 1_000 * keys / 30
    assert counts.sum() == 1_000 * keys
    assert np.abs(counts - expected).max() < 6.5 * math.sqrt(expected)


def distance(before, after, p):
    """Return the l_p distance of two tables of keys; a missing key counts as 0."""
    both = before.join(after, on="key0", how="full", coalesce=True, suffix="_after").fill_null(0)
    steps = (both["steps"] - both["steps_after"]).abs().to_list()
    return sum(steps) if p == 1 else math.sqrt(sum(step**2 for step in steps))


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("groups", [1, 3, 9])
@pytest.mark.parametrize("least", [1, 3])
def test_random_neighbors_are_within_the_sensitivity(p, neighbors, groups, least):
    rng = np.random.default_rng([p, groups, least, len(neighbors)])
    unit, axis = unit_of(max_groups=groups, neighbors=neighbors), axis_of(max_keys=6, at_least=least)
    reach, weights = of_people(axis, unit).steps(p), weights_of_units(axis, unit, p)
    largest = 0.0
    for _ in range(60):
        most = int(rng.choice([1, 4, 6, 7, 30]))
        others = [(owner, int(key)) for owner in range(3) for key in rng.integers(0, 40, rng.integers(0, 12))]
        mine = [(9, int(key)) for key in rng.integers(0, 40, most)] * int(rng.integers(1, 3))
        instead = [(9, int(key)) for key in rng.integers(40, 80, most)] if neighbors == "replace" else []
        tables = [
            keyed(pl.DataFrame(rows, schema={"u": pl.Int64, "k": pl.Int64}, orient="row"), axis, unit, weights, SECRET)
            for rows in ([*others, *mine], [*others, *instead])
        ]
        largest = max(largest, distance(*tables, p) / reach)
        alone = {key for _, key in mine} - {key for _, key in others}
        shown = tables[0].filter(pl.col("key0").is_in(list(alone)))
        if shown.height:  # as the threshold assumes: at most T keys, each with the weight for their number
            held = min(6, len({key for _, key in mine}))
            assert shown.height <= held
            assert set(shown["steps"]) == {weights[held - 1]}
    assert 0.9 < largest <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("groups", [1, 3, 9])
def test_what_is_asked_of_groups_that_are_shown_is_of_max_groups(p, neighbors, groups):
    """Three groups are shown, whatever max_groups is; weights and grids must be those of the plan."""
    rng = np.random.default_rng([7, p, groups, len(neighbors)])
    unit = dpf.PrivacyUnit("u", max_rows=2, max_groups=groups, neighbors=neighbors)
    axis = replace(axis_of(), by_column=((0, 1, 2),), room=groups + 1, discovery=None)
    asked = [one for each in (dpf.count(), dpf.sum("x", bounds=(-3, 10)), dpf.n_units("x")) for one in each.totals()]
    query = Query("agg", Keys((axis,)), tuple((str(place), Needed(one)) for place, one in enumerate(asked)))
    schema = {"u": pl.Int64, "k": pl.Int64, "x": pl.Float64}

    def measured(rows):
        return totals(pl.DataFrame(rows, schema=schema, orient="row"), query, unit, p)

    def mine():
        values = rng.choice([-9.0, 0.0, 20.0], int(rng.choice([1, 2, 6, 30])))
        return [(9, int(rng.integers(0, 5)), float(value)) for value in values]

    largest = 0.0
    for _ in range(30):
        others = [(int(owner), int(rng.integers(0, 5)), 1.0) for owner in rng.integers(0, 3, 8)]
        one = measured([*others, *mine()])
        other = measured([*others, *(mine() if neighbors == "replace" else [])])
        for total in asked:
            steps = [abs(int(a) - int(b)) for a, b in zip(one[total], other[total], strict=True)]
            far = sum(steps) if p == 1 else math.sqrt(sum(step**2 for step in steps))
            largest = max(largest, far / sensitivity_of(total, unit, groups + 1).steps(p))
    assert 0.4 < largest <= 1.0


VALUES = [
    *("", "a", "n1", "é" * 3, 0, -1, 2**63, 2**64, -(2**63) - 1, 2**70, 10**200, 0.5, -0.25, 5e-324, 1e308, math.inf),
    *(Decimal("0.1"), Decimal("-12.50"), Decimal("1e-300"), Fraction(1, 8), date(2024, 2, 29), datetime(1, 1, 1)),
    *(datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=-3, microseconds=1)),
    *(time(23, 59, 59, 999999), None),
]


def test_codes_of_values_are_told_apart_and_come_back():
    codes = [code_of(value) for value in VALUES]
    assert len(set(codes)) == len(VALUES)
    for value, code in zip(VALUES, codes, strict=True):
        assert code_of(value_of(code)) == code
        assert value_of(code) == value or isinstance(value, date)
    for same in ((1, 1.0, True, np.int8(1), Decimal(1)), (0.5, np.float32(0.5), Decimal("0.5")), (0.0, -0.0, 0)):
        assert len({code_of(value) for value in same}) == 1
    for unnamed in ((1, 2), b"x", 1j, np.datetime64(1, "ns"), "\ud800", Fraction(1, 3), np.datetime64(10**6, "Y")):
        assert code_of(unnamed) == UNNAMED


def test_numbers_of_pandas_have_the_codes_of_their_values():
    pandas = pytest.importorskip("pandas")
    numbers = [0.0, -0.0, 1.0, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 2.0**63 + 2048, 0.1, 1e300, math.inf, -math.inf]
    whole = [0, -5, 2**62 + 1, -(2**63)]
    cases = {
        "float64": numbers,
        "float32": [0.5, 1.0],
        "int64": whole,
        "uint64": [2**64 - 1, 0],
        "bool": [True, False],
        "Int64": [1, None],
        "object": [*numbers, *whole, "n1"],
        "category": ["a", "b", None],
    }
    for dtype, values in cases.items():
        frame = pandas.DataFrame({"k": pandas.Series(values, dtype=dtype), "u": range(len(values))})
        source = source_of(frame)
        found = source.load([("key0", "k", "found", None)]).collect()["key0"].to_list()
        assert found == [code_of(value) for value in values], dtype
        column = source.column("k")
        for value, code in zip(values, found, strict=True):
            declared = value if isinstance(value, float) and math.isinf(value) else stored(value, column.identity)
            assert told_apart(code, column) == declared
        shown = labels(pl.Series(found), column)
        assert shown.dtype == object
        assert [value for value in shown if value is not None] == [value for value in values if value is not None]


@pytest.mark.parametrize("by", [("a", "k"), ("k", "a")], ids=str)
def test_values_without_a_name_are_keys_in_no_column(by):
    pandas = pytest.importorskip("pandas")
    values = pandas.Series(["x", (1, 2), 3, [4], "x"], dtype=object)
    frame = pandas.DataFrame({"u": range(5), "a": "same", "k": values})
    found = asked(frame, unit_of(max_groups=1), by=by)
    assert {*map(value_of, found[f"key{by.index('k')}"])} == {"x", 3}
    assert found["units"].sum() == 3


def test_nothing_fails_on_a_value():
    pandas = pytest.importorskip("pandas")

    class Odd:
        def __eq__(self, other):
            raise RuntimeError("private")

        __hash__ = None

    values = [Odd(), [1], float("nan"), pandas.NaT, pandas.NA, "x", np.float64("inf"), 1 << 5_000, Decimal("1e99999")]
    frame = pandas.DataFrame({"k": pandas.Series(values, dtype=object), "u": range(len(values))})
    found = asked(frame, unit_of(max_groups=1), nulls=True)
    assert [value_of(code) for code in found["key0"]] == [math.inf, "x", None]
    assert found["units"].to_list() == [1, 1, 3]
