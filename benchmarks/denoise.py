"""Measure the gain of denoising: squared error relative to no denoising, on published, made-up and other histograms.

Run it from the root of the repository: ``python -m benchmarks.denoise --json denoise.json --chart denoise.png``.
The data are not part of the repository: they are read from ``../shared/data``. ``--cases made-up`` needs no data.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpframe as dpf
from benchmarks.denoise_cases import Case, made_up, of_tables, published
from dpframe import denoise, noise

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EPSILONS = (0.01, 0.1, 1.0)
DELTA = 1e-6
DOUBTFUL, AGAIN = 1.01, 20  # if the relative error of `auto` is above 1.01, measure again with 20 times the draws
BASELINES = ("none", "james-stein", "soft-threshold")
KINDS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "dpbench": published,
    "made-up": lambda folder: made_up(),
    "tables": of_tables,
}

Estimator = Callable[[Any, Any, Case], Any]
ESTIMATORS: dict[str, Estimator] = {
    "none": lambda values, law, case: values,
    "non-negative": lambda values, law, case: denoise.nonnegative(values, law) if case.nonnegative else values,
    "james-stein": lambda values, law, case: denoise.james_stein(values, law),
    "soft-threshold": lambda values, law, case: denoise.soft_threshold(values, law),
    "hard-threshold": lambda values, law, case: denoise.hard_threshold(values, law),
    "sure-threshold": lambda values, law, case: denoise.sure_threshold(values, law),
    "haar": lambda values, law, case: denoise.haar(values, law, order=True) if case.ordered else values,
    "empirical-bayes": lambda values, law, case: denoise.empirical_bayes(values, law, nonnegative=case.nonnegative),
    "auto": lambda values, law, case: denoise.auto(values, law, nonnegative=case.nonnegative, order=case.ordered),
}
SHOWN = ("james-stein", "soft-threshold", "sure-threshold", "haar", "empirical-bayes", "auto")


def main() -> int:
    """Measure the errors, print and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", choices=KINDS, default="dpbench")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds dpbench/ and the tables")
    parser.add_argument("--repeats", type=int, default=10, help="draws of the noise that are averaged at least")
    parser.add_argument("--drawn", type=int, default=8_000, help="noisy cells that are averaged at least")
    parser.add_argument("--every", type=int, default=1, help="take only every n-th histogram")
    parser.add_argument("--only", nargs="+", default=list(ESTIMATORS), help="estimators, in addition to no denoising")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--chart", type=Path, help="write a chart here (.html, .svg or .png); it needs altair")
    options = parser.parse_args()
    cases = list(KINDS[options.cases](options.data))[:: options.every]
    if not cases:
        print(f"No histograms in {options.data}. Get DPBench (Hay et al. 2016) and name its folder with --data.")
        return 1
    names = [name for name in ESTIMATORS if name in options.only and name != "none"]
    rows = [measured(*one, names, options.repeats, options.drawn) for one in settings(cases)]
    for key in ("histogram", "setting"):
        print(table(rows, names, key) if key == "setting" or options.cases == "dpbench" else "")
    summary = summed_up(rows)
    print("\n".join(f"{name}: {figure}" for name, figure in summary.items()))
    if options.json:
        options.json.write_text(json.dumps({"repeats": options.repeats, "rows": rows, "summary": summary}, indent=1))
    if options.chart:
        chart(rows).save(options.chart)
    return 0


def settings(cases: Iterable[Case]) -> Iterator[tuple[Case, float, str, Any]]:
    """Combine every histogram with every epsilon and noise."""
    for case in cases:
        for epsilon in EPSILONS:
            yield case, epsilon, "Laplace", dpf.Laplace.calibrate(sensitivity=1, epsilon=epsilon)
            law = dpf.Gaussian.calibrate(sensitivity=1, epsilon=epsilon, delta=DELTA)
            yield case, epsilon, "Gaussian", law


def measured(
    case: Case, epsilon: float, kind: str, law: Any, names: list[str], repeats: int, drawn: int
) -> dict[str, Any]:
    """Return the errors of a case; measure again with fresh noise where `auto` seems worse than no denoising."""
    draws = max(repeats, math.ceil(drawn / case.truth.size))
    relative = errors_of(case, law, names, range(draws))
    if relative["auto"] > DOUBTFUL:
        relative = errors_of(case, law, names, range(draws, (1 + AGAIN) * draws))
    found = {"histogram": case.name, "cells": case.truth.size, "epsilon": epsilon, "noise": kind}
    return {**found, "setting": f"{kind}, {epsilon:g}", **relative}


