"""The Gaussian mechanism's exact privacy curve (Balle & Wang 2018, Theorem 8) and its inverses.

Everything depends on mu = sensitivity / sigma alone. Double precision finds an answer, and mpmath decides the rounding:
each result is checked at 40 digits or more, so that it errs only in the safe direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.exact import SMALLEST_NORMAL, between, down, exactly, positive, rounded_up, to_digits, up

SQRT2 = math.sqrt(2.0)
LARGEST_EPSILON = 1e12
LARGEST_MU = 1e150  # its square is a finite float
NUDGE = 2.0**-50  # relative distance from the edge at which `edge` stops: 4 units in the last place
LARGER, SMALLER = 1, -1


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Compute the smallest sigma for (epsilon, delta)-DP Gaussian noise.

    Parameters
    ----------
    epsilon : float
        From 0 to 1e12.
    delta : float
        0 < delta < 1; as small as 1e-300.
    sensitivity : float
        The l2 sensitivity, in any unit; sigma is in the same unit.

    Returns
    -------
    float
        Rounded up: the achieved delta, evaluated to 40 digits, is not above `delta`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Notes
    -----
    Theorem 8 of Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy" (ICML 2018):
    noise is (epsilon, delta)-DP if and only if
    Phi(D/2s - epsilon s/D) - exp(epsilon) Phi(-D/2s - epsilon s/D) <= delta.

    Examples
    --------
    >>> import dpframe as dpf
    >>> round(dpf.analytic_gaussian_sigma(epsilon=1.0, delta=1e-6), 4)
    4.2247
    """
    reach = positive("sensitivity", sensitivity)
    loss = typed("epsilon", epsilon, 0.0, LARGEST_EPSILON, closed=True)
    return up(reach / Fraction(largest_mu(loss, typed("delta", delta, 0.0, 1.0, closed=False))))


def typed(name: str, value: object, least: float, most: float, *, closed: bool) -> float:
    """Return the largest float that is not above the typed decimal, if that is in a range.

    Every calibration uses this float.
    """
    check_range(name, value, least, most, closed=closed)
    return down(exactly(name, value))


@lru_cache(maxsize=4096)
def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose Gaussian mechanism is (epsilon, delta)-DP, rounded down.

    Sigma is therefore rounded up.
    """
    check_range("epsilon", epsilon, 0.0, LARGEST_EPSILON, closed=True)
    check_range("delta", delta, 0.0, 1.0, closed=False)
    log_delta = math.log(delta)
    low, high = _bracket(lambda mu: log_delta_of(mu, epsilon) > log_delta, 1e-308, 1e8)
    guess = _polished(math.sqrt(low) * math.sqrt(high), epsilon, delta)
    return edge(lambda mu: delta_exceeds(mu, epsilon, delta), guess, SMALLER)  # a smaller mu means more noise


@lru_cache(maxsize=4096)
def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 for Gaussian noise of this mu at `delta`, rounded up."""
    from scipy.special import ndtri

    if mu == 0.0:
        return 0.0
    check_range("delta", delta, 0.0, 1.0, closed=False)
    if not mu < LARGEST_MU:
        raise InvalidArgument(
            "epsilon must be smaller: at such a loss nothing is protected. Write for instance epsilon=1."
        )
    if not delta_exceeds(mu, 0.0, delta):
        return 0.0
    guess = (
        _polished_epsilon(mu, _guessed_epsilon(mu, delta), delta) if mu < 1e4 else mu * (mu / 2.0 - float(ndtri(delta)))
    )
    return edge(lambda epsilon: delta_exceeds(mu, epsilon, delta), guess, LARGER)  # a larger epsilon is a weaker claim


def _guessed_epsilon(mu: float, delta: float) -> float:
    log_delta = math.log(delta)
    return _bracket(lambda epsilon: log_delta_of(mu, epsilon) <= log_delta, 1e-308, 1e18)[1]


