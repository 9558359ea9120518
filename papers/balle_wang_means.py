"""Balle and Wang (2018), Figure 1 right and Figure 3 right: private means of 500 vectors, with and without denoising.

Run it from the root of the repository: ``python -m papers.balle_wang_means --repeats 100``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import dpframe as dpf
from dpframe import noise
from papers.reporting import (
    Row,
    classical_sigma,
    color,
    logarithmic,
    markdown,
    options,
    panel,
    pivoted,
    progress,
    written,
)

SIZE, DELTA = 500, 1e-4
EPSILONS = (0.01, 0.1, 1.0)
DIMENSIONS = (10, 32, 100, 316, 1_000, 3_162, 10_000)
STEP = 2.0**-20  # coordinates are multiples of it, so that sums are whole numbers of steps
METHODS = ("Lap", "cGM", "aGM", "aGM-JS", "aGM-TH", "aGM-auto")


def main() -> None:
    """Measure the errors, print and write them."""
    chosen = options(__doc__, repeats=100)
    work = product(EPSILONS, DIMENSIONS)
    total = len(EPSILONS) * len(DIMENSIONS)
    rows = [row for case in progress((measured(*one, chosen.repeats) for one in work), total) for row in case]
    tables = [f"Average l2 error of {chosen.repeats} means of {SIZE} vectors, delta {DELTA:g}:"]
    tables.append(markdown(pivoted(rows, ["epsilon", "dimension"], "method", "error")))
    written("balle_wang_means", rows, "\n\n".join(tables), chart(rows, "error", "l2 error"), chosen.out)


def measured(epsilon: float, dimension: int, repeats: int) -> list[Row]:
    """Return the mean error of each method; each repeat draws new vectors."""
    errors = dict.fromkeys(METHODS, 0.0)
    laws = mechanisms(epsilon, l1=dimension, l2=math.sqrt(dimension))
    for repeat in range(repeats):
        totals = sums(dimension, np.random.default_rng([repeat, dimension]))
        with noise.insecure_bits(repeat):  # the same noise each time: a benchmark, not a release
            for method, estimate in estimates(totals, laws):
                errors[method] += float(np.linalg.norm(estimate - totals * STEP)) / SIZE / repeats
    return [
        {"epsilon": epsilon, "dimension": dimension, "method": name, "error": error} for name, error in errors.items()
    ]


def sums(dimension: int, generator: np.random.Generator) -> Any:
    """Return the sum of the vectors x0 + xi in steps: x0 is normal, each coordinate of xi uniform in [-1/2, 1/2]."""
    center = generator.standard_normal(dimension)
    return sum(np.rint((center + generator.uniform(-0.5, 0.5, dimension)) / STEP) for _ in range(SIZE)).astype(np.int64)


def mechanisms(epsilon: float, *, l1: float, l2: float) -> dict[str, Any]:
    """Return the noise of the three mechanisms for sums in multiples of STEP: the paper's sensitivities times 500."""
    return {
        "Lap": dpf.Laplace.calibrate(sensitivity=l1, epsilon=epsilon, grid=STEP),
        "cGM": dpf.Gaussian(l2 / STEP, l2 / STEP * classical_sigma(epsilon, DELTA), STEP),
        "aGM": dpf.Gaussian.calibrate(sensitivity=l2, epsilon=epsilon, delta=DELTA, grid=STEP),
    }


def estimates(totals: Any, laws: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each method's estimate of the totals, not in steps; the denoised ones share one noisy vector."""
    noisy = {name: law.add_noise(totals) * law.grid for name, law in laws.items()}
    yield from noisy.items()
    yield "aGM-JS", dpf.denoise.james_stein(noisy["aGM"], laws["aGM"])
    yield "aGM-TH", dpf.denoise.soft_threshold(noisy["aGM"], laws["aGM"])
    yield "aGM-auto", dpf.denoise.auto(noisy["aGM"], laws["aGM"])


def chart(rows: list[Row], field: str, title: str) -> object:
    """Draw a panel for each epsilon: the error against the dimension."""
    import altair

    panels = [
        panel(
            [row for row in rows if row["epsilon"] == epsilon],
            logarithmic("dimension", "dimension d", "x"),
            logarithmic(field, title),
            color("method"),
            f"epsilon {epsilon:g}",
        )
        for epsilon in EPSILONS
    ]
    return altair.hconcat(*panels)


if __name__ == "__main__":
    main()
