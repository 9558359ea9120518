"""Values to bins that are half open, exactly as numpy.histogram: what follows from the edges is worked out once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.engines.even_bins import EvenBins
from dpframe.engines.identity import NOWHERE
from dpframe.queries.bins import BinAxis, RunningAxis

Integers = NDArray[np.int64]

BLOCK = 2**16  # values at a time: they stay in the processor's cache


@dataclass(frozen=True)
class HalfOpenBins:
    """Bins in a column's own numbers: bin i is edges[i] <= value < edges[i + 1]."""

    edges: NDArray[Any]
    closed: bool  # whether an infinite last edge also takes what equals it, but no NaN
    even: EvenBins | None
    guess: tuple[float, float] | None  # what `near_uniform` says of bins that are not even

    @classmethod
    def of(cls, axis: BinAxis, tick: int) -> Self:
        """The bins of an axis; `tick` is as for `half_open_edges`."""
        return cls.between(half_open_edges(axis, tick), axis.outside == "clip")

    @classmethod
    def between(cls, edges: NDArray[Any], closed: bool) -> Self:
        """The bins between edges that are half open as they stand."""
        even = EvenBins.of(edges)
        return cls(edges, closed, even, near_uniform(edges) if even is None else None)

    @property
    def size(self) -> int:
        """The number of bins."""
        return self.edges.size - 1

    def counted(self, values: NDArray[Any]) -> Integers:
        """The number of values in each bin; of uneven ones by sorting blocks: faster than a search per value."""
        if self.even is not None and self.edges.size <= BLOCK:
            return self.even.counted(values)
        edges, below = self.edges, np.zeros(self.edges.size, dtype=np.int64)
        for start in range(0, values.size, BLOCK):
            block = np.sort(values[start : start + BLOCK])  # NaN last, above every edge
            below += np.searchsorted(block, edges)
            if self.closed:
                below[-1] += np.searchsorted(block, edges[-1], side="right") - np.searchsorted(block, edges[-1])
        return np.diff(below)

    def codes(self, values: NDArray[Any]) -> Integers:
        """The bin of each value, NOWHERE for a value in none (NaN among them)."""
        codes = np.empty(values.size, dtype=np.int64)
        for start in range(0, values.size, BLOCK):
            codes[start : start + BLOCK] = self._codes_of_block(values[start : start + BLOCK])
        return codes

    def _codes_of_block(self, block: NDArray[Any]) -> Integers:
        if self.even is not None:
            code = self.even.places(block)
            return np.where(code < self.size, code, NOWHERE)
        edges = self.edges
        inside = (block >= edges[0]) & ((block <= edges[-1]) if self.closed else (block < edges[-1]))
        if self.guess is None:
            code = np.searchsorted(edges, block, side="right") - 1
        else:
            code = _guessed(block, edges, *self.guess)
        return np.where(inside, np.minimum(code, self.size - 1), NOWHERE)


def half_open_edges(axis: BinAxis, tick: int) -> NDArray[Any]:
    """The edges in the column's own numbers, such that bin i is edges[i] <= value < edges[i + 1] for every i.

    A last bin that is closed, as NumPy's is, has its edge moved up by one float or one tick. Edges between two ticks of
    a coarser column move up to the next tick, which changes no comparison.
    """
    if isinstance(axis, RunningAxis):
        return _right_closed_edges(axis, tick)
    if axis.kind == "number":
        edges = np.array(axis.edges, dtype=np.float64)
        if axis.closed:
            edges[-1] = math.nextafter(edges[-1], math.inf)
    else:
        ticks = [-(-int(edge) // tick) for edge in axis.edges]
        if axis.closed:
            ticks[-1] = int(axis.edges[-1]) // tick + 1
        edges = np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)
    if axis.outside == "clip":
        lowest, highest = (-math.inf, math.inf) if axis.kind == "number" else (-(2**63), 2**63 - 1)
        edges[0], edges[-1] = lowest, highest
    return edges


def _right_closed_edges(axis: RunningAxis, tick: int) -> NDArray[Any]:
    """The same for bins that hold their right edges, open below the first and with a cell above the last.

    Each edge is moved up by one float, or to the next tick above it.
    """
    if axis.kind == "number":
        above = np.nextafter(np.array(axis.edges[1:], dtype=np.float64), np.inf)
        return np.concatenate([[-math.inf], above, [math.inf]])
    ticks = [-(2**63), *(int(edge) // tick + 1 for edge in axis.edges[1:]), 2**63 - 1]
    return np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)


def near_uniform(edges: NDArray[Any]) -> tuple[float, float] | None:
    """Origin and bins per unit if guessing by division is off by at most one bin; None where it might be more."""
    if edges.size < 3 or not np.isfinite(edges.astype(np.float64)).all():
        return None
    numbers = edges.astype(np.float64)
    width = (numbers[-2] - numbers[0]) / (numbers.size - 2)
    if width <= 0:
        return None
    places = (numbers[:-1] - numbers[0]) / width
    return (float(numbers[0]), 1.0 / width) if np.abs(places - np.arange(places.size)).max() < 0.25 else None


def _guessed(block: NDArray[Any], edges: NDArray[Any], origin: float, per_unit: float) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore", over="ignore"):
        guess = (block.astype(np.float64) - origin) * per_unit
    code = np.clip(np.nan_to_num(guess, nan=0.0), 0, edges.size - 2).astype(np.int64)
    code -= (block < edges[code]) & (code > 0)
    code += (block >= edges[code + 1]) & (code < edges.size - 2)
    return code
