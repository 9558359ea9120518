"""The words of a result's chart: title, subtitle, captions, axis titles, and the description for screen readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import pages
from dpframe.display.charts import Words
from dpframe.display.drawing import Panel
from dpframe.display.layout import Asked
from dpframe.display.rounding import english
from dpframe.display.statements import (
    DROWNED,
    check_lines,
    chosen_words,
    denoised_words,
    margin_words,
    one_of,
    promised,
    warned_lines_by_share,
)
from dpframe.display.subjects import across, heading, is_pairs, measure, stated, subject, titled
from dpframe.errors import capital, listed, no_markup, sentence
from dpframe.frames.changes import view_of
from dpframe.queries.sameness import agree

Facts = Mapping[str, Any]

BETWEEN = " · "  # separates the parts of the subtitle
AT_ZERO = "negative values shown as 0"  # a part of notes on adjusting
MOST_NAMED = 3  # numbers in a title
MOST_SAID = 12  # cells in the description for screen readers


def words(
    names: Sequence[str],
    facts: Facts,
    panels: Sequence[Panel],
    asked: Asked,
    left_out: Sequence[str] = (),
    marks: Sequence[str] = (),
) -> Words:
    """Return the title, the captions and the description for screen readers.

    `left_out` names what is not drawn, and is never cut for lack of room, nor is the key of the marks. `marks` explains
    which values are drawn differently.
    """
    key = _key(panels)
    title = asked.title if asked.title is not None else _title(names, facts)
    said = _said(title, facts, panels, left_out)
    if asked.notes is False:
        subtitle, captions, left_out, key, notes = "", [], (), [], []
    else:
        subtitle, captions = _subtitle(names, facts, panels), _captions(names, facts, panels, marks)
        notes = [asked.notes] if isinstance(asked.notes, str) else [] if asked.notes is True else [*asked.notes]
    if "warning" in facts:
        notes.append(facts["warning"])
    first = _sentences([*left_out, *key])
    sentences = tuple(words for words in _sentences(captions) if words not in first)
    return Words(title, tuple(notes), subtitle, said, sentences, first)


def _sentences(captions: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(sentence, dict.fromkeys(captions)))


def axis_title(names: Sequence[str], facts: Facts) -> str:
    """Return the title of the axis of values, which names what they measure."""
    if len(names) == 1:
        return no_markup(_part(names[0], facts))
    statistic = measure(names[0], facts)
    where = f" where {statistic['where']}" if "where" in statistic and "words" not in statistic else ""
    return no_markup(f"quantiles of {statistic['column']}{where}")


def _part(name: str, facts: Facts) -> str:
    """Return a column as an axis title names it; one that `wide` made from a key follows its statistic."""
    return f"{stated(name, facts)}, {name}" if across(facts) else stated(name, facts)


def are_quantiles_of_one(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two statistics are quantiles of the same column and rows."""
    return "q" in one and "q" in other and agree(one, other, "column") and agree(one, other, "where")


def _title(names: Sequence[str], facts: Facts) -> str:
    if facts["label"]:
        return titled(facts, "")
    if is_pairs(facts["cells"]):
        return capital(subject(", ".join(names), facts))
    parts = list(dict.fromkeys(stated(name, facts) for name in names))
    statistics = [measure(name, facts) for name in names]
    if len(names) > 1 and all(are_quantiles_of_one(statistics[0], one) for one in statistics):
        parts = [axis_title(names, facts)]
    if len(parts) > MOST_NAMED:
        parts = [f"{len(parts)} numbers"]
    if all(one["verb"] == "ecdf" for one in statistics):
        column = statistics[0]["column"]
        parts = [f"distribution function of {column}"]
        facts = {**facts, "cells": [axis for axis in facts["cells"] if axis["columns"] != [column]]}
    return heading(subject(listed(parts), facts), names[0], facts)


