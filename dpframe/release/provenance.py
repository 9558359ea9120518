"""The record that is attached to a result: its question, protection and cost. It holds nothing private."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._version import VERSION
from dpframe.display import rounding
from dpframe.display.statements import cell_rmse, estimated_rmse
from dpframe.errors import InvalidArgument, how_many, shown
from dpframe.frames import build, changes, foreign, prints
from dpframe.frames.prints import Places
from dpframe.ledger.canonical import promised
from dpframe.noise import stamp
from dpframe.planning.call import NO_WORDS, Words
from dpframe.planning.plan import Plan
from dpframe.queries.contributions import grouping_of
from dpframe.queries.query import ERROR, chooses, suggestion_of
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import Choosing, answering_and_squares, told
from dpframe.queries.total import over

SCHEMA = "dpframe.provenance/2"  # records of dpframe 0.1 have /1, and can be read too
KINDS = {  # the kinds of label columns that edges of each kind of bins may have
    "number": ("number",),
    "date": ("moment",),
    "datetime": ("moment", "instant"),
    "duration": ("duration",),
}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A plan, with all that follows from it alone, computed once. It holds no row and no words of a call."""

    plan: Plan
    labels: Mapping[str, Any]  # the columns that name the cells
    question: str  # as text, for logs and ledgers
    is_table: bool  # whether the answer has a number for each declared cell

    @cached_property
    def record(self) -> bytes:
        """The pickled record of the plan, without facts of a call, of the released frame and of test noise."""
        return pickle.dumps(facts_of_plan(self.plan))

    @cached_property
    def ranked(self) -> prints.Ranked | None:
        """The print of the labels of a table with all declared rows."""
        columns = self.labels or {"": np.zeros(self.plan.query.shown.cells)}
        frame = build.frame_of(dict(columns), self.plan.question.library)
        return prints.ranked_of(frame, list(self.labels), prints.layout_of(self.plan.query.shown.level_facts))

    @cached_property
    def promise(self) -> str:
        """The promise of a record without words of the caller, for noise from the operating system's bits."""
        return promised(of_call(self, NO_WORDS, stamp=None))


