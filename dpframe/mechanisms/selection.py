"""Private choices, drawn exactly: one option (exponential mechanism, permute-and-flip) or several (peeling)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import checked_whole, down, exact_epsilon, finite, is_number, length, positive, root_down, up
from dpframe.mechanisms import curves, declared, gaussian_curve
from dpframe.mechanisms.contract import Mechanism, checked_confidence, checked_integers
from dpframe.mechanisms.curves import checked_outside, curve_point
from dpframe.mechanisms.declared import BoundedRange, PureLoss

HALVINGS = 100
HUGE = Fraction(10) ** 300  # exp(-HUGE) is 0 in any precision that a draw reaches


@dataclass(frozen=True)
class _Choice(Mechanism):
    """The base of private choices of one option by its score. Made by `of_steps`."""

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

    p: ClassVar[float] = math.inf
    norm: ClassVar[float] = math.inf
    cells: ClassVar[float] = math.inf
    additive: ClassVar[bool] = False
    bounded: ClassVar[bool] = False  # True if all its privacy losses lie in one interval of length epsilon

    @classmethod
    def of_steps(
        cls, step_sensitivity: float, epsilon: float | Fraction, *, monotonic: bool, options: int, grid: float = 1.0
    ) -> Self:
        """Return the choice that is epsilon-DP if one unit changes each score by at most `step_sensitivity` steps.

        Parameters
        ----------
        step_sensitivity : float
            In grid steps.
        epsilon : float or Fraction
            Finite and above 0.
        monotonic : bool
            Whether one unit changes all scores in the same direction, if it changes them.
        options : int
            The number of options to choose from.
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
        """The largest change of one score by one unit."""
        return self.step_sensitivity * self.grid

    @property
    def scale(self) -> float:
        """The difference of scores that makes an option e times as likely."""
        return up(self.spread / self.budget) * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts for the provenance, apart from its scale."""
        return {"options": self.options}

    @property
    def variance(self) -> float:
        """A bound on the mean squared distance of the chosen score from the largest, from the bound on its tail.

        The bound is that of the exponential mechanism. Permute-and-flip is never farther off (McKenna and Sheldon
        2020, Theorem 2).
        """
        more = math.log(self.options)
        return (more**2 + 2.0 * more + 2.0) * self.scale**2

    @property
    def pure_epsilon(self) -> float:
        """The epsilon that holds without a delta, rounded up."""
        return up(self.budget)

    @property
    def curve(self) -> BoundedRange | PureLoss:
        """The declared curve: that of a bounded range, or that of any pure release."""
        raise self._incomplete("curve", "curve")

    def delta(self, epsilon: float) -> float:
        """Return the delta of the declared curve at this epsilon, rounded up."""
        return self.curve.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon of the declared curve at this delta, rounded up."""
        return self.curve.epsilon(delta)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, in double precision."""
        return self.curve.deltas(epsilons)

    def interval(self, confidence: float) -> float:
        """Return the most by which the chosen score is below the largest, with this confidence, for any scores.

        The worst case is k options of which k - 1 have the same gap to the best one. A gap of one step more than the
        interval must give them together a chance of at most 1 - confidence.
        """
        return max(0, math.ceil(self._gap(checked_confidence(confidence))) - 1) * self.grid

    def choose(self, scores: noise.Integers) -> int:
        """Return the place of the chosen score in an int64 array of scores in grid steps."""
        flat = checked_integers(scores).ravel()
        rate, highest = self.budget / self.spread, int(flat.max())
        gaps = np.uint64(highest % 2**64) - flat.view(np.uint64)  # modulo 2**64: exact for any two int64
        with np.errstate(all="ignore"):
            losses = np.minimum(gaps * float(rate), float(HUGE))
        return self._drawn(losses, lambda index: (highest - int(flat[index])) * rate)

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Return 1 at the place of the chosen score, and 0 elsewhere."""
        marked = np.zeros(checked_integers(totals).size, dtype=np.int64)
        marked[self.choose(totals)] = 1
        return marked.reshape(totals.shape)

    def _gap(self, confidence: float) -> float:
        """Return the gap in steps at which all other options together have the chance 1 - confidence."""
        raise self._incomplete("_gap", "_gap(confidence)")

    def _drawn(self, losses: noise.Floats, exact: Callable[[int], Fraction]) -> int:
        """Draw the index of an option, given the losses of all options."""
        raise self._incomplete("_drawn", "_drawn(losses, exact)")


