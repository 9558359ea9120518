"""THE path: check the schema, charge, measure; everything after is noise and arithmetic on noisy numbers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpframe import noise
from dpframe.accounting import Basic
from dpframe.engines.choice import check_reading, check_workers
from dpframe.engines.quiet import check_quiet
from dpframe.engines.schema import check
from dpframe.engines.streaming import Reading
from dpframe.engines.totals import totals
from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.exact import exact_delta
from dpframe.ledger import ambient
from dpframe.ledger.entries import Answer
from dpframe.ledger.ledger import ROWS, Ledger
from dpframe.ledger.statement import no_ledger
from dpframe.planning.accuracy import Accuracy, smallest_epsilon
from dpframe.planning.graph import check_graph
from dpframe.planning.key_pricing import check_asked, priced_with_keys
from dpframe.planning.plan import Plan, expected_errors
from dpframe.planning.plan_table import PlanTable
from dpframe.planning.price import Priced, priced
from dpframe.planning.request import Pricing, Request
from dpframe.privacy import Price, PrivacyUnit, checked_unit
from dpframe.queries.counts import refuse_many
from dpframe.queries.query import Query
from dpframe.release import asked_before, discovering, replay, results
from dpframe.release.denoising import check_denoising
from dpframe.release.one_look import looked
from dpframe.release.order import ordered_axes
from dpframe.release.rehearsal import rehearse

PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what a preview without a price tabulates

log = logging.getLogger("dpframe")


def release(request: Request) -> Any:
    """Answer a request privately: check the schema, charge, measure."""
    pricing = request.pricing
    if pricing.within is None:
        Price.of(pricing.epsilon, pricing.delta, pricing.share)  # report a missing price before a missing ledger
    ledger = ambient.ledger_for(pricing.ledger)
    if ledger is None:
        raise no_ledger()
    plan, labels = _ready(request, ledger)
    entry = replay.entry_of(request, plan, ledger)
    ambient.warn_unlimited(ledger, plan.unit, depth=6)
    receipt = ledger.take(entry)
    if isinstance(receipt, Answer):
        log.info("replayed %s of snapshot %s", plan.query, request.recording.snapshot)
        return replay.replayed(plan, receipt.content)
    exact = measure(plan)
    log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)
    if plan.query.found is not None:
        return discovering.released(plan, exact, entry, ledger, receipt, measure)
    frame, chosen = results.built(plan, exact, receipt, labels, request.recording.label)
    return replay.kept(plan, frame, chosen, entry, ledger)


def preview(request: Request) -> Plan | PlanTable:
    """Price a request. Reads no row, spends nothing."""
    ledger = ambient.ledger_for(request.pricing.ledger)
    several = _several(request.pricing)
    if several is None:
        return _planned(request, ledger)
    if not several:
        raise InvalidArgument("epsilon must list at least one price. Write for instance epsilon=[0.1, 1].")
    for pricing in several:
        if pricing.within is None:
            Price.of(pricing.epsilon, pricing.delta, pricing.share)
    table = PlanTable(tuple(partial(_planned, replace(request, pricing=pricing), ledger) for pricing in several))
    _ = table.first  # what is wrong with the question is told now
    return table


def _several(pricing: Pricing) -> list[Pricing] | None:
    """The prices of a preview that names several or none; None where it names one."""
    if isinstance(pricing.within, (list, tuple)):
        return [replace(pricing, within=within) for within in pricing.within]
    priced = pricing.share is not None or pricing.within is not None
    prices = pricing.epsilon if pricing.epsilon is not None or priced else PRICES
    return [replace(pricing, epsilon=price) for price in prices] if isinstance(prices, (list, tuple)) else None


def _ready(request: Request, ledger: Ledger) -> tuple[Plan, Mapping[str, Any]]:
    """The plan, and the columns that name the cells; as they were, where the same was asked before."""
    key = asked_before.key_of(request, ledger)
    known = asked_before.known(key)
    if known is not None:
        check_quiet()  # which no plan knows
        return known.plan.asked_by(request), known.labels
    plan = _planned(request, ledger)
    labels = rehearsed(plan)
    asked_before.keep(key, plan, labels)
    return plan, labels


def _planned(request: Request, ledger: Ledger | None) -> Plan:
    unit = _unit_of(request, ledger)
    checked = check(request.frame, request.query.protecting(unit), unit)
    check_reading(request.frame, memory=request.reading.memory, progress=request.reading.progress)
    if checked.grouping is None:
        _check_bounds(checked, unit)
    refuse_many("keys and bins must make", "cells", checked.shown.cells, request.max_cells)  # those of a dtype as well
    if checked.cube:
        refuse_many("cube must make", "rows", checked.rows, request.max_cells)
    check_asked(checked, order=request.denoising.order, graph=request.denoising.graph)
    ordered_axes(checked.keys, request.denoising.order)  # refused before anything is charged
    check_graph(checked, request.denoising.graph, request.denoising.denoise)
    accounting = ledger.accounting if ledger else Basic()

    def priced_at(price: Price) -> Priced:
        priced_query = (priced if checked.found is None else priced_with_keys)(
            checked,
            unit=unit,
            price=price,
            mechanism=request.noising.mechanism,
            accounting=accounting,
            limit=ledger.limit_amount if ledger else None,
            weights=request.pricing.weights,
        )
        check_denoising(checked, priced_query.parts[0].mechanism, request.denoising.denoise)
        return priced_query

    pricing = request.pricing
    if pricing.within is None:
        priced_query, accuracy = priced_at(Price.of(pricing.epsilon, pricing.delta, pricing.share)), None
    else:
        priced_query, accuracy = _priced_within(checked, pricing, priced_at)
    return priced_query.plan(request, unit, accounting, accuracy=accuracy)


def _unit_of(request: Request, ledger: Ledger | None) -> PrivacyUnit:
    """The unit with the bounds of this question; contributions of units are asked without any."""
    noising = request.noising
    unit = ledger.unit_for(noising.unit) if ledger else checked_unit(noising.unit) or ROWS
    if request.query.grouping is not None:
        if unit.column is None:
            raise InvalidArgument(
                "unit must have a column for contributions: where each row is a unit, each contributes one row. "
                'Name the column that says whose row it is: dpf.Ledger(epsilon=..., unit="patient").'
            )
        return unit.who
    bounded = unit.bounded(noising.max_rows, noising.max_groups)
    if unit.column is not None and request.query.one_group and not request.query.uses_rows:
        return bounded if bounded.is_bounded else unit.bounded(1, 1)  # neither is used: each unit counts once
    return bounded


def _check_bounds(query: Query, unit: PrivacyUnit) -> None:
    """Refuse a question that has no bounds of contribution, and needs some."""
    if unit.column is not None and not unit.is_bounded and not query.uses_rows:
        raise MissingArgument(
            f"max_groups must be given, in the call or as a default in the unit: in how many groups one {unit.column} "
            "may count in full, with whatever rows. df.dp.contributions(by=..., epsilon=...) tells privately how many "
            "there are; then write for instance max_groups=2."
        )
    _ = unit.contribution


def _priced_within(query: Query, pricing: Pricing, priced_at: Callable[[Price], Priced]) -> tuple[Priced, Accuracy]:
    """The smallest epsilon whose expected errors are within what was asked."""
    for name, value in (("epsilon", pricing.epsilon), ("share", pricing.share)):
        if value is not None:
            raise InvalidArgument(f"within and {name} must not both be given: each says what the call costs. Keep one.")
    accuracy = Accuracy.of(pricing.within, pricing.confidence)
    targets = accuracy.targets(tuple(name for name, _ in query.statistics))
    for name, statistic in query.statistics:
        statistic.check_target(name, targets[name], pricing.size)
    delta = None if pricing.delta is None else exact_delta(pricing.delta)

    def errors_at(epsilon: Fraction) -> dict[str, float]:
        priced_query = priced_at(Price(epsilon, delta))
        return expected_errors(priced_query.query, priced_query.parts, pricing.size, accuracy.confidence)

    return priced_at(Price(smallest_epsilon(targets, errors_at), delta)), accuracy


def rehearsed(plan: Plan) -> dict[str, Any]:
    """The columns that name the cells, once the whole call was tried on no rows, and workers elsewhere are ready."""
    check_workers(plan.frame)
    return rehearse(plan, lambda frame: results.facts(plan, frame, {}, None, ""))


def measure(plan: Plan) -> Any:
    """The exact totals, or of keys that are to be found a table of them: the only look at rows."""
    return looked(lambda: _measured(plan))


def _measured(plan: Plan) -> Any:
    reading = Reading(plan.asked.reading.bytes, plan.asked.reading.progress)
    if plan.query.found is not None:
        return discovering.keys_of(plan, plan.frame, reading)
    secret = noise.fresh_key() if plan.query.gathers else 0
    return totals(plan.frame, plan.query, plan.unit, plan.parts[0].mechanism.norm, reading, secret)
