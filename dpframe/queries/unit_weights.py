"""The weight of one unit in each of its groups, whatever its number of rows there: exact integers.

A unit with rows in t groups counts v(t) = floor(2**20 min(1, (K / t)**(1/p))) steps of 2**-20 in each of them, K being
the number of groups in which it may count in full. So what it adds in all has l_p norm t**(1/p) v(t) <= 2**20 K**(1/p).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpframe.privacy import PrivacyUnit

Integers = NDArray[np.int64]

WHOLE_BITS = 20  # a unit that counts in full has 2**20 steps


def groups_of(unit: PrivacyUnit, cells: int) -> int:
    """K: in how many of the cells a unit may count in full."""
    return min(unit.contribution.max_groups, cells)


def counts_whole(unit: PrivacyUnit, cells: int) -> bool:
    """Tell whether a unit may count in all cells: then it counts 1 in each, not 2**20 steps."""
    return groups_of(unit, cells) == cells


def unit_steps(groups: Integers, most: int, p: float) -> Integers:
    """v(t) of each number of groups t >= 1, for the norm p of 1, 2 or infinity; whole numbers alone, so it is exact.

    Examples
    --------
    >>> import numpy as np
    >>> unit_steps(np.array([3, 4, 12]), 3, 2).tolist()
    [1048576, 908093, 524288]
    """
    different, position = np.unique(groups, return_inverse=True)
    steps = np.array([steps_of(number, most, p) for number in different.tolist()], dtype=np.int64)
    return np.asarray(steps[position.reshape(groups.shape)])


def steps_of(groups: int, most: int, p: float) -> int:
    """v(t) of one number of groups."""
    if groups <= most or p == math.inf:
        return 1 << WHOLE_BITS
    if p == 1:
        return (most << WHOLE_BITS) // groups
    return math.isqrt((most << 2 * WHOLE_BITS) // groups)  # the floor of the root of a floor is that of the root


@lru_cache(maxsize=64)
def key_weights(most_keys: int, most_groups: int, p: float) -> tuple[int, ...]:
    """v(t) of t = 1, 2, ..., the most keys that a unit keeps; 1 each where all of them count in full."""
    if most_keys <= most_groups:
        return (1,) * most_keys
    return tuple(unit_steps(np.arange(1, most_keys + 1), most_groups, p).tolist())


def as_array(weights: tuple[int, ...]) -> Integers:
    """The same as an array."""
    return np.array(weights, dtype=np.int64)
