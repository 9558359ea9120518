"""A released result in a paragraph for readers without mathematics, from its record alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.display import possible
from dpframe.display.check_words import check_lines
from dpframe.display.denoised import denoised_words
from dpframe.display.pages import number
from dpframe.errors import capital, harmless, listed
from dpframe.queries.samples import POPULATION

NOTHING = "No group is shown: none reached the threshold."
MOST_NAMED = 6  # columns of tables that a title lists
SAME = 1e-6  # relative, of a cost that was rounded up
PAIR = ("column", "other")  # what names the two columns of a covariance


def statement_of(
    facts: Mapping[str, Any],
    values: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    ends: Mapping[str, possible.Shown],
) -> str:
    """Sentences on what was published, how it is protected, and how far to trust each number.

    `values` are the numbers by column, a row each, `errors` the half-widths of their 95% intervals, and `ends` these
    intervals as they are shown.
    """
    sentences = [f"{facts['warning']}."] if "warning" in facts else []
    sentences += [_subject(facts), method_words(facts), _promise(facts)]
    if all(map(len, errors.values())):
        told = possible.sentences(
            {name: one for name, one in ends.items() if not _is_chosen(name, facts)}, facts["measures"]
        )
        sentences += [*_accuracy(facts, errors), *told, *_drowned(values, errors)]
    else:
        sentences.append(NOTHING)
    denoised = [f"{capital(words)}." for words in denoised_words(facts, number)]
    left_out = [f"Note: {note}." for note in facts["notes"]]
    left_out += [f"{capital(line)}." for line in check_lines(facts)]
    return harmless(" ".join([*sentences, *denoised, *left_out]))


def dearer_words(offered: float, cost: float, accounting: str) -> str | None:
    """Say why a call costs more epsilon than it names, and what to ask instead; None where it does not."""
    if cost <= offered * (1 + SAME):
        return None
    return (
        f"more than the epsilon {number(offered)} of this noise alone: {accounting} accounting does not add epsilons, "
        "and pure noise takes more of it. Ask for Gaussian noise, or take a ledger with basic accounting: there the "
        "epsilon that you type is what is charged"
    )


def margin_words(facts: Mapping[str, Any]) -> str:
    """The name of the half-width of an interval, and what it covers."""
    return f"{_level(facts)} margin of error ({covered(facts)})"


def ends_words(facts: Mapping[str, Any]) -> str:
    """The name of an interval, and what it covers."""
    return f"{_level(facts)} confidence interval ({covered(facts)})"


def covered(facts: Mapping[str, Any]) -> str:
    """The sources of error that intervals cover, named briefly."""
    return "noise and sample" if facts.get("covers") == POPULATION else "noise"


def _level(facts: Mapping[str, Any]) -> str:
    return f"{100 * facts['confidence']:g}%"


def is_pairs(axes: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether each group has a row for each pair of columns."""
    names = tuple(axes[-1].get("released", axes[-1]["columns"])) if axes else ()
    return names == PAIR and len(axes[-1]["columns"]) == len(PAIR) and axes[-1].get("keys") == ["text", "text"]


def subject(names: str, facts: Mapping[str, Any]) -> str:
    """The names of the answers, and by which columns they are."""
    axes, of = facts["cells"], ""
    if is_pairs(axes):
        axes, of = axes[:-1], " of pairs of columns"
    columns = [column for axis in axes for column in axis["columns"]]
    degree = max((measure.get("degree", 0) for measure in facts["measures"].values()), default=0)
    if degree:
        most = f"{degree} of its columns" if degree > 1 else "one of its columns"
        named = f"which are {listed(columns)}" if len(columns) <= MOST_NAMED else f"{len(columns)} in all"
        return f"{names} in all tables of up to {most}, {named}"
    return f"{names}{of}" + (f" by {listed(columns)}" if columns else "")


def _subject(facts: Mapping[str, Any]) -> str:
    return f"{facts['label']}." if facts["label"] else f"This is {subject(listed(list(facts['measures'])), facts)}."


def method_words(facts: Mapping[str, Any]) -> str:
    """A sentence on how the numbers were protected."""
    if "model" in facts:
        return (
            "Every person's value was randomized before anybody collected it, and the numbers are estimated from the "
            "randomized values."
        )
    if any(statistic.get("by") == "choice" for statistic in facts["measures"].values()):
        return (
            "The result was chosen at random among declared values, to mask any one "
            f"{one_of(facts)}. Values near the exact one were far likelier."
        )
    return f"The numbers were computed exactly, and random noise was added to each to mask any one {one_of(facts)}."


def _promise(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    epsilon = facts["per_report"] if "model" in facts else cost["epsilon"]
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < 50 else f"e^{epsilon:.4g}"  # beyond, a float has no such number
    but = f", plus a probability of {cost['delta']:.3g}" if cost["delta"] else ""
    what = (
        "had another value" if "model" in facts or facts["unit"]["neighbors"] == "replace" else "were not in the data"
    )
    together = "" if facts["unit"]["column"] is None else f" All rows of one {one_of(facts)} are protected together."
    return (
        f"Whatever else a reader knows, no outcome is more than {factor} times as likely as if one {one_of(facts)} "
        f"{what}{but} (differential privacy, epsilon {epsilon:.4g}).{together}"
    )


def one_of(facts: Mapping[str, Any]) -> str:
    """The noun for who is protected."""
    return str(facts.get("word") or facts["unit"]["column"] or "row")


def _is_chosen(name: str, facts: Mapping[str, Any]) -> bool:
    return chosen_words(name, facts) is not None


def chosen_words(name: str, facts: Mapping[str, Any]) -> str | None:
    """The error of an answer that was chosen by ranks, whose interval holds all candidates; None of other answers."""
    statistic = facts["measures"][name]
    parts = facts["statistics"]
    if statistic.get("by") != "choice" or not statistic["statistics"]:
        return None
    ranks = parts[statistic["statistics"][0]].get("ranks") if statistic["statistics"][0] < len(parts) else None
    near = (
        "" if ranks is None else f"in 95 of 100 cases {name} is within {number(ranks)} ranks of the exact answer, but "
    )
    return (
        f"{near}no choice by ranks tells how far off {name} is in values, so its interval holds all that were declared"
    )


def _accuracy(facts: Mapping[str, Any], errors: Mapping[str, Sequence[float]]) -> list[str]:
    said = []
    for name, all_of_them in errors.items():
        if (chosen := chosen_words(name, facts)) is not None:
            said.append(f"{capital(chosen)}.")
            continue
        least, most = min(all_of_them), max(all_of_them)
        if not math.isfinite(most):
            said.append(f"For some rows the noise hides {name} entirely.")
        elif math.isclose(least, most) or number(least) == number(most):
            said.append(f"The margin of error (95%) of {name} is {number(most)}.")
        else:
            said.append(
                f"The margin of error (95%) of {name} is {number(least)} to {number(most)}, depending on the row."
            )
    return said


def _drowned(values: Mapping[str, Sequence[float]], errors: Mapping[str, Sequence[float]]) -> list[str]:
    """Columns whose numbers are smaller than their errors, so that even their sign may be that of the noise."""
    said = []
    for name, numbers in values.items():
        small = sum(abs(value) <= error for value, error in zip(numbers, errors[name], strict=True) if error > 0)
        if small == len(numbers):
            said.append(f"The noise may be larger than {'each number of ' if small > 1 else ''}{name} itself.")
        elif small:
            said.append(f"{small:,} of the {len(numbers):,} numbers of {name} may be noise alone.")
    return said
