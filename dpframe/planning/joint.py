"""Several calls calibrated together, so that the whole costs what was stated and no noise is wasted between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.accounting.protocol import Shares
from dpframe.display import pages
from dpframe.exact import Amount, down, root_down, typed_down, up
from dpframe.mechanisms import gaussian_curve
from dpframe.planning.auto import tightened
from dpframe.planning.call import Calibration
from dpframe.planning.check_pricing import AskedChecks, PlannedChecks, line_of_checks, line_of_none, planned_checks
from dpframe.planning.plan import Plan
from dpframe.planning.price import AUTO, Priced, is_pure, noises_of, parts_of, shares_of, weights_of
from dpframe.planning.sensitivity import sensitivities_of
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit
from dpframe.queries.query import Query

CLOSE = 1.0 - 1e-6  # of a step toward the typed epsilon, which so is reached
LEAST_PART = Fraction(1, 100)  # of a typed epsilon, below which noise is not made smaller


@dataclass(frozen=True, repr=False)
class JointPlan:
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
        """One row per output column and Total, as a Polars (or ``"pandas"``) frame; the columns are a plan's."""
        rows = [{"name": name, **row} for name, plan in self.plans.items() for row in plan.rows()]
        return pages.as_frame(rows, like, whole=("size",))

    @property
    def question(self) -> str:
        """The question as text: the ledger's entry."""
        return "; ".join(f"{name}: {plan.query}" for name, plan in self.plans.items())

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("protects", str(self.unit)),
            ("costs", f"{self.cost} ({self.accounting.name} accounting) for all together"),
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
                f"+-{pages.number(row['error'])}" + ("" if row["size"] is None else f" of {row['size']:,} values"),
            ]
            for name, plan in self.plans.items()
            for row in plan.rows()
        ]
        return header, rows

    def __repr__(self) -> str:
        return pages.text_page(f"JointPlan: {', '.join(self.plans)}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"JointPlan: {', '.join(self.plans)}", self._facts(), *self._table())


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
    """Plan several calls as one. Each takes its weight of the cost, and divides it among its Totals.

    Of the plans in `calls` the question and its options count, and not their costs. The checks of those that are
    `dropped` would tell nothing. Noise is made for a `part` of the epsilon, where the whole would be charged more.
    """
    offered = price if price.epsilon is None else replace(price, epsilon=price.epsilon * part)
    by_noise = {name: plan.question.noising.mechanism for name, plan in calls.items()}
    of_name = weights_of({} if weights is None else weights, list(calls), "plan")
    pure = {name: _is_pure(plan.query, by_noise[name], price, accounting, limit) for name, plan in calls.items()}
    query = {name: plan.query.under(pure[name]) for name, plan in calls.items()}
    asked = _asked(calls, dropped)
    shares = {
        name: _divided(of_name[name], query[name], plan.question.pricing.weights, asked.get(name))
        for name, plan in calls.items()
    }
    sensitivities = {name: sensitivities_of(query[name], plan.unit) for name, plan in calls.items()}
    alike = not accounting.charges_price or _alike(by_noise.values(), pure, accounting.charge(price, limit, ()))
    if alike:
        every = tuple(share for name in calls for share in shares[name])
        parts = _by_name(shares, accounting.parts(offered, limit, every, pure=all(pure.values())))
    else:
        parts = _naive(shares, pure, accounting.charge(price, limit, ()))
    noises, choices, checks = {}, {}, {}
    for name, plan in calls.items():
        own = parts[name][: len(sensitivities[name])]
        noises[name], choices[name] = noises_of(
            query[name], by_noise[name], pure[name], sensitivities[name], own, accounting, by_curve=not alike
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
    amount = accounting.charge(price, limit, tuple(noise for name in calls for noise in noises[name]))
    cost = accounting.cost(price, amount, pure=all(pure.values()))
    most = math.inf if price.epsilon is None else up(price.epsilon)
    if cost.epsilon > most and part > LEAST_PART and _is_asked_together(price, accounting, pure):
        return joint_plan(calls, dropped=dropped, part=part * Fraction(min(most / cost.epsilon, CLOSE)), **again)
    plans = {}
    for name, plan in calls.items():
        own = len(sensitivities[name])
        each = parts_of(query[name], sensitivities[name], noises[name][:own], shares[name][:own])
        of_bounds = replace(checks[name], mechanism=noises[name][own]) if name in checks else None
        priced = Priced(price, amount, each, cost, choices[name], query[name], of_bounds)
        more: dict[str, Any] = {"together": tuple(calls), "call": plan.call, "unseen": dropped.get(name)}
        plans[name] = priced.plan(plan.question, plan.unit, accounting, **more)
    return JointPlan(plans, _unit_of_all([plan.unit for plan in calls.values()]), accounting, amount, cost)


def _is_asked_together(price: Price, accounting: Accounting, pure: Mapping[str, bool]) -> bool:
    """Tell whether pure and Gaussian noise mix, at the delta at which losses are read: what they cost adds up to more.

    Pure noise alone is charged by its curve, as in a call of its own.
    """
    at = Fraction(getattr(accounting, "delta", 0))
    return not accounting.charges_price and len({*pure.values()}) > 1 and price.delta in (None, at)


def _divided(whole: Fraction, query: Query, weights: Any, asked: AskedChecks | None) -> Shares:
    """The share of each Total of one call, and last that of its checks."""
    of_checks = Fraction(0) if asked is None else asked.share
    shares = shares_of(query, weights, whole * (1 - of_checks))
    return shares if asked is None else (*shares, whole * of_checks)


def _asked(calls: Mapping[str, Plan], dropped: Mapping[str, PlannedChecks]) -> dict[str, AskedChecks]:
    """The checks of each plan, also of one whose own cost is too small for them: the cost of all decides."""
    wanted = {name: plan.checks or plan.unseen for name, plan in calls.items() if name not in dropped}
    return {name: checks.asked for name, checks in wanted.items() if checks is not None}


def _unit_of_all(units: Sequence[PrivacyUnit]) -> PrivacyUnit:
    """The unit that all of them protect; with bounds only where they have the same."""
    return units[0] if all(unit == units[0] for unit in units) else units[0].who


def _is_pure(
    query: Query, mechanism: str | Calibration | None, price: Price, accounting: Accounting, limit: Amount | None
) -> bool:
    """Laplace noise by name is pure, also where the others of the call need the delta that it names."""
    own_price = replace(price, delta=None) if mechanism == "laplace" else price
    return is_pure(query, mechanism, own_price, accounting, limit)


def _alike(mechanisms: Iterable[str | Calibration | None], pure: Mapping[str, bool], offered: Amount) -> bool:
    """Tell whether the whole has a closed form: all noise Gaussian, or all pure and no delta to use."""
    if any(callable(mechanism) or mechanism == AUTO for mechanism in mechanisms):
        return False
    return not any(pure.values()) or (all(pure.values()) and offered[1] == 0)


def _by_name(shares: Mapping[str, Shares], items: Sequence[Any]) -> dict[str, Any]:
    """The items of a flat sequence, by the name that they belong to."""
    rest = iter(items)
    return {name: tuple(next(rest) for _ in group) for name, group in shares.items()}


def _naive(shares: Mapping[str, Shares], pure: Mapping[str, bool], offered: Amount) -> dict[str, tuple[Part, ...]]:
    """Parts that add up by basic composition: epsilon for all, delta for those that need one."""
    epsilon, delta = offered
    needs = sum(
        (share for name, group in shares.items() if not pure[name] for share in group), Fraction(0)
    ) or Fraction(1)

    def part(share: Fraction, is_pure: bool) -> Part:
        part_epsilon, leak = epsilon * share, Fraction(0) if is_pure else delta * share / needs
        mu = None if not leak else root_down(Fraction(gaussian_curve.largest_mu(down(part_epsilon), down(leak))) ** 2)
        return Part(part_epsilon, mu, PrivacyLoss(typed_down(part_epsilon), typed_down(leak)))

    return {name: tuple(part(share, pure[name]) for share in group) for name, group in shares.items()}
