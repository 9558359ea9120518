"""The registry of drills: every program of assurance, with the command lines of a full night and of a quick check.

A drill has one command for each of its parts. Each part is a separate run with its own row, so an interrupted night
continues after the last finished part. `summed` combines the figures of all parts: it adds them up, but takes the
largest of a figure whose name begins with "largest", and the least of one that begins with "least".
`tests/project/test_night.py` fails for a program that no drill runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Commands = tuple[str, ...]
SIZES = ("full", "small")


@dataclass(frozen=True)
class Drill:
    """A drill: its purpose, its commands (the words after ``python -m assurance.``), and the text for its figures."""

    name: str
    finds: str  # the faults that it looks for
    found: str  # a format of the figures that the last line of the program names
    full: Commands
    small: Commands
    hours: float = 1.0  # time limit of a part
    needs: str = ""  # "postgres", "spark" or "strace": what must be installed

    def commands(self, size: str) -> Commands:
        return self.full if size == "full" else self.small

    def __post_init__(self) -> None:
        assert self.full, self.name
        assert self.small, self.name


def summed(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Combine the figures of several parts into those of one run."""
    total: dict[str, float] = {}
    for part in figures:
        for name, value in part.items():
            merge = _MERGES.get(name.partition("_")[0], _added)
            total[name] = merge(total[name], value) if name in total else value
    return total


def _added(one: float, other: float) -> float:
    return one + other


_MERGES: dict[str, Callable[[float, float], float]] = {"largest": max, "least": min}


def program(command: str) -> str:
    """Return the program that a command runs."""
    return re.split(r"\s", command, maxsplit=1)[0]


def _shares(command: str, many: int) -> Commands:
    return tuple(f"{command} --share {place}/{many}" for place in range(many))


_BOUND = "{audits} audits; the largest bound is {largest_bound:.2f} of what was charged"
_UNITS = tuple(
    f"{unit}; {accounting}; {neighbors}"
    for accounting in ("basic", "gdp", "rdp")
    for neighbors in ("add-remove", "replace")
    for unit in ("rows", "people")
)

