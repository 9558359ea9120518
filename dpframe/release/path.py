"""THE path: plan, charge, measure; everything after is noise and arithmetic on noisy numbers.

Before the charge a question is made ready: planned, tried on no rows, its labels and its record at hand. All of that
follows from public facts, so it is kept, and two calls share it where every one of these facts is the same and of the
same type: the question, the columns and dtypes of the frame, who is protected, the accounting and the limit. What
holds anything but plain values, such as a function of the caller's, is prepared anew each time, and so is what was
refused. The words of a call are no part of it.

Nothing before the charge sees a row, so an error may say what happened.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
from collections.abc import Hashable
from dataclasses import fields, is_dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from dpframe import noise
from dpframe.engines.schema import check_quiet, columns_of, dtypes_of_all, emptied
from dpframe.engines.totals import check_reading, check_workers
from dpframe.errors import InvalidArgument, ReleaseFailed, WrongDtype, shown
from dpframe.errors.tracebacks import OF_VALUES, said, tried
from dpframe.frames import build, foreign
from dpframe.frames.forked import check_threads
from dpframe.ledger import ambient
from dpframe.ledger.entries import Answer
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.statement import no_ledger
from dpframe.noise import nonce
from dpframe.planning.call import Call, Pricing
from dpframe.planning.plan import Plan
from dpframe.planning.plan_table import PlanTable
from dpframe.privacy import Price
from dpframe.queries.clipping import grid_steps
from dpframe.queries.query import ERROR, NOISY, chooses
from dpframe.queries.row_functions import RowFunction
from dpframe.queries.statistics.capabilities import MoreColumns, choosing
from dpframe.queries.vectors import row_functions
from dpframe.release import discovering, provenance, replay, results
from dpframe.release.denoising import denoised, is_own
from dpframe.release.measuring import measure, measured, noisy_checks
from dpframe.release.plans import make_plan
from dpframe.release.provenance import Prepared

MOST = 256  # questions that are kept
FEW_ROWS = 2**10  # of a result, up to which its question is kept

PLAIN = (Fraction, Decimal, date, timedelta)  # besides what a pickle writes by itself, and dataclasses of dpframe's


_kept: dict[Hashable, Prepared] = {}


def prepared(call: Call, ledger: Ledger) -> Prepared:
    """The question of a call, made ready; as it was, where the same was asked before."""
    check_reading(call.frame, memory=call.memory, progress=call.words.progress)
    check_threads(call.frame)
    key = _key(call, ledger)
    known = _kept.get(key)  # looked up once: another thread may clear them at any time
    if known is not None:
        check_quiet()  # which no plan knows
        return known
    plan = make_plan(call.frame, call.question, ledger)
    ready = tried_on_no_rows(call.frame, plan)
    if key is not None and plan.query.shown.cells <= FEW_ROWS:
        if len(_kept) >= MOST:
            _kept.clear()
        _kept[key] = ready
    return ready


def _key(call: Call, ledger: Ledger) -> Hashable:
    """All public facts that a plan depends on; None where one of them is no plain value, or there are many cells."""
    question = call.question
    if question.query.keys.unknown or question.query.keys.cells > FEW_ROWS:
        return None
    if not noise.is_secure():
        return None
    text = io.BytesIO()
    try:
        _Facts(text, protocol=5).dump((question, ledger.unit, ledger.accounting, ledger.limit_amount, ledger.checks))
        dtypes = dtypes_of_all(call.frame)
    except Exception:  # what is not plain may fail in any way, and so may the schema of a lazy frame
        return None
    return None if dtypes is None else (dtypes, text.getvalue())


class _Facts(pickle.Pickler):
    """Public facts as bytes: the same only where values and types are. It refuses what it does not know."""

    def reducer_override(self, value: Any) -> Any:
        kind: Any = type(value)
        if issubclass(kind, type):
            if value in PLAIN or _names(value) is not None:
                return NotImplemented
            raise pickle.PicklingError
        if kind is Fraction:  # one that was forged is of anything
            return Fraction, (value.numerator, value.denominator)
        if kind in PLAIN:
            return NotImplemented
        names = _names(kind)
        if names is None:
            raise pickle.PicklingError
        return kind, tuple(getattr(value, name) for name in names)


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass of dpframe's; None of anything else, of which nothing is known."""
    own = isinstance(kind, type) and kind.__module__.startswith("dpframe.") and is_dataclass(kind)
    return tuple(field.name for field in fields(kind)) if own else None


