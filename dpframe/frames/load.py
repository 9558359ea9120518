"""Public frames read as plain values: declared keys and the edges of graphs. No private frame comes here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.errors import InvalidArgument, shown
from dpframe.frames.forked import check_threads
from dpframe.frames.kinds import is_missing, is_pandas


def key_rows(keys: Any, by: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a frame of declared key combinations, as plain values in the order of `by`."""
    names = names_of(keys, "keys")
    if set(names) != set(by):
        raise InvalidArgument(f"keys must be a frame of the columns {list(by)}, not of {shown(names)}.")
    return rows_of(keys, by)


def names_of(frame: Any, argument: str) -> list[Any]:
    """The names of the columns of a public frame; refused where two columns have one name."""
    import narwhals.stable.v2 as nw

    try:
        names = list(frame.columns if is_pandas(frame) else nw.from_native(frame).collect_schema().names())
    except nw.exceptions.DuplicateError:  # its message is the library's
        names = None
    if names is None or len(set(names)) != len(names):
        raise InvalidArgument(
            f"{argument} must be a frame whose columns have different names. Drop the second of them."
        )
    return names


def rows_of(frame: Any, columns: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a public frame, as plain values in the order of its columns, or of `columns`."""
    if is_pandas(frame):
        chosen = frame if columns is None else frame[list(columns)]
        return [tuple(None if is_missing(value) else value for value in row) for row in chosen.itertuples(index=False)]
    import narwhals.stable.v2 as nw

    check_threads(frame)
    native = nw.from_native(frame).lazy().collect(backend="polars").to_native()
    return list((native if columns is None else native[list(columns)]).rows())


def height_of(frame: Any) -> int:
    """The number of rows of a public frame; none of them is made into values."""
    if is_pandas(frame) or isinstance(frame, pl.DataFrame):
        return len(frame)
    import narwhals.stable.v2 as nw

    check_threads(frame)
    counted = nw.from_native(frame).lazy().select(nw.len()).collect(backend="polars").to_native()
    return int(counted.item())
