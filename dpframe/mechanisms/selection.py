"""The exponential mechanism: one of several options, chosen privately and drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import checked_whole, exact_epsilon, exactly, finite, is_number, positive, up
from dpframe.mechanisms import pure
from dpframe.mechanisms.asked import checked_confidence, checked_integers, curve_point, length
from dpframe.mechanisms.contract import Mechanism

HUGE = Fraction(10) ** 300  # exp of minus that is 0 in any precision that is ever drawn


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """The choice of one of several options, with probability proportional to exp(epsilon score / spread).

    Made by `ExponentialMechanism.of_steps`, for the counts of a release. Lengths are in the user's units, those of
    scores; only `choose` and `add_noise` work in grid steps.

    Parameters
    ----------
    spread : Fraction
        In grid steps: between neighboring data sets the changes of any two scores differ by at most this.
    budget : Fraction
        The epsilon of pure differential privacy.
    step_sensitivity : float
        How far one unit moves one score, in grid steps.
    options : int
        How many there are to choose from.
    grid : float
        The length of a grid step.

    Notes
    -----
    McSherry and Talwar, "Mechanism Design via Differential Privacy" (2007). Let d_i be the change of score i between
    neighbors, all within an interval of length `spread`. The probability of i changes by the factor
    exp(epsilon d_i / spread) times a mean of exp(-epsilon d_j / spread), together at most
    exp(epsilon (d_i - min d) / spread) <= exp(epsilon). Where one unit moves a score by at most D: spread = 2 D; and
    spread = D where all scores move the same way (as counts do when a unit is added or removed).

    No weight is ever computed to be added up: the draw is exact (see `exponential_mechanism`).

    Examples
    --------
    >>> import dpframe as dpf
    >>> choice = dpf.ExponentialMechanism.of_steps(1, 0.5, monotonic=True, options=10)
    >>> choice.scale, choice.interval(0.95), choice.epsilon(0.0)
    (2.0, 10.0, 0.5)
    """

    spread: Fraction
    budget: Fraction
    step_sensitivity: float
    options: int
    grid: float = 1.0

    def __post_init__(self) -> None:
        for argument in ("spread", "budget"):
            object.__setattr__(self, argument, positive(argument, getattr(self, argument)))
        for argument in ("step_sensitivity", "grid"):
            object.__setattr__(self, argument, length(argument, getattr(self, argument)))
        options = checked_whole("options", self.options, 1, 2**53, "a whole number above 0")
        object.__setattr__(self, "options", options)

    name: ClassVar[str] = "exponential mechanism"
    p: ClassVar[float] = math.inf
    norm: ClassVar[float] = math.inf
    cells: ClassVar[float] = math.inf
    additive: ClassVar[bool] = False

    @classmethod
    def of_steps(
        cls, step_sensitivity: float, epsilon: float | Fraction, *, monotonic: bool, options: int, grid: float = 1.0
    ) -> Self:
        """The choice that is epsilon-DP where one unit moves each score by at most `step_sensitivity` steps.

        Parameters
        ----------
        step_sensitivity : float
            In grid steps.
        epsilon : float or Fraction
            Finite and above 0.
        monotonic : bool
            Whether one unit moves all scores the same way, if it moves them.
        options : int
            How many there are to choose from.
        grid : float
            The length of a grid step, in the user's units.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.ExponentialMechanism.of_steps(1, 0.5, monotonic=False, options=10).scale
        4.0
        """
        reach = positive("step_sensitivity", step_sensitivity)
        return cls(reach * (1 if monotonic else 2), exact_epsilon(epsilon), up(reach), options, grid)

    @property
    def sensitivity(self) -> float:
        """How far one unit moves one score."""
        return self.step_sensitivity * self.grid

    @property
    def scale(self) -> float:
        """The difference of scores that makes an option e times as likely."""
        return up(self.spread / self.budget) * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """What the provenance says of it besides its scale."""
        return {"options": self.options}

    @property
    def variance(self) -> float:
        """A bound on the mean squared distance of the chosen score from the largest, from the bound on its tail."""
        more = math.log(self.options)
        return (more**2 + 2.0 * more + 2.0) * self.scale**2

    def interval(self, confidence: float) -> float:
        """How far below the largest score the chosen one may be, at this confidence; the worst over all scores.

        That is k - 1 options of k which are so far below, and hence chosen with probability x / (1 + x),
        x = (k - 1) exp(-distance / scale).
        """
        confidence = checked_confidence(confidence)
        outside = 1.0 - confidence
        if self.options == 1 or (self.options - 1) * confidence <= outside:
            return 0.0
        steps = self.scale / self.grid * (math.log(self.options - 1) + math.log(confidence) - math.log(outside))
        return max(0, math.ceil(steps) - 1) * self.grid

    def delta(self, epsilon: float) -> float:
        """A delta at this epsilon: 0 from its own epsilon on, below what every pure release keeps; rounded up."""
        if curve_point(epsilon) >= self.budget:
            return 0.0
        return pure.delta_of_pure(self.pure_epsilon, exactly("epsilon", epsilon, typed=False))

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that it keeps without a delta, rounded up."""
        return up(self.budget)

    def choose(self, scores: noise.Integers) -> int:
        """The place of the chosen score, of an int64 array in grid steps."""
        flat = checked_integers(scores).ravel()
        rate, highest = self.budget / self.spread, int(flat.max())
        gaps = np.uint64(highest % 2**64) - flat.view(np.uint64)  # modulo 2**64: right for any two int64
        losses = np.minimum(gaps * float(rate), float(HUGE))
        return noise.exponential_choice(losses, lambda place: (highest - int(flat[place])) * rate)

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """1 at the place of the chosen score, and 0 elsewhere."""
        marked = np.zeros(checked_integers(totals).size, dtype=np.int64)
        marked[self.choose(totals)] = 1
        return marked.reshape(totals.shape)


