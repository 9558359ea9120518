"""The step from a query to a plan: the noise of each Total, its share of the cost, and the charge.

If pure and Gaussian noise suit different Totals, mechanism="auto" compares the expected errors of both forms.

For unknown groups, a plan has the noise of the numbers of units, the threshold to show a key, and the noise of the
other Totals. All of it is fixed before the charge and does not depend on the keys that exist. A unit counts in full in
as many groups as the call states, even if fewer groups are found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.accounting.protocol import Shares
from dpframe.display import pages
from dpframe.errors import DpframeError, InvalidArgument, InvalidType, MissingArgument, is_one_of, shown, takes_two
from dpframe.exact import Amount, exact_weight, is_number, up
from dpframe.mechanisms.contract import Mechanism, adds_noise
from dpframe.mechanisms.gaussian import ContrastGaussian
from dpframe.mechanisms.laplace import TruncatedLaplace
from dpframe.mechanisms.quantile_choice import QuantileChoice, quantile_parts
from dpframe.mechanisms.selection import ExponentialMechanism, Peeling, PermuteAndFlip, own_of_place
from dpframe.mechanisms.thresholded import Thresholded, of_noise
from dpframe.planning.auto import Choice, Noises, choose, reach_in_words, tightened
from dpframe.planning.call import Calibration, Question
from dpframe.planning.check_pricing import AskedChecks, PlannedChecks, planned_checks
from dpframe.planning.plan import Plan, Planned, expected_errors
from dpframe.planning.sensitivity import Sensitivity, gaussian_of, laplace_of, sensitivities_of, sensitivity_of
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit
from dpframe.queries.contributions import as_array, key_weights
from dpframe.queries.discovery import Discovery, FoundAxis, found_axis
from dpframe.queries.query import Query, by_choice
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import Choosing, Deciding, Weighing
from dpframe.queries.total import WEIGHT_BITS, Total, over


def equal(count: int) -> Shares:
    """Return `count` equal shares."""
    return (Fraction(1, count),) * count


def shares_of(query: Query, weights: Any, whole: Fraction = Fraction(1)) -> Shares:
    """Return the share of each Total of a query; the shares add up to `whole`.

    Without weights, Totals have equal shares, unless a statistic weights its own. A column with a weight divides it in
    the same way among its Totals (two for a mean, and one for each level of subtotals). A Total of several columns gets
    a part from each.
    """
    if weights is None:
        weight_of: dict[Total, int | Fraction] = {}
        for _, statistic in query.statistics:
            for total, weight in _relative(statistic).items():
                weight_of[total] = max(weight_of.get(total, 0), weight)
        each = [weight_of.get(over(total, None), 1) for total in query.totals]  # 1 for the Total that finds keys
        return tuple(whole * share for share in _scaled(each))
    of_column = weights_of(weights, [name for name, _ in query.statistics], "output column")
    shares = dict.fromkeys(query.totals, Fraction(0))
    for name, statistic in query.statistics:
        relative = _relative(statistic)
        needed = [total for total in query.totals if over(total, None) in relative]
        for total, part in zip(needed, _scaled([relative[over(total, None)] for total in needed]), strict=True):
            shares[total] += whole * of_column[name] * part
    return tuple(shares.values())


def _relative(statistic: Statistic) -> dict[Total, int | Fraction]:
    """Return the relative weight of each Total of a statistic."""
    totals = statistic.totals()
    weights = statistic.weights() if isinstance(statistic, Weighing) else (1,) * len(totals)
    return dict(zip(totals, weights, strict=True))


def _scaled(weights: Sequence[int | Fraction]) -> Shares:
    """Scale weights to shares that add up to exactly 1."""
    return tuple(Fraction(weight) / sum(weights) for weight in weights)


def weights_of(weights: Any, names: Sequence[str], what: str) -> dict[str, Fraction]:
    """Return the checked weights of all `names`, scaled to add up to 1."""
    example = f"Write for instance weights={{{names[0]!r}: 2}}: a name that is left out weighs 1."
    if not isinstance(weights, Mapping):
        raise InvalidType(f"weights must be a dict of numbers by {what}, not {shown(weights)}. {example}")
    for name, value in weights.items():
        if name not in names:
            raise InvalidArgument(f"weights must name the {what}s {', '.join(names)}, not {shown(name)}. {example}")
        if not is_number(value):
            raise InvalidType(f"weights must be numbers above 0, and that of {name!r} is {shown(value)}. {example}")
    exact = {name: exact_weight(weights.get(name, 1)) for name in names}
    total = sum(exact.values(), Fraction(0))
    return {name: weight / total for name, weight in exact.items()}


LEAST = 1e-300  # the least error, so that its logarithm is finite


@dataclass(frozen=True)
class Formed:
    """A question in one form, with the noise of each Total and the typical squared error of its columns."""

    query: Query
    sensitivities: list[Sensitivity]
    shares: Shares
    noises: Noises
    squared_error: float


def has_forms(query: Query) -> bool:
    """Return whether a query has different forms for pure noise and for Gaussian noise."""
    return query.under(True) != query.under(False)


def best_form(
    query: Query,
    unit: PrivacyUnit,
    price: Price,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any,
    *,
    pure: bool,
    whole: Fraction = Fraction(1),
) -> tuple[Formed, Choice]:
    """Return the form with the least typical expected error at this cost, from public facts alone, and the reason."""
    tried = []
    for form in (True, False):
        candidate = query.under(form)
        shares, sensitivities = shares_of(candidate, weights, whole), sensitivities_of(candidate, unit)
        offered = accounting.parts(price, limit, shares, pure=pure)
        if any((part.epsilon if form else part.mu) is None for part in offered):
            continue
        made = laplace_of if form else gaussian_of
        noises = tuple(made(sensitivity, part) for sensitivity, part in zip(sensitivities, offered, strict=True))
        tried.append(Formed(candidate, sensitivities, shares, noises, _squared_error(candidate, noises)))
    best = min(tried, key=lambda formed: formed.squared_error)
    ordered = sorted(tried, key=lambda formed: formed.squared_error)
    errors = tuple((formed.noises[0].name, formed.squared_error) for formed in ordered)
    is_pure = best.query == query.under(True)
    names = tuple(formed.noises[0].name for formed in tried)
    return best, Choice(best.noises, errors, is_pure, reach_in_words(best.sensitivities[0]), names, by_errors=True)


def _squared_error(query: Query, noises: Noises) -> float:
    """Return the squared geometric mean of the expected errors: a comparison by it does not depend on their units."""
    parts = [
        Planned(total, None, noise, 0.0)  # type: ignore[arg-type]  # only the noise is read
        for total, noise in zip(query.totals, noises, strict=True)
    ]
    errors = expected_errors(query, parts, None, CONFIDENCE).values()
    finite = [max(error, LEAST) for error in errors if math.isfinite(error)]
    mean = math.fsum(map(math.log, finite)) / len(finite) if finite else 0.0
    return math.exp(2.0 * mean)


AUTO = "auto"  # the noise with the least variance, or the form and noise with the least expected error
CHOICE = "exponential"  # the family of mechanisms that choose a quantile among candidates, by their ranks
IS_PURE = {"laplace": True, "gaussian": False}  # whether the noise of each name is pure
CALIBRATION_EXAMPLE = (
    "Write for instance lambda sensitivity, loss: dpf.Laplace.calibrate("
    "sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)."
)


@dataclass(frozen=True)
class Priced:
    """A question with the noise that it gets for a cost, and with its charge."""

    price: Price
    amount: Amount
    parts: tuple[Planned, ...]
    cost: PrivacyLoss
    choice: Choice | None
    query: Query  # in the form that suits the noise
    checks: PlannedChecks | None = None

    @property
    def noises(self) -> Noises:
        """The noise of each Total."""
        return tuple(part.mechanism for part in self.parts)

    def plan(self, question: Question, unit: PrivacyUnit, accounting: Accounting, **more: Any) -> Plan:
        """Make the plan."""
        size = question.pricing.size
        known = (self.query, unit, self.price, accounting, self.amount, self.parts, self.cost)
        return Plan(*known, question=question, choice=self.choice, size=size, checks=self.checks, **more)


def priced(
    query: Query,
    *,
    unit: PrivacyUnit,
    price: Price,
    mechanism: str | Calibration | None,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any = None,
    checks: AskedChecks | None = None,
) -> Priced:
    """Plan a query whose columns were already checked against the frame's schema."""
    if is_one_of(mechanism, (CHOICE,)) and not by_choice(query):
        usual = {"unit": unit, "price": price, "accounting": accounting, "limit": limit, "weights": weights}
        return _chosen_by_ranks(query, **usual)
    if query.choices:
        query = _decided(query, unit, price, accounting, limit)
    rest = Fraction(1) if checks is None else 1 - checks.share  # the part of the cost that the answers divide
    pure = is_pure(query, mechanism, price, accounting, limit)
    choice: Choice | None
    if mechanism == AUTO and has_forms(query):
        best, choice = best_form(query, unit, price, accounting, limit, weights, pure=pure, whole=rest)
        query, sensitivities, shares, noises = best.query, best.sensitivities, best.shares, best.noises
    else:
        query = query.under(pure)
        shares, sensitivities = shares_of(query, weights, rest), sensitivities_of(query, unit)
        offered = accounting.parts(price, limit, shares, pure=pure)
        noises, choice = noises_of(query, mechanism, pure, sensitivities, offered, accounting)
    checked: tuple[PlannedChecks, ...] = ()
    if checks is not None:
        part, _ = accounting.parts(price, limit, (checks.share, rest), pure=pure)
        by_loss = accounting.charges_price and (callable(mechanism) or not all(noise.exact_mu for noise in noises))
        checked = (planned_checks(query, unit, noises, checks, part, by_loss=by_loss),)
    every = (*noises, *(each.mechanism for each in checked))
    if callable(mechanism) and len(noises) > 1 and accounting.charges_price:
        every = _tightened_where_possible(every, accounting.charge(price, limit, every))
        noises = every[: len(noises)]
        checked = tuple(replace(each, mechanism=every[-1]) for each in checked)
    chosen = bool(query.choices) and by_choice(query)
    if ((choice and choice.is_pure) or chosen) and accounting.charges_price:
        price = replace(price, delta=None)  # pure noise needs no delta, so the charge is less than the stated cost
    amount = accounting.charge(price, limit, every)
    cost = accounting.cost(price, amount, pure=pure)
    parts = parts_of(query, sensitivities, noises, shares, sum(shares) + 1 - rest)
    return Priced(price, amount, parts, cost, choice, query, *checked)


