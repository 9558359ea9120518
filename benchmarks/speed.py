"""Measure how long a release takes, as a multiple of the plain aggregation of the same columns.

    python -m benchmarks.speed --rows 1000000 10000000 --repeats 3 --json speed.json
    python -m benchmarks.speed --rows 10000000 --clock cpu --least --kernels without --only "row level"

Machines are noisy, so a release and its plain counterparts are timed in turns, and the result is the median of the
pairwise ratios. All data are generated in the run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import dpframe as dpf
from dpframe.engines.compiled import kernels

Action = Callable[[], Any]

SEED = 20240229
HOURS, WARDS, USERS = 24, 100, 1_000_000
COST_BOUNDS, AGE_BOUNDS = (0, 5_000), (0, 120)
BINS, GRID_SIDE = 1_000, 1_000
SMALL_ROWS, SMALL_CALLS = 1_000, 200
IMPORT_RUNS = 10
HEAVY_MODULES = ("scipy.stats", "dp_accounting", "pandas")
PLENTY = 1e6  # so much epsilon that no release is refused
ZIPF = 1.3  # the exponent of skewed ids: the largest unit has a quarter of all rows
AIMS = {"rows": 2.0, "histogram": 1.6, "pandas": 1.0, "user": 5.0, "small": 5.0, "fair": 0.8}
SUMS = (pl.len().alias("n"), pl.col("cost").sum(), pl.col("age").mean())
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Case:
    """A release and the plain aggregations that it is compared with."""

    name: str
    release: Action
    plain: dict[str, Action]  # the one with the smallest median is the baseline
    aim: float | None = None
    aside: dict[str, Action] = field(default_factory=dict)  # timed for information, never the baseline


@dataclass
class Figure:
    """One line of the report. Times are medians in milliseconds."""

    section: str
    name: str
    rows: int | None
    value: float  # a ratio, or a time in `unit`
    least: float
    most: float
    unit: str
    aim: float | None = None
    ours: float | None = None
    plain: dict[str, float] = field(default_factory=dict)
    baseline: str | None = None


def main() -> None:
    options = _arguments()
    CLOCKS["used"] = CLOCKS[options.clock]
    if options.kernels == "without":
        kernels.ready = lambda: False  # type: ignore[assignment]  # as if Numba were not installed
    started = time.perf_counter()
    figures = [figure for found in _sections(options) for figure in found]
    print(*_table(figures), f"\n{machine()}\n{time.perf_counter() - started:.0f} s in all", sep="\n")
    if options.json:
        written = {"machine": machine(), "repeats": options.repeats, "figures": [asdict(figure) for figure in figures]}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(written, file, indent=1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=3, help="how often each pair is timed")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: of all processors")
    parser.add_argument("--kernels", choices=["with", "without"], default="with", help="where Numba is installed")
    parser.add_argument("--least", action="store_true", help="the ratio of least times, for busy machines")
    parser.add_argument("--only", nargs="+", choices=[*SIZED, *UNSIZED], help="some of the scenarios")
    return parser.parse_args()


def _sections(options: argparse.Namespace) -> Iterator[list[Figure]]:
    wanted = options.only or [*SIZED, *UNSIZED]
    for rows in options.rows:
        for name, cases in SIZED.items():
            if name in wanted:
                yield _ratios(name, rows, cases(rows), options.repeats, min if options.least else statistics.median)
    for name, figures in UNSIZED.items():
        if name in wanted:
            _progress(name)
            yield figures()


def machine() -> str:
    """Describe the machine in one line, without its name."""
    versions = f"Python {platform.python_version()}, polars {pl.__version__}, pandas {pd.__version__}, "
    threads = f"{os.cpu_count()} cores, {pl.thread_pool_size()} Polars threads, {platform.machine()}"
    return f"{threads}, {versions}numpy {np.__version__}, dpframe {dpf.__version__}"


# --- timing -----------------------------------------------------------------------------------------------------------


def _ratios(
    section: str, rows: int, cases: Iterator[Case], repeats: int, middle: Callable[[list[float]], float]
) -> list[Figure]:
    figures = []
    for case in cases:
        _progress(f"{section}, {rows:,} rows: {case.name}")
        times = _in_turn({"dpframe": case.release, **case.plain, **case.aside}, repeats)
        medians = {name: middle(taken) for name, taken in times.items()}
        baseline = min(case.plain, key=lambda name: medians[name])
        pairs = [ours / plain for ours, plain in zip(times["dpframe"], times[baseline], strict=True)]
        ours = medians.pop("dpframe")
        figure = _figure(section, case.name, pairs, "ratio", rows, case.aim, ours, medians, baseline)
        figures.append(figure if middle is statistics.median else replace(figure, value=ours / medians[baseline]))
    return figures


def _in_turn(actions: dict[str, Action], repeats: int) -> dict[str, list[float]]:
    """Return milliseconds of each action, timed A B A B ... so that slow spells hit all; one more round warms up."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(repeats + 1):
        for name, action in actions.items():
            gc.collect()
            taken = _milliseconds(action)
            if turn > 0:
                times[name].append(taken)
    return times


