"""Liu's experiments on counts: the five noises, the post-processing, and how far the result is from the truth."""

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
PSEUDOCOUNT = 0.5  # of KL.Dirichlet, which has no default; the paper does not say its own. 1/2 is Jeffreys' prior
CONTINUOUS = 2.0**-20  # a grid so fine that integer noise on it is continuous noise, for all that is shown here

Calibration = Callable[[float, float, float], dpf.Laplace | dpf.Gaussian | dpf.GeneralizedGaussian]


def laplace(epsilon: float, delta: float, grid: float) -> dpf.Laplace:
    """Pure epsilon: delta has no part in it."""
    return dpf.Laplace.calibrate(sensitivity=1.0, epsilon=epsilon, grid=grid)


def gaussian_pdp(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """Proposition 11."""
    return dpf.Gaussian(1.0 / grid, dpf.probabilistic_gaussian_sigma(epsilon, delta) / grid, grid)


def gg3_pdp(epsilon: float, delta: float, grid: float) -> dpf.GeneralizedGaussian:
    """Corollary 9 with p = 3."""
    scale = dpf.generalized_gaussian_scale(3, epsilon, delta, guarantee="probabilistic")
    return dpf.GeneralizedGaussian(1.0 / grid, scale / grid, grid, p=3)


def gaussian_classical(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """Equation 18, also at epsilon 1 and 2, as in the paper."""
    return dpf.Gaussian(1.0 / grid, classical_sigma(epsilon, delta) / grid, grid)


def gaussian_analytic(epsilon: float, delta: float, grid: float) -> dpf.Gaussian:
    """What dpframe uses; not in the paper."""
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
    """One noise at one price. Laplace noise has no delta; its figures stand at every delta."""

    noise: str
    epsilon: float
    delta: float

    def law(self, grid: float = 1.0) -> Any:
        """The noise, calibrated for one cell that moves by 1."""
        return NOISES[self.noise](self.epsilon, self.delta, grid)


SETTINGS = [
    Setting(name, epsilon, delta)
    for epsilon, delta, name in product(EPSILONS, DELTAS, NOISES)
    if name != "Laplace" or delta == DELTAS[0]
]


def bounded(noisy: Any, size: int) -> Any:
    """Counts as the paper treats them: between 0 and n, then scaled to sum to n, which counts as public."""
    kept = np.clip(noisy, 0.0, size)
    total = kept.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, kept * (size / np.where(total > 0.0, total, 1.0)), size / kept.shape[-1])


def distances(sanitized: Any, truth: Any) -> dict[str, Any]:
    """The l1 distance and both Kullback-Leibler divergences, with pseudocounts, for each row of sanitized counts."""
    original, other = frequencies(truth), frequencies(sanitized)
    logarithms = np.log(original) - np.log(other)
    return {
        "l1": np.abs(sanitized - truth).sum(axis=-1),
        "kl": (original * logarithms).sum(axis=-1),
        "kl reversed": -(other * logarithms).sum(axis=-1),
    }


def frequencies(counts: Any) -> Any:
    """As `freqs.Dirichlet` of the R package entropy: (count + a) / (n + cells a)."""
    raised = counts + PSEUDOCOUNT
    return raised / raised.sum(axis=-1, keepdims=True)


def summed_up(setting: Setting, found: dict[str, Any], **more: Any) -> Row:
    """Means and standard deviations over the repeats."""
    row: Row = {"noise": setting.noise, "epsilon": setting.epsilon, "delta": setting.delta, **more}
    for name, values in found.items():
        row |= {name: float(np.mean(values)), f"{name} sd": float(np.std(values))}
    return row


def at_every_delta(rows: list[Row]) -> list[Row]:
    """The same rows, those of Laplace noise once for each delta."""
    return [
        row | {"delta": delta}
        for epsilon, delta in product(EPSILONS, DELTAS)
        for row in rows
        if row["epsilon"] == epsilon and (row["noise"] == "Laplace" or row["delta"] == delta)
    ]


def table(rows: list[Row], field: str) -> list[Row]:
    """A row for each price, a column for each noise: the mean and the standard deviation."""
    found: dict[tuple[float, float], Row] = {}
    for row in at_every_delta(rows):
        start = {"epsilon": row["epsilon"], "delta": row["delta"]}
        words = f"{shown(row[field])} ({shown(row[field + ' sd'], 2)})"
        found.setdefault((row["epsilon"], row["delta"]), start)[row["noise"]] = words
    return list(found.values())


def chart(rows: list[Row], fields: dict[str, str]) -> object:
    """A row of panels for each distance, a panel for each epsilon."""
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
