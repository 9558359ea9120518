"""The rules of an accounting, tested on releases whose total privacy loss is known exactly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting import Accounting, BoundedRange, PureLoss
from dpframe.errors import InvalidArgument, named
from dpframe.exact import Amount, exactly, is_exact, keeps
from dpframe.mechanisms import curves
from dpframe.mechanisms.contract import Mechanism, is_mechanism
from dpframe.mechanisms.declared import Curve
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.privacy import Price, PrivacyLoss
from dpframe.testing.broken import ContractBroken, may_not_fail, require

LIMITS = ((Fraction(1), Fraction(1, 10**6)), (Fraction(3), Fraction(1, 10**5)), (Fraction(1, 5), Fraction(1, 10**4)))
PIECES = (1, 3, 10, 100)
MOST = 20_000  # the most releases
WHOLE = (Fraction(1),)
PARTS = (Fraction(1, 4), Fraction(3, 4))
SLACK = 1e-9  # relative, for the errors of double precision


@may_not_fail("an accounting")
def check_accounting(accounting: Accounting) -> None:
    """Check an accounting for ``dpf.Ledger(accounting=...)`` against its rules.

    Parameters
    ----------
    accounting : Accounting
        Your own, or one of dpframe's.

    Raises
    ------
    ContractBroken
        If amounts are not tuples of Fractions of one length. If releases that fit a limit cost more than the limit, or
        a reported loss is less than their cost. If a share of the limit takes more than that share, parts of a cost
        take more than the cost, or the rest of the limit cannot be spent.

    Notes
    -----
    The check fills three limits with equal releases, 1 to some thousands: Gaussian noise, randomized response (discrete
    Laplace noise of sensitivity 1 is the same), two of each in one call, calls at a share of the limit, and declared
    curves. These are `PureLoss`, as randomized response of its epsilon, and `BoundedRange`, as randomized response of
    half of it. If the accounting takes unknown groups, they are tried too. The total loss is known exactly: k Gaussians
    of mu are one of mu sqrt(k), the losses of k coins are binomial, and a mixture is the sum over these. The check
    detects an accounting that charges a few percent less than that. An accounting whose own rules are not tight may
    charge that much less than they require, and still covers the loss. Its author must prove that it holds for every
    mechanism, and for costs chosen after earlier answers.

    Examples
    --------
    >>> from dpframe.accounting import Basic
    >>> from dpframe.testing import check_accounting
    >>> check_accounting(Basic())
    """
    require(
        isinstance(accounting, Accounting),
        "kind",
        f"an accounting must be a dpframe.accounting.Accounting, not {named(accounting)}.",
    )
    name = accounting.name
    require(isinstance(name, str) and name, "name", "an accounting must have a name, a word for plans and provenances.")
    for epsilon, delta in LIMITS:
        ledger = _Ledger.of(accounting, epsilon, delta)
        _check_amounts(ledger)
        for calls in _calls(ledger):
            _check_filled(ledger, calls)
        _check_shares(ledger)
        _check_remaining(ledger)
    if not accounting.has_own_delta:
        ledger = _Ledger.of(accounting, Fraction(1), Fraction(0))
        for pieces in PIECES:
            price = Price(ledger.epsilon / pieces)
            _check_filled(ledger, _priced(ledger, price, pure=True))


@dataclass(frozen=True)
class _Ledger:
    """The accounting and the limit of a ledger."""

    accounting: Accounting
    epsilon: Fraction
    delta: Fraction
    limit: Amount

    @classmethod
    def of(cls, accounting: Accounting, epsilon: Fraction, delta: Fraction) -> _Ledger:
        fitted = accounting.of_ledger(epsilon, delta)
        ledger = cls(fitted, epsilon, delta, fitted.limit(epsilon, delta))
        ledger.check_amount("limit", ledger.limit)
        return ledger

    def check_amount(self, member: str, amount: Any) -> None:
        fine = isinstance(amount, tuple) and amount and all(map(is_exact, amount)) and min(amount) >= 0
        words = f"{member} must return a tuple of Fractions of at least 0, not {named(amount)}."
        require(fine and len(amount) == len(getattr(self, "limit", amount)), "amount", words)

    def charge(self, price: Price, curves: tuple[Curve, ...]) -> Amount:
        """Return the charge of a call, which must be an amount above 0."""
        amount = self.accounting.charge(price, self.limit, curves)
        self.check_amount("charge", amount)
        require(any(amount), "charge", "charge must be above 0 for a release.")
        return amount

    def holds(self, amount: Amount) -> bool:
        return keeps(amount, self.limit, one_is_enough=self.accounting.one_is_enough)

    def many(self, amount: Amount) -> int:
        """Return the number of charges of this amount that fit, at most MOST."""
        fits = [
            math.floor(most / coordinate) if coordinate else MOST
            for coordinate, most in zip(amount, self.limit, strict=True)
        ]
        return min(MOST, (max if self.accounting.one_is_enough else min)(fits))


@dataclass(frozen=True)
class _Calls:
    """Equal calls: their noise, and the charge of each."""

    price: Price
    noises: tuple[Curve, ...]
    amount: Amount
    keys: float = 0.0  # the chance that a key of one unit is shown

    def delta(self, count: int, epsilon: float) -> float:
        """Return the exact delta of this number of calls together."""
        gaussians = [noise for noise in self.noises if isinstance(noise, Gaussian)]
        coins = Counter(_coin(noise) for noise in self.noises if not isinstance(noise, Gaussian))
        mu = math.sqrt(count * sum(float(noise.mu_squared) for noise in gaussians))
        losses, chances = _losses([(coin, count * times) for coin, times in coins.items()])
        shown = -math.expm1(count * math.log1p(-self.keys))
        return shown + (1.0 - shown) * float((chances * _of_gaussian(mu, epsilon - losses)).sum())

    def pure(self, count: int) -> float:
        """Return the epsilon of this number of calls together, without a delta."""
        if self.keys:
            return math.inf
        return count * math.fsum(noise.pure_epsilon or math.inf for noise in self.noises)

    def __str__(self) -> str:
        keys = f" and keys that are found with delta {self.keys:.4g}" if self.keys else ""
        each = (f"{one.name} noise of scale {one.scale:.4g}" if is_mechanism(one) else str(one) for one in self.noises)
        return " and ".join(each) + keys


def _coin(curve: Curve) -> float:
    """Return the epsilon of the randomized response that a pure release may be, half of it for a bounded range."""
    if isinstance(curve, Laplace):
        return 1.0 / curve.step_scale
    return (curve.pure_epsilon or math.inf) / (2.0 if isinstance(curve, BoundedRange) else 1.0)


def _losses(coins: list[tuple[float, int]]) -> tuple[Any, Any]:
    """Return the total losses of coins and their chances; a coin has +epsilon with chance 1 / (1 + e^-epsilon)."""
    from scipy.stats import binom

    losses, chances = np.zeros(1), np.ones(1)
    for epsilon, count in coins:
        heads = np.arange(count + 1)
        loss = (2 * heads - count) * epsilon
        chance = binom.pmf(heads, count, 1.0 / (1.0 + math.exp(-epsilon)))
        losses = (losses[:, None] + loss).ravel()
        chances = (chances[:, None] * chance).ravel()
    return losses, chances


def _of_gaussian(mu: float, epsilons: Any) -> Any:
    """Return the delta of Gaussian noise at any epsilons; mu = 0 means that no Gaussian noise was released."""
    if mu == 0.0:
        return np.maximum(0.0, -np.expm1(np.minimum(epsilons, 0.0)))
    return curves.both_sides(epsilons, lambda some: curves.of_gaussian(mu, some))


def _calls(ledger: _Ledger) -> Iterator[_Calls]:
    """Yield calls of several costs: with Gaussian noise, pure noise, declared curves, keys, or both noises in one."""
    accounting = ledger.accounting
    for pieces in PIECES:
        delta = None if accounting.has_own_delta else ledger.delta / pieces
        gaussian = _priced(ledger, Price(ledger.epsilon / pieces, delta), pure=False)
        coin = _priced(ledger, Price(ledger.epsilon / pieces), pure=True)
        yield gaussian
        yield coin
        yield from (_declared(ledger, kind(ledger.epsilon / pieces)) for kind in (PureLoss, BoundedRange))
        if accounting.takes_keys:
            yield _with_keys(ledger, coin, ledger.delta / pieces / 2)
        if not accounting.charges_price:
            both = (*gaussian.noises, *coin.noises) * 2  # each of two equal noises counts
            yield _Calls(gaussian.price, both, ledger.charge(gaussian.price, both))


def _priced(ledger: _Ledger, price: Price, *, pure: bool, shares: tuple[Fraction, ...] = WHOLE) -> _Calls:
    """Return a call at this cost, with the noise that a plan would use and its charge."""
    parts = ledger.accounting.parts(price, ledger.limit, shares, pure=pure)
    require(len(parts) == len(shares), "parts", f"parts must return one part for each of {len(shares)} shares.")
    noises: list[Mechanism] = []
    for part in parts:
        if pure:
            require(part.epsilon is not None, "parts", "a part of a pure cost must have an epsilon.")
            noises.append(Laplace.of_steps(1, Fraction(part.epsilon or 0), 1.0))
        else:
            require(part.mu is not None, "parts", "a part of a cost with a delta must have a mu.")
            noises.append(Gaussian.of_mu(Fraction(1), float(part.mu or 0.0), 1.0))
    return _Calls(price, tuple(noises), ledger.charge(price, tuple(noises)))


def _declared(ledger: _Ledger, curve: PureLoss | BoundedRange) -> _Calls:
    """Return a call that declares its curve and has no noise."""
    price = Price(curve.budget)
    try:
        return _Calls(price, (curve,), ledger.charge(price, (curve,)))
    except AttributeError as error:
        raise ContractBroken(
            "declared: charge must take a declared curve, which has the members of dpframe.accounting.Curve and no "
            f"others. {error}"
        ) from error


def _with_keys(ledger: _Ledger, coin: _Calls, delta: Fraction) -> _Calls:
    """Return a call that finds keys by pure noise, and shows a key of a single unit with this chance."""
    (noise,) = coin.noises
    found = Thresholded(noise, 1, delta, float(delta))  # type: ignore[arg-type]  # Laplace noise
    return _Calls(coin.price, coin.noises, ledger.charge(coin.price, (found,)), float(delta))


def _check_amounts(ledger: _Ledger) -> None:
    more = ledger.accounting.of_ledger(2 * ledger.epsilon, ledger.delta)
    if more == ledger.accounting:  # under rdp, the orders and so the amounts depend on the limit
        higher = more.limit(2 * ledger.epsilon, ledger.delta)
        require(keeps(ledger.limit, higher), "limit", "limit must grow with epsilon.")


def _check_filled(ledger: _Ledger, calls: _Calls) -> None:
    """Check that the calls that fit a limit cost no more than it, and that their stated figures are true."""
    count = ledger.many(calls.amount)
    if count == 0:
        return
    words = (
        f"{count:,} calls with {calls} fit a limit of epsilon {float(ledger.epsilon):g}, delta {float(ledger.delta):g}"
    )
    if ledger.delta:
        delta = calls.delta(count, float(ledger.epsilon))
        require(
            delta <= float(ledger.delta) * (1.0 + SLACK),
            "charge",
            f"what fits a limit must cost no more than it. {words}, and their delta there is {delta:.4g}.",
        )
    else:
        epsilon = calls.pure(count)
        require(
            epsilon <= float(ledger.epsilon) * (1.0 + SLACK),
            "charge",
            f"what fits a limit must cost no more than it. {words}, and their epsilon is {epsilon:.4g}.",
        )
    total = tuple(count * coordinate for coordinate in calls.amount)
    _check_reading("loss", ledger.accounting.loss(total), calls, count)
    cost = ledger.accounting.cost(calls.price, calls.amount, pure=calls.noises[0].pure_epsilon is not None)
    if len(calls.noises) == 1:
        _check_reading("cost", cost, calls, 1)
    for spent in (total, tuple((count + 1) * coordinate for coordinate in calls.amount)):
        filled = ledger.accounting.filled(spent, ledger.limit)
        words = "filled must be at most 1 exactly where the limit holds."
        require(ledger.holds(spent) == (filled <= 1), "filled", words)


def _check_reading(member: str, said: PrivacyLoss, calls: _Calls, count: int) -> None:
    """Check that the stated loss of calls is not below their exact loss."""
    words = f"{member} must be rounded up: of {count:,} calls with {calls} it says {said}"
    if said.delta == 0.0:
        epsilon = calls.pure(count)
        require(epsilon <= said.epsilon * (1.0 + SLACK), "reading", f"{words}, and their epsilon is {epsilon:.6g}.")
    else:
        delta = calls.delta(count, said.epsilon)
        require(delta <= said.delta * (1.0 + 1e-6), "reading", f"{words}, and their delta there is {delta:.4g}.")


def _check_shares(ledger: _Ledger) -> None:
    pure = not ledger.accounting.has_own_delta and not ledger.delta
    for share in (Fraction(1, 3), Fraction(1, 50)):
        try:
            call = _priced(ledger, Price(share=share), pure=pure)
        except InvalidArgument as error:
            raise ContractBroken(f"share: parts must take a cost that is a share of the limit. {error}") from error
        total = tuple(coordinate / share for coordinate in call.amount)
        require(ledger.holds(total), "share", f"a call at share {share} must take at most that share of the limit.")
        _check_filled(ledger, call)
    price = Price(ledger.epsilon / 2, None if ledger.accounting.has_own_delta else ledger.delta)
    for kind in (True, False):
        offered = Price(price.epsilon) if kind else price
        whole = _priced(ledger, offered, pure=kind).amount
        parts = _priced(ledger, offered, pure=kind, shares=PARTS).amount
        room = tuple(coordinate * (1 + Fraction(1, 10**9)) for coordinate in whole)
        within = keeps(parts, room, one_is_enough=ledger.accounting.one_is_enough)
        require(within, "parts", "the parts of a cost must not add up to more than the cost.")


def _check_remaining(ledger: _Ledger) -> None:
    """Check that a call of one count, with its default noise, can spend the remaining budget."""
    accounting = ledger.accounting
    for left in (ledger.limit, tuple(coordinate * Fraction(2, 7) for coordinate in ledger.limit)):
        said = accounting.remaining(left)
        if said.epsilon <= 0.0:
            continue
        price = Price(exactly("epsilon", said.epsilon))
        call = _priced(ledger, price, pure=not accounting.has_own_delta)
        require(
            keeps(call.amount, left, one_is_enough=accounting.one_is_enough),
            "remaining",
            f"remaining must be rounded down: it says {said}, and a call at that epsilon costs more.",
        )
    nothing = tuple(coordinate * 0 for coordinate in ledger.limit)
    require(accounting.loss(nothing).epsilon == 0.0, "loss", "loss must be 0 where nothing was spent.")
