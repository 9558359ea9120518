"""Results: exact totals become noisy, denoised, and a frame of the caller's library with its provenance.

A result is a table of cells with their numbers, or, of a choice, the cells that were chosen, in order. A released frame
that is rounded to its errors is the same release, with a record of the steps.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display.check_words import check_warning
from dpframe.display.possible import HIGH, LOW
from dpframe.display.rounding import Digits, rounded
from dpframe.errors import BoundsWarning, InvalidArgument
from dpframe.frames import build, changes, foreign, prints
from dpframe.frames.prints import Places
from dpframe.planning.bounds_suggestion import suggested
from dpframe.planning.plan import Plan
from dpframe.queries.query import ERROR, NOISY, chooses, suggestion_of
from dpframe.queries.statistics.capabilities import MoreColumns, answering_and_squares, choosing
from dpframe.queries.total import Measured, Total, VectorTotal, over
from dpframe.release import provenance
from dpframe.release.denoising import denoised, silent
from dpframe.release.provenance import Prepared

Totals = dict[Total, NDArray[np.int64]]
Receipt = Mapping[str, Any] | None

log = logging.getLogger("dpframe")

MOST_TOLD = 2**16  # noisy totals of one statistic that a record tells


def built(
    prepared: Prepared, exact: Totals, label: str | None, receipt: Receipt, drawn: Mapping[str, Any]
) -> tuple[Any, list[int] | None]:
    """The released frame, and of a choice the places of the chosen cells; `drawn` is the identity of the release.

    Everything here is noise and arithmetic on noisy numbers.
    """
    plan, labels = prepared.plan, prepared.labels
    measured = noisy_of(plan, exact)
    if chooses(plan.query):
        chosen, numbers = _chosen(plan, measured)
        frame = cells_at(plan, chosen, labels, numbers)
        record = provenance.record(prepared, frame, label, denoised={}, receipt=receipt, drawn=drawn)
        return build.attach(frame, record), chosen
    if suggestion_of(plan.query) is not None:
        columns, found = suggested(plan, measured)
        frame = build.frame_of(columns, plan.asked.library)
        record = provenance.record(
            prepared, frame, label, denoised={}, receipt=receipt, drawn={**drawn, "found": found}
        )
        return build.attach(frame, record), None
    columns, steps = numbers_of(plan, measured)
    frame = build.frame_of({**labels, **columns}, plan.asked.library)
    told = totals_behind(plan, measured)
    record = provenance.record(
        prepared, frame, label, denoised=steps, receipt=receipt, numbers=columns, drawn=drawn, totals=told
    )
    return build.attach(frame, record), None


def warn_of_checks(frame: Any, *, depth: int) -> None:
    """Warn where the bounds surely clipped or left out much, or none can be suggested: the answer comes anyway.

    Where a filter makes an error of the warning, it becomes a line of the log.
    """
    record = build.attached(frame) or {}
    words = check_warning(record) if "checks" in record else record.get("found", {}).get("problem")
    if words is None:
        return
    try:
        warnings.warn(words, BoundsWarning, stacklevel=depth + 1)
    except BoundsWarning:
        log.info("%s", words)


def noisy_of(plan: Plan, exact: Totals) -> dict[Total, Measured]:
    """The noisy numbers of each Total, one after the other: those before may decide what the next one measures.

    What they decide reads noisy numbers alone, and the sensitivity that the noise was made for holds for whatever it
    is: so the cost is that of looks that are all fixed before (``docs/assurance/privacy.md``, "Three looks").
    """
    measured: dict[Total, Measured] = {}
    for part in plan.parts:
        with silent():
            decided = None
            if isinstance(part.total, VectorTotal):  # then it may be decided by noisy numbers, of the parts before
                decided = part.total.decided(measured, part.mechanism)
            total = exact.pop(part.total) if decided is None else decided.measured(exact.pop(part.total)).ravel()
        noisy = part.mechanism.add_noise(total)
        values = noisy.astype(np.float64) * part.mechanism.grid
        measured[part.total] = Measured(values, part.mechanism, part.sensitivity.weighted, decided)
    return measured


def _chosen(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[list[int], dict[str, Any]]:
    """The places of the chosen cells, in order, and the numbers that are released of them."""
    (marks,), ((name, statistic),) = measured.values(), plan.query.statistics
    choice = choosing(statistic)
    assert choice is not None
    chosen = np.argsort(-marks.values, kind="stable")[: choice.chosen].tolist()
    if not choice.numbered:
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
        more: Mapping[str, Any] = {}
        if isinstance(statistic, MoreColumns):
            more = statistic.more({total: measured[total] for total in statistic.totals()})
        if steps[name] is not None:
            more = {NOISY: values, **more}
        if NOISY in more and plan.asked.denoising.keep_noisy:
            columns[name + NOISY] = more[NOISY]
        columns[name + ERROR] = errors
        columns |= {name + end: numbers for end, numbers in more.items() if end != NOISY}
    return columns, steps


def totals_behind(plan: Plan, measured: Mapping[Total, Measured]) -> dict[str, dict[str, list[list[float]]]]:
    """The noisy totals that means and other quotients were computed from, and those of squares, for their records.

    They are left out of large tables, whose records must stay readable: a public fact decides.
    """
    told: dict[str, dict[str, list[list[float]]]] = {}
    for name, statistic in plan.query.statistics:
        answering, squares = answering_and_squares(statistic)
        kinds = {"square_totals": squares, "totals": answering if getattr(statistic, "tells_totals", False) else ()}
        for kind, totals in kinds.items():
            values = [measured[over(total, by)].values for by in plan.query.shown.groupings for total in totals]
            if values and sum(one.size for one in values) <= MOST_TOLD:
                told.setdefault(name, {})[kind] = [one.ravel().tolist() for one in values]
    return told


def cells_at(plan: Plan, places: list[int], labels: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
    """Some declared cells with their numbers, in the library of the caller's frame. Dtypes are those of all options."""
    columns = {name: np.zeros(plan.query.keys.cells) for name in numbers}
    for name, values in numbers.items():
        columns[name][places] = values
    return build.rows_at(build.frame_of({**labels, **columns}, plan.asked.library), places)


