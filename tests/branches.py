"""Exact probabilities of all outcomes of a randomized method: each of its draws is replaced by all possible values.

`outcomes(run, monkeypatch)` runs the method's own code once for each way in which its draws can fall, and adds up
the probabilities in mpmath. It enumerates the code, not a formula about it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath

from assurance import drawn
from dpframe.noise import coins

DIGITS = 50


@cache
def exact(chance: Any) -> Any:
    """Return a probability with 300 bits of precision."""
    return chance.exact(300)


class Branches(drawn.Branches):
    """Draws that follow a path, with exact probabilities."""

    one = mpmath.mpf(1)

    def probability(self, chance: Any) -> Any:
        return exact(chance)


def outcomes(run: Callable[[], Any], monkeypatch: Any) -> dict[Any, Any]:
    """Return each possible result of `run` with its probability."""
    found: dict[Any, Any] = defaultdict(lambda: mpmath.mpf(0))
    path: list[int] | None = []
    with mpmath.workdps(DIGITS):
        while path is not None:
            branches = Branches(path)
            with monkeypatch.context() as patch:
                for name in drawn.COINS:
                    patch.setattr(coins, name, getattr(branches, name))
                found[run()] += branches.chance
            path = branches.following()
    return dict(found)


def largest_ratio(laws: Sequence[dict[Any, Any]]) -> Any:
    """Return the largest change in the probability of one outcome from one law to another, as an epsilon."""
    with mpmath.workdps(DIGITS):
        every = {outcome for law in laws for outcome in law}
        if any(outcome not in law for outcome in every for law in laws):
            return mpmath.inf
        return max(mpmath.log(max(law[one] for law in laws) / min(law[one] for law in laws)) for one in every)


def is_whole(law: dict[Any, Any]) -> bool:
    """Return whether the probabilities add up to 1."""
    return math.isclose(float(sum(law.values())), 1.0, rel_tol=1e-15)
