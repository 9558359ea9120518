"""A whole question: statistics over public cells, priced and released as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.errors.words import harmless
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import Grouping
from dpframe.queries.discovery import FoundAxis, found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.levels import Level, cube_of, labels_of, levels_of, rollup_of
from dpframe.queries.statistics import Measured, Statistic, Total
from dpframe.queries.statistics.capabilities import (
    ONE_CELL,
    Adapting,
    Choosing,
    Deciding,
    Labelled,
    MoreColumns,
    Protecting,
    Sharing,
    Tables,
)
from dpframe.queries.total import DistinctTotal, OfRows, VectorTotal, by_whole_units, over

Floats = NDArray[np.float64]

NOISY, ERROR = "_noisy", "_error"
MOST_CUBED = 8  # columns of a cube: 256 levels


@dataclass(frozen=True)
class Query:
    """Named statistics over the cells of `keys`: what one call asks."""

    verb: str  # what was called, for records
    keys: Keys
    statistics: tuple[tuple[str, Statistic], ...]
    rollup: bool = False  # whether subtotals are released too
    grouping: Grouping | None = None  # of a question about contributions: the groups that it speaks of
    cube: bool = False  # whether all subtotals are released, by every choice of columns

    def __post_init__(self) -> None:
        if self.found is not None:
            self._check_found()
        if self.subtotals is not None:
            self._check_subtotals(self.subtotals)
        self._check_axes()
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

    def _check_found(self) -> None:
        """Keys that are found have no subtotals, and stand alone."""
        if self.subtotals is not None:
            raise InvalidArgument(
                f"{self.subtotals} must be left out with keys=dpf.discover(...): subtotals would hold groups that are "
                "not shown. Ask for the total by itself, without group_by, or declare the keys."
            )
        for name, statistic in self.statistics:
            if isinstance(statistic, Labelled):
                raise InvalidArgument(
                    f"{statistic.verb} ({name}) must be asked of declared keys, not with keys=dpf.discover(...). "
                    "Find the keys in one release, and declare those that it shows in the next."
                )
        if len(self.keys.axes) > 1 or self.chooses:
            raise InvalidArgument(
                "keys=dpf.discover(...) must stand alone, without bins, declared values of another column or a choice. "
                "Let it find the combinations of all columns: group_by(*columns, keys=dpf.discover(...))."
            )

    def _check_axes(self) -> None:
        """Refuse other statistics beside one that has several rows for each group."""
        long = [(name, statistic) for name, statistic in self.statistics if isinstance(statistic, Labelled)]
        for name, statistic in long:
            labels = [label for axis in statistic.axes for label in axis.names]
            if len(self.statistics) > 1:
                raise InvalidArgument(
                    f"{statistic.verb} ({name}) must be asked alone: its result has a row for each pair of columns, "
                    "and those of others have one for each group. Ask in a call of its own, and let "
                    "dpf.release_together release both at one price."
                )
            if set(labels) & {*self.keys.names, *self.keys.columns}:
                raise InvalidArgument(
                    f"group_by must not name a column {' or '.join(map(repr, labels))} with {statistic.verb}, whose "
                    "result has columns of these names. Rename it first."
                )

    @property
    def subtotals(self) -> str | None:
        """The option by which subtotals were asked for; None without."""
        return "rollup" if self.rollup else "cube" if self.cube else None

    def _check_subtotals(self, option: str) -> None:
        """Only sums of declared keys have subtotals that can be told apart from the cells."""
        if self.rollup and self.cube:
            raise InvalidArgument("rollup must be left out with cube=True, which holds its subtotals. Keep one.")
        if not self.keys.axes:
            raise InvalidArgument(
                f"{option} must be left out of a single number, which has no subtotals. "
                f'Write group_by("ward", keys=["A", "B"]).count({option}=True).'
            )
        if any(len(axis.names) != len(axis.columns) for axis in self.keys.axes):
            raise InvalidArgument(
                f"{option} must be left out where there are bins, which have no name for their total. "
                "Add up bins yourself, or group by declared keys."
            )
        if any(None in row for axis in self.keys.axes for row in getattr(axis, "rows", ())):
            raise InvalidArgument(
                f"keys must not hold None with {option}=True, since None marks the rows of subtotals. "
                "Leave it out, or fill the column's missing values with a name of their own."
            )
        for name, statistic in self.statistics:
            if not statistic.adds_up:
                raise InvalidArgument(
                    f"{option} must be left out of a {statistic.verb} ({name}), which is not the sum of its parts. "
                    "Ask for dpf.count and dpf.sum of the column, and divide."
                )
        if not all(isinstance(total, OfRows) for total in self.of_cells):
            raise InvalidArgument(  # of a statistic from outside: the weights of subtotals are those of sums of rows
                f"{option} must be left out of statistics that measure units or vectors: the weights of units hold for "
                "subtotals of plain sums over rows alone. Let such a statistic say adds_up = False."
            )
        if self.cube:
            self._check_cube()

    def _check_cube(self) -> None:
        if any(len(axis.columns) > 1 for axis in self.keys.axes):
            raise InvalidArgument(
                "keys must be a dict of values by column with cube=True, not a frame of combinations, whose margins "
                'lack some. Write keys={"ward": ["A", "B"], "sex": ["f", "m"]}, or rollup=True for columns that nest.'
            )
        if len(self.keys.axes) > MOST_CUBED:
            raise InvalidArgument(
                f"cube must be of at most {MOST_CUBED} columns, not {len(self.keys.axes)}, since each choice of them "
                "takes a part of the price. Group by fewer, or write rollup=True."
            )

    @cached_property
    def found(self) -> FoundAxis | None:
        """The keys that are still to be found; None where all are declared. Their units are measured in any case."""
        return found_axis(self.keys)

    @cached_property
    def chooses(self) -> bool:
        """Tell whether the answer is some of the cells, and not a number for each."""
        return any(isinstance(choice, Choosing) for choice in self.choices)

    @cached_property
    def by_choice(self) -> bool:
        """Tell whether cells are chosen by a mechanism for choices."""
        return any(choice.by_choice for choice in self.choices)

    @cached_property
    def choices(self) -> tuple[Deciding, ...]:
        """The statistics that a mechanism for choices answers, or may answer."""
        return tuple(
            one if isinstance(one, Deciding) else ONE_CELL
            for _, one in self.statistics
            if isinstance(one, Deciding) or getattr(one, "chooses", False)
        )

    @cached_property
    def shown(self) -> Keys:
        """The rows of the result without subtotals: the cells, and inside of each the rows of a statistic."""
        shown = self.keys
        for _, statistic in self.statistics:
            if isinstance(statistic, Tables):
                shown = statistic.shown()
            elif isinstance(statistic, Labelled):
                shown = Keys((*shown.axes, *statistic.axes))
        return shown

    def with_axes(self, checked: Callable[[Any], Any]) -> Query:
        """The same with the axes of its statistics as a schema has them."""
        statistics = tuple(
            (name, one.resolved(checked) if isinstance(one, Tables) else one) for name, one in self.statistics
        )
        return self if statistics == self.statistics else replace(self, statistics=statistics)

    @cached_property
    def by_name(self) -> Mapping[str, Statistic]:
        """The statistics by the names of their output columns."""
        return dict(self.statistics)

    def protecting(self, unit: PrivacyUnit) -> Query:
        """The same question in the form that suits the unit; refused where it lacks what the unit needs."""
        statistics = tuple(
            (name, one.protecting(unit) if isinstance(one, Protecting) else one) for name, one in self.statistics
        )
        return self if statistics == self.statistics else replace(self, statistics=statistics)

    def under(self, pure: bool) -> Query:
        """The same question in the form that suits pure noise, or Gaussian noise: what is measured may differ."""
        formed = [(name, one.under(pure) if isinstance(one, Adapting) else one) for name, one in self.statistics]
        measured = tuple(total for _, statistic in formed for total in statistic.totals())
        statistics = tuple((name, one.beside(measured) if isinstance(one, Sharing) else one) for name, one in formed)
        return self if statistics == self.statistics else replace(self, statistics=statistics)

    @cached_property
    def uses_rows(self) -> bool:
        """Tell whether the rows of a unit count, and not only in which groups it has some."""
        return not all(by_whole_units(total) for total in self.of_cells)

    @cached_property
    def uses_units(self) -> bool:
        """Tell whether some Total counts units, or clips what they add in all."""
        return any(by_whole_units(total) and not isinstance(total, DistinctTotal) for total in self.of_cells)

    @cached_property
    def gathers(self) -> bool:
        """Tell whether distinct values are counted, so that those of all rows must be looked at together."""
        return any(isinstance(total, DistinctTotal) for total in self.of_cells)

    @cached_property
    def groups(self) -> int:
        """The number of groups of rows: the cells, but where the last axis of the keys is inside of them."""
        vectors = [total.vector for total in self.of_cells if isinstance(total, VectorTotal)]
        return self.keys.cells // max((vector.cells for vector in vectors), default=1)

    @property
    def one_group(self) -> bool:
        """Tell whether all rows of a unit are weighed as one group: a choice allows them in each option."""
        return self.by_choice or self.groups == 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values say in which cell, or in which group, a row is."""
        return self.keys.columns if self.grouping is None else self.grouping.columns

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the result on rows that are in no cell."""
        return self.shown.notes() if self.grouping is None else self.grouping.notes()

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure; equal ones once."""
        return tuple(over(total, by) for by in self.groupings for total in self.of_cells)

    @cached_property
    def of_cells(self) -> tuple[Total, ...]:
        """Those over the declared cells; the others are sums of them."""
        totals = [total for _, statistic in self.statistics for total in statistic.totals()]
        return tuple(dict.fromkeys(totals if self.found is None else [self.found.people, *totals]))

    @cached_property
    def groupings(self) -> tuple[tuple[str, ...] | None, ...]:
        """The columns of each level of subtotals, after None for the cells themselves."""
        return (None, *self._by[1:])

    @property
    def _by(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each level; none without subtotals."""
        if self.cube:
            return cube_of(self.keys.columns)
        return rollup_of(self.keys.columns) if self.rollup else ()

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels of subtotals, in the order of `groupings`; none without."""
        return levels_of(self.keys, self._by)

    @property
    def level_facts(self) -> list[dict[str, Any]] | None:
        """The columns and the number of rows of each level of subtotals, or of each table; None of a single one."""
        if not self.subtotals:
            return self.shown.levels
        return [{"columns": list(level.columns), "rows": level.size} for level in self.levels]

    def cells_of(self, total: Total) -> int:
        """The number of exact entries of the vector of a Total."""
        if isinstance(total, VectorTotal):
            return self.keys.cells // total.vector.cells * total.vector.folded
        if total.by is None:
            return self.keys.cells
        return self.levels[self.groupings.index(total.by)].size

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        if self.cube:
            return math.prod(size + 1 for size in self.keys.shape)
        return sum(level.size for level in self.levels) if self.rollup else self.shown.cells

    def labels(self) -> Mapping[str, Any]:
        """The columns that name the rows of the result."""
        return labels_of(self.keys, self.levels) if self.subtotals else self.shown.labels()

    def answer(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals, a row each."""
        needed = statistic.totals()
        parts = [statistic.answer({total: measured[over(total, by)] for total in needed}) for by in self.groupings]
        return np.concatenate([values for values, _ in parts]), np.concatenate([errors for _, errors in parts])

    def more(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Further columns of a statistic by the ends of their names."""
        if not isinstance(statistic, MoreColumns):
            return {}
        return statistic.more({total: measured[total] for total in statistic.totals()})

    def __str__(self) -> str:
        return self._harmless_words

    @cached_property
    def _harmless_words(self) -> str:
        return harmless(self._words())  # they are printed and logged, and kept in ledgers

    def _words(self) -> str:
        if self.grouping is not None:
            return f"contributions(){self.grouping}"
        for choice in self.choices:
            if isinstance(choice, Choosing):
                return f"{choice.choice_words} of {self.keys.axes[0]}"
        statistics = ", ".join(str(statistic) for _, statistic in self.statistics)
        cells = " x ".join(str(axis) for axis in self.keys.axes)
        subtotals = ", with subtotals" if self.rollup else ", with all subtotals" if self.cube else ""
        return f"{statistics} by {cells}{subtotals}" if cells else statistics
