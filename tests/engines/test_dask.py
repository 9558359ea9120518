"""Dask DataFrames: the integers of Polars in memory, whatever the dtypes of partitions; or a refusal by schema."""

from __future__ import annotations

import enum
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import as_dask, in_pandas
from dpframe import noise
from dpframe.engines.columns.dask_partitions import column_of
from dpframe.engines.columns.source import source_of, types_of_dask
from dpframe.engines.pieces import dask as engine
from dpframe.engines.pieces import unit_parts
from dpframe.engines.task import Task
from dpframe.engines.totals import InMemory
from dpframe.testing import check_engine

pandas = pytest.importorskip("pandas", reason="pandas is not installed, which Dask holds its partitions in")
dask = pytest.importorskip("dask", reason="Dask is not installed: pip install dpframe[dask]")
dd = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")

MANY = 1e7  # an epsilon with negligible noise
WHO = dpf.PrivacyUnit("patient", max_rows=2, max_groups=2)
VISITS = pl.DataFrame(
    {
        "patient": [1, 1, 2, 3, 3, None],
        "ward": ["A", "B", "A", "C", "C", None],
        "cost": [120.0, 80.0, 40.0, 65.0, 1.0, 9.0],
    }
)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def made_of(*partitions, declared):
    """Return a Dask DataFrame of these pandas frames, with the dtypes of `declared`, which Dask does not enforce."""
    return dd.from_map(lambda place: partitions[place], range(len(partitions)), meta=declared.iloc[:0])


def units_in(frame, column, **options):
    who = dpf.PrivacyUnit(column, max_rows=1, max_groups=1, **options)
    return round(dpf.of(frame).count(epsilon=MANY, ledger=dpf.Ledger(epsilon=MANY, unit=who))["count"][0])


@pytest.mark.parametrize("every", [17, pytest.param(5, marks=pytest.mark.slow)])
def test_dask_is_polars_in_memory_bit_for_bit(every, monkeypatch):
    monkeypatch.setattr(unit_parts, "MANY_ROWS", 5)  # so that pairs are combined first in some parts only
    check_engine(as_dask, tables=1, every=every)


class Split(engine.DaskTable):
    """A deliberately broken engine: the rows of one part of the units stay in several partitions."""

    def _exchanged(self, sent, places):
        return sent


@pytest.mark.slow
def test_a_unit_that_is_split_over_partitions_is_found():
    with pytest.raises(dpf.testing.ContractBroken, match=r"protected .* differ on the table"):
        check_engine(lambda frame: Split(as_dask(frame)), tables=0, every=3)


def test_many_rows_of_one_unit_are_brought_together_before_they_are_sent(monkeypatch):
    frame = pl.DataFrame({"patient": [1] * 40 + [2, 3] * 3, "ward": ["A", "B"] * 23, "cost": [0.25] * 46})
    asked = dpf.of(frame).preview.group_by("ward", keys=["A", "B"])
    query = asked.agg(s=dpf.sum("cost", bounds=(0, 1)), n=dpf.count(), unit=WHO, epsilon=1)
    task = Task.of(InMemory(source_of(frame)), query.query, query.unit, 1.0)
    for many in (0, 5, 100):  # combine rows of all parts, of some, of none
        monkeypatch.setattr(unit_parts, "MANY_ROWS", many)
        found = engine.DaskTable(as_dask(frame)).push(task)
        assert {total: cells.tolist() for total, cells in found.totals.items()} == {
            total: cells.tolist() for total, cells in task.piece(frame).totals.items()
        }


def test_fold_brings_whole_units_together_too():
    once = dpf.PrivacyUnit("patient", max_rows=1, max_groups=1)
    query = dpf.of(VISITS).preview.sum("cost", bounds=(0, 100), epsilon=1, unit=once)
    task = Task.of(InMemory(source_of(VISITS)), query.query, query.unit, 1.0)
    found = engine.DaskTable(as_dask(VISITS)).fold(task.columns, task.piece, task.by)
    assert {total: cells.tolist() for total, cells in found.totals.items()} == {
        total: cells.tolist() for total, cells in task.piece(VISITS).totals.items()
    }


