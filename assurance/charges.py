"""Compare the charges of every release path with the exact privacy curve of what was drawn.

    python -m assurance.charges --mixtures 200
    python -m assurance.charges --only local --part rows
    python -m assurance.charges --only "people; gdp" --part mixtures

For each path of `assurance.release_paths`, accounting, kind of neighbors, unit and noise, it checks one entry, and a
ledger filled with equal entries. For each accounting, kind of neighbors and unit, it also fills ledgers with random
mixtures of entries. The curve is the hockey-stick divergence of the distributions that the samplers were called for,
on two neighboring tables (`assurance.drawn`); it uses no statement of a `Mechanism` about itself. The program exits
with 1 if a curve exceeds the promise, if less than half of a charge is needed, or if a charge is above 1.01 of the
least that the declared curve of its noise needs, or below that least.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product, zip_longest
from pathlib import Path as File
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri

import dpframe as dpf
from assurance import drawn, share_of, verdict
from assurance.drawn import Curve, Key, Record, largest_loss, recorded
from assurance.release_paths import PATHS, Path, frame_of, noises_of, unit_of
from dpframe.accounting.registry import SHIPPED
from dpframe.ledger.ledger import Ledger
from dpframe.mechanisms.laplace import TruncatedLaplace
from dpframe.mechanisms.quantile_choice import QuantileChoice
from dpframe.mechanisms.selection import ExponentialMechanism, Peeling, PermuteAndFlip
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.streams import stream_path

ACCOUNTINGS = tuple(kind.name for kind in SHIPPED)
NEIGHBORS = ("add-remove", "replace")
LIMIT, DELTA, RESERVE = 2.0, 1e-4, 1e-5
PRICES = (0.05, 0.15, 0.4)  # epsilons of the entries of mixtures
EQUAL = {"pure": 0.1, "gaussian": 0.4}  # epsilon of a single entry, and of each equal entry
MOST_ENTRIES, ASKED = 10_000, 30  # limit of equal entries; the first 30 are real calls
MIXED = 25  # calls of a mixture; a ledger takes those that fit
POINTS = np.linspace(0.0, 2.0, 9)  # epsilons at which curves are compared under gdp
CLOSE = 1.0 + 1e-9
LEAST_NEEDED = 1.01  # limit of a charge, relative to the least that the declared curve needs


@dataclass(frozen=True)
class Row:
    """A row of the table: a path and how it is charged."""

    path: Path
    noise: str
    unit: str
    accounting: str
    neighbors: str

    def __str__(self) -> str:
        return f"{self.path.name}; {self.noise}; {self.unit}; {self.accounting}; {self.neighbors}"


@dataclass(frozen=True)
class Entry:
    """The draws of one call on two neighboring tables, and its charge."""

    rows: tuple[Any, ...]  # rows of the unit that differs, on the first table
    laws: Counter[Key]
    amount: tuple[Fraction, ...]
    drew: tuple[Any, ...]  # the sampler calls on the first table
    noises: tuple[Any, ...]
    sites: frozenset[str]

    def __hash__(self) -> int:
        return id(self)


@dataclass
class Spent:
    """The charges of a call, as the ledger received them."""

    amounts: list[tuple[Fraction, ...]] = field(default_factory=list)
    sites: set[str] = field(default_factory=set)


def table(only: str = "") -> list[Row]:
    """Return all rows, from the registry of paths."""
    return [
        row
        for path in PATHS
        for noise in path.noises
        for unit in path.units
        for accounting in ACCOUNTINGS
        for neighbors in (NEIGHBORS[1:] if path.locally else NEIGHBORS)
        if only in str(row := Row(path, noise, unit, accounting, neighbors)) and _is_sold(row)
    ]


def _is_sold(row: Row) -> bool:
    """Return whether the ledger accepts the noise: no mu is proven for shape 3."""
    if row.path.needs_accounting and not _has_accounting():
        return False
    return not (row.path.name == "count, noise shape 3" and row.accounting == "gdp")


@lru_cache(maxsize=1)
def _has_accounting() -> bool:
    import importlib.util

    return importlib.util.find_spec("dp_accounting") is not None


@contextmanager
def ledger_of(row: Row, *, durable: bool | None = None, keys: bool | None = None) -> Iterator[Ledger]:
    """Yield a new ledger for a row."""
    more: dict[str, Any] = {}
    if row.accounting != "basic" and (row.path.keys if keys is None else keys):
        more["keys_delta"] = RESERVE
    with tempfile.TemporaryDirectory() as folder:
        if row.path.durable if durable is None else durable:
            more |= {"path": File(folder) / "a.ledger", "dataset": "made up"}
        unit = unit_of(row.unit, row.neighbors)
        yield Ledger(epsilon=LIMIT, delta=DELTA, accounting=row.accounting, unit=unit, **more)


@contextmanager
def charged() -> Iterator[Spent]:
    """Record the charges to ledgers in this block, and the functions that make them."""
    spent = Spent()

    def spied(original: Callable[..., Any], begins: bool) -> Callable[..., Any]:
        def called(self: Any, entry: Any) -> Any:
            frame = sys._getframe(1)
            spent.sites.add(f"{frame.f_globals['__name__']}.{frame.f_code.co_name}")
            before = self._store.last().total
            given = original(self, entry)
            after = self._store.last().total
            amount = tuple(Fraction(b) - a for a, b in zip_longest(before, after, fillvalue=Fraction(0)))
            if any(amount):
                spent.amounts.append(amount)
            return given

        return called

    with ExitStack() as stack:
        stack.enter_context(patch.object(Ledger, "take", spied(Ledger.take, False)))
        stack.enter_context(patch.object(stream_path, "begun", spied(stream_path.begun, True)))
        yield spent


def _asked(
    row: Row, rows: Sequence[Any], ledger: Ledger, epsilon: float, before: Record | None
) -> tuple[Record, Spent]:
    frame = frame_of(rows, row.unit)
    price = row.path.price(row.noise, row.accounting, epsilon)
    with recorded(before) as record, charged() as spent:
        row.path.ask(frame.dp, ledger=ledger, **price)
    return record, spent


def _drew(record: Record) -> tuple[Any, ...]:
    """Return the calls of samplers, which a second call of the same query must repeat."""
    return tuple(
        (type(draw.mechanism).__name__, draw.totals.size, name, *(one for one in args if isinstance(one, float | int)))
        for draw in record.draws
        for name, args, _ in draw.calls
    )


@lru_cache(maxsize=4096)
def entries_of(row: Row, epsilon: float, keys: bool | None = None) -> tuple[Entry, ...]:
    """Return an entry for each pair of neighboring tables, with one call on each table."""
    found = []
    for one, other in row.path.pairs(row.neighbors):
        with ledger_of(row, keys=keys) as ledger:
            record, spent = _asked(row, one, ledger, epsilon, None)
        with ledger_of(row, keys=keys) as again:
            beside, same = _asked(row, other, again, epsilon, record)
        assert spent.amounts == same.amounts, f"{row}: the charge depends on rows"
        amount = tuple(sum(each, Fraction(0)) for each in zip(*spent.amounts, strict=True))
        price = row.path.price(row.noise, row.accounting, epsilon)
        with ledger_of(row, keys=keys) as planning:
            ask = row.path.plan or (lambda dp, **more: noises_of(row.path.ask(dp.preview, **more)))
            noises = tuple(ask(frame_of(one, row.unit).dp, ledger=planning, **price))
        found.append(
            Entry(tuple(one), drawn.laws(record, beside), amount, _drew(record), noises, frozenset(spent.sites))
        )
    return tuple(found)


# Promised and needed privacy loss


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta of two normal distributions that are mu apart."""
    if mu == 0.0:
        return 0.0
    return float(ndtr(mu / 2.0 - epsilon / mu) - math.exp(epsilon + float(log_ndtr(-mu / 2.0 - epsilon / mu))))


