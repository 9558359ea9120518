"""Descriptions of the numbers of a result: of each number, and of all of them with their key columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.errors import capital, listed, no_markup
from dpframe.frames import changes
from dpframe.privacy import PrivacyUnit, noun_of
from dpframe.queries.date_grid import STEPS
from dpframe.queries.query import NOISY

Facts = Mapping[str, Any]

MOST_NAMED = 6  # columns of tables that a title lists
PAIR = ("column", "other")  # the columns that hold the two column names of a covariance
QUARTILES = {0.25: "first quartile", 0.5: "median", 0.75: "third quartile"}
IN_WORDS = {  # the statistic of a verb whose name does not describe it
    "ecdf": "share of values of {} up to here",
    "share": "share of rows",
    "std": "standard deviation of {}",
    "n_distinct": "distinct values of {}",
}
BY_UNITS = ("n_distinct", "n_units")  # verbs that count whole units, whatever their number of rows
IN_STREAM = {"total": " up to this period", "period": " in this period"}  # by column: the rows that it covers


def measure(name: str, facts: Facts) -> Mapping[str, Any]:
    """Return the statistic of a released column, which may hold the noisy values of that statistic.

    For a column of a stream, `rows` tells the running total from the number of the period alone, as text.
    """
    name = name if name in facts["measures"] else name.removesuffix(NOISY)
    found: Mapping[str, Any] = facts["measures"][name]
    if "stream" not in facts:
        return found
    view = changes.view_of(facts)
    return {**found, "rows": IN_STREAM.get(name if view is None else view.measures[name][0], "")}


def across(facts: Facts) -> tuple[str, ...]:
    """Return the columns whose keys `wide` turned into columns, each with a part of a statistic."""
    view = changes.view_of(facts)
    return () if view is None else view.across


def described(name: str, facts: Facts) -> str:
    """Return a released column as text, by its new name if it was renamed."""
    return no_markup(_words(measure(name, facts), facts)) + ("" if name in facts["measures"] else " (noisy)")


def stated(name: str, facts: Facts) -> str:
    """Return a released column as text; for a column that `wide` made from a key, return its whole statistic."""
    return no_markup(_stated(name, facts)) if across(facts) else described(name, facts)


def quantile(statistic: Mapping[str, Any]) -> str:
    """Return a quantile as text."""
    return statistic["words"] if "words" in statistic else QUARTILES.get(statistic["q"], f"{statistic['q']:g}-quantile")


def protected(facts: Facts) -> str:
    """Return whom a result protects as text, with the contribution bounds that its numbers use.

    `facts` are of a release, of an origin of a computation, or of a computation.
    """
    released = facts["of"][0] if "of" in facts else facts
    measures = facts.get("measures", {}).values()
    by_units = measures and all(one["verb"] in BY_UNITS or "unit_bounds" in one for one in measures)
    in_all = "period" in released or "model" in released  # only streams have periods, and only local reports a model
    return PrivacyUnit.of_facts(facts["unit"]).words(rows=not by_units, in_all=in_all)


def is_pairs(axes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether each group has a row for each pair of columns."""
    names = tuple(axes[-1].get("released", axes[-1]["columns"])) if axes else ()
    return names == PAIR and len(axes[-1]["columns"]) == len(PAIR) and axes[-1].get("keys") == ["text", "text"]


def each_once(facts: Facts) -> list[str]:
    """Return the numbers as text, each statistic once."""
    return list(dict.fromkeys(stated(name, facts) for name in facts["measures"]))


def subject(names: str, facts: Mapping[str, Any]) -> str:
    """Return the names of the numbers and their key columns as text."""
    axes, of = facts["cells"], ""
    if is_pairs(axes):
        axes, of = axes[:-1], " of pairs of columns"
    columns = [*(_key(column, axis) for axis in axes for column in axis["columns"]), *across(facts)]
    degree = max((measure.get("degree", 0) for measure in facts["measures"].values()), default=0)
    if degree:
        most = f"up to {degree}" if degree > 1 else "one"
        of = f"the columns {listed(columns)}" if len(columns) <= MOST_NAMED else f"{len(columns)} columns"
        return f"{names} in all tables of {most} of {of}"
    return f"{names}{of}" + (f" by {listed(columns)}" if columns else "") + _of_the_top(facts)


