"""Plans: from a question, the names and dtypes of a frame, and the terms of a ledger. No row is read, nothing spent."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpframe.accounting import Basic
from dpframe.engines.schema import booleans, check
from dpframe.errors import InvalidArgument, MissingArgument, is_one_of
from dpframe.exact import exact_delta
from dpframe.ledger.ledger import ROWS, Ledger
from dpframe.planning.accuracy import Accuracy, smallest_epsilon
from dpframe.planning.bounds_suggestion import planned_noise
from dpframe.planning.call import Noising, Pricing, Question
from dpframe.planning.check_pricing import AskedChecks, asked_checks
from dpframe.planning.graph import check_graph
from dpframe.planning.key_pricing import check_asked, priced_with_keys
from dpframe.planning.plan import Plan, expected_errors
from dpframe.planning.price import CHOICE, Priced, priced
from dpframe.planning.sensitivity import one_group, uses_rows
from dpframe.privacy import Price, PrivacyUnit, checked_unit
from dpframe.queries.counts import refuse_many
from dpframe.queries.indicators import AUTO
from dpframe.queries.query import Query, suggestion_of
from dpframe.queries.samples import check_samples
from dpframe.queries.statistics import CONFIDENCE
from dpframe.queries.statistics.capabilities import Protecting, Targeted
from dpframe.release.denoising import check_denoising, ordered_axes


def make_plan(frame: Any, question: Question, ledger: Ledger | None) -> Plan:
    """The plan of a question: a function of public facts alone. Of the frame it reads names and dtypes."""
    unit = _unit_of(question.query, question.noising, ledger)
    query = question.query.each(lambda one: one.protecting(unit) if isinstance(one, Protecting) else one)
    checked = check(frame, query, unit)
    if checked.keys.counted == "rows":
        _check_bounds(checked, unit)
    if question.population:
        check_samples(checked, unit)
    most, denoising = question.max_cells, question.denoising
    cells = checked.keys if checked.subtotals else checked.shown
    refuse_many("keys and bins must make", "cells", cells.cells, most)  # those of a dtype as well
    if checked.subtotals == "cube":
        refuse_many("cube must make", "rows", checked.shown.cells, most)
    check_asked(checked, order=denoising.order, graph=denoising.graph)
    ordered_axes(checked.keys, denoising.order)  # refused before anything is charged
    check_graph(checked, denoising.graph, denoising.denoise)
    accounting = ledger.accounting if ledger else Basic()
    pricing = question.pricing
    mechanism = question.noising.mechanism
    by_choice = is_one_of(mechanism, (CHOICE,))
    if by_choice and not is_one_of(pricing.checks, (None, AUTO, False)):
        raise InvalidArgument(
            "checks must be left out with mechanism='exponential', which adds no noise to a number. Drop checks."
        )
    usual = ledger.checks if ledger else None
    asked = None if by_choice else asked_checks(checked, unit, pricing.checks, usual, booleans(frame, checked))

    if (bounds := suggestion_of(checked)) is not None:
        planned_noise(bounds, unit, accounting)  # what is wrong with it is told now

    def priced_at(price: Price, checks: AskedChecks | None) -> Priced:
        more: dict[str, Any] = {} if checks is None else {"checks": checks}
        priced_query = (priced_with_keys if checked.keys.unknown else priced)(
            checked,
            unit=unit,
            price=price,
            mechanism=mechanism,
            accounting=accounting,
            limit=ledger.limit_amount if ledger else None,
            weights=pricing.weights,
            **more,
        )
        check_denoising(checked, priced_query.parts[0].mechanism, denoising.denoise)
        return priced_query

    def priced_with(checks: AskedChecks | None) -> tuple[Priced, Accuracy | None]:
        if pricing.within is None:
            return priced_at(Price.of(pricing.epsilon, pricing.delta, pricing.share), checks), None
        return _priced_within(checked, pricing, lambda price: priced_at(price, checks))

    priced_query, accuracy = priced_with(asked)
    more: dict[str, Any] = {}
    if priced_query.checks is not None and priced_query.checks.tell_nothing(pricing.size):  # at no smaller epsilon too
        more["unseen"] = priced_query.checks
        priced_query, accuracy = priced_with(None)
    elif priced_query.checks is not None and callable(mechanism) and is_one_of(pricing.checks, (None, AUTO)):
        more["known_by"] = priced_with(None)[0].noises
    return priced_query.plan(question, unit, accounting, accuracy=accuracy, **more)


def _unit_of(query: Query, noising: Noising, ledger: Ledger | None) -> PrivacyUnit:
    """The unit with the bounds of this question; contributions of units are asked without any."""
    unit = ledger.unit_for(noising.unit) if ledger else checked_unit(noising.unit) or ROWS
    if query.keys.counted == "units":
        if unit.column is None:
            raise InvalidArgument(
                "unit must have a column for contributions: where each row is a unit, each contributes one row. "
                'Name the column that identifies the person: dpf.Ledger(epsilon=..., unit="patient").'
            )
        return unit.who
    bounded = unit.bounded(noising.max_rows, noising.max_groups)
    if unit.column is not None and one_group(query) and not uses_rows(query):
        return bounded if bounded.is_bounded else unit.bounded(1, 1)  # neither is used: each unit counts once
    return bounded


def _check_bounds(query: Query, unit: PrivacyUnit) -> None:
    """Refuse a question that has no contribution bounds, and needs some."""
    if unit.column is not None and not unit.is_bounded and not uses_rows(query):
        raise MissingArgument(
            f"max_groups must be given, because the ledger protects each {unit.one}. "
            "Write max_groups=2, or estimate it with df.dp.contributions(by=..., epsilon=0.05)."
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
        if isinstance(statistic, Targeted):
            statistic.check_target(name, targets[name], pricing.size)
    delta = None if pricing.delta is None else exact_delta(pricing.delta)

    def errors_at(epsilon: Fraction) -> dict[str, float]:
        priced_query = priced_at(Price(epsilon, delta))
        return expected_errors(priced_query.query, priced_query.parts, pricing.size, accuracy.confidence)

    priced_query = priced_at(Price(smallest_epsilon(targets, errors_at), delta))
    left = expected_errors(priced_query.query, priced_query.parts, pricing.size, CONFIDENCE)
    steps = {part.total: part.mechanism.grid for part in priced_query.parts}
    for name, statistic in priced_query.query.statistics:
        step = steps.get(statistic.totals()[0], 0.0) if statistic.denoisable else 0.0  # of others none is known
        target = targets[name]
        if target == 0.0 or (target < step / 2 and left[name] == 0.0):
            raise InvalidArgument(
                f"within must be larger than {target:g} for {name}, whose result would be exact in 95 of 100 cases. "
                "Write a larger target error, such as within=10."
            )
    return priced_query, accuracy
