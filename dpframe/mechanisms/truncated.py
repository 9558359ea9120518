"""Generalized Gaussian noise on declared output bounds, purely epsilon-DP: truncated, or inflated at the bounds.

These notes derive the worst privacy loss on output bounds [c0, c1], which determines the scales. The total q is first
clamped to [c0, c1], so neighbors q < q' lie within D of each other. R = c1 - c0, and lengths are in units of b. On a
grid, the answer is rounded to steps, with h half a step (h = 0 for real numbers). Truncated noise is drawn on
[c0 - h, c1 + h]. Inflated noise beyond c0 + h or c1 - h falls on the bound.

**Truncated.** Let G(x) be the integral of exp(-t^p) from 0 to x, a = q - c0 + h and L = R + 2h. The density at y is
exp(-abs(y - q)^p) / Z(a), Z(a) = G(a) + G(L - a). The ratio of the densities for q and q' falls with y, so the worst
answer is y = c0 - h (in the opposite order, the other end, by symmetry). The logarithm of the ratio there is
H(a') - H(a) with H(a) = a^p + log Z(a). H does not fall, since the largest ratio of two densities is at least 1. So
the worst a' is a + D or the upper end. log Z is concave (Z is log-concave, a convolution of two log-concave functions).

p = 1: H is linear plus concave, so the lowest totals are worst: H(h + D) - H(h).
p >= 2: the highest totals are worst: H(L - h) - H(L - h - D). On [L/2, L], H is convex: it is the logarithm of an
integral of exp(a^p - abs(y - q)^p), whose exponents are convex in q there. For a < c = L - a, also H'(a) <= H'(c), that
is 2 (exp(-a^p) - exp(-c^p)) <= p (c^(p-1) - a^(p-1)) Z(a). By Chebyshev's inequality, the left side is at most
2 (c^p - a^p) / (c - a) times the integral of exp(-t^p) over [a, c]. That integral is at most (c - a) / (c + a) Z(a),
since exp(-t^p) falls. And 2 (1 - x^p) <= p (1 - x^(p-1)) (1 + x) for x = a / c, since the difference is concave in x,
p - 2 at 0 and 0 at 1. So the part of an interval of length D below L/2 may be mirrored, and then the interval shifted
up, without a smaller integral of H'.

If one unit changes several cells of a vector, each cell loses at most K D_k, where K is the largest slope of H. So all
cells together lose at most K times the l1 sensitivity. By the same argument, K = H'(L - h) for p >= 2 and H'(h) for
p = 1. On a grid of at most 50 steps, no further proof is needed: the worst answer is the lowest one, an average over
half a step on each side of c0, and its loss is evaluated for every pair of totals.

**Inflated.** The noise is log-concave, so the ratio of densities falls with y, and its average over y <= c0 + h is at
least every ratio inside the bounds. So the worst answer is a bound. There the loss is log T(x - D) - log T(x), with T
the upper tail and x = q' - c0 - h. log T is concave, so x = R - h is worst. K is the hazard rate there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.exact import (
    checked_float,
    checked_whole,
    down,
    exact_epsilon,
    exactly,
    positive,
    root_up,
    rounded_up,
    to_digits,
    up,
)
from dpframe.mechanisms.contract import Stepped, checked_confidence, checked_integers, steps_of
from dpframe.mechanisms.gaussian_curve import LARGER, edge
from dpframe.mechanisms.generalized_curve import checked_shape
from dpframe.privacy import PrivacyLoss

DIGITS = 50
FEW = 50  # up to this many steps between bounds, the loss of every pair of totals is evaluated
BOUNDARIES = ("truncated", "inflated")
FORMULAS = ("exact", "liu", "exponential")

Boundary = Literal["truncated", "inflated"]
Formula = Literal["exact", "liu", "exponential"]

Floats = NDArray[np.float64]

LONGEST_SUM = 100_000  # terms of a variance; beyond, the integral plus 1/12 errs by less than 1 part in 1e9
MOST_TOTALS = 2000  # the most totals among which the largest variance is searched
LEAST, MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Range:
    """Noise of shape p on an output range, which determines its worst privacy loss.

    Lengths are in any unit.
    """

    p: float
    lowest: float
    highest: float
    shift: float  # the change of one cell by one unit, or of all cells in the l1 norm if `cells` exceeds 1
    half: float = 0.0  # half a grid step
    boundary: Boundary = "truncated"
    cells: float = 1.0

    @property
    def span(self) -> Fraction:
        return Fraction(self.highest) - Fraction(self.lowest)

    def loss(self, scale: float) -> Any:
        """Return the largest privacy loss of noise of this scale, to more than 40 digits.

        It is an mpmath number.
        """
        import mpmath

        small = max(0.0, math.log10(scale) - math.log10(self.shift))
        with to_digits(DIGITS + math.ceil(self.p * small)):
            b, p = mpmath.mpf(scale), mpmath.mpf(self.p)
            span, half = mpmath.mpf(self.span.numerator) / self.span.denominator / b, mpmath.mpf(self.half) / b
            shift = mpmath.mpf(self.shift) / b
            if self.boundary == "inflated":
                far = span - half
                if self.cells > 1:
                    return shift * mpmath.exp(-(far**p)) / _tail(p, far)
                return mpmath.log(_tail(p, far - min(shift, span)) / _tail(p, far))
            if self.cells > 1:
                return shift * _slope(p, span, half)
            if self.half and self.span <= FEW:
                return _rise_in_steps(
                    p, int(self.span / Fraction(self.half)) // 2, int(self.shift / self.half) // 2, half
                )
            return _rise(p, span, min(shift, span), half)


def _rise(p: Any, span: Any, shift: Any, half: Any) -> Any:
    """Return the largest H(a + shift) - H(a)."""
    import mpmath

    far = span + half
    at_end = _inside(p, far) + _inside(p, half)
    within = _inside(p, far - shift) + _inside(p, half + shift)
    return shift + mpmath.log(within / at_end) if p == 1 else far**p - (far - shift) ** p + mpmath.log(at_end / within)


def _rise_in_steps(p: Any, span: int, shift: int, half: Any) -> Any:
    """Return the largest loss of rounded answers: that of the lowest answer, over any two integer totals.

    The ratio of densities falls with y. So the ratio of the lowest answer, an average over its step, is the largest.
    """
    import mpmath

    beyond = [_tail(p, (2 * steps - 1) * half) for steps in range(span + 2)]  # differences are the masses of steps
    whole = beyond[0] + beyond[1]
    steps = [near - far for near, far in itertools.pairwise(beyond)]
    loss = [mpmath.log((whole - beyond[q + 1] - beyond[span - q + 1]) / steps[q]) for q in range(span + 1)]
    return max(high - low for low, high in zip(loss, loss[min(shift, span) :], strict=False))


def _slope(p: Any, span: Any, half: Any) -> Any:
    """Return the largest H'(a)."""
    import mpmath

    far = span + half
    change = (mpmath.exp(-(half**p)) - mpmath.exp(-(far**p))) / (_inside(p, far) + _inside(p, half))
    return 1 + change if p == 1 else p * far ** (p - 1) - change