def test_120_noise_is_drawn_once_whatever_the_number_of_tasks():
    """Tasks draw no noise: the same random bits give the same answer in memory and with any number of partitions."""
    rows = pandas.DataFrame({"w": ["A", "B"] * 20, "x": [float(place % 9) for place in range(40)]})
    answers = []
    for frame in (rows, *(dd.from_pandas(rows, npartitions=partitions) for partitions in (1, 7))):
        with noise.insecure_bits(0), dpf.Ledger(epsilon=2):
            asked = dpf.of(frame).group_by("w", keys=["A", "B"])
            found = asked.agg(n=dpf.count(), m=dpf.mean("x", bounds=(0, 9)), epsilon=1, checks=True)
        told = found.dp.checks()["count"].tolist()
        answers.append([found["n_noisy"].tolist(), found["m"].tolist(), told])
    assert answers[0] == answers[1] == answers[2]


def test_answers_are_of_pandas_and_cost_what_they_cost_elsewhere():
    with dpf.Ledger(epsilon=2 * MANY, unit="patient") as ledger:
        frame = as_dask(VISITS)
        assert frame.dp.preview.sum("cost", bounds=(0, 100), max_rows=2, epsilon=1).cost.epsilon == 1
        assert ledger.spent.epsilon == 0
        found = frame.dp.group_by("ward", keys=["A", "B", "C"]).sum(
            "cost", bounds=(0, 100), max_rows=2, max_groups=2, epsilon=MANY
        )
        assert isinstance(found, pandas.DataFrame)
        assert found["cost_sum"].round().tolist() == [140, 80, 66]
        polars = dpf.of(frame, like="polars").count(max_rows=2, epsilon=MANY)
        assert isinstance(polars, pl.DataFrame)
        assert round(polars["count"][0]) == 5  # the row without a patient is left out
        assert ledger.spent.epsilon == 2 * MANY


@pytest.mark.parametrize("declared", ["int64", "float64", "Int64", "int64[pyarrow]"])
def test_integers_and_floats_in_partitions_of_one_column_are_one_unit(declared):
    whole = pandas.DataFrame({"u": [1, 2, 3]})
    missing = pandas.DataFrame({"u": [1.0, np.nan, 2.0, 2.5]})
    objects = pandas.DataFrame({"u": pandas.Series([1, 2.0, "2", None, np.int8(3)], dtype=object)})
    nullable = pandas.DataFrame({"u": pandas.array([3, None, 1], dtype="Int64")})
    frame = made_of(whole, missing, objects, nullable, declared=whole.astype(declared))
    people = 4 if declared == "float64" else 3  # 2.5 is no id if ids are integers
    assert units_in(frame, "u") == people
    assert units_in(frame, "u", nulls="one-unit") == people + 1


def test_two_people_do_not_become_one_where_a_partition_has_another_dtype():
    large = pandas.DataFrame({"u": [2**53 + 1, 2**53 + 2]})
    assert units_in(made_of(large, large, declared=large.astype("float64")), "u") == 2  # floats, in every partition
    words = pandas.DataFrame({"u": ["1", "01", "1.0"]}).astype("string[pyarrow]")
    numbers = pandas.DataFrame({"u": [1, 2, 3]})
    assert units_in(made_of(words, numbers, declared=words), "u") == 3  # numbers are missing in a column of text
    assert units_in(made_of(words, numbers, declared=numbers), "u") == 3


