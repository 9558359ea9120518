"""A whole question: statistics over public cells, priced and released as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.errors.words import harmless
from dpframe.queries.bins import BinAxis
from dpframe.queries.contributions import Grouping
from dpframe.queries.discovery import FoundAxis, found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.levels import Level, labels_of, levels_of
from dpframe.queries.statistics import Measured, Statistic, Total

Floats = NDArray[np.float64]

NOISY, ERROR = "_noisy", "_error"


@dataclass(frozen=True)
class Query:
    """Named statistics over the cells of `keys`: what one call asks."""

    verb: str  # what was called, for records
    keys: Keys
    statistics: tuple[tuple[str, Statistic], ...]
    rollup: bool = False  # whether subtotals are released too
    grouping: Grouping | None = None  # of a question about contributions: the groups that it speaks of

    def __post_init__(self) -> None:
        if self.found is not None:
            self._check_found()
        if self.rollup:
            self._check_rollup()
        names = list(self.keys.names)
        for name, statistic in self.statistics:
            names += dict.fromkeys([name, name + NOISY, name + ERROR, *(name + end for end in statistic.endings)])
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(
                    f"output columns must have different names, but {name!r} occurs twice (a statistic NAME also adds "
                    "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count())."
                )

    def _check_found(self) -> None:
        """Keys that are found have no subtotals, and stand alone."""
        if self.rollup:
            raise InvalidArgument(
                "rollup must be left out with keys=dpf.discover(...): subtotals would hold groups that are not shown. "
                "Ask for the total by itself, without group_by, or declare the keys."
            )
        if len(self.keys.axes) > 1 or self.chooses:
            raise InvalidArgument(
                "keys=dpf.discover(...) must stand alone, without bins, declared values of another column or a choice. "
                "Let it find the combinations of all columns: group_by(*columns, keys=dpf.discover(...))."
            )

    def _check_rollup(self) -> None:
        """Only sums of declared keys have subtotals that can be told apart from the cells."""
        if not self.keys.axes:
            raise InvalidArgument(
                "rollup must be left out of a single number, which has no subtotals. "
                'Write group_by("ward", keys=["A", "B"]).count(rollup=True).'
            )
        if any(isinstance(axis, BinAxis) for axis in self.keys.axes):
            raise InvalidArgument(
                "rollup must be left out of a histogram: its bins have no name for their total. "
                "Add up bins yourself, or group by declared keys."
            )
        if any(None in row for axis in self.keys.axes for row in getattr(axis, "rows", ())):
            raise InvalidArgument(
                "keys must not hold None with rollup=True, since None marks the rows of subtotals. "
                "Leave it out, or fill the column's missing values with a name of their own."
            )
        for name, statistic in self.statistics:
            if not statistic.adds_up:
                raise InvalidArgument(
                    f"rollup must be left out of a {statistic.verb} ({name}), which is not the sum of its parts. "
                    "Ask for dpf.count and dpf.sum of the column, and divide."
                )

    @cached_property
    def found(self) -> FoundAxis | None:
        """The keys that are still to be found; None where all are declared. Their units are measured in any case."""
        return found_axis(self.keys)

    @cached_property
    def chooses(self) -> bool:
        """Tell whether the answer is some of the cells, and not a number for each."""
        return any(statistic.chooses for _, statistic in self.statistics)

    @cached_property
    def by_choice(self) -> bool:
        """Tell whether cells are chosen by a mechanism for choices."""
        return any(statistic.by_choice for _, statistic in self.statistics)

    @cached_property
    def peels(self) -> int:
        """The number of cells that are chosen one after the other; 0 of a single choice, and where none is."""
        return max(statistic.peels for _, statistic in self.statistics)

    @property
    def forms(self) -> tuple[Query, ...]:
        """The ways to answer it, of which a plan takes one by public facts; of most questions there is one."""
        each = (statistic.forms(self.keys.cells) for _, statistic in self.statistics)
        names = [name for name, _ in self.statistics]
        found = tuple(tuple(zip(names, chosen, strict=True)) for chosen in product(*each))
        return tuple(self if one == self.statistics else replace(self, statistics=one) for one in found)

    def because(self, why: str) -> Query:
        """The same with the reason why a plan took this way."""
        return replace(self, statistics=tuple((name, one.because(why)) for name, one in self.statistics))

    @cached_property
    def by_name(self) -> Mapping[str, Statistic]:
        """The statistics by the names of their output columns."""
        return dict(self.statistics)

    def under(self, pure: bool) -> Query:
        """The same question in the form that suits pure noise, or Gaussian noise: what is measured may differ."""
        statistics = tuple((name, statistic.under(pure)) for name, statistic in self.statistics)
        return self if statistics == self.statistics else replace(self, statistics=statistics)

    @cached_property
    def uses_rows(self) -> bool:
        """Tell whether the rows of a unit count, and not only in which groups it has some."""
        return any(not total.per_unit for total in self.of_cells)

    @cached_property
    def uses_units(self) -> bool:
        """Tell whether some Total counts units, or clips what they add in all."""
        return any(total.per_unit for total in self.of_cells)

    @cached_property
    def groups(self) -> int:
        """The number of groups of rows: the cells, but where the last axis of the keys is inside of them."""
        return self.keys.cells // max(
            (total.vector.cells for total in self.of_cells if total.vector is not None), default=1
        )

    @property
    def one_group(self) -> bool:
        """Tell whether all rows of a unit are weighed as one group: a choice allows them in each option."""
        return self.by_choice or self.groups == 1

    @property
    def number_words(self) -> str:
        """The number of cells that are released, where some are chosen."""
        most = max(statistic.chosen for _, statistic in self.statistics)
        return "one" if most == 1 else f"{most:,} in order"

    @property
    def choice_facts(self) -> list[dict[str, Any]]:
        """The facts of a record on cells that were chosen, and why so."""
        return [said for _, statistic in self.statistics if (said := statistic.choice_facts()) is not None]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values say in which cell, or in which group, a row is."""
        return self.keys.columns if self.grouping is None else self.grouping.columns

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the result on rows that are in no cell."""
        return self.keys.notes() if self.grouping is None else self.grouping.notes()

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure; equal ones once."""
        return tuple(total.over(by) for by in self.groupings for total in self.of_cells)

    @cached_property
    def of_cells(self) -> tuple[Total, ...]:
        """Those over the declared cells; the others are sums of them."""
        asked = [total for _, statistic in self.statistics for total in statistic.totals()]
        return tuple(dict.fromkeys(asked if self.found is None else [self.found.people, *asked]))

    @cached_property
    def groupings(self) -> tuple[tuple[str, ...] | None, ...]:
        """The columns of each level of subtotals, after None for the cells themselves."""
        columns = self.keys.columns if self.rollup else ()
        return (None, *(columns[:count] for count in reversed(range(len(columns)))))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels of a rollup, in the order of `groupings`; none without."""
        return levels_of(self.keys) if self.rollup else ()

    def cells_of(self, total: Total) -> int:
        """The number of entries of the vector of a Total."""
        if total.vector is not None:
            return self.keys.cells // total.vector.cells * total.width
        if total.by is None:
            return self.keys.cells
        return self.levels[self.groupings.index(total.by)].size

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return sum(level.size for level in self.levels) if self.rollup else self.keys.cells

    def labels(self) -> Mapping[str, Any]:
        """The columns that name the rows of the result."""
        return labels_of(self.keys, self.levels) if self.rollup else self.keys.labels()

    def answer(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals, a row each."""
        parts = [statistic.answer({one: measured[one.over(by)] for one in statistic.totals()}) for by in self.groupings]
        return np.concatenate([values for values, _ in parts]), np.concatenate([errors for _, errors in parts])

    def more(self, statistic: Statistic, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Further columns of a statistic by the ends of their names."""
        return statistic.more({one: measured[one] for one in statistic.totals()}) if statistic.endings else {}

    def __str__(self) -> str:
        return harmless(self._words())  # it is printed and logged, and kept in ledgers

    def _words(self) -> str:
        if self.grouping is not None:
            return f"contributions(){self.grouping}"
        if self.chooses:
            return f"{self.statistics[0][1].choice_words} of {self.keys.axes[0]}"
        asked = ", ".join(str(statistic) for _, statistic in self.statistics)
        cells = " x ".join(str(axis) for axis in self.keys.axes)
        subtotals = ", with subtotals" if self.rollup else ""
        return f"{asked} by {cells}{subtotals}" if cells else asked
