"""Intervals for a population: the noise of a release, and the sampling error of its data.

The noise and the sampling error move a number by two independent distances. An interval reaches the root of the sum of
their squares to either side (Zou and Donner 2008, who call it MOVER). Either distance alone is exact or too wide. If
both matter, the interval is a little too wide, since in standard deviations a quantile of a sum lies between those of
its parts. `assurance/population_coverage.py` simulates the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.linear import Linear, Moments, Quotient, ends, half_widths
from dpframe.derived.sums_of_noise import law_of, normal_quantile
from dpframe.derived.traced import Source
from dpframe.display.pages import margin
from dpframe.display.rounding import HIGH, LOW, end_words, of_frame
from dpframe.errors import InvalidArgument, is_one_of, sentence, shown
from dpframe.frames import build, foreign
from dpframe.frames.prints import Places
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import (
    OF_SIZES,
    POPULATION,
    SELECTED,
    SPREADS,
    TABLE,
    VERBS,
    check_sample,
    counts_all,
)
from dpframe.queries.moments import bernstein_variance, centred_variance
from dpframe.queries.query import ERROR
from dpframe.queries.sameness import agree
from dpframe.release import provenance

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]
Reach = tuple[Floats, Floats]  # the distances to the lower and to the upper end of intervals, row by row

ASKED = "covers='population'"
MANY = 2**31  # the assumed number of groups if keys were discovered
UNTRACED = (
    "No margin of error for the population behind these data is known here: if numbers were rounded, or rows chosen by "
    "them, the released frame has it."
)
BERNSTEIN = 3  # numbers of each group for a mean or a variance with pure DP


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic of a population, row by row: its estimate, and its interval at any confidence.

    Parameters
    ----------
    values : array
        The released values.
    middles : array
        The centers of the intervals, which may lie beyond the possible values.
    noise, chance : callable
        The distances of the noise and of the sampling error to both ends at a confidence.
    least, most : float
        The limits of the possible values.
    told : array of bool
        True if an interval is known; otherwise the interval holds all possible values.
    """

    values: Floats
    middles: Floats
    noise: Callable[[float], Reach]
    chance: Callable[[float], Reach]
    least: float
    most: float
    told: NDArray[np.bool_]

    def reach(self, confidence: float) -> Reach:
        """Return the distances from the middles for noise and sampling error together, infinite if none is known."""
        each = zip(self.noise(confidence), self.chance(confidence), strict=True)
        lower, upper = (np.where(self.told, np.hypot(noise, chance), np.inf) for noise, chance in each)
        return lower, upper

    def limits(self, confidence: float) -> Reach:
        """Return the ends of the intervals within the possible values; a middle beyond them moves to the nearest limit.

        A value beyond the limits, such as a count below 0, is an end itself.
        """
        lower, upper = self.reach(confidence)
        middles = np.clip(self.middles, self.least, self.most)
        low, high = (np.clip(end, self.least, self.most) for end in (middles - lower, middles + upper))
        return np.minimum(low, self.values), np.maximum(high, self.values)

    def at(self, rows: NDArray[np.int64] | slice) -> Estimate:
        """Return the given rows, in this order."""

        def chosen(reach: Callable[[float], Reach]) -> Callable[[float], Reach]:
            def of_rows(confidence: float) -> Reach:
                low, high = reach(confidence)
                return low[rows], high[rows]

            return of_rows

        kept = self.values[rows], self.middles[rows], chosen(self.noise), chosen(self.chance)
        return Estimate(*kept, self.least, self.most, self.told[rows])


def estimate_of(source: Source, name: str, asked: str, *, exact: bool = True) -> Estimate:
    """Return a released statistic as an estimate of its population; refuse a statistic without independent units.

    Without noise, `exact` limits of counts and shares cover at least as often as the confidence says. Others do so only
    on average. Differences need these: with two limits that cover too often, their intervals would be far too wide.
    """
    check_asked(source, name, asked)
    if source.whole is not source:
        of, rows = source.released(name)
        return estimate_of(source.whole, of, asked, exact=exact).at(rows)
    form, said = source.form(source.unbiased(name)), source.measures[name]
    if said["verb"] == "sum" and not {"bounds", "unit_bounds"} & said.keys():  # a record from a file may lack them
        raise InvalidArgument(f"{name} must have bounds in its record, and has none. Ask its author for another file.")
    if said["verb"] in ("mean", "proportion"):
        assert isinstance(form, Quotient)
        return _of_quotient(source, name, form, exact)
    assert isinstance(form, Linear)
    values, noise = form.values, _noise_of(form)
    told = np.ones(values.shape, dtype=np.bool_)
    if said["verb"] == "sum":
        lower, upper = map(float, said.get("unit_bounds") or said["bounds"])
        squares = _squares_of_sum(source, name, form, asked)
        ends_of = (0.0 if lower >= 0.0 else -math.inf), (0.0 if upper <= 0.0 else math.inf)
        return Estimate(
            values, values, noise, lambda c: summed(values, squares, (lower, upper), c, exact), *ends_of, told
        )
    return Estimate(values, values, noise, lambda confidence: counted(values, confidence, exact), 0.0, math.inf, told)


