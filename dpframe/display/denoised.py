"""Denoising as a record tells it: the expected errors of values, and the notes of charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NOTHING, CUT = "none", "none, non-negative"  # what denoise="auto" says of itself where it does no more
PROJECTIONS = ("nonnegative", "isotonic")  # on sets that hold the truth, so never farther from it


def estimated_rmse(statistic: Mapping[str, Any]) -> list[float | None]:
    """The estimate for the denoised values, of each level of subtotals; None where there is none.

    It is that of the first denoiser, and holds after others only where those cannot move values away from the truth.
    """
    first, *later = statistic["denoise"] or [{}]
    if any(step["name"] not in PROJECTIONS for step in later):
        return [None]
    return list(first.get("estimated_rmse_of_levels") or [first.get("estimated_rmse")])


def denoised_words(facts: Mapping[str, Any], shown: Callable[[float], str]) -> list[str]:
    """Notes for charts and tables: denoised values are biased, and how far off they are expected to be.

    Where nothing was denoised nothing of it is said; where values below zero alone were moved, that is said.
    """
    parts, cut = [], []
    for name, statistic in facts["measures"].items():
        if not statistic["denoise"] or all(_does(step) == NOTHING for step in statistic["denoise"]):
            continue
        if all(_does(step) in (NOTHING, CUT) for step in statistic["denoise"]):
            cut.append(name)
            continue
        errors = [shown(error) for error in estimated_rmse(statistic) if error is not None]
        parts.append(f"{name} {', '.join(errors) or 'not estimated'}")
    words = [f"denoised, so biased; estimated root mean squared error: {'; '.join(parts)}"] if parts else []
    if cut:
        words.append(f"not denoised but shown as 0 where below 0, so small values lean upward: {', '.join(cut)}")
    return words


def _does(step: Mapping[str, Any]) -> str:
    """The work of a denoiser in words; "auto" may have chosen to do nothing."""
    return str(step.get("chose", {"nonnegative": CUT}.get(step["name"], step["name"])))
