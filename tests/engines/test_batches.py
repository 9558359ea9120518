"""Tables larger than memory: batches, whole units in parts, and no files left behind."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines import engine
from dpframe.engines.engine import Reading
from dpframe.engines.pieces import unit_parts
from dpframe.engines.pieces.batches import (
    collected_batches,
    of_dataset,
    of_lazy,
    of_relation,
    relation_batches,
    slices,
)
from dpframe.engines.pieces.unit_parts import Spill, unit_hash
from dpframe.errors.tracebacks import withheld
from dpframe.testing import check_engine


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(engine, "LEAST_BATCH", 64)


def dataset(frame):
    import pyarrow.dataset

    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest()) if isinstance(frame, pl.DataFrame) else frame
    return pyarrow.dataset.dataset(table)


def relation(frame):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


TABLES = {
    "lazy": lambda frame, reading: of_lazy(frame.lazy(), reading),
    "dataset": lambda frame, reading: of_dataset(dataset(frame), reading),
    "relation": lambda frame, reading: of_relation(relation(frame), reading),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "memory"),  # too little for all units at once; the least also for some parts
    [("lazy", 100_000), ("lazy", 30_000), ("dataset", 100_000)],
)
def test_batches_and_parts_change_no_integer(table, memory):
    check_engine(lambda frame: TABLES[table](frame, Reading(memory)), tables=1)


@pytest.mark.parametrize("make", [pl.DataFrame.lazy, dataset, relation], ids=["lazy", "dataset", "relation"])
@pytest.mark.slow
def test_each_library_is_asked_as_it_is(make):
    check_engine(make, tables=1)
    stays = make(pl.DataFrame({"ward": ["A", "B", "A"], "patient": [1, 1, 2], "cost": [1.0, 2.0, None]}))
    with dpf.Ledger(epsilon=3e6, unit="patient"):
        wards = dpf.of(stays).group_by("ward", keys=["A", "B"])
        found = wards.agg(n=dpf.count(), s=dpf.sum("cost", bounds=(0, 4)), max_rows=9, max_groups=2, epsilon=1e6)
        assert isinstance(found, pl.DataFrame)
        assert [round(n) for n in found["n"]] == [2, 1]
        assert [round(n) for n in found["s"]] == [1, 2]
        assert dpf.of(stays).contributions(by="ward", epsilon=1e6)["count"].sum() == 2
        assert round(dpf.of(stays).count(max_rows=9, epsilon=1e6)["count"][0]) == 3


class Pieces:
    """A stand-in for the work of a spill on coded rows, which counts its calls."""

    def __init__(self):
        self.combined = self.weighed = 0

    def combine(self, table):
        self.combined += 1
        return table.group_by("unit", "cell").agg(pl.col("rows").sum())

    def weigh(self, table):
        self.weighed += 1
        by_unit = table.group_by("unit").agg(pl.col("rows").sum())
        return dict(by_unit.rows())


class Units(dict):
    """Partial results by unit, whose addition fails if a unit was weighed twice."""

    def __add__(self, other):
        assert not self.keys() & other.keys(), "a unit is in two parts"
        return Units({**self, **other})


def test_a_unit_with_a_third_of_all_rows_is_weighed_once_and_whole():
    table = pl.DataFrame({"unit": [0 if place % 3 == 0 else place for place in range(60_000)], "cell": 1, "rows": 1})
    table = table.with_columns(pl.col("unit").replace(7, None), cell=pl.int_range(60_000) % 5)
    pieces = Pieces()
    with Spill(400_000, pieces.combine, lambda rows: Units(pieces.weigh(rows))) as held:
        for batch in table.iter_slices(1_000):
            held.add(batch)
        found = held.total()
    assert found == dict(table.group_by("unit").agg(pl.col("rows").sum()).rows())
    assert pieces.combined > 1
    assert pieces.weighed > 10


def test_units_that_are_too_many_for_one_part_are_split_by_other_bits(monkeypatch):
    monkeypatch.setattr(unit_parts, "PARTS", 2)
    table = pl.DataFrame({"unit": range(20_000), "cell": 0, "rows": 1})
    pieces = Pieces()
    with Spill(300_000, pieces.combine, lambda rows: Units(pieces.weigh(rows))) as held:
        for batch in table.iter_slices(1_000):
            held.add(batch)
        assert len(held.total()) == 20_000
    assert pieces.weighed > 16


@pytest.mark.parametrize(
    "units",
    [
        pl.Series([1, None, -(2**63), 2**63 - 1, 0]),
        pl.Series([0.0, 5e-324, None, 1e300]),
        pl.Series(["", "a", None, "é" * 40]),
        pl.Series([0, 1, None], dtype=pl.UInt8),
        pl.Series([2**64 - 1, 0], dtype=pl.UInt64),
    ],
)
def test_a_unit_has_one_hash_in_every_table(units):
    table = units.alias("unit").to_frame()
    whole = unit_hash(table)
    for place in range(len(units)):
        assert unit_hash(table[place : place + 1]).tolist() == [whole[place]]
        assert unit_hash(pl.concat([table[place : place + 1]] * 3 + [table], rechunk=False)).tolist()[:1] == [
            whole[place]
        ]
    assert len(set(whole.tolist())) == len(units)


@pytest.mark.parametrize("rows", [0, 1, 10_000])
def test_polars_gives_each_row_in_one_batch(rows):
    frame = pl.DataFrame({"a": range(rows)}, schema={"a": pl.Int64})
    batches = list(collected_batches(frame.lazy().filter(pl.col("a") % 3 == 0), 700))
    assert all(batch.schema == frame.schema for batch in batches)
    assert sorted(value for batch in batches for value in batch["a"]) == list(range(0, rows, 3))


@pytest.mark.skipif(sys.platform == "win32", reason="an open file has a name there")
def test_the_file_has_no_name_and_its_folder_is_closed_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes = []
    made = tempfile.mkdtemp
    monkeypatch.setattr(
        tempfile, "mkdtemp", lambda **named: modes.append(stat.S_IMODE(os.stat(path := made(**named)).st_mode)) or path
    )
    with unit_parts.unnamed_file() as file:
        file.write(b"rows")
        assert list(tmp_path.iterdir()) == []
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert modes == [0o700]


SCRIPT = """
import sys, time, polars as pl, dpframe as dpf
from dpframe.engines.pieces import unit_parts
write = unit_parts.Spill._write
def slow(self):
    write(self)
    print("written", flush=True)
    time.sleep(60)
