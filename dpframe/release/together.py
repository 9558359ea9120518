"""Joint releases: several plans are calibrated together for one stated cost, charged once, and then measured."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.accounting.protocol import Shares
from dpframe.display import pages
from dpframe.engines.schema import check
from dpframe.engines.totals import check_spill
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_name, how_many, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import Amount, down, root_down, typed_down, up
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import Answer, Entry
from dpframe.ledger.ledger import Foresight, Ledger, PlanTerms, ledger_for, warn_of_cost
from dpframe.ledger.statement import no_ledger
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import Mechanism
from dpframe.noise import nonce
from dpframe.planning.auto import tightened
from dpframe.planning.bounds_suggestion import planned_noise
from dpframe.planning.call import Calibration, Call
from dpframe.planning.check_pricing import (
    NONE,
    AskedChecks,
    PlannedChecks,
    has_none,
    line_of_checks,
    line_of_none,
    planned_checks,
)
from dpframe.planning.plan import Costing, Plan, PlanTable
from dpframe.planning.price import AUTO, Priced, because, is_pure, noises_of, parts_of, shares_of, weights_of
from dpframe.planning.sensitivity import sensitivities_of, uses_rows
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit
from dpframe.queries.query import Query, suggestion_of
from dpframe.release import results
from dpframe.release.path import tried_on_no_rows
from dpframe.release.results import check_denoising, cost_of, entry_of, measure, noisy_checks, promise_of

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
        Plans from ``.dp.preview``, by the name of the result. The costs of the previews do not matter, except that a
        quantile or a top-k is chosen in the way that its preview planned. All other options stay, such as contribution
        bounds. The plans may be of different frames, and must protect the same unit.
    epsilon, delta, share : float, optional
        The cost of all together, as in every call.
    weights : dict, optional
        The part of the cost of each result by name, in epsilon (pure noise) or mu^2 (Gaussian); the default is 1. A
        result of weight 4 among others of 1 has half their Gaussian noise.
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
        If the ledger has too little left, or no ledger is given. No row was read.
    ImportError
        If noises of different kinds need ``dpframe[accounting]``.

    Notes
    -----
    Gaussian noise has a closed form: together it is one Gaussian vector (Balle and Wang 2018, Theorem 8), and each
    result takes its part of mu^2. If noises of several kinds mix in a ledger with ``basic`` accounting, all scales are
    divided by one factor, which follows from the privacy loss distribution of the whole
    (``docs/assurance/accounting.md``). One entry charges all before any row is read.

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
        now_asked = check(calls[name].frame, plan.query, plan.unit)  # again: columns of pandas frames may have changed
        if _zones(now_asked) != _zones(plan.query):
            raise InvalidArgument(
                f"plans must be released on the columns that they were made for, and a time zone in {name!r} has "
                "changed since. Preview it again."
            )
        check_spill(calls[name].frame, plan.unit)
    ready = {name: tried_on_no_rows(calls[name].frame, plan) for name, plan in joint.plans.items()}
    warn_of_cost(payer, joint.unit, joint.cost)
    words = {name: replace(call.words, label=call.words.label or label) for name, call in calls.items()}
    promises = tuple(promise_of(each, words[name]) for name, each in ready.items())
    entry = Entry(now(), label, joint.question, joint.unit, joint.amount, joint.cost, promises=promises)
    receipt = payer.take(entry if share is None else replace(entry, lower="Lower share"))
    assert not isinstance(receipt, Answer)  # only an entry with a snapshot has a stored answer
    exact = {name: measure(plan, calls[name]) for name, plan in joint.plans.items()}
    if log.isEnabledFor(logging.INFO):
        log.info("released %s for %s, protecting %s", joint.question, joint.cost, joint.protects)
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


def _zones(query: Query) -> list[str | None]:
    """Return the time zone of each axis that has one, in which its days begin."""
    return [getattr(axis, "zone", None) for axis in query.keys.axes]


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
        if (bounds := suggestion_of(plan.query)) is not None:
            planned_noise(bounds, plan.unit, plan.accounting)  # its errors are raised before the charge
    return joint


def _checked(plans: Any) -> dict[str, Plan]:
    """Return the plans by name; the first plan of a PlanTable stands for all, since they differ only in cost."""
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
    assert plan.call is not None  # plans without a call were refused before
    return plan.call


def _check_units(plans: Mapping[str, Plan], ledger: Ledger | None) -> None:
    """Refuse plans of different units, since one cost protects one unit. Contribution bounds may differ."""
    first, *others = plans.items()
    for name, plan in others:
        if plan.unit.who != first[1].unit.who:
            raise InvalidArgument(
                f"plans must protect the same unit, but {first[0]!r} protects ({first[1].unit.who}) and {name!r} "
                f"({plan.unit.who}). Preview them with the ledger to charge."
            )
    if ledger is not None:
        ledger.terms.unit_for(first[1].unit.who)


def foreseen(
    plans: Mapping[str, Plan],
    ledger: Ledger,
    seen: Callable[[Mapping[str, PrivacyLoss]], None] = lambda costs: None,
) -> Foresight:
    """Try each plan on no rows, and all plans on the ledger; nothing is charged and no row is read.

    `seen` receives what the stored answers have cost. BudgetExceeded names the first plan that does not fit after
    those before it.
    """

    def told(known: Mapping[str, Answer | None]) -> None:
        seen({name: cost_of(answer.content) for name, answer in known.items() if answer is not None})

    return ledger.foresee({name: _entry(plan, ledger) for name, plan in plans.items()}, told)


def _entry(plan: Plan, ledger: Ledger) -> Entry:
    """Return the entry of a plan; without a snapshot if a ledger in memory stands for one that is yet to be created."""
    call = _call(plan)
    words = call.words if ledger.is_durable else replace(call.words, snapshot=None)
    return entry_of(tried_on_no_rows(call.frame, plan), words, ledger)


CLOSE = 1.0 - 1e-6  # the largest factor of a step, so that the stated epsilon is reached
LEAST_PART = Fraction(1, 100)  # the least part of a stated epsilon for which noise is calibrated


@dataclass(frozen=True, repr=False)
class JointPlan(Costing):
    """Several plans at one cost: what `plan_together` returns.

    Parameters
    ----------
    plans : dict of Plan
        By name, each with its own noise; their costs are that of the whole.
    unit, accounting, amount
        Who is protected (with bounds where all plans have the same), how losses add up, and what the whole takes in
        that exact quantity.
    cost : PrivacyLoss
        What all of them cost together, rounded up.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45], "ward": ["A", "B"]})
    >>> plans = {
    ...     "ages": people.dp.preview.histogram("age", bins=[0, 50, 100]),
    ...     "wards": people.dp.preview.group_by("ward", keys=["A", "B"]).count(),
    ... }
    >>> print(dpf.plan_together(plans, epsilon=1.0, delta=1e-6))
    JointPlan: ages, wards
      protects    each row, add-remove neighbors
      costs       epsilon 1, delta 1e-06 (basic accounting) for all together
      reads       nothing yet, spends nothing yet
    <BLANKLINE>
      name   column  measures  takes  noise             scale  95% error
      -----  ------  --------  -----  ----------------  -----  ---------
      ages   count   rows      50%    rounded Gaussian  5.975  +-12
      wards  count   rows      50%    rounded Gaussian  5.975  +-12
    """

    plans: Mapping[str, Plan]
    unit: PrivacyUnit
    accounting: Accounting
    amount: Amount
    cost: PrivacyLoss

    @property
    def error(self) -> dict[str, dict[str, float]]:
        """The expected 95% half-widths, by name and output column; a mean's for its plan's `assumed_size` values."""
        return {name: plan.error for name, plan in self.plans.items()}

    def to_frame(self, like: str = "polars") -> Any:
        """Return one row per output column and Total, as a Polars (or ``"pandas"``) frame; the columns are a plan's."""
        rows = [{"name": name, **row} for name, plan in self.plans.items() for row in plan.rows()]
        return pages.as_frame(rows, like, whole=("size",))

    @property
    def question(self) -> str:
        """The question as text: the ledger's entry."""
        return "; ".join(f"{name}: {plan.query}" for name, plan in self.plans.items())

    @property
    def protects(self) -> str:
        """The privacy unit as text, with the contribution bounds that some query uses."""
        return self.unit.words(rows=any(uses_rows(plan.query) for plan in self.plans.values()))

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("protects", self.protects),
            ("costs", f"{self.cost} ({self.accounting.name} accounting) for all together"),
            *self._in_new_ledger(),
            ("reads", "nothing yet, spends nothing yet"),
            *(
                ("checks", f"of {name}: {line_of_checks([plan.checks], plan.size)}")
                for name, plan in self.plans.items()
                if plan.checks is not None
            ),
            *(
                ("checks", f"of {name}: {line_of_none(plan.unseen, plan.size)}")
                for name, plan in self.plans.items()
                if plan.unseen is not None
            ),
            *(("checks", f"of {name}: {NONE}") for name, plan in self.plans.items() if has_none(plan.query, plan.unit)),
        ]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["name", "column", "measures", "takes", "noise", "scale", "95% error"]
        rows = [
            [
                name,
                row["column"],
                row["measures"],
                f"{100 * row['share']:.3g}%",
                row["noise"],
                pages.number(row["scale"]),
                f"+-{pages.number(row['error'])}"
                + ("" if row["size"] is None else f" of {how_many(row['size'], 'value')}"),
            ]
            for name, plan in self.plans.items()
            for row in plan.rows()
        ]
        return header, rows

    def __repr__(self) -> str:
        return pages.text_page(f"JointPlan: {', '.join(self.plans)}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"JointPlan: {', '.join(self.plans)}", self._facts(), *self._table())


OF_PREVIEW = "the preview chose it, at the cost of the preview"  # its reasons need not hold at the joint cost


def joint_plan(
    calls: Mapping[str, Plan],
    *,
    price: Price,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any = None,
    dropped: Mapping[str, PlannedChecks] = MappingProxyType({}),
    part: Fraction = Fraction(1),
) -> JointPlan:
    """Plan several calls as one. Each gets its weight of the cost, and divides it among its Totals.

    The questions and options of the plans in `calls` count, but not their costs; a quantile or a top-k is chosen in the
    way that its preview planned. Checks in `dropped` are too uncertain, and are left out. Noise is calibrated for a
    `part` of the epsilon if noise for the whole would be charged more than the stated epsilon.
    """
    offered = price if price.epsilon is None else replace(price, epsilon=price.epsilon * part)
    by_noise = {name: plan.question.noising.mechanism for name, plan in calls.items()}
    of_name = weights_of({} if weights is None else weights, list(calls), "plan")
    pure = {name: _is_pure(plan.query, by_noise[name], price, accounting, limit) for name, plan in calls.items()}
    query = {name: because(plan.query.under(pure[name]), OF_PREVIEW) for name, plan in calls.items()}
    asked = _asked(calls, dropped)
    shares = {
        name: _divided(of_name[name], query[name], plan.question.pricing.weights, asked.get(name))
        for name, plan in calls.items()
    }
    sensitivities = {name: sensitivities_of(query[name], plan.unit) for name, plan in calls.items()}
    alike = not accounting.charges_price or _alike(by_noise.values(), pure, accounting.charge(price, limit, ()))
    if alike:
        parts = _by_name(shares, accounting.parts(offered, limit, sum(shares.values(), ()), pure=all(pure.values())))
    else:
        parts = _naive(shares, pure, accounting.charge(price, limit, ()))
    by_curve = not alike and accounting.charge(price, limit, ())[1] > 0  # without a delta pure epsilons add up
    noises, choices, checks = {}, {}, {}
    for name, plan in calls.items():
        own = parts[name][: len(sensitivities[name])]
        noises[name], choices[name] = noises_of(
            query[name], by_noise[name], pure[name], sensitivities[name], own, accounting, by_curve=by_curve
        )
        if name in asked:
            checks[name] = planned_checks(
                query[name], plan.unit, noises[name], asked[name], parts[name][-1], by_loss=not alike
            )
            noises[name] = (*noises[name], checks[name].mechanism)
    nothing = {name: each for name, each in checks.items() if each.tell_nothing(calls[name].size)}
    again = {"price": price, "accounting": accounting, "limit": limit, "weights": weights}
    if nothing:
        return joint_plan(calls, dropped={**dropped, **nothing}, part=part, **again)
    if not alike:
        whole = tuple(noise for name in calls for noise in noises[name])
        noises = _by_name(shares, tightened(whole, *accounting.charge(price, limit, ())))
    every = tuple(noise for name in calls for noise in noises[name])
    amount = accounting.charge(price, limit, every)
    cost = accounting.cost(price, amount, pure=all(pure.values()))
    most = math.inf if price.epsilon is None else up(price.epsilon)
    if cost.epsilon > most and part > LEAST_PART and _mixes(every, price, accounting):
        return joint_plan(calls, dropped=dropped, part=part * Fraction(min(most / cost.epsilon, CLOSE)), **again)
    plans, whole_cost = {}, sum(sum(shares.values(), ()), Fraction(0))
    for name, plan in calls.items():
        own = len(sensitivities[name])
        each = parts_of(query[name], sensitivities[name], noises[name][:own], shares[name][:own], whole_cost)
        of_bounds = replace(checks[name], mechanism=noises[name][own]) if name in checks else None
        priced = Priced(price, amount, each, cost, choices[name], query[name], of_bounds)
        more: dict[str, Any] = {"together": tuple(calls), "call": plan.call, "unseen": dropped.get(name)}
        plans[name] = priced.plan(plan.question, plan.unit, accounting, **more)
    return JointPlan(plans, _unit_of_all([plan.unit for plan in calls.values()]), accounting, amount, cost)


def _mixes(noises: Sequence[Mechanism], price: Price, accounting: Accounting) -> bool:
    """Return whether Gaussian and other noise mix at the delta at which losses are read: the sum may cost too much.

    Pure noise alone is charged by its curve, as in a call of its own.
    """
    mixed = len({noise.exact_mu for noise in noises}) > 1
    return not accounting.charges_price and mixed and price.delta in (None, accounting.reads_at)


def _divided(whole: Fraction, query: Query, weights: Any, asked: AskedChecks | None) -> Shares:
    """Return the share of each Total of one call, and last that of its checks."""
    of_checks = Fraction(0) if asked is None else asked.share
    shares = shares_of(query, weights, whole * (1 - of_checks))
    return shares if asked is None else (*shares, whole * of_checks)


def _asked(calls: Mapping[str, Plan], dropped: Mapping[str, PlannedChecks]) -> dict[str, AskedChecks]:
    """Return the checks of each plan, also if its own cost is too small for them: the joint cost decides."""
    wanted = {name: plan.checks or plan.unseen for name, plan in calls.items() if name not in dropped}
    return {name: checks.asked for name, checks in wanted.items() if checks is not None}


def _unit_of_all(units: Sequence[PrivacyUnit]) -> PrivacyUnit:
    """Return the unit that all plans protect, with bounds only if all have the same."""
    return units[0] if all(unit == units[0] for unit in units) else units[0].who


def _is_pure(
    query: Query, mechanism: str | Calibration | None, price: Price, accounting: Accounting, limit: Amount | None
) -> bool:
    """Return whether the noise of a plan is pure; mechanism="laplace" is, even if other plans need the delta."""
    own_price = replace(price, delta=None) if mechanism == "laplace" else price
    return is_pure(query, mechanism, own_price, accounting, limit)


def _alike(mechanisms: Iterable[str | Calibration | None], pure: Mapping[str, bool], offered: Amount) -> bool:
    """Return whether the whole has a closed form: all noise is Gaussian, or all is pure and the cost has no delta."""
    if any(callable(mechanism) or mechanism == AUTO for mechanism in mechanisms):
        return False
    return not any(pure.values()) or (all(pure.values()) and offered[1] == 0)


def _by_name(shares: Mapping[str, Shares], items: Sequence[Any]) -> dict[str, Any]:
    """Group the items of a flat sequence by name, as many for each name as in `shares`."""
    rest = iter(items)
    return {name: tuple(next(rest) for _ in group) for name, group in shares.items()}


def _naive(shares: Mapping[str, Shares], pure: Mapping[str, bool], offered: Amount) -> dict[str, tuple[Part, ...]]:
    """Return parts that add up by basic composition: epsilon for all, and delta for those that need it."""
    epsilon, delta = offered
    needs = sum(
        (share for name, group in shares.items() if not pure[name] for share in group), Fraction(0)
    ) or Fraction(1)

    def part(share: Fraction, is_pure: bool) -> Part:
        part_epsilon, leak = epsilon * share, Fraction(0) if is_pure else delta * share / needs
        mu = None if not leak else root_down(Fraction(gaussian_curve.largest_mu(down(part_epsilon), down(leak))) ** 2)
        return Part(part_epsilon, mu, PrivacyLoss(typed_down(part_epsilon), typed_down(leak)))

    return {name: tuple(part(share, pure[name]) for share in group) for name, group in shares.items()}
