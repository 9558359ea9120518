"""Means of the neighbors of each cell, by how far they are: rings on lines and square ones on grids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpframe.denoise.noise_law import Floats

ON_A_LINE = (1, 2, 4, 8, 16, 32, 64, 128)
ON_A_GRID = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Rings:
    """For each cell (a row) and ring (a column) the mean of the cells there, and how many they are."""

    means: Floats
    counts: Floats


def rings_of(values: Floats, axes: tuple[int, ...]) -> Rings:
    """The rings along the axes whose neighbors mean something. A cell is in none of its own."""
    means, counts = [], []
    inner, size = values, np.ones(values.shape)
    for radius in radii_of(values.shape, axes):
        total, cells = window(values, radius, axes)
        counts.append((cells - size).ravel())
        means.append(((total - inner).ravel()) / counts[-1])
        inner, size = total, cells
    return Rings(np.stack(means, axis=1), np.stack(counts, axis=1))


def around(values: Floats, radius: int, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The mean of the cells within a radius but the cell itself, and how many they are."""
    total, cells = window(values, radius, axes)
    counts = np.maximum(cells - 1.0, 1.0)
    return (total - values) / counts, counts


def radii_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The radii whose rings hold a cell, wherever the middle is."""
    longest = max(shape[axis] for axis in axes)
    radii = ON_A_LINE if len(axes) == 1 else ON_A_GRID
    return tuple(radius for index, radius in enumerate(radii) if 2 * (0, *radii)[index] + 2 <= longest)


def window(values: Floats, radius: int, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The sum over the cells within a radius along every axis, as far as there are any, and how many they are."""
    cells = np.ones((1,) * values.ndim)
    for axis in axes:
        length = values.shape[axis]
        places = np.arange(length)
        first, last = np.maximum(places - radius, 0), np.minimum(places + radius + 1, length)
        padding = [(int(dimension == axis), 0) for dimension in range(values.ndim)]
        through = np.pad(np.cumsum(values, axis=axis), padding)
        values = np.take(through, last, axis=axis) - np.take(through, first, axis=axis)
        cells = cells * (last - first).reshape([-1 if dimension == axis else 1 for dimension in range(values.ndim)])
    return values, np.broadcast_to(cells, values.shape).astype(np.float64)
