"""A quantile chosen privately among declared candidates by their distance in ranks, also for tied values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument
from dpframe.exact import exact_epsilon, exactly, up
from dpframe.mechanisms import curves
from dpframe.mechanisms.contract import Mechanism, checked_integers
from dpframe.mechanisms.selection import ExponentialMechanism, PermuteAndFlip

FINEST = 10_000  # the largest denominator of q: scores of up to 2**32 rows, weighted or not, are exact
MOST = 2**62  # the largest distance of a candidate, in parts of steps; a larger one counts as this one
SHOWN = 0.95  # the confidence of the interval in a record

Product = tuple[int, Any]  # the two factors: a part of q, and counts


@dataclass(frozen=True)
class QuantileChoice(Mechanism):
    """The candidate nearest to the q-quantile in ranks, chosen privately.

    The choice uses the counts at the candidates.

    Made by `QuantileChoice.of_steps`. Lengths are in ranks (rows, or weighted rows of units).

    Parameters
    ----------
    choice : ExponentialMechanism or PermuteAndFlip
        The choice by scores. Their unit is one rank divided by the denominator of `q`.
    q : Fraction
        The quantile, between 0 and 1.
    reach : float
        The most by which one unit changes all counts together (their l_1 norm), in ranks.
    steps : float
        The length of a step of the counts.

    Notes
    -----
    With L rows below a candidate, E at it and N in all, the score is -max(0, L - q N, q N - (L + E)). It is 0 if the
    candidate is a q-quantile, however many rows are tied there. The usual score -abs((1 - q) L - q G), with G rows
    above, would penalize ties. ``docs/assurance/privacy.md`` proves that adding or removing a row changes no two scores
    by amounts that differ by more than max(1, 2 q, 2 (1 - q)).

    Some score is always 0, so `interval` bounds the distance of the chosen candidate from the quantile in ranks. It
    does not bound the distance in values: a choice alone does not show it.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> median = QuantileChoice.of_steps(dpf.ExponentialMechanism, 1, 1.0, q=Fraction(1, 2), replace=False, options=5)
    >>> median.name, median.scale, median.interval(0.95)
    ('quantile by exponential mechanism', 1.0, 4.0)
    >>> median.scores(np.array([2, 3, 4, 1, 0]))  # in half ranks
    array([ -6,   0,   0,  -8, -10])
    """

    choice: ExponentialMechanism | PermuteAndFlip
    q: Fraction
    reach: float
    steps: float = 1.0

    norm: ClassVar[float] = 1.0
    p: ClassVar[float] = math.inf
    cells: ClassVar[float] = math.inf
    additive: ClassVar[bool] = False

    @classmethod
    def of_steps(
        cls,
        kind: type[ExponentialMechanism] | type[PermuteAndFlip],
        step_sensitivity: float,
        epsilon: float | Fraction,
        *,
        q: Fraction,
        replace: bool,
        options: int,
        grid: float = 1.0,
    ) -> QuantileChoice:
        """Return the choice that is epsilon-DP for counts of this sensitivity.

        One unit changes all counts together by at most `step_sensitivity` steps.

        Parameters
        ----------
        kind : type
            `ExponentialMechanism` or `PermuteAndFlip`.
        step_sensitivity : float
            The l_1 sensitivity of the counts in grid steps; for neighbors by replacement, that of both units together.
        epsilon : float or Fraction
            Finite and above 0.
        q : Fraction
            Between 0 and 1, with a denominator of at most 10,000.
        replace : bool
            Whether neighbors replace a unit.
        options : int
            The number of candidates.
        grid : float
            The length of a step of the counts.
        """
        parts = quantile_parts(q).denominator
        norm = exactly("step_sensitivity", step_sensitivity, typed=False)
        spread = norm * parts * (1 if replace else max(Fraction(1), 2 * q, 2 * (1 - q)))
        moved = norm * parts * (Fraction(1, 2) if replace else max(q, 1 - q))
        choice = kind(spread, exact_epsilon(epsilon), up(moved), options, grid / parts)
        return cls(choice, q, up(norm) * grid, grid)

    @property
    def name(self) -> str:
        """The name in plans and provenances."""
        return f"quantile by {self.choice.name}"

    @property
    def sensitivity(self) -> float:
        """The most by which one unit changes all counts together."""
        return self.reach

    @property
    def grid(self) -> float:
        """The length of a step of the counts."""
        return self.steps

    @property
    def scale(self) -> float:
        """The difference in ranks that makes a candidate e times as likely."""
        return self.choice.scale

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its scale."""
        return {**self.choice.details, "ranks": self.interval(SHOWN)}

    @property
    def variance(self) -> float:
        """A bound on the mean squared distance of the chosen candidate, in squared ranks.

        The distance is measured from the quantile.
        """
        return self.choice.variance

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta, rounded up."""
        return self.choice.pure_epsilon

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up."""
        return self.choice.mu_squared

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""
        return self.choice.renyi(order)

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, rounded up."""
        return self.choice.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up."""
        return self.choice.epsilon(delta)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, in double precision."""
        return self.choice.deltas(epsilons)

    def interval(self, confidence: float) -> float:
        """Return the most ranks between the chosen candidate and the quantile.

        The bound holds with this confidence, for any data.
        """
        return self.choice.interval(confidence)

    def scores(self, counts: noise.Integers) -> noise.Integers:
        """Return the score of each candidate, from the counts at all candidates.

        Scores are in steps divided by the denominator of q, and are at least -2**62. This limit does not increase the
        largest change of a score by one unit, nor the largest difference of two changes.
        """
        up_to = np.cumsum(counts)
        parts, target = self.q.denominator, self.q.numerator
        too_high = _away((parts, up_to - counts), (target, up_to[-1:]))
        too_low = _away((target, up_to[-1:]), (parts, up_to))
        return np.asarray(-np.maximum(too_high, too_low))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Return 1 at the place of the chosen candidate, and 0 elsewhere."""
        return self.choice.add_noise(self.scores(checked_integers(totals).ravel())).reshape(totals.shape)


def _away(one: Product, other: Product) -> noise.Integers:
    """Return how far one product is above another, from 0 to 2**62, even if products of 64 bits wrap.

    A float estimate errs by less than 2**30, since a product is below 2**77. So it shows where the difference fits 64
    bits. There, the difference modulo 2**64 is exact.
    """
    about = float(one[0]) * np.asarray(one[1], np.float64) - float(other[0]) * np.asarray(other[1], np.float64)
    exact = np.clip(np.asarray(one[0] * one[1] - other[0] * other[1]), 0, MOST)
    return np.where(about < -float(MOST), 0, np.where(about > MOST + 2.0**30, MOST, exact))


def quantile_parts(q: float | Fraction) -> Fraction:
    """Return the quantile as an exact fraction: for a float, the decimal that was typed.

    A fraction with too large a denominator is refused.
    """
    fraction = exactly("q", q)
    if fraction.denominator > FINEST:
        raise InvalidArgument(
            f"q must be a fraction of at most {FINEST:,} parts for a choice, such as 0.125, not {float(q):g}. "
            "Round it, or leave mechanism out."
        )
    return fraction