def check_asked(source: Source, name: str, asked: str) -> None:
    """Refuse a statistic that has no known interval for a population."""
    if "stream" in source.facts:
        raise InvalidArgument(
            f"{name} must be released by one call for {asked}, and this is a period of a stream. "
            "Release the period by a call of its own."
        )
    if source.facts.get("verb") == "contributions":
        raise InvalidArgument(
            f"{name} must be released with contribution bounds for {asked}, and contributions has none. "
            "Ask for n_units, or write max_rows=1 and max_groups=1."
        )
    verb, unit = source.measures[name]["verb"], PrivacyUnit.of_facts(source.facts["unit"])
    if verb in OF_SIZES and any("discovered" in axis for axis in source.facts["cells"]):
        raise InvalidArgument(f"{name} {SELECTED.format(asked=asked)}")
    check_sample(name, source.measures[name], unit, cells_of(source.facts), asked)


def cells_of(facts: Facts) -> int:
    """Return the number of declared groups, or `MANY` if keys were discovered."""
    axes = facts["cells"]
    return MANY if any("discovered" in axis for axis in axes) else math.prod(axis["size"] for axis in axes)


# Noise ---------------------------------------------------------------------------------------------------------------


def _noise_of(form: Linear) -> Callable[[float], Reach]:
    """Return the half-widths of the noise, in standard deviations at least those of a normal variable."""
    deviations = np.sqrt(form.variances())

    def reach(confidence: float) -> Reach:
        half = np.maximum(half_widths(form, confidence), normal_quantile(confidence) * deviations)
        return half, half

    return cache(reach)


def _noise_of_quotient(form: Quotient) -> Callable[[float], Reach]:
    """Return the distances to the ends of Fieller's set, in standard deviations at least those of a normal variable."""
    values = form.values
    top, both, bottom = Moments.of(form.top, form.bottom).variances
    with np.errstate(all="ignore"):
        spread = np.sqrt(np.maximum(top - 2.0 * values * both + values**2 * bottom, 0.0)) / np.abs(form.bottom.values)

    def reach(confidence: float) -> Reach:
        (low, high), normal = ends(form, confidence), normal_quantile(confidence) * spread
        return np.maximum(values - low, normal), np.maximum(high - values, normal)

    return cache(reach)


# Chance --------------------------------------------------------------------------------------------------------------


def counted(counts: Floats, confidence: float, exact: bool) -> Reach:
    """Return the distances to the limits of the mean of a Poisson variable, given the observed count.

    Exact limits are those of Garwood (1936), whose tests use the tail of a gamma variable. Others lie half a count
    nearer, and their chance of error is the stated one on average.
    """
    from scipy.special import gammainccinv, gammaincinv

    seen, tail = np.maximum(counts, 0.0), (1.0 - confidence) / 2.0
    half = 0.0 if exact else 0.5
    low = np.where(seen > 0.0, gammaincinv(np.maximum(seen + half, 1e-9), tail), 0.0)
    high = gammainccinv(seen + 1.0 - half, tail)
    return np.maximum(seen - low, 0.0), np.maximum(high - seen, 0.0)


def shared(shares: Floats, sizes: Floats, confidence: float, exact: bool) -> Reach:
    """Return the distances to the limits of a probability, given the observed share and the sample size.

    Exact limits are those of Clopper and Pearson (1934). Others lie half a count nearer (Jeffreys).
    """
    from scipy.special import betaincinv

    tail, half = (1.0 - confidence) / 2.0, 0.0 if exact else 0.5
    hits = shares * sizes
    misses = sizes - hits
    low = np.where(hits > 0.0, betaincinv(np.maximum(hits + half, 1e-9), misses + 1.0 - half, tail), 0.0)
    high = np.where(misses > 0.0, betaincinv(hits + 1.0 - half, np.maximum(misses + half, 1e-9), 1.0 - tail), 1.0)
    return np.maximum(shares - low, 0.0), np.maximum(high - shares, 0.0)