def _mu_of_pure(epsilon: float) -> float:
    """Return the least mu that covers all pure releases: that of randomized response, at the corner of its curve."""
    return -2.0 * float(ndtri(1.0 / (1.0 + math.exp(epsilon))))


def objections(row: Row, entry: Entry) -> list[str]:
    """Return the losses of an entry that exceed its charge."""
    said, curve = [], Curve(entry.laws, LIMIT)
    amount, kept = entry.amount, Fraction(0)
    if row.accounting == "basic":
        epsilon, delta = float(amount[0]), float(amount[1])
        if delta == 0.0 and (loss := largest_loss(entry.laws)) > epsilon * CLOSE:
            said.append(f"a loss of {loss:.6g}, charged {epsilon:g} with no delta")
        if delta and (found := curve.delta(epsilon)) > delta * CLOSE:
            said.append(f"delta {found:.4g} at epsilon {epsilon:g}, charged {delta:g}")
        return said
    if row.path.keys:
        *rest, kept = amount
        amount = tuple(rest)
    if row.accounting == "gdp":
        mu = math.sqrt(float(amount[0]))
        for epsilon in POINTS.tolist():
            promised = gaussian_delta(mu, epsilon) + float(kept)
            if (found := curve.delta(epsilon)) > promised * CLOSE + drawn.ROUNDING:
                said.append(f"delta {found:.4g} at epsilon {epsilon:g}, where mu {mu:.4g} says {promised:.4g}")
        return said[:1]
    finite = Counter({key: count for key, count in entry.laws.items() if key[0] != "shown"})
    with ledger_of(row) as ledger:
        orders = getattr(ledger.accounting, "inside", ledger.accounting).orders
    for order, most in zip(orders, amount, strict=True):
        if (found := drawn.renyi(finite, float(order))) > float(most) * CLOSE:
            said.append(f"a Rényi divergence of {found:.6g} of order {float(order):.4g}, charged {float(most):.6g}")
    shown = 1.0 - math.prod(
        (1.0 - drawn.outcomes(key)[0][0]) ** n for key, n in entry.laws.items() if key[0] == "shown"
    )
    if shown > float(kept) * CLOSE:
        said.append(f"a chance of {shown:.4g} that a key is shown, charged {float(kept):g}")
    return said[:1]


