"""A reserve for keys that are found: one more coordinate beside those of an accounting of noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.protocol import Accounting, Part, Shares
from dpframe.exact import Amount, shown_up
from dpframe.mechanisms.declared import Curve
from dpframe.privacy import Price, PrivacyLoss


@dataclass(frozen=True)
class KeysReserve(Accounting):
    """Another accounting at a delta that is smaller by a reserve, and the sum of the deltas of keys up to the reserve.

    Releases of noise whose losses add up to (epsilon, delta - reserve) in the accounting inside, and of keys whose
    deltas add up to at most the reserve, are together (epsilon, delta)-private, adaptively too: ``docs/privacy.md``,
    "Keys that nobody declared". The last coordinate of an amount is the sum of keys deltas, exact rationals of what was
    typed.
    """

    inside: Accounting
    reserve: Fraction
    takes_keys: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name of the accounting inside."""
        return self.inside.name

    @property
    def one_is_enough(self) -> bool:  # type: ignore[override]
        """As inside; the last coordinate must stay within its limit whatever the others do."""
        return self.inside.one_is_enough

    @property
    def charges_price(self) -> bool:  # type: ignore[override]
        """As inside."""
        return self.inside.charges_price

    @property
    def has_own_delta(self) -> bool:  # type: ignore[override]
        """As inside."""
        return self.inside.has_own_delta

    @property
    def tight(self) -> bool:  # type: ignore[override]
        """As inside."""
        return self.inside.tight

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        return (*self.inside.limit(epsilon, delta - self.reserve), self.reserve)

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Curve, ...]) -> Amount:
        keys = sum((mechanism.keys_delta for mechanism in mechanisms), Fraction(0))
        return (*self.inside.charge(price, _rest(limit), mechanisms), keys)

    def loss(self, amount: Amount) -> PrivacyLoss:
        return self._with(self.inside.loss(amount[:-1]), amount)

    def filled(self, total: Amount, limit: Amount) -> Fraction:
        keys = total[-1] / limit[-1] if limit[-1] else Fraction(0)
        return max(self.inside.filled(total[:-1], limit[:-1]), keys)

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        return self.inside.parts(price, _rest(limit), shares, pure=pure)

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        return self._with(self.inside.cost(price, amount[:-1], pure=pure), amount)

    def remaining(self, amount: Amount) -> PrivacyLoss:
        return self.inside.remaining(amount[:-1])

    def range_of(self, amount: Amount) -> Fraction | None:
        return None if amount[-1] else self.inside.range_of(amount[:-1])

    def hint(self, amount: Amount, limit: Amount) -> str:
        said = self.inside.hint(amount[:-1], limit[:-1])
        return (
            f"{said} Its keys take {float(amount[-1]):g} of the keys_delta {float(limit[-1]):g}."
            if amount[-1]
            else said
        )

    def _with(self, loss: PrivacyLoss, amount: Amount) -> PrivacyLoss:
        """A loss and the deltas of keys, rounded up."""
        if not amount[-1]:
            return loss
        return PrivacyLoss(loss.epsilon, shown_up(Fraction(repr(loss.delta)) + amount[-1]))


def _rest(limit: Amount | None) -> Amount | None:
    """The limit without the reserve."""
    return None if limit is None else limit[:-1]