def summed(sums: Floats, squares: Floats, bounds: tuple[float, float], confidence: float, exact: bool) -> Reach:
    """Return the distances to the limits of the expected sum of a random number of values within bounds.

    For values of one sign, the limits are those of Fay and Feuer (1997): quantiles of gamma variables whose mean and
    variance are the sum and the sum of squares, at the upper end with one more value at the bound. If all values are at
    the bound, these are Garwood's limits. For values of both signs, both distances are the upper one for as many values
    at the larger bound as have this sum of squares. Limits that are not exact add half of one more value at both ends.
    """
    from scipy.special import gammainccinv, gammaincinv

    (lower, upper), tail = bounds, (1.0 - confidence) / 2.0
    most, half = max(abs(lower), abs(upper)), 0.0 if exact else 0.5
    if lower < 0.0 < upper:
        many = squares / most**2
        reach = most * (gammainccinv(many + 1.0 - half, tail) - many)
        return reach, reach
    seen = np.maximum(sums if lower >= 0.0 else -sums, 0.0)

    def end(inverse: Any, more: float) -> Floats:
        middle, spread = np.maximum(seen + more * most, 1e-9 * most), squares + more * most**2
        return np.asarray(spread / middle * inverse(middle**2 / spread, tail))

    low = np.where(seen > 0.0, end(gammaincinv, half), 0.0)
    below, above = np.maximum(seen - low, 0.0), np.maximum(end(gammainccinv, 1.0 - half) - seen, 0.0)
    return (below, above) if lower >= 0.0 else (above, below)


def _student(deviations: Floats, sizes: Floats, confidence: float) -> Reach:
    """Return the half-widths of Student's intervals for means, given sample sizes and standard deviations."""
    from scipy.special import stdtrit

    reach = stdtrit(sizes - 1.0, (1.0 + confidence) / 2.0) * deviations / np.sqrt(sizes)
    return reach, reach


def _of_quotient(source: Source, name: str, form: Quotient, exact: bool) -> Estimate:
    """Return the estimate of a mean or a share, whose number of values is noisy too."""
    said, sizes = source.measures[name], form.bottom.values
    is_share = said["verb"] == "proportion"
    least, most = (0.0, 1.0) if is_share else map(float, said["bounds"])
    told = sizes >= (1.0 if is_share else 2.0)
    enough = np.where(told, sizes, 2.0)
    values = np.clip(build.numbers(source.frame, name), least, most)
    noise, middles = _noise_of_quotient(form), np.where(told, form.values, values)
    if is_share:
        shares = np.clip(np.where(told, form.values, 0.5), 0.0, 1.0)
        return Estimate(values, middles, noise, lambda c: shared(shares, enough, c, exact), least, most, told)
    deviations = np.sqrt(variance_of(source, name))
    return Estimate(values, middles, noise, lambda c: _student(deviations, enough, c), least, most, told)


def variance_of(source: Source, name: str) -> Floats:
    """Return the variance of the values behind a mean, plus one standard deviation of its noise.

    It comes from the squares that the mean, or a `std` of the same values, measured. Without either it is the most that
    the bounds allow.
    """
    said = source.measures[name]
    for one in (said, *_spreads_beside(source, said)):
        if (found := _read_variance(source, one)) is not None:
            return found
    lower, upper = said["bounds"]
    return np.full(source.rows, (upper - lower) ** 2 / 4.0)


def is_bounded_only(source: Source, name: str) -> bool:
    """Return whether the spread of a mean's or a sum's values was not measured, so that only their bounds limit it."""
    (name, _), source = source.released(name), source.whole
    said = source.measures[name]
    if said["verb"] == "mean":
        return all(_read_variance(source, one) is None for one in (said, *_spreads_beside(source, said)))
    return said["verb"] == "sum" and "square_totals" not in said


def spread_words(name: str) -> str:
    """Return the note on values whose spread was not measured."""
    return f"how far values of {name} differ was not measured: the most that its bounds allow is taken"


