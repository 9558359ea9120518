"""A statistic, what an analyst may ask of a group: the members that each has, and those that only a few have.

A statistic has a capability as soon as its class has the members, whatever it inherits. Only choices are classes,
since a choice needs several members at once, most of them with the same answer.
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
OF_SQUARED = Fraction(1, 4)  # of the budget of other Totals: squares give only the widths of intervals, no answer


@dataclass(frozen=True, repr=False)
class Statistic(AsWritten):
    """A statistic of a group: the Totals to measure, and how to compute the answer.

    It also computes the error of the answer, from noisy Totals alone. To write your own statistic, derive a frozen
    dataclass from this class, with `verb` and `totals`. Add `answer` and `expected_error` if the answer is not one
    noisy Total unchanged. ``dpframe.testing.check_statistic`` checks that it keeps the rules, and
    ``agg(name=Yours("age"))`` releases it.

    Attributes
    ----------
    verb : str
        Its name in plans, records and default names of columns.
    sized : bool
        Whether its error depends on how many values a group has: then ``within=`` needs ``size=``.
    denoisable : bool
        Whether its values are one noisy Total each, so that denoisers know their noise; a quotient of two is not.
    adds_up : bool
        Whether the value of merged groups is the sum of theirs, so that subtotals (``rollup=True``) make sense.
    whole : bool
        Whether true values are whole numbers of at least 0.

    Notes
    -----
    A class may set further constants:

    - ``chooses = True``: it releases some of the declared cells, and not a number for each;
    - ``fewest``: the number of values for which it is defined (2 for a variance);
    - ``gaussian_only``: it has no form for other noise;
    - ``unbounded``: its error may be infinite, as that of a quotient whose divisor may be 0;
    - ``tells_totals``: its record holds the noisy totals behind it;
    - ``error_unit``: the unit of its error in plans, such as ranks, if the error is no distance of values.

    `dpframe.queries.statistics.statistic` has the capabilities that only some statistics have.

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
        """Return the Totals that it measures, public and the same for every frame."""
        raise NotImplementedError

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the noisy values and the half-widths of their 95% intervals, for each cell.

        It uses noisy numbers alone.
        """
        only = measured[self.totals()[0]]
        return only.values, np.full(only.values.shape, only.noise.interval(CONFIDENCE))

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width to expect for a group of `size` values, from the Totals' noise."""
        return noises[0].interval(confidence)

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states; None if no number is released."""
        facts: dict[str, Any] = {"verb": self.verb, "column": getattr(self, "column", None)}
        bounds = getattr(self, "bounds", None)
        return facts if bounds is None else facts | {"bounds": list(bounds)}

    def __str__(self) -> str:
        bounds = getattr(self, "bounds", None)
        call = f"{self.verb}({getattr(self, 'column', None) or ''})"
        return call if bounds is None else f"{call} in [{bounds[0]:g}, {bounds[1]:g}]"


@runtime_checkable
class Named(Protocol):
    """A statistic whose name is not made of its column and its verb."""

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        ...


@runtime_checkable
class Several(Protocol):
    """A statistic that makes several output columns of `agg`."""

    def several(self, name: str | None) -> list[tuple[str, Statistic]]:
        """Return its output columns, under the given name or their own."""
        ...


def default_name(statistic: Statistic) -> str:
    """Return the name of a statistic's output column if `agg` gives none.

    It is ``COL_verb``, or a name of its own.

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
    """Return the output columns of a statistic, usually one, under `name` or their own names."""
    if isinstance(statistic, Several):
        return statistic.several(name)
    return [(default_name(statistic) if name is None else name, statistic)]


def check_size(size: int | None, asked: str, *, of: str = "values", whose: str = "its") -> None:
    """Refuse ``within=`` without the number of values or rows in a group.

    Use it if the error depends on this number.
    """
    if size is None:
        raise MissingArgument(
            f"size must be given with within= for {asked}: {whose} error depends on the number of {of} in a group. "
            "Write for instance size=1_000, never taken from the data."
        )


