"""Basic accounting: epsilons add up, deltas add up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.protocol import Accounting, Part, Shares, share_of, with_keys
from dpframe.exact import Amount, down, root_down, shown_down, shown_up, typed_down
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.declared import Curve
from dpframe.privacy import Price, PrivacyLoss


@dataclass(frozen=True)
class Basic(Accounting):
    """Sums of epsilon and of delta, as exact rationals of the typed decimals.

    Valid when each next budget is chosen after seeing earlier answers (Dwork and Roth 2014, Theorem 3.16;
    Rogers et al. 2016 for the adaptive choice).
    """

    name: ClassVar[str] = "basic"
    charges_price: ClassVar[bool] = True
    has_own_delta: ClassVar[bool] = False
    tight: ClassVar[bool] = True
    takes_keys: ClassVar[bool] = True

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        return (epsilon, delta)

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        epsilon, delta = self._offered(price, limit)
        whole = None
        if delta > 0 and not pure:  # Gaussians together are one Gaussian: mu^2 is shared, not epsilon
            whole = Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2
        return tuple(
            Part(
                epsilon * share,
                None if whole is None else root_down(whole * share),
                PrivacyLoss(typed_down(epsilon * share), typed_down(delta * share)),
            )
            for share in shares
        )

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Curve, ...]) -> Amount:
        epsilon, delta = self._offered(price, limit)
        return (epsilon, with_keys(delta, mechanisms))

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        return self.loss(amount)

    def _offered(self, price: Price, limit: Amount | None) -> Amount:
        if price.epsilon is not None:
            return (price.epsilon, price.delta or Fraction(0))
        return share_of(price, limit)

    def loss(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_up(amount[0]), shown_up(amount[1]))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_down(amount[0]), shown_down(amount[1]))
