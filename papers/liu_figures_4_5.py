"""Liu (2018), Figures 4 and 5, Proposition 12: tails, privacy and variance of Laplace and Gaussian noise.

Run it from the root of the repository: ``python -m papers.liu_figures_4_5``.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import dpframe as dpf
from papers.reporting import WIDTH, Row, color, markdown, options, written

EPSILONS = (0.1, 1.0, 2.0)
DELTAS = (0.01, 0.05, 0.1, 0.2)
CUTOFF = 1e-4  # tails matter where either probability is above this
POINTS = 20_000
HIGHEST = 5.0  # largest value that the chart shows
THRESHOLD = 2 * float(ndtr(-np.sqrt(2.0)))  # 0.1573, from Proposition 12


def main() -> None:
    """Compute the curves, print and write them."""
    chosen = options(__doc__)
    curves = {case: curve(*case) for case in product(EPSILONS, DELTAS)}
    rows = [shape(*case, found) for case, found in curves.items()]
    tables = ["Tails (Figure 4), privacy at equal tails (Figure 5) and variances (Proposition 12):", markdown(rows)]
    written("liu_figures_4_5", rows, "\n\n".join(tables), chart(points(curves)), chosen.out)


def curve(epsilon: float, delta: float) -> dict[str, Any]:
    """Return both figures along abs(t): p1 over p2, and epsilon2 over epsilon1 that makes the two tails equal.

    With z = -Phi^-1(delta / 2), Proposition 11 solved for epsilon is z / sigma + 1 / (2 sigma^2).
    """
    sigma, z = dpf.probabilistic_gaussian_sigma(epsilon, delta), -ndtri(delta / 2.0)
    distance = np.linspace(0.0, 40.0 / epsilon, POINTS)[1:]
    laplace, gauss = np.exp(-distance * epsilon), 2.0 * ndtr(-distance / sigma)
    equal = distance / -ndtri(laplace / 2.0)  # the sigma at which the Gaussian tail equals Laplace's here
    matters = np.maximum(laplace, gauss) > CUTOFF
    ratio = laplace / np.maximum(gauss, 1e-300)
    cost = (z / equal + 0.5 / equal**2) / epsilon
    return {"distance": distance, "matters": matters, "tails": ratio, "cost": cost, "sigma": sigma, "laplace": laplace}


def shape(epsilon: float, delta: float, found: dict[str, Any]) -> Row:
    """Return where the ratio of the tails is least, where it returns to 1, and Laplace's tail probability there."""
    ratio, distance = found["tails"], found["distance"]
    lowest = int(np.argmin(ratio))
    back = lowest + int(np.argmax(ratio[lowest:] >= 1.0))
    cheaper = (found["laplace"] > CUTOFF) & (found["cost"] < 1.0)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "least p1/p2": float(ratio[lowest]),
        "at |t|": float(distance[lowest]),
        "1 again at |t|": float(distance[back]),
        "p1 there": float(found["laplace"][back]),
        "epsilon2/epsilon1 below 1": f"from |t| {distance[cheaper][0]:.4g}" if cheaper.any() else "never",
        "Gaussian/Laplace variance": float(found["sigma"] ** 2 * epsilon**2 / 2.0),
    }


def points(curves: dict[tuple[float, float], dict[str, Any]]) -> list[Row]:
    """Return some points of each curve."""
    return [
        {"epsilon": epsilon, "delta": delta, "t": float(found["distance"][at] * epsilon)}
        | {"matters": bool(found["matters"][at]), "tails": float(found["tails"][at]), "cost": float(found["cost"][at])}
        for (epsilon, delta), found in curves.items()
        for at in range(0, POINTS // 3, 60)
    ]


def chart(points: list[Row]) -> object:
    """Draw a row for each figure, a panel for each epsilon; lines are dim where neither tail is above 1e-4."""
    import altair

    named = [point | {"delta": f"{point['delta']:g}"} for point in points]
    return altair.vconcat(
        *(
            altair.hconcat(*(lines(named, epsilon, field, title) for epsilon in EPSILONS))
            for field, title in (("tails", "p1 / p2"), ("cost", "epsilon2 / epsilon1"))
        )
    )


def lines(points: list[Row], epsilon: float, field: str, title: str) -> object:
    """Draw one panel."""
    import altair

    shown = [point for point in points if point["epsilon"] == epsilon and point[field] <= HIGHEST]
    return (
        altair.Chart(altair.Data(values=shown))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=altair.X("t:Q", title="|t| epsilon", axis=altair.Axis(grid=False)),
            y=altair.Y(f"{field}:Q", title=title, axis=altair.Axis(grid=False)),
            color=color("delta", "delta"),
            opacity=altair.condition("datum.matters", altair.value(1.0), altair.value(0.25)),
            detail="matters:N",
        )
        .properties(width=WIDTH - 40, height=150, title=f"epsilon {epsilon:g}")
    )


if __name__ == "__main__":
    main()
