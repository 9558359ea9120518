"""Suggested contribution bounds, from a noisy grid of contributions: rows that are left out against noise.

**Shares of units that bounds cut.** The grid has a noisy count for each cell of "rows per unit x groups per unit".
Bounds give a unit the weight min(1, reach / norm of its rows by group). Whether the units of a cell are cut depends on
where in the cell they are, and under Gaussian noise on how their rows are spread over groups. So a share lies between
the share of cells whose units are all cut, and the share of cells with some unit that may be cut. Both are sums of
cells with weights 0 or 1: unbiased, with known noise.

**Intervals.** Noisy numbers select the best of many candidates, so the selection depends on their noise, and the sums
have the same noise. Therefore the intervals hold for all bounds together. Their width is a quantile of the largest of
the sums of noise of all possible bounds, each divided by its own deviation. It depends on public facts alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, MissingArgument, is_one_of, shown
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.privacy import WEAK_EPSILON, Price, PrivacyUnit
from dpframe.queries.total import RowsTotal

Floats = NDArray[np.float64]
Law = tuple[bool, float]  # whether it is discrete Laplace (otherwise Gaussian) noise, and its standard deviation

DRAWS = 4_000  # simulated grids of noise, from a fixed text: public, like the law of the noise
AT_ONCE = 2**21  # numbers in one block of draws
CONFIDENCE = 0.955  # for 95% intervals: the quantile of DRAWS draws is off by up to 0.4% in 2 of 3 cases
RARE = 0.001  # the chance that noise alone exceeds the limit in any of the numbers
ROUNDED = 1.0 + 1e-9  # a norm that exceeds a reach by less is equal to it, as 3 / sqrt(3) and sqrt(3) are


def stands_out(numbers: int, law: Law) -> float:
    """Return the number above which one of `numbers` noisy whole numbers exceeds the noise, in steps of the noise."""
    each, (pure, deviation) = RARE / max(1, numbers), law
    if not pure:
        return deviation * math.sqrt(2 * math.log(1 / each)) + 0.5  # the noise is rounded
    ratio = _ratio(deviation)
    if ratio <= 0.0:
        return 0.0
    return max(0.0, math.ceil(math.log(each * (1 + ratio)) / math.log(ratio)) - 1.0)  # P(X > t) = q^(t + 1) / (1 + q)


def enough(half: float, whole: float) -> float:
    """Return the factor of the cost at which a sum's half-width is a tenth of the whole; infinite if unknown."""
    return half / (0.1 * whole) if whole > half / 4 else math.inf


@lru_cache(maxsize=32)
def margin_of(forms: tuple[tuple[float, ...], ...], law: Law) -> float:
    """Return the quantile of the largest of several sums of noise, each divided by its standard deviation.

    It depends only on the law and the weights.
    """
    if not forms or law[1] == 0.0:
        return 0.0
    weights = np.array(forms, dtype=np.float64).T
    weights /= np.sqrt((weights**2).sum(axis=0))
    largest = np.abs(_noise(law, len(forms[0]), DRAWS, 0) @ weights).max(axis=1)
    return float(np.quantile(largest, CONFIDENCE, method="higher")) / law[1]