def exponential_mechanism(
    scores: Sequence[Any], *, epsilon: float | Fraction, sensitivity: float | Fraction, monotonic: bool = False
) -> int:
    """Choose one of several options privately, by scores that you computed from private data.

    Parameters
    ----------
    scores : sequence or array of real numbers
        One per option, the larger the better; integers, floats, fractions and decimals are taken exactly.
    epsilon : float or Fraction
        Finite and above 0. Nothing charges a ledger: that is yours to do.
    sensitivity : float or Fraction
        How far one unit can move any one score. It must hold for the numbers as computed, rounding and all.
    monotonic : bool
        Whether one unit can only raise scores, or only lower them, as a count does when a row is added or removed: the
        choice is then twice as sharp. Never for neighbors by replacement.

    Returns
    -------
    int
        The place of the chosen option, with probability proportional to exp(epsilon score / (2 sensitivity)), or
        exp(epsilon score / sensitivity) where `monotonic`. The choice is epsilon-differentially private.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument is out of range. A score that is not finite is refused: whether one is must not depend on data.

    Notes
    -----
    McSherry and Talwar, "Mechanism Design via Differential Privacy" (2007); `ExponentialMechanism` has the proof. The
    draw is exact: an option is drawn uniformly and kept with probability exp(-epsilon gap / spread), gap its distance
    from the largest score, until one is kept. The comparison with random bits is decided by intervals of rationals, and
    draws more bits where they do not decide. No exponentials are added up in floating point, which would shift the
    probabilities with the scores and leak (Ilvento, "Implementing the Exponential Mechanism with Base-2 Differential
    Privacy", 2020).

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.exponential_mechanism([3, 500, 40], epsilon=1.0, sensitivity=1)
    1
    """
    if not isinstance(monotonic, (bool, np.bool_)):
        raise InvalidType(f"monotonic must be True or False, not {shown(monotonic)}.")
    rate = exact_epsilon(epsilon) / (positive("sensitivity", sensitivity) * (1 if monotonic else 2))
    exact = [_exact_score(score) for score in scores]
    if not exact:
        raise InvalidArgument("scores must hold at least one number.")
    highest = max(exact)
    losses = [(highest - score) * rate for score in exact]
    return noise.exponential_choice(np.array([float(min(loss, HUGE)) for loss in losses]), losses.__getitem__)


def _exact_score(score: Any) -> Fraction:
    if not is_number(score):
        raise InvalidType("scores must be real numbers, and one of them is none.")  # which one it is may be private
    found = finite(score)
    if found is None:
        raise InvalidArgument("scores must be finite and of at most 1,000 digits, and one of them is not.")
    return found
