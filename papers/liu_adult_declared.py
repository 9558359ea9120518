"""Liu's experiment on the Adult data, with cells that are declared and not taken from the data.

`df.dp.group_by(...).count` releases all 3,072 cells of four attributes and the income, including the empty ones; a
linear support vector machine is trained on each release. Run it from the root of the repository: ``python -m
papers.liu_adult_declared --repeats 20``. It needs the data and scikit-learn, as liu_machines.py does.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe import noise
from papers.counts import NOISES, Setting
from papers.liu_adult import LABEL, RICH, TRAINED, rows_of
from papers.liu_machines import linear
from papers.reporting import Row, color, logarithmic, markdown, options, panel, pivoted, progress, written

EPSILONS, DELTA = (0.05, 0.1, 0.5, 1.0, 2.0), 0.01
KEYS: dict[str, list[Any]] = {  # from the code book of the census, not from the rows
    "age_decade": list(range(1, 9)),
    "education_num": list(range(1, 17)),
    "relationship": ["Husband", "Wife", "Own-child", "Not-in-family", "Other-relative", "Unmarried"],
    "gained": [False, True],
    LABEL: ["<=50K", RICH],
}


def main() -> int:
    """Measure the accuracy, print and write it."""
    chosen = options(__doc__, repeats=20, data="adult")
    rows = rows_of(chosen.data)
    if rows is None:
        print(f"No adult.csv in {chosen.data / 'adult'}. Name the folder of adult with --data.")
        return 1
    train, test = split(rows)
    work = list(product(EPSILONS, NOISES))
    found = list(
        progress((measured(train, test, Setting(name, at, DELTA), chosen.repeats) for at, name in work), len(work))
    )
    exact = measured(train, test, Setting("Laplace", 1e6, DELTA), 1)["accuracy"]
    tables = [f"Accuracy, means of {chosen.repeats} releases, delta {DELTA}; {exact:.4f} without noise:"]
    tables.append(markdown(pivoted(found, ["epsilon"], "noise", "said")))
    written("liu_adult_declared", found, "\n\n".join(tables), chart(found), chosen.out)
    return 0


def split(rows: pl.DataFrame, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return training and testing rows, with two columns that are computed row by row."""
    decade = (pl.col("age") // 10).clip(1, 8).alias("age_decade")
    rows = rows.select(
        *(name for name in KEYS if name in rows.columns), decade, (pl.col("capital_gain") > 0).alias("gained")
    )
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order[:TRAINED]], rows[order[TRAINED:]]


def measured(train: pl.DataFrame, test: pl.DataFrame, setting: Setting, repeats: int) -> Row:
    """Return the mean accuracy of machines, each trained on a separate release."""
    with noise.insecure_bits(1):  # the same noise each time: a benchmark, not a release
        found = [accuracy(released(train, setting), test) for _ in range(repeats)]
    mean, spread = float(np.mean(found)), float(np.std(found))
    row = {"noise": setting.noise, "epsilon": setting.epsilon, "delta": setting.delta, "accuracy": mean}
    return row | {"accuracy sd": spread, "said": f"{mean:.4f} ({spread:.2g})"}


def released(train: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Release the counts of the cells, with the default denoising of a group-by."""
    law = setting.law()
    price: dict[str, Any] = {"epsilon": setting.epsilon}
    if setting.noise != "Laplace":
        price |= {"delta": setting.delta, "mechanism": lambda sensitivity, loss: law}
    ledger = dpf.Ledger(epsilon=setting.epsilon, delta=price.get("delta", 0.0), accounting="basic")
    counted: pl.DataFrame = train.dp.group_by(*KEYS, keys=KEYS).count(ledger=ledger, **price)
    return counted


def accuracy(cells: pl.DataFrame, test: pl.DataFrame) -> float:
    """Return the accuracy on the testing rows; if no rich cell has a positive count, predict that no one is rich."""
    kept = cells.filter(pl.col("count") > 0.0)
    if kept[LABEL].n_unique() < 2:
        return float((test[LABEL] != RICH).mean())
    machine = linear()
    machine.fit(inputs(kept), kept[LABEL] == RICH, sample_weight=kept["count"].to_numpy())
    return float(machine.score(inputs(test), test[LABEL] == RICH))


def inputs(rows: pl.DataFrame) -> Any:
    """Return a column of 0 and 1 for each declared key."""
    columns = [(rows[name] == key).to_numpy() for name, keys in KEYS.items() if name != LABEL for key in keys]
    return np.stack(columns, axis=1).astype(np.float64)


def chart(rows: list[Row]) -> object:
    """Draw accuracy against epsilon, a line for each noise."""
    import altair

    scale = altair.Scale(zero=False)
    return panel(
        rows,
        logarithmic("epsilon", "epsilon", "x"),
        altair.Y("accuracy:Q", scale=scale),
        color("noise"),
        "declared cells, delta 0.01",
    )


if __name__ == "__main__":
    sys.exit(main())
