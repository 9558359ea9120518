"""The choice of the noise, mechanism="auto": the shape of least variance at this cost, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.display import pages
from dpframe.exact import up
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.gaussian import ContrastGaussian, Gaussian
from dpframe.mechanisms.generalized_gaussian import GeneralizedGaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning.sensitivity import Sensitivity

SHAPES = (1.0, 1.05, 1.1, 1.25, 1.5, 1.75, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)  # beside Laplace and Gaussian noise
SHAPES_FROM = Fraction(1, 300)  # of delta / epsilon: below, no other shape gains 4% (docs/concepts/which-noise.md)

Noises = tuple[Mechanism, ...]
Both = Sequence[tuple[Sensitivity, Part]]  # of each Total


@dataclass(frozen=True)
class Choice:
    """The noise of each Total, and the variances that decided, relative to the least."""

    mechanisms: Noises
    variances: tuple[tuple[str, float], ...]  # by the name of the noise, the least first
    is_pure: bool  # whether it needs no delta
    reach: str  # how many cells one unit may sway, in words
    usual: tuple[str, ...]  # the names of the noises that a call takes by itself, with which it is compared

    @property
    def name(self) -> str:
        """The noise that was chosen."""
        return self.variances[0][0]

    @property
    def why(self) -> str:
        """The reason as text."""
        others = [(name, variance) for name, variance in self.variances[1:] if name in self.usual]
        if not others:
            return f"{self.name} was chosen: without a delta no other noise is private"
        name, variance = others[0]
        ratio = self.variances[0][1] / variance if variance else 1.0
        return (
            f"{self.name} was chosen: one unit may change {self.reach}, and its variance is {pages.number(ratio)} "
            f"of that of {name} noise"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The same for the provenance."""
        return {"mechanism": "auto", "why": self.why, "variances": dict(self.variances)}


def laplace_of(sensitivity: Sensitivity, part: Part) -> Laplace:
    """Pure noise for a part of the cost."""
    assert part.epsilon is not None
    return Laplace.of_steps(math.ceil(sensitivity.steps(1)), part.epsilon, sensitivity.grid)


def gaussian_of(sensitivity: Sensitivity, part: Part) -> Gaussian:
    """Gaussian noise for a part of the cost."""
    assert part.mu is not None
    if sensitivity.contrasts is not None:
        steps = Fraction(sensitivity.steps(2))
        return ContrastGaussian.of_design(steps, part.mu, sensitivity.grid, sensitivity.contrasts)
    return Gaussian.of_mu(Fraction(sensitivity.steps(2)), part.mu, sensitivity.grid)


def choose(reach: Sequence[Sensitivity], parts: Sequence[Part], *, accounting: Accounting) -> Choice:
    """The candidate whose variances have the least geometric mean; all Totals of a call need one shape."""
    both = list(zip(reach, parts, strict=True))
    usual = list(_usual(both))
    tried = [*usual, *_shapes(both, accounting)]
    ranked = sorted(
        ((_typical_variance(noises), noises[0].name, noises) for noises in tried), key=lambda candidate: candidate[0]
    )
    variances = tuple((name, variance) for variance, name, _ in ranked)
    usual_names = tuple(noises[0].name for noises in usual)
    pure = all(_keeps(noise, part.epsilon) for noise, part in zip(ranked[0][2], parts, strict=True))
    return Choice(ranked[0][2], variances, pure, reach_in_words(reach[0]), usual_names)


def _usual(both: Both) -> Iterator[Noises]:
    if all(part.epsilon is not None for _, part in both):
        yield tuple(laplace_of(sensitivity, part) for sensitivity, part in both)
    if all(part.mu is not None for _, part in both):
        yield tuple(gaussian_of(sensitivity, part) for sensitivity, part in both)


def _shapes(both: Both, accounting: Accounting) -> Iterator[Noises]:
    one_cell = all(sensitivity.swayed == 1 and not sensitivity.weighted for sensitivity, _ in both)
    if not (accounting.charges_price and one_cell):  # only there is another shape private
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
    """Tell whether it keeps this epsilon without a delta."""
    return epsilon is not None and noise.pure_epsilon is not None and noise.pure_epsilon <= up(epsilon)


def _typical_variance(noises: Noises) -> float:
    """The geometric mean of the variances: their units differ, and a factor in each counts alike."""
    variances = [noise.variance for noise in noises]
    return math.exp(math.fsum(map(math.log, variances)) / len(variances)) if min(variances) > 0.0 else 0.0


def reach_in_words(sensitivity: Sensitivity) -> str:
    """The number of cells that one unit may change, for `Choice.why`."""
    number = sensitivity.groups if sensitivity.weighted else sensitivity.swayed
    return f"{number:,} cell{'' if number == 1 else 's'}{' at full weight' if sensitivity.weighted else ''}"