def _chosen_by_ranks(query: Query, **at: Any) -> Priced:
    """Plan a quantile that is chosen by ranks, and compare its error with noisy running counts at the same cost."""
    asked = _as_choice(query)
    if asked is None:
        raise InvalidArgument(
            "mechanism must be noise here: only one quantile of the whole frame, without group_by, can be chosen. "
            "Write median(column, bounds=..., mechanism='exponential'), or leave mechanism out."
        )
    by_choice = priced(asked, mechanism=CHOICE, **at)
    usual = priced(query, mechanism=None, **at)
    (chosen,), (counted,) = (
        expected_errors(either.query, either.parts, None, CONFIDENCE).values() for either in (by_choice, usual)
    )
    ranks = "rank" if chosen == 1.0 else "ranks"
    why = (
        f"a choice by ranks was asked for: it is within {pages.number(chosen)} {ranks}, noisy running counts would be "
        f"within {pages.number(counted)}; but no choice tells distances in values, so its interval holds all candidates"
    )
    return replace(by_choice, query=because(by_choice.query, why))


def _as_choice(query: Query) -> Query | None:
    """Return the question in the form of a choice; None unless it asks for one quantile of the whole frame."""
    (name, first), *others = query.statistics
    chosen = first.as_choice() if isinstance(first, Deciding) else None
    if chosen is None or others or query.keys.axes:
        return None
    return replace(query, statistics=((name, chosen),))


