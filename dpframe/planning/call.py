"""A call: the question, which is public facts alone; the frame that it is put to; and the caller's words for people.

A plan follows from the question, from names and dtypes, and from the terms of a ledger. It holds none of the words, so
that a plan that is kept for the next caller cannot hold those of the last one.
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
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidType(f"{argument} must be True or False, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class Pricing:
    """The privacy budget that a call may cost."""

    epsilon: Any = None
    delta: Any = None
    share: Any = None
    within: Any = None
    confidence: Any = None
    size: Any = None
    weights: Any = None
    checks: Any = None  # "auto" where neither the call nor its ledger says more

    def __post_init__(self) -> None:
        for argument in ("within", "weights"):  # what the caller does with a mapping later changes nothing
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
    """The unit that is protected, its contribution bounds, and the noise that protects it."""

    mechanism: str | Calibration | None = None
    unit: PrivacyUnit | str | Sequence[str] | None = None
    max_rows: int | None = None
    max_groups: int | None = None

    def __post_init__(self) -> None:
        for argument in ("max_rows", "max_groups"):
            object.__setattr__(self, argument, checked_bound(argument, getattr(self, argument)))


@dataclass(frozen=True)
class Denoising:
    """The steps that follow the noise. A graph has at most `max_cells` edges."""

    denoise: Any = None
    keep_noisy: bool = True
    order: bool | str | None = None
    graph: Any = None
    max_cells: int = field(default=MOST_CELLS, compare=False)
    steps: tuple[Any, ...] = field(init=False, repr=False, compare=False)  # the denoisers, one after the other

    def __post_init__(self) -> None:
        if self.graph is not None:
            object.__setattr__(self, "graph", pairs_of(self.graph, self.max_cells))
        checked_flag("keep_noisy", self.keep_noisy)
        if isinstance(self.denoise, list):
            object.__setattr__(self, "denoise", tuple(self.denoise))  # what is done with the list later changes nothing
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
                    f"two alone. Write lambda values, noise: {called}(values, noise, ...)."
                )


@dataclass(frozen=True)
class Words:
    """The words of a call for people: what a ledger writes down for good, and whether a bar shows its progress."""

    label: str | None = None
    snapshot: str | None = None
    progress: bool | None = None
    facts: Mapping[str, Any] = field(init=False, repr=False, compare=False)  # those that records, and promises, hold

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
    """All that a plan follows from, besides names, dtypes and a ledger's terms: public facts, no row and no words."""

    query: Query
    library: Library  # of the answer
    pricing: Pricing = Pricing()
    noising: Noising = Noising()
    denoising: Denoising = Denoising()
    max_cells: int = MOST_CELLS
    population: bool = False  # whether its units are a sample

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
    """A question to a frame, the ledger to charge, and the words of the caller. No plan depends on the words."""

    frame: Any = field(compare=False)
    question: Question
    words: Words = NO_WORDS
    ledger: Any = None  # the release finds it, and refuses what is no ledger
    memory: Any = None  # in which a large table is read, in bytes; no answer depends on it

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", checked_memory(self.memory))

    @classmethod
    def of(cls, frame: Any, query: Query, options: Mapping[str, Any], *, like: Library | None = None) -> Call:
        """Sort the options of a call into their values, each of which checks its own."""
        most = checked_most(options.get("max_cells", MOST_CELLS))
        given = {**options, "max_cells": most}
        pricing, noising, denoising, words = (
            kind(**{name: given[name] for name in own if name in given}) for kind, own in KINDS.items()
        )
        sampled = checked_flag("population", options.get("population", False))
        question = Question(query, like or library_of(frame), pricing, noising, denoising, most, sampled)
        return cls(frame, question, words, options.get("ledger"), options.get("memory"))


KINDS: dict[type[Any], tuple[str, ...]] = {  # what the options of a call are sorted into, by their names
    kind: tuple(option.name for option in fields(kind)) for kind in (Pricing, Noising, Denoising, Words)
}
