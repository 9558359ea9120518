"""How far one unit can move the vector of a Statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.guarantee import PrivacyUnit, up
from dpframe.queries.statistics import Statistic


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move the vector of a Statistic, in any l_p norm; kept in integers.

    Notes
    -----
    One weight w = min(1, R / ||n||_p), R = max_rows * groups**(1/p), multiplies all that a unit adds, where n_g counts
    its rows in cell g. Then its counts have l_p norm at most R, and its sums at most max(|lower|, |upper|) * R, since
    |S_g| <= max(|lower|, |upper|) * n_g. Under "replace" two such vectors are subtracted: of non-negative ones each
    coordinate of the difference is at most the larger of the two, so the norm is at most 2**(1/p) times a single
    one's; of signed ones at most twice (the triangle inequality); in a single cell at most the distance between the
    least and the greatest value.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> unit = dpf.PrivacyUnit(neighbors="replace")
    >>> plan = pl.DataFrame({"age": [31]}).dp.preview.histogram("age", bins=[0, 50, 100], epsilon=1, unit=unit)
    >>> sensitivity = plan.parts[0].sensitivity
    >>> sensitivity.norm(1), round(sensitivity.norm(2), 4)
    (2.0, 1.4142)
    """

    reach: tuple[int, int]  # least and greatest step that one row may add
    cells: int
    rows: int  # how many rows of a unit count in full in one group
    groups: int
    weighted: bool  # whether units are bounded by weights, and not rows by themselves
    replace: bool
    grid: float

    @property
    def swayed(self) -> int:
        """How many cells one unit may sway: of weighted units all, since a weight below 1 is not 0."""
        return self.cells if self.weighted else min(2 if self.replace else 1, self.cells)

    def steps(self, p: float) -> float:
        """The l_p norm in grid steps, rounded up."""
        if self.weighted and p not in (1, 2, math.inf):
            raise InvalidArgument(
                f"mechanism must have shape p = 1 or 2 for a unit with several rows, not p = {p:g}: "
                "the weights of units bound the privacy loss in no other norm."
            )
        lower, upper = self.reach
        largest, signed = max(-lower, upper), lower < 0 < upper
        single = self.rows * largest
        powers = Fraction(self.groups)  # the p-th power of what multiplies `single`
        if self.replace and self.cells == 1:
            single = self.rows * (upper - lower)
        elif self.replace and signed:
            single *= 2
        elif self.replace:
            powers *= 2
        return _root_up(single, powers, p)

    def norm(self, p: float) -> float:
        """The l_p norm in the user's units, rounded up."""
        return self.steps(p) * self.grid


def of(statistic: Statistic, unit: PrivacyUnit, cells: int, merged: int | None = None) -> Sensitivity:
    """The sensitivity of one Statistic over `cells` cells, or over `merged` groups of them.

    In a group cells are added up, whichever they are: all that a unit adds may be in one of them. Its weight then holds
    the l_1 norm too, w ||n||_1 <= max_rows * groups, and no sum of its entries is larger (``docs/privacy.md``).
    """
    weighted = unit.column is not None
    scale = 2**20 if weighted and statistic.bounds is None else 1
    lower, upper = statistic.reach
    groups = min(unit.max_groups, cells)
    return Sensitivity(
        reach=(lower * scale, upper * scale),
        cells=cells if merged is None else merged,
        rows=unit.max_rows if merged is None else unit.max_rows * groups,
        groups=groups if merged is None else 1,
        weighted=weighted,
        replace=unit.neighbors == "replace",
        grid=statistic.grid(weighted),
    )


def _root_up(single: int, powers: Fraction, p: float) -> float:
    """Single * powers**(1/p), never below: an understated sensitivity would understate the noise."""
    if powers == 1 or p == math.inf:
        return up(Fraction(single))
    if p == 1:
        return up(single * powers)
    estimate: float = single * float(powers) ** (1.0 / p)
    if p == 2:
        while Fraction(estimate) ** 2 < single * single * powers:
            estimate = math.nextafter(estimate, math.inf)
        return estimate
    return estimate * (1.0 + 2.0**-40)  # a power of floats errs by far less
