"""The sensitivity of a Total (the largest change of its vector by one unit), and the noise that covers it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting import Part
from dpframe.errors import InvalidArgument
from dpframe.exact import checked_whole, positive, root_up, up
from dpframe.mechanisms.gaussian import ContrastGaussian, Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contrasts import ContrastDesign
from dpframe.queries.contributions import counts_whole, groups_of
from dpframe.queries.query import Query, by_choice
from dpframe.queries.total import DistinctTotal, Total, UnitsTotal, VectorTotal, by_whole_units


@dataclass(frozen=True)
class Sensitivity:
    """The largest move of the vector of a Total by one unit, in any l_p norm; kept in integers.

    Notes
    -----
    The largest l_p distance of two neighboring vectors (Liu 2018, Definition 1). Her Lemma 2, the p-th root of the sum
    of each entry's p-th power, is used nowhere: it would let every entry move. Her Claim 3, the range of a bounded
    statistic, is the case of a single cell.

    A row adds between -L and U to one cell, M = max(L, U); 0 is among them, since its value may be missing. Of a count
    L = 0 and U = 1; of a sum L = max(-lower, 0) and U = max(upper, 0); of a centred sum, which takes the middle of the
    bounds off each value, L = middle - lower and U = upper - middle, about half the range each.

    **Add-remove.** A row of its own moves one cell by at most M. A unit with n_g rows in cell g has the weight
    w = min(1, R / ||n||_p), R = max_rows * groups**(1/p), and adds a_g between -L w n_g and U w n_g: so its norm is at
    most M w ||n||_p <= M R. For p of infinity that is M max_rows, whatever the groups.

    **Replace.** Two such vectors a and b are subtracted, with n and m for their weighted rows, and
    abs(a_g - b_g) <= max(U n_g + L m_g, L n_g + U m_g).
    In one cell, and in every one: at most (U + L) max_rows.
    p = 1: the right side is at most M (n_g + m_g), so 2 M R in all.
    p = 2: its square is at most (U^2 + L^2) (n_g^2 + m_g^2) (Cauchy and Schwarz), so sqrt(2 (U^2 + L^2)) R in all.
    Rows of their own, any p: two cells move by at most M each, or one by at most U + L: the larger of 2**(1/p) M and
    U + L.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> unit = dpf.PrivacyUnit(neighbors="replace")
    >>> plan = pl.DataFrame({"age": [31]}).dp.preview.histogram("age", bins=[0, 50, 100], epsilon=1, unit=unit)
    >>> sensitivity = plan.parts[0].sensitivity
    >>> sensitivity.norm(1), round(sensitivity.norm(2), 4)
    (2.0, 1.4142)
    """

    reach: tuple[int, int]  # the least and the greatest number of steps that one row may add
    cells: int
    rows: int  # the number of rows of a unit that count in full in one group
    groups: int
    weighted: bool  # whether weights bound what a unit adds
    replace: bool
    grid: float
    # the largest l_1 norm and squared l_2 norm of what one row adds, if it adds to several cells
    vector: tuple[int | Fraction, int | Fraction] | None = None
    signed: bool = False  # whether a row may add a negative number to some of these cells
    contrasts: ContrastDesign | None = None  # of these cells: norms are taken after division by its scales

    def __post_init__(self) -> None:
        rule = "a whole number within 2**100"
        ends = tuple(checked_whole("reach", end, -(2**100), 2**100, rule) for end in self.reach)
        object.__setattr__(self, "reach", ends)
        for argument in ("cells", "rows", "groups"):
            object.__setattr__(self, argument, checked_whole(argument, getattr(self, argument), 0, 2**100, rule))
        object.__setattr__(self, "grid", up(positive("grid", self.grid)))

    @property
    def swayed(self) -> int:
        """The number of cells that one unit may change: all of them if units have weights, since no weight is 0."""
        if self.vector is not None:
            return self.cells
        return self.cells if self.weighted else min((2 if self.replace else 1) * self.groups, self.cells)

    def steps(self, p: float) -> float:
        """Return the l_p norm in grid steps, rounded up."""
        if self.weighted and p not in (1, 2, math.inf):
            raise InvalidArgument(
                f"mechanism must have shape p = 1 or 2 for a unit with several rows, not p = {p:g}. "
                "Use Laplace or Gaussian noise."
            )
        if self.vector is not None:
            return self._of_vectors(p)
        largest, other = sorted((-self.reach[0], self.reach[1]), reverse=True)
        if not self.replace:
            return _root_up(self.rows * largest, Fraction(self.groups), p)
        one_cell = up(Fraction(self.rows * (largest + other)))
        if self.cells == 1 or p == math.inf:
            return one_cell
        if self.weighted and p == 2:
            return _root_up(self.rows, Fraction(2 * (largest**2 + other**2) * self.groups), p)
        two_cells = _root_up(self.rows * largest, 2 * Fraction(self.groups), p)
        return two_cells if self.weighted else max(two_cells, one_cell)

    def _of_vectors(self, p: float) -> float:
        """Return the l_p norm in grid steps if a row adds several integers."""
        assert self.vector is not None
        if self.contrasts is not None and p != 2:
            raise InvalidArgument(
                f"mechanism must be Gaussian noise for marginals, not one of p = {p:g}. Leave it out."
            )
        if p not in (1, 2):
            raise InvalidArgument(
                f"mechanism must have shape p = 1 or 2 where a row adds to several numbers, not p = {p:g}. "
                "Use Laplace or Gaussian noise."
            )
        doubled = 2 if self.replace else 1
        if p == 1:
            return up(Fraction(self.rows * self.vector[0] * doubled * self.groups))
        apart = doubled**2 if self.signed else doubled  # signed vectors may be opposite, others at most orthogonal
        return _root_up(self.rows, Fraction(self.vector[1] * apart * self.groups), 2)

    def norm(self, p: float) -> float:
        """Return the l_p norm in the user's units, rounded up."""
        return up(Fraction(self.steps(p)) * Fraction(self.grid))