unit_parts.Spill._write = slow
table = pl.DataFrame({"u": range(2_000_000)}).lazy()
ledger = dpf.Ledger(epsilon=9, unit="u", path=sys.argv[1])
table.dp.count(max_rows=1, epsilon=1, ledger=ledger, memory=2**24)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after_ctrl_c_or_a_crash_and_the_charge_stands(how, tmp_path):
    ledger, folder = tmp_path / "ledger.sqlite", tmp_path / "tmp"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    running = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(ledger)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "written\n"
    running.send_signal(how)
    _, errors = running.communicate(timeout=60)
    time.sleep(0.1)
    assert list(folder.iterdir()) == []
    assert dpf.Ledger(epsilon=9, unit="u", path=ledger).spent.epsilon == pytest.approx(1)
    if how == signal.SIGINT:
        assert "the charge stands" in errors


def test_a_connection_of_duckdb_is_asked_for_a_table():
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(dpf.InvalidType, match=r"not a DuckDBPyConnection. Ask it for a table: dpf\.of\("):
        dpf.of(duckdb.connect())


@pytest.mark.parametrize("version", ["1.4.4", "1.10.0", "0.10.2", "1.5.0.dev12"])
def test_257_an_older_duckdb_is_refused_before_the_charge(version, monkeypatch):
    """Once, another query on the connection ended a read of DuckDB 1 early: one unit moved a count by millions."""
    duckdb = pytest.importorskip("duckdb")
    ledger, relation = dpf.Ledger(epsilon=1), duckdb.sql("select range as x from range(3)")
    monkeypatch.setattr(duckdb, "__version__", version)
    words = f"duckdb must be version 2.0 or newer, not {version}: .* Nothing was charged.* pip install"
    with pytest.raises(dpf.InvalidArgument, match=words):
        dpf.of(relation).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    for newer in ("2.0.0", "2.1.0.dev7", "10.0.0"):
        monkeypatch.setattr(duckdb, "__version__", newer)
        assert dpf.of(relation).count(epsilon=0.1, ledger=ledger).height == 1


