"""Declared curves: the charges of pure losses and of bounded ranges under every accounting."""

from __future__ import annotations

import contextlib
import math
import pickle
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.accounting import Accounting, Basic, BoundedRange, GaussianDP, PureLoss, RenyiDP
from dpframe.accounting.registry import KeysReserve
from dpframe.exact import down
from dpframe.mechanisms import curves, declared, gaussian_curve
from dpframe.mechanisms.declared import is_curve
from dpframe.privacy import Price
from dpframe.testing import ContractBroken, check_accounting

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 20.0)
DELTA = Fraction(1, 10**5)
ACCOUNTINGS = {
    "basic": Basic(),
    "gdp": GaussianDP(DELTA),
    "rdp": RenyiDP(Fraction(1), DELTA),
    "reserve": KeysReserve(GaussianDP(DELTA), Fraction(1, 10**6)),
}


def limit_of(accounting):
    return accounting.limit(Fraction(1), DELTA)


def delta_of_coins(epsilon, count, at):
    """Return the exact delta of several reports of randomized response together, up to double precision."""
    heads, chance = np.arange(count + 1), 1.0 / (1.0 + math.exp(-epsilon))
    losses = (2 * heads - count) * epsilon
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in heads]
    chances = np.exp(np.array(logs) + heads * math.log(chance) + (count - heads) * math.log1p(-chance))
    return float((chances * np.maximum(0.0, -np.expm1(at - losses))).sum())


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_as_many_reports_as_keep_the_promise(accounting):
    """The exact loss of all reports that a ledger of (1, 1e-5) admits must be within (1, 1e-5)."""
    unit = dpf.PrivacyUnit(neighbors="replace")
    ledger = dpf.Ledger(1, 1e-5, unit=unit, accounting=accounting)
    method = dpf.local.RandomizedResponse(["A", "B"], epsilon=0.05)
    count = 0
    with contextlib.suppress(dpf.BudgetExceeded):
        for count in range(100):  # noqa: B007  (how many there were before the one that is refused)
            pl.DataFrame({"ward": ["A"]}).dp.local.randomize("ward", method=method, ledger=ledger)
    assert 15 <= count < 60
    assert delta_of_coins(0.05, count, 1.0) <= 1e-5
    assert delta_of_coins(0.05, 73, 1.0) > 2e-3, "what a charge by bounded range let through"


@pytest.mark.parametrize("name", ACCOUNTINGS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pure_loss_costs_what_randomized_response_costs(name, epsilon):
    accounting, price = ACCOUNTINGS[name], Price(Fraction(str(epsilon)))
    limit, coin = limit_of(accounting), dpf.Laplace.calibrate(sensitivity=1, epsilon=epsilon)
    declared = accounting.charge(price, limit, (PureLoss(epsilon),))
    drawn = accounting.charge(price, limit, (coin,))
    assert len(declared) == len(limit)
    assert [float(part) for part in declared] == pytest.approx([float(part) for part in drawn], rel=1e-9)


@pytest.mark.parametrize("name", ACCOUNTINGS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_bounded_range_costs_what_the_exponential_mechanism_costs(name, epsilon):
    accounting, price = ACCOUNTINGS[name], Price(Fraction(str(epsilon)))
    for monotonic in (True, False):  # the range is epsilon in both cases, since the scores are scaled to it
        choice = dpf.ExponentialMechanism.of_steps(1, epsilon, monotonic=monotonic, options=5)
        charges = [accounting.charge(price, limit_of(accounting), (one,)) for one in (BoundedRange(epsilon), choice)]
        assert charges[0] == charges[1]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_range_costs_no_more_than_a_pure_loss_and_a_pure_loss_than_a_range_of_twice_as_much(epsilon):
    whole, choice, twice = PureLoss(epsilon), BoundedRange(epsilon), BoundedRange(2 * epsilon)
    assert choice.mu_squared <= whole.mu_squared <= twice.mu_squared * (1 + Fraction(1, 2**40))
    for order in (Fraction(3, 2), Fraction(2), Fraction(50)):
        assert choice.renyi(order) <= whole.renyi(order) <= twice.renyi(order)
    for at in (0.0, epsilon / 3, 0.9 * epsilon):
        assert choice.delta(at) <= whole.delta(at) <= twice.delta(at) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_pair_of_outcomes_with_losses_in_the_range_tells_more(epsilon):
    """Two outcomes with losses t and t - epsilon, for many t: deltas and divergences are at most the declared ones."""
    choice, whole = BoundedRange(epsilon), math.exp(epsilon)
    for t in np.linspace(0.02, 0.98, 25) * epsilon:
        x = math.exp(t)
        q = (whole - x) / (x * (whole - 1.0))
        p = x * q
        for at in np.linspace(0.0, 0.95 * epsilon, 6):
            exact = max(0.0, p - math.exp(at) * q) + max(0.0, (1.0 - p) - math.exp(at) * (1.0 - q))
            assert exact <= choice.delta(float(at)) * (1 + 1e-9) + 1e-15
        for order in (1.5, 2.0, 10.0):
            logs = [order * math.log(a) + (1 - order) * math.log(b) for a, b in ((p, q), (1 - p, 1 - q))]
            moment = max(logs) + math.log(sum(math.exp(one - max(logs)) for one in logs))
            assert moment / (order - 1) <= float(choice.renyi(Fraction(order))) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("kind", [PureLoss, BoundedRange])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_curve_of_a_declared_loss_is_one(kind, epsilon):
    curve = kind(epsilon)
    assert is_curve(curve)
    assert not is_curve(kind)
    assert curve.pure_epsilon == epsilon == curve.epsilon(0.0)
    assert curve.delta(epsilon) == 0.0
    points = np.linspace(-epsilon, epsilon, 21)
    many = curve.deltas(points)
    assert np.all(np.diff(many) <= 1e-15)
    for at in (0.0, epsilon / 2):
        assert curve.deltas(np.array([at]))[0] == pytest.approx(curve.delta(at), rel=1e-9)
        if delta := curve.delta(at):
            assert curve.epsilon(delta) == pytest.approx(at, rel=1e-9, abs=1e-12)
    gaussian = curves.of_gaussian(math.sqrt(float(curve.mu_squared)), np.linspace(0.0, 2 * epsilon, 9))
    assert np.all(curve.deltas(np.linspace(0.0, 2 * epsilon, 9)) <= gaussian * (1 + 1e-9) + 1e-14)
    assert (curve.exact_mu, curve.infinite, curve.keys_delta, curve.apart) == (False, 0.0, 0, False)


def test_they_are_values():
    assert PureLoss(0.1) == PureLoss(Fraction(1, 10)) != BoundedRange(0.1)
    assert len({PureLoss(0.1), PureLoss(0.1), BoundedRange(0.1)}) == 2
    assert repr(PureLoss(0.1)) == "PureLoss(0.1)"
    assert repr(BoundedRange(epsilon=2)) == "BoundedRange(2.0)"
    assert pickle.loads(pickle.dumps(PureLoss(0.1))) == PureLoss(0.1)
    with pytest.raises(FrozenInstanceError):
        PureLoss(0.1).budget = Fraction(1)


@pytest.mark.parametrize("kind", [PureLoss, BoundedRange])
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, 1e-320, "1", None, True])
def test_what_is_no_epsilon_is_refused(kind, epsilon):
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match="epsilon must be"):
        kind(epsilon)


