"""Liu (2018), section 4: the counts of the nonempty cells of the Adult data, and support vector machines on them.

Run it from the root of the repository: ``python benchmarks/papers/liu_adult.py --repeats 500``, which takes an hour or
so. --machine-repeats says how many of the repeats also train a linear machine; one in 50 of these trains a radial one,
which is slow. The data are not part of the repository: --data names the folder that holds adult. The machines are
those of scikit-learn: pip install 'dpframe[benchmarks]'.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from counts import SETTINGS, Setting, at_every_delta, bounded, chart, distances, summed_up, table
from reporting import Row, markdown, options, progress, written

from dpframe import noise

NUMBERS = {"age": 15, "hours_per_week": 12, "fnlwgt": 20, "capital_gain": 10, "capital_loss": 10}  # equal bins of each
WORDS = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
LABEL, RICH = "income", ">50K"
TOP_CODED = 99_999
TRAINED = 20_009
RADIAL_ONE_IN = 50  # machines


@dataclass(frozen=True)
class Adult:
    """The nonempty cells of the training rows, their counts, and the testing rows; cells are rows of features."""

    cells: Any
    labels: Any
    counts: Any
    test: Any
    answers: Any

    @cached_property
    def inputs(self) -> tuple[Any, Any]:
        """Cells and testing rows with numbers standardized, as `svm` of the R package e1071 does; words are 0 or 1."""
        size, weights = len(NUMBERS), self.counts / self.counts.sum()
        middle = weights @ self.cells[:, :size]
        spread = np.sqrt(weights @ (self.cells[:, :size] - middle) ** 2)
        scaled = [np.hstack([(rows[:, :size] - middle) / spread, rows[:, size:]]) for rows in (self.cells, self.test)]
        return scaled[0], scaled[1]

    def accuracy(self, machine: Any, counts: Any) -> float:
        """The share of testing rows that a machine gets right, trained on the cells with these counts as weights."""
        cells, test = self.inputs
        kept = counts > 0.0
        machine.fit(cells[kept], self.labels[kept], sample_weight=counts[kept])
        return float(machine.score(test, self.answers))


def main() -> int:
    """Measure, print, write."""
    chosen = options(__doc__, repeats=500, data="adult", machine_repeats=50)
    adult = read(chosen.data)
    if adult is None:
        print(f"No adult.csv in {chosen.data / 'adult'}. Name the folder of adult with --data.")
        return 1
    work = (measured(adult, setting, chosen.repeats, chosen.machine_repeats) for setting in SETTINGS)
    rows = list(progress(work, len(SETTINGS)))
    controls = controlled(adult)
    fields = {"l1": "l1 distance", "kl": "KL divergence", "accuracy": "accuracy"}
    titles = fields | {"radial": "accuracy of the radial machine"}
    tables = [f"{title}:\n\n" + markdown(table(rows, field)) for field, title in titles.items()]
    head = f"{adult.counts.size:,} nonempty cells of {adult.counts.sum():,} rows.\n\n" + markdown(controls)
    written("liu_adult", at_every_delta(rows), "\n\n".join([head, *tables]), chart(rows, fields), chosen.out)
    return 0


def rows_of(folder: Path) -> pl.DataFrame | None:
    """The paper's 30,014 rows: the training file without missing values and without the top-coded capital gain."""
    file = folder / "adult" / "adult.csv"
    if not file.exists():
        return None
    return pl.read_csv(file).filter(pl.col("split") == "train", pl.col("capital_gain") != TOP_CODED).drop_nulls()


def read(folder: Path, seed: int = 1) -> Adult | None:
    """The rows, split 2 to 1 at random, in the cells of 14 attributes."""
    rows = rows_of(folder)
    if rows is None:
        return None
    features = np.hstack([binned(rows), rows.select(WORDS).to_dummies().to_numpy()]).astype(np.float64)
    labels = (rows[LABEL] == RICH).to_numpy()
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:TRAINED], order[TRAINED:]
    together = np.hstack([features, labels[:, None]])[train]
    cells, counts = np.unique(together, axis=0, return_counts=True)
    return Adult(cells[:, :-1], cells[:, -1].astype(bool), counts, features[test], labels[test])


def binned(rows: pl.DataFrame) -> Any:
    """The numbers of the bins of the columns of numbers."""
    columns = []
    for name, bins in NUMBERS.items():
        values = rows[name].to_numpy()
        edges = np.linspace(values.min(), values.max(), bins + 1)
        columns.append(np.digitize(values, edges[1:-1]))
    return np.stack(columns, axis=1)


def measured(adult: Adult, setting: Setting, repeats: int, machine_repeats: int) -> Row:
    """Distances of sanitized counts, and the accuracy of machines that were trained on them."""
    law, size = setting.law(), int(adult.counts.sum())
    found: list[dict[str, float]] = []
    with noise.insecure_bits(1):  # the same noise each time: a benchmark, not a release
        for repeat in range(repeats):
            counts = bounded(law.add_noise(adult.counts).astype(np.float64), size)
            one = distances(counts, adult.counts)
            if repeat < machine_repeats:
                one["accuracy"] = adult.accuracy(linear(), counts)
            if repeat * RADIAL_ONE_IN < machine_repeats:
                one["radial"] = adult.accuracy(radial(), counts)
            found.append(one)
    names = list(found[0])
    return summed_up(setting, {name: np.array([one[name] for one in found if name in one]) for name in names})


def controlled(adult: Adult) -> list[Row]:
    """Accuracies without noise, and with weights that know nothing of the counts."""
    exact = adult.counts.astype(np.float64)
    uniform, half = np.ones_like(exact), np.random.default_rng(1).random(exact.size) < 0.5
    cases = {"the counts themselves": exact, "every nonempty cell counted once": uniform}
    cases["a random half of the nonempty cells, counted once"] = half.astype(np.float64)
    rows = [
        {"trained on": name, "linear": adult.accuracy(linear(), counts), "radial": adult.accuracy(radial(), counts)}
        for name, counts in cases.items()
    ]
    most = float(max(adult.answers.mean(), 1.0 - adult.answers.mean()))
    return [*rows, {"trained on": "nothing: always the more frequent answer", "linear": most, "radial": most}]


def linear() -> Any:
    """A linear support vector machine."""
    from sklearn.svm import LinearSVC

    return LinearSVC()


def radial() -> Any:
    """The default of e1071's `svm`: a radial kernel with gamma one over the number of features, cost 1."""
    from sklearn.svm import SVC

    return SVC(gamma="auto", cache_size=500)


if __name__ == "__main__":
    sys.exit(main())
