"""The contributions of units: each falls in one cell of the grid "rows per unit x groups per unit"."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpframe.queries.bins import BinAxis
from dpframe.queries.keys import Keys

LAST_POWER = 20  # the last cell of an axis holds 2**19 + 1 to 2**20, and all above
EDGES = (1, 2, *(2**power + 1 for power in range(1, LAST_POWER + 1)))  # 1, 2, 3-4, 5-8, ...: half-open
ROWS, GROUPS = "rows", "groups"


@dataclass(frozen=True)
class Grouping:
    """The groups that a question about contributions speaks of.

    Without columns there is one group, of all rows. Without keys every distinct value of the columns is a group (of
    several columns every combination), a missing value like any other.
    """

    columns: tuple[str, ...] = ()
    keys: Keys | None = None

    @property
    def most(self) -> int | None:
        """The most groups that a unit can be in; None where nobody knows without looking at the rows."""
        if not self.columns:
            return 1
        return None if self.keys is None else self.keys.cells

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader on what is counted as a row, and as a group, of a unit."""
        last = EDGES[-1] - 1
        above = f"the last cell of each axis holds more than {last:,} as well" if self.most is None else ""
        if not self.columns:
            return ("rows of a unit are all its rows", f"the last cell of rows holds more than {last:,} as well")
        if self.keys is None:
            by = ", ".join(self.columns)
            return (f"groups of a unit are its distinct values of {by}, a missing one among them", above)
        return (
            "rows of a unit are those in all declared groups; a unit with none is in no cell",
            f"the last cell of rows holds more than {last:,} as well",
        )

    def __str__(self) -> str:
        if self.keys is not None:
            return f" by {self.keys}"
        return f" by distinct {', '.join(self.columns)}" if self.columns else ""


@dataclass(frozen=True)
class UnitGrid(Keys):
    """The cells of a question about contributions; which of them a unit is in, its rows of the grouping say."""

    counted: ClassVar[Literal["rows", "units"]] = "units"

    grouping: Grouping = Grouping()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", self.grouping.columns)  # whose values say in which group a row is
        self.check()  # of these too none is named twice

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the result on what is counted."""
        return self.grouping.notes()

    def __str__(self) -> str:
        return str(self.grouping)


def grouping_of(keys: Keys) -> Grouping:
    """The groups that a question about contributions speaks of."""
    assert isinstance(keys, UnitGrid)
    return keys.grouping


def grid_of(grouping: Grouping) -> tuple[BinAxis, BinAxis]:
    """The axes of the answer: rows per unit, and groups per unit as far as there can be so many."""
    return BinAxis(ROWS, _edges(None), outside="clip"), BinAxis(GROUPS, _edges(grouping.most), outside="clip")


def _edges(most: int | None) -> tuple[float, ...]:
    edges: Sequence[int] = EDGES if most is None else EDGES[: bisect_right(EDGES, most) + 1]
    return tuple(map(float, edges))
