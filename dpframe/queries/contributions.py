"""The contributions of units: each falls in one cell of the grid "rows per unit x groups per unit".

**The weight of one unit** in each of its groups is exact, and does not depend on its number of rows there. A unit with
rows in t groups counts v(t) = floor(2**20 min(1, (K / t)**(1/p))) steps of 2**-20 in each of them, where K is the
number of groups in which it may count in full. So its whole contribution has l_p norm t**(1/p) v(t) <= 2**20 K**(1/p).

**Units as a sample**: the released numbers that estimate the population from which independent units are drawn.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, with_article
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis
from dpframe.queries.discovery import found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.sameness import agree
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import Sampled, told

LAST_POWER = 20  # the last cell of an axis holds 2**19 + 1 to 2**20, and everything above
EDGES = (1, 2, *(2**power + 1 for power in range(1, LAST_POWER + 1)))  # 1, 2, 3-4, 5-8, ...: half-open
ROWS, GROUPS = "rows", "groups"


@dataclass(frozen=True)
class Grouping:
    """The groups in which a call of `contributions` counts rows.

    Without columns, all rows are one group. Without keys, every distinct value of the column is a group (for several
    columns, every combination), and a missing value counts like any other.
    """

    columns: tuple[str, ...] = ()
    keys: Keys | None = None

    @property
    def most(self) -> int | None:
        """The largest number of groups that a unit can be in; None if only the rows determine it."""
        if not self.columns:
            return 1
        return None if self.keys is None else self.keys.cells

    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader on what counts as a row and as a group of a unit."""
        last = EDGES[-1] - 1
        above = f"the last cell of each axis holds more than {last:,} as well" if self.most is None else ""
        if not self.columns:
            return ("rows of a unit are all its rows", f"the last cell of rows holds more than {last:,} as well")
        if self.keys is None:
            by = ", ".join(self.columns)
            return (f"groups of a unit are its distinct values of {by}, a missing one among them", above)
        return (
            "rows of a unit are those in all declared groups; a unit with none is in no cell",
            f"the last cell of rows holds more than {last:,} as well",
        )

    def __str__(self) -> str:
        if self.keys is not None:
            return f" by {self.keys}"
        return f" by distinct {', '.join(self.columns)}" if self.columns else ""


