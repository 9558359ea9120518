"""Intervals of pandas as bins: taken where they mean exactly what bins mean, and refused in words where not.

pandas is never imported here: an interval is what has `left`, `right` and `closed`.
"""

from __future__ import annotations

from collections.abc import Sized
from itertools import pairwise
from typing import Any

from dpframe.errors import InvalidArgument

PARTS = ("left", "right", "closed")
WAY_OUT = 'Write their edges, as in bins=[0, 18, 65], or pd.IntervalIndex.from_breaks([0, 18, 65], closed="left").'


def are_intervals(values: Any) -> bool:
    """Tell whether these are an interval, an index of them, or a list of some."""
    some = values[:1] if isinstance(values, (list, tuple)) else [values]
    return bool(some) and not isinstance(some[0], type) and all(hasattr(some[0], name) for name in PARTS)


def edges_of(intervals: Any) -> list[Any]:
    """The edges of intervals that are closed on the left, and of which each begins where the one before it ends."""
    if not isinstance(intervals, Sized) or not len(intervals):
        raise InvalidArgument(f"bins must be several intervals, or edges, not one or none. {WAY_OUT}")
    each = list(intervals)  # type: ignore[call-overload]
    if not all(are_intervals(interval) for interval in each):
        raise InvalidArgument(f"bins must be intervals alone, or edges alone. {WAY_OUT}")
    if any(interval.closed != "left" for interval in each):
        raise InvalidArgument(
            "bins must be intervals that are closed on the left alone, since a value on an edge is in the bin that "
            f"begins there. {WAY_OUT}"
        )
    if any(interval.right != following.left for interval, following in pairwise(each)):
        raise InvalidArgument(f"bins must be intervals of which each begins where the last one ends. {WAY_OUT}")
    return [each[0].left, *(interval.right for interval in each)]
