"""Bloom filters of categories, and how counts are read off randomized ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.local import hashing

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

MOST_CATEGORIES = 1_000  # a matrix of all pairs is solved
WORST_CONDITION = 1e8


def filters(key: str, cohorts: int, hashes: int, categories: int, bits: int) -> Flags:
    """The bits that each category sets in each cohort."""
    places = hashing.places(key, cohorts * hashes, categories, bits).reshape(cohorts, hashes, categories)
    sets = np.zeros((cohorts, categories, bits), dtype=np.bool_)
    for function in range(hashes):
        np.put_along_axis(sets, places[:, function, :, None], True, axis=2)
    return sets


def decoded(sets: Flags, bits: Floats, n: int, low: float, high: float) -> tuple[Floats, Floats]:
    """The unbiased counts of categories and their variances.

    `bits` are unbiased counts of each cohort's bits. The score of a category is the mean over its bits, added up over
    cohorts. Where people are in a random cohort, the scores are on average the counts times a public matrix of
    overlaps, which is inverted. The variance is that of one report given its value, over bits and cohorts, added up
    with the estimates in place of the true counts.
    """
    each = sets / sets.sum(axis=2, keepdims=True)
    overlaps = np.einsum("cdj,cej->cde", each, sets.astype(np.float64), optimize=True)
    matrix = overlaps.mean(axis=0)
    if np.linalg.cond(matrix) > WORST_CONDITION:
        raise InvalidArgument("bits and cohorts must tell all categories apart, and these do not. Take more of them.")
    inverse = np.linalg.inv(matrix)
    counts = inverse @ np.einsum("cdj,cj->d", each, bits)
    likely = np.clip(counts, 0.0, n)
    likely *= min(1.0, n / max(likely.sum(), 1.0))
    variances = -(np.eye(len(counts)) ** 2 @ likely)
    unset, more = low * (1.0 - low), high * (1.0 - high) - low * (1.0 - low)
    for means, overlap, ones in zip(each, overlaps, sets, strict=True):  # a cohort at a time: memory
        weights = (inverse @ means) ** 2
        noise = (weights.sum(axis=1) * unset * likely.sum() + more * (weights @ (likely @ ones))) / (high - low) ** 2
        variances += (noise + (inverse @ overlap) ** 2 @ likely) / len(sets)
    return counts, np.maximum(variances, 0.0)
