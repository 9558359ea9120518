"""Compare accountings with dp-accounting on random releases: Renyi divergences, conversions, loss distributions.

    python -m assurance.accounting --count 1000

No figure of dpframe may be below the peer's by more than rounding, or above it by more than its grid. The program
prints the largest differences, and fails if one is out of its bounds.
"""

from __future__ import annotations

import argparse
import math
import random
from fractions import Fraction
from typing import Any

from assurance import verdict
from dpframe import Gaussian, GeneralizedGaussian, Laplace
from dpframe.accounting.by_curves import conversion
from dpframe.accounting.comparison import composed_epsilon, least_delta
from dpframe.mechanisms import gaussian_curve

STEP = 2e-4  # the grid of the peer's loss distributions; the peer rounds discrete Laplace up to it
BOUNDS = {
    "Renyi divergence": (-1e-12, 1e-9),
    "conversion": (-1e-12, 1e-9),
    "loss distribution, mixed": (-1e-2, 2e-4),
    "loss distribution, Gaussian, closed form": (0.0, 3e-3),
}


def main() -> int:
    """Run the checks and print the differences."""
    parser = argparse.ArgumentParser(description="Accountings against dp-accounting on random releases.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    failed, found = 0, measured(options.count, random.Random(options.seed))
    for name, differences in found.items():
        low, high = BOUNDS[name]
        inside = low <= min(differences) and max(differences) <= high
        failed += not inside
        print(
            f"{name}: {len(differences):,} compared, relative difference {min(differences):.2g} ... "
            f"{max(differences):.2g} ({'within' if inside else 'OUT OF'} {low:g} ... {high:g})"
        )
    return verdict(failed, compared=sum(map(len, found.values())))


def measured(count: int, draw: random.Random) -> dict[str, list[float]]:
    """Return the relative differences, dpframe minus peer, by what was compared."""
    found: dict[str, list[float]] = {name: [] for name in BOUNDS}
    for _ in range(count):
        found["Renyi divergence"] += _divergences(draw)
        found["conversion"].append(_conversion(draw))
        found["loss distribution, mixed"].append(_mixed(draw))
        found["loss distribution, Gaussian, closed form"].append(_closed(draw))
    return found


def _divergences(draw: random.Random) -> list[float]:
    import dp_accounting
    from dp_accounting import rdp

    ratio, orders = 10 ** draw.uniform(-1.5, 0.7), [1.0 + 10 ** draw.uniform(-1, 2.5) for _ in range(3)]
    pairs: list[tuple[Any, Any]] = [
        (dp_accounting.GaussianDpEvent(1 / ratio), Gaussian(1.0, 1 / ratio)),
        (dp_accounting.LaplaceDpEvent(1 / ratio), GeneralizedGaussian(1.0, 1 / ratio, p=1.0)),
    ]
    differences = []
    for event, noise in pairs:
        theirs = rdp.RdpAccountant(orders).compose(event)._rdp
        ours = [float(noise.renyi(Fraction(order))) for order in orders]
        differences += [one / other - 1 for one, other in zip(ours, theirs, strict=True)]
    return differences


def _conversion(draw: random.Random) -> float:
    from dp_accounting import rdp

    orders, delta = [1.5 + 10 ** draw.uniform(0, 2) for _ in range(5)], 10 ** draw.uniform(-12, -2)
    cost = 10 ** draw.uniform(0, 1)
    theirs = rdp.compute_epsilon(orders, [cost] * len(orders), delta)[0]
    ours = min(cost + float(conversion(Fraction(order), Fraction(delta))) for order in orders)
    return ours / theirs - 1 if theirs else 0.0


def _mixed(draw: random.Random) -> float:
    from dp_accounting.pld import privacy_loss_distribution as peer

    sigma, scale = draw.uniform(1, 10), draw.uniform(1, 10)
    counts, delta = (draw.randint(1, 20), draw.randint(1, 20)), 10 ** draw.uniform(-9, -3)
    grid = {"value_discretization_interval": STEP}
    theirs = (
        peer.from_gaussian_mechanism(sigma, **grid)
        .self_compose(counts[0])
        .compose(peer.from_discrete_laplace_mechanism(1 / scale, 1, **grid).self_compose(counts[1]))
    )
    ours = composed_epsilon([Gaussian(1.0, sigma)] * counts[0] + [Laplace(1, scale)] * counts[1], delta)
    return ours / float(theirs.get_epsilon_for_delta(delta)) - 1


def _closed(draw: random.Random) -> float:
    mu, count, delta = 10 ** draw.uniform(-3, 0.5), draw.randint(1, 200), 10 ** draw.uniform(-12, -2)
    delta = max(delta, 20.0 * least_delta(count))  # at least_delta itself, half of it would go to rounding
    noise = Gaussian(1.0, 1 / mu)
    exact = gaussian_curve.epsilon_of_mu(noise.mu * math.sqrt(count) * (1 - 1e-15), delta)
    return composed_epsilon([noise] * count, delta) / exact - 1 if exact > 0 else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
