"""The two audits, epsilon at a delta and mu for Gaussian privacy, and what they find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.audit.outcomes import Bound, Outcome, apart, epsilon_bound, mu_bound, observe
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import between, checked_float, checked_whole

Release = Callable[[], Any]

FEWEST = 40  # samples, and calls whose texts are counted: below, no half of them says anything


def epsilon(
    left: Release,
    right: Release,
    *,
    claimed: float,
    delta: float = 0.0,
    samples: int = 10_000,
    outcomes: int = 1,
    confidence: float = 0.95,
) -> Finding:
    """Bound epsilon from below by what a release lets out of two neighboring data sets.

    Parameters
    ----------
    left, right : callable
        Each takes nothing and releases once: the same release, from one and from the other of two data sets that
        differ in one unit. They may return a frame, an array, a number, a list, tuple or dict of such parts, or
        anything that prints. Take data that differ as much as one unit can make them.
    claimed : float
        The epsilon that the release promises.
    delta : float
        The delta that it promises.
    samples : int
        How many outcomes to draw of each side; 100,000 see noise that is a tenth too small.
    outcomes : int
        How many independent outcomes one call returns. A group-by of a thousand groups with people of their own is a
        thousand releases at once; the rows of the answer, in their order, are divided evenly among them. A denoiser
        mixes rows: leave it out there.
    confidence : float
        How sure the bound must be: a release that keeps its promise meets with an objection with a chance of at most
        1 - `confidence`.

    Returns
    -------
    Finding
        With ``.lower_bound``, ``.claimed``, ``.holds``, ``.event`` and ``.differences``; prints as text.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Notes
    -----
    An event E is chosen on one half of the samples: a threshold on a value, on the lowest bits of a value, on a
    likelihood ratio of all values, or on how often a text is seen. Texts are everything that is not a number:
    exceptions, warnings, log lines, prints, dtypes, columns, keys, row order, category levels, attrs, provenance. On
    the other half P(E) and Q(E) get limits by Clopper and Pearson (1934), and log((P - delta) / Q) bounds epsilon by
    the definition of differential privacy. A high bound is a proof of loss; a low bound proves nothing.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=2.0)  # half of the noise that epsilon 1 needs
    >>> def release(total):
    ...     return noise.add_noise(np.full(1_000, total, dtype=np.int64))
    >>> found = dpf.audit.epsilon(
    ...     lambda: release(10), lambda: release(11), claimed=1.0, samples=40_000, outcomes=1_000, confidence=0.999999
    ... )
    >>> found.holds
    False
    """
    delta = checked_float("delta", delta)
    if not 0.0 <= delta < 1.0:
        raise InvalidArgument(f"delta must be a number with 0 <= delta < 1, not {shown(delta)}.")
    return _audited("epsilon", left, right, epsilon_bound(delta), claimed, delta, samples, outcomes, confidence)


def mu(
    left: Release,
    right: Release,
    *,
    claimed: float,
    samples: int = 10_000,
    outcomes: int = 1,
    confidence: float = 0.95,
) -> Finding:
    """Bound the mu of Gaussian differential privacy from below; the sharper question for Gaussian noise.

    Parameters
    ----------
    left, right, samples, outcomes, confidence
        As for `epsilon`.
    claimed : float
        The mu that the release promises: its sensitivity over its sigma, or the root of the sum of squares of several.

    Returns
    -------
    Finding
        Of ``quantity`` "mu".

    Notes
    -----
    Under mu-Gaussian privacy Phi^-1(P(E)) - Phi^-1(Q(E)) <= mu for every event E (Dong, Roth and Su 2022,
    Definition 2.6), and for Gaussian noise every threshold attains it. No delta has to be seen.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> found = dpf.audit.mu(
    ...     lambda: noise.add_noise(np.full(1_000, 10, dtype=np.int64)),
    ...     lambda: noise.add_noise(np.full(1_000, 11, dtype=np.int64)),
    ...     claimed=noise.mu, samples=10_000, outcomes=1_000, confidence=0.999999,
    ... )
    >>> found.holds
    True
    """
    return _audited("mu", left, right, mu_bound, claimed, 0.0, samples, outcomes, confidence)


def _audited(
    quantity: str,
    left: Release,
    right: Release,
    bound: Bound,
    claimed: float,
    delta: float,
    samples: int,
    outcomes: int,
    confidence: float,
) -> Finding:
    for argument, release in (("left", left), ("right", right)):
        if not callable(release):
            raise InvalidType(f"{argument} must be a function that releases once, not {shown(release)}.")
    claimed = checked_float("claimed", claimed)
    if not 0.0 <= claimed < math.inf:
        raise InvalidArgument(f"claimed must be finite and not negative, not {shown(claimed)}.")
    confidence = between("confidence", confidence, 0.0, 1.0, "between 0 and 1", " Write for instance 0.95.")
    per_call = _whole("outcomes", outcomes, 1)
    calls = math.ceil(_whole("samples", samples, FEWEST) / per_call)
    seen = [[observe(release, per_call) for _ in range(calls)] for release in (left, right)]
    first, second = ([outcome.text for outcome in side] for side in seen)
    alpha = (1.0 - confidence) / 2  # one half for the numbers, one for all else
    codes = {text: code for code, text in enumerate(dict.fromkeys(first + second))}
    findings = [(0.0, "none")]
    if calls >= FEWEST:
        findings.append(
            outcomes.strongest(_coded(first, codes), _coded(second, codes), outcomes.of_texts, bound, alpha)
        )
    first_numbers, second_numbers = (_stacked(side, per_call) for side in seen)
    if first_numbers.shape[1] and second_numbers.shape[1]:
        width = max(first_numbers.shape[1], second_numbers.shape[1])
        first_numbers, second_numbers = (
            outcomes.finite(_widened(side, width)) for side in (first_numbers, second_numbers)
        )
        findings.append(outcomes.strongest(first_numbers, second_numbers, outcomes.of_numbers, bound, alpha))
    proved, event = max(findings)
    return Finding(quantity, proved, claimed, delta, confidence, calls * per_call, event, apart(first, second))


def _coded(texts: list[str], codes: dict[str, int]) -> NDArray[np.int64]:
    return np.array([codes[text] for text in texts], dtype=np.int64)


def _stacked(side: list[Outcome], per_call: int) -> NDArray[np.float64]:
    """The numbers of all calls of one side, a row per outcome; NaN where a call has fewer than another, or none."""
    width = max(0 if outcome.numbers is None else outcome.numbers.shape[1] for outcome in side)
    empty = np.full((per_call, 0), np.nan)
    return np.concatenate([_widened(empty if outcome.numbers is None else outcome.numbers, width) for outcome in side])


def _widened(rows: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=np.nan)


def _whole(argument: str, value: object, least: int) -> int:
    return checked_whole(argument, value, least, 2**53, f"a whole number from {least} on")


@dataclass(frozen=True)
class Finding:
    """A privacy loss bounded from below by what two neighboring data sets let out.

    Made by `dpframe.audit.epsilon` and `dpframe.audit.mu`.

    Parameters
    ----------
    quantity : {"epsilon", "mu"}
        What is bounded.
    lower_bound : float
        The quantity is above this, except for a chance of at most 1 - `confidence`.
    claimed : float
        What the mechanism promises.
    delta : float
        The delta of the promise; 0 for mu.
    confidence : float
        How sure the bound is.
    samples : int
        The outcomes of each side.
    event : str
        The event that showed it, fixed on one half of the samples and counted on the other.
    differences : tuple of str
        What besides numbers only one side showed: texts, dtypes, keys, their order, warnings, log lines, exceptions.
        By chance where they depend on the noise; otherwise each of them tells the sides apart.

    Examples
    --------
    >>> import dpframe as dpf
    >>> finding = dpf.audit.Finding("epsilon", 0.93, 1.0, 0.0, 0.95, 20_000, "value 0 >= 3", ())
    >>> finding.holds
    True
    >>> print(finding)
    epsilon is at least 0.93 (confidence 95%, 20,000 samples a side); 1 is claimed: no objection
      event: value 0 >= 3
    """

    quantity: str
    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    samples: int
    event: str
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Tell whether the samples are consistent with the claim. They never prove it."""
        return self.lower_bound <= self.claimed

    def __str__(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        verdict = "no objection" if self.holds else "OBJECTION, more is lost than is claimed"
        sure = f"(confidence {100 * self.confidence:.10g}%, {self.samples:,} samples a side)"
        lines = [
            f"{self.quantity} is at least {self.lower_bound:.4g}{at} {sure}; {self.claimed:.4g} is claimed: {verdict}",
            f"  event: {self.event}",
        ]
        return "\n".join(lines + [f"  only one side showed: {text}" for text in self.differences])
