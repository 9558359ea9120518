"""A tour of dpframe: private statistics of a real survey, their cost, their accuracy, and a refused query.

Run it with ``python3.11 dev.py demo``, or with ``python examples/demo.py`` where dpframe[plot], pandas and
statsmodels are installed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import ArrayLike

import dpframe as dpf

OUTPUT = Path("demo_output")
AGES = list(range(15, 50, 5))
YEARS = [0, 2, 4, 8, 11, 15, 20, 25]
RELIGIOUS = {1.0: "not", 2.0: "mildly", 3.0: "fairly", 4.0: "strongly"}


def main() -> None:
    """Load the data, preview a release, release statistics, look at the ledger, and trigger a refusal."""
    survey = load()
    ledger = dpf.Ledger(epsilon=1.0)
    heading("2. A ledger: who is protected, and how much may be spent on them")
    print(ledger)

    heading("3. Preview: what would a histogram of age cost, and how large would its error be?")
    with ledger:
        preview = survey.dp.preview.histogram("age", bins=AGES)
    print(preview)
    print("\nA preview reads no row and spends nothing.")
    print("Epsilon 0.2 is enough here: there are thousands of rows, and errors of about fifteen.")

    with ledger:
        ages = survey.dp.histogram("age", bins=AGES, epsilon=0.2, label="Respondents by age")
        groups = survey.dp.group_by("religious", keys=list(RELIGIOUS.values())).agg(
            n=dpf.count(),
            children=dpf.sum("children", bounds=(0, 6)),
            had_affair=dpf.mean("had_affair", bounds=(0, 1)),
            epsilon=0.5,
            label="Respondents by how religious they are",
        )
        grid = survey.dp.histogram(
            ["age", "yrs_married"], bins=[AGES, YEARS], epsilon=0.2, label="Respondents by age and years of marriage"
        )

    show_histogram(survey, ages)
    show_groups(survey, groups)
    show_grid(survey, grid)

    heading("7. The ledger remembers")
    print(ledger)
    print()
    print(ledger.to_frame("pandas")[["label", "epsilon"]].to_string(index=False))

    heading("8. A refusal")
    print("survey.dp.count(epsilon=0.5, ledger=ledger) raises, before any row is read:\n")
    try:
        survey.dp.count(epsilon=0.5, ledger=ledger)
    except dpf.BudgetExceeded as refusal:
        print(f"BudgetExceeded: {refusal}")

    draw({"preview": preview, "age": ages.dp, "religious": groups.dp, "age_and_marriage": grid.dp})


def load() -> pd.DataFrame:
    """Load the survey, one row per person, and replace numeric codes by readable labels."""
    survey = sm.datasets.fair.load_pandas().data
    survey["religious"] = survey["religious"].map(RELIGIOUS)
    survey["had_affair"] = survey["affairs"] > 0
    heading("1. The data: a survey of 1974 about marriage and affairs (Fair 1978, shipped with statsmodels)")
    print(f"{len(survey):,} rows, one for each person. {', '.join(survey.columns)}.")
    print("These data are public, so this demo may show the true values next to the private ones.")
    print("A real release would never show them.")
    return survey


def show_histogram(survey: pd.DataFrame, ages: pd.DataFrame) -> None:
    """Print the private histogram next to the true one."""
    heading("4. A private histogram of age")
    true, _ = np.histogram(survey["age"], bins=AGES)
    print(ages.to_string(index=False))
    print()
    explain(ages)
    print("count_noisy is the unbiased value; count is the denoised one, which costs no privacy.")
    print("count_error is the half-width of a 95% interval around count_noisy.")
    compare(ages, "count", true, "bins", noisy="count_noisy")


def show_groups(survey: pd.DataFrame, groups: pd.DataFrame) -> None:
    """Print three private statistics of each group next to the true ones."""
    heading("5. A private group-by: a count, a sum and a mean for each group, at one cost")
    shown = ["religious", "n", "n_error", "children", "children_error", "had_affair", "had_affair_error"]
    print(groups[shown].round(3).to_string(index=False))
    print()
    explain(groups)
    print("Two columns are left out here: n_noisy and children_noisy, the unbiased values.")
    true = survey.groupby("religious").agg(
        n=("age", "size"), children=("children", "sum"), had_affair=("had_affair", "mean")
    )
    true = true.loc[groups["religious"]]
    compare(groups, "n", true["n"], "groups", noisy="n_noisy")
    compare(groups, "children", true["children"], "groups", noisy="children_noisy")
    compare(groups, "had_affair", true["had_affair"], "groups", noisy="had_affair")


def show_grid(survey: pd.DataFrame, grid: pd.DataFrame) -> None:
    """Print the two-dimensional histogram as a table."""
    heading("6. A private histogram in two dimensions: age (down) and years married (across)")
    counts = grid.dp.to_numpy("count")
    labels = [f"{low} to {high}" for low, high in pairwise(YEARS)]
    rows = [f"{low} to {high}" for low, high in pairwise(AGES)]
    print(pd.DataFrame(counts.round(1), index=rows, columns=labels).to_string())
    print()
    explain(grid)
    true, _, _ = np.histogram2d(survey["age"], survey["yrs_married"], bins=[AGES, YEARS])
    compare(grid, "count", true.ravel(), "cells", noisy="count_noisy")


def explain(released: pd.DataFrame) -> None:
    """Print the cost of a release and its noise, from its provenance."""
    facts = released.dp.provenance
    noises = sorted({part["noise"] for part in facts["statistics"]})
    print(f"It cost epsilon {facts['cost']['epsilon']:g}, for all {len(released)} rows of this table together.")
    print(f"The noise is {' and '.join(noises)}.")
    for note in facts["notes"]:
        print(f"Note: {note}.")


def compare(released: pd.DataFrame, name: str, true: ArrayLike, cells: str, *, noisy: str) -> None:
    """Compare with the true values, which is fine only for public data, and count how often the interval holds them."""
    true = np.asarray(true, dtype=float)
    inside = np.abs(released[noisy] - true) <= released[f"{name}_error"]
    if len(true) < 10:
        print(f"True {name}, for comparison: {', '.join(f'{value:,.4g}' for value in true)}.")
    print(f"The 95% interval holds the true {name} in {inside.sum()} of {len(true)} {cells}.")


def draw(plots: dict[str, Any]) -> None:
    """Write each chart as a PNG file."""
    heading("9. Charts")
    OUTPUT.mkdir(exist_ok=True)
    for name, plotted in plots.items():
        path = OUTPUT / f"{name}.png"
        plotted.plot().save(path, scale_factor=2)
        print(f"wrote {path}")


def heading(words: str) -> None:
    """Print the heading of a section."""
    print(f"\n{words}\n{'=' * len(words)}")


if __name__ == "__main__":
    main()
