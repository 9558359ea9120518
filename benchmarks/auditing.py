"""Black-box audits of privacy: releases on two neighboring frames, and the epsilon that their differences prove.

Only the public surface is used. A frame holds many equal public groups, each a copy of one small table with its own
people, so that one call draws one independent sample per group; a person is in one group only, so what holds for the
call holds for each group. An event is fixed on one half of the samples, and the other half bounds epsilon from below.
Everything else that a caller can see (exceptions, warnings, logs, dtypes, keys, row order, provenance, charges) must
be equal on both sides.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize, special

import dpframe as dpf
from dpframe import noise

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]  # a number per sample: large speaks for the first side
Row = tuple[int, Any, int]  # cell, value, person
Bound = Callable[[Any, Any, int, float], Any]

GROUPS = 1_000  # samples of one call
THRESHOLDS = 200
ROUNDING = 1e-9  # of epsilons that were converted from mu
LOW_BITS = 8
NOISE_DRAWS = ("discrete_laplace", "rounded_generalized_gaussian")


@dataclass(frozen=True)
class Price:
    """What a call is asked to cost, and the ledger that has exactly that to spend."""

    name: str
    epsilon: float
    delta: float = 0.0
    accounting: str = "basic"

    def ledger(self, unit: dpf.PrivacyUnit) -> dpf.Ledger:
        return dpf.Ledger(self.epsilon, self.delta, unit=unit, accounting=self.accounting)  # type: ignore[arg-type]

    def options(self, ledger: dpf.Ledger) -> dict[str, Any]:
        delta = {"delta": self.delta} if self.delta and self.accounting == "basic" else {}
        return {"epsilon": self.epsilon, "ledger": ledger, **delta}


LAPLACE = Price("Laplace", 1.0)
GAUSSIAN = Price("Gaussian", 1.0, 0.2)  # a large delta, since an audit sees no event of probability 1e-6
GAUSSIAN_GDP = Price("Gaussian, gdp", 4.0, 1e-3, "gdp")


@dataclass(frozen=True)
class Case:
    """Two neighboring tables, held in `groups` copies by a frame of `engine`, and what is asked of it."""

    name: str
    engine: str
    price: Price
    first: Sequence[Row]
    second: Sequence[Row]
    ask: Callable[..., Any]  # (frame.dp, groups, options) -> released frame
    unit: dpf.PrivacyUnit = field(default_factory=dpf.PrivacyUnit)
    groups: int = GROUPS

    def frame(self, rows: Sequence[Row]) -> Any:
        """Copy the rows into every group; "place" numbers the cells of all groups in one column, for histograms."""
        cell, value, person = (list(column) for column in zip(*rows, strict=True))
        group = np.repeat(np.arange(self.groups), len(rows))
        columns = {
            "group": group,
            "cell": np.tile(cell, self.groups),
            "value": value * self.groups,
            "user": np.tile(person, self.groups) + 100 * group,
            "place": np.tile(cell, self.groups) + 2 * group,
        }
        return frame_of(self.engine, columns)


@dataclass(frozen=True)
class Seen:
    """What one call showed: the numbers that noise protects, one row per group, and all the rest as text."""

    numbers: Floats | None
    rest: str
    spent: dpf.PrivacyLoss


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    case: Case
    samples: int
    claimed: dpf.PrivacyLoss
    bound: float  # epsilon is above this, but for a chance of `alpha`
    event: str
    problems: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        """Whether privacy is broken: more was lost than the ledger charged, or something other than noise differs."""
        return bool(self.problems) or self.bound > self.claimed.epsilon


def frame_of(engine: str, columns: dict[str, Any]) -> Any:
    """Make a frame as a user would: in pandas the dtype of "value" depends on what is missing."""
    if engine == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    frame = pl.DataFrame(columns, schema_overrides={"value": pl.Float64}, strict=False)
    return frame.lazy() if engine == "LazyFrame" else frame


def audit(case: Case, samples: int, alpha: float = 1e-4) -> Audit:
    """Draw `samples` on each side, and bound epsilon from below with confidence 1 - alpha."""
    first, first_rest, claimed = collect(case, case.first, samples)
    second, second_rest, other = collect(case, case.second, samples)
    problems = differences(first_rest, second_rest)
    if min(claimed.epsilon, other.epsilon) < case.price.epsilon * (1 - ROUNDING):
        problems.append(f"charged {claimed.epsilon:g} and {other.epsilon:g} for {case.price.epsilon:g}")
    if first is None or second is None:
        return Audit(case, 0, claimed, 0.0, "none", (*problems, "no numbers were released"))
    bound, event = lower_bound(first, second, bound_for(case.price, claimed), alpha)
    return Audit(case, len(first), claimed, bound, event, tuple(problems))


# --- what a caller sees -----------------------------------------------------------------------------------------------


def collect(case: Case, rows: Sequence[Row], samples: int) -> tuple[Floats | None, set[str], dpf.PrivacyLoss]:
    """Gather samples of the noisy numbers, the different texts of all else, and what one call was charged."""
    frame = case.frame(rows)
    calls = [observe(case, frame) for _ in range(math.ceil(samples / case.groups))]
    numbers = [call.numbers for call in calls if call.numbers is not None]
    rest = {call.rest for call in calls} | {refusal(case, frame)}
    return np.concatenate(numbers) if len(numbers) == len(calls) else None, rest, calls[-1].spent


def observe(case: Case, frame: Any) -> Seen:
    """One release on a ledger of its own, with everything that it lets out."""
    ledger = case.price.ledger(case.unit)
    with watched() as seen:
        try:
            result = case.ask(frame.dp, case.groups, case.price.options(ledger))
        except Exception as error:
            seen["raised"], result = f"{type(error).__name__}: {error}", None
    seen["charges"] = ledger.to_frame().drop("time").to_dicts()
    numbers = None
    if result is not None:
        noisy, names = noisy_columns(result)
        seen |= public_parts(result, noisy)
        numbers = np.column_stack([result[name].to_numpy() for name in names]).astype(np.float64)
        numbers = numbers.reshape(case.groups, -1)
    return Seen(numbers, json.dumps(seen, sort_keys=True, default=str), ledger.spent)


def refusal(case: Case, frame: Any) -> str:
    """How a second call is refused, its budget being spent: in the same words whatever the rows."""
    ledger = case.price.ledger(case.unit)
    options = case.price.options(ledger)
    try:
        case.ask(frame.dp, case.groups, options)
        case.ask(frame.dp, case.groups, options)
    except Exception as error:
        return f"second call: {type(error).__name__}: {error}"
    return "a second call was answered although the ledger could pay for one only"


@contextlib.contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Warnings, log records and prints of a call."""
    seen: dict[str, Any] = {}
    printed, records = io.StringIO(), logging.Handler()
    logged: list[str] = []
    records.emit = lambda record: logged.append(f"{record.name} {record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
    logger = logging.getLogger("dpframe")
    level, spreads = logger.level, logger.propagate
    logger.addHandler(records)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            yield seen
    finally:
        logger.removeHandler(records)
        logger.setLevel(level)
        logger.propagate = spreads
    texts = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
    seen |= {"warnings": texts, "logs": logged, "printed": printed.getvalue()}


def noisy_columns(result: Any) -> tuple[set[str], list[str]]:
    """Name the columns that noise protects, and among them those that show it undenoised, one sample per group."""
    noisy, names = set(), []
    for name, measure in result.dp.provenance["measures"].items():
        own = [name, f"{name}_noisy", *([f"{name}_error"] if measure["verb"] == "mean" else [])]
        present = [column for column in own if column in result.columns]
        noisy |= set(present)
        names += [column for column in present if column != name or f"{name}_noisy" not in present]
    return noisy, names


def public_parts(result: Any, noisy: set[str]) -> dict[str, Any]:
    """List library, dtypes, keys, order, attrs and provenance of a result, without what depends on the noise."""
    facts = copy.deepcopy(result.dp.provenance)
    del facts["sha256"]
    for measure in facts["measures"].values():
        for step in measure["denoise"] or []:
            step.pop("chose", None)
            step.pop("estimated_rmse", None)
    names = list(result.columns)
    return {
        "library": f"{type(result).__module__}.{type(result).__name__}",
        "dtypes": {name: str(result[name].dtype) for name in names},
        "columns": names,
        "public": {name: result[name].to_list() for name in names if name not in noisy},
        "attrs": sorted(getattr(result, "attrs", {})),
        "index": str(getattr(result, "index", "")),
        "provenance": facts,
    }


def differences(first: set[str], second: set[str]) -> list[str]:
    """In words, what but the noise differs between the sides, or between the calls of one side."""
    problems = [text for text in first | second if text.startswith("a second call was answered")]
    if first != second or len(first | second) > 2:  # the releases' text, and the refusal's
        shown = sorted(first ^ second) or sorted(first)
        problems.append("outputs differ: " + " | ".join(_apart(shown)))
    return problems


def _apart(texts: Sequence[str]) -> list[str]:
    """Show two texts from where they part."""
    common = 0
    while len({text[common : common + 1] for text in texts}) == 1 and common < len(texts[0]):
        common += 1
    return [text[max(0, common - 40) : common + 80] for text in texts[:2]]


# --- epsilon from below -----------------------------------------------------------------------------------------------


def lower_bound(first: Floats, second: Floats, bound: Bound, alpha: float) -> tuple[float, str]:
    """Epsilon is above this bound but for a chance of alpha; and the event that shows it.

    The event, a score and its threshold, is fixed on one half of the samples: a quarter teaches the scores, and a
    quarter chooses, since a score looks too good on what it learned from. The other half is used once.
    """
    learn, choose, test = ((first[place::step], second[place::step]) for place, step in ((0, 4), (2, 4), (1, 2)))
    best, event = -1.0, ("none", np.zeros(0), 0.0, False)
    for words, score in scores(*learn):
        one, two = score(choose[0]), score(choose[1])
        cuts = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, THRESHOLDS)))
        for swapped in (False, True):
            hits = [_hits(side, cuts, swapped) for side in ((two, one) if swapped else (one, two))]
            found = bound(*hits, len(one), alpha)
            if found.max() > best:
                best, event = float(found.max()), (words, score, float(cuts[found.argmax()]), swapped)
    words, score, cut, swapped = event
    hits = [_hits(score(side), np.array([cut]), swapped) for side in (test[::-1] if swapped else test)]
    proved = float(bound(*hits, len(test[0]), alpha)[0])
    return proved, f"{words} {'<' if swapped else '>='} {cut:.6g}"


