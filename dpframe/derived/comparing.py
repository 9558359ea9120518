"""`compare`: differences of two groups or two releases, with intervals and tests for noise and sampling error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.expressions import matched
from dpframe.derived.linear import Linear, Quotient
from dpframe.derived.population import (
    Estimate,
    cells_of,
    estimate_of,
    is_bounded_only,
    sampled_names,
    spread_words,
)
from dpframe.derived.record import facts_of, frame_of, measure_of
from dpframe.derived.sums_of_noise import checked_confidence
from dpframe.derived.traced import Source, check_shown
from dpframe.display import subjects
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, how_many, is_one_of, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames.changes import view_of
from dpframe.frames.kinds import is_frame, is_missing
from dpframe.privacy import PrivacyUnit, noun_of
from dpframe.queries.contributions import POPULATION, groups_of
from dpframe.queries.sameness import HASH, agree, same_key

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]
Rows = NDArray[np.int64]

ASKED = "dpf.compare"
LEAST_P = 1e-6  # the smallest p-value that is reported
LEVELS = 13  # the number of confidence levels between which p-values are interpolated
SAME = ("verb", "column", "bounds", "unit_bounds", "value", "where")  # facts in which two statistics must agree
ENDS = ["low", "high"]
_MISSING: Any = object()

Pairs = Sequence[tuple[Estimate, Estimate]]
Prepared = tuple[Source, list[str], Rows, list[str], Pairs, str, list[str]]


@trimmed
def compare(
    result: Any,
    first: Any,
    second: Any = _MISSING,
    *,
    by: str | None = None,
    confidence: float = 0.95,
    adjust: Literal["holm"] | None = None,
    samples: Literal["different"] | None = None,
) -> Any:
    """Compare two groups or two results: differences, intervals, p-values.

    ``dpf.compare(result, first, second)`` gives first minus second for each statistic.
    ``dpf.compare(later, earlier, samples="different")`` gives later minus earlier, key by key.

    Parameters
    ----------
    result : DataFrame
        A released result with counts, sums, means, proportions or numbers of units; or the later of two results.
    first, second : key
        The keys of two groups, such as ``"B"`` and ``"A"``; or only `first`, the earlier result.
    by : str, optional
        The column of the two groups; you may leave it out if the result has only one. For bins, name the left edge. The
        other key columns stay: each of their cells gets a comparison.
    confidence : float
        The confidence of the intervals, above 0 and at most 0.9999.
    adjust : {"holm"}, optional
        For several comparisons at once: p-values by Holm's method, and intervals by Bonferroni's, so that all hold
        together with `confidence`.
    samples : {"different"}, optional
        States that no unit is in both of two results. The same people in two years are not two samples.

    Returns
    -------
    DataFrame
        The other keys, ``statistic``, ``effect``, ``low`` and ``high``, ``p_value``, and ``covers``, which is
        ``"population"``; with `adjust` also ``adjusted``. The least p-value is 1e-6, with `adjust` up to 1e-6 times the
        number of comparisons. The library is that of the result. ``.dp`` has ``provenance``, ``plot``, ``table``,
        ``statement`` and ``write_*``.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule; if groups or rows are not independent; if two results are of different
        statistics or units; for a ratio, a quantile, a variance, ``n_distinct``, a correlation.
    NoProvenance
        If a frame has no provenance.

    Notes
    -----
    The intervals cover the noise and the sampling error of both sides (``docs/guide/compare.md``). A p-value is the
    least 1 - confidence whose interval leaves out 0. If groups do not differ, the p-value is below 0.05 in about one of
    twenty comparisons. For means, it is so in more if few values differ from the rest.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> shop = pl.DataFrame({"variant": ["A"] * 5_000 + ["B"] * 5_000, "bought": ([True] + [False] * 9) * 1_000})
    >>> test = shop.dp.group_by("variant", keys=["A", "B"]).agg(
    ...     bought=dpf.proportion("bought"), epsilon=1.0, population=True, ledger=dpf.Ledger(epsilon=1)
    ... )
    >>> difference = dpf.compare(test, "B", "A")
    >>> difference.columns
    ['statistic', 'effect', 'low', 'high', 'p_value', 'covers']
    >>> bool(difference["low"][0] < 0 < difference["high"][0])
    True
    """
    checked = checked_confidence(confidence)
    if not is_one_of(adjust, (None, "holm")):
        raise InvalidArgument(f'adjust must be "holm" or left out, not {shown(adjust)}.')
    if second is _MISSING:
        like, labels, places, names, pairs, words, notes = _of_results(result, first, by, samples)
        sources = [like, Source.of("earlier", first)]
    else:
        if samples is not None:
            raise InvalidArgument("samples must be left out for two groups of one result. Drop it.")
        like, labels, places, names, pairs, words, notes = _of_groups(result, first, second, by)
        sources = [like]
    tests = 1 if adjust is None else len(places) * len(names)
    level = checked if tests == 1 else 1.0 - (1.0 - checked) / tests
    each = [_compared(one, other, level) for one, other in pairs]
    effect, low, high, p_value = (np.stack(column, axis=1).ravel() for column in zip(*each, strict=True))
    columns = {"effect": effect, "low": low, "high": high}
    columns["p_value"] = p_value if adjust is None else _holm(p_value)
    unmeasured = [name for name in names if any(is_bounded_only(source, name) for source in sources)]
    notes = [*notes, *map(spread_words, unmeasured), *([] if tests == 1 else [_holm_words(tests, checked)])]
    used = {source.name: names for source in sources}
    facts = facts_of("compare", "compare", words, sources, checked, notes, used)
    sides = ("later", "earlier") if second is _MISSING else _told(_checked_by(like, by)[0], first, second)
    described = {name: subjects.described(name, like.facts) for name in names}
    return frame_of(
        like,
        labels,
        np.repeat(places, len(names)),
        columns,
        facts,
        POPULATION,
        further=("statistic", names),
        texts={} if adjust is None else {"adjusted": adjust},
        measures={
            "effect": {
                **measure_of(facts),
                "ends": ENDS,
                "tests": tests,
                "sides": {**_sides(sides, pairs, checked), "statistics": described},
                "words": " minus ".join(sides),
            }
        },
    )


def _sides(names: tuple[str, str], pairs: Pairs, level: float) -> dict[str, Any]:
    """Return the values and intervals of both sides for a chart, row by row; a number that is not finite is None."""
    made: dict[str, Any] = {"names": list(names)}
    for end, columns in (
        ("values", [[side.values for side in pair] for pair in pairs]),
        ("low", [[side.limits(level)[0] for side in pair] for pair in pairs]),
        ("high", [[side.limits(level)[1] for side in pair] for pair in pairs]),
    ):
        both = [np.stack([of_names[side] for of_names in columns], axis=1).ravel() for side in (0, 1)]
        made[end] = [[value if np.isfinite(value) else None for value in side.tolist()] for side in both]
    return made


def _told(column: str, first: object, second: object) -> tuple[str, str]:
    """Return two keys as text; with their column, unless they are texts, which say by themselves what they are."""
    plain = all(isinstance(key, str) or is_missing(key) for key in (first, second))
    one, other = (
        ("" if plain else f"{column} ") + ("missing" if is_missing(key) else str(key)) for key in (first, second)
    )
    return one, other


def _of_groups(result: Any, first: Any, second: Any, by: Any) -> Prepared:
    """Return the rows of two groups of one result, paired by their other keys."""
    source = Source.of("result", result)
    check_shown(source, "compare")
    column, own = _checked_by(source, by)
    unit = source.facts["unit"]
    if unit["column"] is not None and unit["max_groups"] != 1:
        raise InvalidArgument(
            f"groups must be of different units, and one {noun_of(unit['column'])} may be in {unit['max_groups']} of "
            "them. Release them with max_groups=1."
        )
    labels = [name for name in source.labels if name not in own]
    keys, others = source.tokens([own[0]]), source.tokens(labels)
    rows = []
    for argument, key in (("first", first), ("second", second)):
        try:
            token = (None if is_missing(key) else same_key(key),)
        except TypeError:  # a list, for example
            raise InvalidType(
                f"{argument} must be a key of {column}, not {shown(key, kind=True)}. Name one key."
            ) from None
        mine = {other: row for row, (known, other) in enumerate(zip(keys, others, strict=True)) if known == token}
        if not mine:
            raise InvalidArgument(
                f"{argument} must be a key of {column}, not {shown(key)}. Name one that was released."
            )
        rows.append(mine)
    common = [other for other in rows[0] if other in rows[1]]
    if rows[0] == rows[1] or not common:
        raise InvalidArgument("first and second must be two groups with keys in common. Name two keys of one column.")
    one, other = (np.array([mine[token] for token in common], dtype=np.int64) for mine in rows)
    names = sampled_names(source, ASKED)
    for name in names:
        if _share_draws(source.form(source.unbiased(name)), one, other):
            raise InvalidArgument(
                f"{name} must have noise of its own in each group, and these numbers share it: they are of marginals, "
                "subtotals or ranges. Release group_by(...) without these."
            )
    estimates = [estimate_of(source, name, ASKED, exact=False) for name in names]
    pairs = [(estimate.at(one), estimate.at(other)) for estimate in estimates]
    return source, labels, one, names, pairs, f"compare({shown(first)}, {shown(second)})", []


def _of_results(later: Any, earlier: Any, by: Any, samples: Any) -> Prepared:
    """Return the rows of two results, paired by their keys."""
    if not is_frame(earlier):
        raise MissingArgument(
            f'second must be given: the other group, as in dpf.compare(result, {shown(earlier)}, "A"). '
            "Or compare two results."
        )
    if by is not None:
        raise InvalidArgument("by must be left out for two results, which are compared key by key. Drop it.")
    sources = Source.of("later", later), Source.of("earlier", earlier)
    for source in sources:
        check_shown(source, "compare")
    if sources[0].identity == sources[1].identity:
        if "stream" in sources[0].facts:
            raise InvalidArgument(
                "later and earlier must be two releases, not two periods of one stream, which share noise. Write "
                'dpf.combine("later.period - earlier.period", {"later": ..., "earlier": ...}).'
            )
        raise InvalidArgument(
            "later and earlier must be two releases, and they are one. Name two of its groups: "
            "dpf.compare(result, first, second)."
        )
    if samples != "different":
        raise MissingArgument(
            'samples must be "different" for two results, your word that no unit is in both: the same people in both '
            "years are not two samples. Without it use dpf.combine."
        )
    for source in sources:
        if (view := view_of(source.facts)) is not None and len(view.cells) > 1:  # some keys are column names
            raise InvalidArgument(
                f"{source.name} must have its keys in rows, by which groups are matched, and .dp.wide put some into "
                "columns. Compare first."
            )
    labels, places, notes = matched(sources, None, takes_on=False)
    names = [name for name in sampled_names(sources[0], ASKED) if name in sources[1].measures]
    for name in names:
        one, other = (source.measures[name] for source in sources)
        if fact := next((fact for fact in SAME if not agree(one, other, fact)), None):
            raise InvalidArgument(
                f"{name} must be the same statistic in both results, and its {fact} is {_different(one, other, fact)}. "
                "Release both alike."
            )
    if not names:
        raise InvalidArgument("later and earlier must have a statistic of one name in common. Release both alike.")
    units = [_unit_of(source) for source in sources]
    if units[0] != units[1]:
        raise InvalidArgument(
            f"later and earlier must count the same unit in as many groups, not {' and '.join(units)}. "
            "Release both with one unit and one max_groups."
        )
    first, second = places["later"], places["earlier"]
    pairs = [
        (
            estimate_of(sources[0], name, ASKED, exact=False).at(first),
            estimate_of(sources[1], name, ASKED, exact=False).at(second),
        )
        for name in names
    ]
    return sources[0], labels, first, names, pairs, "compare(later, earlier)", notes


def _different(one: Facts, other: Facts, fact: str) -> str:
    """Return the fact in which two statistics differ as text; the texts of both may be the same."""
    words = one.get(fact)
    if words != other.get(fact):
        return f"{shown(words)} and {shown(other.get(fact))}"
    hashed = all(f"{fact}{HASH}" in said for said in (one, other))
    return f"{words} and another that reads alike" if hashed else f"known in part alone: {words}"


def _unit_of(source: Source) -> str:
    """Return as text the unit that is counted, and the number of groups in which it has full weight."""
    unit = PrivacyUnit.of_facts(source.facts["unit"])
    groups = groups_of(unit, cells_of(source.whole.facts))
    return "rows" if unit.column is None else f"{noun_of(unit.column)} in {how_many(groups, 'group')}"


def _checked_by(source: Source, by: Any) -> tuple[str, list[str]]:
    """Return the column of the two groups, and the label columns that belong to it."""
    if "levels" in source.facts:
        raise InvalidArgument(
            "result must be the cells of one table, and this one has subtotals. Release group_by(...) without them."
        )
    lefts = {f"{name}_left": [f"{name}_left", f"{name}_right"] for name in _binned(source)}
    single = [name for name in source.labels if not any(name in ends for ends in lefts.values())]
    groups = {**{name: [name] for name in single}, **lefts}
    if by is None and len(groups) != 1:
        raise MissingArgument(f"by must name the column of the two groups, one of {shown(list(groups))}.")
    if by is not None and not isinstance(by, str):
        raise InvalidType(f"by must be the name of one column, not {shown(by)}.")
    column = next(iter(groups)) if by is None else by if by in groups else f"{by}_left"
    if column not in groups:
        raise InvalidArgument(f"by must name the column of the two groups, one of {shown(list(groups))}, not {by!r}.")
    return column, groups[column]


def _binned(source: Source) -> list[str]:
    return [name for axis in source.facts["cells"] if "bins" in axis for name in axis["columns"]]


def _share_draws(form: Any, one: Rows, other: Rows) -> bool:
    """Return whether one draw of noise affects both groups."""
    parts = (form.top, form.bottom) if isinstance(form, Quotient) else (form,)
    for part in parts:
        assert isinstance(part, Linear)
        for block, weights in part.noise.values():
            if block.spread is not None or np.intersect1d(weights[one].indices, weights[other].indices).size:
                return True
    return False


def _compared(one: Estimate, other: Estimate, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the difference, the ends of its interval, and its p-value."""
    effect, least, most = one.values - other.values, one.least - other.most, one.most - other.least
    middles = np.clip(one.middles - other.middles, least, most)  # so that noisy shares beyond 0 or 1 leave an interval

    def interval(confidence: float) -> tuple[Floats, Floats]:
        (below, above), (lower, upper) = one.reach(confidence), other.reach(confidence)
        return middles - np.hypot(below, upper), middles + np.hypot(above, lower)

    low, high = interval(level)
    p_value = _p_values(interval, 1.0 - level)
    return (
        effect,
        np.minimum(np.clip(low, least, most), effect),
        np.maximum(np.clip(high, least, most), effect),
        p_value,
    )


