"""The contract that every accounting must keep, and exact charges and limits of each accounting."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import (
    BudgetExceeded,
    Gaussian,
    InvalidArgument,
    InvalidType,
    Laplace,
    Ledger,
    MissingArgument,
    PrivacyLoss,
)
from dpframe import accounting as accountings
from dpframe.accounting import Basic, GaussianDP, RenyiDP
from dpframe.accounting.by_curves import WEIGHTS
from dpframe.exact import down, keeps
from dpframe.mechanisms import gaussian_curve
from dpframe.privacy import Price

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "cost": [1.0, 2.0, 3.0]})
DELTA = Fraction(1, 10**6)
ALL = {
    "basic": (Basic(), Fraction(0)),
    "basic with delta": (Basic(), DELTA),
    "gdp": (GaussianDP(DELTA), DELTA),
    "rdp": (RenyiDP(Fraction(2), DELTA), DELTA),
}
every = pytest.mark.parametrize(("accounting", "delta"), ALL.values(), ids=ALL.keys())


def count(ledger, **price):
    return PEOPLE.dp.count(ledger=ledger, **price)


def is_full(ledger):
    """Check that no charge fits, however small: under basic accounting, exact rationals leave no rounding error."""
    with pytest.raises(BudgetExceeded):
        ledger.charge((Fraction(1, 10**300), Fraction(0)), cost=PrivacyLoss(1e-300), query="", unit=ledger.unit)
    return True


def at(order, delta):
    """Return what the conversion of a Rényi divergence to epsilon adds, in double precision."""
    a = float(order)
    return math.log1p(-1 / a) - math.log(float(delta) * a) / (a - 1)


def coordinates(accounting, amount):
    return zip(amount, accounting.orders, WEIGHTS, strict=True)


def equal(count):
    return (Fraction(1, count),) * count


# The contract


def test_every_accounting_of_the_module_is_tested():
    found = {value for value in vars(accountings).values() if isinstance(value, type) and "charge" in vars(value)}
    assert {type(accounting) for accounting, _ in ALL.values()} == found - {accountings.Accounting}


def planned(accounting, price, limit, sensitivities, *, pure):
    """Return the mechanisms that a plan would use for its parts of the cost."""
    parts = accounting.parts(price, limit, equal(len(sensitivities)), pure=pure)
    return tuple(
        Laplace.of_steps(steps, part.epsilon, 1.0) if pure else Gaussian.of_mu(Fraction(steps), part.mu, 1.0)
        for steps, part in zip(sensitivities, parts, strict=True)
    )


def pure_or_not(delta):
    return [True, False] if delta else [True]


@every
def test_charges_add_up_in_any_order_and_are_never_negative(accounting, delta):
    limit = accounting.limit(Fraction(2), delta)
    amounts = []
    for epsilon, pure in itertools.product((Fraction(1, 10), Fraction(1, 3), Fraction(1)), pure_or_not(delta)):
        price = Price.of(epsilon, delta if accounting.name == "basic" and not pure else None, None)
        amounts.append(accounting.charge(price, limit, planned(accounting, price, limit, (1, 7), pure=pure)))
    assert all(isinstance(part, Fraction) and part >= 0 for amount in amounts for part in amount)
    assert all(len(amount) == len(limit) for amount in amounts)
    assert any(part > 0 for part in amounts[0])
    sums = {tuple(map(sum, zip(*order, strict=True))) for order in itertools.permutations(amounts[:5])}
    assert len(sums) == 1


@every
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.3", "1", "7.77", "1000"])
def test_the_limit_reads_as_it_was_typed(accounting, delta, epsilon):
    typed = Fraction(epsilon)
    if accounting.name == "rdp":
        accounting = RenyiDP(typed, delta)  # the orders follow from the limit
    loss = accounting.loss(accounting.limit(typed, delta))
    assert loss.epsilon <= float(typed) * (1 + 1e-14)
    assert loss.epsilon >= float(typed) * (1 - 1e-9)
    assert loss.delta <= float(delta) * (1 + 1e-15)


@every
@pytest.mark.parametrize("price", [Price.of(2, None, None), Price.of(None, None, 1)], ids=["epsilon", "share"])
@pytest.mark.parametrize("sensitivities", [(1,), (1, 1), (3, 2**30, 7)], ids=str)
def test_a_call_at_the_price_of_the_limit_fits(accounting, delta, price, sensitivities):
    limit = accounting.limit(Fraction(2), delta)
    if accounting.name == "basic" and delta and price.epsilon:
        price = Price.of(2, delta, None)
    if price.epsilon and not accounting.tight:
        price = Price.of(accounting.remaining(limit).epsilon, None, None)
    amount = accounting.charge(price, limit, planned(accounting, price, limit, sensitivities, pure=not delta))
    assert keeps(amount, limit, one_is_enough=accounting.one_is_enough)
    assert accounting.filled(amount, limit) >= 1 - Fraction(1, 10**9)
    assert amount[0] >= limit[0] * (1 - Fraction(1, 10**9))


@every
@settings(deadline=None, max_examples=25)
@given(st.fractions(Fraction(1, 1000), 3), st.integers(1, 4))
def test_pure_shares_of_a_price_cost_at_most_the_share(accounting, delta, share, count):
    share = min(share, Fraction(1))
    limit = accounting.limit(Fraction(2), delta)
    price = Price.of(None, None, share)
    amount = accounting.charge(price, limit, planned(accounting, price, limit, (1,) * count, pure=True))
    assert keeps(amount, tuple(share * most for most in limit), one_is_enough=accounting.one_is_enough)
    assert amount[0] <= share * limit[0]


@every
@settings(deadline=None, max_examples=25)
@given(st.integers(1, 999))
def test_spent_is_rounded_up_and_remaining_down(accounting, delta, thousandths):
    limit = accounting.limit(Fraction(2), delta)
    amount = tuple(part * Fraction(thousandths, 1000) for part in limit)
    left = tuple(most - part for most, part in zip(limit, amount, strict=True))
    remaining = accounting.remaining(left)
    if accounting.tight:
        assert accounting.loss(left).epsilon >= remaining.epsilon
    price = Price.of(remaining.epsilon, None, None)  # a call can spend what remains
    asked = accounting.charge(price, limit, planned(accounting, price, limit, (1,), pure=accounting.name == "basic"))
    assert keeps(asked, left, one_is_enough=accounting.one_is_enough)
    assert accounting.filled(amount, limit) <= Fraction(thousandths, 1000)
    if accounting.name == "basic":
        assert Fraction(repr(accounting.loss(amount).epsilon)) >= amount[0]  # the decimal that users see
    elif accounting.name == "rdp":
        exact = min(float(part) + at(order, weight * delta) for part, order, weight in coordinates(accounting, amount))
        assert exact * (1 - 1e-14) <= accounting.loss(amount).epsilon <= exact * (1 + 1e-14)
    else:
        mu = math.sqrt(amount[0])
        assert gaussian_curve.exact_delta_of(mu * (1 - 1e-15), accounting.loss(amount).epsilon) <= 1e-6


@every
def test_nothing_spent_is_nothing(accounting, delta):
    nothing = tuple(part * 0 for part in accounting.limit(Fraction(1), delta))
    assert accounting.loss(nothing).epsilon == 0.0
    assert accounting.remaining(nothing).epsilon == 0.0


@pytest.mark.slow
@every
@settings(deadline=None, max_examples=10)
@given(st.data())
def test_no_choice_of_budgets_passes_the_limit(accounting, delta, data):
    """Each epsilon depends on the refusals and the spending so far; the last one tries to spend all that remains."""
    ledger = Ledger(epsilon=2, delta=float(delta), accounting=accounting.name)
    spent, total = [ledger.spent.epsilon], [Fraction(0)] * len(ledger.limit_amount)
    for place in range(6):
        left = ledger.remaining.epsilon
        if left < 1e-6:  # the noise of a smaller epsilon may not fit 64-bit integers
            break
        price = left if place == 5 else left * data.draw(st.floats(1e-3, 1.5))
        options = {"mechanism": "laplace"} if delta and data.draw(st.booleans()) else {}
        if accounting.name == "basic" and delta and not options:
            options = {"delta": 1e-7}
        try:
            count(ledger, epsilon=price, **options)
        except BudgetExceeded:
            assert options or price > left
        spent.append(ledger.spent.epsilon)
        assert ledger.remaining.epsilon <= left
    for charge in [entry for _, entry in ledger._store.entries()]:
        total = [one + part for one, part in zip(total, charge.amount, strict=True)]
    assert keeps(tuple(total), ledger.limit_amount, one_is_enough=accounting.one_is_enough)
    assert accounting.filled(tuple(total), ledger.limit_amount) <= 1
    assert spent == sorted(spent)
    assert spent[-1] <= 2.0 * (1 + 1e-14)


@pytest.mark.slow
@every
def test_a_durable_ledger_keeps_its_accounting(accounting, delta, tmp_path):
    made = Ledger(epsilon=2, delta=float(delta), accounting=accounting.name, path=tmp_path / "a.ledger")
    released = count(made, share=0.25, label="first")
    again = Ledger.open(tmp_path / "a.ledger")
    assert again.accounting == made.accounting == accounting
    assert (again.spent, again.remaining, again.limit_amount) == (made.spent, made.remaining, made.limit_amount)
    assert again.verify(released.dp.provenance)["entry"] == 1
    for _ in range(3):
        count(again, share=0.25)
    with pytest.raises(BudgetExceeded):
        count(made, share=Fraction(1, 10**6))


@every
def test_plans_and_provenance_tell_the_accounting(accounting, delta):
    ledger = Ledger(epsilon=2, delta=float(delta), accounting=accounting.name)
    plan = PEOPLE.dp.preview.count(share=0.5, ledger=ledger)
    assert f"({accounting.name} accounting)" in repr(plan)
    assert f"{accounting.name} accounting" in repr(ledger)
    cost = count(ledger, share=0.5).dp.provenance["cost"]
    assert cost == {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta, "accounting": accounting.name}
    assert ledger.to_frame()["amount"][0]
    assert "50% of the limit" in repr(ledger)


# Basic


@pytest.mark.parametrize("number", [float, Decimal, Fraction, np.float64, str], ids=lambda number: number.__name__)
def test_three_tenths_hold_exactly_three_times_one_tenth(number):
    read = float if number is str else number  # a str is not accepted as a number, so its float is used
    limit, price = (read(text) if number is not np.float64 else np.float64(float(text)) for text in ("0.3", "0.1"))
    ledger = Ledger(epsilon=limit)
    for _ in range(3):
        count(ledger, epsilon=price)
    assert ledger.spent == PrivacyLoss(0.3)
    assert ledger.remaining == PrivacyLoss(0.0)
    assert is_full(ledger)


def test_a_float32_is_the_number_that_it_is():
    ledger = Ledger(epsilon=0.3)
    count(ledger, epsilon=np.float32(0.1))
    assert ledger.spent.epsilon == float(np.float32(0.1))


def test_a_thousand_thousandths_fill_a_ledger():
    ledger = Ledger(epsilon=1)
    amount = Basic().charge(Price.of(0.001, None, None), None, ())
    for _ in range(1000):
        ledger.charge(amount, cost=PrivacyLoss(0.001), query="", unit=ledger.unit)
    assert is_full(ledger)


def test_basic_adds_deltas():
    ledger = Ledger(epsilon=1, delta=2e-6, accounting="basic")
    for _ in range(2):
        count(ledger, epsilon=0.1, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        count(ledger, epsilon=0.1, delta=1e-300)
    count(ledger, epsilon=0.8)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 2e-6)


def test_gaussians_of_one_basic_call_share_mu_squared():
    """Together they equal one Gaussian release of the call's (epsilon, delta), exactly."""
    price, accounting = Price.of(1, 1e-6, None), Basic()
    mechanisms = planned(accounting, price, None, (1, 5, 9), pure=False)
    total = sum(mechanism.mu_squared for mechanism in mechanisms)
    mu = gaussian_curve.largest_mu(1.0, down(Fraction(1, 10**6)))
    assert Fraction(mu) ** 2 * (1 - Fraction(1, 10**12)) <= total <= Fraction(mu) ** 2


