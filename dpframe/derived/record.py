"""The frame of what was computed of releases, and its record: where it comes from, and that it cost nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._version import VERSION
from dpframe.derived.linear import Form, Linear, ends, half_widths
from dpframe.derived.traced import Source
from dpframe.display.pages import at_least
from dpframe.display.statements import warned_lines
from dpframe.errors import InvalidArgument, listed
from dpframe.frames import build, foreign, prints
from dpframe.frames.changes import end_taken, is_whole
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import TABLE
from dpframe.queries.query import ERROR

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]

LOW, HIGH, COVERS = "_low", "_high", "covers"
WORDS = {  # what a verb makes of a column
    "total": "total of {}",
    "share": "share of {}",
    "cumulative": "running total of {}",
    "rolling": "moving average of {}",
    "difference": "difference of {}",
    "change": "change of {} in percent",
}

ADDING = ("total", "cumulative", "rolling")  # sums and means of numbers, which are too low where these are
MOVED = "The size and direction of the effect on this result are unknown, and no margin of error covers it"


def columns_of(forms: Mapping[str, Form], confidence: float) -> dict[str, Floats]:
    """The columns of each form: its values, and the half-width of their intervals or, if uneven, their ends."""
    columns: dict[str, Floats] = {}
    if name := end_taken(list(forms)):  # of a file that was written before
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
    """The derived frame, with its record.

    Parameters
    ----------
    like : Source
        The result whose labels and library it has.
    labels : list of str
        Its columns that name the rows.
    places : array
        The row of `like` that has the labels of each row.
    columns : dict of arrays
        The numbers.
    facts : dict
        The facts of `facts_of`.
    covers : str
        What the intervals cover.
    further : tuple, optional
        A column of labels more, after the others: its name and, for each of these, as many rows one after the other.
    texts : dict, optional
        Columns of one text, at the end.
    measures : dict, optional
        The facts on columns of numbers that have other ends than their names say.
    covered : bool
        Whether a column says what intervals cover.
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
    """The facts of a record on what was done, and to which releases; `used` are the statistics of each, if not all."""
    facts = [source.facts for source in sources]
    inherited = [line for source in sources for line in _inherited(verb, source, len(sources), used)]
    inherited += [note for one in facts for note in one["notes"]]  # come after what bounds did
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


def _inherited(verb: str, source: Source, sources: int, used: Mapping[str, Collection[str]] | None) -> list[str]:
    """Lines on what clipping and weights did to the statistics that are used of a release.

    Numbers that add up are as wrong, others in unknown ways.
    """
    lines = warned_lines(source.facts, None if used is None else used[source.name])
    if verb in ADDING:
        return lines
    where = f"in {source.name}" if sources > 1 else "in the release"
    return [f"{where}, {line}. {MOVED}" for line in lines]


def shown(frame: Any, facts: Facts) -> tuple[Any, dict[str, Any]]:
    """The frame and its record as charts and tables read them: every number with an error, and without a mark."""
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
    words["measures"] = {name: {**one, "words": _words(name, one, facts)} for name, one in facts["measures"].items()}
    return plain, words


def _protections(facts: Facts) -> dict[str, str]:
    """Words on what each release protects, where that is not the same; also a short form, where its noun is not."""
    units = {one["name"]: PrivacyUnit.of_facts(one["unit"]) for one in facts["of"]}
    names: dict[str, list[str]] = {}
    for name, unit in units.items():
        names.setdefault(unit.one, []).append(name)
    full = "; ".join(f"{unit} (in {name})" for name, unit in units.items())
    each = listed([f"each {noun} in {listed(of)}" for noun, of in names.items()])
    return {
        **({"protects": full} if len({*units.values()}) > 1 else {}),
        **({"each": each} if len(names) > 1 else {}),
    }


def _words(name: str, measure: Facts, facts: Facts) -> str:
    """The name of a column of numbers for readers: what was done to it, or the expression."""
    if facts["verb"] in WORDS:
        return WORDS[facts["verb"]].format(name)
    return str(measure.get("words", facts["expression"]))


def _listed(facts: Facts) -> str:
    """The different releases that it was computed from, as text; the periods of a stream are one, of one cost."""
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
    """The release that an origin is; of a record without its random bytes the hash of its numbers."""
    if "release" not in origin:
        return (origin["sha256"],)
    return (origin["release"], origin.get("part"), str(origin.get("period")))


def _origin(source: Source) -> dict[str, Any]:
    """A release, as the record names it."""
    facts = source.facts
    known = {name: facts[name] for name in ("release", "part", "period", "ledger") if name in facts}
    kept = {name: facts[name] for name in ("label", "sha256", "unit", "cost")}
    if "shown" in source.record:  # what was renamed, and which rows were left out
        known["shown"] = source.record["shown"]["steps"]
    return {"name": source.name, **kept, **known}


def measure_of(facts: Facts) -> dict[str, Any]:
    """The facts on a column of numbers: what was done is said once, for all of them."""
    return {"verb": facts["verb"], "column": None, "statistics": [], "one_total": False, "denoise": None}


def _is_value(name: str, columns: Mapping[str, Floats]) -> bool:
    """Tell whether a column is one of values, and not of an error or an end."""
    ending = next((end for end in (ERROR, LOW, HIGH) if name.endswith(end)), "")
    return not ending or name.removesuffix(ending) not in columns


def _cells(
    like: Source, labels: Sequence[str], places: NDArray[np.int64]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]] | None]:
    """The axes of the rows: those of the result that they are of; one of combinations where no others fit."""
    facts, whole = like.facts, np.array_equal(places, np.arange(like.rows))
    axes = [{name: fact for name, fact in axis.items() if name != "released"} for axis in facts["cells"]]
    if whole and set(labels) == set(like.labels) and is_whole(facts):
        return axes, facts.get("levels")
    kept = [axis for axis in axes if {*_labels(axis)} <= {*labels}]
    sizes = [axis["size"] for axis in kept]
    if len(kept) == 1 and sizes == [len(places)]:
        return kept, None
    if "levels" not in facts and math.prod(sizes) == len(places) and {n for a in kept for n in _labels(a)} == {*labels}:
        return kept, None
    if len(kept) == 1 and len(places) and "levels" not in facts:
        return [_cut(kept[0], len(places))], None
    if not labels:
        return [], None
    return [{"columns": list(labels), "size": len(places), "keys": ["key"] * len(labels)}], None


def _cut(axis: Mapping[str, Any], size: int) -> dict[str, Any]:
    """An axis of which some keys are left."""
    return {**axis, "size": size}


def _labels(axis: Mapping[str, Any]) -> list[str]:
    endings = foreign.ENDS if "bins" in axis else ("",)
    return [name + end for name in axis["columns"] for end in endings]


def _rows(frame: Any, labels: list[str], numbers: list[str], levels: Any) -> dict[str, Any] | None:
    """The print of the rows by their labels."""
    found = prints.print_of(frame, labels, numbers, prints.layout_of(levels))
    if found is None:
        return None
    in_order = bool(np.all(np.diff(found.places) > 0))
    order = None if in_order else " ".join(map(str, found.places.tolist()))
    return {"labels": labels, "sha256": found.sha256, "order": order}
