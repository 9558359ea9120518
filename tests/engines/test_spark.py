"""Spark DataFrames in a real session: the integers of Polars in memory, or a refusal by schema."""

from __future__ import annotations

import importlib.util
import itertools
import pickle
import runpy

import engine_tables
import polars as pl
import pytest
from weekly_jobs import (
    NAMED,
    check_files_on,
    check_folders_on,
    check_ids_on,
    check_job_on,
    check_packed_on,
    check_returns_on,
    lay_out,
)

import dpframe as dpf
from assurance.engines import ROOT, spark_frames
from dpframe.engines import totals, trial
from dpframe.engines.columns.source import source_of, types_of
from dpframe.engines.found_keys import keyed
from dpframe.engines.pieces import spark as engine
from dpframe.engines.pieces import unit_parts
from dpframe.engines.pieces.spark import BITS, Columns, unpacked
from dpframe.engines.sums.addends import Terms
from dpframe.engines.task import Task
from dpframe.frames import scans
from dpframe.queries.discovery import found_axes
from dpframe.testing import check_engine

VISITS = pl.DataFrame(
    {
        "patient": [1, 1, 2, 3, 3, None],
        "ward": ["A", "B", "A", "C", "C", None],
        "cost": [120.0, 80.0, 40.0, 65.0, 1.0, 9.0],
    }
)
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
needs_pandas = pytest.mark.skipif(
    importlib.util.find_spec("pandas") is None, reason="pandas is not installed, which executors need"
)
engine_versions = engine.versions
MANY = 1e7  # an epsilon with negligible noise
WHO = dpf.PrivacyUnit("patient", max_rows=2, max_groups=2)


@pytest.fixture(scope="module")
def spark_frame(spark):
    """A function that turns a Polars frame into a Spark DataFrame of several partitions."""
    with spark_frames(spark) as make:
        yield make


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_spark_is_polars_in_memory_bit_for_bit(spark_frame, every):
    check_engine(spark_frame, tables=1, every=every)


def test_the_page_tells_which_verbs_spark_answers(spark_frame):
    answered = engine_tables.verbs(spark_frame)
    assert engine_tables.verbs_on_the_page("Spark", answered) == answered


