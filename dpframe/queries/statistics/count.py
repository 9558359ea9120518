"""The number of rows, or of present values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpframe.queries.statistics.statistic import Counted
from dpframe.queries.total import Total


@dataclass(frozen=True)
class Count(Counted):
    """The number of rows; or, of a column, of values that are present. Made by `dpframe.count`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.count("age").default_name
    'count'
    """

    verb: ClassVar[str] = "count"

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (Total(self.column),)


def count(column: str | None = None) -> Count:
    """Ask for the number of rows, or of the values of a column that are present.

    Parameters
    ----------
    column : str, optional
        Count the values of this column that are neither null nor NaN; without it, count rows.

    Returns
    -------
    Count
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    InvalidType
        If `column` is not a string.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.count(), dpf.count("age"))
    count() count(age)
    """
    return Count(column)
