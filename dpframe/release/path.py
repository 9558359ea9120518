"""The release path: plan, charge, measure. All later steps add noise, or compute with noisy numbers.

A plan follows from a question, the names and dtypes of a frame, and the terms of a ledger; no row is read.

Before the charge, a question is prepared: it is planned and tried on no rows, and its labels and record are made. All
of this follows from public facts, so it is cached. Two calls share it if all these facts are equal and of the same
types: the question, the columns and dtypes of the frame, the privacy unit, the accounting and the limit. A question is
prepared again each time if it holds anything but plain values, such as a caller's function, or if it was refused. The
words of a call are no part of it.

Nothing before the charge reads a row, so an error may state what happened.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from dpframe import noise
from dpframe.engines.schema import booleans, check, check_quiet, columns_of, dtypes_of_all, emptied
from dpframe.engines.totals import check_reading, check_spill, check_workers
from dpframe.errors import InvalidArgument, MissingArgument, ReleaseFailed, WrongDtype, is_one_of, shown
from dpframe.errors.tracebacks import OF_VALUES, said, tried
from dpframe.exact import exact_delta
from dpframe.frames import build, foreign
from dpframe.frames.kinds import check_threads
from dpframe.ledger.entries import Answer
from dpframe.ledger.ledger import Ledger, PlanTerms, ledger_for, warn_of_cost
from dpframe.ledger.statement import no_ledger
from dpframe.noise import nonce
from dpframe.planning.auto import Accuracy, smallest_epsilon
from dpframe.planning.bounds_suggestion import planned_noise
from dpframe.planning.call import NO_WORDS, Call, Noising, Pricing, Question
from dpframe.planning.check_pricing import AskedChecks, asked_checks
from dpframe.planning.graph import check_graph
from dpframe.planning.plan import Plan, PlanTable, expected_errors
from dpframe.planning.price import CHOICE, Priced, check_asked, priced, priced_with_keys
from dpframe.planning.sensitivity import one_group, uses_rows
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.contributions import check_samples
from dpframe.queries.limits import AUTO, grid_steps, refuse_many
from dpframe.queries.query import ERROR, NOISY, Query, chooses, suggestion_of
from dpframe.queries.row_functions import RowFunction
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import MoreColumns, Protecting, Targeted, check_size, choosing
from dpframe.queries.total import FunctionTotal, Measured, Total, VectorTotal, over
from dpframe.queries.vectors import row_functions
from dpframe.release import discovering, provenance, results
from dpframe.release.provenance import Prepared
from dpframe.release.results import (
    check_denoising,
    check_noisy,
    denoised,
    exact_totals,
    is_own,
    measure,
    noisy_checks,
    ordered_axes,
)

PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # the costs in the table of a preview that names none

log = logging.getLogger("dpframe")

MOST = 256  # cached questions
FEW_ROWS = 2**10  # the most rows of a result whose question is cached

PLAIN = (Fraction, Decimal, date, timedelta)  # plain, like what pickle writes by itself and dpframe's dataclasses

_kept: dict[Hashable, Prepared] = {}


def release(call: Call) -> Any:
    """Answer a call privately: plan, try it on no rows, charge, measure."""
    pricing, words, ledger = call.question.pricing, call.words, ledger_for(call.ledger)
    if ledger is None:
        if pricing.within is None:
            Price.of(pricing.epsilon, pricing.delta, pricing.share)  # reports a missing cost before a missing ledger
        raise no_ledger()
    ready = prepared(call, ledger)
    plan = ready.plan
    check_spill(call.frame, plan.unit)
    entry = results.entry_of(ready, words, ledger)
    warn_of_cost(ledger, plan.unit, plan.cost)
    receipt = ledger.take(entry)
    if isinstance(receipt, Answer):
        log.info("replayed %s of snapshot %s", plan.query, words.snapshot)
        return results.replayed(plan, call.frame, receipt.content)
    exact = measure(plan, call)
    if log.isEnabledFor(logging.INFO):
        log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.protects)
    if plan.query.keys.unknown:
        return discovering.released(ready, exact, call, entry, ledger, receipt)
    drawn = {"release": nonce(), **noisy_checks(plan, exact)}
    frame, chosen = results.built(ready, exact, words, receipt, drawn)
    if entry.asked is not None:  # the release has a name, under which it is stored
        frame = results.kept(plan, call.frame, frame, chosen, entry, ledger)
    if plan.checks is not None or not ready.is_table:
        results.warn_of_checks(frame, depth=6)
    return frame


def prepared(call: Call, ledger: Ledger) -> Prepared:
    """Prepare the question of a call, or take it from the cache if the same was asked before."""
    check_reading(call.frame, memory=call.memory, progress=call.words.progress)
    check_threads(call.frame)
    terms = ledger.terms
    key = _key(call, terms)
    known = _kept.get(key)  # looked up once: another thread may clear the cache at any time
    if known is not None:
        check_quiet()  # no plan depends on these settings
        return known
    plan = make_plan(call.frame, call.question, terms)
    ready = tried_on_no_rows(call.frame, plan)
    if key is not None and plan.query.shown.cells <= FEW_ROWS:
        if len(_kept) >= MOST:
            _kept.clear()
        _kept[key] = ready
    return ready


def make_plan(frame: Any, question: Question, terms: PlanTerms) -> Plan:
    """Plan a question from public facts alone. It reads only the names and dtypes of the frame."""
    pricing = question.pricing
    price = Price.of(pricing.epsilon, pricing.delta, pricing.share) if pricing.within is None else None
    unit = _unit_of(question.query, question.noising, terms)
    query = question.query.each(lambda one: one.protecting(unit) if isinstance(one, Protecting) else one)
    checked = check(frame, query, unit)
    unit = unit if checked.keys is query.keys else _unit_of(checked, question.noising, terms)  # keys of a dtype
    _check_bounds(checked, unit)
    if question.population:
        check_samples(checked, unit)
    most, denoising = question.max_cells, question.denoising
    cells = (checked.keys if checked.subtotals else checked.shown).cells
    refuse_many("keys and bins must make", "cells", cells, most)  # also keys that a dtype declares
    if checked.subtotals == "cube":
        refuse_many("cube must make", "rows", checked.shown.cells, most)
    if checked.keys.unknown:
        check_asked(order=denoising.order, graph=denoising.graph)
    ordered_axes(checked.keys, denoising.order)  # a wrong order is refused before anything is charged
    if denoising.graph is not None or not is_one_of(denoising.denoise, (None, "auto")):  # these need no graph
        check_graph(checked, denoising.graph, denoising.denoise)
    mechanism = question.noising.mechanism
    by_choice = is_one_of(mechanism, (CHOICE,))
    if by_choice and not is_one_of(pricing.checks, (None, AUTO, False)):
        raise InvalidArgument(
            "checks must be left out with mechanism='exponential', which adds no noise to a number. Drop checks."
        )
    of_dtypes = partial(booleans, frame, checked)
    asked = None if by_choice else asked_checks(checked, unit, pricing.checks, terms.checks, of_dtypes)
    if (bounds := suggestion_of(checked)) is not None:
        planned_noise(bounds, unit, terms.accounting)  # its errors are raised before the charge

    def priced_at(price: Price, checks: AskedChecks | None) -> Priced:
        more: dict[str, Any] = {} if checks is None else {"checks": checks}
        priced_query = (priced_with_keys if checked.keys.unknown else priced)(
            checked,
            unit=unit,
            price=price,
            mechanism=mechanism,
            accounting=terms.accounting,
            limit=terms.limit,
            weights=pricing.weights,
            **more,
        )
        check_denoising(checked, priced_query.parts[0].mechanism, denoising.denoise)
        return priced_query

    def priced_with(checks: AskedChecks | None) -> tuple[Priced, Accuracy | None]:
        if price is not None:
            return priced_at(price, checks), None
        return _priced_within(checked, pricing, lambda price: priced_at(price, checks))

    priced_query, accuracy = priced_with(asked)
    more: dict[str, Any] = {}
    if priced_query.checks is not None and priced_query.checks.tell_nothing(pricing.size):  # true for less epsilon too
        more["unseen"] = priced_query.checks
        priced_query, accuracy = priced_with(None)
    elif priced_query.checks is not None and callable(mechanism) and is_one_of(pricing.checks, (None, AUTO)):
        more["known_by"] = priced_with(None)[0].noises
    return priced_query.plan(question, unit, terms.accounting, accuracy=accuracy, **more)


def _unit_of(query: Query, noising: Noising, terms: PlanTerms) -> PrivacyUnit:
    """Return the unit with the bounds of this question; a question about contributions has none."""
    unit = terms.unit_for(noising.unit)
    if query.keys.counted == "units":
        if unit.column is None:
            raise InvalidArgument(
                "unit must have a column for contributions: where each row is a unit, each contributes one row. "
                'Name the column that identifies the person: dpf.Ledger(epsilon=..., unit="patient").'
            )
        return unit.who
    bounded = unit.bounded(noising.max_rows, noising.max_groups)
    if unit.column is not None and one_group(query) and not uses_rows(query):
        return bounded if bounded.is_bounded else unit.bounded(1, 1)  # neither bound is used: each unit counts once
    return bounded


def _check_bounds(query: Query, unit: PrivacyUnit) -> None:
    """Refuse a question that needs contribution bounds and has none; one about contributions needs none."""
    if query.keys.counted == "units":
        return
    if unit.column is not None and not unit.is_bounded and not uses_rows(query):
        raise MissingArgument(
            f"max_groups must be given, because the ledger protects each {unit.one}. "
            "Write max_groups=2, or estimate it with df.dp.contributions(by=..., epsilon=0.05)."
        )
    _ = unit.contribution


def _priced_within(query: Query, pricing: Pricing, priced_at: Callable[[Price], Priced]) -> tuple[Priced, Accuracy]:
    """Plan the question at the smallest epsilon whose expected errors meet the targets, and return both."""
    for name, value in (("epsilon", pricing.epsilon), ("share", pricing.share)):
        if value is not None:
            raise InvalidArgument(f"within and {name} must not both be given: each says what the call costs. Keep one.")
    accuracy = Accuracy.of(pricing.within, pricing.confidence)
    targets = accuracy.targets(tuple(name for name, _ in query.statistics))
    for name, statistic in query.statistics:
        if isinstance(statistic, Targeted):
            statistic.check_target(name, targets[name], pricing.size)
        elif statistic.sized:
            check_size(pricing.size, f"{statistic.verb} ({name})")
    delta = None if pricing.delta is None else exact_delta(pricing.delta)

    def errors_at(epsilon: Fraction) -> dict[str, float]:
        priced_query = priced_at(Price(epsilon, delta))
        return expected_errors(priced_query.query, priced_query.parts, pricing.size, accuracy.confidence)

    priced_query = priced_at(Price(smallest_epsilon(targets, errors_at), delta))
    left = expected_errors(priced_query.query, priced_query.parts, pricing.size, CONFIDENCE)
    steps = {part.total: part.mechanism.grid for part in priced_query.parts}
    for name, statistic in priced_query.query.statistics:
        step = steps.get(statistic.totals()[0], 0.0) if statistic.denoisable else 0.0  # others have no known step
        target = targets[name]
        if target == 0.0 or (target < step / 2 and left[name] == 0.0):
            raise InvalidArgument(
                f"within must be larger than {target:g} for {name}, whose result would be exact in 95 of 100 cases. "
                "Write a larger target error, such as within=10."
            )
    return priced_query, accuracy


def tried_on_no_rows(frame: Any, plan: Plan) -> Prepared:
    """Try the call of a plan on no rows, so that a call that is certain to fail costs nothing.

    The same function measures the rows here and after the charge. dpframe's own computations with noisy numbers cannot
    fail; a caller's mechanisms, statistics and denoisers are tried.
    """
    check_workers(frame)
    for total in plan.query.of_cells:
        for row in row_functions(total) if isinstance(total, FunctionTotal | VectorTotal) else ():
            try_function(row)
    empty = emptied(frame, columns_of(plan.query, plan.unit))
    rule = "keys, bins and bounds must suit their columns, and the dataframe engine fails on them even without rows"
    with tried(WrongDtype, rule, "Write keys in the dtype of their column, or cast the column."):
        exact = exact_totals(plan, empty)
        if plan.query.keys.unknown:
            discovering.try_rest(plan, frame, empty, exact)
    own = _is_own(plan)
    if not plan.query.keys.unknown:
        _try_mechanisms(plan, exact)
    library, names = plan.question.library, ", ".join(plan.query.shown.names)
    rule = f"keys and bins must be values that one column of a result can hold, and those of {names} are not"
    with tried(InvalidArgument, rule, "Write them as one type, and times in one time zone."):
        labels = {name: build.column_of(name, values, library) for name, values in plan.query.shown.labels().items()}
    has_answers = not (chooses(plan.query) or suggestion_of(plan.query) is not None)
    is_table = has_answers and not plan.query.keys.unknown
    if has_answers and not own:
        _try_answers(plan, exact)
    ready = Prepared(plan, labels, str(plan.query), is_table)
    rule = "the call must have a provenance of plain JSON values, and it cannot be written"
    way_out = "Let keys and mechanism be numbers and strings of ordinary length."
    with tried(InvalidArgument, rule, way_out, foreseen=OF_VALUES if own else (Exception,)):
        facts = _record_of_zeros(ready)
        json.dumps(facts)
        if not own and (problem := foreign.problem_of(facts)):
            raise ValueError(problem)  # such a record could not be read, and its frame would not be recognized
    _try_denoisers(plan)
    return ready


def try_function(row: RowFunction) -> None:
    """Try a function of rows on values at its bounds and between them: without rows, no engine calls it."""
    ends = [grid_steps(bounds) for _, bounds in row.columns]
    with tried(InvalidArgument, f"the function of {shown(row.words)} must not fail", "Try it with check_statistic."):
        given = row.given(*(np.array([lower, (lower + upper) // 2, upper]) for lower, upper in ends))
    if given.dtype.kind not in "biu" or given.shape != (3,):
        raise InvalidArgument(
            f"the function of {shown(row.words)} must give an integer for each row, not {given.dtype} values of shape "
            f"{given.shape} for 3 rows. Round them, as in np.floor(values).astype(np.int64)."
        )


def _try_mechanisms(plan: Plan, exact: dict[Any, Any]) -> None:
    """Try a caller's mechanisms on zeros, one zero for each total to measure. What dpframe calibrates cannot fail."""
    of_caller = callable(plan.question.noising.mechanism)  # may give a mechanism of dpframe any scale
    for part in plan.parts:
        if is_own(type(part.mechanism)) and not of_caller:
            continue
        rule = f"mechanism must add noise to whole numbers, and {shown(part.mechanism.name)} fails on zeros"
        with tried(InvalidArgument, rule, "Try it with dpframe.testing.check_mechanism.", foreseen=(Exception,)):
            zeros = np.zeros_like(exact[part.total])
            check_noisy(part.mechanism.add_noise(zeros), zeros)