ENDS = ("", NOISY, ERROR, LOW, HIGH)


def rounded_release(
    frame: Any, record: Mapping[str, Any], facts: Mapping[str, Any], places: Places, digits: Digits
) -> Any:
    """The frame rounded, its rows in their order; `facts` are its record with all of its statistics."""
    if any(map(foreign.is_for_sums, facts["measures"].values())):
        raise InvalidArgument(
            "round must not be used on bins for range queries (ranges=True): each would move, and their "
            "sums by more. Add them up first, or ask .dp.table() for a rounded table."
        )
    steps: dict[str, float] = {}
    numbers: dict[str, Any] = {}
    for name in facts["measures"]:
        mine = {name + end: build.numbers(frame, name + end) for end in ENDS if name + end in facts["columns"]}
        made = rounded(name, mine, digits)
        steps[name] = made.step
        numbers.update(made.columns)
    released = build.with_numbers(frame, numbers)
    if "shown" in record:
        changed = changes.release_of(released, record, facts, places)
        return changed.made(released, changed.cells, {"verb": "round", "steps": steps}, rounded=steps)
    return build.attach(released, _record(released, record, facts, places, steps))


def _record(
    frame: Any, record: Mapping[str, Any], facts: Mapping[str, Any], places: Places, steps: Mapping[str, float]
) -> dict[str, Any]:
    """The record of the rounded numbers, which keeps the hashes of those that were released."""
    rows, before = record.get("rows"), record.get("rounded", {})
    said = {
        "steps": dict(steps),
        "sha256": before.get("sha256", record["sha256"]),
        "rows": before.get("rows", rows and rows["sha256"]),
    }
    new = {**record, "rounded": said, "sha256": build.fingerprint(build.reordered(frame, places), record["columns"])}
    if rows is not None:
        numbers = [name for name in record["columns"] if name not in rows["labels"]]
        printed = prints.print_of(frame, rows["labels"], numbers, prints.layout_of(facts.get("levels")))
        assert printed is not None  # it had one before
        new["rows"] = {**rows, "sha256": printed.sha256}
    return new
