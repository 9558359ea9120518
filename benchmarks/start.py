"""Measure the startup cost: of an import, of the first release of a process, and of releases of a thousand rows.

    python -m benchmarks.start
    python -m benchmarks.start --processes 15 --calls 300 --only import small

Times are processor times of all threads together. Processes without and with dpframe take turns, and the least time of
each counts, because a busy machine only adds time. "Beyond" means after subtracting NumPy and Polars.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

PLAIN = "import numpy, polars"
TABLE = "; table = polars.DataFrame({{'g': numpy.arange({rows}) % 4, 'x': numpy.arange({rows}) / {rows}}})"
ASK = (
    "; import dpframe as dpf; table.dp.group_by('g', keys=range(4)).agg(n=dpf.count(), x=dpf.sum('x', bounds=(0, 1)), "
    "epsilon=1, ledger=dpf.Ledger(epsilon=1, checks=False)"
)
FIRST = {
    "1,000 rows, denoise=None": (1_000, ASK + ", denoise=None)"),
    "1,000 rows, denoised": (1_000, ASK + ")"),
    "10^7 rows, denoise=None": (10**7, ASK + ", denoise=None)"),
}
WITHOUT = "; from dpframe.engines.compiled import kernels; kernels.ready = lambda: False"
KEYS, EDGES, BOUNDS = ["A", "B", "C", "D"], list(range(0, 101, 5)), (0, 100)


def spent(code: str) -> float:
    """Return the processor seconds of a new process that runs only this code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beyond(code: str, plain: str, processes: int) -> tuple[float, float]:
    """Return the least time of the plain processes, and how much more the least time with dpframe is."""
    spent(code)  # so that all bytecode is compiled
    pairs = [(spent(plain), spent(code)) for _ in range(processes)]
    least, other = (min(times) for times in zip(*pairs, strict=True))
    return least, other - least


def imports(processes: int) -> None:
    """Measure the import alone, and with the modules that the first query loads."""
    for name, code in {"import dpframe": "", "import dpframe and its rooms": "; dpframe.count"}.items():
        plain, more = beyond(f"{PLAIN}, dpframe{code}", PLAIN, processes)
        print(f"{name}: {more:.3f} s beyond NumPy and Polars, {more / plain:.2f} of their {plain:.3f} s", flush=True)


def first(processes: int) -> None:
    """Measure the import and first release of a process, beyond NumPy, Polars and creating the table."""
    for name, (rows, ask) in FIRST.items():
        table = PLAIN + TABLE.format(rows=rows)
        ways = {"": ask} if rows < 10**6 else {", without fast": WITHOUT + ask, ", with fast": ask}
        for way, code in ways.items():
            plain, more = beyond(table + code, table, max(processes // 3, 3))
            print(f"first release, {name}{way}: {more:.3f} s beyond {plain:.3f} s", flush=True)


def small_calls(table: Any) -> dict[str, Callable[[], Any]]:
    """Return releases of a small table."""
    import dpframe as dpf

    paid = {"epsilon": 1.0, "ledger": dpf.Ledger(epsilon=1e9, checks=False)}
    people = dpf.PrivacyUnit(column="u", max_rows=3, max_groups=2)
    for_people = {"epsilon": 1.0, "ledger": dpf.Ledger(epsilon=1e9, unit=people, checks=False)}
    by = table.dp.group_by("g", keys=KEYS)
    three = {"n": dpf.count(), "s": dpf.sum("x", bounds=BOUNDS), "m": dpf.mean("x", bounds=BOUNDS)}
    return {
        "count": lambda: table.dp.count(**paid),
        "mean": lambda: table.dp.mean("x", bounds=BOUNDS, **paid),
        "sum by 4 keys": lambda: by.sum("x", bounds=BOUNDS, **paid),
        "count and sum by 4 keys": lambda: by.agg(n=dpf.count(), s=dpf.sum("x", bounds=BOUNDS), **paid),
        "histogram of 20 bins": lambda: table.dp.histogram("x", bins=EDGES, **paid),
        "count, sum and mean by 4 keys": lambda: by.agg(three, **paid),
        "count, sum and mean by 4 keys, denoise=None": lambda: by.agg(three, denoise=None, **paid),
        "count of units by 4 keys": lambda: by.count(**for_people),
        "count, sum and mean of units by 4 keys": lambda: by.agg(three, **for_people),
    }


def small(calls: int) -> None:
    """Measure milliseconds of releases of a thousand rows."""
    generator = np.random.default_rng(0)
    columns = {"g": generator.choice(KEYS, 1_000), "x": generator.random(1_000) * BOUNDS[1]}
    polars = pl.DataFrame({**columns, "u": generator.integers(0, 300, 1_000)})
    for library, table in {"Polars": polars, "pandas": polars.to_pandas()}.items():
        for name, call in small_calls(table).items():
            times = []
            for _ in range(calls):
                started = time.process_time_ns()
                call()
                times.append((time.process_time_ns() - started) / 1e6)
            least, median = min(times), statistics.median(times)
            print(f"1,000 rows of {library}, {name}: {least:.2f} ms, median {median:.2f} ms", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=15, help="fresh processes of each kind")
    parser.add_argument("--calls", type=int, default=300, help="small releases of each kind")
    parser.add_argument("--only", nargs="+", choices=("import", "first", "small"), default=("import", "first", "small"))
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "import" in options.only:
        imports(options.processes)
    if "first" in options.only:
        first(options.processes)
    if "small" in options.only:
        small(options.calls)


if __name__ == "__main__":
    main()
