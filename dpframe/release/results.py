"""Results: exact totals become noisy, denoised, and a frame of the caller's library with its provenance.

A result is a table of cells with their numbers, or, of a choice, the cells that were chosen, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.frames import build
from dpframe.planning.plan import Plan
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.total import Measured, Total
from dpframe.release import provenance
from dpframe.release.denoising import denoised, silent

Totals = dict[Total, NDArray[np.int64]]
Receipt = Mapping[str, Any] | None


def built(
    plan: Plan, exact: Totals, receipt: Receipt, labels: Mapping[str, Any], label: str | None
) -> tuple[Any, list[int] | None]:
    """The released frame, and of a choice the places of the chosen cells. `labels` are the columns of the cells.

    Everything here is noise and arithmetic on noisy numbers.
    """
    measured = noisy_of(plan, exact)
    if plan.query.chooses:
        chosen, numbers = _chosen(plan, measured)
        frame = cells_at(plan, chosen, labels, numbers)
        return build.attach(frame, facts(plan, frame, {}, receipt, label)), chosen
    columns, steps = numbers_of(plan, measured)
    frame = build.frame_of({**labels, **columns}, plan.asked.library)
    return build.attach(frame, facts(plan, frame, steps, receipt, label, columns)), None


def noisy_of(plan: Plan, exact: Totals) -> dict[Total, Measured]:
    """The noisy numbers of each Total, one after the other: those before may decide what the next one measures.

    What they decide reads noisy numbers alone, and the sensitivity that the noise was made for holds for whatever it
    is: so the price is that of looks that are all fixed before (``docs/privacy.md``, "Three looks").
    """
    measured: dict[Total, Measured] = {}
    for part in plan.parts:
        with silent():
            decided = part.total.decided(measured, part.mechanism)  # by noisy numbers, of the parts before
            total = exact.pop(part.total) if decided is None else decided.measured(exact.pop(part.total)).ravel()
        noisy = part.mechanism.add_noise(total)
        values = noisy.astype(np.float64) * part.mechanism.grid
        measured[part.total] = Measured(values, part.mechanism, part.sensitivity.weighted, decided)
    return measured


def _chosen(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[list[int], dict[str, Any]]:
    """The places of the chosen cells, in order, and the numbers that are released of them."""
    (marks,), ((name, statistic),) = measured.values(), plan.query.statistics
    chosen = np.argsort(-marks.values, kind="stable")[: statistic.chosen].tolist()
    if not statistic.numbered:
        return chosen, {}
    values, errors = plan.query.answer(statistic, measured)
    return chosen, {name: values[chosen], name + ERROR: errors[chosen]}


def numbers_of(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of numbers, and by statistic what was done to denoise it."""
    columns: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    for name, statistic in plan.query.statistics:
        values, errors = plan.query.answer(statistic, measured)
        columns[name], steps[name] = denoised(values, statistic, plan, measured)
        more = plan.query.more(statistic, measured)
        if steps[name] is not None:
            more = {NOISY: values, **more}
        if NOISY in more and plan.asked.denoising.keep_noisy:
            columns[name + NOISY] = more[NOISY]
        columns[name + ERROR] = errors
        columns |= {name + end: numbers for end, numbers in more.items() if end != NOISY}
    return columns, steps


def stand_in(plan: Plan, labels: Mapping[str, Any]) -> Any:
    """A frame as the answer will be, with no rows: for its provenance, which must be writable. Of a choice all options.

    It is of Polars, whatever the answer is: only the names of its columns count.
    """
    if plan.query.chooses:
        return cells_at(plan, list(range(plan.query.keys.cells)), labels, _no_numbers(plan))
    endings = ("", NOISY, ERROR) if plan.asked.denoising.keep_noisy else ("", ERROR)
    names = [*labels]
    for name, statistic in plan.query.statistics:
        names += [name + end for end in dict.fromkeys([*endings, *statistic.endings])]
    return build.frame_of(dict.fromkeys(names, np.zeros(0)), "polars")


def cells_at(plan: Plan, places: list[int], labels: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
    """Some declared cells with their numbers, in the library of the caller's frame. Dtypes are those of all options."""
    columns = {name: np.zeros(plan.query.keys.cells) for name in numbers}
    for name, values in numbers.items():
        columns[name][places] = values
    return build.rows_at(build.frame_of({**labels, **columns}, plan.asked.library), places)


def _no_numbers(plan: Plan) -> dict[str, Any]:
    """The columns of numbers that a choice of all cells would have."""
    names = [name + end for name, statistic in plan.query.statistics if statistic.numbered for end in ("", ERROR)]
    return dict.fromkeys(names, np.zeros(plan.query.keys.cells))


def facts(
    plan: Plan,
    frame: Any,
    steps: dict[str, Any],
    receipt: Receipt,
    label: str | None,
    numbers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The provenance of a frame; `numbers` are its columns of numbers, where they are at hand."""
    return provenance.record(
        plan,
        frame,
        version=VERSION,
        label=label,
        denoised=steps,
        secure=noise.is_secure(),
        keep_noisy=plan.asked.denoising.keep_noisy,
        receipt=receipt,
        numbers=numbers,
    )
