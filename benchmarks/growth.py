"""Measure how the cost of a release grows with rows, cells, units, statistics per call, and entries of the ledger.

    python -m benchmarks.growth [--peers /path/to/python] [--quick]
    python -m benchmarks.growth --only rows files --of dpframe "dpframe, fast" Polars --sizes 1000000000

Every figure is measured in a new process: the processor time of the fastest of several runs (all threads together, so
a busy machine disturbs it less than wall-clock time), and the growth of the process in the first run. The same queries
run in plain Polars, without privacy, and in OpenDP, diffprivlib and PipelineDP, as their own guides show, if the
interpreter given by ``--peers`` has them. dpframe runs without its compiled kernels, and with those of the extra
``fast`` where this interpreter has it. Each row is a unit, except in the query about units. Figures go to
``benchmarks/growth.json``: a new figure replaces the old one, others stay. ``benchmarks.growth_charts`` draws them as
the charts of ``docs/assurance/speed.md``.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

RECORD = Path(__file__).with_name("growth.json")
GROUPS, HIGH = 24, 100.0
FILE = 10**7  # rows of a file; a larger table is the same file under many names
FAST = "dpframe, fast"
OURS = ("dpframe", FAST, "Polars")
ROWS = {
    **dict.fromkeys(OURS, (10**4, 10**5, 10**6, 10**7, 3 * 10**7, 10**8)),
    "OpenDP": (10**4, 10**6, 10**7),
    "diffprivlib": (10**4, 10**5, 10**6, 10**7),
    "PipelineDP": (10**4, 10**5),
}
FILES = dict.fromkeys(OURS, (10**7, 10**8, 10**9))
CELLS = {
    **dict.fromkeys(OURS, (10, 10**3, 10**5, 10**6, 10**7)),
    "OpenDP": (10, 10**3, 10**5),
    "diffprivlib": (10, 10**3, 10**5),
}
UNITS = dict.fromkeys(OURS, (10**3, 10**4, 10**5, 10**6, 10**7))
STATISTICS = {**dict.fromkeys(OURS, (1, 4, 16)), "OpenDP": (1, 4)}
ENTRIES = {"dpframe": (10, 10**3, 10**4, 10**5)}
AXES = {"rows": ROWS, "files": FILES, "cells": CELLS, "units": UNITS, "statistics": STATISTICS, "entries": ENTRIES}
PEERS = ("OpenDP", "diffprivlib", "PipelineDP")
Case = tuple[str, str, int]  # the query, the library, and the size
MEBIBYTE = 2**20
SECONDS = 0.5  # no further run starts after this time
LONG = 10.0  # a run of more seconds is not repeated


def table(axis: str, size: int) -> pl.DataFrame | pl.LazyFrame:
    """Return the table of a query; it is the same for every library."""
    generator = np.random.default_rng(size)
    rows = {"rows": size, "files": FILE, "units": 10**7}.get(axis, 10**6)
    made: dict[str, Callable[[], Any]] = {
        "g": lambda: generator.integers(0, size if axis == "cells" else GROUPS, rows),
        "x": lambda: generator.random(rows) * HIGH,
        "u": lambda: generator.integers(0, size, rows),
    }
    needed = {"rows": "gx", "files": "gx", "cells": "g", "units": "gu", "statistics": "g"}[axis]
    more = {f"x{number}": generator.random(rows) * HIGH for number in range(size)} if axis == "statistics" else {}
    frame = pl.DataFrame({name: made[name]() for name in needed} | more)
    return _linked(frame, size // FILE) if axis == "files" else frame


def _linked(frame: pl.DataFrame, times: int) -> pl.LazyFrame:
    """Read a Parquet file under `times` names as one table; it is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frame.write_parquet(folder / "0.parquet", row_group_size=2**20)
    for number in range(1, times):
        os.link(folder / "0.parquet", folder / f"{number}.parquet")
    return pl.scan_parquet(folder / "*.parquet")


