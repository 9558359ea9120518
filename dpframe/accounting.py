"""How losses add up: each accounting has one additive, exact quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dpframe.errors import InvalidArgument, MissingArgument, shown
from dpframe.guarantee import Amount, Price, PrivacyLoss, down, shown_down, shown_up, up
from dpframe.mechanisms import gaussian
from dpframe.mechanisms.family import Mechanism

MU_GRID = 2**400  # mu^2 is kept in multiples of 2**-400: fine enough for any float, and sums stay short


@dataclass(frozen=True)
class Part:
    """What one Statistic of a call may cost: as pure epsilon, as mu, and as a pair for callables."""

    epsilon: Fraction | None
    mu: float | None
    loss: PrivacyLoss


class Accounting(Protocol):
    """What a ledger must be able to ask of its accounting."""

    @property
    def name(self) -> str: ...
    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        """The most that may be spent, rounded down."""

    def parts(self, price: Price, limit: Amount | None, count: int, *, pure: bool) -> tuple[Part, ...]:
        """Equal parts of the price for `count` Statistics measured together."""

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Mechanism, ...]) -> Amount:
        """What the call costs, rounded up."""

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        """What the call alone costs, for people to read: the typed price where it says it, rounded up."""

    def loss(self, amount: Amount) -> PrivacyLoss:
        """The amount as a pair, rounded up."""

    def remaining(self, amount: Amount) -> PrivacyLoss:
        """The amount as a pair that may still be asked for, rounded down."""


@dataclass(frozen=True)
class Basic:
    """Sums of epsilon and of delta, as exact rationals of the typed decimals.

    Valid when each next budget is chosen after seeing earlier answers (Dwork and Roth 2014, Theorem 3.16;
    Rogers et al. 2016 for the adaptive choice).
    """

    name: ClassVar[str] = "basic"

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        return (epsilon, delta)

    def parts(self, price: Price, limit: Amount | None, count: int, *, pure: bool) -> tuple[Part, ...]:
        epsilon, delta = self._offered(price, limit)
        mu = None
        if delta > 0 and not pure:  # Gaussians together are one Gaussian: mu^2 is shared, not epsilon
            mu = _root_down(Fraction(gaussian.largest_mu(down(epsilon), down(delta))) ** 2 / count)
        loss = PrivacyLoss(_typed_down(epsilon / count), _typed_down(delta / count))
        return (Part(epsilon / count, mu, loss),) * count

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Mechanism, ...]) -> Amount:
        return self._offered(price, limit)

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        return self.loss(amount)

    def _offered(self, price: Price, limit: Amount | None) -> Amount:
        if price.epsilon is not None:
            return (price.epsilon, price.delta or Fraction(0))
        return _share_of(price, limit)

    def loss(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_up(amount[0]), shown_up(amount[1]))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_down(amount[0]), shown_down(amount[1]))


@dataclass(frozen=True)
class GaussianDP:
    """Sums of mu^2, read at one delta: exact for Gaussian noise.

    Composition: Dong, Roth and Su, "Gaussian Differential Privacy" (2022), Corollary 3.3. Validity when budgets are
    chosen adaptively: Smith and Thakurta (2022); Koskela, Tobaben and Honkela (2023). Pure noise enters by its mu.
    """

    delta: Fraction
    name: ClassVar[str] = "gdp"

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        most = _floor(Fraction(gaussian.largest_mu(down(epsilon), down(delta))) ** 2)
        if not most:
            raise InvalidArgument("epsilon and delta must not both be as small as 1e-60: there is nothing to spend.")
        return (most,)

    def parts(self, price: Price, limit: Amount | None, count: int, *, pure: bool) -> tuple[Part, ...]:
        if price.epsilon is not None and pure:
            epsilon = price.epsilon / count
            return (Part(epsilon, None, PrivacyLoss(_typed_down(epsilon))),) * count
        mu = _root_down(self._offered(price, limit) / count)
        delta = _typed_down(price.delta or self.delta)
        loss = PrivacyLoss(gaussian.epsilon_of_mu(mu, delta) * (1.0 - 1e-9), delta)  # down: callables calibrate to it
        return (Part(Fraction(gaussian.mu_to_pure(mu)), mu, loss),) * count

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Mechanism, ...]) -> Amount:
        return (_ceil(sum((mechanism.mu_squared for mechanism in mechanisms), Fraction(0))),)

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        if price.epsilon is None or pure or amount[0] > self._offered(price, None):
            return self.loss(amount)  # pure noise costs more than it says, also where a caller's function chose it
        return PrivacyLoss(shown_up(price.epsilon), shown_up(price.delta or self.delta))

    def _offered(self, price: Price, limit: Amount | None) -> Fraction:
        if price.epsilon is None:
            return _share_of(price, limit)[0]
        delta = price.delta if price.delta is not None else self.delta
        if delta == 0:
            raise InvalidArgument("delta must be above 0 for Gaussian noise. Leave it out to take the ledger's delta.")
        return _floor(Fraction(gaussian.largest_mu(down(price.epsilon), down(delta))) ** 2)

    def loss(self, amount: Amount) -> PrivacyLoss:
        if amount[0] == 0:
            return PrivacyLoss(0.0)
        mu = math.nextafter(math.sqrt(up(amount[0])), math.inf)
        return PrivacyLoss(gaussian.epsilon_of_mu(mu, down(self.delta)), shown_up(self.delta))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        if amount[0] == 0:
            return PrivacyLoss(0.0)
        epsilon = gaussian.epsilon_of_mu(_root_down(amount[0]), down(self.delta))
        return PrivacyLoss(epsilon * (1.0 - 1e-12), shown_down(self.delta))


def accounting_of(name: object, delta: Fraction) -> Accounting:
    """The accounting that a caller names, or the one that suits the limit."""
    if name is None:
        name = "gdp" if delta else "basic"
    if name == "basic":
        return Basic()
    if name == "gdp":
        if not delta:
            raise InvalidArgument("delta must be above 0 for gdp accounting. Write for instance delta=1e-6.")
        return GaussianDP(delta)
    raise InvalidArgument(f"accounting must be 'basic', 'gdp' or None, not {shown(name)}.")


def _share_of(price: Price, limit: Amount | None) -> Amount:
    assert price.share is not None
    if limit is None:
        raise MissingArgument(
            "share must be a share of a limit, but this ledger has none. "
            "Make one with dpf.Ledger(epsilon=...), or write epsilon= instead of share=."
        )
    return tuple(price.share * part for part in limit)


def _typed_down(value: Fraction) -> float:
    """The largest float that is not above `value`, and whose shortest decimal is not: what a caller calibrates to."""
    found = down(value)
    while Fraction(repr(found)) > value:
        found = math.nextafter(found, 0.0)
    return found


def _root_down(value: Fraction) -> float:
    root = math.sqrt(down(value))
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root


def _floor(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * MU_GRID), MU_GRID)


def _ceil(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * MU_GRID), MU_GRID)