def test_what_callables_calibrate_to_is_not_above_their_part():
    for epsilon, count_ in itertools.product(
        (Fraction(3, 10), Fraction(0.3), Fraction(1, 7), Fraction(10**20 + 1, 3 * 10**20)), (1, 2, 3)
    ):
        for accounting in (Basic(), GaussianDP(DELTA)):
            part = accounting.parts(Price(epsilon), None, equal(count_), pure=True)[0]
            assert Fraction(repr(part.loss.epsilon)) <= part.epsilon
            assert part.loss.epsilon == pytest.approx(float(epsilon / count_), rel=1e-15)


# Gaussian differential privacy


def test_gdp_takes_exactly_one_release_of_its_limit():
    ledger = Ledger(epsilon=1, delta=1e-6)
    count(ledger, epsilon=1)
    assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    assert ledger.spent.epsilon <= 1.0 + 1e-12
    with pytest.raises(BudgetExceeded):
        count(ledger, epsilon=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, Fraction(1, 4), 0.25, Fraction(1, 3), 0.1, Fraction(1, 52)], ids=str)
def test_shares_that_add_up_to_one_fill_a_ledger(share):
    kinds = [(1e-6, "gdp"), (1e-6, "rdp"), (0, "basic"), (1e-6, "basic")]
    for ledger in (Ledger(epsilon=1, delta=delta, accounting=name) for delta, name in kinds):
        for _ in range(round(1 / share)):
            count(ledger, share=share)
        assert ledger.remaining.epsilon < 1e-6
        assert ledger.accounting.name != "basic" or is_full(ledger)
        with pytest.raises(BudgetExceeded):
            count(ledger, share=Fraction(1, 10**6))


