"""Balle and Wang (2018), Figure 1 left and Figure 3 left: the classical and the analytic sigma.

Run it from the root of the repository: ``python -m papers.balle_wang_variance --out papers_output``.
"""

from __future__ import annotations

import numpy as np

import dpframe as dpf
from papers.reporting import Row, classical_sigma, color, logarithmic, markdown, options, panel, pivoted, written

NEAR_ONE = 0.999  # the theorem of the classical formula holds for epsilon below 1
EPSILONS = [*(float(f"{epsilon:.3g}") for epsilon in np.geomspace(1e-3, 1.0, 13)[:-1]), NEAR_ONE]
DELTAS = [1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
SMALLEST = [1e-12, 1e-15, 1e-18, 1e-21, 1e-30, 1e-50, 1e-100, 1e-200]


def main() -> None:
    """Compute the gains, print and write them."""
    chosen = options(__doc__)
    rows = [compared(epsilon, delta) for delta in DELTAS for epsilon in EPSILONS]
    rows += [compared(NEAR_ONE, delta) for delta in SMALLEST]
    shown = [row for row in rows if row["delta"] in DELTAS]
    gains = pivoted([row | {"column": f"delta {row['delta']:g}"} for row in shown], ["epsilon"], "column", "gain")
    edge = [row for row in rows if row["delta"] in SMALLEST]
    summary = "\n\n".join(
        [
            "Gain in variance, classical over analytic:",
            markdown(gains),
            f"At epsilon {NEAR_ONE}, smaller delta:",
            markdown([{"delta": f"{row['delta']:g}", "gain": row["gain"]} for row in edge]),
            *(f"The gain at epsilon {NEAR_ONE} is {least} at delta {reaching(least):.3g}." for least in (1.4, 1.5)),
        ]
    )
    written("balle_wang_variance", rows, summary, chart(shown), chosen.out)


def compared(epsilon: float, delta: float) -> Row:
    """Return both sigmas for an l2 sensitivity of 1, and the ratio of their squares."""
    classical, analytic = classical_sigma(epsilon, delta), dpf.analytic_gaussian_sigma(epsilon, delta)
    gain = (classical / analytic) ** 2
    return {"epsilon": epsilon, "delta": delta, "classical": classical, "analytic": analytic, "gain": gain}


def reaching(gain: float) -> float:
    """Return the delta at which the gain near epsilon = 1 has this value; the gain rises with delta."""
    from scipy.optimize import brentq

    exponent = brentq(lambda power: compared(NEAR_ONE, 10.0**power)["gain"] - gain, -30.0, -2.0, xtol=1e-6)
    return float(10.0**exponent)


def chart(rows: list[Row]) -> object:
    """Draw three panels: sigma against epsilon, the gain against epsilon, the gain against delta."""
    import altair

    named = [row | {"name": f"{row['delta']:g}"} for row in sorted(rows, key=lambda row: row["delta"])]
    ends = [
        {"epsilon": row["epsilon"], "sigma": row[name], "calibration": name}
        for row in rows
        if row["delta"] == 1e-4
        for name in ("classical", "analytic")
    ]
    few = [row | {"name": f"{row['epsilon']:g}"} for row in rows if row["epsilon"] in (0.001, 0.01, 0.1, NEAR_ONE)]
    across = logarithmic("epsilon", "epsilon", "x")
    gain = logarithmic("gain", "classical / analytic variance")
    panels = [
        panel(ends, across, logarithmic("sigma", "sigma"), color("calibration"), "sigma, delta 0.0001"),
        panel(named, across, gain, color("name", "delta"), "gain against epsilon"),
        panel(few, logarithmic("delta", "delta", "x"), gain, color("name", "epsilon"), "gain against delta"),
    ]
    return altair.hconcat(*panels).resolve_scale(color="independent")


if __name__ == "__main__":
    main()
