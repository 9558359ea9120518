"""The words of a result's chart: title, axes, small print on price and errors, and what a screen reader says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import pages
from dpframe.display.charts import Words
from dpframe.display.denoised import denoised_words
from dpframe.display.drawing import Panel
from dpframe.display.layout import Asked
from dpframe.display.statements import chosen_words, is_pairs, subject
from dpframe.errors.words import no_markup
from dpframe.frames import foreign
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import NOISY

Facts = Mapping[str, Any]

MOST_NAMED = 3  # numbers in a title
MOST_SAID = 12  # cells in the words for who does not see the chart
QUARTILES = {0.25: "first quartile", 0.5: "median", 0.75: "third quartile"}
IN_WORDS = {  # what a verb measures of a column, where its name does not say it
    "ecdf": "share of values of {} up to here",
    "share": "share of rows",
    "std": "standard deviation of {}",
    "n_distinct": "distinct values of {}",
}


def words(names: Sequence[str], facts: Facts, panels: Sequence[Panel], asked: Asked, left_out: Sequence[str]) -> Words:
    """The title, the small print and the words for who does not see the chart."""
    title = asked.title if asked.title is not None else _title(names, facts)
    if asked.notes is False:
        notes: list[str] = []
    else:
        notes = [*_notes(names, facts, panels), *left_out]
        notes += [asked.notes] if isinstance(asked.notes, str) else [] if asked.notes is True else asked.notes
    if "warning" in facts:
        notes.append(facts["warning"])
    return Words(title, tuple(notes), _said(title, facts, panels))


def axis_title(names: Sequence[str], facts: Facts) -> str:
    """The title of the axis of values: what they measure, and between which bounds."""
    statistic = _measure(names[0], facts)
    text = described(names[0], facts) if len(names) == 1 else f"quantiles of {statistic['column']}"
    if len(names) == 1 and "bounds" in statistic and "q" not in statistic:
        each = [statistic[name] for name in ("bounds", "denominator_bounds") if name in statistic]
        text = f"{text}, values clipped to {' and '.join(f'[{lower:,g}, {upper:,g}]' for lower, upper in each)}"
    return no_markup(text)


def described(name: str, facts: Facts) -> str:
    """A released column in words."""
    statistic = _measure(name, facts)
    noisy = " (noisy)" if name not in facts["measures"] else ""
    counted = "units" if "groups" in facts else statistic.get("counts", "rows")
    if "words" in statistic:  # of whoever renamed it
        text = statistic["words"]
    elif statistic["column"] is None:
        unit = facts["unit"]["column"]
        text = f"number of {counted}" if counted != "units" or unit is None else f"number of units ({unit})"
    elif "counts" in statistic:
        values = "present values" if counted == "values" else "units with a value"
        text = f"{values} of {statistic['column']}"
    elif statistic["verb"] in IN_WORDS:
        text = IN_WORDS[statistic["verb"]].format(statistic["column"])
    else:
        text = f"{quantile(statistic) if 'q' in statistic else statistic['verb']} of {statistic['column']}"
        for more, words in (("value", " that is"), ("denominator", " to")):
            text += f"{words} {statistic[more]}" if more in statistic else ""
    return no_markup(text) + noisy


def quantile(statistic: Mapping[str, Any]) -> str:
    """A quantile in words."""
    return statistic["words"] if "words" in statistic else QUARTILES.get(statistic["q"], f"{statistic['q']:g}-quantile")


def _measure(name: str, facts: Facts) -> Mapping[str, Any]:
    measure: Mapping[str, Any] = facts["measures"][name if name in facts["measures"] else name.removesuffix(NOISY)]
    return measure


def _title(names: Sequence[str], facts: Facts) -> str:
    if facts["label"]:
        return str(facts["label"])
    if is_pairs(facts["cells"]):
        return _capital(subject(", ".join(names), facts))
    parts = list(dict.fromkeys(described(name, facts) for name in names))
    statistics = [_measure(name, facts) for name in names]
    if len(names) > 1 and all("q" in one for one in statistics) and len({one["column"] for one in statistics}) == 1:
        parts = [f"quantiles of {statistics[0]['column']}"]
    if len(parts) > MOST_NAMED:
        parts = [f"{len(parts)} numbers"]
    if all(one["verb"] == "ecdf" for one in statistics):
        column = statistics[0]["column"]
        parts = [f"distribution function of {column}"]
        facts = {**facts, "cells": [axis for axis in facts["cells"] if axis["columns"] != [column]]}
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return _capital(subject(listed, facts))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _notes(names: Sequence[str], facts: Facts, panels: Sequence[Panel]) -> list[str]:
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    price = f"epsilon {cost['epsilon']:.4g}{delta}, protects {PrivacyUnit.of_facts(facts['unit'])}"
    measures = {name: _measure(name, facts) for name in names}
    released = {name: one for name, one in measures.items() if name in facts["measures"]}  # not the noisy values
    denoised = denoised_words({**facts, "measures": released}, pages.number)
    if any(panel.banded and panel.kind != "heatmap" for panel in panels):
        denoised.append("orange bands: twice the expected error of each denoised value")
    chosen = [said for name in released if (said := chosen_words(name, facts)) is not None]
    of_tables = any("deviations" in measure for measure in measures.values())  # whose errors differ by table
    errors = [] if of_tables else [_errors(measures, facts, panels)]
    return [price, *errors, *chosen, *denoised, *facts["notes"]]


def _errors(measures: Mapping[str, Mapping[str, Any]], facts: Facts, panels: Sequence[Panel]) -> str:
    """The meaning of the intervals that are drawn, or of those that are not."""
    if is_pairs(facts["cells"]):
        return "±: the half-widths of 95% intervals"
    if "top" in facts:  # which of many noisy counts are seen depends on them
        return "error bars: around the noisy counts; they hold for all categories at once with 95%"
    around = any(foreign.is_around_noisy(one) for one in measures.values())
    kinds = {panel.kind for panel in panels}
    if kinds == {"heatmap"}:
        return f"95% error of each cell: {_reach(panels)}" + (" around the unbiased value" if around else "")
    bars = "gray lines" if any(panel.crowded for panel in panels) else "error bars"
    drawn = "shaded" if kinds == {"line"} else f"{bars} and shades" if "line" in kinds else bars
    return f"{drawn}: 95% intervals" + (" around the unbiased noisy values" if around else "")


def _reach(panels: Sequence[Panel]) -> str:
    """The half-widths of the intervals of all cells, from the least to the largest."""
    said = []
    for panel in panels:
        halves = [
            (cell["high"] - cell["low"]) / 2
            for cell in panel.cells
            if cell["low"] is not None and cell["high"] is not None
        ]
        least, most = (pages.number(end(halves)) for end in (min, max)) if halves else ("-", "-")
        said.append(f"±{least}" if least == most else f"±{least} to ±{most}")
    return ", ".join(said)


def _said(title: str, facts: Facts, panels: Sequence[Panel]) -> str:
    """The words for who does not see the chart: its kind of chart, and its numbers where they are few."""
    cost = facts["cost"]
    parts = [f"{title}. Released with differential privacy, epsilon {cost['epsilon']:.4g}."]
    for panel in panels:
        kind = {"bar": "Bar chart", "line": "Line chart", "point": "Points", "heatmap": "Heat map"}[panel.kind]
        if len(panel.cells) <= MOST_SAID:
            cells = "; ".join(f"{_place(cell)}: {cell['says']}" for cell in panel.cells)
            parts.append(f"{kind} of {panel.value}. {cells}.")
        elif panel.cells:
            values = [cell["value"] for cell in panel.cells]
            least, most = pages.number(min(values)), pages.number(max(values))
            parts.append(f"{kind} of {panel.value}: {len(panel.cells):,} values from {least} to {most}.")
    return " ".join(parts)


def _place(cell: Mapping[str, Any]) -> str:
    names = (cell.get(name) for name in ("x_says", "up_says", "color", "facet"))
    return ", ".join(name.replace("\n", " ") for name in names if name)