def _try_answers(plan: Plan, exact: dict[Any, Any]) -> None:
    """Try a caller's statistics on totals of zero. dpframe's own cannot fail."""
    own = [(name, statistic) for name, statistic in plan.query.statistics if not is_own(type(statistic))]
    for name, statistic in own:
        check_verb(name, statistic)
    if plan.query.keys.unknown:
        plan, exact = discovering.of_one_key(plan), {part.total: np.zeros(1) for part in plan.parts}
    zeros = {
        part.total: Measured(np.zeros(exact[part.total].shape), part.mechanism, part.sensitivity.weighted)
        for part in plan.parts
        if part.total in exact  # it lacks a caller's Total with `by`, which is then refused
    }
    for name, statistic in own:
        if any(getattr(total.vector, "before", ()) for total in statistic.totals() if isinstance(total, VectorTotal)):
            continue  # noisy numbers of an earlier stage decide what it measures
        rule = f"a statistic must answer whatever its noisy totals are, and {name} ({statistic.verb}) fails on zeros"
        with tried(InvalidArgument, rule, "Try it with dpframe.testing.check_statistic.", foreseen=(Exception,)):
            values, *_ = results.answered(statistic, plan.query, zeros)
            if not np.isfinite(values).all():
                raise ValueError("values that are not finite")
        if statistic.denoisable and not is_own(type(statistic).answer):
            _check_denoisable(name, statistic, plan, zeros)