def _of_the_top(facts: Facts) -> str:
    """Return text on the categories of a top-k with counts; none if all were released."""
    whole = facts if changes.view_of(facts) is None else facts["whole"]  # a part of the rows has their number as its k
    if "top" not in whole or not facts["measures"]:
        return ""
    k, options = whole["top"]["k"], math.prod(axis["size"] for axis in whole["cells"])
    return "" if k >= options else f", of the {f'{k:,} ' if k > 1 else ''}most common of {options:,} categories"


def _key(column: str, axis: Mapping[str, Any]) -> str:
    """Return a column of keys; if its dates stand for weeks or other steps, and it has another name, say so."""
    steps = STEPS.get(axis.get("every", "1d"), "days")
    return column if steps == "days" or steps[:-1] in column.lower() else f"{column} ({steps})"


def without_numbers(facts: Facts) -> str:
    """Return the values that were chosen, or the bounds that were suggested, as text."""
    if "suggested" in facts:
        return f"suggested bounds of {listed(facts['suggested']['columns'])}"
    what = f"{facts['top']['k']:,} most common" if "top" in facts else str(facts["verb"])
    return f"{what} of {listed([column for axis in facts['cells'] for column in axis['columns']])}"


def short(facts: Facts) -> str:
    """Return the numbers and their key columns as a title, with each statistic once."""
    return heading(subject(listed(each_once(facts)), facts), next(iter(facts["measures"])), facts)


def heading(text: str, first: str, facts: Facts) -> str:
    """Return a title with a capital first letter, unless its `first` number is described by a name, which stays."""
    return text if measure(first, facts).get("as_written") is True else capital(text)


def full(facts: Facts) -> str:
    """Return the text of `short` with the names of several or renamed columns, to which the errors refer."""
    names = {name: _stated(name, facts) for name in facts["measures"]}
    if not names:
        return no_markup(without_numbers(facts))
    if is_pairs(facts["cells"]):
        words = list(names)
    elif across(facts):
        words = list(dict.fromkeys(names.values()))
    else:
        named = [name for name in names if len(names) > 1 or "words" in measure(name, facts)]
        words = [f"{text} as {name}" if name in named and text != name else text for name, text in names.items()]
    return subject(listed(words), facts)


def sentence(facts: Facts) -> str:
    """Return the first sentence of a statement: the label, or else "Result", and the numbers."""
    return f"{titled(facts, 'Result')}: {full(facts)}."


def titled(facts: Facts, otherwise: str) -> str:
    """Return the label of a release, or else another title; a release of a stream adds its period."""
    title = str(facts["label"] or otherwise)
    return f"{title}, {facts['period']['name']}" if "period" in facts else title


def _stated(name: str, facts: Facts) -> str:
    """Return the statistic of a column as text, regardless of any new name."""
    said = measure(name, facts)
    if "stated" in said:  # of a number that was computed from releases
        return str(said["stated"])
    return _words({fact: told for fact, told in said.items() if fact != "words"}, facts)


def _words(statistic: Mapping[str, Any], facts: Facts) -> str:
    if "words" in statistic:  # of a renamed column
        return str(statistic["words"])
    counted = "units" if "groups" in facts else statistic.get("counts", "rows")
    if statistic["column"] is None:
        unit = facts["unit"]["column"]
        text = f"number of {counted}" if counted != "units" or unit is None else f"number of units ({noun_of(unit)})"
    elif "counts" in statistic:
        values = "present values" if counted == "values" else "units with a value"
        text = f"{values} of {statistic['column']}"
    elif statistic["verb"] in IN_WORDS:
        text = IN_WORDS[statistic["verb"]].format(statistic["column"])
    else:
        text = f"{quantile(statistic) if 'q' in statistic else statistic['verb']} of {statistic['column']}"
        for more, words in (("value", " that is"), ("denominator", " to")):
            text += f"{words} {statistic[more]}" if more in statistic else ""
    text += str(statistic.get("rows", ""))
    text += f" weighted by {statistic['weight']}" if "weight" in statistic else ""
    text += " (missing values as the middle of the bounds)" if statistic.get("missing") == "midpoint" else ""
    return text + (f" where {statistic['where']}" if "where" in statistic else "")