def _inside(p: Any, x: Any) -> Any:
    """Return G(x), at the current precision."""
    import mpmath

    if p == 1 or x <= 0:
        return -mpmath.expm1(-x) if x > 0 else mpmath.mpf(0)
    if p == 2:
        return mpmath.sqrt(mpmath.pi) / 2 * mpmath.erf(x)
    power = x**p
    if power < 1:  # the lower function; from 1 on, its complement is faster
        return mpmath.gammainc(1 / p, 0, power) / p
    return (mpmath.gamma(1 / p) - mpmath.gammainc(1 / p, power, mpmath.inf)) / p


def _tail(p: Any, x: Any) -> Any:
    """Return the integral of exp(-|t|^p) from x on, at the current precision."""
    import mpmath

    if p == 1 and x >= 0:
        return mpmath.exp(-x)
    if p == 2:
        return mpmath.sqrt(mpmath.pi) / 2 * mpmath.erfc(x)
    if x <= 0 or x**p < 1:
        return mpmath.gamma(1 / p) / p + mpmath.sign(-x) * _inside(p, abs(x))
    return mpmath.gammainc(1 / p, x**p, mpmath.inf) / p


@lru_cache(maxsize=4096)
def least_scale(outputs: Range, epsilon: float) -> float:
    """Return the smallest scale whose worst loss is at most epsilon, rounded up.

    The loss is evaluated to 40 digits.
    """
    import mpmath

    def excess(scale: float) -> float:
        return float(mpmath.log(outputs.loss(scale)) - mpmath.log(epsilon))

    shift, slope = min(outputs.shift, float(outputs.span)), -outputs.p
    width = float(outputs.span) + outputs.half
    log_scale = max((math.log(outputs.p * shift / epsilon) + (outputs.p - 1.0) * math.log(width)) / outputs.p, -700.0)
    last = excess(math.exp(log_scale))
    for _ in range(40):  # secant steps on logarithms, since the loss is nearly a power of the scale
        step = max(-3.0, min(3.0, -last / slope))
        log_scale += step
        now = excess(math.exp(log_scale))
        if abs(now) < 1e-14 or abs(step) < 1e-15:
            break
        slope = min(-1e-3, (now - last) / step)
        last = now
    return edge(
        lambda scale: bool(outputs.loss(scale) > epsilon), math.exp(log_scale), LARGER
    )  # a larger scale is safer


