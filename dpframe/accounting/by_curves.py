"""Accountings by one curve of the noise: Gaussian differential privacy and Rényi differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dpframe.accounting.protocol import (
    Accounting,
    Part,
    Shares,
    gaussian_loss,
    gaussian_part,
    largest_mu_squared,
    pure_parts,
    share_of,
)
from dpframe.errors import InvalidArgument
from dpframe.exact import SMALLEST_NORMAL, Amount, ceil, down, floor, root_down, shown_down, shown_up, to_digits, up
from dpframe.mechanisms import declared, gaussian_curve, renyi
from dpframe.mechanisms.declared import Curve
from dpframe.mechanisms.gaussian_curve import LARGER, LARGEST_EPSILON, SMALLER, edge
from dpframe.privacy import Price, PrivacyLoss


@dataclass(frozen=True)
class GaussianDP(Accounting):
    """Sums of mu^2, read at one delta; they are exact for Gaussian noise.

    Composition: Dong, Roth and Su, "Gaussian Differential Privacy" (2022), Corollary 3.3. Validity when budgets are
    chosen adaptively: Smith and Thakurta (2022); Koskela, Tobaben and Honkela (2023). Pure noise is charged by its mu.
    """

    delta: Fraction
    name: ClassVar[str] = "gdp"
    adds: ClassVar[str] = "squares of mu add up, not epsilons"
    tight: ClassVar[bool] = True

    def of_ledger(self, epsilon: Fraction, delta: Fraction) -> GaussianDP:
        return GaussianDP(delta)

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        most = floor(Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2)
        if not most:
            raise InvalidArgument("epsilon and delta must not both be as small as 1e-60: there is nothing to spend.")
        return (most,)

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        if price.epsilon is not None and pure:
            return pure_parts(price.epsilon, shares)
        offered = self._offered(price, limit)
        return tuple(gaussian_part(price, root_down(offered * share), self.delta) for share in shares)

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Curve, ...]) -> Amount:
        return (ceil(sum((mechanism.mu_squared for mechanism in mechanisms), Fraction(0))),)

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        if price.epsilon is None or pure or amount[0] > self._offered(price, None):
            return self.loss(amount)  # pure noise costs more than its epsilon, even if a caller's function chose it
        return PrivacyLoss(shown_up(price.epsilon), shown_up(price.delta or self.delta))

    def _offered(self, price: Price, limit: Amount | None) -> Fraction:
        if price.epsilon is None:
            return share_of(price, limit)[0]
        return floor(largest_mu_squared(price, self.delta))

    def loss(self, amount: Amount) -> PrivacyLoss:
        if amount[0] == 0:
            return PrivacyLoss(0.0)
        mu = math.nextafter(math.sqrt(up(amount[0])), math.inf)
        return PrivacyLoss(gaussian_curve.epsilon_of_mu(mu, down(self.delta)), shown_up(self.delta))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        if amount[0] == 0:
            return PrivacyLoss(0.0)
        epsilon = gaussian_curve.epsilon_of_mu(root_down(amount[0]), down(self.delta))
        return PrivacyLoss(epsilon * (1.0 - 1e-12), shown_down(self.delta))

    def range_of(self, amount: Amount) -> Fraction | None:
        root = math.sqrt(up(amount[0]))
        nearby = (math.nextafter(root, 0.0), root, math.nextafter(root, math.inf))
        mu = next((one for one in nearby if one and (ceil(Fraction(one) ** 2),) == amount), None)
        return None if mu is None else declared.range_of_mu(mu)  # a charge of one range is the square of one float

    def hint(self, amount: Amount, limit: Amount) -> str:
        share = float(self.filled(amount, limit))
        return f"{share:.0%} of the limit"


GRID = 2**160  # amounts are multiples of 2**-160
MULTIPLES = (Fraction(1), Fraction(1, 2), Fraction(2), Fraction(4), Fraction(16), Fraction(64))
WEIGHTS = (Fraction(9, 10), *(Fraction(1, 50),) * 5)  # shares of delta, by order; they add up to 1
STEPS = range(-20, 181)  # orders from 1 + 2**-5 to 1 + 2**45, a quarter of a power of two apart


@dataclass(frozen=True)
class RenyiDP(Accounting):
    """Sums of Rényi divergences at six fixed orders; one must stay within its limit.

    The orders follow from the limit alone. The first is the best for Gaussian noise, and has nine tenths of delta; each
    of the others has an equal part of the rest. The others allow what the first does not: a few large pure releases
    need a high order. Order i has the limit epsilon - c(order_i, w_i delta), with c the cost of the conversion.

    This is valid when budgets are chosen adaptively: one order alone is a filter (Feldman and Zrnic 2021; Lecuyer
    2021), and any of several is one because their deltas add up to delta (the proof is in
    ``docs/assurance/accounting.md``).
    """

    epsilon: Fraction
    delta: Fraction
    name: ClassVar[str] = "rdp"
    adds: ClassVar[str] = "Renyi divergences add up, not epsilons"
    one_is_enough: ClassVar[bool] = True

    def of_ledger(self, epsilon: Fraction, delta: Fraction) -> RenyiDP:
        return RenyiDP(epsilon, delta)

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The orders, which follow from the limit; shares of the limit use the first one."""
        return orders_of(self.epsilon, self.delta)

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        converted = zip(self.orders, WEIGHTS, strict=True)
        return tuple(max(Fraction(0), floor(epsilon - conversion(a, w * delta), GRID)) for a, w in converted)

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        if price.epsilon is not None and pure:
            return pure_parts(price.epsilon, shares)
        offered = self._offered(price, limit)
        return tuple(self._part(price, root_down(offered * share)) for share in shares)

    def _part(self, price: Price, mu: float) -> Part:
        main = self.orders[0]
        pure_epsilon = Fraction(renyi.largest_pure(renyi.of_gaussian(Fraction(mu) ** 2, main), main))
        return Part(pure_epsilon, mu, gaussian_loss(price, mu, self.delta))

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Curve, ...]) -> Amount:
        return tuple(
            ceil(sum((mechanism.renyi(order) for mechanism in mechanisms), Fraction(0)), GRID) for order in self.orders
        )

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        each = [2 * coordinate / order for coordinate, order in zip(amount, self.orders, strict=True)]
        if pure or max(each) - min(each) > Fraction(4, GRID):  # for Gaussian noise alone, they are equal
            return self.loss(amount)
        if price.epsilon is not None and min(each) <= self._offered(price, None):
            return PrivacyLoss(shown_up(price.epsilon), shown_up(price.delta or self.delta))
        mu = math.nextafter(math.sqrt(up(max(each))), math.inf)
        return PrivacyLoss(gaussian_curve.epsilon_of_mu(mu, down(self.delta)), shown_up(self.delta))

    def _offered(self, price: Price, limit: Amount | None) -> Fraction:
        """Return mu^2 of the typed cost by the exact Gaussian curve, or of the share of the first order's limit."""
        if price.epsilon is None:
            return 2 * share_of(price, limit)[0] / self.orders[0]
        return largest_mu_squared(price, self.delta)

    def loss(self, amount: Amount) -> PrivacyLoss:
        if not any(amount):
            return PrivacyLoss(0.0)
        converted = zip(amount, self.orders, WEIGHTS, strict=True)
        epsilon = min(coordinate + conversion(order, weight * self.delta) for coordinate, order, weight in converted)
        return PrivacyLoss(up(max(epsilon, Fraction(0))), shown_up(self.delta))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        mu_squared = max(2 * coordinate / order for coordinate, order in zip(amount, self.orders, strict=True))
        if mu_squared <= 0:
            return PrivacyLoss(0.0)
        epsilon = gaussian_curve.epsilon_of_mu(root_down(mu_squared), down(self.delta))
        return PrivacyLoss(epsilon * (1.0 - 1e-12), shown_down(self.delta))

    def range_of(self, amount: Amount) -> Fraction | None:
        return _range_of(amount, self.orders)

    def hint(self, amount: Amount, limit: Amount) -> str:
        share = float(self.filled(amount, limit))
        return f"{share:.0%} of the limit"


