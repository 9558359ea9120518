"""A few known pairs of words of 64 bits, and which of them each of many pairs is: by NumPy, without a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST_STRINGS = 2**8  # of them a table is found in which each has a slot of its own
SLOTS = 2**16  # of that table at most
MULTIPLIERS = [np.uint64(pow(0x9E3779B97F4A7C15, power, 2**64)) for power in range(1, 65)]  # all odd


class Scratch:
    """Arrays that a thread writes to again and again, which is faster than new ones."""

    def __init__(self) -> None:
        self._of_type: dict[tuple[str, type], NDArray[Any]] = {}

    def of(self, name: str, rows: int, dtype: type) -> Any:
        """The array of this name for a block of so many rows; what is in it is left from before."""
        found = self._of_type.get((name, dtype))
        if found is None or found.size < rows:  # the first block has most rows
            found = self._of_type[name, dtype] = np.empty(rows, dtype=dtype)
        return found[:rows]


@dataclass(frozen=True)
class KnownWords:
    """A multiplication gives each known pair a slot of its own; a pair is the one in its slot if both words are."""

    multipliers: tuple[Any, Any]
    shift: Any
    first: Words  # by slot
    second: Words
    numbers: Integers  # from 1 on; 0 where no pair is
    alike: Any  # the first word of all known pairs, where they have the same

    @classmethod
    def of(cls, first: Words | None, second: Words, numbers: NDArray[Any]) -> Self | None:
        """Known pairs with their numbers, no two the same, or words alone; None where no table was found."""
        first = np.zeros_like(second) if first is None else first
        found = _multipliers(first, second)
        if found is None:
            return None
        multipliers, shift = found
        slots = _slot(first, second, multipliers, shift)
        firsts, seconds = np.zeros((2, 2 ** (64 - int(shift))), dtype=np.uint64)
        number_of = np.zeros(firsts.size, dtype=np.int64)
        firsts[slots], seconds[slots], number_of[slots] = first, second, numbers
        alike = first[0] if (first == first[0]).all() else None
        return cls(multipliers, shift, firsts, seconds, number_of, alike)

    def find(self, first: Words | None, second: Words, scratch: Scratch, name: str) -> Integers:
        """The number of each pair, or of words alone if they are known so; 0 of what is not known."""
        rows = second.size
        slot = _slot(first, second, self.multipliers, self.shift, scratch.of(f"{name} slot", rows, np.uint64))
        unlike = self.second.take(slot, mode="wrap", out=scratch.of(name, rows, np.uint64))  # no slot is beyond it
        unlike ^= second
        if first is not None and (self.alike is None or not _all_are(self.alike, first)):
            other = self.first.take(slot, mode="wrap", out=scratch.of(f"{name} other", rows, np.uint64))
            other ^= first
            unlike |= other
        numbers = self.numbers.take(slot, mode="wrap", out=scratch.of(f"{name} places", rows, np.int64))
        if unlike.max(initial=0):
            numbers[unlike != 0] = 0
        return np.asarray(numbers)


def _all_are(word: Any, words: Words) -> bool:
    return bool(words.min(initial=word) == word == words.max(initial=word))


def _slot(
    first: Words | None, second: Words, multipliers: tuple[Any, Any], shift: Any, out: Words | None = None
) -> Integers:
    mixed = np.multiply(second, multipliers[1], out=out)
    if multipliers[0] and first is not None:
        mixed += first * multipliers[0]
    mixed >>= shift
    return np.asarray(mixed.view(np.int64))


def _multipliers(first: Words, second: Words) -> tuple[tuple[Any, Any], Any] | None:
    """Multipliers of both words, and a shift, that give different pairs different slots; None where none was found."""
    bits = max(6, 2 * first.size.bit_length() - 3)
    while 2**bits <= SLOTS:
        shift = np.uint64(64 - bits)
        for multiplier in MULTIPLIERS:
            for pair in ((np.uint64(0), multiplier), (multiplier ^ np.uint64(2), multiplier)):
                if np.unique(_slot(first, second, pair, shift)).size == first.size:
                    return pair, shift
        bits += 2
    return None