def errors_of(case: Case, law: Any, names: list[str], seeds: Iterable[int]) -> dict[str, float]:
    """Return the squared error of each estimator relative to the noisy values, each summed over the seeds."""
    errors = dict.fromkeys(["none", *names], 0.0)
    for repeat in seeds:
        with noise.insecure_bits(repeat):  # the same noise each time: a benchmark, not a release
            values = law.add_noise(case.truth).astype(np.float64)
        for estimator in errors:
            denoised = ESTIMATORS[estimator](values, law, case)
            errors[estimator] += float(np.square(denoised - case.truth).sum())
    return {estimator: error / errors["none"] for estimator, error in errors.items()}


def summed_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the summary."""
    worst = max(rows, key=lambda row: row["auto"])
    found = {
        "cases": len(rows),
        "auto, geometric mean": round(mean(row["auto"] for row in rows), 4),
        "auto, worst": [round(worst["auto"], 4), worst["histogram"], worst["setting"]],
        "auto above 1.02": sum(row["auto"] > 1.02 for row in rows),
    }
    if set(BASELINES) <= set(rows[0]):
        against = [row["auto"] / max(min(row[name] for name in BASELINES), 1e-12) for row in rows]
        found["auto against the best of none, James-Stein and soft threshold, geometric mean"] = round(mean(against), 4)
        found["auto against that best, worst"] = round(max(against), 4)
    return found


def mean(figures: Any) -> float:
    """Return the geometric mean."""
    return math.exp(np.mean([math.log(max(figure, 1e-12)) for figure in figures]))


def table(rows: list[dict[str, Any]], names: list[str], key: str) -> str:
    """Return a Markdown table of geometric means by histogram or by noise, with the worst case of `auto`."""
    lines = [f"| {key} | {' | '.join(names)} | `auto`, worst |", "|---|" + "---:|" * (len(names) + 1)]
    groups = {row[key]: [other for other in rows if other[key] == row[key]] for row in rows}
    for group, mine in (*groups.items(), ("all", rows)):
        figures = " | ".join(f"{mean(row[name] for row in mine):.3f}" for name in names)
        lines.append(f"| {group} | {figures} | {max(row['auto'] for row in mine):.3f} |")
    return "\n".join(lines)


def chart(rows: list[dict[str, Any]]) -> Any:
    """Draw a dot for each case and estimator, and their geometric mean, on a log scale where 1 is no denoising."""
    import altair

    names = [name for name in SHOWN if name in rows[0]]
    points = [
        {"estimator": name, "error": row[name], "epsilon": f"{row['epsilon']:g}", "noise": row["noise"]}
        for row in rows
        for name in names
    ]
    means = [{"estimator": name, "error": mean(row[name] for row in rows)} for name in names]
    across = altair.X(
        "error:Q",
        scale=altair.Scale(type="log"),
        title="squared error / that of no denoising (logarithmic; less is better)",
        axis=altair.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"),
    )
    rows_of = altair.Y("estimator:N", sort=names, title=None, axis=altair.Axis(labelFontSize=12))
    dots = altair.Chart(altair.Data(values=points)).mark_point(size=40, opacity=0.8)
    dots = dots.encode(
        x=across,
        y=rows_of,
        color=altair.Color("epsilon:N", scale=altair.Scale(range=["#0b2f5e", "#3b7ab8", "#9fc2e4"])),
        shape=altair.Shape("noise:N"),
    )
    middle = altair.Chart(altair.Data(values=means)).mark_tick(color="#c0392b", thickness=3, size=26)
    middle = middle.encode(x=across, y=rows_of)
    one = altair.Chart(altair.Data(values=[{"error": 1}])).mark_rule(color="#333333", strokeDash=[4, 3])
    return (
        altair.layer(one.encode(x="error:Q"), dots, middle)
        .properties(
            width=520,
            height=240,
            title=altair.TitleParams(
                "Denoising of the DPBench histograms",
                subtitle=[
                    f"a dot per histogram, epsilon and noise ({len(rows)}); red: geometric mean; dashed: no denoising"
                ],
                anchor="start",
            ),
        )
        .configure_view(stroke=None)
    )


if __name__ == "__main__":
    sys.exit(main())
