"""The sensitivity of a stream: how far one unit can move all the numbers that are measured of it, in all periods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.exact import root_up, up
from dpframe.privacy import PrivacyUnit
from dpframe.queries.prefix_sums import BITS, PrefixSums
from dpframe.queries.total import RowsTotal, Total

FINE = 2**BITS  # steps of the coefficients


@dataclass(frozen=True)
class StreamReach:
    """The largest move of the numbers of a stream by one unit, kept in integers.

    Notes
    -----
    A row that adds between -L and U, M = max(L, U), to period j moves y_t by c_(t-j) times that, and a unit has at most
    `rows` rows in the whole stream, the earliest ones. However they enter the table, late ones too, what the unit adds
    to y_t has an l_1 norm over the groups of at most M times the sum of c_(t - t_i), t_i being the first release that
    held i of its rows (``docs/assurance/privacy.md``). So over all periods the l_p norm is at most rows M ||c||_p.

    **Replace.** Two such vectors are subtracted: 2 rows M ||c||_1, and by the bounds of single numbers (see
    `Sensitivity`) sqrt(2 (U^2 + L^2)) rows ||c||_2; of counts sqrt(2) times that of add-remove.

    **Rounding.** Counts are measured in steps of 2**-12, exactly. Any other total is rounded down to its own grid,
    which moves each number that differs by less than one step more; there are at most `entries` of them.

    Examples
    --------
    >>> from dpframe.queries.total import Total
    >>> reach = StreamReach.of(Total(), PrivacyUnit(), periods=52, groups=1)
    >>> round(reach.steps(2) * reach.grid, 6)
    1.523988
    """

    reach: tuple[int, int]  # the least and the greatest that a row may add, in the steps of its total
    whole: bool  # whether rows are counted, so that nothing is rounded
    column_sum: int  # the l_1 norm of c, in steps of 2**-12
    column_square: int  # its squared l_2 norm
    rows: int
    entries: int
    replace: bool
    grid: float

    @classmethod
    def of(cls, total: Total, unit: PrivacyUnit, *, periods: int, groups: int) -> StreamReach:
        """The sensitivity of the stream of one Total."""
        design, rows = PrefixSums(periods), 1 if unit.column is None else unit.contribution.max_rows
        norm, replace, whole = total.norm(weighted=False), unit.neighbors == "replace", isinstance(total, RowsTotal)
        return cls(
            reach=norm.reach,
            whole=whole,
            column_sum=design.column_sum,
            column_square=design.column_square,
            rows=rows,
            entries=periods * min(groups, rows * (2 if replace else 1)),
            replace=replace,
            grid=design.grid if whole else norm.grid,
        )

    def steps(self, p: float) -> float:
        """The l_1 or l_2 norm in grid steps, rounded up."""
        least, greatest = -self.reach[0], self.reach[1]
        largest, fine = max(least, greatest), 1 if self.whole else FINE
        if p == 1.0:
            moved = Fraction(self.rows * largest * self.column_sum * (2 if self.replace else 1), fine)
            return up(moved if self.whole else moved + self.entries)
        squares = 2 * (least**2 + greatest**2) if self.replace else largest**2
        moved = Fraction(_root_up(self.rows**2 * squares * self.column_square)) / fine
        return up(moved if self.whole else moved + Fraction(_root_up(self.entries)))


def _root_up(square: int) -> float:
    """The square root, never below."""
    return root_up(Fraction(square), math.sqrt(square))
