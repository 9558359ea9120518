"""Gaussian differential privacy: the squares of mu add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.protocol import (
    Accounting,
    Part,
    Shares,
    gaussian_part,
    largest_mu_squared,
    pure_parts,
    share_of,
)
from dpframe.errors import InvalidArgument
from dpframe.exact import Amount, ceil, down, floor, root_down, shown_down, shown_up, up
from dpframe.mechanisms import declared, gaussian_curve
from dpframe.mechanisms.declared import Curve
from dpframe.privacy import Price, PrivacyLoss


@dataclass(frozen=True)
class GaussianDP(Accounting):
    """Sums of mu^2, read at one delta: exact for Gaussian noise.

    Composition: Dong, Roth and Su, "Gaussian Differential Privacy" (2022), Corollary 3.3. Validity when budgets are
    chosen adaptively: Smith and Thakurta (2022); Koskela, Tobaben and Honkela (2023). Pure noise enters by its mu.
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
            return self.loss(amount)  # pure noise costs more than it says, also where a caller's function chose it
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
