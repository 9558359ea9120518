"""The sum of what each unit adds in all, clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpframe.queries.statistics.statistic import Clipped
from dpframe.queries.total import Total


@dataclass(frozen=True)
class UnitSum(Clipped):
    """The sum of a column, where what one unit adds to a group in all is clipped. Made by `dpframe.sum`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.sum("cost", unit_bounds=(0, 5_000)))
    sum(cost) of each unit in [0, 5000]
    """

    verb: ClassVar[str] = "sum"
    adds_up: ClassVar[bool] = False  # a unit is clipped in each group, and weighed by its number of groups

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (Total(self.column, self.bounds, per_unit=True),)

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it."""
        return {"verb": self.verb, "column": self.column, "unit_bounds": list(self.bounds)}

    def __str__(self) -> str:
        return f"sum({self.column}) of each unit in [{self.bounds[0]:g}, {self.bounds[1]:g}]"
