"""Measure how often 95% intervals of released numbers cover the truth, with many equal public groups released at once.

Run it from the root of the repository: ``python -m benchmarks.intervals``. For each noise, unit and statistic, it
prints the least plausible case over all sizes, places and epsilons. The exit code is 1 if an interval covers less
than 95%, at a false alarm rate of 1e-6 over all cases. The same code with fewer groups runs in
``tests/queries/test_intervals.py``.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product

from tests.covering import PEOPLE, ROWS, VALUES, Case, Covered, covered, too_many, worst

SIZES = (0, 1, 3, 10, 30, 100, 1_000)
EPSILONS = (0.1, 1.0, 10.0)
ROWS_AT_ONCE = 1_000_000  # limit of one frame: large groups are repeated less often


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=100_000, help="groups of one release, fewer where they are large")
    options = parser.parse_args()
    failed = False
    print("| noise | unit | column | covered | of intervals | in the least likely case |")
    print("|---|---|---|---:|---:|---|")
    for noise, unit in product(("Laplace", "Gaussian"), (ROWS, PEOPLE)):
        found = [one for case in cases(noise, unit, options.groups) for one in covered(case)]
        failed |= any(too_many(one, 1e-6 / (4 * len(found))) for one in found)
        for one in worst(found).values():
            print(line(noise, unit is not ROWS, one))
    print("an interval covers less than 95%" if failed else "all intervals cover 95%")
    return int(failed)


def cases(noise: str, unit: object, groups: int) -> list[Case]:
    """Return all sizes, places and epsilons; groups without values exist in one place only."""
    kinds = [(size, values) for size, values in product(SIZES, VALUES) if size or values == "middle"]
    return [
        Case(noise, epsilon, size, values, min(groups, ROWS_AT_ONCE // max(size, 1)), unit)
        for epsilon, (size, values) in product(EPSILONS, kinds)
    ]


def line(noise: str, people: bool, one: Covered) -> str:
    """Return a row of the table."""
    unit = "people" if people else "rows"
    return f"| {noise} | {unit} | {one.column} | {100 * one.rate:.2f}% | {one.samples:,} | {one.case} |"


if __name__ == "__main__":
    sys.exit(main())