def test_shares_need_a_limit():
    with pytest.raises(MissingArgument, match="share"):
        accountings.protocol.share_of(Price.of(None, None, 0.5), None)


def test_the_largest_laplace_release_of_a_gdp_ledger():
    """A (2, 1e-6) ledger fits one Laplace release of epsilon 0.3585, far less than 2: pure noise costs much in mu."""
    fits, too_much = (Ledger(epsilon=2, delta=1e-6) for _ in range(2))
    count(fits, epsilon=0.357, mechanism="laplace")
    with pytest.raises(BudgetExceeded, match=r"the call needs epsilon 2\.00"):
        count(too_much, epsilon=0.359, mechanism="laplace")
    limit = GaussianDP(DELTA).limit(Fraction(2), DELTA)[0]
    assert gaussian_curve.mu_to_pure(math.sqrt(limit)) == pytest.approx(0.3585, abs=1e-4)


@pytest.mark.parametrize("epsilon", [1e-17, 1e-12, 1e-6])
def test_tiny_pure_releases_cost_their_mu(epsilon):
    """mu tends to epsilon sqrt(pi / 2). In double precision, the tails next to 1/2 would round it to 0."""
    noise = Laplace(1, 1 / epsilon)
    amount = GaussianDP(DELTA).charge(Price.of(epsilon, None, None), None, (noise,))
    assert float(amount[0]) == pytest.approx(math.pi / 2 * epsilon**2, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 2**31), st.floats(0.01, 1e9)), min_size=1, max_size=8))
