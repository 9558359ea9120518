"""Confidence limits of probabilities, and what two of them say of epsilon and of mu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bound = Callable[[Any, Any, int, float], Floats]  # hits of one side and of the other, of how many, chance of an error


def at_least(hits: Any, size: int, alpha: float) -> Floats:
    """The lower confidence limit of a probability (Clopper and Pearson 1934), wrong with a chance of at most alpha."""
    from scipy import special

    counted = np.asarray(hits)
    return np.where(counted > 0, special.betaincinv(np.maximum(counted, 1), size - counted + 1, alpha), 0.0)


def at_most(hits: Any, size: int, alpha: float) -> Floats:
    """The upper confidence limit."""
    return np.asarray(1.0 - at_least(size - np.asarray(hits), size, alpha))


def epsilon_bound(delta: float) -> Bound:
    """log((P - delta) / Q), with P at its lower and Q at its upper limit, each wrong with a chance of alpha / 2."""

    def bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
        more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
        return np.asarray(np.log(np.maximum((more - delta) / fewer, 1.0)))

    return bound


def mu_bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
    """Phi^-1(P) - Phi^-1(Q): under mu-Gaussian privacy no event has more (Dong, Roth and Su 2022, Definition 2.6)."""
    from scipy import special

    more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.maximum(special.ndtri(more) - special.ndtri(fewer), 0.0), nan=0.0))