def _decided(query: Query, unit: PrivacyUnit, price: Price, accounting: Accounting, limit: Amount | None) -> Query:
    """Return the question in the form whose choice has the least error, from public facts alone.

    If counts lie close together, the shortfall of a choice by noisy scores grows with the variance of the noise. The
    exponential mechanism chooses by Gumbel noise, whose variance is pi^2 / 6 times its squared scale. Permute-and-flip
    chooses by exponential noise: the largest of many such numbers has about the same variance.
    """
    each = [
        [(name, form) for form in (one.forms(query.keys.cells) if isinstance(one, Choosing) else (one,))]
        for name, one in query.statistics
    ]
    forms = [replace(query, statistics=statistics) for statistics in product(*each)]
    if len(forms) == 1:
        return forms[0]
    candidates = []
    for form in forms:
        pure = is_pure(form, None, price, accounting, limit)
        offered = accounting.parts(price, limit, shares_of(form, None), pure=pure)
        (noise,), _ = noises_of(form, None, pure, sensitivities_of(form, unit), offered, accounting)
        variance = noise.variance if noise.additive else math.pi**2 / 6.0 * noise.scale**2
        candidates.append((variance, noise.name, form))
    (least, name, best), (other, instead, _) = sorted(candidates, key=lambda candidate: candidate[0])
    return because(
        best, f"{name} was chosen: its variance is {least / other if other else 1.0:.2g} of that of {instead}"
    )


