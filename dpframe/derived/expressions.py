"""`combine`: arithmetic on released columns by an expression, matched on their keys, with intervals for the noise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.linear import Form, Linear, Quotient, add, divide, multiply
from dpframe.derived.record import columns_of, facts_of, frame_of
from dpframe.derived.sums_of_noise import checked_confidence
from dpframe.derived.traced import TOTAL, Source, check_shown, constant, is_written, renamed
from dpframe.display.rounding import SLACK, limits
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, closest, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, foreign
from dpframe.frames.kinds import is_frame
from dpframe.queries.date_grid import MONDAY
from dpframe.queries.sameness import AWARE, DAY, NAIVE

DEEPEST = 100  # the deepest nesting of operations in an expression
LONGEST = 1_000  # the largest number of characters in an expression
LARGEST = 1e100  # the largest factor in a form; its square is a finite float too
EXAMPLE = 'Write for instance dpf.combine("feb.n - jan.n", {"jan": jan, "feb": feb}).'
GRAMMAR = "made of names, numbers, + - * / and parentheses"
SAME_KEYS = "Release or filter them by the same keys."
VALUE = "value"

Facts = Mapping[str, Any]
Mask = NDArray[np.bool_]
Pair = tuple[Source, Source]
Places = Mapping[str, NDArray[np.int64]]

STEPS: Facts = {"every": "1d", "starts": MONDAY, "zone": None}  # defaults of an axis; a plain date is a day
MEANT = {"date": "whole days", "datetime": "moments"}  # equal labels of both kinds mean different groups


@trimmed
def combine(
    expression: str,
    results: Mapping[str, Any],
    *,
    on: str | Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Any:
    """Combine released columns by an expression, with the exact interval.

    Parameters
    ----------
    expression : str
        Names, numbers, ``+ - * /`` and parentheses: ``"feb.n - jan.n"``, or ``"feb - jan"`` if each result has one
        statistic. A name is that of a result, followed by a dot and the column. The column must hold unbiased values:
        for adjusted counts, ``count_noisy``.
    results : dict of DataFrame
        Released results of pandas or Polars, by their names in the expression, also after ``.dp.filter``, ``.dp.sort``,
        ``.dp.head``, ``.dp.select``, ``.dp.relabel`` or ``.dp.wide``. Rounded, joined and computed ones are refused.
    on : str or list of str, optional
        The columns of keys or bins that match rows; by default all, which must be the same in all results. One result
        may have several rows for a key, such as counts by ward and age next to counts by ward: each is matched with the
        one row of the others for that key. With ``on=[]``, each row of one result is matched with the one row of the
        others. A result without keys matches every row. Keys that only some results have are left out. Rows with
        equal keys must be the same group: a month is not its first day, and a day is not its midnight. Bins are
        matched by both edges, with ``on="age"`` or ``on="age_left"``.
    confidence : float
        The confidence of the intervals, above 0 and at most 0.9999.

    Returns
    -------
    DataFrame
        The keys, ``value``, and ``value_error``, the half-width of its interval; if the interval is not symmetric, its
        ends ``value_low`` and ``value_high`` instead. ``covers`` is ``"table"``: the intervals cover only the noise.
        The library is that of the result with these rows. ``.dp`` has ``provenance``, ``plot``, ``table``,
        ``statement`` and ``write_*``.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule, or if the law of a number's noise is not known: an adjusted count, a quantile, a
        rounded, joined or computed frame.
    NoProvenance
        If a frame has no provenance.

    Notes
    -----
    dpframe knows which draw of noise is in which number. The same release under two names is one: ``a - a`` is exactly
    0. Sums and differences have the exact law of their noise. Quotients have Fieller's set; if the interval of the
    divisor contains 0, the set is everything, from -inf to inf. Products, and sums of quotients, have the range of the
    intervals of their k factors at the confidence to the power 1 / k (or 1 - (1 - confidence) / k, if they share
    noise). This always holds. See ``docs/guide/combine.md``.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> stays = pl.DataFrame({"ward": ["A", "B", "A"]})
    >>> with dpf.Ledger(epsilon=2.0, delta=1e-6):
    ...     jan, feb = (stays.dp.group_by("ward", keys=["A", "B"]).agg(n=dpf.count(), epsilon=1) for _ in range(2))
    >>> change = dpf.combine("feb.n_noisy - jan.n_noisy", {"jan": jan, "feb": feb})
    >>> change.columns, change["value_error"].to_list()
    (['ward', 'value', 'value_error', 'covers'], [12.0, 12.0])
    """
    checked = checked_confidence(confidence)
    tree = tree_of(expression, results)
    sources = _sources(results, names_in(tree))
    labels, places, notes = matched(list(sources.values()), on)
    rows = len(next(iter(places.values())))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        form = _evaluated(tree, sources, places, rows)
    notes += _uncut(tree, sources)
    used: dict[str, set[str]] = {}
    for source, column in _columns(tree, sources):
        used.setdefault(source.name, set()).add(source.checked_column(column))
    facts = facts_of("combine", "combine", expression.strip(), list(sources.values()), checked, notes, used)
    columns = columns_of({VALUE: form}, checked)
    lead, at = next(iter(places.items()))
    return frame_of(sources[lead], labels, at, columns, facts)


def tree_of(expression: object, results: Any) -> ast.expr:
    """Return the syntax tree of an expression that follows the grammar. It is never run as code."""
    if not isinstance(expression, str):
        raise InvalidType(f"expression must be a string, not {shown(expression, kind=True)}. {EXAMPLE}")
    if len(expression) > LONGEST:
        raise InvalidArgument(f"expression must have at most {LONGEST:,} letters, not {len(expression):,}.")
    way = _way_out(expression, results)
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidArgument(f"expression must be {GRAMMAR}, not {shown(expression)}. {way}") from None
    _check(tree, expression, way)
    return tree


def _way_out(expression: str, results: Any) -> str:
    """Return the advice for a refused expression: to rename a column that no expression can name, or the example."""
    given = results.values() if isinstance(results, Mapping) else ()
    frames = [frame for frame in given if is_frame(frame) and build.record_of(frame) is not None]
    columns = [name for frame in frames for name in frame.columns if isinstance(name, str)]
    named = (name for name in columns if f".{name}" in expression or repr(name) in expression)
    return next((renamed(name) for name in named if not is_written(name)), EXAMPLE)


def _check(node: ast.AST, expression: str, way: str, depth: int = 1) -> None:
    """Refuse every node that the grammar does not allow."""
    if depth > DEEPEST:
        raise InvalidArgument(
            f"expression must nest at most {DEEPEST} operations, and a long sum nests one in the next. "
            "Group its terms: (a + b) + (c + d)."
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        _check(node.left, expression, way, depth + 1)
        _check(node.right, expression, way, depth + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        _check(node.operand, expression, way, depth + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        if not abs(node.value) <= 2**63:
            raise InvalidArgument(f"expression must have numbers within +-2**63, not {shown(node.value)}.")
    elif not isinstance(node, ast.Name) and not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        raise InvalidArgument(f"expression must be {GRAMMAR}, not {shown(expression)}. {way}")


def names_in(tree: ast.expr) -> list[str]:
    """Return the different names of results in an expression."""
    return list(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))


def _sources(results: Any, names: Sequence[str]) -> dict[str, Source]:
    """Return the results that the expression names, in the order of `results`."""
    if not isinstance(results, Mapping):
        raise InvalidType(
            f"results must be a dict of released frames by name, not {shown(results, kind=True)}. {EXAMPLE}"
        )
    if not names:
        raise MissingArgument(f"expression must name a result, and it has numbers alone. {EXAMPLE}")
    spelled = {_spelled(name, results): name for name in names}
    for name in spelled:
        if name not in results:
            near = closest(name, [str(known) for known in results])
            hint = f"Did you mean {near!r}?" if near else f"results has {shown(list(results))}."
            raise InvalidArgument(f"expression must name results, and {name!r} is none. {hint}")
    sources = {spelled[key]: Source.of(spelled[key], results[key]) for key in results if key in spelled}
    for source in sources.values():
        check_shown(source, "combine")
    unnamed = [source.name for source in sources.values() if source.identity[0] == "record"]
    if unnamed and len({source.identity for source in sources.values()}) > 1:
        raise InvalidArgument(
            f"{unnamed[0]} must be a release of dpframe 0.3 or newer to be combined with others, since older records "
            "do not say which noise is whose. Combine it with itself alone."
        )
    return sources


def _spelled(name: str, known: Iterable[Any]) -> str:
    """Return the known name that an expression spells in this way: Python normalizes the names in it (NFKC)."""
    found = [one for one in known if isinstance(one, str) and normalize("NFKC", one) == name]
    if len(found) > 1:
        raise InvalidArgument(
            f"expression must name one thing by {name!r}, and {shown(found)} are all written so. Relabel one of them."
        )
    return found[0] if found else name


def matched(
    sources: Sequence[Source], on: str | Sequence[str] | None, *, takes_on: bool = True
) -> tuple[list[str], dict[str, NDArray[np.int64]], list[str]]:
    """Return the label columns, the row of each result for each row of the answer, and the note on keys left out.

    The first entry of the rows belongs to the result that has these label columns. Advice names `on` if the caller
    `takes_on`.
    """
    keyed = [source for source in sources if source.labels]
    if not keyed:
        if on is not None:
            raise InvalidArgument("on must be left out of results that are single numbers. Drop it.")
        return [], {source.name: np.zeros(1, dtype=np.int64) for source in sources}, []
    shared = _checked_on(keyed, on)
    tokens = {source.name: source.tokens(shared) for source in keyed}
    _check_zones(shared, tokens)
    finer = [source for source in keyed if len(set(tokens[source.name])) < source.rows]
    if len(finer) > 1:
        others = [name for name in finer[1].labels if name not in shared]
        raise InvalidArgument(
            f"on must tell apart the rows of all results but one: {finer[1].name} also has {shown(others)}. Name these "
            "columns too, or release what you need by fewer."
        )
    lead = finer[0] if finer else keyed[0]
    known = {name: {token: place for place, token in enumerate(mine)} for name, mine in tokens.items()}
    every = {token for mine in tokens.values() for token in mine}
    rows = [row for row, token in enumerate(tokens[lead.name]) if all(token in mine for mine in known.values())]
    common = [tokens[lead.name][row] for row in rows]
    if not common:
        way = _other_match(keyed, shared) if takes_on else SAME_KEYS
        raise InvalidArgument(f"results must have keys in common, and {shown(shared)} has none. {way}")
    places = {lead.name: np.array(rows, dtype=np.int64)}
    for source in keyed:
        if source is not lead:
            places[source.name] = np.array([known[source.name][token] for token in common], dtype=np.int64)
    _check_same_groups(keyed, shared, places)
    single = {source.name: np.zeros(len(rows), dtype=np.int64) for source in sources if not source.labels}
    labels = list(lead.labels) if finer else shared
    return labels, {**places, **single}, _left_out(len(every) - len(set(common)))


def _other_match(keyed: Sequence[Source], shared: Sequence[str]) -> str:
    """Return the advice for results without a common key: those of their columns that match rows, if some do."""
    alike = [label for label in shared if _have_common(keyed, _with_edges(keyed[0], label))]
    finer = [source for source in keyed if len({*source.tokens(alike)}) < source.rows]
    if len(alike) < len(shared) and len(finer) <= 1 and _have_common(keyed, alike):
        return f"Match them by fewer: on={shown(alike)}."
    return SAME_KEYS


def _with_edges(source: Source, label: str) -> list[str]:
    """Return the column of a label; for an edge of bins, both edges, since `on` takes both."""
    axis = _axis_of(source, label)
    return foreign.labels_of({"cells": [axis]}) if "bins" in axis else [label]


def _have_common(keyed: Sequence[Source], labels: Sequence[str]) -> bool:
    """Return whether all results have a row with the same labels in these columns."""
    return bool(set.intersection(*({*source.tokens(list(labels))} for source in keyed)))


def _check_zones(shared: Sequence[str], tokens: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    """Refuse keys that are times with a time zone in one result and without one in another: none would match."""
    for place, label in enumerate(shared):
        known: dict[str, str] = {}
        for name, mine in tokens.items():
            for kind in {token[place][0] for token in mine if isinstance(token[place], tuple)}:
                known.setdefault(kind, name)
        if AWARE in known and NAIVE in known:
            raise InvalidArgument(
                f"results must have the same groups, and {label} has a time zone in {known[AWARE]}, none in "
                f"{known[NAIVE]}. Release both of columns with a time zone, or of columns without one."
            )


def _left_out(keys: int) -> list[str]:
    """Return the note on keys that are left out, in a list that is empty without such keys."""
    one, verb = ("key", "is") if keys == 1 else ("keys", "are")
    return [f"{keys:,} {one} that only some of the results have {verb} left out"] if keys else []


def _checked_on(keyed: Sequence[Source], on: str | Sequence[str] | None) -> list[str]:
    """Return the label columns by which rows are matched."""
    if on is None:
        first = keyed[0]
        for source in keyed[1:]:
            if set(source.labels) != set(first.labels):
                raise InvalidArgument(
                    f"results must have the same keys, and {first.name} has {shown(first.labels)}, {source.name} "
                    f"{shown(source.labels)}. Name those to match by: on=."
                )
        return list(first.labels)
    named = [on] if isinstance(on, str) else list(on) if isinstance(on, (list, tuple)) else None
    if named is None or not all(isinstance(name, str) for name in named):
        raise InvalidType(f'on must be the name of a column or a list of names, not {shown(on)}. Write on="ward".')
    labels: list[str] = []
    for name in named:
        axis = next((axis for axis in (_axis_of(source, name) for source in keyed) if "bins" in axis), None)
        ends = [name] if all(name in source.labels for source in keyed) else [f"{name}_left", f"{name}_right"]
        if axis is not None:  # both edges, since bins of other widths may share one
            ends = foreign.labels_of({"cells": [axis]})
        for source in keyed:
            if any(end not in source.labels for end in ends):
                raise InvalidArgument(
                    f"on must name keys that all results have, and {source.name} has {shown(source.labels)}, not "
                    f"{shown(name if name not in source.labels else ends)}. Name one of these."
                )
        labels += ends
    return list(dict.fromkeys(labels))


def _check_same_groups(sources: Sequence[Source], labels: Sequence[str], places: Places) -> None:
    """Refuse rows that have equal labels in several results but are different groups."""
    first, *others = sources
    for other in others:
        for label in labels if other.identity != first.identity else ():
            _check_steps(label, (first, other))
            _check_rest(label, (first, other), places)
            _check_last_bin(label, (first, other), places)
            _check_edges(label, (first, other), places)
            _check_totals(label, (first, other), places)


def _check_steps(label: str, both: Pair) -> None:
    """Refuse to match a month with its first day, or a day with its midnight."""
    axes = [_axis_of(source, label) for source in both]
    for fact, usual in STEPS.items() if any("bins" not in axis for axis in axes) else ():  # bin edges have no step
        if axes[0].get(fact, usual) != axes[1].get(fact, usual):
            said = [f"{fact}={axis[fact]!r}" if fact in axis else f"no {fact}" for axis in axes]
            raise InvalidArgument(
                f"results must have the same groups, and {label} has {said[0]} in {both[0].name}, {said[1]} in "
                f"{both[1].name}. Release both by the same keys."
            )
    kinds = [dict(zip(axis["columns"], axis.get("keys", ()), strict=False)).get(label, "") for axis in axes]
    if {*kinds} == {*MEANT}:
        raise InvalidArgument(
            f"results must have the same groups, and {label} has {MEANT[kinds[0]]} in {both[0].name}, "
            f"{MEANT[kinds[1]]} in {both[1].name}. Release both by keys=dpf.dates(...), whose groups are whole days."
        )


def _check_rest(label: str, both: Pair, places: Places) -> None:
    """Refuse a group that also holds all other values, unless these are the same in both results."""
    masks = [_rest_of(source, label)[places[source.name]] for source in both]
    either, rest = masks[0] | masks[1], any("rest" in _axis_of(source, label) for source in both)
    alike = np.array_equal(masks[0], masks[1]) and (not rest or _have_same_keys(label, both))
    if either.any() and not alike:
        raise _different(f"{label} has a group of all other values, which are", label, both[0], places, either)


def _check_last_bin(label: str, both: Pair, places: Places) -> None:
    """Refuse to match a last bin, which includes its right edge, with a bin that excludes it."""
    ends: list[Mask] = []
    for source in both:
        axis = _axis_of(source, label)
        holds = "bins" in axis and "closed" not in axis
        last = _at_last(source, axis) if holds else np.zeros(source.rows, dtype=bool)
        ends.append(last[places[source.name]])
    if not np.array_equal(ends[0], ends[1]):
        what = f"the last bin of {label}, which holds its right edge too, is"
        raise _different(what, label, both[0], places, ends[0] | ends[1])


def _check_edges(label: str, both: Pair, places: Places) -> None:
    """Refuse to match bins of days with bins of moments if an edge is within a day, or the last bin holds its edge."""
    axes = [_axis_of(source, label) for source in both]
    kinds = [axis.get("holds", axis["bins"]) if "bins" in axis else "" for axis in axes]
    if {*kinds} != {*MEANT}:
        return
    apart = np.zeros(len(places[both[0].name]), dtype=bool)
    for source, axis in zip(both, axes, strict=True):
        cut = np.array([ticks % DAY != 0 for ((_, ticks),) in source.tokens([label])], dtype=bool)
        if "closed" not in axis and axis["outside"] != "clip":
            cut |= _at_last(source, axis)
        apart |= cut[places[source.name]]
    if apart.any():
        words = " and ".join(f"{MEANT[kind]} in {source.name}" for kind, source in zip(kinds, both, strict=True))
        raise _different(f"edges of {label} are {words}: some bins are", label, both[0], places, apart)


def _check_totals(label: str, both: Pair, places: Places) -> None:
    """Refuse totals of different declared keys, unless both include all other keys and so are totals of all rows."""
    if "levels" not in both[0].facts:
        return
    totals: Mask = np.array([token == (TOTAL,) for token in both[0].tokens([label])])[places[both[0].name]]
    rests = ["rest" in _axis_of(source, label) for source in both]
    if totals.any() and not all(rests) and (any(rests) or not _have_same_keys(label, both)):
        raise _different(f"the totals of {label} are of keys that are", label, both[0], places, totals)


def _different(what: str, label: str, one: Source, places: Places, apart: Mask) -> InvalidArgument:
    values = one.frame[label].to_list()
    kept = list(dict.fromkeys(values[row] for row in places[one.name][~apart].tolist()))
    way = f"Leave them out: result.dp.filter({{{label!r}: {shown(kept)}}})" if kept else "Release both by the same keys"
    return InvalidArgument(
        f"results must have the same groups, and {what} not known to be the same in all results. {way}."
    )


def _rest_of(source: Source, label: str) -> Mask:
    """Return which rows hold other values too: the group of all other keys, or an end bin that holds outside values."""
    axis = _axis_of(source, label)
    if "rest" not in axis and axis.get("outside") != "clip":
        return np.zeros(source.rows, dtype=bool)
    wider: Mask = _at_last(source, axis)
    return wider if "rest" in axis else wider | (source.keys[_released(axis)[0]] == 0)


def _at_last(source: Source, axis: Mapping[str, Any]) -> Mask:
    """Return which rows are at the last place of an axis."""
    return np.asarray(source.keys[_released(axis)[0]] == _size(source, axis) - 1)


def _have_same_keys(label: str, both: Pair) -> bool:
    """Return whether two results have the same declared keys; False if some keys are not shown."""
    one, other = (_declared(source, label) for source in both)
    return one is not None and one == other


def _declared(source: Source, label: str) -> set[Any] | None:
    """Return the declared keys, without the group of all others; None if some keys are not shown."""
    axis = _axis_of(source, label)
    codes, size = source.keys[_released(axis)[0]], _size(source, axis) - ("rest" in axis)
    rows = np.flatnonzero((codes >= 0) & (codes < size))
    tokens = source.tokens(foreign.labels_of({"cells": [axis]}))
    return {tokens[row] for row in rows.tolist()} if np.unique(codes[rows]).size == size else None


def _axis_of(source: Source, label: str) -> Facts:
    """Return the axis to which a label column belongs; an empty mapping if there is none."""
    axes = source.facts["cells"]
    return next((axis for axis in axes if label in foreign.labels_of({"cells": [axis]})), {})


def _released(axis: Facts) -> list[str]:
    """Return the columns of an axis under their released names."""
    columns: list[str] = axis.get("released", axis["columns"])
    return columns


def _size(source: Source, axis: Facts) -> int:
    """Return the number of places of an axis in the whole release."""
    return next(int(one["size"]) for one in source.whole.facts["cells"] if one["columns"] == _released(axis))


def _evaluated(
    tree: ast.expr, sources: Mapping[str, Source], places: Mapping[str, NDArray[np.int64]], rows: int
) -> Form:
    """Return the form of a tree, from its leaves up; refuse numbers outside the range where floats are exact enough."""
    form = _form_of(tree, sources, places, rows)
    forms = (form.top, form.bottom) if isinstance(form, Quotient) else (form,)
    factors = [weights.data for one in forms if isinstance(one, Linear) for _, weights in one.noise.values()]
    factors += [one.values for one in forms if isinstance(one, Linear) and one.is_fixed]
    sizes = np.abs(np.concatenate([*factors, np.ones(1)]))
    if not np.all((sizes == 0.0) | (sizes >= 1.0 / LARGEST) & (sizes <= LARGEST)) or np.isinf(form.values).any():
        raise InvalidArgument(
            f"expression must have factors from {1.0 / LARGEST:g} to {LARGEST:g}, and it leaves them. "
            "Write it in other units."
        )
    return form


def _form_of(tree: ast.expr, sources: Mapping[str, Source], places: Mapping[str, NDArray[np.int64]], rows: int) -> Form:
    if isinstance(tree, ast.BinOp):
        left, right = (_evaluated(side, sources, places, rows) for side in (tree.left, tree.right))
        if isinstance(tree.op, (ast.Add, ast.Sub)):
            return add(left, right, 1.0 if isinstance(tree.op, ast.Add) else -1.0)
        if isinstance(tree.op, ast.Mult):
            return multiply(left, right)
        if isinstance(right, Linear) and right.is_fixed and not right.values.all():
            raise InvalidArgument("expression must not divide by 0, and it does. Write another divisor.")
        return divide(left, right)
    if isinstance(tree, ast.UnaryOp):
        inner = _evaluated(tree.operand, sources, places, rows)
        return multiply(constant(-1.0 if isinstance(tree.op, ast.USub) else 1.0, rows), inner)
    if isinstance(tree, ast.Constant):
        return constant(float(tree.value), rows)  # type: ignore[arg-type]
    source, column = _column_of(tree, sources)
    return source.form(column).at(places[source.name])


def _column_of(tree: ast.expr, sources: Mapping[str, Source]) -> tuple[Source, str]:
    """Return the result to which a name refers, and its column."""
    if isinstance(tree, ast.Name):
        source = sources[tree.id]
        return source, source.unbiased(source.only_measure())
    assert isinstance(tree, ast.Attribute)
    assert isinstance(tree.value, ast.Name)
    source = sources[tree.value.id]
    return source, _spelled(tree.attr, source.facts["columns"])


def _columns(tree: ast.expr, sources: Mapping[str, Source]) -> Iterator[tuple[Source, str]]:
    """Yield each column that a tree names, with its result."""
    if isinstance(tree, (ast.Name, ast.Attribute)):
        yield _column_of(tree, sources)
        return
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            yield from _columns(node, sources)


def _uncut(tree: ast.expr, sources: Mapping[str, Source]) -> list[str]:
    """Return notes on quotients that the release clips to possible values, and that the expression uses unclipped."""
    notes: dict[str, None] = {}
    for source, column in _columns(tree, sources):
        form, ends = source.form(column), limits(source.measures[source.checked_column(column)])
        if isinstance(form, Quotient) and ends is not None and _beyond(form.values, *ends).any():
            cut = f"cut to what is possible, from {ends[0]:g} to {ends[1]:g}"
            notes[f"{source.name}.{column} is used before it was {cut}"] = None
    return list(notes)


def _beyond(values: NDArray[np.float64], least: float, most: float) -> Mask:
    """Return which values lie beyond their limits."""
    slack = SLACK * max(1.0, abs(least), abs(most) if np.isfinite(most) else 0.0)
    return np.asarray((values < least - slack) | (values > most + slack))
