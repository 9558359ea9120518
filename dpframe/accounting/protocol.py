"""The members of an accounting that a ledger calls, exact arithmetic that accountings share, and basic composition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument
from dpframe.exact import Amount, down, exactly, keeps, root_down, shown_down, shown_up, typed_down
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.declared import Curve, PureLoss
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.privacy import Price, PrivacyLoss

Shares = tuple[Fraction, ...]  # shares of a cost, in the quantity that the accounting adds up
HALVINGS = 60


@dataclass(frozen=True)
class Part:
    """The cost of one Total of a call: as pure epsilon, as mu, and as a pair.

    A caller's function calibrates to the pair.
    """

    epsilon: Fraction | None
    mu: float | None
    loss: PrivacyLoss


class Accounting:
    """The rules by which losses add up, as a frozen value.

    A subclass defines ``name``, ``limit``, ``charge``, ``loss`` and, if it reads losses at the ledger's delta, a field
    ``delta`` with ``of_ledger``, which fills it in. The other members follow, and may be defined as well. An amount is
    a tuple of Fractions that only grow. The accounting decides what they measure (epsilon, mu^2, a divergence for each
    order).

    Notes
    -----
    The guarantee of a ledger depends on ``limit`` and ``charge``: releases whose charges add up to at most
    ``limit(epsilon, delta)`` are together (epsilon, delta)-differentially private, also if each is chosen after the
    earlier answers. So charges are rounded up, and the limit down. `dpframe.testing.check_accounting` tests that on
    releases whose total loss is known exactly; the author must prove it. ``docs/reference/extending.md`` has an
    example.

    An accounting from outside is for a ledger in memory: ``dpf.Ledger(epsilon=1, delta=1e-6, accounting=Toy())``. A
    durable ledger is opened by name, by processes that may not know it.
    """

    if TYPE_CHECKING:  # a subclass defines it, as a constant of the class or as a field

        @property
        def name(self) -> str:
            """A word for it, in plans and provenances."""

    one_is_enough: ClassVar[bool] = False
    """True if one part of an amount within its limit is enough; otherwise, every part must be."""

    charges_price: ClassVar[bool] = False
    """True if a call is charged the cost that it names, whatever its noise; otherwise, what its noise costs."""

    has_own_delta: ClassVar[bool] = True
    """True if every loss is read at one delta, fixed with the limit, so that a call need not name any."""

    takes_keys: ClassVar[bool] = False
    """True if its amounts have a place for the delta of unknown groups, in addition to the curve of the noise."""

    adds: ClassVar[str] = ""
    """The amount that adds up, as text for a ledger's reader, if it is not epsilon."""

    tight: ClassVar[bool] = False
    """True if one Gaussian (or pure) call may take the whole limit."""

    def of_ledger(self, epsilon: Fraction, delta: Fraction) -> Accounting:
        """Return the accounting of a ledger with this limit.

        It is the accounting itself, or a copy that knows the limit if it depends on it.
        """
        return self

    def limit(self, epsilon: Fraction, delta: Fraction) -> Amount:
        """Return the most that may be spent, rounded down."""
        raise self._incomplete("limit(epsilon, delta)")

    def charge(self, price: Price, limit: Amount | None, mechanisms: tuple[Curve, ...]) -> Amount:
        """Return the exact cost of the call, rounded up.

        `mechanisms` are the call's mechanisms, and declared curves such as `PureLoss`.
        """
        raise self._incomplete("charge(price, limit, mechanisms)")

    def loss(self, amount: Amount) -> PrivacyLoss:
        """Return the amount as a pair, rounded up."""
        raise self._incomplete("loss(amount)")

    def filled(self, total: Amount, limit: Amount) -> Fraction:
        """Return the part of the limit that is spent: at most 1 if it is allowed."""
        parts = [coordinate / most for coordinate, most in zip(total, limit, strict=False) if most]
        return (min if self.one_is_enough else max)(parts, default=Fraction(0))

    def parts(self, price: Price, limit: Amount | None, shares: Shares, *, pure: bool) -> tuple[Part, ...]:
        """Return the parts of the cost for Totals measured together; `shares` add up to 1.

        A typed epsilon is divided as epsilon for pure noise, or as mu^2 for Gaussian noise. A share of the limit
        becomes the epsilon of one call that costs as much. The charge is what the noise costs, in any case.
        """
        price = self._with_epsilon(price, limit)
        assert price.epsilon is not None
        if pure:
            return pure_parts(price.epsilon, shares)
        delta = self.reads_at
        whole = largest_mu_squared(price, delta)
        return tuple(gaussian_part(price, root_down(whole * share), delta) for share in shares)

    def cost(self, price: Price, amount: Amount, *, pure: bool) -> PrivacyLoss:
        """Return the cost of the call alone, for people to read, rounded up.

        It is the typed cost if the accounting charges that.
        """
        return self.loss(amount)

    def remaining(self, amount: Amount) -> PrivacyLoss:
        """Return the rest of the limit as a pair, rounded down; it is tested on one count."""
        if not any(amount):
            return PrivacyLoss(0.0)
        low, high = 0.0, self.loss(amount).epsilon
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._affords(middle, amount) else (low, middle)
        return PrivacyLoss(low, shown_down(self.reads_at))

    def range_of(self, amount: Amount) -> Fraction | None:
        """Return the epsilon of the bounded range with this charge, rounded up, or None.

        Ledgers need it for entries of dpframe 0.2 (``docs/assurance/ledger.md``), so only for the accountings of
        dpframe.
        """
        return None

    def hint(self, amount: Amount, limit: Amount) -> str:
        """Return the share of the limit that a refused call takes, if its epsilon hides it.

        Otherwise, it is empty.
        """
        return ""

    @property
    def reads_at(self) -> Fraction:
        """The delta at which it reads losses; 0 if it has none."""
        return Fraction(getattr(self, "delta", 0))

    def _affords(self, epsilon: float, amount: Amount) -> bool:
        """Return whether a count of this epsilon costs at most this amount, with Gaussian noise or with a pure loss."""
        price = Price(exactly("epsilon", epsilon))
        pure = not self.reads_at
        (part,) = self.parts(price, None, (Fraction(1),), pure=pure)
        curve: Curve = PureLoss(part.epsilon or 0) if pure else Gaussian.of_mu(Fraction(1), part.mu or 0.0, 1.0)
        return keeps(self.charge(price, None, (curve,)), amount, one_is_enough=self.one_is_enough)

    def _with_epsilon(self, price: Price, limit: Amount | None) -> Price:
        """Return the cost with an epsilon; a share becomes the epsilon of one call that costs as much."""
        if price.epsilon is not None:
            return price
        epsilon = self.remaining(share_of(price, limit)).epsilon
        if not epsilon:
            raise InvalidArgument(
                f"share must be large enough for some noise with {self.name} accounting. Write a larger one."
            )
        return replace(price, epsilon=exactly("epsilon", epsilon), share=None)

    def _incomplete(self, member: str) -> InvalidType:
        return InvalidType(
            f"accounting must have the members of dpframe.accounting.Accounting, and {type(self).__name__} lacks "
            f"{member}. Write it in its class."
        )


