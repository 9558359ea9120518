"""One unit, one weight: contribution bounding without sampling.

A unit with n_g rows in declared cell g gets the weight w = min(1, R / ||n||_p), R = max_rows * groups**(1/p), counted
before any statistic drops missing values. Each of its counts becomes w n_g and each of its sums w S_g, on the grid,
truncated toward zero. So its counts have l_p norm at most R and its sums at most max(|lower|, |upper|) R, because
|S_g| <= max(|lower|, |upper|) n_g; that holds for sums that wrapped, too, since a wrapped |S_g| is the smaller one.

Units with at most R rows in all have weight 1 in any norm (the l_1 norm is the largest), so their rows are summed
like any others; only the rest are looked at pair by pair of unit and cell.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.frames.cells import Integers, placed
from dpframe.frames.terms import ROWS, Terms
from dpframe.guarantee import PrivacyUnit
from dpframe.queries.statistics import WEIGHT_BITS, Statistic

Floats = NDArray[np.float64]

SHAVE = 1.0 - 1e-9  # R is taken this much smaller, so that floating point cannot break the inequality


def bounded(table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int) -> dict[Statistic, Integers]:
    """The weighted totals of rows that carry `unit` and `cell`."""
    if unit.nulls == "drop":
        table = table.filter(pl.col("unit").is_not_null())
    groups = min(unit.max_groups, cells)
    code, size = unit_codes(table["unit"])
    heavy = (np.bincount(code, minlength=size) > unit.max_rows * groups ** (1.0 / p))[code]
    light = table.filter(pl.Series(~heavy)).lazy().group_by("cell").agg(terms.aggregated()).collect(engine="streaming")
    pairs, weight = _pairs(table.filter(pl.Series(heavy)), code[heavy], terms, unit.max_rows * groups ** (1.0 / p), p)
    found = {}
    for statistic in terms.statistics:
        grid = 2**WEIGHT_BITS if statistic.bounds is None else 1
        whole = placed(terms.read(statistic, light) * grid, light["cell"].to_numpy(), cells)
        shares = np.trunc(terms.read(statistic, pairs).astype(np.float64) * weight * grid).astype(np.int64)
        found[statistic] = whole + placed(shares, pairs["cell"].to_numpy(), cells)
    return found


def unit_codes(units: pl.Series) -> tuple[Integers, int]:
    """An integer below the returned size for each unit, different for different ones; never a hash."""
    ranks = units.rank("dense").fill_null(0)  # null, where it is kept, is one unit of its own
    code = ranks.cast(pl.Int64).to_numpy()
    return code, int(code.max(initial=0)) + 1


def _pairs(rows: pl.DataFrame, code: Integers, terms: Terms, most: float, p: float) -> tuple[pl.DataFrame, Floats]:
    """The totals of each pair of unit and cell, and the weight of the pair's unit."""
    owned = rows.select(*terms.names(), "cell").with_columns(pl.Series("unit", code))
    pairs = owned.lazy().group_by("unit", "cell").agg(terms.aggregated()).collect(engine="streaming")
    size, owner = pairs[ROWS].to_numpy().astype(np.float64), pairs["unit"].to_numpy()
    norms = np.bincount(owner, weights=size**p) ** (1.0 / p)
    with np.errstate(divide="ignore"):
        return pairs, np.minimum(1.0, most * SHAVE / norms)[owner]
