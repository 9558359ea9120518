"""Units of several columns: every engine treats a combination as the id in one column made by hand."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import ENGINES
from dpframe import PrivacyUnit
from dpframe.engines.engine import added_up
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.engines.trial import questions
from dpframe.errors import InvalidArgument, InvalidType, UnknownColumn, WrongDtype
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, n_distinct, n_units, sum, variance
from tests import neighbors

NEEDS = {"pandas": "pandas", "duckdb": "duckdb", "dask": "dask.dataframe"}
MANY = 1e7  # an epsilon with negligible noise
BY_GROUP = Keys((KeyAxis(("g",), (("A", "B", "C"),)),))
TRAPS = [  # pairs of texts that a careless join would merge
    *(("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("a", "b c"), ("a b", "c"), ("1", "1 1"), ("1 1", "1")),
    *(("null", "a"), (None, "a"), ("a", None), (None, None), ("None", "a"), ("a", "null"), ("3 a", "b"), ("3", " ab")),
]
POOLS = {  # hard values of each dtype
    "text": (pl.String, ["", " ", "1", "1 ", "null", "é", "a\u0301", None]),
    "int": (pl.Int64, [0, 1, -1, 11, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None]),
    "byte": (pl.UInt8, [0, 1, 11, 255, None]),
    "float": (pl.Float64, [0.0, -0.0, 1.0, 5e-324, 0.1, 0.1 + 2**-56, math.inf, -math.inf, math.nan, None]),
    "narrow": (pl.Float32, [0.0, -0.0, 1.0, 1e-45, math.nan, None]),
    "flag": (pl.Boolean, [True, False, None]),
    "day": (pl.Date, [date(1, 1, 1), date(1970, 1, 1), date(1970, 1, 2), None]),
    "moment": (pl.Datetime("us"), [datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    "amount": (pl.Decimal(12, 2), [Decimal("0.1"), Decimal("1"), Decimal("-1"), None]),
}


def table(seed, rows=400):
    """Return random hard values of each dtype, with a group `g` and a value `x` for statistics."""
    random = np.random.default_rng(seed)
    columns = {
        name: pl.Series([pool[place] for place in random.integers(0, len(pool), rows)], dtype=dtype)
        for name, (dtype, pool) in POOLS.items()
    }
    groups, values = random.choice(["A", "B", "C", "D"], rows), random.normal(0, 4, rows)
    return pl.DataFrame({**columns, "g": groups.tolist(), "x": values})


def by_hand(frame, columns):
    """Return a number for each combination, by Python's equality; None if a value is missing."""

    def plain(value):
        return None if value is None or value != value else value

    rows = [tuple(map(plain, row)) for row in frame.select(columns).iter_rows()]
    known = {}
    return pl.Series("id", [None if None in row else known.setdefault(row, len(known)) for row in rows], dtype=pl.Int64)


def asked():
    """Return a question for each way to totals: rows of units, whole units, vectors, distinct values."""
    return {
        "rows": Query("agg", BY_GROUP, (("n", Count()), ("s", sum("x", (-3, 4))))),
        "units": Query("agg", BY_GROUP, (("n", n_units()), ("s", sum("x", unit_bounds=(-3, 4))))),
        "squares": Query("agg", BY_GROUP, (("v", variance("x", bounds=(-3, 4))),)).under(True),
        "values": Query("agg", BY_GROUP, (("d", n_distinct("x", max_values=2)),)),
        "contributions": questions()["contributions by word"],
    }


def exact(frame, query, unit, p=1.0):
    """Return the exact totals of a question, as lists."""
    found = totals(frame, check(frame, query, unit), unit, p, secret=7)
    return {total: steps.tolist() for total, steps in found.items()}


