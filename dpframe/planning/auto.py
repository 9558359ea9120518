"""The choice of noise by its variance (mechanism="auto"), and of epsilon by the expected error (within=)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.accounting.comparison import composed_epsilon, least_delta
from dpframe.display import pages
from dpframe.errors import InvalidArgument, InvalidType, how_many, shown
from dpframe.exact import between, down, root_down, up
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.generalized_gaussian import GeneralizedGaussian
from dpframe.planning.sensitivity import Sensitivity, gaussian_of, laplace_of
from dpframe.queries.statistics import CONFIDENCE

START = Fraction(1, 2)
FACTOR = 4
LARGEST = 1.7976931348623157e308
LEAST, MOST = Fraction(1, 10**15), Fraction(10**7)
HALVINGS = 24  # of a bracket [x, 4 x] on a log scale: epsilon is then known to 1 part in 1e7
DIGITS = Context(prec=6, rounding=ROUND_CEILING)  # epsilon is rounded up, so that every error stays within its target
EXAMPLE = "Write for instance within=50."


@dataclass(frozen=True)
class Accuracy:
    """The target of ``within=``: a half-width for each output column, and the confidence at which it must hold."""

    within: float | tuple[tuple[str, float], ...]
    confidence: float = CONFIDENCE

    @classmethod
    def of(cls, within: object, confidence: object) -> Accuracy:
        """Check the arguments `within` and `confidence` of a call."""
        level = CONFIDENCE if confidence is None else _confidence(confidence)
        if isinstance(within, Mapping):
            for name in within:
                if not isinstance(name, str):
                    raise InvalidType(f"within must be a number, or a dict of numbers by output column. {EXAMPLE}")
            return cls(tuple((name, _error(error)) for name, error in within.items()), level)
        return cls(_error(within), level)

    def targets(self, columns: tuple[str, ...]) -> dict[str, float]:
        """Return the target error of each output column; a dict must name every column."""
        if not isinstance(self.within, tuple):
            return dict.fromkeys(columns, self.within)
        if sorted(name for name, _ in self.within) != sorted(columns):
            names = [name for name, _ in self.within]
            raise InvalidArgument(
                f"within must name every output column once ({', '.join(columns)}), not {shown(names)}. "
                "Write a number for all, or a dict with an error for each."
            )
        return dict(self.within)

    def facts(self, columns: tuple[str, ...], size: int | None) -> dict[str, Any]:
        """Return the facts for the provenance; `size` is the assumed number of values of a mean."""
        return {"error": self.targets(columns), "confidence": self.confidence, "size": size}

    def __str__(self) -> str:
        each = self.within if isinstance(self.within, tuple) else (("", self.within),)
        targets = ", ".join(f"{name} within {error:g}".strip() for name, error in each)
        return f"{targets}, with a confidence of {self.confidence:.6g}"


def smallest_epsilon(targets: Mapping[str, float], errors_at: Callable[[Fraction], Mapping[str, float]]) -> Fraction:
    """Return the smallest six-digit epsilon at which every error meets its target. Errors fall as epsilon grows."""

    def reached(epsilon: Fraction) -> bool:
        errors = errors_at(epsilon)
        return all(errors[name] <= target for name, target in targets.items())

    def reached_or_refused(epsilon: Fraction) -> bool:
        try:
            return reached(epsilon)
        except InvalidArgument:  # epsilon is too small: a mechanism refuses noise so large
            return False

    try:
        at_start = reached(START)
    except InvalidArgument:
        if not reached_or_refused(MOST):  # refused for another reason
            raise
        at_start = False
    low, high = _bracket(at_start, reached_or_refused)
    for _ in range(HALVINGS):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if reached_or_refused(middle) else (middle, high)
    smallest = DIGITS.divide(Decimal(high.numerator), Decimal(high.denominator))
    while not reached(Fraction(smallest)):
        smallest = DIGITS.next_plus(smallest)
    return Fraction(smallest)


def _bracket(at_start: bool, reached: Callable[[Fraction], bool]) -> tuple[Fraction, Fraction]:
    """Return an epsilon that misses some target, and one that meets every target."""
    epsilon = START
    if at_start:
        while reached(epsilon):
            if epsilon < LEAST:
                raise InvalidArgument(
                    "within must be an error that takes some epsilon to reach, but any epsilon gives this one. "
                    "Write a smaller one."
                )
            epsilon /= FACTOR
        return epsilon, epsilon * FACTOR
    low = epsilon
    while not reached(epsilon):
        if epsilon >= MOST:
            raise InvalidArgument(
                "within must be an error that some epsilon up to 1e7 gives, but this one is smaller than the noise "
                "can be. Write a larger one."
            )
        low, epsilon = epsilon, min(epsilon * FACTOR, MOST)
    return low, epsilon


def _error(value: object) -> float:
    return between("within", value, 0.0, LARGEST, "a finite number of at least 0", f" {EXAMPLE}", closed=True)


def _confidence(value: object) -> float:
    return between("confidence", value, 0.0, 1.0, "between 0 and 1", " Write for instance confidence=0.95.")


SHAPES = (1.0, 1.05, 1.1, 1.25, 1.5, 1.75, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)  # p of generalized Gaussian candidates
SHAPES_FROM = Fraction(1, 300)  # least delta / epsilon to try them: below, none gains 4% (docs/assurance/noise.md)

Noises = tuple[Mechanism, ...]
Both = Sequence[tuple[Sensitivity, Part]]  # for each Total


@dataclass(frozen=True)
class Choice:
    """The chosen noise of each Total, and the variance or squared error of each candidate, which decides."""

    mechanisms: Noises
    variances: tuple[tuple[str, float], ...]  # by the name of the noise, in ascending order
    is_pure: bool  # whether the chosen noise needs no delta
    reach: str  # the number of cells that one unit may change, as text
    usual: tuple[str, ...]  # the names of the noise that a call may get without "auto"; `why` compares with these
    by_errors: bool = False  # whether `variances` holds squared margins of error of the output columns

    @property
    def name(self) -> str:
        """The name of the chosen noise."""
        return self.variances[0][0]

    @property
    def why(self) -> str:
        """The reason for the choice, as text."""
        others = [(name, variance) for name, variance in self.variances[1:] if name in self.usual]
        if not others:
            return f"{self.name} was chosen: without a delta no other noise is private"
        name, variance = others[0]
        ratio, compared = self.variances[0][1] / variance if variance else 1.0, "variance"
        if self.by_errors:
            ratio, compared = math.sqrt(ratio), "typical margin of error"
        return (
            f"{self.name} was chosen: one unit may change {self.reach}, and its {compared} is {pages.number(ratio)} "
            f"of that of {name} noise"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the choice, for the provenance."""
        return {"mechanism": "auto", "why": self.why, "variances": dict(self.variances)}