def _subtitle(names: Sequence[str], facts: Facts, panels: Sequence[Panel]) -> str:
    """Return the subtitle: the cost, the privacy unit, and the meaning of the intervals that are drawn."""
    epsilon, delta = promised(facts)
    but = f", δ = {pages.at_least(delta, 3):.3g}" if delta else ""
    errors = _errors({name: measure(name, facts) for name in names}, facts, panels)
    price = facts.get("said", f"ε = {pages.at_least(epsilon, 4):.4g}{but}")  # computed numbers have their own text
    return BETWEEN.join(filter(None, (price, protected(facts), errors)))


def protected(facts: Facts) -> str:
    """Return the privacy unit in a few words; the record has the contribution bounds and the kind of neighbors."""
    local = ", in the local model" if "model" in facts else ""
    each = facts.get("each") or f"each {one_of(facts)}"  # releases may have different units
    return f"{each} protected{local}"


def _key(panels: Sequence[Panel]) -> list[str]:
    """Return the meaning of marks that nothing else explains, so the text is never cut."""
    said: list[str] = []
    if any(panel.kind != "heatmap" and any(map(open_end, panel.cells)) for panel in panels):
        said.append("hatched, with arrows: intervals that have no end there, since the noise leaves the number open")
    if any(panel.banded and panel.kind != "heatmap" for panel in panels):
        said.append("orange bands: twice the expected error of each denoised value")
    return said


def _captions(names: Sequence[str], facts: Facts, panels: Sequence[Panel], marks: Sequence[str]) -> list[str]:
    """Return the captions below the picture; the most important come first, since the last may be cut."""
    measures = {name: measure(name, facts) for name in names}
    released = {name: one for name, one in measures.items() if name in facts["measures"]}  # not the noisy values
    cells = [cell for panel in panels for cell in panel.cells]
    view = view_of(facts)
    said = [*warned_lines_by_share(facts), *(view.notes if view else ())]
    said += [words for name in released if (words := chosen_words(name, facts)) is not None]
    if any(panel.kind == "heatmap" and any(map(open_end, panel.cells)) for panel in panels):
        said.append(f"of {sum(map(open_end, cells)):,} cells the noise leaves the number open")
    checks = check_lines(facts)  # these name bounds and the share of values beyond them
    drawn = denoised_words({**facts, "measures": released})
    said += [words for words in drawn if words.startswith(DROWNED)] + list(marks)
    said += [] if checks else [words for name in released for words in _clipped(measures[name])]
    if any(panel.kind == "bar" and panel.x is not None and not panel.x.is_even for panel in panels):
        said.append("bars differ in width: the height of each is the number in it")
    if any(panel.kind == "heatmap" and _is_banded(panel) for panel in panels):
        said.append("cells are drawn equal, though their bins differ in width")
    if any(_is_moved(cell) for panel in panels if panel.kind != "heatmap" for cell in panel.cells):
        said.append("intervals surround the unbiased values, which adjusting moved")
    has_zeros = any(cell["value"] == 0.0 and _middle(cell) < 0.0 for cell in cells)
    said += [_at_zero(words, len(released) > 1) for words in drawn if has_zeros or AT_ZERO not in words]
    return [*said, *facts["notes"], *checks]


def _at_zero(words: str, named: bool) -> str:
    """Return a note on adjusting, shortened where adjusting only raised numbers below 0; `named` keeps its names."""
    if AT_ZERO not in words:
        return words
    change, _, names = words.partition(": ")
    lowered = ", and the others lowered so that sums stay" if "lowered" in change else ""
    return f"numbers below 0 are shown as 0{lowered}{f': {names}' if named else ''}"


def _clipped(statistic: Mapping[str, Any]) -> list[str]:
    """Return the bounds to which values were clipped, as text."""
    said = []
    for bounds, column in (
        ("bounds", "column"),
        ("denominator_bounds", "denominator"),
        ("weight_bounds", "weight"),
    ):
        if bounds in statistic and "q" not in statistic:
            lower, upper = (english(bound, None) for bound in statistic[bounds])
            said.append(f"values of {statistic[column]} are clipped to [{lower}, {upper}]")
    return said


