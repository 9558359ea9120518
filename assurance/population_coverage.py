"""Measure coverage of population intervals, and sizes of tests of equal groups, by public calls.

    python -m assurance.population_coverage [--groups 1000] [--calls 2] [--tables 2000] [--only TEXT]

Each call releases many equal groups, whose rows are samples of one population: one call is as many samples as there
are groups. `tests/derived/test_population_coverage.py` runs a small share of the same code. The program prints two
rates of each statistic: of intervals that hold the population's number, and of differences of equal groups whose
interval holds 0. Counts have whole steps, and cover more than 95% where few rows are expected. `--only lumps` shows
where means, but not sums, cover too seldom: values nearly all 0, or very skewed. `--only few` has sums of few rows.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr

import dpframe as dpf
from assurance import verdict
from tests.covering import Covered, chance_of_missing

Floats = NDArray[np.float64]

LAWS: dict[str, dict[str, Any]] = {"Laplace": {}, "Gaussian": {"delta": 1e-6, "mechanism": "gaussian"}}
SIZES = (30, 300, 3_000)
EPSILONS = (0.1, 1.0, 10.0)
BOUNDS, MEAN, SHARE, RARE = (0.0, 500.0), 50.0, 0.1, 0.01
STATISTICS = ("n", "share", "rare", "mean", "sum")
ALARM = 1e-6 / 200  # false alarm rate of one rate; a run has fewer than 200 of them
LEAST, SIZE = 0.93, 0.055  # limits: coverage of intervals, which are approximate; size of tests at 5%, with whole steps
PARTS = 5  # all statistics share the epsilon: each has about as much as if it were released alone
TRUE_MEAN = MEAN * (1.0 - float(np.exp(-BOUNDS[1] / MEAN)))  # of clipped values


def population(groups: int, rows: int, generator: np.random.Generator) -> pl.DataFrame:
    """Draw samples of one population: a random number of rows in each of two groups of each part."""
    sizes = generator.poisson(rows, 2 * groups)
    owner = np.repeat(np.arange(2 * groups), sizes)
    return pl.DataFrame(
        {
            "part": owner // 2,
            "variant": owner % 2,
            "spend": generator.exponential(MEAN, owner.size),
            "share": generator.random(owner.size) < SHARE,
            "rare": generator.random(owner.size) < RARE,
        }
    )


def released(law: str, epsilon: float, rows: pl.DataFrame, groups: int) -> Any:
    """Release all statistics for two groups in each part."""
    asked = {
        "n": dpf.count(),
        "share": dpf.proportion("share"),
        "rare": dpf.proportion("rare"),
        "mean": dpf.mean("spend", bounds=BOUNDS),
        "sum": dpf.sum("spend", bounds=BOUNDS),
    }
    ledger = dpf.Ledger(epsilon=1e9, delta=0.9, accounting="basic")
    keys = {"part": range(groups), "variant": [0, 1]}
    price = {"epsilon": PARTS * epsilon, "ledger": ledger, **LAWS[law]}
    return rows.dp.group_by("part", "variant", keys=keys).agg(asked, denoise=None, population=True, **price)


def truth(statistic: str, rows: int) -> float:
    """Return the true value in the population."""
    return {"n": rows, "share": SHARE, "rare": RARE, "mean": TRUE_MEAN, "sum": rows * TRUE_MEAN}[statistic]


def covered(law: str, epsilon: float, rows: int, groups: int, seed: int) -> Iterator[tuple[Covered, Covered]]:
    """Yield, for each statistic, how many intervals miss, and how many tests of equal groups reject equality."""
    result = released(law, epsilon, population(groups, rows, np.random.default_rng(seed)), groups)
    errors = result.dp.errors(cells=True, covers="population")
    differences = dpf.compare(result, 1, 0, by="variant")
    for name in STATISTICS:
        exact = truth(name, rows)
        low, high = (errors[name + end].to_numpy() for end in ("_low", "_high"))
        mine = differences.filter(pl.col("statistic") == name)
        apart = (mine["low"].to_numpy() > 0.0) | (mine["high"].to_numpy() < 0.0)
        words = f"{law}, epsilon {epsilon:g}, {rows} rows, {name}"
        missed = int(((exact < low) | (exact > high)).sum())
        yield Covered(words, name, low.size, missed), Covered(words, name, apart.size, int(apart.sum()))


def tables(epsilon: float, rows: int, draws: int, seed: int, *, contrasts: bool = False) -> Covered:
    """Count how often `chi2` rejects the independence of two independent columns at 5%."""
    generator, rejected = np.random.default_rng(seed), 0
    keys = {"a": range(3), "b": range(4)}
    for _ in range(draws):
        shares = {"a": generator.choice(3, rows, p=(0.5, 0.3, 0.2)), "b": generator.choice(4, rows)}
        frame, price = pl.DataFrame(shares), {"epsilon": epsilon, "ledger": dpf.Ledger(epsilon=1e9, delta=0.9)}
        if contrasts:
            result = frame.dp.marginals(["a", "b"], keys=keys, delta=1e-6, **price)
        else:
            result = frame.dp.group_by("a", "b", keys=keys).count(**price)
        rejected += bool(result.dp.chi2()["p_value"][0] <= 0.05)
    return Covered(f"chi2, epsilon {epsilon:g}, {rows} rows{', contrasts' * contrasts}", "p_value", draws, rejected)


def lumps(epsilon: float, rows: int, share: float, groups: int, seed: int) -> Iterator[Covered]:
    """Check means and sums of values that are 0 except for a few at the upper bound, which a sample may miss."""
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(groups), generator.poisson(rows, groups))
    spend = np.where(generator.random(owner.size) < share, BOUNDS[1], 0.0)
    words = f"lumps, epsilon {epsilon:g}, {rows} rows, one in {1 / share:g}"
    yield from _of_values(words, owner, spend, share * BOUNDS[1], epsilon, rows, groups)


def skewed(epsilon: float, rows: int, groups: int, seed: int) -> Iterator[Covered]:
    """Check means and sums of lognormal values whose median is 1/100 of the upper bound, so large values are rare."""
    generator, deviation, median = np.random.default_rng(seed), 1.5, BOUNDS[1] / 100.0
    owner = np.repeat(np.arange(groups), generator.poisson(rows, groups))
    spend = np.minimum(median * np.exp(deviation * generator.standard_normal(owner.size)), BOUNDS[1])
    bound = math.log(100.0) / deviation  # in units of the normal variable
    exact = median * math.exp(deviation**2 / 2.0) * ndtr(bound - deviation) + BOUNDS[1] * ndtr(-bound)
    yield from _of_values(f"skewed, epsilon {epsilon:g}, {rows} rows", owner, spend, exact, epsilon, rows, groups)


def few(kind: str, epsilon: float, rows: int, groups: int, seed: int) -> Covered:
    """Check sums of so few rows that their random number is the main part of the error."""
    (lower, upper), drawn, mean = FEW[kind]
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(groups), generator.poisson(rows, groups))
    frame, ledger = pl.DataFrame({"part": owner, "spend": drawn(generator, owner.size)}), dpf.Ledger(epsilon=1e9)
    by, price = frame.dp.group_by("part", keys=range(groups)), {"epsilon": epsilon, "ledger": ledger}
    result = by.agg(sum=dpf.sum("spend", bounds=(lower, upper)), denoise=None, population=True, **price)
    errors = result.dp.errors(cells=True, covers="population")
    low, high = (errors["sum" + end].to_numpy() for end in ("_low", "_high"))
    missed = int(((rows * mean < low) | (rows * mean > high)).sum())
    return Covered(f"few, epsilon {epsilon:g}, {rows} rows, {kind}", "sum", groups, missed)


def _alike(generator: np.random.Generator, size: int) -> Floats:
    return generator.normal(300.0, 60.0, size)


FEW: dict[str, tuple[tuple[float, float], Callable[[np.random.Generator, int], Floats], float]] = {
    "alike": (BOUNDS, _alike, 300.0),  # exact to three decimals, as are the next two
    "losses": ((-BOUNDS[1], 0.0), lambda generator, size: -_alike(generator, size), -300.0),
    "both signs": ((-BOUNDS[1], BOUNDS[1]), _alike, 300.0),
    "exponential": (BOUNDS, lambda generator, size: generator.exponential(MEAN, size), TRUE_MEAN),
}
FEW_ROWS = (1, 3, 10, 30)


def _of_values(
    words: str, owner: Any, spend: Floats, mean: float, epsilon: float, rows: int, groups: int
) -> Iterator[Covered]:
    frame, ledger = pl.DataFrame({"part": owner, "spend": spend}), dpf.Ledger(epsilon=1e9)
    asked = {"mean": dpf.mean("spend", bounds=BOUNDS), "sum": dpf.sum("spend", bounds=BOUNDS)}
    by = frame.dp.group_by("part", keys=range(groups))
    result = by.agg(asked, denoise=None, population=True, epsilon=2.0 * epsilon, ledger=ledger)
    errors = result.dp.errors(cells=True, covers="population")
    for name, exact in (("mean", mean), ("sum", rows * mean)):
        low, high = (errors[name + end].to_numpy() for end in ("_low", "_high"))
        yield Covered(f"{words}, {name}", name, low.size, int(((exact < low) | (exact > high)).sum()))


def too_often(found: Covered, rate: float) -> bool:
    """Return whether so many misses have a probability below `ALARM`, if the true rate is at most `rate`."""
    return bool(chance_of_missing(found.misses, found.samples, rate) < ALARM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--calls", type=int, default=2)
    parser.add_argument("--tables", type=int, default=2_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    every: list[tuple[Covered, float]] = []
    for law in LAWS:
        for rows in SIZES:
            for epsilon in EPSILONS:
                if options.only not in f"{law}, epsilon {epsilon:g}, {rows} rows":
                    continue
                calls = [list(covered(law, epsilon, rows, options.groups, seed)) for seed in range(options.calls)]
                texts = []
                for place, name in enumerate(STATISTICS):
                    both = [summed([call[place][kind] for call in calls]) for kind in (0, 1)]
                    every += [(one, 1.0 - LEAST) for one in both]
                    texts.append("{} {:.3f} {:.3f}".format(name, *(one.rate for one in both)))
                print(f"{law:9} {rows:6} rows, epsilon {epsilon:4g}:  {'   '.join(texts)}", flush=True)
    for rows, epsilon, contrasts in ((200, 1.0, False), (2_000, 1.0, False), (2_000, 10.0, False), (2_000, 1.0, True)):
        if options.only in "chi2":
            found = tables(epsilon, rows, options.tables, 1, contrasts=contrasts)
            every.append((found, SIZE))
            print(f"{found.case}: size {found.misses / found.samples:.3f}", flush=True)
    if options.only == "lumps":
        _tell_lumps(options.groups)
    if options.only == "few":
        every += [(one, 1.0 - LEAST) for one in _few_told(options.groups)]
    wrong = [one for one, rate in every if too_often(one, rate)]
    for one in wrong:
        print(f"OBJECTION: {one}")
    least = min((one.rate for one, rate in every if rate != SIZE), default=1.0)
    return verdict(len(wrong), rates=len(every), samples=sum(one.samples for one, _ in every), least_rate=least)


def _tell_lumps(groups: int) -> None:
    """Print where means cover too seldom, which is no objection."""
    cases = ((100, 0.01), (300, 0.01), (3_000, 0.01), (100, 0.1), (1_000, 0.1))
    found_of = [lumps(epsilon, *case, groups, 1) for case in cases for epsilon in EPSILONS[1:]]
    found_of += [skewed(epsilon, rows, groups, 1) for rows in (30, 100, 300) for epsilon in (1.0, 10.0, 50.0)]
    for mean, total in found_of:
        print(f"{mean.case.rpartition(',')[0]}: mean {mean.rate:.3f}, sum {total.rate:.3f}", flush=True)


def _few_told(groups: int) -> list[Covered]:
    """Print how often intervals of sums of few rows cover."""
    told = []
    for kind in FEW:
        for rows in FEW_ROWS:
            told.append([few(kind, epsilon, rows, groups, 1) for epsilon in (1.0, 30.0, 300.0)])
            print(f"{kind:12} {rows:4} rows:  " + "  ".join(f"{one.rate:.3f}" for one in told[-1]), flush=True)
    return [one for row in told for one in row]


def summed(found: list[Covered]) -> Covered:
    """Add up the misses of several calls of one case."""
    return replace(found[0], samples=sum(one.samples for one in found), misses=sum(one.misses for one in found))


if __name__ == "__main__":
    raise SystemExit(main())
