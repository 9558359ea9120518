"""The part of a column's values that are true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpframe.errors import MissingArgument
from dpframe.queries.clipping import check_column
from dpframe.queries.moments import two_sided_mean
from dpframe.queries.row_functions import two_sided
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic
from dpframe.queries.total import Floats, Measured, Noise, Total

BOUNDS = (0.0, 1.0)


@dataclass(frozen=True)
class Proportion(Statistic):
    """The share of a column's values that are true, or 1. Made by `dpframe.proportion`.

    Both the values that are true and those that are not are counted, with one noise for the two: a row adds to one of
    them, so the whole price is for both.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.proportion("smoker").default_name
    'smoker_proportion'
    """

    verb: ClassVar[str] = "proportion"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    column: str

    def __post_init__(self) -> None:
        check_column(self.column)

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (Total(vector=two_sided(self.column, BOUNDS)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The share and its error by Fieller's theorem, from the noisy numbers alone; at least 0 and at most 1."""
        (found,) = measured.values()
        above, below = found.values.reshape(-1, 2).T
        reading = two_sided_mean(above, below, BOUNDS, found.noise.interval(CONFIDENCE))
        return reading.values, reading.half_widths

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The error to expect for a group of `size` values of which half are true."""
        half = np.array([size / 2.0])
        return float(two_sided_mean(half, half, BOUNDS, noises[0].interval(confidence)).half_widths[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Its error depends on how many values a group has."""
        if size is None:
            raise MissingArgument(
                f"size must be given with within= for a proportion ({name}): its error depends on how many values a "
                "group has. Write for instance size=1_000, from what you know, never from the data."
            )


def proportion(column: str) -> Proportion:
    """Ask for the share of a column's values that are true.

    Parameters
    ----------
    column : str
        A Boolean column, or one of numbers, each clipped to [0, 1]. Nulls and NaN are left out.

    Returns
    -------
    Proportion
        A statistic for ``.dp.group_by(...).agg(...)``. Where the noisy number of values is below 1 it is 1/2.

    Raises
    ------
    InvalidType
        If `column` is not a string.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.proportion("smoker"))
    proportion(smoker)
    """
    return Proportion(column)
