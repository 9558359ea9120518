"""Liu (2018), Figure 2: the least scale b of generalized Gaussian noise for probabilistic differential privacy.

Three statistics of sensitivity 1, 0.1 and 0.05 get noise of one scale b and shape p. Run it from the root of the
repository: ``python -m papers.liu_figure_2 --repeats 400000``.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

import dpframe as dpf
from dpframe import noise
from papers.reporting import Row, color, logarithmic, markdown, options, panel, pivoted, progress, written

SHAPES = (2, 3, 4, 5, 6)
EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTAS = (0.01, 0.05, 0.1, 0.25)
SENSITIVITIES = (1.0, 0.1, 0.05)
STEPS = 12  # number of Newton steps
STEP = 2.0**-20  # noise of scale 1 is rounded to multiples of this


def main() -> None:
    """Compute the bounds, print and write them."""
    chosen = options(__doc__, repeats=400_000)
    work = ((p, epsilon, chosen.repeats) for p, epsilon in product(SHAPES, EPSILONS))
    total = len(SHAPES) * len(EPSILONS)
    rows = [row for rows in progress((bounds(*one) for one in work), total) for row in rows]
    named = [row | {"p": f"p = {row['p']}"} for row in rows]
    summary = "\n\n".join(
        f"{words}:\n\n" + markdown(pivoted(named, ["epsilon", "delta"], "p", field))
        for field, words in (
            ("three", "b of three statistics, Proposition 8 with Lemma 2"),
            ("one", "b of the first statistic alone, Corollary 9"),
            ("deviation", "standard deviation of the noise of three statistics"),
        )
    )
    written("liu_figure_2", rows, summary, chart(rows), chosen.out)


def bounds(p: int, epsilon: float, repeats: int) -> list[Row]:
    """Return the bound for three statistics and for the first alone, at every delta."""
    with noise.insecure_bits(p):
        law = dpf.GeneralizedGaussian(1.0 / STEP, 1.0 / STEP, STEP, p=p)
        drawn = np.abs(law.add_noise(np.zeros((len(SENSITIVITIES), repeats), dtype=np.int64)) * STEP)
    least = least_scales(drawn, p, epsilon)
    deviation = math.sqrt(math.gamma(3.0 / p) / math.gamma(1.0 / p))
    rows = []
    for delta in DELTAS:
        three = float(np.quantile(least, 1.0 - delta))
        one = dpf.generalized_gaussian_scale(p, epsilon, delta, guarantee="probabilistic")
        row = {"p": p, "epsilon": epsilon, "delta": delta, "three": three, "one": one}
        rows.append(row | {"deviation": three * deviation})
    return rows


def least_scales(drawn: Any, p: int, epsilon: float) -> Any:
    """Return, for each draw e / b, the scale b at which the loss of Proposition 8 is epsilon; a smaller b loses more.

    The loss is bounded by the sum over k of (abs(e_k) + Delta_k)^p - abs(e_k)^p, over b^p: the binomial sums of
    equation 13, with Lemma 2's bound for Delta_p^p. With u = 1 / b it is a polynomial in u with positive coefficients,
    so its logarithm is convex in log u, and Newton's steps from the right never pass the root.
    """
    reach = np.reshape(SENSITIVITIES[: len(drawn)], (-1, 1))
    u = np.full(drawn.shape[1], epsilon ** (1.0 / p) / reach.max())  # an upper bound: the loss is at least (reach u)^p
    for _ in range(STEPS):
        moved = drawn + reach * u
        powers = moved ** (p - 1)
        loss = (powers * moved - drawn**p).sum(axis=0)
        slope = p * u * (reach * powers).sum(axis=0) / loss
        u *= np.exp((math.log(epsilon) - np.log(loss)) / slope)
    return 1.0 / u


def chart(rows: list[Row]) -> object:
    """Draw a panel for each epsilon: b against p."""
    import altair

    named = [row | {"name": f"{row['delta']:g}"} for row in rows]
    panels = [
        panel(
            [row for row in named if row["epsilon"] == epsilon],
            altair.X("p:O", title="p", axis=altair.Axis(labelAngle=0)),
            logarithmic("three", "least b"),
            color("name", "delta"),
            f"epsilon {epsilon:g}",
        ).properties(width=150)
        for epsilon in EPSILONS
    ]
    return altair.hconcat(*panels)


if __name__ == "__main__":
    main()