def used(row: Row, entry: Entry) -> float:
    """Return a lower bound on the used part of a charge: the epsilon of the exact loss at the same delta."""
    if row.accounting == "basic" and not entry.amount[1]:
        return largest_loss(entry.laws) / float(entry.amount[0])
    if row.accounting == "basic":
        return Curve(entry.laws, LIMIT).epsilon(float(entry.amount[1])) / float(entry.amount[0])
    with ledger_of(row) as ledger:
        loss = ledger.accounting.loss(entry.amount)
    return Curve(entry.laws, LIMIT).epsilon(loss.delta) / loss.epsilon


def needed(row: Row, entry: Entry) -> float | None:
    """Return the charge over the least that the declared curves of its noises need; None under basic accounting."""
    if row.accounting == "basic":
        return None
    amount = entry.amount[:-1] if row.path.keys else entry.amount
    if row.accounting == "gdp":
        return float(amount[0]) / sum(least_mu_squared(noise, row) for noise in entry.noises)
    with ledger_of(row) as ledger:
        orders = getattr(ledger.accounting, "inside", ledger.accounting).orders
    parts = [
        float(most) / sum(least_renyi(noise, row, float(order)) for noise in entry.noises)
        for order, most in zip(orders, amount, strict=True)
    ]
    return max(parts)


