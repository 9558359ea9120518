"""Contribution bounds read off a noisy grid of contributions: what is left out against what noise adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, MissingArgument, is_one_of, shown
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning import sensitivity
from dpframe.planning.cut_units import Cells, CutUnits
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.simultaneous import stands_out
from dpframe.queries.total import RowsTotal

Floats = NDArray[np.float64]

LISTED = 20  # candidates
MOST_CUT = 0.5  # the share of units above which bounds are not recommended
MOST = 2**20  # rows, or groups: where the grid ends
LEAST_TRIED = 32  # rows per group, however few there seem to be
SUMS = 5.0  # standard deviations beyond which a sum of noisy counts is taken for units and not for noise


@dataclass(frozen=True)
class Grid:
    """Noisy counts of units by their rows and groups: arrays of one shape, rows by groups."""

    rows: Floats  # of a unit, the middle of each cell
    groups: Floats
    units: Floats  # at least 0

    @property
    def typical_groups(self) -> float:
        """In how many groups a row's unit is, on average over rows."""
        weights = self.units * self.rows
        return float((weights * self.groups).sum() / weights.sum()) if weights.any() else 1.0

    def kept(self, reach: float, p: float) -> float:
        """The number of rows that count: of a unit with weight w = min(1, reach / l_p norm of its rows by group).

        The l_1 norm is its number of rows. The l_2 norm is that of rows that are spread evenly over its groups.
        """
        most = reach * self.groups ** (1.0 - 1.0 / p)
        return float((self.units * np.minimum(self.rows, most)).sum())


def grid_of(ends: Mapping[str, Floats], noisy: Floats, law: Mapping[str, Any]) -> Grid:
    """The grid from the cells' ends and their noisy counts, where there is more than noise.

    Far cells stand for so many rows that noise alone would outweigh all else. So the grid is cut behind the last rows,
    and behind the last groups, of which a cell or the sum of a line of cells is beyond the noise; no unit is in more
    groups than it has rows; and what is below 0 is 0.
    """
    possible = ends["groups_left"] <= ends["rows_right"] - 1
    deviation = math.sqrt(law["variance"])
    tail = stands_out(int(np.count_nonzero(possible)), law["p"] < 2)
    counts = np.where(possible, noisy, 0.0)
    here = np.ones(counts.shape, dtype=np.bool_)
    for axis in (0, 1):
        sums, cells = counts.sum(axis=1 - axis), possible.sum(axis=1 - axis)
        is_there = (counts.max(axis=1 - axis) > tail * deviation) | (
            sums > deviation * np.maximum(SUMS * np.sqrt(cells), tail)
        )
        last = int(np.flatnonzero(is_there).max(initial=0))
        here &= np.expand_dims(np.arange(is_there.size) <= last, 1 - axis)
    rows, groups = ((ends[f"{name}_left"] + ends[f"{name}_right"] - 1) / 2 for name in ("rows", "groups"))
    return Grid(rows, groups, np.where(here, np.maximum(counts, 0.0), 0.0))


def candidates(
    grid: Grid,
    cells_of: Cells,
    unit: PrivacyUnit,
    groups: int | None,
    *,
    epsilon: object,
    delta: object,
    mechanism: object,
    paid: float,
    rows_too: bool = False,
) -> tuple[list[dict[str, Any]], str | None]:
    """The bounds with the least total error of the counts of all groups, the best first; and what is wrong with them.

    They are ranked by the error to expect if as many units are cut as the noise leaves possible. `paid` is the epsilon
    of the grid.
    """
    price = Price.of(epsilon, delta, None)
    there = grid.units > 0
    cells = groups or int(np.ceil(grid.groups[there].max(initial=1)))
    farthest = int(grid.rows[there].max(initial=1))
    rows: list[tuple[dict[str, Any], CutUnits, float]] = []
    for p, size in _noises(price, mechanism):
        seen: dict[float, tuple[PrivacyUnit, float]] = {}
        for max_rows, max_groups in _bounds(farthest, cells, grid.typical_groups):
            bounded = unit.bounded(max_rows, max_groups)
            reach = max_rows * min(max_groups, cells) ** (1.0 / p)
            seen.setdefault(round(reach, 6), (bounded, reach))  # of one reach: the same rows with the same noise
        everything = {round(reach, 6): reach for reach in _reaches(cells, p)} | {key: of[1] for key, of in seen.items()}
        cut = CutUnits(cells_of, p, tuple(everything[key] for key in sorted(everything)))
        for bounded, reach in seen.values():
            noise = cells * size * sensitivity.of(RowsTotal(), bounded, cells).norm(p)
            whole = float((grid.units * grid.rows).sum())
            rows.append((_candidate(bounded, grid.kept(reach, p), whole, noise, cut, reach), cut, reach))
    rows = sorted(rows, key=lambda row: float(row[0]["total_error"]))[:LISTED]
    if rows_too:
        for row, cut, reach in rows:
            row["left_out_low"], row["left_out_high"] = cut.rows_left_out(reach)
    return [row for row, _, _ in rows], _problem(*rows[0], unit, paid)