def _milliseconds(action: Action) -> float:
    clock = CLOCKS.get("used", time.perf_counter)
    started = clock()
    action()
    return (clock() - started) * 1e3


def _figure(section: str, name: str, values: list[float], unit: str, rows: int | None = None, *more: Any) -> Figure:
    return Figure(section, name, rows, statistics.median(values), min(values), max(values), unit, *more)


def _progress(words: str) -> None:
    print(f"  ... {words}", file=sys.stderr, flush=True)


def _table(figures: list[Figure]) -> list[str]:
    """Return the table of benchmarks/README.md."""
    lines = ["| | rows | median | least - most | aim | dpframe | plain |", "|---|---:|---:|---:|---:|---:|---|"]
    for figure in figures:
        rows = "" if figure.rows is None else f"{figure.rows:,}"
        aim = "" if figure.aim is None else f"{figure.aim:g}"
        ours = "" if figure.ours is None else f"{figure.ours:,.1f} ms"
        plain = ", ".join(f"{name} {taken:,.1f} ms" for name, taken in figure.plain.items())
        median = f"{figure.value:.2f}" + ("" if figure.unit == "ratio" else f" {figure.unit}")
        spread = f"{figure.least:.2f} - {figure.most:.2f}"
        lines.append(f"| {figure.section}: {figure.name} | {rows} | {median} | {spread} | {aim} | {ours} | {plain} |")
    return lines


# --- ratios to plain aggregations -------------------------------------------------------------------------------------


def row_level(rows: int) -> Iterator[Case]:
    """Count, sum and mean by 24 keys; each row is a unit."""
    frame = _rows_frame(rows)
    sites = [f"site-{place:02d}" for place in range(HOURS)]
    for kind, column, keys in (("integer", "hour", range(HOURS)), ("string", "site", sites)):
        release = _by_keys(frame, dpf.Ledger(epsilon=PLENTY, checks=False), column, keys=keys)
        yield Case(f"24 {kind} keys, Polars", release, _polars_by(frame, column), AIMS["rows"])
        pandas_frame = _pandas(frame, column, "cost", "age")
        release = _by_keys(pandas_frame, dpf.Ledger(epsilon=PLENTY, checks=False), column, keys=keys)
        yield Case(f"24 {kind} keys, pandas", release, _pandas_by(pandas_frame, column), AIMS["pandas"])


