"""Result frames, built from public keys and noisy numbers in the caller's library, and kept in Parquet files.

Public frames carry a mark, so that ``.dp`` refuses to charge for them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.errors import DpframeError, InvalidArgument, InvalidType, is_one_of, named, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import foreign
from dpframe.frames.kinds import Library, check_threads, is_missing, is_pandas

if TYPE_CHECKING:
    from dpframe.frames.kinds import PandasFrame

Frame = TypeVar("Frame")

RECORD = "dpframe"  # the key in pandas' attrs and in Parquet metadata
ATTRIBUTE = "_dpframe_record"  # attribute of a Polars frame; each operation makes a new object without it
MARK = "dpframe_public"  # key in pandas' attrs that marks a public frame
MARKED = "_dpframe_public"  # attribute that marks a public Polars frame
TOTALS = ("totals", "square_totals")  # fields of a record that hold one number or more for each cell


class Uncopied(list[Any]):
    """Long list in a record that is not deep-copied; pandas copies all attrs for each column that is read."""

    def __deepcopy__(self, _: object) -> Uncopied:
        return self

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


def frame_of(columns: Mapping[str, Any], library: str) -> Any:
    """Build a frame of the named library. The declared values decide the dtype of keys, never the data."""
    if library == "pandas":
        import pandas

        return pandas.DataFrame({name: _pandas_column(values) for name, values in columns.items()})
    return pl.DataFrame({name: _series(name, values) for name, values in columns.items()})


def with_floats(frame: Any, names: Sequence[str]) -> Any:
    """Return the frame with 64-bit floats in these columns, also in those of missing values alone."""
    if is_pandas(frame):
        return frame.astype(dict.fromkeys(names, "float64"))
    return frame.cast(dict.fromkeys(names, pl.Float64))


def column_of(name: str, values: Any, library: str) -> Any:
    """Build one column of such a frame, so that it can be reused."""
    if library == "pandas":
        import pandas

        return pandas.Series(_pandas_column(values))
    return _series(name, values)


def _pandas_column(values: Any) -> Any:
    """Return a pandas column that keeps integers; with a missing value, pandas would make them floats.

    Integers mixed with floats become floats, unless two of them could become the same float.
    """
    if zone := getattr(values, "zone", None):  # edges with a time zone (`queries.bins.Instants`)
        return _pandas_zoned(values.ticks, zone)
    kinds = {*map(type, values)} if isinstance(values, list) else set()
    if int not in kinds or len(kinds) == 1 or not kinds <= {int, float, type(None)}:
        return values
    import pandas

    whole = [value for value in values if type(value) is int]
    if float in kinds:
        return values if all(abs(value) <= 2**53 for value in whole) else pandas.Series(values, dtype=object)
    if all(-(2**63) <= value < 2**63 for value in whole):
        return pandas.array(values, dtype="Int64")
    if all(0 <= value < 2**64 for value in whole):
        return pandas.array(values, dtype="UInt64")
    return pandas.Series(values, dtype=object)


def label_column(name: str, values: Any, library: str, *, nulls: bool) -> Any:
    """Build a column of labels with a fixed dtype, from a Polars column or an array of Python values (of pandas)."""
    if library == "pandas":
        return _pandas_labels(values, nulls)
    return values.alias(name) if isinstance(values, pl.Series) else _series(name, values.tolist())


def _pandas_labels(values: Any, nulls: bool) -> Any:
    """Build labels in pandas whose dtype depends on no value and always fits: wide integers and times are objects."""
    import pandas

    if not isinstance(values, pl.Series):
        return pandas.Series(values, dtype=object)
    if values.dtype == pl.Time or (values.dtype.is_integer() and "128" in str(values.dtype)):
        return pandas.Series(values.to_list(), dtype=object)
    if values.dtype.is_integer() and nulls:
        return pandas.Series(values.to_list(), dtype="UInt64" if values.dtype.is_unsigned_integer() else "Int64")
    if values.dtype == pl.Boolean and nulls:
        return pandas.Series(values.to_list(), dtype="boolean")
    if zone := getattr(values.dtype, "time_zone", None):  # not through Arrow: older pandas would warn
        return _pandas_zoned(values.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy(), zone)
    return values.to_pandas()


def _pandas_zoned(instants: Any, zone: str) -> Any:
    """Convert instants in UTC to datetimes of a zone."""
    import pandas

    return pandas.Series(instants).dt.tz_localize("UTC").dt.tz_convert(zone)


def rows_at(frame: Any, places: list[int]) -> Any:
    """Return some rows of a built frame, in this order, as a new frame with the same dtypes."""
    return frame.iloc[places].reset_index(drop=True) if is_pandas(frame) else _gathered(frame, places)


def rows_between(frame: Any, start: int, end: int) -> Any:
    """Return some rows of a released frame as a new frame without a record."""
    if not is_pandas(frame):
        return frame[start:end]
    piece = frame.iloc[start:end].reset_index(drop=True)
    piece.attrs = {}
    return piece


def stacked(frames: Sequence[Any]) -> Any:
    """Stack the rows of frames with the same columns and dtypes, without a record."""
    if not is_pandas(frames[0]):
        check_threads()
        return pl.concat(frames).clone()  # concat returns a single frame itself, which must keep its record
    import pandas

    whole = pandas.concat(frames, ignore_index=True)
    whole.attrs = {}
    return whole


def with_first(frame: Any, name: str, texts: Sequence[str]) -> Any:
    """Insert a column of text before the other columns of a frame."""
    if not is_pandas(frame):
        return frame.insert_column(0, pl.Series(name, texts, dtype=pl.String))
    import pandas

    frame.insert(0, name, pandas.Series(list(texts), index=frame.index, dtype=None if texts else "object"))
    return frame


def dtypes_of(frame: Any) -> dict[str, str]:
    """Return the dtype of each column, by name."""
    return dict(zip(map(str, frame.columns), map(str, frame.dtypes), strict=True))


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Convert rows to columns; there is at least one row."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def of_rows(
    rows: Sequence[Mapping[str, Any]],
    like: str,
    types: Mapping[str, type] | None = None,
    whole: Sequence[str] = (),
) -> Any:
    """Build a frame of plain rows, for plans and ledgers; `types` fixes its columns and their types.

    Without types, columns in `whole` hold integers or missing values.
    """
    library = checked_library(like)
    if types is None:
        frame = frame_of(as_columns(rows), library)
        if library == "pandas":
            return frame.astype(dict.fromkeys(whole, "Int64"))
        return frame.cast(dict.fromkeys(whole, pl.Int64))
    columns = {name: [row[name] for row in rows] for name in types}
    if library == "polars":
        return pl.DataFrame(columns, schema=dict(types))
    import pandas

    dtypes = {str: "string", int: "int64", float: "float64"}
    return pandas.DataFrame({name: pandas.Series(columns[name], dtype=dtypes[types[name]]) for name in types})


def checked_library(like: object) -> Library:
    """Return the name of a library that dpframe builds frames of; refuse any other."""
    if not is_one_of(like, ("pandas", "polars")):
        raise InvalidArgument(f"like must be 'pandas' or 'polars', not {shown(like)}.")
    return "pandas" if like == "pandas" else "polars"


def attach(frame: Any, record: Mapping[str, Any]) -> Any:
    """Attach the provenance to a frame: a plain dict in pandas' attrs, an attribute of a Polars frame."""
    if is_pandas(frame):
        kept = dict(record)
        if "parts" in kept:
            kept["parts"] = Uncopied(kept["parts"])
        if "measures" in kept:
            kept["measures"] = {name: dict(said) for name, said in kept["measures"].items()}
            for said in kept["measures"].values():
                said |= {kind: [Uncopied(numbers) for numbers in said[kind]] for kind in TOTALS if kind in said}
        frame.attrs[RECORD] = kept
    else:
        setattr(frame, ATTRIBUTE, dict(record))
    return frame


