"""The privacy unit, the privacy loss, and the cost of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from dpframe.errors import (
    InvalidArgument,
    InvalidType,
    MissingArgument,
    checked_column_name,
    is_one_of,
    listed,
    shown,
    with_article,
)
from dpframe.errors.tracebacks import constructed
from dpframe.exact import checked_whole, exact_delta, exact_epsilon, exact_share, exactly, up

MOST_BOUND = 2**31
WEAK_EPSILON, WEAK_DELTA = 10, 0.001  # above these, protection is weak, and dpframe warns
NO_BOUNDS = (
    "max_rows or max_groups must be given, because the ledger protects each {column}. "
    "Write max_rows=3, max_groups=2, or estimate them with df.dp.contributions(epsilon=0.05)."
)
NO_COLUMN = (
    "max_rows and max_groups must be left out without a column: each row is then a unit of its own. "
    'Name the column that identifies the person: unit="patient", or PrivacyUnit(column=..., max_rows=...).'
)


@dataclass(frozen=True)
class Contribution:
    """Contribution bounds: the rows per group, and the groups, that one unit contributes at full weight."""

    max_rows: int = 1
    max_groups: int = 1


@constructed
@dataclass(frozen=True)
class PrivacyUnit:
    """The unit that is protected: a row, or all rows of one person.

    Parameters
    ----------
    column : str or list of str, optional
        The column that identifies the person (or household, device, ...): rows with the same value are one unit. With
        several columns, such as ``["household", "member"]``, each combination of their values is a unit. Without it
        each row is a unit.
    neighbors : {"add-remove", "replace"}
        Neighboring data sets differ by one unit that is added or removed, or by one that is replaced by another.
    nulls : {"drop", "one-unit"}
        Rows whose unit is missing are left out, or together belong to one unit. With several columns, the unit is
        missing if the value of any is.
    max_rows : int, optional
        How many rows of one unit count within a group at full weight, if a call does not say it.
    max_groups : int, optional
        To how many groups (or bins: rows of the result) one unit contributes at full weight, if a call does not say
        it.

    Raises
    ------
    InvalidArgument, InvalidType
        If a value breaks its rule, if `max_rows` or `max_groups` is given without a column, or if a list of columns
        is empty or names one twice.

    Notes
    -----
    A unit with more rows than this loses none of them: all its rows count with one weight below 1
    (see ``docs/assurance/privacy.md``), so answers lean toward units with few rows. The best bounds differ between
    queries, so every call takes its own `max_rows` and `max_groups`; a ledger protects the same unit whatever they
    are. If only one of them is given, by the call or here, the other is 1.

    Examples
    --------
    >>> import dpframe as dpf
    >>> unit = dpf.PrivacyUnit(column="patient", max_rows=3, max_groups=2)
    >>> print(unit)
    each value of 'patient' (at most 3 rows in each of 2 groups at full weight), add-remove neighbors
    >>> print(dpf.PrivacyUnit("patient"))
    each value of 'patient', add-remove neighbors
    >>> print(dpf.PrivacyUnit(["household", "member"]))
    each combination of 'household' and 'member', add-remove neighbors
    """

    column: str | Sequence[str] | None = None
    _: KW_ONLY
    neighbors: Literal["add-remove", "replace"] = "add-remove"
    nulls: Literal["drop", "one-unit"] = "drop"
    max_rows: int | None = None
    max_groups: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _checked_columns("column", self.column))
        for name in ("max_rows", "max_groups"):
            object.__setattr__(self, name, checked_bound(name, getattr(self, name)))
        for name, allowed in (("neighbors", ("add-remove", "replace")), ("nulls", ("drop", "one-unit"))):
            if not is_one_of(getattr(self, name), allowed):
                raise InvalidArgument(
                    f"{name} must be {allowed[0]!r} or {allowed[1]!r}, not {shown(getattr(self, name))}."
                )
        if self.column is None and self.is_bounded:
            raise InvalidArgument(NO_COLUMN)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that name the unit together, or none if each row is a unit."""
        return () if self.column is None else (self.column,) if isinstance(self.column, str) else tuple(self.column)

    @property
    def one(self) -> str:
        """The noun for one unit: a row, the name of its column, or a combination of several."""
        return noun_of(self.column)

    @property
    def without(self) -> str:
        """The rows without a unit, as text."""
        if len(self.columns) > 1:
            return f"rows in which {listed(self.columns, 'or')} is missing"
        return f"rows without {with_article(self.one)}"

    @property
    def is_bounded(self) -> bool:
        """True if the unit has contribution bounds."""
        return self.max_rows is not None or self.max_groups is not None

    @property
    def contribution(self) -> Contribution:
        """The contribution bounds, 1 if only the other is given or each row is a unit; MissingArgument without any."""
        if self.column is not None and not self.is_bounded:
            raise MissingArgument(NO_BOUNDS.format(column=self.one))
        return Contribution(self.max_rows or 1, self.max_groups or 1)

    @property
    def whole(self) -> PrivacyUnit:
        """The same unit with both bounds as they are used; a unit without a column has none."""
        bounds = self.contribution
        return self if self.column is None else self._with(bounds.max_rows, bounds.max_groups)

    @property
    def who(self) -> PrivacyUnit:
        """The same unit without bounds, which a ledger requires of every call."""
        return self._with(None, None)

    def bounded(self, max_rows: int | None, max_groups: int | None) -> PrivacyUnit:
        """Return the unit with each given bound of a question in place of its own; refused if each row is a unit."""
        if self.column is None and (max_rows is not None or max_groups is not None):
            raise InvalidArgument(NO_COLUMN)
        if max_rows is None and max_groups is None:
            return self
        rows = self.max_rows if max_rows is None else max_rows
        return self._with(rows, self.max_groups if max_groups is None else max_groups)

    def _with(self, max_rows: int | None, max_groups: int | None) -> PrivacyUnit:
        return replace(self, max_rows=max_rows, max_groups=max_groups)

    def facts(self) -> dict[str, Any]:
        """Return the facts for entries and records, with the bounds that are used, or null if there are none."""
        bounds = self.contribution if self.column is None or self.is_bounded else None
        return {
            "column": self.column if len(self.columns) < 2 else list(self.columns),
            "max_rows": bounds and bounds.max_rows,
            "max_groups": bounds and bounds.max_groups,
            "neighbors": self.neighbors,
            "nulls": self.nulls,
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> PrivacyUnit:
        """Return the unit of these facts; dpframe 0.1 always wrote both bounds, 1 and 1 for rows."""
        if facts["column"] is None and all(facts[name] in (None, 1) for name in ("max_rows", "max_groups")):
            return cls(neighbors=facts["neighbors"], nulls=facts["nulls"])
        return cls(**facts)

    def __dir__(self) -> list[str]:
        """Return the parameters; the other names are for plans and records."""
        internal = {"bounded", "columns", "contribution", "facts", "is_bounded", "of_facts", "one", "who", "whole"}
        internal |= {"without", "words"}
        return [name for name in super().__dir__() if name not in internal]

    def words(self, *, rows: bool = True, in_all: bool = False) -> str:
        """Return the unit as text.

        Without `rows`, its bound on rows is left out, because no number uses it. With `in_all`, it bounds the rows of
        all groups and periods together, as in a stream, and no row has a lower weight.
        """
        if self.column is None:
            return f"each row, {self.neighbors} neighbors"
        names = [repr(name) for name in self.columns]
        who = f"each value of {names[0]}" if len(names) == 1 else f"each combination of {listed(names, 'and')}"
        if not self.is_bounded:
            return f"{who}, {self.neighbors} neighbors"
        bounds, one = self.contribution, self.contribution.max_groups == 1
        if rows:
            groups = "1 group" if one else f"each of {bounds.max_groups} groups"
            where = "in all" if in_all else f"in {groups} at full weight"
            most = f"at most {bounds.max_rows} row{'' if bounds.max_rows == 1 else 's'} {where}"
        else:
            most = f"in at most {bounds.max_groups} group{'' if one else 's'} at full weight"
        return f"{who} ({most}), {self.neighbors} neighbors"

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True)
class PrivacyLoss:
    """An (epsilon, delta) pair for people to read; spent is rounded up, remaining down.

    Parameters
    ----------
    epsilon : float
        The probability of any set of results differs by a factor of at most e^epsilon, apart from `delta`.
    delta : float
        0 for pure differential privacy.

    Notes
    -----
    Definition 2.4 of Dwork and Roth, "The Algorithmic Foundations of Differential Privacy" (2014).
    Losses do not simply add up: only the accounting of a ledger may add them. Other numbers are rounded up to a float.

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
        """The text with every digit, for losses that six digits do not distinguish."""
        return f"epsilon {self.epsilon!r}, delta {self.delta!r}" if self.delta else f"epsilon {self.epsilon!r}"


@dataclass(frozen=True)
class Price:
    """The cost that one call offers: epsilon (and delta), or a share of the ledger's limit."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    share: Fraction | None = None

    @classmethod
    def of(cls, epsilon: object, delta: object, share: object) -> Price:
        """Check the caller's arguments; exactly one of `epsilon` and `share` must be given."""
        if epsilon is None and share is None:
            raise MissingArgument(
                "epsilon must be given (or share=, or within= an error): it has no default. "
                "Write for instance epsilon=0.5."
            )
        if epsilon is not None and share is not None:
            raise InvalidArgument(
                f"epsilon and share must not both be given (epsilon={shown(epsilon)}, share={shown(share)}): "
                "each is the cost of the whole call. Keep one."
            )
        if share is not None:
            if delta is not None:
                raise InvalidArgument(
                    "delta must not be given with share: a share takes its part of the ledger's delta."
                )
            return cls(share=exact_share(share))
        return cls(exact_epsilon(epsilon), None if delta is None else exact_delta(delta))