def _declared(noise: Any, row: Row) -> tuple[str, Any]:
    """Return the kind of curve that a noise declares (normal, pure, bounded range, or its own), and its parameters."""
    noise = (
        noise.noise if isinstance(noise, Thresholded) else noise.choice if isinstance(noise, QuantileChoice) else noise
    )
    if isinstance(noise, Peeling):
        kind, epsilon = _declared(noise.choice, row)
        return f"{kind} {noise.chosen}", epsilon
    said: dict[type, Callable[[], tuple[str, Any]]] = {
        ExponentialMechanism: lambda: ("bounded", float(noise.budget)),
        PermuteAndFlip: lambda: ("pure", float(noise.budget)),
        dpf.Gaussian: lambda: ("normal", noise.step_sensitivity / noise.step_scale),
        dpf.Laplace: lambda: ("laplace", (noise.step_scale, math.ceil(noise.step_sensitivity))),
        dpf.GeneralizedGaussian: lambda: _of_shape(noise.p, noise.step_scale, noise.step_sensitivity),
        TruncatedLaplace: lambda: ("pure", noise.counts / noise.step_scale),
        # assurance.calibrations compares this worst loss with sums of 240 digits
        dpf.TruncatedGeneralizedGaussian: lambda: ("pure", noise.pure_epsilon),
    }
    for kind, declared in said.items():
        if isinstance(noise, kind):
            return declared()
    return "pure", float(noise.loss) * (2 if row.unit == "people" else 1)  # a method of the local model


def _of_shape(p: float, scale: float, move: float) -> tuple[str, Any]:
    if p == 2.0:
        return "normal", math.sqrt(2.0) * move / scale
    return ("continuous", move / scale) if p == 1.0 else ("shape", (p, move / scale))


def least_mu_squared(noise: Any, row: Row) -> float:
    """Return the least mu^2 whose curve covers the declared one; for pure noise, it covers any pure release."""
    kind, value = _declared(noise, row)
    kind, _, times = kind.partition(" ")
    if kind == "normal":
        return float(value) ** 2
    epsilon = value[1] / value[0] if kind == "laplace" else value
    if kind == "bounded":  # the corners of all t lie on the curve of half of epsilon (Dong, Durfee and Rogers 2020)
        epsilon = epsilon / 2.0
    return _mu_of_pure(epsilon) ** 2 * int(times or 1)


@lru_cache(maxsize=4096)
def _renyi_of_two(p: float, q: float, order: float) -> float:
    """Return the divergence of two distributions on two outcomes; p and q are the probabilities of the first one."""
    logs = [order * math.log(p) - (order - 1) * math.log(q), order * math.log1p(-p) - (order - 1) * math.log1p(-q)]
    return float(np.logaddexp(*logs)) / (order - 1)


@lru_cache(maxsize=256)
def _renyi_of_shape(p: float, move: float, order: float) -> float:
    """Return the divergence of two densities like exp(-|x|^p), `move` apart, integrated around its highest point.

    For a large order, this point is beyond any outcome that is ever drawn, so outcomes cannot show it.
    """
    share = math.exp(math.log1p(-1.0 / order) / (p - 1.0))
    top = -move * share / (1.0 - share)

    def exponent(x: Any) -> Any:
        return (order - 1.0) * abs(x - move) ** p - order * abs(x) ** p

    with mpmath.workdps(30):
        highest = exponent(mpmath.mpf(top))
        ends = sorted(
            {2.0 * top - 20.0, top - 5.0, top - 1.0, top, top + 1.0, min(0.0, top + 5.0), 0.0, move, 3.0, 12.0}
        )
        whole = mpmath.quad(lambda x: mpmath.exp(exponent(x) - highest), ends, maxdegree=10)
        return float((highest + mpmath.log(whole / (2 * mpmath.gamma(1 + 1 / mpmath.mpf(p))))) / (order - 1.0))