def because(query: Query, why: str) -> Query:
    """Return the question with the reason for the way in which its plan chooses."""
    return query.each(lambda one: one.because(why) if isinstance(one, Deciding) else one)


def _tightened_where_possible(noises: Noises, offered: Amount) -> Noises:
    """Calibrate the noises together. If that needs dp-accounting and it is missing, each keeps its part of the cost."""
    try:
        return tightened(noises, *offered)
    except ImportError:
        return noises


def parts_of(
    query: Query, sensitivities: Sequence[Sensitivity], noises: Noises, shares: Shares, whole: Fraction | None = None
) -> tuple[Planned, ...]:
    """Return each Total as planned. `whole` is the sum of all shares, with those of checks and of other calls."""
    if (whole or sum(shares)) > 1:  # a fault of dpframe: noise for a larger cost would be charged as the whole
        raise DpframeError(
            "dpframe divided the cost into more than the whole. Nothing was charged. Please report it, with the call."
        )
    each = zip(query.totals, sensitivities, noises, shares, strict=True)
    return tuple(Planned(total, sensitivity, noise, float(share)) for total, sensitivity, noise, share in each)


def noises_of(
    query: Query,
    mechanism: str | Calibration | None,
    pure: bool,
    sensitivities: Sequence[Sensitivity],
    offered: Sequence[Part],
    accounting: Accounting,
    *,
    by_curve: bool = False,
) -> tuple[Noises, Choice | None]:
    """Return the noise of each Total for its part of the cost, and the reason if the least variance decided.

    With `by_curve`, the call is charged together with others by the curves of their noise, whatever the accounting.
    """
    if query.choices and by_choice(query):
        by_price = accounting.charges_price and not by_curve
        return (_selecting(query, sensitivities[0], offered[0], by_price=by_price),), None
    if mechanism == AUTO:
        choice = choose(sensitivities, offered, accounting=accounting)
        return choice.mechanisms, choice
    noises = tuple(
        calibrated(mechanism, pure, sensitivity, part) for sensitivity, part in zip(sensitivities, offered, strict=True)
    )
    (_, one), *others = query.statistics  # a denoisable statistic is one noisy number per cell, as drawn
    if not all(noise.additive for noise in noises) and (others or len(noises) > 1 or not one.denoisable):
        raise InvalidArgument(
            f"mechanism must be additive noise for all but one count or sum, unlike {noises[0].name}. "
            "Leave mechanism out."
        )
    if len({noise.norm for noise in noises}) > 1:
        raise InvalidArgument("mechanism must have one shape p for all statistics of a call: units have one weight.")
    return noises, None


def _selecting(query: Query, sensitivity: Sensitivity, part: Part, *, by_price: bool) -> Mechanism:
    """Return the choice by counts: an added unit only raises them, a replaced unit moves them both ways.

    At one epsilon, permute-and-flip is never farther from the largest count than the exponential mechanism. But only
    the latter has a bounded range of losses: it costs less if curves are charged, and needs less noise for a given mu.
    """
    assert part.epsilon is not None
    kind = PermuteAndFlip if by_price else ExponentialMechanism
    rank, peels = _rank_of(query), _peels_of(query)
    if rank is not None:
        return QuantileChoice.of_steps(
            kind,
            sensitivity.steps(1),
            own_of_place(part.epsilon, None if by_price else part.mu, 1),
            q=quantile_parts(rank),
            replace=sensitivity.replace,
            options=sensitivity.cells,
            grid=sensitivity.grid,
        )
    choice = kind.of_steps(
        sensitivity.steps(math.inf),
        own_of_place(part.epsilon, None if by_price else part.mu, peels or 1),
        monotonic=not sensitivity.replace,
        options=query.keys.cells,
        grid=sensitivity.grid,
    )
    return Peeling(choice, peels) if peels else choice


