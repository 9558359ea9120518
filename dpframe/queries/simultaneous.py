"""Margins that hold for many sums of noise at once, and what stands out from noise: functions of its law alone.

The best of many candidates, picked by noisy numbers, is picked by their noise as well. So intervals are made for all
of them together: their width is a quantile of the largest of the sums of noise, each over its own deviation.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Law = tuple[bool, float]  # whether it is discrete Laplace noise, and not Gaussian; its standard deviation

DRAWS = 4_000  # of the noise of a grid, made of a fixed text: they are public, as the law is
AT_ONCE = 2**21  # numbers of a block of draws
CONFIDENCE = 0.955  # of intervals that hold with 95%: the quantile of so many draws is off by 0.4% in 2 of 3 cases
RARE = 0.001  # how often noise alone is taken for more in any of the numbers that are looked at


def stands_out(numbers: int, pure: bool) -> float:
    """The standard deviations beyond which a noisy number is more than noise, of so many that are looked at."""
    each = RARE / max(1, numbers)
    return math.log(1 / (2 * each)) / math.sqrt(2) if pure else math.sqrt(2 * math.log(1 / each))


def enough(half: float, whole: float) -> float:
    """The factor of the cost at which a sum's half-width is a tenth of the whole; infinite where nobody knows."""
    return half / (0.1 * whole) if whole > half / 4 else math.inf


@lru_cache(maxsize=32)
def margin_of(forms: tuple[tuple[float, ...], ...], law: Law) -> float:
    """The quantile of the largest of several sums of noise, each over its standard deviation.

    It depends on nothing but the law and the weights.
    """
    if not forms or law[1] == 0.0:
        return 0.0
    weights = np.array(forms, dtype=np.float64).T
    weights /= np.sqrt((weights**2).sum(axis=0))
    largest = np.abs(_noise(law, len(forms[0]), DRAWS, 0) @ weights).max(axis=1)
    return float(np.quantile(largest, CONFIDENCE, method="higher")) / law[1]


@lru_cache(maxsize=32)
def margin_of_tails(bins: int, law: Law) -> float:
    """The same of the sums of the first bins and of the last ones, however many, in standard deviations of each."""
    if law[1] == 0.0:
        return 0.0
    sizes = np.sqrt(np.arange(1.0, bins + 1.0))
    each = max(1, min(DRAWS, AT_ONCE // bins))
    largest = []
    for block, start in enumerate(range(0, DRAWS, each)):
        noise = _noise(law, bins, min(each, DRAWS - start), block)
        first, last = np.cumsum(noise, axis=1), np.cumsum(noise[:, ::-1], axis=1)
        largest.append(np.maximum(np.abs(first / sizes).max(axis=1), np.abs(last / sizes).max(axis=1)))
    return float(np.quantile(np.concatenate(largest), CONFIDENCE, method="higher")) / law[1]


def _noise(law: Law, cells: int, draws: int, block: int) -> Floats:
    """Made-up noise of all cells: the difference of two geometric numbers, or rounded normal ones.

    It protects nobody. A hash of a fixed text stands for chance, so that everybody gets the same margins.
    """
    is_pure, deviation = law
    named = b"dpframe: margins of cut units" + (b" %d" % block if block else b"")
    text = hashlib.shake_256(named).digest(16 * draws * cells)
    chance = (np.frombuffer(text, "<u8").reshape(2, draws, cells) >> np.uint64(11)).astype(np.float64)
    one, other = (chance + 0.5) * 2.0**-53
    if not is_pure:
        return np.asarray(np.rint(deviation * np.sqrt(-2.0 * np.log(one)) * np.cos(2.0 * np.pi * other)))
    variance = deviation**2
    ratio = (variance + 1 - math.sqrt(2 * variance + 1)) / variance  # of a law with this variance 2 q / (1 - q)^2
    if ratio <= 0.0:
        return np.zeros((draws, cells))
    return np.asarray(np.floor(np.log(one) / math.log(ratio)) - np.floor(np.log(other) / math.log(ratio)))
