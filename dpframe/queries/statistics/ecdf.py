"""The distribution function of a column, read off noisy running counts of its bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from dpframe.queries.prefix_sums import PrefixSums
from dpframe.queries.quantiles import distribution, half_widths
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic, check_size
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.trees import Tree
from dpframe.queries.vectors import InnerCounts

NOISY = "_noisy"


@dataclass(frozen=True)
class Ecdf(Statistic):
    """The share of a group's values up to the end of each bin; the bins are the last axis. Asked by ``df.dp.ecdf``.

    Beyond the last bin there is one cell more, which is measured with the others: without it the whole is unknown.

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
    size: int  # how many bins there are
    pure: bool = field(default=False, repr=False)  # the form that it has for pure noise; its answer means the same

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "ecdf"

    @property
    def design(self) -> PrefixSums | Tree:
        """The numbers that are measured of the counts of the bins, and of what lies beyond them."""
        return Tree.best(self.size + 1) if self.pure else PrefixSums(self.size + 1)

    def under(self, pure: bool) -> Self:
        """The form that suits pure noise or, else, Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (VectorTotal(InnerCounts(None, (), (0.0, 1.0), self.design)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The shares, which never fall, and the half-widths of their intervals: a row for each bin of each group."""
        _, shares, half = self._read(measured)
        return shares[:, :-1].ravel(), half[:, :-1].ravel()

    def more(self, measured: Mapping[Total, Measured]) -> dict[str, Floats]:
        """The quotients of noisy counts as they are."""
        return {NOISY: self._read(measured)[0][:, :-1].ravel()}

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The error to expect for a group of `size` values spread evenly over the bins, the largest of all bins."""
        shares = np.append(np.arange(1.0, self.size + 1.0) / self.size, 1.0)
        return min(float(half_widths(shares, self.design, noises[0], confidence).max()) / size, 1.0)

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Its error depends on how many values a group has."""
        check_size(size, f"an ecdf ({name})")

    def _read(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats, Floats]:
        design, sums = self.design, measured[self.totals()[0]]
        running = design.running(sums.values.reshape(-1, design.width))
        return distribution(running, design, sums.noise, CONFIDENCE)
