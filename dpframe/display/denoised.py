"""Denoising as a record tells it: the expected errors of values, and the notes of charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display.cell_errors import unpacked
from dpframe.display.rounding import step_words

Floats = NDArray[np.float64]

DROWNED = "the noise is larger than the differences between these groups"  # how the words on that begin
NOTHING, CUT = "none", "none, non-negative"  # what denoise="auto" says of itself where it does no more
CUT_WITH_SUMS = f"{CUT}, with its sums"
PROJECTIONS = ("nonnegative", "isotonic")  # on sets that hold the truth, so never farther from it


def estimated_rmse(statistic: Mapping[str, Any]) -> list[float | None]:
    """The estimate for the denoised values, of each level of subtotals; None where there is none.

    It is that of the first denoiser, and holds after others only where those cannot move values away from the truth.
    """
    first, *later = statistic["denoise"] or [{}]
    if any(step["name"] not in PROJECTIONS for step in later):
        return [None]
    return list(first.get("estimated_rmse_of_levels") or [first.get("estimated_rmse")])


def cell_rmse(statistic: Mapping[str, Any], size: int) -> Floats | None:
    """The estimate for each denoised cell, in the order of the declared cells; None where there is none."""
    first, *later = statistic["denoise"] or [{}]
    if "cell_rmse" not in first or any(step["name"] not in PROJECTIONS for step in later):
        return None
    return unpacked(first["cell_rmse"], size)


def denoised_words(facts: Mapping[str, Any], shown: Callable[[float], str]) -> list[str]:
    """Notes for charts and tables: denoised values are biased, and how far off they are expected to be.

    Where nothing was denoised nothing of it is said; where values below zero alone were moved, that is said.
    """
    parts: list[str] = []
    unknown: list[str] = []
    cut: list[str] = []
    lowered: list[str] = []
    drowned: list[str] = []
    for name, statistic in facts["measures"].items():
        if any(step.get("noise_dominates") for step in statistic["denoise"] or ()):
            drowned.append(name)
        if not statistic["denoise"] or all(_does(step) == NOTHING for step in statistic["denoise"]):
            continue
        if all(_does(step) in (NOTHING, CUT, CUT_WITH_SUMS) for step in statistic["denoise"]):
            (lowered if any(_does(step) == CUT_WITH_SUMS for step in statistic["denoise"]) else cut).append(name)
            continue
        errors = dict.fromkeys(shown(error) for error in estimated_rmse(statistic) if error is not None)
        (parts if errors else unknown).append(f"{name} {', '.join(errors)}".strip())
    words = [f"denoised, so biased; estimated root mean squared error: {'; '.join(parts)}"] if parts else []
    if unknown:
        words.append(f"denoised, so biased, and how far is not estimated: {', '.join(unknown)}")
    if cut:
        words.append(f"not denoised; negative values shown as 0, so small values lean upward: {', '.join(cut)}")
    if lowered:
        words.append(
            f"not denoised; negative values shown as 0, the others lowered so that sums stay: {', '.join(lowered)}"
        )
    if drowned:
        words.append(f"{DROWNED}: {', '.join(drowned)}")
    return words + rounded_words(facts)


def rounded_words(facts: Mapping[str, Any]) -> list[str]:
    """A note on what `round` did to the numbers; none where it was not asked."""
    steps: dict[str, list[str]] = {}
    for name, step in facts.get("rounded", {}).get("steps", {}).items():
        steps.setdefault(step_words(step), []).append(name)
    said = "; ".join(f"{', '.join(names)} to {step}" for step, names in steps.items())
    return [f"rounded, and the errors contain it: {said}"] if said else []


def _does(step: Mapping[str, Any]) -> str:
    """The work of a denoiser as text; "auto" may have chosen to do nothing."""
    return str(step.get("chose", {"nonnegative": CUT}.get(step["name"], step["name"])))
