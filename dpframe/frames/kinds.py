"""The library of a frame, told without importing any that is not there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.errors import InvalidType, named

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


def is_engine(value: object) -> bool:
    """Tell whether a value is an engine from outside: an object that has its methods."""
    if isinstance(value, (type, pl.DataFrame, pl.LazyFrame)) or is_relation(value):
        return False
    return all(callable(getattr(value, name, None)) for name in ("schema", "fold"))


def library_of(frame: Any) -> Library:
    """The library of the results from this frame: pandas for pandas, Polars for any other."""
    return "pandas" if is_pandas(frame) else "polars"


def checked_frame(value: object) -> Any:
    """Refuse what is no frame."""
    if not is_frame(value):
        raise InvalidType(
            f"frame must be a pandas DataFrame, a Polars DataFrame or LazyFrame, or a frame that narwhals reads, "
            f"not {named(value)}."
        )
    return value


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas.NA; a value that cannot be compared is there."""
    if value is None:
        return True
    try:
        equal = value == value
    except Exception:
        return False
    return type(equal).__name__ == "NAType" or equal is False or (isinstance(equal, np.bool_) and not equal)
