"""Graphs of cells, as pairs of neighboring positions, with their spanning forests and matrices of differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpframe.denoise.estimators import Floats, Integers
from dpframe.errors import InvalidArgument, how_many

Sparse = Any  # an array of scipy.sparse, which has no type hints

NO_EDGES: Integers = np.zeros((0, 2), dtype=np.int64)


def edges_of(graph: Any, size: int) -> Integers:
    """Check a graph of `size` cells and return its edges.

    Each edge occurs once, from the lower position to the higher one. Loops are left out.
    """
    edges = np.asarray(graph)
    if edges.size == 0:
        return NO_EDGES
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InvalidArgument(
            f"graph must be an (m, 2) array of integers, the positions of the ends of m edges, not one of shape "
            f"{edges.shape} and dtype {edges.dtype}."
        )
    low, high = int(edges.min()), int(edges.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise InvalidArgument(
            f"graph must hold positions of {how_many(size, 'value')}, from 0 to {size - 1:,}, unlike {wrong}."
        )
    ends = np.sort(edges.astype(np.int64), axis=1)
    return np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)


def lattice(shape: tuple[int, ...], axes: tuple[int, ...]) -> Integers:
    """Return the edges between neighbors on a line or a grid, along these axes."""
    places = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    ways = [np.moveaxis(places, axis, 0) for axis in axes]
    pairs = [np.stack([way[:-1].ravel(), way[1:].ravel()], axis=1) for way in ways]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])


def differences(edges: Integers, size: int) -> Sparse:
    """Return the matrix that maps values to their differences along the edges."""
    from scipy.sparse import csr_array

    rows = np.arange(len(edges))
    ones = np.ones(len(edges))
    places = (np.concatenate([rows, rows]), np.concatenate([edges[:, 0], edges[:, 1]]))
    return csr_array((np.concatenate([ones, -ones]), places), shape=(len(edges), size))


def pieces(edges: Integers, size: int) -> Integers:
    """Return the number of the connected piece that contains each cell."""
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(_joined(edges, size), directed=False)[1], dtype=np.int64)


def _joined(edges: Integers, size: int) -> Sparse:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size))


@dataclass(frozen=True)
class Forest:
    """A spanning tree of each connected piece, with places numbered so that every subtree is a range of places.

    Place 0 is a hub that joins the trees and is not a cell. The cells have the places from 1 on.
    """

    cells: Integers  # the cell at each place, from place 1 on
    parents: Integers  # the place of each place's parent; -1 for the hub
    ends: Integers  # the place after each place's subtree

    @classmethod
    def of(cls, edges: Integers, size: int, roots: Integers) -> Self:
        """Build the trees of shortest paths to the roots, one root for each connected piece."""
        order, before = _visited(edges, size, roots)
        ways: list[int] = order.tolist()
        parent: list[int] = before.tolist()
        count = [1] * (size + 1)
        for cell in reversed(ways[1:]):
            count[parent[cell]] += count[cell]
        position, free = [0] * (size + 1), [1] * (size + 1)
        for cell in ways[1:]:
            position[cell] = free[parent[cell]]
            free[parent[cell]] += count[cell]
            free[cell] = position[cell] + 1
        at = np.array(position)
        cells, parents, ends = (np.empty(size + 1, dtype=np.int64) for _ in range(3))
        cells[at], ends[at] = np.arange(size + 1), at + np.array(count)
        parents[at] = np.where(before >= 0, at[np.maximum(before, 0)], -1)
        return cls(cells[1:], parents, ends)


def far_roots(edges: Integers, size: int, count: int) -> list[Integers]:
    """Return `count` arrays of roots, each with one root for every piece.

    Each root is a cell as far as possible from the earlier roots of its piece.
    """
    piece = pieces(edges, size)
    roots = [np.unique(piece, return_index=True)[1].astype(np.int64)]
    while len(roots) < count:
        order, _ = _visited(edges, size, np.unique(np.concatenate(roots)))
        last = np.empty_like(roots[0])
        last[piece[order[1:]]] = order[1:]  # repeated indices: the last assignment, of the farthest cell, wins
        roots.append(last)
    return roots


def _visited(edges: Integers, size: int, roots: Integers) -> tuple[Integers, Integers]:
    """Return a hub (number `size`) and the cells by distance from the nearest root, and the parent of each cell."""
    from scipy.sparse.csgraph import breadth_first_order

    spokes = np.stack([roots, np.full(roots.size, size)], axis=1)
    order, before = breadth_first_order(_joined(np.concatenate([edges, spokes]), size + 1), size, directed=False)
    return np.asarray(order, dtype=np.int64), np.asarray(before, dtype=np.int64)


def averaged(values: Floats, piece: Integers) -> Floats:
    """Return the mean of its piece for each value."""
    return np.asarray((np.bincount(piece, values) / np.maximum(np.bincount(piece), 1))[piece])
