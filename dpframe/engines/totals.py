"""The only look at rows: exact integer totals of each Total over the declared cells.

Each value becomes an integer on the Total's grid row by row, so that sums do not depend on order, threads, chunks or
pieces. Integer sums wrap modulo 2**64, and nothing here can fail on a value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.engines.check_counts import CheckTask
from dpframe.engines.choice import answered, engine_of
from dpframe.engines.columns import source
from dpframe.engines.compiled import kernels
from dpframe.engines.engine import Engine, Partial, Reading
from dpframe.engines.sums import places, row_totals, unit_blocks
from dpframe.engines.sums.addends import NUMBERS
from dpframe.engines.sums.cells import Integers, added
from dpframe.engines.sums.distinct import counted_values
from dpframe.engines.task import Task
from dpframe.errors import InvalidType
from dpframe.privacy import PrivacyUnit
from dpframe.queries.indicators import Checks
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import Total, VectorTotal, over

Totals = dict[Total, Integers]

WAY_CHANGES = tuple(  # numbers of rows from which on totals are computed in another way, or in more pieces
    sorted({source.FEW_ROWS, row_totals.FEW_ROWS, places.BLOCK, unit_blocks.BLOCK, kernels.FEW_ROWS, kernels.BLOCK})
)


def totals(
    frame: Any,
    query: Query,
    unit: PrivacyUnit,
    p: float,
    reading: Reading | None = None,
    secret: int = 0,
    checks: Checks | None = None,
) -> Totals:
    """One int64 per cell and Total, in grid steps; cells in which no row falls are zeros.

    Of `checks` the numbers stand under `NUMBERS`. They come of the same read; where an engine has its own way to
    totals, they are asked of it after.

    `p` is the norm that the noise covers, and in which units are weighted. Subtotals are sums of the
    totals of cells, modulo 2**64 as these. Of what is read in batches, `reading` says how. `secret` decides which
    groups a unit keeps that is in more of them than may count its values; the totals are bounded whatever it is.
    """
    engine = engine_of(frame, reading or Reading())
    task = Task.of(engine, query, unit, p, secret)
    partial = answered(engine, task, task if checks is None or gathers(query) else task.beside(checks))
    numbers: Totals = {}
    if checks is not None and isinstance(partial, Partial):
        there = NUMBERS in partial.totals
        numbers = {NUMBERS: _numbers(partial, checks) if there else _asked_numbers(engine, checks)}
        partial = replace(partial, totals={total: one for total, one in partial.totals.items() if total != NUMBERS})
    if gathers(query):
        partial = counted_values(partial, query.keys.cells)
    steps = _checked(partial, task)
    for level in query.shown.levels[1:]:
        for total in query.of_cells:
            steps[over(total, level.columns)] = added(steps[total], level.group, level.size)
    return {**steps, **numbers}


def check_counts(frame: Any, checks: Checks, reading: Reading | None = None) -> Integers:
    """The number of units that have each indicator, in the order of `Checks.indicators`, and no totals."""
    return _asked_numbers(engine_of(frame, reading or Reading()), checks)


def _asked_numbers(engine: Engine, checks: Checks) -> Integers:
    return _numbers(answered(engine, CheckTask.of(engine, checks)), checks)


def _numbers(partial: Any, checks: Checks) -> Integers:
    counts = partial.totals.get(NUMBERS) if isinstance(partial, Partial) else None
    if counts is None or counts.shape != (len(checks.indicators),) or counts.dtype != np.int64:
        raise InvalidType("fold must return the sum of what piece gave")
    return np.asarray(counts)


def _checked(partial: Partial, task: Task) -> Totals:
    """Refuse what an engine from outside may have made of its partials: rows would count more than is protected."""
    cells, expected = task.query.keys.cells, {}
    for total in task.query.of_cells:
        vector = total.vector if isinstance(total, VectorTotal) else None
        expected[total] = (cells if vector is None else cells // vector.cells * vector.folded,)
    if not isinstance(partial, Partial) or {total: cells.shape for total, cells in partial.totals.items()} != expected:
        raise InvalidType("fold must return the sum of what piece gave")
    if any(cells.dtype != np.int64 for cells in partial.totals.values()):
        raise InvalidType("fold must return the sum of what piece gave")
    return dict(partial.totals)