def test_they_are_compared_as_mechanisms_are():
    coin, choice = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1), dpf.ExponentialMechanism
    drawn = [coin] * 10 + [choice.of_steps(1, 0.2, monotonic=True, options=3)] * 5
    declared = [PureLoss(0.1)] * 10 + [BoundedRange(0.2)] * 5
    found = [dpf.compare_accounting(workload, delta=1e-6) for workload in (drawn, declared)]
    assert found[1].workload == "10 x any release of epsilon 0.1; 5 x any choice of bounded range 0.2"
    for one, other in zip(*(compared.rows for compared in found), strict=True):
        assert one.accounting == other.accounting
        assert other.epsilon == (None if one.epsilon is None else pytest.approx(one.epsilon, rel=1e-4))


@dataclass(frozen=True)
class Halved(Accounting):
    """An accounting that charges too little for pure losses, or one that works only for noise with a scale."""

    delta: Fraction = Fraction(0)
    asks_scale: bool = False
    name = "halved"

    def of_ledger(self, epsilon, delta):
        return Halved(delta, self.asks_scale)

    def limit(self, epsilon, delta):
        return (Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2,)

    def charge(self, price, limit, mechanisms):
        for one in mechanisms:
            assert not self.asks_scale or one.scale
        parts = [one.mu_squared / (4 if isinstance(one, PureLoss) else 1) for one in mechanisms]
        return (sum(parts, Fraction(0)),)

    def loss(self, amount):
        return GaussianDP(self.delta).loss(amount)


@pytest.mark.parametrize(("asks_scale", "words"), [(False, "any release of epsilon"), (True, "declared curve")])
def test_an_accounting_from_outside_must_charge_them(asks_scale, words):
    with pytest.raises(ContractBroken, match=words):
        check_accounting(Halved(asks_scale=asks_scale))


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-9, 1e-4, 0.3, 7.7, 100.0])
def test_a_charge_of_bounded_range_gives_its_epsilon_back_rounded_up(epsilon):
    exact = Fraction(str(epsilon))
    for name in ("gdp", "rdp", "reserve"):
        accounting = ACCOUNTINGS[name]
        amount = accounting.charge(Price(exact), limit_of(accounting), (BoundedRange(exact),))
        found = accounting.range_of(amount)
        assert exact <= found <= exact * (1 + Fraction(1, 2**40)), name
    assert Basic().range_of((exact, Fraction(0))) is None
    assert declared.range_of_mu(declared.mu_of_range(exact)) >= exact


def test_a_charge_of_other_noise_is_none_of_a_range():
    gaussian = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.3, delta=1e-5)
    coin = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.3)
    for name, noise in (("gdp", gaussian), ("rdp", gaussian), ("rdp", coin), ("rdp", PureLoss(0.3))):
        accounting = ACCOUNTINGS[name]
        assert accounting.range_of(accounting.charge(Price(Fraction(1)), limit_of(accounting), (noise,))) is None
    for name in ("gdp", "rdp"):
        assert ACCOUNTINGS[name].range_of(tuple(part * 0 for part in limit_of(ACCOUNTINGS[name]))) is None
    assert ACCOUNTINGS["reserve"].range_of((Fraction(1, 4), Fraction(1, 10**7))) is None