def histogram(rows: int) -> Iterator[Case]:
    """Time a histogram of one column with 1,000 equal bins."""
    frame = _rows_frame(rows).select("cost")
    width, limits = COST_BOUNDS[1] / BINS, COST_BOUNDS
    whole = pl.col("cost").filter(pl.col("cost").is_between(*limits))
    query = frame.lazy().select((whole // width).cast(pl.Int32).alias("bin")).group_by("bin").len()
    values = frame["cost"].to_numpy()
    plain = {
        "polars": lambda: frame.select((whole // width).cast(pl.Int32).alias("bin")).group_by("bin").len(),
        "polars streaming": lambda: query.collect(engine="streaming"),
        "numpy": lambda: np.histogram(values, bins=BINS, range=limits),
    }
    yield Case("1,000 bins, Polars", _histogram(frame, "cost", BINS, limits), plain, AIMS["histogram"])
    unchanged = _histogram(frame, "cost", BINS, limits, denoise=None)
    yield Case("1,000 bins, Polars, denoise=None", unchanged, plain, AIMS["histogram"])
    pandas_frame = _pandas(frame, "cost")
    plain = {"numpy": lambda: np.histogram(pandas_frame["cost"], bins=BINS, range=limits)}
    edges = np.linspace(*limits, BINS + 1)
    aside = {"pandas.cut": lambda: pd.cut(pandas_frame["cost"], edges, include_lowest=True).value_counts()}
    release = _histogram(pandas_frame, "cost", BINS, limits)
    yield Case("1,000 bins, pandas", release, plain, AIMS["pandas"], aside)


def grid(rows: int) -> Iterator[Case]:
    """Time a histogram of two columns with 1,000 x 1,000 equal bins: a million cells."""
    random = np.random.default_rng(SEED)
    frame = pl.DataFrame({"x": random.random(rows), "y": random.beta(2, 5, rows)})
    cells = [(pl.col(name) * GRID_SIDE).cast(pl.Int32) for name in ("x", "y")]
    plain = {
        "polars": lambda: frame.group_by(cells).len(),
        "polars streaming": lambda: frame.lazy().group_by(cells).len().collect(engine="streaming"),
    }
    bins, limits = [GRID_SIDE] * 2, [(0.0, 1.0)] * 2
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    aside = {"numpy": lambda: np.histogram2d(x, y, bins=bins, range=limits)}
    yield Case("10^6 cells, Polars", _histogram(frame, ["x", "y"], bins, limits), plain, None, aside)
    unchanged = _histogram(frame, ["x", "y"], bins, limits, denoise=None)
    yield Case("10^6 cells, Polars, denoise=None", unchanged, plain)


def user_level(rows: int) -> Iterator[Case]:
    """Count, sum and mean by 2,400 cells, protecting each of a million users."""
    frame = _users_frame(rows)
    plain = _polars_by(frame, "ward", "hour")
    for ids, column in (("integer", "user"), ("string", "user_name")):
        for noise, release in _user_releases(frame, column):
            yield Case(f"{ids} ids, {noise}, Polars", release, plain, AIMS["user"])
    pandas_frame = _pandas(frame, "user", "ward", "hour", "cost", "age")
    del frame, plain
    plain = _pandas_by(pandas_frame, "ward", "hour")
    for noise, release in _user_releases(pandas_frame, "user"):
        yield Case(f"integer ids, {noise}, pandas", release, plain, AIMS["user"])


def fair(rows: int) -> Iterator[Case]:
    """Compare with the same bounding of units by hand, in floats and without privacy, which is the same work."""
    for spread, skewed in (("even", False), ("skewed", True)):
        frame = _users_frame(rows, skewed=skewed)
        for ids, column in (("integer", "user"), ("string", "user_name")):
            (_, release), *_ = _user_releases(frame, column)
            yield Case(f"{spread} {ids} ids, Laplace, Polars", release, _bounded_by_hand(frame, column), AIMS["fair"])


def other_statistics(rows: int) -> Iterator[Case]:
    """Time statistics that are not sums, by 24 keys: distinct units and values, medians; and a variance."""
    frame = _users_frame(rows).select("user", "hour", "age", "cost")
    hours = frame.dp.group_by("hour", keys=range(HOURS))
    unit = dpf.PrivacyUnit(column="user", max_rows=3, max_groups=2)
    users, each = (dpf.Ledger(epsilon=PLENTY, unit=of, checks=False) for of in (unit, dpf.PrivacyUnit()))
    asked = {
        "n_units": (lambda: hours.n_units(epsilon=1.0, ledger=users), pl.col("user").n_unique()),
        "n_distinct": (lambda: hours.n_distinct("user", epsilon=1.0, ledger=each), pl.col("user").n_unique()),
        "median": (lambda: hours.median("cost", bounds=COST_BOUNDS, epsilon=1.0, ledger=each), pl.col("cost").median()),
        "variance": (lambda: hours.variance("age", bounds=AGE_BOUNDS, epsilon=1.0, ledger=each), pl.col("age").var()),
    }
    for name, (release, wanted) in asked.items():
        yield Case(name, release, _polars_by(frame, "hour", wanted=[wanted]))


def _bounded_by_hand(frame: pl.DataFrame, unit: str) -> dict[str, Action]:
    """Bound units by hand: pairs of unit and cell, a weight per unit, weighted sums by cell; by join and by window."""
    cell, value = ["ward", "hour"], {"cost": pl.col("cost").clip(*COST_BOUNDS), "age": pl.col("age").clip(*AGE_BOUNDS)}
    sums = [expression.sum().alias(name) for name, expression in value.items()]
    pairs = frame.lazy().group_by(unit, *cell).agg(pl.len().alias("n"), *sums, pl.col("age").count().alias("m"))
    weight = (6.0 / pl.col("n").sum()).clip(upper_bound=1.0)  # max_rows=3, max_groups=2
    asked = [(pl.col(name) * pl.col("w")).sum() for name in ("n", "cost", "age", "m")]
    joined = pairs.join(pairs.group_by(unit).agg(w=weight), on=unit).group_by(cell).agg(asked)
    window = pairs.with_columns(w=weight.over(unit)).group_by(cell).agg(asked)
    return {
        "fair, joined": lambda: joined.collect(engine="streaming"),
        "fair, window": window.collect,
    }


def _user_releases(frame: Any, column: str) -> Iterator[tuple[str, Action]]:
    unit = dpf.PrivacyUnit(column=column, max_rows=3, max_groups=2)
    keys = {"ward": [f"ward-{place:02d}" for place in range(WARDS)], "hour": range(HOURS)}
    for noise, delta in (("Laplace", 0), ("Gaussian", 1e-6)):  # what basic and gdp accounting choose by default
        ledger = dpf.Ledger(epsilon=PLENTY, delta=delta, unit=unit, checks=False)
        yield noise, _by_keys(frame, ledger, "ward", "hour", keys=keys)


def _by_keys(frame: Any, ledger: dpf.Ledger, *by: str, keys: Any) -> Action:
    statistics = {
        "n": dpf.count(),
        "cost": dpf.sum("cost", bounds=COST_BOUNDS),
        "age": dpf.mean("age", bounds=AGE_BOUNDS),
    }
    return lambda: frame.dp.group_by(*by, keys=keys).agg(statistics, epsilon=1.0, ledger=ledger)


def _histogram(frame: Any, column: Any, bins: Any, limits: Any, **more: Any) -> Action:
    ledger = dpf.Ledger(epsilon=PLENTY, checks=False)
    return lambda: frame.dp.histogram(column, bins=bins, range=limits, epsilon=1.0, ledger=ledger, **more)


def _polars_by(frame: pl.DataFrame, *by: str, wanted: Sequence[pl.Expr] = SUMS) -> dict[str, Action]:
    return {
        "polars": lambda: frame.group_by(by).agg(wanted),
        "polars streaming": lambda: frame.lazy().group_by(by).agg(wanted).collect(engine="streaming"),
    }


def _pandas_by(frame: pd.DataFrame, *by: str) -> dict[str, Action]:
    return {
        "pandas": lambda: frame.groupby(list(by)).agg(n=("cost", "size"), cost=("cost", "sum"), age=("age", "mean")),
    }


def _rows_frame(rows: int) -> pl.DataFrame:
    random = np.random.default_rng(SEED)
    hour = random.integers(0, HOURS, rows)
    sites = pl.Series([f"site-{place:02d}" for place in range(HOURS)])
    return pl.DataFrame({"hour": hour, "site": sites.gather(random.permutation(hour)), **_values(random, rows)})


def _users_frame(rows: int, *, skewed: bool = False) -> pl.DataFrame:
    """Return rows spread evenly over users, wards, hours: at 10^7 rows, most users have more rows than count in full.

    With `skewed`, the numbers of rows per user follow Zipf's law: few users have most rows.
    """
    random = np.random.default_rng(SEED)
    user = random.zipf(ZIPF, rows) % USERS if skewed else random.integers(0, USERS, rows)
    wards = pl.Series([f"ward-{place:02d}" for place in range(WARDS)])
    ward, hour = wards.gather(random.integers(0, WARDS, rows)), random.integers(0, HOURS, rows)
    frame = pl.DataFrame({"user": user, "ward": ward, "hour": hour, **_values(random, rows)})
    name = pl.format("user-{}", (pl.col("user") + 10**9).cast(pl.String))  # too long to be stored inline
    return frame.with_columns(name.alias("user_name"))


def _values(random: np.random.Generator, rows: int) -> dict[str, Any]:
    return {"cost": random.gamma(2.0, 600.0, rows), "age": random.integers(0, 100, rows)}


def _pandas(frame: pl.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the frame as a pandas user has it: NumPy columns, and pandas' own strings."""
    return pd.DataFrame({name: _pandas_column(frame[name]) for name in columns})


def _pandas_column(column: pl.Series) -> Any:
    if column.dtype != pl.String:
        return column.to_numpy().copy()
    return pd.Series(column.to_list(), dtype="str")


# --- small releases, imports ------------------------------------------------------------------------------------------


def small_releases() -> list[Figure]:
    """Return milliseconds of a release on 1,000 rows, including its charge."""
    frame = _rows_frame(SMALL_ROWS)
    frames = {"Polars": frame, "LazyFrame": frame.lazy(), "pandas": _pandas(frame, "hour", "cost", "age")}
    figures = []
    for accounting, delta in (("basic", 0), ("gdp", 1e-6)):
        for library, given in frames.items():
            ledger = dpf.Ledger(epsilon=PLENTY, delta=delta, checks=False)
            for name, action in _small(given, ledger).items():
                taken = [_milliseconds(action) for _ in range(SMALL_CALLS)]
                words = f"{name}, {library}, {accounting}"
                figures.append(_figure("small", words, taken, "ms", SMALL_ROWS, AIMS["small"]))
    return figures


def _small(frame: Any, ledger: dpf.Ledger) -> dict[str, Action]:
    return {
        "count + sum + mean by 3 keys": _by_keys(frame, ledger, "hour", keys=[6, 12, 18]),
        "histogram of 20 bins": lambda: frame.dp.histogram(
            "cost", bins=20, range=COST_BOUNDS, epsilon=1.0, ledger=ledger
        ),
    }


def imports() -> list[Figure]:
    """Return milliseconds of ``import dpframe`` and ``import polars`` in new processes, and what dpframe loads."""
    times: dict[str, list[float]] = {"dpframe": [], "polars": []}
    for _ in range(IMPORT_RUNS):
        for module, taken in times.items():
            taken.append(float(_in_fresh_process(_TIMED_IMPORT.format(module=module))) * 1e3)
    pairs = [ours / plain for ours, plain in zip(times["dpframe"], times["polars"], strict=True)]
    ours, plain = (statistics.median(taken) for taken in times.values())
    words = "import dpframe / import polars"
    figure = _figure("import", words, pairs, "ratio", None, None, ours, {"polars": plain}, "polars")
    loaded = _in_fresh_process(f"import sys, dpframe; print([m for m in {HEAVY_MODULES} if m in sys.modules])")
    count = [float(loaded.count("'") // 2)]
    return [figure, _figure("import", f"heavy modules loaded: {loaded}", count, "of 3", None, 0.0)]


_TIMED_IMPORT = "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def _in_fresh_process(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


SIZED = {
    "row level": row_level,
    "histogram": histogram,
    "grid": grid,
    "user level": user_level,
    "fair": fair,
    "other statistics": other_statistics,
}
UNSIZED = {"small releases": small_releases, "import": imports}

if __name__ == "__main__":
    main()
