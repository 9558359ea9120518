"""Masks that choose rows of a result: a truth for each row, as a column, a list, an array or an expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.frames.kinds import check_threads, is_pandas


def is_of_keys(keys: pl.DataFrame, given: pl.Expr, mask: NDArray[np.bool_]) -> bool:
    """Tell whether an expression says the same of keys alone, and of each of them twice.

    Not so one of other columns, however they are named, of a series that stands in it, or of the places of rows.
    """
    try:
        twice = pl.concat([keys, keys]).select(given.alias("mask")).get_column("mask")
    except pl.exceptions.PolarsError:
        return False
    return np.array_equal(twice.fill_null(False).to_numpy(), np.tile(mask, 2))


def mask_of(frame: Any, given: Any) -> NDArray[np.bool_]:
    """A mask with a truth for each row; what is missing is false, as in both libraries."""
    rule = "mask_or_mapping must be a Boolean for each row, or a dict of columns and keys"
    if isinstance(given, pl.Expr):
        if is_pandas(frame):
            raise InvalidType(f"{rule}, and an expression of Polars needs a frame of Polars. Write frame['n'] > 10.")
        check_threads()
        try:
            given = frame.select(given.alias("mask")).get_column("mask")
        except pl.exceptions.DuplicateError:
            raise InvalidType(f"{rule}, and this expression gives several columns. Join them by & or |.") from None
    if isinstance(given, pl.Series):
        values = given.fill_null(False).to_numpy() if given.dtype == pl.Boolean else None
    elif hasattr(given, "index") and hasattr(given, "fillna"):  # of pandas
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


def _truths(given: Any) -> NDArray[np.bool_] | None:
    """The truths of a list or an array, of which None is false; None where it holds anything else."""
    try:
        made = np.asarray(given)
        truths = np.asarray(made[np.not_equal(made, np.array(None))].tolist()) if made.dtype == object else made
    except (ValueError, TypeError):  # lists of several lengths, or values that cannot be compared
        return None
    return made.astype(bool) if truths.dtype == bool else None
