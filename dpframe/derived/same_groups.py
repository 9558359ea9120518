"""Checks that rows of one label are one group: a step of time, the rest of keys, a bin at the end, a total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.traced import TOTAL, Source
from dpframe.errors import InvalidArgument, shown
from dpframe.frames import foreign
from dpframe.queries.date_grid import MONDAY

Facts = Mapping[str, Any]
Mask = NDArray[np.bool_]
Pair = tuple[Source, Source]
Places = Mapping[str, NDArray[np.int64]]

STEPS: Facts = {"every": "1d", "starts": MONDAY, "zone": None}  # of an axis that does not say: a plain date is a day


def check_same_groups(sources: Sequence[Source], labels: Sequence[str], places: Places) -> None:
    """Refuse rows that have one label in several results and are different groups there."""
    first, *others = sources
    for other in others:
        for label in labels if other.identity != first.identity else ():
            _check_steps(label, (first, other))
            _check_rest(label, (first, other), places)
            _check_totals(label, (first, other), places)


def _check_steps(label: str, both: Pair) -> None:
    """Refuse a month and its first day."""
    axes = [_axis_of(source, label) for source in both]
    for fact, usual in STEPS.items():
        if axes[0].get(fact, usual) != axes[1].get(fact, usual):
            said = [f"{fact}={axis[fact]!r}" if fact in axis else f"no {fact}" for axis in axes]
            raise InvalidArgument(
                f"results must have the same groups, and {label} has {said[0]} in {both[0].name}, {said[1]} in "
                f"{both[1].name}. Release both by the same keys."
            )


def _check_rest(label: str, both: Pair, places: Places) -> None:
    """Refuse a group that also holds all other values where these are not the same in both results."""
    masks = [_rest_of(source, label)[places[source.name]] for source in both]
    either, rest = masks[0] | masks[1], any("rest" in _axis_of(source, label) for source in both)
    alike = np.array_equal(masks[0], masks[1]) and (not rest or _have_same_keys(label, both))
    if either.any() and not alike:
        raise _different(f"{label} has a group of all other values, which are", label, both[0], places, either)


def _check_totals(label: str, both: Pair, places: Places) -> None:
    """Refuse totals of different keys; with the rest of them they are of all rows."""
    if "levels" not in both[0].facts:
        return
    totals: Mask = np.array([token == (TOTAL,) for token in both[0].tokens([label])])[places[both[0].name]]
    rests = ["rest" in _axis_of(source, label) for source in both]
    if totals.any() and not all(rests) and (any(rests) or not _have_same_keys(label, both)):
        raise _different(f"the totals of {label} are of keys that are", label, both[0], places, totals)


def _different(what: str, label: str, one: Source, places: Places, apart: Mask) -> InvalidArgument:
    values = one.frame[label].to_list()
    kept = list(dict.fromkeys(values[row] for row in places[one.name][~apart].tolist()))
    way = f"Leave them out: result.dp.filter({{{label!r}: {shown(kept)}}})" if kept else "Release both by the same keys"
    return InvalidArgument(
        f"results must have the same groups, and {what} not known to be the same in all results. {way}."
    )


def _rest_of(source: Source, label: str) -> Mask:
    """The rows that also hold what has no place of its own: the rest of keys, or a bin at an end."""
    axis = _axis_of(source, label)
    if "rest" not in axis and axis.get("outside") != "clip":
        return np.zeros(source.rows, dtype=bool)
    codes, last = source.keys[_released(axis)[0]], _size(source, axis) - 1
    wider: Mask = (codes == last) | ((codes == 0) & ("rest" not in axis))
    return wider


def _have_same_keys(label: str, both: Pair) -> bool:
    """Tell whether two results have the same declared keys; those that are not shown are not known."""
    one, other = (_declared(source, label) for source in both)
    return one is not None and one == other


def _declared(source: Source, label: str) -> set[Any] | None:
    """The declared keys, without the rest; None where some are not shown."""
    axis = _axis_of(source, label)
    codes, size = source.keys[_released(axis)[0]], _size(source, axis) - ("rest" in axis)
    rows = np.flatnonzero((codes >= 0) & (codes < size))
    tokens = source.tokens(foreign.labels_of({"cells": [axis]}))
    return {tokens[row] for row in rows.tolist()} if np.unique(codes[rows]).size == size else None


def _axis_of(source: Source, label: str) -> Facts:
    """The axis that a column of labels is of."""
    axes = source.facts["cells"]
    return next((axis for axis in axes if label in foreign.labels_of({"cells": [axis]})), {})


def _released(axis: Facts) -> list[str]:
    """The columns of an axis as they were released."""
    columns: list[str] = axis.get("released", axis["columns"])
    return columns


def _size(source: Source, axis: Facts) -> int:
    """The number of places of an axis as it was released."""
    return next(int(one["size"]) for one in source.whole.facts["cells"] if one["columns"] == _released(axis))
