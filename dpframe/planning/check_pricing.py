"""The planned checks of a call: their share of the cost, their noise, and the intervals to expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting import Part
from dpframe.display import pages
from dpframe.errors import InvalidArgument, how_many
from dpframe.exact import root_up
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning.auto import Noises
from dpframe.planning.sensitivity import groups_in, uses_rows, uses_units
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis
from dpframe.queries.contributions import groups_of
from dpframe.queries.indicators import Between, Checks, Clips, Indicator, Rule
from dpframe.queries.keys import Keys
from dpframe.queries.limits import AUTO
from dpframe.queries.query import Query, by_choice, chooses, distributed
from dpframe.queries.quotients import quotient_ends, sum_interval
from dpframe.queries.statistics import CONFIDENCE
from dpframe.queries.total import by_whole_units
from dpframe.queries.where import Conditional, as_checked, is_compared

Integers = NDArray[np.int64]

USUAL = Fraction(1, 20)  # the share of the cost of a call that checks take by default
TYPICAL = 1_000  # the assumed number of units if the call gives no size
NONE = "none, since such a call cannot measure what is clipped, left out or counts for less"  # a line of the plan
WIDEST = 0.5  # the largest width of the interval of a share; if wider, checks are measured only if asked for


@dataclass(frozen=True)
class AskedChecks:
    """The checks that a call or its ledger asks for: their share of the cost, and whether that is the default.

    `boolean` are the columns whose dtype excludes clipping to [0, 1].
    """

    share: Fraction
    by_default: bool = False
    boolean: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PlannedChecks:
    """The indicators of a call, the noise of their counts, and their share of the cost.

    The share is of epsilon for Laplace noise, and of mu^2 for Gaussian noise.
    """

    checks: Checks
    mechanism: Mechanism
    asked: AskedChecks

    @property
    def share(self) -> Fraction:
        """The share of the cost of the call."""
        return self.asked.share

    def tell_nothing(self, size: int | None) -> bool:
        """Return whether checks are only the default, and are too uncertain for groups of `size` values."""
        return self.asked.by_default and size is not None and self.width(self.units_of(size)) > WIDEST

    def units_of(self, size: int | None) -> int:
        """Return the number of units if all groups have `size` values, and a unit is in as many as count in full."""
        if size is None:
            return TYPICAL
        groups = self.checks.keys.cells // self.checks.inner
        each = 1 if self.checks.unit.column is None else groups_of(self.checks.unit, groups)
        return size * groups // each

    def width(self, units: int) -> float:
        """Return the width of the 95% interval of a share of 1/2 among `units` units; at most 1."""
        low, high = shares_between(np.array([units / 2.0]), np.array([float(units)]), self.mechanism)
        return float((high - low)[0])

    def rows(self, numbers: Integers) -> list[dict[str, Any]]:
        """Return a row for each indicator from the noisy counts, for a record and ``.dp.checks()``."""
        counted = list(zip(self.checks.indicators, np.asarray(numbers, dtype=np.float64).tolist(), strict=True))
        counts = dict(counted)  # read for "present" and "units", which are unique; "below" of several bounds is not
        error = self.mechanism.interval(CONFIDENCE)
        whole = Indicator(None, "units")
        clips = [each for each in self.checks.clips for _ in ("below", "above")]  # in the order of the first indicators
        rows = []
        for place, (indicator, count) in enumerate(counted):
            of = Indicator(indicator.of, "present") if indicator.what in ("below", "above") else whole
            total = counts.get(of, 0.0)
            low, high = shares_between(np.array([count]), np.array([total]), self.mechanism)
            share = min(max(count / total, 0.0), 1.0) if total > 0.0 else None
            shares = {"share": share, "share_low": float(low[0]), "share_high": float(high[0])}
            if indicator == whole or of not in counts:
                shares = dict.fromkeys(shares)
            of_words = None if indicator.of is None else str(indicator.of)  # also for a column with conditions
            rows.append({"of": of_words, "what": indicator.what, **shares, "count": count, "count_error": error})
            if place < len(clips):
                bounds = clips[place].bounds
                rows[-1] |= {"measures": [*clips[place].measures], "bounds": None if bounds is None else [*bounds]}
        return rows

    def expected(self, size: int | None) -> tuple[float, str]:
        """Return the expected half-width of a share of 1/2, in percentage points, and the number of units as text."""
        units = self.units_of(size)
        of = "rows" if self.checks.unit.column is None else f"units ({self.checks.unit.one})"
        return 50.0 * self.width(units), f"{units:,} {of}"


def line_of_checks(planned: Sequence[PlannedChecks], size: int | None) -> str:
    """Return the line on checks for one plan, or for several plans of one question."""
    halves = [each.expected(size)[0] for each in planned]
    least, most = pages.number(min(halves)), pages.number(max(halves))
    within = f"+-{least}" if least == most else f"+-{least} to +-{most}"
    return (
        f"{100 * float(planned[0].share):.3g}% of the cost measures what the bounds leave out: each share to within "
        f"{within} percentage points of {planned[0].expected(size)[1]}"
    )


def line_of_none(planned: PlannedChecks, size: int | None) -> str:
    """Return the line of a plan that leaves out its checks because they are too uncertain."""
    half, of = planned.expected(size)
    return (
        f"what the bounds leave out is not measured: of {of} a share would be known to within +-{pages.number(half)} "
        "percentage points; checks=True asks for it"
    )


def has_none(query: Query, unit: PrivacyUnit) -> bool:
    """Return whether a question may clip or leave out data that no checks can measure."""
    unchecked = query.keys.counted == "units" or any(getattr(one, "unchecked", False) for _, one in query.statistics)
    return not unchecked and checks_of(query, unit, 1) is None


def checks_of(query: Query, unit: PrivacyUnit, p: float, boolean: Collection[str] = ()) -> Checks | None:
    """Return the checks of a question whose noise has the norm `p`; None if checks are not possible.

    `boolean` are the columns whose dtype excludes clipping to [0, 1].
    """
    if query.keys.unknown or query.keys.counted == "units" or by_choice(query):
        return None
    if any(getattr(statistic, "unchecked", False) for _, statistic in query.statistics):
        return None
    if chooses(query) and not all(choice.numbered for choice in query.choices):  # type: ignore[attr-defined]
        return None
    if any(total.norm(weighted=False).contrasts is not None for total in query.of_cells):
        return None
    between: dict[Between, dict[str, None]] = {}
    for name, statistic in query.statistics:
        for total in statistic.totals():
            for clipped, bounds in total.values:
                if not (clipped in boolean and bounds == (0.0, 1.0)) and not is_compared(clipped):
                    of = Between(*as_checked(clipped, bounds), by_whole_units(total) and unit.column is not None)
                    between.setdefault(of, {})[name] = None
    keys, inner, among = query.keys, query.keys.cells // groups_in(query), None
    ends: dict[Between, tuple[Any, Any]] = {}
    if (column := distributed(query)) is not None:
        *outer, axis = keys.axes
        assert isinstance(axis, BinAxis)
        keys, inner, among = Keys(tuple(outer)), 1, column
        of, said = Between(column, (axis.edges[0], axis.edges[-1]), kind=axis.kind), axis.facts()
        between.setdefault(of, {}).update((name, None) for name, _ in query.statistics)  # an Ecdf, always alone
        ends = {of: (said["first"], said["last"])}  # dates as text
    own = {of for of in between if isinstance(of.column, Conditional) and of.column.groups is not None}
    clips = [Clips(tuple(names), None if of in own else ends.get(of, of.bounds)) for of, names in between.items()]
    outside = any(axis.coding != "rest" for axis in keys.axes)  # a "rest" axis has a cell for each row
    return Checks(keys, inner, among, tuple(between), outside, _rules(query, unit, p), unit, tuple(clips))


def _rules(query: Query, unit: PrivacyUnit, p: float) -> tuple[Rule, ...]:
    """Return the contribution bounds that a question uses, as rules on integer counts of one unit."""
    if unit.column is None:
        return ()
    rows, groups = unit.contribution.max_rows, groups_of(unit, groups_in(query))
    each = f"more than {how_many(rows, 'row')}"
    rules = []
    if uses_rows(query):
        together = Rule(f"more than {how_many(rows * groups, 'row')} in all", "rows", rows * groups)
        if p == 1 or groups == 1 == groups_in(query):
            rules.append(replace(together, words=each) if groups == 1 == groups_in(query) else together)
        elif p == math.inf:
            rules.append(Rule(f"{each} in a group", "most rows", rows))
        elif rows == groups == 1:
            rules.append(together)  # whole numbers add up to more than 1 if and only if their squares do
        else:
            squares = "by the sum of squares"
            within = f", {squares} over groups" if groups == 1 else f" in each of {groups:,} groups, {squares}"
            rules.append(Rule(f"{each}{within}", "squares", rows**2 * groups))
        if p != 1 and query.subtotals is not None and together not in rules:
            rules.append(together)
    if uses_units(query) and groups < groups_in(query) and p != math.inf:  # for p = inf, all weights are 1
        rules.append(Rule(f"more than {how_many(groups, 'group')}", "groups", groups))
    return tuple(rules)


def asked_checks(
    query: Query, unit: PrivacyUnit, asked: Any, usual: Any = None, booleans: Callable[[], Collection[str]] = tuple
) -> AskedChecks | None:
    """Return the checks that a call asks for; None if it has none.

    If the call does not set `asked`, the ledger's setting `usual` applies if there is something to check. By default,
    checks take 1/20 of the cost if values may be clipped, or if units may have a lower weight. `booleans` returns the
    columns whose dtype excludes clipping to [0, 1].
    """
    own = asked is not None
    asked = asked if own else usual
    if asked is False:
        return None
    by_default = asked is None or asked == AUTO
    if by_default and unit.column is None and not any(total.values for total in query.of_cells):
        if distributed(query) is None:
            return None  # no value is clipped, and no row has a lower weight
    boolean = frozenset(booleans())
    checks = checks_of(query, unit, 1, boolean)
    if by_default:
        return AskedChecks(USUAL, True, boolean) if checks is not None and checks.finds else None
    nothing = checks is None or not (checks.finds or checks.outside)
    if nothing and not own:
        return None
    if nothing:
        raise InvalidArgument(
            f"checks must be left out of {query.verb} here, which clips no value, leaves out no row and bounds no "
            "unit, or adds no noise to a number. Drop checks."
        )
    return AskedChecks(USUAL if asked is True else Fraction(asked), False, boolean)


def planned_checks(
    query: Query,
    unit: PrivacyUnit,
    noises: Noises,
    asked: AskedChecks,
    part: Part,
    *,
    by_loss: bool,
) -> PlannedChecks:
    """Return the checks of a question whose answers have these noises, with the noise for their part of the cost.

    Their noise is calibrated separately. It is pure if all noise of the call is pure, and otherwise Gaussian. With
    `by_loss`, all noise of the call, also that of the checks, is charged as a sum of pairs (epsilon, delta).
    """
    checks = checks_of(query, unit, noises[0].norm, asked.boolean)
    assert checks is not None
    if all(noise.pure_epsilon is not None for noise in noises):
        assert part.epsilon is not None
        return PlannedChecks(checks, Laplace.of_steps(checks.moved, part.epsilon, 1.0), asked)
    norm = root_up(Fraction(checks.moved), math.sqrt(checks.moved))
    if by_loss or part.mu is None:
        loss = part.loss
        noise = Gaussian.calibrate(sensitivity=norm, epsilon=loss.epsilon, delta=loss.delta)
        return PlannedChecks(checks, noise, asked)
    return PlannedChecks(checks, Gaussian.of_mu(Fraction(norm), part.mu, 1.0), asked)


def shares_between(counts: Any, of: Any, noise: Mechanism) -> tuple[Any, Any]:
    """Return the ends of the 95% intervals of quotients of noisy counts of units, within [0, 1] (Fieller 1954)."""
    squared = sum_interval(noise, CONFIDENCE) ** 2
    low, high = quotient_ends(counts, of, (squared, 0.0, squared))
    known = of > 0.0  # a noisy total of at most 0 says nothing about the share
    low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
