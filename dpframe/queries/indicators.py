"""Indicators of what the bounds of a call leave out of each unit, and how one unit changes their counts.

Each indicator is 1 or 0 for a unit (or for a row, if each row is a unit), and depends on that unit's own rows alone.
The units that have it are counted over the whole table. So one unit changes each count by at most 1, and k counts by
at most k in the l_1 norm and sqrt(k) in the l_2 norm. Fewer change if each row is a unit that is added or removed: no
value is both below and above the bounds, so at most one of each such pair of counts changes. If a row is replaced,
both may, as from (1, 0) to (0, 1), but the number of units does not (``docs/assurance/privacy.md``, "Checks").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import EdgeKind
from dpframe.queries.keys import Keys
from dpframe.queries.where import reads_of

MOST_BETWEEN = 4  # columns whose flags fit the 16 bits of a row
What = Literal["below", "above", "present", "outside", "cut", "units"]
Counting = Literal["rows", "squares", "most rows", "groups"]


@dataclass(frozen=True)
class Between:
    """A column whose values are clipped to bounds or, with `of_units`, whose sums by unit and group are clipped."""

    column: str
    bounds: tuple[float, float]
    of_units: bool = False
    kind: EdgeKind = "number"  # the kind of the bounds; those of dates and times are integers, in nanoseconds


@dataclass(frozen=True)
class Clips:
    """The facts of a record on a check of values: the names of the clipped statistics, and the bounds as shown.

    The bounds are None if each group has its own.
    """

    measures: tuple[str, ...]
    bounds: tuple[float | str, float | str] | None


@dataclass(frozen=True)
class Rule:
    """A contribution bound: the rows of a unit count for less if `counting` of the unit is more than `most`."""

    words: str
    counting: Counting
    most: int


@dataclass(frozen=True)
class Indicator:
    """One count of a check: the column or rule, and what is counted of it."""

    of: str | None
    what: What


@dataclass(frozen=True)
class Checks:
    """The indicators of a call, derived from public facts alone.

    Parameters
    ----------
    keys : Keys
        The cells in which a row must be.
    inner : int
        The number of neighboring cells in one group of rows.
    among : str or None
        The column of a distribution function; only rows with a value of it are weighted.
    between : tuple of Between
        The columns that are clipped.
    outside : bool
        Whether rows may be in no cell.
    rules : tuple of Rule
        The rules by which units count for less.
    unit : PrivacyUnit
        The unit that is protected.
    clips : tuple of Clips
        The facts of a record on each of `between`.
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
        """The columns that the checks read, each once."""
        among = () if self.among is None else (self.among,)
        clipped = (name for each in self.between for name in reads_of(each.column))
        return tuple(dict.fromkeys([*self.keys.columns, *among, *clipped, *self.unit.columns]))

    @property
    def is_plain(self) -> bool:
        """True if flags of single rows suffice for the checks: of few columns of plain numbers.

        If each row is a unit, it does not matter which of them are weighted.
        """
        if any(each.kind != "number" for each in self.between):
            return False
        sums = self.among is not None or any(each.of_units for each in self.between)
        return self.unit.column is None or (not sums and len(self.between) <= MOST_BETWEEN)

    @property
    def indicators(self) -> tuple[Indicator, ...]:
        """The counts that are measured, in their order."""
        found = [Indicator(each.column, what) for each in self.between for what in ("below", "above")]
        found += [Indicator(column, "present") for column in dict.fromkeys(each.column for each in self.between)]
        found += [Indicator(None, "outside")] if self.outside else []
        found += [Indicator(rule.words, "cut") for rule in self.rules]
        return (*found, Indicator(None, "units")) if self.counts_units else tuple(found)

    @property
    def counts_units(self) -> bool:
        """True if some count is a share of all units, so that their number is measured too."""
        return self.outside or bool(self.rules)

    @property
    def moved(self) -> int:
        """The number of counts that one unit changes, each by 1: the l_1 norm, and the squared l_2 norm."""
        numbers = len(self.indicators)
        if self.unit.neighbors == "replace":
            return numbers - self.counts_units  # the number of units stays
        return numbers - len(self.between) if self.unit.column is None else numbers

    @property
    def finds(self) -> bool:
        """True if values may be clipped, or units count for less; only then are there checks by default."""
        return bool(self.between or self.rules)