def attached(frame: Any) -> Any:
    """Return what is attached to a frame as its provenance, unchecked; for a new result, its record."""
    return frame.attrs.get(RECORD) if is_pandas(frame) else getattr(frame, ATTRIBUTE, None)


def record_of(frame: Any) -> dict[str, Any] | None:
    """Return the provenance of a frame, if any, after a check: anybody may have attached it."""
    record = attached(frame)
    return record if isinstance(record, dict) and not foreign.problem_of(record) else None


def reordered(frame: Any, places: NDArray[np.int64]) -> Any:
    """Return the frame with its rows in another order."""
    return frame.iloc[places] if is_pandas(frame) else _gathered(frame, places)


def _gathered(frame: Any, places: Any) -> Any:
    check_threads()
    return frame[places]


def numbers(frame: Any, name: str) -> NDArray[np.float64]:
    """Return a released column as floats."""
    return np.asarray(frame[name].to_numpy(), dtype=np.float64)


def rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a released frame as plain dicts, for charts; missing integers of pandas are None."""
    if not is_pandas(frame):
        return list(frame.to_dicts())
    nullable = [name for name in frame.columns if not isinstance(frame[name].dtype, np.dtype)]
    whole = frame.astype({name: object for name in nullable if frame[name].dtype.kind in "iu"})
    return [
        {name: None if type(value).__name__ == "NAType" else value for name, value in row.items()}
        for row in whole.to_dict("records")
    ]


def with_numbers(frame: Any, columns: Mapping[str, NDArray[np.float64]]) -> Any:
    """Return a new frame with other numbers in these columns, of the same dtypes, without a record."""
    if not is_pandas(frame):
        check_threads()
        made = [pl.Series(name, values).cast(frame.schema[name]) for name, values in columns.items()]
        return frame.with_columns(made)
    import pandas

    plain = frame.copy()
    plain.attrs = {name: value for name, value in frame.attrs.items() if name != RECORD}
    for name, values in columns.items():
        plain[name] = pandas.Series(values, index=frame.index).astype(frame[name].dtype)
    return plain


def beside(frame: Any, labels: Sequence[str], places: NDArray[np.int64], columns: Mapping[str, Any]) -> Any:
    """Return some columns at these rows, followed by new columns, as a new frame without a record."""
    if not is_pandas(frame):
        check_threads()
        made = [pl.Series(name, values) for name, values in columns.items()]
        return pl.DataFrame([*(frame.get_column(name)[places] for name in labels), *made])
    import pandas

    kept = {name: frame[name].iloc[places].reset_index(drop=True) for name in labels}
    return pandas.DataFrame({**kept, **columns})


def fingerprint(frame: Any, names: Sequence[str]) -> str:
    """Return a hash of the released values, which shows if they were altered; "" if a column is gone.

    `frame` is a frame, or a dict of the arrays that a frame is made of.
    """
    if not {*names} <= {*(frame if isinstance(frame, dict) else frame.columns)}:
        return ""
    digest = hashlib.sha256()
    for name in names:
        digest.update(_bytes_of(frame[name]))
    return digest.hexdigest()


def _bytes_of(column: Any) -> bytes | memoryview:
    """Return the bytes of a column: its values as floats if these are exact, else their texts.

    The text of "1" differs from that of "1.0", and a missing value differs from the text "None".
    """
    values = column if isinstance(column, np.ndarray) else column.to_numpy()
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values, dtype="<f8").view(np.uint8).data
    if values.dtype.kind in "biumM":
        whole = values.astype("<i8") if values.dtype.kind in "mM" else values
        if not whole.size or -(2**53) <= int(whole.min()) <= int(whole.max()) <= 2**53:
            return bytes(whole.astype("<f8").tobytes())
    return repr([None if is_missing(value) else str(value) for value in column.to_list()]).encode("utf-8", "replace")


def write_parquet(frame: Any, path: str | PathLike[str], record: Mapping[str, Any]) -> None:
    """Write a Parquet file with the provenance in its metadata, next to the entries of the libraries."""
    import pyarrow.parquet

    table = _arrow(frame)
    metadata = {**(table.schema.metadata or {}), RECORD.encode(): json.dumps(record).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)


@overload
def read_parquet(path: str | PathLike[str], like: Literal["polars"]) -> pl.DataFrame: ...


@overload
def read_parquet(path: str | PathLike[str], like: Literal["pandas"]) -> PandasFrame: ...


@overload
def read_parquet(path: str | PathLike[str], like: None = None) -> Any: ...


@trimmed
def read_parquet(path: str | PathLike[str], like: Library | None = None) -> Any:
    """Read a released frame back, with its provenance.

    Parameters
    ----------
    path : path-like
        A file that ``.dp.write_parquet`` wrote.
    like : {"polars", "pandas"}, optional
        The library of the frame; by default the one that wrote it, or Polars if that is pandas and it is not
        installed.

    Returns
    -------
    DataFrame
        The result, with the ``.dp.provenance`` that was written.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    InvalidArgument, InvalidType
        If `like` names another library, or `path` is not the name of a file.
    NoProvenance
        If the file has no provenance that can be used: it is not a Parquet file, its provenance is broken or of an
        unknown version, its rows are not those of the provenance or more than any release has, or it is compressed by
        ZSTD or BROTLI (``docs/reference/provenance.md``).

    Examples
    --------
    >>> import dpframe as dpf, polars as pl, tempfile, pathlib
    >>> result = pl.DataFrame({"age": [31]}).dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "count.parquet"
    >>> result.dp.write_parquet(path)
    >>> dpf.read_parquet(path).dp.provenance == result.dp.provenance
    True
    """
    if not isinstance(path, (str, bytes, PathLike)):  # `open` also accepts file descriptors
        raise InvalidType(f'path must be the name of a file, not {shown(path)}. Write read_parquet("ages.parquet").')
    named = None if like is None else checked_library(like)
    if named != "pandas":
        check_threads()
    table, record, writer = foreign.table_of(path, RECORD)
    library = named or ("pandas" if writer == "pandas" and find_spec("pandas") is not None else "polars")
    frame = _pandas_of(table) if library == "pandas" else pl.DataFrame(pl.from_arrow(table))
    frame.columns = table.column_names if library == "polars" else frame.columns  # Polars renames a column ""
    return attach(frame, record)


def _pandas_of(table: Any) -> Any:
    """Convert an Arrow table to pandas; integer columns with missing values stay integers."""
    import pandas
    from pyarrow import timestamp, types

    plain, zones = table, {place: getattr(field.type, "tz", None) for place, field in enumerate(table.schema)}
    for position, field in enumerate(table.schema):
        if zones[position] is not None:  # older pandas warns about time zones in Arrow
            plain = plain.set_column(position, field.name, table.column(position).cast(timestamp(field.type.unit)))
    frame = plain.to_pandas()
    for position, field in enumerate(table.schema):
        if (zone := zones[position]) is not None:
            frame.isetitem(position, _pandas_zoned(frame.iloc[:, position], zone))
        if types.is_integer(field.type) and table.column(position).null_count:
            dtype = "UInt64" if types.is_unsigned_integer(field.type) else "Int64"
            whole: Any = pandas.array(table.column(position).to_pylist(), dtype=dtype)
            frame.isetitem(position, pandas.Series(whole, index=frame.index))
    return frame


def _arrow(frame: Any) -> Any:
    """Return the columns as a file holds them, without pandas' other attrs and index.

    Refuse what a file cannot hold, or what a reader would refuse.
    """
    try:
        table = _as_arrow(frame)
    except DpframeError:  # these errors already say what is wrong
        raise
    except (ValueError, TypeError, OverflowError, NotImplementedError):  # the errors of Arrow are subclasses of these
        table = None
    if table is None or not all(foreign.is_released(field.type) for field in table.schema):
        raise InvalidArgument(
            "the frame must have labels that a Parquet file can hold, but some are of several types, or too large. "
            'Declare keys as text, or keep this result with .dp.table("csv").'
        )
    if table.num_columns > foreign.MOST_COLUMNS:
        raise InvalidArgument(
            f"the frame must have at most {foreign.MOST_COLUMNS} columns to be written, and has {table.num_columns}. "
            "Write it in parts."
        )
    return table


def _as_arrow(frame: Any) -> Any:
    """Convert a frame to Arrow; write categories and Enums as plain values, as no release covers their levels."""
    import pyarrow

    if is_pandas(frame):
        table = pyarrow.Table.from_pandas(_plain(frame), preserve_index=False)
    else:
        check_threads()
        table = frame.to_arrow()
    columns = [_decoded(column) for column in table.columns]
    return pyarrow.Table.from_arrays(columns, table.column_names, metadata=table.schema.metadata)


def _plain(frame: Any) -> Any:
    """Return the same values in pandas, without attrs and with objects in place of categories."""
    import pandas

    plain = frame.copy(deep=False)
    plain.attrs = {}
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, pandas.CategoricalDtype):
            column = frame.iloc[:, place]
            plain.isetitem(place, column.astype(object if column.notna().any() else dtype.categories.dtype))
    return plain


def _decoded(column: Any) -> Any:
    """Return a column of Arrow with each value written out, not as a dictionary."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] == "D":
        return pl.Series(name, values.astype("datetime64[ms]")).cast(pl.Date)
    if zone := getattr(values, "zone", None):  # edges with a time zone (`queries.bins.Instants`)
        instants = pl.Series(name, values.ticks)
        return instants.cast(pl.Datetime(instants.dtype.time_unit, zone))  # type: ignore[attr-defined]
    return pl.Series(name, values, strict=False)


