"""The accounting of a ledger: the built-in ones by name, a caller's own, and a reserve for unknown groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting.by_curves import GaussianDP, RenyiDP
from dpframe.accounting.protocol import Accounting, Basic, Part, Shares
from dpframe.errors import InvalidArgument, InvalidType, checked_name, is_one_of, named, shown
from dpframe.exact import Amount, is_exact, shown_down, shown_up
from dpframe.mechanisms.declared import Curve
from dpframe.privacy import Price, PrivacyLoss

SHIPPED = (Basic, GaussianDP, RenyiDP)


@dataclass(frozen=True)
class KeysReserve(Accounting):
    """Another accounting at a smaller delta, with a reserve for the deltas of unknown groups.

    The accounting inside has the delta less the reserve. Take releases of noise whose losses add up to (epsilon, delta
    - reserve) in that accounting, and unknown groups whose deltas add up to at most the reserve. Together, they are
    (epsilon, delta)-private, adaptively too: ``docs/assurance/privacy.md``, "Unknown groups". The last coordinate of an
    amount is the sum of the deltas of unknown groups, as exact rationals of the typed decimals.
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
        """The value of the accounting inside; the last coordinate must always stay within its limit."""
        return self.inside.one_is_enough

    @property
    def charges_price(self) -> bool:  # type: ignore[override]
        """The value of the accounting inside."""
        return self.inside.charges_price

    @property
    def has_own_delta(self) -> bool:  # type: ignore[override]
        """The value of the accounting inside."""
        return self.inside.has_own_delta

    @property
    def tight(self) -> bool:  # type: ignore[override]
        """The value of the accounting inside."""
        return self.inside.tight

    @property
    def adds(self) -> str:  # type: ignore[override]
        """The value of the accounting inside."""
        return self.inside.adds

    @property
    def reads_at(self) -> Fraction:
        """The value of the accounting inside."""
        return self.inside.reads_at

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
            ", ".join([*filter(None, [said]), f"{float(amount[-1]):g} of keys_delta {float(limit[-1]):g}"])
            if amount[-1]
            else said
        )

    def _with(self, loss: PrivacyLoss, amount: Amount) -> PrivacyLoss:
        """Return a loss plus the deltas of unknown groups, rounded up."""
        if not amount[-1]:
            return loss
        return PrivacyLoss(loss.epsilon, shown_up(Fraction(repr(loss.delta)) + amount[-1]))


def _rest(limit: Amount | None) -> Amount | None:
    """Return the limit without the reserve."""
    return None if limit is None else limit[:-1]


def accounting_of(name: object, epsilon: Fraction, delta: Fraction) -> Accounting:
    """Return the accounting that the caller names or gives, or the one that suits the limit."""
    if isinstance(name, Accounting):
        return _brought(name, epsilon, delta)
    if name is None:
        name = "gdp" if delta else "basic"
    if not is_one_of(name, ("basic", "gdp", "rdp", "pld")):
        raise InvalidArgument(f"accounting must be 'basic', 'gdp', 'rdp' or None, not {shown(name)}.")
    if name == "basic":
        return Basic()
    if name == "pld":
        raise InvalidArgument(
            "accounting must be 'basic', 'gdp', 'rdp' or None for a ledger, not 'pld', which needs all noise "
            "to be fixed beforehand. Use dpf.compare_accounting(...) or dpf.release_together(...)."
        )
    if not delta:
        raise InvalidArgument(f"delta must be above 0 for {name} accounting. Write for instance delta=1e-6.")
    return GaussianDP(delta) if name == "gdp" else RenyiDP(epsilon, delta)


def with_reserve(name: object, epsilon: Fraction, delta: Fraction, reserve: Fraction) -> Accounting:
    """Return the accounting that the caller names, with a reserve for unknown groups.

    Without a reserve, it is the accounting itself.
    """
    if not reserve:
        return accounting_of(name, epsilon, delta)
    if reserve >= delta:
        raise InvalidArgument(
            f"keys_delta must be below delta, of which it is a part, not {shown_down(reserve)!r} of "
            f"{shown_down(delta)!r}. Write for instance delta=1e-6, keys_delta=1e-7."
        )
    accounting = accounting_of(name, epsilon, delta - reserve)
    if accounting.takes_keys:
        raise InvalidArgument(
            f"keys_delta must be left out with {accounting.name} accounting, which adds the deltas of keys to its own "
            "delta. Drop it."
        )
    if not is_shipped(accounting):
        raise InvalidArgument(
            f"keys_delta must be left out with accounting={accounting.name}, which is not dpframe's. "
            "Use 'gdp' or 'rdp'."
        )
    return KeysReserve(accounting, reserve)


def is_shipped(accounting: Accounting) -> bool:
    """Return whether an accounting is known to every process that opens a ledger."""
    return type(accounting) in SHIPPED or isinstance(accounting, KeysReserve)


def checked_limit(accounting: Accounting, epsilon: Fraction, delta: Fraction) -> Amount:
    """Return the limit of a new ledger, or raise a typed error if the accounting gives no valid amount."""
    limit = accounting.limit(epsilon, delta)
    if not isinstance(limit, tuple) or not limit or not all(map(is_exact, limit)) or min(limit) < 0:
        raise InvalidType(
            f"accounting.limit must return a tuple of Fractions of at least 0, not {named(limit)}. "
            "dpframe.testing.check_accounting says what an accounting must keep to."
        )
    return limit


def _brought(accounting: Accounting, epsilon: Fraction, delta: Fraction) -> Accounting:
    """Return a caller's accounting for a ledger with this limit; one of dpframe's is treated as if it were named."""
    if is_shipped(accounting):
        return accounting_of(accounting.name, epsilon, delta)
    name = accounting.name
    if not isinstance(name, str) or name in (*(shipped.name for shipped in SHIPPED), "pld"):
        raise InvalidArgument(
            f"accounting must have a name of its own, not {shown(name)}, which is one of dpframe's. Rename it."
        )
    checked_name("accounting.name", name)
    if accounting.has_own_delta and not delta:
        raise InvalidArgument(f"delta must be above 0 for {name} accounting. Write for instance delta=1e-6.")
    return accounting.of_ledger(epsilon, delta)