@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
def test_240_one_row_without_an_id_changes_no_other_id(nulls):
    """Its partition has floats, so 64-bit ids in it would be others than in the next partition: two units for each."""
    ids = [2**60 + 2 * place + 1 for place in range(9)] + [7, 2**53 - 1]
    whole = pandas.DataFrame({"u": ids})
    missing = pandas.DataFrame({"u": pandas.Series([*ids, None], dtype="float64")})
    exact = whole.astype("Int64")
    without = units_in(made_of(whole, whole, declared=whole), "u", nulls=nulls)
    with_one = units_in(made_of(whole, missing, declared=whole), "u", nulls=nulls)
    assert with_one - without in (0, 1)
    assert without == 2 + (nulls == "one-unit"), "those below 2^53, which a float holds exactly"
    assert units_in(made_of(exact, exact, declared=exact), "u", nulls=nulls) == 11


@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
@pytest.mark.parametrize("declared", ["Int64", "int64[pyarrow]"])
def test_240_floats_among_declared_integers_lose_large_ids_and_double_none(declared, nulls):
    """A reader may make floats of a partition in which one id is 2.5."""
    ids = [2**60 + 4096 * place + 1 for place in range(9)]
    whole = pandas.DataFrame({"u": pandas.array(ids, dtype=declared)})
    odd = pandas.DataFrame({"u": pandas.array([*map(float, ids), 2.5], dtype="Float64")})
    found = units_in(made_of(whole, odd, declared=whole), "u", nulls=nulls)
    assert found - units_in(made_of(whole, whole, declared=whole), "u", nulls=nulls) in (0, 1)


def test_242_one_missing_value_changes_no_other_number():
    """Integers of a column of floats are rounded in every partition, as where a value is missing."""
    numbers = [2**53 + 2 * place + 1 for place in range(9)]
    whole, missing = (pandas.DataFrame({"u": values}) for values in (numbers, [*map(float, numbers), None]))
    declared = whole.astype("float64")
    assert units_in(made_of(whole, declared=declared), "u") == units_in(made_of(missing, declared=declared), "u") > 0
    objects = column_of(pandas.Series([*numbers, "?"], dtype=object), pl.Float64())
    assert objects.to_list() == [*map(float, numbers), None]
    ledger = dpf.Ledger(epsilon=2 * MANY)
    for one in (whole, missing):
        asked = dpf.of(made_of(one, declared=declared))
        assert round(asked.sum("u", bounds=(0, 100), epsilon=MANY, ledger=ledger)["u_sum"][0]) == 900


NO_TEXT = [
    b"\xff",
    b"ann",
    b"\xfe",
    b"\xff",
    None,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u00e9".encode(),
    b"",
    b"a\0b",
    b"a\0c",
]


@pytest.mark.parametrize("many", [2**16, 1])
@pytest.mark.parametrize("by", ["unit", "two columns", "unit in groups", "undeclared groups", "found keys"])
def test_264_strings_that_are_not_utf8_are_told_apart_byte_by_byte(by, many, monkeypatch):
    """Arrow holds any bytes in a column of strings; Python makes no text of them, and Polars does not receive them."""
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr(unit_parts, "MANY_ROWS", many)
    words = pyarrow.array(NO_TEXT * 3, pyarrow.binary()).view(pyarrow.string())
    numbers = range(len(words))
    columns = {"w": words, "id": pyarrow.array(numbers), "group": pyarrow.array([number % 4 for number in numbers])}
    held = pyarrow.table(columns).to_pandas(types_mapper=pandas.ArrowDtype)
    unit = {"unit": "w", "two columns": ["w", "group"], "unit in groups": "w"}.get(by, "id")

    def answer(frame):
        ledger = dpf.Ledger(epsilon=2 * MANY, delta=0.1, keys_delta=0.05, unit=dpf.PrivacyUnit(unit))
        options = {"epsilon": MANY, "ledger": ledger}
        if by == "undeclared groups":
            found = dpf.of(frame).contributions("w", **options)
        elif by == "found keys":
            found = dpf.of(frame).group_by("w", keys=dpf.discover(delta=1e-3, max_keys=2)).count(max_rows=2, **options)
        elif by == "unit in groups":
            found = dpf.of(frame).group_by("group", keys=[*range(4)]).count(max_rows=9, max_groups=4, **options)
        else:
            found = dpf.of(frame).n_units(**options)
        rows = found.itertuples(index=False)
        return [[round(value) if isinstance(value, float) else value for value in row] for row in rows]

    in_memory = answer(held)
    assert answer(made_of(held[:15], held[15:], declared=held)) == in_memory
    if by == "unit":
        assert in_memory[0][0] == len({*NO_TEXT} - {None})
    if by == "found keys":
        assert sorted(row[0] for row in in_memory) == ["", "a\0b", "a\0c", "ann", "\u00e9"]


