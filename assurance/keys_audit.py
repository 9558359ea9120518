"""Audits of unknown groups: how often a single person shows a key, and what releases of neighbors reveal.

    python -m assurance.keys_audit [--people 1000000]

A frame holds many people, each with keys that no other person has, so one call draws as many independent samples. Every
person has three rows of each key, because people count, not rows. The delta of keys is large here (0.01), since no
audit of this kind sees an event of probability 1e-7. `tests/release/test_keys_audit.py` runs a small share.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import beta

import dpframe as dpf
from assurance import verdict
from dpframe.audit import Finding
from dpframe.mechanisms import gaussian_curve

EPSILON, KEYS_DELTA = 2.0, 0.01
GROUPS, MOST_KEYS, SIGMA = 3, 20, 2.0
DELTA = gaussian_curve.delta_of_mu(math.sqrt(GROUPS) / SIGMA, EPSILON)  # the delta at which sigma is 2
EXACT = {1: 0.00142797, 4: 0.00457170, 20: 0.00999999}  # probability that a person with this number of keys shows one
AT_ONCE = 2_000
CONFIDENCE = 1 - 1e-6
OTHERS = 6  # other people with a shared key


@dataclass(frozen=True)
class Share:
    """How many of `people` showed a key, with Clopper-Pearson limits of the share."""

    people: int
    shown: int

    @property
    def limits(self) -> tuple[float, float]:
        """The limits, with a confidence of 1 - 1e-6."""
        half = (1.0 - CONFIDENCE) / 2
        low = float(beta.ppf(half, self.shown, self.people - self.shown + 1)) if self.shown else 0.0
        return low, float(beta.isf(half, self.shown + 1, self.people - self.shown))


def alone(keys: int) -> pl.DataFrame:
    """Return people who share no key, three rows for each of their keys."""
    numbers = np.arange(AT_ONCE * keys)
    return pl.DataFrame({"u": np.tile(numbers // keys, 3), "k": np.tile(numbers, 3)})


def found(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that one release shows, with their numbers of people."""
    ledger = dpf.Ledger(epsilon=EPSILON, delta=DELTA + KEYS_DELTA, accounting="basic", unit="u")
    by_key = frame.dp.group_by("k", keys=dpf.discover(delta=KEYS_DELTA, max_keys=MOST_KEYS))
    return by_key.n_units(max_groups=GROUPS, epsilon=EPSILON, delta=DELTA, ledger=ledger)


def share(keys: int, people: int) -> Share:
    """Measure how many of `people`, with `keys` keys of their own each, show one."""
    frame = alone(keys)
    calls = math.ceil(people / AT_ONCE)
    shown = sum((found(frame)["k"] // keys).n_unique() for _ in range(calls))
    return Share(calls * AT_ONCE, shown)


def _numbers(frame: pl.DataFrame, keys: int) -> Callable[[], NDArray[np.float64]]:
    """Return a release as the largest number shown for a key of each person; -1 where none is shown."""

    def released() -> NDArray[np.float64]:
        numbers = np.full(AT_ONCE, -1.0)
        result = found(frame)
        np.maximum.at(numbers, (result["k"] // keys).to_numpy(), result["n_units"].to_numpy())
        return numbers

    return released


def _shared(added: bool) -> pl.DataFrame:
    """Return many groups of people with a key each, with or without one more person per group."""
    size = OTHERS + 1
    frame = pl.DataFrame({"u": np.arange(AT_ONCE * size)}).with_columns(k=pl.col("u") // size)
    return frame if added else frame.filter(pl.col("u") % size > 0)


def sides() -> dict[str, tuple[pl.DataFrame, pl.DataFrame, int]]:
    """Return pairs of frames that differ in one person of each group, and the number of keys per group."""
    return {
        "a person alone, 1 key": (alone(1), alone(1).head(0), 1),
        "a person alone, 20 keys": (alone(20), alone(20).head(0), 20),
        "a person of 30 keys": (alone(30), alone(30).head(0), 30),
        "a person among others": (_shared(True), _shared(False), 1),
    }


def audited(name: str, samples: int, delta: float = DELTA + KEYS_DELTA) -> Finding:
    """Audit one pair."""
    first, second, keys = sides()[name]
    return dpf.audit.epsilon(
        _numbers(first, keys),
        _numbers(second, keys),
        claimed=EPSILON,
        delta=delta,
        samples=samples,
        outcomes=AT_ONCE,
        confidence=CONFIDENCE,
    )


def main() -> int:
    """Audit all pairs and print the results; return 1 if one reveals more than it states."""
    parser = argparse.ArgumentParser(description="Audit keys that are found.")
    parser.add_argument("--people", type=int, default=1_000_000, help="people of each share")
    options = parser.parse_args()
    wrong, used = 0, 0.0
    for keys, exact in EXACT.items():
        low, high = share(keys, options.people).limits
        wrong += not low <= exact <= high
        print(f"{keys} keys: shown {low:.6f} to {high:.6f}, exactly {exact:.6f}", flush=True)
    for name in sides():
        one = audited(name, options.people)
        wrong, used = wrong + (not one.holds), max(used, one.lower_bound / one.claimed)
        print(f"{name:<26}{one.claimed:>8.3g}{one.lower_bound:>8.3f}  {one.event}", flush=True)
    return verdict(wrong, audits=len(EXACT) + len(sides()), largest_bound=used)


def plan() -> Any:
    """Return the plan of the calls that the drill makes."""
    by_key = alone(1).dp.preview.group_by("k", keys=dpf.discover(delta=KEYS_DELTA, max_keys=MOST_KEYS))
    ledger = dpf.Ledger(epsilon=EPSILON, delta=DELTA + KEYS_DELTA, accounting="basic", unit="u")
    return by_key.n_units(max_groups=GROUPS, epsilon=EPSILON, delta=DELTA, ledger=ledger)


if __name__ == "__main__":
    raise SystemExit(main())