def tried_on_no_rows(frame: Any, plan: Plan) -> Prepared:
    """A plan whose call was tried on no rows: what is certain to fail must not cost anything.

    The rows are measured by the function that measures them after the charge. What dpframe itself makes of its numbers
    cannot fail; what a mechanism or a denoiser of the caller's says is tried.
    """
    check_workers(frame)
    for row in [row for total in plan.query.of_cells for row in row_functions(total)]:
        _try_function(row)
    empty = emptied(frame, columns_of(plan.query, plan.unit))
    rule = "keys, bins and bounds must suit their columns, and the dataframe engine fails on them even without rows"
    with tried(WrongDtype, rule, "Write keys in the dtype of their column, or cast the column."):
        exact = measured(plan, empty)
        if plan.query.keys.unknown:
            discovering.try_rest(plan, frame, empty, exact)
    library, names = plan.asked.library, ", ".join(plan.query.shown.names)
    rule = f"keys and bins must be values that one column of a result can hold, and those of {names} are not"
    with tried(InvalidArgument, rule, "Write them as one type, and times in one time zone."):
        labels = {name: build.column_of(name, values, library) for name, values in plan.query.shown.labels().items()}
    ready = Prepared(plan, labels)
    rule = "the call must have a provenance of plain JSON values, and it cannot be written"
    way_out, own = "Let keys and mechanism be numbers and strings of ordinary length.", _is_own(plan)
    with tried(InvalidArgument, rule, way_out, foreseen=OF_VALUES if own else (Exception,)):
        facts = _record_of_zeros(ready)
        json.dumps(facts)
        if not own and (problem := foreign.problem_of(facts)):
            raise ValueError(problem)  # then nobody could read it, and the result would not know itself
    _try_denoisers(plan)
    return ready