def open_end(cell: Mapping[str, Any]) -> bool:
    """Return whether a number has an interval without an end on some side."""
    return "low" in cell and (cell["low"] is None or cell["high"] is None)


def _middle(cell: Mapping[str, Any]) -> float:
    """Return the middle of an interval, or the value where the interval is open or unknown."""
    return float(cell["value"]) if "low" not in cell or open_end(cell) else (cell["low"] + cell["high"]) / 2


def _is_moved(cell: Mapping[str, Any]) -> bool:
    """Return whether a value lies away from the middle of its symmetric interval."""
    if open_end(cell) or not cell.get("symmetric", False):
        return False
    return bool(abs(_middle(cell) - cell["value"]) > 0.01 * (cell["high"] - cell["low"]))


def _is_banded(panel: Panel) -> bool:
    return any(side is not None and side.banded and not side.is_even for side in (panel.x, panel.up))


def _errors(measures: Mapping[str, Mapping[str, Any]], facts: Facts, panels: Sequence[Panel]) -> str:
    """Return the meaning of the intervals that are drawn, or the margins of error where maps draw none."""
    kinds = {panel.kind for panel in panels}
    if kinds == {"heatmap"} and any("deviations" in one for one in measures.values()):  # their errors differ by table
        return ""
    if is_pairs(facts["cells"]):
        return f"±: {margin_words(facts)}"
    if not any("low" in cell for panel in panels for cell in panel.cells):
        return ""
    if kinds == {"heatmap"}:
        return f"{margin_words(facts)} of each cell: {_reach(panels)}"
    bars = "bands" if any(panel.crowded for panel in panels) else "bars"
    drawn = "shaded" if kinds == {"line"} else f"{bars} and shades" if "line" in kinds else bars
    return f"{drawn}: {margin_words(facts)}"


def _reach(panels: Sequence[Panel]) -> str:
    """Return the least and the largest margin of error of each panel."""
    said = []
    for panel in panels:
        errors = [_error(cell) for cell in panel.cells if "low" in cell and not open_end(cell)]
        least, most = (pages.margin(end(errors)) for end in (min, max)) if errors else ("-", "-")
        said.append(f"±{least}" if least == most else f"±{least} to ±{most}")
    return ", ".join(said)


def _error(cell: Mapping[str, Any]) -> float:
    """Return the margin of error: half of a released interval, or the longer side of a cut interval."""
    if cell.get("symmetric", False):
        return float(cell["high"] - cell["low"]) / 2
    return float(max(cell["value"] - cell["low"], cell["high"] - cell["value"]))


def _said(title: str, facts: Facts, panels: Sequence[Panel], left_out: Sequence[str]) -> str:
    """Return the description for screen readers: the kind of chart, its numbers if few, and what is not drawn."""
    epsilon = pages.at_least(promised(facts)[0], 4)
    how = str(facts.get("said", f"released with differential privacy, epsilon {epsilon:.4g}"))
    parts = [f"{title}. {how[0].upper()}{how[1:]}."]
    for panel in panels:
        kind = {"bar": "Bar chart", "line": "Line chart", "point": "Points", "heatmap": "Heat map"}[panel.kind]
        if len(panel.cells) <= MOST_SAID:
            cells = "; ".join(f"{_place(cell)}: {cell['says']}" for cell in panel.cells)
            parts.append(f"{kind} of {panel.value}. {cells}.")
        elif panel.cells:
            values = [cell["value"] for cell in panel.cells]
            least, most = pages.number(min(values)), pages.number(max(values))
            parts.append(f"{kind} of {panel.value}: {len(panel.cells):,} values from {least} to {most}.")
    return " ".join([*parts, *_sentences(left_out)])


def _place(cell: Mapping[str, Any]) -> str:
    names = (cell.get(name) for name in ("x_says", "up_says", "color", "facet"))
    return ", ".join(name.replace("\n", " ") for name in names if name)
