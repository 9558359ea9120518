"""Conversion of single columns to and from frames; keys and masks of the rows of a result."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, named, shown, shown_names
from dpframe.frames import build, prints
from dpframe.frames.kinds import (
    check_threads,
    checked_frame,
    is_arrow,
    is_dataset,
    is_engine,
    is_frame,
    is_missing,
    is_pandas,
    library_of,
    planned,
    schema_of,
    unwrapped,
)
from dpframe.queries.sameness import same_key

UNNAMED = "category"  # the name of an unnamed column of reports
# Names that libraries give to columns without one: column_0, __UNNAMED__0 and literal in Polars, 0 and "Unnamed: 0" in
# pandas, f0 in Arrow, column0 and col0 in DuckDB, _c0, _1 and col1 in Spark
GENERATED = re.compile(r"\s*|literal|(column_?|col|_c?|f|Unnamed: |__UNNAMED__)?[0-9]+(_level_[0-9]+)?")


def column_frame(series: Any, argument: str = "series") -> tuple[Any, str]:
    """Return a frame of one column, and its name; a frame of one column is accepted as it is."""
    series = unwrapped(series)
    if isinstance(series, pl.Series):
        name = series.name or UNNAMED
        return series.rename(name).to_frame(), name
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(series, pandas.Series):
        name = series.name if isinstance(series.name, str) and series.name else UNNAMED
        return pandas.DataFrame({name: series.reset_index(drop=True)}), name
    if pyarrow is not None and isinstance(series, (pyarrow.Array, pyarrow.ChunkedArray)):
        return pyarrow.table({UNNAMED: series}), UNNAMED
    if is_frame(series):
        frame = checked_frame(series)
        names = _names(frame)
        if len(names) != 1:
            raise InvalidType(f"{argument} must be one column, not a frame of {len(names)}. Write df['name'].")
        if not isinstance(names[0], str):
            raise InvalidType(f"{argument} must have text as its name, not {shown(names[0], kind=True)}. Rename it.")
        return frame, names[0]
    raise InvalidType(f"{argument} must be a column of pandas, Polars or Arrow, not {named(series)}. Write df['name'].")


def own_name(series: Any) -> str:
    """Return the name of a column or of a frame of one column; "" if it has none."""
    series = unwrapped(series)
    name = column_frame(series)[1] if is_frame(series) else getattr(series, "name", None)
    return name if isinstance(name, str) else ""


def _names(frame: Any) -> list[Any]:
    """Return the column names of a frame."""
    if isinstance(frame, pl.LazyFrame):
        return schema_of(frame).names()
    if is_engine(frame):
        return list(frame.schema())
    return list(frame.schema.names if is_arrow(frame) or is_dataset(frame) else frame.columns)


def values_of(frame: Any, column: str) -> list[Any]:
    """Return the values of a public column."""
    if not is_pandas(frame):
        check_threads(frame)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.select(column).collect()
    if library_of(frame) == "polars" and not isinstance(frame, pl.DataFrame):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(frame).lazy().select(column).collect(backend="polars").to_native()
    return list(frame[column].to_list())


def typed_frame(column: str, values: Any, examples: Sequence[Any], library: str) -> Any:
    """Return a frame of one column with the dtype of the examples, for any values."""
    if not examples:
        return build.frame_of({column: values}, library)
    whole = build.frame_of({column: [*examples, *values]}, library)
    rest = whole[len(examples) :]
    return rest.reset_index(drop=True) if is_pandas(whole) else rest


def taken(frame: Any, column: str) -> Any:
    """Return one column of a built frame."""
    return frame[column]


def values_of_keys(keys: Any, by: Sequence[str]) -> list[list[Any]]:
    """Return the columns of a frame of declared key combinations, as plain values in the order of `by`."""
    names = names_of(keys, "keys")
    if set(names) != set(by):
        raise InvalidArgument(f"keys must be a frame of the columns {list(by)}, not of {shown(names)}.")
    if is_pandas(keys):
        return [[None if is_missing(value) else value for value in keys[name]] for name in by]
    native = _collected(keys)
    return [native[name].to_list() for name in by]


def names_of(frame: Any, argument: str) -> list[Any]:
    """Return the column names of a public frame; refuse two columns of one name."""
    import narwhals.stable.v2 as nw

    def columns() -> list[Any] | None:
        try:
            return list(frame.columns if is_pandas(frame) else nw.from_native(frame).collect_schema().names())
        except nw.exceptions.DuplicateError:  # replaced below by dpframe's own message
            return None

    names = planned(argument, columns)
    if names is None or len(set(names)) != len(names):
        raise InvalidArgument(
            f"{argument} must be a frame whose columns have different names. Drop the second of them."
        )
    return names


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a public frame, as plain values in the order of its columns."""
    if is_pandas(frame):
        return [tuple(None if is_missing(value) else value for value in row) for row in frame.itertuples(index=False)]
    return list(_collected(frame).rows())