def _try_function(row: RowFunction) -> None:
    """Try a function of rows where its values lie on their bounds and between: of no rows, no engine calls it."""
    ends = [grid_steps(bounds) for _, bounds in row.columns]
    with tried(InvalidArgument, f"the function of {shown(row.words)} must not fail", "Try it with check_statistic."):
        given = row.given(*(np.array([lower, (lower + upper) // 2, upper]) for lower, upper in ends))
    if given.dtype.kind not in "biu" or given.shape != (3,):
        raise InvalidArgument(
            f"the function of {shown(row.words)} must give an integer for each row, not {given.dtype} values of shape "
            f"{given.shape} for 3 rows. Round them, as in np.floor(values).astype(np.int64)."
        )


def _is_own(plan: Plan) -> bool:
    """Tell whether all that speaks in a record is dpframe's: statistics, noise and accounting."""
    speakers = (*(statistic for _, statistic in plan.query.statistics), *plan.noises, plan.accounting)
    return all(is_own(type(speaker)) for speaker in speakers)


def _record_of_zeros(ready: Prepared) -> dict[str, Any]:
    """The whole record, as of an answer of zeros."""
    plan = ready.plan
    endings = ("", NOISY, ERROR) if plan.asked.denoising.keep_noisy else ("", ERROR)
    names = [
        name + end
        for name, statistic in plan.query.statistics
        for end in dict.fromkeys((*endings, *(statistic.endings if isinstance(statistic, MoreColumns) else ())))
        if not chooses(plan.query) or (choice := choosing(statistic)) is None or choice.numbered
    ]
    zeros = dict.fromkeys(names, np.zeros(0 if plan.query.keys.unknown else plan.query.shown.cells))
    frame = build.frame_of({**ready.labels, **zeros}, plan.asked.library)
    return provenance.record(ready, frame, None, denoised={})


def _try_denoisers(plan: Plan) -> None:
    """Let functions of the caller's denoise made-up values: 1, 2, 3, ... of their shape. dpframe's own cannot fail."""
    if not any(callable(denoiser) and not is_own(denoiser) for denoiser in plan.asked.denoising.steps):
        return
    values = np.arange(1.0, plan.query.shown.cells + 1.0)
    for _, statistic in plan.query.statistics:
        if not statistic.denoisable:
            continue
        try:
            denoised(values, statistic, plan, {})
        except ReleaseFailed as error:
            cause = error.__cause__
            raise InvalidArgument(
                "denoise must be a function of noisy values and their noise, but on the values "
                f"1, 2, 3, ... it raises {said(cause) if cause else 'an error'}. Nothing was charged. Fix the function."
            ) from cause


PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what a preview without a price tabulates

log = logging.getLogger("dpframe")


def release(call: Call) -> Any:
    """Answer a call privately: plan, try it on no rows, charge, measure."""
    pricing, words = call.question.pricing, call.words
    if pricing.within is None:
        Price.of(pricing.epsilon, pricing.delta, pricing.share)  # report a missing price before a missing ledger
    ledger = ambient.ledger_for(call.ledger)
    if ledger is None:
        raise no_ledger()
    ready = prepared(call, ledger)
    plan = ready.plan
    entry = replay.entry_of(ready, words, ledger)
    ambient.warn_unlimited(ledger, plan.unit, depth=6)
    ambient.warn_weak(ledger, plan.unit, plan.cost)
    receipt = ledger.take(entry)
    if isinstance(receipt, Answer):
        log.info("replayed %s of snapshot %s", plan.query, words.snapshot)
        return replay.replayed(plan, call.frame, receipt.content)
    exact = measure(plan, call)
    log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)
    if plan.query.keys.unknown:
        return discovering.released(ready, exact, call, entry, ledger, receipt)
    drawn = {"release": nonce(), **noisy_checks(plan, exact)}
    frame, chosen = results.built(ready, exact, words.label, receipt, drawn)
    kept = replay.kept(plan, call.frame, frame, chosen, entry, ledger)
    results.warn_of_checks(kept, depth=6)
    return kept


def preview(call: Call) -> Plan | PlanTable:
    """Plan a call. Reads no row, spends nothing."""
    ledger = ambient.ledger_for(call.ledger)
    several = _several(call.question.pricing)
    if several is None:
        return _previewed(call, ledger)
    if not several:
        raise InvalidArgument("epsilon must list at least one cost. Write for instance epsilon=[0.1, 1].")
    for pricing in several:
        if pricing.within is None:
            Price.of(pricing.epsilon, pricing.delta, pricing.share)
    calls = (replace(call, question=replace(call.question, pricing=pricing)) for pricing in several)
    table = PlanTable(tuple(partial(_previewed, each, ledger) for each in calls))
    _ = table.first  # what is wrong with the question is told now
    return table


def _several(pricing: Pricing) -> list[Pricing] | None:
    """The costs of a preview that names several or none; None where it names one."""
    if isinstance(pricing.within, (list, tuple)):
        return [replace(pricing, within=within) for within in pricing.within]
    priced = pricing.share is not None or pricing.within is not None
    prices = pricing.epsilon if pricing.epsilon is not None or priced else PRICES
    return [replace(pricing, epsilon=price) for price in prices] if isinstance(prices, (list, tuple)) else None


def _previewed(call: Call, ledger: Ledger | None) -> Plan:
    check_reading(call.frame, memory=call.memory, progress=call.words.progress)
    return replace(make_plan(call.frame, call.question, ledger), call=call)
