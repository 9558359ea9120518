"""The members of an accounting that a ledger calls, and the exact arithmetic that accountings share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.exact import Amount, down, typed_down
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import Mechanism
from dpframe.privacy import Price, PrivacyLoss

Shares = tuple[Fraction, ...]  # of a price, in what the accounting adds up


@dataclass(frozen=True)
class Part:
    """The price of one Total of a call: as pure epsilon, as mu, and as a pair for callables."""

    epsilon: Fraction | None
    mu: float | None
    loss: PrivacyLoss


class Accounting(Protocol):
    """The members that every accounting has."""

    @property
    def name(self) -> str: ...
    @property
    def one_is_enough(self) -> bool:
        """Tell whether one part of an amount within its limit is enough, or every part must be."""

    @property
    def charges_price(self) -> bool:
        """Tell whether a call is charged what it offers, whatever noise keeps that; else the cost of its noise."""

    @property
    def has_own_delta(self) -> bool:
        """Tell whether every loss is read at one delta, fixed with the limit, so that a call need not name any."""

    @property
    def tight(self) -> bool:
        """Tell whether one Gaussian (or pure) call may take the whole limit."""

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        """The most that may be spent, rounded down."""

    def filled(self, total: Amount, limit: Amount) -> Fraction:
        """The part of the limit that is spent: at most 1 where it is allowed."""

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        """The parts of the price for Totals measured together; `shares` add up to 1."""

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Mechanism, ...]) -> Amount:
        """The exact cost of the call, rounded up."""

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        """The cost of the call alone, for people to read: the typed price where it says it, rounded up."""

    def loss(self, amount: Amount) -> PrivacyLoss:
        """The amount as a pair, rounded up."""

    def remaining(self, amount: Amount) -> PrivacyLoss:
        """The rest of the limit as a pair that may still be asked for, rounded down."""

    def hint(self, amount: Amount, limit: Amount) -> str:
        """Advice on this accounting for a caller whose call is refused; empty where all is plain."""


def pure_parts(epsilon: Fraction, shares: Shares) -> tuple[Part, ...]:
    """Parts of a price for pure noise: epsilon by itself is divided, whatever the accounting adds up."""
    each = [epsilon * share for share in shares]
    return tuple(Part(one, None, PrivacyLoss(typed_down(one))) for one in each)


def gaussian_loss(price: Price, mu: float, delta: Fraction) -> PrivacyLoss:
    """The loss that callables calibrate a part of this mu to, at the call's delta or the ledger's; rounded down."""
    at = typed_down(price.delta or delta)
    return PrivacyLoss(gaussian_curve.epsilon_of_mu(mu, at) * (1.0 - 1e-9), at)


def largest_mu_squared(price: Price, delta: Fraction) -> Fraction:
    """The mu^2 of Gaussian noise that costs a typed epsilon, at the call's delta or else the ledger's."""
    assert price.epsilon is not None
    at = price.delta if price.delta is not None else delta
    if at == 0:
        raise InvalidArgument("delta must be above 0 for Gaussian noise. Leave it out to take the ledger's delta.")
    return Fraction(gaussian_curve.largest_mu(down(price.epsilon), down(at))) ** 2


def share_of(price: Price, limit: Amount | None) -> Amount:
    """A share of the limit, coordinate by coordinate."""
    assert price.share is not None
    if limit is None:
        raise MissingArgument(
            "share must be a share of a limit, but this ledger has none. "
            "Make one with dpf.Ledger(epsilon=...), or write epsilon= instead of share=."
        )
    return tuple(price.share * part for part in limit)


def fullest(total: Amount, limit: Amount) -> Fraction:
    """The part of the limit that is taken in the coordinate that has the least room."""
    return max((part / most for part, most in zip(total, limit, strict=False) if most), default=Fraction(0))