DRILLS = (
    Drill(
        "record",
        "calls that measure, charge, state or refuse something else than is recorded",
        "{calls} calls, the same as recorded",
        full=("record",),
        small=("record",),
    ),
    Drill(
        "ledger in a file",
        "a release that is free, uncharged, charged twice or answered in two ways; an older copy that is not refused",
        "{rounds:,} rounds of races, copies, kills, interrupts and restores",
        full=("drills --races 300 --copies 150 --kills 300 --interrupts 300 --restores 50 --charges 300",),
        small=("drills --races 20 --copies 5 --kills 20 --interrupts 20 --restores 3 --charges 50",),
    ),
    Drill(
        "ledger on PostgreSQL",
        "the same on a server, which is crashed while processes charge",
        "{rounds:,} rounds of races, kills and crashes of the server",
        full=("drills --races 0 --copies 0 --kills 0 --interrupts 0 --restores 0 --postgres 100 --restarts 20",),
        small=(
            "drills --races 0 --copies 0 --kills 0 --interrupts 0 --restores 0 --charges 20 --postgres 5 --restarts 2",
        ),
        needs="postgres",
    ),
    Drill(
        "loss of power",
        "a ledger that does not open, or lacks what was told, when the power is lost after any call to the system",
        "{disks:,} disks",
        full=tuple(f"power_loss --states 10 --place {place}" for place in ("beside", "apart")),
        small=("power_loss --states 0 --place beside",),
        needs="strace",
    ),
    Drill(
        "killed jobs",
        "a job that is killed and run again: an output in part, two answers, a charge too many",
        "{rounds} kills",
        full=("killed_jobs --rounds 100",),
        small=("killed_jobs --rounds 5",),
    ),
    Drill(
        "killed jobs, PostgreSQL",
        "the same with the ledger on a server",
        "{rounds} kills",
        full=("killed_jobs --rounds 100 --postgresql",),
        small=("killed_jobs --rounds 3 --postgresql",),
        needs="postgres",
    ),
    Drill(
        "calibrations",
        "a scale or a delta below the exact one, evaluated at 40 digits",
        "{compared:,} comparisons; the largest relative difference is {largest_difference:.1e}",
        full=("calibrations --parameters 1000",),
        small=("calibrations --parameters 20",),
    ),
    Drill(
        "accounting",
        "an accounting that differs from dp-accounting by more than rounding and grids do",
        "{compared:,} comparisons",
        full=("accounting --count 1000",),
        small=("accounting --count 20",),
    ),
    Drill(
        "local audit",
        "reports of the local model that let out more than they say",
        _BOUND,
        full=("local_audit --samples 200000",),
        small=("local_audit --samples 5000",),
    ),
    Drill(
        "marginals audit",
        "marginals that let out more than was charged",
        _BOUND,
        full=("marginals_audit --samples 200000",),
        small=("marginals_audit --samples 5000",),
    ),
    Drill(
        "stream audit",
        "streams whose periods together let out more than was charged",
        _BOUND,
        full=("stream_audit --samples 200000",),
        small=("stream_audit --samples 5000",),
    ),
    Drill(
        "keys audit",
        "unknown groups that a person alone shows more often than delta says",
        _BOUND,
        full=("keys_audit --people 1000000",),
        small=("keys_audit --people 50000",),
    ),
    Drill(
        "fuzz",
        "neighboring frames of odd values: totals beyond the sensitivity, anything seen but noise",
        "{pairs:,} pairs by their exact totals, {seen:,} by their answers",
        full=tuple(f"fuzz --pairs 5000 --seen 500 --seed {seed}" for seed in range(1, 11)),
        small=("fuzz --pairs 200 --seen 20",),
    ),
    Drill(
        "engines",
        "an engine that sums other integers than Polars, of random tables of hard values",
        "{tables:,} tables of five engines together",
        full=tuple(f"engines --tables 10000 --only {name}" for name in ("pandas", "lazy", "dataset", "duckdb", "dask")),
        small=("engines --tables 50 --only pandas lazy dataset duckdb dask",),
        hours=4.0,
    ),
    Drill(
        "Spark",
        "the same of Apache Spark",
        "{tables:,} tables",
        full=("engines --tables 1000 --every 331 --only spark",),
        small=("engines --tables 1 --every 53 --only spark",),
        needs="spark",
    ),
    Drill(
        "intervals of combined results",
        "intervals of computed numbers that hold the truth less often than they say",
        "{intervals:,} intervals of {cases} cases; the least rate is {least_rate:.4f} of 0.95",
        full=("derived_coverage --draws 10000",),
        small=("derived_coverage --draws 1000 --only Laplace",),
        hours=2.0,
    ),
    Drill(
        "intervals of populations",
        "intervals of a population, and tests of equal groups, that err too often (intervals are held at 0.93)",
        "{samples:,} samples for {rates} rates; the least rate is {least_rate:.3f}",
        full=("population_coverage",),
        small=("population_coverage --groups 200 --calls 1 --tables 50 --only 300",),
        hours=2.0,
    ),
    Drill(
        "suggested bounds",
        "intervals of suggested bounds that do not hold; bounds with twice the error of the best ones",
        "{releases:,} releases of {cases} cases",
        full=("suggested_bounds",),
        small=("suggested_bounds --quick --only ages",),
        hours=2.0,
    ),
    Drill(
        "audit that must object",
        "whether audits see noise of half its scale",
        "{flagged} of {audits} audits object to it",
        full=("audit --samples 20000 --engines Polars --seed-bug 0.5",),
        small=("audit --samples 5000 --engines Polars --noises Laplace --only count --seed-bug 0.5",),
    ),
    Drill(
        "audit",
        "releases on neighboring frames that tell more than was charged; anything but noise that differs",
        _BOUND,
        full=_shares("audit --samples 200000", 24),
        small=("audit --samples 2000 --share 0/200",),
        hours=2.0,
    ),
    Drill(
        "charges, one path",
        "a charge below the exact curve of what was drawn, or far above it, on each release path",
        "{rows} rows; the largest exact delta of a full ledger is {largest_delta:.2g} of what was promised",
        full=_shares("charges --part rows", 20),
        small=('charges --part rows --only "count; pure; rows; basic"',),
        hours=2.0,
    ),
    Drill(
        "charges, mixtures",
        "the same of ledgers that random entries of all paths fill",
        "{mixtures:,} mixtures; the largest exact delta is {largest_delta:.2g} of what was promised",
        full=tuple(f'charges --part mixtures --mixtures 200 --only "{unit}"' for unit in _UNITS),
        small=('charges --part mixtures --mixtures 2 --only "rows; gdp; replace"',),
        hours=2.0,
    ),
    Drill(
        "slow tests",
        "searches of neighbors, injected faults, kills, laws of noise, attacks of the register",
        "{tests:,} tests pass, {skipped} are skipped",
        full=_shares("slow_tests", 21),
        small=("slow_tests --share 0/21 tests/noise tests/queries",),
    ),
    Drill(
        "slow tests, Spark",
        "what asks Spark",
        "{tests:,} tests pass, {skipped} are skipped",
        full=("slow_tests --spark",),
        small=("slow_tests --spark --share 0/21 tests/queries",),
        needs="spark",
    ),
    Drill(
        "mutants",
        "a seeded bug that the tests do not see",
        "{bugs} seeded bugs, each caught",
        full=_shares("mutants", 40),
        small=("mutants --skip-sound --share 0/200",),
        hours=2.0,
    ),
)
