"""Frames of derived results and their records, which name the releases behind them and state that they cost nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._version import VERSION
from dpframe.derived.linear import Form, Linear, ends, half_widths
from dpframe.derived.traced import Source
from dpframe.display.pages import at_least
from dpframe.display.statements import warned_lines
from dpframe.display.subjects import across, protected
from dpframe.errors import InvalidArgument, listed
from dpframe.frames import build, foreign, prints
from dpframe.frames.changes import end_taken, is_whole, view_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import TABLE
from dpframe.queries.date_grid import STEPS
from dpframe.queries.query import ERROR

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]

LOW, HIGH, COVERS = "_low", "_high", "covers"
WORDS = {  # by verb: how a column is described
    "total": "total of {}",
    "share": "share of {}",
    "cumulative": "running total of {}",
    "rolling": "moving average of {}",
    "difference": "difference of {}",
    "change": "change of {} in percent",
}
OVER = {"rolling": " over {}", "difference": " from {} before", "change": " over {}"}  # of several steps
TOGETHER = "{} of all groups together"  # a total of means, proportions or ratios, which are pooled rather than added

ADDING = ("total", "cumulative", "rolling")  # sums and means, which inherit the effect of clipping on their numbers
MOVED = "The size and direction of the effect on this result are unknown, and no margin of error covers it"


def columns_of(forms: Mapping[str, Form], confidence: float) -> dict[str, Floats]:
    """Return the columns of each form: its values, and the half-widths of its intervals or, if uneven, their ends."""
    columns: dict[str, Floats] = {}
    if name := end_taken(list(forms)):  # possible in a file from an older version
        raise InvalidArgument(f"the result must have no statistic {name!r}, the end of an interval. Name it otherwise.")
    for name, form in forms.items():
        columns[name] = form.values
        if isinstance(form, Linear):
            columns[name + ERROR] = half_widths(form, confidence)
        else:
            columns[name + LOW], columns[name + HIGH] = ends(form, confidence)
    return columns


def frame_of(
    like: Source,
    labels: Sequence[str],
    places: NDArray[np.int64],
    columns: Mapping[str, Floats],
    facts: Facts,
    covers: str = TABLE,
    *,
    further: tuple[str, Sequence[str]] | None = None,
    texts: Mapping[str, str] | None = None,
    measures: Mapping[str, Any] | None = None,
    covered: bool = True,
) -> Any:
    """Return the derived frame, with its record.

    Parameters
    ----------
    like : Source
        The result that gives the labels and the library.
    labels : list of str
        The columns that name the rows.
    places : array
        The row of `like` with the labels of each row.
    columns : dict of arrays
        The columns of numbers.
    facts : dict
        The facts from `facts_of`.
    covers : str
        "table" if the intervals cover only the noise, "population" if they cover sampling error too.
    further : tuple, optional
        One more column of labels, after the others: its name, and its values, which repeat down the rows.
    texts : dict, optional
        Columns with the same text in each row, at the end.
    measures : dict, optional
        The facts on the columns of numbers, if they are not those of `measure_of`.
    covered : bool
        Whether the frame has a column that says what its intervals cover.
    """
    said = {**({COVERS: covers} if covered else {}), **(texts or {})}
    more = {} if further is None else {further[0]: [*further[1]] * (len(places) // max(len(further[1]), 1))}
    own = [*labels, *more, *columns, *said]
    if clash := next((name for name in own if own.count(name) > 1), None):
        raise InvalidArgument(
            f"the result must not have a column {clash!r}, since the answer has one of that name. "
            "Name it otherwise: result.dp.relabel(columns={...})."
        )
    made = {**more, **columns, **{name: [text] * len(places) for name, text in said.items()}}
    frame = build.beside(like.frame, labels, places, made)
    cells, levels = _cells(like, labels, places if further is None else places[:: len(further[1])])
    if further is not None:
        cells = [*cells, {"columns": [further[0]], "size": len(further[1]), "keys": ["text"]}]
    labels = [*labels, *more]
    record = {
        **facts,
        "covers": covers,
        "cells": cells,
        **({"levels": levels} if levels else {}),
        "measures": measures or {name: measure_of(facts) for name in columns if _is_value(name, columns)},
        "columns": list(columns),
        "texts": list(said),
        "sha256": build.fingerprint(frame, list(columns)),
    }
    return build.attach(frame, {**record, "rows": _rows(frame, [*labels, *said], list(columns), levels)})


def facts_of(
    kind: str,
    verb: str,
    words: str,
    sources: Sequence[Source],
    confidence: float,
    notes: Sequence[str] = (),
    used: Mapping[str, Collection[str]] | None = None,
) -> dict[str, Any]:
    """Return the facts of a record on a computation and its releases; `used` has the statistics of each, if not all."""
    facts = [source.facts for source in sources]
    inherited = [line for source in sources for line in _inherited(verb, source, len(sources), used)]
    inherited += [note for one in facts for note in _notes(one, kind)]  # these follow the lines on clipping
    every = list(dict.fromkeys([*notes, *inherited]))
    warnings = [one["warning"] for one in facts if "warning" in one]
    return {
        "schema": foreign.DERIVED,
        "dpframe": VERSION,
        "kind": kind,
        "label": None,
        "verb": verb,
        "expression": words,
        "of": [_origin(source) for source in sources],
        "unit": facts[0]["unit"],
        "cost": {"epsilon": 0.0, "delta": 0.0, "accounting": facts[0]["cost"]["accounting"]},
        "statistics": [],
        "notes": every,
        "confidence": confidence,
        **({"warning": warnings[0]} if warnings else {}),
    }


def _notes(facts: Facts, kind: str) -> Sequence[str]:
    """Return the notes of a release, without those on rows that an expression or a comparison leaves out by design."""
    view, notes = view_of(facts), facts["notes"]
    if view is None or kind == "changed":
        return list(notes)
    return [note for note in notes if note not in view.notes]


def _inherited(verb: str, source: Source, sources: int, used: Mapping[str, Collection[str]] | None) -> list[str]:
    """Return lines on the effect of clipping and weights on the statistics of a release that are used.

    Sums and means inherit the effect as it is. For other results, each line adds that the effect is unknown.
    """
    lines = warned_lines(source.facts, None if used is None else used[source.name])
    if verb in ADDING:
        return lines
    where = f"in {source.name}" if sources > 1 else "in the release"
    return [f"{where}, {line}. {MOVED}" for line in lines]


def shown(frame: Any, facts: Facts) -> tuple[Any, dict[str, Any]]:
    """Return the frame and its record as charts and tables read them: each number has an error; texts are left out."""
    columns = {name: build.numbers(frame, name) for name in facts["columns"]}
    if facts["verb"] == "chi2":
        return frame, {**facts, "said": f"computed from {_listed(facts)}, at no cost"}
    for name, said in facts["measures"].items():
        low, high = said.get("ends", (name + LOW, name + HIGH))
        if name + ERROR not in columns:
            columns[name + LOW], columns[name + HIGH] = columns[low], columns[high]
            value = columns[name]
            farther = np.maximum(value - columns[low], columns[high] - value)
            columns[name + ERROR] = np.where(np.isnan(value), np.inf, farther)
    other = {"p_value", *(end for said in facts["measures"].values() for end in said.get("ends", ()))}
    columns = {name: values for name, values in columns.items() if name not in other}
    labels = [name for name in foreign.labels_of(facts) if name not in facts["texts"]]
    plain = build.beside(frame, labels, np.arange(len(frame)), columns)
    words = {**facts, "columns": list(columns), "texts": [], "said": f"computed from {_listed(facts)}, at no cost"}
    words |= _protections(facts)
    words["measures"] = {name: {**one, **_described(name, one, facts)} for name, one in facts["measures"].items()}
    return plain, words


def _described(name: str, measure: Facts, facts: Facts) -> dict[str, Any]:
    """Return the description of a column of numbers by its name, and by the name that it had when it was computed."""
    before = _computed(name, measure, facts)
    leads = before[1] if across(facts) else measure  # in a title
    stated = _words(*before, facts)
    return {"words": _words(name, measure, facts), "stated": stated, "as_written": _is_as_written(leads, facts)}


def _computed(name: str, measure: Facts, facts: Facts) -> tuple[str, Facts]:
    """Return the name and the facts that a column of numbers had when it was computed, before any new name."""
    view = view_of(facts)
    of = name if view is None else view.measures[name][0]
    return of, measure if of == name else {fact: said for fact, said in measure.items() if fact != "words"}


def _protections(facts: Facts) -> dict[str, str]:
    """Return text on what each release protects, if this differs, and a short form of it, if the nouns differ."""
    units = {one["name"]: PrivacyUnit.of_facts(one["unit"]) for one in facts["of"]}
    names: dict[str, list[str]] = {}
    for name, unit in units.items():
        names.setdefault(unit.one, []).append(name)
    shown = {one["name"]: protected(one) for one in facts["of"]}
    full = "; ".join(f"{words} (in {name})" for name, words in shown.items())
    each = listed([f"each {noun} in {listed(of)}" for noun, of in names.items()])
    return {
        **({"protects": full} if len({*shown.values()}) > 1 else {}),
        **({"each": each} if len(names) > 1 else {}),
    }


def _words(name: str, measure: Facts, facts: Facts) -> str:
    """Return the description of a column of numbers: what was done to it, or the expression."""
    if _is_pooled(measure, facts):
        return TOGETHER.format(name)
    if facts["verb"] in WORDS:
        return WORDS[facts["verb"]].format(name) + _over(facts)
    return str(measure.get("words", facts["expression"]))


def _over(facts: Facts) -> str:
    """Return the number of steps along the ordered key as text, if it is more than 1."""
    verb, found = facts["verb"], re.fullmatch(r"[a-z]+\((\d{1,9})\)", str(facts["expression"]))
    if verb not in OVER or found is None:
        return ""
    n, step = int(found[1]), facts.get("step", 1)
    ordered = [axis.get("every") for axis in facts["cells"] if "every" in axis or "bins" in axis]
    steps = STEPS.get(ordered[0], "places") if len(ordered) == 1 else "places"
    if steps != "places" and verb != "rolling":
        n *= step
    elif step > 1:
        steps = "places"  # of the keys that a filter left
    if n == 1:
        return ""
    return OVER[verb].format(f"{n:,} {steps}")


def _is_as_written(measure: Facts, facts: Facts) -> bool:
    """Return whether a description begins with a key, a name or an expression, which a capital would change."""
    if facts["verb"] in WORDS:
        return _is_pooled(measure, facts)
    return facts["verb"] == "compare" or "words" not in measure


def _is_pooled(measure: Facts, facts: Facts) -> bool:
    return bool(facts["verb"] == "total" and measure["verb"] != "total")


def _listed(facts: Facts) -> str:
    """Return the different releases behind a result as text; the periods of a stream are one release with one cost."""
    different = {_identity(one): one for one in facts["of"]}
    releases = {identity[:2]: one for identity, one in different.items()}  # without the period
    count, periods = len(releases), len(different)
    costs = {(one["cost"]["epsilon"], one["cost"]["delta"]) for one in releases.values()}
    what, each = (f"{count} releases", ", each") if count > 1 else ("1 release", "")
    if count == 1 < periods:
        what, each = f"{periods} periods of one release", " in all"
    (epsilon, delta), *others = costs
    but = f", delta {at_least(delta, 3):.3g}" if delta else ""
    price = "" if others else f" (epsilon {at_least(epsilon, 4):.4g}{but}{each})"
    return f"{what}{price}"


def _identity(origin: Facts) -> tuple[Any, ...]:
    """Return the identity of a release of origin; the hash of its numbers if the record has no random bytes."""
    if "release" not in origin:
        return (origin["sha256"],)
    return (origin["release"], origin.get("part"), str(origin.get("period")))


def _origin(source: Source) -> dict[str, Any]:
    """Return a release of origin as the record names it."""
    facts = source.facts
    known = {name: facts[name] for name in ("release", "part", "period", "ledger") if name in facts}
    kept = {name: facts[name] for name in ("label", "sha256", "unit", "cost")}
    if "shown" in source.record:  # what was renamed, and which rows were left out
        known["shown"] = source.record["shown"]["steps"]
    return {"name": source.name, **kept, **known}


def measure_of(facts: Facts) -> dict[str, Any]:
    """Return the facts on a column of numbers; all columns of one computation have the same."""
    return {"verb": facts["verb"], "column": None, "statistics": [], "one_total": False, "denoise": None}


def _is_value(name: str, columns: Mapping[str, Floats]) -> bool:
    """Return whether a column holds values, rather than errors or ends of intervals."""
    ending = next((end for end in (ERROR, LOW, HIGH) if name.endswith(end)), "")
    return not ending or name.removesuffix(ending) not in columns


def _cells(
    like: Source, labels: Sequence[str], places: NDArray[np.int64]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]] | None]:
    """Return the axes of the rows and their levels.

    The axes are those of `like` with the keys that are left, if the rows are all combinations of these keys; otherwise
    one axis of combinations.
    """
    facts, whole = like.facts, np.array_equal(places, np.arange(like.rows))
    axes = [{name: fact for name, fact in axis.items() if name != "released"} for axis in facts["cells"]]
    if whole and set(labels) == set(like.labels) and is_whole(facts):
        return axes, facts.get("levels")
    if not labels:
        return [], None
    kept = [number for number, axis in enumerate(axes) if {*_labels(axis)} <= {*labels}]
    if {label for number in kept for label in _labels(axes[number])} == {*labels}:
        released = [facts["cells"][number] for number in kept]
        keys = [like.keys[axis.get("released", axis["columns"])[0]][places] for axis in released]
        sizes = [np.unique(codes).size for codes in keys]
        if math.prod(sizes) == len(places) and all((codes >= 0).all() for codes in keys):
            return [{**axes[number], "size": size} for number, size in zip(kept, sizes, strict=True)], None
    return [{"columns": list(labels), "size": len(places), "keys": ["key"] * len(labels)}], None


def _labels(axis: Mapping[str, Any]) -> list[str]:
    endings = foreign.ENDS if "bins" in axis else ("",)
    return [name + end for name in axis["columns"] for end in endings]


def _rows(frame: Any, labels: list[str], numbers: list[str], levels: Any) -> dict[str, Any] | None:
    """Return the fingerprint of the rows by their labels; None if they have none."""
    found = prints.print_of(frame, labels, numbers, prints.layout_of(levels))
    if found is None:
        return None
    in_order = bool(np.all(np.diff(found.places) > 0))
    order = None if in_order else " ".join(map(str, found.places.tolist()))
    return {"labels": labels, "sha256": found.sha256, "order": order}
