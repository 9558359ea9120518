"""Suggested bounds of a column, from noisy counts in the bins of a public grid: clipping error against noise.

The share that bounds clip follows from the counts of the first and of the last bins: unbiased sums with known noise.
The same noisy counts select the bounds, so the intervals hold for all places of the grid at once. The clipping error
uses the bins that stand out from the noise, and the values that noise may hide in the bins next to them. Farther bins
are ignored: the noise of a bin that ends at 2**40 would exceed the values of all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting import Accounting
from dpframe.errors import capital
from dpframe.planning.check_pricing import asked_checks
from dpframe.planning.plan import Plan, expected_errors
from dpframe.planning.price import Priced, priced
from dpframe.planning.suggestion import enough, margin_of_tails, stands_out, would_do
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query, suggestion_of
from dpframe.queries.statistics import CONFIDENCE, Mean, SuggestedBounds, Sum
from dpframe.queries.statistics.suggested_bounds import Cuts, cuts_of
from dpframe.queries.total import Measured, Total

Floats = NDArray[np.float64]

MOST_CLIPPED = 0.5  # the share of values above which bounds are not recommended
WINDOWS = (1, 2, 4)  # numbers of neighboring bins whose sum may stand out from the noise if no single bin does
BESIDE = 12  # places that are tried beyond the bins that stand out, on each side
HIDDEN = 2.0  # values that the first bin beyond may hide, in deviations of the noise; each next bin hides half as many
COLUMNS = ("lower", "upper", "clipped", "clipped_low", "clipped_high", "noise", "total_error")


def planned_noise(asked: SuggestedBounds, unit: PrivacyUnit, accounting: Accounting) -> Priced:
    """Plan the noise of the statistic, with bounds of length 2 (mean) or 1 (sum), at its own cost and with its checks.

    It raises the errors of such a call, so it runs before anything is charged.
    """
    terms = dict(asked.planned)
    statistic = Mean("value", (-1.0, 1.0)) if asked.statistic == "mean" else Sum("value", (0.0, 1.0))
    query = Query(asked.statistic, Keys(), (("value", statistic),))
    return priced(
        query,
        unit=unit,
        price=Price.of(terms["epsilon"], terms.get("delta"), None),
        mechanism=terms.get("mechanism"),
        accounting=accounting,
        limit=None,
        checks=asked_checks(query, unit, None),
    )


def suggested(plan: Plan, measured: Mapping[Total, Measured]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the candidates as columns, the best ones of each column first, and facts for the record on the noise."""
    asked = suggestion_of(plan.query)
    assert asked is not None
    planned = planned_noise(asked, plan.unit, plan.accounting)
    parts: list[dict[str, NDArray[Any]]] = []
    seen, problems = [], []
    cuts = cuts_of(asked.by_days, asked.whole_numbers)
    for axis, total in zip(asked.axes_of, asked.totals(), strict=True):
        noisy = measured[total]
        mechanism: Any = noisy.noise
        law = (mechanism.norm < 2, math.sqrt(mechanism.variance) / mechanism.grid)
        grid = NoisyGrid(cuts, noisy.values.ravel(), law, mechanism.grid)
        parts.append(grid.candidates(planned, plan.unit, asked))
        seen.append([None if place is None else str(place) for place in grid.seen_ends])
        if (problem := grid.problem(parts[-1], axis.column, plan)) is not None:
            problems.append(problem)
    several = len(parts) > 1
    columns: dict[str, Any] = (
        {"column": [name for name in asked.columns for _ in range(asked.listed)]} if several else {}
    )
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    return columns, {
        "seen": seen,
        **({"problem": " ".join([*problems[:1], *map(capital, problems[1:])])} if problems else {}),
    }


