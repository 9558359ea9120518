"""Measure the processor time of a count by many declared keys, each in a new process: keys take most of it.

    python -m benchmarks.declared_keys [--keys 1000000] [--runs 3]

Combinations are given as a frame of two columns; each column has as many values as the square root of their number.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from datetime import date, timedelta
from typing import Any

import polars as pl

import dpframe as dpf

KINDS = {
    "integers": lambda number: number,
    "text": lambda number: f"é{number}",
    "dates": lambda number: date(2000, 1, 1) + timedelta(days=number),
}
MOST_DATES = 2_900_000  # from the year 2000 to the year 9999


def asked(kind: str, keys: int, columns: int) -> float:
    """Return the seconds of one count."""
    each = keys if columns == 1 else math.isqrt(keys)
    values = [KINDS[kind](number) for number in range(each)]
    table = pl.DataFrame({"a": values})
    declared: Any = values
    if columns == 2:
        table = declared = table.join(table.rename({"a": "b"}), how="cross")
    frame, ledger = table.head(1_000), dpf.Ledger(epsilon=1e9, checks=False)
    start = time.process_time()
    frame.dp.group_by(*table.columns, keys=declared).count(epsilon=1.0, denoise=None, ledger=ledger)
    return time.process_time() - start


def main() -> None:
    """Print a line for each kind of keys."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "COLUMNS"), help="one count of one kind, in this process")
    options = parser.parse_args()
    if not 1 <= options.keys <= MOST_DATES:
        parser.error(f"--keys must be 1 to {MOST_DATES:,}")
    if options.one:
        kind, columns = options.one
        print(asked(kind, options.keys, int(columns)))
        return
    for columns in (1, 2):
        for kind in KINDS:
            command = [sys.executable, "-m", "benchmarks.declared_keys", "--one", kind, str(columns)]
            command += ["--keys", str(options.keys)]
            seconds = sorted(float(subprocess.check_output(command, text=True)) for _ in range(options.runs))
            words = f"{kind}, {columns} column{'s' * (columns > 1)}"
            print(f"{words:<22}{seconds[len(seconds) // 2]:>6.2f} s  {seconds[0]:.2f} - {seconds[-1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