def check_verb(name: str, statistic: Statistic) -> None:
    """Refuse a caller's answer under a verb of dpframe: records would be read as those of dpframe's statistic."""
    verb, kinds = statistic.verb, type(statistic).__mro__
    if not is_own(type(statistic).answer) and any(is_own(kind) and vars(kind).get("verb") == verb for kind in kinds):
        raise InvalidArgument(
            f"verb must be a word of its own, since {name} answers otherwise than dpframe's {verb}. Nothing was "
            f'charged. Write verb: ClassVar[str] = "my_{verb}" in its class.'
        )


def _check_denoisable(name: str, statistic: Statistic, plan: Plan, zeros: dict[Total, Measured]) -> None:
    """Refuse a denoisable statistic whose values are not its one noisy Total, which denoisers assume."""
    rule = f"a statistic must answer whatever its noisy totals are, and {name} ({statistic.verb}) fails on some"
    with tried(InvalidArgument, rule, "Try it with dpframe.testing.check_statistic.", foreseen=(Exception,)):
        some = {
            total: replace(one, values=np.arange(float(one.values.size)).reshape(one.values.shape) - 2.5)
            for total, one in zeros.items()
        }
        values, *_ = results.answered(statistic, plan.query, some)
    first, *others = statistic.totals()
    noisy = np.concatenate([some[over(first, by)].values for by in plan.query.shown.groupings])
    if others or not np.array_equal(values, noisy):
        raise InvalidArgument(
            f"denoisable must be False, since values of {name} ({statistic.verb}) are not those of its one noisy "
            "Total. Nothing was charged. Write denoisable: ClassVar[bool] = False."
        )


