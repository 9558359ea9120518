"""Comparison of accountings: the epsilon that each one gives for the same releases.

**Privacy loss distributions** give the tightest account of noises that are fixed beforehand, by Google's dp-accounting.
Any noise of dpframe enters by its own exact privacy curve. From it, the pessimistic distribution of Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi ("Connect the Dots", 2022, Algorithm 1) is made. Its curve consists of chords of the exact
one, which is convex in e^epsilon, so it is never below it. dp-accounting convolves the distributions. The curve of each
noise belongs to one pair of outputs that dominates all neighboring ones. Such pairs compose, even if the questions are
chosen adaptively (Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic Function", 2022,
Theorem 10).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting.by_curves import conversion
from dpframe.accounting.compositions import advanced_composition, optimal_composition
from dpframe.display import charts, pages
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, how_many, sentence, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import SMALLEST_NORMAL, down, exact_delta, shown_up, typed_down, up
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.contract import is_mechanism
from dpframe.mechanisms.declared import Curve, is_curve

SPLITS = tuple(Fraction(tenths, 10) for tenths in range(1, 10))  # of delta, for the releases; composition has the rest
ORDERS = tuple(1 + Fraction(2) ** power for power in range(-5, 41, 3))
REFINEMENTS = (Fraction(2), Fraction(5, 4), Fraction(21, 20))
ALL_KEYS = "the keys that are found take all of delta"
EXAMPLE = "Write for instance dpf.compare_accounting([noise] * 10, delta=1e-6)."

NEEDS_ACCOUNTING = "privacy loss distributions need dp-accounting: pip install 'dpframe[accounting]'"
LEAST_DELTA = 1e-12
MOST_LOSS = 700.0  # of one noise: exponentials of a larger loss do not fit double precision
POINTS = 2_000  # points of the narrowest distribution, on each side of 0
MOST_POINTS = 50_000  # points of the widest distribution, on each side of 0
TRIED = 4.0 ** np.arange(-15.0, 21.0)
TRUNCATED = 1e-5  # share of delta that all distributions together may lose in their tails, as an infinite loss
SHAVED, ROUNDING = 1e-6, 2e-14  # what double precision may lose: a share of delta, and an amount
ROUNDING_EACH = 4e-15  # the amount that each noise adds: 20 times the most that was measured


@dataclass(frozen=True)
class Compared:
    """The answer of one accounting: the least epsilon of a workload at the common delta.

    The epsilon is None if the accounting does not apply; the note states why.
    """

    accounting: str
    epsilon: float | None
    note: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """The answers of accountings for one workload at one delta.

    Made by `compare_accounting`.

    Parameters
    ----------
    workload : str
        The releases, as text.
    delta : float
        The delta at which every epsilon holds.
    rows : tuple of Compared
        One for each accounting, with `.accounting`, `.epsilon` (rounded up; None if it does not apply) and `.note`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=1e-6)
    >>> [(row.accounting, round(row.epsilon, 2)) for row in dpf.compare_accounting([noise] * 4, delta=1e-6).rows[3:5]]
    [('gdp', 1.05), ('rdp', 1.13)]
    """

    workload: str
    delta: float
    rows: tuple[Compared, ...]

    def to_frame(self, like: str = "polars") -> Any:
        """Make a Polars (or ``"pandas"``) frame with one row for each accounting."""
        rows = [
            {
                "accounting": row.accounting,
                "epsilon": math.nan if row.epsilon is None else row.epsilon,
                "delta": self.delta,
                "note": row.note,
            }
            for row in self.rows
        ]
        return pages.as_frame(rows, like)

    def plot(self) -> Any:
        """Plot the epsilon of each accounting (an Altair chart; needs ``dpframe[plot]``)."""
        points = [(row.accounting, row.epsilon) for row in self.rows if row.epsilon is not None]
        words = charts.Words("What each accounting says of the same releases", (sentence(self._at),), self.workload)
        return charts.named_points(points, "epsilon (logarithmic)", pages.number, words)

    @property
    def _at(self) -> str:
        return f"at delta {self.delta:g}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [row.accounting, "-" if row.epsilon is None else pages.number(row.epsilon), row.note] for row in self.rows
        ]
        return ["accounting", "epsilon", "note"], rows

    def __repr__(self) -> str:
        facts = [("releases", self.workload), ("reads at", f"delta {self.delta:g}")]
        return pages.text_page("Accountings of one workload", facts, *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page("Accountings of one workload", [self.workload, self._at], *self._table())


@trimmed
def compare_accounting(workload: Any, *, delta: float | None = None) -> Comparison:
    """Compare the smallest epsilon of the same releases at one delta, by accounting.

    Parameters
    ----------
    workload : Mechanism, Plan, declared curve, or a sequence of them
        The noise of every release; for a plan, the noise of each of its statistics and of its checks. ``[noise] * 100``
        stands for a hundred releases. A `PureLoss` or `BoundedRange` of `dpframe.accounting` stands for a release of
        which no more is known.
    delta : float
        The delta of all releases together, 0 < delta < 1.

    Returns
    -------
    Comparison
        It has `.rows`, `.to_frame()` and `.plot()`. Every epsilon is rounded up.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule.

    Notes
    -----
    A ledger can use ``basic``, ``gdp`` and ``rdp``. Here, ``rdp`` uses the best order for this workload, while a ledger
    fixes its orders beforehand. ``advanced`` and ``optimal`` use only the epsilon and the delta of the noise, and hold
    for equal releases. ``pld`` needs the extra ``accounting`` and a delta of at least 1e-12, and applies to noise that
    is fixed beforehand. See ``docs/assurance/accounting.md``.

    Examples
    --------
    >>> import dpframe as dpf
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    >>> compared = dpf.compare_accounting([noise] * 100, delta=1e-6)
    >>> [(row.accounting, round(row.epsilon, 2)) for row in compared.rows[:3]]
    [('basic', 10.0), ('advanced', 6.31), ('optimal', 4.8)]
    """
    if delta is None:
        raise MissingArgument(f"delta must be given: every accounting is read at one delta. {EXAMPLE}")
    whole = exact_delta(delta)
    if not whole:
        raise InvalidArgument(f"delta must be above 0 to compare accountings. {EXAMPLE}")
    noises = _noises(workload)
    rows = (
        _basic(noises, whole),
        *_of_equal(noises, whole),
        _gdp(noises, whole),
        _rdp(noises, whole),
        _pld(noises, whole),
    )
    return Comparison(_in_words(noises), shown_up(whole), rows)


def _noises(workload: Any) -> tuple[Curve, ...]:
    listed = list(workload) if isinstance(workload, (list, tuple)) else [workload]
    noises: list[Curve] = []
    for item in listed:
        releases = [item] if is_curve(item) else getattr(item, "drawn", None)  # for a Plan, with those of its checks
        if not isinstance(releases, (list, tuple)):
            raise InvalidType(f"workload must be a mechanism, a Plan, or a list of them, not {shown(item)}. {EXAMPLE}")
        noises += releases
    if not noises:
        raise InvalidArgument(f"workload must have at least one release. {EXAMPLE}")
    return tuple(noises)


def _in_words(noises: Sequence[Curve]) -> str:
    counts = Counter(noises)
    words = [f"{count:,} x {_named(noise)}" for noise, count in list(counts.items())[:3]]
    rest = sum(list(counts.values())[3:])
    return "; ".join([*words, f"{rest:,} more"] if rest else words)


def _named(noise: Curve) -> str:
    """Return the name of a mechanism with its scale; a declared curve has none."""
    if not is_mechanism(noise):
        return str(noise)
    scale = pages.number(noise.scale / noise.sensitivity)
    return f"{noise.name}, scale {scale} {'sensitivity' if scale == '1' else 'sensitivities'}"


def _basic(noises: Sequence[Curve], delta: Fraction) -> Compared:
    """Add up epsilons; the noises that are not pure share delta equally."""
    counts, left = Counter(noises), _left(noises, delta)
    if not left:
        return Compared("basic", None, ALL_KEYS)
    share = Fraction(
        typed_down(left / (sum(count for noise, count in counts.items() if noise.pure_epsilon is None) or 1))
    )
    whole = sum((count * _epsilon(noise, share) for noise, count in counts.items()), Fraction(0))
    return Compared("basic", up(whole), "epsilons and deltas add up")


def _epsilon(noise: Curve, delta: Fraction) -> Fraction:
    """Return the epsilon of one release, rounded up: of pure noise, or at `delta` plus the delta of infinite losses."""
    whole = down(delta + Fraction(noise.infinite))
    return Fraction(noise.epsilon(whole) if noise.pure_epsilon is None else noise.pure_epsilon)


def _of_equal(noises: Sequence[Curve], delta: Fraction) -> list[Compared]:
    """Apply theorems on equal releases, which use epsilon and delta alone, at the best of several splits of delta."""
    first, count = noises[0], len(noises)
    if any(noise != first for noise in noises):
        return _neither("for equal releases alone")
    left, lost = _left(noises, delta), Fraction(first.infinite)
    if not left:
        return _neither(ALL_KEYS)
    splits = (
        [(left * s / count, left * (1 - s)) for s in SPLITS] if first.pure_epsilon is None else [(Fraction(0), left)]
    )
    if min(part for split in splits for part in split if part) < SMALLEST_NORMAL:
        return _neither("a part of delta would be below all floats")
    each = [(_epsilon(first, leak), leak + lost, slack) for leak, slack in splits]
    advanced = min(advanced_composition(e, leak, count, slack=slack).epsilon for e, leak, slack in each)
    if first.pure_epsilon is None:  # optimal composition also applies if the releases have all of delta
        each.append((_epsilon(first, left / count), left / count + lost, Fraction(0)))
    optimal = min(optimal_composition(e, leak, count, total_delta=delta).epsilon for e, leak, _ in each)
    return [
        Compared("advanced", advanced, "Dwork, Rothblum and Vadhan 2010, from epsilon and delta alone"),
        Compared("optimal", optimal, "Kairouz, Oh and Viswanath 2015, from epsilon and delta alone"),
    ]


def _neither(why: str) -> list[Compared]:
    return [Compared(name, None, why) for name in ("advanced", "optimal")]


def _gdp(noises: Sequence[Curve], delta: Fraction) -> Compared:
    try:
        total = sum((noise.mu_squared for noise in noises), Fraction(0))
    except InvalidArgument:
        return Compared("gdp", None, "a noise has no proven mu")
    mu = math.nextafter(math.sqrt(up(total)), math.inf)
    exact = all(noise.exact_mu for noise in noises)
    note = "exact: all noise is Gaussian" if exact else "pure noise enters by its mu"
    left = _left(noises, delta)
    note = note if left == delta else "the chance that a key is shown is taken off delta"
    if not left:
        return Compared("gdp", None, ALL_KEYS)
    return Compared("gdp", gaussian_curve.epsilon_of_mu(mu, down(left)), note)


def _left(noises: Sequence[Curve], delta: Fraction) -> Fraction:
    """Return the delta that is left for noise after the infinite losses of unknown groups."""
    return max(Fraction(0), delta - sum((Fraction(noise.infinite) for noise in noises), Fraction(0)))


def _rdp(noises: Sequence[Curve], delta: Fraction) -> Compared:
    """Take the best of many orders, first far apart, then closer; this is valid since the workload is declared."""
    counts, left = Counter(noises), _left(noises, delta)
    if not left:
        return Compared("rdp", None, ALL_KEYS)

    def at(order: Fraction) -> Fraction:
        return conversion(order, left) + sum(count * noise.renyi(order) for noise, count in counts.items())

    try:
        best = min(ORDERS, key=at)
    except InvalidArgument:  # truncated noise has no finite divergence
        return Compared("rdp", None, "a noise has no proven Rényi divergence")
    for factor in REFINEMENTS:
        best = min((1 + (best - 1) * factor**power for power in (-2, -1, 0, 1, 2)), key=at)
    return Compared("rdp", up(max(at(best), Fraction(0))), f"the best order, {float(best):.4g}")


def _pld(noises: Sequence[Curve], delta: Fraction) -> Compared:
    try:
        epsilon = composed_epsilon(noises, down(delta))
    except ImportError:
        return Compared("pld", None, NEEDS_ACCOUNTING)
    except InvalidArgument:
        least = least_delta(len(noises))
        return Compared("pld", None, f"for a delta of at least {least:.2g}, and losses of at most {MOST_LOSS:g}")
    return Compared("pld", epsilon, "the noises are fixed beforehand")


def least_delta(noises: int) -> float:
    """Return the least delta for this number of noises: double precision may lose half of it.

    The loss is in the distribution of the noises.
    """
    return max(LEAST_DELTA, 2.0 * _rounding(noises))


def _rounding(noises: int) -> float:
    return ROUNDING + ROUNDING_EACH * noises


def composed_epsilon(mechanisms: Sequence[Curve], delta: float) -> float:
    """Return the epsilon of all mechanisms together at `delta`, rounded up.

    The noises must be fixed before the first answer.
    """
    return Composition(mechanisms, delta).epsilon


class Composition:
    """The privacy loss distribution of several mechanisms together."""

    def __init__(self, mechanisms: Sequence[Curve], delta: float) -> None:
        least = least_delta(len(mechanisms))
        if not delta >= least:
            raise InvalidArgument(
                f"delta must be at least {least:.2g} for the loss distribution of "
                f"{how_many(len(mechanisms), 'noise')}, not {shown(delta)}: below, double precision "
                "decides. Use gdp or rdp accounting there."
            )
        counts = Counter(mechanisms)
        tail = delta * TRUNCATED / len(mechanisms)
        reaches = {mechanism: _reach(mechanism, tail) for mechanism in counts}
        if not max(reaches.values()) <= MOST_LOSS:
            raise InvalidArgument(
                f"epsilon must be at most {MOST_LOSS:g} in each noise for a privacy loss distribution: exponentials of "
                "more do not fit double precision. Use basic or gdp accounting there."
            )
        self._delta = delta - math.fsum(mechanism.infinite for mechanism in mechanisms)  # infinite losses count in full
        if self._delta < least:
            raise InvalidArgument(
                "delta must be above the deltas of keys that are found, which no epsilon covers. Write more."
            )
        self._rounding = _rounding(len(mechanisms))
        self._step = max(min(reaches.values()) / POINTS, max(reaches.values()) / MOST_POINTS)
        whole: Any = None
        for mechanism, count in counts.items():
            composed = _distribution(mechanism, reaches[mechanism], self._step).self_compose(count, tail)
            whole = composed if whole is None else whole.compose(composed, tail)
        self._whole = whole

    @property
    def epsilon(self) -> float:
        """The epsilon at the delta of the composition, rounded up."""
        sharp = self._delta * (1.0 - SHAVED) - self._rounding
        return float(self._whole.get_epsilon_for_delta(sharp)) * (1.0 + 1e-9)


def _reach(mechanism: Curve, tail: float) -> float:
    """Return an epsilon, nearly the least, at which the curve is at most `tail`; for pure noise, its own epsilon."""
    if mechanism.pure_epsilon is not None:
        return mechanism.pure_epsilon
    reach = float(TRIED[np.argmax(_finite(mechanism, TRIED) <= tail)])
    nearer = np.linspace(reach / 4.0, reach, 64)
    return float(nearer[np.argmax(_finite(mechanism, nearer) <= tail)])


def _finite(mechanism: Curve, epsilons: Any) -> Any:
    """Return the curve of the finite losses."""
    return mechanism.deltas(epsilons) - mechanism.infinite if mechanism.infinite else mechanism.deltas(epsilons)


def _distribution(mechanism: Curve, reach: float, step: float) -> Any:
    """Return the pessimistic distribution on multiples of `step` that has the mechanism's curve there."""
    accounting = _dp_accounting()
    last = max(1, math.ceil(reach / step))
    epsilons = np.asarray(np.arange(-last, last + 1) * step, dtype=np.float64)
    deltas = np.minimum.accumulate(np.clip(mechanism.deltas(epsilons), 0.0, 1.0))
    deltas = np.maximum(deltas - mechanism.infinite, 0.0)  # `Composition` subtracts infinite losses from delta
    pmf = accounting.pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)
    return accounting.privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _dp_accounting() -> Any:
    try:
        from dp_accounting import pld
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: F401  (makes them attributes of pld)
    except ImportError:
        raise ImportError(NEEDS_ACCOUNTING) from None
    return pld