def choose(sensitivities: Sequence[Sensitivity], parts: Sequence[Part], *, accounting: Accounting) -> Choice:
    """Choose the candidate with the least geometric mean of variances; all Totals of a call need noise of one shape."""
    both = list(zip(sensitivities, parts, strict=True))
    usual = list(_usual(both))
    tried = [*usual, *_shapes(both, accounting)]
    ranked = sorted(
        ((_typical_variance(noises), noises[0].name, noises) for noises in tried), key=lambda candidate: candidate[0]
    )
    variances = tuple((name, variance) for variance, name, _ in ranked)
    usual_names = tuple(noises[0].name for noises in usual)
    pure = all(_keeps(noise, part.epsilon) for noise, part in zip(ranked[0][2], parts, strict=True))
    return Choice(ranked[0][2], variances, pure, reach_in_words(sensitivities[0]), usual_names)


def _usual(both: Both) -> Iterator[Noises]:
    if all(part.epsilon is not None for _, part in both):
        yield tuple(laplace_of(sensitivity, part) for sensitivity, part in both)
    if all(part.mu is not None for _, part in both):
        yield tuple(gaussian_of(sensitivity, part) for sensitivity, part in both)


def _shapes(both: Both, accounting: Accounting) -> Iterator[Noises]:
    one_cell = all(sensitivity.swayed == 1 and not sensitivity.weighted for sensitivity, _ in both)
    if not (accounting.charges_price and one_cell):  # other shapes protect one cell, at a stated (epsilon, delta)
        return
    if any(part.loss.delta < SHAPES_FROM * Fraction(part.loss.epsilon) for _, part in both):
        return
    for p in SHAPES:
        yield tuple(
            GeneralizedGaussian.calibrate(
                p=p,
                sensitivity=sensitivity.norm(p),
                epsilon=part.loss.epsilon,
                delta=part.loss.delta,
                grid=sensitivity.grid,
            )
            for sensitivity, part in both
        )


