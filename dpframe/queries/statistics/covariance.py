"""Covariances and correlations of the clipped values of several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, is_one_of, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries import moments
from dpframe.queries.keys import KeyAxis
from dpframe.queries.limits import checked_bounds, checked_columns, grid_steps, step_length
from dpframe.queries.moments import Pair
from dpframe.queries.quotients import largest_z
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size
from dpframe.queries.total import FunctionTotal, Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import centred_products, pair_cells, pairs
from dpframe.queries.where import plain_name, under_conditions

NOISY = "_noisy"
LABELS = ("column", "other")
MOST_COLUMNS = 64
EXAMPLE = 'Write for instance ["age", "cost"], bounds={"age": (0, 120), "cost": (0, 5_000)}.'


@dataclass(frozen=True, repr=False)
class Covariance(Statistic):
    """The covariance of each pair of columns, with values clipped to their bounds.

    Made by `dpframe.covariance`. Only rows in which all columns are present count. Under Gaussian noise, it measures
    their number, and centered sums, squares and products. Under pure noise, it measures one vector for each pair: the
    products of Bernstein's polynomials.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.covariance(["age", "cost"], bounds={"age": (0, 120), "cost": (0, 5_000)}).default_name
    'covariance'
    """

    verb: ClassVar[str] = "covariance"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = (NOISY,)
    fewest: ClassVar[int] = 2
    degree: ClassVar[int] = 1  # the degree of the polynomials for pure noise

    columns: tuple[str, ...]
    bounds_of: tuple[tuple[float, float], ...]
    ddof: int = 1
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same

    def __post_init__(self) -> None:
        if not is_one_of(self.ddof, (0, 1)) or isinstance(self.ddof, bool):
            raise InvalidArgument(f"ddof must be 0 or 1, not {shown(self.ddof)}. Write ddof=1 for a sample.")

    def written(self) -> dict[str, Any]:
        """Return the arguments of the call that makes it."""
        bounds = dict(zip(map(plain_name, self.columns), self.bounds_of, strict=True))
        said = {name: value for name, value in super().written().items() if name not in ("columns", "bounds_of")}
        return {"columns": list(self.columns), "bounds": bounds, **said}

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return self.verb

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The pairs of columns: each group has a row for each pair."""
        names = [*map(plain_name, self.columns)]
        each = pairs(len(names))
        return (KeyAxis(LABELS, tuple(tuple(names[pair[end]] for pair in each) for end in (0, 1))),)

    def under(self, pure: bool) -> Self:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        values = tuple(zip(self.columns, self.bounds_of, strict=True))
        if self.pure:
            return tuple(VectorTotal(pair_cells(values, i, j, self.degree)) for i, j in pairs(len(values)))
        return tuple(FunctionTotal(row) for row in centred_products(values))

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the values that a matrix can have, and the half-widths of their intervals.

        There is a row for each pair. Together, the values form a matrix of covariances.
        """
        return self._read(self._measured_pairs(measured, CONFIDENCE))

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """Return the values from the noisy numbers of each pair alone, valid matrix or not."""
        measured_pairs = self._measured_pairs(measured, CONFIDENCE)
        return {NOISY: (np.stack([self._noisy(pair) for pair in measured_pairs], axis=1) * self._units()).ravel()}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the largest error to expect for `size` rows with even and independent values."""
        of_sizes = np.array([[size, 0.0, 0.0, size / 3.0, size / 3.0, 0.0]])
        expected_pairs = [
            replace(pair, moments=of_sizes)
            for pair in self._pairs([np.zeros((1, 0))] * len(noises), noises, confidence)
        ]
        return float(self._read(expected_pairs)[1].max())

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target without the number of rows in a group."""
        check_size(size, f"a {self.verb} ({name})", of="rows")

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {
            "verb": self.verb,
            "column": ", ".join(map(plain_name, self.columns)),
            "columns": list(self.columns),
            "bounds_of_columns": [list(bounds) for bounds in self.bounds_of],
            "ddof": self.ddof,
        }

    def __str__(self) -> str:
        each = (f"{name} in [{lo:g}, {hi:g}]" for name, (lo, hi) in zip(self.columns, self.bounds_of, strict=True))
        return f"{self.verb} of {', '.join(each)}"

    def _measured_pairs(self, measured: Mapping[Total, Measured], confidence: float) -> list[Pair]:
        noisy = [measured[total] for total in self.totals()]
        return self._pairs([sums.values for sums in noisy], [sums.noise for sums in noisy], confidence)

    def _pairs(self, values: Sequence[Floats], noises: Sequence[Noise], confidence: float) -> list[Pair]:
        """Return the moments of each pair, with the z of the noise with the heaviest tails."""
        z, size = largest_z(noises, confidence), len(self.columns)
        known_pairs = []
        for number, (i, j) in enumerate(pairs(size)):
            if self.pure:
                mixing = moments.of_cells(self.degree)
                cells, noise = values[number].reshape(-1, mixing.shape[1]), noises[number].variance * mixing @ mixing.T
                known_pairs.append(Pair(cells @ mixing.T, noise, z))
                continue
            indices = [0, 1 + i, 1 + j, 1 + size + i, 1 + size + j, 1 + 2 * size + number]
            mixing = np.eye(moments.MOMENTS)
            mixing[3, 0] = mixing[4, 0] = 0.5  # from y^2 - 1/2 to y^2
            read = np.stack([values[index].ravel() for index in indices], axis=1) @ mixing.T
            variances = np.array([noises[index].variance for index in indices])
            known_pairs.append(Pair(read, mixing * variances @ mixing.T, z))
        return known_pairs

    def _units(self) -> Floats:
        """Return the unit of each pair: the product of both half ranges, of the bounds to which values are clipped."""
        ends = [[step * step_length(bounds) for step in grid_steps(bounds)] for bounds in self.bounds_of]
        half = [(upper - lower) / 2.0 for lower, upper in ends]
        return np.array([half[i] * half[j] for i, j in pairs(len(half))])

    def _noisy(self, pair: Pair) -> Floats:
        return moments.covariances(pair, self.ddof)

    def _read(self, measured_pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
        values = self._nearest(measured_pairs)
        errors = [moments.covariance_errors(pair, values[:, k], self.ddof) for k, pair in enumerate(measured_pairs)]
        return (values * self._units()).ravel(), (np.stack(errors, axis=1) * self._units()).ravel()

    def _nearest(self, measured_pairs: Sequence[Pair]) -> Floats:
        """Return the nearest covariance matrix; variances that are not measured may be the largest possible.

        A mean of m leaves a variance of at most 1 - m^2. A covariance is at most the root of the product of two such.
        """
        noisy = np.stack([self._noisy(pair) for pair in measured_pairs], axis=1)
        factor = np.stack([pair.n / (pair.n - self.ddof) for pair in measured_pairs], axis=1)
        if self.pure:
            most = factor * np.stack([np.sqrt(np.prod(1.0 - pair.means**2, axis=1)) for pair in measured_pairs], axis=1)
            return np.clip(noisy, -most, most)
        matrices = self._matrices(noisy)
        for (i, j), pair in zip(pairs(len(self.columns)), measured_pairs, strict=True):
            for side, column in enumerate((i, j)):
                matrices[:, column, column] = pair.centred(side, side) / (pair.n - self.ddof)
        return self._of_matrices(moments.nearest_covariances(matrices, factor[:, 0]))

    def _matrices(self, values: Floats) -> Floats:
        """Return a symmetric matrix for each group, with 1 on its diagonal."""
        size = len(self.columns)
        matrices = np.tile(np.eye(size), (len(values), 1, 1))
        for entry, (i, j) in enumerate(pairs(size)):
            matrices[:, i, j] = matrices[:, j, i] = values[:, entry]
        return matrices

    def _of_matrices(self, matrices: Floats) -> Floats:
        return np.stack([matrices[:, i, j] for i, j in pairs(len(self.columns))], axis=1)


@dataclass(frozen=True, repr=False)
class Correlation(Covariance):
    """The correlation of each pair of columns, with values clipped to their bounds.

    Made by `dpframe.correlation`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.correlation(["age", "cost"], bounds={"age": (0, 120), "cost": (0, 5_000)}).default_name
    'correlation'
    """

    verb: ClassVar[str] = "correlation"
    degree: ClassVar[int] = 2

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {name: said for name, said in (super().facts() or {}).items() if name != "ddof"}

    def _units(self) -> Floats:
        return np.ones(len(pairs(len(self.columns))))

    def _noisy(self, pair: Pair) -> Floats:
        return moments.correlations(pair)

    def _nearest(self, measured_pairs: Sequence[Pair]) -> Floats:
        noisy = np.stack([self._noisy(pair) for pair in measured_pairs], axis=1)
        return self._of_matrices(moments.nearest_correlations(self._matrices(noisy)))

    def _read(self, measured_pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
        values = self._nearest(measured_pairs)
        errors = [moments.correlation_errors(pair, values[:, k]) for k, pair in enumerate(measured_pairs)]
        return values.ravel(), np.stack(errors, axis=1).ravel()


@trimmed
def covariance(
    columns: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    *,
    ddof: int = 1,
    where: Mapping[str, Any] | None = None,
) -> Covariance:
    """Release the covariance of each pair of columns, in an `agg` of its own.

    Parameters
    ----------
    columns : list of str
        Two or more columns of numbers, at most 64. A row in which one of them is null or NaN is left out.
    bounds : dict of pairs of numbers by column
        The lower and the upper bound of the values of each column, in its units.
    ddof : {1, 0}
        The number that is subtracted from the number of rows in the divisor.
    where : dict, optional
        Count only rows with these values. By column: a value, a list of values, or a pair (low, high), half-open like
        bins, with None for an open end. It costs nothing: the noise stays the same.

    Returns
    -------
    Covariance
        The only statistic of a call: ``.dp.group_by(...).agg(dpf.covariance(...))``. The result has a row for each pair
        in each group: ``column``, ``other``, ``covariance``, ``covariance_noisy`` and ``covariance_error``.

    Raises
    ------
    MissingArgument
        If `bounds` is left out.
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Notes
    -----
    With Gaussian noise, variances are measured too. The covariances are then those of the nearest matrix without
    negative eigenvalues (Higham 1988), and ``covariance_noisy`` is the estimate from each pair alone. If the noisy
    number of rows is below 2, a covariance is 0, and its error is the largest that the bounds allow.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.covariance(["age", "cost"], bounds={"age": (0, 120), "cost": (0, 5_000)}))
    covariance of age in [0, 120], cost in [0, 5000]
    """
    return Covariance(*_checked(columns, bounds, where), ddof)


@trimmed
def correlation(
    columns: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    *,
    where: Mapping[str, Any] | None = None,
) -> Correlation:
    """Release the correlation of each pair of columns, in an `agg` of its own.

    Parameters
    ----------
    columns, bounds, where
        As for `covariance`.

    Returns
    -------
    Correlation
        As for `covariance`, with ``correlation``, ``correlation_noisy`` and ``correlation_error``. Correlations lie
        within [-1, 1] and form a matrix without negative eigenvalues. A correlation is 0 if a noisy variance is not
        positive.

    Raises
    ------
    MissingArgument, InvalidArgument, InvalidType
        As for `covariance`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.correlation(["age", "cost"], bounds={"age": (0, 120), "cost": (0, 5_000)}))
    correlation of age in [0, 120], cost in [0, 5000]
    """
    return Correlation(*_checked(columns, bounds, where))


def _checked(columns: Any, bounds: Any, where: Any) -> tuple[tuple[str, ...], tuple[tuple[float, float], ...]]:
    """Return the columns, under their conditions, and the bounds of each."""
    names = checked_columns(columns, 2, MOST_COLUMNS, EXAMPLE)
    if bounds is None:
        raise MissingArgument(f"bounds must be given for each column: they are never taken from the data. {EXAMPLE}")
    if not isinstance(bounds, Mapping):
        raise InvalidType(f"bounds must be a dict of pairs by column, not {shown(bounds)}. {EXAMPLE}")
    if set(bounds) != set(names):
        raise InvalidArgument(f"bounds must name each column and no other, not {shown(list(bounds))}. {EXAMPLE}")
    bounds_of = tuple(checked_bounds(bounds[column]) for column in names)
    return tuple(under_conditions(name, where) for name in names), bounds_of