def test_the_example_runs_and_tells_what_is_missing(spark, tmp_path, monkeypatch, capsys):
    example = runpy.run_path(str(ROOT / "examples" / "spark_release.py"), run_name="example")
    assert example["asked"](spark, tmp_path)["bike"].tolist() == example["BIKES"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert example["main"](tmp_path) is None
    assert "pyspark is not installed" in capsys.readouterr().out


def test_a_job_runs_on_spark_by_one_changed_line(spark, tmp_path):
    check_job_on("spark", lay_out(tmp_path))


def test_206_ids_that_differ_in_zeros_are_never_one_unit(spark, tmp_path):
    check_ids_on("spark", lay_out(tmp_path))


OTHER = {
    "INSERT": "insert into stays values (9)",
    "INSERT to a folder": "insert overwrite directory '{leak}' using csv select * from stays",
    "several INSERTs": "from stays insert overwrite directory '{leak}' using csv select *",
    "INSERT after WITH": "with a as (select 1) insert into stays select * from a",
    "CREATE": "create table leak using csv location '{leak}' as select * from stays",
    "several statements": "select * from stays; drop view stays",
    "SET": "set spark.sql.runSQLOnFiles = true",
    "RESET": "reset",
    "ADD JAR": "add jar '{leak}'",
    "CLEAR CACHE": "clear cache",
    "EXECUTE IMMEDIATE": "execute immediate 'drop view stays'",
    "a script": "begin drop view stays; end",
    "EXPLAIN": "explain select 1",
    "a parenthesis": "select 1) union all (select 2",
    "nothing": " ; ",
}
REACHING = {
    "a program": "select transform(id) using 'touch {leak}' as (id string) from stays",
    "a program by MAP": "from stays map id using 'touch {leak}' as (id)",
    "reflect": "with a as (select reflect('java.lang.System', 'getProperty', 'user.name') as u) select * from a",
    "java_method": "select * from stays where id in (select java_method('java.lang.Math', 'abs', 1))",
    "a name that is put together": "select identifier('ref' || 'lect')('java.lang.Math', 'abs', 1)",
    "a lambda": "select transform(array('1'), x -> `Reflect`('java.lang.Math', 'abs', 1))",
}


@pytest.mark.parametrize("sql", OTHER.values(), ids=OTHER)
def test_sql_of_a_job_is_parsed_before_it_runs(spark, tmp_path, sql):
    spark.range(3).createOrReplaceTempView("stays")
    with pytest.raises(dpf.InvalidArgument, match="sql must be one SELECT that Spark can parse, and nothing else"):
        scans.opened("spark", scans.Scan(sql=sql.format(leak=tmp_path / "leak")))
    assert spark.table("stays").count() == 3
    assert not (tmp_path / "leak").exists()


@pytest.mark.parametrize("sql", REACHING.values(), ids=REACHING)
def test_sql_of_a_job_runs_no_program_and_no_method_of_java(spark, tmp_path, sql):
    spark.range(3).createOrReplaceTempView("stays")
    with pytest.raises(dpf.InvalidArgument, match="sql must run nothing but SQL"):
        scans.opened("spark", scans.Scan(sql=sql.format(leak=tmp_path / "leak")))
    assert not (tmp_path / "leak").exists()


def test_sql_of_a_job_reads_no_file(spark, tmp_path):
    (tmp_path / "private.txt").write_text("s3cret")
    name = f"text.`{tmp_path / 'private.txt'}`"
    for scan in (scans.Scan(sql=f"select * from {name}"), scans.Scan(table=name)):
        with pytest.raises(Exception, match=r"(?i)cannot be found|not found"):
            scans.opened("spark", scan)


def test_sql_of_a_job_that_only_reads_is_run(spark):
    spark.range(3).createOrReplaceTempView("stays")
    for sql in ("with a as (select id from stays where id > 0) select * from a;", "from stays select id limit 2"):
        assert scans.opened("spark", scans.Scan(sql=sql)).count() == 2


def test_sql_of_a_job_is_refused_where_it_cannot_be_parsed_first():
    pytest.importorskip("pyspark")
    with pytest.raises(dpf.InvalidArgument, match="sql must be left out on Spark Connect"):
        scans._query_of_spark(object(), "select 1")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_names_of_folders_are_no_columns(spark, tmp_path, format):
    check_folders_on("spark", format, tmp_path)


@pytest.mark.parametrize("pattern", sorted({*NAMED} - {".h*."}))  # Spark ignores hidden files
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_216_spark_reads_the_files_that_were_checked(spark, format, pattern, tmp_path):
    check_files_on("spark", format, pattern, tmp_path)


def test_225_spark_itself_compares_the_first_lines_of_text_files(spark, tmp_path):
    """This includes files rewritten after the check of names, whose first line could make another column the unit."""
    for number in (1, 2):
        (tmp_path / f"stays-{number}.csv").write_text(f"p,w\n{number},A\n", encoding="utf-8")
    frame = scans.opened("spark", scans.Scan(str(tmp_path / "*.csv"), "csv", {"p": "string"}))
    assert sorted(row.p for row in frame.collect()) == ["1", "2"]
    (tmp_path / "stays-2.csv").write_text("w,p\n2,A\n", encoding="utf-8")
    ledger = dpf.Ledger(epsilon=1, unit="p")
    with pytest.raises(dpf.ReleaseFailed):
        dpf.of(frame).n_units(epsilon=1, ledger=ledger)


def test_text_files_that_gzip_compressed_are_read_and_compared(spark, tmp_path):
    check_packed_on("spark", tmp_path)


def test_261_a_carriage_return_in_a_text_ends_no_row(spark, tmp_path):
    check_returns_on("spark", tmp_path)


@pytest.mark.parametrize("names", [",p", '"",p', "a,A,p", "p,b b"])
def test_225_spark_reads_files_whose_columns_it_renames(spark, names, tmp_path):
    """pandas writes its index as a column without a name, whose new name Spark would refuse after the charge."""
    (tmp_path / "stays.csv").write_text(f"{names}\n1,1,1\n", encoding="utf-8")
    frame = scans.opened("spark", scans.Scan(str(tmp_path / "*.csv"), "csv", {"p": "string"}))
    assert [row.p for row in frame.collect()] == ["1"]


@pytest.mark.parametrize(
    ("first", "then"), [(pl.Int16, pl.Int32), (pl.Float32, pl.Float64), (pl.Int64, pl.String)], ids=str
)
def test_226_spark_casts_no_file_to_the_types_of_another(spark, first, then, tmp_path):
    """Once, Spark read 65537 as 1 because another file had short integers: two people were one unit."""
    for number, (dtype, people) in enumerate([(first, [1]), (then, [2, 65537])]):
        pl.DataFrame({"p": people}).cast(dtype).write_parquet(tmp_path / f"stays-{number}.parquet")
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same types, and column 'p' has"):
        scans.opened("spark", scans.Scan(str(tmp_path / "*.parquet")))
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same types, and a column has"):
        scans.opened("spark", scans.Scan(f"file://{tmp_path}/*.parquet"))  # a URL, whose files only Spark sees
    (tmp_path / "stays-0.parquet").write_bytes(b"")
    frame = scans.opened("spark", scans.Scan(str(tmp_path / "*.parquet")))
    assert [int(row.p) for row in frame.collect()] == [2, 65537]


def test_216_spark_reads_no_other_files_where_those_of_the_path_are_empty(spark, tmp_path):
    """Without a list of files, Spark took the path for a pattern, and read files that were never checked."""
    (tmp_path / "x{1,2}.parquet").write_bytes(b"")
    for number in (1, 2):
        pl.DataFrame({"p": [number]}).write_parquet(tmp_path / f"x{number}.parquet")
    with pytest.raises(dpf.InvalidArgument, match="path must name a Parquet file that is not empty"):
        scans.opened("spark", scans.Scan(str(tmp_path / "x{1,2}.parquet")))


class Split(engine.SparkTable):
    """A deliberately broken engine: rows of one unit are in several partitions."""

    def _exchanged(self, sent, parts):
        return sent.repartition(parts)


def test_a_unit_that_is_split_over_partitions_is_found(spark_frame):
    with pytest.raises(AssertionError, match=r"protected .* differ on the table"):
        check_engine(lambda frame: Split(spark_frame(frame)), tables=0)


def test_fold_brings_whole_units_together_too(spark_frame):
    class Folded(engine.SparkTable):
        def push(self, task):
            assert pickle.loads(pickle.dumps(task)) == task

    frame = VISITS.with_columns(large=pl.lit(1.0))
    query = dpf.of(frame).preview.sum("cost", bounds=(0, 100), epsilon=1, unit=WHO)
    task = Task.of(totals.InMemory(source_of(frame)), query.query, query.unit, 1.0)
    found = Folded(spark_frame(frame, 3)).fold(task.columns, task.piece, task.by)
    assert {total: cells.tolist() for total, cells in found.totals.items()} == {
        total: cells.tolist() for total, cells in task.piece(frame).totals.items()
    }


def test_answers_are_of_pandas_and_cost_what_they_cost_elsewhere(spark_frame):
    import pandas

    with dpf.Ledger(epsilon=2 * MANY, unit="patient") as ledger:
        asked = dpf.of(spark_frame(VISITS))
        plan = asked.preview.sum("cost", bounds=(0, 100), max_rows=2, epsilon=1)
        assert plan.cost.epsilon == 1
        assert ledger.spent.epsilon == 0
        found = asked.group_by("ward", keys=["A", "B", "C"]).sum(
            "cost", bounds=(0, 100), max_rows=2, max_groups=2, epsilon=MANY
        )
        assert isinstance(found, pandas.DataFrame)
        assert found["cost_sum"].round().tolist() == [140, 80, 66]
        polars = dpf.of(spark_frame(VISITS), like="polars").count(max_rows=2, epsilon=MANY)
        assert isinstance(polars, pl.DataFrame)
        assert round(polars["count"][0]) == 5  # the row without a patient is left out
        assert ledger.spent.epsilon == 2 * MANY


def test_only_the_columns_that_are_asked_for_are_read_and_names_are_exact(spark):
    frame = spark.createDataFrame([(1, 2, 3, 4, [5])], "`a.b` int, a int, A int, `c``d` long, nested array<int>")
    for name, value in (("a.b", 1), ("a", 2), ("A", 3), ("c`d", 4)):
        with dpf.Ledger(epsilon=MANY):
            assert round(dpf.of(frame).sum(name, bounds=(0, 9), epsilon=MANY)[f"{name}_sum"][0]) == value


def test_zeros_and_nans_of_float_units_are_one_unit_each(spark):
    rows = [(0.0,), (-0.0,), (float("nan"),), (float("-nan"),), (None,)] * 7 + [(1.5,)]
    frame = spark.createDataFrame(rows, "u double").repartition(4)
    for nulls, units in (("drop", 2), ("one-unit", 3)):
        who = dpf.PrivacyUnit("u", nulls=nulls, max_rows=1, max_groups=1)
        found = dpf.of(frame).count(epsilon=MANY, ledger=dpf.Ledger(epsilon=MANY, unit=who))
        assert round(found["count"][0]) == units


def test_texts_that_are_no_utf8_are_people_of_their_own(spark):
    codes = ["ff", "fe", "efbfbd", "ff", "fffe", "41", "41"]
    frame = spark.createDataFrame([(code,) for code in codes], "code string").selectExpr(
        "cast(unhex(code) as string) u"
    )
    who = dpf.PrivacyUnit("u", max_rows=1, max_groups=1)
    found = dpf.of(frame).count(epsilon=MANY, ledger=dpf.Ledger(epsilon=MANY, unit=who))
    assert round(found["count"][0]) == 5
    cells = dpf.of(frame).group_by("u", keys=["A", "\ufffd"]).count(epsilon=MANY, ledger=dpf.Ledger(epsilon=MANY))
    assert cells["count"].round().tolist() == [2, 1]


def test_what_has_no_proof_is_refused_by_schema_and_no_job_is_run(spark):
    frame = spark.range(1).selectExpr(
        *("id", "binary('a') as bytes", "array(1) as list", "null as nothing", "interval '1' day as span"),
        *("raise_error('a job was run') as failing", "map(1, 2) as map", "struct(1) as struct"),
    )
    with dpf.Ledger(epsilon=1, unit="id") as ledger:
        for name in ("bytes", "list", "nothing", "span", "map", "struct"):
            with pytest.raises(dpf.WrongDtype):
                dpf.of(frame).count(name, epsilon=1, max_rows=1)
        with pytest.raises(dpf.UnknownColumn, match="Did you mean 'list'"):
            dpf.of(frame).group_by("lists", keys=["A"]).count(epsilon=1, max_rows=1, max_groups=1)
        for options in ({"memory": "1GiB"}, {"progress": False}):
            with pytest.raises(dpf.InvalidArgument, match="must be left out for a table of Spark"):
                dpf.of(frame).count(epsilon=1, max_rows=1, **options)
        with pytest.raises(dpf.InvalidArgument, match="each column once"):
            dpf.of(frame.selectExpr("id", "id")).count(epsilon=1, max_rows=1)
        assert ledger.spent.epsilon == 0


def test_collated_texts_are_refused_by_schema(spark):
    if int(spark.version.split(".")[0]) < 4:
        pytest.skip("this Spark has no collations")
    frame = spark.createDataFrame([("A",), ("a",)], "u string").selectExpr("u collate UTF8_LCASE as u")
    with pytest.raises(dpf.WrongDtype, match="string collate UTF8_LCASE"):
        dpf.of(frame).count(epsilon=1, ledger=dpf.Ledger(epsilon=1, unit="u"), max_rows=1)


def test_streaming_frames_are_refused_with_the_way_out(spark):
    frame = spark.readStream.format("rate").load()
    with pytest.raises(dpf.InvalidArgument, match="writeStream"):
        dpf.of(frame)


def test_reports_of_single_rows_are_refused_before_the_charge(spark):
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(neighbors="replace"))
    with pytest.raises(dpf.InvalidType, match="in memory"):
        dpf.of(spark.range(3)).local.randomize("id", method=dpf.local.Mean((0, 3), epsilon=1), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_other_versions_on_executors_are_refused_before_the_charge(spark_frame, monkeypatch):
    monkeypatch.setattr(engine, "versions", lambda: engine_versions().replace(dpf.__version__, "0.0.0"))
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match=r"executors have dpframe 0\.0\.0.*not 'dpframe"):
        dpf.of(spark_frame(VISITS)).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    monkeypatch.setattr(totals, "check_executors", lambda frame: None)  # as for one that joined later
    with pytest.raises(dpf.ReleaseFailed):
        dpf.of(spark_frame(VISITS)).histogram("cost", bins=[0, 50, 100], epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 1


def test_a_failure_on_an_executor_tells_nothing_of_values(spark):
    frame = spark.range(3).selectExpr("cast(raise_error(concat('private ', id)) as double) as x", "double(id) as y")
    with pytest.raises(dpf.ReleaseFailed) as caught:
        dpf.of(frame).count("x", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "private 1" not in str(caught.value)


def test_bytes_become_texts_and_no_two_become_one():
    marked = engine.MARK.encode()
    values = [
        b"",
        b"A",
        b"\xff",
        b"\xff\xfe",
        b"\xef\xbf\xbd",
        marked,
        marked + b"ff",
        marked + b"\xff",
        b"\xed\xa0\x80",
        None,
    ]
    found = engine.texts(pl.Series(values, dtype=pl.Binary)).to_list()
    assert found[:2] + found[4:5] + found[-1:] == ["", "A", "\ufffd", None]
    assert len(set(found)) == len(values)
    assert engine.texts(pl.Series([b"A", None], dtype=pl.Binary)).to_list() == ["A", None]


def test_bytes_are_told_from_texts_as_python_does():
    def decodes(value):
        try:
            return value.decode() is not None
        except UnicodeDecodeError:
            return False

    edges = [0, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
    edges += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    values = [bytes(value) for size in (1, 2, 3) for value in itertools.product(edges, repeat=size)]
    values += [bytes([first, second, 0x80, last]) for first in edges for second in edges for last in edges]
    values += [b"long enough for a buffer " + value for value in values]
    found = engine.texts(pl.Series(values, dtype=pl.Binary))
    assert (~found.str.starts_with(engine.MARK)).to_list() == [decodes(value) for value in values]
    assert [text.encode() for text in found if text[:1] != "\0" or engine.MARK not in text] == [
        value for value in values if decodes(value)
    ]
    assert found.n_unique() == len(values)


@needs_pandas
def test_an_error_while_a_partition_is_worked_on_is_withheld():
    def fails(frames):
        raise ValueError("private 1")

    run = engine.OnExecutor(Columns({}), fails, engine.versions())
    with pytest.raises(dpf.ReleaseFailed, match="withheld") as caught:
        list(run(iter([])))
    assert caught.value.__context__ is None


class Partitions:
    """A stand-in for Spark: it hands batches of partitions to pickled functions, as executors get them."""

    def __init__(self, frames):
        self.frames, self.sparkSession, self.conf = frames, self, {"spark.sql.shuffle.partitions": "3"}

    def repartition(self, parts, column):
        whole = pl.concat(self.frames)
        if column == "part":
            places = [list(engine.even_numbers(parts)).index(number) for number in whole[column]]
            return Partitions([whole.filter(pl.Series(places, dtype=pl.Int64) == part) for part in range(parts)])
        place = whole[column].to_physical() if whole[column].dtype.is_decimal() else whole[column]
        place = place.cast(pl.Float64).fill_nan(None) + 0.0 if place.dtype.is_float() else place
        return Partitions([whole.filter(place.hash(seed=0) % parts == part) for part in range(parts)])

    def mapInArrow(self, run, schema):
        batches = [frame.to_arrow().to_batches(max_chunksize=700) for frame in self.frames]
        names = [column.split()[0] for column in schema.split(", ")]
        found = [list(pickle.loads(pickle.dumps(run))(iter(one))) for one in batches]
        assert all(batch.schema.names == names for one in found for batch in one)
        empty = pl.DataFrame(schema={name: pl.Int32 if name == "part" else pl.Binary for name in names})
        return Partitions([pl.concat([empty, *map(pl.DataFrame, one)]) for one in found])

    def collect(self):
        return [row for frame in self.frames for row in frame.rows()]


class WithoutSpark(engine.SparkTable):
    """The engine of Spark on partitions in memory, without SQL."""

    def _plain(self, read):
        return None

    def _by_sql(self, chosen, task):
        return None

    def schema(self):
        return types_of(self.frame.schema)

    def _chosen(self, read):
        dtypes = read.dtypes
        as_sent = {name: pl.Binary if dtype == pl.String else pl.Int64 for name, dtype in dtypes.items()}
        changed = [name for name, dtype in dtypes.items() if dtype in (pl.String, engine.INSTANT)]
        chosen = self.frame.select(*dtypes) if dtypes else self.frame.select(pl.repeat(True, pl.len()))
        whole = chosen.with_columns(pl.col(name).cast(as_sent[name]) for name in changed)
        columns = [whole[group[0]] if len(group) == 1 else in_one_word(whole[group]) for group in read.groups]
        sent = pl.DataFrame([column.alias(f"c{place}") for place, column in enumerate(columns or whole)])
        return Partitions([sent[:500], sent[500:]])


def in_one_word(frame):
    """Pack narrow columns into words by Python's integers; each value has another bit for a missing one."""
    bits = [BITS[dtype] for dtype in frame.dtypes]
    words = []
    for row in frame.with_columns(pl.col(pl.Date).to_physical()).rows():
        word = shift = 0
        for value, width in zip(row, bits, strict=True):
            word |= (2**width if value is None else int(value) % 2**width) << shift
            shift += width + 1
        words.append(word - 2**64 if word >= 2**63 else word)
    return pl.Series(words, dtype=pl.Int64)


def narrow_columns():
    """Return a column of every narrow dtype, with extremes and missing values in different rows of each."""
    numbers = {f"i{bits}": [0, -1, 1, None, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))] for bits in (8, 16, 32)}
    dtypes = {"i8": pl.Int8, "i16": pl.Int16, "i32": pl.Int32, "b": pl.Boolean, "d": pl.Date, "id": pl.Int64}
    days = pl.Series([-(2**30), None, 0, -1, 1, 2**22], dtype=pl.Int32).cast(pl.Date)
    turned = {name: values[place:] + values[:place] for place, (name, values) in enumerate(numbers.items())}
    flags = {"b": [None, True, False, None, True, True], "d": days, "id": range(6)}
    return pl.DataFrame({**turned, **flags}, schema_overrides=dtypes).select(*dtypes)


def test_narrow_columns_share_words_where_they_fit_and_the_unit_has_its_own():
    dtypes = {"a": pl.Int32, "x": pl.Float64, "b": pl.Date, "c": pl.Int8, "u": pl.Int16, "d": pl.Int16, "e": pl.Boolean}
    assert Columns(dtypes, "u").groups == [["a", "c", "d", "e"], ["x"], ["b"], ["u"]]
    assert Columns({"a": pl.Int32, "b": pl.Int32()}).groups == [["a"], ["b"]]  # with those for missing values, 66 bits
    assert Columns({"a": pl.Int32, "b": pl.Int16, "c": pl.Int8, "d": pl.Boolean, "e": pl.Boolean}).groups == [
        ["a", "b", "c", "d", "e"]  # 63 bits
    ]
    assert Columns({}).groups == []


def test_words_lose_nothing_of_narrow_columns():
    frame = narrow_columns()
    for names in (["i8", "i16", "i32", "b"], ["b", "d", "i8"], ["i16", "d", "b", "i8"], ["i32", "b", "i16", "i8"]):
        found = unpacked(in_one_word(frame[names]), names, frame.schema)
        assert pl.DataFrame(found).equals(frame[names])
        assert pl.DataFrame(found).schema == frame[names].schema


def test_spark_makes_the_same_words(spark_frame):
    frame = narrow_columns()
    read = Columns(dict(frame.schema), "id")
    assert read.groups == [["i8", "i16", "i32", "b"], ["d"], ["id"]]
    for dropped in ([], ["i32"]):
        read = Columns({name: dtype for name, dtype in frame.schema.items() if name not in dropped}, "id")
        sent = engine.SparkTable(spark_frame(frame))._chosen(read).select("c0", f"c{len(read.groups) - 1}")
        words = {row: word for word, row in sent.collect()}
        assert [words[row] for row in range(6)] == in_one_word(frame[read.groups[0]]).to_list()


def test_what_a_worker_has_loaded_is_collected_no_more(monkeypatch):
    times = []
    monkeypatch.setattr("gc.freeze", lambda: times.append(1))
    engine.keep_loaded.cache_clear()
    engine.keep_loaded()
    engine.keep_loaded()
    assert times == [1]


@pytest.mark.slow
@pytest.mark.parametrize("memory", [2**28, 2**10])
def test_the_code_of_executors_is_polars_in_memory_bit_for_bit(memory, monkeypatch):
    monkeypatch.setattr(engine, "MEMORY", memory)
    monkeypatch.setattr(engine, "ROWS", 1_000)
    check_engine(WithoutSpark, tables=int(memory > 2**10))


@needs_pandas
def test_other_versions_are_noticed_by_the_executor_itself():
    run = engine.OnExecutor(Columns({}), sum, "dpframe 0.0.0")
    with pytest.raises(dpf.ReleaseFailed, match="versions"):
        list(run(iter([])))


def test_a_column_leaves_spark_by_an_expression_that_cannot_fail():
    assert engine._in_sql("c0", pl.String(), False) == "cast(c0 as binary)"
    assert engine._in_sql("c0", engine.INSTANT, True) == "unix_micros(c0)"
    assert engine._in_sql("c0", pl.Float32(), False) == engine._in_sql("c0", pl.Int64(), True) == "c0"
    assert "cast(0 as float)" in engine._in_sql("c0", pl.Float32(), True)
    zero = "cast(0 as double)"
    expected = f"case when isnan(c0) then null when c0 = {zero} then {zero} else c0 end"
    assert engine._in_sql("c0", pl.Float64(), True) == expected


@pytest.mark.parametrize("unit", [dpf.PrivacyUnit("u", max_groups=2), dpf.PrivacyUnit()], ids=str)
def test_keys_are_found_in_spark_as_in_memory(spark_frame, unit):
    rows = 2_000
    numbers = pl.int_range(rows)
    frame = pl.DataFrame({"u": range(rows)}).with_columns(
        u=pl.when(numbers % 13 > 0).then(numbers % 37),
        k=pl.when(numbers % 7 > 0).then(numbers * numbers % 41),
        w=pl.format("é{}", numbers % 3),
    )
    (axis,) = found_axes(("w", "k"), dpf.discover(delta=1e-6, max_keys=6, nulls=True))
    weights = (1 << 20,) * 6
    expected = keyed(frame, axis, unit, weights, 77)
    assert expected.height > 10
    assert keyed(spark_frame(frame), axis, unit, weights, 77).equals(expected)


def test_sums_by_declared_keys_are_added_up_by_spark_bit_for_bit(spark_frame, monkeypatch):
    by_sql = engine.by_sql

    def asked(task):
        asked.tasks.append(task)
        return by_sql(task)

    asked.tasks = []
    monkeypatch.setattr(engine, "by_sql", asked)
    frame = next(table for name, table in trial.hard_tables(0, 0) if name == "every value")
    keys = {"word": ["A", "a\u0301", None, "absent"], "whole": [0, -(2**63), 2**63 - 1, None]}
    statistics = {
        **{"n": dpf.count(), "there": dpf.count("x"), "s": dpf.sum("x", bounds=(-3, 10))},
        **{"m": dpf.mean("whole", bounds=(0, 7.3)), "tiny": dpf.sum("x", bounds=(-5e-120, 1e-120))},
        **{"r": dpf.sum("narrow", bounds=(0, 1)), "large": dpf.sum("whole", bounds=(-(2.0**53), 2.0**53))},
    }
    query = dpf.of(frame).preview.group_by(*keys, keys=keys).agg(**statistics, epsilon=1).query
    task = Task.of(engine.SparkTable(spark_frame(frame)), query, dpf.PrivacyUnit(), 1.0)
    found = engine.SparkTable(spark_frame(frame)).push(task)
    expected = Task.of(totals.InMemory(source_of(frame)), query, dpf.PrivacyUnit(), 1.0).piece(frame)
    assert {total: cells.tolist() for total, cells in found.totals.items()} == {
        total: cells.tolist() for total, cells in expected.totals.items()
    }
    assert asked.tasks == [task]
    assert engine.by_sql(task)


def test_what_spark_is_not_proven_to_add_goes_the_way_of_rows():
    frame = VISITS.with_columns(when=pl.lit(0).cast(pl.Date), exact=pl.lit("1").cast(pl.Decimal(5, 2)))

    def by_sql(ask, unit=None):
        query = ask(dpf.of(frame).preview).query
        return engine.by_sql(Task.of(totals.InMemory(source_of(frame)), query, unit or dpf.PrivacyUnit(), 1.0))

    assert by_sql(lambda asked: asked.count(epsilon=1))
    assert by_sql(lambda asked: asked.group_by("ward", keys=["A", "B"]).mean("cost", bounds=(0, 9), epsilon=1))
    assert by_sql(lambda asked: asked.count("when", epsilon=1))
    assert not by_sql(lambda asked: asked.group_by("cost", keys=[9.0]).count(epsilon=1))  # keys of floats
    assert not by_sql(lambda asked: asked.sum("exact", bounds=(0, 9), epsilon=1))
    assert not by_sql(lambda asked: asked.histogram("cost", bins=[0, 1, 2], epsilon=1))
    assert not by_sql(lambda asked: asked.median("cost", bounds=(0, 9), epsilon=1))
    assert not by_sql(lambda asked: asked.group_by("patient", keys=range(2_000)).count(epsilon=1))
    assert not by_sql(lambda asked: asked.count(epsilon=1, max_rows=1, unit="patient"), unit=WHO)


def test_expressions_of_sql_fail_on_no_value_and_group_declared_keys_alone():
    keys = {"ward": ["A", None, "x'\u00e9"], "patient": [1, -(2**63)]}
    asked = dpf.of(VISITS).preview.group_by(*keys, keys=keys)
    query = asked.agg(s=dpf.sum("cost", bounds=(0, 9)), epsilon=1).query
    task = Task.of(totals.InMemory(source_of(VISITS)), query, dpf.PrivacyUnit(), 1.0)
    declared = engine.cells_of(task).declared
    assert engine.among("c0", declared["ward"]) == "(c0 in (X'41', X'7827c3a9') or c0 is null)"
    assert engine.among("c1", declared["patient"]) == "(c1 in (1L, -9223372036854775808L))"
    (sql,) = engine.integers_of(task, Terms.of(query.of_cells), {"cost": "c2"}).values()
    assert sql == (
        "case when c2 is null or isnan(c2) then null else "
        "floor(least(greatest(cast(c2 as double) * 67108864.0D, 0.0D), 603979776.0D) + 0.5D) end"
    )
    rows = [(b"A", 1, 2, 2, -3, 5)]
    table = engine.table(rows, {"key0": pl.String(), "key1": pl.Int64()}, ["sum0"])
    assert table.to_dicts() == [{"key0": "A", "key1": 1, "rows": 2, "sum0 n": 2, "sum0": -3 * 2**16 + 5}]
    assert engine.table([], {"key0": pl.Int8()}, ["sum0"]).height == 0


def test_each_partition_of_spark_has_one_part():
    assert engine.even_numbers(8) == [12, 6, 5, 1, 25, 15, 2, 0]  # by hash(0) = 933211791, hash(1) = -559580957, ...
    assert len(set(engine.even_numbers(200))) == 200


@needs_pandas
@pytest.mark.parametrize("many", [0, 300, 10**6])  # all parts come as pairs, some, none
@pytest.mark.parametrize("memory", [2**12, 2**28])
def test_rows_and_pairs_of_one_unit_are_weighed_together(many, memory, monkeypatch):
    monkeypatch.setattr(unit_parts, "MANY_ROWS", many)
    monkeypatch.setattr(engine, "MEMORY", memory)
    places = pl.int_range(1_000, eager=True)
    frame = pl.DataFrame({"patient": places * places % 7 % 5, "ward": places % 3, "cost": places % 10 / 4})
    query = (
        dpf.of(frame)
        .preview.group_by("ward", keys=[0, 1])
        .agg(s=dpf.sum("cost", bounds=(0, 2)), n=dpf.count(), unit=WHO, epsilon=1)
    )
    task = Task.of(totals.InMemory(source_of(frame)), query.query, query.unit, 1.0)
    found = WithoutSpark(frame).push(task)
    assert {total: cells.tolist() for total, cells in found.totals.items()} == {
        total: cells.tolist() for total, cells in task.piece(frame).totals.items()
    }


def test_a_combination_of_columns_is_one_unit(spark_frame):
    pairs = [
        ("a", "bc", 0.0),
        ("ab", "c", 1.0),
        ("ab", "c", 2.0),
        ("a", "bc", -0.0),
        ("a", None, 4.0),
        (None, "c", 5.0),
    ]
    frame = pl.DataFrame(pairs, schema=["a", "b", "x"], orient="row")
    for columns, nulls, people in ((["a", "b"], "drop", 2), (["a", "b"], "one-unit", 3), (["a", "x"], "drop", 4)):
        who = dpf.PrivacyUnit(columns, nulls=nulls, max_rows=1, max_groups=1)
        ledger = dpf.Ledger(epsilon=MANY, unit=who)
        assert round(dpf.of(spark_frame(frame)).count(epsilon=MANY, ledger=ledger)["count"][0]) == people
