"""The most common of declared values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpframe.queries.statistics.statistic import Choosing, Statistic
from dpframe.queries.total import RowsTotal, Total


@dataclass(frozen=True)
class Mode(Statistic, Choosing):
    """The declared value with the largest count, chosen privately. Asked by ``df.dp.mode``.

    Examples
    --------
    >>> Mode().error_words("3")
    'at most 3 below the largest'
    """

    verb: ClassVar[str] = "mode"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it: the count of each value, of which none is released."""
        return (RowsTotal(),)

    def error_words(self, error: str) -> str:
        """An error in a plan: how far the count of the chosen value may be below the largest."""
        return f"at most {error} below the largest"

    def facts(self) -> dict[str, Any] | None:
        """Nothing: no number is released."""
        return None
