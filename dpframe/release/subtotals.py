"""Subtotals that add up: the fit of all levels of a rollup, and what the provenance says of it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise import sums
from dpframe.planning.plan import Plan
from dpframe.queries.levels import parents_of
from dpframe.queries.statistics import Statistic

Floats = NDArray[np.float64]


def consistent(values: Floats, statistic: Statistic, plan: Plan) -> tuple[Floats, list[dict[str, Any]]]:
    """The values of all levels, fitted so that each is the sum of those below it; counts become whole numbers."""
    query = plan.query
    laws = [plan.noise_of(statistic, by)[0] for by in reversed(query.groupings)]
    tree = sums.Tree.of(parents_of(query.levels))
    nonnegative = statistic.totals()[0].nonnegative
    found = sums.fitted(values, laws, tree, nonnegative=nonnegative, whole=statistic.whole)
    starts = np.cumsum([0, *(level.size for level in query.levels)])
    levels = [math.sqrt(found.variances[start:stop].mean()) for start, stop in pairwise(starts)]
    said = {"name": "consistent", "estimated_rmse": levels[0], "estimated_rmse_of_levels": levels}
    return found.values, [said]