def least_renyi(noise: Any, row: Row, order: float) -> float:
    """Return the Rényi divergence of the declared curve."""
    kind, value = _declared(noise, row)
    kind, _, times = kind.partition(" ")
    if kind == "normal":
        return order * float(value) ** 2 / 2.0
    if kind == "laplace":
        return drawn.renyi(Counter([("discrete_laplace", *value)]), order)
    if kind == "continuous":
        parts = [
            math.log(order / (2 * order - 1)) + (order - 1) * value,
            math.log((order - 1) / (2 * order - 1)) - order * value,
        ]
        return float(np.logaddexp(*parts)) / (order - 1)
    if kind == "shape":
        return _renyi_of_shape(*value, order)
    if kind == "pure":
        p = 1.0 / (1.0 + math.exp(-value))
        return _renyi_of_two(p, 1.0 - p, order)

    def loss(t: float) -> float:  # two outcomes with losses t and t - epsilon
        q = math.expm1(value - t) / math.expm1(value)
        return -_renyi_of_two(min(q * math.exp(t), 1.0 - 1e-15), q, order)

    edge = value * 1e-6
    best = minimize_scalar(loss, bounds=(edge, value - edge), method="bounded", options={"xatol": value * 1e-7})
    return float(-best.fun) * int(times or 1)


# Ledgers that are full


@dataclass
class Filled:
    """A ledger that took no more: what it holds, its curve at the promised epsilon, and what was promised."""

    entries: int
    delta: float
    promised: float

    @property
    def holds(self) -> bool:
        """True if the exact delta may be the promised one."""
        return self.delta <= self.promised * CLOSE


def _filled(ledger: Ledger, parts: Sequence[tuple[Row, Entry, float]], *, ends: bool, asks: int) -> Filled:
    """Make one call after another, skipping refused ones, or stopping at the first if `ends`; add up all that is drawn.

    The first `asks` entries are real calls, which must draw what they drew alone; the others only repeat their charge.
    """
    whole: Counter[Key] = Counter()
    taken = 0
    for asked, entry, epsilon in parts:
        try:
            if taken < asks:
                record, _ = _asked(asked, entry.rows, ledger, epsilon, None)
                assert _drew(record)[: len(entry.drew)] == entry.drew, f"{asked}: another call draws other noise"
            else:
                cost = ledger.accounting.loss(entry.amount)
                ledger.charge(entry.amount, cost=cost, query=str(asked), unit=unit_of(asked.unit, asked.neighbors))
        except dpf.BudgetExceeded:
            if ends:
                break
            continue
        whole += entry.laws
        taken += 1
    curve = Curve(whole, LIMIT)
    return Filled(taken, curve.delta(LIMIT), DELTA)


def equal_entries(row: Row) -> Filled:
    """Fill a ledger with equal entries, each on the pair of tables that costs the most."""
    epsilon = EQUAL[row.noise]
    entry = worst(row, epsilon)
    with ledger_of(row) as ledger:
        return _filled(ledger, [(row, entry, epsilon)] * MOST_ENTRIES, ends=True, asks=ASKED)


@lru_cache(maxsize=4096)
def worst(row: Row, epsilon: float, keys: bool | None = None) -> Entry:
    """Return the entry of the pair of tables whose delta is the largest at half of epsilon."""
    return max(entries_of(row, epsilon, keys), key=lambda entry: Curve(entry.laws, LIMIT).delta(epsilon / 2.0))


def mixtures(
    accounting: str, neighbors: str, unit: str, size: int, seed: int, paths: Sequence[Path] = PATHS
) -> Iterator[Filled]:
    """Fill ledgers with random entries of all paths; in each tenth ledger, all entries are real calls."""
    draw = random.Random(f"{accounting} {neighbors} {unit} {seed}")
    rows = [
        row
        for row in table()
        if row.path in paths
        and (row.accounting, row.neighbors, row.unit) == (accounting, neighbors, unit)
        and not (row.path.durable or row.path.heavy)
    ]
    for number in range(size):
        parts = []
        for _ in range(MIXED):
            row, epsilon = draw.choice(rows), draw.choice(PRICES)
            with suppress(dpf.BudgetExceeded):  # a single call may cost too much
                parts.append((row, worst(row, epsilon, True), epsilon))
        with ledger_of(rows[0], durable=False, keys=True) as ledger:
            yield _filled(ledger, parts, ends=False, asks=0 if number % 10 else MIXED)


