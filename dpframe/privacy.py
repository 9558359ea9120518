"""Who is protected and how much: the privacy unit, the privacy loss, and the price of a call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_column_name, shown
from dpframe.exact import checked_whole, exact_delta, exact_epsilon, exact_share, exactly, up


@dataclass(frozen=True)
class PrivacyUnit:
    """Who is protected: a row, or all the rows that share a value of one column.

    Parameters
    ----------
    column : str, optional
        The column that names the person (or household, device, ...). Without it each row is a unit.
    max_rows : int
        How many rows of one unit may count within a group at full weight.
    max_groups : int
        How many groups (or bins: rows of the result) one unit may sway at full weight.
    neighbors : {"add-remove", "replace"}
        Two data sets are neighboring when one unit is added or removed, or when one is replaced by another.
    nulls : {"drop", "one-unit"}
        Rows whose unit is missing are left out, or belong to one unit together.

    Raises
    ------
    InvalidArgument, InvalidType
        If a value breaks its rule, or `max_rows` and `max_groups` are not 1 where there is no column.

    Notes
    -----
    A unit with more rows than this is not cut off: all its rows count with one weight below 1
    (see ``docs/privacy.md``), so answers lean toward units with few rows.

    Examples
    --------
    >>> import dpframe as dpf
    >>> unit = dpf.PrivacyUnit(column="patient", max_rows=3, max_groups=2)
    >>> print(unit)
    each value of 'patient' (at most 3 rows in each of 2 groups at full weight), add-remove neighbors
    """

    column: str | None = None
    max_rows: int = 1
    max_groups: int = 1
    neighbors: Literal["add-remove", "replace"] = "add-remove"
    nulls: Literal["drop", "one-unit"] = "drop"

    def __post_init__(self) -> None:
        if self.column is not None and not isinstance(self.column, str):
            raise InvalidType(f"column must be the name of the unit's column, not {shown(self.column)}.")
        for name in ("max_rows", "max_groups"):
            rows = checked_whole(name, getattr(self, name), 1, 2**31, "a whole number from 1 to 2**31")
            object.__setattr__(self, name, rows)
        for name, allowed in (("neighbors", ("add-remove", "replace")), ("nulls", ("drop", "one-unit"))):
            if getattr(self, name) not in allowed:
                raise InvalidArgument(
                    f"{name} must be {allowed[0]!r} or {allowed[1]!r}, not {shown(getattr(self, name))}."
                )
        if self.column is None and (self.max_rows, self.max_groups) != (1, 1):
            raise InvalidArgument(
                "max_rows and max_groups must be 1 without a column: each row is then a unit of its own. "
                "Name the column that says whose row it is: PrivacyUnit(column=..., max_rows=...)."
            )

    def __str__(self) -> str:
        if self.column is None:
            return f"each row, {self.neighbors} neighbors"
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"
        groups = "1 group" if self.max_groups == 1 else f"each of {self.max_groups} groups"
        return f"each value of {self.column!r} (at most {rows} in {groups} at full weight), {self.neighbors} neighbors"


@dataclass(frozen=True)
class PrivacyLoss:
    """An (epsilon, delta) pair for people to read; what was spent is rounded up, what remains down.

    Parameters
    ----------
    epsilon : float
        The privacy loss that holds except with probability about `delta`.
    delta : float
        0 for pure differential privacy.

    Notes
    -----
    Definition 2.4 of Dwork and Roth, "The Algorithmic Foundations of Differential Privacy" (2014).
    Losses do not simply add up: only a ledger's accounting may add them. What is no float is rounded up to one.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.PrivacyLoss(1.0, 1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            if type(getattr(self, name)) is not float or not getattr(self, name) >= 0.0:
                object.__setattr__(self, name, _loss(name, getattr(self, name)))

    def __str__(self) -> str:
        epsilon = f"epsilon {self.epsilon:.6g}"
        return f"{epsilon}, delta {self.delta:.6g}" if self.delta else epsilon

    @property
    def digits(self) -> str:
        """As text with every digit, where six of them do not tell two losses apart."""
        return f"epsilon {self.epsilon!r}, delta {self.delta!r}" if self.delta else f"epsilon {self.epsilon!r}"


@dataclass(frozen=True)
class Price:
    """What the caller offers for one call: epsilon (and delta), or a share of the ledger's limit."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    share: Fraction | None = None

    @classmethod
    def of(cls, epsilon: object, delta: object, share: object) -> Price:
        """Check the caller's words; exactly one of `epsilon` and `share` must be given."""
        if epsilon is None and share is None:
            raise MissingArgument(
                "epsilon must be given (or share=, or within= an error): privacy has no default price. "
                "Write for instance epsilon=0.5."
            )
        if epsilon is not None and share is not None:
            raise InvalidArgument(
                f"epsilon and share must not both be given (epsilon={shown(epsilon)}, share={shown(share)}): "
                "each is the price of the whole call. Keep one."
            )
        if share is not None:
            if delta is not None:
                raise InvalidArgument(
                    "delta must not be given with share: a share takes its part of the ledger's delta."
                )
            return cls(share=exact_share(share))
        return cls(exact_epsilon(epsilon), None if delta is None else exact_delta(delta))


def _loss(argument: str, value: object) -> float:
    """A loss as a Python float, rounded up: it is not understated."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    found = up(exactly(argument, value, "a number of at least 0", typed=False))
    if found < 0.0:
        raise InvalidArgument(f"{argument} must be a number of at least 0, not {shown(value)}.")
    return found


def checked_unit(unit: object) -> PrivacyUnit | None:
    """Refuse what is not a PrivacyUnit."""
    if unit is not None and not isinstance(unit, PrivacyUnit):
        raise InvalidType(f"unit must be a dpf.PrivacyUnit, not {shown(unit)}. Write dpf.PrivacyUnit(column=...).")
    if unit is not None and unit.column is not None:  # here, since older ledgers are read whatever theirs is
        checked_column_name("column", unit.column)
    return unit
