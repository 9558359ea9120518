"""The exact privacy curve of generalized Gaussian noise in one cell, and its inverses.

The noise has a density proportional to exp(-(abs(x) / b)^p), and the total changes by m. Everything depends on p and on
ratio = m / b. In units of b, the privacy loss at -y is (y + ratio)^p - abs(y)^p. For p > 1, it rises with y from
-ratio/2 on. At the y where the loss reaches epsilon, with S the upper tail,

    delta(epsilon) = S(y) - e^epsilon S(y + ratio).

This is the largest value over all y, so a small error of y hardly matters. At p = 1, the loss is at most `ratio`, and
delta(epsilon) = max(0, 1 - e^((epsilon - ratio) / 2)). Double precision finds an answer, and mpmath decides the
rounding, as in ``gaussian_curve.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.exact import SMALLEST_NORMAL, positive, rounded_up, to_digits, up
from dpframe.mechanisms.gaussian_curve import LARGER, LARGEST_EPSILON, SMALLER, check_range, edge, typed
from dpframe.noise import LARGEST_SHAPE

FAR = 800  # where y^p exceeds this, the tail is below exp(-800), which is 0 as a float
CORRECT = 40  # correct digits of an exact delta, despite cancellation


def generalized_gaussian_scale(
    p: float,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    *,
    guarantee: Literal["approximate", "probabilistic"] = "approximate",
) -> float:
    """Compute the smallest scale b of private generalized Gaussian noise in one cell.

    Parameters
    ----------
    p : float
        The shape, 1 <= p <= 16: 1 is Laplace, 2 is Gaussian. A whole number of at least 2 if `guarantee` is
        ``"probabilistic"``.
    epsilon : float
        From 0 to 1e12 (above 0 if `guarantee` is ``"probabilistic"``).
    delta : float
        0 < delta < 1; as small as 1e-300.
    sensitivity : float
        The most by which one unit can change the one number that it can change, in any unit; b is in the same unit.
    guarantee : {"approximate", "probabilistic"}
        ``"approximate"`` is exact (epsilon, delta)-differential privacy. ``"probabilistic"`` is Liu's condition for
        P(abs(loss) > epsilon) <= delta; it implies the former, with more noise.

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
    Liu, "Generalized Gaussian Mechanism for Differential Privacy" (2018), Proposition 8 and Corollary 9, for
    ``"probabilistic"``: P((abs(e) + m)^p - abs(e)^p > b^p epsilon) <= delta for noise e, whose left side falls with b.
    For ``"approximate"``, see the module. Both hold for one cell alone: for p other than 1 and 2, an l_p norm over
    several cells does not bound the loss.

    Examples
    --------
    >>> import dpframe as dpf
    >>> round(dpf.generalized_gaussian_scale(3, epsilon=1.0, delta=1e-6), 4)
    12.4884
    >>> round(dpf.generalized_gaussian_scale(3, epsilon=1.0, delta=1e-6, guarantee="probabilistic"), 4)
    15.4274
    """
    reach = positive("sensitivity", sensitivity)
    loss = typed("epsilon", epsilon, 0.0, LARGEST_EPSILON, closed=True)
    outside = typed("delta", delta, 0.0, 1.0, closed=False)
    return up(reach / Fraction(ratio_for(guarantee)(checked_shape(p), loss, outside)))


def ratio_for(guarantee: str) -> Callable[[float, float, float], float]:
    """Return the function (p, epsilon, delta) -> largest ratio shift / b with this guarantee."""
    if not is_one_of(guarantee, ("approximate", "probabilistic")):
        raise InvalidArgument(f"guarantee must be 'approximate' or 'probabilistic', not {shown(guarantee)}.")
    return largest_ratio if guarantee == "approximate" else _largest_probabilistic_ratio


def checked_shape(p: float) -> float:
    """Return the shape as a float, if noise of this shape can be drawn."""
    return check_range("p", p, 1.0, LARGEST_SHAPE, closed=True)


@lru_cache(maxsize=4096)
def largest_ratio(p: float, epsilon: float, delta: float) -> float:
    """Return the largest ratio shift / b with (epsilon, delta)-DP, rounded down.

    The scale b is therefore rounded up. For p = 1, delta may be 0.
    """
    guess = epsilon - 2.0 * math.log1p(-delta) if p == 1.0 else _polished_ratio(p, epsilon, delta)
    return edge(lambda ratio: delta_exceeds(p, ratio, epsilon, delta), guess, SMALLER)  # a smaller ratio is safer


@lru_cache(maxsize=4096)
def epsilon_of_ratio(p: float, ratio: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which noise of this ratio is (epsilon, delta)-DP.

    It is rounded up.
    """
    if not delta_exceeds(p, ratio, 0.0, delta):
        return 0.0
    if p == 1.0:
        guess = max(ratio + 2.0 * math.log1p(-delta), SMALLEST_NORMAL)
    else:
        guess = _polished_epsilon(p, ratio, delta)
    return edge(lambda epsilon: delta_exceeds(p, ratio, epsilon, delta), guess, LARGER)  # a larger epsilon is safer