def _is_own(plan: Plan) -> bool:
    """Return whether all objects that describe themselves in a record are dpframe's own."""
    speakers = (
        *(statistic for _, statistic in plan.query.statistics),
        *(part.mechanism for part in plan.parts),
        plan.accounting,
    )
    return all(is_own(type(speaker)) for speaker in speakers)


def _record_of_zeros(ready: Prepared) -> dict[str, Any]:
    """Return the whole record for an answer of zeros."""
    plan, asked = ready.plan, ready.plan.question
    endings = ("", NOISY, ERROR) if asked.denoising.keep_noisy else ("", ERROR)
    names = [
        name + end
        for name, statistic in plan.query.statistics
        for end in dict.fromkeys((*endings, *(statistic.endings if isinstance(statistic, MoreColumns) else ())))
        if ready.is_table or (choice := choosing(statistic)) is None or choice.numbered
    ]
    zeros = dict.fromkeys(names, np.zeros(0 if plan.query.keys.unknown else plan.query.shown.cells))
    frame = build.frame_of({**ready.labels, **zeros}, asked.library)
    return provenance.record(ready, frame, NO_WORDS, denoised={})


def _try_denoisers(plan: Plan) -> None:
    """Try a caller's denoisers on made-up values 1, 2, 3, ..., one for each cell. dpframe's own cannot fail."""
    if not any(callable(denoiser) and not is_own(denoiser) for denoiser in plan.question.denoising.steps):
        return
    values = np.arange(1.0, plan.query.shown.cells + 1.0)
    for _, statistic in plan.query.statistics:
        if not statistic.denoisable:
            continue
        try:
            denoised(values, statistic, plan, {})
        except ReleaseFailed as error:
            cause = error.__cause__
            fails = f"raises {said(cause)}" if cause else "returns values of another shape, or NaN or infinity"
            raise InvalidArgument(
                "denoise must be a function of noisy values and their noise, but on the values "
                f"1, 2, 3, ... it {fails}. Nothing was charged. Fix the function."
            ) from cause


