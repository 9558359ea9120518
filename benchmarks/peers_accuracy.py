"""Compare the accuracy of dpframe, OpenDP and diffprivlib: quantiles, variances, top-k, unknown groups.

Run it from the root of the repository, with both installed (``pip install opendp diffprivlib``):
``python -m benchmarks.peers_accuracy``. A missing peer is named and left out. The tables are not part of the
repository: they are read from ``../shared/data``. Every method gets the same epsilon, delta, bounds and neighbors; any
further facts that a peer gets are stated. Figures are means of repeated releases with their standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from benchmarks import peers

DATA = Path("../shared/data")
DELTA = 1e-6
KEYS_DELTA = 1e-5
QUANTILES = {"median": (0.5,), "quartiles": (0.25, 0.5, 0.75), "deciles": tuple(place / 10 for place in range(1, 10))}
VISITS = "german_health_1984_88/rwm5yr.csv"  # at most 5 rows per person, one for each of five years


@dataclass(frozen=True)
class Column:
    """A real column with the bounds that every method gets."""

    name: str
    file: str
    column: str
    bounds: tuple[int, int]
    unit: str | None = None
    rows: int = 1  # rows per unit

    def frame(self, data: Path) -> pl.DataFrame:
        """Read the table without missing values."""
        names = [self.column] + ([self.unit] if self.unit else [])
        return read(data / self.file).select(names).drop_nulls()

    @property
    def candidates(self) -> list[float]:
        """The default candidates of dpframe for a quantile."""
        return list(dpf.median(self.column, bounds=self.bounds).candidates)

    def bounded(self) -> dict[str, Any]:
        """The contribution bounds of a call."""
        return {"max_rows": self.rows} if self.unit else {}


COLUMNS = (
    Column("Adult, age", "adult/adult.csv", "age", (0, 120)),
    Column("Adult, hours a week", "adult/adult.csv", "hours_per_week", (0, 100)),
    Column("Credit cards, limit", "credit_default/credit_default.csv", "LIMIT_BAL", (0, 1_000_000)),
    Column("CPS 1988, wage", "cps_wages_1988/cps1988.csv", "wage", (0, 3_000)),
    Column("California, house value", "california_housing/housing.csv", "median_house_value", (0, 500_000)),
    Column("Medicare, days of stay", "medpar_hospital_stays/medpar.csv", "los", (0, 120)),
    Column("Taxis, fare", "nyc_taxis_2019/taxis.csv", "fare", (0, 150)),
    Column("German health, visits, by person", VISITS, "docvis", (0, 121), "id", 5),
)
KEYS = (  # table, key, privacy unit
    ("Online retail, rows", "online_retail/online_retail.parquet", "description", None),
    ("Taxis, zones, rows", "nyc_taxis_2019/taxis.csv", "pickup_zone", None),
    ("Reddit, rows", "reddit_ngrams/ngrams.parquet", "ngram", None),
    ("Reddit, by user", "reddit_ngrams/ngrams.parquet", "ngram", "user_id"),
    ("Online retail, by customer", "online_retail/online_retail.parquet", "description", "customer_id"),
)
PAIRS = (1, 4, 25, 100)  # limits on the keys per unit that are tried for a peer: the best one is shown


@dataclass(frozen=True)
class Figure:
    """The result of one method on one case."""

    case: str
    method: str
    mean: float
    error: float

    @classmethod
    def of(cls, case: str, method: str, values: Iterable[float]) -> Figure:
        """Return the mean of repeated releases, and its standard error."""
        found = np.fromiter(values, dtype=np.float64)
        found = found[np.isfinite(found)]
        if found.size < 2:
            return cls(case, method, math.nan, math.nan)
        return cls(case, method, float(found.mean()), float(found.std(ddof=1) / np.sqrt(found.size)))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--repeats", type=int, default=100, help="releases of each method")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", choices=sorted(PARTS), nargs="+", default=list(PARTS), help="some of the parts")
    options = parser.parse_args()
    missing = [name for name in peers.NAMES if not peers.has(name)]
    if len(missing) == len(peers.NAMES):
        print("Neither OpenDP nor diffprivlib is installed: pip install opendp diffprivlib 'scikit-learn<1.7'")
        return 0
    if not (options.data / VISITS).exists():
        print(f"No {VISITS} in {options.data}. Name the folder with --data.")
        return 0
    warnings.simplefilter("ignore")  # peers warn at every call about data beyond the bounds
    for name in missing:
        print(f"{name} is not installed, and left out")
    for name in options.only:
        words, measure = PARTS[name]
        print(f"\n### {words}, epsilon {options.epsilon:g}\n", flush=True)
        show(measure(options.data, options.epsilon, options.repeats))
    return 0


def show(figures: Iterable[Figure]) -> None:
    """Print a row for each case, a column for each method."""
    table: dict[str, dict[str, str]] = {}
    for one in figures:
        words = "fails" if math.isnan(one.mean) else f"{one.mean:.3g} ± {one.error:.2g}"
        print(f"{one.case}, {one.method}: {words}", file=sys.stderr, flush=True)
        table.setdefault(one.case, {})[one.method] = words
    methods = list(dict.fromkeys(method for row in table.values() for method in row))
    print("| | " + " | ".join(methods) + " |")
    print("|---|" + "---:|" * len(methods))
    for case, row in table.items():
        print(f"| {case} | " + " | ".join(row.get(method, "") for method in methods) + " |", flush=True)


# Quantiles


def quantiles(data: Path, epsilon: float, repeats: int) -> Iterator[Figure]:
    """Measure the mean distance in ranks from the quantile of the clipped values, over all quantiles of a release.

    The quantile is that of values rounded to the nearest candidates, and answers are rounded as well. Peers that choose
    among candidates get rounded values; diffprivlib, which has no candidates, gets the values as they are.
    """
    for column in COLUMNS:
        frame = column.frame(data)
        exact = frame[column.column].cast(pl.Float64).clip(*column.bounds).to_numpy()
        candidates = np.array(column.candidates)
        values = np.sort(nearest(candidates, exact))
        for name, q in QUANTILES.items():
            for method, release in quantile_methods(column, frame, exact, values, q, epsilon):
                found = (nearest(candidates, np.asarray(release())) for _ in range(repeats))
                away = (ranks_away(values, one, np.array(q)).mean() for one in found)
                yield Figure.of(f"{column.name}: {name}", method, away)


def nearest(candidates: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the nearest candidate to each value, the upper one if tied, as in dpframe; NaN stays NaN."""
    middles = (candidates[1:] + candidates[:-1]) / 2
    return np.where(np.isfinite(found), candidates[np.searchsorted(middles, found, side="right")], np.nan)