def _hits(values: Floats, cuts: Floats, below: bool) -> NDArray[np.int64]:
    """How many values lie at or above each cut, or below it."""
    under = np.searchsorted(np.sort(values), cuts)
    return under if below else values.size - under


def bound_for(price: Price, claimed: dpf.PrivacyLoss) -> Bound:
    """Choose the bound that fits a claim: (epsilon, delta) of one event, or under gdp its mu, at the claim's delta."""
    if price.accounting == "gdp":
        return lambda hits, others, size, alpha: epsilon_of_mu(mu_bound(hits, others, size, alpha), claimed.delta)
    return lambda hits, others, size, alpha: epsilon_bound(hits, others, size, alpha, claimed.delta)


def epsilon_bound(hits: Any, others: Any, size: int, alpha: float, delta: float) -> Floats:
    """log((P - delta) / Q) for P at its lower and Q at its upper limit, each with confidence 1 - alpha / 2."""
    more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
    return np.log(np.maximum((more - delta) / fewer, 1.0))


def mu_bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
    """Bound mu by the trade-off of one event: the distance of the two normal quantiles."""
    more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.maximum(special.ndtri(more) - special.ndtri(fewer), 0.0), nan=0.0)


def at_least(hits: Any, size: int, alpha: float) -> Floats:
    """Clopper and Pearson's lower confidence limit of a probability."""
    hits = np.asarray(hits)
    return np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), size - hits + 1, alpha), 0.0)


