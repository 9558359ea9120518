"""A call: a question of public facts alone, the frame to ask, and the caller's words for readers.

A plan depends on the question, on column names and dtypes, and on the terms of a ledger. A cached plan holds none of
the words, because it may serve the next caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dpframe.denoise import DENOISERS, can_be_called
from dpframe.errors import InvalidArgument, InvalidType, checked_name, is_one_of, shown
from dpframe.frames.kinds import Library, library_of
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.graph import pairs_of
from dpframe.planning.sensitivity import Sensitivity
from dpframe.privacy import PrivacyLoss, PrivacyUnit, checked_bound
from dpframe.queries.limits import MOST_CELLS, checked_checks, checked_memory, checked_most, checked_size
from dpframe.queries.query import Query

Calibration = Callable[[Sensitivity, PrivacyLoss], Mechanism]


def checked_flag(argument: str, value: object) -> bool:
    """Return the value if it is True or False, and refuse any other."""
    if not isinstance(value, bool):
        raise InvalidType(f"{argument} must be True or False, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class Pricing:
    """The options that determine the cost of a call, its error and its checks."""

    epsilon: Any = None
    delta: Any = None
    share: Any = None
    within: Any = None
    confidence: Any = None
    size: Any = None
    weights: Any = None
    checks: Any = None  # None: as the ledger is set, and "auto" if it is not

    def __post_init__(self) -> None:
        for argument in ("within", "weights"):  # a copy, which the caller cannot change later
            if isinstance(given := getattr(self, argument), Mapping):
                object.__setattr__(self, argument, dict(given))
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "checks", checked_checks(self.checks))
        if self.within is None and self.confidence is not None:
            raise InvalidArgument(
                "confidence must come with within=, the error that it speaks of, not alone. "
                "The errors of a result are those of 95% intervals."
            )


@dataclass(frozen=True)
class Noising:
    """The privacy unit of a call, its contribution bounds, and the mechanism."""

    mechanism: str | Calibration | None = None
    unit: PrivacyUnit | str | Sequence[str] | None = None
    max_rows: int | None = None
    max_groups: int | None = None

    def __post_init__(self) -> None:
        for argument in ("max_rows", "max_groups"):
            object.__setattr__(self, argument, checked_bound(argument, getattr(self, argument)))


@dataclass(frozen=True)
class Denoising:
    """The options of denoising. A graph has at most `max_cells` edges."""

    denoise: Any = None
    keep_noisy: bool = True
    order: bool | str | None = None
    graph: Any = None
    max_cells: int = field(default=MOST_CELLS, compare=False)
    steps: tuple[Any, ...] = field(init=False, repr=False, compare=False)  # the denoisers, in the order of their use

    def __post_init__(self) -> None:
        if self.graph is not None:
            object.__setattr__(self, "graph", pairs_of(self.graph, self.max_cells))
        checked_flag("keep_noisy", self.keep_noisy)
        if isinstance(self.denoise, list):
            object.__setattr__(self, "denoise", tuple(self.denoise))  # a copy, which the caller cannot change later
        several = isinstance(self.denoise, tuple)
        object.__setattr__(self, "steps", self.denoise if several else (self.denoise,))
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
                    f"two alone. Write lambda values, noise: {called}(...)."
                )


@dataclass(frozen=True)
class Words:
    """The options of a call for readers: the label and snapshot that a ledger stores, and whether to show progress."""

    label: str | None = None
    snapshot: str | None = None
    progress: bool | None = None
    facts: Mapping[str, Any] = field(init=False, repr=False, compare=False)  # the words that records and promises hold

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
        if not (self.progress is None or isinstance(self.progress, bool)):
            raise InvalidType(f"progress must be True, False or None, not {shown(self.progress)}.")
        object.__setattr__(self, "facts", {"label": self.label})


NO_WORDS = Words()


@dataclass(frozen=True)
class Question:
    """The public facts from which a plan follows, together with column names, dtypes and the terms of a ledger."""

    query: Query
    library: Library  # of the result
    pricing: Pricing = Pricing()
    noising: Noising = Noising()
    denoising: Denoising = Denoising()
    max_cells: int = MOST_CELLS
    population: bool = False  # whether the units are a sample of a population

    def __post_init__(self) -> None:
        option = self.query.subtotals
        if option and self.denoising.order is not None:
            raise InvalidArgument(f"order must be left out with {option}=True, whose fit has no use for it. Keep one.")
        if option and not is_one_of(self.denoising.denoise, (None, "auto")):
            raise InvalidArgument(
                f"denoise must be 'auto' or None with {option}=True, not {shown(self.denoising.denoise)}: what makes "
                "subtotals add up is itself a denoiser. Leave it out."
            )


@dataclass(frozen=True)
class Call:
    """A question, the frame to ask, the ledger to charge, and the words of the caller, on which no plan depends."""

    frame: Any = field(compare=False, repr=False)
    question: Question
    words: Words = NO_WORDS
    ledger: Any = None  # None: that of `with`, or the default; a release refuses all but ledgers
    memory: Any = None  # the bytes in which a large table is read; no answer depends on it

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", checked_memory(self.memory))

    @classmethod
    def of(cls, frame: Any, query: Query, options: Mapping[str, Any], *, like: Library | None = None) -> Call:
        """Make a call from its options. Each group of options checks its own."""
        most = checked_most(options.get("max_cells", MOST_CELLS))
        given = {**options, "max_cells": most}
        pricing, noising, denoising, words = (
            kind(**{name: given[name] for name in own if name in given}) for kind, own in KINDS.items()
        )
        sampled = checked_flag("population", options.get("population", False))
        question = Question(query, like or library_of(frame), pricing, noising, denoising, most, sampled)
        return cls(frame, question, words, options.get("ledger"), options.get("memory"))


KINDS: dict[type[Any], tuple[str, ...]] = {  # each group of options, with the names of its options
    kind: tuple(option.name for option in fields(kind)) for kind in (Pricing, Noising, Denoising, Words)
}
