"""Numbers in bins of nearly even widths, exactly as `numpy.histogram`: by one multiplication, which is proven.

Each value is counted in fine steps, 2**26 to a bin. Edges lie within half a fine step of where even ones would, and the
rounding of floats moves a value by less than that. So the fine step of a value tells its bin, but where it is next to
an edge: those few values are compared with the edge itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BITS = 26
FINE = 2**BITS  # fine steps in a bin: one value in 2**25 is next to an edge
BLOCK = 2**15  # values at a time: they stay in the processor's cache
NEXT_TO_AN_EDGE = 2  # a fine step before an edge and the one after; all are moved up by one


@dataclass(frozen=True)
class EvenBins:
    """Half-open bins of nearly even widths: bin i is edges[i] <= value < edges[i + 1]."""

    edges: Floats
    scale: float  # fine steps in a unit of the values
    shift: float

    @classmethod
    def of(cls, edges: NDArray[Any]) -> Self | None:
        """None where the edges are not as even as that, not finite, or integers."""
        if edges.dtype != np.float64 or edges.size < 3 or not np.isfinite(edges).all():
            return None
        with np.errstate(all="ignore"):
            scale = FINE * float(edges.size - 2) / float(edges[-2] - edges[0])
            shift = 1.0 - float(edges[0]) * scale
            beside = np.abs(edges * scale + shift - (np.arange(edges.size) * float(FINE) + 1.0)).max()
            rounded = (np.abs(edges).max() * scale + abs(shift)) * 2.0**-50  # more than two roundings take
        return cls(edges, scale, shift) if beside + rounded < 0.5 else None

    @property
    def size(self) -> int:
        """The number of bins."""
        return self.edges.size - 1

    def places(self, values: Floats) -> Integers:
        """The bin of each value of a block; `size` for a value in none, NaN among them."""
        moved, places, rest = np.empty(values.size), np.empty(values.size, np.int64), np.empty(values.size, np.int64)
        return self._placed(values, moved, places, rest)

    def _placed(self, values: Floats, moved: Floats, places: Integers, rest: Integers) -> Integers:
        with np.errstate(all="ignore"):
            np.multiply(values, self.scale, out=moved)
            moved += self.shift
            places[:] = moved  # what fits no integer (NaN too) becomes 0 or lies far beyond all bins
        unsigned = places.view(np.uint64)  # negative ones are large
        np.minimum(unsigned, np.uint64(self.size * FINE + FINE // 2), out=unsigned)
        np.bitwise_and(places, FINE - 1, out=rest)
        places >>= BITS
        if rest.min(initial=FINE) < NEXT_TO_AN_EDGE:
            near = np.flatnonzero(rest < NEXT_TO_AN_EDGE)
            edge = places[near]
            exact = edge - 1 + (values[near] >= self.edges[edge])
            places[near] = np.where(exact < 0, self.size, exact)
        return places

    def counted(self, values: Floats) -> Integers:
        """The number of values in each bin."""
        whole = np.zeros(self.size + 1, dtype=np.int64)
        moved, places, rest = np.empty(BLOCK), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
        for start in range(0, values.size, BLOCK):
            block = values[start : start + BLOCK]
            found = self._placed(block, moved[: block.size], places[: block.size], rest[: block.size])
            whole += np.bincount(found, minlength=whole.size)
        return whole[:-1]