def at_most(hits: Any, size: int, alpha: float) -> Floats:
    """Clopper and Pearson's upper confidence limit of a probability."""
    return 1.0 - at_least(size - np.asarray(hits), size, alpha)


def epsilon_of_mu(mu: Any, delta: float) -> Floats:
    """Find where mu-Gaussian privacy has this delta (Dong, Roth and Su 2022, Corollary 2.13); monotone in mu."""
    mu = np.atleast_1d(mu)
    top = float(mu.max())
    if top <= 0.0:
        return np.zeros(mu.size)
    grid = np.linspace(0.0, top, 65)
    return np.interp(mu, grid, [_epsilon_of_mu(value, delta) for value in grid])


def _epsilon_of_mu(mu: float, delta: float) -> float:
    def excess(epsilon: float) -> float:
        left, right = special.ndtr(mu / 2 - epsilon / mu), special.log_ndtr(-mu / 2 - epsilon / mu)
        return float(left - math.exp(epsilon + right) - delta)

    if mu <= 0.0 or excess(0.0) <= 0.0:
        return 0.0
    return float(optimize.brentq(excess, 0.0, mu * mu / 2 + 40.0 * mu))


# --- scores -----------------------------------------------------------------------------------------------------------


def scores(first: Floats, second: Floats) -> list[tuple[str, Score]]:
    """Learn from samples what may tell the sides apart: values, likelihood ratios, low bits."""
    found: list[tuple[str, Score]] = []
    for place in range(first.shape[1]):
        found.append((f"value {place}", lambda samples, place=place: samples[:, place]))
        found.append((f"low bits {place}", _low_bits(first[:, place], second[:, place], place)))
    if first.shape[1] > 1:
        found.append(("Gaussian likelihood ratio", _linear(first, second)))
        found.append(("Laplace likelihood ratio", _laplace(first, second)))
    return found