def _keeps(noise: Mechanism, epsilon: Fraction | None) -> bool:
    """Return whether the noise is pure and keeps this epsilon."""
    return epsilon is not None and noise.pure_epsilon is not None and noise.pure_epsilon <= up(epsilon)


def _typical_variance(noises: Noises) -> float:
    """Return the geometric mean of the variances: a comparison by it does not depend on the units of the Totals."""
    variances = [noise.variance for noise in noises]
    return math.exp(math.fsum(map(math.log, variances)) / len(variances)) if min(variances) > 0.0 else 0.0


def reach_in_words(sensitivity: Sensitivity) -> str:
    """Return the number of cells that one unit may change, as text for `Choice.why`."""
    number = sensitivity.groups if sensitivity.weighted else sensitivity.swayed
    return f"{how_many(number, 'cell')}{' at full weight' if sensitivity.weighted else ''}"


CLOSE = 1e-6  # the relative tolerance of the factor, and of epsilon
MOST_STEPS = 40
LEAST_SHARE = 1e-300  # the least ratio to epsilon, so that its logarithm is finite
MOST_TIGHTENED = 100.0  # the largest epsilon: above it, losses of smaller noise may exceed double precision


def tightened(noises: Noises, epsilon: Fraction, delta: Fraction) -> Noises:
    """Divide all scales by the largest factor (at least 1) at which the noises together keep epsilon and delta.

    The given noises must keep them by basic composition. The factor has a closed form if all noise is Gaussian, or if
    delta is 0. Otherwise, it follows from the privacy loss distribution of all noises together.
    """
    if _divided(noises, 2.0) == noises:
        return noises
    if not delta:
        whole = sum((_pure(noise) for noise in noises), Fraction(0))
        return _divided(noises, max(1.0, down(epsilon / whole)))
    if all(noise.exact_mu for noise in noises):
        mu_squared = sum((noise.mu_squared for noise in noises), Fraction(0))
        most = Fraction(gaussian_curve.largest_mu(down(epsilon), down(delta))) ** 2
        return _divided(noises, max(1.0, root_down(most / mu_squared)))
    most_epsilon, outside = down(epsilon), down(delta)
    if most_epsilon > MOST_TIGHTENED or outside < least_delta(len(noises)):
        return noises
    return _divided(noises, _largest_factor(noises, most_epsilon, outside))


@lru_cache(maxsize=256)
def _largest_factor(noises: Noises, epsilon: float, delta: float) -> float:
    """Return the factor from the privacy loss distribution; cached, since noise of shape 3 takes seconds."""

    def excess(factor: float) -> float:
        composed = composed_epsilon(_divided(noises, factor), delta)  # 0 if delta alone covers the whole
        return math.log(max(composed / epsilon, LEAST_SHARE))

    low, low_excess = 1.0, excess(1.0)
    if low_excess > 0.0:
        return low
    high, high_excess = 2.0, excess(2.0)
    while high_excess <= 0.0:
        low, low_excess, high = high, high_excess, 2.0 * high
        high_excess = excess(high)
    for _ in range(MOST_STEPS):
        if high <= low * (1.0 + CLOSE):
            break
        straight = low_excess / (low_excess - high_excess)  # the zero of the chord between both, on a log scale
        middle = low * (high / low) ** min(max(straight, 1e-3), 1.0 - 1e-3)
        middle_excess = excess(middle)
        if middle_excess <= 0.0:
            low, low_excess, high_excess = middle, middle_excess, high_excess / 2.0  # so that the other end moves next
        else:
            high, high_excess, low_excess = middle, middle_excess, low_excess / 2.0
        if -CLOSE < middle_excess <= 0.0:
            break
    return low


def _pure(noise: Mechanism) -> Fraction:
    """Return the epsilon that the noise keeps without a delta."""
    return Fraction(noise.epsilon(0.0) if noise.pure_epsilon is None else noise.pure_epsilon)


def _divided(noises: Noises, factor: float) -> Noises:
    """Divide each scale by the factor, rounded up; noise that has no such form stays as it is."""
    return tuple(noise.sharpened(factor) for noise in noises)
