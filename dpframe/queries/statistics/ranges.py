"""Counts of bins whose sums of neighbors have little noise, measured in one stage or in three."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from dpframe.denoise.estimators import NoiseLaw, isotonic
from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.queries.grids import Grid, fitted_grid
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.quotients import sum_interval
from dpframe.queries.row_functions import Floats
from dpframe.queries.stages import BESIDE, WEIGHT, Blocks, Buckets, Later, Scales, Whole
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.vectors import InnerCounts

MOST_BINS = 2**14  # of one axis; the time to compute counts grows with their square
GRID_BITS = 8  # of each axis of a grid; both axes and the weights of units leave room for 2**31 rows


@dataclass(frozen=True)
class Ranges(Statistic):
    """The count of each bin, measured so that sums of neighbors have little noise.

    Used by ``df.dp.histogram(..., ranges=True)``. The bins are the last one or two axes of the keys.

    Examples
    --------
    >>> counts = Ranges((1_000,))
    >>> print(counts, counts.default_name)
    count() for sums of bins count
    """

    verb: ClassVar[str] = "count"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    shape: tuple[int, ...]  # the number of bins on each axis
    pure: bool = field(default=False, repr=False)  # whether it has the form for pure noise; its answer means the same

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "count"

    @property
    def design(self) -> PrefixSums | Tree | Grid:
        """The design of the numbers to measure from the counts of the bins."""
        return _design(self.shape, self.pure)

    def under(self, pure: bool) -> Ranges:
        """Return the form for pure noise, or that for Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures."""
        return (VectorTotal(InnerCounts(None, (), (0.0, 1.0), self.design)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the unbiased counts, and the half-widths of their intervals.

        There is a row for each bin of each group.
        """
        design, sums = self.design, measured[self.totals()[0]]
        counts = self._apart(design.running(sums.values.reshape(-1, design.width)))
        half = sum_interval(sums.noise, CONFIDENCE) * np.sqrt(design.bin_variances)
        return counts.ravel(), np.tile(half, counts.shape[0])

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width to expect of a sum of neighboring bins, the largest of all."""
        return sum_interval(noises[0], confidence) * math.sqrt(self.design.largest_variance)

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str]:
        """Return counts of at least 0, whose sums stay near the noisy ones.

        On a line, the running sums become the nearest ones that never fall. Such a fit moves no set of running sums
        away from the true ones, which do not fall either. On a grid, the total is raised to 0 at least and divided
        among its quarters, and so on. This is done if it brings the sums of rectangles nearer to the true ones, by an
        unbiased estimate of their errors.
        """
        cells, noise = values.reshape(-1, *self.shape), measured[self.totals()[0]].noise
        if len(self.shape) > 1:
            counts = fitted_grid(cells, noise, lambda draws: self._apart(self.design.running(draws)), self.design.width)
            return (values, "none") if counts is None else (counts.ravel(), "sums shared out from the whole down")
        running = np.cumsum(cells, axis=1)
        rising = np.maximum(isotonic(running, cast(NoiseLaw, noise)), 0.0)
        return np.maximum(np.diff(rising, axis=1, prepend=0.0), 0.0).ravel(), "running sums that never fall"

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it: the error of a sum of bins."""
        cells = "bins" if len(self.shape) == 1 else "cells in a rectangle"
        return f"+-{error} of any sum of neighboring {cells}"

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states.

        They include the largest standard deviations of sums, for noise of scale 1.
        """
        design = self.design
        variances = {
            "bin": float(design.bin_variances.max()),
            "first": float(design.variances.max()),
            "any": design.largest_variance,
        }
        return {
            "verb": self.verb,
            "column": None,
            "sums": {name: math.sqrt(variance) for name, variance in variances.items()},
        }

    def bin_weights(self) -> Floats:
        """Return the weight of each measured number in the count of each bin: (bins, numbers)."""
        return np.asarray(self._apart(self.design.running(np.eye(self.design.width))).T)

    def _apart(self, running: Floats) -> Floats:
        """Return the cells of running sums, along each axis."""
        cells = running.reshape(-1, *self.shape)
        for axis in range(1, cells.ndim):
            cells = np.diff(cells, axis=axis, prepend=0.0)
        return cells.reshape(running.shape)

    def __str__(self) -> str:
        return "count() for sums of bins"


def shape_of(axes: Sequence[Any]) -> tuple[int, ...]:
    """Return the numbers of declared bins of one column or two."""
    shape = tuple(axis.size for axis in axes)
    if len(shape) > 2:
        raise InvalidArgument(
            f"ranges must be asked of bins of one column or two, not {len(shape)}. Ask for fewer columns, or leave it "
            "out."
        )
    for size in shape:
        if size > MOST_BINS:
            raise InvalidArgument(
                f"bins must be at most {MOST_BINS:,} of a column with ranges=True, not {size:,}. Take wider bins."
            )
    if not all(axis.ordered for axis in axes):
        raise MissingArgument(
            "bins must be given with ranges=True, which is for sums of neighbors: categories have none. Write for "
            "instance bins=range(0, 101), or leave ranges out."
        )
    return shape


@cache
def _design(shape: tuple[int, ...], pure: bool) -> PrefixSums | Tree | Grid:
    if len(shape) == 1:
        return Tree.best_of_sums(shape[0]) if pure else PrefixSums(shape[0])
    first, second = (Tree.best_of_sums(size) if pure else PrefixSums(size, GRID_BITS) for size in shape)
    return Grid(first, second)


# the fewest bins for stages, by whether the noise is pure and whether the bins are a grid; for fewer bins, the errors
# of the fixed design are as small, and are known before
FEWEST = {(True, False): 1_024, (True, True): 256, (False, False): math.inf, (False, True): 2**16}

PARTS = {1: (3, 29, 68), 2: (3, 47, 50)}  # hundredths of the cost, by the number of axes: measured on DPBench


@dataclass(frozen=True)
class StagedRanges(Ranges):
    r"""The count of each bin, measured so that sums of neighbors have small errors.

    Used by ``df.dp.histogram(..., ranges=True)`` if the answer is adjusted. It measures in three stages:

    - a small part of the cost measures the noisy number of rows;
    - another part, 29% on a line and 47% on a grid, measures a noisy count of each bin and, where few rows were seen,
      of blocks of bins;
    - these counts (`dpframe.denoise.context`) leave some regions less certain than others, so the rest measures sums
      over buckets that are equally uncertain, by a tree over them.

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
        """Return the form for pure noise or Gaussian noise; that of few bins has a fixed design."""
        staged = math.prod(self.shape) >= FEWEST[pure, len(self.shape) == 2]
        return StagedRanges(self.shape, pure) if staged else Ranges(self.shape, pure)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures, in all three stages."""
        whole = self._look(Whole(self.shape), "rows in all")
        bins = self._look(Scales(self.shape, self.pure), "counts of bins and blocks", whole)
        return whole, bins, self._look(Later(self.shape, self.pure), "sums of buckets of bins", whole, bins)

    @staticmethod
    def _look(design: Whole | Scales | Later, called: str, *before: Total) -> Total:
        return VectorTotal(InnerCounts(None, (), (0.0, 1.0), design, called, before))

    def weights(self) -> tuple[int, ...]:
        """Return the parts of the cost that the stages take: see `PARTS`."""
        return PARTS[len(self.shape)]

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the unbiased counts of the second stage, and their half-widths."""
        bins = measured[self.totals()[1]]
        assert isinstance(bins.decided, Blocks)
        half = bins.noise.interval(CONFIDENCE) * bins.decided.times
        counts = bins.decided.bins(bins.values)
        return counts, np.full(counts.shape, half)

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width to expect of a bin in which many rows are seen.

        That of a sum depends on the counts.
        """
        return noises[1].interval(confidence)

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str]:
        """Return counts of at least 0, from all stages."""
        last = measured[self.totals()[2]]
        assert isinstance(last.decided, Buckets)
        return last.decided.fitted(last.values).ravel(), "all looks, at rows, at bins and at buckets of them"

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it: that of the unbiased counts.

        The error of a sum depends on the counts.
        """
        times = WEIGHT // BESIDE[self.pure]
        return f"+-{error} of a bin by itself, {times} times that if rows are few; less of sums"

    def facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {"verb": self.verb, "column": None, "looks": len(self.totals())}
