"""The finding of an audit, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A privacy loss bounded from below by what two neighboring data sets let out.

    Made by `dpframe.audit.epsilon` and `dpframe.audit.mu`.

    Parameters
    ----------
    quantity : {"epsilon", "mu"}
        What is bounded.
    lower_bound : float
        The quantity is above this, but for a chance of at most 1 - `confidence`.
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
