"""Short strings of Arrow as positions among the declared keys, straight from their bytes, block by block.

pandas keeps strings as their ends and their bytes. To bring them to Polars, which has 16 bytes for each, takes as long
as to find them among the keys. Here a string is one word: its bytes and its length, if it has at most 7. Two of these
have the same word if they have the same bytes, and a longer string has the word of none. So no two strings become one,
whatever bytes they are of. `KnownWords` finds which of a few known words, or pairs of them, each of many is. Compiled
kernels look in the same table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.identity import Declared
from dpframe.engines.compiled.kernels import Scratch, in_threads, kernels_for, read_only, threads

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

MOST_STRINGS = 2**8  # of them a table is found in which each has a slot of its own
SLOTS = 2**16  # of that table at most
MULTIPLIERS = [np.uint64(pow(0x9E3779B97F4A7C15, power, 2**64)) for power in range(1, 65)]  # all odd

FEW_ROWS = 2**12  # below, strings are brought over as they are
BLOCK = 2**16  # rows at a time: they stay in the processor's cache
MOST = 7  # bytes of a string that is a word
BEYOND = 32  # bytes that are there after the start of a string that is looked at; two words are read of them

Bytes = NDArray[np.uint8]
Ends = NDArray[Any]  # integers of 32 or 64 bits
Codes = NDArray[np.int16]


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
        slot = _slot(first, second, self.multipliers, self.shift, scratch.of("second", rows, np.uint64))
        unlike = self.second.take(slot, mode="wrap", out=scratch.of("third", rows, np.uint64))  # no slot is beyond it
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


def codes_of(array: Any, keys: Declared) -> pl.Series | None:
    """The position of each string among the keys, NOWHERE for any other, in 16 bits.

    None where strings are few, also in each chunk, or keys are many, long or none: they then come over as they are.
    """
    import pyarrow

    kernels = kernels_for(len(array))  # asked first, so that what is said of them does not tell how many rows there are
    strings = pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type)
    few = len(array) < FEW_ROWS * max(getattr(array, "num_chunks", 1), 1)
    if not strings or few or not 0 < len(keys.values) <= MOST_STRINGS or sys.byteorder != "little":
        return None
    encoded = [key.encode() for key in keys.values]
    if max(map(len, encoded)) > MOST:
        return None
    declared = np.array([int.from_bytes(key, "little") + (len(key) << 8 * MOST) for key in encoded], dtype=np.uint64)
    known = KnownWords.of(None, declared, np.arange(1, declared.size + 1))
    if known is None:
        return None
    codes = np.empty(len(array), dtype=np.int16)
    blocks = [*_blocks(array, codes)]
    workers = threads(1, 1)
    table = known.second, known.numbers, known.multipliers[1], known.shift

    def work(thread: int) -> None:
        scratch = Scratch()
        for data, ends, place in blocks[thread::workers]:
            if kernels is not None:
                kernels.by_bytes(read_only(data), read_only(ends), *table, place)
                continue
            place[:] = known.find(None, _words(data, ends, scratch), scratch, "key")
            np.subtract(place, 1, out=place)  # NOWHERE is -1

    in_threads(work, workers)
    if array.null_count:
        codes[np.asarray(array.is_null())] = keys.missing
    return pl.Series(pl.from_arrow(pyarrow.array(codes)))  # which is no copy


def _blocks(array: Any, codes: Codes) -> Iterator[tuple[Bytes, Ends, Codes]]:
    """Blocks of rows: bytes, where in these each string starts and the last one ends, and where its codes go to.

    Strings at the end of a buffer are read from a copy of its last bytes, with others after them.
    """
    chunks, done = getattr(array, "chunks", [array]), 0
    for chunk in chunks:
        data, ends = _buffers(chunk)
        rows = len(chunk)
        safe = int(np.searchsorted(ends[:rows], data.size - BEYOND, side="right"))
        base = max(data.size - BEYOND, 0)
        last = np.concatenate([data[base:], np.zeros(2 * BEYOND, dtype=np.uint8)])
        for first in range(0, safe, BLOCK):
            beyond = min(first + BLOCK, safe)
            yield data, ends[first : beyond + 1], codes[done + first : done + beyond]
        for first in range(safe, rows, BLOCK):
            beyond = min(first + BLOCK, rows)
            yield last, ends[first : beyond + 1] - base, codes[done + first : done + beyond]
        done += rows


def _buffers(chunk: Any) -> tuple[Bytes, Ends]:
    """The bytes of an array of strings, from an address that words have, and the ends of the strings in them."""
    _, ends, data = chunk.buffers()
    dtype = np.int32 if str(chunk.type) == "string" else np.int64
    found = np.frombuffer(data or b"", dtype=np.uint8)
    if found.ctypes.data % 8:
        found = found.copy()
    if not len(chunk):
        return found, np.zeros(1, dtype=np.int64)
    return found, np.frombuffer(ends, dtype=dtype)[chunk.offset : chunk.offset + len(chunk) + 1]


def _words(data: Bytes, ends: Ends, scratch: Scratch) -> Words:
    """The bytes of each string with its length in the last byte; of a long one only that it is too long."""
    rows, starts = ends.size - 1, ends[:-1]
    words: Words = scratch.of("words", rows, np.uint64)
    length = np.subtract(ends[1:], starts, out=scratch.of("length", rows, np.int64))
    least, most = int(length.min()), int(length.max())
    if least == most:  # then they lie one after another
        words[:] = np.ndarray((rows,), np.uint64, buffer=data, offset=int(starts[0]), strides=(least,))
        size = np.uint64(min(least, MOST + 1))
        words &= (np.uint64(1) << (size << np.uint64(3))) - np.uint64(1) if size <= MOST else np.uint64(0)
        words |= size << np.uint64(8 * MOST)
        return words
    if most > MOST:
        np.minimum(length, MOST + 1, out=length)
    _read(data, starts, words, scratch)
    size, others = length.view(np.uint64), scratch.of("others", rows, np.uint64)
    np.subtract(8, size, out=others)
    others <<= np.uint64(3)  # bits that are not of the string
    words <<= others
    words >>= others
    size <<= np.uint64(8 * MOST)
    words |= size
    return words


def _read(data: Bytes, starts: Ends, words: Words, scratch: Scratch) -> None:
    """The eight bytes from each start, which may lie in two words."""
    at = scratch.of("at", words.size, np.int64)
    at[:] = starts
    bits = np.bitwise_and(at, 7, out=scratch.of("bits", words.size, np.int64)).view(np.uint64)
    bits <<= np.uint64(3)
    at >>= 3
    whole = data[: data.size // 8 * 8].view(np.uint64)
    whole.take(at, mode="wrap", out=words)
    words >>= bits
    at += 1
    after = whole.take(at, mode="wrap", out=scratch.of("others", words.size, np.uint64))
    after <<= np.uint64(1)  # and then by 63 at most
    bits ^= np.uint64(63)
    after <<= bits
    words |= after