def test_257_another_query_on_the_connection_leaves_out_no_row():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("create table t as select range as x from range(300_000)").fetchall()
    rows = 0
    for batch in relation_batches(connection.table("t").project("x"), Reading(2**20)):
        rows += len(batch)
        for ask in (connection.execute, connection.sql):
            with contextlib.suppress(duckdb.Error):
                ask("select 42").fetchall()
    assert rows == 300_000


def used(connection, how):
    """Keep a connection in use until the returned function is called."""
    if how == "thread":
        endless = "select count(*) from range(1_000_000_000_000) as r(i) where hash(i) % 7 = 1"
        ended = threading.Event()

        def ask():
            while not ended.is_set():
                withheld(lambda: connection.execute(endless).fetchall())

        def end():
            ended.set()
            while thread.is_alive():
                connection.interrupt()
                thread.join(0.01)

        thread = threading.Thread(target=ask)
        thread.start()
        busy = 0
        while busy < 3:  # two queries that begin at once may each find the connection in use, and both fail
            busy = 0 if withheld(lambda: connection.sql("select 1").fetchall()) else busy + 1
            time.sleep(0.01)

        return end
    if how == "reader":
        reader = connection.sql("select range from range(300_000)").to_arrow_reader(10)
        next(reader)
        return reader.close
    return connection.execute("select range from range(300_000)").fetchall


@pytest.mark.parametrize("how", ["thread", "reader", "result"])
def test_a_connection_in_use_is_refused_before_the_charge(how):
    """Once, an error of DuckDB left dpframe."""
    duckdb = pytest.importorskip("duckdb")
    connection, ledger = duckdb.connect(), dpf.Ledger(epsilon=1)
    connection.execute("create table t as select 1 as x from range(3)").fetchall()
    relation, other = connection.table("t"), connection.cursor().table("t")
    words = r"another query or thread uses this one\. Nothing was charged.*connection\.cursor\(\)"
    end = used(connection, how)
    try:
        for dp in (dpf.of(relation), dpf.of(relation).preview):
            with pytest.raises(dpf.InvalidArgument, match=words):
                dp.count(epsilon=0.5, ledger=ledger)
        assert ledger.spent.epsilon == 0
        assert dpf.of(other).count(epsilon=0.5, ledger=ledger).height == 1
    finally:
        end()
    assert dpf.of(relation).count(epsilon=0.5, ledger=ledger).height == 1


