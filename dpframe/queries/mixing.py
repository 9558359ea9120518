"""Public numbers that look random: nothing is drawn here, and the same inputs always give the same numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: its multiples are spread evenly


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64 (Steele, Lea and Flood 2014), modulo 2**64; it is one-to-one."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


def uniforms(shape: tuple[int, ...], seed: int, place: int = 0) -> NDArray[np.float64]:
    """Return numbers inside (0, 1), spread like random ones and fixed by `seed`; `place` makes arrays different."""
    size = int(np.prod(shape))
    numbers = np.arange(1, size + 1, dtype=np.uint64) + np.uint64(place << 40)
    with np.errstate(over="ignore"):
        words = mixed(mixed(numbers * GOLDEN) + np.uint64(seed))
    return ((words >> np.uint64(11)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-53
