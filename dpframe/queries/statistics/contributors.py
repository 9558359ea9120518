"""The number of units with so many rows in so many groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpframe.queries.statistics.count import Count
from dpframe.queries.total import Total


@dataclass(frozen=True)
class Contributors(Count):
    """The number of units in each cell of the grid. Asked by ``df.dp.contributions``."""

    adds_up: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (Total(None, units=True),)

    def __str__(self) -> str:
        return "contributions()"
