"""A statistic, what an analyst may ask of a group: what each one must say of itself, and what only a few do.

A statistic has a capability as soon as it has its members; nobody else is asked. Choices alone are classes, for
anyone who chooses answers several questions at once, most of them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from dpframe.errors import MissingArgument, harmless, shown
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.limits import AsWritten, check_column, checked_bounds
from dpframe.queries.row_functions import Floats
from dpframe.queries.sameness import hash_of, same_key
from dpframe.queries.total import Measured, Noise, Total
from dpframe.queries.where import Conditional, plain_name

CONFIDENCE = 0.95  # of every error shown
OF_SQUARED = Fraction(1, 4)  # of the budget that other Totals take: squares tell how wide intervals are, and no answer


@dataclass(frozen=True, repr=False)
class Statistic(AsWritten):
    """A question about a group: which Totals it needs, and how its answer and its error are read off noisy ones.

    A statistic of your own is a frozen dataclass made from this one, with `verb` and `totals`; with `answer`
    and `expected_error` too where it is not one noisy Total as it stands. ``dpframe.testing.check_statistic`` tells
    whether it keeps the rules, and ``agg(name=Yours("age"))`` asks it.

    Attributes
    ----------
    verb : str
        Its name in plans, records and default names of columns.
    sized : bool
        Whether its error depends on how many values a group has: then ``within=`` needs ``size=``.
    denoisable : bool
        Whether its values are one noisy Total each, which denoisers know; a quotient of two is not.
    adds_up : bool
        Whether the value of merged groups is the sum of theirs, so that subtotals (``rollup=True``) make sense.
    whole : bool
        Whether true values are whole numbers of at least 0.

    Notes
    -----
    A class constant may say more: ``chooses = True``, that some of the declared cells are released, and not a number
    for each; ``fewest``, of how many values it is defined (a variance of 2); ``gaussian_only``, that it has no form for
    other noise; ``unbounded``, that its error may be infinite, as of a quotient whose divisor may be 0;
    ``tells_totals``, that its record holds the noisy totals behind it; ``error_unit``, in what plans count its error
    where that is no distance of values, such as ranks. What else only some can do are the capabilities of
    `dpframe.queries.statistics.statistic`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> age = dpf.mean("age", bounds=(0, 120))
    >>> age.sized, age.denoisable, [total.describe() for total in age.totals()]
    (True, False, ['centred sum of age', 'present values of age'])
    """

    verb: ClassVar[str]
    sized: ClassVar[bool] = False
    denoisable: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    whole: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it, public and the same for every frame."""
        raise NotImplementedError

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals, an entry a cell; arithmetic on noisy numbers."""
        only = measured[self.totals()[0]]
        return only.values, np.full(only.values.shape, only.noise.interval(CONFIDENCE))

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The half-width to expect, from the noise of each Total, of a group of `size` values."""
        return noises[0].interval(confidence)

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it; None where no number is released."""
        facts: dict[str, Any] = {"verb": self.verb, "column": getattr(self, "column", None)}
        bounds = getattr(self, "bounds", None)
        return facts if bounds is None else facts | {"bounds": list(bounds)}

    def __str__(self) -> str:
        bounds = getattr(self, "bounds", None)
        call = f"{self.verb}({getattr(self, 'column', None) or ''})"
        return call if bounds is None else f"{call} in [{bounds[0]:g}, {bounds[1]:g}]"


@runtime_checkable
class Named(Protocol):
    """One that is called otherwise than by its column and its verb."""

    @property
    def default_name(self) -> str:
        """The name of its output column where `agg` is given none."""
        ...


@runtime_checkable
class Several(Protocol):
    """One that makes several output columns of `agg`."""

    def several(self, name: str | None) -> list[tuple[str, Statistic]]:
        """These columns, under the name given there or their own."""
        ...


def default_name(statistic: Statistic) -> str:
    """The name of the output column of a statistic where `agg` is given none: ``COL_verb``, or one of its own.

    Examples
    --------
    >>> import dpframe as dpf
    >>> default_name(dpf.sum("cost", bounds=(0, 5_000))), default_name(dpf.count("cost"))
    ('cost_sum', 'count')
    """
    if isinstance(statistic, Named):
        return statistic.default_name
    column = getattr(statistic, "column", None)
    name = column if column is None else plain_name(column)
    return statistic.verb if name is None else f"{name}_{statistic.verb}"


def columns_of(statistic: Statistic, name: str | None) -> list[tuple[str, Statistic]]:
    """The output columns that a statistic makes, most often one: under the name given, or their own."""
    if isinstance(statistic, Several):
        return statistic.several(name)
    return [(default_name(statistic) if name is None else name, statistic)]


def check_size(size: int | None, asked: str, *, of: str = "values", whose: str = "its") -> None:
    """Refuse ``within=`` without the number of values or rows of a group, where the error depends on it."""
    if size is None:
        raise MissingArgument(
            f"size must be given with within= for {asked}: {whose} error depends on the number of {of} in a group. "
            "Write for instance size=1_000, never taken from the data."
        )


@dataclass(frozen=True, repr=False)
class Counted(Statistic):
    """The parts that counts share: a column, where only its present values count, and whole numbers."""

    whole: ClassVar[bool] = True

    column: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None:
            check_column(self.column)

    @property
    def default_name(self) -> str:
        """The name of its output column where `agg` is given none."""
        return self.verb

    @property
    def counts(self) -> str | None:
        """The kind of thing that is counted, for records: present values; None for rows."""
        column = self.column.of if isinstance(self.column, Conditional) else self.column
        return None if column is None else "values"

    def facts(self) -> dict[str, Any]:
        """The facts that a record states of it, and what is counted where that is not rows."""
        counts = self.counts
        return {"verb": self.verb, "column": self.column} | ({} if counts is None else {"counts": counts})


def told(statistic: Statistic) -> dict[str, Any] | None:
    """The facts of a statistic for a record: its columns by their names, and its conditions."""
    facts = statistic.facts()
    if facts is None:
        return None
    said = dict(facts)
    for name in ("column", "denominator", "weight"):
        if isinstance(column := said.get(name), Conditional):
            said |= {name: column.of, **column.facts()}
    if any(isinstance(column, Conditional) for column in said.get("columns", ())):
        said |= {"columns": [*map(plain_name, said["columns"])], **said["columns"][0].facts()}
    return said


def value_facts(value: Any) -> dict[str, str]:
    """The facts of a record on a declared value: as it was typed, which may be cut, and a hash of all of it."""
    return {} if value is None else {"value": harmless(shown(value)), "value_sha256": hash_of(same_key(value))}


@dataclass(frozen=True, repr=False)
class Clipped(Statistic):
    """The part that statistics of clipped values share: a column, and the bounds of its values."""

    column: str
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        check_column(self.column)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))


class Squaring(Clipped):
    """The part that a mean and a sum share, which may measure squares in addition."""

    def answering(self) -> tuple[Total, ...]:
        """The Totals that it is read off."""
        raise NotImplementedError

    def squared(self) -> Total | None:
        """The Total of squares next to them; None where none is measured."""
        raise NotImplementedError

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        squared = self.squared()
        return self.answering() if squared is None else (*self.answering(), squared)

    def weights(self) -> tuple[Fraction, ...]:
        """The part of its budget that each of its Totals takes: of squares a fourth of that of others."""
        squared = self.squared()
        return (*(Fraction(1) for _ in self.answering()), *([] if squared is None else [OF_SQUARED]))


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


class ByKeys(Capability):
    """One with bounds for each of the declared keys."""

    @abstractmethod
    def of_keys(self, keys: Keys) -> Statistic:
        """The same with the bounds of these keys."""


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
