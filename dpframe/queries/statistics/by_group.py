"""Statistics whose values are clipped to bounds of their own group: ``bounds={"A": (0, 10), ...}``.

Each group has its own scale. A value becomes its place between its group's bounds, or a fraction of the larger one.
The Totals are measured on these numbers, which all have the same bounds. Their sensitivity is that of any sum or mean
with these bounds, whatever rows a unit has in each group. Public factors convert the noisy numbers of each group back
to its own units afterwards, so its noise is in proportion to its own bounds (``docs/assurance/privacy.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpframe.errors import InvalidArgument, shown
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.limits import check_column, checked_bounds
from dpframe.queries.moments import two_sided_mean
from dpframe.queries.quotients import sum_interval
from dpframe.queries.row_functions import Bounds, Floats
from dpframe.queries.sameness import same_key
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size
from dpframe.queries.total import Measured, Noise, SumTotal, Total, VectorTotal
from dpframe.queries.vectors import two_sided
from dpframe.queries.where import GroupBounds, by_group, under_conditions

PLACES = (0.0, 1.0)  # between the bounds of any group
EXAMPLE = 'Write for instance group_by("ward", keys=["A", "B"]) and bounds={"A": (0, 10), "B": (0, 100)}.'


@dataclass(frozen=True, repr=False)
class ByGroup(Statistic):
    """The shared parts: a column, and the bounds of its values for each key.

    The bounds are in the order of the declared keys.
    """

    denoisable: ClassVar[bool] = False  # denoisers assume the same noise in all groups
    adds_up: ClassVar[bool] = False

    column: str
    bounds_of: tuple[tuple[Any, Bounds], ...]
    axis: KeyAxis | None = field(default=None, repr=False)  # the keys of the call, once they are known

    def __post_init__(self) -> None:
        check_column(self.column)
        if not self.bounds_of:
            raise InvalidArgument(f"bounds must name every declared key. {EXAMPLE}")
        object.__setattr__(self, "bounds_of", tuple((key, checked_bounds(pair)) for key, pair in self.bounds_of))

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        said = super().written()
        return {"column": said.pop("column"), "bounds": dict(said.pop("bounds_of")), **said}

    def of_keys(self, keys: Keys) -> Self:
        """Return the same with the keys of a call: one column of declared keys with bounds."""
        axis = keys.axes[0] if len(keys.axes) == 1 and len(keys.axes[0].columns) == 1 else None
        if axis is not None and axis.coding in ("bins", "rest"):
            raise InvalidArgument(
                f"bounds by group must be of keys that are written as values, not of {axis}. Write keys as values "
                "(without dpf.dates or dpf.REST), or bounds=(lower, upper) for all groups."
            )
        if not isinstance(axis, KeyAxis) or axis.coding != "keys":
            raise InvalidArgument(f"bounds by group must follow group_by of one column of declared keys. {EXAMPLE}")
        given = {same_key(key): pair for key, pair in self.bounds_of}
        if len(given) < len(self.bounds_of):
            raise InvalidArgument("bounds must name each key once, and two of them are the same value. Drop one.")
        values = axis.values(0)
        tokens = list(map(same_key, values))
        without = [value for value, token in zip(values, tokens, strict=True) if token not in given]
        if without:
            raise InvalidArgument(f"bounds must name every declared key, and {shown(without[0])} has none. Add it.")
        declared = set(tokens)
        others = [key for key, _ in self.bounds_of if same_key(key) not in declared]
        if others:
            raise InvalidArgument(f"bounds must name declared keys alone, and {shown(others[0])} is none. Drop it.")
        ordered = tuple((value, given[token]) for value, token in zip(values, tokens, strict=True))
        return replace(self, axis=axis, bounds_of=ordered)

    @property
    def ends(self) -> Floats:
        """The lower and the upper bound of each group."""
        return np.array([pair for _, pair in self.bounds_of], dtype=np.float64)

    @property
    def lengths(self) -> Floats:
        """The distance between the bounds of each group."""
        return np.asarray(self.ends[:, 1] - self.ends[:, 0])

    def scaled(self, places: bool, candidates: tuple[tuple[float, ...], ...] = ()) -> str:
        """Return the column on the scale of each group.

        A value becomes its place between the bounds or among the candidates, or its part of the larger bound.
        """
        if self.axis is None:
            raise InvalidArgument(f"bounds by group must follow group_by of one column of declared keys. {EXAMPLE}")
        pairs = tuple(pair for _, pair in self.bounds_of)
        return by_group(self.column, GroupBounds(self.axis, pairs, places, candidates))

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states: the bounds, in the order of the rows."""
        return {
            "verb": self.verb,
            "column": self.column,
            "bounds_of_groups": [list(pair) for _, pair in self.bounds_of],
        }

    def __str__(self) -> str:
        return f"{self.verb}({self.column}) in the bounds of each group"