def _spreads_beside(source: Source, said: Facts) -> list[Facts]:
    alike = ("column", "bounds", "where")
    measures = [one for one in source.measures.values() if one["verb"] in SPREADS]
    return [one for one in measures if all(agree(one, said, fact) for fact in alike)]


def _read_variance(source: Source, said: Facts) -> Floats | None:
    """Return the variance from the totals of a record, plus one standard deviation of its noise; None without these."""
    if "totals" not in said:
        return None
    lower, upper = said["bounds"]
    half_range = (upper - lower) / 2.0
    totals = [np.asarray(values, dtype=np.float64) for values in said["totals"]]
    sizes = {len(values) for values in (*totals, *said.get("square_totals", ()))}
    if len(totals) > 1 and sizes != {source.rows}:  # a record from a file may contradict itself
        return None
    spreads = [_deviation(source, number) for number in said["statistics"]]
    if len(totals) == 1 and totals[0].size == BERNSTEIN * source.rows:
        below, between, above = totals[0].reshape(-1, BERNSTEIN).T
        reading = bernstein_variance((below, between, above), spreads[0], 1.0, half_range, 1)
        return reading.values + reading.half_widths
    if len(said.get("square_totals", ())) == 1 and len(totals) == 2:  # a mean: its centered sum comes first
        (centred, count), (squares,) = totals, said["square_totals"]
        of_sum, of_count, of_squares = *spreads, _deviation(source, said["squares"][0])
    elif len(totals) == BERNSTEIN:  # a variance: its count comes first
        (count, centred, squares), (of_count, of_sum, of_squares) = totals, spreads
    else:
        return None
    whole = half_range**2
    noises = of_count, of_sum, of_squares * whole
    reading = centred_variance(count, centred, np.asarray(squares) * whole, noises, 1.0, half_range, 1)
    return reading.values + reading.half_widths


def _deviation(source: Source, number: int) -> float:
    """Return the standard deviation of the noise of a Total."""
    statistic = source.facts["statistics"][number]
    law = law_of(statistic)
    return math.sqrt(law.variance if law is not None else statistic["variance"])


def _squares_of_sum(source: Source, name: str, form: Linear, asked: str) -> Floats:
    """Return the sum of squares plus one deviation of its noise, as the variance of a sum over a random number of rows.

    If it was not measured, it is at most the larger bound times the sum, or for both signs its square times the number.
    """
    said = source.measures[name]
    lower, upper = map(float, said.get("unit_bounds") or said["bounds"])
    most = max(abs(lower), abs(upper))
    deviations = np.sqrt(form.variances())
    if lower >= 0.0 or upper <= 0.0:
        largest = most * (np.abs(form.values) + deviations)
    else:
        largest = np.full(form.values.shape, math.inf)
    if "square_totals" in said:
        sizes = [np.asarray(values, dtype=np.float64) for values in said["square_totals"]]
        spread = [
            np.full(one.size, _deviation(source, number)) for one, number in zip(sizes, said["squares"], strict=True)
        ]
        squares, noise = np.concatenate(sizes), np.concatenate(spread)
        return np.asarray(np.minimum(np.maximum(squares + noise, noise), largest))
    if np.isfinite(largest).all():
        return largest
    units = "unit_bounds" in said
    verbs = ("n_units",) if units else ("count",) if source.facts["unit"]["column"] else ("count", "n_units")
    for other, one in source.measures.items():
        if one["verb"] in verbs and counts_all(one, said) and other in source.frame.columns:
            count = source.form(source.unbiased(other))
            assert isinstance(count, Linear)
            return np.asarray(most**2 * np.maximum(count.values + np.sqrt(count.variances()), 0.0))
    beside = "n=dpf.n_units()" if units else "population=True"
    raise InvalidArgument(
        f"{name} must come with what tells how far its values differ for {asked}. Ask for it with {beside}, or keep "
        "the count of the same release in select."
    )


# Results -------------------------------------------------------------------------------------------------------------


def is_population(covers: object) -> bool:
    """Return whether intervals of the population are asked for; refuse an unknown value."""
    if not is_one_of(covers, (TABLE, POPULATION)):
        raise InvalidArgument(f'covers must be "table" or "population", not {shown(covers)}. Write covers="table".')
    return covers == POPULATION


