"""A selection: the one row of the cell that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.frames import build
from dpframe.frames.source import library_of
from dpframe.plan.plan import Plan
from dpframe.queries.statistics import Measured, Statistic


def selected(plan: Plan, measured: Mapping[Statistic, Measured], labels: Mapping[str, Any]) -> Any:
    """One row: the declared cell that the mechanism marked. Its dtype is that of all options, whichever was chosen."""
    (marks,) = measured.values()
    return build.row_of(build.frame_of(labels, library_of(plan.frame)), int(np.argmax(marks.values)))