@dataclass(frozen=True, repr=False)
class Counted(Statistic):
    """The shared parts of counts: a column, of which only present values count.

    Counts are whole numbers.
    """

    whole: ClassVar[bool] = True

    column: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None:
            check_column(self.column)

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return self.verb

    @property
    def counts(self) -> str | None:
        """The kind of thing that is counted, for records: "values", or None for rows."""
        column = self.column.of if isinstance(self.column, Conditional) else self.column
        return None if column is None else "values"

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states, with what is counted if that is not rows."""
        counts = self.counts
        return {"verb": self.verb, "column": self.column} | ({} if counts is None else {"counts": counts})


def told(statistic: Statistic) -> dict[str, Any] | None:
    """Return the facts of a statistic for a record, with the names and conditions of columns."""
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
    """Return the facts of a record on a declared value: its text and a hash.

    The text may be cut; the hash is of the whole value.
    """
    return {} if value is None else {"value": harmless(shown(value)), "value_sha256": hash_of(same_key(value))}


@dataclass(frozen=True, repr=False)
class Clipped(Statistic):
    """The shared part of statistics of clipped values: a column, and its bounds."""

    column: str
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        check_column(self.column)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))


class Squaring(Clipped):
    """The shared part of a mean and a sum, which may measure squares in addition."""

    def answering(self) -> tuple[Total, ...]:
        """Return the Totals that the answer is read off."""
        raise NotImplementedError

    def squared(self) -> Total | None:
        """Return the Total of squares, which is measured with these; None if none is measured."""
        raise NotImplementedError

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        squared = self.squared()
        return self.answering() if squared is None else (*self.answering(), squared)

    def weights(self) -> tuple[Fraction, ...]:
        """Return the part of the cost for each Total: for squares, a fourth of that for others."""
        squared = self.squared()
        return (*(Fraction(1) for _ in self.answering()), *([] if squared is None else [OF_SQUARED]))


class Deciding:
    """A statistic that a mechanism for choices may answer, in place of noisy numbers.

    Quantiles, modes and top-k are such statistics.
    """

    @property
    def by_choice(self) -> bool:
        """True if such a mechanism chooses the answer, and no noisy numbers do."""
        return True

    @property
    def rank(self) -> float | None:
        """The quantile that is chosen by ranks; None for any other choice."""
        return None

    @property
    def peels(self) -> int:
        """The number of cells that are chosen one after the other, at one cost.

        It is 0 for a single choice, or if nothing is chosen.
        """
        return 0

    def as_choice(self) -> Statistic | None:
        """Return the form that is chosen as a whole; None if it has none.

        ``mechanism="exponential"`` uses this form.
        """
        return None

    def because(self, why: str) -> Self:
        """Return the same with the reason for which a plan took this form."""
        return self

    def choice_facts(self) -> dict[str, Any] | None:
        """Return the facts of a record on the choice; None if there are none."""
        return None


class Choosing(Deciding):
    """A statistic that releases some of the declared cells, not a number for each."""

    @property
    def chosen(self) -> int:
        """The number of cells that it releases."""
        return 1

    @property
    def numbered(self) -> bool:
        """True if numbers of the chosen cells are released too."""
        return False

    @property
    def choice_words(self) -> str:
        """The cells that are released."""
        return "most common"

    def forms(self, options: int) -> tuple[Statistic, ...]:
        """Return the ways to choose among `options` cells: by default, itself alone.

        A plan takes one of them by public facts.
        """
        assert isinstance(self, Statistic)
        return (self,)


ONE_CELL = Choosing()


def choosing(statistic: Statistic) -> Choosing | None:
    """Return the choice of a statistic that releases some cells; None for other statistics."""
    if isinstance(statistic, Choosing):
        return statistic
    return ONE_CELL if getattr(statistic, "chooses", False) else None


class Capability(ABC):  # noqa: B024, what is abstract are the members of each
    """A set of members that a statistic may have, whatever its class inherits.

    `isinstance` is called often, so it asks the class, and ABC remembers the answer. A Protocol would look at each
    object.
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        fields = getattr(kind, "__dataclass_fields__", ())
        return all(hasattr(kind, name) or name in fields for name in cls.__abstractmethods__)


class Adapting(Capability):
    """A statistic with a form for pure noise and one for Gaussian noise."""

    @abstractmethod
    def under(self, pure: bool) -> Statistic:
        """Return the form for pure noise, or that for Gaussian noise.

        They may measure different Totals.
        """


