"""Counts of bins that are made to be added up: noise for sums of neighboring bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from dpframe.denoise.estimators import NoiseLaw, isotonic
from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.queries.fieller import sum_interval
from dpframe.queries.grids import Grid
from dpframe.queries.prefix_sums import PrefixSums
from dpframe.queries.rectangles import fitted_grid
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Statistic
from dpframe.queries.total import Measured, Noise, Total, VectorTotal
from dpframe.queries.trees import Tree
from dpframe.queries.vectors import InnerCounts

MOST_BINS = 2**14  # of one axis: what is read off takes their square in time
GRID_BITS = 8  # of each axis of a grid: both together, and the weights of units, leave room for 2**31 rows


@dataclass(frozen=True)
class Ranges(Statistic):
    """The count of each bin, so measured that sums of neighboring bins have little noise.

    Asked by ``df.dp.histogram(..., ranges=True)``; the bins are the last axes of the keys, one or two.

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

    shape: tuple[int, ...]  # how many bins there are on each axis
    pure: bool = field(default=False, repr=False)  # the form that it has for pure noise; its answer means the same

    @property
    def default_name(self) -> str:
        """The name of its output column."""
        return "count"

    @property
    def design(self) -> PrefixSums | Tree | Grid:
        """The numbers that are measured of the counts of the bins."""
        return _design(self.shape, self.pure)

    def under(self, pure: bool) -> Ranges:
        """The form that suits pure noise or, else, Gaussian noise."""
        return replace(self, pure=pure)

    def totals(self) -> tuple[Total, ...]:
        """The Totals to measure for it."""
        return (VectorTotal(InnerCounts(None, (), (0.0, 1.0), self.design)),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """The unbiased counts, and the half-widths of their intervals: a row for each bin of each group."""
        design, sums = self.design, measured[self.totals()[0]]
        counts = self._apart(design.running(sums.values.reshape(-1, design.width)))
        half = sum_interval(sums.noise, CONFIDENCE) * np.sqrt(design.bin_variances)
        return counts.ravel(), np.tile(half, counts.shape[0])

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """The half-width to expect of any sum of neighboring bins, the largest of all."""
        return sum_interval(noises[0], confidence) * math.sqrt(self.design.largest_variance)

    def fitted(self, values: Floats, measured: Mapping[Total, Measured]) -> tuple[Floats, str]:
        """Counts of at least 0, whose sums stay near: of a line running sums, the nearest ones that never fall.

        Such a fit moves no set of running sums away from the true ones, which do not fall either. Of a grid the total
        is cut at 0, and shared out among its quarters, and so on, if that brings the sums of rectangles nearer to the
        true ones, by an unbiased estimate of their errors.
        """
        cells, noise = values.reshape(-1, *self.shape), measured[self.totals()[0]].noise
        if len(self.shape) > 1:
            counts = fitted_grid(cells, noise, lambda draws: self._apart(self.design.running(draws)), self.design.width)
            return (values, "none") if counts is None else (counts.ravel(), "sums shared out from the whole down")
        running = np.cumsum(cells, axis=1)
        rising = np.maximum(isotonic(running, cast(NoiseLaw, noise)), 0.0)
        return np.maximum(np.diff(rising, axis=1, prepend=0.0), 0.0).ravel(), "running sums that never fall"

    def error_words(self, error: str) -> str:
        """An error in a plan: how far a sum of bins may be off."""
        cells = "bins" if len(self.shape) == 1 else "cells in a rectangle"
        return f"+-{error} of any sum of neighboring {cells}"

    def facts(self) -> dict[str, Any] | None:
        """The facts that a record states of it: the largest standard deviations of sums, for noise of 1."""
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
        """The weight of each measured number in the count of each bin: (bins, numbers)."""
        return np.asarray(self._apart(self.design.running(np.eye(self.design.width))).T)

    def _apart(self, running: Floats) -> Floats:
        """The cells of running sums, along each axis."""
        cells = running.reshape(-1, *self.shape)
        for axis in range(1, cells.ndim):
            cells = np.diff(cells, axis=axis, prepend=0.0)
        return cells.reshape(running.shape)

    def __str__(self) -> str:
        return "count() for sums of bins"


def shape_of(axes: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of declared bins of one column or two."""
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