def _loss(argument: str, value: object) -> float:
    """Return a loss as a Python float, rounded up, so that it is not understated."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    loss = up(exactly(argument, value, "a number of at least 0", typed=False))
    if loss < 0.0:
        raise InvalidArgument(f"{argument} must be a number of at least 0, not {shown(value)}.")
    return loss


def checked_bound(name: str, value: object) -> int | None:
    """Return a contribution bound, or None if it is not given."""
    return None if value is None else checked_whole(name, value, 1, MOST_BOUND, "a whole number from 1 to 2**31")


def noun_of(column: str | Sequence[str] | None) -> str:
    """Return the noun for a unit of these columns, as facts have them."""
    if column is None:
        return "row"
    return column if isinstance(column, str) else f"combination of {listed(column, 'and')}"


def beyond_first(unit: PrivacyUnit, most: int) -> str:
    """Return which rows of a unit count as missing: "of an hour beyond the first 2"."""
    return f"of {with_article(unit.one)} beyond the first{'' if most == 1 else f' {most:,}'}"


def _checked_columns(argument: str, column: Any) -> str | tuple[str, ...] | None:
    """Return the name of the unit's column, or the names of several; a list of one name becomes the name."""
    if column is None or isinstance(column, str):
        return column
    if not isinstance(column, list | tuple) or not all(isinstance(name, str) for name in column):
        raise InvalidType(f"{argument} must be the name of the unit's column, or a list of names, not {shown(column)}.")
    if not column:
        raise InvalidArgument(
            f"{argument} must name at least one column, unlike {shown(column)}. Leave it out to protect each row."
        )
    if (twice := next((name for name in column if column.count(name) > 1), None)) is not None:
        raise InvalidArgument(f"{argument} must name each column once, but {shown(twice)} stands twice. Drop one.")
    return str(column[0]) if len(column) == 1 else tuple(map(str, column))


def checked_unit(unit: object) -> PrivacyUnit | None:
    """Return a PrivacyUnit; a string names its column, and a list of strings its columns."""
    if isinstance(unit, str | list | tuple):
        unit = PrivacyUnit(_checked_columns("unit", unit))
    if unit is not None and not isinstance(unit, PrivacyUnit):
        raise InvalidType(
            f"unit must be the name of a column, a list of names or a dpf.PrivacyUnit, not {shown(unit)}. "
            'Write unit="patient", or dpf.PrivacyUnit(column=...).'
        )
    if unit is not None:  # only here, since older ledgers may have any name
        for name in unit.columns:
            checked_column_name("column", name)
    return unit
