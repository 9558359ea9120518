"""What a call says besides what it asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpframe.denoise.by_name import DENOISERS
from dpframe.errors import InvalidArgument, InvalidType, checked_name, shown, takes_two
from dpframe.planning.accuracy import checked_size
from dpframe.planning.graph import pairs_of
from dpframe.planning.price import Calibration
from dpframe.privacy import PrivacyUnit, checked_bound
from dpframe.queries.counts import MOST_CELLS, checked_memory, checked_most


@dataclass(frozen=True)
class Options:
    """How a call is to be answered: everything but what is asked."""

    epsilon: Any = None
    delta: Any = None
    share: Any = None
    within: Any = None
    confidence: Any = None
    size: Any = None
    weights: Any = None
    mechanism: str | Calibration | None = None
    denoise: Any = None
    keep_noisy: bool = True
    rollup: bool = False
    order: bool | str | None = None
    graph: Any = None
    ledger: Any = None  # who pays: the release finds it, and refuses what is no ledger
    unit: PrivacyUnit | str | None = None
    max_rows: int | None = None
    max_groups: int | None = None
    label: str | None = None
    snapshot: str | None = None
    max_cells: int = MOST_CELLS
    memory: int | str | None = None  # how a table is read that does not fit in memory
    progress: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "max_cells", checked_most(self.max_cells))
        object.__setattr__(self, "memory", checked_memory(self.memory))
        if self.progress not in (None, True, False):
            raise InvalidType(f"progress must be True, False or None, not {shown(self.progress)}.")
        for argument in ("max_rows", "max_groups"):
            object.__setattr__(self, argument, checked_bound(argument, getattr(self, argument)))
        object.__setattr__(self, "graph", pairs_of(self.graph, self.max_cells))
        if self.within is None and self.confidence is not None:
            raise InvalidArgument(
                "confidence must come with within=, the error that it speaks of, not alone. "
                "The errors of a result are those of 95% intervals."
            )
        for argument in ("keep_noisy", "rollup"):
            if not isinstance(getattr(self, argument), bool):
                raise InvalidType(f"{argument} must be True or False, not {shown(getattr(self, argument))}.")
        if self.rollup and self.order is not None:
            raise InvalidArgument("order must be left out with rollup=True, whose fit has no use for it. Keep one.")
        if self.rollup and self.denoise not in (None, "auto"):
            raise InvalidArgument(
                f"denoise must be 'auto' or None with rollup=True, not {shown(self.denoise)}: what makes subtotals add "
                "up is itself a denoiser. Leave it out."
            )
        self._check_record()
        for name in self.denoise if isinstance(self.denoise, (list, tuple)) else [self.denoise]:
            if not (name is None or callable(name) or (isinstance(name, str) and name in DENOISERS)):
                raise InvalidArgument(
                    f"denoise must be one of {sorted(DENOISERS)}, a function (values, noise) -> values, "
                    f"a list of them, or None, not {shown(name)}."
                )
            if callable(name) and not takes_two(name):
                called = getattr(name, "__name__", "it")
                raise InvalidArgument(
                    f"denoise must be a function (values, noise) -> values, and {called} cannot be called with these "
                    f"two alone. Write lambda values, noise: {called}(values, noise, ...)."
                )

    def _check_record(self) -> None:
        """What a ledger writes down for good."""
        if self.label is not None and not isinstance(self.label, str):
            raise InvalidType(f"label must be a string, not {shown(self.label)}.")
        if self.snapshot is not None and not isinstance(self.snapshot, str):
            raise InvalidType(f"snapshot must be a string, not {shown(self.snapshot)}. Write snapshot='2026-W47'.")
        if self.snapshot is not None and not self.snapshot.strip():
            raise InvalidArgument("snapshot must say what the data are, and not be blank. Write snapshot='2026-W47'.")
        for argument, name in (("label", self.label), ("snapshot", self.snapshot)):
            if name is not None:
                checked_name(argument, name)