def test_sums_of_mu_squared_are_never_understated(releases):
    mechanisms = tuple(Gaussian(float(steps), sigma) for steps, sigma in releases)
    charged = GaussianDP(DELTA).charge(Price.of(1, None, None), None, mechanisms)[0]
    with mpmath.workdps(200):
        exact = sum((mpmath.mpf(float(steps)) / mpmath.mpf(sigma)) ** 2 for steps, sigma in releases)
        found = mpmath.mpf(charged.numerator) / charged.denominator
        assert exact * (1 - mpmath.mpf("1e-190")) <= found <= exact + mpmath.mpf(2) ** -399


def test_a_call_may_name_its_own_delta():
    """`epsilon=` at the delta of the call fixes sigma, so that mu is larger than at the smaller delta of the ledger."""
    accounting = GaussianDP(DELTA)
    own, ledgers = (
        accounting.parts(Price.of(1, delta, None), None, equal(1), pure=False)[0].mu for delta in (1e-3, None)
    )
    assert own == pytest.approx(gaussian_curve.largest_mu(1.0, 1e-3), rel=1e-15)
    assert ledgers < own
    with pytest.raises(InvalidArgument, match="delta"):
        accounting.parts(Price.of(1, 0, None), None, equal(1), pure=False)


def test_what_a_callable_calibrates_to_is_read_at_the_delta_of_the_call():
    own = GaussianDP(DELTA).parts(Price.of(1, 1e-3, None), None, equal(1), pure=False)[0].loss
    assert (own.epsilon, own.delta) == (pytest.approx(1.0, rel=1e-8), pytest.approx(1e-3, rel=1e-12))