def truncated_generalized_gaussian_scale(
    p: float,
    epsilon: float,
    sensitivity: float = 1.0,
    *,
    output: tuple[float, float],
    boundary: Boundary = "truncated",
    formula: Formula = "exact",
) -> float:
    """Compute the scale b of purely epsilon-DP noise on declared output bounds.

    The noise is generalized Gaussian, for one number.

    Parameters
    ----------
    p : float
        The shape: 1, or 2 to 16. A whole number for the formulas from the literature.
    epsilon : float
        Finite and above 0.
    sensitivity : float
        The most by which one unit changes the number; b is in the same unit.
    output : tuple of two numbers
        The bounds [c0, c1]. The number is clamped to them first, and the answer lies within them.
    boundary : {"truncated", "inflated"}
        Draw answers beyond the bounds again, or set them to the bound.
    formula : {"exact", "liu", "exponential"}
        ``"exact"`` is the least scale. ``"liu"`` is the published bound for truncated noise; ``"exponential"`` is
        truncated noise as the exponential mechanism with the utility -abs(answer - number)^p.

    Returns
    -------
    float
        Rounded up.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument is out of range.

    Notes
    -----
    ``"exact"``: see the module. ``"liu"``: Liu, "Generalized Gaussian Mechanism for Differential Privacy" (2018),
    equation 7 for one number, b^p = 2 ((R + D)^p - R^p) / epsilon with R = c1 - c0 and sensitivity D. Its 2 covers
    the change of the normalizing constant, which in fact helps for p of at least 2. ``"exponential"``:
    b^p = 2 D_u / epsilon with the bounds of her Lemma 10 for the sensitivity D_u of the utility (McSherry and Talwar
    2007). For inflated noise the paper gives no scale, and equation 7 is not enough.

    Examples
    --------
    >>> import dpframe as dpf
    >>> scale = dpf.truncated_generalized_gaussian_scale
    >>> [round(scale(2, 1.0, output=(0, 20), formula=name), 3) for name in ("exact", "exponential", "liu")]
    [5.755, 8.944, 9.055]
    >>> round(scale(2, 1.0, output=(0, 20), boundary="inflated"), 3)
    6.397
    """
    lowest, highest = checked_output(output)
    reach = up(positive("sensitivity", sensitivity))
    outputs = Range(checked_bounded_shape(p), lowest, highest, reach, 0.0, boundary)
    return scale_by(outputs, down(exact_epsilon(epsilon)), formula)  # rounded down: more noise