@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
@pytest.mark.parametrize(
    "columns", [["text", "int"], ["float", "flag"], ["narrow", "byte", "day"], ["moment", "amount"], ["g", "text"]]
)
def test_a_combination_is_the_unit_of_a_column_made_by_hand(columns, nulls):
    for seed in range(2):
        frame = table(seed, 200)
        frame = frame.with_columns(by_hand(frame, columns), word=frame["g"])
        for name, query in asked().items():
            if name == "values":
                continue  # a hash of the unit's name decides which groups count
            bounds = {} if name == "contributions" else {"max_rows": 2, "max_groups": 2}
            several, one = (PrivacyUnit(who, nulls=nulls, **bounds) for who in (columns, "id"))
            assert exact(frame, query, several) == exact(frame, query, one), name


@pytest.mark.parametrize("most", [1, 3])
def test_distinct_values_are_of_whole_combinations(most):
    """All values differ, in one group, so each unit supports as many of its values as its bound allows."""
    frame = table(1).with_columns(pl.lit("A").alias("g"), pl.int_range(400).alias("x"))
    query = Query("agg", BY_GROUP, (("d", n_distinct("x", max_values=most)),))
    for columns in (["text", "int"], ["float", "day"]):
        ids = by_hand(frame, columns).drop_nulls()
        unit = PrivacyUnit(columns, max_rows=1, max_groups=1)
        (found,) = exact(frame, query, unit).values()
        assert found[0] == ids.value_counts()["count"].clip(0, most).sum()


