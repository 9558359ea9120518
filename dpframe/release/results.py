"""Results: exact totals are measured, get their noise, are denoised, and become a frame with its record.

One function measures the exact totals of a plan: on no rows before the charge, and on all rows after it. If reading
rows fails, the message of the engine is withheld, because it may show values. A result is a table of cells with their
numbers or, for a choice, the chosen cells in order. A released frame that is rounded to its errors is the same release,
with a record of the steps. Answers are stored under their label and snapshot, so that the same call again costs nothing
and returns the same answer. Denoising reads noisy numbers only. Subtotals are fitted together, so that they add up.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import denoise, noise
from dpframe.denoise import DENOISERS, choose, estimators, named_facts, sums, takes
from dpframe.display.rounding import AS_IT_WAS, HIGH, LOW, Digits, rounded
from dpframe.display.statements import check_warning, packed
from dpframe.engines.engine import Reading
from dpframe.engines.found_keys import forms, keyed, label_columns, read
from dpframe.engines.schema import columns_of, emptied
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.engines.totals import totals
from dpframe.errors import InvalidArgument, InvalidType, LedgerError, ReleaseFailed, shown
from dpframe.errors.tracebacks import STOPS, depth_outside, failed_read, warn_of_bounds, withheld
from dpframe.frames import build, changes, foreign, prints
from dpframe.frames.prints import Places
from dpframe.ledger.canonical import now, promised
from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Ledger
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.bounds_suggestion import suggested
from dpframe.planning.call import NO_WORDS, Call, Words
from dpframe.planning.graph import edges_among
from dpframe.planning.plan import Plan
from dpframe.planning.price import weights_of_units
from dpframe.privacy import PrivacyLoss
from dpframe.queries.bins import Instants
from dpframe.queries.discovery import found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.query import ERROR, NOISY, Query, Subtotals, chooses, gathers, parents_of, suggestion_of
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import Fitting, MoreColumns, answering_and_squares, choosing
from dpframe.queries.total import Measured, Total, VectorTotal, over
from dpframe.release import provenance
from dpframe.release.facts import facts_of
from dpframe.release.provenance import Prepared


def exact_totals(plan: Plan, frame: Any, reading: Reading | None = None, secret: int = 0) -> Any:
    """Return the exact totals of a frame; for unknown groups, a table of the keys with the weights of their units.

    The totals include the numbers of the plan's checks, which come from the same rows.

    `secret` decides which groups or keys of a unit count if it has more than are allowed. For any `secret`, what a unit
    adds is bounded.
    """
    found, p = found_axis(plan.query.keys) if plan.query.keys.unknown else None, plan.parts[0].mechanism.norm
    if found is not None:
        return keyed(frame, found, plan.unit, weights_of_units(found, plan.unit, p), secret, reading)
    checks = None if plan.checks is None else plan.checks.checks
    return totals(frame, plan.query, plan.unit, p, reading, secret, checks)


def measure(plan: Plan, call: Call) -> Any:
    """Measure the exact totals of a call; this step alone reads its rows."""
    reading = Reading(call.memory, call.words.progress)
    secret = noise.fresh_key() if gathers(plan.query) or plan.query.keys.unknown else 0
    return looked(lambda: exact_totals(plan, call.frame, reading, secret))


def noisy_checks(plan: Plan, exact: Any) -> dict[str, Any]:
    """Return the facts of a record on the checks of a plan, with their noise; empty if the plan has no checks.

    Their exact numbers are removed from the totals.
    """
    if plan.checks is None:
        return {}
    return {"checks": plan.checks.rows(with_noise(plan.checks.mechanism, exact.pop(OF_CHECKS)))}


def looked(look: Callable[[], Any]) -> Any:
    """Read rows after the charge, and return the result; if that fails, raise ReleaseFailed without the message.

    An interrupt passes, with a note that rows were being read.
    """
    try:
        result = withheld(look)
    except STOPS as stopped:
        stopped.add_note("dpframe was reading rows: the charge stands, and nothing was released.")
        raise
    if result is None:
        raise failed_read("the charge stands")
    return result


Totals = dict[Total, NDArray[np.int64]]
Receipt = Mapping[str, Any] | None

MOST_TOLD = 2**16  # the most noisy totals of one statistic that a record holds


def built(
    prepared: Prepared, exact: Totals, words: Words, receipt: Receipt, drawn: Mapping[str, Any]
) -> tuple[Any, list[int] | None]:
    """Return the released frame and, for a choice, the places of the chosen cells.

    `drawn` are facts for the record: the random name of the release, and its checks, which already have noise. This
    function adds noise, and then computes with noisy numbers only.
    """
    plan, labels = prepared.plan, prepared.labels
    measured = noisy_of(plan, exact)
    if not prepared.is_table:
        return _not_a_table(prepared, measured, words, receipt, drawn)
    columns, steps = numbers_of(plan, measured)
    frame = build.frame_of({**labels, **columns}, plan.question.library)
    told = totals_behind(plan, measured)
    record = provenance.record(
        prepared, frame, words, denoised=steps, receipt=receipt, numbers=columns, drawn=drawn, totals=told
    )
    return build.attach(frame, record), None


def _not_a_table(
    prepared: Prepared,
    measured: Mapping[Total, Measured],
    words: Words,
    receipt: Receipt,
    drawn: Mapping[str, Any],
) -> tuple[Any, list[int] | None]:
    """Return the released frame of a choice, with the places of the chosen cells, or that of suggested bounds."""
    plan, chosen = prepared.plan, None
    if chooses(plan.query):
        chosen, numbers = _chosen(plan, measured)
        frame = cells_at(plan, chosen, prepared.labels, numbers)
    else:
        columns, found = suggested(plan, measured)
        frame, drawn = build.frame_of(columns, plan.question.library), {**drawn, "found": found}
    record = provenance.record(prepared, frame, words, denoised={}, receipt=receipt, drawn=drawn)
    return build.attach(frame, record), chosen


def warn_of_checks(frame: Any, *, depth: int) -> None:
    """Warn if bounds surely clipped or left out much, or if no bounds can be suggested; nothing is refused.

    `depth` is the number of functions from here up to the line of the caller, which the warning names.
    """
    record = build.attached(frame) or {}
    words = check_warning(record) if "checks" in record else record.get("found", {}).get("problem")
    if words is not None:
        warn_of_bounds(words, depth=depth + 1)


def noisy_of(plan: Plan, exact: Totals) -> dict[Total, Measured]:
    """Return the noisy numbers of each Total, one after the other: earlier ones may decide what the next one measures.

    Such a decision reads noisy numbers only, and the sensitivity holds for each possible decision. So the cost is that
    of measurements that are all fixed beforehand (``docs/assurance/privacy.md``, "Three looks").
    """
    measured: dict[Total, Measured] = {}
    for part in plan.parts:
        with silent():
            decided = None
            if isinstance(part.total, VectorTotal):  # the noisy numbers of earlier parts may decide it
                decided = part.total.decided(measured, part.mechanism)
            total = exact.pop(part.total) if decided is None else decided.exact_sums(exact.pop(part.total)).ravel()
        noisy = with_noise(part.mechanism, total)
        values = noisy.astype(np.float64) * part.mechanism.grid
        measured[part.total] = Measured(values, part.mechanism, part.sensitivity.weighted, decided)
    return measured


def with_noise(mechanism: Mechanism, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the totals with their noise. If a caller's mechanism fails on them, its message is withheld."""
    try:
        with silent():
            noisy = mechanism.add_noise(totals)
        if not is_own(type(mechanism)):
            check_noisy(noisy, totals)
    except STOPS:
        raise
    except BaseException:  # its message may hold the totals
        raise ReleaseFailed(
            "the mechanism failed while it added noise: its message may hold exact totals and is withheld; the charge "
            "stands. Try it with dpframe.testing.check_mechanism."
        ) from None
    return noisy


