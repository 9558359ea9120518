"""Composition theorems for equal releases, for comparison and for planning by hand."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import (
    checked_whole,
    exact_delta,
    exact_epsilon,
    in_mpmath,
    is_whole,
    rounded_up,
    shown_up,
    to_digits,
)
from dpframe.privacy import PrivacyLoss

DIGITS = 50
LEAST_ROOM = Fraction(1, 2**1100)  # below every float
MOST = 10**6  # releases at most


def advanced_composition(
    epsilon: float | Fraction, delta: float | Fraction, count: int, *, slack: float | Fraction
) -> PrivacyLoss:
    """Compute the total loss of equal releases by the advanced composition theorem.

    There are `count` releases of (epsilon, delta) each.

    Parameters
    ----------
    epsilon, delta : float
        The loss of each release; epsilon above 0, 0 <= delta < 1.
    count : int
        The number of releases, 1 to 1e6.
    slack : float
        The additional delta in exchange for a smaller epsilon, 0 < slack < 1.

    Returns
    -------
    PrivacyLoss
        Rounded up: epsilon sqrt(2 count ln(1 / slack)) + count epsilon (e^epsilon - 1), and count delta + slack.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument is out of range, or the total delta is not below 1.

    Notes
    -----
    Theorem III.3 of Dwork, Rothblum and Vadhan, "Boosting and Differential Privacy" (2010). For comparison,
    `optimal_composition` is never larger, and a ledger's accounting is tighter if the noise is known.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.advanced_composition(0.1, 0, 100, slack=1e-6))
    epsilon 6.30823, delta 1e-06
    """
    import mpmath

    loss, leak, number = exact_epsilon(epsilon), exact_delta(delta), _checked_count(count)
    exact_slack = _above_zero("slack", slack)
    total = number * leak + exact_slack
    if total >= 1:
        raise InvalidArgument(
            f"delta must be so small that all {number:,} of them and slack stay below 1. Write a smaller one."
        )
    with to_digits(DIGITS):
        each = in_mpmath(loss)
        whole = each * mpmath.sqrt(-2 * number * mpmath.log(in_mpmath(exact_slack))) + number * each * mpmath.expm1(
            each
        )
        return PrivacyLoss(rounded_up(whole), shown_up(total))


@trimmed
def optimal_composition(
    epsilon: float | Fraction, delta: float | Fraction, count: int, *, total_delta: float | Fraction
) -> PrivacyLoss:
    """Compute the exact total loss of equal releases of which no more is known.

    There are `count` releases of (epsilon, delta) each.

    Parameters
    ----------
    epsilon, delta : float
        The loss of each release; epsilon above 0, 0 <= delta < 1.
    count : int
        The number of releases, 1 to 1e6.
    total_delta : float
        The delta of all releases together, 0 <= total_delta < 1.

    Returns
    -------
    PrivacyLoss
        The smallest (count - 2 i) epsilon whose delta is at most `total_delta`, and `total_delta`.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument is out of range, or the deltas of the releases alone exceed `total_delta`.

    Notes
    -----
    Theorem 3.3 of Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy" (2015):
    ((count - 2 i) epsilon, 1 - (1 - delta)^count (1 - delta_i)) for each i up to count / 2.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.optimal_composition(0.1, 0, 30, total_delta=1e-6))
    epsilon 2.4, delta 1e-06
    """
    loss, leak, number = exact_epsilon(epsilon), exact_delta(delta), _checked_count(count)
    most = exact_delta(total_delta)
    kept = (1 - leak) ** number if number <= 1000 else _power_down(1 - leak, number)
    if 1 - kept > most:
        raise InvalidArgument(
            f"total_delta must be at least the {shown_up(1 - kept):.6g} that the releases' own deltas come to, "
            f"not {shown(total_delta)}. Write a larger one."
        )
    steps = _most_steps(loss, number, 1 - (1 - most) / kept)
    return PrivacyLoss(shown_up((number - 2 * steps) * loss), shown_up(most))


def _most_steps(epsilon: Fraction, count: int, room: Fraction) -> int:
    """Return the largest i with delta_i <= room, for k = `count` releases; delta_i increases with i.

    delta_i = (sum over l < i of C(k, l) (e^((k - l) epsilon) - e^((k - 2 i + l) epsilon))) / (1 + e^epsilon)^k.
    """
    import mpmath

    if room < LEAST_ROOM:
        return 0  # fewer steps give a larger epsilon
    steps, least = 0, min(epsilon, room)  # a smaller difference of two sums loses more digits
    with to_digits(DIGITS + math.ceil(int(1 / least).bit_length() * math.log10(2))):
        e, allowed = in_mpmath(epsilon), in_mpmath(room)
        term = mpmath.exp(-count * mpmath.log1p(mpmath.exp(-e)))  # C(k, l) e^((k - l) epsilon) / (1 + e^epsilon)^k
        mirrored = mpmath.exp(-count * mpmath.log1p(mpmath.exp(e)))  # C(k, l) e^(l epsilon) / (1 + e^epsilon)^k
        above, below, rate = mpmath.mpf(0), mpmath.mpf(0), mpmath.exp(e)
        for i in range(1, count // 2 + 1):
            above, below = above + term, below + mirrored
            if above - mpmath.exp((count - 2 * i) * e) * below > allowed:
                break
            steps = i
            term *= mpmath.mpf(count - i + 1) / i / rate
            mirrored *= mpmath.mpf(count - i + 1) / i * rate
    return steps


def _power_down(base: Fraction, count: int) -> Fraction:
    """Return a power of a number of at most 1, rounded down; the exact fraction would have millions of digits."""
    import mpmath

    with to_digits(DIGITS):
        power = mpmath.exp(count * mpmath.log(in_mpmath(base)))
        return Fraction(int(mpmath.floor(power * 2**150)) - 1, 2**150) if base < 1 else Fraction(1)


def _checked_count(count: object) -> int:
    if not is_whole(count):
        raise InvalidType(f"count must be a whole number of releases, not {shown(count)}. Write for instance 10.")
    return checked_whole("count", count, 1, MOST, f"a whole number from 1 to {MOST:,}", " Write for instance 10.")


def _above_zero(argument: str, value: object) -> Fraction:
    number = exact_delta(value)
    if not number:
        raise InvalidArgument(
            f"{argument} must be a number above 0 and below 1, not {shown(value)}. Write for instance 1e-6."
        )
    return number