def sampled_names(source: Source, asked: str) -> list[str]:
    """Return the statistics that estimate a population, without spreads next to others; refuse any other statistic."""
    verbs = {name: said["verb"] for name, said in source.measures.items()}
    beside = any(verb in VERBS for verb in verbs.values())  # then spreads only serve the intervals of others
    names = [name for name, verb in verbs.items() if not (beside and verb in SPREADS)]
    for name in names:
        check_asked(source, name, asked)
    return names


def intervals_of(source: Source, asked: str) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Return the values of each statistic and the ends of their 95% intervals, in the order of the frame.

    They hold all possible values of the intervals of the noise. An uneven reach of the noise alone would not: the
    released margin of a mean is its farther end for both sides.
    """
    names, found = sampled_names(source, asked), {}
    if not source.rows:  # no group reached the threshold
        return {name: (np.empty(0), np.empty(0), np.empty(0)) for name in names}
    for name in names:
        estimate = estimate_of(source, name, asked)
        (low, high), noise = estimate.limits(source.facts["confidence"]), of_frame(source.frame, source.facts, name)
        low = np.fmin(low, np.maximum(noise.low, estimate.least))  # both functions skip NaN, an end that nobody knows
        high = np.fmax(high, np.minimum(noise.high, estimate.most))
        value, low, high = (_in_order(column, source.places) for column in (estimate.values, low, high))
        found[name] = value, low, high
    return found


def _in_order(column: Floats, places: Places) -> Floats:
    """Return a column in the order of the frame, in which its rows stand at these places."""
    ordered = np.empty_like(column)
    ordered[places] = column
    return ordered


def _farther(value: Floats, low: Floats, high: Floats) -> Floats:
    """Return the distance to the farther end, which is the margin of error of an uneven interval."""
    return np.maximum(value - low, high - value)


def errors_of(frame: Any, *, cells: bool) -> dict[str, list[Any]]:
    """Return the errors of a release as columns, like `provenance.errors`, with intervals of its population."""
    source = Source.of("result", frame)
    found = intervals_of(source, ASKED)
    farther = {name: _farther(*ends) for name, ends in found.items()}
    facts = {**source.facts, "measures": {name: source.facts["measures"][name] for name in found}}
    if not cells:
        in_cells = {name: distances[source.places] for name, distances in farther.items()}
        return build.as_columns(provenance.errors(source.frame, facts, in_cells))
    columns = provenance.errors_of_cells(frame, facts, source.places)
    for name, (_, low, high) in found.items():
        columns |= {f"{name}_interval": farther[name].tolist(), name + LOW: low.tolist(), name + HIGH: high.tolist()}
    return columns


def drawn(frame: Any, words: tuple[Any, Facts, Mapping[str, str]]) -> tuple[Any, dict[str, Any]]:
    """Return a frame and its record as charts read them, with intervals of the population; levels in released order.

    `words` are the frame and the record under their relabeled names, and the map from old to new names.
    """
    named, said, names = words
    source = Source.of("result", frame)
    found = intervals_of(source, ASKED)
    columns = {name: build.numbers(named, name) for name in said["columns"]}
    for name, (value, low, high) in found.items():
        new = names.get(name, name)
        columns |= {new + LOW: low, new + HIGH: high, new + ERROR: _farther(value, low, high)}
    rows = source.places if "levels" in said else np.arange(len(named))
    made = build.beside(named, foreign.labels_of(said), rows, {name: each[rows] for name, each in columns.items()})
    measures = {names.get(name, name): said["measures"][names.get(name, name)] for name in found}
    return made, {**said, "columns": list(columns), "measures": measures, "covers": POPULATION}


def sentences(frame: Any) -> list[str]:
    """Return sentences for a statement on the population behind a release."""
    try:
        source = Source.of("result", frame)
        found = intervals_of(source, "a statement on its population")
    except InvalidArgument:
        return [UNTRACED]
    said = []
    for name, (value, low, high) in found.items():
        margins = _farther(value, low, high)
        known = margins[np.isfinite(margins)]
        if low.size == 1 and known.size:
            ends_of = " to ".join(end_words(float(low[0]), float(high[0])))
            said.append(f"In 95 of 100 samples, the interval from {ends_of} contains {name} of the population.")
        elif known.size:
            least, most = margin(float(known.min())), margin(float(known.max()))
            sizes = most if least == most else f"{least} to {most}, depending on the row"
            said.append(
                f"For the population behind these data, the margin of error of {name} (noise and sampling) is {sizes}."
            )
        if known.size and is_bounded_only(source, name):
            said.append(sentence(spread_words(name)))
    return said