@pytest.mark.parametrize(
    "name", ["pandas", "lazy", "dataset", "duckdb", "arrow", pytest.param("dask", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
def test_every_engine_has_the_units_of_polars_in_memory(name, nulls):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    for seed, columns in enumerate([["text", "int"], ["float", "flag", "byte"]]):
        _agree(name, table(seed), columns, nulls, distinct=name in ("pandas", "lazy", "arrow"))


def _agree(name, frame, columns, nulls, *, distinct):
    frame = frame.with_columns(word=frame["g"])
    with _made(name) as make:
        for asked_name, query in asked().items():
            if asked_name == "values" and not distinct:
                continue
            bounds = {} if asked_name == "contributions" else {"max_rows": 2, "max_groups": 3}
            unit = PrivacyUnit(columns, nulls=nulls, **bounds)
            assert exact(make(frame), query, unit) == exact(frame, query, unit), asked_name


def _made(name):
    from contextlib import nullcontext

    return nullcontext(lambda frame: frame.to_arrow()) if name == "arrow" else ENGINES[name]()


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
def test_what_a_join_of_texts_would_take_for_one_stays_apart(library):
    frame = pl.DataFrame(TRAPS, schema={"a": pl.String, "b": pl.String}, orient="row")
    whole = sorted({pair for pair in TRAPS if None not in pair})
    unit = PrivacyUnit(["a", "b"], max_rows=1)
    ledger = dpf.Ledger(epsilon=4 * MANY, unit=unit)
    found = dpf.of(neighbors.given_as(frame, library)).n_units(epsilon=MANY, ledger=ledger)
    assert round(found["n_units"][0]) == len(whole)
    missing = dpf.Ledger(epsilon=4 * MANY, unit=PrivacyUnit(["a", "b"], nulls="one-unit", max_rows=1))
    found = dpf.of(neighbors.given_as(frame, library)).n_units(epsilon=MANY, ledger=missing)
    assert round(found["n_units"][0]) == len(whole) + 1


def test_objects_of_pandas_are_told_apart_as_keys_are():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"a": [1, 1.0, True, "1", None, 1], "b": ["x", "x", "x", "x", "x", float("nan")]}, dtype=object
    )
    ledger = dpf.Ledger(epsilon=4 * MANY, unit=["a", "b"])
    assert round(frame.dp.n_units(epsilon=MANY, ledger=ledger)["n_units"][0]) == 2  # 1 and "1"
    levels = frame.assign(b=frame["b"].astype("category"))
    assert round(levels.dp.n_units(epsilon=MANY, ledger=ledger)["n_units"][0]) == 2


def test_bytes_that_are_no_text_stay_apart():
    pyarrow = pytest.importorskip("pyarrow")
    words = [b"\xff", b"\xfe", b"a", b"\xff"]
    offsets = pyarrow.py_buffer(np.cumsum([0, *map(len, words)]).astype(np.int32))
    bad = pyarrow.Array.from_buffers(pyarrow.string(), len(words), [None, offsets, pyarrow.py_buffer(b"".join(words))])
    table = pyarrow.table({"a": bad, "b": pyarrow.array([1, 1, 1, 1])})
    ledger = dpf.Ledger(epsilon=4 * MANY, unit=["a", "b"])
    assert round(dpf.of(table).n_units(epsilon=MANY, ledger=ledger)["n_units"][0]) == 3


# Neighbors: all rows of one combination are added, removed or replaced

PAIRS = [("a", "bc"), ("ab", "c"), ("abc", ""), ("1", "1 1"), ("1 1", "1"), ("", "abc")]


def _in_two_columns(units):
    """Return a frame of these units, each named by a pair of texts that a careless join would merge."""
    frame = FRAME_OF(units)
    pairs = pl.DataFrame(PAIRS, schema={"a": pl.String, "b": pl.String}, orient="row")
    return frame.hstack(pairs[frame["u"].to_list()]).drop("u")


FRAME_OF = neighbors.frame_of
STATISTICS = {
    "rows": Count(),
    "signed sum": sum("x", (-3, 4)),
    "people": n_units(),
    "sum of people": sum("x", unit_bounds=(-3, 4)),
    "variance": variance("x", bounds=(-3, 4)),
}


@pytest.mark.parametrize("neighboring", ["add-remove", "replace"])
@pytest.mark.parametrize("name", STATISTICS)
def test_no_neighbor_moves_totals_beyond_the_sensitivity(name, neighboring, monkeypatch):
    """Random neighbors move exact totals by at most the sensitivity, which is that of a unit of one column."""
    monkeypatch.setattr(neighbors, "frame_of", _in_two_columns)
    for bounds in ({"max_rows": 1, "max_groups": 1}, {"max_rows": 2, "max_groups": 2}):
        unit = PrivacyUnit(["a", "b"], neighbors=neighboring, **bounds)
        for p, pure in ((1, True), (2, False)):
            query = neighbors.query_of(STATISTICS[name], BY_GROUP, pure)
            assert neighbors.largest_by_chance(query, unit, p, tries=12) <= 1 + 1e-12


def test_rows_with_any_value_missing_are_one_unit_in_all_pieces():
    """Whatever their other values are, many such rows count no more than those of one unit."""
    rows = [(str(number), None) for number in range(50)] + [(None, str(number)) for number in range(50)]
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    query = Query("agg", Keys(()), (("n", n_units()),))
    unit = PrivacyUnit(["a", "b"], nulls="one-unit", max_rows=1, max_groups=1)
    for name in ("lazy", "dataset", "dask"):
        if name in NEEDS:
            pytest.importorskip(NEEDS[name])
        with ENGINES[name]() as make:
            assert list(exact(make(frame), query, unit).values()) == list(exact(frame, query, unit).values())
    (found,) = exact(frame, query, unit).values()
    (one,) = exact(frame[:1], query, unit).values()
    assert found == one


# Refusals and messages


class Outside:
    """A caller's engine, whose pieces are partitions by one column."""

    def __init__(self, frame):
        self.frame, self.asked = frame, []

    def schema(self):
        return dict(self.frame.schema)

    def fold(self, columns, piece, by):
        self.asked.append(by)
        parts = [self.frame] if by is None else self.frame.partition_by(by)
        return added_up(map(piece, [self.frame.clear(), *parts]))

    def push(self, task):
        assert isinstance(task.unit.column, str | None), "it knows names of one column"


def test_an_engine_from_outside_brings_units_together_by_the_first_column():
    frame = table(5)
    engine = Outside(frame)
    unit = PrivacyUnit(["text", "int"], max_rows=2, max_groups=2)
    query = asked()["rows"]
    assert exact(engine, query, unit) == exact(frame, query, unit)
    assert set(engine.asked) == {"text"}
    ledger = dpf.Ledger(epsilon=1, unit=PrivacyUnit(["text", "int"], nulls="one-unit"))
    with pytest.raises(InvalidType, match=r"one-unit.*Write nulls='drop'"):
        dpf.of(engine).n_units(epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0
    assert len(engine.asked) == 1  # no row was read


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        ([], InvalidArgument, "at least one"),
        (["a", "a"], InvalidArgument, "'a' stands twice"),
        (["a", 3], InvalidType, "list of names"),
        ([["a"]], InvalidType, "list of names"),
        ([None, "a"], InvalidType, "list of names"),
        ({"a", "b"}, InvalidType, "name of"),
        (("a" for _ in range(2)), InvalidType, "name of"),
    ],
)
def test_what_names_no_columns_is_refused(column, error, words):
    with pytest.raises(error, match=words):
        PrivacyUnit(column)
    with pytest.raises(error, match=words):
        dpf.Ledger(epsilon=1, unit=column)