@dataclass(frozen=True, repr=False)
class SumByGroup(ByGroup):
    """The sums of clipped values, where each group has its own bounds.

    Made by `dpframe.sum` with a dict of bounds.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", bounds={"A": (0, 10), "B": (0, 100)}))
    sum(cost) in the bounds of each group
    """

    verb: ClassVar[str] = "sum"

    @property
    def largest(self) -> Floats:
        """The larger bound of each group: the unit of its sum."""
        return np.asarray(np.abs(self.ends).max(axis=1))

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures.

        They are parts of the larger bound, between the least and the greatest part of any group.
        """
        parts = self.ends / self.largest[:, None]
        bounds = min(float(parts.min()), 0.0), max(float(parts.max()), 0.0)
        return (SumTotal(self.scaled(places=False), bounds),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the noisy sums in the column's units, and the half-widths of their intervals."""
        only = measured[self.totals()[0]]
        return only.values * self.largest, only.noise.interval(CONFIDENCE) * self.largest

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width to expect, in the group with the largest bounds."""
        return float(noises[0].interval(confidence) * self.largest.max())


@dataclass(frozen=True, repr=False)
class MeanByGroup(ByGroup):
    """The means of clipped values, where each group has its own bounds.

    Made by `dpframe.mean` with a dict of bounds.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.mean("cost", bounds={"A": (0, 10), "B": (0, 100)}))
    mean(cost) in the bounds of each group
    """

    verb: ClassVar[str] = "mean"
    sized: ClassVar[bool] = True

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures: the distances of each place from 0 and from 1.

        They are one vector for any noise.
        """
        return (VectorTotal(two_sided(self.scaled(places=True), PLACES)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the means in the column's units, and the half-widths of their intervals."""
        sums = measured[self.totals()[0]]
        above, below = sums.values.reshape(-1, 2).T
        reading = two_sided_mean(above, below, PLACES, sum_interval(sums.noise, CONFIDENCE))
        means = np.clip(self.ends[:, 0] + reading.values * self.lengths, *self.ends.T)
        return means, reading.half_widths * self.lengths

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values around the middle of the widest bounds."""
        half = np.array([size / 2.0])
        reading = two_sided_mean(half, half, PLACES, sum_interval(noises[0], confidence))
        return float(reading.half_widths[0] * self.lengths.max())

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without `size`, or of half the widest range or more."""
        check_size(size, f"a mean ({name})")
        half = float(self.lengths.max()) / 2
        if target >= half:
            raise InvalidArgument(
                f"within must be below half the range of the widest bounds, here {half:g}, not {target:g}. "
                f"Write a smaller error for {name}."
            )


def checked_groups(
    column: Any, bounds: Mapping[Any, Any], where: Mapping[str, Any] | None, **others: Any
) -> tuple[str, tuple[tuple[Any, Any], ...]]:
    """Return the column, and the bounds by key of a dict; refuse other arguments."""
    for name, value in others.items():
        if value is not None:
            raise InvalidArgument(f"{name} must be left out with bounds by group. Write bounds=(lower, upper) with it.")
    return under_conditions(column, where), tuple(bounds.items())
