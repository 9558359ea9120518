"""The distributions that releases draw from: sampler calls, recorded on two neighboring tables, and composed.

While a release runs, every sampler of `dpframe.noise` notes its arguments and draws nothing. Calls on a table and on
its neighbor show how far each noisy number moves. Together they give two distributions of each outcome, one for either
table. No figure that a `Mechanism` states is used.

**Bounds.** All errors go to one side: a delta that is stated here is never above the exact one. Where outcomes are
many, they are merged, which is post-processing. Losses are rounded down to a grid before they are added up. Outcomes
less likely than 10^-25 are left out. The Fourier transforms err by less than `ROUNDING`, absolutely. For normal noise
of more than 2^12 steps, rounding to a grid hides less than a part in 10^7 of its information; such numbers are
combined into one normal variable, whose distributions are moved closer by a part in 10^6.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaincc, logsumexp

from dpframe import local, noise
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.noise import coins
from dpframe.release import discovering

Floats = Any
Key = tuple[Any, ...]  # the pair of distributions of an outcome: a kind, and its parameters

ROUNDING = 1e-11  # absolute error of a delta
LEAST = 1e-25  # outcomes less likely are left out
FINE, MOST = 400, 40_000  # bins per scale, and limit of all bins
WIDE = 2.0**13  # steps per scale beyond which the grid of normal noise does not matter
FAR = 60.0  # exponent at which a density is cut
LONGEST = 2**20  # limit of the places in a grid of losses
SHARE = 0.005  # part of epsilon by which rounding may lower a sum of losses
COINS = ("tossed", "uniform", "others", "subsets")


@dataclass
class Draw:
    """The totals that one mechanism added noise to, and its sampler calls."""

    mechanism: Any
    totals: Any
    calls: list[tuple[str, tuple[Any, ...], Any]] = field(default_factory=list)  # sampler, arguments, returned values
    noisy: Any = None


@dataclass
class Record:
    """All draws of a release, in order."""

    draws: list[Draw] = field(default_factory=list)
    keys: list[tuple[Any, Any, Any]] = field(default_factory=list)  # of unknown groups: keys, steps, whether known
    inside: Draw | None = None


def samplers() -> tuple[str, ...]:
    """Return the functions of `dpframe.noise` that draw noise or choose."""
    others = {"fresh_key", "insecure_bits", "is_secure", "is_silent", "nonce", "stamp", "trial", "trial_of"}
    return tuple(name for name in noise.__all__ if name.islower() and name not in others)


@contextmanager
def recorded(before: Record | None = None) -> Iterator[Record]:
    """Record draws in this block: noise is 0, choices are the best; with `before`, outcomes repeat that record."""
    record = Record()
    with ExitStack() as stack:
        for name in samplers():
            stack.enter_context(patch.object(noise, name, _sampler(name, record, before)))
        for kind in _mechanisms(Mechanism):
            stack.enter_context(patch.object(kind, "add_noise", _adding(kind.add_noise, record, before)))
        for kind in local.BY_NAME.values():
            stack.enter_context(patch.object(kind, "reports", _reporting(kind.reports, record)))
        stack.enter_context(patch.object(discovering, "key_candidates", _finding(discovering.key_candidates, record)))
        yield record


def _mechanisms(kind: type) -> Iterator[Any]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("dpframe.") and "add_noise" in vars(child):
            yield child
        yield from _mechanisms(child)


def _sampler(name: str, record: Record, before: Record | None) -> Callable[..., Any]:
    def draw(*arguments: Any) -> Any:
        assert record.inside is not None, f"{name} is called by no mechanism"
        calls = record.inside.calls
        if name.endswith("choice"):
            given: Any = int(np.argmin(arguments[0]))
            if before is not None:
                given = before.draws[len(record.draws)].calls[len(calls)][2]
        elif name == "scaled_gaussian":
            given = np.zeros(arguments[0].size, dtype=np.int64)
        elif name == "truncated_generalized_gaussian":
            given = np.zeros(arguments[2].size, dtype=np.int64)
        else:
            given = np.zeros(arguments[-1], dtype=np.int64)
        calls.append((name, arguments, given))
        return given

    return draw


def _adding(add_noise: Any, record: Record, before: Record | None) -> Any:
    def spied(self: Any, totals: Any) -> Any:
        if record.inside is not None:
            return add_noise(self, totals)
        record.inside = Draw(self, np.array(totals).ravel())
        try:
            noisy = add_noise(self, totals)
        finally:
            draw, record.inside = record.inside, None
        if before is not None and before.draws[len(record.draws)].totals.size == draw.totals.size:
            noisy = before.draws[len(record.draws)].noisy.reshape(noisy.shape)
        draw.noisy = np.array(noisy)
        record.draws.append(draw)
        return noisy

    return spied


def _reporting(reports: Any, record: Record) -> Any:
    def spied(self: Any, rows: Any) -> Any:
        if len(rows):
            record.draws.append(Draw(self, np.array(rows), [("reports", (), None)]))
        return reports(self, rows)

    return spied


def _finding(key_candidates: Any, record: Record) -> Any:
    def spied(*arguments: Any) -> Any:
        keys, steps, known = key_candidates(*arguments)
        record.keys.append((keys.rows(), np.array(steps), np.array(known)))
        return keys, steps, known

    return spied


# Differences between two neighboring tables


def laws(one: Record, other: Record) -> Counter[Key]:
    """Return the pairs of distributions of all outcomes that differ between the tables, with the number of each."""
    assert len(one.draws) == len(other.draws), "how often noise is drawn depends on rows"
    found: Counter[Key] = Counter()
    keys = iter(zip(one.keys, other.keys, strict=True))
    for a, b in zip(one.draws, other.draws, strict=True):
        if isinstance(a.mechanism, Thresholded) and a.totals.size == one.keys[0][1].size:
            found += _of_keys(a, b, *next(keys))
        else:
            found += _of_draws(a, b)
    return _as_one(found)


def _as_one(found: Counter[Key]) -> Counter[Key]:
    """Combine all normal noise of very many steps into one number."""
    wide = [key for key in found if key[:2] == ("rounded_generalized_gaussian", 2.0) and key[2] > WIDE]
    squares = math.fsum(2.0 * found.pop(key) * (key[3] / key[2]) ** 2 for key in wide)
    if squares:
        found["normal", math.sqrt(squares) * (1.0 - 1e-6)] = 1
    return found


def _of_draws(a: Draw, b: Draw) -> Counter[Key]:
    assert type(a.mechanism) is type(b.mechanism), "what noise is drawn depends on rows"
    found: Counter[Key] = Counter()
    for (name, args, _), (same, others, _) in zip(a.calls, b.calls, strict=True):
        assert name == same, "what noise is drawn depends on rows"
        if name.endswith("choice"):
            if args[0].size != others[0].size or (args[0] != others[0]).any():
                found[name, tuple(args[0].tolist()), tuple(others[0].tolist())] += 1
        elif name == "reports":
            for here, there in zip(a.totals.tolist(), b.totals.tolist(), strict=True):
                if here != there:
                    found[name, a.mechanism, here, there] += 1
        elif name == "truncated_generalized_gaussian":
            p, scale, lowest, span = args
            assert (p, scale, span) == (others[0], others[1], others[3]), "the scale depends on rows"
            for here, there in zip(lowest.tolist(), others[2].tolist(), strict=True):
                if here != there:
                    found[name, p, scale, here, there, span] += 1
        else:
            found += _of_additive(name, args, others, a, b)
    return found


def _of_additive(name: str, args: Any, others: Any, a: Draw, b: Draw) -> Counter[Key]:
    """Return the pairs of distributions for added noise, from the move of each total in steps."""
    if name == "scaled_gaussian":
        assert (args[0] == others[0]).all(), "the scale depends on rows"
    else:
        assert args == others, "the scale, or how many numbers there are, depends on rows"
    if (ends := _ends(a.mechanism)) is not None:  # answers beyond the ends become the ends
        held = [np.clip(draw.totals, *ends) - ends[0] for draw in (a, b)]
        pairs = zip(*(totals.tolist() for totals in held), strict=True)
        return Counter(
            ("inflated", *args[:2], here, there, ends[1] - ends[0]) for here, there in pairs if here != there
        )
    moved = np.abs((a.totals.view(np.uint64) - b.totals.view(np.uint64)).view(np.int64))
    found: Counter[Key] = Counter()
    for place in np.flatnonzero(moved).tolist():
        move = int(moved[place])
        if name == "scaled_gaussian":
            found["rounded_generalized_gaussian", 2.0, float(args[0][place]) * math.sqrt(2.0), move] += 1
        else:
            found[(name, *args[:-1], move)] += 1
    return found


def _ends(mechanism: Any) -> tuple[int, int] | None:
    """Return the output bounds that replace answers beyond them, or None."""
    return mechanism.step_output if getattr(mechanism, "boundary", None) == "inflated" else None


def _of_keys(a: Draw, b: Draw, found: Any, others: Any) -> Counter[Key]:
    """Return keys of both tables as noisy numbers, and keys of one table only as shown or not shown."""
    ((name, args, _),), _ = a.calls, b.calls
    steps, known = [{}, {}], {}  # type: ignore[var-annotated]
    for side, (rows, numbers, flags) in enumerate((found, others)):
        steps[side] = dict(zip(rows, numbers.tolist(), strict=True))
        known |= dict(zip(rows, flags.tolist(), strict=True))
    pairs: Counter[Key] = Counter()
    for key in {**steps[0], **steps[1]}:
        here, there = (side.get(key) for side in steps)
        if here is not None and there is not None:
            if here != there:
                pairs[(name, *args[:-1], abs(here - there))] += 1
        else:
            assert not known[key], "a key that is known is a candidate of either table"
            alone = here if here is not None else there
            pairs["shown", name, *args[:-1], _line(a.mechanism) - int(alone or 0)] += 1
    return pairs


def _line(mechanism: Any) -> int:
    """Return the smallest noisy number whose key is shown, as the release itself decides."""
    low, high = -(2**40), 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bool(mechanism.is_shown(np.array([middle]))[0]) else (middle, high)
    return high


# The distributions of the samplers


@lru_cache(maxsize=4096)
def outcomes(key: Key) -> tuple[Floats, Floats]:
    """Return the probabilities of all outcomes on both sides; outcomes of a wide distribution are merged into bins."""
    return LAWS[key[0]](*key[1:])


def _discrete_laplace(scale: float, move: int) -> tuple[Floats, Floats]:
    """Use P(k) proportional to exp(-|k - move| / scale): up to 0, and from `move` on, the ratio is constant."""
    rate = 1.0 / scale
    edges = np.unique(np.linspace(0, move - 1, min(move, MOST)).astype(np.int64))
    low, high = edges[:-1].astype(float), edges[1:].astype(float)
    shares = -np.expm1(-rate * (high - low))
    ends = math.exp(-rate * move)
    p = np.concatenate([[ends], np.exp(-rate * (move - high)) * shares, [1.0]])
    q = np.concatenate([[1.0], np.exp(-rate * (low + 1.0)) * shares, [ends]])
    return p / (1.0 + math.exp(-rate)), q / (1.0 + math.exp(-rate))


def _truncated_discrete_laplace(scale: float, reach: int, move: int) -> tuple[Floats, Floats]:
    masses = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    masses /= masses.sum()
    nothing = np.zeros(min(move, 2 * reach + 1))
    return np.concatenate([nothing, masses]), np.concatenate([masses, nothing])


def _between(p: float, scale: float, edges: Floats) -> Floats:
    """Return the probabilities between neighboring edges, for density proportional to exp(-(|z| / scale)^p)."""
    with np.errstate(over="ignore"):
        beyond = gammaincc(1.0 / p, (np.abs(edges) / scale) ** p) / 2.0
    low, high = beyond[:-1], beyond[1:]
    return np.where(edges[:-1] >= 0.0, low - high, np.where(edges[1:] <= 0.0, high - low, 1.0 - low - high))


def _rounded_generalized_gaussian(p: float, scale: float, move: int) -> tuple[Floats, Floats]:
    far = math.ceil(scale * FAR ** (1.0 / p)) + 2
    width = max(1, int(scale / FINE), (2 * far + move) // MOST)
    inner = np.arange(-far, move + far + width, width) - 0.5
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return _between(p, scale, edges - move), _between(p, scale, edges)


def _normal(mu: float) -> tuple[Floats, Floats]:
    inner = np.arange(-9.0, mu + 9.0, 1.0 / FINE)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    scale = math.sqrt(2.0)
    return _between(2.0, scale, edges - mu), _between(2.0, scale, edges)


def _truncated_generalized_gaussian(p: float, scale: float, low: int, other: int, span: int) -> tuple[Floats, Floats]:
    laws = (_between(p, scale, np.arange(lowest, lowest + span + 2) - 0.5) for lowest in (low, other))
    one, two = (law / law.sum() for law in laws)
    return one, two


def _inflated(p: float, scale: float, place: int, other: int, span: int) -> tuple[Floats, Floats]:
    edges = np.concatenate([[-np.inf], np.arange(1, span + 1) - 0.5, [np.inf]])
    return _between(p, scale, edges - place), _between(p, scale, edges - other)


def _exponential_choice(losses: Sequence[float], others: Sequence[float]) -> tuple[Floats, Floats]:
    one, two = (np.exp(-np.array(each)) for each in (losses, others))
    return one / one.sum(), two / two.sum()


def _permuted_choice(losses: Sequence[float], others: Sequence[float]) -> tuple[Floats, Floats]:
    """Each option comes at a uniform time t; it is taken with p_i if none was before: p_i prod of (1 - p_j t)."""

    def law(each: Sequence[float]) -> Floats:
        chance = np.exp(-np.array(each))
        nodes, weights = np.polynomial.legendre.leggauss(len(each) // 2 + 1)  # exact for polynomials of that degree
        times = (nodes + 1.0) / 2.0
        factors = 1.0 - chance[:, None] * times
        products = np.array([np.prod(np.delete(factors, option, axis=0), axis=0) for option in range(len(each))])
        return chance * (products @ weights) / 2.0

    return law(losses), law(others)


def _shown(name: str, *rest: Any) -> tuple[Floats, Floats]:
    """Return the probability that a key of one side only is shown: its noise must be at least `missing` steps."""
    *law, missing = rest
    if name == "rounded_generalized_gaussian":
        p, scale = law
        chance = float(_between(p, scale, np.array([missing - 0.5, np.inf]))[0])
    elif name == "discrete_laplace":
        rate = 1.0 / law[0]
        chance = math.exp(-rate * missing) / (1.0 + math.exp(-rate))
    else:
        masses, _ = _truncated_discrete_laplace(*law, 0)
        chance = float(masses[np.arange(-law[1], law[1] + 1) >= missing].sum())
    return np.array([chance, 1.0 - chance]), np.array([0.0, 1.0])


def _reports(method: Any, here: Any, there: Any) -> tuple[Floats, Floats]:
    """Return the probabilities of all reports, from every way in which the coins of the code can fall."""
    one, two = (every_report(method, row) for row in (here, there))
    every = sorted({*one, *two}, key=repr)
    return np.array([one.get(report, 0.0) for report in every]), np.array([two.get(report, 0.0) for report in every])


LAWS: dict[str, Callable[..., tuple[Floats, Floats]]] = {
    "discrete_laplace": _discrete_laplace,
    "truncated_discrete_laplace": _truncated_discrete_laplace,
    "rounded_generalized_gaussian": _rounded_generalized_gaussian,
    "scaled_gaussian": _rounded_generalized_gaussian,  # each number has a scale of its own
    "truncated_generalized_gaussian": _truncated_generalized_gaussian,
    "normal": _normal,
    "inflated": _inflated,
    "exponential_choice": _exponential_choice,
    "permuted_choice": _permuted_choice,
    "shown": _shown,
    "reports": _reports,
}


# Enumeration of reports


@cache
def every_report(method: Any, row: Any) -> dict[Any, float]:
    """Return all reports of a row and their probabilities."""
    found: dict[Any, float] = defaultdict(float)
    path: list[int] | None = []
    while path is not None:
        coin = Branches(path)
        with ExitStack() as stack:
            for name in COINS:
                stack.enter_context(patch.object(coins, name, getattr(coin, name)))
            stack.enter_context(patch.object(coins, "rounded_randomly", lambda parts, bits: parts >> bits))
            (report,) = method.reports(np.array([row]))
        found[report] += coin.chance
        path = coin.following()
    assert math.isclose(sum(found.values()), 1.0, rel_tol=1e-12)
    return dict(found)


class Branches:
    """Draws that follow a given path, and record how many ways there are at each step of it."""

    one: Any = 1.0  # 1 in the type of probabilities

    def __init__(self, path: Sequence[int]) -> None:
        self.path, self.sizes, self.chance = list(path), list[int](), self.one

    def probability(self, chance: Any) -> Any:
        """Convert the probability of a coin to the type of `one`."""
        return float(chance)

    def choose(self, chances: Sequence[Any]) -> int:
        """Return one of the possible ways: the one on the path, or the first one beyond its end."""
        possible = [way for way, chance in enumerate(chances) if chance]
        step = len(self.sizes)
        way = possible[self.path[step] if step < len(self.path) else 0]
        self.sizes.append(len(possible))
        self.chance *= chances[way]
        return way

    def among(self, ways: int) -> int:
        """Return one of `ways` equally likely ways."""
        return self.choose([self.one / ways] * ways)

    def tossed(self, chance: Any, size: int) -> Any:
        true = self.probability(chance)
        return np.array([self.choose([1 - true, true]) == 1 for _ in range(size)], dtype=np.bool_)

    def uniform(self, most: int, size: int) -> Any:
        return np.array([self.among(most + 1) for _ in range(size)], dtype=np.int64)

    def others(self, truth: Any, size: int) -> Any:
        drawn = self.uniform(size - 2, truth.size)
        return drawn + (drawn >= truth)

    def subsets(self, chosen: int, among: int, rows: int) -> Any:
        every = list(combinations(range(among), chosen))
        flags = np.zeros((rows, among), dtype=np.bool_)
        for row in range(rows):
            flags[row, list(every[self.among(len(every))])] = True
        return flags

    def following(self) -> list[int] | None:
        """Return the path after this one, or None after the last one."""
        path = self.path + [0] * (len(self.sizes) - len(self.path))
        while path and path[-1] + 1 == self.sizes[len(path) - 1]:
            path.pop()
        return [*path[:-1], path[-1] + 1] if path else None


# Sums of losses


def _directed(key: Key, backward: bool) -> tuple[Floats, Floats]:
    p, q = outcomes(key)
    return (q, p) if backward else (p, q)


def largest_loss(found: Counter[Key]) -> float:
    """Return the largest loss of all outcomes together, in either direction."""

    def one(key: Key, backward: bool) -> float:
        p, q = _directed(key, backward)
        with np.errstate(divide="ignore"):
            return float(np.log(p[p > LEAST] / q[p > LEAST]).max(initial=0.0))

    return max(sum(count * one(key, way) for key, count in found.items()) for way in (False, True))


def renyi(found: Counter[Key], order: float) -> float:
    """Return the Rényi divergence of this order, the larger direction; infinite losses are not allowed."""

    def one(key: Key, backward: bool) -> float:
        p, q = _directed(key, backward)
        there = (p > LEAST) & (q > 0.0)
        return float(logsumexp(order * np.log(p[there]) - (order - 1.0) * np.log(q[there]))) / (order - 1.0)

    return max(sum(count * one(key, way) for key, count in found.items()) for way in (False, True))


class Composed:
    """The loss of all outcomes together, on a grid, never above the exact one; in one direction."""

    def __init__(self, found: Counter[Key], epsilon: float, backward: bool) -> None:
        each = []
        for key, count in found.items():
            p, q = _directed(key, backward)
            p, q = p[p > LEAST], q[p > LEAST]
            finite = q > 0.0
            each.append((np.log(p[finite] / q[finite]), p[finite], float(p[~finite].sum()), count))
        total = sum(count for *_, count in each)
        widest = sum(count * (float(np.ptp(losses)) if losses.size else 0.0) for losses, *_, count in each)
        step = max(SHARE * epsilon / max(total, 1), widest / LONGEST)
        certain, start = 1.0, 0
        grids = []
        for losses, masses, infinite, count in each:
            certain *= (1.0 - infinite) ** count
            places = np.floor(losses / step - 1e-6).astype(np.int64)
            grids.append((np.bincount(places - places.min(), masses), count))
            start += int(places.min()) * count
        size = next_fast_len(sum(count * (grid.size - 1) for grid, count in grids) + 1, real=True)
        whole: Any = np.ones(size // 2 + 1, dtype=complex)
        for grid, count in grids:
            whole = whole * rfft(grid, size) ** count
        self.masses = np.asarray(irfft(whole, size))
        self.losses = (start + np.arange(size)) * step
        self.infinite = 1.0 - certain

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on delta at this epsilon."""
        above = self.losses > epsilon
        gains = -np.expm1(epsilon - self.losses[above])
        return max(0.0, self.infinite + float(self.masses[above] @ gains) - ROUNDING)


class Curve:
    """The privacy curve of outcomes: lower bounds on delta at each epsilon."""

    def __init__(self, found: Counter[Key], epsilon: float) -> None:
        self.ways = [Composed(found, epsilon, way) for way in (False, True)] if found else []

    def delta(self, epsilon: float) -> float:
        """Return the delta of the larger direction."""
        return max((way.delta(epsilon) for way in self.ways), default=0.0)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at this delta."""
        low, high = 0.0, max((float(way.losses[-1]) for way in self.ways), default=0.0)
        for _ in range(40):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low