def test_a_relation_whose_file_was_replaced_is_refused_before_the_charge(tmp_path):
    """DuckDB keeps the old column names: once, this raised a raw error about a missing key."""
    duckdb = pytest.importorskip("duckdb")
    path, ledger = tmp_path / "people.parquet", dpf.Ledger(epsilon=1)
    pl.DataFrame({"age": [31, 45]}).write_parquet(path)
    relation = duckdb.read_parquet(str(path))
    assert dpf.of(relation).count(epsilon=0.5, ledger=ledger).height == 1
    path.unlink()
    pl.DataFrame({"years": [31, 45]}).write_parquet(path)
    with pytest.raises(dpf.InvalidArgument, match=r"that it had when the relation was made.* Nothing was charged"):
        dpf.of(relation).count(epsilon=0.5, ledger=ledger)
    path.unlink()
    pl.DataFrame({"years": ["a"]}).write_parquet(path)
    relation = duckdb.read_parquet(str(path))
    path.unlink()
    pl.DataFrame({"years": [31]}).write_parquet(path)
    with pytest.raises(dpf.InvalidArgument, match=r"that it had when the relation was made.* Nothing was charged"):
        dpf.of(relation).count(epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0.5


@pytest.mark.parametrize("kind", ["arrow", "dataset", "duckdb", "pandas of arrow", "pandas"])
def test_seconds_beyond_milliseconds_clip(kind):
    """DuckDB's infinity is such a value: as 64-bit milliseconds, it was the last second of 1969."""
    pa = pytest.importorskip("pyarrow")
    most, beyond = 2**63 - 1, 9_223_372_036_854_776
    seconds = [most, -most, 0, None, beyond, -beyond]
    table = pa.table({"t": pa.array(seconds, pa.int64()).view(pa.timestamp("s"))})
    if kind == "arrow":
        frame = table
    elif kind == "dataset":
        frame = dataset(table)
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.execute("create table t (t timestamp_s)")
        connection.execute("insert into t values ('infinity'), ('-infinity'), ('1970-01-01'), (null)")
        connection.execute("insert into t values ('infinity'), ('-infinity')")
        frame = connection.table("t")
    else:
        pd = pytest.importorskip("pandas")
        numbers = np.array([np.iinfo(np.int64).min if one is None else one for one in seconds])
        arrow = pd.arrays.ArrowExtensionArray(table["t"])
        frame = pd.DataFrame({"t": pd.Series(numbers.view("M8[s]") if kind == "pandas" else arrow)})
    days = {"bins": "1d", "range": ("1969-12-31", "1970-01-03"), "outside": "clip"}
    asked = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e7), "denoise": None}
    found = dpf.of(frame).histogram("t", **days, **asked)
    assert [round(value) for value in found["count"]] == [2, 1, 2]
    later = dpf.of(frame).count(where={"t": (datetime(1970, 1, 2), None)}, **asked)
    assert round(later["count"][0]) == 2