def _rank_of(query: Query) -> float | None:
    """Return the quantile that is chosen by ranks; None if there is none."""
    return next((choice.rank for choice in query.choices if choice.rank is not None), None)


def _peels_of(query: Query) -> int:
    """Return the number of cells that are chosen one after the other; 0 for a single choice."""
    return max(choice.peels for choice in query.choices)


def is_pure(
    query: Query, mechanism: str | Calibration | None, price: Price, accounting: Accounting, limit: Amount | None
) -> bool:
    """Return whether the noise is pure: for a choice, by its name, or if neither cost nor accounting has a delta."""
    if query.choices and by_choice(query):
        # if losses are read at one delta, a top-k or a quantile gets the mu of Gaussian noise at this cost
        return not ((_peels_of(query) or _rank_of(query) is not None) and accounting.has_own_delta)
    named = isinstance(mechanism, str) and (mechanism in IS_PURE or mechanism == AUTO)
    if not (mechanism is None or named or _is_calibration(mechanism)):
        example = f" {CALIBRATION_EXAMPLE}" if callable(mechanism) else ""
        if is_one_of(mechanism, ("choice",)):
            example = f" Write mechanism={CHOICE!r}."
        given = shown(mechanism)
        if callable(mechanism) and not isinstance(mechanism, type):
            given = f"{given} of other arguments"  # such as a function that returns a calibration and was not called
        choice = f"{CHOICE!r}, " if _as_choice(query) is not None else ""
        raise InvalidArgument(
            f"mechanism must be 'laplace', 'gaussian', 'auto', {choice}a function (sensitivity, loss) -> Mechanism or "
            f"None, not {given}.{example}"
        )
    has_delta = (
        accounting.has_own_delta or bool(price.delta) or (price.share is not None and bool((limit or (0, 0))[1]))
    )
    if any(getattr(statistic, "gaussian_only", False) for _, statistic in query.statistics):
        _check_gaussian(query, mechanism, price, has_delta)
    if mechanism == "gaussian" and not has_delta:
        raise _no_delta(price)
    if mechanism == "laplace" and price.delta:
        raise InvalidArgument(
            f"delta must be left out with Laplace noise, which needs none, not {up(price.delta):g}. "
            "Drop delta or mechanism."
        )
    if isinstance(mechanism, str) and mechanism != AUTO:
        return IS_PURE[mechanism]
    return not callable(mechanism) and not has_delta


def _check_gaussian(query: Query, mechanism: str | Calibration | None, price: Price, has_delta: bool) -> None:
    """Refuse noise other than Gaussian for a statistic that has no other form."""
    verb = query.statistics[0][1].verb
    if not is_one_of(mechanism, (None, "gaussian")):
        raise InvalidArgument(
            f"mechanism must be Gaussian noise for {verb}, not {shown(mechanism)}. "
            "Leave mechanism out and give a delta, such as delta=1e-6."
        )
    if not has_delta and price.share is not None:
        raise InvalidArgument(
            f"share must be a share of a ledger with a delta for {verb}, and this ledger has none. "
            "Make one with dpf.Ledger(epsilon=..., delta=...)."
        )
    if not has_delta:
        raise MissingArgument(
            f"delta must be given for {verb}, which uses Gaussian noise. Write for instance delta=1e-6, or "
            "release each table by itself: group_by(...).count(epsilon=...)."
        )


def _no_delta(price: Price) -> InvalidArgument:
    """Return the error of a call that asks for Gaussian noise at a cost without a delta."""
    if price.share is not None:
        return InvalidArgument(
            "share must be a share of a ledger with a delta for Gaussian noise, and this ledger has none. "
            "Make one with dpf.Ledger(epsilon=..., delta=...), or leave mechanism out for Laplace."
        )
    if price.delta is not None:
        return InvalidArgument("delta must be above 0 for Gaussian noise. Write for instance delta=1e-6.")
    return MissingArgument(
        "delta must be given for Gaussian noise. Write for instance delta=1e-6, or leave mechanism out for Laplace."
    )


