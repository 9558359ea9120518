"""ResidualPlanner in integers (Xiao et al. 2023): contrasts of tables of counts, and the tables rebuilt from them.

Attributes have n_1, n_2, ... declared keys. For each set A of at most `degree` attributes, the table of counts is
reduced to its contrasts q_A: H_i is applied along the axis of each i in A. H_i has the rows h_k = (1, k times; -k; 0,
...) for k = 1, ..., n_i - 1. The contrasts hold what the table says and no smaller one does. They are whole
numbers, orthogonal to those of any other set, and ||h_k||^2 = k (k + 1).

The noise of a contrast has the standard deviation sigma_A times its ||h||. Then one row costs

    mu^2 = sum over A of p_A / sigma_A^2,  p_A = product over i in A of (n_i - 1) / n_i,

whatever its cell: the sum over k of h_k(x)^2 / ||h_k||^2 is (n - 1) / n for every x. A table M is the sum over the
subsets A of M of H_A^T diag(1 / ||h||^2) (q_A + noise), spread evenly over the other attributes of M. It is unbiased,
and all tables agree on their common sums. The variances sigma_A^2 = sqrt(p_A / c_A) (sum over B of sqrt(p_B c_B)) /
mu^2 minimize the weighted sum of the variances of all tables, the sum of c_A sigma_A^2, at that cost (Cauchy and
Schwarz). Proofs: ``docs/assurance/privacy.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Subset = tuple[int, ...]  # positions of attributes, in order
Objective = Literal["equal", "cells"]

ABOVE = 1.0 + 2.0**-46  # a factor that exceeds the rounding errors of a square root and of some products


def contrasts_of(table: Integers) -> Integers:
    """Return the contrasts of an integer table along every axis, modulo 2**64: an axis of n becomes one of n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> contrasts_of(np.array([[5, 1, 0], [2, 4, 8]]))
    array([[ 6, 16]])
    """
    for axis, size in enumerate(table.shape):
        factors = np.arange(1, size, dtype=np.int64).reshape(-1, *(1,) * (table.ndim - axis - 1))
        before: Integers = np.cumsum(table, axis=axis, dtype=np.int64)
        ends = [slice(None)] * axis
        table = np.asarray(before[(*ends, slice(0, size - 1))] - factors * table[(*ends, slice(1, size))])
    return table


def effects_of(contrasts: Floats) -> Floats:
    """Return H^T diag(1 / ||h||^2) of contrasts along every axis: an axis of n - 1 becomes one of n, with the sum 0."""
    for axis, rows in enumerate(contrasts.shape):
        k = np.arange(1.0, rows + 1.0).reshape(-1, *(1,) * (contrasts.ndim - axis - 1))
        ends = [slice(None)] * axis
        reversed_axis = (*ends, slice(None, None, -1))
        later = np.cumsum((contrasts / (k * (k + 1.0)))[reversed_axis], axis=axis)[reversed_axis]
        edge = np.zeros_like(later[(*ends, slice(0, 1))])
        contrasts = np.concatenate([later, edge], axis=axis)
        contrasts -= np.concatenate([edge, _times(later, axis)], axis=axis)
    return contrasts


def _times(later: Floats, axis: int) -> Floats:
    """Return what row k takes off key k: k times its own share, which is the difference of two suffix sums."""
    shape = [1] * later.ndim
    shape[axis] = -1
    k = np.arange(1.0, later.shape[axis] + 1.0).reshape(shape)
    return np.asarray(-np.diff(later, axis=axis, append=0.0) * k)


@dataclass(frozen=True)
class ContrastDesign:
    """The contrasts to measure for declared attributes, and their noise at mu = 1.

    Parameters
    ----------
    sizes : tuple of int
        The number of declared keys of each attribute.
    degree : int
        The largest number of attributes of a table.
    objective : {"equal", "cells"}
        Whether the variance of a cell counts once for each table of at least one attribute, or once for each cell.

    Examples
    --------
    >>> design = ContrastDesign((2, 3), 2, "cells")
    >>> design.tables
    ((), (0,), (1,), (0, 1))
    >>> {table: round(design.table_variances[table], 4) for table in design.tables}
    {(): 4.0472, (0,): 2.251, (1,): 1.7216, (0, 1): 1.1188}
    """

    sizes: tuple[int, ...]
    degree: int
    objective: Objective = "equal"

    @cached_property
    def tables(self) -> tuple[Subset, ...]:
        """All sets of up to `degree` attributes, small ones first."""
        return tuple(
            subset for order in range(self.degree + 1) for subset in combinations(range(len(self.sizes)), order)
        )

    @cached_property
    def parts(self) -> tuple[Subset, ...]:
        """The sets that have contrasts: each of their attributes has at least two keys."""
        return tuple(table for table in self.tables if all(self.sizes[i] > 1 for i in table))

    def cells(self, table: Subset) -> int:
        """Return the number of cells of a table."""
        return math.prod(self.sizes[i] for i in table)

    @cached_property
    def rows(self) -> int:
        """The number of cells of all tables together."""
        return sum(map(self.cells, self.tables))

    def shape(self, part: Subset) -> tuple[int, ...]:
        """Return the shape of the contrasts of a part."""
        return tuple(self.sizes[i] - 1 for i in part)

    @cached_property
    def width(self) -> int:
        """The number of contrasts."""
        return sum(math.prod(self.shape(part)) for part in self.parts)

    def weight(self, part: Subset) -> Fraction:
        """Return p_A: the squared distance by which a row moves the contrasts of a part, for noise of sigma_A = 1."""
        return math.prod((Fraction(self.sizes[i] - 1, self.sizes[i]) for i in part), start=Fraction(1))

    @cached_property
    def variances(self) -> dict[Subset, float]:
        """The variance sigma_A^2 of each part at a cost of mu = 1."""
        influence = dict.fromkeys(self.parts, 0.0)
        for table in self.tables[1:]:  # the total has no weight of its own: it gets what other tables need
            weight = self.cells(table) if self.objective == "cells" else 1
            for part, share in self._inside(table):
                influence[part] += weight * share
        weights = {part: float(self.weight(part)) for part in self.parts}
        total = math.fsum(math.sqrt(weights[part] * influence[part]) for part in self.parts)
        return {part: math.sqrt(weights[part] / influence[part]) * total for part in self.parts}

    @cached_property
    def cost(self) -> Fraction:
        """The exact sum of p_A / sigma_A^2 for the rounded variances: 1, except for the last digits."""
        return sum((self.weight(part) / Fraction(self.variances[part]) for part in self.parts), Fraction(0))

    @cached_property
    def table_variances(self) -> dict[Subset, float]:
        """The variance of every cell of each table at mu = 1."""
        return {
            table: math.fsum(self.variances[part] * share for part, share in self._inside(table))
            for table in self.tables
        }

    def shares(self) -> dict[Subset, float]:
        """Return the share of the cost, in mu^2, that the contrasts of each part take."""
        return {part: float(self.weight(part)) / self.variances[part] for part in self.parts}

    def _inside(self, table: Subset) -> Iterator[tuple[Subset, float]]:
        """Yield the parts of a table, each with the factor from its variance sigma_A^2 to that of a cell."""
        wide = [i for i in table if self.sizes[i] > 1]
        for order in range(len(wide) + 1):
            for part in combinations(wide, order):
                spread = math.prod(self.sizes[i] for i in table if i not in part)
                yield part, float(self.weight(part)) / spread**2

    @cached_property
    def scales(self) -> Floats:
        """The standard deviation of each contrast's noise at mu = 1, rounded up."""
        each = []
        for part in self.parts:
            squares = np.array(self.variances[part])
            for rows in self.shape(part):
                k = np.arange(1.0, rows + 1.0)
                squares = squares[..., None] * (k * (k + 1.0))
            each.append(np.sqrt(squares).ravel() * ABOVE)
        return np.concatenate(each)

    @property
    def largest(self) -> tuple[Subset, ...]:
        """The tables of `degree` attributes; all other tables are sums of these."""
        return tuple(combinations(range(len(self.sizes)), self.degree))

    def exact_sums(self, count: Callable[[Subset], Integers]) -> Integers:
        """Return all contrasts, part after part; `count` returns the cells of a table of `degree` attributes."""
        known: dict[Subset, Integers] = {}
        needed: dict[Subset, list[Subset]] = {}
        for part in self.parts:
            needed.setdefault(self._around(part), []).append(part)
        for table, parts in needed.items():
            counts = count(table).reshape([self.sizes[i] for i in table])
            for part in parts:
                others = tuple(axis for axis, i in enumerate(table) if i not in part)
                known[part] = contrasts_of(counts.sum(axis=others, dtype=np.int64))
        return np.concatenate([np.asarray(known[part], dtype=np.int64).ravel() for part in self.parts])

    def _around(self, part: Subset) -> Subset:
        """Return the table of `degree` attributes that contains a part and has the fewest cells."""
        others = sorted((i for i in range(len(self.sizes)) if i not in part), key=lambda i: self.sizes[i])
        return tuple(sorted((*part, *others[: self.degree - len(part)])))

    def effects(self, contrasts: Floats) -> dict[Subset, Floats]:
        """Return the effect of each part on its tables, computed from the (noisy) contrasts."""
        effects: dict[Subset, Floats] = {}
        start = 0
        for part in self.parts:
            shape = self.shape(part)
            end = start + math.prod(shape)
            effects[part] = effects_of(contrasts[start:end].reshape(shape))
            start = end
        return effects

    def reconstructed(self, contrasts: Floats) -> list[Floats]:
        """Return every table, computed from the (noisy) contrasts, in the order of `tables`."""
        effects = self.effects(contrasts)
        return [assembled(self.sizes, table, effects) for table in self.tables]


def assembled(sizes: Sequence[int], table: Subset, effects: dict[Subset, Floats]) -> Floats:
    """Return a table as the sum of its parts' effects, each spread evenly over the attributes that the part lacks."""
    whole = np.zeros([sizes[i] for i in table])
    for order in range(len(table) + 1):
        for part in combinations(table, order):
            if part in effects:
                spread = math.prod(sizes[i] for i in table if i not in part)
                whole += effects[part].reshape([sizes[i] if i in part else 1 for i in table]) / spread
    return whole