@trimmed
def public(frame: Frame) -> Frame:
    """Mark a frame as public: its ``.dp`` then refuses to charge for what needs no noise.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        A frame of pandas or Polars with public data, such as a map, a list of fees, or a result with columns of your
        own.

    Returns
    -------
    DataFrame or LazyFrame
        A new frame with the same rows and the mark. It has no provenance, which would not cover what you added or
        changed; the original frame keeps it. pandas keeps the mark in ``attrs``, also through most operations. In
        Polars, an operation makes a new frame without it.

    Raises
    ------
    InvalidType
        If it is not a frame of pandas or Polars.

    Notes
    -----
    dpframe cannot check the mark. It changes no number and protects nothing.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> beds = dpf.public(pl.DataFrame({"ward": ["A", "B"], "beds": [12, 30]}))
    >>> try:
    ...     beds.dp.count(epsilon=1.0)
    ... except dpf.AlreadyReleased as error:
    ...     print(error)
    this frame is public (dpf.public): use it directly, without .dp.count. If it holds private rows, make it anew.
    """
    if is_pandas(frame):
        plain = frame.copy(deep=False)  # type: ignore[attr-defined]
        plain.attrs = {name: value for name, value in plain.attrs.items() if name != RECORD} | {MARK: True}
        return plain  # type: ignore[no-any-return]
    if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        raise InvalidType(
            f"frame must be a pandas DataFrame or a Polars DataFrame or LazyFrame to be marked, not {named(frame)}. "
            "Convert it first."
        )
    copy = frame.clone()
    setattr(copy, MARKED, True)
    return copy  # type: ignore[return-value]  # a frame of its own class


def is_public(frame: Any) -> bool:
    """Return whether `public` marked a frame."""
    return bool(frame.attrs.get(MARK, False)) if is_pandas(frame) else getattr(frame, MARKED, False) is True
