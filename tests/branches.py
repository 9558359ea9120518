"""Every outcome of a randomized method with its exact probability: its draws are replaced by all that they can be.

`outcomes(method, row)` runs the method's own code once for each way in which its draws can fall, and adds up their
probabilities in mpmath. What is enumerated is the code, and no formula about it.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np

from dpframe.noise import coins

DIGITS = 50


@cache
def exact(chance: Any) -> Any:
    """A probability."""
    return chance.exact(300)


class Branches:
    """Draws that follow a given path, and tell how many ways there are at each step of it."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path, self.sizes, self.chance = list(path), [], mpmath.mpf(1)

    def choose(self, chances: Sequence[Any]) -> int:
        """One of the ways that are possible: that of the path, or the first one beyond its end."""
        possible = [way for way, chance in enumerate(chances) if chance]
        step = len(self.sizes)
        way = possible[self.path[step] if step < len(self.path) else 0]
        self.sizes.append(len(possible))
        self.chance *= chances[way]
        return way

    def tossed(self, chance: Any, size: int) -> Any:
        true = exact(chance)
        return np.array([self.choose([1 - true, true]) == 1 for _ in range(size)], dtype=np.bool_)

    def uniform(self, most: int, size: int) -> Any:
        ways = [mpmath.mpf(1) / (most + 1)] * (most + 1)
        return np.array([self.choose(ways) for _ in range(size)], dtype=np.int64)

    def others(self, truth: Any, size: int) -> Any:
        drawn = self.uniform(size - 2, truth.size)
        return drawn + (drawn >= truth)

    def subsets(self, chosen: int, among: int, rows: int) -> Any:
        every = list(itertools.combinations(range(among), chosen))
        found = np.zeros((rows, among), dtype=np.bool_)
        for row in range(rows):
            found[row, list(every[self.choose([mpmath.mpf(1) / len(every)] * len(every))])] = True
        return found


def outcomes(run: Callable[[], Any], monkeypatch: Any) -> dict[Any, Any]:
    """What `run` can give, and with what probability."""
    found: dict[Any, Any] = defaultdict(lambda: mpmath.mpf(0))
    path: list[int] | None = []
    with mpmath.workdps(DIGITS):
        while path is not None:
            branches = Branches(path)
            with monkeypatch.context() as patch:
                for name in ("tossed", "uniform", "others", "subsets"):
                    patch.setattr(coins, name, getattr(branches, name))
                found[run()] += branches.chance
            path = following(branches)
    return dict(found)


def following(branches: Branches) -> list[int] | None:
    """The path after this one; None where there is none."""
    path = branches.path + [0] * (len(branches.sizes) - len(branches.path))
    while path and path[-1] + 1 == branches.sizes[len(path) - 1]:
        path.pop()
    return [*path[:-1], path[-1] + 1] if path else None


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