def of_dpframe(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in dpframe without compiled kernels."""
    from dpframe.engines.compiled import kernels

    kernels.ready = lambda: False  # type: ignore[assignment]  # as if Numba were not installed
    return _of_dpframe(axis, size)


def of_dpframe_fast(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in dpframe with compiled kernels."""
    from dpframe.engines.compiled import kernels

    if not kernels.ready():
        raise SystemExit("the extra fast is not installed")
    return _of_dpframe(axis, size)


def _of_dpframe(axis: str, size: int) -> Callable[[], Any]:
    import dpframe as dpf

    if axis == "entries":
        return _entries(size)
    frame, ledger = table(axis, size), dpf.Ledger(epsilon=1e9, unit="u" if axis == "units" else None, checks=False)
    free = {"epsilon": 1.0, "denoise": None, "ledger": ledger}
    if axis == "cells":
        return lambda: frame.dp.group_by("g", keys=range(size)).count(**free)
    asked = frame.dp.group_by("g", keys=range(GROUPS))
    if axis == "units":
        return lambda: asked.count(max_rows=1, max_groups=2, **free)
    names = [f"x{number}" for number in range(size)] if axis == "statistics" else ["x"]
    sums = {f"sum_{name}": dpf.sum(name, bounds=(0, HIGH)) for name in names}
    return lambda: asked.agg({"n": dpf.count(), **sums}, **free)


def _entries(size: int) -> Callable[[], Any]:
    """Return a charge to a ledger file with `size` entries."""
    import dpframe as dpf
    from benchmarks.large_ledger import charge, written

    path = Path(tempfile.mkdtemp()) / "large.ledger"
    written(path, size)
    ledger = dpf.Ledger.open(path)
    return lambda: charge(ledger)


def of_polars(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in Polars alone; for units, the contributions are bounded by hand."""
    frame = table(axis, size).lazy()
    by = frame.group_by("g")
    if axis == "cells":
        return lambda: by.agg(pl.len()).collect(engine="streaming")
    if axis == "units":
        pairs = frame.group_by("u", "g").agg(pl.len().clip(upper_bound=1).alias("n"))
        weighed = pairs.with_columns(w=(2.0 / pl.len().over("u")).clip(upper_bound=1.0))
        return lambda: weighed.group_by("g").agg((pl.col("n") * pl.col("w")).sum()).collect(engine="streaming")
    names = [f"x{number}" for number in range(size)] if axis == "statistics" else ["x"]
    sums = [pl.col(name).clip(0.0, HIGH).sum() for name in names]
    return lambda: by.agg(pl.len(), *sums).collect(engine="streaming")


def of_opendp(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in OpenDP, with its API for Polars frames."""
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    frame = table(axis, size).lazy()
    names = {"rows": ["x"], "statistics": [f"x{number}" for number in range(size)]}.get(axis, [])
    sums = [pl.col(name).fill_nan(0.0).fill_null(0.0).dp.sum((0.0, HIGH)) for name in names]  # type: ignore[attr-defined]
    keys = pl.LazyFrame({"g": range(size if axis == "cells" else GROUPS)})

    def asked() -> Any:
        unit = dp.unit_of(contributions=1)
        margin = dp.polars.Margin(by=["g"], max_length=10**9)
        context = dp.Context.compositor(
            data=frame, privacy_unit=unit, privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1, margins=[margin]
        )
        return context.query().group_by("g").agg(dp.len(), *sums).with_keys(keys).release().collect()

    return asked


def of_diffprivlib(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in diffprivlib: histograms with declared bins; for sums, one of them is weighted."""
    tools = importlib.import_module("diffprivlib.tools")
    frame = table(axis, size).lazy().collect()
    group = frame["g"].to_numpy()
    bins, ends = (size, (0, size)) if axis == "cells" else (GROUPS, (0, GROUPS))
    if axis == "cells":
        return lambda: tools.histogram(group, epsilon=1.0, bins=bins, range=ends)
    value = frame["x"].to_numpy()

    def asked() -> Any:
        counts = tools.histogram(group, epsilon=0.5, bins=bins, range=ends)[0]
        return counts, [tools.sum(value[group == one], epsilon=0.5, bounds=(0, HIGH)) for one in range(GROUPS)]

    return asked


def of_pipelinedp(axis: str, size: int) -> Callable[[], Any]:
    """Return the query in PipelineDP, on its local backend."""
    pipeline = importlib.import_module("pipeline_dp")
    rows = list(zip(range(size), *(table(axis, size).lazy().collect()[name].to_list() for name in "gx"), strict=True))

    def asked() -> Any:
        accountant = pipeline.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-9)
        metrics = [pipeline.Metrics.COUNT, pipeline.Metrics.SUM]
        params = pipeline.AggregateParams(
            metrics=metrics,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0.0,
            max_value=HIGH,
        )
        read = pipeline.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
        result = engine.aggregate(rows, params, read, public_partitions=list(range(GROUPS)))
        accountant.compute_budgets()
        return list(result)

    return asked


ASKED = {
    "dpframe": of_dpframe,
    FAST: of_dpframe_fast,
    "Polars": of_polars,
    "OpenDP": of_opendp,
    "diffprivlib": of_diffprivlib,
    "PipelineDP": of_pipelinedp,
}


def measured(axis: str, name: str, size: int) -> dict[str, Any]:
    """Return the processor time of the fastest run, and the growth of the process in the first run.

    At least two runs are made if they are short: the first one loads what later ones reuse, such as compiled kernels.
    """
    asked = ASKED[name](axis, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, fastest, runs = time.process_time(), float("inf"), 0
    grown = 0
    while runs < 2 or (runs < 200 and time.process_time() - started < SECONDS):
        start = time.process_time()
        asked()
        took = time.process_time() - start
        fastest, runs = min(fastest, took), runs + 1
        grown = grown or (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        if took > LONG:
            break
    return {"axis": axis, "of": name, "size": size, "seconds": fastest, "mebibytes": grown / MEBIBYTE, "runs": runs}


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the figures to measure."""
    for axis in options.only or AXES:
        for name, sizes in AXES[axis].items():
            if name in (options.of or ASKED):
                for size in sizes[:2] if options.quick else sizes:
                    if size in (options.sizes or sizes):
                        yield axis, name, size


def in_a_process(case: Case, python: str) -> dict[str, Any] | None:
    """Measure one figure in a new process; return None where the library is missing or fails."""
    words = [python, "-m", "benchmarks.growth", "--one", *map(str, case)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{case}: {(found.stderr.strip().splitlines() or ['failed'])[-1]}", file=sys.stderr)
        return None
    figure: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return figure


def _write(path: Path, figures: dict[Case, dict[str, Any]]) -> None:
    """Write the known figures in the order of the queries; drop figures of queries that no longer exist."""
    machine = {"processors": os.cpu_count(), "python": platform.python_version()}
    order = [(axis, name, size) for axis, of in AXES.items() for name, sizes in of.items() for size in sizes]
    known = [figures[case] for case in order if case in figures]
    path.write_text(json.dumps({"machine": machine, "figures": known}, indent=1) + "\n")


def _known(path: Path) -> dict[Case, dict[str, Any]]:
    figures = json.loads(path.read_text())["figures"] if path.exists() else []
    return {(figure["axis"], figure["of"], figure["size"]): figure for figure in figures}


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=sys.executable, help="the interpreter that has the other libraries")
    parser.add_argument("--quick", action="store_true", help="only the two smallest sizes")
    parser.add_argument("--only", nargs="+", choices=tuple(AXES), help="these questions")
    parser.add_argument("--of", nargs="+", choices=tuple(ASKED), help="asked of these")
    parser.add_argument("--sizes", nargs="+", type=int, help="of these sizes")
    parser.add_argument("--record", type=Path, default=RECORD, help="the file of figures")
    parser.add_argument("--one", nargs=3, metavar=("AXIS", "OF", "SIZE"), help="one figure, printed as JSON")
    options = parser.parse_args()
    if options.one:
        axis, name, size = options.one
        print(json.dumps(measured(axis, name, int(size))))
        return
    figures = _known(options.record)
    for case in cases(options):
        figure = in_a_process(case, options.peers if case[1] in PEERS else sys.executable)
        if figure is not None:
            seconds, grown = figure["seconds"], figure["mebibytes"]
            print(f"{case[0]:<11}{case[1]:<14}{case[2]:>13,}{seconds:>11.4f} s{grown:>9.0f} MiB", flush=True)
            figures[case] = figure
            _write(options.record, figures)


if __name__ == "__main__":
    main()