def scale_by(outputs: Range, epsilon: float, formula: Formula) -> float:
    """Return the scale by a formula, for a checked range."""
    if not is_one_of(outputs.boundary, BOUNDARIES):
        raise InvalidArgument(f"boundary must be 'truncated' or 'inflated', not {shown(outputs.boundary)}.")
    if not is_one_of(formula, FORMULAS):
        raise InvalidArgument(f"formula must be 'exact', 'liu' or 'exponential', not {shown(formula)}.")
    if formula == "exact":
        return least_scale(outputs, epsilon)
    if outputs.boundary == "inflated" or outputs.cells > 1 or not outputs.p.is_integer():
        raise InvalidArgument(
            f"formula must be 'exact', except for truncated noise with a whole p in one cell, not {shown(formula)}: "
            "the published ones hold for nothing else. Leave formula out."
        )
    power = _liu(outputs) if formula == "liu" else 2 * _utility_sensitivity(outputs)
    return _root_up(power / Fraction(epsilon), int(outputs.p))


def _liu(outputs: Range) -> Fraction:
    """Return 2 ((R + D)^p - R^p), twice the sum of C(p, j) R^(p - j) D^j over j = 1..p, for the drawn range R."""
    width, p = outputs.span + 2 * Fraction(outputs.half), int(outputs.p)
    return 2 * ((width + Fraction(outputs.shift)) ** p - width**p)


def _utility_sensitivity(outputs: Range) -> Fraction:
    """Return Lemma 10's bound on the change of -abs(y - s)^p with s in [c0, c1], for any y in the drawn range.

    Part (c) of the lemma is stated for all p of at least 3. It expands (y - s)^p. For odd p, this also bounds the
    absolute values, since abs(abs(u)^p - abs(v)^p) is at most abs(u^p - v^p).
    """
    low, high, half = Fraction(outputs.lowest), Fraction(outputs.highest), Fraction(outputs.half)
    shift, p = min(Fraction(outputs.shift), outputs.span), int(outputs.p)
    if p == 1:
        return shift
    if p == 2:
        return 2 * shift * (outputs.span + 2 * half)
    largest = max(abs(low - half), abs(high + half))
    return sum(
        (math.comb(p, j) * largest ** (p - j) * _power_sensitivity(low, high, shift, j) for j in range(1, p + 1)),
        Fraction(0),
    )


def _power_sensitivity(low: Fraction, high: Fraction, shift: Fraction, j: int) -> Fraction:
    """Return the largest abs(s^j - t^j) with s and t in [low, high] and at most `shift` apart."""
    if j % 2:
        return max(high**j - (high - shift) ** j, (low + shift) ** j - low**j)
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    most = max(abs(low), abs(high))
    return most**j - max(least, most - shift) ** j


def _root_up(power: Fraction, p: int) -> float:
    import mpmath

    with to_digits(DIGITS):
        estimate = rounded_up(mpmath.root(mpmath.mpf(power.numerator) / power.denominator, p))
    return root_up(power, estimate, p)


def checked_bounded_shape(p: float) -> float:
    """Return the shape, if the worst loss on output bounds is proven for it."""
    shape = checked_shape(p)
    if 1.0 < shape < 2.0:
        raise InvalidArgument(
            f"p must be 1, or from 2 to 16, for noise on output bounds, not {shown(p)}: "
            "between 1 and 2 the worst case is not proven."
        )
    return shape


def checked_output(output: object) -> tuple[float, float]:
    """Return two finite numbers with c0 < c1, rounded inward, so that no answer lies beyond the bounds."""
    way_out = "Write for instance output=(0, 100)."
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        raise InvalidArgument(f"output must be a pair (lowest, highest), not {shown(output)}. {way_out}")
    rule = "two finite numbers with lowest < highest"
    low, high = (exactly("output", bound, rule, f" {way_out}", typed=False) for bound in output)
    lowest, highest = up(low), down(high)
    if not -math.inf < lowest < highest < math.inf:
        raise InvalidArgument(
            f"output must be two finite numbers with lowest < highest, not {shown(output)}. {way_out}"
        )
    return lowest, highest


class Reach(Protocol):
    """The facts about a Total that a calibration needs, as a `Sensitivity` has them."""

    @property
    def grid(self) -> float: ...
    @property
    def swayed(self) -> int: ...
    def norm(self, p: float) -> float: ...


