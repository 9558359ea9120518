"""Random bits, and comparisons that draw as many bits as they need: the only file that requests randomness.

Every call reads the bytes that it needs and keeps none, so a forked process has none to repeat.
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
Thresholds = Iterator[tuple[Any, Any]]  # ever closer bounds of one number in mpmath: (lower, upper)

WORD = 64  # bits
Trial = Literal["seeded", "exact"]

STAMPS: dict[Trial, str] = {
    "seeded": "NOT PRIVATE: drawn from seeded bits, which are for tests only",
    "exact": "NOT PRIVATE: no noise was added, which is for tests only",
}
ROUNDING = 2.0**-48  # bounds the error of a word as a double, and of a quotient of doubles below 2

_source: ContextVar[Callable[[int], bytes]] = ContextVar("dpframe_random_bytes", default=os.urandom)
_trial: ContextVar[Trial | None] = ContextVar("dpframe_trial", default=None)


def is_secure() -> bool:
    """Return whether noise is drawn from bits of the operating system; False inside `insecure_bits` and `trial`."""
    return _source.get() is os.urandom and _trial.get() is None  # contexts that overlap may end in any order


@contextmanager
def insecure_bits(seed: int) -> Iterator[None]:
    """Draw repeatable bits, for tests and documentation only: releases made inside are stamped NOT PRIVATE."""
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
    """Draw repeatable bits, or no noise at all, for tests of users' code: no durable ledger is charged inside.

    It holds for the thread or the asynchronous task that enters it, and for tasks that are started inside. If these
    outlive it, their releases stay stamped.
    """
    with insecure_bits(seed):
        token = _trial.set(kind)
        try:
            yield
        finally:
            _trial.reset(token)


def trial_of() -> Trial | None:
    """Return the kind of trial in which the call runs, or None outside of trials."""
    return _trial.get()


def is_silent() -> bool:
    """Return whether no noise is drawn."""
    return _trial.get() == "exact"


def stamp() -> str | None:
    """Return the text that marks releases made here as not private; None if they use bits of the operating system."""
    return None if is_secure() else STAMPS[_trial.get() or "seeded"]


def nonce() -> str:
    """Return 16 random bytes as hexadecimal digits, always from the operating system, to name an entry of a ledger.

    Seeded bits are for noise that can be repeated. A name that can be repeated would let one entry stand for another.
    """
    return os.urandom(16).hex()


def words(count: int) -> Words:
    """Return words of 64 random bits."""
    return np.frombuffer(_source.get()(8 * count), dtype=np.uint64)


def word() -> int:
    """Return one word as an integer."""
    return int.from_bytes(_source.get()(8), "little")


def fresh_key() -> int:
    """Return 64 bits for one keyed order, which no release shares with another."""
    return word()


def numbers(count: int, bits: int) -> NDArray[Any]:
    """Return numbers of 1 to 63 random bits, in the smallest type that fits and that NumPy can mix with int64."""
    size = next(size for size in (1, 2, 4, 8) if 8 * size >= bits)
    drawn = np.frombuffer(_source.get()(size * count), dtype=f"u{size}")
    drawn = drawn if 8 * size == bits else drawn >> drawn.dtype.type(8 * size - bits)
    return drawn.view(np.int64) if size == 8 else drawn


def uniform(most: int, count: int) -> NDArray[np.int64]:
    """Draw uniform numbers on 0, 1, ..., most < 2**63, of as many bits as `most`; too large ones are drawn again."""
    drawn, open_places = np.zeros(count, dtype=np.int64), np.arange(count)
    while most and open_places.size:
        drawn[open_places] = numbers(open_places.size, most.bit_length())
        open_places = open_places[drawn[open_places] > most]
    return drawn


def accepted(chance: NDArray[np.float64], error: Any, thresholds: Callable[[int], Thresholds]) -> NDArray[np.bool_]:
    """Draw flags, True with exactly the probability in `thresholds`; `chance` approximates it to within `error`."""
    drawn = words(chance.size)
    scaled = drawn * 2.0**-WORD
    flags: NDArray[np.bool_] = scaled < chance
    for index in np.flatnonzero(np.abs(scaled - chance) <= error + ROUNDING):
        flags[index] = below(int(drawn[index]), thresholds(int(index)))
    return flags


def below(first: int, thresholds: Thresholds) -> bool:
    """Return whether a uniform variable, whose first 64 bits are given, is below a number.

    If the bounds of the number do not decide, 64 more bits are compared with the next pair of bounds.
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
    raise AssertionError  # unreachable: the loop is endless


def longer(bits: int) -> int:
    """Return the same bits followed by one more word."""
    return (bits << WORD) | word()


def enclosed(value: Callable[[int], Any]) -> Thresholds:
    """Yield bounds of a number; `value(precision)` gives it with a relative error below 2**(16 - precision)."""
    import mpmath

    for precision in count(3 * WORD, WORD):
        with to_bits(precision):
            middle, slack = value(precision), mpmath.ldexp(1, 18 - precision)
            bounds = middle * (1 - slack), middle * (1 + slack)
        yield bounds