def record(
    prepared: Prepared,
    frame: Any,
    words: Words,
    *,
    denoised: Mapping[str, Any],
    receipt: Mapping[str, Any] | None = None,
    numbers: Mapping[str, Any] | None = None,
    drawn: Mapping[str, Any] | None = None,
    totals: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the provenance of a released frame as plain JSON values (``docs/reference/provenance.md``).

    `numbers` are its columns of numbers as arrays, if the caller has them. `drawn` are facts as in `results.built`, and
    `totals` are the noisy totals behind its statistics.
    """
    plan = prepared.plan
    labels = () if not prepared.is_table and chooses(plan.query) else plan.query.shown.names
    columns = [name for name in frame.columns if name not in labels]
    facts = of_call(prepared, words, stamp=stamp())
    for name, statistic in facts["measures"].items():
        statistic["denoise"] = denoised.get(name)
        statistic.update((totals or {}).get(name, {}))
    if plan.query.keys.unknown:
        facts["cells"][0]["size"] = len(frame)
    facts |= {"columns": columns, "sha256": build.fingerprint(numbers or frame, columns)}
    facts["rows"] = _rows(prepared, frame, columns, numbers or frame)
    if receipt is not None:
        facts["ledger"] = dict(receipt)
    return facts | dict(drawn or {})


def of_call(prepared: Prepared, words: Words, *, stamp: str | None) -> dict[str, Any]:
    """Return the record of a call without the facts of the released frame, as a copy that may be changed."""
    facts: dict[str, Any] = pickle.loads(prepared.record)
    facts |= words.facts
    if stamp is not None:
        facts["warning"] = stamp
    return facts


def facts_of_plan(plan: Plan) -> dict[str, Any]:
    """Return the record of a plan, without facts of a call, of the released frame and of test noise."""
    question = plan.question
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": VERSION,
        "label": None,
        "verb": plan.query.verb,
        "unit": plan.unit.facts(),
        "cost": {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta, "accounting": plan.accounting.name},
        "cells": [axis.facts() for axis in plan.query.shown.axes],
        "measures": {name: said for name, each in plan.query.statistics if (said := _measure(plan, each)) is not None},
        "statistics": [noise_facts(part) for part in plan.parts],
        "notes": list(plan.notes),
        "confidence": CONFIDENCE,
        "keep_noisy": question.denoising.keep_noisy,
    }
    for choice in plan.query.choices:
        if isinstance(choice, Choosing) and (said := choice.choice_facts()) is not None:
            facts["top"] = said
    if (asked := suggestion_of(plan.query)) is not None:
        facts |= {"suggested": asked.suggestion_facts(), "cells": [asked.candidate_facts()]}
    if plan.query.keys.counted == "units":
        grouping = grouping_of(plan.query.keys)
        facts["groups"] = {"columns": list(grouping.columns), "size": grouping.most}
    if (levels := plan.query.shown.level_facts) is not None:
        facts["levels"] = levels
    if question.population:
        facts["population"] = True
    if plan.accuracy is not None:
        facts["within"] = plan.accuracy.facts(plan.columns, plan.size)
    if plan.choice is not None:
        facts["chosen"] = plan.choice.facts
    return facts


def current(frame: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record for a reader, with ``"altered": True`` if the rows are no longer those that it covers."""
    return {**copied(facts), "altered": prints.places_of(frame, changes.viewed(facts)) is None}


def copied(fact: Any) -> Any:
    """Copy a fact of a record, so that a reader cannot change the record, which frames share."""
    if isinstance(fact, Mapping):
        return {name: copied(each) for name, each in fact.items()}
    if isinstance(fact, list):
        return list(map(copied, fact)) if any(isinstance(each, (list, Mapping)) for each in fact) else list(fact)
    return fact


def checked(frame: Any, facts: Mapping[str, Any]) -> Places:
    """Return the place of each released row in the frame, in the order in which rows were declared.

    A frame that kept its record, but no longer holds the recorded columns and rows, is refused.
    """
    facts = changes.viewed(facts)
    _check_columns(frame, facts)
    rows = foreign.rows_of(facts)
    if not foreign.is_reports(facts) and len(frame) != rows:  # the number of reports is public, but is not recorded
        raise InvalidArgument(
            f"the frame must have the {how_many(rows, 'row')} of the release, not {len(frame):,}. "
            "Take rows of the released frame with .dp.filter(...) or .dp.head(n), which keep its record."
        )
    places = prints.places_of(frame, facts)
    if places is None:
        raise InvalidArgument(
            "the frame must hold the numbers and labels that were released, but some were changed. "
            "Change the released frame with .dp.relabel(...), .dp.round() or .dp.sort(...), which keep its record."
        )
    return places


def checked_numbers(frame: Any, facts: Mapping[str, Any]) -> Places:
    """Do the same as `checked`, and refuse a frame without a number for each cell, such as a selection."""
    if foreign.is_reports(facts):
        raise InvalidArgument(
            "the frame must hold released numbers, but reports are randomized values of single people. "
            "Ask dpf.local.estimate(reports)."
        )
    if not facts["measures"]:
        raise InvalidArgument(
            "the frame must hold a number for every declared cell, but suggested bounds are candidates, the best "
            "first. Read them from the frame."
            if "suggested" in facts
            else "the frame must hold a number for every declared cell, but a top-k is some of them, in order. "
            "Read it from the frame."
            if "top" in facts
            else "the frame must hold released numbers, but a selection is one of the declared options alone. "
            "Read it from the frame, or ask for a histogram."
        )
    places = checked(frame, facts)
    _check_kinds(frame, facts)
    return places


def counted(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the record in the form of a table: of the rows that a changed frame shows, and of the counts of a top-k.

    For a changed frame, ``whole`` holds the record of its release, to which the checks apply.
    """
    if changes.view_of(facts) is not None:
        return facts
    whole = changes.counted({name: fact for name, fact in facts.items() if name not in ("shown", "view")})
    return {**changes.viewed(facts), "whole": whole} if "shown" in facts else changes.counted(facts)


def _check_kinds(frame: Any, facts: Mapping[str, Any]) -> None:
    """Refuse columns that are not of the kind in their record: anybody may have written the file."""
    ends = [
        (f"{axis['columns'][0]}{end}", axis["bins"])
        for axis in facts["cells"]
        if "bins" in axis
        for end in foreign.ENDS
    ]
    labels = [(name, prints.labels_of(frame, name), KINDS[kind]) for name, kind in ends]
    wrong = [name for name, label, kinds in labels if label is None or label.kind not in kinds or label.missing.any()]
    keys = foreign.labels_of(facts)  # the record of a choice lists these among its columns
    wrong += [name for name in facts["columns"] if name not in keys and prints.numbers_of(frame, name) is None]
    if wrong:
        raise InvalidArgument(
            f"the frame must hold what its record says, but {shown(wrong[0])} is not. Ask its author for another."
        )


def _check_columns(frame: Any, facts: Mapping[str, Any]) -> None:
    """Refuse a frame that lost columns, or that has columns of no release."""
    columns, labels = list(frame.columns), foreign.labels_of(facts)
    needed = [*labels, *(name for name in facts["columns"] if name not in labels)]
    gone = [name for name in needed if columns.count(name) != 1]
    if gone:
        raise InvalidArgument(
            f"the frame must have the columns that were released, but {gone[0]!r} is not there or not alone. "
            "Ask the released frame: .dp.relabel(columns=...), .dp.select(...) and .dp.wide(...) keep its record."
        )
    other = [name for name in columns if name not in needed]
    if other:
        raise InvalidArgument(
            f"the frame must hold released columns alone, but {shown(other[0])} is covered by no release. "
            "Leave it out, or mark the frame with dpf.public if everybody may know it."
        )


def _rows(prepared: Prepared, frame: Any, columns: Sequence[str], values: Any) -> dict[str, Any] | None:
    """Return the print of the released rows by their labels: their hash in canonical order, and their places."""
    plan, labels = prepared.plan, list(prepared.plan.query.shown.names)
    if not prepared.is_table and (asked := suggestion_of(plan.query)) is not None:
        labels = asked.candidate_facts()["columns"]
    numbers = [column for column in columns if column not in labels]
    if prepared.is_table:
        ranked = prepared.ranked
        rows_print = None if ranked is None else prints.with_numbers(ranked, values, numbers)
    else:
        rows_print = prints.print_of(frame, labels, numbers, prints.layout_of(plan.query.shown.level_facts))
    if rows_print is None:
        return None
    in_order = bool(np.all(np.diff(rows_print.places) > 0))
    # as text, which a deep copy by pandas does not duplicate
    order = None if in_order else prints.order_text(rows_print.places)
    return {"labels": labels, "sha256": rows_print.sha256, "order": order}


def errors(
    frame: Any, facts: Mapping[str, Any], halves: Mapping[str, NDArray[np.float64]] | None = None
) -> list[dict[str, Any]]:
    """Return the interval of the noise and the known error of each released column, for each level of subtotals.

    The frame is in the order of the declared cells. `halves` are half-widths of other intervals, by column; errors of
    sums of bins do not follow from these, and are left out.
    """
    levels = facts.get("levels") or [{"columns": _key_columns(facts), "rows": math.prod(foreign.shape(facts))}]
    rows, start = [], 0
    for index, level in enumerate(levels):
        mine = slice(start, start + level["rows"])
        start += level["rows"]
        for name, statistic in facts["measures"].items():
            expected = dict(enumerate(estimated_rmse(statistic)))
            noise = facts["statistics"][statistic["statistics"][index]]
            half = build.numbers(frame, name + ERROR) if halves is None else halves[name]
            rows.append(
                {
                    "column": name,
                    "by": ", ".join(level["columns"]),
                    "interval": float(half[mine].max()) if half[mine].size else None,  # where no group was found
                    "noisy_rmse": _deviation(statistic, noise, index),
                    "denoised_rmse": expected.get(index),
                }
            )
            if "sums" in statistic and changes.is_whole(facts) and halves is None:
                rows[-1:] = _of_sums(rows[-1], statistic["sums"], math.sqrt(noise["variance"]))
    return rows


def _deviation(statistic: Mapping[str, Any], noise: Mapping[str, Any], level: int) -> float | None:
    """Return the deviation of the noise of a cell at a level; None if the statistic is no single Total and no table."""
    if "deviations" in statistic:
        return float(statistic["deviations"][level]) * math.sqrt(noise["variance"])
    return math.sqrt(noise["variance"]) if foreign.is_one_total(statistic) else None


def _of_sums(bins: Mapping[str, Any], sums: Mapping[str, float], deviation: float) -> list[dict[str, Any]]:
    """Return the largest errors of single bins, of sums of the first bins, and of sums of any neighboring bins."""
    widest = bins["interval"]
    return [
        {
            **bins,
            "by": bins["by"] + words,
            "interval": None if widest is None else widest * sums[kind] / sums["bin"],
            "noisy_rmse": deviation * sums[kind],
        }
        for kind, words in (("bin", ""), ("first", ": sums of the first bins"), ("any", ": sums of neighboring bins"))
    ]


def cell_errors(facts: Mapping[str, Any], places: Places) -> dict[str, NDArray[np.float64]]:
    """Return the expected errors of denoised values by column, if known, in the order of the frame's rows."""
    view = changes.view_of(facts)
    by_cell = {
        name: cell_rmse(statistic, len(places) if view is None else view.released)
        for name, statistic in facts["measures"].items()
    }
    known = {name: np.empty(len(places)) for name, errors in by_cell.items() if errors is not None}
    for name, errors in known.items():
        released: Any = by_cell[name]
        errors[places] = released if view is None else released[view.cells[view.measures[name][1]]]
    return known


def errors_of_cells(frame: Any, facts: Mapping[str, Any], places: Places) -> dict[str, list[Any]]:
    """Return the errors of each row of the frame as columns, since a result may have no row."""
    known = cell_errors(facts, places)
    columns: dict[str, list[Any]] = {}
    facts = rounding.placed(facts, places)
    for name, statistic in facts["measures"].items():
        noise, expected = _noise_of_rows(facts, statistic, places), known.get(name)
        columns[f"{name}_interval"] = build.numbers(frame, name + ERROR).tolist()
        ends = rounding.of_frame(frame, facts, name)
        for end, values in ((rounding.LOW, ends.low), (rounding.HIGH, ends.high)):
            columns[name + end] = [None] * len(places) if ends.unplaced else values.tolist()
        columns[f"{name}_noisy_rmse"] = [None] * len(places) if noise is None else noise.tolist()
        columns[f"{name}_denoised_rmse"] = [None] * len(places) if expected is None else expected.tolist()
    rows, labels = build.rows(frame), foreign.labels_of(facts)
    if clash := next((label for label in labels if label in columns), None):
        raise InvalidArgument(
            f"the result must not have a column {clash!r} of keys, since the table of errors has one of that name. "
            "Name it otherwise: result.dp.relabel(columns={...})."
        )
    return {label: [row[label] for row in rows] for label in labels} | columns


def _noise_of_rows(
    facts: Mapping[str, Any], statistic: Mapping[str, Any], places: Places
) -> NDArray[np.float64] | None:
    """Return the standard deviation of the noise of each row; None if the statistic is no single Total and no table."""
    noises = [facts["statistics"][index] for index in statistic["statistics"]]
    if not foreign.is_one_total(statistic) and "deviations" not in statistic:
        return None
    sizes = [level["rows"] for level in facts.get("levels") or [{"rows": len(places)}]]
    each = statistic.get("sums", {}).get("bin", 1.0)  # the largest factor of a bin for range queries
    deviations = np.empty(len(places))
    spread = [each * (_deviation(statistic, noise, level) or 0.0) for level, noise in enumerate(noises)]
    deviations[places] = np.repeat(spread, sizes)
    return deviations


def _key_columns(facts: Mapping[str, Any]) -> list[str]:
    return [column for axis in facts["cells"] for column in axis["columns"]]


def _measure(plan: Plan, statistic: Statistic) -> dict[str, Any] | None:
    described = told(statistic)
    if described is None:
        return None
    indexes, squares = (
        [plan.query.totals.index(over(total, by)) for by in plan.query.shown.groupings for total in totals]
        for totals in answering_and_squares(statistic)
    )
    if squares:
        described = described | {"squares": squares}
    places = {"statistics": indexes * len(described.get("deviations", indexes[:1]))}  # several tables of one Total
    return described | places | ({} if statistic.denoisable else {"one_total": False})


def noise_facts(part: Any) -> dict[str, Any]:
    """Return the facts of a record on a Total and its noise."""
    noise = part.mechanism
    law = {"p": noise.p, "variance": noise.variance} if math.isfinite(noise.p) else {}  # a choice has neither of them
    return {
        "measures": part.total.describe(),
        "noise": noise.name,
        "scale": noise.scale,
        "grid": noise.grid,
        "sensitivity": noise.sensitivity,
        "share": part.share,
        **law,
        **noise.details,
    }
