"""Quantiles of a column among declared candidates, read off noisy running counts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import between, is_number
from dpframe.privacy import PrivacyUnit
from dpframe.queries.limits import DISTINCT, are_by_group, check_column, checked_bounds, checked_place
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.quantiles import cuts_between, distribution, half_widths, places
from dpframe.queries.row_functions import Floats, Integers
from dpframe.queries.statistics.by_group import ByGroup
from dpframe.queries.statistics.statistic import CONFIDENCE, Deciding, Statistic, check_size
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import InnerCounts
from dpframe.queries.where import plain_name, under_conditions

MOST_CANDIDATES = 2**14
WHOLE_STEPS = 4_096  # whole bounds up to this far apart have every whole number between them as a candidate
STEPS = 1_000  # the number of steps between other bounds
LARGEST_COUNT = 2.0**62
CHOICE = "choice"
EXAMPLE = "Write for instance bounds=(0, 120), or candidates=[0, 10, 20]."


class QuantileAnswers(ABC):
    """The answers of quantiles, with shared candidates or with some for each group."""

    verb: ClassVar[str] = "quantile"
    endings: ClassVar[tuple[str, ...]] = ("_low", "_high")
    error_unit: ClassVar[str] = "ranks"

    column: str
    q: float
    named: str  # the end of its default name
    most_rows: int  # of a unit that count in full, if units are protected

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return f"{plain_name(self.column)}_{self.named or f'q{self.q:g}'}"

    def protecting(self, unit: PrivacyUnit) -> Self:
        """Return the form for a unit, whose rows move the ranks of the interval."""
        known = unit.column is not None and unit.is_bounded
        return replace(self, most_rows=unit.contribution.max_rows) if known else self  # type: ignore[type-var]

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the quantile, and the larger side of its interval."""
        value, low, high = self._read(measured)
        return value, np.maximum(value - low, high - value)

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the ends of its interval."""
        _, low, high = self._read(measured)
        return {"_low": low, "_high": high}

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it: the values between the answer and the quantile."""
        return f"+-{error} {self.error_unit}"

    @abstractmethod
    def _read(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats, Floats]:
        """Return the quantile of each group, and the ends of its interval."""