def delta_of_ratio(p: float, ratio: float, epsilon: float) -> float:
    """Return the delta at `epsilon`, rounded up.

    It is 0 only for p = 1, since no other shape is purely private.
    """
    delta = rounded_up(exact_delta_of(p, ratio, epsilon))
    return delta if p == 1.0 else max(SMALLEST_NORMAL, delta)


def delta_exceeds(p: float, ratio: float, epsilon: float, delta: float) -> bool:
    """Return whether the exact delta is above `delta`."""
    return bool(exact_delta_of(p, ratio, epsilon) > delta)


def exact_delta_of(p: float, ratio: float, epsilon: float) -> Any:
    """Return delta as an mpmath number with 40 correct digits, despite cancellation.

    A delta below exp(-800) becomes 0.
    """
    import mpmath

    if p == 1.0:
        with to_digits(_digits(2.0, ratio)):
            return max(mpmath.mpf(0), -mpmath.expm1((mpmath.mpf(epsilon) - ratio) / 2))
    return _parts(p, ratio, epsilon)[0]


def _parts(p: float, ratio: float, epsilon: float) -> tuple[Any, Any, Any]:
    """Return delta, its slope in the ratio (the density at y), and minus its slope in epsilon."""
    import mpmath

    digits = _digits(p, ratio)
    while True:
        with to_digits(digits):
            shape, shift, loss = mpmath.mpf(p), mpmath.mpf(ratio), mpmath.mpf(epsilon)
            y = _turning_point(shape, shift, loss)
            if y is None:
                return mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
            near, far = _tail(shape, y), mpmath.exp(loss) * _tail(shape, y + shift)
            density = mpmath.exp(-(abs(y) ** shape)) / (2 * mpmath.gamma(1 + 1 / shape))
            if near - far > near * mpmath.mpf(10) ** (CORRECT - digits):
                return near - far, density, far
        digits *= 2


def _digits(p: float, ratio: float) -> int:
    """Return the digits that find y to over CORRECT / 2 digits: a small ratio or p - 1 makes the loss nearly flat."""
    return math.ceil(CORRECT + 20 - 2.0 * math.log10(min(ratio, 1.0)) - 2.0 * math.log10(min(p - 1.0, 1.0)))