def test_one_odd_object_leaves_the_other_times_of_its_partition():
    moment, day = datetime(2024, 1, 1, 5), date(2024, 1, 2)
    aware = datetime(2024, 1, 1, 5, tzinfo=UTC)
    objects = pandas.Series([moment, day, "x", None, pandas.NaT, datetime(9999, 1, 1), aware], dtype=object)
    midnight, far = datetime(2024, 1, 2), datetime(9999, 1, 1)
    assert column_of(objects, pl.Datetime("us")).to_list() == [moment, midnight, None, None, None, far, None]
    assert column_of(objects, pl.Datetime("ns")).to_list() == [moment, midnight, None, None, None, None, None]
    assert column_of(objects, pl.Datetime("ms", "UTC")).is_not_null().to_list() == [False] * 6 + [True]
    fine = pandas.Series(
        [pandas.Timestamp("1969-12-31T23:59:59.999999999"), pandas.Timestamp(5, unit="us")], dtype=object
    )
    assert column_of(fine, pl.Datetime("ns")).to_physical().to_list() == [-1, 5_000]
    assert column_of(fine, pl.Datetime("us")).to_physical().to_list() == [None, 5]
    assert column_of(fine, pl.Datetime("ms")).to_physical().to_list() == [None, None]
    spans = pandas.Series([timedelta(days=1), pandas.Timedelta(-1, "ns"), "x", moment], dtype=object)
    assert column_of(spans, pl.Duration("ns")).to_physical().to_list() == [86_400 * 10**9, -1, None, None]
    assert column_of(spans, pl.Duration("us")).to_physical().to_list() == [86_400 * 10**6, None, None, None]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_integers_that_a_float_may_round_are_missing_in_columns_of_numpy(dtype):
    column = pandas.Series([2**53, 2**53 - 1, 2**62, 3], dtype=dtype)
    for declared in (pl.Int64(), pl.UInt64()):
        assert column_of(column, declared).to_list() == [None, 2**53 - 1, None, 3]
    if dtype != "uint64":
        assert column_of(-column, pl.Int64()).to_list() == [None, 1 - 2**53, None, -3]


def test_zeros_and_nans_of_float_units_are_one_unit_each():
    values = [0.0, -0.0, float("nan"), -float("nan"), 1.5]
    frame = dd.from_pandas(pandas.DataFrame({"u": values * 7}), npartitions=5)
    assert units_in(frame, "u") == 2
    assert units_in(frame, "u", nulls="one-unit") == 3


def test_a_column_without_its_partitions_dtype_is_cast_exactly_or_missing():
    def cast(values, to, **options):
        return column_of(pandas.Series(values, **options), to).to_list()

    assert cast([1.0, 1.5, np.inf, np.nan, 2.0**63], pl.Int64()) == [1, None, None, None, None]
    assert cast([1, 0, 2], pl.Boolean()) == [True, False, None]
    assert cast([True, False], pl.Int8()) == [1, 0]
    assert cast([300, -1, 7], pl.UInt8()) == [None, None, 7]
    assert cast([2**53, 2**53 + 1], pl.Float64()) == [2.0**53, 2.0**53], "as pandas casts them"
    assert cast([0.1, 0.5, -0.0], pl.Float32()) == [None, 0.5, -0.0]
    assert cast([1, 2], pl.String()) == [None, None]
    objects = {"dtype": object}
    assert cast(["A", "\ud800", 1, None], pl.String(), **objects) == ["A", None, None, None]
    assert cast([1, 2.0, 2.5, "3", None, True, 2**70], pl.Int64(), **objects) == [1, 2, None, None, None, 1, None]
    assert cast([1, 0.1, 2**53 + 1], pl.Float32(), **objects) == [1.0, None, None]
    assert cast([1, 0, 2], pl.Boolean(), **objects) == [True, False, None]
    assert cast([1, 2], pl.Date(), **objects) == [None, None]
    assert cast(["A", "B", None], pl.String(), dtype="category") == ["A", "B", None]
    assert cast(["A", None], pl.String(), dtype="string[python]") == ["A", None]
    assert cast([0.1, 2.0], pl.Float64(), dtype="longdouble") == [0.1, 2.0]
    assert cast(np.array([0.5, 2.0], "f2"), pl.Float32()) == [0.5, 2.0]


