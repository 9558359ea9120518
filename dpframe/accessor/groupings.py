"""The columns of a group-by as a caller writes them, and the axes that they make."""

from __future__ import annotations

from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.frames.columns import height_of, key_rows, names_of
from dpframe.frames.kinds import is_frame
from dpframe.queries import limits
from dpframe.queries.discovery import Discovery, found_axes
from dpframe.queries.group_axes import Bins, group_axes, named, size_of
from dpframe.queries.keys import check_once, key_columns
from dpframe.queries.limits import check_column


def flat_columns(by: tuple[Any, ...], *, binned: bool = False) -> tuple[Any, ...]:
    """The columns to group by, given one by one or as one list; `binned` where bins may stand among them."""
    flat: tuple[Any, ...] = tuple(by[0]) if len(by) == 1 and isinstance(by[0], (list, tuple)) else by
    for column in flat:
        if not (binned and isinstance(column, Bins)):
            check_column(column)
    check_once(named(flat))
    return flat


def declared_axes(by: tuple[Any, ...], keys: Any) -> tuple[Any, ...]:
    """The axes of declared keys and bins, of which many are made later; or of keys that are to be found."""
    within = keys.values() if isinstance(keys, dict) else [keys] if any(isinstance(item, Bins) for item in by) else []
    if any(isinstance(values, Discovery) for values in within):
        raise InvalidArgument(
            "keys=dpf.discover(...) must stand alone, without bins or declared values of another column: it finds the "
            "combinations of all columns. Write group_by(*columns, keys=dpf.discover(...))."
        )
    if isinstance(keys, Discovery):
        return found_axes(key_columns(by), keys)
    framed = is_frame(keys)
    if framed:
        names_of(keys, "keys")
    size = size_of(by, height_of(keys) if framed else limits.of_keys(keys))
    return limits.axes_or_later(size, lambda: group_axes(by, keys, key_rows(keys, named(by)) if framed else None))