def _linear(first: Floats, second: Floats) -> Score:
    variance = (first.var(axis=0) + second.var(axis=0)) / 2
    weights = (first.mean(axis=0) - second.mean(axis=0)) / np.where(variance > 0, variance, 1.0)
    return lambda samples: samples @ weights


def _laplace(first: Floats, second: Floats) -> Score:
    one, two = np.median(first, axis=0), np.median(second, axis=0)
    scale = np.abs(second - two).mean(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return lambda samples: ((np.abs(samples - two) - np.abs(samples - one)) / scale).sum(axis=1)


def _low_bits(first: Floats, second: Floats, place: int) -> Score:
    """How much oftener the first side showed the lowest bits of a sample's significand."""
    counts = [np.bincount(_bits(side), minlength=2**LOW_BITS) + 1.0 for side in (first, second)]
    ratio = np.log(counts[0] / counts[1])
    return lambda samples: ratio[_bits(samples[:, place])]


def _bits(values: Floats) -> NDArray[np.int64]:
    return np.ascontiguousarray(values).view(np.int64) & (2**LOW_BITS - 1)


# --- seeded bugs ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def scaled_noise(factor: float) -> Iterator[None]:
    """Draw noise of `factor` times the calibrated scale: a bug that an audit must find."""
    real = {name: getattr(noise, name) for name in NOISE_DRAWS}
    for name, draw in real.items():
        setattr(noise, name, _scaled(draw, factor))
    try:
        yield
    finally:
        for name, draw in real.items():
            setattr(noise, name, draw)


def _scaled(draw: Callable[..., Any], factor: float) -> Callable[..., Any]:
    signature = inspect.signature(draw)

    def broken(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        bound.arguments["scale"] *= factor
        return draw(*bound.args, **bound.kwargs)

    return broken
