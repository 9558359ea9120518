"""Denoising within a release: arrays of noisy numbers in, arrays out, and words for the provenance.

Subtotals add up: all levels of a rollup or a cube are fitted together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import denoise
from dpframe.denoise import choose, estimators, sums, tables
from dpframe.denoise.by_name import DENOISERS, named_facts, takes
from dpframe.display.statements import AS_IT_WAS, packed
from dpframe.errors import InvalidArgument, InvalidType, ReleaseFailed, shown
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.graph import edges_among
from dpframe.planning.plan import Plan
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query, Subtotals, parents_of
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import Fitting
from dpframe.queries.total import Measured, Total

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


ORDER_EXAMPLE = 'Write order=True for keys of one column, or name the column, as in order="month".'
ESTIMATES = ("estimated_rmse", "cell_rmse")  # of a first denoiser; after it the noise has another law


def check_denoising(query: Query, law: Mechanism, denoisers: Any) -> None:
    """Refuse a denoiser by name for noise that is not additive, which none is made for; "auto" then does nothing."""
    if law.additive:
        return
    if denoisers is not None and denoisers != "auto":
        raise InvalidArgument(
            f"denoise must be None for {law.name}, which is not additive noise: denoisers take a law that is the same "
            "for every total. Leave denoise out."
        )
    if query.subtotals:
        raise InvalidArgument(
            f"mechanism must be additive noise for a {query.subtotals}, which {law.name} is not: its levels could not "
            f"be made to agree. Leave mechanism or {query.subtotals} out."
        )


def ordered_axes(keys: Keys, order: object) -> tuple[int, ...]:
    """The places of the axes whose order means something; typed errors for an `order` that the cells cannot have."""
    bins = tuple(index for index, axis in enumerate(keys.axes) if axis.ordered)
    if order is None or order is False:
        return bins if order is None else ()
    if order is not True and not isinstance(order, str):
        raise InvalidType(f"order must be True, False or the name of a column, not {shown(order)}. {ORDER_EXAMPLE}")
    named = {axis.columns[0]: index for index, axis in enumerate(keys.axes) if len(axis.columns) == 1}
    if isinstance(order, str):
        if order not in named:
            among = f"one of {list(named)}" if named else "a column with keys of its own, not of combinations"
            raise InvalidArgument(f"order must name {among}, not {shown(order)}. {ORDER_EXAMPLE}")
        return tuple(sorted({*bins, named[order]}))
    unsaid = [index for index in named.values() if index not in bins]
    if len(keys.axes) == len(bins):
        if not bins:
            raise InvalidArgument("order must be left out of a single number, which has no neighbors. Drop it.")
        return bins
    if len(unsaid) != 1 or len(keys.axes) != len(bins) + 1:
        raise InvalidArgument(
            f"order must name the column that is in order, among {list(keys.columns)}, not be True. {ORDER_EXAMPLE}"
        )
    return tuple(sorted({*bins, *unsaid}))


def denoised(
    values: Floats, statistic: Statistic, plan: Plan, measured: Mapping[Total, Measured]
) -> tuple[Floats, Any]:
    """The denoised values in their cells' shape, and what the provenance says of them; or the values as they are."""
    law, denoising = plan.noise_of(statistic)[0], plan.question.denoising
    if denoising.denoise is not None and isinstance(statistic, Fitting):
        with silent():
            fitted = statistic.fitted(values, measured)
        if fitted is not None:
            return fitted[0], [{"name": denoising.denoise, "chose": fitted[1]}]
    if denoising.denoise is None or not statistic.denoisable or not law.additive or law.keys_delta:
        return values, None  # numbers that decided which keys are shown are not of the law that denoisers know
    if plan.query.subtotals:
        return consistent(values, statistic, plan)
    axes = ordered_axes(plan.query.keys, denoising.order)
    cells = values.reshape(plan.query.keys.shape) if axes else values
    edges = None if denoising.graph is None else edges_among(plan.query.keys, denoising.graph)
    facts = {"nonnegative": statistic.totals()[0].norm(False).nonnegative, "order": axes, "graph": edges}
    facts["never_zero"] = not statistic.whole  # sums of values, which are not 0 together because noise is large
    said: list[dict[str, Any]] = []
    for denoiser in denoising.steps:
        cells, words = _step(cells, denoiser, law, facts)
        if said:  # the noise is no longer of that law once something was done to it, so nothing is known of the error
            words = {name: said for name, said in words.items() if name not in ESTIMATES}
        said.append(words if edges is None or not takes(denoiser, "graph") else {**words, "edges": len(edges)})
    return cells.reshape(values.shape), said


def _step(cells: Floats, denoiser: Any, law: Any, facts: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
    if denoiser == "auto" or denoiser is denoise.auto:
        with silent():
            choice = choose.choose(cells, law, **facts)
        return choice.values, _said(choice)
    function: estimators.Denoiser = DENOISERS[denoiser] if isinstance(denoiser, str) else denoiser
    name = denoiser if isinstance(denoiser, str) else getattr(function, "__name__", "a function of the caller's")
    try:
        with silent() if is_own(function) else nullcontext():
            result = np.asarray(function(cells.copy(), law, **_known(function, facts)), dtype=np.float64)
    except Exception as error:
        if is_own(function):
            raise
        cause = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # the caller's code alone
        raise ReleaseFailed(
            f"denoise must be a function that does not fail, and {name} raised {type(error).__name__} on the noisy "
            "values. The charge stands. Ask again with another one."
        ) from cause
    if result.shape != cells.shape:
        raise InvalidArgument(f"denoise must return values of the shape {cells.shape} that it got, not {result.shape}.")
    return result, {"name": name}


def silent() -> np.errstate:
    """The arithmetic of dpframe is silent, whatever `numpy.seterr` asks: no call fails of it that was charged."""
    return np.errstate(all="ignore")


def _said(choice: choose.Choice) -> dict[str, Any]:
    """The provenance of a choice: what it was, the errors it expects, and whether the noise drowns the differences."""
    said = {"name": "auto", "chose": choice.name, "estimated_rmse": choice.estimated_rmse}
    if choice.deviations is not None and choice.name != AS_IT_WAS and choice.values.size:
        said["cell_rmse"] = packed(choice.deviations)
    return said | ({"noise_dominates": True} if choice.dominated else {})


def is_own(function: Any) -> bool:
    """Tell whether a denoiser is one of dpframe's."""
    return str(getattr(function, "__module__", "")).startswith("dpframe.")


def _known(function: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that a denoiser is told. To name one that takes an order is to say that neighboring cells are alike."""
    said = facts if facts["order"] else {**facts, "order": True}
    return named_facts(function, said)
