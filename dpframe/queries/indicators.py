"""Indicators of what the bounds of a call leave out, each of units, and how one unit moves their numbers.

Each indicator is 1 or 0 for a unit (for a row, where each row is one), by that unit's own rows alone, and the number of
units that have it is counted over the whole table. So one unit moves each number by at most 1, and k numbers by at most
k in the l_1 norm and by sqrt(k) in the l_2 norm. Fewer move where each row is a unit that is added or removed: a value
is not below the bounds and above them, so of each such pair one number moves. Where a row is replaced both may, as from
(1, 0) to (0, 1), and the number of units itself does not (``docs/assurance/privacy.md``, "Checks").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import EdgeKind
from dpframe.queries.keys import Keys
from dpframe.queries.where import reads_of

MOST_BETWEEN = 4  # columns whose flags a row has in 16 bits
What = Literal["below", "above", "present", "outside", "cut", "units"]
Counting = Literal["rows", "squares", "most rows", "groups"]


@dataclass(frozen=True)
class Between:
    """A column whose values are clipped to bounds, or what a unit adds of it to a group in all."""

    column: str
    bounds: tuple[float, float]
    of_units: bool = False
    kind: EdgeKind = "number"  # of edges of bins, which may be integers: nanoseconds


@dataclass(frozen=True)
class Clips:
    """The facts that a record has of a check of values: who is clipped so, by name, and the bounds as they are shown.

    The bounds are None where each group has its own.
    """

    measures: tuple[str, ...]
    bounds: tuple[float | str, float | str] | None


@dataclass(frozen=True)
class Rule:
    """A rule by which the rows of a unit count for less: what is counted of the unit is more than `most`."""

    words: str
    counting: Counting
    most: int


@dataclass(frozen=True)
class Indicator:
    """One number of a check: of which column or rule, and what of it."""

    of: str | None
    what: What


@dataclass(frozen=True)
class Checks:
    """The indicators of a call, from public facts alone.

    Parameters
    ----------
    keys : Keys
        The cells in which a row must be.
    inner : int
        How many neighboring cells are one group of rows.
    among : str or None
        A column of which a row must have a value to be weighed: that of a distribution function.
    between : tuple of Between
        What is clipped.
    outside : bool
        Whether rows may be in no cell.
    rules : tuple of Rule
        By what units count for less.
    unit : PrivacyUnit
        Who is protected.
    clips : tuple of Clips
        Of each of `between`, what a record says of it.
    """

    keys: Keys
    inner: int
    among: str | None
    between: tuple[Between, ...]
    outside: bool
    rules: tuple[Rule, ...]
    unit: PrivacyUnit
    clips: tuple[Clips, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        among = () if self.among is None else (self.among,)
        clipped = (name for each in self.between for name in reads_of(each.column))
        return tuple(dict.fromkeys([*self.keys.columns, *among, *clipped, *self.unit.columns]))

    @property
    def is_plain(self) -> bool:
        """Tell whether all of it can be told by flags of rows: of some columns of plain numbers, each row by itself.

        Where rows are units of their own, it does not matter which of them are weighed.
        """
        if any(each.kind != "number" for each in self.between):
            return False
        sums = self.among is not None or any(each.of_units for each in self.between)
        return self.unit.column is None or (not sums and len(self.between) <= MOST_BETWEEN)

    @property
    def indicators(self) -> tuple[Indicator, ...]:
        """The numbers that are measured, in their order."""
        found = [Indicator(each.column, what) for each in self.between for what in ("below", "above")]
        found += [Indicator(column, "present") for column in dict.fromkeys(each.column for each in self.between)]
        found += [Indicator(None, "outside")] if self.outside else []
        found += [Indicator(rule.words, "cut") for rule in self.rules]
        return (*found, Indicator(None, "units")) if self.counts_units else tuple(found)

    @property
    def counts_units(self) -> bool:
        """Tell whether something is a share of all units, whose number is measured then too."""
        return self.outside or bool(self.rules)

    @property
    def moved(self) -> int:
        """The number of the numbers that one unit moves, each by 1: the squared l_2 norm, and the l_1 norm."""
        numbers = len(self.indicators)
        if self.unit.neighbors == "replace":
            return numbers - self.counts_units  # the number of units stays
        return numbers - len(self.between) if self.unit.column is None else numbers

    @property
    def finds(self) -> bool:
        """Tell whether values may be clipped, or units count for less: what is checked where nobody says otherwise."""
        return bool(self.between or self.rules)
