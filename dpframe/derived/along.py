"""Totals, shares, running sums, moving means, differences and changes of one release, as post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.linear import Form, Linear, Quotient, Sparse, add, divide
from dpframe.derived.record import HIGH, LOW, columns_of, facts_of, frame_of, measure_of
from dpframe.derived.traced import Source, check_shown
from dpframe.display.rounding import limits
from dpframe.errors import InvalidArgument, InvalidType, shown, with_article
from dpframe.exact import is_whole
from dpframe.privacy import noun_of
from dpframe.queries.quotients import within_limits
from dpframe.queries.statistics import CONFIDENCE

NAME = "result"  # the name of the release in error messages
POOLED = ("mean", "proportion", "ratio")  # the total of these is pooled: summed numerators over summed denominators
SUMS = ("total", "share", "cumulative")  # verbs that need additive numbers: no value or unit may count in two groups
UNDECLARED, NOT_SHOWN = "rows with undeclared keys are in no total", "groups that are not shown are in no total"
PERCENT = 100.0
OF_ONE_SIGN = {"share": (0.0, 1.0), "change": (-PERCENT, math.inf)}  # limits for numbers of one sign
COUNTS = ("count", "marginals", "n_distinct", "n_units")  # verbs whose numbers are never negative but for noise
MOST_ENTRIES = 2**25  # the largest number of terms of all sums together

Rows = NDArray[np.int64]
Facts = Mapping[str, Any]


def totals_by(frame: Any, by: Any) -> Any:
    """Return the sum of each statistic over the groups that agree in `by`; means, proportions and ratios are pooled."""
    source = Source.of(NAME, frame, "total")
    check_shown(source, "total")
    labels = _checked_by(source, by)
    rows = _level_of(source, labels)
    group, first = _grouped(source, labels, rows)
    sums = _sums(group)
    forms = {name: _pooled(form, rows, sums) for name, form in _forms(source, "total", POOLED).items()}
    words, notes = f"total(by={shown(labels)})" if labels else "total()", _outside(source, labels)
    return _built(source, labels, rows[first], forms, "total", words, notes)


def shares_by(frame: Any, by: Any) -> Any:
    """Return each number as a share of the sum over the rows that agree in `by`."""
    source = _of_cells(frame, "share")
    check_shown(source, "share")
    labels, rows = _checked_by(source, by), np.argsort(source.places)  # in the order of the caller's frame
    group, _ = _grouped(source, labels, rows)
    sums = _sums(group)
    forms = {name: _share(form.at(rows), group, sums) for name, form in _forms(source, "share").items()}
    words, notes = f"share(by={shown(labels)})" if labels else "share()", _outside(source, labels)
    return _built(source, source.labels, rows, forms, "share", words, notes)


def _share(form: Linear, group: Rows, sums: Sparse) -> Form:
    """Return each row's share of its group; if rows have one draw of one law each, a group's noise is computed once."""
    whole = form.summed(sums)
    alike = all(block.spread is None and weights.nnz == group.size for block, weights in form.noise.values())
    if alike and len(form.noise) == 1:
        _, first = np.unique(group, return_index=True)
        return Quotient(form.at(first), whole, (form.values, whole.values[group], group))
    _check_entries(int(np.bincount(group)[group].sum()))
    return divide(form, whole.at(group))


def _check_entries(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise InvalidArgument(
            f"the result must have fewer rows to be added up so often, for it takes {entries:,} terms. "
            "Filter to fewer keys, or release wider bins."
        )


def running(frame: Any) -> Any:
    """Return the sum of each number and all numbers before it, along the ordered key."""
    return _along(frame, "cumulative", "cumulative()", lambda form, line: _window(form, line, None))


def moving(frame: Any, n: Any) -> Any:
    """Return the moving mean of `n` numbers along the ordered key, without the first n - 1 rows of each line."""
    size = _checked_n(n)
    return _along(frame, "rolling", f"rolling({size})", lambda form, line: _window(form, line, size), size - 1)


def steps(frame: Any, n: Any) -> Any:
    """Return each number minus the number `n` places before it, along the ordered key."""
    size = _checked_n(n)

    def difference(form: Linear, line: Lines) -> Form:
        now, before = line.pairs(size)
        return add(form.at(now), form.at(before), -1.0)

    return _along(frame, "difference", f"difference({size})", difference, size)


def changes(frame: Any, n: Any) -> Any:
    """Return the change of each number from the number `n` places before it, in percent, along the ordered key."""
    size = _checked_n(n)

    def change(form: Linear, line: Lines) -> Form:
        now, before = line.pairs(size)
        return Quotient(form.at(now).sum_with(form.at(before), -1.0).times(PERCENT), form.at(before))

    return _along(frame, "change", f"change({size})", change, size)


class Lines:
    """Rows of a result in lines along its ordered key, one line for each group of the other keys."""

    def __init__(self, source: Source) -> None:
        levels = source.facts.get("levels")
        axes = [
            axis for axis in source.facts["cells"] if levels is None or {*axis["columns"]} <= {*levels[0]["columns"]}
        ]
        mine = [source.keys[axis.get("released", axis["columns"])[0]] for axis in axes]
        ordered = [place for place, axis in enumerate(axes) if "every" in axis or "bins" in axis]
        if len(ordered) != 1:  # otherwise the only axis with several keys here, in its declared order
            among = ordered or list(range(len(axes)))
            ordered = [place for place in among if np.unique(mine[place]).size > 1] or among[:1]
        if len(ordered) != 1:
            raise InvalidArgument(
                f"the result must have one key in order, such as dates or bins, and it has {shown(source.labels)}. "
                'Group by one, or filter the others to one key: result.dp.filter({"ward": "A"}).'
            )
        self.name, self.were_found = axes[ordered[0]]["columns"][0], "discovered" in axes[ordered[0]]
        along = mine.pop(ordered[0])
        line = np.unique(np.stack(mine), axis=1, return_inverse=True)[1].ravel() if mine else np.zeros_like(along)
        self.order: Rows = np.lexsort((along, line))
        goes_on = np.diff(line[self.order], prepend=-1) == 0
        starts = np.flatnonzero(~goes_on)
        every = np.arange(self.order.size)
        self.within: Rows = every - starts[np.cumsum(~goes_on) - 1]  # the place in its line
        self.size = int(self.within.max(initial=-1)) + 1
        self.steps = np.unique(np.diff(along[self.order], prepend=0)[goes_on])  # the steps between consecutive keys

    def pairs(self, n: int) -> tuple[Rows, Rows]:
        """Return the rows with a row `n` places before them, in the order of the result, and those earlier rows."""
        now = np.flatnonzero(self.within >= n)
        after, before = self.order[now], self.order[now - n]
        order = np.argsort(after)
        return after[order], before[order]


def _along(
    frame: Any,
    verb: str,
    words: str,
    made: Callable[[Linear, Lines], Form],
    gone: int = 0,
) -> Any:
    """Return the frame of a verb along the ordered key, without the first `gone` rows of each line."""
    source = _of_cells(frame, verb)
    check_shown(source, verb)
    lines = Lines(source)
    if lines.size == 1 and verb != "rolling" and gone:
        raise InvalidArgument(f"{verb} must be along at least 2 keys, and this result has 1. Release more of them.")
    if gone >= lines.size:
        keys = "is 1 key" if lines.size == 1 else f"are {lines.size} keys in order"
        raise InvalidArgument(
            f"n must be at most {lines.size - (verb != 'rolling')}, for there {keys}. Write a smaller n."
        )
    if verb != "cumulative" and lines.were_found:
        raise InvalidArgument(
            f"{verb} must be along declared keys, and those of {lines.name} were discovered: one between two may "
            "be missing. Declare them, or write dpf.combine."
        )
    if verb != "cumulative" and lines.steps.size > 1:
        raise InvalidArgument(
            f"{verb} must be of keys at even steps, and of {lines.name} some between others were left out. "
            "Filter to keys that follow each other, or write dpf.combine."
        )
    kept = np.sort(lines.order[lines.within >= gone])
    others = [name for axis in source.facts["cells"] for name in axis["columns"] if name != lines.name]
    numbers = {name: made(form, lines) for name, form in _forms(source, verb, others=others).items()}
    notes = _outside(source, others) if verb in SUMS else []
    step = int(lines.steps[0]) if verb != "cumulative" and lines.steps.size else 1
    return _built(source, source.labels, kept, numbers, verb, words, notes, step)


def _window(form: Linear, lines: Lines, size: int | None) -> Linear:
    """Return the sums of all numbers up to each row, or the means of the last `size`, in the order of the result."""
    from scipy.sparse import csr_array

    ends = np.flatnonzero(lines.within >= (0 if size is None else size - 1))
    counts = lines.within[ends] + 1 if size is None else np.full(ends.size, size)
    _check_entries(int(counts.sum()))
    firsts = np.cumsum(counts) - counts  # the place of each sum's first term among all terms
    inside = np.repeat(ends + 1 - counts - firsts, counts) + np.arange(int(counts.sum()))
    targets, members = lines.order[np.repeat(ends, counts)], lines.order[inside]
    kept = np.sort(lines.order[ends])
    rows = np.searchsorted(kept, targets)
    weight = 1.0 if size is None else 1.0 / size
    sums = csr_array((np.full(rows.size, weight), (rows, members)), shape=(kept.size, form.values.size))
    return form.summed(sums)


def _of_cells(frame: Any, verb: str) -> Source:
    """Return the release as a source; refuse one with several tables."""
    source = Source.of(NAME, frame, verb)
    if len(levels := source.facts.get("levels", ())) > 1:
        finest = max((level["columns"] for level in levels), key=len)
        keys = ", ".join(f"{name!r}: [...]" for name in finest)
        raise InvalidArgument(
            f"{verb} must be of the cells of one table, and this result has {len(levels)}. "
            f"Filter it to one by all of its keys: result.dp.filter({{{keys}}}).dp.{verb}(...)."
        )
    return source


def _forms(source: Source, verb: str, quotients: Sequence[str] = (), others: Sequence[str] = ()) -> dict[str, Any]:
    """Return the forms of all statistics: linear ones, and quotients for the verbs in `quotients`.

    `others` are the keys other than the one in order, which match the rows of a line with those of another.
    """
    if verb in SUMS and source.rows > 1:
        _check_adds_up(source, verb)
    forms: dict[str, Any] = {}
    untraced: list[InvalidArgument] = []
    for name in source.measures:
        try:
            forms[name] = source.form(source.unbiased(name))
        except InvalidArgument as error:
            untraced.append(error)
    linear = next((shown(one) for one, form in forms.items() if isinstance(form, Linear)), None)
    if untraced:
        way = f" Or leave it out: .dp.select({linear}).dp.{verb}(...)." if linear else ""
        raise InvalidArgument(f"{untraced[0]}{way}")
    for name, form in forms.items():
        of = source.measures[name]["verb"]
        if not isinstance(form, Linear) and of not in quotients:
            way = _way_out(verb, name, linear, others)
            raise InvalidArgument(f"{verb} must be of counts and sums, and {name} is {with_article(of)}. {way}")
    return forms


def _way_out(verb: str, name: str, linear: str | None, others: Sequence[str]) -> str:
    """Return the advice for a quotient: another statistic (`linear`), or an expression of some of its rows."""
    if linear:
        return f"Write for instance .dp.select({linear}).dp.{verb}(...)."
    if verb in SUMS:
        return "Release a count or a sum."
    return (
        f'Write for instance dpf.combine("b.{name} - a.{name}", {{"a": result.dp.filter(...), '
        f'"b": result.dp.filter(...)}}, on={shown(list(others))}).'
    )


def _check_adds_up(source: Source, verb: str) -> None:
    """Refuse numbers that do not add up: distinct values, and units that may be in several groups."""
    unit = source.facts["unit"]
    for name, said in source.measures.items():
        if said["verb"] == "n_distinct":
            what, way = f"two groups of {name} may have the same values", "by fewer keys"
        elif said["verb"] == "n_units" and unit["max_groups"] != 1:
            what = f"one {noun_of(unit['column'])} may be in several groups of {name}"
            way = "with max_groups=1, or by fewer keys"
        else:
            continue
        raise InvalidArgument(
            f"{verb} must be of numbers that add up, and {what}. Release it {way}; or leave it out: .dp.select(...)."
        )


def _level_of(source: Source, labels: Sequence[str]) -> Rows:
    """Return the rows to add up: all rows, or those of one level of subtotals or one table.

    A level with exactly these columns is taken. Otherwise it is the level with more columns whose sum is least noisy.
    Filters must leave the same keys in all levels, because otherwise the choice of the level would change the result.
    """
    levels, every = source.facts.get("levels"), np.arange(source.rows)
    if levels is None:
        return every
    stops = np.cumsum([level["rows"] for level in levels])
    places = [place for place, level in enumerate(levels) if {*level["columns"]} == {*labels}]
    above = [place for place, level in enumerate(levels) if {*level["columns"]} > {*labels}]
    places += sorted(above, key=lambda place: _noise_of(source, levels, place))
    if not places:
        raise InvalidArgument(
            f"by must name columns of one table, and none has {shown(list(labels))} together. Name fewer."
        )
    _check_alike(source, levels, stops)
    return every[stops[places[0]] - levels[places[0]]["rows"] : stops[places[0]]]


def _noise_of(source: Source, levels: Sequence[Facts], place: int) -> float:
    """Return the variance of the sum over a level, for the first statistic; others rank the levels in the same order.

    The tables of marginals add up to the same numbers, so any of them may be taken.
    """
    numbers = next(iter(source.measures.values()))["statistics"]
    law = source.facts["statistics"][numbers[place * len(numbers) // len(levels)]]
    return float(levels[place]["rows"] * law.get("variance", 0.0))


def _check_alike(source: Source, levels: Sequence[Facts], stops: Rows) -> None:
    """Refuse tables that filters left with different keys; each must have all of its cells at the shared keys."""
    shared = [name for name in levels[0]["columns"] if all(name in level["columns"] for level in levels)]
    axes = [axis for axis in source.facts["cells"] if not {*axis["columns"]} <= {*shared}]
    tokens, first = source.tokens(shared), None
    for level, stop in zip(levels, stops.tolist(), strict=True):
        keys = {*tokens[stop - level["rows"] : stop]}
        others = math.prod(axis["size"] for axis in axes if {*axis["columns"]} <= {*level["columns"]})
        if len(keys) * others != level["rows"] or keys != (keys if first is None else first):
            raise InvalidArgument(
                "the result must have the same keys in all of its tables, and some differ. "
                'Filter all by keys: result.dp.filter({"ward": ["A", "B"]}).'
            )
        first = keys


def _pooled(form: Form, rows: Rows, sums: Sparse) -> Form:
    """Return sums of rows; for quotients, the summed numerators over the summed denominators."""
    if isinstance(form, Linear):
        return form.at(rows).summed(sums)
    assert isinstance(form, Quotient)
    return Quotient(form.top.at(rows).summed(sums), form.bottom.at(rows).summed(sums))


def _checked_by(source: Source, by: Any) -> list[str]:
    """Return the label columns that `by` names; a column of bins has two."""
    if by is None:
        return []
    named = [by] if isinstance(by, str) else list(by) if isinstance(by, (list, tuple)) else None
    if named is None or not all(isinstance(name, str) for name in named):
        raise InvalidType(f'by must be the name of a column or a list of names, not {shown(by)}. Write by="ward".')
    labels: list[str] = []
    for name in named:
        ends = [name] if name in source.labels else [f"{name}_left", f"{name}_right"]
        if not {*ends} <= {*source.labels}:
            raise InvalidArgument(f"by must name columns of the keys, {shown(source.labels)}, not {name!r}. Name one.")
        labels += ends
    return labels


def _grouped(source: Source, labels: Sequence[str], rows: Rows) -> tuple[Rows, Rows]:
    """Return the group number of each of these rows, and the place of each group's first row among them."""
    numbers: dict[Any, int] = {}
    tokens = source.tokens(list(labels))
    group = np.array([numbers.setdefault(tokens[row], len(numbers)) for row in rows.tolist()], dtype=np.int64)
    _, first = np.unique(group, return_index=True)
    return group, first


