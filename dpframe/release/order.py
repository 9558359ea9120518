"""The axes of the cells whose order means something: bins by themselves, keys where the caller says so."""

from __future__ import annotations

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.queries.bins import BinAxis
from dpframe.queries.keys import Keys

EXAMPLE = 'Write order=True for keys of one column, or name the column, as in order="month".'


def ordered_axes(keys: Keys, order: object) -> tuple[int, ...]:
    """The places of these axes; typed errors for an `order` that the cells cannot have."""
    bins = tuple(index for index, axis in enumerate(keys.axes) if isinstance(axis, BinAxis))
    if order is None or order is False:
        return bins if order is None else ()
    if order is not True and not isinstance(order, str):
        raise InvalidType(f"order must be True, False or the name of a column, not {shown(order)}. {EXAMPLE}")
    named = {axis.columns[0]: index for index, axis in enumerate(keys.axes) if len(axis.columns) == 1}
    if isinstance(order, str):
        if order not in named:
            among = f"one of {list(named)}" if named else "a column with keys of its own, not of combinations"
            raise InvalidArgument(f"order must name {among}, not {shown(order)}. {EXAMPLE}")
        return tuple(sorted({*bins, named[order]}))
    unsaid = [index for index in named.values() if index not in bins]
    if len(keys.axes) == len(bins):
        if not bins:
            raise InvalidArgument("order must be left out of a single number, which has no neighbors. Drop it.")
        return bins
    if len(unsaid) != 1 or len(keys.axes) != len(bins) + 1:
        raise InvalidArgument(
            f"order must name the column that is in order, among {list(keys.columns)}, not be True. {EXAMPLE}"
        )
    return tuple(sorted({*bins, *unsaid}))
