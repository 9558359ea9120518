"""Subtotals that add up: the fit of all levels of a rollup or a cube, and what the provenance says of it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise import sums, tables
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.plan import Plan
from dpframe.queries.levels import Subtotals, parents_of
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic

Floats = NDArray[np.float64]


def consistent(values: Floats, statistic: Statistic, plan: Plan) -> tuple[Floats, list[dict[str, Any]]]:
    """The values of all levels, fitted so that each is the sum of its parts; counts become whole numbers."""
    laws = [plan.noise_of(statistic, by)[0] for by in plan.query.shown.groupings]
    fit = _of_cube if plan.query.subtotals == "cube" else _of_rollup
    fitted, variances = fit(values, laws, plan.query, statistic)
    levels = [math.sqrt(variance) for variance in variances]
    return fitted, [{"name": "consistent", "estimated_rmse": levels[0], "estimated_rmse_of_levels": levels}]


def _of_rollup(values: Floats, laws: list[Mechanism], query: Query, statistic: Statistic) -> tuple[Floats, list[float]]:
    """The fit of a tree, and the mean variance of each level before it was made non-negative."""
    tree = sums.Tree.of(parents_of(query.shown.levels))
    fitted = sums.fitted(values, laws[::-1], tree, nonnegative=_nonnegative(statistic), whole=statistic.whole)
    return fitted.values, [float(fitted.variances[start:stop].mean()) for start, stop in _places(query)]


def _of_cube(values: Floats, laws: list[Mechanism], query: Query, statistic: Statistic) -> tuple[Floats, list[float]]:
    """The fit of a table to its margins, which are then the sums of its cells: exact, for these are whole steps."""
    shape, sets = query.keys.shape, tables.margins(len(query.keys.axes))
    noisy = {
        kept: values[start:stop].reshape([shape[axis] for axis in kept])
        for kept, (start, stop) in zip(sets, _places(query), strict=True)
    }
    nonnegative = _nonnegative(statistic)
    fitted = tables.fitted_table(noisy, dict(zip(sets, laws, strict=True)), nonnegative=nonnegative)
    rollup = Subtotals(query.keys.axes, "rollup").levels
    tree = sums.Tree.of(parents_of(rollup))
    levels = [np.bincount(level.group, fitted.cells.ravel(), minlength=level.size) for level in rollup]
    step = 1.0 if statistic.whole else sums.step_of(laws)
    cells = sums.rounded(np.concatenate(levels) / step, tree, nonnegative=nonnegative)[: query.keys.cells]
    table = cells.reshape(shape)
    whole = [table.sum(axis=tuple(axis for axis in range(len(shape)) if axis not in kept)).ravel() for kept in sets]
    return np.concatenate(whole) * step + 0.0, [fitted.variances[kept] for kept in sets]


def _nonnegative(statistic: Statistic) -> bool:
    return statistic.totals()[0].norm(False).nonnegative


def _places(query: Query) -> list[tuple[int, int]]:
    """The places at which the rows of each level start and stop."""
    return [*pairwise([0, *np.cumsum([level.size for level in query.shown.levels]).tolist()])]
