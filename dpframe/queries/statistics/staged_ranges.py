"""Counts of bins that are made to be added up, by three looks: how many rows, where they are, what is left open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.queries.row_functions import Floats
from dpframe.queries.scales import BESIDE, WEIGHT, Blocks, Scales, Whole
from dpframe.queries.stages import Buckets, Later
from dpframe.queries.statistics.ranges import Ranges
from dpframe.queries.statistics.statistic import CONFIDENCE
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import InnerCounts

# the fewest bins, by whether the noise is pure and whether they are a grid: of fewer the fixed design errs as little,
# and tells its errors before
FEWEST = {(True, False): 1_024, (True, True): 256, (False, False): math.inf, (False, True): 2**16}

PARTS = {1: (3, 29, 68), 2: (3, 47, 50)}  # hundredths of the price, by the number of axes: measured, on DPBench


@dataclass(frozen=True)
class StagedRanges(Ranges):
    r"""The count of each bin, so measured that sums of neighboring bins err little.

    Asked by ``df.dp.histogram(..., ranges=True)`` where the answer is denoised. A small part of the cost measures the
    noisy number of rows. Another, on a line 29% and on a grid 47%, measures a noisy count of each bin and, where few
    rows were seen, of blocks of bins. What these say (`dpframe.denoise.context`) leaves some regions more open than
    others, and the rest measures sums over buckets that are equally open, by a tree over them.

    Examples
    --------
    >>> counts = StagedRanges((1_000,))
    >>> print(counts, *(total.describe() for total in counts.totals()), sep="\n")
    count() for sums of bins
    rows in all over 1,000 bins
    counts of bins and blocks over 1,000 bins
    sums of buckets of bins over 1,000 bins
    """

    def under(self, pure: bool) -> Ranges:
        """The form that suits pure noise or, else, Gaussian noise; of few bins the one whose design is fixed."""
        staged = math.prod(self.shape) >= FEWEST[pure, len(self.shape) == 2]
        return StagedRanges(self.shape, pure) if staged else Ranges(self.shape, pure)

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it: all three looks."""
        whole = self._look(Whole(self.shape), "rows in all")
        bins = self._look(Scales(self.shape, self.pure), "counts of bins and blocks", whole)
        return whole, bins, self._look(Later(self.shape, self.pure), "sums of buckets of bins", whole, bins)

    @staticmethod
    def _look(design: Whole | Scales | Later, called: str, *before: Total) -> Total:
        return VectorTotal(InnerCounts(None, (), (0.0, 1.0), design, called, before))

    def weights(self) -> tuple[int, ...]:
        """The parts of the cost that the looks take: see `PARTS`."""
        return PARTS[len(self.shape)]

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The counts of the second look, which are unbiased, and the half-widths of their intervals."""
        bins = measured[self.totals()[1]]
        assert isinstance(bins.decided, Blocks)
        half = bins.noise.interval(CONFIDENCE) * bins.decided.times
        counts = bins.decided.bins(bins.values)
        return counts, np.full(counts.shape, half)

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The half-width to expect of a bin where many rows are seen; that of a sum depends on the counts."""
        return noises[1].interval(confidence)

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str]:
        """Counts of at least 0, by all looks."""
        last = measured[self.totals()[2]]
        assert isinstance(last.decided, Buckets)
        return last.decided.fitted(last.values).ravel(), "all looks, at rows, at bins and at buckets of them"

    def error_words(self, error: str) -> str:
        """An error in a plan: of the unbiased counts, since that of a sum depends on the counts."""
        times = WEIGHT // BESIDE[self.pure]
        return f"+-{error} of a bin by itself, {times} times that if rows are few; less of sums"

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it."""
        return {"verb": self.verb, "column": None, "looks": len(self.totals())}