@pytest.mark.parametrize("name", ["gdp", "rdp"])
@pytest.mark.parametrize("keys_delta", [0, 1e-4])
def test_the_accounting_of_another_ledger_is_read_at_the_delta_of_this_one(name, keys_delta):
    other = Ledger(epsilon=9, delta=1e-3, accounting=name, keys_delta=keys_delta)
    own = Ledger(epsilon=2, delta=1e-6, accounting=other.accounting).accounting
    assert own == {"gdp": GaussianDP(DELTA), "rdp": RenyiDP(Fraction(2), DELTA)}[name]


def test_a_callers_pure_noise_is_told_by_what_it_costs():
    """Together, two Laplace releases that each fit their part's (epsilon, delta) exceed the epsilon of the call."""
    accounting = GaussianDP(DELTA)
    price, limit = Price.of(1, None, None), accounting.limit(Fraction(50), DELTA)
    part = accounting.parts(price, limit, equal(2), pure=False)[0]
    noise = Laplace.calibrate(sensitivity=1, epsilon=part.loss.epsilon)
    assert noise.delta(part.loss.epsilon) == 0.0
    amount = accounting.charge(price, limit, (noise, noise))
    assert amount[0] > accounting.charge(price, limit, planned(accounting, price, limit, (1, 1), pure=False))[0]
    assert accounting.cost(price, amount, pure=False).epsilon > 1.0
    assert accounting.cost(price, amount, pure=False) == accounting.loss(amount)


def test_a_callers_gaussian_noise_costs_what_was_typed():
    accounting = GaussianDP(DELTA)
    price, limit = Price.of(1, None, None), accounting.limit(Fraction(2), DELTA)
    part = accounting.parts(price, limit, equal(2), pure=False)[0]
    noise = Gaussian.calibrate(sensitivity=1, epsilon=part.loss.epsilon, delta=part.loss.delta)
    amount = accounting.charge(price, limit, (noise, noise))
    assert accounting.cost(price, amount, pure=False) == PrivacyLoss(1.0, 1e-6)


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="epsilon and delta"):
        Ledger(epsilon=1e-100, delta=1e-100)


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_an_epsilon_beyond_all_sense_is_refused(accounting):
    ledger = Ledger(epsilon=100, delta=1e-3, accounting=accounting)
    with pytest.raises((InvalidArgument, BudgetExceeded)):
        pl.DataFrame({"x": [1]}).dp.count(epsilon=1e308, mechanism="laplace", ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_questions_that_need_a_delta_name_a_way_out_that_works():
    frame = pl.DataFrame({"x": [1, 2], "y": [1, 2]})
    ask = {"columns": ["x", "y"], "keys": {"x": [1], "y": [1]}}
    with pytest.raises(InvalidArgument, match=r"for marginals, and .* Make one with dpf\.Ledger\(epsilon=\.\.\., d"):
        frame.dp.marginals(**ask, share=0.1, ledger=Ledger(epsilon=1))
    assert len(frame.dp.marginals(**ask, share=0.1, ledger=Ledger(epsilon=1, delta=1e-6)))


def test_an_amount_of_one_part_is_refused_in_the_singular():
    ledger = Ledger(epsilon=1, delta=1e-6, accounting="gdp")
    words = "amount must have 1 part in this accounting, not .* Write a tuple of Fractions, 1 in all"
    with pytest.raises(InvalidType, match=words):
        ledger.charge((Fraction(1), Fraction(0)), cost=PrivacyLoss(1.0), query="", unit=ledger.unit)
