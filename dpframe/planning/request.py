"""A request: the frame, the question, and what the call says besides, in four small values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dpframe.denoise.by_name import DENOISERS, can_be_called
from dpframe.errors import InvalidArgument, InvalidType, checked_name, is_one_of, shown
from dpframe.frames.kinds import Library, library_of
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.accuracy import checked_size
from dpframe.planning.graph import pairs_of
from dpframe.planning.sensitivity import Sensitivity
from dpframe.privacy import PrivacyLoss, PrivacyUnit, checked_bound
from dpframe.queries.counts import MOST_CELLS, checked_memory, checked_most
from dpframe.queries.query import Query

Calibration = Callable[[Sensitivity, PrivacyLoss], Mechanism]


def checked_flag(argument: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidType(f"{argument} must be True or False, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class Pricing:
    """The price that a call may cost, and who pays."""

    epsilon: Any = None
    delta: Any = None
    share: Any = None
    within: Any = None
    confidence: Any = None
    size: Any = None
    weights: Any = None
    ledger: Any = None  # the release finds it, and refuses what is no ledger

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        if self.within is None and self.confidence is not None:
            raise InvalidArgument(
                "confidence must come with within=, the error that it speaks of, not alone. "
                "The errors of a result are those of 95% intervals."
            )


@dataclass(frozen=True)
class Noising:
    """The unit that is protected, its bounds of contribution, and the noise that protects it."""

    mechanism: str | Calibration | None = None
    unit: PrivacyUnit | str | None = None
    max_rows: int | None = None
    max_groups: int | None = None

    def __post_init__(self) -> None:
        for argument in ("max_rows", "max_groups"):
            object.__setattr__(self, argument, checked_bound(argument, getattr(self, argument)))


@dataclass(frozen=True)
class Denoising:
    """The steps that follow the noise. A graph has at most `most` edges."""

    denoise: Any = None
    keep_noisy: bool = True
    order: bool | str | None = None
    graph: Any = None
    most: int = field(default=MOST_CELLS, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", pairs_of(self.graph, self.most))
        checked_flag("keep_noisy", self.keep_noisy)
        if isinstance(self.denoise, list):
            object.__setattr__(self, "denoise", tuple(self.denoise))  # what is done with the list later changes nothing
        several = isinstance(self.denoise, tuple)
        for name in self.steps:
            if not ((name is None and not several) or callable(name) or (isinstance(name, str) and name in DENOISERS)):
                raise InvalidArgument(
                    f"denoise must be one of {sorted(DENOISERS)}, a function (values, noise) -> values, "
                    f"a list of them, or None, not {shown(self.denoise if name is None else name)}."
                )
            if callable(name) and not can_be_called(name):
                called = getattr(name, "__name__", "it")
                raise InvalidArgument(
                    f"denoise must be a function (values, noise) -> values, and {called} cannot be called with these "
                    f"two alone. Write lambda values, noise: {called}(values, noise, ...)."
                )

    @property
    def steps(self) -> tuple[Any, ...]:
        """The denoisers, one after the other."""
        return tuple(self.denoise) if isinstance(self.denoise, (list, tuple)) else (self.denoise,)


@dataclass(frozen=True)
class Reading:
    """The reading of a table that does not fit in memory. No answer depends on it."""

    memory: int | str | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        _ = self.bytes  # refused now
        if not (self.progress is None or isinstance(self.progress, bool)):
            raise InvalidType(f"progress must be True, False or None, not {shown(self.progress)}.")

    @property
    def bytes(self) -> int | None:
        """The memory in bytes, where the call says it."""
        return checked_memory(self.memory)


@dataclass(frozen=True)
class Recording:
    """The words that a ledger writes down for good."""

    label: str | None = None
    snapshot: str | None = None

    def __post_init__(self) -> None:
        if self.label is not None and not isinstance(self.label, str):
            raise InvalidType(f"label must be a string, not {shown(self.label)}.")
        if self.snapshot is not None and not isinstance(self.snapshot, str):
            raise InvalidType(f"snapshot must be a string, not {shown(self.snapshot)}. Write snapshot='2026-W47'.")
        if self.snapshot is not None and not self.snapshot.strip():
            raise InvalidArgument("snapshot must say what the data are, and not be blank. Write snapshot='2026-W47'.")
        for argument, name in (("label", self.label), ("snapshot", self.snapshot)):
            if name is not None:
                checked_name(argument, name)


@dataclass(frozen=True)
class Request:
    """A call: its frame, its question, and how it is to be answered. A copy of it leaves the frame out."""

    frame: Any = field(compare=False)
    query: Query
    pricing: Pricing = Pricing()
    noising: Noising = Noising()
    denoising: Denoising = Denoising()
    recording: Recording = Recording()
    reading: Reading = Reading()
    max_cells: int = MOST_CELLS
    like: Library | None = field(default=None, compare=False)  # of the answer, where it is not that of the frame

    @classmethod
    def of(cls, frame: Any, query: Query, options: Mapping[str, Any], *, like: Library | None = None) -> Request:
        """Sort the options of a call into their values, each of which checks its own."""
        most = checked_most(options.get("max_cells", MOST_CELLS))
        values = {**options, "most": most}
        pricing, noising, denoising, recording, reading = (_some(kind, values) for kind in KINDS)
        return cls(frame, query, pricing, noising, denoising, recording, reading, most, like)

    @property
    def library(self) -> Library:
        """The library of the answer: the one that `like` names, else that of the frame."""
        return self.like or library_of(self.frame)

    def __post_init__(self) -> None:
        option = self.query.subtotals
        if option and self.denoising.order is not None:
            raise InvalidArgument(f"order must be left out with {option}=True, whose fit has no use for it. Keep one.")
        if option and not is_one_of(self.denoising.denoise, (None, "auto")):
            raise InvalidArgument(
                f"denoise must be 'auto' or None with {option}=True, not {shown(self.denoising.denoise)}: what makes "
                "subtotals add up is itself a denoiser. Leave it out."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "frame": None, "pricing": None}  # which may name a ledger, and that cannot travel


KINDS = {
    kind: tuple(option.name for option in fields(kind)) for kind in (Pricing, Noising, Denoising, Recording, Reading)
}


def _some(kind: type[Any], options: Mapping[str, Any]) -> Any:
    """The value that is made of those options that are its own."""
    return kind(**{name: options[name] for name in KINDS[kind] if name in options})