def ranks_away(ordered: np.ndarray, found: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return how many values lie between an answer and the q-quantile; 0 where the answer is a q-quantile."""
    if not np.isfinite(found).all():
        return np.full(found.size, np.nan)
    target = q * ordered.size
    below, up_to = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
    return np.maximum(0.0, np.maximum(below - target, target - up_to))


def quantile_methods(
    column: Column, frame: pl.DataFrame, exact: np.ndarray, values: np.ndarray, q: Sequence[float], epsilon: float
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a function for each method that releases all quantiles."""
    words = {"bounds": column.bounds, **column.bounded()}

    def ours(**more: Any) -> Callable[[], Any]:
        ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", unit=column.unit, checks=False)

        def release() -> Any:
            asked = {"epsilon": epsilon, "ledger": ledger, **words, **more}
            return frame.dp.quantile(column.column, q=list(q), **asked)[0, ::4].row(0)

        return release

    yield "dpframe", ours()
    yield f"dpframe, delta {DELTA:g}", ours(delta=DELTA)
    if len(q) == 1:
        ledger = dpf.Ledger(epsilon=1e9, unit=column.unit, checks=False)
        asked = {"epsilon": epsilon, "ledger": ledger, "mechanism": "choice", **words}
        yield "dpframe, choice", lambda: [frame.dp.quantile(column.column, q=q[0], **asked)[0, 0]]
    if peers.has("opendp"):
        given = column.candidates, q, column.rows, epsilon
        yield "OpenDP, choices", peers.opendp_choices(values, *given)
        yield f"OpenDP, choices, delta {DELTA:g}", peers.opendp_choices(values, *given, delta=DELTA)
        yield "OpenDP, tree", peers.opendp_tree(values, *given)
    if peers.has("diffprivlib") and column.unit is None:  # diffprivlib protects rows only
        yield "diffprivlib", peers.diffprivlib_quantiles(exact, column.bounds, q, epsilon)


# Variances


def variances(data: Path, epsilon: float, repeats: int) -> Iterator[Figure]:
    """Measure the mean distance from the variance of the clipped values, in percent of it."""
    for column in COLUMNS:
        frame = column.frame(data)
        values = frame[column.column].cast(pl.Float64).clip(*column.bounds).to_numpy()
        truth = float(values.var(ddof=1))
        for method, release in variance_methods(column, frame, values, epsilon):
            off = (100.0 * abs(release() - truth) / truth for _ in range(repeats))
            yield Figure.of(column.name, method, off)


def variance_methods(
    column: Column, frame: pl.DataFrame, values: np.ndarray, epsilon: float
) -> Iterator[tuple[str, Callable[[], float]]]:
    """Peers take the number of rows as public and protect against replacing a row; dpframe counts the rows."""

    def ours(neighbors: str, **more: Any) -> Callable[[], float]:
        unit = dpf.PrivacyUnit(column=column.unit, neighbors=neighbors)
        ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", unit=unit, checks=False)
        words = {"bounds": column.bounds, "epsilon": epsilon, "ledger": ledger, **column.bounded(), **more}
        return lambda: float(frame.dp.variance(column.column, **words)[0, 0])

    yield "dpframe, add-remove", ours("add-remove")
    yield "dpframe, replace", ours("replace")
    yield f"dpframe, add-remove, delta {DELTA:g}", ours("add-remove", delta=DELTA)
    if peers.has("opendp"):
        yield "OpenDP, given n", peers.opendp_variance(values, column.bounds, column.rows, epsilon)
    if peers.has("diffprivlib") and column.unit is None:
        yield "diffprivlib, given n", peers.diffprivlib_variance(values, column.bounds, epsilon)


# The most common values


def most_common(data: Path, epsilon: float, repeats: int) -> Iterator[Figure]:
    """Measure which part of the true ten most common values is found among declared categories."""
    for name, file, key, owner in KEYS:
        frame = pairs_of(read(data / file), key, owner)
        counts = frame.group_by(key).len().sort("len", key, descending=[True, False])
        for part in (epsilon / 10, epsilon):
            case = f"{name}: {len(counts):,} values, epsilon {part:g}"
            for method, release in top_methods(frame, counts, key, owner, part):
                overlap = (len(set(release()) & set(counts[key].head(10))) / 10 for _ in range(max(20, repeats // 5)))
                yield Figure.of(case, method, overlap)


def top_methods(
    frame: pl.DataFrame, counts: pl.DataFrame, key: str, owner: str | None, epsilon: float
) -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """Yield a function for each method; a unit counts once in each of its categories, without a limit for the peers."""
    ledger = dpf.Ledger(epsilon=1e9, unit=owner, checks=False)
    most = {"max_rows": 1, "max_groups": 100} if owner else {}
    categories = counts[key].sort().to_list()  # the order reveals nothing about the counts
    words = {"k": 10, "categories": categories, "epsilon": epsilon, "ledger": ledger, **most}

    def ours() -> Sequence[Any]:
        return frame.dp.top_k(key, **words)[key].to_list()

    yield "dpframe", ours
    numbers = counts.sort(key)["len"].to_list()
    if peers.has("opendp"):
        places = peers.opendp_top(numbers, 10, epsilon)
        yield "OpenDP", lambda: [categories[place] for place in places()]
    if peers.has("diffprivlib") and owner is None:
        places_of_counts = peers.diffprivlib_top(numbers, 10, epsilon)
        yield "diffprivlib, counts sorted", lambda: [categories[place] for place in places_of_counts()]


# Unknown groups


def keys_found(data: Path, epsilon: float, repeats: int) -> Iterator[Figure]:
    """Measure how many keys are shown."""
    if not hasattr(dpf, "discover"):
        print("dpframe finds no keys in this version, and is left out\n")
    for name, file, key, owner in KEYS:
        frame = pairs_of(read(data / file), key, owner)
        case = f"{name}: {frame[key].n_unique():,} keys"
        for method, release in key_methods(frame, key, owner, epsilon):
            yield Figure.of(case, method, (float(release()) for _ in range(max(10, repeats // 10))))


def key_methods(
    frame: pl.DataFrame, key: str, owner: str | None, epsilon: float
) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield a function for each method; for peers, the best limit on keys per unit is used, for dpframe a fixed one."""
    if hasattr(dpf, "discover"):
        for words_of, part in (("dpframe, pure", None), ("dpframe, Gaussian", 0.5)):
            yield words_of, our_keys(frame, key, owner, epsilon, part)
    if peers.has("opendp"):
        kept = PAIRS if owner else (1,)
        for words_of, delta_of in (("OpenDP, Laplace", 1.0), ("OpenDP, Gaussian", 0.5)):
            each = [peers.opendp_keys(frame, key, owner, one, epsilon, KEYS_DELTA, delta_of) for one in kept]
            best = max(each, key=lambda one: float(np.mean([one() for _ in range(3)])))
            yield words_of, best


def our_keys(frame: pl.DataFrame, key: str, owner: str | None, epsilon: float, part: float | None) -> Callable[[], int]:
    """Return the number of keys that dpframe finds; `part` of delta is for Gaussian noise, the rest for the keys."""
    most = {"max_groups": 20} if owner else {}
    noise = {} if part is None else {"delta": KEYS_DELTA * part}
    ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", unit=owner, checks=False)
    words = {"epsilon": epsilon, "ledger": ledger, **noise, **most}
    found = dpf.discover(delta=KEYS_DELTA * (1.0 - (part or 0.0)), max_keys=1_000 if owner else 1)
    return lambda: len(frame.dp.group_by(key, keys=found).n_units(**words))


def pairs_of(frame: pl.DataFrame, key: str, owner: str | None) -> pl.DataFrame:
    """Return the rows that have a key; for units, each pair of unit and key once."""
    if owner is None:
        return frame.select(key).drop_nulls()
    return frame.select(owner, key).drop_nulls().unique(maintain_order=True)


def read(path: Path) -> pl.DataFrame:
    """Read a table."""
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)


PARTS = {
    "quantiles": ("Quantiles: mean distance in ranks", quantiles),
    "variances": ("Variances: mean distance, in percent", variances),
    "top": ("The ten most common values: part that is found", most_common),
    "keys": (f"Keys: how many are found, delta {KEYS_DELTA:g}", keys_found),
}

if __name__ == "__main__":
    sys.exit(main())
