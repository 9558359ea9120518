"""Measure nanoseconds per draw of exact integer noise, and of NumPy's float samplers, which are not exact or secure.

    python -m benchmarks.sampler --draws 1000000 --repeats 15

Every figure is the least processor time of the repeats, because a busy machine only adds to it. Only the first repeat
computes the table of a distribution. Floats are rounded, so that both sides return whole numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from dpframe import noise

SCALES = (0.01, 0.5, 1.0, 10.0, 1_000.0, 2.0**16, 1e6, 1e9, 1e12, 1e15)
SHAPES = (1.0, 1.5, 2.0, 3.0)


def main() -> None:
    options = _arguments()
    random = np.random.default_rng(1)
    print("| scale | NumPy Laplace | NumPy Gaussian | " + " | ".join(_names()) + " |")
    print("|---:" * (3 + len(_names())) + "|")
    for scale in SCALES:
        actions: list[Callable[[], object]] = [
            lambda scale=scale: np.rint(random.laplace(0.0, scale, options.draws)),
            lambda scale=scale: np.rint(random.normal(0.0, scale, options.draws)),
            lambda scale=scale: noise.discrete_laplace(scale, options.draws),
        ]
        for p in SHAPES:
            actions.append(lambda scale=scale, p=p: noise.rounded_generalized_gaussian(p, scale, options.draws))
        laplace, gaussian, *ours = least_times(actions, options)
        plain = [laplace, *(laplace if p == 1.0 else gaussian for p in SHAPES)]
        cells = [f"{taken:.1f} ({taken / other:.2f})" for taken, other in zip(ours, plain, strict=True)]
        print(f"| {scale:g} | {laplace:.1f} | {gaussian:.1f} | " + " | ".join(cells) + " |", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    return parser.parse_args()


def _names() -> list[str]:
    return ["discrete Laplace", *(f"rounded, p = {p:g}" for p in SHAPES)]


def least_times(actions: list[Callable[[], object]], options: argparse.Namespace) -> list[float]:
    """Return the nanoseconds of each action; the actions take turns."""
    least = [np.inf] * len(actions)
    for _ in range(options.repeats):
        for place, action in enumerate(actions):
            started = time.thread_time()
            action()
            least[place] = min(least[place], (time.thread_time() - started) * 1e9 / options.draws)
    return least


if __name__ == "__main__":
    main()
