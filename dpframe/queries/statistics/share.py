"""The part of a group's rows that is in each bin, read off the noisy counts of the bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import MissingArgument
from dpframe.queries.quotients import nearest_shares, quotient_half_widths
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size
from dpframe.queries.total import Measured, Noise, RowsTotal, Total

NOISY = "_noisy"


@dataclass(frozen=True)
class Share(Statistic):
    """The share of a group's binned rows that each bin has. Asked by ``df.dp.histogram(..., normalize=True)``.

    It measures what a histogram measures, the counts of the bins, and divides noisy numbers: nothing more is charged.

    Examples
    --------
    >>> Share("age", 4).default_name
    'share'
    """

    verb: ClassVar[str] = "share"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = (NOISY,)

    column: str  # those that are binned, in words
    size: int  # how many cells, one after the other, are the bins of one group

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "share"

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (RowsTotal(),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The nearest shares that are at least 0 and add up to 1 in each group, and the half-widths of intervals."""
        (sums,) = measured.values()
        shares = self._read(sums.values)[1]
        counts = sums.values.reshape(-1, self.size)
        half = self._half_widths(shares, counts, sums.noise, CONFIDENCE)
        return shares.ravel(), half.ravel()

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """The quotients of noisy counts as they are."""
        (sums,) = measured.values()
        return {NOISY: self._read(sums.values)[0].ravel()}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The error to expect for a group of `size` rows that are spread evenly over the bins."""
        counts = np.full((1, self.size), size / self.size)
        return float(self._half_widths(counts / size, counts, noises[0], confidence).max())

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Its error depends on how many rows a group has."""
        check_size(size, f"shares ({name})", of="rows", whose="their")

    def _read(self, values: Floats) -> tuple[Floats, Floats]:
        counts = values.reshape(-1, self.size)
        whole = counts.sum(axis=1, keepdims=True)
        some = whole >= 1.0
        noisy = np.where(some, counts / np.where(some, whole, 1.0), 1.0 / self.size)
        return noisy, nearest_shares(noisy)

    def _half_widths(self, shares: Floats, counts: Floats, noise: Noise, confidence: float) -> Floats:
        """To the farther end of Fieller's set of quotients of a bin and the sum of all, whose noises are added up.

        Sums of draws have no heavier tails than one, whose interval is taken. Where the noisy sum is below 1 nothing
        is known.
        """
        squared = noise.interval(confidence) ** 2
        whole = counts.sum(axis=1, keepdims=True)
        farther = np.maximum(shares, 1.0 - shares)
        squares = squared, squared, squared * self.size
        half = quotient_half_widths(shares, counts, whole, squares, farther, (0.0, 1.0))
        return np.where(whole >= 1.0, half, farther)


def of_axes(column: Any, axes: Sequence[Any]) -> Share:
    """The shares of the cells of declared bins or categories of a column, or of several."""
    if any(axis.coding == "dtype" for axis in axes):
        raise MissingArgument(
            "bins or categories must be given with normalize=True, also of a column whose dtype declares its own. "
            'Write for instance bins=[0, 18, 65, 120] or categories=["A", "B"].'
        )
    named = ", ".join(map(str, column)) if isinstance(column, (list, tuple)) else str(column)
    return Share(named, math.prod(axis.size for axis in axes))
