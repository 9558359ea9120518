"""Every outcome of a randomized method with its exact probability: its draws are replaced by all that they can be.

`outcomes(method, row)` runs the method's own code once for each way in which its draws can fall, and adds up their
probabilities in mpmath. What is enumerated is the code, and no formula about it.
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
    """A probability."""
    return chance.exact(300)


class Branches(drawn.Branches):
    """Draws that follow a path, with exact probabilities."""

    one = mpmath.mpf(1)

    def probability(self, chance: Any) -> Any:
        return exact(chance)


def outcomes(run: Callable[[], Any], monkeypatch: Any) -> dict[Any, Any]:
    """What `run` can give, and with what probability."""
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
    """The most that the probability of one outcome changes from one law to another, as an epsilon."""
    with mpmath.workdps(DIGITS):
        every = {outcome for law in laws for outcome in law}
        if any(outcome not in law for outcome in every for law in laws):
            return mpmath.inf
        return max(mpmath.log(max(law[one] for law in laws) / min(law[one] for law in laws)) for one in every)


def is_whole(law: dict[Any, Any]) -> bool:
    """Whether probabilities add up to 1."""
    return math.isclose(float(sum(law.values())), 1.0, rel_tol=1e-15)