def _p_values(interval: Any, own: float) -> Floats:
    """Return the smallest 1 - confidence whose interval excludes 0, interpolated between levels, the caller's included.

    Between two levels, the distance of 0 from the interval is nearly linear in standard normal quantiles.
    """
    from scipy.special import ndtr, ndtri

    most = -float(ndtri(LEAST_P / 2.0))
    scores = np.unique([*np.linspace(1e-3, most, LEVELS), min(-float(ndtri(own / 2.0)), most)])
    gaps = []
    for score in scores:
        low, high = interval(1.0 - 2.0 * float(ndtr(-score)))
        gaps.append(np.maximum(low, -high))  # positive if the interval excludes 0
    outside = np.stack(gaps)
    left_out = outside > 0.0
    last = np.where(left_out.any(axis=0), left_out.shape[0] - 1 - np.argmax(left_out[::-1], axis=0), 0)
    after, rows = np.minimum(last + 1, len(scores) - 1), np.arange(outside.shape[1])
    here, there = outside[last, rows], outside[after, rows]
    with np.errstate(invalid="ignore"):
        part = np.where(np.isfinite(there) & (here > there), here / np.where(here > there, here - there, 1.0), 0.0)
    score = scores[last] + np.clip(part, 0.0, 1.0) * (scores[after] - scores[last])
    return np.where(left_out.any(axis=0), np.maximum(2.0 * ndtr(-score), LEAST_P), 1.0)


def _holm(p_values: Floats) -> Floats:
    """Return the p-values of several tests, adjusted by the method of Holm (1979)."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(p_values.size, 0, -1)
    raised = np.maximum.accumulate(np.minimum(p_values[order] * factors, 1.0))
    adjusted = np.empty(p_values.size)
    adjusted[order] = raised
    return adjusted


def _holm_words(tests: int, confidence: float) -> str:
    return (
        f"p-values are adjusted for {tests:,} comparisons by Holm's method, and intervals by Bonferroni's: "
        f"all hold together with {100 * confidence:g}%"
    )


def told(p_values: Sequence[float], tests: int = 1) -> list[str]:
    """Return p-values as text for tables; for `tests` adjusted tests, the smallest reported one is LEAST_P * tests."""
    least = LEAST_P * tests
    return [f"<= {least:g}" if value <= least else f"{value:.2g}" for value in p_values]