def _collected(frame: Any) -> pl.DataFrame:
    """Return a public frame as a Polars DataFrame."""
    import narwhals.stable.v2 as nw

    check_threads(frame)
    collected: pl.DataFrame = nw.from_native(frame).lazy().collect(backend="polars").to_native()
    return collected


def height_of(frame: Any) -> int:
    """Return the number of rows of a public frame, without converting a row to Python values."""
    if is_pandas(frame) or isinstance(frame, pl.DataFrame):
        return len(frame)
    import narwhals.stable.v2 as nw

    check_threads(frame)
    counted = nw.from_native(frame).lazy().select(nw.len()).collect(backend="polars").to_native()
    return int(counted.item())


def distinct(frame: Any, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct labels of a column in order of appearance, and for each row the index of its label."""
    found = prints.labels_of(frame, name)
    if found is None:
        raise InvalidArgument(
            f"the column {shown(name)} must have keys of one type to be changed. Declare keys as text."
        )
    _, rows, ranks = np.unique(found.ranks, return_index=True, return_inverse=True)
    order = np.argsort(rows)
    return [value_at(frame, name, row) for row in rows[order].tolist()], np.argsort(order)[ranks].astype(np.int64)


def value_at(frame: Any, name: str, row: int) -> Any:
    """Return the label in one row."""
    return frame[name].iloc[row] if is_pandas(frame) else frame.get_column(name)[row]


def keys_in(given: Any, name: str) -> list[Any]:
    """Return the keys in a list, set or range; take any other value as one key, but refuse a column of values."""
    if isinstance(given, pl.Series) or getattr(given, "ndim", 0) > 0:
        raise InvalidType(
            f"mask_or_mapping must name keys of {shown(name)} in a list that you wrote down, not in "
            f"{shown(given, kind=True)}: values from data reveal people. Write {{{shown(name)}: [...]}}."
        )
    return list(given) if isinstance(given, (list, tuple, set, frozenset, range)) else [given]


def texts_of(keys: Sequence[Any]) -> Callable[[Any], str | None]:
    """Return a function that names keys of a column by their text, and a missing key by None.

    A value that equals a key has the text of that key, in any library, scale or time zone. Any other value has its own
    text, so that "1" names 1. Floats have 15 digits, or all digits if two keys agree in 15. A bin edge such as 0.1 +
    0.2 is then called 0.3, as people write it.
    """
    exact = len({*map(text_of, keys)}) < len(keys)
    present = [key for key in keys if not is_missing(key)]
    texts = {same_key(key): str(key) if isinstance(key, str) else text_of(key, exact) for key in present}

    def name_of(value: Any) -> str | None:
        if is_missing(value):
            return None
        try:
            return texts[same_key(value)]
        except Exception:  # the value is no key, or cannot be one
            return text_of(value, exact)

    return name_of


def text_of(value: Any, exact: bool = False) -> str:
    """Return a key as text: integers of any type as 1, dates without hours, floats in 15 digits or exactly."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        plain = float(value)
        if plain.is_integer() and abs(plain) < 2**53:
            return str(int(plain))
        return repr(plain) if exact else f"{plain:.15g}"
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return str(value).removesuffix(" 00:00:00")


def is_of_keys(keys: pl.DataFrame, given: pl.Expr, mask: NDArray[np.bool_]) -> bool:
    """Return whether an expression depends on keys alone: on the keys, taken twice, it gives the mask twice.

    An expression fails this test if it uses other columns (by any name), a Series, or the positions of rows.
    """
    try:
        twice = pl.concat([keys, keys]).select(given.alias("mask")).get_column("mask")
    except pl.exceptions.PolarsError:
        return False
    return np.array_equal(twice.fill_null(False).to_numpy(), np.tile(mask, 2))


def mask_of(frame: Any, given: Any) -> NDArray[np.bool_]:
    """Return a mask with one Boolean per row; missing values are False, as in both libraries."""
    rule = "mask_or_mapping must be a Boolean for each row, or a dict of columns and keys"
    if isinstance(given, pl.Expr):
        if is_pandas(frame):
            raise InvalidType(f"{rule}, and an expression of Polars needs a frame of Polars. Write frame['n'] > 10.")
        check_threads()
        try:
            given = frame.select(given.alias("mask")).get_column("mask")
        except pl.exceptions.DuplicateError:
            raise InvalidType(f"{rule}, and this expression gives several columns. Join them by & or |.") from None
        except pl.exceptions.ColumnNotFoundError:
            raise InvalidArgument(_no_column(frame, given)) from None
    if isinstance(given, pl.Series):
        values = given.fill_null(False).to_numpy() if given.dtype == pl.Boolean else None
    elif hasattr(given, "index") and hasattr(given, "fillna"):  # a pandas Series
        if not is_pandas(frame) or not given.index.equals(frame.index):
            raise InvalidArgument(f"{rule}, with the index of the frame, and it has another. Make it of this result.")
        kind = str(given.dtype)
        values = given.fillna(False).to_numpy(dtype=bool) if kind in ("bool", "boolean") else None
    else:
        values = _truths(given) if isinstance(given, (list, tuple, np.ndarray)) else None
    if values is None or values.ndim != 1:
        raise InvalidType(f"{rule}, not {shown(given, kind=True)}. Write result['n'] > 10, or {{'ward': ['A', 'B']}}.")
    if values.size != len(frame):
        raise InvalidArgument(f"{rule}: {len(frame)} of them, not {values.size}. Make it of this result.")
    return np.asarray(values, dtype=bool)


def _no_column(frame: pl.DataFrame, given: pl.Expr) -> str:
    """Return the message for an expression of columns that do not exist; a selector does not tell their names."""
    unknown = [name for name in given.meta.root_names() if name not in frame.columns]
    instead = f", not {shown(unknown[0])}" if unknown else ""
    return (
        f"mask_or_mapping must read columns of the result{instead}. Its columns are {shown_names(frame.columns)}: "
        "name one of them."
    )


def _truths(given: Any) -> NDArray[np.bool_] | None:
    """Return the Booleans of a list or array, missing values as False; None if it holds anything else."""
    try:
        made = np.asarray(given)
        if made.ndim == 1 and (made.dtype == object or (isinstance(given, (list, tuple)) and made.dtype != bool)):
            made = np.asarray([False if is_missing(value) else value for value in given])
    except ValueError:  # nested lists of different lengths
        return None
    return made if made.dtype == bool else None


def square(frame: Any, left: str, right: str, value: str, diagonal: float) -> Any:
    """Build the symmetric table of a value by two names, in order; `diagonal` fills what the frame lacks there."""
    (first_names, rows), (other_names, across) = distinct(frame, left), distinct(frame, right)
    names = list(dict.fromkeys([*map(text_of, first_names), *map(text_of, other_names)]))
    down = np.array([names.index(text_of(name)) for name in first_names], dtype=np.int64)[rows]
    beside = np.array([names.index(text_of(name)) for name in other_names], dtype=np.int64)[across]
    made = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(made, diagonal)
    numbers = build.numbers(frame, value)
    made[down, beside] = made[beside, down] = numbers
    if is_pandas(frame):
        import pandas

        return pandas.DataFrame(made, index=pandas.Index(names, name="column"), columns=names)
    return build.frame_of({"column": names, **dict(zip(names, made.T, strict=True))}, "polars")
