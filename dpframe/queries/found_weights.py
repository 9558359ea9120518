"""The weights of units that hold keys which nobody declared."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpframe.queries.unit_weights import Integers, unit_steps


@lru_cache(maxsize=64)
def key_weights(most_keys: int, most_groups: int, p: float) -> tuple[int, ...]:
    """v(t) of t = 1, 2, ..., the most keys that a unit keeps; 1 each where all of them count in full."""
    if most_keys <= most_groups:
        return (1,) * most_keys
    return tuple(unit_steps(np.arange(1, most_keys + 1), most_groups, p).tolist())


def as_array(weights: tuple[int, ...]) -> Integers:
    """The same as an array."""
    return np.array(weights, dtype=np.int64)
