"""Liu's experiments on counts: the five kinds of noise, the post-processing, and distances from the true counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import dpframe as dpf
from papers.reporting import Row, classical_sigma, color, panel, shown

EPSILONS = (0.5, 1.0, 2.0)
DELTAS = (0.01, 0.05, 0.1, 0.25)
PSEUDOCOUNT = 0.5  # of KL.Dirichlet, which has no default; the paper does not state its value. 1/2 is Jeffreys' prior
CONTINUOUS = 2.0**-20  # a grid so fine that integer noise on it serves as continuous noise here

Calibration = Callable[[float, float, float], dpf.Laplace | dpf.Gaussian | dpf.GeneralizedGaussian]


def laplace(epsilon: float, delta: float, grid: float) -> dpf.Laplace:
    """Calibrate Laplace noise, which ignores delta."""
    return dpf.Laplace.calibrate(sensitivity=1.0, epsilon=epsilon, grid=grid)


def gaussian_pdp(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """Calibrate Gaussian noise by Proposition 11."""
    return dpf.Gaussian(1.0 / grid, dpf.probabilistic_gaussian_sigma(epsilon, delta) / grid, grid)


def gg3_pdp(epsilon: float, delta: float, grid: float) -> dpf.GeneralizedGaussian:
    """Calibrate generalized Gaussian noise by Corollary 9 with p = 3."""
    scale = dpf.generalized_gaussian_scale(3, epsilon, delta, guarantee="probabilistic")
    return dpf.GeneralizedGaussian(1.0 / grid, scale / grid, grid, p=3)


def gaussian_classical(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """Calibrate Gaussian noise by equation 18, as the paper does also at epsilon 1 and 2."""
    return dpf.Gaussian(1.0 / grid, classical_sigma(epsilon, delta) / grid, grid)


def gaussian_analytic(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """Calibrate Gaussian noise as dpframe does; the paper does not do this."""
    return dpf.Gaussian.calibrate(sensitivity=1.0, epsilon=epsilon, delta=delta, grid=grid)


NOISES: dict[str, Calibration] = {
    "Laplace": laplace,
    "Gaussian pDP": gaussian_pdp,
    "GG-3 pDP": gg3_pdp,
    "Gaussian aDP": gaussian_classical,
    "Gaussian analytic": gaussian_analytic,
}


@dataclass(frozen=True)
class Setting:
    """One kind of noise at one epsilon and delta. Laplace noise has no delta: its figures are shown at every delta."""

    noise: str
    epsilon: float
    delta: float

    def law(self, grid: float = 1.0) -> Any:
        """Return the noise, calibrated for one cell that changes by 1."""
        return NOISES[self.noise](self.epsilon, self.delta, grid)


SETTINGS = [
    Setting(name, epsilon, delta)
    for epsilon, delta, name in product(EPSILONS, DELTAS, NOISES)
    if name != "Laplace" or delta == DELTAS[0]
]


def bounded(noisy: Any, size: int) -> Any:
    """Post-process counts as the paper does: clip them to [0, n], then scale them to sum to n, which is public."""
    kept = np.clip(noisy, 0.0, size)
    total = kept.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, kept * (size / np.where(total > 0.0, total, 1.0)), size / kept.shape[-1])


def distances(sanitized: Any, truth: Any) -> dict[str, Any]:
    """Return the l1 distance and both Kullback-Leibler divergences, with pseudocounts, per row of sanitized counts."""
    original, other = frequencies(truth), frequencies(sanitized)
    logarithms = np.log(original) - np.log(other)
    return {
        "l1": np.abs(sanitized - truth).sum(axis=-1),
        "kl": (original * logarithms).sum(axis=-1),
        "kl reversed": -(other * logarithms).sum(axis=-1),
    }


def frequencies(counts: Any) -> Any:
    """Return frequencies as `freqs.Dirichlet` of the R package entropy does: (count + a) / (n + cells a)."""
    raised = counts + PSEUDOCOUNT
    return raised / raised.sum(axis=-1, keepdims=True)


def summed_up(setting: Setting, found: dict[str, Any], **more: Any) -> Row:
    """Return means and standard deviations over the repeats."""
    row: Row = {"noise": setting.noise, "epsilon": setting.epsilon, "delta": setting.delta, **more}
    for name, values in found.items():
        row |= {name: float(np.mean(values)), f"{name} sd": float(np.std(values))}
    return row


def at_every_delta(rows: list[Row]) -> list[Row]:
    """Repeat the rows of Laplace noise for each delta."""
    return [
        row | {"delta": delta}
        for epsilon, delta in product(EPSILONS, DELTAS)
        for row in rows
        if row["epsilon"] == epsilon and (row["noise"] == "Laplace" or row["delta"] == delta)
    ]


def table(rows: list[Row], field: str) -> list[Row]:
    """Return a row for each epsilon and delta, a column for each noise: the mean and the standard deviation."""
    found: dict[tuple[float, float], Row] = {}
    for row in at_every_delta(rows):
        start = {"epsilon": row["epsilon"], "delta": row["delta"]}
        words = f"{shown(row[field])} ({shown(row[field + ' sd'], 2)})"
        found.setdefault((row["epsilon"], row["delta"]), start)[row["noise"]] = words
    return list(found.values())


def chart(rows: list[Row], fields: dict[str, str]) -> object:
    """Draw a row of panels for each distance, a panel for each epsilon."""
    import altair

    drawn = [row | {"name": f"{row['delta']:g}"} for row in at_every_delta(rows)]
    lines = [
        altair.hconcat(
            *(
                panel(
                    [row for row in drawn if row["epsilon"] == epsilon],
                    altair.X("name:O", title="delta", sort=None, axis=altair.Axis(labelAngle=0)),
                    altair.Y(f"{field}:Q", title=title, scale=altair.Scale(zero=field != "accuracy")),
                    color("noise"),
                    f"epsilon {epsilon:g}",
                ).properties(width=180, height=140)
                for epsilon in EPSILONS
            )
        ).resolve_scale(y="shared")
        for field, title in fields.items()
    ]
    return altair.vconcat(*lines)
