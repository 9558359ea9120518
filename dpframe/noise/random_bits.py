"""Random bits, and comparisons with as many of them as it takes: the only file that asks for randomness.

Every call reads the bytes that it needs and keeps none, so that a forked process has nothing to repeat.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.exact import to_bits

Words = NDArray[np.uint64]
Thresholds = Iterator[tuple[Any, Any]]  # ever closer bounds of one number in mpmath: below it, above it

WORD = 64  # bits
Trial = Literal["seeded", "exact"]

STAMPS: dict[Trial, str] = {
    "seeded": "NOT PRIVATE: drawn from seeded bits, which are for tests only",
    "exact": "NOT PRIVATE: no noise was added, which is for tests only",
}
ROUNDING = 2.0**-48  # more than a word errs as a double, and a quotient of doubles below 2

_source: ContextVar[Callable[[int], bytes]] = ContextVar("dpframe_random_bytes", default=os.urandom)
_trial: ContextVar[Trial | None] = ContextVar("dpframe_trial", default=None)


def is_secure() -> bool:
    """Tell whether noise is drawn, from bits of the operating system; False inside `insecure_bits` and `trial`."""
    return _source.get() is os.urandom and _trial.get() is None  # contexts that overlap may end in any order


@contextmanager
def insecure_bits(seed: int) -> Iterator[None]:
    """Repeatable bits, for tests and documentation only: releases made inside are stamped NOT PRIVATE."""
    counter = iter(range(2**62))

    def stream(size: int) -> bytes:
        return hashlib.shake_256(f"{seed}:{next(counter)}".encode()).digest(size)

    token = _source.set(stream)
    try:
        yield
    finally:
        _source.reset(token)


@contextmanager
def trial(kind: Trial, seed: int) -> Iterator[None]:
    """Repeatable bits, or no noise at all, for tests of people's own code: no durable ledger is charged inside.

    It holds for the thread, or the asynchronous task, that enters it, and for tasks that are started inside, even if
    they outlive it: what they release stays stamped.
    """
    with insecure_bits(seed):
        token = _trial.set(kind)
        try:
            yield
        finally:
            _trial.reset(token)


def trial_of() -> Trial | None:
    """The kind of trial that the call is in; None of a call that is meant."""
    return _trial.get()


def is_silent() -> bool:
    """Tell whether no noise is drawn."""
    return _trial.get() == "exact"


def stamp() -> str | None:
    """The words that mark what is released here as not private; None where it is, by bits of the operating system."""
    return None if is_secure() else STAMPS[_trial.get() or "seeded"]


def nonce() -> str:
    """16 random bytes, as hexadecimals, always from the operating system: they name an entry of a ledger.

    Seeded bits are for noise that can be repeated. A name that can be repeated would let one entry stand for another.
    """
    return os.urandom(16).hex()


def words(count: int) -> Words:
    """Words of 64 random bits."""
    return np.frombuffer(_source.get()(8 * count), dtype=np.uint64)


def word() -> int:
    """One word."""
    return int.from_bytes(_source.get()(8), "little")


def fresh_key() -> int:
    """64 bits for one keyed order, which no release shares with another."""
    return word()


def numbers(count: int, bits: int) -> NDArray[Any]:
    """Numbers of 1 to 63 random bits, in the smallest type that fits and that NumPy mixes with int64."""
    size = next(size for size in (1, 2, 4, 8) if 8 * size >= bits)
    drawn = np.frombuffer(_source.get()(size * count), dtype=f"u{size}")
    drawn = drawn if 8 * size == bits else drawn >> drawn.dtype.type(8 * size - bits)
    return drawn.view(np.int64) if size == 8 else drawn


def uniform(most: int, count: int) -> NDArray[np.int64]:
    """Draws that are uniform on 0, 1, ..., most < 2**63: so many bits as `most` has, again where they are too large."""
    drawn, open_places = np.zeros(count, dtype=np.int64), np.arange(count)
    while most and open_places.size:
        drawn[open_places] = numbers(open_places.size, most.bit_length())
        open_places = open_places[drawn[open_places] > most]
    return drawn


def accepted(chance: NDArray[np.float64], error: Any, thresholds: Callable[[int], Thresholds]) -> NDArray[np.bool_]:
    """True with exactly the probability that `thresholds` of a place enclose; `chance` is it to within `error`."""
    drawn = words(chance.size)
    scaled = drawn * 2.0**-WORD
    flags: NDArray[np.bool_] = scaled < chance
    for index in np.flatnonzero(np.abs(scaled - chance) <= error + ROUNDING):
        flags[index] = below(int(drawn[index]), thresholds(int(index)))
    return flags


def below(first: int, thresholds: Thresholds) -> bool:
    """Tell whether a uniform variable, of which the first 64 bits are given, is below a number.

    As long as the bounds of the number leave it open, the next pair of bounds is met with 64 more bits.
    """
    import mpmath

    bits = first
    for known in count(WORD, WORD):
        least, most = next(thresholds)
        if bits + 1 <= mpmath.ldexp(least, known):
            return True
        if bits >= mpmath.ldexp(most, known):
            return False
        bits = longer(bits)
    raise AssertionError  # an endless loop has no end


def longer(bits: int) -> int:
    """The same bits and a word more."""
    return (bits << WORD) | word()


def enclosed(value: Callable[[int], Any]) -> Thresholds:
    """Bounds of a number that `value(precision)` gives with a relative error below 2**(16 - precision)."""
    import mpmath

    for precision in count(3 * WORD, WORD):
        with to_bits(precision):
            middle, slack = value(precision), mpmath.ldexp(1, 18 - precision)
            bounds = middle * (1 - slack), middle * (1 + slack)
        yield bounds