@dataclass(frozen=True)
class TruncatedGeneralizedGaussian(Stepped):
    """Purely private generalized Gaussian noise for answers within declared bounds.

    It is epsilon-DP.

    Made by `TruncatedGeneralizedGaussian.calibrate`. Lengths are in the user's units; only `add_noise` works in grid
    steps. It is not additive noise: the total is clamped to the bounds first, and near a bound the answer is biased
    inward. So a call with it must release one count or sum. Denoisers other than "auto", which then does nothing, are
    refused.

    Parameters
    ----------
    step_sensitivity : float
        The most by which one unit changes the vector, in grid steps and the l1 norm.
    step_scale : float
        b in grid steps.
    grid : float
        The length of a grid step.
    p : float
        The shape: 1, or 2 to 16.
    step_output : tuple of int
        The bounds in grid steps.
    boundary : {"truncated", "inflated"}
        Draw answers beyond the bounds again, or set them to the bound.
    cells : float
        1 if a unit changes one cell; infinity covers any number, with more noise.
    formula : str
        The calibration of the scale; see `truncated_generalized_gaussian_scale`.

    Notes
    -----
    Liu, "Generalized Gaussian Mechanism for Differential Privacy" (2018), Definitions 5 and 7. The proof of the exact
    scale is in the notes of this file. The noise is rounded to the grid, which is post-processing. Totals at a bound
    meet the stated loss exactly, except with truncated noise whose bounds are more than 50 steps apart. There, the
    stated loss is an upper bound, because a step of rounding hides a part: at epsilon 1 and 60 steps, 15% for p = 1,
    1.1% for p = 2 and 2.0% for p = 3. For p of at least 2, the part falls as p over that number of steps.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.TruncatedGeneralizedGaussian.calibrate(p=2, sensitivity=1, epsilon=1.0, output=(0, 20))
    >>> noise.name, round(noise.scale, 3), noise.interval(0.95), noise.delta(1.0)
    ('truncated generalized Gaussian, p = 2', 5.787, 8.0, 0.0)
    """

    p: float = field(kw_only=True)
    step_output: tuple[int, int] = field(kw_only=True)
    boundary: Boundary = field(default="truncated", kw_only=True)
    cells: float = field(default=1.0, kw_only=True)
    formula: Formula = field(default="exact", kw_only=True)
    norm: ClassVar[float] = 1.0
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", checked_bounded_shape(self.p))
        rule = "two whole numbers in order, within +-2**52"
        ends = tuple(checked_whole("step_output", end, -(2**52), 2**52, rule) for end in self.step_output)
        object.__setattr__(self, "step_output", ends)
        lowest, highest = ends
        if not -(2**52) <= lowest < highest <= 2**52:
            raise InvalidArgument(
                f"step_output must be two whole numbers in order, within +-2**52, not {shown(self.step_output)}."
            )
        if self.boundary not in BOUNDARIES:
            raise InvalidArgument(f"boundary must be 'truncated' or 'inflated', not {shown(self.boundary)}.")
        object.__setattr__(self, "cells", checked_float("cells", self.cells))
        if self.cells not in (1.0, math.inf):
            raise InvalidArgument(f"cells must be 1 or infinite, not {shown(self.cells)}.")

    @classmethod
    def calibrate(
        cls,
        *,
        p: float,
        sensitivity: float,
        epsilon: float | Fraction,
        output: tuple[float, float],
        boundary: Boundary = "truncated",
        formula: Formula = "exact",
        cells: float = 1.0,
        grid: float = 1.0,
    ) -> Self:
        """Calibrate epsilon-DP noise of shape p for totals clamped to `output`.

        Parameters
        ----------
        p : float
            The shape: 1, or 2 to 16.
        sensitivity : float
            The most by which one unit can change the vector, in the l1 norm and the user's units.
        epsilon : float or Fraction
            Finite and above 0.
        output : tuple of two numbers
            The bounds, from what you know and never from the data; rounded inward to the grid.
        boundary, formula
            See `truncated_generalized_gaussian_scale`.
        cells : float
            1 if a unit changes one cell; infinity for any number of cells.
        grid : float
            The length of a grid step, in the user's units.

        Raises
        ------
        InvalidArgument, InvalidType
            If an argument is out of range, or the noise would not fit 64-bit integers.

        Examples
        --------
        >>> import dpframe as dpf
        >>> kind = dpf.TruncatedGeneralizedGaussian
        >>> round(kind.calibrate(p=2, sensitivity=1, epsilon=1, output=(0, 20), boundary="inflated").scale, 3)
        6.318
        """
        step, steps = positive("grid", grid), up(steps_of(sensitivity, grid))
        lowest, highest = (Fraction(bound) / step for bound in checked_output(output))
        ends = (math.ceil(lowest), math.floor(highest))  # rounded inward: no answer lies beyond the bounds
        if not -(2**52) <= ends[0] < ends[1] <= 2**52:
            raise InvalidArgument(
                f"output must hold two or more whole steps of the grid {grid:g}, within 2**52 of them, "
                f"unlike {shown(output)}. Write for instance output=(0, 100)."
            )
        made = cls(steps, 1.0, grid, p=p, step_output=ends, boundary=boundary, cells=cells, formula=formula)
        scale = scale_by(made._range, down(exact_epsilon(epsilon)), formula)
        if scale > noise.LARGEST_SCALE:
            raise InvalidArgument(
                f"epsilon must be large enough for noise that fits 64-bit integers, but would need a scale of more "
                f"than {noise.LARGEST_SCALE:.3g} grid steps. Write a larger epsilon."
            )
        return cls(steps, scale, grid, p=p, step_output=ends, boundary=boundary, cells=cells, formula=formula)

    @property
    def _range(self) -> Range:
        """The numbers on which the privacy loss depends, in grid steps."""
        lowest, highest = map(float, self.step_output)
        return Range(self.p, lowest, highest, self.step_sensitivity, 0.5, self.boundary, self.cells)

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta, rounded up."""
        return float(rounded_up(self._range.loss(self.step_scale)))  # the claim is rounded up

    @property
    def name(self) -> str:
        """The name of the noise in plans and in the provenance."""
        kind = "truncated" if self.boundary == "truncated" else "boundary-inflated truncated"
        return f"{kind} generalized Gaussian, p = {self.p:g}"

    @property
    def output(self) -> tuple[float, float]:
        """The bounds of every answer, in the user's units."""
        return (self.step_output[0] * self.grid, self.step_output[1] * self.grid)

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its scale."""
        return {"output": list(self.output), "boundary": self.boundary, "formula": self.formula}

    @property
    def variance(self) -> float:
        """The mean squared distance of the answer from the clamped total.

        The total is the one with the largest such distance.
        """
        span = self.step_output[1] - self.step_output[0]
        below = np.unique(np.linspace(0, span, min(span, MOST_TOTALS) + 1).astype(np.int64))  # totals minus the lowest
        above = span - below
        squared = self._squared(below) + self._squared(above)
        if self.boundary == "truncated":  # the mass beyond the bounds is redrawn
            lower, upper = self._outside(below + 0.5) / 2.0, self._outside(above + 0.5) / 2.0
            squared = (squared - below * (below * lower) - above * (above * upper)) / (1.0 - lower - upper)
        return float(squared.max()) * self.grid**2

    def _outside(self, distance: Any) -> Floats:
        """Return P(abs(noise) > distance), in double precision."""
        from scipy.special import gammaincc

        with np.errstate(over="ignore"):
            return np.asarray(gammaincc(1.0 / self.p, (distance / self.step_scale) ** self.p))

    def _squared(self, most: noise.Integers) -> Floats:
        """Return E min(noise, most)^2 over noise above 0: the sum of (2 k - 1) P(noise >= k) over k = 1 ... most."""
        last = min(int(most.max()), math.ceil(self.step_scale * 60.0 ** (1.0 / self.p)) + 2)  # beyond: below exp(-60)
        if last <= LONGEST_SUM:
            steps = np.arange(1.0, last + 1.0)
            summed = np.append(0.0, np.cumsum((2.0 * steps - 1.0) * self._outside(steps - 0.5)))
            return np.asarray(summed[np.minimum(most, last)] / 2.0)
        from scipy.special import gammainc

        shape = 1.0 / self.p
        spread = self.step_scale**2 * math.exp(math.lgamma(3.0 * shape) - math.lgamma(shape))
        within = spread * gammainc(3.0 * shape, (most / self.step_scale) ** self.p)
        return np.asarray((within + most * (most * self._outside(most))) / 2.0 + 1.0 / 24.0)

    def interval(self, confidence: float) -> float:
        """Return a half-width around the clamped total that holds the answer.

        It does so with this confidence, for any total.
        """
        span, inside = self.step_output[1] - self.step_output[0], checked_confidence(confidence)
        if self.boundary == "truncated":  # shorter sides have a larger share within the width
            steps = self._half_width(inside * (1.0 - float(self._outside(span + 0.5))))
        else:  # from half the span on, all of one side lies within the width
            steps = min(self._half_width(inside), max(span // 2, self._half_width(2.0 * inside - 1.0)))
        return min(span, steps) * self.grid

    def _half_width(self, inside: float) -> int:
        """Return the fewest steps that hold this share of the noise."""
        from scipy.special import gammaincinv

        quantile = self.step_scale * float(gammaincinv(1.0 / self.p, max(0.0, inside))) ** (1.0 / self.p)
        return max(0, math.ceil(quantile - 0.5)) if quantile < MOST else MOST

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Clamp `totals` to the bounds and add independent noise that stays within them.

        The totals are int64, in grid steps.
        """
        lowest, highest = self.step_output
        held = clamped(checked_integers(totals), lowest, highest)
        if self.boundary == "truncated":
            below = (lowest - held).ravel()
            drawn = noise.truncated_generalized_gaussian(self.p, self.step_scale, below, highest - lowest)
        else:
            drawn = noise.rounded_generalized_gaussian(self.p, self.step_scale, held.size)
            drawn = np.clip(drawn, (lowest - held).ravel(), (highest - held).ravel())
        return np.asarray(held + drawn.reshape(held.shape))


