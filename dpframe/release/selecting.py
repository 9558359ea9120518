"""A selection: the one row of the cell that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.frames import build
from dpframe.planning.plan import Plan
from dpframe.queries.statistics import Measured, Total


def selected(plan: Plan, measured: Mapping[Total, Measured], labels: Mapping[str, Any]) -> tuple[Any, int]:
    """The declared cell that the mechanism marked, as a frame of one row, and its place among the declared ones.

    Its dtype is that of all options, whichever was chosen.
    """
    (marks,) = measured.values()
    chosen = int(np.argmax(marks.values))
    return cell_at(plan, chosen, labels), chosen


def cell_at(plan: Plan, place: int, labels: Mapping[str, Any]) -> Any:
    """One declared cell, in the library of the answer."""
    return build.row_of(build.frame_of(labels, plan.library), place)
