"""THE path: check the schema, charge, look; everything after is noise and arithmetic on noisy numbers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.accounting import Basic
from dpframe.engines.choice import check_reading
from dpframe.engines.schema import check
from dpframe.engines.streaming import Reading
from dpframe.engines.totals import totals
from dpframe.errors import InvalidArgument, ReleaseFailed
from dpframe.exact import exact_delta
from dpframe.frames import build
from dpframe.frames.kinds import library_of
from dpframe.ledger import ambient
from dpframe.ledger.entries import Answer
from dpframe.ledger.ledger import ROWS, Ledger
from dpframe.ledger.statement import no_ledger
from dpframe.planning.accuracy import Accuracy, check_mean, smallest_epsilon
from dpframe.planning.graph import check_graph
from dpframe.planning.plan import Plan
from dpframe.planning.plan_table import PlanTable
from dpframe.planning.price import plan_of
from dpframe.planning.request import Options
from dpframe.privacy import Price, PrivacyUnit, checked_unit
from dpframe.queries.counts import checked_memory, refuse_many
from dpframe.queries.query import ERROR, NOISY, Query
from dpframe.queries.statistics import Mean, Measured, Total
from dpframe.release import provenance, replay
from dpframe.release.denoising import check_denoising
from dpframe.release.denoising import denoised as denoised_of
from dpframe.release.order import ordered_axes
from dpframe.release.rehearsal import rehearse
from dpframe.release.selecting import selected

PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what a preview without a price tabulates

log = logging.getLogger("dpframe")


def release(frame: Any, query: Query, options: Options) -> Any:
    """Answer a query privately: check the schema, charge, look."""
    if options.within is None:
        Price.of(options.epsilon, options.delta, options.share)  # a price that is left out is told before the ledger
    ledger = ambient.ledger_for(options.ledger)
    if ledger is None:
        raise no_ledger()
    plan = _planned(frame, query, options, ledger)
    labels = rehearsed(plan, options)
    entry = replay.entry_of(query, plan, options, ledger)
    ambient.warn_unlimited(ledger, plan.unit, depth=6)
    place = ledger.take(entry)
    if isinstance(place, Answer):
        log.info("replayed %s of snapshot %s", plan.query, options.snapshot)
        return replay.replayed(plan, place.content)
    found = look(plan, options)
    log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)
    frame, chosen = _answered(plan, found, options, place, labels)
    return replay.kept(plan, frame, chosen, entry, ledger)


def preview(frame: Any, query: Query, options: Options) -> Plan | PlanTable:
    """Price a query. Reads no row, spends nothing."""
    ledger = ambient.ledger_for(options.ledger)
    several = _several(options)
    if several is None:
        return replace(_planned(frame, query, options, ledger), asked=options)
    if not several:
        raise InvalidArgument("epsilon must list at least one price. Write for instance epsilon=[0.1, 1].")
    return PlanTable(tuple(replace(_planned(frame, query, one, ledger), asked=one) for one in several))


def _several(options: Options) -> list[Options] | None:
    """The calls of a preview that names several prices or none; None where it names one."""
    if isinstance(options.within, (list, tuple)):
        return [replace(options, within=within) for within in options.within]
    priced = options.share is not None or options.within is not None
    prices = options.epsilon if options.epsilon is not None or priced else PRICES
    return [replace(options, epsilon=price) for price in prices] if isinstance(prices, (list, tuple)) else None


def _planned(frame: Any, query: Query, options: Options, ledger: Ledger | None) -> Plan:
    unit = _unit_of(query, options, ledger)
    checked = check(frame, query, unit)
    check_reading(frame, memory=options.memory, progress=options.progress)
    if query.grouping is None:
        _ = unit.contribution  # refused where a question has no bounds
    refuse_many("keys and bins must make", "cells", checked.keys.cells, options.max_cells)  # those of a dtype as well
    limit = ledger.limit_amount if ledger else None
    ordered_axes(checked.keys, options.order)  # refused before anything is charged
    check_graph(checked, options.graph, options.denoise)

    def plan_at(price: Price) -> Plan:
        plan = plan_of(
            checked,
            frame,
            unit=unit,
            price=price,
            mechanism=options.mechanism,
            accounting=ledger.accounting if ledger else Basic(),
            limit=limit,
            weights=options.weights,
        )
        check_denoising(plan, options.denoise)
        return plan if options.size is None else replace(plan, size=options.size)

    if options.within is None:
        return plan_at(Price.of(options.epsilon, options.delta, options.share))
    return _plan_within(checked, options, plan_at)


def _unit_of(query: Query, options: Options, ledger: Ledger | None) -> PrivacyUnit:
    """Who is protected, with the bounds of this question; how much units contribute is asked without any."""
    unit = ledger.unit_for(options.unit) if ledger else checked_unit(options.unit) or ROWS
    if query.grouping is not None:
        if unit.column is None:
            raise InvalidArgument(
                "unit must have a column for contributions: where each row is a unit, each contributes one row. "
                'Name the column that says whose row it is: dpf.Ledger(epsilon=..., unit="patient").'
            )
        return unit.who
    return unit.bounded(options.max_rows, options.max_groups)


def _plan_within(query: Query, options: Options, plan_at: Callable[[Price], Plan]) -> Plan:
    """The plan with the smallest epsilon whose expected errors are within what was asked."""
    for name, value in (("epsilon", options.epsilon), ("share", options.share)):
        if value is not None:
            raise InvalidArgument(f"within and {name} must not both be given: each says what the call costs. Keep one.")
    accuracy = Accuracy.of(options.within, options.confidence)
    targets = accuracy.targets(tuple(name for name, _ in query.statistics))
    for name, statistic in query.statistics:
        if isinstance(statistic, Mean):
            check_mean(name, targets[name], options.size, statistic.bounds)
    delta = None if options.delta is None else exact_delta(options.delta)
    epsilon = smallest_epsilon(targets, lambda one: plan_at(Price(one, delta)).errors(accuracy.confidence))
    return replace(plan_at(Price(epsilon, delta)), accuracy=accuracy)


def rehearsed(plan: Plan, options: Options) -> dict[str, Any]:
    """The columns that name the cells, once the whole call was tried on no rows."""
    return rehearse(plan, options, lambda frame: _facts(plan, frame, {}, options, None))


def look(plan: Plan, options: Options | None = None) -> dict[Total, NDArray[np.int64]]:
    """The exact totals; of a plan of a preview, read as its own options say."""
    asked = options or plan.asked
    found = _look(plan, None if asked is None else _reading(asked))
    if found is None:
        raise ReleaseFailed(
            "the dataframe engine failed while it read the rows. Its message is withheld, since it may hold private "
            "values; the charge stands. Run the frame's own computation by itself to see the cause."
        )
    return found


def _reading(options: Options) -> Reading | None:
    """How a table is read that does not fit in memory, where the call says it."""
    if options.memory is None and options.progress is None:
        return None
    return Reading(checked_memory(options.memory), options.progress)


def _look(plan: Plan, reading: Reading | None = None) -> dict[Total, NDArray[np.int64]] | None:
    """The exact totals, or None where the engine failed: its error must not be chained, for it may hold values."""
    try:
        return totals(plan.frame, plan.query, plan.unit, plan.parts[0].mechanism.norm, reading)
    except (KeyboardInterrupt, SystemExit, GeneratorExit) as stopped:
        stopped.add_note("dpframe was reading rows: the charge stands, and nothing was released.")
        raise
    except BaseException:  # a panic of the Polars engine is no Exception, and its message may hold values as well
        return None


def answered(
    plan: Plan,
    found: dict[Total, NDArray[np.int64]],
    options: Options,
    place: dict[str, Any] | None,
    labels: Mapping[str, Any],
) -> Any:
    """Everything from here on is noise and arithmetic on noisy numbers; `labels` are the columns that name cells."""
    return _answered(plan, found, options, place, labels)[0]


def _answered(
    plan: Plan,
    found: dict[Total, NDArray[np.int64]],
    options: Options,
    place: dict[str, Any] | None,
    labels: Mapping[str, Any],
) -> tuple[Any, int | None]:
    """The released frame, and of a selection the place of the cell that was chosen."""
    measured = {}
    for part in plan.parts:
        noisy = part.mechanism.add_noise(found.pop(part.total))
        measured[part.total] = Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism)
    if plan.query.selects:
        frame, chosen = selected(plan, measured, labels)
        return _recorded(plan, frame, {}, options, place), chosen
    columns: dict[str, Any] = dict(labels)
    denoised: dict[str, Any] = {}
    for name, statistic in plan.query.statistics:
        values, errors = plan.query.answer(statistic, measured)
        better, denoised[name] = denoised_of(
            values, statistic, plan, options.denoise, order=options.order, graph=options.graph
        )
        columns[name] = better
        if denoised[name] is not None and options.keep_noisy:
            columns[name + NOISY] = values
        columns[name + ERROR] = errors
    return _recorded(plan, build.frame_of(columns, library_of(plan.frame)), denoised, options, place), None


def _recorded(plan: Plan, frame: Any, denoised: dict[str, Any], options: Options, place: dict[str, Any] | None) -> Any:
    """The released frame with its provenance."""
    return build.attach(frame, _facts(plan, frame, denoised, options, place))


def _facts(
    plan: Plan, frame: Any, denoised: dict[str, Any], options: Options, place: dict[str, Any] | None
) -> dict[str, Any]:
    """The provenance of a frame."""
    return provenance.record(
        plan,
        frame,
        version=VERSION,
        label=options.label,
        denoised=denoised,
        secure=noise.is_secure(),
        keep_noisy=options.keep_noisy,
        place=place,
    )