@lru_cache(maxsize=4096)
def pure_to_mu(epsilon: float) -> float:
    """Return the mu of an epsilon-DP release, 2 Phi^-1(e^eps / (1 + e^eps)), rounded up.

    The trade-off function of pure epsilon-DP is two chords of the convex function of this mu. So it is nowhere below
    that function, and the release is mu-GDP (``docs/assurance/privacy.md``; Dong, Roth and Su 2022).
    """
    import mpmath
    from scipy import special

    if epsilon < 1.0:  # erf and tanh keep all digits here; the tails are near 1/2 and would lose them
        guess = 2.0 * SQRT2 * float(special.erfinv(math.tanh(epsilon / 2.0)))
    else:
        guess = float(-2.0 * special.ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))

    def too_small(mu: float) -> bool:
        with to_digits(40):
            half = mpmath.mpf(mu) / (2 * mpmath.sqrt(2))
            if epsilon < 1.0:
                return bool(mpmath.erf(half) < mpmath.tanh(mpmath.mpf(epsilon) / 2))
            return bool(mpmath.erfc(half) / 2 > 1 / (1 + mpmath.exp(mpmath.mpf(epsilon))))

    return edge(too_small, guess, LARGER)  # a larger mu is a weaker claim


def mu_to_pure(mu: float) -> float:
    """Return the largest epsilon at which every epsilon-DP release costs at most this mu, rounded down."""
    import mpmath

    with to_digits(40):
        half = mpmath.mpf(mu) / (2 * mpmath.sqrt(2))
        if mu < 1.0:
            epsilon = 2 * mpmath.atanh(mpmath.erf(half))
        else:
            epsilon = mpmath.log(mpmath.erfc(-half) / mpmath.erfc(half))
        return float(epsilon) * (1.0 - 2.0**-45)  # rounded down by more than `pure_to_mu` rounds up: more noise


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Return the delta of a Gaussian mechanism at `epsilon`, rounded up.

    It is 0 only for mu = 0, since no Gaussian mechanism is purely private.
    """
    if mu == 0.0:
        return 0.0
    if not math.isfinite(epsilon / mu):
        return SMALLEST_NORMAL
    return max(SMALLEST_NORMAL, rounded_up(exact_delta_of(mu, epsilon)))


def log_delta_of(mu: float, epsilon: float) -> float:
    """Return log delta in double precision.

    With s = eps/mu - mu/2 and M the Mills ratio, delta = phi(s) (M(s) - M(s + mu)). The identity exp(eps) phi(s + mu) =
    phi(s) removes exp(eps). For small mu, the difference of the Mills ratios would lose all digits. It is then computed
    as the integral of 1 - t M(t), by Gauss-Legendre quadrature.
    """
    from scipy.special import erfcx, log_ndtr

    s = epsilon / mu - mu / 2.0
    if s < -5.0:  # delta is near 1, so the two terms do not cancel
        return float(log_ndtr(-s) + math.log1p(-math.exp(min(0.0, epsilon + log_ndtr(-s - mu) - log_ndtr(-s)))))
    if mu > 0.5:
        difference = math.sqrt(math.pi / 2) * float(erfcx(s / SQRT2) - erfcx((s + mu) / SQRT2))
    else:
        difference = mu * sum(
            weight * _mills_slope(s + mu * node) for node, weight in zip(_NODES, _WEIGHTS, strict=True)
        )
    if difference <= 0.0:
        return -math.inf
    return -s * s / 2.0 - math.log(2.0 * math.pi) / 2.0 + math.log(difference)


_NODES = (0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263)
_WEIGHTS = (0.17392742256872692, 0.32607257743127305, 0.32607257743127305, 0.17392742256872692)


def _mills_slope(t: float) -> float:
    """Return 1 - t M(t) > 0, the negated slope of the Mills ratio M; its asymptotic series prevents cancellation."""
    from scipy.special import erfcx

    if t > 60.0:
        square = 1.0 / (t * t)
        return square * (1.0 - square * (3.0 - 15.0 * square))
    return 1.0 - t * math.sqrt(math.pi / 2) * float(erfcx(t / SQRT2))


def exact_delta_of(mu: float, epsilon: float) -> Any:
    """Return delta as an mpmath number with 40 correct digits, despite cancellation."""
    import mpmath

    s = epsilon / mu - mu / 2.0
    cancelled = max(0.0, -math.log10(min(mu, 1.0))) + 2.0 * math.log10(10.0 + abs(s) + mu)
    with to_digits(int(60 + 2 * cancelled)):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        root = mpmath.sqrt(2)
        first = mpmath.erfc((e / m - m / 2) / root) / 2
        second = mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root) / 2
        return first - second


def delta_exceeds(mu: float, epsilon: float, delta: float) -> bool:
    """Return whether the exact delta is above `delta`."""
    return bool(exact_delta_of(mu, epsilon) > delta)


def _polished(mu: float, epsilon: float, delta: float) -> float:
    """Refine mu to a few units in the last place, by Newton steps on the exact log delta against log mu."""
    import mpmath

    for _ in range(8):
        exact = exact_delta_of(mu, epsilon)
        if not exact > 0:
            return mu
        with to_digits(60):
            slope = mpmath.npdf(mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2) * mu / exact  # d delta / d mu = phi(s)
            step = float(mpmath.log(exact / delta) / slope)
        moved = mu * math.exp(max(-1.0, min(1.0, -step)))
        if abs(moved - mu) <= NUDGE * mu:
            return moved
        mu = moved
    return mu


def _polished_epsilon(mu: float, epsilon: float, delta: float) -> float:
    """Refine epsilon by Newton steps on delta: it falls and is convex, so steps from below do not overshoot."""
    import mpmath

    for _ in range(4):
        excess = exact_delta_of(mu, epsilon) - delta
        with to_digits(60):
            slope = (
                mpmath.exp(epsilon) * mpmath.erfc((mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2) / mpmath.sqrt(2)) / 2
            )
            moved = float(epsilon + excess / slope)
        if not 0.0 < moved < math.inf or abs(moved - epsilon) <= NUDGE * epsilon:
            return epsilon
        epsilon = moved
    return epsilon


def edge(breaks: Callable[[float], bool], guess: float, safer: int) -> float:
    """Return a float within 2**-50 (relative) of where `breaks` changes, on the side where it is False.

    `safer` is the direction of that side, LARGER or SMALLER. The steps double, so a poor first guess needs only a few
    more evaluations.
    """
    kept = broken = guess
    step = NUDGE
    while breaks(kept):
        broken, kept, step = kept, kept * (1.0 + step) ** safer, min(2.0 * step, 1.0)
    while broken == kept or not breaks(broken):
        kept, broken, step = broken, broken * (1.0 + step) ** -safer, min(2.0 * step, 1.0)
    while abs(kept - broken) > NUDGE * kept:
        middle = (kept + broken) / 2.0
        kept, broken = (kept, middle) if breaks(middle) else (middle, broken)
    return kept


def _bracket(beyond: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return two floats with nearly equal logarithms, between which `beyond` changes from False to True."""
    if beyond(low):
        return low, low
    log_low, log_high = math.log(low), math.log(high)
    for _ in range(64):
        middle = (log_low + log_high) / 2.0
        if beyond(math.exp(middle)):
            log_high = middle
        else:
            log_low = middle
    return math.exp(log_low), math.exp(log_high)


def check_range(name: str, value: object, least: float, most: float, *, closed: bool) -> float:
    """Return a number in a range as a float, rounded down.

    A smaller epsilon or delta gives more noise or a weaker claim.
    """
    brackets = f"{least:g} <= {name} <= {most:g}" if closed else f"{least:g} < {name} < {most:g}"
    return between(name, value, least, most, f"a number with {brackets}", closed=closed)