def test_a_column_without_a_name_is_read():
    """Once, Polars renamed such a column, and the release failed after the charge."""
    table = pandas.DataFrame({"": [1, 1, 2], "x": [3.0, 5.0, 7.0]})
    dp, ledger = dpf.of(dd.from_pandas(table, npartitions=2)), dpf.Ledger(epsilon=2 * MANY)
    counts = dp.group_by("", keys=[1, 2]).count(epsilon=MANY, ledger=ledger)
    assert counts["count"].round().tolist() == [2, 1]
    assert round(dp.sum("", bounds=(0, 9), epsilon=MANY, checks=False, ledger=ledger)["_sum"][0]) == 4


def test_times_are_cast_exactly_or_missing():
    seconds = pandas.Series(np.array(["2024-03-01T12:00:00", "NaT"], "M8[s]"))
    found = column_of(seconds, pl.Datetime("us"))
    assert found.dt.hour().to_list() == [12, None]
    far = pandas.Series(np.array([2**61, 5], "M8[s]"))
    assert column_of(far, pl.Datetime("ms")).is_null().to_list() == [True, False]
    fine = pandas.Series(np.array([1_000, 1_001], "M8[ns]"))
    assert column_of(fine, pl.Datetime("us")).is_null().to_list() == [False, True]
    aware = seconds.dt.tz_localize("Asia/Kathmandu")
    assert column_of(aware, pl.Datetime("us")).is_null().all()  # an instant is no local time
    assert column_of(aware, pl.Datetime("us", "UTC")).dt.hour().to_list() == [6, None]
    noons = pandas.Series(np.array(["2024-03-01", "2024-03-01T12"], "M8[us]"))
    assert column_of(noons, pl.Date()).is_null().to_list() == [False, True]


def test_what_has_no_proof_is_refused_by_schema_and_no_task_is_run():
    def fails(place):
        raise AssertionError("a task was run")

    declared = pandas.DataFrame({"id": [1]}).assign(
        objects=pandas.Series([object()], dtype=object),
        seconds=np.array([0], "M8[s]"),
        long=np.array([0], "longdouble"),
        python=pandas.array(["A"], dtype="string[python]"),
        numbers=pandas.Categorical([1]),
        span=pandas.array([pandas.Period("2024-01")]),
    )
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_map(fails, [0], meta=declared.iloc[:0])
        frame["unknown"] = frame["id"].astype("category")
    with dpf.Ledger(epsilon=1, unit="id") as ledger:
        for name in ("objects", "seconds", "long", "python", "numbers", "span", "unknown"):
            with pytest.raises(dpf.WrongDtype, match="can be read"):
                frame.dp.count(name, epsilon=1, max_rows=1)
        with pytest.raises(dpf.UnknownColumn, match="Did you mean 'span'"):
            frame.dp.group_by("spam", keys=["A"]).count(epsilon=1, max_rows=1, max_groups=1)
        for options in ({"memory": "1GiB"}, {"progress": False}):
            with pytest.raises(dpf.InvalidArgument, match="must be left out for a table of Dask"):
                frame.dp.count(epsilon=1, max_rows=1, **options)
        assert ledger.spent.epsilon == 0
        with pytest.raises(dpf.ReleaseFailed):
            frame.dp.count(epsilon=1, max_rows=1)
        assert ledger.spent.epsilon == 1