@dataclass(frozen=True)
class ExponentialMechanism(_Choice):
    """The exponential mechanism: a private choice of one of several options.

    An option's probability is proportional to exp(epsilon score / spread). Made by `ExponentialMechanism.of_steps`, for
    the counts of a release. Lengths are in the user's units, those of scores; only `choose` and `add_noise` work in
    grid steps.

    Parameters
    ----------
    spread : Fraction
        The most by which the changes of any two scores between neighboring data sets differ, in grid steps.
    budget : Fraction
        The epsilon of pure differential privacy.
    step_sensitivity : float
        The most by which one unit changes one score, in grid steps.
    options : int
        The number of options to choose from.
    grid : float
        The length of a grid step.

    Notes
    -----
    McSherry and Talwar, "Mechanism Design via Differential Privacy" (2007). Let d_i be the change of score i between
    neighbors, all within an interval of length `spread`. The probability of i changes by the factor
    exp(epsilon d_i / spread) times a mean of exp(-epsilon d_j / spread), together at most
    exp(epsilon (d_i - min d) / spread) <= exp(epsilon). If one unit changes a score by at most D, spread = 2 D; and
    spread = D if all scores change in the same direction (as counts do when a unit is added or removed).

    The mean is the same for all i, so all privacy losses lie in one interval of length epsilon. This is a bounded range
    (Durfee and Rogers 2019). So it costs much less than other pure noise of this epsilon under any accounting that adds
    up losses by their curves. `dpframe.mechanisms.declared` has the curve, mu and divergences,
    ``docs/assurance/privacy.md`` the proof.

    No weights are computed and added up: the draw is exact (see `exponential_mechanism`).

    Examples
    --------
    >>> import dpframe as dpf
    >>> choice = dpf.ExponentialMechanism.of_steps(1, 0.5, monotonic=True, options=10)
    >>> choice.scale, choice.interval(0.95), choice.epsilon(0.0)
    (2.0, 10.0, 0.5)
    >>> round(choice.mu, 6), round(dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5).mu_squared ** 0.5, 6)
    (0.312979, 0.623893)
    """

    name: ClassVar[str] = "exponential mechanism"
    bounded: ClassVar[bool] = True

    @property
    def curve(self) -> BoundedRange:
        """The declared curve of its choices."""
        return BoundedRange(self.budget)

    @property
    def mu(self) -> float:
        """The mu of its bounded range, rounded up."""
        return self.curve.mu

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up."""
        return self.curve.mu_squared

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""
        return self.curve.renyi(order)

    def _gap(self, confidence: float) -> float:
        """Solve x / (1 + x) = 1 - confidence: the chance of all others together, with x = (k - 1) exp(-gap / scale)."""
        outside = 1.0 - confidence
        if self.options == 1 or (self.options - 1) * confidence <= outside:
            return 0.0
        return self.scale / self.grid * (math.log(self.options - 1) + math.log(confidence) - math.log(outside))

    def _drawn(self, losses: noise.Floats, exact: Callable[[int], Fraction]) -> int:
        return noise.exponential_choice(losses, exact)


@dataclass(frozen=True)
class PermuteAndFlip(_Choice):
    """Permute-and-flip: a private choice of one of several options.

    It considers the options in random order, and takes each with probability exp(-gap / scale). Made by
    `PermuteAndFlip.of_steps`, with the same parameters as `ExponentialMechanism`. It has the same epsilon, and its
    choice is never farther below the largest score.

    Notes
    -----
    McKenna and Sheldon, "Permute-and-Flip: A new mechanism for differentially private selection" (2020). The gap is
    the distance from the largest score, which is always taken when it is considered. The choice has the same law as the
    largest of all scores with independent exponential noise of this scale (Ding, Kifer, Steinke, Wang, Xiao and Zhang
    2021). The proof of its epsilon is in ``docs/assurance/privacy.md``. Its range is not bounded: under ``gdp`` and
    ``rdp`` accounting, the exponential mechanism costs less, and a call uses that there.

    The draw is exact: an option that is drawn again is skipped, so that options come in random order.

    Examples
    --------
    >>> import dpframe as dpf
    >>> choice = dpf.PermuteAndFlip.of_steps(1, 0.5, monotonic=True, options=10)
    >>> choice.scale, choice.interval(0.95), choice.epsilon(0.0)
    (2.0, 8.0, 0.5)
    """

    name: ClassVar[str] = "permute-and-flip"

    @property
    def curve(self) -> PureLoss:
        """The declared curve of its choices: that of any pure release."""
        return PureLoss(self.budget)

    def _gap(self, confidence: float) -> float:
        """Bisect for the gap: the best has the chance (1 - (1 - p)^k) / (k p), p = exp(-gap / scale), which grows."""
        low, high = 0.0, math.log(self.options) - math.log(1.0 - confidence)  # the others' chance is <= (k - 1) p / 2

        def outside(gap: float) -> float:
            chance = math.exp(-gap)
            none = self.options * math.log1p(-chance) if chance < 1.0 else -math.inf
            return 1.0 + math.expm1(none) / (self.options * chance)

        if outside(low) <= 1.0 - confidence:
            return 0.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if outside(middle) <= 1.0 - confidence else (middle, high)
        return high * (1.0 + 1e-12) * self.scale / self.grid  # rounded up by more than the error of double precision

    def _drawn(self, losses: noise.Floats, exact: Callable[[int], Fraction]) -> int:
        return noise.permuted_choice(losses, exact)


def exponential_mechanism(
    scores: Sequence[Any], *, epsilon: float | Fraction, sensitivity: float | Fraction, monotonic: bool = False
) -> int:
    """Choose one of several options privately, by scores from private data.

    Parameters
    ----------
    scores : sequence or array of real numbers
        One score per option; larger is better. Integers, floats, fractions and decimals are taken exactly.
    epsilon : float or Fraction
        Finite and above 0. No ledger is charged: account for the cost yourself.
    sensitivity : float or Fraction
        The most by which one unit can change any one score. It must hold for the computed numbers, rounding included.
    monotonic : bool
        Whether one unit can only raise scores, or only lower them, as counts change when a row is added or removed. The
        choice is then twice as sharp. Never set it for neighbors by replacement.

    Returns
    -------
    int
        The place of the chosen option, with probability proportional to exp(epsilon score / (2 sensitivity)), or
        exp(epsilon score / sensitivity) if `monotonic`. The choice is epsilon-differentially private.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument is out of range. A score that is not finite is refused: whether there is one must not depend on
        data.

    Notes
    -----
    McSherry and Talwar, "Mechanism Design via Differential Privacy" (2007); `ExponentialMechanism` has the proof. The
    draw is exact: options are drawn uniformly until one is kept, with probability exp(-epsilon gap / spread), where gap
    is its distance from the largest score. The comparison with random bits is decided by intervals of rationals; if
    they do not decide, more bits are drawn. No exponentials are added up in floating point, which would shift the
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
        raise InvalidType("scores must be real numbers, and one of them is none.")  # its place may be private
    exact = finite(score)
    if exact is None:
        raise InvalidArgument("scores must be finite and of at most 1,000 digits, and one of them is not.")
    return exact