@dataclass(frozen=True)
class NoisyGrid:
    """The noisy counts of a column's values in the bins of a grid.

    Parameters
    ----------
    cuts : Cuts
        The places between the bins.
    counts : array
        The unbiased noisy number of values in each bin; there is one more bin than places.
    law : tuple of bool and float
        Whether the noise is pure, and its standard deviation in steps.
    step : float
        The length of a grid step of the noise.
    """

    cuts: Cuts
    counts: Floats
    law: tuple[bool, float]
    step: float

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of each count."""
        return self.law[1] * self.step

    @cached_property
    def margin(self) -> float:
        """The joint half-width of all sums of first or last bins, in standard deviations of each sum."""
        return margin_of_tails(self.counts.size, self.law)

    @cached_property
    def seen(self) -> tuple[int, int] | None:
        """The first and the last bin that stand out from the noise, alone or with neighbors; None if no bin does."""
        far = stands_out(self.counts.size * len(WINDOWS), self.law) * self.step
        first, last = self.counts.size, -1
        for window in WINDOWS:  # a longer window counts only outside of the bins that shorter ones found
            sums = np.convolve(self.counts, np.ones(window), mode="valid")
            there = np.flatnonzero(sums > far * math.sqrt(window))
            before, after = there[there + window <= first], there[there > last]
            first = int(before[0]) if before.size else first
            last = int(after[-1]) + window - 1 if after.size else last
        return None if last < 0 else (first, last)

    @property
    def seen_ends(self) -> tuple[Any, Any]:
        """The bounds of the bins that stand out; None if no bin does, or if no bound of the grid contains them."""
        if self.seen is None:
            return None, None
        first, last = self.seen
        lower = self.cuts.shown(self.cuts.lower[first - 1 : first])[0] if first else None
        upper = self.cuts.shown(self.cuts.upper[last : last + 1])[0] if last < self.cuts.upper.size else None
        return lower, upper

    def candidates(self, planned: Priced, unit: PrivacyUnit, asked: SuggestedBounds) -> dict[str, NDArray[Any]]:
        """Return the bounds with the least total error, the best first."""
        lowers, uppers = self._places()
        below, above = self._losses()
        whole = max(float(self._inside.sum()), 1.0)
        lower, upper = (grid.ravel() for grid in np.meshgrid(lowers, uppers, indexing="ij"))
        length = self.cuts.upper[upper] - self.cuts.lower[lower]
        lower, upper = lower[length > 0.0], upper[length > 0.0]
        mean = asked.statistic == "mean"
        lost = below[lower] + above[upper]
        noise = self._noise(planned, unit, whole, lower, upper, mean=mean)
        total = noise + (lost / whole if mean else lost)
        if self.seen is None:
            total += math.inf  # nothing is known about any value
        best = np.lexsort((upper, -lower, noise, total))[: asked.listed]
        lower, upper = lower[best], upper[best]
        low, high, estimate = self._shares(lower, upper, whole)
        ends = self.cuts.shown(self.cuts.lower[lower]), self.cuts.shown(self.cuts.upper[upper])
        return dict(zip(COLUMNS, (*ends, estimate, low, high, noise[best], total[best]), strict=True))

    def problem(self, candidates: Mapping[str, NDArray[Any]], column: str, plan: Plan) -> str | None:
        """Return the problem with the best bounds, as text; None if neither the noise nor the grid causes one."""
        low, high = candidates["clipped_low"][0], candidates["clipped_high"][0]
        of = "rows" if plan.unit.column is None else f"weighted rows of units ({plan.unit.one})"
        if self._inside[[0, -1]].sum() > max(MOST_CLIPPED * self._inside.sum(), 0.0):
            ends, way_out = "numbers beyond 2**40", "Divide them by a number that you choose"
            if self.cuts.by_days:
                ends, way_out = "dates before 1900 or after 2100", "Put other dates in their place"
            return (
                f"most values of {column} are {ends}, which no bounds here hold: the best ones clip {low:.0%} to "
                f"{high:.0%} of {of}. Take none of them. {way_out}, and ask for suggest_bounds again."
            )
        times = enough(self.margin * self.deviation * math.sqrt(self.counts.size), float(self.counts.sum()))
        if high <= MOST_CLIPPED or times <= 1.0:  # if times <= 1, the planned statistic needs such narrow bounds
            return None
        of_objects = plan.question.library == "pandas" and not self.cuts.by_days and self.seen is None  # text or dates?
        unless = f", unless {column} holds no numbers: then cast it" if of_objects else ""
        return (
            f"the counts of {column} are too noisy to tell: the best bounds may clip {low:.0%} to {high:.0%} of {of}. "
            f"Take none of them, and ask for suggest_bounds again: {would_do(times, plan.cost.epsilon)}{unless}."
        )

    @cached_property
    def _inside(self) -> Floats:
        """The counts from the first to the last bin that stand out; 0 elsewhere."""
        kept = np.zeros(self.counts.size)
        if self.seen is not None:
            first, last = self.seen
            kept[first : last + 1] = self.counts[first : last + 1]
        return kept

    @cached_property
    def _hidden(self) -> Floats:
        """The numbers of values that noise may hide in the bins beyond those that stand out; they fall with distance.

        If no bin on one side of 0 stands out, no number is assumed to be hidden there.
        """
        hidden = np.zeros(self.counts.size)
        first, last = self.seen or (0, self.counts.size - 1)
        for far in range(BESIDE):
            for place in (first - 1 - far, last + 1 + far):
                if 0 <= place < hidden.size:
                    hidden[place] = HIDDEN * self.deviation * 0.5**far
        if not self.cuts.by_days and self.cuts.middles[first] >= 0.0:
            hidden[self.cuts.middles < 0.0] = 0.0
        if not self.cuts.by_days and self.cuts.middles[last] <= 0.0:
            hidden[self.cuts.middles > 0.0] = 0.0
        return hidden

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places to try as lower and as upper bounds: at the bins that stand out, and next to them."""
        middle = int(np.argmin(np.abs(self.cuts.middles)))
        first, last = self.seen or (middle, middle)
        every = np.arange(max(first - 1 - BESIDE, 0), min(last + 1 + BESIDE, self.cuts.lower.size))
        at_zero = (self.cuts.lower == 0.0) & (self.cuts.upper == 0.0)  # 0 has a bin of its own
        return (
            every[self.cuts.exact_lower[every] | ~at_zero[every]],
            every[self.cuts.exact_upper[every] | ~at_zero[every]],
        )

    def _losses(self) -> tuple[Floats, Floats]:
        """Return how far clipping changes the sum of the values below each place, and above it; at least 0."""
        bins, counts = np.arange(self.counts.size), self._inside + self._hidden
        places = np.arange(self.cuts.lower.size)[:, None]
        values = self.cuts.middles[None, :]
        below = np.where(bins <= places, np.maximum(self.cuts.lower[:, None] - values, 0.0), 0.0) @ counts
        above = np.where(bins > places, np.maximum(values - self.cuts.upper[:, None], 0.0), 0.0) @ counts
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _noise(self, planned: Priced, unit: PrivacyUnit, whole: float, lower: Any, upper: Any, *, mean: bool) -> Floats:
        """Return the margin of error of the planned statistic for each pair of bounds and `whole` values."""
        margin = expected_errors(planned.query, planned.parts, max(round(whole), 1), CONFIDENCE)["value"]
        low, high = self.cuts.lower[lower], self.cuts.upper[upper]
        if mean:
            return np.asarray(margin / 2.0 * (high - low))
        if unit.neighbors == "replace":
            return np.asarray(margin * (np.maximum(high, 0.0) - np.minimum(low, 0.0)))
        return np.asarray(margin * np.maximum(np.abs(low), np.abs(high)))

    def _shares(self, lower: Any, upper: Any, whole: float) -> tuple[Floats, Floats, Floats]:
        """Return the ends of the interval of the share that bounds clip, and the estimate between them."""
        running = np.concatenate([[0.0], np.cumsum(self.counts)])
        everything, seen = running[-1], np.concatenate([[0.0], np.cumsum(self._inside)])
        bins = self.counts.size
        half = self.margin * self.deviation

        def below(places: Any) -> tuple[Floats, Floats]:
            return running[places], half * np.sqrt(places)

        def above(places: Any) -> tuple[Floats, Floats]:
            return everything - running[places], half * np.sqrt(bins - places)

        sure, sure_half = below(np.where(self.cuts.exact_lower[lower], lower + 1, lower))
        other, other_half = above(np.where(self.cuts.exact_upper[upper], upper + 1, upper + 2))
        least = np.maximum(sure - sure_half, 0.0) + np.maximum(other - other_half, 0.0)
        (may, may_half), (more, more_half) = below(lower + 1), above(upper + 1)
        most = np.maximum(may + may_half, 0.0) + np.maximum(more + more_half, 0.0)
        all_half = half * math.sqrt(bins)
        fewest, largest = everything - all_half, max(everything + all_half, 0.0)
        low = np.divide(least, largest, out=np.zeros(least.size), where=least < largest)
        low[least >= max(largest, 1e-300)] = 1.0
        high = np.minimum(most / fewest, 1.0) if fewest > 0.0 else np.ones(most.size)
        if self.seen is None:
            return low, high, high
        cut = np.maximum(seen[lower + 1], 0.0) + np.maximum(seen[-1] - seen[upper + 1], 0.0)
        return low, high, np.clip(np.minimum(cut / whole, 1.0), low, np.maximum(low, high))