def _is_calibration(mechanism: object) -> bool:
    """Return whether it is a function of two arguments. A class such as dpf.Laplace would make uncalibrated noise."""
    return callable(mechanism) and not isinstance(mechanism, type) and takes_two(mechanism)


def calibrated(mechanism: str | Calibration | None, pure: bool, sensitivity: Sensitivity, part: Part) -> Mechanism:
    """Return the noise of one Total for its part of the cost."""
    if callable(mechanism):
        return _checked(mechanism(sensitivity, part.loss), sensitivity, part)
    return laplace_of(sensitivity, part) if pure else gaussian_of(sensitivity, part)


def _checked(mechanism: Mechanism, sensitivity: Sensitivity, part: Part) -> Mechanism:
    """Refuse a caller's noise that covers too little sensitivity, or costs more than its part of the cost."""
    if not adds_noise(mechanism):
        raise InvalidType(
            f"mechanism must return a calibrated dpframe mechanism, not {shown(mechanism)}. {CALIBRATION_EXAMPLE}"
        )
    if isinstance(mechanism, Thresholded) or mechanism.keys_delta:
        raise InvalidArgument(
            "mechanism must be noise alone, without a threshold or a delta for unknown groups. Return Laplace or "
            "Gaussian noise."
        )
    if isinstance(mechanism, ContrastGaussian) and mechanism.design is not sensitivity.contrasts:
        raise InvalidArgument(
            "mechanism must be noise for these totals, and ContrastGaussian is for the contrasts of marginals. "
            "Use Gaussian."
        )
    if mechanism.grid != sensitivity.grid:
        raise InvalidArgument(
            f"mechanism must work on the statistic's grid {sensitivity.grid:g}, not {mechanism.grid:g}. "
            "Pass grid=sensitivity.grid."
        )
    if mechanism.cells < sensitivity.swayed:
        raise InvalidArgument(
            f"mechanism must cover the {sensitivity.swayed:,} cells that one unit may change here, but the noise "
            f"({mechanism.name}) is private only where it changes {mechanism.cells:g}. Use Laplace or Gaussian noise."
        )
    needed = sensitivity.norm(mechanism.norm)
    if mechanism.sensitivity < needed:
        raise InvalidArgument(
            f"mechanism must cover the sensitivity {needed:g} (l_{mechanism.norm:g}), "
            f"not only {mechanism.sensitivity:g}. "
            f"Pass sensitivity=sensitivity.norm({mechanism.norm:g})."
        )
    if mechanism.delta(part.loss.epsilon) > part.loss.delta:  # no tolerance: calibrations round to the safe side
        raise InvalidArgument(
            f"mechanism must cost at most {part.loss}, but at that epsilon its delta is "
            f"{mechanism.delta(part.loss.epsilon):g}. "
            "Calibrate it to the loss that it is given."
        )
    return mechanism


KEYS = "keys"  # the name in `weights` of the numbers of units, if no column shows them


def priced_with_keys(
    query: Query,
    *,
    unit: PrivacyUnit,
    price: Price,
    mechanism: str | Calibration | None,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any = None,
) -> Priced:
    """Plan a query with unknown groups, whose columns were already checked against the frame's schema."""
    if not is_one_of(mechanism, (None, "laplace", "gaussian")):
        raise InvalidArgument(
            "mechanism must be 'laplace', 'gaussian' or None for keys that are found, whose threshold is known for "
            f"these alone, not {shown(mechanism)}. Leave it out."
        )
    axis, _ = _found(query)
    if not accounting.takes_keys:
        raise MissingArgument(
            f"keys_delta must be given when a ledger with {accounting.name} accounting is created: dpf.discover needs "
            "a part of its delta. Write for instance "
            "dpf.Ledger(epsilon=2, delta=1e-6, keys_delta=1e-7)."
        )
    pure = is_pure(query, mechanism, price, accounting, limit)
    query = query.under(pure)
    shares = _shares(query, weights)
    offered = accounting.parts(price, limit, shares, pure=pure)
    sensitivities = [
        of_people(axis, unit),
        *(sensitivity_of(total, unit, query.keys.cells) for total in query.totals[1:]),
    ]
    rest = [
        calibrated(mechanism, pure, sensitivity, part)
        for sensitivity, part in zip(sensitivities[1:], offered[1:], strict=True)
    ]
    people = _people(query, unit, sensitivities[0], offered[0], accounting, pure=pure)
    noises = (people, *rest)
    amount = accounting.charge(price, limit, noises)
    cost = accounting.cost(price, amount, pure=pure)
    return Priced(price, amount, parts_of(query, sensitivities, noises, shares), cost, None, query)