# The command


@dataclass(frozen=True)
class Found:
    """The measurements for a row of the table."""

    row: Row
    objections: tuple[str, ...]
    used: float
    needed: float | None
    full: Filled

    @property
    def wrong(self) -> list[str]:
        """Descriptions of all faults that were found."""
        said = list(self.objections)
        if not self.full.holds:
            said.append(
                f"{self.full.entries} equal entries: delta {self.full.delta:.4g}, promised {self.full.promised:g}"
            )
        if self.must_use and self.used < self.row.path.half:
            said.append(f"no more than {self.used:.3g} of the charge is known to be needed")
        if self.needed is not None and self.needed > LEAST_NEEDED:
            said.append(f"charged {self.needed:.4g} of the least that is needed")
        if self.needed is not None and self.needed * CLOSE < 1.0:
            said.append(f"charged only {self.needed:.4g} of what the declared curve needs")
        return said

    @property
    def must_use(self) -> bool:
        """True if the tables attain the bounds: pure noise under basic, Gaussian under gdp."""
        return (self.row.noise, self.row.accounting) in (("pure", "basic"), ("gaussian", "gdp"))


def measured(row: Row, *, full: bool = True) -> Found:
    """Measure single entries of a row, and a ledger full of them."""
    entries = entries_of(row, EQUAL[row.noise])
    said = tuple(words for entry in entries for words in objections(row, entry))
    share = max(used(row, entry) for entry in entries)
    return Found(row, said, share, needed(row, entries[0]), equal_entries(row) if full else Filled(0, 0.0, DELTA))


def main() -> int:
    """Measure all rows, then mixtures; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Hold every charge against the exact curve of what was drawn.")
    parser.add_argument("--mixtures", type=int, default=200, help="of each accounting, kind of neighbors and unit")
    parser.add_argument("--part", choices=("rows", "mixtures"), help="one part alone: it takes hours on one core")
    parser.add_argument("--only", default="", help="rows and mixtures whose name contains this")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="of the rows, with K from 0 to N - 1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong, most, mixed, started = 0, 0.0, 0, time.perf_counter()
    rows = [] if options.part == "mixtures" else share_of(table(options.only), options.share)
    for row in rows:
        found = measured(row)
        wrong, most = wrong + bool(found.wrong), max(most, found.full.delta)
        least = "" if found.needed is None else f"{found.needed:.4f}"
        print(
            f"{row!s:<75}{found.used:>7.3f}{least:>8}{found.full.entries:>4}{found.full.delta:>11.2e}"
            f"  {'; '.join(found.wrong)}",
            flush=True,
        )
    print(f"{len(rows)} rows, {wrong} wrong, {time.perf_counter() - started:.0f} s", flush=True)
    every = product(ACCOUNTINGS, NEIGHBORS, ("rows", "people")) if options.part != "rows" else ()
    for accounting, neighbors, unit in every:
        if options.only not in (name := f"{unit}; {accounting}; {neighbors}"):
            continue
        full = list(mixtures(accounting, neighbors, unit, options.mixtures, options.seed))
        over = [one for one in full if not one.holds]
        sizes, deltas = [one.entries for one in full], [one.delta for one in full]
        wrong, mixed, most = wrong + len(over), mixed + len(full), max(most, *deltas)
        print(
            f"{len(full)} mixtures; {name}: {min(sizes)} to {max(sizes)} entries, "
            f"delta {np.median(deltas):.2e}, at most {max(deltas):.2e} of {DELTA:g}; {len(over)} above it",
            flush=True,
        )
    print(f"{time.perf_counter() - started:.0f} s, {wrong} wrong")
    return verdict(wrong, rows=len(rows), mixtures=mixed, largest_delta=float(most / DELTA))


if __name__ == "__main__":
    raise SystemExit(main())
