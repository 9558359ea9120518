"""The library of a frame, told without importing any that is not there."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from dpframe.errors import InvalidArgument, InvalidType, named

if TYPE_CHECKING:  # the names of frames' types, for the rooms that know no dataframe library
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame
    from polars import LazyFrame as PolarsLazyFrame

    __all__ = ["PandasFrame", "PolarsFrame", "PolarsLazyFrame"]

Library = Literal["pandas", "polars"]

EXPORT = (
    "Export its columns to Parquet with the tools of the database, and scan them: dpf.of(pl.scan_parquet(path)). "
    "A table of DuckDB is read as it is: dpf.of(connection.sql(query))."
)
WAYS_OUT = {  # of the kinds that narwhals reads and dpframe refuses: what their values become, a row may decide
    "ibis": EXPORT,
    "sqlframe": EXPORT,
    "modin": "Convert it: dpf.of(frame.modin.to_pandas()).",
    "cudf": "Convert it: dpf.of(frame.to_arrow()).",
    "unknown": "Make one: pl.DataFrame(...).",
}


def is_frame(value: object) -> bool:
    """Tell whether a value is a frame of any library that narwhals reads, or dpframe itself; public ones may be any."""
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or is_pandas(value) or is_dataset(value) or is_engine(value):
        return True
    if is_spark(value) or is_dask(value):
        return True
    if isinstance(value, (list, tuple, range, dict, str, int, float, type(None))):
        return False  # as most keys are: narwhals takes a good part of the start of a process, and is not needed
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(value, pass_through=True)
    except nw.exceptions.DuplicateError:  # it is one, of which two columns have one name: whoever reads it says so
        return True
    return isinstance(native, (nw.DataFrame, nw.LazyFrame))


def is_pandas(value: object) -> bool:
    """Tell whether a value is a pandas DataFrame; pandas is not imported to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and hasattr(pandas, "DataFrame") and isinstance(value, pandas.DataFrame)


def is_arrow(value: object) -> bool:
    """Tell whether a value is a pyarrow Table."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and hasattr(pyarrow, "Table") and isinstance(value, pyarrow.Table)


def is_dataset(value: object) -> bool:
    """Tell whether a value is a pyarrow Dataset."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(value, dataset.Dataset)


def is_relation(value: object) -> bool:
    """Tell whether a value is a DuckDB relation."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(value, duckdb.DuckDBPyRelation)


def is_spark(value: object) -> bool:
    """Tell whether a value is a DataFrame of Apache Spark, of a session in this process or of Spark Connect."""
    modules = (sys.modules.get("pyspark.sql"), sys.modules.get("pyspark.sql.connect.dataframe"))
    return any(hasattr(module, "DataFrame") and isinstance(value, module.DataFrame) for module in modules if module)


def is_dask(value: object) -> bool:
    """Tell whether a value is a Dask DataFrame."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and hasattr(dask, "DataFrame") and isinstance(value, dask.DataFrame)


def is_engine(value: object) -> bool:
    """Tell whether a value is an engine from outside: an object that has its methods."""
    if isinstance(value, (type, pl.DataFrame, pl.LazyFrame)) or is_relation(value) or is_spark(value):
        return False
    if is_dask(value) or _foreign(value):  # whatever methods their versions to come have
        return False
    return all(callable(getattr(value, name, None)) for name in ("schema", "fold"))


def library_of(frame: Any) -> Library:
    """The library of the results from this frame: pandas for pandas, Spark and Dask, Polars for any other.

    Where pandas is not installed, they are of Polars for Spark too.
    """
    if is_spark(frame):
        return "pandas" if importlib.util.find_spec("pandas") else "polars"
    return "pandas" if is_pandas(frame) or is_dask(frame) else "polars"


def checked_frame(value: object) -> Any:
    """The frame itself, where narwhals is wrapped around one; refuse what dpframe does not read, and what has no end.

    The kind decides, and no row. The rows of other lazy frames are elsewhere: what a database makes of a value, dpframe
    cannot know, and one that it cannot hand over would fail the release. Other eager ones choose dtypes by their rows.
    """
    frame = unwrapped(value)
    own = isinstance(frame, (pl.DataFrame, pl.LazyFrame)) or is_pandas(frame) or is_arrow(frame) or is_dataset(frame)
    if not own and not (is_relation(frame) or is_spark(frame) or is_dask(frame) or is_engine(frame)):
        package = _foreign(frame)
        raise InvalidType(
            "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
            f"not {named(frame)}{f' of {package}' if package else ''}. {_made_of(frame, package)}"
        )
    if is_spark(frame) and frame.isStreaming:
        raise InvalidArgument(
            "frame must be a table with an end, not a streaming DataFrame of Spark. Write a part of it to files "
            "(writeStream), and read these (spark.read)."
        )
    if is_dask(frame) and not is_pandas(frame._meta):
        raise InvalidType(
            "frame must be a Dask DataFrame with partitions of pandas, not of another library. "
            'Convert them: frame.to_backend("pandas").'
        )
    return frame


def unwrapped(value: object) -> Any:
    """The frame or column that narwhals is wrapped around; any other value as it is."""
    narwhals = sys.modules.get("narwhals")
    if narwhals is None or not isinstance(value, (narwhals.DataFrame, narwhals.LazyFrame, narwhals.Series)):
        return value
    return value.to_native()


def _foreign(value: object) -> str | None:
    """The package whose frames are refused that made a value, by the classes that it is of."""
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in WAYS_OUT), None)


def _made_of(value: object, package: str | None) -> str:
    """The way to a frame from what is none."""
    if package is not None:
        return WAYS_OUT[package]
    if isinstance(value, (str, Path)):
        return "Read the file first: dpf.of(pl.scan_parquet(path))."
    if callable(getattr(value, "to_frame", None)):
        return "Take its frame, and name the column in the verb."
    if callable(getattr(value, "sql", None)):
        return "Ask it for a table: dpf.of(connection.sql(...))."
    for name in ("to_arrow", "to_pandas"):
        if callable(getattr(value, name, None)):
            return f"Convert it: dpf.of(frame.{name}())."
    return WAYS_OUT["unknown"]


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas.NA; a value that cannot be compared is there."""
    if value is None:
        return True
    try:
        equal = value == value
    except Exception:
        return False
    return type(equal).__name__ == "NAType" or equal is False or (isinstance(equal, np.bool_) and not equal)


def _meet_arrays() -> None:
    """Let Polars meet an array in one thread, while the others wait for this import.

    It imports NumPy then, and where two threads are first at once one of them fails: Polars keeps its own `_globals`,
    which NumPy's module of that name replaces meanwhile. A TypeError says that a thread of the caller was there first.
    """
    with suppress(TypeError):
        pl.Series(np.zeros(0))


_meet_arrays()