class Sharing(Capability):
    """A statistic that may be read off the numbers that others measure."""

    @abstractmethod
    def beside(self, totals: Sequence[Total]) -> Statistic:
        """Return the same, read off numbers of the call if that is exact; otherwise, itself."""


class OfUnits(Capability):
    """A statistic about units, which is simpler if each row is a unit."""

    @abstractmethod
    def by_rows(self) -> Statistic:
        """Return the same if each row is a unit."""


class Protecting(Capability):
    """A statistic that depends on which unit is protected."""

    @abstractmethod
    def protecting(self, unit: PrivacyUnit) -> Statistic:
        """Return the form for the unit; refused if it lacks what such a unit needs."""


class ByKeys(Capability):
    """A statistic with bounds for each of the declared keys."""

    @abstractmethod
    def of_keys(self, keys: Keys) -> Statistic:
        """Return the same with the bounds of these keys."""


class Noting(Capability):
    """A statistic that leaves out a part of a unit's data."""

    @abstractmethod
    def notes(self, unit: PrivacyUnit, groups: int) -> tuple[str, ...]:
        """Return notes for the reader on what it leaves out; `groups` is the number of groups."""


class Weighing(Capability):
    """A statistic whose Totals take unequal parts of its cost."""

    @abstractmethod
    def weights(self) -> tuple[int | Fraction, ...]:
        """Return the relative part of its cost for each of its Totals; as public as they are."""


class Sampled(Capability):
    """A statistic that may measure squares, which give its sampling error."""

    @abstractmethod
    def of_population(self) -> Statistic:
        """Return the same with squares."""

    @abstractmethod
    def answering(self) -> tuple[Total, ...]:
        """Return the Totals that its answer is read off."""

    @abstractmethod
    def squared(self) -> Total | None:
        """Return the Total of squares, the last of its Totals.

        It is None if the other Totals give the squares, or if none are needed.
        """


def answering_and_squares(statistic: Statistic) -> tuple[tuple[Total, ...], tuple[Total, ...]]:
    """Return the Totals that a statistic's answer is read off, and that of squares, if any."""
    if not isinstance(statistic, Sampled):
        return statistic.totals(), ()
    squared = statistic.squared()
    return statistic.answering(), () if squared is None else (squared,)


class Fitting(Capability):
    """A statistic with its own denoiser."""

    @abstractmethod
    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str] | None:
        """Return the values by that denoiser, and its description; None if it was not asked for."""


class MoreColumns(Capability):
    """A statistic that releases further columns, such as the ends of an interval."""

    @property
    @abstractmethod
    def endings(self) -> tuple[str, ...]:
        """The ends of their names, such as ``_low``."""

    @abstractmethod
    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the further columns, by the ends of their names."""


class Labelled(Capability):
    """A statistic with several rows in each group."""

    @property
    @abstractmethod
    def axes(self) -> tuple[KeyAxis, ...]:
        """The labels of these rows."""


@dataclass(frozen=True)
class PlanRow:
    """A table of a result in a plan: its name, share of the cost, noise and error.

    `scale` is the scale of its noise.
    """

    measures: str
    share: float
    scale: float
    error: float


class Resolving(Capability):
    """A statistic with its own axes, which depend on the schema."""

    @abstractmethod
    def resolved(self, checked: Callable[[Any], Any]) -> Statistic:
        """Return the same with axes for the schema, which `checked` gives."""


class Tables(Labelled):
    """A statistic that makes several tables of one Total."""

    @abstractmethod
    def shown(self) -> Keys:
        """Return the rows of all tables."""

    @abstractmethod
    def resolved(self, checked: Callable[[Any], Any]) -> Statistic:
        """Return the same with axes for the schema, which `checked` gives."""

    @abstractmethod
    def rows_of_plan(self, noises: Sequence[Noise]) -> Sequence[PlanRow]:
        """Return the lines of a plan, one for each table."""


class Targeted(Capability):
    """A statistic that cannot meet every target of ``within=``, or needs more for it."""

    @abstractmethod
    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target of ``within=`` that no cost can meet, or that needs more."""


class InWords(Capability):
    """A statistic whose error is no distance between two values."""

    @abstractmethod
    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it: what the number measures."""
