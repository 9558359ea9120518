"""Liu (2018), section 4: the counts of the nonempty cells of the Adult data.

Run it from the root of the repository: ``python -m papers.liu_adult --repeats 500``. The data are not part
of the repository: --data names the folder that holds adult.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpframe import noise
from papers.counts import SETTINGS, Setting, bounded, chart, distances, summed_up, table
from papers.reporting import Row, markdown, options, progress, written

NUMBERS = {"age": 15, "hours_per_week": 12, "fnlwgt": 20, "capital_gain": 10, "capital_loss": 10}  # numbers of bins
WORDS = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
LABEL, RICH = "income", ">50K"
TOP_CODED = 99_999
TRAINED = 20_009
BLOCK = 50  # repeats that are drawn at once


@dataclass(frozen=True)
class Adult:
    """Counts of the nonempty cells of the training rows, and the testing rows; a row of `cells` holds the features."""

    cells: Any
    labels: Any
    counts: Any
    test: Any
    answers: Any

    @cached_property
    def inputs(self) -> tuple[Any, Any]:
        """Cells and testing rows, scaled as by `svm` of the R package e1071; categories are columns of 0 and 1."""
        size, weights = len(NUMBERS), self.counts / self.counts.sum()
        middle = weights @ self.cells[:, :size]
        spread = np.sqrt(weights @ (self.cells[:, :size] - middle) ** 2)
        scaled = [np.hstack([(rows[:, :size] - middle) / spread, rows[:, size:]]) for rows in (self.cells, self.test)]
        return scaled[0], scaled[1]

    def accuracy(self, machine: Any, counts: Any) -> float:
        """Return the accuracy on the testing rows of a machine trained on the cells, with these counts as weights."""
        cells, test = self.inputs
        kept = counts > 0.0
        machine.fit(cells[kept], self.labels[kept], sample_weight=counts[kept])
        return float(machine.score(test, self.answers))


def main() -> int:
    """Measure the distances, print and write them."""
    chosen = options(__doc__, repeats=500, data="adult")
    adult = read(chosen.data)
    if adult is None:
        print(f"No adult.csv in {chosen.data / 'adult'}. Name the folder of adult with --data.")
        return 1
    rows = list(progress((measured(adult, setting, chosen.repeats) for setting in SETTINGS), len(SETTINGS)))
    fields = {"l1": "l1 distance", "kl": "KL divergence"}
    tables = [f"{adult.counts.size:,} nonempty cells of {adult.counts.sum():,} rows."]
    tables += [f"{title}:\n\n" + markdown(table(rows, field)) for field, title in fields.items()]
    written("liu_adult", rows, "\n\n".join(tables), chart(rows, fields), chosen.out)
    return 0


def rows_of(folder: Path) -> pl.DataFrame | None:
    """Return the paper's 30,014 rows: the training file without missing values and top-coded capital gains."""
    file = folder / "adult" / "adult.csv"
    if not file.exists():
        return None
    return pl.read_csv(file).filter(pl.col("split") == "train", pl.col("capital_gain") != TOP_CODED).drop_nulls()


def read(folder: Path, seed: int = 1) -> Adult | None:
    """Split the rows 2 to 1 at random and count the cells of 14 attributes."""
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
    """Return the bin number of each value of the numeric columns."""
    columns = []
    for name, bins in NUMBERS.items():
        values = rows[name].to_numpy()
        edges = np.linspace(values.min(), values.max(), bins + 1)
        columns.append(np.digitize(values, edges[1:-1]))
    return np.stack(columns, axis=1)


def measured(adult: Adult, setting: Setting, repeats: int) -> Row:
    """Return the distances of sanitized counts, computed in blocks of repeats."""
    law, size, found = setting.law(), int(adult.counts.sum()), []
    with noise.insecure_bits(1):  # the same noise each time: a benchmark, not a release
        for start in range(0, repeats, BLOCK):
            truth = np.tile(adult.counts, (min(BLOCK, repeats - start), 1))
            found.append(distances(bounded(law.add_noise(truth).astype(np.float64), size), adult.counts))
    return summed_up(setting, {name: np.concatenate([block[name] for block in found]) for name in found[0]})


if __name__ == "__main__":
    sys.exit(main())
