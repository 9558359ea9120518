"""Counts of bins that are made to be added up, by two looks, the second where the first has left most open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.queries.stages import Buckets, Cells, Later
from dpframe.queries.statistics.ranges import Ranges
from dpframe.queries.statistics.statistic import CONFIDENCE
from dpframe.queries.total import Floats, Measured, Noise, Total
from dpframe.queries.vectors import InnerCounts

# the fewest bins, by whether the noise is pure and whether they are a grid: of fewer the fixed design errs as little,
# and tells its errors before
FEWEST = {(True, False): 1_024, (True, True): 256, (False, False): math.inf, (False, True): 2**16}

SECOND = {1: 2, 2: 1}  # what the second look costs, the first being 1, by the number of axes: measured, on DPBench


@dataclass(frozen=True)
class StagedRanges(Ranges):
    """The count of each bin, so measured that sums of neighboring bins err little.

    Asked by ``df.dp.histogram(..., ranges=True)`` where the answer is denoised. A part of the price, a third on a line
    and half on a grid, buys a noisy count of each bin. What these say (`dpframe.denoise.context`) leaves some regions
    more open than others, and the rest buys sums over buckets that are equally open, by a tree over them.

    Examples
    --------
    >>> counts = StagedRanges((1_000,))
    >>> print(counts, [total.describe() for total in counts.totals()])
    count() for sums of bins ['counts of bins over 1,000 bins', 'sums of buckets of bins over 1,000 bins']
    """

    def under(self, pure: bool) -> Ranges:
        """The form that suits pure noise or, else, Gaussian noise; of few bins the one whose design is fixed."""
        staged = math.prod(self.shape) >= FEWEST[pure, len(self.shape) == 2]
        return StagedRanges(self.shape, pure) if staged else Ranges(self.shape, pure)

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it: both looks."""
        first = Total(vector=InnerCounts(None, (), (0.0, 1.0), Cells(self.shape), "counts of bins"))
        later = Later(self.shape, self.pure)
        second = InnerCounts(None, (), (0.0, 1.0), later, "sums of buckets of bins", first)
        return first, Total(vector=second)

    def weights(self) -> tuple[int, ...]:
        """The parts of the price that both looks take: see `SECOND`."""
        return 1, SECOND[len(self.shape)]

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The counts of the first look, which are unbiased, and the half-widths of their intervals."""
        first = measured[self.totals()[0]]
        return first.values, np.full(first.values.shape, first.noise.interval(CONFIDENCE))

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The half-width to expect of a bin at the first look; what both say of a sum depends on the counts."""
        return noises[0].interval(confidence)

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str]:
        """Counts of at least 0, by both looks."""
        second = measured[self.totals()[1]]
        assert isinstance(second.decided, Buckets)
        return second.decided.fitted(second.values).ravel(), "both looks, at bins and at buckets of them"

    def error_words(self, error: str) -> str:
        """An error in a plan: of the unbiased counts, since that of a sum depends on the counts."""
        return f"+-{error} of a bin by itself; less of sums, by how much depends on the counts"

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it."""
        return {"verb": self.verb, "column": None}