def test_collated_and_unreadable_columns_of_duckdb_are_refused_by_schema():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(
        "create table t (a varchar collate nocase, b varchar collate noaccent, h hugeint, i interval, "
        '"x""y" varchar, n int)'
    )
    connection.execute("insert into t values ('A', 'á', 1, interval 1 day, 'q', 2)")
    with dpf.Ledger(epsilon=9e6) as ledger:
        asked = dpf.of(connection.table("t"))
        for column in ("a", "b", "h", "i"):
            with pytest.raises(dpf.WrongDtype, match="must have a dtype that can be read"):
                asked.count(column, epsilon=1)
        with pytest.raises(dpf.WrongDtype, match="collation"):
            asked.group_by("a", keys=["A"]).count(epsilon=1)
        assert ledger.spent.epsilon == 0
        assert round(asked.group_by('x"y', keys=["q"]).count(epsilon=1e6)["count"][0]) == 1
        assert (
            round(dpf.of(connection.sql("select n * 2 as m from t")).sum("m", bounds=(0, 9), epsilon=1e6)["m_sum"][0])
            == 4
        )
    for collation in ("", " collate nocase", ""):  # a table of the same name elsewhere must not matter
        another = duckdb.connect()
        another.execute(f"create table t (a varchar{collation})")
        question = dpf.of(another.table("t")).group_by("a", keys=["A"])
        if collation:
            with pytest.raises(dpf.WrongDtype, match="collation"):
                question.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
        else:
            question.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    readings = dpf.of(connection.sql("""select '{"a": 1}'::json as j, 1 as n"""))
    assert round(readings.sum("n", bounds=(0, 9), epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))["n_sum"][0]) == 1
    with pytest.raises(dpf.WrongDtype, match="unlike JSON"):
        readings.count("j", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    connection.execute("pragma default_collation = 'NOCASE'")
    with pytest.raises(dpf.WrongDtype, match="collation"):
        dpf.of(connection.sql("select 'x' as w")).group_by("w", keys=["x"]).count(
            epsilon=1, ledger=dpf.Ledger(epsilon=1)
        )


@pytest.mark.parametrize("second", ["y as u", "y as U"])
def test_columns_of_duckdb_that_it_takes_for_one_are_refused(second):
    """DuckDB reads the first of these columns but reports the dtype of the last: the wrong column would be the unit."""
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select x as u, {second} from (values (1, 1), (1, 2), (1, 3)) t(x, y)")
    ledger = dpf.Ledger(epsilon=1, unit="u")
    with pytest.raises(dpf.InvalidArgument, match="frame must have each column once, and it has \\['u'\\] more often"):
        dpf.of(relation).n_units(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_columns_of_a_dataset_with_one_name_are_refused():
    """Once, this failed only after the charge, when the rows could not be read."""
    pyarrow = pytest.importorskip("pyarrow")

    table = pyarrow.Table.from_arrays([pyarrow.array([1, 1]), pyarrow.array([1, 2])], names=["u", "u"])
    ledger = dpf.Ledger(epsilon=1, unit="u")
    with pytest.raises(dpf.InvalidArgument, match="frame must have each column once"):
        dpf.of(dataset(table)).n_units(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


TWO_TYPES = {  # type and ids of the first file, to which pyarrow casts all; and of the second, whose two ids may merge
    "texts as integers": ("int64", [1], "string", ["7", "007"]),
    "floats as short ones": ("float32", [1.0], "float64", [1.00000001, 1.00000002]),
    "texts as floats": ("float64", [1.0], "string", ["0.1", "0.10"]),
    "times as dates": ("date32[day]", [0], "timestamp[us]", [1, 2]),
    "integers as booleans": ("bool", [True], "int64", [2, 3]),
    "long integers as short ones": ("int16", [1], "int32", [65537, 1]),  # a value fails, after the charge
    "integers as those without a sign": ("uint64", [1], "int32", [-1, 1]),
    "dictionaries of texts as integers": ("int64", [1], "dictionary", ["7", "007"]),
}
FITTING = {
    "integers": ("int64", [1], "int16", [2, 3]),
    "floats": ("float64", [1.0], "float32", [2.0, 3.0]),
    "texts": ("string", ["a"], "large_string", ["b", "c"]),
    "dictionaries": ("string", ["a"], "dictionary", ["b", "c"]),
    "nulls": ("int64", [1, 2, 3], "null", [None, None]),
}


def two_files(folder, first, one, then, others, write):
    pyarrow = pytest.importorskip("pyarrow")
    for place, (name, ids) in enumerate([(first, one), (then, others)]):
        kinds = {"date32[day]": pyarrow.date32(), "timestamp[us]": pyarrow.timestamp("us")}
        dtype = kinds.get(name) or pyarrow.type_for_alias("string" if name == "dictionary" else name)
        column = pyarrow.array(ids, dtype)
        column = column.dictionary_encode() if name == "dictionary" else column
        write(pyarrow.table({"p": column, "x": [1.0] * len(ids)}), str(folder / f"{place}.file"))
    return sorted(map(str, folder.glob("*.file")))


@pytest.mark.parametrize("format", ["parquet", "feather"])
@pytest.mark.parametrize("of", TWO_TYPES.values(), ids=TWO_TYPES)
def test_230_a_column_that_pyarrow_would_cast_in_a_file_names_no_unit(of, format, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.feather
    import pyarrow.parquet

    write = {"parquet": pyarrow.parquet.write_table, "feather": pyarrow.feather.write_feather}[format]
    files = two_files(tmp_path, *of, write)
    whole = pyarrow.dataset.dataset(files, format=format)
    each = [pyarrow.dataset.dataset(file, schema=whole.schema, format=format) for file in files]
    ledger = dpf.Ledger(epsilon=1, unit="p")
    rows = dpf.Ledger(epsilon=1e9)
    for frame in (whole, whole.filter(pyarrow.dataset.field("x") > 0), pyarrow.dataset.dataset(each)):
        for ask in (dpf.of(frame), dpf.of(frame).preview):
            with pytest.raises(dpf.WrongDtype, match=r"column 'p' must .* unlike one that differs between its files"):
                ask.n_units(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    assert round(dpf.of(whole).sum("x", bounds=(0, 1), epsilon=1e6, ledger=rows)["x_sum"][0]) == 3  # "p" is not read


@pytest.mark.parametrize("of", FITTING.values(), ids=FITTING)
def test_230_types_of_files_that_hold_no_more_than_the_schema_are_read(of, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.parquet

    frame = pyarrow.dataset.dataset(two_files(tmp_path, *of, pyarrow.parquet.write_table))
    ledger = dpf.Ledger(epsilon=1e9, unit="p")
    assert dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"].to_list() == [3]


def test_230_a_file_whose_schema_cannot_be_read_is_refused_before_the_charge(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.parquet

    files = two_files(tmp_path, "int64", [1], "int64", [2], pyarrow.parquet.write_table)
    ledger = dpf.Ledger(epsilon=1)
    for broken in (lambda file: file.write_bytes(b"no Parquet"), lambda file: file.unlink()):
        frame = pyarrow.dataset.dataset(files)
        broken(tmp_path / "1.file")
        with pytest.raises(dpf.InvalidArgument, match="frame must be of files whose schemas can be read"):
            dpf.of(frame).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("setting", ["pragma enable_profiling", "set enable_profiling = 'json'"])
def test_105_a_connection_of_duckdb_that_talks_is_refused_before_the_charge(setting, capfd):
    duckdb = pytest.importorskip("duckdb")
    connection, ledger = duckdb.connect(), dpf.Ledger(epsilon=1)
    connection.execute("create table t as select * from range(43_210)").fetchall()
    connection.execute(setting).fetchall()
    with pytest.raises(dpf.InvalidArgument, match="enable_profiling must be off while dpframe works"):
        dpf.of(connection.table("t")).count(epsilon=1, ledger=ledger)
    said = "".join(capfd.readouterr())
    assert ledger.spent.epsilon == 0
    assert "43210" not in said.replace(",", "")
    connection.execute("pragma disable_profiling").fetchall()
    capfd.readouterr()
    dpf.of(connection.table("t")).count(epsilon=1, ledger=ledger)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("off", ["pragma disable_optimizer", "set disabled_optimizers = 'top_n,filter_pushdown'"])
def test_198_a_connection_that_reads_rows_for_a_question_of_none_is_refused(off):
    """Without its optimizer, DuckDB reads rows before the charge; its error then disclosed a value at no cost."""
    duckdb = pytest.importorskip("duckdb")
    connection, ledger = duckdb.connect(), dpf.Ledger(epsilon=1)
    connection.execute("create table t as select 'secret' as x").fetchall()
    connection.execute(off).fetchall()
    fails = connection.sql("select cast(x as integer) as y from t order by y")
    with pytest.raises(dpf.InvalidArgument, match="frame must be of a connection that reads no rows") as caught:
        dpf.of(fails).sum("y", bounds=(0, 1), epsilon=1, ledger=ledger)
    assert "secret" not in str(caught.value)
    with pytest.raises(dpf.InvalidArgument, match="frame must be of a connection that reads no rows"):
        dpf.of(connection.table("t")).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    connection.execute("pragma enable_optimizer").fetchall()
    connection.execute("reset disabled_optimizers").fetchall()
    dpf.of(connection.table("t")).count(epsilon=1, ledger=ledger)


STEPS = ("filter_pushdown", "cte_inlining", "empty_result_pullup", "join_order")


@pytest.mark.parametrize("rows", ["('1')", "('1'), ('secret')"])
@pytest.mark.parametrize(
    "off", ["pragma disable_optimizer", *(f"set disabled_optimizers = '{step}'" for step in STEPS)]
)
def test_227_a_connection_without_any_step_of_its_optimizer_is_refused(off, rows):
    """Once, the refusal of a query for no rows disclosed whether a cast fails on some row: a free oracle."""
    duckdb = pytest.importorskip("duckdb")
    connection, ledger = duckdb.connect(), dpf.Ledger(epsilon=1)
    connection.execute("create table t(s varchar)").fetchall()
    connection.execute(f"insert into t values {rows}").fetchall()
    try:
        connection.execute(off).fetchall()
    except duckdb.Error:
        pytest.skip(f"DuckDB {duckdb.__version__} has no such step")
    dp = dpf.of(connection.sql("select cast(s as int) as v from t"))
    for ask in (dp, dp.preview):
        with pytest.raises(dpf.InvalidArgument, match="frame must be of a connection that reads no rows"):
            ask.count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("storage", ["stdout", "memory"])
def test_228_a_connection_of_duckdb_that_logs_is_refused_before_the_charge(storage, tmp_path, capfd):
    duckdb = pytest.importorskip("duckdb")
    connection, ledger = duckdb.connect(), dpf.Ledger(epsilon=1)
    pl.DataFrame({"v": range(43_210)}).write_parquet(tmp_path / "t.parquet")
    relation = connection.read_parquet(str(tmp_path / "t.parquet"))
    try:
        connection.execute(f"call enable_logging('PhysicalOperator', level='debug', storage='{storage}')").fetchall()
    except duckdb.Error:
        pytest.skip(f"DuckDB {duckdb.__version__} logs nothing of the kind")
    with pytest.raises(dpf.InvalidArgument, match="enable_logging must be off while dpframe works"):
        dpf.of(relation).count(epsilon=1, ledger=ledger)
    said = "".join(capfd.readouterr())
    assert ledger.spent.epsilon == 0
    assert "43210" not in said
    connection.execute("set enable_logging = false").fetchall()
    dpf.of(relation).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 1


def test_memory_and_progress_are_checked_before_the_charge():
    table = pl.DataFrame({"x": [1, 2]})
    with dpf.Ledger(epsilon=1) as ledger:
        for frame, option in [(table, {"memory": "1GiB"}), (table, {"progress": False}), (table.lazy(), {"memory": 1})]:
            with pytest.raises(dpf.InvalidArgument, match=r"memory must be|progress must be"):
                dpf.of(frame).count(epsilon=1, **option)
        for memory in ("lots", "1 KiB", True, -1, 2.0**30):
            with pytest.raises(dpf.InvalidArgument, match="memory must be at least 16 MiB"):
                table.lazy().dp.count(epsilon=1, memory=memory)
        with pytest.raises(dpf.InvalidType, match="progress must be"):
            table.lazy().dp.count(epsilon=1, progress="yes")
        assert ledger.spent.epsilon == 0
        for place, memory in enumerate(("16MiB", "0.5 GiB", 2**24, None)):
            table.lazy().dp.count(epsilon=0.1, memory=memory, progress=(False, None)[place % 2])


def test_a_bar_tells_how_many_batches_were_read(monkeypatch):
    shown = []

    class Bar:
        def tqdm(batches, **settings):
            shown.append(settings["disable"])
            return batches

    monkeypatch.setitem(sys.modules, "tqdm", Bar)
    monkeypatch.setitem(sys.modules, "tqdm.auto", Bar)
    for progress, disable in ((None, None), (True, False), (False, True)):
        assert list(Reading(None, progress).seen(iter("abc"))) == ["a", "b", "c"]
        assert shown.pop() is disable


def test_batches_of_a_table_that_fails_end_with_its_error(capfd):
    def failing(_):
        raise ValueError("secret 123-45-6789")

    frame = (
        pl.DataFrame({"a": range(5_000)}).lazy().with_columns(pl.col("a").map_batches(failing, return_dtype=pl.Int64))
    )
    with pytest.raises(Exception, match="secret"):  # the release path withholds it
        list(collected_batches(frame, 700))
    gc.collect()
    assert "secret" not in "".join(capfd.readouterr())


def test_batches_that_are_left_early_say_nothing(capfd):
    before = threading.active_count()
    batches = collected_batches(pl.DataFrame({"a": range(50_000)}).lazy(), 700)
    next(batches)
    del batches
    gc.collect()
    assert capfd.readouterr() == ("", "")
    assert threading.active_count() == before


@pytest.mark.parametrize("rows", [1_000, 60_000])
def test_209_a_panic_amid_the_rows_is_no_end_of_them(rows):
    """One person's value can make a Polars thread panic. Once, batches then ended as if all rows had been read."""
    days = pl.Series([0] * (rows - 1) + [2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    frame = pl.DataFrame({"day": days}).lazy().with_columns(month=pl.col("day").dt.truncate("1mo"))
    ledger = dpf.Ledger(epsilon=9)
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands"):
        frame.dp.count("month", epsilon=1, ledger=ledger)
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands"):
        frame.dp.group_by("month", keys=[date(1970, 1, 1)]).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 2


@pytest.mark.parametrize("rows", [1_000, 200_000])
@pytest.mark.parametrize("by", [False, True], ids=["all rows", "by keys"])
def test_209_an_expression_that_fails_on_the_last_row_has_no_answer(by, rows, caplog):
    """Polars fails after all batches but the last: nothing is released, and no log holds the message."""
    caplog.set_level(logging.DEBUG)
    texts = pl.when(pl.col("x") < rows - 1).then(pl.lit("1")).otherwise(pl.lit("123-45-6789"))
    frame = pl.DataFrame({"x": range(rows)}).lazy().with_columns(t=texts.cast(pl.Int64))
    asked, ledger = frame.dp.group_by("t", keys=[0, 1]) if by else frame.dp, dpf.Ledger(epsilon=9)
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands"):
        asked.sum("t", bounds=(0, 2), epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 1
    assert "6789" not in caplog.text


@pytest.mark.parametrize("how", ["cut", "written over"])
def test_209_a_file_that_is_changed_while_it_is_read_has_no_answer(how, tmp_path):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"x": np.random.default_rng(0).random(200_000)}).write_parquet(path, row_group_size=10_000)
    scan = pl.scan_parquet(path)
    scan.collect_schema()
    whole = path.read_bytes()
    if how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises((dpf.ReleaseFailed, dpf.WrongDtype)):
            scan.dp.count("x", epsilon=1, ledger=dpf.Ledger(epsilon=9))
        return
    pieces = slices(scan, 2**40)  # one slice for all rows
    next(pieces)
    path.write_bytes(whole[:-1])  # another size, since two writes may have the same time
    with pytest.raises(OSError, match="files changed"):
        next(pieces)


@pytest.mark.parametrize("first", ["interval '1 day'", "union_value(a := 1)", "cast(concat(range, 'x') as int)"])
def test_rows_are_counted_whatever_the_first_column_is(first):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select {first} as first, 1.0::double as x from range(3)")
    ledger = dpf.Ledger(epsilon=1e9)
    assert dpf.of(relation).count(epsilon=1e6, ledger=ledger)["count"].to_list() == [3]
    assert dpf.of(relation).sum("x", bounds=(0, 1), epsilon=1e6, ledger=ledger)["x_sum"][0] == pytest.approx(3, 1e-4)


@pytest.mark.parametrize("kind", ["decimal", "union"])
def test_rows_of_arrow_are_counted_whatever_the_first_column_is(kind):
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    odd = pyarrow.array([1, 2, 3], pyarrow.decimal256(50, 0))
    if kind == "union":
        odd = pyarrow.UnionArray.from_sparse(pyarrow.array([0, 0, 0], pyarrow.int8()), [pyarrow.array([1, 2, 3])])
    table = pyarrow.table({"first": odd, "x": [1.0, 1.0, 1.0]})
    ledger = dpf.Ledger(epsilon=1e9)
    for frame in (dataset.dataset(table), table):
        assert dpf.of(frame).count(epsilon=1e6, ledger=ledger)["count"].to_list() == [3]
        assert dpf.of(frame).sum("x", bounds=(0, 1), epsilon=1e6, ledger=ledger)["x_sum"][0] > 2.9
        spent = ledger.spent.epsilon
        with pytest.raises(dpf.WrongDtype, match="must have a dtype that can be read"):
            dpf.of(frame).count("first", epsilon=1e6, ledger=ledger)
        assert ledger.spent.epsilon == spent
