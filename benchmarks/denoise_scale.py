"""Measure time and memory of every denoiser by the number of cells: ``python -m benchmarks.denoise_scale``.

Each measurement runs in a new process, and memory is the peak of that whole process; the first line is the same process
without a denoiser.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dpframe as dpf
from dpframe import denoise, noise

SIDE = 1_000  # side length of the square grids, group size of the trees


def tree(size: int) -> Any:
    """Return a tree: the total, groups of a thousand cells, and the cells."""
    groups = -(-size // SIDE)
    return np.concatenate([[-1], np.zeros(groups, dtype=np.int64), 1 + np.arange(size) // SIDE])


def on_tree(values: Any, law: Any) -> Any:
    """Denoise with `consistent` on a tree whose leaves are the values."""
    parents = tree(values.size)
    nodes = np.concatenate([np.zeros(parents.size - values.size), values])
    return denoise.consistent(nodes, law, parents=parents, nonnegative=True, whole=True)


def streets(size: int) -> Any:
    """Return the edges of a grid, given as a general graph."""
    places = np.arange(size).reshape(-1, min(SIDE, size))
    pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    return np.concatenate([np.stack([one.ravel(), other.ravel()], axis=1) for one, other in pairs])


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "no denoising": lambda values, law: values,
    "nonnegative": denoise.nonnegative,
    "james_stein": denoise.james_stein,
    "soft_threshold": denoise.soft_threshold,
    "hard_threshold": denoise.hard_threshold,
    "sure_threshold": denoise.sure_threshold,
    "empirical_bayes": denoise.empirical_bayes,
    "posterior_mean, a density": lambda values, law: denoise.posterior_mean(
        values, law, prior=lambda total: np.where(total >= 0, 1.0 / (1.0 + np.abs(total)), 0.0)
    ),
    "haar, line": lambda values, law: denoise.haar(values, law, order=True),
    "haar, grid": lambda values, law: denoise.haar(values.reshape(-1, min(SIDE, values.size)), law),
    "spanning_tree_wavelets": lambda values, law: denoise.spanning_tree_wavelets(
        values, law, graph=streets(values.size)
    ),
    "trend_filter, degree 0": lambda values, law: denoise.trend_filter(values, law, graph=streets(values.size)),
    "isotonic": denoise.isotonic,
    "public_total": lambda values, law: denoise.public_total(values, law, total=1e6, nonnegative=True),
    "consistent": on_tree,
    "rounded": denoise.rounded,
    "auto, line": lambda values, law: denoise.auto(values, law, nonnegative=True, order=True),
    "auto, graph": lambda values, law: denoise.auto(values, law, nonnegative=True, graph=streets(values.size)),
    "auto, grid": lambda values, law: denoise.auto(values.reshape(-1, min(SIDE, values.size)), law, nonnegative=True),
}


def main() -> int:
    """Measure every function at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--one", nargs=2, metavar=("FUNCTION", "SIZE"), help="measure this one alone")
    options = parser.parse_args()
    if options.one:
        seconds, peak = measured(options.one[0], int(options.one[1]))
        print(f"{seconds} {peak}")
        return 0
    print("| function | " + " | ".join(f"{size:,} cells" for size in options.sizes) + " | peak memory |")
    print("|---|" + "---:|" * (len(options.sizes) + 1))
    for name in FUNCTIONS:
        found = [alone(name, size) for size in options.sizes]
        print(
            f"| {name} | " + " | ".join(f"{one:.2f} s" for one, _ in found) + f" | {max(p for _, p in found):.0f} MiB |"
        )
    return 0


def alone(name: str, size: int) -> tuple[float, float]:
    """Return seconds and MiB, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.denoise_scale", "--one", name, str(size)]
    seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(peak)


def measured(name: str, size: int) -> tuple[float, float]:
    """Return the seconds of one call, and the peak memory of this process in MiB."""
    generator = np.random.default_rng(1)
    truth = np.where(generator.random(size) < 0.1, generator.pareto(1.2, size) * 20, 0).astype(np.int64)
    law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    with noise.insecure_bits(1):
        values = law.add_noise(truth).astype(np.float64)
    FUNCTIONS[name](values[:1000].copy(), law)  # loads modules that are imported on first use
    start = time.perf_counter()
    FUNCTIONS[name](values, law)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