def test_a_column_that_is_missing_or_has_no_identity_is_refused_before_the_charge():
    frame = table(1).with_columns(pl.struct("text", "int").alias("s"))
    for column, error in (("nope", UnknownColumn), ("s", WrongDtype)):
        ledger = dpf.Ledger(epsilon=1, unit=["text", column])
        with pytest.raises(error, match=column):
            frame.dp.n_units(epsilon=0.5, ledger=ledger)
        assert ledger.spent.epsilon == 0


def test_a_ledger_protects_the_columns_that_it_was_made_with():
    ledger = dpf.Ledger(epsilon=1, unit=["text", "int"])
    for unit in ("text", ["text", "day"], ["int", "text"], PrivacyUnit(["text", "int"], nulls="one-unit")):
        with pytest.raises(InvalidArgument, match="unit must be left out or equal the ledger's"):
            table(1).dp.n_units(unit=unit, epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_list_of_one_column_is_the_column():
    assert PrivacyUnit(["patient"]) == PrivacyUnit("patient")
    assert PrivacyUnit(("patient",)).facts() == PrivacyUnit("patient").facts()
    assert PrivacyUnit(["a", "b"]) == PrivacyUnit(("a", "b"))
    assert PrivacyUnit(["a", "b"]).facts()["column"] == ["a", "b"]
    assert PrivacyUnit.of_facts(PrivacyUnit(["a", "b"], max_rows=2).facts()) == PrivacyUnit(
        ["a", "b"], max_rows=2, max_groups=1
    )


def test_records_ledgers_and_words_name_all_columns(tmp_path):
    frame = table(2)
    path = tmp_path / "units.ledger"
    ledger = dpf.Ledger(epsilon=10, unit=["text", "int"], path=path)
    result = frame.dp.group_by("g", keys=["A", "B"]).count(
        epsilon=1, max_rows=2, max_groups=2, ledger=ledger, label="groups", snapshot="2026"
    )
    record = result.dp.provenance
    assert record["unit"]["column"] == ["text", "int"]
    again = dpf.Ledger.open(path)
    assert again.unit == PrivacyUnit(["text", "int"])
    assert again.verify()["entry"] == 2
    replayed = frame.dp.group_by("g", keys=["A", "B"]).count(
        epsilon=1, max_rows=2, max_groups=2, ledger=again, label="groups", snapshot="2026", unit=["text", "int"]
    )
    assert replayed.equals(result)
    assert again.spent == dpf.PrivacyLoss(1)
    assert "one combination of text and int" in result.dp.statement()
    assert "combination of 'text' and 'int'" in str(ledger)
    result.dp.write_parquet(tmp_path / "result.parquet")
    read = dpf.read_parquet(tmp_path / "result.parquet")
    assert read.dp.provenance["unit"] == record["unit"]
    notes = frame.dp.preview.count(epsilon=1, max_rows=2, ledger=ledger)
    assert "rows in which text or int is missing are left out" in str(notes)
    pytest.importorskip("altair")
    assert "combination of text and int" in str(result.dp.plot().to_dict())