def check_noisy(noisy: Any, totals: NDArray[np.int64]) -> None:
    """Refuse noise that does not return an int64 number of grid steps for each total."""
    if not isinstance(noisy, np.ndarray) or noisy.dtype != np.int64 or noisy.shape != totals.shape:
        given = f"{noisy.dtype} of shape {noisy.shape}" if isinstance(noisy, np.ndarray) else type(noisy).__name__
        raise InvalidType(f"add_noise must return int64 of shape {totals.shape}, as it was given, not {given}")


def _chosen(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[list[int], dict[str, Any]]:
    """Return the places of the chosen cells, in order, and the numbers that are released for them."""
    (marks,), ((name, statistic),) = measured.values(), plan.query.statistics
    choice = choosing(statistic)
    assert choice is not None
    chosen = np.argsort(-marks.values, kind="stable")[: choice.chosen].tolist()
    if not choice.numbered:
        return chosen, {}
    values, errors = plan.query.answer(statistic, measured)
    return chosen, {name: values[chosen], name + ERROR: errors[chosen]}


def numbers_of(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of numbers, and the denoising steps of each statistic."""
    columns: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    for name, statistic in plan.query.statistics:
        more: Mapping[str, Any] = {}
        if not is_own(type(statistic)):
            with _answering(statistic):
                values, errors, more = answered(statistic, plan.query, measured)
        else:
            values, errors = plan.query.answer(statistic, measured)
            if isinstance(statistic, MoreColumns):
                more = statistic.more({total: measured[total] for total in statistic.totals()})
        columns[name], steps[name] = denoised(values, statistic, plan, measured)
        if steps[name] is not None:
            more = {NOISY: values, **more}
        if NOISY in more and plan.question.denoising.keep_noisy:
            columns[name + NOISY] = more[NOISY]
        columns[name + ERROR] = errors
        columns |= {name + end: numbers for end, numbers in more.items() if end != NOISY}
    return columns, steps


def answered(
    statistic: Statistic, query: Query, measured: Mapping[Total, Measured]
) -> tuple[Floats, Floats, Mapping[str, Any]]:
    """Return the noisy values, errors and further columns of a caller's statistic, in 64 bits, as replays have them."""
    values, errors = query.answer(statistic, measured)
    more: Mapping[str, Any] = {}
    if isinstance(statistic, MoreColumns):
        more = statistic.more({total: measured[total] for total in statistic.totals()})

    def checked(numbers: Any) -> Any:
        array, rows = np.asarray(numbers), query.shown.cells
        if array.shape != (rows,) or array.dtype.kind not in "iuf":
            raise InvalidType(f"it must give numbers of shape ({rows},), not {array.dtype} of {array.shape}")
        return array.astype(np.int64 if array.dtype.kind in "iu" and array.dtype != np.uint64 else np.float64)

    return checked(values), checked(errors), {end: checked(numbers) for end, numbers in more.items()}


@contextmanager
def _answering(statistic: Statistic) -> Iterator[None]:
    """State that the charge stands if a caller's statistic fails. Its error is shown: it read only noisy numbers."""
    try:
        yield
    except Exception as error:
        if is_own(type(statistic)):
            raise
        raise ReleaseFailed(
            f"a statistic must answer whatever the noise is, and {statistic.verb} raised {type(error).__name__} on the "
            "noisy totals. The charge stands. Try it with dpframe.testing.check_statistic."
        ) from error


def totals_behind(plan: Plan, measured: Mapping[Total, Measured]) -> dict[str, dict[str, list[list[float]]]]:
    """Return the noisy totals behind means and other quotients, and those of squares, for the record.

    They are left out for large tables, so that records stay readable. The size of a table is public.
    """
    told: dict[str, dict[str, list[list[float]]]] = {}
    for name, statistic in plan.query.statistics:
        answering, squares = answering_and_squares(statistic)
        kinds = {"square_totals": squares, "totals": answering if getattr(statistic, "tells_totals", False) else ()}
        for kind, behind in kinds.items():
            values = [measured[over(total, by)].values for by in plan.query.shown.groupings for total in behind]
            if values and sum(one.size for one in values) <= MOST_TOLD:
                told.setdefault(name, {})[kind] = [one.ravel().tolist() for one in values]
    return told


def cells_at(plan: Plan, places: list[int], labels: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
    """Return some declared cells with their numbers, in the caller's library. Dtypes depend on all declared cells."""
    columns = {name: np.zeros(plan.query.keys.cells) for name in numbers}
    for name, values in numbers.items():
        columns[name][places] = values
    return build.rows_at(build.frame_of({**labels, **columns}, plan.question.library), places)


ENDS = ("", NOISY, ERROR, LOW, HIGH)


def rounded_release(
    frame: Any, record: Mapping[str, Any], facts: Mapping[str, Any], places: Places, digits: Digits
) -> Any:
    """Round the frame, and keep the order of its rows; `facts` are its record with all of its statistics."""
    if any(map(foreign.is_for_sums, facts["measures"].values())):
        raise InvalidArgument(
            "round must not be used on bins for range queries (ranges=True): each would move, and their "
            "sums by more. Write .dp.table(), which rounds what it shows."
        )
    steps: dict[str, float] = {}
    numbers: dict[str, Any] = {}
    for name in facts["measures"]:
        mine = {name + end: build.numbers(frame, name + end) for end in ENDS if name + end in facts["columns"]}
        made = rounded(name, mine, digits, facts["measures"][name])
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
    """Return the record of the rounded numbers, which keeps the hashes of the released ones."""
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
        assert printed is not None  # the frame had a print before
        new["rows"] = {**rows, "sha256": printed.sha256}
    return new


FORMAT = "dpframe.answer/1"


def entry_of(prepared: Prepared, words: Words, ledger: Ledger) -> Entry:
    """Return the entry for the ledger, with the public facts of the call if it has a label and a snapshot."""
    plan, pricing = prepared.plan, prepared.plan.question.pricing
    less = "Lower epsilon" if pricing.share is None else "Lower share"
    return Entry(
        now(),
        words.label,
        prepared.question,
        plan.unit,
        plan.amount,
        plan.cost,
        snapshot=words.snapshot,
        asked=None if words.snapshot is None else asked_of(plan, words, ledger),
        promises=(promise_of(prepared, words),),
        lower=less if pricing.within is None else "Raise within",
    )


def asked_of(plan: Plan, words: Words, ledger: Ledger) -> dict[str, str] | None:
    """Return the public facts that identify a call with a snapshot; if it has no label, warn and return None."""
    if not ledger.is_durable:
        raise LedgerError(
            "snapshot must be left out with a ledger in memory, which stores no results. "
            "Keep the ledger in a file to replay them: dpf.Ledger(..., path='clinic.ledger')."
        )
    if words.label is None:
        warnings.warn(
            "snapshot= without label= stores no result, so the same call is charged again. To replay it, "
            "pass a label too: label='ages'.",
            UserWarning,
            stacklevel=depth_outside(),
        )
        return None
    return facts_of(plan, ledger.unit or plan.unit, ledger.checks)


def promise_of(prepared: Prepared, words: Words) -> str:
    """Return the promise of the ledger's entry: the hash of the part of the record that does not depend on rows."""
    stamp = noise.stamp()
    if words.facts == NO_WORDS.facts and stamp is None:
        return prepared.promise
    return promised(provenance.of_call(prepared, words, stamp=stamp))


def content_of(
    frame: Any, chosen: list[int] | None, facts: dict[str, Any], found: dict[str, Any] | None = None
) -> bytes:
    """Return the bytes to store for a released frame: its provenance and its numbers in full, but no declared keys.

    For a selection, the places of the chosen cells are stored, since two cells may look alike as text. Keys that were
    found are stored by column, in the form in which they are compared, with the names of these forms.
    """
    if chosen is not None:
        labels = [name for axis in facts["cells"] for name in axis["columns"]]
        released = {name: frame[name].to_list() for name in facts["columns"] if name not in labels}
        more = {"numbers": released} if released else {}
        places = chosen[0] if len(chosen) == 1 else chosen
        return json.dumps({"format": FORMAT, "chosen": places, **more, "provenance": facts}).encode() + b"\n"
    columns: dict[str, Any] = {}
    numbers = []
    for name in facts["columns"]:
        values = frame[name].to_numpy()
        is_float = values.dtype == np.float64
        columns[name] = None if is_float else _told(values)
        numbers += [values.astype("<f8").tobytes()] if is_float else []
    header = {"format": FORMAT, "rows": len(frame), "columns": columns, **(found or {}), "provenance": facts}
    return json.dumps(header).encode() + b"\n" + b"".join(numbers)


def _told(values: NDArray[Any]) -> list[Any]:
    """Convert values other than floats to JSON values; dates become text."""
    told: list[Any] = (np.datetime_as_string(values, unit="D") if values.dtype.kind == "M" else values).tolist()
    return told


def replayed(plan: Plan, asked: Any, content: bytes) -> Any:
    """Rebuild a stored frame in the library of the answer. Only the schema of `asked`, the call's frame, is read."""
    text, numbers = content.split(b"\n", 1)
    header = json.loads(text)
    if chooses(plan.query):
        places = np.atleast_1d(header["chosen"]).tolist()
        frame = cells_at(plan, places, plan.query.shown.labels(), header.get("numbers", {}))
        return build.attach(frame, header["provenance"])
    if "found" in header:
        columns = labels_again(plan, asked, header["found"], header["forms"])
    else:
        columns = _as_recorded(plan.query.shown.labels(), header["provenance"])
    if any(len(values) != header["rows"] for values in columns.values()):
        raise LedgerError(OF_OTHER_KEYS)
    size = 8 * header["rows"]
    for name, values in header["columns"].items():
        if values is None:
            columns[name] = np.frombuffer(numbers[:size], "<f8").astype(np.float64)
        else:  # bounds of dates are stored as text
            are_dates = name in ("lower", "upper") and suggestion_of(plan.query) is not None
            columns[name] = np.array(values, dtype="datetime64[D]") if are_dates else values
        numbers = numbers[size:] if values is None else numbers
    frame = build.attach(build.frame_of(columns, plan.question.library), header["provenance"])
    if prints.places_of(frame, changes.viewed(header["provenance"])) is None:
        raise LedgerError(OF_OTHER_KEYS)
    return frame


def cost_of(content: bytes) -> PrivacyLoss:
    """Return what a stored answer has cost: the limit may have been raised since, and with it a share of it."""
    cost = json.loads(content.split(b"\n", 1)[0])["provenance"]["cost"]
    return PrivacyLoss(cost["epsilon"], cost["delta"])


OF_OTHER_KEYS = (
    "the stored answer has other keys than the dtype of a column declares today. Cast the column to "
    "the dtype that it had, or take another label or another snapshot."
)


def _as_recorded(labels: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels, with edges in the time zone of the record. Before 0.3, edges were in UTC without a zone."""
    zones = {end: axis.get("zone") for axis in record["cells"] for end in foreign.labels_of({"cells": [axis]})}
    made = dict(labels)
    for name, values in labels.items():
        if isinstance(values, Instants):
            made[name] = values.ticks if zones[name] is None else Instants(values.ticks, zones[name])
    return made


def kept(
    plan: Plan,
    asked: Any,
    frame: Any,
    chosen: list[int] | None,
    entry: Entry,
    ledger: Ledger,
    found: list[list[Any]] | None = None,
) -> Any:
    """Store the answer of a named release. If another call was faster, its answer is the answer of both."""
    if entry.name is None:
        return frame
    keys = None if found is None else {"found": found, "forms": stored_forms(plan, asked)}
    content = content_of(frame, chosen, build.record_of(frame) or {}, keys)
    stored = ledger.keep(entry, content)
    return frame if stored == content else replayed(plan, asked, stored)


def labels_of(plan: Plan, frame: Any, keys: Any) -> dict[str, Any]:
    """Return the columns that name the shown keys."""
    axis, library = found_axis(plan.query.keys), plan.question.library
    assert axis is not None
    nulls = axis.discovery is not None and axis.discovery.nulls
    columns = label_columns(frame, axis, keys)
    return {name: build.label_column(name, values, library, nulls=nulls) for name, values in columns.items()}


def stored_forms(plan: Plan, frame: Any) -> list[str]:
    """Return the stored form of each column of keys; a stored answer can be read only with the same forms."""
    axis = found_axis(plan.query.keys)
    assert axis is not None
    return forms(frame, axis)


def labels_again(plan: Plan, frame: Any, stored: list[list[Any]], kept: list[str]) -> dict[str, Any]:
    """Return the label columns of stored keys; refuse columns whose dtype has changed since."""
    now, axis = stored_forms(plan, frame), found_axis(plan.query.keys)
    assert axis is not None
    for column, before, form in zip(axis.columns, kept, now, strict=True):
        if before != form:
            raise LedgerError(
                f"column {column!r} must have the dtype that it had when this answer was stored, whose keys were "
                f"{shown(before)}, not {shown(form)}. Nothing was charged. Cast it back, or take another snapshot."
            )
    nothing = exact_totals(plan, emptied(frame, columns_of(plan.query, plan.unit)))  # for its dtypes
    return labels_of(plan, frame, read(stored, nothing))


Floats = NDArray[np.float64]


def consistent(values: Floats, statistic: Statistic, plan: Plan) -> tuple[Floats, list[dict[str, Any]]]:
    """Fit the values of all levels, so that each is the sum of its parts; counts become whole numbers."""
    laws = [plan.noise_of(statistic, by)[0] for by in plan.query.shown.groupings]
    fit = _of_cube if plan.query.subtotals == "cube" else _of_rollup
    fitted, variances = fit(values, laws, plan.query, statistic)
    levels = [math.sqrt(variance) for variance in variances]
    return fitted, [{"name": "consistent", "estimated_rmse": levels[0], "estimated_rmse_of_levels": levels}]


def _of_rollup(values: Floats, laws: list[Mechanism], query: Query, statistic: Statistic) -> tuple[Floats, list[float]]:
    """Return the fit of a tree, and the mean variance of each level before values became nonnegative."""
    tree = sums.Tree.of(parents_of(query.shown.levels))
    fitted = sums.fitted(values, laws[::-1], tree, nonnegative=_nonnegative(statistic), whole=statistic.whole)
    return fitted.values, [float(fitted.variances[start:stop].mean()) for start, stop in _places(query)]


def _of_cube(values: Floats, laws: list[Mechanism], query: Query, statistic: Statistic) -> tuple[Floats, list[float]]:
    """Return the fit of a table and its margins. Cells are whole steps, so the margins are their exact sums."""
    shape, sets = query.keys.shape, sums.margins(len(query.keys.axes))
    noisy = {
        kept: values[start:stop].reshape([shape[axis] for axis in kept])
        for kept, (start, stop) in zip(sets, _places(query), strict=True)
    }
    nonnegative = _nonnegative(statistic)
    fitted = sums.fitted_table(noisy, dict(zip(sets, laws, strict=True)), nonnegative=nonnegative)
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
    """Return the places at which the rows of each level start and stop."""
    return [*pairwise([0, *np.cumsum([level.size for level in query.shown.levels]).tolist()])]


ORDER_EXAMPLE = 'Write order=True for keys of one column, or name the column, as in order="month".'
ESTIMATES = ("estimated_rmse", "cell_rmse")  # valid for a first denoiser; after it, the noise has another law


def check_denoising(query: Query, law: Mechanism, denoisers: Any) -> None:
    """Refuse denoisers and subtotals for noise that is not additive; denoise="auto" then does nothing."""
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
    """Return the places of the axes with an order; refuse an `order` that the cells cannot have."""
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
    """Return the denoised values and the steps for the provenance, or the unchanged values and None."""
    law, denoising = plan.noise_of(statistic)[0], plan.question.denoising
    if denoising.denoise is not None and isinstance(statistic, Fitting):
        with silent(), _answering(statistic):
            fitted = statistic.fitted(values, measured)
        if fitted is not None:
            return fitted[0], [{"name": denoising.denoise, "chose": fitted[1]}]
    if denoising.denoise is None or not statistic.denoisable or not law.additive or law.keys_delta:
        return values, None  # noisy numbers that select the shown keys no longer have the law of the noise
    if plan.query.subtotals:
        return consistent(values, statistic, plan)
    axes = ordered_axes(plan.query.keys, denoising.order)
    cells = values.reshape(plan.query.keys.shape) if axes else values
    edges = None if denoising.graph is None else edges_among(plan.query.keys, denoising.graph)
    facts = {"nonnegative": statistic.totals()[0].norm(False).nonnegative, "order": axes, "graph": edges}
    facts["never_zero"] = not statistic.whole  # large noise is no evidence that sums of values are all 0
    said: list[dict[str, Any]] = []
    for denoiser in denoising.steps:
        cells, words = _step(cells, denoiser, law, facts)
        if said:  # after the first step, the noise has another law, so the error is unknown
            words = {name: said for name, said in words.items() if name not in ESTIMATES}
        said.append(words if edges is None or not takes(denoiser, "graph") else {**words, "edges": len(edges)})
    return cells.reshape(values.shape), said


def _step(cells: Floats, denoiser: Any, law: Any, facts: dict[str, Any]) -> tuple[Floats, dict[str, Any]]:
    if denoiser == "auto" or denoiser is denoise.auto:
        with silent():
            choice = choose.choose(cells, law, **facts)
        return choice.values, _said(choice)
    function: estimators.Denoiser = DENOISERS[denoiser] if isinstance(denoiser, str) else denoiser
    name = denoiser if isinstance(denoiser, str) else str(getattr(function, "__name__", "a function of the caller's"))
    is_taken = name.split(",", maxsplit=1)[0].replace("_", "-") in (*DENOISERS, AS_IT_WAS)  # as "none, non-negative"
    if is_taken and not is_own(function):
        name = f"{name} (your own)"  # what the record says of dpframe's denoiser does not hold for it
    try:
        with silent() if is_own(function) else nullcontext():
            result = np.asarray(function(cells.copy(), law, **_known(function, facts)), dtype=np.float64)
    except Exception as error:
        if is_own(function):
            raise
        cause = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # only the caller's code
        raise ReleaseFailed(
            f"denoise must be a function that does not fail, and {name} raised {type(error).__name__} on the noisy "
            "values. The charge stands. Ask again with another one."
        ) from cause
    if result.shape != cells.shape:
        raise ReleaseFailed(
            f"denoise must return values of the shape {cells.shape} that it got, and {name} returned {result.shape} "
            "for the noisy values. The charge stands. Ask again with another one."
        )
    if not np.isfinite(result).all():
        raise ReleaseFailed(
            f"denoise must return finite numbers, and {name} returned NaN or infinity for some of the noisy values, "
            "which may be negative. The charge stands. Ask again with another one."
        )
    return result, {"name": name}


def silent() -> np.errstate:
    """Return a context that silences NumPy, so that no setting of `numpy.seterr` makes a charged call fail."""
    return np.errstate(all="ignore")


def _said(choice: choose.Choice) -> dict[str, Any]:
    """Return the provenance of a choice: the denoiser, its expected errors, and whether the noise dominates."""
    said = {"name": "auto", "chose": choice.name, "estimated_rmse": choice.estimated_rmse}
    if choice.deviations is not None and choice.name != AS_IT_WAS and choice.values.size:
        said["cell_rmse"] = packed(choice.deviations)
    return said | ({"noise_dominates": True} if choice.dominated else {})


def is_own(made: Any) -> bool:
    """Return whether a function or a class is one of dpframe's."""
    return str(getattr(made, "__module__", "")).startswith("dpframe.")


def _known(function: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a denoiser takes. A call that names one with an order states that neighbors are alike."""
    said = facts if facts["order"] else {**facts, "order": True}
    told = named_facts(function, said)
    return {name: fact.copy() if isinstance(fact, np.ndarray) else fact for name, fact in told.items()}
