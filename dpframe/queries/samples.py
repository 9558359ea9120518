"""Released numbers of an independent sample of units, which tell of the population behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import groups_of
from dpframe.queries.discovery import found_axis
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import Sampled

VERBS = (
    "count",
    "sum",
    "mean",
    "proportion",
    "n_units",
    "marginals",
)  # whose intervals can hold the chance of a sample
SPREADS = ("variance", "std")  # which may stand beside them, and tell how far values differ
TABLE, POPULATION = "table", "population"  # what intervals cover: the noise alone, or a sample of a population too
NAMED = "a count, sum, mean, proportion or n_units"


def of_population(name: str, statistic: Statistic) -> Statistic:
    """The statistic with what an interval of a population needs of it."""
    if statistic.verb not in (*VERBS, *SPREADS):
        raise InvalidArgument(
            f"population must be left out of a {statistic.verb} ({name}), whose interval for a population nobody knows "
            "here. Ask for it in a call of its own."
        )
    return statistic.of_population() if isinstance(statistic, Sampled) else statistic


def check_samples(query: Query, unit: PrivacyUnit) -> None:
    """Refuse a question of which no interval for a population will be known, before anything is charged."""
    found = found_axis(query.keys) if query.keys.unknown else None
    for name, statistic in query.statistics:
        if found is not None and found.people in statistic.totals():
            raise InvalidArgument(
                f"population must be left out where groups are found by their counts, as they are by {name}. "
                "Declare the groups."
            )
        if statistic.verb in VERBS:
            check_sample(name, statistic.facts() or {}, unit, query.keys.cells, "population=True")


def check_sample(name: str, said: Mapping[str, Any], unit: PrivacyUnit, cells: int, asked: str) -> None:
    """Refuse a statistic, by the facts of its record, that is none of an independent sample of units.

    A unit must add no more than one row to a number. Rows that its bounds allow in other groups count in full in one
    group too: so it is not enough that `max_rows` is 1, unless one group of the `cells` is all that is allowed.
    """
    if said["verb"] not in VERBS:
        raise InvalidArgument(
            f"{name} must be {NAMED} for {asked}, and it is a {said['verb']}. "
            "Release the others in a call of their own."
        )
    if said.get("weight") is not None:
        raise InvalidArgument(
            f"{name} must be of rows that count alike for {asked}, and it has weight={said['weight']!r}. "
            "Release it without weight."
        )
    if "bounds_of_groups" in said:
        raise InvalidArgument(
            f"{name} must have one pair of bounds for {asked}, and each group has its own. Write bounds=(lower, upper)."
        )
    if unit.column is None or said["verb"] == "n_units" or "unit_bounds" in said:
        return
    groups = 1 if said["verb"] == "marginals" else groups_of(unit, cells)  # marginals weigh a unit by all its rows
    if unit.max_rows == 1 == groups:
        return
    rows = f"up to {unit.max_rows * groups:,} rows" if unit.max_rows else "several rows"
    raise InvalidArgument(
        f"{name} must be of independent units for {asked}, and one {unit.one} has {rows} in it. "
        "Ask for n_units, for a sum with unit_bounds=, or write max_rows=1 and max_groups=1."
    )
