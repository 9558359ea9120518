"""The part that the noises of dpframe share: lengths in grid steps, and the length of a step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from dpframe.exact import positive, up
from dpframe.mechanisms.asked import length
from dpframe.mechanisms.contract import Mechanism


@dataclass(frozen=True)
class Stepped(Mechanism):
    """A mechanism that keeps its lengths in grid steps, and the length of a step."""

    step_sensitivity: float
    step_scale: float
    grid: float = 1.0
    calibration: str = field(default="", kw_only=True)  # in words, where it is not the exact one

    def __post_init__(self) -> None:
        for argument in ("step_sensitivity", "step_scale", "grid"):
            object.__setattr__(self, argument, length(argument, getattr(self, argument)))

    @property
    def sensitivity(self) -> float:
        """The sensitivity that it was calibrated for, in the norm that it covers."""
        return self.step_sensitivity * self.grid

    @property
    def details(self) -> dict[str, Any]:
        """The facts that the provenance states of it besides its shape and scale."""
        return {"calibration": self.calibration} if self.calibration else {}

    @property
    def scale(self) -> float:
        """The scale of the noise before rounding: t (Laplace), sigma (Gaussian) or b (any other shape)."""
        return self.step_scale * self.grid

    def sharpened(self, factor: float) -> Self:
        """The same noise with its scale divided by `factor`, rounded up; answers within bounds stay as they are."""
        if not self.additive:
            return self
        return replace(self, step_scale=up(Fraction(self.step_scale) / Fraction(factor)))


def steps_of(sensitivity: object, grid: object) -> Fraction:
    """A sensitivity in grid steps, both as the caller gives them; exactly."""
    return positive("sensitivity", sensitivity) / positive("grid", grid)
