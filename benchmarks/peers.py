"""Calls of OpenDP and diffprivlib for ``benchmarks.peers_accuracy``. Nothing else needs these libraries."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

NAMES = {"opendp": "opendp.prelude", "diffprivlib": "diffprivlib.tools"}


def has(name: str) -> bool:
    """Return whether a peer can be imported."""
    return module(name) is not None


@cache
def module(name: str) -> Any:
    """Import a peer, or return None."""
    try:
        found = importlib.import_module(NAMES[name])
    except ImportError:
        return None
    if name == "opendp":
        found.enable_features("contrib")
    return found


def smallest_scale(cost: Callable[[float], float], most: float) -> float:
    """Return the smallest scale whose cost is at most `most`, to one part in 10^6."""
    low, high = 1e-6, 1e12

    def enough(scale: float) -> bool:
        try:
            return cost(scale) <= most
        except Exception:  # the peer's own exception, where the scale is so small that it overflows
            return False

    for _ in range(32):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def opendp_choices(
    values: np.ndarray, candidates: list[float], q: Sequence[float], rows: int, epsilon: float, delta: float = 0.0
) -> Callable[[], list[float]]:
    """Choose each quantile separately at equal epsilon; with a delta, compose the choices by zCDP."""
    dp = module("opendp")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    measure = dp.zero_concentrated_divergence() if delta else dp.max_divergence()

    def made(scale: float) -> Any:
        each = [dp.m.make_private_quantile(*space, measure, candidates, one, scale) for one in q]
        return dp.c.make_composition(each)

    def cost(scale: float) -> float:
        if not delta:
            return float(made(scale).map(rows))
        return float(dp.c.make_zCDP_to_approxDP(made(scale)).map(rows).epsilon(delta))

    release, given = made(smallest_scale(cost, epsilon)), values.tolist()
    return lambda: list(release(given))


def opendp_tree(
    values: np.ndarray, candidates: list[float], q: Sequence[float], rows: int, epsilon: float
) -> Callable[[], list[float]]:
    """Read all quantiles from one tree of noisy counts that is made consistent."""
    dp = module("opendp")
    step = candidates[1] - candidates[0]
    edges = [candidates[0] - step / 2] + [one + step / 2 for one in candidates]
    counts = np.histogram(values, bins=edges)[0].tolist()
    branching = dp.t.choose_branching_factor(size_guess=len(candidates))
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=len(candidates), branching_factor=branching)

    def made(scale: float) -> Any:
        return tree >> dp.m.then_laplace(scale)

    release = made(smallest_scale(lambda scale: float(made(scale).map(rows)), epsilon))
    fitted = dp.t.make_consistent_b_ary_tree(branching_factor=branching, TIA=int, TOA=float)
    read = dp.t.make_quantiles_from_counts(edges, list(q), interpolation="linear", TA=float)
    return lambda: list(read(fitted(release(counts))[: len(candidates)]))


def diffprivlib_quantiles(
    values: np.ndarray, bounds: tuple[int, int], q: Sequence[float], epsilon: float
) -> Callable[[], list[float]]:
    """Release each quantile with an equal part of epsilon."""
    tools = module("diffprivlib")

    def release() -> list[float]:
        try:
            return [float(tools.quantile(values, one, epsilon=epsilon / len(q), bounds=bounds)) for one in q]
        except RuntimeError:  # where many values are tied, its probabilities are NaN
            return [math.nan] * len(q)

    return release


def opendp_variance(values: np.ndarray, bounds: tuple[int, int], rows: int, epsilon: float) -> Callable[[], float]:
    """Release the variance for a known number of rows, with Laplace noise; neighbors replace the rows of a unit."""
    dp = module("opendp")
    domain = dp.vector_domain(dp.atom_domain(bounds=(float(bounds[0]), float(bounds[1]))), size=values.size)
    exact = dp.t.make_variance(domain, dp.symmetric_distance())

    def made(scale: float) -> Any:
        return exact >> dp.m.then_laplace(scale)

    release = made(smallest_scale(lambda scale: float(made(scale).map(2 * rows)), epsilon))
    given = values.tolist()
    return lambda: float(release(given))


def diffprivlib_variance(values: np.ndarray, bounds: tuple[int, int], epsilon: float) -> Callable[[], float]:
    """Release the variance; it divides by the exact number of rows."""
    tools = module("diffprivlib")
    return lambda: float(tools.var(values, epsilon=epsilon, bounds=bounds))


def opendp_top(counts: list[int], k: int, epsilon: float) -> Callable[[], Sequence[int]]:
    """Choose the places of the k largest counts at once; a unit changes each count by at most 1, in one direction."""
    dp = module("opendp")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)

    def made(scale: float) -> Any:
        return dp.m.make_noisy_top_k(*space, dp.max_divergence(), k, scale)

    release = made(smallest_scale(lambda scale: float(made(scale).map(1)), epsilon))
    return lambda: list(release(counts))


def diffprivlib_top(counts: list[int], k: int, epsilon: float) -> Callable[[], Sequence[int]]:
    """Return the places of the k largest counts of a histogram with declared bins."""
    tools = module("diffprivlib")
    given, edges = np.repeat(np.arange(len(counts)), counts), np.arange(len(counts) + 1) - 0.5

    def release() -> Sequence[int]:
        noisy, _ = tools.histogram(given, epsilon=epsilon, bins=edges, range=(edges[0], edges[-1]))
        return [int(place) for place in np.argsort(-noisy, kind="stable")[:k]]

    return release


def opendp_keys(
    frame: pl.DataFrame, key: str, owner: str | None, pairs: int, epsilon: float, delta: float, part: float
) -> Callable[[], int]:
    """Find keys whose noisy count exceeds a threshold; `pairs` random keys of each unit count.

    `part` is the share of delta for the threshold. 1 means Laplace noise; 0.5 Gaussian noise, which spends the rest.
    """
    dp = module("opendp")
    gaussian = part < 1.0
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    distance = (dp.l02inf_distance if gaussian else dp.l01inf_distance)(dp.absolute_distance(T=int))
    pure = dp.zero_concentrated_divergence() if gaussian else dp.max_divergence()
    far = (pairs, math.isqrt(pairs) if gaussian else pairs, 1)  # a square number

    def made(scale: float, threshold: int) -> Any:
        return dp.m.make_noise_threshold(domain, distance, dp.approximate(pure), scale, threshold)

    def epsilon_of(scale: float) -> float:
        spent = made(scale, 2**30).map(far)[0]
        if not gaussian:
            return float(spent)
        return float(dp.c.make_zCDP_to_approxDP(_rho(dp, spent)).map(1).epsilon(delta * (1 - part)))

    scale = smallest_scale(epsilon_of, epsilon)
    low, high = 1, 2**20
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _leak(made, scale, middle, far) <= delta * part else (middle, high)
    release, generator = made(scale, high), np.random.default_rng(1)

    def found() -> int:
        kept = frame
        if owner is not None:
            order = pl.Series("order", generator.random(frame.height))
            kept = frame.with_columns(order).sort("order").group_by(owner, maintain_order=True).head(pairs)
        counts = kept.group_by(key).len()
        return len(release(dict(zip(counts[key].to_list(), counts["len"].to_list(), strict=True))))

    return found


def _leak(made: Callable[[float, int], Any], scale: float, threshold: int, far: tuple[int, ...]) -> float:
    """Return the delta of a threshold; 1 where the peer refuses the threshold."""
    try:
        return float(made(scale, threshold).map(far)[1])
    except Exception:  # the peer's own exception, where the threshold is too low
        return 1.0


def _rho(dp: Any, rho: float) -> Any:
    """Return Gaussian noise that costs exactly this rho: the peer converts rho to epsilon through a measurement."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return dp.m.make_gaussian(*space, scale=math.sqrt(0.5 / rho))
