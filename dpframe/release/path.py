"""THE path: check the schema, charge, look; everything after is noise and arithmetic on noisy numbers."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise, provenance
from dpframe.accounting import Basic
from dpframe.errors import InvalidArgument, ReleaseFailed
from dpframe.frames import build
from dpframe.frames.check import check
from dpframe.frames.source import library_of
from dpframe.frames.totals import totals
from dpframe.guarantee import Price, checked_unit
from dpframe.ledger import payer
from dpframe.ledger.ledger import ROWS, Ledger
from dpframe.plan.plan import Plan
from dpframe.plan.pricing import plan_of
from dpframe.plan.table import PlanTable
from dpframe.queries.query import ERROR, NOISY, Query
from dpframe.queries.statistics import Measured, Statistic
from dpframe.release.denoising import denoised as denoised_of
from dpframe.release.options import Options
from dpframe.statement import no_ledger

VERSION = "0.1.0"
PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what a preview without a price tabulates

log = logging.getLogger("dpframe")


def release(frame: Any, query: Query, options: Options) -> Any:
    """Answer a query privately: check the schema, charge, look."""
    price = Price.of(options.epsilon, options.delta, options.share)
    ledger = payer.ledger_for(options.ledger)
    if ledger is None:
        raise no_ledger()
    plan = _planned(frame, query, options, price, ledger)
    payer.warn_unlimited(ledger, plan.unit)
    place = ledger.charge(plan.amount, cost=plan.cost, query=str(plan.query), unit=plan.unit, label=options.label)
    found = _look(plan)
    if found is None:
        raise ReleaseFailed(
            "the dataframe engine failed while it read the rows. Its message is withheld, since it may hold private "
            "values; the charge stands. Run the frame's own computation by itself to see the cause."
        )
    log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)
    return _answered(plan, found, options, place)


def preview(frame: Any, query: Query, options: Options) -> Plan | PlanTable:
    """Price a query. Reads no row, spends nothing."""
    ledger = payer.ledger_for(options.ledger)
    several = options.epsilon if options.epsilon is not None or options.share is not None else PRICES
    if not isinstance(several, (list, tuple)):
        return _planned(frame, query, options, Price.of(options.epsilon, options.delta, options.share), ledger)
    listed = [Price.of(epsilon, options.delta, options.share) for epsilon in several]
    if not listed:
        raise InvalidArgument("epsilon must list at least one price. Write for instance epsilon=[0.1, 1].")
    return PlanTable(tuple(_planned(frame, query, options, price, ledger) for price in listed))


def _planned(frame: Any, query: Query, options: Options, price: Price, ledger: Ledger | None) -> Plan:
    unit = ledger.unit_for(options.unit) if ledger else checked_unit(options.unit) or ROWS
    return plan_of(
        check(frame, query, unit),
        frame,
        unit=unit,
        price=price,
        mechanism=options.mechanism,
        accounting=ledger.accounting if ledger else Basic(),
        limit=ledger.limit_amount if ledger else None,
    )


def _look(plan: Plan) -> dict[Statistic, NDArray[np.int64]] | None:
    """The exact totals, or None where the engine failed: its error must not be chained, for it may hold values."""
    try:
        return totals(plan.frame, plan.query, plan.unit, plan.parts[0].mechanism.p)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # a panic of the Polars engine is no Exception, and its message may hold values as well
        return None


def _answered(
    plan: Plan, found: dict[Statistic, NDArray[np.int64]], options: Options, place: dict[str, Any] | None
) -> Any:
    """Everything from here on is noise and arithmetic on noisy numbers."""
    measured = {}
    for part in plan.parts:
        noisy = part.mechanism.add_noise(found.pop(part.statistic))
        measured[part.statistic] = Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism)
    columns: dict[str, Any] = dict(plan.query.keys.labels())
    denoised: dict[str, Any] = {}
    for name, measure in plan.query.measures:
        values, errors = measure.answer(measured)
        better, denoised[name] = denoised_of(values, measure, plan, options.denoise)
        columns[name] = better
        if denoised[name] is not None and options.raw:
            columns[name + NOISY] = values
        columns[name + ERROR] = errors
    frame = build.frame_of(columns, library_of(plan.frame))
    facts = provenance.record(
        plan,
        frame,
        version=VERSION,
        label=options.label,
        denoised=denoised,
        secure=noise.is_secure(),
        raw=options.raw,
        place=place,
    )
    return build.attach(frame, facts)