def _turning_point(p: Any, ratio: Any, epsilon: Any) -> Any:
    """Return the y at which the loss (y + ratio)^p - abs(y)^p is epsilon, at the current precision; None if y^p > FAR.

    Newton steps stay inside a bracket. The first guess uses the slope at the middle, y + ratio / 2.
    """
    import mpmath

    low, high = -ratio / 2, mpmath.mpf(FAR) ** (1 / p)
    if (high + ratio) ** p - FAR < epsilon:
        return None
    y = min(max((epsilon / (p * ratio)) ** (1 / (p - 1)) - ratio / 2, low), high)
    close = mpmath.mpf(10) ** (-mpmath.mp.dps * 3 // 4)
    for _ in range(2000):
        above, below = (y + ratio) ** (p - 1), abs(y) ** (p - 1)
        excess = above * (y + ratio) - below * abs(y) - epsilon
        low, high = (low, y) if excess > 0 else (y, high)
        moved = y - excess / (p * (above - mpmath.sign(y) * below))
        if not low <= moved <= high:
            moved = (low + high) / 2
        if abs(moved - y) <= close * (abs(y) + ratio):
            return moved
        y = moved
    return y


def _tail(p: Any, y: Any) -> Any:
    """Return S(y) at the current precision."""
    import mpmath

    power = abs(y) ** p
    if power < 1:  # the equal complement, since mpmath is slow at the upper function near 0
        return (1 - mpmath.sign(y) * mpmath.gammainc(1 / p, 0, power, regularized=True)) / 2
    half = mpmath.gammainc(1 / p, power, mpmath.inf, regularized=True) / 2
    return half if y > 0 else 1 - half


def _polished_ratio(p: float, epsilon: float, delta: float) -> float:
    """Refine the ratio by Newton steps on the exact log delta against log ratio, from a ratio that is too small."""
    import mpmath

    ratio = _first_ratio(p, epsilon, delta)
    for _ in range(200):
        reached, density, _far = _parts(p, ratio, epsilon)
        if not reached > 0:
            ratio *= 2.0
            continue
        with to_digits(CORRECT):
            step = float(mpmath.log(delta / reached) * reached / (density * ratio))
        ratio *= math.exp(max(-1.0, min(1.0, step)))
        if abs(step) <= 2.0**-50:
            break
    return ratio


def _first_ratio(p: float, epsilon: float, delta: float) -> float:
    """Return a ratio that is too small: its loss exceeds epsilon only beyond y, so delta(epsilon) <= S(y) = delta.

    For an epsilon near 0, it uses delta(0), the mass of an interval of length `ratio` around 0.
    """
    from scipy.special import gammainccinv

    power = float(gammainccinv(1.0 / p, 2.0 * delta)) if delta < 0.5 else 0.0  # y^p
    y = power ** (1.0 / p)
    if epsilon < power:
        ratio = y * math.expm1(math.log1p(epsilon / power) / p)
    else:
        ratio = (epsilon + power) ** (1.0 / p) - y
    return float(max(ratio, 2.0 * math.gamma(1.0 + 1.0 / p) * delta))


def _polished_epsilon(p: float, ratio: float, delta: float) -> float:
    """Refine epsilon by Newton steps on log delta, which falls with epsilon, from an epsilon that is too large."""
    import mpmath

    epsilon = _first_epsilon(p, ratio, delta)
    for _ in range(200):
        reached, _density, far = _parts(p, ratio, epsilon)
        if not reached > 0:
            return epsilon
        with to_digits(CORRECT):
            moved = epsilon + float(mpmath.log(reached / delta) * reached / far)
        moved = max(moved, epsilon / 4.0)
        if abs(moved - epsilon) <= 2.0**-50 * epsilon:
            return moved
        epsilon = moved
    return epsilon


def _first_epsilon(p: float, ratio: float, delta: float) -> float:
    """Return an epsilon that is too large: the loss at the y with S(y) = delta, where delta(epsilon) <= S(y)."""
    from scipy.special import gammainccinv

    y = math.copysign(float(gammainccinv(1.0 / p, 2.0 * min(delta, 1.0 - delta))) ** (1.0 / p), 0.5 - delta)
    if y > ratio:
        loss = y**p * math.expm1(p * math.log1p(ratio / y))
    else:
        loss = abs(y + ratio) ** p - abs(y) ** p
    return float(max(loss, SMALLEST_NORMAL))


def _largest_probabilistic_ratio(p: float, epsilon: float, delta: float) -> float:
    """Return the largest ratio with P(loss at abs(noise) > epsilon) <= delta for a whole p >= 2, rounded down."""
    import mpmath

    if p < 2.0 or not p.is_integer():
        raise InvalidArgument(
            f"p must be a whole number of at least 2 for guarantee='probabilistic', not {shown(p)}. "
            "Leave guarantee out for exact (epsilon, delta)-differential privacy of any shape."
        )
    if epsilon == 0.0:
        raise InvalidArgument("epsilon must be above 0 for guarantee='probabilistic', not 0.")

    def exceeds(ratio: float) -> bool:
        with to_digits(_digits(p, ratio)):
            if mpmath.mpf(ratio) ** p >= epsilon:
                return True  # even noise of 0 has a loss of at least epsilon
            y = _turning_point(mpmath.mpf(p), mpmath.mpf(ratio), mpmath.mpf(epsilon))
            return y is not None and bool(2 * _tail(mpmath.mpf(p), y) > delta)

    return edge(exceeds, _first_ratio(p, epsilon, delta / 2.0), SMALLER)  # a smaller ratio is safer
