"""Kinds of frames: each one that narwhals knows is read or refused, and dtypes never depend on a row."""

import sys
import traceback
from types import SimpleNamespace

import narwhals as nw
import narwhals.stable.v1 as nw_v1
import narwhals.stable.v2 as nw_v2
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.columns.source import source_of
from dpframe.frames import kinds

EXACT = 1e6
METHOD = dpf.local.SubsetSelection(["A", "B"], epsilon=1.0)


def stand_in(package, name, **members):
    """Return an object whose class looks like a frame of a package that need not be installed."""
    return type(name, (), {"__module__": f"{package}.core", **members})()


def spark_of(module):
    """Return a function that makes a Spark DataFrame without a session; `module` holds its class."""

    def make(monkeypatch):
        frame = stand_in("pyspark", "DataFrame", isStreaming=False)
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(DataFrame=type(frame)))
        return frame

    return make


def of_package(package, convert):
    return lambda _: convert(pytest.importorskip(package))


COLUMNS = {"k": ["A", "B", "A"], "x": [1, 2, 3]}
READ = {  # by narwhals' names; frames of Spark are recognized without a session
    "pandas": of_package("pandas", lambda pandas: pandas.DataFrame(COLUMNS)),
    "polars": lambda _: pl.DataFrame(COLUMNS),
    "pyarrow": of_package("pyarrow", lambda pyarrow: pyarrow.table(COLUMNS)),
    "duckdb": of_package("duckdb", lambda duckdb: duckdb.sql("select * from (values (1, 2)) as t(k, x)")),
    "dask": of_package("dask.dataframe", lambda dd: dd.from_dict(COLUMNS, npartitions=1)),
    "pyspark": spark_of("pyspark.sql"),
    "pyspark[connect]": spark_of("pyspark.sql.connect.dataframe"),
}
REFUSED = {
    "ibis": (stand_in("ibis", "Table", sql=print), "a Table of ibis. Export its columns to Parquet"),
    "sqlframe": (stand_in("sqlframe", "DuckDBDataFrame", sql=print), "a DuckDBDataFrame of sqlframe. Export its"),
    "modin": (stand_in("modin", "DataFrame"), "of modin. Convert it: dpf.of(frame.modin.to_pandas())."),
    "cudf": (stand_in("cudf", "DataFrame"), "of cudf. Convert it: dpf.of(frame.to_arrow())."),
    "unknown": (stand_in("new", "Frame", to_arrow=print), "not a Frame. Convert it: dpf.of(frame.to_arrow())."),
}


def test_169_every_kind_that_narwhals_knows_is_decided():
    """This fails if a newer narwhals adds a kind, until dpframe reads it or names an alternative."""
    known = {kind.value for kind in nw.Implementation}
    assert known <= set(READ) | set(REFUSED)
    assert set(kinds.WAYS_OUT) == set(REFUSED)


@pytest.mark.parametrize("kind", READ)
def test_kinds_with_an_engine_are_read(kind, monkeypatch):
    frame = READ[kind](monkeypatch)
    assert kinds.checked_frame(frame) is frame


class Wrapped(nw.LazyFrame):
    """The wrapper that narwhals puts around a frame, for packages that need not be installed."""

    def __init__(self, native):
        self.native = native

    def to_native(self):
        return self.native


@pytest.mark.parametrize("kind", REFUSED)
def test_169_other_kinds_are_refused_before_any_charge(kind):
    frame, words = REFUSED[kind]
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("k", max_rows=1))
    for given in (frame, Wrapped(frame)):
        with pytest.raises(dpf.InvalidType, match="frame must be a table of pandas, Polars, Arrow") as error:
            dpf.of(given).count(epsilon=1, ledger=ledger)
        assert words in str(error.value)
        with pytest.raises(dpf.InvalidType):
            dpf.of(given, like="polars")
        with pytest.raises(dpf.InvalidType):
            METHOD.randomize(given)
    assert ledger.spent.epsilon == 0


