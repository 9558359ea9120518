"""Shares of units that contribution bounds cut: read off a noisy grid of contributions, with intervals that hold.

The grid has a noisy count for each cell of "rows per unit x groups per unit". Bounds weigh a unit with min(1, reach /
norm of its rows by group). Whether the units of a cell are cut depends on where in the cell they are, and under
Gaussian noise on how their rows are spread over groups: so a share lies between that of cells whose units are all cut,
and that of cells of which some unit may be. Both are sums of cells with weights 0 or 1, unbiased, of known noise.

Bounds are picked by the same noise that the sums have. So all intervals hold at once: their width is a quantile of the
largest of the sums of noise of all bounds there are, each over its deviation, which depends on public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.simultaneous import enough, margin_of

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

OPEN, MOST_ROWS = 2**20, 2**31  # the last cells are open above, up to as many rows as a unit may have


@dataclass(frozen=True)
class Cells:
    """The cells of a grid that a unit may be in, and their noisy counts, none of them altered.

    Parameters
    ----------
    least_rows, most_rows, least_groups, most_groups : array
        Of a unit in each cell.
    noisy : array
        The unbiased number of units in each.
    deviation : float
        The standard deviation of the noise of each.
    is_pure : bool
        Whether that is discrete Laplace noise, and not Gaussian.
    """

    least_rows: Floats
    most_rows: Floats
    least_groups: Floats
    most_groups: Floats
    noisy: Floats
    deviation: float
    is_pure: bool

    @classmethod
    def of(cls, ends: Mapping[str, Floats], noisy: Floats, law: Mapping[str, Any], most_rows: float | None) -> Cells:
        """The cells from their ends, half-open, and their noisy counts; the last ones are open above."""
        last_rows, last_groups = ends["rows_right"] - 1, ends["groups_right"] - 1
        rows = np.where(last_rows >= OPEN, MOST_ROWS, last_rows)
        known = MOST_ROWS if most_rows is None else most_rows
        rows = np.minimum(rows, known)
        groups = np.where(last_groups >= OPEN, MOST_ROWS, last_groups)
        possible = (ends["groups_left"] <= last_rows) & (ends["rows_left"] <= known)
        return cls(
            ends["rows_left"][possible],
            rows[possible],
            ends["groups_left"][possible],
            np.minimum(groups, rows)[possible],
            noisy[possible],
            math.sqrt(law["variance"]),
            law["p"] < 2,
        )

    def norms(self, p: float) -> tuple[Floats, Floats]:
        """The least and the largest l_p norm of the rows by group of a unit in each cell.

        The l_1 norm is the number of rows. The l_2 norm is least where rows are spread evenly over as many groups as
        there may be, and largest where all but one row per group are in one of as few groups as there may be.
        """
        if p == 1:
            return self.least_rows, self.most_rows
        spread = self.least_rows / np.sqrt(np.minimum(self.most_groups, self.least_rows))
        alone = self.most_rows - self.least_groups + 1
        return spread, np.sqrt(alone**2 + self.least_groups - 1)

    def middles(self, p: float) -> Floats:
        """The norm of a unit in the middle of each cell, whose rows are spread evenly."""
        rows = (self.least_rows + np.minimum(self.most_rows, 2 * self.least_rows)) / 2
        groups = (self.least_groups + np.minimum(self.most_groups, 2 * self.least_groups)) / 2
        return np.asarray(rows if p == 1 else rows / np.sqrt(np.minimum(groups, rows)))

    def left_out(self, reach: float, p: float) -> tuple[Floats, Floats]:
        """The least and the most rows that a unit in each cell loses: n (1 - min(1, reach / norm))."""
        least, largest = self.norms(p)
        return (
            self.least_rows * np.maximum(1 - reach / np.maximum(least, 1), 0),
            self.most_rows * np.maximum(1 - reach / np.maximum(largest, 1), 0),
        )

    @property
    def whole(self) -> float:
        """The noisy number of all units."""
        return float(self.noisy.sum())


@dataclass(frozen=True)
class CutUnits:
    """The shares of units that bounds cut, for bounds of any reach.

    Parameters
    ----------
    cells : Cells
        The grid.
    p : float
        The norm of the noise that is planned, by which units are weighed.
    reaches : tuple of float
        Of all bounds that may be asked about: intervals hold for all of them at once.
    """

    cells: Cells
    p: float
    reaches: tuple[float, ...]

    def share(self, reach: float) -> tuple[float, float, float]:
        """The estimated share of units that are cut, and the ends of its interval, all within [0, 1]."""
        least, largest = self.cells.norms(self.p)
        low, high = self._low(least > reach), self._high(largest > reach)
        some = self.cells.whole
        cut = float(self.cells.noisy[self.cells.middles(self.p) > reach].sum()) / some if some > 0 else 1.0
        return min(max(cut, low), high), low, high

    def factor(self, reach: float) -> float:
        """The factor of units that may be cut over those that seem to be: with the margin over without."""
        cells = self.cells.middles(self.p) > reach
        seen, most = self._sum(cells, 0), self._sum(cells, 1)
        return max(most, 1.0) / max(seen, 1.0)

    def _low(self, cut: Booleans) -> float:
        """A share that is at most that of these cells: the least of them over the most of the rest."""
        sure, rest = self._sum(cut, -1), self._sum(~cut, 1)
        return 0.0 if sure <= 0 else sure / (sure + max(rest, 0.0))

    def _high(self, cut: Booleans) -> float:
        sure, rest = self._sum(cut, 1), self._sum(~cut, -1)
        return 1.0 if rest <= 0 else max(sure, 0.0) / (max(sure, 0.0) + rest)

    def _sum(self, cells: Booleans, side: int) -> float:
        """The noisy number of units in some cells, moved to one side by its margin."""
        margin = self.margin * self.cells.deviation * math.sqrt(np.count_nonzero(cells))
        return float(self.cells.noisy[cells].sum()) + side * margin

    @cached_property
    def margin(self) -> float:
        """The half-widths of all sums, in standard deviations of each."""
        least, largest = self.cells.norms(self.p)
        sets = {tuple((norm > reach).tolist()) for reach in self.reaches for norm in (least, largest)}
        sets |= {tuple(not cut for cut in one) for one in sets}
        return margin_of(tuple(sorted(one for one in sets if any(one))), self._law)

    def rows_left_out(self, reach: float) -> tuple[float, float]:
        """The ends of an interval of the rows that are left out, which holds for all bounds at once."""
        return self._rows(reach, 0, -1), self._rows(reach, 1, 1)

    def _rows(self, reach: float, which: int, side: int) -> float:
        weights = self.cells.left_out(reach, self.p)[which]
        deviation = self.cells.deviation * math.sqrt(float((weights**2).sum()))
        return max(float((self.cells.noisy * weights).sum()) + side * self.margin_of_rows * deviation, 0.0)

    @cached_property
    def margin_of_rows(self) -> float:
        """As `margin`, of the rows that are left out."""
        forms = (weights for reach in self.reaches for weights in self.cells.left_out(reach, self.p))
        return margin_of(tuple(sorted({tuple(form.tolist()) for form in forms if form.any()})), self._law)

    @property
    def _law(self) -> tuple[bool, float]:
        return self.cells.is_pure, self.cells.deviation

    @property
    def enough(self) -> float:
        """The factor of the grid's cost that gives shares within a tenth; infinite where nobody knows."""
        half = self.margin * self.cells.deviation * math.sqrt(self.cells.noisy.size)
        return enough(half, self.cells.whole)
