"""Count distinct values of real tables for several limits per person, and measure how long the flows take.

    python -m benchmarks.distinct [--edges 1000000]

The tables are in the folder next to the repository. Times are processor times. The generated graphs have a given
number of pairs of unit and value, in random order: some shapes resemble data, others are hard for searches.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpframe as dpf
from benchmarks.keys_found import tables
from dpframe.engines.sums.distinct import covered

MOST = (1, 2, 3, 5, 10, 30, 100)
Graph = tuple[Any, Any, int, int]


def counted() -> None:
    """Print the counts of real tables before noise, and the error at epsilon 1."""
    for name, (frame, person, key) in tables().items():
        true = frame.filter(frame[person].is_not_null())[key].drop_nulls().n_unique()
        print(f"{name}: {frame.height:,} rows, {true:,} distinct values of {key}")
        for most in MOST:
            ledger = dpf.Ledger(epsilon=1e9, unit=person)
            start = time.process_time()
            found = frame.dp.n_distinct(key, max_values=most, epsilon=1e6, ledger=ledger)[0, 0]
            seconds = time.process_time() - start
            (error,) = frame.dp.preview.n_distinct(key, max_values=most, epsilon=1.0, unit=person).error.values()
            print(f"  at most {most:<4}{found:>8,.0f}  +-{error:<6.0f}{seconds:>6.2f} s", flush=True)


def shapes(edges: int) -> Iterator[tuple[str, Graph, int]]:
    """Yield graphs of roughly `edges` edges, with the limit of values per unit."""
    generator = np.random.default_rng(1)
    sparse = int(edges / math.e)
    yield "each unit 5 of many values", _drawn(generator, edges // 5, edges // 10, edges), 3
    yield "skewed values", _skewed(generator, edges), 3
    yield "more values than units may count", _drawn(generator, edges // 33, edges // 10, edges), 3
    yield "sparse, where searches are longest", _drawn(generator, sparse, sparse, edges), 1
    yield "all units hold all values", _drawn(generator, math.isqrt(edges), math.isqrt(edges), 20 * edges), 1
    units, values = np.tril_indices(math.isqrt(2 * edges))
    yield "unit i holds the first i values", (units, values, units.max() + 1, units.max() + 1), 1
    for size in (30, 10, 3):
        yield f"ladder of blocks of {size}", _ladder(edges // (size * (size + 1)), size), 1
    each = np.arange(edges // 2)
    last = each.size
    yield "one chain", (np.concatenate([each, each[1:]]), np.concatenate([each, each[1:] - 1]), last, last), 1
    yield "one ring", (np.concatenate([each, each]), np.concatenate([each, (each + 1) % last]), last, last), 1


def _drawn(generator: np.random.Generator, units: int, values: int, edges: int) -> Graph:
    pairs = np.unique(generator.integers(0, units, edges) * values + generator.integers(0, values, edges))
    return pairs // values, pairs % values, units, values


def _skewed(generator: np.random.Generator, edges: int) -> Graph:
    units, values = edges // 20, edges // 10
    drawn = np.minimum((generator.pareto(1.0, edges) * 10).astype(np.int64), values - 1)
    pairs = np.unique(generator.integers(0, units, edges) * values + drawn)
    return pairs // values, pairs % values, units, values


def _ladder(groups: int, size: int) -> Graph:
    """Return a chain of blocks in each of which greedy choices are wrong."""
    block, (unit, value) = np.arange(groups)[:, None] * size, np.tril_indices(size)
    units = np.concatenate([(block + unit).ravel()] * 2)
    values = np.concatenate([(block + value).ravel(), (block + size + value).ravel()])
    inside = values < groups * size
    return units[inside], values[inside], groups * size, groups * size


def timed(edges: int) -> None:
    """Print a line for each shape."""
    generator = np.random.default_rng(2)
    for name, (ordered, held, units, values), most in shapes(edges):
        unit, value = generator.permutation(units)[ordered], generator.permutation(values)[held]
        start = time.process_time()
        found = int(covered(unit, value, units, values, most).sum())
        print(f"{name:<38}{unit.size:>10,}{found:>10,}{time.process_time() - start:>8.2f} s", flush=True)


def main() -> None:
    """Print the counts and the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    edges = parser.parse_args().edges
    counted()
    timed(edges)


if __name__ == "__main__":
    main()