def pure_parts(epsilon: Fraction, shares: Shares) -> tuple[Part, ...]:
    """Return parts of a cost for pure noise: epsilon is divided, whatever the accounting."""
    each = [epsilon * share for share in shares]
    return tuple(Part(pure_epsilon, None, PrivacyLoss(typed_down(pure_epsilon))) for pure_epsilon in each)


def gaussian_part(price: Price, mu: float, delta: Fraction) -> Part:
    """Return a part of this mu, with the pure noise of that mu.

    A caller's function calibrates to it at the call's delta, or else at `delta`.
    """
    return Part(Fraction(gaussian_curve.mu_to_pure(mu)), mu, gaussian_loss(price, mu, delta))


def gaussian_loss(price: Price, mu: float, delta: Fraction) -> PrivacyLoss:
    """Return the loss to which a caller's function calibrates a part of this mu, rounded down.

    It is at the call's delta, or else at the ledger's, `delta`.
    """
    at = typed_down(price.delta or delta)
    return PrivacyLoss(gaussian_curve.epsilon_of_mu(mu, at) * (1.0 - 1e-9), at)


def largest_mu_squared(price: Price, delta: Fraction) -> Fraction:
    """Return the largest mu^2 of Gaussian noise that costs at most a typed epsilon.

    It is at the call's delta, or else at the ledger's, `delta`.
    """
    assert price.epsilon is not None
    at = price.delta if price.delta is not None else delta
    if at == 0:
        raise InvalidArgument("delta must be above 0 for Gaussian noise. Leave it out to take the ledger's delta.")
    return Fraction(gaussian_curve.largest_mu(down(price.epsilon), down(at))) ** 2


def with_keys(delta: Fraction, mechanisms: tuple[Curve, ...]) -> Fraction:
    """Return the delta of a call with that of its unknown groups: their sum, or the larger one.

    It is the larger one if they concern different units. The sum is valid since delta(epsilon) <= d + (1 - d)
    d1(epsilon) (``docs/assurance/privacy.md``, "Unknown groups").
    """
    keys = sum((mechanism.keys_delta for mechanism in mechanisms), Fraction(0))
    apart = all(mechanism.apart for mechanism in mechanisms if mechanism.keys_delta)
    return max(delta, keys) if apart else delta + keys


def share_of(price: Price, limit: Amount | None) -> Amount:
    """Return a share of the limit, coordinate by coordinate."""
    assert price.share is not None
    if limit is None:
        raise MissingArgument(
            "share must be a share of a limit, but this ledger has none. "
            "Make one with dpf.Ledger(epsilon=...), or write epsilon= instead of share=."
        )
    return tuple(price.share * coordinate for coordinate in limit)


@dataclass(frozen=True)
class Basic(Accounting):
    """Sums of epsilon and of delta, as exact rationals of the typed decimals.

    This is valid when each next budget is chosen after seeing earlier answers (Dwork and Roth 2014, Theorem 3.16;
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
        if delta > 0 and not pure:  # Gaussians together are one Gaussian: mu^2 is divided, not epsilon
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

    def _offered(self, price: Price, limit: Amount | None) -> Amount:
        if price.epsilon is not None:
            return (price.epsilon, price.delta or Fraction(0))
        return share_of(price, limit)

    def loss(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_up(amount[0]), shown_up(amount[1]))

    def remaining(self, amount: Amount) -> PrivacyLoss:
        return PrivacyLoss(shown_down(amount[0]), shown_down(amount[1]))
