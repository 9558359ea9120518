"""The number of distinct values of a column, with a bound on the values for which one unit may be the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dpframe.errors import MissingArgument, how_many
from dpframe.exact import checked_whole
from dpframe.privacy import PrivacyUnit
from dpframe.queries.limits import check_column
from dpframe.queries.statistics.statistic import Statistic
from dpframe.queries.total import DistinctTotal, Total
from dpframe.queries.where import under_conditions

MOST_VALUES = 2**31


@dataclass(frozen=True, repr=False)
class NDistinct(Statistic):
    """The number of distinct values of a column. Made by `dpframe.n_distinct`.

    Each counted value is supported by a unit.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.n_distinct("product", max_values=3))
    n_distinct(product, at most 3 per unit)
    """

    verb: ClassVar[str] = "n_distinct"
    adds_up: ClassVar[bool] = False  # two groups may have the same values
    whole: ClassVar[bool] = True

    column: str
    max_values: int | None = None
    of_rows: bool = field(default=False, repr=False)  # whether each row is a unit

    def __post_init__(self) -> None:
        check_column(self.column)
        if self.max_values is not None:
            rule = "a whole number from 1 to 2**31"
            object.__setattr__(self, "max_values", checked_whole("max_values", self.max_values, 1, MOST_VALUES, rule))

    def by_rows(self) -> NDistinct:
        """Return the exact number, since each row has one value."""
        return replace(self, max_values=None, of_rows=True)

    def protecting(self, unit: PrivacyUnit) -> NDistinct:
        """Return the exact number if each row is a unit; otherwise, `max_values` is required."""
        if unit.column is None:
            return self.by_rows()
        if self.max_values is None:
            raise MissingArgument(
                f"max_values must be given for n_distinct of {self.column!r}: how many values each {unit.one} may "
                f"support. Write for instance n_distinct({self.column!r}, max_values=3), never taken from the data."
            )
        return self

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (DistinctTotal(self.column, self.max_values or 1, per_unit=not self.of_rows),)

    def notes(self, unit: PrivacyUnit, groups: int) -> tuple[str, ...]:
        """Return notes for the reader: the lower bound, and the groups in which a unit counts."""
        if self.of_rows:
            return ()
        most = self.max_values or 1
        values = how_many(most, "value")
        bound = (
            f"each {unit.one} supports at most {values} of {self.column}{'' if groups == 1 else ' in each group'}"
            f": the count is at most the true number of distinct values of {self.column}; the margins of error do not "
            "cover what is left out"
        )
        kept = min(unit.contribution.max_groups, groups)
        if kept == groups:
            return (bound,)
        of = how_many(kept, "group")
        return bound, f"values of each {unit.one} count in at most {of}, drawn at random for a unit in more"

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        known: dict[str, Any] = {"verb": self.verb, "column": self.column}
        return known if self.of_rows else known | {"max_values": self.max_values}

    def __str__(self) -> str:
        most = "" if self.max_values is None else f", at most {self.max_values:,} per unit"
        return f"{self.verb}({self.column}{most})"


def n_distinct(column: str, *, max_values: int | None = None, where: Mapping[str, Any] | None = None) -> NDistinct:
    """Count the distinct values of a column in `agg`: at most the true number.

    Parameters
    ----------
    column : str
        A column of any dtype that `group_by` takes. Nulls and NaN are no values; 0.0 and -0.0 are one.
    max_values : int
        The largest number of values that one unit may support in each group. Choose it from what you know, never from
        the data. You may leave it out if each row is a unit, which has one value.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    NDistinct
        A statistic for ``.dp.group_by(...).agg(...)``. Each counted value is assigned to a unit that holds it, with at
        most `max_values` values for each unit, so that the count is as large as possible. The count is **at most the
        true number** of distinct values. It is exact if each row is a unit.

    Raises
    ------
    InvalidArgument, InvalidType
        If `column` is not a string, or `max_values` is not a whole number from 1 to 2**31.

    Notes
    -----
    The count is a maximum flow from units to values (Knop and Steinke 2023, "Counting distinct elements under
    person-level differential privacy"). Its sensitivity in one group is `max_values`, whatever a unit holds. A unit
    keeps its values in at most `max_groups` groups, in its own random order, which is drawn anew for each release.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.n_distinct("product", max_values=3))
    n_distinct(product, at most 3 per unit)
    """
    return NDistinct(under_conditions(column, where), max_values)
