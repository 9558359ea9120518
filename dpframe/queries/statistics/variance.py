"""The variance and the standard deviation of clipped values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import are_by_group
from dpframe.queries.moments import Reading, bernstein_variance, centred_variance, standard_deviation
from dpframe.queries.quotients import largest_z
from dpframe.queries.row_functions import Floats, centred_squares
from dpframe.queries.statistics.by_group import PLACES, ByGroup, checked_groups
from dpframe.queries.statistics.statistic import CONFIDENCE, Clipped, check_size
from dpframe.queries.total import FunctionTotal, Measured, Noise, RowsTotal, SumTotal, Total, VectorTotal
from dpframe.queries.vectors import bernstein
from dpframe.queries.where import plain_name, under_conditions


@dataclass(frozen=True, repr=False)
class Variance(Clipped):
    """The variance of a column's values, clipped to the bounds.

    Made by `dpframe.variance`. Under Gaussian noise, it measures a count, a centered sum and a sum of centered squares.
    Under pure noise, it measures one vector of Bernstein's polynomials of degree two, which takes the whole cost.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.variance("age", bounds=(0, 120)).default_name
    'age_var'
    """

    verb: ClassVar[str] = "variance"
    tells_totals: ClassVar[bool] = True
    ending: ClassVar[str] = "var"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    ddof: int = 1
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_one_of(self.ddof, (0, 1)) or isinstance(self.ddof, bool):
            raise InvalidArgument(f"ddof must be 0 or 1, not {shown(self.ddof)}. Write ddof=1 for a sample.")

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return f"{plain_name(self.column)}_{self.ending}"

    @property
    def half_range(self) -> float:
        """Half the distance between the bounds."""
        return (self.bounds[1] - self.bounds[0]) / 2.0

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        if self.pure:
            return (VectorTotal(bernstein(self.column, self.bounds)),)
        squares = FunctionTotal(centred_squares(self.column, self.bounds))
        return (RowsTotal(self.column), SumTotal(self.column, self.bounds, centred=True), squares)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the variance and its error by Fieller's theorem, from the noisy numbers alone."""
        noisy = [measured[total] for total in self.totals()]
        reading = self._read([sums.values for sums in noisy], [sums.noise for sums in noisy], CONFIDENCE)
        return reading.values, reading.half_widths

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values spread evenly between the bounds."""
        n = float(size)
        even = [n / 3.0] * 3 if self.pure else [n, 0.0, n * (1.0 / 3.0 - 0.5)]
        values = [np.array(even)] if self.pure else [np.array([total]) for total in even]
        return float(self._read(values, noises, confidence).half_widths[0])

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"a {self.verb} ({name})")

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {**(super().facts() or {}), "ddof": self.ddof}

    def _read(self, values: Sequence[Floats], noises: Sequence[Noise], confidence: float) -> Reading:
        spreads, z = [noise.variance**0.5 for noise in noises], largest_z(noises, confidence)
        if self.pure:
            below, between, above = values[0].reshape(-1, 3).T
            return bernstein_variance((below, between, above), spreads[0], z, self.half_range, self.ddof)
        whole = self.half_range**2
        count, centred, squares = values
        return centred_variance(
            count, centred, squares * whole, (spreads[0], spreads[1], spreads[2] * whole), z, self.half_range, self.ddof
        )


@dataclass(frozen=True, repr=False)
class Std(Variance):
    """The standard deviation of a column's values, clipped to the bounds.

    Made by `dpframe.std`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.std("age", bounds=(0, 120)).default_name
    'age_std'
    """

    verb: ClassVar[str] = "std"
    ending: ClassVar[str] = "std"

    def _read(self, values: Sequence[Floats], noises: Sequence[Noise], confidence: float) -> Reading:
        return standard_deviation(super()._read(values, noises, confidence))


@dataclass(frozen=True, repr=False)
class VarianceByGroup(ByGroup):
    """The variances of clipped values, where each group has its own bounds.

    Made by `dpframe.variance` with bounds by key. It measures the numbers of a variance of places between the bounds of
    their group. The answer of each group is that variance times the square of the distance of its bounds, which is
    public. Its interval covers as often as that of the places.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.variance("cost", bounds={"A": (0, 10), "B": (0, 100)}))
    variance(cost) in the bounds of each group
    """

    verb: ClassVar[str] = "variance"
    sized: ClassVar[bool] = True
    fewest: ClassVar[int] = 2
    kind: ClassVar[type[Variance]] = Variance
    power: ClassVar[int] = 2  # the unit of the answer is the bounds' distance to this power

    ddof: int = 1
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kind(self.column, PLACES, self.ddof)  # refuses any other ddof

    @property
    def default_name(self) -> str:
        """The name of its output column if `agg` gives none."""
        return f"{plain_name(self.column)}_{self.kind.ending}"

    @property
    def of_places(self) -> Variance:
        """The same variance, of places between the bounds of their group."""
        return self.kind(self.scaled(places=True), PLACES, self.ddof, self.pure)

    @property
    def scale(self) -> Floats:
        """The public factor of each group."""
        return np.asarray(self.lengths**self.power)

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures: those of places, which all have the same bounds."""
        return self.of_places.totals()

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the numbers in the units of the column, and the half-widths of their intervals."""
        values, errors = self.of_places.answer(measured)
        return values * self.scale, errors * self.scale

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the error to expect for `size` values spread evenly between the widest bounds."""
        return self.of_places.expected_error(noises, size, confidence) * float(self.scale.max())

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of values in a group."""
        check_size(size, f"a {self.verb} ({name})")

    def facts(self) -> dict[str, Any]:
        """Return the facts that its record states."""
        return {**super().facts(), "ddof": self.ddof}


@dataclass(frozen=True, repr=False)
class StdByGroup(VarianceByGroup):
    """The standard deviations of clipped values, where each group has its own bounds.

    They are the roots of `VarianceByGroup`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.std("cost", bounds={"A": (0, 10), "B": (0, 100)}))
    std(cost) in the bounds of each group
    """

    verb: ClassVar[str] = "std"
    kind: ClassVar[type[Variance]] = Std
    power: ClassVar[int] = 1


@trimmed
def variance(
    column: str,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    *,
    ddof: int = 1,
    where: Mapping[str, Any] | None = None,
) -> Variance | VarianceByGroup:
    """Release the variance of a column in `agg`, with each value clipped to `bounds`.

    Parameters
    ----------
    column : str
        A column of numbers. Nulls and NaN are left out.
    bounds : tuple of two numbers, or dict of such by key
        The lower and the upper bound, in the units of the column; within +-2**53. Tight bounds help more than for a
        mean, because the noise grows with the square of their distance. After ``group_by`` of one column of declared
        keys, a dict names the bounds of every key: ``{"A": (0, 10), "B": (0, 100)}``. The noise of each group is then
        in proportion to its own bounds.
    ddof : {1, 0}
        The number that is subtracted from the number of values in the divisor: 1 for the variance of a sample, 0 for
        that of these values.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    Variance or VarianceByGroup
        A statistic for ``.dp.group_by(...).agg(...)``. If the noisy number of values is below 2, the answer is the
        largest variance that the bounds allow, and so is its error.

    Raises
    ------
    MissingArgument
        If `bounds` is left out.
    InvalidArgument
        If the bounds are not two finite numbers with lower < upper, or `ddof` is neither 0 nor 1.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.variance("age", bounds=(0, 120)))
    variance(age) in [0, 120]
    """
    if are_by_group(bounds):
        return VarianceByGroup(*checked_groups(column, bounds, where), ddof=ddof)
    return Variance(under_conditions(column, where), bounds, ddof)  # type: ignore[arg-type]  # None is refused there


@trimmed
def std(
    column: str,
    bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
    *,
    ddof: int = 1,
    where: Mapping[str, Any] | None = None,
) -> Std | StdByGroup:
    """Release a column's standard deviation in `agg`: the square root of `variance`.

    Parameters
    ----------
    column, bounds, ddof, where
        As for `variance`.

    Returns
    -------
    Std or StdByGroup
        A statistic for ``.dp.group_by(...).agg(...)``.

    Raises
    ------
    MissingArgument, InvalidArgument
        As for `variance`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.std("age", bounds=(0, 120)))
    std(age) in [0, 120]
    """
    if are_by_group(bounds):
        return StdByGroup(*checked_groups(column, bounds, where), ddof=ddof)
    return Std(under_conditions(column, where), bounds, ddof)  # type: ignore[arg-type]  # None is refused there
