"""A caller's frame as columns for the Polars engine: their dtypes, and the conversion of their values.

One engine reads every frame, so that one rule holds for NaN, null, rounding and edges, whatever the library of the
frame. Polars frames stay where they are. Columns of pandas (without a copy if their memory allows) and of Arrow are
converted. The dtype of a column follows from its schema alone, and never from a row.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import polars as pl

from dpframe.engines.columns import dask_partitions, pandas_columns
from dpframe.engines.columns.identity import (
    Identity,
    combination,
    decoded,
    identity_of,
    in_milliseconds,
    of_rows,
    present,
)
from dpframe.errors import InvalidArgument, InvalidType, UnknownColumn, WrongDtype, closest, shown, shown_names
from dpframe.frames.kinds import (
    checked_frame,
    idle_connection,
    is_arrow,
    is_dask,
    is_dataset,
    is_engine,
    is_pandas,
    is_relation,
    is_spark,
    schema_of,
)
from dpframe.privacy import PrivacyUnit
from dpframe.queries.where import Conditional

Kind = Literal[
    "number", "text", "date", "datetime", "duration", "time", "period", "missing", "object", "category", "other"
]
Role = Literal["value", "raw", "present", "key", "bin", "unit", "found"]
ColumnRequest = tuple[str, str, Role, Any]  # name in the engine, the caller's column, its role, what is declared for it
OF_UNITS = ("unit", "found")  # roles that may have further columns, which together name the unit
TICKS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**6}  # nanoseconds; seconds are converted to milliseconds
FEW_ROWS = 50_000  # below this, the streaming engine takes longer to start than to run
DAY = 86_400 * 10**9
PLAIN: set[type[pl.DataType]] = {pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64}
PLAIN |= {pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Date}  # dtypes without parameters
ALIKE = ("a", "A", "\u00e1", "a\u0301")  # some collations treat some of these as equal
NEVER_FAILING = (  # types that DuckDB always converts, whatever it reads them from; short ones first
    *("boolean", "tinyint", "utinyint", "smallint", "usmallint", "integer", "uinteger", "float", "date", "bigint"),
    *("ubigint", "double", "enum", "uuid", "varchar"),
)
READ_FROM_DUCKDB = (
    *NEVER_FAILING,
    *("decimal", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"),
)
READ_FROM_SPARK: dict[str, Any] = {
    "BooleanType": pl.Boolean(),
    **{"ByteType": pl.Int8(), "ShortType": pl.Int16(), "IntegerType": pl.Int32(), "LongType": pl.Int64()},
    **{"FloatType": pl.Float32(), "DoubleType": pl.Float64(), "StringType": pl.String(), "DateType": pl.Date()},
    **{"TimestampType": pl.Datetime("us", "UTC"), "TimestampNTZType": pl.Datetime("us")},
}
STRINGS = ("string", "large_string", "string_view")
TEXTS = ("csv", "json")  # formats of files whose columns have the types that the Dataset declares
READ_FROM_ARROW = (*pandas_columns.PLAIN, "dictionary", "binary", "large_binary", "list", "large_list", "struct")


PARAMETERS = re.compile(
    r"(u?int|float|double|bool|string|decimal|date|time|duration|interval|period)[^(<{]*$", re.IGNORECASE
)
WITH_NUMBERS = re.compile(r"(datetime|duration|decimal|numeric|timestamp|time|char|varchar)\w*\(", re.IGNORECASE)


def without_values(dtype: str) -> str:
    """Return a dtype as errors show it: by its name alone if its parameters may be values or names.

    The categories of an Enum, the values of a DuckDB ENUM and the fields of a struct may be private, and thousands.
    """
    if PARAMETERS.match(dtype) or WITH_NUMBERS.match(dtype):
        return dtype
    return re.split(r"[(<{\[]", dtype, maxsplit=1)[0].rstrip()


@dataclass(frozen=True)
class ColumnType:
    """Type of a column, as the schema declares it."""

    kind: Kind
    dtype: str  # as the caller's library writes it
    polars: pl.DataType | None = None  # for Polars and Arrow columns, whose dtypes no missing value can change
    zone: str | None = None  # the name of the time zone of datetimes
    levels: tuple[str, ...] | None = None  # the levels of a Polars Enum, declared in the schema
    tick: int = 10**3  # nanoseconds in one of the engine's integers, for dates, datetimes and durations
    identity: Identity | None = None  # how keys and units are compared; None if that is not proven
    readable: bool = True  # False: every conversion of its values could fail

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", without_values(self.dtype))

    @property
    def aware(self) -> bool:
        """True if these are datetimes with a time zone."""
        return self.zone is not None

    @property
    def by_position(self) -> bool:
        """True if keys are loaded as positions among the declared ones."""
        return self.identity is not None and self.identity.form == "objects"


ROWS_THAT_HOLD = ColumnType("number", "Boolean", pl.Boolean())  # the type of a flag: whether conditions hold


@dataclass(frozen=True)
class Source:
    """Frame of a caller: its schema, and the conversion of columns for their roles, one by one."""

    schema: dict[str, ColumnType]
    bring: Callable[[Sequence[ColumnRequest]], pl.LazyFrame]
    rows: int | None = None  # of a frame in memory; decides only on speed
    index: Sequence[Any] = ()  # the names of the levels of a pandas index

    def load(self, requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
        """Return the columns for their roles; combine the columns of a unit of several columns into one."""
        joint = {name: (column, *more) for name, column, role, more in requests if role in OF_UNITS and more}
        if not joint:
            return self.bring(requests)
        each: list[ColumnRequest] = []
        for name, column, role, of in requests:
            several = [(f"{name} {number}", one, role, None) for number, one in enumerate(joint.get(name, ()))]
            each += several or [(name, column, role, of)]
        brought = self.bring(each)
        dtypes = brought.collect_schema()
        places = {name: [f"{name} {number}" for number in range(len(columns))] for name, columns in joint.items()}
        return brought.select(
            combination([(place, dtypes[place]) for place in places[name]]).alias(name) if name in joint else name
            for name, *_ in requests
        )

    def column(self, name: str) -> ColumnType:
        """Return the type of a column, also of one under conditions; raise UnknownColumn with the nearest name."""
        if isinstance(name, Conditional):
            return ROWS_THAT_HOLD if name.of is None else self.column(name.of)
        if name not in self.schema:
            near = closest(name, self.schema)
            has = (
                f"It has {shown_names(self.schema)}."
                if self.schema
                else "It has no column that is named by a string; df.rename(columns=str) names others so."
            )
            hint = f"Did you mean {near!r}?" if near else has
            if name in self.index:
                hint = "It is the index: df.reset_index() makes a column of it."
            raise UnknownColumn(f"column {name!r} is not in the frame. {hint}")
        column = self.schema[name]
        if not column.readable:
            raise WrongDtype(f"column {name!r} must have a dtype that can be read, unlike {column.dtype}. Cast it.")
        return column


def collected(lazy: pl.LazyFrame, rows: int | None) -> pl.DataFrame:
    """Collect the frame with the engine that is faster for this number of rows; the result is the same."""
    return lazy.collect(engine="in-memory" if rows is not None and rows < FEW_ROWS else "streaming")


def source_of(frame: Any) -> Source:
    """Read the schema of a frame, and no row; return a Source as it is."""
    if isinstance(frame, Source):
        return frame
    if isinstance(frame, pl.DataFrame):
        return _polars_source(frame, frame.schema, frame.height)
    if isinstance(frame, pl.LazyFrame):
        return _polars_source(frame, schema_of(frame), None)
    if is_pandas(frame):
        return _pandas_source(frame)
    if is_engine(frame):
        return Source(types_of(frame.schema()), _brings_nothing)
    if is_dataset(frame):
        _refuse_again(frame.schema.names, "Rename them where the files are written.")
        return Source(types_of_dataset(frame), _brings_nothing)
    if is_relation(frame):
        return Source(types_of_relation(frame), _brings_nothing)
    if is_spark(frame):
        return Source(types_of_spark(frame), _brings_nothing)
    if is_dask(frame):
        return Source(types_of_dask(frame), _brings_nothing)
    if is_arrow(frame):
        return _arrow_source(frame)
    return source_of(checked_frame(frame))


def _brings_nothing(requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
    raise InvalidType("a table that is read in pieces brings none of its columns as a whole")


def types_of(schema: Mapping[str, Any]) -> dict[str, ColumnType]:
    """Return the types of columns that are given as ColumnTypes or as Polars dtypes."""
    known = (ColumnType, pl.DataType, pl.datatypes.DataTypeClass)
    if not isinstance(schema, Mapping) or not all(isinstance(dtype, known) for dtype in schema.values()):
        raise InvalidType(f"schema must give Polars dtypes by name, as that of a Polars frame, not {shown(schema)}.")
    return {name: dtype if isinstance(dtype, ColumnType) else polars_type(dtype) for name, dtype in schema.items()}


def types_of_arrow(schema: Any) -> dict[str, ColumnType]:
    """Return the types of the columns of an Arrow schema; mark columns that Polars cannot read."""
    return {field.name: _type_of_arrow(field.type) for field in schema}


def types_of_dataset(dataset: Any) -> dict[str, ColumnType]:
    """Return the types of the columns of a pyarrow Dataset; mark one as unreadable if pyarrow would cast it in a file.

    A cast can make one value of two: "7" and "007" are one integer, and two times on a day are one date. The footers of
    Parquet, Arrow and ORC files are read, once for each Dataset. Files of text have no types of their own.
    """
    import pyarrow.dataset

    types, known = types_of_arrow(dataset.schema), pyarrow.dataset
    if not isinstance(dataset, (known.FileSystemDataset, known.InMemoryDataset, known.UnionDataset)):
        return types  # another library, which declares what its files hold
    try:
        for part in known.UnionDataset(dataset.schema, [dataset]).get_fragments():  # also of a filtered one
            if getattr(getattr(part, "format", None), "default_extname", None) in TEXTS:
                continue
            for field in part.physical_schema:
                if field.name in types and not _fits(field.type, dataset.schema.field(field.name).type):
                    types[field.name] = ColumnType("other", "one that differs between its files", readable=False)
    except Exception as error:  # its message may hold the exact size of a file
        raise InvalidArgument(
            f"frame must be of files whose schemas can be read ({type(error).__name__}, whose message is withheld). "
            "Nothing was charged. Look at its files."
        ) from None
    return types


def _fits(held: Any, read: Any) -> bool:
    """Return whether all values of one Arrow type are read as another one, exactly and without a failure."""
    import pyarrow

    types = pyarrow.types
    if held == read:
        return True
    try:
        pyarrow.nulls(0, held).cast(read)
    except pyarrow.ArrowException:  # this version of pyarrow has no such cast
        return False
    if types.is_dictionary(read) and not types.is_null(held):  # codes that are too short fail for some values
        codes = held.index_type if types.is_dictionary(held) else pyarrow.int32()
        if not _fits(codes, read.index_type):
            return False
    held, read = (one.value_type if types.is_dictionary(one) else one for one in (held, read))
    if held == read or types.is_null(held) or (str(held) in STRINGS and str(read) in STRINGS):
        return True
    if types.is_integer(held) and types.is_integer(read):
        spare = read.bit_width - held.bit_width
        return bool(spare > 0 and (types.is_signed_integer(read) or types.is_unsigned_integer(held)))
    return bool(types.is_floating(held) and types.is_floating(read) and read.bit_width > held.bit_width)


def _refuse_again(names: Sequence[str], way_out: str) -> None:
    """Refuse columns of one name: it would be open which of them names the unit, or has which dtype."""
    again = sorted({name for name, times in Counter(names).items() if times > 1})
    if again:
        raise InvalidArgument(f"frame must have each column once, and it has {shown(again)} more often. {way_out}")


@lru_cache(maxsize=256)
def _type_of_arrow(dtype: Any) -> ColumnType:
    import pyarrow

    unreadable = ColumnType("other", str(dtype), readable=False)
    if not _comes_from_arrow(dtype):
        return unreadable
    if _shows_presence(dtype):
        return replace(unreadable, readable=True)
    try:
        return _type_by_trial(pyarrow.Table.from_arrays([decoded(pyarrow.nulls(0, dtype))], names=["c"]))
    except (WrongDtype, pyarrow.ArrowException):  # this pyarrow may be unable to decode its dictionaries
        return unreadable


def _comes_from_arrow(dtype: Any) -> bool:
    """Return whether every value of an Arrow type can be read: as Polars does it, or of a nested one the presence."""
    from pyarrow import types

    if not any(getattr(types, f"is_{name}", lambda _: False)(dtype) for name in READ_FROM_ARROW):
        return False
    return not types.is_dictionary(dtype) or _comes_from_arrow(dtype.value_type)


def types_of_spark(frame: Any) -> dict[str, ColumnType]:
    """Return the types of the columns of a Spark DataFrame, from its analyzed plan: no job is run.

    Instants are compared as such, in whatever time zone the session shows them. Collations other than byte by byte are
    refused: values that they call equal would be different people here.
    """
    _refuse_again([field.name for field in frame.schema.fields], "Rename them: df.toDF(*names).")
    types = {field.name: _type_of_spark(field.dataType) for field in frame.schema.fields}
    if any(column.aware for column in types.values()):
        session = frame.sparkSession.conf.get("spark.sql.session.timeZone")  # the zone in which Spark shows instants
        types = {name: replace(column, zone=session) if column.aware else column for name, column in types.items()}
    return types


def _type_of_spark(dtype: Any) -> ColumnType:
    name, written = type(dtype).__name__, str(dtype.simpleString())
    collation = getattr(dtype, "collation", "UTF8_BINARY") if name == "StringType" else "UTF8_BINARY"
    if type(dtype).__module__ != "pyspark.sql.types" or collation != "UTF8_BINARY":
        return ColumnType("other", written, readable=False)
    if name == "DecimalType":
        return replace(polars_type(pl.Decimal(dtype.precision, dtype.scale)), dtype=written)
    if name not in READ_FROM_SPARK:
        return ColumnType("other", written, readable=False)
    return replace(polars_type(READ_FROM_SPARK[name]), dtype=written)


def types_of_dask(frame: Any) -> dict[str, ColumnType]:
    """Return the types of the columns of a Dask DataFrame, as it declares them: no task is run."""
    dtypes = frame.dtypes
    return {name: _type_of_dask(dtypes[name]) for name in pandas_columns.checked_names(frame)}


def _type_of_dask(dtype: Any) -> ColumnType:
    exact = dask_partitions.dtype_of(dtype)
    if exact is None:
        return ColumnType("other", str(dtype), readable=False)
    known = replace(polars_type(exact), dtype=str(dtype))
    return known if known.zone is None else replace(known, zone=_pandas_own_type(dtype).zone)


@idle_connection()
def types_of_relation(relation: Any) -> dict[str, ColumnType]:
    """Return the types of the columns of a DuckDB relation, which are those of its Arrow batches.

    Types that DuckDB may fail to convert are refused: integers that are wider than Arrow's decimals, and intervals.
    Collations are refused too: values that they call equal would be different people here. So are names that differ
    only in case: DuckDB takes the first column for both.
    """
    lowered = [name.lower() for name in relation.columns]
    _refuse_again(lowered, 'Name each once, as in "select visits.*, patients.id as patient".')
    arrow = types_of_arrow(relation.limit(0).to_arrow_table().schema)
    texts = [name for name, theirs in zip(relation.columns, relation.types, strict=True) if str(theirs) == "VARCHAR"]
    if list(arrow) != relation.columns or any(arrow[name].kind != "text" for name in texts):
        raise InvalidArgument(
            "frame must have the columns that it had when the relation was made: its table or file was replaced. "
            "Nothing was charged. Make the relation anew."
        )
    types = {}
    for name, theirs in zip(relation.columns, relation.types, strict=True):
        types[name] = arrow[name]
        if str(theirs.id) not in READ_FROM_DUCKDB or str(theirs) == "JSON":  # JSON is a varchar that refuses some texts
            types[name] = ColumnType("other", str(theirs), readable=False)
        elif str(theirs.id) == "varchar" and _collates(relation, name):
            types[name] = ColumnType("other", f"{theirs} with a collation", readable=False)
    return types


def _collates(relation: Any, name: str) -> bool:
    """Return whether DuckDB compares this column other than byte by byte; try it on words, and on no row."""
    quoted = '"' + name.replace('"', '""') + '"'
    nothing = relation.limit(0).aggregate(f"any_value({quoted}) as x")
    pairs = [(letter, other) for letter, other in itertools.combinations(ALIKE, 2)]
    alike = ", ".join(f"coalesce(x, '{letter}') = '{other}'" for letter, other in pairs)
    return any(nothing.project(alike).fetchall()[0])


def unit_requests(unit: PrivacyUnit, name: str = "unit", role: Role = "unit") -> list[ColumnRequest]:
    """Return the request for the unit of each row; none if each row is a unit."""
    return [(name, unit.columns[0], role, unit.columns[1:])] if unit.columns else []


def _polars_source(frame: pl.DataFrame | pl.LazyFrame, schema: pl.Schema, rows: int | None = None) -> Source:
    def load(requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
        if not requests:
            return frame.lazy()  # a selection of no columns would have no rows to count
        columns = dict.fromkeys(column for _, column, _, _ in requests)
        table = collected(frame.select(map(exactly, columns)), None) if isinstance(frame, pl.LazyFrame) else frame
        kept = {column: _unflagged(table.get_column(column)) for column in columns}
        if all(_as_it_is(role, schema[column]) for _, column, role, _ in requests):
            return pl.DataFrame([kept[column].alias(name) for name, column, _, _ in requests]).lazy()
        held = pl.DataFrame(kept)  # a list of series would rename a column ""
        return held.lazy().select(
            _for_role(column, role, schema[column]).alias(name) for name, column, role, _ in requests
        )

    return Source({name: polars_type(dtype) for name, dtype in schema.items()}, load, rows)


class _Exported:
    """A series as another library would hand it over: with its values and dtype alone."""

    def __init__(self, series: pl.Series) -> None:
        self.__arrow_c_stream__ = series.__arrow_c_stream__


def _unflagged(series: pl.Series) -> pl.Series:
    """Return a series without its flag of being sorted, and with the same memory.

    Polars believes the flag, which `set_sorted` and files of Parquet set unchecked. If one row is out of order, minima,
    comparisons, joins and groups of all rows would be wrong.
    """
    flags = series.flags
    if len(series) < 2 or series.dtype == pl.Object or not (flags["SORTED_ASC"] or flags["SORTED_DESC"]):
        return series
    return pl.Series(series.name, _Exported(series))


def _pandas_source(frame: Any) -> Source:
    def load(requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
        series = []
        for name, column, role, declared in requests:
            brought = pandas_columns.load(frame[column], "value" if role == "raw" else role, declared)
            if not _as_it_is(role, brought.dtype):
                brought = pl.DataFrame({"": brought}).select(_for_role("", role, brought.dtype)).to_series()
            series.append(brought.alias(name))
        rows = pl.Series("", np.zeros(len(frame), dtype=np.int8))  # rows to count, if no column is read
        return pl.DataFrame(series or [rows]).lazy()

    names = pandas_columns.checked_names(frame)
    dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))  # faster than reading the dtype of each column
    return Source({name: _pandas_type(dtypes[name]) for name in names}, load, len(frame), tuple(frame.index.names))


def _arrow_source(table: Any) -> Source:
    def load(requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
        columns = list(dict.fromkeys(column for _, column, _, _ in requests))
        if not columns:
            return pl.DataFrame(pl.Series("", np.zeros(table.num_rows, dtype=np.int8))).lazy()  # rows to be counted
        brought = from_arrow(table.select(columns))
        return _polars_source(brought, brought.schema, table.num_rows).load(requests)

    _refuse_again(table.column_names, "Rename them: table.rename_columns(names).")
    return Source(types_of_arrow(table.schema), load, table.num_rows)


def from_arrow(table: Any) -> pl.DataFrame:
    """Convert an Arrow table to a frame with its names; Polars would rename a column with the name ""."""
    import pyarrow

    names = table.column_names
    columns = [
        present(each) if _shows_presence(each.type) else in_milliseconds(decoded(each)) for each in table.columns
    ]
    # Leave out the metadata of fields: levels and types that the first file declares need not suit the next one.
    brought = pl.DataFrame(pl.from_arrow(pyarrow.Table.from_arrays(columns, names=names)))
    return brought.rename(dict(zip(brought.columns, names, strict=True)))


def _shows_presence(dtype: Any) -> bool:
    """Return whether only the presence of values is read: of lists, structs and bytes, also in dictionaries.

    Polars fails on some nested columns without a value, and dictionaries of bytes may be too large to be decoded.
    """
    from pyarrow import types

    while types.is_dictionary(dtype):
        dtype = dtype.value_type
    nested = types.is_struct(dtype) or types.is_list(dtype) or types.is_large_list(dtype)
    return bool(nested or types.is_binary(dtype) or types.is_large_binary(dtype))


def _type_by_trial(empty: Any) -> ColumnType:
    """Return the type of the one column of an Arrow table without rows."""
    import narwhals.stable.v2 as nw

    brought = _without_rows(empty)
    (dtype,), (theirs,), (ours,) = (
        brought.dtypes,
        nw.from_native(empty).schema.values(),
        _as_narwhals(brought).values(),
    )
    column = polars_type(dtype)
    return column if _comes_over_exactly(theirs, ours) else replace(column, dtype=str(theirs), identity=None)


def _comes_over_exactly(theirs: Any, ours: Any) -> bool:
    """Return whether no two values of another library's dtype can become one on their way to Polars.

    A dtype that stays the same is proven. Seconds become milliseconds, which wrap. Dtypes of times and durations do not
    say what these are (months? past midnight?).
    """
    import narwhals.stable.v2 as nw

    if isinstance(theirs, nw.Datetime) and isinstance(ours, nw.Datetime):
        return theirs.time_unit == ours.time_unit
    return bool(theirs == ours) and theirs not in (nw.Time, nw.Duration, nw.Object, nw.Unknown)


def _without_rows(empty: Any) -> pl.DataFrame:
    """Return the schema as Polars reads it. Polars panics on unknown dtypes, and a panic is no Exception."""
    try:
        return from_arrow(empty)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # it is about no rows, so it may be shown
        said = shown(" ".join(str(error).split()))
        raise WrongDtype(f"the frame must have dtypes that Polars can read, unlike these: {said}. Cast them.") from None


def _as_narwhals(empty: pl.DataFrame) -> Any:
    """Return the schema as narwhals reads it back, which lacks some dtypes, such as decimals of 256 bits."""
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(empty).schema
    except (TypeError, ValueError) as error:
        raise WrongDtype(
            f"the frame must have dtypes that Polars can read, unlike one of these: {shown(str(error))}. Cast it."
        ) from None


def polars_type(dtype: pl.DataType) -> ColumnType:
    """Return the type of a column of a Polars dtype."""
    return _plain_type(type(dtype)) if type(dtype) in PLAIN else _polars_type(dtype)


@cache
def _plain_type(dtype: type[pl.DataType]) -> ColumnType:
    """Return the type of a column of a dtype without parameters."""
    return _polars_type(dtype())


def _polars_type(dtype: pl.DataType) -> ColumnType:
    shown_dtype = str(dtype)
    identity = identity_of(dtype)
    if dtype == pl.Enum:
        levels = tuple(dtype.categories)  # type: ignore[attr-defined]
        return ColumnType("text", shown_dtype, dtype, levels=levels, identity=identity)
    if dtype == pl.Datetime:
        zone = dtype.time_zone  # type: ignore[attr-defined]
        return ColumnType("datetime", shown_dtype, dtype, zone=zone, tick=tick_of(dtype), identity=identity)
    kinds: dict[Any, Kind] = {
        pl.Boolean: "number",
        pl.String: "text",
        pl.Categorical: "text",
        pl.Date: "date",
        pl.Duration: "duration",
        pl.Time: "time",
        pl.Null: "missing",
    }
    kind = "number" if dtype.is_numeric() else kinds.get(dtype.base_type(), "other")
    return ColumnType(kind, shown_dtype, dtype, tick=tick_of(dtype), identity=identity)


def tick_of(dtype: pl.DataType) -> int:
    """Return the nanoseconds in one physical step of a temporal dtype."""
    return DAY if dtype == pl.Date else TICKS[getattr(dtype, "time_unit", None) or "us"]


def _pandas_type(dtype: Any) -> ColumnType:
    """Return the type of a column of a pandas dtype, which one missing value can change for numbers and bools."""
    return _numpy_type(dtype) if isinstance(dtype, np.dtype) else _pandas_own_type(dtype)


@lru_cache(maxsize=256)
def _numpy_type(dtype: np.dtype[Any]) -> ColumnType:
    return _pandas_own_type(dtype)


def _pandas_own_type(dtype: Any) -> ColumnType:
    kind, zone = pandas_columns.kind_of(dtype)
    identity = pandas_columns.identity_of(dtype)
    if kind == "arrow":
        arrow = pandas_columns.arrow_dtype(dtype)
        column_type = polars_type(arrow) if arrow is not None else ColumnType("other", "")
        return replace(column_type, dtype=str(dtype), levels=None, identity=None if arrow is None else identity)
    tick = TICKS.get(pandas_columns.unit_of(dtype), 10**3)
    return ColumnType(kind, str(dtype), zone=zone, tick=tick, identity=identity)


def _for_role(column: str, role: Role, dtype: pl.DataType) -> pl.Expr:
    """Return the expression that makes a column fit its role; none of them can fail on a value."""
    values = exactly(column)
    if role == "value":
        return values.cast(pl.Float64, strict=False)
    if role == "raw":  # kernels convert these values to floats as they read them
        return values if dtype in (pl.Int64, pl.Float64) else values.cast(pl.Float64, strict=False)
    if role == "present":
        return values.is_not_null() & values.is_not_nan() if dtype.is_float() else values.is_not_null()
    if role == "bin":
        temporal = polars_type(dtype).kind in ("date", "datetime", "duration")
        return values.to_physical() if temporal else values.cast(pl.Float64, strict=False)
    return of_rows(values, dtype)


def _as_it_is(role: Role, dtype: pl.DataType) -> bool:
    """Return whether a column fits its role without an expression; for a small frame, planning one takes longest."""
    if role in ("value", "raw", "bin"):
        return dtype == pl.Float64 or (role == "raw" and dtype == pl.Int64)
    return role != "present" and dtype in (pl.String, pl.Int64)


def exactly(name: str) -> pl.Expr:
    """Return the column of this name; Polars reads "*" and "^...$" as patterns."""
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if pattern else name)