def of_people(axis: FoundAxis, unit: PrivacyUnit) -> Sensitivity:
    """Return the sensitivity of the numbers of units: K^(1/p), where K is the smaller of max_groups and max_keys."""
    if axis.by_rows:
        return sensitivity_of(axis.people, unit, axis.size)
    discovery = axis.discovery
    assert discovery is not None
    most = unit.contribution.max_groups
    fine = discovery.max_keys > most
    return Sensitivity(
        reach=(0, 2**WEIGHT_BITS if fine else 1),
        cells=axis.size,
        rows=1,
        groups=min(most, discovery.max_keys),
        weighted=True,
        replace=unit.neighbors == "replace",
        grid=axis.people.norm(fine).grid,
    )


def weights_of_units(axis: FoundAxis, unit: PrivacyUnit, p: float) -> tuple[int, ...]:
    """Return the weight v(t) for each number t of keys that a unit may keep. If each row is a unit, t is 1."""
    assert axis.discovery is not None
    if axis.by_rows:
        return (1,)
    return key_weights(axis.discovery.max_keys, unit.contribution.max_groups, p)


def _people(
    query: Query, unit: PrivacyUnit, sensitivity: Sensitivity, part: Part, accounting: Accounting, *, pure: bool
) -> Thresholded:
    """Return the noise of the numbers of units, with the threshold to show a key.

    If each unit has one key and the stated cost is charged, truncated noise never has a higher threshold than Laplace
    noise. The key of an added unit is either new or shared with others, so the larger delta holds (`apart`). A replaced
    unit may leave a key of its own and join a shared one, so the deltas add up.
    """
    axis, discovery = _found(query)
    single = axis.by_rows or discovery.max_keys == 1
    alone = axis.by_rows or len(query.totals) == 1
    law: Mechanism
    if single and pure and accounting.charges_price:
        assert part.epsilon is not None
        counts = 2 if unit.neighbors == "replace" else 1
        law = TruncatedLaplace.calibrate(epsilon=part.epsilon, delta=discovery.delta, counts=counts)
    else:
        law = calibrated(None, pure, sensitivity, part)
    apart = single and alone and unit.neighbors == "add-remove"
    weights = as_array(weights_of_units(axis, unit, law.norm))
    return of_noise(law, weights, discovery.delta, at_least=discovery.at_least, apart=apart)


def _found(query: Query) -> tuple[FoundAxis, Discovery]:
    axis = found_axis(query.keys)
    assert axis is not None
    assert axis.discovery is not None
    return axis, axis.discovery


def _shares(query: Query, weights: Any) -> Shares:
    """Return the share of each Total. The numbers of units get a share even if no column shows them."""
    if weights is None:
        return equal(len(query.totals))
    axis, _ = _found(query)
    names = [name for name, _ in query.statistics]
    hidden = not any(axis.people in statistic.totals() for _, statistic in query.statistics)
    if hidden and KEYS in names:
        raise InvalidArgument(
            f"weights must tell the output column {KEYS!r} from the number of units in each group, which has this name "
            "there. Give the column another name."
        )
    of_column = weights_of(weights, [*names, *([KEYS] if hidden else [])], "output column")
    shares = dict.fromkeys(query.totals, Fraction(0))
    for name, statistic in query.statistics:
        for total in statistic.totals():
            shares[total] += of_column[name] / len(statistic.totals())
    if hidden:
        shares[axis.people] += of_column[KEYS]
    return tuple(shares.values())


def check_asked(**options: Any) -> None:
    """Refuse options that need declared cells, for a query with unknown groups."""
    for name, value in options.items():
        if value is not None:
            raise InvalidArgument(
                f"{name} must be left out with keys=dpf.discover(...), whose groups nobody knows beforehand, not "
                f"{shown(value)}. Declare the keys to say something of them."
            )