def clamped(totals: noise.Integers, lowest: int, highest: int) -> noise.Integers:
    """Return totals within [lowest, highest] whose distances modulo 2**64 do not grow.

    Totals that differ by d modulo 2**64 then differ by at most d. A total may have wrapped around. So near the place
    where totals far above the bounds meet totals far below, the result moves step by step from the upper bound through
    the middle to the lower one. Otherwise, one unit could change a total that wraps from one bound to the other.
    """
    middle = (lowest + highest) // 2
    offset = totals - np.int64(middle)  # modulo 2**64
    above = np.minimum(np.minimum(offset, highest - middle), MOST - offset.clip(min=0))
    below = np.maximum(np.maximum(offset, lowest - middle), LEAST - offset.clip(max=-1))
    return np.asarray(np.where(offset >= 0, above, below) + middle)


def truncated_generalized_gaussian(
    *, p: float, output: tuple[float, float], boundary: Boundary = "truncated", formula: Formula = "exact"
) -> Callable[[Reach, PrivacyLoss], TruncatedGeneralizedGaussian]:
    """Make a calibration of noise within bounds, as ``mechanism=`` of a verb.

    The noise is generalized Gaussian, of shape p, and purely private.

    Parameters
    ----------
    p : float
        The shape: 1, or 2 to 16.
    output : tuple of two numbers
        The bounds of every answer, from what you know and never from the data. Totals beyond them are clamped.
    boundary : {"truncated", "inflated"}
        Draw answers beyond the bounds again, or set them to the bound.
    formula : {"exact", "liu", "exponential"}
        See `truncated_generalized_gaussian_scale`.

    Returns
    -------
    callable
        ``(sensitivity, loss) -> TruncatedGeneralizedGaussian``. A call with it must release one count or sum.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45]})
    >>> mechanism = dpf.truncated_generalized_gaussian(p=2, output=(0, 100))
    >>> people.dp.preview.count(epsilon=1, mechanism=mechanism).error
    {'count': 19.0}
    """
    checked_bounded_shape(p)
    checked_output(output)

    def calibration(sensitivity: Reach, loss: PrivacyLoss) -> TruncatedGeneralizedGaussian:
        return TruncatedGeneralizedGaussian.calibrate(
            p=p,
            sensitivity=sensitivity.norm(1.0),
            epsilon=loss.epsilon,
            output=output,
            boundary=boundary,
            formula=formula,
            cells=1.0 if sensitivity.swayed == 1 else math.inf,
            grid=sensitivity.grid,
        )

    return calibration