def preview(call: Call) -> Plan | PlanTable:
    """Plan a call, without reading a row or spending budget."""
    ledger = ledger_for(call.ledger)
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
    _ = table.first  # errors of the question are raised now
    return table


def _several(pricing: Pricing) -> list[Pricing] | None:
    """Return the costs of a preview that names several or none; None if it names one."""
    if isinstance(pricing.within, (list, tuple)):
        return [replace(pricing, within=within) for within in pricing.within]
    priced = pricing.share is not None or pricing.within is not None
    prices = pricing.epsilon if pricing.epsilon is not None or priced else PRICES
    return [replace(pricing, epsilon=price) for price in prices] if isinstance(prices, (list, tuple)) else None


def _previewed(call: Call, ledger: Ledger | None) -> Plan:
    check_reading(call.frame, memory=call.memory, progress=call.words.progress)
    return replace(make_plan(call.frame, call.question, ledger.terms if ledger else PlanTerms()), call=call)


def _key(call: Call, terms: PlanTerms) -> Hashable:
    """Return all public facts that a plan depends on; None if one is no plain value, or if there are many cells."""
    question = call.question
    if question.query.keys.unknown or question.query.keys.cells > FEW_ROWS:
        return None
    if not noise.is_secure():
        return None
    text = io.BytesIO()
    try:
        _Facts(text, protocol=5).dump((question, terms))
        dtypes = dtypes_of_all(call.frame)
    except Exception:  # values that are not plain may fail in any way, and so may the schema of a lazy frame
        return None
    return None if dtypes is None else (dtypes, text.getvalue())


class _Facts(pickle.Pickler):
    """A pickler of public facts: equal bytes have equal values and types. It refuses unknown types."""

    def reducer_override(self, value: Any) -> Any:
        kind: Any = type(value)
        if issubclass(kind, type):
            if value in PLAIN or _names(value) is not None:
                return NotImplemented
            raise pickle.PicklingError
        if kind is Fraction:  # a forged one may hold any objects
            return Fraction, (value.numerator, value.denominator)
        if kind in PLAIN:
            return NotImplemented
        names = _names(kind)
        if names is None:
            raise pickle.PicklingError
        return kind, tuple(getattr(value, name) for name in names)


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a dpframe dataclass; None for any other object."""
    own = isinstance(kind, type) and kind.__module__.startswith("dpframe.") and is_dataclass(kind)
    return tuple(field.name for field in fields(kind) if field.init) if own else None
