"""THE path: plan, charge, measure; everything after is noise and arithmetic on noisy numbers."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any

from dpframe.engines.choice import check_reading
from dpframe.errors import InvalidArgument
from dpframe.ledger import ambient
from dpframe.ledger.entries import Answer
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.statement import no_ledger
from dpframe.noise import nonce
from dpframe.planning.call import Call, Pricing
from dpframe.planning.plan import Plan
from dpframe.planning.plan_table import PlanTable
from dpframe.privacy import Price
from dpframe.release import discovering, replay, results
from dpframe.release.measuring import measure, noisy_checks
from dpframe.release.plans import make_plan
from dpframe.release.preparing import prepared

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
    """Price a call. Reads no row, spends nothing."""
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
    """The prices of a preview that names several or none; None where it names one."""
    if isinstance(pricing.within, (list, tuple)):
        return [replace(pricing, within=within) for within in pricing.within]
    priced = pricing.share is not None or pricing.within is not None
    prices = pricing.epsilon if pricing.epsilon is not None or priced else PRICES
    return [replace(pricing, epsilon=price) for price in prices] if isinstance(prices, (list, tuple)) else None


def _previewed(call: Call, ledger: Ledger | None) -> Plan:
    check_reading(call.frame, memory=call.memory, progress=call.words.progress)
    return replace(make_plan(call.frame, call.question, ledger), call=call)