@lru_cache(maxsize=32)
def margin_of_tails(bins: int, law: Law) -> float:
    """Return the same for the sums of any number of first or last bins, in standard deviations of each sum."""
    if law[1] == 0.0:
        return 0.0
    sizes = np.sqrt(np.arange(1.0, bins + 1.0))
    each = max(1, min(DRAWS, AT_ONCE // bins))
    largest = []
    for block, start in enumerate(range(0, DRAWS, each)):
        noise = _noise(law, bins, min(each, DRAWS - start), block)
        first, last = np.cumsum(noise, axis=1), np.cumsum(noise[:, ::-1], axis=1)
        largest.append(np.maximum(np.abs(first / sizes).max(axis=1), np.abs(last / sizes).max(axis=1)))
    return float(np.quantile(np.concatenate(largest), CONFIDENCE, method="higher")) / law[1]


def _noise(law: Law, cells: int, draws: int, block: int) -> Floats:
    """Simulate the noise of all cells: the difference of two geometric numbers, or rounded normal numbers.

    It protects no data. The hash of a fixed text replaces randomness, so that everybody gets the same margins.
    """
    is_pure, deviation = law
    named = b"dpframe: margins of cut units" + (b" %d" % block if block else b"")
    text = hashlib.shake_256(named).digest(16 * draws * cells)
    chance = (np.frombuffer(text, "<u8").reshape(2, draws, cells) >> np.uint64(11)).astype(np.float64)
    one, other = (chance + 0.5) * 2.0**-53
    if not is_pure:
        return np.asarray(np.rint(deviation * np.sqrt(-2.0 * np.log(one)) * np.cos(2.0 * np.pi * other)))
    ratio = _ratio(deviation)
    if ratio <= 0.0:
        return np.zeros((draws, cells))
    return np.asarray(np.floor(np.log(one) / math.log(ratio)) - np.floor(np.log(other) / math.log(ratio)))


def _ratio(deviation: float) -> float:
    """Return q of discrete Laplace noise, whose variance is 2 q / (1 - q)^2."""
    variance = deviation**2
    return variance / (variance + 1 + math.sqrt(2 * variance + 1))


Booleans = NDArray[np.bool_]

OPEN, MOST_ROWS = 2**20, 2**31  # a cell that ends at OPEN or above is open: its end is MOST_ROWS


@dataclass(frozen=True)
class Cells:
    """The cells of a grid that a unit may be in, and their unaltered noisy counts.

    Parameters
    ----------
    least_rows, most_rows, least_groups, most_groups : array
        The least and the largest numbers of rows and groups of a unit in each cell.
    noisy : array
        The unbiased number of units in each cell.
    deviation : float
        The standard deviation of the noise of each count.
    is_pure : bool
        Whether the noise is discrete Laplace, and not Gaussian.
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
        """Make the cells from their half-open ends and their noisy counts; the last cells are open above."""
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
        """Return the least and the largest l_p norm of the rows by group of a unit in each cell.

        The l_1 norm is the number of rows. The l_2 norm is least if the rows are spread evenly over as many groups as
        possible. It is largest for as few groups as possible, if each has one row and one of them has all the others.
        """
        if p == 1:
            return self.least_rows, self.most_rows
        spread = self.least_rows / np.sqrt(np.minimum(self.most_groups, self.least_rows))
        alone = self.most_rows - self.least_groups + 1
        return spread, np.sqrt(alone**2 + self.least_groups - 1)

    def middles(self, p: float) -> Floats:
        """Return the norm of a unit in the middle of each cell, with its rows spread evenly."""
        rows = (self.least_rows + np.minimum(self.most_rows, 2 * self.least_rows)) / 2
        groups = (self.least_groups + np.minimum(self.most_groups, 2 * self.least_groups)) / 2
        return np.asarray(rows if p == 1 else rows / np.sqrt(np.minimum(groups, rows)))

    def left_out(self, reach: float, p: float) -> tuple[Floats, Floats]:
        """Return the least and the most rows that a unit in each cell loses: n (1 - min(1, reach / norm))."""
        least, largest = self.norms(p)
        return (
            self.least_rows * np.maximum(1 - reach / np.maximum(least, 1), 0),
            self.most_rows * np.maximum(1 - reach / np.maximum(largest, 1), 0),
        )

    @property
    def whole(self) -> float:
        """The noisy number of all units."""
        return float(self.noisy.sum())


def is_cut(norms: Floats, reach: float) -> Booleans:
    """Return whether bounds of this reach give a unit a weight below 1, for each norm of its rows."""
    return norms > reach * ROUNDED


@dataclass(frozen=True)
class CutUnits:
    """The shares of units that bounds cut, for bounds of any reach.

    Parameters
    ----------
    cells : Cells
        The grid.
    p : float
        The norm of the planned noise, by which units are weighted.
    reaches : tuple of float
        The reaches of all bounds that may be asked about: intervals hold for all of them together.
    """

    cells: Cells
    p: float
    reaches: tuple[float, ...]

    def share(self, reach: float) -> tuple[float, float, float]:
        """Return the estimated share of units that are cut, and the ends of its interval, all within [0, 1]."""
        least, largest = self.cells.norms(self.p)
        low, high = self._low(is_cut(least, reach)), self._high(is_cut(largest, reach))
        some = self.cells.whole
        cut = float(self.cells.noisy[is_cut(self.cells.middles(self.p), reach)].sum()) / some if some > 0 else 1.0
        return min(max(cut, low), high), low, high

    def factor(self, reach: float) -> float:
        """Return the ratio of units that may be cut (with the margin) to units that seem to be cut (without it)."""
        cells = is_cut(self.cells.middles(self.p), reach)
        seen, most = self._sum(cells, 0), self._sum(cells, 1)
        return max(most, 1.0) / max(seen, 1.0)

    def _low(self, cut: Booleans) -> float:
        """Return a lower end of the share of these cells: the fewest units in them, and the most units in the rest."""
        sure, rest = self._sum(cut, -1), self._sum(~cut, 1)
        return 0.0 if sure <= 0 else sure / (sure + max(rest, 0.0))

    def _high(self, cut: Booleans) -> float:
        sure, rest = self._sum(cut, 1), self._sum(~cut, -1)
        return 1.0 if rest <= 0 else max(sure, 0.0) / (max(sure, 0.0) + rest)

    def _sum(self, cells: Booleans, side: int) -> float:
        """Return the noisy number of units in some cells, moved up (1) or down (-1) by its margin."""
        margin = self.margin * self.cells.deviation * math.sqrt(np.count_nonzero(cells))
        return float(self.cells.noisy[cells].sum()) + side * margin

    @cached_property
    def margin(self) -> float:
        """The joint half-width of all sums, in standard deviations of each sum."""
        least, largest = self.cells.norms(self.p)
        sets = {tuple(is_cut(norm, reach).tolist()) for reach in self.reaches for norm in (least, largest)}
        sets |= {tuple(not cut for cut in one) for one in sets}
        return margin_of(tuple(sorted(one for one in sets if any(one))), self._law)

    def rows_left_out(self, reach: float) -> tuple[float, float]:
        """Return the ends of an interval of the rows that are left out; it holds for all bounds together."""
        return self._rows(reach, 0, -1), self._rows(reach, 1, 1)

    def _rows(self, reach: float, which: int, side: int) -> float:
        weights = self.cells.left_out(reach, self.p)[which]
        deviation = self.cells.deviation * math.sqrt(float((weights**2).sum()))
        return max(float((self.cells.noisy * weights).sum()) + side * self.margin_of_rows * deviation, 0.0)

    @cached_property
    def margin_of_rows(self) -> float:
        """The same as `margin`, for the rows that are left out."""
        forms = (weights for reach in self.reaches for weights in self.cells.left_out(reach, self.p))
        return margin_of(tuple(sorted({tuple(form.tolist()) for form in forms if form.any()})), self._law)

    @property
    def _law(self) -> tuple[bool, float]:
        return self.cells.is_pure, self.cells.deviation

    @property
    def enough(self) -> float:
        """The factor of the grid's cost that gives shares within a tenth; infinite if that is unknown."""
        half = self.margin * self.cells.deviation * math.sqrt(self.cells.noisy.size)
        return enough(half, self.cells.whole)


LISTED = 20  # candidates
MOST_CUT = 0.5  # the share of units above which bounds are not recommended
MOST = 2**20  # rows, or groups, that bounds may allow: the grid ends there
LEAST_TRIED = 32  # rows per group that are tried at least, even if units seem to have fewer
SUMS = 5.0  # standard deviations above which a sum of noisy counts is taken for units and not for noise


@dataclass(frozen=True)
class Grid:
    """Noisy counts of units by their rows and groups: arrays of one shape, rows by groups."""

    rows: Floats  # of a unit, the middle of each cell
    groups: Floats
    units: Floats  # at least 0

    @property
    def typical_groups(self) -> float:
        """The number of groups of a row's unit, on average over rows."""
        weights = self.units * self.rows
        return float((weights * self.groups).sum() / weights.sum()) if weights.any() else 1.0

    def kept(self, reach: float, p: float) -> float:
        """Return the number of rows that count if a unit has weight w = min(1, reach / l_p norm of its rows by group).

        The l_1 norm is its number of rows. The l_2 norm is that of rows that are spread evenly over its groups.
        """
        most = reach * self.groups ** (1.0 - 1.0 / p)
        return float((self.units * np.minimum(self.rows, most)).sum())


def grid_of(ends: Mapping[str, Floats], noisy: Floats, law: Mapping[str, Any]) -> Grid:
    """Make the grid from the ends of the cells and their noisy counts, as far as these exceed the noise.

    Far cells have so many rows per unit that their noise alone would outweigh all other cells. So the grid ends with
    the last rows, and with the last groups, for which a cell or the sum of a line of cells exceeds the noise. No unit
    is in more groups than it has rows. Counts below 0 become 0.
    """
    possible = ends["groups_left"] <= ends["rows_right"] - 1
    deviation = math.sqrt(law["variance"])
    far = stands_out(int(np.count_nonzero(possible)), (law["p"] < 2, deviation))
    counts = np.where(possible, noisy, 0.0)
    here = np.ones(counts.shape, dtype=np.bool_)
    for axis in (0, 1):
        sums, cells = counts.sum(axis=1 - axis), possible.sum(axis=1 - axis)
        is_there = (counts.max(axis=1 - axis) > far) | (sums > np.maximum(SUMS * deviation * np.sqrt(cells), far))
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
    """Find the bounds with the least total error of the counts of all groups, the best first, and the problem if any.

    They are ranked by the expected error if as many units are cut as the noise leaves possible. `paid` is the epsilon
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
            seen.setdefault(round(reach, 6), (bounded, reach))  # one reach: same rows, same noise
        everything = {round(reach, 6): reach for reach in _reaches(cells, p)} | {key: of[1] for key, of in seen.items()}
        cut = CutUnits(cells_of, p, tuple(everything[key] for key in sorted(everything)))
        for bounded, reach in seen.values():
            noise = cells * size * sensitivity_of(RowsTotal(), bounded, cells).norm(p)
            whole = float((grid.units * grid.rows).sum())
            rows.append((_candidate(bounded, grid.kept(reach, p), whole, noise, cut, reach), cut, reach))
    rows = sorted(rows, key=lambda row: float(row[0]["total_error"]))[:LISTED]
    if rows_too:
        for row, cut, reach in rows:
            row["left_out_low"], row["left_out_high"] = cut.rows_left_out(reach)
    return [row for row, _, _ in rows], _problem(*rows[0][:2], unit, paid)


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


def _problem(best: Mapping[str, Any], cut: CutUnits, unit: PrivacyUnit, paid: float) -> str | None:
    """Return the problem with the best bounds, as text; None if the noise causes none."""
    low, high, times = best["units_cut_low"], best["units_cut_high"], cut.enough
    if high <= MOST_CUT or times <= 1.0:  # if times <= 1, cells are too wide, and no cost helps
        return None
    return (
        f"the contributions are too noisy to tell: the best bounds may cut {low:.0%} to {high:.0%} of units "
        f"({unit.one}). Take none of them, and ask for contributions again: {would_do(times, paid)}."
    )


def would_do(times: float, paid: float) -> str:
    """Return text that suggests an epsilon: this multiple of the spent one, unless it protects weakly."""
    if math.isinf(times):
        return "a much larger epsilon would do"
    if times * paid > WEAK_EPSILON:
        return f"only an epsilon above {WEAK_EPSILON}, which protects weakly, would do"
    return f"an epsilon of about {times * paid:.2g} would do"


def _reaches(cells: int, p: float) -> list[float]:
    """Return the reaches of all bounds that may be tried for this number of groups."""
    groups = sorted({min(size, cells) for size in _steps()})
    return [rows * size ** (1.0 / p) for rows in _steps() for size in groups]


def _bounds(farthest: int, cells: int, typical: float) -> Sequence[tuple[int, int]]:
    """Return the pairs to try: 1, 2, 3, 4, 6, 8, 12, ... rows; numbers of groups near the typical one come first."""
    most_rows = min(max(farthest, LEAST_TRIED), MOST)
    rows = [size for size in _steps() if size < 2 * most_rows]
    groups = sorted({min(size, cells) for size in _steps() if size < 2 * cells})
    groups.sort(key=lambda size: abs(math.log(size / typical)))
    return [(max_rows, max_groups) for max_groups in groups for max_rows in rows]


def _steps() -> list[int]:
    doubled = [2**power for power in range(21)]
    return sorted({*doubled, *(3 * size for size in doubled if 3 * size <= MOST)})


def _noises(price: Price, mechanism: object) -> list[tuple[float, float]]:
    """Return the norm of each noise to try, and its expected absolute value for a sensitivity of 1."""
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