def test_169_methods_make_no_engine_of_a_foreign_frame():
    """A later version of another library may give its methods the names of an engine's."""
    frame = stand_in("ibis", "Table", schema=lambda _: pl.Schema({"x": pl.Int64}), fold=lambda *_: None)
    with pytest.raises(dpf.InvalidType, match="of ibis"):
        dpf.of(frame)


@pytest.mark.parametrize("wrap", [nw.from_native, nw_v1.from_native, nw_v2.from_native])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_that_narwhals_holds_are_read_as_they_are(kind, wrap, monkeypatch):
    frame = READ[kind](monkeypatch)
    assert type(kinds.checked_frame(wrap(frame))) is type(frame)
    found = dpf.of(wrap(frame)).count(epsilon=EXACT, ledger=dpf.Ledger(epsilon=EXACT))
    assert type(found) is type(dpf.of(frame).count(epsilon=EXACT, ledger=dpf.Ledger(epsilon=EXACT)))


def test_a_lazy_frame_that_narwhals_holds_is_read_in_batches():
    lazy = nw.from_native(pl.LazyFrame(COLUMNS)).filter(nw.col("x") > 1)
    ledger = dpf.Ledger(epsilon=2 * EXACT)
    assert dpf.of(lazy).count(epsilon=EXACT, ledger=ledger, memory="64MiB")["count"].to_list() == [2]
    assert dpf.of(lazy, like="polars").count(epsilon=EXACT, ledger=ledger, memory="64MiB")["count"].to_list() == [2]


def test_single_columns_are_of_the_same_kinds():
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.chunked_array([["A", "B"], ["A", None]])
    for series in (column, column.chunk(0), nw.from_native(column, series_only=True), pl.Series(["A", "B"])):
        assert len(METHOD.randomize(series)) == len(series)
    for series in (stand_in("modin", "Series", to_arrow=print), stand_in("cudf", "Series"), "A", None):
        with pytest.raises(dpf.InvalidType, match="a column of pandas, Polars or Arrow"):
            METHOD.randomize(series)


NEAR_IDS = [2**60, 2**60 + 1, 2**60 + 2]