def _candidate(
    unit: PrivacyUnit, kept: float, whole: float, noise: float, cut: CutUnits, reach: float
) -> dict[str, Any]:
    left_out = max(whole - kept, 0.0)
    units_cut, low, high = cut.share(reach)
    return {
        "max_rows": unit.max_rows,
        "max_groups": unit.max_groups,
        "rows_kept": kept,
        "noise": noise,
        "left_out": left_out,
        "total_error": left_out * cut.factor(reach) + noise,
        "units_cut": units_cut,
        "units_cut_low": low,
        "units_cut_high": high,
    }


def _problem(best: Mapping[str, Any], cut: CutUnits, reach: float, unit: PrivacyUnit, paid: float) -> str | None:
    """The objection to the best bounds, as text; None where the noise is no reason for one."""
    low, high, times = best["units_cut_low"], best["units_cut_high"], cut.enough
    if high <= MOST_CUT or times <= 1.0:  # else a cell is too wide to tell, which no price changes
        return None
    return (
        f"the contributions are too noisy to tell: the best bounds may cut {low:.0%} to {high:.0%} of {unit.one}. "
        f"Take none of them, and ask for contributions again: {would_do(times, paid)}."
    )


def would_do(times: float, paid: float) -> str:
    """The epsilon that is this multiple of what was spent, as the way out of too much noise."""
    return "a much larger epsilon would do" if math.isinf(times) else f"epsilon={times * paid:.2g} would do"


def _reaches(cells: int, p: float) -> list[float]:
    """The reaches of all bounds that are ever tried for so many groups."""
    groups = sorted({min(size, cells) for size in _steps()})
    return [rows * size ** (1.0 / p) for rows in _steps() for size in groups]


def _bounds(farthest: int, cells: int, typical: float) -> Sequence[tuple[int, int]]:
    """Pairs to try: 1, 2, 3, 4, 6, 8, 12, ... rows, in groups near the typical number first."""
    most_rows = min(max(farthest, LEAST_TRIED), MOST)
    rows = [size for size in _steps() if size < 2 * most_rows]
    groups = sorted({min(size, cells) for size in _steps() if size < 2 * cells})
    groups.sort(key=lambda size: abs(math.log(size / typical)))
    return [(max_rows, max_groups) for max_groups in groups for max_rows in rows]


def _steps() -> list[int]:
    doubled = [2**power for power in range(21)]
    return sorted({*doubled, *(3 * size for size in doubled if 3 * size <= MOST)})


def _noises(price: Price, mechanism: object) -> list[tuple[float, float]]:
    """The norm of each noise to try, and its expected absolute value for a sensitivity of 1."""
    if not is_one_of(mechanism, (None, "laplace", "gaussian", "auto")):
        raise InvalidArgument(f"mechanism must be 'laplace', 'gaussian', 'auto' or None, not {shown(mechanism)}.")
    if mechanism == "laplace" and price.delta:
        raise InvalidArgument("delta must be left out with Laplace noise, which needs none. Drop delta or mechanism.")
    if mechanism == "gaussian" and not price.delta:
        raise MissingArgument("delta must be given for Gaussian noise. Write for instance delta=1e-6.")
    assert price.epsilon is not None
    grid = 2.0**-20
    noises = []
    if mechanism in ("laplace", "auto") or not price.delta:
        pure = Laplace.calibrate(sensitivity=1.0, epsilon=price.epsilon, grid=grid)
        noises.append((1.0, math.sqrt(pure.variance / 2)))
    if price.delta and mechanism != "laplace":
        normal = Gaussian.calibrate(sensitivity=1.0, epsilon=price.epsilon, delta=price.delta, grid=grid)
        noises.append((2.0, math.sqrt(normal.variance * 2 / math.pi)))
    return noises
