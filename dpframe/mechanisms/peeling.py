"""Peeling: the k best of several options in order, each chosen privately among those that are left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument
from dpframe.exact import down, root_down, up
from dpframe.mechanisms import bounded_range, curves, gaussian_curve
from dpframe.mechanisms.asked import checked_confidence, checked_integers, checked_outside, curve_point
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.declared import PureLoss
from dpframe.mechanisms.selection import ExponentialMechanism, PermuteAndFlip


@dataclass(frozen=True)
class Peeling(Mechanism):
    """Several options in order: a choice, then the same choice among the others, and so on.

    Parameters
    ----------
    choice : ExponentialMechanism or PermuteAndFlip
        That of every place. Its budget is the epsilon of one place.
    chosen : int
        How many are chosen; at most as many as there are options.

    Notes
    -----
    Choices without replacement compose as any releases: given the places before, which everybody sees, the scores that
    are left change between neighbors as all of them do, so each place costs what `choice` costs. Epsilons add up, and
    so do mu^2 and Rényi divergences (Durfee and Rogers 2019; ``docs/privacy.md``). By the exponential mechanism its
    curve is that of Gaussian noise of the same mu, by permute-and-flip that of any pure release.

    Examples
    --------
    >>> import dpframe as dpf
    >>> choice = dpf.PermuteAndFlip.of_steps(1, 0.5, monotonic=True, options=10)
    >>> top = Peeling(choice, 3)
    >>> top.name, top.pure_epsilon, top.interval(0.95)
    ('peeling by permute-and-flip', 1.5, 11.0)
    """

    choice: ExponentialMechanism | PermuteAndFlip
    chosen: int

    def __post_init__(self) -> None:
        if not 1 <= self.chosen <= self.choice.options:
            raise InvalidArgument(
                f"k must be at least 1 and at most the {self.choice.options:,} options, not {self.chosen:,}. "
                "Write a smaller one, or declare more categories."
            )

    p: ClassVar[float] = math.inf
    norm: ClassVar[float] = math.inf
    cells: ClassVar[float] = math.inf
    additive: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name in plans and provenances."""
        return f"peeling by {self.choice.name}"

    @property
    def sensitivity(self) -> float:
        """The most that one unit moves one score by."""
        return self.choice.sensitivity

    @property
    def grid(self) -> float:
        """The length of a grid step."""
        return self.choice.grid

    @property
    def scale(self) -> float:
        """The difference of scores that makes an option e times as likely at one place."""
        return self.choice.scale

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance besides its scale."""
        return {**self.choice.details, "chosen": self.chosen}

    @property
    def variance(self) -> float:
        """A bound on the mean squared distance of each chosen score from the largest that was left."""
        return self.choice.variance

    @property
    def _pure(self) -> PureLoss | None:
        """The curve that is declared for all places together; None where it is stated by mu."""
        return None if self.choice.bounded else PureLoss(self.choice.budget * self.chosen)

    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon that it keeps without a delta, rounded up; None where its curve is stated by mu."""
        return None if self._pure is None else self._pure.pure_epsilon

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up: that of a place as often, or of any pure release."""
        return self.choice.mu_squared * self.chosen if self._pure is None else self._pure.mu_squared

    @property
    def mu(self) -> float:
        """The root of it, rounded up."""
        return math.nextafter(math.sqrt(up(self.mu_squared)), math.inf)

    def renyi(self, order: Fraction) -> Fraction:
        """The charge in Rényi differential privacy of this order, rounded up."""
        return self.choice.renyi(order) * self.chosen if self._pure is None else self._pure.renyi(order)

    def delta(self, epsilon: float) -> float:
        """The delta at this epsilon; rounded up."""
        if self._pure is not None:
            return self._pure.delta(epsilon)
        return gaussian_curve.delta_of_mu(self.mu, down(Fraction(curve_point(epsilon))))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; rounded up."""
        if self._pure is not None:
            return self._pure.epsilon(delta)
        outside = checked_outside(delta)
        return gaussian_curve.epsilon_of_mu(self.mu, outside) if outside else up(self.choice.budget * self.chosen)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """The delta at many epsilons, in double precision."""
        if self._pure is not None:
            return self._pure.deltas(epsilons)
        return curves.both_sides(epsilons, lambda some: curves.of_gaussian(self.mu, some))

    def interval(self, confidence: float) -> float:
        """The most that any chosen score may be below the largest that was left, at this confidence for all places.

        Each place misses by more with at most its part of 1 - confidence, as fewer options are left than at the first.
        """
        outside = (1.0 - checked_confidence(confidence)) / self.chosen
        return self.choice.interval(math.nextafter(1.0 - outside, 1.0))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Ranks: k at the place of the first that is chosen, k - 1 at that of the second, down to 1; else 0."""
        scores = checked_integers(totals).ravel()
        left, ranks = np.arange(scores.size), np.zeros(scores.size, dtype=np.int64)
        for rank in range(self.chosen, 0, -1):
            winner = self.choice.choose(scores[left])
            ranks[left[winner]] = rank
            left = np.delete(left, winner)
        return ranks.reshape(totals.shape)


def own_of_place(epsilon: Fraction, mu: float | None, places: int) -> Fraction:
    """The epsilon of each of several places by the exponential mechanism: all together cost at most this; rounded down.

    Without a mu epsilon itself is divided. Else each place takes mu / sqrt(places), of which
    epsilon = 2 logit(Phi(mu / (2 sqrt(places)))) is the most that a bounded range may have.
    """
    if mu is None:
        return epsilon / places
    return max(epsilon / places, bounded_range.own_of_mu(root_down(Fraction(mu) ** 2 / places)))
