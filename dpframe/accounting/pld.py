"""Privacy loss distributions: the tightest account of noises that are fixed beforehand, by Google's dp-accounting.

Any noise of dpframe enters by its own exact privacy curve, from which the pessimistic distribution of Doroshenko,
Ghazi, Kamath, Kumar and Manurangsi ("Connect the Dots", 2022, Algorithm 1) is made: its curve is the chords of the
exact one, which is convex in e^epsilon, and so never below it. dp-accounting convolves the distributions. The curve
of each noise belongs to one pair of outputs that dominates all neighboring ones, and such pairs compose, also where
the questions are chosen adaptively (Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
Function", 2022, Theorem 10).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument, shown
from dpframe.mechanisms.declared import Curve

NEEDS_ACCOUNTING = "privacy loss distributions need dp-accounting: pip install 'dpframe[accounting]'"
LEAST_DELTA = 1e-12
POINTS = 2_000  # of the narrowest distribution, on each side of 0
MOST_POINTS = 50_000  # of the widest
TRIED = 4.0 ** np.arange(-15.0, 21.0)
TRUNCATED = 1e-5  # of delta: what all distributions together may lose in their tails, counted as an infinite loss
SHAVED, ROUNDING = 1e-6, 2e-14  # of delta, and of any: what double precision may lose


def composed_epsilon(mechanisms: Sequence[Curve], delta: float) -> float:
    """The epsilon of all of them together at `delta`, rounded up; the noises must be fixed before the first answer."""
    return Composition(mechanisms, delta).epsilon


class Composition:
    """The privacy loss distribution of several mechanisms together."""

    def __init__(self, mechanisms: Sequence[Curve], delta: float) -> None:
        if not delta >= LEAST_DELTA:
            raise InvalidArgument(
                f"delta must be at least {LEAST_DELTA:g} for a privacy loss distribution, not {shown(delta)}: below, "
                "double precision decides. Use gdp or rdp accounting there."
            )
        counts = Counter(mechanisms)
        tail = delta * TRUNCATED / len(mechanisms)
        reaches = {mechanism: _reach(mechanism, tail) for mechanism in counts}
        self._delta = delta - math.fsum(mechanism.infinite for mechanism in mechanisms)  # an infinite loss is all delta
        if self._delta < LEAST_DELTA:
            raise InvalidArgument(
                "delta must be above the deltas of keys that are found, which no epsilon covers. Write more."
            )
        self._step = max(min(reaches.values()) / POINTS, max(reaches.values()) / MOST_POINTS)
        whole: Any = None
        for mechanism, count in counts.items():
            composed = _distribution(mechanism, reaches[mechanism], self._step).self_compose(count, tail)
            whole = composed if whole is None else whole.compose(composed, tail)
        self._whole = whole

    @property
    def epsilon(self) -> float:
        """At the delta that it was made for; rounded up."""
        sharp = self._delta * (1.0 - SHAVED) - ROUNDING
        return float(self._whole.get_epsilon_for_delta(sharp)) * (1.0 + 1e-9)


def _reach(mechanism: Curve, tail: float) -> float:
    """An epsilon at which the curve is not above `tail`, nearly the least; of pure noise its own, on the grid."""
    if mechanism.pure_epsilon is not None:
        return mechanism.pure_epsilon
    reach = float(TRIED[np.argmax(_finite(mechanism, TRIED) <= tail)])
    nearer = np.linspace(reach / 4.0, reach, 64)
    return float(nearer[np.argmax(_finite(mechanism, nearer) <= tail)])


def _finite(mechanism: Curve, epsilons: Any) -> Any:
    """The curve of the losses that are finite."""
    return mechanism.deltas(epsilons) - mechanism.infinite if mechanism.infinite else mechanism.deltas(epsilons)


def _distribution(mechanism: Curve, reach: float, step: float) -> Any:
    """The pessimistic distribution on multiples of `step` that has the mechanism's curve there."""
    accounting = _dp_accounting()
    last = max(1, math.ceil(reach / step))
    epsilons = np.asarray(np.arange(-last, last + 1) * step, dtype=np.float64)
    deltas = np.minimum.accumulate(np.clip(mechanism.deltas(epsilons), 0.0, 1.0))
    deltas = np.maximum(deltas - mechanism.infinite, 0.0)  # what no epsilon covers is taken off delta once
    pmf = accounting.pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)
    return accounting.privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _dp_accounting() -> Any:
    try:
        from dp_accounting import pld
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: F401  (makes them attributes of pld)
    except ImportError:
        raise ImportError(NEEDS_ACCOUNTING) from None
    return pld
