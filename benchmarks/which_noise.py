"""Compute where Laplace noise, Gaussian noise or another shape has the least variance at one epsilon and delta.

Run it from the root of the repository: ``python -m benchmarks.which_noise --chart which-noise.png``. It
computes; it draws no noise.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dpf
from papers.reporting import ON_BOTH_PAGES

STEPS = 2**20  # grid steps of a sensitivity: so fine that only the shape of the noise matters
CELLS = tuple(round(2 ** (step / 2)) for step in range(17))
LARGE = (1e-6, 1e-3, 1e-2, 0.1, 0.3)
DELTAS = tuple(10.0 ** (power / 4) for power in range(-24, -1))
SHAPES = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)
EPSILONS = (0.1, 1.0, 5.0)


def main() -> None:
    """Print the tables, draw both charts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chart", type=Path, help="write the charts here (.html, .svg or .png); it needs altair")
    options = parser.parse_args()
    print("From how many cells (one unit counts in full in each) Gaussian noise has less variance than Laplace noise:")
    print("| epsilon | " + " | ".join(f"delta {delta:g}" for delta in (1e-9, 1e-6, 1e-3)) + " |\n|---|---|---|---|")
    for epsilon in EPSILONS:
        found = (f"{crossing(epsilon, delta):.1f}" for delta in (1e-9, 1e-6, 1e-3))
        print(f"| {epsilon:g} | " + " | ".join(found) + " |")
    print("\nIn one cell, the shape with the least variance, and its part of the better of Laplace and Gaussian noise:")
    print(
        "| epsilon | " + " | ".join(f"delta {delta:g}" for delta in LARGE) + " |\n|---" * 1 + "|---" * len(LARGE) + "|"
    )
    for epsilon in EPSILONS:
        print(f"| {epsilon:g} | " + " | ".join(best(epsilon, delta) for delta in LARGE) + " |")
    print("\nThe delta from which Gaussian noise beats Laplace noise in one cell: exact calibration, probabilistic DP:")
    for epsilon in EPSILONS:
        print(f"  epsilon {epsilon:g}: {threshold(epsilon, exact):.4f}, {threshold(epsilon, probabilistic):.4f}")
    if options.chart:
        charts(points()).save(options.chart)


def laplace(epsilon: float, cells: int = 1) -> float:
    """Return the variance of Laplace noise for a sensitivity of 1 in each of `cells` cells."""
    return dpf.Laplace.calibrate(sensitivity=STEPS * cells, epsilon=epsilon).variance / STEPS**2


def exact(epsilon: float, delta: float) -> float:
    """Return the variance of Gaussian noise with the least sigma, for one cell; for k cells it is k times as large."""
    return dpf.analytic_gaussian_sigma(epsilon, delta) ** 2


def probabilistic(epsilon: float, delta: float) -> float:
    """Return the same variance with the sigma of probabilistic DP (Liu 2018, Proposition 11)."""
    return dpf.probabilistic_gaussian_sigma(epsilon, delta) ** 2


def crossing(epsilon: float, delta: float) -> float:
    """Return the number of cells where both variances are equal: Laplace grows as k^2, Gaussian as k."""
    return exact(epsilon, delta) / laplace(epsilon)


def threshold(epsilon: float, gaussian: Any) -> float:
    """Return the delta at which the two variances in one cell are equal."""
    low, high = 1e-12, 0.999
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian(epsilon, middle) < laplace(epsilon) else (middle, high)
    return high


def shaped(p: float, epsilon: float, delta: float) -> float:
    """Return the variance in one cell of noise of shape p, relative to pure Laplace noise."""
    noise = dpf.GeneralizedGaussian.calibrate(p=p, sensitivity=STEPS, epsilon=epsilon, delta=delta)
    return noise.variance / STEPS**2 / laplace(epsilon)


def best(epsilon: float, delta: float) -> str:
    """Return the choice of mechanism="auto" as text."""
    frame = dpf.of(pl.DataFrame({"cell": [0]}))
    ledger = dpf.Ledger(epsilon=100, delta=0.9, accounting="basic", checks=False)
    ask = partial(frame.preview.sum, "cell", bounds=(0, 1), epsilon=epsilon, ledger=ledger)
    plan = ask(delta=delta, mechanism="auto")
    least = min(ask().parts[0].mechanism.variance, ask(delta=delta).parts[0].mechanism.variance)
    mechanism = plan.parts[0].mechanism
    return f"p = {mechanism.p:g} ({mechanism.variance / least:.2f})"


def points() -> list[dict[str, Any]]:
    """Return variances in one cell by delta for several shapes, and in several cells for Laplace and Gaussian noise."""
    one = [("one cell", delta, shaped(p, 1.0, delta), f"p = {p:g}") for p in SHAPES for delta in DELTAS]
    many = [("several cells", cells, laplace(1.0, cells), "Laplace") for cells in CELLS]
    for delta in (1e-9, 1e-6, 1e-3):
        many += [("several cells", cells, cells * exact(1.0, delta), f"Gaussian, delta {delta:g}") for cells in CELLS]
    return [dict(zip(("panel", "x", "variance", "noise"), point, strict=True)) for point in one + many]


def charts(rows: list[dict[str, Any]]) -> Any:
    """Draw one cell, variance by delta for several shapes (left); variance by cells, Laplace and Gaussian (right)."""
    import altair

    one, many = ([row for row in rows if row["panel"] == panel] for panel in ("one cell", "several cells"))
    axis = altair.Axis(grid=False, tickCount=5, format=",~g")
    left = (
        altair.Chart(altair.Data(values=one))
        .mark_line()
        .encode(
            x=altair.X(
                "x:Q",
                title="delta",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(format="~e", values=[1e-6, 1e-4, 1e-2], grid=False),
            ),
            y=altair.Y(
                "variance:Q", scale=altair.Scale(type="log"), title="variance, Laplace of delta 0 = 1", axis=axis
            ),
            color=altair.Color(
                "noise:N", title="shape", scale=altair.Scale(scheme=ON_BOTH_PAGES), sort=[f"p = {p:g}" for p in SHAPES]
            ),
        )
    )
    rule = altair.Chart(altair.Data(values=[{"x": 0.1573}])).mark_rule(style="limits").encode(x="x:Q")
    right = (
        altair.Chart(altair.Data(values=many))
        .mark_line()
        .encode(
            x=altair.X(
                "x:Q", scale=altair.Scale(type="log"), title="cells in which one unit counts in full", axis=axis
            ),
            y=altair.Y(
                "variance:Q", scale=altair.Scale(type="log"), title="variance, sensitivity 1 in each cell", axis=axis
            ),
            color=altair.Color("noise:N", sort=None),
        )
    )
    size = {"width": 300, "height": 240}
    together = altair.hconcat(
        (left + rule).properties(title="One cell, epsilon 1", **size),
        right.properties(title="Several cells, epsilon 1", **size),
    )
    return together.resolve_scale(color="independent")


if __name__ == "__main__":
    main()