@dataclass(frozen=True, repr=False)
class Quantile(QuantileAnswers, Statistic, Deciding):
    """A quantile of a column's values, one of the declared candidates.

    Made by `dpframe.quantile` and `dpframe.median`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.median("age", bounds=(0, 120)).default_name
    'age_median'
    """

    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    column: str
    q: float
    candidates: tuple[float, ...]
    named: str = field(default="", repr=False)  # the end of its default name
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same
    by: str = field(default="", repr=False)  # CHOICE if it is chosen by ranks, and no number is measured
    why: str = field(default="", repr=False, compare=False)
    said: bool = field(default=False, repr=False)  # whether the caller named the candidates, so that values lie on them
    most_rows: int = field(default=0, repr=False)  # of a unit that count in full, if units are protected

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it.

        They are bounds and a step, if these give its candidates.
        """
        ends, steps = (self.candidates[0], self.candidates[-1]), np.diff(self.candidates)
        even = np.allclose(steps[:-1], steps[0], rtol=1e-9) and steps[-1] <= steps[0] * (1.0 + 1e-9)
        spaced = {"bounds": ends} | ({"step": float(steps[0])} if self.said else {})
        asked = {"column": self.column} | ({} if self.named else {"q": self.q})
        return asked | (spaced if even or not self.said else {"candidates": list(self.candidates)})

    @property
    def design(self) -> PrefixSums | Tree:
        """The design of the numbers to measure from the counts of the candidates."""
        size = len(self.candidates)
        return Tree.best(size) if self.pure else PrefixSums(size)

    @property
    def said_usual(self) -> bool:
        """True if the caller named candidates that the bounds alone give too.

        No other fact distinguishes the two.
        """
        ends = (self.candidates[0], self.candidates[-1])
        if not self.said or ends[0] == ends[1]:
            return False
        try:
            return self.candidates == _spaced(ends, None)
        except InvalidArgument:  # bounds this close have no such candidates
            return False

    @property
    def by_choice(self) -> bool:
        """True if it is chosen by ranks instead of from noisy running counts."""
        return self.by == CHOICE

    @property
    def rank(self) -> float | None:
        """The quantile, if it is chosen by ranks."""
        return self.q if self.by_choice else None

    def as_choice(self) -> Statistic:
        """Return the form in which it is chosen by ranks."""
        return replace(self, by=CHOICE, pure=True)

    def because(self, why: str) -> Self:
        """Return the same with the reason for its choice."""
        return replace(self, why=why)

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return self if self.by_choice else replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures, the same for all quantiles among its candidates."""
        cuts = tuple(cuts_between(self.candidates).tolist())
        ends = (self.candidates[0], self.candidates[-1])
        if self.by_choice:
            flat = Tree(len(self.candidates), len(self.candidates))
            return (VectorTotal(InnerCounts(self.column, cuts, ends, flat, "counts")),)
        return (VectorTotal(InnerCounts(self.column, cuts, ends, self.design)),)

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of its interval in ranks, the largest among the candidates.

        It depends on no value.
        """
        if self.by_choice:
            return noises[0].interval(confidence)
        return float(half_widths(self.q, self.design, noises[0], confidence).max())

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        ends = [self.candidates[0], self.candidates[-1]]
        said = {"verb": self.verb, "column": self.column, "q": self.q, "bounds": ends, "size": len(self.candidates)}
        interval = {"interval": "candidates" if self.said else "values"}
        return said | ({"by": self.by, "why": self.why} if self.by_choice else interval)

    def choice_facts(self) -> dict[str, Any] | None:
        """Return the facts on its choice; None if it is computed from noisy numbers."""
        return {"by": self.by, "why": self.why} if self.by_choice else None

    def places(
        self, measured: Mapping[Total, Measured], last_of: Integers | None = None
    ) -> tuple[Integers, Integers, Integers]:
        """Return the places of the quantile and of the ends of its interval: see `places`.

        They are computed from noisy running counts.
        """
        design, sums = self.design, measured[self.totals()[0]]
        running = design.running(sums.values.reshape(-1, design.width))
        rows, beside = 1.0 + (self.most_rows if sums.weighted else 0), 0 if self.said else 1
        return places(running, self.q, design, sums.noise, CONFIDENCE, rows=rows, beside=beside, last_of=last_of)

    def _read(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats, Floats]:
        if self.by_choice:  # a choice says nothing about distances in values, so its interval holds all candidates
            sums = measured[self.totals()[0]]
            chosen = np.array(self.candidates)[np.argmax(sums.values.reshape(-1, len(self.candidates)), axis=1)]
            return chosen, np.full(chosen.shape, self.candidates[0]), np.full(chosen.shape, self.candidates[-1])
        candidates = np.array(self.candidates)
        value, low, high = self.places(measured)
        return candidates[value], candidates[low], candidates[high]

    def __str__(self) -> str:
        ends = f"[{self.candidates[0]:g}, {self.candidates[-1]:g}]"
        return f"{self.named or f'quantile {self.q:g}'}({self.column}) in {ends}"


@dataclass(frozen=True, repr=False)
class QuantileByGroup(QuantileAnswers, ByGroup):
    """Quantiles of groups that each have their own bounds and candidates.

    Made by `dpframe.quantile`. It measures running counts of the numbers of candidates: the number of a value is the
    place of the nearest candidate of its group. Groups with fewer candidates than others have no values after their
    last one.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.median("cost", bounds={"A": (0, 10), "B": (0, 100)}))
    median(cost) in the bounds of each group
    """

    q: float = 0.5
    step: float | None = None
    named: str = field(default="", repr=False)  # the end of its default name
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same
    most_rows: int = field(default=0, repr=False)  # of a unit that count in full, if units are protected
    candidates: tuple[tuple[float, ...], ...] = field(init=False, default=(), repr=False, compare=False)

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        return {**super().written(), **({} if self.named else {"q": self.q})}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "candidates", tuple(_spaced(pair, self.step) for _, pair in self.bounds_of))

    @property
    def last_of(self) -> Integers:
        """The place of the last candidate of each group."""
        return np.array([len(one) - 1 for one in self.candidates])

    @property
    def of_places(self) -> Quantile:
        """The same quantile, of the places of values among the candidates of their group.

        It has as many places as the group with the most candidates.
        """
        column = self.scaled(places=True, candidates=self.candidates)
        numbers = tuple(map(float, range(int(self.last_of.max()) + 1)))
        said = self.step is not None
        return Quantile(column, self.q, numbers, pure=self.pure, said=said, most_rows=self.most_rows)

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures, the same for all quantiles among its candidates."""
        return self.of_places.totals()

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of its interval in ranks, the largest among the candidates.

        It depends on no value.
        """
        return self.of_places.expected_error(noises, size, confidence)

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states; `size` is that of the longest candidate list."""
        interval = "values" if self.step is None else "candidates"
        return {**super().facts(), "q": self.q, "size": int(self.last_of.max()) + 1, "interval": interval}

    def _read(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats, Floats]:
        flat, firsts = np.concatenate(self.candidates), np.cumsum(self.last_of + 1) - (self.last_of + 1)
        value, low, high = self.of_places.places(measured, self.last_of)
        return flat[firsts + value], flat[firsts + low], flat[firsts + high]

    def __str__(self) -> str:
        return f"{self.named or f'quantile {self.q:g}'}({self.column}) in the bounds of each group"


