"""A statistic, what an analyst may ask of a group: the questions that each one answers about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import MissingArgument
from dpframe.privacy import PrivacyUnit
from dpframe.queries.clipping import check_column, checked_bounds
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.total import Floats, Measured, Noise, Total

CONFIDENCE = 0.95  # of every error shown


@dataclass(frozen=True)
class PlanRow:
    """A table of a result in a plan: its name, its share of the price, the scale of its noise, and its error."""

    measures: str
    share: float
    scale: float
    error: float


@dataclass(frozen=True)
class Statistic:
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
    chooses : bool
        Whether it releases some of the declared cells, and not a number for each.
    endings : tuple of str
        Of further columns that it releases, such as ``"_low"``: `more` gives them.
    fewest : int
        Of how many values it is defined; a variance of 2.
    gaussian_only : bool
        Whether it has no form for other noise than Gaussian.
    unbounded : bool
        Whether its error may be infinite, as of a quotient whose divisor may be 0.

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
    chooses: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ()
    fewest: ClassVar[int] = 1
    gaussian_only: ClassVar[bool] = False
    unbounded: ClassVar[bool] = False

    @property
    def chosen(self) -> int:
        """The number of cells that it releases, where it chooses."""
        return 1

    @property
    def by_choice(self) -> bool:
        """Tell whether cells are chosen by a mechanism for choices, and not by their noisy numbers."""
        return self.chooses

    @property
    def peels(self) -> int:
        """The number of cells that are chosen one after the other at one price; 0 of a single choice, or of none."""
        return 0

    @property
    def numbered(self) -> bool:
        """Tell whether numbers are released."""
        return not self.chooses

    @property
    def choice_words(self) -> str:
        """The cells that are released, where it chooses."""
        return "most common"

    def choice_facts(self) -> dict[str, Any] | None:
        """The facts of a record on several cells that were chosen."""
        return None

    def forms(self, options: int) -> tuple[Statistic, ...]:
        """The ways to answer it with so many cells, of which a plan takes one by public facts: itself alone."""
        return (self,)

    @property
    def rank(self) -> float | None:
        """Of one that is chosen by ranks: which quantile it is; None of any other."""
        return None

    def as_choice(self) -> Statistic | None:
        """The form in which it is chosen as a whole, which ``mechanism="choice"`` asks for; None where it has none."""
        return None

    def because(self, why: str) -> Statistic:
        """The same with the reason why a plan took this way."""
        return self

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The labels of the several rows that each group has of it; most statistics have one row, and no labels."""
        return ()

    def shown(self, keys: Keys) -> Keys:
        """The rows of a result that has it, for these groups: those of each group are the labels of `axes`."""
        return Keys((*keys.axes, *self.axes)) if self.axes else keys

    def resolved(self, checked: Callable[[Any], Any]) -> Statistic:
        """The same with its own axes as the schema has them, which `checked` gives: itself where it has none."""
        return self

    def rows_of_plan(self, noises: Sequence[Noise], confidence: float = CONFIDENCE) -> Sequence[PlanRow] | None:
        """The lines of a plan, one for each of its tables where it makes several of one Total; None of any other."""
        return None

    @property
    def default_name(self) -> str:
        """The name of its output column where `agg` is given none: ``COL_verb``."""
        column = getattr(self, "column", None)
        return self.verb if column is None else f"{column}_{self.verb}"

    def several(self, name: str | None) -> list[tuple[str, Statistic]]:
        """The output columns that it makes in `agg`, under the name given there or its own."""
        return [(self.default_name if name is None else name, self)]

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it, public and the same for every frame."""
        raise NotImplementedError

    def weights(self) -> tuple[int, ...]:
        """The part of its price that each of its Totals takes, relative to the others; as public as they are."""
        return (1,) * len(self.totals())

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The noisy values and the half-widths of their 95% intervals, an entry a cell; arithmetic on noisy numbers."""
        only = measured[self.totals()[0]]
        return only.values, np.full(only.values.shape, only.noise.interval(CONFIDENCE))

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """The further columns, by the ends of their names."""
        return {}

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str] | None:
        """The values by its own denoiser, and what that does in words; None where it has none of its own."""
        return None

    def by_rows(self) -> Statistic:
        """The same where each row is a unit, and the number of units that of rows."""
        return self

    def protecting(self, unit: PrivacyUnit) -> Statistic:
        """The same in the form that suits the protected unit; refused where it lacks what such a unit needs."""
        return self

    def notes(self, unit: PrivacyUnit, groups: int) -> tuple[str, ...]:
        """Notes for the reader on what it leaves out of a unit; `groups` is the number of all groups."""
        return ()

    def under(self, pure: bool) -> Statistic:
        """The same statistic in the form for pure noise or, else, for Gaussian noise: what it measures may differ."""
        return self

    def beside(self, totals: Sequence[Total]) -> Statistic:
        """The same statistic, read off what others of the call measure, where that is exact; the default is itself."""
        return self

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The half-width to expect, from the noise of each Total, of a group of `size` values."""
        return noises[0].interval(confidence)

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse an error of ``within=`` that no price can give, or that needs more to be said."""

    def error_words(self, error: str) -> str:
        """An error in a plan: how far the value may be off."""
        return f"+-{error}"

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it; None where no number is released."""
        facts: dict[str, Any] = {"verb": self.verb, "column": getattr(self, "column", None)}
        bounds = getattr(self, "bounds", None)
        return facts if bounds is None else facts | {"bounds": list(bounds)}

    def __str__(self) -> str:
        bounds = getattr(self, "bounds", None)
        call = f"{self.verb}({getattr(self, 'column', None) or ''})"
        return call if bounds is None else f"{call} in [{bounds[0]:g}, {bounds[1]:g}]"


def check_size(size: int | None, asked: str, *, of: str = "values", whose: str = "its") -> None:
    """Refuse ``within=`` without the number of values or rows of a group, where the error depends on it."""
    if size is None:
        raise MissingArgument(
            f"size must be given with within= for {asked}: {whose} error depends on how many {of} a group has. "
            "Write for instance size=1_000, from what you know, never from the data."
        )


@dataclass(frozen=True)
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
        return None if self.column is None else "values"

    def facts(self) -> dict[str, Any]:
        """The facts that a record states of it, and what is counted where that is not rows."""
        counts = self.counts
        return {"verb": self.verb, "column": self.column} | ({} if counts is None else {"counts": counts})


@dataclass(frozen=True)
class Clipped(Statistic):
    """The part that statistics of clipped values share: a column, and the bounds of its values."""

    column: str
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        check_column(self.column)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))
