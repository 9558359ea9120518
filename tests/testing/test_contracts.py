"""The contract checks: all that ships passes them, and broken examples of each kind fail with the name of the rule."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.accounting import Accounting, Basic, GaussianDP, RenyiDP
from dpframe.denoise import DENOISERS
from dpframe.testing import ContractBroken, check_accounting, check_denoiser, check_engine, check_mechanism

DELTA = Fraction(1, 10**6)
bounded = dpf.TruncatedGeneralizedGaussian.calibrate
choice = dpf.ExponentialMechanism.of_steps
SHIPPED = {
    "laplace": dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5),
    "laplace of hardly any noise": dpf.Laplace.calibrate(sensitivity=1, epsilon=20),
    "laplace of a wide reach": dpf.Laplace.calibrate(sensitivity=7, epsilon=2),
    "laplace on a fine grid": dpf.Laplace.calibrate(sensitivity=3.3, epsilon=1, grid=2.0**-20),
    "gaussian": dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=1e-6),
    "gaussian of little noise": dpf.Gaussian.calibrate(sensitivity=1, epsilon=30, delta=1e-3),
    "gaussian on a fine grid": dpf.Gaussian.calibrate(sensitivity=7, epsilon=0.5, delta=1e-6, grid=2.0**-25),
    "p = 1": dpf.GeneralizedGaussian.calibrate(p=1, sensitivity=1, epsilon=1, delta=1e-6),
    "p = 1.5": dpf.GeneralizedGaussian.calibrate(p=1.5, sensitivity=1, epsilon=1, delta=1e-6, grid=0.1),
    "p = 2": dpf.GeneralizedGaussian.calibrate(p=2, sensitivity=1, epsilon=1, delta=1e-6, grid=2.0**-12),
    "p = 3": dpf.GeneralizedGaussian.calibrate(p=3, sensitivity=1, epsilon=1, delta=1e-6),
    "p = 16": dpf.GeneralizedGaussian.calibrate(p=16, sensitivity=1, epsilon=1, delta=1e-3),
    "truncated": bounded(p=2, sensitivity=1, epsilon=1, output=(0, 20)),
    "truncated of any number of cells": bounded(p=1, sensitivity=1, epsilon=1, output=(0, 50), cells=math.inf),
    "inflated": bounded(p=1, sensitivity=2, epsilon=0.5, output=(-100, 2000), boundary="inflated"),
    "choice": choice(1, 0.5, monotonic=True, options=10),
    "choice of scores that move both ways": choice(2, 1.0, monotonic=False, options=3),
    "choice by permutation": dpf.PermuteAndFlip.of_steps(1, 0.5, monotonic=True, options=10),
    "choice of one by permutation": dpf.PermuteAndFlip.of_steps(1, 1.0, monotonic=False, options=1),
}
PUBLIC = [getattr(dpf, name) for name in dpf.__all__]
CLASSES = {value for value in PUBLIC if isinstance(value, type) and issubclass(value, dpf.Mechanism)}


def test_every_mechanism_that_ships_is_checked():
    assert {type(mechanism) for mechanism in SHIPPED.values()} == CLASSES - {dpf.Mechanism}


def some(values, few):
    """Return the values as parameters; all except a few are slow tests."""
    return [
        pytest.param(value, id=name, marks=() if name in few else pytest.mark.slow) for name, value in values.items()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", some(SHIPPED, {"laplace", "gaussian on a fine grid", "p = 3", "truncated", "choice"})
)
def test_mechanisms_that_ship_keep_the_contract(mechanism):
    check_mechanism(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize(
    "denoiser", some({name: name for name in DENOISERS}, DENOISERS.keys() - {"auto", "trend-filter"})
)
def test_denoisers_that_ship_keep_the_contract(denoiser):
    check_denoiser(denoiser)


@pytest.mark.slow
@pytest.mark.parametrize(
    "accounting", [Basic(), GaussianDP(DELTA), RenyiDP(Fraction(2), DELTA)], ids=lambda one: one.name
)
def test_accountings_that_ship_keep_the_contract(accounting):
    check_accounting(accounting)


def broken(check, extension, rule):
    """Expect a refusal that names the rule; its error is both a DpframeError and an AssertionError."""
    with pytest.raises(ContractBroken, match=f"^{rule}: ") as caught:
        check(extension)
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, dpf.DpframeError)


# Mechanisms


def geometric(scale, size):
    return noise.discrete_laplace(scale, size)


@dataclass(frozen=True)
class Toy(dpf.Mechanism):
    """Correct discrete Laplace noise."""

    sensitivity: float = 1.0
    steps: float = 4.0
    grid: float = 1.0
    name = "toy"
    norm = 1.0

    @property
    def pure_epsilon(self):
        return math.nextafter(self.sensitivity / self.grid / self.steps, math.inf)

    def tail(self, steps):
        rate = 1.0 / self.steps
        return np.exp(-rate * steps) / (1.0 + math.exp(-rate))

    def add_noise(self, totals):
        return self.plus(totals, geometric(self.steps, totals.size))

    def plus(self, totals, drawn):
        return (totals.view(np.uint64) + drawn.reshape(totals.shape).view(np.uint64)).view(np.int64)


class TooLittle(Toy):
    def add_noise(self, totals):
        return self.plus(totals, geometric(0.98 * self.steps, totals.size))


class TooLittleUnnoticed(Toy):
    """The scale of the noise is 2% too small, and so is the stated variance."""

    variance = replace(dpf.Laplace(1, 0.98 * 4.0)).variance

    def add_noise(self, totals):
        return self.plus(totals, geometric(0.98 * self.steps, totals.size))


class LowCurve(Toy):
    def delta(self, epsilon):
        return 0.98 * super().delta(epsilon)


class LowManyCurve(Toy):
    def deltas(self, epsilons):
        return 0.98 * super().deltas(epsilons)


class RisingCurve(Toy):
    def delta(self, epsilon):
        return 0.0 if epsilon >= self.pure_epsilon else 0.2 + 0.1 * epsilon


class SmallEpsilon(Toy):
    def epsilon(self, delta):
        return 0.9 * super().epsilon(delta)


class Narrow(Toy):
    def interval(self, confidence):
        return max(0.0, super().interval(confidence) - self.grid)


class WrongVariance(Toy):
    variance = 33.0


class LowMu(Toy):
    mu_squared = Fraction(1, 20)


class LowDivergence(Toy):
    def renyi(self, order):
        return super().renyi(order) / 10


class FloatCharge(Toy):
    mu_squared = 0.2


class OneNoise(Toy):
    def add_noise(self, totals):
        return self.plus(totals, np.repeat(geometric(self.steps, totals.size), 2)[: totals.size])


class HalfShared(Toy):
    """The second half of the cells has the noise of the first half."""

    def add_noise(self, totals):
        drawn = geometric(self.steps, -(-totals.size // 2))
        return self.plus(totals, np.resize(drawn, totals.size))


class Mirrored(Toy):
    """The last cell has the negated noise of the first, and so on inward."""

    def add_noise(self, totals):
        drawn = geometric(self.steps, -(-totals.size // 2))
        return self.plus(totals, np.concatenate([drawn, -drawn[::-1]])[: totals.size])


class SharedSize(Toy):
    """Two neighbors have noise of the same size, each with its own sign."""

    def add_noise(self, totals):
        sizes = np.abs(np.repeat(geometric(self.steps, totals.size), 2)[: totals.size])
        return self.plus(totals, np.where(noise.discrete_laplace(1e6, totals.size) & 1, sizes, -sizes))


class OneNoiseForAllRows(Toy):
    """Every row of a table has the noise of the first row."""

    def add_noise(self, totals):
        drawn = geometric(self.steps, totals.shape[-1])
        return self.plus(totals, np.ascontiguousarray(np.broadcast_to(drawn, totals.shape)))


class FirstCellBare(Toy):
    def add_noise(self, totals):
        drawn = geometric(self.steps, totals.size)
        drawn[:1] = 0
        return self.plus(totals, drawn)


class OfUnequalTotals(Toy):
    def add_noise(self, totals):
        scale = self.steps / 2 if totals.size and np.ptp(totals) else self.steps
        return self.plus(totals, geometric(scale, totals.size))


class OfFloats(Toy):
    """Totals beyond 2**53 are rounded to floats, together with their noise."""

    def add_noise(self, totals):
        drawn = geometric(self.steps, totals.size).reshape(totals.shape)
        return (totals.astype(np.float64) + drawn).astype(np.int64)


class Cut(Toy):
    def add_noise(self, totals):
        return self.plus(totals, np.clip(geometric(self.steps, totals.size), -30, 30))


class Printing(Toy):
    def add_noise(self, totals):
        print(totals[:1])
        return super().add_noise(totals)


class Logging(Toy):
    def add_noise(self, totals):
        logging.getLogger("toy").warning("%s", totals[:1])
        return super().add_noise(totals)


class SameAgain(Toy):
    def add_noise(self, totals):
        return self.plus(totals, np.resize(KEPT, totals.size))


KEPT = geometric(4.0, 2**20)


class Saturating(Toy):
    def add_noise(self, totals):
        drawn = geometric(self.steps, totals.size).reshape(totals.shape)
        ends = np.iinfo(np.int64)
        found = self.plus(totals, drawn)
        wrapped = (found < totals) != (drawn < 0)
        return np.where(wrapped, np.where(drawn > 0, ends.min + 10**6, ends.max - 10**6), found)


class Raising(Toy):
    def add_noise(self, totals):
        if totals.size and abs(int(totals.max())) > 2**62:
            raise OverflowError("too large")
        return super().add_noise(totals)


class Floats(Toy):
    def add_noise(self, totals):
        return super().add_noise(totals).astype(np.float64)


class InPlace(Toy):
    def add_noise(self, totals):
        totals += geometric(self.steps, totals.size).reshape(totals.shape)
        return totals


class OffCentre(Toy):
    def add_noise(self, totals):
        drawn = geometric(self.steps, totals.size)
        return self.plus(totals, drawn + (np.arange(totals.size) % 20 == 0))


class OfTheTotal(Toy):
    def add_noise(self, totals):
        own = super().add_noise(totals)
        return np.where(np.abs(totals) > 1000, self.plus(totals, geometric(1.1 * self.steps, totals.size)), own)


class Bounded(Toy):
    """Answers stop at 0, but the curve is that of noise that does not depend on the total."""

    additive = False

    tail = dpf.Mechanism.tail
    pure_epsilon = None
    variance = 32.0

    def interval(self, confidence):
        return 100.0

    def delta(self, epsilon):
        return max(0.0, 1e-9 - epsilon)

    def add_noise(self, totals):
        return np.maximum(0, super().add_noise(totals))


class HeavyTail(Toy):
    def tail(self, steps):
        return 0.3 / steps**2 + 1e-12


BROKEN = {
    TooLittle: "variance",
    TooLittleUnnoticed: "variance",
    LowCurve: "delta",
    LowManyCurve: "curve",
    RisingCurve: "curve",
    SmallEpsilon: "curve",
    Narrow: "interval",
    WrongVariance: "variance",
    LowMu: "charge",
    LowDivergence: "charge",
    FloatCharge: "charge",
    OneNoise: "independence",
    HalfShared: "independence",
    Mirrored: "independence",
    SharedSize: "independence",
    OneNoiseForAllRows: "(shape|independence)",
    FirstCellBare: "shape",
    OfUnequalTotals: "shape",
    OfFloats: "additive",
    Cut: "tail",
    Printing: "silence",
    Logging: "silence",
    SameAgain: "independence",
    Saturating: "add_noise",
    Raising: "add_noise",
    Floats: "add_noise",
    InPlace: "add_noise",
    OffCentre: "centre",
    OfTheTotal: "additive",
    Bounded: "delta",
}


def test_the_toy_that_the_broken_ones_are_made_of_is_whole():
    check_mechanism(Toy())


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_broken_mechanisms_are_refused(kind):
    broken(check_mechanism, kind(), BROKEN[kind])


def test_noise_with_heavy_tails_is_refused():
    with pytest.raises((ContractBroken, dpf.InvalidArgument)):
        check_mechanism(HeavyTail())


def test_a_sensitivity_between_two_steps_counts_as_the_next():
    """A total moves by whole steps, so 1.5 steps count as 2; an excess within a rounding error does not count."""
    assert Toy(1.5).delta(0.2) == Toy(2.0).delta(0.2) > Toy(1.0).delta(0.2)
    assert Toy(math.nextafter(1.0, 2.0)).delta(0.1) == Toy(1.0).delta(0.1)


@pytest.mark.parametrize("name", ["grid", "sensitivity", "norm", "name"])
def test_a_member_of_the_wrong_kind_is_refused(name):
    class Wrong(Toy):
        pass

    toy = Wrong()
    object.__setattr__(toy, name, -1.0)
    broken(check_mechanism, toy, "members")


def test_what_is_no_mechanism_is_refused():
    broken(check_mechanism, dpf.Laplace, "kind")
    broken(check_mechanism, 3.0, "kind")
    broken(check_mechanism, type("Bare", (dpf.Mechanism,), {"name": "bare"})(), "members")


def test_a_choice_that_is_too_sharp_is_refused():
    class Sharp(dpf.ExponentialMechanism):
        def choose(self, scores):
            return int(np.argmax(scores)) if np.ptp(scores) else super().choose(scores)

    broken(check_mechanism, Sharp.of_steps(1, 0.5, monotonic=True, options=3), "choice")


# Denoisers


def changes_shape(values, noise):
    return values.ravel()[:1]


def reads_randomness(values, noise):
    return values + np.random.normal(size=values.shape)


def seeds_randomness(values, noise):
    np.random.seed(3)
    return values + np.random.normal(size=values.shape)


def remembers(values, noise, seen=[]):  # noqa: B006
    seen.append(1)
    return values + len(seen)


def in_place(values, noise):
    values *= 0.5
    return values


def not_finite(values, noise):
    return values / values


def fails_on_one(values, noise):
    return np.full(values.shape, np.sort(values.ravel())[1])


def words(values, noise):
    return "denoised"


def needs_more(values, noise, *, prior):
    return values


def one_argument(values):
    return values


BAD = {
    changes_shape: "shape",
    reads_randomness: "determinism",
    seeds_randomness: "randomness",
    remembers: "determinism",
    in_place: "input",
    not_finite: "finite",
    fails_on_one: "success",
    words: "numbers",
    needs_more: "signature",
    one_argument: "signature",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("denoiser", BAD, ids=lambda one: one.__name__)
def test_broken_denoisers_are_refused(denoiser):
    broken(check_denoiser, denoiser, BAD[denoiser])


def test_what_is_no_denoiser_is_refused():
    broken(check_denoiser, "no such", "signature")


# Accountings


@dataclass(frozen=True)
class Sum(Accounting):
    """Correct Gaussian differential privacy, with the default methods."""

    delta: Fraction = Fraction(0)
    name = "sum"

    def of_ledger(self, epsilon, delta):
        return type(self)(delta)

    def limit(self, epsilon, delta):
        return GaussianDP(delta).limit(epsilon, delta)

    def charge(self, price, limit, mechanisms):
        return GaussianDP(self.delta).charge(price, limit, mechanisms)

    def loss(self, amount):
        return GaussianDP(self.delta).loss(amount)


class Undercharging(Sum):
    """Charges 3% too little."""

    def charge(self, price, limit, mechanisms):
        return tuple(part * Fraction(97, 100) for part in super().charge(price, limit, mechanisms))


class OneOfTwo(Sum):
    """Charges only the most expensive of several releases in a call."""

    def charge(self, price, limit, mechanisms):
        return (max(one.mu_squared for one in mechanisms),)


class EachOnce(Sum):
    """Charges only one of several equal releases in a call."""

    def charge(self, price, limit, mechanisms):
        return super().charge(price, limit, tuple(set(mechanisms)))


class HalfShares(Sum):
    """Charges only half of a cost that is a share of the limit."""

    def charge(self, price, limit, mechanisms):
        whole = super().charge(price, limit, mechanisms)
        return whole if price.share is None else tuple(part / 2 for part in whole)


class KeysForNothing(Sum):
    """Does not charge the delta of discovered keys."""

    takes_keys = True


class HalfFull(Sum):
    def filled(self, total, limit):
        return super().filled(total, limit) / 2


class HighLimit(Sum):
    def limit(self, epsilon, delta):
        return tuple(part * Fraction(103, 100) for part in super().limit(epsilon, delta))


class PureAtNothing(Sum):
    """Charges only half of mu squared for pure noise."""

    def charge(self, price, limit, mechanisms):
        each = [one.mu_squared if one.exact_mu else one.mu_squared / 2 for one in mechanisms]
        return (sum(each, Fraction(0)),)


class LowReading(Sum):
    def loss(self, amount):
        said = super().loss(amount)
        return dpf.PrivacyLoss(said.epsilon * 0.97, said.delta)


class FloatAmount(Sum):
    def charge(self, price, limit, mechanisms):
        return tuple(map(float, super().charge(price, limit, mechanisms)))


class TwoParts(Sum):
    def charge(self, price, limit, mechanisms):
        return super().charge(price, limit, mechanisms) * 2


class Greedy(Sum):
    """Spends twice the share of the limit."""

    def parts(self, price, limit, shares, *, pure):
        price = price if price.share is None else replace(price, share=price.share * 2)
        return super().parts(price, limit, shares, pure=pure)


class HighRemaining(Sum):
    def remaining(self, amount):
        said = super().remaining(amount)
        return dpf.PrivacyLoss(said.epsilon * 1.1, said.delta)


class AlwaysFull(Sum):
    def filled(self, total, limit):
        return Fraction(2)


class WholeParts(Sum):
    """Gives each statistic of a call the budget of the whole call."""

    def parts(self, price, limit, shares, *, pure):
        return super().parts(price, limit, (Fraction(1),), pure=pure) * len(shares)


class NoName(Sum):
    name = ""


UNSOUND = {
    Undercharging: "(charge|reading)",
    OneOfTwo: "charge",
    EachOnce: "charge",
    HalfShares: "charge",
    KeysForNothing: "charge",
    HalfFull: "filled",
    HighLimit: "charge",
    PureAtNothing: "charge",
    LowReading: "reading",
    FloatAmount: "amount",
    TwoParts: "amount",
    Greedy: "share",
    HighRemaining: "(share|remaining)",
    AlwaysFull: "filled",
    WholeParts: "parts",
    NoName: "name",
}


@pytest.mark.slow
def test_the_accounting_that_the_broken_ones_are_made_of_is_whole():
    check_accounting(Sum())


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNSOUND, ids=lambda kind: kind.__name__)
def test_broken_accountings_are_refused(kind):
    broken(check_accounting, kind(), UNSOUND[kind])


def test_what_is_no_accounting_is_refused():
    broken(check_accounting, "gdp", "kind")


# Errors, refusals and warnings


@dataclass(frozen=True)
class Unfinished(Toy):
    def tail(self, steps):
        raise ValueError("not yet")


class Telling(Toy):
    def add_noise(self, totals):
        warnings.warn(f"these totals: {totals}", stacklevel=1)
        return super().add_noise(totals)


def wrecking(values, noise, *, graph):
    graph[...] = 0
    return values


def test_a_denoiser_that_overwrites_the_graph_is_found():
    broken(check_denoiser, wrecking, "input")


class Schema:
    """An engine that states Python types as its dtypes."""

    def __init__(self, frame):
        self.frame = frame

    def schema(self):
        return dict.fromkeys(self.frame.columns, int)

    def fold(self, columns, piece, by):
        return piece(self.frame)


class Failing(Schema):
    def schema(self):
        return self.frame.schema

    def fold(self, columns, piece, by):
        raise ValueError("not yet")


class Losing(Failing):
    """The schema is correct, but `fold` returns None for two rows or more, so that dpframe raises its own error."""

    def fold(self, columns, piece, by):
        return piece(self.frame) if self.frame.height < 2 else None


def test_an_error_of_what_is_tried_breaks_its_contract():
    broken(check_mechanism, Unfinished(), "success: a mechanism must not fail, and it raised ValueError")
    broken(check_mechanism, Telling(), "add_noise: it must not fail, whatever the totals, and raised UserWarning")
    broken(check_engine, Failing, "success: an engine must not fail, and it raised ValueError")
    broken(
        partial(check_engine, tables=0, every=53), Losing, "success: an engine must not fail, and it raised InvalidType"
    )


@pytest.mark.long
def test_a_refusal_of_everything_is_told():
    broken(check_engine, Schema, "totals: every question is refused")
    with pytest.raises(dpf.InvalidType, match="schema must give Polars dtypes by name"):
        dpf.of(Schema(pl.DataFrame({"x": [1]}))).preview.count(epsilon=1)