@lru_cache(maxsize=1024)
def _range_of(amount: Amount, orders: tuple[Fraction, ...]) -> Fraction | None:
    """Return the largest epsilon of a bounded range with this charge at the first order; None if other orders disagree.

    A charge is a divergence that was rounded up to the grid, and divergences grow with epsilon. So the epsilon lies
    between one whose divergence is at least the charge and one whose divergence is lower by a step of the grid.
    """
    first, order = amount[0], orders[0]
    least = first - Fraction(1, GRID)
    if least <= 0:
        return None
    guess = max(math.sqrt(8.0 * first / order), float(first))  # for a small epsilon, and for a large one
    most = edge(lambda epsilon: declared.renyi_of_range(Fraction(epsilon), order) < first, guess, LARGER)
    below = edge(lambda epsilon: declared.renyi_of_range(Fraction(epsilon), order) > least, guess, SMALLER)
    for charged, at in zip(amount, orders, strict=True):
        low, high = (declared.renyi_of_range(Fraction(epsilon), at) for epsilon in (below, most))
        if not low <= charged <= high + Fraction(1, GRID):
            return None
    return Fraction(most)


def conversion(order: Fraction, delta: Fraction) -> Fraction:
    """Return the term that turns a Rényi divergence of this order into an epsilon at `delta`.

    It is rounded up, and may be negative. log(1 - 1/order) - log(delta * order) / (order - 1): Canonne, Kamath and
    Steinke (2020), Proposition 12; Balle, Barthe, Gaboardi, Hsu and Sato (2020), Theorem 21.
    """
    import mpmath

    with to_digits(100):
        a, outside = (mpmath.mpf(number.numerator) / number.denominator for number in (order, delta))
        term = mpmath.log1p(-1 / a) - mpmath.log(outside * a) / (a - 1)
        return Fraction(int(mpmath.ceil(term * GRID)) + 1, GRID)  # up, by more than the error of 100 digits


@lru_cache(maxsize=1024)
def orders_of(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """Return the orders of a ledger with this limit.

    A stored ledger relies on this: the same limit must give the same orders. The first one is the order, on a ladder of
    orders, at which the limit allows the largest mu^2 of Gaussian noise.
    """
    if epsilon > Fraction(LARGEST_EPSILON):
        raise InvalidArgument(f"epsilon must be at most {LARGEST_EPSILON:g} for rdp accounting.")
    ladder = [Fraction(max(2, round(64 * 2.0 ** (step / 4))), 64) for step in STEPS]
    rooms = [(epsilon - conversion(1 + step, WEIGHTS[0] * delta)) / (1 + step) for step in ladder]
    if max(rooms) <= Fraction(SMALLEST_NORMAL):
        raise InvalidArgument(
            "epsilon must be above what the conversion from Rényi divergences takes at this delta. "
            "Write a larger epsilon or delta, or accounting='gdp'."
        )
    best = ladder[rooms.index(max(rooms))]
    return tuple(1 + best * multiple for multiple in MULTIPLES)
