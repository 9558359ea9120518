"""Several plans released at one cost: calibrated together, charged once, and only then looked at."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.engines.schema import check
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_name, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import Answer, Entry
from dpframe.ledger.ledger import Foresight, Ledger, PlanTerms, ledger_for, warn_of_cost
from dpframe.ledger.statement import no_ledger
from dpframe.noise import nonce
from dpframe.planning.call import Call
from dpframe.planning.joint import JointPlan, joint_plan
from dpframe.planning.plan import Plan, PlanTable
from dpframe.privacy import Price
from dpframe.release import results
from dpframe.release.path import tried_on_no_rows
from dpframe.release.results import check_denoising, entry_of, measure, noisy_checks, promise_of

EXAMPLE = 'Write for instance {"ages": df.dp.preview.histogram(...), "wards": df.dp.preview.group_by(...).count()}.'

log = logging.getLogger("dpframe")


@trimmed
def plan_together(
    plans: Mapping[str, Plan | PlanTable],
    *,
    epsilon: float | Fraction | None = None,
    delta: float | Fraction | None = None,
    share: float | Fraction | None = None,
    weights: Mapping[str, float] | None = None,
    ledger: Ledger | None = None,
) -> JointPlan:
    """Plan a joint release: its cost and errors, without reading rows.

    Parameters
    ----------
    plans, epsilon, delta, share, weights, ledger
        As for `release_together`.

    Returns
    -------
    JointPlan
        With `.plans`, `.cost`, `.error`, `.to_frame()`.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> preview = pl.DataFrame({"age": [31, 45]}).dp.preview
    >>> together = dpf.plan_together({"n": preview.count(), "age": preview.count("age")}, epsilon=1.0, delta=1e-6)
    >>> together.error
    {'n': {'count': 12.0}, 'age': {'count': 12.0}}
    """
    price = _price(epsilon, delta, share)
    return _planned(plans, price, weights, ledger_for(ledger))


@trimmed
def release_together(
    plans: Mapping[str, Plan | PlanTable],
    *,
    epsilon: float | Fraction | None = None,
    delta: float | Fraction | None = None,
    share: float | Fraction | None = None,
    weights: Mapping[str, float] | None = None,
    ledger: Ledger | None = None,
    label: str | None = None,
) -> dict[str, Any]:
    """Release several plans at one cost, with less noise than one by one.

    Parameters
    ----------
    plans : dict of Plan
        Made by ``.dp.preview``, by the name of the result. Costs of the previews play no part; their other options
        are kept, contribution bounds among them. They may be of different frames, and must protect the same unit.
    epsilon, delta, share : float, optional
        The cost of the whole, as in every call.
    weights : dict, optional
        By name: how much of the cost each result takes, in epsilon (pure noise) or mu^2 (Gaussian); a name that is
        left out weighs 1. A result of weight 4 among others of 1 has half their Gaussian noise.
    ledger : Ledger, optional
        The ledger to charge; by default the ``with`` around the call.
    label : str, optional
        A name for the ledger's one entry.

    Returns
    -------
    dict of DataFrame
        The results by name, as the verbs of the previews would return them.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule. Nothing was charged.
    BudgetExceeded, NoLedger
        If the ledger has too little left, or none is in sight. No row was read.
    ImportError
        If noises of different kinds need ``dpframe[accounting]``.

    Notes
    -----
    Gaussian noise has a closed form: together it is one Gaussian vector (Balle and Wang 2018, Theorem 8), and each
    result takes its part of mu^2. Where noises mix in a ledger with ``basic`` accounting, all scales are divided by
    one factor, found by the privacy loss distribution of the whole (``docs/assurance/accounting.md``). All are charged
    in one entry before any row is read.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
    >>> plans = {
    ...     "ages": people.dp.preview.histogram("age", bins=[0, 50, 100]),
    ...     "wards": people.dp.preview.group_by("ward", keys=["A", "B"]).count(),
    ... }
    >>> results = dpf.release_together(plans, epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0, delta=1e-6))
    >>> results["wards"].columns
    ['ward', 'count', 'count_noisy', 'count_error']
    """
    price = _price(epsilon, delta, share)
    if label is not None and not isinstance(label, str):
        raise InvalidType(f"label must be a string, not {shown(label)}. Write for instance label='week 47'.")
    if label is not None:
        checked_name("label", label)
    payer = ledger_for(ledger)
    if payer is None:
        raise no_ledger()
    joint = _planned(plans, price, weights, payer)
    calls = {name: _call(plan) for name, plan in joint.plans.items()}
    for name, plan in joint.plans.items():
        check(calls[name].frame, plan.query, plan.unit)  # once more: a frame of pandas may have got other columns since
    ready = {name: tried_on_no_rows(calls[name].frame, plan) for name, plan in joint.plans.items()}
    warn_of_cost(payer, joint.unit, joint.cost)
    words = {name: replace(call.words, label=call.words.label or label) for name, call in calls.items()}
    promises = tuple(promise_of(each, words[name]) for name, each in ready.items())
    receipt = payer.take(Entry(now(), label, joint.question, joint.unit, joint.amount, joint.cost, promises=promises))
    assert not isinstance(receipt, Answer)  # only an entry with a snapshot has one
    exact = {name: measure(plan, calls[name]) for name, plan in joint.plans.items()}
    log.info("released %s for %s, protecting %s", joint.question, joint.cost, joint.unit)
    release = nonce()
    drawn = {
        name: {"release": release, "part": part, **noisy_checks(plan, exact[name])}
        for part, (name, plan) in enumerate(joint.plans.items())
    }
    released = {
        name: results.built(each, exact[name], words[name], receipt, drawn[name])[0] for name, each in ready.items()
    }
    for frame in released.values():
        results.warn_of_checks(frame, depth=3)
    return released


def _price(epsilon: Any, delta: Any, share: Any) -> Price:
    if epsilon is None and share is None:
        raise MissingArgument(
            "epsilon must be given (or share=): the cost of all plans together. Write for instance epsilon=1.0."
        )
    return Price.of(epsilon, delta, share)


def _planned(plans: Any, price: Price, weights: Any, ledger: Ledger | None) -> JointPlan:
    checked = _checked(plans)
    _check_units(checked, ledger)
    terms = ledger.terms if ledger else PlanTerms()
    joint = joint_plan(checked, price=price, accounting=terms.accounting, limit=terms.limit, weights=weights)
    for plan in joint.plans.values():
        check_denoising(plan.query, plan.parts[0].mechanism, plan.question.denoising.denoise)
    return joint


def _checked(plans: Any) -> dict[str, Plan]:
    """The plans by name; of a table of costs any one, since they differ in the cost alone."""
    if not isinstance(plans, Mapping):
        raise InvalidType(f"plans must be a dict of plans by name, not {shown(plans)}. {EXAMPLE}")
    if not plans:
        raise InvalidArgument(f"plans must have at least one plan. {EXAMPLE}")
    checked = {}
    for name, plan in plans.items():
        if not isinstance(name, str):
            raise InvalidType(f"plans must have strings as names, not {shown(name)}. {EXAMPLE}")
        checked_name("each name of plans", name)
        if not isinstance(plan, (Plan, PlanTable)):
            raise InvalidType(f"plans must be made by .dp.preview, and {name!r} is {shown(plan)}. {EXAMPLE}")
        single = plan.first if isinstance(plan, PlanTable) else plan
        if single.call is None:
            raise InvalidArgument(
                f"plans must remember their frame, and {name!r} was pickled or copied, which leaves it out. "
                "Preview it again, in this process."
            )
        if single.call.words.snapshot is not None:
            raise InvalidArgument(
                f"snapshot must be left out of plans that are released together, unlike in {name!r}: "
                "only single calls are stored and replayed. Drop it there."
            )
        if single.query.keys.unknown:
            raise InvalidArgument(
                f"plans must be of declared keys to be released together, and {name!r} finds its own. Release it by "
                "itself, and take the keys that it shows for the others."
            )
        checked[name] = single
    return checked


def _call(plan: Plan) -> Call:
    assert plan.call is not None  # refused before
    return plan.call


def _check_units(plans: Mapping[str, Plan], ledger: Ledger | None) -> None:
    """One cost protects one unit; the contribution bounds are each plan's own."""
    first, *others = plans.items()
    for name, plan in others:
        if plan.unit.who != first[1].unit.who:
            raise InvalidArgument(
                f"plans must protect the same unit, but {first[0]!r} protects ({first[1].unit.who}) and {name!r} "
                f"({plan.unit.who}). Preview them with the ledger to charge."
            )
    if ledger is not None:
        ledger.terms.unit_for(first[1].unit.who)


def foreseen(plans: Mapping[str, Plan], ledger: Ledger) -> Foresight:
    """Try each plan on no rows, and all of them on the ledger; nothing is charged and no row is read.

    BudgetExceeded names the first plan that does not fit after those before it.
    """
    return ledger.foresee({name: _entry(plan, ledger) for name, plan in plans.items()})


def _entry(plan: Plan, ledger: Ledger) -> Entry:
    """The entry of its charge; a ledger that is yet to be made stores nothing, and knows no snapshot."""
    call = _call(plan)
    words = call.words if ledger.is_durable else replace(call.words, snapshot=None)
    return entry_of(tried_on_no_rows(call.frame, plan), words, ledger)
