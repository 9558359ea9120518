"""The share of a column's values that are true, or are one declared value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import InvalidArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.keys import KeyAxis, plain_key
from dpframe.queries.limits import check_column
from dpframe.queries.moments import two_sided_mean
from dpframe.queries.quotients import sum_interval
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size, value_facts
from dpframe.queries.statistics.weighted import WeightedProportion, checked_weight
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import Matches, two_sided
from dpframe.queries.where import plain_name, under_conditions

BOUNDS = (0.0, 1.0)


@dataclass(frozen=True, repr=False)
class Proportion(Statistic):
    """The share of a column's values that are true. Made by `dpframe.proportion`.

    Or the share that is one declared value. It counts both the values that match and those that do not, with one noise
    for the two: a row adds to one of them, so the whole cost is for both.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.proportion("smoker"))
    proportion(smoker)
    """

    verb: ClassVar[str] = "proportion"
    tells_totals: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    column: str
    value: Any = None

    def __post_init__(self) -> None:
        check_column(self.column)
        if self.value is not None:
            object.__setattr__(self, "value", _plain_value(self.value))

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        if self.value is None:
            return (VectorTotal(two_sided(self.column, BOUNDS)),)
        return (VectorTotal(Matches(KeyAxis((self.column,), ((self.value,),), "value"))),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the share, from 0 to 1, and its error by Fieller's theorem, from noisy numbers."""
        (sums,) = measured.values()
        above, below = sums.values.reshape(-1, 2).T
        reading = two_sided_mean(above, below, BOUNDS, sum_interval(sums.noise, CONFIDENCE))
        return reading.values, reading.half_widths

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for a group of `size` values of which half are true."""
        half = np.array([size / 2.0])
        return float(two_sided_mean(half, half, BOUNDS, sum_interval(noises[0], confidence)).half_widths[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"a proportion ({name})")

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return (super().facts() or {}) | value_facts(self.value)

    def __str__(self) -> str:
        name, is_value = plain_name(self.column), "" if self.value is None else f" = {shown(self.value)}"
        return f"{self.verb}({name}{is_value}{self.column.removeprefix(name)})"


def _plain_value(value: Any) -> Any:
    """Return a value that can be compared; refuse one that equals nothing."""
    try:
        unlike = bool(value != value)
    except Exception:  # a Series or another class, which is refused below
        unlike = False
    if unlike:
        raise InvalidArgument(
            f"value must be one that a column can hold, not {shown(value)}: missing values are left out."
        )
    return plain_key(value, "value")


@trimmed
def proportion(
    column: str,
    value: Any = None,
    *,
    where: Mapping[str, Any] | None = None,
    weight: str | None = None,
    weight_bounds: tuple[float, float] | None = None,
) -> Proportion | WeightedProportion:
    """Release the share of values that are true, or one declared value, in `agg`.

    Parameters
    ----------
    column : str
        A Boolean column, or a column of numbers, each clipped to [0, 1]. With `value`, a column of any dtype that
        ``group_by`` takes. Nulls and NaN are left out.
    value : str, number, bool, date, datetime, timedelta or time, optional
        Release the share of this value, which is compared like a declared key. Choose it from what you know, never from
        the data.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.
    weight, weight_bounds : str and tuple of two numbers, optional
        A column of weights, as in surveys, and their bounds, at least 0: shares are of the sum of weights. Weights are
        clipped to the bounds, and rows without a weight are left out.

    Returns
    -------
    Proportion or WeightedProportion
        A statistic for ``.dp.group_by(...).agg(...)``. If the noisy number of values is below 1, the share is 1/2.

    Raises
    ------
    InvalidArgument, InvalidType
        If `column` is not a string, or `value` cannot be a key.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.proportion("smoker"), dpf.proportion("drug", value="A"))
    proportion(smoker) proportion(drug = 'A')
    """
    plain = Proportion(under_conditions(column, where), value)
    if weight is None and weight_bounds is None:
        return plain
    return WeightedProportion(plain.column, BOUNDS, *checked_weight(weight, weight_bounds, where), plain.value)
