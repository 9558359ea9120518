"""How much denoising gains on the DPBench histograms: squared error relative to no denoising.

Run it from the root of the repository: ``python benchmarks/denoise.py --json denoise.json --chart denoise.svg``.
The histograms are not part of the repository; they are looked for in ``../shared/data/dpbench``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpframe as dpf
from dpframe import denoise, noise

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dpbench"
EPSILONS = (0.01, 0.1, 1.0)
DELTA = 1e-6
BASELINES = ("none", "james-stein", "soft-threshold")

Estimator = Callable[[Any, Any], Any]
ESTIMATORS: dict[str, Estimator] = {
    "none": lambda values, law: values,
    "non-negative": denoise.nonnegative,
    "james-stein": denoise.james_stein,
    "soft-threshold": denoise.soft_threshold,
    "hard-threshold": denoise.hard_threshold,
    "sure-threshold": denoise.sure_threshold,
    "haar": lambda values, law: denoise.haar(values, law, order=True),
    "empirical-bayes": lambda values, law: denoise.empirical_bayes(values, law, nonnegative=True),
    "auto": lambda values, law: denoise.auto(values, law, nonnegative=True, order=True),
}


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds histograms_1d.npz and _2d.npz")
    parser.add_argument("--repeats", type=int, default=10, help="draws of the noise that are averaged")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--chart", type=Path, help="write a chart here (.html, .svg or .png); it needs altair")
    options = parser.parse_args()
    histograms = loaded(options.data)
    if not histograms:
        print(f"No histograms in {options.data}. Get DPBench (Hay et al. 2016) and name its folder with --data.")
        return 1
    rows = [measured(*case, options.repeats) for case in cases(histograms)]
    print(table(rows))
    summary = summed_up(rows)
    print(said(summary))
    if options.json:
        options.json.write_text(json.dumps({"repeats": options.repeats, "rows": rows, "summary": summary}, indent=1))
    if options.chart:
        chart(rows).save(options.chart)
    return 0


def loaded(folder: Path) -> dict[str, Any]:
    """The histograms by name: 4,096 cells, or 256 x 256."""
    files = [folder / f"histograms_{axes}d.npz" for axes in (1, 2)]
    if not all(file.exists() for file in files):
        return {}
    return {name: cells for file in files for name, cells in np.load(file).items()}


def cases(histograms: dict[str, Any]) -> Iterator[tuple[str, Any, float, str, Any]]:
    """Every histogram with every epsilon and noise."""
    for name, truth in histograms.items():
        for epsilon in EPSILONS:
            yield name, truth, epsilon, "Laplace", dpf.Laplace.calibrate(sensitivity=1, epsilon=epsilon)
            law = dpf.Gaussian.calibrate(sensitivity=1, epsilon=epsilon, delta=DELTA)
            yield name, truth, epsilon, "Gaussian", law


def measured(name: str, truth: Any, epsilon: float, kind: str, law: Any, repeats: int) -> dict[str, Any]:
    """Squared error of each estimator over that of the noisy values, both summed over the repeats."""
    errors = dict.fromkeys(ESTIMATORS, 0.0)
    for repeat in range(repeats):
        with noise.insecure_bits(repeat):  # the same noise each time: a benchmark, not a release
            values = law.add_noise(truth).astype(np.float64)
        for estimator, function in ESTIMATORS.items():
            errors[estimator] += float(np.square(function(values, law) - truth).sum())
    relative = {estimator: error / errors["none"] for estimator, error in errors.items()}
    return {"histogram": name, "epsilon": epsilon, "noise": kind, **relative}


def summed_up(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of the summary line."""
    against = [row["auto"] / min(row[name] for name in BASELINES) for row in rows]
    return {
        "auto, geometric mean": mean(row["auto"] for row in rows),
        "auto against the best of none, James-Stein and soft threshold, geometric mean": mean(against),
        "auto, worst": max(row["auto"] for row in rows),
        "auto against that best, worst": max(against),
    }


def mean(figures: Any) -> float:
    """The geometric mean."""
    return math.exp(np.mean([math.log(max(figure, 1e-12)) for figure in figures]))


def said(summary: dict[str, float]) -> str:
    """The summary as one line."""
    return "; ".join(f"{name} {figure:.3f}" for name, figure in summary.items())


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a table of Markdown."""
    names = [name for name in ESTIMATORS if name != "none"]
    lines = ["| histogram | epsilon | noise | " + " | ".join(names) + " |", "|---|---:|---|" + "---:|" * len(names)]
    for row in rows:
        figures = " | ".join(f"{row[name]:.3f}" for name in names)
        lines.append(f"| {row['histogram']} | {row['epsilon']:g} | {row['noise']} | {figures} |")
    lines.append(
        "| geometric mean | | | " + " | ".join(f"{mean(row[name] for row in rows):.3f}" for name in names) + " |"
    )
    return "\n".join(lines)


def chart(rows: list[dict[str, Any]]) -> Any:
    """A point for each estimator, on a logarithmic scale; 1 is no denoising."""
    import altair

    points = [
        {
            "case": f"{row['histogram']}, {row['epsilon']:g}",
            "noise": row["noise"],
            "estimator": name,
            "error": row[name],
        }
        for row in rows
        for name in ("james-stein", "soft-threshold", "haar", "empirical-bayes", "auto")
    ]
    return (
        altair.Chart(altair.Data(values=points))
        .mark_point(filled=True)
        .encode(
            x=altair.X("error:Q", scale=altair.Scale(type="log"), title="squared error / that of no denoising"),
            y=altair.Y("case:N", sort=None, title="histogram, epsilon"),
            color=altair.Color("estimator:N", sort=None),
            shape=altair.Shape("estimator:N", sort=None),
            column=altair.Column("noise:N"),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