def sensitivity_of(total: Total, unit: PrivacyUnit, cells: int, merged: int | None = None) -> Sensitivity:
    """Return the sensitivity of one Total over `cells` cells, or over `merged` groups of them.

    A merged group is the sum of any cells, so one group may hold all that a unit adds. The weight of a unit then bounds
    the l_1 norm too, w ||n||_1 <= max_rows * groups, and no sum of entries exceeds that
    (``docs/assurance/privacy.md``).
    """
    if isinstance(total, DistinctTotal):
        return _of_distinct(total.most, unit, cells)
    if isinstance(total, UnitsTotal):
        return _of_whole_units(total, unit, cells)
    weighted, bounds, inside = unit.column is not None, unit.contribution, 1
    if isinstance(total, VectorTotal):  # a row adds to a whole group; weights depend on rows by group
        inside = total.vector.cells
    norm, groups = total.norm(weighted), min(bounds.max_groups, cells // inside)
    return Sensitivity(
        reach=norm.reach,
        cells=cells // inside * norm.width if merged is None else merged,
        rows=bounds.max_rows if merged is None else bounds.max_rows * groups,
        groups=groups if merged is None else 1,
        weighted=weighted,
        replace=unit.neighbors == "replace",
        grid=norm.grid,
        vector=norm.vector,
        signed=norm.signed,
        contrasts=norm.contrasts,
    )


def sensitivities_of(query: Query, unit: PrivacyUnit) -> list[Sensitivity]:
    """Return the sensitivity of each Total."""
    sizes = dict(zip(query.shown.groupings, (level.size for level in query.shown.levels), strict=False))
    merged = [None if total.by is None else sizes[total.by] for total in query.totals]
    return [
        sensitivity_of(total, unit, query.keys.cells, most) for total, most in zip(query.totals, merged, strict=True)
    ]


def uses_rows(query: Query) -> bool:
    """Return whether some Total bounds the rows of a unit, and not what the whole unit adds to a cell."""
    return not all(by_whole_units(total) for total in query.of_cells)


def uses_units(query: Query) -> bool:
    """Return whether some Total counts units, or clips the sum of each unit in a cell."""
    return any(by_whole_units(total) and not isinstance(total, DistinctTotal) for total in query.of_cells)


def groups_in(query: Query) -> int:
    """Return the number of groups of rows: the cells, divided by the cells inside each group of a VectorTotal."""
    vectors = [total.vector for total in query.of_cells if isinstance(total, VectorTotal)]
    return query.keys.cells // max((vector.cells for vector in vectors), default=1)


def one_group(query: Query) -> bool:
    """Return whether the rows of a unit are weighted as one group; for a choice, bounds hold in each option."""
    return by_choice(query) or groups_in(query) == 1


def _of_whole_units(total: UnitsTotal, unit: PrivacyUnit, cells: int) -> Sensitivity:
    """Return the sensitivity if a unit adds at most v(t) times the reach to each of its t cells (see `contributions`).

    A unit that is always in one cell (`once`) is like a row: it has no bounds and no weights.
    """
    weighted = unit.column is not None and not total.once
    norm = total.norm(weighted and not counts_whole(unit, cells))
    return Sensitivity(
        reach=norm.reach,
        cells=cells,
        rows=1,
        groups=groups_of(unit, cells) if weighted else 1,
        weighted=weighted,
        replace=unit.neighbors == "replace",
        grid=norm.grid,
    )


def _of_distinct(most: int, unit: PrivacyUnit, cells: int) -> Sensitivity:
    """Return the sensitivity of distinct counts: a unit moves each of its groups by at most `most`, a row one by 1.

    Neither has weights: rows of a unit beyond K groups are left out. Under replace, the new rows may be in K other
    groups, and the number of one group moves by at most `most` in either direction.
    """
    by_rows = unit.column is None
    return Sensitivity(
        reach=(0, 1 if by_rows else most),
        cells=cells,
        rows=1,
        groups=1 if by_rows else groups_of(unit, cells),
        weighted=False,
        replace=unit.neighbors == "replace",
        grid=1.0,
    )


def _root_up(single: int, powers: Fraction, p: float) -> float:
    """Return single * powers**(1/p), rounded up: too small a sensitivity would give too little noise."""
    if powers == 1 or p == math.inf:
        return up(Fraction(single))
    if p == 1:
        return up(single * powers)
    estimate: float = single * float(powers) ** (1.0 / p)
    if p == 2:
        return root_up(single * single * powers, estimate)
    return estimate * (1.0 + 2.0**-40)  # the relative error of a float power is far smaller


def laplace_of(sensitivity: Sensitivity, part: Part) -> Laplace:
    """Return Laplace noise for a part of the cost."""
    assert part.epsilon is not None
    return Laplace.of_steps(math.ceil(sensitivity.steps(1)), part.epsilon, sensitivity.grid)


def gaussian_of(sensitivity: Sensitivity, part: Part) -> Gaussian:
    """Return Gaussian noise for a part of the cost."""
    assert part.mu is not None
    if sensitivity.contrasts is not None:
        steps = Fraction(sensitivity.steps(2))
        return ContrastGaussian.of_design(steps, part.mu, sensitivity.grid, sensitivity.contrasts)
    return Gaussian.of_mu(Fraction(sensitivity.steps(2)), part.mu, sensitivity.grid)
