"""Rényi differential privacy: divergences compared with their definition, and a filter that no adversary can exceed."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import check, inputs, published

from dpframe import Gaussian, GeneralizedGaussian, InvalidArgument, Laplace, Ledger
from dpframe.accounting import RenyiDP
from dpframe.accounting.by_curves import GRID, MULTIPLES, WEIGHTS, conversion, orders_of
from dpframe.exact import keeps
from dpframe.mechanisms import renyi

ORDERS = [Fraction(65, 64), Fraction(3, 2), Fraction(2), Fraction(20), Fraction(1449)]


def moment(logs, order):
    """Return the Rényi divergence of two discrete laws from its definition."""
    with mpmath.workdps(60):
        a = mpmath.mpf(order.numerator) / order.denominator
        total = mpmath.fsum(mpmath.exp(a * p + (1 - a) * q) for p, q in logs)
        return mpmath.log(total) / (a - 1)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS[:4], ids=str)
@pytest.mark.parametrize(("shift", "scale"), [(1, 2.0), (1, 0.3), (3, 1.7), (20, 9.0)])
def test_discrete_laplace_from_its_definition(shift, scale, order):
    with mpmath.workdps(60):
        rate = 1 / mpmath.mpf(scale)
        total = mpmath.log(1 - mpmath.exp(-rate)) - mpmath.log(1 + mpmath.exp(-rate))
        logs = [(total - rate * abs(k), total - rate * abs(k - shift)) for k in range(-1200, 1200)]
    found = Laplace(shift, scale).renyi(order)
    exact = moment(logs, order)
    assert float(found) == pytest.approx(float(exact), rel=1e-14)
    assert found >= Fraction(mpmath.nstr(exact, 40)) * (1 - Fraction(1, 10**20))


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS[:4], ids=str)
@pytest.mark.parametrize(("p", "ratio"), [(1.0, 0.5), (1.3, 0.4), (2.0, 0.6), (3.0, 0.3), (4.5, 1.0)])
def test_generalized_gaussian_is_never_below_its_integral(p, ratio, order):
    with mpmath.workdps(30):
        a, shape, shift = (mpmath.mpf(float(one)) for one in (order, p, ratio))
        share = (1 - 1 / a) ** (1 / (shape - 1)) if p > 1 else mpmath.mpf(0)
        top = -shift * share / (1 - share)
        exponent = lambda y: (a - 1) * abs(y - shift) ** shape - a * abs(y) ** shape  # noqa: E731
        around = [top - 60, top - 8, top - 1, top, (top - 0.001) / 2, 0, shift, shift + 3, shift + 60]
        whole = mpmath.quad(lambda y: mpmath.exp(exponent(y) - exponent(top)), sorted(around))
        exact = (mpmath.log(whole / (2 * mpmath.gamma(1 + 1 / shape))) + exponent(top)) / (a - 1)
    found = GeneralizedGaussian(ratio, 1.0, p=p).renyi(order)
    assert float(exact) * (1 - 1e-12) <= float(found) <= float(exact) + 5e-4 / float(order - 1) + 1e-6 * float(exact)
    if p == 2.0:
        assert renyi.of_generalized(2.0, ratio, order) >= found


def test_the_general_integral_agrees_with_the_closed_form_of_gaussian_noise():
    for ratio in (1e-3, 0.2, 3.0):
        for order in ORDERS:
            exact = float(order) * ratio**2
            assert exact <= renyi.of_generalized(2.0, ratio, order) <= exact + 1e-4 / float(order - 1) + 1e-6 * exact


@pytest.mark.parametrize("shape", [3.0, 16.0])
def test_a_divergence_beyond_all_numbers_is_a_cost_that_no_ledger_holds(shape):
    assert renyi.of_generalized(shape, 1e12, Fraction(10**9)) >= 10**36


def test_against_dp_accounting():
    rdp = pytest.importorskip("dp_accounting.rdp", reason="the extra accounting")
    event = pytest.importorskip("dp_accounting")
    draw = np.random.default_rng(20261121)
    for _ in range(8):
        ratio, orders = float(draw.uniform(0.05, 3.0)), [float(order) for order in draw.uniform(1.1, 80.0, size=4)]
        for given_event, noise in (
            (event.GaussianDpEvent(1 / ratio), Gaussian(1.0, 1 / ratio)),
            (event.LaplaceDpEvent(1 / ratio), GeneralizedGaussian(1.0, 1 / ratio, p=1.0)),
        ):
            peer = rdp.RdpAccountant(orders).compose(given_event)._rdp
            ours = [float(noise.renyi(Fraction(order))) for order in orders]
            assert ours == pytest.approx(peer, rel=1e-9)
        delta = float(10 ** draw.uniform(-12, -2))
        peer_epsilon = rdp.compute_epsilon(orders, [1.0] * 4, delta)[0]
        ours_epsilon = min(1.0 + float(conversion(Fraction(order), Fraction(delta))) for order in orders)
        assert max(ours_epsilon, 0.0) == pytest.approx(peer_epsilon, rel=1e-9)


@published("renyi_subsampled_gaussian")
def test_published_divergences_of_gaussian_noise(row):
    given_inputs = inputs(row)
    if given_inputs["q"] not in (0.0, 1.0):
        pytest.skip("rows are never sampled here")
    cost = Gaussian(1.0, float(given_inputs["sigma"])).renyi(Fraction(given_inputs["order"]))
    check(row, float(cost * given_inputs["steps"]) if given_inputs["q"] else 0.0)


@published("renyi_to_approxdp")
def test_the_conversion_of_others(row):
    delta = Fraction(1, 10**5)
    assert inputs(row)["rdp"] == "constant 1.1"
    check(row, min(1.1 + float(conversion(Fraction(order), delta)) for order in range(2, 33)))


@pytest.mark.slow
@published("zcdp_to_approxdp")
def test_the_conversion_of_zcdp_is_the_best_order(row):
    given_inputs = inputs(row)
    if row["quantity"] == "epsilon" and "note" not in given_inputs:
        rho, delta = given_inputs["rho"], Fraction(given_inputs["delta"])
        best = min(
            (rho * (1 + 2.0**step) + float(conversion(Fraction(1 + 2.0**step), delta)), step)
            for step in np.linspace(-4, 16, 401)
        )[1]
        found = min(
            rho * (1 + 2.0**step) + float(conversion(Fraction(1 + 2.0**step), delta))
            for step in np.linspace(best - 0.05, best + 0.05, 4001)
        )
        check({**row, "rel_tol": "1e-8"}, found)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.01, 50), st.floats(1e-12, 0.1), st.integers(2, 400))
def test_the_conversion_is_never_below(epsilon, delta, order):
    with mpmath.workdps(60):
        a, outside = mpmath.mpf(order), mpmath.mpf(delta)
        exact = mpmath.log1p(-1 / a) - mpmath.log(outside * a) / (a - 1)
        found = conversion(Fraction(order), Fraction(delta))
        assert exact <= mpmath.mpf(found.numerator) / found.denominator <= exact + mpmath.mpf(4) / GRID


def test_the_largest_pure_release_costs_no_more():
    for cost in (Fraction(1, 10**6), Fraction(1, 3), Fraction(40)):
        for order in ORDERS:
            found = renyi.largest_pure(cost, order)
            assert renyi.of_pure(found, order) <= cost < renyi.of_pure(found * (1 + 1e-9), order)


def test_a_loss_too_small_for_a_float_is_refused():
    """A part of the smallest loss is zero as a float, by which nothing can be divided."""
    for epsilon in (2.3e-308, 1e-200, 1e-160):
        ledger = Ledger(epsilon=1, delta=1e-6, accounting="rdp")
        with pytest.raises(InvalidArgument, match="epsilon"):
            pl.DataFrame({"x": [1]}).dp.count(epsilon=epsilon, delta=2.3e-308, ledger=ledger)
        assert ledger.spent.epsilon == 0


# The filter

FROZEN = {
    ("1", "1e-6"): "189/8",
    ("2", "1e-6"): "197/16",
    ("0.1", "1e-6"): "11649/64",
    ("5", "1e-5"): "5",
    ("1", "1e-9"): "33",
    ("1000000", "1e-6"): "33/32",
}


@pytest.mark.parametrize("limit", FROZEN, ids=str)
def test_a_stored_ledger_counts_on_its_orders(limit):
    """The amounts of a durable ledger are divergences at these orders, so they must be the same in every version."""
    orders = orders_of(*map(Fraction, limit))
    assert str(orders[0]) == FROZEN[limit]
    assert orders == tuple(1 + (orders[0] - 1) * multiple for multiple in MULTIPLES)


def test_the_deltas_of_the_orders_add_up():
    assert sum(WEIGHTS) == 1
    assert min(WEIGHTS) > 0
    assert len(WEIGHTS) == len(MULTIPLES)


def divergence(p, x, order):
    """Return the cost at this order of a coin that says yes with probability p, or p e^-x for the neighbor."""
    with mpmath.workdps(40):
        a, (yes, no) = mpmath.mpf(order.numerator) / order.denominator, (mpmath.mpf(p), mpmath.mpf(p) * mpmath.exp(-x))
        both = [
            one**a * other ** (1 - a) + (1 - one) ** a * (1 - other) ** (1 - a) for one, other in ((yes, no), (no, yes))
        ]
        return Fraction(str(max(mpmath.log(both[0]), mpmath.log(both[1])) / (a - 1)))


def stolen(orders, limits, epsilon, low, high):
    """Return the delta of an adversary who sees one coin first, then picks the order at which to spend the rest.

    The first coin rarely says yes. Its divergence is negligible at the low order and large at the high one. After yes,
    the adversary takes the coin that fills the high order; after no, the coin that fills the low order. Delta is exact.
    """
    chance, loss = 1e-3, 0.1 * epsilon
    first = [divergence(chance, loss, order) for order in orders]

    def fits(p, x):
        amounts = [cost + divergence(p, x, order) for cost, order in zip(first, orders, strict=True)]
        return any(amount <= most for amount, most in zip(amounts, limits, strict=True))

    def best(sofar, order):
        """Return the greatest delta of a coin that the ledger admits."""
        a, found = float(order), 0.0
        for extra in np.linspace(0.8, 1.6, 4) * math.log(a / (a - 1)):
            x, lower, upper = epsilon - sofar + extra, -60.0, -1e-9
            for _ in range(24):
                middle = (lower + upper) / 2
                lower, upper = (middle, upper) if fits(math.exp(middle), x) else (lower, middle)
            found = max(found, math.exp(lower) * -math.expm1(-extra))
        return found

    after_no = math.log1p(-chance) - math.log1p(-chance * math.exp(-loss))
    return chance * best(loss, orders[high]) + (1 - chance) * best(after_no, orders[low])


def limits_at(orders, epsilon, deltas):
    return [Fraction(epsilon) - conversion(order, delta) for order, delta in zip(orders, deltas, strict=True)]


@pytest.mark.parametrize("whole", [True, False], ids=["bug: each order has the whole delta", "delta is divided"])
def test_some_order_that_still_fits_is_no_filter(whole):
    """If two orders each have the whole delta, an adversary gets nearly twice delta; with half each, at most delta."""
    delta, orders = Fraction(1, 10**6), [Fraction(20), Fraction(200)]
    got = stolen(orders, limits_at(orders, 1, [delta if whole else delta / 2] * 2), 1.0, low=0, high=1)
    assert (got > 1.5e-6) if whole else (0.75e-6 < got <= 1e-6)


def test_the_adversary_gets_no_more_than_delta_from_a_ledger():
    accounting = RenyiDP(Fraction(1), Fraction(1, 10**6))
    limits = accounting.limit(Fraction(1), Fraction(1, 10**6))
    for high in (3, 4):
        assert 0.5e-6 < stolen(accounting.orders, limits, 1.0, low=0, high=high) <= 1e-6


def test_few_large_pure_releases_fit_where_many_gaussian_ones_do():
    """Two Laplace releases of 0.49 fit a ledger of 1: at high orders, they cost at most the sum of their epsilons."""
    accounting = RenyiDP(Fraction(1), Fraction(1, 10**6))
    limit = accounting.limit(Fraction(1), Fraction(1, 10**6))
    noise = Laplace.calibrate(sensitivity=1, epsilon=0.49)
    amount = tuple(2 * noise.renyi(order) for order in accounting.orders)
    assert keeps(amount, limit, one_is_enough=accounting.one_is_enough)
    assert amount[0] > limit[0]


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-300), (1e13, 1e-6)])
def test_limits_that_no_order_holds_are_refused(epsilon, delta):
    with pytest.raises(InvalidArgument, match="epsilon"):
        Ledger(epsilon=epsilon, delta=delta, accounting="rdp")
