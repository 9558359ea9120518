"""Means of the neighbors of each cell, by how far they are: rings on lines and square ones on grids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.noise_law import Floats, Integers

ON_A_LINE = (1, 2, 4, 8, 16, 32, 64, 128)
ON_A_GRID = (1, 2, 4, 8, 16)
STRIP = 2**15  # cells that are worked on at a time: they stay in the processor's cache


@dataclass(frozen=True)
class Rings:
    """For each ring (a row) and cell (a column) the mean of the cells there, and how many they are."""

    means: Floats
    counts: Floats


@dataclass(frozen=True)
class Windows:
    """Sums over windows around cells along some axes, from the sums of all cells before each."""

    values: Floats
    axes: tuple[int, ...]
    before: Floats  # with so many places more at each end of these axes as the largest radius, and one
    reach: int

    @classmethod
    def of(cls, values: Floats, axes: tuple[int, ...], reach: int) -> Windows:
        """The sums of the cells before each place; past the ends they stay as they are."""
        before = values
        for axis in axes:
            shape = list(before.shape)
            shape[axis] += 2 * reach + 1
            padded, inner = np.zeros(shape), _along(axis, reach + 1, reach + 1 + before.shape[axis])
            np.cumsum(before, axis=axis, out=padded[inner])
            padded[_along(axis, reach + 1 + before.shape[axis], None)] = padded[inner][_along(axis, -1, None)]
            before = padded
        return cls(values, axes, before, reach)

    def strip(self, radius: int, first: int, last: int) -> tuple[Floats, Floats]:
        """The sum within a radius for the cells from the first to the last along the first axis, and their numbers."""
        sums = self.before
        if 0 not in self.axes:
            sums = sums[first:last]
        for axis in self.axes:
            start, stop = (first, last) if axis == 0 else (0, self.values.shape[axis])
            upper = _along(axis, self.reach + radius + 1 + start, self.reach + radius + 1 + stop)
            sums = sums[upper] - sums[_along(axis, self.reach - radius + start, self.reach - radius + stop)]
        return sums, self.sizes(radius, first, last)

    def sizes(self, radius: int, first: int, last: int) -> Floats:
        """The number of cells within a radius, in a shape that goes with that of the cells."""
        sizes = np.ones((1,) * self.values.ndim)
        for axis in self.axes:
            length = self.values.shape[axis]
            places = np.arange(first, last) if axis == 0 else np.arange(length)
            there = np.minimum(places + radius + 1, length) - np.maximum(places - radius, 0)
            if there[0] == there[-1] == 2 * radius + 1:  # all alike: away from both ends
                there = there[:1]
            sizes = sizes * there.reshape([-1 if dimension == axis else 1 for dimension in range(self.values.ndim)])
        return sizes

    def at(self, radius: int, places: Integers) -> tuple[Floats, Floats]:
        """The sum within a radius for some cells, and their numbers."""
        index, shape = np.unravel_index(places, self.values.shape), self.before.shape
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        middle = sum(
            (index[axis] + (self.reach if axis in self.axes else 0)) * strides[axis] for axis in range(len(shape))
        )
        total, flat = np.zeros(places.size), self.before.ravel()
        for ends in itertools.product((0, 1), repeat=len(self.axes)):
            moved = sum(
                strides[axis] * (radius + 1 if end else -radius) for axis, end in zip(self.axes, ends, strict=True)
            )
            total += (-1.0) ** (len(ends) - sum(ends)) * flat[middle + moved]
        sizes = np.ones(places.size)
        for axis in self.axes:
            length = self.values.shape[axis]
            sizes *= np.minimum(index[axis] + radius + 1, length) - np.maximum(index[axis] - radius, 0)
        return total, sizes

    def strips(self) -> Iterator[tuple[int, int]]:
        """The first axis in pieces."""
        length = self.values.shape[0]
        step = max(1, STRIP * length // max(self.values.size, 1))
        for first in range(0, length, step):
            yield first, min(first + step, length)


def rings_in(windows: Windows, radii: tuple[int, ...], first: int, last: int) -> Rings:
    """The rings of the cells from the first to the last along the first axis. A cell is in none of its own."""
    inner, size = windows.values[first:last], np.ones((1,) * windows.values.ndim)
    means, counts = np.empty((len(radii), inner.size)), np.empty((len(radii), inner.size))
    shape = inner.shape
    for ring, radius in enumerate(radii):
        total, cells = windows.strip(radius, first, last)
        counts[ring].reshape(shape)[...] = cells - size
        np.divide(total - inner, cells - size, out=means[ring].reshape(shape))
        inner, size = total, cells
    return Rings(means, counts)


def rings_at(windows: Windows, radii: tuple[int, ...], places: Integers) -> Rings:
    """The rings of some cells."""
    inner, size = windows.values.ravel()[places], np.ones(places.size)
    means, counts = np.empty((len(radii), places.size)), np.empty((len(radii), places.size))
    for ring, radius in enumerate(radii):
        total, cells = windows.at(radius, places)
        counts[ring] = cells - size
        means[ring] = (total - inner) / counts[ring]
        inner, size = total, cells
    return Rings(means, counts)


def radii_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The radii whose rings hold a cell, wherever the middle is."""
    longest = max(shape[axis] for axis in axes)
    radii = ON_A_LINE if len(axes) == 1 else ON_A_GRID
    return tuple(radius for index, radius in enumerate(radii) if 2 * (0, *radii)[index] + 2 <= longest)


def _along(axis: int, start: int, stop: int | None) -> tuple[slice, ...]:
    return (*itertools.repeat(slice(None), axis), slice(start, stop))