def _sums(group: Rows) -> Sparse:
    """Return the matrix that adds up the rows of each group."""
    from scipy.sparse import csr_array

    return csr_array(
        (np.ones(group.size), (group, np.arange(group.size))), shape=(int(group.max(initial=-1)) + 1, group.size)
    )


def _checked_n(n: object) -> int:
    """Return `n` as an integer; refuse anything but a whole number of at least 1."""
    if not is_whole(n) or int(n) < 1:  # type: ignore[call-overload]
        raise InvalidArgument(f"n must be a whole number of at least 1, not {shown(n)}. Write n=1.")
    return int(n)  # type: ignore[call-overload,no-any-return]


def _built(
    source: Source,
    labels: Sequence[str],
    places: Rows,
    forms: Mapping[str, Form],
    verb: str,
    words: str,
    notes: Sequence[str] = (),
    step: int = 1,
) -> Any:
    facts = facts_of("changed", verb, words, [source], CONFIDENCE, notes)
    if step > 1:
        facts["step"] = step  # between consecutive keys in order, if a filter left out those between
    measures = {name: measure_of(facts) for name in forms}
    for name in forms:
        if verb == "share" and _is_of_both_signs(source.measures[name]):
            measures[name]["verb"] = "ratio"  # with bounds of both signs, a share may be below 0 or above 1
        if verb == "total" and source.measures[name]["verb"] in POOLED:
            measures[name]["verb"] = source.measures[name]["verb"]  # a mean of all groups together is a mean
    columns = columns_of(forms, CONFIDENCE)
    for name in forms:
        if name + LOW in columns and (ends := _limits(source.measures[name], verb)) is not None:
            low, value, high = (columns[name + end] for end in (LOW, "", HIGH))
            halves = np.maximum(value - low, high - value)
            columns[name + LOW], columns[name + HIGH] = within_limits(low, high, halves, ends)
            columns[name] = value if verb == "share" else np.clip(value, *ends)
    return frame_of(source, list(labels), places, columns, facts, measures=measures)


