"""Capabilities: what only a few statistics do, in addition to the few members that all statistics have.

A statistic has a capability as soon as it has its members; nobody else is asked. Choices alone are classes, for
anyone who chooses answers several questions at once, most of them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import Statistic
from dpframe.queries.total import Measured, Noise, Total


class Deciding:
    """One that a mechanism for choices may answer, in place of noisy numbers: a quantile, a mode, a top-k."""

    @property
    def by_choice(self) -> bool:
        """Tell whether it is chosen by such a mechanism, and not by noisy numbers."""
        return True

    @property
    def rank(self) -> float | None:
        """The quantile that is chosen by ranks; None of any other choice."""
        return None

    @property
    def peels(self) -> int:
        """The number of cells that are chosen one after the other at one cost; 0 of a single choice, or of none."""
        return 0

    def as_choice(self) -> Statistic | None:
        """The form that is chosen as a whole, which ``mechanism="exponential"`` asks for; None where it has none."""
        return None

    def because(self, why: str) -> Self:
        """The same with the reason why a plan took this way."""
        return self

    def choice_facts(self) -> dict[str, Any] | None:
        """The facts of a record on the choice; None where there is nothing to tell."""
        return None


class Choosing(Deciding):
    """One that releases some of the declared cells, and not a number for each."""

    @property
    def chosen(self) -> int:
        """The number of cells that it releases."""
        return 1

    @property
    def numbered(self) -> bool:
        """Tell whether numbers of the chosen cells are released too."""
        return False

    @property
    def choice_words(self) -> str:
        """The cells that are released."""
        return "most common"

    def forms(self, options: int) -> tuple[Statistic, ...]:
        """The ways to choose among so many cells, of which a plan takes one by public facts: itself alone."""
        assert isinstance(self, Statistic)
        return (self,)


ONE_CELL = Choosing()


def choosing(statistic: Statistic) -> Choosing | None:
    """The choice of a statistic that releases some of the cells; None where it releases a number for each."""
    if isinstance(statistic, Choosing):
        return statistic
    return ONE_CELL if getattr(statistic, "chooses", False) else None


class Capability(ABC):  # noqa: B024, what is abstract are the members of each
    """Members that make a statistic one of those that have them, whatever its class inherits.

    It is asked often, so that it is asked of the class, which ABC remembers: a Protocol would look at each object.
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        fields = getattr(kind, "__dataclass_fields__", ())
        return all(hasattr(kind, name) or name in fields for name in cls.__abstractmethods__)


class Adapting(Capability):
    """One that has a form for pure noise and one for Gaussian noise."""

    @abstractmethod
    def under(self, pure: bool) -> Statistic:
        """The same in the form for pure noise or, else, for Gaussian noise: what it measures may differ."""


class Sharing(Capability):
    """One that may be read off what others measure."""

    @abstractmethod
    def beside(self, totals: Sequence[Total]) -> Statistic:
        """The same, read off what others of the call measure where that is exact; else itself."""


class OfUnits(Capability):
    """One that asks about units, and so is simpler where each row is one."""

    @abstractmethod
    def by_rows(self) -> Statistic:
        """The same where each row is a unit."""


class Protecting(Capability):
    """One that depends on which unit is protected."""

    @abstractmethod
    def protecting(self, unit: PrivacyUnit) -> Statistic:
        """The same in the form that suits the unit; refused where it lacks what such a unit needs."""


class Noting(Capability):
    """One that leaves something out of a unit."""

    @abstractmethod
    def notes(self, unit: PrivacyUnit, groups: int) -> tuple[str, ...]:
        """Notes for the reader on what it leaves out of a unit; `groups` is the number of all groups."""


class Weighing(Capability):
    """One whose Totals take unequal parts of its cost."""

    @abstractmethod
    def weights(self) -> tuple[int | Fraction, ...]:
        """The part of its cost that each of its Totals takes, relative to the others; as public as they are."""


class Sampled(Capability):
    """One that may measure squares as well, from which it follows how far chance moves it in a sample."""

    @abstractmethod
    def of_population(self) -> Statistic:
        """The same with squares."""

    @abstractmethod
    def answering(self) -> tuple[Total, ...]:
        """The Totals that its answer is read off."""

    @abstractmethod
    def squared(self) -> Total | None:
        """The Total of squares next to them, the last of its Totals; None where these tell them, or none are asked."""


def answering_and_squares(statistic: Statistic) -> tuple[tuple[Total, ...], tuple[Total, ...]]:
    """The Totals that the answer of a statistic is read off, and that of squares next to them, if there is one."""
    if not isinstance(statistic, Sampled):
        return statistic.totals(), ()
    squared = statistic.squared()
    return statistic.answering(), () if squared is None else (squared,)


class Fitting(Capability):
    """One with a denoiser of its own."""

    @abstractmethod
    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str] | None:
        """The values by that denoiser, and what it does as text; None where it was not asked for."""


class MoreColumns(Capability):
    """One that releases further columns, such as the ends of an interval."""

    @property
    @abstractmethod
    def endings(self) -> tuple[str, ...]:
        """The ends of their names, such as ``_low``."""

    @abstractmethod
    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """The further columns, by the ends of their names."""


class Labelled(Capability):
    """One that has several rows in each group."""

    @property
    @abstractmethod
    def axes(self) -> tuple[KeyAxis, ...]:
        """The labels of these rows."""


@dataclass(frozen=True)
class PlanRow:
    """A table of a result in a plan: its name, its share of the cost, the scale of its noise, and its error."""

    measures: str
    share: float
    scale: float
    error: float


class Resolving(Capability):
    """One with axes of its own, which the schema has a say in."""

    @abstractmethod
    def resolved(self, checked: Callable[[Any], Any]) -> Statistic:
        """The same with its own axes as the schema has them, which `checked` gives."""


class Tables(Labelled):
    """One that makes several tables of one Total."""

    @abstractmethod
    def shown(self) -> Keys:
        """The rows of all tables."""

    @abstractmethod
    def resolved(self, checked: Callable[[Any], Any]) -> Statistic:
        """The same with its own axes as the schema has them, which `checked` gives."""

    @abstractmethod
    def rows_of_plan(self, noises: Sequence[Noise]) -> Sequence[PlanRow]:
        """The lines of a plan, one for each table."""


class Targeted(Capability):
    """One that cannot be as near as every target of ``within=`` says, or that needs more to be said."""

    @abstractmethod
    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse an error of ``within=`` that no cost can give, or that needs more to be said."""


class InWords(Capability):
    """One whose error is no distance between two values."""

    @abstractmethod
    def error_words(self, error: str) -> str:
        """An error in a plan: what it is that may be so far off."""
