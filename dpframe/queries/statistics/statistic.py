"""A statistic, what an analyst may ask of a group: the questions that each one answers about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from dpframe.errors import MissingArgument
from dpframe.queries.clipping import check_column, checked_bounds
from dpframe.queries.row_functions import Floats
from dpframe.queries.total import Measured, Noise, Total
from dpframe.queries.where import Conditional, plain_name

CONFIDENCE = 0.95  # of every error shown
OF_SQUARED = Fraction(1, 4)  # of the budget that other Totals take: squares tell how wide intervals are, and no answer


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

    Notes
    -----
    A class constant may say more: ``chooses = True``, that some of the declared cells are released, and not a number
    for each; ``fewest``, of how many values it is defined (a variance of 2); ``gaussian_only``, that it has no form for
    other noise; ``unbounded``, that its error may be infinite, as of a quotient whose divisor may be 0;
    ``tells_totals``, that its record holds the noisy totals behind it. What else only
    some can do are the capabilities of `dpframe.queries.statistics.capabilities`.

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
        column = self.column.of if isinstance(self.column, Conditional) else self.column
        return None if column is None else "values"

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