def test_every_other_dtype_comes_over_as_it_is_declared():
    whole = in_pandas(VISITS).assign(
        known=pandas.Categorical(["A", "B", "A", "C", "C", "A"]),
        times=np.array([0, 1, 2, 3, 4, 5], "M8[ms]"),
        spans=np.array([0, 1, 2, 3, 4, 5], "m8[ns]"),
    )
    whole["instants"] = whole["times"].dt.tz_localize("Asia/Kathmandu")
    frame = dd.from_pandas(whole, npartitions=2)
    types = {name: str(one.polars) for name, one in types_of_dask(frame).items()}
    assert types == {
        **{"patient": "Int64", "ward": "String", "cost": "Float64", "known": "String"},
        **{"times": "Datetime(time_unit='ms', time_zone=None)", "spans": "Duration(time_unit='ns')"},
        "instants": "Datetime(time_unit='ms', time_zone='UTC')",
    }
    for name in types:
        assert units_in(frame, name) == len(set(frame[name].dropna().compute()))


def test_partitions_of_other_libraries_are_refused():
    frame = as_dask(VISITS)

    class Other(type(frame)):
        _meta = None

    frame.__class__ = Other
    with pytest.raises(dpf.InvalidType, match="to_backend"):
        dpf.of(frame)


def test_reports_of_single_rows_are_refused_before_the_charge():
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(neighbors="replace"))
    with pytest.raises(dpf.InvalidType, match="in memory"):
        as_dask(VISITS).dp.local.randomize("patient", method=dpf.local.Mean((0, 3), epsilon=1), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_failure_of_a_task_of_ours_tells_nothing_of_values(monkeypatch, caplog):
    def fails(frame, dtypes, exact=()):
        raise ValueError("private 1")

    monkeypatch.setattr(engine, "frame_of", fails)
    assert engine.withheld(lambda: fails(None, {})) is None
    for unit in (None, WHO):
        with pytest.raises(dpf.ReleaseFailed) as caught:
            as_dask(VISITS).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1, unit=unit or dpf.PrivacyUnit()))
        assert caught.value.__cause__ is None
        assert "private 1" not in str(caught.value) + caplog.text


def test_a_failure_of_one_partition_fails_the_release(monkeypatch):
    brought = engine.frame_of

    def fails_once(partition, dtypes, exact=()):
        if 3 in partition.index:
            raise ValueError("private 1")
        return brought(partition, dtypes, exact)

    monkeypatch.setattr(engine, "frame_of", fails_once)
    for unit in (dpf.PrivacyUnit(), WHO):
        with pytest.raises(dpf.ReleaseFailed):
            as_dask(VISITS).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1, unit=unit))


def test_a_failure_of_a_users_task_tells_nothing_of_values():
    def fails(place):
        raise ValueError("private 1")

    frame = dd.from_map(fails, [0, 1], meta=pandas.DataFrame({"x": [1.0]}).iloc[:0])
    with pytest.raises(dpf.ReleaseFailed) as caught:
        frame.dp.sum("x", bounds=(0, 1), epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert "private 1" not in str(caught.value)


def test_workers_of_other_versions_are_noticed(monkeypatch):
    class Client:
        def run(self, report):
            return {"one": report(), "other": pickle.loads(pickle.dumps("dpframe 0.0.0"))}

    class Distributed:
        @staticmethod
        def default_client():
            return Client()

    monkeypatch.setitem(sys.modules, "distributed", Distributed)
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match=r"workers have 'dpframe .*not 'dpframe 0\.0\.0'|not 'dpframe 0"):
        as_dask(VISITS).dp.count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    other = engine.Answering(lambda partition: 1, "dpframe 0.0.0")
    assert other(None) is None  # a worker that joined after the check of versions