@dataclass(frozen=True)
class UnitGrid(Keys):
    """The cells of a call of `contributions`; a unit's rows in the grouping determine its cell."""

    counted: ClassVar[Literal["rows", "units"]] = "units"

    grouping: Grouping = Grouping()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", self.grouping.columns)  # whose values determine the group of a row
        self.check()  # these too must be named once

    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader of the result on what is counted."""
        return self.grouping.notes()

    def __str__(self) -> str:
        return str(self.grouping)


def grouping_of(keys: Keys) -> Grouping:
    """Return the groups in which a call of `contributions` counts rows."""
    assert isinstance(keys, UnitGrid)
    return keys.grouping


def grid_of(grouping: Grouping) -> tuple[BinAxis, BinAxis]:
    """Return the axes of the answer: rows per unit, and groups per unit up to the largest possible number."""
    return BinAxis(ROWS, _edges(None), outside="clip"), BinAxis(GROUPS, _edges(grouping.most), outside="clip")


def _edges(most: int | None) -> tuple[float, ...]:
    edges: Sequence[int] = EDGES if most is None else EDGES[: bisect_right(EDGES, most) + 1]
    return tuple(map(float, edges))


Integers = NDArray[np.int64]

WHOLE_BITS = 20  # a unit that counts in full has 2**20 steps


def groups_of(unit: PrivacyUnit, cells: int) -> int:
    """Return K: the number of cells in which a unit may count in full."""
    return min(unit.contribution.max_groups, cells)


def counts_whole(unit: PrivacyUnit, cells: int) -> bool:
    """Return whether a unit may count in full in all cells; it then counts 1 in each, not 2**20 steps."""
    return groups_of(unit, cells) == cells


def unit_steps(groups: Integers, most: int, p: float) -> Integers:
    """Return v(t) for each number of groups t >= 1, for the norm p of 1, 2 or infinity, in exact integer arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> unit_steps(np.array([3, 4, 12]), 3, 2).tolist()
    [1048576, 908093, 524288]
    """
    different, position = np.unique(groups, return_inverse=True)
    steps = np.array([steps_of(number, most, p) for number in different.tolist()], dtype=np.int64)
    return np.asarray(steps[position.reshape(groups.shape)])


def steps_of(groups: int, most: int, p: float) -> int:
    """Return v(t) for one number of groups."""
    if groups <= most or p == math.inf:
        return 1 << WHOLE_BITS
    if p == 1:
        return (most << WHOLE_BITS) // groups
    return math.isqrt((most << 2 * WHOLE_BITS) // groups)  # floor(sqrt(floor(x))) is floor(sqrt(x))


@lru_cache(maxsize=64)
def key_weights(most_keys: int, most_groups: int, p: float) -> tuple[int, ...]:
    """Return v(t) for t = 1, 2, ..., the most keys that a unit keeps; 1 for each t if all of them count in full."""
    if most_keys <= most_groups:
        return (1,) * most_keys
    return tuple(unit_steps(np.arange(1, most_keys + 1), most_groups, p).tolist())


def as_array(weights: tuple[int, ...]) -> Integers:
    """Return the weights of `key_weights` as an array."""
    return np.array(weights, dtype=np.int64)


# statistics whose intervals can include sampling error
VERBS = ("count", "sum", "mean", "proportion", "n_units", "marginals")
OF_SIZES = ("count", "sum", "n_units", "marginals")  # depend on the number of units in a group
SELECTED = (
    "must be of declared groups for {asked}, and these were found by their number of units: groups of which a sample "
    "happens to hold few are not shown. Declare the groups, or ask for means and proportions alone."
)
SPREADS = ("variance", "std")  # allowed with `VERBS`, since they measure how far values differ
TABLE, POPULATION = "table", "population"  # what intervals cover: noise alone, or sampling error too
NAMED = "a count, sum, mean, proportion or n_units"


def of_population(name: str, statistic: Statistic) -> Statistic:
    """Return the statistic in the form that an interval for a population needs."""
    if statistic.verb not in (*VERBS, *SPREADS):
        raise InvalidArgument(
            f"population must be left out of {with_article(statistic.verb)} ({name}), whose interval for a population "
            "nobody knows here. Ask for it in a call of its own."
        )
    return statistic.of_population() if isinstance(statistic, Sampled) else statistic


def check_samples(query: Query, unit: PrivacyUnit) -> None:
    """Refuse, before anything is charged, a question whose intervals for a population would be unknown."""
    found = found_axis(query.keys) if query.keys.unknown else None
    for name, statistic in query.statistics:
        if found is not None and (statistic.verb in OF_SIZES or found.people in statistic.totals()):
            raise InvalidArgument(f"{name} {SELECTED.format(asked='population=True')}")
        if statistic.verb in VERBS:
            check_sample(name, said := told(statistic) or {}, unit, query.keys.cells, "population=True")
            _check_unit_sum(name, said, [told(other) or {} for _, other in query.statistics])


def _check_unit_sum(name: str, said: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a sum with unit bounds of both signs without the number of units, which its sampling error needs."""
    lower, upper = said.get("unit_bounds", (0.0, 0.0))
    if lower < 0.0 < upper and not any(one.get("verb") == "n_units" and counts_all(one, said) for one in every):
        raise InvalidArgument(
            f"{name} must come with the number of units for population=True, because its unit_bounds lie on both "
            "sides of 0. Ask for both in one call: "
            "agg(total=dpf.sum(..., unit_bounds=...), n=dpf.n_units(), population=True)."
        )


def counts_all(one: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Return whether a count, by the facts of its record, counts all rows or units that a sum adds up."""
    of_all = one["column"] in (None, said["column"]) and ("where" not in one or agree(one, said, "where"))
    return of_all and "weight" not in one  # a sum of weights is no number of rows


def check_sample(name: str, said: Mapping[str, Any], unit: PrivacyUnit, cells: int, asked: str) -> None:
    """Refuse a statistic, by the facts of its record, that is not one of an independent sample of units.

    A unit must add at most one row to a number. The rows that its bounds allow in several groups may all be in one
    group. So `max_rows` = 1 is not enough, unless the bounds allow only one group of the `cells`.
    """
    if said["verb"] not in VERBS:
        raise InvalidArgument(
            f"{name} must be {NAMED} for {asked}, and it is {with_article(said['verb'])}. "
            "Release the others in a call of their own."
        )
    if said.get("weight") is not None:
        raise InvalidArgument(
            f"{name} must be of rows that count alike for {asked}, and it has weight={said['weight']!r}. "
            "Release it without weight."
        )
    if "missing" in said:
        raise InvalidArgument(
            f"{name} must have missing='drop' for {asked}, and it has missing={said['missing']!r}: values that are put "
            "in place of missing ones are no sample. Release it without missing."
        )
    if "bounds_of_groups" in said:
        raise InvalidArgument(
            f"{name} must have one pair of bounds for {asked}, and each group has its own. Write bounds=(lower, upper)."
        )
    if unit.column is None or said["verb"] == "n_units" or "unit_bounds" in said:
        return
    groups = 1 if said["verb"] == "marginals" else groups_of(unit, cells)  # marginals weight a unit by all its rows
    if unit.max_rows == 1 == groups:
        return
    rows = f"up to {unit.max_rows * groups:,} rows" if unit.max_rows else "several rows"
    raise InvalidArgument(
        f"{name} must be of independent units for {asked}, and one {unit.one} has {rows} in it. "
        "Ask for n_units, for a sum with unit_bounds=, or write max_rows=1 and max_groups=1."
    )
