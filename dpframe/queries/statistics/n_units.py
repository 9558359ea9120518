"""The number of units: people rather than rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dpframe.errors import InvalidArgument
from dpframe.errors.tracebacks import trimmed
from dpframe.privacy import PrivacyUnit
from dpframe.queries.statistics.statistic import Counted
from dpframe.queries.total import RowsTotal, Total, UnitsTotal
from dpframe.queries.where import under_conditions


@dataclass(frozen=True, repr=False)
class NUnits(Counted):
    """The number of units with a row in a group. Made by `dpframe.n_units`.

    With a column, it is the number of units with a present value.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.n_units().default_name
    'n_units'
    """

    verb: ClassVar[str] = "n_units"
    adds_up: ClassVar[bool] = False  # a unit may be in several groups
    of_rows: bool = field(default=False, repr=False)  # whether each row is a unit
    or_rows: bool = field(default=False, repr=False)  # whether rows count if no column is protected

    def protecting(self, unit: PrivacyUnit) -> NUnits:
        """Return the number of units; refused if no column identifies them."""
        if unit.column is None and not self.or_rows:
            raise InvalidArgument(
                "unit must have a column for n_units, but the ledger protects each row: use count(), or "
                "Ledger(unit=...) with the column that identifies the person."
            )
        return self

    def by_rows(self) -> NUnits:
        """Return the number of rows, since each row is a unit."""
        return replace(self, of_rows=True)

    @property
    def counts(self) -> str:
        """The kind of thing that is counted, for records."""
        return "units"

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (RowsTotal(self.column) if self.of_rows else UnitsTotal(self.column),)


@trimmed
def n_units(column: str | None = None, *, where: Mapping[str, Any] | None = None) -> NUnits:
    """Count units, such as people, with a row in a group, in `agg`.

    Parameters
    ----------
    column : str, optional
        Count the units with a value of this column that is neither null nor NaN. By default, count those with a row.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    NUnits
        A statistic for ``.dp.group_by(...).agg(...)``. A unit in more groups than `max_groups` counts for less in each;
        its number of rows has no effect. A ledger that protects each row is refused: use `dpframe.count`.

    Raises
    ------
    InvalidArgument, InvalidType
        If `column` is not a string, or `where` breaks its rule.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.n_units(), dpf.n_units("age"))
    n_units() n_units(age)
    """
    return NUnits(under_conditions(column, where))
