"""Measure how often 95% intervals of spreads, quantiles and quotients hold, by public calls and by enumeration.

Run it from the root of the repository: ``python -m benchmarks.coverage [--only variances]``.
The first three parts release many equal public groups at once and print the lowest rate of each line. ``quotients``
draws only its settings at random: it sums the probabilities of all pairs of draws whose interval holds the truth, for
noise of few steps. ``benchmarks/intervals.py`` measures counts, sums and means.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from tests.covering import PRICES, Covered
from tests.derived.test_quotients_of_steps import held

Floats = NDArray[np.float64]

NOISES = ("Gaussian", "Laplace")
BOUNDS = (0.0, 100.0)
SIZES = (2, 5, 20, 50, 200, 1_000)
COSTS = (3.0, 8.0, 20.0, 50.0, 150.0, 400.0)  # values of a group, times epsilon
QUANTILES = (0.1, 0.5, 0.9)
EDGES = (0.0, 5.0, 20.0, 40.0, 60.0, 100.0)
ROWS = 8_000_000  # limit of one release: large groups are repeated less often


def shapes(size: int) -> dict[str, Floats]:
    """Return values of a group in several shapes, such as at the bounds, skewed, even."""
    of = np.random.default_rng(size)
    places = (np.arange(size) + 0.5) / size
    return {
        "all at one bound": np.zeros(size),
        "exponential, mean 3": of.exponential(3.0, size).clip(*BOUNDS),
        "lognormal, median 2.7": of.lognormal(1.0, 1.0, size).clip(*BOUNDS),
        "one at the upper bound, all others at the lower": np.where(np.arange(size) == 0, 100.0, 0.0),
        "half at each bound": np.resize(np.array(BOUNDS), size),
        "even between the bounds": 100.0 * places,
    }


def grouped(values: Floats, groups: int) -> Any:
    """Return a group-by over `groups` groups with these values each."""
    frame = pl.DataFrame({"group": np.repeat(np.arange(groups), values.size), "x": np.tile(values, groups)})
    return frame.dp.group_by("group", keys=range(groups))


def cost(epsilon: float, noise: str) -> dict[str, Any]:
    """Return the arguments epsilon, ledger (with room for it) and noise of a call."""
    return {"epsilon": epsilon, "ledger": dpf.Ledger(epsilon=1e6, delta=0.5, accounting="basic"), **PRICES[noise]}


def variances(most: int) -> Iterator[tuple[str, Covered]]:
    """Release variances and standard deviations for all shapes, sizes and values of COSTS, with both divisors."""
    for noise, size, times in product(NOISES, SIZES, COSTS):
        groups = min(most, ROWS // size)
        for (shape, values), ddof in product(shapes(size).items(), (0, 1)):
            options: dict[str, Any] = {"bounds": BOUNDS, "ddof": ddof}
            spreads = {"variance": dpf.variance("x", **options), "std": dpf.std("x", **options)}
            found = grouped(values, groups).agg(spreads, checks=False, **cost(times / size, noise))
            truth = {"variance": values.var(ddof=ddof), "std": values.std(ddof=ddof)}
            for name, exact in truth.items():
                outside = np.abs(found[name].to_numpy() - exact) > found[f"{name}_error"].to_numpy() * (1.0 + 1e-9)
                case = f"{size} values, epsilon {times / size:.3g}, ddof={ddof}"
                large = "1,000 values" if size == SIZES[-1] else "2 to 200 values"
                yield f"{shape}, {noise}, {large}", Covered(case, name, groups, int(outside.sum()))


def of_values(size: int) -> dict[str, Floats]:
    """Return values of a group: continuous, rounded, tied."""
    values = np.random.default_rng(size).gamma(2.0, 12.0, size).clip(*BOUNDS)
    return {"continuous": values, "rounded": values.round(), "tied": np.resize([3.0, 3.0, 8.0, 20.0, 60.0], size)}


def quantiles(most: int) -> Iterator[tuple[str, Covered]]:
    """Check whether `_low` to `_high` holds the smallest value of that rank, in small and large groups."""
    for noise, size, epsilon in product(NOISES, (7, 12, 100, 10_000), (1.0, 50.0)):
        groups = min(most, ROWS // size)
        for shape, values in of_values(size).items():
            asked = {"q": dpf.quantile("x", q=list(QUANTILES), bounds=BOUNDS)}
            found = grouped(values, groups).agg(asked, checks=False, **cost(epsilon, noise))
            for q in QUANTILES:
                exact = np.quantile(values, q, method="inverted_cdf")
                low, high = (found[f"q_q{q}_{end}"].to_numpy() for end in ("low", "high"))
                case = f"{size} values, epsilon {epsilon:g}"
                yield f"{shape}, {noise}", Covered(case, f"q{q}", groups, int(((exact < low) | (exact > high)).sum()))


def ecdf(most: int) -> Iterator[tuple[str, Covered]]:
    """Check distribution functions over five bins, each edge separately."""
    for noise, size, epsilon in product(NOISES, (7, 12, 100, 10_000), (0.5, 5.0)):
        groups = min(most, ROWS // size)
        for shape, values in of_values(size).items():
            found = grouped(values, groups).ecdf("x", bins=list(EDGES), checks=False, **cost(epsilon, noise))
            exact = np.array([(values <= edge).mean() for edge in EDGES[1:]])
            off = np.abs(found["ecdf"].to_numpy().reshape(groups, -1) - exact)
            outside = (off > found["ecdf_error"].to_numpy().reshape(groups, -1) + 1e-12).sum(axis=0)
            for edge, misses in zip(EDGES[1:], outside, strict=True):
                case = f"{size} values, epsilon {epsilon:g}"
                yield f"{shape}, {noise}", Covered(case, f"up to {edge:g}", groups, int(misses))


def quotients(settings: int) -> None:
    """Compute the lowest probability that the interval of a ratio or share holds the truth, over random settings."""
    of = np.random.default_rng(0)
    least: dict[float, tuple[float, str]] = {}
    for _ in range(settings):
        p, confidence = float(of.integers(1, 3)), float(of.choice([0.5, 0.9, 0.95]))
        one, other = (float(np.round(of.uniform(0.25, 2.2), 2)) for _ in range(2))
        bottom, slope = int(of.integers(10, 80)), float(of.choice([0.5, 1.0, 2.0, 3.0]))
        of_total = bool(of.integers(2))
        setting = (p, one, other, round(bottom * slope), bottom)
        chance = held(setting, confidence, of_total)
        words = f"{'share' if of_total else 'ratio'}, p, scales and numbers {setting}"
        least[confidence] = min(least.get(confidence, (2.0, "")), (chance, words))
    for confidence, (chance, words) in sorted(least.items()):
        print(f"{confidence:g}: {chance:.4f} at least ({words})")


def main() -> None:
    """Simulate or enumerate, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*RELEASED, "quotients"], help="what to try; all if none is named")
    parser.add_argument("--groups", type=int, default=7_200, help="groups of one release, fewer where they are large")
    parser.add_argument("--settings", type=int, default=400, help="settings of quotients")
    options = parser.parse_args()
    warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)  # epsilons at which an interval is a few values wide
    for name in [options.only] if options.only else [*RELEASED, "quotients"]:
        print(f"\n{name}")
        if name == "quotients":
            quotients(options.settings)
            continue
        least: dict[str, Covered] = {}
        for line, one in RELEASED[name](options.groups):
            if line not in least or one.rate < least[line].rate:
                least[line] = one
        for line, one in sorted(least.items()):
            print(f"{line}: {one.rate:.4f} at least ({one.column}, {one.case}, {one.samples:,} groups)")


RELEASED = {"variances": variances, "quantiles": quantiles, "ecdf": ecdf}

if __name__ == "__main__":
    main()
