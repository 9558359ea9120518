"""A whole question: statistics over public cells, planned and released as one; and what follows from its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.errors.words import harmless
from dpframe.queries.discovery import found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.levels import WORDS, Option, Subtotals
from dpframe.queries.statistics import Measured, Statistic, SuggestedBounds, Total
from dpframe.queries.statistics.capabilities import (
    ONE_CELL,
    Adapting,
    Choosing,
    Deciding,
    Labelled,
    MoreColumns,
    Sharing,
    Tables,
)
from dpframe.queries.total import DistinctTotal, OfRows, over

Floats = NDArray[np.float64]

NOISY, ERROR = "_noisy", "_error"


@dataclass(frozen=True)
class Query:
    """Named statistics over the cells of `keys`, and maybe over sums of these: what one call asks."""

    verb: str  # what was called, for records
    keys: Keys
    statistics: tuple[tuple[str, Statistic], ...]
    subtotals: Option | None = None  # the option by which subtotals were asked for

    def __post_init__(self) -> None:
        if self.keys.unknown:
            _check_found(self)
        if self.subtotals is not None:
            _check_subtotals(self, self.subtotals)
        _check_labelled(self)
        names = list(self.shown.names)
        for name, statistic in self.statistics:
            endings = statistic.endings if isinstance(statistic, MoreColumns) else ()
            names += dict.fromkeys([name, name + NOISY, name + ERROR, *(name + end for end in endings)])
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(
                    f"output columns must have different names, but {name!r} occurs twice (a statistic NAME also adds "
                    "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count())."
                )

    @cached_property
    def shown(self) -> Keys:
        """The rows of the result: the cells, with their subtotals, or in each the rows of a statistic."""
        shown = self.keys.shown if self.subtotals is None else Subtotals(self.keys.axes, self.subtotals)
        for _, statistic in self.statistics:
            if isinstance(statistic, Tables):
                shown = statistic.shown()
            elif isinstance(statistic, Labelled):
                shown = Keys((*shown.axes, *statistic.axes))
        return shown

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure; equal ones once."""
        return tuple(over(total, by) for by in self.shown.groupings for total in self.of_cells)

    @cached_property
    def of_cells(self) -> tuple[Total, ...]:
        """Those over the declared cells; the others are sums of them."""
        totals = [total for _, statistic in self.statistics for total in statistic.totals()]
        found = found_axis(self.keys) if self.keys.unknown else None
        return tuple(dict.fromkeys(totals if found is None else [found.people, *totals]))

    def each(self, change: Callable[[Statistic], Statistic]) -> Query:
        """The same question with each statistic changed."""
        changed = [change(statistic) for _, statistic in self.statistics]
        pairs = tuple((name, new) for (name, _), new in zip(self.statistics, changed, strict=True))
        # one that says why it was chosen is equal to the one that does not, and not the same
        same = all(new is old for new, (_, old) in zip(changed, self.statistics, strict=True))
        return self if same else replace(self, statistics=pairs)

    def under(self, pure: bool) -> Query:
        """The same question in the form that suits pure noise, or Gaussian noise: what is measured may differ."""
        formed = self.each(lambda one: one.under(pure) if isinstance(one, Adapting) else one)
        measured = tuple(total for _, statistic in formed.statistics for total in statistic.totals())
        return formed.each(lambda one: one.beside(measured) if isinstance(one, Sharing) else one)

    def answer(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals, a row each."""
        parts = [
            statistic.answer({total: measured[over(total, by)] for total in statistic.totals()})
            for by in self.shown.groupings
        ]
        return np.concatenate([values for values, _ in parts]), np.concatenate([errors for _, errors in parts])

    @cached_property
    def words(self) -> str:
        """The words of the question, which are printed and logged, and kept in ledgers."""
        if self.keys.counted == "units":
            return harmless(f"contributions(){self.keys}")
        for choice in choices_of(self):
            if isinstance(choice, Choosing):
                return harmless(f"{choice.choice_words} of {self.keys.axes[0]}")
        statistics = ", ".join(str(statistic) for _, statistic in self.statistics)
        return harmless(f"{statistics} by {self.keys}{WORDS[self.subtotals]}" if self.keys.axes else statistics)

    def __str__(self) -> str:
        return self.words


def gathers(query: Query) -> bool:
    """Tell whether distinct values are counted, so that those of all rows must be looked at together."""
    return any(isinstance(total, DistinctTotal) for total in query.of_cells)


def choices_of(query: Query) -> tuple[Deciding, ...]:
    """The statistics that a mechanism for choices answers, or may answer."""
    return tuple(
        one if isinstance(one, Deciding) else ONE_CELL
        for _, one in query.statistics
        if isinstance(one, Deciding) or getattr(one, "chooses", False)
    )


def chooses(query: Query) -> bool:
    """Tell whether the answer is some of the cells, and not a number for each."""
    return any(isinstance(choice, Choosing) for choice in choices_of(query))


def by_choice(query: Query) -> bool:
    """Tell whether cells are chosen by a mechanism for choices."""
    return any(choice.by_choice for choice in choices_of(query))


def read_by(query: Query) -> Iterator[str]:
    """The columns that the Totals of a question read, some of them more than once."""
    return (name for total in query.of_cells for name in total.columns)


def suggestion_of(query: Query) -> SuggestedBounds | None:
    """The question for bounds of columns, whose answer is candidates; None where anything else is asked."""
    statistic = query.statistics[0][1]
    return statistic if isinstance(statistic, SuggestedBounds) else None


def _check_found(query: Query) -> None:
    """Keys that are found have no subtotals, and stand alone."""
    if query.subtotals is not None:
        raise InvalidArgument(
            f"{query.subtotals} must be left out with keys=dpf.discover(...): subtotals would hold groups that are "
            "not shown. Ask for the total by itself, without group_by, or declare the keys."
        )
    for name, statistic in query.statistics:
        if isinstance(statistic, Labelled):
            raise InvalidArgument(
                f"{statistic.verb} ({name}) must be asked of declared keys, not with keys=dpf.discover(...). "
                "Find the keys in one release, and declare those that it shows in the next."
            )
    if len(query.keys.axes) > 1 or chooses(query):
        raise InvalidArgument(
            "keys=dpf.discover(...) must stand alone, without bins, declared values of another column or a choice. "
            "Let it find the combinations of all columns: group_by(*columns, keys=dpf.discover(...))."
        )


def _check_subtotals(query: Query, option: Option) -> None:
    """Only sums of declared keys have subtotals that can be told apart from the cells."""
    rows = Subtotals(query.keys.axes, option)  # which refuses keys that have none
    for name, statistic in query.statistics:
        if not statistic.adds_up:
            raise InvalidArgument(
                f"{option} must be left out of a {statistic.verb} ({name}), which is not the sum of its parts. "
                "Ask for dpf.count and dpf.sum of the column, and divide."
            )
    if not all(isinstance(total, OfRows) for total in query.of_cells):
        raise InvalidArgument(  # of a statistic from outside: the weights of subtotals are those of sums of rows
            f"{option} must be left out of statistics that measure units or vectors: the weights of units hold for "
            "subtotals of plain sums over rows alone. Let such a statistic say adds_up = False."
        )
    rows.check_cube()


def _check_labelled(query: Query) -> None:
    """Refuse other statistics together with one that has several rows for each group."""
    for name, statistic in query.statistics:
        if not isinstance(statistic, Labelled):
            continue
        labels = [label for axis in statistic.axes for label in axis.names]
        if len(query.statistics) > 1:
            raise InvalidArgument(
                f"{statistic.verb} ({name}) must be asked alone: its result has a row for each pair of columns, "
                "and those of others have one for each group. Ask in a call of its own, and let "
                "dpf.release_together release both at one cost."
            )
        if set(labels) & {*query.keys.names, *query.keys.columns}:
            raise InvalidArgument(
                f"group_by must not name a column {' or '.join(map(repr, labels))} with {statistic.verb}, whose "
                "result has columns of these names. Rename it first."
            )