@pytest.mark.slow
def test_parts_of_units_are_the_same_in_every_process():
    columns = ([1, 2, None], ["A", "\u00e9", None], [0.5, 1.0, None])
    code = (
        "import polars as pl; from dpframe.engines.pieces.unit_parts import part_of; "
        f"print([part_of(pl.Series(values), 97).tolist() for values in {columns}])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == str([unit_parts.part_of(pl.Series(values), 97).tolist() for values in columns])


@pytest.mark.long
@pytest.mark.parametrize(
    "first", ["import dpframe; import dask.dataframe as dd", "import dask.dataframe as dd; import dpframe"]
)
def test_accessor_whichever_comes_first(first):
    code = (
        f"{first}; import pandas as pd; frame = dd.from_pandas(pd.DataFrame({{'x': [1]}}), npartitions=1); "
        "print(frame.dp, dd.__spec__.loader.__class__.__name__)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "count" in found.stdout
    assert "SourceFileLoader" in found.stdout


def test_147_forked_workers_are_refused_before_the_charge():
    settings, ledger = {"scheduler": "processes", "multiprocessing.context": "fork"}, dpf.Ledger(epsilon=1)
    words = "'spawn' or 'forkserver', not 'fork'"
    with dask.config.set(settings), pytest.raises(dpf.InvalidArgument, match=words):
        as_dask(VISITS).dp.count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


class Patient(str, enum.Enum):  # noqa: UP042 - the text of a StrEnum is its value
    """Its members are the texts of ids, and have other texts of their own: "Patient.FIRST"."""

    FIRST = "a"


def test_251_an_id_of_a_class_made_from_str_is_the_id_that_it_equals():
    """Its `__str__` would give another id, so that its person counted twice."""
    texts = pandas.DataFrame({"u": pandas.Series(["a", "b"], dtype="string[pyarrow]")})
    objects = pandas.DataFrame({"u": pandas.Series([Patient.FIRST, np.str_("b"), "c"], dtype=object)})
    parts = [dask.delayed(part) for part in (texts, objects)]  # Dask leaves the dtypes of these as they are
    assert units_in(dd.from_delayed(parts, meta=texts.iloc[:0], verify_meta=False), "u") == 3


def test_251_no_method_of_a_cell_is_called_in_a_partition_of_objects():
    asked = []

    def speaking(*_):
        asked.append("a cell")
        raise ValueError

    names = ("eq", "ne", "lt", "le", "gt", "ge", "int", "float", "index", "bool", "str", "format")
    loud = {**{f"__{name}__": speaking for name in names}, "item": speaking, "encode": speaking}
    loud["__hash__"] = object.__hash__
    kinds = {str: "3", int: 3, float: 3.0, np.int64: 3, np.float32: 3, np.longdouble: 3}
    cells = np.empty(len(kinds), dtype=object)
    cells[:] = [type("Speaking", (kind,), loud)(value) for kind, value in kinds.items()]
    objects = pandas.Series(cells)
    for dtype in (pl.Int64(), pl.UInt8(), pl.Float64(), pl.Float32()):
        assert column_of(objects, dtype).to_list() == [None, 3, 3, 3, 3, 3]
    assert column_of(objects, pl.Boolean()).to_list() == [None] * 6
    assert column_of(objects, pl.String()).to_list() == ["3", None, None, None, None, None]
    assert not asked


def test_spans_of_numpy_are_no_numbers():
    """To NumPy, 5 equals 5 days and 5 hours."""
    spans = pandas.Series([np.timedelta64(5, "D"), np.timedelta64(5, "ns"), 5], dtype=object)
    assert column_of(spans, pl.Int64()).to_list() == [None, None, 5]


def test_long_doubles_among_objects_are_ids_only_if_they_are_exact():
    large = np.longdouble(2**53) + 1
    objects = pandas.Series([large, np.longdouble("0.1"), np.longdouble("nan"), 2**53 + 1], dtype=object)
    whole = 2**53 + 1 if int(large) % 2 else 2**53  # on some systems they are floats
    assert column_of(objects, pl.UInt64(), exact=True).to_list() == [whole, None, None, 2**53 + 1]