@dataclass(frozen=True, repr=False)
class Quantiles(Statistic):
    """Several quantiles of a column in one release; each becomes a column of `agg`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> found = dpf.quantile("age", q=[0.25, 0.75], bounds=(0, 120))
    >>> [name for name, _ in found.several(None)]
    ['age_q0.25', 'age_q0.75']
    """

    verb: ClassVar[str] = "quantile"

    parts: tuple[Quantile | QuantileByGroup, ...]

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        return {**self.parts[0].written(), "q": [part.q for part in self.parts]}

    def several(self, name: str | None) -> list[tuple[str, Statistic]]:
        """Return each with the name of its output column."""
        if name is None:
            return [(part.default_name, part) for part in self.parts]
        return [(f"{name}_q{part.q:g}", part) for part in self.parts]

    def __str__(self) -> str:
        return ", ".join(map(str, self.parts))


@trimmed
def quantile(
    column: str,
    *,
    q: float | Sequence[float] | None = None,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    step: float | None = None,
    candidates: Sequence[float] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Quantile | QuantileByGroup | Quantiles:
    """Release quantiles of a column in `agg`, each one of declared candidates.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN are left out; other values are clipped and go to the nearest candidate.
    q : float or list of floats
        Above 0 and below 1. The quantiles of one column share one release, and are always in order.
    bounds : tuple of two numbers, or dict of such by key
        The first and the last candidate, from what you know and never from the data. After ``group_by`` of one column
        of declared keys, a dict names the bounds of every key: ``{"A": (0, 10), "B": (0, 100)}``. Each key then has its
        own candidates.
    step : float, optional
        The distance from one candidate to the next. By default, it is 1 if both bounds are whole and at most 4,096
        apart; otherwise, a thousandth of their distance. If you give it, you state that values lie on candidates.
        Without it, intervals reach one candidate farther on either side.
    candidates : list of numbers, optional
        Increasing numbers, at most 2**14, instead of `bounds` and `step`. Values lie on them, as with `step`.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    Quantile, QuantileByGroup or Quantiles
        A statistic for ``.dp.group_by(...).agg(...)``. For each q, it releases ``NAME``, ``NAME_error`` and the ends of
        its interval, ``NAME_low`` and ``NAME_high``. The interval holds the q-quantile of the group's values, clipped
        to the bounds, with at least 95%. It holds the least value v with at least q of the values at most v, and what
        interpolates between two values. Units count by their weights. An end on a bound means that the quantile lies
        there or beyond it.

    Raises
    ------
    MissingArgument
        If `q` is left out, or both `bounds` and `candidates` are.
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Notes
    -----
    Gaussian noise: running counts by the square-root factorization (Fichtenberger, Henzinger and Upadhyay 2023). Pure
    noise: a tree of counts without its root, fitted by least squares. One quantile of the whole frame may be chosen by
    ranks instead (``mechanism="exponential"``): by the exponential mechanism (McSherry and Talwar 2007) or
    permute-and-flip (McKenna and Sheldon 2020).

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.quantile("age", q=0.25, bounds=(0, 120)))
    quantile 0.25(age) in [0, 120]
    """
    check_column(column)
    one = _made(under_conditions(column, where), bounds, step, candidates)
    if q is None:
        raise MissingArgument("q must be given: which quantile, between 0 and 1. Write for instance q=0.5.")
    if not isinstance(q, (list, tuple)):
        return replace(one, q=_checked_q(q))
    if not q:
        raise InvalidArgument("q must hold at least one number between 0 and 1. Write for instance q=[0.25, 0.5].")
    return Quantiles(tuple(replace(one, q=_checked_q(level)) for level in q))


@trimmed
def median(
    column: str,
    *,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    step: float | None = None,
    candidates: Sequence[float] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Quantile | QuantileByGroup:
    """Release the median of a column in `agg`: `quantile` with q = 0.5.

    Parameters
    ----------
    column, bounds, step, candidates, where
        As for `quantile`.

    Returns
    -------
    Quantile or QuantileByGroup
        A statistic for ``.dp.group_by(...).agg(...)``, named ``COL_median``.

    Raises
    ------
    MissingArgument, InvalidArgument, InvalidType
        As for `quantile`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.median("age", bounds=(0, 120)))
    median(age) in [0, 120]
    """
    check_column(column)
    return replace(_made(under_conditions(column, where), bounds, step, candidates), named="median")


def _checked_q(q: object) -> float:
    if not is_number(q):
        raise InvalidType(f"q must be a number between 0 and 1, not {shown(q, kind=True)}. Write for instance q=0.5.")
    return between(
        "q", q, 0.0, 1.0, "strictly between 0 and 1", " For the minimum and maximum, use your declared bounds."
    )


def _made(column: str, bounds: Any, step: Any, candidates: Any) -> Quantile | QuantileByGroup:
    """Return a median of a column; all groups share its candidates, or each group has its own."""
    if candidates is None and are_by_group(bounds):
        return QuantileByGroup(column, tuple(bounds.items()), step=step)
    said = step is not None or candidates is not None
    return Quantile(column, 0.5, _candidates(bounds, step, candidates), said=said)


def _candidates(bounds: Any, step: Any, candidates: Any) -> tuple[float, ...]:
    if candidates is None:
        return _spaced(checked_bounds(bounds, narrowest=DISTINCT), step)
    if bounds is not None or step is not None:
        raise InvalidArgument("candidates must come without bounds and step, which they replace. Keep one of both.")
    if not isinstance(candidates, (list, tuple, range, np.ndarray)) or len(candidates) < 2:
        raise InvalidType(f"candidates must be a list of at least two numbers, not {shown(candidates)}. {EXAMPLE}")
    _refuse_many(len(candidates))
    numbers = tuple(checked_place("candidates", candidate, EXAMPLE) for candidate in candidates)
    if any(left >= right for left, right in pairwise(numbers)):
        raise InvalidArgument(f"candidates must increase, unlike {shown(list(candidates))}. Sort them.")
    return numbers


def _spaced(bounds: tuple[float, float], step: Any) -> tuple[float, ...]:
    lower, upper = bounds
    if step is None:
        whole = lower.is_integer() and upper.is_integer() and upper - lower <= WHOLE_STEPS
        length = 1.0 if whole else (upper - lower) / STEPS
    else:
        length = between("step", step, 0.0, upper - lower, "at most the distance of the bounds", closed=True)
        if length <= 0.0:
            raise InvalidArgument(f"step must be above 0, not {shown(step)}. Write for instance step=1.")
    steps = (upper - lower) / length * (1.0 + 1e-9)  # infinite if the step is barely above 0
    count = math.floor(min(steps, LARGEST_COUNT))
    _refuse_many(count + 1)
    numbers = [lower + length * step_number for step_number in range(count + 1)]
    if numbers[-1] < upper - 1e-9 * length:
        numbers.append(upper)
    numbers[-1] = upper
    if any(left >= right for left, right in pairwise(numbers)):
        raise InvalidArgument("step must be long enough for candidates to be different floats. Subtract a constant.")
    return tuple(numbers)


def _refuse_many(count: int) -> None:
    if count > MOST_CANDIDATES:
        raise InvalidArgument(f"candidates must be at most {MOST_CANDIDATES:,}, not {count:,}. Take a larger step.")


NOISY = "_noisy"


@dataclass(frozen=True)
class Ecdf(Statistic):
    """The share of a group's values up to the end of each bin.

    Used by ``df.dp.ecdf``. The bins are the last axis. One more cell, beyond the last bin, is measured with the others:
    without it, the total is unknown.

    Examples
    --------
    >>> Ecdf("age", 4).default_name
    'ecdf'
    """

    verb: ClassVar[str] = "ecdf"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = (NOISY,)

    column: str
    size: int  # the number of bins
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "ecdf"

    @property
    def design(self) -> PrefixSums | Tree:
        """The design of the numbers to measure from the counts of the bins and of the cell beyond them."""
        return Tree.best(self.size + 1) if self.pure else PrefixSums(self.size + 1)

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (VectorTotal(InnerCounts(None, (), (0.0, 1.0), self.design)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the shares, which never fall, and the half-widths of their intervals.

        There is a row for each bin of each group.
        """
        _, shares, half = self._read(measured)
        return shares[:, :-1].ravel(), half[:, :-1].ravel()

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the quotients of noisy counts, unadjusted."""
        return {NOISY: self._read(measured)[0][:, :-1].ravel()}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values spread evenly over the bins: the largest."""
        shares = np.append(np.arange(1.0, self.size + 1.0) / self.size, 1.0)
        return min(float(half_widths(shares, self.design, noises[0], confidence).max()) / size, 1.0)

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"an ecdf ({name})")

    def _read(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats, Floats]:
        design, sums = self.design, measured[self.totals()[0]]
        running = design.running(sums.values.reshape(-1, design.width))
        return distribution(running, design, sums.noise, CONFIDENCE)
