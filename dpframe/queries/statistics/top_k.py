"""The most common of declared values, and the k most common in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpframe.errors import InvalidArgument
from dpframe.queries.row_functions import Floats
from dpframe.queries.statistics.statistic import CONFIDENCE, Choosing, Statistic
from dpframe.queries.total import Measured, Noise, RowsTotal, Total


@dataclass(frozen=True)
class Mode(Statistic, Choosing):
    """The declared value with the largest count, chosen privately.

    Used by ``df.dp.mode``.

    Examples
    --------
    >>> Mode().error_words("3")
    'at most 3 below the largest'
    """

    verb: ClassVar[str] = "mode"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures: the count of each value. None is released."""
        return (RowsTotal(),)

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it: the most that the count may be below the largest."""
        return f"at most {error} below the largest"

    def facts(self) -> dict[str, Any] | None:
        """Return None, since no number is released."""
        return None


PEELING, NOISY_COUNTS = "peeling", "noisy counts"


@dataclass(frozen=True)
class TopK(Statistic, Choosing):
    """The k declared values with the largest counts, the largest first.

    Used by ``df.dp.top_k``.

    Examples
    --------
    >>> TopK(3).choice_words, [form.by for form in TopK(3).forms(10)]
    ('3 most common', ['noisy counts', 'peeling'])
    """

    verb: ClassVar[str] = "top_k"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    k: int
    counts: bool = False
    by: str = field(default="", repr=False)  # the way to choose; a plan decides it
    options: int = 0  # the number of options to choose from
    why: str = field(default="", repr=False, compare=False)

    @property
    def chosen(self) -> int:
        """The number of cells that it releases."""
        return self.k

    @property
    def peels(self) -> int:
        """The number of places that are chosen in turn; 0 if noisy counts are sorted."""
        return self.k if self.by == PEELING else 0

    @property
    def by_choice(self) -> bool:
        """True if the places are chosen, and no number is measured."""
        return self.by == PEELING

    @property
    def numbered(self) -> bool:
        """True if the counts are released too."""
        return self.counts

    @property
    def choice_words(self) -> str:
        """The options that are released."""
        return f"{self.k:,} most common" + (" with their counts" if self.counts else "")

    def forms(self, options: int) -> tuple[Statistic, ...]:
        """Return the ways to choose: by noisy counts and, if no count is released, by peeling.

        It is the statistic itself if its way is decided.
        """
        if self.k > options:
            raise InvalidArgument(
                f"k must be at most the number of categories, {options:,}, not {self.k:,}. "
                "Write a smaller one, or declare more categories."
            )
        if self.by:
            return (self,)
        sorted_counts = replace(self, by=NOISY_COUNTS, options=options)
        if self.counts:
            return (replace(sorted_counts, why="noisy counts were sorted, since they are released"),)
        return (sorted_counts, replace(sorted_counts, by=PEELING))

    def because(self, why: str) -> Self:
        """Return the same with the reason for its form."""
        return replace(self, why=why)

    def totals(self) -> tuple[Total, ...]:
        """Return the Totals that it measures: the count of each value."""
        return (RowsTotal(),)

    def answer(self, measured: Mapping[Total, Measured]) -> tuple[Floats, Floats]:
        """Return the noisy counts and their half-widths.

        The half-widths hold for all options at once, and so for the chosen ones.
        """
        only = measured[self.totals()[0]]
        return only.values, np.full(only.values.shape, self._all_counts(only.noise, CONFIDENCE))

    def expected_error(self, noises: Sequence[Noise], size: float, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of counts; or how far a chosen count may be below another.

        The other is the largest count that was left out. If all noises are within a half-width, a larger noisy count
        was at most two of them smaller.
        """
        if self.by_choice:
            return noises[0].interval(confidence)
        return self._all_counts(noises[0], confidence) * (1.0 if self.counts else 2.0)

    def check_target(self, name: str, target: float, size: int | None) -> None:
        """Refuse a target if no count is released.

        The way to choose, and so the error, may then depend on the cost.
        """
        if not self.counts:
            raise InvalidArgument(
                "within must come with counts=True, whose errors it names. "
                "Without counts, compare values of epsilon with preview.top_k(epsilon=[0.1, 1])."
            )

    def error_words(self, error: str) -> str:
        """Return the error as a plan shows it."""
        return f"+-{error}, of all at once" if self.counts else f"each at most {error} below the largest left"

    def facts(self) -> dict[str, Any] | None:
        """Return None, since it is no table of the declared cells. `choice_facts` has more."""
        return None

    def choice_facts(self) -> dict[str, Any] | None:
        """Return the facts that its record states."""
        return {"k": self.k, "counts": self.counts, "by": self.by, "why": self.why}

    def _all_counts(self, noise: Noise, confidence: float) -> float:
        """Return a half-width that holds for all noises at once, since the shown counts depend on them."""
        return noise.interval(1.0 - (1.0 - confidence) / max(1, self.options))