def frames_of_ids(ids):
    """Yield the same ids in each eager kind of frame that holds integers exactly next to a missing value."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    yield pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64)})
    yield pyarrow.table({"id": pyarrow.array(ids, type=pyarrow.int64())})
    yield pandas.DataFrame({"id": pandas.array(ids, dtype="Int64")})
    yield pandas.DataFrame({"id": pandas.array(ids, dtype="int64[pyarrow]")})
    yield pandas.DataFrame({"id": pandas.Series(ids, dtype=object)})


@pytest.mark.parametrize("odd", [[], [None], [None] * 3])
def test_170_a_missing_value_moves_no_other_row(odd):
    """A missing id must not turn the others into floats, which would merge these three people and keys."""
    for frame in frames_of_ids([*NEAR_IDS, *odd]):
        unit, ledger = dpf.PrivacyUnit("id", max_rows=1), dpf.Ledger(epsilon=3 * EXACT)
        people = dpf.of(frame).count(epsilon=EXACT, unit=unit, ledger=dpf.Ledger(epsilon=EXACT, unit=unit))
        assert list(people["count"]) == [pytest.approx(3, abs=1e-3)]
        keyed = dpf.of(frame).group_by("id", keys=NEAR_IDS).count(epsilon=EXACT, ledger=ledger)
        assert list(keyed["count"]) == [1, 1, 1]


def arrow_columns():
    """A column of each kind of Arrow type, with a missing value."""
    pa = pytest.importorskip("pyarrow")
    lists = pa.list_(pa.int64(), 2)
    yield from (pa.array([1, None, 2], type=dtype) for dtype in (pa.int8(), pa.uint64(), pa.float32(), pa.date32()))
    yield from (pa.array(["a", None, "b"], type=dtype) for dtype in (pa.string(), pa.large_string()))
    yield from (pa.array([1, None, 2], type=dtype) for dtype in (pa.timestamp("s"), pa.duration("us"), pa.time32("s")))
    yield pa.array([None, None, None])
    yield pa.array([1, None, 2], type=pa.decimal128(38, 2))
    yield pa.array([b"a", None, b"b"])
    yield pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array(["a", "a"]))
    yield pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([5, None]))
    yield pa.array([[1], None, []])
    yield pa.array([{"a": "x"}, None, {"a": None}])
    yield pa.array([[1, 2], None, [3, 4]], type=lists)
    yield pa.array([[[1, 2]], None, [None]], type=pa.list_(lists))
    yield pa.array([{"a": [1, 2]}, None, {"a": None}], type=pa.struct([("a", lists)]))
    yield pa.array([[("a", 1)], None, []], type=pa.map_(pa.string(), pa.int64()))
    yield pa.array([b"ab", None, b"cd"], type=pa.binary(2))


def test_170_dtypes_of_arrow_follow_from_the_schema():
    """Rows, chunks and slices all get the dtype of an empty table; a type whose dtype is unreadable is refused."""
    pa = pytest.importorskip("pyarrow")
    refused = []
    for column in arrow_columns():
        pieces = [column.slice(0, 0), column, column.slice(1), column.slice(1, 1), column.slice(2)]
        known = source_of(pa.table({"c": column.slice(0, 0)})).schema["c"]
        for chunks in ([piece] for piece in pieces):
            table = pa.table({"c": pa.chunked_array(chunks)})
            source = source_of(table)
            assert source.schema["c"] == known
            if not known.readable:
                refused.append(str(column.type))
                with pytest.raises(dpf.WrongDtype):
                    dpf.of(table).count("c", epsilon=1, ledger=dpf.Ledger(epsilon=1))
                continue
            found = source.load([("c", "c", "present", None)]).collect()["c"].sum()
            assert found == len(table) - sum(value is None for value in table["c"].to_pylist())
            ledger = dpf.Ledger(epsilon=EXACT)
            assert dpf.of(table).count("c", epsilon=EXACT, ledger=ledger)["count"].to_list() == [found]
    assert [one for one in set(refused) if "list" in one] == ["fixed_size_list<item: int64>[2]"]  # in others it is read


@pytest.mark.parametrize(
    ("plan", "way_out"),
    [
        (lambda: pl.scan_parquet("nowhere/rows.parquet"), "Correct the path, or its permissions."),
        (lambda: pl.LazyFrame({"x": [1]}).select("y"), "Correct the plan."),
    ],
    ids=["file", "column"],
)
def test_the_error_of_a_plan_names_what_to_correct(plan, way_out):
    with pytest.raises(dpf.InvalidArgument, match=way_out):
        plan().dp.count(epsilon=1)


@pytest.mark.parametrize("person", ["Alice Smith", "Dan, path"])
def test_263_the_error_of_a_hive_schema_shows_no_folder_of_a_person(person, tmp_path):
    """Polars' own error quotes the path of the first file, with the value of its folder, before any charge."""
    folder = tmp_path / f"patient={person}"
    folder.mkdir()
    pl.DataFrame({"x": [1.0]}).write_parquet(folder / "stays.parquet")
    frame = pl.scan_parquet(tmp_path, hive_schema={"person": pl.String})
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match='not present in the given Hive schema: "patient"') as caught:
        dpf.of(frame).count(epsilon=1, ledger=ledger)
    told = "".join(traceback.format_exception(caught.value))
    assert person not in told
    assert "stays" not in told
    assert str(caught.value).endswith("Nothing was charged. Correct the plan.")


def test_263_the_error_of_a_file_shows_no_folder_of_a_person():
    """A file that may not be read in a folder."""

    def columns():
        raise PermissionError("Permission denied (os error 13): stays/Alice Smith.parquet")

    with pytest.raises(
        dpf.InvalidArgument, match=r"\(PermissionError\)\. Nothing was charged\. Correct the path"
    ) as caught:
        kinds.planned("frame", columns)
    assert "Alice" not in str(caught.value)