@dataclass(frozen=True)
class Peeling(Mechanism):
    """Several options in order: one choice, then another among the rest, and so on.

    Parameters
    ----------
    choice : ExponentialMechanism or PermuteAndFlip
        The choice for each place. Its budget is the epsilon of one place.
    chosen : int
        The number of options to choose, at most all of them.

    Notes
    -----
    Choices without replacement compose like any releases. The earlier choices are public. Given these, the bounds on
    the changes of scores hold for the remaining scores, so each place costs what `choice` costs. Epsilons add up, and
    so do mu^2 and Rényi divergences (Durfee and Rogers 2019; ``docs/assurance/privacy.md``). With the exponential
    mechanism, the curve is that of Gaussian noise of the same mu; with permute-and-flip, that of any pure release.

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
                f"k must be at least 1 and at most the number of options, {self.choice.options:,}, not "
                f"{self.chosen:,}. Write a smaller one, or declare more categories."
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
        """The most by which one unit changes one score."""
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
        """The facts for the provenance, apart from its scale."""
        return {**self.choice.details, "chosen": self.chosen}

    @property
    def variance(self) -> float:
        """A bound on the mean squared distance of a chosen score from the largest remaining one."""
        return self.choice.variance

    @property
    def _pure(self) -> PureLoss | None:
        """The declared curve of all places together, or None if the curve is given by mu."""
        return None if self.choice.bounded else PureLoss(self.choice.budget * self.chosen)

    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon that holds without a delta, rounded up.

        It is None if the curve is given by mu.
        """
        return None if self._pure is None else self._pure.pure_epsilon

    @property
    def mu_squared(self) -> Fraction:
        """The charge in Gaussian differential privacy, rounded up.

        It is that of all places together, or that of any pure release.
        """
        return self.choice.mu_squared * self.chosen if self._pure is None else self._pure.mu_squared

    @property
    def mu(self) -> float:
        """The square root of `mu_squared`, rounded up."""
        return math.nextafter(math.sqrt(up(self.mu_squared)), math.inf)

    def renyi(self, order: Fraction) -> Fraction:
        """Return the charge in Rényi differential privacy of this order, rounded up."""
        return self.choice.renyi(order) * self.chosen if self._pure is None else self._pure.renyi(order)

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, rounded up."""
        if self._pure is not None:
            return self._pure.delta(epsilon)
        return gaussian_curve.delta_of_mu(self.mu, down(Fraction(curve_point(epsilon))))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up."""
        if self._pure is not None:
            return self._pure.epsilon(delta)
        outside = checked_outside(delta)
        return gaussian_curve.epsilon_of_mu(self.mu, outside) if outside else up(self.choice.budget * self.chosen)

    def deltas(self, epsilons: curves.Floats) -> curves.Floats:
        """Return the deltas at many epsilons, in double precision."""
        if self._pure is not None:
            return self._pure.deltas(epsilons)
        return curves.both_sides(epsilons, lambda some: curves.of_gaussian(self.mu, some))

    def interval(self, confidence: float) -> float:
        """Return the most by which any chosen score may be below the largest remaining one.

        The bound holds for all places together with this confidence. Each place exceeds it with a chance of at most an
        equal share of 1 - confidence, since later places have fewer options than the first.
        """
        outside = (1.0 - checked_confidence(confidence)) / self.chosen
        return self.choice.interval(math.nextafter(1.0 - outside, 1.0))

    def add_noise(self, totals: noise.Integers) -> noise.Integers:
        """Return ranks: k for the first choice, k - 1 for the second, down to 1, and 0 for the other options."""
        scores = checked_integers(totals).ravel()
        left, ranks = np.arange(scores.size), np.zeros(scores.size, dtype=np.int64)
        for rank in range(self.chosen, 0, -1):
            winner = self.choice.choose(scores[left])
            ranks[left[winner]] = rank
            left = np.delete(left, winner)
        return ranks.reshape(totals.shape)


def own_of_place(epsilon: Fraction, mu: float | None, places: int) -> Fraction:
    """Return the epsilon of each of several places that the exponential mechanism chooses.

    It is rounded down, so that all places together cost at most the given cost. Without a mu, it is epsilon / places.
    With a mu, each place may have mu / sqrt(places). The result is then the larger of epsilon / places and the epsilon
    of a bounded range of that mu, 2 logit(Phi(mu / (2 sqrt(places)))).
    """
    if mu is None:
        return epsilon / places
    return max(epsilon / places, declared.own_of_mu(root_down(Fraction(mu) ** 2 / places)))
