"""ResidualPlanner in integers (Xiao et al. 2023): contrasts of tables of counts, and the tables that they make again.

Attributes have n_1, n_2, ... declared keys. Of each set A of at most `degree` attributes the table of counts is reduced
to its contrasts, q_A = (H_i for every i in A) applied to the table, where H_i has the rows h_k = (1, k times; -k; 0,
...) for k = 1, ..., n_i - 1: what the table says that no smaller one does. They are whole numbers, orthogonal to those
of any other set, and ||h_k||^2 = k (k + 1).

A contrast gets noise of the standard deviation sigma_A times its ||h||. Then one row costs

    mu^2 = sum over A of p_A / sigma_A^2,  p_A = product over i in A of (n_i - 1) / n_i,

whatever cell it is in: sum over k of h_k(x)^2 / ||h_k||^2 is (n - 1) / n for every x. A table M is the sum over A in M
of H_A^T diag(1 / ||h||^2) (q_A + noise), spread evenly over the other attributes of M: unbiased, and every table adds
up to every other. The variances sigma_A^2 = sqrt(p_A / c_A) (sum over B of sqrt(p_B c_B)) / mu^2 make the weighted sum
of the variances of all tables, which is the sum of c_A sigma_A^2, the least at that cost (Cauchy and Schwarz). Proofs:
``docs/assurance/privacy.md``.
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

ABOVE = 1.0 + 2.0**-46  # more than the roundings of a square root and of some products can take away


def contrasts_of(table: Integers) -> Integers:
    """The contrasts of a table of whole numbers along every axis, modulo 2**64: an axis of n becomes one of n - 1.

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
    """H^T diag(1 / ||h||^2) of contrasts along every axis: an axis of n - 1 becomes one of n, whose sum is 0."""
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
    """The value that row k takes off key k: k of its own share, the difference of two sums from the right."""
    shape = [1] * later.ndim
    shape[axis] = -1
    k = np.arange(1.0, later.shape[axis] + 1.0).reshape(shape)
    return np.asarray(-np.diff(later, axis=axis, append=0.0) * k)


@dataclass(frozen=True)
class ContrastDesign:
    """The contrasts that are measured of declared attributes, and their noise at mu = 1.

    Parameters
    ----------
    sizes : tuple of int
        The number of declared keys of each attribute.
    degree : int
        Tables of up to so many attributes are made.
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
        """Those that have contrasts: no attribute of theirs has a single key."""
        return tuple(table for table in self.tables if all(self.sizes[i] > 1 for i in table))

    def cells(self, table: Subset) -> int:
        """The number of cells of a table."""
        return math.prod(self.sizes[i] for i in table)

    @cached_property
    def rows(self) -> int:
        """The cells of all tables together."""
        return sum(map(self.cells, self.tables))

    def shape(self, part: Subset) -> tuple[int, ...]:
        """The shape of the contrasts of a part."""
        return tuple(self.sizes[i] - 1 for i in part)

    @cached_property
    def width(self) -> int:
        """The number of contrasts."""
        return sum(math.prod(self.shape(part)) for part in self.parts)

    def weight(self, part: Subset) -> Fraction:
        """p_A: the square of the distance that a row moves the contrasts of a part, for noise of sigma_A = 1."""
        return math.prod((Fraction(self.sizes[i] - 1, self.sizes[i]) for i in part), start=Fraction(1))

    @cached_property
    def variances(self) -> dict[Subset, float]:
        """sigma_A^2 of each part for a cost of mu = 1."""
        influence = dict.fromkeys(self.parts, 0.0)
        for table in self.tables[1:]:  # the total alone has no weight: it gets what they need of it
            weight = self.cells(table) if self.objective == "cells" else 1
            for part, share in self._inside(table):
                influence[part] += weight * share
        weights = {part: float(self.weight(part)) for part in self.parts}
        total = math.fsum(math.sqrt(weights[part] * influence[part]) for part in self.parts)
        return {part: math.sqrt(weights[part] / influence[part]) * total for part in self.parts}

    @cached_property
    def cost(self) -> Fraction:
        """The sum of p_A / sigma_A^2 for the variances as they are: 1, except for their last digits. Exact."""
        return sum((self.weight(part) / Fraction(self.variances[part]) for part in self.parts), Fraction(0))

    @cached_property
    def table_variances(self) -> dict[Subset, float]:
        """The variance of every cell of each table at mu = 1."""
        return {
            table: math.fsum(self.variances[part] * share for part, share in self._inside(table))
            for table in self.tables
        }

    def shares(self) -> dict[Subset, float]:
        """The share of the cost, in mu^2, that the contrasts of each part take."""
        return {part: float(self.weight(part)) / self.variances[part] for part in self.parts}

    def _inside(self, table: Subset) -> Iterator[tuple[Subset, float]]:
        """The parts of a table, each with the variance of a cell for each unit of its own."""
        wide = [i for i in table if self.sizes[i] > 1]
        for order in range(len(wide) + 1):
            for part in combinations(wide, order):
                spread = math.prod(self.sizes[i] for i in table if i not in part)
                yield part, float(self.weight(part)) / spread**2

    @cached_property
    def scales(self) -> Floats:
        """The standard deviation of the noise of each contrast at mu = 1, rounded up."""
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
        """The tables of `degree` attributes, of which all others are sums."""
        return tuple(combinations(range(len(self.sizes)), self.degree))

    def exact_sums(self, count: Callable[[Subset], Integers]) -> Integers:
        """All contrasts, part after part; `count` gives the counts of a table of `degree` attributes by its cells."""
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
        """A largest table that holds a part, of few cells."""
        others = sorted((i for i in range(len(self.sizes)) if i not in part), key=lambda i: self.sizes[i])
        return tuple(sorted((*part, *others[: self.degree - len(part)])))

    def effects(self, contrasts: Floats) -> dict[Subset, Floats]:
        """The effect of each part on its tables, read off the (noisy) contrasts."""
        effects: dict[Subset, Floats] = {}
        start = 0
        for part in self.parts:
            shape = self.shape(part)
            end = start + math.prod(shape)
            effects[part] = effects_of(contrasts[start:end].reshape(shape))
            start = end
        return effects

    def reconstructed(self, contrasts: Floats) -> list[Floats]:
        """Every table, read off the (noisy) contrasts; in the order of `tables`."""
        effects = self.effects(contrasts)
        return [assembled(self.sizes, table, effects) for table in self.tables]


def assembled(sizes: Sequence[int], table: Subset, effects: dict[Subset, Floats]) -> Floats:
    """A table as the sum of the effects of its parts, each spread evenly over the attributes that it has not."""
    whole = np.zeros([sizes[i] for i in table])
    for order in range(len(table) + 1):
        for part in combinations(table, order):
            if part in effects:
                spread = math.prod(sizes[i] for i in table if i not in part)
                whole += effects[part].reshape([sizes[i] if i in part else 1 for i in table]) / spread
    return whole
