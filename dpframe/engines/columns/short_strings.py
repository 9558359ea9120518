"""Short Arrow strings as positions among the declared keys, found from their bytes, block by block.

pandas keeps strings as their ends and their bytes. Converting them to Polars, which has 16 bytes for each, takes as
long as finding them among the keys. Here a string of at most 7 bytes is one word: its bytes and its length. Two such
strings have the same word exactly if they have the same bytes, and a longer string has the word of none. So no two
strings become one, whatever their bytes. `KnownWords` finds which of a few known words, or pairs of them, each of many
is. Compiled kernels use the same table.
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

MOST_STRINGS = 2**8  # maximum number of keys for a table in which each key has its own slot
SLOTS = 2**16  # maximum number of slots of that table
MULTIPLIERS = [np.uint64(pow(0x9E3779B97F4A7C15, power, 2**64)) for power in range(1, 65)]  # all odd

FEW_ROWS = 2**12  # below this, strings are converted as they are
BLOCK = 2**16  # rows at a time, which stay in the processor's cache
MOST = 7  # maximum bytes of a string that is a word
BEYOND = 32  # bytes that must follow the start of a string; two words of them are read

Bytes = NDArray[np.uint8]
Ends = NDArray[Any]  # integers of 32 or 64 bits
Codes = NDArray[np.int16]


@dataclass(frozen=True)
class KnownWords:
    """Table of known pairs, each in its own slot by a multiplication; a pair is known if both words are in its slot."""

    multipliers: tuple[Any, Any]
    shift: Any
    first: Words  # by slot
    second: Words
    numbers: Integers  # the number of each pair, from 1 on; 0 in an empty slot
    alike: Any  # the first word, if all known pairs have the same

    @classmethod
    def of(cls, first: Words | None, second: Words, numbers: NDArray[Any]) -> Self | None:
        """Return a table of distinct known pairs with their numbers, or of words alone; None if none was found."""
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
        """Return the number of each pair, or of each word in a table of words alone; 0 for unknown ones."""
        rows = second.size
        slot = _slot(first, second, self.multipliers, self.shift, scratch.of("second", rows, np.uint64))
        unlike = self.second.take(slot, mode="wrap", out=scratch.of("third", rows, np.uint64))  # slots are in range
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
    """Return multipliers of both words and a shift that give pairs different slots; None if none were found."""
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
    """Return the position of each string among the keys, NOWHERE for any other, in 16 bits.

    None if strings are few, also per chunk, or keys are many, long or absent; strings are then converted as usual.
    """
    import pyarrow

    kernels = kernels_for(len(array))  # called first, so that its messages do not reveal the number of rows
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
    return pl.Series(pl.from_arrow(pyarrow.array(codes)))  # without a copy


def _blocks(array: Any, codes: Codes) -> Iterator[tuple[Bytes, Ends, Codes]]:
    """Yield blocks of rows: bytes, the starts of strings in them and the end of the last, and the target of codes.

    Strings at the end of a buffer are read from a copy of its last bytes, followed by padding.
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
    """Return the bytes of an array of strings, at an address aligned for words, and the ends of strings in them."""
    _, ends, data = chunk.buffers()
    dtype = np.int32 if str(chunk.type) == "string" else np.int64
    found = np.frombuffer(data or b"", dtype=np.uint8)
    if found.ctypes.data % 8:
        found = found.copy()
    if not len(chunk):
        return found, np.zeros(1, dtype=np.int64)
    return found, np.frombuffer(ends, dtype=dtype)[chunk.offset : chunk.offset + len(chunk) + 1]


def _words(data: Bytes, ends: Ends, scratch: Scratch) -> Words:
    """Return the bytes of each string with its length in the last byte; for a long one, only that it is too long."""
    rows, starts = ends.size - 1, ends[:-1]
    words: Words = scratch.of("words", rows, np.uint64)
    length = np.subtract(ends[1:], starts, out=scratch.of("length", rows, np.int64))
    least, most = int(length.min()), int(length.max())
    if least == most:  # the strings then lie at equal distances
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
    others <<= np.uint64(3)  # the bits beyond the string
    words <<= others
    words >>= others
    size <<= np.uint64(8 * MOST)
    words |= size
    return words


def _read(data: Bytes, starts: Ends, words: Words, scratch: Scratch) -> None:
    """Read the eight bytes from each start, which may lie in two words."""
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
    after <<= np.uint64(1)  # the rest of the shift, at most 63, follows
    bits ^= np.uint64(63)
    after <<= bits
    words |= after
