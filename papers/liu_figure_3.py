"""Liu (2018), Figure 3: sigma of probabilistic over sigma of classical differential privacy, for epsilon below 1.

Run it from the root of the repository: ``python -m papers.liu_figure_3``.
"""

from __future__ import annotations

import dpframe as dpf
from papers.reporting import Row, color, markdown, options, panel, pivoted, written

EPSILONS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
DELTAS = (1e-9, 1e-6, 1e-4, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.49)


def main() -> None:
    """Compute the ratios, print and write them."""
    chosen = options(__doc__)
    rows = [compared(epsilon, delta) for delta in DELTAS for epsilon in EPSILONS]
    named = [row | {"column": f"delta {row['delta']:g}"} for row in rows]
    tables = [
        f"sigma {words}:\n\n" + markdown(pivoted(named, ["epsilon"], "column", field))
        for field, words in (("pdp", "of Proposition 11 over the classical one"), ("exact", "analytic over classical"))
    ]
    written("liu_figure_3", rows, "\n\n".join(tables), chart(rows), chosen.out)


def compared(epsilon: float, delta: float) -> Row:
    """Return the ratios of Liu's sigma and of the analytic sigma to the classical one."""
    classical = dpf.classical_gaussian_sigma(epsilon, delta)
    pdp = dpf.probabilistic_gaussian_sigma(epsilon, delta) / classical
    return {
        "epsilon": epsilon,
        "delta": delta,
        "pdp": pdp,
        "exact": dpf.analytic_gaussian_sigma(epsilon, delta) / classical,
    }


def chart(rows: list[Row]) -> object:
    """Draw the ratio against epsilon, a line for each delta: for Liu's sigma and, for comparison, the analytic one."""
    import altair

    named = [row | {"name": f"{row['delta']:g}"} for row in rows]
    panels = [
        panel(
            named,
            altair.X("epsilon:Q"),
            altair.Y(f"{field}:Q", title="ratio to the classical sigma", scale=altair.Scale(domain=[0, 1])),
            color("name", "delta"),
            title,
        )
        for field, title in (("pdp", "Liu, Proposition 11"), ("exact", "analytic (Balle and Wang)"))
    ]
    return altair.hconcat(*panels)


if __name__ == "__main__":
    main()
