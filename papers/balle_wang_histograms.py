"""Balle and Wang (2018), Figure 4: histograms of 500 elements from a sparse Dirichlet distribution.

Run it from the root of the repository: ``python -m papers.balle_wang_histograms --repeats 100``.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe import noise
from papers.balle_wang_means import DELTA, DIMENSIONS, EPSILONS, METHODS, SIZE, chart
from papers.reporting import Row, classical_sigma, markdown, options, pivoted, progress, written

UNIT = dpf.PrivacyUnit(neighbors="replace")  # one element may change to another: l2 sensitivity sqrt 2, l1 2


def main() -> None:
    """Measure the errors, print and write them."""
    chosen = options(__doc__, repeats=100)
    work = product(EPSILONS, DIMENSIONS)
    total = len(EPSILONS) * len(DIMENSIONS)
    rows = [row for case in progress((measured(*one, chosen.repeats) for one in work), total) for row in case]
    tables = [f"Average l1 error of {chosen.repeats} histograms of {SIZE} elements, delta {DELTA:g}:"]
    tables.append(markdown(pivoted(rows, ["epsilon", "dimension"], "method", "error")))
    written("balle_wang_histograms", rows, "\n\n".join(tables), chart(rows, "error", "l1 error"), chosen.out)


def measured(epsilon: float, bins: int, repeats: int) -> list[Row]:
    """Return the mean l1 error of each method; each repeat draws a new distribution and new elements."""
    errors = dict.fromkeys(METHODS, 0.0)
    for repeat in range(repeats):
        elements = pl.DataFrame({"bin": drawn(bins, np.random.default_rng([repeat, bins]))})
        truth = np.bincount(elements["bin"], minlength=bins)
        with noise.insecure_bits(repeat):  # the same noise each time: a benchmark, not a release
            for method, counts in released(elements, bins, epsilon).items():
                errors[method] += float(np.abs(counts - truth).sum()) / SIZE / repeats
    return [{"epsilon": epsilon, "dimension": bins, "method": name, "error": error} for name, error in errors.items()]


def drawn(bins: int, generator: np.random.Generator) -> Any:
    """Draw the bins of 500 elements, with probabilities from a symmetric Dirichlet distribution, alpha = 1 / bins.

    Gamma variates underflow for such a small alpha, so G(alpha) = G(alpha + 1) U^(1 / alpha) is computed by logarithms.
    """
    logarithms = np.log(generator.gamma(1.0 + 1.0 / bins, size=bins)) + bins * np.log(generator.random(bins))
    weights = np.exp(logarithms - logarithms.max())
    return generator.choice(bins, size=SIZE, p=weights / weights.sum())


def released(elements: pl.DataFrame, bins: int, epsilon: float) -> dict[str, Any]:
    """Return the counts of each method, each from a separate release."""
    analytic = {"delta": DELTA, "mechanism": "gaussian"}
    calls: dict[str, dict[str, Any]] = {
        "Lap": {},
        "cGM": {"delta": DELTA, "mechanism": classical},
        "aGM": analytic,
        "aGM-JS": analytic | {"denoise": "james-stein"},
        "aGM-TH": analytic | {"denoise": "soft-threshold"},
        "aGM-auto": analytic | {"denoise": "auto"},
    }
    return {
        method: elements.dp.histogram(
            "bin",
            categories=range(bins),
            epsilon=epsilon,
            ledger=dpf.Ledger(epsilon=epsilon, delta=DELTA, accounting="basic", unit=UNIT),
            **{"denoise": None, **options},
        )["count"].to_numpy()
        for method, options in calls.items()
    }


def classical(sensitivity: dpf.Sensitivity, loss: dpf.PrivacyLoss) -> dpf.Gaussian:
    """Return Gaussian noise with the classical calibration, for `mechanism=`."""
    reach = sensitivity.norm(2)
    return dpf.Gaussian(reach, reach * classical_sigma(loss.epsilon, loss.delta))


if __name__ == "__main__":
    main()
