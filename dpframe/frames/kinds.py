"""The library of a frame, told without importing any that is not there."""

from __future__ import annotations

import importlib.util
import sys
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


def is_frame(value: object) -> bool:
    """Tell whether a value is a frame of any library that dpframe reads."""
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or is_pandas(value) or is_dataset(value) or is_engine(value):
        return True
    if is_spark(value) or is_dask(value):
        return True
    if isinstance(value, (list, tuple, range, dict, str, int, float, type(None))):
        return False  # as most keys are: narwhals takes a good part of the start of a process, and is not needed
    import narwhals.stable.v2 as nw

    native = nw.from_native(value, pass_through=True)
    return isinstance(native, (nw.DataFrame, nw.LazyFrame))


def is_pandas(value: object) -> bool:
    """Tell whether a value is a pandas DataFrame; pandas is not imported to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and hasattr(pandas, "DataFrame") and isinstance(value, pandas.DataFrame)


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
    if is_dask(value):
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
    """Refuse what is no frame, and what has no end."""
    if not is_frame(value):
        raise InvalidType(
            f"frame must be a pandas DataFrame, a Polars DataFrame or LazyFrame, or a frame that narwhals reads, "
            f"not {named(value)}. {_made_of(value)}"
        )
    if is_spark(value) and value.isStreaming:  # type: ignore[attr-defined]
        raise InvalidArgument(
            "frame must be a table with an end, not a streaming DataFrame of Spark. Write a part of it to files "
            "(writeStream), and read these (spark.read)."
        )
    if is_dask(value) and not is_pandas(value._meta):  # type: ignore[attr-defined]
        raise InvalidType(
            "frame must be a Dask DataFrame with partitions of pandas, not of another library. "
            'Convert them: frame.to_backend("pandas").'
        )
    return value


def _made_of(value: object) -> str:
    """The way to a frame from what is none."""
    if isinstance(value, (str, Path)):
        return "Read the file first: dpf.of(pl.scan_parquet(path))."
    if callable(getattr(value, "to_frame", None)):
        return "Take its frame, and name the column in the verb."
    if callable(getattr(value, "sql", None)):
        return "Ask it for a table: dpf.of(connection.sql(...))."
    return "Make one: pl.DataFrame(...)."


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas.NA; a value that cannot be compared is there."""
    if value is None:
        return True
    try:
        equal = value == value
    except Exception:
        return False
    return type(equal).__name__ == "NAType" or equal is False or (isinstance(equal, np.bool_) and not equal)