def _outside(source: Source, apart: Sequence[str]) -> list[str]:
    """Return notes on rows that are in no sum; columns in `apart` get no note, because no sum is over their keys.

    Bins, dates and levels have their own notes in the release. An axis with a group for all other keys misses no row.
    """
    over = [axis for axis in source.facts["cells"] if not {*axis["columns"]} <= {*apart}]
    notes = [NOT_SHOWN] if any("discovered" in axis for axis in over) else []
    declared = any(not {"discovered", "bins", "every", "rest"} & axis.keys() for axis in over)
    return [*notes, UNDECLARED] if declared and "levels" not in source.facts else notes


def _limits(said: Facts, verb: str) -> tuple[float, float] | None:
    """Return the limits of a share, a change or a pooled quotient, or None if there are none."""
    if verb in OF_ONE_SIGN:
        return None if _is_of_both_signs(said) else OF_ONE_SIGN[verb]
    return limits(said) if verb == "total" and said["verb"] in POOLED else None


def _is_of_both_signs(said: Mapping[str, Any]) -> bool:
    bounds = said.get("unit_bounds") or said.get("bounds") or (-math.inf, math.inf)
    of_any_sign = said["verb"] != "sum" or bounds[0] < 0.0 < bounds[1]  # a caller's statistic may have both signs
    return said["verb"] not in COUNTS and bool(of_any_sign)
